"""The replication protocol in its generations: the counts and the violations that its author published, each rule with
values, and each left out.

The published counts are of TLC on `hachikuji/kafka-specification`; its sizes are named by replicas, the size of a log,
the most records and the highest epoch counted from 0, so that `s2222` has three epochs.
"""

# mypy: disable-error-code="operator, index, arg-type, assignment, union-attr"

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kafkaspec.explore.engine import Exploration, explore
from kafkaspec.language import LoadedModel, Model, action, invariant, load, require
from kafkaspec.language.concrete import Concrete
from kafkaspec.models.storage.replication import (
    FIRST_TRY,
    KIP_101,
    KIP_279,
    KIP_320,
    MODELS,
    TO_HIGH_WATERMARK,
    CommittedLog,
    Fetching,
    Generations,
    Released,
    Replica,
)
from kafkaspec.mutants.mutant import Mutant
from kafkaspec.proofs.storage.replication import PROOFS
from kafkaspec.prove.engine import prove
from kafkaspec.prove.proof import Proof
from tests.storage.replication_mutants import MUTANTS

Sizes = dict[str, int | bool]
S2222: Sizes = {"Replica": 2, "L": 2, "R": 2, "E": 3}
S2333: Sizes = {"Replica": 2, "L": 3, "R": 3, "E": 4}
S3221: Sizes = {"Replica": 3, "L": 2, "R": 2, "E": 2}
S3222: Sizes = {"Replica": 3, "L": 2, "R": 2, "E": 3}


def alone(model: LoadedModel, claim: str, sizes: Mapping[str, int | bool]) -> Exploration:
    """The model explored with this claim and no other: a run ends with the first violation."""
    claims = {kind: {n: c for n, c in getattr(model, kind).items() if n == claim} for kind in ("invariants", "steps")}
    assert any(claims.values()), claim
    return explore(replace(model, lemmas={}, witnesses={}, **claims), sizes, deadlock=True)


def steps_to(model: LoadedModel, claim: str, sizes: Mapping[str, int | bool]) -> int | None:
    """In how many steps the claim is broken; None if it holds."""
    trace = alone(model, claim, sizes).trace
    assert trace is None or trace.claim == claim
    return None if trace is None else len(trace.steps) - 1


# ---- what was published ----------------------------------------------------------------------------------------------
PUBLISHED = [
    (TO_HIGH_WATERMARK, S2222, 10_131, 8, 9),
    (TO_HIGH_WATERMARK, S2333, 276_363, 8, 9),
    (TO_HIGH_WATERMARK, S3221, 67_807, 8, 8),
    (KIP_101, S2222, 9_045, 11, 11),
    (KIP_101, S2333, 229_695, 11, 11),
    (KIP_101, S3221, 59_788, None, 11),
    (KIP_279, S2222, 9_027, None, None),
    (KIP_279, S2333, 225_761, None, None),
    (KIP_279, S3221, 60_106, None, 11),
    (FIRST_TRY, S2222, 8_429, None, None),
    (FIRST_TRY, S2333, 196_973, None, None),
    (FIRST_TRY, S3221, 59_092, None, None),
    (KIP_320, S2222, 5_973, None, None),
    (KIP_320, S2333, 120_879, None, None),
    (KIP_320, S3221, 39_619, None, None),
    (KIP_320, S3222, 737_794, None, None),
]
"""Flags, sizes, distinct states, and in how many steps the weak and the strong claim are broken."""
LATE = [(KIP_279, S3222, 10, 10), (FIRST_TRY, S3222, 11, 12)]
"""At `s3222` the table has the states of KIP-320 alone."""


@pytest.mark.sampled(5)
@pytest.mark.clause("RPN-4", "RPN-5", "RPN-7", "RPN-13", "RPN-14")
@pytest.mark.parametrize(("flags", "sizes", "distinct", "weak", "strong"), PUBLISHED)
def test_states_and_violations_are_those_published(
    flags: Sizes, sizes: Sizes, distinct: int, weak: int | None, strong: int | None
) -> None:
    m = load(Generations)
    unclaimed = explore(replace(m, invariants={}, steps={}, witnesses={}), {**sizes, **flags}, deadlock=True)
    assert (unclaimed.outcome, unclaimed.distinct) == ("complete", distinct)
    assert steps_to(m, "weak_isr", {**sizes, **flags}) == weak
    assert steps_to(m, "strong_isr", {**sizes, **flags}) == strong


@pytest.mark.sampled(1)
@pytest.mark.clause("RPN-7", "RPN-13", "RPN-14")
@pytest.mark.parametrize(("flags", "sizes", "weak", "strong"), LATE)
def test_the_protocol_before_the_last_breaks_with_a_third_epoch(
    flags: Sizes, sizes: Sizes, weak: int, strong: int
) -> None:
    m = load(Generations)
    assert steps_to(m, "weak_isr", {**sizes, **flags}) == weak
    assert steps_to(m, "strong_isr", {**sizes, **flags}) == strong


class AsPublished(Generations):
    @invariant("RPN-1")
    def leader_in_isr(s) -> bool:
        return s.elected() is not None and s.elected() in s.isr


def test_that_the_leader_is_in_sync_is_false_as_published() -> None:
    """In the first state nobody leads."""
    assert steps_to(load(AsPublished), "leader_in_isr", {**S2222, **KIP_320}) == 0


def test_no_claim_of_the_last_one_is_broken_without_lemmas() -> None:
    m = replace(load(Released), lemmas={})
    found = explore(m, {**S2222, **KIP_320}, deadlock=True, ghosts=True)
    assert (found.outcome, found.distinct) == ("complete", 7_497)


# ---- each rule, with values ------------------------------------------------------------------------------------------
class Partition:
    """A run of a model, action by action."""

    def __init__(self, flags: Sizes = KIP_320, model: type[Model] = Generations, **more: int | bool) -> None:
        c = self.concrete = Concrete(model, {**S3222, **flags, **more})
        (self.state,) = c.initial_states()

    def may(self, action: str, *arguments: str | int) -> bool:
        return self._after(action, *arguments) is not None

    def __call__(self, action: str, *arguments: str | int) -> dict[str, Any]:
        """What the state shows after it."""
        state = self._after(action, *arguments)
        assert state is not None, f"{action}{arguments} is not possible"
        self.state = state
        return dict(self.concrete.show(state))

    def _after(self, action: str, *arguments: str | int) -> Any:
        for t in self.concrete.successors(self.state):
            if t.action == action and tuple(getattr(x, "name", x) for x in t.arguments.values()) == arguments:
                return t.state
        return None

    def elected(self, leader: str, epoch: int, *followers: str) -> None:
        """The controller elects, the leader hears of it, then the followers."""
        self("elect", leader)
        self("become_leader", leader, epoch)
        for f in followers:
            self("become_follower", f, leader, epoch)


def epochs(log: Any) -> list[int]:
    return [x["epoch"] for x in log]


@pytest.mark.clause("RPN-1")
def test_a_leader_is_elected_among_those_in_sync_in_the_next_epoch() -> None:
    p = Partition()
    assert p("elect", "r0")["requests"] == [{"leader": "r0", "isr": ["r0", "r1", "r2"]}]
    assert not p.may("elect", "r0")
    p("controller_shrinks", "r2")
    assert p.may("elect", "r1")
    assert not p.may("elect", "r2")


@pytest.mark.clause("RPN-2")
def test_a_broker_that_fails_leaves_the_in_sync_replicas_and_leads_no_more() -> None:
    p = Partition(E=5)
    p("elect", "r0")
    p("controller_shrinks", "r2")
    assert p("controller_shrinks", "r0")["requests"][-1] == {"leader": None, "isr": ["r1"]}
    p("elect", "r1")
    assert p("controller_shrinks", "r1")["requests"][-1] == {"leader": None, "isr": ["r1"]}


@pytest.mark.clause("RPN-3")
def test_a_replica_hears_of_higher_epochs_alone_and_a_leader_keeps_what_it_has() -> None:
    p = Partition()
    p.elected("r0", 1, "r1", "r2")
    for _ in range(2):
        p("write", "r0")
    for f in ("r1", "r2"):
        p("fetch", f, "r0")
    p("increment_hw", "r0")
    p("elect", "r1")
    p("elect", "r0")
    after = p("become_leader", "r0", 3)
    assert (len(after["log"]["r0"]), after["hw"]["r0"], after["epoch"]["r0"]) == (2, 1, 3)
    assert not p.may("become_follower", "r0", "r1", 2)
    assert p.may("become_follower", "r1", "r0", 3)
    assert not p.may("become_follower", "r1", "r0", 1)


def diverged(flags: Sizes) -> Partition:
    """r0 has a record of epoch 1, and r1 one of epoch 2 in its place."""
    p = Partition(flags)
    p.elected("r0", 1)
    p("write", "r0")
    p.elected("r1", 2)
    p("write", "r1")
    return p


@pytest.mark.clause("RPN-4", "RPN-5", "RPN-6")
@pytest.mark.parametrize(("flags", "kept"), [(TO_HIGH_WATERMARK, 0), (KIP_101, 1), (KIP_279, 1), (KIP_320, 1)])
def test_what_both_have_is_kept_since_kip_101(flags: Sizes, kept: int) -> None:
    """Above the high watermark of the follower."""
    p = Partition(flags)
    p.elected("r0", 1, "r1")
    p("write", "r0")
    p("fetch", "r1", "r0")
    p("controller_shrinks", "r2")
    p("become_leader", "r0", 2)
    assert len(p("become_follower", "r1", "r0", 2)["log"]["r1"]) == kept


@pytest.mark.clause("RPN-6")
def test_what_the_leader_has_not_is_cut_off() -> None:
    p = diverged(KIP_320)
    assert p("become_follower", "r0", "r1", 2)["log"]["r0"] == []


@pytest.mark.clause("RPN-5", "RPN-6")
@pytest.mark.parametrize(("flags", "kept"), [(KIP_101, [1, 2]), (KIP_279, [1]), (KIP_320, [1])])
def test_an_end_without_its_epoch_keeps_what_the_leader_has_not(flags: Sizes, kept: list[int]) -> None:
    """KAFKA-6361: asked for the end of epoch 2, of which it has nothing, r1 says where its epoch 3 begins."""
    p = Partition(flags, L=3, R=4)
    p.elected("r1", 1, "r0")
    p("write", "r1")
    p("fetch", "r0", "r1")
    p("write", "r1")
    p.elected("r0", 2)
    p("write", "r0")
    p.elected("r1", 3)
    assert epochs(p("write", "r1")["log"]["r1"]) == [1, 1, 3]
    assert epochs(p("become_follower", "r0", "r1", 3)["log"]["r0"]) == kept


@pytest.mark.clause("RPN-7")
def test_the_first_try_truncates_when_it_fetches() -> None:
    p = diverged(FIRST_TRY)
    assert epochs(p("become_follower", "r0", "r1", 2)["log"]["r0"]) == [1]
    assert p("fetch", "r0", "r1")["log"]["r0"] == []
    assert epochs(p("fetch", "r0", "r1")["log"]["r0"]) == [2]


@pytest.mark.clause("RPN-8", "RPN-10")
def test_a_deposed_leader_writes_and_changes_nobody_in_sync() -> None:
    p = Partition()
    p.elected("r0", 1)
    assert p.may("shrink", "r0", "r1")
    p("elect", "r1")
    assert epochs(p("write", "r0")["log"]["r0"]) == [1]
    assert not p.may("shrink", "r0", "r1")


@pytest.mark.clause("RPN-9")
def test_a_record_is_committed_when_all_in_sync_have_it() -> None:
    p = Partition()
    p.elected("r0", 1, "r1", "r2")
    p("write", "r0")
    assert p("fetch", "r1", "r0")["hw"]["r1"] == 0
    assert not p.may("increment_hw", "r0")
    p("fetch", "r2", "r0")
    assert p("increment_hw", "r0")["hw"] == {"r0": 1, "r1": 0, "r2": 0}
    p("write", "r0")
    assert p("fetch", "r1", "r0")["hw"]["r1"] == 1


@pytest.mark.clause("RPN-10")
def test_who_has_all_stays_in_sync() -> None:
    p = Partition()
    p.elected("r0", 1, "r1")
    assert not p.may("shrink", "r0", "r1")
    p("write", "r0")
    assert p("shrink", "r0", "r1")["isr"] == ["r0", "r2"]


@pytest.mark.clause("RPN-11")
@pytest.mark.parametrize(("flags", "joins"), [(KIP_279, True), (KIP_320, False)])
def test_nobody_joins_before_the_high_watermark_is_in_the_leaders_epoch(flags: Sizes, joins: bool) -> None:
    """KAFKA-7128."""
    p = Partition(flags, E=4)
    p.elected("r0", 1)
    p("write", "r0")
    p("shrink", "r0", "r1")
    p.elected("r2", 2)
    p("elect", "r0")
    p("become_leader", "r0", 3)
    p("become_follower", "r1", "r0", 3)
    assert p.may("expand", "r0", "r1") == joins
    p("fetch", "r1", "r0")
    p("become_follower", "r2", "r0", 3)
    p("fetch", "r2", "r0")
    p("increment_hw", "r0")
    assert p("expand", "r0", "r1")["isr"] == ["r0", "r1", "r2"]


@pytest.mark.clause("RPN-18")
@pytest.mark.parametrize(("flags", "answered"), [(KIP_279, True), (KIP_320, False)])
def test_a_leader_of_another_epoch_answers_nothing(flags: Sizes, answered: bool) -> None:
    p = Partition(flags)
    p.elected("r0", 1, "r1")
    p("write", "r0")
    p("controller_shrinks", "r2")
    assert p.may("become_follower", "r1", "r0", 2) == answered
    p("become_leader", "r0", 2)
    assert p.may("fetch", "r1", "r0") == answered


class Alone(Released):
    """A leader shows what nobody else has."""

    @action("RPN-9", who="leader")
    def increment_hw(s, r: Replica) -> None:
        require(s.leader[r] == r, s.hw[r] < len(s.log[r]))
        s.next.hw[r] = s.hw[r] + 1


@pytest.mark.clause("RPN-12")
def test_what_users_see_is_a_committed_log() -> None:
    """Every action of it is needed; and a leader that commits alone shows another."""
    m, abstract = load(Released), load(CommittedLog)
    assert seen(m) == ""
    for name in ("commit", "look"):
        without = replace(abstract, actions=[a for a in abstract.actions if a.name != name])
        assert seen(m.refining("users", without)) == "users"
    assert seen(load(Alone)) in ("users", "users: type")


def seen(m: LoadedModel) -> str:
    """The part of the refinement that is broken, or none."""
    only = replace(m, invariants={}, lemmas={}, witnesses={}, steps={"users": m.steps["users"]})
    found = explore(only, {**S2222, **KIP_320}, ghosts=True, deadlock=True)
    return "" if found.trace is None else found.trace.claim


class Eager(Released):
    """A claim that is false: a leader shows all that it has."""

    @invariant("RPN-9")
    def all_is_shown(s, r: Replica) -> bool:
        return s.leader[r] != r or s.hw[r] == len(s.log[r])


def fault(name: str) -> LoadedModel:
    found: LoadedModel = next(m for m in MUTANTS if m.name == name).make()
    return found


def of_released() -> Proof:
    (proof,) = [p for p in PROOFS if p.model is Released]
    return proof


def test_a_false_claim_is_found_before_it_is_proved() -> None:
    found = replace(of_released(), model=Eager).run()
    assert (found.outcome, found.obligations) == ("refuted", ())
    assert found.false_lemma is not None
    assert found.false_lemma.claim == "all_is_shown"


@pytest.mark.parametrize(
    ("model", "action", "claim"),
    [(load(Eager), "write", "all_is_shown"), (fault("expands early"), "expand", "no_committed_record_is_lost")],
    ids=["a claim", "a rule left out"],
)
def test_what_is_false_is_refuted_where_its_proof_is_said_to_begin(model: LoadedModel, action: str, claim: str) -> None:
    proof = of_released()
    found = prove(
        model,
        fixed=proof.fixed,
        only=lambda a, c: (a, c) == (action, claim),
        begins_with={claim: ("hw_is_committed", "leader_is_in_sync_with_itself"), **proof.begins_with},
    )
    assert [o.verdict for o in found.obligations] == ["refuted"]


TODAY: Sizes = {"ON_FETCH": False, "FENCED": True, "UNCLEAN": False}


@pytest.mark.clause("RPN-15")
def test_a_fetch_tells_where_the_logs_diverge() -> None:
    p = Partition(TODAY, Fetching)
    p.elected("r0", 1)
    p("write", "r0")
    p.elected("r1", 2)
    p("write", "r1")
    assert epochs(p("become_follower", "r0", "r1", 2)["log"]["r0"]) == [1]
    assert not p.may("fetch", "r0", "r1")
    assert p("truncate", "r0", "r1")["log"]["r0"] == []
    after = p("fetch", "r0", "r1")
    assert (epochs(after["log"]["r0"]), after["fetched"]["r0"]) == ([2], 0)
    assert p("fetch", "r0", "r1")["fetched"]["r0"] == 1


@pytest.mark.clause("RPN-16", "RPN-17")
def test_a_consumer_notices_what_an_unclean_election_lost() -> None:
    p = Partition(TODAY, Fetching, UNCLEAN=True, Replica=2)
    p.elected("r0", 1)
    p("shrink", "r0", "r1")
    p("write", "r0")
    p("increment_hw", "r0")
    p("validate", "r0")
    assert epochs(p("consume", "r0")["read"]) == [1]
    assert p("elect", "r1")["isr"] == ["r1"]
    p("become_leader", "r1", 2)
    p("write", "r1")
    p("increment_hw", "r1")
    assert not p.may("consume", "r1")
    assert p("validate", "r1")["read"] == []
    assert epochs(p("consume", "r1")["read"]) == [2]


@pytest.mark.clause("RPN-19")
def test_what_is_written_is_committed_if_followers_fetch() -> None:
    m = load(Released)
    assert explore(m, {**S2222, **KIP_320}, deadlock=True).outcome == "complete"
    assert explore(fault("nobody has to fetch"), {**S2222, **KIP_320}, deadlock=True).outcome == "liveness"


# ---- each rule left out ----------------------------------------------------------------------------------------------
@pytest.mark.sampled(4)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_fault_breaks_a_claim_and_not_a_lemma_alone(mutant: Mutant) -> None:
    made = mutant.make()
    pinned = sorted((e for e in MODELS if e.name == made.name), key=lambda e: e.distinct)
    of_promise = "RPN-19" in mutant.clauses
    broken = (
        explore(replace(made, lemmas={}), e.sizes, deadlock=True, ghosts=e.ghosts, liveness=of_promise).trace
        for e in pinned
    )
    assert any(trace is not None for trace in broken)
