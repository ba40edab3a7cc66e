"""What the producer state writes, in a log directory: snapshots beside the log of the batches that went in."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaspec.mutants.audit import WalkEnd, Written, log_file
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL, Batch, LogRecord, built

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


WRITTEN = Written(
    files,
    ("appendDataBatch", "appendDataBatch", "appendDataBatch", "appendEndTxnMarker", "takeSnapshot"),
    {
        "origin": lambda state: ["CLIENT"],
        "appendEndTxnMarker:origin": lambda state: ["COORDINATOR"],
        "first_offset": lambda state: [state.end],
        "offset": lambda state: [state.end],
        "timestamp": lambda state: [state.now + state.end],
    },
    last=[("takeSnapshot", {})],
)
