"""What the leader epoch cache writes, in a log directory: its checkpoint beside a log of these epochs."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaspec.mutants.audit import DirectoryLayout, WalkEnd, log_file, one_record
from kafkaspec.spec.storage.leader_epochs import Cache


def files(walked: WalkEnd) -> Mapping[str, bytes]:
    entries = walked.state.entries
    disk, path = walked.driver.disk, f"{walked.driver.directory}/leader-epoch-checkpoint"
    out = {"t-0/leader-epoch-checkpoint": disk.read(path)} if disk.exists(path) else {}
    start = entries[0].start_offset if entries else 0
    ends = [e.start_offset for e in entries[1:]] + [entries[-1].start_offset + 2 if entries else 0]
    batches = [
        one_record(offset, leader_epoch=entry.epoch)
        for entry, end in zip(entries, ends, strict=False)
        for offset in range(entry.start_offset, end)
    ]
    return out | log_file("t-0", start, batches)


def _end(state: Cache) -> int:
    return state.entries[-1].start_offset if state.entries else 0


WRITTEN = DirectoryLayout(
    files,
    ("assign", "assign", "assign", "truncateFromEndAsyncFlush", "truncateFromStartAsyncFlush", "runScheduled", "reopen",
     "clearAndFlush"),
    {
        "epoch": lambda state: [(state.entries[-1].epoch if state.entries else 0) + d for d in (0, 1, 2)],
        "start_offset": lambda state: [_end(state) + d for d in (0, 1, 3, -1)],
        "end_offset": lambda state: [_end(state) + d for d in (-1, 0, 1, 2)],
        "truncateFromStartAsyncFlush:start_offset": lambda state: [_end(state) // 2, _end(state) - 1],
    },
    last=[("runScheduled", {})],
)  # fmt: skip
