"""Transactions across failover: each rule with values, each left out, and what the released Kafka does."""

# mypy: disable-error-code="operator, index, arg-type, assignment, union-attr"

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.export import tla
from kafkaspec.language import LoadedModel, Model, action, load, require
from kafkaspec.language.concrete import Concrete
from kafkaspec.models.storage.transaction_failover import (
    MODELS,
    VERSION_2_KEEPS,
    Failover,
    Kind,
    L,
    Offset,
    Outcome,
    Producer,
    Record,
    Replica,
    ReplicatedMarkers,
    T,
)
from kafkaspec.proofs.storage.transaction_failover import PROOFS
from kafkaspec.prove.engine import prove
from kafkaspec.prove.proof import Proof
from tests.export.tlc import tlc
from tests.layers import a_row_of_verify
from tests.storage.transaction_failover_mutants import MUTANTS

Sizes = dict[str, int | bool]
SMALL: Sizes = {"Replica": 2, "Producer": 1, "L": 2, "E": 2, "T": 2, "C": 1, **VERSION_2_KEEPS}
LONGER: Sizes = {**SMALL, "L": 3}


def steps_to(model: LoadedModel, claim: str, sizes: Mapping[str, int | bool]) -> int | None:
    """In how many steps the claim is broken, explored with no other; None if it holds."""
    claims = {kind: {n: c for n, c in getattr(model, kind).items() if n == claim} for kind in ("invariants", "steps")}
    assert any(claims.values()), claim
    trace = explore(replace(model, lemmas={}, witnesses={}, **claims), sizes, deadlock=True, ghosts=True).trace
    return None if trace is None else len(trace.steps) - 1


def fault(name: str) -> LoadedModel:
    (mutant,) = (m for m in MUTANTS if m.name == name)
    made = mutant.make()
    assert isinstance(made, LoadedModel)
    return made


# ---- each rule, with values ------------------------------------------------------------------------------------------
class Partition:
    """A run of the model, action by action."""

    def __init__(self, **more: int | bool) -> None:
        c = self.concrete = Concrete(Failover, {**SMALL, "L": 4, "E": 3, "C": 2, **more})
        (self.state,) = c.initial_states()

    def may(self, action: str, *arguments: str | int | bool) -> bool:
        return self._after(action, *arguments) is not None

    def __call__(self, action: str, *arguments: str | int | bool) -> dict[str, Any]:
        """What the state shows after it."""
        state = self._after(action, *arguments)
        assert state is not None, f"{action}{arguments} is not possible"
        self.state = state
        return dict(self.concrete.show(state))

    def _after(self, action: str, *arguments: str | int | bool) -> Any:
        for t in self.concrete.successors(self.state):
            if t.action == action and tuple(getattr(x, "name", x) for x in t.arguments.values()) == arguments:
                return t.state
        return None

    def leads(self, leader: str, *followers: str) -> None:
        """The controller elects, and the followers hear of it."""
        self("elect", leader)
        for f in followers:
            self("follow", f, leader)

    def replicated(self, leader: str, *followers: str) -> None:
        """Followers fetch the next record, and the leader commits it."""
        for f in followers:
            self("fetch", f, leader)
        self("increment_hw", leader)


def kinds(log: Any) -> list[str]:
    return [x["kind"] for x in log]


def with_one_record(**more: int | bool) -> Partition:
    """r0 leads, r1 follows, and one record of a transaction is committed."""
    p = Partition(**more)
    p.leads("r0", "r1")
    p("produce", "r0", "p0", 1)
    p.replicated("r0", "r1")
    return p


@pytest.mark.clause("TXF-1")
def test_who_takes_itself_for_the_leader_appends_and_a_follower_does_not() -> None:
    p = with_one_record()
    assert not p.may("produce", "r1", "p0", 1)
    p("elect", "r1")
    after = p("produce", "r0", "p0", 1)
    assert [x["epoch"] for x in after["log"]["r0"]] == [1, 1]
    after = p("produce", "r1", "p0", 1)
    assert [x["epoch"] for x in after["log"]["r1"]] == [1, 2]


@pytest.mark.clause("TXF-2")
def test_a_transaction_is_decided_once_and_before_a_marker_is_sent() -> None:
    p = with_one_record()
    assert not p.may("mark", "r0", "p0", 1, 1)
    p("decide", "p0", True)
    assert not p.may("decide", "p0", False)
    assert kinds(p("mark", "r0", "p0", 1, 1)["log"]["r0"]) == ["DATA", "COMMIT"]


@pytest.mark.clause("TXF-3")
def test_a_new_coordinator_sends_again_what_is_decided() -> None:
    p = with_one_record()
    p("decide", "p0", False)
    after = p("take_over")
    assert (after["coordinator"], after["sent"]["p0"]["1"]) == (2, [1, 2])
    assert p("mark", "r0", "p0", 1, 2)["log"]["r0"][1]["coordinator"] == 2


@pytest.mark.clause("TXF-3")
def test_a_new_coordinator_sends_nothing_of_what_goes_on() -> None:
    p = with_one_record()
    assert p("take_over")["sent"]["p0"]["1"] == []


@pytest.mark.clause("TXF-4")
def test_a_marker_comes_again_and_ends_nothing() -> None:
    p = with_one_record()
    p("decide", "p0", True)
    p("mark", "r0", "p0", 1, 1)
    assert p.may("mark", "r0", "p0", 1, 1)
    p.replicated("r0", "r1")
    p("complete", "p0", "r0", 1)
    p("produce", "r0", "p0", 2)
    assert not p.may("mark", "r0", "p0", 1, 1)
    assert not p.may("produce", "r0", "p0", 1)


@pytest.mark.clause("TXF-4")
def test_before_transaction_version_2_a_late_marker_ends_the_next_transaction() -> None:
    """The defect that KIP-1228 is about, in the shortest way to it."""
    assert steps_to(load(Failover), "each_replica_tells_the_outcome", LONGER | {"VERSION_2": False}) == 10


@pytest.mark.clause("TXF-5")
def test_a_coordinator_that_was_replaced_is_refused() -> None:
    p = with_one_record()
    p("decide", "p0", True)
    p("take_over")
    assert p.may("mark", "r0", "p0", 1, 1)
    p("mark", "r0", "p0", 1, 2)
    assert not p.may("mark", "r0", "p0", 1, 1)
    assert p.may("mark", "r0", "p0", 1, 2)


@pytest.mark.clause("TXF-6")
def test_a_marker_is_answered_when_it_is_replicated() -> None:
    p = with_one_record()
    p("decide", "p0", True)
    p("mark", "r0", "p0", 1, 1)
    p("fetch", "r1", "r0")
    assert not p.may("complete", "p0", "r0", 1)
    p("increment_hw", "r0")
    assert p("complete", "p0", "r0", 1)["txn"]["p0"] == 2


@pytest.mark.clause("TXF-7", "TXF-6", "TXF-8")
def test_a_marker_that_was_not_replicated_is_lost_and_sent_again() -> None:
    """The new leader has the transaction open; the one before has it open again."""
    p = with_one_record()
    p("decide", "p0", False)
    after = p("mark", "r0", "p0", 1, 1)
    assert (after["index"]["r0"]["1"], after["open_at"]["r0"]["2"]["p0"]) == (0, None)
    after = p("elect", "r1")
    assert (kinds(after["log"]["r1"]), after["open_at"]["r1"]["1"]["p0"]) == (["DATA"], 0)
    after = p("follow", "r0", "r1")
    assert (kinds(after["log"]["r0"]), after["open_at"]["r0"]["1"]["p0"]) == (["DATA"], 0)
    assert (after["index"]["r0"]["1"], after["ended"]["r0"]["0"]) == (None, None)
    assert not p.may("complete", "p0", "r0", 1)
    p("mark", "r1", "p0", 1, 1)
    p("fetch", "r0", "r1")
    p("increment_hw", "r1")
    p("increment_hw", "r1")
    assert p("complete", "p0", "r1", 1)["txn"]["p0"] == 2


@pytest.mark.clause("TXF-9", "TXF-11")
def test_a_follower_shows_what_its_own_high_watermark_and_its_own_log_allow() -> None:
    p = with_one_record()
    p("decide", "p0", True)
    assert not p.may("read", "r0")
    p("mark", "r0", "p0", 1, 1)
    p.replicated("r0", "r1")
    assert p.may("read", "r0")
    assert not p.may("read", "r1")
    after = p("hear", "r1", "r0")
    assert (after["hw"]["r1"], after["ended"]["r1"]["0"]) == (2, None)
    assert p("read", "r1")["seen"] == [0]


@pytest.mark.clause("TXF-9")
def test_what_ended_is_stable_when_the_high_watermark_has_passed_the_marker() -> None:
    p = with_one_record()
    p("decide", "p0", True)
    p("mark", "r0", "p0", 1, 1)
    assert not p.may("read", "r0")
    p.replicated("r0", "r1")
    assert p.may("read", "r0")


@pytest.mark.clause("TXF-10")
def test_a_start_keeps_what_is_open_and_leads_no_more() -> None:
    p = with_one_record()
    after = p("restart", "r0")
    assert (after["leading"], after["open_at"]["r0"]["1"]["p0"]) == ([], 0)
    assert not p.may("produce", "r0", "p0", 1)


@pytest.mark.clause("TXF-11", "TXF-12")
def test_a_reader_goes_from_replica_to_replica_and_drops_what_was_aborted() -> None:
    p = with_one_record(T=2)
    p("decide", "p0", False)
    p("mark", "r0", "p0", 1, 1)
    p.replicated("r0", "r1")
    p("complete", "p0", "r0", 1)
    p("produce", "r0", "p0", 2)
    p.replicated("r0", "r1")
    p("decide", "p0", True)
    p("mark", "r0", "p0", 2, 1)
    p.replicated("r0", "r1")
    p("hear", "r1", "r0")
    assert p("read", "r1")["seen"] == []
    p("elect", "r1")
    p("read", "r0")
    assert p("read", "r1")["seen"] == [2]


# ---- the model at other sizes, and what the released Kafka does ------------------------------------------------------
@pytest.mark.sampled(2)
@pytest.mark.clause("TXF-9", "TXF-12")
@pytest.mark.parametrize(
    "more",
    [{"L": 3}, {"Producer": 2, "T": 1}, {"Replica": 3, "L": 1, "C": 2}],
    ids=["three offsets", "two producers", "three replicas"],
)
def test_no_claim_is_broken_at_other_sizes(more: Sizes) -> None:
    found = explore(replace(load(Failover), lemmas={}, witnesses={}), {**SMALL, **more}, deadlock=True, ghosts=True)
    assert found.trace is None


@pytest.mark.clause("TXF-10")
@pytest.mark.parametrize("claim", ["each_replica_tells_the_outcome", "nothing_else_is_seen", "nothing_is_left_out"])
def test_a_replica_that_forgets_which_ends_are_not_replicated_tells_a_wrong_outcome(claim: str) -> None:
    """LSO-9, at a leader that was deposed, took the marker of the next transaction, and starts again."""
    assert steps_to(load(Failover), claim, SMALL | {"FORGETS": True}) == FORGETFUL[claim]


FORGETFUL = {"each_replica_tells_the_outcome": 15, "nothing_else_is_seen": 16, "nothing_is_left_out": 16}


# ---- each rule left out ----------------------------------------------------------------------------------------------
READER = ("each_replica_tells_the_outcome", "nothing_else_is_seen", "nothing_is_left_out")
SEEN_BY_READERS = {
    "equal epochs": 10,
    "late records": 11,
    "answers early": 11,
    "an empty table": 6,
    "elects anybody": 10,
    "cuts the log alone": 9,
    "keeps the index": 16,
    "the leader's bound": 9,
    "shows up to the high watermark": 6,
    "ended is replicated": 14,
    "a start forgets ends": 15,
    "another's index": 12,
    "drops nothing": 8,
}
"""In how many steps a reader is given what it should not see, or loses what it should."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SEEN_BY_READERS)
def test_without_the_rule_a_reader_is_wrong(name: str) -> None:
    made = fault(name)
    of_readers = {n: c for n, c in made.invariants.items() if n in READER}
    alone = replace(made, invariants=of_readers, steps={}, lemmas={}, witnesses={})
    trace = explore(alone, LONGER, deadlock=True, ghosts=True).trace
    assert trace is not None
    assert len(trace.steps) - 1 == SEEN_BY_READERS[name]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_fault_breaks_a_claim_and_not_a_lemma_alone(mutant: Any) -> None:
    made = mutant.make()
    sizes = next(e.sizes for e in MODELS if e.name == made.name)
    assert explore(replace(made, lemmas={}), sizes, deadlock=True, ghosts=True).trace is not None


# ---- the same states by TLC ------------------------------------------------------------------------------------------
@pytest.mark.deep
@pytest.mark.parametrize(
    ("model", "sizes", "generated", "distinct", "depth"),
    [
        (ReplicatedMarkers, {"Replica": 2, "Producer": 1, "L": 2, "E": 1, "T": 1, "C": 1}, 19_727, 2_110, 13),
        (Failover, {**SMALL, "L": 1}, 11_663, 4_069, 15),
    ],
    ids=["ReplicatedMarkers", "Failover"],
)
def test_tlc_counts_the_same_states_of_two_replicas(
    model: type[Model], sizes: Sizes, generated: int, distinct: int, depth: int, tmp_path: Path
) -> None:
    """And breaks no claim. What is pinned has more states than TLC is asked for, and one replica fails over to none."""
    module, configuration = tla(load(model), sizes, ghosts=True, deadlock=True)
    found = tlc(tmp_path, module, configuration)
    assert found.error == "", found.output
    assert (found.generated, found.distinct, found.depth) == (generated, distinct, depth)


# ---- the proof -------------------------------------------------------------------------------------------------------
@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
def test_proofs_hold_for_every_size(proof: Proof) -> None:
    proved = proof.run()
    assert proved.complete, proved.summary()


class _BeginsEarly(ReplicatedMarkers):
    @action("TXF-6", who="coordinator")
    def begin(s, p: Producer, m: Offset) -> None:
        """When the marker is in some log."""
        require(s.txn[p] < T)
        require(
            any(
                m < len(s.log[r])
                and s.log[r][m].producer == p
                and s.log[r][m].kind != Kind.DATA
                and s.log[r][m].txn == s.txn[p]
                for r in Replica
            )
        )
        s.next.answered[p][s.txn[p]] = m
        s.next.txn[p] = s.txn[p] + 1


class _ForgetsEnds(ReplicatedMarkers):
    @action("TXF-10", who="environment")
    def restart(s, r: Replica, h: Offset) -> None:
        require(h < s.hw[r])
        s.next.hw[r] = h
        s.next.unreplicated[r] = set()


class _HearsAnything(ReplicatedMarkers):
    @action("TXF-9", who="leader, follower")
    def hear(s, r: Replica, h: Offset) -> None:
        """Whatever its log is below."""
        require(h <= len(s.log[r]), h <= len(s.committed))
        s.know(r, h)


class _KeepsEnds(ReplicatedMarkers):
    @action("TXF-8", who="follower")
    def truncate(s, r: Replica, o: Offset) -> None:
        """What has ended stays so, with its marker gone."""
        require(o < len(s.log[r]))
        s.next.log[r] = s.log[r][:o]
        s.next.hw[r] = min(s.hw[r], o)
        s.next.unreplicated[r] = {m for m in s.unreplicated[r] if m < o}


class _TakesLateMarkers(ReplicatedMarkers):
    @action("TXF-4", who="leader, follower")
    def append(s, r: Replica, x: Record) -> None:
        """Of an earlier transaction than the records before."""
        n = len(s.log[r])
        require(n < L, x.txn <= s.txn[x.producer])
        require(x.kind == Kind.DATA or s.outcome_of(x) == (Outcome.COMMIT if x.kind == Kind.COMMIT else Outcome.ABORT))
        s.next.log[r] = s.log[r] + [x]
        if x.kind != Kind.DATA:
            s.next.end_of[r] = {
                y: n
                if s.is_data(r, y) and s.log[r][y].producer == x.producer and s.end_of[r][y] is None
                else s.end_of[r][y]
                for y in range(L + 1)
            }
            s.next.unreplicated[r] = s.unreplicated[r] | {n}


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(_TakesLateMarkers, marks=pytest.mark.clause("TXF-4")),
        pytest.param(_BeginsEarly, marks=pytest.mark.clause("TXF-6")),
        pytest.param(_KeepsEnds, marks=pytest.mark.clause("TXF-8")),
        pytest.param(_HearsAnything, marks=pytest.mark.clause("TXF-9")),
        pytest.param(_ForgetsEnds, marks=pytest.mark.clause("TXF-10")),
    ],
)
def test_without_the_rule_there_is_no_proof(model: type[ReplicatedMarkers]) -> None:
    """It is refused before anything is proved: a claim is false at the sizes at which they are explored."""
    (proof,) = PROOFS
    found = replace(proof, model=load(model)).run()
    assert (found.outcome, found.obligations) == ("refuted", ())
    assert found.false_lemma is not None


@pytest.mark.clause("TXF-10")
def test_without_the_rule_the_prover_refutes_the_claim() -> None:
    """It knows what was explored only where it asks whether its counterexample is reachable."""
    asked = ("restart", "a_replicated_marker_ends_its_own")
    found = prove(load(_ForgetsEnds), only=lambda action, claim: (action, claim) == asked, timeout_s=1)
    (o,) = found.obligations
    assert o.verdict == "refuted"
    assert "is false" in o.reachable


@pytest.mark.parametrize(
    ("more", "steps"),
    [
        pytest.param({"L": 3, "VERSION_2": False}, 4, marks=pytest.mark.clause("TXF-4")),
        pytest.param({"FORGETS": True}, 5, marks=pytest.mark.clause("TXF-10")),
    ],
    ids=["before version 2", "forgets"],
)
def test_what_is_proved_is_of_the_rules_as_they_are(more: Sizes, steps: int) -> None:
    """Without one of them `Failover` takes a step that `ReplicatedMarkers` does not know."""
    assert steps_to(load(Failover), "markers", {**SMALL, **more}) == steps
