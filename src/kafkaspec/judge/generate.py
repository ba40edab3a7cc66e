"""What a target is asked: histories of calls that the contract allows, drawn from the spec alone.

Five kinds, all of them a function of the seed:
- the *tour* of a model: histories that together take every action, possible or refused, in every reachable model state;
- *guided* histories: of a few proposed calls the one is taken of which least was seen: its outcome, alone and after the
  outcome before; which of its candidates each argument is, with that outcome; and each two of these together. Arguments
  come from the spec's candidates, are repeated, and are taken up again when they are stale; crashes and damage come in
  bursts. What is deep is reached by streaks of one operation, each call of which adds most to what is shown, and by
  histories that keep to few operations; what is far, by numbers at the ends of widths, which then go on being used;
  what is remembered too long, by questions that are asked again after a small change of their answer;
- *relabelled* ones: a guided history again, with 2^33 added to offsets, 2^40 to producers' ids, and times of today;
- *eager* histories, with which a campaign begins: of many proposed calls always the one of which least was seen, and
  nothing else, so that the common faults are met within few calls;
- *uniform* histories: every operation and every candidate alike, as a yardstick.
"""

from __future__ import annotations

import heapq
import itertools
import random
import re
from bisect import bisect
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

from kafkaspec.contract.machine import Json, Machine, Operation, Outside, Pick, Refused, Step
from kafkaspec.judge.boundary import CANNOT, Path, boundaries, changed, plain
from kafkaspec.judge.cover import Cover
from kafkaspec.lockstep.walk import draw, draw_init

Generator = Literal["guided", "uniform"]

STEPS: Final = 60
"""Calls of a history."""
PROPOSALS, EAGER_PROPOSALS, FIRST_PROPOSALS = 4, 16, 64
"""Of how many proposals a call is taken: in a guided history, in an eager one, in a campaign's first ones."""
OUTCOME, AFTER, ARGUMENTS, SIDES = 4.0, 1.0, 4.0, 4.0
"""How much it weighs that an outcome is new, that it is after the one before, and what is new of the arguments."""
SHORT_LIST, CHANGED, SHOWN = 5, 1.5, 2.0
"""Of how many proposals with the highest scores the states are looked at in an eager history, what it weighs that the
call changes something, and each of at most two new features of what is shown then."""
CANDIDATES: Final = 12
"""At most this many candidates of a parameter are distinguished."""
DUPLICATE, STALE, RANDOM, BURST = 0.04, 0.08, 0.25, 0.25
"""How often a call is made twice, an old argument taken up, guidance not taken; of histories, how many have harm in
plenty."""
VARIED, WIDE_SHARE = 0.2, 0.25
"""How often a number of a call is changed to where a rule decides otherwise, or, of these, to where a width ends."""
WIDE: Final = tuple(
    sorted(
        {-1, 0, 1, 9, 10, 99, 100, 1_700_000_000_000}
        | {2**bits + more for bits in (8, 15, 16, 24, 31, 32, 33, 40, 53, 62, 63) for more in (-1, 0, 1)}
        | {more - 2**bits for bits in (15, 31, 63) for more in (-1, 0, 1)}
    )
)
NUMBER: Final = re.compile(r"""(?<![^\s=:,{["])[+-]?\d{1,19}(?![^\s=:,}\]"])""")
"""A number that stands alone in a text; that of a name, as `topic-0`, is none."""
ENDS: Final = 0.4
"""How often it is an end of the parameter's own range, not of any width."""
USED_AGAIN, SOON, LOOKS = (0.1, 0.5), 4, 0.5
"""How often such a number, once it was used, is an argument of a further call of the history: in general, and
within the next 4 calls; how often of one of the questions."""
SWARM: Final = 0.5
FEW, FEW_STALE, AT_MOST, WEIGHT = 0.25, 0.3, 5, 20
"""Of histories, how many keep to few operations, and how often an old argument is taken up in these; how many
operations these are at most, and what they weigh."""
STREAK, LENGTHS, GROWING, LOOKED = 0.04, (3, 6, 12), 6, 8
"""How often a call that changed something is followed by a streak of its operation; how long one is; of how many
proposals that one is made which adds most to what is shown; how many questions are asked then."""
GROWN, GROWTH, ADDING = 0.2, 40, 50
"""Of histories that may, how many begin with calls of the operations that add most to what is shown, as far as is
known; how many calls that are; and what the one weighs that adds most."""
ASKED_AGAIN, CHANGES = 0.3, 10
"""How often a question is followed by a call that changes its answer, and then asked again; of how many proposals that
one is made after which most nearly as much is shown as before, so that what is deep is not left."""
WITH_STATE, WITHOUT, HARM, PREFERRED = 4, 1, (2, 6), 16
"""What an operation weighs that depends on the state, one that its arguments alone decide, and one that does harm, in
most histories and in those with harm in plenty; what one weighs more that a history prefers."""
ONWARD: Final = 0.3
LOOKED_AT: Final = 64
"""Of at most this many states it is remembered what they are like."""
LONGEST: Final = 180
TRIES: Final = 20


class Call(NamedTuple):
    """One call; arguments by Python names, the system's own choices among them."""

    operation: Operation[Any]
    arguments: Mapping[str, Any]

    def record(self) -> dict[str, Any]:
        """As a target is asked: by the names of traces, without what the system chooses."""
        op = self.operation
        return {t: self.arguments[p] for t, p in op.parameters.items() if p in self.arguments and p not in op.chosen}


@dataclass(slots=True, eq=False)
class Proposal:
    """A call that may be made, and what the spec says to it."""

    call: Call
    step: Step[Any]
    picked: Sequence[int] = ()
    """which of its candidates each argument is (-1: an old one)"""
    sides: Sequence[int] = ()
    """those of the rules' sites that it takes"""
    outcome: Outcome | None = None
    """what it came to, once that was asked"""


def proposed(cover: Cover, state: Any, call: Call, picked: Sequence[int] = ()) -> Proposal | None:
    """What the spec says to a call, and by which sides; None for one outside the contract, or outside the ranges of its
    arguments: there nothing is promised."""
    if call.operation.beyond(call.arguments):
        return None
    cover.begin()
    step = call.operation.direct(state, call.arguments)
    return None if isinstance(step, Outside) else Proposal(call, step, picked, tuple(cover.taken))


Plan = Callable[[Any], "Proposal | None"]
"""The next call in a state; None: the history ends."""


class Start(NamedTuple):
    """A history: the configuration by Python names, and how it goes on."""

    init: Mapping[str, Json]
    plan: Plan


def outcome_key(call: Call, step: Step[Any], before: Any) -> tuple[Hashable, ...]:
    """What a call came to, in short: refused by which clause, or whether anything changed and what kind of answer."""
    result = step.result
    if isinstance(result, Refused):
        return (call.operation.name, result.clause)
    shape: Hashable = result if result is None or isinstance(result, bool) else type(result).__name__
    if isinstance(result, list | dict | str):
        shape = (type(result).__name__, min(len(result), 3))
    return (call.operation.name, shape, step.state is not before and step.state != before)


PLACES: Final = CANDIDATES + 2
"""Of a parameter's candidates: those that are distinguished, all others, and before them an old argument."""


class Outcome:
    """What calls came to, and how often it was seen. A count of what can be new begins with 1: its share is one by
    that."""

    __slots__ = ("after", "arguments", "times")

    def __init__(self, parameters: int) -> None:
        self.times = 0
        self.after: dict[Outcome | None, int] = {}
        """the outcome before -> how often"""
        self.arguments = [1] * (parameters * PLACES)
        """for each parameter and candidate how often, and 1"""


@dataclass
class Guide:
    """What was seen so far, and how often."""

    seen: Counter[Hashable] = field(default_factory=Counter)
    """outcomes, of those that Hypothesis draws"""
    sides: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    outcomes: dict[Hashable, Outcome] = field(default_factory=dict)
    pairs: dict[str, list[int]] = field(default_factory=dict)
    """operation -> for each two parameters, and each two of their candidates, how often, and 1"""
    features: set[Hashable] = field(default_factory=set)
    """what states were like"""
    ways: list[Way] = field(default_factory=list)
    added: Counter[str] = field(default_factory=Counter)
    """operation -> how much more was shown after its calls, all told"""
    called: Counter[str] = field(default_factory=Counter)

    def outcome(self, proposal: Proposal, before: Any) -> Outcome:
        """What a proposal came to in that state."""
        found = proposal.outcome
        if found is None:
            call = proposal.call
            key = outcome_key(call, proposal.step, before)
            found = self.outcomes.get(key)
            if found is None:
                found = self.outcomes[key] = Outcome(len(call.operation.parameters))
            proposal.outcome = found
        return found

    def _pairs(self, op: Operation[Any], parameters: int) -> list[int]:
        found = self.pairs.get(op.name)
        if found is None:
            found = self.pairs[op.name] = [1] * (parameters * (parameters - 1) // 2 * PLACES * PLACES)
        return found

    def score(self, proposal: Proposal, state: Any, before: Outcome | None) -> float:
        """How little was seen of a proposal, after that outcome: of its own one, alone and after it, of which of its
        candidates each argument is, each with that outcome and each two together, and of the sides that it takes."""
        outcome, picked, sides = self.outcome(proposal, state), proposal.picked, proposal.sides
        score = OUTCOME / (1 + outcome.times) + AFTER / (1 + outcome.after.get(before, 0))
        if picked:
            new, at, counts = 0.0, 1, outcome.arguments
            for n in picked:
                new += 1.0 / counts[at + n]
                at += PLACES
            parameters = len(picked)
            if parameters > 1:
                at, counts = PLACES + 1, self._pairs(proposal.call.operation, parameters)
                for i in range(1, parameters):
                    second = at + picked[i]
                    for j in range(i):
                        new += 1.0 / counts[second + picked[j] * PLACES]
                        second += PLACES * PLACES
                    at += i * PLACES * PLACES
            score += ARGUMENTS * new / (parameters * (parameters + 1) // 2)
        if sides:
            score += SIDES / (1 + min(map(self.sides.__getitem__, sides)))
        return score

    def note(self, proposal: Proposal, state: Any, before: Outcome | None) -> Outcome:
        """It is made: what was new of it was seen once more."""
        outcome, picked = self.outcome(proposal, state), proposal.picked
        outcome.times += 1
        outcome.after[before] = outcome.after.get(before, 0) + 1
        for at, n in enumerate(picked):
            outcome.arguments[at * PLACES + 1 + n] += 1
        if len(picked) > 1:
            counts = self._pairs(proposal.call.operation, len(picked))
            pairs = ((first, second) for at, second in enumerate(picked) for first in picked[:at])
            for at, (first, second) in enumerate(pairs):
                counts[(at * PLACES + first + 1) * PLACES + second + 1] += 1
        for n in proposal.sides:
            self.sides[n] += 1
        return outcome


@dataclass
class Way:
    """A history that led to something new, to go on from."""

    init: Mapping[str, Json]
    calls: Sequence[Call]
    followed: int = 0


class Draws:
    """Random histories of a machine, guided or uniform."""

    def __init__(
        self,
        machine: Machine[Any],
        operations: Sequence[Operation[Any]],
        guide: Guide | None,
        steps: int = STEPS,
        cover: Cover | None = None,
        shown: Callable[[Any], Json] | None = None,
    ) -> None:
        """`shown`: what is shown of a state, where somebody knows it already."""
        self.machine = machine
        self.shown = machine.observe if shown is None else shown
        self.operations = list(operations)
        self.guide = guide
        self.steps = steps
        self.cover = cover if cover is not None else Cover()
        self.follow: tuple[Operation[Any], dict[str, Any]] | None = None
        """the call that a changed number was found with"""
        self.wide: tuple[int, int | None] | None = None
        """the number at the end of a width that was used last in the history, and where its range ends"""
        self.fresh = 0
        """in how many calls that come next it is used sooner"""
        self.drawn: _GuidedPlan | None = None
        """the last guided history"""
        self.questions = [op for op in operations if op.returns == "answer" and op.takes_state]
        self._functions = {
            op.name: [(p, machine.candidates_of(op, p)) for p in op.parameters.values()] for op in operations
        }
        self._told = {
            op.name: [(n, (op.name, p)) for n, p in enumerate(op.parameters.values()) if p not in op.chosen]
            for op in operations
        }
        """the parameters that are told, by their places, and the keys of their old arguments"""
        self._at: Any = self
        self._offers: dict[str, _Offer] = {}
        self._known: dict[Callable[[Any], Sequence[Any]], Sequence[Any]] = {}
        self._looks: dict[int, Look] = {}

    def start(self, rng: random.Random, grows: bool = False) -> Start:
        """One history; `grows`: it may begin with growth."""
        self._begun()
        if self.guide is None:
            return Start(draw_init(self.machine, rng.choice), self._uniform(rng))
        way = None
        if self.guide.ways and rng.random() < ONWARD:
            way = min(rng.sample(self.guide.ways, min(8, len(self.guide.ways))), key=lambda w: w.followed)
            way.followed += 1
        init = draw_init(self.machine, rng.choice) if way is None else way.init
        self.drawn = _GuidedPlan(self, self.guide, rng, init, way.calls if way is not None else (), grows)
        return Start(init, self.drawn)

    def _begun(self) -> None:
        """A new history: all its numbers are candidates."""
        self.wide, self._at = None, self

    def relabelled(self) -> Start | None:
        """The guided history that was drawn last once more, with large offsets, times of today and large ids; None if
        there was none, where that changes nothing, and for a configuration outside its ranges. Calls that are not
        allowed then are left out."""
        if self.drawn is None:
            return None
        init, calls = self.drawn.init, self.drawn.calls
        other = self.machine.relabelled(init)
        changed = [Call(op, op.relabelled(arguments)) for op, arguments in calls]
        if self.machine.beyond(other) or (other == init and changed == calls):
            return None
        return Start(other, fixed(self.cover, [c for c in changed if not c.operation.beyond(c.arguments)]))

    def start_eagerly(self, rng: random.Random, proposals: int) -> Start:
        """One history in which every call is the newest of that many; only with guidance."""
        assert self.guide is not None
        self._begun()
        init = draw_init(self.machine, rng.choice)
        return Start(init, _EagerPlan(self, self.guide, rng, init, proposals))

    def propose(self, state: Any, pick: Pick) -> Proposal | None:
        """A call that the contract allows, all of it picked; None if there seems to be none."""
        for _ in range(TRIES):
            op = pick(self.operations)
            arguments = draw(self.machine, op, state, pick)
            found = None if arguments is None else proposed(self.cover, state, Call(op, arguments))
            if found is not None:
                return found
        return None

    def _uniform(self, rng: random.Random) -> Plan:
        left = self.steps

        def plan(state: Any) -> Proposal | None:
            nonlocal left
            left -= 1
            return self.propose(state, rng.choice) if left >= 0 else None

        return plan

    def proposal(
        self,
        state: Any,
        rng: random.Random,
        weights: Sequence[int],
        used: Mapping[tuple[str, str], list[Any]],
        stale: float = STALE,
    ) -> Proposal | None:
        """The same by weights of the operations, with old arguments now and then."""
        random, operations = rng.random, self.operations
        for _ in range(TRIES):
            op = operations[bisect(weights, random() * weights[-1], 0, len(weights) - 1)]
            found = self.call_of(op, state, rng, used, stale)
            if found is not None:
                return found
        return None

    def call_of(
        self,
        op: Operation[Any],
        state: Any,
        rng: random.Random,
        used: Mapping[tuple[str, str], list[Any]],
        stale: float = STALE,
    ) -> Proposal | None:
        """A call of an operation; None if what was drawn is outside the contract. What was drawn before in the same
        state is the same proposal."""
        if state is not self._at:
            self._at, self._offers, self._known = state, {}, {}
        offer = self._offers.get(op.name)
        if offer is None:
            offer = self._offers[op.name] = self._offered(op, state)
        if offer.lacking:
            return None
        random, getrandbits = rng.random, rng.getrandbits
        picked: list[int] = []
        for candidates in offer.candidates:
            most = len(candidates)
            bits = most.bit_length()
            n = getrandbits(bits)
            while n >= most:  # as randrange does, without its checks
                n = getrandbits(bits)
            picked.append(n)
        old: dict[int, Any] | None = None
        for n, key in self._told[op.name]:
            if random() < stale and (values := used.get(key)):
                old = {} if old is None else old
                old[n] = rng.choice(values)
        if old is not None:
            return self._proposal_of(op, state, offer, picked, old)
        drawn = tuple(picked)
        if drawn in offer.made:
            return offer.made[drawn]
        made = offer.made[drawn] = self._proposal_of(op, state, offer, picked, {})
        return made

    def _proposal_of(
        self, op: Operation[Any], state: Any, offer: _Offer, picked: list[int], old: Mapping[int, Any]
    ) -> Proposal | None:
        """The call with these candidates, but for old arguments at some places."""
        arguments = {p: c[n] for p, c, n in zip(offer.parameters, offer.candidates, picked, strict=True)}
        for at, value in old.items():
            arguments[offer.parameters[at]] = value
        for at, n in enumerate(picked):
            if n > CANDIDATES:
                picked[at] = CANDIDATES
        for at in old:
            picked[at] = -1
        return proposed(self.cover, state, Call(op, arguments), picked)

    def growing(
        self, op: Operation[Any], state: Any, rng: random.Random, used: Mapping[tuple[str, str], list[Any]]
    ) -> Proposal | None:
        """Of some calls of an operation that change something the one after which most is shown."""
        best: Proposal | None = None
        most = -1
        for _ in range(GROWING):
            found = self.call_of(op, state, rng, used)
            if found is None or isinstance(found.step.result, Refused) or found.step.state is state:
                continue
            shown = self.look(found.step.state).extent
            if shown > most:
                best, most = found, shown
        return best

    def with_number(
        self, state: Any, call: Call, numbers: Sequence[int], rng: random.Random, most: int | None = None
    ) -> Proposal | None:
        """The call with one of its numbers, or of those in its texts, changed to one of these, of which WIDE means the
        ends of its own range too. `most`: a number is preferred whose range ends there. Notes it in `wide`."""
        op, arguments = call
        told = [(p, v) for p, v in arguments.items() if p not in op.chosen and (type(v) is not int or p in op.ranges)]
        places = [place for p, v in told for place in numbers_in(v, (p,))]
        if not places:
            return None
        alike = [(path, text) for path, text in places if len(path) == 1 and self._most(op, path[0]) == most]
        path, text = rng.choice(alike if most is not None and alike else places)
        limits = op.ranges.get(path[0]) if len(path) == 1 and text is None else None
        if limits is not None and numbers is WIDE and rng.random() < ENDS:
            numbers = (limits.most, limits.most - 1, limits.least, limits.least + 1)
        for _ in range(TRIES):
            number = rng.choice(numbers)
            other = {p: with_one(v, path[1:], text, number) if p == path[0] else v for p, v in arguments.items()}
            if other == arguments:
                continue
            try:
                found = proposed(self.cover, state, Call(op, other))
            except CANNOT:
                continue
            if found is not None:
                self.wide, self.fresh = (number, None if limits is None else limits.most), SOON
                return found
        return None

    def _most(self, op: Operation[Any], parameter: str) -> int | None:
        limits = op.ranges.get(parameter)
        return None if limits is None else limits.most

    def alike(self, most: int | None) -> list[Operation[Any]]:
        """The questions with a number whose range ends there, or all."""
        found = [op for op in self.questions if any(r.most == most for r in op.ranges.values())]
        return found or self.questions

    def varied(self, state: Any, call: Call, rng: random.Random) -> Proposal | None:
        """A call with one of its numbers changed to a boundary of a rule, or to the end of a width, or beside; with it
        change, if it must be so, those that a rule compares it with."""
        op, arguments = call
        self.follow = None
        if rng.random() < WIDE_SHARE:
            return self.with_number(state, call, WIDE, rng)
        account = boundaries(lambda a: self._looked(op, state, a, rng), arguments)
        choices: list[tuple[Path, Sequence[int]]] = [
            (path, [d + more for d in sorted(by) for more in (-1, 0, 1) if d + more])
            for path, by in account.changes.items()
            if path[0] not in op.chosen
        ]
        if not choices:
            self.follow = None
            return self.with_number(state, call, WIDE, rng)
        path, by = rng.choice(choices)
        if not by:
            return None
        change = rng.choice(by)
        alone = {path: change}
        along = {p: change for group in account.together if path in group for p in group}
        for changes in (alone, along) if rng.random() < 0.5 else (along, alone):
            if not changes:
                continue
            other = changed(arguments, changes)
            try:
                found = proposed(self.cover, state, Call(op, other))
            except CANNOT:
                continue
            if found is not None:
                return found
        return None

    def _looked(self, op: Operation[Any], state: Any, arguments: dict[str, Any], rng: random.Random) -> None:
        """The call, what is shown after it, and one call more."""
        step = op.direct(state, arguments)
        if isinstance(step, Outside) or isinstance(step.result, Refused) or (op.kind != "time" and rng.random() < 0.5):
            return
        self.machine.show(step.state)
        other = rng.choice(self.operations)
        choices = {p: self.machine.candidates_of(other, p)(step.state) for p in other.parameters.values()}
        if all(choices.values()):
            then = {p: rng.choice(c) for p, c in choices.items()}
            self.follow = other, plain(then)
            other.direct(step.state, then)

    def _offered(self, op: Operation[Any], state: Any) -> _Offer:
        """The candidates of each parameter. Several calls are often proposed in one state."""
        made: list[Sequence[Any]] = []
        functions = self._functions[op.name]
        for _, function in functions:
            candidates = self._known.get(function)
            if candidates is None:
                candidates = self._known[function] = function(state)
            made.append(candidates)
            if not candidates:
                break
        return _Offer([p for p, _ in functions], made)

    def look(self, state: Any) -> Look:
        """What a state is like."""
        known = self._looks.get(id(state))
        if known is None:
            if len(self._looks) >= LOOKED_AT:
                self._looks.clear()
            known = self._looks[id(state)] = Look(state, self.shown(state))
        return known


class _Offer:
    """The candidates of an operation's parameters in a state, and what was proposed of them there."""

    __slots__ = ("candidates", "lacking", "made", "parameters")

    def __init__(self, parameters: Sequence[str], candidates: Sequence[Sequence[Any]]) -> None:
        self.parameters, self.candidates = parameters, candidates
        self.lacking = not all(candidates)
        """a parameter has none"""
        self.made: dict[tuple[int, ...], Proposal | None] = {}
        """by the numbers of the candidates"""


class Look:
    """What a state is like. It keeps the state, so that no other has its identity."""

    def __init__(self, state: Any, shown: Json) -> None:
        self.state, self._shown = state, shown

    @cached_property
    def features(self) -> set[Hashable]:
        """See `features`."""
        return features(self._shown)

    @cached_property
    def extent(self) -> int:
        """See `extent`."""
        return extent(self._shown)


class _ScoredProposal(NamedTuple):
    """A proposal, and how little of it was seen."""

    score: float
    proposal: Proposal


_by_score: Final = attrgetter("score")


class _EagerPlan:
    """The plan of one eager history."""

    def __init__(
        self, draws: Draws, guide: Guide, rng: random.Random, init: Mapping[str, Json], proposals: int
    ) -> None:
        self.draws, self.guide, self.rng, self.init = draws, guide, rng, init
        self.proposals = proposals
        self.weights: Sequence[int] = range(1, len(draws.operations) + 1)
        self.stale = STALE
        self.calls: list[Call] = []
        self.seen_of: Any = self
        self.size = 0
        """of what is shown"""
        self.made = 0
        self.used: dict[tuple[str, str], list[Any]] = {}
        self.before: Outcome | None = None
        self.next: Call | None = None

    def __call__(self, state: Any) -> Proposal | None:
        self._look_at(state)
        proposal = self._chosen(state) if self.made < self.draws.steps else None
        if proposal is None:
            return None
        call = proposal.call
        self.guide.called[call.operation.name] += 1
        self.calls.append(call)
        self.made += 1
        for p, value in call.arguments.items():
            self.used.setdefault((call.operation.name, p), []).append(value)
        self.before = self.guide.note(proposal, state, self.before)
        return proposal

    def _look_at(self, state: Any) -> None:
        """Note what is new of the state, as a history to go on from."""
        if state is self.seen_of:
            return
        self.seen_of = state
        look = self.draws.look(state)
        if self.calls:
            self.guide.added[self.calls[-1].operation.name] += max(0, look.extent - self.size)
        self.size = look.extent
        if not look.features <= self.guide.features:
            self.guide.features |= look.features
            if self.calls and len(self.calls) <= LONGEST:
                self.guide.ways.append(Way(self.init, tuple(self.calls)))

    def _chosen(self, state: Any) -> Proposal | None:
        """The next call."""
        return self._following(state) or self._newest(state, self.proposals)

    def _following(self, state: Any) -> Proposal | None:
        """The call that a changed number was found with, once."""
        then, self.next = self.next, None
        return None if then is None else proposed(self.draws.cover, state, then)

    def _newest(self, state: Any, proposals: int, looks: bool = False) -> Proposal | None:
        """Of some proposals that of which least was seen; now and then with a number changed. `looks`: questions."""
        rng, draws, guide, before = self.rng, self.draws, self.guide, self.before
        found: list[_ScoredProposal] = []
        scored: dict[Proposal, _ScoredProposal] = {}
        for _ in range(proposals):
            proposal = draws.call_of(rng.choice(draws.questions), state, rng, self.used) if looks else None
            proposal = proposal or draws.proposal(state, rng, self.weights, self.used, self.stale)
            if proposal is None:
                break
            if proposal not in scored:
                scored[proposal] = _ScoredProposal(guide.score(proposal, state, before), proposal)
            found.append(scored[proposal])
        if not found:
            return None
        best = self._best(found, state).proposal
        if rng.random() < VARIED:
            varied = draws.varied(state, best.call, rng)
            if varied is not None:
                if draws.follow is not None:
                    self.next = Call(*draws.follow)
                return varied
        return best

    def _best(self, found: Sequence[_ScoredProposal], state: Any) -> _ScoredProposal:
        """Of those with the highest scores that which leads to a state with most that is new."""

        def score(scored: _ScoredProposal) -> float:
            after = scored.proposal.step.state
            if after is state or after == state:
                return scored.score
            new = self.draws.look(after).features - self.guide.features
            return scored.score + CHANGED + SHOWN * min(len(new), 2)

        return max(heapq.nlargest(SHORT_LIST, found, key=_by_score), key=score)


class _GuidedPlan(_EagerPlan):
    """The plan of one guided history: besides, calls are repeated, made in streaks, kept to few operations, and made
    with numbers at the ends of widths; a question is asked again after a change of its answer; a history that led to
    something new is gone on from."""

    def __init__(
        self,
        draws: Draws,
        guide: Guide,
        rng: random.Random,
        init: Mapping[str, Json],
        way: Sequence[Call],
        grows: bool,
    ) -> None:
        super().__init__(draws, guide, rng, init, PROPOSALS)
        self.way = deque(way)
        self.last: Call | None = None
        self.streak: tuple[Operation[Any], int] | None = None
        """the operation of which more calls are made, and how many"""
        self.looks = LOOKED if way else 0
        """questions that are asked next"""
        self.again: Call | None = None
        """the question that is asked next, as its answer was changed"""
        harm = HARM[rng.random() < BURST]
        weights = [
            harm if op.kind in ("crash", "restart", "damage") else WITH_STATE if op.takes_state else WITHOUT
            for op in draws.operations
        ]
        if rng.random() < SWARM:
            weights = [w * rng.choice((0, 1, 1, 4)) for w in weights]
            weights[rng.randrange(len(weights))] += PREFERRED
        if rng.random() < FEW:
            few = rng.sample(range(len(weights)), min(len(weights), rng.randint(2, AT_MOST)))
            weights = [WEIGHT if n in few else 1 for n in range(len(weights))]
            self.stale = FEW_STALE
        if way:
            weights[draws.operations.index(way[-1].operation)] += PREFERRED
        self.weights = list(itertools.accumulate(weights))
        questions = [op.returns == "answer" for op in draws.operations]
        changes = [0 if q or w == 1 else w for q, w in zip(questions, weights, strict=True)]
        self.changes = list(itertools.accumulate(changes))
        """the weights of those that are no questions, and that the history keeps to"""
        self.growth = self._growth() if grows and not way and rng.random() < GROWN else None

    def _growth(self) -> Sequence[int]:
        """The weights of the operations by how much each adds."""
        guide, operations = self.guide, self.draws.operations
        adds = [guide.added[op.name] / (1 + guide.called[op.name]) for op in operations]
        most = max(adds) or 1
        return list(itertools.accumulate(1 + int(ADDING * x / most) for x in adds))

    def __call__(self, state: Any) -> Proposal | None:
        while self.way:
            self._look_at(state)
            again = proposed(self.draws.cover, state, self.way.popleft())
            if again is not None:
                self.calls.append(again.call)
                return again
        found = super().__call__(state)
        if found is not None:
            self.last = found.call
            if self.streak is None and found.step.state is not state and self.rng.random() < STREAK:
                self.streak = found.call.operation, self.rng.choice(LENGTHS)
        return found

    def _chosen(self, state: Any) -> Proposal | None:
        rng, draws = self.rng, self.draws
        if (follow := self._following(state)) is not None:
            return follow
        if (asked := self._asked_again(state)) is not None:
            return asked
        if self.growth is not None and self.made < GROWTH:
            (op,) = rng.choices(draws.operations, cum_weights=self.growth)
            more = draws.growing(op, state, rng, self.used)
            if more is not None:
                return more
        if self.last is not None and rng.random() < DUPLICATE:
            again = proposed(draws.cover, state, self.last)
            if again is not None:
                return again
        again = self._again(state)
        if again is not None:
            return again
        if self.streak is not None and rng.random() >= RANDOM:
            op, left = self.streak
            self.streak = (op, left - 1) if left > 1 else None
            self.looks = 0 if left > 1 else LOOKED
            more = draws.growing(op, state, rng, self.used)
            if more is not None:
                return more
        looks = self.looks > 0 and bool(draws.questions)
        self.looks -= looks
        return self._newest(state, 1 if rng.random() < RANDOM else self.proposals, looks)

    def _best(self, found: Sequence[_ScoredProposal], state: Any) -> _ScoredProposal:
        """By the score alone: what is shown is not looked at, as that takes longer than all else."""
        return max(found, key=_by_score)

    def _asked_again(self, state: Any) -> Proposal | None:
        """After a question a call that changes its answer, after that the question: what an implementation remembers of
        it is then wrong."""
        rng, draws, asked = self.rng, self.draws, self.last
        again, self.again = self.again, None
        if again is not None:
            return proposed(draws.cover, state, again)
        if asked is None or asked.operation not in draws.questions:
            return None
        if self.looks or not self.changes[-1] or rng.random() >= ASKED_AGAIN:
            return None
        answer = asked.operation.direct(state, asked.arguments)
        if isinstance(answer, Outside):
            return None
        best: Proposal | None = None
        least = 0
        for _ in range(CHANGES):
            found = draws.proposal(state, rng, self.changes, self.used)
            if found is None or (after := found.step.state) is state:
                continue
            other = asked.operation.direct(after, asked.arguments)
            if isinstance(other, Outside) or other.result == answer.result:
                continue
            change = abs(draws.look(after).extent - self.size)
            if best is None or change < least:
                best, least = found, change
        if best is not None:
            self.again = asked
        return best

    def _again(self, state: Any) -> Proposal | None:
        """A call with the number at the end of a width that was used last, or one beside it."""
        rng, draws = self.rng, self.draws
        if draws.wide is None:
            return None
        draws.fresh -= 1
        if rng.random() >= USED_AGAIN[draws.fresh >= 0]:
            return None
        fresh, wide = draws.fresh, draws.wide
        number, most = wide
        if draws.questions and rng.random() < LOOKS:
            found = draws.call_of(rng.choice(draws.alike(most)), state, rng, self.used)
        else:
            found = draws.proposal(state, rng, self.weights, self.used)
        near = (number, number, number - 1, number + 1)
        made = None if found is None else draws.with_number(state, found.call, near, rng, most)
        draws.fresh, draws.wide = fresh, wide
        return made


class _Place(dict[str, "_Place"]):
    """A place in what is shown: those within it by their keys, which are places of their own. Keys that are no names,
    as numbers are, are one. Its number is hashed faster than the keys that lead to it."""

    numbers = itertools.count()

    def __init__(self) -> None:
        self.number = next(_Place.numbers)

    def __missing__(self, key: str) -> _Place:
        if key != "*" and not key.isidentifier():
            return self["*"]
        made = self[key] = _Place()
        return made


_TOP: Final = _Place()


def features(shown: Json) -> set[Hashable]:
    """What a state is like, roughly: how many there are of each thing, and how large its numbers are."""
    found: set[Hashable] = set()
    add = found.add

    def walk(value: Json, place: _Place) -> None:
        at = place.number
        if type(value) is int:
            add((at, -1 if value < 0 else (value.bit_length() + 3) // 4))
        elif isinstance(value, dict):
            most = len(value)
            add((at, most if most < 9 else 9))
            for key, x in value.items():
                if type(x) is int:
                    add((place[key].number, -1 if x < 0 else (x.bit_length() + 3) // 4))
                else:
                    walk(x, place[key])
        elif isinstance(value, list):
            most = len(value)
            add((at, most if most < 9 else 8 + most.bit_length()))
            if most:
                walk(value[0], place["*"])
                if most > 1:
                    walk(value[-1], place["*"])
        else:
            add((at, value if isinstance(value, bool) else type(value).__name__))

    walk(shown, _TOP)
    return found


_ONE: Final = frozenset({int, bool, type(None)})


def extent(shown: Json) -> int:
    """How much is shown.

    >>> extent({"a": [1, 2]}), extent([]), extent("x" * 32)
    (4, 1, 3)
    """
    if isinstance(shown, dict):
        return 1 + sum([1 if type(x) in _ONE else extent(x) for x in shown.values()])
    if isinstance(shown, list):
        return 1 + sum([1 if type(x) in _ONE else extent(x) for x in shown])
    return 1 + len(shown) // 16 if isinstance(shown, str) else 1


def numbers_in(value: Json, path: Path) -> Iterator[tuple[Path, tuple[int, int] | None]]:
    """Where in an argument there are whole numbers; in a text, from which character to which."""
    if type(value) is int:
        yield path, None
    elif isinstance(value, str):
        yield from ((path, m.span()) for m in NUMBER.finditer(value))
    elif isinstance(value, list | tuple):
        for n, x in enumerate(value):
            yield from numbers_in(x, (*path, n))
    elif isinstance(value, dict):
        for k, x in value.items():
            yield from numbers_in(x, (*path, k))


def with_one(value: Any, path: Path, span: tuple[int, int] | None, number: int) -> Any:
    """The argument with the number at a place changed."""
    if not path:
        return number if span is None else f"{value[: span[0]]}{number}{value[span[1] :]}"
    first, *rest = path
    if isinstance(value, dict):
        return {**value, first: with_one(value[first], tuple(rest), span, number)}
    return [with_one(x, tuple(rest), span, number) if n == first else x for n, x in enumerate(value)]


def fixed(cover: Cover, calls: Sequence[Call]) -> Plan:
    """The plan of a history that is known; calls outside the contract are left out."""
    rest: Iterator[Call] = iter(calls)

    def plan(state: Any) -> Proposal | None:
        return next((found for call in rest if (found := proposed(cover, state, call)) is not None), None)

    return plan
