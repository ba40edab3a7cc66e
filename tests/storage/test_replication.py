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

from kafkaspec.explore.checked import Expectation
from kafkaspec.explore.engine import Exploration, explore
from kafkaspec.language import LoadedModel, Model, action, invariant, load, refines, require
from kafkaspec.language.concrete import Concrete
from kafkaspec.models.storage.replication import (
    FIRST_TRY,
    KIP_101,
    KIP_279,
    KIP_320,
    KIP_966,
    MIN,
    MODELS,
    TO_HIGH_WATERMARK,
    AsyncIsr,
    Candidates,
    CommittedLog,
    Eligible,
    Fetching,
    Generations,
    L,
    Offset,
    R,
    Record,
    Released,
    Replica,
)
from kafkaspec.mutants.mutant import Mutant
from kafkaspec.proofs.storage.replication import PROOFS
from kafkaspec.prove import engine, solver, ways
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
    alone = replace(model, lemmas={}, witnesses={}, leads_to={}, **claims)
    return explore(alone, sizes, deadlock=True, ghosts=bool(model.ghosts))


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


@pytest.mark.deep
def test_every_claim_of_the_first_try_holds_of_three_replicas() -> None:
    """Two are pinned."""
    larger = Expectation(
        Generations, sizes={**S3221, **FIRST_TRY}, distinct=59_092, generated=179_830, depth=22, deadlock=True
    )
    assert larger.run().why == ""


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


def of_users(model: LoadedModel, action: str) -> str:
    """What becomes of it that an action refines, which is looked for where its proof is said to begin."""
    proof = of_released()
    found = prove(
        model,
        fixed=proof.fixed,
        only=lambda a, c: (a, c) == (action, "users"),
        begins_with=proof.begins_with,
    )
    return found.obligations[0].verdict


def test_that_a_step_refines_is_looked_for_where_its_proof_is_said_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among few claims the cases of an action need not be told apart. What is false is not proved among them."""
    asked, check = list[object](), solver.check

    def counted(*given: Any) -> solver.Reply:
        asked.append(given)
        return check(*given)

    monkeypatch.setattr(solver, "check", counted)
    for module in (solver, engine, ways):  # so that it does not go by how fast the machine is
        monkeypatch.setattr(module, "FIRST_S", 5.0)
    assert of_users(load(Released), "fetch") == "proved"
    assert len(asked) < 20
    assert of_users(load(Alone), "increment_hw") != "proved"


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


# ---- pending changes, and eligible replicas (KIP-966)
@pytest.mark.parametrize(
    ("followers", "records", "changes", "distinct"),
    [(1, 1, 2, 42), (2, 1, 2, 1_460), (2, 2, 2, 4_088), (1, 2, 3, 168), (2, 1, 3, 8_020)],
)
def test_pending_changes_are_those_published(followers: int, records: int, changes: int, distinct: int) -> None:
    """What TLC finds in `AsyncIsr.tla`, which has no limits: with a constraint on the leader's log and the version."""
    found = explore(load(AsyncIsr), {"Follower": followers, "L": records, "V": changes}, deadlock=True)
    assert (found.outcome, found.distinct) == ("complete", distinct)


@pytest.mark.clause("RPN-21")
def test_what_was_asked_for_is_counted_until_something_newer_is_heard() -> None:
    c = Concrete(AsyncIsr, {"Follower": 2, "L": 1, "V": 2})
    (s,) = c.initial_states()

    def step(name: str, **arguments: str | int) -> dict[str, Any]:
        nonlocal s
        (s,) = [
            t.state
            for t in c.successors(s)
            if t.action == name and {k: getattr(v, "name", v) for k, v in t.arguments.items()} == arguments
        ]
        return dict(c.show(s))

    step("controller_shrinks", f="f0")
    step("hear", v=1)
    step("append")
    step("fetch", f="f0")
    assert step("expand", f="f0")["asked"] == {"f0": [1], "f1": []}
    assert step("accept", f="f0")["changes"] == [{"isr": ["f1"]}, {"isr": ["f0", "f1"]}]
    assert step("hear", v=2)["heard"] == 2


TWO: Sizes = {"Replica": 2, "L": 1, "R": 1, "E": 5, "MIN": 2, "C": 1, "UNCLEAN": False}
THREE: Sizes = {"Replica": 3, "L": 1, "R": 1, "E": 3, "MIN": 2, "C": 1, "UNCLEAN": False}
HALVES = [
    (False, False, TWO, 8, 6, 8),
    (False, False, THREE, 11, 9, 10),
    (False, True, TWO, 8, 8, 8),
    (False, True, THREE, 11, 10, 10),
    (True, False, TWO, 7, 5, None),
    (True, False, THREE, 12, 6, 9),
    (True, True, TWO, None, None, None),
    (True, True, THREE, None, None, None),
]
"""Eligible replicas or not, a high watermark that waits for enough in sync or not; and in how many steps the strong
claim is broken, a committed record lost, and one that was acknowledged by all."""


@pytest.mark.sampled(3)
@pytest.mark.clause("RPN-14", "RPN-20", "RPN-22", "RPN-25", "RPN-26", "RPN-27")
@pytest.mark.parametrize(("eligible", "strict", "sizes", "strong", "committed", "acknowledged"), HALVES)
def test_one_half_of_kip_966_is_not_enough(
    eligible: bool, strict: bool, sizes: Sizes, strong: int | None, committed: int | None, acknowledged: int | None
) -> None:
    m, at = load(Eligible), {**sizes, **KIP_320, "ELR": eligible, "STRICT": strict}
    assert steps_to(m, "strong_isr", at) == strong
    assert steps_to(m, "no_committed_record_is_lost", at) == committed
    assert steps_to(m, "no_acknowledged_record_is_lost", at) == acknowledged


class AllAsk(Eligible):
    """Every producer asks for acks=all: a leader that knows fewer than `MIN` in sync refuses (NOT_ENOUGH_REPLICAS)."""

    @action("RPN-8", who="leader")
    def write(s, r: Replica) -> None:
        require(s.leader[r] == r, len(s.log[r]) < L, s.written < R, len(s.known_isr[r]) >= MIN)
        s.next.log[r] = s.log[r] + [Record(number=s.written + 1, epoch=s.epoch[r])]
        s.next.written = s.written + 1


class NoneAfterAppend(AllAsk):
    @invariant("RPN-26")
    def committed_is_acknowledged(s) -> bool:
        """No producer is told NOT_ENOUGH_REPLICAS_AFTER_APPEND."""
        return len(s.committed) <= s.acked


@pytest.mark.clause("RPN-26")
def test_a_refusal_leaves_no_state_of_its_own() -> None:
    """It is no step. With producers that all ask for acks=all there are fewer states than without it."""
    sizes = {"Replica": 2, "L": 2, "R": 2, "E": 3, "MIN": 2, "C": 1, **KIP_966, "UNCLEAN": False}
    bare = replace(load(AllAsk), lemmas={}, witnesses={}, leads_to={})
    found = explore(bare, sizes, deadlock=True, ghosts=True)
    assert (found.outcome, found.distinct) == ("complete", 23_757)
    (pinned,) = (e for e in MODELS if e.name == "Eligible" and e.sizes == sizes)
    assert found.distinct < pinned.distinct


@pytest.mark.clause("RPN-26")
@pytest.mark.parametrize(
    ("eligible", "strict", "committed", "acknowledged", "after_append"),
    [(False, False, 7, 8, 6), (False, True, 8, 8, None), (True, False, 6, None, 6), (True, True, None, None, None)],
)
def test_a_refusal_alone_does_not_keep_a_record(
    eligible: bool, strict: bool, committed: int | None, acknowledged: int | None, after_append: int | None
) -> None:
    """And once the high watermark waits, no producer is told of too few after the append."""
    at = {**TWO, **KIP_320, "ELR": eligible, "STRICT": strict}
    assert steps_to(load(AllAsk), "no_committed_record_is_lost", at) == committed
    assert steps_to(load(AllAsk), "no_acknowledged_record_is_lost", at) == acknowledged
    assert steps_to(load(NoneAfterAppend), "committed_is_acknowledged", at) == after_append


class Kept(Eligible):
    @refines(Candidates, "RPN-22", "RPN-25")
    def candidates(s) -> Candidates:
        return Candidates.shown(isr=s.isr, elr=s.elr, crashes=s.crashes)


@pytest.mark.sampled(1)
@pytest.mark.clause("RPN-22", "RPN-25")
@pytest.mark.parametrize(("sizes", "eligible", "steps"), [(TWO, True, None), (THREE, True, None), (TWO, False, 1)])
def test_the_controller_keeps_the_candidates_that_are_proved_for_every_size(
    sizes: Sizes, eligible: bool, steps: int | None
) -> None:
    """Whatever is proved of them holds of it at these sizes; without eligible replicas it keeps others."""
    assert steps_to(load(Kept), "candidates", {**sizes, **KIP_966, "ELR": eligible, "UNCLEAN": True}) == steps


class WeakAsPublished(Eligible):
    @invariant("RPN-13")
    def weak_isr(s, r: Replica, f: Replica, n: Offset) -> bool:
        return s.leader[r] != r or f not in s.known_isr[r] or n >= s.hw[r] or s.same(r, f, n)


class Somewhere(Eligible):
    """However often brokers shut down uncleanly."""

    @invariant("RPN-25")
    def somebody_has_it(s, n: Offset) -> bool:
        return n >= len(s.committed) or any(n < len(s.log[r]) and s.log[r][n] == s.committed[n] for r in Replica)


@pytest.mark.clause("RPN-13", "RPN-23")
def test_a_leader_may_not_know_yet_who_lost_records() -> None:
    """So the weak claim as published is false since brokers come back with less than they had, also with KIP-966."""
    assert steps_to(load(WeakAsPublished), "weak_isr", {**TWO, **KIP_966}) == 7
    assert steps_to(load(Eligible), "weak_isr", {**TWO, **KIP_966}) is None


@pytest.mark.clause("RPN-25")
@pytest.mark.parametrize(("at_least", "shutdowns", "lost"), [(2, 1, None), (2, 2, 8), (1, 1, 6)])
def test_a_record_survives_one_unclean_shutdown_fewer_than_must_be_in_sync(
    at_least: int, shutdowns: int, lost: int | None
) -> None:
    sizes = {**TWO, **KIP_966, "E": 4, "MIN": at_least, "C": shutdowns}
    assert steps_to(load(Somewhere), "somebody_has_it", sizes) == lost


@pytest.mark.clause("RPN-21")
@pytest.mark.parametrize(("name", "steps"), [("counts over the smaller", 5), ("counts a new one when told", 8)])
def test_a_leader_that_counts_over_too_few_loses_a_committed_record(name: str, steps: int) -> None:
    assert steps_to(fault(name), "no_committed_record_is_lost", {**TWO, **KIP_966, "MIN": 1}) == steps


def eligible(**more: int | bool) -> Partition:
    """r0 leads in epoch 1, two follow; at least two must be in sync."""
    p = Partition(KIP_966, Eligible, **{"MIN": 2, "C": 2, "E": 6, "UNCLEAN": False, **more})
    p.elected("r0", 1, "r1", "r2")
    return p


def everybody_has(p: Partition, leader: str, *followers: str) -> None:
    """One more record, which is committed."""
    p("write", leader)
    for f in followers:
        p("fetch", f, leader)
    p("increment_hw", leader)


def proposed(p: Partition, how: str, leader: str, f: str) -> dict[str, Any]:
    """Out of the in-sync replicas, or into them, and the leader knows."""
    p(how, leader, f)
    p("accept", leader)
    return p("hear", leader)


@pytest.mark.clause("RPN-20", "RPN-26")
def test_the_high_watermark_waits_until_enough_are_in_sync() -> None:
    p = eligible(L=3, R=3)
    everybody_has(p, "r0", "r1", "r2")
    p("write", "r0")
    assert proposed(p, "shrink", "r0", "r2")["isr"] == ["r0", "r1"]
    assert not p.may("increment_hw", "r0")
    p("fetch", "r1", "r0")
    assert p("increment_hw", "r0")["acked"] == 2
    p("write", "r0")
    assert proposed(p, "shrink", "r0", "r1")["isr"] == ["r0"]
    assert not p.may("increment_hw", "r0")
    p("fetch", "r1", "r0")
    p("expand", "r0", "r1")
    p("accept", "r0")
    assert not p.may("increment_hw", "r0")
    p("hear", "r0")
    after = p("increment_hw", "r0")
    assert (after["hw"]["r0"], after["acked"]) == (3, 3)


@pytest.mark.clause("RPN-26")
def test_what_is_committed_with_too_few_in_sync_is_not_acknowledged() -> None:
    """Without the rule that the high watermark waits."""
    p = Partition(KIP_320, Eligible, MIN=2, C=1, E=4, UNCLEAN=False, ELR=False, STRICT=False)
    p.elected("r0", 1)
    p("write", "r0")
    for f in ("r1", "r2"):
        proposed(p, "shrink", "r0", f)
    after = p("increment_hw", "r0")
    assert (len(after["committed"]), after["acked"]) == (1, 0)


@pytest.mark.clause("RPN-21")
def test_a_leader_counts_over_both_until_it_knows() -> None:
    p = eligible()
    p("write", "r0")
    p("fetch", "r1", "r0")
    p("shrink", "r0", "r2")
    assert not p.may("shrink", "r0", "r1")
    assert not p.may("hear", "r0")
    assert p("accept", "r0")["isr"] == ["r0", "r1"]
    assert not p.may("accept", "r0")
    assert not p.may("increment_hw", "r0")
    assert p("hear", "r0")["known_isr"]["r0"] == ["r0", "r1"]
    p("increment_hw", "r0")
    p("fetch", "r2", "r0")
    p("write", "r0")
    p("fetch", "r1", "r0")
    p("expand", "r0", "r2")
    assert not p.may("increment_hw", "r0")
    p("fetch", "r2", "r0")
    assert p("increment_hw", "r0")["isr"] == ["r0", "r1"]


@pytest.mark.clause("RPN-10", "RPN-21")
def test_the_controller_takes_no_change_from_a_leader_of_an_earlier_epoch() -> None:
    p = eligible()
    p("write", "r0")
    p("shrink", "r0", "r2")
    p("elect", "r1")
    assert not p.may("accept", "r0")
    p("become_leader", "r1", 2)
    assert p("become_follower", "r0", "r1", 2)["proposed"]["r0"] == []


@pytest.mark.clause("RPN-22")
def test_who_leaves_while_too_few_stay_is_eligible_until_enough_are_in_sync() -> None:
    p = eligible()
    everybody_has(p, "r0", "r1", "r2")
    p("write", "r0")
    assert proposed(p, "shrink", "r0", "r2")["elr"] == []
    assert proposed(p, "shrink", "r0", "r1")["elr"] == ["r1"]
    after = p("controller_shrinks", "r0")
    assert (after["isr"], after["elr"], after["requests"][-1]["leader"]) == ([], ["r0", "r1"], None)
    assert not p.may("controller_shrinks", "r0")
    p("elect", "r1")
    p("become_leader", "r1", 3)
    p("become_follower", "r2", "r1", 3)
    p("expand", "r1", "r2")
    after = p("accept", "r1")
    assert (after["isr"], after["elr"]) == (["r1", "r2"], [])


@pytest.mark.clause("RPN-23")
def test_who_shut_down_uncleanly_is_neither_in_sync_nor_eligible() -> None:
    p = eligible()
    everybody_has(p, "r0", "r1", "r2")
    for f in ("r2", "r1"):
        p("controller_shrinks", f)
    assert not p.may("unclean_shutdown", "r1", 1)
    after = p("unclean_shutdown", "r1", 0)
    assert (after["isr"], after["elr"], after["log"]["r1"]) == (["r0"], [], [])
    assert len(after["requests"]) == 4
    after = p("unclean_shutdown", "r0", 0)
    assert (after["isr"], after["elr"], after["requests"][-1]["leader"]) == ([], [], None)
    assert after["leader"]["r0"] is None
    assert not p.may("become_leader", "r0", 1)


@pytest.mark.clause("RPN-24")
@pytest.mark.parametrize("unclean", [False, True])
def test_an_eligible_one_leads_if_nobody_is_in_sync_and_the_last_known_one_if_nobody_is_eligible(unclean: bool) -> None:
    p = eligible(UNCLEAN=unclean, E=9)
    everybody_has(p, "r0", "r1", "r2")
    for f in ("r2", "r1"):
        p("controller_shrinks", f)
    assert not p.may("elect", "r1")
    p("controller_shrinks", "r0")
    assert not p.may("elect", "r2")
    after = p("elect", "r1")
    assert (after["isr"], after["elr"]) == (["r1"], ["r0"])
    p("unclean_shutdown", "r0", 0)
    p("unclean_shutdown", "r1", 0)
    assert [p.may("elect", r) for r in ("r0", "r1", "r2")] == [False, unclean, False]


@pytest.mark.clause("RPN-27")
def test_before_kip_966_the_last_one_stays_in_sync_with_less_than_it_had() -> None:
    p = Partition(KIP_320, Eligible, MIN=2, C=1, E=6, UNCLEAN=False, ELR=False, STRICT=True)
    p.elected("r0", 1, "r1", "r2")
    everybody_has(p, "r0", "r1", "r2")
    for f in ("r2", "r1"):
        p("controller_shrinks", f)
    after = p("unclean_shutdown", "r0", 0)
    assert (after["isr"], after["elr"], after["requests"][-1]["leader"]) == (["r0"], [], None)
    assert p("elect", "r0")["requests"][-1]["leader"] == "r0"


@pytest.mark.clause("RPN-28")
def test_a_follower_joins_once_it_has_what_the_leader_had_when_its_epoch_began() -> None:
    """KAFKA-7128. The high watermark need not have got there, as with KIP-320: with too few in sync it never would."""
    p = eligible()
    p("write", "r0")
    p("fetch", "r1", "r0")
    for f in ("r2", "r1"):
        p("controller_shrinks", f)
    p("controller_shrinks", "r0")
    p("elect", "r1")
    p("become_leader", "r1", 5)
    p("become_follower", "r2", "r1", 5)
    assert not p.may("expand", "r1", "r2")
    assert p("fetch", "r2", "r1")["hw"]["r1"] == 0
    assert p("expand", "r1", "r2")["proposed"]["r1"] == ["r1", "r2"]


@pytest.mark.clause("RPN-19", "RPN-28")
def test_what_is_written_is_committed_though_too_few_were_in_sync() -> None:
    """If followers fetch, the leader proposes them, and the controller answers."""
    m, sizes = load(Eligible), {**TWO, **KIP_966, "E": 4}
    assert explore(m, sizes, deadlock=True).outcome == "complete"
    assert explore(fault("waits for its own epoch"), sizes, deadlock=True).outcome == "liveness"


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
