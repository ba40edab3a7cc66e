"""High watermark: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from kafkaspec.language.concrete import element
from kafkaspec.lockstep.exhaustive import Call, RefinementMapping
from kafkaspec.models.storage import high_watermark as model
from kafkaspec.spec.storage.high_watermark import machine
from kafkaspec.spec.storage.high_watermark_parts.replicas import LOCAL, Partition, maximal_isr

OTHERS = (2, 3, 4)
EPOCH: Final = 12
"""The broker epoch of everybody's first life."""
FAR: Final = 2**16 + 2
"""A broker whose id ends in 16 bits as that of a follower."""


def _one_in(state: Partition, n: int) -> bool:
    """In one of `n` states: what undoes much is done seldom, and a leader comes to something."""
    log, asked = state.log, 1 + (state.in_flight is not None) + 2 * (state.pending is not None)
    seen = sum(max(0, f.log_end) * f.id + f.last_caught_up_ms for f in state.followers)
    return (
        log.log_end * 5 + log.high_watermark * 3 + state.partition_epoch * 7 + seen + state.now * 11
    ) % n == asked % n


def _led(state: Partition) -> bool:
    """Whether a leader is to be asked: who is none refuses, always alike."""
    return state.is_leader or _one_in(state, 6)


def _holds_back(state: Partition) -> bool:
    """Whether the future replica of a leader holds a deletion back, so that the low watermark may be its log start."""
    return state.is_leader and state.future is not None and state.future.log.log_start < state.log.log_start


def _focus(state: Partition) -> int:
    """The follower that is mostly asked for: the one that is behind, or that holds a deletion back with the future
    replica; what waits for it may come then."""
    held = _holds_back(state)
    behind = [(f.log_start if held else f.log_end, f.id) for f in state.followers if f.id in OTHERS]
    return min(behind)[1] if behind else OTHERS[0]


def _broker_epochs(state: Partition) -> Sequence[int]:
    known = [b.epoch for b in state.brokers]
    return [*[EPOCH] * 4, *known, *known, *known, *known, -1, EPOCH - 1, *(e + 1 for e in known[:1])]


def _brokers(state: Partition) -> Sequence[int]:
    """Whoever is not registered first."""
    missing = [id for id in OTHERS[:2] if state.broker(id) is None]
    if missing:
        return _unless_moved(state, missing)
    return [_focus(state), *OTHERS, *([FAR] if _one_in(state, 3) else [])] if _one_in(state, 4) else []


def _new_epochs(state: Partition) -> Sequence[int]:
    known = [b.epoch for b in state.brokers]
    return [EPOCH] * 6 if len(known) < 2 else [*known, *known, EPOCH, EPOCH + 1, 2**40, -1, 0]


def _states(state: Partition) -> Sequence[bool]:
    return [False] if len(state.brokers) < 2 else [False, False, False, True]


def _leader_epochs(state: Partition) -> Sequence[int]:
    e = max(0, state.leader_epoch)
    return [*([e] * 3 if state.is_leader else []), e + 1, e + 1, e, max(0, e - 1), *([2**31 - 1] if e == 7 else [])]


def _answered_leader_epochs(state: Partition) -> Sequence[int]:
    """One that ends in 16 bits as the leader's own among them."""
    e = max(0, state.leader_epoch)
    far = 0 <= state.leader_epoch < 2**16 and _one_in(state, 3)
    return [*[e] * 5, state.leader_epoch + 1, *([e + 2**16] if far else [])]


def _named_epochs(state: Partition) -> Sequence[int | None]:
    e = max(0, state.leader_epoch)
    return [*[e] * 12, None, None, e + 1, max(0, e - 1)]


def _fetched_epochs(state: Partition) -> Sequence[int | None]:
    known = [e.epoch for e in state.log.epochs]
    near = [k + d for k in known[-2:] for d in (-1, 1) if k + d >= 0]
    return [*[None] * 8, *known[-1:] * 4, *known[-3:], *near]


def _begins_at_end(state: Partition) -> bool:
    """Whether the latest epoch has no record yet: a leader's own, or one of a follower that led."""
    return state.log.epochs[-1:] != () and state.log.epochs[-1].start_offset == state.log.log_end


Awaited = Literal["", "the controller", "a directory", "the current replica", "a leader"]


def _awaited(state: Partition) -> Awaited:
    """Whom a move waits for; mostly the others are silent meanwhile, so that it comes to its end, and so that the high
    watermark falls that a follower's future replica has copied. "": everybody may be heard."""
    future = state.future
    if state.log.log_end >= 2**31:
        return ""  # such an offset is seldom, and asked for
    if state.is_leader:
        moves = future is not None and future.reassignment != "NONE" and not _one_in(state, 4)
        return "the controller" if moves else ""
    if state.leader is None or _one_in(state, 3):
        return ""
    if future is not None and future.log.high_watermark > state.log.high_watermark:
        return "the current replica"
    if not _has_replicated(state):
        return ""
    if future is None:
        return "a directory"
    return "a leader" if future.log.high_watermark == state.log.high_watermark else "the current replica"


def _unless_moved(state: Partition, candidates: Sequence[Any], by: Awaited = "") -> Sequence[Any]:
    """The candidates of those that a move waits for, if it waits for any."""
    return candidates if _awaited(state) in ("", by) else []


def _has_replicated(state: Partition) -> bool:
    """Whether there are records that may be deleted, or of which a follower's high watermark may fall."""
    return state.log.high_watermark > state.log.log_start


def _leaders(state: Partition) -> Sequence[int]:
    if _awaited(state):
        return []
    if state.is_leader:
        copied = state.future is not None and state.future.log.high_watermark > state.log.log_start
        return [2, 3, -1] if _one_in(state, 3 if copied else 5 if _begins_at_end(state) else 12) else []
    return [2, 2, 3, -1, FAR, *([state.leader] * 2 if state.leader is not None else [])]


def _partition_epochs(state: Partition) -> Sequence[int]:
    e = state.partition_epoch
    return [e + 1, e + 1, e + 1, e, e, max(0, e - 1), *([2**31 - 1] if e == 2**15 else [])]


def _assignments(state: Partition) -> Sequence[Sequence[int]]:
    """What the controller says to one that leads already is said seldom, but while something is pending."""
    if _awaited(state):
        return []
    if state.is_leader and not _one_in(state, 2 if state.pending is not None else 6):
        return []
    return [*[[LOCAL, 2, 3]] * 4, [LOCAL, 2], [3, LOCAL], [LOCAL], [2, LOCAL, 4, 3], [2, LOCAL, 4, 3]]


def _answered_epochs(state: Partition) -> Sequence[int]:
    asked = _asked(state)
    far = [2**15, asked + 2**16] if asked < 2**15 and _one_in(state, 9) else []
    return [asked + 1, asked + 1, asked, max(0, asked - 1), *far]


def _asked(state: Partition) -> int:
    """The partition epoch of the request that is under way."""
    return state.in_flight.partition_epoch if state.in_flight is not None else state.partition_epoch


def _offsets(state: Partition) -> Sequence[int]:
    log = state.log
    started = [] if state.epoch_start is None else [state.epoch_start, max(0, state.epoch_start - 1)]
    last = [f.log_end for f in state.followers if f.log_end >= 0]
    near = [log.high_watermark, max(0, log.high_watermark - 1), min(log.high_watermark + 1, log.log_end)]
    ends = [e.start_offset for e in log.epochs[-2:]]
    far = [log.log_start, max(0, log.log_start - 1), log.log_end + 1] if _one_in(state, 3) else []
    return [*[log.log_end] * 10, *last, *near, *near, *started, *ends, max(0, log.log_end - 1), *far]


def _deletions(state: Partition) -> Sequence[int]:
    log = state.log
    if not (_led(state) and _one_in(state, 3 if state.future is None else 1)):
        return []
    return [log.log_start + 1, log.log_start + 1, -1, log.high_watermark, log.high_watermark + 1, log.log_start, -2, 0]


def _followers_starts(state: Partition) -> Sequence[int]:
    log = state.log
    if _holds_back(state):
        return [log.log_start]
    if _awaited(state):
        return [log.log_start, log.log_end, log.log_end]  # so that a deletion waits for the future replica alone
    return [log.log_start, log.log_start, max(0, log.log_start - 1), 0, log.log_end]


def _isrs(state: Partition) -> Sequence[Sequence[int]]:
    proposed = [[*state.in_flight.ids]] * 2 if state.in_flight is not None else []
    known = [[*state.isr]] * 2 if state.isr else []
    return [*known, *proposed, [LOCAL], [LOCAL, 2], [LOCAL, 2], [LOCAL, 2, 3], [LOCAL, 2, 3], [3, LOCAL]]


def _answered(state: Partition) -> Sequence[Sequence[int]]:
    proposed = [*state.in_flight.ids] if state.in_flight is not None else [LOCAL]
    return [proposed, proposed, proposed, [*state.isr] or [LOCAL], [LOCAL]]


def _batches(state: Partition) -> Sequence[Sequence[Sequence[int]]]:
    latest = state.log.epochs[-1].epoch if state.log.epochs else 0
    now = max(latest, state.leader_epoch)
    return [
        [[now, 2]],
        [[latest, 1], [now, 1]],
        [],
        [[latest, 1], [now, 1], [now + 1, 1], [now + 1, 2]],
        [[now + 1, 3]],
        [[latest, 3]],
    ]


def _high_watermarks(state: Partition) -> Sequence[int]:
    """Of a leader; lower ones more often while there is a future replica that has taken over a higher one."""
    log = state.log
    lower = [max(0, log.high_watermark - 1), 0]
    copied = state.future is not None and state.future.log.high_watermark >= log.high_watermark > log.log_start
    return [log.log_end, log.log_end + 1, log.high_watermark, log.log_end + 5, *lower * (4 if copied else 1)]


def _ends(state: Partition) -> Sequence[int]:
    if _awaited(state):
        return []
    log = state.log
    starts = [e.start_offset for e in log.epochs[-3:]]
    return [
        max(0, log.log_end - 1),
        *starts,
        log.high_watermark,
        max(0, log.log_start - 1),
        log.log_end,
        log.log_end + 2,
    ]


def _own_epochs(state: Partition) -> Sequence[int]:
    known = [e.epoch for e in state.log.epochs[-3:]]
    return [*known, *(e + 1 for e in known), *(e - 1 for e in known if e), 0]


def _passing(state: Partition) -> Sequence[int]:
    lag = state.config.replica_lag_time_max_ms
    oldest = [f.last_caught_up_ms for f in state.followers if state.now - f.last_caught_up_ms <= lag]
    up_to_now = [left for f in oldest for left in (lag - (state.now - f), lag - (state.now - f) + 1)]
    return [1, *up_to_now, lag // 2 + 1, *([lag, lag + 1] if state.pending is None else [])]


def _directories(state: Partition) -> Sequence[int]:
    """A move is asked for seldom, so that it comes to its end; sometimes back, or elsewhere; sooner where it has
    something to copy."""
    if state.future is None:
        soon = (2 if state.is_leader else 1) if _has_replicated(state) else 4
        return [2, 3, 1] if _one_in(state, soon) else []
    if not state.is_leader and _awaited(state):
        return []
    often = {"NONE": 12, "QUEUED": 6, "ACCEPTED": 2}[state.future.reassignment]
    return [1, 2, 3] if _one_in(state, often) else []


def _required(state: Partition) -> Sequence[int]:
    if _awaited(state):
        return []
    return [state.log.high_watermark, state.log.high_watermark + 1, state.log.log_end, 0] if _one_in(state, 2) else []


machine.candidates |= {
    "id": _brokers,
    "removeBroker:id": lambda state: (*OTHERS, FAR) if _one_in(state, 9) else (),
    "epoch": _new_epochs,
    "fenced": _states,
    "shutting_down": _states,
    "ms": lambda state: _unless_moved(state, _passing(state) if _one_in(state, 2) else []),
    "leader": _leaders,
    "leader_epoch": _leader_epochs,
    "alterPartitionSucceeded:leader_epoch": _answered_leader_epochs,
    "lastOffsetForLeaderEpoch:leader_epoch": _own_epochs,
    "partition_epoch": _partition_epochs,
    "alterPartitionSucceeded:partition_epoch": _answered_epochs,
    "replicas": _assignments,
    "isr": _isrs,
    "alterPartitionSucceeded:isr": _answered,
    "leader_recovery_state": lambda state: ("RECOVERED", "RECOVERED", "RECOVERING"),
    "count": lambda state: _unless_moved(state, (1, 1, 2, 3)) if _led(state) else (),
    "required_acks": lambda state: (-1, -1, 1, 0),
    "directory": _directories,
    "required_offset": _required,
    "replica": lambda state: [_focus(state)] * 4 + [2, 3, *([4] if state.follower(4) else [])] if _led(state) else [],
    "broker_epoch": _broker_epochs,
    "current_leader_epoch": lambda state: _unless_moved(state, _named_epochs(state)),
    "fetchRecords:current_leader_epoch": _named_epochs,
    "last_fetched_epoch": _fetched_epochs,
    "offset": _offsets,
    "deleteRecordsOnLeader:offset": _deletions,
    "fetchRecords:log_start": _followers_starts,
    "processPartitionData:log_start": lambda state: [
        state.log.log_start,
        state.log.log_start,
        min(state.log.log_start + 1, state.log.log_end),
        0,
        state.log.high_watermark,
    ],
    "only_leader": lambda state: (True, False) if _one_in(state, 3) else (),
    "client": lambda state: (True, False) if _one_in(state, 3) else (),
    "error": lambda state: (
        "INELIGIBLE_REPLICA", "FENCED_LEADER_EPOCH", "INVALID_UPDATE_VERSION", "UNKNOWN_SERVER_ERROR",
        "OPERATION_NOT_ATTEMPTED", "NEW_LEADER_ELECTED", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID",
        "INVALID_REQUEST", "NOT_CONTROLLER", "REQUEST_TIMED_OUT",
    ),
    "batches": lambda state: _unless_moved(state, _batches(state), "a leader"),
    "high_watermark": _high_watermarks,
    "truncateOnFetchResponse:epoch": lambda state: [
        *_own_epochs(state),
        *(e.epoch + 2**16 for e in state.log.epochs[-3:-1] if e.epoch < 2**16),
    ],
    "end_offset": _ends,
    "leader_start": lambda state: [] if _awaited(state) else [
        0,
        state.log.log_start,
        *(state.log.log_end + n for n in (1, 0, 4)),
        *([2**32 + 1] if _one_in(state, 3) else []),
    ],
    "leader_end": lambda state: [
        *([state.log.log_end] * 8 if _begins_at_end(state) else []),
        state.log.log_end + 5,
        *([2**32 + 2] if _one_in(state, 3) else []),
        max(0, state.log.log_end - 1),
        state.log.high_watermark,
        state.log.log_end,
        state.log.log_start,
    ],
    "init:replica_lag_time_max_ms": lambda state: (30_000, 10, 1, 2**31 - 1),
    "init:min_insync_replicas": lambda state: (1, 2, 1, 2, 3, 100),
    "init:broker_epoch": lambda state: (101, -1, 2**40),
    "init:followers": lambda state: (2, 2, 1, 1, 3, 0, 0),
    "init:now": lambda state: (1_000_000, 0, 2**40),
}  # fmt: skip


# ---- the refinement mapping ------------------------------------------------------------------------------------------
LAG_MS: Final = 30_000
TOLD: Final = {"leader_recovery_state": "RECOVERED"}


class Cluster:
    """A number of followers, and of records at most: the states of a leader as those of `Leadership`."""

    def __init__(self, followers: int, records: int) -> None:
        self.ids = {element(model.Follower, n): id for n, id in enumerate(OTHERS[:followers])}
        self.sizes = {"Follower": followers, "L": records, "M": 2}
        self.members = {"replicas": [LOCAL, *self.ids.values()], **TOLD}

    def elements(self, ids: Iterable[int]) -> frozenset[Any]:
        known = {*ids}
        return frozenset(e for e, id in self.ids.items() if id in known)

    def to_model(self, state: Partition) -> dict[str, Any] | None:
        """The state that a leader of these followers stands for; None beyond the sizes, and of any other."""
        followers = [f.id for f in state.followers]
        lag, least = state.config.replica_lag_time_max_ms, state.config.min_insync_replicas
        if state.epoch_start != 1 or state.log.log_end > self.sizes["L"]:
            return None
        if followers != [*self.ids.values()] or (lag, least) != (LAG_MS, self.sizes["M"]):
            return None
        known = {e: f for e, id in self.ids.items() for f in state.followers if f.id == id}
        return {
            "end": state.log.log_end,
            "high": state.log.high_watermark,
            "reached": {e: max(0, f.log_end) for e, f in known.items()},
            "known": frozenset(e for e, f in known.items() if f.log_end >= 0),
            "current": frozenset(e for e, f in known.items() if state.now - f.last_caught_up_ms <= LAG_MS),
            "eligible": self.elements(b.id for b in state.brokers if not b.fenced),
            "isr": self.elements(state.isr),
            "pending": state.pending is not None,
            "proposed": self.elements(state.pending.ids if state.pending is not None else ()),
            "in_flight": state.in_flight is not None,
        }

    def calls(self, state: Partition, action: str, arguments: Mapping[str, Any]) -> Sequence[Call] | None:
        """The calls for an action of the model, whose log is full at its size."""
        told = {"leader_epoch": state.leader_epoch, "partition_epoch": state.partition_epoch + 1}
        match action:
            case "append":
                call = ("appendRecordsToLeader", {"count": 1, "required_acks": 1})
                return [call] if state.log.log_end < self.sizes["L"] else None
            case "fetch":
                return self.fetch(state, self.ids[arguments["f"]], arguments["o"])
            case "fence" | "unfence":
                return [_broker(self.ids[arguments["f"]], fenced=action == "fence")]
            case "shrink":  # while a request is not answered it is not attempted, and nothing changes
                return [("maybeShrinkIsr", {})]
            case "pass_time":
                return [("advance", {"ms": LAG_MS + 1})]
            case "tell":
                isr = [self.ids[f] for f in arguments["isr"]]
                if not {*isr} <= maximal_isr(state):
                    return None
                return [("makeLeader", {**told, **self.members, "isr": [LOCAL, *isr]})]
            case "succeed":
                isr = [*state.in_flight.ids] if state.in_flight is not None else [LOCAL]
                return [("alterPartitionSucceeded", {**told, "isr": isr})]
        error = "INELIGIBLE_REPLICA" if action == "refuse" else "INVALID_UPDATE_VERSION"
        return [("alterPartitionFailed", {"error": error})]

    def fetch(self, state: Partition, id: int, offset: int) -> Sequence[Call] | None:
        """A fetch, unless its follower has less than before, or is in sync as it is one fetch behind."""
        follower = state.follower(id)
        if follower is None or offset < follower.log_end:
            return None
        if (
            follower.last_fetch_leader_end <= offset < state.log.log_end
            and state.now - follower.last_fetch_ms <= LAG_MS
        ):
            return None
        of = {"replica": id, "broker_epoch": EPOCH, "current_leader_epoch": state.leader_epoch}
        return [("fetchRecords", {**of, "last_fetched_epoch": None, "offset": offset, "log_start": 0})]

    def mapping(self, without: Mapping[str, str], deep: bool = False) -> RefinementMapping[Partition]:
        """A follower that has one record is elected, in an epoch that all know."""
        elected = {"leader_epoch": 1, "partition_epoch": 1, **self.members, "isr": self.members["replicas"]}
        return RefinementMapping(
            model.Leadership,
            self.sizes,
            self.to_model,
            self.calls,
            without=without,
            init={"min_insync_replicas": 2, "replica_lag_time_max_ms": LAG_MS, "now": 2**40},
            set_up=[
                *(_broker(id, fenced=False) for id in self.ids.values()),
                ("makeFollower", {"leader": 4, "leader_epoch": 0, "partition_epoch": 0, **TOLD}),
                ("processPartitionData", {"batches": [[0, 1]], "high_watermark": 0, "log_start": 0}),
                ("makeLeader", elected),
            ],
            deep=deep,
        )


def _broker(id: int, fenced: bool) -> Call:
    return "updateBroker", {"id": id, "epoch": EPOCH, "fenced": fenced, "shutting_down": False}


REFINEMENTS = (
    Cluster(1, 3).mapping({}),
    Cluster(2, 1).mapping({"append": "the log is full; with one follower there is room"}, deep=True),
)
