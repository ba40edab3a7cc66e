"""What TLC says of an exported text is what the text says: of texts that break something, and of what breaks first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafkaspec.export import tla
from kafkaspec.language import Model, load
from kafkaspec.language.concrete import Concrete, OutsideType, State, Undefined
from tests.export.tlc import tlc
from tests.export.verdicts import MODELS, SIZES


def said_by_the_text(model: type[Model], sizes: dict[str, int | bool]) -> str:
    """What is broken first, breadth-first; "" if nothing is."""
    run, m = Concrete(model, sizes), load(model)
    seen: set[State] = set()

    def broken(claims: list[str], state: State, after: State | None = None) -> str:
        for c in claims:
            try:
                if not run.holds(c, state, after) and c not in m.witnesses:
                    return c
            except Undefined:
                return "Defined" if c in m.witnesses else c
        return ""

    def promises(state: State) -> str:
        try:
            for c in m.leads_to:
                run.value(c, state, {})
        except Undefined:
            return "Defined"
        return ""

    try:
        level = run.initial_states()
    except Undefined:
        return "the start"
    for s in level:
        if found := broken([*m.starts], s):
            return found
    while level:
        following = []
        for s in level:
            seen.add(s)
            if found := promises(s) or broken([*m.witnesses, *m.invariants, *m.lemmas], s):
                return found
        for s in level:
            try:
                successors = run.successors(s)
            except Undefined:
                return "Defined"
            except OutsideType:
                return "TypeOK"
            for t in successors:
                if found := broken([*m.steps], s, t.state):
                    return found
                if t.state not in seen:
                    seen.add(t.state)
                    following.append(t.state)
        level = following
    return ""


def said_by_tlc(error: str) -> str:
    """The claim that TLC's error names."""
    if error.startswith("Assumption"):
        return "the start"
    named = re.search(r"(?:Invariant|[Pp]roperty) (\w+) is violated|invariant of (\w+) is equal to FALSE", error)
    return (named[1] or named[2]).removesuffix("_in_place").replace("_start", ": start") if named else error


def sizes_of(model: type[Model]) -> dict[str, int | bool]:
    return {n: SIZES[n] for n in load(model).sizes}


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_the_text_says_what_is_broken(model: type[Model]) -> None:
    assert said_by_the_text(model, sizes_of(model)) == (model.__doc__ or "")


@pytest.mark.deep
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_tlc_says_what_the_text_says(model: type[Model], tmp_path: Path) -> None:
    module, configuration = tla(load(model), sizes_of(model), deadlock=True)
    found = tlc(tmp_path, module, configuration)
    assert said_by_tlc(found.error) == (model.__doc__ or ""), module + found.output


def test_there_is_a_text_for_each_kind_of_verdict() -> None:
    assert {"", "Defined", "TypeOK", "the start"} < {m.__doc__ or "" for m in MODELS}
