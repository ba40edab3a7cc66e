"""Timeline collections: the rules on copies, and the tiers that do without the copies.

`Copies` is the rules: a map and a set of its keys in one registry, and a full copy of both for each snapshot. `Tiers`
is one map as Kafka stores it, entries with start epochs and a delta for each snapshot, with the copies kept beside it
as the judge. `Iteration` is an iterator at an epoch while that map changes. `Scalar` is a number or an object.
Source: Kafka Internals, ch. 11, "Timeline data structures".
"""

from __future__ import annotations

from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Model,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    lemma,
    require,
    step,
    witness,
)


class Key(Sort):
    """A key of the map."""


class Value(Sort):
    """A value."""


E = Size("E")
"""The highest epoch."""
Epoch = Annotated[int, Range(0, E)]
"""0 stands for "no snapshot": none is ever taken at it."""
Start = Annotated[int, Range(1, E + 1)]
"""The epoch after that of the latest snapshot."""


class Copies(Model):
    """The map, the set of its keys, and their copies. The two are always written together, as a controller writes a
    table and an index of it."""

    entries: dict[Key, Value | None]
    keys: set[Key]
    taken: dict[Epoch, bool]
    highest: Epoch
    copied_entries: dict[Epoch, dict[Key, Value | None]]
    copied_keys: dict[Epoch, set[Key]]

    @action("TML-13", "TML-14", who="caller")
    def put(s, k: Key, v: Value) -> None:
        s.next.entries[k] = v
        s.next.keys = s.keys | {k}

    @action("TML-13", "TML-14", who="caller")
    def remove(s, k: Key) -> None:
        require(s.entries[k] is not None)
        s.next.entries[k] = None
        s.next.keys = s.keys - {k}

    @define
    def none_above(s, e: Epoch) -> bool:
        """No snapshot is later than e."""
        return all(not s.taken[f] for f in range(E + 1) if f > e)

    @action("TML-1", "TML-2", "TML-4", "TML-17", who="caller")
    def take_snapshot(s, e: Epoch) -> None:
        require(e > s.highest)
        s.next.taken[e] = True
        s.next.highest = e
        s.next.copied_entries[e] = s.entries
        s.next.copied_keys[e] = s.keys

    @action("TML-3", who="caller")
    def take_snapshot_again(s, e: Epoch) -> None:
        """Nothing happens, whatever was written since."""
        require(s.taken[e], s.none_above(e))

    @define
    def forget(s, low: int, high: int) -> None:
        """The snapshots from low to high are gone."""
        s.next.taken = {e: s.taken[e] and not (low <= e and e <= high) for e in range(E + 1)}
        s.next.copied_entries = {
            e: {k: None if low <= e and e <= high else s.copied_entries[e][k] for k in Key} for e in range(E + 1)
        }
        s.next.copied_keys = {
            e: {k for k in Key if k in s.copied_keys[e] and not (low <= e and e <= high)} for e in range(E + 1)
        }

    @action("TML-7", "TML-17", "TML-18", who="caller")
    def revert(s, e: Epoch) -> None:
        require(s.taken[e])
        s.next.entries = s.copied_entries[e]
        s.next.keys = s.copied_keys[e]
        s.next.highest = e
        s.forget(e + 1, E)

    @action("TML-8", who="caller")
    def delete(s, e: Epoch) -> None:
        require(s.taken[e])
        s.forget(e, e)

    @action("TML-9", who="caller")
    def delete_up_to(s, e: Epoch) -> None:
        s.forget(0, e - 1)

    @action("TML-10", "TML-17", who="caller")
    def reset(s) -> None:
        s.next.entries = {k: None for k in Key}
        s.next.keys = set()
        s.next.highest = 0
        s.forget(0, E)

    @invariant("TML-1", "TML-2")
    def epochs_rise(s) -> bool:
        return not s.taken[0] and all(e <= s.highest for e in range(E + 1) if s.taken[e])

    @invariant("TML-17", "TML-7", "TML-10", "TML-14")
    def one_registry(s) -> bool:
        """The set is the set of the map's keys, now and at every epoch."""
        return all((s.entries[k] is not None) == (k in s.keys) for k in Key) and all(
            (s.copied_entries[e][k] is not None) == (k in s.copied_keys[e])
            for e in range(E + 1)
            for k in Key
            if s.taken[e]
        )

    @step("TML-4", "TML-3", "TML-8", "TML-9", "TML-12", "TML-16")
    def past_does_not_change(s) -> bool:
        """A snapshot that stays shows what it showed."""
        return all(
            s.next.copied_entries[e][k] == s.copied_entries[e][k]
            and (k in s.next.copied_keys[e]) == (k in s.copied_keys[e])
            for e in range(E + 1)
            for k in Key
            if s.taken[e] and s.next.taken[e]
        )

    @step("TML-1", "TML-2")
    def new_epochs_are_above(s) -> bool:
        return all(e > s.highest for e in range(E + 1) if s.next.taken[e] and not s.taken[e])

    @step("TML-7", "TML-10")
    def the_highest_epoch_falls_to_that_of_a_snapshot(s) -> bool:
        """With a revert, to the one that is reverted to, which stays."""
        return s.next.highest >= s.highest or s.next.highest == 0 or s.next.taken[s.next.highest]

    @lemma("TML-8", "TML-9")
    def what_is_deleted_is_forgotten(s) -> bool:
        return all(
            s.taken[e] or (s.copied_entries[e][k] is None and k not in s.copied_keys[e])
            for e in range(E + 1)
            for k in Key
        )

    @witness
    def the_latest_is_deleted(s) -> bool:
        return not s.taken[s.highest] and any(s.taken[e] for e in range(E + 1))

    @witness
    def removed_since_a_snapshot(s) -> bool:
        return any(
            s.taken[e] and s.copied_entries[e][k] is not None and s.entries[k] is None
            for e in range(E + 1)
            for k in Key
        )

    @witness
    def three_copies_differ(s) -> bool:
        """Two snapshots and the present, all different."""
        return any(
            s.taken[e] and s.taken[f] and s.copied_keys[e] != s.copied_keys[f] and s.keys != s.copied_keys[f] and e < f
            for e in range(E + 1)
            for f in range(E + 1)
        )

    @witness
    def a_gap(s) -> bool:
        """The epoch of a deleted snapshot, below one that stays."""
        return any(s.taken[f] and not s.taken[e] and e > 0 and e < f for e in range(E + 1) for f in range(E + 1))


class Tiers(Model):
    """One map as Kafka stores it. A revert over later snapshots deletes these first, from the oldest on, each as
    `delete` does, and then puts the map back (`restore`); deleting up to an epoch is `delete` of the oldest, again and
    again. So neither needs an action of its own."""

    taken: dict[Epoch, bool]
    highest: Epoch
    now: dict[Key, Value | None]
    copy: dict[Epoch, dict[Key, Value | None]]
    held: dict[Key, Value | None]
    start: dict[Key, Start]
    kept: dict[Epoch, dict[Key, Value | None]]
    kept_start: dict[Epoch, dict[Key, Start]]
    changed: dict[Epoch, bool]
    sized: dict[Epoch, set[Key]]

    @define
    def none_above(s, e: Epoch) -> bool:
        """No snapshot is later than e."""
        return all(not s.taken[f] for f in range(E + 1) if f > e)

    @define
    def is_latest(s, e: Epoch) -> bool:
        """e is the epoch of the latest snapshot, or 0 if there is none."""
        return (e == 0 or s.taken[e]) and s.none_above(e)

    @define
    def is_before(s, b: Epoch, e: Epoch) -> bool:
        """b is the epoch of the snapshot before e, or 0 if there is none."""
        return b < e and (b == 0 or s.taken[b]) and all(not s.taken[f] for f in range(E + 1) if b < f and f < e)

    @define
    def note(s, k: Key, latest: Epoch) -> None:
        """The latest snapshot takes over the entry of k if it saw it, and the size on the first change."""
        if latest > 0 and (s.held[k] is None or s.start[k] <= latest):
            s.next.changed[latest] = True
            if not s.changed[latest]:
                s.next.sized[latest] = {x for x in Key if s.held[x] is not None}
            if s.held[k] is not None:
                s.next.kept[latest][k] = s.held[k]
                s.next.kept_start[latest][k] = s.start[k]

    @action("TML-21", "TML-20", "TML-13", who="caller")
    def put(s, k: Key, v: Value, latest: Epoch) -> None:
        require(s.is_latest(latest))
        s.next.now[k] = v
        s.note(k, latest)
        s.next.held[k] = v
        s.next.start[k] = latest + 1

    @action("TML-21", "TML-20", "TML-13", who="caller")
    def remove(s, k: Key, latest: Epoch) -> None:
        require(s.is_latest(latest), s.held[k] is not None)
        s.next.now[k] = None
        s.note(k, latest)
        s.next.held[k] = None
        s.next.start[k] = 1

    @action("TML-1", "TML-2", "TML-4", who="caller")
    def take_snapshot(s, e: Epoch) -> None:
        require(e > s.highest)
        s.next.taken[e] = True
        s.next.highest = e
        s.next.copy[e] = s.now

    @define
    def close(s, e: Epoch) -> None:
        """Whoever reads at e cannot go on."""

    @define
    def drop(s, e: Epoch) -> None:
        s.next.kept[e] = {k: None for k in Key}
        s.next.kept_start[e] = {k: 1 for k in Key}
        s.next.changed[e] = False
        s.next.sized[e] = set()

    @action("TML-8", "TML-9", "TML-20", "TML-21", who="caller")
    def delete(s, e: Epoch, before: Epoch) -> None:
        """The snapshot before takes over the delta: as it is if it has none, else what it saw itself."""
        require(s.taken[e], s.is_before(before, e))
        s.next.taken[e] = False
        s.next.copy[e] = {k: None for k in Key}
        if before > 0 and not s.changed[before]:
            s.next.kept[before] = s.kept[e]
            s.next.kept_start[before] = s.kept_start[e]
            s.next.changed[before] = s.changed[e]
            s.next.sized[before] = s.sized[e]
        elif before > 0:
            s.next.kept[before] = {
                k: s.kept[e][k] if s.kept[e][k] is not None and s.kept_start[e][k] <= before else s.kept[before][k]
                for k in Key
            }
            s.next.kept_start[before] = {
                k: s.kept_start[e][k]
                if s.kept[e][k] is not None and s.kept_start[e][k] <= before
                else s.kept_start[before][k]
                for k in Key
            }
        s.drop(e)
        s.close(e)

    @action("TML-7", "TML-20", "TML-21", who="caller")
    def restore(s, e: Epoch) -> None:
        """The end of a revert to the latest snapshot: what was written since goes, what was moved comes back."""
        require(s.taken[e], s.none_above(e))
        s.next.highest = e
        s.next.now = s.copy[e]
        s.next.held = {
            k: s.kept[e][k] if s.kept[e][k] is not None else (s.held[k] if s.start[k] <= e else None) for k in Key
        }
        s.next.start = {
            k: s.kept_start[e][k] if s.kept[e][k] is not None else (s.start[k] if s.start[k] <= e else 1) for k in Key
        }
        s.drop(e)

    @action("TML-10", who="caller")
    def reset(s) -> None:
        s.next.taken = {e: False for e in range(E + 1)}
        s.next.highest = 0
        s.next.now = {k: None for k in Key}
        s.next.held = {k: None for k in Key}
        s.next.start = {k: 1 for k in Key}
        s.next.copy = {e: {k: None for k in Key} for e in range(E + 1)}
        s.next.kept = {e: {k: None for k in Key} for e in range(E + 1)}
        s.next.kept_start = {e: {k: 1 for k in Key} for e in range(E + 1)}
        s.next.changed = {e: False for e in range(E + 1)}
        s.next.sized = {e: set() for e in range(E + 1)}
        s.close(0)

    @define
    def in_table(s, e: Epoch, k: Key) -> bool:
        """The present has an entry of k that was written at or before e."""
        return s.held[k] is not None and s.start[k] <= e

    @invariant("TML-5", "TML-7", "TML-10", "TML-13")
    def present_is_right(s) -> bool:
        return all(s.held[k] == s.now[k] for k in Key)

    @invariant("TML-20", "TML-4", "TML-8")
    def table_shows_the_copy(s) -> bool:
        return all(s.held[k] == s.copy[e][k] for e in range(E + 1) for k in Key if s.taken[e] and s.in_table(e, k))

    @invariant("TML-20", "TML-4", "TML-8")
    def first_delta_shows_the_copy(s) -> bool:
        """If the table has no such entry, the first delta from e on that holds k decides."""
        return all(
            s.copy[e][k] == (s.kept[f][k] if s.kept_start[f][k] <= e else None)
            for e in range(E + 1)
            for f in range(E + 1)
            for k in Key
            if s.taken[e]
            and e <= f
            and s.kept[f][k] is not None
            and not s.in_table(e, k)
            and all(s.kept[g][k] is None for g in range(E + 1) if e <= g and g < f)
        )

    @invariant("TML-20", "TML-4", "TML-8")
    def nothing_shows_nothing(s) -> bool:
        return all(
            s.copy[e][k] is None
            for e in range(E + 1)
            for k in Key
            if s.taken[e] and not s.in_table(e, k) and all(s.kept[f][k] is None for f in range(E + 1) if e <= f)
        )

    @invariant("TML-21", "TML-11")
    def never_in_two_places(s) -> bool:
        """Of the places where an iteration at e looks, the table and the deltas from e on, one at most has k."""
        return all(
            not (s.in_table(e, k) and s.kept[f][k] is not None and s.kept_start[f][k] <= e)
            and not any(
                s.kept[f][k] is not None
                and s.kept_start[f][k] <= e
                and s.kept[g][k] is not None
                and s.kept_start[g][k] <= e
                for g in range(E + 1)
                if f < g
            )
            for e in range(E + 1)
            for f in range(E + 1)
            for k in Key
            if s.taken[e] and e <= f
        )

    @invariant("TML-16")
    def first_size_is_right(s) -> bool:
        """The first size kept from e on is the number of keys at e; said of the keys themselves."""
        return all(
            (k in s.sized[f]) == (s.copy[e][k] is not None)
            for e in range(E + 1)
            for f in range(E + 1)
            for k in Key
            if s.taken[e]
            and e <= f
            and s.changed[f]
            and all(not s.changed[g] for g in range(E + 1) if e <= g and g < f)
        )

    @invariant("TML-16")
    def present_size_is_right(s) -> bool:
        """If none is kept from e on, the number of keys is what it was at e."""
        return all(
            (s.held[k] is not None) == (s.copy[e][k] is not None)
            for e in range(E + 1)
            for k in Key
            if s.taken[e] and all(not s.changed[g] for g in range(E + 1) if e <= g)
        )

    @step("TML-16")
    def a_size_is_kept_on_a_change(s) -> bool:
        """Something was written since, or a later snapshot's is handed down."""
        return all(
            s.changed[e]
            or not s.next.changed[e]
            or any(s.next.held[k] != s.held[k] or s.next.start[k] != s.start[k] for k in Key)
            or any(s.taken[f] and not s.next.taken[f] for f in range(E + 1))
            for e in range(E + 1)
        )

    @step("TML-7", "TML-10")
    def the_highest_epoch_falls_to_that_of_a_snapshot(s) -> bool:
        """With a revert, to the one that is reverted to, which stays."""
        return s.next.highest >= s.highest or s.next.highest == 0 or s.next.taken[s.next.highest]

    # lemmas

    @lemma("TML-8", "TML-9")
    def what_is_deleted_is_forgotten(s) -> bool:
        return all(s.taken[e] or s.copy[e][k] is None for e in range(E + 1) for k in Key)

    @lemma()
    def no_entry_no_start(s) -> bool:
        return all(s.held[k] is not None or s.start[k] == 1 for k in Key) and all(
            s.kept[e][k] is not None or s.kept_start[e][k] == 1 for e in range(E + 1) for k in Key
        )

    @lemma()
    def no_change_no_size(s) -> bool:
        return all(s.changed[e] or k not in s.sized[e] for e in range(E + 1) for k in Key)

    @lemma()
    def epochs_rise(s) -> bool:
        return not s.taken[0] and all(e <= s.highest for e in range(E + 1) if s.taken[e])

    @lemma()
    def only_snapshots_keep(s) -> bool:
        return all((s.taken[e] or not s.changed[e]) for e in range(E + 1)) and all(
            s.kept[e][k] is None for e in range(E + 1) for k in Key if not s.changed[e]
        )

    @lemma()
    def written_by_now(s) -> bool:
        return all(s.start[k] <= s.highest + 1 for k in Key)

    @lemma()
    def kept_was_seen(s) -> bool:
        """A delta holds what its own snapshot saw."""
        return all(s.kept_start[f][k] <= f for f in range(E + 1) for k in Key if s.kept[f][k] is not None)

    @lemma()
    def kept_shows_the_copy(s) -> bool:
        return all(
            s.copy[e][k] == s.kept[f][k]
            for e in range(E + 1)
            for f in range(E + 1)
            for k in Key
            if s.taken[e] and e <= f and s.kept[f][k] is not None and s.kept_start[f][k] <= e
        )

    @lemma()
    def copy_is_somewhere(s) -> bool:
        return all(
            s.in_table(e, k)
            or any(s.kept[f][k] is not None and s.kept_start[f][k] <= e for f in range(E + 1) if e <= f)
            for e in range(E + 1)
            for k in Key
            if s.taken[e] and s.copy[e][k] is not None
        )

    @lemma()
    def later_deltas_are_newer(s) -> bool:
        return all(
            s.kept_start[f][k] > e
            for e in range(E + 1)
            for f in range(E + 1)
            for k in Key
            if e < f and s.kept[e][k] is not None and s.kept[f][k] is not None
        )

    @lemma()
    def table_is_newer(s) -> bool:
        return all(
            s.start[k] > e for e in range(E + 1) for k in Key if s.kept[e][k] is not None and s.held[k] is not None
        )

    @lemma()
    def unchanged_means_older_or_after_the_next(s) -> bool:
        """What was written after a snapshot without a delta was written after a later snapshot too."""
        return all(
            any(s.taken[f] and p < f and f < s.start[k] for f in range(E + 1))
            for p in range(E + 1)
            for k in Key
            if s.taken[p] and not s.changed[p] and s.held[k] is not None and s.start[k] > p
        )

    @lemma()
    def unchanged_means_older_or_after_the_next_in_deltas(s) -> bool:
        return all(
            any(s.taken[f] and p < f and f < s.kept_start[g][k] for f in range(E + 1))
            for p in range(E + 1)
            for g in range(E + 1)
            for k in Key
            if s.taken[p] and not s.changed[p] and s.kept[g][k] is not None and s.kept_start[g][k] > p and p <= g
        )

    @witness
    def all_are_deleted(s) -> bool:
        return s.highest > 0 and all(not s.taken[e] for e in range(E + 1))

    @witness
    def the_latest_is_deleted(s) -> bool:
        return not s.taken[s.highest] and any(s.taken[e] for e in range(E + 1))

    @witness
    def removed_since_a_snapshot(s) -> bool:
        return any(s.taken[e] and s.copy[e][k] is not None and s.held[k] is None for e in range(E + 1) for k in Key)

    @witness
    def read_from_a_later_delta(s) -> bool:
        return any(
            s.taken[e] and e < f and s.kept[f][k] is not None and s.kept_start[f][k] <= e and s.held[k] is not None
            for e in range(E + 1)
            for f in range(E + 1)
            for k in Key
        )

    @witness
    def too_new_in_a_delta(s) -> bool:
        """A read at e meets an entry that was written later: there was none at e."""
        return any(
            s.taken[e] and e < f and s.kept[f][k] is not None and s.kept_start[f][k] > e
            for e in range(E + 1)
            for f in range(E + 1)
            for k in Key
        )


class Iteration(Tiers):
    """An iterator at the epoch `reading` (0: none is open), which looks at key after key, in any order, each once, in
    the table and in the deltas from that epoch on, while the map changes. `given_again` is never emptied: nothing may
    ever be in it."""

    reading: Epoch
    looked: set[Key]
    given: set[Key]
    given_again: set[Key]

    @define
    def close(s, e: Epoch) -> None:
        if s.reading == e or e == 0:
            s.next.reading = 0
            s.next.looked = set()
            s.next.given = set()

    @action("TML-11", "TML-6", who="caller")
    def open_iterator(s, e: Epoch) -> None:
        require(s.taken[e])
        s.next.reading = e
        s.next.looked = set()
        s.next.given = set()

    @action("TML-11", who="iterator")
    def look(s, k: Key) -> None:
        require(s.reading > 0, k not in s.looked)
        s.next.looked = s.looked | {k}
        if s.in_table(s.reading, k) or any(
            s.kept[f][k] is not None and s.kept_start[f][k] <= s.reading for f in range(E + 1) if s.reading <= f
        ):
            s.next.given = s.given | {k}
        if any(
            s.kept[f][k] is not None
            and s.kept_start[f][k] <= s.reading
            and (
                s.in_table(s.reading, k)
                or any(s.kept[g][k] is not None and s.kept_start[g][k] <= s.reading for g in range(E + 1) if f < g)
            )
            for f in range(E + 1)
            if s.reading <= f
        ):
            s.next.given_again = s.given_again | {k}

    @invariant("TML-11", "TML-6")
    def reads_a_snapshot(s) -> bool:
        return s.reading == 0 or s.taken[s.reading]

    @invariant("TML-11")
    def none_twice(s) -> bool:
        return all(k not in s.given_again for k in Key)

    @invariant("TML-11")
    def none_missed_and_none_more(s) -> bool:
        return s.reading == 0 or all((k in s.given) == (s.copy[s.reading][k] is not None) for k in Key if k in s.looked)

    @step("TML-6")
    def open_as_long_as_its_snapshot_is_there(s) -> bool:
        return s.reading == 0 or s.next.reading != 0 or not s.next.taken[s.reading]

    @lemma()
    def nothing_is_looked_at_unless_it_is_open(s) -> bool:
        return s.reading > 0 or all(k not in s.looked and k not in s.given for k in Key)

    @lemma()
    def given_was_looked_at(s) -> bool:
        return s.given <= s.looked

    @witness
    def all_given_after_a_change(s) -> bool:
        return s.reading > 0 and s.looked == set(Key) and s.given == set(Key) and all(s.held[k] is None for k in Key)


class Scalar(Model):
    """A timeline object, or a number: the first change after a snapshot leaves the old value there. `now` and `copy`
    are what it ought to show. Revert and deleting up to an epoch are put together as in `Tiers`."""

    first: Value
    value: Value
    now: Value
    taken: dict[Epoch, bool]
    highest: Epoch
    copy: dict[Epoch, Value | None]
    kept: dict[Epoch, Value | None]

    @initial
    def start(s, v: Value) -> None:
        s.next.first = v
        s.next.value = v
        s.next.now = v

    @define
    def none_above(s, e: Epoch) -> bool:
        """No snapshot is later than e."""
        return all(not s.taken[f] for f in range(E + 1) if f > e)

    @action("TML-15", who="caller")
    def set_value(s, v: Value, latest: Epoch) -> None:
        require(latest == 0 or s.taken[latest], s.none_above(latest))
        s.next.now = v
        s.next.value = v
        if latest > 0 and s.kept[latest] is None:
            s.next.kept[latest] = s.value

    @action("TML-15", "TML-4", who="caller")
    def take_snapshot(s, e: Epoch) -> None:
        require(e > s.highest)
        s.next.taken[e] = True
        s.next.highest = e
        s.next.copy[e] = s.now

    @action("TML-15", "TML-8", "TML-9", who="caller")
    def delete(s, e: Epoch, before: Epoch) -> None:
        """The snapshot before takes over the old value, unless it has one of its own."""
        require(s.taken[e], before < e, before == 0 or s.taken[before])
        require(all(not s.taken[f] for f in range(E + 1) if before < f and f < e))
        s.next.taken[e] = False
        s.next.copy[e] = None
        if before > 0 and s.kept[before] is None:
            s.next.kept[before] = s.kept[e]
        s.next.kept[e] = None

    @action("TML-15", "TML-7", who="caller")
    def restore(s, e: Epoch, was: Value, old: Value) -> None:
        """`was` is the copy's value, `old` the one that was kept, or still is the present one."""
        require(s.none_above(e), s.copy[e] == was)
        require(s.kept[e] == old or (s.kept[e] is None and s.value == old))
        s.next.highest = e
        s.next.now = was
        s.next.value = old
        s.next.kept[e] = None

    @action("TML-15", "TML-10", who="caller")
    def reset(s) -> None:
        s.next.value = s.first
        s.next.now = s.first
        s.next.highest = 0
        s.next.taken = {e: False for e in range(E + 1)}
        s.next.copy = {e: None for e in range(E + 1)}
        s.next.kept = {e: None for e in range(E + 1)}

    @invariant("TML-15", "TML-7", "TML-10")
    def present_is_right(s) -> bool:
        return s.value == s.now

    @invariant("TML-15", "TML-4", "TML-8")
    def first_kept_value_shows_the_copy(s) -> bool:
        return all(
            s.kept[f] == s.copy[e]
            for e in range(E + 1)
            for f in range(E + 1)
            if s.taken[e]
            and e <= f
            and s.kept[f] is not None
            and all(s.kept[g] is None for g in range(E + 1) if e <= g and g < f)
        )

    @invariant("TML-15", "TML-4", "TML-8")
    def present_shows_the_copy(s) -> bool:
        """If no value is kept from e on."""
        return all(
            s.copy[e] == s.value
            for e in range(E + 1)
            if s.taken[e] and all(s.kept[f] is None for f in range(E + 1) if e <= f)
        )

    @step("TML-7", "TML-10")
    def the_highest_epoch_falls_to_that_of_a_snapshot(s) -> bool:
        """With a revert, to the one that is reverted to, which stays."""
        return s.next.highest >= s.highest or s.next.highest == 0 or s.next.taken[s.next.highest]

    @lemma()
    def epochs_rise(s) -> bool:
        return not s.taken[0] and all(e <= s.highest for e in range(E + 1) if s.taken[e])

    @lemma()
    def only_snapshots_keep(s) -> bool:
        return all(s.taken[e] or s.kept[e] is None for e in range(E + 1))

    @lemma()
    def every_snapshot_and_nothing_else_has_a_copy(s) -> bool:
        return all((s.copy[e] is not None) == s.taken[e] for e in range(E + 1))

    @lemma()
    def kept_is_the_copy(s) -> bool:
        return all(s.kept[e] == s.copy[e] for e in range(E + 1) if s.kept[e] is not None)

    @lemma()
    def unchanged_copies_agree(s) -> bool:
        return all(
            s.copy[e] == s.copy[f]
            for e in range(E + 1)
            for f in range(E + 1)
            if s.taken[e] and s.taken[f] and e <= f and all(s.kept[g] is None for g in range(E + 1) if e <= g and g < f)
        )

    @witness
    def all_are_deleted(s) -> bool:
        return s.highest > 0 and all(not s.taken[e] for e in range(E + 1))

    @witness
    def the_latest_is_deleted(s) -> bool:
        return not s.taken[s.highest] and any(s.taken[e] for e in range(E + 1))

    @witness
    def read_from_a_later_snapshot(s) -> bool:
        return any(
            s.taken[e] and s.kept[e] is None and e < f and s.kept[f] is not None and s.kept[f] != s.value
            for e in range(E + 1)
            for f in range(E + 1)
        )


MODELS = [
    Expectation(Copies, {"Key": 2, "Value": 2, "E": 3}, distinct=9_999, generated=166_396, depth=12),
    Expectation(Tiers, {"Key": 2, "Value": 2, "E": 3}, distinct=44_532, generated=447_035, depth=12),
    Expectation(Iteration, {"Key": 2, "Value": 1, "E": 3}, distinct=35_462, generated=395_580, depth=15),
    Expectation(Scalar, {"Value": 3, "E": 3}, distinct=1_404, generated=10_425, depth=8),
]
