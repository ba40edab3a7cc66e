"""Faults in a text: each comparison once, within the calls of the driver alone."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kafkaspec.contract.rewrite import ModuleRewrite
from kafkaspec.mutants.code import Faulty, Narrow, comparisons
from tests import modules

TEXT = """
LIMIT = 3 < 4

class Driver:
    def __init__(self):
        self.reset({})

    def reset(self, arguments):
        self.seen = []

    def apply(self, name, arguments):
        x = arguments["x"]
        if 0 <= x < 3 and x not in self.seen:
            self.seen.append(x)
        return x is None

    def observe(self):
        return [x for x in self.seen if x != 2]
"""


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    return modules.module(TEXT, tmp_path)


def test_every_comparison_in_a_function_is_changed_once(module: ModuleType) -> None:
    changes = {(f.before, f.after) for f in comparisons(module)}
    assert changes == {
        ("0 <= x < 3", "0 < x < 3"),
        ("0 <= x < 3", "0 <= x <= 3"),
        ("x not in self.seen", "x in self.seen"),
        ("x is None", "x is not None"),
        ("x != 2", "x == 2"),
    }
    assert all(f.what.endswith(f"{f.line}: {f.before} is {f.after}") for f in comparisons(module))


def run(driver: Any, *numbers: int) -> Any:
    driver.reset({})
    for x in numbers:
        driver.apply("put", {"x": x})
    return driver.observe()


def test_a_fault_is_there_within_the_calls_of_its_driver_alone(module: ModuleType) -> None:
    sound = module.Driver()
    assert run(sound, 0, 1, 2, 3) == [0, 1]
    for f, expected in (("0 < x < 3", [1]), ("0 <= x <= 3", [0, 1, 3]), ("x in self.seen", []), ("x == 2", [2])):
        (fault,) = (x for x in comparisons(module) if x.after == f)
        assert run(Faulty(module.Driver(), ModuleRewrite(module, fault.tree)), 0, 1, 2, 3) == expected
        assert run(sound, 0, 1, 2, 3) == [0, 1]


def test_a_number_is_kept_in_fewer_bits(module: ModuleType) -> None:
    assert run(Narrow(module.Driver(), "put", "x", 8), 256, 257, 129, 5) == [0, 1]
    assert run(Narrow(module.Driver(), "other", "x", 8), 256, 257) == []
    assert run(Narrow(module.Driver(), "put", "y", 8), 256, 257) == []
