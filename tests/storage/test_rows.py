"""What checks ask of a chunk's batches, against the words that say it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kafkaspec.impl.common.rows import BATCH, Chunk, last_not_above, running_maximum

NEAR = st.integers(-1, 4)
"""Numbers that meet often."""


def rows(batches: list[tuple[int, int, int, int]]) -> NDArray[Any]:
    """Batches by problem, magic, base and last offset."""
    out = np.zeros(len(batches), BATCH)
    for name, column in zip(
        ("problem", "magic", "base_offset", "last_offset"), zip(*batches, strict=True), strict=False
    ):
        out[name] = column
    return out


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2), NEAR, NEAR), max_size=5))
def test_a_chunk_says_of_its_batches_what_they_are(batches: list[tuple[int, int, int, int]]) -> None:
    chunk = Chunk(rows(batches))
    good = [b for b in batches if b[0] == 0]
    assert chunk.bad.tolist() == [b[0] != 0 for b in batches]
    assert chunk.damaged == (good != batches)
    assert chunk.legacy == any(magic < 2 for _, magic, _, _ in good)
    assert chunk.base.tolist() == [base for _, _, base, _ in batches]
    assert chunk.last.tolist() == [last for _, _, _, last in batches]
    base, last = chunk.believed
    assert base.tolist() == [base for _, _, base, _ in good]
    assert last.tolist() == [last for _, _, _, last in good]
    inside = all(base <= last for _, _, base, last in good)
    assert chunk.rising == (inside and all(a[3] < b[2] for a, b in itertools.pairwise(good)))
    upto = itertools.accumulate((-1 if problem else last for problem, _, _, last in batches), max)
    assert chunk.reached.tolist() == list(upto)


def test_a_chunk_is_not_its_rows() -> None:
    """Columns are copies: whoever writes into one changes nobody's rows."""
    chunk = Chunk(rows([(0, 2, 3, 4)]))
    chunk.base[0] = chunk.last[0] = 9
    assert (chunk.batches["base_offset"][0], chunk.batches["last_offset"][0]) == (3, 4)


@given(st.lists(NEAR, max_size=6))
def test_the_largest_up_to_each(x: list[int]) -> None:
    assert running_maximum(np.array(x, np.int64)).tolist() == list(itertools.accumulate(x, max))


@given(st.lists(NEAR, max_size=3, unique=True).map(sorted), st.lists(NEAR, max_size=4))
def test_the_last_start_that_is_not_above(starts: list[int], x: list[int]) -> None:
    found = last_not_above(np.array(starts, np.int64), np.array(x, np.int64))
    assert found.tolist() == [sum(s <= n for s in starts) - 1 for n in x]
