"""Breadth-first search: counts, shortest runs, everything that can be wrong with a model, limits and resuming."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest

from kafkaspec import native
from kafkaspec.errors import UserError
from kafkaspec.explore import checkpoint, engine, liveness, program
from kafkaspec.explore.checked import Expectation
from kafkaspec.explore.engine import Exploration, Search, explore
from kafkaspec.explore.layout import Layout
from kafkaspec.explore.program import Program
from kafkaspec.language import (
    Bounded,
    Model,
    NonEmpty,
    Range,
    Size,
    Sort,
    Trace,
    action,
    initial,
    invariant,
    lemma,
    load,
    require,
    step,
    witness,
)
from kafkaspec.language.concrete import Concrete
from kafkaspec.models.examples import cleaner_anchor, replication_anchor
from kafkaspec.models.examples.cleaner_anchor import CleanerAnchor
from kafkaspec.models.examples.replication_anchor import Replication
from tests import modules
from tests.explore.test_liveness import Lock

CLEANER: dict[str, int | bool] = {"Partition": 3, "Thread": 2, "N": 3, "D": 1}
UNFENCED: dict[str, int | bool] = {"Replica": 3, "L": 2, "E": 3, "FENCED": False}


def counts(e: Exploration) -> tuple[int, int, int]:
    return e.distinct, e.generated, e.depth


# ---- counts
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_counts_do_not_depend_on_the_threads(threads: int) -> None:
    e = explore(load(CleanerAnchor), CLEANER, threads=threads)
    assert counts(e) == (8_792, 64_093, 13)
    assert (sum(e.states_per_level), len(e.states_per_level)) == (8_792, 13)
    assert sum(e.taken.values()) == 64_093 - 1


@pytest.mark.parametrize(("usable", "exact", "words"), [(63, 4, 1), (14, 4, 2), (5, 4, 5), (63, 0, 1), (14, 1, 2)])
def test_counts_do_not_depend_on_the_layout(usable: int, exact: int, words: int) -> None:
    program = Program(Layout(load(CleanerAnchor), CLEANER, usable=usable), exact_words=exact)
    e = explore(load(CleanerAnchor), CLEANER, program=program)
    assert counts(e) == (8_792, 64_093, 13)
    assert (e.words, e.fingerprint_collision is not None) == (words, words > exact)
    assert e.fingerprint_collision is None or 0 < e.fingerprint_collision < 1e-10


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(c, marks=pytest.mark.deep if c.distinct > 1_000_000 else ())
        for c in (*cleaner_anchor.MODELS, *replication_anchor.MODELS)
    ],
    ids=lambda c: f"{c.distinct}",
)
def test_the_anchors_have_their_counts(entry: Expectation) -> None:
    assert entry.run().findings == []


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What LLVM is asked for, in its order: whether quickly. The model's code comes before the loops."""
    out: list[bool] = []

    def machine(quickly: bool) -> Any:
        out.append(quickly)
        return of_llvm(quickly)

    of_llvm = native.machine
    monkeypatch.setattr(native, "machine", machine)
    return out


@pytest.mark.parametrize(("lanes", "usable"), [(1, 63), (8, 63), (8, 14), (8, 5)])
def test_a_search_that_is_long_goes_on_with_code_compiled_with_care(
    made: list[bool], monkeypatch: pytest.MonkeyPatch, lanes: int, usable: int
) -> None:
    monkeypatch.setattr(program, "lanes_here", lambda: lanes)

    def explored() -> Exploration:
        made.clear()
        of_words = Program(Layout(load(CleanerAnchor), CLEANER, usable=usable))
        of_words.chunk = of_words.width  # so that it goes over within a level
        return explore(load(CleanerAnchor), CLEANER, program=of_words)

    whole = explored()
    assert made == [True, True]
    for quick, most in ((100, 0), (100, 500), (1_000, 3_001), (100, 10_000)):
        monkeypatch.setattr(engine, "QUICK", quick)
        monkeypatch.setattr(engine.Search, "is_long", lambda s, most=most: s.distinct >= most)
        e = explored()
        assert (counts(e), e.states_per_level, e.taken) == (counts(whole), whole.states_per_level, whole.taken)
        wide = [True, True] if most and lanes > 1 else []
        assert made == [True, True, *wide, *([False, False] if most < 8_792 else [])]


def test_a_checkpoint_is_read_whatever_its_search_was_compiled_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "lanes_here", lambda: 8)
    monkeypatch.setattr(engine, "QUICK", 500)
    whole = explore(load(CleanerAnchor), CLEANER)
    for most in (500, 5_000, 10_000):
        monkeypatch.setattr(engine.Search, "is_long", lambda s, most=most: s.distinct >= most)
        for limit in (1_000, 6_000, None):
            e = explore(
                load(CleanerAnchor),
                CLEANER,
                program=Program(Layout(load(CleanerAnchor), CLEANER, usable=14)),
                checkpoint=tmp_path / f"{most}",
                max_states=limit,
            )
        assert (counts(e), e.taken) == (counts(whole), whole.taken)


def test_a_program_is_explored_with_a_checkpoint_and_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "lanes_here", lambda: 8)
    p = Program(Layout(load(CleanerAnchor), CLEANER, usable=14))
    for file in (None, tmp_path / "one", None, tmp_path / "two"):
        assert counts(explore(load(CleanerAnchor), CLEANER, program=p, checkpoint=file)) == (8_792, 64_093, 13)


def test_searches_of_one_program_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "lanes_here", lambda: 8)
    p = Program(Layout(load(CleanerAnchor), CLEANER, usable=14))
    s = Search(p, 1, 64)
    try:
        (first,) = s.initial_states()
        states = [first, *(after for _, after, _ in s.successors(first))]
        whole = [s.successors(state) for state in states]
        assert len({state[1] for state in states}) > 1
        other = Search(p, 1, 64, wide=True)
        try:
            assert (s.lanes, other.lanes) == (1, 8)
            for one in (s, other):
                assert [one.successors(state) for state in states] == whole
        finally:
            other.close()
    finally:
        s.close()


def test_the_loops_of_a_large_search_are_compiled_with_care(made: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = explore(load(CleanerAnchor), CLEANER)
    monkeypatch.setattr(engine, "QUICK", 500)
    monkeypatch.setattr(engine, "MANY", 500)
    for lanes, wide in ((1, []), (8, [True, True])):
        monkeypatch.setattr(program, "lanes_here", lambda lanes=lanes: lanes)
        made.clear()
        assert counts(explore(load(CleanerAnchor), CLEANER)) == counts(whole)
        assert made == [True, True, *wide, False]


def test_a_search_is_long_when_compiling_with_care_pays() -> None:
    s = engine.Search(Program(Layout(load(CleanerAnchor), CLEANER)), 1, 500)
    try:
        assert not s.is_long()
        s.began -= engine.LONG * s.compile_seconds
        assert s.is_long()
    finally:
        s.close()


def test_ghosts_are_kept_when_asked_for() -> None:
    sizes: dict[str, int | bool] = {"Replica": 2, "L": 2, "E": 3, "FENCED": True}
    without, kept = (explore(load(Replication), sizes, ghosts=g, deadlock=True) for g in (False, True))
    assert (without.distinct, kept.distinct) == (4_725, 6_019)
    assert kept.outcome == "complete"
    sizes |= {"L": 1, "E": 2}
    states, generated = Concrete(Replication, sizes, ghosts=True).reachable()
    e = explore(load(Replication), sizes, ghosts=True, deadlock=True)
    assert (e.distinct, e.generated) == (len(states), generated)


# ---- shortest runs
def follow(model: type[Model], trace: Trace) -> None:
    """The text itself takes every step of the run."""
    c = Concrete(model, trace.sizes)
    (here,) = [s for s in c.initial_states() if c.show(s).items() >= dict(trace.steps[0].state).items()]
    for s in trace.steps[1:]:
        ways = [t for t in c.successors(here) if t.action == s.action]
        here = next(t.state for t in ways if c.show(t.state).items() >= dict(s.state).items())


def test_a_counterexample_is_shortest_and_the_same_with_any_threads() -> None:
    one, two = (explore(load(Replication), UNFENCED, threads=n) for n in (1, 2))
    assert one.outcome == "violation"
    assert one.trace == two.trace
    assert one.trace is not None
    assert (one.trace.claim, len(one.trace.steps)) == ("strong_isr", 12)  # as TLC finds it
    follow(Replication, one.trace)


def test_witnesses_come_with_shortest_runs() -> None:
    e = explore(load(CleanerAnchor), CLEANER)
    trace = e.witnesses["paused_twice"]
    assert trace is not None
    assert (trace.kind, [s.action for s in trace.steps]) == ("witness", ["", "abort_and_pause", "abort_and_pause"])
    assert list(trace.changed(2)) == [f"pauses[{trace.steps[2].arguments['p']}]"]
    follow(CleanerAnchor, trace)


# ---- what can be wrong
N = Size("N")


class Item(Sort): ...


class Counter(Model):
    """Counts up to N, with a log of what was counted."""

    count: Annotated[int, Range(0, N)]
    log: Annotated[list[Annotated[int, Range(1, 2)]], Bounded(2)]
    total: Annotated[int, Range(0)]
    ghosts = ("total",)

    @action("XXX-1", who="clerk")
    def up(s) -> None:
        require(s.count < N)
        s.next.count = s.count + 1
        s.next.total = s.total + 1

    @action()
    def down(s) -> None:
        require(s.count > 0, s.count < N)
        s.next.count = s.count - 1


class Steps(Counter):
    @step("XXX-2")
    def by_one(s) -> bool:
        return s.next.count != 1 or s.count == 0


class Low(Counter):
    @invariant("XXX-2")
    def low(s) -> bool:
        return s.count < 2


class Overflowing(Counter):
    @action("XXX-1", who="clerk")
    def up(s) -> None:
        s.next.count = s.count + 1


class Growing(Counter):
    @action()
    def note(s) -> None:
        s.next.log = s.log + [1]


class Vacuous(Counter):
    @action()
    def never(s) -> None:
        require(s.count > N)
        s.next.count = 0

    @witness
    def beyond(s) -> bool:
        return s.count > N


class Ghostly(Counter):
    @lemma()
    def total_covers(s) -> bool:
        return s.count < s.total or s.count == s.total


class Wrong(Counter):
    @initial
    def start(s) -> None:
        s.next.count = N + 1


class Sets(Model):
    """Sets of which a part may be empty, and a set of numbers."""

    group: Annotated[set[Item], NonEmpty]
    some: set[Item]
    digits: set[Annotated[int, Range(2, 4)]]
    n: Annotated[int, Range(0, N)]

    @initial
    def start(s) -> None:
        s.next.group = set(Item)

    @action()
    def join(s, i: Item) -> None:
        s.next.group = (s.some if s.n == 0 else s.group) | {i}
        s.next.n = min(N, s.n + 1)


class Emptied(Sets):
    @action()
    def leave(s) -> None:
        s.next.group = s.some & s.group


class Strange(Sets):
    @action()
    def note(s) -> None:
        s.next.digits = (s.digits | {s.n + 2}) | {3}


def test_a_deadlock_is_reported_when_all_is_known() -> None:
    e = explore(load(Counter), {"N": 3})
    assert (counts(e), e.outcome) == ((4, 6, 4), "deadlock")
    assert e.trace is not None
    assert (e.trace.kind, e.trace.steps[-1].state["count"]) == ("deadlock", 3)
    assert explore(load(Counter), {"N": 3}, deadlock=True).outcome == "complete"


def test_an_invariant_that_breaks() -> None:
    e = explore(load(Low), {"N": 5})
    assert (e.outcome, counts(e)) == ("violation", (3, 4, 3))
    assert e.trace is not None
    assert (e.trace.claim, e.trace.clauses, [s.action for s in e.trace.steps]) == ("low", ("XXX-2",), ["", "up", "up"])
    assert e.trace.steps[1].who == "clerk"


def test_a_step_property_that_breaks() -> None:
    e = explore(load(Steps), {"N": 3})
    assert e.outcome == "violation"
    assert e.trace is not None
    assert (e.trace.claim, e.trace.clauses) == ("by_one", ("XXX-2",))
    assert [(s.action, s.state["count"]) for s in e.trace.steps] == [("", 0), ("up", 1), ("up", 2), ("down", 1)]


def test_a_value_that_leaves_its_type_is_shown() -> None:
    e = explore(load(Overflowing), {"N": 3})
    assert e.outcome == "violation"
    assert e.trace is not None
    assert (e.trace.claim, e.trace.clauses) == ("type of count", ("XXX-1",))
    assert [s.state["count"] for s in e.trace.steps] == [0, 1, 2, 3, 4]


def test_a_sequence_that_grows_too_long_is_shown() -> None:
    e = explore(load(Growing), {"N": 1})
    assert e.trace is not None
    assert (e.trace.claim, e.trace.steps[-1].state["log"]) == ("type of log", [1, 1, 1])


def test_only_the_set_that_is_assigned_may_not_be_empty() -> None:
    assert explore(load(Sets), {"Item": 2, "N": 2}).outcome == "complete"
    e = explore(load(Emptied), {"Item": 2, "N": 2})
    assert e.trace is not None
    assert (e.trace.claim, e.trace.steps[-1].state["group"]) == ("type of group", [])


def test_an_element_that_is_none_of_a_set_s_type() -> None:
    assert explore(load(Strange), {"Item": 1, "N": 2}).outcome == "complete"
    e = explore(load(Strange), {"Item": 1, "N": 3})
    assert e.trace is not None
    assert (e.trace.claim, len(e.trace.steps)) == ("type of digits", 5)


class Beyond(Counter):
    @action("XXX-3")
    def peek(s) -> None:
        require(s.count == 2, s.log[s.count - 1] == 1)
        s.next.count = 0


class Guarded(Counter):
    @action()
    def peek(s) -> None:
        require(len(s.log) > 1 and s.log[1] == 2)
        s.next.count = 0


class Unwrapped(Sets):
    owner: Item | None

    @action("XXX-3")
    def leave(s) -> None:
        s.next.group = {s.owner} | s.group  # type: ignore[assignment]


class Claimed(Counter):
    @invariant()
    def first_is_one(s) -> bool:
        return s.log[0] == 1


def test_reading_what_is_not_there_is_a_violation() -> None:
    e = explore(load(Beyond), {"N": 3})
    assert e.trace is not None
    assert (e.outcome, e.trace.claim, e.trace.clauses) == ("violation", "defined", ("XXX-3",))
    assert [s.action for s in e.trace.steps] == ["", "up", "up", "peek"]
    assert explore(load(Guarded), {"N": 3}, deadlock=True).outcome == "complete"
    e = explore(load(Unwrapped), {"Item": 2, "N": 2})
    assert e.trace is not None
    assert (e.trace.claim, [s.action for s in e.trace.steps]) == ("defined", ["", "leave"])
    e = explore(load(Claimed), {"N": 3})
    assert e.trace is not None
    assert (e.trace.claim, len(e.trace.steps)) == ("first_is_one", 1)


def test_a_number_without_a_limit_ends_in_a_limit() -> None:
    class Endless(Counter):
        @action()
        def again(s) -> None:
            s.next.total = s.total + 1

    e = explore(load(Endless), {"N": 1}, ghosts=True)
    assert (e.outcome, e.trace is not None) == ("limit", True)
    assert e.limit.startswith("stopped at a value of total beyond 255: every state that 255 steps can reach")


def test_lemmas_need_their_ghosts() -> None:
    class Mistaken(Ghostly):
        @lemma()
        def total_covers(s) -> bool:
            return s.total < 1

    for model, outcome in ((Ghostly, "complete"), (Mistaken, "violation")):
        assert explore(load(model), {"N": 1}, deadlock=True).outcome == "complete"
        e = explore(load(model), {"N": 1}, ghosts=True, deadlock=True)
        assert e.outcome == outcome
    assert e.trace is not None
    assert e.trace.claim == "total_covers"


def test_a_wrong_first_state_is_an_error() -> None:
    with pytest.raises(UserError, match="Wrong: @initial: type of count: a value is outside its limits"):
        explore(load(Wrong), {"N": 3})


def test_pinned_models_say_all_that_is_wrong() -> None:
    entry = Expectation(Vacuous, sizes={"N": 2}, distinct=4, generated=9, depth=3)
    assert entry.run().why.splitlines() == [
        "Vacuous: no action is possible after 2 steps (if it may end so, its Expectation has deadlock=True)",
        "Vacuous: witness beyond is never reached",
        "Vacuous: action never is never taken",
        "Vacuous: other counts than pinned: distinct 3 (pinned 4), generated 4 (pinned 9)",
    ]
    assert replace(entry, model=load(Low), sizes={"N": 3}).run().why == "Low: low is broken in 2 steps"
    assert replace(entry, model=Counter, distinct=3, generated=4, deadlock=True).run().findings == []


def test_sizes_and_names_are_checked() -> None:
    with pytest.raises(UserError, match="Counter needs the size of N"):
        explore(load(Counter), {})
    with pytest.raises(UserError, match="unknown sort 'Partitoin'; did you mean 'Partition'"):
        explore(load(CleanerAnchor), CLEANER, symmetry=("Partitoin",))


# ---- limits and resuming
def test_a_limit_says_what_was_covered() -> None:
    e = explore(load(CleanerAnchor), CLEANER, max_states=1_000)
    assert e.outcome == "limit"
    assert 1_000 <= e.distinct < 8_792
    assert e.limit.startswith("stopped at states: 1,000: every state that ")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_goes_on_where_it_stopped(tmp_path: Path, threads: int) -> None:
    file = tmp_path / "run"
    sizes: dict[str, int | bool] = {**CLEANER, "Partition": 4}
    whole = explore(load(CleanerAnchor), sizes)
    met = []
    for most in (2_000, 60_000, 100_000, None):
        e = explore(load(CleanerAnchor), sizes, max_states=most, checkpoint=file, threads=threads)
        met.append(e.outcome)
        assert file.exists() == (most is not None)
    assert met == ["limit", "limit", "limit", "complete"]
    assert (counts(e), e.taken, e.states_per_level) == (counts(whole), whole.taken, whole.states_per_level)
    assert e.witnesses == whole.witnesses


def test_memory_is_a_limit_too(tmp_path: Path) -> None:
    file = tmp_path / "run"
    e = explore(load(CleanerAnchor), CLEANER, max_memory_mb=64, checkpoint=file)
    assert (e.outcome, e.distinct) == ("limit", 1)
    assert "memory: 64 MB" in e.limit
    assert explore(load(CleanerAnchor), CLEANER, checkpoint=file).distinct == 8_792


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run"
    explore(load(CleanerAnchor), CLEANER, max_states=100, checkpoint=file)
    with pytest.raises(UserError, match="run: is of another exploration"):
        explore(load(CleanerAnchor), {**CLEANER, "N": 2}, checkpoint=file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(UserError, match="run: is cut short"):
        explore(load(CleanerAnchor), CLEANER, checkpoint=file)
    file.write_text("nothing\n")
    with pytest.raises(UserError, match="run: is no checkpoint of an exploration"):
        explore(load(CleanerAnchor), CLEANER, checkpoint=file)


RUN = """
import sys
from pathlib import Path
from kafkaspec.explore.engine import explore
from kafkaspec.language import load
from kafkaspec.models.examples.cleaner_anchor import CleanerAnchor

def told(done, total=None, text=""):
    print("working", flush=True)

explore(
    load(CleanerAnchor), {"Partition": 7, "Thread": 2, "N": 3, "D": 1},
    checkpoint=Path(sys.argv[1]), max_memory_mb=1500, progress=told,
)
"""


def test_ctrl_c_leaves_a_run_that_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "run"
    p = subprocess.Popen([sys.executable, "-c", RUN, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout is not None
    assert p.stdout.readline() == b"working\n"
    os.kill(p.pid, signal.SIGINT)
    _, errors = p.communicate(timeout=60)
    assert errors.rstrip().endswith(b"KeyboardInterrupt")
    sizes: dict[str, int | bool] = {"Partition": 7, "Thread": 2, "N": 3, "D": 1}
    e = explore(load(CleanerAnchor), sizes, max_states=1_000, checkpoint=file)
    fresh = explore(load(CleanerAnchor), sizes, max_states=e.distinct)
    done = min(e.depth, fresh.depth) - 1
    assert e.states_per_level[:done] == fresh.states_per_level[:done]


WITNESS = (
    modules.HEAD
    + """
class Counting(Model):
    n: Annotated[int, Range(0, 1000)]

    @action()
    def up(s) -> None:
        require(s.n < 1000)
        s.next.n = s.n + 1

    @witness
    def five(s) -> bool:
        return s.n == 5
"""
)


def test_a_checkpoint_is_of_one_text_down_to_the_names(tmp_path: Path) -> None:
    file = tmp_path / "run"
    explore(load(modules.module(WITNESS, tmp_path).Counting), {}, max_states=100, checkpoint=file)
    renamed = load(modules.module(WITNESS.replace("five", "cinq"), tmp_path).Counting)
    with pytest.raises(UserError, match="run: is of another exploration"):
        explore(renamed, {}, checkpoint=file, deadlock=True)
    assert file.exists()
    e = explore(load(modules.module(WITNESS, tmp_path).Counting), {}, checkpoint=file, deadlock=True)
    assert (e.outcome, e.distinct, list(e.witnesses)) == ("complete", 1_001, ["five"])


def test_a_checkpoint_that_lacks_something_is_none(tmp_path: Path) -> None:
    file = tmp_path / "run"
    explore(load(CleanerAnchor), CLEANER, max_states=100, checkpoint=file)
    head, _, states = file.read_bytes().partition(b"\n")
    told = json.loads(head)
    for key in told:
        file.write_bytes(json.dumps({n: v for n, v in told.items() if n != key}).encode() + b"\n" + states)
        with pytest.raises(UserError, match="run: is no checkpoint of an exploration"):
            explore(load(CleanerAnchor), CLEANER, checkpoint=file)


@pytest.mark.parametrize(
    ("name", "levels"),
    [("five" * 300_000, 50), pytest.param("five", 75_000, marks=pytest.mark.deep)],
    ids=("name", "levels"),
)
def test_a_checkpoint_with_a_long_first_line_is_one(tmp_path: Path, name: str, levels: int) -> None:
    """The names of witnesses, and where each level begins, stand in its first line, which is as long as it must be."""
    file = tmp_path / "run"
    m = load(modules.module(WITNESS.replace("five", name).replace("1000", "90_000"), tmp_path).Counting)
    explore(m, {}, max_states=levels, checkpoint=file)
    with file.open("rb") as f:
        assert len(f.readline()) > 1 << 20
    assert explore(m, {}, max_states=levels + levels // 5, checkpoint=file).distinct > levels + 1


@pytest.mark.parametrize("at", [-1, -40, -200, 100])
def test_a_checkpoint_in_which_a_byte_has_changed_is_refused(tmp_path: Path, at: int) -> None:
    file = tmp_path / "run"
    explore(load(CleanerAnchor), CLEANER, max_states=100, checkpoint=file)
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)
    with pytest.raises(UserError, match=r"run: is (damaged|of another exploration)"):
        explore(load(CleanerAnchor), CLEANER, checkpoint=file)
    file.write_bytes(file.read_bytes() + b"more")
    with pytest.raises(UserError, match=r"run: is (damaged|of another exploration)"):
        explore(load(CleanerAnchor), CLEANER, checkpoint=file)


def test_of_two_runs_that_write_a_checkpoint_each_writes_it_whole(tmp_path: Path) -> None:
    """One run writes while the other does; what is there afterwards is one of the two."""
    file = tmp_path / "run"
    first, second = bytes([1]) * 5_000_000, bytes([2]) * 4_000_000
    begun = threading.Event()

    def other() -> None:
        begun.set()
        with checkpoint._beside(file) as out:
            out.write(second)

    thread = threading.Thread(target=other)
    with checkpoint._beside(file) as out:
        out.write(first[:1_000_000])
        thread.start()
        begun.wait()
        assert not file.exists()
        out.write(first[1_000_000:])
    assert file.read_bytes() in (first, second)
    thread.join()
    assert file.read_bytes() == second
    assert [f.name for f in tmp_path.iterdir()] == ["run"]


def test_a_checkpoint_that_is_half_written_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "run"
    explore(load(CleanerAnchor), CLEANER, max_states=100, checkpoint=file)
    before = file.read_bytes()

    def killed() -> None:
        with checkpoint._beside(file) as out:
            out.write(b"half")
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        killed()
    assert file.read_bytes() == before
    assert explore(load(CleanerAnchor), CLEANER, max_states=5_000, checkpoint=file).outcome == "limit"
    assert file.read_bytes() != before
    assert explore(load(CleanerAnchor), CLEANER, checkpoint=file).distinct == 8_792


def test_a_checkpoint_stays_until_there_is_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run"
    explore(load(CleanerAnchor), CLEANER, max_states=100, checkpoint=file)

    def fail(*_: object) -> None:
        raise RuntimeError("no trace")

    with monkeypatch.context() as patched:
        patched.setattr(Search, "trace", fail)
        with pytest.raises(RuntimeError, match="no trace"):
            explore(load(CleanerAnchor), CLEANER, checkpoint=file)
    assert file.exists()
    assert explore(load(CleanerAnchor), CLEANER, checkpoint=file).distinct == 8_792
    assert not file.exists()


def test_a_search_whose_graph_has_no_room_goes_on_with_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run"
    whole = explore(load(Lock), {"P": 2})

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(liveness, "Graph", fail)
        e = explore(load(Lock), {"P": 2}, checkpoint=file)
    assert (e.outcome, file.exists()) == ("limit", True)
    e = explore(load(Lock), {"P": 2}, checkpoint=file)
    assert (e.outcome, counts(e), e.trace, file.exists()) == (whole.outcome, counts(whole), whole.trace, False)


# ---- Ctrl-C again, while threads are at work
@pytest.fixture
def few_objects() -> Iterator[None]:
    """What is there before the test is not looked at when cycles are looked for: all modules, some seconds of them."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("few_objects")
def test_memory_stays_while_a_thread_uses_it() -> None:
    s = Search(Program(Layout(load(Counter), {"N": 3})), 2, 64)
    gone, end = weakref.ref(s), threading.Event()

    def again() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        s.team.run([end.wait, lambda: None], again)
    s.close()
    queue = s.queues[0]
    assert bytes(queue.bytes(0, 8)) == bytes(8)
    del s, queue
    gc.collect()
    assert gone() is not None, "a thread uses its memory"
    end.set()
    for _ in range(100):
        gc.collect()
        if gone() is None:
            break
        time.sleep(0.05)
    assert gone() is None, "its memory stays after the last thread has ended"


AGAIN = """
import gc
import os
import sys
import threading
from pathlib import Path
from kafkaspec.explore.engine import explore
from kafkaspec.language import load
from kafkaspec.models.examples.cleaner_anchor import CleanerAnchor

def again(done, total=None, text=""):
    raise KeyboardInterrupt

sizes = {"Partition": 7, "Thread": 2, "N": 3, "D": 1}
try:
    explore(load(CleanerAnchor), sizes, checkpoint=Path(sys.argv[1]), max_memory_mb=1500, progress=again)
except KeyboardInterrupt:
    pass
gc.collect()
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
print("alive", os.path.exists(sys.argv[1]))
"""


def test_ctrl_c_again_ends_a_run_at_once(tmp_path: Path) -> None:
    """Nothing is taken from the threads that are still at work, and what they are about is no checkpoint."""
    p = subprocess.run([sys.executable, "-c", AGAIN, str(tmp_path / "run")], capture_output=True, timeout=60)
    assert (p.returncode, p.stdout) == (0, b"alive False\n"), p.stderr


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what is long takes a millisecond."""
    told: list[float] = []

    def tell(done: float, total: float | None = None, text: str = "") -> None:
        told.append(done)

    monkeypatch.setattr(engine, "WAIT_S", 0.001)
    explore(load(CleanerAnchor), CLEANER, threads=1, progress=tell)
    assert told
