"""Of metadata logs that are replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kafkaspec.spec.common.record_format import encode
from tests.audit.kills.write import CLUSTER, Case, Folder, b, cases, folder, meta, one, part, seg
from tests.controller.metadata_logs import (
    GONE,
    NO_OP,
    OTHER,
    TOPIC,
    LogBatch,
    batches_of,
    broker,
    changed,
    control,
    level,
    made,
    partition,
    snapshot_of,
    topic,
    written,
)
from tests.storage.segments import message

NAME = "__cluster_metadata-0"
LEVEL, ONE, TWO = level(30), broker(1, 1), broker(2, 2)
BASE = (LEVEL, ONE, TWO, topic(), partition())
"""Offsets 0 to 4."""
BEGIN, END, ABORT = (made(f"{x}TransactionRecord") for x in ("Begin", "End", "Abort"))
UNREAD = b"\1\x63\0\0"
"""A record of a kind that no release has."""
QUORUM = b"""{"clusterId":"","leaderId":1,"leaderEpoch":%d,"votedId":1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",\
"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":%d}"""
"""With the fields of both versions."""


def files(snapshots: dict[tuple[int, int], bytes | Sequence[LogBatch]], more: dict[str, bytes]) -> dict[str, bytes]:
    return more | {
        f"{offset:020}-{epoch:010}.checkpoint": x if isinstance(x, bytes) else written(x)
        for (offset, epoch), x in snapshots.items()
    }


def log(
    *records: bytes | Sequence[bytes] | LogBatch,
    base: int = 0,
    epoch: int = 1,
    snapshots: dict[tuple[int, int], bytes | Sequence[LogBatch]] | None = None,
    more: dict[str, bytes] | None = None,
    **of: Any,
) -> Case:
    """A metadata log of these records, a batch each, beside its snapshots."""
    batches: list[LogBatch] = []
    for r in records:
        if isinstance(r, LogBatch):
            batches.append(r)
            base = r.last + 1
        else:
            batches += batches_of(r, base=base, epoch=epoch)
            base = batches[-1].last + 1
    first = batches[0].base if batches else base
    return one(
        seg(first, *(b.encoded() for b in batches)), name=NAME, files=files(snapshots or {}, more or {}), **of
    )  # fmt: skip


def then(*records: bytes | Sequence[bytes] | LogBatch, **of: Any) -> Callable[[], Case]:
    """Behind brokers, a topic and a partition."""
    return lambda: log(*BASE, *records, **of)


def damaged(b: LogBatch) -> bytes:
    data = b.encoded()
    return data[:17] + bytes([data[17] ^ 1]) + data[18:]


def with_damage() -> Case:
    """Damage, records of which nothing is known, and a snapshot from which on it is."""
    batches = batches_of(*BASE, NO_OP, changed(0, GONE), NO_OP, changed(0, GONE), changed(9))
    data = [damaged(b) if b.base == 5 else b.encoded() for b in batches]
    return one(seg(0, *data), name=NAME, files=files({(8, 1): snapshot_of(*BASE)}, {}))


def with_gap(first: int, *records: bytes | Sequence[bytes], snapshots: Sequence[int] = ()) -> Case:
    batches = [*batches_of(*BASE), *batches_of(*records, base=first)]
    kept = {(n, 1): snapshot_of(*BASE) for n in snapshots}
    return one(seg(0, *(b.encoded() for b in batches)), name=NAME, files=files(kept, {}))


def keyed(key: bytes | None, value: bytes, *, control_batch: bool = False) -> LogBatch:
    return LogBatch(5, 1, [(key, value)], control=control_batch)


def snapshot(*records: bytes, offset: int = 5, epoch: int = 1, **of: Any) -> Callable[[], Case]:
    """Behind the base, and one record more, beside a snapshot that should have the base's state."""
    return lambda: log(*BASE, NO_OP, snapshots={(offset, epoch): snapshot_of(*records)}, **of)


def shaped(*batches: LogBatch, cut: int = 0, flip: int | None = None, more: bytes = b"") -> Callable[[], Case]:
    """Beside a snapshot of these batches."""

    def make() -> Case:
        data = written(batches)
        data = data[: len(data) - cut] + more
        if flip is not None:
            data = data[:flip] + bytes([data[flip] ^ 1]) + data[flip + 1 :]
        return log(*BASE, NO_OP, snapshots={(5, 1): data})

    return make


def beside(
    epochs: Sequence[tuple[int, int]] | None,
    *records: bytes | LogBatch,
    id: str = TOPIC,
    name: str = "t-0",
    before: Sequence[bytes] = BASE,
    two: dict[str, Any] | None = None,
    **of: Any,
) -> Callable[[], Case]:
    """A node's log with these leader epochs, and its metadata log behind the base, where the partition's is 3. `two`:
    what the metadata log's directory is, if it is another one; `of`: what the log's is."""
    kept = {"partition.metadata": f"version: 0\ntopic_id: {id}\n".encode()}
    values: list[LogBatch] = list(batches_of(*before))
    for r in records:
        values += [r] if isinstance(r, LogBatch) else batches_of(r, base=values[-1].last + 1)

    def make() -> Case:
        log = part(seg(0, b(0, 4)), name=name, epochs=epochs, files=kept)
        metadata = part(seg(0, *(x.encoded() for x in values)), name=NAME)
        of_log = {"properties": meta(1, CLUSTER, None)} | of
        if two is None:
            return cases(folder(log, metadata, **of_log))
        of_metadata = {"properties": meta(1, CLUSTER, None)} | two
        return cases(folder(log, name="d1", **of_log), folder(metadata, name="d2", **of_metadata))

    return make


def of_everything(**of: Any) -> list[bytes]:
    """A record of each kind that a snapshot has, and one of them another one."""
    said = {
        "config": made("ConfigRecord", resourceType=2, resourceName="t", name="retention.ms", value="1"),
        "unknown config": made("ConfigRecord", resourceType=2, resourceName="t", name="new.ms", value="1"),
        "broker config": made("ConfigRecord", resourceType=4, resourceName="1", name="new.ms", value="1"),
        "quota": made("ClientQuotaRecord", entity=[{"entityType": "user", "entityName": "u"}], key="k", value=1.0),
        "ids": made("ProducerIdsRecord", nextProducerId=5),
        "acl": made("AccessControlEntryRecord", id=TOPIC),
        "scram": made("UserScramCredentialRecord", name="u", mechanism=1),
        "token": made("DelegationTokenRecord", tokenId="a"),
        "controller": made("RegisterControllerRecord", controllerId=9),
        "feature": made("FeatureLevelRecord", name="group.version", featureLevel=1),
    }
    said |= of
    return [x for x in said.values() if x]


def everything(**of: Any) -> Callable[[], Case]:
    full = of_everything()
    end = len(BASE) + len(full)
    return lambda: log(*BASE, *full, snapshots={(end, 1): snapshot_of(*BASE, *of_everything(**of))})


def nodes(*of: tuple[int, Sequence[bytes], bytes | None], clusters: Sequence[str] = (), name: str = NAME) -> Case:
    """Of each node where its log begins, and a snapshot of these records there."""
    folders: list[Folder] = []
    for n, (base, records, flip) in enumerate(of):
        data = written(snapshot_of(*records)) if flip is None else flip
        first = base if base else 0
        batches = batches_of(*(BASE if not first else ()), NO_OP, base=first)
        log_part = part(seg(first, *(b.encoded() for b in batches)), name=name, files={FIVE: data})
        properties = meta(n, clusters[n] if clusters else CLUSTER, None)
        folders.append(folder(log_part, name=f"d{n}", properties=properties))
    return cases(*folders)


def compressed() -> Case:
    """A compressed batch with a change of an unknown topic in it, and a record with a header."""
    from kafkaspec.spec.common import compression
    from kafkaspec.spec.common.record_format import Header, LogRecord, built

    gzip = compression.CODEC_IDS["gzip"]
    records = [LogRecord(5, 1, None, changed(0, GONE)), LogRecord(6, 1, None, NO_OP, (Header(b"h", b""),))]
    data = encode(built(5, records, leader_epoch=1, attributes=gzip))
    return one(seg(0, *(b.encoded() for b in batches_of(*BASE)), data), name=NAME)


def timed() -> Case:
    """A record that has not its batch's time."""
    from kafkaspec.spec.common.record_format import LogRecord, built

    records = [LogRecord(5, 1, None, NO_OP), LogRecord(6, 2, None, NO_OP), LogRecord(7, 2, None, changed(0, GONE))]
    data = encode(built(5, records, leader_epoch=1))
    return one(seg(0, *(b.encoded() for b in batches_of(*BASE)), data), name=NAME)


def headed_record() -> Case:
    from kafkaspec.spec.common.record_format import Header, LogRecord, built

    data = encode(built(5, [LogRecord(5, 1, None, NO_OP, (Header(b"h", b"\1"),))], leader_epoch=1))
    return one(seg(0, *(b.encoded() for b in batches_of(*BASE)), data), name=NAME)


def behind_nothing() -> Case:
    """A snapshot ends behind a record without a value, and the next one breaks a rule."""
    from kafkaspec.spec.common.record_format import LogRecord, built

    records = [LogRecord(5, 1, None, None), LogRecord(6, 1, None, changed(isr=[1, 9]))]
    data = encode(built(5, records, leader_epoch=1))
    kept = files({(6, 1): snapshot_of(*BASE)}, {})
    return one(seg(0, *(b.encoded() for b in batches_of(*BASE)), data), name=NAME, files=kept)


def unread(name: str, to: bytes = b"") -> Case:
    """A snapshot that is gone when it is read."""
    case = log(*BASE, NO_OP, snapshots={(5, 1): snapshot_of(*BASE), (6, 1): snapshot_of(*BASE)})
    return replace(case, gone=[f"d/{NAME}/{name}"])


def old_partition(number: int) -> bytes:
    said = {"partitionId": number, "topicId": TOPIC, "replicas": [1], "isr": [1], "leader": -1}
    return made("PartitionRecord", 1, **said)


def fenced(id: int, epoch: int, how: int = 1) -> bytes:
    return made("BrokerRegistrationChangeRecord", 0, brokerId=id, brokerEpoch=epoch, fenced=how)


def homes(id: int, epoch: int, *directories: str) -> bytes:
    """A broker has these directories."""
    return made("BrokerRegistrationChangeRecord", 3, brokerId=id, brokerEpoch=epoch, logDirs=[*directories])


def ending(protocol: int, name: str = "x") -> dict[str, Any]:
    """An endpoint."""
    return {"name": name, "host": "h", "port": 1, "securityProtocol": protocol}


def acl(id: str, host: str = "h") -> bytes:
    return made("AccessControlEntryRecord", id=id, host=host)


def no_acl(id: str) -> bytes:
    return made("RemoveAccessControlEntryRecord", id=id)


def quorum_state(version: int, old: bytes, new: bytes) -> Callable[[], Case]:
    text = QUORUM % (1, version)
    assert old in text
    return lambda: log(*BASE, more={"quorum-state": text.replace(old, new)})


ENDPOINT = {"name": "c", "host": "h", "port": 1}


def named(voter: int, directory: str = "A" * 22) -> dict[str, Any]:
    return {"voterId": voter, "voterDirectoryId": directory}


def voters_record(
    base: int,
    *voters: int,
    directory: str = "A" * 22,
    of: Sequence[int] | None = None,
    endpoints: Sequence[Any] = (),
    most: int = 0,
) -> LogBatch:
    """`of`: those with that directory; without it all."""
    said = [
        named(v, directory if of is None or v in of else "A" * 22)
        | {"endpoints": [*endpoints], "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": most}}
        for v in voters
    ]
    return control(base, "VotersRecord", voters=said)


def voting(*sets: Sequence[int], base: int = 5) -> list[LogBatch]:
    return [voters_record(base + n, *voters) for n, voters in enumerate(sets)]


def voters_behind(first: Callable[[LogBatch], bytes]) -> Callable[[], Case]:
    """Voters, a batch that is damaged or not, and others."""
    behind = [*voting((1, 2, 3)), *batches_of(NO_OP, base=6), *voting((4,), (5,), base=7)]
    data = [first(x) if x.base == 6 else x.encoded() for x in (*batches_of(*BASE), *behind)]
    return lambda: one(seg(0, *data), name=NAME)


def snapshot_with(voters: Sequence[int] | None, level: int | None = None, *records: bytes) -> list[LogBatch]:
    """A snapshot, of epoch 0 if it has no records, with control records behind its header."""
    said = [] if level is None else [control(0, "KRaftVersionRecord", kRaftVersion=level)]
    said += [] if voters is None else [voters_record(0, *voters)]
    header, *rest = snapshot_of(*records)
    base = 0
    for x in (batches := [header, *said, *rest]):
        x.base, x.epoch, base = base, int(bool(records)), base + len(x.records)
    return batches


def state_of(leader: int, epoch: int) -> bytes:
    return STATE.replace(b'"leaderId":1,"leaderEpoch":1', b'"leaderId":%d,"leaderEpoch":%d' % (leader, epoch))


STATE = QUORUM % (1, 1)


def versioned(version: bytes) -> bytes:
    return STATE.replace(b'"data_version":1', b'"data_version":' + version)


def long_number(digits: int) -> bytes:
    return STATE[:-1] + b',"x":' + b"9" * digits + b"}"


def without_segment(
    gone: int,
    snapshots: dict[tuple[int, int], int],
    *,
    before: bytes = NO_OP,
    behind: bytes = NO_OP,
    epochs: tuple[int, int] = (1, 2),
    more: dict[str, bytes] | None = None,
) -> Callable[[], Case]:
    """Three segments, at 0, 5 and 7, of which one is gone when it is read. The epochs of the first's last record and of
    the last segment; snapshots with the epoch that their batches have."""

    def make() -> Case:
        first = [*batches_of(*BASE[:4]), *batches_of(before, base=4, epoch=epochs[0])]
        second = [control(5, "LeaderChangeMessage", epochs[1]), *batches_of(partition(), base=6, epoch=epochs[1])]
        third = batches_of(behind, NO_OP, base=7, epoch=epochs[1])
        states = {of: snapshot_of(*BASE, epoch=epoch) for of, epoch in snapshots.items()}
        segments = [seg(b[0].base, *(x.encoded() for x in b)) for b in (first, second, third)]
        name = f"d/{NAME}/{segments[gone].base:020}.log"
        return one(*segments, name=NAME, files=files(states, more or {}), gone=[name])

    return make


def with_gap_at_end() -> Case:
    """The log is not known to its end, and snapshots of another epoch are beside it."""
    batches = [*batches_of(*BASE), *batches_of(NO_OP, base=7)]
    kept = {(5, 0): snapshot_of(*BASE, epoch=0), (7, 0): snapshot_of(*BASE, epoch=0), (9, 2): snapshot_of(epoch=2)}
    return one(seg(0, *(x.encoded() for x in batches)), name=NAME, files=files(kept, {}))


def misnamed(name: str) -> Callable[[], Case]:
    """An empty snapshot of epoch 1 with that name."""
    return lambda: log(*BASE, more={name: written(snapshot_of())})


FIVE = f"{5:020}-{1:010}.checkpoint"
UNFINISHED = f"{FIVE[:31]}-123.checkpoint.part"
BOOTSTRAP = made("BeginTransactionRecord", name="Bootstrap records")
CONFIG = made("ConfigRecord", resourceType=4, resourceName="1", name="k", value="v")
OTHER_TOPIC = (topic("u", OTHER), partition(0, OTHER))

CASES: dict[str, Callable[[], Case]] = {
    "no record": lambda: one(seg(0), name=NAME),
    "a partition of that name": lambda: one(seg(0, batches_of(changed(0, GONE))[0].encoded()), name="other-0"),
    "a sound log": then(NO_OP),
    "a log in two segments": lambda: one(
        seg(0, *(b.encoded() for b in batches_of(*BASE))),
        seg(5, *(b.encoded() for b in batches_of(changed(0, GONE), base=5))), name=NAME,
    ),
    "a log that begins later": lambda: log(changed(0, GONE), changed(0, GONE), base=5),
    "a log that begins later, and a snapshot": lambda: log(
        changed(0, GONE), NO_OP, changed(9), base=5, snapshots={(6, 1): snapshot_of(*BASE)}
    ),
    "a log that begins later at a snapshot": lambda: log(
        changed(9), base=5, snapshots={(5, 1): snapshot_of(*BASE), (3, 1): snapshot_of(LEVEL)}
    ),
    "a log behind a snapshot of nothing": lambda: log(*BASE, snapshots={(0, 0): snapshot_of(LEVEL, epoch=0)}),
    # ---- records
    "an unknown topic": then(changed(0, GONE)),
    "an unknown topic twice, and another": then([changed(0, GONE), changed(1, GONE)], changed(0, OTHER)),
    "an unknown topic behind records of the batch": then([NO_OP, NO_OP, changed(0, GONE)]),
    "an unknown partition": then(changed(9)),
    "an unknown broker, twice, and another": then(*(made("FenceBrokerRecord", id=n, epoch=1) for n in (8, 8, 9))),
    "a topic twice": then(topic(), topic()),
    "producer ids that go back, twice": then(*(made("ProducerIdsRecord", nextProducerId=n) for n in (9, 5, 5))),
    "epochs that go back": then(partition(leaderEpoch=1)),
    "a broker's epoch that goes back": then(broker(2, 1)),
    "a broker's epoch of the record": then(broker(3, 5)),
    "a broker's epoch that is yet to come": then(broker(3, 6)),
    "an ACL that is not there": then(made("RemoveAccessControlEntryRecord", id=GONE)),
    "directories": then(changed(directories=[GONE])),
    # ---- who stops at a record
    "a topic's id twice": then(topic("u")),
    "an unknown broker unregisters, and another": then(
        *(made("UnregisterBrokerRecord", brokerId=n, brokerEpoch=1) for n in (8, 8, 9))
    ),
    "a credential that is not there": then(made("RemoveUserScramCredentialRecord", name="u", mechanism=1)),
    "a directory of another broker": then(broker(3, 5, logDirs=[GONE]), broker(4, 6, logDirs=[OTHER, GONE])),
    "a directory of another broker, and the change of who has it not": then(
        broker(0, 5, logDirs=[GONE]), broker(4, 6, logDirs=[GONE]), fenced(4, 6), fenced(4, 6, -1), fenced(5, 6)
    ),
    "a change to a directory of another broker": then(
        broker(0, 5, logDirs=[GONE]), homes(1, 1, OTHER), homes(1, 1, OTHER, GONE)
    ),
    "a change to a directory of another broker, and a change with another epoch": then(
        broker(0, 5, logDirs=[GONE]), homes(1, 1, GONE), fenced(1, 9)
    ),
    "a directory twice": then(broker(3, 5, logDirs=[GONE, GONE])),
    "a change to a directory twice": then(homes(1, 1, GONE, GONE), NO_OP),
    "a broker's own directories again": then(homes(1, 1, GONE), homes(1, 1, GONE, OTHER), broker(1, 7, logDirs=[GONE])),
    "a security protocol": then(broker(3, 5, endPoints=[ending(4)])),
    "a security protocol behind another": then(broker(3, 5, endPoints=[ending(3), ending(-1, "y")])),
    "an endpoint without a name": then(broker(3, 5, endPoints=[ending(0, "")])),
    "an endpoint without a name, and a security protocol": then(
        broker(3, 5, endPoints=[ending(9), ending(0, "")]), broker(4, 6, endPoints=[ending(0), ending(9, "y")])
    ),
    "a controller's security protocol": then(made("RegisterControllerRecord", endPoints=[ending(9)])),
    "a controller's endpoint without a name": then(made("RegisterControllerRecord", endPoints=[ending(3, "")])),
    "two ACLs that say the same": then(acl(GONE), acl(OTHER), no_acl(GONE), NO_OP),
    "two ACLs that say the same, removed": then(acl(GONE), acl(OTHER), no_acl(GONE), no_acl(OTHER)),
    "two ACLs of two kinds, removed": then(acl(GONE), acl(OTHER, "o"), no_acl(GONE), no_acl(OTHER)),
    "a newer metadata.version": then(
        level(32), changed(0, GONE), changed(9), snapshots={(7, 1): snapshot_of(changed(0, GONE))}
    ),
    "a newer metadata.version in the batch": then([level(32), changed(0, GONE)]),
    "an older metadata.version": then(level(6), changed(0, GONE)),
    "an unknown feature": then(made("FeatureLevelRecord", name="new", featureLevel=1), changed(0, GONE)),
    **{
        f"metadata.version {n}": lambda n=n: log(level(n), NO_OP) for n in (-1, 0, 1, 2, 6, 7, 31, 32)
    },
    "a feature's unknown level": then(made("FeatureLevelRecord", name="group.version", featureLevel=99), changed(9)),
    "a version above the metadata.version's": lambda: log(level(21), topic(), partition()),
    "a version above, that is wrong too": lambda: log(level(21), changed(0, GONE)),
    "a kind above the metadata.version's": lambda: log(level(21), made("ClearElrRecord")),
    "a version above, before there is one": lambda: log(b"\1\2\1" + topic()[3:]),
    "levels that change": lambda: log(
        level(21), topic(), old_partition(0), level(30), partition(1, leader=-1), level(21), partition(2, leader=-1)
    ),
    "a version above that cannot be read": then(b"\1\3\7" + partition()[3:20]),
    "a version of its level that cannot be read": then(partition()[:20]),
    "a version that cannot be read, of two bytes": then(b"\1\x83"),
    "a version above by one that cannot be read": then(b"\1\3\3" + partition()[3:20]),
    "unknown brokers of another kind": then(fenced(8, 1), fenced(9, 1), fenced(9, 1)),
    "an unknown kind": then(b"\1\x63\7\0", changed(0, GONE)),
    "another frame": then(b"\2\x14\0\0"),
    "records that nobody reads": then(UNREAD, UNREAD, [UNREAD, b"\2\x14\0\0"]),
    "records that nobody reads, and one between": then(UNREAD, UNREAD, NO_OP, UNREAD),
    "records that nobody reads, of two rules": then(UNREAD, b"\1\3\7", b"\1\3\7", UNREAD),
    "control records that nobody reads": then(
        LogBatch(5, 1, [(b"\0\0\0\2", b"\0"), (b"\0\0\0\2", b"\0")], True), NO_OP, UNREAD
    ),
    "a batch in whose midst a snapshot ends": then(
        [UNREAD, changed(isr=[1, 9])], snapshots={(6, 1): snapshot_of(*BASE)}
    ),
    "a batch in whose midst a snapshot ends, behind nothing": behind_nothing,
    "a version above, twice": lambda: log(
        level(21), topic(), partition(leader=-1), partition(1, leader=-1), level(22), partition(2, leader=-1)
    ),
    "one byte": then(b"\1"),
    "a record that is cut": then(partition()[:-3], changed(0, GONE), snapshots={(7, 1): snapshot_of(*BASE)}),
    "a record that is cut, and known again": then(
        partition()[:-3], changed(0, GONE), changed(9), snapshots={(7, 1): snapshot_of(*BASE)}
    ),
    "a record with a key": then(keyed(b"k", NO_OP)),
    "a record without a value": then(keyed(None, b"")),
    "a record's own time": timed,
    "a record with a header": headed_record,
    "a compressed batch": compressed,
    "control records": then(control(5, "LeaderChangeMessage", leaderId=1), changed(0, GONE)),
    "a control record of a transaction": then(LogBatch(5, 1, [(b"\0\0\0\1", b"\0\0\0\0\0\0")], True), changed(0, GONE)),
    "a control record that is cut": then(LogBatch(5, 1, [(b"\0\0\0\2", b"\0")], True), changed(0, GONE)),
    # ---- damage
    "damage": with_damage,
    "an old format": lambda: one(
        seg(0, *(x.encoded() for x in batches_of(*BASE)), message(5, 1, b"k", b"v"),
            *(x.encoded() for x in batches_of(changed(0, GONE), base=6))), name=NAME,
    ),
    "damage at the end, and a snapshot beyond": lambda: one(
        seg(0, *(x.encoded() for x in batches_of(*BASE)), damaged(batches_of(NO_OP, base=5)[0])), name=NAME,
        files=files({(5, 1): snapshot_of(*BASE, changed(0, GONE)), (9, 1): snapshot_of(changed(0, GONE))}, {}),
    ),
    "a breach before a record that is cut": then([changed(isr=[1, 9]), partition()[:-3]]),
    "a gap, a snapshot in it and one behind": lambda: with_gap(
        7, [NO_OP, changed(0, GONE), changed(9)], snapshots=(6, 8)
    ),
    "no segment": lambda: one(name=NAME, files=files({(5, 1): snapshot_of(changed(0, GONE))}, {})),
    "a gap": lambda: with_gap(7, changed(0, GONE)),
    "a gap, and a snapshot behind it": lambda: with_gap(7, changed(0, GONE), changed(9), changed(8), snapshots=(8,)),
    "a gap, and a snapshot in it": lambda: with_gap(7, changed(9), snapshots=(6,)),
    "a gap, and a snapshot at its end": lambda: with_gap(7, changed(9), snapshots=(7,)),
    "a batch twice": lambda: with_gap(4, changed(9)),
    # ---- transactions
    "a transaction": then(BEGIN, changed(isr=[1]), END, changed(isr=[1, 9])),
    "a transaction that breaks something meanwhile": then(BEGIN, changed(isr=[1, 9]), changed(isr=[1]), END),
    "a transaction that breaks something": then(BEGIN, changed(isr=[1, 9]), NO_OP, END),
    "a transaction that is aborted": then(BEGIN, changed(isr=[1, 9]), ABORT, NO_OP),
    "a transaction that is open at the end": then(BEGIN, NO_OP),
    "two transactions": then(BEGIN, BEGIN),
    "an end of none": then(END),
    "an abort in a later epoch": then(BEGIN, LogBatch(6, 2, [(None, ABORT)]), NO_OP),
    "an end in a later epoch": then(BEGIN, LogBatch(6, 2, [(None, END)])),
    "data in a later epoch": then(BEGIN, LogBatch(6, 2, [(None, NO_OP)]), LogBatch(7, 2, [(None, NO_OP)])),
    "control in a later epoch": then(BEGIN, control(6, "LeaderChangeMessage", 2), LogBatch(7, 2, [(None, ABORT)])),
    "bootstrap records": lambda: log(BOOTSTRAP, level(30), END, NO_OP),
    "bootstrap records without an end": lambda: log(BOOTSTRAP, level(30), ONE, TWO),
    "bootstrap records, and nothing": lambda: log(BOOTSTRAP, level(30), NO_OP),
    "bootstrap records, and a topic": lambda: log(BOOTSTRAP, level(30), topic()),
    "bootstrap records, and a change": then(BOOTSTRAP, changed(isr=[1])),
    "a configuration among bootstrap records": lambda: log(
        BOOTSTRAP, made("ConfigRecord", resourceType=4, name="k", value="v"), END
    ),
    "a transaction with another name": lambda: log(made("BeginTransactionRecord", name="x"), level(30), NO_OP, END),
    "a snapshot in a transaction": then(BEGIN, NO_OP, END, snapshots={(6, 1): snapshot_of(*BASE)}),
    "a snapshot before a transaction": then(BEGIN, END, snapshots={(5, 1): snapshot_of(*BASE)}),
    "a snapshot behind a transaction": then(BEGIN, END, NO_OP, snapshots={(7, 1): snapshot_of(*BASE)}),
    "a transaction without a name": then(made("BeginTransactionRecord", name=None), END),
    # ---- invariants
    "in sync, and no replica": then(changed(isr=[1, 2, 9])),
    "in sync, and no replica, among others": then([NO_OP, changed(isr=[1, 2, 9]), NO_OP]),
    "in sync, and no replica, until the batch ends": then([changed(isr=[1, 2, 9]), changed(isr=[1])]),
    "a leader that is not in sync": then(changed(isr=[2])),
    "a leader that is not in sync, by a partition's record": then(partition(1, isr=[2])),
    "in sync and eligible": then(changed(eligibleLeaderReplicas=[2, 9])),
    "replicas that are named twice": then(changed(replicas=[1, 2, 2, 9, 9])),
    "in sync twice": then(changed(isr=[1, 2, 2, 1])),
    "in sync twice, and eligible twice": then(changed(isr=[1, 1], eligibleLeaderReplicas=[2, 2])),
    "eligible twice": then(changed(eligibleLeaderReplicas=[9, 9, 8])),
    "last known twice": then(changed(lastKnownElr=[2, 1, 2])),
    "strangers that are added": then(changed(addingReplicas=[2, 9])),
    "strangers that are removed": then(changed(removingReplicas=[2, 9, 8])),
    "strangers that are added and removed": then(changed(addingReplicas=[9], removingReplicas=[8])),
    "a reassignment": then(changed(replicas=[1, 2, 9], addingReplicas=[9], removingReplicas=[2])),
    "in sync, and no replica, at 25": lambda: log(
        level(25), broker(1, 1, 3), topic(), partition(isr=[1, 9])
    ),
    "two things at once": then(changed(isr=[2, 9])),
    "two partitions at once": then([topic("u", OTHER), partition(0, OTHER, isr=[1, 9]), partition(1, OTHER, isr=[2])]),
    "a leader that is fenced": then(fenced(1, 1)),
    "a leader that is fenced, among others": then([fenced(2, 2), fenced(1, 1), NO_OP]),
    "a leader that is fenced, by two records": then([fenced(1, 1), fenced(1, 1, -1), fenced(1, 1)]),
    "a fenced broker that comes to lead": then(fenced(2, 2), [changed(leader=2), NO_OP]),
    "a leader that is fenced, with two partitions": then([*OTHER_TOPIC], fenced(1, 1)),
    "a leader that is gone": then(made("UnregisterBrokerRecord", brokerId=1, brokerEpoch=1)),
    "a leader that is fenced at 25": lambda: log(level(25), broker(1, 1, 3), topic(), partition(), fenced(1, 1)),
    "a leader that is fenced at 26": lambda: log(level(26), broker(1, 1, 3), topic(), partition(), fenced(1, 1)),
    "a leader that is fenced without a level": lambda: log(broker(1, 0), topic(), partition(), fenced(1, 0)),
    # ---- snapshots
    "a snapshot": snapshot(*BASE),
    "a snapshot with another broker": snapshot(LEVEL, ONE, broker(2, 2, rack="r"), topic(), partition()),
    "a snapshot with another feature": snapshot(level(29), *BASE[1:]),
    "a snapshot with directories in their order": lambda: log(
        LEVEL, broker(1, 1, logDirs=[OTHER, GONE]),
        snapshots={(2, 1): snapshot_of(LEVEL, broker(1, 1, logDirs=[GONE, OTHER]))},
    ),
    "a snapshot with other directories": lambda: log(
        LEVEL, broker(1, 1, logDirs=[OTHER, GONE]), snapshots={(2, 1): snapshot_of(LEVEL, broker(1, 1, logDirs=[GONE]))}
    ),
    "a snapshot of two brokers with a directory": snapshot(
        LEVEL, broker(1, 1, logDirs=[GONE]), broker(2, 2, logDirs=[GONE]), *BASE[3:]
    ),
    "a snapshot with a partition of an unknown topic": snapshot(*BASE, partition(0, GONE)),
    "a snapshot that lacks a partition, and has another topic more": snapshot(*BASE[:4], topic("u", OTHER)),
    "a snapshot that lacks a broker, and has another partition": snapshot(LEVEL, ONE, topic(), partition(), CONFIG),
    "a snapshot that lacks a partition, and has a configuration more": snapshot(*BASE[:4], CONFIG),
    "a snapshot of a newer metadata.version, and another batch": shaped(
        snapshot_of()[0], *batches_of(level(32), changed(0, GONE), base=1), control(3, "SnapshotFooterRecord")
    ),
    "a snapshot in another order": snapshot(TWO, topic(), ONE, LEVEL, partition()),
    "a snapshot of another partition": snapshot(*BASE[:4], partition(leaderEpoch=9)),
    "a snapshot with a partition more": snapshot(*BASE, partition(1)),
    "a snapshot without a partition": snapshot(*BASE[:4]),
    "a snapshot without two brokers": snapshot(LEVEL, topic(), partition()),
    "a snapshot with several differences": snapshot(LEVEL, ONE, topic(), partition(isr=[1])),
    "a snapshot with another topic's id": snapshot(LEVEL, ONE, TWO, topic("t", OTHER), partition(0, OTHER)),
    "a snapshot of everything": everything(),
    **{
        f"a snapshot with another {k}": everything(**{k: v})
        for k, v in {
            "config": made("ConfigRecord", resourceType=2, resourceName="t", name="retention.ms", value="2"),
            "quota": made("ClientQuotaRecord", entity=[{"entityType": "user", "entityName": "u"}], key="k", value=2.0),
            "ids": made("ProducerIdsRecord", nextProducerId=6),
            "acl": made("AccessControlEntryRecord", id=TOPIC, host="h"),
            "scram": made("UserScramCredentialRecord", name="u", mechanism=1, iterations=9),
            "token": made("DelegationTokenRecord", tokenId="a", owner="o"),
            "controller": made("RegisterControllerRecord", controllerId=9, zkMigrationReady=True),
        }.items()
    },
    **{
        f"a snapshot without the {k}": everything(**{k: b""})
        for k in ("config", "unknown config", "broker config", "feature")
    },
    "a snapshot with a quota of two users": everything(
        quota=made("ClientQuotaRecord", key="k", value=1.0, entity=[
            {"entityType": "user", "entityName": None}, {"entityType": "user", "entityName": "u"},
        ])
    ),
    "a snapshot with a quota more": everything(
        more=made("ClientQuotaRecord", entity=[{"entityType": "user", "entityName": None}], key="k", value=1.0)
    ),
    "a snapshot at the end": lambda: log(*BASE, snapshots={(5, 1): snapshot_of(*BASE[:4])}),
    "a snapshot beyond the end": lambda: log(*BASE, snapshots={(9, 1): snapshot_of(changed(0, GONE))}),
    "a sound snapshot beyond the end": lambda: log(*BASE, snapshots={(9, 1): snapshot_of(*BASE[:4])}),
    "a snapshot below the start": lambda: log(NO_OP, base=5, snapshots={(4, 1): snapshot_of(changed(0, GONE))}),
    "two snapshots": then(
        NO_OP, NO_OP, snapshots={(5, 1): snapshot_of(*BASE[:4]), (6, 1): snapshot_of(*BASE[:3])}
    ),
    "two snapshots of one end": then(
        NO_OP, snapshots={(5, 1): snapshot_of(*BASE[:4]), (5, 0): snapshot_of(*BASE[:3], epoch=0)}
    ),
    "a snapshot in the midst of a batch": then([NO_OP, NO_OP], snapshots={(6, 1): snapshot_of(*BASE[:4])}),
    "a snapshot behind what was not replayed": then(
        changed(0, GONE), changed(isr=[1]), NO_OP, changed(isr=[9]), snapshots={(7, 1): snapshot_of(*BASE)}
    ),
    "a snapshot of records that do not fit": snapshot(*BASE, changed(0, GONE)),
    "a snapshot with a transaction": snapshot(*BASE, BEGIN),
    "a snapshot with a higher version": lambda: log(
        level(21), NO_OP, snapshots={(1, 1): snapshot_of(level(21), topic(), partition())}
    ),
    "a snapshot of a newer metadata.version": snapshot(level(32), changed(0, GONE)),
    "a snapshot of an unknown kind": snapshot(*BASE, b"\1\x63\0\0"),
    "a snapshot of records that nobody reads": snapshot(UNREAD, UNREAD, *BASE, UNREAD),
    "a snapshot with a wrong control record": shaped(
        snapshot_of(LEVEL)[0], LogBatch(1, 1, [(b"\0\0\0\1", bytes(6))], True), control(2, "SnapshotFooterRecord")
    ),
    "a snapshot without a header": shaped(*batches_of(list(BASE)), control(5, "SnapshotFooterRecord")),
    "a snapshot without a footer": shaped(*snapshot_of(*BASE)[:-1]),
    "a snapshot with a record behind the footer": shaped(*snapshot_of(*BASE), *batches_of(NO_OP, base=7)),
    "a snapshot of a header alone": shaped(snapshot_of()[0]),
    "an empty snapshot": shaped(),
    "a snapshot of another epoch": shaped(*snapshot_of(*BASE, epoch=2)),
    "a snapshot that is cut": shaped(*snapshot_of(*BASE), cut=3),
    "a snapshot with bytes behind it": shaped(*snapshot_of(*BASE), more=b"x" * 90),
    "a snapshot with damage at its beginning": shaped(*snapshot_of(*BASE), flip=30),
    "a snapshot with damage": shaped(*snapshot_of(*BASE), flip=200),
    "a snapshot with voters": shaped(
        snapshot_of()[0], control(1, "KRaftVersionRecord", kRaftVersion=1), control(2, "VotersRecord"),
        *batches_of(list(BASE), base=3), control(8, "SnapshotFooterRecord"),
    ),
    "a snapshot that is gone": lambda: unread(FIVE),
    "a snapshot that was not finished": lambda: log(*BASE, more={UNFINISHED: b"x", "x.part": b""}),
    # ---- quorum-state
    "a quorum-state": lambda: log(*BASE, more={"quorum-state": QUORUM % (1, 1), "other": b"x"}),
    "a quorum-state of a later epoch": lambda: log(*BASE, more={"quorum-state": QUORUM % (2, 0)}),
    "a quorum-state that is behind": lambda: log(*BASE, more={"quorum-state": QUORUM % (0, 0)}),
    "a quorum-state that is behind another batch": lambda: log(
        NO_OP, LogBatch(1, 7, [(None, NO_OP)]), more={"quorum-state": QUORUM % (6, 0)}
    ),
    "a quorum-state of another version": lambda: log(*BASE, more={"quorum-state": QUORUM % (1, 2)}),
    "a quorum-state with a second line": lambda: log(*BASE, more={"quorum-state": QUORUM % (1, 1) + b"\nx"}),
    "a quorum-state that is no number": lambda: log(
        *BASE, more={"quorum-state": b'{"leaderEpoch":"1","data_version":1}'}
    ),
    "a quorum-state that lacks the epoch": lambda: log(*BASE, more={"quorum-state": b'{"data_version":1}'}),
    "a quorum-state that is a list": lambda: log(*BASE, more={"quorum-state": b"[]"}),
    "an empty quorum-state": lambda: log(*BASE, more={"quorum-state": b""}),
    **{
        f"a quorum-state of version {version} with {old.decode()} as {new.decode()}": quorum_state(version, old, new)
        for version, old, new in (
            (0, b'"clusterId":""', b'"clusterId":1'), (0, b'"clusterId":""', b'"x":1'),
            (1, b'"clusterId":""', b'"x":1'),
            (1, b'"AAAAAAAAAAAAAAAAAAAAAA"', b"1"), (0, b'"AAAAAAAAAAAAAAAAAAAAAA"', b"1"),
            (1, b'"leaderId":1', b'"leaderId":"1"'), (1, b'"leaderId":1', b'"leaderId":2147483647'),
            (1, b'"leaderId":1', b'"leaderId":2147483648'), (1, b'"leaderId":1', b'"leaderId":-2147483648'),
            (1, b'"leaderId":1', b'"leaderId":-2147483649'), (0, b'"appliedOffset":0', b'"appliedOffset":4294967296'),
            (0, b'"appliedOffset":0', b'"appliedOffset":"0"'), (0, b'[{"voterId":1}]', b"null"),
            (0, b'[{"voterId":1}]', b'[{"voterId":"1"}]'), (0, b'[{"voterId":1}]', b'[{}]'),
            (0, b'[{"voterId":1}]', b"7"), (0, b'[{"voterId":1}]', b"[]"),
            (1, b'"data_version":1', b'"data_version":true'),
            (1, b'"data_version":1', b'"data_version":1.0'),
        )
    },
    # ---- directories and names
    "directories with the names of files": lambda: log(
        *BASE, folders=("quorum-state", FIVE, UNFINISHED, "0-0.checkpoint", "x.part", "other")
    ),
    **{
        f"a snapshot with the name {name}": misnamed(name)
        for name in (
            "0-0.checkpoint", "bootstrap.checkpoint", "x.checkpoint.part", f"{FIVE}.x",
            f"{(1 << 63) - 1:020}-{1:010}.checkpoint", f"{1 << 63:020}-{1:010}.checkpoint",
            f"{5:020}-{(1 << 31) - 1:010}.checkpoint", f"{5:020}-{1 << 31:010}.checkpoint",
        )
    },
    # ---- the beginning
    "a log that begins at 1": lambda: log(NO_OP, base=1),
    "a part that begins later": lambda: log(NO_OP, base=5, snapshots={(4, 1): snapshot_of()}, alone=True),
    "a part that begins at a snapshot": lambda: log(NO_OP, base=5, snapshots={(5, 1): snapshot_of()}, alone=True),
    "a part that begins with the log": lambda: log(*BASE, NO_OP, alone=True),
    # ---- epochs
    "epoch 0, and no leader's change of 1": lambda: log(NO_OP, LogBatch(1, 1, [(None, NO_OP)]), epoch=0),
    "a batch of epoch -1": then(LogBatch(5, -1, [(None, NO_OP)]), NO_OP),
    "a batch of epoch -2": then(LogBatch(5, -2, [(None, NO_OP)]), NO_OP),
    "an epoch after a gap": lambda: one(
        seg(0, *(x.encoded() for x in (*batches_of(*BASE), *batches_of(NO_OP, base=7, epoch=2)))), name=NAME
    ),
    "an epoch of one batch": then(LogBatch(5, 2, [(None, NO_OP)]), NO_OP),
    "an epoch that stays": then(LogBatch(5, 2, [(None, NO_OP)]), LogBatch(6, 2, [(None, NO_OP)])),
    "an epoch that stays, and another": then(LogBatch(5, 2, [(None, NO_OP)]), LogBatch(6, 3, [(None, NO_OP)])),
    "an epoch with its leader's change": then(control(5, "LeaderChangeMessage", 2, leaderId=1), NO_OP, epoch=1),
    "an epoch with another control record": then(
        control(5, "SnapshotFooterRecord", 2), LogBatch(6, 2, [(None, NO_OP)])
    ),
    "an epoch with a key of three bytes": then(LogBatch(5, 2, [(b"\0\0\0", b"\0")], True)),
    "an epoch with a key of none": then(LogBatch(5, 2, [(None, b"\0")], True)),
    "an epoch with a key of four bytes": then(LogBatch(5, 2, [(b"\0\0\0\4", b"\0\0\0")], True)),
    "an epoch with a record's key": then(LogBatch(5, 2, [(b"\0\0\0\2", NO_OP)])),
    # ---- kraft.version
    **{
        f"kraft.version {n}": then(control(5, "KRaftVersionRecord", kRaftVersion=n), NO_OP) for n in (-1, 0, 1, 2)
    },
    # ---- voters and leaders
    **{
        f"voters {' then '.join(map(str, sets))}": then(*voting(*sets))
        for sets in (
            ((1, 2, 3),), ((1, 2, 3), (1, 2)), ((1, 2, 3), (1, 2, 3, 4)), ((1, 2, 3), (3,)), ((1, 2, 3), (1, 2, 4)),
            ((1, 2), (2, 1)), ((1, 2, 3), ()), ((),), ((1, 1, 2),), ((1, 2), (2, 2, 1)), ((1, 2), (3,), (3, 4)),
            ((1, 2, 3), (), (1, 2)),
        )
    },
    "voters with other directories": then(*voting((1, 2)), voters_record(6, 1, 2, directory=GONE)),
    "voters, one with another directory": then(
        *voting((1, 2)), voters_record(6, 1, 2, directory=GONE, of=(1,)), voters_record(7, 1, 2, directory=GONE)
    ),
    "voters with other endpoints": then(*voting((1, 2)), voters_record(6, 1, 2, endpoints=[ENDPOINT])),
    "voters behind damage": voters_behind(damaged),
    "voters without damage": voters_behind(LogBatch.encoded),
    "voters behind a gap": then(*voting((1, 2, 3)), voters_record(9, 4), voters_record(10, 5)),
    **{
        f"kraft.version {' then '.join(map(str, of))}": then(
            *(control(5 + n, "KRaftVersionRecord", kRaftVersion=level) for n, level in enumerate(of)), NO_OP
        )
        for of in ((0, 1), (1, 0), (1, 1), (0, 0), (1, 0, 1))
    },
    **{
        f"leaders {', '.join(map(str, of))}": then(
            *(control(5 + n, "LeaderChangeMessage", e, leaderId=leader) for n, (e, leader) in enumerate(of))
        )
        for of in (((2, 1),), ((2, 1), (2, 1)), ((2, 1), (2, 2)), ((2, 1), (3, 2)), ((2, 0), (2, 1), (2, 2)))
    },
    **{
        f"leader {leader}, by voters {sets} and those of the change {own}": then(
            *voting(*sets),
            control(5 + len(sets), "LeaderChangeMessage", 2, leaderId=leader, voters=[named(v) for v in own]),
        )
        for leader, sets, own in (
            (1, (), (1, 2)), (3, (), (1, 2)), (3, (), ()), (1, ((1, 2),), ()), (3, ((1, 2),), ()), (3, ((1, 2),), (3,)),
            (1, ((1, 2),), (3,)), (0, ((1, 2),), ()), (1, ((),), (2,)),
        )
    },
    **{
        f"leader {leader}, of node with voters {own}": lambda leader=leader, own=own: log(
            control(0, "LeaderChangeMessage", 1, leaderId=leader, voters=[named(1), named(2)]), *BASE[:1],
            snapshots={(0, 0): snapshot_with(own)},
        )
        for leader, own in ((1, (1, 2)), (1, (3,)), (3, (3,)))
    },
    "voters behind those of the node": lambda: log(
        *BASE[:1], voters_record(1, 5, 6, 7), snapshots={(0, 0): snapshot_with((1, 2, 3))}
    ),
    **{
        f"a snapshot with voters {own} and kraft.version {level}, where there are {sets} and {levels}": then(
            *(control(5 + n, "KRaftVersionRecord", kRaftVersion=x) for n, x in enumerate(levels)),
            *voting(*sets, base=5 + len(levels)), NO_OP,
            snapshots={(5 + len(levels) + len(sets), 1): snapshot_with(own, level, *BASE)},
        )
        for own, level, sets, levels in (
            ((1, 2), 1, ((1, 2),), (1,)), ((2, 1), 1, ((1, 2),), (1,)), ((1,), 1, ((1, 2),), (1,)),
            ((1, 2, 3), 1, ((1, 2),), (1,)), (None, 1, ((1, 2),), (1,)), ((1, 2), None, ((1, 2),), (1,)),
            (None, None, ((1, 2),), (1,)), (None, None, (), (0,)), (None, 0, (), ()), (None, 1, (), ()),
            ((1, 2), None, (), ()), ((3, 4), 1, ((1, 2),), (1,)),
        )
    },
    "a snapshot with voters of other endpoints": then(
        voters_record(5, 1, endpoints=[ENDPOINT]), NO_OP, snapshots={(6, 1): snapshot_with((1,), None, *BASE)}
    ),
    "a snapshot with voters of other versions": then(
        voters_record(5, 1, most=1), NO_OP, snapshots={(6, 1): snapshot_with((1,), None, *BASE)}
    ),
    "voters behind a snapshot that says them": lambda: log(
        NO_OP, voters_record(6, 4), base=5, snapshots={(5, 1): snapshot_with((1, 2, 3), 1, *BASE)}
    ),
    "voters behind a snapshot that says none": lambda: log(
        NO_OP, voters_record(6, 1, 2, 3), base=5, snapshots={(5, 1): snapshot_with(None, None, *BASE)}
    ),
    "one voter less than in a snapshot": lambda: log(
        NO_OP, voters_record(6, 1, 2), control(7, "KRaftVersionRecord", kRaftVersion=0), base=5,
        snapshots={(5, 1): snapshot_with((1, 2, 3), 1, *BASE)},
    ),
    # ---- quorum-state's leader
    **{
        f"quorum-state names {leader} in {epoch}": lambda leader=leader, epoch=epoch: log(
            *BASE, control(5, "LeaderChangeMessage", 2, leaderId=1), more={"quorum-state": state_of(leader, epoch)}
        )
        for leader, epoch in ((1, 2), (2, 2), (-1, 2), (0, 2), (2, 3))
    },
    **{
        f"nodes whose quorum-state name {of}": lambda of=of: cases(*(
            folder(
                part(seg(0, *(x.encoded() for x in batches_of(*BASE))), name=NAME,
                     files={"quorum-state": b"x" if said is None else state_of(*said)}),
                name=f"n{n}", node=n + 1, properties=meta(n + 1, cluster, None),
            )
            for n, (said, cluster) in enumerate(of)
        ))
        for of in (
            (((1, 2), CLUSTER), ((1, 2), CLUSTER)), (((1, 2), CLUSTER), ((2, 2), CLUSTER)),
            (((1, 2), CLUSTER), ((2, 3), CLUSTER)), (((1, 2), CLUSTER), ((-1, 2), CLUSTER)),
            (((-1, 2), CLUSTER), ((1, 2), CLUSTER)), (((1, 2), CLUSTER), ((2, 2), "another")),
            (((0, 2), CLUSTER), ((1, 2), CLUSTER)),
            (((1, 2), None), ((2, 2), None)),
            ((None, CLUSTER), ((1, 2), CLUSTER), ((2, 2), CLUSTER)),
        )
    },
    "nodes with such a file of another name": lambda: cases(*(
        folder(
            part(seg(0, *(x.encoded() for x in batches_of(*BASE))), name=NAME, files={"other": state_of(n, 2)}),
            name=f"n{n}", node=n, properties=meta(n, CLUSTER, None),
        )
        for n in (1, 2)
    )),
    "nodes with such a file in another topic": lambda: cases(*(
        folder(part(seg(0), name="t-0", files={"quorum-state": state_of(n, 2)}), name=f"n{n}", node=n) for n in (1, 2)
    )),
    **{
        f"a quorum-state with {name}": lambda text=text: log(*BASE, more={"quorum-state": text})
        for name, text in {
            "junk behind it": STATE + b" x", "a line behind it": STATE + b"\rx", "blanks before it": b" \t" + STATE,
            "a line before it": b"\n" + STATE, "no text": b"\xff" + STATE, "no text behind it": STATE + b"\n\xff",
            "NaN": STATE[:-1] + b',"x":NaN}', "brackets": b"[" * 5_000, "a long number": long_number(1_000),
            "a longer number": long_number(1_001), "a number": b"7", "a version of 65537": versioned(b"65537"),
            "a version of -65535": versioned(b"-65535"), "a version of 32769": versioned(b"32769"),
            "a version of 1e400": versioned(b"1e400"),
            "a version of 1e300": versioned(b"1e300"), "a version of -1e300": versioned(b"-1e300"),
            "a version of 1.5": versioned(b"1.5"), "a version that is none": versioned(b"null"),
            "a text as version": versioned(b'"1"'),
            "another long value": STATE.replace(b'"leaderId":1', b'"leaderId":"%s"' % (b"x" * 90)),
            "a text of 60": STATE.replace(b'"leaderId":1', b'"leaderId":"%s"' % (b"x" * 58)),
            "a text of 61": STATE.replace(b'"leaderId":1', b'"leaderId":"%s"' % (b"x" * 59)),
            "no version, and all fields": (QUORUM % (1, 0)).replace(b',"data_version":0', b""),
            "a voter that is a number": (QUORUM % (1, 0)).replace(b'[{"voterId":1}]', b"[1]"),
            "an id of *": STATE.replace(b"AA", b"**", 1),
            "a text that is none": (QUORUM % (1, 0)).replace(b'"clusterId":""', b'"clusterId":7'),
            "an id that is a number": STATE.replace(b'"AAAAAAAAAAAAAAAAAAAAAA"', b"7"),
        }.items()
    },
    # ---- whose snapshot it is
    **{
        f"a snapshot of {end} and {epoch}": lambda end=end, epoch=epoch: log(
            *BASE, control(5, "LeaderChangeMessage", 3), LogBatch(6, 3, [(None, NO_OP)]),
            LogBatch(7, 3, [(None, NO_OP)] * 2),
            snapshots={(end, epoch): snapshot_of(*BASE, epoch=epoch)},
        )
        for end, epoch in (
            (5, 1), (5, 0), (5, 2), (5, 3), (5, 4), (6, 3), (6, 1), (7, 3), (7, 1), (8, 3), (8, 1), (9, 3), (9, 1),
            (9, 4), (10, 3), (10, 1), (10, 4), (10, 2),
        )
    },
    "snapshots that are further": lambda: log(
        *BASE, snapshots={(e, n): snapshot_of(*BASE, epoch=n) for e, n in ((9, 1), (6, 2), (5, 2), (8, 1))}
    ),
    "a snapshot of another log, and one of this": then(
        changed(leader=2, isr=[1, 2]), snapshots={(5, 0): snapshot_of(topic("x"), epoch=0), (6, 1): snapshot_of(*BASE)}
    ),
    "a snapshot that is further than a log of nothing": lambda: cases(folder(
        part(seg(0), name=NAME, files=files({(5, 1): snapshot_of(*BASE)}, {}))
    )),
    "a snapshot behind a gap": with_gap_at_end,
    "a snapshot of epoch 1 beside a log of epoch 0": lambda: log(
        *BASE, epoch=0, snapshots={(5, 1): snapshot_of(topic("x"))}
    ),
    "a snapshot in the midst of an epoch's first batch": lambda: log(
        *BASE,
        LogBatch(5, 3, [*control(5, "LeaderChangeMessage").records, *control(6, "KRaftVersionRecord").records], True),
        snapshots={(6, 3): snapshot_of(*BASE, epoch=3)},
    ),
    "a snapshot with zeros behind": shaped(*snapshot_of(*BASE), more=bytes(64)),
    "a snapshot that is cut in its header": shaped(*snapshot_of()[:1], cut=5),
    # ---- several nodes
    "two nodes": lambda: nodes((5, BASE, None), (5, BASE, None)),
    "two nodes whose snapshots differ": lambda: nodes((5, BASE, None), (5, BASE[:4], None)),
    "three nodes whose snapshots differ": lambda: nodes((5, BASE, None), (5, BASE[:4], None), (5, BASE[:3], None)),
    "two nodes whose logs tell": lambda: nodes((0, BASE, None), (0, BASE[:4], None)),
    "two nodes, of which one log tells": lambda: nodes((0, BASE, None), (5, BASE[:4], None)),
    "two nodes, of which the other log tells": lambda: nodes((5, BASE[:4], None), (0, BASE, None)),
    "two nodes, one with a damaged snapshot": lambda: nodes((5, BASE, None), (5, BASE[:4], b"x" * 90)),
    "two nodes, the other with a damaged snapshot": lambda: nodes((5, BASE[:4], b"x" * 90), (5, BASE, None)),
    "two nodes with files of that name in another topic": lambda: nodes(
        (5, BASE, None), (5, BASE[:4], None), name="t-0"
    ),
    # ---- other logs of the node
    **{
        f"a log of epoch {n}, {name}": beside([(0, 0), (n, 5)], *records)
        for n in (2, 3, 4, 5)
        for name, records in (
            ("of 3", ()), ("of 4", (changed(0, leader=2),)), ("of 3, and another of 4", (partition(1, leaderEpoch=4),)),
        )
    },
    **{
        f"a log of epoch 4 {name}": make
        for name, make in (
            ("that was not clean", beside([(4, 0)], clean=False)),
            ("of another topic", beside([(4, 0)], id=OTHER)),
            ("of partition 1", beside([(4, 0)], name="t-1")),
            ("of partition 1, which has 3", beside([(4, 0)], partition(1), name="t-1")),
            ("with the metadata elsewhere", beside([(4, 0)], two={})),
            ("with the metadata elsewhere, not clean", beside([(4, 0)], two={"clean": False})),
            ("beside another node's metadata", beside([(4, 0)], two={"properties": meta(2, CLUSTER, None)})),
            ("beside another cluster's metadata", beside([(4, 0)], two={"properties": meta(1, "another", None)})),
            ("of no node", beside([(4, 0)], properties=b"", two={"properties": b""})),
            ("beside metadata with a record that nobody reads", beside([(4, 0)], UNREAD)),
            ("beside metadata with a change of nothing", beside([(4, 0)], changed(9))),
            ("beside metadata that has it last in a gap", beside([(4, 0)], LogBatch(9, 1, [(None, NO_OP)]))),
            ("of a partition with epoch 0", beside([(4, 0)], before=(*BASE[:4], partition(leaderEpoch=0)))),
        )
    },
    "a log of no epoch": beside([]),
    "a log without a file of epochs": beside(None),
    "a log of epoch 4, and two metadata logs of the node": lambda: cases(
        *beside([(4, 0)])().folders, folder(part(seg(0, *(x.encoded() for x in batches_of(*BASE))), name=NAME),
        name="again", properties=meta(1, CLUSTER, None)),
    ),
    # ---- segments that are not read
    **{
        f"a segment is gone, {name}": make
        for name, make in {
            "and no snapshot follows": without_segment(1, {}),
            "a snapshot where the next begins": without_segment(1, {(7, 2): 2}),
            "a snapshot where the next begins, of another epoch": without_segment(1, {(7, 1): 1}),
            "a snapshot in the next": without_segment(1, {(8, 2): 2}),
            "a snapshot within": without_segment(1, {(6, 2): 2}),
            "the first": without_segment(0, {(5, 1): 1}),
            "the first, and nothing is known": without_segment(0, {}),
            "the last": without_segment(2, {}),
            "the last, and quorum-state is behind it": without_segment(2, {}, more={"quorum-state": QUORUM % (0, 0)}),
            "the last, and a snapshot of an older epoch": without_segment(2, {(9, 1): 1}),
            "the last, and one that is further": without_segment(2, {(9, 3): 3}),
            "a record behind it": without_segment(1, {(7, 2): 2}, behind=changed(9)),
            "a transaction before it": without_segment(1, {(7, 2): 2}, before=BEGIN),
            "a transaction before it, and one ends behind it": without_segment(
                1, {(7, 2): 2}, before=BEGIN, behind=END
            ),
            "a record that nobody reads before it": without_segment(1, {(7, 2): 2}, before=UNREAD),
            "an epoch that no leader began before it": without_segment(1, {(7, 4): 4}, epochs=(3, 4)),
            "the snapshot is gone, too": lambda: replace(
                without_segment(1, {(7, 2): 2})(),
                gone=[f"d/{NAME}/{5:020}.log", f"d/{NAME}/{7:020}-{2:010}.checkpoint"],
            ),
        }.items()
    },
    # ---- directories
    **{
        f"a folder {name}, the log from {base}": (
            lambda name=name, base=base: log(*BASE, base=base, folders=(name,), clean=True)
        )
        for base in (0, 7)
        for name in (
            f"{6:020}-{1:010}.checkpoint", f"{7:020}-{1:010}.checkpoint", f"{12:020}-{1:010}.checkpoint",
            f"{13:020}-{1:010}.checkpoint", f"{3:020}-{2:010}.checkpoint", f"{7:020}-{1:010}.checkpoint.deleted",
            f"{7:020}-{1:010}-1.checkpoint.part", "7-1.checkpoint.deleted",
        )
    },
    **{
        f"a folder {name}, and one in it": (
            lambda name=name: log(*BASE, base=7, folders=(name, f"{name}/x"), clean=True)
        )
        for name in (f"{6:020}-{1:010}.checkpoint", f"{7:020}-{1:010}.checkpoint.deleted")
    },
    "a folder with too high an offset, the log from 7": lambda: log(
        *BASE, base=7, folders=(f"{1 << 63:020}-{1:010}.checkpoint",), clean=True
    ),
    "a folder that is further, behind damage": lambda: one(
        seg(0, *(x.encoded() for x in batches_of(*BASE)), damaged(LogBatch(5, 1, [(None, NO_OP)]))), name=NAME,
        folders=(f"{13:020}-{1:010}.checkpoint",),
    ),
    "two segments that overlap, and a damaged snapshot": lambda: one(
        *(seg(n, *(x.encoded() for x in batches_of(*BASE, NO_OP, NO_OP, base=n))) for n in (0, 5)), name=NAME,
        files=files({(6, 1): b"x" * 90}, {}),
    ),
    "two clusters": lambda: nodes((5, BASE, None), (5, BASE[:4], None), clusters=(CLUSTER, "another")),
}  # fmt: skip
