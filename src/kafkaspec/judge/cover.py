"""Which branches and boundaries of a spec's rules are taken: the spec's functions, watched at every condition.

A *site* is a condition in the text of a rule. A comparison of numbers has three *sides*, below, at and above; any other
condition two. A rule that a fault could hide in is one of whose sites some side was never taken.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import itertools
import operator
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final, Literal

from kafkaspec.contract.machine import Machine, Operation, Refused
from kafkaspec.contract.rewrite import ModuleRewrite, functions, keeping, modules_of, tree_of

MOST_DECISIONS: Final = 100_000
"""Of one call, in which a condition is decided otherwise: no call decides so much."""
SIDES: Final = 3
"""Numbers of a site's sides: `SIDES * site`, and the two after it."""
WAYS: Final = {"order": ("below", "at", "above"), "same": ("alike", "unlike"), "truth": ("holds", "does not hold")}
ORDER: Final = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
SAME: Final = {ast.Eq: "eq", ast.NotEq: "ne"}


@dataclass(frozen=True)
class Site:
    """A condition in a spec's text."""

    module: str
    line: int
    text: str
    kind: Literal["order", "same", "truth"]
    function: str
    """the qualified name of the function that it stands in"""
    clauses: tuple[str, ...]
    """that of the refusal which it decides, or those which the function states"""
    refusal: tuple[str, str] | None = None
    """clause and class of the refusal which it decides, where the text says both"""

    @property
    def where(self) -> str:
        return f"{self.module.removeprefix('kafkaspec.').replace('.', '/')}.py:{self.line}"


@dataclass
class Cover:
    """The sites of a machine's rules; while it watches, `taken` grows by what every call takes."""

    sites: list[Site] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    """numbers of sides; whoever watches call by call begins each"""
    keeping: Sequence[Any] = ()
    """the functions that keep answers, and whose calls take sides"""

    def begin(self) -> None:
        """Before a call: nothing is taken yet, and no answer is kept that would hide the sides of its function. Which
        are kept depends on the candidates that were made before, in another campaign of this process too."""
        self.taken.clear()
        for function in self._hiding:
            function.cache_clear()

    @cached_property
    def _hiding(self) -> Sequence[Any]:
        """Those whose kept answers hide sides: all, where there is one that does not keep the sides too, as it may be
        asked by the others."""
        return () if all(hasattr(function, "watch") for function in self.keeping) else self.keeping

    def watch(self, *, begin: bool) -> None:
        """From now on, or no more, what is taken is kept with the answers."""
        for function in () if self._hiding else self.keeping:
            function.watch(self.taken if begin else None)

    def side(self, number: int) -> str:
        site = self.sites[number // SIDES]
        return f"{site.where}: {site.text} {WAYS[site.kind][number % SIDES]}"

    def watchers(self) -> dict[str, Callable[..., Any]]:
        """What the changed texts call."""
        add = self.taken.add

        def lt(a: Any, b: Any, n: int) -> bool:
            below: bool = a < b
            add(n if below else n + 1 if a == b else n + 2)
            return below

        def le(a: Any, b: Any, n: int) -> bool:
            most: bool = a <= b
            add(n + 2 if not most else n + 1 if a == b else n)
            return most

        def gt(a: Any, b: Any, n: int) -> bool:
            above: bool = a > b
            add(n + 2 if above else n + 1 if a == b else n)
            return above

        def ge(a: Any, b: Any, n: int) -> bool:
            least: bool = a >= b
            add(n if not least else n + 1 if a == b else n + 2)
            return least

        def eq(a: Any, b: Any, n: int) -> bool:
            alike: bool = a == b
            add(n if alike else n + 1)
            return alike

        def ne(a: Any, b: Any, n: int) -> bool:
            unlike: bool = a != b
            add(n + 1 if unlike else n)
            return unlike

        def truth(x: Any, n: int) -> Any:
            add(n if x else n + 1)
            return x

        return {f"_site_{f.__name__}": f for f in (lt, le, gt, ge, eq, ne, truth)}


class _WatcherInserter(ast.NodeTransformer):
    """Puts a watcher at every condition in the functions of a module that `wanted` names, as `Class.method`."""

    def __init__(self, module: ModuleType, wanted: Collection[str], sites: list[Site]) -> None:
        self.module, self.wanted, self.sites = module, wanted, sites
        self.names: list[str] = []
        self.stated: dict[str, tuple[str, ...]] = {f.__qualname__: stated_by(f) for f in _defined(module)}
        self.refusal: tuple[str, str] | None = None
        """clause and class ("" if the text does not say it) of the refusal that the condition at hand decides"""

    # ---- functions

    def _scope(self, node: Any, *bodies: Any) -> Any:
        self.names.append(node.name)
        for statements in bodies:
            statements[:] = [self.visit(s) for s in statements]
        self.names.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return self._scope(node, node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if _within((*self.names, node.name), self.wanted):
            return self._scope(node, node.body)  # neither the contracts nor the defaults
        return self._scope(node, [s for s in node.body if isinstance(s, ast.FunctionDef)])  # changed in place

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) or self.names:
            return super().visit(node)
        return node

    # ---- conditions

    def _site(self, node: ast.expr, kind: Literal["order", "same", "truth"]) -> ast.Constant:
        function = ".".join(self.names)
        clauses = self.stated.get(function, ()) if self.refusal is None else self.refusal[:1]
        said = self.refusal if self.refusal is not None and self.refusal[1] else None
        self.sites.append(Site(self.module.__name__, node.lineno, ast.unparse(node), kind, function, clauses, said))
        return ast.copy_location(ast.Constant((len(self.sites) - 1) * SIDES), node)

    def _called(self, name: str, node: ast.expr, *arguments: ast.expr) -> ast.expr:
        watcher = ast.copy_location(ast.Name(f"_site_{name}", ast.Load()), node)
        return ast.copy_location(ast.Call(watcher, list(arguments), []), node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        kinds = [type(op) for op in node.ops]
        if not all(k in ORDER or k in SAME for k in kinds):
            return self.generic_visit(node)
        operands = [node.left, *node.comparators]
        if len(kinds) > 1 and not all(isinstance(x, (ast.Name, ast.Attribute, ast.Constant)) for x in operands[1:-1]):
            return self.generic_visit(node)
        parts: list[ast.expr] = []
        for k, a, b in zip(kinds, operands, operands[1:], strict=False):
            pair = ast.copy_location(ast.Compare(a, [k()], [b]), node)
            site = self._site(pair, "order" if k in ORDER else "same")
            parts.append(self._called((ORDER | SAME)[k], node, self.visit(_copy(a)), self.visit(_copy(b)), site))
        return parts[0] if len(parts) == 1 else ast.copy_location(ast.BoolOp(ast.And(), parts), node)

    def _truth(self, test: ast.expr) -> ast.expr:
        """A condition as a whole: nothing more to watch where its parts are."""
        if isinstance(test, ast.BoolOp):
            test.values = [self._truth(v) for v in test.values]
            return test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test.operand = self._truth(test.operand)
            return test
        if isinstance(test, ast.Compare) and all(type(op) in ORDER or type(op) in SAME for op in test.ops):
            return self.visit(test)  # type: ignore[no-any-return]
        if isinstance(test, ast.Constant):
            return test
        site = self._site(test, "truth")
        return self._called("truth", test, self.visit(test), site)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        *conditions, last = node.values
        node.values = [*(self._truth(v) for v in conditions), self.visit(last)]
        return node

    def visit_If(self, node: ast.If) -> Any:
        before, self.refusal = self.refusal, self._refused(node.body[-1]) or self.refusal
        node.test = self._truth(node.test)
        self.refusal = before
        node.body = [self.visit(s) for s in node.body]
        node.orelse = [self.visit(s) for s in node.orelse]
        return node

    def visit_While(self, node: ast.While) -> Any:
        node.test = self._truth(node.test)
        node.body = [self.visit(s) for s in node.body]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return ast.copy_location(
            ast.IfExp(self._truth(node.test), self.visit(node.body), self.visit(node.orelse)), node
        )

    def _refused(self, node: ast.stmt) -> tuple[str, str] | None:
        """Clause and class of the refusal that a branch ends in, if it does; "" for a class that is not said."""
        named = vars(self.module)
        if isinstance(node, ast.Raise):
            raised = _raised(node, named)
            return (raised[0], raised[1][0] if len(raised[1]) == 1 else "") if raised else None
        if not isinstance(node, ast.Return) or node.value is None:
            return None
        for x in ast.walk(node.value):
            known = named.get(x.id) if isinstance(x, ast.Name) else None
            if isinstance(known, Refused):
                return known.clause, known.error
            if (
                isinstance(x, ast.Call)
                and getattr(x.func, "id", "") == "Refused"
                and isinstance(x.args[0], ast.Constant)
            ):
                error = named.get(x.args[1].id) if len(x.args) > 1 and isinstance(x.args[1], ast.Name) else ""
                return str(x.args[0].value), error if isinstance(error, str) else ""
        return None

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        node.iter = self.visit(node.iter)
        node.ifs = [self._truth(test) for test in node.ifs]
        return node


CLAUSE: Final = re.compile(r"[A-Z]{3}-\d+")


def _raised(node: ast.Raise, named: Mapping[str, Any]) -> tuple[str, tuple[str, ...]] | None:
    """The clause of a refusal that is raised, `raise Denied("LEC-1", ERROR)`, and the classes that it may have."""
    call = node.exc
    if not isinstance(call, ast.Call) or not call.args:
        return None
    first, *others = call.args
    if not (isinstance(first, ast.Constant) and isinstance(first.value, str) and CLAUSE.fullmatch(first.value)):
        return None
    names = [x.id for x in ast.walk(others[0]) if isinstance(x, ast.Name)] if others else []
    classes = (named.get(name) for name in names)
    return first.value, tuple(c for c in classes if isinstance(c, str))


@cache
def _raised_by(module: ModuleType) -> Mapping[str, frozenset[Refused]]:
    """The refusals that the functions of a module raise, by qualified name."""
    found: dict[str, set[Refused]] = {}
    named = vars(module)

    def walk(node: ast.AST, names: tuple[str, ...]) -> None:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names = (*names, node.name)
        if isinstance(node, ast.Raise) and (raised := _raised(node, named)) is not None:
            clause, classes = raised
            found.setdefault(".".join(names), set()).update(Refused(clause, c) for c in classes)
        for child in ast.iter_child_nodes(node):
            walk(child, names)

    walk(tree_of(module), ())
    return {name: frozenset(refusals) for name, refusals in found.items()}


def _within(names: Sequence[str], functions: Collection[str]) -> bool:
    """Whether a function, by the names of what it stands in and its own, is one of those or stands in one."""
    return any(".".join(names[: n + 1]) in functions for n in range(len(names)))


def _copy(node: ast.expr) -> ast.expr:
    """A chain's inner operand stands in two comparisons."""
    return ast.copy_location(ast.parse(ast.unparse(node), mode="eval").body, node)


def reached(
    machine: Machine[Any], modules: Sequence[ModuleType], operations: Iterable[Operation[Any]] | None = None
) -> set[tuple[str, str]]:
    """The functions that the bodies of operations may come to, by module and name; without any, those of the machine,
    its start and what is shown of a state too. A method may be meant wherever its name is used."""
    return _names_of(functions_of(machine, modules, operations))


def _names_of(functions: Iterable[FunctionType]) -> set[tuple[str, str]]:
    return {(f.__module__, f.__qualname__.replace(".<locals>", "")) for f in functions}


def functions_of(
    machine: Machine[Any], modules: Sequence[ModuleType], operations: Iterable[Operation[Any]] | None = None
) -> set[FunctionType]:
    """The same functions."""
    todo: list[Any] = [op.body for op in operations or machine.operations.values()]
    todo += [machine.show, machine.initial] if operations is None else []
    return _called_from(todo, modules)


def _called_from(todo: list[Any], modules: Sequence[ModuleType]) -> set[FunctionType]:
    """These, and the functions of the modules that they may come to."""
    methods: dict[str, list[FunctionType]] = {}
    for module in modules:
        for f in _defined(module):
            if "." in f.__qualname__:
                methods.setdefault(f.__name__, []).append(f)
    homes = {module.__name__ for module in modules}
    known: set[FunctionType] = set()
    while todo:
        f = inspect.unwrap(todo.pop())
        if not isinstance(f, FunctionType) or f in known:
            continue
        known.add(f)
        names = set(_names(f.__code__))
        for name in names:
            todo += methods.get(name, ())
            todo += _meant(f.__globals__.get(name), names)
    return {f for f in known if f.__module__ in homes}


def _meant(value: Any, names: Collection[str]) -> Iterable[Any]:
    """The functions that a global may stand for: itself, those of a table, those of a module that are named."""
    if isinstance(value, ModuleType):
        return [x for name, x in vars(value).items() if name in names]
    if isinstance(value, type):
        return [x for name, x in vars(value).items() if name.startswith("__")]
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, (tuple, list)) else [getattr(value, "func", value)]


def _defined(module: ModuleType) -> Iterator[FunctionType]:
    for value in [*vars(module).values()]:
        if isinstance(value, type) and value.__module__ == module.__name__:
            for x in vars(value).values():
                f = inspect.unwrap(getattr(x, "fget", None) or getattr(x, "__func__", None) or getattr(x, "func", x))
                if isinstance(f, FunctionType):
                    yield f
        elif callable(value):
            f = inspect.unwrap(value)
            if isinstance(f, FunctionType) and f.__module__ == module.__name__:
                yield f


def stated_by(function: FunctionType) -> tuple[str, ...]:
    """The clauses that a function states."""
    return tuple(getattr(function, "__clauses__", ()))


def _names(code: Any) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if hasattr(inner, "co_names"):
            yield from _names(inner)


_REFUSALS: dict[tuple[int, int], tuple[Machine[Any], Operation[Any] | None, Sequence[Refused]]] = {}
"""by the identities of the machine and of the operation, which stay as long as they are here"""


def refusals_of(machine: Machine[Any], operation: Operation[Any] | None = None) -> Sequence[Refused]:
    """The refusals that the functions of an operation, or of all, name or raise, in the order of their clauses'
    numbers."""
    key = id(machine), id(operation)
    if key not in _REFUSALS:
        _REFUSALS[key] = machine, operation, _refusals_of(machine, operation)
    return _REFUSALS[key][2]


def _refusals_of(machine: Machine[Any], operation: Operation[Any] | None) -> Sequence[Refused]:
    found: set[Refused] = set()
    modules = {module.__name__: module for module in modules_of(machine.home)}
    for f in functions_of(machine, [*modules.values()], None if operation is None else [operation]):
        named = (f.__globals__.get(name) for name in _names(f.__code__))
        found.update(x for x in named if isinstance(x, Refused))
        found |= _raised_by(modules[f.__module__]).get(f.__qualname__.replace(".<locals>", ""), frozenset())
    return sorted(found, key=lambda r: (r.clause[:3], int(r.clause[4:] or 0), r.error))


_KNOWN: dict[int, tuple[Machine[Any], Cover, Sequence[ModuleRewrite]]] = {}
"""by the identity of the machine"""


def _texts(machine: Machine[Any]) -> tuple[Cover, Sequence[ModuleRewrite]]:
    if id(machine) not in _KNOWN:
        cover = Cover()
        modules = modules_of(machine.home)
        wanted = reached(machine, modules)
        watchers, every = cover.watchers(), functions()
        texts = []
        for module in modules:
            tree, before = tree_of(module), len(cover.sites)
            _WatcherInserter(module, {f for home, f in wanted if home == module.__name__}, cover.sites).visit(tree)
            changed = tree if len(cover.sites) > before else None
            texts.append(ModuleRewrite(module, changed, watchers, every))
        within = {(site.module, site.function) for site in cover.sites}
        cover.keeping = [f for f in keeping_in(machine) if within & _names_of(_called_from([f], modules))]
        _KNOWN[id(machine)] = machine, cover, texts
    return _KNOWN[id(machine)][1:]


@contextlib.contextmanager
def watched(machine: Machine[Any]) -> Iterator[Cover]:
    """While in it, every call of the machine's operations notes the sides that it takes. Not to be entered twice."""
    cover, texts = _texts(machine)
    with ExitStack() as stack:
        for text in texts:
            stack.enter_context(text)
        cover.watch(begin=True)
        stack.callback(cover.watch, begin=False)
        yield cover


def sides_of(machine: Machine[Any], operations: Collection[Operation[Any]]) -> list[tuple[int, Site, str]]:
    """All sides that calls of these operations may take: number, site, and which it is."""
    cover, _ = _texts(machine)
    functions = reached(machine, modules_of(machine.home), operations)
    out = []
    for n, site in enumerate(cover.sites):
        if _within(site.function.split("."), {f for home, f in functions if home == site.module}):
            out += [(n * SIDES + i, site, way) for i, way in enumerate(WAYS[site.kind])]
    return out


How = Literal["shifted", "negated", "held", "failed"]
"""How a condition is decided otherwise: only where two numbers are equal, always, to hold always, or never."""


@contextlib.contextmanager
def otherwise(machine: Machine[Any], number: int, how: How) -> Iterator[list[tuple[str, str]]]:
    """Within `watched`: the condition of that number is decided otherwise. The list gets the functions, by module and
    name, in which that made a difference first: the innermost first. What is called there may raise anything."""
    cover, texts = _texts(machine)
    within: list[tuple[str, str]] = []
    for text in texts:
        text.provide(_deciding(number * SIDES, how, within))
    try:
        yield within
    finally:
        for text in texts:
            text.provide(cover.watchers())


class Endless(Exception):
    """Decided otherwise, a condition leads to a loop that does not end."""


def _callers() -> Iterator[tuple[str, str]]:
    """The functions of specs that are under way, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module != __name__:
            yield module, frame.f_code.co_qualname.partition(".<locals>")[0]
        frame = frame.f_back


def prefix_of(machine: Machine[Any]) -> str:
    """Of the clauses of a machine's subsystem, with its dash; "" for one that states none."""
    return next((id[:4] for op in machine.operations.values() for id in op.clauses), "")


def stated_in(machine: Machine[Any]) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """The clauses that the functions of a machine's modules state, by module and name."""
    return _stated_in(machine.home)


@cache
def _stated_in(home: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
    defined = (f for module in modules_of(home) for f in _defined(module))
    return {(f.__module__, f.__qualname__): ids for f in defined if (ids := stated_by(f))}


def keeping_in(machine: Machine[Any]) -> Sequence[Any]:
    """The functions of a machine's modules that keep answers, each with `cache_clear`."""
    return _keeping_in(machine.home)


@cache
def _keeping_in(home: str) -> Sequence[Any]:
    return [f for module in modules_of(home) for f in keeping(module)]


def _deciding(number: int, how: How, within: list[tuple[str, str]]) -> dict[str, Callable[..., Any]]:
    """What the changed texts call so that one condition is decided otherwise. They raise Endless."""
    decisions = itertools.count(1)

    def counted() -> None:
        if next(decisions) > MOST_DECISIONS:
            raise Endless

    def changed(right: Any, at: bool | None) -> Any:
        """What is decided, where this is right; `at`: what is right where two numbers are equal, if they are."""
        if how == "shifted":
            made = right if at is None else not at
        else:
            made = not right if how == "negated" else how == "held"
        if not within and bool(made) != bool(right):
            within.extend(_callers())
        return right if bool(made) == bool(right) else made

    def deciding(decide: Callable[[Any, Any], bool], at: bool) -> Callable[[Any, Any, int], bool]:
        def decided(a: Any, b: Any, n: int) -> Any:
            counted()
            right = decide(a, b)
            return right if n != number else changed(right, at if a == b else None)

        return decided

    def truth(x: Any, n: int) -> Any:
        counted()
        return x if n != number else changed(x, None)

    made = {
        "lt": (operator.lt, False),
        "le": (operator.le, True),
        "gt": (operator.gt, False),
        "ge": (operator.ge, True),
    }
    made |= {"eq": (operator.eq, True), "ne": (operator.ne, False)}
    return {f"_site_{name}": deciding(*of) for name, of in made.items()} | {"_site_truth": truth}
