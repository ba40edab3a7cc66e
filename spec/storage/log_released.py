"""Log: known deviations of released Kafka.

A log before 4.0 goes another way than the spec's as soon as one of its offsets, or one of its batches, is another one.
So the ghost of its deviations is its whole state: the spec's own steps, but for the few that it takes in another way.
Source: UnifiedLog and LogSegment, Kafka 4.3.0 and 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from kafkaspec.contract.codec import encode, replace
from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused, Step
from kafkaspec.spec.common import segment_contents
from kafkaspec.spec.storage.log import machine
from kafkaspec.spec.storage.log_parts.contents import Log
from kafkaspec.spec.storage.log_parts.reading import EARLIEST_PENDING_UPLOAD, aborted_up_to, behind
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


# ---- before 4.0 ------------------------------------------------------------------------------------------------------
class EarlierLog(Log):
    """A log before 4.0. Its places keep the offset that was asked for."""

    def stands_for(self, offset: int, batch: segment_contents.Batch) -> int:
        return offset


def _earlier(log: Log) -> EarlierLog:
    return EarlierLog(**{f.name: getattr(log, f.name) for f in fields(log)})


@dataclass(frozen=True)
class Went:
    """Where an earlier log went: its state, what it answered last, and by which deviations it is not the spec's.
    `left`: its directory alone is out of service, or in service, or a call was outside the contract in its state: what
    it shows after that call is not `known`."""

    state: EarlierLog
    result: Json | Refused = None
    causes: frozenset[str] = frozenset()
    left: bool = False
    known: bool = True


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


def _earlier_step(log: EarlierLog, op: str, arguments: Mapping[str, Any]) -> tuple[Step[Log], set[str]]:
    """A step of a log before 4.0, and the deviation that it is the operation's own, if it shows."""
    own: tuple[str, Step[Log]] | None = None
    if op == "fetchOffsetByTimestamp" and arguments["timestamp"] == EARLIEST_PENDING_UPLOAD:
        own = "LOG-D3", _stepped(log, op, {**arguments, "timestamp": 0})  # any record is at or above a negative one
    elif op == "appendEndTxnMarker":
        own = "LOG-D4", _stepped(log, op, {**arguments, "transaction_version": 0})
    elif op == "appendAsLeader" and arguments["transactional"]:
        own = "LOG-D5", _transactional(log, arguments)
    step = _stepped(log, op, arguments)
    if own is None or own[1] == step:
        return step, set()
    return own[1], {own[0]}


def _advance(ghost: Went | None, before: Log, op: str, arguments: Mapping[str, Any], after: Log) -> Went:
    """The earlier log makes the same step. As soon as nothing tells it from the spec's it is that one again."""
    spec = _earlier(before)
    was = Went(spec) if ghost is None else ghost
    if was.left:
        return replace(was, known=False)
    left = was.state != spec and machine.outside(machine.find(op), was.state, arguments) is not None
    step, causes = _earlier_step(was.state, op, arguments)
    state = _earlier(step.state)
    right = _stepped(before, op, arguments)
    if state == _earlier(right.state) and step.result == right.result:
        return Went(state, step.result)
    still = was.causes if was.state != spec else frozenset()
    left = left or state.offline != right.state.offline
    return Went(state, step.result, still | causes or frozenset({"LOG-D2"}), left)


def _as_earlier(
    id: str,
) -> Callable[[Went, Log, str, Mapping[str, Any], Json | Refused, Json], tuple[Json | Refused, Json]]:
    def rewrite(
        ghost: Went, state: Log, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
    ) -> tuple[Json | Refused, Json]:
        if id not in ghost.causes or not ghost.known:
            return result, observation
        return _passes_the_first(None, ghost.state, op, arguments, ghost.result, machine.observe(ghost.state))

    return rewrite


def _left_by(id: str) -> Callable[[Went | None], bool]:
    """Of several deviations that show the same the first explains it."""
    return lambda ghost: ghost is not None and ghost.left and id == min(ghost.causes)


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
        rewrite=_as_earlier("LOG-D2"),
        advance=_advance,
        lost=_left_by("LOG-D2"),
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
        rewrite=_as_earlier("LOG-D3"),
        advance=_advance,
        lost=_left_by("LOG-D3"),
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
        rewrite=_as_earlier("LOG-D4"),
        advance=_advance,
        lost=_left_by("LOG-D4"),
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
        rewrite=_as_earlier("LOG-D5"),
        advance=_advance,
        lost=_left_by("LOG-D5"),
    ),
]
