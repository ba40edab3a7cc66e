"""The machine: operations that return a state, questions, typed arguments and answers, parts found by name, drivers."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest
from icontract import ViolationError, ensure, require

from kafkaspec.contract import clauses
from kafkaspec.contract.clauses import states
from kafkaspec.contract.codec import Fields, partial
from kafkaspec.contract.machine import ByName, Machine, Nothing, Outside, Refused, Step, without_state
from kafkaspec.lockstep.walk import walk

NEGATIVE = Refused("CTR-1", "java.lang.IllegalArgumentException")
EMPTY = Refused("CTR-2", "java.util.NoSuchElementException")


class Entry(NamedTuple):
    epoch: int
    start_offset: int


@dataclass(frozen=True)
class Cache:
    entries: tuple[Entry, ...] = ()


@partial
@dataclass(frozen=True)
class Observation:
    entries: tuple[Entry, ...]
    latest_epoch: int | None


@dataclass(frozen=True)
class Neighbours:
    previous: int | None
    next_epoch: int | None


def observe(state: Cache) -> Observation:
    return Observation(state.entries, state.entries[-1].epoch if state.entries else None)


def build() -> Machine[Cache]:
    machine: Machine[Cache] = Machine("cache", Cache, observe, home=__name__)

    @machine.operation("assign", "CTR-1")
    @ensure(
        lambda state, entry, result: isinstance(result, Refused) or result.entries == (*state.entries, entry),
        "CTR-1 it is the latest",
    )
    def assign(state: Cache, entry: Entry) -> Cache | Refused:
        """A new entry."""
        return NEGATIVE if entry.epoch < 0 else replace(state, entries=(*state.entries, entry))

    @machine.operation("pop", "CTR-2")
    @ensure(
        lambda state, result: isinstance(result.result, Refused) or result.result == state.entries[-1],
        "CTR-2 the latest",
    )
    def pop(state: Cache) -> Step[Cache, Entry]:
        """It changes the state, and answers."""
        if not state.entries:
            return Step(state, EMPTY)
        return Step(Cache(state.entries[:-1]), state.entries[-1])

    @machine.question("neighboursOf")
    @require(lambda epoch: epoch >= 0, "CTR-3 an epoch")
    @ensure(lambda epoch, result: result.previous is None or result.previous < epoch, "CTR-3 below it")
    def neighbours(state: Cache, epoch: int = 3) -> Neighbours:
        lower = [e.epoch for e in state.entries if e.epoch < epoch]
        higher = [e.epoch for e in state.entries if e.epoch > epoch]
        return Neighbours(max(lower, default=None), min(higher, default=None))

    @machine.question("latest")
    def latest(state: Cache) -> Entry | Refused | None:
        return state.entries[-1] if state.entries else EMPTY

    @machine.question("rising")
    @require(lambda entries: all(e.epoch < 9 for e in entries), "CTR-4 low ones")
    @ensure(lambda entries, result: result or len(entries) > 1, "CTR-4 one rises")
    def rising(entries: tuple[Entry, ...]) -> bool:
        """It needs no state."""
        return entries == tuple(sorted(entries))

    machine.candidates |= {
        "entry": lambda state: [[-1, 0], [0, 0], [1, 5], [3, 9]],
        "epoch": lambda state: [0, 1, 4],
        "entries": lambda state: [[], [[0, 3], [1, 5]], [[1, 5], [0, 3]]],
    }
    return machine


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests register is gone after them."""
    monkeypatch.setattr(clauses, "_clauses", {})
    monkeypatch.setattr(clauses, "_uses", {})
    monkeypatch.setattr(Driver, "machine", build(), raising=False)


ONE = Cache((Entry(1, 5),))
CALLS: list[tuple[Cache, str, dict[str, Any], Step[Cache]]] = [
    (Cache(), "assign", {"entry": [1, 5]}, Step(ONE)),
    (Cache(), "assign", {"entry": Entry(1, 5)}, Step(ONE)),
    (ONE, "assign", {"entry": [-1, 0]}, Step(ONE, NEGATIVE)),
    (ONE, "pop", {}, Step(Cache(), [1, 5])),
    (Cache(), "pop", {}, Step(Cache(), EMPTY)),
    (ONE, "neighboursOf", {"epoch": 4}, Step(ONE, {"previous": 1, "nextEpoch": None})),
    (ONE, "neighboursOf", {}, Step(ONE, {"previous": 1, "nextEpoch": None})),
    (ONE, "latest", {}, Step(ONE, [1, 5])),
    (Cache(), "latest", {}, Step(Cache(), EMPTY)),
    (ONE, "rising", {"entries": [[0, 3], [1, 5]]}, Step(ONE, True)),
    (ONE, "rising", {"entries": [[1, 5], [0, 3]]}, Step(ONE, False)),
]


@pytest.mark.parametrize(("state", "name", "arguments", "expected"), CALLS)
def test_a_call_with_and_without_contracts_and_as_a_trace_has_it(
    state: Cache, name: str, arguments: dict[str, Any], expected: Step[Cache]
) -> None:
    machine = build()
    op = machine.find(name)
    for step in (
        machine.apply(state, name, arguments),
        machine.apply(state, name, arguments, contracts=False),
        op.direct(state, arguments),
        op.traced(state, arguments),
    ):
        assert step == expected
        assert isinstance(step, Step)
        assert type(step.result) is type(expected.result)


def test_an_argument_is_decoded_once_for_the_conditions_and_the_body() -> None:
    """And again for the next call: nothing is kept."""
    op = build().find("rising")
    decode, seen = op.decoders["entries"], list[Any]()

    def counted(value: Any) -> Any:
        seen.append(value)
        return decode(value)

    vars(op)["decoders"] = {"entries": counted}
    assert op.preconditions
    rising, falling, high = [[0, 3], [1, 5]], [[1, 5], [0, 3]], [[9, 0]]
    for call in (op.direct, op.traced):
        answers = [call(Cache(), {"entries": entries}) for entries in (rising, falling, high)]
        assert answers == [Step(Cache(), True), Step(Cache(), False), Outside("CTR-4", "low ones")]
    assert seen == [rising, falling, high] * 2


def test_a_precondition_looks_at_typed_arguments() -> None:
    machine = build()
    for name, arguments, broken in (
        ("neighboursOf", {"epoch": -1}, Outside("CTR-3", "an epoch")),
        ("rising", {"entries": [[9, 0]]}, Outside("CTR-4", "low ones")),
    ):
        for contracts in (True, False):
            assert machine.apply(ONE, name, arguments, contracts) == broken
        assert machine.find(name).traced(ONE, arguments) == broken


def test_postconditions_look_at_what_the_function_returns() -> None:
    machine = build()
    for name, result in (
        ("assign", None),
        ("assign", NEGATIVE),
        ("pop", [1, 5]),
        ("pop", EMPTY),
        ("neighboursOf", {"previous": 1, "nextEpoch": None}),
        ("latest", [1, 5]),
        ("latest", EMPTY),
        ("rising", True),
    ):
        op = machine.find(name)
        step = Step(ONE, result)
        returned = op.returned(step)
        assert op.step(ONE, returned) == step, "there and back"
        assert isinstance(returned, Refused) == (isinstance(result, Refused) and name != "pop")
    assert machine.find("latest").returned(Step(ONE, [1, 5])) == Entry(1, 5)
    assert machine.find("pop").returned(Step(ONE, [1, 5])).result == Entry(1, 5)
    assert machine.find("assign").returned(Step(ONE)) is ONE


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("assign", lambda state, entry: ONE),
        ("pop", lambda state: Step(Cache(), Entry(9, 9))),
        ("neighboursOf", lambda state, epoch: Neighbours(epoch, None)),
        ("rising", lambda entries: False),
    ],
)
def test_a_broken_postcondition_is_a_bug_of_the_spec(name: str, body: Callable[..., Any]) -> None:
    machine = build()
    op = machine.find(name)
    function = body
    for post in op.postconditions:
        function = ensure(post.condition, error=lambda: ViolationError(name))(function)
    machine.operations[name] = replace(op, function=function)
    arguments = {"entry": Entry(7, 7), "epoch": 3, "entries": ()}
    state = Cache((Entry(1, 5), Entry(3, 9)))
    with pytest.raises(ViolationError):
        machine.apply(state, name, {p: arguments[p] for p in op.parameters.values()})


def test_a_broken_contract_that_has_a_name_says_its_own_words() -> None:
    """icontract finds no text of a condition that stands in no decorator."""
    rises = ensure(lambda state, result: result > state, "CTR-1 it rises")
    machine = Machine("named", lambda: 0, lambda state: state)

    @machine.operation("add", "CTR-1")
    @rises
    def add(state: int, n: int) -> int:
        return state + n

    assert machine.apply(0, "add", {"n": 1}) == Step(1)
    with pytest.raises(ViolationError, match=r"^CTR-1 it rises$"):
        machine.apply(0, "add", {"n": -1})
    with pytest.raises(ViolationError, match=r"^CTR-1 it rises$"):
        add(0, -1)


def test_a_contract_that_the_operation_does_not_know_is_watched_all_the_same() -> None:
    machine = build()
    op = machine.find("neighboursOf")
    machine.operations["neighboursOf"] = replace(op, preconditions=())
    with pytest.raises(ViolationError, match="CTR-3 an epoch"):
        machine.apply(Cache(), "neighboursOf", {"epoch": -1})


def test_what_an_operation_is() -> None:
    machine = build()
    assert [op.returns for op in machine.operations.values()] == ["state", "step", "answer", "answer", "answer"]
    assert [op.takes_state for op in machine.operations.values()] == [True, True, True, True, False]
    assert [op.result_hint for op in machine.operations.values()] == [
        type(None), Entry, Neighbours, Entry | None, bool
    ]  # fmt: skip
    assert machine.observe(ONE) == {"entries": [[1, 5]], "latestEpoch": 1}
    assert isinstance(machine.observe(ONE), Fields)


def test_an_operation_states_what_its_docstring_and_states_below_it_say() -> None:
    machine = build()

    @machine.operation("clear")
    @states("CTR-5", source="A class")
    @states("CTR-6")
    @ensure(lambda result: result.entries == (), "CTR-7 nothing is left")
    def clear(state: Cache) -> Cache:
        """CTR-5: Nothing is left."""
        return Cache()

    @machine.question("size", "CTR-8")
    @states("CTR-5")
    def size(state: Cache) -> int:
        """CTR-9: It is the number of entries. [A class]"""
        return len(state.entries)

    assert machine.find("clear").clauses == ("CTR-5", "CTR-6")
    assert machine.find("size").clauses == ("CTR-9", "CTR-5", "CTR-8")
    assert (clauses.find("CTR-9").sentence, clauses.find("CTR-9").source) == ("It is the number of entries.", "A class")
    stated = {u.clause for u in clauses.all_uses() if u.form == "spec" and u.where.endswith(":clear")}
    assert stated == {"CTR-5", "CTR-6", "CTR-7"}
    assert machine.apply(ONE, "clear", {}) == Step(Cache())


def test_an_operation_of_the_environment_names_no_clause() -> None:
    """Its contracts do: they say what the caller may do."""
    machine = build()

    @machine.environment("damage", kind="damage")
    @require(lambda state: bool(state.entries), "CTR-1 there is something to damage")
    def damage(state: Cache) -> Cache:
        "The first entry is gone."
        return Cache(state.entries[1:])

    op = machine.find("damage")
    assert (op.clauses, op.environment, op.kind) == ((), True, "damage")
    assert isinstance(machine.apply(Cache(), "damage", {}), Outside)
    assert machine.apply(ONE, "damage", {}) == Step(Cache())
    with pytest.raises(ValueError, match="lose is of the environment, and states CTR-1"):

        @machine.environment("lose")
        @clauses.states()
        def lose(state: Cache) -> Cache:
            """CTR-1: An entry is lost. [A class]"""
            return state


def test_only_a_question_does_without_the_state() -> None:
    machine = build()
    with pytest.raises(ValueError, match="reopen has no parameter `state`"):

        @machine.operation("reopen")
        def reopen() -> Cache:
            return Cache()

    for name in ("hello", "init", "observe"):
        with pytest.raises(ValueError, match=f"cannot be named {name}"):
            machine.question(name)(lambda: 1)


def test_a_contract_begins_with_its_clause() -> None:
    machine = build()
    with pytest.raises(ValueError, match="must begin with its clause id"):

        @machine.question("size")
        @ensure(lambda result: result >= 0, "not negative")
        def size(state: Cache) -> int:
            return 0


def test_questions_alone_need_no_state() -> None:
    machine = without_state("questions", __name__)

    @machine.question("negated")
    def negated(entry: Entry) -> Entry:
        return Entry(-entry.epoch, entry.start_offset)

    class Audit(ByName):
        def negated(self, entry: Entry) -> list[int]:
            return [-entry[0], entry[1]]

    Audit.machine = machine
    machine.candidates |= {"entry": lambda state: [[0, 1], [4, 2]]}
    assert machine.apply(Nothing(), "negated", {"entry": [4, 2]}) == Step(Nothing(), [-4, 2])
    assert walk(machine, Audit(), 0, 20).failure is None


# ---- the parts of a spec


def part(name: str) -> str:
    return f"from {name} import machine\nmachine.candidates |= {{'x': lambda state: [1, 2]}}\n"


def test_arguments_and_deviations_stand_beside_the_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by name, and imported when they are asked for, not before; a machine that is a copy has them too."""
    text = """
from kafkaspec.contract.machine import Machine

def initial() -> int:
    return 0

def observe(state: int) -> int:
    return state

machine = Machine("spec", initial, observe)
machine.candidates_before = dict(machine.tried)
"""
    for name in ("a_spec", "a_spec_alone"):
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    (tmp_path / "a_spec_trial.py").write_text(part("a_spec"), "utf-8")
    (tmp_path / "a_spec_released.py").write_text("from a_spec import machine\nmachine.deviations += ['D1']\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    machine = importlib.import_module("a_spec").machine
    alone = importlib.import_module("a_spec_alone").machine
    try:
        assert not {"a_spec_trial", "a_spec_released"} & sys.modules.keys()
        assert [*machine.candidates] == ["x"]
        assert "a_spec_released" not in sys.modules
        assert machine.deviations == ["D1"]
        assert replace(machine).deviations == ["D1"]
        assert machine.candidates["x"](0) == [1, 2]
        assert (alone.candidates, alone.deviations) == ({}, [])
    finally:
        for name in [m for m in sys.modules if m.startswith("a_spec")]:
            del sys.modules[name]


# ---- drivers by name


class NotThere(LookupError):
    pass


class Impl:
    """A cache of its own kind: two columns."""

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self.starts: list[int] = []

    def assign(self, entry: tuple[int, int]) -> None:
        if entry[0] < 0:
            raise ValueError
        self.epochs.append(entry[0])
        self.starts.append(entry[1])

    def neighbours(self, epoch: int) -> Neighbours:
        lower, higher = [e for e in self.epochs if e < epoch], [e for e in self.epochs if e > epoch]
        return Neighbours(max(lower, default=None), min(higher, default=None))

    def latest(self) -> Entry:
        if not self.epochs:
            raise NotThere
        return Entry(self.epochs[-1], self.starts[-1])


class Driver(ByName):
    machine = build()
    refusals: ClassVar[Mapping[type[Exception], Refused | Callable[[Any], Refused]]] = {
        NotThere: EMPTY,
        LookupError: NEGATIVE,
        ValueError: NEGATIVE,
    }

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.subject = Impl()

    def pop(self) -> Entry | Refused:
        if not self.subject.epochs:
            return EMPTY
        return Entry(self.subject.epochs.pop(), self.subject.starts.pop())

    def rising(self, entries: tuple[Entry, ...]) -> bool:
        return all(a.epoch <= b.epoch for a, b in itertools.pairwise(entries))

    def state(self) -> Cache:
        return Cache(tuple(map(Entry, self.subject.epochs, self.subject.starts)))


def test_a_driver_by_name_answers_as_the_spec_does() -> None:
    covered = set()
    for seed in range(20):
        w = walk(build(), Driver(), seed, 30)
        assert w.failure is None, str(w.failure)
        covered |= w.coverage.operations.keys() | w.coverage.refusals.keys()
    assert covered >= {*build().operations, "assign CTR-1", "pop CTR-2", "latest CTR-2"}


def test_arguments_are_typed_and_answers_are_json() -> None:
    driver = Driver()
    driver.reset({})
    assert driver.apply("assign", {"entry": [1, 5]}) is None
    assert driver.state() == ONE
    assert driver.observe() == {"entries": [[1, 5]], "latestEpoch": 1}
    assert driver.apply("neighboursOf", {}) == {"previous": 1, "nextEpoch": None}, "the default is the spec's"
    assert driver.apply("latest", {}) == [1, 5]
    assert driver.apply("rising", {"entries": [[1, 5], [0, 3]]}) is False
    assert driver.apply("pop", {}) == [1, 5]


def test_of_several_refusals_that_fit_it_is_the_first() -> None:
    driver = Driver()
    driver.reset({})
    assert driver.apply("assign", {"entry": [-1, 5]}) == NEGATIVE
    assert driver.apply("latest", {}) == EMPTY, "NotThere is a LookupError too"

    class Turned(Driver):
        refusals: ClassVar[Mapping[type[Exception], Refused | Callable[[Any], Refused]]] = {
            LookupError: NEGATIVE,
            NotThere: EMPTY,
        }

    turned = Turned()
    turned.reset({})
    assert turned.apply("latest", {}) == NEGATIVE
    with pytest.raises(ValueError):
        turned.apply("assign", {"entry": [-1, 5]})


def test_a_refusal_is_made_of_the_exception_where_a_function_says_so() -> None:
    class Told(Driver):
        refusals: ClassVar[Mapping[type[Exception], Refused | Callable[[Any], Refused]]] = {
            NotThere: lambda e: Refused("CTR-2", type(e).__name__),
            ValueError: NEGATIVE,
        }

    told = Told()
    told.reset({})
    assert told.apply("latest", {}) == Refused("CTR-2", "NotThere")
    assert told.apply("assign", {"entry": [-1, 5]}) == NEGATIVE


def test_a_method_with_keywords_is_given_the_arguments_by_their_names() -> None:
    class Named(Driver):
        def assign(self, **given: Any) -> None:
            self.given = given

        def neighbours(self, *, epoch: int, **given: Any) -> Neighbours:
            assert not given
            return Neighbours(epoch, None)

    named = Named()
    named.reset({})
    assert named.apply("assign", {"entry": [1, 5]}) is None
    assert named.given == {"entry": Entry(1, 5)}
    assert named.apply("neighboursOf", {"epoch": 4}) == {"previous": 4, "nextEpoch": None}


def test_a_driver_without_a_method_of_that_name_fails() -> None:
    class Without(ByName):
        machine = build()

    with pytest.raises(AttributeError):
        Without().apply("pop", {})


def test_a_driver_is_told_none_of_a_choice_that_is_its_own() -> None:
    machine = Machine("choice", initial=Nothing, show=lambda state: {})

    @machine.operation("take", "CTR-1", chosen=("which",))
    def take(state: Nothing, most: int, which: int | None) -> Step[Nothing, list[int | None]]:
        return Step(state, [most, which])

    class Choosing(ByName):
        def take(self, most: int, which: int | None) -> list[int | None]:
            return [most, which]

    Choosing.machine = machine
    assert Choosing().apply("take", {"most": 3}) == [3, None]
    assert Choosing().apply("take", {"most": 3, "which": 2}) == [3, 2]


def test_the_driver_itself_goes_before_its_subject() -> None:
    class Instead(Driver):
        def latest(self) -> Entry:
            return Entry(8, 8)

    driver = Instead()
    driver.reset({})
    assert driver.apply("latest", {}) == [8, 8]
