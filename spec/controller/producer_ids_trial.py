"""Blocks of producer ids: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaspec.language.concrete import element
from kafkaspec.lockstep.exhaustive import Call, RefinementMapping
from kafkaspec.models.controller import producer_ids as model
from kafkaspec.spec.common.kafka import LONG_MAX
from kafkaspec.spec.controller.producer_ids import (
    BLOCK_SIZE,
    EMPTY,
    NO_BROKER,
    UNKNOWN_EPOCH,
    Memory,
    ProducerIds,
    machine,
)

IDS = (0, 1, 2, 2**31 - 1)
"""of brokers; the last is seldom registered"""


def _brokers(state: ProducerIds) -> Sequence[int]:
    """Those that are registered, and now and then another one."""
    known = [id for id, _ in state.present.brokers]
    return [*known * 3, *IDS[:3]]


def _epochs(state: ProducerIds) -> Sequence[int]:
    """Those of registrations, and others beside them."""
    known = [epoch for _, epoch in state.present.brokers]
    near = [e for k in known for e in (k - 1, k + 1) if -1 <= e < 2**63]
    return [*known * 6, *near, -1, 100]


def _next_ids(state: ProducerIds) -> Sequence[int]:
    """Just above what the last record said, the same, below it, far above it, and where the last block begins."""
    now = state.next.first
    end = LONG_MAX - BLOCK_SIZE
    near = (now + BLOCK_SIZE, now + 1, now, now - 1, now - BLOCK_SIZE, 0)
    far = (end, end + 1, end - BLOCK_SIZE, LONG_MAX, -1, -BLOCK_SIZE, -(2**63)) if _seldom(state) else ()
    return [n for n in (*near, *far) if -(2**63) <= n <= LONG_MAX]


def _seldom(state: ProducerIds) -> bool:
    return state.next == EMPTY or (state.next.first // BLOCK_SIZE + len(state.past)) % 5 == 0


def _snapshots(state: ProducerIds) -> Sequence[int]:
    return state.epochs


def _chains(state: ProducerIds) -> Sequence[Sequence[int]]:
    now = state.next.first
    return [[], [now], [now, min(now + BLOCK_SIZE, LONG_MAX)], [5, -1], [-1], [0], [-1, 3], [LONG_MAX]]


machine.candidates |= {
    "init:brokers": lambda state: ([[0, 100]], [], [[0, 100], [1, 0], [2, 2**63 - 1]]),
    "broker_id": _brokers,
    "replay:broker_id": lambda state: (*IDS, NO_BROKER),
    "registerBroker:broker_id": lambda state: IDS,
    "unregisterBroker:broker_id": lambda state: [id for id, _ in state.present.brokers],
    "broker_epoch": _epochs,
    "registerBroker:broker_epoch": lambda state: (100, 101, 0, 2**63 - 1, -1),
    "replayed": lambda state: (True, True, False),
    "next_producer_id": _next_ids,
    "next_producer_ids": _chains,
    "epoch": _snapshots,
    "getOrCreateSnapshot:epoch": lambda state: (state.highest + 1, state.highest + 3),
    "deleteSnapshotsUpTo:epoch": lambda state: (*state.epochs, state.highest + 1),
}


# ---- the model's states ----------------------------------------------------------------------------------------------
SIZES = {"Broker": 2, "E": 1, "N": 2}
BROKERS = {id: element(model.Broker, id) for id in range(SIZES["Broker"])}
EPOCHS = (0, *(100 + e for e in range(SIZES["E"])))
"""of the spec, for each of the model's; the first is that of nobody"""


def _memory(memory: Memory) -> dict[str, Any] | None:
    """The model's variables of the memory; None beyond the sizes."""
    first, rest = divmod(memory.next.first, BLOCK_SIZE)
    epochs = {e for _, e in memory.brokers} | ({memory.broker_epoch} - {UNKNOWN_EPOCH})
    named = {id for id, _ in memory.brokers} | ({memory.next.broker_id} - {NO_BROKER})
    if rest or not 0 <= first <= SIZES["N"] or not epochs <= {*EPOCHS} or not named <= BROKERS.keys():
        return None
    registered = dict.fromkeys(BROKERS.values(), 0) | {BROKERS[id]: EPOCHS.index(e) for id, e in memory.brokers}
    return {
        "begins": first,
        "used": memory.next != EMPTY,
        "asker": BROKERS.get(memory.next.broker_id),
        "asked_with": 0 if memory.broker_epoch == UNKNOWN_EPOCH else EPOCHS.index(memory.broker_epoch),
        "registered": registered,
    }


def _to_model(state: ProducerIds) -> dict[str, Any] | None:
    """The latest snapshot alone is the model's; without one the model's is as empty as a new controller."""
    now = _memory(state.present)
    saved = _memory(state.past[-1][1] if state.past else Memory())
    if now is None or saved is None or len(state.past) > 1:
        return None
    return {**now, "kept": bool(state.past), **{f"kept_{name}": value for name, value in saved.items()}}


def _said(arguments: Mapping[str, Any]) -> dict[str, int]:
    return {"next_producer_id": arguments["n"] * BLOCK_SIZE}


def _calls(state: ProducerIds, action: str, arguments: Mapping[str, Any]) -> Sequence[Call] | None:
    """The calls for an action of the model."""
    ids = {e: id for id, e in BROKERS.items()}
    given: dict[str, Any] = {}
    if "b" in arguments:
        given["broker_id"] = ids[arguments["b"]]
    if "e" in arguments:
        given["broker_epoch"] = EPOCHS[arguments["e"]]
    match action:
        case "register":
            return None if arguments["e"] == 0 else [("registerBroker", given)]
        case "unregister":
            return [("unregisterBroker", given)]
        case "allocate":
            full = state.next.first == SIZES["N"] * BLOCK_SIZE  # the spec's end is elsewhere
            return None if full else [("generateNextProducerId", {**given, "replayed": True})]
        case "replay":
            registered = dict(state.present.brokers).get(given["broker_id"]) == given["broker_epoch"]
            return [("replay", {**given, **_said(arguments)})] if registered else None  # no record of the log
        case "replay_image":
            image = {"broker_id": NO_BROKER, "broker_epoch": UNKNOWN_EPOCH, **_said(arguments)}
            return [("replay", image)] if state.next == EMPTY else None  # a raft snapshot has one
        case "keep":
            epoch = state.highest + 1
            return [("getOrCreateSnapshot", {"epoch": epoch}), ("deleteSnapshotsUpTo", {"epoch": epoch})]
        case "revert":
            return [("revertToSnapshot", {"epoch": state.epochs[-1]})] if state.past else None
    return [("reset", {})]


REFINEMENTS = (RefinementMapping(model.Memory, SIZES, _to_model, _calls),)
