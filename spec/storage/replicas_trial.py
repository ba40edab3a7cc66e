"""Replicas of a partition: the arguments that engines try."""

from __future__ import annotations

from typing import Any

from kafkaspec.spec.storage.replicas import machine


def _log(*batches: tuple[int, int, int, int], **more: Any) -> dict[str, Any]:
    """Each offset of a batch has a record whose content follows from frame and offset."""
    rows = [[b, last, e, f, 2, [[o, f * 100 + o] for o in range(b, last + 1)]] for b, last, e, f in batches]
    end = batches[-1][1] + 1 if batches else 0
    return {"batches": rows, "start": 0, "end": end, "highWatermark": end, "compacted": False, "epochs": [], **more}


_WHOLE = ((0, 1, 0, 1), (2, 2, 0, 2), (3, 6, 1, 3), (7, 8, 1, 4), (9, 9, 3, 5))


_EPOCHS = [[0, 0], [1, 3], [3, 9]]


def _kept(log: dict[str, Any], *offsets: int) -> dict[str, Any]:
    """The log as a cleaner may leave it: without these records, in batches that have other frames then."""
    batches = []
    for base, last, epoch, frame, magic, records in log["batches"]:
        left = [r for r in records if r[0] not in offsets]
        if left:
            batches.append([base, last, epoch, frame if left == records else frame + 50, magic, left])
    return {**log, "batches": batches, "compacted": True}


def _with(log: dict[str, Any], n: int, **changes: int) -> dict[str, Any]:
    """The log with another epoch, frame, magic or content in its n-th batch."""
    batches = [list(b) for b in log["batches"]]
    for what, value in changes.items():
        if what == "content":
            batches[n][5] = [[o, value if o == batches[n][1] else c] for o, c in batches[n][5]]
        else:
            batches[n][{"epoch": 2, "frame": 3, "magic": 4}[what]] = value
    return {**log, "batches": batches}


_SOUND = _log(*_WHOLE, epochs=_EPOCHS)


_CLEANED = _kept(_SOUND, 0, 1, 4)


LOGS: list[dict[str, Any]] = [
    _SOUND,
    _log(*_WHOLE, epochs=_EPOCHS, highWatermark=7),
    _log(*_WHOLE[:4], epochs=_EPOCHS[:2]),
    _log(*_WHOLE[2:], start=3, epochs=[[1, 3], [3, 9]]),
    _log(*_WHOLE[1:], start=4, epochs=[[1, 4], [3, 9]]),
    _log(*_WHOLE[:3], (7, 7, 2, 8), (8, 11, 2, 9), epochs=[[0, 0], [1, 3], [2, 7]]),
    _log(*_WHOLE[:3], (7, 8, 2, 8), highWatermark=7, epochs=[[0, 0], [1, 3], [2, 7]]),
    _log(*_WHOLE[:2], *_WHOLE[3:], epochs=[[0, 0], [1, 7], [3, 9]]),
    _log(*_WHOLE, epochs=[*_EPOCHS, [4, 10]]),
    _log(*_WHOLE, epochs=[*_EPOCHS, [4, 11]]),
    {**_SOUND, "highWatermark": None},
    {**_SOUND, "compacted": None},
    {**_SOUND, "compacted": True},
    _CLEANED,
    _kept(_SOUND, 2, 5, 8),
    _with(_SOUND, 2, frame=7, content=999),
    _with(_SOUND, 3, frame=7),
    _with(_SOUND, 4, epoch=4),
    _with(_SOUND, 4, epoch=4, frame=9, content=997),
    {**_with(_SOUND, 4, epoch=4), "epochs": [[0, 0], [1, 3], [4, 9]]},
    {**_with(_SOUND, 3, epoch=2), "epochs": [[0, 0], [1, 3], [2, 7], [3, 9]], "compacted": None},
    _with(_SOUND, 0, magic=1, frame=6),
    _with(_SOUND, 1, epoch=1, frame=12, content=996),
    _with(_SOUND, 4, frame=2**32 + 5),
    _log((2**40, 2**40 + 1, 0, 1), (2**40 + 2, 2**40 + 2, 1, 2)),
    _log((2**40, 2**40 + 1, 0, 1), (2**40 + 2, 2**40 + 2, 1, 9)),
    _with(_CLEANED, 1, frame=54, content=999),
    _with(_CLEANED, 2, epoch=2, frame=8, content=998),
    _log(),
]


_DIRECTORIES = [
    ["c", 1, "t", ""],
    ["c", 0, "t", ""],
    ["c", 2, "t", ""],
    ["c", 3, "u", ""],
    ["d", 2, "t", ""],
    [None, 4, "t", ""],
    [None, 1, None, ""],
    ["c", None, "t", ""],
    ["c", 4, None, ""],
    ["c", 2, "t", "-future"],
    ["c", 3, "t", "-delete"],
]


machine.candidates |= {
    "a": lambda state: LOGS,
    "b": lambda state: LOGS,
    "metadata": lambda state: [False, True],
    "told": lambda state: [-1, 0, 1, 2, 3, 4, 2**31 - 1],
    "areReplicas:a": lambda state: _DIRECTORIES,
    "areReplicas:b": lambda state: _DIRECTORIES,
}
