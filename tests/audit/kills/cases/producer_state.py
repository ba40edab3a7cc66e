"""Of producers: sequences, epochs, transactions, their index, and the snapshots."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from struct import pack
from typing import Any

from kafkaspec.impl.storage.producer_state import SnapshotEntry, encode
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL, Batch, LogRecord, built, emptied
from tests.audit.kills.around import AWAY
from tests.audit.kills.write import NOW, Case, Row, abort, b, commit, e, one, p, seg, t

INT_MAX = 2**31 - 1
HALF = INT_MAX // 2
DAY = 86_400_000
SAME_LINE = (1, 159, 520, 678)
"""Producers that a small table has on one line."""
Txn = tuple[int, int, int, int]


def log(*rows: Row, base: int = 0, txn: Sequence[Txn] | bytes | None = None, **of: Any) -> Case:
    """A segment of these batches, beside the index of its aborted transactions."""
    return one(seg(base, *(x | {"leader_epoch": -1} for x in rows), txn=txn), **{"clean": False, **of})


def segs(*of: tuple[int, Sequence[Row], Sequence[Txn] | None], **more: Any) -> Case:
    return one(
        *(seg(n, *(x | {"leader_epoch": -1} for x in rows), txn=txn) for n, rows, txn in of), **{"clean": False, **more}
    )


def snap(rows: Sequence[Row], *entries: SnapshotEntry, at: int | None = None, **of: Any) -> Case:
    """A snapshot at the log's end, or at an offset, with these entries."""
    end = rows[-1]["last_offset"] + 1 if at is None else at
    return log(*rows, snapshots={end: list(entries), **of.pop("snapshots", {})}, **of)


def bad(base: int, last: int | None = None, **of: int) -> Row:
    return b(base, last, problem=3, **of)


# ---- sequences -------------------------------------------------------------------------------------------------------
SEQUENCES: dict[str, Sequence[Row]] = {
    **{
        f"0 to 2, then {s}, {n} records": (p(0, 1, 0, 3), p(3, 1, s, n), p(3 + n, 1, s + n))
        for s in (-1, 0, 1, 2, 3, 4, 5)
        for n in (1, 3)
    },
    **{f"wraps to {s}": (p(0, 1, INT_MAX - 1, 2), p(2, 1, s)) for s in (0, 1, 2, INT_MAX - 1, INT_MAX)},
    **{f"within a batch wraps to {s}": (p(0, 1, INT_MAX, 3), p(3, 1, s)) for s in (0, 1, 2, 3, INT_MAX)},
    **{f"skips {s}": (p(0, 1, 0, 3), p(3, 1, (3 + s) & INT_MAX)) for s in (HALF - 1, HALF, HALF + 1, HALF + 2)},
    **{
        f"{gap} offsets missing, skips {s}": (p(0, 1, 0), p(1 + gap, 1, 1 + s), p(2 + gap, 1, 2 + s))
        for gap in (1, 2)
        for s in (-1, 0, 1, 2, 3)
    },
    "records are missing": (p(0, 1, 0, 5, count=3), p(5, 1, 5), p(6, 1, 7)),
    "the same length and another sequence": (p(0, 1, 0, 3), p(3, 1, 1, 3)),
    "the same sequence and another length": (p(0, 1, 0, 3), p(3, 1, 0, 2)),
    "twice the second of two": (p(0, 1, 0, 3), p(3, 1, 3, 2), p(5, 1, 3, 2)),
    "wrong, and right behind it": (p(0, 1, 0), p(1, 1, 5), p(2, 1, 6), p(3, 1, 9), p(4, 1, 10)),
    "wrong, missing, wrong": (p(0, 1, 0), p(1, 1, 5), p(4, 1, 9), p(5, 1, 20)),
    "two producers by turns": (p(0, 1, 0), p(1, 2, 0), p(2, 1, 1), p(3, 2, 2)),
    "others between": (p(0, 1, 0), b(1), b(2), b(3), p(4, 1, 1), b(5), p(6, 1, 3)),
    "producer 0": (p(0, 0, 0), p(1, 0, 1), p(2, 0, 3)),
    "damage between": (p(0, 1, 0), bad(1), p(2, 1, 9), p(3, 1, 10), p(4, 1, 12)),
    "damage before": (bad(0), p(1, 1, 4), p(2, 1, 5), p(3, 1, 7)),
    "a batch that begins too early": (p(0, 1, 0, 3), p(2, 1, 3), p(4, 1, 9), p(5, 1, 11)),
    "a batch that begins too early, and ends late": (p(0, 1, 0, 3), b(2, 9), p(6, 1, 3), p(10, 1, 9)),
    "a batch that ends before it begins": (p(0, 1, 0), b(5, 3), p(6, 1, 9), p(7, 1, 11)),
    "a batch that ends just before it begins": (p(0, 1, 0), b(1, 0), p(1, 1, 9), p(2, 1, 10)),
    "an old batch below the next offset, a skip": (p(0, 1, 0, 3), b(2, magic=1, count=-1), p(3, 1, 5)),
    "an old batch far below the next offset, a skip": (p(0, 1, 0, 3), b(1, magic=1, count=-1), p(3, 1, 4)),
    "an old batch between, a skip": (p(0, 1, 0), b(1, magic=1, count=-1), p(2, 1, 2)),
    "markers, and then data from 0": (commit(0, 1), p(1, 1, 0), p(2, 1, 2)),
    "markers, and then data from 1": (commit(0, 1), p(1, 1, 1)),
    "a commit of epoch 5 of an unknown one": (commit(0, 1, pepoch=5), commit(1, 2, pepoch=5, coordinator_epoch=-1)),
    "an abort, and then a skip of what was missing before": (p(0, 1, 0), b(3), p(4, 1, 1), abort(5, 1), p(6, 1, 4)),
    "an old batch between": (p(0, 1, 0), b(1, magic=1, count=-1), p(2, 1, 1), p(3, 1, 3)),
    "an old batch of several": (p(0, 1, 0), b(1, 4, magic=1, count=-1), p(5, 1, 1), p(6, 1, 3)),
    "an old batch that ends where it is": (p(0, 1, 0, 3), b(2, magic=1, count=-1), p(3, 1, 3), p(4, 1, 5)),
    "an old batch one behind": (p(0, 1, 0, 3), b(3, magic=1, count=-1), p(4, 1, 3), p(5, 1, 5)),
    **{
        f"epoch {epoch}, {gap} missing, sequence {s}": (
            p(0, 1, 0, pepoch=5), p(1 + gap, 1, s, pepoch=epoch), p(2 + gap, 1, s + 1, pepoch=epoch),
            p(3 + gap, 1, s + 3, pepoch=epoch),
        )
        for epoch in (4, 5, 6, 7)
        for gap in (0, 1, 2)
        for s in (-1, 0, 1, 2, 3)
    },
}  # fmt: skip

TIMES: dict[str, Case] = {}


def idle(ms: int, *between: Row, marker: bool = False, back: bool = False) -> Sequence[Row]:
    """A producer that goes on with a wrong sequence so long after its last batch."""
    first = [t(0, 1, 0), commit(1, 1)] if marker else [p(0, 1, 0), b(1)]
    return [*first, *between, b(2, time=NOW + ms if back else NOW), p(3, 1, 7, time=NOW if back else NOW + ms)]


# ---- transactions ----------------------------------------------------------------------------------------------------
def marker(kind: int, base: int, pid: int, **of: int) -> Row:
    return (commit if kind else abort)(base, pid, **of)


TRANSACTIONS: dict[str, Sequence[Row]] = {
    "committed": (t(0, 1, 0), commit(1, 1), t(2, 1, 1), commit(3, 1)),
    "of two producers": (t(0, 1, 0), t(1, 2, 0), commit(2, 2), commit(3, 1)),
    "left open": (t(0, 1, 0), b(1), t(2, 2, 0)),
    "a plain batch within": (t(0, 1, 0), p(1, 1, 1), commit(2, 1)),
    "a plain batch behind": (t(0, 1, 0), commit(1, 1), p(2, 1, 1)),
    "a plain batch within, and something is missing": (t(0, 1, 0), p(2, 1, 1), commit(3, 1), t(4, 1, 2), commit(5, 1)),
    "a plain batch within, then another transaction": (t(0, 1, 0), p(2, 1, 1), t(3, 1, 2), commit(4, 1)),
    "a higher epoch within": (t(0, 1, 0), t(1, 1, 0, pepoch=1), commit(2, 1, pepoch=1)),
    "a higher epoch within, something missing": (t(0, 1, 0), t(2, 1, 0, pepoch=1), commit(3, 1, pepoch=1)),
    "a plain batch of a higher epoch within": (t(0, 1, 0), p(1, 1, 0, pepoch=1), commit(2, 1, pepoch=1)),
    "a lower epoch within": (t(0, 1, 0, pepoch=2), t(1, 1, 0, pepoch=1), commit(2, 1, pepoch=2)),
    "a higher epoch behind": (t(0, 1, 0), commit(1, 1), t(2, 1, 0, pepoch=1), commit(3, 1, pepoch=1)),
    "the start of one that waits": (t(0, 1, 0), abort(1, 1), t(2, 2, 0), t(3, 3, 0), commit(4, 2), commit(5, 3)),
    "an empty control batch": (t(0, 1, 0), commit(1, 1, count=0), t(2, 1, 1), commit(3, 1)),
    "another control batch": (t(0, 1, 0), commit(1, 1, control_type=2), t(2, 1, 1), commit(3, 1)),
    "another control batch, of none": (t(0, 1, 0), b(1, attributes=CONTROL, control_type=2), t(2, 1, 1), commit(3, 1)),
    "an empty control batch of a later epoch": (t(0, 1, 0), commit(1, 1, count=0, pepoch=4), t(2, 1, 1), commit(3, 1)),
    "a commit of the next epoch and an earlier coordinator": (
        t(0, 1, 0, pepoch=5), commit(1, 1, pepoch=5, coordinator_epoch=3), t(2, 1, 1, pepoch=5),
        commit(3, 1, pepoch=6, coordinator_epoch=2),
    ),
    "a commit of a far epoch, of a transaction from 0": (t(0, 1, 0, pepoch=5), commit(1, 1, pepoch=8)),
    "a marker twice": (t(0, 1, 0), commit(1, 1), commit(2, 1)),
    "markers of an unknown one": (commit(0, 1), abort(1, 2), commit(2, 2)),
    "markers, and then data": (commit(0, 1), t(1, 1, 5), commit(2, 1), t(3, 1, 7), commit(4, 1)),
    "a marker of an unknown one, then of a lower coordinator": (commit(0, 1, coordinator_epoch=5),
        commit(1, 1, coordinator_epoch=4)),
    **{
        f"{'commit' if kind else 'abort'} of epoch {epoch}, coordinator {c}, {state}, {gap} missing": (
            t(0, 1, 0, pepoch=5), commit(1, 1, pepoch=5, coordinator_epoch=3),
            *((t(2, 1, 1, pepoch=5),) if state == "open" else (b(2),)),
            marker(kind, 3 + gap, 1, pepoch=epoch, coordinator_epoch=c),
            t(4 + gap, 1, 0 if epoch != 5 else 2 if state == "open" else 1, pepoch=epoch),
            commit(5 + gap, 1, pepoch=epoch, coordinator_epoch=c),
        )
        for kind in (0, 1)
        for epoch in (4, 5, 6, 7, 8)
        for c in (2, 3, 4)
        for state in ("open", "closed")
        for gap in (0, 1)
        if c == 3 or (epoch == 5 and gap == 0)
    },
}  # fmt: skip

# ---- group coordinators ----------------------------------------------------------------------------------------------


def key_of(group: str, topic: str, version: int = 1) -> bytes:
    text = b"".join(pack(">h", len(x)) + x.encode() for x in (group, topic))
    return pack(">h", version) + text + pack(">i", 0)


def offsets(
    offset: int, sequence: int, *keys: bytes | None, producer: int = 7, attributes: int = TRANSACTIONAL, epoch: int = 0
) -> Batch:
    """A batch of a group coordinator's, in a producer's transaction."""
    records = [LogRecord(offset + n, NOW, key, b"v") for n, key in enumerate(keys or (key_of("g", "t"),))]
    return built(
        offset, records, attributes=attributes, producer_id=producer, producer_epoch=epoch, base_sequence=sequence,
        leader_epoch=-1,
    )  # fmt: skip


def real(*batches: Batch, **of: Any) -> Case:
    return one(seg(0, *batches), **{"clean": False, **of})


KEY = key_of("g", "t")
COORDINATORS: dict[str, Sequence[Batch]] = {
    "sequence 0 again and again": [offsets(0, 0), offsets(1, 0), offsets(2, 0)],
    "then another": [offsets(0, 0), offsets(1, 0), offsets(2, 0), offsets(3, 1), offsets(4, 0)],
    "then one below 0": [offsets(0, 0), offsets(1, 0), replace(offsets(2, 0), base_sequence=-1), offsets(3, 0)],
    "then a higher epoch": [offsets(0, 0), offsets(1, 0), offsets(2, 3, epoch=1), offsets(3, 0, epoch=1)],
    "then a lower epoch": [offsets(0, 0, epoch=1), offsets(1, 0, epoch=1), offsets(2, 0), offsets(3, 0, epoch=1)],
    "one without records": [offsets(0, 0), emptied(offsets(1, 0)), offsets(2, 0)],
    "another first": [offsets(0, 0), offsets(1, 9), offsets(2, 0)],
    "two producers": [offsets(0, 0), offsets(1, 0), offsets(2, 0, producer=8), offsets(3, 0, producer=8),
        offsets(4, 5, producer=8)],
    "not transactional": [offsets(0, 0, attributes=0), offsets(1, 0, attributes=0), offsets(2, 0, attributes=0)],
    **{
        f"a key that is {name}": [offsets(0, 0), offsets(1, 0, *keys), offsets(1 + len(keys), 0)]
        for name, keys in {
            "another": (b"k",), "one byte longer": (KEY + b"x",), "one byte shorter": (KEY[:-1],),
            "of version 2": (key_of("g", "t", 2),),
            "of version 0": (key_of("g", "t", 0),), "empty": (b"",), "none": (None,),
            "right beside another": (KEY, b"k"),
            "right beside right": (KEY, KEY), "of an empty group": (key_of("", ""),), "two bytes": (b"\0\1",),
        }.items()
    },
}  # fmt: skip

# ---- the transaction index -------------------------------------------------------------------------------------------
ABORTED: Sequence[Row] = (
    t(0, 1, 0), t(1, 2, 0), abort(2, 1), abort(3, 2), t(4, 1, 1), abort(5, 1), b(6),
)  # fmt: skip
RIGHT: Sequence[Txn] = ((1, 0, 2, 1), (2, 1, 3, 4), (1, 4, 5, 6))


def but(n: int, **of: int) -> list[Txn]:
    """The right entries, the n-th with other fields."""
    names = ("pid", "first", "marker", "stable")
    changed = tuple(of.get(name, x) for name, x in zip(names, RIGHT[n], strict=True))
    return [*RIGHT[:n], changed, *RIGHT[n + 1 :]]  # type: ignore[list-item]


INDEXES: dict[str, Any] = {
    "right": RIGHT, "no file": None, "empty": (),
    **{f"without entry {n}": [*RIGHT[:n], *RIGHT[n + 1 :]] for n in range(3)},
    **{f"entry {n}, producer 7": but(n, pid=7) for n in range(3)},
    **{f"entry {n}, first offset {d:+}": but(n, first=RIGHT[n][1] + d) for n in range(3) for d in (-1, 1)},
    **{f"entry {n}, marker {d:+}": but(n, marker=RIGHT[n][2] + d) for n in range(3) for d in (-1, 1, 30)},
    **{f"entry {n}, stable {d:+}": but(n, stable=RIGHT[n][3] + d) for n in range(3) for d in (-1, 1, 2)},
    "one too many": [*RIGHT, (9, 4, 6, 7)],
    "one too many, whose first offset is another's": [*RIGHT, (1, 4, 6, 7)],
    "the first alone": RIGHT[:1], "the last alone": RIGHT[2:],
    "another version": pack(">hqqqq", 1, *RIGHT[0]) + b"".join(pack(">hqqqq", 0, *x) for x in RIGHT[1:]),
    "another version, and other fields": pack(">hqqqq", 1, 9, 9, 9, 9) + b"".join(pack(">hqqqq", 0, *x) for x in RIGHT),
    "another version last": b"".join(pack(">hqqqq", 0, *x) for x in RIGHT[:2]) + pack(">hqqqq", 1, *RIGHT[2]),
    "an entry cut": b"".join(pack(">hqqqq", 0, *x) for x in RIGHT)[:-1],
    "a byte more": b"".join(pack(">hqqqq", 0, *x) for x in RIGHT) + b"x",
    "an entry twice": [*RIGHT, RIGHT[2]],
}  # fmt: skip
INDEXED: dict[str, tuple[Sequence[Row], Sequence[Sequence[Txn]]]] = {
    "a next start": ((t(0, 1, 0), abort(1, 1), b(2), t(3, 2, 0), b(4)), [[(1, 0, 1, n)] for n in (1, 2, 3, 4)]),
    "a next start of the same": ((t(0, 1, 0), abort(1, 1), b(2), t(3, 1, 1), t(4, 2, 0)),
        [[(1, 0, 1, n)] for n in (2, 3, 4, 5)]),
    "a next start, and another": (
        (t(0, 1, 0), abort(1, 1), b(2), t(3, 2, 0), t(4, 3, 0), commit(5, 3), t(6, 3, 1)),
        [[(1, 0, 1, n)] for n in (2, 3, 4, 6)],
    ),
    "another open, and the same again": ((t(0, 2, 0), t(1, 1, 0), abort(2, 1), t(3, 1, 1)), [[(1, 1, 2, 0)]]),
    "at the start": ((t(0, 1, 5), abort(1, 1)), [[(1, n, 1, 2)] for n in (-10, -1, 0, 1)]),
    "one behind the start": ((b(0), t(1, 1, 5), abort(2, 1)), [[(1, n, 2, 3)] for n in (-10, 0, 1, 2)]),
    "behind a marker": ((commit(0, 1), t(1, 1, 0), abort(2, 1)), [[(1, n, 2, 3)] for n in (-10, -1, 0, 1)]),
    "behind a wrong sequence": ((p(0, 1, 0), t(1, 1, 7), abort(2, 1)), [[(1, n, 2, 3)] for n in (0, 1)]),
    "behind an overlap": ((t(0, 1, 0), b(0), abort(1, 1)), [[(1, 0, 1, 2)], [(1, -5, 1, 2)], [(1, 1, 1, 2)]]),
    "behind an old batch": ((b(0, magic=1, count=-1), t(1, 1, 0), abort(2, 1)), [[], [(1, 1, 2, 3)]]),
    "another open": ((t(0, 2, 0), t(1, 1, 0), abort(2, 1), t(3, 3, 0)), [[(1, 1, 2, n)] for n in (0, 1, 2, 3)]),
    "two that wait": (
        (t(0, 1, 0), abort(1, 1), t(2, 1, 1), abort(3, 1), t(4, 2, 0)),
        [[(1, 0, 1, n), (1, 2, 3, m)] for n in (2, 4) for m in (4, 5)],
    ),
    "offsets missing before": ((b(0), t(3, 1, 0), abort(4, 1)),
        [[(1, n, 4, m)] for n in (0, 2, 3, 4) for m in (1, 4, 5, 6)]),
    "offsets missing within": ((t(0, 1, 0), abort(4, 1)), [[(1, n, 4, m)] for n in (0, 1) for m in (4, 5, 6)]),
    "offsets missing behind": ((t(0, 1, 0), abort(1, 1), b(4)), [[(1, n, 1, m)] for n in (0, 1) for m in (1, 2, 3)]),
    "offsets missing, and none of it": ((b(0), t(3, 1, 0), abort(4, 1)),
        [[], [(9, 1, 2, 3)], [(1, 3, 4, 5), (9, 1, 2, 3)]]),
    "records missing": ((b(0, 4, count=3), t(5, 1, 0), abort(6, 1)), [[], [(1, 5, 6, 7)], [(1, 4, 6, 7)]]),
    "records missing of the transaction": ((t(0, 1, 0, 5, count=3), abort(5, 1)), [[], [(1, 0, 5, 6)], [(1, 0, 5, 0)]]),
    "damage before": ((bad(0), t(1, 1, 0), abort(2, 1)),
        [[], [(1, 1, 2, 3)], [(1, 0, 2, 0)], [(1, 2, 2, 3)], [(2, 1, 2, 3)], [(1, 1, 2, 4)]]),
    "damage within": ((t(0, 1, 0), bad(1), abort(2, 1)),
        [[], [(1, 0, 2, 3)], [(1, 1, 2, 3)], [(1, 1, 2, 9)], [(2, 0, 2, 3)]]),
    "a bare abort": ((b(0), abort(1, 1)), [[], [(1, 0, 1, 2)], [(1, -1, 1, 2)]]),
    "a bare abort, and offsets missing": ((b(0), abort(4, 1)), [[], [(1, 0, 4, 5)], [(1, 2, 4, 5)], [(1, 2, 3, 5)]]),
    "a bare abort behind what is missing": ((b(0), b(3), abort(4, 1)), [[], [(1, 2, 4, 5)]]),
    "an abort of another epoch": ((t(0, 1, 0), abort(1, 1, pepoch=3), t(2, 1, 0, pepoch=3)), [[], [(1, 0, 1, 2)]]),
}  # fmt: skip

# ---- a state that was rebuilt from a log start -----------------------------------------------------------------------
RESUMED: dict[str, tuple[Sequence[Row], Sequence[Sequence[Txn]]]] = {
    "three batches": ((t(0, 1, 0), b(1), t(2, 1, 1), t(3, 1, 2), abort(4, 1)),
        [[], *([(1, n, 4, 5)] for n in (-1, 0, 1, 2, 3, 4))]),
    "batches of three": ((t(0, 1, 0, 3), t(3, 1, 3, 3), abort(6, 1)), [[], *([(1, n, 6, 7)] for n in (0, 1, 2, 3, 4))]),
    "one batch": ((b(0), t(1, 1, 0), abort(2, 1)), [[], *([(1, n, 2, 3)] for n in (0, 1, 2)), [(1, 1, 1, 3)]]),
    "a plain batch within": ((t(0, 1, 0), p(1, 1, 1), t(2, 1, 2), abort(3, 1)), [[(1, n, 3, 4)] for n in (0, 2)]),
    "two transactions": ((t(0, 1, 0), t(1, 1, 1), abort(2, 1), t(3, 1, 2), t(4, 1, 3), abort(5, 1)),
        [[(1, n, 2, 3), (1, m, 5, 6)] for n in (0, 1) for m in (1, 3, 4)]),
    "another open": ((t(0, 2, 0), t(1, 1, 0), abort(2, 1), b(3), t(4, 2, 1), commit(5, 2)),
        [[(1, 1, 2, n)] for n in (0, 1, 2, 3, 4, 5)]),
    "a wrong sequence within": ((t(0, 1, 0), t(1, 1, 1), t(2, 1, 9), t(3, 1, 10), abort(4, 1)),
        [[(1, n, 4, 5)] for n in (0, 1, 2, 3)]),
    "another's plain batches": ((p(0, 2, 0), t(1, 1, 0), abort(2, 1), b(3), p(4, 2, 1), b(5), p(6, 2, 9)),
        [[(1, 1, 2, n)] for n in (3, 4, 5, 6)]),
    "another open, a plain batch in it": ((t(0, 2, 0), t(1, 1, 0), abort(2, 1), b(3), p(4, 2, 1), b(5)),
        [[(1, 1, 2, n)] for n in (0, 3, 4, 5)]),
    "another open, which goes on": ((t(0, 2, 0), t(1, 2, 1), t(2, 1, 0), abort(3, 1), b(4), t(5, 2, 2), t(6, 4, 0)),
        [[(1, 2, 3, n)] for n in (0, 1, 2, 4, 5, 6)]),
    "two others open": ((t(0, 2, 0), t(1, 3, 0), t(2, 1, 0), abort(3, 1), b(4), t(5, 2, 1), t(6, 3, 1), t(7, 4, 0)),
        [[(1, 2, 3, n)] for n in (0, 1, 3, 4, 5, 6, 7)]),
}  # fmt: skip
REBUILT: dict[str, tuple[Sequence[Row], Sequence[SnapshotEntry]]] = {
    "an open transaction": ((t(0, 1, 0), t(1, 1, 1), t(2, 1, 2), b(3)),
        [e(1, 2, 2, transaction=n) for n in (-1, 0, 1, 2, 3)]),
    "a marker": ((t(0, 1, 0), commit(1, 1), b(2)),
        [e(1, s, o, coordinator_epoch=c) for s, o in ((0, 0), (-1, -1), (0, -1), (3, -1)) for c in (-1, 0)]),
    "a transaction behind a marker": ((t(0, 1, 0), commit(1, 1), t(2, 1, 1), b(3)),
        [e(1, 1, 2, coordinator_epoch=c, transaction=n) for c in (-1, 0) for n in (-1, 2)]),
    "an open transaction, another": ((t(0, 1, 0), p(1, 2, 0), b(2)), [e(2, 0, 1)]),
}  # fmt: skip

# ---- snapshots -------------------------------------------------------------------------------------------------------
LOG: Sequence[Row] = (p(0, 9, 0), t(1, 1, 0), commit(2, 1), t(3, 1, 1, 3), b(6))
NINE = e(9, 0, 0)
ONE = e(1, 3, 5, offset_delta=2, coordinator_epoch=0, transaction=3)
WRONG: dict[str, SnapshotEntry] = {
    "right": ONE,
    **{f"{name} {d:+}": ONE._replace(**{name: getattr(ONE, name) + d}) for name in ONE._fields for d in (-1, 1)},
    "no transaction": ONE._replace(transaction=-1),
    "a transaction from 0": ONE._replace(transaction=0),
    "no data": ONE._replace(last_sequence=-1, last_offset=-1, offset_delta=0),
    "the marker as the last": ONE._replace(last_offset=2),
    "epoch and more": ONE._replace(epoch=1, timestamp=1, coordinator_epoch=7),
    "from later on": ONE._replace(last_sequence=9, last_offset=9),
    "a later epoch, from later on": ONE._replace(epoch=1, last_sequence=9, last_offset=6),
    "no offset": ONE._replace(last_offset=-1),
    "from the end on": ONE._replace(last_offset=7),
    "from the end of a gap on": ONE._replace(last_offset=10),
    "from behind the end of a gap on": ONE._replace(last_offset=11),
    "a transaction from below": ONE._replace(transaction=-2),
    "a transaction from the end of a gap": ONE._replace(transaction=10),
    "a transaction from before the end of a gap": ONE._replace(transaction=9),
    "an earlier epoch, from later on": ONE._replace(epoch=-1, last_offset=6),
}  # fmt: skip
GAPPED: dict[str, Sequence[Row]] = {
    "whole": LOG,
    "a gap at the end": (*LOG[:4], b(9)),
    "a gap in the middle": (LOG[0], LOG[1], LOG[2], t(4, 1, 1, 2), b(6)),
    "a gap at the start": (p(1, 9, 0), t(2, 1, 0), commit(3, 1), t(4, 1, 1, 2), b(6)),
    "records missing": (*LOG[:3], t(3, 1, 1, 3, count=2), b(6)),
    "damage at the end": (*LOG[:4], bad(6), b(7)),
    "no marker": (p(0, 9, 0), b(1), b(2), t(3, 1, 1, 3), b(6)),
    "closed": (*LOG[:4], commit(6, 1)),
    "closed, a gap at the end": (*LOG[:4], commit(6, 1), b(9)),
    "closed by a later epoch": (*LOG[:4], commit(6, 1, pepoch=1)),
}  # fmt: skip
MARKED = (p(0, 1, 0), p(1, 2, 0), commit(2, 9), p(3, 3, 0))


# ---- walks -----------------------------------------------------------------------------------------------------------
def walk(seed: int) -> Case:
    """Producers at random: mostly as they must, now and then not; a log that starts at 0 or later, in segments, with
    snapshots and indexes that are mostly right."""
    r = random.Random(seed)
    rows: list[Row] = []
    known: dict[int, list[int]] = {}
    opened: dict[int, int] = {}
    aborted: list[Txn] = []
    at = start = r.choice([0, 0, 0, 100])
    snapshots: dict[int, list[SnapshotEntry]] = {}
    time = NOW

    def entries() -> list[SnapshotEntry]:
        made = []
        for pid, (epoch, seq, last, delta, stamp, coordinator) in known.items():
            x = SnapshotEntry(pid, epoch, seq, last, delta, stamp, coordinator, opened.get(pid, -1))
            if r.random() < 0.1:
                name = r.choice(x._fields)
                x = x._replace(**{name: getattr(x, name) + r.choice([-1, 1, 2])})
            if r.random() > 0.1:
                made.append(x)
        return made

    if start and r.random() < 0.5:
        snapshots[start] = [e(pid, r.randrange(4), start - pid, coordinator_epoch=-1) for pid in (1, 2)]
        for x in snapshots[start]:
            known[x.producer_id] = [x.epoch, x.last_sequence, x.last_offset, 0, NOW, -1]
    cuts = []
    for _ in range(r.randrange(4, 16)):
        odd = r.random() < 0.15
        time += r.choice([0, 1, 5, DAY - 1, DAY]) if odd else r.choice([0, 0, 1])
        if odd and r.random() < 0.4:
            at += r.choice([1, 2, 3])
        if r.random() < 0.1 and rows:
            cuts.append(at)
            if r.random() < 0.7:
                snapshots[at] = entries()
        pid = r.choice([0, 1, 2, 3])
        n = r.choice([1, 1, 2, 3])
        epoch, seq, _, _, _, coordinator = known.get(pid, [0, -1, -1, 0, -1, -1])
        kind = r.random()
        if kind < 0.1:
            rows.append(
                b(at, at + n - 1, time=time, problem=3 if odd else 0, magic=1 if odd and r.random() < 0.3 else 2)
            )
            at += n
        elif kind < 0.35 and (pid in opened or odd):
            e2 = epoch + (r.choice([-1, 0, 1, 2]) if odd else 0)
            c2 = max(coordinator, 0) + (r.choice([-1, 0, 1]) if odd else 0)
            k = r.choice([0, 1])
            rows.append(
                marker(
                    k,
                    at,
                    pid,
                    pepoch=e2,
                    coordinator_epoch=c2,
                    time=time,
                    control_type=3 if odd and r.random() < 0.1 else k,
                )
            )
            if pid in opened:
                first = opened.pop(pid)
                if not k:
                    aborted.append((pid, first, at, min(opened.values(), default=at + 1)))
            kept = known.get(pid, [0, -1, -1, 0, -1, -1])[1:4] if e2 == epoch and pid in known else [-1, -1, 0]
            known[pid] = [e2, *kept, time, c2]
            at += 1
        else:
            transactional = (pid in opened) if not odd else r.random() < 0.5
            if pid not in opened and r.random() < 0.4:
                transactional = True
            e2 = epoch + (r.choice([0, 1, -1, 2]) if odd else 0)
            first = (seq + 1) & INT_MAX if e2 == epoch else 0
            if odd and r.random() < 0.5:
                first = max(-1, first + r.choice([-2, -1, 1, 2]))
            count = n if r.random() > 0.05 else n - 1
            rows.append(
                p(
                    at,
                    pid,
                    first,
                    n,
                    pepoch=e2,
                    attributes=TRANSACTIONAL if transactional else 0,
                    time=time,
                    count=count,
                )
            )
            if transactional:
                opened.setdefault(pid, at)
            known[pid] = [e2, (first + n - 1) & INT_MAX, at + n - 1, n - 1, time, coordinator]
            at += n
    snapshots[at] = entries()
    bases = [start, *dict.fromkeys(c for c in cuts if c > start)]
    made = []
    for n, base in enumerate(bases):
        end = bases[n + 1] if n + 1 < len(bases) else 2**62
        own = [x | {"leader_epoch": -1} for x in rows if base <= x["base_offset"] < end]
        txn: list[Any] = [x for x in aborted if base <= x[2] < end]
        if txn and r.random() < 0.2:
            i = r.randrange(len(txn))
            x = txn[i]
            j = r.randrange(4)
            txn[i] = tuple(v + r.choice([-1, 1]) if k == j else v for k, v in enumerate(x))
        if txn and r.random() < 0.1:
            txn = txn[1:]
        made.append(seg(base, *own, txn=txn or None))
    more: dict[str, Any] = {"id": "x"} if r.random() < 0.3 else {}
    if r.random() < 0.2:
        more["starts"] = {"t-0": start + r.randrange(5)}
    if r.random() < 0.2:
        more["high"] = {"t-0": start + r.randrange(20)}
    if r.random() < 0.2:
        more["recovery"] = {"t-0": start + r.randrange(20)}
    return one(*made, snapshots=snapshots, clean=r.random() < 0.5, chunk=r.choice([1, 2, 99]), **more)


WALKS: Sequence[int] = ()
"""Seeds of walks that show faults which nothing above shows."""

CASES: Mapping[str, Callable[[], Case]] = {
    **{f"sequences, {k}": (lambda x=x: log(*x)) for k, x in SEQUENCES.items()},
    **{
        f"sequences, {k}, in one chunk, clean": (lambda x=x: log(*x, chunk=99, clean=True, recovery={"t-0": 0}))
        for k, x in SEQUENCES.items()
        if not k.startswith("epoch")
    },
    **{f"transactions, {k}": (lambda x=x: log(*x)) for k, x in TRANSACTIONS.items()},
    **{
        f"transactions, {k}, in one chunk": (lambda x=x: log(*x, chunk=99))
        for k, x in TRANSACTIONS.items()
        if "coordinator" not in k
    },
    **{
        f"idle for {ms} ms{', a marker' if m else ''}{', seen before' if back else ''}": (
            lambda ms=ms, m=m, back=back: log(*idle(ms, marker=m, back=back))
        )
        for ms in (DAY - 1, DAY, DAY + 1)
        for m in (False, True)
        for back in (False, True)
    },
    **{
        f"idle for {ms} ms in a transaction": (lambda ms=ms: log(t(0, 1, 0), b(1), p(2, 1, 7, time=NOW + ms)))
        for ms in (DAY - 1, DAY)
    },
    **{
        f"idle for {ms} ms before a marker": (
            lambda ms=ms, k=k: log(
                p(0, 1, 0, pepoch=5), marker(k, 1, 1, pepoch=4, time=NOW + ms), commit(2, 1, pepoch=5, time=NOW + ms)
            )
        )
        for ms in (DAY - 1, DAY)
        for k in (1,)
    },
    **{
        f"log start {start}, a wrong sequence{', a marker' if m else ''}": (
            lambda start=start, m=m: log(
                *([t(0, 1, 0), commit(1, 1)] if m else [p(0, 1, 0, 2)]), p(2, 1, 7), b(3), starts={"t-0": start}
            )
        )
        for start in (0, 1, 2, 3)
        for m in (False, True)
    },
    **{f"coordinators, {k}": (lambda x=x: real(*x)) for k, x in COORDINATORS.items()},
    "coordinators, the file is gone": lambda: log(t(0, 1, 0), t(1, 1, 0), t(2, 1, 0), gone=[f"d/t-0/{0:020}.log"]),
    **{f"index, {k}": (lambda x=x: log(*ABORTED, txn=x)) for k, x in INDEXES.items()},
    **{
        f"index, {k}, {around}": (lambda x=x, of=of: log(*ABORTED, txn=x, **of))
        for k, x in INDEXES.items()
        if k in ("no file", "empty", "without entry 0", "without entry 2", "the first alone", "the last alone")
        for around, of in {
            "clean": {"clean": True},
            "alone": {"alone": True, "clean": True},
            "recovery point 6": {"recovery": {"t-0": 6}},
            "recovery point 7": {"recovery": {"t-0": 7}},
            "recovery point 8": {"recovery": {"t-0": 8}},
        }.items()
    },
    **{
        f"index, {k}, {n}, start {base}": (
            lambda rows=rows, x=x, base=base: log(
                *(
                    r | {f: r[f] + base for f in ("base_offset", "last_offset", "first_record", "last_record")}
                    for r in rows
                ),
                base=base,
                txn=[(q, f + base, m + base, s + base) for q, f, m, s in x],
            )
        )
        for k, (rows, every) in INDEXED.items()
        for n, x in enumerate(every)
        for base in (0, 100)
    },
    **{
        f"index, {n} aborted, none in it": (
            lambda n=n: log(*(x for i in range(n) for x in (t(2 * i, 1, i), abort(2 * i + 1, 1))), clean=True)
        )
        for n in (1, 2, 3, 4, 5)
    },
    **{
        f"index, behind a snapshot, from {first}": lambda first=first: log(
            b(100), t(101, 1, 5), abort(102, 1), base=100, txn=[(1, first, 102, 103)], snapshots={100: [NINE]}
        )
        for first in (90, 101)
    },
    "index, of two segments": lambda: segs(
        (0, [t(0, 1, 0), abort(1, 1), t(2, 2, 0)], [(1, 0, 1, 2)]),
        (3, [abort(3, 2), t(4, 1, 1), b(5)], [(2, 2, 3, 4)]),
    ),
    "index, of two segments, each entry in the other": lambda: segs(
        (0, [t(0, 1, 0), abort(1, 1), t(2, 2, 0)], [(2, 2, 3, 4)]),
        (3, [abort(3, 2), t(4, 1, 1), b(5)], [(1, 0, 1, 2)]),
    ),
    "index, a segment that lacks offsets, and one that does not": lambda: segs(
        (0, [b(0), b(3), t(4, 1, 0), abort(5, 1)], []),
        (6, [t(6, 1, 1), abort(7, 1)], []),
        (8, [t(8, 1, 2), abort(9, 1)], [(1, 8, 9, 11)]),
    ),
    "index, a segment that lacks records, and one that does not": lambda: segs(
        (0, [b(0, 3, count=1), t(4, 1, 0), abort(5, 1)], []),
        (6, [t(6, 1, 1), abort(7, 1)], []),
    ),
    "index, offsets missing between segments": lambda: segs(
        (0, [t(0, 1, 0)], None),
        (5, [abort(5, 1)], [(1, 0, 5, 6)]),
        (9, [t(9, 1, 1), abort(10, 1)], [(1, 8, 10, 11)]),
    ),
    "index, a cut end before": lambda: one(
        seg(0, t(0, 1, 0), reason="9 bytes", size=109), seg(1, abort(1, 1), txn=[(1, 0, 1, 9)]), clean=False
    ),
    **{
        f"index, a cut end {where}, {'clean' if c else 'killed'}": (
            lambda c=c, last=last: one(
                seg(0, p(0, 1, 0), **({} if last else {"reason": "9 bytes", "size": 109})),
                seg(1, p(1, 1, 5), **({"reason": "9 bytes", "size": 109} if last else {})),
                clean=c,
                snapshots={9: []},
            )
        )
        for where, last in {"of the last": True, "of the first": False}.items()
        for c in (True, False)
    },
    **{
        f"snapshot, {k}, {name}": (lambda rows=rows, x=x: snap(rows, NINE, x))
        for k, rows in GAPPED.items()
        for name, x in WRONG.items()
    },
    **{
        f"snapshot, {name}, log start at 100": (
            lambda x=x: snap([t(101, 1, 1, 3), b(104)], x._replace(last_offset=103, transaction=101), base=100)
        )
        for name, x in {
            "right": ONE,
            "no coordinator": ONE._replace(coordinator_epoch=-1),
            "coordinator 5": ONE._replace(coordinator_epoch=5),
        }.items()
    },
    **{
        f"snapshot, a transaction from {n}, log start at 100": (
            lambda n=n: snap(
                [t(101, 1, 1, 3), b(104)], ONE._replace(last_offset=103, transaction=n, coordinator_epoch=-1), base=100
            )
        )
        for n in (-1, 0, 99, 100, 101, 102, 105)
    },
    **{
        f"snapshot, an unknown producer of offset {n}, log from {base}": (
            lambda n=n, base=base: snap([b(base), b(base + 1)], e(5, 0, n), base=base)
        )
        for base in (0, 100)
        for n in (-1, base - 1, base, base + 1)
    },
    "snapshot, no transaction but one from 50, log from 100, no gap": lambda: snap(
        [p(100, 1, 3), b(101)], e(1, 3, 100, transaction=50), base=100
    ),
    "snapshot, an unknown producer and something missing": lambda: snap([b(0), b(3)], e(5, 0, 1)),
    "snapshot, an unknown producer and something missing behind": lambda: segs(
        (0, [b(0)], None), (4, [], None), snapshots={4: [e(5, 0, 3)]}
    ),
    **{
        f"snapshot, {name}, log from 100, no gap": (lambda x=x: snap([t(100, 1, 1, 3), b(103)], x, base=100))
        for name, x in {
            **{
                f"coordinator {n}": e(1, 3, 102, offset_delta=2, coordinator_epoch=n, transaction=100)
                for n in (-3, -2, -1, 0, 5)
            },
            **{f"a transaction from {n}": e(1, 3, 102, offset_delta=2, transaction=n) for n in (-1, 0, 50, 99, 101)},
        }.items()
    },
    **{
        f"snapshot, {name}": (lambda rows=rows, x=x, of=of: snap(rows, *x, **of))
        for name, rows, x, of in (
            ("an overlap before", [p(0, 1, 0), b(0)], [e(1, 5, 0)], {}),
            *(
                (
                    f"a gap, another timestamp, coordinator {n}",
                    [p(0, 9, 0), b(4)],
                    [NINE._replace(timestamp=NINE.timestamp + 1, coordinator_epoch=n)],
                    {},
                )
                for n in (-1, 0)
            ),
            (
                "the marker at 0 as the last",
                [commit(0, 1), t(1, 1, 0, 2)],
                [e(1, 1, 0, offset_delta=1, coordinator_epoch=0, transaction=1)],
                {},
            ),
            ("a gap, and no transaction, from 0", [t(0, 1, 0), b(4)], [e(1, 0, 0)], {}),
            ("a gap, and a transaction from 1, from 0", [t(0, 1, 0), b(4)], [e(1, 0, 0, transaction=1)], {}),
            ("the first batch lacks records", [p(0, 1, 0, 3, count=2)], [e(1, 2, 2)], {}),
            ("an entry at another's offset", [p(0, 1, 0), p(1, 2, 0)], [e(2, 0, 0)], {}),
            (
                "one whose marker came last",
                [t(0, 1, 0), p(1, 2, 0), commit(2, 1)],
                [e(1, 0, 0, coordinator_epoch=0)],
                {},
            ),
            (
                "one whose marker came before",
                [t(0, 1, 0), commit(1, 1), p(2, 2, 0)],
                [e(1, 0, 0, coordinator_epoch=0)],
                {},
            ),
            (
                "a forgotten one's coordinator",
                [*(p(i, i, 0) for i in range(6)), b(6)],
                [e(5, 0, 5, coordinator_epoch=4)],
                {"limits": {"storage.producer_state:MOST_PRODUCERS": 2}},
            ),
        )
    },
    "snapshot below damage that begins behind it": lambda: log(p(0, 1, 0), bad(5), b(6), snapshots={3: [e(1, 5, 0)]}),
    "a hole of one before an empty segment": lambda: segs(
        (0, [p(0, 1, 0)], None), (2, [], None), snapshots={2: [e(1, 0, 0)]}, recovery={"t-0": 2}
    ),
    "an empty segment below the end": lambda: segs(
        (0, [p(0, 1, 0, 5)], None), (3, [], None), snapshots={5: [e(1, 4, 4, offset_delta=4)]}
    ),
    **{
        f"the latest timestamp {name}": (lambda rows=rows: log(p(0, 1, 0), b(1), *rows, chunk=99))
        for name, rows in {
            "rises by one to a day": [b(2, time=NOW + DAY - 1), b(3, time=NOW + DAY), p(4, 1, 7)],
            "rises to a day and falls": [b(2, time=NOW + DAY), b(3), p(4, 1, 7)],
        }.items()
    },
    **{
        f"index, a bare {name} in a segment behind what is missing": (
            lambda k=k: segs((0, [b(0), b(3)], None), (4, [marker(k, 4, 1), b(5)], [(1, 2, 4, 5)]))
        )
        for name, k in (("abort", 0), ("commit", 1))
    },
    **{
        f"forgotten producers, an index of one, stable {n}": (
            lambda n=n: log(
                *(p(i, i, 0) for i in range(6)),
                t(6, 9, 3),
                abort(7, 9),
                txn=[(9, 6, 7, n)],
                limits={"storage.producer_state:MOST_PRODUCERS": 2},
            )
        )
        for n in (5, 8, 9)
    },
    "index, a bare abort behind one that is missing": lambda: segs(
        (0, [b(0), b(2)], None), (3, [abort(3, 1), b(4)], [(1, 1, 3, 4)])
    ),
    "forgotten producers, an index of a bare abort": lambda: log(
        *(p(i, i, 0) for i in range(7)),
        abort(7, 0),
        txn=[(0, 0, 7, 8)],
        limits={"storage.producer_state:MOST_PRODUCERS": 2},
    ),
    "a marker of one that is known, and no room": lambda: log(
        p(0, 1, 0),
        p(1, 2, 0),
        p(2, 3, 0),
        abort(3, 3),
        p(4, 1, 5),
        p(5, 2, 5),
        limits={"storage.producer_state:MOST_PRODUCERS": 2},
    ),
    **{
        f"log from 100, {name}": (lambda rows=rows: log(*rows, base=100))
        for name, rows in {
            "an abort, and data": [abort(100, 1), p(101, 1, 5), p(102, 1, 7)],
            "a commit, and data": [commit(100, 1), p(101, 1, 5), p(102, 1, 7)],
        }.items()
    },
    "snapshot where an old batch begins, a skip": lambda: snap(
        [p(0, 1, 0), b(3, magic=1, count=-1), p(4, 1, 2)], e(1, 0, 0), at=3
    ),
    "snapshot, two differ": lambda: snap(LOG, NINE._replace(epoch=3), ONE._replace(epoch=3)),
    "snapshot, two differ, and there is a later one": lambda: snap(
        LOG, NINE._replace(epoch=3), ONE._replace(epoch=3), at=6, snapshots={7: [NINE, ONE]}
    ),
    "snapshot, one differs, and there is a later one": lambda: snap(
        LOG, NINE._replace(epoch=3), ONE, at=6, snapshots={7: [NINE, ONE]}
    ),
    **{
        f"snapshot at {at}": (lambda at=at: snap(LOG, NINE._replace(epoch=3), at=at))
        for at in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    },
    **{
        f"snapshot at {at} of a log that begins at 100": (
            lambda at=at: log(p(100, 1, 5), p(101, 1, 6), p(102, 1, 9), base=100, snapshots={at: [e(1, 4, 90)]})
        )
        for at in (50, 99, 100, 101)
    },
    "snapshots below and at the base": lambda: log(
        p(100, 1, 5), p(101, 1, 7), base=100, snapshots={50: [e(1, 9, 40)], 100: [e(1, 4, 90, transaction=90)]}
    ),
    **{
        f"snapshot that cannot be read, {'clean' if c else 'killed'}, at {at}": (
            lambda c=c, at=at: log(p(0, 1, 0), p(1, 1, 1), snapshots={at: encode([e(1, 1, 1)])[:-1] + b"!"}, clean=c)
        )
        for c in (True, False)
        for at in (0, 2)
    },
    "snapshot that cannot be read, alone": lambda: log(p(0, 1, 0), snapshots={1: b"x"}, alone=True, clean=True),
    **{
        f"snapshot above the end, {'clean' if c else 'killed'}": (
            lambda c=c: snap([p(0, 1, 0)], e(1, 0, 0), at=5, clean=c)
        )
        for c in (True, False)
    },
    "snapshot above a damaged end": lambda: snap([p(0, 1, 0), bad(1)], e(1, 0, 0), at=5, clean=True),
    "snapshot above an end behind damage": lambda: snap([p(0, 1, 0), bad(1), b(2)], e(1, 0, 0), at=5, clean=True),
    "snapshots above the end": lambda: log(p(0, 1, 0), snapshots={5: [], 6: []}, clean=True),
    **{
        f"snapshot lacks {k}, {known}": (lambda x=x, of=of: snap(MARKED, *x, **of))
        for k, x in {
            "none": (e(1, 0, 0), e(2, 0, 1), e(9, -1, -1, coordinator_epoch=0), e(3, 0, 3)),
            "1": (e(2, 0, 1), e(9, -1, -1, coordinator_epoch=0), e(3, 0, 3)),
            "2": (e(1, 0, 0), e(9, -1, -1, coordinator_epoch=0), e(3, 0, 3)),
            "9": (e(1, 0, 0), e(2, 0, 1), e(3, 0, 3)),
            "3": (e(1, 0, 0), e(2, 0, 1), e(9, -1, -1, coordinator_epoch=0)),
            "all": (),
            "1 and 2": (e(9, -1, -1, coordinator_epoch=0), e(3, 0, 3)),
            "all but 1": (e(1, 0, 0),),
        }.items()
        for known, of in {"a topic with an id": {"id": "x"}, "none known": {}}.items()
    },
    **{
        f"snapshot lacks one that was idle {ms} ms longer": (
            lambda ms=ms: snap([p(0, 1, 0, time=NOW - ms), p(1, 2, 0)], e(2, 0, 1))
        )
        for ms in (-1, 0, 1)
    },
    **{
        f"snapshot lacks one that wrote later, {ms} ms": (
            lambda ms=ms: snap([p(0, 1, 0), p(1, 2, 0, time=NOW + ms)], e(1, 0, 0))
        )
        for ms in (-1, 0, 1)
    },
    "snapshot lacks one with an open transaction": lambda: snap([t(0, 1, 0), p(1, 2, 0)], e(2, 0, 1)),
    "snapshot lacks one, and has one with an open transaction": lambda: snap(
        [t(0, 1, 0), p(1, 2, 0)], e(1, 0, 0, transaction=0)
    ),
    "snapshot lacks one, and has one without data": lambda: snap(
        [commit(0, 1), p(1, 2, 0)], e(1, -1, -1, coordinator_epoch=0)
    ),
    "snapshot lacks one, and has one of offset 0": lambda: snap([p(0, 1, 0), p(1, 2, 0)], e(1, 0, 0)),
    "snapshot lacks a producer 0": lambda: snap([p(0, 1, 0), p(1, 0, 0)], e(1, 0, 0)),
    **{
        f"no snapshot, {name}": (lambda rows=rows, of=of: log(*rows, **of))
        for name, rows, of in (
            ("clean", [p(0, 1, 0)], {"clean": True}),
            ("killed", [p(0, 1, 0)], {}),
            ("no producer", [b(0)], {"clean": True}),
            ("an open transaction", [t(0, 1, 0)], {"clean": True}),
            ("two, one open", [t(0, 1, 0), p(1, 2, 0)], {"clean": True}),
            ("two open", [t(0, 1, 0), t(1, 2, 0)], {"clean": True}),
            ("transaction of offset 0 closed", [t(0, 1, 0), commit(1, 1)], {"clean": True}),
            ("log start at the end", [p(0, 1, 0)], {"clean": True, "starts": {"t-0": 1}}),
            ("log start below the end", [p(0, 1, 0), b(1)], {"clean": True, "starts": {"t-0": 1}}),
            ("log start above the end", [p(0, 1, 0)], {"clean": True, "starts": {"t-0": 2}}),
            ("alone", [p(0, 1, 0)], {"alone": True, "clean": True}),
        )
    },
    **{
        f"the last stable offset, {name}": (lambda rows=rows, of=of: log(*rows, **of))
        for name, rows, of in (
            ("open", [b(0), t(1, 1, 0), b(2)], {}),
            ("open, log start 2", [b(0), t(1, 1, 0), b(2), b(3)], {"starts": {"t-0": 2}}),
            ("high watermark 2", [b(0), b(1), b(2)], {"high": {"t-0": 2}}),
            ("high watermark 2, log start 3", [b(0), b(1), b(2), b(3)], {"high": {"t-0": 2}, "starts": {"t-0": 3}}),
            ("high watermark 5", [b(0), b(1)], {"high": {"t-0": 5}}),
            ("open, high watermark 1", [b(0), b(1), t(2, 1, 0)], {"high": {"t-0": 1}}),
            ("open, high watermark 0", [b(0), b(1), t(2, 1, 0)], {"high": {"t-0": 0}}),
            ("two open", [b(0), t(1, 1, 0), t(2, 2, 0)], {}),
            ("open at 0", [t(0, 1, 0), b(1)], {}),
        )
    },
    "no segment": lambda: one(snapshots={5: []}, clean=True),
    "an empty segment": lambda: segs(
        (0, [p(0, 1, 0)], None), (9, [], None), snapshots={9: [e(1, 0, 0)], 5: [e(1, 0, 0)]}
    ),
    "an empty segment, wrong snapshots": lambda: segs(
        (0, [p(0, 1, 0)], None), (9, [], None), snapshots={9: [e(1, 1, 0)], 5: [e(1, 7, 4)]}
    ),
    "an empty segment at the end": lambda: segs((0, [p(0, 1, 0)], None), (1, [], None), snapshots={1: [e(1, 1, 0)]}),
    "a segment below the end": lambda: segs((0, [p(0, 1, 0, 5)], None), (3, [p(5, 1, 5), p(6, 1, 7)], None)),
    **{
        f"a sequence that skips more than the offsets between segments{', given alone' if alone else ''}": (
            lambda alone=alone: segs((0, [p(0, 1, 0)], None), (9, [p(9, 1, 100)], None), alone=alone)
        )
        for alone in (True, False)
    },
    "a snapshot above the end, given alone": lambda: log(p(0, 1, 0), snapshots={5: [e(1, 0, 0)]}, alone=True),
    "a deleted log": lambda: log(p(0, 1, 0), p(1, 1, 9), name=f"t-0.{AWAY}-delete"),
    "a stray log": lambda: log(p(0, 1, 0), p(1, 1, 9), name=f"t-0.{AWAY}-stray"),
    "a future log": lambda: log(p(0, 1, 0), p(1, 1, 9), name=f"t-0.{AWAY}-future"),
    "an empty chunk": lambda: log(p(0, 1, 0), p(1, 1, 9), chunk=0),
    "producers whose lines are one": lambda: log(
        *(p(i, pid, 0) for i, pid in enumerate(SAME_LINE)),
        *(p(9 + i, pid, 1) for i, pid in enumerate(SAME_LINE)),
        p(19, SAME_LINE[1], 9),
    ),
    **{
        f"{n} producers": (
            lambda n=n: log(
                *(p(i, i, 0) for i in range(n)), *(p(n + i, i, 1) for i in range(n)), p(2 * n, n - 1, 9), chunk=999
            )
        )
        for n in (127, 128, 129, 300)
    },
    **{
        f"{n} producers, room for {room}, {what}": (
            lambda n=n, room=room, kind=kind: log(
                *(kind(i, i) for i in range(n)),
                p(n, 0, 9),
                p(n + 1, n - 1, 9),
                commit(n + 2, n + 5),
                p(n + 3, 1, 9),
                chunk=999,
                limits={"storage.producer_state:MOST_PRODUCERS": room},
            )
        )
        for n in (3, 4, 5, 8)
        for room in (2, 3, 4)
        for what, kind in {
            "data": lambda i, pid: p(i, pid, 0),
            "transactions": lambda i, pid: t(i, pid, 0),
            "markers": commit,
        }.items()
    },
    "forgotten producers, a snapshot of one": lambda: snap(
        [*(p(i, i, 0) for i in range(6)), b(6)],
        e(0, 0, 0),
        e(7, 0, 3),
        limits={"storage.producer_state:MOST_PRODUCERS": 2},
    ),
    "forgotten producers, an index of one": lambda: log(
        *(p(i, i, 0) for i in range(6)),
        t(6, 9, 3),
        abort(7, 9),
        txn=[(9, 5, 7, 8)],
        limits={"storage.producer_state:MOST_PRODUCERS": 2},
    ),
    **{
        f"log start {start}, index, {name}, {n}": (
            lambda rows=rows, txn=txn, start=start: log(*rows, txn=txn, starts={"t-0": start}, clean=True)
        )
        for name, (rows, indexes) in RESUMED.items()
        for n, txn in enumerate(indexes)
        for start in (1, 2, 3, 4, 8)
    },
    **{
        f"log start 2, index, a snapshot {of} at {at}, {n}": (
            lambda txn=txn, at=at, x=x: log(*RESUMED["three batches"][0], txn=txn, starts={"t-0": 2}, snapshots={at: x})
        )
        for n, txn in enumerate(RESUMED["three batches"][1])
        for at in (1, 2)
        for of, x in {"of one": [e(1, 0, 0, transaction=0)], "of none": [], "of 11 bytes": b"x" * 11}.items()
    },
    **{
        f"index, three batches, given {'alone' if alone else 'without a log start'}, {n}": (
            lambda txn=txn, alone=alone: log(*RESUMED["three batches"][0], txn=txn, alone=alone)
        )
        for n, txn in enumerate(RESUMED["three batches"][1])
        for alone in (True, False)
    },
    **{
        f"log start {start}, snapshot, {name}, {n}": (
            lambda rows=rows, x=x, start=start: snap(rows, x, starts={"t-0": start})
        )
        for name, (rows, entries) in REBUILT.items()
        for n, x in enumerate(entries)
        for start in (0, 1, 2, 3)
    },
    **{
        f"index, three batches, of a future log, {n}": (
            lambda txn=txn: log(*RESUMED["three batches"][0], txn=txn, name=f"t-0.{AWAY}-future")
        )
        for n, txn in enumerate(RESUMED["three batches"][1])
    },
    **{
        f"log from 100, index, {name}, from {n}": (
            lambda rows=rows, n=n: log(
                *rows, base=100, txn=[(1, n, rows[-1]["base_offset"], rows[-1]["base_offset"] + 1)]
            )
        )
        for name, rows in {
            "a plain batch before": [p(100, 1, 5), t(101, 1, 6), abort(102, 1)],
            "a plain batch before, and a wrong one": [p(100, 1, 5), t(101, 1, 9), t(102, 1, 12), abort(103, 1)],
            "a plain batch within": [t(100, 1, 5), p(101, 1, 6), t(102, 1, 7), abort(103, 1)],
        }.items()
        for n in (-1, 0, 50, 99, 100, 101)
    },
    "a directory in the place of the index": lambda: log(t(0, 1, 0), abort(1, 1), folders=(f"{0:020}.txnindex",)),
    "a snapshot above the end that cannot be read": lambda: log(
        p(0, 1, 0), snapshots={9: []}, clean=True, gone=(f"d/t-0/{9:020}.snapshot",)
    ),
    **{f"walk {n}": (lambda n=n: walk(n)) for n in WALKS},
}
