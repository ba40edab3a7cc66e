"""Arguments that come again are decoded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkaspec.contract.codec import decoder, interned


class Entry(NamedTuple):
    epoch: int
    start_offset: int


def test_equal_json_is_decoded_once_and_what_changed_is_decoded_again() -> None:
    made, listed = decoder(tuple[Entry, ...]), decoder(Sequence[Entry])
    assert made is not None
    assert listed is not None
    once, lists = interned(made), interned(listed)
    value = [[1, 2]]
    assert once(value) is once([[1, 2]])
    value[0][1] = 3
    assert once(value) == (Entry(1, 3),)
    assert once((Entry(1, 2),)) == (Entry(1, 2),)
    lists([[1, 2]]).clear()
    assert lists([[1, 2]]) == [Entry(1, 2)]
