"""SMT-LIB scripts of the proof obligations, read again by a solver."""

from __future__ import annotations

import z3

from kafkaspec.export import smtlib
from kafkaspec.language import load
from kafkaspec.proofs.examples.cleaner_anchor import CountedCleaner
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
        assert script.count("(set-info :status unsat)") == 1
        assert answer(script) == "unsat", name


def test_the_script_of_what_is_false_is_satisfiable() -> None:
    scripts = smtlib(load(Overflow))
    assert answer(scripts["Overflow_up_type_of_n.smt2"]) == "sat"
