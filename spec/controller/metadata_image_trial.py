"""Metadata image: the arguments that engines try: records that fit the state, and some that do not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from kafkaspec.spec.common.metadata_schemas import DATA
from kafkaspec.spec.controller.features import METADATA
from kafkaspec.spec.controller.metadata_image import Image, machine
from kafkaspec.spec.controller.records import MetadataRecord

IDS: Final = ("AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw")
_DIRECTORIES: Final = ("AAAAAAAAAAAAAAAAAAAACg", "AAAAAAAAAAAAAAAAAAAACw", "AAAAAAAAAAAAAAAAAAAADA")
_BY_NAME: Final = {
    m.name: (m.type, m.highest, {f.name: f.default for f in m.fields if f.tag is None}) for m in DATA.values()
}
"""Type, highest version, and the fields that are always said, with their defaults."""


def made(kind: str, /, **fields: Any) -> MetadataRecord:
    """A record of that name, in its highest version: what is not said is the default."""
    type, highest, always = _BY_NAME[kind]
    return MetadataRecord(type, highest, {**always, **fields})


def _kept(records: Callable[..., Iterator[MetadataRecord]]) -> Callable[..., Sequence[MetadataRecord]]:
    """Made once for the same arguments: most records depend on little of the state."""
    return cache(lambda *args: tuple(records(*args)))


def _partition(id: str, number: int, **of: Any) -> MetadataRecord:
    said = {
        "replicas": [1, 2], "isr": [1, 2], "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0, "topicId": id,
        "partitionId": number,
    }  # fmt: skip
    return made("PartitionRecord", **{**said, **of})


def _change(id: str, number: int, **of: Any) -> MetadataRecord:
    return made("PartitionChangeRecord", topicId=id, partitionId=number, **of)


def _changes(id: str, number: int) -> Iterator[MetadataRecord]:
    said: Sequence[dict[str, Any]] = (
        {"isr": [1]}, {"isr": [2], "leader": 2}, {"leader": -1}, {"leader": 1}, {"isr": [1, 3]},
        {"isr": [], "leader": -1, "eligibleLeaderReplicas": [1, 2]}, {"eligibleLeaderReplicas": [2]},
        {"lastKnownElr": [2]}, {"replicas": [1, 2, 3], "addingReplicas": [3], "directories": list(_DIRECTORIES)},
        {"replicas": [1, 2, 3]}, {"replicas": [1, 2, 1], "directories": []},
        {"directories": list(_DIRECTORIES[:2])}, {"directories": list(_DIRECTORIES)},
        {"isr": [1, 2, 1]}, {"isr": [1], "eligibleLeaderReplicas": [2, 2]}, {"lastKnownElr": [2, 2]},
        {"removingReplicas": [2]}, {"leaderRecoveryState": 1}, {"leaderRecoveryState": 0},
        {"isr": [1, 2], "addingReplicas": [], "removingReplicas": []},
        {"leader": 2}, {"directories": []},
    )  # fmt: skip
    for of in said:
        yield _change(id, number, **of)


@_kept
def _of_partition(id: str, number: int) -> Iterator[MetadataRecord]:
    yield _partition(id, number)
    yield _partition(id, number, directories=list(_DIRECTORIES[:2]), isr=[2], leader=2)
    yield _partition(id, number, partitionEpoch=9, leaderEpoch=9)
    yield _partition(id, number, directories=list(_DIRECTORIES[:1]))
    yield _partition(id, number, eligibleLeaderReplicas=[2], isr=[1], partitionEpoch=20, leaderEpoch=20)
    yield from _changes(id, number)


_OF_2: Final = "__________8AAAAAAAAADQ"
"""A directory's, whose first number is negative"""
_HOMES: Final = {1: (_DIRECTORIES[0], _DIRECTORIES[2]), 2: (_DIRECTORIES[1], _OF_2)}
"""of brokers"""


def _registration_changes(id: int) -> tuple[dict[str, Any], ...]:
    one, two = _HOMES[id]
    return (
        {"fenced": 1}, {"fenced": -1}, {"fenced": 2}, {"inControlledShutdown": 1}, {"inControlledShutdown": 2},
        {"logDirs": [two]}, {"logDirs": [two, one]}, {"logDirs": [one, two]}, {"logDirs": [one, one]},
        {"logDirs": [one, _HOMES[3 - id][0]]}, {"cordonedLogDirs": []}, {"cordonedLogDirs": [two, one]}, {},
    )  # fmt: skip


def _endpoint(name: str = "x", protocol: int = 3) -> dict[str, Any]:
    return {"name": name, "host": "h", "port": 1, "securityProtocol": protocol}


_ENDPOINTS: Final[Sequence[list[dict[str, Any]]]] = (
    [_endpoint()], [_endpoint(), _endpoint("y", 4)], [_endpoint("", 0)],
)  # fmt: skip


def _of_leaders(state: Image) -> Iterator[MetadataRecord]:
    """Often: those that lead are fenced, or another one leads."""
    leaders = set()
    for topic, t in state.contents.topics.items():
        for number, p in t.partitions.items():
            leaders.add(p.leader)
            yield from [_change(topic, int(number), leader=1 if p.leader == 2 else 2)] * 4
    for id, b in state.contents.brokers.items():
        if int(id) in leaders:
            kind = "UnfenceBrokerRecord" if b.fenced else "FenceBrokerRecord"
            yield from [made(kind, id=int(id), epoch=b.epoch)] * 8


def _of_brokers(state: Image, offset: int) -> Iterator[MetadataRecord]:
    for id in (1, 2):
        before = state.contents.brokers.get(str(id))
        yield from _of_broker(id, 7 if before is None else before.epoch, offset)


@_kept
def _of_broker(id: int, epoch: int, offset: int) -> Iterator[MetadataRecord]:
    for e in (epoch, epoch + 1):
        yield made("FenceBrokerRecord", id=id, epoch=e)
        yield made("UnfenceBrokerRecord", id=id, epoch=e)
        yield made("UnregisterBrokerRecord", brokerId=id, brokerEpoch=e)
        for of in _registration_changes(id) if e == epoch else ({}, {"fenced": 2}):
            yield made("BrokerRegistrationChangeRecord", brokerId=id, brokerEpoch=e, **of)
    for e in (epoch - 1, epoch, offset, offset + 1):
        for fenced in (True, False) if e in (epoch, offset) else (False,):
            yield made(
                "RegisterBrokerRecord", brokerId=id, brokerEpoch=e, incarnationId=IDS[e % 3], fenced=fenced,
                inControlledShutdown=e % 2 == 0, logDirs=list(_HOMES[id][: e % 3]),
                cordonedLogDirs=None if fenced else [],
            )  # fmt: skip
    one, two = _HOMES[id]
    for homes in ([two, one], [one, one], [one, _HOMES[3 - id][1]]):
        yield made("RegisterBrokerRecord", brokerId=id, brokerEpoch=offset, fenced=False, logDirs=homes)
    for ends in _ENDPOINTS:
        yield made("RegisterBrokerRecord", brokerId=id, brokerEpoch=offset, fenced=False, endPoints=ends)


def _of_topics(state: Image) -> Iterator[MetadataRecord]:
    for n, id in enumerate(IDS):
        yield made("TopicRecord", name=f"t{n}", topicId=id)
        configured = any(k.startswith(f'2/"t{n}"/') for k in state.contents.configs)
        yield from [made("RemoveTopicRecord", topicId=id)] * (20 if configured else 1)
        yield made("ClearElrRecord", topicName=f"t{n}")
        of = state.contents.topics.get(id)
        numbers = [0] if of is None else [0, 1, 2]
        for number in numbers[: 2 if n else 3]:
            yield from _of_partition(id, number)
            if of is not None and str(number) in of.partitions and of.partitions[str(number)].recovery:
                yield _change(id, number, leaderRecoveryState=2)
                yield _partition(id, number, leaderRecoveryState=-1)
    yield made("TopicRecord", name="t0", topicId=IDS[1])
    yield from [made("TopicRecord", name="other", topicId=IDS[0])] * 4
    yield made("ClearElrRecord", topicName="")


@_kept
def _of_others(now: int) -> Iterator[MetadataRecord]:
    for name, levels in (
        (METADATA, (6, 7, 25, 31, 32)),
        ("transaction.version", (0, 1, 2, 3)),
        ("kraft.version", (0, 1, 2)),
        ("new", (0, 1)),
    ):
        for level in levels:
            yield made("FeatureLevelRecord", name=name, featureLevel=level)
    for next in (now, now + 1000, now - 1):
        yield made("ProducerIdsRecord", brokerId=1, brokerEpoch=7, nextProducerId=next)
    for type, resource in ((2, "t0"), (2, "t1"), (4, "1"), (4, ""), (2, 't0"/x')):
        for value in ("v", "w", None):
            yield made("ConfigRecord", resourceType=type, resourceName=resource, name="k", value=value)
    user, client = {"entityType": "user", "entityName": "u"}, {"entityType": "client-id", "entityName": None}
    other, null = {"entityType": "user", "entityName": "None"}, {"entityType": "user", "entityName": None}
    for entity in ([user, client], [client, user], [user], [other, user], [user, null], [other]):
        for quota in (1.0, 2.0):
            yield made("ClientQuotaRecord", entity=entity, key="k", value=quota, remove=False)
        yield made("ClientQuotaRecord", entity=entity, key="k", value=0.0, remove=True)
    for id in IDS[:2]:
        for name in ("a", "b"):
            yield made("AccessControlEntryRecord", id=id, resourceName=name)
        yield made("RemoveAccessControlEntryRecord", id=id)
    for mechanism in (1, 2):
        yield made("UserScramCredentialRecord", name="u", mechanism=mechanism)
        yield made("RemoveUserScramCredentialRecord", name="u", mechanism=mechanism)
    for token in ("a", "b"):
        yield made("DelegationTokenRecord", tokenId=token)
        yield made("RemoveDelegationTokenRecord", tokenId=token)
    for ends in _ENDPOINTS:
        yield made("RegisterControllerRecord", controllerId=3000, endPoints=ends)
    yield made("NoOpRecord")
    yield made("ZkMigrationStateRecord")


def _in_sequence(state: Image) -> Iterator[MetadataRecord]:
    """What shows only behind several others is asked for more often where they are there: the end of a transaction and
    what it takes back, and what concerns several partitions at once."""
    of, is_open = state.contents, state.transaction is not None
    for name, times in (
        ("BeginTransactionRecord", 2 if is_open else 20),
        ("EndTransactionRecord", 6 if is_open else 2),
        ("AbortTransactionRecord", 20 if is_open else 2),
    ):
        yield from [made(name)] * times
    if is_open:
        yield from [
            made("ProducerIdsRecord", brokerId=1, brokerEpoch=7, nextProducerId=(of.next_producer_id or 0) + 1000)
        ] * 5
    level = 0 if is_open and of.features.get("transaction.version") else 2
    yield from [made("FeatureLevelRecord", name="transaction.version", featureLevel=level)] * 8
    of_elr = {t.name for t in of.topics.values() for p in t.partitions.values() if p.elr or p.last_known_elr}
    yield from [made("ClearElrRecord", topicName="")] * (8 * len(of_elr) ** 2)
    for id, broker in of.brokers.items():
        led = sum(p.leader == int(id) for t in of.topics.values() for p in t.partitions.values())
        if led and not broker.fenced:
            for _ in range(2 * led):
                yield made("UnregisterBrokerRecord", brokerId=int(id), brokerEpoch=broker.epoch)
                yield made("FenceBrokerRecord", id=int(id), epoch=broker.epoch)
    for id, said in of.acls.items():
        if said not in of.removable or [*of.acls.values()].count(said) > 1:
            yield from [made("RemoveAccessControlEntryRecord", id=id)] * 16
        for other in sorted({*IDS[:2]} - {*of.acls}):
            yield from [made("AccessControlEntryRecord", id=other, resourceName=json.loads(said)["resourceName"])] * 8
    for node in (1, 2):
        yield from [
            made("RegisterBrokerRecord", brokerId=node, brokerEpoch=_OFFSET, incarnationId=IDS[0], fenced=False)
        ] * (8 * (str(node) not in of.brokers))
    for n, id in enumerate(IDS):
        yield from [made("TopicRecord", name=f"t{n}", topicId=id)] * (6 * (id not in of.topics))
    for id, topic in of.topics.items():
        yield from [made("ConfigRecord", resourceType=2, resourceName=topic.name, name="k", value="v")] * 4
        yield from [made("RemoveTopicRecord", topicId=id)] * int(is_open)
        for missing in {0, 1, 2} - {*map(int, topic.partitions)}:
            yield from [_partition(id, missing)] * 4
        for number, p in topic.partitions.items():
            yield _change(id, int(number), isr=[1], eligibleLeaderReplicas=[2])
            yield _change(
                id, int(number), **({"addingReplicas": [9]} if 9 in p.removing else {"removingReplicas": [9]})
            )
            yield _change(id, int(number), isr=[], leader=-1)
            yield _change(id, int(number), replicas=[1, 2, 3] if len(p.replicas) == 2 else [1, 2])
            if not p.last_known_elr:
                yield from [_change(id, int(number), lastKnownElr=[2])] * 2
            yield from [_change(id, int(number), leader=1 if p.leader == 2 else 2)] * (6 * p.recovery)
            if not p.recovery:
                yield from [_change(id, int(number), leaderRecoveryState=1)] * 2
            yield from [_change(id, int(number), replicas=[1, 2, 3], directories=list(_DIRECTORIES))] * (
                4 * bool(p.last_known_elr)
            )


_OFFSET: Final = 9


def _records(state: Image) -> list[dict[str, Any]]:
    """As in a trace."""
    of_state = (*_of_topics(state), *_of_brokers(state, _OFFSET), *_of_leaders(state))
    every = (*of_state, *_of_others(state.contents.next_producer_id or 0), *_in_sequence(state))
    return [{"type": r.type, "version": r.version, "fields": r.fields} for r in every]


machine.candidates |= {
    "record": _records,
    "offset": lambda state: (_OFFSET, _OFFSET, _OFFSET + 1, 0),
    "type": lambda state: sorted(DATA),
    "version": lambda state: (0, 1, 2, 3, 4, 5),
    "level": lambda state: (None, *range(7, 32)),
}
