"""Timeline collections: a map, a set, numbers and an object whose past can be read, and to which they can be put back.

The controller applies records to its memory before they are committed. It must be able to read the committed state
meanwhile, and to throw away what was not committed. One registry of snapshots serves all of its collections. Here a
snapshot is what it means: a full copy of everything, kept under its epoch. How Kafka avoids the copying is
`impl/controller/timeline.py`. Source: Kafka Internals, ch. 11, "Timeline data structures".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from icontract import ensure, require

from kafkaspec.contract.clauses import ONE_CALL, clause, states
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import Count, Int32, Int64, Room, Within
from kafkaspec.errors import UserError
from kafkaspec.spec.common.kafka import NULL_POINTER
from kafkaspec.spec.common.timeline_state import (
    LATEST_EPOCH,
    NO_EPOCH,
    Epoch,
    OpenIterator,
    Timeline,
    View,
    observe,
)

PREFIX = "TML"
TITLE = "Timeline collections"

REGISTRY = "Kafka Internals, ch. 11, SnapshotRegistry and snapshots"
TIERS = "Kafka Internals, ch. 11, How a snapshotted hash table works"

clause(
    "TML-20",
    """Read through the tiers, every epoch shows its copy: an entry of the present counts if it was written at or
    before the epoch; otherwise the first delta from that snapshot on that holds the key decides, and an entry in it
    that was written later means that there was none.""",
    source=f"{TIERS}; SnapshottableHashTable.snapshottableGet",
    without={"spec": "the spec keeps the copies, and knows no tiers"},
)
clause(
    "TML-21",
    """An entry carries the epoch after the latest snapshot at which it was written, its start epoch; what replaces
    or removes it moves it to the latest snapshot's delta if that snapshot saw it. No entry is in two places.""",
    source="SnapshottableHashTable.snapshottableAddOrReplace and updateTierData, Kafka 4.3.0",
    without={"spec": "the spec keeps the copies, and knows no start epochs"},
)
clause(
    "TML-23",
    """What a snapshot costs is what changes after it: an operation touches a bounded number of entries, taking a
    snapshot none, a delta holds at most one entry a key changed since, and a revert looks at those alone.""",
    source="Kafka Internals, ch. 11 (copy-on-write tiers); SnapshottableHashTable, Kafka 4.3.0",
    without={
        "spec": "the spec copies",
        "model": "cost is not behaviour",
        "proof": "cost is not behaviour; counted by a test, timed by bench/timeline.py",
        "mutant": "a slower table answers the same",
    },
)

RUNTIME_EXCEPTION = "java.lang.RuntimeException"
READ_ONLY = Refused("TML-12", RUNTIME_EXCEPTION, "can't modify snapshot")

T = TypeVar("T")


Zero = Annotated[int, Within(0, 0)]


def initial(
    map_expected_size: Room = 4, set_expected_size: Room = 4, long: Zero = 0, int_: Zero = 0, object_: str = "init"
) -> Timeline:
    """No snapshot; empty collections. UserError unless the numbers begin at 0: real ones begin nowhere else."""
    if long != 0 or int_ != 0:
        raise UserError("a timeline long and a timeline integer begin at 0")
    first = View({}, frozenset(), 0, 0, object_)
    return Timeline(first, {}, NO_EPOCH, first, map_expected_size, set_expected_size)


machine = Machine("timeline", initial, observe)


# ---- reading at an epoch ---------------------------------------------------------------------------------------------
def _epochs(state: Timeline) -> str:
    return ", ".join(map(str, state.past))


@states()
def missing(state: Timeline, epoch: Epoch) -> Refused:
    """TML-6: A read of any collection at an epoch that has no snapshot is an error: no answer is made up.
    [SnapshotRegistry.getSnapshot, Kafka 4.3.0]"""
    message = f"No in-memory snapshot for epoch {epoch}. Snapshot epochs are: {_epochs(state)}"
    return Refused("TML-6", RUNTIME_EXCEPTION, message)


@states()
def read(state: Timeline, epoch: Epoch, of: Callable[[View], T]) -> T | Refused:
    """What is read of the view at an epoch.

    TML-5: A read at the latest epoch (the greatest long) shows the present, whether or not there are snapshots.
    [SnapshotRegistry.LATEST_EPOCH, Kafka 4.3.0]
    """
    view = state.present if epoch == LATEST_EPOCH else state.past.get(epoch)
    return missing(state, epoch) if view is None else of(view)


def is_refused(result: object) -> bool:
    """Of what an operation returned, in whichever form."""
    return isinstance(result.result if isinstance(result, Step) else result, Refused)


def after(state: Timeline, result: Any) -> Timeline:
    """The state that an operation leaves, in whichever form it was returned."""
    return state if isinstance(result, Refused) else result.state if isinstance(result, Step) else result


@states()
def unchanged_past(state: Timeline, result: Any) -> bool:
    """TML-4: The past does not change: what a collection shows at the epoch of a snapshot equals, as a whole, the copy
    taken then, whatever is done to the present. [{TIERS}; SnapshottableHashTable, Kafka 4.3.0]
    """
    return after(state, result).past == state.past


past_stays = ensure(unchanged_past, "TML-4 a change of the present shows at no epoch")
a_read = ensure(unchanged_past, "TML-4 a read changes nothing")
refused_without_snapshot = ensure(
    lambda state, epoch, result: is_refused(result) == (epoch != LATEST_EPOCH and epoch not in state.past),
    "TML-6 refused exactly where there is no snapshot",
)


# ---- the map ---------------------------------------------------------------------------------------------------------
@machine.operation("map.put")
@past_stays
@ensure(
    lambda state, key, value, result: is_refused(result) == (key is None or value is None),
    "TML-13 a key or value null is refused, nothing else",
)
@ensure(
    lambda state, key, value, result: (
        is_refused(result)
        or (result.state.present.entries[key] == value and result.result == state.present.entries.get(key))
    ),
    "TML-13 what is put is found, and the answer is the value before",
)
def map_put(state: Timeline, key: Int32 | None, value: Int32 | None) -> Step[Timeline, int | None]:
    """`put`: the value before, or null.

    TML-13: The present of a timeline map is a map: put and remove answer the value before, what is put is found, a key
    or value null is refused; its key set, values and equality are those of any map. [TimelineHashMap (a java.util.Map),
    Kafka 4.3.0]
    """
    if key is None or value is None:
        return Step(state, Refused("TML-13", NULL_POINTER))
    entries, elements, long, integer, object, further = state.present
    present = View({**entries, key: value}, elements, long, integer, object, further)
    return Step(state.showing(present), entries.get(key))


@machine.operation("map.remove", "TML-13")
@past_stays
@ensure(
    lambda state, key, result: (
        key not in result.state.present.entries and result.result == state.present.entries.get(key)
    ),
    "TML-13 what is removed is gone, and the answer is the value before",
)
def map_remove(state: Timeline, key: Int32) -> Step[Timeline, int | None]:
    """`remove`: the value before, or null."""
    entries, elements, long, integer, object, further = state.present
    if key not in entries:
        return Step(state)
    rest = {k: v for k, v in entries.items() if k != key}
    return Step(state.showing(View(rest, elements, long, integer, object, further)), entries[key])


@machine.operation("map.clear", "TML-13")
@past_stays
@ensure(lambda result: not result.present.entries, "TML-13 nothing is left")
def map_clear(state: Timeline) -> Timeline:
    """`clear`."""
    return state.showing(state.present._replace(entries={}))


@machine.question("map.get", "TML-4", "TML-5")
@refused_without_snapshot
def map_get(state: Timeline, key: Int32, epoch: Epoch = LATEST_EPOCH) -> int | Refused | None:
    """`get` at an epoch: the value, or null."""
    return read(state, epoch, lambda view: view.entries.get(key))


@machine.question("map.size")
def map_size(state: Timeline, epoch: Epoch = LATEST_EPOCH) -> int | Refused:
    """`size` at an epoch.

    TML-16: The size of a collection at an epoch is the number of its elements then.
    [SnapshottableHashTable.snapshottableSize, Kafka 4.3.0]
    """
    return read(state, epoch, lambda view: len(view.entries))


@machine.question("map.containsValue", "TML-13")
def map_contains_value(state: Timeline, value: Int32) -> bool:
    """`containsValue`, of the present."""
    return value in state.present.entries.values()


@machine.question("map.values.contains", "TML-13", "TML-4")
def map_values_contains(state: Timeline, value: Int32, epoch: Epoch = LATEST_EPOCH) -> bool | Refused:
    """`values(epoch).contains`."""
    return read(state, epoch, lambda view: value in view.entries.values())


def is_key(text: str) -> bool:
    """A whole number of 32 bits in decimal, as a key of a JSON object is written."""
    return re.fullmatch(r"0|-?[1-9]\d{0,9}", text) is not None and -(2**31) <= int(text) < 2**31


@machine.question("map.equals", "TML-13")
@require(lambda other: all(map(is_key, other)), "TML-13 keys are whole numbers of 32 bits, in decimal")
def map_equals(state: Timeline, other: Mapping[str, Int32]) -> bool:
    """`equals` of the present with an ordinary map (keys in decimal, as JSON has them)."""
    return {str(k): v for k, v in state.present.entries.items()} == other


@machine.operation("map.keySet.iteratorRemove", "TML-13")
@past_stays
@ensure(
    lambda state, key, result: (
        key not in result.state.present.entries and result.result == (key in state.present.entries)
    ),
    "TML-13 what is removed is gone, and the answer is whether it was there",
)
def map_key_set_iterator_remove(state: Timeline, key: Int32) -> Step[Timeline, bool]:
    """The key is looked for by the iterator of the key set and removed through it: whether it was found."""
    return Step(map_remove(state, key).state, key in state.present.entries)


@machine.operation("map.keySetAtRemove")
@ensure(unchanged_past, "TML-12 the past is read-only")
@ensure(
    lambda state, epoch, result: epoch == LATEST_EPOCH or (is_refused(result) and result.state == state),
    "TML-12 a change through a view of an epoch is refused, and changes nothing",
)
def map_key_set_at_remove(state: Timeline, key: Int32, epoch: Epoch) -> Step[Timeline, bool]:
    """`keySet(epoch).remove`; refused at every epoch but the latest, whether or not there is a snapshot.

    TML-12: The past is read-only: a change through a view of an epoch is refused, and changes nothing.
    [TimelineHashMap.keySet, Kafka 4.3.0]
    """
    if epoch != LATEST_EPOCH:
        return Step(state, READ_ONLY)
    return Step(map_remove(state, key).state, key in state.present.entries)


# ---- the set ---------------------------------------------------------------------------------------------------------
@machine.operation("set.add")
@past_stays
@ensure(
    lambda state, value, result: (
        result.state == state
        if is_refused(result)
        else value in result.state.present.elements and result.result == (value not in state.present.elements)
    ),
    "TML-14 what is added is there, and the answer is whether it was not",
)
def set_add(state: Timeline, value: Int32 | None) -> Step[Timeline, bool]:
    """`add`: whether it was not there.

    TML-14: The present of a timeline set is a set: add and remove tell whether they changed it; null is refused.
    [TimelineHashSet (a java.util.Set), Kafka 4.3.0]
    """
    if value is None:
        return Step(state, Refused("TML-14", NULL_POINTER))
    entries, elements, long, integer, object, further = state.present
    if value in elements:
        return Step(state, False)
    return Step(state.showing(View(entries, elements | {value}, long, integer, object, further)), True)


@machine.operation("set.remove", "TML-14")
@past_stays
@ensure(
    lambda state, value, result: (
        value not in result.state.present.elements and result.result == (value in state.present.elements)
    ),
    "TML-14 what is removed is gone, and the answer is whether it was there",
)
def set_remove(state: Timeline, value: Int32) -> Step[Timeline, bool]:
    """`remove`: whether it was there."""
    entries, elements, long, integer, object, further = state.present
    if value not in elements:
        return Step(state, False)
    return Step(state.showing(View(entries, elements - {value}, long, integer, object, further)), True)


@machine.operation("set.addAll", "TML-14")
@past_stays
@ensure(
    lambda state, values, result: result.state.present.elements == state.present.elements.union(values),
    "TML-14 what is added is there",
)
def set_add_all(state: Timeline, values: Sequence[Int32]) -> Step[Timeline, bool]:
    """`addAll`: whether one of them was not there."""
    elements = state.present.elements.union(values)
    changed = state.showing(state.present._replace(elements=elements))
    return Step(changed, len(elements) > len(state.present.elements))


@machine.operation("set.removeAll", "TML-14")
@past_stays
@ensure(
    lambda state, values, result: result.state.present.elements == state.present.elements.difference(values),
    "TML-14 what is removed is gone",
)
def set_remove_all(state: Timeline, values: Sequence[Int32]) -> Step[Timeline, bool]:
    """`removeAll`: whether one of them was there."""
    elements = state.present.elements.difference(values)
    changed = state.showing(state.present._replace(elements=elements))
    return Step(changed, len(elements) < len(state.present.elements))


@machine.operation("set.clear", "TML-14")
@past_stays
@ensure(lambda result: not result.present.elements, "TML-14 nothing is left")
def set_clear(state: Timeline) -> Timeline:
    """`clear`."""
    return state.showing(state.present._replace(elements=frozenset()))


@machine.question("set.contains", "TML-4", "TML-5")
@refused_without_snapshot
def set_contains(state: Timeline, value: Int32, epoch: Epoch = LATEST_EPOCH) -> bool | Refused:
    """`contains` at an epoch."""
    return read(state, epoch, lambda view: value in view.elements)


@machine.question("set.size", "TML-16")
def set_size(state: Timeline, epoch: Epoch = LATEST_EPOCH) -> int | Refused:
    """`size` at an epoch."""
    return read(state, epoch, lambda view: len(view.elements))


# ---- numbers and the object ------------------------------------------------------------------------------------------
@states()
def wrapped(value: int, bits: int) -> int:
    """The number as `bits` bits hold it.

    TML-15: A timeline long, integer and object hold one value, read at an epoch like any collection; the long and the
    integer begin at 0 and wrap as 64 and 32 bits do, an object begins at the value it was made with and is never null.
    [TimelineLong, TimelineInteger, TimelineObject, Kafka 4.3.0; KAFKA-12792]
    """
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


@machine.operation("long.set", "TML-15")
@require(lambda value: -(2**63) <= value < 2**63, "TML-15 a long has 64 bits")
@past_stays
@ensure(lambda value, result: result.present.long == value, "TML-15 what is set is held")
def long_set(state: Timeline, value: Int64) -> Timeline:
    """`set` of the long."""
    return state.showing(state.present._replace(long=value))


@machine.question("long.get", "TML-15", "TML-4")
def long_get(state: Timeline, epoch: Epoch = LATEST_EPOCH) -> int | Refused:
    """`get` of the long at an epoch."""
    return read(state, epoch, lambda view: view.long)


@machine.operation("int.increment", "TML-15")
@past_stays
def int_increment(state: Timeline) -> Timeline:
    """`increment` of the integer."""
    return state.showing(state.present._replace(integer=wrapped(state.present.integer + 1, 32)))


@machine.operation("int.decrement", "TML-15")
@past_stays
def int_decrement(state: Timeline) -> Timeline:
    """`decrement` of the integer."""
    return state.showing(state.present._replace(integer=wrapped(state.present.integer - 1, 32)))


@machine.question("int.get", "TML-15", "TML-4")
def int_get(state: Timeline, epoch: Epoch = LATEST_EPOCH) -> int | Refused:
    """`get` of the integer at an epoch."""
    return read(state, epoch, lambda view: view.integer)


@machine.operation("object.set", "TML-15")
@past_stays
@ensure(
    lambda value, result: is_refused(result) if value is None else result.present.object == value,
    "TML-15 what is set is held, and null is refused",
)
def object_set(state: Timeline, value: str | None) -> Timeline | Refused:
    """`set` of the object."""
    if value is None:
        return Refused("TML-15", NULL_POINTER)
    return state.showing(state.present._replace(object=value))


@machine.question("object.get", "TML-15", "TML-4")
def object_get(state: Timeline, epoch: Epoch = LATEST_EPOCH) -> str | Refused:
    """`get` of the object at an epoch."""
    return read(state, epoch, lambda view: view.object)


# ---- snapshots -------------------------------------------------------------------------------------------------------
@states()
def may_be_used(state: Timeline, epoch: Epoch) -> bool:
    """Whether a snapshot may be taken there. An epoch at or below the latest snapshot's makes no new snapshot.

    TML-2: The caller's duty: the epoch of a new snapshot lies above every epoch used since the last reset, or since the
    revert that lowered it, even if the snapshots of those epochs are gone; and it is neither of the two extreme longs.
    [Kafka Internals, ch. 11 (an epoch is a metadata offset); SnapshottableHashTable, Kafka 4.3.0]
    """
    return NO_EPOCH < epoch < LATEST_EPOCH and (epoch > state.highest or epoch <= state.latest_epoch)


@states()
def with_snapshot(state: Timeline, epoch: Epoch) -> Timeline | Refused:
    """The state with a copy of the present at that epoch.

    TML-1: Snapshots are taken at rising epochs: taking one at an epoch below that of the latest snapshot is refused,
    and changes nothing. [{REGISTRY}; SnapshotRegistry.getOrCreateSnapshot, Kafka 4.3.0]

    TML-3: Taking a snapshot at the epoch of the latest snapshot again gives that snapshot, and changes nothing,
    whatever was written since. [SnapshotRegistry.getOrCreateSnapshot and idempotentCreateSnapshot, Kafka 4.3.0]
    """
    latest = state.latest_epoch
    if epoch == latest:
        return state
    if epoch < latest:
        message = (
            f"Can't create a new in-memory snapshot at epoch {epoch} because there is already a snapshot with epoch "
            f"{latest}. Snapshot epochs are {_epochs(state)}"
        )
        return Refused("TML-1", RUNTIME_EXCEPTION, message)
    present = state.present
    return Timeline(present, {**state.past, epoch: present}, epoch, *state[3:])


def takes_a_copy(function: Any) -> Any:
    """What both operations require and ensure that take a snapshot."""
    above = "TML-2 a new epoch is above every epoch used since the last reset, or the revert that lowered it"
    conditions: Mapping[str, Callable[..., bool]] = {
        "TML-4 nothing else changes": lambda state, result: (
            after(state, result).present == state.present
            and all(after(state, result).past[e] == v for e, v in state.past.items())
        ),
        "TML-4 the snapshot is a copy of all collections": lambda state, epoch, result: (
            epoch <= state.latest_epoch or after(state, result).past[epoch] == state.present
        ),
        "TML-3 again changes nothing": lambda state, epoch, result: (
            epoch != state.latest_epoch or after(state, result) == state
        ),
        "TML-1 refused below the latest": lambda state, epoch, result: (
            is_refused(result) == (epoch < state.latest_epoch)
        ),
    }
    for text, condition in conditions.items():
        function = ensure(condition, text)(function)
    return require(may_be_used, above)(function)


@machine.operation("getOrCreateSnapshot", "TML-1", "TML-3", "TML-4", "TML-17")
@takes_a_copy
def get_or_create_snapshot(state: Timeline, epoch: Epoch) -> Step[Timeline, int]:
    """`getOrCreateSnapshot`: the epoch of the snapshot.

    TML-17: One registry serves many collections: a snapshot, a revert, a deletion or a reset means all of them at once,
    and a change of one shows in no other. [{REGISTRY}; KAFKA-12792]
    """
    made = with_snapshot(state, epoch)
    return Step(state, made) if isinstance(made, Refused) else Step(made, epoch)


@machine.operation("idempotentCreateSnapshot", "TML-1", "TML-3", "TML-4", "TML-17")
@takes_a_copy
def idempotent_create_snapshot(state: Timeline, epoch: Epoch) -> Timeline | Refused:
    """The same, without an answer."""
    return with_snapshot(state, epoch)


def with_past(state: Timeline, present: View, past: dict[Epoch, View], highest: Epoch) -> Timeline:
    """Some snapshots are gone; an iterator that read one of them cannot go on."""
    iterator = state.iterator if state.iterator is not None and state.iterator.epoch in past else None
    return Timeline(present, past, highest, *state[3:6], iterator, *state[7:])


@machine.operation("revertToSnapshot", "TML-7", "TML-17", "TML-18")
@ensure(
    lambda state, epoch, result: is_refused(result) == (epoch not in state.past), "TML-7 refused without a snapshot"
)
@ensure(
    lambda state, epoch, result: is_refused(result) or result.present == state.past[epoch],
    "TML-7 every registered collection is what it was then",
)
@ensure(
    lambda state, epoch, result: (
        is_refused(result) or result.past == {e: v for e, v in state.past.items() if e <= epoch}
    ),
    "TML-7 later snapshots are gone, that one and the earlier ones stay",
)
def revert_to_snapshot(state: Timeline, epoch: Epoch) -> Timeline | Refused:
    """`revertToSnapshot`.

    TML-7: Reverting to a snapshot makes every registered collection what it was then; all later snapshots are gone,
    that one and the earlier ones stay. Without a snapshot at that epoch it is refused. [{REGISTRY};
    SnapshotRegistry.revertToSnapshot, Kafka 4.3.0]
    """
    view = state.past.get(epoch)
    if view is None:
        return missing(state, epoch)
    return with_past(state, view, {e: v for e, v in state.past.items() if e <= epoch}, epoch)


@machine.operation("deleteSnapshot")
@ensure(
    lambda state, epoch, result: is_refused(result) == (epoch not in state.past), "TML-8 refused without a snapshot"
)
@ensure(
    lambda state, epoch, result: after(state, result).past == {e: v for e, v in state.past.items() if e != epoch},
    "TML-8 that epoch alone is gone",
)
@ensure(lambda state, result: after(state, result).present == state.present, "TML-8 the present stays as it is")
def delete_snapshot(state: Timeline, epoch: Epoch) -> Timeline | Refused:
    """`deleteSnapshot`.

    TML-8: Deleting a snapshot, in the middle too, takes away that epoch alone: the present, and what is read at every
    remaining epoch, stay as they are. Without a snapshot at that epoch it is refused. [SnapshotRegistry.deleteSnapshot,
    Kafka 4.3.0; KAFKA-14035, KAFKA-14946]
    """
    if epoch not in state.past:
        return missing(state, epoch)
    return with_past(state, state.present, {e: v for e, v in state.past.items() if e != epoch}, state.highest)


@machine.operation("deleteSnapshotsUpTo")
@ensure(
    lambda state, epoch, result: result.past == {e: v for e, v in state.past.items() if e >= epoch},
    "TML-9 the epochs below are gone, the others stay as they are",
)
@ensure(lambda state, result: result.present == state.present, "TML-9 the present stays as it is")
def delete_snapshots_up_to(state: Timeline, epoch: Epoch) -> Timeline:
    """`deleteSnapshotsUpTo`.

    TML-9: Deleting up to an epoch takes away the snapshots below it, not one at it; the present, and what is read at
    every remaining epoch, stay as they are. There need be no snapshot at it. [{REGISTRY};
    SnapshotRegistry.deleteSnapshotsUpTo, Kafka 4.3.0]
    """
    return with_past(state, state.present, {e: v for e, v in state.past.items() if e >= epoch}, state.highest)


@machine.operation("reset", "TML-10", "TML-17")
@ensure(lambda result: not result.past, "TML-10 no snapshot is left")
@ensure(
    lambda state, result: result.present == state.first,
    "TML-10 every registered collection is what it was when it was made",
)
def reset_registry(state: Timeline) -> Timeline:
    """`reset`.

    TML-10: A reset takes away all snapshots and makes every registered collection what it was when it was made.
    [{REGISTRY}; SnapshotRegistry.reset, Kafka 4.3.0]
    """
    return with_past(state, state.first, {}, NO_EPOCH)._replace(made=state.held)


# ---- an iterator at an epoch, while the present changes --------------------------------------------------------------
of_a_snapshot = require(
    lambda epoch: epoch != LATEST_EPOCH, "TML-11 what an iterator of the present gives while it changes is not said"
)
can_go_on = require(lambda state: state.iterator is not None, "TML-11 an iterator is open, and its snapshot is there")


def elements_of(state: Timeline, iterator: OpenIterator) -> list[Any]:
    view = state.past[iterator.epoch]
    return sorted(map(list, view.entries.items())) if iterator.collection == "map" else sorted(view.elements)


@machine.operation("iterator.open")
@of_a_snapshot
@a_read
def iterator_open(state: Timeline, collection: Literal["map", "set"], epoch: Epoch) -> Timeline | Refused:
    """An iterator of the map's entries, or of the set, at an epoch; the one before is forgotten.

    TML-11: An iteration at the epoch of a snapshot gives each element of that epoch exactly once, however the present
    changes while the iterator is open, as long as the snapshot is there. [SnapshottableHashTable.HistoricalIterator,
    Kafka 4.3.0]
    """
    if epoch not in state.past:
        return missing(state, epoch)
    return state._replace(iterator=OpenIterator(collection, epoch, 0))


@machine.operation("iterator.next", "TML-11")
@can_go_on
@a_read
def iterator_next(state: Timeline, count: Count) -> Step[Timeline, int]:
    """Up to `count` more elements, in any order: how many came."""
    iterator = state.iterator
    assert iterator is not None
    came = min(count, len(elements_of(state, iterator)) - iterator.given)
    return Step(state._replace(iterator=iterator._replace(given=iterator.given + came)), came)


@machine.operation("iterator.finish", "TML-11")
@can_go_on
@a_read
def iterator_finish(state: Timeline) -> Step[Timeline, list[int] | list[list[int]]]:
    """All the rest: everything that came since the iterator was opened, sorted, as many times as it came. Of the map,
    keys with their values."""
    iterator = state.iterator
    assert iterator is not None
    return Step(state._replace(iterator=None), elements_of(state, iterator))


@machine.operation("iterator.acrossChanges", "TML-11")
@of_a_snapshot
@past_stays
def iterator_across_changes(state: Timeline, epoch: Epoch, values: Sequence[Int32]) -> Step[Timeline, list[int]]:
    """An iterator of the set at an epoch gives one element; then `values` are added to the set and all others removed;
    then it gives the rest. All that came, sorted, as many times as it came. Another open iterator is forgotten."""
    if epoch not in state.past:
        return Step(state, missing(state, epoch))
    changed = state.showing(state.present._replace(elements=frozenset(values)))._replace(iterator=None)
    return Step(changed, sorted(state.past[epoch].elements))


# ---- further collections of the same registry ------------------------------------------------------------------------
is_held = require(lambda state, name: name in state.held, "TML-19 somebody holds the collection")


@machine.operation("collection.create", "TML-18", "TML-17")
@states(
    without={"proof": "to the models a collection that was not made yet is one in its first state: TML-7 is the proof"}
)
@require(lambda state, name: name not in state.made, "TML-18 the name is free")
@ensure(unchanged_past, "TML-18 no snapshot knows it")
def collection_create(state: Timeline, name: str) -> Timeline:
    """A further timeline set of that name, registered and held.

    TML-18: A collection made after a snapshot was taken is, at that epoch and after a revert to it, what it was when it
    was made. [SnapshottableHashTable, TimelineLong, TimelineObject, Kafka 4.3.0]
    """
    return state._replace(held=state.held | {name}, made=state.made | {name})


@machine.operation("collection.add", "TML-17", "TML-14")
@is_held
@past_stays
@ensure(
    lambda state, result: result.state.present._replace(further={}) == state.present._replace(further={}),
    "TML-17 it shows in no other collection",
)
def collection_add(state: Timeline, name: str, value: Int32) -> Step[Timeline, bool]:
    """`add` to a further set."""
    further = state.present.further
    had = further.get(name, frozenset())
    return Step(state.showing(state.present._replace(further={**further, name: had | {value}})), value not in had)


@machine.question("collection.elements", "TML-17", "TML-18", "TML-4")
@is_held
def collection_elements(state: Timeline, name: str, epoch: Epoch = LATEST_EPOCH) -> list[int] | Refused:
    """What an iteration of a further set gives at an epoch, sorted."""
    return read(state, epoch, lambda view: sorted(view.further.get(name, ())))


def without(view: View, name: str) -> View:
    return view._replace(further={n: elements for n, elements in view.further.items() if n != name})


OF_THE_LANGUAGE = "whether an object is alive is the language's matter, not a protocol's"


@machine.operation("collection.drop")
@states(without={"model": OF_THE_LANGUAGE, "proof": OF_THE_LANGUAGE})
@is_held
@ensure(
    lambda state, result: all(
        now._replace(further={}) == before._replace(further={})
        for now, before in zip(
            (result.present, *result.past.values()), (state.present, *state.past.values()), strict=True
        )
    ),
    "TML-19 the others notice nothing",
)
def collection_drop(state: Timeline, name: str) -> Timeline:
    """Nobody holds the set any more, and so nobody can read it.

    TML-19: A registry keeps no collection alive: one that nobody holds, and that no snapshot holds changes of, is no
    longer registered, and the others notice nothing. [Kafka Internals, ch. 11 (WeakReference);
    SnapshotRegistry.register and scrub, Kafka 4.3.0]
    """
    past = {epoch: without(view, name) for epoch, view in state.past.items()}
    return state._replace(present=without(state.present, name), past=past, held=state.held - {name})


REGISTERED_ALWAYS = 5
"""The map, the set, the long, the integer and the object."""


@machine.question("registry.registered", "TML-19")
@require(lambda state: not state.past, "TML-19 counted when there is no snapshot that may hold a dropped collection")
def registry_registered(state: Timeline) -> int:
    """How many collections the registry knows that are alive."""
    return REGISTERED_ALWAYS + len(state.held)


# ---- the hash table's size -------------------------------------------------------------------------------------------
MIN_CAPACITY = 2
MAX_CAPACITY = 1 << 30


@machine.question("capacity")
@states(without=ONE_CALL)
@require(lambda expected_size: 0 <= expected_size < 2**31, "TML-22 an expected size is a non-negative int")
@ensure(
    lambda expected_size, result: (
        result == MAX_CAPACITY or (result * 3 >= expected_size * 4 and (result == 2 or result * 3 < expected_size * 8))
    ),
    "TML-22 enough slots, and half of them would not be",
)
@ensure(lambda result: result.bit_count() == 1, "TML-22 a power of two")
def capacity(expected_size: Count) -> int:
    """How many slots a table has that is made for `expected_size` elements.

    TML-22: A hash table made for an expected size has the smallest power of two slots that is at least the size divided
    by 0.75, but at least 2 and at most 2^30. [BaseHashTable.expectedSizeToCapacity, Kafka 4.3.0; f6884cc6ddb]
    """
    needed = -(-4 * expected_size // 3)
    return min(MAX_CAPACITY, max(MIN_CAPACITY, 1 << (needed - 1).bit_length() if needed else 0))
