"""Every result as JSON: one function for all of them, and a shape that follows from the result's type.

A result is an object with one member for each field of its dataclass, in their order, and first of all "type", the name
of the class. Nested dataclasses are objects of their fields alone. A mapping is an object, keys as text; a tuple is an
array, a set a sorted one, a range its first number and its end. An enum member is its name, a path its text, a model or
a class its name. A field that stands for "nothing was there" is left out. A field may say otherwise by its metadata:
under "json" stands a function from its value to the one that is told, or None if none is. The bytes of a file's
name that are not UTF-8 are escapes (`\\xff`).
"""

from __future__ import annotations

import dataclasses
import enum
import os
import re
from collections.abc import Mapping, Sequence, Set
from functools import partial
from pathlib import PurePath
from types import FunctionType
from typing import Any

from kafkaspec.language.model import LoadedModel
from kafkaspec.lockstep.compare import ABSENT

_NOT_UTF_8 = re.compile("[\udc80-\udcff]")


def to_json(result: Any) -> Any:
    """A result as plain JSON values; a list of results as a list. TypeError for what has no such shape."""
    if isinstance(result, list | tuple):
        return [to_json(r) for r in result]
    out = _plain(result)
    return {"type": type(result).__name__, **out} if dataclasses.is_dataclass(result) else out


def _plain(value: Any) -> Any:
    match value:
        case enum.Enum():
            return value.name
        case None | bool() | int():
            return value
        case str():
            return _NOT_UTF_8.sub(lambda m: os.fsencode(m[0]).decode("ascii", "backslashreplace"), value)
        case float():
            return float(value)  # a spec's own kind of number too
        case PurePath():
            return str(value)
        case range():
            return [value.start, value.stop]
        case LoadedModel():
            return value.name
        case type() | FunctionType():
            return value.__qualname__
        case partial():
            return _plain(value.func)
        case Mapping():
            return {_plain(str(k)): _plain(v) for k, v in value.items()}
        case Set():
            return sorted((_plain(v) for v in value), key=str)
        case Sequence():
            return [_plain(v) for v in value]
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(v) for f in dataclasses.fields(value) if (v := _told(f, value)) is not ABSENT}
    raise TypeError(f"{type(value).__qualname__} has no shape in JSON")


def _told(field: dataclasses.Field[Any], value: Any) -> Any:
    """A field's value as it is told; ABSENT if it is not."""
    inside, how = getattr(value, field.name), field.metadata.get("json", _same)
    return ABSENT if how is None else None if inside is None else how(inside)


def _same(value: Any) -> Any:
    return value
