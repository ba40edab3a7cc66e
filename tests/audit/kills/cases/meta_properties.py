"""Of meta.properties: one file, and those of several directories."""

from __future__ import annotations

from tests.audit.kills.write import CLUSTER, IDS, Case, b, cases, folder, meta, one, part, seg

OTHER = "OkU3OEVBNTcwNTJENDM2Qg"
PARTS = part(seg(7, b(7)))
RESERVED = "A" * 21 + "A"
"""Of the id of 16 zero bytes."""


def said(text: str) -> Case:
    """A directory with this file."""
    return one(seg(7, b(7)), properties=text.encode())


def several(*of: bytes | None) -> Case:
    """Directories with these files."""
    return cases(*(folder(PARTS, name=f"d{n}", properties=x, clean=False) for n, x in enumerate(of)))


A, B, C = IDS[:3]

CASES = {
    "a partition given alone": lambda: one(seg(7, b(7)), alone=True),
    "none, of a release that has none": lambda: one(seg(7, b(7)), properties=None),
    "none, of a broker": lambda: one(seg(7, b(7)), properties=None, starts={}),
    "one that is right": lambda: one(seg(7, b(7)), starts={}),
    "one that cannot be parsed": lambda: said("version=1\ncluster.id=x\nnode.id=q\n"),
    "a malformed escape": lambda: said("version=1\ncluster.id=\\u12\n"),
    "version 2": lambda: said("version=2\n"),
    "an empty one": lambda: said(""),
    "a comment alone": lambda: said("# nothing\n"),
    "no node": lambda: said(f"cluster.id={CLUSTER}\nversion=0\n"),
    "a directory without a cluster": lambda: said(f"version=0\nbroker.id=1\ndirectory.id={A}\n"),
    "a directory without a cluster or a node": lambda: said(f"version=0\ndirectory.id={A}\n"),
    "no directory": lambda: said(f"version=1\ncluster.id={CLUSTER}\nnode.id=1\n"),
    "a reserved directory": lambda: said(f"version=1\ncluster.id={CLUSTER}\nnode.id=1\ndirectory.id={RESERVED}\n"),
    "two of one cluster": lambda: several(meta(1, CLUSTER, A), meta(2, CLUSTER, B)),
    "two of two clusters": lambda: several(meta(1, CLUSTER, A), meta(2, OTHER, B)),
    "two of two clusters and one of the first": lambda: several(
        meta(1, CLUSTER, A), meta(2, OTHER, B), meta(3, CLUSTER, C)
    ),
    "the first without a cluster": lambda: several(meta(1, None, None), meta(2, OTHER, B), meta(3, CLUSTER, C)),
    "one of version 0 without a cluster": lambda: several(
        b"version=0\nbroker.id=1\n", meta(2, OTHER, B), b"version=0\nbroker.id=3\n", meta(3, CLUSTER, C)
    ),
    "none, one that cannot be parsed, and two that differ": lambda: several(
        None, b"version=1\nnode.id=q\n", meta(2, OTHER, B), meta(3, CLUSTER, C)
    ),
    "one directory twice": lambda: several(meta(1, CLUSTER, A), meta(2, CLUSTER, B), meta(1, CLUSTER, A)),
    "without directories": lambda: several(meta(1, CLUSTER, None), meta(2, CLUSTER, None)),
    "one that is gone": lambda: cases(
        folder(PARTS, name="d0", properties=meta(1, CLUSTER, A), clean=False),
        folder(PARTS, name="d1", properties=meta(2, CLUSTER, B), clean=False),
        gone=["d0/meta.properties"],
    ),
}
