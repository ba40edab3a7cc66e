"""Log: the arguments that engines try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkaspec.contract.machine import Json
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.common.producers import UNKNOWN
from kafkaspec.spec.storage.log import machine
from kafkaspec.spec.storage.log_parts.contents import Batch, KeyValue, Log, size_of

RECORDS: list[Json] = [
    [["k0", "v"]],
    [["k1", "v1"], ["x", None], ["y", "z"]],
    [["k2", "a value that is long enough to fill a good part of one segment of this log, though not all of it"]],
    [["k", "v" * 400]],
    [["k", "v" * 700]],
    [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"], ["i", None]],
    [["m", "n"], [None, "o"]],
]
SIZE = size_of([KeyValue("k", "v" * 400)])
"""Of a batch that just fits where a limit is that."""
EFFECTS = ["topicId", "epochs", "roll", "snapshot", "bytes", "txnIndex", "flush"]
NAMES = [
    "t-0", "a-b-12", "t", "-1", "t-", "t-x", "t-0.a1-delete", "t-0.a1-future", "t-0-delete", "t.u-3.9-stray",
    "t-99999999999", "t--1", "t-2147483647", "t-2147483648", "t--2147483648", "t--2147483649",
]  # fmt: skip
SELDOM: list[Any] = [None] * 30
IDS = ["jpgNOlw2QPyNuJQPDpnMMA", "AAAAAAAAAAAAAAAAAAAAAQ"]


def _offsets(log: Log) -> list[int]:
    """Around batches and segments, the log's own first."""
    near = [log.log_end, log.high_watermark.offset, log.log_start, log.last_stable, log.log_end + 1, log.log_end - 1, 0]
    for s in log.segments[-3:]:
        near += [s.base_offset, s.base_offset + 1]
        for b in s.batches[-2:]:
            near += [b.last_offset, b.base_offset, b.last_offset + 1]
    near += [log.segments[0].base_offset, log.segments[0].base_offset - 1]
    return list(dict.fromkeys(o for o in near if o >= 0))


def _aborted(log: Log) -> list[int]:
    """Where aborted transactions begin."""
    return [t.first_offset for s in log.segments for t in s.aborted if t.first_offset >= log.log_start]


def _epochs(log: Log) -> list[int]:
    latest = log.epochs[-1].epoch if log.epochs else 0
    return [latest, latest, latest, latest + 1, max(0, latest - 1)]


def _epoch_of(log: Log) -> list[int]:
    return list(dict.fromkeys([0, *(p.epoch for p in log.producers.producers.values()), 1]))


def _next_epochs(log: Log) -> list[int]:
    known = [p.epoch for p in log.producers.producers.values() if p.epoch >= 0]
    return list(dict.fromkeys([-1, *known, 0, *(e + 1 for e in known)]))


def _sequences(log: Log) -> list[int]:
    out = [-1, 0]
    if not log.producers.producers:
        out.append(INT_MAX - 1)
    for p in log.producers.producers.values():
        out += [
            p.following(p.epoch),
            *(b.first_sequence for b in p.batches[-2:]),
            *(b.first_sequence for b in p.batches[:1]),
        ]
    return list(dict.fromkeys(out))


def _times(log: Log) -> list[int]:
    """Now, and where retention.ms begins to count."""
    kept = max(log.config.retention_ms, 0)
    near = [log.now, log.now, log.now - kept, log.now + 15_000, log.now - 20_000, log.now + 30_000, log.now - 1000]
    return [*near, 0, log.now + 2**33]


def _delays(log: Log) -> list[int]:
    """Some, and until the first segment is as old as retention.ms, and 1 ms older."""
    age = log.now - log.segments[0].largest.timestamp
    due = log.config.retention_ms - age
    return [1000, *(d for d in (due, due, due + 1) if 0 < d <= 10**6), 5, 10_000, 999]


def _batch(log: Log, at: int, records: Json, kind: str = "data", producer: int = -1, **more: Any) -> dict[str, Any]:
    known = log.producers.producers.get(producer, UNKNOWN)
    epoch = max(known.epoch, 0) if producer >= 0 else -1
    control = kind in ("abort", "commit")
    sequence = -1 if producer < 0 or control else max(0, known.following(epoch))
    latest = log.epochs[-1].epoch if log.epochs else 0
    return {
        "baseOffset": at, "timestamp": log.now, "records": [] if control else records, "leaderEpoch": latest,
        "producerId": producer, "producerEpoch": epoch, "baseSequence": sequence, "kind": kind, "coordinatorEpoch": 0,
        "damaged": False, "logAppendTime": False,
    } | more  # fmt: skip


def _fetched(log: Log) -> list[Json]:
    """What a leader may send, and what it should not."""
    at = log.log_end
    latest = log.epochs[-1].epoch if log.epochs else 0
    one = RECORDS[0]
    opens = _batch(log, at, one, "transactional", 2)
    out: list[Json] = [
        [_batch(log, at, RECORDS[1]), _batch(log, at + 3, RECORDS[0])],
        [_batch(log, at, RECORDS[0]), _batch(log, at + 1, RECORDS[1], leaderEpoch=latest + 1)],
        [_batch(log, at + 2, RECORDS[0]), _batch(log, at + 7, RECORDS[0])],
        [_batch(log, at, RECORDS[0], "transactional", 1), _batch(log, at + 1, RECORDS[0], "abort", 1)],
        [_batch(log, at, one, "abort", 1), _batch(log, at + 1, one), _batch(log, at + 2, one, "transactional", 2)],
        [opens, _batch(log, at + 1, one, "abort", 1), _batch(log, at + 2, one, "commit", 2)],
        [_batch(log, at, RECORDS[0], "abort", 1), _batch(log, at + 1, RECORDS[0], "abort", 2)],
        [_batch(log, at, RECORDS[0]), _batch(log, at + 1, RECORDS[0], damaged=True)],
        [_batch(log, at, RECORDS[1]), _batch(log, at, RECORDS[1])],
        [_batch(log, at + 3, RECORDS[1]), _batch(log, at, RECORDS[1])],
        [_batch(log, max(0, at - 1), RECORDS[0])],
        [_batch(log, at, RECORDS[2]), _batch(log, at + 1, RECORDS[3], leaderEpoch=latest + 1)],
        [_batch(log, at, RECORDS[3]), _batch(log, at + 1, RECORDS[3])],
        [_batch(log, at + 2**31, RECORDS[0])],
        [_batch(log, at, RECORDS[1], "transactional", 1, logAppendTime=True, timestamp=log.now - 30_000)],
        [_batch(log, at, one), _batch(log, at + 1, one, "abort", 1, logAppendTime=True, timestamp=log.now + 30_000)],
    ]  # fmt: skip
    for producer in log.producers.opened.values():
        out += 3 * [[_batch(log, at, RECORDS[3]), _batch(log, at + 1, one, "abort", producer)]]  # the log rolls for it
        out += [[_batch(log, at + 9, RECORDS[3], "data", producer)]]  # rolls behind a gap, and is refused
        for verified in log.producers.verifications:  # ends a verification, and is refused
            out += 3 * [[_batch(log, at, one, "transactional", verified), _batch(log, at + 1, one, "data", producer)]]
    return out


def _torn(log: Log) -> list[int]:
    sizes = [b.size for b in log.active.batches]
    return [0, 0, *(sizes[-1:]), 1, *(s - 1 for s in sizes[-1:]), sum(sizes[-2:])]


def _grown(log: Log) -> bool:
    """Whether there is something to lose: without it logs would stay small, and more would be asked than is there."""
    return log.offline or sum(len(s.batches) for s in log.segments) > 3


def _points(log: Log) -> list[int]:
    return list(
        dict.fromkeys(
            [
                log.recovery_point,
                log.log_start,
                *(s.base_offset for s in log.segments),
                log.log_end,
            ]
        )
    )


def _timestamps(log: Log) -> list[int]:
    out = [-1, -2, -3, -4, -5, -6, 0]
    for s in log.segments:
        out += [s.largest.timestamp + d for d in (0, 1) if s.batches]
        out += [b.max_timestamp for b in s.batches[-2:] if isinstance(b, Batch)]
    return list(dict.fromkeys(out))


def _lengths(log: Log) -> Sequence[int]:
    first = next((b.size for s in log.segments for b in s.batches), 70)
    return [600, first, first - 1, 2**31 - 1, 150, 1, 0, -1]


machine.candidates |= {
    "init:topic_partition": lambda _: ["t-0", "a-b-12", "t.u-3"],
    "init:segment_bytes": lambda _: [600, 300, 1000, SIZE, 2000],
    "init:segment_ms": lambda _: [100_000_000, 20_000, 2**63 - 1],
    "init:roll_jitter_ms": lambda _: [0, 7000, 1],
    "init:segment_index_bytes": lambda _: [1000, 2**16, 40, 24],
    "init:index_interval_bytes": lambda _: [1, 4096, 200, 10_000],
    "init:retention_bytes": lambda _: [1, -1, 1, -1, 142, 0],
    "init:retention_ms": lambda _: [-1, 20_000, 1000, 0],
    "init:cleanup_policy": lambda _: ["delete", "delete", "compact", "compact,delete"],
    "init:file_delete_delay_ms": lambda _: [1000, 0, 60_000, 100_000],
    "init:max_message_bytes": lambda _: [1 << 20, 450, 2**31 - 1, SIZE],
    "init:flush_messages": lambda _: [2**63 - 1, 4, 1],
    "init:producer_id_expiration_ms": lambda _: [86_400_000, 86_400_000, 10_000, 2**31 - 1],
    "init:max_transaction_timeout_ms": lambda _: [300_000, 60_000, 2**31 - 1],
    "init:message_timestamp_type": lambda _: ["CreateTime", "LogAppendTime", "CreateTime"],
    "init:message_timestamp_before_max_ms": lambda _: [2**63 - 1, 2**63 - 1, 20_000, 999],
    "init:message_timestamp_after_max_ms": lambda _: [2**63 - 1, 2**63 - 1, 15_000, 0],
    "leader_epoch": _epochs,
    "endOffsetForEpoch:leader_epoch": lambda s: [*(e.epoch for e in s.epochs), *_epochs(s), 0],
    "timestamp": _times,
    "records": lambda _: RECORDS,
    "producer_id": lambda _: [-1, 1, 2, -1, 0, 2**33],
    "appendEndTxnMarker:producer_id": lambda s: [1, 2, *s.producers.opened.values()],
    "producer_epoch": _next_epochs,
    "appendEndTxnMarker:producer_epoch": _epoch_of,
    "base_sequence": _sequences,
    "transactional": lambda _: [True, False],
    "base_offset": lambda s: [0] * 20 + [1],
    "trailing_bytes": lambda s: [0] * 20 + [12, 60, 11, 1, 17],
    "trailing_zeros": lambda _: [False, True],
    "missing_bytes": lambda _: [0] * 12 + [1, 70, 71, 60, 150, 10_000],
    "topic_id": lambda _: [IDS[0], IDS[0], IDS[1]],
    "closeAndReopen:topic_id": lambda _: [None, IDS[0], IDS[1]],
    "fail_at": lambda _: [*SELDOM, *EFFECTS],
    "roll:fail_at": lambda _: [*SELDOM, "roll"],
    "deleteOldSegments:fail_at": lambda _: [*SELDOM, "roll", "snapshot", "rename", "rename"],
    "maybeIncrementLogStartOffset:fail_at": lambda _: [*SELDOM, "epochs"],
    "closeAndReopen:fail_at": lambda _: [*SELDOM, "topicId", "snapshot"],
    "flush:fail_at": lambda _: [*SELDOM, "flush"],
    "truncateTo:fail_at": lambda _: [*SELDOM, "snapshot", "rename", "cut", "epochs", "rename", "cut"],
    "truncateFullyAndStartAt:fail_at": lambda _: [*SELDOM, "snapshot", "rename", "epochs", "rename"],
    "appendAsFollower:base_offset": lambda s: [s.log_end + d for d in (0, 0, 4, 2**31)] + [max(0, s.log_end - 2)],
    "batch_leader_epoch": _epochs,
    "batches": _fetched,
    "type": lambda _: ["ABORT", "COMMIT"],
    "coordinator_epoch": lambda _: [0, 1],
    "transaction_version": lambda _: [0, 1, 2],
    "offset": _offsets,
    "updateHighWatermark:offset": lambda s: [*[s.log_end] * len(_offsets(s)), *_offsets(s)],
    "maybeIncrementLogStartOffset:offset": lambda s: [*(x.base_offset for x in s.segments[1:]), *_offsets(s)],
    "assignEpochStartOffset:offset": lambda s: [s.log_end],
    "truncateTo:offset": lambda s: [s.log_end, *(_offsets(s)[4:] if _grown(s) else ())],
    "truncateFullyAndStartAt:offset": lambda s: [s.log_end + 5, s.log_start, s.log_end] if _grown(s) else [],
    "log_start_offset": lambda s: [s.log_start, None, s.segments[0].base_offset],
    "closeAndReopen:log_start_offset": lambda s: [s.log_start, s.segments[0].base_offset, 0] if _grown(s) else [],
    "crashAndReopen:log_start_offset": lambda s: [s.log_start, s.segments[0].base_offset, 0] if _grown(s) else [],
    "recovery_point": _points,
    "last_shutdown_clean": lambda _: [True, False],
    "torn_bytes": _torn,
    "closeAndReopen:torn_bytes": lambda _: [0],
    "producer_snapshots_deleted": lambda _: [False, False, True],
    "force_flush_active_segment": lambda _: [False, True],
    "ms": _delays,
    "max_length": _lengths,
    "read:offset": lambda s: [*_aborted(s), *_aborted(s), *_aborted(s), *_offsets(s)],
    "isolation": lambda s: ["LOG_END", "HIGH_WATERMARK", *["TXN_COMMITTED"] * (1 + 3 * bool(_aborted(s)))],
    "min_one_message": lambda _: [True, False],
    "fetchOffsetByTimestamp:timestamp": _timestamps,
    "name": lambda s: [] if _grown(s) else NAMES,
}  # fmt: skip
