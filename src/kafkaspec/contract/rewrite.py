"""The functions of a loaded module run another text for a while: one that watches them, or one with a fault.

The module's source is parsed, its tree changed, and compiled; then every function that was made of the old text gets
the code that stands at the same place in the new one: methods, contracts, nested functions and closures too. Nothing
that holds a function notices, and leaving the context puts the old code back. Answers that functions of the module keep
are forgotten whenever their text changes: they are another text's.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.abc import InspectLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any, Self

Place = tuple[str, int, str]
"""Of a code object: its qualified name, its first line, and the names of its arguments."""


def tree_of(module: ModuleType) -> ast.Module:
    """The syntax tree of a module's source."""
    return ast.parse(inspect.getsource(module))


@cache
def _names_in(module: ModuleType) -> list[str]:
    """The modules and names that a module imports from others by `from ... import`."""
    found = [n for n in ast.walk(tree_of(module)) if isinstance(n, ast.ImportFrom)]
    return [name for n in found for name in (str(n.module), *(f"{n.module}.{alias.name}" for alias in n.names))]


def modules_of(name: str) -> list[ModuleType]:
    """A module of a layer (`kafkaspec.spec.storage.batch`) and those of the layer that it is written with."""
    layer = ".".join(name.split(".")[:2]) + "."
    found: dict[str, ModuleType] = {}
    todo = [name]
    while todo:
        name = todo.pop(0)
        if name in found:
            continue
        found[name] = importlib.import_module(name)
        names = [n for n in _names_in(found[name]) if n.startswith(layer)]
        todo += [n for n in names if n in sys.modules and not hasattr(sys.modules[n], "__path__")]
    return list(found.values())


def keeping(module: ModuleType) -> list[Any]:
    """The functions of a module that keep answers, each with `cache_clear`."""
    return [f for f in vars(module).values() if hasattr(f, "cache_clear") and f.__module__ == module.__name__]


def functions() -> list[FunctionType]:
    """Every function that there is: all objects are looked through, which takes a second where there are many."""
    return [f for f in gc.get_objects() if type(f) is FunctionType]


class ModuleRewrite:
    """Within this context, which may be entered again and again, the functions of a module run the code of a changed
    tree, whose nodes know where they stand. In that no function is added or taken away, and none begins on another
    line; without one only the answers that are kept are forgotten. `names` are globals which the tree uses beside the
    module's own; `of`: `functions()`, which several rewrites may share."""

    def __init__(
        self,
        module: ModuleType,
        tree: ast.Module | None,
        names: Mapping[str, Any] | None = None,
        of: Sequence[FunctionType] | None = None,
    ) -> None:
        """ValueError: the tree has other functions, or the module has a name of `names`."""
        self._space, self._names = vars(module), dict(names or {})
        if taken := sorted(set(self._names) & set(self._space)):
            raise ValueError(f"{module.__name__} has a name {taken[0]} of its own")
        changed: dict[CodeType, CodeType] = {}
        if tree is not None:
            changed = _pairs(_code_of(module), compile(tree, str(module.__file__), "exec", dont_inherit=True))
        self._functions = [(f, f.__code__, changed[f.__code__]) for f in _running(changed, of)]
        self._keeping = keeping(module)

    def __len__(self) -> int:
        """How many functions run another code."""
        return len(self._functions)

    def provide(self, names: Mapping[str, Any]) -> None:
        """Within the context: others of the globals that the tree uses."""
        self._space.update(names)
        self._forget()

    def __enter__(self) -> Self:
        self._space.update(self._names)
        for f, _, code in self._functions:
            f.__code__ = code
        self._forget()
        return self

    def __exit__(self, *of: object) -> None:
        for f, code, _ in self._functions:
            f.__code__ = code
        for name in self._names:
            del self._space[name]
        self._forget()

    def _forget(self) -> None:
        for f in self._keeping:
            f.cache_clear()


def _code_of(module: ModuleType) -> CodeType:
    """The code that a module's own text comes to, which Python's own loaders keep beside it."""
    loader = module.__loader__
    kept = loader.get_code(module.__name__) if isinstance(loader, InspectLoader) else None
    return kept or compile(tree_of(module), str(module.__file__), "exec", dont_inherit=True)


def _running(codes: Collection[CodeType], of: Sequence[FunctionType] | None) -> list[FunctionType]:
    """Those of these functions, or of all, that run one of the codes. Of most the name says that they do not."""
    names = {code.co_qualname for code in codes}
    every = () if not names else functions() if of is None else of
    return [f for f in every if f.__code__.co_qualname in names and f.__code__ in codes]


def _pairs(old: CodeType, new: CodeType) -> dict[CodeType, CodeType]:
    """Each code object below `old` for which there is another at the same place in `new`; of several at one place, in
    their order."""
    before, after = _below(old), _below(new)
    if {p: len(c) for p, c in before.items()} != {p: len(c) for p, c in after.items()}:
        raise ValueError("the changed text has other functions")
    both = ((x, y) for place, codes in before.items() for x, y in zip(codes, after[place], strict=True))
    return {x: y for x, y in both if x != y}


def _below(code: CodeType) -> dict[Place, list[CodeType]]:
    """All code objects in one, by their places."""
    found: dict[Place, list[CodeType]] = defaultdict(list)
    todo = [code]
    while todo:
        for inner in todo.pop(0).co_consts:
            if isinstance(inner, CodeType):
                arguments = ",".join(inner.co_varnames[: inner.co_argcount + inner.co_kwonlyargcount])
                found[inner.co_qualname, inner.co_firstlineno, arguments].append(inner)
                todo.append(inner)
    return found
