"""Which levels the released Kafka does not list at an epoch, for its known deviation.

FeatureControlManager lists what its TimelineHashMap iterates over; the ghost is where that has its entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Outside, Refused
from kafkaspec.spec.controller.features import KRAFT, METADATA, Features, machine
from kafkaspec.spec.controller.timeline_released import (
    Storage,
    Table,
    iterated,
    put,
    released_capacity,
    remove,
    reset,
    revert,
    with_snapshot,
    without_below,
)

LEVELS = "levels"


def _begun() -> Storage:
    return Storage({LEVELS: Table({}, released_capacity(0))})


def _advance(stored: Storage, before: Features, op: str, arguments: Mapping[str, Any], after: Features) -> Storage:
    match op:
        case "getOrCreateSnapshot":
            return with_snapshot(stored, arguments["epoch"])
        case "revertToSnapshot":
            return revert(stored, arguments["epoch"])
        case "deleteSnapshotsUpTo":
            return without_below(stored, arguments["epoch"])
        case "reset":
            return reset(stored)
        case "replay" | "updateFeatures" if arguments.get("replayed", True):
            step = machine.apply(before, op, arguments, contracts=False)
            if isinstance(step, Outside) or isinstance(step.result, Refused):
                return stored
            said = [(arguments["name"], arguments["level"])] if op == "replay" else None
            for name, level in said or [(r[1], r[2]) for r in step.result["records"]]:
                if name not in (None, METADATA, KRAFT):
                    stored = put(stored, LEVELS, name) if level else remove(stored, LEVELS, name)
    return stored


def _unlisted(
    stored: Storage,
    state: Features,
    op: str,
    arguments: Mapping[str, Any],
    result: Json | Refused,
    observation: Json,
) -> tuple[Json | Refused, Json]:
    if op != "finalizedFeatures" or isinstance(result, Refused):
        return result, observation
    come = iterated(stored, LEVELS, arguments["epoch"])
    listed = {name: level for name, level in result["features"].items() if name == METADATA or name in come}
    return {**result, "features": listed}, observation


machine.deviations.append(
    Deviation(
        id="FEA-D1",
        clause="FEA-22",
        title="A list of the finalized features lacks one after a revert",
        versions="4.3.0 (seen)",
        condition="""the condition of TML-D3 holds of the map of levels: a delta of it has more slots than the map
        itself, and the feature is only in another slot than its first one""",
        history=(
            'replay name="group.version" level=1',
            'replay name="transaction.version" level=1',
            "getOrCreateSnapshot epoch=1",
            'replay name="group.version" level=0',
            'replay name="transaction.version" level=0',
            "revertToSnapshot epoch=1",
            'replay name="group.version" level=0',
            "finalizedFeatures epoch=1",
        ),
        cause="""finalizedFeatures iterates over the map at the epoch, and such an iteration misses entries (TML-D3):
        SnapshottableHashTable.executeRevert leaves in the delta what it puts back, so that the delta, which is full,
        grows when one of its entries is added to it again.""",
        effect="""The active controller changed two features, lost the leadership before that was committed, and
        reverts. When it removes one of them again, it says until that is committed that the feature has no level,
        though the committed one is there: QuorumController.finalizedFeatures, which asks at the stable offset. What
        it enforces is not wrong: that looks the level up.""",
        fix="as that of TML-D3",
        rewrite=_unlisted,
        initial=_begun,
        advance=_advance,
    )
)
