"""Leader epochs beside the log: what is remembered, what is on the disk, and what a restart makes of it.

`Entries` is the cache alone, call by call. `Replica` is one replica's log with it: leaders and followers append, logs
are cut at both ends, and a crash may come at any moment, before a truncation has reached the file too.

What was simplified. A batch is one record. A leader's or follower's next batch has no lower epoch than the last record
and the latest entry: a fetch names the latest entry's epoch, and a leader that does not know it answers where to cut
(KIP-320, KIP-595). Logs that are emptied and begun at another offset are left out. Every whole file is durable when it
was written: how that is done is the checkpoint file's own model.

Source: Kafka Internals, ch. 03, "LeaderEpochFileCache"; KIP-101, KIP-279; LeaderEpochFileCache and LogLoader,
Kafka 4.3.0.
"""

from __future__ import annotations

from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Flag,
    Model,
    Range,
    Size,
    action,
    define,
    initial,
    invariant,
    leads_to,
    lemma,
    require,
    step,
    witness,
)

E = Size("E")
"""The highest epoch."""
L = Size("L")
"""The highest offset."""
FIXED = Flag("FIXED")
"""An append whose epoch is the latest one already has a waiting truncation written first. Kafka 4.3.0 does not."""
Epoch = Annotated[int, Range(0, E)]
Offset = Annotated[int, Range(0, L)]
Start = Annotated[int, Range(-1, L)]
"""Where an epoch began; -1 without an entry."""


class Entries(Model):
    """`start` is where each epoch began, -1 without an entry; `stored` the same in the file."""

    start: dict[Epoch, Start]
    stored: dict[Epoch, Start]
    scheduled: bool

    @initial
    def empty(s) -> None:
        s.next.start = {e: -1 for e in range(E + 1)}
        s.next.stored = {e: -1 for e in range(E + 1)}

    @define
    def needed(s, e: Epoch, o: Offset) -> bool:
        """An assignment is, unless e is the latest epoch and began no later."""
        known = s.start[e]
        return known < 0 or known > o or any(f > e and s.start[f] >= 0 for f in range(E + 1))

    @action("LEC-2", "LEC-4", who="leader or follower")
    def assign(s, e: Epoch, o: Offset) -> None:
        """From the latest down, whatever is no lower in epoch or in offset goes: entries rise, so that is all of it."""
        require(s.needed(e, o))
        after = {
            f: o if f == e else -1 if f > e or (s.start[f] >= 0 and s.start[f] >= o) else s.start[f]
            for f in range(E + 1)
        }
        s.next.start = after
        s.next.stored = after

    @action("LEC-5", "LEC-7", who="follower")
    def truncate_from_end(s, o: Offset) -> None:
        require(any(s.start[e] >= 0 and s.start[e] >= o for e in range(E + 1)))
        s.next.start = {e: -1 if s.start[e] >= 0 and s.start[e] >= o else s.start[e] for e in range(E + 1)}
        s.next.scheduled = True

    @action("LEC-6", "LEC-7", who="retention, DeleteRecords")
    def truncate_from_start(s, o: Offset) -> None:
        require(any(s.start[e] >= 0 and s.start[e] <= o for e in range(E + 1)))
        s.next.start = {
            e: s.start[e]
            if s.start[e] < 0 or s.start[e] > o
            else -1
            if any(f > e and s.start[f] >= 0 and s.start[f] <= o for f in range(E + 1))
            else o
            for e in range(E + 1)
        }
        s.next.scheduled = True

    @action("LEC-8", who="anybody")
    def clear(s) -> None:
        s.next.start = {e: -1 for e in range(E + 1)}
        s.next.stored = {e: -1 for e in range(E + 1)}

    @action("LEC-7", who="scheduler", fair="weak")
    def write(s) -> None:
        require(s.scheduled)
        s.next.stored = s.start
        s.next.scheduled = False

    @action("LEC-7", "LEC-9", who="crash")
    def reopen(s) -> None:
        s.next.start = s.stored
        s.next.scheduled = False

    @invariant("LEC-1", "LEC-2")
    def epochs_and_offsets_rise(s) -> bool:
        return all(
            s.start[e] < 0 or s.start[f] < 0 or s.start[e] < s.start[f]
            for e in range(E + 1)
            for f in range(E + 1)
            if e < f
        )

    @invariant("LEC-1", "LEC-9")
    def the_file_rises_too(s) -> bool:
        """So that assigning its lines in order gives just them."""
        return all(
            s.stored[e] < 0 or s.stored[f] < 0 or s.stored[e] < s.stored[f]
            for e in range(E + 1)
            for f in range(E + 1)
            if e < f
        )

    @invariant("LEC-4", "LEC-7", "LEC-8")
    def the_file_lags_by_truncations_alone(s) -> bool:
        """An entry is in the file as it is, or with an earlier start if it is the first one; nothing waits unknown."""
        return all(
            (s.scheduled or s.start[e] == s.stored[e])
            and (
                s.start[e] < 0
                or s.stored[e] == s.start[e]
                or (
                    s.stored[e] >= 0
                    and s.stored[e] < s.start[e]
                    and all(f >= e or s.start[f] < 0 for f in range(E + 1))
                )
            )
            for e in range(E + 1)
        )

    @step("LEC-2")
    def an_assignment_moves_no_latest_start_up(s) -> bool:
        """What is assigned is written at once; starts move up with the log's, and that is written later."""
        return all(s.next.stored[e] == s.stored[e] for e in range(E + 1)) or all(
            s.start[e] < 0
            or s.next.start[e] <= s.start[e]
            or any(f > e and s.start[f] >= 0 and s.next.start[f] < 0 for f in range(E + 1))
            for e in range(E + 1)
        )

    @step("LEC-2")
    def an_assignment_that_changes_nothing_writes_nothing(s) -> bool:
        return (
            all(s.next.stored[e] == s.stored[e] for e in range(E + 1))
            or any(s.next.start[e] != s.start[e] for e in range(E + 1))
            or all(s.next.stored[e] < 0 for e in range(E + 1))
            or not s.next.scheduled
        )

    @step("LEC-5", "LEC-6")
    def no_write_waits_without_entries(s) -> bool:
        return s.scheduled or not s.next.scheduled or any(s.start[e] >= 0 for e in range(E + 1))

    @leads_to("LEC-7")
    def what_is_scheduled_is_written(s) -> tuple[bool, bool]:
        return s.scheduled, not s.scheduled

    @witness
    def the_file_has_more(s) -> bool:
        return s.start[0] < 0 and s.start[1] >= 0 and s.stored[0] >= 0

    @witness
    def the_first_entry_moved(s) -> bool:
        return s.stored[0] >= 0 and s.start[0] >= 0 and s.stored[0] < s.start[0]


class Replica(Model):
    """One log, its entries and their file. `log` is the epoch of each record, of no meaning outside the log's ends;
    `known` is from where on entries know the records: the highest log start, as far as the log was not cut below it."""

    log: dict[Offset, Epoch]
    log_start: Offset
    log_end: Offset
    known: Offset
    start: dict[Epoch, Start]
    stored: dict[Epoch, Start]

    @initial
    def empty(s) -> None:
        s.next.start = {e: -1 for e in range(E + 1)}
        s.next.stored = {e: -1 for e in range(E + 1)}

    @define
    def is_latest(s, e: Epoch) -> bool:
        return s.start[e] >= 0 and all(f <= e or s.start[f] < 0 for f in range(E + 1))

    @define
    def not_below_the_latest(s, e: Epoch) -> bool:
        return all(f <= e or s.start[f] < 0 for f in range(E + 1))

    @define
    def cut(s, began: Start, superseded: bool, first: Offset, end: Offset) -> Start:
        """What loading with these ends makes of one entry; `superseded`: a later one begins at `first` or before."""
        return -1 if began < 0 or began >= end else began if began > first else -1 if superseded else first

    @define
    def superseded(s, e: Epoch, first: Offset, end: Offset) -> bool:
        return any(f > e and s.stored[f] >= 0 and s.stored[f] <= first and s.stored[f] < end for f in range(E + 1))

    @action("LEC-2", "LEC-4", who="leader")
    def lead(s, e: Epoch) -> None:
        """A new leader's epoch begins at the log's end, before it has written anything. One that began there goes."""
        require(s.not_below_the_latest(e), s.start[e] < 0)
        require(s.log_end == 0 or s.log[s.log_end - 1] <= e)
        after = {f: s.log_end if f == e else -1 if s.start[f] == s.log_end else s.start[f] for f in range(E + 1)}
        s.next.start = after
        s.next.stored = after

    @action("LEC-4", "LEC-19", "LEC-20", who="leader or follower")
    def append(s, e: Epoch) -> None:
        """First the epoch is assigned, then the record is written."""
        require(s.log_end < L, s.not_below_the_latest(e), s.log_end == 0 or s.log[s.log_end - 1] <= e)
        after = {
            f: s.start[f] if s.is_latest(e) else s.log_end if f == e else -1 if s.start[f] == s.log_end else s.start[f]
            for f in range(E + 1)
        }
        s.next.start = after
        if FIXED or not s.is_latest(e):
            s.next.stored = after
        s.next.log[s.log_end] = e
        s.next.log_end = s.log_end + 1

    @action("LEC-5", "LEC-7", who="follower")
    def truncate(s, o: Offset) -> None:
        """Where the log parts from the leader's; at the log's end, too, where a leader's entry may lie that wrote
        nothing."""
        require(s.log_start <= o, o <= s.log_end)
        s.next.log_end = o
        s.next.known = min(s.known, o)
        s.next.start = {e: -1 if s.start[e] >= 0 and s.start[e] >= o else s.start[e] for e in range(E + 1)}

    @action("LEC-6", "LEC-7", who="retention, DeleteRecords")
    def raise_start(s, o: Offset) -> None:
        require(s.log_start < o, o <= s.log_end)
        s.next.log_start = o
        s.next.known = max(s.known, o)
        s.next.start = {
            e: s.start[e]
            if s.start[e] < 0 or s.start[e] > o
            else -1
            if any(f > e and s.start[f] >= 0 and s.start[f] <= o for f in range(E + 1))
            else o
            for e in range(E + 1)
        }

    @action("LEC-7", who="scheduler", fair="weak")
    def write(s) -> None:
        require(s.stored != s.start)
        s.next.stored = s.start

    @action("LEC-9", "LEC-21", who="crash")
    def restart(s, first: Offset, end: Offset) -> None:
        """The log comes back with what was checkpointed of its start, and what was left of its end."""
        require(first <= s.log_start, first <= end, end <= s.log_end)
        s.next.log_start = first
        s.next.log_end = end
        s.next.known = min(s.known, end)
        s.next.start = {e: s.cut(s.stored[e], s.superseded(e, first, end), first, end) for e in range(E + 1)}

    @invariant("LEC-1")
    def entries_rise(s) -> bool:
        return all(
            s.start[e] < 0 or s.start[f] < 0 or s.start[e] < s.start[f]
            for e in range(E + 1)
            for f in range(E + 1)
            if e < f
        )

    @lemma("LEC-1")
    def stored_entries_rise(s) -> bool:
        return all(
            s.stored[e] < 0 or s.stored[f] < 0 or s.stored[e] < s.stored[f]
            for e in range(E + 1)
            for f in range(E + 1)
            if e < f
        )

    @lemma("LEC-11")
    def entries_lie_within_the_log(s) -> bool:
        """The first one moves with the log start."""
        return (
            s.log_start <= s.log_end
            and s.known <= s.log_end
            and all(s.start[e] < 0 or (s.log_start <= s.start[e] and s.start[e] <= s.log_end) for e in range(E + 1))
        )

    @lemma("LEC-4")
    def what_began_after_the_log_start_is_stored(s) -> bool:
        """As it is: only the first entry is ever moved."""
        return all(s.start[e] < 0 or s.start[e] <= s.log_start or s.stored[e] == s.start[e] for e in range(E + 1))

    @invariant("LEC-19")
    def epochs_never_fall(s) -> bool:
        return all(s.log[m] <= s.log[n] for m in range(L + 1) for n in range(L + 1) if m < n and n < s.log_end)

    @invariant("LEC-20", "LEC-5", "LEC-6")
    def records_are_known(s) -> bool:
        """By the entry of their epoch, and by no later one."""
        return not FIXED or all(
            s.start[s.log[n]] >= 0
            and s.start[s.log[n]] <= n
            and all(f <= s.log[n] or s.start[f] < 0 or s.start[f] > n for f in range(E + 1))
            for n in range(L + 1)
            if s.known <= n and n < s.log_end
        )

    @invariant("LEC-4")
    def records_are_known_to_the_file(s) -> bool:
        """No record's epoch is missing in the file, and no later entry there covers it."""
        return not FIXED or all(
            s.stored[s.log[n]] >= 0
            and s.stored[s.log[n]] <= n
            and all(f <= s.log[n] or s.stored[f] < 0 or s.stored[f] > n for f in range(E + 1))
            for n in range(L + 1)
            if s.known <= n and n < s.log_end
        )

    @invariant("LEC-9", "LEC-7")
    def a_restart_comes_to_the_same(s) -> bool:
        """Whatever has not been written, but for an entry of a leader that wrote nothing, and for a log without
        records."""
        return (
            not FIXED
            or s.log_start == s.log_end
            or all(
                s.start[e] == s.log_end
                or s.cut(s.stored[e], s.superseded(e, s.log_start, s.log_end), s.log_start, s.log_end) == s.start[e]
                for e in range(E + 1)
            )
        )

    @invariant("LEC-10", "LEC-11")
    def end_offsets_are_right(s) -> bool:
        """Where the next higher entry begins: within the log, and no record before it is of a higher epoch."""
        return all(
            s.start[f] < 0
            or (
                s.start[f] <= s.log_end
                and (not FIXED or all(s.log[n] < f for n in range(L + 1) if s.known <= n and n < s.start[f]))
            )
            for f in range(E + 1)
        )

    @step("LEC-19")
    def an_epoch_begins_after_lower_ones(s) -> bool:
        """What is written of a leader's epoch that begins at the log's end, which stays."""
        return s.next.log_end != s.log_end or all(
            s.next.stored[e] == s.stored[e]
            or s.start[e] >= 0
            or s.next.start[e] != s.log_end
            or s.log_end == 0
            or s.log[s.log_end - 1] <= e
            for e in range(E + 1)
        )

    @step("LEC-4")
    def the_latest_epoch_is_not_written_again(s) -> bool:
        """An append of the latest epoch, as released."""
        return (
            FIXED
            or s.next.log_end <= s.log_end
            or any(s.next.start[e] != s.start[e] for e in range(E + 1))
            or all(s.next.stored[e] == s.stored[e] for e in range(E + 1))
        )

    @step("LEC-5")
    def entries_at_the_cut_go(s) -> bool:
        """But that of a log start that the end has come down to."""
        empty = s.next.log_start == s.next.log_end and s.next.log_end > 0
        return s.next.log_end >= s.log_end or empty or all(s.next.start[e] < s.next.log_end for e in range(E + 1))

    @leads_to("LEC-7")
    def what_is_cut_is_written(s) -> tuple[bool, bool]:
        return s.stored != s.start, s.stored == s.start

    @witness
    def cut_and_not_written(s) -> bool:
        return any(s.stored[e] >= 0 and s.stored[e] > s.log_end and s.log_end > s.log_start for e in range(E + 1))

    @witness
    def a_stale_entry_survives(s) -> bool:
        """Not fixed: the log is cut, grows again with the epoch that is then the latest, and crashes before the cut
        is written. What was cut away is back, over records of another epoch."""
        return FIXED or any(
            s.start[s.log[n]] >= 0
            and s.start[s.log[n]] <= n
            and any(f > s.log[n] and s.start[f] >= 0 and s.start[f] <= n for f in range(E + 1))
            for n in range(L + 1)
            if s.known <= n and n < s.log_end
        )


MODELS = [
    Expectation(Entries, sizes={"E": 3, "L": 3}, distinct=616, generated=13642, depth=7),
    Expectation(Replica, sizes={"E": 2, "L": 4, "FIXED": True}, distinct=10512, generated=128936, depth=13),
    Expectation(
        Replica, sizes={"E": 2, "L": 4, "FIXED": False}, distinct=15796, generated=207583, depth=15, note="as released"
    ),
]
