"""The transaction coordinator: each rule left out, and the claim that breaks; and the proof."""

# mypy: disable-error-code="operator, index, arg-type, assignment, union-attr"

from __future__ import annotations

import pytest

from kafkaspec.language import action, require
from kafkaspec.models.examples.txn import (
    Client,
    E,
    Epoch,
    Fate,
    Partition,
    Prepare,
    Result,
    State,
    Term,
    Transactions,
)
from kafkaspec.proofs.examples import txn as proof_of_txn
from tests.examples.claims import broken

SIZES: dict[str, int | bool] = {"Client": 2, "Partition": 2, "E": 3, "C": 2}


class Unverified(Transactions):
    """Before KIP-890: a partition takes what comes."""

    @action(who="partition")
    def append(s, t: Partition, e: Epoch) -> None:
        require(t in s.sent[e], s.seen[t] <= e)
        s.next.fate[t][e] = Fate.OPEN
        s.next.seen[t] = e
        s.next.verified[t] = None


class VerifiesAnyEpoch(Transactions):
    """The coordinator adds a partition for a producer that was fenced."""

    @action(who="partition")
    def verify(s, t: Partition, e: Epoch) -> None:
        require(t in s.sent[e], s.idle(), s.state not in (State.PREPARE_COMMIT, State.PREPARE_ABORT))
        s.next.added = s.added | {t}
        s.next.state = State.ONGOING
        s.next.verified[t] = e


class AddsWhileItEnds(Transactions):
    """The coordinator adds a partition while its decision is being replicated."""

    @action(who="partition")
    def verify(s, t: Partition, e: Epoch) -> None:
        require(t in s.sent[e], e == s.epoch, s.state not in (State.PREPARE_COMMIT, State.PREPARE_ABORT))
        s.next.added = s.added | {t}
        s.next.state = State.ONGOING
        s.next.verified[t] = e


class ForgetsNothing(Transactions):
    """A verification outlives the marker, and the partition does not look at the epoch: either alone would do."""

    @action(who="partition")
    def append(s, t: Partition, e: Epoch) -> None:
        require(t in s.sent[e], s.verified[t] == e)
        s.next.fate[t][e] = Fate.OPEN
        s.next.seen[t] = e
        s.next.verified[t] = None

    @action(who="partition")
    def mark(s, t: Partition, e: Epoch) -> None:
        require(t in s.targets[e], s.seen[t] <= e)
        s.next.seen[t] = e + 1
        s.next.fate[t] = {
            x: (Fate.COMMITTED if s.decided[e] == Result.COMMIT else Fate.ABORTED)
            if s.fate[t][x] == Fate.OPEN
            else s.fate[t][x]
            for x in range(E + 1)
        }


class CommitsUnacknowledged(Transactions):
    """The producer commits before the partitions have answered."""

    @action(who="producer")
    def end(s, p: Client, r: Result) -> None:
        require(s.holds[p] is not None, s.asked[s.holds[p]] is None)
        s.next.asked[s.holds[p]] = r


class TakesLateEnds(Transactions):
    """The coordinator ends the transaction on an EndTxn of the one before."""

    @action(who="coordinator")
    def handle_end(s, e: Epoch, r: Result) -> None:
        require(s.asked[e] == r, s.idle(), s.epoch < E)
        require(
            s.state not in (State.PREPARE_COMMIT, State.PREPARE_ABORT), s.state == State.ONGOING or r == Result.ABORT
        )
        s.next.pending[s.term] = Prepare(result=r, partitions=s.added)


class TakesDeposedCoordinators(Transactions):
    """The transaction log takes what a coordinator of any epoch has appended."""

    @action(who="transaction log")
    def replicate(s, c: Term) -> None:
        require(s.pending[c] is not None, s.epoch < E)
        s.next.pending[c] = None
        s.next.state = State.PREPARE_COMMIT if s.pending[c].result == Result.COMMIT else State.PREPARE_ABORT
        s.next.epoch = s.epoch + 1
        s.next.added = s.pending[c].partitions
        s.next.decided[s.epoch] = s.pending[c].result
        s.next.targets[s.epoch] = s.pending[c].partitions


class TakesEqualMarkers(Transactions):
    """The partition's rule of transaction version 1: a marker may have the epoch of the open transaction."""

    @action(who="partition")
    def mark(s, t: Partition, e: Epoch) -> None:
        require(t in s.targets[e], s.seen[t] <= e + 1)
        s.next.seen[t] = e + 1
        s.next.verified[t] = None
        s.next.fate[t] = {
            x: (Fate.COMMITTED if s.decided[e] == Result.COMMIT else Fate.ABORTED)
            if s.fate[t][x] == Fate.OPEN
            else s.fate[t][x]
            for x in range(E + 1)
        }


class CompletesEarly(Transactions):
    """The coordinator does not wait for the markers."""

    @action(who="coordinator")
    def complete(s) -> None:
        require(s.state in (State.PREPARE_COMMIT, State.PREPARE_ABORT))
        s.next.state = State.COMPLETE_COMMIT if s.state == State.PREPARE_COMMIT else State.COMPLETE_ABORT
        s.next.added = set()


class AnswersAnyRetry(Transactions):
    """The coordinator answers with the epoch whatever the state: to a producer that another one has fenced, too."""

    @action(who="producer")
    def go_on(s, p: Client, e: Epoch) -> None:
        require(s.holds[p] == e, s.epoch == e + 1, s.asked[e] is not None)
        s.next.holds[p] = e + 1


BROKEN = [
    (Unverified, "no_hanging"),
    (VerifiesAnyEpoch, "no_hanging"),
    (AddsWhileItEnds, "no_hanging"),
    (ForgetsNothing, "no_hanging"),
    (ForgetsNothing, "fates_are_final"),
    (CommitsUnacknowledged, "committed_whole"),
    (TakesLateEnds, "committed_whole"),
    (TakesLateEnds, "committed_as_asked"),
    (TakesDeposedCoordinators, "committed_as_asked"),
    (TakesEqualMarkers, "as_decided"),
    (CompletesEarly, "no_hanging"),
    (AnswersAnyRetry, "one_at_a_time"),
]


@pytest.mark.parametrize(("model", "claim"), BROKEN)
def test_a_rule_left_out_breaks_the_claim(model: type[Transactions], claim: str) -> None:
    assert broken(model, claim, SIZES)


def test_transactions_are_whole_at_every_size() -> None:
    (proof,) = proof_of_txn.PROOFS
    assert proof.run().complete
