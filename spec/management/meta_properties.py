"""meta.properties: which cluster and which node a log directory belongs to, and what must agree between directories.

A codec and a check over a few files: there is no state. Files are text, one character a byte (ISO-8859-1).

Source: Kafka Internals, ch. 01, "Formatting storage"; MetaProperties, MetaPropertiesVersion, MetaPropertiesEnsemble
and PropertiesUtils, Kafka 4.3.0; java.util.Properties.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

import icontract

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Nothing, Refused, Step, without_state
from kafkaspec.spec.common.checkpoint_text import canonical, integer, is_topic_id
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, INT_MAX

PREFIX = "MTP"
TITLE = "meta.properties"

PROPERTIES = "MetaProperties and MetaPropertiesVersion, Kafka 4.3.0"
ENSEMBLE = "MetaPropertiesEnsemble, Kafka 4.3.0"
NO_STEPS = {
    "model": "a text and a comparison of texts: nothing moves",
    "proof": "see the model",
}

MTP_1 = clause(
    "MTP-1",
    """The file has the form of java.util.Properties in ISO-8859-1: a line for each property, its key ended by the first
    =, : or blank that no backslash precedes, blanks around that and before the key left out, those after the value
    not; lines that begin with # or !, and empty ones, are comments; a backslash at the end of a line joins it to the
    next one, which may be a comment only if there is nothing before the backslash; of two lines with one key the last
    counts.""",
    source="java.util.Properties.load; PropertiesUtils, Kafka 4.3.0",
    without=NO_STEPS,
)
MTP_2 = clause(
    "MTP-2",
    """A backslash before t, n, r or f stands for the control character, before u and four hexadecimal digits for that
    character, and otherwise for the character that follows it. A u without four such digits makes the file
    unreadable.""",
    source="java.util.Properties.load",
    without=NO_STEPS,
)
MTP_3 = clause(
    "MTP-3",
    """Version 1 has version, cluster.id and node.id, and mostly directory.id; version 0, of the times of ZooKeeper and
    the one where none is said, has broker.id in the place of node.id, and may lack that and cluster.id.""",
    source=f"{PROPERTIES}; KIP-858; Kafka Internals, ch. 01, 'Formatting storage'",
    without=NO_STEPS,
)
MTP_4 = clause(
    "MTP-4",
    """A file of another version, of version 1 without cluster.id or node.id, or with a version or node id that is no
    number, or a directory.id that is not the base64 of 16 bytes, is unreadable.""",
    source=PROPERTIES,
    without=NO_STEPS,
)
MTP_5 = clause(
    "MTP-5",
    """A broker starts if at least one of its directories has a readable file, and all that are readable agree in
    cluster.id and node id, with each other and with its configuration where that says something.""",
    source=ENSEMBLE,
    without=NO_STEPS,
)
MTP_6 = clause(
    "MTP-6",
    """No two directories have one directory.id, and none has a reserved one, of which the first 8 bytes are zero and
    the last 8 a number below 100.""",
    source=f"{ENSEMBLE}; DirectoryId, Kafka 4.3.0; KIP-858",
    without=NO_STEPS,
)
MTP_7 = clause(
    "MTP-7",
    """A directory without the file is empty and will be formatted; one whose file cannot be read has failed, and the
    broker goes on without it.""",
    source=f"{ENSEMBLE}; KafkaRaftServer, Kafka 4.3.0",
    without=NO_STEPS,
)
MTP_8 = clause(
    "MTP-8",
    """The file is written beside its place, flushed, and renamed over it: a crash leaves the old one or the new one,
    and may leave meta.properties.tmp.""",
    source="PropertiesUtils.writePropertiesFile, Kafka 4.3.0",
    without={
        "spec": "a step of the spec is whole: the simulated disk has the crashes",
        "model": "it is the replacement of a checkpoint: CKP-6",
        "proof": "it is the replacement of a checkpoint: CKP-6",
    },
)
MTP_9 = clause(
    "MTP-9",
    "Brokers of one cluster have one cluster.id; no two of them have one node id, and no two directories one "
    "directory.id.",
    source="ClusterControlManager.registerBroker, Kafka 4.3.0; KIP-858",
    without={
        **NO_STEPS,
        "spec": "about several brokers: the audit compares them",
        "impl": "about several brokers: the audit compares them",
        "mutant": "see the spec",
    },
)

RUNTIME = "java.lang.RuntimeException"


# ---- the text --------------------------------------------------------------------------------------------------------
class Unreadable(Exception):
    """Why a file cannot be read; `error` is Kafka's exception."""

    def __init__(self, clause: str, reason: str, error: str = RUNTIME) -> None:
        super().__init__(reason)
        self.clause = clause
        self.error = error


_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@states("MTP-2")
def _unescaped(text: str) -> str:
    def one(m: re.Match[str]) -> str:
        if m[1] is None:
            return _CONTROL.get(m[3], m[3])
        if m[2] is None:
            raise Unreadable("MTP-2", "a u without four hexadecimal digits", ILLEGAL_ARGUMENT)
        return chr(int(m[2], 16))

    return re.sub(r"\\(?:(u)([0-9a-fA-F]{4})?|(.?))", one, text, flags=re.DOTALL)


@states("MTP-1")
def logical_lines(text: str) -> list[str]:
    """Lines without comments, joined where a backslash ends one."""
    out: list[str] = []
    joined: str | None = None
    lines = re.split(r"\r\n|\r|\n", text)
    for n, line in enumerate(lines):
        begun = line.lstrip(" \t\f")
        if not joined and (not begun or begun[0] in "#!"):
            ends = n == len(lines) - 1 and not line and not text.endswith("\r\n")
            joined = joined if ends else None
            continue
        whole = (joined or "") + begun
        backslashes = len(whole) - len(whole.rstrip("\\"))
        if backslashes % 2:
            joined = whole[:-1]
        else:
            out.append(whole)
            joined = None
    return out if joined is None else [*out, joined]


@states("MTP-1", "MTP-2")
def properties(text: str) -> dict[str, str]:
    """The properties of a file. Raises Unreadable."""
    found = {}
    for line in logical_lines(text):
        m = re.match(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", line, re.DOTALL)
        assert m is not None
        found[_unescaped(m[1])] = _unescaped(m[2])
    return found


@dataclass(frozen=True)
class MetaProperties:
    """What the file says."""

    version: int
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None

    def json(self) -> Said:
        return {
            "version": self.version,
            "clusterId": self.cluster_id,
            "nodeId": self.node_id,
            "directoryId": self.directory_id,
        }


@states("MTP-3", "MTP-4")
def meta_properties(text: str) -> MetaProperties:
    """What a file says, by its version. Raises Unreadable."""
    found = properties(text)
    version = integer(re.sub(r"^[\0-\x20]+|[\0-\x20]+$", "", found.get("version", "0")), INT_MAX)
    if version not in (0, 1):
        raise Unreadable("MTP-4", f"version {found['version']!r}, expected 0 or 1")
    key = "node.id" if version else "broker.id"
    node = found.get(key)
    if node is not None and integer(node, INT_MAX) is None:
        raise Unreadable("MTP-4", f"{key} {node!r} is no number")
    for needed in ("node.id", "cluster.id") if version else ():
        if needed not in found:
            raise Unreadable("MTP-4", f"{needed} is missing")
    directory = found.get("directory.id")
    if directory is not None and not is_topic_id(directory):
        raise Unreadable("MTP-4", f"directory.id {directory!r} is no id")
    return MetaProperties(
        version,
        found.get("cluster.id"),
        None if node is None else integer(node, INT_MAX),
        None if directory is None else canonical(directory),
    )


@states("MTP-6")
def reserved(directory_id: str) -> bool:
    """Whether the id is one of those that mean something else than a directory."""
    id = base64.urlsafe_b64decode(directory_id + "==")
    return not any(id[:8]) and int.from_bytes(id[8:], "big", signed=True) < 100


@states("MTP-3")
def written_lines(of: MetaProperties) -> list[str]:
    """The properties as lines, sorted: their order in the file is free."""
    values = {
        "version": str(of.version),
        "cluster.id": of.cluster_id,
        "node.id" if of.version else "broker.id": None if of.node_id is None else str(of.node_id),
        "directory.id": of.directory_id,
    }
    return sorted(f"{key}={escaped(value)}" for key, value in values.items() if value is not None)


def escaped(value: str) -> str:
    """A value as java.util.Properties.store writes it."""
    out = []
    for n, c in enumerate(value):
        if c in "\t\n\r\f":
            out.append("\\" + "tnrf"["\t\n\r\f".index(c)])
        elif c in "=:#!\\" or (c == " " and n == 0):
            out.append("\\" + c)
        else:
            out.append(c)
    return "".join(out)


# ---- the machine -----------------------------------------------------------------------------------------------------
machine = without_state("meta_properties", __name__)


@machine.operation("properties.read", "MTP-1", "MTP-2")
def properties_read(state: Nothing, file: str) -> Step[Nothing, dict[str, str]]:
    """The properties of a file with this text."""
    try:
        return Step(state, properties(file))
    except Unreadable as e:
        return Step(state, Refused(e.clause, e.error))


class Said(TypedDict):
    """What a meta.properties says."""

    version: int
    clusterId: str | None
    nodeId: int | None
    directoryId: str | None


@machine.operation("metaProperties.read", "MTP-3", "MTP-4")
@icontract.ensure(
    lambda result: (
        isinstance(result.result, Refused) or result.result["version"] == 0 or result.result["nodeId"] is not None
    ),
    "MTP-3 version 1 has a node id",
)
def meta_properties_read(state: Nothing, file: str) -> Step[Nothing, Said]:
    """What a file with this text says."""
    try:
        return Step(state, meta_properties(file).json())
    except Unreadable as e:
        return Step(state, Refused(e.clause, e.error))


@machine.operation("metaProperties.write", "MTP-3", "MTP-4")
@icontract.require(lambda version: version in (0, 1), "MTP-3 one of the two versions")
@icontract.require(lambda cluster_id: cluster_id is None or cluster_id.isascii(), "MTP-1 an id is ASCII")
@icontract.require(lambda directory_id: directory_id is None or is_topic_id(directory_id), "MTP-4 an id is one")
@icontract.ensure(
    lambda version, cluster_id, node_id, directory_id, result: (
        isinstance(result.result, Refused)
        or meta_properties("\n".join(result.result)) == MetaProperties(version, cluster_id, node_id, directory_id)
    ),
    "MTP-1 what is written is read back",
)
def meta_properties_write(
    state: Nothing, version: int, cluster_id: str | None, node_id: int | None, directory_id: str | None
) -> Step[Nothing, list[str]]:
    """The lines of a file, without its comments."""
    if version and (cluster_id is None or node_id is None):
        return Step(state, Refused("MTP-4", RUNTIME))
    return Step(state, written_lines(MetaProperties(version, cluster_id, node_id, directory_id)))


class Ensemble(TypedDict):
    """Who a broker is by its directories."""

    clusterId: str | None
    nodeId: int | None
    empty: list[str]
    """directories without the file"""
    failed: list[str]
    """directories whose file cannot be read"""


@machine.operation("ensemble.verify", "MTP-5", "MTP-6", "MTP-7")
@icontract.ensure(
    lambda files, result: (
        isinstance(result.result, Refused) or result.result["empty"] == sorted(d for d, f in files.items() if f is None)
    ),
    "MTP-7 a directory without the file is empty",
)
def ensemble_verify(
    state: Nothing, files: Mapping[str, str | None], expected_cluster_id: str | None, expected_node_id: int | None
) -> Step[Nothing, Ensemble]:
    """A broker's start with these directories: what it is, or why it stops."""
    readable: dict[str, MetaProperties] = {}
    failed = []
    for directory, text in sorted(files.items()):
        try:
            if text is not None:
                readable[directory] = meta_properties(text)
        except Unreadable:
            failed.append(directory)
    if not readable:
        return Step(state, Refused("MTP-5", RUNTIME))
    clusters = {p.cluster_id for p in readable.values()} - {None}
    nodes = {p.node_id for p in readable.values()} - {None}
    if len(clusters | {expected_cluster_id} - {None}) > 1 or len(nodes | {expected_node_id} - {None}) > 1:
        return Step(state, Refused("MTP-5", RUNTIME))
    ids = [p.directory_id for p in readable.values() if p.directory_id is not None]
    if len(ids) != len(set(ids)) or any(map(reserved, ids)):
        return Step(state, Refused("MTP-6", RUNTIME))
    cluster_id, node_id = next(iter(clusters), None), next(iter(nodes), None)
    empty = sorted(d for d, text in files.items() if text is None)
    return Step(state, {"clusterId": cluster_id, "nodeId": node_id, "empty": empty, "failed": failed})
