"""Spec against model, exhaustively: from every reachable state of a small model, every call, in both directions.

A model is written afresh from the prose, so this is where a misreading in one of the two shows. In each model state
that the spec reaches (by the first spec state found for it), each action with each argument must do the same: where the
model can take the action, the spec answers, and its state after stands for the model's state after; where the model
cannot, the spec refuses, or the call is outside the contract, or nothing changes. A mapping that leaves out a state of
the model, or an action, without a reason is a difference as well: what is not asked agrees always.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kafkaspec.contract.history import History, Record, outcome
from kafkaspec.contract.machine import Json, Machine, Outside, Refused
from kafkaspec.errors import UserError
from kafkaspec.language import Model
from kafkaspec.language.concrete import Concrete, State, Transition

S = TypeVar("S")
Call = tuple[str, Mapping[str, Any]]
"""An operation and its arguments, by Python names."""


@dataclass(frozen=True)
class RefinementMapping(Generic[S]):
    """How a spec and a small model say the same."""

    model: type[Model]
    sizes: Mapping[str, int | bool]
    to_model: Callable[[S], Mapping[str, Any] | None]
    """the model's variables for a spec's state (elements of sorts by `language.concrete.element`); None for a state
    beyond the sizes"""
    calls: Callable[[S, str, Mapping[str, Any]], Sequence[Call] | None]
    """the spec's calls for an action of the model with its arguments; None if it has no such call in this state"""
    without: Mapping[str, str] = field(default_factory=dict)
    """actions that the spec has no call for, each with the reason"""
    init: Mapping[str, Json] = field(default_factory=dict)
    """the configuration for these sizes, by Python names"""
    set_up: Sequence[Call] = ()
    """calls that then lead to the model's first state"""
    partly: str = ""
    """why some of the model's reachable states stand for none of the spec's, if that is meant"""
    deep: bool = False
    """left to the tests and to the judge's tours: `verify` does not compare them"""

    def first(self, machine: Machine[S]) -> S:
        """The spec's state that stands for the model's first. ValueError if the set-up is outside the contract."""
        state = machine.initial(**self.init)
        for name, arguments in self.set_up:
            step = machine.apply(state, name, arguments)
            if isinstance(step, Outside):
                raise ValueError(f"{machine.name}: set-up of {self.model.__name__}: {name} is outside: {step.clause}")
            state = step.state
        return state


@dataclass(frozen=True)
class RefinementResult:
    """What was compared. `states` of the model's `reachable`; `problem` is the first history on which they differ."""

    states: int
    reachable: int
    steps: int
    """transitions of the model that the spec made too"""
    refusals: Mapping[str, int]
    """calls that neither made, by the spec's clause"""
    stutters: int
    """calls that the model does not make and that changed nothing in the spec"""
    problem: History | None


def check_refinement(machine: Machine[S], how: RefinementMapping[S]) -> RefinementResult:
    """Compare until all reachable states of the model are done or a difference is found."""
    concrete = Concrete(how.model, how.sizes)
    transitions: dict[State, list[Transition]] = {}
    reachable = {concrete.key(s) for s in concrete.reachable(transitions=transitions)[0]}
    of = {a.name: a for a in concrete.model.actions}
    keys = [concrete.written(of[name], arguments) for name, arguments in actions(concrete, how)]
    first = how.first(machine)
    start = model_state(concrete, how, first)
    if start is None or concrete.key(start) not in {concrete.key(s) for s in concrete.initial_states()}:
        shown = "one beyond the sizes" if start is None else f"\n{concrete.show(start)}"
        why = f"the spec's first state is not one of the model's: it stands for {shown}".replace(" \n", "\n")
        return RefinementResult(0, len(reachable), 0, {}, 0, History((), why))
    seen: dict[Hashable, tuple[S, State, tuple[Record, ...]]] = {concrete.key(start): (first, start, ())}
    queue = deque(seen)
    refusals: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    stutters = 0
    while queue:
        state, here, path = seen[queue.popleft()]
        known = transitions.get(here)
        ways = {(t.action, concrete.written(of[t.action], t.arguments)): t.state for t in known or ()}
        for (action, arguments), key in zip(actions(concrete, how), keys, strict=True):
            calls = how.calls(state, action, arguments)
            expected = ways.get((action, key))
            if expected is None and (known is None or of[action].drawn):  # not asked while the model was explored
                expected = concrete.take(here, action, arguments)
            if calls is None:
                continue
            after, said, records = _made(machine, state, calls)
            there = here if after is state else model_state(concrete, how, after)
            why = ""
            if there is None and said == "":
                continue  # beyond the model's sizes
            if expected is None:
                if said:
                    refusals[said] += 1
                elif there == here:
                    stutters += 1
                else:
                    why = f"the model cannot take {_told(action, arguments)} here, the spec does"
            elif said:
                if concrete.key(expected) != concrete.key(here):
                    why = f"the model takes {_told(action, arguments)}, the spec says no: {said}"
                else:
                    stutters += 1
            elif there is not None and concrete.key(there) != concrete.key(expected):
                pair = f"the model is at\n{concrete.show(expected)}\nthe spec stands for\n{concrete.show(there)}"
                why = f"after {_told(action, arguments)} {pair}"
            else:
                taken[action] += 1
            if why:
                problem = History(path + records, f"spec and model {how.model.__name__} differ: {why}", said)
                return RefinementResult(len(seen), len(reachable), taken.total(), dict(refusals), stutters, problem)
            if expected is not None and there is not None and concrete.key(there) not in seen:
                seen[concrete.key(there)] = (after, there, path + records)
                queue.append(concrete.key(there))
    reached = len(reachable & seen.keys())
    idle = sorted({a.name for a in concrete.model.actions} - how.without.keys() - taken.keys())
    left_out = ""
    if idle:
        left_out = f"the spec never takes {', '.join(idle)}: give it the calls, or a reason in `without`"
    elif (reached < len(reachable)) != bool(how.partly):
        left_out = f"the spec reaches {reached:,} of the model's {len(reachable):,} states: " + (
            "there is nothing to be said in `partly`" if how.partly else "say in `partly` why it is not all"
        )
    gap = History((), left_out) if left_out else None
    return RefinementResult(reached, len(reachable), taken.total(), dict(refusals), stutters, gap)


def actions(concrete: Concrete, how: RefinementMapping[Any]) -> list[tuple[str, dict[str, Any]]]:
    """Every action of the model that the spec may have calls for, with each of its arguments."""
    out = []
    for a in concrete.model.actions:
        if a.name not in how.without:
            names = [a.parameter(p) for p in a.params]
            for values in itertools.product(*(concrete.values(p.t) for p in a.params)):
                out.append((a.name, dict(zip(names, values, strict=True))))
    return out


def _told(action: str, arguments: Mapping[str, Any]) -> str:
    return f"{action}({', '.join(f'{k}={v}' for k, v in arguments.items())})"


def model_state(concrete: Concrete, how: RefinementMapping[S], state: S) -> State | None:
    """The model's state for a spec's; None beyond the sizes. Raises UserError unless it has the model's variables."""
    values = how.to_model(state)
    if values is None:
        return None
    if wrong := sorted(values.keys() ^ concrete.vars.keys()):
        raise UserError(
            f"{how.to_model.__module__}: to_model has not the variables of {how.model.__name__}: {', '.join(wrong)}"
        )
    return concrete.freeze(values)


def _made(machine: Machine[S], state: S, calls: Sequence[Call]) -> tuple[S, str, tuple[Record, ...]]:
    """The spec's state after some calls, the clause by which one was refused or is outside, and the calls' records."""
    records: list[Record] = []
    for name, arguments in calls:
        op = machine.find(name)
        record: Record = {"op": name, "args": {t: arguments[p] for t, p in op.parameters.items() if p in arguments}}
        step = machine.apply(state, name, arguments)
        if isinstance(step, Outside):
            return state, step.clause, (*records, record)
        state = step.state
        records.append({**record, **outcome(step.result)})
        if isinstance(step.result, Refused):
            return state, step.result.clause, tuple(records)
    return state, "", tuple(records)
