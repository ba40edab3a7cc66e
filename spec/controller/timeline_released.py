"""How the released Kafka stores timeline collections, as far as its known deviations depend on it.

The spec keeps copies; the released classes keep entries with start epochs, and deltas, in hash tables with slots. Where
their answers are wrong, that is decided by which entries are in which table, and by how many slots it has. The ghost
below follows exactly that: no values, only who is where since when. Source: SnapshottableHashTable and BaseHashTable,
Kafka 4.3.0.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Fields, Json, Refused
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH, NO_EPOCH, Timeline
from kafkaspec.spec.controller.timeline import MAX_CAPACITY, machine


def released_capacity(expected_size: int) -> int:
    """The slots of a table made for an expected size; the size is rounded to a 32-bit float first."""
    rounded: float = struct.unpack("f", struct.pack("f", expected_size))[0]
    needed = math.ceil(rounded / 0.75)
    return max(2, min(MAX_CAPACITY, 1 << (needed - 1).bit_length() if needed else 0))


Key = Any
"""An int; of other collections than the timeline's own, also a text."""


@cache
def hash_of(text: str) -> int:
    """The hash code of a text in Java."""
    code = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code - ((code & 2**31) << 1)


def slot_of(key: Key, capacity: int) -> int:
    """The slot of a key in a table with that many slots: the top bits of a multiplicative hash."""
    code: int = hash_of(key) if isinstance(key, str) else key
    return ((code * -7046029254386353131) & 0xFFFFFFFFFFFFFFFF) >> (65 - capacity.bit_length())


class Table(NamedTuple):
    """A hash table: its keys with their start epochs, in the order in which they were added."""

    starts: dict[Key, int] = {}
    capacity: int = 2

    def with_(self, key: Key, start: int) -> Table:
        """An entry added or replaced. The table grows by the count before, even when the entry is only replaced."""
        grows = 3 * (len(self.starts) + 1) > 4 * self.capacity and self.capacity < MAX_CAPACITY
        return Table({**self.starts, key: start}, self.capacity * 2 if grows else self.capacity)

    def without(self, key: Key) -> Table:
        return Table({k: s for k, s in self.starts.items() if k != key}, self.capacity)

    def by_slot(self) -> list[Key]:
        """The keys by slot; in one slot, in the order in which they were added."""
        return sorted(self.starts, key=lambda k: slot_of(k, self.capacity))

    def last_first(self) -> list[Key]:
        """The keys as an iterator of the present gives them: by slot; in one slot, the last added first."""
        ranks = {k: n for n, k in enumerate(self.starts)}
        return sorted(ranks, key=lambda k: (slot_of(k, self.capacity), -ranks[k]))


class Hit(NamedTuple):
    """What an iterator at an epoch came across."""

    key: int
    newer: int | None = None
    """the snapshot of the delta that held an entry written after that epoch; None if it was written by then"""
    value: int | None = None
    """of such an entry of the map"""


class SlotIterator(NamedTuple):
    """An open iterator at an epoch. It goes by the slots that the table had when it was opened."""

    name: str
    epoch: int
    capacity: int
    left_behind: Mapping[int, int] | None = None
    """the entries of the table when it grew: from then on the iterator looks at those"""
    slot: int = 0
    found: tuple[Hit, ...] = ()
    given: int = 0
    came: int = 0
    """how many the last call gave"""


Tiers = tuple[tuple[int, Mapping[str, Table | None]], ...]
"""By rising epoch, the snapshots with their deltas by collection. None: the collection changed, by additions alone."""


class Storage(NamedTuple):
    """The ghost: where every entry is."""

    tables: Mapping[str, Table]
    tiers: Tiers = ()
    iterator: SlotIterator | None = None
    looks_at_start: bool = True
    """whether an iterator at an epoch leaves out what a delta holds that was written later: since 3.5.2"""

    def __hash__(self) -> int:
        return hash((len(self.tiers), self.iterator is None, sum(len(t.starts) for t in self.tables.values())))

    @property
    def latest_epoch(self) -> int:
        return self.tiers[-1][0] if self.tiers else NO_EPOCH


def _table(stored: Storage, name: str) -> Table:
    return stored.tables.get(name) or Table({}, released_capacity(4))


def _store(stored: Storage, name: str, table: Table) -> Storage:
    """The table in the place of the one before; if it grew, an open iterator is left behind with the old one."""
    iterator, before = stored.iterator, _table(stored, name)
    if iterator is not None and iterator.name == name and before.capacity != table.capacity:
        iterator = iterator if iterator.left_behind is not None else iterator._replace(left_behind=before.starts)
    return stored._replace(tables={**stored.tables, name: table}, iterator=iterator)


def _seen_by_snapshot(stored: Storage, name: str, key: Key, start: int | None) -> Storage:
    """The latest snapshot takes over what was replaced or removed if it saw it. `start` None: there was nothing."""
    if not stored.tiers:
        return stored
    epoch, deltas = stored.tiers[-1]
    if start is None:
        if name in deltas:
            return stored
        changed: Table | None = None
    elif start <= epoch:
        changed = (deltas.get(name) or Table()).with_(key, start)
    else:
        return stored
    return stored._replace(tiers=(*stored.tiers[:-1], (epoch, {**deltas, name: changed})))


def put(stored: Storage, name: str, key: Key) -> Storage:
    table = _table(stored, name)
    start = table.starts.get(key)
    after = _store(stored, name, table.with_(key, stored.latest_epoch + 1))
    return _seen_by_snapshot(after, name, key, start)


def remove(stored: Storage, name: str, key: Key) -> Storage:
    table = _table(stored, name)
    start = table.starts.get(key)
    if start is None:
        return stored
    return _seen_by_snapshot(_store(stored, name, table.without(key)), name, key, start)


def _add_all(stored: Storage, name: str, keys: Iterable[int]) -> Storage:
    for key in keys:
        if key not in _table(stored, name).starts:
            stored = put(stored, name, key)
    return stored


def _remove_all(stored: Storage, name: str, keys: Collection[int]) -> Storage:
    for key in _table(stored, name).last_first():
        if key in keys:
            stored = remove(stored, name, key)
    return stored


def _merged(
    epoch: int, into: Mapping[str, Table | None], source: Mapping[str, Table | None]
) -> dict[str, Table | None]:
    """The deltas of a deleted snapshot, folded into those of the one before it."""
    out = dict(into)
    for name, delta in source.items():
        if name not in out:
            out[name] = delta
        elif delta is not None:
            table = out[name]
            again: list[Key] = []  # never emptied: what was folded in is folded in again with every further slot
            slots: dict[int, list[Key]] = {}
            for key in (k for k in delta.starts if delta.starts[k] <= epoch):
                slots.setdefault(slot_of(key, delta.capacity), []).append(key)
            for slot, following in pairwise([*sorted(slots), delta.capacity]):
                again += slots[slot]
                for _ in range(slot, following):
                    before = table
                    for key in again:
                        table = (table or Table()).with_(key, delta.starts[key])
                    if table == before:
                        break  # nor does it change with the empty slots that follow
            out[name] = table
    return out


def with_snapshot(stored: Storage, epoch: int) -> Storage:
    return stored._replace(tiers=(*stored.tiers, (epoch, {})))


def without_below(stored: Storage, epoch: int) -> Storage:
    """Without the snapshots below an epoch."""
    return _with_tiers(stored, tuple(tier for tier in stored.tiers if tier[0] >= epoch))


def _with_tiers(stored: Storage, tiers: Tiers) -> Storage:
    iterator = stored.iterator
    if iterator is not None and all(epoch != iterator.epoch for epoch, _ in tiers):
        iterator = None
    return stored._replace(tiers=tiers, iterator=iterator)


def revert(stored: Storage, target: int) -> Storage:
    kept = [tier for tier in stored.tiers if tier[0] <= target]
    deltas = kept[-1][1]
    for epoch, later in stored.tiers:
        if epoch > target:
            deltas = _merged(target, deltas, later)
    stored = _with_tiers(stored, (*kept[:-1], (target, deltas)))
    for name, delta in deltas.items():
        table = _table(stored, name)
        table = Table({k: s for k, s in table.starts.items() if s <= target}, table.capacity)
        stored = _store(stored, name, table)
        if delta is not None:
            for key in delta.by_slot():  # and they stay in the delta
                stored = _store(stored, name, _table(stored, name).with_(key, delta.starts[key]))
    return stored


def _delete(stored: Storage, target: int) -> Storage:
    tiers = list(stored.tiers)
    (n,) = (n for n, (epoch, _) in enumerate(tiers) if epoch == target)
    _, deltas = tiers.pop(n)
    if n:
        epoch, before = tiers[n - 1]
        tiers[n - 1] = epoch, _merged(epoch, before, deltas)
    return _with_tiers(stored, tuple(tiers))


def _in_slot(stored: Storage, it: SlotIterator, slot: int) -> list[Hit]:
    """What an iterator finds when it looks at one slot."""
    top = it.left_behind if it.left_behind is not None else _table(stored, it.name).starts
    found = [Hit(k) for k, s in top.items() if s <= it.epoch and slot_of(k, it.capacity) == slot]
    for at, deltas in stored.tiers:
        delta = deltas.get(it.name)
        if at >= it.epoch and delta is not None:
            # in a table with more slots than the iterator goes by, only the first slot is ever looked at
            shift = (it.capacity.bit_length() - delta.capacity.bit_length()) % 32
            found += [
                Hit(k, None if s <= it.epoch else at)
                for k, s in delta.starts.items()
                if (s <= it.epoch or not stored.looks_at_start)
                and slot_of(k, delta.capacity) == slot >> shift
                and slot_of(k, it.capacity) == slot
            ]
    return found


def _next(stored: Storage, it: SlotIterator, count: int | None) -> SlotIterator:
    """Up to `count` more elements, or all."""
    found, slot = list(it.found), it.slot
    while slot < it.capacity and (count is None or len(found) < it.given + count):
        found += _in_slot(stored, it, slot)
        slot += 1
    given = len(found) if count is None else min(len(found), it.given + count)
    return it._replace(slot=slot, found=tuple(found), given=given, came=given - it.given)


def iterated(stored: Storage, name: str, epoch: int) -> dict[Key, int]:
    """What an iteration at an epoch that begins and ends now gives: each element, how many times it comes."""
    table = _table(stored, name)
    come = dict.fromkeys([k for k, start in table.starts.items() if start <= epoch], 1)
    for at, deltas in stored.tiers:
        delta = deltas.get(name)
        if at >= epoch and delta is not None:
            for k, start in delta.starts.items():
                if start <= epoch and (delta.capacity <= table.capacity or slot_of(k, delta.capacity) == 0):
                    come[k] = come.get(k, 0) + 1
    return come


def _iterator_next(stored: Storage, count: int | None) -> Storage:
    assert stored.iterator is not None
    return stored._replace(iterator=_next(stored, stored.iterator, count))


def _across_changes(stored: Storage, epoch: int, values: Collection[int]) -> Storage:
    stored = stored._replace(iterator=SlotIterator("set", epoch, _table(stored, "set").capacity))
    stored = _add_all(_iterator_next(stored, 1), "set", values)
    stored = _remove_all(stored, "set", _table(stored, "set").starts.keys() - values)
    return _iterator_next(stored, None)


def reset(stored: Storage) -> Storage:
    """The tables keep the slots that they have grown to."""
    tables = {name: Table({}, table.capacity) for name, table in stored.tables.items()}
    return stored._replace(tables=tables, tiers=(), iterator=None)


# by operation, only for calls that changed the state
_STEPS: dict[str, Callable[[Storage, Mapping[str, Any]], Storage]] = {
    "map.put": lambda g, a: put(g, "map", a["key"]),
    "map.remove": lambda g, a: remove(g, "map", a["key"]),
    "map.keySet.iteratorRemove": lambda g, a: remove(g, "map", a["key"]),
    "map.keySetAtRemove": lambda g, a: remove(g, "map", a["key"]),
    "map.clear": lambda g, a: _remove_all(g, "map", g.tables["map"].starts),
    "set.add": lambda g, a: put(g, "set", a["value"]),
    "set.remove": lambda g, a: remove(g, "set", a["value"]),
    "set.addAll": lambda g, a: _add_all(g, "set", a["values"]),
    "set.removeAll": lambda g, a: _remove_all(g, "set", a["values"]),
    "set.clear": lambda g, a: _remove_all(g, "set", g.tables["set"].starts),
    "collection.create": lambda g, a: g._replace(tables={**g.tables, a["name"]: Table({}, released_capacity(4))}),
    "collection.add": lambda g, a: g if a["value"] in _table(g, a["name"]).starts else put(g, a["name"], a["value"]),
    "getOrCreateSnapshot": lambda g, a: with_snapshot(g, a["epoch"]),
    "idempotentCreateSnapshot": lambda g, a: with_snapshot(g, a["epoch"]),
    "revertToSnapshot": lambda g, a: revert(g, a["epoch"]),
    "deleteSnapshot": lambda g, a: _delete(g, a["epoch"]),
    "deleteSnapshotsUpTo": lambda g, a: without_below(g, a["epoch"]),
    "reset": lambda g, a: reset(g),
    "iterator.open": lambda g, a: g._replace(
        iterator=SlotIterator(a["collection"], a["epoch"], _table(g, a["collection"]).capacity)
    ),
    "iterator.next": lambda g, a: _iterator_next(g, a["count"]),
    "iterator.finish": lambda g, a: _iterator_next(g, None),
    "iterator.acrossChanges": lambda g, a: _across_changes(g, a["epoch"], a["values"]),
}


def _nothing_stored() -> Storage | None:
    return None


def _begin(state: Timeline) -> Storage:
    return Storage(
        {
            "map": Table({}, released_capacity(state.map_expected_size)),
            "set": Table({}, released_capacity(state.set_expected_size)),
        }
    )


def _advance(stored: Storage | None, before: Timeline, op: str, arguments: Mapping[str, Any], after: Timeline) -> Any:
    if after is before or op not in _STEPS:
        return stored
    return _STEPS[op](stored if stored is not None else _begin(before), arguments)


# what is shown


_ITERATING = ("iterator.next", "iterator.finish", "iterator.acrossChanges")


Places = Mapping[int, list[tuple[int, int]]]
"""By key, where an iteration finds it: up to which epoch the place is looked at, and since when the entry is there."""


def _several_places(g: Storage, name: str) -> Places:
    """The keys of a collection that are in more than one place."""
    table = _table(g, name)
    places = {k: [(LATEST_EPOCH, start)] for k, start in table.starts.items()}
    for at, deltas in g.tiers:
        delta = deltas.get(name)
        if delta is not None:
            for k, start in delta.starts.items():
                if delta.capacity <= table.capacity or slot_of(k, delta.capacity) == 0:
                    places.setdefault(k, []).append((at, start))
    return {k: found for k, found in places.items() if len(found) > 1}


def _with_repeats(elements: list[int], places: Places, epoch: int) -> list[int]:
    """Elements of an epoch, those that come several times repeated."""
    again: list[Key] = []
    for k, found in places.items():
        comes = 0
        for at, start in found:
            if at >= epoch >= start:
                comes += 1
        again += [k] * (comes - 1)
    return sorted(elements + again) if again else elements


def _without_lost(g: Storage, name: str, epoch: int, elements: list[int]) -> list[int]:
    """Elements of an epoch, those that never come left out."""
    come = iterated(g, name, epoch)
    return [e for e in elements if e in come]


def _reread(
    g: Storage | None, state: Timeline, op: str, a: Mapping[str, Any], result: Any, seen: Any, more: bool
) -> Any:
    """The observation, and the answers that come from an iteration, after leftovers of a revert have their effect."""
    if g is None:
        return result, seen
    at = dict(seen["at"])
    repeated = _several_places(g, "set") if more else {}
    for epoch in state.past if repeated or not more else ():
        view = at[str(epoch)]
        if more:
            elements, entries = _with_repeats(view["set"], repeated, epoch), view["map"]
        else:
            elements = _without_lost(g, "set", epoch, view["set"])
            entries = {str(k): view["map"][str(k)] for k in iterated(g, "map", epoch)}
        if elements is not view["set"] or len(entries) != len(view["map"]):
            at[str(epoch)] = Fields({**view, "set": elements, "map": entries})
    if op == "collection.elements" and not isinstance(result, Refused) and a["epoch"] != LATEST_EPOCH:
        if more:
            result = _with_repeats(result, _several_places(g, a["name"]), a["epoch"])
        else:
            result = _without_lost(g, a["name"], a["epoch"], result)
    it = g.iterator
    if op in _ITERATING and not isinstance(result, Refused) and it is not None and it.left_behind is None:
        answer = _answer(state, op, it, result)
        if isinstance(answer, int):
            more_came = answer > result
        else:
            more_came = len(answer) > len(set(map(str, answer)))
        result = answer if more_came == more else result
    return result, {**seen, "at": at}


def _answer(state: Timeline, op: str, it: SlotIterator, result: Any) -> Any:
    """What the released iterator answers to the step just made."""
    if op != "iterator.next":
        if it.name == "set":
            return sorted(f.key for f in it.found)
        values = dict(result)
        return sorted([f.key, values[f.key] if f.newer is None else f.value] for f in it.found)
    return it.came


def _twice(g: Any, state: Timeline, op: str, a: Mapping[str, Any], result: Any, seen: Json) -> tuple[Any, Json]:
    return _reread(g, state, op, a, result, seen, more=True)  # type: ignore[no-any-return]


def _lost(g: Any, state: Timeline, op: str, a: Mapping[str, Any], result: Any, seen: Json) -> tuple[Any, Json]:
    return _reread(g, state, op, a, result, seen, more=False)  # type: ignore[no-any-return]


def _left_behind(
    g: Storage | None, state: Timeline, op: str, a: Mapping[str, Any], result: Any, seen: Json
) -> tuple[Any, Json]:
    if g is None or g.iterator is None or g.iterator.left_behind is None:
        return result, seen
    if op not in _ITERATING or isinstance(result, Refused):
        return result, seen
    return _answer(state, op, g.iterator, result), seen


def _advance_before_3_5_2(
    stored: Storage | None, before: Timeline, op: str, arguments: Mapping[str, Any], after: Timeline
) -> Any:
    """The same, with iterators that do not look at start epochs, and keep the values of what is newer."""
    if after is before or op not in _STEPS:
        return stored
    stored = stored if stored is not None else _begin(before)._replace(looks_at_start=False)
    stored = _STEPS[op](stored, arguments)
    it = stored.iterator
    if it is not None and it.name == "map" and any(f.newer is not None and f.value is None for f in it.found):
        found = [
            f if f.newer is None or f.value is not None else f._replace(value=after.past[f.newer].entries[f.key])
            for f in it.found
        ]
        stored = stored._replace(iterator=it._replace(found=tuple(found)))
    return stored


def _newer(g: Storage, name: str, epoch: int) -> list[tuple[int, int]]:
    """What an iteration at an epoch gives that was written later: keys, and the snapshots whose deltas hold them."""
    table = _table(g, name)
    out = []
    for at, deltas in g.tiers:
        delta = deltas.get(name)
        if at >= epoch and delta is not None:
            for k, start in delta.starts.items():
                if start > epoch and (delta.capacity <= table.capacity or slot_of(k, delta.capacity) == 0):
                    out.append((k, at))
    return out


def _too_new(
    g: Storage | None, state: Timeline, op: str, a: Mapping[str, Any], result: Any, seen: Any
) -> tuple[Any, Json]:
    if g is None:
        return result, seen
    views = dict(seen["at"])
    for epoch in state.past:
        newer = {name: _newer(g, name, epoch) for name in ("map", "set")}
        if any(newer.values()):
            view = views[str(epoch)]
            # a key that comes several times comes last as the table, or else the earliest delta, has it
            entries = {str(k): state.past[at].entries[k] for k, at in reversed(newer["map"])}
            elements = sorted(view["set"] + [k for k, _ in newer["set"]])
            views[str(epoch)] = Fields({**view, "map": {**entries, **view["map"]}, "set": elements})
    if op == "collection.elements" and not isinstance(result, Refused) and a["epoch"] != LATEST_EPOCH:
        result = sorted(result + [k for k, _ in _newer(g, a["name"], a["epoch"])])
    it = g.iterator
    ours = op in _ITERATING and not isinstance(result, Refused)
    if ours and it is not None and any(f.newer is not None for f in it.found):
        result = _answer(state, op, it, result)
    return result, {**seen, "at": views}


def _none_made() -> int:
    return 0


def _another_made(made: int, before: Timeline, op: str, arguments: Mapping[str, Any], after: Timeline) -> int:
    return made + 1 if op == "collection.create" else made


def _registered_for_ever(
    made: int, state: Timeline, op: str, a: Mapping[str, Any], result: Any, seen: Json
) -> tuple[Any, Json]:
    return (result - len(state.held) + made if op == "registry.registered" else result), seen


_KEYED = {"map.get": ("map", "key"), "set.contains": ("set", "value")}


def _made_up(
    g: Storage | None, state: Timeline, op: str, a: Mapping[str, Any], result: Any, seen: Json
) -> tuple[Any, Json]:
    if op not in _KEYED or g is None or not isinstance(result, Refused):
        return result, seen
    name, key = _KEYED[op]
    start = _table(g, name).starts.get(a[key])
    if start is None or start > a["epoch"]:
        return result, seen
    return (state.present.entries[a[key]] if op == "map.get" else True), seen


def _asks_keys(
    g: Storage | None, state: Timeline, op: str, a: Mapping[str, Any], result: Any, seen: Json
) -> tuple[Any, Json]:
    if op != "map.values.contains":
        return result, seen
    epoch = a["epoch"]
    if epoch == LATEST_EPOCH or epoch in state.past:
        view = state.present if epoch == LATEST_EPOCH else state.past[epoch]
        return a["value"] in view.entries, seen
    start = None if g is None else _table(g, "map").starts.get(a["value"])
    return (True if start is not None and start <= epoch else result), seen


def _equals_fails(
    g: Storage | None, state: Timeline, op: str, a: Mapping[str, Any], result: Any, seen: Json
) -> tuple[Any, Json]:
    if op != "map.equals" or g is None or len(a["other"]) != len(state.present.entries):
        return result, seen
    for key in _table(g, "map").last_first():
        value = a["other"].get(str(key))
        if value is None:
            return Refused("TML-13", "java.lang.NullPointerException"), seen
        if value != state.present.entries[key]:
            return result, seen
    return result, seen


def _rounded(g: Any, state: Timeline, op: str, a: Mapping[str, Any], result: Any, seen: Json) -> tuple[Any, Json]:
    return (released_capacity(a["expected_size"]) if op == "capacity" else result), seen


_VERSIONS = "seen in 3.0.0, 3.9.1 and 4.3.0; the source between them reads the same"
_LEFT_IN_DELTA = """SnapshottableHashTable.executeRevert puts the entries of the target snapshot's delta back into
        the table, but leaves them in the delta too."""

machine.deviations += [
    Deviation(
        id="TML-D1",
        clause="TML-11",
        title="After a revert an iteration at an epoch gives elements twice",
        versions=_VERSIONS,
        condition="""A revert to a snapshot put an element back that had been removed or replaced since; the element
        has not been removed or replaced again since. An iteration at that snapshot's epoch, or at an
        earlier one that shows the same entry, gives it once for the table and once more for each delta that
        still holds it.""",
        history=(
            "set.add value=1",
            "getOrCreateSnapshot epoch=0",
            "set.remove value=1",
            "revertToSnapshot epoch=0",
        ),
        cause=_LEFT_IN_DELTA
        + """ HistoricalIterator then finds such an entry in both places and counts on there being only
        one.""",
        effect="""Readers that build a map from the iteration notice nothing, and all readers in the controller do.
        A reader that counts, sums or lists is wrong. The size at the epoch is right, and disagrees with the
        iteration.""",
        fix="Empty the delta of the target snapshot once its entries are back in the table.",
        rewrite=_twice,
        initial=_nothing_stored,
        advance=_advance,
    ),
    Deviation(
        id="TML-D2",
        clause="TML-6",
        title="A lookup at an epoch without a snapshot is answered from the present",
        versions=_VERSIONS,
        condition="""The key (or element) is in the present, its entry was written at or before the epoch asked for
        (its start epoch is not above it), and there is no snapshot at that epoch. Every other read at such
        an epoch is refused.""",
        history=("map.put key=5 value=99", "map.get key=5 epoch=23"),
        cause="""SnapshottableHashTable.snapshottableGet answers from the table if the entry's start epoch allows
        it, before it has looked for the snapshot.""",
        effect="""A read at an epoch whose snapshot was deleted, or that was never taken, goes unnoticed for keys
        that did not change, and fails for the others: whether a caller's mistake shows depends on the
        data.""",
        fix="Look for the snapshot first, as the sizes, the iterators and the scalars do.",
        rewrite=_made_up,
        initial=_nothing_stored,
        advance=_advance,
    ),
    Deviation(
        id="TML-D3",
        clause="TML-11",
        title="An iteration at an epoch misses elements when a delta has more slots than the table",
        versions=_VERSIONS,
        condition="""A delta of the collection has more slots than the collection's own table. Of such a delta an
        iteration looks at the first slot alone; what is only in its other slots is missed. A delta outgrows
        the table when an entry that it holds is added to it again while it is full to its limit (2, 5, 10,
        21, ... entries in 2, 4, 8, 16, ... slots) and the table, with just as many elements at that epoch,
        is full to the same limit. Entries are added again when a snapshot is deleted, or reverted over, and
        its delta folded into that of the snapshot before; and when an element is removed that a revert put
        back.""",
        history=(
            "init setExpectedSize=1",
            "set.add value=1",
            "set.add value=4",
            "getOrCreateSnapshot epoch=0",
            "set.remove value=1",
            "getOrCreateSnapshot epoch=1",
            "set.remove value=4",
            "deleteSnapshot epoch=1",
        ),
        cause="""HashTier.mergeFrom collects the entries of a slot in a list that it never empties, so that those
        of the first slots are added again for every further slot; executeRevert leaves the entries in the
        delta; BaseHashTable.baseAddOrReplace doubles the slots before it knows that it only replaces; and
        HistoricalIterator finds the slot of a delta by a shift that is negative if the delta has more
        slots, which Java takes modulo 32.""",
        effect="""A listing at the stable offset (a resource's configurations, the features, the topics) lacks
        entries that a lookup of the same key finds and that the size counts. In the controller, which
        deletes old snapshots from the oldest on and so folds only when it reverts, it needs a revert and
        then the same removal again before the stable offset moves.""",
        fix="""Empty the list for each slot; empty the delta after a revert; grow only when an entry is added;
        and let the iterator handle a delta with more slots.""",
        rewrite=_lost,
        initial=_nothing_stored,
        advance=_advance,
    ),
    Deviation(
        id="TML-D4",
        clause="TML-11",
        title="An iterator at an epoch gives elements twice if the table grows meanwhile",
        versions=_VERSIONS,
        condition="""An iterator at an epoch is open; the collection's table grows (an addition makes it double its
        slots); after that an element of the epoch is removed or replaced whose slot the iterator has not
        reached.""",
        history=(
            "init setExpectedSize=1",
            "set.add value=1",
            "set.add value=2",
            "getOrCreateSnapshot epoch=0",
            'iterator.open collection="set" epoch=0',
            "set.add value=3",
            "set.remove value=1",
            "iterator.finish",
        ),
        cause="""HistoricalIterator keeps the array of slots that the table had when it was made.
        BaseHashTable.rehash replaces the array: what is removed afterwards stays in the old one, and is in
        the delta too.""",
        effect="""The class promises iteration while the present changes; it holds until the table grows. The
        controller iterates within one event, and is not affected.""",
        fix="""Go by the top bits of the hash: look, for each slot of the old array, at all slots of the present
        array that it was divided into.""",
        rewrite=_left_behind,
        initial=_nothing_stored,
        advance=_advance,
    ),
    Deviation(
        id="TML-D5",
        clause="TML-13",
        title="values().contains asks for a key",
        versions=_VERSIONS,
        condition="""values().contains(x), at any epoch, answers whether x is a key. At an epoch without a snapshot it
        answers true for a key of the present as in TML-D2.""",
        history=("map.put key=1 value=5", "map.values.contains value=5"),
        cause="TimelineHashMap.Values.contains calls containsKey.",
        effect="Wrong wherever it is used; the controller does not. containsValue is right.",
        fix="Go through the values, as containsValue does.",
        rewrite=_asks_keys,
        initial=_nothing_stored,
        advance=_advance,
    ),
    Deviation(
        id="TML-D6",
        clause="TML-13",
        title="equals fails on a map of the same size with other keys",
        versions=_VERSIONS,
        condition="""equals is asked about a map of the same size that lacks a key, and no key that the iteration
        gives before it has another value there.""",
        history=("map.put key=6 value=1", 'map.equals other={"7":1}'),
        cause="TimelineHashMap.equals uses the other map's value before it knows that there is one.",
        effect="A NullPointerException instead of false. In the controller it would be a fatal fault.",
        fix="Compare our value with theirs, null included.",
        rewrite=_equals_fails,
        initial=_nothing_stored,
        advance=_advance,
    ),
    Deviation(
        id="TML-D7",
        clause="TML-22",
        title="The capacity for a huge expected size is too small by half",
        versions=_VERSIONS,
        condition="""The expected size is above 2^24 and is rounded down to a power of two times 0.75 when made a
        32-bit float: 25,165,825 gets 33,554,432 slots, 67,108,864 would be right.""",
        history=("capacity expectedSize=25165825",),
        cause="BaseHashTable.expectedSizeToCapacity divides a float.",
        effect="None that matters: a table somewhat fuller than meant.",
        fix="Divide as double.",
        rewrite=_rounded,
    ),
    Deviation(
        id="TML-D8",
        clause="TML-11",
        title="An iteration at an epoch gives elements that were written after it",
        versions="seen in 3.0.0; fixed in 3.5.2 and 3.6.0 (KAFKA-15271)",
        releases="<3.5.2",
        condition="""An entry was written after the snapshot of that epoch and was replaced or removed after a later
        snapshot that saw it, whose delta therefore holds it, and which is still there. An iteration at the earlier
        epoch gives that entry too; of a delta with more slots than the table, only as TML-D3 says.""",
        history=(
            "getOrCreateSnapshot epoch=0",
            "set.add value=1",
            "getOrCreateSnapshot epoch=1",
            "set.remove value=1",
        ),
        cause="""HistoricalIterator looks at the start epoch of what it finds in the table, and not of what it finds in
        a delta.""",
        effect="""A listing at the stable offset shows what was not committed yet, or shows a key with a later value;
        the size and a lookup of the same key are right.""",
        fix="Leave out what was written after the epoch in a delta too, as 3.5.2 does.",
        rewrite=_too_new,
        initial=_nothing_stored,
        advance=_advance_before_3_5_2,
    ),
    Deviation(
        id="TML-D9",
        clause="TML-19",
        title="The registry keeps every collection alive",
        versions="seen in 3.0.0; fixed in 3.9.1 and 4.0.0 (KAFKA-18063)",
        releases="<3.9.1",
        condition="A collection was made on the registry, and nobody holds it any more.",
        history=('collection.create name="a"', 'collection.drop name="a"', "registry.registered"),
        cause="SnapshotRegistry keeps its collections in a list of ordinary references, and never takes one out.",
        effect="""Every nested collection that a controller or a group coordinator has ever made (the partitions of a
        topic that was deleted, the members of a group that is gone) stays in memory until the process ends, and is
        gone through at every reset.""",
        fix="Hold them by weak references, and clear the list of those that are gone, as 3.9.1 does.",
        rewrite=_registered_for_ever,
        initial=_none_made,
        advance=_another_made,
    ),
]
