"""How far the controller's memory is written, committed and stable, and which snapshots of it there are.

One controller, by turns active and a standby, as raft tells it. A record is at one offset, and its memory is which
data records are in it, so that a snapshot shows exactly which it has seen. A batch has at most one marker of a
transaction, with data records on both sides. Source: Kafka Internals, ch. 11, "The three offsets and metadata
transactions"; KIP-868; OffsetControlManager and QuorumController, Kafka 4.3.0.

What was simplified: epochs and metrics are left out, keys too: a record is never written over.
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
    initial,
    invariant,
    lemma,
    require,
    step,
    witness,
)

N = Size("N")
"""The highest offset."""
WHOLE = Flag("WHOLE")
"""Commits end where a batch ends; a transaction is closed only after all of it before is committed, and no controller
gives up within one. Kafka 4.3.0 keeps the first by itself, and the others by chance."""
Offset = Annotated[int, Range(0, N)]
"""0 stands for none, and is the first snapshot's: every record's offset is above it."""
Next = Annotated[int, Range(0, N + 1)]


class Kind(enum.Enum):
    """What a batch has beside data records."""

    DATA = 0
    BEGIN = 1
    END = 2
    ABORT = 3


class Offsets(Model):
    """`end` is the next write offset, 0 on a standby; `start` where the open transaction begins; `loading` the offset
    of the raft snapshot that is being loaded; `has` the data records in the memory, `saw` those that a snapshot
    shows."""

    end: Next
    committed: Offset
    stable: Offset
    start: Offset
    loading: Offset
    taken: dict[Offset, bool]
    has: dict[Offset, bool]
    saw: dict[Offset, dict[Offset, bool]]

    @initial
    def empty(s) -> None:
        s.next.taken = {e: e == 0 for e in range(N + 1)}

    # what both do

    @define
    def may_stand(s, f: Offset, last: Offset) -> bool:
        """A batch from f to last: nothing is known of what lies there."""
        return (
            f >= 1
            and f <= last
            and f > s.committed
            and f >= s.end
            and s.loading == 0
            and all(e < f for e in range(N + 1) if s.taken[e])
        )

    @define
    def may_replay(s, k: Kind, f: Offset, b: Offset, last: Offset) -> None:
        """The marker, if there is one, is at b, and right here."""
        require(f <= b, b <= last, k == Kind.DATA or (k == Kind.BEGIN) == (s.start == 0))
        require(k != Kind.ABORT or s.taken[s.start - 1])

    @define
    def has_after(s, k: Kind, f: Offset, b: Offset, last: Offset, o: Offset) -> bool:
        """Whether the memory has the record, when the batch was replayed."""
        return (
            s.saw[s.start - 1][o] or (b < o and o <= last)
            if k == Kind.ABORT
            else s.has[o] or (f <= o and o <= last and (k == Kind.DATA or o != b))
        )

    @define
    def taken_after(s, k: Kind, b: Offset, e: Offset) -> bool:
        """Whether the snapshot is there then, by the marker alone."""
        return s.taken[e] and e < s.start if k == Kind.ABORT else s.taken[e] or (k == Kind.BEGIN and e == b - 1)

    @define
    def saw_after(s, k: Kind, f: Offset, b: Offset, e: Offset, o: Offset) -> bool:
        """What it shows."""
        return (
            s.saw[e][o] and e < s.start
            if k == Kind.ABORT
            else s.has[o] or (f <= o and o < b)
            if k == Kind.BEGIN and e == b - 1 and not s.taken[e]
            else s.saw[e][o]
        )

    @define
    def handed_over(s, k: Kind, f: Offset, b: Offset, last: Offset) -> None:
        """To raft, when it was replayed."""
        s.may_replay(k, f, b, last)
        s.next.end = last + 1
        s.next.has = {o: s.has_after(k, f, b, last, o) for o in range(N + 1)}
        s.next.taken = {e: s.taken_after(k, b, e) or e == last for e in range(N + 1)}
        s.next.saw = {
            e: {o: s.has_after(k, f, b, last, o) if e == last else s.saw_after(k, f, b, e, o) for o in range(N + 1)}
            for e in range(N + 1)
        }

    @define
    def stable_after(s, last: Offset, start: Offset) -> int:
        return max(s.stable, last if start == 0 else min(start - 1, last))

    @define
    def replayed(s, k: Kind, f: Offset, b: Offset, last: Offset, start: Offset) -> None:
        """By a standby, and committed."""
        s.may_replay(k, f, b, last)
        now = s.stable_after(last, start)
        require(now == s.stable or all(e <= now for e in range(N + 1) if s.taken_after(k, b, e)))
        s.next.committed = last
        s.next.stable = now
        s.next.has = {o: s.has_after(k, f, b, last, o) for o in range(N + 1)}
        s.next.taken = {e: (s.taken_after(k, b, e) and e >= now) or (e == now and now > s.stable) for e in range(N + 1)}
        s.next.saw = {
            e: {
                o: s.has_after(k, f, b, last, o)
                if e == now and now > s.stable and not s.taken_after(k, b, e)
                else s.saw_after(k, f, b, e, o) and e >= now
                for o in range(N + 1)
            }
            for e in range(N + 1)
        }

    @define
    def whole(s, f: Offset) -> bool:
        """All of the transaction before f is committed."""
        return not WHOLE or s.end == 0 or s.committed >= f - 1

    # the active controller

    @action("OFC-7", "OFC-18", who="active controller")
    def append_data(s, f: Offset, last: Offset) -> None:
        require(s.end > 0, s.may_stand(f, last))
        s.handed_over(Kind.DATA, f, f, last)

    @action("OFC-7", "OFC-12", "OFC-18", who="active controller")
    def append_begin(s, f: Offset, b: Offset, last: Offset) -> None:
        require(s.end > 0, s.may_stand(f, last))
        s.handed_over(Kind.BEGIN, f, b, last)
        s.next.start = b

    @action("OFC-7", "OFC-13", "OFC-18", "OFC-21", who="active controller")
    def append_end(s, f: Offset, b: Offset, last: Offset) -> None:
        require(s.end > 0, s.may_stand(f, last), s.whole(f))
        s.handed_over(Kind.END, f, b, last)
        s.next.start = 0

    @action("OFC-7", "OFC-14", "OFC-18", "OFC-21", who="active controller")
    def append_abort(s, f: Offset, b: Offset, last: Offset) -> None:
        require(s.end > 0, s.may_stand(f, last), s.whole(f))
        s.handed_over(Kind.ABORT, f, b, last)
        s.next.start = 0

    @action("OFC-8", "OFC-9", "OFC-10", "OFC-21", who="raft")
    def commit(s, last: Offset) -> None:
        """The active controller has replayed it, and takes no snapshot."""
        require(s.end > 0, s.committed < last, last < s.end)
        require(not WHOLE or s.taken[last])
        now = s.stable_after(last, s.start)
        s.next.committed = last
        s.next.stable = now
        s.next.taken = {e: s.taken[e] and e >= now for e in range(N + 1)}
        s.next.saw = {e: {o: s.saw[e][o] and e >= now for o in range(N + 1)} for e in range(N + 1)}

    @action("OFC-11", who="raft")
    def commit_control(s) -> None:
        """A batch of raft's own changes nothing."""
        require(s.loading == 0)

    # a standby

    @action("OFC-8", "OFC-9", "OFC-10", "OFC-18", "OFC-19", "OFC-23", who="raft")
    def replay_data(s, f: Offset, last: Offset) -> None:
        require(s.end == 0, s.may_stand(f, last))
        s.replayed(Kind.DATA, f, f, last, s.start)

    @action("OFC-8", "OFC-9", "OFC-10", "OFC-12", "OFC-18", "OFC-19", who="raft")
    def replay_begin(s, f: Offset, b: Offset, last: Offset) -> None:
        require(s.end == 0, s.may_stand(f, last))
        s.replayed(Kind.BEGIN, f, b, last, b)
        s.next.start = b

    @action("OFC-8", "OFC-9", "OFC-10", "OFC-13", "OFC-18", "OFC-19", who="raft")
    def replay_end(s, f: Offset, b: Offset, last: Offset) -> None:
        require(s.end == 0, s.may_stand(f, last))
        s.replayed(Kind.END, f, b, last, 0)
        s.next.start = 0

    @action("OFC-8", "OFC-9", "OFC-10", "OFC-14", "OFC-18", "OFC-19", who="raft")
    def replay_abort(s, f: Offset, b: Offset, last: Offset) -> None:
        require(s.end == 0, s.may_stand(f, last))
        s.replayed(Kind.ABORT, f, b, last, 0)
        s.next.start = 0

    # changes of the leader

    @action("OFC-3", "OFC-4", who="raft")
    def activate(s, n: Next) -> None:
        require(s.end == 0, s.loading == 0, n > s.committed)
        require(all(e <= s.stable for e in range(N + 1) if s.taken[e]))
        s.next.end = n
        s.next.taken[s.stable] = True
        s.next.saw[s.stable] = {o: s.saw[s.stable][o] if s.taken[s.stable] else s.has[o] for o in range(N + 1)}

    @action("OFC-5", "OFC-6", "OFC-22", who="raft")
    def deactivate(s) -> None:
        """Without a snapshot to go back to it is refused."""
        require(s.end > 0, s.taken[s.stable])
        require(not WHOLE or (s.start == 0 and s.stable == s.committed))
        s.next.end = 0
        s.next.has = s.saw[s.stable]
        s.next.taken = {e: s.taken[e] and e <= s.stable for e in range(N + 1)}
        s.next.saw = {e: {o: s.saw[e][o] and e <= s.stable for o in range(N + 1)} for e in range(N + 1)}

    # raft snapshots

    @action("OFC-16", who="raft")
    def begin_load(s, e: Offset) -> None:
        require(s.loading == 0, e >= 1)
        s.next.loading = e
        s.next.end = 0
        s.next.committed = 0
        s.next.stable = 0
        s.next.start = 0
        s.next.taken = {f: False for f in range(N + 1)}
        s.next.has = {o: False for o in range(N + 1)}
        s.next.saw = {f: {o: False for o in range(N + 1)} for f in range(N + 1)}

    @action("OFC-18", who="raft")
    def load(s, o: Offset) -> None:
        """Whatever is not superseded is in the raft snapshot."""
        require(s.loading > 0, o >= 1, o <= s.loading, not s.has[o])
        s.next.has[o] = True

    @action("OFC-17", who="raft")
    def end_load(s) -> None:
        require(s.loading > 0)
        s.next.loading = 0
        s.next.committed = s.loading
        s.next.stable = s.loading
        s.next.taken[s.loading] = True
        s.next.saw[s.loading] = s.has

    # what always holds

    @invariant("OFC-9")
    def what_is_stable_is_committed(s) -> bool:
        return s.stable <= s.committed

    @invariant("OFC-9", "OFC-12")
    def the_open_transaction_is_not_stable(s) -> bool:
        return s.start == 0 or s.stable < s.start

    @invariant("OFC-3", "OFC-8")
    def what_is_committed_was_written(s) -> bool:
        return s.end == 0 or s.committed < s.end

    @invariant("OFC-10", "OFC-1")
    def no_snapshot_is_below_the_stable_offset(s) -> bool:
        return all(e >= s.stable for e in range(N + 1) if s.taken[e])

    @invariant("OFC-16", "OFC-17", "OFC-15")
    def while_loading_there_is_nothing_else(s) -> bool:
        return s.loading == 0 or (
            s.end == 0
            and s.committed == 0
            and s.start == 0
            and all(not s.taken[e] for e in range(N + 1))
            and all(o <= s.loading for o in range(N + 1) if s.has[o])
        )

    @step("OFC-9", "OFC-8")
    def offsets_never_fall(s) -> bool:
        """Until a raft snapshot is loaded."""
        return s.next.loading > 0 or (s.committed <= s.next.committed and s.stable <= s.next.stable)

    @step("OFC-13", "OFC-21")
    def stable_up_to_the_committed_offset_or_the_transaction(s) -> bool:
        """When something is committed."""
        return (
            s.next.loading > 0
            or s.next.committed == s.committed
            or s.next.stable == s.next.committed
            or (s.next.start > 0 and s.next.stable == max(s.stable, s.next.start - 1))
            or s.next.stable == s.stable
        )

    @step("OFC-12")
    def no_transaction_begins_in_another(s) -> bool:
        """What is open is closed first."""
        return s.start == 0 or s.next.start == 0 or s.next.start == s.start

    @step("OFC-13", "OFC-14", "OFC-18")
    def a_batch_outside_of_transactions_is_data(s) -> bool:
        """To its last record: an end and an abort need an open transaction."""
        return (
            s.loading > 0
            or s.next.loading > 0
            or s.start > 0
            or s.next.start > 0
            or (
                s.next.has[s.next.end - 1]
                if s.end > 0 and s.next.end > s.end
                else s.end > 0 or s.next.end > 0 or s.next.committed == s.committed or s.next.has[s.next.committed]
            )
        )

    @step("OFC-5", "OFC-22")
    def giving_up_is_going_back(s) -> bool:
        """To the snapshot at the stable offset: all that it shows, and no more; the transaction stays open."""
        return (
            s.end == 0
            or s.next.end > 0
            or s.next.loading > 0
            or (
                s.next.start == s.start
                and s.next.stable == s.stable
                and all(s.next.has[o] == s.saw[s.stable][o] for o in range(N + 1))
            )
        )

    @step("OFC-7", "OFC-14", "OFC-18")
    def an_append_ends_with_a_snapshot(s) -> bool:
        return (
            s.end == 0
            or s.next.end == s.end
            or s.next.end == 0
            or (
                s.next.taken[s.next.end - 1]
                and all(s.next.saw[s.next.end - 1][o] == s.next.has[o] for o in range(N + 1))
            )
        )

    @step("OFC-14")
    def what_was_aborted_is_not_there(s) -> bool:
        """Of a transaction that is closed, either all data records that the memory had are there, or none is."""
        return (
            s.start == 0
            or s.next.start > 0
            or s.next.loading > 0
            or all(s.next.has[o] for o in range(N + 1) if s.has[o] and o >= s.start)
            or all(s.next.has[o] == s.saw[s.start - 1][o] for o in range(N + 1) if o <= s.committed or o < s.end)
        )

    @step("OFC-14")
    def with_its_snapshots_goes_what_it_wrote(s) -> bool:
        """A transaction of the active controller's that is closed, and whose snapshots are gone then, was aborted."""
        return (
            s.start == 0
            or s.next.start > 0
            or s.next.loading > 0
            or s.end == 0
            or all(s.next.taken[e] for e in range(N + 1) if s.taken[e] and e >= s.start)
            or all(s.next.has[o] == s.saw[s.start - 1][o] for o in range(N + 1) if o < s.end)
        )

    @step("OFC-11", "OFC-10")
    def a_snapshot_shows_what_it_showed(s) -> bool:
        return all(
            s.next.saw[e][o] == s.saw[e][o]
            for e in range(N + 1)
            for o in range(N + 1)
            if s.taken[e] and s.next.taken[e] and s.next.loading == 0
        )

    # what holds if transactions are committed whole

    @invariant("OFC-4", "OFC-6", "OFC-10")
    def there_is_a_snapshot_at_the_stable_offset(s) -> bool:
        """So that giving up is never refused."""
        return not WHOLE or s.loading > 0 or s.taken[s.stable]

    @invariant("OFC-12", "OFC-14")
    def there_is_a_snapshot_before_the_transaction(s) -> bool:
        return not WHOLE or s.start == 0 or s.taken[s.start - 1]

    @step("OFC-12")
    def a_transaction_begins_behind_a_snapshot(s) -> bool:
        """Of all that is there before it, in its own batch too."""
        return (
            not WHOLE
            or s.next.start == 0
            or s.next.start == s.start
            or (
                s.next.taken[s.next.start - 1]
                and all(s.next.saw[s.next.start - 1][o] == (s.next.has[o] and o < s.next.start) for o in range(N + 1))
            )
        )

    @invariant("OFC-7", "OFC-10", "OFC-12", "OFC-23")
    def a_snapshot_shows_what_is_there_up_to_it(s) -> bool:
        """And nothing later."""
        return not WHOLE or all(
            s.saw[e][o] == (s.has[o] and o <= e) for e in range(N + 1) for o in range(N + 1) if s.taken[e]
        )

    @invariant("OFC-5", "OFC-19")
    def a_standby_has_nothing_that_is_not_committed(s) -> bool:
        return not WHOLE or s.loading > 0 or s.end > 0 or all(o <= s.committed for o in range(N + 1) if s.has[o])

    @invariant("OFC-19", "OFC-23")
    def a_reader_of_a_standby_sees_all_of_it(s) -> bool:
        """Unless a transaction is open."""
        return (
            not WHOLE
            or s.loading > 0
            or s.end > 0
            or s.start > 0
            or (s.stable == s.committed and all(s.has[o] == s.saw[s.stable][o] for o in range(N + 1)))
        )

    @lemma()
    def snapshots_are_of_the_log(s) -> bool:
        return not WHOLE or all(e < s.end if s.end > 0 else e <= s.committed for e in range(N + 1) if s.taken[e])

    @lemma()
    def the_memory_is_of_the_log(s) -> bool:
        return (
            not WHOLE
            or s.loading > 0
            or all(o < s.end if s.end > 0 else o <= s.committed for o in range(N + 1) if s.has[o])
        )

    @lemma()
    def no_transaction_begins_beyond_the_log(s) -> bool:
        return not WHOLE or s.start == 0 or (s.start < s.end if s.end > 0 else s.start <= s.committed)

    @lemma()
    def a_standby_has_one_snapshot(s) -> bool:
        return (
            not WHOLE
            or s.loading > 0
            or s.end > 0
            or (all(e == s.stable for e in range(N + 1) if s.taken[e]) and (s.start == 0 or s.stable == s.start - 1))
        )

    @lemma()
    def offset_0_is_no_record_s(s) -> bool:
        return not s.has[0] and all(not s.saw[e][0] for e in range(N + 1))

    @lemma()
    def what_is_gone_shows_nothing(s) -> bool:
        return all(s.taken[e] or not s.saw[e][o] for e in range(N + 1) for o in range(N + 1))

    # what must be possible

    @witness
    def a_transaction_is_in_the_memory(s) -> bool:
        """And not stable, on a standby."""
        return s.end == 0 and s.start > 0 and any(s.has[o] and o > s.start for o in range(N + 1))

    @witness
    def an_active_controller_with_three_snapshots(s) -> bool:
        return s.end > 0 and s.start > 0 and s.taken[s.stable] and s.taken[s.start] and s.taken[s.end - 1] and (
            s.stable < s.start and s.start < s.end - 1
        )  # fmt: skip

    # what may happen if they are not

    @witness
    def nothing_to_go_back_to(s) -> bool:
        return WHOLE or (s.end > 0 and not s.taken[s.stable])

    @witness
    def a_transaction_without_a_record(s) -> bool:
        """Its begin record was thrown away, and whoever comes with another finds it open."""
        return WHOLE or (s.end == 0 and s.start > s.committed)

    @witness
    def a_snapshot_shows_what_came_later(s) -> bool:
        return WHOLE or any(s.taken[e] and s.saw[e][o] and o > e for e in range(N + 1) for o in range(N + 1))

    @witness
    def what_is_committed_is_not_in_the_memory(s) -> bool:
        """A standby of which a begin record is committed, and no more than what was stable is there."""
        return WHOLE or (
            s.end == 0
            and s.loading == 0
            and s.start > 0
            and s.start < s.committed
            and all(not s.has[o] for o in range(N + 1) if o > s.stable)
        )


MODELS = [
    Expectation(Offsets, sizes={"N": 3, "WHOLE": True}, distinct=194, generated=1159, depth=6),
    Expectation(Offsets, sizes={"N": 4, "WHOLE": True}, distinct=659, generated=4865, depth=7, deep=True),
    Expectation(Offsets, sizes={"N": 3, "WHOLE": False}, distinct=644, generated=4637, depth=13, note="as released"),
]
