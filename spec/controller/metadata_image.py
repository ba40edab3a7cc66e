"""The metadata image: the state that the records of a metadata log come to.

Controllers and brokers replay the log, one record after the other, and each comes to the same state: topics with their
partitions, registrations, configurations, features and what else there is. A record that does not fit the state stops a
controller. Behind that the controller keeps invariants, which no replay looks at: they hold after every batch that it
writes. What records look like as bytes is said by the metadata records.

Source: Kafka Internals, ch. 11, 'The replay switch' and 'Invariants & guarantees'; the replay methods of the managers
of the controller, MetadataDelta, PartitionRegistration and MetadataVersion, Kafka 4.3.0.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import A_QUESTION, AT_REST, ONE_CALL, clause, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Refused
from kafkaspec.contract.numbers import Int16, Offset
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, ILLEGAL_STATE
from kafkaspec.spec.common.metadata_schemas import DATA
from kafkaspec.spec.controller.features import HIGHEST, METADATA, NEWEST, OLDEST
from kafkaspec.spec.controller.records import MetadataRecord, is_writable, parsed

PREFIX = "IMG"
TITLE = "Metadata image"

REPLICATION = "ReplicationControlManager, Kafka 4.3.0"
CLUSTER = "ClusterControlManager, Kafka 4.3.0"
REGISTRATION = "PartitionRegistration, Kafka 4.3.0"
VERSIONS = "MetadataVersion, Kafka 4.3.0"

FAILURE: Final = "java.lang.RuntimeException"
NO_SUCH_TOPIC_ID: Final = "org.apache.kafka.common.errors.UnknownTopicIdException"
OTHER_DIRECTORIES: Final = "org.apache.kafka.common.errors.InvalidReplicaDirectoriesException"
NOT_KAFKAS: Final = "none: no controller writes such a record, and no replay looks"
WITHOUT_LEADER, UNCHANGED = -1, -2
"""In the place of a leader."""
RECOVERY_STATES: Final = range(2)
"""Of a leader: recovered, or recovering."""
UNNAMED: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""In the place of a directory."""
SECURITY_PROTOCOLS: Final = range(4)
"""Of an endpoint."""
NOT_IMAGED: Final = "kraft.version"
OF_A_TOPIC: Final = 2

IN_A_DIRECTORY = AT_REST | ONE_CALL
BY_DAMAGE = {"mutant": "about files at rest: what breaks it is damage, made in the tests of the audit"}


# ---- the state -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Partition:
    """What is registered of a partition."""

    replicas: tuple[int, ...]
    directories: tuple[str, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    leader: int
    recovery: int
    leader_epoch: int
    partition_epoch: int
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@dataclass(frozen=True)
class Topic:
    """A topic, and its partitions by number."""

    name: str
    partitions: Mapping[str, Partition] = field(default_factory=dict)


@dataclass(frozen=True)
class Broker:
    """A broker's registration, but for endpoints, features and rack. Directories are sorted, cordoned ones are not."""

    epoch: int
    incarnation: str
    fenced: bool
    shutting_down: bool
    directories: tuple[str, ...]
    cordoned: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Contents:
    """All that records say. Of what no rule looks into there are the keys."""

    topics: Annotated[Mapping[str, Topic], governs("IMG-1", "IMG-2", "IMG-3", "IMG-4", "IMG-5", "IMG-18")] = field(
        default_factory=dict
    )
    """by id"""
    brokers: Annotated[Mapping[str, Broker], governs("IMG-6", "IMG-7", "IMG-27", "IMG-28")] = field(
        default_factory=dict
    )
    features: Annotated[Mapping[str, int], governs("IMG-8")] = field(default_factory=dict)
    next_producer_id: Annotated[int | None, governs("IMG-9")] = None
    configs: Annotated[Mapping[str, str], governs("IMG-10", "IMG-4")] = field(default_factory=dict)
    """by type, name of the resource, and name"""
    quotas: Annotated[Mapping[str, float], governs("IMG-11")] = field(default_factory=dict)
    """by entity and key"""
    acls: Annotated[Mapping[str, str], governs("IMG-12", "IMG-29")] = field(default_factory=dict)
    """what they say, by id"""
    removable: Annotated[tuple[str, ...], governs("IMG-29")] = ()
    """what ACLs say, once"""
    scram: Annotated[tuple[str, ...], governs("IMG-12")] = ()
    tokens: Annotated[tuple[str, ...], governs("IMG-12")] = ()
    controllers: Annotated[tuple[str, ...], governs("IMG-6", "IMG-28")] = ()


@dataclass(frozen=True)
class Observation:
    """What is compared after every call."""

    contents: Contents
    transaction: Annotated[int | None, governs("IMG-13")]


@dataclass(frozen=True)
class Image:
    """The state. `before`: the contents when the open transaction began."""

    contents: Contents = Contents()
    transaction: int | None = None
    before: Contents | None = None


def initial() -> Image:
    """Of a log without a record."""
    return Image()


def observe(state: Image) -> Observation:
    """Without what a transaction that is aborted would bring back."""
    return Observation(state.contents, state.transaction)


machine = Machine("metadata_image", initial, observe)

Fields = Mapping[str, Any]
Replay = Callable[[Contents, Fields, int], Contents | Refused]


def no(clause: str, error: str = FAILURE) -> Refused:
    return Refused(clause, error)


def with_entry(of: Mapping[str, Any], key: str, value: Any) -> Mapping[str, Any]:
    return {k: v for k, v in sorted({**of, key: value}.items()) if v is not None}


def with_key(of: Sequence[str], key: str) -> tuple[str, ...]:
    return tuple(sorted({*of, key}))


def without_key(of: Sequence[str], key: str) -> tuple[str, ...]:
    return tuple(k for k in of if k != key)


# ---- topics and partitions -------------------------------------------------------------------------------------------
@states(without=ONE_CALL)
def topic(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    """IMG-1: A record of a topic is refused if there is a topic of that name. No controller gives an id a second time
    either; of that the replay takes no notice, and here it is refused too. Brokers take both. [{REPLICATION};
    TopicsDelta, Kafka 4.3.0]"""
    if any(t.name == f["name"] for t in now.topics.values()):
        return no("IMG-1")
    if f["topicId"] in now.topics:
        return no("IMG-1", NOT_KAFKAS)
    return replace(now, topics=with_entry(now.topics, f["topicId"], Topic(f["name"])))


def directories_of(given: Sequence[str] | None, replicas: int) -> tuple[str, ...]:
    """One a replica; unnamed, if none has a name."""
    return (UNNAMED,) * replicas if given is None or all(d == UNNAMED for d in given) else tuple(given)


def registered(f: Fields) -> Partition:
    """What a record of a whole partition says."""
    return Partition(
        tuple(f["replicas"]), directories_of(f["directories"], len(f["replicas"])), tuple(f["isr"]),
        tuple(f["removingReplicas"]), tuple(f["addingReplicas"]), f["leader"], f["leaderRecoveryState"],
        f["leaderEpoch"], f["partitionEpoch"], tuple(f["eligibleLeaderReplicas"] or ()), tuple(f["lastKnownElr"] or ()),
    )  # fmt: skip


def uneven(f: Fields) -> bool:
    """Whether a record says replicas, and another number of directories."""
    return bool(f["directories"]) and f["replicas"] is not None and len(f["directories"]) != len(f["replicas"])


def misfit(p: Partition) -> Refused | None:
    """Why there is no such partition."""
    if len(p.directories) != len(p.replicas):
        return no("IMG-3", ILLEGAL_ARGUMENT)
    return None if p.recovery in RECOVERY_STATES else no("IMG-3", ILLEGAL_ARGUMENT)


def put(now: Contents, id: str, number: int, p: Partition) -> Contents | Refused:
    """The contents with a partition, if there may be such."""
    if (wrong := misfit(p)) is not None:
        return wrong
    of = now.topics[id]
    after = replace(of, partitions=with_entry(of.partitions, str(number), p))
    return replace(now, topics=with_entry(now.topics, id, after))


@states(without=ONE_CALL)
def partition(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    """IMG-2: What a record says of a topic is refused if no topic has its id, or its name where the record has that;
    and a change of a partition if the topic has none of that number. [{REPLICATION}]

    IMG-18: Neither epoch of a partition goes back. A record of a whole partition that is there already sets both, and
    no replay looks: it would have followers refuse their leader. [KIP-101; KIP-497; {REPLICATION}]
    """
    if f["topicId"] not in now.topics:
        return no("IMG-2")
    if uneven(f):
        return no("IMG-3", OTHER_DIRECTORIES)
    after = registered(f)
    before = now.topics[f["topicId"]].partitions.get(str(f["partitionId"]))
    if before and (after.leader_epoch < before.leader_epoch or after.partition_epoch < before.partition_epoch):
        return misfit(after) or no("IMG-18", NOT_KAFKAS)
    return put(now, f["topicId"], f["partitionId"], after)


def given(value: Any, otherwise: Any) -> Any:
    """What a change says, or what was there."""
    return otherwise if value is None else tuple(value)


@states(without=ONE_CALL)
def partition_change(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    """IMG-3: A change of a partition replaces what it names, and leaves what is null, a leader of -2 and a leader
    recovery state of -1. It raises the partition epoch by 1, and the leader epoch too if it names a leader, be it the
    one that there is. There is a directory for each replica: another number of them is refused. Where none has a name
    they follow the replicas, unless one record says both. A leader has recovered, 0, or is recovering, 1: another state
    is refused. [{REGISTRATION}; LeaderRecoveryState, Kafka 4.3.0; KIP-704]"""
    of = now.topics.get(f["topicId"])
    if of is None or str(f["partitionId"]) not in of.partitions:
        return no("IMG-2")
    if uneven(f):
        return no("IMG-3", OTHER_DIRECTORIES)
    p = of.partitions[str(f["partitionId"])]
    replicas, names = given(f["replicas"], p.replicas), f["leader"] != UNCHANGED
    after = Partition(
        replicas=replicas,
        directories=directories_of(given(f["directories"], p.directories), len(replicas)),
        isr=given(f["isr"], p.isr),
        removing=given(f["removingReplicas"], p.removing),
        adding=given(f["addingReplicas"], p.adding),
        leader=f["leader"] if names else p.leader,
        recovery=p.recovery if f["leaderRecoveryState"] == -1 else f["leaderRecoveryState"],
        leader_epoch=p.leader_epoch + names,
        partition_epoch=p.partition_epoch + 1,
        elr=given(f["eligibleLeaderReplicas"], p.elr),
        last_known_elr=given(f["lastKnownElr"], p.last_known_elr),
    )
    return put(now, f["topicId"], f["partitionId"], after)


@states(without=ONE_CALL)
def remove_topic(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    """IMG-4: With a topic go its partitions and its configurations. [{REPLICATION}; MetadataDelta, Kafka 4.3.0]"""
    gone = now.topics.get(f["topicId"])
    if gone is None:
        return no("IMG-2", NO_SUCH_TOPIC_ID)
    prefix = config_key(OF_A_TOPIC, gone.name, "")
    return replace(
        now,
        topics={id: t for id, t in now.topics.items() if id != f["topicId"]},
        configs={k: v for k, v in now.configs.items() if not k.startswith(prefix)},
    )


@states(without=ONE_CALL)
def clear_elr(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    """IMG-5: A clearing of eligible leader replicas empties these and the last known ones in all partitions of the
    topic of that name, or of all topics if the name is empty; where there were some, the partition epoch rises by 1.
    [{REPLICATION}; KIP-966]"""
    name = f["topicName"]
    if name and all(t.name != name for t in now.topics.values()):
        return no("IMG-2")

    def cleared(p: Partition) -> Partition:
        some = p.elr or p.last_known_elr
        return replace(p, elr=(), last_known_elr=(), partition_epoch=p.partition_epoch + 1) if some else p

    return replace(
        now,
        topics={
            id: replace(t, partitions={n: cleared(p) for n, p in t.partitions.items()}) if name in ("", t.name) else t
            for id, t in now.topics.items()
        },
    )


# ---- brokers and controllers -----------------------------------------------------------------------------------------
def in_order(directories: Iterable[str]) -> tuple[str, ...]:
    """As Kafka sorts them: by two numbers of 64 bits, each with a sign."""
    return tuple(sorted(directories, key=lambda id: struct.unpack(">qq", base64.urlsafe_b64decode(id + "=="))))


@states(without=ONE_CALL)
def unheard(endpoints: Iterable[Fields], *, named: bool) -> Refused | None:
    """Why nobody listens there; `named`: whether each must have a name.

    IMG-28: The security protocol of a registration's endpoint is one of the numbers 0 to 3, and an endpoint of a broker
    has a name: else the registration is refused. Brokers take a broker's protocol that there is not, and can write no
    snapshot then. [ListenerInfo, BrokerRegistration and ControllerRegistration, Kafka 4.3.0]
    """
    if any(e["securityProtocol"] not in SECURITY_PROTOCOLS for e in endpoints):
        return no("IMG-28")
    return no("IMG-28", ILLEGAL_ARGUMENT) if named and any(not e["name"] for e in endpoints) else None


@states(without=ONE_CALL)
def misplaced(now: Contents, broker: int, directories: Sequence[str]) -> Refused | None:
    """Why they are not that broker's directories.

    IMG-27: A log directory is that of one registered broker: a registration, or a change of one, that names a directory
    of another broker is refused. A broker names a directory once. Of that a replay takes no notice until the next
    record that changes or ends the registration, and here it is refused at once. Brokers look at neither. [{CLUSTER},
    registerBroker and updateDirectories; KIP-858]
    """
    others = {d for id, b in now.brokers.items() if id != str(broker) for d in b.directories}
    if not others.isdisjoint(directories):
        return no("IMG-27", ILLEGAL_STATE)
    return no("IMG-27", NOT_KAFKAS) if len({*directories}) < len(directories) else None


@states(without=ONE_CALL)
def register_broker(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    """IMG-6: A registration takes the place of the one before; its directories are in no order. The epoch of a broker
    never goes back, and is no offset above that of its record: it is the offset that the log had come to. No replay
    looks at either. [{CLUSTER}; BrokerRegistration, Kafka 4.3.0; KIP-631; KAFKA-16952]"""
    wrong = unheard(f["endPoints"], named=True) or misplaced(now, f["brokerId"], f["logDirs"])
    if wrong is not None:
        return wrong
    before = now.brokers.get(str(f["brokerId"]))
    if f["brokerEpoch"] > offset or (before is not None and f["brokerEpoch"] < before.epoch):
        return no("IMG-6", NOT_KAFKAS)
    after = Broker(
        f["brokerEpoch"], f["incarnationId"], f["fenced"], f["inControlledShutdown"], in_order(f["logDirs"]),
        given(f["cordonedLogDirs"], None),
    )  # fmt: skip
    return replace(now, brokers=with_entry(now.brokers, str(f["brokerId"]), after))


def register_controller(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    wrong = unheard(f["endPoints"], named=False)
    return wrong or replace(now, controllers=with_key(now.controllers, str(f["controllerId"])))


def change_broker(now: Contents, id: int, epoch: int, **changes: Any) -> Contents | Refused:
    before = now.brokers.get(str(id))
    if before is None or before.epoch != epoch:
        return no("IMG-7")
    wrong = misplaced(now, id, changes.get("directories", ()))
    return wrong or replace(now, brokers=with_entry(now.brokers, str(id), replace(before, **changes)))


def unregister_broker(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    found = change_broker(now, f["brokerId"], f["brokerEpoch"])
    if isinstance(found, Refused):
        return found
    return replace(found, brokers=with_entry(found.brokers, str(f["brokerId"]), None))


@states(without=ONE_CALL)
def registration_change(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    """IMG-7: What fences, unfences, changes or ends a registration names its broker and its epoch, and is refused if
    none is registered so. A change fences with 1, unfences with -1 and leaves with 0; it begins a controlled shutdown
    with 1; directories that it names, if any, are the broker's, in no order, and cordoned ones if it does not say null.
    The end of one that there is not is taken by brokers. [{CLUSTER}; ClusterDelta, Kafka 4.3.0; KIP-841; KIP-858]"""
    if f["fenced"] not in (-1, 0, 1) or f["inControlledShutdown"] not in (0, 1):
        return no("IMG-7", ILLEGAL_STATE)
    changes: dict[str, Any] = {}
    if f["fenced"]:
        changes["fenced"] = f["fenced"] == 1
    if f["inControlledShutdown"]:
        changes["shutting_down"] = True
    if f["logDirs"]:
        changes["directories"] = in_order(f["logDirs"])
    if f["cordonedLogDirs"] is not None:
        changes["cordoned"] = tuple(f["cordonedLogDirs"])
    return change_broker(now, f["brokerId"], f["brokerEpoch"], **changes)


# ---- the others ------------------------------------------------------------------------------------------------------
@states(without=ONE_CALL)
def feature_level(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    """IMG-8: A level of a feature that the release does not know is refused; a level of 0 is none. One of kraft.version
    says nothing: control records do. Brokers refuse a metadata.version alone. [FeatureControlManager and FeaturesDelta,
    Kafka 4.3.0; KAFKA-18979]"""
    name, level = f["name"], f["featureLevel"]
    least, most = (OLDEST, NEWEST) if name == METADATA else (0, HIGHEST.get(name, 0))
    if not least <= level <= most:
        return no("IMG-8")
    if name == NOT_IMAGED:
        return now
    return replace(now, features=with_entry(now.features, name, level or None))


@states(without=ONE_CALL)
def producer_ids(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    """IMG-9: The next producer id rises with each record of it; another one is refused. Brokers take it.
    [ProducerIdControlManager and ProducerIdsDelta, Kafka 4.3.0]"""
    if now.next_producer_id is not None and f["nextProducerId"] <= now.next_producer_id:
        return no("IMG-9")
    return replace(now, next_producer_id=f["nextProducerId"])


def config_key(type: int, resource: str, name: str) -> str:
    """The resource in JSON: its name may be any text."""
    return f"{type}/{json.dumps(resource, ensure_ascii=False)}/{name}"


@states(without=ONE_CALL)
def config(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    """IMG-10: A configuration's record sets it, and takes it away if the value is null. [ConfigurationControlManager,
    Kafka 4.3.0]"""
    key = config_key(f["resourceType"], f["resourceName"], f["name"])
    return replace(now, configs=with_entry(now.configs, key, f["value"]))


def quota_key(entity: Iterable[tuple[str, str | None]], key: str) -> str:
    """The entity in JSON: a name may be any text, and null is another one."""
    return f"{json.dumps(dict(entity), ensure_ascii=False)}/{key}"


@states(without=ONE_CALL)
def client_quota(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    """IMG-11: A client quota's record sets the entity's quota of that key, or takes it away if it says so; in which
    order the entity's parts stand says nothing, but that of two of one type the last counts.
    [ClientQuotaControlManager, Kafka 4.3.0]"""
    parts = {e["entityType"]: e["entityName"] for e in f["entity"]}
    key = quota_key(sorted(parts.items()), f["key"])
    return replace(now, quotas=with_entry(now.quotas, key, None if f["remove"] else f["value"]))


def scram_key(f: Fields) -> str:
    return f"{f['name']}/{f['mechanism']}"


def acl_said(f: Fields) -> str:
    """What an ACL says, in JSON: all of its record but the id."""
    return json.dumps({k: v for k, v in f.items() if k != "id"}, ensure_ascii=False, sort_keys=True)


def put_acl(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    said = acl_said(f)
    return replace(now, acls=with_entry(now.acls, f["id"], said), removable=with_key(now.removable, said))


@states(without=ONE_CALL)
def remove_acl(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    """IMG-12: An ACL has an id, a SCRAM credential a user and a mechanism, a delegation token an id; a record of one
    that is there replaces it. The removal of an ACL or of a credential that is not there is refused, that of a token is
    not. Brokers take that of a credential too. [AclControlManager, ScramControlManager and
    DelegationTokenControlManager, Kafka 4.3.0]

    IMG-29: What ACLs say is kept beside them, once: the record of an ACL adds it, and the removal of one takes it away,
    or is refused if it is not there any more. So of two ACLs that say the same, one can be removed. No controller
    writes the second, and brokers do not look. [AclControlManager, Kafka 4.3.0]
    """
    said = now.acls.get(f["id"])
    if said is None:
        return no("IMG-12")
    if said not in now.removable:
        return no("IMG-29")
    return replace(now, acls=with_entry(now.acls, f["id"], None), removable=without_key(now.removable, said))


def remove_scram(now: Contents, f: Fields, offset: int) -> Contents | Refused:
    key = scram_key(f)
    return replace(now, scram=without_key(now.scram, key)) if key in now.scram else no("IMG-12")


REPLAYS: Final[Mapping[str, Replay]] = {
    "RegisterBrokerRecord": register_broker,
    "UnregisterBrokerRecord": unregister_broker,
    "TopicRecord": topic,
    "PartitionRecord": partition,
    "ConfigRecord": config,
    "PartitionChangeRecord": partition_change,
    "FenceBrokerRecord": lambda now, f, offset: change_broker(now, f["id"], f["epoch"], fenced=True),
    "UnfenceBrokerRecord": lambda now, f, offset: change_broker(now, f["id"], f["epoch"], fenced=False),
    "RemoveTopicRecord": remove_topic,
    "DelegationTokenRecord": lambda now, f, offset: replace(now, tokens=with_key(now.tokens, f["tokenId"])),
    "UserScramCredentialRecord": lambda now, f, offset: replace(now, scram=with_key(now.scram, scram_key(f))),
    "FeatureLevelRecord": feature_level,
    "ClientQuotaRecord": client_quota,
    "ProducerIdsRecord": producer_ids,
    "BrokerRegistrationChangeRecord": registration_change,
    "AccessControlEntryRecord": put_acl,
    "RemoveAccessControlEntryRecord": remove_acl,
    "NoOpRecord": lambda now, f, offset: now,
    "ZkMigrationStateRecord": lambda now, f, offset: now,
    "RemoveUserScramCredentialRecord": remove_scram,
    "RemoveDelegationTokenRecord": lambda now, f, offset: replace(now, tokens=without_key(now.tokens, f["tokenId"])),
    "RegisterControllerRecord": register_controller,
    "ClearElrRecord": clear_elr,
}
"""How each kind of record is replayed, but for those of metadata transactions."""


@states(without=ONE_CALL)
def transact(state: Image, name: str, offset: int) -> Image | Refused:
    """IMG-13: A metadata transaction begins where none is open; it ends or is aborted where one is: else the record is
    refused. What is aborted is as if its records had not been. In a snapshot there is none of the three records.
    [OffsetControlManager, Kafka 4.3.0; KIP-868]"""
    if (name == "BeginTransactionRecord") == (state.transaction is not None):
        return no("IMG-13")
    if name == "BeginTransactionRecord":
        return Image(state.contents, offset, state.contents)
    return Image(state.before or Contents()) if name == "AbortTransactionRecord" else Image(state.contents)


@machine.operation("replay", *(f"IMG-{n}" for n in (*range(1, 14), 18, 27, 28, 29)))
@require(lambda record: is_writable(record, DATA), "MRC-9 a record of Kafka's, with all fields")
@ensure(
    lambda state, result: isinstance(result, Refused) or result.transaction is None or result.before is not None,
    "IMG-13 while a transaction is open it is known what was before",
)
def replay(state: Image, record: MetadataRecord, offset: Offset) -> Image | Refused:
    """The record at that offset of the log is replayed."""
    name = DATA[record.type].name
    fields = parsed(DATA[record.type].fields, record.fields)
    if name not in REPLAYS:
        return transact(state, name, offset)
    after = REPLAYS[name](state.contents, fields, offset)
    return after if isinstance(after, Refused) else replace(state, contents=after)


# ---- invariants ------------------------------------------------------------------------------------------------------
class Breach(NamedTuple):
    """A partition, and the invariant that it breaks."""

    clause: str
    topic_id: str
    partition: int


@states(without=ONE_CALL)
def syncs_what_is_none(p: Partition) -> bool:
    """IMG-14: Each in-sync replica of a partition is one of its replicas. [Kafka Internals, ch. 11; AlterPartition in
    {REPLICATION}]"""
    return any(member not in p.replicas for member in p.isr)


@states(without=ONE_CALL)
def leads_out_of_sync(p: Partition) -> bool:
    """IMG-15: The leader of a partition, if there is one, is an in-sync replica. [PartitionChangeBuilder, Kafka
    4.3.0]"""
    return p.leader != WITHOUT_LEADER and p.leader not in p.isr


@states(without=ONE_CALL)
def is_eligible_in_sync(p: Partition) -> bool:
    """IMG-16: No eligible leader replica is an in-sync one. Kafka logs an error, and goes on. [{REPLICATION};
    KIP-966]"""
    return any(member in p.isr for member in p.elr)


@states(without=ONE_CALL)
def leads_unregistered(p: Partition, brokers: Mapping[str, Broker]) -> bool:
    """IMG-17: The leader of a partition, if there is one, is registered, and not fenced. Controllers before 4.1 may
    leave it so when a broker comes back at once: the audit asks it where the metadata.version says 4.1-IV0 or above.
    [{REPLICATION}; KAFKA-18106]"""
    leader = brokers.get(str(p.leader))
    return p.leader != WITHOUT_LEADER and (leader is None or leader.fenced)


@states(without=ONE_CALL)
def names_twice(p: Partition) -> bool:
    """IMG-26: No replica of a partition is named twice. Controllers refuse an assignment that does so, and what a
    reassignment adds and removes are sets. [{REPLICATION}, validateManualPartitionAssignment;
    PartitionReassignmentReplicas, Kafka 4.3.0]"""
    return len({*p.replicas}) < len(p.replicas)


@states(without=ONE_CALL)
def counts_twice(p: Partition) -> bool:
    """IMG-30: No broker is named twice among a partition's in-sync replicas, or among its eligible leader replicas, or
    among the last known ones. A leader that asks for such in-sync replicas is refused, and the others are made of sets.
    [Replicas.validateIsr and PartitionChangeBuilder, Kafka 4.3.0]"""
    return any(len({*of}) < len(of) for of in (p.isr, p.elr, p.last_known_elr))


@states(without=ONE_CALL)
def reassigns_what_is_none(p: Partition) -> bool:
    """IMG-31: What a reassignment adds and what it removes are replicas of the partition, all of them, until it ends.
    [PartitionReassignmentReplicas, PartitionReassignmentRevert and PartitionChangeBuilder, Kafka 4.3.0; KIP-455]"""
    return not {*p.adding, *p.removing} <= {*p.replicas}


def broken(p: Partition, brokers: Mapping[str, Broker]) -> list[str]:
    """The invariants that a partition breaks."""
    wrong = {
        "IMG-14": syncs_what_is_none(p),
        "IMG-15": leads_out_of_sync(p),
        "IMG-16": is_eligible_in_sync(p),
        "IMG-17": leads_unregistered(p, brokers),
        "IMG-26": names_twice(p),
        "IMG-30": counts_twice(p),
        "IMG-31": reassigns_what_is_none(p),
    }
    return [clause for clause, is_broken in wrong.items() if is_broken]


INVARIANTS: Final = ("IMG-14", "IMG-15", "IMG-16", "IMG-17", "IMG-26", "IMG-30", "IMG-31")
"""of a partition"""


@machine.question("breaches", *INVARIANTS)
def breaches(state: Image) -> tuple[Breach, ...]:
    """Every invariant that is broken in the state, asked of every partition."""
    return tuple(
        Breach(clause, id, int(number))
        for clause in INVARIANTS
        for id, of in sorted(state.contents.topics.items())
        for number, p in sorted(of.partitions.items(), key=lambda n: int(n[0]))
        if clause in broken(p, state.contents.brokers)
    )


FROM: Final[Mapping[str, Mapping[int, int]]] = {
    "RegisterBrokerRecord": {7: 1, 8: 2, 17: 3, 30: 4},
    "PartitionRecord": {7: 0, 17: 1, 23: 2},
    "PartitionChangeRecord": {7: 0, 17: 1, 23: 2},
    "BrokerRegistrationChangeRecord": {7: 1, 17: 2, 30: 3},
    "UserScramCredentialRecord": {11: 0},
    "BeginTransactionRecord": {13: 0},
    "DelegationTokenRecord": {14: 0},
    "RegisterControllerRecord": {15: 0},
    "ClearElrRecord": {23: 0},
}
"""The highest version that records of a kind have, from which metadata.version on; below the first there are none."""


@machine.question("allows", "IMG-19")
@states(without=A_QUESTION)
@require(lambda type: type in DATA, "MRC-3 a type that the release has")
@require(lambda level: level is None or OLDEST <= level <= NEWEST, "IMG-8 a metadata.version that the release knows")
def allows(type: Int16, version: Int16, level: Int16 | None) -> bool:
    """Whether a record of this type and version may stand in a log at that metadata.version.

    IMG-19: The metadata.version says which kinds of records there are, and which highest version each has; a record of
    a higher one is one that nodes of that level cannot read. Before the log has said its metadata.version, the
    release's own versions count. [{VERSIONS}; KIP-584; KIP-841; KIP-858; KIP-868; KIP-966; KIP-1066]
    """
    message = DATA[type]
    if level is None or message.name not in FROM:
        return version <= message.highest
    highest = max((v for first, v in FROM[message.name].items() if first <= level), default=-1)
    return version <= highest


# ---- files at rest ---------------------------------------------------------------------------------------------------
clause(
    "IMG-20",
    """A metadata transaction that a controller leaves open is aborted by the next one: the first record of data in a
    later epoch does it. And no snapshot ends within a transaction.""",
    source="ActivationRecordsGenerator and MetadataBatchLoader, Kafka 4.3.0; KIP-868",
    without=IN_A_DIRECTORY | BY_DAMAGE | {"spec": "about epochs of a log at rest, which a replay does not see"},
)
clause(
    "IMG-21",
    """A snapshot has what the log's records up to its end offset come to, in any order: the level of kraft.version
    and the voters, which control records say, among it. What its metadata.version has
    no place for is left out: directories, registrations of controllers, eligible leader replicas. So snapshots of one
    end offset have the same, on every node.""",
    source="MetadataImage, Kafka 4.3.0; Kafka Internals, ch. 11, 'Determinism'; KIP-630",
    without=ONE_CALL | BY_DAMAGE | {"spec": "about two files at rest"},
)
clause(
    "IMG-22",
    """A snapshot begins with a header and ends with a footer, each a control record, and its batches have the epoch in
    its name. It gets its name when it is complete: 20 digits of its end offset, and 10 of its epoch. It is a file. A
    node does not start with a snapshot's file whose name has no such numbers.""",
    source="RecordsSnapshotWriter, RecordsSnapshotReader and Snapshots, Kafka 4.3.0; KIP-630",
    without=IN_A_DIRECTORY | BY_DAMAGE | {"spec": "about a file at rest"},
)
clause(
    "IMG-23",
    """The file quorum-state is a line of JSON with a version of 0 or 1 and all fields that the version has, and its
    leader epoch is that of the log's last batch or a later one. What stands behind the object is not read. A node does
    not start with one that it cannot read; an epoch that is too low it takes from the log, with a warning.""",
    source="FileQuorumStateStore and QuorumState, Kafka 4.3.0; KIP-595; KIP-853",
    without=IN_A_DIRECTORY | BY_DAMAGE | {"spec": "about a file at rest"},
)
clause(
    "IMG-24",
    """A log that does not begin at offset 0 has a snapshot whose end offset is the log's first or above. A node does
    not start without it: nobody could tell what the records before said.""",
    source="KafkaRaftLog, Kafka 4.3.0; KIP-630",
    without=IN_A_DIRECTORY | BY_DAMAGE | {"spec": "about files at rest"},
)
clause(
    "IMG-25",
    """Each batch has the epoch of the leader that wrote it, 0 or above, and the first one of an epoch that follows
    another is a control batch that begins with the leader's change.""",
    source="LeaderState and BatchAccumulator, Kafka 4.3.0; KIP-595",
    without=IN_A_DIRECTORY | BY_DAMAGE | {"spec": "about the log as such, which a replay does not see"},
)
clause(
    "IMG-32",
    """An epoch has one leader, and it is a voter: all that the log's leader changes and the files quorum-state of all
    nodes say of an epoch is the same, and whoever leads is among the voters of the log's last record of them, or among
    those that the leader's change has itself. A node that hears of another leader in its epoch stops.""",
    source="KafkaRaftClient and LeaderState, Kafka 4.3.0; KIP-595; KIP-853",
    without=IN_A_DIRECTORY | BY_DAMAGE | {"spec": "about control records and files, which a replay does not see"},
)
clause(
    "IMG-33",
    """The level of kraft.version never falls. A record of the voters names one at least, and each once; and it has one
    voter more than the record before, or one less, or the same. Not so the first one in a log, which is what the first
    leader was formatted with. No node looks at it: it would have another majority.""",
    source="AddVoterHandler, RemoveVoterHandler, UpdateVoterHandler and VoterSetHistory, Kafka 4.3.0; KIP-853",
    without=IN_A_DIRECTORY | BY_DAMAGE | {"spec": "about control records, which a replay does not see"},
)
clause(
    "IMG-34",
    """The epoch in a snapshot's name is that of the log's record before its end offset. A snapshot that is further than
    the log, of a later epoch, or of its last one and ending behind it, takes the place of the whole log when the node
    starts: a follower that stopped before it could do so has one, and a node whose log lost its end.""",
    source="KafkaRaftLog, Kafka 4.3.0; KIP-630",
    without=IN_A_DIRECTORY | BY_DAMAGE | {"spec": "about files at rest"},
)
