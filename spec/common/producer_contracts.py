"""What the operations of the producer state require and ensure: predicates over a call, and the contracts that several
operations share.

Nothing here is a rule of its own; each contract names the clause of PSM that it says. `result` is a step where the
operation can be refused, and else the state after.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

from icontract import ensure, require

from kafkaspec.contract.machine import Refused, Step
from kafkaspec.contract.numbers import Offset
from kafkaspec.spec.common.producers import (
    BATCHES_RETAINED,
    MOST_EPOCH,
    NO_EPOCH,
    SEQUENCES,
    Batch,
    State,
    TransactionEnd,
)

F = TypeVar("F", bound=Callable[..., Any])


def refused(result: Step[State]) -> bool:
    return isinstance(result.result, Refused)


def well_formed(result: Step[State]) -> bool:
    """At most five batches, of rising offsets; every transaction begins below the end, none twice."""
    producers = result.state.producers.values()
    opened = [p.transaction for p in producers if p.transaction is not None]
    return len(set(opened)) == len(opened) and all(
        len(p.batches) <= BATCHES_RETAINED and all(a.last_offset < b.last_offset for a, b in pairwise(p.batches))
        for p in producers
    )


def others_stay(state: State, producer_id: int, result: Step[State]) -> bool:
    before = {i: p for i, p in state.producers.items() if i != producer_id}
    return before == {i: p for i, p in result.state.producers.items() if i != producer_id}


def never_unstable_lower(state: State, result: Step[State]) -> bool:
    """An append adds no unstable offset below the old end, so that the last stable offset does not fall."""
    first = result.state.first_unstable
    return first is None or first >= state.end or (state.first_unstable is not None and first >= state.first_unstable)


def as_many_sequences(first_seq: int, last_seq: int, first_offset: Offset, last_offset: Offset) -> bool:
    more = last_offset - first_offset
    return 0 <= first_seq < SEQUENCES and more < SEQUENCES and last_seq == (first_seq + more) % SEQUENCES


a_producer = require(
    lambda producer_id, producer_epoch: 0 <= producer_id < 2**63 and 0 <= producer_epoch <= MOST_EPOCH,
    "PSM-30 a producer id and an epoch that are not negative",
)
batch_in_order = require(
    lambda state, first_offset, last_offset: state.end <= first_offset <= last_offset,
    "PSM-30 batches come in the order of their offsets",
)
marker_in_order = require(
    lambda state, offset: offset >= state.end, "PSM-30 batches come in the order of their offsets"
)
sequences_fit = require(as_many_sequences, "PSM-30 as many sequences as records")


def a_batch(function: F) -> F:
    """What is asked of whoever appends a data batch."""
    return a_producer(batch_in_order(sequences_fit(function)))


def a_marker(function: F) -> F:
    """What is asked of whoever appends a marker."""
    return a_producer(marker_in_order(function))


def keeps_the_rest(function: F) -> F:
    """What every append leaves as it was."""
    for condition, text in (
        (never_unstable_lower, "PSM-14 an append does not lower the last stable offset"),
        (others_stay, "PSM-1 no other producer is touched"),
        (well_formed, "PSM-1 at most five batches, in order; no two transactions begin at one offset"),
    ):
        function = ensure(condition, text)(function)
    return function


def refusal_changes_nothing(id: str) -> ensure:
    """What the clause of that id says is refused."""
    return ensure(
        lambda state, result: not refused(result) or result.state == state, f"{id} what is refused changes nothing"
    )


# ---- data batches ----------------------------------------------------------------------------------------------------
def in_sequence(
    state: State, producer_id: int, origin: str, producer_epoch: int, first_seq: int, result: Step[State]
) -> bool:
    known = state.known(producer_id)
    unchecked = refused(result) or origin != "CLIENT" or known.epoch == NO_EPOCH
    return unchecked or first_seq == known.following(producer_epoch)


def batch_is_in(
    producer_id: int, last_seq: int, last_offset: Offset, first_offset: Offset, timestamp: int, result: Step[State]
) -> bool:
    if refused(result):
        return True
    p = result.state.producers[producer_id]
    made = Batch(last_seq, last_offset, last_offset - first_offset, timestamp)
    return (p.batches[-1], p.last_timestamp, result.state.end) == (made, timestamp, last_offset + 1)


def in_its_transaction(
    state: State, producer_id: int, transactional: bool, first_offset: Offset, result: Step[State]
) -> bool:
    if refused(result):
        return True
    before, after = state.known(producer_id).transaction, result.state.known(producer_id).transaction
    if before is not None:
        return transactional and after == before
    return after == (first_offset if transactional else None)


def no_duplicate_goes_in(
    state: State, producer_id: int, origin: str, producer_epoch: int, first_seq: int, last_seq: int, result: Step[State]
) -> bool:
    there = state.known(producer_id).duplicate(producer_epoch, first_seq, last_seq) if origin == "CLIENT" else None
    return there is None or (result.state == state and not refused(result) and "duplicate" in result.result)


def guarded(
    state: State, producer_id: int, origin: str, producer_epoch: int, transactional: bool, guard: int,
    result: Step[State],
) -> bool:  # fmt: skip
    """What opens a transaction on a verified log had the verification's guard."""
    opens = transactional and not state.known(producer_id).has_open_transaction(producer_epoch)
    if refused(result) or "duplicate" in result.result or origin == "REPLICATION" or not opens:
        return True
    known = state.verifications.get(producer_id)
    return not state.config.transaction_verification_enabled or (known is not None and known.guard == guard)


# ---- markers ---------------------------------------------------------------------------------------------------------
def ends_the_transaction(state: State, producer_id: int, offset: Offset, type: str, result: Step[State]) -> bool:
    before, found = state.known(producer_id).transaction, result.result
    if isinstance(found, Refused):
        return True
    if before is None:
        return found is None and result.state.ended == state.ended
    return (
        (found.first_offset, found.last_offset, found.is_aborted) == (before, offset, type == "ABORT")
        and result.state.ended == {**state.ended, before: TransactionEnd(producer_id, offset)}
        and result.state.producers[producer_id].transaction is None
    )


def marker_is_in(
    producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp: int, result: Step[State]
) -> bool:
    p = result.state.known(producer_id)
    said = (producer_epoch, coordinator_epoch, timestamp)
    return refused(result) or (p.epoch, p.coordinator_epoch, p.last_timestamp) == said


def marker_epoch_is_right(
    state: State, producer_id: int, origin: str, producer_epoch: int, transaction_version: int, result: Step[State]
) -> bool:
    """A marker of version 2 that ends a transaction is above all of its data."""
    known = state.known(producer_id)
    if refused(result) or origin == "REPLICATION":
        return True
    if transaction_version >= 2 and known.transaction is not None and producer_epoch != MOST_EPOCH:
        return producer_epoch > known.epoch
    return producer_epoch >= known.epoch


def index_entry_is_stable(offset: Offset, result: Step[State]) -> bool:
    """The entry's last stable offset is the least offset that is still undecided once this transaction has ended."""
    if isinstance(result.result, Refused) or result.result is None:
        return True
    first = result.state.first_undecided
    return bool(result.result.last_stable_offset == (offset + 1 if first is None else first))


ends_its_transaction = ensure(ends_the_transaction, "PSM-10 it ends the open transaction at its own offset, or nothing")
takes_its_epochs = ensure(marker_is_in, "PSM-10 the epochs and the timestamp are the marker's")


# ---- verifications, snapshots ----------------------------------------------------------------------------------------
def lowest_of_the_highest_epoch(state: State, producer_id: int, sequence: int, epoch: int, result: Step[State]) -> bool:
    before, after = state.verifications.get(producer_id), result.state.verifications[producer_id]
    if before is None:
        return (after.lowest_sequence, after.epoch, after.timestamp) == (sequence, epoch, state.now)
    same = before._replace(lowest_sequence=after.lowest_sequence, epoch=max(before.epoch, epoch)) == after
    return same and (epoch < after.epoch or after.lowest_sequence <= sequence)


def only_above_the_last(state: State, result: State) -> bool:
    if state.end <= state.last_snapshot:
        return result == state
    snapshots = {**state.snapshots, state.end: state.saved}
    return result.snapshots == snapshots and result.producers == state.producers


def loaded_or_kept(state: State, log_start_offset: Offset, log_end_offset: Offset, result: State) -> bool:
    if state.end == log_end_offset:
        return result.producers == state.producers
    readable = [x for x, s in state.snapshots.items() if s is not None and log_start_offset < x <= log_end_offset]
    return result.end == max(readable, default=log_start_offset) and not result.ended
