"""One log, its writer's effects one by one, readers and a crash between any two of them.

An append is a sequence: the topic's id and the epoch reach their files, the log may roll, the bytes are written, the
log end rises, the producer state takes the batch in. The disk may refuse at each step, and the process may die. A flush
is a sequence too: the files are synced without the lock, then the recovery point rises. Offsets are compared as they
are at every moment, for that is what a reader sees, who takes no lock.

What was simplified. A batch is one record, and offsets have no holes. One producer writes transactions, one after the
other, and a transaction ends only when the end before it is replicated. Which epoch a batch has does not matter, only
that it is in the file. `FIXED`: the recovery point rises no further than to what is still in the log of what was
synced: a truncation lowers what a flush under way says. The released Kafka takes the offset that it began with.

Source: Kafka Internals, ch. 03, "The append path (leader)", "Segment rolling" and "Offset boundaries"; UnifiedLog and
LocalLog, Kafka 4.3.0; KAFKA-10101, KAFKA-16073.
"""

# mypy: disable-error-code="operator, index, arg-type, assignment, type-var"
# (the modelling language unwraps an option where its value is wanted)

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
    initial,
    invariant,
    lemma,
    require,
    step,
    witness,
)

L = Size("L")
"""The highest offset."""
FIXED = Flag("FIXED")
Offset = Annotated[int, Range(0, L)]


class Phase(enum.Enum):
    """How far the append is that is under way."""

    IDLE = 0
    ASSIGNED = 1
    """the epoch is in its file"""
    ROLLED = 2
    WRITTEN = 3
    """the bytes are in the segment"""
    ENDED = 4
    """the log end is behind them"""


class Batch(enum.Enum):
    PLAIN = 0
    OPENS = 1
    """the first of a transaction"""
    ENDS = 2
    """a marker"""


class Writer(Model):
    """`named`: the topic's id is in its file. `bases`: where segments begin. `covered`: the epochs of the records below
    it are in their file. `written` is the end of the bytes, `flushed` of those that outlive a crash; `syncing` the log
    end that a flush began with. `opened` is the first offset of the open transaction; `ended` that of one that ended at
    `marker` and is not known to be replicated. `unstable` is the first unstable offset as the log knows it."""

    named: bool
    phase: Phase
    batch: Batch
    bases: dict[Offset, bool]
    log_start: Offset
    hw: Offset
    log_end: Offset
    written: Offset
    covered: Offset
    flushed: Offset
    syncing: Offset | None
    point: Offset
    opened: Offset | None
    ended: Offset | None
    marker: Offset
    unstable: Offset | None
    offline: bool

    @initial
    def empty(s) -> None:
        s.next.bases = {o: o == 0 for o in range(L + 1)}

    # ---- offsets

    @define
    def undecided(s, o: Offset) -> bool:
        """A transaction begins there that is open, or whose end is not replicated."""
        return (s.opened is not None and s.opened == o) or (s.ended is not None and s.ended == o)

    @define
    def stable(s) -> Offset:
        """The last stable offset."""
        return s.unstable if s.unstable is not None and s.unstable < s.hw else s.hw

    @define
    def settled(s) -> Offset:
        """The end of what the producer state has taken in."""
        return s.log_end - 1 if s.phase == Phase.ENDED else s.log_end

    # ---- an append

    @action("LOG-44", who="scheduler, leader or follower")
    def name(s) -> None:
        """The topic's id goes to its file: by the scheduler, or by an append or a close that finds it missing."""
        require(not s.named)
        s.next.named = True

    @action("LOG-1", "LOG-2", "LOG-14", who="leader or follower")
    def assign(s, b: Batch) -> None:
        """The offset is the log end; the epoch of the batch is in its file when this is over."""
        require(s.phase == Phase.IDLE, s.named, not s.offline, s.log_end < L)
        require(b != Batch.OPENS or s.opened is None)
        require(b != Batch.ENDS or (s.opened is not None and s.ended is None))
        s.next.batch = b
        s.next.covered = max(s.covered, s.log_end + 1)
        s.next.phase = Phase.ASSIGNED

    @action("LOG-6", "LOG-1", who="leader or follower")
    def roll(s) -> None:
        require(s.phase == Phase.ASSIGNED, not s.offline)
        s.next.bases[s.log_end] = True
        s.next.phase = Phase.ROLLED

    @action("LOG-1", who="leader or follower")
    def write(s) -> None:
        require(s.phase in (Phase.ASSIGNED, Phase.ROLLED), not s.offline)
        s.next.written = s.log_end + 1
        s.next.phase = Phase.WRITTEN

    @action("LOG-1", "LOG-17", who="leader or follower")
    def end(s) -> None:
        """Right behind the bytes, before the transaction index is written."""
        require(s.phase == Phase.WRITTEN, not s.offline)
        s.next.log_end = s.written
        s.next.phase = Phase.ENDED

    @action("LOG-1", "LOG-19", who="leader or follower")
    def take_in(s) -> None:
        """The producer state takes the batch in, and the first unstable offset follows."""
        require(s.phase == Phase.ENDED, not s.offline)
        s.next.phase = Phase.IDLE
        if s.batch == Batch.OPENS:
            s.next.opened = s.log_end - 1
            s.next.unstable = max(s.ended, s.log_start) if s.ended is not None else s.log_end - 1
        if s.batch == Batch.ENDS:
            s.next.ended = s.opened
            s.next.marker = s.log_end - 1
            s.next.opened = None
            s.next.unstable = max(s.opened, s.log_start)

    @action("LOG-37", who="disk")
    def refuse(s) -> None:
        """What was done stays; nothing is done any more."""
        require(s.phase != Phase.IDLE or not s.named, s.phase != Phase.WRITTEN, not s.offline)
        s.next.offline = True

    # ---- offsets move

    @define
    def decided_below(s, h: Offset) -> bool:
        """The transaction that ended is replicated when this is the high watermark."""
        return s.ended is not None and s.marker < h

    @action("LOG-15", "LOG-16", who="replication")
    def set_high_watermark(s, h: Offset) -> None:
        """With the lock: between appends."""
        require(s.log_start <= h, h <= s.log_end, not s.offline, s.phase == Phase.IDLE)
        s.next.hw = h
        if s.decided_below(h):
            s.next.ended = None
            s.next.unstable = None if s.opened is None else max(s.opened, s.log_start)

    @action("LOG-32", who="retention, DeleteRecords")
    def raise_start(s, o: Offset) -> None:
        require(s.log_start < o, o <= s.hw, not s.offline, s.phase == Phase.IDLE)
        s.next.log_start = o
        s.next.point = max(s.point, o)
        if s.decided_below(o):
            s.next.ended = None
        rest = None if s.decided_below(o) else s.ended
        first = rest if rest is not None else s.opened
        s.next.unstable = None if first is None else max(first, o)

    @action("LOG-33", who="retention")
    def retire(s, o: Offset) -> None:
        """The segments before one go, after the log start has risen to it."""
        require(s.bases[o], o <= s.log_start, not s.offline, s.phase == Phase.IDLE)
        require(any(s.bases[f] and f < o for f in range(L + 1)))
        s.next.bases = {f: s.bases[f] and f >= o for f in range(L + 1)}

    # ---- flush

    @action("LOG-35", "LOG-36", who="scheduler")
    def sync(s) -> None:
        """Without the lock: whatever the writer does meanwhile."""
        require(s.syncing is None, not s.offline, s.point < s.log_end)
        s.next.syncing = s.log_end
        s.next.flushed = max(s.flushed, s.log_end)

    @action("LOG-35", "LOG-36", who="scheduler")
    def mark(s) -> None:
        require(s.syncing is not None)
        s.next.syncing = None
        s.next.point = max(s.point, s.syncing)

    # ---- truncation

    @define
    def synced_up_to(s, o: Offset) -> Offset | None:
        """What a flush that is under way has synced, after a cut there."""
        return None if s.syncing is None else min(s.syncing, o) if FIXED else s.syncing

    @define
    def reopened(s, o: Offset) -> bool:
        """A cut there takes the marker of the transaction that ended, and not its first record."""
        return s.ended is not None and s.marker >= o and s.ended < o

    @action("LOG-28", "LOG-30", "LOG-17", who="follower")
    def truncate(s, o: Offset) -> None:
        """The high watermark falls to the log end if it is above. The first segment may begin above: then all goes."""
        require(s.phase == Phase.IDLE, not s.offline, o < s.log_end)
        s.next.log_end = o
        s.next.written = o
        s.next.covered = min(s.covered, o)
        s.next.flushed = min(s.flushed, o)
        s.next.syncing = s.synced_up_to(o)
        s.next.point = min(s.point, o)
        s.next.log_start = min(s.log_start, o)
        s.next.hw = min(s.hw, o)
        all_goes = all(not s.bases[f] or f > o for f in range(L + 1))
        s.next.bases = {f: (all_goes and f == o) or (s.bases[f] and f <= o) for f in range(L + 1)}
        lives = s.opened is not None and s.opened < o
        back = s.reopened(o)
        keeps = s.ended is not None and s.marker < o
        s.next.opened = None if all_goes else s.ended if back else s.opened if lives else None
        s.next.ended = s.ended if keeps and not all_goes and s.hw <= s.marker else None
        first = None if all_goes else s.ended if (back or (keeps and s.hw <= s.marker)) else s.opened if lives else None
        s.next.unstable = None if first is None else max(first, min(s.log_start, o))

    @action("LOG-30", who="follower")
    def start_at(s, o: Offset) -> None:
        require(s.phase == Phase.IDLE, not s.offline)
        s.next.bases = {f: f == o for f in range(L + 1)}
        s.next.log_start = o
        s.next.hw = o
        s.next.log_end = o
        s.next.written = o
        s.next.covered = o
        s.next.flushed = min(s.flushed, o)
        s.next.syncing = s.synced_up_to(o)
        s.next.point = min(s.point, o)
        s.next.opened = None
        s.next.ended = None
        s.next.unstable = None

    # ---- stops

    @action("LOG-42", who="broker")
    def close(s) -> None:
        require(s.phase == Phase.IDLE, not s.offline, s.syncing is None)
        s.next.flushed = s.log_end
        s.next.point = s.log_end
        s.next.hw = s.log_start
        first = s.ended if s.ended is not None else s.opened
        s.next.unstable = None if first is None else max(first, s.log_start)

    @define
    def loaded_point(s, end: Offset) -> Offset:
        """The recovery point of a log that was recovered up to there: the checkpointed one."""
        return max(s.point, s.log_start)

    @action("LOG-43", "LOG-37", who="power")
    def crash(s, e: Offset, power: bool, keeps_roll: bool) -> None:
        """At any moment. What was flushed is there, and any part of what was written behind it; without a failure of
        power all of that, and it is not flushed by that. The log start was checkpointed."""
        require(s.flushed <= e or s.flushed <= s.log_start, e <= s.written, s.log_start <= e)
        require(power or (e == s.written and keeps_roll))
        s.next.phase = Phase.IDLE
        s.next.offline = False
        s.next.syncing = None
        s.next.log_end = e
        s.next.written = e
        s.next.flushed = e if power else s.flushed
        s.next.point = s.loaded_point(e)
        s.next.hw = s.log_start
        s.next.bases = {
            f: s.bases[f] and (f < e or (f == e and keeps_roll) or all(not s.bases[g] or g >= f for g in range(L + 1)))
            for f in range(L + 1)
        }
        taken = s.phase == Phase.IDLE
        opens = (
            not taken
            and s.batch == Batch.OPENS
            and s.written > 0
            and e == s.written
            and s.phase in (Phase.WRITTEN, Phase.ENDED)
        )
        ends = not taken and s.batch == Batch.ENDS and e == s.written and s.phase in (Phase.WRITTEN, Phase.ENDED)
        lives = s.opened is not None and s.opened < e
        back = s.reopened(e)
        keeps = s.ended is not None and s.marker < e
        s.next.opened = None if ends else s.ended if back else s.opened if lives else e - 1 if opens else None
        s.next.ended = s.opened if ends else s.ended if keeps else None
        if ends:
            s.next.marker = e - 1
        first = s.opened if ends else s.ended if (back or keeps) else s.opened if lives else e - 1 if opens else None
        s.next.unstable = None if first is None else max(first, s.log_start)

    # ---- what holds at every moment

    @invariant("LOG-22", "LOG-42", "LOG-15", "LOG-16", "LOG-17", "LOG-32")
    def offsets_in_order(s) -> bool:
        return s.log_start <= s.stable() and s.stable() <= s.hw and s.hw <= s.log_end

    @invariant("LOG-1", "LOG-24", "LOG-37")
    def readers_see_what_is_written(s) -> bool:
        """Whatever bound a reader goes by: there are bytes below it."""
        return s.log_end <= s.written

    @invariant("LOG-24", "LOG-19")
    def nothing_undecided_is_stable(s) -> bool:
        return all(not s.undecided(o) or o >= s.stable() or o < s.log_start for o in range(L + 1))

    @invariant("LOG-33", "LOG-6", "LOG-28", "LOG-30")
    def what_may_be_read_has_a_segment(s) -> bool:
        """At every moment of a deletion, too."""
        return any(s.bases[f] and f <= s.log_start for f in range(L + 1))

    @invariant("LOG-6")
    def no_segment_begins_beyond_the_end(s) -> bool:
        return all(not s.bases[f] or f <= s.log_end for f in range(L + 1))

    @invariant("LOG-44")
    def the_topic_is_known_first(s) -> bool:
        """Whatever a crash leaves, no batch is there without the topic's id."""
        return s.named or (s.phase == Phase.IDLE and s.written == s.log_start)

    @invariant("LOG-14")
    def epochs_are_there_first(s) -> bool:
        """No bytes are on the disk of which the epoch is not in the file."""
        return s.written <= s.covered

    @invariant("LOG-35", "LOG-36", "LOG-43")
    def the_recovery_point_is_flushed(s) -> bool:
        return not FIXED or s.point <= s.flushed or s.point <= s.log_start

    @invariant("LOG-35")
    def the_recovery_point_is_in_the_log(s) -> bool:
        return not FIXED or s.point <= s.log_end

    @lemma("LOG-35")
    def what_a_flush_says_is_flushed(s) -> bool:
        return not FIXED or s.syncing is None or s.syncing <= s.flushed

    @lemma("LOG-35")
    def what_is_flushed_is_in_the_log(s) -> bool:
        return s.flushed <= s.log_end

    @lemma("LOG-2")
    def phases(s) -> bool:
        """Between appends, and until the bytes are there, the log ends with them."""
        return (
            s.written == s.log_end + 1
            if s.phase == Phase.WRITTEN
            else s.written == s.log_end and (s.phase != Phase.ENDED or s.log_end > 0)
        )

    @lemma()
    def transactions_lie_in_the_log(s) -> bool:
        return (
            s.hw <= s.settled()
            and (s.opened is None or s.opened < s.settled())
            and (s.ended is None or (s.ended < s.marker and s.marker < s.settled()))
            and (s.opened is None or s.ended is None or s.marker < s.opened)
        )

    @lemma()
    def the_append_fits(s) -> bool:
        return s.phase == Phase.IDLE or (
            (s.batch != Batch.OPENS or s.opened is None)
            and (s.batch != Batch.ENDS or (s.opened is not None and s.ended is None))
        )

    @lemma("LOG-14")
    def the_epoch_is_there_before_the_bytes(s) -> bool:
        return s.phase not in (Phase.ASSIGNED, Phase.ROLLED) or (s.log_end < L and s.log_end < s.covered)

    @lemma("LOG-20")
    def unstable_is_the_first_undecided(s) -> bool:
        """But for one below the log start, which stands for it."""
        return s.unstable == (
            None
            if s.opened is None and s.ended is None
            else max(s.ended if s.ended is not None else s.opened, s.log_start)
        )

    @lemma()
    def replicated_ends_are_forgotten(s) -> bool:
        return s.ended is None or s.hw <= s.marker

    @step("LOG-43", "LOG-35")
    def what_was_flushed_outlives_a_crash(s) -> bool:
        """While an append is under way, or out of service, nothing is cut: whoever shortens the log then is a crash."""
        return (s.phase == Phase.IDLE and not s.offline) or s.next.log_end >= s.flushed or s.flushed <= s.log_start

    @step("LOG-43", "LOG-35")
    def a_recovery_does_not_raise_the_point(s) -> bool:
        """A process that comes back out of an append has the recovery point that it had, or its log start."""
        back = (s.phase not in (Phase.IDLE, Phase.ENDED) or s.offline) and s.next.phase == Phase.IDLE
        return not back or s.next.offline or s.next.point <= max(s.point, s.log_start)

    @step("LOG-32")
    def the_log_start_falls_with_the_log_alone(s) -> bool:
        return s.next.log_start >= s.log_start or s.next.log_end <= s.next.log_start

    @step("LOG-37")
    def nothing_is_done_after_a_failure(s) -> bool:
        return not s.offline or not s.next.offline or (s.next.log_end == s.log_end and s.next.written == s.written)

    @witness
    def refused_behind_the_bytes(s) -> bool:
        """The transaction index could not be written: the batch is in the log."""
        return s.offline and s.phase == Phase.ENDED

    @witness
    def refused_before_the_id(s) -> bool:
        return s.offline and not s.named

    @witness
    def a_reader_between_bytes_and_end(s) -> bool:
        return s.phase == Phase.WRITTEN and s.written > s.log_end

    @witness
    def an_undecided_transaction_below_the_high_watermark(s) -> bool:
        return s.unstable is not None and s.unstable < s.hw and s.log_start < s.unstable

    @witness
    def more_recovered_than_flushed(s) -> bool:
        """Not fixed: the log was cut between the sync and the mark, and grew again."""
        return FIXED or (s.point > s.flushed and s.point > s.log_start and s.point <= s.log_end)


MODELS = [
    Expectation(Writer, sizes={"L": 3, "FIXED": True}, distinct=66573, generated=670459, depth=31),
    Expectation(Writer, sizes={"L": 2, "FIXED": False}, distinct=6828, generated=60955, depth=24, note="as released"),
]
