"""The packed form of large runs, forced upon small ones: it finds what the fast form finds, in every way of lying in
memory, and a fault in its table turns these comparisons red."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.explore import engine, kernels
from kafkaspec.explore.engine import Exploration, Search, explore
from kafkaspec.explore.layout import Layout
from kafkaspec.explore.memory import resident_mb
from kafkaspec.explore.packing import Form, Packing, used_bits
from kafkaspec.explore.program import Program
from kafkaspec.language import Model, load
from kafkaspec.models.examples.cleaner_anchor import CleanerAnchor
from kafkaspec.models.examples.replication_anchor import Replication
from kafkaspec.models.examples.two_phase import TwoPhase
from tests.explore.test_liveness import Idle, Lock, Strong, StrongForAnybody, Unfinished
from tests.explore.test_symmetry import Tangle
from tests.export.everything import Everything
from tests.modules import imported, module

PACKED = Form(fast_mb=0)
REFERENCES = Form(fast_mb=0, references=True)
CROWDED = Form(fast_mb=0, most_away=0)
CROWDED_REFERENCES = Form(fast_mb=0, references=True, most_away=0)
FORMS = (PACKED, REFERENCES, CROWDED, CROWDED_REFERENCES)
CLEANER: dict[str, int | bool] = {"Partition": 3, "Thread": 2, "N": 3, "D": 1}
LARGER: dict[str, int | bool] = {**CLEANER, "Partition": 4}
GRID: type[Model] = imported(Path(__file__).parents[2] / "bench" / "counters.py", "counters").Counters4
"""(N + 1)^4 states, in fields as wide as one likes."""
UNFENCED: dict[str, int | bool] = {"Replica": 3, "L": 2, "E": 2, "FENCED": False}


def small_steps(model: type[Model], sizes: dict[str, int | bool], exact: int = 4, **options: Any) -> Program:
    """A program that takes few states at a time, so that its packed table begins small and grows often. Eight lanes,
    also where the machine's vectors hold one state: planted faults are in the code for eight."""
    lanes = options.pop("lanes", 8)
    program = Program(Layout(load(model), sizes, **options), exact_words=exact, lanes=lanes)
    program.chunk = program.width
    return program


def run(program: Program, form: Form, **options: Any) -> Exploration:
    lay = program.layout
    return explore(lay.model, lay.sizes, program=program, form=form, deadlock=True, **options)


KEPT: dict[object, Exploration] = {}


def plain(model: type[Model], sizes: dict[str, int | bool], threads: int = 2) -> Exploration:
    """In the fast form; once for all tests that ask."""
    key = (model.__name__, *sizes.items(), threads)
    if key not in KEPT:
        KEPT[key] = explore(load(model), sizes, threads=threads, deadlock=True)
    return KEPT[key]


def found(e: Exploration) -> tuple[object, ...]:
    """What may not depend on the form."""
    return e.distinct, e.generated, e.depth, e.states_per_level, e.taken, e.witnesses, e.trace, e.outcome


# ---- the same answers
LAYOUTS = [(63, 4), (14, 4), (5, 5), (63, 0), (14, 1)]
WAYS: list[tuple[Form, int, int, int | None, int]] = [(form, *lay, None, 2) for form in FORMS for lay in LAYOUTS]
WAYS += [(form, *lay, 1, threads) for form in FORMS[:2] for lay, threads in zip(LAYOUTS, (1, 3, 1, 3, 1), strict=True)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("form", "usable", "exact", "lanes", "threads"), WAYS)
def test_every_form_finds_the_same(form: Form, usable: int, exact: int, lanes: int | None, threads: int) -> None:
    fast = plain(CleanerAnchor, CLEANER)
    e = run(small_steps(CleanerAnchor, CLEANER, exact, usable=usable, lanes=lanes), form, threads=threads)
    assert (fast.packed, e.packed) == (False, True)
    assert found(e) == found(fast)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("form", [PACKED, CROWDED], ids=("packed", "crowded"))
@pytest.mark.parametrize("width", [4, 5, 8, 10, 15, 16, 19, 25, 30, 31, 32, 45])
def test_counts_of_states_of_any_width(width: int, form: Form) -> None:
    """Below, at and above the widths at which a state begins another word, or an entry becomes a reference."""
    n = 14
    program = small_steps(GRID, {"N": n, "WIDE": (1 << width) - 1})
    e = run(program, form)
    assert (e.packed, e.distinct, e.generated, e.depth) == (True, 15**4, 1 + 4 * n * 15**3, 4 * n + 1)
    packing = Packing(program, 12, 2, form)
    assert (packing.bits, packing.state_bytes) == (4 * width, -(-4 * width // 8))
    assert packing.references == (4 * width > 64 + 12 - 6)


@pytest.mark.parametrize(
    "usable", [14, pytest.param(30, marks=pytest.mark.deep), pytest.param(63, marks=pytest.mark.deep)]
)
def test_states_are_kept_whole(usable: int) -> None:
    """A queue's states, one by one, are those of the fast form, in the same order."""
    kept = []
    for form in (Form(), PACKED):
        program = small_steps(Everything, {"Node": 2, "L": 2, "E": 1, "STRICT": True}, 9, usable=usable)
        s = Search(program, 1, int(resident_mb()) + 4_000, form=form)
        try:
            engine._run(s, False, True, None, None)
            assert (s.packing is not None) == (form is PACKED)
            kept.append([s.state_at(0, i) for i in range(s.distinct)])
        finally:
            s.close()
    assert kept[0] == kept[1]
    assert sum(used_bits(program)) == program.layout.bits
    assert len(set(kept[0])) == len(kept[0]) > 100


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", [PACKED, REFERENCES], ids=("packed", "references"))
def test_what_is_wrong_is_found_by_the_same_run(form: Form) -> None:
    fast, packed = (run(small_steps(Replication, UNFENCED), f) for f in (Form(), form))
    assert packed.packed
    assert (packed.outcome, packed.trace) == ("violation", fast.trace)
    assert packed.trace is not None
    assert len(packed.trace.steps) == 12
    sizes: dict[str, int | bool] = {"A": 2, "B": 2}
    for symmetry in ((), ("A",), ("A", "B")):
        program = Program(Layout(load(Tangle), sizes), symmetry)
        program.chunk = program.width
        e = run(program, form, symmetry=symmetry)
        assert found(e) == found(explore(load(Tangle), sizes, symmetry=symmetry, deadlock=True))


def test_orbits_are_counted_alike() -> None:
    for symmetry in ((), ("Partition",), ("Partition", "Thread")):
        fast = explore(load(CleanerAnchor), CLEANER, symmetry=symmetry, deadlock=True)
        packed = explore(load(CleanerAnchor), CLEANER, symmetry=symmetry, deadlock=True, form=PACKED)
        assert packed.packed
        assert found(packed) == found(fast)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", [PACKED, CROWDED_REFERENCES], ids=("packed", "crowded references"))
@pytest.mark.parametrize(
    ("model", "sizes"),
    [(Lock, {"P": 2}), (Strong, {"P": 3}), (StrongForAnybody, {"P": 2}), (Unfinished, {"N": 3}), (Idle, {"N": 3}),
     (TwoPhase, {"Manager": 4})],
)  # fmt: skip
def test_leads_to_claims_are_judged_alike(model: type[Model], sizes: dict[str, int | bool], form: Form) -> None:
    packed = run(small_steps(model, sizes), form, threads=1)
    assert packed.packed
    assert found(packed) == found(plain(model, sizes, threads=1))


# ---- limits and resuming
SMALL: tuple[dict[str, int | bool], tuple[int | None, ...]] = (CLEANER, (2_000, 6_000, None))
LARGE: tuple[dict[str, int | bool], tuple[int | None, ...]] = (LARGER, (60_000, 100_000, None))


@pytest.mark.parametrize("at", [SMALL, pytest.param(LARGE, marks=pytest.mark.deep)], ids=("small", "large"))
@pytest.mark.parametrize(
    ("forms", "threads"),
    [
        ((Form(), PACKED, Form()), 1),
        ((PACKED,) * 3, 2),
        pytest.param((Form(), PACKED, Form()), 2, marks=pytest.mark.deep),
        pytest.param((PACKED,) * 3, 1, marks=pytest.mark.deep),
        pytest.param((REFERENCES, Form(), CROWDED), 1, marks=pytest.mark.deep),
        pytest.param((REFERENCES, Form(), CROWDED), 2, marks=pytest.mark.deep),
    ],
)
def test_a_run_goes_on_in_either_form(
    tmp_path: Path, forms: tuple[Form, ...], threads: int, at: tuple[dict[str, int | bool], tuple[int | None, ...]]
) -> None:
    file = tmp_path / "run"
    sizes, limits = at
    whole = plain(CleanerAnchor, sizes)
    packed = False
    for form, most in zip(forms, limits, strict=True):
        e = run(small_steps(CleanerAnchor, sizes), form, threads=threads, max_states=most, checkpoint=file)
        packed = packed or form.fast_mb == 0
        assert (e.outcome, e.packed) == ("limit" if most else "complete", packed)
    assert found(e) == found(whole)


@pytest.mark.parametrize("form", [PACKED, REFERENCES], ids=("packed", "references"))
def test_memory_that_is_full_is_a_limit(tmp_path: Path, form: Form) -> None:
    """The budget is kept, what was covered is said exactly, and with more memory the run goes on from there."""
    file = tmp_path / "run"
    n = 34
    sizes: dict[str, int | bool] = {"N": n, "WIDE": (1 << 15) - 1}
    program = small_steps(GRID, sizes)
    s = Search(program, 2, 1_000, form=form)
    s.budget_mb = s.base_mb + 14
    try:
        e, resumable = engine._run(s, False, True, None, file)
        assert s.packing is not None
        spare_mb = s.budget_mb - s.used_mb()
        waiting = e.distinct - sum(s.level.lo) - s.level.cursor * program.chunk
    finally:
        s.close()
    assert (e.outcome, e.packed, resumable) == ("limit", True, True)
    assert "memory: " in e.limit
    assert -0.001 < spare_mb < 3  # what it says of its end takes some bytes
    assert 100_000 < e.distinct < (n + 1) ** 4
    done = e.depth - 1
    assert sum(s.level.hi) == sum(1 for x in itertools.product(range(n + 1), repeat=4) if sum(x) <= done)
    assert f"every state that {done} steps can reach was visited" in e.limit
    assert e.limit.endswith(f"{e.distinct:,} states were found, {waiting:,} of them wait to be expanded")
    again = run(small_steps(GRID, sizes), Form(), checkpoint=file)
    assert again.states_per_level[:done] == e.states_per_level[:done]
    assert (again.outcome, again.distinct, again.generated) == ("complete", (n + 1) ** 4, 1 + 4 * n * (n + 1) ** 3)


def test_references_have_an_end_that_is_said() -> None:
    program = small_steps(GRID, {"N": 14, "WIDE": 31})
    s = Search(program, 2, int(resident_mb()) + 4_000, form=REFERENCES)
    try:
        s.begin()
        assert s.pack()
        assert s.packing is not None
        assert s.capacity <= s.packing.most_states == 1 << 31
        s.capacity = 1_000
        e_limit = s.expand(None)
    finally:
        s.close()
    assert e_limit == "" or e_limit == "states: 4,294,967,296, the most that a table can refer to"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("width", [7, 8, 9, 12, 15, 16, 18, 19, 20, 25, 31])
def test_a_large_table_keeps_its_promise(width: int) -> None:
    """At every size from 100 million states on, right after the table has grown, when it is emptiest."""
    packing = Packing(Program(Layout(load(GRID), {"N": 1, "WIDE": (1 << width) - 1})), 21, 2, PACKED)
    buckets = packing.wanted(100_000_000)
    while buckets < 1 << 28:
        states, buckets = packing.allowed(buckets), packing.grown(buckets)
        assert buckets * 64 + states * packing.state_bytes <= states * (2 * packing.bits / 8 + 4)
        assert packing.allowed(buckets) > states * 1.19


@pytest.mark.parametrize("width", [4, 7, 12, 15, 19, 31])
def test_a_table_that_fits_has_room_for_its_states_too(width: int) -> None:
    packing = Packing(Program(Layout(load(GRID), {"N": 1, "WIDE": (1 << width) - 1})), 12, 2, PACKED)
    for size in (1 << 20, 14 << 20, 1 << 30):
        buckets = packing.fit(size)
        assert 0.99 * size < buckets * 64 + packing.allowed(buckets) * packing.state_bytes <= size


def test_small_runs_stay_fast() -> None:
    assert not plain(CleanerAnchor, LARGER).packed
    assert explore(load(CleanerAnchor), LARGER, form=Form(fast_mb=1)).packed


# ---- faults
def planted(tmp_path: Path, f: Callable[..., object], old: str, new: str) -> Callable[..., object]:
    """A kernel with a part of its text exchanged."""
    text = inspect.getsource(f)
    assert old in text
    return getattr(module(text.replace(old, new), tmp_path, "planted"), f.__name__)  # type: ignore[no-any-return]


FAULTS: list[tuple[str, Form, str, str]] = [
    ("claim_entry", PACKED, "entry == wanted | away", "entry == wanted"),
    ("claim_entry", PACKED, "entry = wanted | away", "entry = wanted"),
    ("claim_entry", PACKED, "store_shared32(bucket, 0, taken + 1)", "store_shared32(bucket, 0, taken)"),
    ("claim_entry", PACKED, "range(ENTRY_BYTES)", "range(ENTRY_BYTES - 2)"),
    ("claim_entry", REFERENCES, "(wanted << 32) | reference", "(wanted << 32) | (reference & 255)"),
    ("refers", REFERENCES, "& LAST_MASK", "& 255"),
    ("refers", REFERENCES, "% THREADS", "% 1"),
    (
        "refers",
        REFERENCES,
        "return (load_bytes(queue, at + 8 * k) & LAST_MASK) == load(buffer, k * STRIDE + j)",
        "return 1",
    ),
    ("insert", CROWDED, "store(own, PENDING_COUNT, waiting + 1)", "store(own, PENDING_COUNT, 1)"),
    ("insert", CROWDED, "count += 1", "count += 0"),
    ("states_at", PACKED, "lane * STATE_BYTES + 8 * k", "8 * k"),
    ("put", PACKED, "i * STATE_BYTES + 8 * k", "i * STATE_BYTES + 4 * k - (i & 1)"),
    ("gather", PACKED, "& LAST_MASK", "& 0xFFFFFF"),
    (
        "insert_pending",
        CROWDED,
        "store(own, COUNT, insert(shared, own, buffer, n, load(own, COUNT)))",
        "insert(shared, own, buffer, n, load(own, COUNT))",
    ),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "form", "old", "new"), FAULTS, ids=[f"{f[0]} {f[3]}" for f in FAULTS])
def test_a_planted_fault_changes_the_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, form: Form, old: str, new: str
) -> None:
    fault = planted(tmp_path, getattr(kernels, name), old, new)
    for loops in ("COMMON", "PACKED"):
        monkeypatch.setattr(kernels, loops, [fault if f.__name__ == name else f for f in getattr(kernels, loops)])
    program = small_steps(GRID, {"N": 14, "WIDE": (1 << 15) - 1})
    try:
        threads = 1 if form is CROWDED else 2  # which states find no place hangs on who comes first
        e = run(program, form, threads=threads, max_states=60_000, max_memory_mb=int(resident_mb()) + 200)
    except RuntimeError:  # the same state again and again, until nothing has room near its home
        return
    assert (e.distinct, e.generated) != (15**4, 1 + 4 * 14 * 15**3)
