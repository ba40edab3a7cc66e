"""Faults planted in the engines, one at a time: the gate must find each of them with its fixed seeds.

A fault replaces a function of an engine by a wrong one for as long as its context lasts.
"""

from __future__ import annotations

import importlib
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import z3

from kafkaspec.language.expr import TRUE, and_, length, less, node, plus
from kafkaspec.prove.symbols import at_most, times
from tests.gate.gate import compared

checkpoint, code, layout, program, tla, defined, model, text, bounded, obligations, reading = (
    importlib.import_module(f"kafkaspec.{name}")  # some packages have functions of their modules' names
    for name in (
        "explore.checkpoint", "explore.code", "explore.layout", "explore.program", "export.tla", "language.defined",
        "language.model", "language.text", "prove.bounded", "prove.obligations", "prove.reading",
    )
)  # fmt: skip

Plant = Callable[[], Any]
"""A context in which the fault is there."""


@dataclass(frozen=True)
class Fault:
    """A planted fault: in which engine, what is wrong, and what is compared to find it."""

    name: str
    engine: str
    only: tuple[str, ...]
    plant: Plant
    variants: tuple[str, ...] = ()


FAULTS: dict[str, Fault] = {}
COMPARED = {
    "language": ("graph",), "explorer": ("explorer", "transitions"), "prover": ("prover", "pinned"),
    "bounded search": ("bounded",), "TLA+": ("tlc",),
}  # fmt: skip


def fault(engine: str, name: str, variants: tuple[str, ...] = ()) -> Callable[[Plant], Plant]:
    """Lists a fault."""

    def listed(plant: Plant) -> Plant:
        FAULTS[name] = Fault(name, engine, COMPARED[engine], plant, variants)
        return plant

    return listed


def instead(owner: Any, name: str, make: Callable[[Any], Any]) -> Any:
    """`owner.name` replaced by what `make` makes of it."""
    return patch.object(owner, name, make(getattr(owner, name)))


@contextmanager
def planted(f: Fault) -> Iterator[None]:
    """The fault is there; nothing that was worked out before or meanwhile is kept."""
    defined._defined.clear()
    try:
        with f.plant():
            yield
    finally:
        defined._defined.clear()


def found_by(f: Fault, names: list[str]) -> str | None:
    """The first of the cases that shows the fault: the engines agree there without it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            with planted(f):
                seen = bool(compared(name, Path(folder), f.only, f.variants).disagreements)
            if seen and not compared(name, Path(folder), f.only, f.variants).disagreements:
                return name
    return None


# ---- the language ----------------------------------------------------------------------------------------------------
@fault("language", "`and` and `or` do not guard what stands behind them")
def _no_short_circuit() -> Any:
    return instead(defined, "in_turn", lambda _: lambda parts, go_on=True: and_(*map(defined.defined, parts)))


@fault("language", "a comprehension's condition does not guard its value")
def _unguarded_value() -> Any:
    def make(right: Any) -> Any:
        def wrong(e: Any) -> Any:
            if e.op in ("sum", "image", "greatest", "least"):
                return and_(right(e), defined.every(e.args[0], defined.defined(e.args[2])))
            return right(e)

        return wrong

    return instead(defined, "_condition", make)


@fault("language", "an index below 0 is not asked for")
def _low_index() -> Any:
    def make(right: Any) -> Any:
        def wrong(e: Any) -> Any:
            return less(e.args[1], length(e.args[0])) if e.op == "at" and e.aux is None else right(e)

        return wrong

    return instead(defined, "_itself", make)


@fault("language", "that a set is not empty is not asked for")
def _nonempty() -> Any:
    def make(right: Any) -> Any:
        def wrong(e: Any, t: Any) -> Any:
            if t.kind == "set" and t.nonempty:
                return right(e, defined.make("set", elem=t.item))
            return right(e, t)

        return wrong

    return instead(defined, "fits", make)


@fault("language", "the type of a set's elements is not asked for")
def _elements() -> Any:
    return instead(defined, "_members", lambda _: lambda e, t: TRUE)


@fault("language", "a record may be built of values outside its fields' types")
def _record() -> Any:
    return instead(defined, "_itself", lambda right: lambda e: TRUE if e.op == "rec" else right(e))


@fault("language", "a helper's `require` applies also where the condition before it is false")
def _hoisted() -> Any:
    def make(_: Any) -> Any:
        def wrong(op: Any, first: Any, *rest: Any) -> Any:
            return op(text.x.truth(first), *[text.x.truth(r()) for r in rest])

        return wrong

    return instead(text, "_in_turn", make)


@fault("language", "the type of an assignment that a later one overwrites is asked for")
def _overwritten() -> Any:
    def make(right: Any) -> Any:
        return lambda updates, types: [x for u in updates for x in right([u], types)]

    return instead(model, "typed", make)


# ---- the explorer ----------------------------------------------------------------------------------------------------
def _with(e: Any, i: int, x: Any) -> Any:
    """A node with another i-th argument."""
    return node(e.op, e.t, *[x if k == i else a for k, a in enumerate(e.args)], aux=e.aux)


@fault("explorer", "`-` is read as `+`")
def _sign() -> Any:
    def make(right: Any) -> Any:
        return lambda self, x, env: right(self, node("add", x.t, *x.args) if x.op == "sub" else x, env)

    return instead(code.Reader, "_number", make)


@fault("explorer", "the condition of a comprehension is dropped")
def _dropped() -> Any:
    def make(right: Any) -> Any:
        return lambda self, v, cond, env: right(self, v, cond if v.t.kind == "rec" else TRUE, env)

    return instead(code.Reader, "chosen", make)


@fault("explorer", "q[:n] takes one more")
def _take() -> Any:
    def make(right: Any) -> Any:
        def wrong(self: Any, x: Any, t: Any, env: Any) -> Any:
            return right(self, _with(x, 1, plus(x.args[1], 1)) if x.op == "take" else x, t, env)

        return wrong

    return instead(code.Reader, "sliced", make)


@fault("explorer", "the earlier assignment wins where keys are the same")
def _earlier() -> Any:
    def make(right: Any) -> Any:
        return lambda self, action, env: right(self, replace(action, updates=action.updates[::-1]), env)

    return instead(code.Reader, "next_words", make)


@fault("explorer", "an assignment is made also where its `if` is false")
def _always() -> Any:
    def make(right: Any) -> Any:
        def wrong(self: Any, words: Any, var: Any, at: Any, width: Any, value: Any, cond: Any) -> Any:
            right(self, words, var, at, width, value, True)

        return wrong

    return instead(code.Reader, "store", make)


@fault("explorer", "types are not asked for")
def _types() -> Any:
    def make(right: Any) -> Any:
        return lambda self, action, env: [x for x in right(self, action, env) if not x[0]]

    return instead(code.Reader, "wrong", make)


@fault("explorer", "a number starts at its lower limit")
def _first() -> Any:
    def make(right: Any) -> Any:
        return lambda self, t: self.limits(t)[0] - self.bias(t) if t.kind == "range" else right(self, t)

    return instead(layout.Layout, "first", make)


@fault("explorer", "two options are equal if one of them is None")
def _options() -> Any:
    def make(right: Any) -> Any:
        def wrong(self: Any, x: Any, y: Any, env: Any) -> Any:
            same = right(self, x, y, env)
            if x.t.kind == "option" and "none" not in (x.op, y.op):
                return self.e.or_(same, self.absent(x, env))
            return same

        return wrong

    return instead(code.Reader, "equal", make)


@fault("explorer", "a fingerprint leaves out every word but the first", ("fingerprints",))
def _fingerprint() -> Any:
    def make(right: Any) -> Any:
        def wrong(self: Any) -> str:
            out: str = right(self)
            for k in range(1, self.words if self.fingerprinted else 1):
                out = re.sub(rf"(ptr %x\d+, i64 ){k * self.stride}\b", r"\g<1>0", out)
            return out

        return wrong

    return instead(program.Program, "_homes", make)


@fault("explorer", "symmetry forgets a variable", ("symmetry",))
def _symmetry() -> Any:
    def make(right: Any) -> Any:
        def wrong(self: Any) -> Any:
            whole = self.layout.vars
            self.layout.vars = dict(list(whole.items())[1:])
            try:
                return right(self)
            finally:
                self.layout.vars = whole

        return wrong

    return instead(program, "canonical", make)


@fault("explorer", "a run that goes on forgets what it had generated", ("resumed",))
def _resumed() -> Any:
    def make(right: Any) -> Any:
        def wrong(search: Any, path: Any) -> None:
            right(search, path)
            search.generated = search.first_count

        return wrong

    return instead(checkpoint, "load", make)


# ---- the prover ------------------------------------------------------------------------------------------------------
def _value_of(change: Callable[[Any], Any]) -> Any:
    """Another expression is read in the place of one."""
    return instead(
        reading.Reading, "_value", lambda right: lambda self, e, env, world: right(self, change(e), env, world)
    )


@fault("prover", "`-` is read as `+` by the prover")
def _sign_proved() -> Any:
    return _value_of(lambda e: node("add", e.t, *e.args) if e.op == "sub" else e)


@fault("prover", "a set comprehension loses its condition")
def _guard_proved() -> Any:
    return _value_of(lambda e: _with(e, 1, TRUE) if e.op in ("setof", "image") else e)


@fault("prover", "a set comprehension loses the limits of its range")
def _limits_proved() -> Any:
    return instead(reading.Reading, "inside", lambda _: lambda self, t, x: z3.BoolVal(True))


@fault("prover", "types are no obligations")
def _types_proved() -> Any:
    return instead(reading.Reading, "fits", lambda _: lambda self, *rest: {})


@fault("prover", "that the text has a value is no obligation")
def _needs_proved() -> Any:
    return instead(reading.Reading, "needs", lambda _: lambda self, *rest: [])


@fault("prover", "that a claim has a value is no part of it")
def _claims_proved() -> Any:
    return instead(obligations, "has_value", lambda _: lambda claim: [])


@fault("prover", "what is assigned at a key is assigned at every key")
def _frame_proved() -> Any:
    def make(right: Any) -> Any:
        def wrong(self: Any, t: Any, old: Any, keys: Any, cond: Any, new: Any) -> Any:
            if keys and t.kind == "map":
                return lambda i: self.choose(
                    t.item, cond, wrong(self, t.item, old(i), keys[1:], z3.BoolVal(True), new), old(i)
                )
            return right(self, t, old, keys, cond, new)

        return wrong

    return instead(reading.Reading, "_put", make)


@fault("prover", "an assignment is proved as if its `if` were true")
def _always_proved() -> Any:
    def make(right: Any) -> Any:
        return lambda self, t, old, keys, cond, new: right(self, t, old, keys, z3.BoolVal(True), new)

    return instead(reading.Reading, "_put", make)


@fault("prover", "options are compared by their values alone")
def _options_proved() -> Any:
    def make(right: Any) -> Any:
        def wrong(self: Any, t: Any, a: Any, b: Any) -> Any:
            if t.kind == "option" and not self.is_partner(t):
                return right(self, t.item, a.value, b.value)
            return right(self, t, a, b)

        return wrong

    return instead(reading.Reading, "equal", make)


@fault("prover", "sequences are compared without their last element")
def _places_proved() -> Any:
    return instead(
        reading.Reading, "places", lambda right: lambda self, t, n, p: right(self, t, n - 1, p)
    )  # fmt: skip


@fault("prover", "a condition that asks first for None is true where it is None")
def _none_proved() -> Any:
    return instead(
        reading.Reading,
        "_may_be",
        lambda _: lambda self, m, x, env, world, side: self._means(m, x, env, world),
    )


@fault("prover", "half of a sort's elements are a majority")
def _half_proved() -> Any:
    def make(right: Any) -> Any:
        def wrong(self: Any, e: Any, env: Any, world: Any) -> Any:
            t, member = self._members(e, env, world)
            known = self.elements(t)
            if known is None:
                return right(self, e, env, world)
            total = z3.Sum([z3.If(member(x), 1, 0) for x in known])
            return at_most(z3.IntVal(len(known)), times(total, 2))

        return wrong

    return instead(reading.Reading, "_majority", make)


# ---- bounded search --------------------------------------------------------------------------------------------------
@fault("bounded search", "an action is forgotten")
def _action_forgotten() -> Any:
    def make(right: Any) -> Any:
        def wrong(self: Any, model: Any, given: Any) -> None:
            right(self, replace(model, actions=model.actions[:-1] or model.actions), given)

        return wrong

    return instead(bounded._Search, "__init__", make)


@fault("bounded search", "step properties are not asked for")
def _steps_forgotten() -> Any:
    def make(right: Any) -> Any:
        return lambda self, model, given: right(self, replace(model, steps={}), given)

    return instead(bounded._Search, "__init__", make)


@fault("bounded search", "a number starts at 0, also where 0 is outside its limits")
def _zero() -> Any:
    def make(right: Any) -> Any:
        return lambda self, t: z3.IntVal(0) if t.kind == "range" else right(self, t)

    return instead(reading.Reading, "first", make)


# ---- TLA+ ------------------------------------------------------------------------------------------------------------
@fault("TLA+", "a number of the export starts at its lower limit")
def _first_exported() -> Any:
    return instead(tla._Module, "first_number", lambda _: lambda self, t: self.limit(t.lo))
