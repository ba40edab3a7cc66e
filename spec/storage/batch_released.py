"""Record batch: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kafkaspec.contract.codec import encode as as_json
from kafkaspec.contract.deviation import Deviation, Ghost
from kafkaspec.contract.machine import AnyBytes, Json, Refused
from kafkaspec.spec.common.compression import CODEC_IDS
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, NO_TIMESTAMP
from kafkaspec.spec.common.record_format import (
    LOG_APPEND_TIME,
    LogRecord,
    built,
    encode,
    log_records,
    retained,
)
from kafkaspec.spec.storage.batch import CurrentBatch, consecutive, faults, held, known, machine, refusal, taken
from kafkaspec.spec.storage.batch_trial import NOW

UNSUPPORTED = "java.lang.UnsupportedOperationException"


def _rebuilt_without_keys(
    ghost: Ghost, state: CurrentBatch, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op != "validate" or isinstance(result, Refused):
        return result, observation
    batch = held(state)
    if batch.codec == 0 or batch.codec != CODEC_IDS[arguments["target_compression"]] or consecutive(batch):
        return result, observation
    return Refused("", UNSUPPORTED, "key is skipped in PartialDefaultRecord"), observation


def _producers_append_time(
    ghost: Ghost, state: CurrentBatch, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op != "validate" or not isinstance(result, Refused) or result.clause != "BAT-22":
        return result, observation
    batch = held(state)
    if not batch.log_append_time or arguments["timestamp_type"] != "CreateTime" or batch.max_timestamp == NO_TIMESTAMP:
        return result, observation
    a = arguments
    bounds = a["now"], a["timestamp_before_max_ms"], a["timestamp_after_max_ms"]
    unflagged = replace(  # every record has the largest timestamp, as a reader sees them
        batch,
        attributes=batch.attributes & ~LOG_APPEND_TIME,
        records=tuple(replace(r, timestamp_delta=batch.max_timestamp - batch.base_timestamp) for r in batch.records),
    )
    no = refusal(list(faults(unflagged, a["compacted_topic"], True, *bounds)))
    target = CODEC_IDS[a["target_compression"]]
    made_here = isinstance(state.data, AnyBytes)
    how = a["initial_offset"], a["timestamp_type"], a["partition_leader_epoch"], a["now"], target, made_here
    took = no or taken(batch, *how)
    answer = took if isinstance(took, Refused) else as_json(took)
    return _rebuilt_without_keys(ghost, state, op, arguments, answer, observation)


def _below_none(
    ghost: Ghost, state: CurrentBatch, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if isinstance(result, Refused):
        return result, observation
    if op == "validate":
        batch, kept = held(state), None
        if not result["messageSizeMaybeChanged"]:
            return result, observation
    elif op == "retain":
        batch, kept = known(bytes.fromhex(arguments["data"])), frozenset(arguments["kept"])
        if not kept or retained(batch, kept, arguments["delete_horizon"]) is batch:
            return result, observation
    else:
        return result, observation
    times = [t.timestamp for n, t in enumerate(log_records(batch)) if kept is None or n in kept]
    below = [t for t in times if t < NO_TIMESTAMP]
    return (Refused("", ILLEGAL_ARGUMENT, f"Invalid negative timestamp {below[0]}") if below else result), observation


_BELOW = built(0, [LogRecord(0, -9, b"k", b"v"), LogRecord(1, -9, b"l", b"w")])


_FLAGGED = built(0, [LogRecord(0, 7, b"k", b"v")], attributes=LOG_APPEND_TIME, append_time=NOW)


machine.deviations += [
    Deviation(
        id="BAT-D1",
        clause="BAT-23",
        title="A compressed batch with unusual offsets is refused with an unknown error",
        versions="4.3.0 (recorded)",
        condition="""a producer's batch is compressed with the topic's codec, passes every check, and its offsets are
        not 0, 1, 2, ...: its base offset is not 0, say""",
        history=(
            "init",
            f'build magic=2 compression="gzip" baseOffset=7 timestampType="CreateTime" producerId=-1 producerEpoch=-1 '
            "baseSequence=-1 transactional=false partitionLeaderEpoch=0 "
            f'records=[{{"t":{NOW},"k":"k","v":"v","headers":0}}]',
            'validate toMagic=2 initialOffset=0 compactedTopic=false timestampType="CreateTime" '
            "timestampBeforeMaxMs=10 timestampAfterMaxMs=10 partitionLeaderEpoch=0 "
            f'now={NOW} targetCompression="gzip" origin="CLIENT"',
        ),
        cause="""The leader expects to keep the bytes, and reads the records without keys and values. Then it sees the
        offsets, decides to write the batch again, and asks the records for what was skipped.""",
        effect="The producer gets UNKNOWN_SERVER_ERROR for a batch that the leader meant to rewrite and accept.",
        fix="Read the records again, whole, before the batch is written again.",
        rewrite=_rebuilt_without_keys,
    ),
    Deviation(
        id="BAT-D2",
        clause="BAT-22",
        title="A producer that sets LogAppendTime writes any timestamps to a topic of CreateTime",
        versions="3.6.0 to 4.3.0 (4.3.0 recorded, 3.6.0 read; 3.5.2 refuses it)",
        releases=">=3.6",
        condition="""the topic's message.timestamp.type is CreateTime; a producer's batch has the LogAppendTime flag,
        and its largest timestamp is not -1 and within message.timestamp.before.max.ms and after.max.ms""",
        history=(
            "init",
            f'load data="{encode(_FLAGGED).hex()}"',
            'validate toMagic=2 initialOffset=0 compactedTopic=false timestampType="CreateTime" '
            "timestampBeforeMaxMs=10 timestampAfterMaxMs=10 partitionLeaderEpoch=0 "
            f'now={NOW} targetCompression="none" origin="CLIENT"',
        ),
        cause="""LogValidator.validateTimestamp asks for the flag in the else branch of the question whether the topic
        has CreateTime and the record a timestamp. Up to 3.5 that question had the bounds in it, so that a timestamp
        within them went on to the flag; KIP-937 (KAFKA-14991, 3.6.0) moved the bounds into its body. With the flag,
        every record reads as having the batch's largest timestamp, and that is what is compared with the bounds. Then
        the leader gives the batch its topic's type: the flag goes, and the records' own timestamps come to light.""",
        effect="""A producer writes records of any timestamp, whatever the topic's bounds are; up to 3.5 it got
        INVALID_TIMESTAMP. The batch's largest timestamp is not that of its records either (BAT-10), so that an offset
        looked up by a timestamp above it is found too late or not at all, and retention by time goes by what the header
        says. Kafka's own clients never set the flag. If the leader writes the batch again, for another codec, all its
        records get the largest timestamp, and their own are lost.""",
        fix="Ask for the batch's timestamp type first, and once a batch: a producer's LogAppendTime is refused.",
        rewrite=_producers_append_time,
    ),
    Deviation(
        id="BAT-D3",
        clause="BAT-24",
        title="A record with a timestamp below -1 is taken, and its batch can never be compacted",
        versions="4.3.0 (judged); the source of 2.8.2 reads the same",
        condition="""a batch with a record whose timestamp is below -1 is written again with that record: by the
        cleaner, as another record of it goes or it gets a delete horizon, or by the leader, for a topic with another
        codec. In place the leader takes it, as far as message.timestamp.before.max.ms allows: by default any""",
        history=(
            "init",
            f'retain data="{encode(_BELOW).hex()}" kept=[1] deleteHorizon={NOW}',
        ),
        cause="""MemoryRecordsBuilder refuses a timestamp below 0 other than -1, whoever writes by it. The leader
        compares a timestamp with the topic's bounds and has no other question, and writes no record itself if it need
        not. So the broker stores what its own writer cannot write, and the cleaner, which writes a batch again that
        loses a record, gets an IllegalArgumentException.""",
        effect="""The cleaner marks the partition uncleanable. It is not compacted any more, on any replica, not after a
        restart either, until the log start passes the record: it grows without end, and deleted keys stay. One record
        of a producer is enough whose library lets such a timestamp through, that of a date before 1970, say. Kafka's
        own producer refuses it. A producer to a topic with another codec gets UNKNOWN_SERVER_ERROR.""",
        fix="Refuse it as it comes, with INVALID_TIMESTAMP; and let the cleaner copy the timestamps that are there.",
        rewrite=_below_none,
    ),
]
