"""Faults in one function: each kind where it can be, and what is left runs."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kafkaspec.mutants.function import called_by, documented, faults_of
from tests import modules

TEXT = """
class Log:
    def __init__(self):
        self.seen = []

    def append(self, offset: int, least: int = 3) -> int:
        "What is appended, above 0."
        if offset < 0:
            raise ValueError(f"offset {offset + 1}")
        self.seen.append(lambda: offset)
        return offset


def known(log: Log, x: int) -> bool:
    return x > 2 and log is not None


def first(xs: list[int], most: int) -> list[int]:
    return sorted(x for x in xs if x != most)[:2]


def least(xs, more):
    return min(xs) + 1


def same(log: Log, x: int) -> bool:
    return known(log, abs(x))


def line():
    return "a\\n"
"""


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    return modules.module(TEXT, tmp_path)


def said(module: ModuleType, function: str) -> list[tuple[str, str]]:
    return [(f.kind, f.said) for f in faults_of(module, function)]


def test_each_kind_where_it_can_be(module: ModuleType) -> None:
    assert said(module, "Log.append") == [
        ("condition negated", "offset < 0"),
        ("comparison", "offset < 0 is offset <= 0"),
        ("comparison", "offset < 0 is offset >= 0"),
        ("statement left out", "self.seen.append(lambda: offset)"),
        ("statement left out", "raise ValueError(f'offset {offset + 1}')"),
        ("argument returned", "return offset"),
        ("number", "0"),
    ]
    assert said(module, "known") == [
        ("comparison", "x > 2 is x >= 2"),
        ("comparison", "x > 2 is x <= 2"),
        ("comparison", "log is not None is log is None"),
        ("part left out", "x > 2"),
        ("part left out", "log is not None"),
        ("constant returned", "return x > 2 and log is not None"),
        ("constant returned", "return x > 2 and log is not None"),
        ("number", "2"),
    ]
    assert {kind for kind, _ in said(module, "first")} == {
        *("comparison", "filter left out", "argument returned", "exchanged", "bound left out", "number")
    }
    assert said(module, "least") == [("exchanged", "min(xs)"), ("sum", "min(xs) + 1"), ("number", "1")]
    assert said(module, "line") == [("text", "'a\\n'")]
    assert len(said(module, "Log")) == len(said(module, "Log.__init__")) + len(said(module, "Log.append"))
    assert said(module, "Log.gone") == said(module, "gone") == []


@pytest.mark.deep
def test_every_fault_runs_and_is_gone_afterwards(module: ModuleType) -> None:
    sound = answers(module)
    seen = []
    for function in ("Log", "known", "first", "least", "line"):
        for fault in faults_of(module, function):
            rewrite = fault.rewrite()
            assert rewrite is not None, fault.what
            with rewrite:
                seen.append(answers(module) != sound)
            assert answers(module) == sound
    assert all(seen)


def answers(module: ModuleType) -> list[Any]:
    log: Any = module.Log()
    appended: list[Any] = []
    for offset in (-1, 0, 1, 5):
        try:
            appended.append(log.append(offset))
        except (AttributeError, ValueError) as e:
            appended.append(type(e).__name__)
    known = [module.known(log, x) for x in (1, 2, 3)] + [module.known(None, 3)]
    firsts = module.first([3, 1, 7, 2], 1), module.first([1, 5], 5)
    return [appended, [f() for f in vars(log).get("seen", ())], known, firsts, module.least([4, 2], 0), module.line()]


def test_what_a_function_says_and_calls(module: ModuleType) -> None:
    assert documented(module, "Log.append") == "What is appended, above 0."
    assert documented(module, "known") == documented(module, "gone") == ""
    assert said(module, "same") == [("constant returned", "return known(log, abs(x))")] * 2
    assert called_by(module, "same") == [(module, "known")]
