"""The form of a text, asked before anything of it is read: names, class bodies and equality must mean to Python what
they mean to the language. Whatever could give them another meaning is refused."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import inspect
import reprlib
from collections import ChainMap
from types import FunctionType
from typing import Any

WORDS = {n: "builtins" for n in ("all", "any", "max", "min", "sum", "set", "frozenset", "len", "range")}
WORDS |= {"replace": "dataclasses", "require": "kafkaspec.language.model"}
"""The functions that the language gives a meaning of its own, with their modules: a text knows them by their names."""


def word(f: Any) -> bool:
    """Is it one of these functions?"""
    name = getattr(f, "__name__", "")
    return name in WORDS and getattr(f, "__module__", "") == WORDS[name]


def words(tree: ast.FunctionDef, f: FunctionType) -> tuple[int, str] | None:
    """What is wrong, with its line, if a function has two decorators, or gives one of the words another meaning."""
    if len(tree.decorator_list) > 1:
        return tree.lineno, f"{tree.name} has {len(tree.decorator_list)} decorators, of which one alone can count"
    given = tree.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs:
        return tree.lineno, f"{tree.name}: a parameter has a name and a type, without *, ** or /"
    names = ChainMap(dict(inspect.getclosurevars(f).nonlocals), f.__globals__, vars(builtins))
    for n in ast.walk(tree):
        if not isinstance(n, ast.Name | ast.arg):
            continue
        name = n.id if isinstance(n, ast.Name) else n.arg
        if name.startswith("__ks_"):
            return n.lineno, f"{name}: a name does not begin with __ks_"
        if name not in WORDS:
            continue
        v = names.get(name)
        native = word(v) and getattr(v, "__name__", "") == name
        if not native or not isinstance(n, ast.Name) or not isinstance(n.ctx, ast.Load):
            return n.lineno, f"{name} is a function of the language, and something else here: rename the other"
    return None


def once(tree: ast.Module) -> tuple[int, str] | None:
    """What is wrong, with its line, if two classes or functions of a file have one name: the earlier one were lost."""
    seen: dict[str, int] = {}
    for n in tree.body:
        if isinstance(n, ast.ClassDef | ast.FunctionDef):
            if n.name in seen:
                return n.lineno, f"{n.name} stands in line {seen[n.name]} already: rename one"
            seen[n.name] = n.lineno
    return None


def body(tree: ast.ClassDef) -> tuple[int, str] | None:
    """What is wrong, with its line, in a model's class: it has variables, `ghosts` and methods, each once."""
    seen: dict[str, int] = {}
    for n in tree.body:
        match n:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                continue
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                if name == "ghosts":
                    return n.lineno, "ghosts are written without a type, as in ghosts = ('n',)"
                if value is not None and "ClassVar" not in ast.unparse(n.annotation):
                    return n.lineno, f"{name} has no value here: assign it in @initial"
            case ast.Assign(targets=[ast.Name(id="ghosts" as name)]):
                pass
            case ast.FunctionDef(name=name, decorator_list=decorators):
                if len(decorators) != 1:
                    have = "no decorator" if not decorators else f"{len(decorators)} decorators"
                    return n.lineno, f"{name} has {have}: a method has one, such as @action() or @define"
            case _:
                return n.lineno, "a model's class has variables, ghosts and decorated methods alone"
        if name in seen:
            return n.lineno, f"{name} stands in line {seen[name]} already: rename one"
        seen[name] = n.lineno
    return None


def sort(cls: type, base: type) -> str:
    """What is wrong with a sort: its elements must be equal or not, and nothing else."""
    if cls.__bases__ != (base,) or type(cls) is not type(base):
        return f"{cls.__name__}: a sort extends Sort alone"
    return _with_methods(cls, "a sort", type("Plain", (base,), {}))


def enumeration(cls: type[enum.Enum]) -> str:
    """What is wrong with an enum: its members must be equal or not, and nothing else."""
    if cls.__bases__ != (enum.Enum,) or type(cls) is not enum.EnumMeta:
        return f"{cls.__name__}: an enum extends enum.Enum alone"
    if not len(cls):
        return f"{cls.__name__} has no members"
    return _with_methods(cls, "an enum", _Plain)


PRIVATE = "another name within a class, to Python: let it begin with one underscore"


def private(name: str) -> bool:
    """Does Python read a name as another one within a class?"""
    return name.startswith("__") and not name.endswith("__")


def record(cls: type[Any]) -> str:
    """What is wrong with a record: equal must mean that all of its fields are."""
    for c in cls.__mro__[:-1]:
        if not dataclasses.is_dataclass(c):
            return f"{cls.__name__}: a record extends nothing but records, not {c.__name__}"
        if not c.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            return f"{c.__name__}: a record is a frozen dataclass: @dataclass(frozen=True)"
        if not c.__dataclass_params__.eq:  # type: ignore[attr-defined]
            return f"{c.__name__}: records are equal if their fields are: without eq=False"
        if type(c) is not type:
            return f"{cls.__name__}: a record extends nothing but records, not {type(c).__name__}"
        if (wrong := _with_methods(c, "a record", _RecordMethods)) != "":
            return wrong
    if {f.name for f in dataclasses.fields(cls)} != inspect.signature(cls).parameters.keys():
        return f"{cls.__name__}: what a record is made of are its fields, without InitVar and init=False"
    for field in dataclasses.fields(cls):
        mangled = f"_{cls.__name__.lstrip('_')}__"
        if field.name.startswith(mangled):
            return f"{cls.__name__}.{field.name.removeprefix(mangled[:-2])}: {PRIVATE}"
        if not (field.compare and field.init) or field.hash is False:
            return f"{cls.__name__}.{field.name}: every field of a record is given and compared"
        if field.default_factory is not dataclasses.MISSING:
            return f"{cls.__name__}.{field.name}: a default is a value, not a function that makes one"
    return ""


class _Plain(enum.Enum):
    """What Python gives every enum."""


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class _RecordMethods:
    """What Python gives every record."""


_BY_PYTHON = ("<string>", dataclasses.__file__, reprlib.__file__, enum.__file__)
"""Where the methods come from that Python itself gives a dataclass or an enum."""


_OF_EVERY_CLASS = ("__annotations__", "__dict__", "__weakref__", "__firstlineno__", "__static_attributes__")


def _with_methods(cls: type, what: str, like: type) -> str:
    """What is wrong if a class has more than plain values and what Python gives a class `like` it."""
    for name, v in vars(cls).items():
        f = v.__func__ if isinstance(v, staticmethod | classmethod) else v
        known = name in vars(like) or name in _OF_EVERY_CLASS or name[:2] != "__"
        if isinstance(f, FunctionType):
            made_here = f.__code__.co_filename == "<string>" and "." not in f.__qualname__  # by exec() in its body
            more = f.__code__.co_filename not in _BY_PYTHON or made_here
        else:
            more = not known or isinstance(vars(like).get(name), FunctionType)
        if more or isinstance(f, property):
            return f"{cls.__name__}: {what} has no methods, such as {name}()"
    return ""
