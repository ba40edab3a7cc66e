"""Timeline collections: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kafkaspec.language.concrete import element
from kafkaspec.lockstep.exhaustive import RefinementMapping
from kafkaspec.models.controller import timeline as model
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH, Epoch, Timeline, View
from kafkaspec.spec.controller.timeline import machine

SIZES = {"Key": 2, "Value": 2, "E": 2}
"""of the model, where the spec is walked beside it"""


EXPECTED_SIZES = (
    *(0, 1, 2, 3, 4, 6, 7, 12, 13),
    *((1 << 23) + (1 << 22) + 1, (1 << 24) + (1 << 23) + 1, (1 << 25) + (1 << 24) + 3),
    *(1 << 29, (1 << 29) + (1 << 28), (1 << 29) + (1 << 28) + 1, 2**31 - 1),
)
"""Small ones, around powers of two times 0.75, and the largest."""


NARROW = 0
"""A walk whose map was made for that many entries stays within the sizes of the model, so that it meets its states."""


def _between(state: Timeline) -> Epoch:
    """An epoch without a snapshot, between two of them if there is one."""
    return next((e + 1 for e in state.past if e + 1 not in state.past), 0)


def _epochs_to_read(state: Timeline) -> Sequence[Epoch]:
    """Every snapshot; between them; above all; the present."""
    return [*state.past, _between(state), max(state.highest, -1) + 2, LATEST_EPOCH]


def _epochs_to_take(state: Timeline) -> Sequence[Epoch]:
    """The next ones; the latest again; one below it."""
    if state.map_expected_size == NARROW:
        return range(SIZES["E"])
    above = max(state.highest, -1) + 1
    return (above, above, above + 2, max(state.latest_epoch, above), _between(state))


def _epochs_to_delete_up_to(state: Timeline) -> Sequence[Epoch]:
    """The first two snapshots, and an epoch without one."""
    return [*list(state.past)[:2], _between(state)]


def _of(wide: Sequence[Any], narrow: Sequence[Any]) -> Callable[[Timeline], Sequence[Any]]:
    return lambda state: narrow if state.map_expected_size == NARROW else wide


def _worth_iterating(state: Timeline) -> Sequence[Epoch]:
    """Epochs at which the set has something to give, and one that has no snapshot."""
    return [*(e for e, view in state.past.items() if view.elements), state.highest + 1]


def _names(state: Timeline) -> Sequence[str]:
    return sorted(state.held)


def _alike(state: Timeline) -> Sequence[Mapping[str, int]]:
    same = {str(k): v for k, v in state.present.entries.items()}
    return [same, {k: v + 1 for k, v in same.items()}, {**same, "90": 1}, {f"1{k}": v for k, v in same.items()}]


machine.candidates |= {
    "key": _of((0, 1, 2, 3, 5, 8, 13), (0, 1)),
    "value": _of((0, 1, 2, 3, 5, 8, 13), (0, 1)),
    "map.put:key": _of((None, 0, 1, 2, 3, 5, 8, 13), (0, 1)),
    "map.put:value": _of((None, 0, 1, 5), (0, 1)),
    "set.add:value": _of((None, 0, 1, 2, 3, 5, 8, 13), (0, 1)),
    "values": _of(((), (0, 1), (2, 3, 5, 8), (0, 2, 13)), ((0,), (0, 1))),
    "iterator.acrossChanges:epoch": _worth_iterating,
    "iterator.acrossChanges:values": _of((tuple(range(20, 60)),), ((0,), (0, 1))),
    "long.set:value": lambda state: (0, 1, -1, 2**63 - 1),
    "object.set:value": lambda state: (None, "a", "b"),
    "other": _alike,
    "epoch": _epochs_to_read,
    "getOrCreateSnapshot:epoch": _epochs_to_take,
    "idempotentCreateSnapshot:epoch": _epochs_to_take,
    "deleteSnapshotsUpTo:epoch": _epochs_to_delete_up_to,
    "collection": lambda state: ("map", "set"),
    "count": lambda state: (0, 1, 2),
    "name": _names,
    "collection.create:name": lambda state: [n for n in ("first", "second", "third") if n not in state.made],
    "expected_size": lambda state: EXPECTED_SIZES,
    "init:map_expected_size": lambda state: (0, 1, 4, 5),
    "init:set_expected_size": lambda state: (0, 1, 4, 5),
}


_KEYS = [element(model.Key, n) for n in range(SIZES["Key"])]


_VALUES = [element(model.Value, n) for n in range(SIZES["Value"])]


def _to_model(state: Timeline, set_is_index: bool = True) -> dict[str, Any] | None:
    """The state of `Copies` that a state stands for: keys, values and epochs are numbers from 0 on, and the set holds
    the map's keys. The model's epoch 0 means none, so its epochs are one higher."""

    def beyond(view: View) -> bool:
        return (
            any(k not in range(len(_KEYS)) or v not in range(len(_VALUES)) for k, v in view.entries.items())
            or (set_is_index and view.elements != view.entries.keys())
        )  # fmt: skip

    def entries(view: View | None) -> dict[Any, Any]:
        return {
            key: None if view is None or n not in view.entries else _VALUES[view.entries[n]]
            for n, key in enumerate(_KEYS)
        }

    def keys(view: View | None) -> set[Any]:
        return set() if view is None else {_KEYS[n] for n in view.entries}

    epochs = range(-1, SIZES["E"])
    if any(e not in epochs for e in (*state.past, max(state.highest, -1))):
        return None
    if beyond(state.present) or any(map(beyond, state.past.values())):
        return None
    return {
        "entries": entries(state.present),
        "keys": keys(state.present),
        "taken": {e + 1: e in state.past for e in epochs},
        "highest": max(state.highest, -1) + 1,
        "copied_entries": {e + 1: entries(state.past.get(e)) for e in epochs},
        "copied_keys": {e + 1: keys(state.past.get(e)) for e in epochs},
    }


def _calls(state: Timeline, action: str, arguments: Mapping[str, Any]) -> Sequence[tuple[str, dict[str, Any]]] | None:
    """The calls for an action of `Copies`: the map and the set are written together."""
    key = _KEYS.index(arguments["k"]) if "k" in arguments else None
    epoch = {"epoch": arguments["e"] - 1} if "e" in arguments else {}
    if epoch == {"epoch": -1} and action != "delete_up_to":
        return None  # the model's word for "no snapshot"
    match action:
        case "put":
            value = _VALUES.index(arguments["v"])
            return [("map.put", {"key": key, "value": value}), ("set.add", {"value": key})]
        case "remove":
            return [("map.remove", {"key": key}), ("set.remove", {"value": key})]
        case "take_snapshot":
            return [("getOrCreateSnapshot", epoch)]
        case "take_snapshot_again":
            return [("idempotentCreateSnapshot", epoch)] if epoch["epoch"] == state.latest_epoch else None
        case "revert":
            return [("revertToSnapshot", epoch)]
        case "delete":
            return [("deleteSnapshot", epoch)]
        case "delete_up_to":
            return [("deleteSnapshotsUpTo", epoch)]
    return [("reset", {})]


REFINEMENTS = (RefinementMapping(model.Copies, SIZES, _to_model, _calls),)


COVERAGE = replace(REFINEMENTS[0], to_model=lambda state: _to_model(state, set_is_index=False))
"""For counting the model's states that a random walk reaches: by the map alone, as its set is seldom just its keys."""
