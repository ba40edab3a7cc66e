"""SMT-LIB scripts of the proof obligations, read again by a solver."""

from __future__ import annotations

import pytest
import z3

from kafkaspec.export import smtlib
from kafkaspec.export.smtlib import queries
from kafkaspec.language import load
from kafkaspec.proofs.examples.cleaner_anchor import CountedCleaner
from kafkaspec.prove.engine import prove
from tests.language.texts import model
from tests.prove.rooms import Overflow
from tests.prove.second import ask_cvc5


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


WORDS = """
@action()
def act(s, k: {sort}) -> None:
    require(all(j == k for j in {sort}), N > 1)
    s.next.of[k] = True
    s.next.{name}[2] = 1
    s.next.{flag} = True
@invariant()
def low(s) -> bool:
    return s.{name}[min(N, 2)] <= 0 or not s.{flag} or all(not s.of[k] for k in {sort})
"""


@pytest.mark.parametrize(
    ("name", "sort", "flag"),
    [("exp", "P", "b"), ("mod", "Int", "true"), ("distinct", "Bool", "false"), ("select", "Array", "b")],
)
def test_a_name_of_a_text_is_no_word_of_a_solver(name: str, sort: str, flag: str) -> None:
    """Z3's own exponential of 2 is not 1, a sort called Int has elements of its own, and `false` may be true."""
    variables = f"{name}: dict[Num, Num]\nof: dict[{sort}, bool]\n{flag}: bool\n"
    m = model(
        WORDS.format(name=name, sort=sort, flag=flag),
        variables,
        "" if sort == "P" else f"class {sort}(Sort): ...\n",
    )
    (script,) = smtlib(m, only=lambda action, claim: (action, claim) == ("act", "low")).values()
    assert (answer(script), ask_cvc5(script)) in (("sat", "sat"), ("sat", "unknown")), script
    assert not prove(m, only=lambda action, claim: (action, claim) == ("act", "low"), timeout_s=1).by_verdict("proved")


def test_what_a_script_declares_ends_with_a_dot_or_stands_in_bars() -> None:
    for script in smtlib(load(CountedCleaner)).values():
        declared = [x.split()[1] for x in script.splitlines() if x.startswith(("(declare-fun", "(declare-sort"))]
        assert declared
        assert all(x.endswith((".", "|")) for x in declared), declared
