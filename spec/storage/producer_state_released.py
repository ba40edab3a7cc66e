"""Producer state: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.codec import encode
from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.spec.common.producers import UNKNOWN, State, entry_of
from kafkaspec.spec.storage.producer_state import INVALID_STATE, machine


def _without_epoch(
    ghost: Any, state: State, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op == "readEmptiedMarker":
        return encode(entry_of(arguments["producer_id"], UNKNOWN)), observation
    return result, observation


def _not_verified(
    ghost: Any, state: State, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op != "produce" or not arguments["transactional"] or not state.config.transaction_verification_enabled:
        return result, observation
    producer_id = arguments["producer_id"]
    stale = isinstance(result, Refused) and result.clause == "PSM-6" and arguments["origin"] != "REPLICATION"
    known = state.verifications.get(producer_id)
    guarded = known is not None and known.guard == arguments["guard"]
    if stale and not guarded and state.producers[producer_id].transaction is None:
        return Refused("PSM-6", INVALID_STATE), observation
    return result, observation


machine.deviations += [
    Deviation(
        id="PSM-D1",
        clause="PSM-31",
        title="A marker that the cleaner emptied makes its producer known, but not its epoch",
        versions="2.8.2, 3.9.1 and 4.3.0 (seen)",
        condition="""a control batch without its record is read again, or replicated, while nothing is known of its
        producer""",
        history=("init", "readEmptiedMarker producerId=1 producerEpoch=3 offset=7 timestamp=1000000"),
        cause="""An append begins with a copy of what is known of the producer, of which nothing is known: epoch -1,
        timestamp -1. ProducerAppendInfo.append leaves a control batch without records alone, as the whole transaction
        is gone; the copy, which is as it was, is put into the table all the same. The epoch, which is why the cleaner
        kept the batch, stands in the batch's header and is not looked at.""",
        effect="""On a compacted topic, once a transaction's records are cleaned away and its marker was emptied after
        delete.retention.ms, whoever reads the log from there without a snapshot of a later offset does not know the
        producer's epoch: a replica that is added or moved, a broker whose snapshots are gone. If it leads the
        partition, a producer with a lower epoch, which was fenced off, may write again, at any sequence; where
        transactions are verified (3.6.0 and later) the coordinator still stops a transactional one. The entry without
        an epoch is also listed by DescribeProducers, counted by ProducerIdCount, and written into the next snapshot,
        until the next look for idle producers (its timestamp is -1) forgets it.""",
        fix="""Take epoch and timestamp of a control batch without records from its header, as of a marker without a
        transaction; or else neither keep such a batch nor put its producer into the table.""",
        rewrite=_without_epoch,
    ),
    Deviation(
        id="PSM-D2",
        clause="PSM-6",
        title="A transactional batch of a stale epoch is refused as not verified, which is fatal to its producer",
        versions="""3.9.1 (seen); fixed in 3.9.2 and 4.1.1 (KAFKA-19690). 4.1.0 (read) does it also where a
        transaction of another epoch is open""",
        releases=">=3.6,<3.9.2",
        condition="""verification is on; a client or a coordinator appends a transactional batch of an epoch below the
        producer's, without the guard of the producer's verification, while the producer has no open transaction""",
        history=(
            "init",
            'produce producerId=1 origin="CLIENT" producerEpoch=1 firstSeq=0 lastSeq=0 firstOffset=0 lastOffset=0 '
            "timestamp=1000000 transactional=false guard=0",
            'produce producerId=1 origin="CLIENT" producerEpoch=0 firstSeq=0 lastSeq=0 firstOffset=1 lastOffset=1 '
            "timestamp=1000000 transactional=true guard=0",
        ),
        cause="""The log looks for the verification before it looks at the epoch, and answers
        InvalidTxnStateException. It comes to that when the marker that ends a transaction after its timeout, which
        has a higher epoch, gets in between the question whether the transaction is open, which needs no verification
        then, and the append.""",
        effect="""The batch is not appended either way. But InvalidTxnStateException ends a producer, where for
        InvalidProducerEpochException it aborts its transaction and goes on.""",
        fix="Compare the epochs first.",
        rewrite=_not_verified,
    ),
]
