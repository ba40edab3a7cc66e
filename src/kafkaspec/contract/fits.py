"""Whether JSON is of the type that a spec's function takes.

A recording may say anything, and a history that is made smaller is tried with much. What a function is not written for
could fail deep within it, or, worse, be kept in the state and fail later; so arguments are looked at before it is
called. The types are those of the judge's protocol.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import MISSING
from functools import cache
from typing import Annotated, Any, Final, Literal

from kafkaspec.contract.codec import camel, is_named_tuple, is_partial, is_record
from kafkaspec.contract.machine import Json, Operation
from kafkaspec.contract.numbers import within

LARGEST: Final = (1 << 63) - 1
"""Integers have 64 bits, signed. (A JSON reader gives a smaller one as a double.)"""

_SCALARS: Final[Mapping[Any, str]] = {
    type(None): "{v} is None",
    bool: "type({v}) is bool",
    int: f"(type({{v}}) is int and {{v}} <= {LARGEST})",
    float: "type({v}) in (float, int)",
    str: "type({v}) is str",
    bytes: "type({v}) is str",
}
"""What is true of a value {v} of that type."""


def parts(
    hint: Any,
) -> tuple[Literal["any", "scalar", "range", "literal", "union", "array", "tuple", "map", "record"], tuple[Any, ...]]:
    """Which kind of type a Python annotation is, as JSON has it, and the types that it is made of."""
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is Annotated and within(hint) is None:
        return parts(arguments[0])
    if origin is Annotated:
        return "range", (within(hint),)
    if hint is Any:
        return "any", ()
    if hint in _SCALARS:
        return "scalar", (hint,)
    if typing.is_typeddict(hint) or is_record(hint):
        return "record", (hint,)
    if is_named_tuple(hint):
        return "tuple", tuple(typing.get_type_hints(hint, include_extras=True).values())
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return "literal", tuple(e.value for e in hint)
    if origin is Literal:
        return "literal", arguments
    if origin in (typing.Union, types.UnionType):
        return "union", arguments
    made = origin or hint
    if isinstance(made, type):
        if issubclass(made, tuple) and not (len(arguments) == 2 and arguments[1] is ...):
            return "tuple", arguments
        if issubclass(made, Mapping):
            return "map", (arguments or (str, Any))[1:]
        if issubclass(made, Sequence | Set):
            return "array", (arguments or (Any,))[:1]
    raise TypeError(f"{hint!r} is no type of JSON")


@cache
def optional_fields(record: Any) -> frozenset[str]:
    """The fields of a record type, by their names in JSON, that may be left out of an argument."""
    if not is_record(record):
        return frozenset(record.__optional_keys__)
    every = is_partial(record)
    return frozenset(camel(f.name) for f in dataclasses.fields(record) if every or "optional" in f.metadata)


@cache
def fits(hint: Any) -> Callable[[Json], bool]:
    """Says of a JSON value whether it is of that type."""
    env: dict[str, Any] = {}
    made: Callable[[Json], bool] = eval(f"lambda v: {_test(hint, 'v', env)}", env)
    return made


def _test(hint: Any, v: str, env: dict[str, Any]) -> str:
    """An expression that is true if the value that `v` names is of that type; what it needs is put into `env`."""
    what, of = parts(hint)
    known = f"f{len(env)}"
    match what:
        case "any":
            return "True"
        case "scalar":
            return _SCALARS[of[0]].format(v=v)
        case "union":
            return "(" + " or ".join(_test(h, v, env) for h in of) + ")"
        case "range":
            return f"(type({v}) is int and {of[0].least} <= {v} <= {of[0].most})"
        case "literal":
            env[known] = of
            return f"(type({v}) in (str, int) and {v} in {known})"
        case "array":
            env[known] = fits(of[0])
            return f"(type({v}) is list and all(map({known}, {v})))"
        case "map":
            env[known] = fits(of[0])
            return f"(type({v}) is dict and all(map({known}, {v}.values())))"
        case "tuple":
            env[known] = _tuple([fits(h) for h in of])
            return f"(type({v}) is list and {known}({v}))"
        case _:
            env[known] = _record(of[0])
            return f"(type({v}) is dict and {known}({v}))"


def _tuple(inner: list[Callable[[Json], bool]]) -> Callable[[list[Json]], bool]:
    return lambda value: len(value) == len(inner) and all(f(v) for f, v in zip(inner, value, strict=True))


def _record(record: Any) -> Callable[[dict[str, Json]], bool]:
    """A dataclass's fields may be left out where they have a default."""
    hints = typing.get_type_hints(record)
    if is_record(record):
        fields = {camel(f.name): f for f in dataclasses.fields(record)}
        inner = {name: fits(hints[f.name]) for name, f in fields.items()}
        needed = {n for n, f in fields.items() if f.default is MISSING and f.default_factory is MISSING}
    else:
        inner = {name: fits(hint) for name, hint in hints.items()}
        needed = set(record.__required_keys__)
    return lambda value: needed <= value.keys() <= inner.keys() and all(inner[k](v) for k, v in value.items())


def arguments_fit(op: Operation[Any]) -> Callable[[Mapping[str, Json]], bool]:
    """Says of the arguments of a call, by their names in traces, whether each is of its type. They are all there, but
    for those that have a default."""
    return _arguments_fit(tuple((t, op.hints.get(p, Any), p in op.defaults) for t, p in op.parameters.items()))


@cache
def _arguments_fit(parameters: tuple[tuple[str, Any, bool], ...]) -> Callable[[Mapping[str, Json]], bool]:
    """The same, of names, types, and whether there is a default."""
    env: dict[str, Any] = {}
    tests: list[str] = []
    for name, hint, may_be_left_out in parameters:
        value = f"a{len(tests)}"
        test = _test(hint, value, env)
        if test != "True":
            given = test.replace(value, f"({value} := a[{name!r}])", 1)
            tests.append(f"({name!r} not in a or {given})" if may_be_left_out else given)
    made: Callable[[Mapping[str, Json]], bool] = eval(f"lambda a: {' and '.join(tests) or True}", env)
    return made
