"""The written mutants run: none is killed because it is written wrongly, so that its fault is never met."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kafkaspec.contract.subsystem import answered, find
from kafkaspec.errors import UserError
from kafkaspec.lockstep.walk import walk
from kafkaspec.mutants import judge
from kafkaspec.mutants.audit import audit_detector
from kafkaspec.mutants.blame import cited
from kafkaspec.mutants.matrix import (
    Detector,
    check_detector,
    contract_detector,
    explorer_detector,
    kill_matrix,
    lockstep_detector,
    prover_detector,
    written,
)
from kafkaspec.mutants.mutant import Mutant, of_impl, of_model, of_spec

WRITTEN_WRONGLY = re.compile(
    r"the driver failed: (NameError|UnboundLocalError|ImportError|ModuleNotFoundError"
    r"|AttributeError: (module|type object) "
    r"|TypeError: .*(positional argument|keyword argument|required))"
)
WALKS, STEPS = 3, 20
"""What is written wrongly fails soon."""


def wrongly_written(mutant: Mutant, machine: Any) -> str:
    driver = mutant.made()
    for seed in range(WALKS):
        failure = walk(machine, driver, seed, STEPS, contracts=False).failure
        if failure is not None:
            return f"{mutant.name}: {failure.why}" if WRITTEN_WRONGLY.search(failure.why) else ""
    return ""


@pytest.mark.parametrize("name", answered())
def test_no_mutant_is_killed_before_its_fault(name: str) -> None:
    machines: dict[str, Any] = {pair.layer: pair.machine for pair in find(name).pairs()}
    mutants = [m for m in written(find(name)) if m.layer in machines]
    assert mutants
    assert [wrong for m in mutants if (wrong := wrongly_written(m, machines[m.layer]))] == []


def test_a_mutant_that_is_written_wrongly_is_found() -> None:
    pair = find("leader_epochs").pairs()[0]
    driver: Any = pair.driver
    faults = {"arity": lambda self: None, "name": lambda self, *_: nothing, "module": lambda self, *_: re.no_such}  # type: ignore[name-defined,attr-defined]  # noqa: F821
    for name, fault in faults.items():
        made = type("Faulty", (driver,), {"apply": fault})
        assert wrongly_written(of_impl(name, "LEC-1", "", made), pair.machine)
    made = type("Faulty", (driver,), {"apply": lambda self, *_: {"there": 1}["absent"]})
    assert wrongly_written(of_impl("a fault", "LEC-1", "", made), pair.machine) == ""


def never_made() -> Any:
    return nothing  # type: ignore[name-defined]  # noqa: F821


DETECTORS = [
    contract_detector,
    lockstep_detector,
    check_detector,
    audit_detector,
    judge.judge_detector,
    explorer_detector,
    prover_detector,
]


@pytest.mark.parametrize("detector", DETECTORS)
def test_what_cannot_be_made_is_no_kill(detector: Callable[[], Detector]) -> None:
    blind = replace(detector(), look=lambda *_: "")
    of = {"spec": of_spec, "impl": of_impl, "model": of_model}
    for layer in blind.layers & of.keys():
        wrong = of[layer]("never", "LEC-1", "nothing is wrong", never_made)
        with pytest.raises(UserError, match=r"^the mutant 'never' cannot be made: NameError: .*test_written_mutants"):
            kill_matrix(find("leader_epochs"), [wrong], [blind])


def test_the_judge_does_not_take_it_for_a_target_that_fails() -> None:
    wrong = of_impl("never", "LEC-1", "nothing is wrong", never_made)
    said = r"^the mutant 'never' cannot be made: NameError"
    with pytest.raises(UserError, match=said):
        judge.campaigned(find("leader_epochs"), [wrong], "uniform", 0, 10)
    with pytest.raises(UserError, match=said):
        cited(find("leader_epochs"), wrong)
