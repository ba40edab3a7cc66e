"""What a fetch of a partition with transactions gets, and what its consumer makes of it.

The rules are LSO, with the operations. Source: UnifiedLog, LocalLog and LogSegment, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkaspec.contract.clauses import states
from kafkaspec.contract.machine import Refused
from kafkaspec.contract.numbers import Offset
from kafkaspec.spec.common import transactional_log
from kafkaspec.spec.common.aborted_transaction import Entries, overlapping
from kafkaspec.spec.common.kafka import OUT_OF_RANGE
from kafkaspec.spec.common.transactional_log import BatchView, Fetch, LogBatch, PartitionLog, Poll, handed_out

LOG = transactional_log.LOG
LOCAL = "LocalLog and LogSegment, Kafka 4.3.0"
NO_SUCH_OFFSET = Refused("LSO-10", OUT_OF_RANGE)


@states()
def upper_bound(state: PartitionLog, base: Offset, behind: Sequence[LogBatch]) -> Offset:
    """Up to where aborted transactions are collected for a fetch from the segment at `base`, where these batches stand
    behind what it gets.

    LSO-13: The aborted transactions of a fetch are collected up to the last offset of the next batch behind it that
    has an entry in the segment's offset index, or, if that batch stands right behind it and is the index's first, of
    the one after it; without one up to where the next segment begins, or the log ends. That is never less than what the
    fetch gets, and need not be the least. With an index interval of 0 every batch has an entry but the first one that
    comes to a segment after it was made, cut or opened. [{LOCAL}, addAbortedTransactions and fetchUpperBoundOffset]
    """
    first = next((b for b in state.of_segment(base) if b.is_indexed), None)
    found = [b for b in behind if b.is_indexed and not (b == first and b == behind[0])]
    if found:
        return found[0].last_offset
    following = state.next_segment(base)
    return state.log_end if following is None else following


@states("LSO-12")
def collected(state: PartitionLog, base: Offset, fetch_offset: Offset, bound: Offset) -> Entries:
    """Of the segment at `base` and those behind it."""
    return overlapping((a for a in state.aborted if a.last_offset >= base), fetch_offset, bound)


def fetched(state: PartitionLog, start_offset: Offset, bound: Offset, max_batches: int) -> tuple[Offset, int, int]:
    """Of a fetch below `bound`: the segment's base offset, and from which to which of its batches. There is a batch
    that ends at or above the start."""
    base = next(s for s in state.segments if s >= state.floor(start_offset) and _has(state, s, start_offset))
    batches = state.of_segment(base)
    first = next(n for n, b in enumerate(batches) if b.last_offset >= start_offset)
    most = min(len(batches), first + max_batches)
    return base, first, next((n for n in range(first, most) if batches[n].last_offset >= bound), most)


def _has(state: PartitionLog, base: Offset, offset: Offset) -> bool:
    return any(b.last_offset >= offset for b in state.of_segment(base))


@states(without={"LSO-12": {"audit": "what a fetch is told is in no file; what it is told from: PSM-16 and TXI-12"}})
def answer(
    state: PartitionLog,
    start_offset: Offset,
    max_batches: int,
    read_committed: bool,
    collect: Callable[[PartitionLog, Offset, Offset, Offset], Entries] = collected,
) -> Fetch | Refused:
    """What a fetch gets.

    LSO-10: A fetch gets whole batches of one segment in offset order, from the one that the start offset is in or, in a
    gap, before: as many as it has room for, at least one if there is any, and none that ends at or above the last
    stable offset if it is read_committed, the high watermark if it is not. Below the log start and above the log's end
    it is refused; from the bound on it gets nothing. [{LOG}, read; KAFKA-9196]

    LSO-12: A read_committed fetch gets with the batches the aborted transactions, producer id and first offset, that
    overlap what it reads: every transactional record that it gets of a transaction that was aborted is told by one.
    [KIP-98; {LOCAL}, collectAbortedTransactions]
    """
    if not state.log_start <= start_offset <= state.log_end:
        return NO_SUCH_OFFSET
    bound = state.last_stable if read_committed else state.high_watermark
    nothing = Fetch((), () if read_committed else None)
    if start_offset >= bound:
        return nothing
    base, first, last = fetched(state, start_offset, bound, max_batches)
    batches = state.of_segment(base)
    if not read_committed:
        return Fetch(tuple(BatchView(*b[:5]) for b in batches[first:last]), None)
    entries = collect(state, base, start_offset, upper_bound(state, base, batches[last:]))
    told = tuple((a.producer_id, a.first_offset) for a in entries)
    return Fetch(tuple(BatchView(*b[:5]) for b in batches[first:last]), told)


def handed_on(found: Fetch | Refused, start_offset: Offset) -> Poll | Refused:
    """What a consumer makes of an answer to its fetch."""
    if isinstance(found, Refused):
        return found
    following = found.batches[-1].last_offset + 1 if found.batches else start_offset
    return Poll(tuple(handed_out(found, start_offset)), following)
