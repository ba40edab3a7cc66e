"""Loading a log: impl against spec, Kafka's own loads, every crash of a replacement and of a load, and the audit."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from kafkaspec.audit.check import Directory, Log, TopicConfig
from kafkaspec.audit.files import Kind, LogDirectory, PartitionFiles, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.storage import log_loader as audit
from kafkaspec.contract import subsystem
from kafkaspec.contract.codec import encode
from kafkaspec.contract.history import Record
from kafkaspec.contract.machine import Outside
from kafkaspec.errors import UserError
from kafkaspec.impl.common.disk import Crashed, SimulatedDisk
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import BATCH, Chunk, Ending
from kafkaspec.impl.storage import log_loader as impl
from kafkaspec.impl.storage import log_loader_driver
from kafkaspec.impl.storage.segment import Segment as FileSegment
from kafkaspec.judge.campaign import replay
from kafkaspec.judge.check import check
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.judge.result import Job
from kafkaspec.lockstep.shrink import shrunk
from kafkaspec.lockstep.walk import tried_beside
from kafkaspec.models.storage.log_loader import MODELS
from kafkaspec.mutants.audit import log_file, one_record
from kafkaspec.proofs.storage.log_loader import PROOFS
from kafkaspec.prove.proof import Proof
from kafkaspec.spec.storage import log_loader as spec
from kafkaspec.spec.storage import log_loader_released, log_loader_trial
from kafkaspec.spec.storage.log_loader import CLEANED, EPOCHS, INDEX, LOG, SNAPSHOT, SWAP, TIME_INDEX, name_of
from tests.kafka import command, run_class
from tests.layers import a_row_of_verify, walked

machine = spec.machine

# ---- the layers beside each other


def test_long_walks_cover_every_operation() -> None:
    walked(machine, log_loader_driver.Driver, seeds=30, steps=40)


@a_row_of_verify
@pytest.mark.parametrize("recording", subsystem.find("log_loader").recordings, ids=lambda r: r.file)
def test_kafka_loads_as_the_spec_does(recording: Any) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


@pytest.mark.clause("LDR-8")
@pytest.mark.clause("LDR-12")
def test_impl_loads_as_kafka_does() -> None:
    driver, loads = log_loader_driver.Driver(), 0
    with subsystem.find("log_loader").recordings[0].path.open() as lines:
        for line in map(json.loads, lines):
            if line["op"] == "init":
                driver.reset(line["args"])
                continue
            a = line["args"]
            assert encode(driver.load(a["clean"], a["recoveryPoint"], a["logStart"])) == line["result"]
            assert driver.observe() == line["state"]
            loads += 1
    assert loads > 150


@a_row_of_verify
@pytest.mark.parametrize("checked", MODELS, ids=lambda c: f"{c.model.__name__}-{c.distinct}")
def test_models_are_explored_as_pinned(checked: Any) -> None:
    assert checked.run().why == ""


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
def test_proofs_hold_for_every_size(proof: Proof) -> None:
    proved = proof.run()
    assert proved.complete, proved.summary()


# ---- loads


def segment(base: int, *lengths: int, bad: int = -1, epoch: int = 0, suffix: str = "") -> dict[str, Any]:
    """The files of a segment."""
    batches, at = [], base
    for n, length in enumerate(lengths):
        batches.append([at, at + length - 1, epoch, n != bad])
        at += length
    log = {"batches": batches, "torn": False}
    return {name_of(base, LOG, suffix): log, name_of(base, INDEX, suffix): "", name_of(base, TIME_INDEX, suffix): ""}


def load(files: dict[str, Any], clean: bool = False, point: int = 0, start: int = 0) -> tuple[set[str], Any]:
    """The names of the files after a load, but for snapshots, indexes and epochs; and what it answers."""
    step = machine.apply(spec.initial(files), "load", {"clean": clean, "recovery_point": point, "log_start": start})
    assert not isinstance(step, Outside), step
    driver = log_loader_driver.Driver()
    driver.reset({"files": files})
    assert encode(driver.load(clean, point, start)) == step.result
    assert driver.state() == step.state
    return {n for n in step.state.files if n.endswith(LOG)}, step.result


def logs(*bases: int) -> set[str]:
    return {name_of(b, LOG) for b in bases}


@pytest.mark.clause("LDR-1")
def test_what_was_deleted_or_not_finished_goes() -> None:
    files = {**segment(0, 5), **segment(5, 5, suffix=".deleted"), **segment(0, 2, suffix=CLEANED)}
    assert load(files) == (logs(0), {"logStart": 0, "recoveryPoint": 0, "logEnd": 5})


@pytest.mark.clause("LDR-2")
@pytest.mark.clause("LDR-3")
@pytest.mark.clause("LDR-4")
def test_a_swap_is_completed_or_dropped() -> None:
    old = {**segment(0, 5), **segment(5, 5), **segment(10, 5)}
    new = segment(0, 1, 9, suffix=SWAP)
    assert load({**old, **new})[0] == logs(0, 10)
    unfinished = {name_of(0, INDEX, CLEANED) if n.endswith(INDEX + SWAP) else n: c for n, c in new.items()}
    assert load({**old, **unfinished})[0] == logs(0, 5, 10)


@pytest.mark.clause("LDR-5")
def test_an_index_without_its_segment_is_removed() -> None:
    alone = {name_of(5, INDEX), name_of(7, TIME_INDEX)}
    files = {**segment(0, 5), **dict.fromkeys(alone, "")}
    for clean in (False, True):
        assert load(files, clean=clean)[0] == logs(0)
        step = machine.apply(spec.initial(files), "load", {"clean": clean, "recovery_point": 0, "log_start": 0})
        assert not isinstance(step, Outside)
        assert not alone & step.state.files.keys()


@pytest.mark.clause("LDR-6")
def test_a_segment_without_an_index_is_cut_alone() -> None:
    files = {**segment(0, 2, 3, bad=1), **segment(5, 5)}
    assert load(files, clean=True)[1]["logEnd"] == 10
    del files[name_of(0, INDEX)]
    state = machine.apply(spec.initial(files), "load", {"clean": True, "recovery_point": 10, "log_start": 0})
    assert not isinstance(state, Outside)
    assert state.state.files[name_of(0, LOG)] == spec.LogFile((spec.Batch(0, 1),))
    assert load(files, clean=True)[0] == logs(0, 5)


@pytest.mark.clause("LDR-7")
def test_recovery_reads_the_whole_segment_that_holds_the_recovery_point() -> None:
    files = {**segment(0, 5), **segment(5, 2, 3, 5, bad=0), **segment(15, 5)}
    assert load(files, point=12) == (logs(0, 5), {"logStart": 0, "recoveryPoint": 5, "logEnd": 5})
    assert load(files, point=15)[1]["logEnd"] == 20
    assert load(files, clean=True)[1]["logEnd"] == 20


@pytest.mark.clause("LDR-9")
@pytest.mark.clause("LDR-10")
@pytest.mark.clause("LDR-11")
def test_a_log_start_beyond_the_end_empties_the_log() -> None:
    assert load(segment(0, 5), clean=True, start=9) == (logs(9), {"logStart": 9, "recoveryPoint": 9, "logEnd": 9})
    assert load({}, start=3) == (logs(3), {"logStart": 3, "recoveryPoint": 3, "logEnd": 3})
    assert load(segment(5, 5), point=99, start=2)[1] == {"logStart": 5, "recoveryPoint": 10, "logEnd": 10}


@pytest.mark.clause("LDR-8")
@pytest.mark.clause("LDR-12")
@pytest.mark.clause("LDR-13")
def test_epochs_and_snapshots_follow_the_log() -> None:
    files = {**segment(0, 5), **segment(5, 5, epoch=2), EPOCHS: [[0, 0]], name_of(30, SNAPSHOT): ""}
    step = machine.apply(spec.initial(files), "load", {"clean": False, "recovery_point": 0, "log_start": 3})
    assert not isinstance(step, Outside)
    assert step.state.files[EPOCHS] == ((0, 3), (2, 5))
    assert {n for n in step.state.files if n.endswith(SNAPSHOT)} == {name_of(5, SNAPSHOT), name_of(10, SNAPSHOT)}


# ---- a segment whose offsets overflow

FAR = 2**31


def far_segment(base: int, *batches: tuple[int, int], torn: bool = False, bad: int = -1) -> dict[str, Any]:
    """The files of a segment with these first and last offsets, and an epoch for each batch."""
    all_of_it = [[first, last, n, n != bad] for n, (first, last) in enumerate(batches)]
    log = {"batches": all_of_it, "torn": torn}
    return {name_of(base, LOG): log, name_of(base, INDEX): "", name_of(base, TIME_INDEX): ""}


def without_index(base: int, *batches: tuple[int, int], bad: int = -1) -> dict[str, Any]:
    files = far_segment(base, *batches, bad=bad)
    del files[name_of(base, INDEX)]
    return files


def after(files: dict[str, Any], clean: bool = False, point: int = 0) -> Any:
    step = machine.apply(spec.initial(files), "load", {"clean": clean, "recovery_point": point, "log_start": 0})
    assert not isinstance(step, Outside), step
    return step.state.files


def lasts(files: Any) -> dict[int, list[int]]:
    """Of each segment the last offsets of its batches."""
    return {spec.offset_of(n) or 0: [b.last for b in c.batches] for n, c in files.items() if n.endswith(LOG)}


@pytest.mark.clause("LDR-20")
def test_an_overflow_is_noticed_where_a_segment_is_recovered() -> None:
    fits, over = (far_segment(20, (20, 21), (FAR + 18, last)) for last in (FAR + 19, FAR + 20))
    assert load(fits)[0] == logs(20)
    assert load(over) == (logs(20, FAR + 18), {"logStart": 20, "recoveryPoint": 20, "logEnd": FAR + 21})
    assert load(over, clean=True) == (logs(20), {"logStart": 20, "recoveryPoint": FAR + 21, "logEnd": FAR + 21})
    above = far_segment(FAR + 50, (FAR + 50, FAR + 60))
    assert load({**over, **above}, point=FAR + 50)[0] == logs(20, FAR + 50)
    assert load({**over, **above}, point=FAR + 49)[0] == logs(20, FAR + 18, FAR + 50)


@pytest.mark.clause("LDR-20")
def test_what_is_not_whole_before_an_overflow_is_cut_and_nothing_overflows() -> None:
    for bad in (0, 1):
        files = far_segment(20, (20, 21), (FAR + 18, FAR + 20), bad=bad)
        assert load(files)[0] == logs(20)
        assert lasts(after(files)) == {20: [21][:bad]}


@pytest.mark.clause("LDR-21")
def test_pieces_begin_with_the_batch_that_no_longer_fits() -> None:
    batches = [(22, 23), (FAR + 10, FAR + 20), (FAR + 21, FAR + 21), (FAR + 22, FAR + 23), (2 * FAR + 22, 2 * FAR + 22)]
    files = far_segment(20, *batches)
    assert load(files)[0] == logs(22, FAR + 22, 2 * FAR + 22)
    assert lasts(after(files)) == {22: [23, FAR + 20, FAR + 21], FAR + 22: [FAR + 23], 2 * FAR + 22: [2 * FAR + 22]}


@pytest.mark.clause("LDR-21")
def test_pieces_have_what_is_not_whole_too_but_for_half_a_batch() -> None:
    batches = (20, 21), (FAR + 20, FAR + 20), (FAR + 21, FAR + 30)
    assert lasts(after(without_index(20, *batches, bad=2), clean=True)) == {20: [21], FAR + 20: [FAR + 20, FAR + 30]}
    torn = after(far_segment(20, *batches, torn=True))
    assert lasts(torn) == {20: [21], FAR + 20: [FAR + 20, FAR + 30]}
    assert not any(c.torn for n, c in torn.items() if n.endswith(LOG))
    assert load(far_segment(20, *batches, torn=True))[0] == logs(20, FAR + 20)


@pytest.mark.clause("LDR-22")
def test_of_a_segment_that_was_split_nothing_is_left() -> None:
    batches = (24, 25), (FAR + 30, FAR + 31)
    more = {name_of(20, spec.TXN_INDEX): "corrupt", name_of(20, SNAPSHOT): ""}
    for files, clean in ((without_index(20, *batches), True), (far_segment(20, *batches), False)):
        assert load({**files, **more}, clean=clean)[0] == logs(24, FAR + 30)
        assert not [n for n in after({**files, **more}, clean=clean) if n.startswith(f"{20:020}")]
    same_base = (20, 25), (FAR + 30, FAR + 31)
    left = after({**segment(0, 20), **far_segment(20, *same_base), **more})
    assert [n for n in sorted(left) if n.startswith(f"{20:020}")] == [
        name_of(20, end) for end in (INDEX, LOG, SNAPSHOT, TIME_INDEX)
    ]


@pytest.mark.clause("LDR-22")
def test_the_snapshot_of_what_was_split_is_not_there_when_its_pieces_are_recovered() -> None:
    files = {**segment(0, 5), **segment(5, 5), **far_segment(20, (24, 25), (FAR + 20, FAR + 20))}
    taken = {n for n in after({**files, name_of(20, SNAPSHOT): ""}, point=20) if n.endswith(SNAPSHOT)}
    assert taken == {name_of(o, SNAPSHOT) for o in (5, 24, FAR + 21)}
    load({**files, name_of(20, SNAPSHOT): ""}, point=20)


@pytest.mark.clause("LDR-23")
def test_after_a_split_recovery_begins_again_with_the_pieces() -> None:
    batches = (20, 21), (FAR + 20, FAR + 20), (FAR + 21, FAR + 30), (2 * FAR + 20, 2 * FAR + 20)
    files = far_segment(20, *batches, bad=2)
    assert load(files)[1]["logEnd"] == FAR + 21
    assert lasts(after(files)) == {20: [21], FAR + 20: [FAR + 20]}
    assert after(files)[EPOCHS] == ((0, 20), (1, FAR + 20))
    from_the_second = load({**files, **far_segment(20, *batches, bad=0)}, point=FAR + 25)
    assert from_the_second[0] == logs(20)  # cut before it overflows
    assert load(far_segment(20, *batches), point=FAR + 25)[0] == logs(20, FAR + 20, 2 * FAR + 20)


@pytest.mark.clause("LDR-23")
def test_after_a_split_segments_are_opened_again_and_a_piece_is_not_recovered() -> None:
    batches = (20, 21), (FAR + 20, FAR + 20), (FAR + 21, FAR + 30)
    files = without_index(20, *batches, bad=2)
    assert load(files, clean=True)[1]["logEnd"] == FAR + 31
    assert after(files, clean=True)[EPOCHS] == ((0, 20),)
    assert load(files)[1]["logEnd"] == FAR + 21


@pytest.mark.clause("LDR-22")
@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("first", [20, 24])
@pytest.mark.parametrize("more", [0, 1, 2])
def test_a_snapshot_at_the_base_of_what_is_split_goes_or_stays_whatever_follows(
    clean: bool, first: int, more: int
) -> None:
    files = {**without_index(20, (first, 25), (FAR + 30, FAR + 31)), name_of(20, SNAPSHOT): ""}
    for n in range(more):
        files |= far_segment((2 + n) * FAR, ((2 + n) * FAR, (2 + n) * FAR))
    load(files, clean=clean)


@pytest.mark.clause("LDR-23")
@pytest.mark.parametrize("many", [3, 4])
def test_several_segments_are_split_in_one_load(many: int) -> None:
    bases = [20 + 3 * n * FAR for n in range(many)]
    pieces = [piece for base in bases for piece in (base, base + FAR + 30)]
    for make, clean in ((without_index, True), (far_segment, False)):
        files: dict[str, Any] = {}
        for base in bases:
            files |= make(base, (base, base + 1), (base + FAR + 30, base + FAR + 31))
        assert load(files, clean=clean)[0] == logs(*pieces)


class CopiesTheSegment(impl.LogLoader):
    """Its one piece is the segment again."""

    splits = 0

    def pieces(self, segment: FileSegment) -> list[FileSegment]:
        self.splits += 1
        assert self.splits < 5
        piece = self._open(segment.base_offset, CLEANED)
        self.disk.write(piece.path(LOG), segment.data())
        return [piece]


@pytest.mark.clause("LDR-23")
def test_a_piece_that_overflows_ends_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be split for ever."""
    driver = log_loader_driver.Driver()
    driver.loader_class = CopiesTheSegment
    driver.reset({"files": far_segment(20, (20, 21), (FAR + 20, FAR + 20))})
    with pytest.raises(impl.PieceOverflow, match=rf"{20:020}.log: a piece of a split overflows"):
        driver.apply("load", {"clean": False, "recovery_point": 0, "log_start": 0})
    monkeypatch.setattr(spec, "pieces", lambda batches: {20: spec.LogFile(tuple(batches))})
    with pytest.raises(AssertionError, match="the piece from 20 on overflows"):
        after(far_segment(20, (20, 21), (FAR + 20, FAR + 21)))


@pytest.mark.clause("LDR-21")
def test_no_piece_overflows() -> None:
    draw = random.Random(3)
    for _ in range(2000):
        at, batches = 20, list[spec.Batch]()
        for _ in range(draw.randrange(1, 7)):
            at += draw.choice([0, 1, FAR - draw.randrange(6), 3 * FAR])
            batches.append(spec.Batch(at, at + draw.randrange(4)))
            at = batches[-1].last + 1
        made = spec.pieces(batches)
        assert [b for log in made.values() for b in log.batches] == batches
        assert not [b for base, log in made.items() for b in log.batches if spec.overflows(base, b)]
        assert all(spec.overflows(a, log.batches[0]) for a, log in zip(made, [*made.values()][1:], strict=False))


@pytest.mark.clause("LDR-18")
def test_a_failure_is_made_small_without_a_batch_of_2_to_the_31(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that comes nearer to 0 may make a batch of two offsets that long, and a file has a record for each."""
    longest, encode_batch = 0, log_loader_driver._batch

    def measured(b: spec.Batch) -> bytes:
        nonlocal longest
        longest = max(longest, b.last - b.base + 1)
        if longest > 1000:
            raise MemoryError
        return encode_batch(b)

    driver = log_loader_driver.Driver()
    driver.loader_class = CopiesTheSegment
    again = tried_beside(machine, driver)
    monkeypatch.setattr(log_loader_driver, "_batch", measured)
    files = far_segment(20, (24, 25), (FAR + 100, FAR + 101))
    load_it = {"op": "load", "args": {"clean": False, "recoveryPoint": 0, "logStart": 0}}
    failure = again([{"op": "init", "args": {"files": files}}, load_it])
    assert failure is not None
    small = shrunk(machine, failure, again)
    assert small.records[0]["args"]["files"][name_of(20, LOG)]["batches"][-1][1] > FAR + 1
    assert 2 <= longest <= 1000
    with pytest.raises(UserError, match="a batch has at most 1000 offsets"):
        spec.initial(far_segment(20, (24, FAR + 101)))
    assert spec.initial(far_segment(20, (24, 1023))).files


# ---- the released Kafka

BESIDE: list[Record] = [
    {"op": "load", "args": {"clean": False, "recoveryPoint": 21, "logStart": 0}},
    {"op": "put", "args": {"file": [name_of(20, LOG), {"batches": [], "torn": True}]}},
    {"op": "load", "args": {"clean": False, "recoveryPoint": 0, "logStart": 21}},
    {"op": "writeCleaned", "args": {"new": [0]}},
    {"op": "replace", "args": {"old": [20], "new": [0], "steps": 4}},
]
"""A segment stays beside its pieces (LDR-D2), and is deleted by a load that would leave it if it had been split."""


def released() -> list[Record]:
    """The calls with what Kafka 4.3.0 answers, but for the last one: it finds no old segment, and the spec does."""
    init = {"files": far_segment(20, (21, 21), (FAR + 500, FAR + 500))}
    del init["files"][name_of(20, INDEX)]
    state, ghost = spec.initial(**init), None
    lines: list[Record] = [{"op": "init", "args": init, "result": None, "state": machine.observe(state)}]
    for call in BESIDE:
        op = machine.find(call["op"])
        arguments = {op.parameters[k]: v for k, v in call["args"].items()}
        step = machine.apply(state, op.name, arguments)
        assert not isinstance(step, Outside), step
        ghost, state = log_loader_released._advance(ghost, state, op.name, arguments, step.state), step.state
        assert ghost is not None
        lines.append({**call, "result": ghost.answer, "state": machine.observe(ghost.directory)})
    del lines[-1]["result"]
    return [*lines[:-1], {**lines[-1], "error": {"class": "java.nio.file.NoSuchFileException"}}]


def told(lines: list[Record]) -> tuple[str, int | None]:
    verdict = check(machine, [orjson.dumps({"i": i, **line}) for i, line in enumerate(lines)], release="4.3.0")
    return verdict.verdict, verdict.step


@pytest.mark.clause("LDR-22")
def test_behind_a_split_that_has_lost_a_file_nothing_is_compared_and_before_it_everything() -> None:
    lines = released()
    assert told(lines) == ("accepted", None)
    for n in (1, 2, 3):
        files = {name: c for name, c in lines[n]["state"]["files"].items() if name != EPOCHS}
        assert told([*lines[:n], {**lines[n], "state": {"files": files}}, *lines[n + 1 :]]) == ("rejected", n)


def left_overs(draw: random.Random) -> list[Record]:
    """A directory with leftovers of every kind, and its load with what a start knows of it."""
    bases = draw.sample(log_loader_trial.BASES, draw.choice([0, 1, 2, 3, 3, 4]))
    files: dict[str, Any] = {}
    for base in bases:
        files[name_of(base, LOG)] = draw.choice(
            [log_loader_trial.contents(name_of(base, LOG))[1], *log_loader_trial.contents(name_of(base, LOG))]
        )
        files |= {name_of(base, end): "" for end in (INDEX, TIME_INDEX) if draw.random() < 0.92}
        if draw.random() < 0.2:
            files[name_of(base, spec.TXN_INDEX)] = draw.choice(["", "corrupt"])
    for base in log_loader_trial.BASES:
        if draw.random() < 0.18:
            suffix = draw.choice([SWAP, SWAP, CLEANED, spec.DELETED])
            files[name_of(base, LOG, suffix)] = draw.choice(log_loader_trial.contents(name_of(base, LOG)))
            files |= {name_of(base, end, suffix): "" for end in (INDEX, TIME_INDEX) if draw.random() < 0.7}
    files |= {name_of(o, SNAPSHOT): draw.choice(["", "corrupt"]) for o in (0, 3, 5, 7, 20, 24) if draw.random() < 0.25}
    files[EPOCHS] = draw.choice(log_loader_trial.contents(EPOCHS))
    known = {"recoveryPoint": draw.choice([0, 3, 5, 11, 20, 24, 99]), "logStart": draw.choice([0, 0, 0, 3, 12, 24, 40])}
    return [
        {"op": "init", "args": {"files": files}},
        {"op": "load", "args": {"clean": draw.random() < 0.4, **known}},
    ]


@pytest.mark.deep
def test_kafka_loads_what_is_drawn_as_the_spec_does() -> None:
    draw = random.Random(7)
    judged = replay(Job("log_loader", command()), [left_overs(draw) for _ in range(300)], "drawn")
    assert judged.verdict == "accepted", judged.why
    assert judged.tally.calls == 300


def overflowing(draw: random.Random) -> list[Record]:
    """A log some of whose segments overflow, and its loads."""
    files: dict[str, Any] = {}
    offsets, at = [0], 0
    for _ in range(draw.choice([1, 1, 2, 3, 4])):
        base, epoch, batches = at, 0, list[list[Any]]()
        at += draw.choice([0, 0, 0, 1, 4])
        for _ in range(draw.choice([0, 1, 2, 3, 5, 6])):
            length = draw.choice([1, 1, 2, 5])
            batches.append([at, at + length - 1, epoch, draw.random() >= 0.07])
            at += length
            if draw.random() < 0.3:
                at = max(at, draw.choice([base, *(b[0] for b in batches)]) + FAR - draw.choice([0, 1, 2, 3, 6]))
            epoch += draw.random() < 0.3
        files[name_of(base, LOG)] = {"batches": batches, "torn": draw.random() < 0.03}
        files |= {name_of(base, end): "" for end in (INDEX, TIME_INDEX) if draw.random() < 0.75}
        if draw.random() < 0.25:
            files[name_of(base, spec.TXN_INDEX)] = draw.choice(["", "corrupt"])
        there = [base, *(b[0] for b in batches), *(b[1] + 1 for b in batches)]
        files |= {name_of(o, SNAPSHOT): draw.choice(["", "", "corrupt"]) for o in there if draw.random() < 0.12}
        offsets += there
        at += at == base
    files[EPOCHS] = draw.choice([[], [[0, 0]], [[0, 0], [1, 5]], [[0, 0], [1, 3], [2, FAR + 3]]])
    known = [
        {"recoveryPoint": draw.choice([0, *offsets]), "logStart": draw.choice([0, 0, 0, 0, *offsets])} for _ in range(2)
    ]
    loads = [{"op": "load", "args": {"clean": draw.random() < 0.4, **k}} for k in known]
    return [{"op": "init", "args": {"files": files}}, *loads]


@pytest.mark.deep
def test_kafka_splits_what_is_drawn_as_the_spec_does() -> None:
    draw = random.Random(7)
    judged = replay(Job("log_loader", command()), [overflowing(draw) for _ in range(300)], "drawn")
    assert judged.verdict == "accepted", judged.why
    assert judged.tally.deviations.keys() == {"LDR-D2", "LDR-D3"}
    assert judged.tally.calls == 600


# ---- crashes


def disk_of(files: dict[str, Any]) -> SimulatedDisk:
    driver = log_loader_driver.Driver()
    driver.reset({"files": files})
    return driver.disk


def kept(disk: SimulatedDisk) -> tuple[list[tuple[int, int]], impl.LoadedOffsets]:
    """The batches of the log after a load, and what it answers."""
    found = impl.LogLoader(log_loader_driver.DIRECTORY, disk, False, max_index_bytes=1024).load()
    names = [n for n in disk.files(log_loader_driver.DIRECTORY) if n.endswith(LOG)]
    batches = [
        b for n in names for b in log_loader_driver.decode_log(disk.read(f"{log_loader_driver.DIRECTORY}/{n}")).batches
    ]
    return [(b.base, b.last) for b in batches], found


def crashed(disk: SimulatedDisk) -> SimulatedDisk:
    """The disk after the process was killed: what was renamed is renamed."""
    return disk.crash(lambda name: True, lambda file: file.content)


COMPACTED = {**segment(0, 5), **segment(5, 5), **segment(10, 5), **segment(0, 1, 1, suffix=CLEANED)}
SPLIT = {**segment(0, 5, 5), **segment(0, 5, suffix=CLEANED), **segment(5, 5, suffix=CLEANED)}


def crashes(files: dict[str, Any], old: list[int], new: list[int]) -> Iterator[SimulatedDisk]:
    """Each disk that a crash of a replacement leaves, before each rename."""
    for crash_at in range(100):
        disk = disk_of(files)
        disk.crash_at = disk.steps + crash_at
        try:
            impl.Replacement(log_loader_driver.DIRECTORY, disk, old, new).run()
        except Crashed:
            yield crashed(disk)
        else:
            yield crashed(disk)
            return


@pytest.mark.clause("LDR-14")
def test_a_crash_of_a_compaction_leaves_the_old_segments_or_the_new_one() -> None:
    before, after = [(0, 4), (5, 9), (10, 14)], [(0, 0), (1, 1), (10, 14)]
    seen = [kept(disk)[0] for disk in crashes(COMPACTED, [0, 5], [0])]
    assert seen[0] == before
    assert seen[-1] == after
    halfway = [(0, 0), (1, 1), (5, 9), (10, 14)]  # an old segment that the new one does not reach
    assert {tuple(s) for s in seen} == {tuple(s) for s in (before, after, halfway)}


@pytest.mark.clause("LDR-14")
def test_a_crash_of_a_split_leaves_every_record_once() -> None:
    for disk in crashes(SPLIT, [0], [0, 5]):
        assert kept(disk)[0] == [(0, 4), (5, 9)]


@pytest.mark.clause("LDR-15")
@pytest.mark.parametrize(("files", "old", "new"), [(COMPACTED, [0, 5], [0]), (SPLIT, [0], [0, 5])])
def test_a_crash_of_the_load_does_no_harm(files: dict[str, Any], old: list[int], new: list[int]) -> None:
    many = 0
    for disk in crashes(files, old, new):
        expected, offsets = kept(crashed(disk))
        for crash_at in range(200):
            again = crashed(disk)
            again.crash_at = crash_at
            try:
                kept(again)
                break
            except Crashed:
                many += 1
                again.crash_at = None
                assert kept(crashed(again)) == (expected, offsets)
    assert many > 100


@pytest.mark.clause("LDR-15")
@pytest.mark.clause("LDR-22")
@pytest.mark.parametrize("first", [20, 24])
def test_a_crash_of_a_load_that_splits_leaves_every_record_once(first: int) -> None:
    """Where no piece has the segment's base offset, a crash may leave it beside its pieces: it is split once more."""
    files = {**segment(0, 20), **far_segment(20, (first, 25), (FAR + 20, FAR + 21), (2 * FAR + 20, 2 * FAR + 20))}
    expected = kept(disk_of(files))
    assert expected[0] == [(0, 19), (first, 25), (FAR + 20, FAR + 21), (2 * FAR + 20, 2 * FAR + 20)]
    beside = 0
    for crash_at in range(500):
        disk = disk_of(files)
        disk.crash_at = disk.steps + crash_at
        try:
            kept(disk)
            break
        except Crashed:
            disk.crash_at = None
        left = crashed(disk)
        names = left.files(log_loader_driver.DIRECTORY)
        beside += name_of(20, LOG) in names and any(name_of(first, LOG, s) in names for s in (SWAP, "")) and first > 20
        assert kept(left) == expected
    assert (crash_at > 30, beside > 0) == (True, first > 20)


@pytest.mark.clause("LDR-14")
@pytest.mark.clause("LDR-22")
@pytest.mark.parametrize("renamed", [False, True])
def test_a_power_failure_in_a_load_that_splits_loses_no_record(renamed: bool) -> None:
    """What was not flushed is not there, and names that were not are the new ones, or the old ones."""
    files = far_segment(20, (24, 25), (FAR + 20, FAR + 21))
    expected = kept(disk_of(files))[0]
    for crash_at in range(500):
        disk = disk_of(files)
        for path in [*disk.names]:
            disk.flush(path)
        disk.crash_at = disk.steps + crash_at
        try:
            kept(disk)
            break
        except Crashed:
            left = disk.crash(lambda name: renamed, lambda file: file.durable)
            assert kept(left)[0] == expected
    assert crash_at > 30


@pytest.mark.clause("LDR-15")
def test_three_swaps_and_a_crash_between_their_renames_lose_the_middle() -> None:
    """The load cannot know: whoever leaves these has renamed in another order than LDR-4's (LDR-D1). The recording of
    the released Kafka begins with it."""
    files = {**segment(0, 5, suffix=SWAP), **segment(5, 5), **segment(10, 5, suffix=SWAP)}
    assert load(files)[0] == logs(0, 10)


@pytest.mark.clause("LDR-4")
@pytest.mark.clause("LDR-15")
def test_a_crash_between_any_two_renames_of_three_swaps_does_no_harm() -> None:
    for renames in range(len(log_loader_trial.SWAPPED) + 1):
        driver = log_loader_driver.Driver()
        driver.reset({"files": log_loader_trial.SWAPPED})
        assert driver.crashed_load(5, renames) == renames
        driver.load(False, 0, 0)
        assert {n for n in driver.observe()["files"] if n.endswith(LOG)} == logs(0, 5, 10)


# ---- the audit


def rows(*batches: tuple[int, int]) -> Chunk:
    out = np.zeros(len(batches), BATCH)
    for n, (first, last) in enumerate(batches):
        out[n]["position"], out[n]["size"] = n * 70, 70
        out[n]["base_offset"], out[n]["last_offset"], out[n]["count"] = first, last, last - first + 1
        out[n]["magic"] = 2
    return Chunk(out)


def partition(*bases: int, transient: tuple[str, ...] = (), orphans: tuple[Segment, ...] = ()) -> PartitionFiles:
    def file(name: str) -> File:
        return File(Path("t-0") / name, 0)

    found = [Segment(b, file(name_of(b, LOG)), file(name_of(b, INDEX))) for b in bases]
    return PartitionFiles(
        Path("t-0"), "t", 0, segments=tuple(found), transient=tuple(map(file, transient)), orphans=orphans
    )


def found_in(log: Log, *chunks: Chunk) -> list[Finding]:
    check, out = audit.OffsetCheck(log), []
    for s, chunk in zip(log.files.segments, chunks, strict=True):
        out += [*check.chunk(s, chunk), *check.ended(s, Ending(0, 0))]
    return [*out, *check.end()]


NOT_COMPACTED = TopicConfig(cleanup_policy="delete")


@pytest.mark.clause("LDR-16")
def test_an_overlap_is_found_where_it_is() -> None:
    (found,) = found_in(Log(partition(0), config=NOT_COMPACTED), rows((0, 4), (3, 6), (7, 9)))
    assert (found.clause, found.position, found.offset, found.severity) == ("LDR-16", 70, 3, Severity.ERROR)


@pytest.mark.clause("LDR-17")
def test_a_gap_is_an_error_where_nothing_explains_it() -> None:
    gap = rows((0, 4), (8, 9))
    (found,) = found_in(Log(partition(0), config=NOT_COMPACTED), gap)
    assert (found.clause, found.position, found.offset, found.severity) == ("LDR-17", 70, 5, Severity.ERROR)
    assert found_in(Log(partition(0), config=TopicConfig(cleanup_policy="compact")), gap) == []
    assert found_in(Log(partition(0), cleaner_point=3), gap) == []
    assert [f.severity for f in found_in(Log(partition(0)), gap)] == [Severity.UNCHECKED]
    assert [f.severity for f in found_in(Log(partition(0), topic_id="id"), gap)] == [Severity.ERROR]


@pytest.mark.clause("LDR-17")
def test_a_missing_segment_is_a_gap() -> None:
    (found,) = found_in(Log(partition(0, 10), config=NOT_COMPACTED, clean=False), rows((0, 4)), rows((10, 12)))
    assert (found.clause, found.offset) == ("LDR-17", 5)


@pytest.mark.clause("LDR-17")
def test_nothing_is_concluded_across_damage() -> None:
    chunk = rows((0, 4), (5, 6), (9, 9), (10, 11))
    chunk.batches["problem"][1] = 3
    assert found_in(Log(partition(0), config=NOT_COMPACTED), chunk) == []
    chunk.batches["base_offset"][3] = 11
    assert [f.offset for f in found_in(Log(partition(0), config=NOT_COMPACTED), chunk)] == [10]


@pytest.mark.clause("LDR-18")
def test_a_batch_in_another_segments_range_is_found() -> None:
    (found,) = found_in(Log(partition(0, 10), cleaner_point=0), rows((0, 4), (11, 11)), rows((12, 13)))
    assert (found.clause, found.position) == ("LDR-18", 70)


@pytest.mark.clause("LDR-1")
@pytest.mark.clause("LDR-2")
def test_left_overs_are_named_with_what_a_start_does() -> None:
    names = (name_of(0, LOG, SWAP), name_of(5, LOG, SWAP), name_of(5, INDEX, CLEANED), name_of(9, LOG, ".deleted"))
    orphan = Segment(3, None, File(Path("t-0") / name_of(3, INDEX), 0))
    log = Log(partition(0, transient=names, orphans=(orphan,)), clean=False)
    found = list(audit.LeftoverCheck(log).end())
    assert [f.clause for f in found] == ["LDR-4", "LDR-2", "LDR-1", "LDR-1", "LDR-5"]
    assert {f.severity for f in found} == {Severity.LEFTOVER}


@pytest.mark.deep
@pytest.mark.clause("LDR-18")
@pytest.mark.parametrize("offset", [2, 4, 6])
def test_what_kafka_does_where_a_directory_is_in_the_place_of_a_producer_snapshot(tmp_path: Path, offset: int) -> None:
    """After a kill the segment that ends there is emptied, and those behind it are gone; after a clean stop the load
    fails."""
    for clean in (False, True):
        root = tmp_path / str(clean)
        for base in (0, 2, 4):
            for name, data in log_file("t-0", base, [one_record(n, leader_epoch=0) for n in (base, base + 1)]).items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(data)
        (root / "t-0" / name_of(offset, SNAPSHOT)).mkdir()
        if clean:
            with pytest.raises(AssertionError, match="Is a directory"):
                run_class("kafkaspec.target.OpenLog", str(root / "t-0"), "0", "true", "4096", "1048576")
        else:
            said = run_class("kafkaspec.target.OpenLog", str(root / "t-0"), "0", "false", "4096", "1048576")
            assert orjson.loads(said)["logEnd"] == offset - 2


@pytest.mark.clause("LDR-19")
def test_directories_that_are_no_partitions_and_partitions_twice() -> None:
    deleted = PartitionFiles(Path("a/t-0.x-delete"), "t", 0, Kind.DELETED)
    one = LogDirectory(Path("a"), (partition(), deleted), {}, (Path("a/stray"), Path("a/remote-log-index-cache")))
    found = list(audit.DirectoryLeftoverCheck().check(Directory(one, (), True, 1)))
    assert [(f.severity, f.clause) for f in found] == [(Severity.LEFTOVER, "LDR-19"), (Severity.WARNING, "LDR-19")]
    two = LogDirectory(Path("b"), (PartitionFiles(Path("b/t-0"), "t", 0),))
    twice = audit.TwiceCheck().check((Directory(one, (), True, 1), Directory(two, (), True, 1)), None)
    assert [f.clause for f in twice] == ["LDR-19"]


def test_the_consequence_of_damage() -> None:
    files = partition(0, 10, 20)
    below, at, active = files.segments

    def says(segment: Segment, clean: bool | None, point: int = 15) -> str:
        return audit.recovery_consequence(Log(files, clean, point), segment, 70, 12, 30)

    assert "starts without reading it" in says(at, True)
    assert "below the recovery point 15" in says(below, False)
    assert says(at, False).endswith("offset 12 and up to 29 are lost; it deletes the segments after it")
    assert says(active, False).endswith("offset 12 and up to 29 are lost")
    assert says(at, None).startswith("after a clean stop")
