"""The prover: what it proves, what it refutes, and what it must not call proved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafkaspec.errors import UserError
from kafkaspec.language import LoadedModel, load
from kafkaspec.models.examples.cleaner_anchor import CleanerAnchor
from kafkaspec.models.examples.replication_anchor import Replication
from kafkaspec.proofs.examples import cleaner_anchor, replication_anchor
from kafkaspec.prove import obligations
from kafkaspec.prove.engine import Obligation, ProofResult, prove
from kafkaspec.prove.proof import Proof
from tests.prove.rooms import Contradiction, Counter, Endless, FalseCounter, Hotel, Overflow


def one(p: ProofResult, action: str, claim: str) -> Obligation:
    return next(o for o in p.obligations if (o.action, o.claim) == (action, claim))


def without(model: LoadedModel, action: str, guard: int) -> LoadedModel:
    """The model with one condition of one action dropped."""
    (a,) = [a for a in model.actions if a.name == action]
    weaker = a.without_guard(guard)
    return replace(model, actions=[weaker if b is a else b for b in model.actions])


@pytest.mark.deep
def test_fenced_replication_is_proved_for_every_size() -> None:
    proof, users = replication_anchor.PROOFS
    assert users.run().complete
    p = proof.run()
    assert p.complete, p.summary()
    assert p.vacuous == ()
    assert len(p.obligations) == 310
    assert {o.kind for o in p.obligations} == {"invariant", "lemma", "type", "defined", "step", "start"}
    assert "46,000 states" in p.explored


def test_the_anchor_is_proved_for_every_size() -> None:
    (proof,) = cleaner_anchor.PROOFS
    assert proof.run().complete


def test_unfenced_replication_is_not_proved() -> None:
    wanted = {("become_follower", "leader_moves_first"), ("fetch", "log_matching")}
    p = prove(load(Replication), fixed={"FENCED": False}, timeout_s=2, only=lambda a, c: (a, c) in wanted)
    assert not p.complete
    for o in p.obligations:
        assert o.verdict == "refuted"
        assert o.cti is not None
        assert o.cti.kind == "cti"
        assert [s.action for s in o.cti.steps] == ["", o.action]
        assert o.cti.sizes["Replica"] == 2, "as few elements as will do"
    first = one(p, "become_follower", "leader_moves_first")
    assert "leader_moves_first is false: broken in 4 steps at" in first.reachable
    assert first.way is not None
    assert len(first.way.steps) == 5
    assert one(p, "fetch", "log_matching").cti.changed(1)  # type: ignore[union-attr]


def test_every_construct_is_proved() -> None:
    p = prove(load(Hotel), fixed={"POLITE": True}, timeout_s=5)
    assert p.complete, [(o.action, o.claim, o.verdict, o.reachable) for o in p.obligations if o.verdict != "proved"]


def test_a_claim_that_is_false_is_shown_to_be_broken() -> None:
    p = prove(load(FalseCounter))
    o = one(p, "up", "never_two")
    assert o.verdict == "refuted"
    assert o.reachable == "never_two is false: broken in 2 steps at its one size"
    assert o.way is not None
    assert o.way.steps[-1].state == {"n": 2}


def test_a_claim_that_is_too_weak_is_said_to_need_a_lemma() -> None:
    p = prove(load(Counter))
    o = one(p, "jump", "never_seven")
    assert o.verdict == "refuted"
    assert "not reachable" in o.reachable
    assert "lemma" in o.reachable
    assert o.cti is not None
    assert o.cti.steps[0].state == {"n": 5}
    assert o.cti.steps[1].state == {"n": 7}


def test_a_false_lemma_is_explored_before_anything_is_proved() -> None:
    p = Proof(FalseCounter, explored_at={}).run()
    assert p.false_lemma is not None
    assert p.false_lemma.claim == "never_two"
    assert len(p.false_lemma.steps) == 3
    assert p.obligations == ()
    assert not p.complete
    assert p.summary() == "FalseCounter: never_two is false, as exploring shows: nothing was proved"


@pytest.mark.parametrize(
    ("action", "guard", "claim"),
    [
        ("grab_filthiest", 0, "cleaned_by_someone"),
        ("grab_filthiest", 1, "one_thread_a_partition"),
        ("write", 0, "type of dirt"),
    ],
)
def test_a_dropped_guard_fails_an_obligation(action: str, guard: int, claim: str) -> None:
    model = load(cleaner_anchor.CountedCleaner)
    assert one(prove(model, only=lambda a, c: a == action), action, claim).verdict == "proved"
    p = prove(without(model, action, guard), only=lambda a, c: a == action)
    assert one(p, action, claim).verdict == "refuted"


def test_types_and_keys_are_obligations() -> None:
    p = prove(load(Overflow))
    assert one(p, "up", "type of n").verdict == "refuted"
    assert one(p, "see", "defined").verdict == "refuted"
    assert one(p, "(start)", "type of n").verdict == "proved"


def test_contradictory_assumptions_prove_nothing() -> None:
    p = prove(load(Contradiction))
    assert one(p, "up", "below").verdict == "proved"
    assert set(p.vacuous) == {"up", "jump"}
    assert not p.complete
    assert "impossible: up, jump" in p.summary()


def test_unknown_is_never_green() -> None:
    wanted = ("become_follower", "later_isr_has_earlier_commits")
    m = load(Replication)
    m = replace(m, actions=[a for a in m.actions if a.name == wanted[0]])
    p = prove(m, fixed={"FENCED": True}, timeout_s=0.0001, only=lambda a, c: (a, c) == wanted)
    assert [o.verdict for o in p.obligations] == ["unknown"]
    assert not replace(p, partial=False).complete


def test_what_is_not_asked_for_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    whole = obligations.setting

    def setting(model: LoadedModel, action: str, *rest: Any, **how: Any) -> obligations.Setting:
        read.append(action)
        return whole(model, action, *rest, **how)

    monkeypatch.setattr(obligations, "setting", setting)
    (o,) = prove(load(Overflow), only=lambda a, c: (a, c) == ("up", "type of n")).obligations
    assert (o.claim, set(read)) == ("type of n", {"up"})
    read.clear()
    prove(load(Overflow))
    assert {"(start)", "up", "see"} <= set(read)


def test_part_of_a_proof_is_no_proof() -> None:
    p = prove(load(CleanerAnchor), only=lambda a, c: a == "write")
    assert all(o.verdict == "proved" for o in p.obligations)
    assert not p.complete


@pytest.mark.parametrize(
    ("model", "fixed", "said"),
    [
        (Endless, {}, "rooms.py:"),
        (Replication, {"FENCD": True}, "did you mean 'FENCED'"),
        (Replication, {"FENCED": 3}, "is true or false, not 3"),
    ],
)
def test_errors_are_one_line_and_say_where(model: Any, fixed: Any, said: str) -> None:
    with pytest.raises(UserError) as e:
        prove(load(model), fixed=fixed)
    assert said in str(e.value)
    assert "\n" not in str(e.value)
