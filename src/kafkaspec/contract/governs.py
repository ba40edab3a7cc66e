"""Which clauses govern what is observed: declared in the type, beside each field.

    class Observation:
        exists: Annotated[bool, governs("TXI-2", "TXI-9")]

says that these clauses decide whether the file is there. Where a target shows another value, one of them is broken: the
one that the operation states too, most likely. A part that declares none is governed by what governs the whole that it
stands in. What a question answers is governed by the question's clauses, and, where its type declares some for a part,
by those too. The declaration is for whoever explains a difference: JSON, decoders and ranges do not look at it.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Any, TypeVar

from kafkaspec.contract.codec import camel, is_named_tuple, is_record
from kafkaspec.contract.machine import Machine, Operation

F = TypeVar("F", bound=Callable[..., Any])
Ids = tuple[str, ...]
"""Of clauses."""


@dataclass(frozen=True)
class Governs:
    """The clauses that decide the value of the annotated part; of a mapping `keys` says it for those keys that a
    pattern matches, the first that does."""

    ids: Ids
    keys: tuple[tuple[str, Ids], ...] = field(default=())

    def of(self, key: str) -> tuple[str, Ids]:
        """The pattern that a key of a mapping matches, and the clauses that govern what stands there."""
        return next(((pattern, ids) for pattern, ids in self.keys if fnmatchcase(key, pattern)), ("", self.ids))


def governs(*ids: str, keys: Mapping[str, Sequence[str]] | None = None) -> Governs:
    """The annotation of a part that these clauses govern; of a mapping, which do what stands at a key, by patterns as
    of a shell."""
    return Governs(ids, tuple((pattern, tuple(own)) for pattern, own in (keys or {}).items()))


def opened(hint: Any) -> tuple[Any, Governs | None]:
    """An annotation without its extras, and what it declares."""
    if typing.get_origin(hint) is not Annotated:
        return hint, None
    inner, own = opened(typing.get_args(hint)[0])
    return inner, next((x for x in hint.__metadata__ if isinstance(x, Governs)), own)


def observed(machine: Machine[Any]) -> Any:
    """The annotation of what a machine shows of a state."""
    return typing.get_type_hints(machine.show, include_extras=True).get("return", Any)


def answered(op: Operation[Any]) -> Any:
    """The annotation of what an operation answers."""
    hint = op.annotations.get("return", Any)
    if op.returns == "step":
        arguments = typing.get_args(hint)
        return arguments[1] if len(arguments) > 1 else Any
    return type(None) if op.returns == "state" else hint


def has_fields(hint: Any) -> bool:
    """Whether values of an annotation stand as an object whose keys are known."""
    return is_record(hint) or typing.is_typeddict(hint)


def is_mapping(hint: Any) -> bool:
    """Whether they stand as an object of any keys."""
    made = typing.get_origin(hint) or hint
    return isinstance(made, type) and issubclass(made, Mapping) and not typing.is_typeddict(hint)


@functools.cache
def fields_of(hint: Any) -> Mapping[str, Any]:
    """The fields of such a type, or of a NamedTuple, as JSON names them, and their annotations."""
    hints = typing.get_type_hints(hint, include_extras=True)
    return hints if typing.is_typeddict(hint) else {camel(name): h for name, h in hints.items()}


def element(hint: Any, n: int) -> Any:
    """The annotation of an element of an array; Any where nothing is said."""
    if is_named_tuple(hint):
        return list(fields_of(hint).values())[n]
    arguments = typing.get_args(hint)
    one_for_all = len(arguments) == 1 or (len(arguments) == 2 and arguments[1] is ...)
    return arguments[0] if one_for_all else arguments[n] if n < len(arguments) else Any


def is_union(hint: Any) -> bool:
    """Whether values of an annotation may be of several types."""
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def parts_of(hint: Any) -> list[Any]:
    """The types that an annotation that is no record is made of."""
    return [] if typing.get_origin(hint) is typing.Literal else [h for h in typing.get_args(hint) if h is not ...]


def places(hint: Any, prefix: str = "", where: str = "") -> Iterator[tuple[str, Ids]]:
    """Each part of a type that declares clauses of that prefix, by its place in it, and these. A type that another
    subsystem has too may name clauses of that one."""
    hint, own = opened(hint)
    if own is not None:
        found = [(where, own.ids), *((f"{where}[{pattern}]", ids) for pattern, ids in own.keys)]
        yield from ((at, ids) for at, ids in found if any(id.startswith(prefix) for id in ids))
    for name, h in fields_of(hint).items() if has_fields(hint) or is_named_tuple(hint) else ():
        yield from places(h, prefix, f"{where}[]" if is_named_tuple(hint) else f"{where}.{name}")
    for h in parts_of(hint):
        yield from places(h, prefix, where)


def ungoverned(hint: Any, prefix: str = "", where: str = "") -> Iterator[str]:
    """The innermost parts of a type that no clause of that prefix governs."""
    hint, own = opened(hint)
    if own is not None and any(id.startswith(prefix) for id in own.ids):
        return
    if has_fields(hint) or is_named_tuple(hint):
        for name, h in fields_of(hint).items():
            yield from ungoverned(h, prefix, f"{where}.{name}")
    elif inner := [h for h in parts_of(hint) if h is not type(None)]:
        yield from dict.fromkeys(w for h in inner for w in ungoverned(h, prefix, where))
    else:
        yield where


REVEALS = "__reveals__"


def reveals(*ids: str) -> Callable[[F], F]:
    """Decorator of an operation: where an earlier call broke one of these clauses, it is this one that shows it, as a
    restart shows what is on the disk. It states none of them."""

    def note(function: F) -> F:
        vars(inspect.unwrap(function))[REVEALS] = ids
        return function

    return note


def revealed(op: Operation[Any]) -> Ids:
    """The clauses whose breach by an earlier call an operation shows."""
    return tuple(getattr(op.body, REVEALS, ()))
