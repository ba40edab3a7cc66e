"""What the released Kafka keeps of a deferred event that had no deadline, for its known deviation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.spec.controller.event_queue import Queue, accepts, machine


class Orphans(NamedTuple):
    """The ghost: tags of events that are in no list, and how many such events were taken off the size."""

    tags: tuple[tuple[str, int], ...] = ()
    uncounted: int = 0

    def without(self, tag: str | None) -> Orphans:
        """The event that has the tag is removed, as if it were in a list."""
        rest = tuple(entry for entry in self.tags if entry[0] != tag)
        return Orphans(rest, self.uncounted + len(self.tags) - len(rest))


def _advance(ghost: Orphans, before: Queue, op: str, arguments: Mapping[str, Any], after: Queue) -> Orphans:
    tag = arguments.get("tag")
    if op == "cancelDeferred":
        return ghost.without(tag)
    if op not in ("scheduleDeferred", "enqueue") or tag is None or not accepts(before):
        return ghost
    ghost = ghost.without(tag)
    if arguments["function"] == "none" and arguments.get("insertion", "DEFERRED") == "DEFERRED":
        return ghost._replace(tags=tuple(sorted((*ghost.tags, (tag, before.added)))))
    return ghost


def _rewrite(
    ghost: Orphans, state: Queue, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if not ghost.tags and not ghost.uncounted:
        return result, observation
    tags = dict(sorted({**observation["tags"], **dict(ghost.tags)}.items()))
    return result, type(observation)({**observation, "tags": tags, "size": observation["size"] - ghost.uncounted})


machine.deviations.append(
    Deviation(
        id="EVQ-D1",
        clause="EVQ-11",
        title="A deferred event without a deadline keeps its tag, and is counted off the size",
        versions="seen in 4.3.0",
        condition="a deferred event with a tag is added, its function calculates no deadline, and the queue accepts "
        "events; it shows in the tags until an event comes with the same tag or the tag is cancelled, and from then on "
        "in the size, which is one less each time",
        history=('scheduleDeferred tag="a" function="none" deadlineNs=0 handleException="returns"',),
        cause="enqueue puts the event into the index by tag before it asks for the deadline, and leaves it there when "
        "it refuses it. Whoever finds it there takes it for an event that waits, and lowers the size.",
        effect="`size` becomes too small, also negative, for good: `isEmpty` says that nothing runs or waits while "
        "something does, or the other way round. No event is lost. QuorumController always gives a deadline.",
        fix="to ask for the deadline before the tag is taken, or to take the event out of the index when it is refused",
        rewrite=_rewrite,
        initial=Orphans,
        advance=_advance,
    )
)
