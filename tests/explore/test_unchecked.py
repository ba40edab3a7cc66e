"""A claim that is not checked is named: one that reads a ghost which is left out, or leads-to without liveness."""

from __future__ import annotations

from typing import Annotated

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.language import Model, Range, Size, action, invariant, leads_to, lemma, load, refines, witness
from kafkaspec.prove.engine import prove
from kafkaspec.prove.proof import Proof
from kafkaspec.report.describe import describe
from kafkaspec.report.section import Cell

N = Size("N")
Num = Annotated[int, Range(0, N)]


class Up(Model):
    """Goes up by one."""

    a: Num

    @action()
    def up(s) -> None:
        s.next.a = s.a + 1 if s.a < N else s.a


class Shown(Model):
    """Shows its ghost, which goes up like the other number."""

    n: Num
    g: Num
    ghosts = ("g",)

    @action(fair="weak")
    def go(s) -> None:
        s.next.n = s.n + 1 if s.n < N else 0
        s.next.g = s.g + 1 if s.n < N and s.g < N else s.g

    @lemma()
    def alike(s) -> bool:
        return s.n <= s.g

    @invariant()
    def counted(s) -> bool:
        return s.n <= s.g

    @witness
    def high(s) -> bool:
        return s.g > 0

    @leads_to()
    def rises(s) -> tuple[bool, bool]:
        return s.n == 0, s.n == N

    @leads_to()
    def ghost_rises(s) -> tuple[bool, bool]:
        return s.g == 0, s.n == N

    @refines(Up)
    def up(s) -> Up:
        return Up.shown(a=s.g)


UNSEEN = ("counted", "up: start", "up", "high", "ghost_rises")


def test_what_reads_a_ghost_that_is_left_out_is_named_and_not_said_to_hold() -> None:
    e = explore(load(Shown), {"N": 2})
    assert (e.outcome, tuple(e.unchecked), e.ghosts) == ("complete", UNSEEN, False)
    assert e.witnesses == {}
    (said, *_) = describe(e)
    assert said.verdict.text == "explored: every claim that was checked holds in every reachable state"
    unchecked = [cell.text for fact, cell in said.facts if fact == "not checked"]
    assert unchecked[0] == "counted: it reads a ghost, which --ghosts keeps"
    assert len(unchecked) == len(UNSEEN)


def test_with_the_ghosts_all_is_checked_and_the_command_says_so() -> None:
    e = explore(load(Shown), {"N": 2}, ghosts=True, deadlock=True)
    assert (e.outcome, e.unchecked, e.ghosts) == ("complete", {}, True)
    assert describe(e)[0].again.endswith("-s N=2 --ghosts --deadlock")


def test_leads_to_claims_that_are_left_out_are_named() -> None:
    e = explore(load(Shown), {"N": 2}, liveness=False)
    assert e.unchecked.keys() == {*UNSEEN, "rises"}
    assert Cell("rises: leads-to claims were left out", "unknown") in [c for _, c in describe(e)[0].facts]


def test_a_refinement_asked_for_by_name_is_all_that_it_claims() -> None:
    assert prove(load(Shown), claims=["up"]).asked == ("up", "up: start")
    p = prove(load(Shown), claims=["up: start"])
    assert (p.outcome, p.asked) == ("proved", ("up: start",))


def test_a_claim_that_there_is_not_is_said_before_anything_is_explored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Proof, "_explore_small", None)
    with pytest.raises(UserError, match="unknown claim of Shown 'counter'; did you mean 'counted'"):
        Proof(Shown).run(claims=["counter"])
