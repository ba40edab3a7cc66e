"""Faults of a spec, tried on what a target answered: which of them makes the spec answer the same?

A fault is a condition that is decided the other way, only where two numbers are equal or everywhere, one that holds
always or never, or a part of the state that an operation leaves as it was. It stays for a whole history, as a fault of
a program does. The first history to explain is one that was rejected. The judge has asked many others to make that one
small; a fault that explains all of them too is as good as found, and one that does not is refuted, though it may be
near.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kafkaspec.contract.governs import Ids
from kafkaspec.contract.history import Record
from kafkaspec.contract.machine import Json, Machine, Operation, Outside, Refused, Step
from kafkaspec.judge.cover import SIDES, How, Site, otherwise, prefix_of, stated_in, watched
from kafkaspec.lockstep.compare import outcome_matches, same

HOW: Final[Mapping[How, str]] = {
    "shifted": "were decided the other way where both are equal",
    "held": "always held",
    "failed": "never held",
    "negated": "were decided the other way",
}
"""How a condition is decided otherwise, in words; the nearest first."""
STAYED: Final = "stayed as it was"
MOST_CALLS: Final = 2_000
"""Calls: of the other histories the smallest and those that were tried last are looked at, at most this number."""

# ---- histories, led along the spec, or along a fault of it


class Call(NamedTuple):
    """A call of a history, as the spec makes it."""

    operation: Operation[Any]
    arguments: Mapping[str, Any]
    before: Any
    step: Step[Any]


After = Callable[[Operation[Any], Any, Any], Any]
"""What a fault makes of the state after an operation: operation, state before, state after."""


def _sound(op: Operation[Any], before: Any, after: Any) -> Any:
    return after


def _calls(machine: Machine[Any], record: Record, state: Any, after: After) -> Iterator[Call]:
    """A recorded call, with each choice that the system may have made, within the contract."""
    op = machine.find(record["op"])
    told = {**op.defaults, **{op.parameters[t]: v for t, v in record["args"].items()}}
    chosen = machine.choices(op, state) if op.chosen else {}
    for values in itertools.product(*(chosen[p] for p in op.chosen)):
        arguments = {**told, **dict(zip(op.chosen, values, strict=True))}
        step = op.direct(state, arguments)
        if not isinstance(step, Outside):
            yield Call(op, arguments, state, step._replace(state=after(op, state, step.state)))


def _as_seen(machine: Machine[Any], result: Json | Refused, state: Any, record: Record) -> bool:
    if not outcome_matches(result, record):
        return False
    return "state" not in record or same(machine.observe(state), record["state"])


def begun(machine: Machine[Any], record: Record) -> Any:
    """The state that a history begins with."""
    return machine.initial(**machine.python_names(record["args"]))


def begins(machine: Machine[Any], record: Record) -> bool:
    """Whether a history begins as the spec does."""
    return _as_seen(machine, None, begun(machine, record), record)


def followed(machine: Machine[Any], records: Sequence[Record], after: After = _sound) -> Iterator[tuple[Call, bool]]:
    """The calls of a history, and whether each was answered as here; no more, where a call is outside the contract."""
    state = begun(machine, records[0])
    for record in records[1:]:
        calls = list(_calls(machine, record, state, after))
        if not calls:
            return
        seen = next((c for c in calls if _as_seen(machine, c.step.result, c.step.state, record)), None)
        call = seen or calls[0]
        yield call, seen is not None
        state = call.step.state


def _explains(machine: Machine[Any], records: Sequence[Record], after: After = _sound) -> bool:
    """Whether the spec as it is now answers a whole history as it was answered."""
    try:
        right = begins(machine, records[0])
        answered = [good for _, good in followed(machine, records, after)] if right else []
    except Exception:  # a spec with a fault may fail in any way
        return False
    return right and all(answered) and len(answered) == len(records) - 1


def _until_wrong(machine: Machine[Any], records: Sequence[Record]) -> Sequence[Record]:
    """A history up to what the sound spec answers otherwise: what comes after is a matter of another state."""
    if not begins(machine, records[0]):
        return records[:1]
    rights = [right for _, right in followed(machine, records)]
    return records[: 2 + rights.index(False)] if False in rights else records[: 1 + len(rights)]


# ---- faults


Fault = tuple[str, str]
"""Where it is, and which condition or part of the state it concerns."""


@dataclass(frozen=True)
class Blame:
    """A fault of the spec that explains a history."""

    text: str
    """the condition, or the part of the state"""
    where: str
    """file and line, or the operation"""
    how: str
    clauses: Ids
    """of the refusal that the condition decides, of the function around it, or of the operation"""
    agrees: int = 0
    """how many of the other histories it explains too"""
    of: int = 0

    @property
    def fault(self) -> Fault:
        return self.where, self.text

    @property
    def exact(self) -> bool:
        """Nothing that is known of the target is against it."""
        return self.agrees == self.of

    def __str__(self) -> str:
        near = "" if self.exact else f"; near: so in {self.agrees} of {self.of} other histories"
        return f"`{self.text}` {self.how} ({self.where}){near}"


def _of_prefix(prefix: str, ids: Ids) -> Ids:
    return tuple(id for id in ids if id.startswith(prefix))


@dataclass(frozen=True)
class _OtherDecision:
    """A condition is decided otherwise."""

    number: int
    site: Site
    how: How

    def explains(self, machine: Machine[Any], records: Sequence[Record]) -> bool:
        with otherwise(machine, self.number, self.how):
            return _explains(machine, records)

    def blame(self, machine: Machine[Any], records: Sequence[Record]) -> Blame:
        """The clauses are those of the refusal that it decides; else of the functions that it asks; else of the
        innermost function around it that states some. Only clauses of the subsystem count: it shares functions."""
        prefix = prefix_of(machine)
        stated = {f: own for f, ids in stated_in(machine).items() if (own := _of_prefix(prefix, ids))}
        decided = _of_prefix(prefix, self.site.clauses)
        clauses = decided if decided != stated.get((self.site.module, self.site.function), ()) else ()
        if not clauses:
            asked = {*re.findall(r"\w+", self.site.text)}
            clauses = tuple(id for (_, name), ids in stated.items() if name.rpartition(".")[2] in asked for id in ids)
        if not clauses:
            with otherwise(machine, self.number, self.how) as within:
                _explains(machine, records)
            clauses = next((stated[f] for f in within if f in stated), ())
        return Blame(self.site.text, self.site.where, HOW[self.how], tuple(dict.fromkeys(clauses)))


@dataclass(frozen=True)
class _KeptPart:
    """An operation leaves a part of the state as it was: the attributes that lead to it."""

    operation: str
    path: tuple[str, ...]

    def __call__(self, op: Operation[Any], before: Any, after: Any) -> Any:
        return kept(before, after, self.path) if op.name == self.operation else after

    def explains(self, machine: Machine[Any], records: Sequence[Record]) -> bool:
        return _explains(machine, records, self)

    def blame(self, machine: Machine[Any], records: Sequence[Record]) -> Blame:
        clauses = machine.operations[self.operation].clauses
        return Blame(".".join(self.path) or "state", self.operation, STAYED, clauses)


def _fields(value: Any) -> tuple[str, ...]:
    """The names of the parts of a state's part that has some."""
    if dataclasses.is_dataclass(value):
        return tuple(f.name for f in dataclasses.fields(value) if f.init)
    return getattr(value, "_fields", ()) if isinstance(value, tuple) else ()


def changed(before: Any, after: Any) -> Iterator[tuple[str, ...]]:
    """The paths to what an operation changed, the whole state first. Elements of sequences and mappings have no names:
    a path means all of them."""
    if before is not after and before != after:
        yield ()
        yield from dict.fromkeys(_changed(before, after))


def _changed(before: Any, after: Any) -> Iterator[tuple[str, ...]]:
    if before is after or type(before) is not type(after):
        return
    for name in _fields(after):
        was, now = getattr(before, name), getattr(after, name)
        if was is not now and was != now:
            yield (name,)
            yield from ((name, *path) for path in _changed(was, now))
    if isinstance(after, tuple | list) and not _fields(after):
        for was, now in zip(before, after, strict=False):
            yield from _changed(was, now)
    elif isinstance(after, Mapping):
        for key in after:
            if key in before:
                yield from _changed(before[key], after[key])


def kept(before: Any, after: Any, path: Sequence[str]) -> Any:
    """The state after, with the part of that path as it was before.

    >>> kept([Step(1, "a")], [Step(2, "b"), Step(3, "c")], ["result"])
    [Step(state=2, result='a'), Step(state=3, result='c')]
    """
    if not path:
        return before
    make: Any = type(after)
    if type(before) is not make:
        return after
    if names := _fields(after):
        parts = {n: getattr(after, n) for n in names}
        if path[0] in parts:
            parts[path[0]] = kept(getattr(before, path[0]), parts[path[0]], path[1:])
        return make(**parts)
    if isinstance(after, tuple | list):
        elements = [kept(was, now, path) for was, now in zip(before, after, strict=False)]
        return make([*elements, *after[len(elements) :]])
    if isinstance(after, Mapping):
        return make({k: kept(before[k], now, path) if k in before else now for k, now in after.items()})
    return after


def _last(tried: Iterable[Sequence[Record]]) -> Iterator[Sequence[Record]]:
    left = MOST_CALLS
    for records in reversed([*tried]):
        left -= len(records)
        if left < 0:
            return
        yield records


def explanations(
    machine: Machine[Any], records: Sequence[Record], tried: Iterable[Sequence[Record]] = ()
) -> list[Blame]:
    """The faults that explain a history, those first that explain most of the others that the same target answered;
    then those at a boundary."""
    calls = [call for call, _ in followed(machine, records)]
    with watched(machine) as cover:
        cover.begin()
        _explains(machine, records)
        faults: list[_OtherDecision | _KeptPart] = []
        for n in sorted({side // SIDES for side in cover.taken}):
            faults += [
                _OtherDecision(n, cover.sites[n], how)
                for how in HOW
                if how != "shifted" or cover.sites[n].kind == "order"
            ]
        for c in calls:
            faults += [_KeptPart(c.operation.name, path) for path in changed(c.before, c.step.state)]
        found = [f for f in dict.fromkeys(faults) if f.explains(machine, records)]
        others = [_until_wrong(machine, other) for other in _last(tried)] if found else []
        blames = [
            dataclasses.replace(
                f.blame(machine, records), agrees=sum(f.explains(machine, other) for other in others), of=len(others)
            )
            for f in found
        ]
    own = {c.operation.body.__qualname__ for c in calls[-1:]}
    order = list(HOW.values())

    def far(pair: tuple[_OtherDecision | _KeptPart, Blame]) -> tuple[int, int, bool]:
        fault, blame = pair
        near = isinstance(fault, _OtherDecision) and fault.site.function in own
        return -blame.agrees, order.index(blame.how) if blame.how in order else len(order), not near

    return [blame for _, blame in sorted(zip(found, blames, strict=True), key=far)]
