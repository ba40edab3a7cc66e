"""A module runs another text for a while, and its own again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kafkaspec.contract.rewrite import ModuleRewrite, modules_of, tree_of
from tests import modules

TEXT = """
from functools import cached_property, lru_cache, wraps

from kafkaspec.spec.common.remembered import remembered

def decorated(f):
    @wraps(f)
    def inner(x):
        return f(x) < 10
    return inner

def plain(x):
    return x < 3

@decorated
def wrapped(x):
    return x + (1 if x < 5 else 100)

def closing(y):
    return lambda x: x < y

class Box:
    def method(self, x):
        return x < 3

    @property
    def shown(self):
        return 3 < 3

    @cached_property
    def kept(self):
        return 3 < 3

@lru_cache(maxsize=9)
def cached(x):
    return x < 3

@remembered
def once_more(x):
    return x < 3

table = {"plain": plain, "method": Box().method}
held = closing(3)
first, second = [(lambda x: x < 1), (lambda x: x < 2)]
"""


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    return modules.module(TEXT, tmp_path)


class _AtMost(ast.NodeTransformer):
    """Every `<` is `<=`."""

    def visit_Lt(self, node: ast.Lt) -> ast.LtE:
        return ast.LtE()


def at_most(module: ModuleType) -> ast.Module:
    tree = _AtMost().visit(tree_of(module))
    assert isinstance(tree, ast.Module)
    return tree


def answers(module: ModuleType) -> Iterator[object]:
    """What every function says at its boundary."""
    yield module.plain(3)
    yield module.wrapped(5)
    yield module.wrapped(9)
    yield module.closing(3)(3)
    yield module.held(3)
    yield module.Box().method(3)
    yield module.Box().shown
    yield module.Box().kept
    yield module.table["plain"](3)
    yield module.table["method"](3)
    yield module.first(1)
    yield module.second(2)


def test_whoever_holds_a_function_runs_the_other_text_within_and_its_own_outside(module: ModuleType) -> None:
    before = list(answers(module))
    assert not any(before)
    changed = ModuleRewrite(module, at_most(module))
    assert len(changed) == 13, "all that say something else"
    for _ in range(2):  # it may be entered again
        with changed:
            assert [*answers(module)] == [True] * 2 + [False] + [True] * 9
        assert list(answers(module)) == before


@pytest.mark.parametrize("name", ["cached", "once_more"])
def test_answers_that_are_kept_are_those_of_the_text_that_runs(module: ModuleType, name: str) -> None:
    asked, three = getattr(module, name), 3
    assert not asked(three)
    with ModuleRewrite(module, at_most(module)) as text:
        assert asked(three)
        text.provide({})
        assert asked(three)
    assert not asked(three)


def test_a_failure_within_leaves_nothing_behind(module: ModuleType) -> None:
    with pytest.raises(ZeroDivisionError), ModuleRewrite(module, at_most(module), {"_more": 0}):
        1 / module._more
    assert not any(answers(module))
    assert not hasattr(module, "_more")


def test_names_are_there_within_and_may_change(module: ModuleType) -> None:
    tree = ast.parse(TEXT.replace("return x < 3", "return _limit(x)", 1))
    changed = ModuleRewrite(module, tree, {"_limit": lambda x: "one"})
    with changed:
        assert module.plain(1) == "one"
        changed.provide({"_limit": lambda x: "two"})
        assert module.plain(1) == "two"
    with changed:
        assert module.plain(1) == "one"
    assert module.plain(1) is True


def test_what_is_no_change_of_texts_is_refused(module: ModuleType) -> None:
    with pytest.raises(ValueError, match="the changed text has other functions"):
        ModuleRewrite(module, ast.parse(TEXT + "\ndef more(x):\n    return x\n"))
    with pytest.raises(ValueError, match="has a name plain of its own"):
        ModuleRewrite(module, at_most(module), {"plain": 1})


def test_the_modules_of_a_spec_are_its_own_and_those_of_its_layer() -> None:
    found = {m.__name__ for m in modules_of("kafkaspec.spec.storage.producer_state")}
    assert {"kafkaspec.spec.storage.producer_state", "kafkaspec.spec.common.producers"} <= found
    assert all(name.startswith("kafkaspec.spec.") for name in found)
