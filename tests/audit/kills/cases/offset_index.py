"""Of offset indexes beside their segments."""

from __future__ import annotations

from struct import pack
from typing import Any

from kafkaspec.audit.check import TopicConfig
from tests.audit.kills.around import MAIN, SURROUNDINGS, batches
from tests.audit.kills.write import Case, b, one, seg

TRUE = [(12, 200), (15, 500), (18, 800)]
"""Of ten batches, one record each, 100 bytes each, from offset 10 on."""


def has(index: Any, around: str = "closed, clean", rows: Any = None, interval: int | None = None, **of: Any) -> Case:
    inside = {k: of.pop(k) for k in ("reason", "size", "end_offset", "times", "torn") if k in of}
    if interval is not None:
        of["config"] = {"t": TopicConfig(index_interval_bytes=interval)}
    return SURROUNDINGS[around](seg(10, *(batches(10) if rows is None else rows), index=index, **inside), **of)


def entry(*of: int) -> bytes:
    """Relative offset and position, of each."""
    return b"".join(pack(">ii", offset, at) for offset, at in zip(of[::2], of[1::2], strict=True))


def put(n: int, *of: tuple[int, int]) -> list[tuple[int, int]]:
    return [*TRUE[:n], *of, *TRUE[n + 1 :]]


DEFECTS: dict[str, Any] = {
    "none": TRUE,
    "no entry": [],
    "no file": None,
    "a position one byte too low": put(1, (15, 499)),
    "a position one byte too high": put(1, (15, 501)),
    "the batch before's position": put(1, (15, 400)),
    "the batch behind's position": put(1, (15, 600)),
    "an offset that is its batch's next": put(1, (16, 500)),
    "an offset that is its batch's before": put(1, (14, 500)),
    "position 0": put(0, (12, 0)),
    "a negative position": put(0, (12, -1)),
    "an offset below the base": put(0, (9, 0)),
    "an offset at the base": put(0, (10, 0)),
    "the last one at the end": put(2, (18, 1000)),
    "the last one just before the end": put(2, (18, 999)),
    "the last one far beyond the end": put(2, (18, 5000)),
    "one left-over": [*TRUE, (20, 1000)],
    "two left-overs": [*TRUE, (20, 1000), (25, 1500)],
    "one stands twice": put(1, TRUE[0]),
    "offsets equal": put(1, (12, 500)),
    "offsets fall": put(1, (11, 500)),
    "the first is too high": put(0, (17, 200)),
    "the second is too high": [(12, 200), (17, 500), (16, 600), (18, 800)],
    "the first one is wrong, and two true ones follow": put(0, (12, 201)),
    "the first and the last are wrong": [(12, 201), (15, 500), (16, 600), (17, 700), (20, 1000)],
    "odd bytes": entry(2, 200, 5, 500, 8, 800) + b"abc",
    "one unwritten slot": entry(2, 200, 5, 500, 8, 800) + bytes(8),
    "two unwritten slots and odd bytes": entry(2, 200, 5, 500, 8, 800) + bytes(19),
    "unwritten slots alone": bytes(16),
    "one unwritten slot alone": bytes(8),
    "fewer than a slot": bytes(5),
    "only left-overs": entry(30, 3000, 40, 4000),
}
EVERYWHERE = ("no file", "odd bytes", "one unwritten slot", "a position one byte too high", "one left-over",
              "the first and the last are wrong", "an offset that is its batch's next")  # fmt: skip
COMPACTED = (
    b(10, 14, last_record=12, count=2, epoch=-1),
    b(15, 19, last_record=19, count=2, epoch=-1),
    b(20, 24, last_record=-1, count=0, epoch=-1),
    b(25, 29, last_record=27, count=3, epoch=-1),
)
APPEND = tuple(b(10 + 3 * i, 12 + 3 * i, epoch=-1) for i in range(6))


def damage(*of: int, n: int = 10) -> list[dict[str, int]]:
    return [x | ({"problem": 3} if i in of else {}) for i, x in enumerate(batches(n))]


CASES = {
    **{
        f"{what}, {x}": (lambda d=d, x=x: has(d, x))
        for what, d in DEFECTS.items()
        for x in (SURROUNDINGS if what in EVERYWHERE else MAIN)
    },
    **{
        f"compacted, offset {offset} at {at}": (lambda o=offset, at=at: has([(o, at)], rows=COMPACTED))
        for offset in (9, 10, 11, 12, 13, 14, 15, 17, 19, 20, 22, 24, 25, 27, 28, 29, 30)
        for at in (0, 100, 200, 300)
    },
    **{
        f"one append, offset {offset} at {at}": (lambda o=offset, at=at, c=c: has([(o, at)], rows=APPEND, chunk=c))
        for offset in (15, 16, 18, 21, 23, 24, 27, 28)
        for at in (100, 200)
        for c in (1, 2, 6)
    },
    "several of one append": lambda: has([(21, 100), (24, 200), (27, 300)], rows=APPEND),
    "several of one append, one of which is odd": lambda: has([(21, 100), (23, 200), (27, 300)], rows=APPEND),
    **{
        f"one append and damage at {n}, offset {offset}": (
            lambda n=n, o=offset, c=c: has(
                [(o, 100)], rows=[x | ({"problem": 3} if i == n else {}) for i, x in enumerate(APPEND)], chunk=c
            )
        )
        for n in (0, 1, 2, 3, 5)
        for offset in (14, 15, 16, 18, 21, 22, 30)
        for c in (2,)
    },
    **{
        f"damage {where}, {what}, {x}": (lambda rows=rows, d=d, x=x: has(d, x, rows=damage(*rows)))
        for where, rows in {"first": (0,), "at an entry": (5,), "before an entry": (4,), "last": (9,)}.items()
        for what, d in DEFECTS.items()
        if what
        in (
            "none",
            "a position one byte too low",
            "the batch before's position",
            "the last one at the end",
            "an offset that is its batch's next",
            "offsets fall",
            "a negative position",
            "no file",
        )
        for x in ("closed, clean", "active, killed")
    },
    "nothing but damage": lambda: has(TRUE, rows=damage(*range(10))),
    "an entry before any batch": lambda: has(
        [(10, 0), (15, 500)], rows=[x | {"position": 50 + 100 * i} for i, x in enumerate(batches(8))]
    ),
    **{
        f"a hole between batches, position {at}": (
            lambda at=at: has([(11, at)], rows=[b(10, epoch=-1), b(11, position=150, epoch=-1), b(12, epoch=-1)])
        )
        for at in (0, 99, 100, 149, 150, 151, 249, 250, 350)
    },
    **{
        f"a cut end, {what}, {x}": (lambda d=d, x=x: has(d, x, reason="9 bytes", size=1009))
        for what, d in {
            "none": TRUE,
            "within the rest": put(2, (18, 1000)),
            "at its last byte": put(2, (18, 1008)),
            "beyond it": put(2, (18, 1009)),
            "before it": put(2, (18, 999)),
            "a negative position": put(0, (12, -1)),
        }.items()
        for x in MAIN
    },
    **{
        f"an interval of {interval}, {name}": (lambda i=interval, e=e: has(e, interval=i))
        for interval in (99, 100, 199, 200, 300)
        for name, e in {
            "the first pair dense": [(11, 100), (12, 200), (15, 500), (18, 800)],
            "the second pair dense": [(11, 100), (14, 400), (15, 500), (18, 800)],
            "the last pair dense": [(11, 100), (14, 400), (17, 700), (18, 800)],
            "two pairs dense": [(11, 100), (14, 400), (15, 500), (17, 700), (18, 800)],
            "none dense": [(10, 0), (14, 400), (18, 800)],
        }.items()
    },
    "an interval and damage": lambda: has([(11, 100), (14, 400), (15, 500), (18, 800)], interval=200, rows=damage(9)),
    "an interval and a left-over": lambda: has(
        [(11, 100), (14, 400), (15, 500), (18, 800), (30, 3000)], "active, killed", interval=200
    ),
    "an interval and a left-over behind the dense pair": lambda: has(
        [(11, 100), (14, 400), (15, 500), (30, 3000)], "active, killed", interval=200
    ),
    **{
        f"an interval of {i}, wrong and then true": (
            lambda i=i: has([(11, 100), (15, 501), (18, 800), (19, 900)], "active, killed", interval=i)
        )
        for i in (None, 340, 349, 350, 351, 400, 800)
    },
    **{
        f"an interval of {i}, the first wrong": (
            lambda i=i: has([(11, 101), (18, 800), (20, 1000)], "active, killed", interval=i)
        )
        for i in (399, 400, 401)
    },
    "an interval of 349, batches of several sizes": lambda: has(
        [(11, 100), (15, 501), (18, 800), (20, 1100)],
        "active, killed",
        interval=349,
        rows=[*batches(8), b(18, size=150, epoch=-1), b(19, epoch=-1)],
    ),
    "an old format": lambda: has([(11, 50)], rows=[b(10, magic=1), b(11)]),
    "an old format later": lambda: has([(11, 50)], rows=[*batches(5), b(15, magic=1), b(16), b(17)]),
    "an old format that is damaged": lambda: has([(11, 50)], rows=[*batches(5), b(15, magic=1, problem=3)]),
    "an old format, no file": lambda: has(None, rows=[b(10, magic=1), b(11)]),
    **{
        f"in no order, {name}": (lambda rows=rows: has([(11, 50)], rows=rows))
        for name, rows in {
            "overlap": [b(10, 12), b(12, 14)],
            "next": [b(10, 12), b(13, 14)],
            "overlap at a chunk": [b(10), b(11, 12), b(12, 14)],
            "next at a chunk": [b(10), b(11, 12), b(13, 14)],
            "a batch that ends before it begins": [b(10), b(12, 11)],
            "a batch of one": [b(10), b(12, 12)],
            "overlap behind damage": [b(10, 12), b(12, problem=3), b(12, 14)],
        }.items()
    },
    **{
        f"no file and no batch, {x}": (lambda x=x: has(None, x, rows=[]))
        for x in ("closed, clean", "active, clean", "active, killed", "active, deleted", "active, given alone")
    },
    "a directory in the place of the file": lambda: has(None, folders=(f"{10:020}.index",)),
    "a directory in the place of the file, given alone": lambda: one(
        seg(10, *batches(3), index=None), seg(40, b(40)), alone=True, folders=(f"{10:020}.index",)
    ),
    "no file and one byte": lambda: has(None, "active, killed", rows=[], reason="1 byte", size=1),
    "neither index in any segment, given alone": lambda: one(
        seg(10, *batches(3), times=None, index=None), seg(40, b(40), times=None, index=None), alone=True
    ),
    "a time index in one segment, given alone": lambda: one(
        seg(10, *batches(3), times=None, index=None), seg(40, b(40), index=None), alone=True
    ),
    **{
        f"{n} wrong entries": (
            lambda n=n: has([(10 + i, 100 * i + 1) for i in range(n)] + [(10 + n, 100 * n)], rows=batches(n + 1))
        )
        for n in (19, 20, 21, 23)
    },
    **{
        f"{n} wrong entries, of which 2 are remembered": (
            lambda n=n: has(
                [(11, 100), *((12 + i, 201 + 100 * i) for i in range(n)), (19, 900)],
                limits={"storage.offset_index:MOST_REMEMBERED": 2},
            )
        )
        for n in (2, 3)
    },
    "an empty chunk": lambda: has(put(1, (15, 501)), chunk=0),
    "batches in one chunk": lambda: has(put(1, (15, 501)), chunk=10),
    "batches one by one": lambda: has(put(1, (15, 501)), chunk=1),
    "one true entry behind a wrong one, and three wrong ones": lambda: has(
        [(12, 201), (15, 500), (16, 601), (17, 701), (18, 801)], "active, killed", interval=10
    ),
    **{
        f"offset {offset} at {at}, {name}": (lambda o=offset, at=at, rows=rows: has([(o, at)], rows=rows))
        for name, rows in {
            "a batch emptied behind a gap": [b(10, 14), b(20, 24, last_record=-1), b(25, 29), b(30, 34)],
            "a batch emptied at the end of a chunk": [b(10, 14), b(15, 19, last_record=-1), b(20, 24), b(25, 29)],
        }.items()
        for offset in (15, 19, 20, 22)
        for at in (0, 100)
    },
    **{
        f"a last record at {r}, offset 2": (
            lambda r=r: one(seg(0, b(0, 4, last_record=r), b(5), index=[(2, 0)]), seg(40, b(40)), clean=True)
        )
        for r in (-1, 0, 1, 2)
    },
    **{
        f"a hole between chunks, position {at}": (
            lambda at=at: has(
                [(11, at)], rows=[b(10, epoch=-1), b(11, position=150, epoch=-1), b(12, epoch=-1)], chunk=1
            )
        )
        for at in (99, 100, 149, 150)
    },
    **{
        f"wrong, and then one that waits for batches beside damage that ends at {end}": (
            lambda end=end: has(
                [(10, 1), (18, 100)],
                "active, killed",
                interval=1,
                rows=[*APPEND[:2], b(16, end, problem=3), b(19, 21), *APPEND[4:]],
            )
        )
        for end in (17, 18)
    },
    "wrong, and then one that waits for batches behind damage": lambda: has(
        [(10, 1), (21, 100)],
        "active, killed",
        interval=1,
        rows=[*APPEND[:2], b(16, 18, problem=3), b(19, 21), *APPEND[4:]],
    ),
    **{
        f"falling: {name}": (lambda e=e: has(e))
        for name, e in {
            "one of a later batch, and one within a batch": [(12, 200), (18, 500), (16, 601), (19, 900)],
            "two of later batches": [(12, 200), (18, 500), (17, 600), (19, 900)],
            "one above the one before": [(14, 400), (15, 400), (15, 500)],
            "two above the one before": [(13, 300), (15, 400), (15, 500)],
        }.items()
    },
    **{f"damage first, an offset at {o}": (lambda o=o: has([(o, 0), (15, 500)], rows=damage(0))) for o in (8, 9, 10)},
    "room by one byte": lambda: has(
        [(11, 100), (15, 501), (18, 800), (19, 900)],
        "active, killed",
        interval=349,
        rows=[*batches(9), b(19, size=101, epoch=-1)],
    ),
    **{
        f"neither index in any segment, {'clean' if c else 'killed'}": (
            lambda c=c: one(
                seg(10, *batches(3), times=None, index=None), seg(40, b(40), times=None, index=None), clean=c
            )
        )
        for c in (True, False)
    },
    **{
        f"what a truncation left: {name}": (lambda e=e, i=i, rows=rows: has(e, "active, killed", interval=i, rows=rows))
        for name, e, i, rows in (
            ("two wrong ones, room behind the first", [(11, 100), (12, 201), (15, 501), (18, 800)], 300, None),
            ("a true one that falls, and one beyond", [(12, 200), (18, 500), (17, 600), (30, 3000)], 1, None),
            ("a true one that falls", [(12, 200), (18, 500), (17, 600), (19, 900)], 1, None),
            ("a wrong one, and a true one that falls", [(12, 201), (18, 500), (17, 600), (19, 900)], 1, None),
            ("a wrong one, and a true one that is blamed", [(12, 201), (18, 500), (16, 600), (19, 900)], 1, None),
        )
    },
    **{
        f"{what}, active, killed, flushed": (lambda d=d: has(d, "active, killed", recovery={"t-0": 20}))
        for what, d in DEFECTS.items()
        if what in ("odd bytes", "one left-over")
    },
    "odd bytes in a segment of one offset": lambda: one(
        seg(10, b(10, epoch=-1), index=b"abc"),
        seg(11, b(11, epoch=-1)),
        seg(30, b(30, epoch=-1)),
        clean=False,
        recovery={"t-0": 11},
    ),
    "what a truncation left: an entry of a damaged batch behind a wrong one": lambda: has(
        [(12, 201), (15, 500)], "active, killed", interval=1, rows=damage(5), chunk=10
    ),
}
