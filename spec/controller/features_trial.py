"""Finalized features: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaspec.language.concrete import element
from kafkaspec.lockstep.exhaustive import Call, RefinementMapping
from kafkaspec.models.controller import features as model
from kafkaspec.spec.common.metadata_log import ELR
from kafkaspec.spec.controller.features import (
    GROUP,
    HIGHEST,
    KRAFT,
    METADATA,
    NEEDED,
    NEEDY,
    SHARE,
    STABLE,
    TESTED,
    TRANSACTION,
    Features,
    by_default,
    current_level,
    machine,
)

DEFAULT = [[*s] for s in by_default(False)]
TESTING = [[*s] for s in by_default(True)] + [[TESTED, 0, 2], [NEEDED, 0, 1], [NEEDY, 0, 1]]
WIDE = [[METADATA, 0, 40], *([f, 0, 2**15 - 1] for f in HIGHEST), ["unheard.of", 0, 3], ["fixed", 2, 2]]
OLD = [[METADATA, 7, 22], [KRAFT, 0, 1], [GROUP, 0, 1]]
LATER = [[METADATA, 30, 2**15 - 1], [KRAFT, 0, 1], [GROUP, 1, 2**15 - 1]]
BARE: list[list[Any]] = []
NODES = (None, DEFAULT, TESTING, WIDE, WIDE, OLD, None, BARE, LATER)


def _asked(state: Features) -> list[list[Any]]:
    """One update, of every kind."""
    version = state.present.metadata or STABLE
    found: list[list[Any]] = []
    for level in (version + 1, version - 1, version, 31, 23, 22, 15, 14, 6, 0):
        found += [[METADATA, level, type] for type in (None, "SAFE_DOWNGRADE", "UNSAFE_DOWNGRADE")]
    for feature in (*HIGHEST, "unheard.of", "fixed"):
        now = current_level(state, feature)
        found += [[feature, now + 1, None], [feature, now - 1, "SAFE_DOWNGRADE"], [feature, 0, "UNSAFE_DOWNGRADE"]]
        found += [[feature, HIGHEST.get(feature, 2), "UPGRADE"], [feature, now, "SAFE_DOWNGRADE"]]
    found += [[ELR, 1, "SAFE_DOWNGRADE"], [GROUP, 1, "UNKNOWN"], [SHARE, -1, None], [KRAFT, 2, None], [KRAFT, 0, None]]
    return [u for u in found if -(2**15) <= u[1] < 2**15]


def _updates(state: Features) -> Sequence[Any]:
    """Requests: one update; several that need each other, in either order; one that is refused behind others."""
    single = [[u] for u in _asked(state)]
    elr, group = [ELR, 1, None], [GROUP, 1, None]
    pairs = [
        [elr, [METADATA, 23, None]], [[METADATA, 23, None], elr], [elr, [METADATA, 22, "SAFE_DOWNGRADE"]],
        [[NEEDY, 1, None], [NEEDED, 1, None]], [[NEEDY, 1, None], [NEEDED, 0, None]], [[NEEDED, 0, "SAFE_DOWNGRADE"]],
        [[TESTED, 2, None], [METADATA, 31, None]], [group, [METADATA, 6, "UNSAFE_DOWNGRADE"]],
        [[KRAFT, 1, None], [GROUP, 5, None]], [[KRAFT, 1, None], group], [group, [KRAFT, 1, None], [SHARE, 1, None]],
        [[GROUP, 0, "SAFE_DOWNGRADE"], [SHARE, 0, "UNSAFE_DOWNGRADE"], [TRANSACTION, 2, None]],
        [group, [SHARE, -1, None]], [[KRAFT, 2, None]],
    ]  # fmt: skip
    refused = [[[KRAFT, 1, None]]] * 40 if state.refusal is not None else []
    return [*single, *pairs * 6, *refused, []]


def _levels(state: Features) -> Sequence[int]:
    version = state.present.metadata or STABLE
    return (1, 0, version, 2, version + 1, version - 1, STABLE, 35, 3, -1)


def _epochs(state: Features) -> Sequence[int]:
    return [e for e, _ in state.past]


machine.candidates |= {
    "init:node_id": lambda state: (0, 1, 2),
    "init:quorum": lambda state: ([0], [0, 1], [2, 0, 1]),
    "init:supported": lambda state: (DEFAULT, TESTING, WIDE, WIDE, OLD),
    "init:metadata_version": lambda state: (30, 31, 24, 23, 29, 22, 21, 15, 14, 7, None),
    "init:kraft_version": lambda state: (0, 1),
    "updates": _updates,
    "validate_only": lambda state: (False, False, True),
    "claimed_epoch": lambda state: (0, 7, 70_000),
    "replayed": lambda state: (True, True, False),
    "name": lambda state: (METADATA, METADATA, *HIGHEST, "unheard.of", "fixed"),
    "level": _levels,
    "epoch": _epochs,
    "getOrCreateSnapshot:epoch": lambda state: (state.highest + 1, state.highest + 3),
    "deleteSnapshotsUpTo:epoch": lambda state: (*_epochs(state), state.highest + 1),
    "id": lambda state: (1, 0, 2),
    "supported": lambda state: NODES,
    "version": lambda state: (30, 31, 24, 23, 22, 15, 14, None),
    "message": lambda state: (None, None, "No."),
    "unstable": lambda state: (False, True),
}


# ---- the model's states ----------------------------------------------------------------------------------------------
SIZES = {"Broker": 1, "Controller": 1}
VERSIONS = (14, 15, 23, 24)
"""metadata.version for each of the model's versions"""
BROKERS = {1: element(model.Broker, 0)}
CONTROLLERS = {1: element(model.Controller, 0)}


def _node(most: int) -> list[list[Any]]:
    return [[METADATA, 7, VERSIONS[most]], [ELR, 0, 1]]


def _mosts(nodes: Sequence[tuple[int, Any]], elements: Mapping[int, Any]) -> dict[Any, int] | None:
    """The highest version that each node supports; None for nodes of another kind."""
    most = {id: {s.feature: s.most for s in supported}.get(METADATA) for id, supported in nodes}
    if not most.keys() <= elements.keys() or any(v not in VERSIONS for v in most.values()):
        return None
    return {e: VERSIONS.index(most[id]) if id in most else 0 for id, e in elements.items()}


def _to_model(state: Features) -> dict[str, Any] | None:
    """The model's variables; None for other versions, or other nodes."""
    brokers, controllers = _mosts(state.brokers, BROKERS), _mosts(state.controllers, CONTROLLERS)
    if state.present.metadata not in VERSIONS or brokers is None or controllers is None:
        return None
    return {
        "metadata": VERSIONS.index(state.present.metadata),
        "dependent": state.present.of(ELR) == 1,
        "brokers": {BROKERS[id] for id, _ in state.brokers},
        "broker_most": brokers,
        "controllers": {CONTROLLERS[id] for id, _ in state.controllers},
        "controller_most": controllers,
    }


def _update(feature: str, level: int, type: str) -> list[Call]:
    arguments = {"updates": [[feature, level, type]], "validate_only": False, "claimed_epoch": 0, "replayed": True}
    return [("updateFeatures", arguments)]


def _calls(state: Features, action: str, arguments: Mapping[str, Any]) -> list[Call] | None:
    """The calls for an action of the model. What keeps nodes from registering is no part of the spec."""
    match action:
        case "raise_version":
            return _update(METADATA, VERSIONS[arguments["v"]], "UPGRADE")
        case "lower_version":
            return _update(METADATA, VERSIONS[arguments["v"]], "SAFE_DOWNGRADE")
        case "enable":
            return _update(ELR, 1, "UPGRADE")
        case "disable":
            return _update(ELR, 0, "SAFE_DOWNGRADE")
        case "register_broker":
            fits = VERSIONS[arguments["most"]] >= (state.present.metadata or 0)
            return [("brokerRegistered", {"id": 1, "supported": _node(arguments["most"])})] if fits else None
        case "unregister_broker":
            return [("brokerRegistered", {"id": 1, "supported": None})]
    registers = state.present.metadata != VERSIONS[0]
    return [("controllerRegistered", {"id": 1, "supported": _node(arguments["most"])})] if registers else None


INIT = {"quorum": [0, 1], "metadata_version": VERSIONS[0]}
REFINEMENTS = (RefinementMapping(model.Cluster, SIZES, _to_model, _calls, init=INIT),)
