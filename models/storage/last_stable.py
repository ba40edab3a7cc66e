"""Readers of transactions: what is stable while markers come and the high watermark moves, and what is seen of it.

`Stability` is the table alone, with which the spec is compared in every state. `Readers` is one partition: producers,
markers in time, late or repeated, a high watermark, a log start that rises into open transactions, truncation above the
high watermark, and a process that ends and reads the log again, which forgets which ends were not replicated. Beside it
one read_committed consumer. It fetches in steps that others come between: it takes the last stable offset as its bound,
then it collects the aborted transactions, which may be more by then, and then it goes from record to record, as many as
it likes, with a set of producers whose records it drops.

What was simplified. A record or marker is one offset. Which producer may write with which epoch and sequence is the
model of the producer state; that a truncated or crashed log makes the same table again is so too; that collecting may
stop at the first entry with which all is stable is the model of the transaction index. A fetch takes the high watermark
first and the first unstable offset then: its bound is stable when it has both, which is one step here. A leader's log
is truncated only above the high watermark. The reader goes on from the log start if it fell behind it, as after
OffsetOutOfRange.

Source: Kafka Internals, ch. 03; KIP-98; UnifiedLog, LocalLog and CompletedFetch, Kafka 4.3.0.
"""

# mypy: disable-error-code="operator, index, arg-type, assignment"
# (the modelling language unwraps an option where its value is wanted; mypy narrows no element of a map)

from __future__ import annotations

import enum
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Model, Range, Size, Sort, action, define, invariant, lemma, require, step, witness


class Producer(Sort):
    """A producer id."""


L = Size("L")
"""The most records of the log."""
Offset = Annotated[int, Range(0, L)]


class Kind(enum.Enum):
    NOTHING = 0
    PLAIN = 1
    TRANSACTIONAL = 2
    COMMIT = 3
    ABORT = 4


class Stability(Model):
    """The offsets of one log, without its records: the table of transactions beside high watermark and log start."""

    opened: dict[Producer, Offset | None]
    ended: dict[Offset, Offset | None]
    end: Offset
    high: Offset
    start: Offset

    @define
    def is_unstable(s, f: Offset) -> bool:
        """A transaction begins here that is open, or whose end is not replicated."""
        return s.ended[f] is not None or any(s.opened[p] == f for p in Producer)

    @action("LSO-3", who="client")
    def append(s) -> None:
        require(s.end < L)
        s.next.end = s.end + 1

    @action("LSO-3", "LSO-2", who="producer")
    def produce(s, p: Producer) -> None:
        require(s.end < L)
        s.next.opened[p] = s.end if s.opened[p] is None else s.opened[p]
        s.next.end = s.end + 1

    @action("LSO-4", "LSO-2", who="coordinator")
    def mark(s, p: Producer) -> None:
        """In time, late or again."""
        require(s.end < L)
        if s.opened[p] is not None:
            s.next.ended[s.opened[p]] = s.end
        s.next.opened[p] = None
        s.next.end = s.end + 1

    @action("LSO-5", "LSO-1", who="replication")
    def replicate(s, h: Offset) -> None:
        require(s.high < h, h <= s.end)
        s.next.high = h
        s.next.ended = {f: None if s.ended[f] is not None and s.ended[f] < h else s.ended[f] for f in range(L + 1)}

    @action("LSO-6", who="client")
    def delete_records(s, o: Offset) -> None:
        require(s.start < o, o <= s.high)
        s.next.start = o

    @invariant("LSO-1", "LSO-5", "LSO-6")
    def offsets_are_in_order(s) -> bool:
        return s.start <= s.high and s.high <= s.end

    @invariant("LSO-2")
    def transactions_are_in_the_log(s) -> bool:
        return all(s.opened[p] is None or s.opened[p] < s.end for p in Producer) and all(
            s.ended[f] is None or (f < s.ended[f] and s.ended[f] < s.end and s.ended[f] >= s.high) for f in range(L + 1)
        )

    @invariant("LSO-2", "LSO-4")
    def transactions_begin_apart(s) -> bool:
        return all(
            s.opened[p] is None or s.opened[p] != s.opened[q] or p == q for p in Producer for q in Producer
        ) and all(s.ended[f] is None or all(s.opened[p] != f for p in Producer) for f in range(L + 1))

    @step("LSO-1", "LSO-2")
    def nothing_below_becomes_unstable(s, f: Offset) -> bool:
        """So that the last stable offset does not fall."""
        return (
            s.is_unstable(f) or f >= s.end or (s.next.ended[f] is None and all(s.next.opened[p] != f for p in Producer))
        )

    @step("LSO-4", "LSO-5")
    def what_is_unstable_ends_and_is_replicated(s, f: Offset) -> bool:
        """A transaction becomes stable when the high watermark passes its marker, and in no other way."""
        return (
            not s.is_unstable(f)
            or (s.ended[f] is not None and s.ended[f] < s.next.high)
            or s.next.ended[f] is not None
            or any(s.next.opened[p] == f for p in Producer)
        )

    @step("LSO-6")
    def deleting_decides_nothing(s, p: Producer) -> bool:
        return s.next.start == s.start or s.next.opened[p] == s.opened[p]

    @step("LSO-5", "LSO-6")
    def bounds_only_rise(s) -> bool:
        return s.next.high >= s.high and s.next.start >= s.start

    @witness
    def all_is_replicated_and_deleted(s) -> bool:
        return s.end > 0 and s.high == s.end and s.start == s.end

    @witness
    def deleted_beyond_an_open_transaction(s, p: Producer) -> bool:
        return s.opened[p] is not None and s.opened[p] < s.start

    @witness
    def an_end_is_unstable_above_another(s) -> bool:
        return any(s.ended[f] is not None and f > 0 and s.is_unstable(0) for f in range(L + 1))


class Readers(Model):
    """`open_at[x]` has the first offset of each producer's open transaction, as the records below x make it.
    `decided[x]` is the marker that ends the transaction of record x, written when it comes: what is true of it.
    `began[m]` is the first offset of the transaction that the marker at m ended, if it ended one; with an abort marker
    that is its entry in the transaction index. `ended` has markers that are not known to be replicated, by the first
    offset of their transactions; below `forgotten` a process that ended has forgotten them.

    Of the consumer: `position`; of its fetch the `bound`, None while it has none, and whether the aborted transactions
    are `collected`; `told` are their first offsets, as long as they are ahead; `dropping` the producers whose records
    it drops. `seen` are the records that it handed out; at `skipped` it went on when the log start had passed it."""

    who: dict[Offset, Producer | None]
    kind: dict[Offset, Kind]
    decided: dict[Offset, Offset | None]
    began: dict[Offset, Offset | None]
    open_at: dict[Offset, dict[Producer, Offset | None]]
    end: Offset
    high: Offset
    start: Offset
    ended: dict[Offset, Offset | None]
    forgotten: Offset
    position: Offset
    bound: Offset | None
    collected: bool
    told: dict[Producer, set[Offset]]
    dropping: set[Producer]
    seen: set[Offset]
    skipped: Offset

    @define
    def is_stable(s, o: Offset) -> bool:
        """The last stable offset is at least o."""
        return o <= s.high and (
            o <= s.start
            or (
                all(s.open_at[s.end][p] is None or o <= s.open_at[s.end][p] for p in Producer)
                and all(s.ended[f] is None or o <= f for f in range(L + 1))
            )
        )

    @define
    def write(s, p: Producer, k: Kind, opened: Offset | None) -> None:
        """The record at the end, and what is open of its producer then."""
        s.next.who[s.end] = p
        s.next.kind[s.end] = k
        s.next.open_at[s.end + 1] = {q: opened if q == p else s.open_at[s.end][q] for q in Producer}
        s.next.end = s.end + 1

    @action("LSO-3", who="producer")
    def append(s, p: Producer) -> None:
        """A record that belongs to no transaction."""
        require(s.end < L, s.open_at[s.end][p] is None)
        s.write(p, Kind.PLAIN, None)

    @action("LSO-3", "LSO-2", who="producer")
    def produce(s, p: Producer) -> None:
        """A record of the producer's transaction, which it opens if none is open."""
        require(s.end < L)
        s.write(p, Kind.TRANSACTIONAL, s.end if s.open_at[s.end][p] is None else s.open_at[s.end][p])

    @action("LSO-4", who="coordinator")
    def mark(s, p: Producer, commit: bool) -> None:
        """A marker, whether a transaction is open or not."""
        require(s.end < L)
        s.write(p, Kind.COMMIT if commit else Kind.ABORT, None)
        s.next.began[s.end] = s.open_at[s.end][p]
        if s.open_at[s.end][p] is not None:
            s.next.ended[s.open_at[s.end][p]] = s.end
        s.next.decided = {
            x: s.end
            if x < s.end and s.who[x] == p and s.kind[x] == Kind.TRANSACTIONAL and s.decided[x] is None
            else s.decided[x]
            for x in range(L + 1)
        }

    @action("LSO-5", "LSO-1", who="replication")
    def replicate(s, h: Offset) -> None:
        require(s.high < h, h <= s.end)
        s.next.high = h
        s.next.ended = {f: None if s.ended[f] is not None and s.ended[f] < h else s.ended[f] for f in range(L + 1)}

    @action("LSO-6", "LSO-7", who="client")
    def delete_records(s, o: Offset) -> None:
        """DeleteRecords and retention alike."""
        require(s.start < o, o <= s.high)
        s.next.start = o

    @action("LSO-9", who="environment")
    def reopen(s) -> None:
        """What is open is read again from the log; which ends are not replicated is not."""
        s.next.ended = {f: None for f in range(L + 1)}
        s.next.forgotten = s.end

    @action("LSO-8", "LSO-9", who="replication")
    def truncate(s, x: Offset, loaded: Offset) -> None:
        """What is not replicated is cut off, and transactions that ended beyond are open again. The table is made from
        the snapshot at `loaded`: ends below are forgotten, those from there on known again, replicated ones too. Not
        cut is what was forgotten, and so taken for replicated: a coordinator would write the same marker again."""
        require(s.high <= x, s.forgotten <= x, x < s.end, loaded <= x)
        s.next.end = x
        s.next.who = {y: s.who[y] if y < x else None for y in range(L + 1)}
        s.next.kind = {y: s.kind[y] if y < x else Kind.NOTHING for y in range(L + 1)}
        s.next.decided = {
            y: s.decided[y] if y < x and s.decided[y] is not None and s.decided[y] < x else None for y in range(L + 1)
        }
        s.next.began = {y: s.began[y] if y < x else None for y in range(L + 1)}
        s.next.open_at = {y: {p: s.open_at[y][p] if y <= x else None for p in Producer} for y in range(L + 1)}
        s.next.ended = {
            f: s.decided[f]
            if s.decided[f] is not None and loaded <= s.decided[f] and s.decided[f] < x and s.began[s.decided[f]] == f
            else None
            for f in range(L + 1)
        }
        s.next.forgotten = loaded if s.forgotten < loaded else s.forgotten

    @action("LSO-10", who="reader")
    def fetch(s, o: Offset) -> None:
        """The bound of a fetch: the last stable offset of this moment, or less, if there is room for no more."""
        require(s.bound is None, s.start <= s.position, s.position < o, s.is_stable(o))
        s.next.bound = o

    @action("LSO-12", "LSO-13", who="reader")
    def collect(s, upper: Offset) -> None:
        """The aborted transactions that overlap, of all that are in the index by now: some may begin beyond."""
        require(s.bound is not None, not s.collected, s.bound <= upper)
        s.next.told = {
            p: {
                f
                for f in range(L + 1)
                if f < upper
                and any(
                    m >= s.position and s.kind[m] == Kind.ABORT and s.who[m] == p and s.began[m] == f
                    for m in range(L + 1)
                )
            }
            for p in Producer
        }
        s.next.collected = True

    @define
    def is_dropped(s, p: Producer) -> bool:
        """Whether the records of p are dropped at the position: they were, or a transaction of p that is told begins
        at or before it."""
        return p in s.dropping or any(f in s.told[p] and f <= s.position for f in range(L + 1))

    @action("LSO-11", "LSO-16", who="reader")
    def consume(s, p: Producer) -> None:
        """The next record."""
        require(s.bound is not None, s.collected, s.position < s.bound, s.who[s.position] == p)
        if s.kind[s.position] == Kind.PLAIN or (s.kind[s.position] == Kind.TRANSACTIONAL and not s.is_dropped(p)):
            s.next.seen = s.seen | {s.position}
        s.next.dropping = {q for q in Producer if s.is_dropped(q) and (s.kind[s.position] != Kind.ABORT or q != p)}
        s.next.told = {q: {f for f in range(L + 1) if f in s.told[q] and f > s.position} for q in Producer}
        s.next.position = s.position + 1

    @action("LSO-16", who="reader")
    def finish(s) -> None:
        """The fetch is done with, wherever the consumer stands in it."""
        require(s.bound is not None)
        s.next.bound = None
        s.next.collected = False
        s.next.told = {q: set() for q in Producer}
        s.next.dropping = set()

    @action("LSO-10", who="reader")
    def fall_behind(s) -> None:
        """The log start has passed the consumer, which goes on from there."""
        require(s.bound is None, s.position < s.start)
        s.next.position = s.start
        s.next.skipped = s.start

    # what is claimed

    @define
    def is_committed(s, x: Offset) -> bool:
        return s.kind[x] == Kind.TRANSACTIONAL and s.decided[x] is not None and s.kind[s.decided[x]] == Kind.COMMIT

    @invariant("LSO-11", "LSO-2", "LSO-12")
    def nothing_else_is_seen(s, x: Offset) -> bool:
        """No aborted record, and none that is undecided."""
        return x not in s.seen or s.kind[x] == Kind.PLAIN or s.is_committed(x)

    @invariant("LSO-11", "LSO-16", "LSO-12")
    def nothing_is_left_out(s, x: Offset) -> bool:
        """Every record without a transaction and every committed one that the consumer has passed."""
        return x < s.skipped or x >= s.position or x in s.seen or (s.kind[x] != Kind.PLAIN and not s.is_committed(x))

    @invariant("LSO-10", "LSO-1")
    def only_what_is_replicated_is_read(s, x: Offset) -> bool:
        return s.position <= s.high and (x not in s.seen or x < s.high) and (s.bound is None or s.bound <= s.high)

    @invariant("LSO-1", "LSO-6", "LSO-5")
    def offsets_are_in_order(s) -> bool:
        return s.start <= s.high and s.high <= s.end and s.is_stable(s.start)

    @define
    def is_settled(s, x: Offset) -> bool:
        """The marker of its transaction is there, and replicated or taken for it."""
        return s.decided[x] is not None and (s.decided[x] < s.high or s.decided[x] < s.forgotten)

    @invariant("LSO-2", "LSO-1")
    def nothing_undecided_is_stable(s, x: Offset) -> bool:
        """At or below a record whose transaction is not settled there is an unstable offset: where its transaction
        begins."""
        return (
            s.kind[x] != Kind.TRANSACTIONAL
            or s.is_settled(x)
            or (
                s.open_at[s.end][s.who[x]] is not None and s.open_at[s.end][s.who[x]] <= x
                if s.decided[x] is None
                else s.began[s.decided[x]] is not None
                and s.began[s.decided[x]] <= x
                and s.ended[s.began[s.decided[x]]] is not None
            )
        )

    @invariant("LSO-4", "LSO-12")
    def every_abort_is_in_the_index(s, x: Offset) -> bool:
        """And its transaction begins at or before the record."""
        return (
            s.kind[x] != Kind.TRANSACTIONAL
            or s.decided[x] is None
            or (s.began[s.decided[x]] is not None and s.began[s.decided[x]] <= x)
        )

    @step("LSO-1", "LSO-2", "LSO-6")
    def the_last_stable_offset_does_not_fall(s, o: Offset) -> bool:
        return (
            s.next.end < s.end
            or not s.is_stable(o)
            or (
                o <= s.next.high
                and (
                    o <= s.next.start
                    or (
                        all(
                            s.next.open_at[s.next.end][p] is None or o <= s.next.open_at[s.next.end][p]
                            for p in Producer
                        )
                        and all(s.next.ended[f] is None or o <= f for f in range(L + 1))
                    )
                )
            )
        )

    @step("LSO-16")
    def each_once_and_in_order(s, x: Offset) -> bool:
        """What is handed out stands at the position, which moves on."""
        return (x in s.seen) == (x in s.next.seen) or (
            x in s.next.seen and x == s.position and s.next.position == x + 1
        )

    @step("LSO-3", "LSO-8")
    def the_log_grows_at_its_end(s, x: Offset) -> bool:
        """Or is cut there: no record below changes."""
        return x >= s.end or x >= s.next.end or (s.next.who[x] == s.who[x] and s.next.kind[x] == s.kind[x])

    @step("LSO-5", "LSO-6", "LSO-7")
    def bounds_only_rise(s) -> bool:
        return s.next.high >= s.high and s.next.start >= s.start

    @step("LSO-5")
    def what_is_replicated_holds_nothing_back(s, f: Offset) -> bool:
        """When the high watermark has passed its marker."""
        return s.next.high == s.high or s.next.ended[f] is None or s.next.ended[f] >= s.next.high

    @step("LSO-9")
    def what_is_forgotten_holds_nothing_back(s, f: Offset) -> bool:
        """When it is forgotten."""
        return s.next.forgotten == s.forgotten or s.next.ended[f] is None or s.next.ended[f] >= s.next.forgotten

    @step("LSO-10")
    def only_what_is_deleted_is_skipped(s) -> bool:
        return s.next.skipped == s.skipped or (s.position < s.next.skipped and s.next.skipped == s.start)

    @step("LSO-8", "LSO-9", "LSO-11")
    def what_was_seen_stays_decided(s, x: Offset) -> bool:
        return x not in s.seen or s.next.decided[x] == s.decided[x]

    # what the proof needs

    @lemma("LSO-8")
    def nothing_is_open_beyond_the_end(s, x: Offset, p: Producer) -> bool:
        return x <= s.end or s.open_at[x][p] is None

    @lemma("LSO-3")
    def every_record_is_somebodys(s, x: Offset) -> bool:
        return (
            (any(s.who[x] == p for p in Producer) and s.kind[x] != Kind.NOTHING)
            if x < s.end
            else (s.who[x] is None and s.kind[x] == Kind.NOTHING and s.decided[x] is None and s.began[x] is None)
        )

    @lemma("LSO-2")
    def what_is_undecided_is_open(s, x: Offset, y: Offset, p: Producer) -> bool:
        """As the records below y make it."""
        return (
            x >= y
            or y > s.end
            or s.who[x] != p
            or s.kind[x] != Kind.TRANSACTIONAL
            or (s.decided[x] is not None and s.decided[x] < y)
            or (s.open_at[y][p] is not None and s.open_at[y][p] <= x)
        )

    @lemma("LSO-2")
    def what_is_open_is_undecided(s, x: Offset, y: Offset, p: Producer) -> bool:
        """From its first offset on all records of the producer belong to it."""
        return (
            y > s.end
            or s.open_at[y][p] is None
            or (
                s.open_at[y][p] < y
                and s.who[s.open_at[y][p]] == p
                and s.kind[s.open_at[y][p]] == Kind.TRANSACTIONAL
                and (
                    x < s.open_at[y][p]
                    or x >= y
                    or s.who[x] != p
                    or (s.kind[x] == Kind.TRANSACTIONAL and (s.decided[x] is None or s.decided[x] >= y))
                )
            )
        )

    @lemma("LSO-4")
    def a_marker_ends_what_is_open(s, m: Offset, p: Producer) -> bool:
        return s.who[m] != p or (
            s.began[m] == s.open_at[m][p] if s.kind[m] == Kind.COMMIT or s.kind[m] == Kind.ABORT else s.began[m] is None
        )

    @lemma("LSO-4")
    def a_marker_decides(s, x: Offset) -> bool:
        return s.decided[x] is None or (
            x < s.decided[x]
            and s.decided[x] < s.end
            and s.kind[x] == Kind.TRANSACTIONAL
            and s.who[s.decided[x]] == s.who[x]
            and (s.kind[s.decided[x]] == Kind.COMMIT or s.kind[s.decided[x]] == Kind.ABORT)
        )

    @lemma("LSO-4")
    def the_first_marker_decides(s, x: Offset, m: Offset) -> bool:
        return (
            x >= m
            or m >= s.end
            or s.who[x] != s.who[m]
            or s.kind[x] != Kind.TRANSACTIONAL
            or (s.kind[m] != Kind.COMMIT and s.kind[m] != Kind.ABORT)
            or (s.decided[x] is not None and s.decided[x] <= m)
        )

    @lemma("LSO-4")
    def a_marker_ends_one_transaction(s, m: Offset) -> bool:
        """Whose first record it decides: no other marker has ended that."""
        return s.began[m] is None or (
            s.began[m] < m
            and m < s.end
            and s.who[s.began[m]] == s.who[m]
            and s.kind[s.began[m]] == Kind.TRANSACTIONAL
            and s.decided[s.began[m]] == m
        )

    @lemma("LSO-5")
    def an_unreplicated_end_is_remembered(s, x: Offset) -> bool:
        return (
            s.decided[x] is None
            or s.decided[x] < s.high
            or s.decided[x] < s.forgotten
            or (s.began[s.decided[x]] is not None and s.ended[s.began[s.decided[x]]] == s.decided[x])
        )

    @lemma("LSO-5")
    def ends_are_in_the_log(s, f: Offset) -> bool:
        return s.ended[f] is None or (f < s.ended[f] and s.ended[f] < s.end and s.began[s.ended[f]] == f)

    @lemma("LSO-10")
    def a_fetch_is_stable(s, x: Offset) -> bool:
        """Whatever comes after the bound was taken."""
        return s.bound is None or x >= s.bound or s.kind[x] != Kind.TRANSACTIONAL or s.is_settled(x)

    @lemma("LSO-10")
    def what_is_open_is_beyond_the_fetch(s, p: Producer) -> bool:
        return s.bound is None or s.open_at[s.end][p] is None or s.open_at[s.end][p] >= s.bound

    @lemma("LSO-16")
    def the_position_is_in_the_fetch(s) -> bool:
        return (
            s.forgotten <= s.end
            and s.skipped <= s.position
            and s.skipped <= s.start
            and (s.bound is None or s.position <= s.bound)
            and (s.bound is not None or not s.collected)
        )

    @lemma("LSO-16")
    def nothing_is_seen_ahead(s, x: Offset) -> bool:
        return x not in s.seen or x < s.position

    @lemma("LSO-12", "LSO-13")
    def what_is_told_was_aborted(s, p: Producer, f: Offset) -> bool:
        """And its marker is ahead."""
        return f not in s.told[p] or (
            s.bound is not None
            and s.collected
            and (
                f >= s.bound
                or (
                    s.kind[f] == Kind.TRANSACTIONAL
                    and s.who[f] == p
                    and s.decided[f] is not None
                    and s.decided[f] >= s.position
                    and s.kind[s.decided[f]] == Kind.ABORT
                    and s.began[s.decided[f]] == f
                    and (s.decided[f] < s.high or s.decided[f] < s.forgotten)
                )
            )
        )

    @lemma("LSO-12")
    def what_is_dropped_was_aborted(s, p: Producer) -> bool:
        """And the marker up to which it is dropped is ahead."""
        return p not in s.dropping or (
            s.bound is not None
            and s.collected
            and any(
                m >= s.position
                and s.kind[m] == Kind.ABORT
                and s.who[m] == p
                and s.began[m] is not None
                and s.began[m] < s.position
                and (m < s.high or m < s.forgotten)
                for m in range(L + 1)
            )
        )

    @lemma("LSO-12")
    def what_was_aborted_is_told_or_dropped(s, m: Offset, p: Producer) -> bool:
        return (
            s.bound is None
            or not s.collected
            or m < s.position
            or s.kind[m] != Kind.ABORT
            or s.who[m] != p
            or s.began[m] is None
            or s.began[m] >= s.bound
            or s.began[m] in s.told[p]
            or (s.began[m] < s.position and p in s.dropping)
        )

    @lemma("LSO-11")
    def what_was_seen_is_replicated(s, x: Offset) -> bool:
        return x not in s.seen or s.kind[x] == Kind.PLAIN or s.is_settled(x)

    @lemma("LSO-11")
    def what_was_passed_is_decided(s, x: Offset) -> bool:
        """Where the consumer did not skip it."""
        return x < s.skipped or x >= s.position or s.kind[x] != Kind.TRANSACTIONAL or s.is_settled(x)

    @witness
    def deleted_up_to_the_high_watermark(s) -> bool:
        return s.start > 0 and s.start == s.high

    @witness
    def fetches_again(s) -> bool:
        """It is done with a fetch, and goes on behind it."""
        return s.bound is None and s.position > 0 and s.skipped == 0

    @witness
    def drops_one_and_sees_another(s) -> bool:
        """A record between those of a transaction that was aborted, or before them."""
        return s.seen != set() and any(p in s.dropping for p in Producer)

    @witness
    def sees_what_was_committed(s) -> bool:
        return any(x in s.seen and s.is_committed(x) for x in range(L + 1))

    @witness
    def sees_all_up_to_the_end(s) -> bool:
        return s.position == L and s.seen != set() and s.skipped == 0

    @witness
    def deleted_into_a_transaction(s, p: Producer) -> bool:
        return s.open_at[s.end][p] is not None and s.open_at[s.end][p] < s.start and s.start < s.end

    @witness
    def aborted_while_it_is_fetched(s) -> bool:
        """Another abort is in the index when the aborted transactions are collected, beyond what is fetched."""
        return any(f in s.told[p] and s.bound is not None and f >= s.bound for p in Producer for f in range(L + 1))

    @witness
    def marked_again(s) -> bool:
        """A second marker, that ends nothing."""
        return any(s.kind[m] == Kind.ABORT and s.began[m] is None and m < s.position for m in range(L + 1))


MODELS = [
    Expectation(
        Stability,
        sizes={"Producer": 2, "L": 4},
        distinct=815,
        generated=3_284,
        depth=7,
        deadlock=True,
        note="the log is full",
    ),
    Expectation(Readers, sizes={"Producer": 2, "L": 3}, distinct=326_103, generated=1_752_800, depth=17),
]
