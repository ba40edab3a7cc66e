"""Faults of record batches, each with the clauses that it breaks."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from crc32c import crc32c

from kafkaspec.contract.codec import encode
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.impl.storage import batch as impl
from kafkaspec.impl.storage.batch import Batch, Encoder, InvalidRecords, Malformed, Record
from kafkaspec.impl.storage.batch_driver import Driver
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import Mutant, of_impl, with_fault
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common.compression import CODEC_IDS, LIMIT
from kafkaspec.spec.common.leader_rules import VALIDATION
from kafkaspec.spec.common.record_format import BatchFields, DecodedBatch, sealed
from kafkaspec.spec.common.record_reader import INVALID, ReadBatch
from kafkaspec.spec.storage import batch as spec
from kafkaspec.spec.storage.batch_trial import patched


# ---- reading
def _ignoring(clause: str) -> type[Driver]:
    """What breaks this clause is taken."""

    class Ignoring(Driver):
        def apply(self, name: str, arguments: Any) -> Json | Refused:
            answer = super().apply(name, arguments)
            return {} if name == "decode" and isinstance(answer, Refused) and answer.clause == clause else answer

    return Ignoring


class NoCrc(Driver):
    def decode_bytes(self, data: bytes) -> Any:
        return super().decode_bytes(sealed(data) if len(data) > 20 else data)


class CrcFirst(Driver):
    """Looks at the CRC before the magic byte."""

    def decode_bytes(self, data: bytes) -> Any:
        if len(data) > 60 and data[16] > 2:
            Batch(patched(data, 16, b"\2", sealing=False))
        return super().decode_bytes(data)


class SevenBits(Driver):
    """Does not see the unused bits of the attributes, as Kafka's reader does not."""

    def decode_bytes(self, data: bytes) -> Any:
        if len(data) > 60 and sealed(data) == data:
            data = patched(data, 21, bytes([0, data[22] & 0x7F]))
        return super().decode_bytes(data)


def _reading(change: Callable[[dict[str, Json], Batch], None]) -> type[Driver]:
    """What is read is changed."""

    class Reading(Driver):
        def decode_bytes(self, data: bytes) -> Any:
            out: dict[str, Json] = encode(super().decode_bytes(data))
            change(out, Batch(data))
            return out

    return Reading


def _no_wrap(out: dict[str, Json], batch: Batch) -> None:
    if batch.base_sequence >= 0:
        out["lastSequence"] = batch.base_sequence + batch.last_offset_delta


def _wraps_to_one(out: dict[str, Json], batch: Batch) -> None:
    last = batch.base_sequence + batch.last_offset_delta
    if batch.base_sequence >= 0 and last >= 2**31:
        out["lastSequence"] = last % 2**31 + 1


def _by_count(out: dict[str, Json], batch: Batch) -> None:
    if batch.base_sequence >= 0:
        out["lastSequence"] = (batch.base_sequence + max(batch.count - 1, 0)) & 0x7FFFFFFF


def _create_time(out: dict[str, Json], batch: Batch) -> None:
    out["timestamps"] = [batch.base_timestamp + r["timestampDelta"] for r in out["records"]]


def _no_horizon(out: dict[str, Json], batch: Batch) -> None:
    out["deleteHorizon"] = None


def _consecutive(out: dict[str, Json], batch: Batch) -> None:
    out["offsets"] = [batch.base_offset + n for n in range(batch.count)]


def _null_is_empty(out: dict[str, Json], batch: Batch) -> None:
    for r in out["records"]:
        r["value"] = r["value"] or ""


def _first_is_base(out: dict[str, Json], batch: Batch) -> None:
    """Compacted again, a batch begins at the first record that is left."""
    if out["offsets"]:
        out["baseOffset"] = out["offsets"][0]


def _commit_is_zero(out: dict[str, Json], batch: Batch) -> None:
    if out["control"]:
        out["control"][0] = {"ABORT": "COMMIT", "COMMIT": "ABORT"}.get(out["control"][0], out["control"][0])


class Lenient(Batch):
    """Stops after so many records, whatever stands behind."""

    __slots__ = ()

    def records(self, limit: int = LIMIT) -> Iterator[Record]:
        try:
            yield from super().records(limit)
        except Malformed as e:
            if e.clause != "BAT-6":
                raise


class FromOne(Batch):
    """Equal offset deltas are taken."""

    __slots__ = ()

    def inside(self, clause: str, first: int, at: int, packed: bool, why: str) -> Malformed:
        return super().inside("BAT-8" if clause == "BAT-9" else clause, first, at, packed, why)


class Elsewhere(Batch):
    """Names a byte of the decompressed records."""

    __slots__ = ()

    def inside(self, clause: str, first: int, at: int, packed: bool, why: str) -> Malformed:
        return super().inside(clause, first, at, False, why)


def _strict(clause: str, error: str = INVALID) -> type[Driver]:
    """A reader that asks for a rule which Kafka's reader does not ask for."""

    class Strict(Driver):
        def read_bytes(self, data: bytes) -> list[ReadBatch]:
            answer = super().read_bytes(data)
            try:
                list(Batch(data).records())
            except Malformed as e:
                if e.clause == clause:
                    raise InvalidRecords(clause, error) from None
            return answer

    return Strict


class NullIsMinusOne(impl.Lenient):
    """Other negative sizes are refused."""

    __slots__ = ()
    null = -1


class MarkersByName(impl.Lenient):
    """A malformed marker is unknown."""

    __slots__ = ()

    def marker(self, first: Record) -> tuple[str, int | None]:
        try:
            return super().marker(first)
        except InvalidRecords:
            return "UNKNOWN", None


def _with_lenient(kind: type[impl.Lenient]) -> type[Driver]:
    class With(Driver):
        lenient = kind

    return With


def _with_batch(kind: type[Batch]) -> type[Driver]:
    class With(Driver):
        batch = kind

    return With


# ---- varints
class Plain(Driver):
    """Without the zig-zag."""

    @staticmethod
    def put_varint(out: bytearray, n: int) -> None:
        n &= 2**64 - 1
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        out.append(n)


class Shortest(Driver):
    """Refuses longer forms, which Kafka reads."""

    @staticmethod
    def get_varint(data: bytes, at: int, end: int, most: int = 5) -> tuple[int, int]:
        n, after = impl.get_varint(data, at, end, most)
        if after > at + 1 and data[after - 1] == 0:
            raise IndexError
        return n, after


class Six(Driver):
    """Takes a sixth byte."""

    @staticmethod
    def get_varint(data: bytes, at: int, end: int, most: int = 5) -> tuple[int, int]:
        return impl.get_varint(data, at, end, 6 if most == 5 else most)


class Wide(Driver):
    """Keeps the bits beyond the 32nd."""

    @staticmethod
    def get_varint(data: bytes, at: int, end: int, most: int = 5) -> tuple[int, int]:
        n, after = impl.get_varint(data, at, end, 10)
        if after - at > most:
            raise IndexError
        return n, after


class Unsigned(Driver):
    """Lengths of 2^30 and above, whose fifth byte has bits, come out wrong."""

    @staticmethod
    def put_varint(out: bytearray, n: int) -> None:
        impl.put_varint(out, n if -(2**62) <= n < 2**62 else 0)


# ---- writing
class BigHeaders(Driver):
    """A header's null value is written as an empty one."""

    @staticmethod
    def put_record(
        out: bytearray,
        offset_delta: int,
        timestamp_delta: int,
        key: bytes | None,
        value: bytes | None,
        headers: impl.Headers = (),
        attributes: int = 0,
    ) -> None:
        full = [(k, v or b"") for k, v in headers]
        impl.put_record(out, offset_delta, timestamp_delta, key, value, full, attributes)


class WholeCrc(Driver):
    """The CRC covers the leader epoch too."""

    def encode_fields(self, batch: BatchFields) -> bytes:
        data = super().encode_fields(batch)
        return data[:17] + crc32c(data[12:17] + data[21:]).to_bytes(4, "big") + data[21:]


class LengthOfAll(Driver):
    """The length counts the 12 bytes before it."""

    def encode_fields(self, batch: BatchFields) -> bytes:
        data = super().encode_fields(batch)
        return data[:8] + len(data).to_bytes(4, "big") + data[12:]


class Rebased(Driver):
    """A batch that has lost its first records is written from the first one that is left."""

    def encode_fields(self, batch: BatchFields) -> bytes:
        first = batch.records[0].offset_delta if batch.records else 0
        return super().encode_fields(replace(batch, base_offset=min(batch.base_offset + first, 2**63 - 1)))


def _emptying(change: Callable[[Batch, bytes], bytes]) -> type[Driver]:
    class Emptying(Driver):
        @staticmethod
        def empty(batch: Batch) -> bytes:
            return change(batch, impl.empty(batch))

    return Emptying


def _keeps_the_codec(batch: Batch, data: bytes) -> bytes:
    return patched(data, 22, bytes([batch.attributes & 0x3F]))


def _keeps_the_horizon(batch: Batch, data: bytes) -> bytes:
    return patched(data, 22, bytes([data[22] | batch.attributes & 0x40]))


def _forgets_the_sequence(batch: Batch, data: bytes) -> bytes:
    return patched(data, 53, b"\xff" * 4)


def _ends_at_its_base(batch: Batch, data: bytes) -> bytes:
    return patched(data, 23, bytes(4))


def _retaining(change: Callable[[Batch, bytes, frozenset[int], int], bytes]) -> type[Driver]:
    class Retaining(Driver):
        @staticmethod
        def retained(batch: Batch, kept: frozenset[int], delete_horizon: int) -> bytes:
            return change(batch, impl.retain(batch, kept, delete_horizon), kept, delete_horizon)

    return Retaining


def _ends_at_its_last(batch: Batch, data: bytes, kept: frozenset[int], horizon: int) -> bytes:
    deltas = [r.offset - batch.base_offset for n, r in enumerate(batch.records()) if n in kept]
    return patched(data, 23, deltas[-1].to_bytes(4, "big")) if deltas else data


def _a_horizon_anew(batch: Batch, data: bytes, kept: frozenset[int], horizon: int) -> bytes:
    if batch.delete_horizon is None or Batch(data).delete_horizon is None:
        return data
    return patched(data, 27, horizon.to_bytes(8, "big"))


def _no_horizon_is_set(batch: Batch, data: bytes, kept: frozenset[int], horizon: int) -> bytes:
    return data if batch.delete_horizon is not None else patched(data, 22, bytes([data[22] & ~0x40]))


def _the_old_largest(batch: Batch, data: bytes, kept: frozenset[int], horizon: int) -> bytes:
    return patched(data, 35, batch.max_timestamp.to_bytes(8, "big", signed=True))


class LastTimestamp(Encoder):
    """The largest timestamp is the last record's."""

    def append(self, timestamp: int, *rest: Any, **more: Any) -> None:
        super().append(timestamp, *rest, **more)
        self.largest = timestamp


class FirstTimestamp(Encoder):
    def append(self, timestamp: int, *rest: Any, **more: Any) -> None:
        before, count = self.largest, self.count
        super().append(timestamp, *rest, **more)
        self.largest = before if count else timestamp


class Unchecked(Encoder):
    """A producer id without a sequence is written."""

    def __init__(self, base_offset: int = 0, **header: Any) -> None:
        if header.get("producer_id", -1) != -1 and header["base_sequence"] < 0:
            header["producer_id"] = -1
            header["transactional"] = False
        super().__init__(base_offset, **header)


class AnyTime(Encoder):
    def append(self, timestamp: int, *rest: Any, **more: Any) -> None:
        super().append(max(timestamp, -1), *rest, **more)


class FromZero(Encoder):
    """Timestamp deltas count from the largest so far."""

    def append(self, timestamp: int, *rest: Any, **more: Any) -> None:
        super().append(timestamp, *rest, **more)
        self.base_timestamp = max(timestamp, self.base_timestamp or -1)


def _with_encoder(kind: type[Encoder]) -> type[Driver]:
    class With(Driver):
        encoder = kind

    return With


# ---- the leader
def _assigning(change: Callable[[bytes, dict[str, Any]], tuple[bytes, bool]]) -> type[Driver]:
    class Assigning(Driver):
        @staticmethod
        def assign(data: bytes, **how: Any) -> tuple[bytes, bool]:
            return change(data, how)

    return Assigning


def _as_it_should(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    return impl.assign(data, **how)


def _never_anew(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    """Compressed records are kept whatever their offsets."""
    out, again = _as_it_should(data, how)
    b = Batch(data)
    if not again or b.attributes & 7 != CODEC_IDS[how["target_compression"]]:
        return out, again
    largest = how["now"] if how["log_append_time"] else b.max_timestamp
    base, epoch = how["initial_offset"], how["partition_leader_epoch"]
    return impl.stamp(data, base, epoch, how["log_append_time"], largest), False


def _stale_crc(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    out, again = _as_it_should(data, how)
    return (out if again else out[:17] + data[17:21] + out[21:]), again


def _no_epoch(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    return _as_it_should(data, how | {"partition_leader_epoch": Batch(data).leader_epoch})


def _one_more(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    """A timestamp just beyond a bound is taken."""
    most = 2**63 - 1
    bounds = ("timestamp_before_max_ms", "timestamp_after_max_ms")
    return _as_it_should(data, how | {name: min(how[name] + 1, most) for name in bounds})


def _keyless(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    return _as_it_should(data, how | {"compacted_topic": False})


def _key_first(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    """A missing key is said although a timestamp is wrong too."""
    try:
        return _as_it_should(data, how)
    except InvalidRecords as e:
        if e.clause == "BAT-22" and how["compacted_topic"] and any(r.key is None for r in Batch(data).records()):
            raise InvalidRecords("BAT-21", e.error) from None
        raise


def _any_origin(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    """A client's control batch is taken."""
    b = Batch(data)
    return _as_it_should(data, how | {"client": how["client"] and not b.control})


def _no_none(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    """A timestamp of -1 is out of range."""
    out = _as_it_should(data, how)
    if not how["log_append_time"] and any(r.timestamp == -1 for r in Batch(data).records()):
        raise InvalidRecords("BAT-22", VALIDATION)
    return out


def _forgets_the_producer(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    out, again = _as_it_should(data, how)
    return (patched(out, 43, struct.pack(">qhi", -1, -1, -1)) if again else out), again


def _create_time_kept(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    """LogAppendTime is set, and the largest timestamp left as it came."""
    out, again = _as_it_should(data, how)
    return (patched(out, 35, data[35:43]) if how["log_append_time"] else out), again


# ---- the spec, watched by its contracts
def _body(operation: str) -> Callable[..., Any]:
    return spec.machine.operations[operation].body


def _rereads(change: Callable[[DecodedBatch], DecodedBatch]) -> Callable[..., DecodedBatch | Refused]:
    """What is read is changed."""

    def read(data: bytes) -> DecodedBatch | Refused:
        answer: DecodedBatch | Refused = _body("decode")(data)
        return answer if isinstance(answer, Refused) else change(answer)

    return read


def _any_crc(data: bytes) -> DecodedBatch | Refused:
    answer: DecodedBatch | Refused = _body("decode")(sealed(data) if len(data) > 20 else data)
    return answer


def _drops_the_last(result: DecodedBatch) -> DecodedBatch:
    return replace(result, records=result.records[:-1])


def _no_modulus(result: DecodedBatch) -> DecodedBatch:
    return replace(result, last_sequence=min(result.base_sequence + result.last_offset_delta, 2**31 - 1))


def _producers_time(result: DecodedBatch) -> DecodedBatch:
    return replace(result, timestamps=tuple(result.base_timestamp + r.timestamp_delta for r in result.records))


def _always_a_horizon(result: DecodedBatch) -> DecodedBatch:
    return replace(result, delete_horizon=result.base_timestamp)


def _longer(number: int, bits: int) -> bytes:
    """One byte more than is needed."""
    data = bytearray(fmt.varint_bytes(number, bits))
    if len(data) < fmt.varint_limit(bits):
        data[-1] |= 0x80
        data.append(0)
    return bytes(data)


def _empties_by_count(data: bytes) -> bytes:
    batch = fmt.decode(data)
    return fmt.encode(replace(fmt.emptied(batch), last_offset_delta=max(len(batch.records) - 1, 0)))


def _validates(change: Callable[[dict[str, Any]], None]) -> Callable[..., Any]:
    """The leader is told something else."""

    def validated(state: spec.CurrentBatch, **how: Any) -> Any:
        change(how)
        return _body("validate")(state, **how)

    return validated


def _offset_zero(how: dict[str, Any]) -> None:
    how["initial_offset"] = 0


def _never_compacted(how: dict[str, Any]) -> None:
    how["compacted_topic"] = False


def _any_age(how: dict[str, Any]) -> None:
    how["timestamp_before_max_ms"] = 2**63 - 1


def _other_epoch(how: dict[str, Any]) -> None:
    how["partition_leader_epoch"] = -1


def _spec(name: str, clauses: str, what: str, operation: str, body: Callable[..., Any]) -> Mutant:
    return Mutant(name, tuple(clauses.split()), what, "spec", lambda: with_fault(spec.machine, operation, body))


MUTANTS = [
    *(
        of_impl(f"takes {name}", clause, f"no refusal of {name}", _ignoring(clause))
        for clause, name in (
            ("BAT-1", "a wrong length"),
            ("BAT-2", "any magic"),
            ("BAT-5", "a negative last offset delta"),
            ("BAT-6", "a wrong count"),
            ("BAT-7", "records that do not decompress"),
            ("BAT-8", "a malformed record"),
            ("BAT-9", "offsets that do not rise"),
            ("BAT-10", "a wrong largest timestamp"),
            ("BAT-11", "a malformed control record"),
        )
    ),
    of_impl("takes any CRC", "BAT-3", "the CRC is not compared", NoCrc),
    of_impl("the CRC before the magic byte", "BAT-13", "another thing wrong is said", CrcFirst),
    of_impl("seven bits of attributes", "BAT-4", "unused bits are not seen", SevenBits),
    of_impl("bytes behind the records", "BAT-6", "what follows the last record is not seen", _with_batch(Lenient)),
    of_impl("offsets as a record's fault", "BAT-9 BAT-13", "another rule is named", _with_batch(FromOne)),
    of_impl("a byte of what was compressed", "BAT-13", "a byte beyond the batch is named", _with_batch(Elsewhere)),
    of_impl(
        "sequences do not wrap", "BAT-16", "the last sequence is above 2147483647", _reading(_no_wrap), "KAFKA-7692"
    ),
    of_impl("sequences wrap to 1", "BAT-16", "0 is left out", _reading(_wraps_to_one)),
    of_impl("last sequence by the count", "BAT-16", "compaction changes it", _reading(_by_count)),
    of_impl("LogAppendTime is not seen", "BAT-14", "records have their producer's time", _reading(_create_time)),
    of_impl("no delete horizon", "BAT-15", "the flag is not seen", _reading(_no_horizon)),
    of_impl("consecutive offsets", "BAT-14", "gaps of compaction are closed", _reading(_consecutive)),
    of_impl("null is empty", "BAT-8", "a tombstone has an empty value", _reading(_null_is_empty)),
    of_impl("begins at its first record", "BAT-14 BAT-19", "the base offset is another", _reading(_first_is_base)),
    of_impl("commit is 0", "BAT-11", "aborts and commits are swapped", _reading(_commit_is_zero)),
    of_impl("no zig-zag", "BAT-12", "negative numbers take ten bytes", Plain),
    of_impl("the shortest form alone", "BAT-12", "a longer varint is refused", Shortest),
    of_impl("six bytes of a varint", "BAT-12", "a varint that is too long is read", Six),
    of_impl("bits beyond the 32nd", "BAT-12", "they are kept", Wide),
    of_impl("large numbers", "BAT-12", "a number above 2^62 is written as 0", Unsigned),
    of_impl("headers without null", "BAT-8", "a header's null value is written as empty", BigHeaders),
    of_impl("the CRC covers more", "BAT-3", "the leader epoch and the magic byte are in it", WholeCrc),
    of_impl("the length counts itself", "BAT-1", "12 bytes too many", LengthOfAll),
    of_impl(
        "compaction moves the base", "BAT-19", "the base offset becomes the first kept record's", Rebased,
        "MINOR 37433638271",
    ),
    of_impl("an empty batch with a codec", "BAT-17", "its attributes stay", _emptying(_keeps_the_codec)),
    of_impl("an empty batch with a horizon", "BAT-17", "the flag stays", _emptying(_keeps_the_horizon)),
    of_impl("an empty batch without a sequence", "BAT-17", "it is not known", _emptying(_forgets_the_sequence)),
    of_impl("an empty batch of one offset", "BAT-17", "it ends at its base offset", _emptying(_ends_at_its_base)),
    *(
        of_impl(f"a reader asks for {what}", clause, "which only a writer keeps", _strict(clause))
        for clause, what in (
            ("BAT-4", "unused bits of 0"),
            ("BAT-5", "a last offset delta from 0 up"),
            ("BAT-6", "nothing behind a count of 0"),
            ("BAT-9", "rising offsets"),
            ("BAT-10", "the right largest timestamp"),
        )
    ),
    of_impl("null is -1 alone", "BAT-8", "another negative size is refused", _with_lenient(NullIsMinusOne)),
    of_impl("a malformed marker is unknown", "BAT-11", "it is not refused", _with_lenient(MarkersByName)),
    of_impl("kept batches end at their last record", "BAT-24", "offsets are given away", _retaining(_ends_at_its_last)),
    of_impl("horizons move", "BAT-24 BAT-15", "one that is there is set again", _retaining(_a_horizon_anew)),
    of_impl("horizons are not set", "BAT-24", "a tombstone is kept for ever", _retaining(_no_horizon_is_set)),
    of_impl("compaction keeps the largest", "BAT-10", "it is not that of the kept", _retaining(_the_old_largest)),
    of_impl("the last timestamp", "BAT-10", "the largest timestamp is the last record's", _with_encoder(LastTimestamp)),
    of_impl("the first timestamp", "BAT-10", "the largest timestamp is the first", _with_encoder(FirstTimestamp)),
    of_impl("deltas from the largest", "BAT-14 BAT-18", "timestamps come out shifted", _with_encoder(FromZero)),
    of_impl("any producer", "BAT-18", "a producer id without a sequence is dropped", _with_encoder(Unchecked)),
    of_impl("any timestamp", "BAT-18", "a timestamp below -1 is written as -1", _with_encoder(AnyTime)),
    of_impl("never written again", "BAT-23", "offsets that are not consecutive stay", _assigning(_never_anew)),
    of_impl("the CRC as it came", "BAT-23 BAT-3", "the header changes, its CRC does not", _assigning(_stale_crc)),
    of_impl("no leader epoch", "BAT-23", "the batch keeps the producer's", _assigning(_no_epoch)),
    of_impl("the producer is forgotten", "BAT-23", "a batch written again has none", _assigning(_forgets_the_producer)),
    of_impl("the producer's largest", "BAT-23 BAT-10", "LogAppendTime without its time", _assigning(_create_time_kept)),
    of_impl("one millisecond more", "BAT-22", "a timestamp beyond the bound is taken", _assigning(_one_more)),
    of_impl("no timestamp is wrong", "BAT-22", "-1 is out of range", _assigning(_no_none)),
    of_impl("the key first", "BAT-22 BAT-21", "the error is the missing key's", _assigning(_key_first)),
    of_impl("no key", "BAT-21", "a compacted topic gets records without keys", _assigning(_keyless)),
    of_impl("a client's control batch", "BAT-20", "it is taken", _assigning(_any_origin)),
    _spec("any CRC is right", "BAT-3", "the CRC is not compared", "decode", _any_crc),
    _spec("one record fewer", "BAT-6", "the last record is not read", "decode", _rereads(_drops_the_last)),
    _spec("sequences end", "BAT-16", "there is none above 2147483647", "decode", _rereads(_no_modulus)),
    _spec("the producer's time", "BAT-14", "LogAppendTime is not seen", "decode", _rereads(_producers_time)),
    _spec("a horizon everywhere", "BAT-15", "the flag is not asked", "decode", _rereads(_always_a_horizon)),
    _spec("varints one byte longer", "BAT-12", "the form is not the shortest", "varint", _longer),
    _spec("emptied by the count", "BAT-17", "the last offset is lost", "retainEmpty", _empties_by_count),
    _spec("offsets from 0", "BAT-23", "the log end does not matter", "validate", _validates(_offset_zero)),
    _spec("no leader epoch is set", "BAT-23", "it stays -1", "validate", _validates(_other_epoch)),
    _spec("no topic is compacted", "BAT-21", "keys are not asked for", "validate", _validates(_never_compacted)),
    _spec("old records are taken", "BAT-22", "there is no lower bound", "validate", _validates(_any_age)),
]  # fmt: skip

SURVIVORS: dict[str, str] = {}

_NAMED = (
    "its fault is the rule that it names; a target answers with Kafka's exception, which is the same for both rules"
)
UNSEEN: dict[str, str] = {
    "the first offset is in place": "not found yet: nothing noticed it, nor the judge in 20,000 calls",
    "offsets as a record's fault": _NAMED,
    "the key first": _NAMED,
}
"""Mutants that the judge cannot notice, and why."""


# ---- faults of range, boundary, depth, configuration and rare state
def _offsets_of_32_bits(out: dict[str, Json], batch: Batch) -> None:
    out["lastOffset"] = signed(batch.last_offset, 32)


def _times_as_doubles(out: dict[str, Json], batch: Batch) -> None:
    out["timestamps"] = [int(float(t)) for t in out["timestamps"]]


def _ids_as_doubles(out: dict[str, Json], batch: Batch) -> None:
    out["producerId"] = int(float(batch.producer_id))


def _epochs_of_a_byte(out: dict[str, Json], batch: Batch) -> None:
    """The epoch of a marker's coordinator is read as one byte."""
    if out["control"] and out["control"][2] is not None:
        out["control"][2] %= 256


class ShortTimes(Batch):
    """A timestamp delta has 32 bits."""

    __slots__ = ()

    def records(self, limit: int = LIMIT) -> Iterator[Record]:
        for r in super().records(limit):
            time = r.timestamp if self.log_append_time else self.base_timestamp + signed(r.timestamp_delta, 32)
            yield r._replace(timestamp=time)


class EightKilobytes(Batch):
    """What is decompressed has room in one buffer."""

    __slots__ = ()

    def section(self, limit: int = LIMIT) -> tuple[bytes, bool]:
        data, packed = super().section(limit)
        return (data[:8192] if packed else data), packed


class HeadersOfOneByte(Driver):
    """The number of headers is written in one byte."""

    @staticmethod
    def put_record(out: bytearray, *record: Any) -> None:
        *_, headers, _attributes = record
        whole = bytearray()
        impl.put_record(whole, *record)
        if len(headers) < 64:
            out += whole
            return
        length, at = impl.get_varint(bytes(whole), 0, len(whole))
        count = bytearray()
        impl.put_varint(count, len(headers))
        body = whole[at:].replace(count, count[:1], 1)
        impl.put_varint(out, length - 1)
        out += body


class Short(Driver):
    """Numbers have 29 bits, four bytes and a bit."""

    @staticmethod
    def put_varint(out: bytearray, n: int) -> None:
        impl.put_varint(out, signed(n, 29))


def _ages_in_32_bits(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    """An age that does not fit into 32 bits is no age."""
    if not how["log_append_time"]:
        times = [r.timestamp for r in Batch(data).records() if r.timestamp != -1]
        if times and all(abs(how["now"] - t) >= 2**32 for t in times):
            bounds = ("timestamp_before_max_ms", "timestamp_after_max_ms")
            return _as_it_should(data, how | dict.fromkeys(bounds, 2**63 - 1))
    return _as_it_should(data, how)


def _adds_the_limit(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    """The latest timestamp is now and the limit, in 64 bits."""
    if not how["log_append_time"] and how["timestamp_after_max_ms"] > 2**63 - 1 - how["now"]:
        return _as_it_should(data, how | {"timestamp_after_max_ms": 0})
    return _as_it_should(data, how)


def _before_for_after(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    """One limit is asked in both directions."""
    return _as_it_should(data, how | {"timestamp_after_max_ms": how["timestamp_before_max_ms"]})


def _names_four(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    """Of four errors and more there are said to be four."""
    keyless = impl._keyless

    def four(which: list[int]) -> str:
        return keyless(which[:4])

    with patch.object(impl, "_keyless", four):
        return _as_it_should(data, how)


def _type_without_crc(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    """The CRC is made again where the largest timestamp changed."""
    out, again = _as_it_should(data, how)
    return (out if again or out[35:43] != data[35:43] else out[:17] + data[17:21] + out[21:]), again


def _the_first_alone(data: bytes, how: dict[str, Any]) -> tuple[bytes, bool]:
    """Whether the offsets are those of their place is asked of the first record."""
    out, again = _as_it_should(data, how)
    b = Batch(data)
    first = next(b.records(), None)
    same = b.attributes & 7 == CODEC_IDS[how["target_compression"]] != 0
    if not again or not same or first is None or first.offset != 0:
        return out, again
    return _never_anew(data, how)


def _no_horizon_at_zero(batch: Batch, data: bytes, kept: frozenset[int], horizon: int) -> bytes:
    """A horizon of 0 is none."""
    if batch.delete_horizon is not None or horizon or Batch(data).delete_horizon != 0:
        return data
    return patched(data, 22, bytes([data[22] & ~0x40]))


RARE = [
    of_impl("last offsets of 32 bits", "BAT-5", "an offset above 2^31 - 1 wraps", _reading(_offsets_of_32_bits)),
    of_impl("times as doubles", "BAT-14", "a timestamp above 2^53 is rounded", _reading(_times_as_doubles)),
    of_impl("ids as doubles", "BAT-1", "a producer id above 2^53 is rounded", _reading(_ids_as_doubles)),
    of_impl("a coordinator's epoch of a byte", "BAT-11", "256 is 0", _reading(_epochs_of_a_byte)),
    of_impl(
        "time deltas of 32 bits", "BAT-12 BAT-14", "25 days after the first record time wraps", _with_batch(ShortTimes)
    ),
    of_impl("a buffer of 8 KiB", "BAT-7", "what is decompressed behind it is cut off", _with_batch(EightKilobytes)),
    of_impl("63 headers", "BAT-8", "the number of headers has one byte", HeadersOfOneByte),
    of_impl("varints of 29 bits", "BAT-12", "numbers from 2^28 on lose a bit", Short),
    of_impl("ages of 32 bits", "BAT-22", "what is older than 49 days is taken", _assigning(_ages_in_32_bits)),
    of_impl(
        "no limit is a limit",
        "BAT-22",
        "the greatest long is added to the time, and wraps",
        _assigning(_adds_the_limit),
    ),
    of_impl("before for after", "BAT-22", "one limit is asked in both directions", _assigning(_before_for_after)),
    of_impl("four errors", "BAT-21", "a fifth is not counted", _assigning(_names_four)),
    of_impl(
        "the type changes, the CRC does not",
        "BAT-23 BAT-3",
        "of a batch appended at its largest timestamp",
        _assigning(_type_without_crc),
    ),
    of_impl("the first offset is in place", "BAT-23", "later ones are not asked", _assigning(_the_first_alone)),
    of_impl("a horizon of 0", "BAT-24", "is none", _retaining(_no_horizon_at_zero)),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE
