"""A record batch of message format 2: the bytes that producers send, brokers store and replicas copy.

Everything in Kafka stands on this one layout: a header of 61 bytes with a checksum, and records of varints behind it,
compressed as a whole or not at all. `spec.common.record_format` decodes and encodes it; here are the operations: what
Kafka's own reader makes of bytes, what its writer and its cleaner write, and what a leader refuses of a producer's
batch and writes into it.

Source: Kafka Internals, ch. 03, "Interactions with other subsystems" and "Offset, timestamp & epoch assignment";
DefaultRecordBatch, DefaultRecord, MemoryRecordsBuilder,
MemoryRecords, ByteUtils, ControlRecordType and LogValidator, Kafka 4.3.0.
"""

from __future__ import annotations

import base64 as base_64
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from icontract import ensure, require

from kafkaspec.contract.clauses import ONE_CALL, states
from kafkaspec.contract.codec import partial, replace, view
from kafkaspec.contract.governs import governs, reveals
from kafkaspec.contract.machine import AnyBytes, AnySize, Machine, Refused, Step
from kafkaspec.contract.numbers import (
    Count,
    Few,
    Int8,
    Int64,
    LeaderEpochOrNone,
    Offset,
    ProducerEpochOrNone,
    ProducerIdOrNone,
    SequenceNumberOrNone,
    Time,
    TimeLimit,
    Timestamp,
    Within,
)
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common import record_reader as reader
from kafkaspec.spec.common.compression import CODEC_IDS
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, KAFKA_EXCEPTION, NO_TIMESTAMP
from kafkaspec.spec.common.leader_rules import INVALID_TIMESTAMP, VALIDATION, Limits, fault, wrong_batch
from kafkaspec.spec.common.record_format import Batch
from kafkaspec.spec.common.remembered import remembered_within

PREFIX = "BAT"
TITLE = "Record batch"

LEADER = "Kafka Internals, ch. 03, 'Offset, timestamp & epoch assignment (LogValidator)'; LogValidator, Kafka 4.3.0"

ERRORS = dict.fromkeys(("BAT-1", "BAT-2", "BAT-3"), reader.CORRUPT) | {
    "BAT-4": ILLEGAL_ARGUMENT,
    "BAT-7": KAFKA_EXCEPTION,
}
"""Kafka's exception where it finds what decoding refuses; InvalidRecordException for the rest."""
VARINT_TOO_LONG, VARINT_CUT = Refused("BAT-12", ILLEGAL_ARGUMENT), Refused("BAT-12", reader.UNDERFLOW)
NOT_WRITTEN = Refused("BAT-18", ILLEGAL_ARGUMENT)
NOT_ALLOWED = Refused("BAT-20", reader.INVALID)
UNTIMELY = Refused(
    "BAT-22",
    VALIDATION,
    f"{INVALID_TIMESTAMP}: One or more records have been rejected due to invalid timestamp",
)
TIMESTAMP_TYPES = fmt.TIMESTAMP_TYPES


# ---- the state -------------------------------------------------------------------------------------------------------
@partial
@dataclass(frozen=True)
class CurrentBatch:
    """The batch that was built or loaded last, in hexadecimal. Empty: none."""

    data: Annotated[bytes, governs("BAT-18", "BAT-20")] = b""


def initial() -> CurrentBatch:
    return CurrentBatch()


def observe(state: CurrentBatch) -> CurrentBatch:
    return state


machine: Machine[CurrentBatch] = Machine("batch", initial, observe)


def _size_of(data: bytes, found: Batch | None) -> int:
    return len(data) + 8 * (0 if found is None else len(found.records))


@remembered_within(_size_of)
def known(data: bytes) -> Batch:
    """The same as `decode`, at once for bytes that come again."""
    return fmt.decode(data)


Bits = Annotated[int, Within(32, 64)]
PlaceOrNone = Annotated[int, Within(-1, 2**31 - 1)]


def held(state: CurrentBatch) -> Batch:
    return known(state.data)


def in_bits(number: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= number < 1 << (bits - 1)


def contents(batch: Batch) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """Offset, timestamp, key and value of each record."""
    return [r[:4] for r in fmt.log_records(batch)]


# ---- decoding --------------------------------------------------------------------------------------------------------
def batch_of(fields: fmt.BatchFields) -> Batch:
    return view(Batch, fields, compressed=None)


@machine.question("decode", *(f"BAT-{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13)))
@ensure(
    lambda data, result: not isinstance(result, Refused) or 0 <= int(str(result.message)[5:]) <= len(data),
    "BAT-13 the byte is one of the batch, or the one behind it",
)
@ensure(
    lambda data, result: isinstance(result, Refused) or fmt.field_of(data, "length") == len(data) - fmt.LOG_OVERHEAD,
    "BAT-1 the length is that of the bytes",
)
@ensure(
    lambda data, result: isinstance(result, Refused) or fmt.field_of(data, "crc") == fmt.crc_of(data),
    "BAT-3 the CRC is that of the bytes",
)
@ensure(
    lambda result: isinstance(result, Refused) or fmt.is_well_formed(batch_of(result)),
    "BAT-9 what is read keeps the rules of its records",
)
@ensure(
    lambda data, result: isinstance(result, Refused) or fmt.field_of(data, "count") == len(result.records),
    "BAT-6 as many records as the count says",
)
@ensure(
    lambda result: (
        isinstance(result, Refused)
        or result.base_sequence < 0
        or (result.last_sequence - result.base_sequence - result.last_offset_delta) % 2**31 == 0
    ),
    "BAT-16 sequences follow the offsets, modulo 2147483648",
)
@ensure(
    lambda result: (
        isinstance(result, Refused)
        or not result.attributes & fmt.LOG_APPEND_TIME
        or set(result.timestamps) <= {result.max_timestamp}
    ),
    "BAT-14 LogAppendTime is every record's",
)
@ensure(
    lambda result: (
        isinstance(result, Refused) or (result.delete_horizon is None) == (result.attributes & fmt.DELETE_HORIZON == 0)
    ),
    "BAT-15 a horizon where the flag is",
)
def decode_bytes(data: bytes) -> fmt.DecodedBatch | Refused:
    """Read a batch. `data` in hexadecimal."""
    try:
        return fmt.decoded(fmt.decode(data))
    except fmt.Malformed as e:
        return Refused(e.clause, ERRORS.get(e.clause, reader.INVALID), f"byte {e.position}")


# ---- Kafka's reader --------------------------------------------------------------------------------------------------
def reads_alike(data: bytes, answer: list[reader.ReadBatch] | Refused) -> bool:
    """Whether a batch that `decode` takes is read, to the same records; and what it refuses may be."""
    try:
        batch = known(data)
    except fmt.Malformed:
        return True
    return (
        not isinstance(answer, Refused)
        and len(answer) == 1
        and [(r.offset, r.timestamp, r.key, r.value) for r in answer[0].records] == contents(batch)
    )


@machine.question("read", *(f"BAT-{n}" for n in (1, 2, 3, 4, 6, 7, 8, 11, 12, 14, 15, 16)))
@require(
    lambda data: not isinstance(reader.reading(data), str),
    "BAT-16 sequences are of offset deltas of 0 or more, headers have names, and the bytes ask for no huge memory",
)
@ensure(
    lambda data, result: reads_alike(data, result),
    "BAT-8 a reader asks for no more than a writer keeps: what is well-formed is read",
)
def read_bytes(data: bytes) -> list[reader.ReadBatch] | Refused:
    """Kafka's reader of bytes in memory, and of a control batch's marker: the batches. It compares the CRC,
    decompresses a batch to its end, then reads its records. A batch cut at the end is left out."""
    answer = reader.reading(data)
    assert not isinstance(answer, str)
    return answer


# ---- encoding --------------------------------------------------------------------------------------------------------
def fits(fields: fmt.BatchFields) -> bool:
    """Whether every field fits its place, the codec among those that there are."""
    try:
        fmt.header_bytes(batch_of(fields), 0)
        return fields.attributes & fmt.CODEC_MASK in CODEC_IDS.values() and all(
            0 <= r.attributes <= 255 and in_bits(r.timestamp_delta, 64) and in_bits(r.offset_delta, 32)
            for r in fields.records
        )
    except (TypeError, struct.error):
        return False


@machine.question("encode", "BAT-1", "BAT-3", "BAT-8", "BAT-12", "BAT-17", "BAT-19")
@require(lambda batch: fits(batch), "BAT-8 every field fits its place, and the codec is one that there is")
@ensure(
    lambda batch, result: (
        not fmt.is_well_formed(batch_of(batch)) or view(fmt.BatchFields, known(result)) == view(fmt.BatchFields, batch)
    ),
    "BAT-19 what was written is read again",
)
@ensure(
    lambda batch, result: batch.records or len(result) == fmt.OVERHEAD, "BAT-17 a batch without records is its header"
)
def encode_fields(batch: fmt.BatchFields) -> bytes:
    """Write a batch, well-formed or not: hexadecimal."""
    return fmt.encode(batch_of(batch))


# ---- compaction ------------------------------------------------------------------------------------------------------
def is_whole(data: bytes) -> bool:
    """Whether it is a batch that some producer can have written."""
    try:
        batch = known(data)
    except fmt.Malformed:
        return False
    return not fmt.is_refused_by_the_writer(replace(batch, base_sequence=0))


def is_unsequenced(batch: Batch) -> bool:
    """Whether a producer's batch lacks its sequence; markers have none."""
    return batch.producer_id != fmt.NO_PRODUCER and batch.base_sequence < 0 and not batch.control


STAY_EMPTY = ("base_offset", "leader_epoch", "magic", "last_offset_delta", "max_timestamp", "producer_id",
              "producer_epoch", "base_sequence")  # fmt: skip
"""The header's fields that stay as a batch is emptied."""


@machine.question("retainEmpty", "BAT-17")
@require(lambda data: is_whole(data), "BAT-17 the batch is well-formed")
@ensure(lambda result: len(result) == fmt.OVERHEAD, "BAT-17 the header alone")
@ensure(
    lambda data, result: (
        known(result).last_sequence == known(data).last_sequence
        and known(result).last_offset == known(data).last_offset
    ),
    "BAT-17 the last offset and the last sequence stay",
)
@ensure(
    lambda data, result: all(fmt.field_of(result, name) == fmt.field_of(data, name) for name in STAY_EMPTY),
    "BAT-17 offsets, leader epoch, largest timestamp and producer as they were",
)
def retain_empty(data: bytes) -> bytes:
    """What the cleaner keeps of a batch of which it keeps no record. Hexadecimal."""
    return fmt.encode(fmt.emptied(known(data)))


@machine.question("retain", "BAT-24", "BAT-9", "BAT-10", "BAT-15", "BAT-17", "BAT-19")
@require(
    lambda data, kept: all(0 <= n < len(known(data).records) for n in kept),
    "BAT-24 numbers of the batch's records",
)
@require(
    lambda data, kept: not kept or 0 in kept or not known(data).control,
    "BAT-11 the first record of a control batch is its marker",
)
@require(
    lambda data, delete_horizon: (
        0 <= delete_horizon < 2**62
        and all(in_bits(r.timestamp, 63) for r in fmt.log_records(known(data)))
        and known(data).base_offset >= 0
    ),
    "BAT-15 a horizon and offsets from 0 up, and times with room for their differences",
)
@require(lambda data: reader.is_text(known(data)), "BAT-8 the keys of headers are UTF-8")
@require(
    lambda data: not is_unsequenced(known(data)),
    "BAT-20 what a leader took: a producer id has a sequence, but for control batches",
)
@require(lambda data: is_whole(data), "BAT-24 the batch is well-formed")
@ensure(
    lambda data, kept, result: (
        [(r.offset, r.timestamp, r.key, r.value) for r in result[0].records]
        == [r for n, r in enumerate(contents(known(data))) if n in kept]
    ),
    "BAT-24 records as they were",
)
@ensure(
    lambda data, result: all(
        getattr(result[0], name) == getattr(known(data), name)
        for name in ("base_offset", "last_offset", "last_sequence", "producer_id", "transactional", "control")
    ),
    "BAT-24 offsets and producer as they were",
)
def retain(data: bytes, kept: frozenset[Count], delete_horizon: Timestamp) -> list[reader.ReadBatch]:
    """What the cleaner writes of a batch of which it keeps these records (their numbers), and the batch in any case.
    `delete_horizon`, ms, is set where there is reason. The answer is what a reader makes of it."""
    after = fmt.retained(known(data), kept, delete_horizon)
    return [reader.as_read(after, size_of(after, len(fmt.encode(after))))]


# ---- varints ---------------------------------------------------------------------------------------------------------
@machine.question("varint", "BAT-12")
@require(lambda number, bits: bits in (32, 64) and in_bits(number, bits), "BAT-12 a number of that width")
@ensure(
    lambda number, bits, result: fmt.varint(result, 0, 20, bits) == (number, len(result)),
    "BAT-12 it is read as it was written",
)
@ensure(
    lambda number, result: len(result) == max(1, -(-(2 * abs(number) - (number < 0)).bit_length() // 7)),
    "BAT-12 in as few bytes as its zig-zag form needs",
)
def write_varint(number: Int64, bits: Bits) -> bytes:
    """The bytes of a number of 32 or 64 bits, hexadecimal."""
    return fmt.varint_bytes(number, bits)


@machine.question("readVarint", "BAT-12")
@require(lambda bits: bits in (32, 64), "BAT-12 for 32 bits or 64")
@ensure(
    lambda bits, result: isinstance(result, Refused) or 1 <= result[1] <= fmt.varint_limit(bits),
    "BAT-12 5 bytes at most, or 10",
)
def read_varint(data: bytes, bits: Bits) -> tuple[int, int] | Refused:
    """The number that bytes begin with, and how many bytes it takes."""
    try:
        return fmt.varint(data, 0, len(data), bits)
    except fmt.TooLong:
        return VARINT_TOO_LONG
    except ValueError:
        return VARINT_CUT


# ---- the writer ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RecordToBuild:
    """A record for a writer; key and value are Latin-1."""

    t: Int64
    """ms"""
    k: str | None
    v: str | None
    headers: Few
    """how many"""


@partial
@dataclass(frozen=True)
class BuiltRecord:
    """A record of a batch that was written; key and value are Latin-1."""

    o: Annotated[int, governs("BAT-14")]
    """offset"""
    t: Annotated[int, governs("BAT-14", "BAT-10")]
    """ms"""
    k: Annotated[str | None, governs("BAT-8")]
    v: Annotated[str | None, governs("BAT-8")]


@partial
@dataclass(frozen=True, kw_only=True)
class BuiltBatch(reader.BatchSummary):
    """A batch that was written."""

    delete_horizon_ms: Annotated[int | None, governs("BAT-15", "BAT-18")]
    records: Annotated[tuple[BuiltRecord, ...], governs("BAT-18", "BAT-23")]


def size_of(batch: Batch, size: int) -> int:
    """The size of a batch that was written here: of one that is compressed no rule fixes it."""
    return AnySize(size) if batch.codec else size


def shown(batch: Batch, size: int) -> BuiltBatch:
    """As the recordings show a batch of that size in bytes."""

    def text(content: bytes | None) -> str | None:
        return None if content is None else content.decode("latin-1")

    records = tuple(BuiltRecord(r.offset, r.timestamp, text(r.key), text(r.value)) for r in fmt.log_records(batch))
    return view(BuiltBatch, batch, size=size, magic=fmt.MAGIC, delete_horizon_ms=batch.delete_horizon, records=records)


@partial
@dataclass(frozen=True)
class BuildResult:
    """What a writer made."""

    size_in_bytes: Annotated[int, governs("BAT-18")]
    base64: Annotated[str | None, governs("BAT-18")]
    """the bytes, if they are not compressed"""
    batches: Annotated[tuple[BuiltBatch, ...], governs("BAT-18")]


@machine.environment("load")
@ensure(lambda data, result: result.data == data, "BAT-20 these bytes are held")
def load(state: CurrentBatch, data: bytes) -> CurrentBatch:
    """A batch as a producer may send it, well-formed or not."""
    return CurrentBatch(data)


HEADER_OF_THE_TRACES = fmt.Header(b"h", b"hv")


def records_to_build(base_offset: int, records: Sequence[RecordToBuild]) -> list[fmt.LogRecord]:
    """Records as the writer takes them, of consecutive offsets."""

    def content(text: str | None) -> bytes | None:
        return None if text is None else text.encode("latin-1")

    return [
        fmt.LogRecord(base_offset + n, r.t, content(r.k), content(r.v), (HEADER_OF_THE_TRACES,) * r.headers)
        for n, r in enumerate(records)
    ]


def are_records(records: Sequence[RecordToBuild]) -> bool:
    """Whether they are any, and each can be written."""

    def is_latin_1(text: str | None) -> bool:
        return text is None or (isinstance(text, str) and all(ord(c) < 256 for c in text))

    return len(records) > 0 and all(
        isinstance(r.t, int)
        and in_bits(r.t, 64)
        and is_latin_1(r.k)
        and is_latin_1(r.v)
        and isinstance(r.headers, int)
        and 0 <= r.headers < 100
        for r in records
    )


@machine.operation("build", "BAT-10", "BAT-18")
@require(lambda magic: magic == fmt.MAGIC, "BAT-2 formats 0 and 1 are not written")
@require(
    lambda compression, timestamp_type, records: (
        compression in CODEC_IDS and timestamp_type in TIMESTAMP_TYPES and are_records(records)
    ),
    "BAT-18 known words, and records, one at least",
)
@require(
    lambda base_offset, producer_id, producer_epoch, base_sequence, partition_leader_epoch, log_append_time, records: (
        are_records(records)
        and all(in_bits(n, 64) for n in (base_offset, base_offset + len(records), producer_id, log_append_time))
        and all(in_bits(n, 32) for n in (base_sequence, partition_leader_epoch))
        and in_bits(producer_epoch, 16)
        and (records[0].t < NO_TIMESTAMP or all(in_bits(r.t - records[0].t, 64) for r in records))
    ),
    "BAT-8 every number fits its place",
)
@ensure(
    lambda state, result: not isinstance(result.result, Refused) or result.state == state,
    "BAT-18 refused: nothing is written",
)
@ensure(
    lambda records, timestamp_type, result: (
        isinstance(result.result, Refused)
        or timestamp_type != "CreateTime"
        or held(result.state).max_timestamp == max(r.t for r in records)
    ),
    "BAT-10 the largest of the records",
)
@ensure(
    lambda base_offset, records, result: (
        isinstance(result.result, Refused)
        or [r.o for r in result.result.batches[0].records] == list(range(base_offset, base_offset + len(records)))
    ),
    "BAT-18 consecutive offsets from the base on",
)
def build(
    state: CurrentBatch,
    magic: Int8,
    compression: str,
    base_offset: Offset,
    timestamp_type: str,
    producer_id: ProducerIdOrNone,
    producer_epoch: ProducerEpochOrNone,
    base_sequence: SequenceNumberOrNone,
    transactional: bool,
    partition_leader_epoch: LeaderEpochOrNone,
    records: Sequence[RecordToBuild],
    log_append_time: Timestamp = NO_TIMESTAMP,
) -> Step[CurrentBatch, BuildResult]:
    """Kafka's writer, fed records of consecutive offsets. `log_append_time`, ms, matters with LogAppendTime alone. The
    result's `base64` is the batch if it is not compressed."""
    batch = fmt.built(
        base_offset,
        records_to_build(base_offset, records),
        append_time=log_append_time,
        attributes=CODEC_IDS[compression] | TIMESTAMP_TYPES[timestamp_type] | fmt.TRANSACTIONAL * transactional,
        leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
    if fmt.is_refused_by_the_writer(batch, [r.t for r in records]):
        return Step(state, NOT_WRITTEN)
    data = fmt.encode(batch)
    text = None if batch.codec else base_64.b64encode(data).decode()
    held = CurrentBatch(AnyBytes(data) if batch.codec else data)
    size = size_of(batch, len(data))
    return Step(held, BuildResult(size, text, (shown(batch, size),)))


# ---- the checks of a header ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SoundBatches:
    """The base offsets of sound batches."""

    valid: Annotated[bool, governs("BAT-3", "BAT-1", "BAT-2")]
    batches: Annotated[tuple[int, ...], governs("BAT-1")]


def is_base_64(text: str) -> bool:
    try:
        return base_64.b64encode(base_64.b64decode(text)).decode() == text
    except ValueError:
        return False


@machine.question("corrupt", "BAT-1", "BAT-2", "BAT-3")
@ensure(
    lambda result: not isinstance(result, Refused) or result.clause in ("BAT-1", "BAT-2", "BAT-3"),
    "BAT-3 the header's checks alone",
)
@require(lambda base64: is_base_64(base64), "BAT-1 bytes, in Base64")
def corrupt(base64: str, of: str = "previous build", byte: PlaceOrNone = -1) -> SoundBatches | Refused:
    """What Kafka's reader of bytes in memory, with `ensureValid` of each batch, makes of these: the base offsets.
    A batch cut at the end is left out."""
    try:
        found = [fmt.field_of(one, "base_offset") for one in reader.framed(base_64.b64decode(base64))]
    except reader.Denied as e:
        return e.refused
    return SoundBatches(True, tuple(found))


# ---- the leader ------------------------------------------------------------------------------------------------------
@states(without=ONE_CALL)
def allowed(batch: Batch, origin: str) -> Refused | None:
    """What the leader asks of the batch as a whole.

    BAT-20: A leader takes from a client one batch, whose offset range is 1 or more and its count, that is no control
    batch, and that has a base sequence of 0 or more if it has a producer id. [{LEADER}]
    """
    wrong = wrong_batch(
        batch.last_offset_delta, len(batch.records), batch.control, batch.producer_id, batch.base_sequence
    )
    return NOT_ALLOWED if origin == "CLIENT" and wrong is not None else None


@states(without=ONE_CALL)
def faults(
    batch: Batch, compacted: bool, create_time: bool, now: int, before_ms: int, after_ms: int
) -> Iterator[tuple[str, int]]:
    """The records that the leader refuses: the clause, and which it is.

    BAT-21: For a compacted topic every record has a key, or the whole batch is refused. [{LEADER}]

    BAT-22: For a topic of CreateTime a record's timestamp is -1, or at most before.max.ms before and after.max.ms after
    now; else the whole batch is refused. So it is if the producer set LogAppendTime. Where one record lacks a key and
    another's timestamp is wrong, that is the error. [{LEADER}; that of 3.5.2 for the producer's LogAppendTime]
    """
    limits = Limits(compacted, create_time, now, before_ms, after_ms)
    for n, r in enumerate(fmt.log_records(batch)):
        clause = fault(r.key, r.timestamp, batch.log_append_time, limits)
        if clause is not None:
            yield clause, n


@states("BAT-22")
def refusal(found: Sequence[tuple[str, int]]) -> Refused | None:
    """One for all records: a wrong timestamp before a missing key."""
    if not found:
        return None
    if any(clause == "BAT-22" for clause, _ in found):
        return UNTIMELY
    keyless = "Compacted topic cannot accept message without key in topic partition t-0"
    three = ", ".join(f"RecordError(batchIndex={n}, message='{keyless}')" for _, n in found[:3])
    words = f"One or more records have been rejected due to {len(found)} record errors in total"
    return Refused(
        "BAT-21", VALIDATION, f"{reader.INVALID}: {words}, and only showing the first three errors at most: [{three}]"
    )


def consecutive(batch: Batch) -> bool:
    """Whether the records' offsets are 0, 1, 2, ..., as a producer sends them."""
    return [r.offset for r in fmt.log_records(batch)] == list(range(len(batch.records)))


@states("BAT-23")
def in_place(batch: Batch, target: int) -> bool:
    """Whether the leader keeps the records' bytes."""
    if batch.codec == target == 0 or (batch.control and batch.codec == 0):
        return True
    return batch.codec == target and consecutive(batch)


@partial
@dataclass(frozen=True)
class ValidationResult:
    """What the leader writes."""

    log_append_time_ms: Annotated[int, governs("BAT-23")]
    max_timestamp_ms: Annotated[int, governs("BAT-23", "BAT-10")]
    message_size_maybe_changed: Annotated[bool, governs("BAT-23")]
    batches: Annotated[tuple[BuiltBatch, ...], governs("BAT-23")]


@states(without=ONE_CALL)
def taken(
    batch: Batch,
    initial_offset: int,
    timestamp_type: str,
    partition_leader_epoch: int,
    now: int,
    target: int,
    made_here: bool,
) -> ValidationResult:
    """What the leader writes of a batch that it does not refuse. `made_here`: the batch was compressed by `build`.

    BAT-23: The leader gives consecutive offsets from its log end on, its leader epoch, its topic's timestamp type and
    the largest timestamp. It does so in the header of the bytes that came if codec and topic's codec are one and, of
    compressed records, the offsets are 0, 1, 2, ...; otherwise it writes the batch again in the topic's codec, with
    producer and transactional flag kept. [{LEADER}]
    """
    records, flags = fmt.log_records(batch), TIMESTAMP_TYPES[timestamp_type]
    keeps = in_place(batch, target)
    after = replace(batch, leader_epoch=partition_leader_epoch)
    if keeps:
        after = replace(
            after,
            base_offset=initial_offset + len(records) - 1 - batch.last_offset_delta,
            max_timestamp=now if flags else fmt.largest(r.timestamp for r in records),
            attributes=batch.attributes & ~fmt.LOG_APPEND_TIME | flags,
        )
    else:
        after = replace(
            after, base_offset=initial_offset, attributes=batch.attributes & fmt.TRANSACTIONAL | target | flags
        )
        after = fmt.filled(after, [r._replace(offset=initial_offset + n) for n, r in enumerate(records)], now)
    size = len(fmt.encode(after))
    if made_here or not keeps:
        size = size_of(after, size)
    return ValidationResult(now, after.max_timestamp, not keeps, (shown(after, size),))


def is_a_brokers(batch: Batch) -> bool:
    """Whether a coordinator can have written it."""
    strange = batch.control and (batch.codec or not consecutive(batch))
    return len(batch.records) == batch.last_offset_delta + 1 and not (strange or is_unsequenced(batch))


KEPT_BY_THE_LEADER = ("producer_id", "producer_epoch", "base_sequence", "transactional", "control")


@machine.question("validate", "BAT-20", "BAT-21", "BAT-22", "BAT-23")
@reveals("BAT-3")
@require(
    lambda to_magic, timestamp_type, target_compression, origin, initial_offset, partition_leader_epoch, now: (
        to_magic == fmt.MAGIC
        and in_bits(initial_offset, 63)
        and in_bits(partition_leader_epoch, 32)
        and in_bits(now, 63)
        and timestamp_type in TIMESTAMP_TYPES
        and target_compression in CODEC_IDS
        and origin in ("CLIENT", "COORDINATOR")
    ),
    "BAT-2 known words, this format, and numbers that fit with room for those that follow",
)
@require(
    lambda state, origin: origin == "CLIENT" or (is_whole(state.data) and is_a_brokers(held(state))),
    "BAT-20 a broker's own batches have a record an offset and a sequence; control batches begin at 0, not compressed",
)
@require(
    lambda state: all(in_bits(r.timestamp, 63) for r in fmt.log_records(held(state))),
    "BAT-22 times with room for their differences",
)
@require(lambda state: is_whole(state.data), "BAT-18 the batch is well-formed, its producer as a writer has it")
@ensure(
    lambda state, initial_offset, result: (
        isinstance(result, Refused)
        or [r.o for r in result.batches[0].records]
        == list(range(initial_offset, initial_offset + len(held(state).records)))
    ),
    "BAT-23 consecutive offsets from the log end on",
)
@ensure(
    lambda state, result: (
        isinstance(result, Refused)
        or [(r.k, r.v) for r in result.batches[0].records] == [(r.k, r.v) for r in shown(held(state), 0).records]
    ),
    "BAT-23 keys and values as they came",
)
@ensure(
    lambda partition_leader_epoch, timestamp_type, result: (
        isinstance(result, Refused)
        or (result.batches[0].leader_epoch, result.batches[0].timestamp_type)
        == (partition_leader_epoch, timestamp_type)
    ),
    "BAT-23 the leader's epoch, the topic's timestamp type",
)
@ensure(
    lambda state, result: (
        isinstance(result, Refused)
        or all(getattr(result.batches[0], name) == getattr(held(state), name) for name in KEPT_BY_THE_LEADER)
    ),
    "BAT-23 the producer is kept",
)
@ensure(
    lambda compacted_topic, result: (
        isinstance(result, Refused) or not compacted_topic or all(r.k is not None for r in result.batches[0].records)
    ),
    "BAT-21 every record of a compacted topic has a key",
)
@ensure(
    lambda now, timestamp_type, timestamp_before_max_ms, timestamp_after_max_ms, result: (
        isinstance(result, Refused)
        or all(
            r.t == now
            if timestamp_type == "LogAppendTime"
            else r.t == NO_TIMESTAMP or now - timestamp_before_max_ms <= r.t <= now + timestamp_after_max_ms
            for r in result.batches[0].records
        )
    ),
    "BAT-22 timestamps within the bounds, or the leader's",
)
@ensure(
    lambda state, result: isinstance(result, Refused) or not held(state).log_append_time,
    "BAT-22 no producer sets LogAppendTime",
)
def validate(
    state: CurrentBatch,
    to_magic: Int8,
    initial_offset: Offset,
    compacted_topic: bool,
    timestamp_type: str,
    timestamp_before_max_ms: TimeLimit,
    timestamp_after_max_ms: TimeLimit,
    partition_leader_epoch: LeaderEpochOrNone,
    now: Time,
    target_compression: str,
    origin: str,
    of: str = "previous build",
) -> ValidationResult | Refused:
    """The leader takes the batch: what it writes, or why it refuses. `initial_offset` is the log end, `now` ms."""
    batch = held(state)
    create_time = timestamp_type == "CreateTime"
    found = faults(batch, compacted_topic, create_time, now, timestamp_before_max_ms, timestamp_after_max_ms)
    no = allowed(batch, origin) or refusal(list(found))
    if no is not None:
        return no
    target = CODEC_IDS[target_compression]
    made_here = isinstance(state.data, AnyBytes)
    return taken(batch, initial_offset, timestamp_type, partition_leader_epoch, now, target, made_here)
