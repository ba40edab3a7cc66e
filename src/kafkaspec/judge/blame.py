"""Which rule was broken? Everything that is known of a rejected history gives its votes.

The history is small, and all of its answers but the last are right. Clauses get votes from the faults that explain it
(`suspects`); from the refusal that was due, or that was not; from a postcondition that the answer breaks; from the
declarations of what governs the fields that differ (`contract.governs`); from what the operation states, runs and
reveals; and from the operations before it. The three clauses with most votes are cited, the first as the headline.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import typing
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final, NamedTuple

from kafkaspec.contract.codec import Unordered, is_named_tuple
from kafkaspec.contract.governs import (
    Governs,
    Ids,
    answered,
    element,
    fields_of,
    has_fields,
    is_mapping,
    is_union,
    observed,
    opened,
    places,
    revealed,
)
from kafkaspec.contract.history import Record
from kafkaspec.contract.machine import Fields, Json, Machine, Operation, Outside, Refused, Step
from kafkaspec.judge.cover import keeping_in, prefix_of, refusals_of, stated_in
from kafkaspec.judge.suspects import STAYED, Blame, Call, Fault, begun, explanations, followed
from kafkaspec.lockstep.compare import matches, outcome_matches, unpaired

MOST: Final = 3
"""At most this many clauses are cited."""
MOST_PLACES: Final = 1_000
"""Places that differ, at most, that are looked at."""

Line = Mapping[str, Any]
"""A line of a trace, which may leave any field out."""

# Votes. Measured by tests/judge/test_cited.py: docs/measured/blame.json.
EXPLAINS: Final = 8.0
"""the clause of a fault that explains the history, and all others that are known"""
EXPLAINS_SEVERAL: Final = 5.0
"""the same, each, where the fault is in a function that states several"""
REFUTED: Final = 0.5
"""part of the vote, at most, of a fault that does not explain all others"""
DUE: Final = 9.0
"""the clause of the refusal that was due"""
SIBLING: Final = 5.0
"""those of other refusals with the same error"""
UNDUE: Final = 4.0
"""those of the operation's refusals with an error that was seen, where none or another was due"""
ELSEWHERE: Final = 4.0
"""those by which other questions refuse the same arguments, then"""
BROKEN: Final = 3.0
"""that of a postcondition which the answer breaks"""
GOVERNS: Final = 5.0
"""what governs a part that differs"""
AROUND: Final = 2.0
"""what governs something that such a part stands in"""
READ: Final = 4.0
"""the clause by which a question refuses to read the answer, which is bytes or text"""
READ_FIELDS: Final = 0.6
"""part of the votes for what it reads otherwise"""
UNCHANGED: Final = 0.7
"""part of the votes for a field that the call should have left as it was"""
CONSEQUENCE: Final = 0.3
"""part of the votes for the state after, where there was a refusal on one side only"""
REVEALS: Final = 3.0
"""what the operation reveals"""
STATES: Final = 1.5
"""what the operation states; and, each its share, the next"""
STATES_ALONE: Final = 2.5
ENSURES: Final = 2.0
"""what only its postconditions name"""
LEAVES: Final = 1.5
"""both, once more, where it should have left all that differs as it was"""
RUNS: Final = 1.0
"""what the functions state that it runs"""
BEFORE: Final = 0.5
"""what the operations before it state"""


# ---- what governs a difference


class Place(NamedTuple):
    """A place of a type that differs, and the declarations of what governs it, the innermost first: where each stands,
    and its clauses."""

    at: str
    declared: tuple[tuple[str, Ids], ...]


def governing(hint: Any, expected: Json, seen: Json) -> Iterator[Place]:
    """Each innermost place where what was seen is not what was expected."""
    yield from _governing(hint, expected, seen, Place("", ()))


def _governing(hint: Any, expected: Json, seen: Json, place: Place) -> Iterator[Place]:
    if matches(expected, seen):
        return
    hint, own = opened(hint)
    place = _within(place, own)
    if is_union(hint):
        mine, theirs = opened(_member(hint, expected)), opened(_member(hint, seen))
        if mine != theirs:
            yield _within(_within(place, mine[1]), theirs[1])
            return
        hint, other = mine
        own, place = own or other, _within(place, other)
    if isinstance(expected, dict) and isinstance(seen, dict) and (has_fields(hint) or is_mapping(hint)):
        for key in [*expected, *(k for k in seen if k not in expected)]:
            inside, part = _part(hint, own, place, key)
            if key in expected and key in seen:
                yield from _governing(part, expected[key], seen[key], inside)
            elif key in seen or not isinstance(expected, Fields):
                yield _within(inside, opened(part)[1])
    elif isinstance(expected, list | tuple) and isinstance(seen, list | tuple) and len(expected) == len(seen):
        inside = place._replace(at=f"{place.at}[]") if is_named_tuple(hint) else place
        everywhere = [*range(len(seen))]
        pairs = unpaired(expected, seen) if isinstance(expected, Unordered) else (everywhere, everywhere)
        for n, k in zip(*pairs, strict=True):
            yield from _governing(element(hint, n), expected[n], seen[k], inside)
    else:
        yield place


def _within(place: Place, own: Governs | None) -> Place:
    return place if own is None or not own.ids else Place(place.at, ((place.at, own.ids), *place.declared))


def _part(hint: Any, own: Governs | None, place: Place, key: str) -> tuple[Place, Any]:
    """The place of what stands at a key, and its annotation."""
    pattern, ids = own.of(key) if own is not None else ("", ())
    if pattern:
        place = Place(place.at, ((f"{place.at}[{pattern}]", ids), *place.declared))
    if has_fields(hint):
        return place._replace(at=f"{place.at}.{key}"), fields_of(hint).get(key, Any)
    return place, (*typing.get_args(hint), Any, Any)[1]


def _kind(value: Json) -> type | None:
    return dict if isinstance(value, dict) else list if isinstance(value, list | tuple) else None


def _member(hint: Any, value: Json) -> Any:
    """Which of the types of an annotation a value is of, as far as its JSON tells."""
    for h in typing.get_args(hint):
        inner, _ = opened(h)
        made = typing.get_origin(inner) or inner
        objects = has_fields(inner) or is_mapping(inner)
        arrays = isinstance(made, type) and issubclass(made, tuple | list | frozenset) and inner is not Refused
        kind = dict if objects else list if arrays else None
        if kind is _kind(value) and (value is None) == (inner is type(None)):
            return h
    return Any


# ---- the clauses


@dataclass(frozen=True)
class Citation:
    """The clauses that a rejection cites, the most likely first, and a fault that explains it."""

    clauses: Ids
    blame: Blame | None
    votes: Mapping[str, float]
    faults: frozenset[Fault] = frozenset()
    """all that explain it and that nothing is against"""


def _told(found: Sequence[Blame], headline: Sequence[str]) -> Blame | None:
    """The fault to tell: one that nothing is against, or else one of the rule that is the headline; both, if it can."""
    fits = [b for b in found if {*headline} & {*b.clauses}]
    return next((b for b in (*fits, *found) if b.exact), fits[0] if fits else None)


def cited(machine: Machine[Any], records: Sequence[Record], tried: Iterable[Sequence[Record]] = ()) -> Citation:
    """The clauses that the last call of a history broke, or an earlier one without being seen. `tried`: other
    histories, as the same target answered them."""
    first, last = records[0], records[-1]
    calls = [call for call, _ in followed(machine, records)]
    if len(calls) < len(records) - 1:
        return Citation((), None, {})
    if not calls:
        case = _Case(machine, first)
        case.of_the_start(machine.observe(begun(machine, first)))
        return Citation(case.ranked, None, case.votes)
    *before, call = calls
    case = _Case(machine, last)
    case.of_the_call(call, machine.observe(call.step.state))
    case.vote((id for c in reversed(before) for id in c.operation.clauses), BEFORE)
    found = explanations(machine, records, tried)
    case.explained(found)
    exact = frozenset(b.fault for b in found if b.exact)
    return Citation(case.ranked, _told(found, case.ranked[:1]), case.votes, exact)


def cited_alone(machine: Machine[Any], record: Line, expected: Json, call: Call | None = None) -> Ids:
    """The clauses that a line broke, as far as the line tells; `expected`: the state that it should have shown.
    Without a call the line is the first of a history."""
    case = _Case(machine, record)
    if call is None:
        case.of_the_start(expected)
    else:
        case.of_the_call(call, expected)
    return case.ranked


class _Case:
    """The last record of a rejected history, and the votes."""

    def __init__(self, machine: Machine[Any], last: Line) -> None:
        self.machine, self.last = machine, last
        self.prefix = prefix_of(machine)
        self.votes: dict[str, float] = {}
        self.differing: dict[str, None] = {}
        """the clauses that govern what differs"""

    @property
    def ranked(self) -> Ids:
        return tuple(sorted(self.votes, key=lambda id: -round(self.votes[id], 6))[:MOST])

    def vote(self, ids: Iterable[str], weight: float) -> None:
        """Count that weight for each of these clauses that is the subsystem's: it shares functions with others."""
        for id in dict.fromkeys(ids):
            if id.startswith(self.prefix):
                self.votes[id] = self.votes.get(id, 0.0) + weight

    def explained(self, found: Sequence[Blame]) -> None:
        """The votes of faults that explain the history: each clause gets the highest alone."""
        most: dict[str, float] = {}
        for b in found:
            clauses = b.clauses
            if b.how == STAYED:  # which of the operation's clauses it is, the fields that differ tell
                clauses = tuple(id for id in clauses if id in self.differing) or tuple(self.differing) or clauses
            weight = EXPLAINS if len(clauses) == 1 else EXPLAINS_SEVERAL
            if not b.exact:
                weight *= REFUTED * max(0.0, 2 * b.agrees / b.of - 1)
            for id in clauses:
                most[id] = max(most.get(id, 0.0), weight)
        for id, weight in most.items():
            self.vote([id], weight)

    def of_the_start(self, expected: Json) -> None:
        """The votes of the first state."""
        self.differ(observed(self.machine), expected, self.last.get("state", expected))

    def of_the_call(self, call: Call, expected: Json) -> None:
        """The votes of the last call, its answer and the state after it, which should have been `expected`."""
        op, result = call.operation, call.step.result
        refused = isinstance(result, Refused)
        self.vote(op.clauses, STATES + STATES_ALONE / max(1, len(op.clauses)))
        if op.environment:  # its contracts alone name any
            self.vote((c.clause for c in op.preconditions), STATES)
        self.vote(self.ran(call), RUNS)
        self.vote((p.clause for p in op.postconditions if p.clause not in op.clauses), ENSURES)
        self.vote(revealed(op), REVEALS * (CONSEQUENCE if refused else 1))
        self.answer(call)
        if "state" in self.last:
            weight = 1.0 if refused == ("error" in self.last) else CONSEQUENCE
            self.differ(observed(self.machine), expected, self.last["state"], call, weight)

    def answer(self, call: Call) -> None:
        """The votes of the answer, where it is wrong, and of the refusal that was due."""
        op, result, last = call.operation, call.step.result, self.last
        if isinstance(result, Refused) and last.get("error") is not None and outcome_matches(result, last):
            # as was due: what it left is wrong
            self.vote([result.clause], DUE * CONSEQUENCE)
            self.vote(self.kept_by(call), BROKEN)
        elif isinstance(result, Refused):
            self.vote([result.clause], DUE)
            error = last.get("error")
            named = error.get("class") if isinstance(error, Mapping) else None
            if named in (None, result.error):
                others = (r for r in self.refusals(op) if r.error == result.error)
                self.vote((r.clause for r in others if r.clause != result.clause), SIBLING)
            else:  # that rule was asked too soon, or too strictly
                self.vote((r.clause for r in self.refusals(op) if r.error == named), UNDUE)
        elif "error" in last:
            named = last["error"].get("class")
            self.vote((r.clause for r in self.refusals(op) if named in (None, r.error)), UNDUE)
            self.vote(self.refused_elsewhere(call), ELSEWHERE)
        elif "result" in last and not outcome_matches(result, last):
            self.differ(answered(op), result, last["result"])
            self.vote(self.broken(call, last["result"]), BROKEN)
            self.read(call, result, last["result"])

    def differ(self, hint: Any, expected: Json, seen: Json, after: Call | None = None, weight: float = 1.0) -> None:
        """The votes of what governs the parts that differ; of the state, the call after which. The less a clause
        governs that is right, the more it weighs."""
        found = list(itertools.islice(governing(hint, expected, seen), MOST_PLACES))
        own = [[d for d in p.declared if any(id.startswith(self.prefix) for id in d[1])] for p in found]
        innermost = dict.fromkeys(ds[0] for ds in own if ds)
        all_of = dict.fromkeys(d for ds in own for d in ds)
        known = {(where, id) for where, ids in places(hint, self.prefix) for id in ids}
        everywhere = Counter(id for _, id in known)
        here = Counter(id for _, ids in all_of for id in ids if id.startswith(self.prefix))
        changing = [""]
        if after is not None:
            due_places = governing(hint, self.machine.observe(after.before), expected)
            changing = [p.at for p in itertools.islice(due_places, MOST_PLACES)]

        def due(where: str) -> bool:
            return any(where.startswith(at) or at.startswith(where) for at in changing)

        self.differing |= dict.fromkeys(here)
        for id, n in here.items():
            part = (1 + 4 * n / everywhere[id]) / 5
            most = GOVERNS if any(id in ids for _, ids in innermost) else AROUND
            due_one = any(id in ids and due(where) for where, ids in all_of)
            self.vote([id], weight * most * part * (1.0 if due_one else UNCHANGED))
        if found and after is not None and not any(due(p.at) for p in found):
            op = after.operation
            self.vote((*op.clauses, *(p.clause for p in op.postconditions)), LEAVES)

    def refusals(self, op: Operation[Any]) -> Sequence[Refused]:
        """Those of an operation, and those by the clauses that it reveals."""
        own, shown = refusals_of(self.machine, op), revealed(op)
        if not shown:
            return own
        return [*own, *(r for r in refusals_of(self.machine) if r.clause in shown and r not in own)]

    def ran(self, call: Call) -> Iterator[str]:
        """The clauses of the functions that a call runs, and of those that show the state after it."""
        stated = stated_in(self.machine)
        run: dict[tuple[str, str], None] = {}

        def note(frame: FrameType, event: str, argument: object) -> None:
            if event == "call":
                run[frame.f_globals.get("__name__", ""), frame.f_code.co_qualname.partition(".<locals>")[0]] = None

        for f in keeping_in(self.machine):  # else what was asked before would not run
            f.cache_clear()
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            call.operation.direct(call.before, call.arguments)
            self.machine.observe(call.step.state)
        finally:
            sys.setprofile(before)
        return (id for f in run for id in stated.get(f, ()))

    def broken(self, call: Call, seen: Json) -> Iterator[str]:
        """The clauses of the postconditions that an answer breaks, or that cannot be evaluated on it."""
        op = call.operation
        try:
            result = op.returned(Step(call.step.state, seen))
        except Exception:  # it is not of the result's type
            return
        values = {**op.decoded(call.arguments), "state": call.before, "result": result}
        for post in op.postconditions:
            if all(n in values for n in post.arguments):
                try:
                    good = post.condition(**{n: values[n] for n in post.arguments})
                except Exception:
                    good = False
                if not good:
                    yield post.clause

    def kept_by(self, call: Call) -> Iterator[str]:
        """The clauses of the postconditions that such a refusal breaks if it leaves any other state."""
        op = call.operation
        other = op.returned(call.step._replace(state=object()))
        values = {**op.decoded(call.arguments), "state": call.before, "result": other}
        for post in op.postconditions:
            if all(n in values for n in post.arguments):
                with contextlib.suppress(Exception):  # it looks into the state: it says more of it
                    if not post.condition(**{n: values[n] for n in post.arguments}):
                        yield post.clause

    def questions(self) -> Iterator[Operation[Any]]:
        return (op for op in self.machine.operations.values() if op.returns == "answer" and op.parameters)

    def refused_elsewhere(self, call: Call) -> Iterator[str]:
        """The clauses by which other questions refuse the same arguments: a target that is too strict."""
        for op in self.questions():
            given = {p: call.arguments[p] for p in op.parameters.values() if p in call.arguments}
            if op.name == call.operation.name or not given or not {*op.parameters.values()} <= {*given, *op.defaults}:
                continue
            with contextlib.suppress(Exception):  # the names are the same, the types need not be
                step = op.direct(call.before, {**op.defaults, **given})
                if isinstance(step, Step) and isinstance(step.result, Refused):
                    yield step.result.clause

    def read(self, call: Call, expected: Json, seen: Json) -> None:
        """The votes of what questions make of an answer that is bytes or text, as they read it."""
        kind = call.operation.result_hint
        for op in self.questions() if kind in (bytes, str) else ():
            needed = [p for p in op.parameters.values() if p not in op.defaults]
            if len(needed) != 1 or op.hints.get(needed[0]) != kind:
                continue
            with contextlib.suppress(Exception):  # it may be text of another sort
                right, wrong = (op.direct(call.before, {**op.defaults, needed[0]: v}) for v in (expected, seen))
                if isinstance(right, Outside) or isinstance(wrong, Outside) or isinstance(right.result, Refused):
                    continue
                if isinstance(wrong.result, Refused):
                    self.vote([wrong.result.clause], READ)
                else:
                    self.differ(answered(op), right.result, wrong.result, weight=READ_FIELDS)
