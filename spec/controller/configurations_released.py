"""Which keys the released Kafka does not list at an epoch, for its known deviation.

ConfigurationControlManager has a TimelineHashMap for each resource that has keys: a new one when it gets the first,
which is forgotten with the last. What it lists is what that iterates over; the ghost is where these maps have their
entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Outside, Refused
from kafkaspec.spec.controller.configurations import UNSUPPORTED, Configurations, Resource, machine
from kafkaspec.spec.controller.timeline_released import (
    Storage,
    Table,
    iterated,
    put,
    released_capacity,
    remove,
    revert,
    with_snapshot,
    without_below,
)

Owned = tuple[tuple[Resource, str], ...]
"""The map of each resource that has keys"""


class Maps(NamedTuple):
    """The ghost: the maps, whose each resource has now, and had at each snapshot."""

    stored: Storage = Storage({})
    now: Owned = ()
    past: tuple[tuple[int, Owned], ...] = ()
    made: int = 0


def _replayed(maps: Maps, resource: Resource, key: str, value: str | None) -> Maps:
    if key == UNSUPPORTED:
        return maps
    stored, made, own = maps.stored, maps.made, dict(maps.now)
    if resource not in own:
        own[resource] = f"map {made}"
        made += 1
        stored = stored._replace(tables={**stored.tables, own[resource]: Table({}, released_capacity(0))})
    name = own[resource]
    stored = remove(stored, name, key) if value is None else put(stored, name, key)
    if not stored.tables[name].starts:
        del own[resource]
    return Maps(stored, tuple(own.items()), maps.past, made)


def _advance(maps: Maps, before: Configurations, op: str, arguments: Mapping[str, Any], after: Configurations) -> Maps:
    epoch = arguments.get("epoch", 0)
    match op:
        case "getOrCreateSnapshot":
            return maps._replace(stored=with_snapshot(maps.stored, epoch), past=(*maps.past, (epoch, maps.now)))
        case "revertToSnapshot":
            kept = tuple(p for p in maps.past if p[0] <= epoch)
            return maps._replace(stored=revert(maps.stored, epoch), now=kept[-1][1], past=kept)
        case "deleteSnapshotsUpTo":
            kept = tuple(p for p in maps.past if p[0] >= epoch)
            return maps._replace(stored=without_below(maps.stored, epoch), past=kept)
        case "reset":
            return Maps()
        case "deleteTopicConfigs":
            return maps._replace(now=tuple(o for o in maps.now if o[0] != ("TOPIC", arguments["name"])))
        case "replay":
            return _replayed(maps, Resource(*arguments["resource"]), arguments["key"], arguments["value"])
        case "incrementalAlterConfigs" | "legacyAlterConfigs" | "updateFeatures" if arguments["replayed"]:
            step = machine.apply(before, op, arguments, contracts=False)
            if not isinstance(step, Outside) and not isinstance(step.result, Refused):
                for type, resource, key, value in step.result["records"]:
                    if type == "CONFIG_RECORD":
                        maps = _replayed(maps, Resource(*resource), key, value)
    return maps


def _unlisted(
    maps: Maps,
    state: Configurations,
    op: str,
    arguments: Mapping[str, Any],
    result: Json | Refused,
    observation: Json,
) -> tuple[Json | Refused, Json]:
    if op != "describeConfigs" or arguments["keys"] or not result or isinstance(result, Refused):
        return result, observation
    name = dict(dict(maps.past)[arguments["epoch"]])[Resource(*arguments["resource"])]
    come = iterated(maps.stored, name, arguments["epoch"])
    return {key: value for key, value in result.items() if key in come}, observation


machine.deviations.append(
    Deviation(
        id="CFG-D1",
        clause="CFG-21",
        title="A list of a resource's configurations lacks one after a revert",
        versions="4.3.0 (seen)",
        condition="""all keys of a resource are asked for, and the condition of TML-D3 holds of the resource's map: a
        delta of it has more slots than the map itself, and the key is only in another slot than its first one""",
        history=(
            'replay resource=["TOPIC","foo"] key="retention.ms" value="1"',
            'replay resource=["TOPIC","foo"] key="min.insync.replicas" value="1"',
            "getOrCreateSnapshot epoch=1",
            'replay resource=["TOPIC","foo"] key="retention.ms" value=null',
            'replay resource=["TOPIC","foo"] key="min.insync.replicas" value="2"',
            "revertToSnapshot epoch=1",
            'replay resource=["TOPIC","foo"] key="retention.ms" value=null',
            'describeConfigs resource=["TOPIC","foo"] keys=[] epoch=1',
        ),
        cause="""describeConfigs iterates over the resource's map at the epoch if no key is named, and such an iteration
        misses entries (TML-D3): SnapshottableHashTable.executeRevert leaves in the delta what it puts back, so that the
        delta, which is full, grows when one of its entries is added to it again.""",
        effect="""The active controller changed two keys of a topic, lost the leadership before that was committed, and
        reverts. When it deletes one of them again, it does not list that key until the deletion is committed, though
        it is set at the stable offset: asked by its name it answers the value.""",
        fix="as that of TML-D3",
        rewrite=_unlisted,
        initial=Maps,
        advance=_advance,
    )
)
