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
    machine,
    name_of,
    offset_of,
)

BASES = (0, 5, 10, 20)

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


def _has(state: Directory, base: int, suffix: str = "") -> bool:
    return all(name_of(base, end, suffix) in state.files for end in (LOG, INDEX, TIME_INDEX))


machine.candidates |= {
    "init:files": lambda state: [{}, _whole_segments(), _compacted(), _compacted(), _split(), _split(), SWAPPED],
    "file": lambda state: _FILES,
    "name": lambda state: [*state.files],
    "old": lambda state: [o for o in ([0, 5], [0], [0, 5], [0, 5, 10]) if all(_has(state, b) for b in o)],
    "new": lambda state: [n for n in ([0], [0, 5], [0, 5, 10]) if all(_has(state, b, CLEANED) for b in n)],
    "writeCleaned:new": lambda state: [[0], [0, 5], [0, 5, 10]],
    "steps": lambda state: list(range(26)),
    "first": lambda state: list(BASES),
    "renames": lambda state: list(range(13)),
    "clean": lambda state: [False, True],
    "recovery_point": lambda state: [0, 3, 5, 11, 20, 24, 99],
    "log_start": lambda state: [0, 0, 0, 3, 5, 12, 24, 40],
}
