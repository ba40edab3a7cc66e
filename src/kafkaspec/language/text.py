"""Reading a model's text symbolically: its syntax tree is rewritten so that `and or not in is if all any max len` can
be traced, then run once on symbols. Line numbers are kept, so that every error names the model's own file and line."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

from kafkaspec.language import expr as x
from kafkaspec.language import form
from kafkaspec.language.defined import Need
from kafkaspec.language.expr import Expr, ModelError
from kafkaspec.language.types import BOOL, Sort, TypeNotInLanguage, resolve, tracing

_FORBIDDEN: dict[type[ast.AST], str] = {
    ast.For: "use a comprehension",
    ast.While: "use a quantifier",
    ast.AugAssign: "write s.next.x = s.x + ...",
    ast.Match: "use if and elif",
    ast.Raise: "write require(...)",
    ast.NamedExpr: "give the name in a line of its own",
    ast.ListComp: "a sequence is built by + [x]",
}
"""What to write instead of what is not read."""
_READ = (
    ast.FunctionDef, ast.Return, ast.Assign, ast.AnnAssign, ast.If, ast.Expr, ast.Pass, ast.Assert,
    ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call, ast.Attribute, ast.Subscript, ast.Slice,
    ast.Name, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
"""The statements and expressions that are read; any other has no meaning."""
_QUANTIFIERS = {"all": "forall", "any": "exists"}


def fail(file: str, line: int, message: str) -> NoReturn:
    raise ModelError(f"{short(file)}:{line}: {message}")


def short(file: str) -> str:
    """The file's name as people know it: relative to where they are, if it is below."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


@cache
def module_of(file: str) -> ast.Module:
    """The syntax tree of a module's file. On a worker of Spark it may stand in a zip file: then its loader has it."""
    for module in map(vars, filter(inspect.ismodule, [*sys.modules.values()])):
        if module.get("__file__") == file:
            linecache.lazycache(file, module)
    return ast.parse("".join(linecache.getlines(file)), file)


@cache
def definitions_of(file: str) -> tuple[ast.ClassDef | ast.FunctionDef, ...]:
    """The classes and functions of a module's file, at its top and within others."""
    return tuple(n for n in ast.walk(module_of(file)) if isinstance(n, ast.ClassDef | ast.FunctionDef))


def definition(f: FunctionType) -> ast.FunctionDef:
    """The syntax tree of a function, with its file's line numbers."""
    code = f.__code__
    for n in definitions_of(code.co_filename):
        if isinstance(n, ast.FunctionDef) and n.name == code.co_name:
            first = min([n.lineno, *[d.lineno for d in n.decorator_list]])
            if first == code.co_firstlineno:
                return n
    raise ModelError(
        f"{short(code.co_filename)}:{code.co_firstlineno}: the source text of {f.__name__} cannot be found"
    )


class _Rewrite(ast.NodeTransformer):
    """One function's tree, for tracing. Keeps positions: every new node takes the place of the one it replaces."""

    def __init__(self, file: str) -> None:
        self.file = file

    def fail(self, n: ast.AST, message: str) -> NoReturn:
        fail(self.file, getattr(n, "lineno", 0), message)

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.stmt | ast.expr) and not isinstance(node, _READ):
            hint = _FORBIDDEN.get(type(node), "")
            self.fail(node, f"'{type(node).__name__.lower()}' has no meaning in a model's text{hint and '; ' + hint}")
        new = super().visit(node)
        if isinstance(new, ast.AST) and new is not node:
            ast.copy_location(new, node)
        return new

    def call(self, f: str, /, *args: ast.expr, **named: ast.expr) -> ast.Call:
        return ast.Call(ast.Name("__ks_" + f, ast.Load()), list(args), [ast.keyword(k, v) for k, v in named.items()])

    def function(self, name: str, body: ast.expr, at: ast.AST) -> ast.Lambda:
        arguments = ast.arguments([], [ast.copy_location(ast.arg(name), at)], None, [], [], None, [])
        return ast.copy_location(ast.Lambda(arguments, body), at)

    def in_order(self, *parts: ast.expr | None) -> list[bool]:
        """Which of these parts, which Python evaluates from left to right, stand before a call? A helper may guard."""
        early = [False] * len(parts)
        for i in range(len(parts) - 1, 0, -1):
            p = parts[i]
            early[i - 1] = early[i] or (p is not None and any(isinstance(m, ast.Call) for m in ast.walk(p)))
        return early

    def before(self, early: bool, e: ast.expr) -> ast.expr:
        """A part that is evaluated `early`, before a call beside it."""
        return ast.copy_location(self.call("early", e), e) if early else e

    def later(self, e: ast.expr) -> ast.Lambda:
        """An expression that is evaluated under a condition only."""
        return ast.copy_location(ast.Lambda(ast.arguments([], [], None, [], [], None, []), e), e)

    def visit_FunctionDef(self, n: ast.FunctionDef) -> ast.stmt:
        if self.inside:
            self.fail(
                n, "'functiondef' has no meaning in a model's text; a helper function stands outside, with @define"
            )
        self.inside, self.parameters = True, frozenset(a.arg for a in n.args.args)
        every = [*ast.walk(n)]
        for m in every:
            match m:
                case ast.Name(id=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)) | ast.Attribute(attr=name):
                    if form.private(name):
                        self.fail(m, f"{name}: {form.PRIVATE}")
        self.state = n.args.args[0].arg if n.args.args else ""
        self.locals = _stored([n])
        self.branched = _stored([m for m in every if isinstance(m, ast.If)])
        if n.body and isinstance(n.body[0], ast.Expr) and isinstance(n.body[0].value, ast.Constant):
            n.body = n.body[1:] or [ast.copy_location(ast.Pass(), n)]
        self.generic_visit(n)
        unset = [m for m in self.branched if m not in self.parameters]
        values = [self.call("Unset", ast.Constant(m)) for m in unset]
        first = [ast.Assign([ast.Name(m, ast.Store())], v) for m, v in zip(unset, values, strict=True)]
        n.body = [*[ast.copy_location(m, n) for m in first], *n.body]
        return n

    inside = False
    parameters: frozenset[str] = frozenset()
    state = ""
    """The first parameter, which is the state in a model's methods."""
    locals: tuple[str, ...] = ()
    branched: tuple[str, ...] = ()
    """The local names that are assigned below an `if`."""

    def visit_Name(self, n: ast.Name) -> ast.expr:
        return self.call("local", n) if isinstance(n.ctx, ast.Load) and n.id in self.branched else n

    def visit_Assert(self, n: ast.Assert) -> ast.stmt:
        self.generic_visit(n)
        return ast.Expr(self.call("asserted", n.test))

    def visit_Expr(self, n: ast.Expr) -> ast.stmt:
        self.generic_visit(n)
        return ast.Expr(ast.copy_location(self.call("now", n.value), n))

    def visit_Assign(self, n: ast.Assign) -> ast.stmt:
        for t in [m for target in n.targets for m in ast.walk(target)]:
            if not isinstance(t, ast.Attribute | ast.Subscript) or not isinstance(t.ctx, ast.Store) or _of_next(t):
                continue
            if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == self.state:
                self.fail(n, f"assign to s.next.{t.attr}: s.{t.attr} is the state before")
            read = t.value
            if isinstance(read, ast.Attribute) and isinstance(read.value, ast.Name) and read.value.id == self.state:
                self.fail(n, f"assign to s.next: {read.attr} is read of the state before")
            self.fail(n, "an action assigns to s.next and its parts, and to local names")
        early = self.in_order(n.value, *n.targets)[0]
        self.generic_visit(n)
        n.value = self.before(early, n.value)
        if all(isinstance(t, ast.Name | ast.Tuple) for t in n.targets):
            n.value = ast.copy_location(self.call("now", n.value), n)
        return n

    def visit_AnnAssign(self, n: ast.AnnAssign) -> ast.stmt:
        if n.value is None or not isinstance(n.target, ast.Name):
            self.fail(n, "'annassign' has no meaning here in a model's text")
        value = self.visit(n.value)
        return ast.Assign([n.target], ast.copy_location(self.call("now", value), n))

    def visit_BoolOp(self, n: ast.BoolOp) -> ast.expr:
        self.generic_visit(n)
        f = "and_" if isinstance(n.op, ast.And) else "or_"
        return self.call(f, n.values[0], *map(self.later, n.values[1:]))

    def visit_UnaryOp(self, n: ast.UnaryOp) -> ast.expr:
        self.generic_visit(n)
        if isinstance(n.op, ast.Invert | ast.UAdd):
            self.fail(n, f"'{type(n.op).__name__.lower()}' has no meaning in a model's text")
        return self.call("not_", n.operand) if isinstance(n.op, ast.Not) else n

    def visit_BinOp(self, n: ast.BinOp) -> ast.expr:
        early = self.in_order(n.left, n.right)[0]
        self.generic_visit(n)
        n.left = self.before(early, n.left)
        if not isinstance(n.op, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod | ast.BitOr | ast.BitAnd):
            self.fail(n, f"'{type(n.op).__name__.lower()}' has no meaning in a model's text")
        return self.call("binary", ast.Constant(type(n.op).__name__), n.left, n.right)

    def visit_IfExp(self, n: ast.IfExp) -> ast.expr:
        self.generic_visit(n)
        return self.call("ite", n.test, self.later(n.body), self.later(n.orelse))

    def visit_Set(self, n: ast.Set) -> ast.expr:
        self._several(n)
        return self.call("SetLiteral", ast.List(n.elts, ast.Load()))

    def visit_List(self, n: ast.List) -> ast.expr:
        return self._several(n)

    def visit_Tuple(self, n: ast.Tuple) -> ast.expr:
        return self._several(n)

    def _several(self, n: ast.Set | ast.List | ast.Tuple) -> ast.expr:
        early = self.in_order(*n.elts)
        self.generic_visit(n)
        if isinstance(n, ast.Set) or isinstance(n.ctx, ast.Load):
            n.elts = [self.before(b, x) for b, x in zip(early, n.elts, strict=True)]
        return n

    def visit_Dict(self, n: ast.Dict) -> ast.expr:
        self.fail(n, "a map is made by a comprehension over all its keys: {k: ... for k in ...}")

    def visit_Subscript(self, n: ast.Subscript) -> ast.expr:
        early = self.in_order(n.value, n.slice)[0]
        self.generic_visit(n)
        n.value = self.before(early, n.value)
        if not isinstance(n.ctx, ast.Load):
            return n
        key = n.slice
        if isinstance(key, ast.Slice):
            parts = [x or ast.Name("__ks_absent", ast.Load()) for x in (key.lower, key.upper, key.step)]
            key = ast.Call(ast.Name("__ks_slice", ast.Load()), parts, [])
        return self.call("index", n.value, ast.copy_location(key, n))

    def visit_Slice(self, n: ast.Slice) -> ast.expr:
        early = self.in_order(n.lower, n.upper)[0]
        self.generic_visit(n)
        n.lower = n.lower and self.before(early, n.lower)
        return n

    def visit_Attribute(self, n: ast.Attribute) -> ast.expr:
        self.generic_visit(n)
        return self.call("attribute", n.value, ast.Constant(n.attr)) if isinstance(n.ctx, ast.Load) else n

    def visit_Compare(self, n: ast.Compare) -> ast.expr:
        early = self.in_order(n.left, *n.comparators)[:-1]
        self.generic_visit(n)
        n.left, *n.comparators[:-1] = [
            self.before(b, e) for b, e in zip(early, (n.left, *n.comparators[:-1]), strict=True)
        ]
        out: list[ast.expr] = []
        left = n.left
        for op, right in zip(n.ops, n.comparators, strict=True):
            match op:
                case ast.In():
                    c = self.call("contains", left, right)
                case ast.NotIn():
                    c = self.call("not_", self.call("contains", left, right))
                case ast.Is():
                    c = self.call("identical", left, right)
                case ast.IsNot():
                    c = self.call("not_", self.call("identical", left, right))
                case ast.Eq():
                    c = self.call("eq", left, right)
                case ast.NotEq():
                    c = self.call("not_", self.call("eq", left, right))
                case ast.Lt():
                    c = self.call("less", left, right)
                case ast.Gt():
                    c = self.call("less", right, left)
                case ast.LtE():
                    c = self.call("less", left, right, equal=ast.Constant(True))
                case _:
                    c = self.call("less", right, left, equal=ast.Constant(True))
            out.append(ast.copy_location(c, n))
            left = right
        return out[0] if len(out) == 1 else self.call("and_", out[0], *map(self.later, out[1:]))

    def one(self, g: ast.comprehension) -> str:
        if not isinstance(g.target, ast.Name):
            self.fail(g.target, "a comprehension's variable is a plain name")
        return g.target.id

    def condition(self, g: ast.comprehension) -> ast.expr:
        return self.call("and_", g.ifs[0], *map(self.later, g.ifs[1:])) if g.ifs else ast.Constant(True)

    def visit_Call(self, n: ast.Call) -> ast.expr:
        if any(k.arg is None for k in n.keywords):
            self.fail(n, "'**' has no meaning in a model's text")
        f = n.func.id if isinstance(n.func, ast.Name) else ""
        early = self.in_order(*n.args, *[k.value for k in n.keywords])
        gen = n.args[0] if n.args and isinstance(n.args[0], ast.GeneratorExp) else None
        if gen is not None and f in ("all", "any", "max", "min", "sum"):
            self.generic_visit(gen)
            n.keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in n.keywords]
            if len(n.args) > 1:
                self.fail(n, f"{f}() takes one comprehension")
            gen.generators[0].iter = self.before(early[0], gen.generators[0].iter)
            return self.over(n, f, gen)
        if isinstance(n.func, ast.Attribute):  # a helper of the model, or of a module
            n.func = self.call("method", self.visit(n.func.value), ast.Constant(n.func.attr))
            ast.copy_location(n.func, n)
            n.args = [self.visit(a) for a in n.args]
            n.keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in n.keywords]
        else:
            self.generic_visit(n)
        if n.keywords and f in ("require", "set", "frozenset", "len", "range"):
            self.fail(n, f"{f}() takes no value by name")
        if f == "require":
            return self.call("require", n.func, *map(self.later, n.args))
        n.args = [self.before(b, x) for b, x in zip(early, n.args, strict=False)]
        for k, b in zip(n.keywords, early[len(n.args) :], strict=True):
            k.value = self.before(b, k.value)
        if f in ("max", "min"):
            if n.keywords:
                self.fail(n, f"{f}() takes `default=` with a comprehension only")
            return self.call("extreme", ast.Constant(f == "max"), *n.args)
        if f in ("set", "frozenset"):
            return self.call("set", *n.args)
        if f in ("len", "range", "replace"):
            n.func = ast.copy_location(ast.Name("__ks_" + f, ast.Load()), n.func)
            return n
        if f in ("all", "any", "sum"):
            self.fail(n, f"{f}() is over a comprehension: {f}(... for x in ...)")
        return self.call("called", n.func, *n.args, **{str(k.arg): k.value for k in n.keywords})

    def over(self, n: ast.Call, f: str, gen: ast.GeneratorExp) -> ast.expr:
        """all, any, max, min or sum of a comprehension."""
        if f in _QUANTIFIERS:
            if n.keywords:
                self.fail(n, f"{f}() takes a comprehension alone")
            body: ast.expr = gen.elt
            for g in reversed(gen.generators):
                if g.ifs:
                    body = (
                        self.call("or_", self.call("not_", self.condition(g)), self.later(body))
                        if f == "all"
                        else self.call("and_", self.condition(g), self.later(body))
                    )
                name = self.one(g)
                kind = ast.Constant(_QUANTIFIERS[f])
                body = self.call("quantified", kind, g.iter, self.function(name, body, n), ast.Constant(name))
                ast.copy_location(body, n)
            return body
        if len(gen.generators) != 1:
            self.fail(n, f"{f}() takes a comprehension with one 'for'")
        g = gen.generators[0]
        name = self.one(g)
        parts = (g.iter, self.function(name, self.condition(g), n), self.function(name, gen.elt, n), ast.Constant(name))
        if f == "sum":
            if n.keywords:
                self.fail(n, "sum() takes a comprehension alone")
            return self.call("summed", *parts)
        if any(k.arg != "default" for k in n.keywords):
            self.fail(n, f"{f}() takes a comprehension and `default=`")
        kind = ast.Constant("greatest" if f == "max" else "least")
        return self.call("chosen", kind, *parts, *[k.value for k in n.keywords])

    def visit_GeneratorExp(self, n: ast.GeneratorExp) -> ast.expr:
        self.fail(n, "a comprehension stands in all(), any(), sum(), max(), min() or between { and }")

    def visit_SetComp(self, n: ast.SetComp) -> ast.expr:
        self.generic_visit(n)
        g = n.generators[0]
        name = self.one(g)
        if len(n.generators) != 1:
            self.fail(n, "a set comprehension has one 'for'")
        return self.call(
            "collected",
            g.iter,
            self.function(name, self.condition(g), n),
            self.function(name, n.elt, n),
            ast.Constant(name),
        )

    def visit_DictComp(self, n: ast.DictComp) -> ast.expr:
        g = n.generators[0]
        name = self.one(g)
        if len(n.generators) != 1 or g.ifs or not (isinstance(n.key, ast.Name) and n.key.id == name):
            self.fail(n, f"a map comprehension is {{{name}: ... for {name} in ...}}, over every key")
        self.generic_visit(n)
        value = self.function(name, n.value, n)
        for m in self.locals:  # the values are read later, with the local names' values of here
            if m in _free(value):
                value.args.args.append(ast.copy_location(ast.arg(m), n))
                value.args.defaults.append(ast.copy_location(ast.Name(m, ast.Load()), n))
        return self.call("MapLiteral", g.iter, value, ast.Constant(name))

    def visit_If(self, n: ast.If) -> Any:
        for m in ast.walk(n):
            if isinstance(m, ast.Return):
                self.fail(m, "'return' inside 'if': use a conditional expression")
        names = _stored([n])
        self.generic_visit(n)
        self.tests += 1
        test, before, then = (f"__ks_{what}_{self.tests}" for what in ("test", "before", "then"))
        values = ast.Tuple([ast.Name(m, ast.Load()) for m in names], ast.Load())
        places = ast.Tuple([ast.Name(m, ast.Store()) for m in names], ast.Store())
        out: list[ast.stmt] = [
            ast.Assign([ast.Name(test, ast.Store())], ast.copy_location(self.call("now", n.test), n.test)),
            ast.Assign([ast.Name(before, ast.Store())], values),
            self.when(ast.Name(test, ast.Load()), n.body),
            ast.Assign([ast.Name(then, ast.Store())], values),
            ast.Assign([places], ast.Name(before, ast.Load())),
        ]
        if n.orelse:
            out.append(self.when(self.call("not_", ast.Name(test, ast.Load())), n.orelse))
        ends = [ast.Name(test, ast.Load()), ast.Name(then, ast.Load()), values]
        out.append(
            ast.Assign([places], self.call("merged", ast.Tuple([ast.Constant(m) for m in names], ast.Load()), *ends))
        )
        return [ast.copy_location(w, n) for w in out]

    tests = 0

    def when(self, test: ast.expr, body: list[ast.stmt]) -> ast.With:
        return ast.With([ast.withitem(self.call("when", test))], body)


def _stored(trees: Iterable[ast.AST]) -> tuple[str, ...]:
    """The local names that are assigned there, in order; not those of comprehensions."""
    every = [m for n in trees for m in ast.walk(n)]
    inner = {id(k) for c in every if isinstance(c, ast.comprehension) for k in ast.walk(c.target)}
    names = [m.id for m in every if isinstance(m, ast.Name) and isinstance(m.ctx, ast.Store) and id(m) not in inner]
    return tuple(dict.fromkeys(names))


def _free(n: ast.AST) -> set[str]:
    """The names that a rewritten text reads and does not bind."""
    if isinstance(n, ast.Name):
        return {n.id}
    if isinstance(n, ast.Lambda):
        given = [d for d in (*n.args.defaults, *n.args.kw_defaults) if d is not None]
        return (_free(n.body) - {a.arg for a in n.args.args}).union(*map(_free, given))
    return set[str]().union(*map(_free, ast.iter_child_nodes(n)))


def _of_next(n: ast.AST) -> bool:
    """Is it a place in `s.next`, such as s.next.m[k]?"""
    while isinstance(n, ast.Attribute | ast.Subscript):
        if isinstance(n, ast.Attribute) and n.attr == "next" and isinstance(n.value, ast.Name):
            return True
        n = n.value
    return False


class When:
    """The condition under which what stands below is done: of an `if`, or of a part of an expression."""

    stack: list[Expr] = []

    def __init__(self, condition: Any) -> None:
        self.condition = x.truth(condition)

    def __enter__(self) -> None:
        When.stack.append(self.condition)

    def __exit__(self, *_: object) -> None:
        When.stack.pop()


class NoValue:
    """What a local name has where a branch of an `if` gives it no value, or the branches have none of one type."""

    def __init__(
        self, name: str, why: str = "may have no value here: assign it before the 'if', or in each branch"
    ) -> None:
        self.why = f"'{name}' {why}"


def _local(value: Any) -> Any:
    if isinstance(value, NoValue):
        raise ModelError(value.why)
    return value


def _merged(names: tuple[str, ...], test: Any, then: tuple[Any, ...], otherwise: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the local names have after an `if`: their values after the one branch or the other."""
    return tuple(_either(n, test, a, b) for n, a, b in zip(names, then, otherwise, strict=True))


def _either(name: str, test: Any, a: Any, b: Any) -> Any:
    c = x.truth(test)
    if a is b or c is x.TRUE:
        return a
    if c is x.FALSE or isinstance(b, NoValue):
        return b
    if isinstance(a, NoValue):
        return a
    try:
        return x.ite(c, a, b)
    except (ModelError, TypeNotInLanguage) as e:
        return NoValue(name, f"has no one value after the 'if' that assigns it: {e}")


class Frame:
    """A text that is being read: what it evaluates on its way, each under the conditions since it began."""

    stack: list[Frame] = []
    before: list[tuple[tuple[Expr, ...], Any]] = []
    """What an action's text has evaluated in statements that go on, with the conditions under which it did."""
    binders = 0
    """How many comprehensions are being read: what stands in one cannot guard or assign."""

    def __init__(self) -> None:
        self.base, self.evaluated = len(When.stack), list[Expr]()
        self.begun = len(Frame.before)

    def __enter__(self) -> Frame:
        Frame.stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        Frame.stack.pop()

    def value(self, result: Any) -> Any:
        """The text's result, in which all is evaluated that the text evaluates."""
        if result is None or not self.evaluated:
            return result
        result = x.symbolic(result)
        for e in reversed(self.evaluated):
            result = x.only(e, result)
        return result


def met(e: Any) -> None:
    """A text evaluates this where it stands: an action's as a need of the action, another's with its result."""
    for y in _partial(e):
        action = tracing.get().action
        if action is not None and not Frame.binders:
            action.needs.append(Need(len(action.guard), x.and_(*When.stack), y))
        elif Frame.stack:
            frame = Frame.stack[-1]
            frame.evaluated.append(under(x.and_(*When.stack[frame.base :]), y))


def _early(e: Any) -> Any:
    """What the text evaluates here, before more of the same statement."""
    if not Frame.binders and tracing.get().action is not None:
        places = getattr(type(e), "__kafkaspec_place__", None)
        Frame.before.append((tuple(When.stack), e if places is None else places(e)))
    return e


def evaluated() -> None:
    """A guard is asked here: what its statement has evaluated must have a value also where the guard is false."""
    action = tracing.get().action
    for conditions, e in Frame.before:
        when = x.and_(*conditions)
        for y in _partial(e):
            if not any(n.when is when and n.what is y for n in action.needs):
                action.needs.append(Need(len(action.guard), when, y))
    Frame.before.clear()


def ended() -> None:
    """A statement has ended: what it has evaluated was met."""
    del Frame.before[Frame.stack[-1].begun if Frame.stack else 0 :]


def _partial(e: Any) -> Iterator[Expr]:
    """What of a text's value may have no value, such as the limits of a range and the values of a map."""
    if isinstance(e, tuple | list):
        for y in e:
            yield from _partial(y)
    elif isinstance(e, x.SetLiteral):
        yield from _partial(e.items)
    elif isinstance(e, x.Span):
        yield from _partial((e.start, e.stop))
    elif isinstance(e, x.MapLiteral):
        v = x.bound_over(e.domain, e.name)
        for y in _partial(e.value(v)):
            yield x.node("forall", BOOL, v, x.only(y, x.TRUE))
    elif isinstance(e, Expr) and not e.total:
        yield e


def under(condition: Expr, e: Expr) -> Expr:
    """Something that evaluates `e` where the condition is true."""
    return e if condition is x.TRUE else x.and_(condition, x.only(e, x.TRUE))


def _now(e: Any) -> Any:
    e = x.plain(e)
    if hasattr(type(e), "__kafkaspec_place__"):
        bool(e)  # a place in s.next, which is not read
    met(e)
    ended()
    return e


def _asserted(condition: Any) -> None:
    met(x.must(condition))
    ended()


def _in_turn(op: Callable[..., Expr], first: Any, *rest: Callable[[], Any]) -> Expr:
    begun = len(Frame.before)
    parts = [_early(x.truth(first))]
    for r in rest:
        reached = x.and_(*parts) if op is x.and_ else x.not_(x.or_(*parts))
        with When(reached):
            parts.append(_early(x.truth(r())))
    del Frame.before[begun:]
    return op(*parts)


def _ite(c: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    begun = len(Frame.before)
    c = _early(x.truth(c))
    with When(c):
        yes = a()
    with When(x.not_(c)):
        no = b()
    del Frame.before[begun:]
    return x.ite(c, yes, no)


def _within(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A comprehension's part, as a function of its variable."""

    def part(v: Any) -> Any:
        Frame.binders += 1
        try:
            return f(v)
        finally:
            Frame.binders -= 1

    return part


def _binary(op: str, a: Any, b: Any) -> Any:
    a, b = x.plain(a), x.plain(b)
    if all(isinstance(v, int) and not isinstance(v, bool) for v in (a, b)):
        a, b = x.number(a), x.number(b)
    known = any(isinstance(v, Expr | x.SetLiteral | list | type) for v in (a, b))
    if not known:
        raise ModelError(f"{x.written(a)} and {x.written(b)} are no values that an operator joins")
    match op:
        case "Add":
            return x.plus(a, b)
        case "Sub":
            return x.minus(a, b)
        case "Mult":
            return x.times(a, b)
        case "FloorDiv":
            return x.divided("div", a, b)
        case "Mod":
            return x.divided("mod", a, b)
    if isinstance(a, x.SetLiteral) and isinstance(b, x.SetLiteral) and op == "BitOr":
        return a | b
    return x.set_operation("union" if op == "BitOr" else "inter", a, b)


ABSENT = object()
"""A limit that a slice does not have."""


def _slice(*parts: Any) -> slice:
    return slice(*[None if p is ABSENT else x.number(p) for p in parts])


def _method(owner: Any, name: str) -> Any:
    if isinstance(owner, Expr | x.SetLiteral | list | tuple | x.SizeName):
        raise ModelError(
            f".{name}() has no meaning in a model's text: write it with operators, comprehensions or a helper"
        )
    return getattr(owner, name)


def _indexed(owner: Any, key: Any) -> Any:
    """owner[key]: an element, or a place in s.next."""
    return owner[key] if hasattr(type(owner), "__kafkaspec_place__") else x.index(owner, key)


def _attribute(owner: Any, name: str) -> Any:
    if isinstance(owner, Expr):
        return x.field(owner, name)
    if hasattr(type(owner), "__kafkaspec_place__"):
        return owner.__getattr__(name)  # a field may be called as a slot is
    if isinstance(owner, ModuleType) or hasattr(type(owner), "__kafkaspec_parts__"):
        return getattr(owner, name)
    if isinstance(owner, type) and issubclass(owner, enum.Enum) and name in owner.__members__:
        return owner[name]
    raise ModelError(f".{name} of a {type(owner).__name__} has no meaning in a model's text: name its value at the top")


def _called(f: Any, /, *args: Any, **named: Any) -> Any:
    inner = getattr(f, "func", f)
    if form.word(inner):
        raise ModelError(f"{inner.__name__} is a function of the language, which a text calls by this name alone")
    if hasattr(inner, "__kafkaspec_define__") or hasattr(inner, "__kafkaspec_call__"):
        return f(*args, **named)
    if isinstance(f, type) and dataclasses.is_dataclass(f):
        t = resolve(f)
        try:
            given = inspect.signature(f).bind(*args, **named)
        except TypeError as e:
            raise ModelError(f"{f.__name__}: {e}") from None
        given.apply_defaults()
        return x.record(t, given.arguments)
    name = getattr(f, "__name__", repr(f))
    raise ModelError(f"{name}() has no meaning in a model's text: a helper function has @define")


def _require(require: Callable[..., None], *conditions: Callable[[], Any]) -> None:
    for c in conditions:
        begun = len(Frame.before)
        condition = c()
        del Frame.before[begun:]  # the condition is met as a whole
        require(condition)


def _set(*args: Any) -> Any:
    if not args:
        return x.SetLiteral([])
    if len(args) > 1:
        raise ModelError("set() takes a sort, an enum or nothing")
    d = x.plain(args[0])
    if isinstance(d, type) and issubclass(d, Sort | enum.Enum):
        return x.everything(d)
    if isinstance(d, Expr) and d.t.kind == "seq":
        return x.collected(d, lambda _: True, lambda v: v, "x")
    if isinstance(d, Expr | type | x.SetLiteral):
        return x.symbolic(d)
    if isinstance(d, x.Span):
        return x.collected(d, lambda _: True, lambda v: v, "x")
    raise ModelError(f"set({x.written(d)}): write {{...}}")


def _map(domain: Any, value: Callable[[Any], Any], name: str) -> x.MapLiteral:
    return x.MapLiteral(domain, _within(value), name)


_HELPERS: dict[str, Any] = {
    "__ks_and_": lambda *xs: _in_turn(x.and_, *xs), "__ks_or_": lambda *xs: _in_turn(x.or_, *xs),
    "__ks_not_": x.not_, "__ks_eq": x.eq, "__ks_identical": x.identical, "__ks_less": x.less,
    "__ks_ite": _ite, "__ks_contains": x.contains, "__ks_SetLiteral": x.SetLiteral,
    "__ks_MapLiteral": _map, "__ks_len": x.length, "__ks_range": x.span, "__ks_replace": x.replaced,
    "__ks_extreme": x.extreme, "__ks_set": _set, "__ks_when": When, "__ks_index": _indexed,
    "__ks_slice": _slice, "__ks_absent": ABSENT, "__ks_Unset": NoValue, "__ks_local": _local, "__ks_merged": _merged,
    "__ks_quantified": lambda op, d, body, name: x.quantified(op, d, _within(body), name),
    "__ks_chosen": lambda op, d, c, v, name, *rest: x.chosen(op, d, _within(c), _within(v), name, *rest),
    "__ks_summed": lambda d, c, v, name: x.summed(d, _within(c), _within(v), name),
    "__ks_collected": lambda d, c, v, name: x.collected(d, _within(c), _within(v), name),
    "__ks_now": _now, "__ks_early": _early, "__ks_asserted": _asserted, "__ks_binary": _binary,
    "__ks_attribute": _attribute, "__ks_method": _method,
    "__ks_called": _called, "__ks_require": _require,
}  # fmt: skip


def _strip(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Without what only a type checker reads."""
    tree.decorator_list, tree.returns = [], None
    for a in tree.args.args:
        a.annotation = None
    return tree


def _compiled(tree: ast.FunctionDef, f: FunctionType, extra: dict[str, Any]) -> FunctionType:
    file = f.__code__.co_filename
    module = ast.fix_missing_locations(ast.Module([tree], []))
    names = dict(f.__globals__)
    names.update(inspect.getclosurevars(f).nonlocals)
    names.update(extra)
    try:
        code = compile(module, file, "exec", optimize=0)  # `assert` has its meaning also where Python leaves it out
    except SyntaxError as e:  # the text is Python, and what it is written as may have more blocks than Python takes
        why = ": each `elif` is within the one before" if "nested blocks" in e.msg else ""
        fail(file, e.lineno or tree.lineno, f"{e.msg}{why}")
    exec(code, names)  # the model's own text, rewritten
    out = names[tree.name]
    assert isinstance(out, FunctionType)
    out.__defaults__ = f.__defaults__
    return out


def _copy(f: FunctionType) -> ast.FunctionDef:
    # ast has no deep copy that is cheap: parse the function's own lines again, at their place
    n = definition(f)
    lines = linecache.getlines(f.__code__.co_filename)[n.lineno - 1 : n.end_lineno]
    inside = lines[0][:1].isspace()  # within parentheses a line may begin anywhere, so that none is moved
    above = "\n" * (n.lineno - 1 - inside)
    (tree,) = ast.parse("".join([above, "if True:\n", *lines] if inside else [above, *lines])).body
    if isinstance(tree, ast.If):
        (tree,) = tree.body
    assert isinstance(tree, ast.FunctionDef)
    return tree


_NOTHING = object()


@cache
def _names(code: CodeType) -> tuple[str, ...]:
    """The names that a function looks up elsewhere, or in what it evaluates."""
    inner = [n for c in code.co_consts if isinstance(c, CodeType) for n in _names(c)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


def constants(f: FunctionType) -> tuple[object, ...]:
    """The values that the names of a function have now outside of it. A text means what they are when it is read."""
    outside = inspect.getclosurevars(f).nonlocals.values()
    return (*outside, *[f.__globals__.get(n, _NOTHING) for n in _names(f.__code__)])


def unchanged(f: FunctionType, values: tuple[object, ...]) -> bool:
    """Have the names of a function these values still?"""
    return all(a is b for a, b in zip(constants(f), values, strict=True))


_symbolic: dict[FunctionType, tuple[FunctionType, tuple[object, ...]]] = {}


def symbolic(f: FunctionType) -> FunctionType:
    """f, rewritten so that it can run on symbols. Raises ModelError with file and line."""
    known = _symbolic.get(f)
    if known is None or not unchanged(f, known[1]):
        _concrete.pop(f, None)
        known = _symbolic[f] = (_rewritten(f), constants(f))
    if (trace := tracing.get()) is not None:
        trace.texts[f] = known[1]
    return known[0]


def _rewritten(f: FunctionType) -> FunctionType:
    file = f.__code__.co_filename
    tree = _copy(f)
    rewrite = _Rewrite(file)
    if (wrong := form.words(tree, f)) is not None:
        fail(file, *wrong)
    _strip(tree)
    tree = rewrite.visit(tree)
    return _compiled(tree, f, _HELPERS)


class _Strict(ast.NodeTransformer):
    """For concrete runs: what Python would let pass, such as an index below 0, is asked for."""

    def call(self, f: str, *args: ast.expr, at: ast.AST) -> ast.expr:
        return ast.copy_location(ast.Call(ast.Name("__ks_" + f, ast.Load()), list(args), []), at)

    def visit_Call(self, n: ast.Call) -> ast.expr:
        self.generic_visit(n)
        f = n.func.id if isinstance(n.func, ast.Name) else ""
        if f == "require" and len(n.args) > 1:
            n.args = [ast.copy_location(ast.BoolOp(ast.And(), n.args), n)]
        elif f in ("all", "any") and n.args and isinstance(n.args[0], ast.GeneratorExp):
            n.args = [ast.copy_location(ast.ListComp(n.args[0].elt, n.args[0].generators), n)]  # every element
        elif f in ("max", "min"):
            if n.args and isinstance(n.args[0], ast.GeneratorExp):
                n.args[0].elt = self.call("wanted", n.args[0].elt, at=n)
            n.keywords = [ast.keyword(k.arg, self.call("wanted", k.value, at=n)) for k in n.keywords]
        elif f in ("set", "frozenset") and n.args:
            return self.call("elements", n, at=n)
        elif f not in form.WORDS:
            n.args = [n.func, *n.args]
            n.func = ast.copy_location(ast.Name("__ks_called", ast.Load()), n)
        elif f == "replace":
            n.func = ast.copy_location(ast.Name("__ks_replace", ast.Load()), n)
        return n

    def visit_Subscript(self, n: ast.Subscript) -> ast.expr:
        self.generic_visit(n)
        if not isinstance(n.ctx, ast.Load):
            return n
        key: ast.expr = n.slice
        if isinstance(key, ast.Slice):
            parts = [x or ast.Name("__ks_absent", ast.Load()) for x in (key.lower, key.upper)]
            return self.call("sliced", n.value, *parts, at=n)
        return self.call("index", n.value, key, at=n)

    def visit_Compare(self, n: ast.Compare) -> ast.expr:
        self.generic_visit(n)
        if any(isinstance(op, ast.Is | ast.IsNot) for op in n.ops):  # a flag is its value
            n.left, *n.comparators = [self.call("plain", x, at=n) for x in (n.left, *n.comparators)]
        return n

    def visit_Set(self, n: ast.Set) -> ast.expr:
        self.generic_visit(n)
        return self.call("elements", n, at=n)

    def visit_SetComp(self, n: ast.SetComp) -> ast.expr:
        self.generic_visit(n)
        return self.call("elements", n, at=n)

    def visit_BinOp(self, n: ast.BinOp) -> ast.expr:
        self.generic_visit(n)
        return self.call("added", n.left, n.right, at=n) if isinstance(n.op, ast.Add) else n


_concrete: dict[FunctionType, FunctionType] = {}


def concrete(f: FunctionType, helpers: dict[str, Any]) -> FunctionType:
    """f as it stands, but that what has no value is an error: `helpers` says how each operation asks."""
    known = _concrete.get(f)
    if known is None:
        tree: ast.FunctionDef = _Strict().visit(_strip(_copy(f)))
        known = _concrete[f] = _compiled(tree, f, helpers)
    return known


def located(file_of: Callable[..., Any], e: BaseException, files: set[str]) -> ModelError:
    """An error met while tracing, with the innermost line of the model's text that it came from."""
    line, file = file_of.__code__.co_firstlineno, file_of.__code__.co_filename
    tb = e.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename in files:
            file, line = tb.tb_frame.f_code.co_filename, tb.tb_lineno
        tb = tb.tb_next
    message = f"{type(e).__name__}: {e}"
    if isinstance(e, ModelError | TypeNotInLanguage | NameError | AttributeError):
        message = str(e)
    elif isinstance(e, RecursionError):
        message = "this calls itself, or is nested too deeply to be read"
    return ModelError(f"{short(file)}:{line}: {message}")
