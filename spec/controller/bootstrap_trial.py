"""Bootstrap and format: the arguments that engines try."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaspec.spec.common.metadata_log import ELR
from kafkaspec.spec.controller.bootstrap import MADE, NAMES, Properties, Storage, machine
from kafkaspec.spec.controller.bootstrap_parts.requests import RELEASES
from kafkaspec.spec.controller.features import GROUP, KRAFT, METADATA, SHARE, TRANSACTION

IDS = ("JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A", "07R5amHmR32VDA6jHkGbTA", "AAAAAAAAAAAAAAAAAAAAAQ")
"""of directories; the last one is reserved"""
CLUSTERS = ("ERxj9gH3QdO4vS7p0LmNQw", "another cluster", "ERxj9gH3QdO4vS7p0LmNQw")
DIGITS = ("\u0661\u0660", "\uff11", "1\u06f0", "+1", "0" * 30 + "1", "\u07c5")
"""numbers for Java, in digits of any script,"""
NO_DIGITS = (
    "\U0001d7d9",
    "1_0",
    "1 ",
    "+",
    "+-1",
    "\u00b2",
    "\u2167",
    "\u22121",
    "\u0661" * 11,
    "2147483648",
    "-1",
    "1\u00a0",
)
"""and what is none, or none that a controller or a port may have"""
A, B, C, RESERVED = (f"{n}@localhost:909{n}:{id}" for n, id in enumerate(IDS))
VOTERS = (
    A,
    f"{A},{B}",
    f" {A},{B},{C}",
    f"{B},{C}",
    f"{A},",
    f",{A},,{B}",
    f"{B},{A}",
    RESERVED,
    f"1@[::1]:0:{IDS[0]}",
    f"0@127.0.0.1:65535:{IDS[0]}==,2@localhost:1:{IDS[0]}",
    *(f"{n}@localhost:{n}:{IDS[0]}" for n in DIGITS),
)
NO_VOTERS = (
    "",
    ",",
    " ",
    f"{A},{A}",
    f"{A},0@localhost:1:{IDS[1]}",
    "0",
    "@localhost:1:x",
    "x@localhost:1:x",
    "-1@localhost:1:x",
    "2147483648@localhost:1:x",
    "1@",
    "1@localhost",
    "1@[::1",
    "1@[::1]",
    "1@[::1]9092:x",
    "1@localhost:9092",
    f"1@localhost:x:{IDS[0]}",
    f"1@localhost:65536:{IDS[0]}",
    f"1@localhost:-1:{IDS[0]}",
    "1@localhost:9092:x",
    f"1@localhost:9092:{IDS[0]}a",
    "1@localhost:9092:",
    f"1@localhost::{IDS[0]}",
    f"+1@localhost:9:{IDS[0]}x",
    *(f"{n}@localhost:9:{IDS[0]}" for n in NO_DIGITS),
    *(f"1@localhost:{n}:{IDS[0]}" for n in NO_DIGITS),
)
SALT = "salt=MWx2NHBkbnc0ZndxN25vdGN4bTB5Y2k4NA=="
SCRAM = (
    f"SCRAM-SHA-256=[name=alice,password=secret,{SALT}]",
    'SCRAM-SHA-512=[name=bob,iterations=8192,salt="N3E=",saltedpassword="YCE="]',
    "SCRAM-SHA-256=[name=carol,password=secret]",
    f" SCRAM-SHA-256=[password=p=q,name=,{SALT},iterations=16384] ",
    'SCRAM-SHA-512=[name=d,name=e,password="a b",salt=,]',
    f"SCRAM-SHA-256=[name=f,saltedpassword=YCE,{SALT}]",
    f'SCRAM-SHA-256=[name=",password=b,{SALT}]',
)
NO_SCRAM = (
    "SCRAM-SHA-256",
    "SCRAM-SHA-1=[name=a,password=b]",
    "SCRAM-SHA-256=name=a",
    "SCRAM-SHA-256=[name=a",
    "SCRAM-SHA-256=[]",
    "SCRAM-SHA-256=[password=b]",
    "SCRAM-SHA-256=[name=a,salt=?,password=b]",
    "SCRAM-SHA-256=[name=a,iterations=x,password=b]",
    "SCRAM-SHA-256=[name=a]",
    "SCRAM-SHA-256=[name=a,saltedpassword=YCE=]",
    "SCRAM-SHA-256=[name=a,salt=YCE=,saltedpassword=Y]",
    "SCRAM-SHA-256=[name=a,password=b,saltedpassword=YCE=]",
    "SCRAM-SHA-256=[name=a,password=b,x=y,w=z]",
    "SCRAM-SHA-256=[name=a,password=b,iterations=4095]",
    "SCRAM-SHA-512=[name=a,password=b,iterations=16385]",
    "SCRAM-SHA-256=[name=a,password=b,iterations=4294967296]",
    f"SCRAM-SHA-256=[name=a,password=,{SALT}]",
    "SCRAM-SHA-512=[name=a,salt=YCE=,saltedpassword=]",
    "SCRAM-SHA-256=[name=a,password=b,salt=YCE]",
    "=[name=a]",
    "SCRAM-SHA-256=[name=a,password=b,salt=YC=E]",
    "SCRAM-SHA-256=[name=a,password=b,salt=YCE==]",
    "SCRAM-SHA-256=[name]",
)
VERSIONS = (
    *RELEASES[::4],
    RELEASES[-1],
    RELEASES[3],
    "3.9",
    "4.0.1",
    "3.5-IV1.2",
    "4.3",
    "4.4",
    "4.4.0",
    "3.2",
    "2.8",
    "",
    "4",
    "x.y",
    "3.5.",
    "4.3..",
)
LEVELS: Sequence[Sequence[str]] = (
    [],
    [f"{KRAFT}=1"],
    [f"{KRAFT}=0"],
    [f"{KRAFT}=2"],
    [f"{KRAFT}=-1"],
    [f"{METADATA}=23"],
    [f"{METADATA}=\u0662\u0663"],
    [f"{METADATA} =\x00+23 "],
    [f"{METADATA}=\u00a023"],
    [f"{METADATA}=\U0001d7d9"],
    [f"{METADATA}=22"],
    [f"{METADATA}=31"],
    [f"{METADATA}=31"],
    [f"{METADATA}=31"],
    [f"{METADATA}=6"],
    [f"{METADATA}=10"],
    [f"{ELR}=1"],
    [f"{ELR}=1", f"{METADATA}=22"],
    [f"{ELR}=1", f"{METADATA}=23"],
    [f"{GROUP}=2"],
    [f" {GROUP} = 0 ", f"{SHARE}=0"],
    [f"{GROUP}=0", f"{GROUP}=1"],
    [f"{TRANSACTION}=1"],
    [f"{TRANSACTION}=+2", f"{ELR}=0"],
    [f"{GROUP}"],
    [f"{GROUP}="],
    [f"{GROUP}=40000"],
    ["none=1"],
    ["none=0", f"{KRAFT}=7"],
    [f"{SHARE}=-1"],
    [f"{GROUP}=1=1"],
    ["=1"],
)


def _clusters(state: Storage) -> Sequence[str]:
    """Those that there are, most often."""
    known = [p.cluster_id for p in _properties(state) if p.cluster_id is not None]
    return [*known * 9, *CLUSTERS]


def _properties(state: Storage) -> Sequence[Properties]:
    found = [state.of(name).properties for name in NAMES]
    return [p for p in found if isinstance(p, Properties)]


def _nodes(state: Storage) -> Sequence[int]:
    known = [p.node_id for p in _properties(state) if p.node_id is not None]
    return [*known * 15, 0, 1, 2, 0, 2**31 - 1]


def _directory_ids(state: Storage) -> Sequence[str | None]:
    known = [p.directory_id for p in _properties(state) if p.directory_id is not None]
    return [*IDS, *(id for id in known if not id.startswith(MADE)), *IDS[:3], None]


USUALLY: list[list[str]] = [[]] * 50
"""what is most often asked for, beside what is seldom"""

machine.candidates |= {
    "roles": lambda state: ("combined", "controller", "broker", "controller"),
    "node_id": _nodes,
    "writeProperties:node_id": lambda state: (0, 0, 1, None),
    "cluster_id": _clusters,
    "writeProperties:cluster_id": lambda state: (*CLUSTERS, None),
    "directories": lambda state: (["d0"], ["d0", "d1"], ["d2", "d0", "d1"], ["d1"], [*NAMES], [*NAMES]),
    "metadata_directory": lambda state: ("d0", "d0", "d1", "d2"),
    "static_voters": lambda state: (False, False, True),
    "flag": lambda state: ("standalone", "initial", "none", "noInitial", "initial", "none"),
    "initial_controllers": lambda state: (*VOTERS * 6, *VOTERS[8:10] * 6, *VOTERS[:4] * 3, *NO_VOTERS),
    "ignore_formatted": lambda state: (True, False),
    "release_version": lambda state: (*[None] * len(USUALLY), *VERSIONS),
    "features": lambda state: (*USUALLY, *LEVELS),
    "scram": lambda state: (*USUALLY, [*SCRAM[1:3]], *([s] for s in (*SCRAM, *NO_SCRAM))),
    "unstable": lambda state: (False, False, True),
    "directory": lambda state: NAMES,
    "version": lambda state: (1, 1, 0),
    "directory_id": _directory_ids,
    "levels": lambda state: (
        [[METADATA, 30]],
        [[METADATA, 22], [GROUP, 1]],
        [],
        [[GROUP, 1]],
        [[METADATA, 7], [METADATA, 23]],
        [[METADATA, -5]],
    ),
    "parseVoters:text": lambda state: (*VOTERS, f"1@:9:{IDS[0]}", *NO_VOTERS),
    "parseScram:text": lambda state: (*SCRAM, *NO_SCRAM),
}
