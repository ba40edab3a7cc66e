"""One replica of the quorum: the arguments that engines try, around what its log and its epoch are."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaspec.spec.controller.raft import (
    FENCED,
    NONE,
    NOT_LEADER,
    UNKNOWN_EPOCH,
    FetchAnswer,
    Record,
    Replica,
    SnapshotId,
    end_of_epoch,
    machine,
)


def _others(state: Replica) -> Sequence[int]:
    """Voters and one that is none, without the replica itself."""
    return [n for n in (*state.voters, 3, 4) if n != state.local]


def _epochs(state: Replica) -> Sequence[int]:
    return [state.epoch, state.epoch + 1, max(0, state.epoch - 1)]


def _ends(state: Replica) -> Sequence[int]:
    """Offsets where something begins or ends."""
    return [state.end, max(0, state.end - 1), state.end + 1, state.start, state.high or 0, 0]


def _last_epochs(state: Replica) -> Sequence[int]:
    return [state.last_epoch, max(0, state.last_epoch - 1), state.last_epoch + 1, 0]


def _leaders(state: Replica) -> Sequence[int | None]:
    """Whom it knows; or anybody."""
    return [state.leader, 1, 2, None]


def _answers(state: Replica) -> Sequence[FetchAnswer]:
    """What a leader of this epoch, or of the next, may answer; and what others do."""
    at, end = state.epoch, state.end
    leader = state.leader if state.leader is not None else 1
    good = FetchAnswer(NONE, at, leader, None if state.high is None else max(state.high, end))
    epoch = max(at, state.last_epoch)
    own = end_of_epoch(state, max(0, state.last_epoch - 1))
    return [
        good,
        good._replace(high=end + 1, records=(Record(epoch, "v"), Record(epoch))),
        good._replace(high=end, records=(Record(epoch, f"w{end}"),)),
        good._replace(records=(Record(epoch, voters=(0, 1, 2, 3)),), high=end),
        good._replace(diverging=SnapshotId(max(state.high or 0, end - 1), state.last_epoch)),
        good._replace(diverging=SnapshotId(end + 2, max(0, state.last_epoch - 1))),
        good._replace(diverging=own),
        good._replace(diverging=SnapshotId(0, 0)),
        good._replace(snapshot=SnapshotId(end + 2, epoch)),
        FetchAnswer(NONE, at + 1, 2, records=(Record(at + 1),)),
        FetchAnswer(FENCED, at + 1, 2),
        FetchAnswer(FENCED, at + 1, None),
        FetchAnswer(NOT_LEADER, at, leader),
        FetchAnswer(UNKNOWN_EPOCH, max(0, at - 1), None),
    ]


def _voters_of_answers(state: Replica) -> Sequence[int]:
    open_ = [v for v in state.voters if v != state.local and v not in state.granted | state.rejected]
    return open_ or [1]


machine.candidates |= {
    "init:voters": lambda state: [(0, 1, 2), (0, 1, 2, 3), (0, 1), (0,)],
    "init:dynamic": lambda state: [True, False],
    "epoch": _epochs,
    "candidate": _others,
    "last_epoch": _last_epochs,
    "last_offset": _ends,
    "pre_vote": lambda state: [True, False],
    "source": _voters_of_answers,
    "error": lambda state: [NONE, NONE, NONE, FENCED],
    "leader": lambda state: [n for n in _leaders(state) if n is not None],
    "voteResponse:leader": _leaders,
    "granted": lambda state: [True, True, False],
    "successors": lambda state: [(1, 0), (0, 1), (1, 2), (2, 1, 0), (2, 0, 1), ()],
    "max_ms": lambda state: [1000, 7, 0],
    "replica": _others,
    "fetch:epoch": lambda state: [state.epoch, state.epoch, state.epoch, state.epoch + 1, max(0, state.epoch - 1)],
    "offset": _ends,
    "answer": _answers,
    "fetchSnapshotResponse:voters": lambda state: [(0, 1, 2), (0, 1, 3), (1, 2)],
    "createSnapshot:epoch": lambda state: [
        *{r.epoch for r in state.log[: max(0, state.committed - state.start)]},
        state.epoch,
    ],
    "values": lambda state: [("a",), ("b", "c"), ()],
    "resign:epoch": lambda state: [state.epoch, state.epoch - 1, state.epoch + 1, -1],
    "voter": lambda state: [3, *state.voters, 4],
    "caught_up": lambda state: [True, True, False],
}
