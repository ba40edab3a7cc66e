"""The state that the records of a metadata log come to, as every controller and broker replays them.

Whoever needs that state uses this module: `MetadataImage.replay` takes one record and changes what it says, or raises
`ReplayError` and changes nothing. Topics, partitions, brokers, controllers, configurations, features, producer ids,
client quotas, ACLs, SCRAM credentials and delegation tokens are plain dictionaries. `led` is the index from a broker to
the partitions that it leads, as the controller has one.

Invariants are checked for what has changed: `check` looks at the partitions that records named since it was called
last, and at those that a broker leads whose registration they changed. `broken` has every breach that there is now.
While a metadata transaction is open each change notes how it is taken back.

Source: the replay methods of the controller's managers, MetadataDelta and PartitionRegistration, Kafka 4.3.0.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kafkaspec.impl.controller.features import ELR_VERSION, FEATURES, KRAFT_VERSION, METADATA_VERSION, VERSIONS, Range
from kafkaspec.impl.controller.records import RUNTIME
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, ILLEGAL_STATE
from kafkaspec.spec.common.metadata_schemas import DATA

UNKNOWN_TOPIC_ID: Final = "org.apache.kafka.common.errors.UnknownTopicIdException"
DIRECTORIES_DIFFER: Final = "org.apache.kafka.common.errors.InvalidReplicaDirectoriesException"
NO_LEADER, NO_LEADER_CHANGE, NO_RECOVERY_CHANGE = -1, -2, -1
MIGRATING: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The directory of a replica that nobody has named."""
TOPIC_RESOURCE: Final = 2
"""Its type."""
RECOVERED, RECOVERING = 0, 1
"""States of a leader."""
PROTOCOLS: Final = range(4)
"""The security protocols that there are."""
TWO_LONGS: Final = struct.Struct(">qq")
FROM_LEVEL: Final[Mapping[int, tuple[tuple[int, int], ...]]] = {
    0: ((7, 1), (8, 2), (17, 3), (30, 4)),
    3: ((7, 0), (17, 1), (23, 2)),
    5: ((7, 0), (17, 1), (23, 2)),
    10: ((14, 0),),
    11: ((11, 0),),
    17: ((7, 1), (17, 2), (30, 3)),
    23: ((13, 0),),
    27: ((15, 0),),
    28: ((23, 0),),
}
"""Of types of records: from which metadata.version on they have which highest version."""
DIRECTORIES, CONTROLLERS = 17, 15
"""The metadata.versions from which on there are directories of replicas, and registrations of controllers."""
NOT_SUPPORTED: Final = Range(0, 0)


class ReplayError(Exception):
    """A record that cannot be replayed: the clause, and Kafka's exception."""

    def __init__(self, clause: str, error: str, message: str) -> None:
        super().__init__(message)
        self.clause, self.error = clause, error


class Partition(NamedTuple):
    """What is registered of a partition. Nobody changes the lists."""

    replicas: list[int]
    directories: list[str]
    isr: list[int]
    removing: list[int]
    adding: list[int]
    leader: int
    recovery: int
    leader_epoch: int
    partition_epoch: int
    elr: list[int]
    last_known_elr: list[int]


@dataclass(slots=True)
class Topic:
    """A topic and its partitions."""

    name: str
    id: str
    partitions: dict[int, Partition] = field(default_factory=dict)


class Broker(NamedTuple):
    """A broker's registration. `said`: endpoints, features, rack, whether it migrates, by their names. The directories
    are sorted, the cordoned ones are not."""

    epoch: int
    incarnation: str
    fenced: bool
    shutting_down: bool
    directories: list[str]
    cordoned: list[str] | None
    said: Mapping[str, Any]


class BreachKey(NamedTuple):
    """An invariant that a partition breaks."""

    clause: str
    topic_id: str
    partition: int


Fields = Mapping[str, Any]


def in_order(directories: list[str]) -> list[str]:
    """Directories as Kafka sorts them: by two numbers with a sign. [IMG-6, IMG-7]"""
    if len(directories) < 2:
        return directories
    return sorted(directories, key=lambda id: TWO_LONGS.unpack(base64.urlsafe_b64decode(id + "==")))


def check_endpoints(endpoints: Iterable[Fields], *, named: bool) -> None:
    """Raises ReplayError. `named`: whether each must have a name. [IMG-28]"""
    for e in endpoints:
        if e["securityProtocol"] not in PROTOCOLS:
            raise ReplayError("IMG-28", RUNTIME, f"endpoint {e['name']} has security protocol {e['securityProtocol']}")
    if named and not all(e["name"] for e in endpoints):
        raise ReplayError("IMG-28", ILLEGAL_ARGUMENT, "an endpoint without a name")


def directories_of(of: list[str] | None, replicas: int) -> list[str]:
    """[IMG-3]"""
    return [MIGRATING] * replicas if of is None or all(d == MIGRATING for d in of) else of


def check_directories(f: Fields) -> None:
    """A record that says replicas and some directories says as many of both. Raises ReplayError. [IMG-3]"""
    directories, replicas = f["directories"], f["replicas"]
    if directories and replicas is not None and len(directories) != len(replicas):
        raise ReplayError("IMG-3", DIRECTORIES_DIFFER, f"{len(directories)} directories of {len(replicas)} replicas")


def partition_of(f: Fields) -> Partition:
    """What a record of a whole partition says. [IMG-3]"""
    check_directories(f)
    replicas = f["replicas"]
    directories = directories_of(f["directories"], len(replicas))
    recovery = f["leaderRecoveryState"]
    if recovery not in (RECOVERED, RECOVERING):
        raise ReplayError("IMG-3", ILLEGAL_ARGUMENT, f"leaderRecoveryState {recovery}")
    return Partition(
        replicas, directories, f["isr"], f["removingReplicas"], f["addingReplicas"], f["leader"],
        recovery, f["leaderEpoch"], f["partitionEpoch"], f["eligibleLeaderReplicas"] or [], f["lastKnownElr"] or [],
    )  # fmt: skip


def merged(before: Partition, f: Fields) -> Partition:
    """A partition after a change of it. [IMG-3]"""
    check_directories(f)
    replicas = before.replicas if f["replicas"] is None else f["replicas"]
    directories = before.directories if f["directories"] is None else f["directories"]
    if len(directories) != len(replicas):
        directories = directories_of(directories, len(replicas))
        if len(directories) != len(replicas):
            raise ReplayError("IMG-3", ILLEGAL_ARGUMENT, f"{len(directories)} directories of {len(replicas)} replicas")
    leader, recovery = f["leader"], f["leaderRecoveryState"]
    if recovery not in (NO_RECOVERY_CHANGE, RECOVERED, RECOVERING):
        raise ReplayError("IMG-3", ILLEGAL_ARGUMENT, f"leaderRecoveryState {recovery}")
    changes = leader != NO_LEADER_CHANGE
    return Partition(
        replicas,
        directories,
        before.isr if f["isr"] is None else f["isr"],
        before.removing if f["removingReplicas"] is None else f["removingReplicas"],
        before.adding if f["addingReplicas"] is None else f["addingReplicas"],
        leader if changes else before.leader,
        before.recovery if recovery == NO_RECOVERY_CHANGE else recovery,
        before.leader_epoch + 1 if changes else before.leader_epoch,
        before.partition_epoch + 1,
        before.elr if f["eligibleLeaderReplicas"] is None else f["eligibleLeaderReplicas"],
        before.last_known_elr if f["lastKnownElr"] is None else f["lastKnownElr"],
    )


def without_elr(before: Partition) -> Partition:
    """[IMG-5]"""
    return before._replace(elr=[], last_known_elr=[], partition_epoch=before.partition_epoch + 1)


def breaches_of(p: Partition, brokers: Mapping[int, Broker]) -> Iterator[str]:
    """The invariants that a partition breaks. [IMG-14, IMG-15, IMG-16, IMG-17, IMG-26, IMG-30, IMG-31]"""
    replicas, _, isr, removing, adding, leader, _, _, _, elr, last_known = p
    if isr != replicas:
        for member in isr:
            if member not in replicas:
                yield "IMG-14"
                break
    if leader != NO_LEADER:
        if leader not in isr:
            yield "IMG-15"
        registered = brokers.get(leader)
        if registered is None or registered.fenced:
            yield "IMG-17"
    if elr and not set(elr).isdisjoint(isr):
        yield "IMG-16"
    if len(set(replicas)) < len(replicas):
        yield "IMG-26"
    if len(set(isr)) < len(isr) or len(set(elr)) < len(elr) or len(set(last_known)) < len(last_known):
        yield "IMG-30"
    if (adding or removing) and not set(replicas).issuperset(adding + removing):
        yield "IMG-31"


def acl_said(f: Fields) -> tuple[Any, ...]:
    """What an ACL says: all of its record but the id. [IMG-29]"""
    return (
        f["resourceType"], f["resourceName"], f["patternType"], f["principal"], f["host"], f["operation"],
        f["permissionType"],
    )  # fmt: skip


def entity_of(f: Fields) -> tuple[tuple[str, str | None], ...]:
    """The parts of a client quota's entity, sorted; of two of one type the last. [IMG-11]"""
    return tuple(sorted({e["entityType"]: e["entityName"] for e in f["entity"]}.items()))


def levels_of(feature: str) -> Range:
    """The levels that this release knows. [IMG-8]"""
    if feature == METADATA_VERSION:
        return Range(VERSIONS[0].level, VERSIONS[-1].level)
    known = FEATURES.get(feature)
    return NOT_SUPPORTED if known is None else Range(0, len(known.levels) - 1)


def highest_version(type: int, level: int | None) -> int:
    """The highest version that a record of the type may have at a metadata.version (None: not known); -1 if there are
    no such records yet. [IMG-19]"""
    steps = FROM_LEVEL.get(type)
    if steps is None or level is None:
        return DATA[type].highest
    return max((version for first, version in steps if first <= level), default=-1)


class MetadataImage:
    """The state after the records so far."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        """by id"""
        self.names: dict[str, str] = {}
        """of topics: the id"""
        self.brokers: dict[int, Broker] = {}
        self.homes: dict[str, int] = {}
        """of log directories: the broker that has registered them"""
        self.controllers: dict[int, Fields] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        """by type and name of the resource"""
        self.features: dict[str, int] = {}
        """levels above 0, and that of metadata.version"""
        self.next_producer_id: int | None = None
        self.quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
        """by entity, sorted"""
        self.acls: dict[str, Fields] = {}
        self.removable: dict[tuple[Any, ...], None] = {}
        """what ACLs say, once"""
        self.scram: dict[tuple[str, int], Fields] = {}
        """by user and mechanism"""
        self.tokens: dict[str, Fields] = {}
        self.led: dict[int, set[tuple[str, int]]] = {}
        """the partitions that a broker leads, by topic id"""
        self.transaction: int | None = None
        """offset of the record that began the open one"""
        self.in_snapshot = False
        """whether the records are those of a snapshot"""
        self.broken: set[BreachKey] = set()
        """all breaches, as `check` saw them last"""
        self._undo: list[Callable[[], None]] | None = None
        self._changed: set[tuple[str, int]] = set()
        self._replay: dict[int, Callable[[Fields, int], None]] = {
            0: self._register_broker,
            1: self._unregister_broker,
            2: self._topic,
            3: self._partition,
            4: self._config,
            5: self._partition_change,
            7: lambda f, offset: self._change_broker(f["id"], f["epoch"], fenced=True),
            8: lambda f, offset: self._change_broker(f["id"], f["epoch"], fenced=False),
            9: self._remove_topic,
            10: lambda f, offset: self._put(self.tokens, f["tokenId"], f),
            11: lambda f, offset: self._put(self.scram, (f["name"], f["mechanism"]), f),
            12: self._feature_level,
            14: self._client_quota,
            15: self._producer_ids,
            17: self._registration_change,
            18: self._acl,
            19: self._remove_acl,
            20: self._nothing,
            21: self._nothing,
            22: self._remove_scram,
            23: self._begin_transaction,
            24: self._end_transaction,
            25: self._abort_transaction,
            26: lambda f, offset: self._take(self.tokens, f["tokenId"]),
            27: self._register_controller,
            28: self._clear_elr,
        }

    @property
    def metadata_version(self) -> int | None:
        """Its level; None before a record has said it."""
        return self.features.get(METADATA_VERSION)

    def replay(self, type: int, fields: Fields, offset: int) -> None:
        """Take a record of that type, at that offset. Raises ReplayError."""
        self._replay[type](fields, offset)

    # ---- changes, and how they are taken back
    def _put(self, of: MutableMapping[Any, Any], key: Any, value: Any) -> None:
        if self._undo is not None:
            self._undo.append(_restoring(of, key))
        of[key] = value

    def _take(self, of: MutableMapping[Any, Any], key: Any) -> None:
        if self._undo is not None:
            self._undo.append(_restoring(of, key))
        of.pop(key, None)

    def _set(self, topic: Topic, number: int, after: Partition | None) -> None:
        """A partition is registered so, or not any more."""
        before = topic.partitions.get(number)
        if self._undo is not None:
            self._undo.append(lambda: self._set(topic, number, before))
        key = topic.id, number
        if before is not None and (after is None or after.leader != before.leader):
            self.led[before.leader].discard(key)
        if after is None:
            del topic.partitions[number]
        else:
            topic.partitions[number] = after
            if before is None or after.leader != before.leader:
                self.led.setdefault(after.leader, set()).add(key)
        self._changed.add(key)

    def _set_broker(self, id: int, after: Broker | None) -> None:
        before = self.brokers.get(id)
        if self._undo is not None:
            self._undo.append(lambda: self._set_broker(id, before))
        for directory in () if before is None else before.directories:
            self.homes.pop(directory, None)
        if after is None:
            self.brokers.pop(id, None)
        else:
            self.brokers[id] = after
            for directory in after.directories:
                self.homes[directory] = id
        if before is None or after is None or before.fenced != after.fenced:
            self._changed |= self.led.get(id, set())

    # ---- topics and partitions
    def _topic(self, f: Fields, offset: int) -> None:
        """[IMG-1]"""
        name, id = f["name"], f["topicId"]
        if name in self.names:
            raise ReplayError("IMG-1", RUNTIME, f"there is a topic {name} with the id {self.names[name]} already")
        if id in self.topics:
            raise ReplayError("IMG-1", "", f"there is a topic with the id {id} already")
        self._put(self.names, name, id)
        self._put(self.topics, id, Topic(name, id))

    def topic_of(self, id: str) -> Topic:
        """[IMG-2]"""
        found = self.topics.get(id)
        if found is None:
            raise ReplayError("IMG-2", RUNTIME, f"no topic has the id {id}")
        return found

    def _partition(self, f: Fields, offset: int) -> None:
        """[IMG-2, IMG-18]"""
        topic, number = self.topic_of(f["topicId"]), f["partitionId"]
        after = partition_of(f)
        before = topic.partitions.get(number)
        if before is not None and (
            after.leader_epoch < before.leader_epoch or after.partition_epoch < before.partition_epoch
        ):
            raise ReplayError(
                "IMG-18", "", f"leader epoch {after.leader_epoch} and partition epoch {after.partition_epoch} of "
                f"{topic.name}-{number}, which had {before.leader_epoch} and {before.partition_epoch}",
            )  # fmt: skip
        self._set(topic, number, after)

    def _partition_change(self, f: Fields, offset: int) -> None:
        """[IMG-2, IMG-3]"""
        topic, number = self.topic_of(f["topicId"]), f["partitionId"]
        before = topic.partitions.get(number)
        if before is None:
            raise ReplayError("IMG-2", RUNTIME, f"{topic.name} has no partition {number}")
        self._set(topic, number, merged(before, f))

    def _remove_topic(self, f: Fields, offset: int) -> None:
        """[IMG-2, IMG-4]"""
        id = f["topicId"]
        topic = self.topics.get(id)
        if topic is None:
            raise ReplayError("IMG-2", UNKNOWN_TOPIC_ID, f"no topic has the id {id}")
        for number in list(topic.partitions):
            self._set(topic, number, None)
        self._take(self.topics, id)
        self._take(self.names, topic.name)
        self._take(self.configs, (TOPIC_RESOURCE, topic.name))

    def _clear_elr(self, f: Fields, offset: int) -> None:
        """[IMG-2, IMG-5]"""
        name = f["topicName"]
        if name and name not in self.names:
            raise ReplayError("IMG-2", RUNTIME, f"there is no topic {name}")
        for topic in [self.topics[self.names[name]]] if name else list(self.topics.values()):
            for number, p in list(topic.partitions.items()):
                if p.elr or p.last_known_elr:
                    self._set(topic, number, without_elr(p))

    # ---- brokers and controllers
    def _register_broker(self, f: Fields, offset: int) -> None:
        """[IMG-6, IMG-27, IMG-28]"""
        id, epoch, incarnation = f["brokerId"], f["brokerEpoch"], f["incarnationId"]
        check_endpoints(f["endPoints"], named=True)
        self._check_homes(id, f["logDirs"])
        before = self.brokers.get(id)
        if not self.in_snapshot and epoch > offset:
            raise ReplayError("IMG-6", "", f"broker {id} has epoch {epoch}, an offset that is yet to come")
        if before is not None and epoch < before.epoch:
            raise ReplayError("IMG-6", "", f"broker {id} has epoch {epoch}, and had {before.epoch}")
        said = {
            "endPoints": {e["name"]: e for e in f["endPoints"]},
            "features": {x["name"]: x for x in f["features"]},
            "rack": f["rack"],
            "isMigratingZkBroker": f["isMigratingZkBroker"],
        }
        directories, cordoned = in_order(f["logDirs"]), f["cordonedLogDirs"]
        self._set_broker(
            id, Broker(epoch, incarnation, f["fenced"], f["inControlledShutdown"], directories, cordoned, said)
        )

    def _check_homes(self, id: int, directories: list[str]) -> None:
        """[IMG-27]"""
        for directory in directories:
            if (other := self.homes.get(directory, id)) != id:
                raise ReplayError("IMG-27", ILLEGAL_STATE, f"directory {directory} of broker {id} is broker {other}'s")
        if len(set(directories)) < len(directories):
            raise ReplayError("IMG-27", "", f"broker {id} names a directory twice: {directories}")

    def _register_controller(self, f: Fields, offset: int) -> None:
        """[IMG-28]"""
        check_endpoints(f["endPoints"], named=False)
        self._put(self.controllers, f["controllerId"], f)

    def broker_of(self, id: int, epoch: int) -> Broker:
        """[IMG-7]"""
        found = self.brokers.get(id)
        if found is None:
            raise ReplayError("IMG-7", RUNTIME, f"broker {id} is not registered")
        if found.epoch != epoch:
            raise ReplayError("IMG-7", RUNTIME, f"broker {id} is registered with epoch {found.epoch}, not {epoch}")
        return found

    def _unregister_broker(self, f: Fields, offset: int) -> None:
        """[IMG-7]"""
        self.broker_of(f["brokerId"], f["brokerEpoch"])
        self._set_broker(f["brokerId"], None)

    def _change_broker(self, id: int, epoch: int, **changes: Any) -> None:
        """[IMG-7]"""
        self._set_broker(id, self.broker_of(id, epoch)._replace(**changes))

    def _registration_change(self, f: Fields, offset: int) -> None:
        """[IMG-7, IMG-27]"""
        fenced, shutting = f["fenced"], f["inControlledShutdown"]
        if fenced not in (-1, 0, 1) or shutting not in (0, 1):
            raise ReplayError("IMG-7", ILLEGAL_STATE, f"fenced {fenced}, inControlledShutdown {shutting}")
        changes: dict[str, Any] = {}
        if fenced:
            changes["fenced"] = fenced == 1
        if shutting:
            changes["shutting_down"] = True
        if f["logDirs"]:
            self.broker_of(f["brokerId"], f["brokerEpoch"])
            self._check_homes(f["brokerId"], f["logDirs"])
            changes["directories"] = in_order(f["logDirs"])
        if f["cordonedLogDirs"] is not None:
            changes["cordoned"] = f["cordonedLogDirs"]
        self._change_broker(f["brokerId"], f["brokerEpoch"], **changes)

    # ---- the others
    def _feature_level(self, f: Fields, offset: int) -> None:
        """[IMG-8]"""
        name, level = f["name"], f["featureLevel"]
        known = levels_of(name)
        if level not in known:
            raise ReplayError("IMG-8", RUNTIME, f"{name} has level {level}, where {known} is known")
        if name == KRAFT_VERSION:
            return
        if level:
            self._put(self.features, name, level)
        else:
            self._take(self.features, name)

    def _producer_ids(self, f: Fields, offset: int) -> None:
        """[IMG-9]"""
        after, before = f["nextProducerId"], self.next_producer_id
        if before is not None and after <= before:
            raise ReplayError("IMG-9", RUNTIME, f"the next producer id is {after}, and was {before}")
        if self._undo is not None:
            self._undo.append(lambda: setattr(self, "next_producer_id", before))
        self.next_producer_id = after

    def _config(self, f: Fields, offset: int) -> None:
        """[IMG-10]"""
        self._entry(self.configs, (f["resourceType"], f["resourceName"]), f["name"], f["value"])

    def _client_quota(self, f: Fields, offset: int) -> None:
        """[IMG-11]"""
        self._entry(self.quotas, entity_of(f), f["key"], None if f["remove"] else f["value"])

    def _entry(self, of: dict[Any, dict[str, Any]], key: Any, name: str, value: Any) -> None:
        """An entry of one of several dictionaries, of which none is empty. None: it goes."""
        if value is not None:
            if key not in of:
                self._put(of, key, {})
            self._put(of[key], name, value)
        elif key in of:
            self._take(of[key], name)
            if not of[key]:
                self._take(of, key)

    def _acl(self, f: Fields, offset: int) -> None:
        """[IMG-12, IMG-29]"""
        self._put(self.acls, f["id"], f)
        self._put(self.removable, acl_said(f), None)

    def _remove_acl(self, f: Fields, offset: int) -> None:
        """[IMG-12, IMG-29]"""
        if f["id"] not in self.acls:
            raise ReplayError("IMG-12", RUNTIME, f"no ACL has the id {f['id']}")
        said = acl_said(self.acls[f["id"]])
        if said not in self.removable:
            raise ReplayError("IMG-29", RUNTIME, f"the ACL {f['id']} says what another one said that was removed")
        self._take(self.acls, f["id"])
        self._take(self.removable, said)

    def _remove_scram(self, f: Fields, offset: int) -> None:
        """[IMG-12]"""
        key = f["name"], f["mechanism"]
        if key not in self.scram:
            raise ReplayError("IMG-12", RUNTIME, f"user {key[0]} has no credential of mechanism {key[1]}")
        self._take(self.scram, key)

    def _nothing(self, f: Fields, offset: int) -> None:
        """Of a record that says nothing of the state."""

    # ---- metadata transactions
    def _no_snapshot(self, what: str) -> None:
        """[IMG-13]"""
        if self.in_snapshot:
            raise ReplayError("IMG-13", RUNTIME, f"a transaction {what} in a snapshot")

    def _begin_transaction(self, f: Fields, offset: int) -> None:
        """[IMG-13]"""
        self._no_snapshot("begins")
        if self.transaction is not None:
            raise ReplayError("IMG-13", RUNTIME, f"the transaction that began at {self.transaction} is still open")
        self.transaction, self._undo = offset, []

    def _open_transaction(self, what: str) -> list[Callable[[], None]]:
        """[IMG-13]"""
        self._no_snapshot(what)
        if self.transaction is None or self._undo is None:
            raise ReplayError("IMG-13", RUNTIME, f"a transaction {what}, and none is open")
        undo, self.transaction, self._undo = self._undo, None, None
        return undo

    def _end_transaction(self, f: Fields, offset: int) -> None:
        """[IMG-13]"""
        self._open_transaction("ends")

    def _abort_transaction(self, f: Fields, offset: int) -> None:
        """[IMG-13]"""
        for restore in reversed(self._open_transaction("is aborted")):
            restore()

    def keep_transaction(self) -> None:
        """As if the open transaction had ended."""
        self.transaction = self._undo = None

    # ---- invariants
    def check(self) -> list[BreachKey]:
        """The breaches that are new since the last call."""
        new = []
        topics, brokers, broken = self.topics, self.brokers, self.broken
        for id, number in self._changed:
            topic = topics.get(id)
            p = None if topic is None else topic.partitions.get(number)
            now = () if p is None else tuple(breaches_of(p, brokers))
            if not now and not broken:
                continue
            for clause in PARTITION_CLAUSES:
                key = BreachKey(clause, id, number)
                if clause not in now:
                    broken.discard(key)
                elif key not in broken:
                    broken.add(key)
                    new.append(key)
        self._changed.clear()
        return sorted(new)

    def check_all(self) -> set[BreachKey]:
        """All breaches there are, by looking at everything: what `broken` must be."""
        return {
            BreachKey(clause, topic.id, number)
            for topic in self.topics.values()
            for number, p in topic.partitions.items()
            for clause in breaches_of(p, self.brokers)
        }


PARTITION_CLAUSES: Final = ("IMG-14", "IMG-15", "IMG-16", "IMG-17", "IMG-26", "IMG-30", "IMG-31")


def _restoring(of: MutableMapping[Any, Any], key: Any) -> Callable[[], None]:
    """What puts an entry of a dictionary back as it is now."""
    if key not in of:
        return lambda: of.pop(key, None) and None
    before = of[key]
    return lambda: of.__setitem__(key, before)


# ---- two states ------------------------------------------------------------------------------------------------------
class ImagePart(NamedTuple):
    """A part of the state by which two are compared: what it is, in words, and its content by key."""

    what: str
    content: Mapping[Any, Any]


def parts(image: MetadataImage) -> Iterator[ImagePart]:
    """The whole state, part by part. What a snapshot cannot have is left out. [IMG-21]"""
    level = image.metadata_version or VERSIONS[-1].level
    named = level >= DIRECTORIES
    kept = _kept(named, bool(image.features.get(ELR_VERSION)))
    yield ImagePart("topic", {t.name: t.id for t in image.topics.values()})
    yield ImagePart(
        "partition", {f"{t.name}-{n}": kept(p) for t in image.topics.values() for n, p in t.partitions.items()}
    )
    brokers = image.brokers if named else {k: b._replace(directories=[]) for k, b in image.brokers.items()}
    yield ImagePart("broker", brokers)
    controllers = image.controllers if level >= CONTROLLERS else {}
    yield ImagePart("controller", {k: _ordered(v) for k, v in controllers.items()})
    yield ImagePart("feature", image.features)
    yield ImagePart("configuration", {(*k, name): v for k, of in image.configs.items() for name, v in of.items()})
    yield ImagePart("client quota", {(*k, name): v for k, of in image.quotas.items() for name, v in of.items()})
    next_id = -1 if image.next_producer_id is None else image.next_producer_id
    yield ImagePart("producer id", {"next": next_id} if next_id >= 0 else {})
    yield ImagePart("ACL", image.acls)
    yield ImagePart("SCRAM credential", image.scram)
    yield ImagePart("delegation token", image.tokens)


def _kept(directories: bool, elr: bool) -> Callable[[Partition], Partition]:
    """What a snapshot has of a partition."""
    if directories and elr:
        return lambda p: p

    def kept(p: Partition) -> Partition:
        p = p if directories else p._replace(directories=[])
        return p if elr else p._replace(elr=[], last_known_elr=[])

    return kept


def _ordered(f: Fields) -> dict[str, Any]:
    """A controller's registration, endpoints and features by their names."""
    return {k: {x["name"]: x for x in v} if k in ("endPoints", "features") else v for k, v in f.items()}


class ImageDifference(NamedTuple):
    """The first thing in which two states differ; None where one has nothing of that key."""

    what: str
    key: Any
    ours: Any
    theirs: Any


def differences(a: MetadataImage, b: MetadataImage) -> Iterator[ImageDifference]:
    """Everything in which two states differ, in order."""
    for ours, theirs in zip(parts(a), parts(b), strict=True):
        if ours.content != theirs.content:
            for key in sorted(ours.content.keys() | theirs.content.keys(), key=repr):
                x, y = ours.content.get(key), theirs.content.get(key)
                if x != y and not (ours.what == "configuration" and (x is None or y is None) and _unsupported(key)):
                    yield ImageDifference(ours.what, key, x, y)


def _unsupported(key: tuple[int, str, str]) -> bool:
    """Whether nodes of some releases leave that configuration out, since they do not have it. [IMG-10]"""
    type, _, name = key
    return type != BROKER_RESOURCE and not (type == TOPIC_RESOURCE and name in TOPIC_CONFIGS)


BROKER_RESOURCE: Final = 4
TOPIC_CONFIGS: Final = frozenset(
    {
        "cleanup.policy", "compression.type", "delete.retention.ms", "file.delete.delay.ms", "flush.messages",
        "flush.ms", "follower.replication.throttled.replicas", "index.interval.bytes",
        "leader.replication.throttled.replicas", "max.compaction.lag.ms", "max.message.bytes",
        "message.timestamp.type", "min.cleanable.dirty.ratio", "min.compaction.lag.ms", "min.insync.replicas",
        "preallocate", "retention.bytes", "retention.ms", "segment.bytes", "segment.index.bytes", "segment.jitter.ms",
        "segment.ms", "unclean.leader.election.enable",
    }
)  # fmt: skip
"""Those of a topic that every release from 3.3 to 4.3 has."""
