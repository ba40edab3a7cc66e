"""meta.properties: the arguments that engines try."""

from __future__ import annotations

from kafkaspec.spec.management.meta_properties import machine

_D, _E = "Wz2UP7E_QO2kiOpi3I8jIQ", "Xz2UP7E_QO2kiOpi3I8jIQ"


_V1 = "version=1\ncluster.id=c\nnode.id=1\n"


TEXTS = [
    "",
    f"#x\n{_V1}directory.id={_D}\n",
    f"{_V1}directory.id={_E}\n",
    f"{_V1}directory.id={_D}==\n",
    f"{_V1}directory.id={_D}=\n",
    f"{_V1}directory.id=+/{_D[2:]}\n",
    f"{_V1}directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n",
    f"{_V1}directory.id=AAAAAAAAAAAAAAAAAAAAZA\n",
    f"{_V1}directory.id=short\n",
    f"{_V1}node.id=2\n",
    _V1.replace("=c", "=d"),
    "version=0\nbroker.id=1\n",
    "version=0\nbroker.id=2\ncluster.id=c\nnode.id=3\n",
    "version=0\ncluster.id=c\n",
    "broker.id=1\n",
    "version=0\nbroker.id=x\n",
    "version=1\nnode.id=1\n",
    "version=1\ncluster.id=c\nbroker.id=1\n",
    "version=2\ncluster.id=c\nnode.id=1\n",
    "version=x\n",
    "version = 1\ncluster.id : c\nnode.id  3\n",
    "! note\n  version=1\n\tcluster.id=a\\\n   b\nnode.id=-1\n",
    "version=1\ncluster.id=\\u0063\\n\\t\nnode.id=1\n",
    "version=1\ncluster.id=c \nnode.id= 1 \n",
    "version=1\rcluster.id=c\r\nnode.id=+1",
    "a\\=b=c\\:d\nkey\nempty=\n=x\n\\ k=1\n",
    "x=\\u12\n",
    "x=a\\",
    "x=1\\\n#y\n=2\n",
    "x=\xe9\\\\\n",
    f"{_V1}version = 1 \nnode.id=1\n",
    f"{_V1}directory.id={_D[:-1]}R\n",
    "\\\n#y=1\n\\\n\nx=1\n\\\n",
    "\\\n\f",
    "x=2\n\\\r\n",
    "x=1\\\n\f",
    "x=a\\\nb\\\n c\ny=1\n",
    "x=\\u0163\\u00e9\n",
    "version=+1\ncluster.id=c\nnode.id=2147483647\n",
    "version=01\ncluster.id=c\nnode.id=2147483648\n",
    "version=1\ncluster.id=c\nnode.id=0\n",
    f"{_V1}directory.id=AAAAAAAAAACAAAAAAAAAAA\n",
]


_FILES: list[str | None] = [None, *TEXTS[:13], TEXTS[29], *TEXTS[-2:]]


_DIRECTORIES: list[dict[str, str | None]] = [
    *({"d0": a, "d1": b} for a in _FILES for b in _FILES),
    *({"d0": a} for a in _FILES),
    *({"d0": a, "d1": _FILES[(2 * n + 1) % len(_FILES)], "d2": b} for n, a in enumerate(_FILES) for b in _FILES[::2]),
]


machine.candidates |= {
    "file": lambda state: TEXTS,
    "version": lambda state: [0, 1],
    "cluster_id": lambda state: [None, "c", "a b=c:d", " x", "#y\t", "c" * 80],
    "node_id": lambda state: [None, 0, 5],
    "directory_id": lambda state: [None, _D],
    "files": lambda state: _DIRECTORIES,
    "expected_cluster_id": lambda state: [None, "c"],
    "expected_node_id": lambda state: [None, 1, 0],
}
