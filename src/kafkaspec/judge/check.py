"""Judge a recorded trace: is there a behaviour of the spec that shows what was recorded?

A trace is NDJSON, one line a call: {"i", "op", "args", "result" or "error": {"class", "message"}, "state"}. A line
`init` begins a history (a file may hold several); its `args` are the configuration. Any field may be missing, arguments
and keys of `Fields` levels of the state too; the check then keeps every state that explains the trace so far. A missing
argument is searched for among the spec's candidates and the values in its line; as there may be others (unless the
candidates are `Exhaustive`), a trace that is not explained after such a search is not rejected: it could not be judged.

The usual line is complete and there is one such state: that path is a lookup, one call of the spec's function without
the contract machinery, and one comparison. Everything else (missing fields, known deviations, the words of a rejection)
is on the other path, which need not be fast.

A spec is fast here if its state is built positionally (a NamedTuple, or a dataclass without `dataclasses.replace`), if
an immutable part of it, such as one snapshot's view, keeps its observation once built, and if the observation's keys
come in the order of the recordings: the exact comparison is then one comparison of bytes.
"""

from __future__ import annotations

import gc
import gzip
import io
import itertools
import types
import typing
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import orjson

from kafkaspec.contract import clauses, history
from kafkaspec.contract.deviation import Deviation, Ghost
from kafkaspec.contract.machine import Exhaustive, Json, Machine, Operation, Outside, Refused, Step
from kafkaspec.errors import UserError, unknown
from kafkaspec.lockstep.compare import ABSENT, Difference, differences, matches, same

MAX_STATES = 10_000
"""How many states may explain a trace with missing fields before the check gives up."""
MAX_CALLS = 1_000_000
"""How many calls are tried for one line with missing fields before the check gives up."""
MAX_SEEN = 200
"""How many values of a line are tried for an argument that it leaves out."""
MAX_NEAREST = 20_000
"""How many calls are tried to find one that a rejected line would fit."""

FIELDS = ("i", "op", "args", "result", "error", "state")
_STATE = b',"state":'  # 9 bytes
_HEADS = ({"i", "op", "args", "result"}, {"i", "op", "args", "error"})
_COMPLETE = ({"i", "op", "args", "result", "state"}, {"i", "op", "args", "error", "state"})

Progress = Callable[[int, int | None, str], None]
"""Called now and then with bytes done, bytes in all (None where it is not known) and a word on what was found."""


@dataclass(frozen=True)
class DeviationCount:
    """A known deviation in a trace: at how many lines, and the first of them."""

    count: int
    step: int
    line: int


@dataclass(frozen=True)
class Verdict:
    """What became of a trace. From `step` on, the fields are of the line where it was rejected or left the contract."""

    verdict: Literal["accepted", "rejected", "outside"]
    source: str
    events: int
    """lines judged, `init` lines and the line that was rejected included"""
    histories: int
    operations: Mapping[str, int]
    """calls explained, by operation; calls whose operation is not recorded are under "?" """
    clauses: Mapping[str, int]
    """how often each clause was exercised by an explained call: as the rule of the operation or of its refusal"""
    deviations: Mapping[str, DeviationCount] = field(default_factory=dict)
    step: int | None = None
    """the line's own number `i`; the number of the event if it has none"""
    line: int | None = None
    call: str = ""
    clause: str = ""
    sentence: str = ""
    what: str = ""
    expected: Mapping[str, Json] = field(default_factory=dict)
    """result or error, and state, that would have been accepted"""
    seen: Mapping[str, Json] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    only_state: bool = False
    """the answer is right, the state after it is not"""
    nearest: str = ""
    again: str = ""
    """the command that judges so again; "" where it was no command that judged, or what it read is gone"""

    @property
    def exit_code(self) -> int:
        """0 accepted, 1 rejected, 2 could not judge."""
        return {"accepted": 0, "rejected": 1, "outside": 2}[self.verdict]

    def text(self) -> str:
        """The verdict in plain lines, without colours."""
        where = f"{self.source}:{self.line}"
        out = []
        if self.verdict == "accepted":
            out.append(f"accepted: {self.source}: {self.events:,} events in {_count(self.histories, 'history')}")
        elif self.verdict == "outside":
            out.append(f"outside the contract from step {self.step}: {where}: {self.call}")
            out.append(f"  the caller broke {self.clause}: {self.what}")
        else:
            out.append(f"rejected at step {self.step}: {where}: {self.call}")
            out.append(f"  {self.clause}: {self.sentence}" if self.sentence else f"  {self.clause}")
            out += [f"  {line}" for line in self.what.splitlines()]
            out += [f"    {d}" for d in self.differences[:12]]
            if len(self.differences) > 12:
                out.append(f"    and {len(self.differences) - 12} more")
            out += [f"  {line}" for line in self.nearest.splitlines()]
        for id, met in self.deviations.items():
            out.append(
                f"  known deviation {id}: {_count(met.count, 'time')}, first at step {met.step} (line {met.line})"
            )
        return "\n".join(out)


def _count(n: int, what: str) -> str:
    plural = what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{n:,} {what if n == 1 else plural}"


class Possible(NamedTuple):
    """A state that explains the trace so far, with the ghosts; deviations with the same ghost share it."""

    state: Any
    ghosts: tuple[Ghost, ...]


class Line(NamedTuple):
    """A validated line: None or ABSENT where nothing is recorded."""

    record: Mapping[str, Any]
    number: int
    step: int
    op: str | None
    arguments: Mapping[str, Json]
    """by trace names"""


class Attempt(NamedTuple):
    """One call tried for a line: what the spec shows, and the state after."""

    operation: Operation[Any]
    arguments: Mapping[str, Any]
    before: Possible
    after: Possible
    result: Json | Refused
    observation: Json


class _Bound(NamedTuple):
    """An operation made ready for the fast path."""

    operation: Operation[Any]
    names: frozenset[str]
    required: frozenset[str] | None
    """names without a default; None if that is all of them"""
    call: Callable[[Any, Mapping[str, Json]], Step[Any] | Outside]
    complete: Callable[[Mapping[str, Json]], Mapping[str, Any]] | None
    """trace arguments to Python arguments with defaults; None if they are the same"""
    answered: list[int]
    """one number: how many calls of it were explained that were not refused"""


def _bind(op: Operation[Any]) -> _Bound:
    """The operation over arguments by their trace names."""
    trace_names = {python: trace for trace, python in op.parameters.items()}
    env: dict[str, Any] = {f"d_{p}": default for p, default in op.defaults.items()}

    def value(name: str) -> str:
        key = repr(trace_names[name])
        return f"a.get({key}, d_{name})" if name in op.defaults else f"a[{key}]"

    same = not op.defaults and all(t == p for t, p in op.parameters.items())
    whole = "{" + ", ".join(f"{p!r}: {value(p)}" for p in op.parameters.values()) + "}"
    return _Bound(
        op,
        frozenset(op.parameters),
        frozenset(t for t, p in op.parameters.items() if p not in op.defaults) if op.defaults else None,
        op.traced,
        None if same else eval(f"lambda a: {whole}", env),
        [0],
    )


def _together(advances: list[Callable[..., Ghost]]) -> Callable[..., tuple[Ghost, ...]]:
    """One function that advances all ghosts."""
    if len(advances) == 1:
        (only,) = advances
        return lambda ghosts, before, op, a, after: (only(ghosts[0], before, op, a, after),)
    return lambda ghosts, *step: tuple(f(g, *step) for f, g in zip(advances, ghosts, strict=True))


def _typed(error: Exception) -> bool:
    """Whether a spec's function may have failed because an argument is of a kind that its body cannot use."""
    return isinstance(error, TypeError | KeyError | ValueError | AttributeError | IndexError)


def outcome_matches(expected: Json | Refused, record: Mapping[str, Any]) -> bool:
    if isinstance(expected, Refused):
        if "result" in record:
            return False
        error = record.get("error")
        return error is None or (
            isinstance(error, dict)
            and error.get("class", expected.error) == expected.error
            and (expected.message is None or "message" not in error or error["message"] == expected.message)
        )
    return "error" not in record and ("result" not in record or matches(expected, record["result"]))


class Check:
    """One check in progress: the states that explain the trace so far, and what was met."""

    def __init__(
        self,
        machine: Machine[Any],
        name: str,
        strict: bool = False,
        most: int = MAX_STATES,
        release: str | None = None,
    ) -> None:
        self.machine = machine
        self.name = name
        self.strict = strict
        self.most = most
        self.deviations: list[Deviation] = [d for d in machine.deviations if d.shows_in(release)]
        kinds = dict.fromkeys((d.initial, d.advance) for d in self.deviations if d.has_ghost)
        self.initials = [initial for initial, _ in kinds]
        self.advance = _together([advance for _, advance in kinds])
        self.ghost_of = [list(kinds).index((d.initial, d.advance)) if d.has_ghost else None for d in self.deviations]
        self.bounds = {op.name: _bind(op) for op in machine.operations.values()}
        self.frontier: list[Possible] = [self.fresh({})]
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.unnamed: Counter[tuple[str, ...]] = Counter()
        self.met: dict[str, DeviationCount] = {}
        self.brief = False
        """a rejection does not tell what would have been accepted, which takes long to find"""
        self.events = 0
        self.histories = 0
        self.sparse_since: int | None = None
        self.guessed_since: int | None = None

    def fresh(self, arguments: Mapping[str, Json]) -> Possible:
        """The first state for the arguments of an `init` line."""
        return Possible(self.machine.start(arguments), tuple(initial() for initial in self.initials))

    # the fast path

    def run(self, lines: Iterable[bytes], tick: Callable[[], None]) -> Verdict:
        """Judge the lines, from the states at hand on."""
        young, *older = gc.get_threshold()
        gc.set_threshold(max(young, 100_000), *older)  # states make no cycles: looking for some costs a twentieth
        try:
            return self.judged(lines, tick)
        finally:
            gc.set_threshold(young, *older)

    def judged(self, lines: Iterable[bytes], tick: Callable[[], None]) -> Verdict:
        """The lines, one after the other."""
        loads, dumps = orjson.loads, orjson.dumps
        bounds, observe, refusals = self.bounds, self.machine.observe, self.refusals
        advance = self.advance
        single = len(self.frontier) == 1
        before, ghosts = self.frontier[0]
        events = 0
        for number, line in enumerate(lines, 1):
            # Where the state is the last field, only what stands before it is parsed. The state's text need not be, if
            # it is the expected one to the byte. (Text before it that ends inside a string or a list does not parse.)
            record = None
            at = line.find(_STATE)
            if at > 0:
                try:
                    head = loads(line[:at] + b"}")
                except orjson.JSONDecodeError:
                    at = 0
            if at <= 0 or head.keys() not in _HEADS:
                at = 0
                head = record = self.parsed(line, number)
                if record is None:
                    continue
            events += 1
            if not events & 0x3FFF:
                self.events = events
                tick()
            if single and type(head) is dict and (at or head.keys() in _COMPLETE):
                op, a = head["op"], head["args"]
                bound = bounds.get(op) if type(op) is str else None
                if (
                    bound is not None
                    and type(a) is dict
                    and (
                        a.keys() == bound.names
                        or (bound.required is not None and bound.required <= a.keys() <= bound.names)
                    )
                ):
                    try:
                        step = bound.call(before, a)
                    except Exception as e:
                        self.ill_typed(e, number, op, a)
                    if type(step) is Step:
                        after, result = step
                        if bound.complete is not None:
                            a = bound.complete(a)
                        moved = advance(ghosts, before, op, a, after) if ghosts else ghosts
                        expected = observe(after)
                        if type(result) is Refused:
                            good = "error" in head and outcome_matches(result, head)
                        else:
                            answer = head.get("result", ABSENT)
                            good = answer is result or matches(result, answer)
                        text = line[at + 9 :].rstrip() if at else b""
                        if not good or text != dumps(expected, default=float) + b"}":
                            ids: tuple[str, ...] = ()
                            attempt = None
                            if self.deviations and not self.strict:
                                was, now = Possible(before, ghosts), Possible(after, moved)
                                attempt = Attempt(bound.operation, a, was, now, result, expected)
                                ids = self.deviating(head, attempt, text) if at else ()
                            if not ids:
                                record = record or self.parsed(line, number)
                                good = good and same(expected, record["state"])
                                if not good and attempt is not None and record.keys() in _COMPLETE:
                                    ids = self.deviating(record, attempt)
                            if ids:
                                self.note(ids, head["i"], number)
                                good = True
                        if good:
                            before, ghosts = after, moved
                            if type(result) is Refused:
                                refusals[op, result.clause] += 1
                            else:
                                bound.answered[0] += 1
                            continue
            # the other path
            self.frontier = [Possible(before, ghosts)] if single else self.frontier
            self.events = events
            verdict = self.slow(record or self.parsed(line, number), number)
            if verdict is not None:
                return verdict
            single = len(self.frontier) == 1
            before, ghosts = self.frontier[0]
        self.events = events
        if not events:
            raise UserError(f"{self.name}: nothing to judge: the trace has no lines")
        return self.verdict("accepted")

    def parsed(self, line: bytes, number: int) -> Any:
        """A line's JSON; None for a blank line."""
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as e:
            if not line.strip():
                return None
            self.malformed(number, f"not JSON: {e.msg} at column {e.colno}")
        if record is None:
            self.malformed(number, "expected a JSON object, not null")
        return record

    # lines with missing fields, deviations, rejections

    def slow(self, record: Any, number: int) -> Verdict | None:
        """Judge one parsed line, whatever it leaves out; None if it is explained."""
        line = self.validated(record, number)
        if line.op == "init":
            return self.begin(line)
        self.histories = self.histories or 1
        found, deviated, outside = self.explanations(line)
        if deviated and not found:
            self.note(min(deviated, key=lambda d: len(d[1]))[1], line.step, number)
        attempts = [*found, *(a for a, _ in deviated)]
        if not attempts:
            if outside is not None:
                return self.verdict("outside", line, clause=outside.clause, what=outside.reason)
            return self.rejected(line)
        self.count(line, attempts[0])
        self.frontier = _distinct(a.after for a in attempts)
        if len(self.frontier) > self.most:
            raise UserError(
                f"{self.name}:{number}: could not judge from here: more than {self.most:,} states explain the trace "
                f"so far (fields are missing since line {self.sparse_since or number})"
            )
        return None

    def begin(self, line: Line) -> Verdict | None:
        """A new history."""
        self.sparse_since = self.guessed_since = None
        try:
            possible = self.fresh(line.arguments)
        except UserError as e:
            self.malformed(line.number, str(e))
        except Exception as e:
            if not _typed(e):
                raise
            self.malformed(line.number, f"init: the spec cannot start from these arguments ({type(e).__name__}: {e})")
        self.frontier = [possible]
        self.histories += 1
        observation = self.machine.observe(possible.state)
        if outcome_matches(None, line.record) and state_matches(observation, line.record):
            return None
        return self.refuse(line, "", None, observation, "the first state is another one", "")

    def note(self, ids: Iterable[str], step: int, number: int) -> None:
        """Known deviations were met."""
        for id in ids:
            met = self.met.get(id)
            self.met[id] = DeviationCount(met.count + 1, met.step, met.line) if met else DeviationCount(1, step, number)

    def count(self, line: Line, attempt: Attempt) -> None:
        """Note what an explained line exercised."""
        op = attempt.operation
        if line.op is None:
            self.unnamed[op.clauses if not isinstance(attempt.result, Refused) else (attempt.result.clause,)] += 1
        elif isinstance(attempt.result, Refused):
            self.refusals[op.name, attempt.result.clause] += 1
        else:
            self.bounds[op.name].answered[0] += 1

    def explanations(self, line: Line) -> tuple[list[Attempt], list[tuple[Attempt, tuple[str, ...]]], Outside | None]:
        """The calls that explain a line; those that explain it by known deviations, with these; and, if the call is
        recorded whole and breaks a precondition in a possible state, that precondition."""
        found: list[Attempt] = []
        deviated: list[tuple[Attempt, tuple[str, ...]]] = []
        broken = None
        complete = self.complete(line)
        if not complete:
            self.sparse_since = self.sparse_since or line.number
        tried = 0
        for possible in self.frontier:
            for op, arguments in self.calls(line, possible.state):
                tried += 1
                if tried > MAX_CALLS:
                    raise UserError(
                        f"{self.name}:{line.number}: could not judge from here: more than {MAX_CALLS:,} calls would "
                        f"have to be tried for what this line leaves out"
                    )
                attempt = self.attempt(line, possible, op, arguments)
                if isinstance(attempt, Outside):
                    if complete:
                        broken = broken or attempt
                elif outcome_matches(attempt.result, line.record) and state_matches(attempt.observation, line.record):
                    found.append(attempt)
                elif not self.strict and (ids := self.deviating(line.record, attempt)):
                    deviated.append((attempt, ids))
        return found, deviated, broken

    def complete(self, line: Line) -> bool:
        """Whether the call itself is recorded whole."""
        if line.op is None:
            return False
        op = self.machine.find(line.op)
        return all(t in line.arguments or p in op.defaults for t, p in op.parameters.items())

    def calls(self, line: Line, state: Any) -> Iterator[tuple[Operation[Any], dict[str, Any]]]:
        """Every call that the line may be, its missing arguments taken from the candidates."""
        ops = [self.machine.find(line.op)] if line.op is not None else list(self.machine.operations.values())
        for op in ops:
            if not line.arguments.keys() <= op.parameters.keys():
                continue
            given = {op.parameters[t]: v for t, v in line.arguments.items()}
            missing = [p for p in op.parameters.values() if p not in given and p not in op.defaults]
            if not missing:
                yield op, {**op.defaults, **given}
                continue
            try:
                choices = self.machine.choices(op, state)
            except ValueError as e:
                if line.op is None:
                    continue
                raise UserError(
                    f"{self.name}:{line.number}: cannot judge a line that leaves out an argument: {e}"
                ) from None
            values_seen = _scalars(line.record)
            for p in missing:
                if isinstance(choices[p], Exhaustive):
                    continue
                self.guessed_since = self.guessed_since or line.number
                kinds = _kinds(op, p)
                choices[p] = [*choices[p], *(v for v in values_seen if type(v) in kinds and v not in choices[p])]
            for values in itertools.product(*(choices[p] for p in missing)):
                yield op, {**op.defaults, **given, **dict(zip(missing, values, strict=True))}

    def attempt(
        self, line: Line, possible: Possible, op: Operation[Any], arguments: Mapping[str, Any]
    ) -> Attempt | Outside:
        """Make one call in one possible state."""
        try:
            step = self.machine.apply(possible.state, op.name, arguments, contracts=False)
        except Exception as e:
            self.ill_typed(e, line.number, op.name, line.arguments)
        if isinstance(step, Outside):
            return step
        ghosts = self.advance(possible.ghosts, possible.state, op.name, arguments, step.state)
        after = Possible(step.state, ghosts)
        return Attempt(op, arguments, possible, after, step.result, self.machine.observe(step.state))

    def deviating(self, record: Mapping[str, Any], a: Attempt, text: bytes | None = None) -> tuple[str, ...]:
        """The fewest known deviations that together show what was seen; () if none do. With `text`, that is the state
        and the end of the line, and compared as it stands."""

        def shown(chosen: Iterable[int]) -> tuple[list[int], bool]:
            """Those that change what is shown, one after the other, and whether the line is then explained."""
            result, observation, changing = a.result, a.observation, []
            for n in chosen:
                at = self.ghost_of[n]
                ghost = None if at is None else a.after.ghosts[at]
                before = result, observation
                result, observation = self.deviations[n].rewrite(
                    ghost, a.after.state, a.operation.name, a.arguments, result, observation
                )
                if (result, observation) != before:
                    changing.append(n)
            good = bool(changing) and outcome_matches(result, record)
            if good and text is not None:
                good = orjson.dumps(observation, default=float) + b"}" == text
            elif good:
                good = state_matches(observation, record)
            return changing, good

        active = set()
        for n in range(len(self.deviations)):
            changing, explained = shown([n])
            if explained:
                return (self.deviations[n].id,)
            active.update(changing)
        if active:
            active.update(shown(range(len(self.deviations)))[0])
        for size in range(2, len(active) + 1):
            for chosen in itertools.combinations(sorted(active), size):
                if shown(chosen)[1]:
                    return tuple(self.deviations[n].id for n in chosen)
        for deviation, at in zip(self.deviations, self.ghost_of, strict=True):
            lost = deviation.lost
            if lost is not None and at is not None and lost(a.before.ghosts[at]) and lost(a.after.ghosts[at]):
                return (deviation.id,)
        return ()

    # reading

    def malformed(self, number: int, what: str) -> NoReturn:
        """The line cannot be read."""
        raise UserError(f"{self.name}:{number}: {what}") from None

    def validated(self, record: Any, number: int) -> Line:
        """The line, if it is of the form of a trace's; UserError otherwise."""
        if not isinstance(record, dict):
            self.malformed(number, f"expected a JSON object, not {type(record).__name__}")
        for key in record:
            if key not in FIELDS:
                self.malformed(number, str(unknown("field", key, FIELDS)))
        if "result" in record and "error" in record:
            self.malformed(number, "a line has a result or an error, not both")
        op, arguments, error = record.get("op"), record.get("args", {}), record.get("error", {"class": ""})
        if op is not None and not isinstance(op, str):
            self.malformed(number, f"op must be a string, not {orjson.dumps(op).decode()}")
        if not isinstance(arguments, dict):
            self.malformed(number, f"args must be an object, not {orjson.dumps(arguments).decode()}")
        if (
            not isinstance(error, dict)
            or not isinstance(error.get("class", ""), str)
            or error.keys() - {"class", "message"}
        ):
            self.malformed(number, 'error must be {"class": "...", "message": ...}')
        if not isinstance(record.get("i", 0), int):
            self.malformed(number, f"i must be a number, not {orjson.dumps(record['i']).decode()}")
        if op is not None and op != "init":
            if op not in self.machine.operations:
                self.malformed(number, str(unknown(f"operation of {self.machine.name}", op, self.machine.operations)))
            parameters = self.machine.find(op).parameters
            for name in arguments:
                if name not in parameters:
                    self.malformed(number, str(unknown(f"argument of {op}", name, parameters)))
        return Line(record, number, record.get("i", self.events - 1), op, arguments)

    def ill_typed(self, error: Exception, number: int, op: str, arguments: Mapping[str, Json]) -> NoReturn:
        """A function of the spec failed: say which line it cannot take, if the arguments may be the reason."""
        if not _typed(error):
            raise error
        call = history.call_text(op, arguments)
        self.malformed(number, f"the spec cannot take the call `{call}` ({type(error).__name__}: {error})")

    # verdicts

    def verdict(  # the fields of a verdict that are known here; `more` are those that are not
        self, verdict: Literal["accepted", "rejected", "outside"], line: Line | None = None, **more: Any
    ) -> Verdict:
        operations: Counter[str] = Counter()
        exercised: Counter[str] = Counter()
        for name, bound in self.bounds.items():
            if bound.answered[0]:
                operations[name] += bound.answered[0]
                for id in self.machine.operations[name].clauses:
                    exercised[id] += bound.answered[0]
        for (name, id), n in self.refusals.items():
            operations[name] += n
            exercised[id] += n
        for ids, n in self.unnamed.items():
            operations["?"] += n
            for id in ids:
                exercised[id] += n
        if line is not None:
            seen = {k: v for k, v in line.record.items() if k in ("result", "error", "state")}
            more |= {"step": line.step, "line": line.number, "call": _call(line), "seen": seen}
        return Verdict(
            verdict, self.name, self.events, self.histories or 1, dict(operations), dict(exercised), self.met, **more
        )

    def rejected(self, line: Line, nearest: bool = True) -> Verdict:
        """The verdict on a line that nothing explains; `nearest` looks for what would have been accepted."""
        nearest = nearest and not self.brief
        if self.guessed_since is not None:
            raise UserError(
                f"{self.name}:{line.number}: could not judge: nothing explains `{_call(line)} "
                f"{history.answer_text(line.record)}`, but arguments are missing since line {self.guessed_since}, and "
                f"of the values that they may have had only the spec's candidates and those in the same line were tried"
            )
        best: tuple[int, Attempt] | None = None
        for possible in self.frontier[:100]:
            for op, arguments in itertools.islice(self.calls(line, possible.state), 1000):
                a = self.attempt(line, possible, op, arguments)
                if isinstance(a, Outside):
                    continue
                wrong = 1000 * (not outcome_matches(a.result, line.record)) + len(_state_differences(a, line))
                if best is None or wrong < best[0]:
                    best = wrong, a
        if best is None:
            what = "no call that the contract allows here fits what is recorded of this one"
            return self.verdict("rejected", line, what=what, nearest=self.nearest(line) if nearest else "")
        a = best[1]
        near = self.nearest(line, a.observation) if nearest else ""
        right_answer = outcome_matches(a.result, line.record)
        known = self.deviating(line.record, a) if self.strict else ()
        if known:
            what = f"this is known deviation {', '.join(known)}, and deviations are not accepted here (strict)"
        elif right_answer:
            what = "the answer is right, the state after it is not"
            verdict = self.refuse(line, self.blame(line, a), a.result, a.observation, what, near)
            return replace(verdict, only_state=True)
        else:
            expected, seen = history.answer_text(history.outcome(a.result)), history.answer_text(line.record)
            what = f"answered {seen}\nexpected {expected}"
        return self.refuse(line, self.blame(line, a), a.result, a.observation, what, near)

    def refuse(
        self, line: Line, clause: str, result: Json | Refused, observation: Json, what: str, nearest: str
    ) -> Verdict:
        """A rejection in full, against the answer and the observation that were expected."""
        known = {c.id: c for c in clauses.all_clauses()}
        seen = line.record.get("state", ABSENT)
        return self.verdict(
            "rejected",
            line,
            clause=clause,
            sentence=known[clause].sentence if clause in known else "",
            what=what,
            expected={**history.outcome(result), "state": observation},
            differences=() if seen is ABSENT else tuple(differences(observation, seen, "state")),
            nearest=nearest,
        )

    def blame(self, line: Line, a: Attempt) -> str:
        """The clause of the refusal, of the first postcondition that the recorded result breaks, or the operation's."""
        if isinstance(a.result, Refused):
            return a.result.clause
        if "result" in line.record and not outcome_matches(a.result, line.record):
            try:
                recorded = a.operation.returned(Step(a.after.state, line.record["result"]))
            except Exception:
                recorded = None  # it is not of the result's type
            values = {**a.operation.decoded(a.arguments), "state": a.before.state, "result": recorded}
            for post in a.operation.postconditions:
                if all(n in values for n in post.arguments):
                    try:
                        if not post.condition(**{n: values[n] for n in post.arguments}):
                            return post.clause
                    except Exception:
                        return post.clause  # it cannot even be evaluated on such a result
        return a.operation.clauses[0] if a.operation.clauses else ""

    def nearest(self, line: Line, expected: Json = None) -> str:
        """What would have been accepted instead of this line, after which the state shown should have been `expected`:
        another call with this outcome, or no effect at all."""
        out = []
        changed: tuple[int, str] | None = None
        tried = 0
        for possible in self.frontier[:100]:
            unchanged = self.machine.observe(possible.state)
            if "state" in line.record and state_matches(unchanged, line.record) and expected != unchanged:
                out.append("the state recorded is the state before the call: as if it had had no effect")
            for op in self.machine.operations.values():
                try:
                    choices = self.machine.choices(op, possible.state)
                except ValueError:
                    continue
                for p in choices:  # what was called may be near, whether or not it is a candidate
                    trace_name = next(t for t, q in op.parameters.items() if q == p)
                    if trace_name in line.arguments:
                        choices[p] = [line.arguments[trace_name], *choices[p]]
                for values in itertools.product(*choices.values()):
                    tried += 1
                    if tried > MAX_NEAREST:
                        break
                    arguments = dict(zip(choices, values, strict=True))
                    try:
                        a = self.attempt(line, possible, op, arguments)
                    except UserError:
                        continue
                    if isinstance(a, Outside):
                        continue
                    if outcome_matches(a.result, line.record) and state_matches(a.observation, line.record):
                        named = {t: arguments[p] for t, p in op.parameters.items()}
                        far = 100 * (op.name != line.op) + sum(
                            line.arguments.get(t, ABSENT) != v for t, v in named.items()
                        )
                        if changed is None or far < changed[0]:
                            changed = far, history.call_text(op.name, named)
        if changed is not None:
            out.append(f"accepted here with this outcome: {changed[1]}")
        elif not out:
            limit = f" (of the first {MAX_NEAREST:,} tried)" if tried > MAX_NEAREST else ""
            out.append(f"no other call would have been accepted with this outcome{limit}")
        return "\n".join(dict.fromkeys(out))


def _scalars(record: Mapping[str, Any]) -> list[Json]:
    """The numbers and strings in a line's answer and state, once each; keys that are numbers as numbers too."""
    found: dict[tuple[type, Json], None] = {}

    def look(value: Json) -> None:
        if isinstance(value, dict):
            for k, v in value.items():
                look(k)
                look(v)
        elif isinstance(value, list):
            for v in value:
                look(v)
        else:
            found[type(value), value] = None
            if isinstance(value, str) and value.removeprefix("-").isdecimal():
                found[int, int(value)] = None

    look(record.get("result"))
    look(record.get("state"))
    return [v for _, v in found][:MAX_SEEN]


def _kinds(op: Operation[Any], parameter: str) -> tuple[type, ...]:
    """The types of JSON scalars that a parameter takes."""
    kind = op.hints[parameter]
    kinds = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    return tuple(k for k in kinds if k in (int, str, float))


def _call(line: Line) -> str:
    return history.call_text(line.op or "?", line.arguments)


def state_matches(observation: Json, record: Mapping[str, Any]) -> bool:
    return "state" not in record or same(observation, record["state"])


def _state_differences(a: Attempt, line: Line) -> list[Difference]:
    return list(differences(a.observation, line.record["state"], "state")) if "state" in line.record else []


def _distinct(possible: Iterable[Possible]) -> list[Possible]:
    """Each once; by hash where the states have one."""
    items = list(possible)
    if len(items) < 2:
        return items
    try:
        return list(dict.fromkeys(items))
    except TypeError:
        out: list[Possible] = []
        for p in items:
            if p not in out:
                out.append(p)
        return out


def check(
    machine: Machine[Any],
    source: Path | Iterable[bytes | str],
    *,
    name: str = "",
    strict: bool = False,
    release: str | None = None,
    progress: Progress | None = None,
    max_states: int = MAX_STATES,
) -> Verdict:
    """Judge a trace: a file of NDJSON lines (`.gz` too), a `.history` in text, or the lines themselves.

    `strict` rejects known deviations; `release` is the release of Kafka that was recorded, if not the newest. Raises
    UserError, with file and line, for what cannot be read, and for a trace that leaves so much out that more than
    `max_states` states explain it.
    """
    if not isinstance(source, Path):
        lines = (line.encode() if isinstance(line, str) else line for line in source)
        return Check(machine, name or "trace", strict, max_states, release).run(lines, lambda: None)
    name = name or str(source)
    checking = Check(machine, name, strict, max_states, release)
    try:
        with source.open("rb") as raw:
            total = source.stat().st_size

            def tick() -> None:
                if progress is not None:
                    progress(raw.tell(), total, f"{checking.events:,} events")

            if source.suffix == ".history":
                return checking.run(_numbered(raw.read(), name), tick)
            return checking.run(io.BufferedReader(gzip.GzipFile(fileobj=raw)) if source.suffix == ".gz" else raw, tick)
    except (OSError, EOFError, zlib.error) as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
        raise UserError(f"{name}: cannot read: {reason}") from None


def _numbered(text: bytes, name: str) -> Iterator[bytes]:
    """A history's calls as NDJSON, each on the line where the text has it."""
    try:
        records = history.numbered(text.decode(), name)
    except UnicodeDecodeError as e:
        raise UserError(f"{name}: not UTF-8 text (byte {e.start})") from None
    at = 1
    for number, record in records:
        yield from itertools.repeat(b"", number - at)
        yield orjson.dumps(record)
        at = number + 1
