"""What appends do to a log with transactions, and when what is stable is looked up.

The clauses are those of the last stable offset, `spec.storage.last_stable`, whose operations use them.

Source: Kafka Internals, ch. 03, "ProducerStateManager: idempotency, snapshots & transactions"; KIP-98; UnifiedLog,
Kafka 4.3.0.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Annotated, Any, NamedTuple

from kafkaspec.contract.clauses import states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Refused, Step
from kafkaspec.contract.numbers import Guard, Offset
from kafkaspec.spec.common import producers as tables
from kafkaspec.spec.common import transactional_log
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction
from kafkaspec.spec.common.producers import NO_GUARD, Origin
from kafkaspec.spec.common.transactional_log import NOBODY, LogBatch, PartitionLog, ReplicaBatch, looked_up
from kafkaspec.spec.storage import producer_state as psm

LOG = transactional_log.LOG

NOT_VERIFIED = psm.NOT_VERIFIED._replace(clause="LSO-19")


def rule(operation: Callable[..., Any]) -> Callable[..., Any]:
    """What an operation of the producer state does, without its contracts: those are about its callers."""
    body: Callable[..., Any] = inspect.unwrap(operation)
    return body


def refreshed(state: PartitionLog) -> PartitionLog:
    return replace(state, first_unstable=looked_up(state))


@states("LSO-5")
def with_high_watermark(state: PartitionLog, offset: Offset) -> PartitionLog:
    """The log whose high watermark is set to that offset."""
    producers = rule(psm.on_high_watermark_updated)(state.producers, offset)
    return refreshed(state.with_producers(producers, high_watermark=offset))


class Offsets(NamedTuple):
    """First and last offset of a batch that is in the log: the one that came, or the one that it repeats."""

    first_offset: Annotated[int, governs("LSO-3", "LSO-18")]
    last_offset: Annotated[int, governs("LSO-3", "LSO-18")]


def taken(
    producers: tables.State, batch: LogBatch, origin: Origin, version: int = -1, guard: Guard = NO_GUARD
) -> Step[tables.State, Any]:
    """What the producer state does with a batch."""
    if batch.producer_id == NOBODY:
        return Step(replace(producers, end=batch.last_offset + 1))
    common = (producers, batch.producer_id, origin)
    if batch.is_marker:
        numbers = (batch.coordinator_epoch, batch.producer_epoch, batch.base_offset, batch.timestamp, version)
        step: Step[tables.State, Any] = rule(psm.end_transaction)(*common, batch.kind, *numbers)
        return step
    last = (batch.first_sequence + batch.last_offset - batch.base_offset) % tables.SEQUENCES
    sequences = (batch.producer_epoch, batch.first_sequence, last)
    offsets = (batch.base_offset, batch.last_offset, batch.timestamp)
    step = rule(psm.produce)(*common, *sequences, *offsets, batch.kind == "TRANSACTIONAL", guard)
    return step


@states(without={"LSO-4": {"audit": "the entries of an index are compared with the markers of the log: PSM-16"}})
def appended(
    state: PartitionLog, batch: LogBatch, origin: Origin, version: int = -1, guard: Guard = NO_GUARD
) -> Step[PartitionLog, Offsets]:
    """The log after a batch.

    LSO-3: A batch goes to the end of the log if the producer state takes it (PSM); else it is refused, and nothing
    changes. A duplicate is answered with the offsets that it has in the log, and not appended. So an earlier epoch is
    fenced off, and the records of a producer stand in the order of its sequences, each once. [KIP-98; {LOG}, append]

    LSO-4: A marker that aborts a transaction puts it into the transaction index, with what was stable then (PSM-16); a
    marker that ends none, for it comes late or again, leaves no entry and decides nothing. [KIP-98; {LOG}, append]
    """
    step = taken(state.producers, batch, origin, version, guard)
    if isinstance(step.result, Refused):
        return Step(state, NOT_VERIFIED if step.result == psm.NOT_VERIFIED else step.result)
    if isinstance(step.result, dict) and "duplicate" in step.result:
        _, _, first, last, _ = step.result["duplicate"]
        return Step(state, Offsets(first, last))
    aborted = state.aborted
    if isinstance(step.result, tables.EndedTransaction) and step.result.is_aborted:
        ended = step.result
        entry = (ended.producer_id, ended.first_offset, ended.last_offset, ended.last_stable_offset)
        aborted = (*aborted, AbortedTransaction(*entry))
    batches = (*state.batches, batch._replace(is_indexed=not state.is_fresh))
    after = replace(state, batches=batches, aborted=aborted, log_end=batch.last_offset + 1, is_fresh=False)
    return Step(refreshed(after.with_producers(step.state)), Offsets(batch.base_offset, batch.last_offset))


def replicated(state: PartitionLog, batch: ReplicaBatch, first_offset: Offset) -> LogBatch:
    """A batch of the leader as it stands in the follower's log."""
    marker = batch.kind in ("COMMIT", "ABORT")
    sequence, coordinator = (NOBODY, batch.coordinator_epoch) if marker else (batch.first_sequence, NOBODY)
    numbers = (first_offset, first_offset + batch.records - 1, batch.producer_id, batch.producer_epoch)
    return LogBatch(*numbers, batch.kind, sequence, coordinator, state.producers.now)


def placed(state: PartitionLog, batches: Sequence[ReplicaBatch]) -> tuple[LogBatch, ...]:
    """The batches one behind the other, at the log's end."""
    ends = accumulate((b.records for b in batches), initial=state.log_end)
    return tuple(replicated(state, b, first) for b, first in zip(batches, ends, strict=False))


def without_verifications(producers: tables.State, batches: Sequence[LogBatch]) -> tables.State:
    """The producers after an append that was refused: what was verified of those that come before the refused batch has
    ended."""
    looked_at = producers
    for batch in batches:
        step = taken(looked_at, batch, "REPLICATION")
        if isinstance(step.result, Refused):
            break
        looked_at = step.state
    return replace(producers, verifications=looked_at.verifications)


def one_by_one(state: PartitionLog, after: PartitionLog) -> PartitionLog:
    """The log after the batches that are in `after` and not in `state`, each an append of its own."""
    for batch in after.batches[len(state.batches) :]:
        state = appended(state, batch, "REPLICATION").state
    return state


def taken_at_once(
    producers: tables.State, batches: Sequence[LogBatch]
) -> tuple[tables.State, Sequence[tables.EndedTransaction]] | Refused:
    """What the producer state does with batches in one append: the state after, and the transactions that they end."""
    before, left, ended = producers.producers, set[int](), list[tables.EndedTransaction]()
    for batch in batches:
        known = producers.known(batch.producer_id).epoch
        step = taken(producers, batch, "REPLICATION")
        if isinstance(step.result, Refused):
            return step.result
        if isinstance(step.result, tables.EndedTransaction):
            ended.append(step.result)
        producers = step.state
        if batch.producer_epoch != known:
            left.add(batch.producer_id)
    for i in left & before.keys():
        p = producers.producers[i]
        if p.epoch == before[i].epoch:
            kept = (*before[i].batches, *p.batches)[-tables.BATCHES_RETAINED :]
            producers = replace(producers, producers={**producers.producers, i: p._replace(batches=kept)})
    return producers, ended
