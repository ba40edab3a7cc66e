"""Faults in one function: each a small change of its text that leaves a function which runs.

A condition is negated or a part of it left out, a comparison shifted, a statement or an argument left out, a number off
by one, an order reversed, an argument returned, a precondition left out. They are for a rule whose tests are asked: is
any of them red?
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import FunctionType, ModuleType
from typing import Any, Final

from kafkaspec.contract.machine import Machine
from kafkaspec.contract.rewrite import ModuleRewrite, tree_of
from kafkaspec.mutants.code import NEGATED, SHIFTED, exchanged, file_of, with_change

Change = Callable[[Any], None]
"""Of a node, in place. No function within it is taken away: what is left out stands where it is never run."""

OTHER: Final = {"min": "max", "max": "min", "any": "all", "all": "any", "reversed": "iter"}
"""What a function of Python is exchanged for."""
ORDER: Final = (
    "condition negated",
    "comparison",
    "statement left out",
    "argument left out",
    "part left out",
    "exchanged",
    "constant returned",
    "argument returned",
    "bound left out",
    "filter left out",
    "sum",
    "number",
    "text",
)
"""The kinds of faults, those first of which a test of the rule is most likely red."""


@dataclass(frozen=True)
class FunctionFault:
    """One change of one function of a module."""

    module: ModuleType
    function: str
    """its qualified name"""
    kind: str
    line: int
    said: str
    """what is changed, and how where its kind does not say so"""
    place: int
    """of the changed node, among the nodes of the module's tree"""
    change: Change

    @property
    def tree(self) -> ast.Module:
        """The module's tree with the fault."""
        return with_change(self.module, self.place, self.change)

    @property
    def what(self) -> str:
        return f"{file_of(self.module)}:{self.line}, {self.function}, {self.kind}: {self.said}"

    def rewrite(self, of: Any = None) -> ModuleRewrite | None:
        """The context of the fault; None if no function that there is runs another code."""
        try:
            changed = ModuleRewrite(self.module, self.tree, of=of)
        except (ValueError, SyntaxError):
            return None
        return changed if len(changed) else None


@dataclass(frozen=True)
class PreconditionFault:
    """One precondition of an operation, which holds always: what is outside the contract is taken."""

    operation: str
    condition: FunctionType
    text: str

    @property
    def what(self) -> str:
        place = self.condition.__code__
        return (
            f"{self.condition.__module__}:{place.co_firstlineno}, {self.operation}, precondition left out: {self.text}"
        )

    @contextlib.contextmanager
    def rewrite(self, of: object = None) -> Iterator[None]:
        before = self.condition.__code__
        arguments = ", ".join(before.co_varnames[: before.co_argcount])
        free = "".join(f"{name}, " for name in before.co_freevars)
        made = eval(f"lambda {free}: lambda {arguments}: ({free}True)[-1]" if free else f"lambda {arguments}: True")
        self.condition.__code__ = made(*before.co_freevars).__code__ if free else made.__code__
        try:
            yield
        finally:
            self.condition.__code__ = before


def preconditions(machine: Machine[Any], clause: str) -> list[PreconditionFault]:
    """The faults of a clause's preconditions, each of which may be several operations'."""
    found = {
        p.condition: PreconditionFault(op.name, p.condition, p.text)
        for op in machine.operations.values()
        for p in op.preconditions
        if p.clause == clause and isinstance(p.condition, FunctionType)
    }
    return list(found.values())


def faults_of(module: ModuleType, function: str) -> list[FunctionFault]:
    """Every fault of a function, or of the methods of a class, by its qualified name; those first of which a test of it
    is most likely red, and those of its texts only where there is no other. None if the module's text has no such
    function."""
    tree = tree_of(module)
    found = _find(tree, function.split("."))
    if found is None:
        return []
    places = {node: n for n, node in enumerate(ast.walk(tree))}
    out = []
    for node in _within(found):
        for kind, at, change in _changes(node):
            line = getattr(at if isinstance(at, ast.AST) else node, "lineno", found.lineno)
            said = _line(at) if isinstance(at, ast.AST) else at
            out.append(FunctionFault(module, function, kind, line, said, places[node], change))
    rule = [f for f in out if f.kind != "text"] or out
    return sorted(rule, key=lambda f: ORDER.index(f.kind))


def documented(module: ModuleType, function: str) -> str:
    """The docstring of a function or a class; "" without one."""
    found = _find(tree_of(module), function.split("."))
    return (ast.get_docstring(found) or "") if found is not None else ""


def called_by(module: ModuleType, function: str) -> list[tuple[ModuleType, str]]:
    """The functions of its package that a function calls by their names, each with its module: where its own text is
    nothing but a call, they are what it does."""
    found = _find(tree_of(module), function.split("."))
    out: dict[tuple[str, str], None] = {}
    package = module.__name__.partition(".")[0]
    for n in _within(found) if found is not None else ():
        for name in [n.func] if isinstance(n, ast.Call) else []:
            known: Any = None
            if isinstance(name, ast.Name):
                known = vars(module).get(name.id)
            elif isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name):
                known = getattr(vars(module).get(name.value.id), name.attr, None)
            known = inspect.unwrap(known) if callable(known) else None
            if inspect.isfunction(known) and known.__module__.partition(".")[0] == package:
                out[known.__module__, known.__qualname__] = None
    return [(sys.modules[m], name) for m, name in out]


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _find(tree: ast.Module, names: list[str]) -> Any:
    body: list[ast.stmt] = tree.body
    found: Any = None
    for name in names:
        found = next((n for n in body if isinstance(n, _Function | ast.ClassDef) and n.name == name), None)
        if found is None:
            return None
        body = found.body
    return found


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or a class that run when it is called: no decorator, default or annotation."""
    if isinstance(node, ast.ClassDef):
        for n in node.body:
            if isinstance(n, _Function):
                yield from _within(n)
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            documents = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and not documents and not isinstance(child, ast.Raise):
                yield from _within(child)


def _line(n: ast.AST) -> str:
    return ast.unparse(n).splitlines()[0]


def _changes(n: ast.AST) -> Iterator[tuple[str, ast.AST | str, Change]]:
    """The kinds of faults of a node, what is changed or how, and the changes."""
    if isinstance(n, ast.Compare):
        for i, other, after in exchanged(n, SHIFTED, NEGATED, OPPOSITE):
            yield "comparison", f"{ast.unparse(n)} is {after}", partial(_set_item, "ops", i, other)
    elif isinstance(n, ast.If | ast.IfExp):
        yield "condition negated", n.test, _negate
    elif isinstance(n, ast.BoolOp):
        for i in range(len(n.values)):
            yield "part left out", n.values[i], partial(_exchange, "values", i, isinstance(n.op, ast.And))
    elif isinstance(n, ast.comprehension):
        for i in range(len(n.ifs)):
            yield "filter left out", n.ifs[i], partial(_exchange, "ifs", i, True)
    elif (
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add | ast.Sub) and not (_is_text(n.left) or _is_text(n.right))
    ):
        yield "sum", n, partial(_set, "op", ast.Sub() if isinstance(n.op, ast.Add) else ast.Add())
    elif isinstance(n, ast.Constant):
        if isinstance(n.value, bool):
            yield "exchanged", n, partial(_set, "value", not n.value)
        elif isinstance(n.value, int):
            yield "number", n, partial(_set, "value", n.value + 1)
        elif isinstance(n.value, str | bytes) and n.value:
            yield "text", n, partial(_set, "value", n.value[:-1])
    elif isinstance(n, ast.Slice):
        for bound in ("lower", "upper"):
            if getattr(n, bound) is not None:
                yield "bound left out", n, partial(_set, bound, None)
    elif isinstance(n, ast.Call):
        yield from _of_call(n)
    elif isinstance(n, _Function):
        yield from _of_returns(n)
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(n, field, None)
        for i, s in enumerate(statements if isinstance(statements, list) else ()):
            if _may_go(s):
                yield "statement left out", s, partial(_leave_out, field, i)


OPPOSITE: Final = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}
"""of two numbers, the negation"""


def _is_text(n: ast.expr) -> bool:
    return isinstance(n, ast.JoinedStr) or (isinstance(n, ast.Constant) and isinstance(n.value, str | bytes))


def _of_call(n: ast.Call) -> Iterator[tuple[str, ast.AST, Change]]:
    name = n.func.id if isinstance(n.func, ast.Name) else ""
    if name in OTHER:
        yield "exchanged", n, partial(_rename, OTHER[name])
    if name == "sorted" and all(k.arg != "reverse" for k in n.keywords):
        yield "exchanged", n, _reverse
    for i, k in enumerate(n.keywords):
        if name == "replace" or (name == "" and isinstance(n.func, ast.Attribute) and n.func.attr == "replace"):
            yield "argument left out", k, partial(_delete_item, "keywords", i)


def _of_returns(n: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.AST, Change]]:
    """What is returned is a constant, or an argument of the same type: in place of each return alone."""
    answers = [r for r in ast.walk(n) if isinstance(r, ast.Return) and r.value is not None]
    kind = ast.unparse(n.returns) if n.returns is not None else ""
    for i, r in enumerate(answers):
        if kind == "bool":
            for constant in (True, False):
                yield "constant returned", r, partial(_answer, i, ast.Constant(constant))
        for a in n.args.args:
            returned = isinstance(r.value, ast.Name) and r.value.id == a.arg
            if not returned and a.annotation is not None and ast.unparse(a.annotation) == kind:
                yield "argument returned", r, partial(_answer, i, ast.Name(a.arg, ast.Load()))


def _may_go(s: ast.stmt) -> bool:
    """Without this statement every name that the function uses is there still."""
    if isinstance(s, ast.Expr):
        return isinstance(s.value, ast.Call | ast.Yield | ast.YieldFrom)
    if isinstance(s, ast.Assign):
        return all(isinstance(t, ast.Attribute | ast.Subscript) for t in s.targets)
    return isinstance(s, ast.Raise | ast.AugAssign | ast.Delete | ast.Assert)


def _set(field: str, value: object, node: ast.AST) -> None:
    setattr(node, field, value)


def _set_item(field: str, i: int, value: object, node: ast.AST) -> None:
    getattr(node, field)[i] = value


def _delete_item(field: str, i: int, node: ast.AST) -> None:
    del getattr(node, field)[i]


def _negate(node: ast.If | ast.IfExp) -> None:
    node.test = ast.UnaryOp(ast.Not(), node.test)


def _never() -> ast.expr:
    """A condition that never holds, and that no compiler looks through."""
    return ast.Compare(ast.Constant(0), [ast.Gt()], [ast.Constant(1)])


def _leave_out(field: str, i: int, node: ast.AST) -> None:
    statements = getattr(node, field)
    statements[i] = ast.copy_location(ast.If(_never(), [statements[i]], []), statements[i])


def _exchange(field: str, i: int, value: bool, node: ast.AST) -> None:
    parts = getattr(node, field)
    parts[i] = ast.IfExp(_never(), parts[i], ast.Constant(value))


def _rename(name: str, node: ast.Call) -> None:
    node.func = ast.Name(name, ast.Load())


def _reverse(node: ast.Call) -> None:
    node.keywords.append(ast.keyword("reverse", ast.Constant(True)))


def _answer(i: int, value: ast.expr, node: ast.AST) -> None:
    answers: list[Any] = [r for r in ast.walk(node) if isinstance(r, ast.Return) and r.value is not None]
    answers[i].value = ast.IfExp(_never(), answers[i].value, value)
