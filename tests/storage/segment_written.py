"""What a segment writes, in a log directory: its log and its indexes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.impl.storage.segment_driver import DIRECTORY
from kafkaspec.mutants.audit import DirectoryLayout, WalkEnd, log_file
from kafkaspec.spec.common.segment_contents import Segment
from kafkaspec.spec.storage.segment import machine


def files(walked: WalkEnd) -> Mapping[str, bytes]:
    """A segment that was rolled, of a compacted topic, so that offsets may be missing."""
    disk, state = walked.driver.disk, walked.state
    epochs: list[str] = []
    highest = -1
    for batch in state.batches:
        if batch.leader_epoch > highest:
            highest = batch.leader_epoch
            epochs.append(f"{highest} {batch.base_offset}\n")
    return {
        **{f"data/t-0/{name}": disk.read(f"{DIRECTORY}/{name}") for name in disk.files(DIRECTORY)},
        **log_file("data/t-0", state.next_offset, []),
        "data/t-0/leader-epoch-checkpoint": f"0\n{len(epochs)}\n{''.join(epochs)}".encode(),
        "data/cleaner-offset-checkpoint": b"0\n1\nt 0 0\n",
    }


def _batches(state: Segment) -> list[Any]:
    """Of no producer: their sequences are not this subsystem's."""
    every = machine.candidates["batches"](state)
    return [batches for batches in every if all(b["producerId"] < 0 for b in batches)]


WRITTEN = DirectoryLayout(
    files,
    ("append", "append", "append", "append", "truncateTo", "flush", "reopen", "recover", "resizeIndexes", "read"),
    {"batches": _batches},
    init={"base_offset": 100, "index_interval_bytes": 200, "max_index_bytes": 1000},
    last=[("onBecomeInactiveSegment", {}), ("flush", {})],
)
