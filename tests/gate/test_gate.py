"""Every engine gives a text the same meaning: a sample of the fixed seeds and templates here, all of them and fresh
seeds under `make deep`."""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from kafkaspec.language import ModelError, load
from kafkaspec.language.parts import nodes
from tests.gate import oracle, wrong
from tests.gate.compare import ALL, DRAWN, compare
from tests.gate.engines import Disagreement, Found, exported
from tests.gate.faults import FAULTS, planted
from tests.gate.gate import SEEDS, case, compared, engines_of, fixed, minimal, smaller
from tests.gate.table import rows
from tests.gate.templates import every

AT_ONCE = 4
EACH_SEED, EACH_TEMPLATE = 18, 26
"""`make test` compares one fixed case in this many, and one of each larger kind that is not among these."""
FINDERS = {case for _, case, _ in rows().values()}
"""In these a planted fault is found: `make test` compares them with the engine that it is planted in."""


def kind(name: str) -> str:
    """What a case has in common with others: where its operation stands, or what they are all about."""
    kinds = ("everywhere", "in invariant", "in lemma", "leaves its type", "abstract step", "abstract start")
    return "seed" if name.isdigit() else next((k for k in kinds if k in name), name.split()[0])


def sample() -> list[str]:
    """The cases that `make test` compares with all engines."""
    found = [*fixed()[: len(SEEDS) : EACH_SEED], *fixed()[len(SEEDS) :: EACH_TEMPLATE]]
    many = Counter(kind(name) for name in fixed())
    met = {kind(name) for name in (*found, *FINDERS)}
    others = {k: name for name in reversed(fixed()) if many[k := kind(name)] > 2 and k not in met}
    return [*found, *others.values()]


SAMPLE = sample()
OTHERS = [name for name in fixed() if name not in SAMPLE]
OPERATIONS = {
    "const", "size", "sortsize", "bound", "var", "nextvar", "idx", "at", "field", "len", "append", "concat", "take",
    "drop", "and", "or", "not", "ite", "only", "eq", "lt", "le", "add", "sub", "mul", "div", "mod", "none", "some",
    "get",
    "empty", "full", "with", "without", "union", "inter", "diff", "subset", "in", "card", "majority", "rec", "forall",
    "exists", "greatest", "least", "count", "sum", "setof", "image", "mapof",
}  # fmt: skip
OUTCOMES = ("refused", "whole", "broken", "type", "defined", "claim", "several first states", "drawn", "ghosts")
FRESH = 6_000
"""Seeds of an hour, TLC included."""
PARTS = 24
"""They are compared in this many tests, so that a run that is stopped goes on with those that it lacks."""
TLC_EACH = 10
"""TLC is asked about one fresh seed in this many: it takes two seconds."""


def chunks(names: list[str]) -> list[list[str]]:
    return [names[i : i + AT_ONCE] for i in range(0, len(names), AT_ONCE)]


@pytest.mark.parametrize("names", chunks(SAMPLE), ids=lambda names: names[0])
def test_every_engine_gives_a_text_the_same_meaning(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        found = compared(name, tmp_path)
        assert not found.disagreements, minimal(name, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("names", chunks(OTHERS), ids=lambda names: names[0])
def test_every_engine_gives_every_fixed_text_the_same_meaning(tmp_path: Path, names: list[str]) -> None:
    test_every_engine_gives_a_text_the_same_meaning(tmp_path, names)


@pytest.mark.deep
@pytest.mark.first
@pytest.mark.parametrize("part", range(PARTS))
def test_fresh_seeds(tmp_path: Path, part: int) -> None:
    first = int(os.environ.get("GATE_FIRST", random.SystemRandom().randrange(10**6, 10**9)))
    count = int(os.environ.get("GATE_SEEDS", FRESH))
    count = -(-count // PARTS)
    first += part * count
    print(f"seeds {first} to {first + count - 1}: GATE_FIRST={first} GATE_SEEDS={count} compares them again")
    tlc = shutil.which("java") is not None and "TLA2TOOLS" in os.environ
    shown = []
    for i in range(count):
        name = str(first + i)
        only = (*ALL, "tlc") if tlc and i % TLC_EACH == 0 else ALL
        if compared(name, tmp_path, only).disagreements:
            shown.append(minimal(name, tmp_path, only=only))
        for path in tmp_path.glob("tlc*"):
            shutil.rmtree(path)
    assert not shown, "\n".join([f"{len(shown)} models are read differently:", *shown[:5]])


@pytest.mark.deep
@pytest.mark.parametrize("name", every())
def test_tlc_reads_the_templates_alike(tmp_path: Path, name: str) -> None:
    found = compared(name, tmp_path, ("tlc",))
    assert not found.disagreements, minimal(name, tmp_path, only=("tlc",))


@pytest.mark.parametrize("b", ["K", "1"])
def test_tlc_says_when_a_start_has_no_value(tmp_path: Path, b: str) -> None:
    """A start without a value is an assumption that is false: no other text has one."""
    cls = oracle.loaded(STARTS.replace("b=K", f"b={b}"), tmp_path)
    space, other = oracle.run(cls, {"K": 2}), oracle.run(cls, {"K": 1})
    assert (space.start, other.start) == ("undefined" if b == "K" else "", "")
    misread = replace(space, start="", broken={"n"}) if space.start else replace(space, start="undefined")
    for s, red in [(space, False), (misread, True)]:
        found = Found()
        exported(found, load(cls), s, tmp_path)
        assert bool(found.disagreements) == red


STARTS = """
from dataclasses import dataclass
from typing import Annotated
from kafkaspec.language import *

K = Size("K")

@dataclass(frozen=True)
class R:
    b: Annotated[int, Range(0, 1)]

class M(Model):
    v: R
    n: Annotated[int, Range(0, K)]

    @initial
    def start(s) -> None:
        s.next.v = R(b=K)
        s.next.n = 0
"""


@pytest.mark.parametrize("first", ["-1", "1"])
def test_a_ghost_outside_its_type_at_the_start_is_a_start_where_ghosts_are_left_out(tmp_path: Path, first: str) -> None:
    """Where they are kept it is none, and the engines say so."""
    text = GHOSTS.replace("FIRST", first)
    assert not compare(text, ({},), 0, tmp_path, ("graph", "explorer")).disagreements
    cls = oracle.loaded(text, tmp_path)
    kept, without = oracle.run(cls, {}), oracle.run(cls, {}, ghosts=False)
    assert (kept.start, oracle.GHOST in without.broken) == (("outside", True) if first == "-1" else ("", False))


GHOSTS = """
from typing import Annotated
from kafkaspec.language import *

class M(Model):
    n: Annotated[int, Range(0, 2)]
    g: Annotated[int, Range(0, 2)]
    ghosts = ("g",)

    @initial
    def start(s) -> None:
        s.next.n = 0
        s.next.g = FIRST
"""


# ---- what has no meaning
@pytest.mark.parametrize("name", wrong.texts())
def test_what_has_no_meaning_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match=r"\.py:\d+: "):
        oracle.loaded(wrong.texts()[name], tmp_path)


def test_the_text_that_was_made_wrong_is_right(tmp_path: Path) -> None:
    assert load(oracle.loaded(wrong.right(), tmp_path)).actions


# ---- the generator
def test_the_cases_use_every_operation_and_meet_every_outcome(tmp_path: Path) -> None:
    operations: set[str] = set()
    met: Counter[str] = Counter()

    for name in dict.fromkeys((*SAMPLE, *sorted(FINDERS))):
        if operations >= OPERATIONS and all(met[n] for n in OUTCOMES):
            break
        m = case(name)
        try:
            cls = oracle.loaded(m.text, tmp_path)
        except ModelError:
            met["refused"] += 1
            continue
        model = load(cls)
        for a in [model.initial, *model.actions]:
            for e in [
                *a.guard,
                *[n.what for n in a.needs],
                *[y for u in a.updates for y in (*u.keys, u.cond, u.value)],
            ]:
                operations |= {x.op for x in nodes(e)}
        for claims in (model.invariants, model.lemmas, model.steps, model.witnesses):
            for c in claims.values():
                operations |= {x.op for x in nodes(c.expr)}
        space = oracle.run(cls, {n: v for n, v in m.sizes[0].items() if n in model.sizes}, most=60)
        met[space.start or ("whole" if space.whole else "broken" if space.broken else "cut")] += 1
        met |= Counter(
            dict.fromkeys(
                ["type" if n == "type" else "defined" if n == "defined" else "claim" for n in space.broken], 1
            )
        )
        met["several first states"] += bool(space.levels and len(space.levels[0]) > 1)
        met["drawn"] += any(a.drawn for a in model.actions)
        met["ghosts"] += bool(model.ghosts)
    assert operations >= OPERATIONS, OPERATIONS - operations
    assert all(met[n] for n in OUTCOMES), met


def test_most_texts_are_well_typed(tmp_path: Path) -> None:
    refused = 0
    for seed in SEEDS[::7]:
        try:
            oracle.loaded(case(str(seed)).text, tmp_path)
        except ModelError:
            refused += 1
    assert refused < len(SEEDS[::7]) / 4


def test_a_seed_gives_the_same_text_always() -> None:
    assert case("7") == case("7") != case("8")


# ---- the gate, tested
def test_the_page_lists_every_fault() -> None:
    assert {n: e for n, (e, _, _) in rows().items()} == {n: f.engine for n, f in FAULTS.items()}
    assert FINDERS < {*SAMPLE, *OTHERS} == {*fixed()}
    assert len(SEEDS) >= 80


@cache
def agreed(name: str, only: tuple[str, ...], variants: tuple[str, ...]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        return not compared(name, Path(folder), only, variants).disagreements


@pytest.mark.parametrize("name", [n for n, f in FAULTS.items() if f.engine != "TLA+"])
def test_a_planted_fault_is_found(tmp_path: Path, name: str) -> None:
    f, (_, by, seen) = FAULTS[name], rows()[name]
    only = engines_of(Disagreement(seen.partition(": ")[0], "", ""))
    if "pinned" in only:
        only = (DRAWN, "pinned")
    assert agreed(by, only, f.variants)
    with planted(f):
        assert compared(by, tmp_path, only, f.variants, lambda d: True).disagreements


@pytest.mark.deep
@pytest.mark.parametrize("name", [n for n, f in FAULTS.items() if f.engine == "TLA+"])
def test_a_planted_fault_of_the_export_is_found(tmp_path: Path, name: str) -> None:
    test_a_planted_fault_is_found(tmp_path, name)


def test_a_disagreement_is_shown_as_a_minimal_text(tmp_path: Path) -> None:
    f = FAULTS["the type of a set's elements is not asked for"]
    _, by, _ = rows()[f.name]
    with planted(f):
        d = compared(by, tmp_path, f.only).disagreements[0]
        text = smaller(case(by), d, tmp_path, 300)
    body = text[text.index("class Random") :]
    assert re.fullmatch(r"class.*\n +v\d: set\[\w+\]\n\n? +@action.*\n +def.*\n +s\.next\.v\d = \{\d\}\n", body), text
    assert oracle.loaded(text, tmp_path) is not None
