"""Of time indexes beside their segments."""

from __future__ import annotations

from struct import pack
from typing import Any

from tests.audit.kills.around import MAIN, SURROUNDINGS, batches
from tests.audit.kills.write import Case, b, one, seg

TRUE = [(1020, 12), (1050, 15), (1090, 19)]
"""Of ten batches, one record each, from offset 10 and timestamp 1000 on."""


def has(times: Any, around: str = "closed, clean", rows: Any = None, **of: Any) -> Case:
    inside = {k: of.pop(k) for k in ("reason", "size", "end_offset", "index", "torn") if k in of}
    return SURROUNDINGS[around](seg(10, *(batches(10) if rows is None else rows), times=times, **inside), **of)


def entry(*of: int) -> bytes:
    """Timestamp and relative offset, of each."""
    return b"".join(pack(">qi", time, offset) for time, offset in zip(of[::2], of[1::2], strict=True))


def put(n: int, *of: tuple[int, int]) -> list[tuple[int, int]]:
    """The true entries with others in the place of the n-th."""
    return [*TRUE[:n], *of, *TRUE[n + 1 :]]


DEFECTS: dict[str, Any] = {
    "none": TRUE,
    "no entry": [],
    "no file": None,
    "a timestamp one too low": put(1, (1049, 15)),
    "a timestamp one too high": put(1, (1051, 15)),
    "an offset one too low": put(1, (1050, 14)),
    "an offset one too high": put(1, (1050, 16)),
    "an offset below the base": put(0, (1020, 9)),
    "the last one beyond the end": put(2, (1090, 20)),
    "the last two beyond the end": [*TRUE, (1100, 20), (1110, 21)],
    "the last one's timestamp is too low": put(2, (1089, 19)),
    "the last one's timestamp is too high": put(2, (1091, 19)),
    "the last one is missing": TRUE[:2],
    "one stands twice": put(1, TRUE[0]),
    "offsets equal": put(1, (1050, 12)),
    "timestamps equal": put(1, (1020, 15)),
    "timestamps fall": put(1, (1010, 15)),
    "offsets fall": put(1, (1050, 11)),
    "the first one is wrong, and two true ones follow": [(1021, 12), (1050, 15), (1090, 19)],
    "the first one is wrong, and three true ones follow": [(1021, 12), (1050, 15), (1060, 16), (1090, 19)],
    "the first and the last are wrong": [(1021, 12), (1040, 14), (1050, 15), (1060, 16), (1090, 20)],
    "the first and the third are wrong": [(1021, 12), (1030, 13), (1041, 14), (1050, 15), (1060, 16), (1090, 19)],
    "odd bytes": entry(1020, 2, 1050, 5, 1090, 9) + b"abc",
    "one unwritten slot": entry(1020, 2, 1050, 5, 1090, 9) + bytes(12),
    "two unwritten slots and odd bytes": entry(1020, 2, 1050, 5, 1090, 9) + bytes(27),
    "unwritten slots alone": bytes(24),
    "one unwritten slot alone": bytes(12),
    "fewer than a slot": bytes(5),
    "only left-overs": entry(2020, 22, 2050, 25, 2090, 29),
    "one left-over": [*TRUE, (2020, 22)],
}
EVERYWHERE = ("no file", "odd bytes", "one unwritten slot", "an offset one too high", "the last one is missing",
              "the first and the last are wrong")  # fmt: skip
SMALL = (b(10, 12, time=1000, epoch=-1), b(13, 15, time=1005, epoch=-1), b(16, 18, time=1003, epoch=-1))

CASES = {
    **{
        f"{what}, {x}": (lambda d=d, x=x: has(d, x))
        for what, d in DEFECTS.items()
        for x in (SURROUNDINGS if what in EVERYWHERE else MAIN)
    },
    **{
        f"a few batches, ({time}, {offset})": (lambda time=time, offset=offset: has([(time, offset)], rows=SMALL))
        for time in (999, 1000, 1003, 1004, 1005, 1006)
        for offset in (9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
    },
    **{
        f"a few batches, ({x}, {y}) and (1005, 15)": (lambda x=x, y=y: has([(x, y), (1005, 15)], rows=SMALL))
        for x, y in ((1000, 12), (1000, 11), (1000, 13), (1004, 15), (1005, 14), (1005, 15), (1006, 12), (1000, 16))
    },
    **{
        f"offsets are missing, ({time}, {offset})": (
            lambda time=time, offset=offset: has(
                [(time, offset)], rows=(b(10, 11, time=1000), b(14, 15, time=1005), b(20, time=1003))
            )
        )
        for time in (1000, 1005)
        for offset in (11, 12, 13, 14, 15, 16, 19, 20, 21)
    },
    **{
        f"damage {where}, {what}, {x}": (
            lambda rows=rows, d=d, x=x: has(
                d, x, rows=[batches(10)[i] | ({"problem": 3} if i in rows else {}) for i in range(10)]
            )
        )
        for where, rows in {
            "first": (0,),
            "within": (5,),
            "last": (9,),
            "nearly all": (0, 1, 2, 3, 4, 5, 6, 7, 8),
        }.items()
        for what, d in DEFECTS.items()
        if what
        in (
            "none",
            "no entry",
            "a timestamp one too low",
            "the last one beyond the end",
            "the last one is missing",
            "the last one's timestamp is too high",
            "the last one's timestamp is too low",
            "an offset below the base",
            "an offset one too high",
            "no file",
        )
        for x in ("closed, clean", "active, clean", "active, killed")
    },
    **{
        f"a cut end, {what}, {x}": (lambda d=d, x=x: has(d, x, reason="9 bytes", size=1009))
        for what, d in DEFECTS.items()
        if what
        in (
            "none",
            "no entry",
            "the last one beyond the end",
            "the last one is missing",
            "an offset below the base",
            "the last one's timestamp is too high",
            "the last two beyond the end",
            "only left-overs",
        )
        for x in ("closed, clean", "active, clean", "active, killed")
    },
    **{
        f"time 0, {name}": (lambda t=t, rows=rows: has(t, rows=rows))
        for name, (t, rows) in {
            "one empty slot": (bytes(12), [b(10, time=0)]),
            "two empty slots": (bytes(24), [b(10, time=0)]),
            "an entry beyond": (entry(0, 0, 0, 1), [b(10, 11, time=0)]),
            "no slot": (b"", [b(10, time=0)]),
            "one empty slot, time 1": (bytes(12), [b(10, time=1)]),
            "an entry of a later offset": (entry(0, 2), [b(10, 12, time=0)]),
            "no batch": (bytes(12), []),
            "no timestamp": (b"", [b(10, time=-1)]),
            "no timestamp, an entry": (entry(5, 0), [b(10, time=-1)]),
            "no timestamp, one empty slot": (bytes(12), [b(10, time=-1)]),
        }.items()
    },
    "no timestamp, no file": lambda: has(None, rows=[b(10, time=-1)]),
    "no batch, no file": lambda: has(None, rows=[]),
    "an old format": lambda: has([(5, 12)], rows=[b(10, magic=1), b(11)]),
    "an old format later": lambda: has([(5, 12)], rows=[*batches(5), b(15, magic=1), b(16), b(17)]),
    "an old format that is damaged": lambda: has([(5, 12)], rows=[*batches(5), b(15, magic=1, problem=3)]),
    "an old format, no file": lambda: has(None, rows=[b(10, magic=1), b(11)]),
    **{
        f"in no order, {name}": (lambda rows=rows: has([(1, 11)], rows=rows))
        for name, rows in {
            "overlap": [b(10, 12), b(12, 14)],
            "next": [b(10, 12), b(13, 14)],
            "overlap at a chunk": [b(10), b(11, 12), b(12, 14)],
            "next at a chunk": [b(10), b(11, 12), b(13, 14)],
            "a batch that ends before it begins": [b(10), b(12, 11)],
            "a batch of one": [b(10), b(12, 12)],
            "overlap behind damage": [b(10, 12), b(12, problem=3), b(12, 14)],
            "first overlap, then not": [b(10, 12), b(12, 14), b(15), b(16), b(17)],
        }.items()
    },
    "neither index in any segment, given alone": lambda: one(
        seg(10, *batches(3), times=None, index=None), seg(40, b(40), times=None, index=None), alone=True
    ),
    "an offset index alone in one segment, given alone": lambda: one(
        seg(10, *batches(3), times=None, index=None), seg(40, b(40), times=None), alone=True
    ),
    "a time index alone in one segment, given alone": lambda: one(
        seg(10, *batches(3), times=None, index=None), seg(40, b(40), index=None), alone=True
    ),
    "a directory in the place of the file": lambda: has(None, folders=(f"{10:020}.timeindex",)),
    "a directory in the place of the file, given alone": lambda: one(
        seg(10, *batches(3), times=None), seg(40, b(40)), alone=True, folders=(f"{10:020}.timeindex",)
    ),
    **{
        f"no file, and a directory in the place of the offset index, {x}": (
            lambda x=x: has(None, x, index=None, folders=(f"{10:020}.index",))
        )
        for x in ("closed, clean", "closed, killed, below the recovery point")
    },
    **{
        f"no file and no offset index, {x}": (lambda x=x: has(None, x, index=None))
        for x in ("closed, clean", "active, clean", "active, killed", "closed, killed, below the recovery point")
    },
    **{
        f"{n} wrong entries": (
            lambda n=n: has(
                [(1001 + 10 * i, 10 + i) for i in range(n)] + [(1000 + 10 * n, 10 + n)], rows=batches(n + 1)
            )
        )
        for n in (19, 20, 21, 23)
    },
    "an empty chunk": lambda: has(put(1, (1049, 15)), chunk=0),
    "batches in one chunk": lambda: has(put(1, (1049, 15)), chunk=10),
    "three segments, the first below the recovery point": lambda: one(
        *(
            seg(n, *[x | {} for x in (b(n, time=1000, epoch=-1), b(n + 1, time=1001, epoch=-1))], times=[])
            for n in (10, 20, 30)
        ),
        clean=False,
        recovery={"t-0": 20},
    ),
    **{
        f"{n} wrong entries, of which 2 are remembered": (
            lambda n=n: has(
                [(1010, 11), *((1021 + 10 * i, 12 + i) for i in range(n)), (1090, 19)],
                limits={"storage.time_index:MOST_REMEMBERED": 2},
            )
        )
        for n in (2, 3)
    },
    "one true entry behind a wrong one, and three wrong ones": lambda: has(
        [(1021, 12), (1050, 15), (1061, 16), (1071, 17), (1081, 18)], "active, killed"
    ),
    **{
        f"timestamps that rise by one or not: {name}": (
            lambda e=e: has(e, rows=[b(10 + i, time=x, epoch=-1) for i, x in enumerate((5, 5, 6, 7, 6, 5))])
        )
        for name, e in {
            "the first of two": [(5, 10), (7, 13)],
            "the second of two": [(5, 11), (7, 13)],
            "one below the largest before": [(6, 14), (7, 13)],
            "each": [(5, 10), (6, 12), (7, 13)],
            "the last but one, and below": [(7, 13), (6, 14)],
        }.items()
    },
    **{
        f"entries about damage, {name}": (
            lambda e=e: has(e, rows=[*batches(3), *(b(13 + i, problem=3) for i in range(5)), b(18, time=1080)])
        )
        for name, e in {
            "rising": [(1020, 12), (1030, 14), (1040, 15), (1080, 18)],
            "offsets equal": [(1020, 12), (1030, 14), (1040, 14), (1080, 18)],
            "offsets fall": [(1020, 12), (1030, 14), (1040, 13), (1080, 18)],
            "timestamps equal": [(1020, 12), (1030, 14), (1030, 15), (1080, 18)],
            "timestamps rise by one": [(1020, 12), (1030, 14), (1031, 15), (1080, 18)],
            "timestamps fall": [(1020, 12), (1030, 14), (1029, 15), (1080, 18)],
        }.items()
    },
    **{
        f"below 0, {name}": (lambda rows=rows: one(seg(0, *rows, times=entry(5, -1)), seg(40, b(40, epoch=-1))))
        for name, rows in {"no batch": (), "a damaged batch": (b(0, problem=3),), "a batch": (b(0, time=5),)}.items()
    },
    "the first entry is true of an earlier batch's time": lambda: has([(1000, 10), (1090, 19)]),
    **{
        f"neither index in any segment, {'clean' if c else 'killed'}": (
            lambda c=c: one(
                seg(10, *batches(3), times=None, index=None), seg(40, b(40), times=None, index=None), clean=c
            )
        )
        for c in (True, False)
    },
}
