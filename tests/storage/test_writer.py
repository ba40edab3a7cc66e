"""The compiled writer: the spec's bytes, from columns."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaspec.impl.common import kernels
from kafkaspec.impl.common.writer import Column, header_column, write_batches
from kafkaspec.spec.common import compression
from kafkaspec.spec.common import record_format as spec

NOW = 1_700_000_000_000

contents = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
times = st.integers(NOW - 10, NOW + 10**6) | st.integers(-1, 2**62)
Row = tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]
rows = st.lists(st.tuples(contents, contents, times, headers), max_size=20)


def by_spec(found: list[Row], size: int, **more: int) -> bytes:
    """The same batches by the spec, one after the other."""
    out, base, sequence = b"", more.pop("base_offset"), more.pop("base_sequence")
    for first in range(0, len(found), size):
        records = [
            spec.LogRecord(base + i, t, k, v, tuple(spec.Header(n.encode(), x) for n, x in h))
            for i, (k, v, t, h) in enumerate(found[first : first + size])
        ]
        out += spec.encode(spec.built(base, records, base_sequence=sequence, **more))
        base += len(records)
        sequence = (sequence + len(records)) % 2**31 if sequence >= 0 else sequence
    return out


@pytest.mark.clause("BAT-12")
@pytest.mark.clause("BAT-18")
@settings(max_examples=200, deadline=None)
@given(
    rows,
    st.integers(1, 9),
    st.sampled_from((0, 8, 0x10, 0x20, 0x38)),
    st.sampled_from((0, 1, 2, 3, 4)),
    st.integers(-1, 2**31 - 1),
    st.integers(0, 2**62),
)
def test_the_bytes_are_the_specs(
    found: list[Row],
    size: int,
    flags: int,
    codec: int,
    sequence: int,
    base: int,
) -> None:
    more = {
        "attributes": flags | codec, "base_offset": base, "leader_epoch": 3, "producer_id": 2**40, "producer_epoch": 9,
        "base_sequence": sequence, "append_time": NOW if flags & 8 else -1,
    }  # fmt: skip
    written = write_batches(
        [k for k, *_ in found],
        [v for _, v, *_ in found],
        [t for *_, t, _ in found],
        headers=header_column([h for *_, h in found]),
        batch_records=size,
        compress=partial(compression.compress, codec) if codec else None,
        **more,
    )
    assert bytes(written) == by_spec(found, size, **more)


def test_lists_columns_and_one_timestamp_for_all_give_the_same() -> None:
    r = random.Random(1)
    values = [r.randbytes(r.randrange(300)) for _ in range(1000)]
    times = [NOW] * 1000
    by_list = bytes(write_batches(None, values, times, batch_records=7))
    found: list[Row] = [(None, v, NOW, []) for v in values]
    assert by_list == by_spec(found, 7, base_offset=0, base_sequence=-1, leader_epoch=0)
    assert by_list == bytes(write_batches(Column.nulls(1000), Column.of(values), NOW, batch_records=7))
    assert by_list == bytes(write_batches(None, memory_column(values), np.array(times), batch_records=7))
    assert bytes(write_batches([], [], [], batch_records=1)) == b""


@pytest.mark.clause("BAT-16")
def test_sequences_go_on_from_the_largest_to_0() -> None:
    found: list[Row] = [(None, b"v", NOW, [])] * 5
    written = write_batches(
        None, [b"v"] * 5, NOW, batch_records=1, base_sequence=2**31 - 3, producer_id=1, producer_epoch=0
    )
    assert bytes(written) == by_spec(
        found, 1, base_offset=0, base_sequence=2**31 - 3, producer_id=1, producer_epoch=0, leader_epoch=0
    )


def memory_column(values: list[bytes]) -> Column:
    return Column(memoryview(b"".join(values)), np.array([len(v) for v in values])[::1])


def test_checksums_by_tables_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    one = bytes(write_batches(None, [b"x" * 5000, b"y"], NOW, batch_records=1))
    by_tables = kernels.writer(0)
    monkeypatch.setattr(kernels, "writer", lambda: by_tables)
    assert bytes(write_batches(None, [b"x" * 5000, b"y"], NOW, batch_records=1)) == one


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        write_batches([b"k"], [b"v", b"w"], NOW, batch_records=1)
    with pytest.raises(ValueError, match="different lengths"):
        write_batches(None, [b"v"], [NOW, NOW], batch_records=1)
    with pytest.raises(ValueError, match="batches of no record"):
        write_batches(None, [b"v"], NOW, batch_records=0)
    with pytest.raises(ValueError, match="sizes"):
        write_batches(None, Column(b"abc", np.array([4])), NOW, batch_records=1)
    with pytest.raises(ValueError, match="sizes"):
        write_batches(None, Column(b"abc", np.array([3, -2])), NOW, batch_records=1)
    with pytest.raises(ValueError, match="below -1"):
        write_batches(None, [b"v"], [-2], batch_records=1)
