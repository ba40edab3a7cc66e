"""Faults of the timeline collections: Kafka's own bugs, its known deviations, and slips that anyone may make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from struct import pack, unpack
from typing import Any

from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.impl.controller import timeline as impl
from kafkaspec.impl.controller import timeline_driver
from kafkaspec.language import LoadedModel, action, define, invariant, load, require
from kafkaspec.models.controller import timeline as model
from kafkaspec.models.controller.timeline import E, Epoch, Key, Value
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import Mutant, of_impl, with_fault
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH, NO_EPOCH, Timeline
from kafkaspec.spec.controller import timeline as spec

# faults of the spec


def _fault(operation: str, body: Callable[..., Any]) -> Callable[[], Machine[Timeline]]:
    return lambda: with_fault(spec.machine, operation, body)


def _accepts_lower_epochs(state: Timeline, epoch: int) -> Step[Timeline, int]:
    past = dict(sorted({**state.past, epoch: state.present}.items()))
    return Step(state._replace(past=past, highest=max(state.highest, epoch)), epoch)


def _judges_any_epoch() -> Machine[Timeline]:
    name = "getOrCreateSnapshot"
    op = replace(spec.machine.operations[name], preconditions=())
    return replace(spec.machine, operations={**spec.machine.operations, name: op})


def _body(operation: str) -> Callable[..., Any]:
    return spec.machine.operations[operation].body


def _takes_it_again(state: Timeline, epoch: int) -> Step[Timeline, int]:
    if epoch == state.latest_epoch:
        return Step(state._replace(past={**state.past, epoch: state.present}), epoch)
    step: Step[Timeline, int] = _body("getOrCreateSnapshot")(state, epoch)
    return step


def _needs_a_snapshot(state: Timeline, key: int, epoch: int = LATEST_EPOCH) -> int | Refused | None:
    if epoch == LATEST_EPOCH and not state.past:
        return Refused("TML-6", spec.RUNTIME_EXCEPTION)
    found: int | Refused | None = _body("map.get")(state, key, epoch)
    return found


def _reverts_the_map_alone(state: Timeline, epoch: int) -> Timeline | Refused:
    after: Timeline | Refused = _body("revertToSnapshot")(state, epoch)
    if isinstance(after, Refused):
        return after
    return after._replace(present=state.present._replace(entries=after.present.entries))


def _deletes_those_before(state: Timeline, epoch: int) -> Timeline | Refused:
    if epoch not in state.past:
        return spec.missing(state, epoch)
    return state._replace(past={e: v for e, v in state.past.items() if e > epoch}, iterator=None)


def _resets_nothing_but_snapshots(state: Timeline) -> Timeline:
    return state._replace(past={}, highest=NO_EPOCH, iterator=None, made=state.held)


def _answers_the_new_value(state: Timeline, key: int | None, value: int | None) -> Step[Timeline, int | None]:
    step: Step[Timeline, int | None] = _body("map.put")(state, key, value)
    return step if isinstance(step.result, Refused) else Step(step.state, value)


def _always_adds(state: Timeline, value: int | None) -> Step[Timeline, bool]:
    step: Step[Timeline, bool] = _body("set.add")(state, value)
    return step if isinstance(step.result, Refused) else Step(step.state, True)


# faults of the implementation


def _driver(**parts: Any) -> Callable[[], timeline_driver.Driver]:
    """The driver with some of its parts replaced."""

    def make() -> timeline_driver.Driver:
        driver: timeline_driver.Driver = type("Faulty", (timeline_driver.Driver,), parts)()
        return driver

    return make


def _tables(**methods: Any) -> Callable[[], timeline_driver.Driver]:
    """The driver with other methods in both kinds of hash tables."""
    return _driver(
        Map=type("Map", (impl.TimelineHashMap,), {"__slots__": (), **methods}),
        Set=type("Set", (impl.TimelineHashSet,), {"__slots__": (), **methods}),
    )


def _registry(**methods: Any) -> Callable[[], timeline_driver.Driver]:
    return _driver(Registry=type("Registry", (impl.SnapshotRegistry,), methods))


class _DereferencesNoSource(impl.TableDelta[Any, Any]):
    def merge_from(self, epoch: int, later: impl.TableDelta[Any, Any]) -> None:
        assert later.table is not None, "null"
        super().merge_from(epoch, later)


class _DereferencesNoDestination(impl.TableDelta[Any, Any]):
    def merge_from(self, epoch: int, later: impl.TableDelta[Any, Any]) -> None:
        self.added |= later.added
        for entry in later.table or ():
            if entry.start_epoch <= epoch:
                assert self.table is not None, "null"
                self.table.put(entry)


class _TakesOverEverything(impl.TableDelta[Any, Any]):
    def merge_from(self, epoch: int, later: impl.TableDelta[Any, Any]) -> None:
        self.added |= later.added
        for entry in later.table or ():
            self.take(entry)


class _PlainInteger(impl.TimelineInteger):
    def set(self, value: int) -> None:
        self._value = value


class _UnwrappedInteger(impl.TimelineInteger):
    bits = 31


class _KeepsEveryValue(impl.TimelineLong):
    def set(self, value: int) -> None:
        latest = self._registry.latest
        if latest is not None:
            latest.keep(self, impl.ValueDelta(self._value))
        self._value = value


def _exponent(expected_size: int) -> int:
    return max(2, (impl.capacity_for(expected_size) - 1).bit_length())


class _ExponentTable(impl.HashTable[Any, Any]):
    def __init__(self, expected_size: int) -> None:
        super().__init__(expected_size)
        self.slots = [()] * _exponent(expected_size)


def _capacity(driver: timeline_driver.Driver, expected_size: int) -> int:
    return _exponent(expected_size)


class _KeepsItsDeltas(impl.Snapshot):
    __slots__ = ()

    def revert(self) -> None:
        for owner, delta in self._kept().values():
            owner.execute_revert(self.epoch, delta)


def _keeps_later_snapshots(registry: impl.SnapshotRegistry, epoch: int) -> None:
    registry.snapshot(epoch).revert()
    registry.highest_epoch = max(registry.latest_epoch, epoch)


def _drops_the_delta(registry: impl.SnapshotRegistry, snapshot: impl.Snapshot) -> None:
    del registry._snapshots[snapshot.epoch]
    snapshot.erase()


def _deletes_one_too_many(registry: impl.SnapshotRegistry, epoch: int) -> None:
    for snapshot in registry.since(registry._head.next):
        if snapshot.epoch > epoch:
            return
        registry._delete(snapshot)


def _written_too_early(table: Any, key: Any, value: Any) -> Any:
    size = table._table.size
    before = table._table.put(impl.Entry(key, value, table._registry.latest_epoch))
    table._note(key, before, size)
    return before


def _present_size(table: Any, epoch: int = LATEST_EPOCH) -> int:
    if epoch != LATEST_EPOCH:
        table._registry.snapshot(epoch)
    return int(table._table.size)


def _size_at_every_change(table: Any, key: Any, before: Any, size: int) -> None:
    impl.SnapshottableHashTable._note(table, key, before, size)
    latest = table._registry.latest
    if latest is not None and latest.delta(table) is not None:
        latest.delta(table).size = size


def _iterates_the_present(table: Any, snapshot: impl.Snapshot, parts: int) -> Iterator[Any]:
    yield from list(table._table)


def _iterates_what_is_too_new(table: Any, snapshot: impl.Snapshot, parts: int) -> Iterator[Any]:
    for part in range(parts):
        ready = [entry for entry in table._table.share(part, parts) if entry.start_epoch <= snapshot.epoch]
        for later in table._registry.since(snapshot):
            delta = later.delta(table)
            if delta is not None and delta.table is not None:
                ready += delta.table.share(part, parts)
        yield from ready


def _iterates_the_old_slots(table: Any, snapshot: impl.Snapshot, parts: int) -> Iterator[Any]:
    slots = table._table.slots

    def iterate() -> Iterator[Any]:
        for part in range(parts):
            ready = list(slots[part])
            for later in table._registry.since(snapshot):
                delta = later.delta(table)
                if delta is not None and delta.table is not None:
                    ready += delta.table.share(part, parts)
            yield from [entry for entry in ready if entry.start_epoch <= snapshot.epoch]

    return iterate()


def _looks_at_the_present_first(table: Any, key: Any, epoch: int) -> Any:
    entry = table._table.get(key)
    if entry is not None and entry.start_epoch <= epoch:
        return entry
    return impl.SnapshottableHashTable._find(table, key, epoch)


def _changes_the_past(table: Any, key: Any, epoch: int) -> bool:
    return table._erase(key) is not None


def _holds_collections(registry: impl.SnapshotRegistry, collection: impl.Revertable) -> None:
    impl.SnapshotRegistry.register(registry, collection)
    registry.__dict__.setdefault("strong", []).append(collection)


def _forgets_young_collections(table: Any, key: Any, before: Any, size: int) -> None:
    latest = table._registry.latest
    if size or before is not None or latest is None or latest.delta(table) is not None:
        impl.SnapshottableHashTable._note(table, key, before, size)


# faults of the models


def _starts_too_early() -> LoadedModel:
    class Tiers(model.Tiers):
        @action("TML-21", "TML-20", "TML-13", who="caller")
        def put(s, k: Key, v: Value, latest: Epoch) -> None:
            require(s.is_latest(latest))
            s.next.now[k] = v
            s.note(k, latest)
            s.next.held[k] = v
            s.next.start[k] = latest if latest > 0 else 1

    return load(Tiers)


def _leaves_the_delta() -> LoadedModel:
    class Tiers(model.Tiers):
        @action("TML-7", "TML-20", "TML-21", who="caller")
        def restore(s, e: Epoch) -> None:
            require(s.taken[e], s.is_latest(e))
            s.next.highest = e
            s.next.now = s.copy[e]
            s.next.held = {
                k: s.kept[e][k] if s.kept[e][k] is not None else (s.held[k] if s.start[k] <= e else None) for k in Key
            }
            s.next.start = {
                k: s.kept_start[e][k] if s.kept[e][k] is not None else (s.start[k] if s.start[k] <= e else 1)
                for k in Key
            }

    return load(Tiers)


def _iterates_leftovers() -> LoadedModel:
    class Iteration(model.Iteration):
        @define
        def drop(s, e: Epoch) -> None:
            s.next.changed[e] = s.changed[e] and s.taken[e] and s.none_above(e)

        @invariant("TML-11")
        def never_in_two_places(s) -> bool:
            """Not looked at, so that the iterator is what notices."""
            return True

    return load(Iteration)


def _drops_instead_of_merging() -> LoadedModel:
    class Tiers(model.Tiers):
        @action("TML-8", "TML-9", "TML-20", "TML-21", who="caller")
        def delete(s, e: Epoch, before: Epoch) -> None:
            require(s.taken[e], s.is_before(before, e))
            s.next.taken[e] = False
            s.next.copy[e] = {k: None for k in Key}
            s.drop(e)

    return load(Tiers)


def _any_epoch() -> LoadedModel:
    class Tiers(model.Tiers):
        @action("TML-1", "TML-2", "TML-4", who="caller")
        def take_snapshot(s, e: Epoch) -> None:
            require(e > 0, all(not s.taken[f] for f in range(E + 1) if f >= e))
            s.next.taken[e] = True
            s.next.highest = max(e, s.highest)
            s.next.copy[e] = s.now

    return load(Tiers)


def _size_at_every_change_model() -> LoadedModel:
    class Tiers(model.Tiers):
        @define
        def note(s, k: Key, latest: Epoch) -> None:
            if latest > 0 and (s.held[k] is None or s.start[k] <= latest):
                s.next.changed[latest] = True
                s.next.sized[latest] = {x for x in Key if s.held[x] is not None}
                if s.held[k] is not None:
                    s.next.kept[latest][k] = s.held[k]
                    s.next.kept_start[latest][k] = s.start[k]

    return load(Tiers)


def _keeps_every_value() -> LoadedModel:
    class Scalar(model.Scalar):
        @action("TML-15", who="caller")
        def set_value(s, v: Value, latest: Epoch) -> None:
            require(latest == 0 or s.taken[latest], s.none_above(latest))
            s.next.now = v
            s.next.value = v
            if latest > 0:
                s.next.kept[latest] = s.value

    return load(Scalar)


def _looks_at_the_table_alone() -> LoadedModel:
    class Iteration(model.Iteration):
        @action("TML-11", who="iterator")
        def look(s, k: Key) -> None:
            require(s.reading > 0, k not in s.looked)
            s.next.looked = s.looked | {k}
            if s.in_table(s.reading, k):
                s.next.given = s.given | {k}

    return load(Iteration)


def _plain_index() -> LoadedModel:
    class Copies(model.Copies):
        @action("TML-7", "TML-17", "TML-18", who="caller")
        def revert(s, e: Epoch) -> None:
            require(s.taken[e])
            s.next.entries = s.copied_entries[e]
            s.next.highest = e
            s.forget(e + 1, E)

    return load(Copies)


_MERGES = {"Delta": _DereferencesNoSource}, {"Delta": _DereferencesNoDestination}, {"Delta": _TakesOverEverything}

MUTANTS = [
    # Kafka's bugs
    Mutant(
        "merge without a source",
        ("TML-8",),
        "folding in the delta of a deleted snapshot fails if that holds only additions",
        "impl",
        _tables(**_MERGES[0]),
        bug="KAFKA-14035",
    ),
    Mutant(
        "merge without a destination",
        ("TML-7", "TML-8"),
        "folding in a delta fails if the snapshot before holds only additions",
        "impl",
        _tables(**_MERGES[1]),
        bug="KAFKA-14946",
    ),
    Mutant(
        "plain counter",
        ("TML-15", "TML-17", "TML-7"),
        "the integer is an ordinary number: a revert leaves it as it is",
        "impl",
        _driver(Integer=_PlainInteger),
        bug="KAFKA-12792",
    ),
    Mutant(
        "plain index",
        ("TML-17", "TML-7"),
        "the set of the map's keys is not put back by a revert",
        "model",
        _plain_index,
        bug="KAFKA-12792",
    ),
    Mutant(
        "exponent as capacity",
        ("TML-22",),
        "a table has as many slots as the exponent of the power of two that it needs",
        "impl",
        _driver(
            Map=type("Map", (impl.TimelineHashMap,), {"__slots__": (), "Table": _ExponentTable}), capacity=_capacity
        ),
        bug="f6884cc6ddb",
    ),
    Mutant(
        "iterator gives what is too new",
        ("TML-11",),
        "an iterator at an epoch gives what later deltas hold, whenever it was written",
        "impl",
        _tables(_iterate_at=_iterates_what_is_too_new),
        bug="KAFKA-15271",
    ),
    # what the released Kafka does
    Mutant(
        "revert leaves its deltas",
        ("TML-11", "TML-21"),
        "a revert puts entries back, and leaves them in the delta too (TML-D1)",
        "impl",
        _driver(Registry=type("Registry", (impl.SnapshotRegistry,), {"New": _KeepsItsDeltas})),
    ),
    Mutant(
        "answers from the present",
        ("TML-6",),
        "a lookup at an epoch without a snapshot is answered from the present (TML-D2)",
        "impl",
        _tables(_find=_looks_at_the_present_first),
    ),
    Mutant(
        "iterator keeps the old slots",
        ("TML-11",),
        "an iterator at an epoch goes on in the slots that the table had before it grew (TML-D4)",
        "impl",
        _tables(_iterate_at=_iterates_the_old_slots),
    ),
    # slips
    Mutant(
        "revert keeps later snapshots",
        ("TML-7",),
        "a revert puts the collections back, and deletes nothing",
        "impl",
        _registry(revert_to_snapshot=_keeps_later_snapshots),
    ),
    Mutant(
        "delete drops the delta",
        ("TML-8", "TML-4", "TML-20"),
        "deleting a snapshot loses what earlier ones need of its delta",
        "impl",
        _registry(_delete=_drops_the_delta),
    ),
    Mutant(
        "delete up to and including",
        ("TML-9",),
        "deleting up to an epoch deletes the snapshot at it",
        "impl",
        _registry(delete_snapshots_up_to=_deletes_one_too_many),
    ),
    Mutant(
        "merge takes everything",
        ("TML-8", "TML-7"),
        "an earlier snapshot takes over entries that it never saw",
        "impl",
        _tables(**_MERGES[2]),
    ),
    Mutant(
        "start epoch one too low",
        ("TML-21", "TML-4"),
        "an entry carries the latest snapshot's epoch, not the one after",
        "impl",
        _tables(_write=_written_too_early),
    ),
    Mutant(
        "size is not versioned",
        ("TML-16",),
        "the size at an epoch is the present size",
        "impl",
        _tables(size=_present_size),
    ),
    Mutant(
        "size at every change",
        ("TML-16",),
        "a delta's size is that before the last change, not before the first",
        "impl",
        _tables(_note=_size_at_every_change),
    ),
    Mutant(
        "iterator of the present",
        ("TML-11", "TML-4"),
        "an iterator at an epoch gives the present",
        "impl",
        _tables(_iterate_at=_iterates_the_present),
    ),
    Mutant(
        "the past can be changed",
        ("TML-12",),
        "removing through a view of an epoch removes from the present",
        "impl",
        _driver(Map=type("Map", (impl.TimelineHashMap,), {"__slots__": (), "remove_at": _changes_the_past})),
    ),
    Mutant(
        "scalar keeps every value",
        ("TML-15", "TML-4"),
        "a snapshot keeps the value before the last change, not before the first",
        "impl",
        _driver(Long=_KeepsEveryValue),
    ),
    Mutant(
        "the registry holds on",
        ("TML-19",),
        "a registry keeps its collections alive",
        "impl",
        _registry(register=_holds_collections),
    ),
    Mutant(
        "young collections keep nothing",
        ("TML-4", "TML-18"),
        "the first addition to an empty collection leaves no delta: the past shows it, and a revert does not undo it",
        "impl",
        _tables(_note=_forgets_young_collections),
    ),
    Mutant(
        "lower epochs are taken",
        ("TML-1",),
        "a snapshot can be taken below the latest",
        "spec",
        _fault("getOrCreateSnapshot", _accepts_lower_epochs),
    ),
    Mutant(
        "no duty of the caller",
        ("TML-2",),
        "snapshots are judged at epochs that were used before",
        "spec",
        _judges_any_epoch,
    ),
    Mutant(
        "taken again",
        ("TML-3",),
        "taking the latest snapshot again replaces it",
        "spec",
        _fault("getOrCreateSnapshot", _takes_it_again),
    ),
    Mutant(
        "the present needs a snapshot",
        ("TML-5",),
        "a read at the latest epoch is refused while there is no snapshot",
        "spec",
        _fault("map.get", _needs_a_snapshot),
    ),
    Mutant(
        "revert of the map alone",
        ("TML-7", "TML-17"),
        "a revert puts the map back, and nothing else",
        "spec",
        _fault("revertToSnapshot", _reverts_the_map_alone),
    ),
    Mutant(
        "delete of all before",
        ("TML-8",),
        "deleting a snapshot deletes the earlier ones too",
        "spec",
        _fault("deleteSnapshot", _deletes_those_before),
    ),
    Mutant(
        "reset of snapshots alone",
        ("TML-10",),
        "a reset leaves the collections as they are",
        "spec",
        _fault("reset", _resets_nothing_but_snapshots),
    ),
    Mutant(
        "put answers the new value",
        ("TML-13",),
        "put answers the value that it was given",
        "spec",
        _fault("map.put", _answers_the_new_value),
    ),
    Mutant(
        "add always changes",
        ("TML-14",),
        "add says that it changed the set, whether or not it did",
        "spec",
        _fault("set.add", _always_adds),
    ),
    Mutant(
        "start epoch one too low (model)",
        ("TML-21", "TML-20"),
        "an entry carries the latest snapshot's epoch, not the one after",
        "model",
        _starts_too_early,
    ),
    Mutant(
        "revert leaves its delta (model)",
        ("TML-11", "TML-21"),
        "a revert puts entries back, and leaves them in the delta too (TML-D1)",
        "model",
        _leaves_the_delta,
    ),
    Mutant(
        "delete drops the delta (model)",
        ("TML-8", "TML-20"),
        "deleting a snapshot loses what earlier ones need of its delta",
        "model",
        _drops_instead_of_merging,
    ),
    Mutant(
        "any epoch above the latest (model)",
        ("TML-2",),
        "a new epoch need only be above the snapshots that there are",
        "model",
        _any_epoch,
    ),
    Mutant(
        "size at every change (model)",
        ("TML-16",),
        "a delta's size is that before the last change, not before the first",
        "model",
        _size_at_every_change_model,
    ),
    Mutant(
        "scalar keeps every value (model)",
        ("TML-15",),
        "a snapshot keeps the value before the last change, not before the first",
        "model",
        _keeps_every_value,
    ),
    Mutant(
        "iterator looks at the table alone (model)",
        ("TML-11",),
        "an iterator at an epoch forgets the deltas",
        "model",
        _looks_at_the_table_alone,
    ),
    Mutant(
        "iterator counts twice (model)",
        ("TML-11",),
        "a revert leaves its delta, so that an iterator gives what it put back twice",
        "model",
        _iterates_leftovers,
    ),
]

UNSEEN: Mapping[str, str] = {
    "no duty of the caller": "its fault is to allow what a caller must not do, and the judge never does that",
    "four values": "not found yet: nothing noticed it, nor the judge in 20,000 calls",
}
"""Mutants that the judge does not notice, and why."""

_PERMITS = "it lets the caller use epochs again; every state reached so is reached without doing so too"
SURVIVORS: Mapping[str, str] = {
    "Copies.revert: no effect 3": _PERMITS,
    "Copies.reset: no effect 3": _PERMITS,
    "Tiers.restore: no effect 1": _PERMITS,
    "Tiers.reset: no effect 2": _PERMITS,
    "Iteration.restore: no effect 1": _PERMITS,
    "Iteration.reset: no effect 2": _PERMITS,
    "Scalar.restore: no effect 1": _PERMITS,
    "Scalar.reset: no effect 3": _PERMITS,
    "Scalar.restore: no effect 4": "the value left there is the snapshot's own, as if it had been set to itself since",
}


# faults of range, boundary, depth, configuration and rare state


def _finds_epochs_of_32_bits(registry: impl.SnapshotRegistry, epoch: int) -> impl.Snapshot:
    same = (e for e in registry._snapshots if e % 2**32 == epoch % 2**32 and epoch != LATEST_EPOCH)
    return impl.SnapshotRegistry.snapshot(registry, next(same, epoch))


def _compares_epochs_as_doubles(registry: impl.SnapshotRegistry, epoch: int) -> impl.Snapshot:
    latest = registry.latest
    if latest is not None and latest.epoch < epoch and float(latest.epoch) == float(epoch):
        return latest
    return impl.SnapshotRegistry.get_or_create_snapshot(registry, epoch)


def _five_snapshots(registry: impl.SnapshotRegistry, epoch: int) -> impl.Snapshot:
    taken = impl.SnapshotRegistry.get_or_create_snapshot(registry, epoch)
    if len(registry.epochs) > 5:
        registry._delete(registry._head.next)
    return taken


def _deletes_three(registry: impl.SnapshotRegistry, epoch: int) -> None:
    """At most three."""
    for snapshot in list(registry.since(registry._head.next))[:3]:
        if snapshot.epoch < epoch:
            registry._delete(snapshot)


class _RevertsFour(impl.Snapshot):
    __slots__ = ()

    def revert(self) -> None:
        for owner, delta in list(self._kept().values())[:4]:
            owner.execute_revert(self.epoch, delta)
        self._kept().clear()


class _KeepsFour(impl.TableDelta[Any, Any]):
    """What is taken over has room for four entries."""

    def take(self, entry: impl.Entry[Any, Any]) -> None:
        if self.table is None or self.table.size < 4 or self.table.get(entry.key) is not None:
            super().take(entry)


class _GrowsWithoutEpochs(impl.HashTable[Any, Any]):
    """Growing makes the entries again, as from the beginning of time."""

    def _grow(self) -> None:
        super()._grow()
        for entry in self:
            entry.start_epoch = min(entry.start_epoch, 0)


class _GrowsOnce(impl.HashTable[Any, Any]):
    """From 16 slots on, growing leaves the last chain behind."""

    def _grow(self) -> None:
        if len(self.slots) >= 16:
            self.size -= len(self.slots[-1])
            self.slots[-1] = ()
        super()._grow()


class _HashesTo16Bits(impl.HashTable[Any, Any]):
    """Keys whose lower 16 bits are alike are one."""

    def get(self, key: Any) -> Any:
        return super().get(self._known(key))

    def put(self, new: impl.Entry[Any, Any]) -> Any:
        key = self._known(new.key)
        return super().put(new if key == new.key else impl.Entry(key, new.value, new.start_epoch))

    def remove(self, key: Any) -> Any:
        return super().remove(self._known(key))

    def _known(self, key: Any) -> Any:
        return next((e.key for e in self if isinstance(key, int) and (e.key - key) % 2**16 == 0), key)


class _LongAsDouble(impl.TimelineLong):
    def set(self, value: int) -> None:
        super().set(max(-(2**63), min(int(float(value)), 2**63 - 1)))


def _looks_at_four(table: Any, value: Any, epoch: int = LATEST_EPOCH) -> bool:
    return any(v == value for _, v in list(table.items(epoch))[:4])


def _capacity_in_32_bits(driver: timeline_driver.Driver, expected_size: int) -> int:
    return impl.capacity_for(max(0, signed(4 * expected_size, 32) // 4))


def _capacity_as_float(driver: timeline_driver.Driver, expected_size: int) -> int:
    """By a float of 24 bits, as Kafka's own was."""
    return impl.capacity_for(int(unpack("f", pack("f", expected_size))[0]))


def _nothing_is_all(driver: timeline_driver.Driver, count: int) -> int:
    """A count of 0 is none."""
    return timeline_driver.Driver.iterator_next(driver, count or 2**31)


RARE = [
    of_impl(
        "epochs of 32 bits",
        "TML-6",
        "a snapshot is found at its epoch and 2^32",
        _registry(snapshot=_finds_epochs_of_32_bits),
    ),
    of_impl(
        "epochs as doubles",
        "TML-1 TML-3",
        "above 2^53 the next epoch is the latest",
        _registry(get_or_create_snapshot=_compares_epochs_as_doubles),
    ),
    of_impl(
        "five snapshots",
        "TML-3 TML-4",
        "a sixth drives out the first",
        _registry(get_or_create_snapshot=_five_snapshots),
    ),
    of_impl(
        "three are deleted",
        "TML-9",
        "a fourth below the epoch stays",
        _registry(delete_snapshots_up_to=_deletes_three),
    ),
    of_impl(
        "four are reverted",
        "TML-7 TML-17",
        "a fifth collection stays as it is",
        _driver(Registry=type("Registry", (impl.SnapshotRegistry,), {"New": _RevertsFour})),
    ),
    of_impl(
        "four are kept",
        "TML-4",
        "of a snapshot's entries a fifth is lost when it is replaced",
        _tables(Delta=_KeepsFour),
    ),
    of_impl(
        "grown, and as old as time",
        "TML-4 TML-21",
        "entries that are moved are seen by every snapshot",
        _tables(Table=_GrowsWithoutEpochs),
    ),
    of_impl("grown, and a chain is lost", "TML-13 TML-14", "from 16 slots on", _tables(Table=_GrowsOnce)),
    of_impl("keys of 16 bits", "TML-13 TML-14", "a hash is taken for the key", _tables(Table=_HashesTo16Bits)),
    of_impl("a long as a double", "TML-15", "above 2^53 it is rounded", _driver(Long=_LongAsDouble)),
    of_impl(
        "four values",
        "TML-13",
        "a value is looked for among four",
        _driver(Map=type("Map", (impl.TimelineHashMap,), {"__slots__": (), "contains_value": _looks_at_four})),
    ),
    of_impl(
        "slots in 32 bits",
        "TML-22",
        "four times the expected size wraps",
        _driver(capacity=_capacity_in_32_bits),
    ),
    of_impl("slots by a float", "TML-22", "of 24 bits", _driver(capacity=_capacity_as_float), "f6884cc6ddb"),
    of_impl(
        "none is all",
        "TML-11",
        "an iterator asked for no element goes to the end",
        _driver(iterator_next=_nothing_is_all),
    ),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE
