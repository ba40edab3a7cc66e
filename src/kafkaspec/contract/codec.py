"""JSON from types: how the values of a spec stand in traces and in the judge's protocol.

| Python | JSON |
|---|---|
| None, bool, int, float, str | the same |
| bytes | hexadecimal digits, two a byte |
| a NamedTuple, a tuple, a list | an array |
| a set | an array, sorted, that may be shown in any order |
| `Unordered` | an array that may be shown in any order |
| a mapping with keys that are strings | an object |
| a dataclass | an object: the fields by their names in camelCase |
| an Enum | its value |

A spec's function therefore takes and returns types of its own, and nobody writes the conversion. `encode` goes by the
value, `decoder` by the annotation of a parameter. Values that are JSON already are passed on as they are. Which member
of a union is meant is told by what stands there: an object, an array, or neither.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache
from typing import Any, Final, Literal, TypeVar

import orjson

T = TypeVar("T")
Json = Any
"""A JSON value as Python has it: None, bool, int, float, str, list, dict with str keys."""
Decode = Callable[[Json], Any]


class Fields(dict[str, Any]):
    """A record level of an observation: a recording may leave keys of it out. A plain dict must match whole."""


class Unordered(list[T]):
    """An array whose order says nothing: a recording may show its elements in another one."""


def partial(cls: type[T]) -> type[T]:
    """Decorator of a dataclass: a recording may leave keys of it out. A field that is None by default is itself left
    out while it is None."""
    cls.__partial__ = True  # type: ignore[attr-defined]
    return cls


def optional(default: T) -> T:
    """The default of a dataclass's field that JSON may leave out of an argument."""
    return dataclasses.field(default=default, metadata={"optional": True})


def is_partial(cls: type) -> bool:
    """Whether a recording may leave keys of that dataclass out."""
    return "__partial__" in vars(cls)


def left_out(cls: Any) -> frozenset[str]:
    """The fields of a dataclass that are not written while they are None."""
    return frozenset(f.name for f in dataclasses.fields(cls) if f.default is None) if is_partial(cls) else frozenset()


def camel(name: str) -> str:
    """A Python name as traces write it.

    >>> camel("log_end_offset"), camel("from_")
    ('logEndOffset', 'from')
    """
    head, *rest = name.rstrip("_").split("_")
    return head + "".join(w.capitalize() for w in rest)


def view(shape: type[T], thing: Any, **more: Any) -> T:
    """A dataclass made of a thing that has more: its fields are the thing's attributes of these names, but for those
    that are given."""
    made: T = _viewer(shape, *more)(thing, more)  # type: ignore[arg-type]
    return made


def replace(thing: T, /, **changes: Any) -> T:
    """The same as `dataclasses.replace`, faster: for states, of which walks make very many. All fields are the
    constructor's."""
    made: T = _viewer(type(thing), *changes)(thing, changes)  # type: ignore[arg-type]
    return made


@cache
def _viewer(shape: Any, *given: str) -> Callable[[Any, Mapping[str, Any]], Any]:
    """What makes such a view, compiled: walks make very many."""
    known = {f.name for f in dataclasses.fields(shape)}
    if not known.issuperset(given):
        raise TypeError(f"{shape.__qualname__} has no field {', '.join(n for n in given if n not in known)}")
    values = [
        (f"{f.name}=" if f.kw_only is True else "") + (f"more[{f.name!r}]" if f.name in given else f"thing.{f.name}")
        for f in sorted(dataclasses.fields(shape), key=lambda f: f.kw_only is True)  # as arguments must stand
    ]
    made: Callable[[Any, Mapping[str, Any]], Any] = eval(
        f"lambda thing, more: shape({', '.join(values)})", {"shape": shape}
    )
    return made


_SCALARS: Final = frozenset({type(None), bool, int, float, str})


def _same(value: Any) -> Json:
    return value


def _object(cls: Any) -> Callable[[Any], Json]:
    """What writes a dataclass, compiled: there are many, and their fields are known."""
    hints, absent = typing.get_type_hints(cls), left_out(cls)
    env: dict[str, Any] = {"Fields": Fields}
    parts = []
    for f in dataclasses.fields(cls):
        write = env[f"write_{f.name}"] = encoder(hints[f.name])
        field = f"{camel(f.name)!r}: " + (f"value.{f.name}" if write is None else f"write_{f.name}(value.{f.name})")
        parts.append(f"**({{{field}}} if value.{f.name} is not None else {{}})" if f.name in absent else field)
    text = f"{{{', '.join(parts)}}}"
    encoded: Callable[[Any], Json] = eval(f"lambda value: {f'Fields({text})' if is_partial(cls) else text}", env)
    return encoded


def _each(write: Callable[[Any], Json]) -> Callable[[Any], Json]:
    return lambda value: {key: write(v) for key, v in value.items()}


@cache
def encoder(hint: Any) -> Callable[[Any], Json] | None:
    """What writes values of that annotation; None where they are JSON as they are. It is `encode`, but for the kinds
    of which there are many: it looks at each value no more than it must."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SCALARS or origin is Literal:
        return None
    if origin in (typing.Union, types.UnionType):
        others = [h for h in arguments if h is not type(None)]
        if all(encoder(h) is None for h in others):
            return None
        write_one = encoder(others[0]) if len(others) == 1 else None
        return encode if write_one is None else lambda value: None if value is None else write_one(value)
    if is_record(hint):
        write = _encoder(hint)
        return lambda value: write(value) if type(value) is hint else encode(value)
    if is_named_tuple(hint):
        return list if all(encoder(h) is None for h in typing.get_type_hints(hint).values()) else encode
    if isinstance(origin, type) and issubclass(origin, Mapping):
        inner = encoder(arguments[1])
        return encode if inner is None else _each(inner)
    several = len(arguments) == 1 or (len(arguments) == 2 and arguments[1] is ...)
    if origin is tuple and not several and all(encoder(h) is None for h in arguments):
        return list
    if several and isinstance(origin, type) and issubclass(origin, Sequence):
        inner = encoder(arguments[0])
        if origin is Unordered:
            return Unordered if inner is None else lambda value: Unordered(map(inner, value))
        return list if inner is None else lambda value: list(map(inner, value))
    return encode


@cache
def _encoder(cls: Any) -> Callable[[Any], Json]:
    if cls in _SCALARS or (issubclass(cls, int | float) and not issubclass(cls, enum.Enum)):
        return _same
    if is_named_tuple(cls) and encoder(cls) is list:
        return list
    if dataclasses.is_dataclass(cls):
        return _object(cls)
    if issubclass(cls, bytes):
        return cls.hex  # type: ignore[no-any-return]
    if issubclass(cls, enum.Enum):
        return lambda value: encode(value.value)
    if issubclass(cls, Mapping):
        make = Fields if issubclass(cls, Fields) else dict
        return lambda value: make((key, encode(v)) for key, v in value.items())
    if issubclass(cls, Set):
        return lambda value: Unordered(encode(v) for v in sorted(value))
    if issubclass(cls, Unordered):
        return lambda value: Unordered(encode(v) for v in value)
    if issubclass(cls, Sequence):
        return lambda value: [encode(v) for v in value]
    raise TypeError(f"{cls.__qualname__} has no form in JSON")


def encode(value: Any) -> Json:
    """The JSON of a value. Raises TypeError for a type that has none."""
    cls: Any = type(value)
    if cls in _SCALARS:
        return value
    if issubclass(cls, tuple):  # most values are: entries, batches
        return [v if type(v) in _SCALARS else encode(v) for v in value]
    return _encoder(cls)(value)


# ---- the other way ---------------------------------------------------------------------------------------------------
def is_record(hint: Any) -> bool:
    """Whether an annotation is a dataclass, which stands as an object."""
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def is_named_tuple(hint: Any) -> bool:
    """Whether an annotation is a NamedTuple, which stands as an array."""
    return isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def _items(value: Any) -> Any:
    """What an array has. Raises TypeError for what is none."""
    if isinstance(value, str | Mapping):
        raise TypeError(f"no array: {value!r:.80}")
    return value


def _pairs(value: Any) -> Any:
    """The keys of an object and what stands at them. Raises TypeError for what is none."""
    if not isinstance(value, Mapping):
        raise TypeError(f"no object: {value!r:.80}")
    return value.items()


def _array(element: Decode | None, make: Callable[[Any], Any]) -> Decode:
    return (lambda value: make(_items(value))) if element is None else lambda value: make(map(element, _items(value)))


def _optional(decode: Decode) -> Decode:
    return lambda value: None if value is None else decode(value)


def _object_of(decode: Decode) -> Decode:
    return lambda value: {key: decode(v) for key, v in _pairs(value)}


def _tuple(hints: Sequence[Any], make: Callable[[Any], Any]) -> Decode:
    decoders = [decoder(h) or _same for h in hints]
    if all(d is _same for d in decoders):
        return lambda value: make(v for _, v in zip(hints, _items(value), strict=True))
    return lambda value: make(d(v) for d, v in zip(decoders, _items(value), strict=True))


def _bytes(value: Json) -> bytes:
    if isinstance(value, bytes):
        return value
    data = bytes.fromhex(value)
    if data.hex() != value:
        raise ValueError(f"no hexadecimal digits: {value[:80]}")
    return data


def _record(hint: Any) -> Decode:
    hints = typing.get_type_hints(hint)
    fields = {camel(f.name): (f.name, decoder(hints[f.name]) or _same) for f in dataclasses.fields(hint)}

    def decoded(value: Any) -> Any:
        if isinstance(value, hint):
            return value
        given = [(fields[key], v) for key, v in _pairs(value)]
        return hint(**{name: decode(v) for (name, decode), v in given})

    return decoded


def _kind(hint: Any) -> type:
    """Which JSON a type that is none stands as: an object, an array or text."""
    made = typing.get_origin(hint) or hint
    if is_record(hint) or issubclass(made, Mapping):
        return dict
    return str if issubclass(made, enum.Enum | bytes) else list


def _one_of(hints: Sequence[Any]) -> Decode:
    """By what stands there: an object, an array, or neither."""
    known: dict[type, Decode] = {}
    for hint in hints:
        decode = decoder(hint)
        if decode is not None and known.setdefault(_kind(hint), decode) is not decode:
            raise TypeError(f"{hint!r}: another of the types stands as the same kind of JSON")
    others = known.get(str, _same)
    if others is not _same and not {bool, int, float, str}.isdisjoint(hints):
        raise TypeError(f"{hints!r}: a value may be of more than one of the types")

    def decoded(value: Any) -> Any:
        if value is None:
            return None
        kind = dict if isinstance(value, Mapping) else list if isinstance(value, list | tuple | Set) else str
        return known.get(kind, _same)(value)

    return decoded


@cache
def decoder(hint: Any) -> Decode | None:
    """What makes a value of that annotation of its JSON; None where it is the JSON itself. A value that is of the type
    already stays. It raises TypeError, KeyError or ValueError for JSON of another shape. Raises TypeError for an
    annotation that has no form in JSON."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint in _SCALARS or origin is Literal or typing.is_typeddict(hint):
        return None
    if origin in (typing.Union, types.UnionType):
        others = [d for d in map(decoder, arguments) if d is not None]
        if len(arguments) == 2 and type(None) in arguments:
            return _optional(others[0]) if others else None
        return _one_of(arguments) if others else None
    if is_named_tuple(hint):
        return _tuple(list(typing.get_type_hints(hint).values()), lambda values: hint(*values))
    if is_record(hint):
        return _record(hint)
    made: Any = origin or hint
    if made is bytes:
        return _bytes
    if isinstance(made, type):
        if issubclass(made, enum.Enum):
            return made
        if issubclass(made, tuple):
            if len(arguments) == 2 and arguments[1] is ...:
                return _array(decoder(arguments[0]), tuple)
            return _tuple(arguments, tuple)
        if issubclass(made, frozenset):
            return _array(decoder(arguments[0]), frozenset)
        if issubclass(made, Mapping):
            inner = decoder(arguments[1]) if arguments else None
            return None if inner is None else _object_of(inner)
        if issubclass(made, Sequence):
            inner = decoder(arguments[0]) if arguments else None
            return None if inner is None else _array(inner, list)
    raise TypeError(f"{hint!r} has no form in JSON")


INTERNED: Final = 1024


def _is_constant(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def interned(decode: Decode) -> Decode:
    """The same. Of equal JSON a value that cannot change is made once, but for what was long ago."""
    known: dict[str | bytes, Any] = {}

    def decoded(value: Any) -> Any:
        try:
            is_text = type(value) is str  # such as bytes in hexadecimal, which are long
            text = value if is_text else orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS)
        except TypeError:  # it is of the type already, or no JSON
            return decode(value)
        if text in known:
            return known[text]
        made = decode(value)
        if _is_constant(made):
            if len(known) == INTERNED:
                known.clear()
            known[text] = made
        return made

    return decoded


def decode(hint: Any, value: Json) -> Any:
    """The value of that type that the JSON stands for. Raises TypeError, KeyError or ValueError for JSON of another
    shape."""
    made = decoder(hint)
    return value if made is None else made(value)
