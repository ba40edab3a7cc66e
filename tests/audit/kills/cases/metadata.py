"""Of what the metadata log says of topics."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

from kafkaspec.spec.common.record_format import CONTROL, LogRecord, built, encode
from tests.audit.kills.around import AWAY
from tests.audit.kills.write import CLUSTER, Case, Part, Seg, b, cases, folder, meta, part, seg
from tests.storage.segments import message

TOPIC, BROKER = 2, 4
CLEANUP, INTERVAL, RETENTION, SEGMENT, STAMP = (
    "cleanup.policy", "index.interval.bytes", "delete.retention.ms", "segment.bytes", "message.timestamp.type",
)  # fmt: skip


def varint(n: int) -> bytes:
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def string(text: str | None) -> bytes:
    return varint(0) if text is None else varint(len(text.encode()) + 1) + text.encode()


def record(key: int, *fields: bytes, frame: int = 1) -> bytes:
    return varint(frame) + varint(key) + varint(0) + b"".join(fields) + varint(0)


def topic(name: str | None, id: int, **of: int) -> bytes:
    return record(2, string(name), bytes([id]) * 16, **of)


def config(name: str, value: str | None, kind: int = TOPIC, resource: str | None = "t", **of: int) -> bytes:
    return record(4, bytes([kind]), string(resource), string(name), string(value), **of)


def removed(id: int) -> bytes:
    return record(9, bytes([id]) * 16)


def batch(base: int, *values: bytes | None, **of: int) -> bytes:
    rows = [LogRecord(base + n, 1000, None, v) for n, v in enumerate(values)]
    return encode(built(base, rows, **{"leader_epoch": 0, **of}))


def batches(*values: bytes | None, base: int = 0) -> list[bytes]:
    """A batch for each record."""
    return [batch(base + n, v) for n, v in enumerate(values)]


def metadata(*segs: Seg, name: str = "__cluster_metadata-0", **files: bytes) -> Part:
    return part(*segs, name=name, files={k.replace("_", "."): v for k, v in files.items()})


def log(*values: bytes | None, **of: Any) -> Case:
    """The records of a metadata log, beside logs of the topics t and u."""
    return beside(metadata(seg(0, *batches(*values))), **of)


def beside(*metadata: Part, node: int | None = 1, **of: Any) -> Case:
    logs = part(seg(7, b(7))), part(seg(7, b(7)), name="u-0")
    return cases(folder(*logs, *metadata, properties=meta(node, CLUSTER, None) if node is not None else None), **of)


def snapshot(offset: int, *values: bytes, segs: Sequence[Seg]) -> Case:
    """A snapshot that ends at an offset, and the log."""
    files = {f"{offset:020}-{3:010}.checkpoint": b"".join(batches(*values))}
    return beside(part(*segs, name="__cluster_metadata-0", files=files))


def copies(*of: Sequence[Seg], clusters: Sequence[str] = (), names: Sequence[str] = ()) -> Case:
    """Directories, each with a metadata log and a log of t."""
    return cases(
        *(
            folder(
                part(seg(7, b(7))),
                part(*segs, name=names[n] if names else "__cluster_metadata-0"),
                name=f"d{n}",
                properties=meta(n, clusters[n] if clusters else CLUSTER, None),
            )
            for n, segs in enumerate(of)
        )
    )


def bad(data: bytes) -> bytes:
    return data[:17] + bytes([data[17] ^ 1]) + data[18:]


T = topic("t", 7)
DELETE = config(CLEANUP, "delete")
ID7 = base64.urlsafe_b64encode(bytes([7]) * 16).decode()

CASES: dict[str, Callable[[], Case]] = {
    "nothing": lambda: log(),
    "a topic": lambda: log(T),
    "a topic, and copies on their way": lambda: cases(
        folder(
            *(
                part(seg(7, b(7)), name=n)
                for n in ("t-0", *(f"t-{1 + i}.{AWAY}-{x}" for i, x in enumerate(("future", "delete", "stray"))))
            ),
            metadata(seg(0, *batches(T))),
        )
    ),
    "two topics": lambda: log(T, topic("u", 8)),
    "a topic without a name": lambda: log(topic(None, 7), T),
    "a topic that was removed": lambda: log(
        T, DELETE, config(INTERVAL, "9"), config(CLEANUP, "compact", resource="u"), removed(7)
    ),
    "a topic that was removed and made again": lambda: log(T, DELETE, removed(7), topic("t", 9)),
    "a topic that changed, was removed and made again": lambda: log(
        T, DELETE, config(CLEANUP, "compact"), removed(7), topic("t", 9), config(CLEANUP, "delete")
    ),
    "a broker of the topic's name": lambda: log(
        T, config("log.cleanup.policy", "compact", BROKER, "t"), removed(7), node=None
    ),
    "another topic was removed": lambda: log(T, DELETE, removed(9)),
    **{
        f"{name} is {value}": (lambda name=name, value=value: log(config(name, value)))
        for name, value in (
            (CLEANUP, "delete"),
            (CLEANUP, "compact"),
            (CLEANUP, None),
            (CLEANUP, ""),
            (INTERVAL, "4096"),
            (INTERVAL, " 7 "),
            (INTERVAL, "x"),
            (INTERVAL, ""),
            (INTERVAL, "0"),
            (INTERVAL, "-1"),
            (RETENTION, "5"),
            (SEGMENT, "1000"),
            ("internal.segment.bytes", "100"),
            (STAMP, "LogAppendTime"),
            ("retention.ms", "5"),
        )
    },
    "both sizes of a segment": lambda: log(config(SEGMENT, "1000"), config("internal.segment.bytes", "100")),
    "both sizes of a segment, one 0": lambda: log(config(SEGMENT, "1000"), config("internal.segment.bytes", "0")),
    **{
        f"{n} is said by {who}": (
            lambda name=name, kind=kind, resource=resource: log(config(name, "compact", kind, resource))
        )
        for n, name in (("a topic's name", CLEANUP), ("a broker's name", "log.cleanup.policy"))
        for who, kind, resource in (
            ("the topic", TOPIC, "t"),
            ("another topic", TOPIC, "u"),
            ("the broker", BROKER, "1"),
            ("another broker", BROKER, "2"),
            ("every broker", BROKER, ""),
            ("nobody", BROKER, None),
            ("a client", 16, "t"),
        )
    },
    "the broker is not known": lambda: log(config("log.cleanup.policy", "compact", BROKER, ""), node=None),
    "topic, broker, every broker": lambda: log(
        config(CLEANUP, "a"),
        config("log.cleanup.policy", "b", BROKER, "1"),
        config("log.cleanup.policy", "c", BROKER, ""),
    ),
    "broker, every broker": lambda: log(
        config("log.cleanup.policy", "b", BROKER, "1"), config("log.cleanup.policy", "c", BROKER, "")
    ),
    "said twice": lambda: log(DELETE, DELETE),
    "changed": lambda: log(DELETE, config(CLEANUP, "compact")),
    "changed and back": lambda: log(DELETE, config(CLEANUP, "compact"), DELETE),
    "taken back": lambda: log(DELETE, config(CLEANUP, None)),
    "said of nothing first": lambda: log(config(CLEANUP, None), DELETE),
    "every broker's changed": lambda: log(
        DELETE, config("log.cleanup.policy", "b", BROKER, ""), config("log.cleanup.policy", "c", BROKER, "")
    ),
    "another broker's changed": lambda: log(
        DELETE, config("log.cleanup.policy", "b", BROKER, "2"), config("log.cleanup.policy", "c", BROKER, "2")
    ),
    # ---- records that are not what they say
    **{f"frame version {n}": (lambda n=n: log(T, config(CLEANUP, "delete", frame=n))) for n in (0, 1, 2)},
    "another record": lambda: log(
        record(3, string("t"), bytes([7]) * 16),
        record(8, bytes([2]), string("t"), string(CLEANUP), string("x")),
        DELETE,
    ),
    "an empty record": lambda: log(b"", DELETE),
    "no value": lambda: log(None, DELETE),
    "a record that ends too early": lambda: log(config(CLEANUP, "delete")[:-4], T),
    "a string that ends with its record": lambda: log(config(CLEANUP, "delete")[:-1], T),
    "a string that does not end": lambda: log(config(CLEANUP, "delete")[:-2], T),
    "a long name": lambda: log(topic("t" * 200, 7), DELETE),
    "a name of 126": lambda: log(config(CLEANUP, "d" * 126)),
    "a name of 127": lambda: log(config(CLEANUP, "d" * 127)),
    "a name of 128": lambda: log(config(CLEANUP, "d" * 128)),
    **{
        f"a varint of {n} bytes": (
            lambda n=n: log(b"\x81" + b"\x80" * (n - 2) + b"\0" + DELETE[1:] if n > 1 else DELETE)
        )
        for n in (1, 2, 4, 5, 6, 7)
    },
    # ---- batches
    "a batch of several": lambda: beside(metadata(seg(0, batch(0, T, DELETE, config(INTERVAL, "9"))))),
    "a control batch": lambda: beside(
        metadata(seg(0, batch(0, T), batch(1, DELETE, attributes=CONTROL, producer_id=1, producer_epoch=0)))
    ),
    "a damaged batch": lambda: beside(
        metadata(seg(0, batch(0, T), bad(batch(1, DELETE)), batch(2, config(INTERVAL, "9"))))
    ),
    "an old batch": lambda: beside(
        metadata(seg(0, batch(0, T), batch(1, DELETE)[:16] + b"\1" + batch(1, DELETE)[17:]))
    ),
    "a batch behind a control batch": lambda: beside(
        metadata(seg(0, batch(0, DELETE, attributes=CONTROL, producer_id=1, producer_epoch=0), batch(1, T)))
    ),
    "a batch behind an old message": lambda: beside(metadata(seg(0, message(0, 1, b"k", DELETE), batch(1, T)))),
    "two segments": lambda: beside(metadata(seg(0, *batches(T)), seg(1, *batches(DELETE, base=1)))),
    "no metadata log": lambda: beside(),
    "an empty metadata log": lambda: beside(metadata(seg(0))),
    "a metadata log without a segment": lambda: beside(part(name="__cluster_metadata-0")),
    "a log of another name": lambda: beside(metadata(seg(0, *batches(T, DELETE)), name="x-0")),
    "a deleted metadata log": lambda: beside(
        metadata(seg(0, *batches(T, DELETE)), name=f"__cluster_metadata-0.{AWAY}-delete")
    ),
    "a segment of a metadata log alone": lambda: cases(
        folder(part(seg(7, b(7))), metadata(seg(0, *batches(T, DELETE))), whole=False),
        only=[f"d/__cluster_metadata-0/{0:020}.log", "d/t-0"],
    ),
    "a metadata log alone": lambda: cases(
        folder(part(seg(7, b(7))), metadata(seg(0, *batches(T, DELETE))), whole=False)
    ),
    "a metadata log that is gone": lambda: beside(
        metadata(seg(0, *batches(T, DELETE))), gone=[f"d/__cluster_metadata-0/{0:020}.log"]
    ),
    # ---- copies
    "two copies, the second longer": lambda: copies([seg(0, *batches(T))], [seg(0, *batches(T, DELETE))]),
    "two copies, the first longer": lambda: copies([seg(0, *batches(T, DELETE))], [seg(0, *batches(T))]),
    "two copies, the second with a later segment": lambda: copies(
        [seg(0, *batches(T, DELETE, DELETE, DELETE))], [seg(1, *batches(config(INTERVAL, "9"), base=1))]
    ),
    "two copies, one without a segment": lambda: copies([], [seg(0)]),
    "two copies, none with a segment": lambda: copies([seg(0, *batches(T))], []),
    "two copies of two clusters": lambda: copies(
        [seg(0, *batches(T))], [seg(0, *batches(T, DELETE))], clusters=(CLUSTER, "OkU3OEVBNTcwNTJENDM2Qg")
    ),
    "two copies, one on its way out": lambda: copies(
        [seg(0, *batches(T))],
        [seg(0, *batches(T, DELETE))],
        names=("__cluster_metadata-0", f"__cluster_metadata-0.{AWAY}-delete"),
    ),
    # ---- snapshots
    **{
        f"a snapshot to {n}": (
            lambda n=n: snapshot(
                n,
                T,
                config(SEGMENT, "5"),
                segs=[
                    seg(0, *batches(config(INTERVAL, "1"), config(RETENTION, "2"))),
                    seg(2, *batches(DELETE, config(STAMP, "x"), base=2)),
                ],
            )
        )
        for n in (0, 1, 2, 3, 4, 5)
    },
    **{
        f"a snapshot to {n}, and a batch of several": (
            lambda n=n: snapshot(n, T, segs=[seg(0, batch(0, DELETE, config(INTERVAL, "1"), config(STAMP, "x")))])
        )
        for n in (0, 1, 2, 3)
    },
    "two snapshots": lambda: beside(
        part(
            seg(2, *batches(DELETE, base=2)),
            name="__cluster_metadata-0",
            files={
                f"{1:020}-{9:010}.checkpoint": b"".join(batches(config(INTERVAL, "1"))),
                f"{2:020}-{3:010}.checkpoint": b"".join(batches(config(RETENTION, "2"))),
                f"{2:020}-{3:010}.checkpoint.part": b"".join(batches(config(STAMP, "2"))),
                "x.checkpoint": b"".join(batches(config(SEGMENT, "2"))),
            },
        )
    ),
}
