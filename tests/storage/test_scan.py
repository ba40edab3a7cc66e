"""The compiled decoder: rows as the data says, damage found where it is, no load outside the data."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import struct
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkaspec.contract import clauses
from kafkaspec.errors import UserError
from kafkaspec.impl.common import kernels, scan
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import BATCH, RECORD, Chunk, Ending
from kafkaspec.impl.common.scan import Problem
from kafkaspec.impl.common.writer import write_batches
from kafkaspec.spec.common import record_format as spec
from tests.storage import segments
from tests.storage.segments import FIRST, NAME, NOW, Read, batches, empty, marker, message, read, sealed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


RECORDED = Path(__file__).parents[1] / "recordings" / "audit"
ARCHIVES = ("single-basic/nodes-after-clean-stop", "compaction-retention/node-after-sigkill-swap")


@pytest.fixture(scope="module")
def recorded() -> list[bytes]:
    """Segments that brokers wrote: every codec, transactions, compacted topics, the metadata log."""
    out = list[bytes]()
    for name in ARCHIVES:
        with tarfile.open(RECORDED / f"{name}.tar.gz") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.name.endswith(".log") and member.size else None
                out += [file.read()] if file is not None else []
    assert len(out) > 50
    return out


# ---- whole segments --------------------------------------------------------------------------------------------------
def test_a_row_says_what_the_header_and_the_records_say(path: Path) -> None:
    data = bytes(
        write_batches(
            [b"k", None, b""], [b"v", None, None], [NOW, NOW + 5, NOW - 3], batch_records=3, base_offset=FIRST,
            leader_epoch=4, producer_id=12, producer_epoch=2, base_sequence=2**31 - 1, attributes=0x10,
        )
    )  # fmt: skip
    found = read(path, data, records=True)
    (row,) = found.rows
    assert {n: int(row[n]) for n in BATCH.names or ()} == {
        "position": 0, "size": len(data), "base_offset": FIRST, "last_offset": FIRST + 2, "leader_epoch": 4, "magic": 2,
        "crc": segments.checksum(data[21:]), "attributes": 0x10, "base_timestamp": NOW, "max_timestamp": NOW + 5,
        "producer_id": 12, "producer_epoch": 2, "base_sequence": 2**31 - 1, "count": 3, "problem": 0, "problem_at": -1,
        "first_record": FIRST, "last_record": FIRST + 2, "largest_timestamp": NOW + 5, "tombstones": 2,
        "control_type": -1, "coordinator_epoch": -1,
    }  # fmt: skip
    assert found.ending == Ending(len(data), len(data), "", FIRST + 3)
    assert found.records["offset"].tolist() == [FIRST, FIRST + 1, FIRST + 2]
    assert found.records["timestamp"].tolist() == [NOW, NOW + 5, NOW - 3]
    assert found.records["flags"].tolist() == [3, 0, 1]
    assert found.records["key_hash"][1].tolist() == [0, 0]
    assert found.records["key_hash"][2].all()


def test_control_batches_empty_batches_and_append_time(path: Path) -> None:
    times = [NOW, NOW + 1]
    stamped = bytes(
        write_batches(
            None, [b"a", b"b"], times, batch_records=2, base_offset=FIRST + 9, attributes=8, append_time=NOW + 70
        )
    )
    data = marker(FIRST, 1, coordinator_epoch=21) + marker(FIRST + 1, 0) + empty(FIRST + 2, FIRST + 8) + stamped
    found = read(path, data, records=True)
    assert found.rows["control_type"].tolist() == [1, 0, -1, -1]
    assert found.rows["coordinator_epoch"].tolist() == [21, 3, -1, -1]
    assert found.rows["first_record"].tolist() == [FIRST, FIRST + 1, -1, FIRST + 9]
    assert found.rows["largest_timestamp"].tolist() == [NOW, NOW, -1, NOW + 70]
    assert found.records["timestamp"].tolist() == [NOW, NOW, NOW + 70, NOW + 70]
    assert found.records["flags"].tolist() == [7, 7, 2, 2]
    assert not len(found.bad)


@pytest.mark.parametrize("buffer", [61, 62, 100, 333, 4096])
def test_the_buffer_does_not_matter(path: Path, buffer: int) -> None:
    data = b"".join(batches(random.Random(buffer), 80))
    one, other = read(path, data, records=True), read(path, None, records=True, buffer=buffer)
    assert np.array_equal(one.rows, other.rows)
    assert np.array_equal(one.records, other.records)
    assert one.ending == other.ending
    assert int(one.rows["count"].sum()) == len(one.records)


def test_chunks_are_bounded_and_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(batches(random.Random(3), 60))
    whole = read(path, data, records=True)
    monkeypatch.setattr(scan, "ROWS", 7)
    monkeypatch.setattr(scan, "RECORDS", 4)
    parts = list(scan.read_segment(File(path, len(data)), records=True))
    chunks = [c for c in parts if isinstance(c, Chunk)]
    assert all(0 < len(c.batches) <= 7 for c in chunks)
    assert np.array_equal(np.concatenate([c.batches for c in chunks]), whole.rows)
    assert sum(len(c.records) for c in chunks if c.records is not None) == len(whole.records)


def test_headers_alone(path: Path) -> None:
    data = b"".join(batches(random.Random(4)))
    deep, flat = read(path, data), read(path, None, deep=False)
    names = list(BATCH.names or ())
    for name in names[:16]:
        assert np.array_equal(deep.rows[name], flat.rows[name]), name
    for name in names[16:]:
        assert (flat.rows[name] == -1).all(), name


def test_from_a_position_on(path: Path) -> None:
    data = b"".join(batches(random.Random(5)))
    whole = read(path, data)
    for i in (0, 1, 20, len(whole.rows) - 1):
        part = read(path, None, start=int(whole.rows["position"][i]))
        assert np.array_equal(part.rows, whole.rows[i:])
        assert part.ending == whole.ending
    assert read(path, None, start=len(data)).ending == Ending(len(data), len(data))


def test_checksum_by_tables_finds_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(batches(random.Random(6)))
    one = read(path, data, records=True)
    by_tables = kernels.reader(True, 0)
    monkeypatch.setattr(kernels, "reader", lambda deep: by_tables)
    other = read(path, None, records=True)
    assert np.array_equal(one.rows, other.rows)
    assert not len(other.bad)
    assert segments.checksum(b"123456789") == 0xE3069283


def test_hashes_depend_on_every_byte_and_on_nothing_else(path: Path) -> None:
    keys = [b"", b"\0", b"\0\0", *[bytes(n) + b"x" for n in range(60)], *[b"x" + bytes(n) for n in range(1, 60)]]
    keys += [bytes([*range(40)][:i] + [255] + [*range(40)][i + 1 :]) for i in range(40)]
    values = [b"v"] * len(keys)
    first = read(path, bytes(write_batches(keys, values, NOW, batch_records=7, base_offset=FIRST)), records=True)
    again = read(path, bytes(write_batches(keys, values, NOW + 9, batch_records=50, base_offset=9999)), records=True)
    for half in (0, 1):
        assert len(np.unique(first.records["key_hash"][:, half])) == len(set(keys)) == len(keys)
    assert len(np.unique(first.records["hash"])) == len(keys)
    for name in ("key_hash", "hash"):
        assert np.array_equal(first.records[name], again.records[name])
    swapped = read(path, bytes(write_batches(values, keys, NOW, batch_records=7)), records=True)
    assert len(np.unique(swapped.records["hash"])) == len(keys)
    assert not set(swapped.records["hash"].tolist()) & set(first.records["hash"].tolist())
    null = read(path, bytes(write_batches(None, [b"", None], NOW, batch_records=2)), records=True)
    assert len({*null.records["hash"].tolist(), *first.records["hash"].tolist()}) == len(keys) + 2


# ---- damage ----------------------------------------------------------------------------------------------------------
def one_flip(whole: Read, found: Read, at: int) -> None:
    i = int(np.searchsorted(whole.rows["position"], at, side="right")) - 1
    hit = whole.rows[i]
    start, place = int(hit["position"]), at - int(hit["position"])
    assert len(found.rows) == len(whole.rows)
    assert found.ending.reason == ""
    assert np.array_equal(np.delete(found.rows, i), np.delete(whole.rows, i))
    if place < 8 or 12 <= place < 16:
        assert not len(found.bad)
        name = "base_offset" if place < 8 else "leader_epoch"
        assert found.rows[name][i] != hit[name]
        return
    problem, shown = {16: (Problem.MAGIC, 16)}.get(place, (Problem.LENGTH, 8) if place < 12 else (Problem.CRC, 17))
    (bad,) = found.bad
    assert (bad["problem"], bad["problem_at"]) == (problem, start + shown)
    assert (bad["position"], bad["size"]) == (start, hit["size"])
    assert len(found.records) == len(whole.records) - (whole.records["batch"] == i).sum()


def flipped(path: Path, contents: list[bytes], r: random.Random, count: int) -> None:
    """Damage of single bytes, spread over segments by their size: outside the CRC a row changes; elsewhere exactly one
    row is bad, the one that was hit, and the others are as they were."""
    for data in r.choices(contents, [len(c) for c in contents], k=count // 50):
        whole = read(path, data, records=True)
        assert not len(whole.bad)
        for at, damaged in segments.flips(r, data, 50):
            one_flip(whole, read(path, damaged, records=True), at)


@pytest.mark.clause("BAT-1")
@pytest.mark.clause("BAT-2")
@pytest.mark.clause("BAT-3")
def test_flips_are_found(path: Path) -> None:
    r = random.Random(1)
    flipped(path, [b"".join(batches(r, 30)) for _ in range(4)], r, 300)


@pytest.mark.clause("BAT-1")
@pytest.mark.clause("BAT-2")
@pytest.mark.clause("BAT-3")
def test_flips_of_recorded_segments_are_found(tmp_path: Path, recorded: list[bytes]) -> None:
    flipped(tmp_path / "unnamed.log", recorded, random.Random(2), 300)


@pytest.mark.deep
def test_ten_thousand_flips_of_recorded_segments_are_found(tmp_path: Path, recorded: list[bytes]) -> None:
    flipped(tmp_path / "unnamed.log", recorded, random.Random(3), 10_000)


def test_wrong_lengths(path: Path) -> None:
    r = random.Random(8)
    data = b"".join(batches(r, 30))
    whole = read(path, data, records=True)
    for i, start in enumerate(whole.rows["position"].tolist()):
        for length in (0, -1, -12, 14, 48, 49, 2**31 - 1, int(whole.rows["size"][i]) - 11, len(data) - start - 12):
            damaged = bytearray(data)
            damaged[start + 8 : start + 12] = struct.pack(">i", length)
            if damaged != data:
                buffer = r.choice((100, 150, 250, 1 << 20))
                one_flip(whole, read(path, bytes(damaged), records=True, buffer=buffer), start + 11)


def test_a_stretch_that_is_gone(path: Path) -> None:
    r = random.Random(9)
    data = b"".join(batches(r, 40))
    whole = read(path, data)
    for fill in (bytes(700), r.randbytes(700), b"\x02" * 700):
        at = int(whole.rows["position"][9]) + 20
        found = read(path, data[:at] + fill + data[at + 700 :])
        left = found.rows["position"][found.rows["problem"] == 0].tolist()
        hit = (whole.rows["position"] + whole.rows["size"] > at) & (whole.rows["position"] < at + 700)
        assert left == whole.rows["position"][~hit].tolist()
        assert found.ending == whole.ending
        assert int(found.rows["size"].sum()) == len(data)


def test_damaged_batches_behind_each_other(path: Path) -> None:
    parts = batches(random.Random(10), 12)
    bad = [*parts[:3], *[p[:-1] + bytes([p[-1] ^ 1]) for p in parts[3:]]]
    found = read(path, b"".join(bad))
    assert found.bad["problem"].tolist() == [Problem.CRC] * 9
    assert found.ending.reason == ""
    assert found.ending.end_offset == read(path, b"".join(parts[:3])).ending.end_offset


def test_damaged_batches_are_gone_over_a_few_times_and_no_more(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the next good batch is looked for, not all that is in memory is looked at for each."""
    parts = batches(random.Random(13), 200)
    data = b"".join(p[:-1] + bytes([p[-1] ^ 1]) for p in parts)
    gone_over = 0
    functions = kernels.reader(True).functions
    seek = functions["seek"]

    def counted(at: int, stop: int, *limits: int) -> int:
        nonlocal gone_over
        gone_over += stop - at
        return int(seek(at, stop, *limits))

    monkeypatch.setitem(functions, "seek", counted)
    assert len(read(path, data).bad) == len(parts)
    assert 0 < gone_over < 2 * len(data)


def test_every_cut_of_the_last_batch(path: Path) -> None:
    parts = batches(random.Random(11), 4)
    data, last = b"".join(parts), len(b"".join(parts[:-1]))
    for size in range(last + 1, len(data)):
        found = read(path, data[:size])
        assert len(found.rows) == 3
        assert not len(found.bad)
        assert (found.ending.end, found.ending.size, found.ending.torn) == (last, size, True)
        if size >= last + 17:
            assert found.ending.reason == f"a cut batch of {len(parts[-1])} bytes, {size - last} there"
        assert found.ending.end_offset == int(found.rows["last_offset"][-1]) + 1


def test_tails_that_are_no_batch(path: Path) -> None:
    r = random.Random(12)
    data = b"".join(batches(r, 4))
    for size in (1, 16, 17, 61, 5000, 3 << 20):
        zeros = read(path, data + bytes(size)).ending
        assert (zeros.reason, zeros.end, zeros.torn) == (f"{size} bytes of zeros", len(data), True)
    garbage = read(path, data + r.randbytes(5000)).ending
    assert (garbage.reason, garbage.end, garbage.torn) == ("5000 bytes that are no batch", len(data), False)
    nothing = read(path, b"").ending
    assert nothing == Ending(0, 0)


def test_contradictions_under_a_right_checksum(path: Path) -> None:
    good = bytes(write_batches([b"k"], [b"v"], [NOW], batch_records=1, base_offset=FIRST))
    two = bytes(write_batches([b"k", b"k"], [b"v", b"v"], [NOW, NOW], batch_records=2, base_offset=FIRST))
    control = marker(FIRST, 1)

    def changed(batch: bytes, at: int, by: bytes) -> bytes:
        return sealed(batch[:at] + by + batch[at + len(by) :])

    cases = [
        (changed(good, 21, b"\0\x05"), Problem.ATTRIBUTES, 21),
        (changed(good, 21, b"\x01\0"), Problem.ATTRIBUTES, 21),
        (changed(good, 23, b"\xff\xff\xff\xff"), Problem.LAST_OFFSET_DELTA, 23),
        (changed(good, 57, b"\xff\xff\xff\xff"), Problem.COUNT, 57),
        (changed(good, 57, b"\0\0\0\0"), Problem.COUNT, 61),
        (changed(good, 57, b"\0\0\0\x02"), Problem.RECORD, len(good)),
        (changed(two, 57, b"\0\0\0\x01"), Problem.COUNT, 61 + (len(two) - 61) // 2),
        (changed(good, 35, b"\0" * 8), Problem.TIMESTAMP, 35),
        (changed(good, 61, b"\x7e"), Problem.RECORD, 61),
        (changed(good, 21, b"\0\x01"), Problem.COMPRESSION, 61),
        (changed(two, 23, b"\0\0\0\0"), Problem.OFFSET, 61 + (len(two) - 61) // 2 + 3),
        (changed(two, len(two) - 6, b"\0"), Problem.OFFSET, len(two) - 6),
        (changed(control, 66, b"\xff"), Problem.CONTROL, 61),
        (sealed(good[:61] + b"\x0e\0\0\0\x03\x02v\0"), Problem.RECORD, 61),  # a key of -2 bytes
        (sealed(good[:61] + b"\x0e\0\0\0\x02k\x03\0"), Problem.RECORD, 61),  # a value of -2
        (sealed(good[:61] + b"\x12\0\0\0\x02k\x01\x02\x01\x01"), Problem.RECORD, 61),  # a header without a key
        (sealed(good[:61] + b"\x12\0\0\0\x02k\x01\x02\0\x03"), Problem.RECORD, 61),  # a header's value of -2
        (sealed(control[:61] + b"\x12\0\0\0\x06\0\0\5\x01\0"), Problem.CONTROL, 61),  # a key of three bytes
        (sealed(control[:61] + b"\x1e\0\0\0\x08\0\0\0\1\x0a\0\0\0\0\0\0"), Problem.CONTROL, 61),  # a value of five
    ]
    for data, problem, at in cases:
        found = read(path, data, records=True)
        assert [(Problem(int(p)), int(a)) for p, a in found.rows[["problem", "problem_at"]]] == [(problem, at)]
        assert not len(found.records)
        assert found.ending.reason == ""
        flat = read(path, None, deep=False)
        assert bool(len(flat.bad)) == (at < 61 and problem is not Problem.TIMESTAMP)


def test_what_is_odd_but_right(path: Path) -> None:
    good = bytes(write_batches([b"k"], [b"v"], [NOW], batch_records=1, base_offset=FIRST))
    long = sealed(good[:61] + b"\x18\0\0\x80\x80\x80\x80\x70" + good[65:])  # an offset delta with bits beyond its width
    stamped = sealed(good[:21] + b"\0\x08" + good[23:35] + b"\xff" * 7 + b"\x00" + good[43:])  # appended at -256 ms
    for data in (long, stamped):
        assert agree(path, data) is Problem.NONE


def test_a_batch_within_a_record_is_no_batch(path: Path) -> None:
    """A topic may hold copies of batches, even of the same offsets."""
    inner = [bytes(write_batches(None, [b"v" * 99], NOW, batch_records=1, base_offset=FIRST + i)) for i in range(9)]
    outer = bytes(write_batches(None, [b"".join(inner)], NOW, batch_records=1, base_offset=FIRST + 9))
    data = b"".join(inner) + outer[:-1] + b"\1" + marker(FIRST + 10, 1)
    (bad,) = read(path, data).bad
    assert (bad["problem"], bad["size"]) == (Problem.CRC, len(outer))


# ---- the judge: the readable decoder of the spec ---------------------------------------------------------------------
def judged(data: bytes, position: int = 0) -> dict[str, int]:
    """The row that a batch must get, by the spec's decoder."""
    base, length, epoch, magic, crc, *rest = spec.HEADER.unpack_from(data)
    attributes, delta, base_time, max_time, producer, producer_epoch, sequence, count = rest
    row = {
        "position": position, "size": len(data), "base_offset": base, "last_offset": spec.signed(base + delta, 64),
        "leader_epoch": epoch, "magic": magic, "crc": crc, "attributes": attributes & 0xFFFF,
        "base_timestamp": base_time, "max_timestamp": max_time, "producer_id": producer,
        "producer_epoch": producer_epoch, "base_sequence": sequence, "count": count, "problem": 0, "problem_at": -1,
        "first_record": -1, "last_record": -1, "largest_timestamp": -1, "tombstones": -1, "control_type": -1,
        "coordinator_epoch": -1,
    }  # fmt: skip
    assert length == len(data) - 12
    try:
        batch = spec.decode(data, position)
    except spec.Malformed as e:
        number = Problem.TOO_MUCH if isinstance(e, spec.Unread) else Problem(int(e.clause.removeprefix("BAT-")))
        return row | {"problem": int(number), "problem_at": e.position}
    row["tombstones"] = sum(r.value is None for r in batch.records)
    if batch.records:
        row["first_record"], row["last_record"] = (batch.offset(batch.records[i]) for i in (0, -1))
        row["largest_timestamp"] = max(-1, batch.largest_timestamp)
    if batch.control and batch.records:
        marker = spec.marker(batch.records[0])
        row["control_type"] = marker.type
        row["coordinator_epoch"] = -1 if marker.coordinator_epoch is None else marker.coordinator_epoch
    return row


def agree(path: Path, data: bytes) -> Problem:
    """One batch, by both decoders, and its records."""
    found = read(path, data, records=True)
    (row,) = found.rows
    expected = judged(data)
    shown = {n: int(row[n]) for n in BATCH.names or ()}
    if expected["problem"] == Problem.TIMESTAMP:
        rest = ("first_record", "last_record", "largest_timestamp", "tombstones", "control_type", "coordinator_epoch")
        expected |= {n: shown[n] for n in rest}
    assert shown == expected
    if not expected["problem"]:
        batch = spec.decode(data)
        assert found.records["offset"].tolist() == [batch.offset(r) for r in batch.records]
        assert found.records["timestamp"].tolist() == [batch.timestamp(r) for r in batch.records]
        flags = [(r.key is not None) + 2 * (r.value is not None) + 4 * batch.control for r in batch.records]
        assert found.records["flags"].tolist() == flags
    return Problem(expected["problem"])


@pytest.mark.clause("BAT-4")
@pytest.mark.clause("BAT-5")
@pytest.mark.clause("BAT-6")
@pytest.mark.clause("BAT-7")
@pytest.mark.clause("BAT-8")
@pytest.mark.clause("BAT-9")
@pytest.mark.clause("BAT-10")
@pytest.mark.clause("BAT-11")
@pytest.mark.clause("BAT-12")
@pytest.mark.clause("BAT-13")
@pytest.mark.clause("BAT-14")
def test_it_agrees_with_the_spec_on_batches_that_are_wrong_inside(path: Path) -> None:
    r = random.Random(20)
    whole = batches(r, 60)
    seen = {agree(path, b) for b in whole} | {agree(path, mutated(r, r.choice(whole))) for _ in range(500)}
    assert seen >= set(Problem) - {Problem.LENGTH, Problem.MAGIC, Problem.CRC, Problem.TOO_MUCH}


def test_it_agrees_with_the_spec_on_recorded_batches(tmp_path: Path, recorded: list[bytes]) -> None:
    path, codecs = tmp_path / "unnamed.log", set[int]()
    for data in recorded:
        for row in read(path, data, records=True).rows:
            start, stop = int(row["position"]), int(row["position"] + row["size"])
            assert {n: int(row[n]) for n in BATCH.names or ()} == judged(data[start:stop], start)
            codecs.add(int(row["attributes"]) & 7)
    assert codecs == {0, 1, 2, 3, 4}


numbers = st.integers(-(2**63), 2**63 - 1)
small = st.integers(-3, 300)


@st.composite
def odd_batches(draw: st.DrawFn) -> bytes:
    """A batch whose fields are what they like, with a right CRC."""
    records = draw(
        st.lists(
            st.builds(
                spec.Record,
                st.integers(-1, 6) | st.integers(-(2**31), 2**31 - 1),
                small | numbers,
                st.none() | st.binary(max_size=9),
                st.none() | st.binary(max_size=300),
                st.lists(
                    st.builds(spec.Header, st.binary(max_size=3), st.none() | st.binary(max_size=3)), max_size=2
                ).map(tuple),
                st.integers(0, 255),
            ),
            max_size=4,
        )
    )
    if draw(st.booleans()):
        records = [replace(x, offset_delta=i) for i, x in enumerate(records)]
    attributes = draw(st.sampled_from((0, 0, 0, 1, 2, 3, 4, 8, 0x10, 0x20, 0x30, 0x48)) | st.integers(0, 0x7F))
    base_time, stamps = draw(small | numbers), st.none() | numbers
    few = st.integers(-1, 9)
    delta = draw(few | st.integers(-(2**31), 2**31 - 1))
    batch = spec.Batch(
        base_offset=draw(st.integers(0, 2000) | numbers), records=tuple(records), last_offset_delta=delta,
        base_timestamp=base_time, max_timestamp=0, attributes=attributes, leader_epoch=draw(few),
        producer_id=draw(numbers), producer_epoch=draw(few), base_sequence=draw(few),
    )  # fmt: skip
    stamp = draw(stamps)
    if (attributes & 7) > 4:
        batch = replace(batch, attributes=attributes & 0x78)
    batch = replace(batch, max_timestamp=max(-1, batch.largest_timestamp) if stamp is None else stamp)
    return spec.encode(batch)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(odd_batches(), st.data())
def test_it_agrees_with_the_spec_on_random_batches(path: Path, batch: bytes, data: st.DataObject) -> None:
    agree(path, batch)
    body = bytearray(batch)
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(21, len(body) - 1))] = data.draw(st.integers(0, 255))
    agree(path, spec.sealed(body))


def test_every_problem_is_a_clause() -> None:
    assert {scan.TEXTS[p][0] for p in scan.TEXTS} <= {c.id for c in clauses.all_clauses()}
    assert set(scan.TEXTS) == set(Problem) - {Problem.NONE}
    assert all(scan.TEXTS[p][0] == f"BAT-{p.value}" for p in scan.TEXTS if p is not Problem.TOO_MUCH)


# ---- formats 0 and 1 -------------------------------------------------------------------------------------------------
def test_old_messages_are_named(path: Path) -> None:
    parts = [message(i, i % 2, b"key", b"v" * i) for i in range(30)]
    path = path.with_name("00000000000000000000.log")
    found = read(path, b"".join(parts), buffer=100)
    assert found.rows["magic"].tolist() == [0, 1] * 15
    assert found.rows["base_offset"].tolist() == found.rows["last_offset"].tolist() == [*range(30)]
    assert not len(found.bad)
    assert (found.rows["count"] == -1).all()
    parts[7] = parts[7][:-1] + b"w"
    (bad,) = read(path, b"".join(parts)).bad
    assert (bad["problem"], bad["base_offset"]) == (Problem.CRC, 7)
    torn = read(path, b"".join(parts)[:-1]).ending
    assert torn.torn
    assert torn.end_offset == 29


# ---- files -----------------------------------------------------------------------------------------------------------
def test_a_batch_larger_than_the_buffer(path: Path) -> None:
    large = bytes(write_batches(None, [bytes(5 << 20)], NOW, batch_records=1, base_offset=FIRST))
    small = marker(FIRST + 1, 1)
    assert read(path, large + small).rows["first_record"].tolist() == [FIRST, FIRST + 1]
    broken = large[:-1] + b"\1"
    assert read(path, broken + small).bad["problem"].tolist() == [Problem.CRC]


def test_a_length_that_is_nonsense_takes_no_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = list[int]()
    allocate = scan._Window.allocate

    def allocated(window: scan._Window, size: int) -> None:
        taken.append(size)
        allocate(window, size)

    monkeypatch.setattr(scan._Window, "allocate", allocated)
    with path.open("wb") as f:
        f.write(struct.pack(">qiib", FIRST, 90 << 20, 0, 2))
        f.truncate(100 << 20)
    found = read(path)
    assert taken == [scan.BUFFER]
    assert (found.ending.end, found.ending.torn) == (0, False)


def test_a_file_that_shrinks(path: Path) -> None:
    parts = batches(random.Random(13), 200)
    data = b"".join(parts)
    path.write_bytes(data)
    reading = scan.read_segment(File(path, len(data)), buffer=1000)
    window_sized = list[Chunk | Ending]()
    original = os.preadv

    def cut(fd: int, buffers: list[memoryview], at: int) -> int:
        if at > 5000:
            os.truncate(path, 7000)
        return original(fd, buffers, at)

    with pytest.MonkeyPatch.context() as m:
        m.setattr(os, "preadv", cut)
        window_sized += reading
    ending = window_sized[-1]
    assert isinstance(ending, Ending)
    assert ending.size <= 7000 < len(data)
    assert ending.torn


def test_what_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    for name, why in (("none.log", "No such file"), (".", "not a regular file"), ("pipe.log", "not a regular file")):
        with pytest.raises(UserError, match=why):
            list(scan.read_segment(File(tmp_path / name, 0)))


# ---- memory ----------------------------------------------------------------------------------------------------------
class GuardedBuffer:
    """Memory whose last byte is the last before a page that must not be touched."""

    def __init__(self, most: int) -> None:
        pages = -(-most // mmap.PAGESIZE) + 1
        self.map = mmap.mmap(-1, pages * mmap.PAGESIZE)
        self.hold = ctypes.c_char.from_buffer(self.map)
        self.end = ctypes.addressof(self.hold) + (pages - 1) * mmap.PAGESIZE
        protect = ctypes.CDLL(None).mprotect
        assert protect(ctypes.c_void_p(self.end), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0

    def put(self, data: bytes) -> int:
        """Place bytes at the end; their address."""
        ctypes.memmove(self.end - len(data), data, len(data))
        return self.end - len(data)


@pytest.fixture
def guarded() -> Iterator[GuardedBuffer]:
    g = GuardedBuffer(1 << 16)
    yield g
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(g.end), ctypes.c_size_t(mmap.PAGESIZE), 3)


def mutated(r: random.Random, batch: bytes) -> bytes:
    """A batch with some damage behind its CRC, and the CRC made right: what the decoder believes."""
    data = bytearray(batch)
    for _ in range(r.randrange(1, 4)):
        at = r.randrange(61 if len(data) > 61 and r.random() < 0.8 else 21, len(data))
        data[at] = r.choice([0, 1, 2, 0x7F, 0x80, 0xFF, r.randrange(256)])
    if r.random() < 0.3:
        del data[r.randrange(61, len(data) + 1) :]
    return sealed(data)


def test_no_load_outside_the_data(guarded: GuardedBuffer) -> None:
    r = random.Random(14)
    call, table = kernels.reader().functions, kernels.crc_table()
    state = np.zeros(kernels.STATE, np.int64)
    rows, records = np.empty(64, BATCH), np.empty(4096, RECORD)
    whole = batches(r, 60)
    outcomes = set[int]()
    for n in range(6000):
        batch = r.choice(whole)
        data = mutated(r, batch) if n % 3 else r.randbytes(r.randrange(0, 200))
        if n % 5 == 0:
            data = data[: r.randrange(len(data) + 1)]
        at = guarded.put(data)
        state[:] = 0
        state[[kernels.AT, kernels.STOP, kernels.TABLE]] = at, guarded.end, table.ctypes.data
        state[[kernels.ROW, kernels.ROWS_ROOM]] = rows.ctypes.data, len(rows)
        if n % 2:
            state[[kernels.RECORDS_AT, kernels.RECORDS_ROOM]] = records.ctypes.data, len(records)
        why = call["scan"](state.ctypes.data)
        assert why in (kernels.MORE, kernels.ODD, kernels.COMPRESSED, kernels.RECORD_ROOM)
        outcomes |= {100 + int(p) for p in rows["problem"][: int(state[kernels.ROWS])]} | {why}
        call["seek"](at, guarded.end, 0, 2**63 - 1, 2**31)
    seen = {Problem(n - 100) for n in outcomes if n >= 100}
    assert seen >= {Problem.NONE, Problem.COUNT, Problem.RECORD, Problem.OFFSET, Problem.TIMESTAMP, Problem.CONTROL}
