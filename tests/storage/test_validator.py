"""The validator: impl against spec, beside kafka-python's codec of the old formats; and the rules one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder

from kafkaspec.contract import subsystem
from kafkaspec.contract.deviation import shown
from kafkaspec.contract.machine import Refused, Step
from kafkaspec.impl.storage import validator_driver
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.spec.common import legacy_format as legacy
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common.any_format import offsets_of, records_of, sources
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, LONG_MAX
from kafkaspec.spec.common.leader_rules import INVALID_TIMESTAMP, VALIDATION
from kafkaspec.spec.common.record_format import (
    COMMIT,
    CONTROL,
    END_MARKER,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Header,
    LogRecord,
    built,
)
from kafkaspec.spec.common.record_reader import CORRUPT, INVALID
from kafkaspec.spec.storage import validator as spec
from kafkaspec.spec.storage.batch_trial import NOW, patched
from kafkaspec.spec.storage.validator import machine
from kafkaspec.spec.storage.validator_trial import wrapper
from tests.layers import a_row_of_verify, walked

GZIP, SNAPPY, ZSTD = 1, 2, 4
USUAL: dict[str, Any] = {
    "offset": 100,
    "now": NOW,
    "compacted_topic": False,
    "target_magic": 2,
    "target_compression": "none",
    "timestamp_type": "CreateTime",
    "timestamp_before_max_ms": LONG_MAX,
    "timestamp_after_max_ms": LONG_MAX,
    "partition_leader_epoch": 4,
    "origin": "CLIENT",
}


def asked(data: bytes, **how: Any) -> Any:
    """What spec and impl answer, which is the same: the result as JSON, or the refusal."""
    step = machine.apply(spec.initial(), "validate", {**USUAL, **how, "records": data.hex()})
    assert isinstance(step, Step), step
    driver = validator_driver.Driver()
    assert driver.apply("validate", {**USUAL, **how, "records": data.hex()}) == step.result
    assert driver.state() == step.state
    return step.result


def counted(data: bytes, **how: Any) -> spec.Meters:
    """What the call counts."""
    step = machine.apply(spec.initial(), "validate", {**USUAL, **how, "records": data.hex()})
    assert isinstance(step, Step)
    assert isinstance(step.state, spec.Meters)
    return step.state


def refused(data: bytes, **how: Any) -> tuple[str, str]:
    """The clause and the exception's class."""
    found = asked(data, **how)
    assert isinstance(found, Refused), found
    return found.clause, found.error


def written(data: bytes, **how: Any) -> bytes:
    """What is appended."""
    return bytes.fromhex(asked(data, **how)["data"])


def rows(count: int, first: int = 0) -> list[LogRecord]:
    return [LogRecord(first + n, NOW + n, b"k%d" % n, b"v") for n in range(count)]


def batch(records: Sequence[LogRecord] = (), **how: Any) -> bytes:
    return fmt.encode(built(0, records or rows(3), **how))


def old(magic: int, records: Sequence[LogRecord] = (), attributes: int = 0) -> bytes:
    """A set of format 0 or 1."""
    return b"".join(
        legacy.message_bytes(r.offset, magic, r.timestamp, r.key, r.value, attributes) for r in records or rows(3)
    )


def read(data: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [r[:4] for s in sources(data) for r in records_of(s)]


# ---- the layers beside each other
def test_long_walks_meet_every_refusal() -> None:
    covered = walked(machine, validator_driver.Driver, seeds=40, steps=100)
    expected = {"VAL-7", "VAL-11", "VAL-2", "VAL-5", "VAL-6", "VAL-8", "VAL-9", "VAL-10", "VAL-16"}
    assert {f"validate {clause}" for clause in expected} <= covered.refusals.keys()


@a_row_of_verify
@pytest.mark.parametrize("recording", subsystem.find("validator").recordings, ids=lambda r: r.file)
def test_recordings_are_judged_as_they_must(recording: Any) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


@pytest.mark.parametrize("deviation", machine.deviations, ids=lambda d: d.id)
def test_a_deviation_shows_at_its_history(deviation: Any) -> None:
    right, wrong = shown(machine, deviation)
    assert right != wrong


# ---- kafka-python, an independent witness of formats 0 and 1
contents = st.none() | st.binary(max_size=40)
old_rows = st.lists(st.tuples(st.integers(0, 2**41), contents, contents), min_size=1, max_size=8)


@given(old_rows, st.sampled_from((0, 1)), st.sampled_from((0, 1)))
@pytest.mark.clause("VAL-1")
@pytest.mark.clause("VAL-2")
def test_kafka_python_writes_the_same_messages(
    records: list[tuple[int, bytes | None, bytes | None]], magic: int, codec: int
) -> None:
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=2**20)
    for n, (time, key, value) in enumerate(records):
        builder.append(n, timestamp=time, key=key, value=value)
    data = bytes(builder.build())
    times = [time if magic else -1 for time, _, _ in records]
    expected = [(n, t, r[1], r[2]) for n, (t, r) in enumerate(zip(times, records, strict=True))]
    assert read(data) == expected
    if codec == 0:
        assert data == b"".join(legacy.message_bytes(n, magic, t, k, v) for n, (t, k, v) in enumerate(records))
    out = written(data)
    assert [r[1:] for r in read(out)] == [r[1:] for r in expected]
    assert offsets_of(out) == list(range(100, 100 + len(records)))


@given(old_rows, st.sampled_from((0, 1)), st.sampled_from(("none", "gzip")))
@pytest.mark.clause("VAL-17")
def test_kafka_python_reads_what_is_written_in_the_old_formats(
    records: list[tuple[int, bytes | None, bytes | None]], magic: int, codec: str
) -> None:
    data = batch([LogRecord(n, t, k, v) for n, (t, k, v) in enumerate(records)])
    out = written(data, target_magic=magic, target_compression=codec)
    found = []
    for source in sources(out):
        found += [(r.offset, r.timestamp, r.key, r.value) for r in LegacyRecordBatch(bytearray(source.data), magic)]
    assert found == [(100 + n, t if magic else None, k, v) for n, (t, k, v) in enumerate(records)]


# ---- the rules
@pytest.mark.clause("VAL-3")
def test_a_wrapper_says_the_type_of_its_messages() -> None:
    inside = old(1, rows(2), LOG_APPEND_TIME)
    assert read(wrapper(1, GZIP, 1, 9, inside))[0][1] == NOW
    assert [r[1] for r in read(wrapper(1, GZIP, 1, 9, inside, LOG_APPEND_TIME))] == [9, 9]
    assert asked(wrapper(1, GZIP, 1, NOW, inside))["maxTimestampMs"] == NOW + 1
    assert refused(wrapper(1, GZIP, 1, NOW, old(1, rows(2)), LOG_APPEND_TIME)) == ("VAL-11", VALIDATION)


@pytest.mark.clause("VAL-2")
def test_offsets_in_a_wrapper_of_format_1_are_relative() -> None:
    inside = old(1, rows(3))
    for offset, expected in ((2, [0, 1, 2]), (9, [7, 8, 9]), (0, [0, 1, 2])):
        assert offsets_of(wrapper(1, GZIP, offset, NOW, inside)) == expected
    assert refused(wrapper(1, GZIP, 1, NOW, inside)) == ("VAL-2", INVALID)
    assert offsets_of(wrapper(0, GZIP, 1, NOW, old(0, rows(3, 40)))) == [40, 41, 42]
    assert refused(wrapper(0, GZIP, 0, NOW, b"")) == ("VAL-2", INVALID)
    assert refused(wrapper(0, GZIP, 0, NOW, bytes(12))) == ("VAL-2", CORRUPT)
    assert refused(legacy.message_bytes(0, 1, NOW, b"k", None, GZIP)) == ("VAL-2", INVALID)
    assert refused(legacy.message_bytes(0, 1, NOW, None, b"v", ZSTD)) == ("VAL-2", INVALID)
    assert len(read(wrapper(1, GZIP, 0, NOW, inside[:-1]))) == 2


@pytest.mark.clause("VAL-4")
def test_the_codec_is_that_of_the_last_compressed_batch() -> None:
    mixed = sources(wrapper(1, GZIP, 0, NOW, old(1)) + wrapper(1, SNAPPY, 0, NOW, old(1)) + old(1))
    assert spec.codec_of(mixed) == SNAPPY
    assert spec.codec_of(sources(old(1))) == 0
    assert refused(old(1) + wrapper(1, GZIP, 0, NOW, old(1)))[0] == "VAL-5"


@pytest.mark.clause("VAL-5")
def test_one_batch_of_format_2_or_of_what_is_compressed() -> None:
    assert refused(b"") == ("VAL-5", INVALID)
    assert refused(bytes(11)) == ("VAL-5", INVALID)
    assert refused(batch() + batch()) == ("VAL-5", INVALID)
    assert refused(2 * wrapper(0, GZIP, 2, NOW, old(0))) == ("VAL-5", INVALID)
    assert asked(old(0) + old(0))["nextOffset"] == 106
    assert asked(batch() + batch()[:-1])["data"].endswith(batch()[:-1].hex())


@pytest.mark.clause("VAL-6")
def test_formats_are_not_mixed() -> None:
    assert refused(old(0) + old(1)) == ("VAL-6", INVALID)
    assert refused(old(1) + batch()) == ("VAL-6", INVALID)
    assert refused(batch() + old(1)) == ("VAL-5", INVALID)
    keyless = old(0, [LogRecord(0, -1, None, b"v")])
    assert refused(keyless + old(1), compacted_topic=True)[0] == "VAL-11"


@pytest.mark.clause("VAL-7")
def test_a_client_alone_is_asked_for_its_header() -> None:
    at = fmt.AT
    marker = batch(
        [LogRecord(0, NOW, COMMIT, END_MARKER.pack(0, 7))],
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=9,
        producer_epoch=0,
    )
    wrong = {
        "offset range": patched(batch(), at["last_offset_delta"], b"\xff" * 4),
        "reported count": patched(batch(), at["count"], bytes(4)),
        "Inconsistent": patched(batch(), at["last_offset_delta"], b"\0\0\0\3"),
        "control records": marker,
        "Invalid sequence": batch(producer_id=9, producer_epoch=0),
    }
    for words, data in wrong.items():
        found = asked(data)
        assert (found.clause, found.error) == ("VAL-7", INVALID)
        assert words in found.message
    both = patched(patched(batch(), at["last_offset_delta"], b"\xff" * 4), at["count"], bytes(4))
    assert "offset range" in asked(both).message
    for origin in ("COORDINATOR", "REPLICATION", "RAFT_LEADER"):
        for words in ("offset range", "Inconsistent", "control records", "Invalid sequence"):
            assert asked(wrong[words], origin=origin)["messageSizeMaybeChanged"] is False


@pytest.mark.clause("VAL-8")
@pytest.mark.clause("VAL-16")
def test_old_formats_have_no_producers() -> None:
    producer: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    idempotent, transactional = batch(**producer), batch(attributes=TRANSACTIONAL, **producer)
    for magic in (0, 1):
        assert refused(idempotent, target_magic=magic) == ("VAL-8", spec.UNSUPPORTED)
        assert refused(transactional, target_magic=magic) == ("VAL-16", ILLEGAL_ARGUMENT)
        assert refused(transactional, target_magic=magic, target_compression="gzip") == ("VAL-8", spec.UNSUPPORTED)
        strange = patched(batch(), fmt.AT["producer_id"], b"\x80" + bytes(7))
        assert refused(strange, target_magic=magic) == ("VAL-16", ILLEGAL_ARGUMENT)


@pytest.mark.clause("VAL-9")
def test_a_wrapper_holds_messages_of_its_format() -> None:
    mixed = old(1, rows(1)) + old(0, rows(1))
    assert asked(wrapper(1, GZIP, 0, NOW, mixed)) == Refused("VAL-11", VALIDATION, f"{INVALID}: records [1]")
    nested = wrapper(1, GZIP, 0, NOW, old(1, rows(1)))
    assert refused(wrapper(1, GZIP, 0, NOW, nested)) == ("VAL-9", INVALID)
    unknown = legacy.message_bytes(0, 1, NOW, b"k", b"v", 5)
    assert refused(wrapper(1, GZIP, 0, NOW, unknown)) == ("VAL-9", ILLEGAL_ARGUMENT)


@pytest.mark.clause("VAL-10")
def test_a_crc_is_compared_inside_a_wrapper_alone() -> None:
    message = old(1, rows(1))
    damaged = message[:-1] + b"x"
    assert refused(wrapper(1, GZIP, 1, NOW, message + damaged)) == ("VAL-10", CORRUPT)
    assert asked(damaged, target_magic=1)["nextOffset"] == 101
    wrong = patched(batch(), fmt.AT["crc"], b"\1\2\3\4", sealing=False)
    assert written(wrong)[17:21] == b"\1\2\3\4"


@pytest.mark.clause("VAL-11")
def test_all_records_in_error_are_named() -> None:
    data = batch([LogRecord(n, NOW, None if n != 1 else b"k", b"v") for n in range(6)])
    assert asked(data, compacted_topic=True).message == f"{INVALID}: records [0, 2, 3, 4, 5]"
    late = [LogRecord(0, NOW, None, b"v"), LogRecord(1, NOW + 99, b"k", b"v")]
    how: dict[str, Any] = {"compacted_topic": True, "timestamp_after_max_ms": 10}
    assert asked(batch(late), **how).message == f"{INVALID_TIMESTAMP}: records [0, 1]"
    assert asked(old(1, late), **how).message == f"{INVALID}: records [0]"
    assert asked(old(1, late[1:]), **how).message == f"{INVALID_TIMESTAMP}: records [0]"
    assert asked(old(1, [*rows(2), late[0]]), **how).message == f"{INVALID}: records [0]"


@pytest.mark.clause("VAL-12")
def test_records_of_every_format_have_keys_and_timely_timestamps() -> None:
    bounds = {"timestamp_before_max_ms": 10, "timestamp_after_max_ms": 10}
    for time, takes in ((NOW - 11, False), (NOW - 10, True), (NOW + 10, True), (NOW + 11, False), (-1, True)):
        one = [LogRecord(0, time, None, b"v")]
        assert isinstance(asked(batch(one), **bounds), Refused) is not takes
        assert isinstance(asked(old(1, one), **bounds), Refused) is not takes
        assert not isinstance(asked(old(0, one), **bounds), Refused)
        assert not isinstance(asked(old(1, one), **bounds, timestamp_type="LogAppendTime"), Refused)
        assert refused(old(0, one), compacted_topic=True) == ("VAL-11", VALIDATION)
    assert refused(old(1, rows(1), LOG_APPEND_TIME)) == ("VAL-11", VALIDATION)


@pytest.mark.clause("VAL-13")
def test_when_the_bytes_that_came_are_kept() -> None:
    def keeps(data: bytes, **how: Any) -> bool:
        return not asked(data, **how)["messageSizeMaybeChanged"]

    assert keeps(batch())
    assert not keeps(batch(), target_compression="gzip")
    assert not keeps(batch(), target_magic=1)
    assert keeps(batch(attributes=GZIP), target_compression="gzip")
    assert not keeps(batch(attributes=GZIP), target_compression="lz4")
    assert not keeps(batch(attributes=GZIP))
    assert not keeps(batch(rows(3, 1), attributes=GZIP), target_compression="gzip", origin="COORDINATOR")
    assert keeps(old(0), target_magic=0)
    assert not keeps(wrapper(0, GZIP, 2, NOW, old(0)), target_magic=0, target_compression="gzip")
    assert keeps(wrapper(1, GZIP, 2, NOW, old(1)), target_magic=1, target_compression="gzip")
    assert not keeps(wrapper(1, GZIP, 7, NOW, old(1)), target_magic=1, target_compression="gzip")
    marker = batch([LogRecord(0, NOW, COMMIT, END_MARKER.pack(0, 7))], attributes=CONTROL)
    assert keeps(marker, target_compression="gzip", origin="COORDINATOR")


@pytest.mark.clause("VAL-14")
def test_what_changes_in_place_in_format_2() -> None:
    data = batch()
    out = written(data)
    assert out == (100).to_bytes(8, "big") + data[8:12] + b"\0\0\0\4" + data[16:]
    appended = written(data, timestamp_type="LogAppendTime", now=NOW + 50)
    assert fmt.decode(appended).max_timestamp == NOW + 50
    assert (appended[23:35], appended[43:]) == (data[23:35], data[43:])
    odd = patched(data, fmt.AT["attributes"], b"\1\x80")
    assert written(odd)[21:23] == b"\1\x80"
    assert written(odd, timestamp_type="LogAppendTime")[21:23] == b"\0\x08"
    same = [fmt.Record(0, 0, b"k", b"v"), fmt.Record(0, 0, b"k", b"w")]
    twice = fmt.encode(replace(built(0, rows(2)), records=tuple(same), max_timestamp=NOW))
    assert offsets_of(written(twice)) == [100, 100]


@pytest.mark.clause("VAL-15")
def test_what_changes_in_place_in_formats_0_and_1() -> None:
    for magic in (0, 1):
        data = old(magic, rows(2))
        assert written(data, target_magic=magic) == old(magic, rows(2, 100))
    appended = written(old(1, rows(1), 0x30), target_magic=1, timestamp_type="LogAppendTime")
    assert appended == old(1, rows(1, 100), LOG_APPEND_TIME)
    assert written(old(1, rows(1), 0x30), target_magic=1) == old(1, rows(1, 100), 0x30)
    below = old(1, [LogRecord(0, -9, b"k", b"v")])
    assert written(below, target_magic=1) == old(1, [LogRecord(100, -1, b"k", b"v")])
    out = written(wrapper(1, GZIP, 2, 5, old(1)), target_magic=1, target_compression="gzip")
    assert out == wrapper(1, GZIP, 102, NOW + 2, old(1))


@pytest.mark.clause("VAL-16")
def test_what_the_writer_refuses() -> None:
    below = [LogRecord(0, NOW, b"k", b"v"), LogRecord(1, -9, b"k", b"v")]
    for data in (batch(below), old(1, below)):
        assert refused(data, target_compression="gzip") == ("VAL-16", ILLEGAL_ARGUMENT)
    headers = batch([LogRecord(0, NOW, b"k", b"v", (Header(b"h", b"w"),))])
    for magic in (0, 1):
        assert refused(headers, target_magic=magic) == ("VAL-16", ILLEGAL_ARGUMENT)
        assert refused(batch(), target_magic=magic, target_compression="zstd") == ("VAL-16", ILLEGAL_ARGUMENT)


@pytest.mark.clause("VAL-17")
def test_what_is_written_again() -> None:
    assert read(written(old(0))) == [(100 + n, -1, b"k%d" % n, b"v") for n in range(3)]
    assert read(written(old(1))) == [(100 + n, NOW + n, b"k%d" % n, b"v") for n in range(3)]
    producer: dict[str, Any] = {"producer_id": 9, "producer_epoch": 1, "base_sequence": 5}
    again = asked(batch(attributes=TRANSACTIONAL, **producer), target_compression="lz4")["batches"][0]
    assert [again[k] for k in ("producerId", "producerEpoch", "baseSequence", "attributes")] == [9, 1, 5, 0x13]
    wrapped = asked(batch(), target_magic=1, target_compression="gzip")["batches"]
    assert [(w["offset"], w["maxTimestamp"], w["records"]) for w in wrapped] == [(102, NOW + 2, old(1).hex())]
    wrapped = asked(batch(), target_magic=0, target_compression="gzip")["batches"]
    assert [(w["offset"], w["records"]) for w in wrapped] == [(102, old(0, rows(3, 100)).hex())]
    now = [r._replace(timestamp=NOW + 9) for r in rows(3)]
    wrapped = asked(batch(), target_magic=1, target_compression="gzip", timestamp_type="LogAppendTime", now=NOW + 9)[
        "batches"
    ]
    assert [w["records"] for w in wrapped] == [old(1, now, LOG_APPEND_TIME).hex()]


@pytest.mark.clause("VAL-18")
def test_the_largest_timestamp_that_the_log_is_told() -> None:
    append: dict[str, Any] = {"timestamp_type": "LogAppendTime", "now": NOW + 50}
    assert asked(batch())["maxTimestampMs"] == NOW + 2
    assert asked(batch(), **append)["maxTimestampMs"] == NOW + 50
    assert asked(old(1))["maxTimestampMs"] == NOW + 2
    assert asked(old(0))["maxTimestampMs"] == -1
    assert asked(old(0), target_magic=0, **append)["maxTimestampMs"] == -1
    assert asked(old(1), target_magic=0, **append)["maxTimestampMs"] == NOW + 50
    assert asked(old(1), target_magic=0)["maxTimestampMs"] == -1


@pytest.mark.clause("VAL-19")
def test_memory_and_converted_records() -> None:
    def told(data: bytes, **how: Any) -> tuple[int, int]:
        found = asked(data, **how)
        return found["temporaryMemoryBytes"], found["numRecordsConverted"]

    plain = len(batch())
    assert told(batch()) == (0, 0)
    assert told(batch(attributes=GZIP), target_compression="gzip") == (plain, 0)
    assert told(batch(attributes=GZIP)) == (2 * plain, 3)
    assert told(old(1)) == (len(batch()), 3)
    assert told(batch(), target_magic=0) == (len(old(0)), 3)
    assert told(wrapper(1, GZIP, 2, NOW, old(1)), target_magic=0) == (26 + len(old(1)) + len(old(0)), 3)


@pytest.mark.clause("VAL-20")
def test_faults_are_counted() -> None:
    keyless = batch([LogRecord(n, NOW, None, b"v") for n in range(3)])
    assert counted(keyless, compacted_topic=True) == spec.Meters(no_key_compacted_topic=3)
    assert counted(old(0) + old(1)) == spec.Meters(invalid_magic=1)
    assert counted(wrapper(1, GZIP, 2, NOW, old(0))) == spec.Meters(invalid_magic=3)
    assert counted(batch(producer_id=9, producer_epoch=0)) == spec.Meters(invalid_sequence=1)
    assert counted(patched(batch(), fmt.AT["count"], bytes(4))) == spec.Meters(invalid_offset=1)
    assert counted(wrapper(1, GZIP, 0, NOW, old(1)[:-1] + b"x")) == spec.Meters(invalid_checksums=1)
    assert counted(batch()) == spec.Meters()


@pytest.mark.clause("VAL-21")
def test_offsets_are_consecutive_from_the_log_end_on() -> None:
    for data in (batch(), old(0), old(1, rows(3, 70)), wrapper(1, GZIP, 9, NOW, old(1)), batch(attributes=ZSTD)):
        for codec in ("none", "snappy"):
            for magic in (0, 1, 2):
                out = asked(data, offset=2**33, target_compression=codec, target_magic=magic)
                assert out["nextOffset"] == 2**33 + 3
                assert offsets_of(bytes.fromhex(out["data"])) == [2**33, 2**33 + 1, 2**33 + 2]
