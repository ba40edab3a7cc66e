"""Producers of a partition: the table, call by call, and a log whose table is lost and made again.

`Producers` is the table of one partition while batches, markers and the high watermark come; the spec is compared with
it in every state. `Log` has the records too: the table is a function of them, a snapshot keeps it as it was at one
offset, a crash leaves the snapshot and the log, truncation cuts the log, and reading it again from the snapshot must
make what there was. Every batch is one record. Producers begin with sequence 0; nobody expires.

Source: Kafka Internals, ch. 03, "ProducerStateManager: idempotency, snapshots & transactions"; KIP-98; KIP-890.
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


E = Size("E")
"""The highest epoch, of producers and of coordinators."""
S = Size("S")
"""How many sequences there are."""
L = Size("L")
"""The most records of the log."""
Epoch = Annotated[int, Range(0, E)]
Sequence = Annotated[int, Range(0, S)]
"""The one that comes next; 0 at the beginning of an epoch."""
Offset = Annotated[int, Range(0, L)]


class Producers(Model):
    """`ended` has the marker's offset of transactions that ended and are not known to be replicated, by first
    offset."""

    epoch: dict[Producer, Epoch | None]
    following: dict[Producer, Sequence]
    coordinator: dict[Producer, Epoch | None]
    opened: dict[Producer, Offset | None]
    ended: dict[Offset, Offset | None]
    end: Offset

    @action("PSM-1", "PSM-3", "PSM-5", "PSM-6", "PSM-8", "PSM-9", who="producer")
    def append(s, p: Producer, e: Epoch, q: Sequence, transactional: bool) -> None:
        require(s.end < L, q < S)
        require(s.epoch[p] is None or s.epoch[p] <= e)
        require(q == s.following[p] if s.epoch[p] == e else q == 0)
        require(transactional or s.opened[p] is None)
        s.next.epoch[p] = e
        s.next.following[p] = q + 1
        if transactional and s.opened[p] is None:
            s.next.opened[p] = s.end
        s.next.end = s.end + 1

    @action("PSM-10", "PSM-11", "PSM-12", "PSM-8", who="coordinator")
    def mark(s, p: Producer, e: Epoch, c: Epoch, bumps: bool) -> None:
        """`bumps`: transaction version 2, by which every end of a transaction has an epoch of its own."""
        require(s.end < L)
        require(s.epoch[p] is None or s.epoch[p] <= e)
        require(not bumps or s.epoch[p] != e or s.opened[p] is None)
        require(s.coordinator[p] is None or s.coordinator[p] <= c)
        if s.epoch[p] != e:
            s.next.following[p] = 0
        s.next.epoch[p] = e
        s.next.coordinator[p] = c
        if s.opened[p] is not None:
            s.next.ended[s.opened[p]] = s.end
        s.next.opened[p] = None
        s.next.end = s.end + 1

    @action("PSM-15", who="replication")
    def replicate(s, h: Offset) -> None:
        """The high watermark is h."""
        s.next.ended = {f: None if s.ended[f] is not None and s.ended[f] < h else s.ended[f] for f in range(L + 1)}

    @define
    def unstable(s, f: Offset) -> bool:
        """A transaction begins here that is open, or whose end is not replicated."""
        return s.ended[f] is not None or any(s.opened[p] == f for p in Producer)

    @invariant("PSM-13", "PSM-9", "PSM-16")
    def transactions_begin_apart(s) -> bool:
        """No two at one offset, so that the first offset names the transaction."""
        return all(
            s.opened[p] is None or s.opened[p] != s.opened[q] or p == q for p in Producer for q in Producer
        ) and all(s.ended[f] is None or all(s.opened[p] != f for p in Producer) for f in range(L + 1))

    @invariant("PSM-13", "PSM-10")
    def transactions_are_in_the_log(s) -> bool:
        return all(s.opened[p] is None or s.opened[p] < s.end for p in Producer) and all(
            s.ended[f] is None or (f < s.ended[f] and s.ended[f] < s.end) for f in range(L + 1)
        )

    @invariant("PSM-1", "PSM-9")
    def unknown_producers_have_nothing(s, p: Producer) -> bool:
        return s.epoch[p] is not None or (s.following[p] == 0 and s.opened[p] is None and s.coordinator[p] is None)

    @step("PSM-6", "PSM-11")
    def epochs_never_fall(s, p: Producer) -> bool:
        return s.epoch[p] is None or (s.next.epoch[p] is not None and s.next.epoch[p] >= s.epoch[p])

    @step("PSM-12")
    def coordinator_epochs_never_fall(s, p: Producer) -> bool:
        return s.coordinator[p] is None or (
            s.next.coordinator[p] is not None and s.next.coordinator[p] >= s.coordinator[p]
        )

    @step("PSM-3", "PSM-5")
    def sequences_come_in_order(s, p: Producer) -> bool:
        """The next one is one more, or the epoch is new."""
        return (
            s.next.following[p] == s.following[p]
            or (s.next.epoch[p] == s.epoch[p] and s.next.following[p] == s.following[p] + 1)
            or (s.next.epoch[p] != s.epoch[p] and s.next.following[p] <= 1)
        )

    @step("PSM-3", "PSM-11")
    def an_epoch_begins_with_its_first_sequence(s, p: Producer) -> bool:
        """With a marker none is used yet."""
        return s.next.epoch[p] == s.epoch[p] or (
            s.next.following[p] <= 1 and (s.next.coordinator[p] == s.coordinator[p] or s.next.following[p] == 0)
        )

    @step("PSM-9")
    def an_open_transaction_keeps_its_first_offset(s, p: Producer) -> bool:
        return s.opened[p] is None or s.next.opened[p] is None or s.next.opened[p] == s.opened[p]

    @step("PSM-9", "PSM-10")
    def one_transaction_begins_or_ends(s, p: Producer, q: Producer) -> bool:
        return p == q or s.next.opened[p] == s.opened[p] or s.next.opened[q] == s.opened[q]

    @step("PSM-15")
    def ends_are_replicated_in_their_order(s, f: Offset, g: Offset) -> bool:
        return (
            s.ended[f] is None
            or s.ended[g] is None
            or s.ended[f] >= s.ended[g]
            or s.next.ended[g] is not None
            or s.next.ended[f] is None
        )

    @step("PSM-14", "PSM-15")
    def nothing_below_becomes_unstable(s, f: Offset) -> bool:
        """So that the last stable offset does not fall."""
        return s.unstable(f) or f >= s.end or (s.next.ended[f] is None and all(s.next.opened[p] != f for p in Producer))

    @witness
    def every_sequence_is_used(s, p: Producer) -> bool:
        return s.following[p] == S and s.coordinator[p] is not None

    @witness
    def ended_in_the_epoch_of_its_records(s, p: Producer) -> bool:
        return s.following[p] == S and s.ended[0] == S and s.end == S + 1

    @witness
    def two_are_open_and_one_ended(s) -> bool:
        return all(s.opened[p] is not None for p in Producer) and any(s.ended[f] is not None for f in range(L + 1))


class Kind(enum.Enum):
    NOTHING = 0
    PLAIN = 1
    TRANSACTIONAL = 2
    MARKER = 3


class Log(Model):
    """`at` is the offset at which the table stands: below `end` while the log is being read again. `true_*[x]` is what
    the records below x make, written when they were appended: the judge of what is read again. `decided[x]` is the
    offset of the marker that ends the transaction of record x, and `begins[x]` that transaction's first offset.
    `loaded` is the offset of the snapshot that was loaded last."""

    who: dict[Offset, Producer | None]
    kind: dict[Offset, Kind]
    written_epoch: dict[Offset, Epoch]
    number: dict[Offset, Sequence]
    begins: dict[Offset, Offset]
    decided: dict[Offset, Offset | None]
    end: Offset
    high: Offset
    epoch: dict[Producer, Epoch | None]
    following: dict[Producer, Sequence]
    opened: dict[Producer, Offset | None]
    ended: dict[Offset, Offset | None]
    at: Offset
    saved_at: Offset
    saved_epoch: dict[Producer, Epoch | None]
    saved_following: dict[Producer, Sequence]
    saved_opened: dict[Producer, Offset | None]
    loaded: Offset
    true_epoch: dict[Offset, dict[Producer, Epoch | None]]
    true_following: dict[Offset, dict[Producer, Sequence]]
    true_opened: dict[Offset, dict[Producer, Offset | None]]

    @define
    def take(s, p: Producer, k: Kind, e: Epoch, q: Sequence, x: Offset) -> None:
        """The table takes the record at x, whoever checked it."""
        s.next.epoch[p] = e
        if k == Kind.MARKER:
            if s.epoch[p] != e:
                s.next.following[p] = 0
            if s.opened[p] is not None:
                s.next.ended[s.opened[p]] = x
            s.next.opened[p] = None
        else:
            s.next.following[p] = q + 1
            if k == Kind.TRANSACTIONAL and s.opened[p] is None:
                s.next.opened[p] = x
        s.next.at = x + 1

    @define
    def write(s, p: Producer, k: Kind, e: Epoch, q: Sequence) -> None:
        """The record at the end of the log, and what the records up to it make."""
        s.next.who[s.end] = p
        s.next.kind[s.end] = k
        s.next.written_epoch[s.end] = e
        s.next.number[s.end] = q
        s.next.end = s.end + 1
        s.next.true_epoch[s.end + 1] = {r: e if r == p else s.epoch[r] for r in Producer}
        s.next.true_following[s.end + 1] = {
            r: s.following[r] if r != p or (k == Kind.MARKER and s.epoch[p] == e) else 0 if k == Kind.MARKER else q + 1
            for r in Producer
        }
        s.next.true_opened[s.end + 1] = {
            r: s.opened[r]
            if r != p or (k != Kind.MARKER and (k == Kind.PLAIN or s.opened[p] is not None))
            else None
            if k == Kind.MARKER
            else s.end
            for r in Producer
        }

    @action("PSM-1", "PSM-2", "PSM-3", "PSM-5", "PSM-6", "PSM-9", who="producer")
    def append(s, p: Producer, e: Epoch, q: Sequence, transactional: bool) -> None:
        """A batch that is sent, or sent again: whoever sends it, whatever is in flight."""
        require(s.at == s.end, s.end < L, q < S)
        require(s.epoch[p] is None or s.epoch[p] <= e)
        require(q == s.following[p] if s.epoch[p] == e else q == 0)
        require(transactional or s.opened[p] is None)
        s.write(p, Kind.TRANSACTIONAL if transactional else Kind.PLAIN, e, q)
        s.take(p, Kind.TRANSACTIONAL if transactional else Kind.PLAIN, e, q, s.end)
        s.next.begins[s.end] = s.end if s.opened[p] is None else s.opened[p]
        s.next.decided[s.end] = None

    @action("PSM-10", "PSM-11", who="coordinator")
    def mark(s, p: Producer, e: Epoch) -> None:
        require(s.at == s.end, s.end < L)
        require(s.epoch[p] is None or s.epoch[p] <= e)
        s.write(p, Kind.MARKER, e, 0)
        s.take(p, Kind.MARKER, e, 0, s.end)
        s.next.decided = {
            x: s.end
            if x < s.end and s.who[x] == p and s.kind[x] == Kind.TRANSACTIONAL and s.decided[x] is None
            else s.decided[x]
            for x in range(L + 1)
        }

    @action("PSM-15", "PSM-14", who="replication")
    def replicate(s, h: Offset) -> None:
        require(s.at == s.end, s.high < h, h <= s.end)
        s.next.high = h
        s.next.ended = {f: None if s.ended[f] is not None and s.ended[f] < h else s.ended[f] for f in range(L + 1)}

    @action("PSM-18", who="log")
    def snapshot(s) -> None:
        """At a roll, or when the log is closed or was recovered."""
        require(s.at == s.end, s.saved_at < s.end)
        s.next.saved_at = s.at
        s.next.saved_epoch = s.epoch
        s.next.saved_following = s.following
        s.next.saved_opened = s.opened

    @define
    def reload(s, there: bool) -> None:
        """The table is lost; the snapshot is loaded if it is there."""
        s.next.epoch = {p: s.saved_epoch[p] if there else None for p in Producer}
        s.next.following = {p: s.saved_following[p] if there else 0 for p in Producer}
        s.next.opened = {p: s.saved_opened[p] if there else None for p in Producer}
        s.next.ended = {f: None for f in range(L + 1)}
        s.next.at = s.saved_at if there else 0
        s.next.loaded = s.saved_at if there else 0

    @define
    def forget_snapshot(s) -> None:
        s.next.saved_at = 0
        s.next.saved_epoch = {p: None for p in Producer}
        s.next.saved_following = {p: 0 for p in Producer}
        s.next.saved_opened = {p: None for p in Producer}

    @action("PSM-28", "PSM-20", who="environment")
    def crash(s, readable: bool) -> None:
        """The process ends at any moment, while it reads too. The snapshot may turn out unreadable, and is deleted."""
        s.reload(readable)
        if not readable:
            s.forget_snapshot()

    @action("PSM-19", "PSM-20", who="replication")
    def truncate(s, x: Offset) -> None:
        """What is not replicated may be cut off: by another leader, or by a crash that tore it."""
        require(s.high <= x, x < s.end)
        s.next.end = x
        s.next.who = {y: s.who[y] if y < x else None for y in range(L + 1)}
        s.next.kind = {y: s.kind[y] if y < x else Kind.NOTHING for y in range(L + 1)}
        s.next.written_epoch = {y: s.written_epoch[y] if y < x else 0 for y in range(L + 1)}
        s.next.number = {y: s.number[y] if y < x else 0 for y in range(L + 1)}
        s.next.begins = {y: s.begins[y] if y < x else 0 for y in range(L + 1)}
        s.next.decided = {
            y: s.decided[y] if y < x and s.decided[y] is not None and s.decided[y] < x else None for y in range(L + 1)
        }
        s.next.true_epoch = {y: {p: s.true_epoch[y][p] if y <= x else None for p in Producer} for y in range(L + 1)}
        s.next.true_following = {
            y: {p: s.true_following[y][p] if y <= x else 0 for p in Producer} for y in range(L + 1)
        }
        s.next.true_opened = {y: {p: s.true_opened[y][p] if y <= x else None for p in Producer} for y in range(L + 1)}
        s.reload(s.saved_at <= x)
        if s.saved_at > x:
            s.forget_snapshot()

    @action("PSM-20", "PSM-28", "PSM-8", who="log")
    def read(s) -> None:
        """The next record of the log, as replication: nothing is checked."""
        require(s.at < s.end)
        require(s.who[s.at] is not None)
        s.take(s.who[s.at], s.kind[s.at], s.written_epoch[s.at], s.number[s.at], s.at)

    # what is claimed

    @invariant("PSM-28", "PSM-20", "PSM-1")
    def the_table_is_what_the_log_makes(s) -> bool:
        """At every moment, after whatever crashes: the table is that of the records below `at`."""
        return all(
            s.epoch[p] == s.true_epoch[s.at][p]
            and s.following[p] == s.true_following[s.at][p]
            and s.opened[p] == s.true_opened[s.at][p]
            for p in Producer
        )

    @invariant("PSM-18", "PSM-28", "PSM-19")
    def the_snapshot_is_what_the_log_made(s) -> bool:
        return s.saved_at <= s.end and all(
            s.saved_epoch[p] == s.true_epoch[s.saved_at][p]
            and s.saved_following[p] == s.true_following[s.saved_at][p]
            and s.saved_opened[p] == s.true_opened[s.saved_at][p]
            for p in Producer
        )

    @define
    def data(s, x: Offset) -> bool:
        return s.kind[x] == Kind.PLAIN or s.kind[x] == Kind.TRANSACTIONAL

    @invariant("PSM-2", "PSM-3", "PSM-5", "PSM-28")
    def no_sequence_stands_twice(s) -> bool:
        """Of one producer and epoch the sequences rise: no batch that is there is ever appended again."""
        return all(
            s.number[x] < s.number[y]
            for x in range(L + 1)
            for y in range(L + 1)
            if x < y
            and y < s.end
            and s.data(x)
            and s.data(y)
            and s.who[x] == s.who[y]
            and s.written_epoch[x] == s.written_epoch[y]
        )

    @invariant("PSM-10")
    def markers_have_no_number(s, x: Offset) -> bool:
        return s.kind[x] != Kind.MARKER or s.number[x] == 0

    @invariant("PSM-6", "PSM-11")
    def epochs_rise_in_the_log(s) -> bool:
        return all(
            s.written_epoch[x] <= s.written_epoch[y]
            for x in range(L + 1)
            for y in range(L + 1)
            if x < y and y < s.end and s.who[x] == s.who[y]
        )

    @define
    def stable(s, x: Offset) -> bool:
        """Below the last stable offset."""
        return (
            x < s.high
            and all(s.opened[p] is None or x < s.opened[p] for p in Producer)
            and all(s.ended[f] is None or x < f for f in range(L + 1))
        )

    @invariant("PSM-14", "PSM-9", "PSM-10", "PSM-13")
    def what_is_undecided_is_not_stable(s, x: Offset, p: Producer) -> bool:
        """Once the log is read: a transactional record without its marker is not below its producer's open transaction,
        and so not below the last stable offset."""
        return (
            s.at < s.end
            or x >= s.end
            or s.who[x] != p
            or s.kind[x] != Kind.TRANSACTIONAL
            or s.decided[x] is not None
            or (s.opened[p] is not None and s.opened[p] <= x)
        )

    @invariant("PSM-15", "PSM-14")
    def what_is_stable_is_replicated(s, x: Offset) -> bool:
        """And the marker is replicated, unless it is below a snapshot that was loaded: a snapshot does not hold the
        transactions that have ended."""
        return (
            s.at < s.end
            or not s.stable(x)
            or s.kind[x] != Kind.TRANSACTIONAL
            or s.decided[x] is None
            or s.decided[x] < s.high
            or s.decided[x] < s.loaded
        )

    @step("PSM-3", "PSM-5")
    def an_epoch_begins_with_its_first_sequence(s, p: Producer) -> bool:
        """When it is appended."""
        return s.next.end <= s.end or s.next.epoch[p] == s.epoch[p] or s.next.following[p] <= 1

    @step("PSM-15", "PSM-18")
    def a_table_that_is_behind_waits(s) -> bool:
        """No snapshot is taken, and the high watermark stands still, until the log is read."""
        forgotten = s.next.saved_at == 0
        return s.at == s.end or (s.next.high == s.high and (s.next.saved_at == s.saved_at or forgotten))

    @step("PSM-15")
    def what_is_replicated_is_remembered_no_more(s, f: Offset) -> bool:
        return s.next.high == s.high or s.next.ended[f] is None or s.next.ended[f] >= s.next.high

    @step("PSM-15")
    def ends_are_forgotten_as_the_high_watermark_rises(s, f: Offset) -> bool:
        """Or with the table, which then stands where it was loaded."""
        return s.ended[f] is None or s.next.ended[f] is not None or s.next.high > s.high or s.next.at == s.next.loaded

    @step("PSM-20", "PSM-28")
    def ends_are_known_of_what_is_read(s, f: Offset) -> bool:
        """A table that is lost knows none."""
        return s.next.at >= s.at or s.next.ended[f] is None

    @lemma("PSM-19")
    def nothing_is_there_beyond_the_end(s, x: Offset) -> bool:
        return x < s.end or (
            s.who[x] is None
            and s.written_epoch[x] == 0
            and s.number[x] == 0
            and s.begins[x] == 0
            and s.decided[x] is None
        )

    @lemma("PSM-19")
    def nothing_is_true_beyond_the_end(s, x: Offset, p: Producer) -> bool:
        return x <= s.end or (
            s.true_epoch[x][p] is None and s.true_following[x][p] == 0 and s.true_opened[x][p] is None
        )

    @lemma("PSM-10")
    def a_transaction_ends_with_a_marker(s, f: Offset) -> bool:
        return s.ended[f] is None or (s.ended[f] < s.end and s.kind[s.ended[f]] == Kind.MARKER)

    @lemma("PSM-9")
    def plain_records_are_in_no_transaction(s, x: Offset, p: Producer) -> bool:
        return s.kind[x] != Kind.PLAIN or s.who[x] != p or s.true_opened[x][p] is None

    @lemma()
    def offsets_are_in_order(s) -> bool:
        return s.at <= s.end and s.high <= s.end and s.saved_at <= s.end and s.loaded <= s.at

    @lemma()
    def every_offset_below_the_end_is_somebodys(s, x: Offset) -> bool:
        return (s.who[x] is not None and s.kind[x] != Kind.NOTHING) if x < s.end else s.kind[x] == Kind.NOTHING

    @lemma()
    def nothing_makes_nothing(s, p: Producer) -> bool:
        return s.true_epoch[0][p] is None and s.true_following[0][p] == 0 and s.true_opened[0][p] is None

    @lemma()
    def each_record_makes_the_next(s, x: Offset, p: Producer) -> bool:
        """What is true after a record follows from what was true before it."""
        return x >= s.end or (
            s.true_epoch[x + 1][p] == s.true_epoch[x][p]
            and s.true_following[x + 1][p] == s.true_following[x][p]
            and s.true_opened[x + 1][p] == s.true_opened[x][p]
            if s.who[x] != p
            else s.true_epoch[x + 1][p] == s.written_epoch[x]
            and (
                s.true_following[x + 1][p] == s.number[x] + 1
                if s.kind[x] != Kind.MARKER
                else s.true_following[x + 1][p]
                == (s.true_following[x][p] if s.true_epoch[x][p] == s.written_epoch[x] else 0)
            )
            and (
                s.true_opened[x + 1][p] is None
                if s.kind[x] == Kind.MARKER
                else s.true_opened[x + 1][p] == s.true_opened[x][p]
                if s.kind[x] == Kind.PLAIN or s.true_opened[x][p] is not None
                else s.true_opened[x + 1][p] == x
            )
        )

    @lemma()
    def what_was_written_is_known_later(s, x: Offset, y: Offset, p: Producer) -> bool:
        """Above a record of p its epoch is at least the record's, and in that epoch the next sequence is above it."""
        return (
            x >= y
            or y > s.end
            or s.who[x] != p
            or (
                s.true_epoch[y][p] is not None
                and s.true_epoch[y][p] >= s.written_epoch[x]
                and (
                    s.true_epoch[y][p] != s.written_epoch[x]
                    or s.kind[x] == Kind.MARKER
                    or s.true_following[y][p] > s.number[x]
                )
            )
        )

    @lemma()
    def an_undecided_record_is_of_the_open_transaction(s, x: Offset, y: Offset, p: Producer) -> bool:
        return (
            x >= y
            or y > s.end
            or s.who[x] != p
            or s.kind[x] != Kind.TRANSACTIONAL
            or (s.decided[x] is not None and s.decided[x] < y)
            or s.true_opened[y][p] == s.begins[x]
        )

    @lemma()
    def a_transaction_begins_before_its_records(s, x: Offset) -> bool:
        return s.kind[x] != Kind.TRANSACTIONAL or s.begins[x] <= x

    @lemma()
    def a_marker_is_above_what_it_decides(s, x: Offset) -> bool:
        return s.decided[x] is None or (
            x < s.decided[x]
            and s.decided[x] < s.end
            and s.kind[x] == Kind.TRANSACTIONAL
            and s.kind[s.decided[x]] == Kind.MARKER
            and s.who[s.decided[x]] == s.who[x]
        )

    @lemma()
    def an_unreplicated_end_is_not_stable(s, x: Offset) -> bool:
        return (
            s.at < s.end
            or s.kind[x] != Kind.TRANSACTIONAL
            or s.decided[x] is None
            or s.decided[x] < s.high
            or s.decided[x] < s.loaded
            or (s.ended[s.begins[x]] is not None and s.begins[x] <= x)
        )

    @lemma()
    def open_ones_begin_below(s, y: Offset, p: Producer) -> bool:
        """And there is a record of the producer where its open transaction begins."""
        return (
            y > s.end
            or s.true_opened[y][p] is None
            or (
                s.true_opened[y][p] < y
                and s.who[s.true_opened[y][p]] == p
                and s.kind[s.true_opened[y][p]] == Kind.TRANSACTIONAL
                and s.begins[s.true_opened[y][p]] == s.true_opened[y][p]
                and (s.decided[s.true_opened[y][p]] is None or s.decided[s.true_opened[y][p]] >= y)
            )
        )

    @lemma()
    def who_ended_above_is_remembered(s, x: Offset) -> bool:
        """A transaction that ended above the high watermark, and was seen to end."""
        return (
            s.kind[x] != Kind.TRANSACTIONAL
            or s.decided[x] is None
            or s.decided[x] >= s.at
            or s.decided[x] < s.high
            or s.decided[x] < s.loaded
            or s.ended[s.begins[x]] == s.decided[x]
        )

    @lemma()
    def a_transaction_is_one_producers(s, x: Offset) -> bool:
        """And where it begins a record of it stands."""
        return s.kind[x] != Kind.TRANSACTIONAL or (
            s.who[s.begins[x]] == s.who[x] and s.begins[s.begins[x]] == s.begins[x]
            and s.kind[s.begins[x]] == Kind.TRANSACTIONAL and s.decided[s.begins[x]] == s.decided[x]
        )  # fmt: skip

    @witness
    def marked_in_the_epoch_of_its_records(s, p: Producer) -> bool:
        last = any(s.kind[x] == Kind.MARKER and s.who[x] == p and x + 1 == s.end for x in range(L + 1))
        return last and s.at == s.end and s.following[p] > 0

    @witness
    def all_sequences_of_an_epoch(s, p: Producer) -> bool:
        return s.following[p] == S

    @witness
    def read_on_from_a_snapshot(s) -> bool:
        return s.loaded > 0 and s.at == s.end and s.loaded < s.end and any(s.opened[p] is not None for p in Producer)

    @witness
    def all_is_replicated(s) -> bool:
        return s.high == L

    @witness
    def stable_before_its_end_is_replicated(s) -> bool:
        """Which the loading of a snapshot makes possible."""
        return s.at == s.end and any(
            s.stable(x) and s.kind[x] == Kind.TRANSACTIONAL and s.decided[x] is not None and s.decided[x] >= s.high
            for x in range(L + 1)
        )


MODELS = [
    Expectation(Producers, {"Producer": 2, "E": 2, "S": 2, "L": 4}, distinct=21_404, generated=201_369, depth=5),
    Expectation(Log, {"Producer": 2, "E": 1, "S": 2, "L": 4}, distinct=1_037_301, generated=6_432_661, depth=12),
]
