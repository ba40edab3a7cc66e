"""The tour of a model: histories that together take every action, possible or refused, in every model state that the
spec reaches."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from typing import Any, Final, NamedTuple

import orjson

from kafkaspec.cached import cache_file, keep
from kafkaspec.contract.machine import Machine, Outside, Refused
from kafkaspec.contract.subsystem import Subsystem, folders
from kafkaspec.errors import UserError
from kafkaspec.judge.generate import STEPS, Call
from kafkaspec.language.concrete import Concrete
from kafkaspec.lockstep.exhaustive import RefinementMapping, actions, model_state

NEAR: Final = 3
"""A tour goes on to a state with something new if it is at most this many steps away; else a new history begins."""


class Tour(NamedTuple):
    """The histories of a tour, and what they take."""

    how: RefinementMapping[Any]
    reachable: frozenset[str]
    """the reachable states of the model, as digests"""
    steps: int
    """pairs of a model state and an action with its arguments that the spec has calls for"""
    histories: tuple[tuple[Call, ...], ...]

    @property
    def states(self) -> int:
        """How many states of the model are reachable."""
        return len(self.reachable)


def digest(concrete: Concrete, state: Any) -> str:
    """A model state in short: equal for equal states, in every process."""
    shown = orjson.dumps(concrete.show(state), option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(shown, digest_size=8).hexdigest()


def names_of(refinements: Iterable[RefinementMapping[Any]]) -> list[str]:
    """A name for each refinement mapping: its model's, and a number from the second one onto the same model on."""
    met: Counter[str] = Counter()
    out = []
    for how in refinements:
        name = how.model.__name__
        met[name] += 1
        out.append(name if met[name] == 1 else f"{name} {met[name]}")
    return out


def tours(subsystem: Subsystem) -> tuple[Tour, ...]:
    """A tour of each model onto which the spec has a refinement mapping. They are searched for once, and kept in the
    user's cache for as long as no text changes that they follow from."""
    machine: Machine[Any] = subsystem.spec.machine
    file = cache_file("tours", subsystem.name, _texts(), ".json")
    try:
        kept = orjson.loads(file.read_bytes())
        found = [_read(machine, how, x) for how, x in zip(subsystem.refinements, kept, strict=True)]
    except (OSError, ValueError, KeyError, TypeError, UserError):  # none, or not as we wrote it
        found = [tour(machine, how) for how in subsystem.refinements]
        keep(file, orjson.dumps([_written(t) for t in found]))
    return tuple(found)


def _texts() -> str:
    """A digest of the texts of all specs, models and what a tour is made by: the same in every process, whatever it has
    loaded."""
    total = hashlib.blake2b(digest_size=16)
    for folder in folders():
        for layer in ("spec", "models", "language", "lockstep", "contract", "judge"):
            for file in _files(folder / layer):
                total.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return total.hexdigest()


def _files(folder: Traversable) -> Iterator[Traversable]:
    """The modules below a folder, which may stand in a zip file."""
    if folder.is_dir():
        for x in sorted(folder.iterdir(), key=lambda x: x.name):
            if x.is_dir():
                yield from _files(x)
            elif x.name.endswith(".py"):
                yield x


def _written(t: Tour) -> Any:
    histories = [[[call.operation.name, call.arguments] for call in calls] for calls in t.histories]
    return {"reachable": sorted(t.reachable), "steps": t.steps, "histories": histories}


def _read(machine: Machine[Any], how: RefinementMapping[Any], kept: Any) -> Tour:
    histories = tuple(tuple(Call(machine.find(name), a) for name, a in calls) for calls in kept["histories"])
    return Tour(how, frozenset(kept["reachable"]), int(kept["steps"]), histories)


def tour(machine: Machine[Any], how: RefinementMapping[Any], steps: int = STEPS) -> Tour:
    """Histories that together take every action in every model state that the spec reaches."""
    return _Tour(machine, how, steps).whole()


@dataclass
class _Node:
    """A model state: a shortest way to it, the actions not taken in it yet, and by which action one comes where."""

    path: tuple[Call, ...]
    todo: deque[int] = field(default_factory=deque)
    next: dict[int, int] = field(default_factory=dict)
    """the number of another state -> an action that led there"""


class _Tour:
    def __init__(self, machine: Machine[Any], how: RefinementMapping[Any], steps: int) -> None:
        self.machine, self.how, self.steps = machine, how, steps
        self.concrete = Concrete(how.model, how.sizes)
        self.actions = actions(self.concrete, how)
        self.numbers: dict[Hashable, int] = {}
        """model state -> its number, in the order of finding"""
        self.nodes: list[_Node] = []

    def number(self, state: Any) -> int | None:
        """Of the model's state for a spec's; None beyond the model's sizes."""
        there = model_state(self.concrete, self.how, state)
        return None if there is None else self.numbers.setdefault(self.concrete.key(there), len(self.numbers))

    def made(self, state: Any, action: int) -> tuple[Any, list[Call]] | None:
        """The spec's state after an action's calls, and those that are within the contract; None without any."""
        name, arguments = self.actions[action]
        done: list[Call] = []
        for op_name, values in self.how.calls(state, name, arguments) or ():
            step = self.machine.apply(state, op_name, values, contracts=False)
            if isinstance(step, Outside):
                break
            done.append(Call(self.machine.find(op_name), values))
            state = step.state
            if isinstance(step.result, Refused):
                break
        return (state, done) if done else None

    def search(self) -> None:
        """Breadth first: every model state that the spec reaches, and what can be asked there."""
        first = self.how.first(self.machine)
        if self.number(first) is None:
            return
        states = [first]
        self.nodes.append(_Node(tuple(Call(self.machine.find(op), values) for op, values in self.how.set_up)))
        for n, state in enumerate(states):  # which grow
            for action in range(len(self.actions)):
                made = self.made(state, action)
                if made is None:
                    continue
                self.nodes[n].todo.append(action)
                there = self.number(made[0])
                if there is not None and there != n:
                    self.nodes[n].next.setdefault(there, action)
                if there == len(states):
                    states.append(made[0])
                    self.nodes.append(_Node((*self.nodes[n].path, *made[1])))

    def whole(self) -> Tour:
        self.search()
        steps = sum(len(node.todo) for node in self.nodes)
        histories = []
        for n, node in enumerate(self.nodes):
            while node.todo:
                histories.append(self.history(n))
        reachable = frozenset(digest(self.concrete, s) for s in self.concrete.reachable()[0])
        return Tour(self.how, reachable, steps, tuple(histories))

    def history(self, here: int) -> tuple[Call, ...]:
        """Go to a model state by a shortest way, then on from one untaken action to the next."""
        calls = list(self.nodes[here].path)
        state: Any = self.machine.initial(**self.how.init)
        for call in calls:
            step = self.machine.apply(state, call.operation.name, call.arguments, contracts=False)
            assert not isinstance(step, Outside)
            state = step.state
        useful, moved = len(calls), 0
        while moved <= NEAR and (len(calls) < self.steps or not moved):
            node = self.nodes[here]
            moved = 0 if node.todo else moved + 1
            action = node.todo.popleft() if node.todo else self.nearest(here)
            if action is None:
                break
            made = self.made(state, action)
            if made is None:  # another state of the spec than the one that was searched: not from here
                if moved:
                    break
                continue
            state, done = made
            calls += done
            useful = useful if moved else len(calls)
            there = self.number(state)
            if there is None or there >= len(self.nodes):
                break  # beyond the model's sizes
            here = there
        return tuple(calls[:useful])

    def nearest(self, here: int) -> int | None:
        """The first action on the way to a state near by where something is left to take."""
        seen = {here}
        level: list[tuple[int, int | None]] = [(here, None)]
        for _ in range(NEAR):
            further: list[tuple[int, int | None]] = []
            for n, first in level:
                for there, action in self.nodes[n].next.items():
                    if there not in seen:
                        seen.add(there)
                        way = action if first is None else first
                        if self.nodes[there].todo:
                            return way
                        further.append((there, way))
            level = further
        return None
