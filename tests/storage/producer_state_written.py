"""What the producer state writes, in a log directory: snapshots beside the log of the batches that went in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaspec.mutants.audit import DirectoryLayout, WalkEnd, log_file
from kafkaspec.spec.common.producers import MOST_EPOCH, State
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL, Batch, LogRecord, built
from kafkaspec.spec.storage.producer_state import machine

MARKER_VALUE = b"\x00\x00"


def _batch(a: Mapping[str, object]) -> Batch:
    """The batch of a call."""
    number = {k: v for k, v in a.items() if isinstance(v, int)}
    of = {"leader_epoch": 0, "producer_id": number["producer_id"], "producer_epoch": number["producer_epoch"]}
    time = number["timestamp"]
    if "type" in a:
        key = bytes([0, 0, 0, a["type"] == "COMMIT"])
        value = MARKER_VALUE + number["coordinator_epoch"].to_bytes(4, "big")
        record = LogRecord(number["offset"], time, key, value)
        return built(number["offset"], [record], attributes=TRANSACTIONAL | CONTROL, **of)
    first, last = number["first_offset"], number["last_offset"]
    return built(
        first,
        [LogRecord(n, time, None, b"v") for n in range(first, last + 1)],
        attributes=TRANSACTIONAL if a["transactional"] else 0,
        base_sequence=number["first_seq"],
        **of,
    )


def files(walked: WalkEnd) -> Mapping[str, bytes]:
    batches = [_batch(c.arguments) for c in walked.calls if c.operation.startswith("append")]
    disk, folder = walked.driver.disk, walked.driver.DIRECTORY
    return {
        **log_file("t-0", 0, batches),
        **{f"t-0/{name}": disk.read(f"{folder}/{name}") for name in disk.files(folder)},
        "t-0/leader-epoch-checkpoint": b"0\n1\n0 0\n",
    }


def _at_most(state: State, more: int) -> Sequence[int]:
    """Epochs up to `more` above the lowest of a producer with an open transaction."""
    opened = [p.epoch for p in state.producers.values() if p.transaction is not None]
    return [min(e, *(n + more for n in opened), MOST_EPOCH) for e in machine.candidates["producer_epoch"](state)]


def _epochs(state: State) -> Sequence[int]:
    """Those of a data batch: a coordinator hands out a higher one only after every transaction has ended (PSM-32)."""
    return _at_most(state, 0)


def _marker_epochs(state: State) -> Sequence[int]:
    """Those of a marker: the transaction's, or the next one (PSM-11)."""
    return _at_most(state, 1)


WRITTEN = DirectoryLayout(
    files,
    ("appendDataBatch", "appendDataBatch", "appendDataBatch", "appendEndTxnMarker", "takeSnapshot"),
    {
        "origin": lambda state: ["CLIENT"],
        "appendEndTxnMarker:origin": lambda state: ["COORDINATOR"],
        "appendDataBatch:producer_epoch": _epochs,
        "appendEndTxnMarker:producer_epoch": _marker_epochs,
        "first_offset": lambda state: [state.end],
        "offset": lambda state: [state.end],
        "timestamp": lambda state: [state.now + state.end],
    },
    last=[("takeSnapshot", {})],
)
