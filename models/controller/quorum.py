"""Controllers of a quorum: one writes the metadata log, and all of them apply it.

`Quorum` has what each controller has in its memory: the records that it applied, how far it knows them committed, how
far it may show them, the transaction that is open, and the calls that wait in its purgatory. The active controller
applies what it writes at once; the others apply what is committed. Leaders are elected while one that was deposed goes
on writing; controllers fail over, crash and load snapshots. `StateMachine` is what a user may rely on, and `Quorum`
refines it: one log that only grows, of which every controller shows a beginning, and answers that are in it, each put
there between the call and its answer.

With `AS_REPLAYED` a controller looks at the transaction that is open in its memory, written but not committed, and
keeps it when it renounces, as the released Kafka does. That is safe as long as all records of a transaction are
committed at once, which is so of what Kafka 4.3.0 writes itself. Without it, it looks at the transaction that is open
in the committed log, and after a failover it has what a standby has: then a transaction may be cut anywhere.

What is simplified. Raft is a log of which some is committed. A new leader has the committed records and, of what
another has written behind them, as much as you like. It is told of its election when all of that is committed and
applied, as Raft does. A message that is lost or late is a step that is not taken: of a commit, of an election or of a
snapshot a controller hears at any time or never. A batch is one record, so that a write of several can be cut after
each. Raft's own records are left out. What a record does in memory is left to the timeline collections. A controller
that a record stops is out.

Source: Kafka Internals, ch. 11, "Write -> commit -> apply", "Becoming (and ceasing to be) the active controller";
KIP-631, KIP-868; QuorumController and OffsetControlManager, Kafka 4.3.0.
"""

# mypy: disable-error-code="operator, index, arg-type, assignment, union-attr"
# (the modelling language unwraps an option where its value is wanted; mypy narrows no element of a map)

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Bounded,
    Flag,
    Model,
    Range,
    Size,
    Sort,
    action,
    define,
    invariant,
    leads_to,
    lemma,
    refines,
    require,
    step,
    witness,
)


class Controller(Sort):
    """A node of the quorum."""


L = Size("L")
"""The most records of a log."""
E = Size("E")
"""The highest epoch; 0 is that of a standby."""
AS_REPLAYED = Flag("AS_REPLAYED")
"""The open transaction is that of the last record applied, committed or not; it is kept when leadership is renounced,
and memory goes back to what is stable."""
Offset = Annotated[int, Range(0, L)]
"""How many records: those before it."""
Epoch = Annotated[int, Range(0, E)]


class Kind(enum.Enum):
    DATA = 0
    BEGIN = 1
    END = 2
    ABORT = 3


@dataclass(frozen=True)
class Record:
    """Of the controller that was active in `epoch`. `within`: behind it a transaction is open."""

    kind: Kind
    epoch: Epoch
    within: bool


Records = Annotated[list[Record], Bounded(L)]


BOOTSTRAP = 3
"""A bootstrap is a transaction around one record."""


class Member(Model):
    """One controller of Kafka 4.3.0 as its node has it, with offsets for records. It is `active` or a standby. It was
    `handed` the log up to there, of which the last record may be Raft's own; it knows those up to `known` committed,
    shows those that are `stable`, and has `written` up to there; a transaction may be `open`, and calls are `waiting`.
    Its periodic tasks may be `scheduled`; one of them writes a record. It never begins a transaction itself but for
    the bootstrap, which it writes as one batch."""

    active: bool
    handed: Offset
    known: Offset
    stable: Offset
    written: Offset
    open: Offset | None
    waiting: set[Offset]
    scheduled: bool
    halted: bool

    @action("QRM-16", "QRM-17", "QRM-19", "QRM-10", "QRM-39", who="controller")
    def lead(s) -> None:
        """Behind Raft's record of it. Its activation aborts what is open, writes the bootstrap into an empty log, or
        nothing; then its periodic tasks are scheduled."""
        require(not s.active, not s.halted, s.handed < L)
        s.next.active = True
        s.next.scheduled = True
        s.next.handed = s.handed + 1
        if s.open is not None:
            require(s.handed + 2 <= L)
            s.next.written = s.handed + 2
            s.next.waiting = {s.handed + 2}
            s.next.open = None
        elif s.known == 0:
            require(s.handed + 1 + BOOTSTRAP <= L)
            s.next.written = s.handed + 1 + BOOTSTRAP
            s.next.waiting = {s.handed + 1 + BOOTSTRAP}
        else:
            s.next.written = s.handed + 1

    @action("QRM-5", "QRM-10", who="user")
    def write(s) -> None:
        require(s.active, s.written < L)
        s.next.written = s.written + 1
        s.next.waiting = s.waiting | {s.written + 1}

    @action("QRM-41", "QRM-10", who="controller")
    def run_task(s) -> None:
        """One that is due writes a record, and is scheduled again; nobody is told, and it waits all the same."""
        require(s.scheduled, s.written < L)
        s.next.written = s.written + 1
        s.next.waiting = s.waiting | {s.written + 1}

    @action("QRM-13", "QRM-14", "QRM-15", "QRM-26", who="raft")
    def commit(s, n: Offset) -> None:
        """Up to the end of a batch, or of several."""
        require(s.active, n in s.waiting)
        s.next.known = n
        s.next.handed = n
        s.next.stable = max(s.stable, n)
        s.next.waiting = {o for o in s.waiting if o > n}

    @action("QRM-21", "QRM-22", "QRM-40", who="raft")
    def renounce(s) -> None:
        """The open transaction stays as it is."""
        require(s.active)
        s.next.active = False
        s.next.scheduled = False
        s.next.waiting = set()
        s.next.written = s.handed

    @action("QRM-27", "QRM-26", "QRM-25", "QRM-29", who="raft")
    def replay(s, kind: Kind) -> None:
        """The first record is data. One that cannot be applied ends all."""
        require(not s.active, not s.halted, s.handed < L, s.known > 0 or kind == Kind.DATA)
        if kind != Kind.DATA and (kind == Kind.BEGIN) != (s.open is None):
            s.next.halted = True
            s.next.handed = 0
            s.next.known = 0
            s.next.stable = 0
            s.next.written = 0
            s.next.open = None
        else:
            n = s.handed + 1
            s.next.handed = n
            s.next.known = n
            s.next.written = n
            s.next.open = s.handed if kind == Kind.BEGIN else s.open if kind == Kind.DATA else None
            s.next.stable = (
                max(s.stable, s.handed)
                if kind == Kind.BEGIN
                else s.stable
                if kind == Kind.DATA and s.open is not None
                else n
            )

    @invariant("QRM-13", "QRM-26")
    def stable_is_committed_is_written(s) -> bool:
        return s.stable <= s.known and s.known <= s.handed and s.handed <= s.written

    @invariant("QRM-10", "QRM-15", "QRM-21")
    def who_waits_waits_for_what_is_not_stable(s, o: Offset) -> bool:
        """Nor handed back yet; it was written."""
        return o not in s.waiting or (s.active and s.handed < o and o <= s.written)

    @invariant("QRM-5", "QRM-10")
    def what_is_written_is_waited_for(s) -> bool:
        """By the active controller, until it is handed all of it."""
        return not s.active or s.written == s.handed or s.written in s.waiting

    @invariant("QRM-22", "QRM-27")
    def a_standby_has_what_is_committed(s) -> bool:
        return s.active or s.written == s.handed

    @invariant("QRM-26", "QRM-25")
    def a_transaction_is_open_from_where_stable_ends(s) -> bool:
        return s.open is None or s.open == s.stable

    @invariant("QRM-19", "QRM-17")
    def nothing_is_open_behind_an_activation(s) -> bool:
        return not s.active or s.open is None

    @invariant("QRM-39", "QRM-40")
    def tasks_are_those_of_the_active_controller(s) -> bool:
        return s.scheduled == s.active

    @step("QRM-41", "QRM-5")
    def a_standby_writes_nothing(s) -> bool:
        """What it has is what it was handed."""
        return s.active or s.next.active or s.next.written == s.next.handed

    @step("QRM-14", "QRM-15", "QRM-21")
    def no_call_is_answered_early(s, o: Offset) -> bool:
        return o not in s.waiting or o in s.next.waiting or not s.next.active or o <= s.next.stable

    @step("QRM-16", "QRM-22")
    def an_activation_comes_behind_all_there_is(s) -> bool:
        """Raft's record of it is handed behind whatever was."""
        return s.active or not s.next.active or s.next.handed > s.written

    @step("QRM-26")
    def stable_rises(s) -> bool:
        return s.stable <= s.next.stable or s.next.halted

    @step("QRM-13", "QRM-26")
    def all_that_is_committed_becomes_stable(s) -> bool:
        """Where nothing is open, when more becomes known."""
        return s.next.known <= s.known or s.next.open is not None or s.next.stable == s.next.known

    @step("QRM-25", "QRM-29")
    def only_a_standby_halts(s) -> bool:
        """And takes no part from then on."""
        return (
            (s.halted or not s.next.halted)
            if s.active
            else (not s.halted or (s.next.halted and not s.next.active and s.next.written == 0))
        )

    @witness
    def the_end_of_an_abort_is_lost(s) -> bool:
        """A transaction was aborted, the abort is not committed, and the controller has forgotten that it is open."""
        return not s.active and s.open is None and s.stable < s.known

    @witness
    def a_standby_halts(s) -> bool:
        return s.halted

    @witness
    def bootstraps(s) -> bool:
        """It is active in an empty log."""
        return s.active and s.known == 0

    @witness
    def two_wait(s, n: Offset, o: Offset) -> bool:
        return n < o and n in s.waiting and o in s.waiting


class StateMachine(Model):
    """One log of `committed` records. Each controller `sees` a beginning of it. Who takes calls leads a `term`, which
    no other leads meanwhile. A call is `asked` at the controller that takes it, by the offset behind its last record,
    which is not committed yet; and `answered` with a record of that term at that offset, if it is answered. So each
    write takes effect at once, when its record is committed, between the call and its answer."""

    committed: Records
    sees: dict[Controller, Records]
    term: dict[Controller, Epoch]
    asked: dict[Controller, set[Offset]]
    answered: dict[Offset, Record | None]

    @define
    def is_there(s, c: Controller, o: Offset) -> bool:
        """What a call at c would be answered with is committed."""
        return o > 0 and o <= len(s.committed) and s.committed[o - 1].epoch == s.term[c]

    @action("QRM-16", who="controller")
    def lead(s, c: Controller, e: Epoch) -> None:
        require(s.term[c] == 0, all(s.term[d] != e for d in Controller))
        s.next.term[c] = e

    @action("QRM-10", who="user")
    def ask(s, c: Controller, o: Offset) -> None:
        """A write; it is not answered yet, whatever the controller sees."""
        require(s.term[c] > 0, o > len(s.sees[c]), o not in s.asked[c], not s.is_there(c, o))
        s.next.asked[c] = s.asked[c] | {o}

    @action("QRM-3", who="raft")
    def commit(s, x: Record) -> None:
        require(len(s.committed) < L)
        s.next.committed = s.committed + [x]

    @action("QRM-14", "QRM-15", who="controller")
    def look(s, c: Controller, n: Offset) -> None:
        """It sees more, and answers all calls whose records it sees."""
        require(len(s.sees[c]) <= n, n <= len(s.committed))
        s.next.sees[c] = s.committed[:n]
        s.next.answered = {
            o: s.committed[o - 1] if o in s.asked[c] and o <= n and s.is_there(c, o) else s.answered[o]
            for o in range(L + 1)
        }
        s.next.asked[c] = {o for o in s.asked[c] if o > n}

    @action("QRM-21", who="controller")
    def leave(s, c: Controller) -> None:
        """It fails every call, and sees what it saw."""
        s.next.term[c] = 0
        s.next.asked[c] = set()

    @action("QRM-27", who="controller")
    def start_again(s, c: Controller) -> None:
        """It fails every call, and sees nothing yet."""
        s.next.term[c] = 0
        s.next.sees[c] = s.committed[:0]
        s.next.asked[c] = set()

    @invariant("QRM-14")
    def what_is_answered_is_committed(s, o: Offset) -> bool:
        return s.answered[o] is None or (o > 0 and o <= len(s.committed) and s.committed[o - 1] == s.answered[o])

    @invariant("QRM-28")
    def all_see_one_log(s, c: Controller, n: Offset) -> bool:
        return len(s.sees[c]) <= len(s.committed) and (n >= len(s.sees[c]) or s.sees[c][n] == s.committed[n])

    @invariant("QRM-15")
    def whoever_waits_waits_for_what_is_not_seen(s, c: Controller, o: Offset) -> bool:
        return o not in s.asked[c] or o > len(s.sees[c])

    @invariant("QRM-16")
    def one_leads_a_term(s, c: Controller, d: Controller) -> bool:
        return c == d or s.term[c] == 0 or s.term[c] != s.term[d]

    @invariant("QRM-21")
    def calls_are_those_of_a_term(s, c: Controller) -> bool:
        return s.term[c] > 0 or s.asked[c] == set()

    @step("QRM-16")
    def a_term_lasts(s, c: Controller) -> bool:
        """Until all of its calls are answered or have failed."""
        return s.term[c] == 0 or s.next.term[c] == s.term[c] or (s.next.term[c] == 0 and s.next.asked[c] == set())

    @step("QRM-14")
    def a_call_comes_before_its_record(s, c: Controller, o: Offset) -> bool:
        return o in s.asked[c] or o not in s.next.asked[c] or not s.is_there(c, o)

    @step("QRM-14", "QRM-15")
    def an_answer_comes_behind_its_record(s, o: Offset) -> bool:
        """And to whoever asked for it."""
        return s.next.answered[o] == s.answered[o] or any(
            o in s.asked[c]
            and o not in s.next.asked[c]
            and s.is_there(c, o)
            and s.next.answered[o] == s.committed[o - 1]
            for c in Controller
        )

    @step("QRM-3")
    def committed_stays(s, n: Offset) -> bool:
        return n >= len(s.committed) or (n < len(s.next.committed) and s.next.committed[n] == s.committed[n])

    @step("QRM-14")
    def an_answer_stays(s, o: Offset) -> bool:
        return s.answered[o] is None or s.next.answered[o] == s.answered[o]

    @step("QRM-15", "QRM-21")
    def no_call_is_forgotten(s, c: Controller, o: Offset) -> bool:
        """It waits, or its record is seen and is the answer if it is its own, or all calls of the term have failed."""
        return (
            o not in s.asked[c]
            or o in s.next.asked[c]
            or s.next.term[c] == 0
            or (o <= len(s.next.sees[c]) and (not s.is_there(c, o) or s.next.answered[o] == s.committed[o - 1]))
        )

    @step("QRM-13", "QRM-27")
    def whoever_looks_sees_more(s, c: Controller) -> bool:
        """Or starts again."""
        return len(s.sees[c]) <= len(s.next.sees[c]) or (len(s.next.sees[c]) == 0 and s.next.term[c] == 0)

    @step("QRM-27")
    def one_looks_at_a_time(s, c: Controller, d: Controller) -> bool:
        return c == d or s.next.sees[c] == s.sees[c] or s.next.sees[d] == s.sees[d]

    @witness
    def all_is_seen(s, c: Controller) -> bool:
        return len(s.committed) > 0 and len(s.sees[c]) == len(s.committed)

    @witness
    def all_have_started_again(s, o: Offset) -> bool:
        """And what was answered is answered."""
        return s.answered[o] is not None and all(len(s.sees[c]) == 0 for c in Controller)

    @witness
    def another_record_came_in_the_place_of_a_call(s, c: Controller, o: Offset) -> bool:
        return o in s.asked[c] and o <= len(s.committed) and not s.is_there(c, o)

    @witness
    def answered_and_another_fails(s, o: Offset, p: Offset) -> bool:
        return s.answered[o] is not None and p < o and s.answered[p] is None and len(s.committed) == L


class Quorum(Model):
    """Raft's: the `log` of the controller that was elected last, of which `high` records are committed; the `epoch` of
    that election, and the `leader`, if it has not resigned; and what each controller last `wrote`.

    A controller's: the epoch in which it has claimed leadership, or 0; whether it is `active`, that is, its activation
    is done; the records in its `memory`; how many it knows committed, and shows (`stable`); the transaction `open` in
    its memory, and the one `begun` in what it knows committed, by the offset at which it begins; and the offsets for
    which calls in its purgatory wait. Calls that were `answered`, each with its last record. Who `halted` has met a
    record that it could not apply."""

    log: Records
    high: Offset
    epoch: Epoch
    leader: Controller | None
    wrote: dict[Controller, Records]
    claim: dict[Controller, Epoch]
    active: set[Controller]
    memory: dict[Controller, Records]
    known: dict[Controller, Offset]
    stable: dict[Controller, Offset]
    open: dict[Controller, Offset | None]
    begun: dict[Controller, Offset | None]
    waiting: dict[Controller, set[Offset]]
    answered: dict[Offset, Record | None]
    halted: set[Controller]

    # ---- raft

    @action("QRM-3", "QRM-20", who="raft")
    def elect(s, c: Controller, d: Controller, k: Offset) -> None:
        """c, whose log has all that is committed, and behind it what d wrote, up to k."""
        require(s.epoch < E, s.high <= k, k <= len(s.wrote[d]))
        require(all(s.wrote[d][n] == s.log[n] for n in range(L) if n < s.high))
        s.next.epoch = s.epoch + 1
        s.next.leader = c
        s.next.log = s.wrote[d][:k]

    @action("QRM-3", who="raft", fair="weak")
    def commit(s) -> None:
        require(s.leader is not None, s.high < len(s.log))
        s.next.high = s.high + 1

    # ---- the active controller

    @action("QRM-16", "QRM-20", who="controller", fair="weak", per=("c",))
    def claim_leadership(s, c: Controller) -> None:
        """All that was there before its epoch is committed and applied."""
        require(s.leader == c, s.claim[c] == 0, c not in s.halted)
        require(s.high == len(s.log), s.known[c] == s.high)
        s.next.claim[c] = s.epoch
        s.next.wrote[c] = s.log

    @define
    def put(s, c: Controller, o: Offset, kind: Kind, within: bool) -> None:
        """Apply, and hand to Raft, which takes it of the leader. The call waits for it, at o."""
        x = Record(kind=kind, epoch=s.claim[c], within=within)
        require(o == len(s.memory[c]) + 1)
        s.next.memory[c] = s.memory[c] + [x]
        s.next.wrote[c] = s.memory[c] + [x]
        if s.claim[c] == s.epoch:
            s.next.log = s.memory[c] + [x]
        s.next.waiting[c] = s.waiting[c] | {o}

    @action("QRM-17", "QRM-19", who="controller", fair="weak", per=("c",))
    def activate(s, c: Controller, o: Offset) -> None:
        """The first event: it aborts a transaction that another left."""
        require(s.claim[c] > 0, c not in s.active)
        s.next.active = s.active | {c}
        if s.open[c] is None:
            require(o == 0)
        else:
            s.put(c, o, Kind.ABORT, False)
            s.next.open[c] = None

    @action("QRM-5", "QRM-10", who="controller")
    def write(s, c: Controller, o: Offset) -> None:
        """In a transaction there stays room for its end."""
        require(c in s.active, s.open[c] is None or len(s.memory[c]) + 1 < L)
        s.put(c, o, Kind.DATA, s.open[c] is not None)

    @action("QRM-25", who="controller")
    def begin(s, c: Controller, o: Offset) -> None:
        require(c in s.active, s.open[c] is None, len(s.memory[c]) + 1 < L)
        s.put(c, o, Kind.BEGIN, True)
        s.next.open[c] = len(s.memory[c])

    @action("QRM-25", who="controller", fair="weak", per=("c",))
    def end(s, c: Controller, o: Offset) -> None:
        require(c in s.active, s.open[c] is not None)
        s.put(c, o, Kind.END, False)
        s.next.open[c] = None

    # ---- what is committed

    @define
    def open_after(s, o: Offset | None, n: Offset, x: Record) -> Offset | None:
        """The open transaction behind the record x at n, if it is o before."""
        return n if x.kind == Kind.BEGIN else o if x.kind == Kind.DATA else None

    @define
    def settle(s, c: Controller, n: Offset, o: Offset | None, stable: Offset) -> None:
        """n records are known to be committed, and the transaction at o is open: what is stable is answered."""
        require(stable == max(s.stable[c], n if o is None else min(o, n)))
        s.next.stable[c] = stable
        s.next.answered = {
            p: s.memory[c][p - 1] if p in s.waiting[c] and p <= stable else s.answered[p] for p in range(L + 1)
        }
        s.next.waiting[c] = {p for p in s.waiting[c] if p > stable}

    @action("QRM-13", "QRM-14", "QRM-15", "QRM-26", who="controller", fair="weak", per=("c",))
    def hear(s, c: Controller, stable: Offset) -> None:
        """The active controller hears that the next record of its own log is committed; so far all is stable."""
        require(s.claim[c] > 0, s.known[c] < s.high)
        n = s.known[c]
        require(n < len(s.memory[c]), s.memory[c][n] == s.log[n])
        begun = s.open_after(s.begun[c], n, s.log[n])
        s.next.known[c] = n + 1
        s.next.begun[c] = begun
        s.settle(c, n + 1, s.open[c] if AS_REPLAYED else begun, stable)

    @action("QRM-27", "QRM-26", "QRM-29", who="controller", fair="weak", per=("c",))
    def replay(s, c: Controller, stable: Offset) -> None:
        """A standby applies the next record that is committed; one that it cannot apply stops it."""
        require(s.claim[c] == 0, s.known[c] < s.high, c not in s.halted)
        n = s.known[c]
        x = s.log[n]
        if x.kind != Kind.DATA and (x.kind == Kind.BEGIN) != (s.open[c] is None):
            s.next.halted = s.halted | {c}
        else:
            s.next.known[c] = n + 1
            s.next.memory[c] = s.memory[c][:n] + [x]
            s.next.begun[c] = s.open_after(s.begun[c], n, x)
            s.next.open[c] = s.open_after(s.open[c], n, x)
            s.settle(c, n + 1, s.open_after(s.open[c], n, x), stable)

    # ---- giving up

    @define
    def give_up(s, c: Controller) -> None:
        """All calls fail, and memory is what it was before what is not committed, or not stable."""
        s.next.claim[c] = 0
        s.next.active = s.active - {c}
        s.next.waiting[c] = set()
        if AS_REPLAYED:
            s.next.memory[c] = s.memory[c][: s.stable[c]]
        else:
            s.next.memory[c] = s.memory[c][: s.known[c]]
            s.next.open[c] = s.begun[c]

    @action("QRM-21", "QRM-22", who="controller", fair="weak", per=("c",))
    def renounce(s, c: Controller) -> None:
        """It hears that another was elected."""
        require(s.claim[c] > 0, s.claim[c] != s.epoch)
        s.give_up(c)

    @action("QRM-21", who="controller")
    def fail(s, c: Controller) -> None:
        """A fault, while it is active; Raft elects another, or the same in another epoch."""
        require(s.claim[c] > 0)
        s.give_up(c)
        if s.leader == c:
            s.next.leader = None

    @action("QRM-27", "QRM-21", who="machine")
    def crash(s, c: Controller) -> None:
        """And start again, with nothing in memory; its part of Raft keeps its log."""
        require(s.known[c] > 0 or s.claim[c] > 0, c not in s.halted)
        s.next.claim[c] = 0
        s.next.active = s.active - {c}
        s.next.waiting[c] = set()
        s.next.memory[c] = s.memory[c][:0]
        s.next.known[c] = 0
        s.next.stable[c] = 0
        s.next.open[c] = None
        s.next.begun[c] = None
        if s.leader == c:
            s.next.leader = None

    @action("QRM-31", who="raft")
    def load_snapshot(s, c: Controller, n: Offset) -> None:
        """A standby that is behind: the state after n records, in which no transaction is open."""
        require(s.claim[c] == 0, s.known[c] < n, n <= s.high, c not in s.halted)
        require(not s.log[n - 1].within)
        s.next.memory[c] = s.log[:n]
        s.next.known[c] = n
        s.next.stable[c] = n
        s.next.open[c] = None
        s.next.begun[c] = None

    # ---- what is claimed

    @refines(StateMachine, "QRM-14", "QRM-28", "QRM-15")
    def users(s) -> StateMachine:
        return StateMachine.shown(
            committed=s.log[: s.high],
            sees={c: s.memory[c][: s.stable[c]] for c in Controller},
            term=s.claim,
            asked=s.waiting,
            answered=s.answered,
        )

    @invariant("QRM-14", "QRM-10")
    def nothing_acknowledged_is_lost(s, o: Offset) -> bool:
        return s.answered[o] is None or (o > 0 and o <= s.high and s.log[o - 1] == s.answered[o])

    @step("QRM-3")
    def committed_stays(s, n: Offset) -> bool:
        return n >= s.high or (n < s.next.high and s.next.log[n] == s.log[n])

    @invariant("QRM-13", "QRM-31")
    def only_what_is_committed_is_shown(s, c: Controller) -> bool:
        return s.stable[c] <= s.known[c] and s.known[c] <= s.high

    @invariant("QRM-26")
    def no_part_of_a_transaction_is_shown(s, c: Controller) -> bool:
        return s.stable[c] == 0 or not s.log[s.stable[c] - 1].within

    @invariant("QRM-28", "QRM-5")
    def same_log_same_state(s, c: Controller, n: Offset) -> bool:
        """As far as is known to be committed, whoever applied it, and when."""
        return n >= s.known[c] or (n < len(s.memory[c]) and s.memory[c][n] == s.log[n])

    @invariant("QRM-22", "QRM-27")
    def a_standby_has_what_is_committed_alone(s, c: Controller) -> bool:
        return s.claim[c] > 0 or len(s.memory[c]) == s.known[c]

    @invariant("QRM-20", "QRM-5")
    def the_active_controller_has_all_there_is(s, c: Controller) -> bool:
        """Of its own epoch, which is the latest: before and after each of its writes."""
        return s.claim[c] == 0 or s.claim[c] != s.epoch or (s.leader == c and s.memory[c] == s.log)

    @invariant("QRM-16")
    def one_writer_an_epoch(s, a: Controller, b: Controller) -> bool:
        return a == b or s.claim[a] == 0 or s.claim[a] != s.claim[b]

    @invariant("QRM-17", "QRM-19", "QRM-25")
    def nothing_joins_the_transaction_of_another(s, n: Offset) -> bool:
        """What is in a transaction is of the epoch in which it began."""
        return (
            n == 0 or n >= len(s.log) or not s.log[n].within or not s.log[n - 1].within
            or s.log[n].epoch == s.log[n - 1].epoch
        )  # fmt: skip

    @invariant("QRM-19", "QRM-25")
    def only_who_began_a_transaction_ends_it(s, n: Offset) -> bool:
        """Whoever finds it open can but abort it: nobody else knows whether it is whole."""
        return n == 0 or n >= len(s.log) or s.log[n].kind != Kind.END or s.log[n].epoch == s.log[n - 1].epoch

    @invariant("QRM-11", "QRM-12")
    def whatever_is_not_stable_is_waited_for(s, c: Controller) -> bool:
        """Some call waits for the last record. So a call without records that waits for the latest of these is
        answered when all that it saw is stable; and if none waits, all that it sees is."""
        return c not in s.active or s.stable[c] == len(s.memory[c]) or len(s.memory[c]) in s.waiting[c]

    @invariant("QRM-15", "QRM-21")
    def who_waits_waits_for_what_is_not_stable(s, c: Controller, o: Offset) -> bool:
        """All that could be answered is; a standby owes nobody."""
        return o not in s.waiting[c] or (s.claim[c] > 0 and s.stable[c] < o and o <= len(s.memory[c]))

    @step("QRM-15", "QRM-21")
    def no_call_is_answered_early(s, c: Controller, o: Offset) -> bool:
        """It leaves the purgatory when it is stable, or fails with all the others."""
        return (
            o not in s.waiting[c]
            or o in s.next.waiting[c]
            or (s.next.claim[c] == 0 and s.next.waiting[c] == set())
            or (o <= s.next.stable[c] and s.next.answered[o] == s.memory[c][o - 1])
        )

    @invariant("QRM-29")
    def whatever_is_committed_can_be_applied(s) -> bool:
        return s.halted == set()

    @leads_to("QRM-32")
    def every_write_is_answered(s, c: Controller, o: Offset) -> tuple[bool, bool]:
        """Once there are no more elections; Raft commits, and a deposed leader hears of it."""
        return o in s.waiting[c], o not in s.waiting[c]

    @leads_to("QRM-32", "QRM-17")
    def whoever_is_elected_is_activated(s, c: Controller) -> tuple[bool, bool]:
        """And runs what waits in its queue; or it leads no more."""
        return s.leader == c, s.leader != c or (c in s.active and s.claim[c] == s.epoch)

    # ---- what holds it up

    @define
    def is_formed(s, q: Records, n: Offset) -> bool:
        """Transactions begin outside of others, and end."""
        return (
            q[n].within == (q[n].kind == Kind.BEGIN or (q[n].kind == Kind.DATA and n > 0 and q[n - 1].within))
            and (q[n].kind != Kind.BEGIN or n == 0 or not q[n - 1].within)
            and (q[n].kind == Kind.BEGIN or q[n].kind == Kind.DATA or (n > 0 and q[n - 1].within))
            and (n == 0 or not q[n].within or not q[n - 1].within or q[n].epoch == q[n - 1].epoch)
            and (n == 0 or q[n].kind != Kind.END or q[n].epoch == q[n - 1].epoch)
        )

    @lemma("QRM-25")
    def logs_are_formed(s, c: Controller, n: Offset) -> bool:
        return (
            (n >= len(s.log) or s.is_formed(s.log, n))
            and (n >= len(s.wrote[c]) or s.is_formed(s.wrote[c], n))
            and (n >= len(s.memory[c]) or s.is_formed(s.memory[c], n))
        )

    @lemma("QRM-3")
    def committed_is_in_the_log(s) -> bool:
        return s.high <= len(s.log)

    @lemma("QRM-16")
    def epochs_are_those_of_elections(s, c: Controller) -> bool:
        return s.claim[c] <= s.epoch and (s.claim[c] > 0 or c not in s.active)

    @lemma("QRM-5")
    def what_is_applied_is_written(s, c: Controller) -> bool:
        return s.claim[c] == 0 or s.wrote[c] == s.memory[c]

    @lemma("QRM-10")
    def who_waits_waits_for_a_record_of_its_own(s, c: Controller, o: Offset) -> bool:
        return o not in s.waiting[c] or (o > 0 and o <= len(s.memory[c]) and s.memory[c][o - 1].epoch == s.claim[c])

    @lemma("QRM-16")
    def records_are_of_epochs_that_were(s, c: Controller, n: Offset) -> bool:
        return (n >= len(s.log) or s.log[n].epoch <= s.epoch) and (
            n >= len(s.wrote[c]) or s.wrote[c][n].epoch <= s.epoch
        )

    @lemma("QRM-16")
    def an_epoch_that_nobody_claimed_has_no_record(s, c: Controller, d: Controller, n: Offset) -> bool:
        return (
            s.leader != c
            or s.claim[c] == s.epoch
            or (
                (n >= len(s.log) or s.log[n].epoch != s.epoch)
                and (n >= len(s.wrote[d]) or s.wrote[d][n].epoch != s.epoch)
            )
        )

    @lemma("QRM-16")
    def who_claims_an_epoch_has_all_its_records(s, c: Controller, d: Controller, n: Offset) -> bool:
        """Wherever they are."""
        return (
            s.claim[c] == 0
            or n < len(s.memory[c])
            or (
                (n >= len(s.log) or s.log[n].epoch != s.claim[c])
                and (n >= len(s.wrote[d]) or s.wrote[d][n].epoch != s.claim[c])
            )
        )

    @lemma("QRM-25")
    def open_is_what_memory_says(s, c: Controller) -> bool:
        n = len(s.memory[c])
        return (s.open[c] is not None) == (n > 0 and s.memory[c][n - 1].within)

    @lemma("QRM-17")
    def only_an_active_controller_has_a_transaction_of_its_own(s, c: Controller) -> bool:
        """Before its activation it has what others wrote; then what is open is its own."""
        n = len(s.memory[c])
        return c not in s.active or s.open[c] is None or s.memory[c][n - 1].epoch == s.claim[c]

    @lemma("QRM-22")
    def before_its_activation_it_has_what_is_committed(s, c: Controller) -> bool:
        """As a standby has."""
        return c in s.active or (len(s.memory[c]) == s.known[c] and s.open[c] == s.begun[c])

    @lemma("QRM-26")
    def stable_ends_where_a_transaction_begins(s, c: Controller) -> bool:
        n = s.known[c]
        b = s.begun[c]
        return (
            s.stable[c] == n and (n == 0 or not s.log[n - 1].within)
            if b is None
            else s.stable[c] == b and b < n and s.log[n - 1].within and (b == 0 or not s.log[b - 1].within)
        )

    # ---- what must be possible

    @witness
    def a_transaction_is_aborted_by_another(s, n: Offset) -> bool:
        return (
            n > 0 and n < s.high and s.log[n].kind == Kind.ABORT and s.log[n].epoch > s.log[n - 1].epoch
            and s.answered[n + 1] is not None
        )  # fmt: skip

    @witness
    def two_are_active(s, a: Controller, b: Controller) -> bool:
        """One was deposed, and does not know it; both have written."""
        return a != b and a in s.active and b in s.active and s.waiting[a] != set() and s.waiting[b] != set()

    @witness
    def a_deposed_controller_has_nothing_to_wait_for(s, a: Controller, b: Controller) -> bool:
        """A call without records is answered there at once, though another has answered later writes."""
        return (
            a != b and a in s.active and s.waiting[a] == set() and s.stable[a] < s.stable[b] and s.claim[b] == s.epoch
            and s.answered[s.stable[b]] is not None
        )  # fmt: skip

    @witness
    def written_but_inherited(s, c: Controller, o: Offset) -> bool:
        """A record whose writer failed its call is committed by another."""
        return (
            o > 0 and o <= s.high and s.answered[o] is None and s.log[o - 1].epoch < s.epoch and s.claim[c] == s.epoch
        )

    @witness
    def a_leader_has_crashed_that_had_answered(s, c: Controller, o: Offset) -> bool:
        """It knows of nothing any more; a failover alone leaves it what it knew committed."""
        return (
            o > 0 and o <= len(s.wrote[c]) and s.answered[o] is not None and s.wrote[c][o - 1] == s.answered[o]
            and s.known[c] == 0
        )  # fmt: skip

    @witness
    def a_commit_is_not_heard(s, o: Offset) -> bool:
        """In the epoch of its writer, which has given up or crashed by now: its call is not answered with it."""
        return (
            o > 0 and o <= s.high and s.log[o - 1].epoch == s.epoch and s.answered[o] is None
            and not s.log[o - 1].within and all(s.claim[c] != s.epoch for c in Controller)
        )  # fmt: skip

    @witness
    def a_failover_comes_within_a_transaction(s, c: Controller, n: Offset) -> bool:
        """The next one finds it open, some of it committed and some not, and is not yet activated."""
        return (
            n > 0 and n < s.high and s.log[n].within and s.open[c] is not None and s.claim[c] == s.epoch
            and c not in s.active and s.log[n].epoch < s.epoch
        )  # fmt: skip

    @witness
    def overwritten(s, c: Controller, n: Offset) -> bool:
        """What a controller wrote is lost, and nobody was told that it was there."""
        return n < s.high and n < len(s.wrote[c]) and s.wrote[c][n].epoch < s.log[n].epoch


COMMITTED = {"AS_REPLAYED": False}
"""The rule with which the claims hold however a transaction is cut."""

MODELS = [
    Expectation(Member, sizes={"L": 6}, distinct=133, generated=407, depth=12, deadlock=True),
    Expectation(
        StateMachine,
        sizes={"Controller": 2, "L": 2, "E": 1},
        distinct=24_233,
        generated=224_817,
        depth=11,
        deadlock=True,
    ),
    Expectation(
        Quorum,
        sizes={"Controller": 2, "L": 3, "E": 2, **COMMITTED},
        distinct=37_781,
        generated=198_445,
        depth=25,
        deadlock=True,
        note="with the claim of liveness",
    ),
    Expectation(
        Quorum,
        sizes={"Controller": 3, "L": 3, "E": 2, **COMMITTED},
        symmetry=("Controller",),
        distinct=56_086,
        generated=430_587,
        depth=27,
        deadlock=True,
        note="three controllers, taken as alike",
        deep=True,
    ),
]
