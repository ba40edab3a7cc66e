"""A test that names a clause is red under a fault of what states the clause: else it looks at something else.

`tests/exercised.py` says how that is asked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.contract import traceability
from kafkaspec.contract.subsystem import Subsystem, subsystems

ROOT = Path(__file__).parent.parent
STATED = frozenset({"spec", "impl", "audit"})
"""Forms that a function has. A clause of none of them is a claim of a model, whose faults `kafkaspec mutants` makes."""


def is_asked(id: str) -> bool:
    """Whether a function states the clause, so that it can be made faulty."""
    return bool({u.form for u in traceability.uses(id)} & STATED)


def surroundings(**more: str) -> dict[str, str]:
    """The environment of a process that runs pytest itself, with few examples."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return {**inherited, "HYPOTHESIS_PROFILE": "exercised", **more}


def asked(*words: str) -> list[dict[str, Any]]:
    """What a process of tests/exercised.py says of each clause."""
    command = [sys.executable, "-m", "tests.exercised", *words]
    done = subprocess.run(command, cwd=ROOT, env=surroundings(), capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def unexercised(found: dict[str, Any]) -> str:
    """What is said of a clause of which no fault turned a test red; "" of any other."""
    if found["red"]:
        return ""
    tests = "\n".join(f"  test   {name}" for name in found["tests"])
    faults = "\n".join(f"  {line}" for line in found["tried"])
    problem = found["problem"] or "no fault turns a test red that is marked with it"
    return f"{found['clause']}: {problem}\n{tests}\n{faults}"


@pytest.mark.deep
@pytest.mark.parametrize("subsystem", list(subsystems().values()), ids=lambda s: s.name)
def test_every_clause_is_exercised_by_a_test_that_names_it(subsystem: Subsystem) -> None:
    traceability.load()
    found = {x["clause"]: x for x in asked(subsystem.name)}
    assert found.keys() == {c.id for c in subsystem.clauses}
    told = [said for id, x in found.items() if is_asked(id) and (said := unexercised(x))]
    assert not told, "\n".join(told)


def test_what_no_function_states_says_why_and_has_a_model() -> None:
    traceability.load()
    left = [c for s in subsystems().values() for c in s.clauses if not is_asked(c.id)]
    assert {"CLN-20", "OIX-22", "RPN-1"} <= {c.id for c in left}
    for c in left:
        assert {"spec", "impl"} <= c.without.keys(), c.id
        assert "model" in {u.form for u in traceability.uses(c.id)}, c.id


RULES = """
def lowered(entry: int, offset: int) -> int:
    '''What the entry is after a truncation.'''
    return offset if entry > offset else entry


def refused(epoch: int) -> bool:
    if epoch < 0:
        raise ValueError(f"epoch {epoch}")
    return False


def delegated(entry: str, offset: str) -> int:
    return lowered(int(entry), int(offset))
"""
TESTS = """
import pytest
import toy_rules


@pytest.mark.clause("TOY-1")
@pytest.mark.parametrize("offset", [3, 5])
def test_it_is_lowered(offset):
    assert toy_rules.lowered(4, offset) == min(4, offset)


@pytest.mark.clause("TOY-2")
def test_empty():
    pass


@pytest.mark.clause("TOY-3")
def test_it_is_called():
    toy_rules.lowered(4, 3)


@pytest.mark.clause("TOY-4")
def test_a_negative_epoch_is_refused():
    with pytest.raises(ValueError):
        toy_rules.refused(-1)


@pytest.mark.clause("TOY-5")
def test_red_without_a_fault():
    assert toy_rules.lowered(4, 3) == 4


@pytest.mark.clause("TOY-7")
def test_what_is_called_has_the_faults():
    assert toy_rules.delegated("4", "5") == 4
"""
ASK = """
import json, sys
from dataclasses import asdict
import toy_rules
from tests import exercised
rules = {"TOY-1": "lowered", "TOY-2": "lowered", "TOY-3": "lowered", "TOY-4": "refused", "TOY-5": "lowered",
         "TOY-6": "lowered", "TOY-7": "delegated", "TOY-8": "gone"}
with open("told", "w") as out:
    tell = lambda found: print(json.dumps(asdict(found)), file=out)
    asked = {id: exercised.Rule([[(toy_rules, name)]]) for id, name in rules.items()}
    exercised.ask(asked, ["test_toy.py"], tell, ["--rootdir=."])
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What is said of some clauses with good tests and poor ones."""
    folder = tmp_path_factory.mktemp("toy")
    (folder / "toy_rules.py").write_text(RULES)
    (folder / "test_toy.py").write_text(TESTS)
    path = os.pathsep.join([str(folder), str(ROOT), str(ROOT / "src")])
    command = [sys.executable, "-c", ASK]
    done = subprocess.run(
        command, cwd=folder, env=surroundings(PYTHONPATH=path), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads(line) for line in (folder / "told").read_text().splitlines()]
    return {x["clause"]: x for x in told}


def test_a_test_that_looks_at_the_rule_is_red_under_a_fault_of_it(toy: dict[str, dict[str, Any]]) -> None:
    for id in ("TOY-1", "TOY-4", "TOY-7"):
        assert unexercised(toy[id]) == ""
    assert "entry > offset" in toy["TOY-1"]["red"]
    assert "test_it_is_lowered" in toy["TOY-1"]["red"]


def test_a_test_that_looks_at_nothing_is_found(toy: dict[str, dict[str, Any]]) -> None:
    """One that is empty, and one that calls the rule and does not look at its answer; with all that was tried."""
    for id, name in (("TOY-2", "test_empty"), ("TOY-3", "test_it_is_called")):
        said = unexercised(toy[id])
        assert f"{id}: no fault turns a test red that is marked with it\n  test   test_toy.py::{name}\n" in said
        assert "  green: toy_rules.py:4, lowered, condition negated: entry > offset" in said
        assert "  green: toy_rules.py:4, lowered, comparison: entry > offset is entry >= offset" in said


def test_what_cannot_be_asked_is_told(toy: dict[str, dict[str, Any]]) -> None:
    assert "TOY-5: red without a fault: test_toy.py::test_red_without_a_fault" in unexercised(toy["TOY-5"])
    assert "TOY-6: no test that runs is marked with it" in unexercised(toy["TOY-6"])
    assert "TOY-8: no function states it of which there is a fault" in unexercised(toy["TOY-8"])
