"""Timeline collections: a map, a set, numbers and an object whose past can be read, and to which they can be put back.

The controller applies records to its memory before they are committed. It must be able to read the committed state
meanwhile, and to throw away what was not committed. One registry of snapshots serves all of its collections. Here a
snapshot is what it means: a full copy of everything, kept under its epoch. How Kafka avoids the copying is
`impl/controller/timeline.py`. Source: Kafka Internals, ch. 11, "Timeline data structures".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, Literal, NamedTuple, TypedDict, TypeVar, cast

from icontract import ensure, require

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Fields, Json, Machine, Refused, Step
from kafkaspec.errors import UserError
from kafkaspec.spec.common.kafka import NULL_POINTER

PREFIX = "TML"
TITLE = "Timeline collections"

T = TypeVar("T")
U = TypeVar("U")

Epoch = int
LATEST_EPOCH: Final = 2**63 - 1
"""The epoch that stands for the present."""
NO_EPOCH: Final = -(2**63)
"""What a registry without snapshots answers when it is asked for its latest epoch."""

RUNTIME_EXCEPTION = "java.lang.RuntimeException"

TML_1 = clause(
    "TML-1",
    """Snapshots are taken at rising epochs: taking one at an epoch below that of the latest snapshot is refused,
    and changes nothing.""",
    source="Kafka Internals, ch. 11, SnapshotRegistry and snapshots; SnapshotRegistry.getOrCreateSnapshot, Kafka 4.3.0",
)
TML_2 = clause(
    "TML-2",
    """The caller's duty: the epoch of a new snapshot lies above every epoch used since the last reset, or since the
    revert that lowered it, even if the snapshots of those epochs are gone; and it is neither of the two extreme
    longs.""",
    source="Kafka Internals, ch. 11 (an epoch is a metadata offset); SnapshottableHashTable, Kafka 4.3.0",
)
TML_3 = clause(
    "TML-3",
    """Taking a snapshot at the epoch of the latest snapshot again gives that snapshot, and changes nothing,
    whatever was written since.""",
    source="SnapshotRegistry.getOrCreateSnapshot and idempotentCreateSnapshot, Kafka 4.3.0",
)
TML_4 = clause(
    "TML-4",
    """The past does not change: what a collection shows at the epoch of a snapshot equals, as a whole, the copy
    taken then, whatever is done to the present.""",
    source="Kafka Internals, ch. 11, How a snapshotted hash table works; SnapshottableHashTable, Kafka 4.3.0",
)
TML_5 = clause(
    "TML-5",
    "A read at the latest epoch (the greatest long) shows the present, whether or not there are snapshots.",
    source="SnapshotRegistry.LATEST_EPOCH, Kafka 4.3.0",
)
TML_6 = clause(
    "TML-6",
    "A read of any collection at an epoch that has no snapshot is an error: no answer is made up.",
    source="SnapshotRegistry.getSnapshot, Kafka 4.3.0",
)
TML_7 = clause(
    "TML-7",
    """Reverting to a snapshot makes every registered collection what it was then; all later snapshots are gone,
    that one and the earlier ones stay. Without a snapshot at that epoch it is refused.""",
    source="Kafka Internals, ch. 11, SnapshotRegistry and snapshots; SnapshotRegistry.revertToSnapshot, Kafka 4.3.0",
)
TML_8 = clause(
    "TML-8",
    """Deleting a snapshot, in the middle too, takes away that epoch alone: the present, and what is read at every
    remaining epoch, stay as they are. Without a snapshot at that epoch it is refused.""",
    source="SnapshotRegistry.deleteSnapshot, Kafka 4.3.0; KAFKA-14035, KAFKA-14946",
)
TML_9 = clause(
    "TML-9",
    """Deleting up to an epoch takes away the snapshots below it, not one at it; the present, and what is read at
    every remaining epoch, stay as they are. There need be no snapshot at it.""",
    source="Kafka Internals, ch. 11, SnapshotRegistry and snapshots; SnapshotRegistry.deleteSnapshotsUpTo, Kafka 4.3.0",
)
TML_10 = clause(
    "TML-10",
    "A reset takes away all snapshots and makes every registered collection what it was when it was made.",
    source="Kafka Internals, ch. 11, SnapshotRegistry and snapshots; SnapshotRegistry.reset, Kafka 4.3.0",
)
TML_11 = clause(
    "TML-11",
    """An iteration at the epoch of a snapshot gives each element of that epoch exactly once, however the present
    changes while the iterator is open, as long as the snapshot is there.""",
    source="SnapshottableHashTable.HistoricalIterator, Kafka 4.3.0",
)
TML_12 = clause(
    "TML-12",
    "The past is read-only: a change through a view of an epoch is refused, and changes nothing.",
    source="TimelineHashMap.keySet, Kafka 4.3.0",
)
TML_13 = clause(
    "TML-13",
    """The present of a timeline map is a map: put and remove answer the value before, what is put is found, a key
    or value null is refused; its key set, values and equality are those of any map.""",
    source="TimelineHashMap (a java.util.Map), Kafka 4.3.0",
)
TML_14 = clause(
    "TML-14",
    "The present of a timeline set is a set: add and remove tell whether they changed it; null is refused.",
    source="TimelineHashSet (a java.util.Set), Kafka 4.3.0",
)
TML_15 = clause(
    "TML-15",
    """A timeline long, integer and object hold one value, read at an epoch like any collection; the long and the
    integer begin at 0 and wrap as 64 and 32 bits do, an object begins at the value it was made with and is never
    null.""",
    source="TimelineLong, TimelineInteger, TimelineObject, Kafka 4.3.0; KAFKA-12792",
)
TML_16 = clause(
    "TML-16",
    "The size of a collection at an epoch is the number of its elements then.",
    source="SnapshottableHashTable.snapshottableSize, Kafka 4.3.0",
)
TML_17 = clause(
    "TML-17",
    """One registry serves many collections: a snapshot, a revert, a deletion or a reset means all of them at once,
    and a change of one shows in no other.""",
    source="Kafka Internals, ch. 11, SnapshotRegistry and snapshots; KAFKA-12792",
)
TML_18 = clause(
    "TML-18",
    """A collection made after a snapshot was taken is, at that epoch and after a revert to it, what it was when it
    was made.""",
    source="SnapshottableHashTable, TimelineLong, TimelineObject, Kafka 4.3.0",
    without={"proof": "to the models a collection that was not made yet is one in its first state: TML-7 is the proof"},
)
TML_19 = clause(
    "TML-19",
    """A registry keeps no collection alive: one that nobody holds, and that no snapshot holds changes of, is no
    longer registered, and the others notice nothing.""",
    source="Kafka Internals, ch. 11 (WeakReference); SnapshotRegistry.register and scrub, Kafka 4.3.0",
    without={
        "model": "whether an object is alive is the language's matter, not a protocol's",
        "proof": "whether an object is alive is the language's matter, not a protocol's",
    },
)
TML_20 = clause(
    "TML-20",
    """Read through the tiers, every epoch shows its copy: an entry of the present counts if it was written at or
    before the epoch; otherwise the first delta from that snapshot on that holds the key decides, and an entry in it
    that was written later means that there was none.""",
    source="Kafka Internals, ch. 11, How a snapshotted hash table works; SnapshottableHashTable.snapshottableGet",
    without={"spec": "the spec keeps the copies, and knows no tiers"},
)
TML_21 = clause(
    "TML-21",
    """An entry carries the epoch after the latest snapshot at which it was written, its start epoch; what replaces
    or removes it moves it to the latest snapshot's delta if that snapshot saw it. No entry is in two places.""",
    source="SnapshottableHashTable.snapshottableAddOrReplace and updateTierData, Kafka 4.3.0",
    without={"spec": "the spec keeps the copies, and knows no start epochs"},
)
TML_22 = clause(
    "TML-22",
    """A hash table made for an expected size has the smallest power of two slots that is at least the size divided
    by 0.75, but at least 2 and at most 2^30.""",
    source="BaseHashTable.expectedSizeToCapacity, Kafka 4.3.0; f6884cc6ddb",
    without={
        "model": "a formula without a state",
        "proof": "a formula without a state; tested at every boundary",
    },
)
TML_23 = clause(
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


class View(NamedTuple):
    """What all collections show at one moment. Nothing in it is ever changed in place."""

    entries: Mapping[int, int]
    """the map"""
    elements: frozenset[int]
    """the set"""
    long: int
    integer: int
    object: str
    further: Mapping[str, frozenset[int]] = {}
    """sets that were registered later and that somebody holds, by name, as far as they are not empty"""

    def __hash__(self) -> int:
        further = frozenset(self.further.items())
        return hash((frozenset(self.entries.items()), self.elements, self.long, self.integer, self.object, further))


class Iterating(NamedTuple):
    """An open iterator at the epoch of a snapshot."""

    collection: str
    epoch: Epoch
    given: int
    """how many elements it has given"""


class Timeline(NamedTuple):
    """A registry and its collections."""

    present: View
    past: dict[Epoch, View]
    """the copies, by rising epoch"""
    highest: Epoch
    """the highest epoch used since the last reset, or since the revert that lowered it; NO_EPOCH if none was"""
    first: View
    """what the collections were when they were made"""
    map_expected_size: int
    set_expected_size: int
    iterator: Iterating | None = None
    held: frozenset[str] = frozenset()
    """the further sets that somebody holds"""
    made: frozenset[str] = frozenset()
    """the names given to further sets since the last reset, or held since before it"""

    @property
    def latest_epoch(self) -> Epoch:
        """The epoch of the latest snapshot; NO_EPOCH if there is none."""
        return next(reversed(self.past), NO_EPOCH)

    def __hash__(self) -> int:
        return hash((self.present, tuple(self.past.items()), self.highest, self.iterator, self.held, self.made))


def initial(
    map_expected_size: int = 4,
    set_expected_size: int = 4,
    long: int = 0,
    int_: int = 0,
    object_: str = "init",
) -> Timeline:
    """No snapshot; empty collections. UserError unless the numbers begin at 0: real ones begin nowhere else."""
    if long != 0 or int_ != 0:
        raise UserError("a timeline long and a timeline integer begin at 0")
    first = View({}, frozenset(), 0, 0, object_)
    return Timeline(first, {}, NO_EPOCH, first, map_expected_size, set_expected_size)


class ShownView(TypedDict, total=False):
    """All collections at one epoch."""

    map: dict[str, int]
    """keys in decimal"""
    mapSize: int
    set: list[int]
    setSize: int
    long: int
    int: int
    object: str


class _Written(Generic[T, U]):
    """Each thing written out once, and kept for the next time that the same object is asked for."""

    def __init__(self, write: Callable[[T], U]) -> None:
        self.write = write
        self.kept: dict[int, tuple[T, U]] = {}

    def __call__(self, thing: T) -> U:
        known = self.kept.get(id(thing))
        if known is not None and known[0] is thing:
            return known[1]
        if len(self.kept) > 1000:
            self.kept.clear()
        text = self.write(thing)
        self.kept[id(thing)] = thing, text
        return text


@_Written
def shown(view: View) -> ShownView:
    """A view as recordings show it; a release without one of the collections leaves it out."""
    return cast(
        ShownView,
        Fields(
            {
                "map": {str(k): v for k, v in sorted(view.entries.items())},
                "mapSize": len(view.entries),
                "set": sorted(view.elements),
                "setSize": len(view.elements),
                "long": view.long,
                "int": view.integer,
                "object": view.object,
            }
        ),
    )


@_Written
def _shown_past(past: dict[Epoch, View]) -> dict[str, Json]:
    return {
        "epochs": list(past),
        "latestEpoch": next(reversed(past), NO_EPOCH),
        "at": {str(epoch): shown(view) for epoch, view in past.items()},
    }


class Observation(TypedDict):
    """All collections at every epoch."""

    epochs: list[int]
    """of the snapshots, rising"""
    latestEpoch: int
    """-2^63 without a snapshot"""
    latest: ShownView
    """the present"""
    at: dict[str, ShownView]
    """by epoch"""


def observe(state: Timeline) -> Observation:
    """All collections at every epoch."""
    past = _shown_past(state.past)
    return {
        "epochs": past["epochs"],
        "latestEpoch": past["latestEpoch"],
        "latest": shown(state.present),
        "at": past["at"],
    }


machine = Machine("timeline", initial, observe)


def _epochs(state: Timeline) -> str:
    return ", ".join(map(str, state.past))


@states("TML-6")
def _missing(state: Timeline, epoch: Epoch) -> Refused:
    message = f"No in-memory snapshot for epoch {epoch}. Snapshot epochs are: {_epochs(state)}"
    return Refused("TML-6", RUNTIME_EXCEPTION, message)


@states("TML-5")
def _at(state: Timeline, epoch: Epoch) -> View | None:
    """What there is to read at an epoch; None if there is no snapshot."""
    return state.present if epoch == LATEST_EPOCH else state.past.get(epoch)


def _changed(state: Timeline, present: View) -> Timeline:
    return Timeline(present, *state[1:])


@states("TML-15")
def _wrapped(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _unchanged_past(state: Timeline, result: Step[Timeline]) -> bool:
    return result.state.past == state.past


def _nothing_changed(state: Timeline, result: Step[Timeline]) -> bool:
    return result.state == state


def _refused(result: Step[Timeline]) -> bool:
    return isinstance(result.result, Refused)


# the map


@machine.operation("map.put", "TML-13")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
@ensure(
    lambda state, key, value, result: _refused(result) == (key is None or value is None),
    "TML-13 a key or value null is refused, nothing else",
)
@ensure(
    lambda state, key, value, result: (
        _refused(result)
        or (result.state.present.entries[key] == value and result.result == state.present.entries.get(key))
    ),
    "TML-13 what is put is found, and the answer is the value before",
)
def map_put(state: Timeline, key: int | None, value: int | None) -> Step[Timeline, int | None]:
    """`put`: the value before, or null."""
    if key is None or value is None:
        return Step(state, Refused("TML-13", NULL_POINTER))
    entries, elements, long, integer, object, further = state.present
    present = View({**entries, key: value}, elements, long, integer, object, further)
    return Step(_changed(state, present), entries.get(key))


@machine.operation("map.remove", "TML-13")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
@ensure(
    lambda state, key, result: (
        key not in result.state.present.entries and result.result == state.present.entries.get(key)
    ),
    "TML-13 what is removed is gone, and the answer is the value before",
)
def map_remove(state: Timeline, key: int) -> Step[Timeline, int | None]:
    """`remove`: the value before, or null."""
    entries, elements, long, integer, object, further = state.present
    if key not in entries:
        return Step(state)
    rest = {k: v for k, v in entries.items() if k != key}
    return Step(_changed(state, View(rest, elements, long, integer, object, further)), entries[key])


@machine.operation("map.clear", "TML-13")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
@ensure(lambda result: not result.state.present.entries, "TML-13 nothing is left")
def map_clear(state: Timeline) -> Step[Timeline, None]:
    """`clear`."""
    return Step(_changed(state, state.present._replace(entries={})))


@machine.operation("map.get", "TML-4", "TML-5")
@ensure(_nothing_changed, "TML-4 a read changes nothing")
@ensure(
    lambda state, epoch, result: _refused(result) == (epoch != LATEST_EPOCH and epoch not in state.past),
    "TML-6 refused exactly where there is no snapshot",
)
def map_get(state: Timeline, key: int, epoch: Epoch = LATEST_EPOCH) -> Step[Timeline, int | None]:
    """`get` at an epoch: the value, or null."""
    view = _at(state, epoch)
    return Step(state, _missing(state, epoch) if view is None else view.entries.get(key))


@machine.operation("map.size", "TML-16")
@ensure(_nothing_changed, "TML-16 a read changes nothing")
def map_size(state: Timeline, epoch: Epoch = LATEST_EPOCH) -> Step[Timeline, int]:
    """`size` at an epoch."""
    view = _at(state, epoch)
    return Step(state, _missing(state, epoch) if view is None else len(view.entries))


@machine.operation("map.containsValue", "TML-13")
@ensure(_nothing_changed, "TML-13 a read changes nothing")
def map_contains_value(state: Timeline, value: int) -> Step[Timeline, bool]:
    """`containsValue`, of the present."""
    return Step(state, value in state.present.entries.values())


@machine.operation("map.values.contains", "TML-13", "TML-4")
@ensure(_nothing_changed, "TML-13 a read changes nothing")
def map_values_contains(state: Timeline, value: int, epoch: Epoch = LATEST_EPOCH) -> Step[Timeline, bool]:
    """`values(epoch).contains`."""
    view = _at(state, epoch)
    return Step(state, _missing(state, epoch) if view is None else value in view.entries.values())


@machine.operation("map.equals", "TML-13")
@ensure(_nothing_changed, "TML-13 a read changes nothing")
def map_equals(state: Timeline, other: Mapping[str, int]) -> Step[Timeline, bool]:
    """`equals` of the present with an ordinary map (keys in decimal, as JSON has them)."""
    return Step(state, {str(k): v for k, v in state.present.entries.items()} == other)


@machine.operation("map.keySet.iteratorRemove", "TML-13")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
@ensure(
    lambda state, key, result: (
        key not in result.state.present.entries and result.result == (key in state.present.entries)
    ),
    "TML-13 what is removed is gone, and the answer is whether it was there",
)
def map_key_set_iterator_remove(state: Timeline, key: int) -> Step[Timeline, bool]:
    """The key is looked for by the iterator of the key set and removed through it: whether it was found."""
    return Step(map_remove(state, key).state, key in state.present.entries)


@machine.operation("map.keySetAtRemove", "TML-12")
@ensure(_unchanged_past, "TML-12 the past is read-only")
@ensure(
    lambda state, epoch, result: epoch == LATEST_EPOCH or (_refused(result) and result.state == state),
    "TML-12 a change through a view of an epoch is refused, and changes nothing",
)
def map_key_set_at_remove(state: Timeline, key: int, epoch: Epoch) -> Step[Timeline, bool]:
    """`keySet(epoch).remove`; refused at every epoch but the latest, whether or not there is a snapshot."""
    if epoch != LATEST_EPOCH:
        return Step(state, Refused("TML-12", RUNTIME_EXCEPTION, "can't modify snapshot"))
    return Step(map_remove(state, key).state, key in state.present.entries)


# the set


@machine.operation("set.add", "TML-14")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
@ensure(
    lambda state, value, result: (
        result.state == state
        if _refused(result)
        else value in result.state.present.elements and result.result == (value not in state.present.elements)
    ),
    "TML-14 what is added is there, and the answer is whether it was not",
)
def set_add(state: Timeline, value: int | None) -> Step[Timeline, bool]:
    """`add`: whether it was not there."""
    if value is None:
        return Step(state, Refused("TML-14", NULL_POINTER))
    entries, elements, long, integer, object, further = state.present
    if value in elements:
        return Step(state, False)
    return Step(_changed(state, View(entries, elements | {value}, long, integer, object, further)), True)


@machine.operation("set.remove", "TML-14")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
@ensure(
    lambda state, value, result: (
        value not in result.state.present.elements and result.result == (value in state.present.elements)
    ),
    "TML-14 what is removed is gone, and the answer is whether it was there",
)
def set_remove(state: Timeline, value: int) -> Step[Timeline, bool]:
    """`remove`: whether it was there."""
    entries, elements, long, integer, object, further = state.present
    if value not in elements:
        return Step(state, False)
    return Step(_changed(state, View(entries, elements - {value}, long, integer, object, further)), True)


@machine.operation("set.addAll", "TML-14")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
@ensure(
    lambda state, values, result: result.state.present.elements == state.present.elements.union(values),
    "TML-14 what is added is there",
)
def set_add_all(state: Timeline, values: Sequence[int]) -> Step[Timeline, bool]:
    """`addAll`: whether one of them was not there."""
    elements = state.present.elements.union(values)
    after = _changed(state, state.present._replace(elements=elements))
    return Step(after, len(elements) > len(state.present.elements))


@machine.operation("set.removeAll", "TML-14")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
@ensure(
    lambda state, values, result: result.state.present.elements == state.present.elements.difference(values),
    "TML-14 what is removed is gone",
)
def set_remove_all(state: Timeline, values: Sequence[int]) -> Step[Timeline, bool]:
    """`removeAll`: whether one of them was there."""
    elements = state.present.elements.difference(values)
    after = _changed(state, state.present._replace(elements=elements))
    return Step(after, len(elements) < len(state.present.elements))


@machine.operation("set.clear", "TML-14")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
@ensure(lambda result: not result.state.present.elements, "TML-14 nothing is left")
def set_clear(state: Timeline) -> Step[Timeline, None]:
    """`clear`."""
    return Step(_changed(state, state.present._replace(elements=frozenset())))


@machine.operation("set.contains", "TML-4", "TML-5")
@ensure(_nothing_changed, "TML-4 a read changes nothing")
@ensure(
    lambda state, epoch, result: _refused(result) == (epoch != LATEST_EPOCH and epoch not in state.past),
    "TML-6 refused exactly where there is no snapshot",
)
def set_contains(state: Timeline, value: int, epoch: Epoch = LATEST_EPOCH) -> Step[Timeline, bool]:
    """`contains` at an epoch."""
    view = _at(state, epoch)
    return Step(state, _missing(state, epoch) if view is None else value in view.elements)


@machine.operation("set.size", "TML-16")
@ensure(_nothing_changed, "TML-16 a read changes nothing")
def set_size(state: Timeline, epoch: Epoch = LATEST_EPOCH) -> Step[Timeline, int]:
    """`size` at an epoch."""
    view = _at(state, epoch)
    return Step(state, _missing(state, epoch) if view is None else len(view.elements))


# numbers and the object


@machine.operation("long.set", "TML-15")
@require(lambda value: -(2**63) <= value < 2**63, "TML-15 a long has 64 bits")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
@ensure(lambda value, result: result.state.present.long == value, "TML-15 what is set is held")
def long_set(state: Timeline, value: int) -> Step[Timeline, None]:
    """`set` of the long."""
    return Step(_changed(state, state.present._replace(long=value)))


@machine.operation("long.get", "TML-15", "TML-4")
@ensure(_nothing_changed, "TML-15 a read changes nothing")
def long_get(state: Timeline, epoch: Epoch = LATEST_EPOCH) -> Step[Timeline, int]:
    """`get` of the long at an epoch."""
    view = _at(state, epoch)
    return Step(state, _missing(state, epoch) if view is None else view.long)


@machine.operation("int.increment", "TML-15")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
def int_increment(state: Timeline) -> Step[Timeline, None]:
    """`increment` of the integer."""
    return Step(_changed(state, state.present._replace(integer=_wrapped(state.present.integer + 1, 32))))


@machine.operation("int.decrement", "TML-15")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
def int_decrement(state: Timeline) -> Step[Timeline, None]:
    """`decrement` of the integer."""
    return Step(_changed(state, state.present._replace(integer=_wrapped(state.present.integer - 1, 32))))


@machine.operation("int.get", "TML-15", "TML-4")
@ensure(_nothing_changed, "TML-15 a read changes nothing")
def int_get(state: Timeline, epoch: Epoch = LATEST_EPOCH) -> Step[Timeline, int]:
    """`get` of the integer at an epoch."""
    view = _at(state, epoch)
    return Step(state, _missing(state, epoch) if view is None else view.integer)


@machine.operation("object.set", "TML-15")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
@ensure(
    lambda state, value, result: (
        (_refused(result) and result.state == state) if value is None else result.state.present.object == value
    ),
    "TML-15 what is set is held, and null is refused",
)
def object_set(state: Timeline, value: str | None) -> Step[Timeline, None]:
    """`set` of the object."""
    if value is None:
        return Step(state, Refused("TML-15", NULL_POINTER))
    return Step(_changed(state, state.present._replace(object=value)))


@machine.operation("object.get", "TML-15", "TML-4")
@ensure(_nothing_changed, "TML-15 a read changes nothing")
def object_get(state: Timeline, epoch: Epoch = LATEST_EPOCH) -> Step[Timeline, str]:
    """`get` of the object at an epoch."""
    view = _at(state, epoch)
    return Step(state, _missing(state, epoch) if view is None else view.object)


# snapshots


@states("TML-2")
def _may_be_used(state: Timeline, epoch: Epoch) -> bool:
    """Whether a snapshot may be taken there. An epoch at or below the latest snapshot's makes no new snapshot."""
    return NO_EPOCH < epoch < LATEST_EPOCH and (epoch > state.highest or epoch <= state.latest_epoch)


@states("TML-1", "TML-3")
def _created(state: Timeline, epoch: Epoch) -> Step[Timeline]:
    latest = state.latest_epoch
    if epoch == latest:
        return Step(state)
    if epoch < latest:
        message = (
            f"Can't create a new in-memory snapshot at epoch {epoch} because there is already a snapshot with epoch "
            f"{latest}. Snapshot epochs are {_epochs(state)}"
        )
        return Step(state, Refused("TML-1", RUNTIME_EXCEPTION, message))
    present = state.present
    return Step(Timeline(present, {**state.past, epoch: present}, epoch, *state[3:]))


def _kept(state: Timeline, result: Step[Timeline]) -> bool:
    """The present and all that was there before are as they were."""
    return result.state.present == state.present and all(result.state.past[e] == v for e, v in state.past.items())


def _refused_below_the_latest(state: Timeline, epoch: Epoch, result: Step[Timeline]) -> bool:
    return _refused(result) == (epoch < state.latest_epoch)


def _again_changes_nothing(state: Timeline, epoch: Epoch, result: Step[Timeline]) -> bool:
    return epoch != state.latest_epoch or result.state == state


def _a_copy_is_taken(state: Timeline, epoch: Epoch, result: Step[Timeline]) -> bool:
    return epoch <= state.latest_epoch or result.state.past[epoch] == state.present


a_new_epoch = require(
    _may_be_used, "TML-2 a new epoch is above every epoch used since the last reset, or the revert that lowered it"
)
refused_below_the_latest = ensure(_refused_below_the_latest, "TML-1 refused below the latest")
again_changes_nothing = ensure(_again_changes_nothing, "TML-3 again changes nothing")
a_copy_is_taken = ensure(_a_copy_is_taken, "TML-4 the snapshot is a copy of all collections")
nothing_else_changes = ensure(_kept, "TML-4 nothing else changes")


@machine.operation("getOrCreateSnapshot", "TML-1", "TML-3", "TML-4", "TML-17")
@a_new_epoch
@refused_below_the_latest
@again_changes_nothing
@a_copy_is_taken
@nothing_else_changes
def get_or_create_snapshot(state: Timeline, epoch: Epoch) -> Step[Timeline, int]:
    """`getOrCreateSnapshot`: the epoch of the snapshot."""
    after, answer = _created(state, epoch)
    return Step(after, epoch if answer is None else answer)


@machine.operation("idempotentCreateSnapshot", "TML-1", "TML-3", "TML-4", "TML-17")
@a_new_epoch
@refused_below_the_latest
@again_changes_nothing
@a_copy_is_taken
@nothing_else_changes
def idempotent_create_snapshot(state: Timeline, epoch: Epoch) -> Step[Timeline, None]:
    """The same, without an answer."""
    return _created(state, epoch)


def _with_past(state: Timeline, present: View, past: dict[Epoch, View], highest: Epoch) -> Timeline:
    """Some snapshots are gone; an iterator that read one of them cannot go on."""
    iterator = state.iterator if state.iterator is not None and state.iterator.epoch in past else None
    return Timeline(present, past, highest, *state[3:6], iterator, *state[7:])


@machine.operation("revertToSnapshot", "TML-7", "TML-17", "TML-18")
@ensure(lambda state, epoch, result: _refused(result) == (epoch not in state.past), "TML-7 refused without a snapshot")
@ensure(
    lambda state, epoch, result: _refused(result) or result.state.present == state.past[epoch],
    "TML-7 every registered collection is what it was then",
)
@ensure(
    lambda state, epoch, result: (
        _refused(result) or result.state.past == {e: v for e, v in state.past.items() if e <= epoch}
    ),
    "TML-7 later snapshots are gone, that one and the earlier ones stay",
)
def revert_to_snapshot(state: Timeline, epoch: Epoch) -> Step[Timeline, None]:
    """`revertToSnapshot`."""
    view = state.past.get(epoch)
    if view is None:
        return Step(state, _missing(state, epoch))
    return Step(_with_past(state, view, {e: v for e, v in state.past.items() if e <= epoch}, epoch))


@machine.operation("deleteSnapshot", "TML-8")
@ensure(lambda state, epoch, result: _refused(result) == (epoch not in state.past), "TML-8 refused without a snapshot")
@ensure(
    lambda state, epoch, result: result.state.past == {e: v for e, v in state.past.items() if e != epoch},
    "TML-8 that epoch alone is gone",
)
@ensure(lambda state, result: result.state.present == state.present, "TML-8 the present stays as it is")
def delete_snapshot(state: Timeline, epoch: Epoch) -> Step[Timeline, None]:
    """`deleteSnapshot`."""
    if epoch not in state.past:
        return Step(state, _missing(state, epoch))
    past = {e: v for e, v in state.past.items() if e != epoch}
    return Step(_with_past(state, state.present, past, state.highest))


@machine.operation("deleteSnapshotsUpTo", "TML-9")
@ensure(
    lambda state, epoch, result: result.state.past == {e: v for e, v in state.past.items() if e >= epoch},
    "TML-9 the epochs below are gone, the others stay as they are",
)
@ensure(lambda state, result: result.state.present == state.present, "TML-9 the present stays as it is")
def delete_snapshots_up_to(state: Timeline, epoch: Epoch) -> Step[Timeline, None]:
    """`deleteSnapshotsUpTo`."""
    past = {e: v for e, v in state.past.items() if e >= epoch}
    return Step(_with_past(state, state.present, past, state.highest))


@machine.operation("reset", "TML-10", "TML-17")
@ensure(lambda result: not result.state.past, "TML-10 no snapshot is left")
@ensure(
    lambda state, result: result.state.present == state.first,
    "TML-10 every registered collection is what it was when it was made",
)
def reset(state: Timeline) -> Step[Timeline, None]:
    """`reset`."""
    return Step(_with_past(state, state.first, {}, NO_EPOCH)._replace(made=state.held))


# an iterator at an epoch, while the present changes


def _can_go_on(state: Timeline) -> bool:
    return state.iterator is not None


_OF_A_SNAPSHOT = "TML-11 what an iterator of the present gives while it changes is not said"


@machine.operation("iterator.open", "TML-11")
@require(lambda epoch: epoch != LATEST_EPOCH, _OF_A_SNAPSHOT)
@ensure(_unchanged_past, "TML-4 a read changes nothing")
def iterator_open(state: Timeline, collection: Literal["map", "set"], epoch: Epoch) -> Step[Timeline, None]:
    """An iterator of the map's entries, or of the set, at an epoch; the one before is forgotten."""
    if epoch not in state.past:
        return Step(state, _missing(state, epoch))
    return Step(state._replace(iterator=Iterating(collection, epoch, 0)))


def _iterated(state: Timeline, iterator: Iterating) -> list[Any]:
    view = state.past[iterator.epoch]
    return sorted(map(list, view.entries.items())) if iterator.collection == "map" else sorted(view.elements)


@machine.operation("iterator.next", "TML-11")
@require(_can_go_on, "TML-11 an iterator is open, and its snapshot is there")
@ensure(_unchanged_past, "TML-4 a read changes nothing")
def iterator_next(state: Timeline, count: int) -> Step[Timeline, int]:
    """Up to `count` more elements, in any order: how many came."""
    iterator = state.iterator
    assert iterator is not None
    came = min(count, len(_iterated(state, iterator)) - iterator.given)
    return Step(state._replace(iterator=iterator._replace(given=iterator.given + came)), came)


@machine.operation("iterator.finish", "TML-11")
@require(_can_go_on, "TML-11 an iterator is open, and its snapshot is there")
@ensure(_unchanged_past, "TML-4 a read changes nothing")
def iterator_finish(state: Timeline) -> Step[Timeline, list[int]]:
    """All the rest: everything that came since the iterator was opened, sorted, as many times as it came."""
    iterator = state.iterator
    assert iterator is not None
    return Step(state._replace(iterator=None), _iterated(state, iterator))


@machine.operation("iterator.acrossChanges", "TML-11")
@require(lambda epoch: epoch != LATEST_EPOCH, _OF_A_SNAPSHOT)
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
def iterator_across_changes(state: Timeline, epoch: Epoch, values: Sequence[int]) -> Step[Timeline, list[int]]:
    """An iterator of the set at an epoch gives one element; then `values` are added to the set and all others removed;
    then it gives the rest. All that came, sorted, as many times as it came. Another open iterator is forgotten."""
    if epoch not in state.past:
        return Step(state, _missing(state, epoch))
    after = _changed(state, state.present._replace(elements=frozenset(values)))._replace(iterator=None)
    return Step(after, sorted(state.past[epoch].elements))


# further collections of the same registry


def _is_held(state: Timeline, name: str) -> bool:
    return name in state.held


@machine.operation("collection.create", "TML-18", "TML-17")
@require(lambda state, name: name not in state.made, "TML-18 the name is free")
@ensure(_unchanged_past, "TML-18 no snapshot knows it")
def collection_create(state: Timeline, name: str) -> Step[Timeline, None]:
    """A further timeline set of that name, registered and held."""
    return Step(state._replace(held=state.held | {name}, made=state.made | {name}))


@machine.operation("collection.add", "TML-17", "TML-14")
@require(_is_held, "TML-19 somebody holds the collection")
@ensure(_unchanged_past, "TML-4 a change of the present shows at no epoch")
@ensure(
    lambda state, result: result.state.present._replace(further={}) == state.present._replace(further={}),
    "TML-17 it shows in no other collection",
)
def collection_add(state: Timeline, name: str, value: int) -> Step[Timeline, bool]:
    """`add` to a further set."""
    further = state.present.further
    had = further.get(name, frozenset())
    return Step(_changed(state, state.present._replace(further={**further, name: had | {value}})), value not in had)


@machine.operation("collection.elements", "TML-17", "TML-18", "TML-4")
@require(_is_held, "TML-19 somebody holds the collection")
@ensure(_nothing_changed, "TML-4 a read changes nothing")
def collection_elements(state: Timeline, name: str, epoch: Epoch = LATEST_EPOCH) -> Step[Timeline, list[int]]:
    """What an iteration of a further set gives at an epoch, sorted."""
    view = _at(state, epoch)
    return Step(state, _missing(state, epoch) if view is None else sorted(view.further.get(name, ())))


@machine.operation("collection.drop", "TML-19")
@require(_is_held, "TML-19 somebody holds the collection")
@ensure(
    lambda state, result: all(
        now._replace(further={}) == before._replace(further={})
        for now, before in zip(
            (result.state.present, *result.state.past.values()), (state.present, *state.past.values()), strict=True
        )
    ),
    "TML-19 the others notice nothing",
)
def collection_drop(state: Timeline, name: str) -> Step[Timeline, None]:
    """Nobody holds the set any more, and so nobody can read it."""
    past = {epoch: _without(view, name) for epoch, view in state.past.items()}
    return Step(state._replace(present=_without(state.present, name), past=past, held=state.held - {name}))


def _without(view: View, name: str) -> View:
    return view._replace(further={n: elements for n, elements in view.further.items() if n != name})


REGISTERED_ALWAYS = 5
"""The map, the set, the long, the integer and the object."""


@machine.operation("registry.registered", "TML-19")
@require(lambda state: not state.past, "TML-19 counted when there is no snapshot that may hold a dropped collection")
@ensure(_nothing_changed, "TML-19 counting changes nothing")
def registry_registered(state: Timeline) -> Step[Timeline, int]:
    """How many collections the registry knows that are alive."""
    return Step(state, REGISTERED_ALWAYS + len(state.held))


# the hash table's size

MIN_CAPACITY = 2
MAX_CAPACITY = 1 << 30


@machine.operation("capacity", "TML-22")
@require(lambda expected_size: 0 <= expected_size < 2**31, "TML-22 an expected size is a non-negative int")
@ensure(
    lambda expected_size, result: (
        result.result == MAX_CAPACITY
        or (result.result * 3 >= expected_size * 4 and (result.result == 2 or result.result * 3 < expected_size * 8))
    ),
    "TML-22 enough slots, and half of them would not be",
)
@ensure(lambda result: result.result.bit_count() == 1, "TML-22 a power of two")
def capacity(state: Timeline, expected_size: int) -> Step[Timeline, int]:
    """How many slots a table has that is made for `expected_size` elements."""
    needed = -(-4 * expected_size // 3)
    return Step(state, min(MAX_CAPACITY, max(MIN_CAPACITY, 1 << (needed - 1).bit_length() if needed else 0)))


# what to try, boundaries first


# beside the model


# what was recorded, and what the released Kafka does otherwise
