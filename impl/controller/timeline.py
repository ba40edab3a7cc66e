"""Timeline collections as Kafka builds them: one hash table of the present, and for each snapshot what it lost since.

An entry carries the epoch after the latest snapshot at which it was written, its start epoch. What replaces or
removes an entry that the latest snapshot saw moves it to that snapshot's delta. A read at an epoch looks at the
present, and then at the deltas from that snapshot on. So an operation touches one slot, and a snapshot costs what
changes after it. Source: Kafka Internals, ch. 11, "How a snapshotted hash table works"; org.apache.kafka.timeline,
Kafka 4.3.0. Where the released classes break their own rule (`spec/controller/timeline_released.py`), this does what
the rule says.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

from kafkaspec.contract.machine import Refused
from kafkaspec.spec.common.kafka import NULL_POINTER
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH, NO_EPOCH, Epoch

MIN_CAPACITY, MAX_CAPACITY = 2, 1 << 30
RUNTIME_EXCEPTION = "java.lang.RuntimeException"

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TimelineError(Exception):
    """A refusal: the clause that says so, Kafka's exception class, and the message if the clause states one."""

    def __init__(self, clause: str, error: str, message: str | None = None) -> None:
        super().__init__(message or error)
        self.refused = Refused(clause, error, message)


# ---- the hash table --------------------------------------------------------------------------------------------------


def capacity_for(expected_size: int) -> int:
    """The smallest power of two that is at least `expected_size` / 0.75, within the limits. [TML-22]"""
    capacity = MIN_CAPACITY
    while capacity < MAX_CAPACITY and 3 * capacity < 4 * expected_size:
        capacity *= 2
    return capacity


def hash_code(key: Hashable) -> int:
    """Java's hash code of an Integer, a Long or a String, as a signed 32-bit number; of anything else, Python's."""
    if isinstance(key, str):
        code = 0
        for unit in memoryview(key.encode("utf-16-le", "surrogatepass")).cast("H"):
            code = (31 * code + unit) & 0xFFFFFFFF
    elif isinstance(key, int) and not -(2**31) <= key < 2**31:
        code = (key ^ (key >> 32)) & 0xFFFFFFFF
    else:
        code = (key if isinstance(key, int) else hash(key)) & 0xFFFFFFFF
    return code - (1 << 32) if code >> 31 else code


def spread(code: int) -> int:
    """A hash code spread over 64 bits (Knuth's multiplicative hash); a slot is its top bits."""
    return (code * -7046029254386353131) & 0xFFFFFFFFFFFFFFFF


class Entry(Generic[K, V]):
    """A key with its value, written once; only the table that it is in may change."""

    __slots__ = ("key", "spread", "start_epoch", "value")

    def __init__(self, key: K, value: V, start_epoch: Epoch) -> None:
        self.key = key
        self.value = value
        self.start_epoch = start_epoch
        self.spread = spread(hash_code(key))


class HashTable(Generic[K, V]):
    """Separate chaining; as many slots as a power of two; an entry's slot is given by the top bits of its hash."""

    def __init__(self, expected_size: int) -> None:
        self.slots: list[tuple[Entry[K, V], ...]] = [()] * capacity_for(expected_size)
        self.size = 0

    def _slot(self, spread: int) -> int:
        return spread >> (65 - len(self.slots).bit_length())

    def get(self, key: K) -> Entry[K, V] | None:
        for entry in self.slots[self._slot(spread(hash_code(key)))]:
            if entry.key == key:
                return entry
        return None

    def put(self, new: Entry[K, V]) -> Entry[K, V] | None:
        """Add or replace; what was replaced. The table doubles before an addition that would fill it over its limit."""
        slot = self._slot(new.spread)
        chain = self.slots[slot]
        for n, entry in enumerate(chain):
            if entry.key == new.key:
                self.slots[slot] = (*chain[:n], new, *chain[n + 1 :])
                return entry
        if 3 * (self.size + 1) > 4 * len(self.slots) and len(self.slots) < MAX_CAPACITY:
            self._grow()
            slot = self._slot(new.spread)
        self.slots[slot] = (*self.slots[slot], new)
        self.size += 1
        return None

    def remove(self, key: K) -> Entry[K, V] | None:
        """What was removed."""
        slot = self._slot(spread(hash_code(key)))
        chain = self.slots[slot]
        for n, entry in enumerate(chain):
            if entry.key == key:
                self.slots[slot] = (*chain[:n], *chain[n + 1 :])
                self.size -= 1
                return entry
        return None

    def _grow(self) -> None:
        entries = list(self)
        self.slots = [()] * (2 * len(self.slots))
        for entry in entries:
            slot = self._slot(entry.spread)
            self.slots[slot] = (*self.slots[slot], entry)

    def __iter__(self) -> Iterator[Entry[K, V]]:
        for chain in self.slots:
            yield from chain

    def share(self, part: int, parts: int) -> list[Entry[K, V]]:
        """The entries that would be in slot `part` of a table with `parts` slots, however many slots this one has."""
        count = len(self.slots)
        if count >= parts:
            each = count // parts
            return [entry for chain in self.slots[part * each : (part + 1) * each] for entry in chain]
        shift = 65 - parts.bit_length()
        return [entry for entry in self.slots[part * count // parts] if entry.spread >> shift == part]


# ---- snapshots -------------------------------------------------------------------------------------------------------


class Delta(ABC):
    """What one snapshot keeps for one collection."""

    @abstractmethod
    def merge_from(self, epoch: Epoch, later: Any) -> None:
        """Take over, for the snapshot at `epoch`, what the next snapshot kept: that one is deleted."""


class Revertable(ABC):
    """A collection that a registry can put back."""

    __slots__ = ("__weakref__",)

    @abstractmethod
    def execute_revert(self, epoch: Epoch, delta: Any) -> None:
        """Be what it was at the snapshot, which kept `delta` and is the latest."""

    @abstractmethod
    def reset(self) -> None:
        """Be what it was when it was made."""


class Snapshot:
    """One snapshot in the registry's ring; deltas by the identity of the collection, which they keep alive."""

    __slots__ = ("deltas", "epoch", "next", "previous")

    def __init__(self, epoch: Epoch) -> None:
        self.epoch = epoch
        self.deltas: dict[int, tuple[Revertable, Delta]] | None = {}
        self.previous = self.next = self

    @property
    def erased(self) -> bool:
        """Whether it was deleted."""
        return self.deltas is None

    def _kept(self) -> dict[int, tuple[Revertable, Delta]]:
        if self.deltas is None:
            raise TimelineError("TML-11", NULL_POINTER)
        return self.deltas

    def delta(self, owner: Revertable) -> Any:
        """What is kept for a collection; None if nothing. [TML-17]"""
        return self._kept().get(id(owner), (None, None))[1]

    def keep(self, owner: Revertable, delta: Delta) -> None:
        self._kept()[id(owner)] = owner, delta

    def put_after(self, last: Snapshot) -> None:
        self.previous, self.next = last, last.next
        last.next.previous = self
        last.next = self

    def merge_from(self, later: Snapshot) -> None:
        """Take over what the next snapshot kept; it is gone then. [TML-8, TML-9, TML-17]"""
        for owner, delta in later._kept().values():
            mine = self.delta(owner)
            if mine is None:
                self.keep(owner, delta)
            else:
                mine.merge_from(self.epoch, delta)
        later.erase()

    def revert(self) -> None:
        """Put every changed collection back. Nothing has changed since then: no delta is left. [TML-7, TML-17]"""
        for owner, delta in self._kept().values():
            owner.execute_revert(self.epoch, delta)
        self._kept().clear()

    def erase(self) -> None:
        self.deltas = None
        self.previous.next, self.next.previous = self.next, self.previous
        self.previous = self.next = self


class SnapshotRegistry:
    """The snapshots of some collections, in a ring by rising epoch. It keeps no collection alive."""

    New: type[Snapshot] = Snapshot

    def __init__(self, max_registrations_since_scrub: int = 10_000) -> None:
        self._head = Snapshot(NO_EPOCH)
        self._snapshots: dict[Epoch, Snapshot] = {}
        self._registered: list[weakref.ref[Revertable]] = []
        self._max_registrations_since_scrub = max_registrations_since_scrub
        self._registrations_since_scrub = 0
        self.highest_epoch = NO_EPOCH
        """the highest epoch used since the last reset, or since the revert that lowered it"""

    def register(self, collection: Revertable) -> None:
        """Know a collection. Once in a while the places of dead ones are cleared away. [TML-19]"""
        self._registrations_since_scrub += 1
        if self._registrations_since_scrub > self._max_registrations_since_scrub:
            self._scrub()
        self._registered.append(weakref.ref(collection))

    def _scrub(self) -> None:
        """Clear away the places of dead collections, and count registrations from 0 again. [TML-19]"""
        self._registered = [ref for ref in self._registered if ref() is not None]
        self._registrations_since_scrub = 0

    @property
    def registered(self) -> int:
        """How many collections it knows that are alive."""
        return sum(ref() is not None for ref in self._registered)

    @property
    def registration_slots(self) -> int:
        """How many places are taken, those of dead collections included."""
        return len(self._registered)

    @property
    def latest(self) -> Snapshot | None:
        """The latest snapshot."""
        last = self._head.previous
        return None if last is self._head else last

    @property
    def latest_epoch(self) -> Epoch:
        """The epoch of the latest snapshot; NO_EPOCH if there is none."""
        return self._head.previous.epoch

    @property
    def epochs(self) -> list[Epoch]:
        """The epochs of all snapshots, rising."""
        return [snapshot.epoch for snapshot in self.since(self._head.next)]

    def since(self, snapshot: Snapshot) -> Iterator[Snapshot]:
        """That snapshot and all later ones; each may be deleted when it has come."""
        while snapshot is not self._head:
            following = snapshot.next
            yield snapshot
            snapshot = following

    def snapshot(self, epoch: Epoch) -> Snapshot:
        """The snapshot at an epoch; refused (TML-6) if there is none. [TML-6]"""
        snapshot = self._snapshots.get(epoch)
        if snapshot is None:
            epochs = ", ".join(map(str, self.epochs))
            message = f"No in-memory snapshot for epoch {epoch}. Snapshot epochs are: {epochs}"
            raise TimelineError("TML-6", RUNTIME_EXCEPTION, message)
        return snapshot

    def get_or_create_snapshot(self, epoch: Epoch) -> Snapshot:
        """A new snapshot, or the latest if it is at that epoch. Refused (TML-1) below the latest.

        Raises ValueError if the caller breaks TML-2: entries written meanwhile would not belong to the new snapshot.
        [TML-1, TML-2, TML-3, TML-23]
        """
        last = self._head.previous
        if last.epoch > epoch:
            epochs = ", ".join(map(str, self.epochs))
            message = (
                f"Can't create a new in-memory snapshot at epoch {epoch} because there is already a snapshot with "
                f"epoch {last.epoch}. Snapshot epochs are {epochs}"
            )
            raise TimelineError("TML-1", RUNTIME_EXCEPTION, message)
        if last.epoch == epoch:
            return last
        if not self.highest_epoch < epoch < LATEST_EPOCH:
            raise ValueError(f"TML-2: epoch {epoch} is not above {self.highest_epoch}, the highest epoch used")
        snapshot = self.New(epoch)
        snapshot.put_after(last)
        self._snapshots[epoch] = snapshot
        self.highest_epoch = epoch
        return snapshot

    def revert_to_snapshot(self, epoch: Epoch) -> None:
        """Every registered collection is what it was then; later snapshots are gone. [TML-7]"""
        target = self.snapshot(epoch)
        for later in self.since(target.next):
            self._delete(later)
        target.revert()
        self.highest_epoch = epoch

    def delete_snapshot(self, epoch: Epoch) -> None:
        """Forget one epoch; what can be read at the others stays. [TML-8]"""
        self._delete(self.snapshot(epoch))

    def _delete(self, snapshot: Snapshot) -> None:
        del self._snapshots[snapshot.epoch]
        if snapshot.previous is self._head:
            snapshot.erase()
        else:
            snapshot.previous.merge_from(snapshot)

    def delete_snapshots_up_to(self, epoch: Epoch) -> None:
        """Forget the epochs below `epoch`. [TML-9]"""
        for snapshot in self.since(self._head.next):
            if snapshot.epoch >= epoch:
                return
            self._delete(snapshot)

    def reset(self) -> None:
        """No snapshots; every collection is what it was when it was made. [TML-10, TML-17]"""
        self.delete_snapshots_up_to(LATEST_EPOCH)
        self._scrub()
        for ref in self._registered:
            collection = ref()
            if collection is not None:
                collection.reset()
        self.highest_epoch = NO_EPOCH


# ---- collections -----------------------------------------------------------------------------------------------------


class TableDelta(Delta, Generic[K, V]):
    """The size at the snapshot, the entries that it saw and the present no longer has, and the keys added since.

    Kafka keeps no such keys: its revert looks through the whole table. With them a revert, too, costs what changed."""

    __slots__ = ("added", "size", "table")

    def __init__(self, size: int) -> None:
        self.size = size
        self.added: set[K] = set()
        self.table: HashTable[K, V] | None = None

    def take(self, entry: Entry[K, V]) -> None:
        if self.table is None:
            self.table = HashTable(1)
        self.table.put(entry)

    def merge_from(self, epoch: Epoch, later: TableDelta[K, V]) -> None:
        self.added |= later.added
        for entry in later.table or ():
            if entry.start_epoch <= epoch:
                self.take(entry)


class SnapshottableHashTable(Revertable, Generic[K, V]):
    """The engine of map and set: a table of the present, and deltas in the registry's snapshots."""

    __slots__ = ("_registry", "_table")
    Delta: type[TableDelta[Any, Any]] = TableDelta
    Table: type[HashTable[Any, Any]] = HashTable

    def __init__(self, registry: SnapshotRegistry, expected_size: int) -> None:
        self._registry = registry
        self._table: HashTable[K, V] = self.Table(expected_size)
        registry.register(self)

    def size(self, epoch: Epoch = LATEST_EPOCH) -> int:
        """How many elements there are, or were. [TML-16]"""
        if epoch != LATEST_EPOCH:
            for snapshot in self._registry.since(self._registry.snapshot(epoch)):
                delta: TableDelta[K, V] | None = snapshot.delta(self)
                if delta is not None:
                    return delta.size
        return self._table.size

    def _find(self, key: K, epoch: Epoch) -> Entry[K, V] | None:
        """The entry of a key at an epoch; None if there was none. Refused (TML-6) without a snapshot at that epoch.
        [TML-5, TML-20]"""
        since = None if epoch == LATEST_EPOCH else self._registry.snapshot(epoch)
        entry = self._table.get(key)
        if since is None or (entry is not None and entry.start_epoch <= epoch):
            return entry
        for snapshot in self._registry.since(since):
            delta: TableDelta[K, V] | None = snapshot.delta(self)
            if delta is not None and delta.table is not None:
                entry = delta.table.get(key)
                if entry is not None:  # written later, it says that there was none
                    return entry if entry.start_epoch <= epoch else None
        return None

    def _write(self, key: K, value: V) -> Entry[K, V] | None:
        """Add or replace an entry that starts after the latest snapshot; the one that was replaced. [TML-21]"""
        size = self._table.size
        before = self._table.put(Entry(key, value, self._registry.latest_epoch + 1))
        self._note(key, before, size)
        return before

    def _erase(self, key: K) -> Entry[K, V] | None:
        size = self._table.size
        before = self._table.remove(key)
        if before is not None:
            self._note(key, before, size)
        return before

    def _note(self, key: K, before: Entry[K, V] | None, size: int) -> None:
        """The latest snapshot takes over what was replaced or removed, if it saw it, and the size on a first change.
        [TML-4, TML-18, TML-21, TML-23]"""
        latest = self._registry.latest
        if latest is None or (before is not None and before.start_epoch > latest.epoch):
            return
        delta: TableDelta[K, V] | None = latest.delta(self)
        if delta is None:
            delta = self.Delta(size)
            latest.keep(self, delta)
        if before is None:
            delta.added.add(key)
        else:
            delta.take(before)

    def _iterate(self, epoch: Epoch) -> Iterator[Entry[K, V]]:
        """The entries at an epoch, in no order; at the latest one, those of the moment of the call. [TML-5]"""
        if epoch == LATEST_EPOCH:
            return iter(list(self._table))
        return self._iterate_at(self._registry.snapshot(epoch), len(self._table.slots))

    def _iterate_at(self, snapshot: Snapshot, parts: int) -> Iterator[Entry[K, V]]:
        """Part by part of the hash's range, as many parts as there were slots at the start: what leaves the present for
        a delta, or moves because a table grows, stays in its part, and is met there once. [TML-11, TML-20]"""
        for part in range(parts):
            ready = self._table.share(part, parts)
            for later in self._registry.since(snapshot):
                delta: TableDelta[K, V] | None = later.delta(self)
                if delta is not None and delta.table is not None:
                    ready += delta.table.share(part, parts)
            yield from [entry for entry in ready if entry.start_epoch <= snapshot.epoch]

    def execute_revert(self, epoch: Epoch, delta: TableDelta[K, V]) -> None:
        """Remove what was written after the epoch, and put back what the delta has. [TML-7, TML-23]"""
        replaced = delta.table or ()
        for key in (*delta.added, *(entry.key for entry in replaced)):
            entry = self._table.get(key)
            if entry is not None and entry.start_epoch > epoch:
                self._table.remove(key)
        for entry in replaced:
            self._table.put(entry)

    def reset(self) -> None:
        for entry in list(self._table):
            self._erase(entry.key)


def _not_null(clause: str, *values: object) -> None:
    if None in values:
        raise TimelineError(clause, NULL_POINTER)


class TimelineHashMap(SnapshottableHashTable[K, V]):
    """A map whose past can be read."""

    __slots__ = ()

    def put(self, key: K, value: V) -> V | None:
        """The value before; refused (TML-13) for None. [TML-13]"""
        _not_null("TML-13", key, value)
        before = self._write(key, value)
        return None if before is None else before.value

    def remove(self, key: K) -> V | None:
        """The value before. [TML-13]"""
        before = self._erase(key)
        return None if before is None else before.value

    def remove_at(self, key: K, epoch: Epoch) -> bool:
        """Remove a key through the key set of an epoch; refused (TML-12) but at the latest. Whether it was there.
        [TML-12]"""
        if epoch != LATEST_EPOCH:
            raise TimelineError("TML-12", RUNTIME_EXCEPTION, "can't modify snapshot")
        return self._erase(key) is not None

    def clear(self) -> None:
        self.reset()

    def get(self, key: K, epoch: Epoch = LATEST_EPOCH) -> V | None:
        """The value of a key at an epoch; None if it has none. [TML-13]"""
        entry = self._find(key, epoch)
        return None if entry is None else entry.value

    def items(self, epoch: Epoch = LATEST_EPOCH) -> Iterator[tuple[K, V]]:
        """Every key with its value, in no order. At an epoch, the present may change meanwhile. [TML-13]"""
        return ((entry.key, entry.value) for entry in self._iterate(epoch))

    def contains_value(self, value: V, epoch: Epoch = LATEST_EPOCH) -> bool:
        """Whether some key has the value at an epoch. [TML-13]"""
        return any(v == value for _, v in self.items(epoch))


class TimelineHashSet(SnapshottableHashTable[K, None]):
    """A set whose past can be read."""

    __slots__ = ()

    def add(self, element: K) -> bool:
        """Whether it was not there; refused (TML-14) for None. [TML-14]"""
        _not_null("TML-14", element)
        if self._table.get(element) is not None:
            return False
        self._write(element, None)
        return True

    def remove(self, element: K) -> bool:
        """Whether it was there. [TML-14]"""
        return self._erase(element) is not None

    def add_all(self, elements: Iterable[K]) -> bool:
        """Whether one of them was not there. [TML-14]"""
        return sum(self.add(element) for element in elements) > 0

    def remove_all(self, elements: Iterable[K]) -> bool:
        """Whether one of them was there. [TML-14]"""
        return sum(self.remove(element) for element in elements) > 0

    def clear(self) -> None:
        self.reset()

    def contains(self, element: K, epoch: Epoch = LATEST_EPOCH) -> bool:
        return self._find(element, epoch) is not None

    def elements(self, epoch: Epoch = LATEST_EPOCH) -> Iterator[K]:
        """Every element, in no order. At an epoch, the present may change meanwhile."""
        return (entry.key for entry in self._iterate(epoch))


class ValueDelta(Delta, Generic[V]):
    """The value at the snapshot."""

    __slots__ = ("value",)

    def __init__(self, value: V) -> None:
        self.value = value

    def merge_from(self, epoch: Epoch, later: ValueDelta[V]) -> None:
        """The value at the earlier snapshot is known already."""


class TimelineObject(Revertable, Generic[V]):
    """One value whose past can be read; never None."""

    __slots__ = ("_initial", "_registry", "_value")

    def __init__(self, registry: SnapshotRegistry, initial: V) -> None:
        """Begin with that value, and return to it at a reset; refused (TML-15) for None. [TML-15]"""
        _not_null("TML-15", initial)
        self._registry = registry
        self._initial: Final = initial
        self._value = initial
        registry.register(self)

    def get(self, epoch: Epoch = LATEST_EPOCH) -> V:
        """The value at an epoch. [TML-5, TML-15]"""
        if epoch != LATEST_EPOCH:
            for snapshot in self._registry.since(self._registry.snapshot(epoch)):
                delta: ValueDelta[V] | None = snapshot.delta(self)
                if delta is not None:
                    return delta.value
        return self._value

    def set(self, value: V) -> None:
        """Refused (TML-15) for None. [TML-4, TML-15, TML-18]"""
        _not_null("TML-15", value)
        latest = self._registry.latest
        if latest is not None and latest.delta(self) is None:
            latest.keep(self, ValueDelta(self._value))
        self._value = value

    def execute_revert(self, epoch: Epoch, delta: ValueDelta[V]) -> None:
        self._value = delta.value

    def reset(self) -> None:
        self.set(self._initial)


class _TimelineNumber(TimelineObject[int]):
    """A number that wraps as its bits do."""

    __slots__ = ()
    bits: int

    def __init__(self, registry: SnapshotRegistry) -> None:
        """Begin with 0. [TML-15]"""
        super().__init__(registry, 0)

    def set(self, value: int) -> None:
        """Keep the lowest `bits` bits of the value, as a signed number. [TML-15]"""
        value &= (1 << self.bits) - 1
        super().set(value - (1 << self.bits) if value >> (self.bits - 1) else value)

    def increment(self) -> None:
        self.set(self._value + 1)

    def decrement(self) -> None:
        self.set(self._value - 1)


class TimelineLong(_TimelineNumber):
    """64 bits."""

    __slots__ = ()
    bits = 64


class TimelineInteger(_TimelineNumber):
    """32 bits."""

    __slots__ = ()
    bits = 32
