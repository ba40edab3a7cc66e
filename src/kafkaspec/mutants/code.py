"""Faults in a text: every comparison of an implementation, or of the rules of an audit, shifted by one or negated.

Each fault is one change of one condition of the real code, which runs with it for the length of a call and is whole
again behind it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from kafkaspec.contract.machine import Driver, Json, Refused
from kafkaspec.contract.rewrite import Rewritten, tree_of

SHIFTED: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
"""of two numbers, the other side of their being equal"""
NEGATED: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True)
class CodeFault:
    """One comparison of a module, changed."""

    module: ModuleType
    line: int
    before: str
    after: str
    tree: ast.Module

    @property
    def what(self) -> str:
        name = self.module.__name__.removeprefix("kafkaspec.").replace(".", "/")
        return f"{name}.py:{self.line}: {self.before} is {self.after}"


def comparisons(module: ModuleType, *, negated: bool = True) -> Iterator[CodeFault]:
    """Every comparison in the functions of a module, each changed alone."""
    whole = tree_of(module)
    places = [n for n, node in enumerate(ast.walk(whole)) if isinstance(node, ast.Compare)]
    inside = {id(x) for f in ast.walk(whole) if isinstance(f, ast.FunctionDef) for s in f.body for x in ast.walk(s)}
    for place, node in enumerate(ast.walk(whole)):
        if place not in places or id(node) not in inside or not isinstance(node, ast.Compare):
            continue
        for i, op in enumerate(node.ops):
            other = SHIFTED.get(type(op)) or (NEGATED.get(type(op)) if negated else None)
            if other is None:
                continue
            tree = copy.deepcopy(whole)
            changed = next(x for n, x in enumerate(ast.walk(tree)) if n == place)
            assert isinstance(changed, ast.Compare)
            changed.ops[i] = other()
            yield CodeFault(module, node.lineno, ast.unparse(node), ast.unparse(changed), tree)


@dataclass
class Faulty:
    """A driver whose code has a fault while it is called."""

    driver: Driver
    fault: Rewritten

    def reset(self, arguments: Mapping[str, Any]) -> None:
        with self.fault:
            self.driver.reset(arguments)

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        with self.fault:
            return self.driver.apply(name, arguments)

    def observe(self) -> Json:
        with self.fault:
            return self.driver.observe()


def signed(number: int, bits: int) -> int:
    """The number as so many bits hold it, the first of them its sign.

    >>> signed(2**31, 32), signed(-1, 8), signed(300, 8)
    (-2147483648, -1, 44)
    """
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half


@dataclass
class Narrow:
    """A driver that keeps a number in fewer bits than it has."""

    driver: Driver
    operation: str
    parameter: str
    bits: int

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.driver.reset(arguments)

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        value = arguments.get(self.parameter)
        if name == self.operation and type(value) is int:
            arguments = {**arguments, self.parameter: signed(value, self.bits)}
        return self.driver.apply(name, arguments)

    def observe(self) -> Json:
        return self.driver.observe()
