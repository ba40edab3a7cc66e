"""Faults of the audit's rules: each comparison and each condition of a module is changed, one at a time.

A comparison of numbers is off by one to either side, any comparison is negated, always true or always false; of `and`,
`or`, `&` and `|` an operand is left out; a condition that is no comparison is negated, always true or always false; a
case of a `match` is left out; a finding has another severity, or the next clause's id. Of what says the same as another
fault only one is made: `a` left out of `a and b` is `a` that is always true.

A fault is named by its module, its function, its place in that function and its kind, so that the name outlives a
change of anything else.
"""

from __future__ import annotations

import ast
import copy
import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from kafkaspec.contract.subsystem import is_part

ROOT: Final = Path(__file__).parents[3]
AROUND: Final = ("audit/check", "audit/context", "audit/metadata")
"""What the rules are told of a log's surroundings, in src/kafkaspec/audit."""
RULES: Final = (
    *AROUND,
    *(
        str(p.relative_to(ROOT / "audits").with_suffix(""))
        for p in sorted((ROOT / "audits").glob("*/*.py"))
        if p.stem != "__init__" and not is_part(p.stem)
    ),
)
"""The modules whose faults are made: `area/name`. The drivers, which put the rules beside the spec, have no rule."""


def file_of(module: str) -> str:
    """Its path from the checkout on."""
    return f"src/kafkaspec/{module}.py" if module in AROUND else f"audits/{module}.py"


NO_RULES: Final = frozenset({"_code"})
"""Functions that have none: what compiles others."""
CONSTANTS_BESIDE: Final = frozenset({"AUDIT", "CLAUSES"})

OPPOSITE: Final = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
STRICT: Final = {ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.LtE: ast.Lt, ast.GtE: ast.Gt}
OTHER_SEVERITY: Final = {"ERROR": "WARNING", "WARNING": "ERROR", "LEFTOVER": "WARNING", "UNCHECKED": "ERROR"}
OF_CONSTANTS: Final = {"severity", "clause"}
CLAUSE: Final = re.compile(r"([A-Z]{3}-)(\d+)")

Path_ = tuple[str | int, ...]
"""Fields and indices that lead from a node to one below it."""


@dataclass(frozen=True)
class Fault:
    """One place of a module, changed. `function` is a qualified name; a class where its constants are changed, "" where
    the module's are."""

    module: str
    function: str
    place: int
    kind: str
    path: Path_
    line: int
    before: str
    after: str

    @property
    def id(self) -> str:
        return f"{self.module}:{self.function}:{self.place}:{self.kind}"

    @property
    def what(self) -> str:
        return f"{file_of(self.module)}:{self.line}: {self.before} is {self.after}"


@dataclass(frozen=True)
class _Site:
    """A place that can be wrong: the kinds, each with what stands there then."""

    path: Path_
    node: ast.AST
    changes: tuple[tuple[str, ast.AST], ...]


# ---- the places of a function ----------------------------------------------------------------------------------------
def _either(node: ast.expr, value: bool) -> ast.expr:
    """The same, evaluated, and then always true or always false: of an array in each of its elements."""
    op: ast.operator = ast.BitOr() if value else ast.BitAnd()
    return ast.BinOp(node, op, ast.Constant(value))


def _logic(node: ast.expr, value: bool) -> ast.expr:
    """The same of what is no comparison and may be no bool."""
    return ast.BoolOp(ast.Or() if value else ast.And(), [node, ast.Constant(value)])


def _sum(node: ast.expr, n: int) -> ast.expr:
    return ast.BinOp(node, ast.Add() if n > 0 else ast.Sub(), ast.Constant(1))


COUNTS: Final = {"len", "int", "max", "min", "sum"}


def _numeric(node: ast.expr) -> bool:
    """Whether an expression looks like a number: what `==` compares is often none."""
    match node:
        case ast.Constant(value=int() as v):
            return not isinstance(v, bool)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in COUNTS
        case ast.Subscript(slice=ast.Constant(value=str())):
            return True
        case ast.Subscript(slice=ast.Name(id=name)):
            return name.isupper()
        case ast.UnaryOp(op=ast.USub()):
            return True
    return False


def _never_a_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=v):
            return not isinstance(v, int) or isinstance(v, bool)
        case ast.Attribute(value=ast.Name(id=name)):
            return name[:1].isupper()
        case ast.Tuple() | ast.Set() | ast.List():
            return True
    return False


def _shifted(node: ast.Compare, i: int, more: bool) -> ast.Compare | None:
    """The i-th of its comparisons, true of one number more or less; None where it compares no numbers."""
    op, right = node.ops[i], node.comparators[i]
    left = node.left if i == 0 else node.comparators[i - 1]
    out = copy.copy(node)
    out.ops, out.comparators = list(node.ops), list(node.comparators)
    if isinstance(op, ast.Eq | ast.NotEq):
        if len(node.ops) > 1 or _never_a_number(left) or _never_a_number(right):
            return None
        if not (_numeric(left) or _numeric(right)):
            return None
        out.comparators[i] = _sum(right, 1 if more else -1)
        return out
    if type(op) not in STRICT:
        return None
    if more == isinstance(op, ast.Lt | ast.Gt):
        out.ops[i] = STRICT[type(op)]()
        return out
    rising = isinstance(op, ast.Lt | ast.LtE)
    if i == 0 and len(node.ops) > 1:
        out.left = _sum(node.left, -1 if more == rising else 1)
    else:
        out.comparators[i] = _sum(right, 1 if more == rising else -1)
    return out


def _negated(node: ast.Compare) -> ast.expr:
    if len(node.ops) > 1:
        return ast.UnaryOp(ast.Not(), node)
    return ast.Compare(node.left, [OPPOSITE[type(node.ops[0])]()], node.comparators)


def _elementwise(node: ast.expr) -> list[tuple[Path_, ast.expr]] | None:
    """The operands of a chain of `&` or `|` that joins conditions, by their paths; None if it joins bits or sets."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.BitAnd | ast.BitOr):
        return None
    out: list[tuple[Path_, ast.expr]] = []

    def walk(x: ast.expr, path: Path_) -> None:
        if isinstance(x, ast.BinOp) and type(x.op) is type(node.op):
            walk(x.left, (*path, "left"))
            walk(x.right, (*path, "right"))
        else:
            out.append((path, x))

    walk(node, ())
    return None if any(_bits(x) for _, x in out) else out


def _bits(x: ast.expr) -> bool:
    """Constants, and what is joined with them; sets of keys."""
    match x:
        case ast.Name(id=name):
            return name.isupper()
        case ast.Constant():
            return True
        case ast.Call(func=ast.Attribute(attr="keys")):
            return True
        case ast.BinOp(op=ast.RShift() | ast.LShift()):
            return True
        case ast.BinOp(left=a, right=b):
            return _bits(a) or _bits(b)
    return False


class _Places:
    """The sites below a node, in the order of the text, each before those within it."""

    def __init__(self) -> None:
        self.found: list[_Site] = []

    def add(self, path: Path_, node: ast.AST, changes: Sequence[tuple[str, ast.AST]]) -> None:
        if changes:
            self.found.append(_Site(path, node, tuple(changes)))

    def body(self, statements: Sequence[ast.stmt], path: Path_, boolean: bool) -> None:
        for i, s in enumerate(statements):
            self.statement(s, (*path, i), boolean)

    def statement(self, s: ast.stmt, path: Path_, boolean: bool) -> None:
        """`boolean`: what is returned is a condition."""
        match s:
            case ast.Assert() | ast.Import() | ast.ImportFrom():
                return
            case ast.Expr(value=ast.Constant()):
                return
            case ast.FunctionDef():
                self.body(s.body, (*path, "body"), _is_bool(s))
                return
            case ast.AugAssign(op=ast.BitAnd() | ast.BitOr()) if not _bits(s.value):
                self.add(path, s, [("left out", ast.Pass())])
                self.expression(s.value, (*path, "value"))
                return
            case ast.If() | ast.While():
                self.expression(s.test, (*path, "test"), condition=True)
                self.body(s.body, (*path, "body"), boolean)
                self.body(s.orelse, (*path, "orelse"), boolean)
                return
            case ast.Return(value=ast.expr() as v):
                self.expression(v, (*path, "value"), condition=boolean)
                return
            case ast.Match():
                self.expression(s.subject, (*path, "subject"))
                for i, case in enumerate(s.cases):
                    at = (*path, "cases", i)
                    if not (isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None):
                        never = copy.copy(case)
                        never.guard = ast.Constant(False)
                        self.add(at, case, [("left out", never)])
                    if case.guard is not None:
                        self.expression(case.guard, (*at, "guard"), condition=True)
                    self.body(case.body, (*at, "body"), boolean)
                return
        for name, value in ast.iter_fields(s):
            if name in ("decorator_list", "annotation", "returns", "type_comment", "args"):
                continue
            for at, x in _children(name, value):
                if isinstance(x, ast.stmt):
                    self.statement(x, (*path, *at), boolean)
                elif isinstance(x, ast.expr):
                    self.expression(x, (*path, *at))
                elif isinstance(x, ast.ExceptHandler):
                    self.body(x.body, (*path, *at, "body"), boolean)
                elif isinstance(x, ast.withitem):
                    self.expression(x.context_expr, (*path, *at, "context_expr"))

    def expression(self, e: ast.expr, path: Path_, condition: bool = False) -> None:
        match e:
            case ast.Compare():
                self.comparison(e, path, (True, False))
                return
            case ast.BoolOp(op=ast.Or(), values=[x, default]) if not condition and _literal(default):
                self.add(path, e, [("left out", default), ("without a default", x)])
                self.expression(x, (*path, "values", 0))
                return
            case ast.BoolOp():
                joined = isinstance(e.op, ast.And)
                for i, x in enumerate(e.values):
                    self.operand(x, (*path, "values", i), joined, i == 0, _logic, e, path)
                return
            case ast.UnaryOp(op=ast.Not()):
                self.expression(e.operand, (*path, "operand"), condition=True)
                return
            case ast.UnaryOp(op=ast.Invert()):
                self.add(path, e, [("negated", e.operand)])
                if not isinstance(e.operand, ast.Name | ast.Subscript | ast.Attribute):
                    self.expression(e.operand, (*path, "operand"))
                return
            case ast.BinOp() if (operands := _elementwise(e)) is not None:
                for n, (at, x) in enumerate(operands):
                    self.operand(x, (*path, *at), isinstance(e.op, ast.BitAnd), n == 0, _either, None, ())
                return
            case ast.Attribute(value=ast.Name(id="Severity"), attr=name):
                self.add(path, e, [("severity", ast.Attribute(e.value, OTHER_SEVERITY[name], e.ctx))])
                return
            case ast.Constant(value=str() as text) if (m := CLAUSE.fullmatch(text)) is not None:
                self.add(path, e, [("clause", ast.Constant(f"{m[1]}{int(m[2]) + 1}"))])
                return
            case ast.Lambda():
                self.expression(e.body, (*path, "body"))
                return
        if condition and not isinstance(e, ast.Constant):
            changes = [("negated", ast.UnaryOp(ast.Not(), e)), ("true", _logic(e, True)), ("false", _logic(e, False))]
            self.add(path, e, changes)
        inner = isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id in ("any", "all")
        for name, value in ast.iter_fields(e):
            for at, x in _children(name, value):
                where = (*path, *at)
                if isinstance(x, ast.expr):
                    test = name == "test" and isinstance(e, ast.IfExp)
                    if inner and isinstance(x, ast.GeneratorExp):
                        self.expression(x.elt, (*where, "elt"), condition=True)
                        self.generators(x.generators, (*where, "generators"))
                    else:
                        self.expression(x, where, condition=test)
                elif isinstance(x, ast.comprehension):
                    self.generators([x], (*path, name), at[1:])
                elif isinstance(x, ast.keyword | ast.FormattedValue):
                    self.expression(x.value, (*where, "value"))

    def generators(self, of: Sequence[ast.comprehension], path: Path_, first: Path_ = (0,)) -> None:
        for n, g in enumerate(of, int(first[0]) if first else 0):
            self.expression(g.iter, (*path, n, "iter"))
            for i, x in enumerate(g.ifs):
                self.expression(x, (*path, n, "ifs", i), condition=True)

    def comparison(self, e: ast.Compare, path: Path_, values: Sequence[bool]) -> None:
        changes: list[tuple[str, ast.AST]] = []
        for i in range(len(e.ops)):
            of = f" {i + 1}" if len(e.ops) > 1 else ""
            for kind, more in (("one more", True), ("one less", False)):
                other = _shifted(e, i, more)
                if other is not None:
                    changes.append((kind + of, other))
        changes.append(("negated", _negated(e)))
        changes += [("true" if v else "false", _either(e, v)) for v in values]
        self.add(path, e, changes)
        for name, value in ast.iter_fields(e):
            for at, x in _children(name, value):
                if isinstance(x, ast.expr) and not _severity(x):
                    self.expression(x, (*path, *at))

    def operand(
        self, x: ast.expr, path: Path_, joined: bool, first: bool, how: Any, whole: ast.BoolOp | None, of: Path_
    ) -> None:
        """Of `and` (`joined`) or `or`. Left out it is as if it were always true, or false; the other of the two makes
        the whole so, which is asked for once."""
        values: tuple[bool, ...] = (joined, not joined) if first else (joined,)
        inside = x.operand if isinstance(x, ast.UnaryOp) and isinstance(x.op, ast.Not | ast.Invert) else x
        turned = inside is not x
        at = (*path, "operand") if turned else path
        if turned:
            values = tuple(not v for v in values)
        if isinstance(inside, ast.Compare):
            self.comparison(inside, at, values)
        elif isinstance(inside, ast.BoolOp) or _elementwise(inside) is not None:
            self.add(path, x, [("left out", how(x, joined))])
            self.expression(inside, at)
        else:
            opposite = x.operand if turned and isinstance(x, ast.UnaryOp) else None
            if opposite is None:
                opposite = ast.UnaryOp(ast.Not() if how is _logic else ast.Invert(), x)
            changes: list[tuple[str, ast.AST]] = [("negated", opposite), ("left out", how(x, joined))]
            if first:
                changes.append(("always" if not joined else "never", how(x, not joined)))
            self.add(path, x, changes)
            if not isinstance(inside, ast.Name | ast.Attribute):
                self.expression(inside, at)


def _literal(x: ast.expr) -> bool:
    """What stands behind `or` for a value that is not known."""
    match x:
        case ast.Constant() | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
    return False


def _severity(x: ast.expr) -> bool:
    """A severity that something is compared with is no finding's."""
    return isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name) and x.value.id == "Severity"


def _children(name: str, value: Any) -> Iterator[tuple[Path_, Any]]:
    if isinstance(value, list):
        for i, x in enumerate(value):
            yield (name, i), x
    elif isinstance(value, ast.AST):
        yield (name,), value


def _is_bool(f: ast.FunctionDef) -> bool:
    return isinstance(f.returns, ast.Name) and f.returns.id == "bool"


# ---- a module --------------------------------------------------------------------------------------------------------
class Rules:
    """A module of rules: its functions and constants, with the places that can be wrong."""

    def __init__(self, name: str, module: ModuleType | None = None, path: Path | None = None) -> None:
        """`module`, `path`: another than that of the name, another text."""
        self.name = name
        folder = "" if name in AROUND else "audits."
        self.module = module or importlib.import_module(f"kafkaspec.{folder}{name.replace('/', '.')}")
        self.path = str(self.module.__file__)
        self.tree = ast.parse((path or Path(self.path)).read_text("utf-8"))
        self.functions: dict[str, tuple[ast.FunctionDef, tuple[ast.ClassDef, ...]]] = {}
        self.constants: dict[str, list[ast.Assign]] = {}
        self._sites: dict[str, list[_Site]] = {}
        self._walk(self.tree.body, "", ())
        self.objects = self._objects()

    def _walk(self, body: Sequence[ast.stmt], prefix: str, classes: tuple[ast.ClassDef, ...]) -> None:
        for s in body:
            if isinstance(s, ast.FunctionDef | ast.ClassDef) and s.name in NO_RULES:
                continue
            if isinstance(s, ast.FunctionDef):
                self.functions[prefix + s.name] = s, classes
            elif isinstance(s, ast.ClassDef):
                self._walk(s.body, f"{prefix}{s.name}.", (*classes, s))
            elif isinstance(s, ast.Assign) and not any(x in CONSTANTS_BESIDE for x in _targets(s)):
                self.constants.setdefault(prefix.rstrip("."), []).append(s)

    def _objects(self) -> dict[str, list[FunctionType]]:
        """The functions as they run, by qualified names: what a decorator has made of one is looked through."""
        out: dict[str, list[FunctionType]] = {}

        def take(x: Any) -> None:
            if isinstance(x, property):
                for f in (x.fget, x.fset):
                    take(f)
            elif isinstance(x, classmethod | staticmethod):
                take(x.__func__)
            elif isinstance(x, FunctionType):
                if x.__code__.co_filename == self.path and x not in out.setdefault(x.__qualname__, []):
                    out[x.__qualname__].append(x)
            elif isinstance(x, type) and x.__module__ == self.module.__name__:
                for y in vars(x).values():
                    take(y)
            elif hasattr(x, "__wrapped__"):
                take(x.__wrapped__)

        for x in vars(self.module).values():
            take(x)
        return out

    def sites(self, function: str) -> list[_Site]:
        """The places of a function; of a class or the module those of its constants."""
        if function not in self._sites:
            places = _Places()
            if function in self.functions:
                node, _ = self.functions[function]
                places.body(node.body, ("body",), _is_bool(node))
            else:
                for n, s in enumerate(self.constants.get(function, ())):
                    places.expression(s.value, (n, "value"))
                places.found = [x for x in places.found if {k for k, _ in x.changes} <= OF_CONSTANTS]
            self._sites[function] = places.found
        return self._sites[function]

    def faults(self) -> Iterator[Fault]:
        """Every fault, in the order of the text: functions, then constants."""
        for function in (*self.functions, *self.constants):
            for n, site in enumerate(self.sites(function), 1):
                for kind, after in site.changes:
                    line = getattr(site.node, "lineno", 0)
                    yield Fault(self.name, function, n, kind, site.path, line, _text(site.node), _text(after))

    # ---- with a fault
    def changed(self, fault: Fault) -> ChangedRule:
        """What the module is with the fault, to be entered as a context."""
        site = self.sites(fault.function)[fault.place - 1]
        after = next(x for kind, x in site.changes if kind == fault.kind)
        if fault.function in self.functions:
            node, classes = self.functions[fault.function]
            return ChangedRule(self._running(fault.function, _put(node, site.path, after), classes))
        index, *rest = site.path
        assign = _put(self.constants[fault.function][int(index)], tuple(rest), after)
        assert isinstance(assign, ast.Assign)
        owner: Any = self.module
        for name in fault.function.split(".") if fault.function else ():
            owner = getattr(owner, name)
        value = eval(_compiled(ast.Expression(assign.value), self.path, "eval"), dict(vars(self.module)))
        names = list(_targets(assign))
        values = value if isinstance(assign.targets[0], ast.Tuple) else [value]
        return ChangedRule([], [(owner, name, v) for name, v in zip(names, values, strict=True)])

    def reporting(self, function: str, report: str) -> list[tuple[FunctionType, CodeType]]:
        """The function with a call `report(n)` at each of its places, to know which are reached."""
        node, classes = self.functions[function]
        out: ast.AST = node
        for n, site in reversed(list(enumerate(self.sites(function), 1))):
            if isinstance(site.node, ast.expr):
                here = _at(out, site.path)
                assert isinstance(here, ast.expr)
                call = ast.Call(ast.Name(report, ast.Load()), [ast.Constant(function), ast.Constant(n), here], [])
                out = _put(out, site.path, call)
            elif isinstance(site.node, ast.match_case):
                case = _at(out, site.path)
                assert isinstance(case, ast.match_case)
                new = copy.copy(case)
                new.body = [_told(report, function, n), *case.body]
                out = _put(out, site.path, new)
            else:
                s = _at(out, site.path)
                assert isinstance(s, ast.stmt)
                out = _put(out, site.path, ast.If(ast.Constant(True), [_told(report, function, n), s], []))
        return self._running(function, out, classes)

    def _running(
        self, function: str, node: ast.AST, classes: Sequence[ast.ClassDef]
    ) -> list[tuple[FunctionType, CodeType]]:
        """Each function object of that name, with the code to run instead."""
        assert isinstance(node, ast.FunctionDef)
        bare = copy.copy(node)
        bare.decorator_list = []
        inside: ast.stmt = bare
        for c in reversed(classes):
            inside = ast.ClassDef(c.name, [], [], [inside], [])
        whole = ast.Module([inside], [])
        code = _compiled(whole, self.path, "exec")
        (new,) = (x for x in _codes(code) if x.co_qualname == function)
        objects = self.objects.get(function, ())
        assert objects, f"{self.name}: no function {function}"
        return [(f, new) for f in objects]


@dataclass
class ChangedRule:
    """Within this context functions run other code, and names have other values."""

    codes: list[tuple[FunctionType, CodeType]]
    values: Sequence[tuple[Any, str, Any]] = ()

    def __enter__(self) -> None:
        self._codes = [(f, f.__code__) for f, _ in self.codes]
        self._values = [(owner, name, getattr(owner, name)) for owner, name, _ in self.values]
        for f, code in self.codes:
            f.__code__ = code
        for owner, name, value in self.values:
            setattr(owner, name, value)

    def __exit__(self, *of: object) -> None:
        for f, code in self._codes:
            f.__code__ = code
        for owner, name, value in self._values:
            setattr(owner, name, value)


@cache
def rules(name: str) -> Rules:
    return Rules(name)


def _told(report: str, function: str, n: int) -> ast.stmt:
    return ast.Expr(
        ast.Call(ast.Name(report, ast.Load()), [ast.Constant(function), ast.Constant(n), ast.Constant(None)], [])
    )


def _targets(s: ast.Assign) -> Iterator[str]:
    for t in s.targets:
        for x in t.elts if isinstance(t, ast.Tuple) else [t]:
            if isinstance(x, ast.Name):
                yield x.id


def _at(node: Any, path: Path_) -> Any:
    for step in path:
        node = node[step] if isinstance(step, int) else getattr(node, step)
    return node


def _put(node: Any, path: Path_, new: Any) -> Any:
    """The node with another one at the path; what lies on the way is copied, the rest shared."""
    if not path:
        return new
    step, *rest = path
    if isinstance(step, int):
        return [*node[:step], _put(node[step], tuple(rest), new), *node[step + 1 :]]
    out = copy.copy(node)
    setattr(out, step, _put(getattr(node, step), tuple(rest), new))
    return out


def _compiled(tree: Any, path: str, mode: str) -> CodeType:
    import __future__

    flags = __future__.annotations.compiler_flag
    code: CodeType = compile(ast.fix_missing_locations(tree), path, mode, flags, dont_inherit=True)
    return code


def _codes(code: CodeType) -> Iterator[CodeType]:
    for x in code.co_consts:
        if isinstance(x, CodeType):
            yield x
            yield from _codes(x)


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.match_case):
        return f"case {ast.unparse(node.pattern)}" + (" if False" if node.guard is not None else "")
    text = " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())
    return text if len(text) <= 100 else f"{text[:97]}..."
