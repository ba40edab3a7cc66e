"""Reading a model's text symbolically: its syntax tree is rewritten so that `and or not in is if all any max len` can
be traced, then run once on symbols. Line numbers are kept, so that every error names the model's own file and line."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

from kafkaspec.language import expr as x
from kafkaspec.language.expr import Expr, ModelError

_FORBIDDEN = (
    ast.For,
    ast.While,
    ast.Try,
    ast.With,
    ast.AugAssign,
    ast.Delete,
    ast.Lambda,
    ast.Global,
    ast.Nonlocal,
    ast.Match,
)
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
def _module(file: str) -> ast.Module:
    source = "".join(linecache.getlines(file))
    return ast.parse(source, file)


def definition(f: FunctionType) -> ast.FunctionDef:
    """The syntax tree of a function, with its file's line numbers."""
    code = f.__code__
    for n in ast.walk(_module(code.co_filename)):
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
        if isinstance(node, _FORBIDDEN):
            hints = {
                "For": "use a comprehension",
                "AugAssign": "write s.next.x = s.x + ...",
                "While": "use a quantifier",
            }
            kind = type(node).__name__
            self.fail(
                node, f"'{kind.lower()}' has no meaning in a model's text{'; ' + hints[kind] if kind in hints else ''}"
            )
        new = super().visit(node)
        if isinstance(new, ast.AST) and new is not node:
            ast.copy_location(new, node)
        return new

    def call(self, f: str, *args: ast.expr, **named: ast.expr) -> ast.Call:
        return ast.Call(ast.Name("__ks_" + f, ast.Load()), list(args), [ast.keyword(k, v) for k, v in named.items()])

    def function(self, name: str, body: ast.expr, at: ast.AST) -> ast.Lambda:
        arguments = ast.arguments([], [ast.copy_location(ast.arg(name), at)], None, [], [], None, [])
        return ast.copy_location(ast.Lambda(arguments, body), at)

    def visit_Assert(self, n: ast.Assert) -> ast.stmt:
        return ast.Pass()  # for the type checker; a guard says the same

    def visit_BoolOp(self, n: ast.BoolOp) -> ast.expr:
        self.generic_visit(n)
        return self.call("and_" if isinstance(n.op, ast.And) else "or_", *n.values)

    def visit_UnaryOp(self, n: ast.UnaryOp) -> ast.expr:
        self.generic_visit(n)
        return self.call("not_", n.operand) if isinstance(n.op, ast.Not) else n

    def visit_IfExp(self, n: ast.IfExp) -> ast.expr:
        self.generic_visit(n)
        return self.call("ite", n.test, n.body, n.orelse)

    def visit_Set(self, n: ast.Set) -> ast.expr:
        self.generic_visit(n)
        return self.call("SetLiteral", ast.List(n.elts, ast.Load()))

    def visit_Compare(self, n: ast.Compare) -> ast.expr:
        self.generic_visit(n)
        out: list[ast.expr] = []
        left = n.left
        for op, right in zip(n.ops, n.comparators, strict=True):
            match op:
                case ast.In():
                    c = self.call("contains", left, right)
                case ast.NotIn():
                    c = self.call("not_", self.call("contains", left, right))
                case ast.Is() | ast.Eq():
                    c = self.call("eq", left, right)
                case ast.IsNot() | ast.NotEq():
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
        return out[0] if len(out) == 1 else self.call("and_", *out)

    def one(self, g: ast.comprehension) -> str:
        if not isinstance(g.target, ast.Name):
            self.fail(g.target, "a comprehension's variable is a plain name")
        return g.target.id

    def condition(self, g: ast.comprehension) -> ast.expr:
        return self.call("and_", *g.ifs)

    def visit_Call(self, n: ast.Call) -> ast.expr:
        self.generic_visit(n)
        f = n.func.id if isinstance(n.func, ast.Name) else ""
        gen = n.args[0] if n.args and isinstance(n.args[0], ast.GeneratorExp) else None
        if gen is not None and f in _QUANTIFIERS:
            body: ast.expr = gen.elt
            for g in reversed(gen.generators):
                if g.ifs:
                    body = (
                        self.call("or_", self.call("not_", self.condition(g)), body)
                        if f == "all"
                        else self.call("and_", self.condition(g), body)
                    )
                name = self.one(g)
                body = self.call(
                    "quantified",
                    ast.Constant(_QUANTIFIERS[f]),
                    g.iter,
                    self.function(name, body, n),
                    ast.Constant(name),
                )
                ast.copy_location(body, n)
            return body
        if gen is not None and f in ("max", "min", "sum"):
            if len(gen.generators) != 1:
                self.fail(n, f"{f}() takes a comprehension with one 'for'")
            g = gen.generators[0]
            name = self.one(g)
            cond = self.function(name, self.condition(g), n)
            if f == "sum":
                if not (isinstance(gen.elt, ast.Constant) and gen.elt.value == 1):
                    self.fail(n, "sum() counts: sum(1 for ... if ...)")
                return self.call("counted", g.iter, cond, ast.Constant(name))
            default = next((k.value for k in n.keywords if k.arg == "default"), None)
            if default is None or not (isinstance(gen.elt, ast.Name) and gen.elt.id == name):
                self.fail(n, f"{f}() over a comprehension is {f}(({name} for {name} in ... if ...), default=...)")
            kind = ast.Constant("greatest" if f == "max" else "least")
            return self.call("chosen", kind, g.iter, cond, ast.Constant(name), default)
        if f in ("max", "min"):
            return self.call("extreme", ast.Constant(f == "max"), *n.args)
        if f in ("set", "frozenset"):
            return self.call("set", *n.args)
        if f in ("len", "range", "replace"):
            n.func = ast.copy_location(ast.Name("__ks_" + f, ast.Load()), n.func)
        return n

    def visit_SetComp(self, n: ast.SetComp) -> ast.expr:
        self.generic_visit(n)
        g = n.generators[0]
        name = self.one(g)
        if len(n.generators) != 1 or not (isinstance(n.elt, ast.Name) and n.elt.id == name):
            self.fail(n, f"a set comprehension is {{{name} for {name} in ... if ...}}")
        return self.call("collected", g.iter, self.function(name, self.condition(g), n), ast.Constant(name))

    def visit_DictComp(self, n: ast.DictComp) -> ast.expr:
        self.generic_visit(n)
        g = n.generators[0]
        name = self.one(g)
        if len(n.generators) != 1 or g.ifs or not (isinstance(n.key, ast.Name) and n.key.id == name):
            self.fail(n, f"a map comprehension is {{{name}: ... for {name} in ...}}, over every key")
        return self.call("MapLiteral", g.iter, self.function(name, n.value, n), ast.Constant(name))

    def visit_If(self, n: ast.If) -> Any:
        for part in (n.body, n.orelse):
            for m in part:
                inner = {id(k) for c in ast.walk(m) if isinstance(c, ast.comprehension) for k in ast.walk(c.target)}
                for k in ast.walk(m):
                    if isinstance(k, ast.Return):
                        self.fail(k, "'return' inside 'if': use a conditional expression")
                    if isinstance(k, ast.Name) and isinstance(k.ctx, ast.Store) and id(k) not in inner:
                        self.assigned_in_if.setdefault(k.id, []).append((part[0].lineno, max(_last(m) for m in part)))
        self.generic_visit(n)
        out = [self.when(n.test, n.body)]
        if n.orelse:
            out.append(self.when(ast.copy_location(self.call("not_", n.test), n.test), n.orelse))
        return [ast.copy_location(w, n) for w in out]

    assigned_in_if: dict[str, list[tuple[int, int]]]

    def when(self, test: ast.expr, body: list[ast.stmt]) -> ast.With:
        c = ast.copy_location(self.call("when", test), test)
        return ast.With([ast.withitem(c)], body)


def _last(n: ast.AST) -> int:
    return int(getattr(n, "end_lineno", 0) or 0)


class When:
    """`if` in an effect: the condition under which what stands below is done."""

    stack: list[Expr] = []

    def __init__(self, condition: Any) -> None:
        self.condition = x.truth(condition)

    def __enter__(self) -> None:
        When.stack.append(self.condition)

    def __exit__(self, *_: object) -> None:
        When.stack.pop()


def _set(*args: Any) -> Any:
    if not args:
        return x.SetLiteral([])
    if isinstance(args[0], type):
        return args[0]
    return args[0]


_HELPERS: dict[str, Any] = {
    "__ks_and_": x.and_, "__ks_or_": x.or_, "__ks_not_": x.not_, "__ks_eq": x.eq, "__ks_less": x.less,
    "__ks_ite": x.ite, "__ks_contains": x.contains, "__ks_SetLiteral": x.SetLiteral,
    "__ks_MapLiteral": x.MapLiteral, "__ks_len": x.length, "__ks_range": x.span, "__ks_replace": x.replaced,
    "__ks_extreme": x.extreme, "__ks_quantified": x.quantified, "__ks_chosen": x.chosen,
    "__ks_counted": x.counted, "__ks_collected": x.collected, "__ks_set": _set, "__ks_when": When,
}  # fmt: skip


def _compiled(tree: ast.FunctionDef, f: FunctionType, extra: dict[str, Any]) -> FunctionType:
    file = f.__code__.co_filename
    tree.decorator_list, tree.returns = [], None
    for a in tree.args.args:
        a.annotation = None
    module = ast.fix_missing_locations(ast.Module([tree], []))
    names = dict(f.__globals__)
    names.update(inspect.getclosurevars(f).nonlocals)
    names.update(extra)
    exec(compile(module, file, "exec"), names)  # the model's own text, rewritten
    out = names[tree.name]
    assert isinstance(out, FunctionType)
    out.__defaults__ = f.__defaults__
    return out


def _copy(f: FunctionType) -> ast.FunctionDef:
    # ast has no deep copy that is cheap: parse the function's own lines again, at their place
    n = definition(f)
    lines = linecache.getlines(f.__code__.co_filename)[n.lineno - 1 : n.end_lineno]
    indent = len(lines[0]) - len(lines[0].lstrip())
    text = "".join(line[indent:] if line.strip() else "\n" for line in lines)
    (tree,) = ast.parse(text).body
    ast.increment_lineno(tree, n.lineno - 1)
    assert isinstance(tree, ast.FunctionDef)
    return tree


@cache
def symbolic(f: FunctionType) -> FunctionType:
    """f, rewritten so that it can run on symbols. Raises ModelError with file and line."""
    file = f.__code__.co_filename
    tree = _copy(f)
    rewrite = _Rewrite(file)
    rewrite.assigned_in_if = {}
    loads = [(n.id, n.lineno) for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    tree = rewrite.visit(tree)
    for name, spans in rewrite.assigned_in_if.items():
        for used, line in loads:
            if used == name and not any(a <= line <= b for a, b in spans):
                fail(file, line, f"'{name}' is assigned inside an 'if': use a conditional expression")
    return _compiled(tree, f, _HELPERS)


class _Lazy(ast.NodeTransformer):
    """For concrete runs: require(a, b) stops at the first that fails, as a guard does."""

    def visit_Call(self, n: ast.Call) -> ast.expr:
        self.generic_visit(n)
        if isinstance(n.func, ast.Name) and n.func.id == "require" and len(n.args) > 1:
            n.args = [ast.copy_location(ast.BoolOp(ast.And(), n.args), n)]
        return n


@cache
def concrete(f: FunctionType) -> FunctionType:
    """f as it stands, but for require(a, b), which is evaluated one condition after the other."""
    tree: ast.FunctionDef = _Lazy().visit(_copy(f))
    return _compiled(tree, f, {})


def located(file_of: Callable[..., Any], e: BaseException, files: set[str]) -> ModelError:
    """An error met while tracing, with the innermost line of the model's text that it came from."""
    line, file = file_of.__code__.co_firstlineno, file_of.__code__.co_filename
    tb = e.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename in files:
            file, line = tb.tb_frame.f_code.co_filename, tb.tb_lineno
        tb = tb.tb_next
    message = str(e) if isinstance(e, ModelError) else f"{type(e).__name__}: {e}"
    if isinstance(e, NameError | AttributeError):
        message = str(e)
    return ModelError(f"{short(file)}:{line}: {message}")
