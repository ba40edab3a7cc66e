"""What compaction promises: the arguments that engines try."""

from __future__ import annotations

from typing import Any

from kafkaspec.spec.management.compaction import ABORT, COMMIT, DATA, TRANSACTIONAL, machine


def _data(base: int, *pairs: tuple[str | None, str | None], **more: Any) -> list[Any]:
    records = [[base + i, k, v] for i, (k, v) in enumerate(pairs)]
    return [base, base + len(pairs) - 1, more.get("kind", DATA), more.get("producer", -1), records]


_DIRTY = [
    _data(0, ("a", "1"), ("b", "1")),
    _data(2, ("a", "2"), ("c", "1"), ("b", None)),
    _data(5, (None, "x")),
    _data(6, ("d", "1"), ("a", "3"), kind=TRANSACTIONAL, producer=7),
    [8, 8, ABORT, 7, []],
    _data(9, ("c", None), ("e", "1"), kind=TRANSACTIONAL, producer=7),
    [11, 11, COMMIT, 7, []],
    _data(12, ("a", "4"), ("f", "1")),
]


_CLEAN = [
    [0, 1, DATA, -1, []],
    [2, 4, DATA, -1, [[4, "b", None]]],
    [8, 8, ABORT, 7, []],
    [9, 10, TRANSACTIONAL, 7, [[9, "c", None], [10, "e", "1"]]],
    [11, 11, COMMIT, 7, []],
    _data(12, ("a", "4"), ("f", "1")),
    [14, 15, DATA, -1, []],
    _data(16, ("a", "5"), ("a", "6"), ("b", "7")),
]


LOGS: list[list[Any]] = [
    _DIRTY,
    _CLEAN,
    [],
    [*_CLEAN[:5], _data(12, ("a", "4"), ("e", "1")), *_CLEAN[6:]],
    [*_CLEAN[:1], _data(2, (None, "x")), *_CLEAN[2:]],
    [*_CLEAN[:1], _data(2, ("g", "x"), ("g", None), kind=TRANSACTIONAL, producer=7), *_CLEAN[2:]],
    [*_CLEAN[:1], _data(2, ("g", "x"), kind=TRANSACTIONAL, producer=8), *_CLEAN[2:]],
    [_data(0, ("", "x"), ("", "y")), _data(2, ("", None))],
    [_data(0, ("h", "1"), kind=TRANSACTIONAL, producer=7), [1, 1, COMMIT, 7, []], [2, 2, ABORT, 7, []]],
    [[0, 1, TRANSACTIONAL, 7, []], [2, 2, ABORT, 7, []], [3, 3, ABORT, 8, []], [4, 4, COMMIT, 8, []]],
    [
        _data(0, ("h", "1"), kind=TRANSACTIONAL, producer=7),
        [1, 1, COMMIT, 7, []],
        _data(2, ("i", "1"), kind=TRANSACTIONAL, producer=7),
        _data(3, ("j", "1"), kind=TRANSACTIONAL, producer=8),
        [4, 5, TRANSACTIONAL, 9, []],
        _data(6, ("k", "1"), kind=TRANSACTIONAL, producer=7),
        [8, 8, COMMIT, 8, []],
    ],
    [_data(0, ("Aa", "1"), ("BB", "1"))],
    [_data(0, ("h", "1"), kind=TRANSACTIONAL, producer=7), _data(1, ("i", "1"), kind=TRANSACTIONAL, producer=8)],
    [
        _data(0, ("h", "1"), kind=TRANSACTIONAL, producer=7),
        _data(1, ("i", "1"), kind=TRANSACTIONAL, producer=7 + 2**32),
        [2, 2, ABORT, 7, []],
        [3, 3, ABORT, 7 + 2**32, []],
    ],
    [[0, 1, DATA, 7, []], [2, 2, TRANSACTIONAL, 8, []], [3, 3, DATA, 7, []], [4, 7, DATA, 7, []], [8, 9, DATA, -1, []]],
]


_POINTS = [0, 4, 5, 8, 10, 12, 14, 16, 17, 18, 19, 99]


machine.candidates |= {
    "log": lambda state: LOGS,
    "log_start": lambda state: [0, 1, 3, 9, 13],
    "point": lambda state: _POINTS,
    "end": lambda state: _POINTS,
    "capacity": lambda state: [1, 2, 3, 99],
}
