"""Formatting storage: what a node's directories have in them before it starts for the first time, and what it reads
of it.

`kafka-storage format` gives each directory that has no meta.properties the cluster's id, the node's, and one of its
own; the records with which an empty metadata log begins; and, where the quorum of controllers may change, its first
voters. What was asked is checked before anything is written. The files themselves are other subsystems' (MTP, MRC,
BAT).

Source: Kafka Internals, ch. 11, "Cluster formation & bootstrap"; KIP-631, KIP-853, KIP-858, KIP-900; StorageTool,
Formatter, ScramParser, DynamicVoters, BootstrapMetadata and BootstrapDirectory, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import A_QUESTION, ONE_CALL, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import Int16, NodeId, Within
from kafkaspec.spec.common.checkpoint_text import integer
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT
from kafkaspec.spec.common.metadata_log import ELR
from kafkaspec.spec.controller.bootstrap_parts.requests import (
    FORMATTER,
    METADATA,
    PRODUCTION,
    RUNTIME,
    STABLE,
    TERSE,
    TESTING,
    Credential,
    Voter,
    credential,
    named_version,
    trimmed,
    version_name,
    voters,
)
from kafkaspec.spec.controller.features import GROUP, HIGHEST, KRAFT, NEEDS, SHARE, STREAMS, TRANSACTION
from kafkaspec.spec.management.meta_properties import reserved

PREFIX = "BST"
TITLE = "Bootstrap and format"

CHAPTER = "Kafka Internals, ch. 11, Cluster formation & bootstrap"
TOOL = "StorageTool.runFormatCommand, Kafka 4.3.0"
CLASS = "Formatter, Kafka 4.3.0"
"""org.apache.kafka.metadata.storage.Formatter"""
METADATA_OF = "BootstrapMetadata, Kafka 4.3.0"

LISTENER: Final = "CONTROLLER"
STANDALONE_PORT: Final = 9093
SCRAM_SINCE: Final = 11
"""3.5-IV2"""
MADE: Final = "made-"
"""An id that was drawn at random is shown as this and a number."""

Name = Literal["d0", "d1", "d2"]
NAMES: Final = ("d0", "d1", "d2")
Roles = Literal["controller", "broker", "combined"]
Version = Annotated[int, Within(0, 1)]
Flag = Literal["none", "standalone", "initial", "noInitial"]
FIRST_WITH: Final[Mapping[str, tuple[int, int]]] = {
    TRANSACTION: (24, 2), GROUP: (22, 1), ELR: (26, 1), SHARE: (28, 1), STREAMS: (29, 1),
}  # fmt: skip
"""From which metadata.version on a new cluster has which level of a feature"""


# ---- what is in a directory ------------------------------------------------------------------------------------------
class Properties(NamedTuple):
    """What a meta.properties says."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: Annotated[str | None, governs("BST-14")]


class Level(NamedTuple):
    """A FeatureLevelRecord."""

    feature: str
    level: Int16


class Snapshot(NamedTuple):
    """What 0-0.checkpoint says: all of it in control records."""

    kraft_version: int
    voters: tuple[Voter, ...]


@dataclass(frozen=True)
class Directory:
    """The files that a directory has."""

    properties: Annotated[Properties | Literal["unreadable"] | None, governs("BST-1", "BST-4", "BST-3")] = None
    """meta.properties"""
    bootstrap: Annotated[tuple[Level | Credential, ...] | None, governs("BST-5", "BST-8", "BST-17")] = None
    """bootstrap.checkpoint"""
    snapshot: Annotated[Snapshot | None, governs("BST-12", "BST-13", "BST-15")] = None
    """0-0.checkpoint, in its folder __cluster_metadata-0"""

    @property
    def exists(self) -> bool:
        """Whether it has any file."""
        return self != NOTHING


NOTHING: Final = Directory()


@dataclass(frozen=True)
class Storage:
    """The state: the directories of one node, and all that a recording shows of them."""

    d0: Directory = NOTHING
    d1: Directory = NOTHING
    d2: Directory = NOTHING

    def of(self, name: str) -> Directory:
        """That directory."""
        found: Directory = getattr(self, name)
        return found


def initial() -> Storage:
    """Nothing is there."""
    return Storage()


def observe(state: Storage) -> Storage:
    """All of it."""
    return state


machine = Machine("bootstrap", initial, observe)


def with_names(state: Storage) -> Storage:
    """The ids that were drawn at random, called by numbers in the order in which they stand."""
    names: dict[str, str] = {}

    def named(id: str | None) -> str | None:
        return names.setdefault(id, f"{MADE}{len(names) + 1}") if id is not None and id.startswith(MADE) else id

    made: dict[str, Directory] = {}
    for name in NAMES:
        d = state.of(name)
        if isinstance(d.properties, Properties):
            d = replace(d, properties=d.properties._replace(directory_id=named(d.properties.directory_id)))
        if d.snapshot is not None:
            members = tuple(v._replace(directory_id=named(v.directory_id) or "") for v in d.snapshot.voters)
            d = replace(d, snapshot=d.snapshot._replace(voters=members))
        made[name] = d
    return Storage(**made)


# ---- what is asked ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Request:
    """What format is asked for, as far as it could be read."""

    roles: str
    node_id: int
    cluster_id: str
    directories: tuple[str, ...]
    metadata_directory: str
    dynamic: bool
    """controller.quorum.voters is empty"""
    ignore_formatted: bool
    release: int | None
    levels: Mapping[str, int]
    voters: tuple[Voter, ...]
    """none, if none are given"""
    scram: Sequence[str]
    unstable: bool


@states(without=ONE_CALL)
def asked_level(text: str) -> Level | Refused:
    """BST-6: A level is asked for as `feature=level`, blanks around both left out; of two for one feature the last
    counts. Without an equals sign, or with a level that is no number of 16 bits, it is refused.
    [StorageTool.parseNameAndLevel, Kafka 4.3.0]"""
    name, equals, level = text.partition("=")
    if not equals:
        message = f"Can't parse feature=level string {text}: equals sign not found."
        return Refused("BST-6", RUNTIME, message)
    number = integer(trimmed(level), 2**15 - 1)
    if number is None:
        message = f"Can't parse feature=level string {text}: unable to parse {trimmed(level)} as a short."
        return Refused("BST-6", RUNTIME, message)
    return Level(trimmed(name), number)


@states(without=ONE_CALL)
def refused_quorum(dynamic: bool, flag: str, controls: bool) -> Refused | None:
    """BST-11: A quorum is static, if controller.quorum.voters says who its voters are, or dynamic. --standalone and
    --initial-controllers are refused if it is static; --standalone of a node that is no controller; and a controller of
    a dynamic quorum has to say one of them, or --no-initial-controllers. [{CHAPTER}; KIP-853; {TOOL}]"""
    if not dynamic and flag in ("standalone", "initial"):
        message = (
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
            "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
            "controller.quorum.bootstrap.servers instead."
        )
        return Refused("BST-11", TERSE, message)
    if flag == "standalone" and not controls:
        return Refused("BST-11", TERSE, "You can only use --standalone on a controller.")
    if dynamic and controls and flag == "none":
        message = (
            "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
            "--standalone, --initial-controllers, or --no-initial-controllers."
        )
        return Refused("BST-11", TERSE, message)
    return None


# ---- metadata.version and features -----------------------------------------------------------------------------------
@states(without=ONE_CALL)
def release_of(asked: Request) -> int | Refused:
    """BST-7: The metadata.version is the one that --release-version or a level for metadata.version says, both are
    refused; without one it is the newest that is stable, or with unstable ones allowed the newest. One that is not
    stable is refused unless they are allowed. [{CHAPTER}; {CLASS}, calculateEffectiveReleaseVersion]"""
    level = asked.levels.get(METADATA)
    if level is None and asked.release is None:
        return TESTING if asked.unstable else STABLE
    if level is not None and asked.release is not None:
        message = "Use --release-version instead of --feature metadata.version=X to avoid ambiguity."
        return Refused("BST-7", FORMATTER, message)
    if level is not None and version_name(level) is None:
        message = f"No MetadataVersion with feature level {level}. Valid feature levels are from 7 to 31."
        return Refused("BST-7", ILLEGAL_ARGUMENT, message)
    found = asked.release if level is None else level
    assert found is not None
    if found > STABLE and not asked.unstable:
        return Refused("BST-7", FORMATTER, f"metadata.version {version_name(found)} is not yet stable.")
    return found


@states(without=ONE_CALL)
def kraft_level(asked: Request) -> int | Refused:
    """BST-12: The kraft.version is 1 if the quorum is dynamic, also of a node that is given no voters, and 0 if it is
    static; to ask for another is refused. [{CHAPTER}; KIP-853; {CLASS}, effectiveKRaftFeatureLevel]"""
    level = asked.levels.get(KRAFT)
    if level is None:
        return int(asked.dynamic)
    if level == 0 and asked.dynamic:
        message = (
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the flags --standalone, "
            "--initial-controllers, or --no-initial-controllers is used. For dynamic controllers support, try removing "
            "the --feature flag for kraft.version."
        )
        return Refused("BST-12", FORMATTER, message)
    if level != 0 and not asked.dynamic:
        message = (
            f"Cannot set kraft.version to {level} unless controller.quorum.voters is empty and one of the flags "
            "--standalone, --initial-controllers, or --no-initial-controllers is used. For dynamic controllers "
            "support, try using one of --standalone, --initial-controllers, or --no-initial-controllers and removing "
            "controller.quorum.voters."
        )
        return Refused("BST-12", FORMATTER, message)
    return level


@states(without=ONE_CALL)
def levels_of(asked: Request, release: int) -> Mapping[str, int] | Refused:
    """BST-8: Each feature that is not asked for has the level that a new cluster of that metadata.version begins with.
    [{CLASS}, calculateEffectiveFeatureLevels; KIP-1022]

    BST-9: A feature that is not known, a level that it does not have, and one that needs more than is asked for, are
    refused. [{CLASS}, calculateEffectiveFeatureLevels; Feature, Kafka 4.3.0]
    """
    for name in sorted(asked.levels):
        if name != METADATA and name not in PRODUCTION:
            message = f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(PRODUCTION))}"
            return Refused("BST-9", FORMATTER, message)
    kraft = kraft_level(asked)
    if isinstance(kraft, Refused):
        return kraft
    defaults = {f: level if release >= since else 0 for f, (since, level) in FIRST_WITH.items()}
    levels = {**defaults, **asked.levels, METADATA: release, KRAFT: kraft}
    for name in sorted(PRODUCTION):
        level = levels[name]
        if not 0 <= level <= HIGHEST[name]:
            return Refused("BST-9", ILLEGAL_ARGUMENT, f"No feature:{name} with feature level {level}")
        needed, least = NEEDS.get((name, level), (METADATA, 0))
        if levels[needed] < least:
            message = f"{name} could not be set to {level} because it depends on {needed} level {least}"
            return Refused("BST-9", ILLEGAL_ARGUMENT, message)
    return levels


@states(without={"BST-10": ONE_CALL})
def records_of(asked: Request, release: int, levels: Mapping[str, int]) -> tuple[Level | Credential, ...] | Refused:
    """BST-5: The first records are the level of metadata.version; those of the other features by their names, as far as
    they are above 0, but for kraft.version, which has no such record; and the SCRAM credentials in the order in which
    they are asked for. [{CHAPTER}; {METADATA_OF}, fromVersions; {CLASS}, calculateBootstrapMetadata]

    BST-10: SCRAM credentials need metadata.version 3.5-IV2. [KIP-900; {CLASS}, calculateBootstrapMetadata]
    """
    named = (Level(f, levels[f]) for f in sorted(PRODUCTION) if f != KRAFT and levels[f])
    if asked.scram and release < SCRAM_SINCE:
        return Refused("BST-10", FORMATTER, "SCRAM is only supported in metadata.version 3.5-IV2 or later.")
    made = []
    for text in asked.scram:
        found = credential(text)
        if isinstance(found, Refused):
            return found
        made.append(found)
    return (Level(METADATA, release), *named, *made)


# ---- the directories -------------------------------------------------------------------------------------------------
def _readable(state: Storage, names: Sequence[str]) -> dict[str, Properties]:
    found = {name: state.of(name).properties for name in sorted(names)}
    return {name: p for name, p in found.items() if isinstance(p, Properties)}


@states()
def disagreement(state: Storage, asked: Request) -> Refused | None:
    """BST-2: Whatever a readable meta.properties of these directories says of cluster and node must be what is asked
    for, or it is refused; so are a reserved directory id and one that two directories have. The cluster's id may be any
    text. [{CLASS}, doFormat; MetaPropertiesEnsemble.verify, Kafka 4.3.0]"""
    seen: dict[str, str] = {}
    for name, p in _readable(state, asked.directories).items():
        path = f"$DIR/{name}/meta.properties"
        if p.cluster_id is not None and p.cluster_id != asked.cluster_id:
            message = f"Invalid cluster.id in: {path}. Expected {asked.cluster_id}, but read {p.cluster_id}"
            return Refused("BST-2", RUNTIME, message)
        if p.node_id is not None and p.node_id != asked.node_id:
            message = (
                f"Stored node id {p.node_id} doesn't match previous node id {asked.node_id} in {path}. If you moved "
                "your data, make sure your configured node id matches. If you intend to create a new node, you should "
                "remove all data in your data directories."
            )
            return Refused("BST-2", RUNTIME, message)
        if p.directory_id is None:
            continue
        if not p.directory_id.startswith(MADE) and reserved(p.directory_id):
            return Refused("BST-2", RUNTIME, f"Invalid reserved directory ID {p.directory_id} found in $DIR/{name}")
        if p.directory_id in seen:
            return Refused("BST-2", RUNTIME)  # the message has an id that may be random
        seen[p.directory_id] = name
    return None


@states()
def formatted_before(state: Storage, asked: Request) -> Refused | None:
    """BST-3: If a directory has a readable meta.properties, format is refused, unless --ignore-formatted is given: such
    directories then stay as they are, whatever is asked for. [{CHAPTER}; {CLASS}, doFormat]

    BST-4: A directory whose meta.properties cannot be read is left as it is, also the metadata directory; if there is
    no other one, format is refused. [{CLASS}, doFormat]
    """
    readable = _readable(state, asked.directories)
    if readable and not asked.ignore_formatted:
        return Refused("BST-3", FORMATTER)  # the message names any of them
    if not readable and all(state.of(name).properties == "unreadable" for name in asked.directories):
        return Refused("BST-4", FORMATTER, "No available log directories to format.")
    return None


@states()
def kind_of(asked: Request, name: str) -> str:
    """BST-15: A directory is formatted as the metadata directory or as a data directory; the metadata directory of a
    dynamic quorum that is given voters as that of a voter, if the node is one of them, or of none.
    [{CLASS}, DirectoryType]"""
    if name != asked.metadata_directory:
        return "data directory"
    if not asked.voters:
        return "metadata directory"
    voter = any(v.node_id == asked.node_id for v in asked.voters)
    return "dynamic metadata voter directory" if voter else "dynamic metadata directory"


@states()
def formatted(
    state: Storage, asked: Request, levels: Mapping[str, int], records: tuple[Level | Credential, ...]
) -> Storage:
    """BST-1: Each directory without a meta.properties gets one of version 1, with the cluster's id, the node's, and
    an id of its own that no other has. [{CHAPTER}; KIP-858; {CLASS}, doFormat]

    BST-13: With voters the metadata directory gets 0-0.checkpoint, in which are kraft.version and the voters, and no
    record of metadata, whatever the chapter says; without voters there is none. A host that is an address of IPv6
    stands there with all its eight numbers. [KIP-853; {CLASS},
    writeDynamicQuorumSnapshot]

    BST-14: The id of a voter's metadata directory is the one that the voters have for it. [KIP-853; {CLASS}, doFormat]

    BST-17: Each directory that is formatted gets bootstrap.checkpoint with the first records, not the metadata
    directory alone: the chapter says that it is a relic that is only read. [{CLASS}, doFormat;
    BootstrapDirectory.writeBinaryFile, Kafka 4.3.0]
    """
    out = {name: state.of(name) for name in NAMES}
    for n, name in enumerate(sorted(asked.directories)):
        if out[name].properties is not None:
            continue
        kind = kind_of(asked, name)
        own = {v.node_id: v.directory_id for v in asked.voters}
        id = own[asked.node_id] if "voter" in kind else f"{MADE}new-{n}"
        snapshot = out[name].snapshot
        if kind.startswith("dynamic"):
            snapshot = Snapshot(levels[KRAFT], tuple(v.in_full for v in asked.voters))
        out[name] = Directory(Properties(1, asked.cluster_id, asked.node_id, id), records, snapshot)
    return with_names(Storage(**out))


@dataclass(frozen=True)
class Outcome:
    """What format says that it has done."""

    metadata_version: Annotated[str | None, governs("BST-7", "BST-24")]
    """None if there was nothing to do"""
    formatted: Annotated[dict[str, str], governs("BST-15")]
    """directory -> what it is"""
    ignored: Annotated[list[str], governs("BST-4")]
    """whose meta.properties cannot be read"""


def _request(
    roles: str, node_id: int, cluster_id: str, directories: Sequence[str], metadata_directory: str, static_voters: bool,
    flag: str, initial_controllers: str, ignore_formatted: bool, release_version: str | None, features: Sequence[str],
    scram: Sequence[str], unstable: bool,
) -> Request | Refused:  # fmt: skip
    """What the tool reads, in its order, up to the first that is refused."""
    release = None if release_version is None else named_version(release_version, unstable)
    if isinstance(release, Refused):
        return release
    levels: dict[str, int] = {}
    for text in features:
        level = asked_level(text)
        if isinstance(level, Refused):
            return level
        levels[level.feature] = level.level
    refusal = refused_quorum(not static_voters, flag, roles != "broker")
    if refusal is not None:
        return refusal
    members = voters(initial_controllers) if flag == "initial" else ()
    if isinstance(members, Refused):
        return members
    if flag == "standalone":
        members = (Voter(node_id, f"{MADE}own", "localhost", STANDALONE_PORT),)
    return Request(
        roles, node_id, cluster_id, tuple(sorted({*directories, metadata_directory})), metadata_directory,
        not static_voters, ignore_formatted, release, levels, members, scram, unstable,
    )  # fmt: skip


def hosts_are_known(initial_controllers: str) -> bool:
    """Whether no name service is asked for a voter's host."""
    found = voters(initial_controllers)
    return isinstance(found, Refused) or all(v.host in ("localhost", "127.0.0.1", "::1") for v in found)


def outcome_of(result: Step[Storage, Outcome]) -> Refused | None:
    """The refusal, if it is one."""
    return result.result if isinstance(result.result, Refused) else None


def whole(d: Directory) -> bool:
    """Whether a directory that has the file of a node has the first records too."""
    return d.properties is None or d.properties == "unreadable" or d.bootstrap is not None


@machine.operation("format", *(f"BST-{n}" for n in (4, 1, 2, 3, *range(5, 18), *range(21, 25))))
@require(lambda directories: len(directories) > 0, "BST-1 there is a directory")
@require(lambda cluster_id: cluster_id.isascii() and cluster_id.strip() != "", "BST-1 an id is ASCII")
@require(
    lambda initial_controllers: hosts_are_known(initial_controllers), "BST-13 hosts are known without a name service"
)
@ensure(
    lambda state, result: outcome_of(result) is None or result.state == state, "BST-16 what is refused changes nothing"
)
@ensure(
    lambda state, result: all(
        (result.state.of(n).properties, result.state.of(n).bootstrap) == ("unreadable", state.of(n).bootstrap)
        for n in NAMES
        if state.of(n).properties == "unreadable"
    ),
    "BST-4 what cannot be read stays",
)
@ensure(
    lambda state, directories, metadata_directory, result: (
        outcome_of(result) is not None
        or all(result.state.of(n).properties is not None for n in {*directories, metadata_directory})
    ),
    "BST-1 every directory has a meta.properties",
)
def format_storage(
    state: Storage,
    roles: Roles,
    node_id: NodeId,
    cluster_id: str,
    directories: Sequence[Name],
    metadata_directory: Name,
    static_voters: bool,
    flag: Flag,
    initial_controllers: str,
    ignore_formatted: bool,
    release_version: str | None,
    features: Sequence[str],
    scram: Sequence[str],
    unstable: bool,
) -> Step[Storage, Outcome]:
    """`kafka-storage format`.

    BST-16: All that is asked for is checked before anything is written: what is refused leaves every directory as it
    was. [{TOOL}; {CLASS}, run]
    """
    asked = _request(
        roles, node_id, cluster_id, directories, metadata_directory, static_voters, flag, initial_controllers,
        ignore_formatted, release_version, features, scram, unstable,
    )  # fmt: skip
    if isinstance(asked, Refused):
        return Step(state, asked)
    release = release_of(asked)
    if isinstance(release, Refused):
        return Step(state, release)
    levels = levels_of(asked, release)
    if isinstance(levels, Refused):
        return Step(state, levels)
    records = records_of(asked, release, levels)
    if isinstance(records, Refused):
        return Step(state, records)
    for refusal in (disagreement(state, asked), formatted_before(state, asked)):
        if refusal is not None:
            return Step(state, refusal)
    new = [name for name in asked.directories if state.of(name).properties is None]
    failed = [name for name in asked.directories if state.of(name).properties == "unreadable"]
    done = Outcome(version_name(release) if new else None, {name: kind_of(asked, name) for name in new}, failed)
    return Step(formatted(state, asked, levels, records), done)


# ---- what a node reads of it -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class FirstRecords:
    """With what a node begins an empty metadata log."""

    metadata_version: Annotated[int, governs("BST-19")]
    records: Annotated[tuple[Level | Credential, ...], governs("BST-18")]
    by_default: Annotated[bool, governs("BST-20")]
    """there is no file"""


@machine.question("readBootstrap")
@states(without={"BST-19": A_QUESTION, "BST-20": A_QUESTION})
def read_bootstrap(state: Storage, directory: Name) -> FirstRecords | Refused:
    """A node that starts reads the first records of its metadata directory.

    BST-18: The first records are those of bootstrap.checkpoint, without the control records around them.
    [{METADATA_OF}; BootstrapDirectory.read, Kafka 4.3.0]

    BST-19: The metadata.version is that of the last record that says one; without one the file is refused.
    [{CHAPTER}; {METADATA_OF}, fromRecords]

    BST-20: Without the file, the newest metadata.version that is stable is the only record, whatever else is there;
    without the directory there is none. [BootstrapDirectory.read, Kafka 4.3.0]
    """
    found = state.of(directory)
    if not found.exists:
        return Refused("BST-20", RUNTIME, f"No such directory as $DIR/{directory}")
    if found.bootstrap is None:
        return FirstRecords(STABLE, (Level(METADATA, STABLE),), True)
    said = [r.level for r in found.bootstrap if isinstance(r, Level) and r.feature == METADATA]
    if not said:
        message = (
            "No FeatureLevelRecord for metadata.version was found in the bootstrap metadata from the binary bootstrap "
            f"metadata file: $DIR/{directory}/bootstrap.checkpoint"
        )
        return Refused("BST-19", RUNTIME, message)
    return FirstRecords(said[-1], found.bootstrap, False)


@machine.question("parseVoters", "BST-21")
def parse_voters(text: str) -> list[Voter] | Refused:
    """The voters that --initial-controllers says, by their ids."""
    found = voters(text)
    return found if isinstance(found, Refused) else list(found)


@machine.question("parseScram", "BST-22", "BST-23")
def parse_scram(text: str) -> Credential | Refused:
    """The credential that --add-scram says."""
    return credential(text)


# ---- what others do to the directories -------------------------------------------------------------------------------
def _with(state: Storage, name: str, change: Callable[[Directory], Directory]) -> Storage:
    return with_names(replace(state, **{name: change(state.of(name))}))


@machine.environment("writeProperties")
@ensure(lambda directory, result: result.of(directory).properties is not None, "BST-3 the directory is formatted")
def write_properties(
    state: Storage, directory: Name, version: Version, cluster_id: str | None, node_id: NodeId | None,
    directory_id: str | None,
) -> Storage:  # fmt: skip
    """A meta.properties comes from elsewhere; of version 1 without cluster or node it cannot be read."""
    said = Properties(version, cluster_id, node_id, directory_id)
    lacks = version == 1 and (cluster_id is None or node_id is None)
    return _with(state, directory, lambda d: replace(d, properties="unreadable" if lacks else said))


@machine.environment("writeBootstrap")
@ensure(lambda directory, result: result.of(directory).bootstrap is not None, "BST-18 there is a file")
def write_bootstrap(state: Storage, directory: Name, levels: Sequence[Level]) -> Storage:
    """A bootstrap.checkpoint comes from elsewhere."""
    return _with(state, directory, lambda d: replace(d, bootstrap=tuple(levels)))


@machine.environment("losesProperties")
@ensure(lambda directory, result: result.of(directory).properties is None, "BST-3 the directory is not formatted")
def loses_properties(state: Storage, directory: Name) -> Storage:
    """The meta.properties of a directory is gone, as if format had been killed before it wrote it."""
    return _with(state, directory, lambda d: replace(d, properties=None))


@machine.environment("remove")
@ensure(lambda directory, result: not result.of(directory).exists, "BST-20 there is no directory")
def remove(state: Storage, directory: Name) -> Storage:
    """A directory is gone."""
    return _with(state, directory, lambda d: NOTHING)
