"""Leader epochs: impl against spec and models, the file through every crash, and the audit of logs at rest."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.audit.check import Log
from kafkaspec.audit.files import Kind, PartitionFiles, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.storage.leader_epochs import AUDIT, LeaderEpochCheck
from kafkaspec.contract import subsystem
from kafkaspec.contract.machine import Outside, Refused, Step
from kafkaspec.impl.common.disk import Crashed, RealDisk, SimulatedDisk, StorageError
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import BATCH, Chunk, Ending
from kafkaspec.impl.management.checkpoints import CheckpointUnreadable
from kafkaspec.impl.storage import leader_epochs as impl
from kafkaspec.impl.storage import leader_epochs_driver
from kafkaspec.impl.storage.leader_epochs import EpochEntry, LeaderEpochCheckpoint, decode, encode
from kafkaspec.lockstep.exhaustive import check_refinement
from kafkaspec.lockstep.walk import Pair, draw
from kafkaspec.models.storage.leader_epochs import MODELS
from kafkaspec.proofs.storage.leader_epochs import PROOFS
from kafkaspec.prove.proof import Proof
from kafkaspec.spec.storage import leader_epochs as spec
from kafkaspec.spec.storage.leader_epochs import Cache, Entry, machine
from tests.layers import a_row_of_verify, walked

# ---- the layers beside each other


def test_long_walks_cover_every_operation() -> None:
    covered = walked(machine, leader_epochs_driver.Driver, seeds=20, steps=150)
    assert {"assign LEC-3", "leaderEpochCheckpoint.read LEC-17", "openText LEC-3"} <= covered.refusals.keys()


@given(st.data())
def test_abstraction_is_the_whole_state(data: st.DataObject) -> None:
    driver = leader_epochs_driver.Driver()
    pair = Pair(machine, driver, {"deferred": True})
    for _ in range(20):
        op = machine.find(data.draw(st.sampled_from(sorted(machine.operations))))
        arguments = draw(machine, op, pair.state, lambda c: data.draw(st.sampled_from(c)))
        if arguments is not None:
            pair.call(op, arguments)
            assert pair.failure is None, str(pair.failure)
            assert driver.state() == pair.state


@a_row_of_verify
def test_spec_and_model_agree_in_every_state() -> None:
    for how in subsystem.find("leader_epochs").refinements:
        compared = check_refinement(machine, how)
        assert compared.problem is None, str(compared.problem)
        assert compared.states == compared.reachable


@a_row_of_verify
@pytest.mark.parametrize("checked", MODELS, ids=lambda c: f"{c.model.__name__}-{c.distinct}")
def test_models_are_explored_as_pinned(checked: Any) -> None:
    assert checked.run().why == ""


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
def test_proofs_hold_for_every_size(proof: Proof) -> None:
    proved = proof.run()
    assert proved.complete, proved.summary()


# ---- histories


def run(*calls: tuple[str, dict[str, Any]], deferred: bool = True) -> Cache:
    """The state after some calls, of the impl too."""
    state, driver = machine.start({"deferred": deferred}), leader_epochs_driver.Driver()
    driver.reset({"deferred": deferred})
    for name, arguments in calls:
        step = machine.apply(state, name, machine.find(name).parameters and arguments)
        assert not isinstance(step, Outside), step
        assert not isinstance(step.result, Refused)
        state = step.state
        driver.apply(name, arguments)
    assert driver.state() == state
    return state


def answers(question: str, cache: Cache, *asked: dict[str, Any]) -> list[Any]:
    """What spec and impl answer to a question, which must be the same."""
    driver, out = leader_epochs_driver.Driver(), []
    driver.reset({})
    for e in cache.entries:
        driver.apply("assign", {"epoch": e.epoch, "start_offset": e.start_offset})
    for arguments in asked:
        step = machine.apply(cache, question, arguments)
        assert not isinstance(step, Outside), step
        assert driver.apply(question, arguments) == step.result
        out.append(step.result)
    return out


def assign(epoch: int, start_offset: int) -> tuple[str, dict[str, Any]]:
    return "assign", {"epoch": epoch, "start_offset": start_offset}


def load(log_start: int, log_end: int) -> tuple[str, dict[str, Any]]:
    return "load", {"log_start": log_start, "log_end": log_end}


@pytest.mark.clause("LEC-4")
def test_an_entry_is_in_the_file_before_its_assignment_returns() -> None:
    once = run(assign(0, 0), assign(4, 7))
    assert once.on_disk == once.entries == ((0, 0), (4, 7))
    assert run(assign(0, 0), assign(4, 7), assign(4, 9), ("reopen", {})) == once
    disk = SimulatedDisk()
    cache = impl.LeaderEpochCache(LeaderEpochCheckpoint("logs/t-0", disk), lambda task: None)
    for epoch, start_offset in once.entries:
        cache.assign(epoch, start_offset)
        for after in disk.outcomes():
            assert LeaderEpochCheckpoint("logs/t-0", after).read() == cache.entries


@pytest.mark.clause("LEC-2")
def test_a_leader_that_wrote_nothing_gives_way_to_the_next() -> None:
    assert run(assign(0, 0), assign(1, 5), assign(2, 5)).entries == ((0, 0), (2, 5))


@pytest.mark.clause("LEC-2")
def test_a_lower_epoch_drops_the_higher_ones() -> None:
    assert run(assign(0, 0), assign(3, 5), assign(7, 9), assign(2, 20)).entries == ((0, 0), (2, 20))


THREE = (assign(2, 4), assign(5, 9), assign(8, 20))


@pytest.mark.clause("LEC-1")
def test_epochs_and_offsets_rise_whatever_is_assigned() -> None:
    for made in itertools.product(itertools.product(range(3), (0, 4, 9)), repeat=3):
        entries = run(*(assign(epoch, start) for epoch, start in made)).entries
        assert all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in itertools.pairwise(entries))


@pytest.mark.clause("LEC-3")
@pytest.mark.parametrize(("epoch", "start_offset"), [(-1, 0), (0, -1), (-1, -1)])
def test_a_negative_number_is_refused(epoch: int, start_offset: int) -> None:
    _, arguments = assign(epoch, start_offset)
    before, driver = run(*THREE), leader_epochs_driver.Driver()
    assert machine.apply(before, "assign", arguments) == Step(before, spec.NEGATIVE)
    driver.reset({})
    assert driver.apply("assign", arguments) == spec.NEGATIVE
    assert driver.state() == Cache()


@pytest.mark.clause("LEC-5")
def test_a_truncation_from_the_end_drops_what_begins_there_or_beyond() -> None:
    left = {end: len(run(*THREE, ("truncateFromEndAsyncFlush", {"end_offset": end})).entries) for end in range(-1, 22)}
    assert left == {-1: 3} | {e: 0 if e <= 4 else 1 if e <= 9 else 2 if e <= 20 else 3 for e in range(22)}


@pytest.mark.clause("LEC-6")
def test_a_truncation_from_the_start_moves_the_last_that_began_before_it() -> None:
    def left(start: int) -> Sequence[tuple[int, int]]:
        return run(*THREE, ("truncateFromStartAsyncFlush", {"start_offset": start})).entries

    assert [left(start) for start in (3, 4, 8)] == [((2, 4), (5, 9), (8, 20))] * 2 + [((2, 8), (5, 9), (8, 20))]
    assert [left(start) for start in (9, 12, 99)] == [((5, 9), (8, 20)), ((5, 12), (8, 20)), ((8, 99),)]


@pytest.mark.clause("LEC-8")
@pytest.mark.parametrize("deferred", [False, True])
def test_a_cleared_cache_has_no_entry_and_the_file_none(deferred: bool) -> None:
    cleared = run(*THREE, ("clearAndFlush", {}), deferred=deferred)
    assert cleared.entries == cleared.on_disk == ()
    assert run(*THREE, ("clearAndFlush", {}), ("reopen", {}), deferred=deferred).entries == ()


@pytest.mark.clause("LEC-11")
def test_no_record_below_an_end_offset_is_of_a_higher_epoch() -> None:
    cache, log_end, known = run(*THREE), 30, 0
    asked = [{"requested_epoch": e, "log_end_offset": log_end} for e in range(-1, 11)]
    for requested, end in zip(range(-1, 11), answers("endOffsetFor", cache, *asked), strict=True):
        if end["endOffset"] >= 0:
            known += 1
            assert end["endOffset"] <= log_end
            below = {spec.epoch_at(cache.entries, o) for o in range(end["endOffset"])} - {None}
            assert all(epoch is not None and epoch <= requested for epoch in below)
    assert known == 9


@pytest.mark.clause("LEC-14")
def test_neighbours_are_the_nearest_with_an_entry() -> None:
    asked = [{"epoch": e} for e in (1, 2, 3, 5, 8, 9)]
    known = [(None, 2), (None, 5), (2, 5), (2, 8), (5, None), (8, None)]
    assert answers("previousEpoch/nextEpoch", run(*THREE), *asked) == [{"previous": p, "next": n} for p, n in known]


@pytest.mark.clause("LEC-15")
def test_a_range_has_what_two_truncations_would_leave() -> None:
    asked = [{"start_offset": a, "end_offset": b} for a, b in ((6, 20), (-1, 9), (9, 9), (12, 99), (-1, -1))]
    known = [[[2, 6], [5, 9]], [[2, 4]], [], [[5, 12], [8, 20]], [[2, 4], [5, 9], [8, 20]]]
    assert answers("epochEntriesInRange", run(*THREE), *asked) == known


@pytest.mark.clause("LEC-10")
@pytest.mark.clause("LEC-12")
def test_end_offsets() -> None:
    cache = Cache((Entry(2, 4), Entry(5, 9), Entry(8, 20)))
    asked = [spec.end_offset_for(cache, e, 30) for e in (-1, 0, 2, 4, 5, 7, 8, 9)]
    known = [(0, 4), (2, 9), (2, 9), (5, 20), (5, 20), (8, 30)]
    assert asked == [spec.UNKNOWN, *(spec.EndOffset(*e) for e in known), spec.UNKNOWN]
    assert spec.end_offset_for(Cache(), 0, 30) == spec.UNKNOWN


@pytest.mark.clause("LEC-13")
def test_epochs_of_offsets() -> None:
    entries = (Entry(2, 4), Entry(5, 9))
    assert [spec.epoch_at(entries, o) for o in (3, 4, 8, 9, 99)] == [None, 2, 2, 5, 5]


@pytest.mark.clause("LEC-7")
@pytest.mark.clause("LEC-9")
def test_a_truncation_that_was_not_written_is_made_again() -> None:
    before = run(assign(0, 0), assign(3, 10), ("truncateFromEndAsyncFlush", {"end_offset": 8}))
    assert before.on_disk == ((0, 0), (3, 10))
    step = machine.apply(before, "load", {"log_start": 0, "log_end": 8})
    assert not isinstance(step, Outside)
    assert step.state.entries == before.entries == ((0, 0),)
    run(assign(0, 0), assign(3, 10), ("truncateFromEndAsyncFlush", {"end_offset": 8}), load(0, 8))


@pytest.mark.clause("LEC-9")
def test_a_load_brings_the_entries_of_the_file_within_the_log() -> None:
    """In the order of its lines, and nothing is written."""
    of_file = ("openText", {"file": "0\n4\n1 3\n2 10\n7 20\n5 15\n"})
    read = ((1, 3), (2, 10), (5, 15))
    for log_start, log_end, left in (
        (0, 20, read),
        (3, 16, read),
        (4, 16, ((1, 4), *read[1:])),
        (9, 15, ((1, 9), (2, 10))),
        (10, 15, ((2, 10),)),
        (12, 15, ((2, 12),)),
        (0, 3, ()),
        (30, 30, ((5, 30),)),
    ):
        after = run(of_file, load(log_start, log_end))
        assert after.entries == left
        assert after.file == of_file[1]["file"]


@pytest.mark.clause("LEC-9")
def test_what_was_cut_away_comes_back_over_later_batches() -> None:
    """The exception that the clause names: what follows the cut is of the epoch that is then the latest."""
    before = run(assign(0, 0), assign(3, 10), ("truncateFromEndAsyncFlush", {"end_offset": 8}), assign(0, 8))
    step = machine.apply(before, "load", {"log_start": 0, "log_end": 12})
    assert not isinstance(step, Outside)
    assert (before.entries, step.state.entries) == (((0, 0),), ((0, 0), (3, 10)))
    run(assign(0, 0), assign(3, 10), ("truncateFromEndAsyncFlush", {"end_offset": 8}), assign(0, 8), load(0, 12))


# ---- the file, through every crash


@pytest.mark.clause("LEC-18")
def test_a_crash_leaves_the_old_file_or_the_new_one() -> None:
    old, new = [EpochEntry(0, 0)], [EpochEntry(0, 0), EpochEntry(4, 7)]
    seen = set()
    for crash_at in range(20):
        disk = SimulatedDisk()
        file = LeaderEpochCheckpoint("logs/t-0", disk)
        file.write(old)
        disk.crash_at = disk.steps + crash_at
        returned = False
        try:
            file.write(new)
            returned = True
        except Crashed:
            pass
        for after in disk.outcomes():
            read = LeaderEpochCheckpoint("logs/t-0", after).read()
            assert read == new if returned else read in (old, new)
            seen.add(len(read))
        if returned:
            break
    assert seen == {1, 2}


def test_a_real_directory(tmp_path: Path) -> None:
    file = LeaderEpochCheckpoint(str(tmp_path), RealDisk())
    assert file.read() == []
    file.write([EpochEntry(0, 0), EpochEntry(4, 7)])
    assert (tmp_path / impl.FILE_NAME).read_bytes() == b"0\n2\n0 0\n4 7\n"
    assert [p.name for p in tmp_path.iterdir()] == [impl.FILE_NAME]
    (tmp_path / impl.FILE_NAME).write_bytes(b"0\n1\nx\n")
    with pytest.raises(StorageError, match="line 3: malformed line: 'x'"):
        file.read()


def bad() -> Iterator[tuple[bytes, int]]:
    yield b"1\n0\n", 1
    yield b"x\n", 1
    yield b"0\nx\n", 2
    yield b"0\n-1\n", 2
    yield b"0\n2\n0 0\n", 2
    yield b"0\n2\n0 0\n1\n", 4
    yield b"0\n1\n0 0 0\n", 3
    yield b"0\n1\nx 0\n", 3
    yield b"0\n1\n\xff 0\n", 3
    yield b"0\n1\n0 9223372036854775808\n", 3


@pytest.mark.parametrize(("data", "line"), list(bad()))
@pytest.mark.clause("LEC-17")
def test_what_is_unreadable_is_named_by_its_line(data: bytes, line: int) -> None:
    with pytest.raises(CheckpointUnreadable) as e:
        decode(data)
    assert e.value.line == line
    assert spec.checkpoint_read(data.decode("latin-1")) == spec.UNREADABLE


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))))
@pytest.mark.clause("LEC-16")
def test_what_is_written_is_read_back(entries: list[tuple[int, int]]) -> None:
    written = [EpochEntry(*e) for e in entries]
    assert decode(encode(written)) == written
    assert encode(written).decode() == spec.text_of([Entry(*e) for e in entries])


# ---- the audit

BATCHES = [(0, 4, 0), (5, 9, 0), (10, 14, 3), (15, 19, 3), (20, 24, 3), (25, 29, 7), (30, 34, 7)]
"""base offset, last offset, epoch; each 100 bytes long"""


def audited(
    tmp_path: Path,
    text: str | None = "0\n3\n0 0\n3 10\n7 25\n",
    batches: Sequence[tuple[int, ...]] = BATCHES,
    *,
    clean: bool | None = True,
    log_start: int | None = None,
    end: int | None = None,
    chunk: int = 3,
    problems: Sequence[int] = (),
    topic: str = "t",
    others: Sequence[str] = (),
) -> list[Finding]:
    file = None
    if text is not None:
        (tmp_path / "leader-epoch-checkpoint").write_text(text)
        file = File(tmp_path / "leader-epoch-checkpoint", len(text))
    segment = Segment(0, File(tmp_path / "0.log", 100 * len(batches)))
    files = PartitionFiles(
        tmp_path,
        topic,
        0,
        segments=(segment,),
        leader_epoch_checkpoint=file,
        metadata=File(tmp_path / "partition.metadata", 1),
        others=tuple(File(tmp_path / n, 0) for n in others),
    )
    check = LeaderEpochCheck(Log(files, clean=clean, log_start=log_start))
    rows = np.zeros(len(batches), BATCH)
    rows["magic"] = 2
    for i, b in enumerate(batches):
        rows[i]["position"], rows[i]["base_offset"], rows[i]["last_offset"], rows[i]["leader_epoch"] = 100 * i, *b[:3]
        rows[i]["magic"] = b[3] if len(b) > 3 else 2
        rows[i]["problem"] = int(i in problems)
    found = list(check.begin(segment))
    for i in range(0, len(rows), chunk):
        found += check.chunk(segment, Chunk(rows[i : i + chunk]))
    last = batches[-1][1] + 1 if batches else None
    found += check.ended(segment, Ending(100 * len(rows), 100 * len(rows), "", last if end is None else end))
    return found + list(check.end())


def one(found: list[Finding]) -> tuple[Severity, str, str, int | None, int | None, int | None]:
    (f,) = found
    assert f.expected
    assert f.recovery
    return f.severity, f.clause, Path(f.file).name, f.line, f.position, f.offset


E, LEFT = Severity.ERROR, Severity.LEFTOVER
FILE = "leader-epoch-checkpoint"


def sound() -> Iterator[dict[str, Any]]:
    yield {}
    yield {"text": "0\n3\n0 5\n3 10\n7 25\n", "log_start": 5}
    yield {"text": "0\n2\n3 12\n7 25\n", "log_start": 12}
    yield {"text": "0\n4\n0 0\n2 8\n3 10\n7 25\n", "batches": [b for b in BATCHES if b[0] != 5]}  # 5..9 are compacted
    yield {"text": "0\n4\n0 0\n3 10\n7 25\n9 35\n"}  # a leader that wrote nothing yet
    yield {"text": "0\n2\n3 10\n7 25\n", "batches": [(0, 4, -1, 0), (5, 9, -1, 1), *BATCHES[2:]]}
    yield {"text": "0\n2\n3 10\n7 25\n", "batches": [(0, 4, -1), (5, 9, -1), *BATCHES[2:]]}
    yield {"text": "0\n1\n7 25\n", "batches": [*BATCHES[:4], (20, 24, -1, 1), *BATCHES[5:]]}
    yield {"text": "", "batches": []}
    yield {"text": "0\n0\n", "batches": []}
    yield {"text": None, "batches": []}
    yield {"text": "0\n2\n3 12\n7 25\n", "topic": "__cluster_metadata", "others": [f"{12:020}-{3:010}.checkpoint"]}


@pytest.mark.parametrize("how", list(sound()))
@pytest.mark.parametrize("chunk", [1, 2, 100])
@pytest.mark.clause("LEC-20")
def test_sound_logs(tmp_path: Path, how: dict[str, Any], chunk: int) -> None:
    assert audited(tmp_path, **how, chunk=chunk) == []


def changed(*changes: tuple[int, int, int]) -> list[tuple[int, ...]]:
    out = [list(b) for b in BATCHES]
    for i, column, value in changes:
        out[i][column] = value
    return [tuple(b) for b in out]


def damaged() -> Iterator[tuple[dict[str, Any], tuple[Any, ...]]]:
    yield {"text": "1\n3\n0 0\n3 10\n7 25\n"}, (E, "LEC-17", FILE, 1, None, None)
    yield {"text": "0\n4\n0 0\n3 10\n7 25\n"}, (E, "LEC-17", FILE, 2, None, None)
    yield {"text": "0\n3\n0 0\n3 1o\n7 25\n"}, (E, "LEC-17", FILE, 4, None, None)
    yield {"text": "0\n3\n0 0\n3 -10\n7 25\n"}, (E, "LEC-3", FILE, 4, None, None)
    yield {"text": "0\n3\n0 0\n7 25\n3 10\n"}, (E, "LEC-1", FILE, 5, None, None)
    yield {"text": "0\n3\n0 0\n3 10\n3 25\n"}, (E, "LEC-1", FILE, 5, None, None)
    yield {"text": "0\n3\n0 0\n3 15\n7 25\n", "batches": BATCHES}, (E, "LEC-20", "0.log", None, 200, 10)
    yield {"text": "0\n3\n0 0\n3 20\n7 25\n"}, (E, "LEC-20", FILE, 4, None, 10)
    yield {"text": "0\n3\n0 0\n3 5\n7 25\n"}, (E, "LEC-20", "0.log", None, 100, 5)
    yield {"text": "0\n3\n0 0\n3 10\n7 15\n"}, (E, "LEC-20", FILE, 5, None, 15)
    yield {"text": "0\n3\n0 0\n3 12\n7 25\n"}, (E, "LEC-20", "0.log", None, 200, 10)
    yield {"text": "0\n2\n0 0\n7 25\n"}, (E, "LEC-20", FILE, 4, None, 10)
    yield {"text": "0\n2\n0 0\n3 10\n"}, (E, "LEC-20", FILE, 5, None, 25)
    yield {"text": "0\n2\n3 10\n7 25\n"}, (E, "LEC-20", FILE, 3, None, 0)
    yield {"text": "0\n3\n0 5\n3 10\n7 25\n"}, (E, "LEC-20", FILE, 3, None, 0)
    yield {"text": ""}, (E, "LEC-20", FILE, None, None, 0)
    yield {"text": None}, (E, "LEC-20", None, None, None, 0)
    yield {"text": "0\n4\n0 0\n3 10\n5 18\n7 25\n"}, (E, "LEC-20", FILE, 5, None, 15)
    yield {"text": "0\n4\n0 0\n3 10\n5 20\n7 25\n"}, (E, "LEC-20", FILE, 5, None, 20)
    yield {"batches": changed((3, 2, 0))}, (E, "LEC-19", "0.log", None, 300, 15)
    yield {"batches": changed((3, 2, 9))}, (E, "LEC-19", "0.log", None, 300, 15)
    yield {"batches": changed((0, 2, 1))}, (E, "LEC-19", "0.log", None, 0, 0)
    yield {"batches": changed((6, 2, 8))}, (E, "LEC-20", "0.log", None, 600, 30)
    yield {"batches": changed((4, 2, 4))}, (E, "LEC-20", "0.log", None, 400, 20)
    yield {"batches": changed((4, 2, 7))}, (E, "LEC-20", "0.log", None, 400, 20)
    yield {"batches": changed((5, 2, 3))}, (E, "LEC-20", "0.log", None, 500, 25)
    yield {"batches": changed((5, 2, -5))}, (E, "LEC-19", "0.log", None, 500, 25)
    yield {"text": "0\n4\n0 0\n3 10\n7 25\n9 36\n"}, (LEFT, "LEC-21", FILE, 6, None, 35)
    yield {"log_start": 7}, (LEFT, "LEC-21", FILE, 3, None, 7)
    yield {"text": "0\n3\n0 5\n3 10\n7 25\n", "clean": False}, (LEFT, "LEC-21", FILE, 3, None, 0)


@pytest.mark.parametrize(("how", "expected"), list(damaged()))
@pytest.mark.parametrize("chunk", [1, 3, 100])
@pytest.mark.clause("LEC-19")
@pytest.mark.clause("LEC-20")
@pytest.mark.clause("LEC-21")
def test_damage_is_found_once_and_where_it_is(
    tmp_path: Path, how: dict[str, Any], expected: tuple[Any, ...], chunk: int
) -> None:
    got = one(audited(tmp_path, **how, chunk=chunk))
    assert got == tuple(tmp_path.name if e is None and i == 2 else e for i, e in enumerate(expected))


@pytest.mark.clause("LEC-21")
def test_an_entry_that_came_back_over_later_batches_is_no_damage(tmp_path: Path) -> None:
    for start in (18, 20):
        (f,) = audited(tmp_path, f"0\n4\n0 0\n3 10\n5 {start}\n7 25\n", clean=False)
        assert (f.severity, f.line) == (Severity.WARNING, 5)


@pytest.mark.clause("LEC-19")
def test_a_damaged_batch_is_no_evidence(tmp_path: Path) -> None:
    for i in range(len(BATCHES)):
        assert audited(tmp_path, batches=changed((i, 2, 99)), problems=[i]) == []
        assert audited(tmp_path, batches=changed((i, 0, 1 << 40), (i, 1, (1 << 40) + 4))) == [], i


@pytest.mark.clause("LEC-4")
def test_an_epoch_that_begins_while_the_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n1\n0 0\n")
    segment = Segment(0, File(tmp_path / "0.log", 0))
    files = PartitionFiles(tmp_path, "t", 0, segments=(segment,), leader_epoch_checkpoint=File(path, 8))
    check = LeaderEpochCheck(Log(files, clean=False))
    rows = np.zeros(len(BATCHES), BATCH)
    rows["magic"] = 2
    for row, (base, last, epoch) in zip(rows, BATCHES, strict=True):
        row["base_offset"], row["last_offset"], row["leader_epoch"] = base, last, epoch
    check.chunk(segment, Chunk(rows))
    path.write_text("0\n3\n0 0\n3 10\n7 25\n")
    check.ended(segment, Ending(0, 0, "", 35))
    assert list(check.end()) == []


def test_segments_alone_are_not_asked_for_a_file(tmp_path: Path) -> None:
    segment = Segment(0, File(tmp_path / "0.log", 0))
    identity = File(tmp_path / "partition.metadata", 1)
    for files in (
        PartitionFiles(tmp_path, "t", 0, segments=(segment,)),
        PartitionFiles(tmp_path, "t", 0, segments=(segment,), metadata=identity, only=frozenset({"0.log"})),
    ):
        check = LeaderEpochCheck(Log(files))
        rows = np.zeros(1, BATCH)
        rows["magic"], rows["leader_epoch"] = 2, 3
        check.chunk(segment, Chunk(rows))
        assert list(check.end()) == []
    assert (LeaderEpochCheck,) == AUDIT
    assert not LeaderEpochCheck.applies(Log(PartitionFiles(tmp_path, "t", 0, Kind.DELETED)))
