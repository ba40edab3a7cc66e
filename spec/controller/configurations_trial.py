"""Dynamic configurations: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaspec.language.concrete import element
from kafkaspec.lockstep.exhaustive import Call, RefinementMapping
from kafkaspec.models.controller import configurations as model
from kafkaspec.spec.common.metadata_log import MIN_ISR
from kafkaspec.spec.controller.configurations import (
    CORDONED,
    DEFAULT_NODE,
    FORBIDDEN,
    INVALID_VALUE,
    MOST_CHARACTERS,
    TOPIC_KEYS,
    UNCLEAN,
    UNSUPPORTED,
    Configurations,
    Resource,
    machine,
)

TOPIC, GONE, CLUSTER, NODE, OTHER, GROUP = (
    ["TOPIC", "t"], ["TOPIC", "gone"], ["BROKER", ""], ["BROKER", "0"], ["BROKER", "1"], ["GROUP", "g"],
)  # fmt: skip
RESOURCES = (TOPIC, CLUSTER, NODE, OTHER, TOPIC, GONE, GROUP)


def _changes(resource: Sequence[str]) -> list[list[Any]]:
    """The changes of one resource, one by one."""
    found: list[list[Any]] = [[MIN_ISR, "SET", "2"], [MIN_ISR, "DELETE", None], [MIN_ISR, "SET", "3"]]
    found += [[UNCLEAN, "SET", "TRUE"], [UNSUPPORTED, "SET", "1"], [MIN_ISR, "APPEND", "2"], [UNCLEAN, "SET", None]]
    if resource[0] == "TOPIC":
        lists = ["cleanup.policy"]
        found += [["retention.ms", "SET", "5"], ["retention.ms", "DELETE", None]]
    else:
        lists = ["log.cleanup.policy", CORDONED]
        found += [["log.retention.hours", "SET", value] for value in ("2", " -1 ", "x")]
        found += [["log.retention.ms", "SET", "7"], ["log.retention.hours", "DELETE", None]]
        found += [[CORDONED, "SET", value] for value in ("/a , /b", "/b", "/a,/c", " ", "/a")]
    for key in lists:
        found += [[key, "APPEND", value] for value in ("compact", "delete,x,", "", ",", "/a")]
        found += [[key, "SUBTRACT", value] for value in ("delete", "compact,/a", ",", "")]
        found += [[key, "SET", value] for value in ("compact,delete", "a,,b,", "", None)]
    return found


def _changed(state: Configurations) -> Sequence[Any]:
    """Requests of one change; of several; of several resources, one of which is refused."""
    found = [[[r, [change]]] for r in RESOURCES for change in _changes(r)]
    bad, good = ["retention.ms", "SET", INVALID_VALUE], [MIN_ISR, "SET", "2"]
    several = [
        [[TOPIC, [good, bad]], [CLUSTER, [good]]],
        [[TOPIC, [["retention.ms", "SET", FORBIDDEN], good]], [GROUP, [good]]],
        [[CLUSTER, [good]], [TOPIC, [good, ["cleanup.policy", "APPEND", "compact"]]], [OTHER, [good]]],
        [[OTHER, [good, ["log.cleanup.policy", "APPEND", "x"]]], [NODE, [good]], [GONE, [good]]],
        [[TOPIC, [["retention.ms", "SET", "9"], [MIN_ISR, "DELETE", None]]], [GROUP, [[MIN_ISR, "SET", "1"]]]],
        [[TOPIC, [["retention.ms", "SET", "\U0001f600" * (MOST_CHARACTERS // 2) + "zz"]]]],
        [[TOPIC, []], [OTHER, []]], [],
    ]  # fmt: skip
    rare = [
        [[TOPIC, [good, ["retention.ms", "APPEND", "1"]]]],
        [[CLUSTER, [["log.retention.hours", "SET", " -1 "]]]],
        [[CLUSTER, [["log.retention.ms", "DELETE", None], ["log.retention.hours", "SET", "x"]]]],
        [[NODE, [[CORDONED, "SET", " "]]]],
    ]  # fmt: skip
    return [*found, *several * 6, *rare * 30, *_of_lists(state) * 30]


def _of_lists(state: Configurations) -> list[Any]:
    """Requests that change a list which a resource has."""
    found: list[Any] = []
    for r, configs in state.present.configs:
        for key, value in configs:
            changes: list[list[Any]] = []
            if key in ("cleanup.policy", "log.cleanup.policy"):
                changes = [[key, "APPEND", "x"]] * 5 if ",," in value else [[key, "SET", "a,,b,"]]
            elif key == CORDONED:
                changes = [[key, "SET", "/b"], [key, "SET", "/a , /b"]]
            found += [[[[*r], [change]]] for change in changes]
    return found


def _new(state: Configurations) -> Sequence[Any]:
    """What a resource is to have: nothing, what it has, less, more, and what is refused."""
    found: list[Any] = []
    for r in RESOURCES:
        has = [[k, v] for k, v in state.present.of(Resource(*r)).items()]  # type: ignore[arg-type]
        least = [[MIN_ISR, "2"]]
        found += [[[r, []]], [[r, has]], [[r, has[1:]]], [[r, least]], [[r, [[MIN_ISR, None], [UNCLEAN, "true"]]]]]
        found += [[[r, [["retention.ms", "5"], *least]]], [[r, [["log.cleanup.policy", FORBIDDEN]]]]]
        found += [[[r, [[CORDONED, "/a"]]]], [[r, [["retention.ms", INVALID_VALUE]]]]]
    pairs = [[CLUSTER, []], [TOPIC, [[MIN_ISR, "1"]]], [OTHER, [["log.retention.ms", "1"]]]]
    return [*found, pairs, pairs, [[GROUP, [[MIN_ISR, "1"]]], [TOPIC, []]]]


def _epochs(state: Configurations) -> Sequence[int]:
    return [e for e, _ in state.past]


machine.candidates |= {
    "init:node_id": lambda state: (0, 1, 2),
    "init:static": lambda state: ([], [[MIN_ISR, "4"]], [["log.retention.hours", "3"], [UNCLEAN, "true"]]),
    "init:missing": lambda state: ([GONE], [GONE, OTHER], []),
    "init:metadata_version": lambda state: (30, 30, 29, 23),
    "changed": _changed,
    "new": _new,
    "newly_created": lambda state: (False, False, True),
    "forwarded": lambda state: (False, True),
    "replayed": lambda state: (True, True, True, False),
    "validate_only": lambda state: (False, False, False, True),
    "updateFeatures:level": lambda state: (1, 0),
    "resource": lambda state: RESOURCES,
    "key": lambda state: (MIN_ISR, "retention.ms", UNSUPPORTED, UNCLEAN, "log.cleanup.policy"),
    "value": lambda state: (None, "2", None, "true"),
    "name": lambda state: ("t", "gone", "u"),
    "topic": lambda state: ("t", "gone"),
    "getTopicConfig:key": lambda state: [*TOPIC_KEYS],
    "keys": lambda state: ([], [MIN_ISR], [UNCLEAN, "nothing", MIN_ISR]),
    "epoch": _epochs,
    "getOrCreateSnapshot:epoch": lambda state: (state.highest + 1, state.highest + 3),
    "deleteSnapshotsUpTo:epoch": lambda state: (*_epochs(state), state.highest + 1),
    "version": lambda state: (30, 23),
}


# ---- the model's states ----------------------------------------------------------------------------------------------
BROKERS = {2: element(model.Broker, 0), 3: element(model.Broker, 1)}


def _to_model(state: Configurations) -> dict[str, Any] | None:
    """The model's variables; None if other brokers have the key."""
    own = [id for id in state.present.brokers if MIN_ISR in state.present.of(Resource("BROKER", str(id)))]
    if not BROKERS.keys() >= {*own}:
        return None
    cluster = MIN_ISR in state.present.of(DEFAULT_NODE)
    return {"elr": state.present.elr, "cluster": cluster, "brokers": {BROKERS[id] for id in own}}


def _alter(name: str, operation: str) -> list[Call]:
    value = "2" if operation == "SET" else None
    changed = [[["BROKER", name], [[MIN_ISR, operation, value]]]]
    flags = {"newly_created": False, "forwarded": False, "replayed": True}
    return [("incrementalAlterConfigs", {"changed": changed, **flags})]


def _calls(state: Configurations, action: str, arguments: Mapping[str, Any]) -> list[Call]:
    """The calls for an action of the model."""
    name = next((str(id) for id, b in BROKERS.items() if b == arguments.get("b")), "")
    match action:
        case "set_broker" | "set_cluster":
            return _alter(name, "SET")
        case "remove_broker" | "remove_cluster":
            return _alter(name, "DELETE")
    level = 1 if action == "switch_on" else 0
    return [("updateFeatures", {"level": level, "validate_only": False, "replayed": True})]


REFINEMENTS = (RefinementMapping(model.Safety, {"Broker": 2}, _to_model, _calls),)
