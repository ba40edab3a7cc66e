"""Entries of transaction indexes: what a reader of committed records must leave out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, NamedTuple

from kafkaspec.contract.clauses import states
from kafkaspec.contract.governs import governs


class AbortedTransaction(NamedTuple):
    """Its producer, its first record's offset, its marker's, and what was stable then."""

    producer_id: Annotated[int, governs("TXI-1")]
    first_offset: Annotated[int, governs("TXI-1")]
    last_offset: Annotated[int, governs("TXI-1")]
    last_stable_offset: Annotated[int, governs("TXI-1")]


Entries = tuple[AbortedTransaction, ...]


@states(without={"impl": "said of what the index is given: the producer state makes the entries (PSM-16)"})
def in_order(entries: Sequence[AbortedTransaction]) -> bool:
    """Whether a broker that takes one batch at a time can have appended these, one after the other.

    TXI-12: A broker that appends one batch at a time, as a leader does and a recovery, appends in the order of the
    abort markers, over all segments: last offsets rise strictly, last stable offsets never fall, an entry begins before
    it ends, its last stable offset is at most its last offset + 1, and it begins at or above the last stable offset of
    every entry before it. Of several batches in one append, as a follower has them, only this is sure: last offsets
    rise strictly, and an entry begins before it ends; all transactions of the append have begun before what is stable
    is asked for the first marker. [UnifiedLog.append, ProducerStateManager.lastStableOffset and LogSegment.recover,
    Kafka 4.3.0]
    """
    return all(e.first_offset < e.last_offset and e.last_stable_offset <= e.last_offset + 1 for e in entries) and all(
        before.last_offset < e.last_offset
        and before.last_stable_offset <= e.last_stable_offset
        and e.first_offset >= before.last_stable_offset
        for before, e in pairwise(entries)
    )


def overlapping(entries: Iterable[AbortedTransaction], fetch_offset: int, upper_bound: int) -> Entries:
    """The entries that say something about the offsets in [fetch_offset, upper_bound)."""
    return tuple(e for e in entries if e.last_offset >= fetch_offset and e.first_offset < upper_bound)
