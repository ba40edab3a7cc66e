"""Two-phase commit: resource managers agree on whether a transaction commits, through one transaction manager.

The protocol of `TwoPhase` in the TLA+ Examples (Gray and Lamport, "Consensus on transaction commit"), where TLC finds
288 distinct states for three resource managers: so do we. Messages are never lost and may be received again and again.
"""

from __future__ import annotations

import enum

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Model, Sort, action, invariant, leads_to, lemma, require, step, witness


class Manager(Sort):
    """A resource manager: it holds a part of the transaction."""


class Decision(enum.Enum):
    WORKING = 0
    PREPARED = 1
    COMMITTED = 2
    ABORTED = 3


class TwoPhase(Model):
    """`decided` is the transaction manager's own state; `promised`, `commit` and `abort` are the messages ever sent."""

    state: dict[Manager, Decision]
    decided: Decision
    prepared: set[Manager]
    promised: set[Manager]
    commit: bool
    abort: bool

    @action(who="resource manager")
    def prepare(s, m: Manager) -> None:
        require(s.state[m] == Decision.WORKING)
        s.next.state[m] = Decision.PREPARED
        s.next.promised = s.promised | {m}

    @action(who="resource manager")
    def choose_to_abort(s, m: Manager) -> None:
        require(s.state[m] == Decision.WORKING)
        s.next.state[m] = Decision.ABORTED

    @action(who="transaction manager")
    def hear_prepared(s, m: Manager) -> None:
        require(s.decided == Decision.WORKING, m in s.promised)
        s.next.prepared = s.prepared | {m}

    @action(who="transaction manager")
    def decide_commit(s) -> None:
        require(s.decided == Decision.WORKING, all(m in s.prepared for m in Manager))
        s.next.decided = Decision.COMMITTED
        s.next.commit = True

    @action(who="transaction manager", fair="weak")
    def decide_abort(s) -> None:
        require(s.decided == Decision.WORKING)
        s.next.decided = Decision.ABORTED
        s.next.abort = True

    @action(who="resource manager", fair="weak", per=("m",))
    def hear_commit(s, m: Manager) -> None:
        require(s.commit)
        s.next.state[m] = Decision.COMMITTED

    @action(who="resource manager", fair="weak", per=("m",))
    def hear_abort(s, m: Manager) -> None:
        require(s.abort)
        s.next.state[m] = Decision.ABORTED

    @invariant()
    def consistent(s, m: Manager, n: Manager) -> bool:
        """Never one aborted and another committed."""
        return not (s.state[m] == Decision.ABORTED and s.state[n] == Decision.COMMITTED)

    @step()
    def decisions_are_final(s, m: Manager) -> bool:
        return s.state[m] not in (Decision.COMMITTED, Decision.ABORTED) or s.next.state[m] == s.state[m]

    @step()
    def who_decides_hears_first(s) -> bool:
        """What is heard after the decision changes nothing any more."""
        return s.decided == Decision.WORKING or s.next.prepared == s.prepared

    @step()
    def each_decides_for_itself(s, m: Manager, n: Manager) -> bool:
        return m == n or s.next.state[m] == s.state[m] or s.next.state[n] == s.state[n]

    @leads_to()
    def a_promise_is_answered(s, m: Manager) -> tuple[bool, bool]:
        """Whoever has prepared, and so may not decide alone, is told."""
        return s.state[m] == Decision.PREPARED, s.state[m] in (Decision.COMMITTED, Decision.ABORTED)

    @witness
    def all_committed(s) -> bool:
        return all(s.state[m] == Decision.COMMITTED for m in Manager)

    @witness
    def aborted_alone(s, m: Manager) -> bool:
        return s.state[m] == Decision.ABORTED and s.decided == Decision.WORKING

    @witness
    def aborted_after_promising(s, m: Manager) -> bool:
        return m in s.promised and s.state[m] == Decision.ABORTED

    # What holds `consistent` up, for any number of resource managers.
    @lemma()
    def messages_say_the_decision(s) -> bool:
        return s.commit == (s.decided == Decision.COMMITTED) and s.abort == (s.decided == Decision.ABORTED)

    @lemma()
    def heard_was_promised(s, m: Manager) -> bool:
        return m in s.promised if m in s.prepared else s.decided != Decision.COMMITTED

    @lemma()
    def a_promise_binds(s, m: Manager) -> bool:
        """Whoever promised aborts only when told to, and commits only when told to."""
        kept = s.state[m] != Decision.WORKING and (s.state[m] != Decision.ABORTED or s.abort)
        return (kept if m in s.promised else True) and (s.commit if s.state[m] == Decision.COMMITTED else True)


MODELS = [Expectation(TwoPhase, sizes={"Manager": 3}, distinct=288, generated=1146, depth=11)]
