"""One subsystem judged on one running target, history by history.

The spec says beforehand what every line must be answered with, so the next histories are sent while the answers to the
last come in, and almost all are compared as bytes. Where anything differs, the history as it was answered is a trace,
and `check` gives the verdict on it: with known deviations, with the system's own choices, in its words.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice
from operator import itemgetter
from typing import Any, Final, Literal

import orjson

from kafkaspec.contract.history import History, Record, call_text, cut, outcome, parse
from kafkaspec.contract.machine import Condition, Json, Machine, Operation, Outside, Refused, Step
from kafkaspec.contract.subsystem import find
from kafkaspec.errors import UserError, unknown
from kafkaspec.judge.blame import cited
from kafkaspec.judge.check import Check, configuration, mistyped
from kafkaspec.judge.cover import Cover, watched
from kafkaspec.judge.generate import (
    EAGER_PROPOSALS,
    FIRST_PROPOSALS,
    Call,
    Draws,
    Guide,
    Plan,
    Proposal,
    Start,
    fixed,
)
from kafkaspec.judge.result import By, Job, Kind, Rejection, Tally
from kafkaspec.judge.target import Hello, Target, TargetTrouble
from kafkaspec.judge.tokens import Tokens
from kafkaspec.judge.tour import Tour, digest, names_of, tours
from kafkaspec.judge.verdict import Verdict
from kafkaspec.language.concrete import Concrete
from kafkaspec.lockstep.compare import MAX_DIFFERENCES, Difference, differences, outcome_matches, same, shape
from kafkaspec.lockstep.exhaustive import RefinementMapping, model_state
from kafkaspec.lockstep.shrink import shrunk

BLOCK: Final = 250
"""Histories of a block."""
AHEAD: Final = 3
"""Histories that are asked before the answers to the first of them are read."""
HYPOTHESIS_EVERY: Final = 25
"""One history in this many is drawn by Hypothesis."""
EAGER: Final = 10
"""Histories at the beginning of a campaign that are eager: most faults are common, and met within few calls."""
FIRST: Final = 3
"""Those of them that take the newest of still more proposals: half of all faults are rejected in a campaign's start."""
OBSERVE: Final = (1, 1, 4, 16)
"""The state is asked for after every call of a history, or after every fourth, ...; and always at its end."""
SHRINK_TRIES: Final = 2_000
SHRINK_S: Final = 60.0
"""At most this often, and this long, a rejected history is tried with less."""
TRIED: Final = 200
"""At most this many of the histories that were tried are looked at again to find the broken rule."""
ONE_BY_ONE: Final = ("hangs", "died", "garbage", "half a line", "too much")
"""Kinds of trouble in which the target is asked again, line by line, to see where it comes."""
RARE_FROM: Final = 50
"""The first history of a campaign that may begin with growth, or be relabelled: faults that need neither come first."""
RELABELLED_EVERY: Final = 10
"""One drawn history in this many is the one before, with other labels."""
MAX_RIGHT: Final = 100_000
"""At most this many pairs of an expected answer and one that is as good are remembered."""
MODEL_STATES_EVERY: Final = 4
"""The model states of one drawn history in this many are looked up; those of tours always."""


def kind_of(history: History) -> Kind:
    return history.clause, str(history.records[-1]["op"]), history.shape


def offered(machine: Machine[Any], hello: Hello, subsystem: str) -> list[Operation[Any]]:
    """The operations to call. TargetTrouble if the target has no such subsystem, or names an operation there is not."""
    if subsystem not in hello.subsystems:
        offers = ", ".join(sorted(hello.subsystems)) or "none"
        raise TargetTrouble("unknown subsystem", f"{subsystem} (it offers: {offers})")
    names = hello.subsystems[subsystem]
    for name in sorted(names or ()):
        if name not in machine.operations:
            raise TargetTrouble("garbage", f"hello: {subsystem} has no operation {name!r}")
    return [op for op in machine.operations.values() if op.generated and (names is None or op.name in names)]


def narrowed(machine: Machine[Any], hello: Hello, subsystem: str) -> Machine[Any]:
    """The machine of which the target offers no values but those that it lists: any other is outside the contract, and
    no candidate. TargetTrouble if it lists some of an operation or argument there is not, or of another type."""
    only = hello.values.get(subsystem, {})
    if not only:
        return machine
    operations, candidates = dict(machine.operations), dict(machine.candidates)
    for name, of in only.items():
        op = machine.operations.get(name)
        if op is None:
            raise TargetTrouble("garbage", f"hello: {subsystem} has no operation {name!r}")
        for t, values in of.items():
            p = op.parameters.get(t)
            if p is None or p in op.chosen:
                raise TargetTrouble("garbage", f"hello: {name} of {subsystem} is not given an argument {t!r}")
            for v in values:
                if wrong := _unfit({t: v}, {t: op.hints.get(p, Any)}, partial(op.beyond, {p: v})):
                    raise TargetTrouble("garbage", f"hello: {name} of {subsystem}: {wrong}")
            taken = [op.decoded({p: v})[p] for v in values]
            condition = Condition("", f"{t} is {_listed(values)}", partial(_one_of, p, taken), (p,))
            operations[name] = replace(operations[name], preconditions=(*operations[name].preconditions, condition))
            candidates[f"{name}:{p}"] = partial(_those_of, machine.candidates_of(op, p), values)
    return replace(machine, operations=operations, tried=candidates)


def in_part(hello: Hello, subsystem: str) -> list[str]:
    """The operations of which the target offers some values alone, each with what it offers."""
    return [
        f"{name} ({', '.join(f'{t} is {_listed(values)}' for t, values in of.items())})"
        for name, of in hello.values.get(subsystem, {}).items()
        if of
    ]


MOST_LISTED: Final = 10
"""Values that a verdict shows of those that are offered."""


def _one_of(parameter: str, taken: Sequence[Any], **given: Any) -> bool:
    return given[parameter] in taken


def _those_of(function: Callable[[Any], Sequence[Any]], values: Sequence[Json], state: Any) -> Sequence[Any]:
    return [v for v in function(state) if v in values]


def _listed(values: Sequence[Json]) -> str:
    shown = [cut(orjson.dumps(v).decode()) for v in values[:MOST_LISTED]]
    return " or ".join([*shown, *([f"{len(values) - MOST_LISTED:,} others"] if len(values) > MOST_LISTED else [])])


def tours_of(job: Job) -> tuple[Tour, ...]:
    """The tours of the subsystem's models, which a campaign walks; none, if it asks without guidance."""
    return _tours(job.subsystem) if job.generator == "guided" else ()


@cache
def _tours(subsystem: str) -> tuple[Tour, ...]:
    return tours(find(subsystem))


Expected = tuple[Literal["answer", "state"], Any]


@dataclass
class PendingHistory:
    """A history under way: what was sent, and what must come back."""

    number: int
    by: By
    lines: list[bytes]
    expected: list[Expected]
    texts: list[bytes]
    """the answers that are right to the byte; others may be too"""
    records: list[Record]
    where: list[int]
    """for each line, the record that it belongs to"""
    clauses: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    """for each call: operation, clauses exercised, the clause of its refusal"""
    sides: list[Sequence[int]] = field(default_factory=list)
    """for the start and each call: the sides of the rules' sites that it took, and what was shown after it"""
    calls_before: int = 0
    sent: int = 0
    answered: int = 0
    answers: list[bytes] = field(default_factory=list)


def _answered(history: History) -> list[Record]:
    """The calls of a history that were answered: the last need not be."""
    *before, last = history.records
    return [*before, last] if {"result", "error"} & last.keys() else before


class Session:
    """One subsystem judged on one running target. TargetTrouble: the target does not offer it."""

    def __init__(
        self,
        job: Job,
        target: Target,
        another: Callable[[], Target] | None = None,
    ) -> None:
        self.job = job
        self.target = target
        self.another = another or partial(Target, job.command, job.timeout_s)
        """starts the target once more"""
        self.subsystem = find(job.subsystem)
        self.machine: Machine[Any] = self.subsystem.spec.machine
        target.tokens = Tokens(self.machine) or None
        self.asked_of = narrowed(self.machine, target.hello, job.subsystem)
        """the machine, as far as the target offers it: of this one are the calls"""
        self.operations = offered(self.asked_of, target.hello, job.subsystem)
        self.names = {op.name for op in self.operations}
        self.keeping = False
        self.release = target.hello.version if target.hello.name == "Apache Kafka" else None
        self.checking = self._brief()
        self.mappings = names_of(self.subsystem.refinements)
        self.digests: dict[Hashable, str] = {}
        self.looked: Any = None
        self.reachable = {name: t.reachable for name, t in zip(self.mappings, tours_of(job), strict=False)}
        self.concretes: list[tuple[str, RefinementMapping[Any], Concrete]] = [
            (name, how, Concrete(how.model, how.sizes))
            for name, how in zip(self.mappings, self.subsystem.refinements, strict=True)
            if name in self.reachable
        ]
        self.last_observed: tuple[Any, Json] = self, None
        self.last_state: tuple[Json, bytes] = self, b""
        self.right: set[tuple[str, bytes, bytes]] = set()
        self.tally = Tally()
        self.cover = Cover()
        self.under_way: deque[PendingHistory] = deque()
        self.reading: PendingHistory | None = None
        self.asking: PendingHistory | None = None
        self.broken = False
        """the target got into trouble when a rejection was tried with less"""
        self.tried: deque[Sequence[Record]] = deque(maxlen=TRIED)
        """the last histories that were asked to make a rejection small, as they were answered"""

    def _brief(self) -> Check:
        checking = self._check()
        checking.brief = True
        return checking

    def _check(self) -> Check:
        return Check(self.machine, self.job.subsystem, self.job.strict, release=self.release)

    # ---- a block

    def block(
        self,
        number: int,
        histories: int,
        until: float | None = None,
        tick: Callable[[], None] = lambda: None,
        keeping: bool = False,
    ) -> Tally:
        """Judge several histories; those of a `number` are always the same. What is rejected is told as it was found.
        What the target does wrong on the pipe is the tally's `trouble`. `keeping`: accepted lines are in the tally."""
        self.keeping = keeping
        with watched(self.machine) as self.cover:
            return self._block(number, histories, until, tick)

    def _block(self, number: int, histories: int, until: float | None, tick: Callable[[], None]) -> Tally:
        began = time.monotonic()
        self.tally = tally = Tally()
        self.looked = None
        drawn_by_hypothesis = histories // HYPOTHESIS_EVERY if self.job.generator == "guided" else 0
        under_way = self.under_way
        try:
            for k, (by, start) in enumerate(self._starts(number, histories - drawn_by_hypothesis)):
                tally.over = until is not None and time.monotonic() >= until
                if tally.over or tally.ended(self.job):
                    break
                tally.upto = number * BLOCK + histories
                asked = self._asked(number * BLOCK + k, by, start, self._observe_every(number, k, by))
                if asked is not None:
                    under_way.append(asked)
                if len(under_way) >= AHEAD:
                    self.judged(under_way.popleft())
                    tick()
            while under_way and not tally.ended(self.job):
                self.judged(under_way.popleft())
            tally.over = tally.over or (until is not None and time.monotonic() >= until)
            if drawn_by_hypothesis and not tally.ended(self.job) and not tally.over:
                from kafkaspec.judge.hypothesis_source import judge_drawn

                judge_drawn(self, number, drawn_by_hypothesis)
            if not under_way:  # else the target is asked nothing more
                self.target.quiet()
        except TargetTrouble as e:
            trouble = e
            if (found := self.located(e)) is not None:
                asked, tally.last, trouble = found
                self._judged_until_then(asked, tally.last)
            tally.trouble = trouble
        tally.seconds = time.monotonic() - began
        return tally

    def _starts(self, number: int, histories: int) -> Iterator[tuple[By, Start]]:
        """What a block asks: the known deviations, what is drawn, and then as many histories of tours: the drawn ones
        find most faults sooner. The first block begins with eager histories."""
        job = self.job
        guide = Guide() if job.generator == "guided" else None
        draws = Draws(self.asked_of, self.operations, guide, job.steps, self.cover, self._shown)
        guided = job.generator == "guided"
        known = iter(self._known_histories() if guided and number == 0 else ())
        share = (BLOCK - BLOCK // HYPOTHESIS_EVERY) // 2
        tours = islice(self._toured() if guided else (), number * share, (number + 1) * share)
        for k in range(histories):
            rng = random.Random(f"{job.seed} {job.subsystem} {number * BLOCK + k}")
            rare = number * BLOCK + k >= RARE_FROM
            if guided and number * BLOCK + k < EAGER:
                first = number * BLOCK + k < FIRST
                yield "eager", draws.start_eagerly(rng, FIRST_PROPOSALS if first else EAGER_PROPOSALS)
            elif k >= histories - histories // 2 and (toured := next(tours, None)) is not None:
                name, how, calls = toured
                self.tally.toured[name] += 1
                yield "tour", Start(how.init, fixed(self.cover, calls))
            elif (deviation := next(known, None)) is not None:
                yield "deviation", deviation
            elif rare and k % RELABELLED_EVERY == 0 and (again := draws.relabelled()) is not None:
                yield "relabelled", again
            else:
                yield "draw", draws.start(rng, rare)

    def _observe_every(self, number: int, k: int, by: By) -> int:
        return random.Random(f"{self.job.seed} {number} {k} observe").choice(OBSERVE) if by == "draw" else 1

    def _toured(self) -> Iterator[tuple[str, RefinementMapping[Any], tuple[Call, ...]]]:
        """The tours' histories, as far as the target offers their operations."""
        for name, t in zip(self.mappings, _tours(self.job.subsystem), strict=True):
            for calls in t.histories:
                if all(self._is_offered(c) for c in calls):
                    yield name, t.how, calls

    def _known_histories(self) -> Iterable[Start]:
        """The minimal histories of the known deviations, as far as the target offers their operations."""
        for deviation in self.machine.deviations:
            records = parse("\n".join(deviation.history), deviation.id).records
            init: Mapping[str, Json] = {}
            calls = []
            for r in records:
                if r["op"] == "init":
                    init = self.machine.python_names(r["args"])
                else:
                    op = self.machine.find(r["op"])
                    given = {op.parameters[t]: v for t, v in r["args"].items()}
                    calls.append(Call(op, {**op.defaults, **given}))
            if all(self._is_offered(c) for c in calls):
                yield Start(init, fixed(self.cover, calls))

    def _is_offered(self, call: Call) -> bool:
        return call.operation.name in self.names and not self._left_out(call)

    def _left_out(self, call: Call) -> str:
        """Of which arguments the target does not offer the values; "" if it offers them."""
        op = call.operation
        only = self.target.hello.values.get(self.job.subsystem, {}).get(op.name, {})
        given = {**op.defaults, **call.arguments}
        return ", ".join(t for t, values in only.items() if given[op.parameters[t]] not in values)

    # ---- one history

    def begin(self, number: int, by: By, init: Mapping[str, Json]) -> PendingHistory:
        """A history with its `init` line, not sent yet."""
        arguments = self.machine.init_names(init)
        asked = PendingHistory(number, by, [], [], [], [{"op": "init", "args": arguments}], [])
        asked.calls_before = self.tally.calls
        asked.sides.append(())
        self.asking = asked
        self._line(asked, "init", 0, ("answer", None), subsystem=self.job.subsystem, args=arguments)
        return asked

    def _line(self, asked: PendingHistory, op: str, record: int, expected: Expected, **fields: Json) -> None:
        n = len(asked.lines)
        asked.lines.append(orjson.dumps({"i": n, "op": op, **fields}, default=float))
        asked.expected.append(expected)
        asked.texts.append(b'{"i":%d,%b}' % (n, self._text(*expected)))
        asked.where.append(record)

    def _text(self, what: str, value: Any) -> bytes:
        """An answer after its number, as most targets write it."""
        if what == "state":
            if value is not self.last_state[0]:
                self.last_state = value, b'"state":' + orjson.dumps(value, default=float)
            return self.last_state[1]
        return orjson.dumps(outcome(value), default=float)[1:-1]

    def observed(self, asked: PendingHistory, state: Any) -> None:
        """Ask for the state, which must be this one."""
        if state is not self.last_observed[0]:
            self.cover.begin()
            self.last_observed = state, self.machine.observe(state)
            asked.sides[-1] = (*asked.sides[-1], *self.cover.taken)
        self._line(asked, "observe", len(asked.records) - 1, ("state", self.last_observed[1]))

    def _shown(self, state: Any) -> Json:
        """What is shown of a state, which often was asked for just now."""
        known, shown = self.last_observed
        return shown if state is known else self.machine.observe(state)

    def called(self, asked: PendingHistory, call: Call, step: Step[Any], sides: Sequence[int] = ()) -> None:
        """Ask for a call, which must be answered so."""
        asked.sides.append(sides)
        op = call.operation
        arguments = call.record()
        asked.records.append({"op": op.name, "args": arguments})
        self._line(asked, op.name, len(asked.records) - 1, ("answer", step.result), args=arguments)
        if isinstance(step.result, Refused):
            asked.clauses.append((op.name, (step.result.clause,), step.result.clause))
        else:
            asked.clauses.append((op.name, op.clauses, ""))

    def _asked(
        self,
        number: int,
        by: By,
        start: Start,
        every: int,
    ) -> PendingHistory | None:
        """Ask a history. None if the answers had to be waited for, and it is judged already."""
        state: Any = self.machine.initial(**start.init)
        asked = self.begin(number, by, start.init)
        look_up = by == "tour" or number % MODEL_STATES_EVERY == 0
        self._looked_up(state, look_up)
        if every == 1:
            self.observed(asked, state)
        n = 0
        while (found := start.plan(state)) is not None:
            call, step = found.call, found.step
            n += 1
            if call.operation.chosen and len(choices := self._choices(call, state)) > 1:
                while self.under_way:  # the system chooses: what it chose must be known before it is asked on
                    self.judged(self.under_way.popleft())
                state_after = self._resolved(asked, call, choices, state)
                if state_after is None:
                    self.judged(asked)
                    return None
                state = state_after
            else:
                self.called(asked, call, step, found.sides)
                state = step.state
                if n % every == 0:
                    self.observed(asked, state)
            self._looked_up(state, look_up)
        if every > 1:
            self.observed(asked, state)
        self._send(asked)
        return asked

    def _send(self, asked: PendingHistory) -> None:
        self.target.send(asked.lines[asked.sent :], [value for _, value in asked.expected[asked.sent :]])
        asked.sent = len(asked.lines)

    def _choices(self, call: Call, state: Any) -> list[tuple[Call, Step[Any]]]:
        """The call with each choice that the system may make."""
        op = call.operation
        calls = [dict(call.arguments)]
        candidates = self.machine.choices(op, state)
        for p in op.chosen:
            calls = [{**c, p: value} for c in calls for value in candidates[p]]
        out = []
        for arguments in calls:
            step = self.machine.apply(state, op.name, arguments, contracts=False)
            if not isinstance(step, Outside):
                out.append((Call(op, arguments), step))
        return out

    def _resolved(
        self, asked: PendingHistory, call: Call, choices: list[tuple[Call, Step[Any]]], state: Any
    ) -> Any | None:
        """Ask, and read which choice was made: the state after it; None if what was answered is none of them."""
        self.called(asked, *choices[0])
        self.observed(asked, choices[0][1].state)
        self._send(asked)
        while asked.answered < len(asked.lines):
            self._received(asked)
        line = len(asked.lines) - 2
        answer = self.target.answer(asked.answers[-2], line)
        seen = self.target.answer(asked.answers[-1], line + 1)
        for _, step in choices:
            if outcome_matches(step.result, answer) and same(self.machine.observe(step.state), seen.get("state")):
                asked.expected[-2:] = [("answer", step.result), ("state", self.machine.observe(step.state))]
                return step.state
        return None

    def _looked_up(self, state: Any, wanted: bool) -> None:
        """Note the model states that a state of the spec stands for."""
        if not wanted or not self.reachable or state is self.looked:
            return
        self.looked = state
        for name, how, concrete in self.concretes:
            there = model_state(concrete, how, state)
            if there is not None:
                key = (name, concrete.key(there))
                if key not in self.digests:
                    self.digests[key] = digest(concrete, there)
                if self.digests[key] in self.reachable[name]:  # the spec allows more, as what a follower takes over
                    self.tally.model_states.setdefault(name, set()).add(self.digests[key])

    def _received(self, asked: PendingHistory) -> None:
        count = asked.sent - asked.answered
        asked.answers += self.target.receive(count)
        asked.answered += count

    def judged(self, asked: PendingHistory) -> None:
        """Read the answers to a history and judge them."""
        self.reading = asked
        wrong = self._wrong(asked)
        self.reading = None
        self.tally.histories += 1
        self._counted(asked, len(asked.clauses) if wrong is None else wrong[1].step or 0)
        if wrong is None:
            self._kept(asked)
        else:
            self._rejected(asked, *wrong)

    def _wrong(self, asked: PendingHistory) -> tuple[History, Verdict] | None:
        """What nothing explains in the answers to a history, if anything."""
        if asked.answered < asked.sent:
            self._received(asked)
        if asked.answers == asked.texts or all(self._right(asked, n) for n in range(len(asked.answers))):
            return None
        return self._checked(asked)

    def one(self, init: Mapping[str, Json], plan: Plan) -> None:
        """Judge one history that Hypothesis draws."""
        asked = self._asked(-1, "hypothesis", Start(init, plan), 1)
        if asked is not None:
            self.judged(asked)

    def _kept(self, asked: PendingHistory) -> None:
        if self.keeping:
            self.tally.lines += [orjson.dumps(made, default=float) + b"\n" for made in self._trace(asked)]

    def _counted(self, asked: PendingHistory, calls: int) -> None:
        tally = self.tally
        tally.calls += calls
        tally.sides.update(*asked.sides[: calls + 1])
        tally.observations += len(asked.lines) - 1 - len(asked.clauses)
        for (name, ids, refused), n in Counter(asked.clauses[:calls]).items():
            tally.operations[name] += n
            for id in ids:
                tally.clauses[id] += n
            if refused:
                tally.refusals[f"{name} {refused}"] += n

    def _right(self, asked: PendingHistory, n: int) -> bool:
        """Whether an answer is right; what was found so before, to the byte, is not looked at again."""
        line, text = asked.answers[n], asked.texts[n]
        if line == text:
            return True
        what, value = asked.expected[n]
        at = len(b'{"i":%d,' % n)
        op = what if what == "state" else asked.records[asked.where[n]]["op"]
        known = (op, text[at:], line[at:])
        if known in self.right and line[:at] == text[:at]:
            return True
        right = self._as_expected(line, n, what, value)
        if right and line[:at] == text[:at]:
            if len(self.right) >= MAX_RIGHT:
                self.right.clear()
            self.right.add(known)
        return right

    def _as_expected(self, line: bytes, number: int, what: str, value: Any) -> bool:
        answer = self.target.answer(line, number)
        if what == "state":
            return "state" in answer and same(value, answer["state"])
        if "unknown" in answer:
            raise TargetTrouble(
                "unknown operation", f"{answer['unknown']!r}, which its answer to hello does not leave out"
            )
        if isinstance(value, Refused):
            return outcome_matches(value, answer)
        return "result" in answer and same(value, answer["result"])

    def _trace(self, asked: PendingHistory) -> list[Record]:
        """The history as it was answered, as far as it was: the lines of a trace."""
        records = [{"i": i, **r} for i, r in enumerate(asked.records)]
        last = 0
        for n, line in enumerate(asked.answers):
            answer = self.target.answer(line, n)
            answer.pop("i")
            if "unknown" in answer:
                what = f"{answer['unknown']!r}, which its answer to hello does not leave out"
                raise TargetTrouble("unknown operation", what)
            last = asked.where[n]
            records[last] |= answer
        return records[: last + 1]

    def located(self, trouble: TargetTrouble) -> tuple[PendingHistory, History, TargetTrouble] | None:
        """The history in which the target got into trouble, it up to the call that got no answer, and the trouble. The
        target may have had answers in hand that never came, so its histories are asked again, of another process and
        one line at a time. If nothing shows then, it is too slow and no hang that a call leads to: the history that
        took longest; else, what had been answered."""
        suspects = [a for a in (self.reading, *self.under_way, self.asking) if a is not None]
        if not suspects:
            return None
        took: list[tuple[float, PendingHistory, History]] = []
        if trouble.kind in ONE_BY_ONE:
            with contextlib.suppress(TargetTrouble), self.another() as target:
                target.tokens = Tokens(self.machine) or None
                for asked in suspects:
                    answers: list[bytes] = []
                    began = time.monotonic()
                    try:
                        for n, line in enumerate(asked.lines[: asked.sent]):
                            target.send([line], [asked.expected[n][1]])
                            answers += target.receive(1)
                            target.answer(answers[-1], n)
                    except TargetTrouble:
                        return asked, self._so_far(asked, answers), trouble
                    took.append((time.monotonic() - began, asked, self._so_far(asked, answers)))
        if trouble.kind == "hangs" and len(took) == len(suspects):
            _, asked, history = max(took, key=itemgetter(0))
            return asked, history, trouble.held_back()
        first = suspects[0]
        return first, self._so_far(first, [*first.answers, *self.target.left()]), trouble

    def _so_far(self, asked: PendingHistory, answers: Sequence[bytes]) -> History:
        """A history that got no further: what was answered, and the call that was not."""
        records = [{"i": i, **r} for i, r in enumerate(asked.records)]
        at = 0
        for n, line in enumerate(answers[: len(asked.lines)]):
            try:
                answer = self.target.answer(line, n)
            except TargetTrouble:
                break
            at = asked.where[n]
            if "unknown" in answer:
                break
            del answer["i"]
            records[at] |= answer
            at += n + 1 < len(asked.lines) and asked.where[n + 1] > at
        return History(tuple(records[: at + 1]))

    # ---- rejections

    def _checked(self, asked: PendingHistory) -> tuple[History, Verdict] | None:
        """What `check` says of a history that was not answered as expected; None if it accepts it."""
        records = self._trace(asked)
        before = dict(self.checking.met)
        verdict = self._check_says(records, self.checking)
        if verdict.verdict == "accepted":
            for id, met in verdict.deviations.items():
                known = before.get(id)
                self.tally.deviations[id] += met.count - (known.count if known else 0)
                self.tally.uncompared[id] += met.uncompared - (known.uncompared if known else 0)
            return None
        self.checking = self._brief()
        records = records[: (verdict.step or 0) + 1]
        verdict = self._check_says(records, self._brief())  # without what was counted before
        return self._told(records, verdict), verdict

    def _judged_until_then(self, asked: PendingHistory, history: History) -> None:
        """Judge what was answered before the trouble: a wrong answer may be what led to it."""
        answered = _answered(history)
        if not answered:
            return
        verdict = self._check_says(answered, self._brief())
        if verdict.verdict == "rejected":
            records = answered[: (verdict.step or 0) + 1]
            self._rejected(asked, self._told(records, verdict), verdict)

    def _rejected(self, asked: PendingHistory, history: History, verdict: Verdict) -> None:
        """Note a rejected history."""
        kind = kind_of(history)
        known = self.tally.rejections.get(kind)
        if known is not None:
            self.tally.rejections[kind] = replace(known, count=known.count + 1)
        elif not self.tally.ended(self.job):  # else it was asked ahead
            calls = self.tally.calls
            self.tally.rejections[kind] = Rejection(*kind, history, verdict, asked.number, calls, asked.by)

    def _check_says(self, records: Sequence[Record], checking: Check) -> Verdict:
        lines = [orjson.dumps(r, default=float) for r in records]
        try:
            return checking.run(lines, lambda: None)
        except UserError as e:
            raise UserError(f"{self.job.subsystem}: the judge failed on a history of the target: {e}") from e

    def _told(self, records: Sequence[Record], verdict: Verdict) -> History:
        """A rejected history, with what is wrong in the words of lockstep."""
        rule = f"{verdict.clause}: {verdict.sentence}" if verdict.sentence else verdict.clause
        lines = [f"{self._who}: rejected at call {verdict.step}: {verdict.call}", rule]
        found: list[Difference] = []
        if "result" in verdict.expected and "result" in verdict.seen:
            found = list(differences(verdict.expected["result"], verdict.seen["result"], "result"))
        if not verdict.only_state:
            lines += verdict.what.replace("\nexpected ", ", expected ").splitlines()
        lines += [str(d) for d in found[:MAX_DIFFERENCES] if d.path != "result"]
        lines += [str(d) for d in verdict.differences[:MAX_DIFFERENCES]]
        outcomes = ({}, {}) if verdict.only_state else (verdict.expected, verdict.seen)
        kind = shape(*outcomes, [*found, *verdict.differences[:MAX_DIFFERENCES]])
        return History(tuple(records), "\n".join(w for w in lines if w), verdict.clause, kind)

    @property
    def _who(self) -> str:
        return f"{self.target.hello.name} {self.target.hello.version}".strip()

    def small(self, rejection: Rejection) -> Rejection:
        """The rejection with as few and simple calls as a bounded number of attempts finds, each on a target of its own
        once one got into trouble: after its wrong answer it may die, or hang."""
        until = time.monotonic() + SHRINK_S
        tries, fickle = 0, True
        self.tried.clear()

        def again(records: Sequence[Record]) -> History | None:
            nonlocal tries, fickle
            tries += 1
            if tries > SHRINK_TRIES or time.monotonic() > until:
                return None
            try:
                if not self.broken:
                    rejected = self.replayed(records)
                else:
                    with self.another() as self.target:
                        self.target.tokens = Tokens(self.machine) or None
                        rejected = self.replayed(records)
            except UserError:  # a configuration that is none
                return None
            except TargetTrouble:
                self.broken, fickle = True, False
                return None
            fickle = fickle and rejected is None
            return None if rejected is None else rejected[0]

        # A replay asks for the state after every call, and so may show the fault sooner than the history that found it.
        history = again(rejection.history.records) or rejection.history
        history = shrunk(self.machine, history, again)
        verdict = self._check_says(history.records, self._check())
        _, operation, what = kind_of(history)
        found = cited(self.machine, history.records, [*self.tried])
        ids = found.clauses
        if ids and not verdict.known:
            sentences = {c.id: c.sentence for c in self.subsystem.clauses}
            verdict = replace(verdict, clause=ids[0], others=ids[1:], sentence=sentences.get(ids[0], ""))
            history = self._told(history.records, verdict)
        return replace(
            rejection,
            blame=found.blame,
            faults=found.faults,
            clause=verdict.clause,
            operation=operation,
            shape=what,
            history=history,
            verdict=verdict,
            small=True,
            fickle=fickle,
        )

    def again(self, number: int, records: Sequence[Record], places: Sequence[str] = ()) -> None:
        """Ask the calls of a history as they are. UserError for one that cannot be made, with its place: `places` are
        those of the records, if they are known."""
        placed = list(zip(records, places or [""] * len(records), strict=True))
        if not records or records[0].get("op") != "init":
            placed.insert(0, ({"op": "init", "args": {}}, ""))
        (first, place), *rest = placed
        with _located(place):
            init = self.machine.python_names(first.get("args", {}))
            self._first(init)
        calls = iter(enumerate(rest, 1))

        def plan(state: Any) -> Proposal | None:
            for n, (record, place) in calls:
                with _located(place):
                    return Proposal(*self._made(n, record, state))
            return None

        asked = self._asked(number, "replay", Start(init, plan), 1)
        if asked is not None:
            self.judged(asked)

    def _first(self, init: Mapping[str, Any]) -> Any:
        """The first state; UserError for a configuration with a number outside its range, or of another shape."""
        told = self.machine.init_names(init)
        if wrong := _unfit(told, configuration(self.machine), partial(self.machine.beyond, init)):
            raise UserError(f"init: {wrong}")
        try:
            return self.machine.initial(**init)
        except (TypeError, KeyError, ValueError, AttributeError, IndexError) as e:
            raise UserError(f"init: the spec cannot take it ({type(e).__name__}: {e})") from None

    def _made(self, number: int, record: Record, state: Any) -> tuple[Call, Step[Any]]:
        """A recorded call, and what the spec says to it."""
        name = record.get("op")
        if not isinstance(name, str):
            raise UserError(f"call {number}: its operation is not recorded")
        op, told = self.machine.find(name), record.get("args", {})
        where = f"call {number}, {call_text(name, told)}"
        if name not in self.names:
            raise UserError(f"{where}: {self._who} does not offer it")
        for t in told:
            if t not in op.parameters:
                raise UserError(f"{where}: {unknown(f'argument of {name}', t, op.parameters)}")
        arguments = {**op.defaults, **{op.parameters[t]: v for t, v in told.items()}}
        missing = [t for t, p in op.parameters.items() if p not in arguments and p not in op.chosen]
        if missing:
            raise UserError(f"{where}: {', '.join(missing)} not recorded")
        if without := self._left_out(Call(op, arguments)):
            raise UserError(f"{where}: {self._who} does not offer that {without}")
        types = {t: op.hints.get(p, Any) for t, p in op.parameters.items()}
        if wrong := _unfit(told, types, partial(op.beyond, arguments)):
            raise UserError(f"{where}: {wrong}")
        try:
            if op.chosen:
                found = self._choices(Call(op, arguments), state)
                if not found:
                    raise UserError(f"{where}: outside the contract here")
                return found[0]
            step = self.machine.apply(state, name, arguments, contracts=False)
        except (TypeError, KeyError, ValueError, AttributeError, IndexError) as e:
            raise UserError(f"{where}: the spec cannot take it ({type(e).__name__}: {e})") from None
        if isinstance(step, Outside):
            raise UserError(f"{where}: outside the contract here: {step.clause} {step.reason}")
        return Call(op, arguments), step

    def replayed(self, records: Sequence[Record]) -> tuple[History, Verdict] | None:
        """Ask the calls of a history again, without those outside the contract; what is rejected now, if anything.
        Nothing is asked if a number is outside its range."""
        first, *rest = records
        init = self.machine.python_names(first["args"])
        state = self._first(init)
        asked = self.begin(-1, "draw", init)
        self.observed(asked, state)
        for r in rest:
            op = self.machine.find(r["op"])
            arguments = {**op.defaults, **{op.parameters[t]: v for t, v in r["args"].items()}}
            choices: list[tuple[Call, Step[Any]]] = []
            try:
                if op.beyond(arguments):
                    return None
                if self._left_out(Call(op, arguments)):
                    continue
                if op.chosen:
                    choices = self._choices(Call(op, arguments), state)
                elif not isinstance(step := self.machine.apply(state, op.name, arguments, contracts=False), Outside):
                    choices = [(Call(op, arguments), step)]
            except Exception:
                return None  # arguments that the spec cannot take
            if not choices:
                continue
            if len(choices) > 1:
                after = self._resolved(asked, choices[0][0], choices, state)
            else:
                self.called(asked, *choices[0])
                after = choices[0][1].state
                self.observed(asked, after)
            asked.records[-1]["args"] = r["args"]  # defaults that are not told are asked nevertheless
            if after is None:
                break
            state = after
        try:
            self._send(asked)
            if asked.answered < asked.sent:
                self._received(asked)
            made = self._trace(asked)
        except TargetTrouble:
            self.broken = True
            made = _answered(self._so_far(asked, [*asked.answers, *self.target.left()]))
            if not made:
                return None
        self.tried.append(made)
        verdict = self._check_says(made, self._brief())
        if verdict.verdict == "accepted" or verdict.step is None:
            return None
        return self._told(made[: verdict.step + 1], verdict), verdict


@contextlib.contextmanager
def _located(place: str) -> Iterator[None]:
    """An error begins with the place, if it is known."""
    try:
        yield
    except UserError as e:
        raise (UserError(f"{place}: {e}") if place else e) from None


def _unfit(told: Mapping[str, Json], types: Mapping[str, Any], beyond: Callable[[], list[str]]) -> str:
    """What is wrong with the first argument that is not of its type, or outside its range; "" if none is."""
    try:
        outside = beyond()
    except (TypeError, KeyError, ValueError, AttributeError, IndexError):  # something is of another shape
        outside = []
    return next((w for w in (*outside, *(mistyped(t, types[t], v) for t, v in told.items())) if w), "")
