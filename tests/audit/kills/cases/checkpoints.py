"""Of the offset checkpoints of a directory, and of partition.metadata."""

from __future__ import annotations

from typing import Any

from kafkaspec.mutants.audit import one_record
from tests.audit.kills.around import AWAY
from tests.audit.kills.write import Case, b, cases, folder, one, part, seg

ID = "q1NlNcK3TLyRkSHWPZ3hLQ"
OTHER = "B1NlNcK3TLyRkSHWPZ3hLQ"
KINDS = ("recovery", "starts", "high", "cleaner")


def ends(at: int = 12, **of: Any) -> Case:
    """A log from 7 to an offset, by a segment at 7 and one at 10."""
    return one(seg(7, b(7, 9, epoch=-1)), seg(10, b(10, at - 1, epoch=-1)), **of)


def told(kind: str, offset: int, clean: bool, **of: Any) -> Case:
    return ends(clean=clean, **{kind: {"t-0": offset}}, **of)


def file(kind: str, text: str, clean: bool = True, **of: Any) -> Case:
    """A checkpoint with this text."""
    return ends(clean=clean, **{kind: text.encode()}, **of)


def metadata(text: str | None, id: str | None, rows: bool = True, **of: Any) -> Case:
    """A partition with this partition.metadata, of a topic of that id."""
    files = {} if text is None else {"partition.metadata": text.encode()}
    return one(seg(7, *([b(7)] if rows else [])), files=files, id=id, **of)


UNREADABLE = {
    "no number of entries": "0\nx\nt 0 8\n",
    "version 1": "1\n1\nt 0 8\n",
    "two fields": "0\n1\nt 0\n",
    "four fields": "0\n1\nt 0 8 9\n",
    "a bad offset": "0\n1\nt 0 x\n",
    "a bad offset in line 4": "0\n2\nt 0 8\nu 0 x\n",
    "a bad partition": "0\n1\nt x 8\n",
    "two entries of one": "0\n1\nt 0 8\nu 0 8\n",
    "a bad number, with another line's end": "0\r\n2\r\nu 0 8\r\nt 0 x\r\n",
    "a bad number, and old ends of lines": "0\r2\ru 0 8\rt 0 x\r",
    "no UTF-8": "0\n1\nt 0 8\n",
    "a version of three words": "0 1 2\n1\nt 0 8\n",
    "a number of three words": "0\n1 2 3\nt 0 8\n",
}

CASES = {
    "a partition given alone": lambda: one(seg(7, b(7)), alone=True),
    "a partition given alone, of a topic with an id": lambda: one(seg(7, b(7)), alone=True, id=ID),
    "a partition given alone, with its metadata": lambda: one(
        seg(7, b(7)), alone=True, files={"partition.metadata": b"x"}
    ),
    "no checkpoints": lambda: ends(),
    **{
        f"{kind} {n}, {'clean' if c else 'killed'}": (lambda kind=kind, n=n, c=c: told(kind, n, c))
        for kind in KINDS
        for n in (0, 6, 7, 8, 11, 12, 13, 15)
        for c in (True, False)
    },
    **{
        f"{kind} {n}, {'clean' if c else 'killed'}, log start 9": (
            lambda kind=kind, n=n, c=c: told(kind, n, c, starts={"t-0": 9})
        )
        for kind in ("high", "cleaner", "recovery")
        for n in (8, 9, 10, 13)
        for c in (True, False)
    },
    **{
        f"{kind} {n}, {'clean' if c else 'killed'}, the end damaged": (
            lambda kind=kind, n=n, c=c: one(seg(7, b(7, 9), b(10, problem=3)), clean=c, **{kind: {"t-0": n}})
        )
        for kind in KINDS
        for n in (9, 10, 11)
        for c in (True, False)
    },
    **{
        f"{kind} {n} of an empty log": (lambda kind=kind, n=n: one(seg(7), **{kind: {"t-0": n}}))
        for kind in KINDS
        for n in (6, 7, 8)
    },
    **{f"{kind} of no segment": (lambda kind=kind: cases(folder(part(), **{kind: {"t-0": 1}}))) for kind in KINDS},
    **{
        f"{kind}, lost by the recovery point, {'clean' if c else 'killed'}": (
            lambda kind=kind, c=c: ends(clean=c, recovery={"t-0": 13}, **{kind: {"t-0": 13}})
        )
        for kind in ("starts", "high", "cleaner")
        for c in (True, False)
    },
    "a high watermark below the start of a lost log": lambda: ends(
        recovery={"t-0": 13}, starts={"t-0": 9}, high={"t-0": 8}
    ),
    "a high watermark below a start beyond the end": lambda: ends(starts={"t-0": 14}, high={"t-0": 8}),
    "a high watermark below a start one beyond the end": lambda: ends(starts={"t-0": 13}, high={"t-0": 8}),
    **{
        f"{kind} of a log that is not there any more": (
            lambda kind=kind: one(
                seg(7, one_record(7, leader_epoch=0)), gone=[f"d/t-0/{7:020}.log"], **{kind: {"t-0": 8}}
            )
        )
        for kind in ("recovery", "high")
    },
    "recovery of a partition that is not there any more": lambda: one(
        seg(7, one_record(7, leader_epoch=0)), gone=["d/t-0"], clean=False, recovery={"t-0": 8}
    ),
    "a high watermark below a start at the end": lambda: ends(starts={"t-0": 12}, high={"t-0": 8}),
    **{
        f"{kind}: {name}": (lambda kind=kind, text=text: file(kind, text))
        for kind in KINDS
        for name, text in UNREADABLE.items()
        if kind in ("recovery", "starts") or name in ("version 1", "a bad offset")
    },
    "not UTF-8": lambda: ends(recovery=b"0\n1\n\xff 0 x\n"),
    "not UTF-8, and later a bad number": lambda: ends(recovery=b"0\n1\nt 0 x\xff\n"),
    **{f"{kind}: a partition twice": (lambda kind=kind: file(kind, "0\n3\nt 0 12\nu 0 3\nt 0 11\n")) for kind in KINDS},
    "a partition three times": lambda: file("high", "0\n3\nt 0 12\nt 0 11\nt 0 10\n"),
    **{
        f"{kind} of a partition that is not there, {n}, {'clean' if c else 'killed'}": (
            lambda kind=kind, n=n, c=c: ends(clean=c, **{kind: {"u-0": n}})
        )
        for kind in KINDS
        for n in (-1, 0, 1, 2)
        for c in (True, False)
        if kind == "recovery" or n == 1
    },
    **{
        f"{kind} of a partition on its way, {x}": (
            lambda kind=kind, x=x: cases(folder(part(seg(7, b(7)), name=f"u-0.{AWAY}-{x}"), **{kind: {"u-0": 8}}))
        )
        for kind in ("recovery", "high")
        for x in ("delete", "future", "stray")
    },
    **{
        f"{kind} without an entry, {name}, {'clean' if c else 'killed'}": (
            lambda kind=kind, name=name, c=c: one(seg(7, b(7)), name=name, clean=c, **{kind: {}})
        )
        for kind in ("recovery", "high")
        for name in ("t-0", "__cluster_metadata-0", f"t-0.{AWAY}-future", f"t-0.{AWAY}-delete")
        for c in (True, False)
    },
    **{
        f"a file {name}": (lambda name=name: cases(folder(part(seg(7, b(7))), files={name: b""})))
        for name in ("meta.properties.tmp", "recovery-point-offset-checkpoint.tmp", "x.tmp", "x.tmp2", ".tmp")
    },
    # ---- partition.metadata
    **{
        f"{what}, {known}, {'batches' if rows else 'no batch'}": (
            lambda text=text, id=id, rows=rows: metadata(text, id, rows)
        )
        for what, text in {
            "no partition.metadata": None,
            "one that is right": f"version: 0\ntopic_id: {ID}",
            "one of another topic": f"version: 0\ntopic_id: {OTHER}",
            "one that cannot be read": "version: x\ntopic_id: y",
            "one without an id": "version: 0\n",
        }.items()
        for known, id in {"the topic known": ID, "the topic not known": None}.items()
        for rows in (True, False)
    },
    "the metadata log without partition.metadata": lambda: metadata(None, ID, name="__cluster_metadata-0"),
    **{
        f"no partition.metadata, {x}": (lambda x=x: metadata(None, ID, name=f"t-0.{AWAY}-{x}"))
        for x in ("delete", "future", "stray")
    },
    **{
        f"a directory in the place of partition.metadata{', alone' * alone}": lambda alone=alone: metadata(
            None, ID, folders=("partition.metadata",), alone=alone
        )
        for alone in (False, True)
    },
    "no partition.metadata, a damaged batch": lambda: one(seg(7, b(7, problem=3)), id=ID),
}
