"""Validator: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.codec import encode
from kafkaspec.contract.deviation import Deviation, Ghost
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.spec.common.legacy_format import message_bytes
from kafkaspec.spec.common.record_format import LOG_APPEND_TIME, LogRecord, built
from kafkaspec.spec.common.record_format import encode as bytes_of
from kafkaspec.spec.storage.batch_trial import NOW
from kafkaspec.spec.storage.validator import Meters, answer, machine

ORDER = ("VAL-D2", "VAL-D1")
"""In which the released Kafka meets them: records are asked before they are written."""


def _released(
    which: str, state: Meters, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    """What a Kafka shows that has this deviation and those that it meets before, if this one changes it."""
    asked = {**arguments, "records": _bytes(arguments["records"])}
    before = ORDER[: ORDER.index(which)]
    without, within = (answer(**asked, released=frozenset(d)) for d in (before, (*before, which)))
    if (without.state, encode(without.result)) == (within.state, encode(within.result)):
        return result, observation
    found = within.result if isinstance(within.result, Refused) else encode(within.result)
    return found, encode(within.state)


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else bytes.fromhex(text)


def _keys_are_not_read(
    ghost: Ghost, state: Meters, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    return _released("VAL-D1", state, arguments, result, observation)


def _producers_append_time(
    ghost: Ghost, state: Meters, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    return _released("VAL-D2", state, arguments, result, observation)


def _call(data: bytes, compression: str, magic: int) -> str:
    return (
        f'validate records="{data.hex()}" offset=0 now={NOW} compactedTopic=false targetMagic={magic} '
        f'targetCompression="{compression}" timestampType="CreateTime" timestampBeforeMaxMs=10 '
        'timestampAfterMaxMs=10 partitionLeaderEpoch=0 origin="CLIENT"'
    )


_ODD = built(0, [LogRecord(0, NOW, b"k", b"v"), LogRecord(2, NOW, b"k", b"v")], last_offset=1, attributes=1)
_FLAGGED = message_bytes(0, 1, NOW, b"k", b"v", LOG_APPEND_TIME)


machine.deviations += [
    Deviation(
        id="VAL-D1",
        clause="VAL-13",
        title="A compressed batch with unusual offsets is refused with an unknown error",
        versions="3.9.1 and 4.3.0 (judged)",
        condition="""a batch of format 2 is compressed with the topic's codec, the target format is 2, nothing is wrong
        with it, and its offsets are not 0, 1, 2, ...""",
        history=("init", _call(bytes_of(_ODD), "gzip", 2)),
        cause="""It is BAT-D1, met in the validator as a whole: the leader expects to keep the bytes, and reads the
        records without keys and values. Then it sees the offsets, decides to write the batch again, and asks the
        records for what was skipped. Wrappers of formats 0 and 1, and batches whose codec or format changes, are read
        whole and do not have it.""",
        effect="The producer gets UNKNOWN_SERVER_ERROR for a batch that the leader meant to rewrite and accept.",
        fix="Read the records again, whole, before the batch is written again.",
        rewrite=_keys_are_not_read,
    ),
    Deviation(
        id="VAL-D2",
        clause="VAL-12",
        title="A producer that sets LogAppendTime is taken by a topic of CreateTime, in format 1 too",
        versions="3.9.1 and 4.3.0 (judged); 3.6.0 read",
        releases=">=3.6",
        condition="""the topic's message.timestamp.type is CreateTime; a batch of format 2, or a message or a wrapper of
        format 1, has the LogAppendTime flag; and the timestamps that its records have with it are not -1 and within
        message.timestamp.before.max.ms and after.max.ms""",
        history=("init", _call(_FLAGGED, "none", 1)),
        cause="""It is BAT-D2, which holds in format 1 too: whether the producer set LogAppendTime is asked in the else
        branch of the question whether the topic has CreateTime and the record a timestamp (KAFKA-14991, 3.6.0).""",
        effect="""As BAT-D2. A wrapper of format 1 that is kept in place gets CreateTime and, as its timestamp, the one
        that it came with; from then on its messages have their own timestamps, which nobody compared with the bounds.
        Converted, they all get the wrapper's.""",
        fix="Ask for the batch's timestamp type first, and once a batch: a producer's LogAppendTime is refused.",
        rewrite=_producers_append_time,
    ),
]
