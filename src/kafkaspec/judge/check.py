"""Judge a recorded trace: is there a behaviour of the spec that shows what was recorded?

A trace is NDJSON, one line a call: {"i", "op", "args", "result" or "error": {"class", "message"}, "state"}. A line
`init` begins a history (a file may hold several); its `args` are the configuration. Any field may be missing, arguments
and keys of `Fields` levels of the state too; the check then keeps every state that explains the trace so far. In the
place of the state there may be parts of it, {"parts": [[keys, value], ...]}, and [keys] where nothing stood. A missing
argument is searched for among the spec's candidates and the values in its line; as there may be others (unless the
candidates are `Exhaustive`), a trace that is not explained after such a search is not rejected: it could not be judged.

The usual line is complete and there is one such state: that path is a lookup, one call of the spec's function without
the contract machinery, and one comparison. Everything else (missing fields, known deviations, the words of a rejection)
is on the other path, which need not be fast.

A recording may be anything. What a line costs is bounded, whatever it says, and arguments are looked at before a
function of the spec gets them. A line that is JSON, and no line of a trace that this version knows, is *skipped*:
nobody knows the state after it, so until a line shows all of it, or the next `init`, only answers are judged that are
the same in every state; and the trace is never accepted.

A spec is fast here if its state is built positionally (a NamedTuple, or a dataclass without `dataclasses.replace`), if
an immutable part of it, such as one snapshot's view, keeps its observation once built, and if the observation's keys
come in the order of the recordings: the exact comparison is then one comparison of bytes.
"""

from __future__ import annotations

import inspect
import itertools
import time
import types
import typing
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, NoReturn

import orjson

from kafkaspec.contract import clauses, history
from kafkaspec.contract.deviation import Deviation, Ghost
from kafkaspec.contract.fits import LARGEST, arguments_fit, fits
from kafkaspec.contract.governs import Ids
from kafkaspec.contract.machine import Exhaustive, Fields, Json, Machine, Nothing, Operation, Outside, Refused, Step
from kafkaspec.errors import UserError, unknown
from kafkaspec.judge.blame import cited_alone
from kafkaspec.judge.protocol import is_place, shown_type, word
from kafkaspec.judge.suspects import Call
from kafkaspec.judge.tokens import Tokens
from kafkaspec.judge.trace import (
    LONG_LINE_BYTES,
    MAX_DEPTH,
    MAX_LINE_BYTES,
    CountingReader,
    UnreadError,
    is_deep,
    json_text,
    opened,
    parsed,
)
from kafkaspec.judge.verdict import DeviationCount, SkippedCount, UnreadRest, Verdict, bounded
from kafkaspec.lockstep.compare import ABSENT, Difference, differences, matches, outcome_matches, same, with_parts
from kafkaspec.workers import few_collections

MAX_STATES: Final = 10_000
"""How many states may explain a trace with missing fields before the check gives up."""
MAX_STATES_BYTES: Final = 256 << 20
"""How large they may be together, as JSON."""
MAX_CALLS: Final = 100_000
"""How many calls are tried for lines with missing fields, and `MAX_CALLS_A_LINE` more for each of these lines, before
the check gives up."""
MAX_CALLS_A_LINE: Final = 50
MAX_CPU_S: Final = 60.0
"""What a check takes, in seconds of CPU, before it gives up the rest. One
that is faster than `CPU_S_A_MB` goes on: what a large file takes is bounded by its size."""
CPU_S_A_MB: Final = 2.0
"""seconds for each 10^6 bytes of lines; recordings of Kafka take 0.05 to 0.5"""
CPU_S_A_PACKED_MB: Final = 20.0
"""the same of a packed file's own bytes; such recordings take 1 to 10"""
MAX_SEEN: Final = 200
"""How many values of a line are tried for an argument that it leaves out."""
MAX_NEAREST: Final = 2_000
"""How many calls are tried to find one that a rejected line would fit; fewer where line and state are large."""
MAX_REASONS: Final = 20
"""Reasons for which lines were skipped, at most, that are told; of the others only the number of their lines."""
MAX_PLACES: Final = 1_000
"""In which a state that a line shows is found to differ; no further one is looked for."""

FIELDS = ("i", "op", "args", "result", "error", "state", "parts")
_STATE = b',"state":'  # 9 bytes
_HEADS = ({"i", "op", "args", "result"}, {"i", "op", "args", "error"})
_COMPLETE = ({"i", "op", "args", "result", "state"}, {"i", "op", "args", "error", "state"})

Progress = Callable[[int, int | None, str], None]
"""Called now and then with bytes done, bytes in all (None where it is not known) and a word on what was found."""


class Possible(NamedTuple):
    """A state that explains the trace so far, with the ghosts; deviations with the same ghost share it."""

    state: Any
    ghosts: tuple[Ghost, ...]


class NotOfTheSpec(UserError):
    """A line that is no line of a trace of this spec: `what` is unknown in it."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.what = what


class Clock:
    """How long a check has taken, and how long it may, by what it has read."""

    def __init__(self, read_bytes: Callable[[], int], s_a_mb: float) -> None:
        self.started = self.now()
        self.read_bytes = read_bytes
        self.s_a_mb = s_a_mb

    @staticmethod
    def now() -> float:
        """Seconds of CPU of this thread."""
        return time.thread_time()

    def look(self) -> None:
        """UnreadError, if the check may go on no longer."""
        spent = self.now() - self.started
        if spent > MAX_CPU_S and spent > self.s_a_mb * self.read_bytes() / 1e6:
            raise UnreadError(
                f"a check takes {MAX_CPU_S:.0f} s of CPU, or {self.s_a_mb:.0f} s for each MB of it, whichever is longer"
            )


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


class Explanations(NamedTuple):
    """What explains a line."""

    found: list[Attempt]
    deviated: list[tuple[Attempt, tuple[str, ...]]]
    """the calls that explain it by known deviations, with these"""
    outside: Outside | None
    """the precondition that the call breaks in a possible state, if it is recorded whole"""


class _Bound(NamedTuple):
    """An operation made ready for the fast path."""

    operation: Operation[Any]
    names: frozenset[str]
    required: frozenset[str] | None
    """names without a default; None if that is all of them"""
    call: Callable[[Any, Mapping[str, Json]], Step[Any] | Outside]
    fits: Callable[[Mapping[str, Json]], bool]
    """whether each argument is of its type"""
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
        arguments_fit(op),
        None if same else eval(f"lambda a: {whole}", env),
        [0],
    )


def _uncompared(deviation: Deviation, lost: Callable[[Ghost], bool], at: int, a: Attempt) -> bool:
    """Whether nothing that the call shows can be compared, with the deviation's ghost at that place."""
    before, after = a.before.ghosts[at], a.after.ghosts[at]
    return lost(after) and (lost(before) or deviation.unsaid(after))


def _together(advances: list[Callable[..., Ghost]]) -> Callable[..., tuple[Ghost, ...]]:
    """One function that advances all ghosts."""
    if len(advances) == 1:
        (only,) = advances
        return lambda ghosts, before, op, a, after: (only(ghosts[0], before, op, a, after),)
    return lambda ghosts, *step: tuple(f(g, *step) for f, g in zip(advances, ghosts, strict=True))


class Check:
    """One check in progress: the states that explain the trace so far, and what was met."""

    def __init__(
        self,
        machine: Machine[Any],
        name: str,
        strict: bool = False,
        most: int = MAX_STATES,
        release: str | None = None,
        skips: bool = False,
    ) -> None:
        self.machine = machine
        self.name = name
        self.strict = strict
        self.most = most
        self.skips = skips
        """as of a recording: a line that is none of a trace is skipped, else it is an error; and any key of the state
        may be left out, else those that the protocol marks"""
        self.deviations: list[Deviation] = [d for d in machine.deviations if d.shows_in(release)]
        kinds = {d.kind: d for d in self.deviations if d.has_ghost}
        self.initials = [partial(d.first, release) for d in kinds.values()]
        self.advance = _together([d.advance for d in kinds.values()])
        self.ghost_of = [list(kinds).index(d.kind) if d.has_ghost else None for d in self.deviations]
        self.losing = [
            (d, d.lost, at) for d, at in zip(self.deviations, self.ghost_of, strict=True) if d.lost and at is not None
        ]
        """the deviations after which what is shown may not be compared, and the places of their ghosts"""
        self.bounds = {op.name: _bind(op) for op in machine.operations.values()}
        self.tokens = Tokens(machine)
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
        self.skipped: dict[str, SkippedCount] = {}
        self.unjudged = 0
        self.unknown_since: int | None = None
        """the skipped line after which the state is not known"""
        self.unread: UnreadRest | None = None
        self.clock: Clock | None = None
        """what bounds the time of a check; None in a campaign of the judge, which bounds it by itself"""
        self.bytes = 0
        """of the lines so far"""
        self.left = MAX_CALLS
        """calls that may still be tried on the other path"""

    def fresh(self, arguments: Mapping[str, Json]) -> Possible:
        """The first state for the arguments of an `init` line."""
        return Possible(self.machine.start(arguments), tuple(initial() for initial in self.initials))

    @cached_property
    def configuration(self) -> Mapping[str, Any]:
        """The arguments of an `init` line, and their types."""
        return configuration(self.machine)

    @cached_property
    def shown_type(self) -> Any:
        """The type of what a line shows of the state."""
        return shown_type(self.machine)

    # the fast path

    def run(self, lines: Iterable[bytes], tick: Callable[[], None]) -> Verdict:
        """Judge the lines, from the states at hand on."""
        with few_collections():  # looking for some costs a twentieth
            return self.judged(lines, tick)

    def judged(self, lines: Iterable[bytes], tick: Callable[[], None]) -> Verdict:
        """The lines, one after the other."""
        loads, dumps = orjson.loads, orjson.dumps
        bounds, observe, refusals = self.bounds, self.machine.observe, self.refusals
        advance = self.advance
        tokens = self.tokens if self.tokens else None
        single = len(self.frontier) == 1
        before, ghosts = self.frontier[0]
        events = 0
        for number, line in enumerate(self.read(lines), 1):
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
                head = record = parsed(line, self.name, number)
                if record is None:
                    continue
            if tokens is not None and type(head) is dict and tokens.concerns(head.get("op")):
                at = 0
                head = record = parsed(line, self.name, number)
                state = before if single else self.frontier[0].state
                tokens.recorded(record, partial(self.answer, record, state))
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
                    and bound.fits(a)
                ):
                    try:
                        step = bound.call(before, a)
                        if type(step) is Step:
                            after, result = step
                            if bound.complete is not None:
                                a = bound.complete(a)
                            moved = advance(ghosts, before, op, a, after) if ghosts else ghosts
                            expected = observe(after)
                    except Exception:
                        step = None  # it fails on the other path again, which says so
                    if type(step) is Step:
                        if type(result) is Refused:
                            good = "error" in head and outcome_matches(result, head)
                        else:
                            answer = head.get("result", ABSENT)
                            good = answer is result or matches(result, answer)
                        text = line[at + 9 :].rstrip() if at else b""
                        ids: tuple[str, ...] = ()
                        if not good or text != dumps(expected, default=float) + b"}":
                            was, now = Possible(before, ghosts), Possible(after, moved)
                            attempt = Attempt(bound.operation, a, was, now, result, expected)
                            good, ids, record = self.second_look(line, number, head, record, text, attempt, good)
                            if ids:
                                self.note(attempt, ids, head["i"] if type(head["i"]) is int else events - 1, number)
                        if good:
                            if any(lost(moved[n]) and not lost(ghosts[n]) for _, lost, n in self.losing):
                                was, now = Possible(before, ghosts), Possible(after, moved)
                                attempt = Attempt(bound.operation, a, was, now, result, expected)
                                if record is None:  # what the line shows is not the spec's, if that is by a deviation
                                    record = parsed(line, self.name, number) if ids else {**head, "state": expected}
                                moved = self.reached(record, attempt, ids).ghosts
                            before, ghosts = after, moved
                            if type(result) is Refused:
                                refusals[op, result.clause] += 1
                            else:
                                bound.answered[0] += 1
                            continue
            # the other path
            self.frontier = [Possible(before, ghosts)] if single else self.frontier
            self.events = events
            try:
                verdict = self.slow(parsed(line, self.name, number) if record is None else record, number)
            except UnreadError as e:
                self.unread = UnreadRest(number, str(e))
                events -= 1
                break
            if verdict is not None:
                return verdict
            events = self.events
            single = len(self.frontier) == 1 and self.unknown_since is None
            before, ghosts = self.frontier[0]
        self.events = events
        if events:
            return self.verdict("incomplete" if self.skipped or self.unread is not None else "accepted")
        if self.unread is not None:
            self.malformed(self.unread.line, f"not read: {self.unread.what}")
        for what, first in self.skipped.items():  # the verdict would be about nothing
            self.malformed(first.line, what)
        raise UserError(f"{self.name}: nothing to judge: the trace has no lines")

    def read(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines, as far as they may be read."""
        clock = self.clock
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                size = len(line)
                if size > MAX_LINE_BYTES:
                    parsed(line, self.name, number)
                if clock is not None and (not number & 0xFF or size > LONG_LINE_BYTES):
                    number -= 1
                    clock.look()
                self.bytes += size
                yield line
        except UnreadError as e:
            self.unread = UnreadRest(number + 1, str(e))

    def second_look(
        self,
        line: bytes,
        number: int,
        head: dict[str, Any],
        record: Any,
        text: bytes,
        attempt: Attempt,
        answered: bool,
    ) -> tuple[bool, tuple[str, ...], Any]:
        """A complete line that is not to the byte what the spec shows: whether it is right nevertheless, the known
        deviations by which it is, and the line as parsed. `text` is that of its state, if only the head was parsed;
        `answered`: whether its answer is the spec's."""
        ids: tuple[str, ...] = ()
        may_deviate = bool(self.deviations) and not self.strict
        if may_deviate and record is None and (ids := self.deviating(head, attempt, text)):
            return True, ids, None
        if record is None:
            record = parsed(line, self.name, number)
            head["state"] = record["state"]
            answered = answered and _equal(head, record)  # of a key that comes twice the last counts
        right = answered and self.shows(attempt.observation, record)
        if not right and may_deviate and record.keys() in _COMPLETE:
            ids = self.deviating(record, attempt)
        return right or bool(ids), ids, record

    def answer(self, record: Mapping[str, Any], state: Any) -> Json:
        """What the spec answers to a line's call in a state; None if it cannot be told."""
        bound, a = self.bounds[record["op"]], record.get("args")
        if (
            not isinstance(a, dict)
            or not (bound.required or bound.names) <= a.keys() <= bound.names
            or not bound.fits(a)
        ):
            return None
        try:
            step = bound.call(state, a)
        except Exception:
            return None
        return None if isinstance(step, Outside) or isinstance(step.result, Refused) else step.result

    # what a line shows of the state

    def compared(self, observation: Json, seen: Json) -> Json:
        """What is compared of an observation: a recording may leave keys of the state out."""
        if self.skips and isinstance(observation, dict) and isinstance(seen, dict):
            return Fields(observation)
        return observation

    def shown(self, observation: Json, record: Mapping[str, Any]) -> Json:
        """The state that a line shows; ABSENT, if it shows none. What it does not show of it is as in that one."""
        return with_parts(observation, record["parts"]) if "parts" in record else record.get("state", ABSENT)

    def shows(self, observation: Json, record: Mapping[str, Any]) -> bool:
        """Whether the state that a line shows, if it does, is that one."""
        seen = self.shown(observation, record)
        return seen is ABSENT or same(self.compared(observation, seen), seen)

    def differing(self, observation: Json, record: Mapping[str, Any]) -> list[Difference]:
        """Where it is not; the first places."""
        seen = self.shown(observation, record)
        if seen is ABSENT:
            return []
        return list(itertools.islice(differences(self.compared(observation, seen), seen, "state"), MAX_PLACES))

    def whole(self, line: Line, observation: Json) -> Line:
        """The line with the state in the place of parts of it."""
        if "parts" not in line.record:
            return line
        rest = {k: v for k, v in line.record.items() if k != "parts"}
        return line._replace(record={**rest, "state": self.shown(observation, line.record)})

    # lines with missing fields, deviations, rejections

    def slow(self, record: Any, number: int) -> Verdict | None:
        """Judge one parsed line, whatever it leaves out; None if it is explained."""
        try:
            line = self.validated(record, number)
            if line.op == "init":
                return self.begin(line)
            if self.unknown_since is not None:
                return self.in_any_state(line)
            return self.settled(line, self.explanations(line))
        except NotOfTheSpec as e:
            if not self.skips:
                raise
            self.skip(number, e.what)
            self.resume(record)
        return None

    def in_any_state(self, line: Line) -> Verdict | None:
        """Judge a call whose state nobody knows: its answer, if that is the same in every state. None if it is right,
        or was not judged."""
        op = self.machine.operations.get(line.op or "")
        if op is not None and op.needs_no_state and self.complete(line):
            record = {k: v for k, v in line.record.items() if k not in ("state", "parts")}
            answer = line._replace(record=record)
            explanations = self.explanations(answer)
            if any(explanations) or self.strict or not self.initials:
                verdict = self.settled(answer, explanations)
                self.resume(line.record)
                return verdict
            # a known deviation may be met that comes of what was before
        self.events -= 1
        self.unjudged += 1
        self.resume(line.record)
        return None

    def resume(self, record: Mapping[str, Any]) -> None:
        """Go on from the states that a line shows: see `Machine.states_shown`. Known deviations that come of what was
        before would be taken for errors, so not where there are such."""
        if self.unknown_since is None or self.tokens or (self.initials and not self.strict):
            return
        states = self.machine.states_shown(record.get("state"))
        if states:
            self.unknown_since = None
            self.frontier = [Possible(state, tuple(initial() for initial in self.initials)) for state in states]

    def skip(self, number: int, what: str) -> None:
        """Note a line that is none of a trace. The state after it is not known, if there is one."""
        known = self.skipped.get(what)
        if known is None and len(self.skipped) >= MAX_REASONS:
            what, known = "", self.skipped.get("")
        self.skipped[what] = SkippedCount(known.count + 1, known.line) if known else SkippedCount(1, number)
        self.events -= 1
        if self.machine.initial is not Nothing:
            self.unknown_since = self.unknown_since or number
            self.frontier = self.frontier[:1]  # any state, of which nothing is asked

    def settled(self, line: Line, explanations: Explanations) -> Verdict | None:
        """Judge a call by what explains it; None if something does."""
        number = line.number
        self.histories = self.histories or 1
        found, deviated, outside = explanations
        if deviated and not found:
            self.note(*min(deviated, key=lambda d: len(d[1])), line.step, number)
        attempts = [*((a, ()) for a in found), *deviated]
        if not attempts:
            if outside is not None:
                return self.verdict("outside", line, clause=outside.clause, what=outside.reason)
            return self.rejected(line)
        self.count(line, attempts[0][0])
        self.frontier = _distinct((self.reached(line.record, a, ids) for a, ids in attempts), self.most)
        if len(self.frontier) > self.most or self.too_large():
            raise UserError(
                f"{self.name}:{number}: could not judge from here: more than {self.most:,} states explain the trace "
                f"so far, or too large ones (fields are missing since line {self.sparse_since or number})"
            )
        return None

    def reached(self, record: Mapping[str, Any], a: Attempt, ids: tuple[str, ...]) -> Possible:
        """Where a line leads that is explained, by these known deviations: with the ghost as it was of one after which
        nothing could be compared, if the line shows that the target has not got it."""
        ghosts = list(a.after.ghosts)
        for deviation, lost, at in self.losing:
            if deviation.id in ids or not lost(ghosts[at]) or _uncompared(deviation, lost, at, a):
                continue
            try:
                result, observation = deviation.rewrite(
                    ghosts[at], a.after.state, a.operation.name, a.arguments, a.result, a.observation
                )
            except Exception:  # it is written for the configurations that there are
                continue
            if not (outcome_matches(result, record) and self.shows(observation, record)):
                ghosts[at] = a.before.ghosts[at]
        return Possible(a.after.state, tuple(ghosts))

    def too_large(self) -> bool:
        """Whether the states that explain the trace are too large together: the first stands for all."""
        several = len(self.frontier)
        size = MAX_STATES_BYTES // several
        return several > 100 and len(json_text(self.machine.observe(self.frontier[0].state))) > size

    def begin(self, line: Line) -> Verdict | None:
        """A new history."""
        try:
            possible = self.fresh(line.arguments)
            observation = self.machine.observe(possible.state)
            orjson.dumps(observation, default=float)  # what a configuration may say is not in its type alone
        except UserError as e:
            self.unknown(line.number, str(e))
        except Exception as e:
            self.unknown(line.number, f"init: the spec cannot start from these arguments ({_error(e)})")
        self.sparse_since = self.guessed_since = self.unknown_since = None
        self.frontier = [possible]
        self.histories += 1
        if outcome_matches(None, line.record) and self.shows(observation, line.record):
            return None
        line = self.whole(line, observation)
        broken = cited_alone(self.machine, line.record, self.compared(observation, line.record.get("state")))
        return self.refuse(line, broken, None, observation, "the first state is another one", "")

    def note(self, a: Attempt, ids: Iterable[str], step: int, number: int) -> None:
        """A call was explained by known deviations."""
        gone = {d.id for d, lost, n in self.losing if _uncompared(d, lost, n, a)}
        for id in ids:
            met = self.met.get(id) or DeviationCount(0, step, number)
            self.met[id] = replace(met, count=met.count + 1, uncompared=met.uncompared + (id in gone))

    def count(self, line: Line, attempt: Attempt) -> None:
        """Note what an explained line exercised."""
        op = attempt.operation
        if line.op is None:
            self.unnamed[op.clauses if not isinstance(attempt.result, Refused) else (attempt.result.clause,)] += 1
        elif isinstance(attempt.result, Refused):
            self.refusals[op.name, attempt.result.clause] += 1
        else:
            self.bounds[op.name].answered[0] += 1

    def attempts(self, line: Line) -> Iterator[Attempt | Outside]:
        """Every call that the line may be, made in every possible state."""
        if not self.complete(line):
            self.sparse_since = self.sparse_since or line.number
        self.left += MAX_CALLS_A_LINE
        for possible in self.frontier:
            for op, arguments in self.calls(line, possible.state):
                if self.clock is not None:
                    self.clock.look()
                self.left -= 1
                if self.left < 0:
                    raise UserError(
                        f"{self.name}:{line.number}: could not judge from here: more than {MAX_CALLS:,} calls, and "
                        f"{MAX_CALLS_A_LINE} a line, would have to be tried for what the lines leave out"
                    )
                yield self.attempt(line, possible, op, arguments)

    def explanations(self, line: Line, made: Iterable[Attempt | Outside] | None = None) -> Explanations:
        """What explains a line. `made`: its attempts, where they were made before."""
        found: list[Attempt] = []
        deviated: list[tuple[Attempt, tuple[str, ...]]] = []
        broken = None
        complete = self.complete(line)
        for attempt in self.attempts(line) if made is None else made:
            if isinstance(attempt, Outside):
                if complete:
                    broken = broken or attempt
            elif outcome_matches(attempt.result, line.record) and self.shows(attempt.observation, line.record):
                found.append(attempt)
            elif not self.strict:
                self.left -= len(self.deviations)
                if ids := self.deviating(line.record, attempt):
                    deviated.append((attempt, ids))
        return Explanations(found, deviated, broken)

    def complete(self, line: Line) -> bool:
        """Whether the call itself is recorded whole."""
        if line.op is None:
            return False
        bound = self.bounds[line.op]
        return (bound.names if bound.required is None else bound.required) <= line.arguments.keys()

    def calls(self, line: Line, state: Any) -> Iterator[tuple[Operation[Any], dict[str, Any]]]:
        """Every call that the line may be, its missing arguments taken from the candidates."""
        ops = [self.machine.find(line.op)] if line.op is not None else list(self.machine.operations.values())
        for op in ops:
            if not line.arguments.keys() <= op.parameters.keys():
                continue
            given = {op.parameters[t]: v for t, v in line.arguments.items()}
            if line.op is None and not all(fits(op.hints.get(p, Any))(v) for p, v in given.items()):
                continue
            missing = [p for p in op.parameters.values() if p not in given and p not in op.defaults]
            if not missing:
                yield op, {**op.defaults, **given}
                continue
            try:
                choices = self.machine.choices(op, state)
            except Exception as e:
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
            if isinstance(step, Outside):
                return step
            ghosts = self.advance(possible.ghosts, possible.state, op.name, arguments, step.state)
            observation = self.machine.observe(step.state)
        except Exception as e:
            self.unknown(line.number, f"the spec cannot take the call `{_call(line)}` ({_error(e)})")
        return Attempt(op, arguments, possible, Possible(step.state, ghosts), step.result, observation)

    def deviating(self, record: Mapping[str, Any], a: Attempt, text: bytes | None = None) -> tuple[str, ...]:
        """The fewest known deviations that together show what was seen; () if none do. With `text`, that is the state
        and the end of the line, and compared as it stands."""

        def shown(chosen: Iterable[int]) -> tuple[list[int], bool]:
            """Those that change what is shown, one after the other, and whether the line is then explained."""
            changing: list[int] = []
            result, observation = a.result, a.observation
            for n in chosen:
                at = self.ghost_of[n]
                ghost = None if at is None else a.after.ghosts[at]
                before = result, observation
                try:
                    result, observation = self.deviations[n].rewrite(
                        ghost, a.after.state, a.operation.name, a.arguments, result, observation
                    )
                except Exception:  # it is written for the configurations that there are
                    return changing, False
                if (result, observation) != before:
                    changing.append(n)
            good = bool(changing) and outcome_matches(result, record)
            if good and text is not None:
                good = orjson.dumps(observation, default=float) + b"}" == text
            elif good:
                good = self.shows(observation, record)
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
        for deviation, lost, at in self.losing:
            if _uncompared(deviation, lost, at, a):
                return (deviation.id,)
        return ()

    # reading

    def malformed(self, number: int, what: str) -> NoReturn:
        """The line cannot be read."""
        raise UserError(f"{self.name}:{number}: {what}") from None

    def unknown(self, number: int, what: str) -> NoReturn:
        """The line is none of a trace of this spec."""
        raise NotOfTheSpec(f"{self.name}:{number}", what) from None

    def validated(self, record: Any, number: int) -> Line:
        """The line, if it is of the form of a trace's; UserError otherwise."""
        if not isinstance(record, dict):
            self.malformed(number, f"expected a JSON object, not {type(record).__name__}")
        if is_deep(record):
            self.malformed(number, f"nested deeper than {MAX_DEPTH} levels")
        for key in record:
            if key not in FIELDS:
                self.unknown(number, str(unknown("field", history.cut(key), FIELDS)))
        if "result" in record and "error" in record:
            self.unknown(number, "a line has a result or an error, not both")
        if "state" in record and "parts" in record:
            self.unknown(number, "a line has the state or parts of it, not both")
        parts = record.get("parts", [])
        if not isinstance(parts, list) or not all(map(_is_part, parts)):
            self.unknown(number, f"parts must be [[[KEY, ...], VALUE], ...], not {_short(parts)}")
        for keys, *_ in parts:
            if not is_place(self.shown_type, keys):
                self.unknown(number, f"no state has a part {_short(keys)}")
        op, arguments, error = record.get("op"), record.get("args", {}), record.get("error", {"class": ""})
        if op is not None and not isinstance(op, str):
            self.unknown(number, f"op must be a string, not {_short(op)}")
        if not isinstance(arguments, dict):
            self.unknown(number, f"args must be an object, not {_short(arguments)}")
        if (
            not isinstance(error, dict)
            or not isinstance(error.get("class", ""), str)
            or error.keys() - {"class", "message"}
        ):
            self.unknown(number, 'error must be {"class": "...", "message": ...}')
        if type(record.get("i", 0)) is not int:
            self.unknown(number, f"i must be a number, not {_short(record['i'])}")
        at = self.events + self.unjudged + sum(s.count for s in self.skipped.values()) - 1
        line = Line(record, number, record.get("i", at), op, arguments)
        if op == "init":
            types = self.configuration
        elif op is None:
            return line
        elif op not in self.machine.operations:
            self.unknown(
                number, str(unknown(f"operation of {self.machine.name}", history.cut(op), self.machine.operations))
            )
        else:
            bound = self.bounds[op]
            if self.complete(line) and arguments.keys() <= bound.names and bound.fits(arguments):
                return line
            found = bound.operation
            types = {name: found.hints.get(python, Any) for name, python in found.parameters.items()}
        for name, value in arguments.items():
            if name not in types:
                self.unknown(number, str(unknown(f"argument of {op}", history.cut(name), types)))
            if what := mistyped(name, types[name], value):
                self.unknown(number, f"the spec cannot take the call `{_call(line)}`: {what}")
        return line

    # verdicts

    def verdict(  # the fields of a verdict that are known here; `more` are those that are not
        self, verdict: Literal["accepted", "rejected", "outside", "incomplete"], line: Line | None = None, **more: Any
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
            verdict,
            self.name,
            self.events,
            self.histories or 1,
            dict(operations),
            dict(exercised),
            self.met,
            skipped=self.skipped,
            unread=self.unread,
            unjudged=self.unjudged,
            **more,
        )

    def rejected(self, line: Line, nearest: bool = True) -> Verdict:
        """The verdict on a line that nothing explains; `nearest` looks for what would have been accepted."""
        nearest = nearest and not self.brief
        if self.guessed_since is not None:
            raise UserError(
                f"{self.name}:{line.number}: could not judge: nothing explains `{_call(line)} "
                f"{_answer(line.record)}`, but arguments are missing since line {self.guessed_since}, and "
                f"of the values that they may have had only the spec's candidates and those in the same line were tried"
            )
        best: tuple[int, Attempt] | None = None
        calls = ((p, *call) for p in self.frontier[:100] for call in itertools.islice(self.calls(line, p.state), 1000))
        for possible, op, arguments in itertools.islice(calls, self.tries(line)):
            a = self.attempt(line, possible, op, arguments)
            if isinstance(a, Outside):
                continue
            wrong = 1000 * (not outcome_matches(a.result, line.record)) + len(
                self.differing(a.observation, line.record)
            )
            if best is None or wrong < best[0]:
                best = wrong, a
        if best is None:
            what = "no call that the contract allows here fits what is recorded of this one"
            return self.verdict("rejected", line, what=what, nearest=self.nearest(line) if nearest else "")
        a = best[1]
        line = self.whole(line, a.observation)
        near = self.nearest(line, a.observation) if nearest else ""
        right_answer = outcome_matches(a.result, line.record)
        known = self.deviating(line.record, a) if self.strict else ()
        if known:
            what = f"this is known deviation {', '.join(known)}, and deviations are not accepted here (strict)"
            broken = tuple(dict.fromkeys(d.clause for d in self.deviations if d.id in known))
            return replace(self.refuse(line, broken, a.result, a.observation, what, near), known=known)
        if right_answer:
            what = "the answer is right, the state after it is not"
            verdict = self.refuse(line, self.cited(line, a), a.result, a.observation, what, near)
            return replace(verdict, only_state=True)
        expected, seen = _answer(history.outcome(a.result)), _answer(line.record)
        what = f"answered {seen}\nexpected {expected}"
        if "result" in line.record and not isinstance(a.result, Refused) and len(seen) > history.LONGEST:
            where = differences(a.result, line.record["result"], "result")
            what = "\n".join([what, *map(str, itertools.islice(where, 6))])
        return self.refuse(line, self.cited(line, a), a.result, a.observation, what, near)

    def refuse(
        self, line: Line, broken: Ids, result: Json | Refused, observation: Json, what: str, nearest: str
    ) -> Verdict:
        """A rejection in full, by the rules that may be broken, against the answer and the observation expected."""
        clause = next(iter(broken), "")
        return self.verdict(
            "rejected",
            line,
            clause=clause,
            others=broken[1:],
            sentence=clauses.sentence(clause),
            what=what,
            expected={**history.outcome(result), "state": observation},
            differences=tuple(self.differing(observation, line.record)),
            nearest=nearest,
        )

    def cited(self, line: Line, a: Attempt) -> Ids:
        """The clauses that the line broke, as far as it tells, the most likely first."""
        call = Call(a.operation, a.arguments, a.before.state, Step(a.after.state, a.result))
        return cited_alone(self.machine, line.record, self.compared(a.observation, line.record.get("state")), call)

    def nearest(self, line: Line, expected: Json = None) -> str:
        """What would have been accepted instead of this line, after which the state shown should have been `expected`:
        the same call with other arguments, another call that changes the state to the one shown, or no effect at all.
        "" where none would."""
        out = []
        changed: tuple[int, str] | None = None
        tries = self.tries(line)
        for possible in self.frontier[:100]:
            unchanged = self.machine.observe(possible.state)
            if "state" in line.record and self.shows(unchanged, line.record) and expected != unchanged:
                out.append("the state recorded is the state before the call: as if it had had no effect")
            for op, arguments in self.near(line, possible.state):
                if not tries:
                    break
                tries -= 1
                try:
                    a = self.attempt(line, possible, op, arguments)
                except UserError:
                    continue
                if isinstance(a, Outside):
                    continue
                if op.name != line.op and ("state" not in line.record or a.observation == unchanged):
                    continue  # many calls change nothing: that is no likeness
                if outcome_matches(a.result, line.record) and self.shows(a.observation, line.record):
                    named = {t: arguments[p] for t, p in op.parameters.items()}
                    far = 100 * (op.name != line.op) + sum(line.arguments.get(t, ABSENT) != v for t, v in named.items())
                    if changed is None or far < changed[0]:
                        changed = far, history.cut(history.call_text(op.name, named))
        if changed is not None:
            out.append(f"accepted here with this outcome: {changed[1]}")
        return "\n".join(dict.fromkeys(out))

    def tries(self, line: Line) -> int:
        """How many calls are tried to say what is wrong with a line: the larger line and state, the fewer."""
        size = len(json_text(line.record)) + len(json_text(self.machine.observe(self.frontier[0].state)))
        return MAX_NEAREST // (1 + size // 4096) + 10

    def near(self, line: Line, state: Any) -> Iterator[tuple[Operation[Any], dict[str, Any]]]:
        """Calls that are candidates here, those first that are like the line's: one argument is another, then any. What
        was called may be near, whether or not it is a candidate."""
        known: list[tuple[Operation[Any], dict[str, Sequence[Any]], dict[str, Any]]] = []
        for op in sorted(self.machine.operations.values(), key=lambda op: op.name != line.op):
            try:
                choices = self.machine.choices(op, state)
            except Exception:  # it has none, or none in such a state
                continue
            own = {}
            for t, p in op.parameters.items():
                if t in line.arguments and fits(op.hints.get(p, Any))(line.arguments[t]):
                    own[p] = line.arguments[t]
                    choices[p] = [own[p], *choices[p]]
            if all(choices.values()):
                known.append((op, choices, {p: choice[0] for p, choice in choices.items()}))
        for op, choices, called in known:
            yield op, called
            for p, choice in choices.items():
                for value in itertools.islice(choice, 1, None):
                    yield op, {**called, p: value}
        for op, choices, _ in known:
            for values in itertools.product(*choices.values()):
                yield op, dict(zip(choices, values, strict=True))


def configuration(machine: Machine[Any]) -> Mapping[str, Any]:
    """The arguments of an `init` line, and their types."""
    hints = typing.get_type_hints(machine.initial)
    names = machine.init_names({python: python for python in inspect.signature(machine.initial).parameters})
    return {name: hints.get(str(python), Any) for name, python in names.items()}


def mistyped(name: str, hint: Any, value: Json) -> str:
    """How an argument is not of its type, in words; "" if it is."""
    if fits(hint)(value):
        return ""
    beyond = type(value) in (int, float) and abs(value) > LARGEST
    return f"{name} is {word(hint)}, not {_short(value)}" + " (integers have 64 bits, signed)" * beyond


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
    look(record.get("parts"))
    return [v for _, v in found][:MAX_SEEN]


def _is_part(part: Json) -> bool:
    """Whether it is the keys to a part of a state, and what stands there, or nothing."""
    return (
        isinstance(part, list)
        and 1 <= len(part) <= 2
        and isinstance(part[0], list)
        and 1 <= len(part[0]) <= MAX_DEPTH
        and all(isinstance(key, str) for key in part[0])
    )


def _kinds(op: Operation[Any], parameter: str) -> tuple[type, ...]:
    """The types of JSON scalars that a parameter takes."""
    kind = op.hints[parameter]
    kinds = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    return tuple(k for k in kinds if k in (int, str, float))


def _equal(a: Json, b: Json) -> bool:
    """Whether they are equal; not, where they are too deep to say."""
    try:
        return bool(a == b)
    except RecursionError:
        return False


def _short(value: Json) -> str:
    return history.cut(json_text(value).decode(), 100)


def _error(e: Exception) -> str:
    return history.cut(f"{type(e).__name__}: {e}", 200)


def _call(line: Line) -> str:
    return history.cut(history.call_text(history.cut(line.op or "?", 100), line.arguments))


def _answer(record: Mapping[str, Any]) -> str:
    return history.cut(history.answer_text(record))


def _distinct(possible: Iterable[Possible], most: int) -> list[Possible]:
    """Each once, and no more than one too many; by hash where the states have one."""
    items = list(possible)
    if len(items) < 2:
        return items
    try:
        return list(dict.fromkeys(items))
    except TypeError:
        out: list[Possible] = []
        for p in items:
            if len(out) <= most and p not in out:
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

    `strict` rejects known deviations; `release` is the release of Kafka that was recorded, if not the newest. Objects
    that are no lines of a trace of this spec are skipped, and the verdict says so. Raises UserError, with file and
    line, for what cannot be read, and for a trace that leaves so much out that more than `max_states` states explain
    it.
    """

    def told(read: int, total: int | None) -> None:
        if progress is not None:
            progress(read, total, f"{checking.events:,} events")

    name = name or ("trace" if not isinstance(source, Path) else str(source))
    checking = Check(machine, name, strict, max_states, release, skips=True)
    if not isinstance(source, Path):
        checking.clock = Clock(lambda: checking.bytes, CPU_S_A_MB)
        given = (line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line for line in source)
        return bounded(checking.run(given, lambda: told(checking.bytes, None)))
    try:
        with source.open("rb", buffering=0) as raw:
            total = source.stat().st_size
            counted = CountingReader(raw)
            checking.clock = Clock(lambda: counted.bytes, CPU_S_A_PACKED_MB if source.suffix == ".gz" else CPU_S_A_MB)
            lines = opened(counted, name, source.suffix)
            return bounded(checking.run(lines, lambda: told(counted.bytes, total)))
    except (OSError, EOFError, zlib.error) as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
        raise UserError(f"{name}: cannot read: {reason}") from None
