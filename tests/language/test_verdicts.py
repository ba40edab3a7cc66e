"""What each engine says of a text is what the text says when Python runs it: of texts that break something, and of what
is broken first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.export import tla
from kafkaspec.language import LoadedModel, Model, load
from kafkaspec.language.concrete import Concrete, OutsideType, State, Undefined
from kafkaspec.prove.bounded import bounded
from kafkaspec.prove.engine import prove
from tests.export.tlc import tlc
from tests.language.verdicts import MODELS, SIZES, Bit


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
            for c in [c for c, promise in m.leads_to.items() if not promise.params]:
                run.value(c, state, {})
        except Undefined:
            return "Defined"
        return ""

    try:
        level = run.initial_states()
    except Undefined:
        return "the start"
    except OutsideType:
        return "TypeOK"
    if not level:
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
    name = (named[1] or named[2]).removesuffix("_in_place") if named else error
    return re.sub("_(start|type)$", r": \1", name)


def sizes_of(model: type[Model]) -> dict[str, int | bool]:
    return {n: SIZES[n] for n in load(model).sizes}


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_the_text_says_what_is_broken(model: type[Model]) -> None:
    assert said_by_the_text(model, sizes_of(model)) == (model.__doc__ or "")


def in_words_of_tla(claim: str) -> str:
    """A claim as the export names it."""
    if claim.startswith("type of"):
        return "TypeOK"
    return "Defined" if claim.rpartition(": ")[2] == "defined" else claim


def said_by_the_explorer(m: LoadedModel, sizes: dict[str, int | bool]) -> str:
    try:
        e = explore(m, sizes, deadlock=True, liveness=False, ghosts=True)
    except UserError as error:
        if "@initial" not in str(error):
            raise
        return "TypeOK" if "type of" in str(error) else "the start"
    return in_words_of_tla(e.trace.claim if e.trace is not None else "")


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_the_explorer_and_the_bounded_search_say_what_the_text_says(model: type[Model]) -> None:
    m, said = load(model), model.__doc__ or ""
    assert said_by_the_explorer(m, sizes_of(model)) == said
    b = bounded(m, 6, sizes_of(model))
    asked = said not in ("Defined", "") or not (m.witnesses or m.leads_to)  # what is neither's is not asked of it
    assert (b.outcome == "violation") == bool(said) or not asked, b.summary()


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_what_a_text_breaks_is_never_proved(model: type[Model]) -> None:
    m, said = load(model), model.__doc__ or ""
    if model is Bit:
        with pytest.raises(UserError, match="has nothing to prove"):
            prove(m)
        return
    p = prove(m, timeout_s=1, fixed=sizes_of(model))
    if said and not (said == "Defined" and (m.witnesses or m.leads_to)):
        assert not p.complete, said
    assert said or not any(o.verdict == "refuted" and o.action == "(start)" for o in p.obligations)


@pytest.mark.deep
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_tlc_says_what_the_text_says(model: type[Model], tmp_path: Path) -> None:
    module, configuration = tla(load(model), sizes_of(model), deadlock=True)
    found = tlc(tmp_path, module, configuration)
    assert said_by_tlc(found.error) == (model.__doc__ or ""), module + found.output


def test_there_is_a_text_for_each_kind_of_verdict() -> None:
    assert {"", "Defined", "TypeOK", "the start"} < {m.__doc__ or "" for m in MODELS}
