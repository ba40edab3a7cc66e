"""Log: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.codec import encode
from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.spec.storage.log import machine
from kafkaspec.spec.storage.log_parts.contents import Log
from kafkaspec.spec.storage.log_parts.reading import aborted_up_to, behind


def _passes_the_first(
    ghost: Any, state: Log, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op != "read" or arguments["isolation"] != "TXN_COMMITTED" or isinstance(result, Refused):
        return result, observation
    offset, n = arguments["offset"], state.floor(result["segmentBaseOffset"])
    if n is None or offset >= state.last_stable or not state.segments[n].offsets:
        return result, observation
    first, *rest = state.segments[n].offsets
    if first.position != result["relativePosition"] + result["sizeInBytes"]:
        return result, observation
    told = aborted_up_to(state, n, offset, rest[0].offset if rest else behind(state, n))
    return {**result, "abortedTransactions": encode(told)}, observation


RECORD = 'leaderEpoch=0 timestamp=0 records=[["k","v"]]'

machine.deviations += [
    Deviation(
        id="LOG-D1",
        clause="LOG-25",
        title="A read that ends exactly at the first index entry's position is told of aborted transactions behind it",
        versions="4.3.0 (seen)",
        condition="""a read of committed records ends at the position of the first entry of its segment's offset index,
        and an aborted transaction begins at that entry's offset or above""",
        history=(
            "init indexIntervalBytes=0",
            f"appendAsLeader {RECORD}",
            f"appendAsLeader {RECORD} producerId=1 producerEpoch=0 baseSequence=0 transactional=true",
            'appendEndTxnMarker producerId=1 producerEpoch=0 type="ABORT" coordinatorEpoch=0 transactionVersion=0 '
            "timestamp=0 leaderEpoch=0",
            "updateHighWatermark offset=1",
            'read offset=0 maxLength=0 isolation="TXN_COMMITTED" minOneMessage=true',
        ),
        cause="The offset index passes its first entry (OIX-D2), and gives the second one as the end of the range.",
        effect="""A consumer is told of transactions that it was given no record of, and keeps them until it comes to
        their markers. No record is lost by it.""",
        fix="That of OIX-D2: compare the first entry before the search begins.",
        rewrite=_passes_the_first,
    ),
]
