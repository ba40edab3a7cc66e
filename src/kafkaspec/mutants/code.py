"""Faults in a text: every comparison of an implementation shifted by one or negated, every number kept in fewer bits.

Each fault is one change of the real code. Who takes the calls of a process that also judges runs with it for the length
of a call, and is whole again behind it; a target in a process of its own stays faulty.
"""

from __future__ import annotations

import ast
import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import ModuleType
from typing import Any, Final

from kafkaspec.contract.machine import Driver, Json, Refused
from kafkaspec.contract.rewrite import ModuleRewrite, keeping, tree_of
from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.mutants.mutant import Mutant

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


def exchanged(
    n: ast.Compare, *tables: Mapping[type[ast.cmpop], type[ast.cmpop]]
) -> Iterator[tuple[int, ast.cmpop, str]]:
    """Each operator of a comparison that a table exchanges: its number, the other one, and the text then."""
    for i, op in enumerate(n.ops):
        for other in (table[type(op)] for table in tables if type(op) in table):
            after = ast.Compare(n.left, [*n.ops[:i], other(), *n.ops[i + 1 :]], n.comparators)
            yield i, other(), ast.unparse(after)


def file_of(module: ModuleType) -> str:
    """A module's file below the package: impl/storage/segment.py."""
    return module.__name__.removeprefix("kafkaspec.").replace(".", "/") + ".py"


def with_change(module: ModuleType, place: int, change: Callable[[Any], None]) -> ast.Module:
    """A module's tree, of which a node, by its number, is changed."""
    tree = tree_of(module)
    change(next(islice(ast.walk(tree), place, None)))
    return ast.fix_missing_locations(tree)


@dataclass(frozen=True)
class CodeFault:
    """One comparison of a module, changed."""

    module: ModuleType
    function: str
    """its qualified name"""
    line: int
    before: str
    after: str
    place: int
    """of the comparison, among the nodes of the module's tree"""
    part: int
    """of the comparison, where it has several operators"""
    operator: ast.cmpop

    @property
    def tree(self) -> ast.Module:
        """The module's tree with the fault."""

        def exchange(node: ast.Compare) -> None:
            node.ops[self.part] = self.operator

        return with_change(self.module, self.place, exchange)

    @property
    def name(self) -> str:
        """Without the line, so that a reason may be given for it."""
        return f"{self.function}: {self.after}"

    @property
    def what(self) -> str:
        return f"{file_of(self.module)}:{self.line}: {self.before} is {self.after}"


def comparisons(module: ModuleType) -> Iterator[CodeFault]:
    """Every comparison in the functions of a module, each changed alone."""
    whole = tree_of(module)
    inside = dict(_comparisons(whole, "", False))
    for place, node in enumerate(ast.walk(whole)):
        if isinstance(node, ast.Compare) and node in inside:
            for i, other, after in exchanged(node, SHIFTED, NEGATED):
                yield CodeFault(module, inside[node], node.lineno, ast.unparse(node), after, place, i, other)


def _comparisons(node: ast.AST, function: str, within: bool) -> Iterator[tuple[ast.Compare, str]]:
    """Each comparison in the body of a function, with the function's qualified name."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            body = within or (isinstance(node, ast.FunctionDef) and field == "body")
            if isinstance(child, ast.Compare) and body:
                yield child, function
            name = getattr(child, "name", "") if isinstance(child, ast.FunctionDef | ast.ClassDef) else ""
            yield from _comparisons(child, ".".join(filter(None, (function, name))), body)


def of_code(subsystem: Subsystem) -> list[Mutant]:
    """The faults of the texts of a subsystem's implementation and its driver, and of the widths of the numbers that it
    is given, as mutants for a process of their own; none of a subsystem without an implementation."""
    pair = next((p for p in subsystem.pairs() if p.layer == "impl"), None)
    if pair is None:
        return []
    make = pair.driver
    modules = [m for m in (subsystem.layer("impl"), subsystem.layer("impl", "driver")) if m is not None]

    def broken(fault: CodeFault) -> Driver:
        gc.unfreeze()  # a child has frozen what it was forked with, and the functions are among that
        ModuleRewrite(fault.module, fault.tree).__enter__()
        for kept in [f for m in modules for f in keeping(m)]:  # the driver may keep what the implementation answered
            kept.cache_clear()
        return make()

    def narrowed(operation: str, parameter: str, bits: int) -> Driver:
        return Narrow(make(), operation, parameter, bits)

    out: list[Mutant] = []
    seen: Counter[str] = Counter()
    for fault in [f for m in modules for f in comparisons(m)]:
        seen[fault.name] += 1
        name = fault.name if seen[fault.name] == 1 else f"{fault.name} ({seen[fault.name]})"
        out.append(Mutant(name, (), fault.what, "impl", partial(broken, fault), generated=True))
    for op in subsystem.spec.machine.operations.values():
        for shown, parameter in op.parameters.items():
            limits = op.ranges.get(parameter)
            bits = next((b for b in (32, 16, 8) if limits and not -(1 << b - 1) <= limits.most < 1 << b - 1), 0)
            if bits:
                name = f"{op.name}: {shown} of {bits} bits"
                out.append(Mutant(name, (), name, "impl", partial(narrowed, op.name, parameter, bits), generated=True))
    return out


@dataclass
class Faulty:
    """A driver whose code has a fault while it is called."""

    driver: Driver
    fault: ModuleRewrite

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
    """The number as that number of bits holds it, the first of them its sign.

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
