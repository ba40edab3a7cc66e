"""Loading a log after a stop: the arguments that engines try."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from kafkaspec.contract.machine import Json
from kafkaspec.spec.storage.log_loader import (
    CLEANED,
    DELETED,
    EPOCHS,
    INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    Directory,
    LogFile,
    machine,
    name_of,
    offset_of,
)

BASES = (0, 5, 10, 20)
FAR = 1 << 31

SWAPPED: dict[str, Json] = {
    name_of(base, end, SWAP): {"batches": [[base, base + 4, 0, True]], "torn": False} if end == LOG else ""
    for base in BASES[:3]
    for end in (LOG, INDEX, TIME_INDEX)
}
"""Three new segments that have not got their names yet."""


def _batches(base: int, lengths: Sequence[int], epoch: int = 0, bad: int = -1) -> list[list[Any]]:
    out, at = [], base
    for n, length in enumerate(lengths):
        out.append([at, at + length - 1, epoch, n != bad])
        at += length
    return out


def _segment(
    base: int, *batches: list[Any], torn: bool = False, index: bool = True, suffix: str = ""
) -> dict[str, Json]:
    files: dict[str, Json] = {name_of(base, LOG, suffix): {"batches": [*batches], "torn": torn}}
    return files | {name_of(base, end, suffix): "" for end in (INDEX, TIME_INDEX) if index}


SPLIT_WHILE_OPENED = _segment(20, [24, 25, 0, True], [FAR + 19, FAR + 20, 1, True], index=False)
"""Without an index, and with a first batch above its base offset. The last batch overflows by one."""
TORN_OVERFLOW = _segment(20, [20, 21, 0, True], [FAR + 19, FAR + 20, 1, True], torn=True)
"""With half a batch behind."""

ONE_PIECE = [[24, 25, 0, True], [FAR + 19, FAR + 20, 1, True]]
THREE_PARTS = [[24, 25, 1, True], [FAR + 19, FAR + 20, 1, True], [2 * FAR + 18, 2 * FAR + 19, 3, True]]
NOT_WHOLE = [
    [20, 21, 0, True],
    [FAR + 20, FAR + 20, 1, True],
    [FAR + 25, FAR + 25, 1, False],
    [FAR + 26, FAR + 29, 2, True],
]
FAR_BATCHES = [
    [[20, 21, 0, True], [FAR + 18, FAR + 19, 1, True]],  # it just fits
    [[20, 21, 0, True], [FAR + 18, FAR + 19, 1, True], [FAR + 20, FAR + 25, 1 << 15, True]],
    ONE_PIECE,
    [[20, 21, 0, True], [FAR + 19, FAR + 20, 1, True], [FAR + 21, FAR + 25, 2, True]],
    THREE_PARTS,
    NOT_WHOLE,
    [[22, 22, 2, True], [23, 24, 2, False], [FAR + 40, FAR + 41, 3, True]],
    [[FAR + 40, FAR + 41, 1, True], [2 * FAR + 41, 2 * FAR + 41, 2, True], [3 * FAR, 3 * FAR, 2, True]],
]
"""Of a segment from 20 on."""


@cache
def _logs(base: int) -> list[Json]:
    room = {0: 5, 5: 5, 10: 10, 20: 4}[base]
    return [
        {"batches": _batches(base, [room]), "torn": False},
        {"batches": _batches(base, [2, room - 2], epoch=base // 5), "torn": False},
        {"batches": _batches(base, [1, 1, room - 2], epoch=1, bad=1), "torn": False},
        {"batches": _batches(base, [2], epoch=2), "torn": True},
        {"batches": [], "torn": False},
    ]


SUFFIXES = ("", "", "", "", "", SWAP, CLEANED, DELETED)


_NAMES = [
    *(name_of(b, e, s) for b in BASES for s in SUFFIXES for e in (LOG, LOG, INDEX, TIME_INDEX, TXN_INDEX)),
    *(name_of(o, SNAPSHOT, s) for o in (*BASES, 3, 7, 24, 30) for s in ("", "", DELETED)),
    EPOCHS,
]


@cache
def contents(name: str) -> list[Json]:
    """What a file of this name may hold."""
    if name == EPOCHS:
        return [[], [[0, 0]], [[0, 0], [1, 5]], [[0, 0], [2, 12], [3, 40]]]
    if LOG + "." in name + ".":
        return _logs(offset_of(name) or 0)
    return ["", "", "corrupt"] if TXN_INDEX in name or SNAPSHOT in name else [""]


_FILES = [[name, c] for name in _NAMES for c in contents(name)]
_FAR_FILES = [[name_of(20, LOG, s), {"batches": b, "torn": False}] for b in FAR_BATCHES for s in ("", "", SWAP)]
_FAR_FILES += [[name_of(o, SNAPSHOT), ""] for o in (FAR + 20, FAR + 26)]


def _whole_segments() -> dict[str, Json]:
    files: dict[str, Json] = {}
    for base in BASES:
        files[name_of(base, LOG)] = _logs(base)[1]
        files |= {name_of(base, INDEX): "", name_of(base, TIME_INDEX): ""}
    return files


def _compacted() -> dict[str, Json]:
    new = {name_of(0, LOG, CLEANED): {"batches": [[0, 1, 0, True], [8, 9, 1, True]], "torn": False}}
    return {**_whole_segments(), **new, name_of(0, INDEX, CLEANED): "", name_of(0, TIME_INDEX, CLEANED): ""}


def _split() -> dict[str, Json]:
    """One segment is to become three, as one whose offsets overflowed."""
    files: dict[str, Json] = {name_of(0, LOG): {"batches": _batches(0, [5, 5, 10]), "torn": False}}
    files |= {name_of(0, INDEX): "", name_of(0, TIME_INDEX): ""}
    for base in BASES[:3]:
        files[name_of(base, LOG, CLEANED)] = _logs(base)[0]
        files |= {name_of(base, INDEX, CLEANED): "", name_of(base, TIME_INDEX, CLEANED): ""}
    return files


def _overflowing() -> list[dict[str, Json]]:
    """Logs with a segment that overflows, and leftovers of other kinds."""
    below = {**_segment(0, [0, 4, 0, True]), **_segment(5, [5, 9, 0, True], [10, 14, 0, True])}
    above = _segment(4 * FAR, [4 * FAR, 4 * FAR + 1, 4, True], [4 * FAR + 2, 4 * FAR + 4, 5, False])
    far = FAR_BATCHES[1:]
    whole, no_index = ([_segment(20, *batches, index=index) for batches in far] for index in (True, False))
    more: dict[str, Json] = {name_of(20, TXN_INDEX): "", name_of(20, SNAPSHOT): ""}
    cut = {
        **_segment(24, *THREE_PARTS[:2], suffix=CLEANED),
        **_segment(THREE_PARTS[2][0], THREE_PARTS[2], suffix=CLEANED),
    }
    return [
        *({**below, **log, **more} for log in (*whole, whole[far.index(ONE_PIECE)])),
        *({**below, **log} for log in no_index),
        *({**log, **above} for log in (*whole, *no_index)),
        *[{**below, **_segment(20, *THREE_PARTS), **cut}] * 3,
        *[_segment(20, *NOT_WHOLE, index=False)] * 2,
        TORN_OVERFLOW,
        SPLIT_WHILE_OPENED,
    ]


def _has(state: Directory, base: int, suffix: str = "") -> bool:
    return all(name_of(base, end, suffix) in state.files for end in (LOG, INDEX, TIME_INDEX))


_WHOLE = [{}, _whole_segments(), _compacted(), _compacted(), _split(), _split(), SWAPPED]


def _far(state: Directory) -> list[int]:
    """Offsets beyond one segment's reach, where there are such."""
    far = any(isinstance(c, LogFile) and c.batches and c.batches[-1].last > FAR for c in state.files.values())
    return [FAR + 20, FAR + 40, 2 * FAR + 18] if far else []


machine.candidates |= {
    "init:files": lambda state: [*_WHOLE * 2, *_overflowing()],
    "file": lambda state: [*_FILES, *_FAR_FILES],
    "name": lambda state: [*state.files],
    "old": lambda state: [o for o in ([0, 5], [0], [0, 5], [0, 5, 10], [20]) if all(_has(state, b) for b in o)],
    "new": lambda state: [
        n for n in ([0], [0, 5], [0, 5, 10], [24, 2 * FAR + 18]) if all(_has(state, b, CLEANED) for b in n)
    ],
    "writeCleaned:new": lambda state: [[0], [0, 5], [0, 5, 10]],
    "steps": lambda state: list(range(26)),
    "first": lambda state: list(BASES),
    "renames": lambda state: list(range(13)),
    "clean": lambda state: [False, True],
    "recovery_point": lambda state: [0, 3, 5, 11, 20, 24, 99, *_far(state)],
    "log_start": lambda state: [0, 0, 0, 3, 5, 12, 24, 40, *_far(state)[:2]],
}
