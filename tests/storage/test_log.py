"""Log: impl against spec and recordings, the order of effects, failures and crashes between them, and readers."""

from __future__ import annotations

import copy
import json
import random
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest
from crc32c import crc32c

from kafkaspec.contract.history import outcome
from kafkaspec.contract.machine import Outside, Refused, Step
from kafkaspec.contract.recording import manifest
from kafkaspec.impl.common.disk import Crashed, RealDisk, SimulatedDisk, StorageError
from kafkaspec.impl.storage import log as impl
from kafkaspec.impl.storage import log_driver
from kafkaspec.impl.storage.batch import ATTRIBUTES_AT, CRC_AT, MAX_TIMESTAMP_AT, Batch
from kafkaspec.impl.storage.log import LogConfig, UnifiedLog
from kafkaspec.impl.storage.segment import LOG, CorruptRecord, Header, headers
from kafkaspec.impl.storage.transaction_index import AbortedTxn
from kafkaspec.judge.check import check
from kafkaspec.lockstep.walk import draw, draw_init
from kafkaspec.models.storage.log import MODELS
from kafkaspec.proofs.storage.log import PROOFS
from kafkaspec.prove.proof import Proof
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL
from kafkaspec.spec.storage.log import machine
from kafkaspec.spec.storage.log_parts.contents import BatchToReplicate, KeyValue, Log
from tests.kafka import run_class
from tests.layers import a_row_of_verify, walked

# ---- the layers beside each other


def test_long_walks_cover_every_operation() -> None:
    covered = walked(machine, log_driver.Driver, seeds=20, steps=150)
    refused = covered.refusals.keys()
    assert {
        "appendAsLeader LOG-3",
        "appendAsFollower LOG-4",
        "appendBatchesAsFollower LOG-13",
        "read LOG-21",
    } <= refused


@a_row_of_verify
@pytest.mark.parametrize("checked", MODELS, ids=lambda c: f"{c.model.__name__}-{c.distinct}")
def test_models_are_explored_as_pinned(checked: Any) -> None:
    assert checked.run().why == ""


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.loaded.name)
def test_proofs_hold_for_every_size(proof: Proof) -> None:
    proved = proof.run()
    assert proved.complete, proved.summary()


def recording() -> list[dict[str, Any]]:
    path = next(r.path for r in manifest() if r.file == "unified-log.ndjson")
    return [json.loads(line) for line in path.read_text().splitlines()]


ALTERED: list[tuple[int, str, Any]] = [
    (2, "logEndOffset", 4),
    (10, "highWatermark", 1),
    (14, "recoveryPoint", 0),
    (14, "snapshots", [6]),
    (16, "lastStableOffset", 15),
    (24, "abortedTxns", []),
    (58, "firstUnstableOffset", 33),
    (85, "highWatermark", 0),
]


@pytest.mark.parametrize(("step", "key", "value"), ALTERED)
def test_an_altered_recording_is_rejected(step: int, key: str, value: Any, tmp_path: Path) -> None:
    lines = recording()
    assert lines[step]["state"][key] != value
    lines[step]["state"][key] = value
    path = tmp_path / "unified-log.ndjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    verdict = check(machine, path)
    assert verdict.verdict == "rejected"
    assert verdict.step == step


@pytest.mark.parametrize(
    "field", ["producerId", "producerEpoch", "baseSequence", "transactional", "control", "logAppendTime"]
)
def test_every_field_of_a_batch_that_is_read_is_compared(field: str, tmp_path: Path) -> None:
    """Also where there is nothing: what is left out would be compared with nothing."""
    step, path = 27, tmp_path / "unified-log.ndjson"
    for number, other in ((0, 7 if field[0] in "pb" else True), (2, None), (0, ...), (2, ...)):
        lines = recording()
        batch = lines[step]["result"]["batches"][number]
        assert batch[field] != other
        batch[field] = other
        if other is ...:
            del batch[field]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        verdict = check(machine, path)
        assert (verdict.verdict, verdict.step) == ("rejected", step), (number, other)


# ---- histories
A: list[KeyValue] = [KeyValue("k", "v")]
THREE = [KeyValue("a", "1"), KeyValue("b", "2"), KeyValue("c", "3")]
LONG = [KeyValue("k", "v" * 400)]


def sent(base: int, producer: int, sequence: int, records: Sequence[KeyValue] = A, **more: Any) -> BatchToReplicate:
    """A batch of a leader; of no producer, with -1."""
    epoch = 0 if producer >= 0 else -1
    return BatchToReplicate(base, 0, records, 0, producer, epoch, sequence, **more)


def sent_marker(base: int, producer: int, kind: Literal["abort", "commit"]) -> BatchToReplicate:
    return BatchToReplicate(base, 0, (), 0, producer, 0, kind=kind)


class History:
    """A log of the spec, call by call, and the implementation beside it."""

    def __init__(self, **init: Any) -> None:
        self.log: Log = machine.initial(**init)
        self.driver = log_driver.Driver()
        self.driver.reset(init)

    def __call__(self, op: str, /, **arguments: Any) -> Any:
        step = machine.apply(self.log, op, arguments)
        assert isinstance(step, Step), step
        assert outcome(self.driver.apply(op, arguments)) == outcome(step.result), op
        self.log = step.state
        assert self.driver.observe() == machine.observe(self.log), op
        return step.result

    def marker(self, producer_id: int, type: str = "ABORT", **more: Any) -> Any:
        numbers = {"producer_epoch": 0, "coordinator_epoch": 0, "transaction_version": 0, "timestamp": 0}
        return self("appendEndTxnMarker", **numbers | {"leader_epoch": 0} | more, producer_id=producer_id, type=type)

    def outside(self, name: str, **arguments: Any) -> Outside:
        step = machine.apply(self.log, name, arguments)
        assert isinstance(step, Outside)
        return step

    def leader(self, records: list[KeyValue] = A, **more: Any) -> Any:
        return self("appendAsLeader", **{"leader_epoch": 0, "timestamp": 1_000_000, "records": records} | more)

    def follower(self, base: int, records: list[KeyValue] = A, **more: Any) -> Any:
        numbers = {"base_offset": base, "leader_epoch": 0, "batch_leader_epoch": 0, "timestamp": 1_000_000}
        return self("appendAsFollower", **numbers | {"records": records} | more)

    def fetched(self, *batches: BatchToReplicate) -> Any:
        return self("appendBatchesAsFollower", leader_epoch=0, batches=batches)

    def read(self, offset: int, isolation: str = "LOG_END", length: int = 1000, one: bool = True) -> Any:
        return self("read", offset=offset, max_length=length, isolation=isolation, min_one_message=one)

    @property
    def bases(self) -> list[int]:
        return [s.base_offset for s in self.log.segments]


@pytest.mark.clause("LOG-2")
@pytest.mark.clause("LOG-14")
def test_a_leader_gives_offsets_and_its_epoch() -> None:
    h = History()
    h.leader(THREE)
    said = h.leader(leader_epoch=4)
    assert (said["firstOffset"], said["lastOffset"], h.log.log_end) == (3, 3, 4)
    assert h.log.epochs == ((0, 0), (4, 3)) == h.log.epochs_file
    assert h.leader(base_offset=1).clause == "LOG-2"


@pytest.mark.clause("LOG-3")
@pytest.mark.clause("LOG-4")
def test_sizes_are_asked_before_and_after_epochs() -> None:
    h = History(max_message_bytes=300)
    assert h.leader(LONG).clause == "LOG-3"
    assert h.log.epochs == ()
    h = History(segment_bytes=300)
    assert h.leader(LONG).clause == "LOG-4"
    assert h.log.epochs == ((0, 0),)
    assert h.log.log_end == 0


@pytest.mark.clause("LOG-5")
@pytest.mark.clause("LOG-6")
@pytest.mark.clause("LOG-9")
def test_a_refused_append_leaves_the_segment_that_was_rolled_for_it() -> None:
    h = History(segment_bytes=600)
    h.leader(LONG, producer_id=1, producer_epoch=0, base_sequence=0)
    refused = h.leader(LONG, producer_id=1, producer_epoch=0, base_sequence=5)
    assert refused.clause == "PSM-3"
    assert h.bases == [0, 1]
    assert h.log.log_end == 1
    assert list(h.log.producers.snapshots) == [1]
    assert h.log.recovery_point == 1


@pytest.mark.clause("LOG-5")
@pytest.mark.clause("LOG-6")
def test_a_segment_begins_at_the_first_offset_after_a_gap() -> None:
    h = History(segment_bytes=600)
    h.follower(0, LONG)
    h.follower(7, LONG)
    assert h.bases == [0, 7]
    assert list(h.log.producers.snapshots) == [7]
    h.follower(2**31 + 8)
    assert h.bases == [0, 7, 2**31 + 8]


@pytest.mark.clause("LOG-7")
def test_an_empty_active_segment_is_replaced() -> None:
    h = History(segment_index_bytes=24, index_interval_bytes=0)
    assert h("roll") == 0
    assert h("roll") == 0
    assert h.bases == [0]
    assert "00000000000000000000.log.deleted" in h.log.removed


@pytest.mark.clause("LOG-8")
def test_a_duplicate_is_answered_with_its_own_offsets() -> None:
    h = History()
    h.leader(THREE, producer_id=1, producer_epoch=0, base_sequence=0)
    h.leader()
    said = h.leader(THREE, producer_id=1, producer_epoch=0, base_sequence=0, timestamp=1_000_500)
    assert (said["firstOffset"], said["lastOffset"], said["logAppendTime"]) == (0, 2, 1_000_000)
    assert h.log.log_end == 4


@pytest.mark.clause("LOG-11")
def test_a_follower_takes_gaps_and_no_overlap() -> None:
    h = History()
    h.follower(5, THREE)
    assert h.log.log_end == 8
    assert h.read(0)["fetchOffset"] == 5
    assert h.follower(7).clause == "LOG-11"
    two = [BatchToReplicate(9, 0, tuple(THREE)), BatchToReplicate(9, 0, tuple(A))]
    assert h("appendBatchesAsFollower", leader_epoch=0, batches=two).clause == "LOG-11"
    far = [BatchToReplicate(base, 0, tuple(A)) for base in (8, 2**31 + 8, 8)]
    assert h.outside("appendBatchesAsFollower", leader_epoch=0, batches=far, missing_bytes=1).clause == "LOG-11"


@pytest.mark.clause("LOG-12")
@pytest.mark.clause("LOG-13")
def test_higher_epochs_are_passed_over_and_damage_is_refused() -> None:
    h = History()
    batches = [
        BatchToReplicate(0, 0, tuple(A), 1),
        BatchToReplicate(1, 0, tuple(A), 3),
        BatchToReplicate(2, 0, tuple(A), 1),
    ]
    assert h("appendBatchesAsFollower", leader_epoch=2, batches=batches)["lastOffset"] == 0
    assert h("appendBatchesAsFollower", leader_epoch=2, batches=batches[1:])["numMessages"] == 0
    damaged = [BatchToReplicate(1, 0, tuple(A), 1, damaged=True)]
    assert h("appendBatchesAsFollower", leader_epoch=2, batches=damaged).clause == "LOG-13"
    below = [batches[0], BatchToReplicate(1, 0, tuple(A), 3, damaged=True)]
    assert h.outside("appendBatchesAsFollower", leader_epoch=2, batches=below).clause == "LOG-12"


@pytest.mark.clause("LOG-15")
@pytest.mark.clause("LOG-16")
@pytest.mark.clause("LOG-17")
def test_high_watermarks() -> None:
    h = History()
    h.leader(), h.leader(), h.leader()
    assert [h("updateHighWatermark", offset=o) for o in (2, 9, 1)] == [2, 3, 1]
    assert h("maybeIncrementHighWatermark", offset=2) == 1
    assert h("maybeIncrementHighWatermark", offset=1) is None
    assert h("maybeIncrementHighWatermark", offset=4).clause == "LOG-16"
    h("truncateTo", offset=1)
    assert h.log.high_watermark.offset == 1


@pytest.mark.clause("LOG-18")
@pytest.mark.clause("LOG-22")
def test_a_high_watermark_within_a_batch_falls_to_its_begin_when_it_is_read() -> None:
    h = History()
    h.leader(THREE)
    h("updateHighWatermark", offset=2)
    h("maybeIncrementLogStartOffset", offset=1)
    assert h.read(1, "HIGH_WATERMARK")["batches"] == []
    assert (h.log.high_watermark.offset, h.log.log_start) == (0, 1)


@pytest.mark.clause("LOG-19")
@pytest.mark.clause("LOG-20")
@pytest.mark.clause("LOG-24")
def test_an_open_transaction_bounds_readers_of_committed_records() -> None:
    h = History()
    h.leader()
    h.leader(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    h("updateHighWatermark", offset=2)
    assert h.log.last_stable == 1
    assert [b["baseOffset"] for b in h.read(0, "TXN_COMMITTED")["batches"]] == [0]
    h.marker(1)
    assert h.log.last_stable == 1
    h("updateHighWatermark", offset=3)
    assert h.log.last_stable == 3
    assert h.read(0, "TXN_COMMITTED")["abortedTransactions"] == [{"producerId": 1, "firstOffset": 1}]


def transactional(producer_id: int, base_sequence: int = 0) -> dict[str, Any]:
    return {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": base_sequence, "transactional": True}


@pytest.mark.clause("LOG-10")
def test_an_aborted_transaction_is_in_the_index_of_its_marker_s_segment() -> None:
    h = History(segment_bytes=600)
    h.leader(**transactional(1))
    h.leader(LONG, **transactional(2))
    h.leader(**transactional(3))
    assert h.bases == [0, 2]
    h.marker(2)
    h.marker(1)
    h.marker(3, "COMMIT")
    assert [[(*e,) for e in s.aborted] for s in h.log.segments] == [[], [(2, 1, 3, 0), (1, 0, 4, 2)]]
    h.leader(**transactional(1, 1))
    h.marker(1)
    assert (*h.log.segments[-1].aborted[-1],) == (1, 6, 7, 8)  # no other is open


@pytest.mark.clause("LOG-25")
def test_a_committed_read_is_told_the_aborted_transactions_up_to_the_next_entry_of_the_index() -> None:
    h = History(segment_bytes=600, index_interval_bytes=0)
    h.leader(**transactional(1))
    h.leader(**transactional(2))
    h.marker(1)
    h.leader(LONG)
    assert len(h.bases) == 2
    h.marker(2)
    h.leader(**transactional(1, 1))
    h.marker(1)
    h("updateHighWatermark", offset=h.log.log_end)

    def told(offset: int, length: int, isolation: str = "TXN_COMMITTED") -> Any:
        return h.read(offset, isolation, length)["abortedTransactions"]

    first = {"producerId": 1, "firstOffset": 0}
    second = {"producerId": 2, "firstOffset": 1}
    assert told(0, 1) == [first]  # the second one begins where the range ends
    assert told(0, 10_000) == [first, second]  # to the next segment; the second one's marker is there
    assert told(3, 1) == [second]
    assert told(3, 10_000) == [second]
    assert told(5, 10_000) == [{"producerId": 1, "firstOffset": 5}]  # to the log end
    assert told(0, 10_000, "LOG_END") is None


@pytest.mark.clause("LOG-21")
@pytest.mark.clause("LOG-23")
@pytest.mark.clause("LOG-26")
def test_reads_at_the_bounds_and_over_holes() -> None:
    h = History(segment_bytes=600)
    h.leader(LONG)
    h.follower(9, LONG)
    assert h.read(11).clause == "LOG-21"
    assert h.read(10)["sizeInBytes"] == 0
    over = h.read(1)
    assert (over["fetchOffset"], over["segmentBaseOffset"]) == (9, 9)
    assert h.read(0, length=1)["sizeInBytes"] > 1
    assert h.read(0, length=1, one=False)["firstEntryIncomplete"]
    assert h.read(0, length=1, one=False)["batches"] == []
    assert h.read(0, length=-1).clause == "LOG-23"
    above = h.read(9, "HIGH_WATERMARK")
    assert (above["fetchOffset"], above["sizeInBytes"]) == (9, 0)


@pytest.mark.clause("LOG-27")
@pytest.mark.clause("LOG-38")
def test_offsets_by_timestamp() -> None:
    h = History(segment_bytes=600)
    h.leader(LONG, timestamp=500)
    h.leader(timestamp=400)
    h.leader(LONG, timestamp=500, leader_epoch=2)

    def found(t: int) -> Any:
        said = h("fetchOffsetByTimestamp", timestamp=t)
        return said and (said["timestamp"], said["offset"], said["leaderEpoch"])

    assert [found(t) for t in (-1, -2, -4, -5, -6)] == [(-1, 3, 2), (-1, 0, 0), (-1, 0, 0), (-1, -1, -1), (-1, -1, -1)]
    assert (found(-3), found(0), found(450), found(501)) == ((500, 0, 0), (500, 0, 0), (500, 0, 0), None)
    h("updateHighWatermark", offset=3)
    h("maybeIncrementLogStartOffset", offset=1)
    assert found(450) is None  # the first segment counts, and has none that is left


@pytest.mark.clause("LOG-28")
@pytest.mark.clause("LOG-29")
@pytest.mark.clause("LOG-40")
def test_truncation_takes_the_whole_batch_around_the_offset() -> None:
    h = History()
    h.leader()
    h.leader(THREE, leader_epoch=1)
    assert h("truncateTo", offset=2) is True
    assert (h.log.log_end, h.log.segments[0].batches[-1].last_offset, h.log.epochs) == (2, 0, ((0, 0), (1, 1)))
    h("assignEpochStartOffset", leader_epoch=7, offset=2)
    assert h("endOffsetForEpoch", leader_epoch=1) == {"offset": 2, "leaderEpoch": 1}
    assert h("truncateTo", offset=5) is False
    assert h.log.epochs[-1] == (1, 1)
    assert h("endOffsetForEpoch", leader_epoch=7) is None


@pytest.mark.clause("LOG-31")
def test_producers_after_a_truncation_are_those_of_a_snapshot_and_what_stands_behind_it() -> None:
    h = History(segment_bytes=1000)
    for n in range(6):
        h.leader(LONG, producer_id=1 + n % 2, producer_epoch=0, base_sequence=n // 2)
    h.leader(producer_id=3, producer_epoch=0, base_sequence=0)
    assert (h.bases, list(h.log.producers.snapshots)) == ([0, 2, 4, 6], [2, 4, 6])
    assert h("truncateTo", offset=5) is True
    assert list(h.log.producers.snapshots) == [2, 4, 5]
    assert {i: p.batches[-1].last_sequence for i, p in h.log.producers.producers.items()} == {1: 2, 2: 1}


@pytest.mark.clause("LOG-30")
def test_a_full_truncation_lifts_the_high_watermark() -> None:
    h = History()
    h.leader(producer_id=1, producer_epoch=0, base_sequence=0)
    h("truncateFullyAndStartAt", offset=9)
    assert (h.log.log_start, h.log.high_watermark.offset, h.log.log_end, h.log.producers.producers) == (9, 9, 9, {})
    h("truncateTo", offset=4)
    assert (h.bases, h.log.log_start) == ([4], 4)


@pytest.mark.clause("LOG-32")
@pytest.mark.clause("LOG-35")
def test_the_log_start_rises_to_the_high_watermark_at_most() -> None:
    h = History()
    h.leader(), h.leader()
    assert h("maybeIncrementLogStartOffset", offset=1).clause == "LOG-32"
    h("updateHighWatermark", offset=2)
    assert h("maybeIncrementLogStartOffset", offset=1) is True
    assert (h.log.recovery_point, h.log.epochs) == (1, ((0, 1),))
    assert h("maybeIncrementLogStartOffset", offset=0) is False


@pytest.mark.clause("LOG-33")
@pytest.mark.clause("LOG-34")
@pytest.mark.clause("LOG-39")
def test_retention_goes_from_the_first_segment_on_up_to_the_high_watermark() -> None:
    h = History(segment_bytes=600, retention_bytes=500, file_delete_delay_ms=1000)
    for _ in range(3):
        h.leader(LONG)
    assert h("deleteOldSegments") == 0
    h("updateHighWatermark", offset=2)
    assert h("deleteOldSegments") == 1
    assert (h.bases, h.log.log_start) == ([1, 2], 1)
    assert list(h.log.removed) == ["00000000000000000000.log.deleted"]
    h("advance", ms=1000)
    assert not h.log.removed
    h = History(retention_ms=0)
    h.leader(timestamp=5)
    h("updateHighWatermark", offset=1)
    assert h("deleteOldSegments") == 1
    assert h.bases == [1]


@pytest.mark.clause("LOG-34")
def test_what_was_given_up_goes_by_its_name() -> None:
    """With the segment that was deleted first, the files of the later one of the same base offset."""
    h = History(file_delete_delay_ms=1000)
    h.leader()
    h("roll")
    h("truncateTo", offset=0)
    h("advance", ms=1)
    h.leader()
    h("roll")
    h.leader(**transactional(1))
    h.marker(1)
    h("truncateFullyAndStartAt", offset=0)
    given_up = {f"{n:020}{end}.deleted" for n, end in ((0, ".log"), (1, ".log"), (1, ".txnindex"))}
    assert {n for n in h.log.removed if "snapshot" not in n} == given_up
    h("advance", ms=999)
    assert {n for n in h.log.removed if "snapshot" not in n} == {"00000000000000000000.log.deleted"}


@pytest.mark.clause("LOG-34")
def test_an_empty_transaction_index_takes_the_place_of_one_that_was_given_up() -> None:
    """A cut leaves the file of a transaction index, empty, and a deletion renames it over the older one."""
    h = History(retention_bytes=0)
    name = f"{0:020}.txnindex.deleted"
    for sequence in (0, 0):
        h.leader(**transactional(1, sequence))
        h.marker(1)
        if name not in h.log.removed:
            h("truncateFullyAndStartAt", offset=0)
            assert h.log.removed[name] == 34
    h("updateHighWatermark", offset=1)
    h("truncateTo", offset=1)
    assert h("deleteOldSegments") == 1
    assert name not in h.log.removed


@pytest.mark.clause("LOG-39")
def test_what_lies_below_the_log_start_does_not_hide_what_is_too_old() -> None:
    """KAFKA-12177: in one pass."""
    h = History(segment_bytes=600, retention_ms=20_000)
    for timestamp in (1_000_000, 900_000, 1_000_000):
        h.leader(LONG, timestamp=timestamp)
    h("updateHighWatermark", offset=3)
    assert h("deleteOldSegments") == 0
    h("maybeIncrementLogStartOffset", offset=1)
    assert h("deleteOldSegments") == 2
    assert h.bases == [2]


@pytest.mark.clause("LOG-36")
def test_flush_messages() -> None:
    h = History(flush_messages=3)
    h.leader(), h.leader()
    assert h.log.recovery_point == 0
    h.leader()
    assert h.log.recovery_point == 3


@pytest.mark.clause("LOG-48")
def test_a_leader_asks_each_record_before_anything_stays() -> None:
    bounds = {"message_timestamp_before_max_ms": 1000, "message_timestamp_after_max_ms": 500}
    h = History(**bounds)
    for timestamp, refused in ((999_000, False), (998_999, True), (1_000_500, False), (1_000_501, True)):
        end = h.log.log_end
        assert isinstance(h.leader(timestamp=timestamp, leader_epoch=end), Refused) == refused
        assert (h.log.log_end - end, h.log.epochs[-1][0]) == ((0, end - 1) if refused else (1, end))
    assert h.marker(1, timestamp=998_999).clause == "LOG-48"
    h.follower(2, timestamp=5)
    again: dict[str, Any] = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    h.leader(**again)
    h("advance", ms=1001)
    assert h.leader(**again).clause == "LOG-48"  # a duplicate: its timestamp is asked first
    h = History(**bounds, message_timestamp_type="LogAppendTime")
    h.leader(timestamp=5)
    h = History(cleanup_policy="compact")
    assert h.leader([*A, KeyValue(None, "v")]).clause == "LOG-48"
    assert (h.log.epochs, h.log.log_end) == ((), 0)
    h.marker(1)
    h.follower(1, [KeyValue(None, "v")])


LOG_APPEND_TIME = {"message_timestamp_type": "LogAppendTime"}


@pytest.mark.clause("LOG-49")
def test_log_append_time_is_the_leader_s_clock() -> None:
    h = History(**LOG_APPEND_TIME)
    again: dict[str, Any] = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    said = h.leader(THREE, timestamp=5, **again)
    assert (said["maxTimestamp"], said["logAppendTime"]) == (1_000_000, 1_000_000)
    h("advance", ms=10)
    h.marker(1, timestamp=2_000_000)
    read = h.read(0)["batches"]
    assert [(b["maxTimestamp"], b["logAppendTime"]) for b in read] == [(1_000_000, True), (1_000_010, True)]
    assert h.log.producers.producers[1].last_timestamp == 1_000_010
    assert h("fetchOffsetByTimestamp", timestamp=1_000_001)["offset"] == 3
    assert h("fetchOffsetByTimestamp", timestamp=6)["timestamp"] == 1_000_000
    said = h.leader(THREE, timestamp=5, **again)
    assert (said["lastOffset"], said["logAppendTime"], said["maxTimestamp"]) == (2, 1_000_000, 1_000_010)
    h("crashAndReopen", log_start_offset=0, recovery_point=0)  # CRCs are right
    assert h.log.log_end == 4


@pytest.mark.clause("LOG-49")
@pytest.mark.clause("LOG-5")
@pytest.mark.clause("LOG-39")
def test_rolls_and_retention_go_by_log_append_time() -> None:
    for init, bases in ((LOG_APPEND_TIME, [0, 2]), ({}, [0])):
        h = History(segment_ms=20_000, retention_ms=1000, **init)
        h.leader(timestamp=1_000_000)
        h("advance", ms=20_000)
        h.leader(timestamp=1_000_000)
        h("advance", ms=1)
        h.leader(timestamp=1_000_000)
        assert h.bases == bases
        h("updateHighWatermark", offset=3)
        h("advance", ms=1000)
        assert h("deleteOldSegments") == 1
        assert h.bases == ([2] if init else [3])


@pytest.mark.clause("LOG-49")
def test_a_follower_keeps_the_type_that_the_leader_gave() -> None:
    for init in (LOG_APPEND_TIME, {}):
        h = History(**init)
        two = [BatchToReplicate(0, 5, tuple(A), log_append_time=True), BatchToReplicate(1, 7, tuple(A))]
        said = h("appendBatchesAsFollower", leader_epoch=0, batches=two)
        assert (said["maxTimestamp"], said["logAppendTime"]) == (7, -1)
        assert [(b["maxTimestamp"], b["logAppendTime"]) for b in h.read(0)["batches"]] == [(5, True), (7, False)]


@pytest.mark.clause("LOG-48")
def test_the_largest_timestamp_is_that_of_the_records() -> None:
    """Where a leader looks at them: a client's header may say another."""
    data = bytearray(batch("k"))
    struct.pack_into(">q", data, MAX_TIMESTAMP_AT, 5)
    struct.pack_into(">I", data, CRC_AT, crc32c(data[ATTRIBUTES_AT:]))
    config = replace(CONFIG, timestamp_after_max_ms=10)
    log = UnifiedLog("logs/t-0", SimulatedDisk(), config, lambda: 1_000_000, lambda _, task: task())
    assert log.append_as_leader(bytes(data), 0).max_timestamp == 1_000_000
    assert log.fetch_offset_by_timestamp(6) == (1_000_000, 0, 0)


EFFECTS = ("topicId", "epochs", "roll", "snapshot", "bytes", "txnIndex", "flush")


@pytest.mark.clause("LOG-37")
@pytest.mark.parametrize("effect", EFFECTS)
def test_what_fails_leaves_what_was_before_and_nothing_after(effect: str) -> None:
    h = History(segment_bytes=140, flush_messages=1)
    h.leader(producer_id=1, producer_epoch=0, base_sequence=0, transactional=effect == "txnIndex")
    h("assignTopicId", topic_id="jpgNOlw2QPyNuJQPDpnMMA")
    before = h.log.log_end
    refused = h.marker(1, leader_epoch=1, fail_at=effect)
    assert refused.clause == "LOG-37"
    assert (h.log.log_end > before) == (effect in ("txnIndex", "flush"))
    assert h.leader().clause == "LOG-37"
    assert h("flush", force_flush_active_segment=False).clause == "LOG-37"
    assert h("roll").clause == "LOG-37"
    assert h("truncateFullyAndStartAt", offset=9).clause == "LOG-37"
    assert h("read", offset=0, max_length=100, isolation="LOG_END", min_one_message=True).clause == "LOG-37"
    if effect == "txnIndex":
        assert h.outside("updateHighWatermark", offset=h.log.log_end).clause == "LOG-20"
    else:
        assert h("updateHighWatermark", offset=h.log.log_end) == h.log.log_end
    h("assignEpochStartOffset", leader_epoch=9, offset=h.log.log_end)
    assert h.log.epochs_file is not None
    assert h.log.epochs_file[-1] == (9, h.log.log_end)
    h("crashAndReopen", log_start_offset=0, recovery_point=0)
    assert not isinstance(h.leader(leader_epoch=9), Refused)


@pytest.mark.clause("LOG-9")
def test_verifications_end_though_the_append_is_refused() -> None:
    """As Kafka 4.3.0: the sequence of the batch that comes next is not compared with that of the verification."""
    h = History(max_message_bytes=200)
    one: dict[str, Any] = {"producer_id": 1, "producer_epoch": 0, "transactional": True}
    assert h.leader(LONG, base_sequence=0, **one).clause == "LOG-3"
    h.fetched(sent(0, 2, 0, kind="transactional"))
    refused = h.fetched(sent(1, 1, 0, kind="transactional"), sent(2, 2, 1))
    assert refused.clause == "PSM-9"
    assert not isinstance(h.leader(base_sequence=5, **one), Refused)


@pytest.mark.clause("LOG-6")
@pytest.mark.clause("LOG-9")
@pytest.mark.clause("LOG-22")
def test_a_segment_above_the_log_end_that_a_refused_append_has_left() -> None:
    """As Kafka 4.3.0: nothing can be appended any more until the log is cut, or loaded again."""
    h = History(segment_bytes=600)
    h.fetched(sent(0, 1, 0, LONG, kind="transactional"))
    assert h.fetched(sent(100, 1, 1, LONG)).clause == "PSM-9"
    assert [s.base_offset for s in h.log.segments] == [0, 100]
    assert (h.log.log_end, h.log.recovery_point) == (1, 100)
    for refused in (h("roll"), h.leader(), h.fetched(sent(1, -1, -1))):
        assert refused.clause == "LOG-6"
    h("crashAndReopen", log_start_offset=0, recovery_point=1)
    assert h.log.log_end == 100
    assert not isinstance(h.leader(), Refused)


@pytest.mark.clause("LOG-9")
def test_nothing_is_said_of_an_append_that_begins_below_the_active_segment_and_ends_in_it() -> None:
    """Kafka 4.3.0 has written it when its indexes refuse the offset below their base. Within one batch they do not."""
    h = History(segment_bytes=600)
    h.fetched(sent(0, 1, 0, LONG, kind="transactional"))
    assert h.fetched(sent(2, 1, 1, LONG)).clause == "PSM-9"
    across = [sent(1, -1, -1), sent(2, -1, -1)]
    assert h.outside("appendBatchesAsFollower", leader_epoch=0, batches=across).clause == "LOG-9"
    assert not isinstance(h.fetched(sent(1, -1, -1, THREE)), Refused)
    assert (h.bases, h.log.log_end) == ([0, 2], 4)


@pytest.mark.clause("LOG-10")
def test_two_markers_in_one_append() -> None:
    """The transaction that the second one ends is open at the first."""
    h = History()
    h.fetched(sent(0, 1, 0, kind="transactional"), sent(1, 2, 0, kind="transactional"))
    h.fetched(sent_marker(2, 2, "abort"), sent_marker(3, 1, "commit"))
    assert [a.last_stable_offset for a in h.log.active.aborted] == [0]


@pytest.mark.clause("LOG-37")
@pytest.mark.clause("LOG-7")
def test_a_roll_that_fails_leaves_the_segment() -> None:
    """An empty one, which the new one would replace, too: the log has an active segment whatever fails."""
    for records, more in (([], {"segment_index_bytes": 24}), ([A], {})):
        h = History(**more)
        for r in records:
            h.leader(r)
        assert h("roll", fail_at="roll").clause == "LOG-37"
        assert (h.bases, h.log.removed, h.log.offline) == ([0], {}, True)
        h("crashAndReopen", log_start_offset=0, recovery_point=0)
        assert h("roll") == len(records)


@pytest.mark.clause("LOG-37")
@pytest.mark.clause("LOG-33")
def test_retention_that_cannot_roll_deletes_nothing() -> None:
    for effect, bases in (("roll", [0]), ("snapshot", [0, 1])):
        h = History(retention_ms=0)
        h.leader(timestamp=5)
        h("updateHighWatermark", offset=1)
        assert h("deleteOldSegments", fail_at=effect).clause == "LOG-37"
        assert (h.bases, h.log.log_start, h.log.removed) == (bases, 0, {})


@pytest.mark.clause("LOG-37")
@pytest.mark.clause("LOG-22")
def test_a_truncation_that_fails_leaves_the_high_watermark_above_the_log() -> None:
    h = History(segment_bytes=1000)
    for _ in range(3):
        h.leader(LONG)
    h("updateHighWatermark", offset=3)
    assert h("truncateTo", offset=1, fail_at="snapshot").clause == "LOG-37"
    assert (h.log.log_end, h.log.high_watermark.offset, list(h.log.producers.snapshots)) == (1, 3, [])
    h("crashAndReopen", log_start_offset=0, recovery_point=0)
    assert (h.log.log_end, h.log.high_watermark.offset) == (1, 0)
    assert h("truncateFullyAndStartAt", offset=9, log_start_offset=0, fail_at="snapshot").clause == "LOG-37"
    assert (h.bases, h.log.log_end, h.log.high_watermark.offset) == ([9], 9, 0)


REOPEN = {"log_start_offset": 0, "recovery_point": 0}


def three_segments(**init: Any) -> History:
    """Each with a batch of a producer, all replicated; and leader epochs 0, 1 and 2."""
    h = History(segment_bytes=600, **init)
    for n in range(3):
        h.leader(LONG, leader_epoch=n, producer_id=n, producer_epoch=0, base_sequence=0)
    h("updateHighWatermark", offset=3)
    return h


@pytest.mark.clause("LOG-50")
def test_a_truncation_that_cannot_rename_has_given_up_its_segments() -> None:
    h = three_segments()
    before = h.log
    assert h("truncateTo", offset=1, fail_at="rename").clause == "LOG-37"
    assert (h.bases, h.log.log_end, h.log.high_watermark, h.log.removed) == ([0, 1], 3, before.high_watermark, {})
    assert (h.log.epochs, h.log.producers) == (before.epochs, before.producers)
    h("crashAndReopen", **REOPEN)
    assert (h.bases, h.log.log_end) == ([0, 1, 2], 3)
    h("updateHighWatermark", offset=3)
    assert h("truncateFullyAndStartAt", offset=9, fail_at="rename").clause == "LOG-37"
    assert (h.bases, h.log.log_end, h.log.log_start) == ([2], 3, 0)
    h("crashAndReopen", **REOPEN)
    assert (h.bases, h.log.log_end) == ([0, 1, 2], 3)


@pytest.mark.clause("LOG-50")
def test_a_full_truncation_of_one_segment_that_cannot_be_renamed() -> None:
    """The new one is there already, unless it is to have the old one's name."""
    for offset, bases, after in ((9, [9], [0, 9]), (0, [0], [0])):
        h = History()
        h.leader()
        assert h("truncateFullyAndStartAt", offset=offset, fail_at="rename").clause == "LOG-37"
        assert (h.bases, h.log.log_end, len(h.log.epochs)) == (bases, 1, 1)
        h("crashAndReopen", **REOPEN)
        assert (h.bases, h.log.log_end) == (after, 9 if offset else 1)
    h = History()
    h.leader(THREE)
    h("truncateFullyAndStartAt", offset=1, fail_at="rename")
    assert h.outside("crashAndReopen", **REOPEN).clause == "LOG-50"


@pytest.mark.clause("LOG-50")
@pytest.mark.clause("LOG-33")
def test_retention_that_cannot_rename_has_raised_the_log_start() -> None:
    h = three_segments(retention_bytes=500)
    assert h("deleteOldSegments", fail_at="rename").clause == "LOG-37"
    assert (h.bases, h.log.log_start, h.log.removed) == ([1, 2], 1, {})
    h("crashAndReopen", log_start_offset=1, recovery_point=0)
    assert h.bases == [0, 1, 2]
    h("updateHighWatermark", offset=3)
    h("maybeIncrementLogStartOffset", offset=2)
    assert h("deleteOldSegments", fail_at="rename").clause == "LOG-37"  # those below the log start
    assert (h.bases, h.log.log_start) == ([2], 2)


@pytest.mark.clause("LOG-37")
def test_a_cut_that_fails_leaves_the_log_end() -> None:
    h = History(segment_bytes=600)
    h.leader(**transactional(1))
    h.marker(1)
    h.leader(LONG)
    h.leader(LONG)
    before = h.log
    assert h("truncateTo", offset=1, fail_at="cut").clause == "LOG-37"
    assert (h.bases, h.log.log_end, h.log.epochs) == ([0], 4, before.epochs)
    assert (h.log.active.batches, h.log.active.aborted) == (before.segments[0].batches, ())
    h("crashAndReopen", **REOPEN)
    assert (h.bases, h.log.log_end, len(h.log.active.aborted)) == ([0], 2, 1)
    h("truncateTo", offset=2, fail_at="cut")
    assert not h.log.offline  # there was nothing to cut


@pytest.mark.clause("LOG-51")
def test_epochs_that_the_scheduler_cannot_write_do_not_fail_the_call() -> None:
    h = three_segments()
    assert h("truncateTo", offset=2, fail_at="epochs") is True
    assert (h.log.epochs, h.log.epochs_file, h.log.offline) == (((0, 0), (1, 1)), ((0, 0), (1, 1), (2, 2)), True)
    assert (h.log.log_end, h.log.high_watermark.offset) == (2, 2)
    h("crashAndReopen", **REOPEN)
    assert h.log.epochs == h.log.epochs_file == ((0, 0), (1, 1))
    h("assignEpochStartOffset", leader_epoch=5, offset=2)
    assert h("truncateTo", offset=2, fail_at="epochs") is False
    assert (h.log.epochs[-1], h.log.offline) == ((1, 1), True)
    h = three_segments()
    assert h("maybeIncrementLogStartOffset", offset=2, fail_at="epochs") is True
    assert (h.log.log_start, h.log.epochs, h.log.offline) == (2, ((2, 2),), True)
    assert h.log.epochs_file == ((0, 0), (1, 1), (2, 2))


@pytest.mark.clause("LOG-51")
def test_a_full_truncation_that_cannot_write_epochs_ends_there() -> None:
    h = three_segments()
    assert h("truncateFullyAndStartAt", offset=9, fail_at="epochs").clause == "LOG-37"
    assert (h.bases, h.log.log_end, h.log.epochs, h.log.epochs_file) == ([9], 9, (), ((0, 0), (1, 1), (2, 2)))
    assert (h.log.log_start, h.log.high_watermark.offset, len(h.log.producers.producers)) == (0, 3, 3)


@pytest.mark.clause("LOG-37")
def test_a_close_that_fails_leaves_the_log_out_of_service() -> None:
    h = History()
    h("assignTopicId", topic_id=IDS[0])
    h.leader(producer_id=1, producer_epoch=0, base_sequence=0)
    assert h("closeAndReopen", **REOPEN, fail_at="snapshot").clause == "LOG-37"
    assert (h.log.offline, list(h.log.producers.snapshots)) == (True, [])
    h("crashAndReopen", **REOPEN)
    h("closeAndReopen", **REOPEN, fail_at="topicId")  # the id is there
    assert not h.log.offline
    h = History()
    h("assignTopicId", topic_id=IDS[0])
    assert h("closeAndReopen", **REOPEN, fail_at="topicId").clause == "LOG-37"
    assert (h.log.offline, h.log.topic_id_file) == (True, None)


@pytest.mark.clause("LOG-37")
@pytest.mark.clause("LOG-35")
def test_a_flush_that_fails_leaves_the_recovery_point() -> None:
    h = History()
    assert h("flush", force_flush_active_segment=True, fail_at="flush") is None  # there is nothing to flush
    h.leader()
    assert h("flush", force_flush_active_segment=False, fail_at="flush").clause == "LOG-37"
    assert h.log.recovery_point == 0
    h = History()
    h.leader()
    h("flush", force_flush_active_segment=False)
    assert h("flush", force_flush_active_segment=False, fail_at="flush") is None
    assert h("flush", force_flush_active_segment=True, fail_at="flush").clause == "LOG-37"
    assert h.log.recovery_point == 1


@pytest.mark.clause("LOG-42")
def test_a_log_that_was_closed_is_as_it_was_but_for_its_high_watermark() -> None:
    h = History(segment_bytes=600)
    h.leader(LONG, **transactional(1))
    h.leader(LONG, leader_epoch=3)
    h.leader(THREE, leader_epoch=3)
    h("truncateTo", offset=4)
    h("updateHighWatermark", offset=2)
    before = h.log
    h("closeAndReopen", log_start_offset=0, recovery_point=0)
    assert [s.batches for s in h.log.segments] == [s.batches for s in before.segments]
    assert (h.log.epochs, list(h.log.producers.producers)) == (before.epochs, [1])
    assert list(h.log.producers.snapshots) == [1, 2]
    assert (before.log_end, h.log.log_end, h.log.recovery_point, h.log.high_watermark.offset) == (4, 2, 2, 0)


@pytest.mark.clause("LOG-43")
def test_sequence_numbers_wrap_when_they_are_read_again() -> None:
    b = BatchToReplicate(0, 0, tuple(THREE), 0, 7, 0, 2**31 - 2)
    disk = SimulatedDisk()
    opened(disk).append_as_follower(log_driver.encoded(b), 0)
    again = opened(disk.crash(lambda _: True, lambda f: f.content), clean=False)
    assert [(x.first_seq, x.last_seq) for x in again.producers.producers[7].batches] == [(2**31 - 2, 0)]


@pytest.mark.clause("LOG-47")
def test_a_closed_log_without_snapshots_knows_no_producers() -> None:
    h = History(segment_bytes=600)
    h.leader(LONG, producer_id=1, producer_epoch=0, base_sequence=0)
    h.leader(LONG, producer_id=1, producer_epoch=0, base_sequence=1)
    reopen = {"log_start_offset": 0, "recovery_point": 0}
    h("closeAndReopen", **reopen)
    assert list(h.log.producers.producers) == [1]
    h("closeAndReopen", **reopen, producer_snapshots_deleted=True)
    assert (h.log.producers.producers, list(h.log.producers.snapshots)) == ({}, [1, 2])


@pytest.mark.clause("LOG-31")
def test_an_epoch_that_falls_back_within_what_is_read_again() -> None:
    """A segment counts as one append. Kafka 4.3.0 and 3.9.1 answer so."""
    h = History()
    reopen = {"log_start_offset": 0, "producer_snapshots_deleted": True}
    h.leader(producer_id=1, producer_epoch=0, base_sequence=0)
    h("roll")
    h.marker(1, producer_epoch=1)
    h("closeAndReopen", **reopen, recovery_point=0)
    h.marker(1)
    h("roll")
    h("crashAndReopen", **reopen, recovery_point=3)
    (known,) = h.log.producers.producers.values()
    assert (known.epoch, len(known.batches)) == (0, 1)


@pytest.mark.clause("LOG-31")
def test_a_batch_within_a_transaction_that_it_is_not_of_cannot_be_read_again() -> None:
    h = History()
    h.leader(**transactional(1))
    reopen = {"log_start_offset": 0, "recovery_point": 0}
    h("closeAndReopen", **reopen, producer_snapshots_deleted=True)
    h.leader(producer_id=1, producer_epoch=0, base_sequence=0)
    assert h.outside("crashAndReopen", **reopen).clause == "LOG-31"
    assert h.outside("truncateTo", offset=1).clause == "LOG-31"


IDS = ("jpgNOlw2QPyNuJQPDpnMMA", "AAAAAAAAAAAAAAAAAAAAAQ")


@pytest.mark.clause("LOG-44")
def test_the_topic_is_known_before_a_batch_is_there() -> None:
    h = History(max_message_bytes=300)
    h("assignTopicId", topic_id=IDS[0])
    assert (h.log.topic_id, h.log.topic_id_file) == (IDS[0], None)
    assert h.leader(fail_at="topicId").clause == "LOG-37"
    assert (h.log.log_end, h.log.topic_id_file, h.log.offline) == (0, None, True)
    h("crashAndReopen", log_start_offset=0, recovery_point=0)
    assert h.log.topic_id is None
    h("assignTopicId", topic_id=IDS[0])
    assert h.leader(LONG).clause == "LOG-3"
    assert h.log.topic_id_file == IDS[0]
    h = History()
    h("assignTopicId", topic_id=IDS[0])
    h("flushMetadataFile")
    assert h.log.topic_id_file == IDS[0]


@pytest.mark.clause("LOG-45")
def test_another_topic_id_is_refused() -> None:
    h = History()
    h("assignTopicId", topic_id=IDS[0])
    h("assignTopicId", topic_id=IDS[0])
    assert h("assignTopicId", topic_id=IDS[1]).clause == "LOG-45"
    reopen = {"log_start_offset": 0, "recovery_point": 0}
    assert h("closeAndReopen", **reopen, topic_id=IDS[1]).clause == "LOG-45"
    assert h.log.topic_id == h.log.topic_id_file == IDS[0]
    assert h("closeAndReopen", **reopen, topic_id=IDS[0]) is None
    h.outside("assignTopicId", topic_id="A" * 22)
    h = History()
    h("closeAndReopen", **reopen, topic_id=IDS[1])
    assert (h.log.topic_id, h.log.topic_id_file) == (IDS[1], None)


@pytest.mark.clause("LOG-46")
def test_what_is_no_whole_batch_is_left_out() -> None:
    h = History()
    size = h.leader(trailing_bytes=60)["validBytes"]
    assert h.log.segments[0].size == size
    assert h.leader(trailing_bytes=11, trailing_zeros=True)["validBytes"] == size
    assert h.leader(trailing_bytes=12, trailing_zeros=True).clause == "LOG-46"
    two = [BatchToReplicate(2, 0, tuple(THREE)), BatchToReplicate(5, 0, tuple(A), damaged=True)]
    assert h("appendBatchesAsFollower", leader_epoch=0, batches=two, missing_bytes=1)["lastOffset"] == 4
    two = [b if b.damaged else BatchToReplicate(6, 0, tuple(A)) for b in two[1:]]
    said = h("appendBatchesAsFollower", leader_epoch=0, batches=two, missing_bytes=1)
    assert (said["firstOffset"], said["validBytes"], h.log.log_end) == (-1, 0, 5)


@pytest.mark.clause("LOG-41")
def test_directories_that_are_no_log() -> None:
    h = History()
    assert h("parseTopicPartitionName", name="a-b-3.x-future") == {"topic": "a-b", "partition": 3}
    assert [h("parseTopicPartitionName", name=n).clause for n in ("t", "-1", "t-x", "t-0-delete")] == ["LOG-41"] * 4


@pytest.mark.clause("LOG-43")
@pytest.mark.clause("LOG-35")
def test_a_recovery_does_not_flush() -> None:
    h = History()
    h.leader(), h.leader()
    h("crashAndReopen", log_start_offset=0, recovery_point=0, torn_bytes=1)
    assert (h.log.log_end, h.log.recovery_point) == (1, 0)


# ---- the disk, between any two writes
CONFIG = LogConfig(
    segment_bytes=300, index_interval_bytes=0, segment_index_bytes=240, flush_messages=3, file_delete_delay_ms=0
)


def batch(key: str) -> bytes:
    return log_driver.encoded(BatchToReplicate(0, 1_000_000, (KeyValue(key, "v" * 60),), -1))


def opened(disk: SimulatedDisk, **more: Any) -> UnifiedLog:
    return UnifiedLog("logs/t-0", disk, CONFIG, lambda: 1_000_000, lambda _, task: task(), **more)


def keys(log: UnifiedLog, isolation: str = "LOG_END") -> list[str]:
    """What a reader is given, from the log start to the bound."""
    out, at = [], log.log_start
    while found := log.read(at, 10_000, isolation, True).records:
        for h in headers(found):
            records = list(Batch(found[h.position : h.position + h.size], 0).records())
            out += [(r.key or b"").decode() for r in records]
            at = h.last_offset + 1
    return out


def writes(log: UnifiedLog) -> Iterator[None]:
    for n in range(5):
        log.append_as_leader(batch(f"k{n}"), n // 2)
        yield
    log.update_high_watermark(4)
    log.maybe_increment_log_start_offset(3)
    log.delete_old_segments()
    yield
    log.truncate_to(4)
    yield


def steps() -> int:
    disk = SimulatedDisk()
    for _ in writes(opened(disk)):
        pass
    return disk.steps


@pytest.mark.clause("LOG-1")
@pytest.mark.clause("LOG-35")
def test_a_crash_before_any_write_loses_nothing_below_the_recovery_point() -> None:
    first = steps()
    assert first > 40
    for crash_at in range(1, first):
        disk = SimulatedDisk()
        log = None
        point = 0
        disk.crash_at = crash_at
        try:
            log = opened(disk)
            for _ in writes(log):
                point = log.recovery_point
        except Crashed:
            point = log.recovery_point if log is not None else 0
        for left in (disk.lose(), disk.crash(lambda _: True, lambda f: f.content)):
            again = opened(left, clean=False, recovery_point=point, log_start=0)
            assert again.log_end >= point
            found = keys(again)
            assert found == [f"k{n}" for n in range(again.log_start, again.log_end)]


class WatchedDisk(SimulatedDisk):
    """A disk that has somebody look before each write."""

    look: Callable[[], None] = staticmethod(lambda: None)

    def _step(self, path: str) -> None:
        self.look()
        super()._step(path)


@pytest.mark.clause("LOG-24")
@pytest.mark.clause("LOG-22")
@pytest.mark.clause("LOG-33")
def test_readers_between_any_two_writes_see_no_gap() -> None:
    disk = WatchedDisk()
    log = opened(disk)
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        assert log.log_start <= log.last_stable <= log.high_watermark.offset <= log.log_end
        assert keys(log) == [f"k{n}" for n in range(log.log_start, log.log_end)]

    disk.look = look
    for _ in writes(log):
        disk.look = look
    assert looks > 40


class ReadDisk(log_driver.RefusingDisk):
    """A disk that has somebody look before each write, and is not asked what that changes."""

    look: Callable[[], None] = staticmethod(lambda: None)
    looks = 0

    def _step(self, path: str) -> None:
        ReadDisk.looks, look = ReadDisk.looks + 1, ReadDisk.look
        ReadDisk.look = staticmethod(lambda: None)
        look()
        ReadDisk.look = staticmethod(look)
        super()._step(path)


class Reader(UnifiedLog):
    """A log as a reader has it, whose look-ups of places are its own."""

    def _set_high_watermark(self, place: impl.Place) -> None:
        self.high_watermark = place


def given(log: UnifiedLog, isolation: str) -> list[tuple[Header, list[AbortedTxn]]]:
    """The batches that a reader is given from the log start on, each with the aborted transactions it is told of."""
    reader, out = copy.copy(log), []
    reader.__class__ = Reader
    at = log.log_start
    try:
        while (found := reader.read(at, 10_000, isolation, True)).records:
            out += [(h, found.aborted or []) for h in headers(found.records)]
            at = out[-1][0].last_offset + 1
    except impl.OffsetOutOfRange:
        pass
    except StorageError as e:
        raise AssertionError("a reader is told that the disk failed") from e
    return out


def whole(log: Log) -> set[tuple[int, int, int]]:
    return {(b.base_offset, b.last_offset, b.size) for s in log.segments for b in s.batches}


def looked(log: UnifiedLog, before: Log, after: Log) -> None:
    """Of what was there before a call or is there after it, readers between its writes are given whole batches, and all
    that stays; committed readers nothing undecided, and nothing aborted that they are not told of."""
    if log.offline or any(x.segments[0].base_offset > x.log_start for x in (before, after)):  # nothing is read there
        return
    assert log.bases
    every = [h for h, _ in given(log, "LOG_END")]
    seen = [(h.base_offset, h.last_offset, h.size) for h in every]
    assert set(seen) <= whole(before) | whole(after)
    assert seen == sorted(set(seen))
    assert {b for b in whole(before) & whole(after) if b[1] >= log.log_start} <= set(seen)
    assert [b for b in seen if b not in whole(before) and b[1] >= log.log_end] == []
    replicated = [h for h, _ in given(log, "HIGH_WATERMARK")]
    assert [h for h in replicated if h.base_offset >= log.high_watermark.offset] == []
    opened = before.producers.opened.items() & after.producers.opened.items()
    aborted = {e for s in before.segments for e in s.aborted} & {e for s in after.segments for e in s.aborted}
    for h, told in given(log, "TXN_COMMITTED"):
        if h.attributes & TRANSACTIONAL and not h.attributes & CONTROL:
            assert not any(p == h.producer_id and first <= h.base_offset for first, p in opened)
            of_it = [e for e in aborted if e.producer_id == h.producer_id and e.first_offset <= h.base_offset]
            for e in of_it:
                if h.base_offset < e.last_offset:
                    assert any((t.producer_id, t.first_offset) == (e.producer_id, e.first_offset) for t in told)


@pytest.mark.clause("LOG-1")
@pytest.mark.clause("LOG-7")
@pytest.mark.clause("LOG-24")
@pytest.mark.clause("LOG-30")
@pytest.mark.clause("LOG-33")
def test_readers_between_the_writes_of_random_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_driver, "RefusingDisk", ReadDisk)
    monkeypatch.setattr(ReadDisk, "looks", 0)
    operations = [op for op in machine.operations.values() if op.kind not in ("restart", "crash")]
    operations += [machine.find(n) for n in ("appendAsLeader", "appendEndTxnMarker", "updateHighWatermark")] * 8
    for seed in range(15):
        rng = random.Random(seed)
        driver, init = log_driver.Driver(), draw_init(machine, rng.choice)
        driver.reset(init)
        state = machine.initial(**init)
        for _ in range(250):
            op = rng.choice(operations)
            arguments = draw(machine, op, state, rng.choice)
            step = None if arguments is None else machine.apply(state, op.name, arguments, contracts=False)
            if arguments is None or not isinstance(step, Step):
                continue
            ReadDisk.look = staticmethod(partial(looked, driver.subject, state, step.state))
            assert outcome(driver.apply(op.name, arguments)) == outcome(step.result)
            ReadDisk.look = staticmethod(lambda: None)
            state = step.state
        assert driver.observe() == machine.observe(state)
    assert ReadDisk.looks > 1000


@pytest.mark.clause("LOG-37")
def test_a_disk_that_refuses_any_write_takes_the_log_out_of_service() -> None:
    class FullDisk(SimulatedDisk):
        left = 10_000

        def _step(self, path: str) -> None:
            if self.left == 0:
                raise OSError(28, "no space left on device", path)
            self.left -= 1
            super()._step(path)

    for left in range(steps() - 12):
        disk = FullDisk()
        log = opened(disk)
        disk.left = left
        with pytest.raises(StorageError):
            for _ in writes(log):
                pass
        with pytest.raises(StorageError):
            log.append_as_leader(batch("x"), 9)
        again = opened(disk.crash(lambda _: True, lambda f: f.content), clean=False, recovery_point=0)
        assert keys(again) == [f"k{n}" for n in range(again.log_start, again.log_end)]


@pytest.mark.clause("LOG-37")
def test_a_segment_that_cannot_be_read_takes_the_log_out_of_service_and_loses_nothing() -> None:
    disk = SimulatedDisk()
    log = opened(disk)
    for n in range(5):
        log.append_as_leader(batch(f"k{n}"), 0)
    assert len(log.bases) > 1
    disk.broken = {log.segments[0].path(LOG)}
    with pytest.raises(StorageError):
        log.read(0, 1000, "LOG_END", True)
    disk.broken = set()
    with pytest.raises(StorageError):
        log.append_as_leader(batch("x"), 0)
    assert keys(opened(disk, clean=False)) == [f"k{n}" for n in range(5)]


@pytest.mark.clause("LOG-43")
def test_what_is_no_file_of_a_log_stays_where_it_is() -> None:
    disk = SimulatedDisk()
    opened(disk).append_as_leader(batch("k0"), 0)
    foreign = {f"logs/t-0/{name}": b"of somebody" for name in ("readme.txt", "core", "x.log.bak", ".hidden")}
    for name, content in foreign.items():
        disk.write(name, content)
    for clean in (True, False):
        assert keys(opened(disk, clean=clean)) == ["k0"]
    assert {name: disk.read(name) for name in foreign} == foreign


@pytest.mark.clause("LOG-44")
def test_a_crash_leaves_no_batch_without_the_topic() -> None:
    late: list[Callable[[], None]] = []

    def log_on(disk: SimulatedDisk) -> UnifiedLog:
        return UnifiedLog(
            "logs/t-0", disk, CONFIG, lambda: 1_000_000, lambda _, task: late.append(task), topic_id=IDS[0]
        )

    disk = SimulatedDisk()
    log_on(disk).append_as_leader(batch("k"), 0)
    assert disk.steps > 5
    for crash_at in range(1, disk.steps + 1):
        disk = SimulatedDisk()
        disk.crash_at = crash_at
        with suppress(Crashed):
            log_on(disk).append_as_leader(batch("k"), 0)
        for left in disk.outcomes():
            log = opened(left, clean=False)
            assert log.topic_id == IDS[0] or log.size == 0


@pytest.mark.clause("LOG-46")
def test_an_append_without_a_whole_batch() -> None:
    log = opened(SimulatedDisk())
    for size in (0, 11, 17, len(batch("k")) - 1):
        assert log.append_as_leader(batch("k")[:size], 0).valid_bytes == 0
    for size in (12, 17, 18):
        with pytest.raises(CorruptRecord):
            log.append_as_leader(batch("k") + bytes(size), 0)
    assert log.log_end == 0


def test_real_files(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    config = LogConfig(segment_bytes=1000)
    log = UnifiedLog(str(tmp_path / "t-0"), RealDisk(), config, lambda: 0, lambda _, task: task())
    for n in range(20):
        log.append_as_leader(batch(f"k{n}"), 0)
    assert len(log.bases) > 1
    assert keys(log) == [f"k{n}" for n in range(20)]
    log.close()
    again = UnifiedLog(str(tmp_path / "t-0"), RealDisk(), config, lambda: 0, lambda _, task: task())
    assert keys(again) == [f"k{n}" for n in range(20)]


# ---- Kafka opens what impl wrote
def opened_by_kafka(driver: log_driver.Driver, folder: Path, log_start: int, clean: bool, c: LogConfig) -> Any:
    """What Kafka finds in the files of the simulated disk."""
    for name, file in driver.disk.names.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
    numbers = [log_start, str(clean).lower(), c.index_interval_bytes, c.segment_index_bytes, driver.now]
    return orjson.loads(run_class("kafkaspec.target.OpenLog", str(folder / driver.directory), *map(str, numbers)))


@pytest.mark.deep
@pytest.mark.clause("LOG-42")
@pytest.mark.clause("LOG-43")
@pytest.mark.parametrize("clean", [True, False])
def test_kafka_opens_random_logs_of_impl(tmp_path: Path, clean: bool) -> None:
    """With equal offsets, segments, epochs, producers and aborted transactions; after a crash, which perhaps tore the
    last batch, it recovers the same."""
    seen: Counter[str] = Counter()
    operations = [op for op in machine.operations.values() if op.name not in ("advance", "truncateFullyAndStartAt")]
    operations += [machine.find(n) for n in ("appendAsLeader", "appendEndTxnMarker", "updateHighWatermark")] * 40
    for seed in range(20):
        rng = random.Random(seed)
        driver = log_driver.Driver()
        init = draw_init(machine, rng.choice) | {"producer_id_expiration_ms": 86_400_000}  # as what opens it has
        driver.reset(init)
        state = machine.initial(**init)
        for _ in range(250):
            op = rng.choice(operations)
            arguments = draw(machine, op, state, rng.choice)
            step = None if arguments is None else machine.apply(state, op.name, arguments)
            if arguments is not None and isinstance(step, Step) and not step.state.offline:
                driver.apply(op.name, arguments)
                state = step.state
        stop = {"log_start_offset": state.log_start, "recovery_point": state.log_start, "last_shutdown_clean": clean}
        active = driver.subject.active
        torn = 0 if clean else rng.choice([0, min(active.size, 1), min(active.size, 90)])
        left = machine.apply(state, "closeAndReopen" if clean else "crashAndReopen", stop | {"torn_bytes": torn})
        if not isinstance(left, Step):
            continue
        if clean:
            driver.subject.close()
        driver.disk.truncate(active.path(LOG), active.size - torn)
        shown = machine.observe(left.state)
        found = opened_by_kafka(driver, tmp_path / str(seed), state.log_start, clean, driver.config)
        assert (found["logStart"], found["logEnd"]) == (shown["logStartOffset"], shown["logEndOffset"])
        assert found["segments"] == [[s["baseOffset"], s["size"]] for s in shown["segments"]]
        assert found["epochs"] == [[*e] for e in shown["leaderEpochs"]]
        assert found["aborted"] == [[*t] for t in shown["abortedTxns"]]
        assert found["producers"] == [producer(p) for p in sorted(shown["producers"], key=lambda p: p["producerId"])]
        seen += Counter({k: len(v) for k, v in found.items() if isinstance(v, list)})
    assert min(seen[k] for k in ("segments", "epochs", "aborted", "producers")) > 10, seen


def producer(p: Any) -> list[int]:
    """What Kafka is asked of one: -1 without an open transaction, and without a batch."""
    opened, last = p["currentTxnFirstOffset"], p["batches"][-1][3] if p["batches"] else -1
    return [
        p["producerId"],
        p["epoch"],
        p["coordinatorEpoch"],
        p["lastTimestamp"],
        -1 if opened is None else opened,
        last,
    ]
