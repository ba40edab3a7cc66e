"""What has no value, and what leaves a type, is an obligation that fails: in the prover and in the bounded search."""

from __future__ import annotations

import pytest

from kafkaspec.language import Model, ModelError, action, load
from kafkaspec.language.concrete import Concrete
from kafkaspec.prove.bounded import bounded
from kafkaspec.prove.engine import prove
from tests.language import verdicts
from tests.prove import election


class AtOne(Model):
    """A number leaves its range where N is 1, and nowhere else."""

    n: verdicts.Num

    @action()
    def up(s) -> None:
        s.next.n = min(2, s.n + 1) if s.n < 2 else s.n


WRONG: list[tuple[type[Model], str, str]] = [
    (verdicts.LimitsOfAComprehension, "ask", "always"),
    (verdicts.EndOfAComprehension, "fill", "whole"),
    (verdicts.OneTooMany, "see", "type of seen"),
    (AtOne, "up", "type of n"),
    (verdicts.WiderSet, "copy", "type of small"),
    (verdicts.EmptiedSet, "take", "type of S"),
    (verdicts.LongLineInAMap, "twice", "type of q"),
    (verdicts.NoneInAClaim, "(start)", "fine"),
    (verdicts.IndexBeyondInAClaim, "less", "zero"),
    (verdicts.StepWithoutAValue, "put", "rises"),
    (verdicts.IndexBeyondInAGuard, "go", "defined"),
    (verdicts.NoneAsKey, "fill", "defined"),
    (verdicts.KeyBeyondTheMap, "look", "defined"),
    (verdicts.NegativeSlice, "cut", "defined"),
    (verdicts.RecordOutsideItsField, "up", "defined"),
    (verdicts.GreatestOfNothing, "ask", "defined"),
    (verdicts.Asserted, "up", "defined"),
    (verdicts.FieldNamedNone, "look", "never"),
    (verdicts.FieldsOfRecords, "set", "never"),
    (verdicts.TwoStarts, "(start)", "fine"),
    (verdicts.StartOutsideItsType, "(start)", "type of n"),
    (verdicts.StartWithoutAValue, "(start)", "defined"),
    (election.Forgetful, "vote", "type of post"),
    (election.Fickle, "vote", "a_leader_has_a_majority"),
    (election.Half, "lead", "a_leader_has_a_majority"),
    (election.Thief, "spend", "the_total_is_the_sum"),
]
HARD = (election.Fickle, election.Half)
"""The search for a run at every size gives up."""
PROVED: list[type[Model]] = [
    verdicts.OverwrittenAssignment,
    verdicts.IndexAfterAGuard,
    election.Election,
    election.ByLetter,
    election.Bank,
    election.Parts,
]


@pytest.mark.parametrize(("cls", "action", "claim"), WRONG, ids=lambda x: getattr(x, "__name__", x))
def test_what_is_wrong_is_refuted(cls: type[Model], action: str, claim: str) -> None:
    p = prove(load(cls), timeout_s=1, only=lambda a, c: (a, c) == (action, claim))
    (o,) = p.obligations
    assert o.verdict == "refuted"
    assert o.cti is not None
    assert o.cti.claim == claim


@pytest.mark.parametrize(("cls", "action", "claim"), WRONG, ids=lambda x: getattr(x, "__name__", x))
def test_the_bounded_search_finds_it_too(cls: type[Model], action: str, claim: str) -> None:
    """At given sizes and at every size; the run is one of the text, up to the step that goes wrong."""
    model = load(cls)
    sizes = {n: 1 if cls is AtOne else 2 for n in model.sizes}
    found = [bounded(model, 5, sizes), *([] if cls in HARD else [bounded(model, 5, timeout_s=5)])]
    for b in found:
        assert b.outcome == "violation"
        assert b.trace is not None
        c = Concrete(cls, b.trace.sizes)
        states = c.initial_states() if len(b.trace.steps) > 1 else []
        for s in b.trace.steps[1:-1]:
            reached = [t.state for state in states for t in c.successors(state) if t.action == s.action]
            states = [t for t in reached if c.show(t) == s.state]
            assert states, f"{s} is no step of the text"
        assert b.trace.claim == claim


@pytest.mark.parametrize("cls", PROVED)
def test_what_is_right_is_proved_for_every_size(cls: type[Model]) -> None:
    p = prove(load(cls), timeout_s=3)
    assert p.complete, [(o.action, o.claim, o.verdict, o.reachable) for o in p.obligations if o.verdict != "proved"]


def test_an_option_of_a_sort_in_a_message_is_refused_but_at_given_sizes() -> None:
    with pytest.raises(ModelError, match=r"election.py:\d+: .*is read at given sizes only"):
        prove(load(election.Replies))
    assert prove(load(election.Replies), fixed={"Node": 2, "K": 2}).complete
    assert bounded(load(election.Replies), 3, {"Node": 2, "K": 2}).outcome == "complete"


def test_two_leaders_in_one_term_are_found_when_half_the_votes_are_enough() -> None:
    b = bounded(load(election.Half), 4, {"Node": 2, "T": 1})
    assert b.trace is not None
    assert b.trace.claim in ("a_leader_has_a_majority", "one_leader_a_term")
    assert bounded(load(election.Election), 4, {"Node": 2, "T": 1}).outcome == "complete"
