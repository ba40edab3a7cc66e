"""cvc5 beside Z3: a sample of the obligations of every kept proof, all of them under `make deep`."""

from __future__ import annotations

import collections
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest

from kafkaspec import proofs
from kafkaspec.language import load
from kafkaspec.prove.proof import Proof
from kafkaspec.prove.symbols import Formula, negated
from tests.prove.rooms import Counter, Overflow
from tests.prove.second import Comparison, ask_cvc5, compare, one_in

MODULES = [m.name for m in pkgutil.walk_packages(proofs.__path__, "kafkaspec.proofs.") if not m.ispkg]
KEPT: list[Proof] = [p for name in MODULES for p in importlib.import_module(name).PROOFS]
SAMPLE = 100
"""One obligation in so many is asked by `make test`."""


def told(compared: list[Comparison], record: Callable[[str, object], None]) -> None:
    """The answers, for the summary of the run; and that there is no disagreement."""
    wrong = [c for c in compared if c.disagree or c.cvc5 == "sat"]
    assert not wrong, wrong
    answers = collections.Counter(c.cvc5 for c in compared)
    record("cvc5 answered", f"{answers['unsat']} of {len(compared)} queries, all as Z3 did")
    assert answers["unsat"] > 0.9 * len(compared), answers


def test_there_is_a_proof_for_every_module() -> None:
    assert len(KEPT) >= 22
    assert len({p.loaded.cls for p in KEPT}) == len(KEPT)


def test_a_sample_of_the_obligations(record_property: Any) -> None:
    compared = [c for p in KEPT for c in compare(p.loaded, p.fixed, wanted=one_in(SAMPLE, p.loaded))]
    assert len(compared) > 40
    assert all(c.z3 == "unsat" for c in compared)
    told(compared, record_property)


@pytest.mark.deep
@pytest.mark.parametrize("proof", KEPT, ids=lambda p: p.name)
def test_every_obligation(proof: Proof, record_property: Any) -> None:
    patience_s = 4 * proof.timeout_s  # what is compared are answers, also on a busy machine
    compared = list(compare(proof.loaded, proof.fixed, timeout_s=patience_s))
    assert all(c.z3 == "unsat" for c in compared)
    told(compared, record_property)


def drop_the_guard(query: list[Formula]) -> list[Formula]:
    """Without the second assumption: what the action requires."""
    return [query[0], *query[2:]]


def swap_the_sign(query: list[Formula]) -> list[Formula]:
    """What is claimed, in place of its denial."""
    return [*query[:-1], negated(query[-1])]


@pytest.mark.parametrize("fault", [drop_the_guard, swap_the_sign])
def test_a_faulty_export_is_a_disagreement(fault: Callable[[list[Formula]], list[Formula]]) -> None:
    model = load(Counter)
    wanted = lambda action, claim: (action, claim) == ("up", "never_seven")  # noqa: E731
    assert not any(c.disagree for c in compare(model, {}, wanted=wanted))
    assert any(c.disagree for c in compare(model, {}, wanted=wanted, exported=fault))


def test_a_first_solver_that_calls_everything_proved_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    from kafkaspec.prove import solver

    monkeypatch.setattr(solver, "check", lambda *_: solver.Reply("unsat", None, "", 1))
    compared = list(compare(load(Overflow), {}))
    assert [c.name for c in compared if c.disagree] != []
    assert all(c.z3 == "unsat" for c in compared)
    with pytest.raises(AssertionError, match="type of n after up"):
        told(compared, lambda name, value: None)


def test_an_answer_is_read_from_the_script() -> None:
    assert ask_cvc5("(set-logic ALL)(declare-const x Int)(assert (> x 0))(check-sat)(exit)") == "sat"
    assert ask_cvc5("(set-logic ALL)(declare-const x Int)(assert (> x x))(check-sat)(exit)") == "unsat"
