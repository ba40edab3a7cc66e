"""Audit of metadata logs: real ones are sound, and each kind of damage is found, at its record alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.audit.engine import audit
from kafkaspec.audit.finding import Finding
from kafkaspec.errors import UserError
from kafkaspec.impl.controller import records as codec
from kafkaspec.impl.controller.metadata_image import MetadataImage
from tests.audit.test_unread import Put, dangling, fifo, loop
from tests.controller.metadata_logs import (
    GONE,
    NO_OP,
    LogBatch,
    batches_of,
    broker,
    change,
    changed,
    control,
    level,
    made,
    parsed,
    partition,
    place,
    put,
    real,
    record_at,
    replayable,
    snapshot_of,
    topic,
    written,
)

LOG = f"{0:020}.log"
CHECKPOINT = re.compile(r"\d{20}-\d{10}\.checkpoint")
LAST = f"{940:020}-{4:010}.checkpoint"
CLICKS, ORDERS = "aioxN08JR9aUkdHnEOmryg", "CNiUUzhdTNuPIqJOIsMVDA"
Edit = Callable[[list[LogBatch]], None]


def files_of(node: str = "node-1", snapshots: bool = False) -> dict[str, bytes]:
    """A metadata log, without indexes: positions in it will change."""
    kept = {LOG, "quorum-state", "leader-epoch-checkpoint"}
    return {n: d for n, d in real()[node].items() if n in kept or (snapshots and CHECKPOINT.fullmatch(n))}


def lay(path: Path, files: Mapping[str, bytes]) -> Path:
    folder = path / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def found(path: Path, files: Mapping[str, bytes]) -> list[Finding]:
    a = audit([lay(path, files)], strict=True)
    assert a.problems == ()
    return list(a.findings)


def edited(edit: Edit, name: str = LOG, snapshots: bool = False, node: str = "node-1") -> dict[str, bytes]:
    files = files_of(node, snapshots)
    batches = parsed(files[name])
    edit(batches)
    return {**files, name: written(batches)}


NO_OPS = [o for o, r in replayable(real()["node-1"]) if r.name == "NoOpRecord"]
ALONE = {b.base for b in parsed(real()["node-1"][LOG]) if len(b.records) == 1}
NO_OPS = [o for o in NO_OPS if o in ALONE]
"""Records that say nothing, each in a batch of its own."""
LATE = NO_OPS[-1]
"""The last one, behind everything that says something."""


def in_place(record: bytes, offset: int = LATE) -> Edit:
    return lambda batches: put(batches, offset, record)


FIRST_OF_4 = next(b.base for b in parsed(real()["node-1"][LOG]) if b.epoch == 4)
"""The offset where the epoch 4 begins."""


def without(offset: int) -> Edit:
    def edit(batches: list[LogBatch]) -> None:
        batches.remove(place(batches, offset)[0])

    return edit


def changing(offset: int, version: int | None = None, /, **of: Any) -> Edit:
    return lambda batches: change(batches, offset, version, **of)


def in_epoch(offset: int, epoch: int) -> Edit:
    def edit(batches: list[LogBatch]) -> None:
        place(batches, offset)[0].epoch = epoch

    return edit


def raised(offset: int, epoch: int) -> Edit:
    """The batches from there on have another epoch."""

    def edit(batches: list[LogBatch]) -> None:
        for b in batches[batches.index(place(batches, offset)[0]) :]:
            b.epoch = epoch

    return edit


def replaced(offset: int, record: bytes) -> Edit:
    """A record of data stands in the place of a control record."""

    def edit(batches: list[LogBatch]) -> None:
        b, _ = place(batches, offset)
        b.control, b.records = False, [(None, record)]

    return edit


def garbled(offset: int) -> Edit:
    """A record is cut short."""

    def edit(batches: list[LogBatch]) -> None:
        b, n = place(batches, offset)
        b.records[n] = None, b.records[n][1][:-1]

    return edit


def with_time(offset: int) -> Edit:
    def edit(batches: list[LogBatch]) -> None:
        b, n = place(batches, offset)
        b.records[n] = b"k", b.records[n][1]

    return edit


def next_id(of: int) -> bytes:
    return made("ProducerIdsRecord", brokerId=1, brokerEpoch=0, nextProducerId=of)


def image_at(offset: int) -> MetadataImage:
    """The state of the real log up to an offset."""
    image = MetadataImage()
    for o, r in replayable(real()["node-1"]):
        if o < offset:
            image.replay(r.type, r.fields, o)
    return image


BUSY = next(n for n in NO_OPS if n > 650)
"""One where brokers lead partitions."""
LEADS = image_at(BUSY)
CLICKS_0 = LEADS.topics[CLICKS].partitions[0]


def cut(record: bytes) -> Edit:
    """That record where broker 2 leads, and the log ends."""

    def edit(batches: list[LogBatch]) -> None:
        put(batches, BUSY, record)
        del batches[batches.index(place(batches, BUSY)[0]) + 1 :]

    return edit


EPOCH_1 = image_at(LATE).brokers[1].epoch
EPOCH_2 = LEADS.brokers[2].epoch
FENCED = made("BrokerRegistrationChangeRecord", 0, brokerId=2, brokerEpoch=EPOCH_2, fenced=1)

HOMES_2 = image_at(LATE).brokers[2].directories
"""The directories of broker 2."""
CALM = NO_OPS[-4:]
"""The last records that say nothing, LATE among them."""


def endpoint(name: str, protocol: int) -> dict[str, Any]:
    return {"name": name, "host": "h", "port": 1, "securityProtocol": protocol}


def registered(id: int, **of: Any) -> bytes:
    """A broker, or a controller, behind everything."""
    if id < 3000:
        return broker(id, LATE, **of)
    return made("RegisterControllerRecord", controllerId=id, **of)


def acl(id: str, host: str = "h") -> bytes:
    return made("AccessControlEntryRecord", id=id, resourceName="r", host=host)


def no_acl(id: str) -> bytes:
    return made("RemoveAccessControlEntryRecord", id=id)


def calmly(*records: bytes) -> Edit:
    """These are the last records."""

    def edit(batches: list[LogBatch]) -> None:
        for offset, record in zip(CALM, records, strict=True):
            put(batches, offset, record)

    return edit


REMOVED = next(r.fields["id"] for _, r in replayable(real()["node-1"]) if r.name == "RemoveAccessControlEntryRecord")

DAMAGE: dict[str, tuple[Edit, str, int]] = {
    "a change of an unknown topic": (in_place(changed(0, GONE, isr=[1])), "IMG-2", LATE),
    "a change of an unknown partition": (in_place(changed(99, CLICKS, isr=[1])), "IMG-2", LATE),
    "an unknown topic is removed": (in_place(made("RemoveTopicRecord", topicId=GONE)), "IMG-2", LATE),
    "a topic that is there already": (in_place(made("TopicRecord", name="clicks", topicId=GONE)), "IMG-1", LATE),
    "the epochs of a partition go back": (
        in_place(partition(0, CLICKS, replicas=[1, 2], isr=[1], leaderEpoch=0, partitionEpoch=0)), "IMG-18", LATE,
    ),
    "the epoch of a broker goes back": (in_place(broker(1, EPOCH_1 - 1)), "IMG-6", LATE),
    "the epoch of a broker is yet to come": (in_place(broker(9, 945)), "IMG-6", LATE),
    "the epoch of the log goes back": (in_epoch(LATE, 3), "LEC-19", LATE),
    "a broker that is not registered": (in_place(made("FenceBrokerRecord", id=9, epoch=5)), "IMG-7", LATE),
    "a broker with another epoch": (in_place(made("FenceBrokerRecord", id=1, epoch=5)), "IMG-7", LATE),
    "an ISR member that is no replica": (cut(changed(0, CLICKS, isr=[*CLICKS_0.isr, 9])), "IMG-14", BUSY),
    "a leader that is not in sync": (
        cut(changed(0, CLICKS, isr=[b for b in CLICKS_0.isr if b != CLICKS_0.leader])), "IMG-15", BUSY,
    ),
    "an in-sync replica that is eligible too": (
        cut(changed(0, CLICKS, eligibleLeaderReplicas=CLICKS_0.isr)), "IMG-16", BUSY,
    ),
    "a leader that is fenced": (cut(FENCED), "IMG-17", BUSY),
    "a leader that is not registered": (
        cut(made("UnregisterBrokerRecord", brokerId=2, brokerEpoch=EPOCH_2)), "IMG-17", BUSY,
    ),
    "a replica that a partition names twice": (
        cut(
            partition(
                0, CLICKS, replicas=[*CLICKS_0.replicas, CLICKS_0.replicas[0]], isr=CLICKS_0.isr,
                leader=CLICKS_0.leader, leaderEpoch=99, partitionEpoch=999,
                directories=[GONE] * (len(CLICKS_0.replicas) + 1),
            )
        ),
        "IMG-26", BUSY,
    ),
    "a replica that a change names twice": (
        cut(
            changed(
                0, CLICKS, replicas=[*CLICKS_0.replicas, CLICKS_0.replicas[0]],
                directories=[GONE] * (len(CLICKS_0.replicas) + 1),
            )
        ),
        "IMG-26", BUSY,
    ),
    "a broker that is in sync twice": (
        cut(changed(0, CLICKS, isr=[*CLICKS_0.isr, CLICKS_0.isr[0]])), "IMG-30", BUSY,
    ),
    "a broker that is eligible twice": (cut(changed(0, CLICKS, eligibleLeaderReplicas=[9, 9])), "IMG-30", BUSY),
    "a broker that was known last twice": (cut(changed(0, CLICKS, lastKnownElr=[9, 9])), "IMG-30", BUSY),
    "a stranger that is added": (cut(changed(0, CLICKS, addingReplicas=[9])), "IMG-31", BUSY),
    "a stranger that is removed": (
        cut(changed(0, CLICKS, removingReplicas=[CLICKS_0.replicas[0], 9])), "IMG-31", BUSY,
    ),
    "a broker with another one's directory": (in_place(registered(9, logDirs=[GONE, HOMES_2[0]])), "IMG-27", LATE),
    "a change to another broker's directory": (
        in_place(made("BrokerRegistrationChangeRecord", brokerId=1, brokerEpoch=EPOCH_1, logDirs=HOMES_2[:1])),
        "IMG-27", LATE,
    ),
    "a broker with a directory twice": (in_place(registered(9, logDirs=[GONE, GONE])), "IMG-27", LATE),
    "a protocol that there is not": (in_place(registered(9, endPoints=[endpoint("x", 4)])), "IMG-28", LATE),
    "an endpoint without a name": (in_place(registered(9, endPoints=[endpoint("", 0)])), "IMG-28", LATE),
    "a controller's protocol that there is not": (
        in_place(registered(3009, endPoints=[endpoint("x", -1)])), "IMG-28", LATE,
    ),
    "two ACLs that say the same, and both are removed": (
        calmly(acl(GONE), acl(CLICKS), no_acl(GONE), no_acl(CLICKS)), "IMG-29", LATE,
    ),
    "directories that are fewer than replicas": (in_place(changed(0, CLICKS, directories=[GONE])), "IMG-3", LATE),
    "directories without a name, of no replica": (
        in_place(partition(0, CLICKS, replicas=[], isr=[], leaderEpoch=99, partitionEpoch=999, directories=["A" * 22])),
        "IMG-3", LATE,
    ),
    "a state that no leader has": (in_place(changed(0, CLICKS, leaderRecoveryState=7)), "IMG-3", LATE),
    "a leader's change that is not there": (replaced(FIRST_OF_4, NO_OP), "IMG-25", FIRST_OF_4),
    "a batch without an epoch": (in_epoch(LATE, -1), "IMG-25", LATE),
    "producer ids that go back": (in_place(next_id(1)), "IMG-9", LATE),
    "an ACL that is not there": (in_place(made("RemoveAccessControlEntryRecord", id=GONE)), "IMG-12", LATE),
    "an ACL that is removed twice": (in_place(made("RemoveAccessControlEntryRecord", id=REMOVED)), "IMG-12", LATE),
    "a transaction that never ended": (in_place(made("NoOpRecord"), 3), "IMG-20", 1),
    "a transaction that ends and did not begin": (in_place(made("EndTransactionRecord")), "IMG-13", LATE),
    "a transaction within another": (in_place(made("BeginTransactionRecord"), 2), "IMG-13", 2),
    "a version that the metadata.version does not have": (changing(33, 2), "IMG-19", 33),
    "a kind that the metadata.version does not have": (
        in_place(made("ClearElrRecord", topicName=""), NO_OPS[0]), "IMG-19", NO_OPS[0],
    ),
    "a version that no release has": (in_place(b"\x01\x05\x09" + changed(0, CLICKS)[3:]), "IMG-19", LATE),
    "a kind that no release has": (in_place(b"\x01\x63\0\0"), "MRC-19", LATE),
    "a record that is cut short": (garbled(LATE), "MRC-19", LATE),
    "a record with a key": (with_time(LATE), "MRC-19", LATE),
    "an offset gap": (without(NO_OPS[-2]), "LDR-17", NO_OPS[-2]),
}  # fmt: skip


def test_the_list_has_more_than_ten_kinds() -> None:
    assert len({clause for _, clause, _ in DAMAGE.values()}) >= 14


@pytest.mark.clause("MRC-19", "IMG-1", "IMG-2", "IMG-3", "IMG-6", "IMG-7", "IMG-9", "IMG-12", "IMG-13", "IMG-14")
@pytest.mark.clause("IMG-15", "IMG-16", "IMG-17", "IMG-18", "IMG-19", "IMG-20", "IMG-26")
@pytest.mark.clause("IMG-27", "IMG-28", "IMG-29", "IMG-30", "IMG-31")
@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found_at_its_record_and_nothing_beside_it(kind: str, tmp_path: Path) -> None:
    edit, clause, offset = DAMAGE[kind]
    files = edited(edit)
    findings = [f for f in found(tmp_path, files) if f.severity]
    assert [(f.clause, f.offset) for f in findings] == [(clause, offset)], findings
    data = files[LOG]
    at = findings[0].position
    assert at is not None
    first = next(b for b in parsed(data) if b.last >= offset)
    start = data.index(first.encoded())
    assert start <= at < start + len(first.encoded())


TAKEN, LEFT_OUT = "stops; brokers take it", "stops; a broker logs an error, and leaves the record out"
GOES_ON, LATER = "every replay takes it as it is", "a controller stops at the next record that changes or ends"


@pytest.mark.clause("IMG-1", "IMG-2", "IMG-3", "IMG-6", "IMG-7", "IMG-8", "IMG-9", "IMG-12", "IMG-13", "IMG-18")
@pytest.mark.clause("IMG-27", "IMG-28", "IMG-29")
@pytest.mark.parametrize(
    ("records", "clause", "then"),
    [
        ([made("TopicRecord", name="clicks", topicId=GONE)], "IMG-1", TAKEN),
        ([made("TopicRecord", name="other", topicId=CLICKS)], "IMG-1", GOES_ON),
        ([partition(0, GONE)], "IMG-2", LEFT_OUT),
        ([changed(99, CLICKS)], "IMG-2", LEFT_OUT),
        ([made("RemoveTopicRecord", topicId=GONE)], "IMG-2", LEFT_OUT),
        ([made("ClearElrRecord", topicName="other")], "IMG-2", LEFT_OUT),
        ([changed(0, CLICKS, directories=[GONE])], "IMG-3", LEFT_OUT),
        ([changed(0, CLICKS, replicas=[], isr=[], directories=["A" * 22])], "IMG-3", LEFT_OUT),
        ([changed(0, CLICKS, leaderRecoveryState=7)], "IMG-3", LEFT_OUT),
        ([broker(1, EPOCH_1 - 1)], "IMG-6", GOES_ON),
        ([broker(9, 945)], "IMG-6", GOES_ON),
        ([made("FenceBrokerRecord", id=9, epoch=5)], "IMG-7", LEFT_OUT),
        ([made("UnfenceBrokerRecord", id=1, epoch=5)], "IMG-7", LEFT_OUT),
        ([made("BrokerRegistrationChangeRecord", brokerId=1, brokerEpoch=5)], "IMG-7", LEFT_OUT),
        ([made("UnregisterBrokerRecord", brokerId=9, brokerEpoch=5)], "IMG-7", TAKEN),
        ([level(32)], "IMG-8", LEFT_OUT),
        ([made("FeatureLevelRecord", name="new", featureLevel=1)], "IMG-8", TAKEN),
        ([made("FeatureLevelRecord", name="group.version", featureLevel=99)], "IMG-8", TAKEN),
        ([next_id(1)], "IMG-9", TAKEN),
        ([no_acl(GONE)], "IMG-12", LEFT_OUT),
        ([made("RemoveUserScramCredentialRecord", name="nobody", mechanism=1)], "IMG-12", TAKEN),
        ([made("EndTransactionRecord")], "IMG-13", LEFT_OUT),
        ([partition(0, CLICKS, leaderEpoch=0, partitionEpoch=0)], "IMG-18", GOES_ON),
        ([registered(9, logDirs=HOMES_2)], "IMG-27", TAKEN),
        ([registered(9, logDirs=[GONE, GONE])], "IMG-27", LATER),
        ([registered(9, endPoints=[endpoint("x", 4)])], "IMG-28", "brokers take it, and can write no snapshot"),
        ([registered(9, endPoints=[endpoint("", 0)])], "IMG-28", LEFT_OUT),
        ([registered(9, endPoints=[endpoint("x", 4), endpoint("", 0)])], "IMG-28", LEFT_OUT),
        ([registered(3009, endPoints=[endpoint("x", 4)])], "IMG-28", LEFT_OUT),
        ([registered(3009, endPoints=[endpoint("", 4)])], "IMG-28", LEFT_OUT),
        ([acl(GONE), acl(CLICKS), no_acl(GONE), no_acl(CLICKS)], "IMG-29", TAKEN),
    ],
)
def test_it_is_said_who_stops_at_a_record(records: list[bytes], clause: str, then: str, tmp_path: Path) -> None:
    """As the managers of Kafka 4.3.0's controller and its MetadataDelta answered, asked with such records. A broker's
    replay leaves out what it cannot take (MetadataBatchLoader); in a process that is a controller that is fatal."""
    edit = calmly(*records) if len(records) > 1 else in_place(records[0])
    (finding,) = [f for f in found(tmp_path, edited(edit)) if f.severity or f.clause == "IMG-8"]
    assert (finding.clause, then in finding.recovery) == (clause, True), finding.recovery


@pytest.mark.clause("IMG-7", "IMG-27", "IMG-28")
@pytest.mark.parametrize("of", [{"logDirs": HOMES_2[:1]}, {"endPoints": [endpoint("x", 4)]}])
def test_of_a_broker_that_could_not_be_registered_no_more_is_told(of: dict[str, Any], tmp_path: Path) -> None:
    later = (made("UnfenceBrokerRecord", id=0, epoch=LATE), made("FenceBrokerRecord", id=0, epoch=LATE))
    (finding,) = found(tmp_path, edited(calmly(broker(0, CALM[0], **of), *later, NO_OP)))
    assert finding.offset == CALM[0]


@pytest.mark.clause("IMG-6", "IMG-7", "IMG-21")
def test_a_snapshot_has_a_broker_s_directories_sorted(tmp_path: Path) -> None:
    """BrokerRegistration, Kafka 4.3.0: two numbers with a sign. A log has them as the broker named them."""
    few, many, negative = "AAAAAAAAAAEAAAAAAAAAAQ", "AAAAAAAAAAIAAAAAAAAAAg", "__________sAAAAAAAAAAQ"
    said = made("BrokerRegistrationChangeRecord", brokerId=2, brokerEpoch=2, logDirs=[GONE, negative])
    log = batches_of(level(30), broker(1, 1, logDirs=[many, few]), broker(2, 2, logDirs=[negative]), said, NO_OP)
    kept = level(30), broker(1, 1, logDirs=[few, many]), broker(2, 2, logDirs=[negative, GONE])
    name = f"{4:020}-{1:010}.checkpoint"
    assert found(tmp_path / "a", {LOG: written(log), name: written(snapshot_of(*kept))}) == []
    other = level(30), broker(1, 1, logDirs=[few]), *kept[2:]
    (finding,) = found(tmp_path / "b", {LOG: written(log), name: written(snapshot_of(*other))})
    assert (finding.clause, finding.offset) == ("IMG-21", 2)


@pytest.mark.clause("IMG-21")
def test_the_order_of_cordoned_directories_counts(tmp_path: Path) -> None:
    """BrokerRegistration, Kafka 4.3.0: those it leaves as they are."""
    log = batches_of(level(30), broker(1, 1, cordonedLogDirs=[GONE, CLICKS]), NO_OP)
    snapshot = written(snapshot_of(level(30), broker(1, 1, cordonedLogDirs=[CLICKS, GONE])))
    (finding,) = found(tmp_path, {LOG: written(log), f"{2:020}-{1:010}.checkpoint": snapshot})
    assert (finding.clause, finding.offset) == ("IMG-21", 2)


def test_a_real_log_is_sound_and_its_snapshots_are_compared(tmp_path: Path) -> None:
    for node in ("node-1", "node-2", "node-3"):
        assert found(tmp_path / node, files_of(node, snapshots=True)) == []


def test_a_leader_that_was_fenced_is_told_once_for_all_its_partitions(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, edited(cut(FENCED)))
    assert re.search(r"is led by 2, which is fenced; and \d+ more partitions", finding.message)


def test_a_wrong_crc_hides_what_follows_until_a_snapshot(tmp_path: Path) -> None:
    files = files_of(snapshots=True)
    data = bytearray(files[LOG])
    batches = parsed(files[LOG])
    b, _ = place(batches, 33)
    at = bytes(data).index(b.encoded())
    data[at + 70] ^= 1
    put(batches, LATE, changed(0, GONE))
    tail = written(batches)[len(written([x for x in batches if x.last < LATE])) :]
    kept = bytes(data[: len(written([x for x in batches if x.last < LATE]))])
    findings = [f for f in found(tmp_path, {**files, LOG: kept + tail}) if f.severity]
    assert [(f.clause, f.position if f.clause == "BAT-3" else f.offset) for f in findings] == [
        ("BAT-3", at + 17), ("IMG-2", LATE),
    ]  # fmt: skip


@pytest.mark.clause("MRC-19")
def test_of_records_that_nobody_reads_the_first_is_told_and_how_many_more(tmp_path: Path) -> None:
    bad = b"\x01\x63\0\0"

    def edit(batches: list[LogBatch]) -> None:
        for offset in (*NO_OPS[-9:-5], *NO_OPS[-2:]):
            put(batches, offset, bad)

    assert NO_OPS[-9:-5] == [*range(NO_OPS[-9], NO_OPS[-5])]
    findings = found(tmp_path, edited(edit))
    assert [(f.clause, f.offset, f.message.partition("; ")[2]) for f in sorted(findings, key=Finding.order)] == [
        ("MRC-19", NO_OPS[-9], "and 3 more behind it"), ("MRC-19", NO_OPS[-2], "and 1 more behind it"),
    ]  # fmt: skip


@pytest.mark.clause("MRC-19")
def test_another_topic_s_log_is_one_finding(tmp_path: Path) -> None:
    rows = LogBatch(0, 0, [(b"key", b"value")] * 300)
    (finding,) = found(tmp_path, {LOG: rows.encoded()})
    assert (finding.clause, finding.offset) == ("MRC-19", 0)
    assert finding.message.endswith("a data record with a key (MRC-16); and 299 more behind it")


@pytest.mark.clause("MRC-19", "IMG-22")
def test_of_a_snapshot_s_records_that_nobody_reads_the_first_is_told(tmp_path: Path) -> None:
    def edit(batches: list[LogBatch]) -> None:
        for offset in range(5, 9):
            put(batches, offset, b"\x01\x63\0\0")

    (finding,) = found(tmp_path, edited(edit, LAST, snapshots=True))
    assert (finding.clause, finding.offset, Path(finding.file).name) == ("MRC-19", 5, LAST)
    assert finding.message.endswith("; and 3 more behind it")


@pytest.mark.clause("MRC-19", "IMG-14")
@pytest.mark.parametrize("unread", [b"\x01\x63\0\0", b""])
def test_a_batch_in_whose_midst_a_snapshot_ends(unread: bytes, tmp_path: Path) -> None:
    """Its first record is one that nobody reads, and its last one breaks a rule in the state that the snapshot has."""
    base = [level(30), broker(1, 1), topic(), partition(replicas=[1], isr=[1], directories=[GONE])]
    log = written(batches_of(base, [unread, changed(isr=[1, 9])]))
    findings = found(tmp_path, {LOG: log, f"{5:020}-{1:010}.checkpoint": written(snapshot_of(*base))})
    assert [(f.clause, f.offset) for f in sorted(findings, key=Finding.order)] == [("MRC-19", 4), ("IMG-14", 5)]


@pytest.mark.clause("IMG-11", "IMG-21")
def test_of_an_entity_s_two_parts_of_one_type_the_last_counts(tmp_path: Path) -> None:
    """ClientQuotaControlManager, Kafka 4.3.0; and one of them may be null."""
    parts = [{"entityType": "user", "entityName": n} for n in (None, "u", None)]

    def quota(entity: list[Any]) -> bytes:
        return made("ClientQuotaRecord", entity=entity, key="k", value=1.0, remove=False)

    log = {LOG: written(batches_of(quota(parts)))}
    name = f"{1:020}-{1:010}.checkpoint"
    assert found(tmp_path / "a", {**log, name: written(snapshot_of(quota([parts[0]])))}) == []
    (finding,) = found(tmp_path / "b", {**log, name: written(snapshot_of(quota(parts[:2])))})
    assert (finding.clause, "client quota" in finding.message) == ("IMG-21", True)


@pytest.mark.clause("IMG-19")
def test_a_version_that_is_not_allowed_is_told_once_for_a_metadata_version(tmp_path: Path) -> None:
    levels = [o for o, r in replayable(real()["node-1"]) if r.fields.get("name") == "metadata.version"]
    other = [o for o in NO_OPS if levels[0] < o < levels[1]][:3]
    assert len(other) == 3

    def edit(batches: list[LogBatch]) -> None:
        for offset in other:
            put(batches, offset, made("ClearElrRecord", topicName=""))

    (finding,) = found(tmp_path, edited(edit))
    assert (finding.clause, finding.offset) == ("IMG-19", other[0])


def test_a_torn_tail_is_what_a_crash_leaves(tmp_path: Path) -> None:
    files = files_of()
    (finding,) = found(tmp_path, {**files, LOG: files[LOG][:-5]})
    assert finding.severity == 0
    assert finding.position == len(files[LOG]) - len(parsed(files[LOG])[-1].encoded())


# ---- snapshots -------------------------------------------------------------------------------------------------------
def of_snapshot(kind: str, **of: Any) -> tuple[Edit, list[int]]:
    """The first record of that kind in a snapshot has other fields. Its offset is noted."""
    at: list[int] = []

    def edit(batches: list[LogBatch]) -> None:
        for b in batches:
            for n in range(len(b.records)):
                if not b.control and not at and record_at(batches, b.base + n).name == kind:
                    at.append(b.base + n)
                    change(batches, b.base + n, **of)

    return edit, at


@pytest.mark.clause("IMG-21")
@pytest.mark.parametrize(
    ("kind", "of"),
    [
        ("PartitionRecord", {"leaderEpoch": 77}),
        ("ConfigRecord", {"value": "other"}),
        ("RegisterBrokerRecord", {"fenced": True, "rack": "other"}),
        ("FeatureLevelRecord", {"featureLevel": 29}),
        ("ProducerIdsRecord", {"nextProducerId": 7}),
        ("ClientQuotaRecord", {"value": 77.5}),
        ("AccessControlEntryRecord", {"host": "other"}),
        ("UserScramCredentialRecord", {"iterations": 9999}),
        ("RegisterControllerRecord", {"incarnationId": GONE}),
    ],
)
def test_a_snapshot_that_differs_is_found_at_its_record(kind: str, of: dict[str, Any], tmp_path: Path) -> None:
    edit, at = of_snapshot(kind, **of)
    findings = found(tmp_path, edited(edit, LAST, snapshots=True))
    assert [(f.clause, f.offset, Path(f.file).name) for f in findings if f.clause != "IMG-19"] == [
        ("IMG-21", at[0], LAST)
    ]


@pytest.mark.clause("IMG-21")
def test_a_snapshot_that_lacks_a_record_is_found(tmp_path: Path) -> None:
    def edit(batches: list[LogBatch]) -> None:
        for b in batches:
            for n in range(len(b.records)):
                if not b.control and record_at(batches, b.base + n).name == "UserScramCredentialRecord":
                    put(batches, b.base + n, made("NoOpRecord"))
                    return

    (finding,) = found(tmp_path, edited(edit, LAST, snapshots=True))
    assert (finding.clause, "is not in it" in finding.message) == ("IMG-21", True)


@pytest.mark.clause("IMG-22")
@pytest.mark.parametrize("kind", ["header", "footer", "epoch", "torn", "damaged"])
def test_a_snapshot_is_whole(kind: str, tmp_path: Path) -> None:
    def edit(batches: list[LogBatch]) -> None:
        if kind == "header":
            batches[0].records = batches[-1].records
        if kind == "footer":
            batches.pop()
        if kind == "epoch":
            batches[1].epoch = 3

    files = edited(edit, LAST, snapshots=True)
    if kind == "torn":
        files[LAST] = files[LAST][:-3]
    if kind == "damaged":
        files[LAST] = files[LAST][:200] + bytes([files[LAST][200] ^ 1]) + files[LAST][201:]
    (finding,) = found(tmp_path, files)
    assert (finding.clause, Path(finding.file).name, finding.severity) == ("IMG-22", LAST, 3)


@pytest.mark.clause("IMG-20")
def test_no_snapshot_ends_within_a_transaction(tmp_path: Path) -> None:
    files = edited(in_place(made("BeginTransactionRecord", name="x"), NO_OPS[-2]), snapshots=True)
    end = NO_OPS[-2] + 1
    snapshot = parsed(files[LAST])
    files[f"{end:020}-{4:010}.checkpoint"] = written(snapshot)
    del files[LAST]
    findings = [f for f in found(tmp_path, files) if f.clause == "IMG-20"]
    assert [(f.offset, "ends within" in f.message) for f in findings] == [(NO_OPS[-2], True)]


@pytest.mark.clause("IMG-20")
def test_a_transaction_at_the_end_may_be_open(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, edited(in_place(made("BeginTransactionRecord"))))
    assert (finding.clause, finding.severity, finding.offset) == ("IMG-20", 0, LATE)


@pytest.mark.clause("IMG-20")
def test_a_transaction_that_the_next_controller_does_not_abort(tmp_path: Path) -> None:
    before = [n for n in NO_OPS if n < 465][-1]
    after = next(n for n in NO_OPS if n > 465)
    (finding,) = found(tmp_path / "a", edited(in_place(made("BeginTransactionRecord"), before)))
    assert (finding.clause, finding.severity, finding.offset) == ("IMG-20", 3, before)
    abort = made("AbortTransactionRecord")
    first = next(b.base for b in parsed(real()["node-1"][LOG]) if b.epoch == 2 and not b.control)

    def both(batches: list[LogBatch]) -> None:
        put(batches, before, made("BeginTransactionRecord"))
        put(batches, first, abort)
        del batches[batches.index(place(batches, first)[0]) + 1 :]

    assert first <= after
    assert [f.clause for f in found(tmp_path / "b", edited(both)) if f.clause[:3] == "IMG"] == []


def quorum_state(**of: Any) -> bytes:
    """The file as Kafka writes it; what is None is not in it."""
    said = {"leaderId": 3, "leaderEpoch": 4, "votedId": 3, "votedDirectoryId": GONE, "data_version": 1} | of
    return json.dumps({k: v for k, v in said.items() if v is not None}).encode()


def older_state(**of: Any) -> bytes:
    """Of releases before 3.9."""
    said = {
        "clusterId": "", "leaderId": 3, "leaderEpoch": 4, "votedId": -1, "appliedOffset": 0, "currentVoters": [],
        "data_version": 0,
    } | of  # fmt: skip
    return json.dumps({k: v for k, v in said.items() if v is not None or k == "currentVoters"}).encode()


STATE = quorum_state()


@pytest.mark.clause("IMG-23")
@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (quorum_state(), None),
        (quorum_state(leaderEpoch=3), 2),
        (quorum_state(data_version=2), 3), (quorum_state(data_version="1"), 3), (quorum_state(data_version=True), 3),
        (quorum_state(data_version=1.0), None), (quorum_state(data_version=65537), None),
        (quorum_state(data_version=-65535), None), (quorum_state(data_version=1e300), 3),
        (STATE.replace(b'"data_version": 1', b'"data_version": 1e400'), 3),
        (quorum_state(leaderId=None), 3), (quorum_state(leaderId="3"), 3), (quorum_state(leaderEpoch=4.0), 3),
        (quorum_state(leaderEpoch=1 << 31), 3), (quorum_state(leaderEpoch=(1 << 31) - 1), None),
        (quorum_state(votedId=-1 << 31), None), (quorum_state(votedId=(-1 << 31) - 1), 3),
        (quorum_state(votedDirectoryId=None), 3), (quorum_state(votedDirectoryId=7), 3),
        (quorum_state(votedDirectoryId="***"), 3), (quorum_state(votedDirectoryId="AAAA"), 3),
        (quorum_state(votedDirectoryId=f"{GONE}=="), None), (quorum_state(votedDirectoryId=f"{GONE}="), 3),
        (quorum_state(votedDirectoryId=f"+/{GONE[2:]}"), 3), (quorum_state(votedDirectoryId=""), 3),
        (STATE + b" xyz", None), (STATE + b"}", None), (STATE + bytes(50), None), (b" \t" + STATE, None),
        (STATE + b"\r x", None), (STATE + b"\nx", None), (STATE + b"\n\xff", 3), (b"\n" + STATE, 3),
        (STATE[:-1] + b', "x": "\\ud800", "y": 1e400}', None), (STATE[:-1] + b', "x": NaN}', 3),
        pytest.param(STATE[:-1] + b', "x": ' + b"9" * 900 + b"}", None, id="900 digits"),
        pytest.param(STATE[:-1] + b', "x": ' + b"9" * 1_001 + b"}", 3, id="1,001 digits"),
        pytest.param(b"[" * 100_000, 3, id="100,000 brackets"),
        (b'{"leaderEpoch": 3, ' + STATE[1:], None),
        (older_state(), None), (older_state(currentVoters=GONE), 3), (older_state(currentVoters=None), 3),
        (older_state(currentVoters={}), 3), (older_state(currentVoters=""), 3), (older_state(currentVoters=[1]), 3),
        (older_state(currentVoters=[{"voterId": 1 << 40}]), 3), (older_state(data_version=True), None),
        (older_state(currentVoters=[{"voterId": 1}]), None),
        (older_state(currentVoters=[{}]), 3), (older_state(currentVoters=[{"voterId": "1"}]), 3),
        (older_state(currentVoters=7), 3), (older_state(clusterId=None), 3), (older_state(appliedOffset=1 << 32), None),
        (older_state(appliedOffset=1 << 63), 3),
        (b'{"leaderEpoch":4,"data_version":1}', 3),
        (b'{"leaderId":3,"leaderEpoch":4}', 3),
        (b'{"leaderEpoch":"4","data_version":0}', 3),
        (b"[]", 3), (b"", 3), (b"\xff", 3), (b"7", 3),
    ],
)  # fmt: skip
def test_the_file_quorum_state(text: bytes, severity: int | None, tmp_path: Path) -> None:
    findings = found(tmp_path, {**files_of(), "quorum-state": text})
    assert [(f.clause, f.severity, f.line) for f in findings] == ([] if severity is None else [("IMG-23", severity, 1)])


# ---- what cannot be read ---------------------------------------------------------------------------------------------
@pytest.mark.clause("IMG-8")
def test_of_a_newer_metadata_version_one_line_is_said(tmp_path: Path) -> None:
    def edit(batches: list[LogBatch]) -> None:
        put(batches, NO_OPS[3], level(32))
        put(batches, LATE, b"\x01\x63\0\0")

    a = audit([lay(tmp_path, edited(edit))], strict=True)
    assert [(f.clause, f.severity.name, f.offset) for f in a.findings] == [("IMG-8", "UNCHECKED", NO_OPS[3])]
    assert a.exit_code == 2


@pytest.mark.clause("IMG-8")
@pytest.mark.parametrize(
    ("number", "whose"),
    [
        (1, "an older Kafka: those that 4.3.0 reads begin with 7"),
        (6, "an older Kafka: those that 4.3.0 reads begin with 7"),
        (32, "a newer Kafka, or none of Kafka's; the file is not read on"),
        (0, "a newer Kafka, or none of Kafka's"),
        (-1, "a newer Kafka, or none of Kafka's"),
    ],
)
def test_a_metadata_version_is_of_an_older_kafka_or_a_newer_one(number: int, whose: str, tmp_path: Path) -> None:
    finding = found(tmp_path, edited(lambda batches: put(batches, NO_OPS[3], level(number))))[0]
    assert (finding.clause, finding.severity.name, finding.offset) == ("IMG-8", "UNCHECKED", NO_OPS[3])
    assert finding.message.endswith(f"; of {whose}")


@pytest.mark.clause("IMG-8")
def test_a_feature_that_the_release_does_not_know_is_not_checked(tmp_path: Path) -> None:
    record = made("FeatureLevelRecord", name="new.version", featureLevel=1)
    (finding,) = found(tmp_path, edited(in_place(record)))
    assert (finding.clause, finding.severity.name, finding.offset) == ("IMG-8", "UNCHECKED", LATE)


def test_what_is_empty_or_no_metadata_log(tmp_path: Path) -> None:
    assert found(tmp_path / "a", {LOG: b""}) == []
    with pytest.raises(UserError, match="it is empty"):
        audit([lay(tmp_path / "b", {})])
    a = audit([lay(tmp_path / "c", {LOG: b"no log at all" * 20})])
    assert (a.exit_code, {f.clause for f in a.findings}) == (1, {"BAT-1"})


def test_a_snapshot_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    folder = lay(tmp_path, files_of(snapshots=True))
    (folder / f"{313:020}-{1:010}.checkpoint").unlink()
    (folder / f"{313:020}-{1:010}.checkpoint").symlink_to("/dev/null")
    a = audit([folder])
    assert a.findings == ()
    assert [p.rpartition(": ")[2] for p in a.problems] == ["not a regular file"]
    assert a.exit_code == 2


# ---- a last known leader that is no replica
@pytest.mark.clause("IMG-14")
def test_a_last_known_leader_that_is_no_replica_is_sound_until_it_is_elected(tmp_path: Path) -> None:
    """The records of ReplicationControlManager, Kafka 4.3.0: a replica that was added leads alone, is fenced, stops
    uncleanly, and the reassignment is cancelled. The next record is one that it does not write: LeaderAcceptor throws
    where it is asked for 3, and PartitionChangeBuilder by itself takes it."""
    fenced = [made("BrokerRegistrationChangeRecord", 0, brokerId=b, brokerEpoch=b, fenced=1) for b in (1, 2, 3)]
    unfenced = made("BrokerRegistrationChangeRecord", 0, brokerId=3, brokerEpoch=3, fenced=-1)
    records: list[bytes | Sequence[bytes]] = [
        level(30), *(broker(b, b) for b in (1, 2, 3)), topic(),
        partition(replicas=[3, 1, 2], isr=[3], leader=3, addingReplicas=[3]), *fenced[:2],
        [changed(isr=[], leader=-1, eligibleLeaderReplicas=[3], lastKnownElr=[3]), fenced[2]],
        changed(eligibleLeaderReplicas=[]),
        changed(isr=[1], leader=-1, replicas=[1, 2], addingReplicas=[]),
        unfenced,
    ]  # fmt: skip
    assert found(tmp_path / "kafka", {LOG: written(batches_of(*records))}) == []
    records.append(changed(isr=[3], leader=3, leaderRecoveryState=1, lastKnownElr=[]))
    (finding,) = found(tmp_path / "elected", {LOG: written(batches_of(*records))})
    assert (finding.clause, finding.offset) == ("IMG-14", 13)


# ---- what cannot be read
CUTS = 0, 262, 465, 719
"""Where segments begin: epochs begin at 465 and at 627, and snapshots end at 208, 313, 427, 719 and 940."""


def in_segments(files: dict[str, bytes]) -> dict[str, bytes]:
    """The log in several segments."""
    batches = parsed(files[LOG])
    held = {n: data for n, data in files.items() if n != LOG}
    for base, upper in zip(CUTS, (*CUTS[1:], 945), strict=True):
        held[f"{base:020}.log"] = written([b for b in batches if base <= b.base < upper])
    return held


def unread(folder: Path, n: int, put: Put = dangling) -> Path:
    """The n-th segment cannot be read."""
    log = folder / f"{CUTS[n]:020}.log"
    log.unlink()
    put(log)
    return log


@pytest.mark.parametrize("put", [fifo, loop, dangling])
@pytest.mark.parametrize(("n", "until"), [(0, 313), (1, 719), (2, 719), (3, None)])
def test_a_segment_that_cannot_be_read_is_told_and_is_no_evidence(
    put: Put, n: int, until: int | None, tmp_path: Path
) -> None:
    folder = lay(tmp_path, in_segments(files_of(snapshots=True)))
    assert audit([folder], strict=True).findings == ()
    log = unread(folder, n, put)
    a = audit([folder], strict=True)
    assert a.findings == ()
    upto = "" if until is None else f" up to the snapshot at offset {until}"
    assert len(a.problems) == 2
    assert f"{log}: its records are not replayed, nor what follows{upto}" in a.problems
    assert (a.exit_code, a.metadata_records != ()) == (2, True)


@pytest.mark.clause("IMG-2", "MRC-19", "IMG-21")
@pytest.mark.parametrize("n", [0, 1, 2])
def test_behind_the_next_snapshot_the_log_is_replayed_again(n: int, tmp_path: Path) -> None:
    """Up to there only that is told for which the state need not be known."""
    between, behind = next(o for o in NO_OPS if o > CUTS[n + 1]), LATE
    unknown = changed(0, GONE, isr=[1])
    for offset, record, told in (
        (behind, unknown, ["IMG-2"]),
        (between, unknown, ["IMG-2"] if n == 2 else []),
        (between, b"\x01\x63\0\0", ["MRC-19"]),
    ):
        files = in_segments(edited(in_place(record, offset), snapshots=True))
        folder = lay(tmp_path / f"{offset}-{len(record)}", files)
        unread(folder, n)
        a = audit([folder], strict=True)
        assert [(f.clause, f.offset) for f in a.findings] == [(clause, offset) for clause in told]
        assert a.exit_code == (1 if told else 2)


@pytest.mark.clause("IMG-20")
def test_a_transaction_may_have_ended_in_a_segment_that_cannot_be_read(tmp_path: Path) -> None:
    """And another one may have begun in it."""
    begin, end = made("BeginTransactionRecord", name="x"), made("EndTransactionRecord")
    files = {
        f"{base:020}.log": written(batches_of(*records, base=base))
        for base, records in ((0, (level(30), begin)), (2, (NO_OP, end)), (4, (NO_OP, NO_OP)), (6, (end, begin, end)))
    } | {f"{6:020}-{1:010}.checkpoint": written(snapshot_of(level(30)))}
    folder = lay(tmp_path, files)
    (folder / f"{2:020}.log").unlink()
    dangling(folder / f"{2:020}.log")
    assert [(f.clause, f.offset) for f in audit([folder], strict=True).findings] == [("IMG-13", 6)]


@pytest.mark.clause("IMG-20")
def test_a_transaction_may_have_ended_in_a_last_segment_that_cannot_be_read(tmp_path: Path) -> None:
    begin, end = made("BeginTransactionRecord", name="x"), made("EndTransactionRecord")
    records = ((0, (level(30), begin)), (2, (NO_OP, end)))
    folder = lay(tmp_path, {f"{base:020}.log": written(batches_of(*of, base=base)) for base, of in records})
    (folder / f"{2:020}.log").unlink()
    assert [f.clause for f in audit([folder], strict=True).findings] == ["IMG-20"]
    dangling(folder / f"{2:020}.log")
    assert audit([folder], strict=True).findings == ()


@pytest.mark.clause("IMG-25")
def test_an_epoch_that_no_leader_began_is_told_before_what_cannot_be_read(tmp_path: Path) -> None:
    folder = lay(tmp_path, in_segments(edited(in_epoch(NO_OPS[-5], 9))))
    data = folder / f"{CUTS[3]:020}.log"
    batches = [b for b in parsed(data.read_bytes()) if b.base <= NO_OPS[-5]]
    data.write_bytes(written(batches))
    (folder / f"{NO_OPS[-5] + 1:020}.log").symlink_to("nowhere")
    assert ("IMG-25", NO_OPS[-5]) in [(f.clause, f.offset) for f in audit([folder], strict=True).findings]


@pytest.mark.clause("IMG-23")
def test_quorum_state_is_held_against_what_was_read(tmp_path: Path) -> None:
    files = in_segments(files_of(snapshots=True))
    state = json.loads(files["quorum-state"])
    for epoch, told in ((3, [("IMG-23", "leaderEpoch 3, where the log has epoch 4")]), (4, [])):
        files["quorum-state"] = json.dumps({**state, "leaderEpoch": epoch}).encode()
        folder = lay(tmp_path / str(epoch), files)
        unread(folder, 3)
        assert [(f.clause, f.message) for f in audit([folder], strict=True).findings] == told


@pytest.mark.clause("IMG-34")
def test_which_epoch_the_log_has_behind_damage_is_not_known(tmp_path: Path) -> None:
    """The last batch of a segment begins an epoch, and is damaged."""
    change = control(2, "LeaderChangeMessage", 2, leaderId=1)
    damaged = bytearray(written([*batches_of(level(30), NO_OP), change]))
    damaged[-1] ^= 1
    files = {
        f"{0:020}.log": bytes(damaged),
        f"{3:020}.log": written(batches_of(NO_OP, base=3, epoch=2)),
        f"{3:020}-{2:010}.checkpoint": written(snapshot_of(level(30), epoch=2)),
    }
    assert [f.clause for f in found(tmp_path, files)] == ["BAT-3"]


def test_a_log_that_breaks_off_while_it_is_read_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("kafkaspec.audits.controller.metadata_image.stored", broken)
    folder = lay(tmp_path, files_of())
    a = audit([folder], strict=True)
    assert (a.findings, a.exit_code) == ((), 2)
    assert a.problems == (
        f"{folder / LOG}: Input/output error", f"{folder / LOG}: its records are not replayed, nor what follows",
    )  # fmt: skip


@pytest.mark.clause("IMG-22")
@pytest.mark.parametrize(
    ("name", "recovery"),
    [
        (f"{940:020}-{4:010}.checkpoint", "a node that loads"),
        (f"{57:020}-{1:010}-17.checkpoint.part", "it is removed"),
        (f"{57:020}-{1:010}.checkpoint.deleted", "it is removed"),
        (f"{719:020}-{5:010}.checkpoint", "all of the log is removed, since this is further; then"),
        ("0-0.checkpoint.deleted", "does not start"),
        ("0-0.checkpoint", "does not start"), ("bootstrap.checkpoint", "does not start"),
        (f"{1 << 63}-{4:010}.checkpoint", "does not start"), (f"{940:020}-{1 << 31:010}.checkpoint", "does not start"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_snapshot_s_name_says_an_offset_and_an_epoch_and_it_is_a_file(
    name: str, recovery: str, kind: str, tmp_path: Path
) -> None:
    folder = lay(tmp_path, files_of(snapshots=True))
    if kind == "file" and "start" not in recovery:
        return
    (folder / name).unlink(missing_ok=True)
    if kind == "file":
        (folder / name).write_bytes(written(snapshot_of()))
    else:
        (folder / name).mkdir()
    (finding,) = (f for f in audit([folder], strict=True).findings if f.clause != "LDR-1")
    assert (finding.clause, Path(finding.file).name, recovery in finding.recovery) == ("IMG-22", name, True)


@pytest.mark.clause("IMG-22")
@pytest.mark.parametrize("suffix", ["-17.checkpoint.part", ".checkpoint.deleted", ".checkpoint"])
def test_a_directory_that_a_start_would_remove_and_cannot(suffix: str, tmp_path: Path) -> None:
    """KafkaRaftLog.recoverSnapshots, Kafka 4.3.0: what is below the log's beginning is to be removed, too."""
    folder = begun_at(tmp_path, 7, 9) / "__cluster_metadata-0"
    snapshot = folder / f"{6:020}-{1:010}{suffix}"
    for content, severity, then in ((), 0, "it is removed"), (("x",), 3, "none: the node does not start"):
        snapshot.mkdir(exist_ok=True)
        for name in content:
            (snapshot / name).touch()
        (finding,) = (f for f in audit([tmp_path], strict=True).findings if f.clause == "IMG-22")
        assert (finding.file, finding.severity, finding.recovery) == (str(snapshot), severity, then)


@pytest.mark.clause("IMG-24")
def test_of_the_snapshot_that_covers_the_beginning_a_start_asks_for_the_name(tmp_path: Path) -> None:
    """Whoever loads it stops: one damage, one finding."""
    folder = begun_at(tmp_path, 7) / "__cluster_metadata-0"
    (folder / f"{8:020}-{1:010}.checkpoint").mkdir()
    findings = [f for f in audit([tmp_path], strict=True).findings if f.clause[:3] == "IMG"]
    assert [(f.clause, f.recovery) for f in findings] == [("IMG-22", "none: a node that loads the snapshot stops")]


@pytest.mark.parametrize(
    "name",
    [
        f"{(1 << 63) - 1:020}-{(1 << 31) - 1:010}.checkpoint.deleted",
        f"{0:020}-{0:010}.checkpoint.deleted",
        "x.part",
        "x",
    ],
)
def test_other_names_are_nobody_s_matter(name: str, tmp_path: Path) -> None:
    folder = lay(tmp_path, files_of(snapshots=True))
    (folder / name).write_bytes(b"")
    (folder / f"{name}.d").mkdir()
    assert [f for f in audit([folder], strict=True).findings if f.clause != "LDR-1"] == []


@pytest.mark.clause("IMG-23")
def test_the_file_quorum_state_is_no_directory(tmp_path: Path) -> None:
    folder = lay(tmp_path, files_of())
    (folder / "quorum-state").unlink()
    (folder / "quorum-state").mkdir()
    (finding,) = audit([folder], strict=True).findings
    assert (finding.clause, finding.severity, Path(finding.file).name) == ("IMG-23", 3, "quorum-state")


def begun_at(tmp_path: Path, offset: int, *snapshots: int, whole: bool = True) -> Path:
    """A metadata log of a stopped node that begins there, and empty snapshots of these end offsets."""
    files = {f"{offset:020}.log": written(batches_of(NO_OP, NO_OP, base=offset))}
    files |= {f"{o:020}-{1:010}.checkpoint": written(snapshot_of()) for o in snapshots}
    folder = lay(tmp_path, files)
    if whole:
        (tmp_path / "meta.properties").write_text("version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\nnode.id=1\n")
        (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    return tmp_path if whole else folder


@pytest.mark.clause("IMG-24")
@pytest.mark.parametrize(
    ("first", "snapshots", "sound"),
    [
        (0, (), True), (7, (), False), (7, (6,), False), (7, (3, 6), False), (7, (7,), True), (7, (6, 8), True),
        (7, (9,), True),
    ],
)  # fmt: skip
def test_a_log_that_begins_later_has_a_snapshot(
    first: int, snapshots: tuple[int, ...], sound: bool, tmp_path: Path
) -> None:
    """KafkaRaftLog, Kafka 4.3.0, throws IllegalStateException: inconsistent snapshot state."""
    found = [f for f in audit([begun_at(tmp_path, first, *snapshots)], strict=True).findings if f.clause[:3] == "IMG"]
    assert [(f.clause, f.severity, f.offset) for f in found] == ([] if sound else [("IMG-24", 3, first)])


@pytest.mark.clause("IMG-24")
def test_of_a_part_it_is_said_that_there_is_no_snapshot(tmp_path: Path) -> None:
    """The state before is not known, and the rules that need it are not asked."""
    a = audit([begun_at(tmp_path / "a", 7, 6, whole=False)], strict=True)
    assert a.part is not None
    assert (a.findings, "snapshots" in a.part.without) == ((), True)
    assert {"IMG-2", "IMG-14", "IMG-21", "IMG-24"} <= {*a.part.not_asked}
    other = audit([begun_at(tmp_path / "b", 7, 8, whole=False)], strict=True)
    assert other.part is not None
    assert (other.findings, "snapshots" in other.part.without) == ((), False)
    assert "IMG-24" not in other.part.not_asked


@pytest.mark.clause("IMG-25")
@pytest.mark.parametrize("from_on", [NO_OPS[-3], LATE])
def test_an_epoch_that_no_leader_began(from_on: int, tmp_path: Path) -> None:
    """Nothing protects an epoch; here no other file knows better."""
    (finding,) = found(tmp_path, {LOG: edited(raised(from_on, 9))[LOG]})
    assert (finding.clause, finding.severity, finding.offset) == ("IMG-25", 3, from_on)
    assert finding.message == "epoch 9 begins, after 4, without its leader's change"


@pytest.mark.clause("IMG-25")
def test_of_an_epoch_that_is_lower_behind_it_the_log_s_own_rule_tells(tmp_path: Path) -> None:
    findings = found(tmp_path, edited(in_epoch(NO_OPS[-3], 9)))
    assert [f.clause for f in findings if f.severity] == ["LEC-19"]


@pytest.mark.clause("IMG-8")
def test_a_kraft_version_that_the_release_does_not_know_is_not_checked(tmp_path: Path) -> None:
    base = batches_of(level(30), base=1)
    for n, (known, of) in enumerate([(True, 0), (True, 1), (False, 2), (False, -1)]):
        record = control(0, "KRaftVersionRecord", 1, kRaftVersion=of)
        findings = found(tmp_path / f"log-{n}", {LOG: written([record, *base])})
        assert [(f.clause, f.severity.name, f.offset) for f in findings] == (
            [] if known else [("IMG-8", "UNCHECKED", 0)]
        )
        header, *rest = snapshot_of(level(30))
        snapshot = written([header, control(1, "KRaftVersionRecord", 1, kRaftVersion=of), *shifted(rest)])
        files = {LOG: written([record, *base]), f"{2:020}-{1:010}.checkpoint": snapshot}
        findings = found(tmp_path / f"snapshot-{n}", files)
        assert [(f.clause, f.severity.name, f.offset) for f in findings] == (
            [] if known else [("IMG-8", "UNCHECKED", 0), ("IMG-8", "UNCHECKED", 1)]
        )


def shifted(batches: list[LogBatch]) -> list[LogBatch]:
    """One offset further."""
    for b in batches:
        b.base += 1
    return batches


def test_nothing_is_written(tmp_path: Path) -> None:
    folder = lay(tmp_path, files_of(snapshots=True))
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}
    audit([folder])
    assert {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()} == before


def test_records_are_counted_by_kind(tmp_path: Path) -> None:
    from kafkaspec.audit.context import contexts
    from kafkaspec.audit.discover import discover
    from kafkaspec.audit.engine import audit_log

    (place,) = discover([lay(tmp_path, files_of(snapshots=True))]).places
    ((log,),) = contexts([place])
    findings, summary = audit_log(log)
    assert findings == []
    counts = summary.facts.metadata_records
    assert (counts["PartitionChangeRecord"], counts["AccessControlEntryRecord"]) == (469, 5)
    assert sum(counts.values()) == 940
    assert summary.facts.compared_snapshots == (57, 127, 208, 313, 427, 719, 940)


# ---- several nodes ---------------------------------------------------------------------------------------------------
def three_nodes(path: Path, logs: Mapping[str, bytes], snapshots: Mapping[str, bytes]) -> list[Path]:
    """The log directories of three nodes, with the metadata log alone; `logs`, `snapshots`: what some of them have."""
    out = []
    for n, node in enumerate(("node-1", "node-2", "node-3")):
        data = path / node
        files = {k: d for k, d in real()[node].items() if not CHECKPOINT.fullmatch(k)}
        if node in snapshots:
            files[f"{57:020}-{1:010}.checkpoint"] = snapshots[node]
        lay(data, files | ({LOG: logs[node]} if node in logs else {}))
        (data / "meta.properties").write_text(f"version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\nnode.id={n + 1}\n")
        (data / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
        out.append(data)
    return out


def test_logs_of_several_nodes_are_compared(tmp_path: Path) -> None:
    assert audit(three_nodes(tmp_path / "a", {}, {}), strict=True).findings == ()
    batches = parsed(real()["node-2"][LOG])
    assert record_at(batches, 59).fields["value"] == "86400000"
    change(batches, 59, value="86400001")
    (finding,) = audit(three_nodes(tmp_path / "b", {"node-2": written(batches)}, {}), strict=True).findings
    assert (finding.clause, finding.offset, "node-2" in finding.file) == ("RPL-4", 59, True)


@pytest.mark.clause("IMG-21")
def test_snapshots_of_several_nodes_are_compared(tmp_path: Path) -> None:
    name = f"{57:020}-{1:010}.checkpoint"
    whole = real()["node-1"][name]
    batches = parsed(whole)
    at = next(n for n in range(1, 30) if record_at(batches, n).name == "ConfigRecord")
    change(batches, at, value="other")
    kept = {"node-1": whole, "node-2": real()["node-2"][name], "node-3": written(batches)}
    (finding,) = audit(three_nodes(tmp_path, {}, kept), strict=True).findings
    assert (finding.clause, finding.offset, "node-3" in finding.file) == ("IMG-21", at, True)


# ---- control records -------------------------------------------------------------------------------------------------
def of_raft(name: str, **fields: Any) -> tuple[bytes | None, bytes]:
    return codec.encode_control(codec.record(name, **fields))


def with_control(record: tuple[bytes | None, bytes], epoch: int = 4) -> Edit:
    """A control record in the place of one of data, and of an epoch from there on."""

    def edit(batches: list[LogBatch]) -> None:
        b, _ = place(batches, LATE)
        b.control, b.records = True, [record]
        raised(LATE, epoch)(batches)

    return edit


SNAPSHOT = "00000000000000000940-0000000004.checkpoint"
VOTERS: list[dict[str, Any]] = next(
    codec.decode_control(*r).fields["voters"]
    for b in parsed(real()["node-1"][SNAPSHOT])
    for r in b.records
    if b.control and codec.decode_control(*r).name == "VotersRecord"
)
ONE, TWO, THREE = VOTERS
FOUR = {**THREE, "voterId": 4}
MOVED = [{**v, "voterDirectoryId": GONE} for v in VOTERS]


@pytest.mark.clause("IMG-33")
@pytest.mark.parametrize(
    ("record", "told"),
    [
        (of_raft("VotersRecord", voters=VOTERS), None),
        (of_raft("VotersRecord", voters=[TWO, ONE]), None),
        (of_raft("VotersRecord", voters=[*VOTERS, FOUR]), None),
        (of_raft("VotersRecord", voters=[{**ONE, "endpoints": []}, TWO, {**THREE, "endpoints": []}]), None),
        (of_raft("VotersRecord", voters=[MOVED[0], TWO, THREE]), None),
        (of_raft("KRaftVersionRecord", kRaftVersion=1), None),
        (of_raft("VotersRecord", voters=[]), "VotersRecord: no voter"),
        (of_raft("VotersRecord", voters=[*VOTERS, TWO]), "VotersRecord: voter 2 twice"),
        (of_raft("VotersRecord", voters=[THREE]), "VotersRecord: voters [3] in the place of [1, 2, 3]"),
        (of_raft("VotersRecord", voters=[ONE, TWO, FOUR]), "VotersRecord: voters [1, 2, 4] in the place of [1, 2, 3]"),
        (of_raft("VotersRecord", voters=MOVED), "VotersRecord: voters [1, 2, 3] in the place of [1, 2, 3]"),
        (of_raft("KRaftVersionRecord", kRaftVersion=0), "KRaftVersionRecord: kraft.version falls from 1 to 0"),
    ],
)
def test_voters_change_one_at_a_time(record: tuple[bytes, bytes], told: str | None, tmp_path: Path) -> None:
    findings = found(tmp_path, edited(with_control(record)))
    assert [(f.clause, f.severity, f.offset, f.message) for f in findings] == (
        [] if told is None else [("IMG-33", 3, LATE, told)]
    )


@pytest.mark.clause("IMG-33")
def test_what_a_node_was_formatted_with_does_not_count(tmp_path: Path) -> None:
    """The first leader's records say who votes, whatever another node's own snapshot has."""
    first, second = (of_raft("VotersRecord", voters=v) for v in (VOTERS, [FOUR]))
    log = [control(0, "LeaderChangeMessage", 1, leaderId=1), LogBatch(1, 1, [first], control=True)]
    formatted = [*snapshot_of(level(30))]
    formatted.insert(1, LogBatch(1, 1, [second], control=True))
    files = {LOG: written(log), f"{0:020}-{0:010}.checkpoint": written(shifted_to(formatted, 0))}
    assert found(tmp_path / "a", files) == []
    log.append(LogBatch(2, 1, [second], control=True))
    assert [f.clause for f in found(tmp_path / "b", {LOG: written(log)})] == ["IMG-33"]


@pytest.mark.clause("IMG-33")
def test_a_snapshot_from_before_voters_were_recorded_says_none(tmp_path: Path) -> None:
    """A cluster of kraft.version 0 that is upgraded behind it."""
    first = [LogBatch(5, 1, [of_raft("KRaftVersionRecord", kRaftVersion=1)], control=True)]
    first += [LogBatch(6, 1, [of_raft("VotersRecord", voters=VOTERS)], control=True)]
    snapshot = f"{5:020}-{1:010}.checkpoint"
    files = {f"{5:020}.log": written(first), snapshot: written(snapshot_of(level(30)))}
    assert found(tmp_path, files) == []


def shifted_to(batches: list[LogBatch], epoch: int) -> list[LogBatch]:
    """One behind the other, of one epoch."""
    base = 0
    for b in batches:
        b.base, b.epoch, base = base, epoch, base + len(b.records)
    return batches


def named(voter: int) -> dict[str, Any]:
    return {"voterId": voter, "voterDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA"}


@pytest.mark.clause("IMG-32")
@pytest.mark.parametrize(
    ("epoch", "leader", "told"),
    [
        (4, 3, None),
        (4, 2, "LeaderChangeMessage: 2 leads in epoch 4"),
        (5, 2, None),
        (5, 9, "LeaderChangeMessage: 9 leads, and is none of the voters [1, 2, 3]"),
    ],
)
def test_an_epoch_has_one_leader_and_a_voter_leads(epoch: int, leader: int, told: str | None, tmp_path: Path) -> None:
    record = of_raft("LeaderChangeMessage", leaderId=leader, voters=[named(leader)])
    files = edited(with_control(record, epoch))
    findings = found(tmp_path, {LOG: files[LOG]})
    assert [(f.clause, f.severity, f.offset, f.message) for f in findings] == (
        [] if told is None else [("IMG-32", 3, LATE, told)]
    )


@pytest.mark.clause("IMG-32")
def test_who_leads_is_among_the_voters_of_the_change_itself(tmp_path: Path) -> None:
    """Where no record of the log says who votes."""
    for leader, sound in ((1, True), (2, False)):
        record = of_raft("LeaderChangeMessage", leaderId=leader, voters=[named(1), named(3)])
        findings = found(tmp_path / str(leader), {LOG: written([LogBatch(0, 1, [record], control=True)])})
        assert [f.clause for f in findings] == ([] if sound else ["IMG-32"])


@pytest.mark.clause("IMG-32")
@pytest.mark.parametrize(("epoch", "leader", "sound"), [(4, 3, True), (4, -1, True), (4, 2, False), (9, 2, True)])
def test_quorum_state_names_the_leader_of_the_log(epoch: int, leader: int, sound: bool, tmp_path: Path) -> None:
    text = quorum_state(leaderId=leader, leaderEpoch=epoch)
    findings = found(tmp_path, {**files_of(), "quorum-state": text})
    assert [(f.clause, f.severity, f.line, Path(f.file).name) for f in findings] == (
        [] if sound else [("IMG-32", 3, 1, "quorum-state")]
    )


@pytest.mark.clause("IMG-32")
@pytest.mark.parametrize(("one", "other", "sound"), [(1, 1, True), (1, 2, False), (-1, 2, True), (1, None, True)])
def test_the_nodes_name_one_leader(one: int, other: int | None, sound: bool, tmp_path: Path) -> None:
    """In an epoch of which the logs have nothing."""
    for n, leader in enumerate((one, other)):
        state = b"x" if leader is None else quorum_state(leaderId=leader, leaderEpoch=9)
        lay(tmp_path / str(n), {**files_of(), "quorum-state": state})
        properties = f"version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\nnode.id={n}\n"
        (tmp_path / str(n) / "meta.properties").write_text(properties)
    findings = audit([tmp_path], strict=True).findings
    assert [Path(f.file).parts[-3] for f in findings if f.clause == "IMG-32"] == ([] if sound else ["1"])


@pytest.mark.clause("IMG-32")
def test_of_two_clusters_without_a_name_nothing_is_concluded(tmp_path: Path) -> None:
    for n in (1, 2):
        lay(tmp_path / str(n), {LOG: files_of()[LOG], "quorum-state": quorum_state(leaderId=n, leaderEpoch=9)})
    folders = [tmp_path / str(n) / "__cluster_metadata-0" for n in (1, 2)]
    assert [f.clause for f in audit(folders, strict=True).findings if f.severity] == []


@pytest.mark.clause("IMG-21")
@pytest.mark.parametrize(
    ("kept", "voters", "told"),
    [
        ({5, 6}, VOTERS[::-1], None),
        ({5, 6}, [ONE, TWO], "voter 3 is not in it"),
        ({5, 6}, [*VOTERS, FOUR], "voter 4 is in it alone"),
        ({5}, VOTERS, "voter 1 is not in it; and 2 more differences"),
        ({6}, VOTERS, "kraft.version level is 0 where the log has 1"),
        ({5, 6}, [MOVED[0], TWO, THREE], f"voter 1 has directory {GONE} where the log has {ONE['voterDirectoryId']}"),
    ],
)
def test_a_snapshot_has_the_voters(kept: set[int], voters: list[Any], told: str | None, tmp_path: Path) -> None:
    files = files_of(snapshots=True)
    batches = parsed(files[SNAPSHOT])
    for b in batches:
        records = [(r, codec.decode_control(*r)) for r in b.records] if b.control else []
        if any(c.type == 6 for _, c in records):
            b.records = [r for r, c in records if c.type not in (5, 6) or (c.type in kept and c.type == 5)]
            b.records += [of_raft("VotersRecord", voters=voters)] * (6 in kept)
    files[SNAPSHOT] = written(shifted_to(batches, 4))
    findings = found(tmp_path, files)
    assert [(f.clause, f.severity, f.message) for f in findings] == ([] if told is None else [("IMG-21", 3, told)])


# ---- whose snapshot it is --------------------------------------------------------------------------------------------
@pytest.mark.clause("IMG-34")
@pytest.mark.parametrize(
    ("end", "epoch", "severity"),
    [
        (2, 1, None), (3, 1, None), (3, 0, 3), (3, 3, 3), (3, 5, 0), (4, 3, None), (4, 1, 3), (6, 3, None), (6, 1, 3),
        (6, 5, 0), (7, 3, 0), (7, 1, 3), (99, 3, 0), (99, 5, 0), (99, 0, 3),
    ],
)  # fmt: skip
def test_a_snapshot_is_of_its_log(end: int, epoch: int, severity: int | None, tmp_path: Path) -> None:
    """The log ends at 6, in epoch 3. What is further takes its place: KafkaRaftLog, Kafka 4.3.0, throws nothing."""
    log = [
        control(0, "LeaderChangeMessage", 1, leaderId=1), *batches_of([level(30), NO_OP], base=1, epoch=1),
        control(3, "LeaderChangeMessage", 3, leaderId=1), *batches_of([NO_OP, NO_OP], base=4, epoch=3),
    ]  # fmt: skip
    snapshot = written(snapshot_of(level(30), epoch=epoch))
    findings = found(tmp_path, {LOG: written(log), f"{end:020}-{epoch:010}.checkpoint": snapshot})
    assert [(f.clause, f.severity, f.offset) for f in findings] == (
        [] if severity is None else [("IMG-34", severity, end)]
    )


@pytest.mark.clause("IMG-34")
def test_of_snapshots_that_are_further_the_last_takes_the_log_s_place(tmp_path: Path) -> None:
    further = [(f"{end:020}-{epoch:010}", epoch) for end, epoch in ((9, 1), (5, 2), (4, 2))]
    files = {f"{name}.checkpoint": written(snapshot_of(level(30), epoch=epoch)) for name, epoch in further}
    first = control(0, "LeaderChangeMessage", 1, leaderId=1)
    findings = found(tmp_path / "a", {LOG: written([first, *batches_of([level(30)], base=1)]), **files})
    assert [(f.clause, f.severity.name, f.offset) for f in findings] == [("IMG-34", "LEFTOVER", 5)]
    assert found(tmp_path / "b", {LOG: b"", **files}) == []  # nothing is lost
