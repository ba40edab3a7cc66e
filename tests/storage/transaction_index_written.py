"""What transaction indexes hold, in a log directory: beside a log of these aborted transactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kafkaspec.mutants.audit import DirectoryLayout, WalkEnd, log_file, one_record
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL, Batch, LogRecord, built
from kafkaspec.spec.storage.transaction_index import Log

ABORT_KEY, MARKER_VALUE = bytes([0, 0, 0, 0]), bytes(6)


def files(walked: WalkEnd) -> Mapping[str, bytes]:
    out: dict[str, bytes] = {}
    sequences: Counter[int] = Counter()
    for told, index in zip(walked.state.indexes, walked.driver.indexes, strict=True):
        batches: list[Batch] = []
        for e in told.entries:
            of = {"producer_id": e.producer_id, "producer_epoch": 0, "leader_epoch": 0}
            for offset in range(e.first_offset, e.last_offset):
                batches.append(
                    one_record(offset, attributes=TRANSACTIONAL, base_sequence=sequences[e.producer_id], **of)
                )
                sequences[e.producer_id] += 1
            end = LogRecord(e.last_offset, e.last_offset, ABORT_KEY, MARKER_VALUE)
            batches.append(built(e.last_offset, [end], attributes=TRANSACTIONAL | CONTROL, **of))
        out |= log_file("t-0", told.start_offset, batches)
        if walked.driver.disk.exists(index.path):
            out[f"t-0/{told.start_offset:020}.txnindex"] = walked.driver.disk.read(index.path)
    return out | {"t-0/leader-epoch-checkpoint": f"0\n1\n0 {walked.state.indexes[0].start_offset}\n".encode()}


def _next(log: Log) -> int:
    return max([log.active.start_offset, *(e.last_offset + 1 for i in log.indexes for e in i.entries)])


WRITTEN = DirectoryLayout(
    files,
    ("append", "append", "append", "append", "roll", "reopen", "sanityCheck", "truncateTo"),
    {
        "first_offset": lambda log: [_next(log)],
        "last_offset": lambda log: [_next(log) + 1] * 3 + ([] if log.active.known is None else [log.active.known]),
        "last_stable_offset": lambda log: [_next(log) + 2],
        "roll:start_offset": lambda log: (
            [_next(log)] if _next(log) > log.active.start_offset and len(log.indexes) < 4 else []
        ),
        "truncateTo:offset": lambda log: [log.active.entries[-1].last_offset] if log.active.entries else [],
    },
)
