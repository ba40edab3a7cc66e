"""One replica of the quorum: the arguments that engines try, around what its log and its epoch are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

from kafkaspec.contract.codec import encode
from kafkaspec.spec.common.raft_replica import FetchAnswer, Record, Replica, SnapshotId
from kafkaspec.spec.controller.raft import FENCED, NONE, NOT_LEADER, UNKNOWN_EPOCH, machine

WIDE: Final = 70_000
"""The id of a node, of more than 16 bits."""


def _seldom(state: Replica, n: int) -> bool:
    """In one of `n` states."""
    return (state.epoch * 7 + state.end * 5 + len(state.ends) * 3 + len(state.told) + len(state.prepared)) % n == 0


def _is_left_alone(state: Replica) -> bool:
    """Mostly, who stands or leads; and everybody in an even epoch, so that it stands and is elected."""
    stands = state.role in ("prospective", "candidate", "leader")
    return (stands or (state.epoch % 2 == 0 and not state.homeless)) and not _seldom(state, 4)


def _of_a_leader(candidates: Callable[[Replica], Sequence[Any]]) -> Callable[[Replica], Sequence[Any]]:
    """What only a leader does: others seldom, so that who stands is elected before something else happens."""
    return lambda state: candidates(state) if state.role == "leader" or _seldom(state, 4) else ()


def _others(state: Replica) -> Sequence[int]:
    """Voters and one that is none, without the replica itself."""
    return [n for n in (*state.voters, 3, 4) if n != state.local]


def _candidates(state: Replica) -> Sequence[int]:
    return () if _is_left_alone(state) else [*_others(state), WIDE]


def _epochs(state: Replica) -> Sequence[int]:
    """Mostly its own, so that roles last."""
    lasts = state.role in ("leader", "prospective", "candidate")
    return [*([state.epoch] * (8 if lasts else 3)), state.epoch + 1, max(0, state.epoch - 1)]


def _ends(state: Replica) -> Sequence[int]:
    """Offsets where something begins or ends, or ended when a replica fetched that lags."""
    lagging = [end for n, end in state.seen.items() if n not in state.caught]
    return [state.end, max(0, state.end - 1), state.end + 1, state.start, state.high or 0, 0, *lagging]


def _last_epochs(state: Replica) -> Sequence[int]:
    return [state.last_epoch, max(0, state.last_epoch - 1), state.last_epoch + 1, 0]


def _fetched_epochs(state: Replica) -> Sequence[int]:
    """Mostly that of the log's end; that of the log before its leader's epoch; one that the log does not have."""
    known = [*(at.epoch for at in state.snapshots[:1]), *(r.epoch for r in state.log)]
    lacking = [b - 1 for a, b in pairwise(known) if b - a > 1]
    before = [end_epoch(state, state.begun)] if state.begun else []
    return [*([state.last_epoch] * 8), *_last_epochs(state)[1:3], *before, *lacking[-1:], 0]


def _leaders(state: Replica) -> Sequence[int | None]:
    """Whom it knows; or anybody."""
    return [state.leader, 1, 2, None]


def _new_leaders(state: Replica) -> Sequence[int]:
    return () if _is_left_alone(state) else [n for n in _leaders(state) if n is not None]


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
    if state.homeless:
        return [FetchAnswer(NOT_LEADER, at, leader), FetchAnswer(FENCED, at, leader), good]
    return [
        good,
        good._replace(high=end + 1, records=(Record(epoch, "v"), Record(epoch))),
        good._replace(high=end, records=(Record(epoch, f"w{end}"),)),
        good._replace(records=(Record(epoch, voters=(0, 1, 2, 3) if state.dynamic else None),), high=end),
        good._replace(records=(Record(epoch, "p"), Record(epoch, "q")), high=None),
        good._replace(records=(Record(epoch, "x"), Record(epoch, "y", joined=True)), high=end + 2),
        good._replace(diverging=SnapshotId(max(state.high or 0, end - 1), state.last_epoch)),
        good._replace(diverging=SnapshotId(end + 2, max(0, state.last_epoch - 1))),
        good._replace(diverging=own),
        good._replace(diverging=SnapshotId(state.kept, end_epoch(state, state.kept))),
        good._replace(diverging=SnapshotId(0, 0)),
        *([good._replace(snapshot=SnapshotId(end + 2, epoch))] * 6),
        FetchAnswer(NONE, at + 1, 2, records=(Record(at + 1),)),
        FetchAnswer(FENCED, at + 1, 2),
        FetchAnswer(FENCED, at + 1, None),
        FetchAnswer(NOT_LEADER, at, leader),
        FetchAnswer(UNKNOWN_EPOCH, max(0, at - 1), None),
    ]


def _snapshot_epochs(state: Replica) -> Sequence[int]:
    """Those of what is committed; seldom where nothing is."""
    if _is_left_alone(state) and state.role != "leader":
        return ()
    known = sorted({r.epoch for r in state.log[: max(0, state.committed - state.start)]})
    return [*known, state.epoch] if known or _seldom(state, 4) else ()


def _voters_of_answers(state: Replica) -> Sequence[int]:
    if state.role not in ("prospective", "candidate") and not _seldom(state, 4):
        return ()
    return [v for v in state.voters if v != state.local and v not in state.granted | state.rejected]


machine.candidates |= {
    "init:voters": lambda state: [(0, 1), (0, 1, 2), (0,), (0, 1, 2, 3), (0, 1), (0,), (0, 1, WIDE), (0, 1, 2, 3)],
    "init:dynamic": lambda state: [True, True, False],
    "epoch": _epochs,
    "candidate": _candidates,
    "last_epoch": _last_epochs,
    "last_offset": lambda state: [*_ends(state), 2**40],
    "pre_vote": lambda state: [True, False],
    "source": _voters_of_answers,
    "error": lambda state: [*([NONE] * 9), FENCED],
    "leader": _new_leaders,
    "voteResponse:leader": lambda state: [*([None] * 8), *_leaders(state)],
    "voteResponse:epoch": lambda state: [*([state.epoch] * 10), state.epoch + 1, max(0, state.epoch - 1)],
    "granted": lambda state: [*([True] * 8), False, False],
    "successors": lambda state: [(1, 0), (0, 1), (1, 2), (2, 1, 0), (2, 0, 1), ()] if _seldom(state, 5) else (),
    "max_ms": lambda state: [1000, 7, 0],
    "replica": lambda state: [*_others(state)[:-2], *_others(state), WIDE],
    "fetch:epoch": lambda state: [*([state.epoch] * 8), state.epoch + 1, max(0, state.epoch - 1)],
    "offset": _ends,
    "fetch:offset": _of_a_leader(lambda state: [*([state.end] * 6), *_ends(state), state.begun or 0]),
    "fetch:last_epoch": _fetched_epochs,
    "answer": lambda state: () if _is_left_alone(state) else encode(_answers(state)),
    "fetchSnapshotResponse:voters": lambda state: [(0, 1, 2), (0, 1, 3), (1, 2)],
    "createSnapshot:epoch": _snapshot_epochs,
    "values": _of_a_leader(lambda state: [("a",), ("b", "c"), ()]),
    "resign:epoch": _of_a_leader(lambda state: [state.epoch, *([state.epoch - 1, state.epoch + 1, -1] * 3)]),
    "addVoter:voter": _of_a_leader(lambda state: [3, *state.caught, *state.voters, 4]),
    "removeVoter:voter": _of_a_leader(lambda state: [state.local] * 3 + [*state.voters] * 2 + [4]),
}
