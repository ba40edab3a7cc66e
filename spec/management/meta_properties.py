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
from typing import Annotated, Final

from icontract import ensure, require

from kafkaspec.contract.clauses import A_FORMAT, A_QUESTION, clause, states
from kafkaspec.contract.governs import governs, reveals
from kafkaspec.contract.machine import Refused, without_state
from kafkaspec.contract.numbers import NodeId, Within
from kafkaspec.spec.common.checkpoint_text import LINE_END, canonical, integer, is_topic_id
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, INT_MAX

PREFIX = "MTP"
TITLE = "meta.properties"

JAVA = "java.util.Properties.load"
PROPERTIES = "MetaProperties and MetaPropertiesVersion, Kafka 4.3.0"
ENSEMBLE = "MetaPropertiesEnsemble, Kafka 4.3.0"
RUNTIME = "java.lang.RuntimeException"

MALFORMED_ESCAPE = Refused("MTP-2", ILLEGAL_ARGUMENT)
UNREADABLE = Refused("MTP-4", RUNTIME)
DISAGREEING = Refused("MTP-5", RUNTIME)
NO_DIRECTORY_IDS = Refused("MTP-6", RUNTIME)

clause(
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
clause(
    "MTP-9",
    "Brokers of one cluster have one cluster.id; no two of them have one node id, and no two directories one "
    "directory.id.",
    source="ClusterControlManager.registerBroker, Kafka 4.3.0; KIP-858",
    without=A_QUESTION
    | {
        "spec": "about several brokers: the audit compares them",
        "impl": "about several brokers: the audit compares them",
        "mutant": "see the spec",
    },
)

machine = without_state("meta_properties", __name__)

Version = Annotated[int, Within(0, 1)]


# ---- java.util.Properties --------------------------------------------------------------------------------------------
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PROPERTY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:(u)([0-9a-fA-F]{4})?|(.?))", re.DOTALL)


@states(without=A_FORMAT)
def _unescaped(text: str) -> str | None:
    """The text without its backslashes; None if it is malformed.

    MTP-2: A backslash before t, n, r or f stands for the control character, before u and four hexadecimal digits for
    that character, and otherwise for the character that follows it. A u without four such digits makes the file
    unreadable. [{JAVA}]
    """
    if "\\" not in text:
        return text
    if any(m[1] is not None and m[2] is None for m in _ESCAPE.finditer(text)):
        return None
    return _ESCAPE.sub(lambda m: _CONTROL.get(m[3], m[3]) if m[1] is None else chr(int(m[2], 16)), text)


@states("MTP-1")
def logical_lines(text: str) -> tuple[str, ...]:
    """Lines without comments, joined where a backslash ends one."""
    out: list[str] = []
    joined: str | None = None
    lines = LINE_END.split(text)
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
    return (*out,) if joined is None else (*out, joined)


@machine.question("properties.read", "MTP-2")
@states(without=A_FORMAT)
def properties(file: str) -> dict[str, str] | Refused:
    """The properties of a file with this text.

    MTP-1: The file has the form of java.util.Properties in ISO-8859-1: a line for each property, its key ended by the
    first =, : or blank that no backslash precedes, blanks around that and before the key left out, those after the
    value not; lines that begin with # or !, and empty ones, are comments; a backslash at the end of a line joins it to
    the next one, which may be a comment only if there is nothing before the backslash; of two lines with one key the
    last counts. [{JAVA}; PropertiesUtils, Kafka 4.3.0]
    """
    found = {}
    for line in logical_lines(file):
        m = _PROPERTY.match(line)
        assert m is not None
        key, value = _unescaped(m[1]), _unescaped(m[2])
        if key is None or value is None:
            return MALFORMED_ESCAPE
        found[key] = value
    return found


# ---- one file --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class MetaProperties:
    """What a meta.properties says."""

    version: Annotated[int, governs("MTP-3")]
    cluster_id: Annotated[str | None, governs("MTP-3")] = None
    node_id: Annotated[int | None, governs("MTP-3")] = None
    directory_id: Annotated[str | None, governs("MTP-3")] = None


@machine.question("metaProperties.read")
@states(without=A_FORMAT)
@ensure(
    lambda result: isinstance(result, Refused) or result.version == 0 or result.node_id is not None,
    "MTP-3 version 1 has a node id",
)
def meta_properties(file: str) -> MetaProperties | Refused:
    """What a file with this text says.

    MTP-3: Version 1 has version, cluster.id and node.id, and mostly directory.id; version 0, of the times of ZooKeeper
    and the one where none is said, has broker.id in the place of node.id, and may lack that and cluster.id.
    [{PROPERTIES}; KIP-858; Kafka Internals, ch. 01, 'Formatting storage']

    MTP-4: A file of another version, of version 1 without cluster.id or node.id, or with a version or node id that is
    no number, or a directory.id that is not the base64 of 16 bytes, is unreadable. [{PROPERTIES}]
    """
    found = properties(file)
    if isinstance(found, Refused):
        return found
    version = integer(re.sub(r"^[\0-\x20]+|[\0-\x20]+$", "", found.get("version", "0")), INT_MAX)
    if version not in (0, 1) or (version == 1 and not {"node.id", "cluster.id"} <= found.keys()):
        return UNREADABLE
    node = found.get("node.id" if version else "broker.id")
    node_id = None if node is None else integer(node, INT_MAX)
    directory = found.get("directory.id")
    if (node is not None and node_id is None) or (directory is not None and not is_topic_id(directory)):
        return UNREADABLE
    return MetaProperties(
        version, found.get("cluster.id"), node_id, None if directory is None else canonical(directory)
    )


@states(without=A_FORMAT)
def lacking(of: MetaProperties) -> list[str]:
    """The keys that a broker's file has and this one has not.

    MTP-10: A file that a broker wrote names its node, and where it has a directory.id the cluster too. A readable file
    that does not (an empty one is of version 0) keeps a broker without ZooKeeper from starting, whatever its other
    directories have. [KafkaRaftServer.initializeLogDirs, Kafka 4.3.0; BrokerMetadataCheckpoint, Kafka 0.9 to 3.6]
    """
    keys = {
        "node.id" if of.version else "broker.id": of.node_id is None,
        "cluster.id": of.directory_id is not None and of.cluster_id is None,
    }
    return [key for key, missing in keys.items() if missing]


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


@machine.question("metaProperties.write", "MTP-3", "MTP-4")
@reveals("MTP-1", "MTP-8")
@require(lambda version: version in (0, 1), "MTP-3 one of the two versions")
@require(lambda cluster_id: cluster_id is None or cluster_id.isascii(), "MTP-1 an id is ASCII")
@require(lambda directory_id: directory_id is None or is_topic_id(directory_id), "MTP-4 an id is one")
@ensure(
    lambda version, cluster_id, node_id, directory_id, result: (
        isinstance(result, Refused)
        or meta_properties("\n".join(result)) == MetaProperties(version, cluster_id, node_id, directory_id)
    ),
    "MTP-1 what is written is read back",
)
def meta_properties_write(
    version: Version, cluster_id: str | None, node_id: NodeId | None, directory_id: str | None
) -> list[str] | Refused:
    """The lines of a file, without its comments."""
    if version and (cluster_id is None or node_id is None):
        return UNREADABLE
    return written_lines(MetaProperties(version, cluster_id, node_id, directory_id))


# ---- the files of a broker -------------------------------------------------------------------------------------------
RESERVED_IDS: Final = 100


@states("MTP-6")
def reserved(directory_id: str) -> bool:
    """Whether the id is one of those that mean something else than a directory."""
    id = base64.urlsafe_b64decode(directory_id + "==")
    return not any(id[:8]) and int.from_bytes(id[8:], "big", signed=True) < RESERVED_IDS


@dataclass(frozen=True)
class Ensemble:
    """Who a broker is by its directories."""

    cluster_id: Annotated[str | None, governs("MTP-5")]
    node_id: Annotated[int | None, governs("MTP-5")]
    empty: Annotated[list[str], governs("MTP-7")]
    """directories without the file"""
    failed: Annotated[list[str], governs("MTP-4", "MTP-7")]
    """directories whose file cannot be read"""


@machine.question("ensemble.verify")
@reveals("MTP-3", "MTP-4")
@states(without=A_QUESTION)
@ensure(
    lambda files, result: (
        isinstance(result, Refused) or result.empty == sorted(d for d, f in files.items() if f is None)
    ),
    "MTP-7 a directory without the file is empty",
)
def ensemble_verify(
    files: Mapping[str, str | None], expected_cluster_id: str | None, expected_node_id: NodeId | None
) -> Ensemble | Refused:
    """A broker's start with these directories: what it is, or why it stops.

    MTP-5: A broker starts if at least one of its directories has a readable file, and all that are readable agree in
    cluster.id and node id, with each other and with its configuration where that says something. [{ENSEMBLE}]

    MTP-6: No two directories have one directory.id, and none has a reserved one, of which the first 8 bytes are zero
    and the last 8 a number below 100. [{ENSEMBLE}; DirectoryId, Kafka 4.3.0; KIP-858]

    MTP-7: A directory without the file is empty and will be formatted; one whose file cannot be read has failed, and
    the broker goes on without it. [{ENSEMBLE}; KafkaRaftServer, Kafka 4.3.0]
    """
    read = {d: meta_properties(text) for d, text in sorted(files.items()) if text is not None}
    readable = [p for p in read.values() if isinstance(p, MetaProperties)]
    clusters = {p.cluster_id for p in readable} - {None}
    nodes = {p.node_id for p in readable} - {None}
    agree = len(clusters | {expected_cluster_id} - {None}) <= 1 and len(nodes | {expected_node_id} - {None}) <= 1
    if not readable or not agree:
        return DISAGREEING
    ids = [p.directory_id for p in readable if p.directory_id is not None]
    if len(ids) != len(set(ids)) or any(map(reserved, ids)):
        return NO_DIRECTORY_IDS
    return Ensemble(
        next(iter(clusters), None),
        next(iter(nodes), None),
        empty=sorted(d for d, text in files.items() if text is None),
        failed=[d for d, p in read.items() if isinstance(p, Refused)],
    )
