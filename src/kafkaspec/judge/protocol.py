"""What the judge's protocol is for each subsystem, told from the spec's own signatures: names, types, kinds, refusals.

The types of arguments are those of the parameters of an operation's function, the type of its result is that of its
`Step`, the type of what is observed that of `observe`, and the configuration's types are those of `initial`. From them
come the tables of the documentation and the JSON schema beside it; a subsystem joins by its spec alone.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final

import orjson

from kafkaspec.contract.codec import Unordered, camel, is_record, left_out
from kafkaspec.contract.fits import optional_fields, parts
from kafkaspec.contract.machine import Machine, Operation
from kafkaspec.contract.numbers import opaque, within
from kafkaspec.contract.subsystem import Subsystem, components
from kafkaspec.judge.target import PROTOCOL
from kafkaspec.lockstep.compare import ABSENT

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]
_SCALARS: Final[Mapping[Any, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    bytes: "string",
}


@dataclass(frozen=True)
class Parameter:
    """An argument, by its name in the protocol. `hint` is its Python type; `default` is ABSENT if it must be given."""

    name: str
    hint: Any
    default: Any = ABSENT


@dataclass(frozen=True)
class Call:
    """An operation as the judge calls it."""

    operation: Operation[Any]
    parameters: tuple[Parameter, ...]
    """without those that stand for the system's own choice"""
    result: Any
    """its type"""

    @property
    def what(self) -> str:
        """The first paragraph of what the spec says of it, without a clause's id, and with the protocol's names of the
        arguments."""
        text = " ".join(inspect.cleandoc(self.operation.body.__doc__ or "").partition("\n\n")[0].split())
        text = re.sub(r"^[A-Z]{3}-\d+: ", "", text)
        for name, python in self.operation.parameters.items():
            text = re.sub(rf"\b{python}\b(?=[^`]*`(?:[^`]*`[^`]*`)*[^`]*$)", name, text)  # within backquotes
        return text

    @property
    def asked_if(self) -> list[str]:
        """What holds of every call that is asked: the spec says nothing of others. The clause's id, and its words."""
        return [f"{c.clause} {c.text}" for c in self.operation.preconditions]


@dataclass(frozen=True)
class Description:
    """What the protocol is for one subsystem."""

    subsystem: Subsystem
    configuration: tuple[Parameter, ...]
    calls: tuple[Call, ...]
    state: Any
    """the type of what `observe` shows"""

    @property
    def records(self) -> list[type]:
        """The record types that its types name, each after those that name it."""
        out: dict[type, None] = {}
        for hint in (
            *(p.hint for p in self.configuration),
            *(h for c in self.calls for h in (*(p.hint for p in c.parameters), c.result)),
            self.state,
        ):
            for record in _records(hint):
                out[record] = None
        return list(out)


@cache
def described(subsystem: Subsystem) -> Description:
    """The protocol of a subsystem. Operations that no engine calls are left out."""
    machine: Machine[Any] = subsystem.spec.machine
    hints = typing.get_type_hints(machine.initial, include_extras=True)
    names = {python: name for name, python in zip(_configuration(machine), hints, strict=False)}
    defaults = inspect.signature(machine.initial).parameters
    configuration = tuple(
        Parameter(name, hints[python], defaults[python].default) for python, name in names.items() if python != "return"
    )
    calls = tuple(_call(op) for op in machine.operations.values() if op.generated)
    return Description(subsystem, configuration, calls, shown_type(machine))


def shown_type(machine: Machine[Any]) -> Any:
    """The type of what `observe` shows."""
    return typing.get_type_hints(machine.show).get("return", Any)


def _configuration(machine: Machine[Any]) -> list[str]:
    return list(machine.init_names(inspect.signature(machine.initial).parameters))


def _call(op: Operation[Any]) -> Call:
    parameters = tuple(
        Parameter(name, op.annotations[python], op.defaults.get(python, ABSENT))
        for name, python in op.parameters.items()
        if python not in op.chosen
    )
    return Call(op, parameters, op.result_hint if opaque(op.result_annotation) is None else op.result_annotation)


# ---- types -----------------------------------------------------------------------------------------------------------
def word(hint: Any) -> str:
    """A type as the documentation writes it.

    >>> from typing import Literal
    >>> word(list[int] | None), word(dict[str, bool]), word(Literal["map", "set"])
    ('integer[] | null', '{string: boolean}', '"map" | "set"')
    >>> from kafkaspec.contract.numbers import LeaderEpoch
    >>> word(LeaderEpoch)
    'integer 0 to 2^31 - 1'
    >>> from kafkaspec.contract.numbers import Guard
    >>> word(Guard)
    'opaque integer 0 to 2^31 - 1'
    """
    what, of = parts(hint)
    match what:
        case "any":
            return "any"
        case "scalar":
            return _SCALARS[of[0]]
        case "range":
            return f"integer {of[0]}" if opaque(hint) is None else f"opaque integer {of[0]}"
        case "record":
            return str(of[0].__name__)
        case "literal":
            return " | ".join(orjson.dumps(v).decode() for v in of)
        case "union":
            return " | ".join(dict.fromkeys(word(h) for h in of))
        case "map":
            return f"{{string: {word(of[0])}}}"
        case "tuple":
            names = [f"{camel(n)}: " for n in getattr(hint, "_fields", ())] or [""] * len(of)
            return f"[{', '.join(n + word(h) for n, h in zip(names, of, strict=True))}]"
        case _:
            inner = word(of[0])
            several = f"({inner})[]" if " | " in inner or re.fullmatch(r"(opaque )?integer .*", inner) else f"{inner}[]"
            return f"{several} in any order" if is_unordered(hint) else several


def is_unordered(hint: Any) -> bool:
    """Whether an array's elements may be shown in any order."""
    if typing.get_origin(hint) is Annotated:
        return is_unordered(typing.get_args(hint)[0])
    made = typing.get_origin(hint) or hint
    return isinstance(made, type) and issubclass(made, Unordered | Set)


def _records(hint: Any) -> Iterator[type]:
    what, of = parts(hint)
    if what == "record":
        yield of[0]
        of = tuple(f.hint for f in fields(of[0]))
    if what not in ("literal", "scalar", "range"):
        for h in of:
            yield from _records(h)


def schema(hint: Any, prefix: str) -> Schema:
    """A type as JSON schema. Records are references to `$defs`, by their names behind the prefix."""
    what, of = parts(hint)
    match what:
        case "any":
            return {}
        case "scalar":
            return {"type": _SCALARS[of[0]]}
        case "range":
            return {"type": "integer", "minimum": of[0].least, "maximum": of[0].most}
        case "record":
            return _reference(f"{prefix}.{of[0].__name__}")
        case "literal":
            return {"enum": list(of)}
        case "union":
            return {"anyOf": [schema(h, prefix) for h in of]}
        case "map":
            return {"type": "object", "additionalProperties": schema(of[0], prefix)}
        case "tuple":
            items: Schema = {"type": "array", "prefixItems": [schema(h, prefix) for h in of], "items": False}
            return {**items, "minItems": len(of)}
        case _:
            return {"type": "array", "items": schema(of[0], prefix)}


def _reference(name: str) -> Schema:
    return {"$ref": "#/$defs/" + name.replace("~", "~0").replace("/", "~1")}


@dataclass(frozen=True)
class Field:
    """A field of a record. `needed`: it is always there."""

    name: str
    hint: Any
    needed: bool
    what: str


@cache
def fields(record: Any) -> Sequence[Field]:
    """The fields of a record type, with what the text below each says of it; those that it inherits first."""
    texts = _texts(record)
    hints = typing.get_type_hints(record, include_extras=True)
    if is_record(record):
        absent, out = left_out(record), []
        for f in dataclasses.fields(record):
            hint = without_none(hints[f.name]) if f.name in absent else hints[f.name]
            name = camel(f.name)
            out.append(Field(name, hint, name not in optional_fields(record), texts.get(f.name, "")))
        return out
    return [Field(n, h, n in record.__required_keys__, texts.get(n, "")) for n, h in hints.items()]


def is_place(hint: Any, keys: Sequence[str]) -> bool:
    """Whether keys of objects may lead to something in a value of that type, whatever the value.

    >>> is_place(dict[str, int], ["7"]), is_place(dict[str, int], ["7", "x"]), is_place(list[int], ["0"])
    (True, False, False)
    """
    if not keys:
        return True
    what, of = parts(hint)
    match what:
        case "any":
            return True
        case "record":
            return any(is_place(f.hint, keys[1:]) for f in fields(of[0]) if f.name == keys[0])
        case "map":
            return is_place(of[0], keys[1:])
        case "union":
            return any(is_place(h, keys) for h in of)
    return False


def without_none(hint: Any) -> Any:
    """The type of what is shown where something is."""
    if typing.get_origin(hint) is Annotated and within(hint) is None:
        return without_none(typing.get_args(hint)[0])
    return typing.Union[tuple(h for h in typing.get_args(hint) if h is not type(None))]  # noqa: UP007


def _texts(record: Any) -> dict[str, str]:
    """Field -> the string that stands below it in the text of its class, and of its bases: Python forgets those of a
    TypedDict."""
    tree = _classes(sys.modules[record.__module__])[record.__name__]
    texts: dict[str, str] = {}
    for base in tree.bases:
        above = getattr(sys.modules[record.__module__], base.id, None) if isinstance(base, ast.Name) else None
        if typing.is_typeddict(above) or is_record(above):
            texts |= _texts(above)
    for a, b in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(a, ast.AnnAssign) and isinstance(a.target, ast.Name) and isinstance(b, ast.Expr):
            texts[a.target.id] = " ".join(str(ast.literal_eval(b.value)).split())
    return texts


@cache
def _classes(module: types.ModuleType) -> dict[str, ast.ClassDef]:
    """The classes of a module by their names; of several of one name, the outermost."""
    out: dict[str, ast.ClassDef] = {}
    for s in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(s, ast.ClassDef):
            out.setdefault(s.name, s)
    return out


# ---- the schema ------------------------------------------------------------------------------------------------------
def _object(properties: Mapping[str, Schema], needed: Iterable[str], closed: bool = True) -> Schema:
    out: Schema = {"type": "object", "properties": dict(properties), "required": list(needed)}
    return {**out, "additionalProperties": False} if closed else out


def _arguments(parameters: tuple[Parameter, ...], prefix: str, needed: bool = True) -> Schema:
    """Of a request: the judge may leave out what has a default."""
    return _object(
        {p.name: schema(p.hint, prefix) for p in parameters},
        [p.name for p in parameters if p.default is ABSENT] if needed else [],
    )


def _request(op: str, more: Mapping[str, Schema], needed: tuple[str, ...] = ()) -> Schema:
    line: dict[str, Schema] = {"i": {"type": "integer", "minimum": 0}, "op": {"const": op}, **more}
    return _object(line, ["i", "op", *needed])


def json_schema() -> Schema:
    """All lines of the protocol. A line is a request or an answer; `$defs` has the types of every subsystem: NAME.init
    and NAME.state, NAME.OPERATION for a request, NAME.OPERATION.result for the result that answers it."""
    i: Schema = {"type": "integer", "minimum": 0}
    name: Schema = {"type": "string"}
    values: Schema = {"type": "array", "minItems": 1}
    for _ in ("argument", "operation"):
        values = {"type": "object", "additionalProperties": values}
    offered = _object({"operations": {"type": "array", "items": name}, "values": values}, [], closed=False)
    said: dict[str, Schema] = {
        "protocol": {"type": "integer"},
        "name": name,
        "version": name,
        "subsystems": {"type": "object", "additionalProperties": offered},
    }
    hello = _object(said, ["protocol", "subsystems"], closed=False)
    error = _object({"class": name, "message": name}, [])
    definitions: dict[str, Schema] = {
        "hello": _request("hello", {"args": _object({"protocol": {"const": PROTOCOL}}, ["protocol"])}, ("args",)),
        "hello.result": hello,
        "observe": _request("observe", {}),
        "error": error,
    }
    requests = ["hello", "observe"]
    for subsystem in components().values():
        d, prefix = described(subsystem), subsystem.name
        init = {"subsystem": {"const": prefix}, "args": _arguments(d.configuration, prefix, needed=False)}
        definitions[f"{prefix}.init"] = _request("init", init, ("subsystem",))
        definitions[f"{prefix}.state"] = schema(d.state, prefix)
        requests.append(f"{prefix}.init")
        for call in d.calls:
            op = call.operation.name
            arguments = _arguments(call.parameters, prefix)
            definitions[f"{prefix}.{op}"] = _request(op, {"args": arguments}, ("args",))
            definitions[f"{prefix}.{op}.result"] = schema(call.result, prefix)
            requests.append(f"{prefix}.{op}")
        for record in d.records:
            of = fields(record)
            definitions[f"{prefix}.{record.__name__}"] = _object(
                {f.name: schema(f.hint, prefix) for f in of}, [f.name for f in of if f.needed]
            )
    definitions["request"] = {"anyOf": [_reference(n) for n in requests]}
    definitions["answer"] = {
        "oneOf": [
            _object({"i": i, "result": {}}, ["i", "result"]),
            _object({"i": i, "error": _reference("error")}, ["i", "error"]),
            _object({"i": i, "state": {}}, ["i", "state"]),
            _object({"i": i, "unknown": name}, ["i", "unknown"]),
        ]
    }
    return {
        "$schema": DIALECT,
        "title": f"kafkaspec judge: a line of protocol {PROTOCOL}",
        "anyOf": [_reference("request"), _reference("answer")],
        "$defs": definitions,
    }
