"""Leader epochs: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.numbers import LATEST
from kafkaspec.lockstep.exhaustive import Call, RefinementMapping
from kafkaspec.models.storage import leader_epochs as model
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.storage.leader_epochs import Cache, Entries, audit, machine


def _offsets(state: Cache) -> list[int]:
    """Around each entry."""
    starts = [e.start_offset for e in state.entries]
    return list(dict.fromkeys([*(s + d for s in starts for d in (0, -1, 1)), 0, 7, 12]))


def _epochs(state: Cache) -> list[int]:
    epochs = [e.epoch for e in state.entries]
    return list(dict.fromkeys([*(e + d for e in epochs for d in (0, 1, -1)), -1, 0, 5]))


def _after(last: int, most: int, count: int) -> list[int]:
    """What follows the last one, as often as there are some: so that there come to be many."""
    return [last + d for _ in range(count) for d in (1, 2) if last + d <= most]


def _next_epochs(state: Cache) -> list[int]:
    return [*_epochs(state), *(_after(state.entries[-1].epoch, INT_MAX, len(state.entries)) if state.entries else ())]


def _next_offsets(state: Cache) -> list[int]:
    last = state.entries[-1].start_offset if state.entries else 0
    return [*_offsets(state), -1, *_after(last, LATEST, len(state.entries))]


TEXTS = [
    "",
    "0\n",
    "0\n0\n",
    "0\n1\n3 7\n",
    "0\n2\n0 0\n3 7",
    "0\r\n1\r\n4  9 \r\n",
    "0\n2\n3 7\n1 9\n",
    "0\n2\n1 9\n3 9\n",
    "0\n3\n0 0\n2 8\n5 4\n",
    "1\n0\n",
    "x\n",
    "0\n2\n0 0\n",
    "0\n0\n0 0\n",
    "0\nx\n",
    "0\n-1\n",
    "0\n1\n0 0 0\n",
    "0\n1\n 0 0\n",
    "0\n1\nx 0\n",
    "0\n1\n0 9223372036854775808\n",
    "0\n1\n2147483648 0\n",
    "0\n1\n-1 4\n",
    "0\n1\n1 -4\n",
    "0\n1\n\n",
]


_LOGS = [
    [],
    [[0, 4, 0, 2], [5, 9, 0, 2], [10, 10, 3, 2], [11, 19, 3, 2]],
    [[0, 4, 0, 2], [5, 9, 3, 2], [10, 14, 0, 2], [15, 19, 3, 2]],
    [[0, 4, -1, 0], [5, 9, 2, 2], [10, 14, 2, 2]],
    [[0, 4, 4, 2], [5, 9, -1, 1], [10, 14, 2, 2]],
    [[0, 4, 0, 2], [8, 9, 0, 2], [15, 19, 5, 2]],
    [[0, 9, 0, 2], [10, 19, 2, 2]],
]


_ENTRIES: list[list[list[int]]] = [
    [],
    [[0, 0], [3, 10]],
    [[0, 3], [3, 10]],
    [[0, 5], [3, 10]],
    [[2, 5]],
    [[3, 10]],
    [[0, 0], [1, 10], [5, 12]],
    [[0, 0], [5, 18]],
    [[0, 0], [2, 10], [4, 20]],
    [[0, 0], [2, 10], [4, 25]],
    [[0, 0], [2, 9]],
    [[0, 0], [2, 11]],
]


machine.candidates |= {
    "init:deferred": lambda state: [True, False],
    "epoch": _epochs,
    "assign:epoch": _next_epochs,
    "assign:start_offset": _next_offsets,
    "requested_epoch": _epochs,
    "start_offset": lambda state: [*_offsets(state), -1],
    "end_offset": lambda state: [*_offsets(state), -1],
    "offset": lambda state: [*_offsets(state), -1],
    "log_start": lambda state: [0, 3, 5, 7, *_offsets(state)[:4]],
    "log_end": lambda state: [20, *_offsets(state)],
    "log_end_offset": lambda state: (
        [state.entries[-1].start_offset + d for d in (0, 1, 9)] if state.entries else [0, 5]
    ),
    "entries": lambda state: _ENTRIES,
    "leaderEpochCheckpoint.write:entries": lambda state: [*_ENTRIES, [list(e) for e in state.entries]],
    "file": lambda state: TEXTS,
}


audit.candidates |= {
    "batches": lambda state: _LOGS,
    "entries": lambda state: _ENTRIES,
    "log_start": lambda state: [0, 3, 5, 7],
    "log_end": lambda state: [20, 9, 12, 0],
}


SIZES = {"E": 2, "L": 2}


def refinement(sizes: Mapping[str, int]) -> RefinementMapping[Cache]:
    """Epoch e of the spec is the model's e; no entry is the model's offset -1."""
    most = sizes["E"]

    def of(entries: Entries) -> dict[int, int]:
        return {e: next((x.start_offset for x in entries if x.epoch == e), -1) for e in range(most + 1)}

    def to_model(state: Cache) -> dict[str, Any] | None:
        entries, stored = state.entries, state.on_disk
        if any(e.epoch > most or e.start_offset > sizes["L"] for e in (*entries, *stored)):
            return None
        return {"start": of(entries), "stored": of(stored), "scheduled": state.scheduled}

    def calls(state: Cache, action: str, arguments: Mapping[str, Any]) -> list[Call] | None:
        match action:
            case "assign":
                return [("assign", {"epoch": arguments["e"], "start_offset": arguments["o"]})]
            case "truncate_from_end":
                return [("truncateFromEndAsyncFlush", {"end_offset": arguments["o"]})]
            case "truncate_from_start":
                return [("truncateFromStartAsyncFlush", {"start_offset": arguments["o"]})]
            case "clear":
                return [("clearAndFlush", {})]
            case "write":
                return [("runScheduled", {})]
        return [("reopen", {})]

    return RefinementMapping(model.Entries, sizes, to_model, calls, init={"deferred": True})


REFINEMENTS = (refinement(SIZES),)
