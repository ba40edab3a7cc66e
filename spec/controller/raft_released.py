"""What the released Kafka forgets of its voters, and whose answer ends it, for its known deviations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, ILLEGAL_STATE
from kafkaspec.spec.common.raft_replica import BOOTSTRAP, Replica
from kafkaspec.spec.controller.raft import machine

Voters = tuple[int, ...]


class VotersMemory(NamedTuple):
    """The ghost: what the client's own listener has read of the voters, by offset, and up to where it has read the log;
    which deviation showed, and whether it did where more than the voters may differ; what was seen before an end."""

    history: tuple[tuple[int, Voters], ...] | None = None
    """None: as at first"""
    read: int = 0
    shown: str = ""
    more: bool = False
    before: bytes = b""

    @property
    def voters(self) -> Voters:
        """The last ones; none, if all were dropped."""
        return self.history[-1][1] if self.history else ()


def _loaded(state: Replica) -> VotersMemory:
    """What is read at a start: the latest snapshot, and the log behind it."""
    at = state.latest or BOOTSTRAP
    known = [r.voters for r in state.log[: max(0, at.offset - state.start)] if r.voters is not None]
    history = ((at.offset - 1, known[-1] if known else state.first),)
    return _further(VotersMemory(history, max(at.offset, state.start)), state)


def _further(ghost: VotersMemory, state: Replica) -> VotersMemory:
    """The log is read on from where reading ended, though less of it may have been left since."""
    new = state.log[max(0, ghost.read - state.start) :]
    found = tuple((ghost.read + i, r.voters) for i, r in enumerate(new) if r.voters is not None)
    return ghost._replace(history=(ghost.history or ()) + found, read=max(ghost.read, state.end))


def _advance(
    ghost: VotersMemory, before: Replica, op: str, arguments: Mapping[str, Any], after: Replica
) -> VotersMemory:
    if ghost.shown or not before.dynamic:
        return _ended(ghost, before, op, after)
    if op == "restart" and before.voted == before.local != before.leader and before.local not in before.voters:
        return ghost._replace(shown="RFT-D4", before=orjson.dumps(machine.observe(before)))
    if ghost.history is None:
        ghost = _loaded(before)
    if op == "restart" or (op == "fetchSnapshotResponse" and ghost.read < after.start):
        ghost = _loaded(after)
    elif op == "createSnapshot" and before.snapshots != after.snapshots:
        gone = sum(offset <= arguments["offset"] for offset, _ in ghost.history or ())
        ghost = ghost._replace(history=(ghost.history or ())[max(0, gone - 1) :])
    elif after.end < before.end and op == "fetchResponse":
        ghost = ghost._replace(history=tuple(h for h in ghost.history or () if h[0] < after.end))
    ghost = _further(ghost, after)
    led = "leader" in (before.role, after.role)
    writes_again = (
        led and before.role != "leader" and ghost.history == ((-1, ghost.voters),) and after.voters_offset >= 0
    )
    if ghost.voters != after.voters or writes_again:
        return ghost._replace(shown="RFT-D3" if ghost.history else "RFT-D1", more=led)
    return _ended(ghost, before, op, after)


def _ended(ghost: VotersMemory, before: Replica, op: str, after: Replica) -> VotersMemory:
    if not ghost.shown and op == "fetchResponse" and before.homeless and after.role == "follower" and after.fetched:
        return ghost._replace(shown="RFT-D2", before=orjson.dumps(machine.observe(before)))
    return ghost


def _voters(id: str) -> Callable[..., tuple[Json | Refused, Json]]:
    def rewrite(
        ghost: VotersMemory, state: Replica, op: str, arguments: Mapping[str, Any], result: Any, observation: Any
    ) -> tuple[Json | Refused, Json]:
        if ghost.shown != id:
            return result, observation
        return result, type(observation)({**observation, "voters": [*ghost.voters]})

    return rewrite


def _end(id: str, clause: str, exception: str) -> Callable[..., tuple[Json | Refused, Json]]:
    def rewrite(
        ghost: VotersMemory, state: Replica, op: str, arguments: Mapping[str, Any], result: Any, observation: Any
    ) -> tuple[Json | Refused, Json]:
        if ghost.shown != id:
            return result, observation
        return Refused(clause, exception), type(observation)(orjson.loads(ghost.before))

    return rewrite


def _deviation(id: str, rewrite: Callable[..., tuple[Json | Refused, Json]], **said: Any) -> Deviation:
    return Deviation(
        id=id,
        versions="seen in 4.3.0",
        rewrite=rewrite,
        initial=VotersMemory,
        advance=_advance,
        lost=lambda ghost: ghost.shown == id,
        unsaid=lambda ghost: ghost.more,
        **said,
    )


machine.deviations += [
    _deviation(
        "RFT-D1",
        _voters("RFT-D1"),
        clause="RFT-29",
        title="After a snapshot, a truncated change of the voters leaves none",
        condition="a snapshot is made that ends at the offset of a record which changes the voters and is not "
        "committed, and that record is truncated, before the replica starts again or loads a snapshot",
        history=(
            "beginQuorumEpoch epoch=1 leader=1",
            'fetchResponse answer=["NONE",1,1,1,null,null,[[1,"a",null,false],[1,null,[0,1,2,3],false]]]',
            "createSnapshot offset=1 epoch=1",
            "beginQuorumEpoch epoch=2 leader=2",
            'fetchResponse answer=["NONE",2,2,null,[1,1],null,[]]',
        ),
        cause="when a snapshot is made, what was said of the voters is dropped up to the snapshot's end, which is the "
        "offset behind its last record. A record at that offset is taken for one that the snapshot has, and what the "
        "snapshot really has is dropped. TreeMapLogHistory.truncateOldEntries, which keeps the last entry up to an "
        "offset, gets an offset from KafkaRaftClient.createSnapshot that is one too high.",
        effect="the replica knows no voters, and is none: it stands for no election, until it starts again or is sent "
        "a change of the voters. kraft.version is kept in the same way.",
        fix="to drop what was said before the last offset that the snapshot contains",
    ),
    _deviation(
        "RFT-D2",
        _end("RFT-D2", "RFT-11", ILLEGAL_STATE),
        clause="RFT-11",
        title="The answer of a leader that is no voter ends the client",
        condition="a replica started again while it followed a leader that is not among its voters, and a fetch is "
        "answered without an error by that leader in that epoch",
        history=(
            "beginQuorumEpoch epoch=1 leader=1",
            'fetchResponse answer=["NONE",1,1,0,null,null,[[1,null,[0,2],false]]]',
            "restart",
            'fetchResponse answer=["NONE",1,1,0,null,null,[]]',
        ),
        cause="such a replica is unattached, and knows the leader but not where it is. maybeHandleCommonResponse makes "
        "a follower of a replica that knows no leader; handleFetchResponse then expects a follower.",
        effect="an IllegalStateException in the thread of the client, which is fatal. A leader that removes itself is "
        "no voter until that is committed; a replica that starts again meanwhile fetches from the bootstrap servers, "
        "which are likely to contain the leader.",
        fix="to follow the leader that answers, as it is done where an answer has an error",
    ),
    _deviation(
        "RFT-D3",
        _voters("RFT-D3"),
        clause="RFT-29",
        title="Voters that are written where the log was truncated are not read",
        condition="a log is truncated, and behind that a record that changes the voters is written at an offset below "
        "the end that the log had before, or a snapshot of such an offset is loaded, before the replica starts again",
        history=(
            "beginQuorumEpoch epoch=1 leader=1",
            'fetchResponse answer=["NONE",1,1,0,null,null,[[1,"a",null,false],[1,"b",null,false]]]',
            "beginQuorumEpoch epoch=2 leader=2",
            'fetchResponse answer=["NONE",2,2,0,[0,0],null,[]]',
            'fetchResponse answer=["NONE",2,2,0,null,null,[[2,null,[0,1,2,3],false]]]',
        ),
        cause="KRaftControlRecordStateMachine reads the log on from the offset where it ended. "
        "Its truncateNewEntries takes back what was read of the voters, and leaves that offset where it was.",
        effect="the replica goes on with the voters of before: it counts votes, and as a leader what is committed, by "
        "a set that the others do not have, also when the change is committed. Two sets that are more than one change "
        "apart need not overlap.",
        fix="to go back to the end of the log when it is truncated",
    ),
    _deviation(
        "RFT-D4",
        _end("RFT-D4", "RFT-39", ILLEGAL_ARGUMENT),
        clause="RFT-39",
        title="A replica that stood for election and is no voter any more cannot start",
        condition="a replica voted for itself in its epoch and did not win, a change of the voters leaves it out, and "
        "it starts again before it has heard of a later epoch",
        history=(
            "electionTimeout",
            'voteResponse source=1 error="NONE" epoch=0 leader=null granted=true',
            "beginQuorumEpoch epoch=1 leader=1",
            'fetchResponse answer=["NONE",1,1,0,null,null,[[1,null,[1,2],false]]]',
            "restart",
        ),
        cause="the file quorum-state keeps the vote beside the leader. QuorumState.initialize makes a CandidateState "
        "of whoever has a vote for itself there, before it looks at the leader; CandidateState takes voters only.",
        effect="an IllegalArgumentException when the client is initialized, at every start: the controller, or the "
        "broker that was one, stays down until its quorum-state is removed by hand.",
        fix="to make a candidate of who voted for itself only if it is a voter",
    ),
]
