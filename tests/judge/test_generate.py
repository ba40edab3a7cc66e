"""Histories come to what is deep and far: many entries, few operations, ends of widths in arguments and in texts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from icontract import require

from kafkaspec.contract.machine import Machine
from kafkaspec.contract.numbers import LATEST, Count, Int64, LeaderEpoch, Offset, ProducerId, Timestamp
from kafkaspec.contract.subsystem import find, subsystems
from kafkaspec.judge import generate
from kafkaspec.judge.boundary import Path
from kafkaspec.judge.cover import Cover
from kafkaspec.judge.generate import EAGER_PROPOSALS, WIDE, Call, Draws, Guide, extent, numbers_in, with_one
from kafkaspec.mutants.judge import campaigned

DEFAULT = 36_000
"""Calls: so many, or more, come of the judge's default number of histories in each subsystem."""


@dataclass(frozen=True)
class Shelf:
    """Epochs that rise, and a name."""

    epochs: tuple[int, ...] = ()


def initial() -> Shelf:
    return Shelf()


def show(state: Shelf) -> Any:
    return {"epochs": list(state.epochs)}


machine: Machine[Shelf] = Machine("shelf", initial, show)


@machine.operation("add", "TOY-1")
@require(lambda epoch: epoch >= 0, "TOY-1 an epoch")
def add(state: Shelf, epoch: LeaderEpoch) -> Shelf:
    """An epoch cuts those that are not below it."""
    return Shelf((*(e for e in state.epochs if e < epoch), epoch))


@machine.operation("cut", "TOY-2")
def cut(state: Shelf, epoch: LeaderEpoch) -> Shelf:
    return replace(state, epochs=tuple(e for e in state.epochs if e < epoch))


@machine.question("ended", "TOY-3")
def ended(state: Shelf, requested: LeaderEpoch) -> bool:
    return requested in state.epochs


@machine.question("far", "TOY-3")
def far(state: Shelf, offset: Int64) -> bool:
    return offset > len(state.epochs)


@machine.question("read", "TOY-4")
def read(file: str, name: str) -> int:
    return len(file)


for n in range(6):

    @machine.question(f"other{n}", "TOY-5")
    def other(state: Shelf) -> int:
        return len(state.epochs)


machine.tried = {
    "epoch": lambda state: [*state.epochs, *(e + 1 for e in state.epochs), 0],
    "requested": lambda state: [*state.epochs, 0],
    "offset": lambda state: [0],
    "file": lambda state: ["0\n1\n7 3\n", '{"brokerEpoch": 5}'],
    "name": lambda state: ["topic-0"],
}


def histories(
    count: int, steps: int = 60, grows: bool = False, of: Machine[Any] = machine
) -> Iterator[list[tuple[Call, Any]]]:
    """Guided ones: each call, and the state before it."""
    draws = Draws(of, [*of.operations.values()], Guide(), steps, Cover())
    for n in range(count):
        plan, state, made = draws.start(random.Random(n), grows).plan, of.initial(), list[tuple[Call, Any]]()
        while (proposal := plan(state)) is not None:
            made.append((proposal.call, state))
            state = proposal.step.state
        yield made


def test_an_eager_history_takes_what_is_new() -> None:
    def outcomes(proposals: int) -> set[Hashable]:
        """What some calls of one eager history come to."""
        guide, rng = Guide(), random.Random(1)
        plan = Draws(machine, [*machine.operations.values()], guide, 25, Cover()).start_eagerly(rng, proposals).plan
        state = initial()
        while (proposal := plan(state)) is not None:
            state = proposal.step.state
        return set(guide.outcomes)

    assert len(outcomes(EAGER_PROPOSALS)) > 1.2 * len(outcomes(1))


def test_an_eager_history_prefers_what_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    def changes() -> int:
        """How many calls of eager histories change something."""
        found = 0
        for n in range(10):
            draws = Draws(machine, [*machine.operations.values()], Guide(), 60, Cover())
            plan, state = draws.start_eagerly(random.Random(n), EAGER_PROPOSALS).plan, initial()
            while (proposal := plan(state)) is not None:
                found += proposal.step.state != state
                state = proposal.step.state
        return found

    preferred = changes()
    monkeypatch.setattr(generate, "SHORT_LIST", 1)
    assert preferred > 1.15 * changes()


def test_operations_without_state_are_asked_less(monkeypatch: pytest.MonkeyPatch) -> None:
    def stateless() -> int:
        return sum(not call.operation.takes_state for made in histories(40) for call, _ in made)

    less = stateless()
    monkeypatch.setattr(generate, "WITHOUT", generate.WITH_STATE)
    assert 1.15 * less < stateless()


def test_growth_comes_to_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "STREAK", 0.0)
    monkeypatch.setattr(generate, "ONWARD", 0.0)
    grown = depths(grows=True)
    assert sum(grown) > 1.2 * sum(depths())
    assert grown[-1] >= 11
    monkeypatch.setattr(generate, "ADDING", 0)  # all operations alike
    assert sum(grown) > 1.1 * sum(depths(grows=True))


@dataclass(frozen=True)
class Log:
    base: int = 0


def empty(base: Offset = 0) -> Log:
    return Log(base)


log: Machine[Log] = Machine("log", empty, lambda state: {})


@log.question("asked", "TOY-6")
def asked(state: Log, offset: Offset, when: Timestamp, who: ProducerId, size: Count) -> int:
    return offset - state.base


log.tried = {
    "init:base": lambda state: [5],
    "offset": lambda state: [7, LATEST],
    "when": lambda state: [-1, 8],
    "who": lambda state: [1],
    "size": lambda state: [3],
}


def test_a_history_is_asked_again_with_other_labels() -> None:
    draws = Draws(log, [*log.operations.values()], Guide(), 30, Cover())
    assert draws.relabelled() is None
    start, state = draws.start(random.Random(1)), Log(5)
    first: list[Call] = []
    while (proposal := start.plan(state)) is not None:
        first.append(proposal.call)
    again = draws.relabelled()
    assert again is not None
    assert (start.init, again.init) == ({"base": 5}, {"base": 5 + 2**33})
    second: list[Any] = []
    while (proposal := again.plan(state)) is not None:
        second.append(proposal.call.arguments)
    now = 1_700_000_000_000

    def other(a: Any) -> Any:
        when = a["when"] + (now if a["when"] >= 0 else 0)
        return {"offset": a["offset"] + 2**33, "when": when, "who": a["who"] + 2**40, "size": a["size"]}

    allowed = [other(c.arguments) for c in first if other(c.arguments)["offset"] <= LATEST]
    assert second == allowed
    assert 0 < len(second) < len(first) == 30


def test_a_history_without_labels_is_not_asked_again() -> None:
    draws = Draws(machine, [*machine.operations.values()], Guide(), 5, Cover())
    draws.start(random.Random(1)).plan(initial())
    assert draws.relabelled() is None


def depths(count: int = 80, grows: bool = False) -> list[int]:
    """How many epochs there are at most in each history."""
    return sorted(max(len(state.epochs) for _, state in made) for made in histories(count, grows=grows))


def test_streaks_come_to_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = depths()
    monkeypatch.setattr(generate, "STREAK", 0.0)
    monkeypatch.setattr(generate, "ONWARD", 0.0)
    shallow = depths()
    assert deep[-1] >= 9 > shallow[-1]
    assert sum(deep) > 1.5 * sum(shallow)


def test_what_is_deep_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def looks() -> int:
        return sum(
            call.operation.name == "ended"
            and len(state.epochs) >= 6
            and call.arguments["requested"] in state.epochs[:2]
            for made in histories(80)
            for call, state in made
        )

    asked = looks()
    monkeypatch.setattr(generate, "LOOKED", 0)
    assert asked > looks()


@dataclass(frozen=True)
class Pile:
    items: tuple[int, ...] = ()


pile: Machine[Pile] = Machine("pile", Pile, lambda state: {"items": list(state.items)})


@pile.operation("put", "TOY-7")
def put(state: Pile, item: Count) -> Pile:
    return Pile((*state.items, item))


@pile.operation("swap", "TOY-7")
def swap(state: Pile, n: Count, item: Count) -> Pile:
    return Pile(tuple(item if at == n else x for at, x in enumerate(state.items)))


@pile.operation("clear", "TOY-7")
def clear(state: Pile) -> Pile:
    return Pile()


@pile.question("item", "TOY-7")
def item_at(state: Pile, n: Count) -> int | None:
    return state.items[n] if n < len(state.items) else None


@pile.question("size", "TOY-7")
def size(state: Pile) -> int:
    return len(state.items)


pile.tried = {"item": lambda state: [1, 2, 3], "n": lambda state: [*range(len(state.items)), 0]}


def test_a_question_is_asked_again_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that needs many items, a question, one change that leaves them, and the question again."""
    many = 6

    def wrong() -> int:
        """How often it shows that the last answer is remembered as long as there are many items."""
        found = 0
        for made in histories(30, of=pile):
            remembered: tuple[int, int | None] | None = None
            for call, state in made:
                if len(state.items) < many:
                    remembered = None
                elif call.operation.name == "item":
                    n = call.arguments["n"]
                    answer = item_at(state, n)
                    found += remembered is not None and remembered[0] == n and remembered[1] != answer
                    remembered = n, answer
        return found

    found = wrong()
    monkeypatch.setattr(generate, "CHANGES", 1)  # any change, such as one that clears all
    assert found > 1.5 * wrong()
    monkeypatch.setattr(generate, "ASKED_AGAIN", 0.0)
    assert found > 3 * wrong()
    assert found >= 5


def test_some_histories_keep_to_few_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    def few() -> int:
        """Histories in which five operations are nearly all."""
        shares = []
        for made in histories(60):
            names = Counter(call.operation.name for call, _ in made)
            shares.append(sum(n for _, n in names.most_common(5)) / len(made))
        return sum(share > 0.85 for share in shares)

    with_few = few()
    monkeypatch.setattr(generate, "FEW", 0.0)
    assert with_few > few() + 5


def test_an_end_of_a_range_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def met() -> int:
        most = 2**31 - 1
        return sum(
            call.operation.name == "ended" and call.arguments["requested"] == most and most in state.epochs
            for made in histories(120)
            for call, state in made
        )

    found = met()
    monkeypatch.setattr(generate, "USED_AGAIN", (0.0, 0.0))
    assert found > 2 * met()


def test_no_number_leaves_its_range() -> None:
    for made in histories(60):
        for call, _ in made:
            assert call.operation.beyond(call.arguments) == []


def test_what_is_outside_its_range_is_not_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a candidate: a spec's next epoch after the last one that there is."""
    item, state = pile.find("item"), Pile((1,))
    assert generate.proposed(Cover(), state, Call(item, {"n": 2**31 - 1})) is not None
    assert generate.proposed(Cover(), state, Call(item, {"n": 2**31})) is None
    monkeypatch.setitem(pile.tried, "n", lambda state: [0, 2**31])
    asked = [call.arguments["n"] for made in histories(20, of=pile) for call, _ in made if call.operation is item]
    assert 0 in asked
    assert 2**31 not in asked


def test_numbers_in_texts_are_changed_and_names_are_not() -> None:
    calls = [call.arguments for made in histories(120) for call, _ in made if call.operation.name == "read"]
    files = {a["file"] for a in calls}
    assert {a["name"] for a in calls} == {"topic-0"}
    assert any(f"7 {n}" in f for f in files for n in WIDE if n not in (1, 3))
    assert any(f.startswith('{"brokerEpoch": ') and f != '{"brokerEpoch": 5}' for f in files)


def test_places_of_numbers() -> None:
    value = {"q": [1, "t 0 5\n"], "n": None, "b": True, "names": ["t-0", "a1"]}
    places: list[tuple[Path, Any]] = list(numbers_in(value, ("x",)))
    assert places == [(("x", "q", 0), None), (("x", "q", 1), (2, 3)), (("x", "q", 1), (4, 5))]
    assert with_one(value, ("q", 1), (4, 5), -7) == {**value, "q": [1, "t 0 -7\n"]}
    assert with_one(value, ("q", 0), None, 9)["q"] == [9, "t 0 5\n"]
    assert extent(show(Shelf((1, 2)))) > extent(show(Shelf((1,))))


@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name, s in subsystems().items() if s.spec.machine.operations])
def test_rare_faults_are_found_at_the_defaults(name: str) -> None:
    """By a campaign all but two, by one of two all but one: which ones, chance decides."""
    s = find(name)
    module = s.beside("mutants")
    assert module is not None
    kills = campaigned(s, module.RARE, "guided", 0, DEFAULT, sound=True)
    assert len(kills) >= (11 if s.is_component else 8)
    left = [m for m in module.RARE if kills[m.name] is None]
    assert len(left) <= 2
    assert len(left) < 2 or [*campaigned(s, left, "guided", 1, DEFAULT).values()].count(None) < 2


def no_json(value: Any) -> Iterator[str]:
    """What in it no trace has."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if type(value) in (list, tuple):
        for inner in value:
            yield from no_json(inner)
    elif type(value) not in (type(None), bool, int, float, str):
        yield type(value).__name__


@pytest.mark.parametrize("name", subsystems())
def test_arguments_that_are_offered_are_as_in_a_trace(name: str) -> None:
    """What is not cannot be made small when it is rejected."""
    machine = find(name).spec.machine
    state = machine.initial()
    for of, given in machine.candidates.items():
        if not of.startswith("init:"):
            assert {*no_json([*given(state)])} == set(), of
