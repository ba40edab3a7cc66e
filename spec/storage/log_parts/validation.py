"""What a leader asks of records before it appends them, and the timestamp that it gives them.

The rules of a record are those of the record batch, `spec.common.leader_rules`; the validator,
`spec.storage.validator`, has them for records of every format and codec. The clauses here are those of the log,
`spec.storage.log`. Source: Kafka Internals, ch. 03; UnifiedLog and LogValidator, Kafka 4.3.0.
"""

from __future__ import annotations

from kafkaspec.contract.clauses import ONE_CALL, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Refused, Step
from kafkaspec.spec.common import producers
from kafkaspec.spec.common.kafka import NO_TIMESTAMP
from kafkaspec.spec.common.leader_rules import VALIDATION, Limits, fault
from kafkaspec.spec.storage.log_parts import contents
from kafkaspec.spec.storage.log_parts.changes import appended
from kafkaspec.spec.storage.log_parts.contents import BatchToReplicate, Effect, Log, batch_of
from kafkaspec.spec.storage.log_parts.shown import LogAppendInfo, info

UNIFIED_LOG = contents.UNIFIED_LOG
CHAPTER = contents.CHAPTER
VALIDATING = f"{CHAPTER}, 'Offset, timestamp & epoch assignment (LogValidator)'"

IN_ERROR = Refused("LOG-48", VALIDATION)


@states("BAT-21", "BAT-22")
@states(without=ONE_CALL)
def is_valid(log: Log, b: BatchToReplicate) -> bool:
    """Whether a leader takes the records.

    LOG-48: A leader refuses a batch, a coordinator's too, if one of its records is in error (VAL-11): without the key
    that a compacted topic asks for (BAT-21), or, with CreateTime, of a timestamp further before or after the leader's
    clock than message.timestamp.before.max.ms and message.timestamp.after.max.ms allow (BAT-22). It does so before it
    assigns leader epochs and asks for duplicates, so that nothing of the append stays. A follower asks none of it.
    [{VALIDATING}; {UNIFIED_LOG}; KIP-937]
    """
    c = log.config
    limits = Limits(c.compact, c.create_time, log.now, c.timestamp_before_max_ms, c.timestamp_after_max_ms)
    keys = [None if key is None else key.encode() for key, _ in b.records] if b.records else [b"a marker's"]
    return all(fault(key, b.timestamp, False, limits) is None for key in keys)


@states(without=ONE_CALL)
def led(
    log: Log, b: BatchToReplicate, origin: producers.Origin, fails: Effect | None, version: int, guard: int
) -> Step[Log, LogAppendInfo]:
    """The log after a batch of its own leader.

    LOG-49: With LogAppendTime a leader gives a batch, a marker too, the time of its own clock as largest timestamp, and
    the bit that says so: it is the time of every record (BAT-14), whatever the client said. Rolling, the time index,
    retention, a producer's last timestamp and the look-up by timestamp go by it, and the answer has it as log append
    time. With CreateTime the answer has none, -1. A follower takes a batch with the type that its leader gave it,
    whatever its own topic's is. [{VALIDATING}; {UNIFIED_LOG}; KIP-32]
    """
    if not is_valid(log, b):
        return Step(log, IN_ERROR)
    if not log.config.create_time:
        b = replace(b, timestamp=log.now, log_append_time=True)
    new = batch_of(b)
    time = log.now if b.log_append_time else NO_TIMESTAMP
    said = info(log, new.base_offset, new.last_offset, b.timestamp, new.size, None, time)
    return appended(log, [new], said, origin, fails, version, guard)
