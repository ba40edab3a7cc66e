"""The crash of an append: a batch, its index entries, the log's end, its transaction index entry, and flushes beside
it.

A log of two segments: what was rolled, and the active one, that begins at `base`. Writing goes to the page cache; a
flush makes a part durable, and then moves the recovery point; a crash loses any of what was not flushed, or tears it.
A restart recovers the segments from the one that holds the checkpointed recovery point on, and none before.

What was simplified. A batch is one offset; whether it gets an index entry and whether it is an abort marker is a
property of the batch (`due`, `marker`), so that one entry stands for those of the offset and of the time index. Every
abort marker ends a transaction. Nothing is truncated but by recovery. A clean stop is a flush and a checkpoint.

Source: Kafka Internals, ch. 03, "Crash recovery & startup", "Offset boundaries" and "Failure modes"; UnifiedLog.append,
UnifiedLog.flush, UnifiedLog.roll, LocalLog.flush, LogLoader.recoverLog and LogSegment, Kafka 4.3.0; KAFKA-10101.
"""

from __future__ import annotations

import enum
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Flag, Model, Range, Size, action, define, invariant, lemma, require, step, witness

L = Size("L")
"""The most batches."""
FIXED = Flag("FIXED")
"""A flush takes its target while no append is under way, and recovery flushes what it made. Kafka 4.3.0 does
neither."""
Slot = Annotated[int, Range(0, L)]


class Phase(enum.Enum):
    """What the broker is at: idle, four moments of an append, down, recovering."""

    RUNNING = 0
    WRITTEN = 1
    INDEXED = 2
    BUMPED = 3
    DOWN = 4
    RECOVERING = 5


class Flushing(enum.Enum):
    """What the flush has to do next."""

    NOTHING = 0
    DATA = 1
    INDEX = 2
    TRANSACTIONS = 3
    MARK = 4


class Crash(Model):
    """Batches [0, `end`) are in the file, the first `whole` of them intact, the first `durable` of them for good.
    `point` is the recovery point, `checkpoint` the one on the disk. `indexed` and `listed` say which batches have an
    index entry and a transaction index entry; with `_kept` those that outlive a crash; `garbled` entries say something
    wrong."""

    phase: Phase
    end: Slot
    visible: Slot
    whole: Slot
    durable: Slot
    base: Slot
    point: Slot
    checkpoint: Slot
    scan: Slot
    flushing: Flushing
    target: Slot
    due: dict[Slot, bool]
    marker: dict[Slot, bool]
    indexed: dict[Slot, bool]
    index_kept: dict[Slot, bool]
    garbled: dict[Slot, bool]
    listed: dict[Slot, bool]
    list_kept: dict[Slot, bool]

    @define
    def up(s) -> bool:
        return s.phase != Phase.DOWN and s.phase != Phase.RECOVERING

    @define
    def recovered_from(s) -> int:
        """Where the first segment begins that a restart recovers."""
        return s.base if s.checkpoint >= s.base else 0

    @define
    def complete(s, i: Slot) -> bool:
        """Its append came to its end."""
        return i < s.end and (s.phase == Phase.RUNNING or i + 1 < s.end)

    # ---- appends

    @action("SEG-2", who="leader or follower")
    def write(s, indexed: bool, abort: bool) -> None:
        require(s.phase == Phase.RUNNING, s.end < L)
        s.next.phase = Phase.WRITTEN
        s.next.end = s.end + 1
        s.next.whole = s.end + 1
        s.next.due[s.end] = indexed
        s.next.marker[s.end] = abort
        s.next.indexed[s.end] = False
        s.next.index_kept[s.end] = False
        s.next.garbled[s.end] = False
        s.next.listed[s.end] = False
        s.next.list_kept[s.end] = False

    @action("SEG-5", who="leader or follower")
    def index(s) -> None:
        require(s.phase == Phase.WRITTEN)
        s.next.phase = Phase.INDEXED
        s.next.indexed[s.end - 1] = s.due[s.end - 1]

    @action("SEG-2", who="leader or follower")
    def bump(s) -> None:
        require(s.phase == Phase.INDEXED)
        s.next.phase = Phase.BUMPED
        s.next.visible = s.end

    @action("SEG-26", who="leader or follower")
    def list_aborted(s) -> None:
        require(s.phase == Phase.BUMPED)
        s.next.phase = Phase.RUNNING
        s.next.listed[s.end - 1] = s.marker[s.end - 1]

    @action("SEG-23", who="leader or follower")
    def roll(s) -> None:
        require(s.phase == Phase.RUNNING, s.base < s.end)
        s.next.base = s.end

    # ---- flushes

    @action("SEG-23", who="flusher")
    def begin_flush(s) -> None:
        require(s.up(), s.flushing == Flushing.NOTHING, s.visible > s.point)
        require(s.phase == Phase.RUNNING or not FIXED)
        s.next.flushing = Flushing.DATA
        s.next.target = s.visible

    @action("SEG-23", who="flusher")
    def flush_data(s) -> None:
        require(s.flushing == Flushing.DATA)
        s.next.flushing = Flushing.INDEX
        s.next.durable = max(s.durable, s.target)

    @action("SEG-23", who="flusher")
    def flush_index(s) -> None:
        require(s.flushing == Flushing.INDEX)
        s.next.flushing = Flushing.TRANSACTIONS
        s.next.index_kept = {
            i: s.index_kept[i] or (s.indexed[i] and s.point <= i and i < s.target) for i in range(L + 1)
        }

    @action("SEG-23", who="flusher")
    def flush_transactions(s) -> None:
        require(s.flushing == Flushing.TRANSACTIONS)
        s.next.flushing = Flushing.MARK
        s.next.list_kept = {i: s.list_kept[i] or (s.listed[i] and s.point <= i and i < s.target) for i in range(L + 1)}

    @action("SEG-23", who="flusher")
    def mark(s) -> None:
        """Under the log's lock: no append is under way."""
        require(s.flushing == Flushing.MARK, s.phase == Phase.RUNNING)
        s.next.flushing = Flushing.NOTHING
        s.next.point = max(s.point, s.target)
        s.next.target = 0

    @action("SEG-23", who="log manager")
    def write_checkpoint(s) -> None:
        require(s.up(), s.checkpoint != s.point)
        s.next.checkpoint = s.point

    # ---- crashes

    @action("SEG-24", who="crash")
    def crash(s) -> None:
        """During a recovery, too."""
        require(s.phase != Phase.DOWN)
        s.next.phase = Phase.DOWN
        s.next.flushing = Flushing.NOTHING
        s.next.target = 0
        s.next.scan = 0
        s.next.visible = 0
        s.next.point = 0

    @action("SEG-24", who="crash")
    def lose_data(s) -> None:
        """One more batch is torn, or missing."""
        require(s.phase == Phase.DOWN, s.whole > s.durable)
        s.next.whole = s.whole - 1

    @action("SEG-25", who="crash")
    def lose_entry(s, i: Slot) -> None:
        require(s.phase == Phase.DOWN, s.indexed[i], not s.index_kept[i])
        s.next.indexed[i] = False

    @action("SEG-25", who="crash")
    def garble_entry(s, i: Slot) -> None:
        """An entry is torn, or old bytes stand in its slot."""
        require(s.phase == Phase.DOWN, not s.index_kept[i], not s.garbled[i], s.due[i], i < s.end)
        s.next.garbled[i] = True

    @action("SEG-26", who="crash")
    def lose_aborted(s, i: Slot) -> None:
        require(s.phase == Phase.DOWN, s.listed[i], not s.list_kept[i])
        s.next.listed[i] = False

    # ---- recovery

    @action("SEG-16", who="restart")
    def begin_recovery(s) -> None:
        """The indexes of the segments to be recovered are emptied: what was durable of them is no more."""
        require(s.phase == Phase.DOWN)
        s.next.phase = Phase.RECOVERING
        s.next.scan = s.recovered_from()
        s.next.indexed = {i: s.indexed[i] and i < s.recovered_from() for i in range(L + 1)}
        s.next.index_kept = {i: s.index_kept[i] and i < s.recovered_from() for i in range(L + 1)}
        s.next.garbled = {i: s.garbled[i] and i < s.recovered_from() for i in range(L + 1)}
        s.next.listed = {i: s.listed[i] and i < s.recovered_from() for i in range(L + 1)}
        s.next.list_kept = {i: s.list_kept[i] and i < s.recovered_from() for i in range(L + 1)}

    @action("SEG-16", "SEG-18", who="restart")
    def recover_batch(s) -> None:
        require(s.phase == Phase.RECOVERING, s.scan < s.whole)
        s.next.scan = s.scan + 1
        s.next.indexed[s.scan] = s.due[s.scan]
        s.next.listed[s.scan] = s.marker[s.scan]

    @action("SEG-17", who="restart")
    def cut(s) -> None:
        """Later segments go, too; the one that was cut is the active one."""
        require(s.phase == Phase.RECOVERING, s.scan == s.whole)
        s.next.phase = Phase.RUNNING
        s.next.scan = 0
        s.next.end = s.whole
        s.next.visible = s.whole
        s.next.point = min(s.checkpoint, s.whole)
        s.next.base = s.base if s.base <= s.whole else 0
        if FIXED:
            s.next.durable = s.whole
            s.next.index_kept = s.indexed
            s.next.list_kept = s.listed

    # ---- claims

    @invariant("SEG-23", "SEG-24")
    def the_recovery_point_is_durable(s) -> bool:
        return (
            s.checkpoint <= s.durable
            and s.point <= s.durable
            and s.durable <= s.whole
            and s.whole <= s.end
            and (not s.up() or s.checkpoint <= s.point)
        )

    @invariant("SEG-24")
    def nothing_torn_is_left(s) -> bool:
        return not s.up() or s.whole == s.end

    @step("SEG-17", "SEG-24")
    def only_a_torn_end_is_cut(s) -> bool:
        return s.next.end >= s.end or (s.phase == Phase.RECOVERING and s.next.end == s.whole)

    @step("SEG-24", "SEG-23")
    def what_is_durable_stays(s) -> bool:
        return s.next.durable >= s.durable and s.next.whole >= s.durable

    @step("SEG-2")
    def batches_are_written_one_after_the_other(s) -> bool:
        return s.next.end <= s.end + 1 and all(
            i >= s.end or (s.next.due[i] == s.due[i] and s.next.marker[i] == s.marker[i]) for i in range(L + 1)
        )

    @step("SEG-23")
    def one_flush_after_the_other(s) -> bool:
        """With the target that it began with. Fixed, it begins while no append is under way."""
        begun = s.flushing == Flushing.NOTHING and s.next.flushing != Flushing.NOTHING
        goes_on = s.next.target == s.target and (s.next.flushing != Flushing.DATA or s.flushing == Flushing.DATA)
        return (not begun or not FIXED or s.phase == Phase.RUNNING) and (
            s.flushing == Flushing.NOTHING or s.next.flushing == Flushing.NOTHING or goes_on
        )

    @step("SEG-23")
    def a_flush_keeps_what_is_below_its_target(s) -> bool:
        return s.flushing == Flushing.NOTHING or all(
            i < s.target
            or ((s.index_kept[i] or not s.next.index_kept[i]) and (s.list_kept[i] or not s.next.list_kept[i]))
            for i in range(L + 1)
        )

    @step("SEG-23")
    def the_recovery_point_moves_between_appends(s) -> bool:
        between = s.phase in (Phase.RUNNING, Phase.RECOVERING)
        return s.next.point == s.point or between or s.next.phase == Phase.DOWN

    @step("SEG-23")
    def a_checkpoint_is_of_a_running_broker(s) -> bool:
        return s.up() or s.next.checkpoint == s.checkpoint

    @step("SEG-16", "SEG-25")
    def entries_are_put_right_by_recovery(s) -> bool:
        """And none goes wrong beyond the end."""
        return all(
            (s.next.garbled[i] == s.garbled[i] or s.phase == Phase.DOWN or i >= s.end)
            and (s.garbled[i] or not s.next.garbled[i] or i < s.end)
            for i in range(L + 1)
        )

    @step("SEG-16")
    def what_is_not_recovered_stays_as_it_is(s) -> bool:
        return (
            s.phase != Phase.DOWN
            or s.next.phase != Phase.RECOVERING
            or all(
                i >= s.recovered_from()
                or (
                    s.next.garbled[i] == s.garbled[i]
                    and s.next.indexed[i] == s.indexed[i]
                    and s.next.listed[i] == s.listed[i]
                )
                for i in range(L + 1)
            )
        )

    @step("SEG-17")
    def the_active_segment_stays_if_its_first_batch_does(s) -> bool:
        return s.phase != Phase.RECOVERING or s.next.base == s.base or s.base > s.whole

    @step("SEG-24")
    def recovery_flushes_what_it_found(s) -> bool:
        """Fixed."""
        done = s.phase == Phase.RECOVERING and s.next.phase == Phase.RUNNING
        return not FIXED or not done or s.next.durable == s.next.end

    @lemma()
    def nothing_is_remembered_over_a_crash(s) -> bool:
        return (s.up() or (s.visible == 0 and s.point == 0)) and (s.phase == Phase.RECOVERING or s.scan == 0)

    @lemma()
    def a_flush_has_something_to_do(s) -> bool:
        return s.target == 0 if s.flushing == Flushing.NOTHING else s.target > s.point

    @invariant("SEG-5", "SEG-16", "SEG-20", "SEG-25")
    def entries_are_those_of_the_batches(s) -> bool:
        """Whether appended or recovered, once or twice: they depend on the batches alone."""
        return (
            not FIXED
            or not s.up()
            or all(not s.complete(i) or (not s.garbled[i] and s.indexed[i] == s.due[i]) for i in range(L + 1))
        )

    @invariant("SEG-18", "SEG-20", "SEG-26")
    def every_aborted_transaction_is_listed(s) -> bool:
        return not FIXED or not s.up() or all(not s.complete(i) or s.listed[i] == s.marker[i] for i in range(L + 1))

    @invariant("SEG-2")
    def the_end_is_seen_late(s) -> bool:
        return (
            s.visible <= s.end
            and ((s.phase != Phase.RUNNING and s.phase != Phase.BUMPED) or s.visible == s.end)
            and ((s.phase != Phase.WRITTEN and s.phase != Phase.INDEXED) or s.visible + 1 == s.end)
        )

    @lemma("SEG-23")
    def what_is_below_the_recovery_point_is_kept(s) -> bool:
        return (
            not FIXED
            or not s.up()
            or all(
                i >= s.point or (s.index_kept[i] == s.due[i] and s.list_kept[i] == s.marker[i]) for i in range(L + 1)
            )
        )

    @lemma("SEG-23")
    def what_is_not_recovered_is_kept(s) -> bool:
        return (
            not FIXED
            or s.checkpoint < s.base
            or all(
                i >= s.base
                or (
                    s.index_kept[i] == s.due[i]
                    and s.indexed[i] == s.due[i]
                    and not s.garbled[i]
                    and s.list_kept[i] == s.marker[i]
                    and s.listed[i] == s.marker[i]
                )
                for i in range(L + 1)
            )
        )

    @lemma()
    def a_flush_does_one_after_the_other(s) -> bool:
        return not FIXED or (
            (s.flushing == Flushing.NOTHING or (s.phase == Phase.RUNNING or s.target < s.end))
            and (
                (s.flushing != Flushing.TRANSACTIONS and s.flushing != Flushing.MARK)
                or all(i >= s.target or s.index_kept[i] == s.due[i] for i in range(L + 1))
            )
            and (
                s.flushing != Flushing.MARK or all(i >= s.target or s.list_kept[i] == s.marker[i] for i in range(L + 1))
            )
        )

    @lemma()
    def flushes_are_of_the_living(s) -> bool:
        return s.flushing == Flushing.NOTHING or (
            s.up() and s.target <= s.visible and (s.flushing == Flushing.DATA or s.target <= s.durable)
        )

    @lemma()
    def what_is_kept_is_there(s) -> bool:
        return all(
            (not s.index_kept[i] or s.indexed[i])
            and (not s.list_kept[i] or s.listed[i])
            and (not FIXED or not s.index_kept[i] or not s.garbled[i])
            for i in range(L + 1)
        )

    @lemma()
    def visible_batches_are_complete(s) -> bool:
        """But for the last one, between the bump and its transaction index entry."""
        return (not s.up() or s.point <= s.visible) and (
            (s.phase != Phase.WRITTEN and s.phase != Phase.INDEXED) or s.visible < s.end
        )

    @lemma()
    def an_append_is_of_the_last(s) -> bool:
        return (
            s.phase == Phase.RUNNING
            or s.phase == Phase.DOWN
            or s.phase == Phase.RECOVERING
            or (
                s.end > 0
                and s.base < s.end
                and s.point < s.end
                and not s.listed[s.end - 1]
                and (s.phase != Phase.WRITTEN or not s.indexed[s.end - 1])
                and (s.phase == Phase.WRITTEN or s.indexed[s.end - 1] == s.due[s.end - 1])
                and not s.garbled[s.end - 1]
            )
        )

    @lemma()
    def recovery_is_at(s) -> bool:
        return s.base <= s.end and (
            s.phase != Phase.RECOVERING
            or (
                s.scan <= s.whole
                and s.recovered_from() <= s.scan
                and all(
                    i < s.recovered_from()
                    or (
                        not s.garbled[i]
                        and not s.index_kept[i]
                        and not s.list_kept[i]
                        and s.indexed[i] == (s.due[i] and i < s.scan)
                        and s.listed[i] == (s.marker[i] and i < s.scan)
                    )
                    for i in range(L + 1)
                )
            )
        )

    # ---- what must be possible

    @witness
    def a_batch_has_one_entry_of_two(s) -> bool:
        return any(s.due[i] and not s.marker[i] and i < s.end for i in range(L + 1))

    @witness
    def an_entry_is_lost(s) -> bool:
        """Of the index, and not of the transaction index: it is no recovery that has emptied both."""
        return s.phase == Phase.DOWN and any(
            s.due[i] and not s.indexed[i] and s.listed[i] and i + 1 < s.end for i in range(L + 1)
        )

    @witness
    def emptied_by_a_recovery_that_crashed(s) -> bool:
        return s.phase == Phase.DOWN and s.checkpoint > 0 and s.due[0] and not s.index_kept[0]

    @witness
    def crashed_in_recovery(s) -> bool:
        return s.phase == Phase.RECOVERING and s.scan > 0 and s.whole < s.end

    @witness
    def a_segment_is_not_recovered(s) -> bool:
        return s.phase == Phase.RECOVERING and s.base > 0 and s.checkpoint >= s.base and s.whole > s.base

    @witness
    def an_aborted_transaction_is_forgotten(s) -> bool:
        """As released: its marker is below the recovery point, its segment is not recovered, its entry is gone."""
        return FIXED or (
            s.phase == Phase.RUNNING and any(s.marker[i] and i < s.end and not s.listed[i] for i in range(L + 1))
        )

    @witness
    def an_index_entry_is_wrong(s) -> bool:
        """As released: what recovery made again was not flushed, and the recovery point is beyond it."""
        return FIXED or (s.phase == Phase.RUNNING and any(s.garbled[i] and i < s.end for i in range(L + 1)))


MODELS = [
    Expectation(Crash, sizes={"L": 2, "FIXED": True}, distinct=11777, generated=37090, depth=28),
    Expectation(Crash, sizes={"L": 3, "FIXED": True}, distinct=377734, generated=1601974, depth=38),
    Expectation(Crash, sizes={"L": 2, "FIXED": False}, distinct=17849, generated=53234, depth=35, note="as released"),
]
