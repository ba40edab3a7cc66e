"""No transaction hangs, and each is committed whole or not at all: for any number of producers, partitions, producer
epochs and coordinators."""

# mypy: disable-error-code="operator, index, arg-type, union-attr"

from __future__ import annotations

from kafkaspec.language import define, lemma
from kafkaspec.models.examples.txn import Client, E, Epoch, Fate, Partition, Result, State, Term, Transactions
from kafkaspec.prove.proof import Proof


class Inductive(Transactions):
    """The same model with what its proof needs."""

    @define
    def ending(s) -> bool:
        return s.state in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    # Nothing is of a later epoch than the coordinator's; what is decided is of an earlier one.
    @lemma()
    def held_epochs_are_known(s, p: Client) -> bool:
        return s.holds[p] is None or s.holds[p] <= s.epoch

    @lemma()
    def seen_epochs_are_known(s, t: Partition) -> bool:
        return s.seen[t] <= s.epoch

    @lemma()
    def asked_epochs_are_known(s, e: Epoch) -> bool:
        return (s.asked[e] is None or e <= s.epoch) and (s.decided[e] is None or e < s.epoch)

    @lemma()
    def sent_epochs_are_known(s, t: Partition, e: Epoch) -> bool:
        return (t not in s.sent[e] or e <= s.epoch) and (t not in s.targets[e] or s.decided[e] is not None)

    @lemma()
    def partitions_have_seen_what_they_have(s, t: Partition, e: Epoch) -> bool:
        """An open transaction is the last thing seen; what has its fate is behind."""
        return (s.fate[t][e] != Fate.OPEN or s.seen[t] == e) and (
            s.fate[t][e] in (Fate.NOTHING, Fate.OPEN) or e < s.seen[t]
        )

    @lemma()
    def verified_is_added(s, t: Partition) -> bool:
        return s.verified[t] is None or (
            t in s.added
            and (
                (s.state == State.ONGOING and s.verified[t] == s.epoch)
                or (s.ending() and s.verified[t] + 1 == s.epoch and s.seen[t] <= s.verified[t])
            )
        )

    @lemma()
    def added_only_in_a_transaction(s, t: Partition) -> bool:
        return t not in s.added or s.state == State.ONGOING or s.ending()

    @lemma()
    def no_coordinator_comes_before_its_time(s, c: Term) -> bool:
        return c <= s.term or s.pending[c] is None

    @lemma()
    def pending_is_of_the_current_transaction(s, t: Partition) -> bool:
        """While a transition is in progress nothing is added, and the coordinator begins no other."""
        return s.idle() or (
            not s.ending()
            and s.epoch < E
            and (t in s.pending[s.term].partitions) == (t in s.added)
            and (s.pending[s.term].result == Result.ABORT or s.asked[s.epoch] == Result.COMMIT)
            and (s.pending[s.term].result == Result.ABORT or s.state == State.ONGOING)
        )

    @lemma()
    def asked_to_commit_is_whole(s, t: Partition) -> bool:
        return s.asked[s.epoch] != Result.COMMIT or t not in s.sent[s.epoch] or s.fate[t][s.epoch] == Fate.OPEN

    @lemma()
    def prepared_is_decided(s, e: Epoch) -> bool:
        return e + 1 != s.epoch or (
            (s.state != State.PREPARE_COMMIT or s.decided[e] == Result.COMMIT)
            and (s.state != State.PREPARE_ABORT or s.decided[e] == Result.ABORT)
        )

    @lemma()
    def who_goes_on_is_alone(s, p: Client, q: Client) -> bool:
        """Once a producer has the epoch that the end of a transaction made, nobody has the one before."""
        return (
            s.holds[p] is None
            or s.holds[q] is None
            or s.holds[p] != s.epoch
            or s.holds[q] + 1 != s.epoch
            or s.state in (State.EMPTY, State.ONGOING)
        )


PROOFS = [Proof(Inductive, explored_at={"Client": 2, "Partition": 2, "E": 2, "C": 2})]
