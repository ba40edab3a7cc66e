"""Log: known deviations of released Kafka.

A log before 4.0 goes another way than the spec's as soon as one of its offsets, or one of its batches, is another one.
So the ghost of its deviations is its whole state: the spec's own steps, but for the few that it takes in another way.
What it does otherwise hangs on its release. Source: UnifiedLog and LogSegment, Kafka 4.3.0 and 3.9.1; Log and
LogValidator, Kafka 2.8.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

from kafkaspec.contract.codec import encode, replace
from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused, Step
from kafkaspec.spec.common import segment_contents
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.common.segment_contents import TimeEntry
from kafkaspec.spec.storage.log import NO_LOG, machine
from kafkaspec.spec.storage.log_parts import changes, contents
from kafkaspec.spec.storage.log_parts.contents import Log, Refusable
from kafkaspec.spec.storage.log_parts.reading import (
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    NOT_IN_THE_LOG,
    aborted_up_to,
    behind,
)
from kafkaspec.spec.storage.producer_state import verified

# ---- all releases ----------------------------------------------------------------------------------------------------


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


# ---- earlier releases ------------------------------------------------------------------------------------------------
class EarlierLog(Log):
    """A log before 4.0. Its places keep the offset that was asked for."""

    def stands_for(self, offset: int, batch: segment_contents.Batch) -> int:
        return offset


Ids = frozenset[str]
"""of deviations"""
Due = tuple[tuple[int, int], ...]
"""ms and offset: the snapshots that go, by their offsets, with the files of segments that were deleted"""


def _earlier(log: Log, ids: Ids) -> EarlierLog:
    """That log in a release with these deviations."""
    made = EarlierLog(**{f.name: getattr(log, f.name) for f in fields(log)})
    if "LOG-D13" in ids:
        made = replace(made, producers=replace(made.producers, verifications={}, guards=0, handed_out=frozenset()))
    if "LOG-D14" in ids:
        made = replace(made, config=made.config._replace(timestamp_after_max_ms=made.config.timestamp_before_max_ms))
    return made


@dataclass(frozen=True)
class Went:
    """Where an earlier log went, and the deviations of its release: its state, or None before the first step; what it
    answered last, and by which deviations it is not the spec's. `left`: its directory alone is out of service, or in
    service: what it shows after that call is not `known`; or a call was outside the contract in its state, and what
    that one shows is not known either."""

    ids: Ids
    state: EarlierLog | None = None
    due: Due = ()
    result: Json | Refused = None
    causes: Ids = frozenset()
    left: bool = False
    known: bool = True


class Took(NamedTuple):
    """A step of an earlier log."""

    state: Log
    result: Any
    due: Due


def _stepped(log: Log, name: str, arguments: Mapping[str, Any]) -> Step[Log]:
    """The spec's step from that state, whatever its preconditions say."""
    op = machine.find(name)
    return op.step(log, op.call(op.body, log, op.decoded(arguments)))


def _transactional(log: EarlierLog, arguments: Mapping[str, Any]) -> Step[Log]:
    """A transactional batch. A verification begins for a stale epoch too, and none while a transaction is open."""
    id, epoch = arguments["producer_id"], arguments["producer_epoch"]
    known = log.producers.known(id)
    if epoch < known.epoch:
        if known.transaction is None:
            after = verified(log.producers, id, arguments["base_sequence"], epoch, False)
            log = replace(log, producers=after)
        return _stepped(
            log, "appendAsLeader", {**arguments, "transactional": False}
        )  # refused for its epoch, if not before
    step = _stepped(log, "appendAsLeader", arguments)
    if known.transaction is None:
        return step
    return Step(replace(step.state, producers=step.state.producers.without_verification(id)), step.result)


def _timed(before: Log, after: Log) -> Log:
    """The log with the time index's entry of a new batch, if it has one, at the first record with the timestamp."""
    if after.log_end == before.log_end or not after.config.create_time:
        return after
    b, s = after.active.batches[-1], after.active
    at = {TimeEntry(b.max_timestamp, b.last_offset): TimeEntry(b.max_timestamp, b.base_offset)}
    return after.with_active(
        replace(s, largest=at.get(s.largest, s.largest), times=tuple(at.get(t, t) for t in s.times))
    )


# snapshots, until 3.0
def _given_up(log: Log, due: Due, bases: Sequence[int]) -> tuple[Log, Due]:
    """The log after the snapshots at these offsets were given up: they go with the files of the segments."""
    when = log.now + log.config.file_delete_delay_ms
    return _gone(log, (*due, *((when, base) for base in bases if base)))  # at 0 there is no snapshot


def _gone(log: Log, due: Due) -> tuple[Log, Due]:
    """The log without the snapshots that are due, whoever has taken them since."""
    gone = {offset for when, offset in due if when <= log.now}
    if not gone:
        return log, due
    kept = {offset: s for offset, s in log.producers.snapshots.items() if offset not in gone}
    left = tuple((when, offset) for when, offset in due if when > log.now)
    return replace(log, producers=log.producers.with_snapshots(kept)), left


# retention
def _deleted(
    log: Log, due: Due, ids: Ids, delete: Callable[[int], bool], fails: Refusable | None
) -> tuple[Log, Due, int]:
    """As `changes.deleted`: when the log start rises, and when the snapshots go, hangs on the release."""
    found = changes.deletable(log, delete)
    if not found:
        return log, due, 0
    gone = log.segments[: len(found)]
    if len(gone) == len(log.segments):
        log = changes.rolled(log, 0, fails)
        if log.offline:
            return log, due, 0
        gone = log.segments[:-1]
    first = log.segments[len(gone)].base_offset
    if first > log.log_start and "LOG-D7" not in ids:
        log = changes.with_log_start(log, first)
    if fails == "rename":
        return contents.stranded(log, gone), due, 0
    log, bases = contents.without_segments(log, gone), [s.base_offset for s in gone]
    log, due = _given_up(log, due, bases) if "LOG-D8" in ids else (contents.without_snapshots(log, bases), due)
    if first > log.log_start:
        log = changes.with_log_start(log, first)
    return log, due, len(gone)


def _retained(log: Log, due: Due, ids: Ids, fails: Refusable | None) -> Took:
    """As `changes.retained`: the order of the three rules hangs on the release."""

    count = 0

    def delete(which: Callable[[int], bool]) -> None:
        nonlocal log, due, count
        log, due, more = _deleted(log, due, ids, which, fails)
        count += more

    def below_the_start() -> None:
        start, bases = log.log_start, [s.base_offset for s in log.segments]
        delete(lambda n: n + 1 < len(bases) and bases[n + 1] <= start)

    def beyond_the_size() -> None:
        if log.config.delete and 0 <= log.config.retention_bytes <= log.size:
            over, sizes = log.size - log.config.retention_bytes, [s.size for s in log.segments]
            delete(lambda n: sum(sizes[: n + 1]) <= over)

    def too_old() -> None:
        if log.config.delete and log.config.retention_ms >= 0:
            largest, limit = [s.largest.timestamp for s in log.segments], log.now - log.config.retention_ms
            delete(lambda n: 0 <= largest[n] < limit)

    rules = [below_the_start, beyond_the_size, too_old]
    for rule in reversed(rules) if "LOG-D6" in ids else rules:
        if not log.offline:
            rule()
    return Took(log, changes.OUT_OF_SERVICE if log.offline else count, due)


# truncation
def _truncated(log: Log, due: Due, ids: Ids, op: str, arguments: Mapping[str, Any]) -> Took:
    """What goes, with whose snapshots, and which offsets are looked at again, hangs on the release."""
    offset, before = arguments["offset"], log
    step = _stepped(log, op, arguments)
    log = step.state
    if before.offline or log.offline or (op == "truncateTo" and offset >= before.log_end):
        return Took(*step, due)
    whole = op != "truncateTo" or before.segments[0].base_offset > offset
    gone = [s for s in before.segments if whole or s.base_offset > offset]
    if "LOG-D8" in ids:
        if not whole:
            files = contents.given_up(before, gone)  # the snapshots are gone at once, under no other name
            log = replace(log, removed=files.removed, removals=files.removals)
        log, due = _given_up(log, due, [s.base_offset for s in gone])
    if "LOG-D9" in ids:
        log = changes.high_watermark_set(log, min(before.high_watermark.offset, offset))
    return Took(log, step.result, due)


OWN = {
    "appendAsLeader": {"LOG-D5", "LOG-D13", "LOG-D14", "LOG-D16"},
    "appendAsFollower": {"LOG-D10"},
    "appendEndTxnMarker": {"LOG-D4", "LOG-D14"},
    "deleteOldSegments": {"LOG-D6", "LOG-D7", "LOG-D8"},
    "truncateTo": {"LOG-D8", "LOG-D9"},
    "truncateFullyAndStartAt": {"LOG-D8", "LOG-D9"},
    "roll": {"LOG-D8"},
    "advance": {"LOG-D8"},
    "fetchOffsetByTimestamp": {"LOG-D3", "LOG-D11"},
    "parseTopicPartitionName": {"LOG-D12"},
    "read": {"LOG-D15"},
}
"""the deviations that are an operation's own: it takes another step"""


def _took(log: EarlierLog, due: Due, ids: Ids, op: str, arguments: Mapping[str, Any]) -> Took:
    """The step of a release with these deviations."""
    if op == "deleteOldSegments" and ids:
        return _retained(log, due, ids, arguments["fail_at"])
    if op in ("truncateTo", "truncateFullyAndStartAt") and ids:
        return _truncated(log, due, ids, op, arguments)
    if op == "appendAsLeader":
        stale = arguments["transactional"] and "LOG-D5" in ids
        step = _transactional(log, arguments) if stale else _stepped(log, op, arguments)
        return Took(_timed(log, step.state) if "LOG-D16" in ids else step.state, step.result, due)
    if op == "appendEndTxnMarker" and "LOG-D4" in ids:
        arguments = {**arguments, "transaction_version": 0}
    if op == "appendAsFollower" and "LOG-D10" in ids:
        arguments = {**arguments, "leader_epoch": INT_MAX}
    if op == "fetchOffsetByTimestamp":
        unknown = {"LOG-D3": (EARLIEST_PENDING_UPLOAD,), "LOG-D11": (MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED)}
        if any(arguments["timestamp"] in unknown[id] for id in ids):
            arguments = {**arguments, "timestamp": 0}  # any record is at or above a negative one
    if op == "parseTopicPartitionName" and "LOG-D12" in ids and arguments["name"].endswith("-stray"):
        return Took(log, NO_LOG, due)  # a partition is a number
    if op == "read" and "LOG-D15" in ids and log.offline:
        return Took(log, changes.OUT_OF_SERVICE, due)
    after, result = _stepped(log, op, arguments)
    if op == "read" and "LOG-D15" in ids and result == NOT_IN_THE_LOG:
        return Took(log, result, due)
    base = log.active.base_offset
    replaced = op == "roll" and result == base == after.log_end  # before a snapshot was taken
    if "LOG-D8" in ids and replaced and (log.config.file_delete_delay_ms or base <= log.producers.last_snapshot):
        after, due = _given_up(after, due, [base])
    if op == "advance" and "LOG-D8" in ids:
        after, due = _gone(after, due)
    if op in ("closeAndReopen", "crashAndReopen"):
        due = ()
    return Took(after, result, due)


def _advance(ghost: Went, before: Log, op: str, arguments: Mapping[str, Any], after: Log) -> Went:
    """The earlier log makes its step. As soon as nothing tells it from the spec's it is that one again."""
    ids, spec = ghost.ids, _earlier(before, ghost.ids)
    state = spec if ghost.state is None else ghost.state
    if ghost.left:
        return replace(ghost, known=False)
    same = state == spec and not ghost.due
    if not same and machine.outside(machine.find(op), state, arguments) is not None:
        return replace(ghost, left=True, known=False)
    own = ids & OWN.get(op, set())
    took = _took(state, ghost.due, own, op, arguments)
    right = _stepped(before, op, arguments)
    went = _earlier(took.state, ids)
    if went == _earlier(right.state, ids) and not took.due and took.result == right.result:
        return Went(ids, went, (), took.result)
    causes = {id for id in own if _took(state, ghost.due, own - {id}, op, arguments) != took}
    if op == "appendAsLeader" and arguments["producer_id"] in before.producers.verifications:
        causes |= {"LOG-D13"} & ids
    if state.config != before.config and (isinstance(took.result, Refused) or isinstance(right.result, Refused)):
        causes |= {"LOG-D14"} & own
    still = frozenset() if same else ghost.causes
    left = went.offline != right.state.offline
    return Went(ids, went, took.due, took.result, still | causes or frozenset({"LOG-D2"}), left)


def _began(release: str | None) -> Went:
    return Went(frozenset(d.id for d in machine.deviations if d.begins is _began and d.shows_in(release)))


def _as_earlier(
    id: str,
) -> Callable[[Went, Log, str, Mapping[str, Any], Json | Refused, Json], tuple[Json | Refused, Json]]:
    def rewrite(
        ghost: Went, state: Log, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
    ) -> tuple[Json | Refused, Json]:
        if id not in ghost.causes or not ghost.known:
            return result, observation
        assert ghost.state is not None
        return _passes_the_first(None, ghost.state, op, arguments, ghost.result, machine.observe(ghost.state))

    return rewrite


def _left_by(id: str) -> Callable[[Went], bool]:
    """Of several deviations that show the same the first explains it."""
    return lambda ghost: ghost.left and id == min(ghost.causes, key=lambda id: int(id.removeprefix("LOG-D")))


def _of_earlier(id: str, seen: str) -> Any:
    """What a deviation of earlier logs is made of. Its history shows it in the release in which it was seen."""
    return {
        "rewrite": _as_earlier(id),
        "initial": partial(_began, seen),
        "advance": _advance,
        "begins": _began,
        "lost": _left_by(id),
        "unsaid": lambda ghost: not ghost.known,
    }


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
    Deviation(
        id="LOG-D2",
        clause="LOG-18",
        title="The place of an offset keeps the offset, within a batch and in a hole",
        versions="3.9.1 (seen); the base offset of the batch since 4.0.0 (KAFKA-17803)",
        releases="<4.0",
        condition="""the place is looked up of a high watermark or of a first unstable offset that is within a batch or
        in a hole, or a read begins at such an offset; and from then on whatever hangs on these offsets""",
        history=(
            "init",
            f"appendAsFollower leaderEpoch=0 baseOffset=1 batchLeaderEpoch=0 {RECORD.partition(' ')[2]}",
            'read offset=0 maxLength=0 isolation="LOG_END" minOneMessage=false',
        ),
        cause="""LogSegment.read gives the place with the offset that it was asked for; since KAFKA-17803 with the base
        offset of the batch that it found.""",
        effect="""High watermark, last stable offset and the offset of a fetch stay what was set or asked for. In a hole
        they name an offset that no batch has; within a batch they do not fall below the log start, as they do since
        then (LSO-D1).""",
        fix="Give the base offset of the batch that was found (KAFKA-17803).",
        **_of_earlier("LOG-D2", "3.9.1"),
    ),
    Deviation(
        id="LOG-D3",
        clause="LOG-38",
        title="Target -6, about tiered storage, is taken for a timestamp",
        versions="3.9.1 (seen); known since KIP-1023 (KAFKA-17108)",
        releases="<4.0",
        condition="fetchOffsetByTimestamp of -6",
        history=("init", "fetchOffsetByTimestamp timestamp=-6"),
        cause="The target came later; what is none that is known is a timestamp, and every record is at or above it.",
        effect="The first record at or above the log start, and nothing of an empty log, in place of offset -1.",
        fix="Know the target (KAFKA-17108).",
        **_of_earlier("LOG-D3", "3.9.1"),
    ),
    Deviation(
        id="LOG-D4",
        clause="LOG-9",
        title="A marker of transaction version 2 may have the epoch of the data",
        versions="3.9.1 (seen); right since KAFKA-19446",
        releases="<4.0",
        condition="""a coordinator's marker of version 2 with the epoch of its producer, whose transaction is open; and
        from then on whatever hangs on that marker""",
        history=(
            "init",
            f"appendAsLeader {RECORD} producerId=1 producerEpoch=0 baseSequence=0 transactional=true",
            'appendEndTxnMarker producerId=1 producerEpoch=0 type="ABORT" coordinatorEpoch=0 transactionVersion=2 '
            "timestamp=0 leaderEpoch=0",
        ),
        cause="Markers have no version yet: each is looked at as one of version 0 or 1 (PSM-11).",
        effect="""None by itself, as coordinators of that release do not bump the epoch with each transaction. With one
        that does, a late marker ends the next transaction.""",
        fix="Ask for a higher epoch from version 2 on (KAFKA-19446).",
        **_of_earlier("LOG-D4", "3.9.1"),
    ),
    Deviation(
        id="LOG-D5",
        clause="LOG-1",
        title="A transactional batch of a stale epoch is refused by the producer state, not before the append",
        versions="3.9.1 (seen); refused at once since KAFKA-18042, 4.1.0",
        releases="<4.0",
        condition="""a leader's transactional batch of an epoch below its producer's; and from then on whatever hangs on
        what that append left: leader epochs, a rolled segment, the topic's id in its file, a verification""",
        history=(
            "init",
            f"appendAsLeader {RECORD} producerId=1 producerEpoch=1 baseSequence=0",
            'appendAsLeader leaderEpoch=1 timestamp=0 records=[["k","v"]] producerId=1 producerEpoch=0 baseSequence=0 '
            "transactional=true",
        ),
        cause="""A verification begins whatever the epoch is. The append looks at the epoch when it asks the producers
        (LOG-9), behind the effects that come before that.""",
        effect="""The same exception, with traces; another one if the batch is refused for something else before. A
        verification that was begun so stays, and with it the lowest sequence.""",
        fix="Compare the epochs before a verification begins (KAFKA-18042).",
        **_of_earlier("LOG-D5", "3.9.1"),
    ),
    Deviation(
        id="LOG-D6",
        clause="LOG-39",
        title="Retention looks at the time first and at the log start last: one pass leaves what the next one deletes",
        versions="2.8.2 (seen); the log start first since 3.0.0 (KAFKA-12177)",
        releases="<3.0",
        condition="""a segment below the log start, or one that the size deletes, is younger than retention.ms, and one
        behind it is older""",
        history=(
            "init retentionMs=1000",
            'appendAsLeader leaderEpoch=0 timestamp=1000000 records=[["k","v"]]',
            "roll",
            f"appendAsLeader {RECORD}",
            "updateHighWatermark offset=2",
            "maybeIncrementLogStartOffset offset=1",
            "deleteOldSegments",
        ),
        cause="""Log.deleteOldSegments deletes by time, then by size, then below the log start. Each rule ends at the
        first segment that it keeps, so that the first keeps what lies behind a segment that the last one deletes.""",
        effect="Records stay longer than retention.ms, until the next pass.",
        fix="Delete what is below the log start first (KAFKA-12177).",
        **_of_earlier("LOG-D6", "2.8.2"),
    ),
    Deviation(
        id="LOG-D7",
        clause="LOG-33",
        title="Segments are out of the log before its log start has risen",
        versions="2.8.2 (seen); right since 3.7.1 and 3.8.0 (KAFKA-16073)",
        releases="<3.7.1",
        condition="""retention deletes segments, and the disk refuses to give their files another name; or a reader
        comes in between""",
        history=(
            "init retentionMs=1000",
            f"appendAsLeader {RECORD}",
            "roll",
            "updateHighWatermark offset=1",
            'deleteOldSegments failAt="rename"',
        ),
        cause="""Log.deleteSegments takes the segments out of the map and renames their files, and only then raises the
        log start.""",
        effect="""If that fails, the log start stays below the first segment. A reader in between is told that an offset
        is out of range that the log start promises.""",
        fix="Raise the log start first (KAFKA-16073).",
        **_of_earlier("LOG-D7", "2.8.2"),
    ),
    Deviation(
        id="LOG-D8",
        clause="LOG-34",
        title="The snapshot of a deleted segment keeps its name, and goes by its offset, whoever has taken it since",
        versions="2.8.2 (seen); renamed at once since 3.0.0 (KAFKA-12964)",
        releases="<3.0",
        condition="""a segment with a snapshot at its base offset is deleted, or cut away, or an empty active one is
        replaced; and from then on until file.delete.delay.ms have passed, and whatever hangs on the snapshot""",
        history=(
            "init",
            f"appendAsLeader {RECORD}",
            "roll",
            "roll",
            "advance ms=60000",
        ),
        cause="""Log.deleteSegmentFiles leaves the snapshot to the task that removes the files; that removes whatever
        snapshot there is at the offset by then. A truncation removes it at once, and the task comes all the same.""",
        effect="""A snapshot that was taken in between, at the same offset, is lost. The next load reads more of the
        log, or, after a clean stop and if it was the only one, knows no producer.""",
        fix="Give it another name at once, as the segment's files (KAFKA-12964).",
        **_of_earlier("LOG-D8", "2.8.2"),
    ),
    Deviation(
        id="LOG-D9",
        clause="LOG-20",
        title="A truncation looks at the first unstable offset, and forgets the high watermark's place",
        versions="2.8.2 (seen); not since 3.1.0",
        releases="<3.1",
        condition="""a truncation cuts off the begin of the first transaction that is open, above the high watermark""",
        history=(
            "init",
            f"appendAsLeader {RECORD}",
            f"appendAsLeader {RECORD} producerId=1 producerEpoch=0 baseSequence=0 transactional=true",
            "truncateTo offset=1",
        ),
        cause="""Log.completeTruncation sets the high watermark in any case, to what it was or to the log end, and with
        it looks at the first unstable offset again.""",
        effect="None: the first unstable offset is the right one at once.",
        fix="None is needed.",
        **_of_earlier("LOG-D9", "2.8.2"),
    ),
    Deviation(
        id="LOG-D10",
        clause="LOG-12",
        title="A follower takes batches with a leader epoch above that of the leader that it fetches from",
        versions="2.8.2 (seen); refused since KAFKA-18723, 3.9.1 and 4.0.0",
        releases="<3.9.1",
        condition="a batch of the leader with a higher leader epoch than the leader's own",
        history=(
            "init",
            'appendAsFollower leaderEpoch=0 baseOffset=0 batchLeaderEpoch=1 timestamp=0 records=[["k","v"]]',
        ),
        cause="Log.appendAsFollower does not know which leader the batches come from.",
        effect="""Batches of a fetch that was answered while the leader changed come in with the epochs of the next one,
        and logs part from each other unseen.""",
        fix="Compare each batch's epoch with that of the leader fetched from (KAFKA-18723).",
        **_of_earlier("LOG-D10", "2.8.2"),
    ),
    Deviation(
        id="LOG-D11",
        clause="LOG-38",
        title="Targets -3, -4 and -5 are taken for timestamps",
        versions="2.8.2 (seen); -3 is known since 3.0.0 (KIP-734), -4 and -5 since tiered storage",
        releases="<3.0",
        condition="fetchOffsetByTimestamp of -3, -4 or -5",
        history=("init", "fetchOffsetByTimestamp timestamp=-4"),
        cause="The targets came later; what is none that is known is a timestamp, and every record is at or above it.",
        effect="The first record at or above the log start, and nothing of an empty log.",
        fix="Know the targets (KIP-734, KIP-405, KIP-1005).",
        **_of_earlier("LOG-D11", "2.8.2"),
    ),
    Deviation(
        id="LOG-D12",
        clause="LOG-41",
        title="A directory that ends with -stray is none of a log",
        versions="2.8.2 (seen); known since 3.6.1 and 3.7.0",
        releases="<3.6.1",
        condition="a name of a directory that ends with -stray",
        history=("init", 'parseTopicPartitionName name="t-0.a-stray"'),
        cause="There are no such directories yet.",
        effect="None, as that release makes none.",
        fix="Know the suffix.",
        **_of_earlier("LOG-D12", "2.8.2"),
    ),
    Deviation(
        id="LOG-D13",
        clause="LOG-9",
        title="No transaction is verified",
        versions="2.8.2 (seen); verified since 3.6.0 (KIP-890)",
        releases="<3.6",
        condition="""a batch of a producer whose transactional batch was refused before, with a sequence above that
        one's; and from then on whatever hangs on it""",
        history=(
            "init maxMessageBytes=100",
            'appendAsLeader leaderEpoch=0 timestamp=0 records=[["k","a value that is long enough not to be taken"]] '
            "producerId=1 producerEpoch=0 baseSequence=0 transactional=true",
            f"appendAsLeader {RECORD} producerId=1 producerEpoch=0 baseSequence=1 transactional=true",
        ),
        cause="A producer of which nothing is known may begin at any sequence, as nobody remembers what it asked for.",
        effect="""A batch may be lost in front of one that is taken; and a transaction that its coordinator does not
        know may hang.""",
        fix="Verify transactions (KIP-890).",
        **_of_earlier("LOG-D13", "2.8.2"),
    ),
    Deviation(
        id="LOG-D14",
        clause="LOG-48",
        title="One bound is for timestamps before and after the clock",
        versions="2.8.2 (seen); two since 3.6.0 (KIP-937)",
        releases="<3.6",
        condition="""a leader is given a timestamp after its clock, and message.timestamp.before.max.ms, which stands
        for the one bound, has it another way than message.timestamp.after.max.ms""",
        history=(
            "init messageTimestampAfterMaxMs=0",
            'appendAsLeader leaderEpoch=0 timestamp=1000001 records=[["k","v"]]',
        ),
        cause="There is message.timestamp.difference.max.ms alone.",
        effect="A timestamp of tomorrow keeps a segment from retention for as long, if the bound allows it.",
        fix="Have two bounds (KIP-937).",
        **_of_earlier("LOG-D14", "2.8.2"),
    ),
    Deviation(
        id="LOG-D15",
        clause="LOG-21",
        title="A read is refused before its bound is looked up, and first of all for a directory out of service",
        versions="2.8.2 (seen); the log start first, then the bound, since 3.1.0",
        releases="<3.1",
        condition="""a read outside the log whose bound is not at its own place, which was not looked up (LOG-18); a
        read below the log start while the directory is out of service""",
        history=(
            "init",
            f"appendAsFollower leaderEpoch=0 baseOffset=1 batchLeaderEpoch=0 {RECORD.partition(' ')[2]}",
            "truncateTo offset=1",
            'read offset=2 maxLength=0 isolation="HIGH_WATERMARK" minOneMessage=false',
        ),
        cause="""All of Log.read runs behind the question whether the directory is in service, and the place of the
        bound is looked up behind the checks of the offset.""",
        effect="None but another exception, or a place that is looked up later, of a read that is refused either way.",
        fix="None is needed.",
        **_of_earlier("LOG-D15", "2.8.2"),
    ),
    Deviation(
        id="LOG-D16",
        clause="LOG-28",
        title="A truncation within a leader's batch leaves the batch's timestamp in the time index",
        versions="2.8.2 (seen); the entry is at the batch's last offset since 3.8.0",
        releases="<3.8",
        condition="""with CreateTime a leader appended a batch of several records that has an entry in the time index,
        and the log is truncated within it; and from then on whatever hangs on the largest timestamp""",
        history=(
            "init indexIntervalBytes=0",
            f"appendAsLeader {RECORD}",
            'appendAsLeader leaderEpoch=0 timestamp=1 records=[["k","v"],["k","v"]]',
            "truncateTo offset=2",
        ),
        cause="""LogValidator gives the offset of the first record with the largest timestamp, and the time index has
        that one; the truncation drops entries at or above its offset, while the batch around the offset goes whole.""",
        effect="""The segment has a largest timestamp of no record: retention by time keeps it longer, and a look-up of
        that timestamp ends there.""",
        fix="Enter the last offset of the batch, as a follower does.",
        **_of_earlier("LOG-D16", "2.8.2"),
    ),
]
