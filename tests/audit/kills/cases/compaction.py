"""Of what compaction promises about a log at rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkaspec.audits.management.compaction import Keys
from kafkaspec.audits.management.compaction_driver import bytes_of
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL, LogRecord, built, emptied, encode
from kafkaspec.spec.management import compaction as spec
from tests.audit.kills.around import AWAY
from tests.audit.kills.write import Case, Row, b, one, seg
from tests.audit.kills.write import abort as end_of
from tests.audit.kills.write import t as txn


def few(capacity: int) -> type[Keys]:
    """Keys with little room in memory."""

    def begin(self: Keys) -> None:
        Keys.__init__(self, capacity)

    return type("Few", (Keys,), {"__init__": begin})


def d(base: int, *keys: str | None, last: int | None = None, at: tuple[int, ...] | None = None) -> bytes:
    """Data, a record for each key."""
    return made(base, "data", -1, *keys, last=last, at=at)


def made(
    base: int, kind: Any, producer: int, *keys: str | None, last: int | None = None, at: tuple[int, ...] | None = None
) -> bytes:
    offsets = at if at is not None else tuple(base + i for i in range(len(keys)))
    records = tuple(spec.Record(o, k, "v") for o, k in zip(offsets, keys, strict=True))
    end = last if last is not None else max(offsets, default=base)
    return bytes_of(spec.Batch(base, end, kind, producer, records))


def t(base: int, producer: int, *keys: str | None, last: int | None = None, at: tuple[int, ...] | None = None) -> bytes:
    return made(base, "txn", producer, *keys, last=last, at=at)


def commit(base: int, producer: int) -> bytes:
    return made(base, "commit", producer)


def abort(base: int, producer: int) -> bytes:
    return made(base, "abort", producer)


def empty(base: int, last: int, producer: int, sequence: int, epoch: int = 0, **of: int) -> bytes:
    """A producer's batch without records."""
    batch = built(
        base, [LogRecord(base, 1000, b"k", b"v")], leader_epoch=0, producer_id=producer, producer_epoch=epoch,
        base_sequence=sequence, last_offset=last, **of,
    )  # fmt: skip
    return encode(emptied(batch))


def p(base: int, producer: int, sequence: int, *keys: str, **of: int) -> bytes:
    """A producer's batch with records."""
    records = [LogRecord(base + i, 1000, k.encode(), b"v") for i, k in enumerate(keys)]
    said = {"leader_epoch": 0, "producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
    return encode(built(base, records, **(said | of)))


def other_control(base: int, producer: int) -> bytes:
    """A control batch that is no transaction's marker."""
    record = LogRecord(base, 1000, bytes([0, 0, 0, 5]), bytes(6))
    return encode(
        built(
            base, [record], attributes=CONTROL | TRANSACTIONAL, leader_epoch=0, producer_id=producer, producer_epoch=0,
            base_sequence=-1,
        )
    )  # fmt: skip


def bad(batch: bytes) -> bytes:
    """With a wrong CRC."""
    return batch[:17] + bytes([batch[17] ^ 1]) + batch[18:]


def shifted(batch: bytes, base: int) -> bytes:
    """With another base offset, which no CRC covers."""
    return base.to_bytes(8, "big", signed=True) + batch[8:]


def log(*batches: bytes, point: int | None, start: int | None = None, end: int = 40, **of: Any) -> Case:
    """A segment at 10 and the active one, with a cleaner point."""
    more: dict[str, Any] = {"cleaner": {"t-0": point}} if point is not None else {}
    if start is not None:
        more["starts"] = {"t-0": start}
    return one(seg(10, *batches), seg(end, d(end, "z")), **more, **of)


def rows(*of: Row, point: int = 30, **more: Any) -> Case:
    """The same of rows, each record with a key of its own."""
    return one(seg(10, *of), seg(40, b(40)), cleaner={"t-0": point}, **more)


def two(first: tuple[bytes, ...], second: tuple[bytes, ...], point: int, **of: Any) -> Case:
    """Segments at 10 and at 20, and the active one at 40."""
    return one(seg(10, *first), seg(20, *second), seg(40, d(40, "z")), cleaner={"t-0": point}, **of)


TWICE = (d(10, "a", "b"), d(12, "c", "a"), d(14, "d"))
MANY = tuple(d(10 + i, f"k{i % 7}") for i in range(20))
ROOM = "management.compaction:CompactionCheck.keys_class"

CASES: dict[str, Callable[[], Case]] = {
    **{
        f"a key twice, point {n}": (lambda n=n: log(*TWICE, point=n))
        for n in (None, 9, 10, 11, 12, 13, 14, 15, 39, 40, 41)
    },
    **{
        f"a key twice, point 20, log start {n}": (lambda n=n: log(*TWICE, point=20, start=n))
        for n in (9, 10, 11, 13, 14)
    },
    **{
        f"a key twice, {name}": (lambda of=of: log(*TWICE, point=20, **of))
        for name, of in {
            "a deleted copy": {"name": f"t-0.{AWAY}-delete"},
            "an unreadable log start": {"starts": b"x"},
            "killed": {"clean": False},
            "a future copy": {"name": f"t-0.{AWAY}-future"},
            "the segment alone": {"only": [f"d/t-0/{10:020}.log"]},
        }.items()
    },
    "a key twice in one segment": lambda: one(seg(10, *TWICE), cleaner={"t-0": 10}),
    "a key twice in one segment, point above": lambda: one(seg(10, *TWICE), cleaner={"t-0": 15}),
    "no segment": lambda: one(cleaner={"t-0": 15}),
    "keys once": lambda: log(d(10, "a", "b"), d(12, "c"), d(13, "e"), point=20),
    "a key three times": lambda: log(d(10, "a"), d(11, "a"), d(12, "a"), point=20),
    "a key three times, point 12": lambda: log(d(10, "a"), d(11, "a"), d(12, "a"), point=12),
    "a key twice in a batch": lambda: log(d(10, "a", "b", "a"), point=20),
    "two keys twice": lambda: log(d(10, "a", "b"), d(12, "b", "a"), point=20),
    "a key of 40 bytes twice": lambda: log(d(10, "x" * 40), d(11, "x" * 40), point=20),
    "a key of 41 bytes twice": lambda: log(d(10, "x" * 41), d(11, "x" * 41), point=20),
    "a key in two segments": lambda: two((d(10, "a"), d(11, "b")), (d(20, "a"),), 40),
    "a key in two segments, point 20": lambda: two((d(10, "a"), d(11, "b")), (d(20, "a"),), 20),
    "a key in two segments, point 21": lambda: two((d(10, "a"), d(11, "b")), (d(20, "a"), d(21, "b")), 21),
    **{
        f"records without a key, {name}, point {n}": (lambda x=x, n=n: log(*x, point=n))
        for name, x in {
            "one": (d(10, "a"), d(11, None), d(12, "b")),
            "two": (d(10, "a", None), d(12, None, "b")),
        }.items()
        for n in (11, 12, 13, 14, 20)
    },
    **{
        f"{n} records without a key": (lambda n=n: log(*(d(10 + i, None) for i in range(n)), point=40))
        for n in (19, 20, 21, 22)
    },
    "23 records without a key in a batch": lambda: log(d(10, *[None] * 23), point=40),
    "two segments of records without a key": lambda: two((d(10, None),), (d(20, None),), 40),
    **{
        f"{n} keys twice": (
            lambda n=n: log(
                *(d(10 + i, f"k{i}") for i in range(n)), *(d(10 + n + i, f"k{i}") for i in range(n)), point=60, end=60
            )
        )
        for n in (19, 20, 21, 22)
    },
    **{f"a key {n} times": (lambda n=n: log(*(d(10 + i, "k") for i in range(n)), point=40)) for n in (20, 21, 22, 23)},
    **{
        f"at most {n} groups are looked at": (
            lambda n=n: log(
                d(10, "a", "b", "c"), d(13, "a", "b", "c"), point=40, limits={"management.compaction:MOST_LOOKS": n}
            )
        )
        for n in (1, 2)
    },
    **{f"many keys, room for {n}": (lambda n=n: log(*MANY, point=40, limits={ROOM: few(n)})) for n in (1, 4, 20)},
    **{
        f"a key {k} times, room for {n}": (
            lambda k=k, n=n: log(*(d(10 + i, "k") for i in range(k)), point=60, end=60, limits={ROOM: few(n)})
        )
        for k, n in ((2, 1), (23, 4), (45, 1))
    },
    **{
        f"keys once, room for {n}": (
            lambda n=n: log(*(d(10 + i, f"k{i}") for i in range(9)), point=40, limits={ROOM: few(n)})
        )
        for n in (1, 4)
    },
    # ---- transactions
    "a committed transaction": lambda: log(t(10, 1, "a"), commit(11, 1), d(12, "b"), point=20),
    "an aborted transaction": lambda: log(t(10, 1, "a"), abort(11, 1), d(12, "b"), point=20),
    "an aborted transaction of two batches": lambda: log(t(10, 1, "a"), t(11, 1, "b"), abort(12, 1), point=20),
    "an aborted transaction, emptied": lambda: log(t(10, 1, last=10), abort(11, 1), point=20),
    "an abort without records": lambda: log(d(10, "a"), abort(11, 1), point=20),
    "two aborted transactions of one producer": lambda: log(
        t(10, 1, "a"), abort(11, 1), t(12, 1, "b"), abort(13, 1), point=20
    ),
    "aborted and committed by turns": lambda: log(
        t(10, 1, "a"), t(11, 2, "b"), commit(12, 1), abort(13, 2), t(14, 1, "c"), abort(15, 1), point=20
    ),
    "another control batch within": lambda: log(t(10, 1, "a"), other_control(11, 1), abort(12, 1), point=20),
    "another control batch behind": lambda: log(t(10, 1, "a"), other_control(11, 1), point=20),
    **{
        f"an aborted transaction at 12, point {n}": (lambda n=n: log(d(10, "a"), t(12, 1, "b"), abort(13, 1), point=n))
        for n in (11, 12, 13, 14)
    },
    **{
        f"an aborted transaction of 12 to 14, log start {n}": (
            lambda n=n: log(d(10, "a"), t(12, 1, "b", "c", "d"), abort(15, 1), point=20, start=n)
        )
        for n in (11, 12, 13, 14, 15)
    },
    **{
        f"{what} of {', '.join(map(str, at))}, log start {start}, point {n}": (
            lambda at=at, end=end, start=start, n=n: log(
                t(10, 1, *"abc"[: len(at)], last=19, at=at), *end, d(21, "z"), point=n, start=start
            )
        )
        for what, end in (("an aborted transaction", (abort(20, 1),)), ("a transaction without a marker", ()))
        for at in ((10, 19), (10, 14, 19))
        for start, n in ((13, 16), (14, 16), (15, 16), (13, 14), (13, 15))
    },
    "two aborted transactions across segments": lambda: two(
        (t(10, 1, "a"), t(11, 2, "b")), (abort(20, 2), abort(21, 1)), 40
    ),
    **{
        f"{n} aborted transactions": (
            lambda n=n: log(
                *(x for i in range(n) for x in (t(10 + 2 * i, 1, f"k{i}"), abort(11 + 2 * i, 1))), point=90, end=90
            )
        )
        for n in (19, 20, 21, 22)
    },
    **{
        f"a transaction without a marker at 12, point {n}": (lambda n=n: log(d(10, "a"), t(12, 1, "b"), point=n))
        for n in (11, 12, 13, 20)
    },
    **{
        f"a transaction without a marker at 12, log start {n}": (
            lambda n=n: log(d(10, "a"), t(12, 1, "b"), point=20, start=n)
        )
        for n in (12, 13, 19, 20, 21)
    },
    **{
        f"{n} transactions without a marker": (
            lambda n=n: log(*(t(10 + i, i, f"k{i}") for i in range(n)), point=60, end=60)
        )
        for n in (19, 20, 21, 22)
    },
    "a transaction without a marker, and damage": lambda: log(t(10, 1, "a"), bad(d(11, "b")), d(12, "c"), point=20),
    "a transaction without a marker, and a wrong base offset": lambda: log(
        t(10, 1, "a"), shifted(d(11, "b"), 5), d(12, "c"), point=20
    ),
    "a transaction without a marker, and a cut end": lambda: one(
        seg(10, t(10, 1, "a"), rest=d(11, "b")[:30]), seg(40, d(40, "z")), cleaner={"t-0": 20}
    ),
    "a transaction without a marker, and a cut end later": lambda: one(
        seg(10, t(10, 1, "a")), seg(40, d(40, "z"), rest=d(41, "b")[:30]), cleaner={"t-0": 20}
    ),
    "damage, and then an abort": lambda: log(t(10, 1, "a"), bad(commit(11, 1)), t(12, 1, "b"), abort(13, 1), point=20),
    "a key twice, one in damage": lambda: log(d(10, "a"), bad(d(11, "a")), d(12, "b"), point=20),
    **{
        f"a key twice, one at a base offset of {n} in the place of {at}": (
            lambda n=n, at=at: log(
                *(shifted(x, n) if i == at else x for i, x in enumerate((d(10, "a"), d(11, "b"), d(12, "a")))), point=20
            )
        )
        for at, n in ((0, 9), (0, 11), (0, 12), (1, 9), (1, 10), (1, 12), (1, 13), (2, 10), (2, 11), (2, 13))
    },
    "a key twice in old messages": lambda: log(d(10, "a")[:16] + b"\1" + d(10, "a")[17:], d(11, "a"), point=20),
    # ---- batches without records
    **{
        f"two empty batches of a producer, {name}, {known}": (lambda x=x, of=of: log(*x, d(14, "a"), point=20, **of))
        for name, x in {
            "sequences rise": (empty(10, 11, 1, 0), empty(12, 13, 1, 2)),
            "one sequence": (empty(10, 11, 1, 0), empty(12, 13, 1, 0)),
            "one last sequence": (empty(10, 11, 1, 0), empty(12, 12, 1, 1)),
            "of two producers": (empty(10, 11, 1, 0), empty(12, 13, 2, 2)),
            "of another epoch": (empty(10, 11, 1, 0), empty(12, 13, 1, 0, epoch=1)),
            "records in the second": (empty(10, 11, 1, 0), p(12, 1, 2, "x", "y")),
            "records between": (empty(10, 10, 1, 0), p(11, 1, 1, "x"), empty(12, 13, 1, 2)),
            "of producer 0": (empty(10, 11, 0, 0), empty(12, 13, 0, 2)),
            "of none": (d(10, last=11), d(12, last=13)),
        }.items()
        for known, of in {"a topic with an id": {"id": "x"}, "none known": {}}.items()
    },
    **{
        f"two empty batches, point {n}": (
            lambda n=n: log(empty(10, 11, 1, 0), empty(12, 13, 1, 2), d(14, "a"), point=n, id="x")
        )
        for n in (11, 12, 13, 14, 15)
    },
    **{
        f"two empty batches, log start {n}": (
            lambda n=n: log(empty(10, 11, 1, 0), empty(12, 13, 1, 2), d(14, "a"), point=20, start=n, id="x")
        )
        for n in (10, 11, 12, 13)
    },
    "two empty control batches": lambda: log(
        empty(10, 11, 1, -1, attributes=CONTROL | TRANSACTIONAL),
        empty(12, 13, 1, -1, attributes=CONTROL | TRANSACTIONAL),
        d(14, "a"),
        point=20,
        id="x",
    ),
    "three empty batches": lambda: log(empty(10, 11, 1, 0), empty(12, 13, 1, 2), empty(14, 14, 1, 4), point=20, id="x"),
    "an empty batch, and one in damage": lambda: log(
        empty(10, 11, 1, 0), bad(empty(12, 13, 1, 2)), d(14, "a"), point=20, id="x"
    ),
    "empty batches in two segments": lambda: two((empty(10, 11, 1, 0),), (empty(20, 21, 1, 2),), 40, id="x"),
    **{
        f"{n} empty batches": (
            lambda n=n: log(*(empty(10 + i, 10 + i, 1, i) for i in range(n)), point=60, end=60, id="x")
        )
        for n in (20, 21, 22, 23)
    },
    "a key's file is gone": lambda: log(*TWICE, point=20, gone=[f"d/t-0/{10:020}.log"]),
    **{
        f"a key twice below 0 in a log, log start {n}": (
            lambda n=n: one(seg(0, d(0, "a"), d(1, "a")), seg(9, d(9, "z")), cleaner={"t-0": n})
        )
        for n in (0, 1, 2)
    },
    # ---- rows
    **{
        f"a key {k} times, room for {n}": (
            lambda k=k, n=n: log(*(d(10 + i, "k") for i in range(k)), point=90, end=90, limits={ROOM: few(n)})
        )
        for k, n in ((60, 29), (60, 30))
    },
    "rows, room for 4": lambda: rows(*(b(10 + i) for i in range(9)), limits={ROOM: few(4)}),
    "rows, an empty chunk": lambda: rows(b(10), b(11), chunk=0),
    "rows, a transaction without a marker and an old batch": lambda: rows(
        txn(10, 1, 0), b(11, magic=1, count=-1, first_record=-1, last_record=-2)
    ),
    "rows, a transaction without a marker": lambda: rows(txn(10, 1, 0), b(11)),
    "rows, a damaged abort": lambda: rows(txn(10, 1, 0), end_of(11, 1, problem=3)),
    "rows, a damaged commit": lambda: rows(txn(10, 1, 0), end_of(11, 1, problem=3, control_type=1), end_of(12, 1)),
    **{
        f"rows, a wrong base offset where chunks meet, {c} a chunk": (
            lambda c=c: rows(txn(10, 1, 0), b(11), b(9, 12), b(13), chunk=c)
        )
        for c in (1, 2)
    },
    "rows, another control batch without a transaction": lambda: rows(
        b(10), b(11, pid=1, attributes=CONTROL | TRANSACTIONAL, control_type=2)
    ),
    "rows, a key twice that cannot be read any more": lambda: rows(b(10, key=5), b(11, key=5), b(12)),
}
