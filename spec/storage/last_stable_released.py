"""Last stable offset: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.spec.common.transactional_log import PartitionLog
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
]
