"""Formats the directories of a node, as `kafka-storage format` does, and reads what a node begins with.

The files are those of Kafka, byte for byte but for the times and the ids that are drawn. Each is flushed before it
takes its place, and meta.properties comes last: a directory that has it has all of them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.common.ids import id_bytes, id_text
from kafkaspec.impl.controller import records
from kafkaspec.impl.controller.records import Record
from kafkaspec.impl.management import meta_properties
from kafkaspec.impl.management.checkpoints import parse_integer, replace_file
from kafkaspec.impl.management.meta_properties import Ensemble, MetaProperties
from kafkaspec.impl.storage.batch import LENGTH_AT, LOG_OVERHEAD, Batch, Encoder

BOOTSTRAP: Final = "bootstrap.checkpoint"
SNAPSHOT: Final = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
METADATA, KRAFT = "metadata.version", "kraft.version"
OLDEST, STABLE, NEWEST = 7, 30, 31
LINES: Final = {
    "3.3": (3,), "3.4": (0,), "3.5": (0, 1, 2), "3.6": (0, 1, 2), "3.7": (0, 1, 2, 3, 4), "3.8": (0,), "3.9": (0,),
    "4.0": (0, 1, 2, 3), "4.1": (0, 1), "4.2": (0, 1), "4.3": (0,), "4.4": (0,),
}  # fmt: skip
"""Release lines, and the internal versions of metadata.version of each"""
VERSIONS: Final = {
    f"{line}-IV{n}": OLDEST + at for at, (line, n) in enumerate((a, n) for a, b in LINES.items() for n in b)
}
NAMES: Final = {level: name for name, level in VERSIONS.items()}
SCRAM_SINCE: Final = VERSIONS["3.5-IV2"]


@dataclass(frozen=True)
class Feature:
    """Its highest level, and from which metadata.version on a new cluster has that level; what the level needs."""

    highest: int
    since: int
    needs: Mapping[str, int] = field(default_factory=dict)

    def default(self, release: int) -> int:
        """[BST-8]"""
        return self.highest if release >= self.since else 0


FEATURES: Final = {
    "eligible.leader.replicas.version": Feature(1, VERSIONS["4.1-IV0"], {METADATA: VERSIONS["4.0-IV1"]}),
    "group.version": Feature(1, VERSIONS["4.0-IV0"]),
    KRAFT: Feature(1, NEWEST + 1),
    "share.version": Feature(1, VERSIONS["4.2-IV0"]),
    "streams.version": Feature(1, VERSIONS["4.2-IV1"]),
    "transaction.version": Feature(2, VERSIONS["4.0-IV2"]),
}
DYNAMIC_FLAGS: Final = "--standalone, --initial-controllers, or --no-initial-controllers"


# ---- refusals
class FormatRefusedError(Exception):
    """Format is refused, or reading. `args[0]` says why, in Kafka's words; None if they are not one text."""

    @property
    def message(self) -> str | None:
        said: str | None = self.args[0]
        return said


class ReleaseError(FormatRefusedError):
    """[BST-24]"""


class LevelTextError(FormatRefusedError):
    """[BST-6]"""


class QuorumError(FormatRefusedError):
    """The flags do not fit the quorum. [BST-11]"""


class VotersError(FormatRefusedError):
    """[BST-21]"""


class VersionError(FormatRefusedError):
    """metadata.version cannot be that one. [BST-7]"""


class UnknownVersionError(VersionError):
    """There is none of that level. [BST-7]"""


class KraftVersionError(FormatRefusedError):
    """[BST-12]"""


class UnknownFeatureError(FormatRefusedError):
    """[BST-9]"""


class FeatureLevelError(FormatRefusedError):
    """A level that a feature does not have, or without what it needs. [BST-9]"""


class ScramTextError(FormatRefusedError):
    """[BST-22]"""


class ScramError(FormatRefusedError):
    """[BST-23]"""


class EmptyPasswordError(ScramError):
    """[BST-23]"""


class ScramTooEarlyError(FormatRefusedError):
    """[BST-10]"""


class DisagreementError(FormatRefusedError):
    """[BST-2]"""


class FormattedError(FormatRefusedError):
    """[BST-3]"""


class NoDirectoryError(FormatRefusedError):
    """None that could be formatted. [BST-4]"""


class MissingDirectoryError(FormatRefusedError):
    """[BST-20]"""


class NoVersionError(FormatRefusedError):
    """A file that says no metadata.version. [BST-19]"""


# ---- texts
def split(text: str, by: str) -> list[str]:
    """As Java splits: without the empty parts at the end."""
    parts = text.split(by)
    while len(parts) > 1 and not parts[-1]:
        del parts[-1]
    return parts


def trimmed(text: str) -> str:
    """As Java trims."""
    return text.strip("".join(map(chr, range(33))))


def release_level(text: str, unstable: bool) -> int:
    """Raises ReleaseError. [BST-24]"""
    parts = split(text, ".")
    key = ".".join(parts[:2]) if len(parts) > 2 else text
    most = NEWEST if unstable else STABLE
    stable = [n for n, level in VERSIONS.items() if level <= STABLE and n.startswith(f"{key}-")]
    level = VERSIONS.get(key) or (VERSIONS[stable[-1]] if "-" not in key and key in LINES and stable else None)
    if level is None or level > most:
        names = ", ".join(NAMES[n] for n in range(OLDEST, most + 1))
        raise ReleaseError(f"Unknown metadata.version '{text}'. Supported metadata.version are: {names}")
    return level


def feature_level(text: str) -> tuple[str, int]:
    """Raises LevelTextError. [BST-6]"""
    what = f"Can't parse feature=level string {text}: "
    if "=" not in text:
        raise LevelTextError(f"{what}equals sign not found.")
    name, level = text.split("=", 1)
    found = parse_integer(trimmed(level), 16)
    if found is None:
        raise LevelTextError(f"{what}unable to parse {trimmed(level)} as a short.")
    return trimmed(name), found


@dataclass(frozen=True, order=True)
class Voter:
    """A controller of the quorum."""

    node_id: int
    directory_id: str
    host: str
    port: int


VOTER = "in dynamic voter string."


def voter(text: str) -> Voter:
    """Raises VotersError. [BST-21]"""
    text = trimmed(text)
    at = text.find("@")
    if at < 1:
        raise VotersError("Invalid @ at beginning of dynamic voter string." if at == 0 else f"No @ found {VOTER}")
    node_id = parse_integer(text[:at], 32)
    if node_id is None:
        raise VotersError(f"Failed to parse node id {VOTER}")
    if node_id < 0:
        raise VotersError(f"Invalid negative node id {node_id} {VOTER}")
    rest = text[at + 1 :]
    if not rest:
        raise VotersError("No hostname found after node id.")
    if rest.startswith("["):
        end = rest.find("]")
        if end < 0:
            raise VotersError("Hostname began with left bracket, but no right bracket was found.")
        host, rest = rest[1:end], rest[end + 1 :]
    else:
        end = rest.find(":")
        if end < 0:
            raise VotersError("No colon following hostname could be found.")
        host, rest = rest[:end], rest[end:]
    if rest[:1] != ":":
        raise VotersError("Port section must start with a colon.")
    end = rest.find(":", 1)
    if end < 0:
        raise VotersError("No colon following port could be found.")
    port = parse_integer(rest[1:end], 32)
    if port is None:
        raise VotersError(f"Failed to parse port {VOTER}")
    if port not in range(65536):
        raise VotersError(f"Invalid port {port} {VOTER}")
    id = id_bytes(rest[end + 1 :])
    if id is None:
        raise VotersError(f"Failed to parse directory ID {VOTER}")
    return Voter(node_id, id_text(id), host, port)


def initial_voters(text: str) -> list[Voter]:
    """By their ids. Raises VotersError. [BST-21]"""
    found: dict[int, Voter] = {}
    for v in [voter(part) for part in trimmed(text).split(",") if part]:
        if v.node_id in found:
            raise VotersError(f"Node id {v.node_id} was specified more than once.")
        found[v.node_id] = v
    if not found:
        raise VotersError("No voters given.")
    return [found[n] for n in sorted(found)]


# ---- SCRAM
@dataclass(frozen=True)
class Mechanism:
    """Its number in records, and its hash."""

    type: int
    hash: str

    LEAST = 4096
    MOST = 16384


SCRAM: Final = {"SCRAM-SHA-256": Mechanism(1, "sha256"), "SCRAM-SHA-512": Mechanism(2, "sha512")}


def decode64(text: str) -> bytes | None:
    """As Java decodes base64; None if it is malformed."""
    bare = text.rstrip("=")
    if len(text) != len(bare) and (len(text) % 4 or len(text) - len(bare) > 2):
        return None
    if len(bare) % 4 == 1:
        return None
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except ValueError:
        return None


@lru_cache(maxsize=64)
def hi(hash: str, password: str, salt: bytes, iterations: int) -> bytes:
    """As RFC 5802 calls it. [BST-23]"""
    return hashlib.pbkdf2_hmac(hash, password.encode(), salt, iterations)


def credential(text: str, random_salt: Callable[[], bytes]) -> Record:
    """The record of a credential. Raises ScramTextError, ScramError. [BST-22, BST-23]"""
    text = trimmed(text)
    if "=" not in text:
        raise ScramTextError(f"Failed to find equals sign in SCRAM argument '{text}'")
    name, said = text.split("=", 1)
    mechanism = SCRAM.get(name)
    if mechanism is None:
        raise ScramTextError(f"The add-scram mechanism {name} is not supported.")
    for right, end, word in ((said[:1] == "[", "[", "start"), (said[-1:] == "]", "]", "end")):
        if not right:
            raise ScramTextError(f"Expected configuration string to {word} with {end}")
    parts: dict[str, str] = {}
    for part in split(said[1:-1], ","):
        if "=" not in part:
            raise ScramTextError(f"No equals sign found in SCRAM component: {part}")
        key, value = part.split("=", 1)
        parts[key] = value[1:-1] if len(value) > 1 and value.startswith('"') and value.endswith('"') else value
    if "name" not in parts:
        raise ScramTextError("You must supply 'name' to add-scram")
    user, salt = parts.pop("name"), _salt(parts)
    iterations = parse_integer(parts["iterations"], 32) if "iterations" in parts else mechanism.LEAST
    if iterations is None:
        raise ScramTextError(f"Failed to parse iterations count: {parts['iterations']}")
    parts.pop("iterations", None)
    salted = None if "password" in parts else _salted(parts, salt)
    password = parts.pop("password", "")
    parts.pop("saltedpassword", None)
    if parts:
        raise ScramTextError(f"Unknown SCRAM configurations: {', '.join(sorted(parts))}")
    for wrong, sign, bound in (
        (iterations < mechanism.LEAST, ">=", mechanism.LEAST), (iterations > mechanism.MOST, "<=", mechanism.MOST),
    ):  # fmt: skip
        if wrong:
            using = name.replace("-", "_")
            raise ScramError(f"The 'iterations' value must be {sign} {bound} for add-scram using {using}")
    if not (password or salted):
        raise EmptyPasswordError("Empty key")
    salt = random_salt() if salt is None else salt
    if salted is None:
        salted = hi(mechanism.hash, password, salt, iterations)
    fields = {
        "name": user,
        "mechanism": mechanism.type,
        "salt": salt,
        "storedKey": hashlib.new(mechanism.hash, hmac.digest(salted, b"Client Key", mechanism.hash)).digest(),
        "serverKey": hmac.digest(salted, b"Server Key", mechanism.hash),
        "iterations": iterations,
    }
    return replace(records.record("UserScramCredentialRecord"), fields=fields)


def _salt(parts: dict[str, str]) -> bytes | None:
    text = parts.pop("salt", None)
    salt = None if text is None else decode64(text)
    if text is not None and salt is None:
        raise ScramTextError(f"Failed to decode given salt: {text}")
    return salt


def _salted(parts: dict[str, str], salt: bytes | None) -> bytes:
    text = parts.pop("saltedpassword", None)
    if text is None:
        raise ScramTextError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if salt is None:
        raise ScramTextError("You must supply 'salt' with 'saltedpassword' to add-scram")
    salted = decode64(text)
    if salted is None:
        raise ScramTextError(f"Failed to decode given saltedPassword: {text}")
    return salted


# ---- checkpoint files
Clock = Callable[[], int]
"""ms since 1970"""


def _batch(offset: int, clock: Clock, of: Iterable[tuple[bytes | None, bytes]], control: bool) -> tuple[int, bytes]:
    batch, time = Encoder(offset, leader_epoch=0, control=control), clock()
    for key, value in of:
        batch.append(time, key, value)
    return offset + batch.count, batch.finish()


def checkpoint(control: Sequence[Record], data: Sequence[Record], clock: Clock) -> bytes:
    """The control records that it begins with, the data records, and the footer; each batch at its time.
    [BST-5, BST-13]"""
    at, out = _batch(0, clock, map(records.encode_control, control), True)
    if data:
        at, more = _batch(at, clock, ((None, records.encode(r)) for r in data), False)
        out += more
    return out + _batch(at, clock, [records.encode_control(records.record("SnapshotFooterRecord"))], True)[1]


def bootstrap_file(data: Sequence[Record], clock: Clock) -> bytes:
    """bootstrap.checkpoint. [BST-5, BST-17]"""
    return checkpoint([records.record("SnapshotHeaderRecord")], data, clock)


def full_host(host: str) -> str:
    """An address of IPv6 in its eight numbers, anything else as it is. [BST-13]"""
    try:
        bits = int.from_bytes(socket.inet_pton(socket.AF_INET6, host), "big")
    except OSError:
        return host
    return ":".join(f"{bits >> at & 0xFFFF:x}" for at in range(112, -1, -16))


def snapshot_file(kraft: int, voters: Sequence[Voter], listener: str, clock: Clock) -> bytes:
    """0-0.checkpoint. [BST-13]"""
    header = records.record("SnapshotHeaderRecord", lastContainedLogTimestamp=clock())
    members = [
        {
            "voterId": v.node_id,
            "voterDirectoryId": v.directory_id,
            "endpoints": [{"name": listener, "host": full_host(v.host), "port": v.port}],
            "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
        }
        for v in voters
    ]
    version = records.record("KRaftVersionRecord", kRaftVersion=kraft)
    return checkpoint([header, version, records.record("VotersRecord", voters=members)], [], clock)


def contents(data: bytes) -> tuple[list[Record], list[Record]]:
    """The control records and the data records of a checkpoint file. Raises Malformed, records.Unreadable. [BST-18]"""
    control: list[Record] = []
    plain: list[Record] = []
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at + LENGTH_AT : at + LOG_OVERHEAD], "big", signed=True)
        batch = Batch(data[at : at + LOG_OVERHEAD + max(length, 0)], at)
        for r in batch.records():
            into = control if batch.control else plain
            into.append(records.decode_record(r.key, r.value, r.timestamp_delta, 0, batch.control))
        at += batch.size
    return control, plain


# ---- format
@dataclass(frozen=True)
class Node:
    """The configuration of a node."""

    node_id: int
    controls: bool
    directories: Sequence[str]
    metadata_directory: str
    static_voters: bool
    unstable: bool = False
    listener: str = "CONTROLLER"
    host: str = "localhost"
    port: int = 9093

    @property
    def all_directories(self) -> list[str]:
        """[BST-1]"""
        return sorted({*self.directories, self.metadata_directory})


@dataclass(frozen=True)
class Arguments:
    """Of the tool."""

    cluster_id: str
    flag: str = "none"
    initial_controllers: str = ""
    ignore_formatted: bool = False
    release_version: str | None = None
    features: Sequence[str] = ()
    scram: Sequence[str] = ()


@dataclass(frozen=True)
class FormatResult:
    """What was done: the metadata.version, what each directory is now, and which could not be read."""

    release: int | None
    kinds: Mapping[str, str]
    ignored: Sequence[str]


class Formatter:
    """The tool, for one node. `path_of` says how a message names a directory."""

    def __init__(
        self, disk: Disk, clock: Callable[[], int], draw: Callable[[int], bytes] = os.urandom,
        path_of: Callable[[str], str] = str,
    ) -> None:  # fmt: skip
        self.disk, self.clock, self.draw, self.path_of = disk, clock, draw, path_of

    def run(self, node: Node, asked: Arguments) -> FormatResult:
        """Raises FormatRefusedError; nothing is written then. [BST-16]"""
        release = None if asked.release_version is None else release_level(asked.release_version, node.unstable)
        levels = dict(map(feature_level, asked.features))
        self.check_quorum(node, asked.flag)
        voters = self.voters(node, asked)
        release = self.release(release, levels.get(METADATA), node.unstable)
        levels = self.levels(levels, release, not node.static_voters)
        first = self.first_records(release, levels, asked.scram)
        ensemble = self.ensemble(node, asked)
        kinds = {d: self.kind(node, d, voters) for d in ensemble.empty}
        self.write(node, asked.cluster_id, kinds, first, levels[KRAFT], voters, ensemble)
        return FormatResult(release if kinds else None, kinds, ensemble.failed)

    def check_quorum(self, node: Node, flag: str) -> None:
        """[BST-11]"""
        if node.static_voters and flag in {"standalone", "initial"}:
            raise QuorumError(
                "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
                "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
                "controller.quorum.bootstrap.servers instead."
            )
        if flag == "standalone" and not node.controls:
            raise QuorumError("You can only use --standalone on a controller.")
        if flag == "none" and node.controls and not node.static_voters:
            raise QuorumError(
                "Because controller.quorum.voters is not set on this controller, you must specify one of the "
                f"following: {DYNAMIC_FLAGS}."
            )

    def voters(self, node: Node, asked: Arguments) -> list[Voter] | None:
        """[BST-13, BST-14, BST-21]"""
        match asked.flag:
            case "initial":
                return initial_voters(asked.initial_controllers)
            case "standalone":
                return [Voter(node.node_id, self.directory_id(()), node.host, node.port)]
        return None

    def release(self, named: int | None, level: int | None, unstable: bool) -> int:
        """[BST-7]"""
        if level is None and named is None:
            return NEWEST if unstable else STABLE
        if level is not None:
            if named is not None:
                raise VersionError("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")
            if level not in NAMES:
                valid = f"Valid feature levels are from {OLDEST} to {NEWEST}."
                raise UnknownVersionError(f"No MetadataVersion with feature level {level}. {valid}")
            named = level
        assert named is not None
        if named > STABLE and not unstable:
            raise VersionError(f"metadata.version {NAMES[named]} is not yet stable.")
        return named

    def levels(self, asked: Mapping[str, int], release: int, dynamic: bool) -> dict[str, int]:
        """[BST-8, BST-9, BST-12]"""
        for name in sorted(asked):
            if name != METADATA and name not in FEATURES:
                raise UnknownFeatureError(
                    f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(FEATURES))}"
                )
        levels = {name: feature.default(release) for name, feature in FEATURES.items()} | dict(asked)
        levels[METADATA] = release
        levels[KRAFT] = self.kraft(asked.get(KRAFT), dynamic)
        for name in sorted(FEATURES):
            if levels[name] not in range(FEATURES[name].highest + 1):
                raise FeatureLevelError(f"No feature:{name} with feature level {levels[name]}")
            for needed, least in FEATURES[name].needs.items() if levels[name] else ():
                if levels[needed] < least:
                    raise FeatureLevelError(
                        f"{name} could not be set to {levels[name]} because it depends on {needed} level {least}"
                    )
        return levels

    def kraft(self, level: int | None, dynamic: bool) -> int:
        """[BST-12]"""
        if level == 0 and dynamic:
            raise KraftVersionError(
                "Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the flags "
                f"{DYNAMIC_FLAGS} is used. For dynamic controllers support, try removing the --feature flag for "
                "kraft.version."
            )
        if level and not dynamic:
            raise KraftVersionError(
                f"Cannot set kraft.version to {level} unless controller.quorum.voters is empty and one of the flags "
                f"{DYNAMIC_FLAGS} is used. For dynamic controllers support, try using one of {DYNAMIC_FLAGS} and "
                "removing controller.quorum.voters."
            )
        return int(dynamic) if level is None else level

    def first_records(self, release: int, levels: Mapping[str, int], scram: Sequence[str]) -> list[Record]:
        """[BST-5, BST-10]"""
        first = [level_record(METADATA, release)]
        first += [level_record(name, levels[name]) for name in sorted(FEATURES) if name != KRAFT and levels[name]]
        if scram and release < SCRAM_SINCE:
            raise ScramTooEarlyError("SCRAM is only supported in metadata.version 3.5-IV2 or later.")
        return first + [credential(text, lambda: self.draw(16).hex().encode()) for text in scram]

    def ensemble(self, node: Node, asked: Arguments) -> Ensemble:
        """What is there, if all of it fits. [BST-2, BST-3, BST-4]"""
        found = Ensemble.load(self.disk, node.all_directories)
        self.check(found, asked.cluster_id, node.node_id)
        if found.valid and not asked.ignore_formatted:
            raise FormattedError(None)
        if not found.valid and not found.empty:
            raise NoDirectoryError("No available log directories to format.")
        return found

    def check(self, found: Ensemble, cluster_id: str, node_id: int) -> None:
        """[BST-2]"""
        seen = set()
        for directory, p in sorted(found.valid.items()):
            path = f"{self.path_of(directory)}/{meta_properties.NAME}"
            if p.cluster_id not in (None, cluster_id):
                raise DisagreementError(
                    f"Invalid cluster.id in: {path}. Expected {cluster_id}, but read {p.cluster_id}"
                )
            if p.node_id not in (None, node_id):
                raise DisagreementError(
                    f"Stored node id {p.node_id} doesn't match previous node id {node_id} in {path}. If you moved your "
                    "data, make sure your configured node id matches. If you intend to create a new node, you should "
                    "remove all data in your data directories."
                )
            if p.directory_id is None:
                continue
            if meta_properties.is_reserved(p.directory_id):
                where = self.path_of(directory)
                raise DisagreementError(f"Invalid reserved directory ID {p.directory_id} found in {where}")
            if p.directory_id in seen:
                raise DisagreementError(None)
            seen.add(p.directory_id)

    def kind(self, node: Node, directory: str, voters: Sequence[Voter] | None) -> str:
        """[BST-15]"""
        if directory != node.metadata_directory:
            return "data directory"
        if voters is None:
            return "metadata directory"
        member = any(v.node_id == node.node_id for v in voters)
        return "dynamic metadata voter directory" if member else "dynamic metadata directory"

    def directory_id(self, taken: Iterable[str | None]) -> str:
        """A new one, not reserved, which no option of a command begins like. [BST-1]"""
        known = set(taken)
        while True:
            id = id_text(self.draw(16))
            if id not in known and id[0] != "-" and not meta_properties.is_reserved(id):
                return id

    def write(
        self, node: Node, cluster_id: str, kinds: Mapping[str, str], first: Sequence[Record], kraft: int,
        voters: Sequence[Voter] | None, ensemble: Ensemble,
    ) -> None:  # fmt: skip
        """[BST-1, BST-13, BST-14, BST-17]"""
        taken = [p.directory_id for p in ensemble.valid.values()]
        for directory, kind in kinds.items():
            id = self.directory_id(taken)
            replace_file(self.disk, f"{directory}/{BOOTSTRAP}", bootstrap_file(first, self.clock))
            if "dynamic" in kind and voters is not None:
                id = next((v.directory_id for v in voters if v.node_id == node.node_id), id)
                data = snapshot_file(kraft, voters, node.listener, self.clock)
                replace_file(self.disk, f"{directory}/{SNAPSHOT}", data)
            taken.append(id)
            meta_properties.write(self.disk, directory, MetaProperties(1, cluster_id, node.node_id, id))


def level_record(name: str, level: int) -> Record:
    """The record of a feature's level."""
    return replace(records.record("FeatureLevelRecord"), fields={"name": name, "featureLevel": level})


# ---- reading
@dataclass(frozen=True)
class First:
    """What a node begins an empty metadata log with."""

    version: int
    records: Sequence[Record]
    by_default: bool


def first_records(disk: Disk, directory: str, exists: bool, path: str) -> First:
    """Raises FormatRefusedError; Malformed and Unreadable for what is no such file. [BST-18, BST-19, BST-20]"""
    if not exists:
        raise MissingDirectoryError(f"No such directory as {path}")
    if not disk.exists(f"{directory}/{BOOTSTRAP}"):
        return First(STABLE, [level_record(METADATA, STABLE)], True)
    _, found = contents(disk.read(f"{directory}/{BOOTSTRAP}"))
    said = [r.fields["featureLevel"] for r in found if is_level(r) and r.fields["name"] == METADATA]
    if not said:
        raise NoVersionError(
            f"No FeatureLevelRecord for {METADATA} was found in the bootstrap metadata from the binary bootstrap "
            f"metadata file: {path}/{BOOTSTRAP}"
        )
    return First(said[-1], found, False)


def is_level(record: Record) -> bool:
    """Whether a record is of a feature's level."""
    return record.name == "FeatureLevelRecord"
