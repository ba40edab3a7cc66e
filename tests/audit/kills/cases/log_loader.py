"""Of offsets over batches and segments, of what a crash left, and of what a restart does with it."""

from __future__ import annotations

from typing import Any

from kafkaspec.audit.check import TopicConfig
from tests.audit.kills.around import AWAY
from tests.audit.kills.write import CLUSTER, Case, b, cases, folder, meta, one, part, seg

LONG_MAX = 2**63 - 1
NAME = f"{7:020}"


def offsets(*rows: Any, **of: Any) -> Case:
    """A log of one segment, of a topic that is not compacted."""
    return one(seg(7, *rows), **{"policy": "delete", **of})


def segments(*of: tuple[int, Any], **more: Any) -> Case:
    return one(*(seg(base, *rows) for base, rows in of), **{"policy": "delete", **more})


def old(base: int, last: int | None = None, **of: int) -> dict[str, int]:
    """A batch of format 1."""
    return b(base, last, magic=1, count=-1, epoch=-1, **of)


def leftovers(*names: str, folders: tuple[str, ...] = (), **of: Any) -> Case:
    """A log with these files beside its segment."""
    return one(seg(7, b(7)), files=dict.fromkeys(names, b""), folders=folders, **of)


def damaged(n: int, problem: int = 3, **of: Any) -> Case:
    """Three segments, at 10, 20 and 30; in the n-th a batch is damaged."""
    made = []
    for i in range(3):
        base = 10 * i + 10
        rows = [b(base, base + 4, epoch=-1), b(base + 5, base + 9, epoch=-1)]
        if i == n:
            rows[1] = b(base + 5, base + 9, problem=problem)
        made.append(seg(base, *rows))
    return one(*made, **of)


def cut(n: int, **of: Any) -> Case:
    """Three segments, of which the n-th ends within a batch."""
    made = []
    for i in range(3):
        base = 10 * i + 10
        more: dict[str, Any] = {"reason": "9 bytes", "size": 109} if i == n else {}
        made.append(seg(base, b(base, base + 9, epoch=-1), **more))
    return one(*made, **of)


def nodes(*of: tuple[str, int | None, str, tuple[str, ...]]) -> Case:
    """Directories, each with its node, its cluster, and the names of its partitions."""
    return cases(
        *(
            folder(
                *(part(seg(7, b(7)), name=x) for x in names),
                name=name,
                clean=False,
                properties=meta(node, cluster, None) if node is not None else None,
            )
            for name, node, cluster, names in of
        )
    )


OTHER = "OkU3OEVBNTcwNTJENDM2Qg"

CASES = {
    # ---- offsets
    "no gap": lambda: offsets(b(7), b(8, 9), b(10)),
    **{
        f"{name}, given alone": (lambda of=of, policy=policy: segments(*of, policy=policy, alone=True))
        for name, policy, of in (
            ("a gap between segments", "delete", ((7, [b(7)]), (9, [b(9)]))),
            ("a gap between segments, compacted", "compact", ((7, [b(7)]), (9, [b(9)]))),
            ("below the segment's base, and a gap", "delete", ((7, [b(7)]), (9, [b(8), b(10)]))),
            ("below the segment's base, and a gap across it", "delete", ((7, [b(7)]), (12, [b(8), b(13)]))),
            ("a gap at the segment's base", "delete", ((7, [b(7, 8)]), (9, [b(10)]))),
            ("a gap, and the segment before reaches beyond the base", "delete", ((7, [b(7, 9)]), (9, [b(11)]))),
        )
    },
    "a gap of one": lambda: offsets(b(7), b(9), b(10)),
    "an overlap of one": lambda: offsets(b(7, 8), b(8, 9), b(10)),
    "an overlap of two, and a gap behind it": lambda: offsets(b(7, 9), b(8, 8), b(10), b(11)),
    "an overlap within a chunk, and a gap behind it": lambda: offsets(b(7, 9), b(8, 8), b(10), b(11), chunk=4),
    "an overlap, and two gaps behind it": lambda: offsets(b(7, 9), b(8, 8), b(10), b(12), chunk=4),
    "an overlap, and two gaps behind it, in chunks": lambda: offsets(b(7), b(7, 8), b(10), b(12), b(14)),
    "gaps where chunks meet": lambda: offsets(b(7), b(8), b(10), b(11), b(13)),
    "overlaps where chunks meet": lambda: offsets(b(7), b(8), b(8), b(9), b(9), b(10)),
    "the log begins above its base": lambda: offsets(b(9), b(10)),
    "the log begins below its base": lambda: offsets(b(6), b(7)),
    "an empty chunk": lambda: offsets(b(7), b(9), chunk=0),
    "batches in one chunk": lambda: offsets(b(7), b(9), b(11), b(11), chunk=9),
    **{
        f"{n} gaps, {known}": (lambda n=n, policy=policy: offsets(*(b(7 + 2 * i) for i in range(n + 1)), policy=policy))
        for n in (19, 20, 21, 22)
        for known, policy in {"not compacted": "delete", "not known": None}.items()
    },
    **{f"{n} overlaps": (lambda n=n: offsets(*(b(7) for _ in range(n + 1)))) for n in (19, 20, 21, 22)},
    "a gap, damage, a gap": lambda: offsets(b(7), b(9), b(10, problem=3), b(12), b(14)),
    "damage where a gap would be": lambda: offsets(b(7), b(8, problem=3), b(10)),
    "damage in a chunk of its own": lambda: offsets(b(7), b(8), b(9, problem=3), b(10, problem=3), b(12), b(13)),
    "damage in one chunk": lambda: offsets(b(7), b(9), b(10, problem=3), b(12), b(14), b(14, problem=1), chunk=9),
    "an overlap before damage": lambda: offsets(b(7), b(7), b(8, problem=3), b(12), b(14), chunk=5),
    "old batches and gaps": lambda: offsets(old(7), old(9), b(11), b(12), b(14)),
    "old batches first": lambda: offsets(old(7, 8), b(9), b(11), chunk=9),
    "old batches between": lambda: offsets(b(7), old(8, 9), b(11), b(12), b(14), chunk=9),
    "old batches at the end": lambda: offsets(b(7), old(8, 9)),
    "old batches and damage at the end": lambda: offsets(b(7), old(8, 9, problem=3), recovery={"t-0": 8}),
    "nothing but old batches": lambda: offsets(old(7), old(8), recovery={"t-0": 12}),
    "nothing but damage": lambda: offsets(b(7, problem=3), b(8, problem=3), recovery={"t-0": 12}),
    "damage at the end, and a recovery point beyond": lambda: offsets(b(7), b(8, problem=3), recovery={"t-0": 12}),
    "damage, a good batch, and a recovery point beyond": lambda: offsets(b(7, problem=3), b(8), recovery={"t-0": 12}),
    "a good end, and a recovery point beyond": lambda: offsets(b(7), recovery={"t-0": 12}),
    "a cut end, and a recovery point beyond": lambda: one(
        seg(7, b(7), reason="9 bytes", size=109), recovery={"t-0": 12}
    ),
    "a cut segment, a good one, and a gap": lambda: one(
        seg(7, b(7), reason="9 bytes", size=109), seg(9, b(9), b(11)), policy="delete", recovery={"t-0": 15}
    ),
    "segments without a gap": lambda: segments((7, [b(7), b(8)]), (9, [b(9)])),
    "a gap between segments": lambda: segments((7, [b(7)]), (9, [b(9)])),
    "an overlap between segments": lambda: segments((7, [b(7, 9)]), (9, [b(9)])),
    "up to the next segment's base": lambda: segments((7, [b(7), b(8, 9)]), (9, [b(10)])),
    "beyond the next segment's base": lambda: segments((7, [b(7), b(8), b(9)]), (9, [b(10)])),
    "below the segment's base": lambda: segments((7, [b(7)]), (9, [b(8), b(9)])),
    "at the segment's base, behind a gap": lambda: segments((7, [b(7)]), (10, [b(9), b(10)])),
    "below the segment's base and an overlap": lambda: segments((7, [b(7), b(8)]), (9, [b(8), b(9)])),
    "strangers in one chunk": lambda: segments((7, [b(7), b(8), b(9), b(10), b(11)]), (10, [b(12)]), chunk=9),
    **{
        f"{n} strangers": (lambda n=n: segments((7, [b(7)]), (60, [b(8 + i) for i in range(n)])))
        for n in (19, 20, 21, 22)
    },
    "an empty segment": lambda: segments((7, [b(7)]), (8, []), (8 + 1, [b(9)])),
    **{
        f"a gap, {name}": (lambda of=of: offsets(b(7), b(9), **of))
        for name, of in {
            "compacted": {"policy": "compact"},
            "compacted and deleted": {"policy": "compact,delete"},
            "nothing known": {"policy": None},
            "a topic that the metadata log knows": {"policy": None, "id": "x"},
            "a log that the cleaner remembers": {"policy": None, "cleaner": {"t-0": 7}},
            "a log that the cleaner remembers, deleted by policy": {"cleaner": {"t-0": 7}},
            "the metadata log": {"policy": None, "name": "__cluster_metadata-0"},
            "offsets of groups": {"policy": None, "name": "__consumer_offsets-0"},
            "transactions": {"policy": None, "name": "__transaction_state-0"},
            "share groups": {"policy": None, "name": "__share_group_state-0"},
            "a compaction that was not finished": {"files": {f"{NAME}.log.cleaned": b""}},
            "a compaction that has no place yet": {"files": {f"{NAME}.log.swap": b""}},
            "a segment that is being removed": {"files": {f"{NAME}.log.deleted": b""}},
        }.items()
    },
    **{
        f"a gap, and a batch that lacks records, {name}": (lambda of=of, rows=rows: offsets(*rows, **of))
        for name, rows, of in (
            ("nothing known", [b(7), b(9), b(10, 12, count=2)], {"policy": None}),
            ("nothing known, in the first chunk", [b(7, 8, count=1), b(10), b(11), b(12)], {"policy": None}),
            ("not compacted", [b(7), b(9), b(10, 12, count=2)], {}),
            ("known", [b(7), b(9), b(10, 12, count=2)], {"policy": None, "id": "x"}),
        )
    },
    # ---- what recovery does
    **{
        f"damage in the segment at {10 * n + 10}, {clean}, {point}": (
            lambda n=n, of=of, more=more: damaged(n, **of, **more)
        )
        for n in (0, 1, 2)
        for clean, of in {"clean": {"clean": True}, "killed": {"clean": False}}.items()
        for point, more in {
            "no recovery point": {},
            "recovery point 5": {"recovery": {"t-0": 5}},
            "recovery point 19": {"recovery": {"t-0": 19}},
            "recovery point 20": {"recovery": {"t-0": 20}},
            "recovery point 30": {"recovery": {"t-0": 30}},
        }.items()
    },
    **{f"damage in the segment at {10 * n + 10}, alone": (lambda n=n: damaged(n, alone=True)) for n in (0, 1, 2)},
    **{
        f"the segment at {10 * n + 10} is cut, {'clean' if c else 'killed'}": (lambda n=n, c=c: cut(n, clean=c))
        for n in (0, 1, 2)
        for c in (True, False)
    },
    "damage in a segment without an index": lambda: one(
        seg(10, b(10), b(11, problem=3), index=None), seg(20, b(20)), clean=False
    ),
    "damage in a segment without an index, clean": lambda: one(
        seg(10, b(10), b(11, problem=3), index=None), seg(20, b(20)), clean=True
    ),
    "the last batch is damaged": lambda: one(seg(10, b(10), b(11, problem=3)), clean=False),
    "the last two batches are damaged": lambda: one(seg(10, b(10), b(11, problem=3), b(-1, problem=3)), clean=False),
    "the last batch but one is damaged": lambda: one(seg(10, b(10), b(11, problem=3), b(12)), clean=False),
    "the last batch but two is damaged": lambda: one(seg(10, b(10), b(11, problem=3), b(12), b(13)), clean=False),
    "a batch behind the end is cut": lambda: one(seg(10, reason="9 bytes", size=9), clean=True),
    # ---- files
    "a file that is to be deleted": lambda: leftovers(f"{NAME}.log.deleted"),
    "a file that is being cleaned": lambda: leftovers(f"{NAME}.log.cleaned"),
    "a file that is to be swapped": lambda: leftovers(f"{NAME}.log.swap"),
    **{
        f"swap at {swap}, cleaned at {cleaned}": (
            lambda s=swap, c=cleaned: leftovers(f"{s:020}.log.swap", *(f"{x:020}.log.cleaned" for x in c))
        )
        for swap, cleaned in ((7, (8,)), (8, (8,)), (9, (8,)), (8, (9, 7)), (8, (7, 9)), (8, (9, 10)))
    },
    "a swap and a nameless cleaned": lambda: leftovers(f"{NAME}.log.swap", "x.log.cleaned"),
    "a swap and a deleted": lambda: leftovers(f"{NAME}.log.swap", f"{5:020}.log.deleted"),
    **{
        f"a file {name}": (lambda name=name: leftovers(name))
        for name in (
            "x.log.deleted",
            "x.log.cleaned",
            "x.log.swap",
            "7.log.swap",
            "7.log",
            "x.log",
            "x.index",
            "-7.timeindex",
            "+7.txnindex",
            "x.snapshot",
            "7.snapshot",
            f"{LONG_MAX}.log",
            f"{LONG_MAX + 1}.log",
            f"{-LONG_MAX - 1}.log",
            f"{-LONG_MAX - 2}.log",
            f"{LONG_MAX:020}.log.swap",
            f"{LONG_MAX + 1:020}.log.swap",
            f"{LONG_MAX + 1:020}.log.deleted",
            "leader-epoch-checkpoint.tmp",
            "x.log.tmp",
            "quorum-state",
            "7x.log",
        )
    },
    **{
        f"a {suffix} without a segment": (lambda suffix=suffix: leftovers(f"{5:020}{suffix}"))
        for suffix in (".index", ".timeindex", ".txnindex")
    },
    **{
        f"a folder {name}": (lambda name=name: leftovers(folders=(name,)))
        for name in (
            "x",
            "x.log",
            "x.index",
            f"{9:020}.log",
            f"{9:020}.timeindex",
            f"{9:020}.snapshot",
            "x.snapshot",
            f"{9:020}.txnindex",
            f"{9:020}.x",
        )
    },
    "an index beside a folder with the name of its log": lambda: leftovers(
        f"{5:020}.index", f"{6:020}.index", folders=(f"{5:020}.log",)
    ),
    "damage beside a folder with the name of the index": lambda: one(
        seg(10, b(10), b(11, problem=3), index=None), seg(20, b(20)), clean=False, folders=(f"{10:020}.index",)
    ),
    "an index without a segment, given alone": lambda: leftovers(f"{5:020}.index", alone=True),
    # ---- directories
    **{
        f"a partition {name}": (lambda name=name: one(seg(7, b(7)), name=name))
        for name in (f"t-0.{AWAY}-delete", f"t-0.{AWAY}-future", f"t-0.{AWAY}-stray", "t-0")
    },
    "a folder that is no partition": lambda: one(seg(7, b(7)), folders=(), files={}, recovery={"t-0": 8}),
    "a folder in the place of the marker of a clean stop": lambda: cases(
        folder(part(seg(7, b(7))), clean=False, folders=(".kafka_cleanshutdown",))
    ),
    "a folder in the place of the marker, and one in it": lambda: cases(
        folder(part(seg(7, b(7))), clean=False, folders=(".kafka_cleanshutdown", ".kafka_cleanshutdown/x"))
    ),
    "folders that are no partitions": lambda: cases(
        folder(part(seg(7, b(7))), folders=("remote-log-index-cache", "lost+found", "x"))
    ),
    "a partition twice in one directory's node": lambda: nodes(
        ("d1", 1, CLUSTER, ("t-0", "u-0")), ("d2", 1, CLUSTER, ("t-0", "t-1"))
    ),
    "of two nodes": lambda: nodes(("d1", 1, CLUSTER, ("t-0",)), ("d2", 2, CLUSTER, ("t-0",))),
    "of two clusters": lambda: nodes(("d1", 1, CLUSTER, ("t-0",)), ("d2", 1, OTHER, ("t-0",))),
    "of no known node": lambda: nodes(("d1", None, CLUSTER, ("t-0",)), ("d2", None, CLUSTER, ("t-0",))),
    "the metadata log twice": lambda: nodes(
        ("d1", 1, CLUSTER, ("__cluster_metadata-0",)), ("d2", 1, CLUSTER, ("__cluster_metadata-0",))
    ),
    "a future copy": lambda: nodes(("d1", 1, CLUSTER, ("t-0",)), ("d2", 1, CLUSTER, (f"t-0.{AWAY}-future",))),
    "two future copies": lambda: nodes(
        ("d1", 1, CLUSTER, (f"t-0.{AWAY}-future", "u-0")), ("d2", 1, CLUSTER, (f"t-0.{AWAY}-future",))
    ),
    "three times": lambda: nodes(
        ("d1", 1, CLUSTER, ("t-0",)), ("d2", 1, CLUSTER, ("t-0",)), ("d3", 1, CLUSTER, ("t-0",))
    ),
    "other topics": lambda: cases(
        folder(part(seg(7, b(7), b(9)), name="t-0"), part(seg(7, b(7), b(9)), name="u-0")),
        config={"t": TopicConfig(cleanup_policy="delete"), "u": TopicConfig(cleanup_policy="compact")},
    ),
    "damage in a segment one below the recovery point": lambda: one(
        seg(10, b(10, problem=3)), seg(11, b(11)), clean=False, recovery={"t-0": 11}
    ),
    "damage, and one offset behind it": lambda: one(seg(10, b(10), b(-1, problem=3), b(11)), clean=False),
    "damage at the end in problem 1, and a recovery point beyond": lambda: offsets(
        b(7), b(8, problem=1), recovery={"t-0": 12}
    ),
    "old batches at the end, and a recovery point beyond": lambda: offsets(b(7), old(8, 9), recovery={"t-0": 12}),
    "a swap, a nameless cleaned and another": lambda: leftovers(
        f"{9:020}.log.swap", "x.log.cleaned", f"{8:020}.log.cleaned"
    ),
}
