"""Batches as they are written, in a log directory: a segment of one batch."""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack

from kafkaspec.mutants.audit import DirectoryLayout, WalkEnd


def files(walked: WalkEnd) -> Mapping[str, bytes]:
    """Where the batch says that it belongs; nothing if none could be built."""
    made = [c for c in walked.calls if c.operation == "build"]
    if not made:
        return {}
    told, written = made[-1].arguments, made[-1].result["batches"][0]
    base, epoch = told["base_offset"], told["partition_leader_epoch"]
    name = f"t-0/{base:020}"
    epochs = f"0\n1\n{epoch} {base}\n" if epoch >= 0 else "0\n0\n"
    largest = written["maxTimestamp"]
    times = pack(">qi", largest, written["lastOffset"] - base) if largest >= 0 else b""
    return {
        f"{name}.log": walked.driver.data,
        f"{name}.index": b"",
        f"{name}.timeindex": times,
        "t-0/leader-epoch-checkpoint": epochs.encode(),
    }


WRITTEN = DirectoryLayout(files, ("build",), steps=1)
