"""The record batch: impl against spec, beside kafka-python, beside what Kafka wrote; and the rules one by one."""

from __future__ import annotations

import gzip
import json
import os
import re
import struct
import tarfile
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from kafkaspec.contract import subsystem
from kafkaspec.contract.deviation import shown as shown_by
from kafkaspec.contract.machine import Outside, Refused, Step
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk
from kafkaspec.impl.common.scan import problem_text, read_segment
from kafkaspec.impl.storage import batch as impl
from kafkaspec.impl.storage import batch_driver
from kafkaspec.judge import protocol
from kafkaspec.judge.campaign import replay
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.judge.result import Job
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common.compression import CODECS, NotDecompressed, TooMuch, compress, decompress
from kafkaspec.spec.common.kafka import LONG_MAX, NULL_POINTER
from kafkaspec.spec.common.record_format import Batch, Header, Legacy, LogRecord, Malformed, Record, Unread
from kafkaspec.spec.common.record_reader import INVALID, UNDERFLOW
from kafkaspec.spec.storage import batch as spec
from kafkaspec.spec.storage import batch_trial
from kafkaspec.spec.storage.batch import machine
from kafkaspec.spec.storage.batch_trial import EPOCH, NOW
from tests.kafka import command
from tests.layers import a_row_of_verify, walked

RECORDINGS = Path(__file__).parent.parent / "recordings" / "audit"


# ---- the layers beside each other
def test_long_walks_cover_every_operation() -> None:
    covered = walked(machine, batch_driver.Driver, seeds=30, steps=100)
    decoded = {f"decode BAT-{n}" for n in range(1, 12)}
    assert decoded | {f"validate BAT-{n}" for n in (20, 21, 22)} | {"build BAT-18"} <= covered.refusals.keys()


@a_row_of_verify
@pytest.mark.parametrize("recording", subsystem.find("batch").recordings, ids=lambda r: r.file)
def test_recordings_are_judged_as_they_must(recording: Any) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


@pytest.mark.clause("BAT-13")
def test_every_byte_string_is_read_alike_by_spec_and_impl() -> None:
    """With every rule broken by one of them at least."""
    driver, seen = batch_driver.Driver(), Counter[str]()
    for text in batch_trial.byte_strings():
        expected = machine.apply(spec.CurrentBatch(), "decode", {"data": text}).result  # type: ignore[union-attr]
        assert driver.apply("decode", {"data": text}) == expected, text
        seen[expected.clause if isinstance(expected, Refused) else ""] += 1
    assert seen.keys() == {"", *(f"BAT-{n}" for n in range(1, 12))}


@pytest.mark.clause("BAT-1")
def test_bytes_stand_as_hexadecimal_digits() -> None:
    for text in ("", "00ff10"):
        step = machine.apply(spec.initial(), "load", {"data": text})
        assert isinstance(step, Step)
        assert (step.state.data, machine.observe(step.state)) == (bytes.fromhex(text), {"data": text})
        assert protocol.word(bytes | None) == "string | null"
    for wrong in ("0", "0g", "FF", "00 ff", 3, None):
        with pytest.raises((TypeError, ValueError)):
            machine.apply(spec.initial(), "load", {"data": wrong})


@pytest.mark.clause("BAT-13")
def test_the_compiled_scan_finds_the_same_at_the_same_byte(tmp_path: Path) -> None:
    """Behind a sound batch and before another, each byte string that is framed and has the right CRC."""
    path = tmp_path / "00000000000000000000.log"
    before = fmt.encode(batch_trial.examples()[0])
    compared = Counter[str]()
    for text in batch_trial.byte_strings():
        data = bytes.fromhex(text)
        try:
            fmt.decode(data, len(before))
            expected = ("", -1)
        except Malformed as e:
            expected = (e.clause, e.position)
        if expected[0] in ("BAT-1", "BAT-2", "BAT-3") or data[0] & 0x80:
            continue
        path.write_bytes(before + data + before)
        parts = [p for p in read_segment(File(path, 0)) if isinstance(p, Chunk)]
        rows = [row for p in parts for row in p.batches]
        row = rows[1]
        found = (problem_text(row)[0], int(row["problem_at"])) if row["problem"] else ("", -1)
        assert found == expected, text
        compared[found[0]] += 1
    assert compared.keys() == {"", *(f"BAT-{n}" for n in range(4, 12))}


# ---- what Kafka wrote
def segments() -> Iterator[tuple[str, bytes]]:
    """The segments of the recordings here, and of KAFKASPEC_SEGMENTS, a folder, if that is set."""
    for archive in sorted(RECORDINGS.glob("*/*.tar.gz")):
        with tarfile.open(archive) as tar:
            for member in tar:
                file = tar.extractfile(member) if member.name.endswith((".log", ".checkpoint")) else None
                if file is not None:
                    yield f"{archive.parent.name}/{archive.name}:{member.name}", file.read()
    for path in sorted(Path(os.environ.get("KAFKASPEC_SEGMENTS") or os.devnull).rglob("*.log")):
        yield str(path), path.read_bytes()


def framed(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The batches of a segment by their length fields."""
    at = 0
    while at + 17 <= len(data):
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        if at + size > len(data):
            return
        yield at, data[at : at + size]
        at += size


@pytest.mark.clause("BAT-9")
@pytest.mark.clause("BAT-10")
@pytest.mark.clause("BAT-11")
@pytest.mark.clause("BAT-19")
@pytest.mark.parametrize("each", [20, pytest.param(1, marks=pytest.mark.deep)])
def test_every_real_batch_is_decoded_and_encoded_to_the_same_bytes(each: int) -> None:
    """By impl all of them; by the spec, which takes its time, those of one segment in `each`, and the first twenty of
    each kind."""
    if not RECORDINGS.is_dir():
        pytest.skip("no recordings of log directories here")
    seen = Counter[str]()
    for n, (name, content) in enumerate(segments()):
        for at, data in framed(content):
            if data[16] < 2:
                seen["legacy"] += 1
                continue
            read = impl.Batch(data, at)
            records = list(read.records())
            seen[read.codec] += 1
            seen["control"] += read.control
            seen["empty"] += read.count == 0
            seen["horizon"] += read.delete_horizon is not None
            kinds = (read.codec, "control" * read.control, "empty" * (read.count == 0))
            if n % each == 0 or any(kind and seen[kind] <= 20 for kind in kinds):
                batch = fmt.decode(data, at)
                assert fmt.encode(batch) == data, f"{name} at {at}"
                assert read.described(records) == fmt.decoded(batch), f"{name} at {at}"
            if read.count == 0:
                assert impl.empty(read) == data, f"{name} at {at}"
            elif read.codec == "none":
                assert rebuilt(read, records) == data, f"{name} at {at}"
    assert all(seen[kind] for kind in (*(c.name for c in CODECS.values()), "control", "empty", "horizon")), seen


def rebuilt(batch: impl.Batch, records: list[impl.Record]) -> bytes:
    """The batch again, by the encoder, of what a reader sees."""
    encoder = impl.Encoder(
        batch.base_offset,
        leader_epoch=batch.leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.transactional,
        control=batch.control,
        append_time=batch.max_timestamp if batch.log_append_time else None,
        delete_horizon=batch.delete_horizon,
    )
    for r in records:
        created = r.timestamp if not batch.log_append_time else batch.base_timestamp + r.timestamp_delta
        encoder.append(created, r.key, r.value, r.headers, r.offset)
    return encoder.finish(batch.last_offset)


# ---- kafka-python, an independent witness
keys = st.none() | st.binary(max_size=80)
times = st.integers(0, 2**41)
headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
records = st.lists(st.tuples(times, keys, keys, headers), min_size=1, max_size=20)
producers = st.just((-1, -1, -1)) | st.tuples(
    st.integers(0, 2**40), st.integers(0, 2**15 - 1), st.integers(2**31 - 30, 2**31 - 1) | st.integers(0, 100)
)


@given(records, producers, st.booleans(), st.sampled_from(sorted(CODECS)))
@pytest.mark.clause("BAT-8")
@pytest.mark.clause("BAT-18")
def test_kafka_python_writes_and_reads_the_same(
    made: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    producer: tuple[int, int, int],
    transactional: bool,
    codec: int,
) -> None:
    transactional = transactional and producer[0] >= 0
    theirs = DefaultRecordBatchBuilder(2, codec if codec not in (2, 3, 4) else 0, transactional, *producer, 1 << 30)
    ours = impl.Encoder(
        codec=CODECS[codec].name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        transactional=transactional,
    )
    for n, (timestamp, key, value, head) in enumerate(made):
        theirs.append(n, timestamp, key, value, head)
        ours.append(timestamp, key, value, [(k.encode(), v) for k, v in head])
    data = ours.finish()
    said = bytes(theirs.build())
    if codec == 0:
        assert said[16:] == data[16:]  # they write 0 for the leader epoch, Kafka's producer -1; neither is covered
    again = fmt.decode(said)
    assert [(r.timestamp, r.key, r.value) for r in fmt.log_records(again)] == [m[:3] for m in made]
    if codec > 1:
        return  # they need libraries of their own for these
    read = DefaultRecordBatch(data)
    assert read.validate_crc()
    assert read.is_transactional == transactional
    assert (read.producer_id, read.producer_epoch, read.base_sequence) == producer
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in read] == [
        (n, timestamp, key, value, head) for n, (timestamp, key, value, head) in enumerate(made)
    ]
    assert read.last_sequence == fmt.decode(data).last_sequence


def test_kafka_python_reads_real_batches_as_we_do() -> None:
    compared = 0
    for _, content in segments():
        for at, data in framed(content):
            if data[16] < 2 or data[22] & 7 > 1 or data[57:61] == bytes(4) or compared >= 1500:
                continue
            theirs, ours = DefaultRecordBatch(data), impl.Batch(data, at)
            assert (theirs.crc, theirs.max_timestamp) == (ours.crc, ours.max_timestamp)
            assert [(r.offset, r.timestamp, r.key, r.value) for r in theirs] == [r[:4] for r in ours.records()]
            compared += 1
    assert compared > 100 or not RECORDINGS.is_dir()


# ---- Kafka's own classes
NO_SEQUENCE = "below -1"
"""Of such a first sequence Kafka makes a last one."""
NOT_BY_KAFKA = {"BAT-4", "BAT-5", "BAT-6", "BAT-8", "BAT-9", "BAT-10", "BAT-11", NO_SEQUENCE}
"""Rules that Kafka's reader does not ask for, or not in every form: only its writer or its leader keeps them."""


@pytest.mark.clause("BAT-7")
def test_kafka_read_what_was_compressed_here() -> None:
    """Spec and impl compress by one module. Kafka's reader got these bytes of each codec, and what it answered is what
    both read; the recording is judged by the spec as any other."""
    driver, read = batch_driver.Driver(), Counter[str]()
    for line in gzip.decompress((RECORDINGS.parent / "kafka-4.3.0-batch.ndjson.gz").read_bytes()).splitlines():
        record = json.loads(line)
        data = bytes.fromhex(record["args"].get("data", ""))
        if record["op"] == "read" and len(data) > fmt.OVERHEAD and any(b["records"] for b in record.get("result", ())):
            assert driver.apply("read", {"data": data.hex()}) == record["result"]
            read[CODECS[data[22] & fmt.CODEC_MASK].name] += 1
    assert all(read[codec.name] >= 5 for codec in CODECS.values()), read


@pytest.mark.deep
@pytest.mark.clause("BAT-12")
@pytest.mark.clause("BAT-14")
def test_kafka_reads_what_we_write_and_refuses_what_we_refuse() -> None:
    """Of every byte string Kafka's reader says what the spec's reader does, which refuses what the decoder refuses, but
    for rules that a reader does not ask for."""
    calls = []
    compared = Counter[str]()
    for text in batch_trial.byte_strings():
        data = bytes.fromhex(text)
        try:
            wrong = "" if fmt.decode(data).base_sequence >= -1 else NO_SEQUENCE
        except Malformed as e:
            wrong = e.clause
        read = machine.apply(spec.initial(), "read", {"data": text})
        if isinstance(read, Outside):
            assert wrong in NOT_BY_KAFKA, text
            continue
        calls.append({"op": "read", "args": {"data": text}})
        cut = read.result == [] or int.from_bytes(data[8:12], "big", signed=True) + 12 != len(data)
        legacy = wrong == "BAT-2" and data[16] < 2
        refused = isinstance(read.result, Refused)
        assert not refused if wrong == "" else refused or cut or legacy or wrong in NOT_BY_KAFKA, (text, wrong)
        compared[wrong] += 1
    judged = replay(Job("batch", command()), [calls], "every byte string")
    assert judged.verdict == "accepted", judged.why
    assert judged.tally.calls == len(calls) > 1000
    assert compared[""] > 100


# ---- the rules, one by one
def refusal(data: bytes, position: int = 0) -> tuple[str, int]:
    """Clause and byte of what is wrong."""
    with pytest.raises(Malformed) as e:
        fmt.decode(data, position)
    with pytest.raises(Malformed) as other:
        list(impl.Batch(data, position).records())
    assert (other.value.clause, other.value.position) == (e.value.clause, e.value.position)
    return e.value.clause, e.value.position


ONE = fmt.built(7, [LogRecord(7, NOW, b"k", b"v"), LogRecord(8, NOW + 5, None, b"")], leader_epoch=3)
DATA = fmt.encode(ONE)


@pytest.mark.clause("BAT-1")
def test_the_length_frames_the_batch() -> None:
    assert fmt.decode(DATA) == ONE
    assert refusal(DATA[:-1], 1000) == ("BAT-1", 1008)
    assert refusal(DATA + b"\0") == ("BAT-1", 8)
    assert refusal(DATA[:16], 50) == ("BAT-1", 50)
    assert refusal(batch_trial.patched(DATA, 8, struct.pack(">i", 48))) == ("BAT-1", 8)


@pytest.mark.clause("BAT-2")
def test_formats_before_are_named_and_not_decoded() -> None:
    for magic in (0, 1):
        with pytest.raises(Legacy, match=f"format {magic}"):
            fmt.decode(batch_trial.patched(DATA, 16, bytes([magic])))
    assert refusal(batch_trial.patched(DATA, 16, b"\3")) == ("BAT-2", 16)


@pytest.mark.clause("BAT-3")
def test_the_crc_covers_what_follows_it() -> None:
    for at in range(21, len(DATA)):
        assert refusal(batch_trial.patched(DATA, at, bytes([DATA[at] ^ 4]), sealing=False))[0] == "BAT-3"
    for at in (0, 7, 12, 15):
        fmt.decode(batch_trial.patched(DATA, at, bytes([DATA[at] ^ 4]), sealing=False))


@pytest.mark.clause("BAT-4")
@pytest.mark.clause("BAT-5")
def test_attributes_and_last_offset_delta() -> None:
    assert refusal(fmt.encode(replace(ONE, attributes=0x80))) == ("BAT-4", 21)
    assert refusal(batch_trial.patched(DATA, 22, b"\5")) == ("BAT-4", 21)
    assert refusal(fmt.encode(replace(ONE, last_offset_delta=-1))) == ("BAT-5", 23)


@pytest.mark.clause("BAT-5")
@pytest.mark.parametrize(("base", "last"), [(40, 40), (40, 49), (2**63 - 1, -(2**63) + 8)])
def test_a_batch_takes_its_offsets_with_and_without_records(base: int, last: int) -> None:
    batch = replace(ONE, base_offset=base, last_offset_delta=(last - base) % 2**64)
    for some in (batch, fmt.emptied(batch)):
        assert some.last_offset == last
        assert impl.Batch(fmt.encode(some)).last_offset == last


@pytest.mark.clause("BAT-6")
def test_the_count_is_that_of_the_records() -> None:
    assert refusal(batch_trial.patched(DATA, 57, struct.pack(">i", -1))) == ("BAT-6", 57)
    first = 61 + len(fmt.record_bytes(ONE.records[0]))
    assert refusal(batch_trial.patched(DATA, 57, struct.pack(">i", 1))) == ("BAT-6", first)
    assert refusal(batch_trial.patched(DATA, 57, struct.pack(">i", 3))) == ("BAT-8", len(DATA))
    assert refusal(batch_trial.patched(DATA, 57, struct.pack(">i", 0))) == ("BAT-6", 61)


@pytest.mark.clause("BAT-7")
@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_costs_no_more_than_the_limit(codec: int) -> None:
    bomb = fmt.encode(fmt.built(0, [LogRecord(0, NOW, None, bytes(1 << 25))], attributes=codec))
    tracemalloc.start()
    with pytest.raises(Unread):
        fmt.decode(bomb, limit=1 << 20)
    with pytest.raises(Unread):
        list(impl.Batch(bomb).records(limit=1 << 20))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < (1 << 24) + 2 * len(bomb)


@given(st.binary(max_size=3000), st.sampled_from(sorted(CODECS)), st.data())
@pytest.mark.clause("BAT-7")
def test_codecs_go_there_and_back_and_damage_is_refused(plain: bytes, codec: int, data: st.DataObject) -> None:
    packed = compress(codec, plain)
    assert decompress(codec, packed) == plain
    if codec and packed:
        at = data.draw(st.integers(0, len(packed) - 1))
        damaged = packed[:at] + bytes([packed[at] ^ data.draw(st.integers(1, 255))]) + packed[at + 1 :]
        for text in (damaged, packed[:at]):
            with suppress(NotDecompressed):
                assert len(decompress(codec, text, 1 << 20)) <= 1 << 20


@pytest.mark.clause("BAT-7")
def test_frames_are_kafkas() -> None:
    """xerial's snappy with its 16 bytes; lz4 of independent blocks alone; a claim of zstd's not believed. What Java's
    readers do not look at is not looked at: snappy's version, gzip's reserved flags."""
    snappy = compress(2, bytes(40_000))
    assert snappy[:16] == b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    assert compress(3, b"")[:7].hex() == "04224d18604082"
    linked = compress(3, b"x" * 100).replace(b"\x60\x40\x82", b"\x40\x40\xc0")
    with pytest.raises(NotDecompressed, match="independent"):
        decompress(3, linked)
    claim = bytes.fromhex("28b52ffd") + b"\xe0" + (1 << 40).to_bytes(8, "little") + b"\x19\0\0abc"
    with pytest.raises(NotDecompressed, match="says"):
        decompress(4, claim)
    assert decompress(2, compress(2, b"a")[:8] + bytes(8) + compress(2, b"a")[16:]) == b"a"
    assert decompress(1, compress(1, b"a")[:3] + b"\xe0" + compress(1, b"a")[4:]) == b"a"
    assert decompress(4, b"") == b""
    assert decompress(1, compress(1, b"a") + b"rest") == b"a"
    assert decompress(1, compress(1, b"a") + compress(1, b"b")) == b"ab"
    with pytest.raises(TooMuch):
        decompress(2, b"\xff\xff\xff\xff\x0f" + b"\0" * 9)


@pytest.mark.clause("BAT-8")
@pytest.mark.clause("BAT-9")
def test_records_fill_their_lengths_and_offsets_rise() -> None:
    value = DATA.index(b"v") - 1
    assert refusal(batch_trial.patched(DATA, value, b"\x04")) == ("BAT-8", 61)
    assert refusal(batch_trial.patched(DATA, value, b"\x03")) == ("BAT-8", 61)
    again = replace(ONE, records=(ONE.records[0], replace(ONE.records[1], offset_delta=0)))
    second = 61 + len(fmt.record_bytes(ONE.records[0]))
    assert refusal(fmt.encode(again))[0] == "BAT-9"
    assert second < refusal(fmt.encode(again))[1] < len(DATA)
    packed = fmt.encode(replace(again, attributes=1))
    assert refusal(packed, 500) == ("BAT-9", 561)
    gaps = replace(ONE, records=(replace(ONE.records[0], offset_delta=4), replace(ONE.records[1], offset_delta=9)))
    assert fmt.decode(fmt.encode(replace(gaps, last_offset_delta=30))).last_offset == 37
    assert refusal(fmt.encode(replace(gaps, last_offset_delta=8)))[0] == "BAT-9"


@pytest.mark.clause("BAT-10")
def test_the_largest_timestamp_is_that_of_the_records() -> None:
    assert refusal(fmt.encode(replace(ONE, max_timestamp=NOW))) == ("BAT-10", 35)
    stamped = replace(ONE, attributes=fmt.LOG_APPEND_TIME, max_timestamp=NOW + 999)
    assert [t.timestamp for t in fmt.log_records(fmt.decode(fmt.encode(stamped)))] == [NOW + 999] * 2
    assert fmt.built(0, [LogRecord(0, -1, None, None)]).max_timestamp == -1


@pytest.mark.clause("BAT-11")
def test_control_records() -> None:
    def control(key: bytes | None, value: bytes | None) -> Batch:
        return fmt.built(0, [LogRecord(0, NOW, key, value)], attributes=fmt.CONTROL)

    for number, name in enumerate(fmt.CONTROL_TYPES):
        batch = fmt.decode(fmt.encode(control(struct.pack(">hh", 0, number), EPOCH)))
        said = fmt.marker(batch.records[0])
        assert (said.name, said.version, said.value_version) == (name, 0, 0)
        assert said.coordinator_epoch == (7 if number < 2 else None)
    assert fmt.marker(control(struct.pack(">hhi", 4, 99, 0), None).records[0]).name == "UNKNOWN"
    for key, value in (
        (None, EPOCH),
        (b"\0\0\0", EPOCH),
        (fmt.COMMIT, b"\0\0\0\0\0"),
        (b"\xff" * 4, b""),
    ):
        assert refusal(fmt.encode(control(key, value))) == ("BAT-11", 61)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
@pytest.mark.clause("BAT-12")
def test_varints_there_and_back(small: int, large: int) -> None:
    for n, bits, most in ((small, 32, 5), (large, 64, 10)):
        out = bytearray()
        impl.put_varint(out, n)
        assert fmt.varint_bytes(n, bits) == out
        assert fmt.varint(bytes(out), 0, len(out), bits) == impl.get_varint(bytes(out), 0, len(out), most)
        assert fmt.varint(bytes(out), 0, len(out), bits)[0] == n


@pytest.mark.clause("BAT-14")
@pytest.mark.clause("BAT-15")
def test_offsets_and_timestamps_are_sums_and_a_horizon_changes_neither() -> None:
    records = [LogRecord(9, NOW, b"k", None), LogRecord(12, NOW - 7, b"l", b"v")]
    plain, aged = fmt.built(5, records), fmt.built(5, records, delete_horizon=NOW + 86_400_000)
    assert fmt.log_records(plain) == fmt.log_records(fmt.decode(fmt.encode(aged))) == tuple(records)
    assert (plain.delete_horizon, aged.delete_horizon) == (None, NOW + 86_400_000)
    wide = replace(ONE, base_timestamp=2**63 - 1, records=(Record(0, 2, None, None),), max_timestamp=-1)
    assert fmt.decode(fmt.encode(wide)).largest_timestamp == -(2**63) + 1


@pytest.mark.clause("BAT-16")
def test_sequences_wrap_and_outlive_compaction() -> None:
    batch = fmt.built(
        0, [LogRecord(n, NOW, b"k", b"v") for n in range(4)], producer_id=1, producer_epoch=0, base_sequence=2**31 - 2
    )
    assert [batch.sequence(r.offset_delta) for r in batch.records] == [2**31 - 2, 2**31 - 1, 0, 1]
    assert batch.last_sequence == replace(batch, records=batch.records[:1]).last_sequence == 1
    assert ONE.last_sequence == -1


@pytest.mark.clause("BAT-17")
def test_an_emptied_batch_is_its_header() -> None:
    batch = fmt.built(
        40, [LogRecord(40, NOW, b"k", b"v")], last_offset=49, attributes=fmt.TRANSACTIONAL | 1, producer_id=6,
        producer_epoch=2, base_sequence=11, leader_epoch=8,
    )  # fmt: skip
    left = fmt.emptied(batch)
    data = fmt.encode(left)
    assert len(data) == 61
    assert data == impl.empty(impl.Batch(fmt.encode(batch)))
    assert fmt.decode(data) == left
    assert (left.last_offset, left.last_sequence, left.base_timestamp, left.max_timestamp) == (49, 20, -1, NOW)


@pytest.mark.clause("BAT-24")
def test_what_compaction_keeps_of_a_batch() -> None:
    records = [LogRecord(n, NOW + n, b"k%d" % n, None if n == 3 else b"v") for n in range(4)]
    batch = fmt.built(40, [t._replace(offset=40 + t.offset) for t in records], producer_id=6, producer_epoch=2,
                       base_sequence=11, attributes=fmt.TRANSACTIONAL | 1)  # fmt: skip
    copied = fmt.retained(fmt.built(0, records[:3]), frozenset(range(3)), NOW)
    assert copied == fmt.built(0, records[:3])
    some = fmt.retained(batch, frozenset({0, 1}), NOW + 99)
    assert (some.base_offset, some.last_offset, some.last_sequence, some.max_timestamp) == (40, 43, 14, NOW + 1)
    assert some.delete_horizon is None
    aged = fmt.retained(batch, frozenset({1, 3}), NOW + 99)
    assert [(t.offset, t.timestamp) for t in fmt.log_records(aged)] == [(41, NOW + 1), (43, NOW + 3)]
    assert aged.delete_horizon == NOW + 99
    assert fmt.retained(aged, frozenset({1}), NOW + 500).delete_horizon == NOW + 99
    assert fmt.retained(batch, frozenset(), NOW) == fmt.emptied(batch)
    for b in (batch, aged):
        for kept in (frozenset({1}), frozenset({0, 1}), frozenset(range(4))):
            data = impl.retain(impl.Batch(fmt.encode(b)), kept, NOW)
            assert data == fmt.encode(fmt.retained(b, kept, NOW))


@pytest.mark.clause("BAT-13")
def test_a_reader_asks_for_less_than_a_writer_keeps() -> None:
    driver, seen = batch_driver.Driver(), Counter[tuple[str, str]]()
    for text in batch_trial.readable():
        step = machine.apply(spec.CurrentBatch(), "read", {"data": text})
        if isinstance(step, Step):
            assert driver.apply("read", {"data": text}) == step.result, text
            strict = spec.machine.operations["decode"].body(bytes.fromhex(text))
            if isinstance(strict, Refused) and not isinstance(step.result, Refused):
                seen["taken", strict.clause] += 1
            elif isinstance(step.result, Refused):
                seen[step.result.clause, step.result.error] += 1
    lenient = {clause for kind, clause in seen if kind == "taken"}
    assert lenient >= {"BAT-4", "BAT-5", "BAT-6", "BAT-8", "BAT-9", "BAT-10"}
    assert {error for clause, error in seen if clause == "BAT-11"} == {INVALID, NULL_POINTER, UNDERFLOW}


@pytest.mark.clause("BAT-18")
def test_what_the_writer_refuses() -> None:
    for header in (
        {"transactional": True},
        {"producer_id": 3, "base_sequence": 0},
        {"producer_id": 3, "producer_epoch": 0},
    ):
        with pytest.raises(ValueError):
            impl.Encoder(**header)
    encoder = impl.Encoder(5)
    assert encoder.finish() == b""
    encoder.append(NOW, b"k", b"v")
    with pytest.raises(ValueError):
        encoder.append(-2, b"k", b"v")
    with pytest.raises(ValueError):
        encoder.append(NOW, b"k", b"v", offset=5)


@pytest.mark.clause("BAT-19")
def test_a_compressed_part_is_kept() -> None:
    batch = fmt.built(0, [LogRecord(0, NOW, b"k", b"v" * 300, (Header(b"h", None),))], attributes=4)
    packed = compress(4, fmt.record_bytes(batch.records[0])) + bytes.fromhex("502a4d18" + "00000000")
    other = fmt.encode(replace(batch, compressed=packed))
    assert other != fmt.encode(batch)
    assert fmt.encode(fmt.decode(other)) == other


@pytest.mark.clause("BAT-8")
def test_the_example_of_the_docs_is_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "storage" / "batch.md").read_text("utf-8")
    block = page.partition("```text\n")[2].partition("```")[0]
    data = bytes.fromhex("".join(re.match(r"[0-9a-f ]+?(?=   )", line)[0] for line in block.splitlines()))  # type: ignore[index]
    batch = fmt.decode(data)
    assert (batch.base_offset, batch.producer_id, batch.base_sequence, batch.leader_epoch) == (70, 4000, 12, 5)
    assert fmt.log_records(batch) == (
        LogRecord(70, NOW, b"user-1", b"hello", (Header(b"h", b"1"),)),
        LogRecord(71, NOW + 250, None, b""),
    )


# ---- the leader
def taken(batch: Batch, **how: Any) -> Any:
    """What the leader answers."""
    usual = {
        "to_magic": 2, "initial_offset": 100, "compacted_topic": False, "timestamp_type": "CreateTime",
        "timestamp_before_max_ms": 10, "timestamp_after_max_ms": 10, "partition_leader_epoch": 4, "now": NOW,
        "target_compression": "none", "origin": "CLIENT",
    }  # fmt: skip
    step = machine.apply(spec.CurrentBatch(fmt.encode(batch)), "validate", usual | how)
    assert isinstance(step, Step)
    return step.result


THREE = fmt.built(0, [LogRecord(n, NOW + n, b"k%d" % n, b"v") for n in range(3)])


@pytest.mark.clause("BAT-20")
def test_a_clients_batch_as_a_whole() -> None:
    for wrong in (
        replace(THREE, last_offset_delta=3),
        fmt.emptied(THREE),
        replace(THREE, producer_id=1, producer_epoch=0),
        fmt.built(0, [LogRecord(0, NOW, fmt.COMMIT, EPOCH)], attributes=0x30, producer_id=1, producer_epoch=0),
    ):
        assert taken(wrong) == Refused("BAT-20", INVALID)


@pytest.mark.clause("BAT-21")
@pytest.mark.clause("BAT-22")
def test_keys_and_timestamps() -> None:
    keyless = fmt.built(0, [LogRecord(0, NOW, None, b"v"), LogRecord(1, NOW, b"k", b"v")])
    assert taken(keyless, compacted_topic=True).clause == "BAT-21"
    assert taken(keyless)["batches"][0]["baseOffset"] == 100
    late = fmt.built(0, [LogRecord(0, NOW, None, b"v"), LogRecord(1, NOW + 11, b"k", b"v")])
    assert taken(late, compacted_topic=True).clause == "BAT-22"
    for timestamp, good in ((NOW - 10, True), (NOW - 11, False), (NOW + 10, True), (NOW + 11, False), (-1, True)):
        answer = taken(fmt.built(0, [LogRecord(0, timestamp, b"k", b"v")]))
        assert isinstance(answer, Refused) != good
    assert (
        taken(fmt.built(0, [LogRecord(0, NOW + 999, b"k", b"v")]), timestamp_type="LogAppendTime")["maxTimestampMs"]
        == NOW
    )
    early = fmt.built(0, [LogRecord(n, -9, b"k", b"v") for n in range(2)])
    for codec in ("none", "zstd"):
        said = taken(early, timestamp_before_max_ms=LONG_MAX, target_compression=codec)
        assert [r["t"] for r in said["batches"][0]["records"]] == [-9, -9]
    flagged = fmt.built(0, [LogRecord(0, NOW, b"k", b"v")], attributes=fmt.LOG_APPEND_TIME, append_time=NOW)
    for topic in ("CreateTime", "LogAppendTime"):
        assert taken(flagged, timestamp_type=topic).clause == "BAT-22"


@pytest.mark.clause("BAT-23")
def test_in_place_or_anew() -> None:
    for source in CODECS:
        for target in CODECS.values():
            answer = taken(replace(THREE, attributes=source), target_compression=target.name)
            assert answer["messageSizeMaybeChanged"] == (source != target.id)
            said = answer["batches"][0]
            assert (said["baseOffset"], said["leaderEpoch"], said["compression"]) == (100, 4, target.name)
    data = fmt.encode(replace(THREE, attributes=1))
    stamped = impl.stamp(data, 100, 4, False, THREE.max_timestamp)
    assert stamped[17:] == data[17:]
    assert impl.stamp(data, 100, 4, True, NOW)[17:21] != data[17:21]


@pytest.mark.parametrize("deviation", machine.deviations, ids=lambda d: d.id)
def test_a_known_deviation_shows_at_the_end_of_its_history(deviation: Any) -> None:
    right, wrong = shown_by(machine, deviation)
    assert right != wrong
