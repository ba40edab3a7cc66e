"""What a time index holds, in a log directory: beside a log whose batches have the timestamps that the entries say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.mutants.audit import CLEAN, DirectoryLayout, WalkEnd, one_record
from kafkaspec.spec.common.record_format import encode


def files(walked: WalkEnd) -> Mapping[str, bytes]:
    base = walked.state.base_offset
    batches, begin = [], base
    for timestamp, relative in walked.state.used:
        if base + relative >= begin:
            batches.append(one_record(begin, timestamp=timestamp, last_offset=base + relative))
            begin = base + relative + 1
    name = f"t-0/{base:020}"
    content = bytes(walked.driver.file.content or b"")
    log = b"".join(map(encode, batches))
    return {f"{name}.log": log, f"{name}.index": b"", f"{name}.timeindex": content, **CLEAN}


def _last(state: Any) -> tuple[int, int]:
    return state.used[-1] if state.used else (1000, -1)


WRITTEN = DirectoryLayout(
    files,
    (
        "maybeAppend",
        "maybeAppend",
        "maybeAppend",
        "maybeAppend",
        "truncateTo",
        "trimToValidSize",
        "resize",
        "reset",
        "lookup",
        "sanityCheck",
    ),
    {
        "timestamp": lambda state: [_last(state)[0] + n for n in (1, 2, 50, 0)],
        "offset": lambda state: [state.base_offset + _last(state)[1] + n for n in (1, 2, 7)],
        "skip_full_check": lambda state: [True],
        "truncateTo:offset": lambda state: [state.base_offset + max(0, _last(state)[1])],
        "new_size": lambda state: [240],
    },
    init={"base_offset": 1000, "max_index_size": 240},
    last=[("trimToValidSize", {})],
)
