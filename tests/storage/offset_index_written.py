"""What an offset index holds, in a log directory: beside a log whose batches stand where the entries say."""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack
from typing import Any

from kafkaspec.mutants.audit import CLEAN, DirectoryLayout, WalkEnd, one_record
from kafkaspec.spec.common.record_format import encode

SIZE = 100
"""Bytes of a batch."""


def batch_of(last: int, base: int, timestamp: int = 1000) -> bytes:
    """A batch of one record that reaches from one offset to another, of SIZE bytes."""
    bare = len(encode(one_record(base, value=b"", timestamp=timestamp, last_offset=last)))
    data = encode(one_record(base, value=bytes(SIZE - bare), timestamp=timestamp, last_offset=last))
    assert len(data) == SIZE
    return data


def files(walked: WalkEnd) -> Mapping[str, bytes]:
    base = walked.state.base_offset
    log = b"" if walked.state.used else batch_of(base, base)
    begin, position = base, 0
    for relative, at in walked.state.used:
        while position < at:  # those that are not indexed
            log += batch_of(begin, begin)
            begin, position = begin + 1, position + SIZE
        log += batch_of(base + relative, begin)
        begin, position = base + relative + 1, position + SIZE
    name = f"t-0/{base:020}"
    content = bytes(walked.driver.file.content or b"")
    times = pack(">qi", 1000, 0) if log else b""  # all have one timestamp
    return {f"{name}.log": log, f"{name}.index": content, f"{name}.timeindex": times, **CLEAN}


def _last(state: Any) -> tuple[int, int]:
    return state.used[-1] if state.used else (-1, 0)


WRITTEN = DirectoryLayout(
    files,
    ("append", "append", "append", "truncateTo", "trimToValidSize", "resize", "reset", "lookup", "sanityCheck"),
    {
        "offset": lambda state: [state.base_offset + _last(state)[0] + n for n in (4, 6, 9, 0)],
        "position": lambda state: [_last(state)[1] + n * SIZE for n in (1, 2, 3)],
        "truncateTo:offset": lambda state: [state.base_offset + _last(state)[0] - n for n in (0, 1)],
        "new_size": lambda state: [200],
    },
    init={"base_offset": 1000, "max_index_size": 200},
    last=[("trimToValidSize", {})],
)
