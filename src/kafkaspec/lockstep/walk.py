"""Lockstep: the spec beside a driver (our impl, a target), the same calls to both, every answer and state compared.

Two generators drive one `Pair`: a seeded walk (campaigns, kill matrix: fast, and the seed replays it) and a Hypothesis
state machine (tests: it shrinks what it finds). Both draw arguments from the machine's candidates and never leave the
contract. A failure is a `History`: it prints as a conversation and replays by `replay` or `kafkaspec check`.
"""

from __future__ import annotations

import inspect
import itertools
import random
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kafkaspec.contract import clauses
from kafkaspec.contract.history import History, Record, answer_text, call_text, outcome
from kafkaspec.contract.machine import Driver, Json, Machine, Operation, Outside, Pick, Refused, Step
from kafkaspec.contract.project import place_of
from kafkaspec.errors import ENDINGS
from kafkaspec.lockstep.compare import MAX_DIFFERENCES, Difference, differences, matches, same, shape, written
from kafkaspec.lockstep.shrink import Again, fewer_calls
from kafkaspec.workers import few_collections

if TYPE_CHECKING:
    from hypothesis.stateful import RuleBasedStateMachine

ModelState = Callable[[Any], Hashable | None]
"""The state of a model that a spec's state stands for; None where it is beyond the model's sizes."""


@dataclass
class Coverage:
    """What was exercised: calls by operation, by clause, refusals by "operation clause", and model states reached."""

    operations: Counter[str] = field(default_factory=Counter)
    clauses: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    model_states: set[Hashable] = field(default_factory=set)

    def add(self, other: Coverage) -> None:
        """Take in what another run covered."""
        self.operations += other.operations
        self.clauses += other.clauses
        self.refusals += other.refusals
        self.model_states |= other.model_states


@dataclass(frozen=True)
class Walk:
    """One seeded walk. `outside` is set if it was asked to leave the contract, and did."""

    seed: int
    steps: int
    failure: History | None
    coverage: Coverage
    outside: Outside | None = None


MOST_ANSWERS: Final = 1 << 15
"""Of at most this many calls it is kept what the spec says."""
CHANGING: Final = (list, dict, set, bytearray)
"""Of these, one may be another value with the same identity later."""


_Kept = tuple[tuple[Any, ...], list[tuple[Any, Any]], Step[Any] | Outside]
"""A call's arguments; those that can change, with what they were; and what the spec says."""


class Answers:
    """What a spec says to calls, each asked once: what is drawn is often drawn again. A call that needs no state is the
    same one after any other, in further walks too; the others are while the state stays. Arguments are known by their
    identities, and by what they were where they can change. The rules must stay as they are while one of these is used.
    """

    def __init__(self, machine: Machine[Any], contracts: bool = True) -> None:
        self.machine = machine
        self.contracts = contracts
        self._state: Any = None
        self._here: dict[tuple[Hashable, ...], _Kept] = {}
        self._anywhere: dict[tuple[Hashable, ...], _Kept] = {}

    def step(self, op: Operation[Any], state: Any, arguments: Mapping[str, Any]) -> Step[Any] | Outside:
        """The same as `Machine.apply`."""
        if state is not self._state:
            self._state, self._here = state, {}
        values = tuple(arguments.values())
        known = self._anywhere if op.needs_no_state else self._here
        key = (op.name, *arguments, *map(id, values))
        found = known.get(key)
        if found is None or any(now != was for now, was in found[1]):
            if len(known) == MOST_ANSWERS:
                known.clear()
            changing = [(v, _as_it_is(v)) for v in values if isinstance(v, CHANGING)]
            step = self.machine.apply(state, op.name, arguments, self.contracts)
            found = known[key] = values, changing, step  # the values are kept, so that no others have their identities
        step = found[2]
        return Step(state, step.result) if op.needs_no_state and isinstance(step, Step) else step


def _as_it_is(value: Any) -> Any:
    """A value that stays as it is, whatever becomes of the lists, dictionaries and sets in it."""
    if isinstance(value, list):
        return [_as_it_is(x) for x in value]
    if isinstance(value, dict):
        return {k: _as_it_is(x) for k, x in value.items()}
    return value.copy() if isinstance(value, (set, bytearray)) else value


class Pair:
    """A spec's state beside a driver. The records of a failing history show what the driver answered."""

    def __init__(
        self,
        machine: Machine[Any],
        driver: Driver,
        init: Mapping[str, Json],
        *,
        model_state: ModelState | None = None,
        who: str = "lockstep",
        contracts: bool = True,
        answers: Answers | None = None,
    ) -> None:
        """Both begin again; `init` is the configuration by Python names. A driver that begins elsewhere is a failure of
        the first step."""
        self.machine = machine
        self.driver = driver
        self.who = who
        self.answers = answers or Answers(machine, contracts)
        self.model_state = model_state
        self.coverage = Coverage()
        self._shown_of: Any = None
        """the state whose observation is kept: a state is frozen, and most calls leave it as it is"""
        self.state: Any = machine.initial(**init)
        self.records: list[Record] = [{"op": "init", "args": machine.init_names(init)}]
        try:
            driver.reset(init)
            seen = driver.observe()
        except ENDINGS:
            raise
        except BaseException as e:
            self.failure: History | None = self._crashed(e, "")
        else:
            self.failure = self._compared("", None, None, seen)
        self._note_model_state()

    def look_again(self) -> None:
        """At the end: compare the states once more, with nothing that is kept from before."""
        if self.failure is None:
            self._shown_of = None
            try:
                seen = self.driver.observe()
            except ENDINGS:
                raise
            except BaseException as e:
                self.failure = self._crashed(e, "")
            else:
                self.failure = self._compared("", None, None, seen)

    def call(self, op: Operation[Any], arguments: Mapping[str, Any]) -> Outside | None:
        """One call to both; `failure` is set if they disagree. A call outside the contract is made to neither."""
        step = self.answers.step(op, self.state, arguments)
        if isinstance(step, Outside):
            return step
        moved, self.state = step.state is not self.state, step.state
        self.records.append(_record(op, arguments))
        refused = step.result if isinstance(step.result, Refused) else None
        self.coverage.operations[op.name] += 1
        for id in op.clauses if refused is None else (refused.clause,):
            self.coverage.clauses[id] += 1
        if refused is not None:
            self.coverage.refusals[f"{op.name} {refused.clause}"] += 1
        if moved:
            self._note_model_state()
        clause = refused.clause if refused is not None else op.clauses[0] if op.clauses else ""
        try:
            answer = self.driver.apply(op.name, arguments)
            self.records[-1] |= outcome(answer)
            seen = self.driver.observe()
        except ENDINGS:
            raise
        except BaseException as e:
            self.failure = self._crashed(e, clause)
        else:
            self.failure = self._compared(clause, step.result, answer, seen)
        return None

    def _note_model_state(self) -> None:
        if self.model_state is not None and (reached := self.model_state(self.state)) is not None:
            self.coverage.model_states.add(reached)

    def _compared(self, clause: str, expected: Json | Refused, answer: Json | Refused, seen: Json) -> History | None:
        if why := unlike(expected, answer):
            found = [Difference("result", None, None)]
            return self._failed(why, clause, shape(outcome(expected), outcome(answer), found))
        if self._shown_of is not self.state:
            self._shown_of, self._shown = self.state, self.machine.observe(self.state)
            self._shown_text = written(self._shown)
        shown = self._shown
        if same(shown, seen, self._shown_text):
            return None
        wrong = list(differences(shown, seen, "state"))
        self.records[-1]["state"] = seen
        more = f"\nand {len(wrong) - MAX_DIFFERENCES} more differences" if len(wrong) > MAX_DIFFERENCES else ""
        return self._failed("\n".join(map(str, wrong[:MAX_DIFFERENCES])) + more, clause, shape({}, {}, wrong))

    def _crashed(self, error: BaseException, clause: str) -> History:
        """The driver raised something: also SystemExit, which would end us, or a panic of its native code."""
        what = f"the driver failed: {type(error).__name__}"
        where = "" if isinstance(error, Exception) else f", raised at {place_of(error)}"
        return self._failed(f"{what}: {error}{where}", clause, what)

    def _failed(self, why: str, clause: str, kind: str) -> History:
        last = self.records[-1]
        known = {c.id: c.sentence for c in clauses.all_clauses()}
        head = f"{self.who}: differs at call {len(self.records) - 1}: {call_text(last['op'], last['args'])}"
        rule = f"\n{clause}: {known[clause]}" if clause in known else f"\n{clause}" if clause else ""
        return History(tuple(self.records), f"{head}{rule}\n{why}", clause, kind)


def _record(op: Operation[Any], arguments: Mapping[str, Any]) -> Record:
    """A call by the names of the recordings, without an answer yet."""
    return {"op": op.name, "args": {t: arguments[p] for t, p in op.parameters.items() if p in arguments}}


def unlike(expected: Json | Refused, answer: Json | Refused) -> str:
    """How an answer differs from the spec's; "" if it does not. Refusals agree in class, in the clause if the driver
    names one, and in the message if both have one."""
    if isinstance(expected, Refused) and isinstance(answer, Refused):
        if (
            expected.error == answer.error
            and answer.clause in ("", expected.clause)
            and (None in (expected.message, answer.message) or expected.message == answer.message)
        ):
            return ""
        if expected.error == answer.error and expected.clause != answer.clause and answer.clause:
            return f"refused by {answer.clause}, expected a refusal by {expected.clause}"
    elif not isinstance(expected, Refused) and not isinstance(answer, Refused) and matches(expected, answer):
        return ""
    return f"answered {answer_text(outcome(answer))}, expected {answer_text(outcome(expected))}"


def walk(
    machine: Machine[Any],
    driver: Driver,
    seed: int,
    steps: int,
    *,
    outside: bool = False,
    model_state: ModelState | None = None,
    contracts: bool = True,
    answers: Answers | None = None,
) -> Walk:
    """Walk `steps` calls, all drawn from one generator: the same seed is the same walk.

    Each walk weighs the operations again and leaves some out, so that histories with many of one kind come up. With
    `outside`, the first call that breaks a precondition ends the walk (and is not made); without, it is drawn again.
    `contracts` has the spec watch itself: a broken postcondition raises icontract.ViolationError; so has `answers`,
    which several walks may share.
    """
    rng = random.Random(seed)
    pick: Pick = rng.choice
    operations = [op for op in machine.operations.values() if op.generated]
    weights = [rng.choice((0, 1, 1, 4)) for _ in operations]
    if not any(weights):
        weights = [1] * len(operations)
    cumulative = list(itertools.accumulate(weights))
    last = len(operations) - 1
    offers = Offers(machine)
    init, who = draw_init(machine, pick), f"lockstep, seed {seed}"
    with few_collections():
        pair = Pair(machine, driver, init, model_state=model_state, who=who, contracts=contracts, answers=answers)
        done = drawn = 0
        left: Outside | None = None
        while left is None and pair.failure is None and done < steps and drawn < 10 * steps:
            drawn += 1
            op = operations[bisect(cumulative, rng.random() * cumulative[-1], 0, last)]  # as rng.choices, of one
            arguments = offers.draw(op, pair.state, pick)
            if arguments is None:
                continue
            broken = pair.call(op, arguments)
            if broken is None:
                done += 1
            elif outside:
                left = broken
        pair.look_again()
    return Walk(seed, done, pair.failure, pair.coverage, left)


def calls(
    machine: Machine[Any], rng: random.Random, steps: int
) -> Iterator[tuple[Any, Operation[Any], dict[str, Any], Step[Any]]]:
    """The steps of a walk of the spec alone, of `steps` draws: the state before, the operation, its arguments and the
    step. Draws without candidates, or outside the contract, are left out."""
    operations = [op for op in machine.operations.values() if op.generated]
    state = machine.initial(**draw_init(machine, rng.choice))
    for _ in range(steps):
        op = rng.choice(operations)
        arguments = draw(machine, op, state, rng.choice)
        step = None if arguments is None else machine.apply(state, op.name, arguments, contracts=False)
        if arguments is not None and isinstance(step, Step):
            yield state, op, arguments, step
            state = step.state


def draw_init(machine: Machine[Any], pick: Pick) -> dict[str, Json]:
    """A configuration to begin with: parameters of `initial` that have candidates under "init:name"."""
    names = [p for p in inspect.signature(machine.initial).parameters if f"init:{p}" in machine.candidates]
    return {p: pick(machine.candidates[f"init:{p}"](None)) for p in names}


def draw(machine: Machine[Any], op: Operation[Any], state: Any, pick: Pick) -> dict[str, Any] | None:
    """Arguments for one call; None if a parameter has no candidate in this state."""
    return drawn_from(machine.choices(op, state), pick)


def drawn_from(choices: Mapping[str, Sequence[Any]], pick: Pick) -> dict[str, Any] | None:
    """One of each parameter's candidates; None if a parameter has none."""
    return {p: pick(c) for p, c in choices.items()} if all(choices.values()) else None


class Offers:
    """The candidates of a walk's operations, made once for a state: many calls leave it as it is."""

    def __init__(self, machine: Machine[Any]) -> None:
        self.machine = machine
        self._made_for: Any = None
        self._made: dict[str, Mapping[str, Sequence[Any]]] = {}

    def draw(self, op: Operation[Any], state: Any, pick: Pick) -> dict[str, Any] | None:
        """The same as `draw`."""
        if state is not self._made_for:
            self._made_for, self._made = state, {}
        choices = self._made.get(op.name)
        if choices is None:
            choices = self._made[op.name] = self.machine.choices(op, state)
        return drawn_from(choices, pick)


def replay(
    machine: Machine[Any], driver: Driver, records: Sequence[Mapping[str, Any]], contracts: bool = True
) -> History | None:
    """Make the calls of a history again, without those that are outside the contract now; the failure, if any."""
    init: Mapping[str, Json] = {}
    if records and records[0]["op"] == "init":
        init, records = machine.python_names(records[0]["args"]), records[1:]
    pair = Pair(machine, driver, init, contracts=contracts)
    for r in records:
        if pair.failure is not None:
            break
        op = machine.find(r["op"])
        pair.call(op, {op.parameters[t]: v for t, v in r["args"].items()})
    pair.look_again()
    return pair.failure


def tried_beside(machine: Machine[Any], driver: Driver, contracts: bool = True) -> Again:
    """How the calls of a failing history are tried once more; arguments that the spec cannot take fail nothing."""

    def tried(records: Sequence[Record]) -> History | None:
        try:
            return replay(machine, driver, records, contracts)
        except Exception:
            return None

    return tried


def shrink(machine: Machine[Any], driver: Driver, failure: History, contracts: bool = True) -> History:
    """A history with as few calls as removing some can give, that fails at the same operation by the same clause."""
    return fewer_calls(failure, tried_beside(machine, driver, contracts))


def state_machine(
    machine: Machine[Any], make_driver: Callable[[], Driver], coverage: Coverage | None = None
) -> type[RuleBasedStateMachine]:
    """The Hypothesis state machine of spec and driver: a rule an operation, arguments from its candidates. Its failure
    is an AssertionError with the shrunk history. Run it by `run_state_machine_as_test` or as `TestCase`."""
    from hypothesis import strategies as st  # half a second, which a walk need not wait for
    from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

    class Lockstep(RuleBasedStateMachine):
        @initialize(data=st.data())
        def begin(self, data: st.DataObject) -> None:
            self.pair = Pair(machine, make_driver(), draw_init(machine, lambda c: data.draw(st.sampled_from(c))))
            self.judge()

        def judge(self) -> None:
            if self.pair.failure is not None:
                raise AssertionError(f"spec and driver differ\n{self.pair.failure}")

        def teardown(self) -> None:
            if hasattr(self, "pair"):
                if coverage is not None:
                    coverage.add(self.pair.coverage)
                if self.pair.failure is None:
                    self.pair.look_again()
                    self.judge()

    def operation_rule(op: Operation[Any]) -> Callable[..., None]:
        def call(self: Any, data: st.DataObject) -> None:
            arguments = draw(machine, op, self.pair.state, lambda c: data.draw(st.sampled_from(c)))
            if arguments is not None:
                self.pair.call(op, arguments)
                self.judge()

        call.__name__ = call.__qualname__ = re.sub(r"\W", "_", op.name)
        return rule(data=st.data())(call)

    for op in machine.operations.values():
        if op.generated:
            setattr(Lockstep, f"operation_{op.name.replace('.', '_')}", operation_rule(op))
    Lockstep.__name__ = Lockstep.__qualname__ = f"Lockstep_{machine.name}"
    return Lockstep
