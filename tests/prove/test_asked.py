"""What is explored before it is proved, and what some claims rest on."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore import engine as explore
from kafkaspec.language import Flag, Model, Range, Size, action, invariant, lemma, load, require
from kafkaspec.models.examples.two_phase import TwoPhase
from kafkaspec.prove.engine import prove
from kafkaspec.prove.proof import MOST_STATES, Proof, small_sizes
from kafkaspec.report.describe import describe
from kafkaspec.report.json import to_json
from tests.language.texts import model
from tests.language.verdicts import TwoStarts
from tests.prove.rooms import Counter, FalseCounter, Guest, Hotel

N = Size("N")
A, B, C, D = Flag("A"), Flag("B"), Flag("C"), Flag("D")


class Rests(Model):
    """`small` follows from `smaller`, which is false from N=4 on; `counted` needs neither."""

    n: Annotated[int, Range(0, N)]
    m: Annotated[int, Range(0, N)]

    @action()
    def up(s) -> None:
        require(s.n < N)
        s.next.n = s.n + 1

    @action()
    def both(s) -> None:
        require(s.m < N, s.n < N)
        s.next.n = s.n + 1
        s.next.m = s.m + 1

    @lemma()
    def smaller(s) -> bool:
        return s.n < 4

    @invariant()
    def small(s) -> bool:
        return s.n < 5

    @invariant()
    def counted(s) -> bool:
        return s.m <= s.n


class RestsFar(Rests):
    """The same, false from a size on at which nothing is looked for."""

    @lemma()
    def smaller(s) -> bool:
        return s.n < 20

    @invariant()
    def small(s) -> bool:
        return s.n < 21


def test_a_proof_is_looked_for_among_some_claims_first() -> None:
    """Those that are too few, or none of its business, make nothing proved and nothing unproved."""
    m = load(RestsFar)
    wrong = {"small": ("counted",), "counted": ("small",)}
    for begins_with in ({}, wrong, {"small": ("small", "smaller")}):
        proved = prove(m, begins_with=begins_with)
        assert proved.unproved == ("smaller",)
    with pytest.raises(UserError, match="unknown claim of RestsFar"):
        prove(m, begins_with={"small": ("smallest",)})


def test_one_obligation_has_a_beginning_of_its_own() -> None:
    m = load(RestsFar)
    for others in (("small",), ("counted",)):
        assert prove(m, begins_with={"small after up": others}).unproved == ("smaller",)
    with pytest.raises(UserError, match="unknown action of RestsFar"):
        prove(m, begins_with={"small after nothing": ("small",)})


class Unbounded(Model):
    """How high it counts is not limited."""

    n: Annotated[int, Range(0)]

    @action()
    def up(s) -> None:
        s.next.n = s.n + 1

    @invariant()
    def not_negative(s) -> bool:
        return s.n >= 0


class Flags(Model):
    """Wrong with one of its flags only."""

    n: Annotated[int, Range(0, 1)]

    @action()
    def up(s) -> None:
        require(A and not B and not C)
        s.next.n = 1

    @invariant()
    def zero(s) -> bool:
        return s.n == 0


class ManyFlags(Flags):
    """With one more."""

    @action()
    def down(s) -> None:
        require(D)
        s.next.n = 0


def test_a_claim_is_proved_with_what_it_rests_on() -> None:
    p = prove(load(TwoPhase), claims=["consistent"])
    assert p.complete
    assert p.outcome == "proved"
    assert p.asked == ("consistent",)
    assert p.rests_on == ("messages_say_the_decision", "heard_was_promised", "a_promise_binds")
    assert {o.claim for o in p.obligations if not o.claim.startswith("type")} == {*p.asked, *p.rests_on}


def test_a_claim_that_rests_on_nothing_is_proved_beside_a_false_one() -> None:
    p = prove(load(Rests), claims=["counted"])
    assert p.complete
    assert p.rests_on == ()
    assert {o.claim for o in p.obligations} >= {"counted", "type of n", "type of m"}


def test_a_claim_that_rests_on_an_unproved_lemma_is_not_proved() -> None:
    p = prove(load(Rests), claims=["small"])
    assert all(o.verdict == "proved" for o in p.obligations if o.claim == "small")
    assert p.rests_on == ("smaller",)
    assert p.unproved == ("smaller",)
    assert p.outcome == "refuted"
    assert not p.complete
    facts = dict(describe(p)[0].facts)
    assert facts["rests on"].text == "smaller"
    assert "as smaller is not proved" in facts["only some"].text
    (told,) = to_json([p])
    assert (told["outcome"], told["asked"], told["rests_on"]) == ("refuted", ["small"], ["smaller"])


def test_a_claim_that_rests_on_an_unknown_lemma_is_unknown() -> None:
    p = Proof(RestsFar).run(claims=["small"])
    assert p.unproved == ("smaller",)
    assert p.outcome == "unknown"
    assert not p.complete


def test_a_claim_that_is_not_proved_ends_what_is_asked() -> None:
    p = prove(load(Rests), claims=["smaller"])
    assert p.outcome == "refuted"
    assert {o.claim for o in p.obligations if not o.claim.startswith("type")} == {"smaller"}


def test_the_verdict_names_what_was_asked() -> None:
    head = describe(prove(load(TwoPhase), claims=["consistent"]))[0]
    assert head.verdict is not None
    assert head.verdict.text == "proved for every size: consistent, with what it rests on"


def test_the_verdict_names_the_sizes_that_were_held() -> None:
    """What is proved of these sizes alone is not said of every size."""
    only_here = (
        "@action()\ndef up(s) -> None:\n    s.next.n = N\n@invariant()\ndef low(s) -> bool:\n    return s.n < 4\n"
    )
    p = Proof(model(only_here, "n: Num\n"), fixed={"N": 3}).run()
    head = describe(p)[0]
    assert head.verdict is not None
    assert head.verdict.text == "proved for every size with N=3"


def test_an_unknown_claim_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'small'"):
        prove(load(Rests), claims=["smal"])


def test_claims_are_explored_at_small_sizes_where_none_are_named() -> None:
    p = Proof(FalseCounter).run()
    assert p.false_lemma is not None
    assert p.outcome == "refuted"
    assert p.explored == "3 states"
    p = Proof(TwoPhase).run()
    assert p.complete
    assert p.explored == "every size 1: 12 states; every size 2: 56 states; every size 3: 288 states"


def test_a_false_lemma_refutes_what_was_asked_beside_it() -> None:
    p = Proof(FalseCounter).run(claims=["never_seven"])
    assert (p.outcome, p.asked, p.obligations) == ("refuted", ("never_seven",), ())


def test_every_setting_of_few_flags_is_explored() -> None:
    p = Proof(Flags).run()
    assert p.false_lemma is not None
    assert p.false_lemma.sizes == {"A": True, "B": False, "C": False}
    assert len(list(small_sizes(load(Flags), {}))) == 8
    assert [s for _, s in small_sizes(load(Flags), {"A": True, "B": False})] == [
        {"A": True, "B": False, "C": c} for c in (False, True)
    ]
    assert [list(s.values()) for _, s in small_sizes(load(ManyFlags), {})] == [[False] * 4, [True] * 4]


def test_exploring_first_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    real = explore.explore

    def seen(*arguments: Any, **named: Any) -> Any:
        given.append((arguments[1], named["ghosts"], named["max_states"]))
        return real(*arguments, **{**named, "max_states": 30})

    monkeypatch.setattr(explore, "explore", seen)
    p = Proof(TwoPhase).run()
    assert given == [({"Manager": n}, True, MOST_STATES) for n in (1, 2, 3)]
    assert "every size 3: the first " in p.explored


def test_a_model_that_cannot_be_explored_to_the_end_says_so() -> None:
    p = Proof(Unbounded).run()
    assert p.complete
    assert p.explored.startswith("the first 256 states")
    assert "a value of n beyond 255" in p.explored


def test_a_model_that_cannot_be_explored_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise UserError("too wide")

    monkeypatch.setattr(explore, "explore", refuse)
    p = Proof(TwoPhase).run()
    assert p.complete
    assert p.explored == "not explored: too wide"


def test_a_refuted_start_is_shown() -> None:
    p = prove(load(TwoStarts))
    (o,) = p.by_verdict("refuted")
    assert (o.action, o.claim) == ("(start)", "fine")
    assert o.cti is not None
    assert [s.action for s in o.cti.steps] == [""]
    assert o.cti.steps[0].state["a"] != o.cti.steps[0].state["b"]
    assert any("fine" in str(section.title) for section in describe(p))


def test_the_start_of_every_construct_is_shown() -> None:
    class Unlit(Hotel):
        """No room is lit."""

        @invariant()
        def nobody_is_staff(s, g: Guest) -> bool:
            return s.best > 0

    p = prove(load(Unlit), fixed={"POLITE": True}, only=lambda a, c: (a, c) == ("(start)", "nobody_is_staff"))
    (o,) = p.obligations
    assert o.verdict == "refuted"
    assert o.cti is not None
    assert len(o.cti.steps[0].state["staff"]) == 1


def test_counter_is_weak_and_not_false() -> None:
    p = Proof(Counter).run()
    assert p.false_lemma is None
    assert p.outcome == "refuted"
