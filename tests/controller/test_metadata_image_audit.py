"""Audit of metadata logs: real ones are sound, and each kind of damage is found, at its record alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.audit.engine import audit
from kafkaspec.audit.finding import Finding
from kafkaspec.errors import UserError
from kafkaspec.impl.controller.metadata_image import MetadataImage
from tests.controller.metadata_logs import (
    GONE,
    LogBatch,
    batches_of,
    broker,
    change,
    changed,
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
    "directories that are fewer than replicas": (in_place(changed(0, CLICKS, directories=[GONE])), "IMG-3", LATE),
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
@pytest.mark.clause("IMG-15", "IMG-16", "IMG-17", "IMG-18", "IMG-19", "IMG-20")
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


@pytest.mark.clause("IMG-23")
@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (b'{"leaderId":3,"leaderEpoch":4,"votedId":3,"data_version":1}', None),
        (b'{"leaderId":3,"leaderEpoch":3,"votedId":3,"data_version":1}', 2),
        (b'{"leaderId":3,"leaderEpoch":4,"votedId":3,"data_version":2}', 3),
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
    (folder / LAST).unlink()
    (folder / LAST).mkdir()
    (folder / f"{313:020}-{1:010}.checkpoint").unlink()
    (folder / f"{313:020}-{1:010}.checkpoint").symlink_to("/dev/null")
    a = audit([folder])
    assert a.findings == ()
    assert [p.rpartition(": ")[2] for p in a.problems] == ["not a regular file"]
    assert a.exit_code == 2


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
