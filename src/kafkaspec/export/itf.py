"""Runs as ITF JSON, the trace format of Apalache and Quint (Apalache's ADR-015), there and back.

An integer is {"#bigint": "7"}; a set {"#set": [...]}; a map {"#map": [[key, value], ...]}; a sequence a list; a record
an object. A sort's element and an enum's member are strings; an option is the variant {"tag": "Some", "value": x} or
{"tag": "None", "value": {"#tup": []}}, as Apalache writes it. What a step did (action, who, clauses, arguments) stands
in the state's "#meta", where other tools leave it alone.
"""

from __future__ import annotations

import enum
import typing
from collections.abc import Mapping
from typing import Any

from kafkaspec.errors import UserError
from kafkaspec.language import LoadedModel, T, Trace, TraceStep, Value

_FORMAT = "https://apalache-mc.org/docs/adr/015adr-trace.html"
_NONE = {"tag": "None", "value": {"#tup": []}}


def itf(trace: Trace, model: LoadedModel) -> dict[str, Any]:
    """The run as ITF, ready for JSON. The model gives the types: in a trace alone a set looks like a sequence."""
    types = {n: model.vars[n] for n in trace.steps[0].state}
    states = []
    for i, s in enumerate(trace.steps):
        parameters = _parameters(model, s.action)
        meta = {
            "index": i,
            "action": s.action,
            "who": s.who,
            "clauses": list(s.clauses),
            "arguments": {n: _encoded(parameters[n], v) for n, v in s.arguments.items()},
        }
        states.append({"#meta": meta, **{n: _encoded(t, s.state[n]) for n, t in types.items()}})
    out: dict[str, Any] = {
        "#meta": {
            "format": "ITF",
            "format-description": _FORMAT,
            "description": f"{trace.kind} of {trace.claim or trace.model}",
            "source": trace.model,
            "sizes": dict(trace.sizes),
            "kind": trace.kind,
            "claim": trace.claim,
            "clauses": list(trace.clauses),
        },
        "vars": list(types),
        "states": states,
    }
    if trace.loop is not None:
        out["loop"] = trace.loop
    return out


def from_itf(data: Mapping[str, Any], model: LoadedModel) -> Trace:
    """The run that an ITF object shows, of ours or of Apalache's for the same variables. Raises UserError that names
    the state and the field."""
    states = _field(data, "states", list, "the trace")
    if not states:
        raise UserError("the trace has no states")
    meta = _field(data, "#meta", dict, "the trace") if "#meta" in data else {}
    steps = []
    for i, state in enumerate(states):
        where = f"state {i}"
        if not isinstance(state, Mapping):
            raise UserError(f"{where} is no object")
        known = {n: t for n, t in model.vars.items() if n in state or n not in model.ghosts}
        for n in state:
            if not n.startswith("#") and n not in known:
                raise UserError(f"{where}: {model.name} has no variable {n}")
        for n in known:
            if n not in state:
                raise UserError(f"{where}: variable {n} is missing")
        did = _field(state, "#meta", dict, where) if "#meta" in state else {}
        given = _field(did, "arguments", dict, where) if "arguments" in did else {}
        action = str(did.get("action", ""))
        parameters = _parameters(model, action)
        arguments = {
            n: _decoded(_known(parameters, n, f"{where}: argument"), v, f"{where}: argument {n}")
            for n, v in given.items()
        }
        values = {n: _decoded(t, state[n], f"{where}: {n}") for n, t in known.items()}
        steps.append(TraceStep(action, str(did.get("who", "")), tuple(did.get("clauses", ())), arguments, values))
    loop = data.get("loop")
    if loop is not None and not (type(loop) is int and 0 <= loop < len(steps)):
        raise UserError(f"loop is {loop}, and there are {len(steps)} states")
    return Trace(
        model.name,
        dict(meta.get("sizes", {})),
        meta.get("kind", "walk"),
        str(meta.get("claim", "")),
        tuple(meta.get("clauses", ())),
        tuple(steps),
        loop,
    )


def _parameters(model: LoadedModel, action: str) -> dict[str, T]:
    for a in [model.initial, *model.actions]:
        if a.name == action or (a is model.initial and action == ""):
            return {a.parameter(p): p.t for p in a.params}
    raise UserError(f"{model.name} has no action {action}")


# ---- values ----------------------------------------------------------------------------------------------------------
def _encoded(t: T, v: Value) -> Any:
    match t.kind:
        case "int" | "range":
            return {"#bigint": str(v)}
        case "option":
            return _NONE if v is None else {"tag": "Some", "value": _encoded(t.item, v)}
        case "set":
            return {"#set": [_encoded(t.item, x) for x in v]}
        case "seq":
            return [_encoded(t.item, x) for x in v]
        case "map":
            return {"#map": [[_encoded(t.domain, _key(t.domain, k)), _encoded(t.item, x)] for k, x in v.items()]}
        case "rec":
            return {n: _encoded(f, v[n]) for n, f in t.fields}
    return v


def _key(t: T, text: str) -> Value:
    """A map's key from the text that a trace prints for it."""
    return text == "True" if t.kind == "bool" else int(text) if t.numeric else text


def _decoded(t: T, v: Any, where: str) -> Value:
    match t.kind:
        case "bool":
            return _of(bool, v, where)
        case "sort":
            return _of(str, v, where)
        case "enum":
            members = [m.name for m in typing.cast(type[enum.Enum], t.cls)]
            if v not in members:
                raise UserError(f"{where} is {v!r}, no {t.name} ({', '.join(members)})")
            return v
        case "int" | "range":
            if isinstance(v, int) and not isinstance(v, bool):
                return v
            digits = _only(v, "#bigint", where)
            try:
                return int(digits)
            except (TypeError, ValueError):
                raise UserError(f"{where}: {digits!r} is no integer") from None
        case "option":
            tag = _field(v, "tag", str, where)
            if tag not in ("Some", "None"):
                raise UserError(f"{where}: tag is {tag!r}, neither Some nor None")
            return None if tag == "None" else _decoded(t.item, _field(v, "value", None, where), where)
        case "set":
            items = _of(list, _only(v, "#set", where), where)
            return sorted((_decoded(t.item, x, where) for x in items), key=str)
        case "seq":
            return [_decoded(t.item, x, f"{where}[{i}]") for i, x in enumerate(_of(list, v, where))]
        case "map":
            return _pairs(t, _of(list, _only(v, "#map", where), where), where)
        case "rec":
            return {n: _decoded(f, _field(v, n, None, where), f"{where}.{n}") for n, f in t.fields}


def _pairs(t: T, pairs: list[Any], where: str) -> Value:
    out = {}
    for p in pairs:
        if not (isinstance(p, list) and len(p) == 2):
            raise UserError(f"{where}: {p!r} is no [key, value]")
        key = _decoded(t.domain, p[0], f"{where}: a key")
        out[str(key)] = _decoded(t.item, p[1], f"{where}[{key}]")
    return out


def _known(parameters: Mapping[str, T], name: str, where: str) -> T:
    if name not in parameters:
        raise UserError(f"{where} {name} is not one of {', '.join(parameters) or 'none'}")
    return parameters[name]


def _of(kind: type, v: Any, where: str) -> Any:
    if not isinstance(v, kind):
        raise UserError(f"{where} is {v!r}, where a {kind.__name__} is wanted")
    return v


def _only(v: Any, tag: str, where: str) -> Any:
    if not (isinstance(v, Mapping) and set(v) == {tag}):
        raise UserError(f'{where} is {v!r}, where {{"{tag}": ...}} is wanted')
    return v[tag]


def _field(v: Any, name: str, kind: type | None, where: str) -> Any:
    if not isinstance(v, Mapping) or name not in v:
        raise UserError(f"{where} has no {name}")
    return v[name] if kind is None else _of(kind, v[name], f"{where}: {name}")
