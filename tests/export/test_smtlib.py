"""SMT-LIB scripts of the proof obligations, read again by a solver."""

from __future__ import annotations

import z3

from kafkaspec.export import smtlib
from kafkaspec.export.smtlib import queries
from kafkaspec.language import load
from kafkaspec.proofs.examples.cleaner_anchor import CountedCleaner
from tests.language.texts import model
from tests.prove.rooms import Overflow


def answer(script: str) -> str:
    """What Z3 says of a script's assertions."""
    s = z3.Solver()
    s.set("rlimit", 20_000_000)
    s.from_string(script)
    return str(s.check())


def test_every_script_of_a_proof_is_unsatisfiable() -> None:
    scripts = smtlib(load(CountedCleaner))
    assert len(scripts) == 35
    for name, script in scripts.items():
        assert script.endswith("(check-sat)\n(exit)\n")
        assert ":status" not in script  # what the answer is, the solver says
        assert answer(script) == "unsat", name


def test_the_script_of_what_is_false_is_satisfiable() -> None:
    scripts = smtlib(load(Overflow))
    assert answer(scripts["Overflow.up.type-of-n.smt2"]) == "sat"


NAMES = """
@action()
def a(s) -> None:
    s.next.n = 0
@action()
def a_b(s) -> None:
    s.next.n = 1
@invariant()
def b_low(s) -> bool:
    return s.n < 2
@invariant()
def low(s) -> bool:
    return s.n < 3
@invariant()
def type_of_n(s) -> bool:
    return s.n < 4
@action()
def start(s) -> None:
    s.next.n = 0
"""


def test_each_obligation_has_a_file_of_its_own() -> None:
    m = model(NAMES)
    assert len(smtlib(m)) == len(list(queries(m, None, lambda action, claim: True)))
