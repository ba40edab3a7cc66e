"""Offsets of the controller: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaspec.lockstep.exhaustive import Call, RefinementMapping
from kafkaspec.models.controller import offset_control as model
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.common.timeline_state import View
from kafkaspec.spec.controller.offset_control import KEYS, NONE, Offsets, machine


def _next(state: Offsets) -> int:
    """The first offset at which a record may stand."""
    return max(state.last_committed + 1, state.registry.highest + 1, state.next_write, 0)


def _first_offsets(state: Offsets) -> Sequence[int]:
    """The next, as the controller has it; behind a control batch of raft's own."""
    return [_next(state), _next(state), _next(state) + 2]


def _seldom(state: Offsets, n: int) -> bool:
    """In one of `n` states."""
    return (_next(state) * 5 + len(state.registry.past) * 3 + len(state.memory.entries) + state.now) % n == 0


def _last_offsets(state: Offsets) -> Sequence[int]:
    """Where a batch ends: most often at a snapshot, as those are taken where an append ends."""
    ends = [e for e in state.registry.past if e > state.last_committed]
    between = [e for e in (state.last_committed + 1, state.next_write - 1) if state.last_committed < e]
    return [*ends[:2], *ends[-1:], *between]


def _batches(state: Offsets) -> Sequence[Sequence[str]]:
    """With data before, behind, or alone; a marker that is right most often."""
    is_open = state.transaction_start != NONE
    if is_open and state.transaction_start - 1 not in state.registry.past:
        behind = ("k0", "k1", "k2", "k3") * 2  # its begin record is gone, and others may take its place
        return [("abort",), ("k0", "abort"), behind, behind[:5], behind[:3]]
    right: Sequence[str] = ("end", "abort") if is_open else ("begin",)
    wrong: Sequence[str] = ("begin",) if is_open else ("end", "abort")
    markers = [*right, *(wrong if _seldom(state, 7) else ())]
    with_marker = [b for m in markers for b in ((m,), ("k0", m), (m, "k1"), ("k2", m, "k0", "k1"))]
    whole = [("k1", "begin", "k2", "end", "k3"), ("begin", "k0", "abort", "k1"), ("k0", "begin", "k0", "abort")]
    return [("k0",), ("k1", "k2"), ("k3", "k3", "k0"), *with_marker, *([] if is_open else whole)]


def _activations(state: Offsets) -> Sequence[int]:
    return [_next(state), _next(state), _next(state) + 1, *((-1, -2, 0) if _seldom(state, 5) else ())]


def _epochs(state: Offsets) -> Sequence[int]:
    """Of the last commit, the next one, and seldom the last that there is."""
    now = max(state.committed_epoch, 0)
    return [now, min(now + 1, INT_MAX), *([INT_MAX] if _seldom(state, 11) else ())]


def _snapshots(state: Offsets) -> Sequence[int]:
    """Seldom: all else is forgotten. Later than what is here, as a rule, or else as far."""
    behind = (_next(state) + 1, max(state.last_committed, 0), 0)
    return behind if state.loading is not None or _seldom(state, 6) else behind[:1]


machine.candidates |= {
    "kind": lambda state: ("data", "data", *(("end", "abort") if state.transaction_start != NONE else ("begin",))),
    "replayInSnapshot:kind": lambda state: ("begin", "end", "abort"),
    "first_offset": _first_offsets,
    "handleCommitBatch:first_offset": lambda state: (state.last_committed + 1,),
    "last_offset": _last_offsets,
    "count": lambda state: (1, 2, 3),
    "key": lambda state: KEYS,
    "records": _batches,
    "epoch": _epochs,
    "append_timestamp": lambda state: (state.now, NONE),
    "timestamp": lambda state: (state.now, NONE, 0),
    "new_next_write_offset": _activations,
    "offset": lambda state: (_next(state), max(state.last_committed, 0)),
    "beginLoadSnapshot:offset": _snapshots,
    "value": lambda state: (0 if state.loading is None else state.loading.offset, 0),
    "ms": lambda state: (1, 0, 60_000),
}


def _seen(view: View, size: int) -> dict[int, bool] | None:
    """The data records that a view has: that of key n stands at offset n, and at n + 1 in the model."""
    if any(n != offset for n, offset in view.entries.items()):
        return None
    return {o: o - 1 in view.entries for o in range(size + 1)}


def _to_model(state: Offsets, size: int) -> dict[str, Any] | None:
    """Every offset is one higher in the model, so that 0 is none."""
    numbers = {
        "end": state.next_write + 1,
        "committed": state.last_committed + 1,
        "stable": state.last_stable + 1,
        "start": state.transaction_start + 1,
        "loading": 0 if state.loading is None else state.loading.offset + 1,
    }
    offsets = range(size + 1)
    none = dict.fromkeys(offsets, False)
    has = _seen(state.memory, size)
    saw = {e: _seen(state.registry.past[e - 1], size) if e - 1 in state.registry.past else none for e in offsets}
    beyond = any(n > size + (name == "end") for name, n in numbers.items())
    if beyond or has is None or None in saw.values() or any(e + 1 not in offsets for e in state.registry.past):
        return None
    return {**numbers, "taken": {e: e - 1 in state.registry.past for e in offsets}, "has": has, "saw": saw}


def _batch(arguments: Mapping[str, Any], marker: str) -> tuple[int, list[str]] | None:
    """A batch of the model: every data record sets the key of its offset."""
    first, last = arguments["f"], arguments["last"]
    at = arguments.get("b", 0)
    if first < 1 or last < first or (marker != "data" and not first <= at <= last):
        return None
    return first - 1, [marker if o == at and marker != "data" else KEYS[o - 1] for o in range(first, last + 1)]


def _has_another_role(state: Offsets, verb: str) -> bool:
    """A standby appends nothing, the active controller replays nothing, and who loads a raft snapshot neither: it is
    asked for the next record alone, which only its role forbids."""
    return state.loading is not None or state.active != (verb == "append")


def _calls(state: Offsets, action: str, arguments: Mapping[str, Any]) -> Sequence[Call] | None:
    """The calls for an action of the model."""
    verb, _, marker = action.partition("_")
    if action == "commit_control":
        return [("commitControlBatch", {"offset": 0, "epoch": 0})]
    match verb:
        case "append" | "replay":
            batch = _batch(arguments, marker)
            if batch is None or (_has_another_role(state, verb) and (batch[0], len(batch[1])) != (_next(state), 1)):
                return None
            given = {"first_offset": batch[0], "records": batch[1]}
            return [("appendBatch", given) if verb == "append" else ("commitBatch", {**given, "epoch": 0})]
        case "commit":
            last = arguments["last"] - 1
            return None if last < 0 else [("handleCommitBatch", {"first_offset": 0, "last_offset": last, "epoch": 0})]
        case "activate":
            return [("activate", {"new_next_write_offset": arguments["n"] - 1})]
        case "deactivate":
            return [("deactivate", {})]
        case "begin":
            return None if arguments["e"] < 1 else [("beginLoadSnapshot", {"offset": arguments["e"] - 1, "epoch": 0})]
        case "load":
            o = arguments["o"]
            late = state.loading is not None and o - 1 > state.loading.offset
            return None if o < 1 or late else [("loadSnapshotData", {"key": KEYS[o - 1], "value": o - 1})]
    return [("endLoadSnapshot", {"timestamp": 0})]


def _mapping(size: int, deep: bool) -> RefinementMapping[Offsets]:
    def to_model(state: Offsets) -> dict[str, Any] | None:
        return _to_model(state, size)

    return RefinementMapping(model.Offsets, {"N": size, "WHOLE": False}, to_model, _calls, deep=deep)


REFINEMENTS = (_mapping(3, deep=True), _mapping(2, deep=False))
