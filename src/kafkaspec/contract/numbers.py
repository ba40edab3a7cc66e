"""The whole numbers of Kafka, as types of a spec's parameters: which values a caller may send.

Beyond them a spec promises nothing, and no engine goes there. A range is as wide as what Kafka's own class takes and
gives a meaning: an epoch of a producer has 16 bits, a sequence 32, and -1 is allowed where it stands for none. Within
it, a call that the preconditions allow has an answer, at a cost that does not grow with the number. Where it would, as
the length of a file does, the range is small.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from collections.abc import Sequence as Array
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final

from kafkaspec.contract.codec import camel, is_named_tuple, is_record


@dataclass(frozen=True)
class Within:
    """A whole number from `least` to `most`, both included."""

    least: int
    most: int

    def __contains__(self, value: int) -> bool:
        return self.least <= value <= self.most

    def __str__(self) -> str:
        bits = self.most.bit_length() + 1
        if bits > 8 and self.least == -(1 << bits - 1) and self.most == (1 << bits - 1) - 1:
            return f"of {bits} bits"
        return f"{number_text(self.least)} to {number_text(self.most)}"


@dataclass(frozen=True)
class Opaque:
    """Of a number that an implementation chooses by itself: another one may stand for it, of which the same one is
    given back. `none` is no such number, and stands for itself."""

    none: int


@dataclass(frozen=True)
class Label:
    """Of a number that says which record, when or who, not how much: a whole history can be asked again with so much
    added to each that is 0 or more."""

    by: int


def number_text(n: int) -> str:
    """A number as a reader knows it.

    >>> [number_text(n) for n in (-1, 1000, 2**31 - 1, 2**62, -(2**63))]
    ['-1', '1000', '2^31 - 1', '2^62', '-2^63']
    """
    size = abs(n)
    bits = size.bit_length()
    if bits < 15:
        return str(n)
    if size == 1 << bits - 1:
        return f"{'-' * (n < 0)}2^{bits - 1}"
    return f"2^{bits} - 1" if n == (1 << bits) - 1 else str(n)


Byte = Annotated[int, Within(0, 2**8 - 1)]
Int8 = Annotated[int, Within(-(2**7), 2**7 - 1)]
Int16 = Annotated[int, Within(-(2**15), 2**15 - 1)]
Int32 = Annotated[int, Within(-(2**31), 2**31 - 1)]
Int64 = Annotated[int, Within(-(2**63), 2**63 - 1)]
Offset = Annotated[int, Within(0, 2**62), Label(2**33)]
"""of a record: so far from the end of the type that a log can go on from it"""
LATEST: Final = 2**62
TODAY: Final = Label(1_700_000_000_000)
Timestamp = Annotated[int, Within(-1, LATEST), TODAY]
"""ms since 1970; -1: none"""
Time = Annotated[int, Within(0, LATEST), TODAY]
"""ms since 1970, of a clock"""
Duration = Annotated[int, Within(0, 2**53)]
"""ms that pass"""
TimeLimit = Annotated[int, Within(0, 2**63 - 1)]
"""ms, as configured; the greatest long means no limit"""
Timeout = Annotated[int, Within(1, 2**31 - 1)]
"""ms, as configured by an int"""
ProducerId = Annotated[int, Within(0, 2**63 - 1), Label(2**40)]
ProducerIdOrNone = Annotated[int, Within(-1, 2**63 - 1), Label(2**40)]
ProducerEpoch = Annotated[int, Within(0, 2**15 - 1)]
ProducerEpochOrNone = Annotated[int, Within(-1, 2**15 - 1)]
SequenceNumber = Annotated[int, Within(0, 2**31 - 1)]
SequenceNumberOrNone = Annotated[int, Within(-1, 2**31 - 1)]
LeaderEpoch = Annotated[int, Within(0, 2**31 - 1)]
LeaderEpochOrNone = Annotated[int, Within(-1, 2**31 - 1)]
CoordinatorEpoch = Annotated[int, Within(0, 2**31 - 1)]
BrokerEpoch = Annotated[int, Within(-1, 2**63 - 1)]
"""-1: not known"""
NodeId = Annotated[int, Within(0, 2**31 - 1)]
Position = Annotated[int, Within(0, 2**31 - 1)]
"""a place in a file, or the size of one that is not made for it, bytes"""
Room = Annotated[int, Within(0, 2**20)]
"""what a call takes of memory or disk, bytes: no more than a test may ask"""
Count = Annotated[int, Within(0, 2**31 - 1)]
Guard = Annotated[int, Within(0, 2**31 - 1), Opaque(none=0)]
"""of a verification"""
"""how many, at most or from 0, where no work is done for each"""
Few = Annotated[int, Within(0, 100)]
"""how many a call makes"""


def within(hint: Any) -> Within | None:
    """The range of an annotation that was got with `include_extras=True`; of `X | None`, that of X."""
    if typing.get_origin(hint) is Annotated:
        return next((x for x in hint.__metadata__ if isinstance(x, Within)), None)
    found = [r for h in typing.get_args(hint) if (r := within(h)) is not None] if _is_optional(hint) else []
    return found[0] if found else None


def opaque(hint: Any) -> Opaque | None:
    """Whether an annotation that was got with `include_extras=True` is of a number that an implementation chooses."""
    marks = hint.__metadata__ if typing.get_origin(hint) is Annotated else ()
    return next((x for x in marks if isinstance(x, Opaque)), None)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _is_optional(hint: Any) -> bool:
    return _is_union(hint) and type(None) in typing.get_args(hint)


def unlimited(hint: Any, where: str) -> Iterator[str]:
    """Where in values of an annotation there are whole numbers without a range; `where` says whose annotation it is."""
    if hint is int:
        yield where
    elif typing.get_origin(hint) is Annotated:
        if within(hint) is None:
            yield from unlimited(typing.get_args(hint)[0], where)
    elif is_record(hint) or is_named_tuple(hint) or typing.is_typeddict(hint):
        for name, field in _fields(hint).items():
            yield from unlimited(field, f"{where}.{name}")
    elif typing.get_origin(hint) is not typing.Literal:
        for h in typing.get_args(hint):
            yield from unlimited(h, where if _is_union(hint) else f"{where}[]")


@cache
def _fields(made: Any) -> Mapping[str, Any]:
    """The annotations of a class's fields, with their ranges."""
    return typing.get_type_hints(made, include_extras=True)


@cache
def in_range(hint: Any) -> Callable[[Any], bool] | None:
    """What says whether `beyond` finds nothing in a value, made once for an annotation; None if there are no ranges in
    it. Of a value of another form it may say no, and then `beyond` tells."""
    if typing.get_origin(hint) is Annotated:
        limits = within(hint)
        if limits is None:
            return in_range(typing.get_args(hint)[0])
        least, most = limits.least, limits.most
        return lambda value: type(value) is not int or least <= value <= most
    arguments = typing.get_args(hint)
    if _is_union(hint):
        members = [(_takes(h), f) for h in arguments if (f := in_range(h)) is not None]
        return (lambda value: all(f(value) for takes, f in members if takes(value))) if members else None
    if is_named_tuple(hint):
        return _in_order([in_range(h) for h in _fields(hint).values()])
    if is_record(hint):
        return _in_fields({n: f for n, h in _fields(hint).items() if (f := in_range(h)) is not None})
    made = typing.get_origin(hint) or hint
    if not isinstance(made, type) or not arguments:
        return None
    if issubclass(made, Mapping):
        value_fits = in_range(arguments[1])
        return None if value_fits is None else _of_each(value_fits, lambda value: value.values())
    if issubclass(made, tuple) and not (len(arguments) == 2 and arguments[1] is ...):
        return _in_order([in_range(h) for h in arguments])
    if issubclass(made, Array | Set):
        fits = in_range(arguments[0])
        return None if fits is None else _of_each(fits, lambda value: value)
    return None


def _of_each(fits: Callable[[Any], bool], parts: Callable[[Any], Iterable[Any]]) -> Callable[[Any], bool]:
    """Of an array or an object, if there is one."""
    return lambda value: value is None or all(map(fits, parts(value)))


def _in_order(parts: Array[Callable[[Any], bool] | None]) -> Callable[[Any], bool] | None:
    """Of an array with a place for each part."""
    asked = [(n, f) for n, f in enumerate(parts) if f is not None]
    most = len(parts)
    return (lambda value: len(value) == most and all(f(value[n]) for n, f in asked)) if asked else None


def _in_fields(parts: Mapping[str, Callable[[Any], bool]]) -> Callable[[Any], bool] | None:
    """Of a record, as JSON or as the spec has it."""
    asked = [(camel(n), n, f) for n, f in parts.items()]

    def fits(value: Any) -> bool:
        if isinstance(value, Mapping):
            return all(f(value.get(key)) for key, _, f in asked)
        return all(f(getattr(value, n)) for _, n, f in asked)

    return fits if asked else None


def beyond(hint: Any, value: Any, where: str) -> Iterator[str]:
    """Where in a value of an annotation, as JSON or as the spec has it, a whole number is outside its range."""
    if typing.get_origin(hint) is Annotated:
        limits = within(hint)
        if limits is not None and type(value) is int and value not in limits:
            yield f"{where}: {number_text(value)} is not {limits}"
        hint = typing.get_args(hint)[0]
    if _is_union(hint):
        # which of them it is, is told by what stands there: numbers are asked of those that are numbers
        for h in typing.get_args(hint):
            if _takes(h)(value):
                yield from beyond(h, value, where)
        return
    for part, there, name in _parts(hint, value):
        yield from beyond(part, there, f"{where}{name}")


def relabelled(hint: Any, value: Any) -> Any:
    """A value of an annotation, as JSON, with what its labels say added to its numbers.

    >>> relabelled(dict[str, tuple[Offset, int]], {"x": [5, 5]})
    {'x': [8589934597, 5]}
    """
    if typing.get_origin(hint) is Annotated:
        label = next((x for x in hint.__metadata__ if isinstance(x, Label)), None)
        if label is not None:
            return value + label.by if type(value) is int and value >= 0 else value
        hint = typing.get_args(hint)[0]
    if _is_union(hint):
        return next((relabelled(h, value) for h in typing.get_args(hint) if _takes(h)(value)), value)
    arguments = typing.get_args(hint)
    if isinstance(value, Mapping):
        if is_record(hint) or typing.is_typeddict(hint):
            own = {camel(n): h for n, h in _fields(hint).items()}
            return {k: relabelled(own.get(k), v) for k, v in value.items()}
        return {k: relabelled(arguments[1], v) if len(arguments) > 1 else v for k, v in value.items()}
    if isinstance(value, list | tuple):
        if is_named_tuple(hint):
            return [*map(relabelled, _fields(hint).values(), value)]
        if typing.get_origin(hint) is tuple and arguments[1:] != (...,):
            return [*map(relabelled, arguments, value)]
        return [relabelled(arguments[0], v) for v in value] if arguments else [*value]
    return value


@cache
def _takes(hint: Any) -> Callable[[Any], bool]:
    """Of a member of a union: whether a value is one of it that may have numbers."""
    base = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
    made = typing.get_origin(base) or base
    if base is int:
        return lambda value: type(value) is int
    if is_record(base) or (isinstance(made, type) and issubclass(made, Mapping)):
        return lambda value: isinstance(value, Mapping) or (isinstance(made, type) and isinstance(value, made))
    if isinstance(made, type) and issubclass(made, Array | Set) and not issubclass(made, str | bytes):
        return lambda value: isinstance(value, Array | Set) and not isinstance(value, str | bytes)
    return lambda value: False


def _parts(hint: Any, value: Any) -> Iterator[tuple[Any, Any, str]]:
    """What a value is made of: the annotation of each part, the part, and its name."""
    made, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if is_named_tuple(hint):
        fields = _fields(hint)
        yield from ((h, v, f".{n}") for (n, h), v in zip(fields.items(), value, strict=True))
    elif is_record(hint):
        get: Callable[[str], Any] = (
            (lambda n: value.get(camel(n))) if isinstance(value, Mapping) else (lambda n: getattr(value, n))
        )
        for n, h in _fields(hint).items():
            yield h, get(n), f".{n}"
    elif not isinstance(made, type) or value is None or not arguments:
        return
    elif issubclass(made, Mapping):
        yield from ((arguments[1], v, f"[{k!r}]") for k, v in value.items())
    elif issubclass(made, tuple) and not (len(arguments) == 2 and arguments[1] is ...):
        yield from ((h, v, f"[{n}]") for n, (h, v) in enumerate(zip(arguments, value, strict=True)))
    elif issubclass(made, Array | Set):
        yield from ((arguments[0], v, f"[{n}]") for n, v in enumerate(value))
