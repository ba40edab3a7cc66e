"""Last stable offset: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.codec import encode
from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.contract.numbers import Offset
from kafkaspec.spec.common.aborted_transaction import Entries, in_order, overlapping
from kafkaspec.spec.common.transactional_log import PartitionLog
from kafkaspec.spec.common.transactional_reads import answer, handed_on
from kafkaspec.spec.storage.last_stable import machine


def _below_the_log_start(
    ghost: Any, state: PartitionLog, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    start = state.log_start
    batch = next((b for b in state.batches if b.base_offset < start <= b.last_offset), None)
    if batch is None or state.first_unstable != start or not isinstance(observation, dict):
        return result, observation
    first = batch.base_offset
    stable = min(first, state.high_watermark)
    return result, {**observation, "firstUnstableOffset": first, "lastStableOffset": stable}


def _up_to_the_first_that_is_stable(state: PartitionLog, base: Offset, fetch_offset: Offset, bound: Offset) -> Entries:
    """The aborted transactions of a fetch, up to the first entry with which all is stable (TXI-4, TXI-6)."""
    entries = [a for a in state.aborted if a.last_offset >= base]
    stop = next((n for n, a in enumerate(entries) if a.last_stable_offset >= bound), len(entries))
    return overlapping(entries[: stop + 1], fetch_offset, bound)


def _stops_too_early(
    ghost: Any, state: PartitionLog, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op not in ("read", "consume") or isinstance(result, Refused) or in_order(state.aborted):
        return result, observation
    found = answer(state, **arguments, collect=_up_to_the_first_that_is_stable)
    return encode(found if op == "read" else handed_on(found, arguments["start_offset"])), observation


machine.deviations += [
    Deviation(
        id="LSO-D1",
        clause="LSO-1",
        title="The last stable offset falls below the log start, where that rose into a batch of an open transaction",
        versions="4.3.0 (seen)",
        condition="""a transaction that began below the log start is open or not replicated, and the log start is
        inside a batch: above its first offset""",
        history=(
            "init",
            "produce producerId=1 producerEpoch=0 firstSequence=0 count=2 transactional=true",
            "maybeIncrementHighWatermark offset=2",
            "maybeIncrementLogStartOffset offset=1",
        ),
        cause="""The log looks for the place of its first unstable offset, the log start, in the files, by a read. Since
        KAFKA-17803 a read answers with the first offset of the batch that it finds, which is below the log start, and
        that is taken over as the offset itself (UnifiedLog.maybeConvertToOffsetMetadata).""",
        effect="""DeleteRecords into a batch breaks log start <= last stable offset: a read_committed consumer that asks
        for the latest offset is given one that is out of range, and resets again until the transaction ends; the lag
        that is shown is too large. No record is shown that must not be: a fetch from the log start on gets nothing
        either way.""",
        fix="Keep the offset that was asked for, and take of the read only the position.",
        rewrite=_below_the_log_start,
    ),
    Deviation(
        id="LSO-D2",
        clause="LSO-12",
        title="A read_committed consumer of a replica that was a follower is given records of an aborted transaction",
        versions="4.3.0 (seen)",
        condition="""a follower appended at once a marker that aborts a transaction, and behind it the first batches of
        a further transaction that is aborted, and of another producer's; and a read_committed fetch has its upper bound
        (LSO-13) above where the further one begins, and at or below the last stable offset of that marker's entry""",
        history=(
            "init",
            "produce producerId=1 producerEpoch=0 firstSequence=0 count=1 transactional=true",
            'replicateBatches batches=[[1,0,"ABORT",0,0,1],[1,0,"TRANSACTIONAL",1,0,1],[1,0,"ABORT",0,0,1],'
            '[2,0,"TRANSACTIONAL",0,0,1]]',
            "maybeIncrementHighWatermark offset=5",
            "consume startOffset=2 maxBatches=1 readCommitted=true",
        ),
        cause="""All batches of an append are looked at before any is in: every transaction that they begin is open when
        the last stable offset of the first marker is asked for. It is then the first offset of a transaction that
        begins behind the marker, and beyond one that began and was aborted in between. A fetch stops at the first entry
        whose last stable offset is at or above its upper bound, as if nothing behind it could matter
        (ProducerStateManager.lastStableOffset, TransactionIndex.collectAbortedTxns).""",
        effect="""The fetch is answered without the further aborted transaction, and the consumer hands out its records
        as committed ones. The broker must have taken the batches as a follower: it is a leader that was a follower, or
        serves a consumer as the nearest replica (KIP-392). Until the segment is recovered it stays so.""",
        fix="""Take of the open transactions only those that begin below the marker; or complete the transactions while
        the batches are looked at, one by one.""",
        rewrite=_stops_too_early,
    ),
]
