"""A log of two segments over a disk that forgets: appends, a roll, flushes that come late, checkpoints, a truncation, a
raised log start, kills, power failures, and starts that may be killed themselves.

Every record is a batch. Of the log matters where it ends, where the second segment begins, and up to where each of its
two files is flushed; what a power failure leaves of a file is any first part above that. The second one may be left
whole where the first one is not, for the two are written to the disk in any order. A recovery reads from the recovery
point's segment on, cuts what is not whole, and deletes what is behind a cut.

`REMOVED`: the removal of the marker is on the disk before the log is opened. `JOINED`: a recovery compares the end of a
segment with where the next one begins. `CAPPED`: a flush raises the recovery point to the log end at most. `SYNCED`: a
log start that rises above the recovery point flushes first. The released Kafka does none of these.

What was simplified. Two segments; high watermarks, leader epochs and producer snapshots are left out. A truncation and
its checkpoint are one step, and a cut reaches the disk.

Source: Kafka Internals, ch. 03, "Crash recovery & startup: LogLoader"; LogLoader, LocalLog and LogManager, Kafka 4.3.0;
KAFKA-10101, KAFKA-10471, KAFKA-16073.
"""

from __future__ import annotations

import enum
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Flag,
    Model,
    Range,
    Size,
    action,
    define,
    invariant,
    lemma,
    require,
    step,
    witness,
)

L = Size("L")
"""The highest offset."""
REMOVED = Flag("REMOVED")
JOINED = Flag("JOINED")
CAPPED = Flag("CAPPED")
SYNCED = Flag("SYNCED")
Offset = Annotated[int, Range(0, L)]


class Doing(enum.Enum):
    UP = 0
    DOWN = 1
    OPENED = 2
    """the marker was looked at"""
    FIRST = 3
    """the first segment is recovered, or need not be"""


class Recovery(Model):
    """`base` is where the second segment begins, 0 while there is none. `end` is the log end, `one` the end of what the
    first file has, which is `base` unless something is missing. `safe` and `safe2` are the ends of what is flushed of
    them. `scheduled` is up to where the roll's flush will go, 0 if there is none. `clean`: what the last start saw.
    `kept` is the end of what was flushed by a flush that came to its end, or given up below the log start."""

    doing: Doing
    base: Offset
    end: Offset
    one: Offset
    safe: Offset
    safe2: Offset
    start: Offset
    point: Offset
    scheduled: Offset
    point_file: Offset
    start_file: Offset
    marker: bool
    marker_file: bool
    clean: bool
    power: bool
    """the power failed since a process ran"""
    kept: Offset

    # ---- a broker that runs

    @action("REC-4", who="leader or follower")
    def append(s) -> None:
        require(s.doing == Doing.UP, s.end < L)
        s.next.end = s.end + 1
        if s.base == 0:
            s.next.one = s.end + 1

    @action("REC-13", who="leader or follower")
    def roll(s) -> None:
        """The flush of the first segment is scheduled."""
        require(s.doing == Doing.UP, s.base == 0, s.end > 0, s.one == s.end)
        s.next.base = s.end
        s.next.safe2 = s.end
        s.next.scheduled = s.end

    @action("REC-10", "REC-18", "REC-13", who="scheduler")
    def flush_rolled(s) -> None:
        """It may come after a truncation."""
        require(s.doing == Doing.UP, s.scheduled > 0)
        s.next.scheduled = 0
        if s.scheduled > s.point:
            reached = min(s.scheduled, s.end)
            s.next.safe = max(s.safe, min(s.one, s.scheduled))
            s.next.kept = max(s.kept, reached)
            if CAPPED:
                s.next.point = max(s.point, reached)
            else:
                s.next.point = s.scheduled

    @action("REC-10", who="scheduler")
    def flush(s) -> None:
        """From the segment on that holds the recovery point; the recovery point rises behind it."""
        require(s.doing == Doing.UP, s.point < s.end)
        if s.base == 0 or s.point < s.base:
            s.next.safe = s.one
        if s.base > 0:
            s.next.safe2 = s.end
        s.next.point = s.end
        s.next.kept = s.end

    @action("REC-10", who="scheduler")
    def checkpoint_point(s) -> None:
        require(s.doing == Doing.UP)
        s.next.point_file = s.point
        s.next.marker_file = s.marker

    @action("REC-12", who="scheduler")
    def checkpoint_start(s) -> None:
        require(s.doing == Doing.UP)
        s.next.start_file = s.start
        s.next.marker_file = s.marker

    @action("REC-17", who="DeleteRecords")
    def delete_records(s, o: Offset) -> None:
        """The recovery point goes along."""
        require(s.doing == Doing.UP, s.start < o, o <= s.end)
        s.next.start = o
        if o > s.point:
            s.next.point = o
            if SYNCED:
                s.next.safe = s.one
                s.next.safe2 = s.end if s.base > 0 else s.safe2
                s.next.kept = s.end
                s.next.start_file = o
                s.next.marker_file = s.marker

    @action("REC-15", who="follower")
    def truncate(s, o: Offset) -> None:
        """The recovery point falls, and is checkpointed at once."""
        require(s.doing == Doing.UP, o < s.end, s.start <= o)
        s.next.end = o
        if s.base == 0 or o < s.base:
            s.next.base = 0
            s.next.one = o
            s.next.safe = min(s.safe, o)
            s.next.safe2 = 0
        else:
            s.next.safe2 = min(s.safe2, o)
        s.next.point = min(s.point, o)
        s.next.point_file = min(s.point, o)
        s.next.kept = min(s.kept, o)
        s.next.marker_file = s.marker

    # ---- stops

    @action("REC-16", who="broker")
    def stop(s) -> None:
        """Flushed, checkpointed, and marked at last."""
        require(s.doing == Doing.UP)
        if s.base == 0 or s.point < s.base:
            s.next.safe = s.one
        s.next.safe2 = s.end if s.base > 0 else 0
        s.next.point = s.end
        s.next.point_file = s.end
        s.next.start_file = s.start
        s.next.kept = s.end
        s.next.marker = True
        s.next.marker_file = True
        s.next.scheduled = 0
        s.next.power = False
        s.next.doing = Doing.DOWN

    @action("REC-2", "REC-9", who="operator")
    def kill(s) -> None:
        """At any moment, of a start too."""
        require(s.doing != Doing.DOWN)
        s.next.doing = Doing.DOWN
        s.next.scheduled = 0
        s.next.power = False

    @define
    def left(s, o: Offset, certain: Offset, written: Offset) -> bool:
        """A file may end there after a power failure."""
        return certain <= o and o <= written

    @action("REC-1", "REC-9", who="power")
    def power_fails(s, e: Offset, f: Offset) -> None:
        """The first file ends at `e`, the second one at `f`; either may end early by itself."""
        require(s.left(e, s.safe, s.one))
        require(s.base > 0 or f == e, s.base == 0 or s.left(f, s.safe2, s.end))
        s.next.one = e
        s.next.safe = e
        s.next.end = f
        if s.base > 0:
            s.next.safe2 = f
        s.next.scheduled = 0
        s.next.marker = s.marker_file
        s.next.power = True
        s.next.doing = Doing.DOWN

    # ---- starts

    @action("REC-5", "REC-6", who="broker")
    def open(s) -> None:
        """The marker counts for this start; the checkpoints are read."""
        require(s.doing == Doing.DOWN)
        s.next.clean = s.marker
        s.next.marker = False
        if REMOVED:
            s.next.marker_file = False
        s.next.power = False
        s.next.doing = Doing.OPENED

    @define
    def short(s) -> bool:
        """Whole batches are missing at the end of the first segment, and the second one is there."""
        return s.base > 0 and s.one < s.base

    @action("REC-7", "REC-19", "REC-8", who="broker")
    def recover_first(s, torn: bool) -> None:
        """`torn`: half a batch stands at its end. Then the second segment goes."""
        require(s.doing == Doing.OPENED, not s.clean)
        reads = s.base == 0 or s.point_file < s.base
        require(not torn or s.short())
        if reads and s.short() and (torn or JOINED):
            s.next.base = 0
            s.next.end = s.one
            s.next.safe2 = 0
        s.next.doing = Doing.FIRST

    @action("REC-6", "REC-3", "REC-12", "REC-4", who="broker")
    def load_clean(s) -> None:
        require(s.doing == Doing.OPENED, s.clean)
        s.next.point = s.end
        s.next.start = min(s.start_file, s.end)
        s.next.doing = Doing.UP

    @action("REC-7", "REC-8", "REC-3", "REC-4", "REC-12", who="broker")
    def load_recovered(s) -> None:
        """The recovery point is the checkpointed one, or the end if that is lower."""
        require(s.doing == Doing.FIRST)
        if s.end < s.start_file:
            s.next.base = 0
            s.next.end = s.start_file
            s.next.one = s.start_file
            s.next.safe = s.start_file
            s.next.safe2 = 0
            s.next.start = s.start_file
            s.next.point = s.start_file
            s.next.kept = s.start_file
        else:
            s.next.start = s.start_file
            s.next.point = max(s.start_file, min(s.point_file, s.end))
        s.next.doing = Doing.UP

    # ---- what holds

    @define
    def up(s) -> bool:
        return s.doing == Doing.UP

    @define
    def behind(s) -> bool:
        """All that is read of the log below its recovery point is flushed."""
        lower = min(s.point, s.end)
        first = lower if s.base == 0 else min(lower, s.base)
        return first <= s.start or first <= s.safe

    @define
    def behind2(s) -> bool:
        lower = min(s.point, s.end)
        return s.base == 0 or lower <= s.base or lower <= s.start or lower <= s.safe2

    @invariant("REC-10", "REC-18", "REC-8", "REC-15", "REC-17")
    def never_more_than_flushed(s) -> bool:
        return not s.up() or not (REMOVED and JOINED and CAPPED and SYNCED) or (s.behind() and s.behind2())

    @invariant("REC-4", "REC-19", "REC-6")
    def no_hole(s) -> bool:
        """A log that runs is a first part of what was written."""
        return not s.up() or not (REMOVED and JOINED and CAPPED and SYNCED) or not s.short() or s.base <= s.start

    @invariant("REC-3", "REC-16", "REC-6", "REC-9")
    def what_was_flushed_is_there(s) -> bool:
        return not s.up() or not (REMOVED and JOINED and CAPPED and SYNCED) or s.kept <= s.end

    @invariant("REC-12")
    def in_order(s) -> bool:
        return not s.up() or s.start <= s.end

    @step("REC-8", "REC-7")
    def a_recovery_does_not_raise_the_point(s) -> bool:
        recovered = s.doing == Doing.FIRST and s.next.doing == Doing.UP
        return not recovered or s.next.point <= max(s.point_file, s.start_file)

    @step("REC-5", "REC-6")
    def the_marker_goes_first(s) -> bool:
        """While a log is opened or recovered there is none."""
        return s.next.doing not in (Doing.OPENED, Doing.FIRST) or not s.next.marker

    @step("REC-16")
    def marked_last(s) -> bool:
        """Where a marker comes to be, everything is flushed from the log start on."""
        made = s.next.marker_file and not s.marker_file
        return not made or s.next.point_file == s.next.end

    @step("REC-15")
    def a_cut_lowers_the_checkpoint(s) -> bool:
        cut = s.doing == Doing.UP and s.next.doing == Doing.UP and s.next.end < s.end
        return not cut or s.next.point_file <= s.next.end

    @step("REC-2")
    def a_kill_takes_nothing(s) -> bool:
        """A process that ends leaves the files as they are."""
        stays = s.next.end == s.end and s.next.one == s.one and s.next.base == s.base
        return s.next.doing != Doing.DOWN or s.next.power or stays

    @step("REC-3")
    def a_kill_ends_no_flush(s) -> bool:
        """What was flushed is not less, and what was not is not more, for a process that was killed."""
        killed = s.next.doing == Doing.DOWN and not s.next.power and not s.next.marker
        return not killed or (s.next.kept == s.kept and s.next.safe == s.safe and s.next.point == s.point)

    @step("REC-13")
    def a_roll_flushes_nothing(s) -> bool:
        return s.base != 0 or s.next.base == 0 or s.next.safe == s.safe

    @step("REC-1")
    def nothing_flushed_is_taken(s) -> bool:
        fails = s.next.doing == Doing.DOWN and s.next.one < s.one
        return not fails or s.next.one >= s.safe

    @step("REC-4")
    def an_append_is_behind(s) -> bool:
        return s.next.end <= s.end + 1 or s.next.end == s.start_file

    @step("REC-17")
    def the_point_is_not_below_the_start(s) -> bool:
        return s.next.start <= s.start or not s.up() or s.next.point >= s.next.start

    # ---- why

    @lemma()
    def files_in_order(s) -> bool:
        """The second segment begins where the first one was to end; one alone ends where the log does."""
        return (
            s.safe <= s.one
            and (s.base == 0 or (s.one <= s.base and s.base <= s.safe2 and s.safe2 <= s.end))
            and (s.base > 0 or (s.one == s.end and s.safe2 == 0))
        )

    @define
    def durable(s, o: Offset) -> bool:
        """All that was written below `o` is flushed."""
        return (o if s.base == 0 else min(o, s.base)) <= s.safe and (s.base == 0 or o <= s.base or o <= s.safe2)

    @define
    def sound(s) -> bool:
        return REMOVED and JOINED and CAPPED and SYNCED

    @define
    def all_flushed(s) -> bool:
        return s.safe == s.one and (s.base == 0 or (s.one == s.base and s.safe2 == s.end))

    @lemma()
    def checkpoints_are_durable(s) -> bool:
        """And what was flushed is."""
        return not s.sound() or (s.durable(s.point_file) and s.durable(s.start_file) and s.durable(s.kept))

    @lemma()
    def a_running_log_is_durable(s) -> bool:
        return not s.sound() or not s.up() or (s.durable(s.point) and s.start <= s.point and s.point <= s.end)

    @lemma()
    def whole_while_it_runs(s) -> bool:
        return not s.sound() or not s.up() or s.base == 0 or s.one == s.base

    @lemma()
    def a_marker_says_all_is_flushed(s) -> bool:
        marked = s.marker or s.marker_file or (s.doing == Doing.OPENED and s.clean)
        return not s.sound() or (
            (not marked or s.all_flushed())
            and (not s.marker or s.marker_file)
            and (not s.marker_file or (s.doing == Doing.DOWN and s.point_file == s.end))
        )

    @lemma()
    def a_marker_goes_with_a_start_that_is_there(s) -> bool:
        """As released, too: whatever fails after a clean stop, the log start that it checkpointed is in the log."""
        marked = s.marker or s.marker_file or (s.doing == Doing.OPENED and s.clean)
        there = s.start_file <= s.safe or (s.base > 0 and s.base <= s.point_file and s.start_file <= s.safe2)
        return (not s.marker or s.marker_file) and (not marked or there)

    @lemma()
    def starts_in_order(s) -> bool:
        return not s.up() or (s.start_file <= s.start and s.start <= s.end)

    @lemma()
    def a_flush_is_scheduled_up_to_the_roll(s) -> bool:
        return s.base == 0 or s.scheduled <= s.base

    @lemma()
    def no_marker_while_it_runs(s) -> bool:
        return not s.marker or s.doing == Doing.DOWN

    @lemma()
    def recovered_first_is_whole(s) -> bool:
        return not s.sound() or s.doing != Doing.FIRST or s.base == 0 or s.one == s.base

    @witness
    def records_lost_above_what_was_flushed(s) -> bool:
        """Some were flushed, and are there."""
        return s.doing == Doing.FIRST and s.kept > 0 and s.end > s.kept

    @witness
    def killed_while_recovering(s) -> bool:
        return s.doing == Doing.FIRST and s.base > 0

    @witness
    def a_hole(s) -> bool:
        """As released: whole batches are missing at the end of a segment, and the next one is there."""
        return JOINED or (s.up() and s.short() and not s.clean and s.start == 0)

    @witness
    def a_marker_that_came_back(s) -> bool:
        """As released: nothing is recovered, and a hole stays."""
        return REMOVED or (s.up() and s.short() and s.clean and s.start == 0)

    @witness
    def a_late_flush_says_too_much(s) -> bool:
        """As released: the recovery point is above what was flushed, and above the cut."""
        return CAPPED or (s.up() and s.start == 0 and s.base == 0 and s.point > s.safe and s.point <= s.end)

    @witness
    def deleted_records_came_back_unflushed(s) -> bool:
        """As released: the recovery point was checkpointed behind the log start, which was not."""
        return SYNCED or (s.up() and s.short() and s.start < s.one and s.point > s.base)


MODELS = [
    Expectation(
        Recovery,
        sizes={"L": 3, "REMOVED": True, "JOINED": True, "CAPPED": True, "SYNCED": True},
        distinct=5772,
        generated=31022,
        depth=17,
    ),
    Expectation(
        Recovery,
        sizes={"L": 3, "REMOVED": False, "JOINED": False, "CAPPED": False, "SYNCED": False},
        distinct=85339,
        generated=421531,
        depth=33,
        note="as released",
    ),
]
