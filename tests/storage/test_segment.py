"""A log segment: impl against spec, models and the released Kafka, and the rules one by one."""

from __future__ import annotations

import itertools
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import orjson
import pytest

from kafkaspec.audit.check import Log
from kafkaspec.audit.discover import partition_files
from kafkaspec.audit.engine import audit_log
from kafkaspec.audit.files import PartitionFiles
from kafkaspec.audit.files import Segment as Files
from kafkaspec.audit.recorded import recorded
from kafkaspec.audits.storage.segment import SegmentCheck
from kafkaspec.contract import subsystem
from kafkaspec.contract.machine import Outside, Refused, Step
from kafkaspec.impl.common.disk import Crashed, RealDisk, SimulatedDisk, SimulatedFile
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import NO_TIMESTAMP, Ending
from kafkaspec.impl.storage import segment as impl
from kafkaspec.impl.storage import segment_driver
from kafkaspec.impl.storage.producer_state import ProducerStateManager, WithinTransaction
from kafkaspec.impl.storage.segment import ProducerStates, Segment, encode, headers
from kafkaspec.impl.storage.transaction_index import AbortedTxn
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.models.storage.segment import MODELS
from kafkaspec.proofs.storage.segment import PROOFS
from kafkaspec.spec.common import segment_contents
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT
from kafkaspec.spec.common.segment_contents import Batch, Record
from kafkaspec.spec.storage import segment as spec
from kafkaspec.spec.storage.segment import machine
from tests.kafka import answers, run_class
from tests.layers import Beside, a_row_of_verify, walked

INTERVALS = 4096, 512, 300
"""`index.interval.bytes` of the topics that were recorded"""

# ---- the layers beside each other


def test_long_walks_cover_every_operation() -> None:
    covered = walked(machine, segment_driver.Driver, seeds=40, steps=100)
    assert {"append SEG-3", "read SEG-12", "sanityCheck SEG-21"} <= covered.refusals.keys()


@a_row_of_verify
@pytest.mark.parametrize("recording", subsystem.find("segment").recordings, ids=lambda r: r.file)
def test_recordings_are_judged_as_they_must(recording: Any) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


@a_row_of_verify
@pytest.mark.parametrize("checked", MODELS, ids=lambda c: f"{c.model.__name__}-{c.distinct}")
def test_models_are_explored_as_pinned(checked: Any) -> None:
    assert checked.run().why == ""


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
def test_proofs_hold_for_every_size(proof: Any) -> None:
    proved = proof.run()
    assert proved.complete, proved.summary()


# ---- beside the released Kafka


def answered(calls: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
    """What Kafka's LogSegment returns, which refuses none of these calls."""
    answered = answers("segment", calls)
    assert not [a for a in answered if "result" not in a]
    return [a["result"] for a in answered]


def history(seed: int, base: int) -> list[Batch]:
    """Batches of many sizes and times, with transactions of two producers, offsets with gaps."""
    rng, out, offset, time = random.Random(seed), list[Batch](), base, 1000
    open_: set[int] = set()
    while len(out) < 60:
        time += rng.choice((-3, 0, 1, 5))
        epoch, producer = len(out) // 20, rng.choice((1, 2))
        kind = rng.choice(("data", "data", "transactional", "abort"))
        if kind == "abort" and producer not in open_:
            continue
        open_ = open_ - {producer} if kind == "abort" else open_ | {producer} if kind == "transactional" else open_
        count = 1 if kind == "abort" else rng.randrange(1, 5)
        records = tuple(Record(offset + n, time + rng.choice((0, 2))) for n in range(count))
        out.append(Batch(records, rng.choice((5, 60, 200)), epoch, -1 if kind == "data" else producer, kind))
        offset = out[-1].last_offset + rng.choice((1, 1, 3))
    return out


def test_a_marker_that_the_cleaner_emptied_makes_its_producer_known_without_an_epoch() -> None:
    """Of a producer that is known it changes nothing. Seen in a broker's snapshot: the epoch, for which the cleaner
    keeps the batch, is lost."""
    manager = ProducerStateManager("p", SimulatedDisk())
    state = ProducerStates(manager)
    data = encode(Batch((Record(0, 1_000),), producer_id=7, kind="abort"))
    emptied = next(headers(data))._replace(records=0)
    epoch = emptied.producer_epoch
    assert state.append(emptied, b"") is None
    assert (manager.producers[7].epoch, manager.producers[7].last_timestamp) == (-1, -1)
    state.append(next(headers(data)), data)
    assert manager.producers[7].epoch == epoch >= 0
    assert state.append(emptied, b"") is None
    assert (manager.producers[7].epoch, manager.producers[7].last_timestamp) == (epoch, 1_000)


def written(directory: Path, batches: Sequence[Batch], base: int, state: ProducerStates | None = None) -> Segment:
    """A closed segment in a real directory, its transaction index too. `state`: from the segments before."""
    disk = RealDisk()
    segment = Segment(str(directory), base, disk, index_interval_bytes=300, max_index_bytes=1000)
    state = state or ProducerStates(ProducerStateManager(str(directory / "none"), SimulatedDisk()))
    for b in batches:
        data = encode(b)
        segment.append(b.last_offset, data)
        aborted = state.append(next(headers(data)), data)
        if aborted is not None:
            segment.update_transaction_index(aborted, True)
    segment.close()
    return segment


SIZES = {"indexIntervalBytes": 300, "maxIndexBytes": 1000}
"""of the segments that `written` writes"""


def contents(directory: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(directory.iterdir()) if p.is_file()}


def questions(batches: Sequence[Batch]) -> list[tuple[str, dict[str, Any]]]:
    offsets = sorted({o for b in batches for o in (b.base_offset, b.last_offset, b.last_offset + 1)})
    times = sorted({r.timestamp + d for b in batches for r in b.records for d in (0, 1)})
    out: list[tuple[str, dict[str, Any]]] = [("readNextOffset", {})]
    out += [("translateOffset", {"offset": o, "startingFilePosition": 0}) for o in offsets]
    out += [("findOffsetByTimestamp", {"timestampMs": t, "startingOffset": 0}) for t in times]
    return out


def asked(segment: Segment, of: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
    driver = segment_driver.Driver()
    driver.subject = segment
    out = []
    for op, args in of:
        operation = machine.find(op)
        out.append(driver.apply(op, {operation.parameters[k]: v for k, v in args.items()}))
    return out


@pytest.mark.deep
@pytest.mark.clause("SEG-1", "SEG-11", "SEG-13", "SEG-22")
def test_kafka_opens_what_impl_wrote_and_closes_it_unchanged(tmp_path: Path) -> None:
    batches = history(1, 2**33)
    written(tmp_path, batches, 2**33)
    before = contents(tmp_path)
    of = questions(batches)
    opened = {"directory": str(tmp_path), "baseOffset": 2**33, **SIZES}
    _, *theirs, _ = answered([("init", opened), *of, ("reopen", {"active": False})])
    assert contents(tmp_path) == before
    ours = asked(Segment(str(tmp_path), 2**33, RealDisk(), index_interval_bytes=300, max_index_bytes=1000), of)
    assert theirs == ours


@pytest.mark.deep
@pytest.mark.clause("SEG-16", "SEG-18")
def test_impl_opens_what_kafka_wrote_and_recovers_it_to_the_same_bytes(tmp_path: Path) -> None:
    batches = history(2, 100)
    kafka, ours = tmp_path / "kafka", tmp_path / "ours"
    kafka.mkdir()
    ours.mkdir()
    calls: list[tuple[str, dict[str, Any]]] = [("init", {"directory": str(kafka), "baseOffset": 100, **SIZES})]
    for b in batches:
        one = {"records": [list(r) for r in b.records], "valueBytes": b.value_bytes, "leaderEpoch": b.leader_epoch}
        calls.append(("append", {"batches": [{**one, "producerId": b.producer_id, "kind": b.kind}]}))
    for e in segment_contents.transactions(batches, ()):
        fields = {"producerId": e[0], "firstOffset": e[1], "lastOffset": e[2], "lastStableOffset": e[3]}
        calls.append(("updateTxnIndex", {**fields, "aborted": True}))
    answered([*calls, ("reopen", {"active": False})])
    shutil.copytree(kafka, ours, dirs_exist_ok=True)
    segment = Segment(str(ours), 100, RealDisk(), index_interval_bytes=300, max_index_bytes=1000)
    assert asked(segment, [("readNextOffset", {})]) == [batches[-1].last_offset + 1]
    state = ProducerStates(ProducerStateManager(str(tmp_path / "none"), SimulatedDisk()))
    assert segment.recover(state, lambda epoch, offset: None) == 0
    segment.close()

    def without_values(files: dict[str, bytes]) -> dict[str, bytes]:
        return {n: d for n, d in files.items() if not n.endswith(".log")}

    assert without_values(contents(ours)) == without_values(contents(kafka))


# ---- every crash


def crashes(appends: Sequence[Batch], flush_after: int) -> Iterator[tuple[int, SimulatedDisk]]:
    """Every disk that a crash of these appends, one flush among them, may leave; and how many batches were flushed."""
    at = 0
    while True:
        disk = SimulatedDisk(crash_at=at)
        flushed = 0
        try:
            segment = Segment("t-0", 100, disk, index_interval_bytes=100, max_index_bytes=60)
            _ = segment.offset_index, segment.time_index
            disk.flush_directory("t-0")
            state = ProducerStates(ProducerStateManager("p", SimulatedDisk()))
            for n, b in enumerate(appends):
                segment.append(b.last_offset, encode(b))
                aborted = state.append(next(headers(encode(b))), encode(b))
                if aborted is not None:
                    segment.update_transaction_index(aborted, True)
                if n + 1 == flush_after:
                    segment.flush()
                    disk.flush_directory("t-0")
                    flushed = flush_after
            done = True
        except Crashed:
            done = False
        for after in disk.outcomes():
            yield flushed, after
        if done:
            return
        at += 1


def recovered(disk: SimulatedDisk) -> tuple[list[impl.Header], Segment, int]:
    segment = Segment("t-0", 100, disk, index_interval_bytes=100, max_index_bytes=60)
    state = ProducerStates(ProducerStateManager("p", SimulatedDisk()))
    cut = segment.recover(state, lambda epoch, offset: None)
    return list(headers(segment.data())), segment, cut


@pytest.mark.clause("SEG-20", "SEG-24", "SEG-25", "SEG-26")
def test_whatever_a_crash_leaves_of_appends_recovery_makes_whole() -> None:
    """Every step of four appends with a flush among them, every outcome of the disk; and of some outcomes every crash
    of the recovery itself."""
    batches = [
        Batch((Record(100, 1000), Record(101, 1003)), 60, 0, 1, "transactional"),
        Batch((Record(102, 1001),), 60, 0, 1, "abort"),
        Batch((Record(103, 1005),), 60, 1),
        Batch((Record(104, 1004),), 60, 1, 1, "transactional"),
    ]
    seen = crashed_again = 0
    for flushed, disk in crashes(batches, flush_after=2):
        seen += 1
        found, segment, _ = recovered(disk)
        assert b"".join(encode(b) for b in batches).startswith(segment.data())
        assert len(found) >= flushed
        nothing = segment_contents.TimeEntry(-1, 100)
        kept = segment_contents.Segment(100, 100, 60, 0, (), 0, 0, nothing, 7, 5, tuple(batches[: len(found)]))
        state = segment_contents.recovered(kept)
        assert [tuple(e) for e in segment.offset_index.all()] == list(state.offsets)
        assert [tuple(e) for e in segment.time_index.all()] == list(state.times)
        assert [tuple(e) for e in segment.transaction_index] == list(state.aborted)
        files = {n: f.content for n, f in disk.names.items()}
        assert recovered(disk)[2] == 0
        assert {n: f.content for n, f in disk.names.items()} == files
        if seen % 97 == 0:
            crashed_again += crash_recovery(disk, found)
    assert (seen > 1000, crashed_again > 100) == (True, True)


def crash_recovery(disk: SimulatedDisk, expected: list[impl.Header]) -> int:
    """Every crash of a recovery of this disk, of which everything is durable: a second recovery comes to the same."""
    seen = at = 0
    while True:
        names = {n: SimulatedFile(f.content, f.content) for n, f in disk.names.items()}
        again = SimulatedDisk(names, dict(names), crash_at=at)
        try:
            recovered(again)
            return seen
        except Crashed:
            pass
        for after in itertools.islice(again.outcomes(), 40):
            seen += 1
            assert recovered(after)[0] == expected
        at += 1


# ---- the rules, one by one


def run(*calls: tuple[Any, ...], **init: Any) -> Step[segment_contents.Segment]:
    """The state after some calls, and the last answer; of the implementation too."""
    beside = Beside(machine, segment_driver.Driver)
    step: Step[segment_contents.Segment] = Step(beside.initial(**init))
    for name, *arguments in calls:
        given = dict(zip(machine.find(name).parameters.values(), arguments, strict=False))
        step = beside.call(step.state, name, given)
    return step


def answer(*calls: tuple[Any, ...], **init: Any) -> Any:
    """The last answer."""
    return run(*calls, **init).result


def one(offset: int, timestamp: int = 1000, value_bytes: int = 10, **more: Any) -> dict[str, Any]:
    """A batch of one record: 78 bytes and what its value has beyond 10."""
    return {"records": [[offset, timestamp]], "valueBytes": value_bytes, **more}


def appended(*batches: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    return "append", list(batches)


@pytest.mark.clause("SEG-1")
def test_files_are_named_by_the_base_offset() -> None:
    """A transaction index is there where there is an entry, index files where they
    were made; another suffix is put behind, or taken away again."""
    kinds: list[tuple[tuple[tuple[Any, ...], ...], tuple[str, ...]]] = [
        ((appended(one(5)),), ("log", "index", "timeindex")),
        ((appended(one(5)), ("updateTxnIndex", 4, 5, 10, 5, True)), ("log", "index", "timeindex", "txnindex")),
    ]
    for calls, ends in kinds:
        for renamed, suffix in (
            ((), ""),
            ((("changeFileSuffixes", "", ".deleted"),), ".deleted"),
            ((("changeFileSuffixes", "", ".cleaned"), ("changeFileSuffixes", ".cleaned", ".swap")), ".swap"),
            ((("changeFileSuffixes", "", ".swap"), ("changeFileSuffixes", ".swap", "")), ""),
        ):
            asked = [*calls, *renamed, ("names",)]
            state, names = run(*asked, base_offset=5)
            assert names == [f"00000000000000000005.{end}{suffix}" for end in ends]
            assert state.suffix == suffix


@pytest.mark.clause("SEG-2", "SEG-3")
def test_an_append_out_of_reach_writes_nothing() -> None:
    most = 2**31 - 1
    assert run(appended(one(most))).state.size == 78
    refused = run(appended(one(5), one(most + 1)))
    assert (refused.result, refused.state.size) == (Refused("SEG-3", spec.OVERFLOW), 0)


@pytest.mark.clause("SEG-4", "SEG-5")
def test_an_entry_comes_after_more_than_the_interval() -> None:
    three = [appended(one(n, 1000 - n)) for n in range(3)]
    assert run(*three, appended(one(3)), index_interval_bytes=234).state.offsets == ()
    state = run(*three, appended(one(3, 1000)), index_interval_bytes=233).state
    assert (state.offsets, state.times) == (((3, 234),), ((1000, 0),))
    assert run(appended(*(one(n) for n in range(4))), index_interval_bytes=233).state.offsets == ((3, 234),)


@pytest.mark.clause("SEG-6", "SEG-7", "SEG-8", "SEG-9")
def test_a_segment_is_rolled_for_four_reasons() -> None:
    def rolls(*more: Any, ms: int = 2**62, most: int = 2**30, t: int = 1000, o: int = 9, **init: Any) -> bool:
        return bool(run(appended(one(0)), *more, ("shouldRoll", ms, most, t, o, 100), **init).result)

    assert not rolls()
    assert not rolls(most=178)
    assert rolls(most=177)
    assert not rolls(ms=10, t=1010)
    assert rolls(ms=10, t=1011)
    assert rolls(ms=10, t=1010, roll_jitter_ms=1)
    assert not rolls(("advance", 999), ms=10)
    assert rolls(("onBecomeInactiveSegment",))
    assert not rolls(("onBecomeInactiveSegment",), ("resizeIndexes",))
    assert rolls(o=2**31)
    assert not run(("shouldRoll", 0, 2**30, 10**9, 9, 100)).result


@pytest.mark.clause("SEG-10", "SEG-22")
def test_a_closed_segment_remembers_its_largest_timestamp() -> None:
    state = run(appended(one(0, 7)), ("reopen", True)).state
    assert (state.times, state.largest, state.time_slots) == (((7, 0),), (7, 0), 10)


@pytest.mark.clause("SEG-11", "SEG-14")
def test_an_offset_in_a_gap_has_the_place_of_the_next_batch() -> None:
    two = (appended(one(0)), appended(one(5)))
    assert run(*two, ("translateOffset", 1, 0)).result == {"offset": 5, "position": 78, "size": 78}
    assert run(*two, ("translateOffset", 6, 0)).result is None
    assert run(*two, ("readNextOffset",)).result == 6


@pytest.mark.clause("SEG-12")
def test_a_read_gives_one_batch_at_least_if_asked() -> None:
    two = (appended(one(0)), appended(one(1)))
    assert answer(*two, ("read", 0, 10, 156, True))["bytes"] == 78
    assert run(*two, ("read", 0, 10, 156, False)).result == {
        "offset": 0, "position": 0, "bytes": 10, "firstEntryIncomplete": True,
    }  # fmt: skip
    assert answer(*two, ("read", 0, 500, 100, True))["bytes"] == 100
    assert answer(*two, ("read", 0, 500, None, True))["bytes"] == 0
    assert run(*two, ("read", 0, -1, 156, True)).result == Refused("SEG-12", ILLEGAL_ARGUMENT)
    assert run(*two, ("read", 2, 10, 156, True)).result is None


@pytest.mark.clause("SEG-13")
def test_a_timestamp_is_looked_for_record_by_record() -> None:
    batch = {"records": [[0, 5], [1, 9], [2, 7]], "leaderEpoch": 3}
    found = run(appended(batch), ("findOffsetByTimestamp", 6, 0)).result
    assert found == {"timestamp": 9, "offset": 1, "leaderEpoch": 3}
    assert answer(appended(batch), ("findOffsetByTimestamp", 6, 2))["offset"] == 2
    assert run(appended(batch), ("findOffsetByTimestamp", 10, 0)).result is None


@pytest.mark.clause("SEG-15")
def test_a_truncation_within_a_batch_takes_it_whole() -> None:
    state, cut = run(appended(one(0)), appended({"records": [[1, 5000], [2, 1]]}), ("truncateTo", 2))
    assert (cut, state.size, state.largest) == (96, 78, (1000, 0))
    assert run(appended(one(0)), ("reopen", False), ("truncateTo", 9)).state.time_slots == 10


@pytest.mark.clause("SEG-15", "SEG-22")
def test_a_segment_that_was_only_opened_has_a_largest_timestamp_after_a_truncation() -> None:
    """Nobody asked for it before, and its one time entry is cut."""
    calls: list[tuple[Any, ...]] = [appended(one(0, 7)), appended(one(1, 9)), ("reopen", True), ("truncateTo", 1)]
    driver = segment_driver.Driver()
    for name, *arguments in calls:
        driver.apply(name, dict(zip(machine.find(name).parameters.values(), arguments, strict=True)))
    assert driver.subject.largest == run(*calls).state.largest == (7, 0)


@pytest.mark.clause("SEG-7", "SEG-21")
def test_a_segment_that_gets_index_files_is_as_old_as_before() -> None:
    calls: list[tuple[Any, ...]] = [appended(one(0)), appended(one(1)), appended(one(2)), ("crash", 200, False)]
    calls += [("advance", 5), ("createIndexes",), ("shouldRoll", 4, 2**30, 0, 0, 0)]
    driver = segment_driver.Driver()
    for name, *arguments in calls:
        rolls = driver.apply(name, dict(zip(machine.find(name).parameters.values(), arguments, strict=True)))
    assert rolls is run(*calls).result is True


@pytest.mark.clause("SEG-16", "SEG-17", "SEG-19")
def test_recovery_cuts_at_the_first_damage_and_finds_epochs() -> None:
    three = [appended(one(n, leaderEpoch=n)) for n in range(3)]
    state, said = run(*three, ("damage", 1), ("recover", False))
    assert said == {"truncated": 156, "epochs": [[0, 0]]}
    assert (state.size, state.times) == (78, ((1000, 0),))
    assert answer(*three, ("crash", 1, False), ("createIndexes",), ("recover", False))["truncated"] == 77


@pytest.mark.clause("SEG-4", "SEG-16")
def test_a_recovery_leaves_the_count_of_bytes_as_it_was() -> None:
    """Kafka 4.3.0, asked these calls, has the same two entries."""
    calls = [appended(one(0)), ("truncateTo", 1), appended(one(1), one(2)), ("recover", True), appended(one(3))]
    state, _ = run(*calls, index_interval_bytes=100)
    assert state.offsets == ((2, 156), (3, 234))


@pytest.mark.clause("SEG-18", "SEG-26")
def test_recovery_knows_what_was_open_before_the_segment() -> None:
    marker = one(10, producerId=4, kind="abort")
    state, _ = run(appended(marker), ("recover", False), base_offset=10, open_transactions=[[4, 3], [5, 7]])
    assert state.aborted == ((4, 3, 10, 7),)
    state, _ = run(appended(marker), ("recover", False), base_offset=10)
    assert state.aborted == ()


@pytest.mark.parametrize(("second", "allowed"), [((1, 9), True), ((1, 10), False), ((1, 3), False), ((0, 9), False)])
def test_what_is_open_where_a_segment_begins_is_what_a_log_can_have(second: tuple[int, int], allowed: bool) -> None:
    """Kafka 4.3.0 knows open transactions by their first offsets: of two with one offset it forgets the first."""
    state = machine.initial(base_offset=10, open_transactions=[(0, 3), second])
    assert isinstance(machine.apply(state, "recover", {"active": False}), Outside) != allowed


@pytest.mark.parametrize(
    ("old", "new", "allowed"), [(0, 225, True), (0, 226, False), (225, 7, True), (225, 226, False)]
)
def test_names_of_files_have_255_bytes_at_most(old: int, new: int, allowed: bool) -> None:
    state = run(("changeFileSuffixes", "", "." * old)).state if old else machine.initial()
    step = machine.apply(state, "changeFileSuffixes", {"old": "." * old, "new": "." * (new - 1) + "x"})
    assert isinstance(step, Outside) != allowed


def test_names_of_files_are_counted_in_bytes() -> None:
    for letters, allowed in ((112, True), (113, False)):
        step = machine.apply(machine.initial(), "changeFileSuffixes", {"old": "", "new": "\u00e9" * letters})
        assert isinstance(step, Outside) != allowed


def test_nothing_comes_to_a_segment_that_a_producer_sent_outside_its_open_transaction() -> None:
    """The log refuses it. Kafka 4.3.0's recovery of such a segment ends in InvalidTxnStateException, as ours does."""
    inside, outside = one(10, producerId=0, kind="transactional"), one(12, producerId=0, leaderEpoch=0)
    state = run(appended(inside), base_offset=10).state
    refused = machine.apply(state, "append", {"batches": [outside]})
    assert isinstance(refused, Outside)
    assert refused.clause == "PSM-9"
    new, opened = machine.initial(base_offset=10), machine.initial(base_offset=10, open_transactions=[[0, 3]])
    assert isinstance(machine.apply(new, "append", {"batches": [inside, outside]}), Outside)
    assert isinstance(machine.apply(opened, "append", {"batches": [outside]}), Outside)
    driver = segment_driver.Driver()
    driver.apply("append", {"batches": [inside, outside]})
    with pytest.raises(WithinTransaction):
        driver.recover(False)
    run(appended(inside), appended(one(11, producerId=0, kind="commit")), appended(outside), base_offset=10)
    run(appended(inside), appended(one(12, producerId=1)), ("recover", False), base_offset=10)


@pytest.mark.clause("SEG-21")
def test_a_missing_index_is_noticed_and_wrong_entries_are_not() -> None:
    two = (appended(one(0)), appended(one(1)))
    assert run(*two, ("crash", 0, False), ("sanityCheck", False)).result == Refused("SEG-21", spec.NO_SUCH_FILE)
    assert run(*two, ("crash", 100, True), ("sanityCheck", False)).result is None


@pytest.mark.clause("SEG-5", "SEG-25")
def test_a_largest_timestamp_that_a_crash_left_is_wrong_until_recovery() -> None:
    """Its offset too: the first record that has it has no entry."""
    crashed = (appended(one(0)), ("crash", 0, True), ("resizeIndexes",), appended(one(1)))
    rolled = run(*crashed, ("onBecomeInactiveSegment",)).state
    assert rolled.times == (segment_contents.TimeEntry(1000, 1),)
    assert not segment_contents.sound(rolled)
    recovered = run(*crashed, ("onBecomeInactiveSegment",), ("recover", False)).state
    assert recovered.times == (segment_contents.TimeEntry(1000, 0),)
    assert segment_contents.sound(recovered)


@pytest.mark.clause("SEG-23")
def test_a_flush_begins_with_the_log() -> None:
    class Noting(SimulatedDisk):
        def flush(self, path: str) -> None:
            super().flush(path)
            flushed.append(path.rpartition(".")[2])

    flushed: list[str] = []
    segment = Segment("t-0", 0, Noting())
    _ = segment.offset_index, segment.time_index
    segment.flush()
    segment.transaction_index.append(AbortedTxn(1, 0, 1, 2))
    segment.flush()
    assert flushed == ["log", "index", "timeindex", "log", "index", "timeindex", "txnindex"]


# ---- the audit


def found(directory: Path) -> list[Any]:
    findings, _ = audit_log(Log(partition_files(directory, "t", 0)), [SegmentCheck])
    return findings


@pytest.mark.clause("SEG-25", "SEG-27")
def test_batches_out_of_a_segment_s_reach_are_found(tmp_path: Path) -> None:
    """Renamed to a higher base offset; and with an offset that is too far away."""
    written(tmp_path, history(3, 100), 100)
    assert found(tmp_path) == []
    log = tmp_path / f"{100:020}.log"
    far = encode(Batch((Record(100 + 2**31, 5),)))
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + far)
    (finding,) = found(tmp_path)
    assert (finding.clause, finding.position, finding.offset) == ("SEG-27", size, 100 + 2**31)
    log.rename(tmp_path / f"{101:020}.log")
    (finding,) = found(tmp_path)
    assert (finding.clause, finding.position, finding.offset) == ("SEG-27", 0, 100)


@pytest.mark.clause("SEG-28")
def test_a_segment_beyond_two_gigabytes_is_found() -> None:
    files = Files(0, File(Path("t-0/00000000000000000000.log"), 2**31))
    judged = SegmentCheck(Log(PartitionFiles(Path("t-0"), "t", 0, segments=(files,))))
    assert [f.clause for f in judged.ended(files, Ending(2**31, 2**31))] == ["SEG-28"]
    assert list(judged.ended(files, Ending(2**31 - 1, 2**31 - 1))) == []


# ---- the indexes of real brokers, made again
class Rebuilt(NamedTuple):
    """How index files compare with those made again from the batches. `resets`: how often counting must have begun
    again (an opening or a truncation of the segment; SEG-4), `closes`: time entries that a close wrote (SEG-10)."""

    equal: bool
    resets: int = 0
    closes: int = 0
    wrong: str = ""


def rebuilt(
    found: Sequence[impl.Header],
    base: int,
    interval: int,
    offsets: Sequence[tuple[int, int]],
    times: Sequence[tuple[int, int]],
    closed: bool = True,
) -> Rebuilt:
    """Whether a broker that indexes each batch made these entries: exactly as recovery does, or with counting begun
    again where that alone explains what is missing. `closed`: the last time entry must be the largest timestamp."""
    resets = closes = 0
    since = begun = 0
    want = list(offsets)
    largest = NO_TIMESTAMP, base
    due_times: list[tuple[int, int]] = []
    true_times: set[tuple[int, int]] = set()
    boundaries = [h.position for h in found]
    for n, h in enumerate(found):
        if h.max_timestamp > largest[0]:
            largest = h.max_timestamp, h.last_offset
        true_times.add(largest)
        here = bool(want) and want[0] == (h.last_offset, h.position)
        if since > interval and not here:
            then = next((p for _, p in want), None)
            later = [r for r in boundaries[: n + 1] if r > begun and (then is None or then - r > interval)]
            if not later:
                return Rebuilt(False, wrong=f"no entry at {h.position}")
            resets += 1
            begun = later[-1] if then is not None and later[-1] <= h.position else h.position
            since = h.position - begun
        if here:
            if since <= interval:
                return Rebuilt(False, wrong=f"an entry at {h.position} after {since} bytes")
            del want[0]
            since, begun = 0, h.position
            due_times.append(largest)
        since += h.size
    if want:
        return Rebuilt(False, wrong=f"an entry where no batch is: {want[0]}")
    if closed:
        due_times.append(largest)
    due = [t for t in dict.fromkeys(due_times) if t[0] > NO_TIMESTAMP]
    if not set(due) <= set(times):
        return Rebuilt(False, wrong=f"no time entry {sorted(set(due) - set(times))[0]}")
    if not set(times) <= true_times:
        return Rebuilt(False, wrong=f"a time entry that is not true: {sorted(set(times) - true_times)[0]}")
    if any(x >= y for x, y in itertools.pairwise(times)):
        return Rebuilt(False, wrong="time entries fall")
    closes = len(times) - len(due)
    return Rebuilt(resets == closes == 0, resets, closes)


def entries(data: bytes, layout: Struct, base: int, position: int) -> list[tuple[int, ...]]:
    """The slots of an index file up to the unwritten ones; the relative offset is at `position` of a slot."""
    used = -(-len(data.rstrip(b"\0")) // layout.size) * layout.size
    slots = layout.iter_unpack(data[: min(used, len(data) // layout.size * layout.size)])
    return [tuple(n + base if at == position else n for at, n in enumerate(e)) for e in slots]


def compared(log: Path) -> Rebuilt:
    """The index files of a segment, compared by the interval that explains them best."""
    base, found = int(log.name[:20]), list(headers(log.read_bytes()))
    index, times = log.with_suffix(".index").read_bytes(), log.with_suffix(".timeindex").read_bytes()
    end = found[-1].last_offset + 1 if found else base
    closed = len(index) == 8 * len(entries(index, Struct(">ii"), base, 0))  # else its slots were not trimmed
    o = [(e[0], e[1]) for e in entries(index, Struct(">ii"), base, 0) if closed or e[0] < end]
    t = [(e[0], e[1]) for e in entries(times, Struct(">qi"), base, 1) if closed or e[1] < end]
    both = [rebuilt(found, base, interval, o, t, closed) for interval in INTERVALS]
    return min(both, key=lambda r: (r.wrong != "", r.resets, r.closes))


DISTURBED = {"cluster-faults": 3, "cluster-kills": 3}
"""How many faults a broker of a recording met while it wrote one segment, where it is more than one."""


@pytest.mark.clause("SEG-4", "SEG-5", "SEG-10", "SEG-16")
def test_index_files_of_real_brokers_are_what_their_batches_say() -> None:
    """Of 4.3.0, that indexes each batch. Equal, or with a place where counting began again for each time that the
    broker may have opened or truncated the segment: nothing else."""
    seen: Counter[str] = Counter()
    for recording in recorded():
        if recording.recording.startswith("classic"):
            continue
        with recording.unpacked() as directories:
            for log in sorted(p for d in directories for p in d.rglob("*.log")):
                if not log.with_suffix(".index").exists():
                    continue
                found = compared(log)
                assert not found.wrong, f"{recording.name} {log.name}: {found.wrong}"
                assert max(found.resets, found.closes) <= DISTURBED.get(recording.recording, 1), log
                seen["equal" if found.equal else "explained"] += 1
    assert seen["equal"] > 5 * seen["explained"] > 0  # a broker that was killed began its segments' counting again


@pytest.mark.clause("SEG-18", "SEG-26")
def test_transaction_indexes_of_real_brokers_are_what_their_records_say() -> None:
    """Of every log that begins at 0 and was not compacted, as all with offsets without gaps between batches."""
    seen = 0
    for recording in recorded():
        with recording.unpacked() as directories:
            for folder in sorted({p.parent for d in directories for p in d.rglob("*.txnindex")}):
                logs = sorted(folder.glob("*.log"))
                every = [h for log in logs for h in headers(log.read_bytes())]
                if int(logs[0].name[:20]) or any(
                    y.base_offset - x.last_offset != 1 for x, y in itertools.pairwise(every)
                ):
                    continue
                state = ProducerStates(ProducerStateManager("none", SimulatedDisk()))
                for log in logs:
                    data, made = log.read_bytes(), list[AbortedTxn]()
                    for h in headers(data):
                        aborted = state.append(h, data[h.position : h.position + h.size])
                        made += [] if aborted is None else [aborted]
                    file = log.with_suffix(".txnindex")
                    assert b"".join(e.encode() for e in made) == (file.read_bytes() if file.exists() else b"")
                    seen += bool(made)
    assert seen > 10


@pytest.mark.deep
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.clause("SEG-16", "SEG-18", "SEG-22")
def test_a_broker_s_log_opens_what_impl_wrote(tmp_path: Path, clean: bool) -> None:
    """Three segments; after a clean stop as they are, else recovered. Index files are the same afterwards."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    batches = history(4, 100)
    parts = [batches[:20], batches[20:40], batches[40:]]
    state = ProducerStates(ProducerStateManager(str(tmp_path / "none"), SimulatedDisk()))
    segments = []
    for part in parts:
        segments.append(written(folder, part, part[0].base_offset, state=state))
    before = contents(folder)
    said = orjson.loads(run_class("kafkaspec.target.OpenLog", str(folder), "100", str(clean).lower(), "300", "1000"))
    assert (said["logStart"], said["logEnd"]) == (100, batches[-1].last_offset + 1)
    assert said["segments"] == [[s.base_offset, s.size] for s in segments]
    after = contents(folder)
    kept = (".log", ".index", ".timeindex", ".txnindex")
    assert {n: d for n, d in after.items() if n.endswith(kept)} == before
