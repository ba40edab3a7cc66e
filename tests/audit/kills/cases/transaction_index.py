"""Of transaction index files: whole entries, in order, about markers of their own segment."""

from __future__ import annotations

from struct import pack
from typing import Any

from tests.audit.kills.around import SURROUNDINGS
from tests.audit.kills.write import Case, Row, b, one, seg

Entry = tuple[int, int, int, int]
GOOD: Entry = (1, 11, 14, 15)
ROWS = (b(10, 14, epoch=-1), b(15, 19, epoch=-1))


def has(*txn: Entry, rows: tuple[Row, ...] = ROWS, around: str = "active, clean", **of: Any) -> Case:
    """A segment of the offsets 10 to 19 with these entries: producer, first offset, marker, last stable offset."""
    inside = {k: of.pop(k) for k in ("reason", "size", "end_offset") if k in of}
    return SURROUNDINGS[around](seg(10, *rows, txn=txn, **inside), **of)


def raw(data: bytes, around: str = "active, clean") -> Case:
    return SURROUNDINGS[around](seg(10, *ROWS, txn=data))


def entry(version: int, *of: int) -> bytes:
    return pack(">hqqqq", version, *of)


def two(first: tuple[Entry, ...], second: tuple[Entry, ...], **of: Any) -> Case:
    """Two segments, of the offsets 10 to 19 and 20 to 29."""
    rows = (b(20, 24, epoch=-1), b(25, 29, epoch=-1))
    return one(seg(10, *ROWS, txn=first), seg(20, *rows, txn=second), **of)


CASES = {
    "one entry": lambda: has(GOOD),
    "none": lambda: has(),
    "several": lambda: has((1, 10, 12, 10), (2, 10, 13, 12), (1, 13, 16, 17)),
    **{f"rest bytes, {x}": (lambda x=x: raw(entry(0, *GOOD) + b"abc", x)) for x in SURROUNDINGS},
    "rest bytes alone": lambda: raw(b"abc"),
    "33 bytes": lambda: raw(bytes(33)),
    **{f"version {n}": (lambda n=n: raw(entry(n, *GOOD))) for n in (-1, 1, 2, 254, 255, 256, 257)},
    "version 1 behind version 0": lambda: raw(entry(0, *GOOD) + entry(1, 1, 15, 17, 18) + entry(1, 1, 18, 19, 20)),
    "of another version, and then an order of its own": lambda: one(
        seg(10, *ROWS, txn=[(1, 11, 18, 19)]),
        seg(20, b(20, 24, epoch=-1), txn=entry(1, 1, 21, 22, 23)),
        seg(25, b(25, 29, epoch=-1), txn=[(1, 3, 27, 4)]),
    ),
    **{
        f"a marker at {m}, {x}": (lambda m=m, x=x: has((1, 5, m, 6), around=x))
        for m in (9, 10, 19, 20)
        for x in SURROUNDINGS
    },
    "a marker at 8": lambda: has((1, 5, 8, 6)),
    "a marker at 21": lambda: has((1, 5, 21, 6)),
    "two markers below the base": lambda: has((1, 5, 8, 6), (1, 5, 9, 6), (1, 5, 12, 6)),
    "three markers beyond the end": lambda: has((1, 5, 12, 6), (1, 5, 20, 6), (1, 6, 21, 7), (1, 7, 22, 8)),
    "below the base and in no order": lambda: has((1, 9, 9, 6)),
    "below the base and in no order, and a second": lambda: has((1, 9, 9, 6), (1, 15, 15, 6)),
    "stable too far and beyond the end": lambda: has((1, 5, 20, 99), (1, 5, 21, 6)),
    **{f"first offset {n}": (lambda n=n: has((1, n, 14, 10))) for n in (-2, -1, 0, 1, 12, 13, 14, 15)},
    **{f"last stable offset {n}": (lambda n=n: has((1, 11, 14, n))) for n in (-2, -1, 0, 1, 14, 15, 16, 17)},
    "an empty chunk": lambda: has((1, 5, 20, 6), chunk=0),
    "in no order in a segment that is written to": lambda: has((1, 14, 14, 12), around="active, killed"),
    "stable too far in a segment that is written to": lambda: has((1, 11, 14, 17), around="active, killed"),
    "beyond a segment of one offset": lambda: one(
        seg(10, txn=[(1, 5, 11, 6)]), seg(11, b(11, epoch=-1)), seg(30, b(30, epoch=-1))
    ),
    "three of each": lambda: has((1, 14, 14, 12), (1, 16, 15, 12), (1, 17, 16, 12), (1, 14, 17, 99), (1, 9, 18, -1)),
    **{
        f"damage and a marker at {m}": (
            lambda m=m: has((1, 5, m, 6), rows=(b(10, 14, epoch=-1), b(15, 19, epoch=-1), b(-1, problem=3)))
        )
        for m in (9, 19, 20, 25)
    },
    "damage in the first chunk": lambda: has((1, 5, 20, 6), rows=(b(10, problem=3), b(11), b(12, 14), b(15, 19))),
    "damage in an earlier segment": lambda: one(
        seg(0, b(0, 7), b(8, 9, problem=3), txn=[(1, 1, 2, 3)]), seg(10, b(10, 19), txn=[(1, 5, 20, 6)])
    ),
    **{
        f"an end that is cut, {x}, and a marker at {m}": (
            lambda x=x, m=m: has((1, 5, m, 6), around=x, reason="9 bytes", size=209)
        )
        for x in ("active, clean", "closed, clean")
        for m in (9, 19, 20)
    },
    **{
        f"offsets are missing, {where}, {x}, and a marker at {m}": (
            lambda rows=rows, x=x, m=m: has((1, 5, m, 6), rows=rows, around=x)
        )
        for where, rows in {
            "first": (b(11, 14), b(15, 19)),
            "within": (b(10, 14), b(16, 19)),
            "at a chunk": (b(10), b(11, 14), b(16, 19)),
            "long before the last": (b(10), b(12, 13), b(14), b(15, 19)),
        }.items()
        for x in ("active, clean", "closed, clean")
        for m in (19, 20, 39, 40)
    },
    "offsets were missing in an earlier segment": lambda: one(
        seg(0, b(0, 7), b(9), txn=[(1, 1, 2, 3)]), seg(10, b(10, 19), txn=[(1, 5, 20, 6)])
    ),
    "the segment behind is not the next": lambda: one(
        seg(10, b(10, 14), b(16, 19), txn=[(1, 5, 30, 6)]), seg(30, b(30)), seg(40, b(40))
    ),
    "the last of three": lambda: one(seg(0, b(0, 4)), seg(5, b(5, 9)), seg(10, b(10), b(12, 19), txn=[(1, 5, 30, 6)])),
    "no batch, closed": lambda: has((1, 5, 30, 6), rows=(), around="closed, clean"),
    "no batch, closed, beyond": lambda: has((1, 5, 40, 6), rows=(), around="closed, clean"),
    "no batch, active": lambda: has((1, 5, 40, 6), rows=()),
    **{
        f"{policy}, {x}, and a marker at {m}": (lambda p=policy, x=x, m=m: has((1, 5, m, 6), around=x, policy=p))
        for policy in ("compact", "delete")
        for x in ("active, clean", "closed, clean")
        for m in (19, 20, 40)
    },
    **{
        f"order: {name}": (lambda x=x, y=y: has(x, y))
        for name, (x, y) in {
            "rising": ((1, 10, 12, 12), (2, 12, 14, 13)),
            "markers equal": ((1, 10, 12, 12), (2, 11, 12, 12)),
            "markers falling": ((1, 10, 12, 12), (2, 10, 11, 12)),
            "stable equal": ((1, 10, 12, 12), (2, 12, 14, 12)),
            "stable falling": ((1, 10, 12, 12), (2, 12, 14, 11)),
            "first one below what was stable": ((1, 10, 12, 12), (2, 11, 14, 13)),
            "first below, and stable falling": ((1, 10, 12, 12), (2, 9, 14, 11)),
        }.items()
    },
    "order: three fall": lambda: has((1, 10, 19, 12), (1, 12, 18, 12), (1, 12, 17, 12), (1, 12, 16, 12)),
    "order: the third falls": lambda: has((1, 10, 12, 12), (1, 12, 15, 12), (1, 12, 14, 12)),
    "order: from one segment to the next": lambda: two(((1, 10, 18, 14),), ((1, 15, 22, 13), (1, 16, 24, 20))),
    "order: the second of the next": lambda: two(((1, 10, 18, 14),), ((1, 15, 22, 16), (1, 15, 24, 20))),
    "order: right from one segment to the next": lambda: two(((1, 10, 18, 14),), ((1, 14, 22, 14),)),
    "order: an empty one between": lambda: one(
        seg(10, *ROWS, txn=[(1, 10, 18, 14)]),
        seg(20, b(20, 24), txn=[]),
        seg(25, b(25, 29), txn=[(1, 13, 26, 14)]),
    ),
    "order: below what was stable in the first of three, and not in the second": lambda: one(
        seg(10, *ROWS, txn=[(1, 10, 12, 19)]),
        seg(20, b(20, 24, epoch=-1), txn=[(2, 19, 22, 14)]),
        seg(25, b(25, 29, epoch=-1), txn=[(1, 15, 27, 28)]),
    ),
    "order: a bad one before": lambda: two(((1, 10, 18, 14), (1, 19, 19, 18)), ((1, 13, 22, 13),)),
}
