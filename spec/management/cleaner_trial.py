"""Log cleaner manager: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kafkaspec.contract.codec import encode, replace
from kafkaspec.contract.machine import Exhaustive, Json
from kafkaspec.language.concrete import element
from kafkaspec.lockstep.exhaustive import Call, RefinementMapping
from kafkaspec.models.management import cleaner as model
from kafkaspec.spec.common.cleanable_log import Log, LogExtent, Segment, measure, well_formed
from kafkaspec.spec.common.cleaner_state import Cleaner
from kafkaspec.spec.common.cleaner_world import POLICIES
from kafkaspec.spec.common.cleaning_state import Aborted, InProgress, Paused
from kafkaspec.spec.management.cleaner import PARTITIONS, QUICK, filthiest, machine

PAIR: list[dict[str, Any]] = [
    {"partition": "a-0", "logDir": "dir0", "cleanup.policy": "compact", "min.compaction.lag.ms": 2000},
    {"partition": "a-1", "logDir": "dir0", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.9, **QUICK},
]
"""Two logs, of which one may be overdue while the other is filthier."""

FAR: list[dict[str, Any]] = [
    {"partition": "f-0", "logDir": "dir0", "cleanup.policy": "compact", "min.compaction.lag.ms": 2**31 + 5},
    {"partition": "f-1", "logDir": "dir0", "cleanup.policy": "compact", "segment.bytes": 200},
    {
        "partition": "f-2",
        "logDir": "dir0",
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": 2000,
        "max.compaction.lag.ms": 1,
    },
    {"partition": "f-3", "logDir": "dir0", "cleanup.policy": "delete"},
    {"partition": "f-4", "logDir": "dir0", "cleanup.policy": "delete"},
]
"""Lags at the ends of their ranges, and several logs of each kind in one directory."""


def _offsets(state: Cleaner) -> list[int]:
    """Offsets at which something begins or ends, and their neighbours."""
    marks = {0}
    for log in state.logs.values():
        marks |= {log.log_start_offset, log.last_stable_offset, log.log_end_offset, log.active_base_offset}
    marks |= {o for entries in state.checkpoints.values() for o in entries.values()}
    return sorted({o for m in marks for o in (m - 1, m, m + 1) if o >= 0})


def _extent(log: Log) -> LogExtent:
    return LogExtent(log.log_start_offset, log.log_end_offset, log.last_stable_offset, log.segments)


def _focus(state: Cleaner) -> str:
    """The partition whose log changes next. It goes with the clock, so that the change can suit its configuration."""
    return list(state.logs)[state.now % len(state.logs)]


def _at_the_borders(state: Cleaner, log: Log) -> Iterator[Log]:
    """A clean segment and a dirty one, just at the minimum ratio and the lags, or just beyond, or not yet stable."""
    config, minimum = log.config, round(100 * log.config.min_cleanable_dirty_ratio)
    young, old = state.now - config.min_compaction_lag_ms, state.now - config.max_compaction_lag_ms
    stamps = [(young, max(old, -1)), (young + 1, max(old - 1, -1)), (state.now, max(old - 1, -1)), (-1, -1)]
    for dirty, (largest, first) in itertools.product((minimum, minimum + 1, 1, 0), stamps):
        segments = (Segment(0, 100 - dirty), Segment(1, dirty or 1, largest, first), Segment(2))
        stable = 2 if dirty else 1
        yield replace(log, log_start_offset=1, log_end_offset=2, last_stable_offset=stable, segments=segments)


def _as_it_goes(state: Cleaner, log: Log) -> Iterator[Log]:
    """What a log may turn into: unstable, rolled, compacted, retained, truncated, huge, begun again."""
    first, *rest = log.segments
    start, end, active = log.log_start_offset, log.log_end_offset, log.active_base_offset
    yield replace(log, last_stable_offset=max(start, active - 1))
    yield replace(log, segments=(*log.segments, Segment(end)))
    yield replace(log, segments=(replace(first, size=first.size // 2) if first.size > 1 else Segment(0), *rest))
    if rest:
        kept = max(start, rest[0].base_offset)
        stable = max(kept, log.last_stable_offset)
        yield replace(log, segments=tuple(rest), log_start_offset=kept, last_stable_offset=stable)
        yield replace(log, segments=log.segments[:-1], log_end_offset=active, last_stable_offset=max(start, active - 1))
    huge = tuple(Segment(start + n, 2_000_000_000) for n in range(3))
    yield replace(log, segments=huge, log_end_offset=start + 3, last_stable_offset=start + 3)
    yield replace(log, segments=(Segment(0),), log_start_offset=0, log_end_offset=0, last_stable_offset=0)


def _changed_logs(state: Cleaner) -> list[Json]:
    log = state.logs[_focus(state)]
    return [
        encode(_extent(to))
        for to in dict.fromkeys([*_at_the_borders(state, log), *_as_it_goes(state, log)])
        if well_formed(to)
    ]


def _mostly(likely: Iterable[Any], every: Iterable[Any]) -> list[Any]:
    """All candidates, the likely ones weighing more: most calls should find something to do."""
    return [*likely] * 4 + [*every]


def _in_state(*kinds: type) -> Callable[[Cleaner], list[str]]:
    return lambda state: _mostly((p for p in state.logs if isinstance(state.state(p), kinds)), state.logs)


def _marks(state: Cleaner) -> list[str]:
    return [p for marked in state.uncleanable.values() for p in marked]


def _own_dir(state: Cleaner) -> list[str]:
    return _mostly([state.logs[_focus(state)].config.log_dir], state.checkpoints)


def _or_none(values: Iterable[Any]) -> list[Any]:
    return [None, *values]


machine.candidates |= {
    "init:partitions": lambda state: [PARTITIONS, PAIR, FAR, PARTITIONS[1:2]],
    "init:batch_bytes": lambda state: [72, 72, 100, 118],  # a segment of 200 has room for two, exactly two, one
    "partition": lambda state: Exhaustive(state.logs),
    "dir": lambda state: list(state.checkpoints),
    "dest": lambda state: list(state.checkpoints),
    "chosen": lambda state: Exhaustive(filthiest(state)),
    "offset": _offsets,
    "end_offset": _offsets,
    "doneCleaning:partition": _in_state(InProgress, Aborted),
    "doneDeleting:partition": _in_state(InProgress, Aborted),
    "checkCleaningAborted:partition": _in_state(InProgress, Aborted),
    "resumeCleaning:partition": _in_state(Paused),
    "abortCleaning:partition": _in_state(InProgress),
    "abortAndPauseCleaning:partition": _in_state(InProgress, Paused),
    "restoreLog:partition": lambda state: _mostly((p for p in state.logs if not state.knows(p)), state.logs),
    "forgetLog:partition": lambda state: [_focus(state)] if sum(1 for _ in state.known()) > len(state.logs) / 2 else [],
    "markPartitionUncleanable:partition": lambda state: [_focus(state)] if len(_marks(state)) < 2 else [],
    "alterCheckpointDir:partition": lambda state: [_focus(state)],
    "source": _own_dir,
    "updateCheckpoints:dir": _own_dir,
    "uncleanableBytes:dir": lambda state: _mostly(
        (d for d, marked in state.uncleanable.items() if marked), state.uncleanable
    ),
    "updateCheckpoints:update": lambda state: _or_none([_focus(state)]),
    "updateCheckpoints:offset": lambda state: _or_none(_offsets(state)),
    "updateCheckpoints:remove": lambda state: _or_none(state.logs),
    "last_clean_offset": lambda state: _or_none(_offsets(state)),
    "key": lambda state: ["k0"],
    "count": lambda state: [1, 3, 2, 7],
    "then_high_watermark": lambda state: ["logEndOffset", None],
    "logChanged:partition": lambda state: [_focus(state)],
    "logToClean:partition": lambda state: [_focus(state)],
    "logToClean:last_clean_offset": lambda state: _mostly([1], _or_none(_offsets(state))),
    "log": _changed_logs,
    "policy": lambda state: _mostly(["compact", "compact,delete"], POLICIES),
    "ms": lambda state: [0, 1, 1999, 2000, 2001, 5000, 5001],
}


SIZES = {"Partition": 1, "N": 2, "D": 2}
TWO_SIZES = {"Partition": 2, "N": 1, "D": 1}


_WAITS = {
    None: model.Waits.NOBODY,
    "abortAndPauseCleaning": model.Waits.TO_PAUSE,
    "abortCleaning": model.Waits.TO_ABORT,
}


_STATUS = {
    "NoneType": model.Status.FREE,
    "InProgress": model.Status.IN_PROGRESS,
    "Aborted": model.Status.ABORTED,
    "Paused": model.Status.PAUSED,
}


_OPERATIONS = {
    "take_deletable": "deletableLogs",
    "abort_and_pause": "abortAndPauseCleaning",
    "abort": "abortCleaning",
    "pause_non_compacted": "pauseCleaningForNonCompactedPartitions",
    "maintain": "maintainUncleanablePartitions",
    "forget": "forgetLog",
    "restart": "restart",
}


def _soiled(level: int, most: int) -> LogExtent:
    """A log of which `level` of `most` parts are dirty: [0, 1) is clean, [1, 2) is dirty, and the rest is active."""
    return LogExtent(1, 2, 2, (Segment(0, most - level), Segment(1, level), Segment(2)))


def refinement(sizes: Mapping[str, int]) -> RefinementMapping[Cleaner]:
    """The spec's partitions a-0, a-1, ... are the model's."""
    names = {f"a-{n}": element(model.Partition, n) for n in range(sizes["Partition"])}
    most = sizes["D"]

    settings = [{"partition": p, "logDir": "dir", "min.cleanable.dirty.ratio": 0.0} for p in names]

    def levels(log: Log) -> list[Log]:
        return [log.with_extent(_soiled(level, most)) for level in range(most + 1)]

    def to_model(state: Cleaner) -> dict[str, Any] | None:
        pauses = {p: s.count if isinstance(s, Paused) else 0 for p in names for s in [state.state(p)]}
        if state.logs.keys() != names.keys() or any(n > sizes["N"] for n in pauses.values()):
            return None
        each = [(names[p], p, state.logs[p]) for p in names]
        if any(log not in levels(log) for _, _, log in each):
            return None
        return {
            "status": {e: _STATUS[type(state.state(p)).__name__] for e, p, _ in each},
            "pauses": {e: pauses[p] for e, p, _ in each},
            "waits": {e: _WAITS[state.blocked.get(p)] for e, p, _ in each},
            "dirt": {e: log.segments[1].size for e, _, log in each},
            "known": {e: log.known for e, _, log in each},
            "compact": {e: log.config.compact for e, _, log in each},
            "uncleanable": {e: p in state.uncleanable["dir"] for e, p, _ in each},
        }

    def soiled(p: str, level: int) -> Call:
        return "logChanged", {"partition": p, "log": encode(_soiled(level, most))}

    def calls(state: Cleaner, action: str, arguments: Mapping[str, Any]) -> list[Call] | None:
        p = next((p for p, e in names.items() if e == arguments.get("p")), "")
        one = {"partition": p} if p else {}
        match action:
            case "grab":
                return [("grabFilthiestCompactedLog", {"chosen": p})]
            case "done_cleaning":
                if state.state(p) != InProgress() and arguments["left"] < state.logs[p].segments[1].size:
                    return None
                return [("doneCleaning", {**one, "end_offset": 1}), soiled(p, arguments["left"])]
            case "done_deleting":
                return [("doneDeleting", {"partition": q}) for q, e in names.items() if e in arguments["taken"]]
            case "resume":
                return [("resumeCleaning", {"partition": q}) for q, e in names.items() if e in arguments["held"]]
            case "restore":
                return [("restoreLog", one), *([soiled(p, 0)] if arguments["new"] else [])]
            case "change_policy":
                policy = "delete" if state.logs[p].config.compact else "compact"
                return [("updateConfig", {**one, "policy": policy})]
            case "soil":
                level = state.logs[p].segments[1].size
                return None if level == most else [soiled(p, level + 1)]
            case "mark":
                return [("markPartitionUncleanable", {**one, "dir": "dir"})]
        return [(_OPERATIONS[action], one)]

    clean = [soiled(p, 0) for p in names]
    return RefinementMapping(model.States, sizes, to_model, calls, init={"partitions": settings}, set_up=clean)


def _first_of_all(state: Cleaner) -> dict[str, Any] | None:
    """The part of a state that is about its first partition, as `States` has one."""
    partition, log = next(iter(state.logs.items()))
    cleaning, only = state.state(partition), element(model.Partition, 0)
    pauses = cleaning.count if isinstance(cleaning, Paused) else 0
    found = measure(partition, log, state.checkpoints[log.config.log_dir].get(partition), state.now)
    return (
        None
        if pauses > SIZES["N"]
        else {
            "status": {only: _STATUS[type(cleaning).__name__]},
            "pauses": {only: pauses},
            "waits": {only: _WAITS[state.blocked.get(partition)]},
            "dirt": {only: 0 if not found.cleanable_bytes else 2 if not found.clean_bytes else 1},
            "known": {only: log.known},
            "compact": {only: log.config.compact},
            "uncleanable": {only: partition in state.uncleanable[log.config.log_dir]},
        }
    )


REFINEMENTS = (refinement(SIZES),)


COVERAGE = replace(REFINEMENTS[0], to_model=_first_of_all)
"""For counting the model's states that a random walk reaches: by the first partition alone."""
