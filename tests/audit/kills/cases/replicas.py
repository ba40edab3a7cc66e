"""Of the replicas of a partition against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaspec.audit.check import TopicConfig
from tests.audit.kills.around import AWAY
from tests.audit.kills.write import CLUSTER, Case, Row, Seg, b, cases, folder, meta, one, part, seg

OTHER = "OkU3OEVBNTcwNTJENDM2Qg"
ID, ID2 = "q1NlNcK3TLyRkSHWPZ3hLQ", "B1NlNcK3TLyRkSHWPZ3hLQ"
NOTHING: Mapping[str, Any] = {}


def whole(**of: Any) -> list[Row]:
    """Five batches of five records, in three leader epochs."""
    return [b(5 * i, 5 * i + 4, epoch=(0, 0, 1, 1, 3)[i], crc=7 + i, **of) for i in range(5)]


def put(n: int, *rows: Row, after: int = 1) -> list[Row]:
    """The same with others in the place of the n-th (and of those behind it)."""
    return [*whole()[:n], *rows, *whole()[n + after :]]


def but(n: int, **of: int) -> list[Row]:
    """The same, in the n-th other fields."""
    return put(n, whole()[n] | of)


def node(n: int, rows: Sequence[Row] | Sequence[Seg], high: int | None = 25, **of: Any) -> Any:
    """A directory of node n with this log of t-0."""
    of_part = {k: of.pop(k) for k in ("epochs", "files", "name") if k in of}
    cluster = of.pop("cluster", CLUSTER)
    said: dict[str, Any] = {"name": f"d{n}", "properties": meta(of.pop("id", n), cluster, None)} | of
    if high is not None:
        said["high"] = {"t-0": high}
    segs = rows if rows and isinstance(rows[0], Seg) else [seg(0, *rows)]
    made = part(*segs, **of_part)
    return folder(made, **({**said, "name": said["name"]}))


def pair(
    x: Any,
    y: Any,
    policy: str | None = "delete",
    one: Mapping[str, Any] = NOTHING,
    two: Mapping[str, Any] = NOTHING,
    **of: Any,
) -> Case:
    """Two replicas; `one`, `two`: more words to their directories."""
    config = {"t": TopicConfig(cleanup_policy=policy), "__cluster_metadata": TopicConfig(cleanup_policy=policy)}
    return cases(node(1, x, **one), node(2, y, **two), config=config, **of)


def three(x: Any, y: Any, z: Any, **of: Any) -> Case:
    config = {"t": TopicConfig(cleanup_policy="delete")}
    return cases(node(1, x), node(2, y), node(3, z), config=config, **of)


def singles(n: int, **of: int) -> list[Row]:
    """Six batches of one record, in the n-th other fields."""
    return [b(i, epoch=0, crc=7 + i) | (of if i == n else {}) for i in range(6)]


def properties(n: int | None, cluster: str | None) -> dict[str, Any]:
    """A meta.properties of version 0, which need not say anything."""
    said = {"version": 0, "broker.id": n, "cluster.id": cluster}
    return {"properties": "".join(f"{k}={v}\n" for k, v in said.items() if v is not None).encode()}


def partition_metadata(id: str) -> dict[str, Any]:
    return {"files": {"partition.metadata": f"version: 0\ntopic_id: {id}\n".encode()}}


OTHERS: dict[str, list[Row]] = {
    "the same": whole(),
    **{f"another CRC in {n}": but(n, crc=99) for n in (0, 2, 4)},
    **{f"another CRC and other records in {n}": but(n, crc=99, content=50) for n in (0, 2, 4)},
    "another size": but(2, size=101),
    "another last offset": but(2, last_offset=13, count=4, last_record=13),
    **{f"batch {n} missing": put(n) for n in (0, 2, 4)},
    **{f"batch {n} of a higher epoch": but(n, crc=99, leader_epoch=5, content=50) for n in (0, 2, 4)},
    "batch 2 of a lower epoch": but(2, crc=99, leader_epoch=0, content=50),
    **{f"batch {n} damaged": but(n, problem=3) for n in (0, 2, 4)},
    "batches 1 and 2 damaged": put(1, whole()[1] | {"problem": 3}, whole()[2] | {"problem": 3}, after=2),
    "batch 1 damaged, another CRC behind it": put(1, whole()[1] | {"problem": 3}, whole()[2] | {"crc": 99}, after=2),
    "batch 1 damaged, another CRC in 3": put(
        1, whole()[1] | {"problem": 3}, whole()[2], whole()[3] | {"crc": 99, "content": 50}, after=3
    ),
    "batch 3 damaged, another CRC before it": put(
        2, whole()[2] | {"crc": 99, "content": 50}, whole()[3] | {"problem": 3}, after=2
    ),
    "batch 4 of another epoch alone": but(4, leader_epoch=5),
    "batches 2 and 3 of another epoch alone": put(
        2, whole()[2] | {"leader_epoch": 2}, whole()[3] | {"leader_epoch": 2}, after=2
    ),
    "batch 2 in two": put(2, b(10, 11, epoch=1, crc=20), b(12, 14, epoch=1, crc=21)),
    "batch 2 without its last records": but(2, last_record=12, count=3, crc=99),
    "batch 2 without its first records": but(2, first_record=12, count=3, crc=99),
    "batches 1 and 2 in one": put(1, b(5, 14, epoch=1, crc=20), after=2),
    "batch 2 old": but(2, magic=1, crc=99),
    "batches 2 and 3 old": put(2, whole()[2] | {"magic": 1, "crc": 99}, whole()[3] | {"magic": 1, "crc": 99}, after=2),
    "batch 2 begins too early": put(2, b(8, 14, epoch=1, crc=99)),
    "batch 2 begins too late": put(2, b(16, 14, epoch=1, crc=99)),
    "batch 2 ends too late": put(2, b(10, 17, epoch=1, crc=99)),
    "batch 4 begins too early": put(4, b(17, 24, epoch=1, crc=99)),
    "batch 0 begins too late": put(0, b(3, 4, crc=99)),
    "no batch": [],
    "shorter": whole()[:3],
    "all of it later": whole()[3:],
}
CHUNKS: dict[str, Any] = {"chunks of 2": 2, "chunks of 1 and 3": {"d1": 1, "d2": 3}, "one chunk": 9}

CASES = {
    "a partition given alone": lambda: one(seg(7, b(7)), alone=True),
    **{
        f"{name}, {policy}, {size}": (lambda x=x, p=p, c=c: pair(whole(), x, p, chunk=c))
        for name, x in OTHERS.items()
        for policy, p in {"not compacted": "delete", "compacted": "compact"}.items()
        for size, c in CHUNKS.items()
    },
    **{
        f"{name} in the first, {policy}": (lambda x=x, p=p: pair(x, whole(), p))
        for name, x in OTHERS.items()
        for policy, p in {"not compacted": "delete", "compacted": "compact"}.items()
    },
    **{
        f"{name}, nothing known": (lambda x=x: pair(whole(), x, None))
        for name, x in OTHERS.items()
        if name
        in ("another CRC in 2", "another CRC and other records in 2", "batch 2 missing", "batch 2 of a higher epoch")
    },
    **{
        f"another CRC in 2, high watermark {high}, {what}": (
            lambda high=high, x=x, one=one: pair(x, but(2, crc=99, content=50), one={"high": high}, two=one)
        )
        for high in (0, 10, 11, 14, 15, 16, None)
        for what, x, one in (
            ("of the first", whole(), {}),
            ("of both", whole(), {"high": high}),
            ("the first shorter", whole()[:2], {}),
        )
    },
    **{
        f"batch 2 {what}, high watermark {high}": (lambda high=high, x=x: pair(whole(), x, one={"high": high}))
        for high in (9, 10, 11, 12, 15)
        for what, x in {"missing": put(2), "in two": OTHERS["batch 2 in two"]}.items()
    },
    **{
        f"{what}, log start {start}, {policy}": (
            lambda x=x, start=start, p=p: pair(whole(), x, p, one={"starts": {"t-0": start}})
        )
        for what, x in {
            "another CRC in 2": but(2, crc=99, content=50),
            "another CRC in 0": but(0, crc=99, content=50),
            "batch 2 in two": OTHERS["batch 2 in two"],
        }.items()
        for start in (0, 1, 4, 5, 9, 10, 11, 12, 14, 15, 24, 25)
        for policy, p in {"not compacted": "delete", "compacted": "compact"}.items()
    },
    "log starts differ": lambda: pair(whole(), whole(), one={"starts": {"t-0": 10}}, two={"starts": {"t-0": 4}}),
    **{
        f"the metadata log, {name}": (
            lambda x=x, high=high: cases(
                *(
                    folder(
                        part(seg(0, *rows), name="__cluster_metadata-0"),
                        name=f"d{n}",
                        properties=meta(n, CLUSTER, None),
                        **({} if high is None else {"high": {"__cluster_metadata-0": high}}),
                    )
                    for n, rows in ((1, whole()), (2, x))
                ),
                config={"__cluster_metadata": TopicConfig(cleanup_policy="delete")},
            )
        )
        for name, x, high in (
            ("the same", whole(), None),
            ("another CRC", but(2, crc=99), None),
            ("another CRC, high watermark 5", but(2, crc=99), 5),
            ("another epoch", OTHERS["batch 2 of a higher epoch"], None),
            ("one missing", put(2), None),
        )
    },
    "no high watermark, a client's log": lambda: pair(whole(), but(2, crc=99), one={"high": None}, two={"high": None}),
    # ---- which are replicas
    **{
        f"{name}, another CRC": (lambda one=one, two=two: pair(whole(), but(2, crc=99), one=one, two=two))
        for name, one, two in (
            ("one node", {}, {"id": 1}),
            ("no node of the second", {}, {"id": None}),
            ("no node of the first", {"id": None}, {}),
            ("another cluster", {}, {"cluster": OTHER}),
            ("no cluster of the second", {}, {"cluster": None}),
            ("no cluster of both", {"cluster": None}, {"cluster": None}),
            ("no cluster, one node", {"cluster": None}, {"cluster": None, "id": 1}),
            ("a future copy", {}, {"name": f"t-0.{AWAY}-future"}),
            ("a deleted copy", {"name": f"t-0.{AWAY}-delete"}, {}),
            ("two future copies", {"name": f"t-0.{AWAY}-future"}, {"name": f"t-0.{AWAY}-future"}),
            ("another partition", {}, {"name": "t-1"}),
            ("another topic", {}, {"name": "u-0"}),
            ("killed", {"clean": False}, {}),
            ("both killed", {"clean": False}, {"clean": False}),
            ("the second killed", {}, {"clean": False}),
            ("one topic's id", {"files": {"partition.metadata": f"version: 0\ntopic_id: {ID}".encode()}}, {}),
            (
                "an id of either",
                {"files": {"partition.metadata": f"version: 0\ntopic_id: {ID}".encode()}},
                {"files": {"partition.metadata": f"version: 0\ntopic_id: {ID}".encode()}},
            ),
            ("an id of the second", {}, {"files": {"partition.metadata": f"version: 0\ntopic_id: {ID}".encode()}}),
            (
                "two ids",
                {"files": {"partition.metadata": f"version: 0\ntopic_id: {ID}".encode()}},
                {"files": {"partition.metadata": f"version: 0\ntopic_id: {ID2}".encode()}},
            ),
            ("an id that cannot be read", {"files": {"partition.metadata": b"x"}}, {}),
        )
    },
    **{
        f"states of one broker, {name}": (
            lambda of=of: cases(*of(), config={"t": TopicConfig(cleanup_policy="delete")})
        )
        for name, of in {
            "without a cluster, and one of another": lambda: [
                node(1, whole(), cluster=None),
                node(2, but(2, crc=99), cluster=None),
                node(3, whole(), cluster=None, id=1),
                node(4, but(2, crc=99)),
                node(5, whole()),
            ],
            "without a cluster, nodes differ": lambda: [
                node(1, whole(), cluster=None),
                node(2, but(2, crc=99), cluster=None),
                node(4, but(2, crc=99)),
                node(5, whole()),
            ],
            "four of two clusters": lambda: [
                node(1, whole()),
                node(2, but(2, crc=99)),
                node(3, whole(), cluster=OTHER),
                node(4, but(3, crc=99), cluster=OTHER),
            ],
        }.items()
    },
    # ---- ids of topics
    **{
        f"ids {name}": (
            lambda ids=ids, told=told, clusters=clusters: cases(
                *(
                    node(
                        n + 1,
                        whole(),
                        cluster=clusters[n],
                        files={} if id is None else {"partition.metadata": f"version: 0\ntopic_id: {id}\n".encode()},
                    )
                    for n, id in enumerate(ids)
                ),
                ids={} if told is None else {"t": told},
                config={"t": TopicConfig(cleanup_policy="delete")},
            )
        )
        for name, ids, told, clusters in (
            ("of one", (ID, ID, ID), None, (CLUSTER,) * 3),
            ("two of one, one of another", (ID, ID, ID2), None, (CLUSTER,) * 3),
            ("one of one, two of another", (ID, ID2, ID2), None, (CLUSTER,) * 3),
            ("of two", (ID, ID2), None, (CLUSTER,) * 2),
            ("of two, the metadata log says the second", (ID, ID2), ID2, (CLUSTER,) * 2),
            ("of two, the metadata log says the one of fewer", (ID, ID, ID2), ID2, (CLUSTER,) * 3),
            ("of two, the metadata log says neither", (ID, ID, ID2), "C1NlNcK3TLyRkSHWPZ3hLQ", (CLUSTER,) * 3),
            ("of two, and none", (ID, None, ID2, ID2), None, (CLUSTER,) * 4),
            ("of two clusters", (ID, ID2), None, (CLUSTER, OTHER)),
            ("of two clusters, two each", (ID, ID2, ID, ID2), None, (CLUSTER, CLUSTER, OTHER, OTHER)),
        )
    },
    # ---- which is the odd one
    **{
        f"three, {name}": (lambda x=x, y=y, z=z: three(x, y, z))
        for name, x, y, z in (
            ("the first is odd", but(2, crc=99), whole(), whole()),
            ("the second is odd", whole(), but(2, crc=99), whole()),
            ("the last is odd", whole(), whole(), but(2, crc=99)),
            ("all differ", whole(), but(2, crc=98), but(2, crc=99)),
            ("all differ at other places", whole(), but(2, crc=98), but(3, crc=99)),
            ("the first is behind", but(2, crc=99, leader_epoch=0), whole(), whole()),
            ("the first lacks one", put(2), whole(), whole()),
            ("the others lack one", whole(), put(2), put(2)),
            ("one lacks one, one differs there", whole(), put(2), but(2, crc=99)),
            ("one behind, one diverged", whole(), but(2, crc=98), but(2, crc=99, leader_epoch=5)),
        )
    },
    **{
        f"rank: {name}, another CRC": (lambda one=one, two=two: pair(whole(), but(2, crc=99), one=one, two=two))
        for name, one, two in (
            ("the second has the higher high watermark", {"high": 20}, {"high": 21}),
            ("the first has the higher high watermark", {"high": 21}, {"high": 20}),
            ("the second alone is clean", {"clean": False, "high": 25}, {"high": 20}),
        )
    },
    "rank: the second is longer": lambda: pair(whole()[:4], but(2, crc=99), one={"high": 20}, two={"high": 20}),
    # ---- epochs
    **{
        f"epochs {name}, {around}": (
            lambda x=x, y=y, p=p, one=one, two=two: pair(
                whole(), whole(), p, one={"epochs": x, **one}, two={"epochs": y, **two}
            )
        )
        for name, x, y in (
            ("of one", [(0, 0), (1, 10), (3, 20)], [(0, 0), (1, 10), (3, 20)]),
            ("one later", [(0, 0), (1, 10), (3, 20)], [(0, 0), (1, 11), (3, 20)]),
            ("one earlier", [(0, 0), (1, 10), (3, 20)], [(0, 0), (1, 9), (3, 20)]),
            ("two differ", [(0, 0), (1, 10), (3, 20)], [(0, 0), (1, 9), (3, 21)]),
            ("the first differs", [(0, 0), (1, 10), (3, 20)], [(0, 1), (1, 10), (3, 20)]),
            ("the last differs", [(0, 0), (1, 10), (3, 20)], [(0, 0), (1, 10), (3, 22)]),
            ("both beyond", [(0, 0), (1, 10), (3, 26)], [(0, 0), (1, 10), (3, 27)]),
            ("one lacks", [(0, 0), (1, 10), (3, 20)], [(0, 0), (3, 20)]),
            ("no file of the second", [(0, 0), (1, 10), (3, 20)], None),
            ("no file of the first", None, [(0, 0), (1, 10), (3, 20)]),
            ("a bad file of the second", [(0, 0), (1, 10), (3, 20)], b"x"),
            ("not to be compared", [(0, 0), (1, 10), (3, 20)], b"0\n3\n1 2\n0 0\n1 3\n"),
        )
        for around, p, one, two in (
            ("not compacted", "delete", {}, {}),
            ("compacted", "compact", {}, {}),
            ("killed", "delete", {"clean": False}, {}),
            ("the second killed", "delete", {}, {"clean": False}),
            ("nothing known", None, {}, {}),
            ("high watermark 20", "delete", {"high": 20}, {}),
            ("high watermark 9", "delete", {"high": 9}, {}),
            ("high watermark 10", "delete", {"high": 10}, {}),
            ("high watermark 11", "delete", {"high": 11}, {}),
        )
        if around in ("not compacted", "killed") or name in ("one later", "the last differs", "one earlier")
    },
    **{
        f"another epoch alone, entries {name}": (
            lambda x=x, y=y: pair(but(4, leader_epoch=4), but(4, leader_epoch=5), one=x, two=y)
        )
        for name, x, y in (
            ("of both later", {"epochs": [(0, 0), (1, 10), (4, 21)]}, {"epochs": [(0, 0), (1, 10), (5, 21)]}),
            ("of one later", {}, {"epochs": [(0, 0), (1, 10), (5, 21)]}),
            ("of the other later", {"epochs": [(0, 0), (1, 10), (4, 21)]}, {}),
            ("of both earlier", {"epochs": [(0, 0), (1, 10), (4, 19)]}, {"epochs": [(0, 0), (1, 10), (5, 19)]}),
            ("begin later", {"epochs": [(4, 21)]}, {"epochs": [(5, 21)]}),
            ("begin there", {"epochs": [(4, 20)]}, {"epochs": [(5, 20)]}),
            ("end before", {"epochs": [(0, 0), (1, 10)]}, {}),
            ("of none", {"epochs": None}, {"epochs": None}),
            ("of one", {"epochs": None}, {}),
        )
    },
    "epochs differ, compaction of one alone known": lambda: pair(
        whole(),
        whole(),
        None,
        one={"epochs": [(0, 0), (1, 10)], "cleaner": {"t-0": 0}},
        two={"epochs": [(0, 0), (1, 11)]},
    ),
    "another CRC, the cleaner remembers one": lambda: pair(whole(), but(2, crc=99), one={"cleaner": {"t-0": 0}}),
    "another CRC, the cleaner remembers the other": lambda: pair(whole(), but(2, crc=99), two={"cleaner": {"t-0": 0}}),
    "epochs differ, the cleaner remembers one": lambda: pair(
        whole(), whole(), one={"epochs": [(0, 0), (1, 10)], "cleaner": {"t-0": 0}}, two={"epochs": [(0, 0), (1, 11)]}
    ),
    "epochs differ, the cleaner remembers the other": lambda: pair(
        whole(), whole(), one={"epochs": [(0, 0), (1, 10)]}, two={"epochs": [(0, 0), (1, 11)], "cleaner": {"t-0": 0}}
    ),
    # ---- segments
    **{
        f"two segments, {name}, policy {p}": (lambda x=x, p=p: pair(whole(), [seg(0, *x[:2]), seg(10, *x[2:])], p))
        for name, x in {
            "the same": whole(),
            "another CRC": but(3, crc=99, content=50),
            "one missing": put(3),
            "one damaged": but(1, problem=3),
            "the first of the second damaged": but(2, problem=3),
        }.items()
        for p in ("delete", "compact")
    },
    "two segments of the one that lacks one": lambda: pair([seg(0, *whole()[:2]), seg(10, *put(3)[2:])], whole()),
    "three segments of the one that lacks one": lambda: pair(
        [seg(0, *whole()[:1]), seg(5, whole()[1]), seg(10), seg(15, whole()[4])], whole()
    ),
    **{
        f"at most {n} holes": (
            lambda n=n: pair(
                whole(),
                [
                    whole()[0],
                    whole()[1] | {"problem": 3},
                    whole()[2],
                    whole()[3] | {"problem": 3},
                    whole()[4] | {"crc": 99},
                ],
                limits={"storage.replicas:MOST_HOLES": n},
            )
        )
        for n in (0, 1, 2, 3)
    },
    "an empty chunk": lambda: pair(whole(), but(2, crc=99), chunk=0),
    "a damaged batch with records": lambda: pair(whole(), but(2, problem=10, crc=99, content=50), "compact"),
    "an old batch with records": lambda: pair(whole(), but(2, magic=1, crc=99, content=50), "compact"),
    # ---- where a difference begins to count, and where it ends
    **{
        f"single records, {n} {what}, {around}": (
            lambda n=n, of=of, more=more, c=c: pair(singles(-1), singles(n, **of), two=more, one=dict(more), chunk=c)
        )
        for n in (0, 2, 3, 5)
        for what, of in {"another CRC": {"crc": 99}, "damaged": {"problem": 3}}.items()
        for around, more, c in (
            ("in one chunk", {"high": 6}, 9),
            ("one by one", {"high": 6}, 1),
            ("high watermark 5", {"high": 5}, 1),
            ("log start 5", {"high": 6, "starts": {"t-0": 5}}, 1),
        )
    },
    **{
        f"single records, 2 damaged, {n} another CRC, chunks of {c}": (
            lambda n=n, c=c: pair(
                singles(-1),
                [x | ({"crc": 99} if i == n else {}) for i, x in enumerate(singles(2, problem=3))],
                one={"high": 6},
                two={"high": 6},
                chunk=c,
            )
        )
        for n in (1, 3, 5)
        for c in (1, 2, 3, 9)
    },
    **{
        f"single records, {first} and {second} damaged, 5 another CRC": (
            lambda x=first, y=second: pair(
                singles(-1),
                [
                    r | ({"problem": 3} if i in (x, y) else {}) | ({"crc": 99} if i == 5 else {})
                    for i, r in enumerate(singles(-1))
                ],
                one={"high": 6},
                two={"high": 6},
                chunk={"d1": 9, "d2": 2},
            )
        )
        for first, second in ((0, 1), (1, 2), (2, 3), (3, 4), (1, 3))
    },
    "a damaged end, and another CRC in the other": lambda: pair(
        singles(5, problem=3), singles(4, crc=99), one={"high": 6}, two={"high": 6}
    ),
    "single records, the one that lacks 3 has a segment at 4": lambda: pair(
        [seg(0, *singles(-1)[:3]), seg(4, *singles(-1)[4:])], singles(-1), one={"high": 6}, two={"high": 6}
    ),
    "single records, one old that the other lacks": lambda: pair(
        singles(3, magic=1), [x for i, x in enumerate(singles(-1)) if i != 3], one={"high": 6}, two={"high": 6}
    ),
    "single records, the other old that the one lacks": lambda: pair(
        [x for i, x in enumerate(singles(-1)) if i != 3], singles(3, magic=1), one={"high": 6}, two={"high": 6}
    ),
    **{
        f"compacted, another CRC in 1, {what} with other records in 2": (
            lambda of=of: pair(
                whole(),
                put(1, whole()[1] | {"crc": 99}, whole()[2] | {"content": 50, "crc": 98} | of, after=2),
                "compact",
            )
        )
        for what, of in {"damage": {"problem": 10}, "an old batch": {"magic": 1}, "a batch": {}}.items()
    },
    **{
        f"at most {n} holes, closed": (
            lambda n=n: pair(
                whole(),
                [
                    whole()[0],
                    whole()[1] | {"problem": 3},
                    whole()[2],
                    whole()[3] | {"problem": 3},
                    whole()[4] | {"crc": 99},
                ],
                limits={"storage.replicas:MOST_HOLES": n},
                chunk=9,
            )
        )
        for n in (0, 1, 2, 3)
    },
    # ---- which are replicas, where little is known
    **{
        f"old meta.properties, {name}": (
            lambda of=of: cases(
                *(node(n, x, **more) for n, (x, more) in enumerate(of, 1)),
                config={"t": TopicConfig(cleanup_policy="delete")},
            )
        )
        for name, of in {
            "no node of the second": [(whole(), {}), (but(2, crc=99), properties(None, CLUSTER))],
            "no node of the first": [(whole(), properties(None, CLUSTER)), (but(2, crc=99), {})],
            "no node of both": [(whole(), properties(None, CLUSTER)), (but(2, crc=99), properties(None, CLUSTER))],
            "no cluster, two nodes": [(whole(), properties(1, None)), (but(2, crc=99), properties(2, None))],
            "no cluster, one node twice": [
                (whole(), properties(1, None)),
                (but(2, crc=99), properties(1, None)),
                (but(3, crc=99), properties(2, None)),
            ],
            "no cluster, one node three times": [
                (whole(), properties(1, None)),
                (but(2, crc=99), properties(1, None)),
                (but(3, crc=99), properties(1, None)),
                (whole(), properties(2, None)),
            ],
            "no cluster, one node twice, and two of a cluster": [
                (whole(), properties(1, None)),
                (but(2, crc=99), properties(1, None)),
                (whole(), {}),
                (but(3, crc=99), {}),
            ],
            "a cluster's node twice, and two without a cluster": [
                (whole(), {"id": 1}),
                (whole(), {"id": 1}),
                (whole(), properties(1, None)),
                (but(2, crc=99), properties(2, None)),
            ],
            "a cluster's node twice": [(whole(), {"id": 1}), (whole(), {"id": 1}), (but(2, crc=99), {"id": 2})],
        }.items()
    },
    "two ids, one of a deleted copy": lambda: pair(
        whole(), whole(), one=partition_metadata(ID), two={"name": f"t-0.{AWAY}-delete", **partition_metadata(ID2)}
    ),
    **{
        f"two ids, and one that says none, {name}": (
            lambda highs=highs: cases(
                node(1, whole(), highs[0], **partition_metadata(ID)),
                node(2, whole(), highs[1]),
                node(3, but(1, crc=99), highs[2], **partition_metadata(ID2)),
                config={"t": TopicConfig(cleanup_policy="delete")},
            )
        )
        for name, highs in {"first": (24, 25, 23), "second": (25, 24, 23), "last": (25, 23, 24)}.items()
    },
    "three, the first is odd twice, and damage hides one": lambda: three(
        put(1, whole()[1] | {"crc": 99}, whole()[2], whole()[3] | {"crc": 98}, after=3), but(1, problem=3), whole()
    ),
    **{
        f"batch 2 of another epoch, {name}": (lambda x=x, one=one, two=two: pair(whole(), x, one=one, two=two))
        for x in (OTHERS["batch 2 of a higher epoch"],)
        for name, one, two in (
            ("the first killed", {"clean": False}, {}),
            ("the second killed", {}, {"clean": False}),
            ("both killed", {"clean": False}, {"clean": False}),
        )
    },
    "damage up to the end, in two segments": lambda: pair(
        [seg(0, *singles(3, problem=3)[:4], b(4, problem=3)), seg(5, b(5, problem=3))],
        singles(-1),
        one={"high": 6},
        two={"high": 6},
    ),
}
