"""Metadata image: impl against spec, each rule in the plainest way, and real logs replayed by both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.impl.controller import records as codec
from kafkaspec.impl.controller.metadata_image import MetadataImage, ReplayError, differences, parts
from kafkaspec.impl.controller.metadata_image_driver import Driver
from kafkaspec.spec.common.metadata_schemas import DATA
from kafkaspec.spec.controller import metadata_image as spec
from kafkaspec.spec.controller.metadata_image import machine
from kafkaspec.spec.controller.metadata_image_trial import IDS, made
from kafkaspec.spec.controller.records import MetadataRecord, parsed
from tests.controller.metadata_logs import real, replayable
from tests.layers import a_row_of_verify, walked

ID, NO_ID = IDS[0], "AAAAAAAAAAAAAAAAAAAAAA"


@a_row_of_verify
def test_long_walks_cover_every_operation() -> None:
    walked(machine, Driver, seeds=4, steps=100)


class Both:
    """The spec and the implementation, side by side."""

    def __init__(self, *records: MetadataRecord) -> None:
        self.state = machine.initial()
        self.driver = Driver()
        for n, record in enumerate(records):
            assert self.replay(record, n) is None

    def replay(self, record: MetadataRecord, offset: int = 9) -> str | None:
        """The clause that refuses the record; None if it is taken."""
        step = machine.apply(self.state, "replay", {"record": record, "offset": offset})
        assert not isinstance(step, Outside), step
        self.state = step.state
        try:
            self.driver.replay(record, offset)
            clause = None
        except ReplayError as e:
            clause = e.clause
        assert machine.observe(self.driver.state()) == machine.observe(self.state)
        assert clause == (step.result.clause if isinstance(step.result, Refused) else None)
        return clause

    @property
    def now(self) -> spec.Contents:
        return self.state.contents

    @property
    def partition(self) -> spec.Partition:
        return self.now.topics[ID].partitions["0"]

    @property
    def broken(self) -> list[str]:
        found = [b.clause for b in spec.breaches(self.state)]
        assert [b.clause for b in self.driver.breaches()] == found
        return found


def topic(name: str = "t", id: str = ID) -> MetadataRecord:
    return made("TopicRecord", name=name, topicId=id)


def partition(**of: Any) -> MetadataRecord:
    said = {"topicId": ID, "partitionId": 0, "replicas": [1, 2], "isr": [1, 2], "leader": 1}
    return made("PartitionRecord", **{**said, "leaderEpoch": 3, "partitionEpoch": 5, **of})


def change(**of: Any) -> MetadataRecord:
    return made("PartitionChangeRecord", **{"topicId": ID, "partitionId": 0, **of})


def broker(id: int = 1, epoch: int = 0, **of: Any) -> MetadataRecord:
    return made("RegisterBrokerRecord", brokerId=id, brokerEpoch=epoch, **of)


@pytest.mark.clause("IMG-1")
def test_names_and_ids_of_topics_are_given_once() -> None:
    both = Both(topic())
    assert both.replay(topic(id=IDS[1])) == "IMG-1"
    assert both.replay(topic("u")) == "IMG-1"
    assert both.replay(made("RemoveTopicRecord", topicId=ID)) is None
    assert both.replay(topic(id=IDS[1])) is None


@pytest.mark.clause("IMG-2")
def test_what_is_said_of_a_topic_is_said_of_one_that_there_is() -> None:
    both = Both(topic())
    for record in (
        partition(topicId=IDS[1]), change(topicId=IDS[1]), change(), made("RemoveTopicRecord", topicId=IDS[1]),
        made("ClearElrRecord", topicName="u"),
    ):  # fmt: skip
        assert both.replay(record) == "IMG-2"
    assert both.replay(made("ClearElrRecord", topicName="t")) is None


@pytest.mark.clause("IMG-3")
def test_a_change_leaves_what_it_does_not_name() -> None:
    both = Both(topic(), partition())
    before = both.partition
    assert both.replay(change()) is None
    assert both.partition == replace(before, partition_epoch=6)
    assert both.replay(change(leader=1)) is None
    assert (both.partition.leader_epoch, both.partition.partition_epoch) == (4, 7)
    assert both.replay(change(isr=[], leader=-1, leaderRecoveryState=1)) is None
    assert (both.partition.isr, both.partition.leader, both.partition.recovery) == ((), -1, 1)
    assert both.replay(change(leaderRecoveryState=0, removingReplicas=[1], addingReplicas=[3])) is None
    assert (both.partition.recovery, both.partition.removing, both.partition.adding) == (0, (1,), (3,))


@pytest.mark.clause("IMG-3")
@pytest.mark.parametrize("state", [-2, 2, 7])
def test_a_leader_has_recovered_or_is_recovering(state: int) -> None:
    """LeaderRecoveryState, Kafka 4.3.0: `of` throws at anything else; -1 is no state, and no change."""
    both = Both(topic(), partition())
    assert both.replay(change(leaderRecoveryState=state)) == "IMG-3"
    assert both.replay(partition(leaderRecoveryState=state, partitionEpoch=50)) == "IMG-3"
    assert both.replay(partition(leaderRecoveryState=-1, partitionEpoch=50)) == "IMG-3"
    assert both.replay(change(leaderRecoveryState=-1)) is None


@pytest.mark.clause("IMG-3")
def test_there_is_a_directory_for_each_replica() -> None:
    both = Both(topic(), partition())
    assert both.replay(change(replicas=[1, 2, 3])) is None
    assert both.partition.directories == (NO_ID,) * 3
    assert both.replay(change(directories=[*IDS[:2]])) == "IMG-3"
    assert both.replay(change(directories=[*IDS])) is None
    assert both.replay(change(replicas=[1])) == "IMG-3"
    assert both.replay(change(directories=[])) is None
    assert both.partition.directories == (NO_ID,) * 3
    assert both.replay(partition(directories=[IDS[0]], partitionEpoch=50)) == "IMG-3"


@pytest.mark.clause("IMG-3")
def test_a_record_that_says_replicas_and_directories_says_as_many() -> None:
    """PartitionRegistration.checkDirectories, Kafka 4.3.0: asked before those without a name are made to follow."""
    for replicas in ([], [1, 2], [1, 2, 3]):
        for n in range(5):
            both = Both(topic(), partition())
            other = n not in (0, len(replicas))
            for record in (partition(replicas=replicas, directories=[NO_ID] * n, partitionEpoch=50),
                           change(replicas=replicas, directories=[NO_ID] * n)):  # fmt: skip
                assert both.replay(record) == ("IMG-3" if other else None)
            assert both.replay(change(directories=[NO_ID] * n)) is None
            assert both.partition.directories == (NO_ID,) * len(both.partition.replicas)


@pytest.mark.clause("IMG-4")
def test_with_a_topic_go_its_partitions_and_configurations() -> None:
    config = {"resourceType": 2, "name": "k", "value": "v"}
    both = Both(
        topic(), partition(), made("ConfigRecord", **config, resourceName="t"),
        made("ConfigRecord", **config, resourceName="tt"),
    )  # fmt: skip
    assert both.replay(made("RemoveTopicRecord", topicId=ID)) is None
    assert both.now == spec.Contents(configs={'2/"tt"/k': "v"})
    assert both.driver.image.led == {1: set()}


@pytest.mark.clause("IMG-5")
def test_eligible_leader_replicas_are_cleared() -> None:
    both = Both(topic(), partition(isr=[1], eligibleLeaderReplicas=[2]), topic("u", IDS[1]))
    both.replay(partition(topicId=IDS[1], lastKnownElr=[2]))
    assert both.replay(made("ClearElrRecord", topicName="t")) is None
    assert (both.partition.elr, both.partition.partition_epoch) == ((), 6)
    assert both.now.topics[IDS[1]].partitions["0"].last_known_elr == (2,)
    assert both.replay(made("ClearElrRecord", topicName="")) is None
    assert both.partition.partition_epoch == 6
    assert both.now.topics[IDS[1]].partitions["0"].partition_epoch == 6


@pytest.mark.clause("IMG-6")
def test_a_broker_s_epoch_does_not_go_back() -> None:
    both = Both()
    assert both.replay(broker(epoch=10), 9) == "IMG-6"
    assert both.replay(broker(epoch=9), 9) is None
    assert both.replay(broker(epoch=8), 12) == "IMG-6"
    assert both.replay(broker(epoch=9, incarnationId=ID), 12) is None
    assert both.now.brokers["1"].incarnation == ID
    both.driver.image.in_snapshot = True
    both.driver.image.replay(0, codec.record("RegisterBrokerRecord", brokerId=1, brokerEpoch=99).fields, 0)


@pytest.mark.clause("IMG-7")
def test_what_changes_a_registration_names_its_epoch() -> None:
    both = Both(broker())
    for epoch, id, clause in ((1, 1, "IMG-7"), (0, 2, "IMG-7"), (0, 1, None)):
        assert both.replay(made("FenceBrokerRecord", id=id, epoch=epoch)) == clause
        said = {"brokerId": id, "brokerEpoch": epoch}
        assert both.replay(made("BrokerRegistrationChangeRecord", **said)) == clause
    assert both.now.brokers["1"].fenced
    assert both.replay(made("UnfenceBrokerRecord", id=1, epoch=0)) is None
    assert not both.now.brokers["1"].fenced
    assert both.replay(made("BrokerRegistrationChangeRecord", **said, fenced=2)) == "IMG-7"
    assert both.replay(made("BrokerRegistrationChangeRecord", **said, inControlledShutdown=2)) == "IMG-7"
    more = {"fenced": 1, "inControlledShutdown": 1, "logDirs": [ID], "cordonedLogDirs": []}
    assert both.replay(made("BrokerRegistrationChangeRecord", **said, **more)) is None
    assert both.now.brokers["1"] == spec.Broker(0, NO_ID, True, True, (ID,), ())
    assert both.replay(made("BrokerRegistrationChangeRecord", **said, fenced=-1, logDirs=[])) is None
    assert both.now.brokers["1"] == spec.Broker(0, NO_ID, False, True, (ID,), ())
    assert both.replay(made("UnregisterBrokerRecord", **said)) is None
    assert both.replay(made("UnregisterBrokerRecord", **said)) == "IMG-7"


A_1, B_1, A_2 = "AAAAAAAAAAEAAAAAAAAAAQ", "AAAAAAAAAAIAAAAAAAAAAg", "AAAAAAAAAAEAAAAAAAAAAg"
NEGATIVE, LESS = "__________sAAAAAAAAAAQ", "AAAAAAAAAAH__________w"
SORTED: tuple[str, ...] = (NEGATIVE, LESS, A_1, A_2, B_1)
"""As ClusterControlManager of Kafka 4.3.0 has them, asked with a list in another order: two numbers with a sign."""


@pytest.mark.clause("IMG-6", "IMG-7", "IMG-21")
def test_the_directories_of_a_broker_are_in_no_order() -> None:
    """BrokerRegistration, Kafka 4.3.0: it sorts them. A snapshot has them so; the cordoned ones stay as they are."""
    every = [B_1, NEGATIVE, A_2, A_1, LESS]
    both = Both(broker(logDirs=every, cordonedLogDirs=[B_1, A_1]))
    assert both.now.brokers["1"].directories == SORTED
    assert both.now.brokers["1"].cordoned == (B_1, A_1)
    said = {"brokerId": 1, "brokerEpoch": 0}
    assert both.replay(made("BrokerRegistrationChangeRecord", **said, logDirs=[B_1, A_1])) is None
    assert [*both.now.brokers["1"].directories] == [A_1, B_1]
    assert both.replay(made("BrokerRegistrationChangeRecord", **said, cordonedLogDirs=[B_1, A_1])) is None
    assert both.now.brokers["1"].cordoned == (B_1, A_1)
    assert list(differences(image_of(broker(logDirs=every)), image_of(broker(logDirs=[*SORTED])))) == []
    cordoned = (image_of(broker(cordonedLogDirs=of)) for of in ([B_1, A_1], [A_1, B_1]))
    assert [d.what for d in differences(*cordoned)] == ["broker"]


@pytest.mark.clause("IMG-27")
def test_a_directory_is_one_broker_s() -> None:
    """ClusterControlManager.updateDirectories, Kafka 4.3.0."""

    def registration(id: int, epoch: int, **of: Any) -> MetadataRecord:
        return made("BrokerRegistrationChangeRecord", brokerId=id, brokerEpoch=epoch, **of)

    both = Both(broker(1, 0, logDirs=[A_1]))
    assert both.replay(broker(2, 1, logDirs=[B_1, A_1])) == "IMG-27"
    assert both.replay(broker(2, 1, logDirs=[B_1])) is None
    assert both.replay(registration(2, 1, logDirs=[A_1, B_1])) == "IMG-27"
    assert both.replay(registration(2, 0, logDirs=[A_1, B_1])) == "IMG-7"
    assert both.replay(registration(2, 1, fenced=1)) is None
    assert both.replay(broker(1, 2, logDirs=[A_1, A_2])) is None
    assert both.replay(registration(2, 1, logDirs=[A_2])) == "IMG-27"
    assert both.replay(registration(1, 2, logDirs=[A_2])) is None
    assert both.replay(registration(2, 1, logDirs=[A_1])) is None
    assert both.replay(made("UnregisterBrokerRecord", brokerId=1, brokerEpoch=2)) is None
    assert both.replay(registration(2, 1, logDirs=[A_1, A_2])) is None
    assert both.replay(broker(1, 3, logDirs=[A_1, A_1])) == "IMG-27"
    assert both.replay(broker(1, 3, logDirs=[B_1, B_1])) == "IMG-27"
    assert both.replay(registration(2, 1, logDirs=[A_1, A_1])) == "IMG-27"
    assert both.replay(made("BeginTransactionRecord")) is None
    assert both.replay(made("UnregisterBrokerRecord", brokerId=2, brokerEpoch=1)) is None
    assert both.replay(broker(1, 3, logDirs=[A_1])) is None
    assert both.replay(made("AbortTransactionRecord")) is None
    assert both.replay(broker(1, 3, logDirs=[A_1])) == "IMG-27"


@pytest.mark.clause("IMG-27", "IMG-28")
def test_what_no_replay_takes_is_told_first() -> None:
    """Of what breaks a rule that a controller stops by, and one that none looks at."""
    both = Both(broker(1, 0, logDirs=[A_1]))
    assert both.replay(broker(2, 99, logDirs=[A_1])) == "IMG-27"
    assert both.replay(broker(2, 99, logDirs=[A_1], endPoints=[ends("x", 4)])) == "IMG-28"


def ends(name: str, protocol: int) -> dict[str, Any]:
    return {"name": name, "host": "h", "port": 1, "securityProtocol": protocol}


@pytest.mark.clause("IMG-28")
@pytest.mark.parametrize(
    ("kind", "key"), [("RegisterBrokerRecord", "brokerId"), ("RegisterControllerRecord", "controllerId")]
)
def test_an_endpoint_has_a_protocol_that_there_is(kind: str, key: str) -> None:
    both, id = Both(), {key: 1}
    for protocol in range(4):
        assert both.replay(made(kind, **id, endPoints=[ends("x", protocol)])) is None
    for protocol in (-1, 4, 77):
        assert both.replay(made(kind, **id, endPoints=[ends("x", protocol)])) == "IMG-28"
        assert both.replay(made(kind, **id, endPoints=[ends("x", 0), ends("y", protocol)])) == "IMG-28"
    unnamed = None if kind == "RegisterControllerRecord" else "IMG-28"
    assert both.replay(made(kind, **id, endPoints=[ends("x", 0), ends("", 0)])) == unnamed


@pytest.mark.clause("IMG-29")
def test_of_two_acls_that_say_the_same_one_can_be_removed() -> None:
    """AclControlManager, Kafka 4.3.0: as it answered, asked with these."""

    def acl(id: str, name: str) -> MetadataRecord:
        return made("AccessControlEntryRecord", id=id, resourceName=name)

    def remove(id: str) -> MetadataRecord:
        return made("RemoveAccessControlEntryRecord", id=id)

    one, two, three = IDS
    for records, clause in (
        ((acl(one, "x"), acl(two, "x"), remove(one), remove(two)), "IMG-29"),
        ((acl(one, "x"), acl(two, "x"), remove(two), remove(two)), "IMG-12"),
        ((acl(one, "x"), acl(two, "y"), remove(one), remove(two)), None),
        ((acl(one, "x"), acl(one, "y"), remove(one), acl(two, "x"), remove(two)), None),
        ((acl(one, "x"), acl(one, "y"), acl(two, "x"), remove(two)), None),
        ((acl(one, "x"), acl(two, "x"), remove(one), acl(three, "x"), remove(two), remove(three)), "IMG-29"),
        ((acl(one, "x"), acl(two, "x"), remove(one), acl(two, "x"), remove(two)), None),
        (
            (acl(one, "x"), acl(two, "x"), made("BeginTransactionRecord"), remove(one),
             made("AbortTransactionRecord"), remove(two)), None,
        ),
    ):  # fmt: skip
        assert Both(*records[:-1]).replay(records[-1]) == clause


@pytest.mark.clause("IMG-8")
def test_levels_of_features() -> None:
    def level(name: str, of: int) -> MetadataRecord:
        return made("FeatureLevelRecord", name=name, featureLevel=of)

    both = Both(level("metadata.version", 7), level("metadata.version", 31), level("group.version", 1))
    for name, of in (("metadata.version", 6), ("metadata.version", 32), ("group.version", 2), ("new", 1)):
        assert both.replay(level(name, of)) == "IMG-8"
    assert both.replay(level("kraft.version", 1)) is None
    assert both.now.features == {"metadata.version": 31, "group.version": 1}
    assert both.replay(level("group.version", 0)) is None
    assert both.now.features == {"metadata.version": 31}


@pytest.mark.clause("IMG-9")
def test_the_next_producer_id_rises() -> None:
    def next_id(of: int) -> MetadataRecord:
        return made("ProducerIdsRecord", nextProducerId=of)

    both = Both(next_id(0))
    assert both.replay(next_id(0)) == "IMG-9"
    assert both.replay(next_id(1000)) is None
    assert both.replay(next_id(999)) == "IMG-9"


@pytest.mark.clause("IMG-10")
def test_a_null_takes_a_configuration_away() -> None:
    def config(name: str, value: str | None) -> MetadataRecord:
        return made("ConfigRecord", resourceType=2, resourceName="t", name=name, value=value)

    both = Both(config("a", "1"), config("b", ""), config("a", None), config("c", None))
    assert both.now.configs == {'2/"t"/b': ""}
    both.replay(config("b", None))
    assert both.driver.image.configs == {}


@pytest.mark.clause("IMG-11")
def test_client_quotas_by_entity_and_key() -> None:
    user, client = {"entityType": "user", "entityName": None}, {"entityType": "client-id", "entityName": "c"}

    def quota(*entity: Any, value: float = 1.0, remove: bool = False) -> MetadataRecord:
        return made("ClientQuotaRecord", entity=[*entity], key="k", value=value, remove=remove)

    both = Both(quota(user, client), quota(client, user, value=2.0), quota(user))
    assert both.now.quotas == {'{"client-id": "c", "user": null}/k': 2.0, '{"user": null}/k': 1.0}
    both.replay(quota(user, client, remove=True))
    assert both.now.quotas == {'{"user": null}/k': 1.0}
    both.replay(quota({"entityType": "user", "entityName": "None"}, value=3.0))
    assert len(both.now.quotas) == 2
    both.replay(quota({"entityType": "user", "entityName": "u"}, user, value=4.0))
    assert both.now.quotas['{"user": null}/k'] == 4.0


@pytest.mark.clause("IMG-12")
def test_what_is_removed_was_there() -> None:
    both = Both(
        made("AccessControlEntryRecord", id=ID), made("UserScramCredentialRecord", name="u", mechanism=1),
        made("DelegationTokenRecord", tokenId="a"), made("DelegationTokenRecord", tokenId="a"),
        made("RegisterControllerRecord", controllerId=3),
    )  # fmt: skip
    assert both.replay(made("RemoveAccessControlEntryRecord", id=IDS[1])) == "IMG-12"
    assert both.replay(made("RemoveUserScramCredentialRecord", name="u", mechanism=2)) == "IMG-12"
    assert both.replay(made("RemoveDelegationTokenRecord", tokenId="b")) is None
    said = spec.acl_said(made("AccessControlEntryRecord").fields)
    assert both.now == spec.Contents(
        acls={ID: said}, removable=(said,), scram=("u/1",), tokens=("a",), controllers=("3",)
    )
    assert both.replay(made("RemoveAccessControlEntryRecord", id=ID)) is None
    assert both.replay(made("RemoveUserScramCredentialRecord", name="u", mechanism=1)) is None
    assert both.replay(made("RemoveDelegationTokenRecord", tokenId="a")) is None
    assert both.now == spec.Contents(controllers=("3",))


@pytest.mark.clause("IMG-13")
def test_what_is_aborted_was_not() -> None:
    begin, end, abort = (made(f"{n}TransactionRecord") for n in ("Begin", "End", "Abort"))
    both = Both(topic(), partition(), broker(fenced=True), made("ProducerIdsRecord", nextProducerId=5))
    assert both.replay(end) == both.replay(abort) == "IMG-13"
    before = both.now
    assert both.replay(begin) is None
    assert both.replay(begin) == "IMG-13"
    for record in (
        change(leader=2), made("RemoveTopicRecord", topicId=ID), topic("t", IDS[1]), broker(2),
        made("UnfenceBrokerRecord", id=1, epoch=0), made("UnregisterBrokerRecord", brokerId=1, brokerEpoch=0),
        made("ProducerIdsRecord", nextProducerId=9), made("ConfigRecord", resourceType=2, resourceName="t", name="k"),
        made("FeatureLevelRecord", name="metadata.version", featureLevel=30),
    ):  # fmt: skip
        assert both.replay(record) is None
    assert both.replay(abort) is None
    assert both.now == before
    assert both.driver.image.led == {1: {(ID, 0)}, 2: set()}
    assert [both.replay(r) for r in (begin, change(leader=2), end)] == [None] * 3
    assert both.partition.leader == 2
    both.driver.image.in_snapshot = True
    for name in ("Begin", "End", "Abort"):
        with pytest.raises(ReplayError):
            both.driver.replay(made(f"{name}TransactionRecord"), 9)


@pytest.mark.clause("IMG-14")
@pytest.mark.clause("IMG-15")
@pytest.mark.clause("IMG-16")
@pytest.mark.clause("IMG-17")
def test_invariants_of_a_partition() -> None:
    both = Both(broker(1, fenced=False), broker(2, 0, fenced=False), topic(), partition())
    for of, broken in (
        ({"isr": [1, 3]}, ["IMG-14"]),
        ({"isr": [2]}, ["IMG-15"]),
        ({"leader": -1}, []),
        ({"eligibleLeaderReplicas": [2]}, ["IMG-16"]),
        ({"eligibleLeaderReplicas": [1]}, []),
        ({"isr": [1, 2], "leader": 2}, ["IMG-16"]),
        ({"eligibleLeaderReplicas": []}, []),
    ):
        both.replay(change(**of))
        assert both.broken == broken, of
    both.replay(made("FenceBrokerRecord", id=2, epoch=0))
    assert both.broken == ["IMG-17"]
    both.replay(made("UnfenceBrokerRecord", id=2, epoch=0))
    assert both.broken == []
    both.replay(made("UnregisterBrokerRecord", brokerId=2, brokerEpoch=0))
    assert both.broken == ["IMG-17"]
    both.replay(broker(2, fenced=False))
    assert both.broken == []
    both.replay(made("FenceBrokerRecord", id=1, epoch=0))
    assert both.broken == []


@pytest.mark.clause("IMG-26")
def test_a_replica_is_named_once() -> None:
    both = Both(broker(1, fenced=False), broker(2, 0, fenced=False), topic(), partition())
    both.replay(change(replicas=[1, 2, 1]))
    assert both.broken == ["IMG-26"]
    both.replay(change(replicas=[2, 1]))
    assert both.broken == []


@pytest.mark.clause("IMG-30")
@pytest.mark.parametrize(
    "of", [{"isr": [1, 2, 1]}, {"isr": [1], "eligibleLeaderReplicas": [2, 2]}, {"lastKnownElr": [2, 2]}]
)
def test_no_replica_is_in_sync_or_eligible_twice(of: dict[str, Any]) -> None:
    both = Both(broker(1, fenced=False), topic(), partition())
    both.replay(change(**of))
    assert both.broken == ["IMG-30"]
    both.replay(change(isr=[1], eligibleLeaderReplicas=[2], lastKnownElr=[1, 2]))
    assert both.broken == []


@pytest.mark.clause("IMG-31")
@pytest.mark.parametrize("field", ["addingReplicas", "removingReplicas"])
def test_what_a_reassignment_adds_and_removes_are_replicas(field: str) -> None:
    both = Both(broker(1, fenced=False), topic(), partition())
    both.replay(change(**{field: [2, 3]}))
    assert both.broken == ["IMG-31"]
    both.replay(change(replicas=[1, 2, 3]))
    assert both.broken == []
    both.replay(change(replicas=[1, 2]))
    assert both.broken == ["IMG-31"]
    both.replay(change(**{field: []}))
    assert both.broken == []


@pytest.mark.clause("IMG-16", "IMG-31")
def test_an_eligible_leader_replica_need_not_be_a_replica() -> None:
    """PartitionChangeBuilder, Kafka 4.3.0: when the reassignment of [1, 2, 3], adding 3, is cancelled while 1 and 3 are
    in sync and two must be, it answers these replicas, in-sync and eligible ones."""
    both = Both(broker(1, fenced=False), topic(), partition(replicas=[1, 2, 3], isr=[1, 3], addingReplicas=[3]))
    assert both.replay(change(isr=[1], replicas=[1, 2], addingReplicas=[], eligibleLeaderReplicas=[3])) is None
    assert both.broken == []


@pytest.mark.clause("IMG-18")
def test_epochs_of_a_partition_do_not_go_back() -> None:
    both = Both(topic(), partition())
    assert both.replay(partition(leaderEpoch=2)) == "IMG-18"
    assert both.replay(partition(partitionEpoch=4)) == "IMG-18"
    assert both.replay(partition()) is None
    assert both.replay(partition(leaderEpoch=9, partitionEpoch=9)) is None


@pytest.mark.clause("IMG-19")
def test_what_a_metadata_version_allows() -> None:
    def most(name: str, level: int | None) -> int:
        type = next(m.type for m in DATA.values() if m.name == name)
        allowed = [v for v in range(8) if spec.allows(type, v, level)]
        assert allowed == [v for v in range(8) if Driver().allows(type, v, level)]
        assert allowed == list(range(len(allowed)))
        return len(allowed) - 1

    table: dict[str, dict[int | None, int]] = {
        "RegisterBrokerRecord": {7: 1, 8: 2, 16: 2, 17: 3, 29: 3, 30: 4, None: 4},
        "PartitionRecord": {7: 0, 16: 0, 17: 1, 22: 1, 23: 2, 31: 2, None: 2},
        "PartitionChangeRecord": {7: 0, 17: 1, 23: 2},
        "BrokerRegistrationChangeRecord": {7: 1, 17: 2, 30: 3},
        "UserScramCredentialRecord": {10: -1, 11: 0, None: 0},
        "BeginTransactionRecord": {12: -1, 13: 0},
        "DelegationTokenRecord": {13: -1, 14: 0},
        "RegisterControllerRecord": {14: -1, 15: 0},
        "ClearElrRecord": {22: -1, 23: 0},
        "TopicRecord": {7: 0},
    }
    for name, levels in table.items():
        for level, highest in levels.items():
            assert most(name, level) == highest, (name, level)


# ---- two states ------------------------------------------------------------------------------------------------------
def image_of(*records: MetadataRecord) -> MetadataImage:
    image = MetadataImage()
    for n, r in enumerate(records):
        image.replay(r.type, codec.from_json(r.type, r.version, r.fields).fields, n)
    return image


def feature(name: str, level: int) -> MetadataRecord:
    return made("FeatureLevelRecord", name=name, featureLevel=level)


@pytest.mark.clause("IMG-21")
@pytest.mark.parametrize("level", [7, 14, 15, 16, 17, 31, None])
@pytest.mark.parametrize("elr", [False, True])
def test_a_snapshot_lacks_what_its_metadata_version_has_no_place_for(level: int | None, elr: bool) -> None:
    whole = partition(directories=[*IDS[:2]], isr=[1], eligibleLeaderReplicas=[2], lastKnownElr=[1])
    records = [
        topic(), whole, broker(logDirs=[IDS[0]]), made("RegisterControllerRecord", controllerId=3),
        *([] if level is None else [feature("metadata.version", level)]),
        *([feature("eligible.leader.replicas.version", 1)] if elr else []),
    ]  # fmt: skip
    of = {part.what: part.content for part in parts(image_of(*records))}
    p, newest = of["partition"]["t-0"], level is None
    assert p.directories == ([*IDS[:2]] if newest or (level or 0) >= 17 else [])
    assert of["broker"][1].directories == ([IDS[0]] if newest or (level or 0) >= 17 else [])
    assert (p.elr, p.last_known_elr) == (([2], [1]) if elr else ([], []))
    assert [*of["controller"]] == ([3] if newest or (level or 0) >= 15 else [])
    assert of["producer id"] == {}


def controller(*names: str) -> MetadataRecord:
    ends = [{"name": n, "host": "h", "port": 1, "securityProtocol": 0} for n in names]
    known = [{"name": n, "minSupportedVersion": 0, "maxSupportedVersion": 1} for n in names]
    return made("RegisterControllerRecord", controllerId=3, endPoints=ends, features=known)


def config(type: int, resource: str, name: str, value: str) -> MetadataRecord:
    return made("ConfigRecord", resourceType=type, resourceName=resource, name=name, value=value)


def quota(value: float) -> MetadataRecord:
    return made("ClientQuotaRecord", entity=[{"entityType": "user", "entityName": "u"}], key="k", value=value)


@pytest.mark.clause("IMG-21")
def test_states_differ_in_what_records_say_and_not_in_their_order() -> None:
    def told(a: Sequence[MetadataRecord], b: Sequence[MetadataRecord]) -> list[str]:
        found = [d.what for d in differences(image_of(*a), image_of(*b))]
        assert found == [d.what for d in differences(image_of(*b), image_of(*a))]
        return found

    assert told([topic("t"), topic("u", IDS[1])], [topic("u", IDS[1]), topic("t")]) == []
    assert told([topic("t"), topic("u", IDS[1])], [topic("u", IDS[1])]) == ["topic"]
    assert told([topic("t")], [topic("t", IDS[1])]) == ["topic"]
    assert told([controller("a", "b")], [controller("b", "a")]) == []
    assert told([controller("a", "b")], [controller("a", "c")]) == ["controller"]
    for id, expected in ((7, ["producer id"]), (0, ["producer id"]), (-1, [])):  # PID-12
        assert told([], [made("ProducerIdsRecord", nextProducerId=id)]) == expected
    assert told([quota(1.0)], [quota(2.0)]) == ["client quota"]


@pytest.mark.clause("IMG-10", "IMG-21")
@pytest.mark.parametrize(
    ("type", "name", "lacks"),
    [(2, "retention.ms", True), (2, "new", False), (4, "new", True), (4, "retention.ms", True), (16, "new", False)],
)
def test_a_snapshot_may_lack_configurations_that_its_release_does_not_have(type: int, name: str, lacks: bool) -> None:
    here, other, there = (image_of(*r) for r in ([config(type, "t", name, "v")], [config(type, "t", name, "w")], []))
    assert [d.what for d in differences(here, other)] == ["configuration"]
    for a, b in ((here, there), (there, here)):
        assert [d.what for d in differences(a, b)] == ["configuration"] * lacks


# ---- real logs -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("node", ["node-1", "node-2", "node-3"])
def test_a_real_log_comes_to_the_same_in_spec_and_implementation(node: str) -> None:
    state, driver = machine.initial(), Driver()
    for offset, record in replayable(real()[node]):
        shown = MetadataRecord(record.type, record.version, record.json())
        made_whole = {**codec.from_json(record.type, record.version, shown.fields).fields}
        assert made_whole == record.fields
        name = DATA[record.type].name
        after = (
            spec.transact(state, name, offset)
            if name not in spec.REPLAYS
            else spec.REPLAYS[name](state.contents, parsed(DATA[record.type].fields, shown.fields), offset)
        )
        assert not isinstance(after, Refused)
        state = after if isinstance(after, spec.Image) else replace(state, contents=after)
        driver.image.replay(record.type, record.fields, offset)
    assert machine.observe(driver.state()) == machine.observe(state)
    assert spec.breaches(state) == ()
    driver.image.check()
    assert driver.image.broken == driver.image.check_all() == set()


def test_two_images_differ_in_what_one_record_changes() -> None:
    images = MetadataImage(), MetadataImage()
    for offset, record in replayable(real()["node-1"]):
        for image in images:
            image.replay(record.type, record.fields, offset)
    assert list(differences(*images)) == []
    images[1].replay(4, codec.record("ConfigRecord", resourceType=4, resourceName="9", name="k", value="v").fields, 0)
    assert [(d.what, d.ours, d.theirs) for d in differences(*images)] == [("configuration", None, "v")]
