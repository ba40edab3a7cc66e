"""A failing history made small: calls left out, then arguments made simple, for as long as it fails the same way.

How a history is tried again is the caller's: beside an implementation, or on a target behind a pipe. `Again` gets the
records of calls and returns what fails now, if anything. Each attempt costs a replay, so those come first that save
most, none is made twice, and none that the types of the spec's parameters, and their ranges, do not allow.

What is tried, in this order:

- stretches of calls are left out, the longest first;
- arguments that have a default are left out;
- numbers of one kind that are near each other are lowered by the same amount, in all calls or in one: offsets that
  begin at 2^33, timestamps of today;
- each value by itself, the longest first: elements of a list and keys of an object are left out, a number comes nearer
  to 0, a text becomes shorter and its letters the same.
"""

from __future__ import annotations

import itertools
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import orjson

from kafkaspec.contract.codec import camel, is_record
from kafkaspec.contract.fits import fits, optional_fields, parts
from kafkaspec.contract.history import History, Record
from kafkaspec.contract.machine import Json, Machine
from kafkaspec.contract.numbers import opaque

Again = Callable[[Sequence[Record]], History | None]

FAR: Final = 1_000
"""Above it numbers that cannot be lowered to 0 or 1 together are lowered by half."""


def fewer_calls(failure: History, again: Again) -> History:
    """A history with as few calls as removing some can give, that fails at the same operation by the same clause."""
    attempts = _Attempts(failure, again)
    attempts.fewer_calls()
    return attempts.best


def shrunk(machine: Machine[Any], failure: History, again: Again) -> History:
    """The smallest history found that fails at the same operation by the same clause; always the same one. A failure
    that does not show again stays as it is: what was driven is not deterministic."""
    attempts = _Attempts(failure, again)
    values = _Values(machine, attempts)
    attempts.fewer_calls()
    while values.simplified():
        attempts.fewer_calls()
    return attempts.best


def _kind(failure: History) -> tuple[str, str, Json]:
    """What stays the same: the clause, the operation, and whether it answers, or by which error."""
    last = failure.records[-1]
    return failure.clause, last["op"], last["error"].get("class") if "error" in last else "result" in last


class _Attempts:
    """The smallest failure so far, and what was tried."""

    def __init__(self, failure: History, again: Again) -> None:
        found = again(failure.records)
        self.again = again
        self.shows = found is not None
        """whether the failure shows again; else nothing is tried"""
        self.best = found or failure
        self.made: set[bytes] = {_asked(self.best.records)}

    def fails(self, records: Sequence[Record]) -> bool:
        """Try these calls. Whether they fail as the best do: then they are the best."""
        asked = _asked(records)
        if not self.shows or asked in self.made:
            return False
        self.made.add(asked)
        found = self.again(records)
        if found is None or _kind(found) != _kind(self.best):
            return False
        self.best = found
        self.made.add(_asked(found.records))  # without calls that are outside the contract now
        return True

    def fewer_calls(self) -> None:
        """Leave out calls; the first line says how all begins, and the last call is what fails."""

        def without(first: int, end: int) -> bool:
            calls = self.best.records[1:-1]
            return self.fails([self.best.records[0], *calls[:first], *calls[end:], self.best.records[-1]])

        left_out(lambda: len(self.best.records) - 2, without)


def _asked(records: Sequence[Record]) -> bytes:
    return orjson.dumps([(r["op"], r["args"]) for r in records], default=float)


def left_out(count: Callable[[], int], without: Callable[[int, int], bool]) -> None:
    """Leave out stretches of a sequence, the longest first, until none of its elements can be left out. `count`: how
    many there are now; `without`: try to leave out those from a first to before an end.

    >>> numbers = [*range(8)]
    >>> def without(first, end):
    ...     rest = numbers[:first] + numbers[end:]
    ...     fails = 2 in rest and 6 in rest
    ...     numbers[:] = rest if fails else numbers
    ...     return fails
    >>> left_out(lambda: len(numbers), without)
    >>> numbers
    [2, 6]
    """
    size = max(1, count() // 2)
    while True:
        at, removed = 0, False
        while at < count():
            if without(at, min(at + size, count())):
                removed = True
            else:
                at += size
        if size == 1 and not removed:
            return
        size = max(1, size // 2)


def lowered(most: int, fails: Callable[[int], bool]) -> None:
    """Look for the least number from 0 to `most` that fails, as `most` does, in few attempts. It is the least if all
    above it fail, and none below.

    >>> asked = []
    >>> lowered(1000, lambda n: asked.append(n) or n >= 700)
    >>> asked
    [0, 1, 500, 999, 749, 624, 686, 717, 701, 693, 697, 699, 700]
    >>> asked.clear(); lowered(256, lambda n: asked.append(n) or n == 256); asked
    [0, 1, 128, 255]
    """
    for n in range(min(2, most)):
        if fails(n):
            return
    low, high = 1, most
    middle = most // 2
    failing = True
    while low < middle < high:
        if fails(middle):
            high = middle
        else:
            low = middle
            if failing and low < high - 1:
                if not fails(high - 1):
                    return
                high -= 1
            failing = False
        middle = (low + high) // 2


# ---- values


class _Place(NamedTuple):
    """Where a value stands in the calls of a history."""

    call: int
    path: tuple[str | int, ...]
    """the name of the argument, then keys and indexes"""
    hint: Any
    value: Json

    @property
    def kind(self) -> Any:
        """Of a number that may be lowered with others of its kind: its range; else None."""
        what, of = parts(self.hint)
        number = type(self.value) is int and self.value > 0 and opaque(self.hint) is None
        return (what, of) if number and what in ("scalar", "range") else None


def _inside(hint: Any, value: Json, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any, Json]]:
    """A value and all that stands in it, with the annotation of each."""
    what, of = parts(hint)
    if what == "union":
        member = next((h for h in of if fits(h)(value)), None)
        if member is not None:
            yield from _inside(member, value, path)
        return
    yield path, hint, value
    inner: list[tuple[str | int, Any]] = []
    if what == "record":
        record = of[0]
        hints = typing.get_type_hints(record, include_extras=True)
        inner = [(camel(n) if is_record(record) else n, h) for n, h in hints.items()]
    elif what == "tuple":
        inner = [*enumerate(of)]
    elif what in ("map", "array", "any") and isinstance(value, dict | list):
        inner = [(k, of[0] if of else Any) for k in (value if isinstance(value, dict) else range(len(value)))]
    for key, h in inner:
        if not isinstance(value, dict) or key in value:
            yield from _inside(h, value[key], (*path, key))


def _with(value: Json, path: Sequence[str | int], new: Json) -> Json:
    """The value with another one at a place in it."""
    if not path:
        return new
    key: Any = path[0]
    inner = _with(value[key], path[1:], new)
    return {**value, key: inner} if isinstance(value, dict) else [*value[:key], inner, *value[key + 1 :]]


class _Values:
    """The arguments of the smallest failure so far, made simple."""

    def __init__(self, machine: Machine[Any], attempts: _Attempts) -> None:
        self.machine = machine
        self.attempts = attempts

    def simplified(self) -> bool:
        """Try every way once. Whether one of them helped."""
        before = self.best
        self.leave_out_arguments()
        self.lower_together()
        self.simplify_each()
        return self.best is not before

    @property
    def best(self) -> History:
        return self.attempts.best

    # ---- what may be tried

    @cached_property
    def configuration(self) -> Mapping[str, Any]:
        """The arguments of `init`, and their annotations; all have defaults."""
        hints = typing.get_type_hints(self.machine.initial, include_extras=True)
        return self.machine.init_names({p: h for p, h in hints.items() if p != "return"})

    def hint(self, op: str, name: str) -> Any:
        """The annotation of an argument."""
        if op == "init":
            return self.configuration.get(name, Any)
        found = self.machine.find(op)
        return found.annotations.get(found.parameters[name], Any)

    def has_default(self, op: str, name: str) -> bool:
        if op == "init":
            return True
        found = self.machine.find(op)
        return found.parameters[name] in found.defaults

    def allowed(self, record: Record) -> bool:
        """Whether each argument is of its type, and each number in its range."""
        op, given = record["op"], record["args"]
        if not all(fits(self.hint(op, name))(value) for name, value in given.items()):
            return False
        if op == "init":
            return not self.machine.beyond(self.machine.python_names(given))
        found = self.machine.find(op)
        return not found.beyond({found.parameters[name]: value for name, value in given.items()})

    def fails(self, arguments: Mapping[int, Mapping[str, Json]]) -> bool:
        """Try the calls with other arguments for some of them, by the numbers of the calls."""
        records = [{**r, "args": arguments.get(n, r["args"])} for n, r in enumerate(self.best.records)]
        return all(self.allowed(records[n]) for n in arguments) and self.attempts.fails(records)

    def put(self, values: Sequence[tuple[_Place, Json]]) -> bool:
        """Try other values at some places."""
        changed: dict[int, Any] = {}
        for place, value in values:
            changed[place.call] = _with(changed.get(place.call, self.arguments(place.call)), place.path, value)
        return self.fails(changed)

    def arguments(self, call: int) -> Mapping[str, Json]:
        arguments: Mapping[str, Json] = self.best.records[call]["args"]
        return arguments

    def places(self) -> list[_Place]:
        """All values of all calls, those first that are written longest."""
        found = [
            _Place(n, *place)
            for n, r in enumerate(self.best.records)
            for name, value in r["args"].items()
            for place in _inside(self.hint(r["op"], name), value, (name,))
        ]
        return sorted(found, key=lambda p: -len(orjson.dumps(p.value, default=float)))

    # ---- ways

    def leave_out_arguments(self) -> None:
        """Leave out the arguments that have a default: all of a call, else one after the other."""
        for n in itertools.count():
            if n >= len(self.best.records):
                return
            op = self.best.records[n]["op"]
            optional = [name for name in self.arguments(n) if self.has_default(op, name)]
            if not self.without_arguments(n, optional):
                for name in optional:
                    if [r["op"] for r in self.best.records[n : n + 1]] != [op]:
                        break  # without an argument that call is outside the contract, and left out
                    self.without_arguments(n, [name])

    def without_arguments(self, call: int, names: Sequence[str]) -> bool:
        return self.fails({call: {k: v for k, v in self.arguments(call).items() if k not in names}})

    def lower_together(self) -> None:
        """Lower numbers of one kind that are near each other by the same amount, until nothing helps."""
        while any(self.lower(group) for group in self.groups()):
            pass

    def groups(self) -> list[list[_Place]]:
        """Numbers to be lowered together: of all calls, then of each."""
        numbers = sorted((p for p in self.places() if p.kind is not None), key=lambda p: p.value)
        out = []
        for calls in (range(len(self.best.records)), *([n] for n in range(len(self.best.records)))):
            near: dict[Any, list[_Place]] = {}
            for p in numbers:
                if p.call in calls:
                    last = near.get(p.kind)
                    if last is None or p.value > 2 * last[-1].value:
                        near[p.kind] = last = []
                        out.append(last)
                    last.append(p)
        return [group for group in out if len(group) > 1]

    def lower(self, group: Sequence[_Place]) -> bool:
        """Try to lower these numbers, so that the least is 0, or 1, or half of what it is."""
        least = group[0].value
        for new in dict.fromkeys((0, 1, *([least // 2] if least > FAR else []))):
            if new < least and self.put([(p, p.value - least + new) for p in group]):
                return True
        return False

    def simplify_each(self) -> None:
        """Simplify each value by itself, the longest first."""
        done: set[tuple[int, tuple[str | int, ...]]] = set()
        seen, places = self.best, self.places()
        while places:
            place = places.pop(0)
            done.add((place.call, place.path))
            self.simplify(place)
            if self.best is not seen:
                seen, places = self.best, [p for p in self.places() if (p.call, p.path) not in done]

    def simplify(self, place: _Place) -> None:
        what, of = parts(place.hint)
        value = place.value
        if isinstance(value, dict | list):
            self.leave_out_elements(place)
        elif value is True and what != "any":
            self.put([(place, False)])
        elif type(value) is int and what in ("scalar", "range"):
            self.lower_number(place)
        elif isinstance(value, str) and what == "scalar":
            self.shorten(place, 2 if of[0] is bytes else 1)

    def leave_out_elements(self, place: _Place) -> None:
        """Leave out all elements of a list, or keys of an object; else as many as can be."""
        what, of = parts(place.hint)
        value = place.value
        may: frozenset[str] | None = optional_fields(of[0]) if what == "record" else None

        def keys() -> list[Any]:
            return [*range(len(value))] if isinstance(value, list) else [k for k in value if may is None or k in may]

        def without(first: int, end: int) -> bool:
            nonlocal value
            gone = {*keys()[first:end]}
            if isinstance(value, list):
                rest: Json = [v for n, v in enumerate(value) if n not in gone]
            else:
                rest = {k: v for k, v in value.items() if k not in gone}
            if not self.still(place, value) or not self.put([(place, rest)]):
                return False
            value = rest
            return True

        if not without(0, len(keys())):
            left_out(lambda: len(keys()), without)

    def still(self, place: _Place, value: Json) -> bool:
        """Whether that value stands there: calls before it may have been left out."""
        there: Any = self.best.records[place.call]["args"] if place.call < len(self.best.records) else None
        for key in place.path:
            try:
                there = there[key]
            except (LookupError, TypeError):
                return False
        return bool(there == value)

    def lower_number(self, place: _Place) -> None:
        """A number nearer to 0, and not negative, if it can."""
        value = place.value

        def fails(new: int) -> bool:
            nonlocal value
            if not self.still(place, value) or not self.put([(place, new)]):
                return False
            value = new
            return True

        sign = -1 if value < 0 and not fails(-value) else 1
        lowered(abs(value), lambda n: fails(sign * n))

    def shorten(self, place: _Place, unit: int) -> None:
        """A shorter text, wherever it stands, with fewer lines and simpler letters; of bytes, which have two digits
        each, only shorter."""
        text: str = place.value

        def fails(new: str) -> bool:
            nonlocal text
            same = [p for p in self.places() if p.value == text and parts(p.hint) == parts(place.hint)]
            if not same or not self.put([(p, new) for p in same]):
                return False
            text = new
            return True

        def lines() -> list[str]:
            return text.splitlines(keepends=True)

        lowered(len(text) // unit, lambda n: fails(text[: unit * n]))
        lowered(len(text) // unit, lambda n: fails(text[len(text) - unit * n :]))
        if unit == 1:
            left_out(lambda: len(lines()), lambda first, end: fails("".join(lines()[:first] + lines()[end:])))
            fails(re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "0", text)))
