"""Audit of a metadata log: each record is decoded and replayed, and after each batch the invariants are checked where
something changed. A snapshot is compared with the state at its end offset, the file quorum-state with the log's epochs.

Across damage, and what cannot be read, the state is not known: it is taken from the next snapshot that the log reaches.
Batches as such, gaps, epochs, a torn end and other nodes' logs are asked by the rules for every log.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from kafkaspec.audit.check import Absent, ClusterCheck, Directory, Facts, Log, LogCheck
from kafkaspec.audit.files import Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.common.findings import METADATA_TOPIC
from kafkaspec.contract.clauses import states
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File, is_empty, open_regular, read_small, why
from kafkaspec.impl.common.ids import id_bytes
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.common.scan import read_segment
from kafkaspec.impl.controller import records as codec
from kafkaspec.impl.controller.features import KRAFT_VERSION, METADATA_VERSION
from kafkaspec.impl.controller.metadata_image import (
    BreachKey,
    ImageDifference,
    MetadataImage,
    ReplayError,
    differences,
    entity_of,
    highest_version,
    levels_of,
)
from kafkaspec.impl.storage.batch import Batch
from kafkaspec.spec.common.metadata_schemas import DATA
from kafkaspec.spec.common.record_format import CODEC_MASK, CONTROL

NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
PART: Final = re.compile(r"\d{20}-\d{10}-.*\.checkpoint\.part")
REMOVED: Final = ".checkpoint.part", ".checkpoint.deleted"
"""What a start removes has such a name."""
SUFFIXES: Final = ".checkpoint", *REMOVED
NUMBERS: Final = re.compile(r"(\d{20}).(\d{10})")
"""What a node reads of a snapshot's name."""
MOST_OFFSET, MOST_EPOCH = (1 << 63) - 1, (1 << 31) - 1
QUORUM_STATE: Final = "quorum-state"
MOST_DIGITS: Final = 1_000
"""of a number that a node reads"""
WHOLE, TEXT, ID, SOME_VOTERS = "a whole number", "a text", "an id", "a list of voters"
OF_QUORUM_STATE: Final[Mapping[int, Mapping[str, str]]] = {
    0: {
        "clusterId": TEXT, "leaderId": WHOLE, "leaderEpoch": WHOLE, "votedId": WHOLE, "appliedOffset": WHOLE,
        "currentVoters": SOME_VOTERS,
    },
    1: {"leaderId": WHOLE, "leaderEpoch": WHOLE, "votedId": WHOLE, "votedDirectoryId": ID},
}  # fmt: skip
"""The fields of the file's versions: none may be left out."""
LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_RECORD, VOTERS_RECORD, DATA_RECORD = 2, 3, 4, 5, 6, -1
REGISTER_BROKER, NEW_TOPIC, PARTITION, CHANGE = 0, 2, 3, 5
NO_OP, END, ABORT = 20, 24, 25
NEVER_BOOTSTRAP: Final = frozenset({REGISTER_BROKER, NEW_TOPIC, CHANGE, NO_OP})
"""What a controller writes only when its first transaction has ended."""
BOOTSTRAP: Final = "Bootstrap records"
NOT_REACHED: Final = 1 << 62
OLDER: Final = range(1, levels_of(METADATA_VERSION).least)
"""metadata.version before 3.3-IV3"""
LEADERS_UNFENCED: Final = 26
"""4.1-IV0: a log of this metadata.version was written by a controller that leaves no leader fenced"""
OF_A_STATE: Final = tuple(f"IMG-{n}" for n in (*range(1, 4), 6, 7, 9, *range(12, 19), 20, 21, 24, *range(26, 32)))
"""What is asked of a log whose state before is known."""
STOPS = "none: a controller or a broker that comes to the record stops"
LEFT_OUT = "none: a controller that comes to the record stops; a broker logs an error, and leaves the record out"
ALONE = "none: a controller that comes to the record stops; brokers take it"
UNWRITTEN = "none: a controller that comes to the record stops; brokers take it, and can write no snapshot"
LATER = "none: every replay takes it, and a controller stops at the next record that changes or ends the registration"
GOES_ON = "none: every replay takes it as it is"
STOPS_LOADING = "none: a node that loads the snapshot stops"
NO_START = "none: the node does not start"
LOADS = "none: a node loads what is there, and does not notice"
STOPS_WHEN_TOLD = "none: a node that hears of another leader in its epoch stops"
RELOADS = "none: who starts from the snapshot has another state than who reads the log"


TAKEN_BY_BROKERS: Final = frozenset({"IMG-1", "IMG-9", "IMG-27", "IMG-29"})
ENDS_TAKEN_BY_BROKERS: Final = frozenset(
    {("IMG-7", "UnregisterBrokerRecord"), ("IMG-12", "RemoveUserScramCredentialRecord")}
)


def consequence(name: str, fields: Mapping[str, Any], e: ReplayError) -> str:
    """What nodes do about a record that cannot be replayed. Controllers look at more than brokers, whose replay is
    MetadataDelta's."""
    if not e.error:
        return LATER if e.clause == "IMG-27" else GOES_ON
    if e.clause == "IMG-28" and name == "RegisterBrokerRecord" and all(x["name"] for x in fields["endPoints"]):
        return UNWRITTEN
    if e.clause in TAKEN_BY_BROKERS or (e.clause, name) in ENDS_TAKEN_BY_BROKERS:
        return ALONE
    return ALONE if e.clause == "IMG-8" and fields["name"] != METADATA_VERSION else LEFT_OUT


class RecordPlace(NamedTuple):
    """Where a record stands."""

    file: File
    position: int
    offset: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} at offset {self.offset}"


@dataclass(frozen=True)
class SnapshotFile:
    """A snapshot of the state up to an offset, itself not included."""

    end_offset: int
    epoch: int
    file: File


class StoredBatch(NamedTuple):
    """A sound batch of a file, in its bytes."""

    position: int
    base: int
    epoch: int
    control: bool
    data: bytes

    def records(self) -> Iterator[codec.LogRecord]:
        """Places of a compressed batch's records are that of the batch."""
        if not self.data[22] & CODEC_MASK:
            return codec.log_records(self.data)
        return (
            codec.LogRecord(r.offset - self.base, r.timestamp_delta, r.key, r.value, 0, int(bool(r.headers)))
            for r in Batch(self.data, self.position).records()
        )


def stored(file: IO[bytes], chunk: Chunk) -> Iterator[StoredBatch | None]:
    """The batches of a chunk; None in the place of one that is damaged, or of an old format."""
    rows, bad = chunk.batches, (chunk.bad | chunk.old).tolist()
    columns = ("position", "size", "base_offset", "leader_epoch", "attributes")
    for wrong, (position, size, base, epoch, attributes) in zip(
        bad, zip(*(rows[c].tolist() for c in columns), strict=True), strict=True
    ):
        data = b""
        if not wrong:
            file.seek(position)
            data = file.read(size)
        yield StoredBatch(position, base, epoch, bool(attributes & CONTROL), data) if len(data) == size else None


def begins_epoch(batch: StoredBatch) -> bool:
    """Whether its first record is a leader's change."""
    key = next((r.key or b"" for r in batch.records()), b"")
    return batch.control and int.from_bytes(key[2:4], "big") == LEADER_CHANGE


def has_numbers(name: str) -> bool:
    """Whether a node finds an offset and an epoch in a snapshot's name."""
    m = NUMBERS.match(name)
    return m is not None and int(m[1]) <= MOST_OFFSET and int(m[2]) <= MOST_EPOCH


def snapshots_of(log: Log) -> list[SnapshotFile]:
    """Those of a metadata log, by end offset."""
    named = [(m, f) for f in log.files.others if (m := NAME.fullmatch(f.path.name)) and has_numbers(f.path.name)]
    return sorted((SnapshotFile(int(m[1]), int(m[2]), f) for m, f in named), key=lambda s: (s.end_offset, s.epoch))


class VoterState(NamedTuple):
    """A voter, as the records of Raft name it."""

    directory: str
    endpoints: frozenset[tuple[str, str, int]]
    kraft_versions: tuple[int, int]


@dataclass
class QuorumImage:
    """What the control records come to: the level of kraft.version, None where no record said it, and the voters."""

    level: int | None = None
    voters: Mapping[int, VoterState] = field(default_factory=dict)
    by_configuration: bool = True
    """whether the voters are those that the node itself was formatted with: another one may have been with others"""

    def differences(self, other: QuorumImage) -> Iterator[ImageDifference]:
        """What another one has otherwise. No record is level 0."""
        if (self.level or 0) != (other.level or 0):
            yield ImageDifference(KRAFT_VERSION, "level", self.level or 0, other.level or 0)
        for id in sorted(self.voters.keys() | other.voters.keys()):
            ours, theirs = self.voters.get(id), other.voters.get(id)
            if ours != theirs:
                yield ImageDifference("voter", id, ours, theirs)


def voters_of(fields: Mapping[str, Any]) -> dict[int, VoterState]:
    """Those that a record names. Of two with one id the last counts."""
    return {
        v["voterId"]: VoterState(
            v["voterDirectoryId"],
            frozenset((e["name"], e["host"], e["port"]) for e in v["endpoints"]),
            (v["kRaftVersionFeature"]["minSupportedVersion"], v["kRaftVersionFeature"]["maxSupportedVersion"]),
        )
        for v in fields["voters"]
    }


@dataclass
class LoadedSnapshot:
    """What a snapshot comes to; `image` None if it cannot be told."""

    image: MetadataImage | None = None
    quorum: QuorumImage = field(default_factory=QuorumImage)
    findings: list[Finding] = field(default_factory=list)
    places: dict[tuple[str, Any], RecordPlace] = field(default_factory=dict)
    """of records, by what they say something of"""
    end: RecordPlace | None = None


class RecordReader:
    """The records of a log or of a snapshot, one after the other, put to an image."""

    def __init__(self, log: Log, image: MetadataImage) -> None:
        self.log, self.image, self.quorum = log, image, QuorumImage()
        self.counts: Counter[int] = Counter()
        """of data records, by type"""
        self.newer = False
        """whether a metadata.version was met that this release does not know: what follows is not read"""
        self.wrong = False
        """whether a record was not replayed"""
        self._allowed: dict[int, int] = {}
        self._allowed_at: int | None = None
        self._named: set[tuple[str, Any]] = set()
        """of what it was told that it is not there, or not allowed"""
        self._unread: Finding | None = None
        """of the first of several records, one behind the other, that nobody reads"""
        self._more = 0
        """how many stand behind it"""

    def found(self, severity: Severity, clause: str, place: RecordPlace, message: str, **more: Any) -> Finding:
        return self.log.finding(
            severity, clause, place.file, message, position=place.position, offset=place.offset, **more
        )

    def place(self, file: File, batch: StoredBatch, r: codec.LogRecord, name: str) -> RecordPlace:
        return RecordPlace(file, batch.position + r.at, batch.base + r.delta, name)

    @states("MRC-19")
    def control(self, file: File, batch: StoredBatch, r: codec.LogRecord) -> codec.Record | Finding:
        """A record of a control batch, or what is wrong with it."""
        try:
            return codec.decode_record(r.key, r.value, r.timestamp_delta, r.last_byte, control=True)
        except codec.Unreadable as e:
            return self._unreadable(file, batch, r, e, "a control record")

    @states("IMG-8")
    def level(self, file: File, batch: StoredBatch, r: codec.LogRecord, control: codec.Record) -> Iterator[Finding]:
        """What is wrong with the level of kraft.version that a control record says."""
        if control.type == KRAFT_RECORD and not 0 <= control.fields["kRaftVersion"] <= levels_of(KRAFT_VERSION).most:
            yield self.found(
                Severity.UNCHECKED, "IMG-8", self.place(file, batch, r, control.name),
                f"{control.name}: {KRAFT_VERSION} has level {control.fields['kRaftVersion']}; of a newer Kafka, or "
                "none of Kafka's", recovery="Kafka 4.3.0 stops at the record",
            )  # fmt: skip

    @states("IMG-33")
    def voting(self, file: File, batch: StoredBatch, r: codec.LogRecord, control: codec.Record) -> Iterator[Finding]:
        """Take what a control record says of the voters. What is wrong with it."""
        before, said = self.quorum, control.fields
        if control.type == KRAFT_RECORD:
            self.quorum = replace(before, level=said["kRaftVersion"])
            if before.level is not None and said["kRaftVersion"] < before.level:
                yield self._wrong_quorum(
                    file, batch, r, control, f"{KRAFT_VERSION} falls from {before.level} to {said['kRaftVersion']}",
                    f"{before.level} or above",
                )  # fmt: skip
        elif control.type == VOTERS_RECORD:
            now, ids = voters_of(said), [v["voterId"] for v in said["voters"]]
            self.quorum = replace(before, voters=now, by_configuration=False)
            if not ids or len(now) < len(ids):
                twice = sorted({id for id in ids if ids.count(id) > 1})
                there = f"voter {twice[0]} twice" if twice else "no voter"
                yield self._wrong_quorum(file, batch, r, control, there, "each voter once, and one at least")
            elif before.voters and not before.by_configuration:
                old = {(id, v.directory) for id, v in before.voters.items()}
                new = {(id, v.directory) for id, v in now.items()}
                if len({id for id, _ in old ^ new}) > 1:
                    there = f"voters {sorted(now)} in the place of {sorted(before.voters)}"
                    yield self._wrong_quorum(file, batch, r, control, there, "one voter more, or one less")

    def _wrong_quorum(
        self, file: File, batch: StoredBatch, r: codec.LogRecord, control: codec.Record, there: str, right: str
    ) -> Finding:
        place = self.place(file, batch, r, control.name)
        return self.found(
            Severity.ERROR, "IMG-33", place, f"{control.name}: {there}", expected=right, recovery=GOES_ON
        )  # fmt: skip

    @states("MRC-19")
    def data(self, file: File, batch: StoredBatch, r: codec.LogRecord) -> codec.ParsedRecord | Finding:
        """A record of data, or what is wrong with it."""
        if r.key is None and r.value and not r.timestamp_delta and not r.last_byte:
            try:
                return codec.parse(r.value)
            except codec.Unreadable as e:
                return self._odd(file, batch, r, r.value, e)
        try:
            codec.decode_record(r.key, r.value, r.timestamp_delta, r.last_byte)
        except codec.Unreadable as e:
            return self._unreadable(file, batch, r, e, "a record of data")
        raise AssertionError("the exact reader takes what the quick one does not")

    def _unreadable(
        self, file: File, batch: StoredBatch, r: codec.LogRecord, e: codec.Unreadable, what: str
    ) -> Finding:
        self.wrong = True
        place = self.place(file, batch, r, what)
        place = place._replace(position=place.position + e.at)
        return self.found(
            Severity.ERROR, "MRC-19", place, f"{what} that nobody reads: {e} ({e.clause})",
            expected="a record of the metadata log", recovery=STOPS,
        )  # fmt: skip

    def _odd(self, file: File, batch: StoredBatch, r: codec.LogRecord, value: bytes, e: codec.Unreadable) -> Finding:
        """Of a version that the log's metadata.version does not have, that is what is wrong."""
        type, version = value[1:3].ljust(2, b"\0")
        if type not in DATA or version <= self.allowed(type):
            return self._unreadable(file, batch, r, e, "a record of data")
        self.wrong = True
        return self._forbidden(self.place(file, batch, r, DATA[type].name), type, version)

    def unread(self, found: Finding) -> Iterator[Finding]:
        """A record that nobody reads. It is told with those behind it."""
        if self._unread is not None and self._unread.clause == found.clause:
            self._more += 1
        else:
            yield from self.held()
            self._unread = found

    def held(self) -> Iterator[Finding]:
        """What there was that nobody reads: the first record, and how many more."""
        if self._unread is not None:
            more = f"; and {self._more:,} more behind it" if self._more else ""
            yield replace(self._unread, message=self._unread.message + more)
        self._unread, self._more = None, 0

    def allowed(self, type: int) -> int:
        """The highest version that the type has now."""
        level = self.image.features.get(METADATA_VERSION)
        if level != self._allowed_at:
            self._allowed, self._allowed_at = {}, level
        most = self._allowed.get(type)
        if most is None:
            most = self._allowed[type] = highest_version(type, level)
        return most

    @states("IMG-19")
    def _forbidden(self, place: RecordPlace, type: int, version: int) -> Finding:
        level, most = self.image.metadata_version, self.allowed(type)
        has = f"has {place.name} up to version {most}" if most >= 0 else f"has no {place.name}"
        return self.found(
            Severity.ERROR, "IMG-19", place,
            f"{place.name} of version {version}, where "
            + (f"metadata.version {level} {has}" if level is not None else f"Kafka 4.3.0 {has}"),
            recovery="none: a node of that level may stop at the record, or read it otherwise",
        )  # fmt: skip

    def take(self, file: File, batch: StoredBatch, r: codec.LogRecord, record: codec.ParsedRecord) -> Iterable[Finding]:
        """Replay a record. What is wrong with it."""
        type, version, fields = record
        forbidden = version > self.allowed(type)
        wrong: Iterable[Finding] = ()
        try:
            self.image.replay(type, fields, batch.base + r.delta)
        except ReplayError as e:
            wrong = self._refused(self.place(file, batch, r, DATA[type].name), fields, e)
        about = DATA[type].name, (version, self._allowed_at)
        if forbidden and about not in self._named:
            self._named.add(about)
            return (self._forbidden(self.place(file, batch, r, DATA[type].name), type, version), *wrong)
        return wrong

    @states(*(f"IMG-{n}" for n in (*range(1, 4), *range(6, 10), 12, 13, 18, 27, 28, 29)))
    def _refused(self, place: RecordPlace, fields: Mapping[str, Any], e: ReplayError) -> Iterator[Finding]:
        self.wrong = True
        if e.clause == "IMG-8":
            self.newer = (
                fields["name"] == METADATA_VERSION and fields["featureLevel"] > levels_of(METADATA_VERSION).most
            )
            older = fields["name"] == METADATA_VERSION and fields["featureLevel"] in OLDER
            whose = (
                "an older Kafka: those that 4.3.0 reads begin with 7" if older else "a newer Kafka, or none of Kafka's"
            )
            yield self.found(
                Severity.UNCHECKED, "IMG-8", place,
                f"{place.name}: {e}; of {whose}" + ("; the file is not read on" if self.newer else ""),
                recovery=consequence(place.name, fields, e),
            )  # fmt: skip
            return
        about = next((fields[k] for k in ("topicId", "brokerId", "id") if k in fields), None)
        if (e.clause, about) in self._named and e.clause in ("IMG-2", "IMG-7"):
            return
        self._named.add((e.clause, about))
        if place.name == "RegisterBrokerRecord":
            self._named.add(("IMG-7", about))
        yield self.found(
            Severity.ERROR, e.clause, place, f"{place.name}: {e}", expected="a record that fits what was before",
            recovery=consequence(place.name, fields, e),
        )  # fmt: skip


# ---- snapshots -------------------------------------------------------------------------------------------------------
def subject(record: codec.ParsedRecord, image: MetadataImage) -> tuple[str, Any]:
    """What a record of a snapshot says something of, as two states are compared by it."""
    type, _, f = record
    match type:
        case 2:
            return "topic", f["name"]
        case 3:
            topic = image.topics.get(f["topicId"])
            return "partition", f["topicId"] if topic is None else f"{topic.name}-{f['partitionId']}"
        case 0:
            return "broker", f["brokerId"]
        case 27:
            return "controller", f["controllerId"]
        case 12:
            return "feature", f["name"]
        case 4:
            return "configuration", (f["resourceType"], f["resourceName"], f["name"])
        case 14:
            return "client quota", (*entity_of(f), f["key"])
        case 15:
            return "producer id", "next"
        case 18:
            return "ACL", f["id"]
        case 11:
            return "SCRAM credential", (f["name"], f["mechanism"])
        case 10:
            return "delegation token", f["tokenId"]
    return "", None


def snapshot_batches(file: File) -> Iterator[StoredBatch | Ending]:
    """The batches of a snapshot, up to damage or its end; an ending if there is something that is none."""
    at = 0
    with open(open_regular(file.path), "rb") as content:
        for x in read_segment(file, deep=True):
            if isinstance(x, Ending):
                if x.reason:
                    yield x
                return
            for batch in stored(content, x):
                if batch is None:
                    yield Ending(at, file.size, "a damaged batch")
                    return
                at = batch.position + len(batch.data)
                yield batch


@states("IMG-22")
def load(log: Log, snapshot: SnapshotFile) -> LoadedSnapshot:
    """Read a snapshot. Raises UserError if the file cannot be read."""
    out = LoadedSnapshot()
    image = MetadataImage()
    image.in_snapshot = True
    reader = RecordReader(log, image)
    kinds: list[int] = []
    """of records: the type of a control record, or DATA_RECORD"""
    odd: list[tuple[int, str, str, str]] = []
    """what is ill-formed: where, what is there, what would be right, and what comes of it"""
    at = 0
    for batch in snapshot_batches(snapshot.file):
        if isinstance(batch, Ending):
            whole, is_cut = "whole batches, as they were written", batch.torn and not batch.reason.endswith(" of zeros")
            then = LOADS if is_cut and kinds else STOPS_LOADING
            odd.append((batch.end, f"{batch.reason} in the file", whole, then))
            break
        at = batch.position + len(batch.data)
        if batch.epoch != snapshot.epoch and not odd:
            there = f"a batch of epoch {batch.epoch} in a snapshot of epoch {snapshot.epoch}"
            odd.append((batch.position, there, f"epoch {snapshot.epoch}", LOADS))
        for r in batch.records():
            kinds.append(_take_of_snapshot(reader, snapshot.file, batch, r, out))
            if reader.newer:
                return out
    out.findings += reader.held()
    if not odd and kinds[:1] != [SNAPSHOT_HEADER]:
        odd.append((0, "no header at its beginning", "a control record, SnapshotHeaderRecord", STOPS_LOADING))
    if not odd and kinds[-1:] != [SNAPSHOT_FOOTER]:
        odd.append((at, "no footer at its end", "a control record, SnapshotFooterRecord", LOADS))
    for position, message, expected, then in odd:
        out.findings.append(
            log.finding(
                Severity.ERROR, "IMG-22", snapshot.file, message, expected=expected, position=position, recovery=then
            )
        )
    if not odd and not reader.wrong:
        image.in_snapshot = False
        image.check()
        out.image, out.quorum = image, replace(reader.quorum, by_configuration=snapshot.end_offset == 0)
    return out


def _take_of_snapshot(
    reader: RecordReader, file: File, batch: StoredBatch, r: codec.LogRecord, out: LoadedSnapshot
) -> int:
    """Put a record to the image. Its type, if it is a control record, or DATA_RECORD."""
    if batch.control:
        control = reader.control(file, batch, r)
        if isinstance(control, Finding):
            out.findings += reader.unread(control)
            return DATA_RECORD
        out.findings += (*reader.level(file, batch, r, control), *reader.voting(file, batch, r, control))
        out.end = reader.place(file, batch, r, control.name)
        if control.type == KRAFT_RECORD:
            out.places[KRAFT_VERSION, "level"] = out.end
        elif control.type == VOTERS_RECORD:
            out.places |= {("voter", id): out.end for id in reader.quorum.voters}
        return control.type
    read = reader.data(file, batch, r)
    if isinstance(read, Finding):
        out.findings += reader.unread(read)
    else:
        out.findings += (*reader.held(), *reader.take(file, batch, r, read))
        out.places[subject(read, reader.image)] = reader.place(file, batch, r, DATA[read.type].name)
    return DATA_RECORD


def told(d: ImageDifference) -> str:
    """What two states differ in, in words."""
    key = " ".join(map(str, d.key)) if isinstance(d.key, tuple) else d.key
    if d.theirs is None:
        return f"{d.what} {key} is not in it"
    if d.ours is None:
        return f"{d.what} {key} is in it alone"
    if hasattr(d.ours, "_fields"):
        parts = [n for n in d.ours._fields if getattr(d.ours, n) != getattr(d.theirs, n)]
        return f"{d.what} {key} has " + ", ".join(
            f"{n} {getattr(d.theirs, n)} where the log has {getattr(d.ours, n)}" for n in parts
        )
    return f"{d.what} {key} is {d.theirs} where the log has {d.ours}"


def compared(
    log: Log, snapshot: SnapshotFile, loaded: LoadedSnapshot, ours: MetadataImage, quorum: QuorumImage, where: str
) -> Iterator[Finding]:
    """What is wrong with a snapshot that should have a state. One finding: of the first thing, and how many more."""
    assert loaded.image is not None
    assert loaded.end is not None
    found = [*differences(ours, loaded.image), *quorum.differences(loaded.quorum)]
    if not found:
        return
    first = next((d for d in found if (d.what, d.key) in loaded.places), found[0])
    place = loaded.places.get((first.what, first.key), loaded.end)
    more = f"; and {len(found) - 1:,} more differences" if len(found) > 1 else ""
    yield log.finding(
        Severity.ERROR, "IMG-21", snapshot.file, f"{told(first)}{more}",
        expected=f"the state of {where} at offset {snapshot.end_offset}", recovery=RELOADS,
        position=place.position, offset=place.offset,
    )  # fmt: skip


# ---- the log ---------------------------------------------------------------------------------------------------------
class QuorumState(NamedTuple):
    """What the file quorum-state says of the leader."""

    epoch: int
    leader: int


@states("IMG-23")
def quorum_state(data: bytes) -> QuorumState:
    """The first line, as a node reads it: what is behind the object does not matter to it. Raises ValueError, with what
    is wrong."""
    try:
        line = re.split(r"[\r\n]", data.decode(), maxsplit=1)[0].lstrip(" \t")
        said, _ = json.JSONDecoder(parse_constant=_no_number, parse_int=_number).raw_decode(line)
    except RecursionError:
        raise ValueError("too many brackets, one in the other") from None
    except UnicodeDecodeError as e:
        raise ValueError(f"byte {e.start} is no text in UTF-8") from None
    except json.JSONDecodeError as e:
        raise ValueError(f"no JSON: {e.msg[0].lower()}{e.msg[1:]}, character {e.pos + 1}") from None
    if not isinstance(said, dict):
        raise ValueError("no object")
    version = _short(said.get("data_version"))
    if "data_version" not in said or version not in OF_QUORUM_STATE:
        raise ValueError(f"no data_version that is 0 or 1: {_brief(said.get('data_version'))}")
    for name, kind in OF_QUORUM_STATE[version].items():
        if name not in said or not _fits(name, said[name], kind):
            raise ValueError(f"{name} is not {kind}: {_brief(said[name])}" if name in said else f"no {name}")
    return QuorumState(said["leaderEpoch"], said["leaderId"])


def _no_number(text: str) -> None:
    raise ValueError(f"no JSON: {text}")


def _number(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"no JSON: a number of {len(text):,} digits")
    return int(text)


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _short(value: Any) -> int:
    """A number of JSON as Java's shortValue has it: the lowest 16 bits of a whole number; 0 for what is no number."""
    if type(value) is float:
        value = int(max(-MOST_EPOCH - 1, min(MOST_EPOCH, value)))
    if type(value) is not int:
        return 0
    return (value + (1 << 15)) % (1 << 16) - (1 << 15)


def _fits(name: str, value: Any, kind: str) -> bool:
    """Whether a node takes the value."""
    if kind == WHOLE:
        most = MOST_OFFSET if name == "appliedOffset" else MOST_EPOCH
        return type(value) is int and -most - 1 <= value <= most
    if kind == SOME_VOTERS:
        return isinstance(value, list) and all(
            isinstance(v, dict) and _fits("voterId", v.get("voterId"), WHOLE) for v in value
        )
    return isinstance(value, str) and (kind == TEXT or id_bytes(value) is not None)


def twice(named: Sequence[int]) -> list[int]:
    """Who is named more than once."""
    return sorted({b for b in named if named.count(b) > 1})


class MetadataImageCheck(LogCheck):
    """A metadata log, record by record."""

    @classmethod
    def applies(cls, log: Log) -> bool:
        return log.topic == METADATA_TOPIC

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.reader = RecordReader(log, MetadataImage())
        self.known = False
        """whether the image is that of the offset"""
        self.next: int | None = None
        self.epoch = -1
        """of the last batch"""
        self.highest = -1
        """of all epochs"""
        self.raised: tuple[int, Finding] | None = None
        """an epoch that no leader began, and what is said of it, until the next batch shows whether it stays"""
        self.snapshots = snapshots_of(log)
        self.due = -1
        """the end offset of the next snapshot to be compared"""
        self.reached: set[int] = set()
        """the end offsets of those that were read"""
        self.compared: list[int] = []
        self.begun: tuple[RecordPlace, int, str | None] | None = None
        """the record that began the open transaction, its epoch, and the transaction's name"""
        self.given_up = False
        """whether it was told of a transaction that it was never ended"""
        self.leaders: dict[int, int] = {}
        """who led in an epoch, by the log"""
        self.other: list[tuple[SnapshotFile, int]] = []
        """snapshots with another epoch than the record before their end, and its epoch"""
        self.passed = -1
        """the last epoch before what was not read"""
        self.unread: list[str] = []
        """segments that were not read, as long as the state behind them is not known"""
        self.content: IO[bytes] | None = None

    # ---- going through it
    def begin(self, segment: Segment) -> Iterable[Finding]:
        assert segment.log is not None
        if segment.base_offset == self._first:
            self.next = segment.base_offset
            self.known = self.next == 0
        self._upcoming(segment.base_offset if self.next is None else self.next)
        self.content = open(open_regular(segment.log.path), "rb")  # noqa: SIM115
        return ()

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterator[Finding]:
        assert segment.log is not None
        assert self.content is not None
        try:
            for batch in stored(self.content, chunk):
                if self.reader.newer:
                    return
                if batch is None:
                    self._lose()
                else:
                    yield from self._batch(segment.log, batch)
        except OSError as e:
            raise UserError(f"{segment.log.path}: {why(segment.log.path, e)}") from None

    def ended(self, segment: Segment, ending: Ending) -> Iterable[Finding]:
        assert self.content is not None
        self.content.close()
        return ()

    def skip(self, segment: Segment, problem: str) -> Iterator[Finding]:
        """What its records did is not known, nor which epoch the last one has."""
        assert segment.log is not None
        if self.content is not None:
            self.content.close()
        yield from self._waiting()
        self._lose()
        self.passed, self.epoch = max(self.passed, self.epoch), -1
        self.unread.append(str(segment.log.path))

    def _waiting(self) -> Iterator[Finding]:
        """What is told when it is known what comes behind it."""
        yield from self.reader.held()
        if self.raised is not None:
            yield self.raised[1]
        self.raised = None

    def _lose(self) -> None:
        """Of what follows it is not known what was before."""
        self.known, self.next, self.begun, self.given_up = False, None, None, False
        self.reader.quorum = QuorumImage()

    def _upcoming(self, offset: int) -> None:
        """The next snapshot at this offset or above."""
        self.due = next((s.end_offset for s in self.snapshots if s.end_offset >= offset), NOT_REACHED)

    def _batch(self, file: File, batch: StoredBatch) -> Iterator[Finding]:
        if batch.base != self.next:
            self._lose()
        if self.due < batch.base:
            self._upcoming(batch.base)
        reader, offset = self.reader, batch.base
        yield from self._epoch(file, batch)
        for r in batch.records():
            offset = batch.base + r.delta
            if offset == self.due:
                yield from self._snapshot(offset, batch.epoch if r.delta else self.epoch)
            if batch.control:
                control = reader.control(file, batch, r)
                if isinstance(control, Finding):
                    yield from reader.unread(control)
                else:
                    yield from reader.level(file, batch, r, control)
                    yield from self._leads(file, batch, r, control)
                    yield from reader.voting(file, batch, r, control)
                continue
            read = reader.data(file, batch, r)
            if isinstance(read, Finding):
                yield from reader.unread(read)
                self._lose()
                continue
            yield from reader.held()
            reader.counts[read.type] += 1
            if not self.known:
                continue
            if self.begun is not None:
                yield from self._unended(read, batch.epoch)
            if self.given_up and read.type in (END, ABORT):
                self.given_up = False
                continue
            yield from reader.take(file, batch, r, read)
            if reader.newer:
                return
            if reader.image.transaction is not None or self.begun is not None:
                self._transaction(reader.place(file, batch, r, DATA[read.type].name), read, batch.epoch)
        self.next, self.epoch = offset + 1, batch.epoch
        if self.known and reader.image.transaction is None:
            yield from self._breaches(file, batch, reader.image.check())

    @states("IMG-25")
    def _epoch(self, file: File, batch: StoredBatch) -> Iterator[Finding]:
        """Of an epoch that is lower behind it the rules for every log tell."""
        if self.raised is not None and batch.epoch >= self.raised[0]:
            yield self.raised[1]
        self.raised = None
        if batch.epoch < 0:
            yield self._began(file, batch, f"a batch of epoch {batch.epoch}", "the epoch of the leader that wrote it")
        elif batch.epoch > self.highest >= 0 and batch.base == self.next and not begins_epoch(batch):
            there = f"epoch {batch.epoch} begins, after {self.highest}, without its leader's change"
            self.raised = batch.epoch, self._began(file, batch, there, "a control record, LeaderChangeMessage")
        self.highest = max(self.highest, batch.epoch)

    def _began(self, file: File, batch: StoredBatch, message: str, expected: str) -> Finding:
        return self.log.finding(
            Severity.ERROR, "IMG-25", file, message, expected=expected, position=batch.position, offset=batch.base,
            recovery=GOES_ON,
        )  # fmt: skip

    @states("IMG-32")
    def _leads(self, file: File, batch: StoredBatch, r: codec.LogRecord, control: codec.Record) -> Iterator[Finding]:
        """What is wrong with a leader's change."""
        if control.type != LEADER_CHANGE:
            return
        leader, place = control.fields["leaderId"], self.reader.place(file, batch, r, control.name)
        quorum = self.reader.quorum
        said = () if quorum.by_configuration else quorum.voters
        voters = {*(said or (v["voterId"] for v in control.fields["voters"]))}
        there, right = "", ""
        if self.leaders.setdefault(batch.epoch, leader) != leader:
            there, right = f"{leader} leads in epoch {batch.epoch}", f"{self.leaders[batch.epoch]}, which led before"
        elif voters and leader not in voters:
            there, right = f"{leader} leads, and is none of the voters {sorted(voters)}", "one of them"
        if there:
            yield self.reader.found(
                Severity.ERROR, "IMG-32", place, f"{control.name}: {there}", expected=right, recovery=GOES_ON
            )

    # ---- transactions
    def _transaction(self, place: RecordPlace, read: codec.ParsedRecord, epoch: int) -> None:
        opened = self.reader.image.transaction
        if opened is None:
            self.begun = None
        elif opened == place.offset:
            self.begun = place, epoch, read.fields["name"]

    @states("IMG-20")
    def _unended(self, read: codec.ParsedRecord, epoch: int) -> Iterator[Finding]:
        """What a record says of the transaction that is open."""
        assert self.begun is not None
        _, begun_in, name = self.begun
        if epoch > begun_in and read.type != ABORT:
            yield self._never(f"and {DATA[read.type].name} of epoch {epoch} follows")
        elif name == BOOTSTRAP and read.type in NEVER_BOOTSTRAP:
            yield self._never(f"and {DATA[read.type].name} follows, which is none of the bootstrap records")

    def _never(self, why: str) -> Finding:
        """The open transaction was never ended. What came since counts, as it does for whoever goes on."""
        assert self.begun is not None
        place, self.begun, self.given_up = self.begun[0], None, True
        self.reader.image.keep_transaction()
        return self.reader.found(
            Severity.ERROR, "IMG-20", place, f"{place.name}: the transaction was never ended, {why}",
            expected="EndTransactionRecord, or AbortTransactionRecord as a later controller's first record",
            recovery="none: no broker learns of a record since, until the transaction ends",
        )  # fmt: skip

    # ---- invariants
    @states("IMG-14", "IMG-15", "IMG-16", "IMG-17", "IMG-26", "IMG-30", "IMG-31")
    def _breaches(self, file: File, batch: StoredBatch, new: list[BreachKey]) -> Iterator[Finding]:
        """Of those that a record brought about together one is told, and how many more."""
        level = self.reader.image.metadata_version or 0
        together: dict[tuple[str, RecordPlace], list[BreachKey]] = {}
        for key in new:
            if key.clause != "IMG-17" or level >= LEADERS_UNFENCED:
                together.setdefault((key.clause, self._culprit(file, batch, key)), []).append(key)
        for (clause, place), keys in together.items():
            more = f"; and {len(keys) - 1:,} more partitions" if len(keys) > 1 else ""
            message, expected = self._broken(keys[0])
            yield self.reader.found(
                Severity.ERROR, clause, place, f"{place.name}: {message}{more}", expected=expected, recovery=GOES_ON
            )

    def _culprit(self, file: File, batch: StoredBatch, key: BreachKey) -> RecordPlace:
        """The last record of the batch that names the partition; else the last that names its leader, or the last."""
        p = self.reader.image.topics[key.topic_id].partitions[key.partition]
        found: list[tuple[int, int, RecordPlace]] = []
        for n, r in enumerate(batch.records()):
            try:
                type, _, f = codec.parse(r.value or b"")
            except codec.Unreadable:  # it stands before a snapshot's end, behind which the state is known
                continue
            if type in (PARTITION, CHANGE):
                names = 2 * ((f["topicId"], f["partitionId"]) == key[1:])
            else:
                names = int(p.leader in (f.get("brokerId"), f.get("id")))
            found.append((names, n, self.reader.place(file, batch, r, DATA[type].name)))
        return max(found, key=lambda x: x[:2])[2]

    def _broken(self, key: BreachKey) -> tuple[str, str]:
        """What is broken, and what would be right."""
        image = self.reader.image
        topic = image.topics[key.topic_id]
        p, name = topic.partitions[key.partition], f"{topic.name}-{key.partition}"
        if key.clause == "IMG-14":
            strangers = [b for b in p.isr if b not in p.replicas]
            return (
                f"{name} has {strangers} in sync, which are none of its replicas {p.replicas}",
                f"some of {p.replicas}",
            )
        if key.clause == "IMG-26":
            return f"{name} names {twice(p.replicas)} more than once among its replicas {p.replicas}", "each once"
        if key.clause == "IMG-30":
            of = {"in-sync": p.isr, "eligible leader": p.elr, "last known": p.last_known_elr}
            which, named = next((w, n) for w, n in of.items() if twice(n))
            return f"{name} names {twice(named)} more than once among its {which} replicas {named}", "each once"
        if key.clause == "IMG-31":
            strangers = [b for b in (*p.adding, *p.removing) if b not in p.replicas]
            return (
                f"{name} adds or removes {strangers}, which are none of its replicas {p.replicas}",
                f"some of {p.replicas}",
            )
        if key.clause == "IMG-15":
            return f"{name} is led by {p.leader}, which is none of its in-sync replicas {p.isr}", f"one of {p.isr}"
        if key.clause == "IMG-16":
            both = [b for b in p.elr if b in p.isr]
            return f"{name} has {both} among its in-sync and its eligible leader replicas", "each in one of the two"
        broker = image.brokers.get(p.leader)
        how = "is not registered" if broker is None else "is fenced"
        return f"{name} is led by {p.leader}, which {how}", "another leader, or none"

    # ---- snapshots
    @states("IMG-21")
    def _snapshot(self, offset: int, epoch: int) -> Iterator[Finding]:
        """The snapshots that end at this offset; the record before has an epoch, or none that is known: -1. One with
        another epoch is of another log."""
        self.reached.add(offset)
        for s in [s for s in self.snapshots if s.end_offset == offset]:
            loaded = self._loaded(s)
            yield from loaded.findings
            if self.begun is not None:
                yield self._never(f"and {s.file.path.name} ends within")
            if 0 <= epoch != s.epoch and self.next is not None:
                self.other.append((s, epoch))
                continue
            if loaded.image is None:
                continue
            if not self.known or self.reader.wrong or offset == 0:
                self.reader.image, self.reader.wrong, self.known = loaded.image, False, True
                self.reader.quorum = loaded.quorum
                self._tell_unread(f" up to the snapshot at offset {offset}")
            else:
                self.compared.append(offset)
                yield from compared(self.log, s, loaded, self.reader.image, self.reader.quorum, "the log")
        self._upcoming(offset + 1)

    def _loaded(self, s: SnapshotFile) -> LoadedSnapshot:
        try:
            return load(self.log, s)
        except UserError as e:
            self.problems.append(str(e))
            return LoadedSnapshot()

    def _tell_unread(self, until: str) -> None:
        self.problems += [f"{path}: its records are not replayed, nor what follows{until}" for path in self.unread]
        self.unread = []

    def end(self) -> Iterator[Finding]:
        """The snapshot at the log's end, those that the log does not reach, and the file quorum-state."""
        yield from self._waiting()
        yield from self._names()
        yield from self._beginning()
        if self.reader.newer:
            return
        if self.next == self.due:
            yield from self._snapshot(self.due, self.epoch)
        if self.begun is not None:
            yield self._open(self.begun[0])
        for s in self.snapshots:
            if s.end_offset not in self.reached:
                yield from self._loaded(s).findings
        yield from self._of_another_log()
        yield from self._parts()
        yield from self._quorum_state()
        self._tell_unread("")

    @states("IMG-20")
    def _open(self, place: RecordPlace) -> Finding:
        return self.reader.found(
            Severity.LEFTOVER, "IMG-20", place, f"{place.name}: the transaction is still open",
            recovery="the next active controller aborts it",
        )  # fmt: skip

    @states("IMG-22", "IMG-23")
    def _names(self) -> Iterator[Finding]:
        """Directories in the place of files, and names that stop a start."""
        for folder in self.log.files.folders:
            if folder.name == QUORUM_STATE:
                yield self._misnamed("IMG-23", folder, "a directory in the place of the file", "a file", NO_START)
            elif folder.name.endswith(SUFFIXES):
                yield self._folder(folder)
        for file in (*self.log.files.others, *self.log.files.transient):
            if file.path.name.endswith(SUFFIXES) and not has_numbers(file.path.name):
                there, right = "a snapshot whose name has no such numbers", "an offset of 20 digits, an epoch of 10"
                yield self._misnamed("IMG-22", file.path, there, right, NO_START)

    def _misnamed(self, clause: str, path: Path, there: str, right: str, then: str) -> Finding:
        return self.log.finding(Severity.ERROR, clause, str(path), there, expected=right, recovery=then)

    @states("IMG-22")
    def _folder(self, folder: Path) -> Finding:
        """A directory in the place of a snapshot. A start removes what it does not need, and looks at the names of the
        others alone."""
        there = "a directory in the place of a snapshot"
        if not has_numbers(folder.name):
            return self._misnamed("IMG-22", folder, there, "a file", NO_START)
        s = SnapshotFile(int(folder.name[:20]), int(folder.name[21:31]), File(folder, 0))
        if folder.name.endswith(REMOVED) or s.end_offset < self._first:
            if is_empty(folder):
                return self.log.finding(Severity.LEFTOVER, "IMG-22", str(folder), there, recovery="it is removed")
            return self._misnamed("IMG-22", folder, f"{there}, and it is not empty", "a file", NO_START)
        then = STOPS_LOADING
        if self.next is not None and self._is_further(s):
            then = f"all of the log is removed, since this is further; then {STOPS_LOADING}"
        return self._misnamed("IMG-22", folder, there, "a file", then)

    @property
    def _first(self) -> int:
        """Where the log begins."""
        return next((s.base_offset for s in self.log.files.segments), 0)

    @property
    def _uncovered(self) -> bool:
        """The log begins behind offset 0, and no snapshot says what was before. Of one a start asks for the name alone,
        and a directory has it, too."""
        first, folders = self._first, (f.name for f in self.log.files.folders if NAME.fullmatch(f.name))
        ends = [*(s.end_offset for s in self.snapshots), *(int(name[:20]) for name in folders if has_numbers(name))]
        return first > 0 and all(end < first for end in ends)

    @states("IMG-24")
    def _beginning(self) -> Iterator[Finding]:
        if self._uncovered and not self.log.alone:
            log, first = self.log.files.segments[0].log, self.log.files.segments[0].base_offset
            assert log is not None
            yield self.log.finding(
                Severity.ERROR, "IMG-24", log, f"the log begins at {first}, and no snapshot reaches it",
                expected=f"a snapshot of end offset {first} or above", offset=first,
                recovery=NO_START,
            )  # fmt: skip

    def absent(self) -> Iterator[Absent]:
        if self._uncovered:
            yield Absent("snapshots", OF_A_STATE)

    def _is_further(self, s: SnapshotFile) -> bool:
        """Whether a node that starts has it in the place of the log."""
        assert self.next is not None
        return (s.epoch, s.end_offset) > (self.epoch, self.next)

    @states("IMG-34")
    def _of_another_log(self) -> Iterator[Finding]:
        """Snapshots that are not of this log. One that is further than the log takes its place."""
        if self.next is None or self.epoch < 0:
            return
        latest = max(self.snapshots, key=lambda s: (s.epoch, s.end_offset), default=None)
        if latest is not None and self._is_further(latest):
            there = (
                f"it ends at {latest.end_offset} in epoch {latest.epoch}, and the log at {self.next} in {self.epoch}"
            )
            yield self.log.finding(
                Severity.LEFTOVER, "IMG-34", latest.file, there, offset=latest.end_offset,
                recovery="all of the log is removed, and it begins where the snapshot ends",
            )  # fmt: skip
        beyond = [(s, self.epoch) for s in self.snapshots if s.end_offset > self.next]
        for s, epoch in (*self.other, *beyond):
            if not self._is_further(s):
                before = "the record before" if s.end_offset <= self.next else "the last record"
                there = f"a snapshot of epoch {s.epoch} that ends at {s.end_offset}, where {before} has {epoch}"
                yield self.log.finding(
                    Severity.ERROR, "IMG-34", s.file, there,
                    expected=f"epoch {epoch}", offset=s.end_offset, recovery=RELOADS,
                )  # fmt: skip

    @states("IMG-22")
    def _parts(self) -> Iterator[Finding]:
        for file in self.log.files.others:
            if PART.fullmatch(file.path.name):
                yield self.log.finding(
                    Severity.LEFTOVER, "IMG-22", file, "a snapshot that was not finished", recovery="it is removed"
                )

    @states("IMG-23", "IMG-32")
    def _quorum_state(self) -> Iterator[Finding]:
        for file in self.log.files.others:
            if file.path.name != QUORUM_STATE:
                continue
            try:
                said = quorum_state(read_small(file))
            except ValueError as e:
                yield self.log.finding(
                    Severity.ERROR, "IMG-23", file, f"it cannot be read: {e}",
                    expected="an object with data_version 0 or 1, and that version's fields", line=1,
                    recovery=NO_START,
                )  # fmt: skip
                continue
            epoch = max(self.epoch, self.passed)
            if said.epoch < epoch:
                yield self.log.finding(
                    Severity.WARNING, "IMG-23", file, f"leaderEpoch {said.epoch}, where the log has epoch {epoch}",
                    expected=f"{epoch} or above", line=1, recovery="the node takes the epoch from the log",
                )  # fmt: skip
            led = self.leaders.get(said.epoch, said.leader)
            if led != said.leader >= 0:
                there = f"leaderId {said.leader} in epoch {said.epoch}, where the log has {led}"
                yield self.log.finding(
                    Severity.ERROR, "IMG-32", file, there,
                    expected=f"{led}, or -1", line=1, recovery=STOPS_WHEN_TOLD,
                )  # fmt: skip

    def learnt(self, facts: Facts) -> Facts:
        counts = {DATA[t].name: n for t, n in sorted(self.reader.counts.items())}
        return replace(
            facts,
            metadata_records=counts,
            compared_snapshots=tuple(self.compared),
            leader_epochs=self._leader_epochs() if self.known and not self.reader.wrong else {},
        )

    @states("RPL-8")
    def _leader_epochs(self) -> dict[tuple[str, int], int]:
        topics = self.reader.image.topics
        return {(id, n): p.leader_epoch for id, topic in topics.items() for n, p in topic.partitions.items()}


# ---- several nodes ---------------------------------------------------------------------------------------------------
class SnapshotCheck(ClusterCheck):
    """Snapshots of one id on several nodes, where no log could tell whether they are right."""

    @states("IMG-21")
    def check(self, directories: tuple[Directory, ...], reread: Any) -> Iterator[Finding]:
        seen: dict[tuple[str | None, int, int], tuple[SnapshotFile, LoadedSnapshot, bool]] = {}
        for d in directories:
            for summary in d.logs:
                if summary.log.topic != METADATA_TOPIC:
                    continue
                for s in snapshots_of(summary.log):
                    key = d.cluster, s.end_offset, s.epoch
                    sure = s.end_offset in summary.facts.compared_snapshots
                    if key in seen and seen[key][2] and sure:
                        continue
                    loaded = _quietly(summary.log, s)
                    if key not in seen:
                        seen[key] = s, loaded, sure
                        continue
                    other, theirs, _ = seen[key]
                    if loaded.image is not None and theirs.image is not None:
                        where = str(other.file.path)
                        yield from compared(summary.log, s, loaded, theirs.image, theirs.quorum, where)


class LeaderCheck(ClusterCheck):
    """The files quorum-state of a cluster's nodes name one leader in an epoch. Of a directory whose cluster is not
    known nobody knows who the others are."""

    @states("IMG-32")
    def check(self, directories: tuple[Directory, ...], reread: Any) -> Iterator[Finding]:
        seen: dict[tuple[str | None, int], tuple[int, File]] = {}
        for d in (d for d in directories if d.cluster is not None):
            for log in (s.log for s in d.logs if s.log.topic == METADATA_TOPIC):
                for file in (f for f in log.files.others if f.path.name == QUORUM_STATE):
                    said = _said(file)
                    if said is None or said.leader < 0:
                        continue
                    leader, other = seen.setdefault((d.cluster, said.epoch), (said.leader, file))
                    if leader != said.leader:
                        yield log.finding(
                            Severity.ERROR, "IMG-32", file,
                            f"leaderId {said.leader} in epoch {said.epoch}, where {other.path} has {leader}",
                            expected="one leader an epoch", line=1, recovery=STOPS_WHEN_TOLD,
                        )  # fmt: skip


def _said(file: File) -> QuorumState | None:
    """What is wrong with the file itself was told of its log."""
    try:
        return quorum_state(read_small(file))
    except (ValueError, UserError):
        return None


def _quietly(log: Log, s: SnapshotFile) -> LoadedSnapshot:
    """What is wrong with the file itself was told of its log."""
    try:
        return load(log, s)
    except UserError:
        return LoadedSnapshot()


CLAUSES = (
    "IMG-1", "IMG-2", "IMG-3", "IMG-6", "IMG-7", "IMG-9", "IMG-12", "IMG-13", "IMG-18", "IMG-27", "IMG-28", "IMG-29",
)  # fmt: skip
"""Of what cannot be replayed: the replay says which."""
AUDIT = (MetadataImageCheck, SnapshotCheck, LeaderCheck)
