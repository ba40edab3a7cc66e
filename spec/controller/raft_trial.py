"""One replica of the quorum: the arguments that engines try, around what its log and its epoch are."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaspec.contract.codec import encode
from kafkaspec.spec.common.raft_replica import FetchAnswer, Record, Replica, SnapshotId
from kafkaspec.spec.controller.raft import FENCED, NONE, NOT_LEADER, UNKNOWN_EPOCH, machine


def _others(state: Replica) -> Sequence[int]:
    """Voters and one that is none, without the replica itself."""
    return [n for n in (*state.voters, 3, 4) if n != state.local]


def _stands(state: Replica) -> bool:
    return state.role in ("prospective", "candidate")


def _epochs(state: Replica) -> Sequence[int]:
    """Mostly its own, so that roles last."""
    own = 40 if state.role == "leader" or _stands(state) else 3
    return [*([state.epoch] * own), state.epoch + 1, max(0, state.epoch - 1)]


def _epochs_of_leaders(state: Replica) -> Sequence[int]:
    """Of who stands mostly an earlier one, so that it is elected."""
    return [*_epochs(state), *([max(0, state.epoch - 1)] * (60 if _stands(state) else 0))]


def _ends(state: Replica) -> Sequence[int]:
    """Offsets where something begins or ends."""
    return [state.end, max(0, state.end - 1), state.end + 1, state.start, state.high or 0, 0]


def _last_epochs(state: Replica) -> Sequence[int]:
    return [state.last_epoch, max(0, state.last_epoch - 1), state.last_epoch + 1, 0]


def _leaders(state: Replica) -> Sequence[int | None]:
    """Whom it knows; or anybody."""
    return [state.leader, 1, 2, None]


def end_epoch(state: Replica, offset: int) -> int:
    """That of the record before an offset."""
    at = offset - state.start - 1
    return state.log[at].epoch if 0 <= at < len(state.log) else state.last_epoch


def _answers(state: Replica) -> Sequence[FetchAnswer]:
    """What a leader of this epoch, or of the next, may answer; and what others do."""
    at, end = state.epoch, state.end
    leader = state.leader if state.leader is not None else 1
    good = FetchAnswer(NONE, at, leader, None if state.high is None else max(state.high, end))
    epoch = max(at, state.last_epoch)
    own = state.end_of_epoch(max(0, state.last_epoch - 1))
    return [
        good,
        good._replace(high=end + 1, records=(Record(epoch, "v"), Record(epoch))),
        good._replace(high=end, records=(Record(epoch, f"w{end}"),)),
        good._replace(records=(Record(epoch, voters=(0, 1, 2, 3) if state.dynamic else None),), high=end),
        good._replace(records=(Record(epoch, voters=(1, 2, 3) if state.dynamic else None),), high=end),
        good._replace(records=(Record(epoch, "p"), Record(epoch, "q")), high=None),
        good._replace(records=(Record(epoch, "x"), Record(epoch, "y", joined=True)), high=end + 2),
        good._replace(diverging=SnapshotId(max(state.high or 0, end - 1), state.last_epoch)),
        good._replace(diverging=SnapshotId(end + 2, max(0, state.last_epoch - 1))),
        good._replace(diverging=own),
        good._replace(diverging=SnapshotId(state.kept, end_epoch(state, state.kept))),
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
    "init:voters": lambda state: [(0, 1, 2), (0, 1, 2, 3), (0, 1), (0, 1), (0,)],
    "init:dynamic": lambda state: [True, True, False],
    "epoch": _epochs,
    "beginQuorumEpoch:epoch": _epochs_of_leaders,
    "endQuorumEpoch:epoch": _epochs_of_leaders,
    "candidate": _others,
    "last_epoch": _last_epochs,
    "last_offset": _ends,
    "pre_vote": lambda state: [True, False],
    "source": _voters_of_answers,
    "error": lambda state: [*([NONE] * 15), FENCED],
    "leader": lambda state: [n for n in _leaders(state) if n is not None],
    "voteResponse:leader": lambda state: [*([None] * (20 if _stands(state) else 6)), *_leaders(state)],
    "voteResponse:epoch": lambda state: [*([state.epoch] * 16), state.epoch + 1, max(0, state.epoch - 1)],
    "granted": lambda state: [True, True, True, True, True, False],
    "successors": lambda state: [(1, 0), (0, 1), (1, 2), (2, 1, 0), (2, 0, 1), ()],
    "max_ms": lambda state: [1000, 7, 0],
    "replica": lambda state: [*_others(state), 3, 3],
    "fetch:epoch": lambda state: [*([state.epoch] * 12), state.epoch + 1, max(0, state.epoch - 1)],
    "offset": _ends,
    "fetch:offset": lambda state: [*([state.end] * 12), *([state.begun or 0] * 3), *_ends(state)],
    "fetch:last_epoch": lambda state: [*([state.last_epoch] * 12), *_last_epochs(state)],
    "answer": lambda state: encode(_answers(state)),
    "fetchSnapshotResponse:voters": lambda state: [(0, 1, 2), (0, 1, 3), (1, 2)],
    "createSnapshot:epoch": lambda state: [
        *{r.epoch for r in state.log[: max(0, state.committed - state.start)]},
        state.epoch,
    ],
    "values": lambda state: [("a",), ("b", "c"), ()],
    "resign:epoch": lambda state: [state.epoch, *([state.epoch - 1, state.epoch + 1, -1] * 3)],
    "addVoter:voter": lambda state: [3, *state.caught, *state.voters, 4],
    "removeVoter:voter": lambda state: [state.local] * 6 + [*state.voters, 4],
}
