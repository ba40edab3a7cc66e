"""What a leader does to records before it appends them: it asks whether they may be there, and gives them their place.

Records come from a producer, a coordinator, a controller or, in formats 0 and 1, from an old client. The validator
refuses them whole, or gives their records offsets from the log end on, its leader epoch and its topic's timestamp type:
in the bytes that came where it can, otherwise in a batch that it writes. `spec.storage.batch` has the narrow question,
one well-formed batch of format 2; its rules of a batch and of a record, BAT-20 to BAT-22, hold here in every format and
are stated there alone.

Source: Kafka Internals, ch. 03, "Offset, timestamp & epoch assignment (LogValidator)"; LogValidator,
MemoryRecordsBuilder, DefaultRecordBatch and AbstractLegacyRecordBatch, Kafka 4.3.0; KIP-31, KIP-32 and KIP-467.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import ONE_CALL, states
from kafkaspec.contract.codec import partial, view
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import AnyBytes, Machine, Refused, Step
from kafkaspec.contract.numbers import LeaderEpochOrNone, Offset, Time, TimeLimit, Within
from kafkaspec.spec.common import legacy_format as legacy
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common.any_format import (
    AnyRecord,
    Source,
    contents_of,
    has_deltas_of_their_places,
    is_timely,
    offsets_of,
    outside,
    records_of,
    sources,
    tail_of,
)
from kafkaspec.spec.common.compression import CODEC_IDS, CODECS, compress, decompress
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, NO_TIMESTAMP
from kafkaspec.spec.common.leader_rules import INVALID_TIMESTAMP, VALIDATION, Limits, Wrong, fault, wrong_batch
from kafkaspec.spec.common.record_reader import CORRUPT, INVALID, Denied

PREFIX = "VAL"
TITLE = "Validator"

CHAPTER = "Kafka Internals, ch. 03, 'Offset, timestamp & epoch assignment (LogValidator)'"
BATCH, VALIDATOR, WRITER, SET = fmt.BATCH, fmt.VALIDATOR, fmt.WRITER, legacy.SET

UNSUPPORTED = "org.apache.kafka.common.errors.UnsupportedForMessageFormatException"
NOT_READ = "java.lang.UnsupportedOperationException"
ORIGINS = ("CLIENT", "COORDINATOR", "REPLICATION", "RAFT_LEADER")
TIMESTAMP_TYPES = fmt.TIMESTAMP_TYPES
NONE, ZSTD = legacy.NONE, legacy.ZSTD

Magic = Annotated[int, Within(0, 2)]


# ---- the state -------------------------------------------------------------------------------------------------------
@partial
@dataclass(frozen=True)
class Meters:
    """How often each kind of fault was met by the last call."""

    invalid_magic: Annotated[int, governs("VAL-6", "VAL-9", "VAL-20")] = 0
    invalid_offset: Annotated[int, governs("VAL-7", "VAL-20")] = 0
    invalid_sequence: Annotated[int, governs("VAL-7", "VAL-20")] = 0
    invalid_checksums: Annotated[int, governs("VAL-10", "VAL-20")] = 0
    no_key_compacted_topic: Annotated[int, governs("VAL-12", "VAL-20")] = 0


NO_FAULTS = Meters()


def initial() -> Meters:
    return NO_FAULTS


def observe(state: Meters) -> Meters:
    return state


machine: Machine[Meters] = Machine("validator", initial, observe)


# ---- what is asked of it ---------------------------------------------------------------------------------------------
@states(without=ONE_CALL)
def codec_of(found: Sequence[Source]) -> int:
    """VAL-4: The codec of the records is that of their last batch that is compressed, none if none is: with it the log
    calls the validator. [UnifiedLog.analyzeAndValidateRecords, Kafka 4.3.0]"""
    return next((s.codec for s in reversed(found) if s.codec), NONE)


@dataclass(frozen=True)
class Request:
    """One call."""

    found: tuple[Source, ...]
    tail: bytes
    """of a batch that is cut"""
    offset: int
    limits: Limits
    magic: int
    target: int
    """codec"""
    leader_epoch: int
    origin: str
    released: frozenset[str] = frozenset()
    """known deviations of the released Kafka that it has; the rule has none"""
    meters: dict[str, int] = field(default_factory=dict, compare=False)

    def count(self, meter: str) -> None:
        """VAL-20 in `validate`."""
        self.meters[meter] = self.meters.get(meter, 0) + 1

    @property
    def flags(self) -> int:
        """Of the topic's timestamp type."""
        return 0 if self.limits.create_time else fmt.LOG_APPEND_TIME


@states(without=ONE_CALL)
def first_batch(found: Sequence[Source], codec: int) -> Source:
    """The first batch. Raises Denied.

    VAL-5: There is a batch, and one alone if the first is of format 2 or any is compressed; uncompressed messages of
    formats 0 and 1 are as many batches, and there may be any number of them. [{VALIDATOR}]
    """
    if not found:
        raise Denied("VAL-5", INVALID, "Record batch has no batches at all")
    if len(found) > 1 and (found[0].magic == fmt.MAGIC or codec):
        raise Denied("VAL-5", INVALID, "Compressed outer record has more than one batch")
    return found[0]


IN = " in topic partition t-0"
METER_OF: dict[Wrong, str] = {
    "offset range": "invalid_offset",
    "count": "invalid_offset",
    "inconsistent": "invalid_offset",
    "control": "invalid_offset",
    "sequence": "invalid_sequence",
}


def words_of(wrong: Wrong, header: fmt.Batch, count: int) -> str:
    """Kafka's words for it."""
    bounds = f"[{header.base_offset}, {header.last_offset}]"
    return {
        "offset range": f"Batch has an invalid offset range: {bounds}",
        "count": f"Invalid reported count for record batch: {count}",
        "inconsistent": f"Inconsistent batch offset range {bounds} and count of records {count}",
        "control": "Clients are not allowed to write control records",
        "sequence": f"Invalid sequence number {header.base_sequence} in record batch with producerId "
        f"{header.producer_id}",
    }[wrong] + IN


@states("BAT-20")
@states(without=ONE_CALL)
def check_batch(q: Request, first: Source, s: Source) -> None:
    """Raises Denied.

    VAL-6: All batches have the magic of the first. This is asked of a batch before anything else of it, and after
    everything of the batches before it. [{VALIDATOR}]

    VAL-7: What BAT-20 says of a client's batch is asked of clients alone, and of the header's own numbers: offset
    range, count, whether they agree, control batch, sequence, in this order. A coordinator's, a controller's and a
    replica's batch is not asked. [{VALIDATOR}; AppendOrigin, Kafka 4.3.0]

    VAL-8: Records of a transaction or of a producer with an id are refused for a target format below 2, with
    UnsupportedForMessageFormatException. [{VALIDATOR}; KIP-98]
    """
    if s.magic != first.magic:
        q.count("invalid_magic")
        words = f"Batch magic {s.magic} is not the same as the first batch's magic byte {first.magic}" + IN
        raise Denied("VAL-6", INVALID, words)
    if q.origin == "CLIENT" and s.header is not None:
        h = s.header
        wrong = wrong_batch(h.last_offset_delta, s.count, h.control, h.producer_id, h.base_sequence)
        if wrong is not None:
            q.count(METER_OF[wrong])
            raise Denied("VAL-7", INVALID, words_of(wrong, h, s.count))
    if q.magic < fmt.MAGIC and (s.transactional or s.producer_id > fmt.NO_PRODUCER):
        kind = "Transactional" if s.transactional else "Idempotent"
        raise Denied("VAL-8", UNSUPPORTED, f"{kind} records cannot be used with magic version {q.magic}")


@states(without=ONE_CALL)
def message_error(q: Request, s: Source, m: legacy.Message) -> str | None:
    """The clause for which a message of format 0 or 1 is a record in error, before its content is asked. Raises Denied
    for what ends the call at once.

    VAL-9: A message in a compressed set has the format of its wrapper, and is not compressed itself: with another
    magic it is a record in error, and a compressed one ends the call with InvalidRecordException, or with
    IllegalArgumentException if there is no such codec. [{VALIDATOR}; {SET}; KAFKA-4298]

    VAL-10: The CRC of each message in a compressed set of format 0 or 1 is compared, and a wrong one ends the call with
    CorruptRecordException. The CRC of a batch, of any format, is not: the log has compared it before. [{VALIDATOR}]
    """
    if s.codec and m.codec:
        known = m.codec in CODECS
        raise Denied("VAL-9", INVALID if known else ILLEGAL_ARGUMENT)
    if m.magic != s.magic:
        q.count("invalid_magic")
        return "VAL-9"
    right = legacy.crc_of(m.data)
    if s.codec and m.crc != right:
        q.count("invalid_checksums")
        words = f"Record is corrupt (stored crc = {m.crc}, computed crc = {right})"
        raise Denied("VAL-10", CORRUPT, words)
    return None


@states("BAT-21", "BAT-22")
@states(without=ONE_CALL)
def record_error(q: Request, s: Source, r: AnyRecord) -> str | None:
    """The clause for which a record is refused. Raises Denied for what ends the call at once.

    VAL-12: What BAT-21 and BAT-22 say of a record is asked in every format. A record of format 0 has neither a
    timestamp nor a timestamp type, so that no bound applies to it. [{VALIDATOR}]
    """
    clause = None if r.message is None else message_error(q, s, r.message)
    if clause is not None:
        return clause
    dated = q.limits.create_time and r.timestamp != NO_TIMESTAMP
    appended = s.log_append_time and not (dated and "VAL-D2" in q.released)
    clause = fault(r.key, r.timestamp, appended, q.limits)
    if clause == "BAT-21":
        q.count("no_key_compacted_topic")
    return clause


@states(without=ONE_CALL)
def check_records(errors: Sequence[tuple[int, str]]) -> None:
    """Raises Denied if there are errors of records of one batch: the place of each, and its clause.

    VAL-11: The batch of a record in error is refused whole, with RecordValidationException, when all its records were
    asked. It names every record in error by its place in its batch, from 0, so that a message of format 0 or 1 that is
    not compressed is always 0; its cause is InvalidTimestampException if a timestamp is among the errors, otherwise
    InvalidRecordException. Batches behind it are not asked. [{VALIDATOR}; KIP-467]
    """
    if errors:
        untimely = any(clause == "BAT-22" for _, clause in errors)
        words = ", ".join(str(n) for n, _ in errors)
        raise Denied("VAL-11", VALIDATION, f"{INVALID_TIMESTAMP if untimely else INVALID}: records [{words}]")


# ---- in place --------------------------------------------------------------------------------------------------------
class OutputRecords(NamedTuple):
    """What is appended. `taken` records; `memory` bytes; `converted`: how many records were written again."""

    data: bytes
    max_timestamp: int
    changed: bool
    taken: int
    memory: int
    converted: int


@states(without=ONE_CALL)
def stamped(s: Source, q: Request, last_offset: int, timestamp: int) -> bytes:
    """The bytes of a batch that came, in their new place. `timestamp`, ms: the largest, or that of the append.

    VAL-14: In place, a batch of format 2 gets the base offset that its last offset delta leaves, and the leader epoch.
    If its timestamp type or its largest timestamp is another, it gets both, the bits of its attributes that have no
    meaning become 0, and its CRC is made again; otherwise not, right or wrong. All other bytes stay. The offset deltas
    of records that are not compressed are not looked at. [{CHAPTER}; {VALIDATOR}; {BATCH}]

    VAL-15: In place, a message of format 0 or 1 gets its offset, a wrapper that of its last message. One of format 1
    gets the topic's timestamp type and the timestamp, or for a wrapper the largest, and a right CRC, if one of them is
    another; its other attributes but the codec become 0 then. A timestamp below -1 becomes -1. [{VALIDATOR}; {SET}]
    """
    if s.header is not None:
        h = s.header
        base = fmt.signed(last_offset - h.last_offset_delta, 64)
        out = bytearray(s.data)
        out[fmt.AT["base_offset"] : fmt.AT["length"]] = base.to_bytes(8, "big", signed=True)
        out[fmt.AT["leader_epoch"] : fmt.AT["magic"]] = q.leader_epoch.to_bytes(4, "big", signed=True)
        if (h.attributes & fmt.LOG_APPEND_TIME, h.max_timestamp) == (q.flags, timestamp):
            return bytes(out)
        attributes = h.attributes & fmt.USED & ~fmt.LOG_APPEND_TIME | q.flags
        out[fmt.AT["attributes"] : fmt.AT["last_offset_delta"]] = attributes.to_bytes(2, "big")
        out[fmt.AT["max_timestamp"] : fmt.AT["producer_id"]] = timestamp.to_bytes(8, "big", signed=True)
        return fmt.sealed(out)
    assert s.message is not None
    out = bytearray(last_offset.to_bytes(8, "big", signed=True) + s.data[8:])
    m = s.message
    if m.magic == 0 or (m.attributes & fmt.LOG_APPEND_TIME, m.timestamp) == (q.flags, timestamp):
        return bytes(out)
    out[legacy.ATTRIBUTES_AT] = m.codec | q.flags
    out[legacy.TIMESTAMP_AT : legacy.TIMESTAMP_AT + 8] = timestamp.to_bytes(8, "big", signed=True)
    return legacy.sealed(bytes(out))


@states("BAT-10")
def largest(records: Iterable[AnyRecord]) -> int:
    return fmt.largest(r.timestamp for r in records)


def asked(q: Request, first: Source, s: Source) -> tuple[AnyRecord, ...]:
    """The records of a batch of which nothing is wrong. Raises Denied."""
    check_batch(q, first, s)
    records = records_of(s)
    errors = [(n, clause) for n, r in enumerate(records) if (clause := record_error(q, s, r)) is not None]
    check_records(errors)
    return records


@states(without=ONE_CALL)
def each_in_place(q: Request) -> OutputRecords:
    """Uncompressed batches of the target's format. Raises Denied.

    VAL-18: The largest timestamp of the answer is that of the append with LogAppendTime, otherwise the largest of the
    records, -1 if none is above. In place, uncompressed messages of format 0 have none, -1, in either case; and written
    again in format 0 they have that of the append with LogAppendTime, otherwise -1. [{VALIDATOR}; {WRITER}]
    """
    first = first_batch(q.found, NONE)
    out, count, most = b"", 0, NO_TIMESTAMP
    for s in q.found:
        records = asked(q, first, s)
        count += len(records)
        top = largest(records)
        most = max(most, top)
        out += stamped(s, q, q.offset + count - 1, q.limits.now if q.flags else top)
    if q.flags:
        most = q.limits.now if q.magic else NO_TIMESTAMP
    return OutputRecords(out + q.tail, most, False, count, 0, 0)


# ---- written again ---------------------------------------------------------------------------------------------------
@states(without=ONE_CALL)
def check_target(q: Request, first: Source) -> None:
    """What the writer refuses before it is given a record. Raises Denied.

    VAL-16: The writer refuses, with IllegalArgumentException, what BAT-18 says, a timestamp below -1 among it, in every
    format; and for a target format below 2 also a transaction's records that came uncompressed for a topic without a
    codec, where it is asked before VAL-8 is; zstd; records with headers; and any producer id but -1, where VAL-8 asks
    for those from 0 up. In place nobody asks for the timestamp (BAT-D3). [{WRITER}]
    """
    if q.magic < fmt.MAGIC:
        if first.transactional:
            words = f"Transactional records are not supported for magic {q.magic}"
            raise Denied("VAL-16", ILLEGAL_ARGUMENT, words)
        if q.target == ZSTD:
            raise Denied("VAL-16", ILLEGAL_ARGUMENT, f"ZStandard compression is not supported for magic {q.magic}")


@states("VAL-16", "BAT-18")
def check_written(q: Request, r: AnyRecord) -> None:
    """What the writer refuses of a record. Raises Denied."""
    if r.timestamp < NO_TIMESTAMP:
        raise Denied("VAL-16", ILLEGAL_ARGUMENT, f"Invalid negative timestamp {r.timestamp}")
    if q.magic < fmt.MAGIC and r.headers:
        raise Denied("VAL-16", ILLEGAL_ARGUMENT, f"Magic v{q.magic} does not support record headers")


@states("BAT-18")
@states(without=ONE_CALL)
def written(q: Request, first: Source, records: Sequence[AnyRecord]) -> tuple[bytes, int]:
    """What the leader writes of records, and how many bytes that was before it was compressed. Raises Denied.

    VAL-17: Written again, the records are as BAT-23 has them in format 2, with format 1's and format 0's timestamps, -1
    for format 0; of the first batch they keep producer and transactional flag. In formats 0 and 1 each is a message, or
    all are in one wrapper: its offset is the last one's, inside they are absolute in format 0 and from 0 on in format
    1, and in format 1 its timestamp is the largest, or that of the append, which with LogAppendTime all messages have.
    Keys, values and order stay, and headers in format 2. [{CHAPTER}; {VALIDATOR}; {WRITER}; KIP-31; KIP-32]
    """
    now = q.limits.now
    if q.magic == fmt.MAGIC:
        header = dict.fromkeys(("producer_id", "producer_epoch", "base_sequence"), -1)
        if first.header is not None:
            header = {name: getattr(first.header, name) for name in header}
        attributes = q.target | q.flags | fmt.TRANSACTIONAL * first.transactional
        rows = [fmt.LogRecord(q.offset + n, r.timestamp, r.key, r.value, r.headers) for n, r in enumerate(records)]
        batch = fmt.built(q.offset, rows, append_time=now, attributes=attributes, leader_epoch=q.leader_epoch, **header)
        if fmt.is_refused_by_the_writer(batch):
            raise Denied("VAL-16", ILLEGAL_ARGUMENT)
        return fmt.encode(batch), fmt.OVERHEAD + sum(len(fmt.record_bytes(r)) for r in batch.records)
    if first.producer_id != fmt.NO_PRODUCER:
        raise Denied("VAL-16", ILLEGAL_ARGUMENT)
    relative = q.magic == 1 and q.target != NONE
    flags = q.flags if q.magic else 0
    first_offset = 0 if relative else q.offset
    out = b"".join(
        legacy.message_bytes(first_offset + n, q.magic, now if q.flags else r.timestamp, r.key, r.value, flags)
        for n, r in enumerate(records)
    )
    if q.target == NONE:
        return out, len(out)
    last, time = q.offset + len(records) - 1, now if q.flags else largest(records)
    wrapper = legacy.message_bytes(last, q.magic, time, None, compress(q.target, out), q.target | flags)
    return wrapper, legacy.OVERHEAD[q.magic] + len(out)


def largest_written(q: Request, records: Iterable[AnyRecord]) -> int:
    """VAL-18: of the answer, where records are written again."""
    if q.flags:
        return q.limits.now
    return largest(records) if q.magic else NO_TIMESTAMP


def converted(q: Request) -> OutputRecords:
    """Uncompressed batches of another format, for a topic without a codec. Raises Denied."""
    for s in q.found:
        records_of(s)
    first = first_batch(q.found, NONE)
    check_target(q, first)
    taken: list[AnyRecord] = []
    for s in q.found:
        check_batch(q, first, s)
        errors: list[tuple[int, str]] = []
        for n, r in enumerate(records_of(s)):
            clause = record_error(q, s, r)
            if clause is not None:
                errors.append((n, clause))
            elif not errors:
                check_written(q, r)
                taken.append(r)
        check_records(errors)
    data, size = written(q, first, taken)
    return OutputRecords(data, largest_written(q, taken), True, len(taken), size, len(taken))


# ---- compressed ------------------------------------------------------------------------------------------------------
@states(without=ONE_CALL)
def can_stay(q: Request, first: Source, codec: int) -> bool:
    """Whether compressed records may keep their bytes, as far as their offsets allow.

    VAL-13: The bytes that came are kept if nothing is compressed, neither the records nor the topic, and all batches
    have the target format; if the codecs are one, the formats too and not 0, and the records' offsets are 0, 1, 2, ...;
    and of a control batch that is not compressed, whatever the topic's codec. Otherwise the records are written again.
    [{CHAPTER}; {VALIDATOR}; KIP-31]
    """
    same = codec == q.target and first.magic == q.magic != 0
    return same or (codec == NONE and first.control)


@states("VAL-13")
def are_in_their_places(records: Sequence[AnyRecord], first: int) -> bool:
    """Whether the records' offsets are their places, from `first` on."""
    return all(r.offset == n for n, r in enumerate(records, first))


@states(without=ONE_CALL)
def overhead(magic: int, codec: int) -> int:
    """VAL-19: The memory that the answer tells of is, in bytes: for records kept in place, 0 if nothing is compressed,
    otherwise the header of each batch, as the target format has it, and its records, not compressed; for records
    written again this, if a codec is there, and what was written, before it was compressed. As many records are
    converted as were written again. [{VALIDATOR}; RecordValidationStats, Kafka 4.3.0]"""
    if magic == fmt.MAGIC:
        return fmt.OVERHEAD
    return legacy.OVERHEAD[magic] if codec else 0


def compressed(q: Request, codec: int) -> OutputRecords:
    """Records that are compressed, or are to be. Raises Denied."""
    first = first_batch(q.found, codec)
    stays = expected = can_stay(q, first, codec)
    records: list[AnyRecord] = []
    memory = 0
    for s in q.found:
        more = asked(q, first, s)
        memory += overhead(q.magic, s.codec) + sum(r.size for r in more)
        if s.magic > 0 and q.magic > 0:
            stays = stays and are_in_their_places(more, len(records))
        records += more
    if stays:
        most = largest(records) if first.magic > 0 and q.magic > 0 else NO_TIMESTAMP
        most = q.limits.now if q.flags else most
        data = stamped(first, q, q.offset + len(records) - 1, most)
        return OutputRecords(data + q.tail, most, False, len(records), memory, 0)
    if expected and first.magic == fmt.MAGIC and codec and "VAL-D1" in q.released:
        raise Denied("VAL-13", NOT_READ, "key is skipped in PartialDefaultRecord")
    check_target(q, first)
    for r in records:
        check_written(q, r)
    data, size = written(q, first, records)
    if q.target:
        data = AnyBytes(data)
    return OutputRecords(data, largest_written(q, records), True, len(records), memory + size, len(records))


def outcome(q: Request) -> OutputRecords:
    """Raises Denied."""
    codec = codec_of(q.found)
    if codec or q.target:
        return compressed(q, codec)
    return each_in_place(q) if all(s.magic == q.magic for s in q.found) else converted(q)


# ---- the operation ---------------------------------------------------------------------------------------------------
@partial
@dataclass(frozen=True)
class WrittenBatch:
    """A batch that is appended, and its records as they are before they are compressed. Of a message of format 0 or 1
    `records` are its key and value with their sizes, of a wrapper the messages in it; what it has not is -1, a count 1,
    a last offset delta 0."""

    offset: Annotated[int, governs("VAL-14", "VAL-15", "VAL-17")]
    magic: Annotated[int, governs("VAL-13", "VAL-17")]
    attributes: Annotated[int, governs("VAL-14", "VAL-15", "VAL-17")]
    max_timestamp: Annotated[int, governs("VAL-14", "VAL-15", "VAL-17")]
    leader_epoch: Annotated[int, governs("VAL-14", "VAL-17")]
    base_timestamp: Annotated[int, governs("VAL-17", "VAL-14")]
    last_offset_delta: Annotated[int, governs("VAL-14", "VAL-17")]
    producer_id: Annotated[int, governs("VAL-17", "VAL-14")]
    producer_epoch: Annotated[int, governs("VAL-17", "VAL-14")]
    base_sequence: Annotated[int, governs("VAL-17", "VAL-14")]
    count: Annotated[int, governs("VAL-17", "VAL-14")]
    records: Annotated[bytes, governs("VAL-17", "VAL-14", "VAL-15")]


@partial
@dataclass(frozen=True)
class ValidationResult:
    """What is appended, and what the log is told of it."""

    log_append_time_ms: Annotated[int, governs("VAL-18")]
    max_timestamp_ms: Annotated[int, governs("VAL-18")]
    message_size_maybe_changed: Annotated[bool, governs("VAL-13")]
    next_offset: Annotated[int, governs("VAL-21")]
    """of the record that follows"""
    temporary_memory_bytes: Annotated[int, governs("VAL-19")]
    num_records_converted: Annotated[int, governs("VAL-19", "VAL-13")]
    data: Annotated[bytes, governs("VAL-14", "VAL-15", "VAL-17")]
    batches: Annotated[tuple[WrittenBatch, ...], governs("VAL-14", "VAL-15", "VAL-17")]


def shown(data: bytes) -> tuple[WrittenBatch, ...]:
    """What a reader makes of what was written."""
    out = []
    for s in sources(data):
        if s.header is not None:
            section = s.data[fmt.OVERHEAD :]
            plain = decompress(s.codec, section) if s.codec and section else section
            out.append(view(WrittenBatch, s.header, offset=s.header.base_offset, magic=2, count=s.count, records=plain))
            continue
        m = s.message
        assert m is not None
        plain = m.data[legacy.OVERHEAD[m.magic] - 8 :]
        if m.codec and m.value is not None:
            plain = legacy.unpacked(m.codec, m.magic, m.value)
        out.append(WrittenBatch(m.offset, m.magic, m.attributes, m.timestamp, -1, -1, 0, -1, -1, -1, 1, plain))
    return tuple(out)


def is_a_brokers(data: bytes, magic: int, target: int) -> bool:
    """Whether a broker can have made it, for a log of its own: batches with records, and control batches that stay."""
    try:
        found = sources(data)
        for s in found:
            records = records_of(s)
            odd = s.codec or any(r.offset != n for n, r in enumerate(records))
            if not records or (s.control and (magic < fmt.MAGIC or odd)):
                return False
    except Denied:
        return True
    return True


def request(
    records: bytes,
    offset: int,
    now: int,
    compacted_topic: bool,
    target_magic: int,
    target_compression: str,
    timestamp_type: str,
    timestamp_before_max_ms: int,
    timestamp_after_max_ms: int,
    partition_leader_epoch: int,
    origin: str,
    released: frozenset[str] = frozenset(),
) -> Request:
    """Raises Denied."""
    create_time = timestamp_type == "CreateTime"
    limits = Limits(compacted_topic, create_time, now, timestamp_before_max_ms, timestamp_after_max_ms)
    target = CODEC_IDS[target_compression]
    found = sources(records)
    return Request(
        found, tail_of(records), offset, limits, target_magic, target, partition_leader_epoch, origin, released
    )


def answer(**asked: object) -> Step[Meters, ValidationResult]:
    """The step that a call is; `asked`: the parameters of `request`."""
    counted: dict[str, int] = {}
    try:
        q = request(**asked)  # type: ignore[arg-type]
        counted = q.meters
        w = outcome(q)
    except Denied as e:
        return Step(Meters(**counted) if counted else NO_FAULTS, e.refused)
    result = ValidationResult(
        q.limits.now, w.max_timestamp, w.changed, q.offset + w.taken, w.memory, w.converted, w.data, shown(w.data)
    )
    return Step(NO_FAULTS, result)


@machine.operation(
    "validate", "VAL-5", "VAL-11", "VAL-13", *(f"VAL-{n}" for n in (1, 2, 3, 4, 6, 7, 8, 9, 10, 12)),
    *(f"VAL-{n}" for n in (14, 15, 16, 17, 18, 19)), "BAT-1", "BAT-2", "BAT-4", "BAT-6", "BAT-18", "BAT-20", "BAT-21",
    "BAT-22",
)  # fmt: skip
@states(without=ONE_CALL)
@require(
    lambda timestamp_type, target_compression, origin, now: (
        timestamp_type in TIMESTAMP_TYPES and target_compression in CODEC_IDS and origin in ORIGINS and is_timely(now)
    ),
    "VAL-12 known words, and a time with room for its differences",
)
@require(
    lambda records: outside(records) == "",
    "VAL-1 sizes fit, what is compressed decompresses and is well-formed, times have room for their differences",
)
@require(
    lambda records, target_magic, target_compression, origin: (
        origin == "CLIENT" or is_a_brokers(records, target_magic, CODEC_IDS.get(target_compression, 0))
    ),
    "VAL-7 a broker's own batches have records; control batches begin at 0, not compressed, for a log of format 2",
)
@ensure(
    lambda offset, records, result: (
        isinstance(result.result, Refused) or result.result.next_offset == offset + len(contents_of(records))
    ),
    "VAL-21 as many offsets are given as there are records",
)
@ensure(
    lambda offset, records, result: (
        isinstance(result.result, Refused)
        or (not result.result.message_size_maybe_changed and not has_deltas_of_their_places(records))
        or offsets_of(result.result.data) == list(range(offset, result.result.next_offset))
    ),
    "VAL-21 consecutive offsets from the log end on",
)
@ensure(
    lambda records, result: (
        isinstance(result.result, Refused) or contents_of(result.result.data) == contents_of(records)
    ),
    "VAL-17 keys and values as they came",
)
@ensure(
    lambda target_magic, origin, result: (
        isinstance(result.result, Refused) or all(b.magic == target_magic for b in result.result.batches)
    ),
    "VAL-17 in the target's format",
)
@ensure(
    lambda records, result: (
        isinstance(result.result, Refused)
        or result.result.message_size_maybe_changed
        or len(result.result.data) == len(records)
    ),
    "VAL-13 of the size that came, in place",
)
@ensure(
    lambda target_magic, partition_leader_epoch, timestamp_type, result: (
        isinstance(result.result, Refused)
        or target_magic < fmt.MAGIC
        or [(b.leader_epoch, b.attributes & fmt.LOG_APPEND_TIME) for b in result.result.batches]
        == [(partition_leader_epoch, TIMESTAMP_TYPES[timestamp_type])]
    ),
    "VAL-14 one batch of format 2, with the leader's epoch and the topic's timestamp type",
)
@ensure(
    lambda result: isinstance(result.result, Refused) or result.state == NO_FAULTS,
    "VAL-20 faults alone are counted",
)
def validate(
    state: Meters,
    records: bytes,
    offset: Offset,
    now: Time,
    compacted_topic: bool,
    target_magic: Magic,
    target_compression: str,
    timestamp_type: str,
    timestamp_before_max_ms: TimeLimit,
    timestamp_after_max_ms: TimeLimit,
    partition_leader_epoch: LeaderEpochOrNone,
    origin: str,
) -> Step[Meters, ValidationResult]:
    """The leader is given records: what it appends, or why it refuses them. `records` in hexadecimal, `offset` the log
    end, `now` ms.

    VAL-20: The faults that a call meets are counted: of the magic (VAL-6, and each record of VAL-9); of the offsets, by
    the offset range, the count, both together and control batches; of sequences; of checksums (VAL-10); and each record
    without a key on a compacted topic. [{VALIDATOR}; BrokerTopicMetrics, Kafka 4.3.0]

    VAL-21: The records get consecutive offsets from the log end on, over all batches, and the log end moves by their
    number. [{CHAPTER}; {VALIDATOR}]
    """
    return answer(
        records=records,
        offset=offset,
        now=now,
        compacted_topic=compacted_topic,
        target_magic=target_magic,
        target_compression=target_compression,
        timestamp_type=timestamp_type,
        timestamp_before_max_ms=timestamp_before_max_ms,
        timestamp_after_max_ms=timestamp_after_max_ms,
        partition_leader_epoch=partition_leader_epoch,
        origin=origin,
    )
