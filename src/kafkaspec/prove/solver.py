"""Asking Z3, with a budget that is counted in its own steps first, so that a busy machine does not change a verdict.

Fewer assumptions make a proof no weaker and often much easier to find. So a goal is asked of all assumptions, of those
that speak of the same things, and of those that were needed at a small size, in turn.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal

import z3

from kafkaspec.prove.symbols import Formula, negated

STEPS_PER_SECOND = 2_500_000
"""Z3's resource units that a quiet core does in about a second."""
CLOCK = 3
"""A budget ends too when the thread has used this many times its seconds of CPU time, as on a slower core."""
PATIENCE = 10
"""One query ends when this many times its share of the budget, and a second, have passed: it does not count its steps,
or the machine is that busy."""
MOST = 2**32 - 1
"""No limit of Z3's is larger: it would be cut to its last 32 bits."""
LEAST_S = 0.0005
"""What every query costs at least, so that a budget ends."""

SHARED_S = 0.03
"""The share of the first attempt at a goal, by a solver that has the assumptions already: they are read within that of
the first goal."""
NAMED = "assumed: "
"""Before the names of assumptions, so that they are no names of a model."""

Answer = Literal["unsat", "sat", "unknown"]
Options = Mapping[str, Any]

PORTFOLIO: tuple[Options, ...] = (
    {},
    {"smt.mbqi": False, "smt.pull_nested_quantifiers": True},
    {"smt.mbqi": False, "smt.arith.solver": 2},
    {"smt.random_seed": 3},
    {"smt.mbqi": False, "smt.qi.eager_threshold": 5.0},
    {"smt.mbqi": False},
)
"""Options of the solver, in the order in which they are tried. Whether one of them finds a proof is luck, which many
short attempts use better than one long one."""
SHARED = len(PORTFOLIO) - 1
"""Of them, those of the solver that has the assumptions already."""
QUICK = {"needed": (0,), "all": (0, 1, 2)}
"""What is tried before anything else, by the set of assumptions: more than nine in ten proofs are found so."""
FIRST_S, GROWTH = 0.05, 4
"""The share of the budget that an attempt has in the first round, and how it grows from round to round."""
NUMBERS = "(numbers)"
"""Among the names of claims that are enough: with them, what is known of numbers of elements is wanted."""
LARGEST = 4
"""No attempt has more than this part of a budget."""


@dataclass(frozen=True)
class Reply:
    """An answer, the model where there is one, and why where there is none. `core` names the assumptions that were
    used, where it was asked for."""

    answer: Answer
    model: z3.ModelRef | None
    why: str
    steps: int
    core: frozenset[str] = frozenset()


@dataclass
class Budget:
    """What an obligation may cost, in seconds of a quiet core. Every query made for it is charged the steps that it
    took; nothing is asked when nothing is left."""

    seconds: float
    spent_s: float = 0.0
    began_s: float = field(default_factory=lambda: time.thread_time())  # asked for now, as tests set the clock

    @property
    def left_s(self) -> float:
        """What is left; 0 when the clock has run out."""
        if time.thread_time() - self.began_s > CLOCK * self.seconds + 1:
            return 0.0
        return max(0.0, self.seconds - self.spent_s)

    @property
    def over(self) -> bool:
        return self.left_s <= 0

    def shares(self) -> Iterator[float]:
        """The seconds of an attempt, round by round, until nothing is left."""
        share, largest = FIRST_S, self.seconds / LARGEST
        while not self.over:
            yield min(share, largest)
            share *= GROWTH

    def ask(
        self,
        formulas: Sequence[Formula],
        share_s: float,
        options: Options | None = None,
        named: Mapping[str, Formula] | None = None,
        alone: bool = False,
    ) -> Reply:
        """Are the formulas satisfiable together? "unknown" if nothing is left to find out with."""
        if self.over:
            return Reply("unknown", None, "the budget is used up", 0)
        share_s = min(share_s, self.left_s)
        asked = check(formulas, share_s, options, named, alone)
        self.charge(asked)
        return asked

    def charge(self, asked: Reply) -> None:
        """Count what a query took."""
        self.spent_s += max(asked.steps / STEPS_PER_SECOND, LEAST_S)


def limit(solver: z3.Solver, share_s: float) -> None:
    """Give a solver what one query may cost."""
    solver.set("rlimit", max(1, int(min(share_s * STEPS_PER_SECOND, MOST))))
    solver.set("timeout", int(min((share_s * PATIENCE + 1) * 1000, MOST)))


def steps_taken(solver: z3.Solver) -> int:
    """Z3's count of resource units. It is one for all solvers: only differences mean something."""
    ctx = solver.ctx.ref()
    s = z3.Z3_solver_get_statistics(ctx, solver.solver)
    z3.Z3_stats_inc_ref(ctx, s)
    try:
        for i in reversed(range(z3.Z3_stats_size(ctx, s))):  # it stands near the end
            if z3.Z3_stats_get_key(ctx, s, i) == "rlimit count":
                return int(z3.Z3_stats_get_uint_value(ctx, s, i))
    finally:
        z3.Z3_stats_dec_ref(ctx, s)
    return 0


def asserted(solver: z3.Solver, formulas: Sequence[Formula]) -> None:
    """Give a solver formulas."""
    ctx = solver.ctx.ref()
    for f in formulas:
        z3.Z3_solver_assert(ctx, solver.solver, f.ast)


def check(
    formulas: Sequence[Formula],
    share_s: float,
    options: Options | None = None,
    named: Mapping[str, Formula] | None = None,
    alone: bool = False,
) -> Reply:
    """One query to Z3. Assumptions that are `named` are told by their names in the core, if they were used. `alone`: no
    formula that was made before has a say in how Z3 orders these, which decides what a search finds."""
    context = z3.Context() if alone else None
    s = z3.Solver(ctx=context)
    if context is not None:
        formulas = [f.translate(context) for f in formulas]
        named = {name: f.translate(context) for name, f in (named or {}).items()}
    limit(s, share_s)
    for name, value in (options or {}).items():
        s.set(name, value)
    asserted(s, formulas)
    for name, f in (named or {}).items():
        s.assert_and_track(f, NAMED + name)
    before = steps_taken(s)
    answer: Answer = str(s.check())  # type: ignore[assignment]
    core = [x.decl().name().removeprefix(NAMED) for x in s.unsat_core()] if named and answer == "unsat" else []
    return Reply(
        answer,
        s.model() if answer == "sat" else None,
        s.reason_unknown() if answer == "unknown" else "",
        steps_taken(s) - before,
        frozenset(core),
    )


class SharedSolver:
    """A solver that reads assumptions once, and is then asked one goal after the other: where these are easy, reading
    the assumptions is most of the work. Only its proofs count. After any other answer it begins again, so that nothing
    which a search that was broken off leaves behind is built on."""

    def __init__(self) -> None:
        self.assumed: Sequence[Formula] | None = None
        self.solver: z3.Solver | None = None

    def proves(self, q: Question, budget: Budget, share_s: float = SHARED_S) -> bool:
        """Does the goal follow from "all", as far as a short attempt tells?"""
        if budget.over:
            return False
        asked = self.check(q.assumed, [*q.hints, q.denied], min(share_s, budget.left_s))
        budget.charge(asked)
        q.spent_s += asked.steps / STEPS_PER_SECOND
        if asked.answer != "unsat":
            return False
        q.won = SHARED, "all"
        return True

    def check(self, assumed: Sequence[Formula], formulas: Sequence[Formula], share_s: float) -> Reply:
        """One query."""
        if self.solver is None or self.assumed is not assumed:
            self.solver, self.assumed = z3.SimpleSolver(), assumed
            for name, value in PORTFOLIO[SHARED].items():
                self.solver.set(name, value)
            asserted(self.solver, assumed)
        s = self.solver
        limit(s, share_s)
        s.push()
        asserted(s, formulas)
        before = steps_taken(s)
        proved = bool(s.check() == z3.unsat)
        steps = steps_taken(s) - before
        if proved:
            s.pop()
        else:
            self.solver = None
        return Reply("unsat" if proved else "unknown", None, "", steps)


_functions: dict[int, tuple[Formula, frozenset[str], bool]] = {}


def _speaks_of(f: Formula) -> tuple[frozenset[str], bool]:
    """The functions of a state that a formula speaks of, and whether it has quantifiers."""
    hit = _functions.get(f.get_id())
    if hit is None:
        names, quantified, seen, todo = set(), False, set(), [f]
        while todo:
            x = todo.pop()
            if x.get_id() in seen:
                continue
            seen.add(x.get_id())
            if z3.is_quantifier(x):
                quantified = True
                todo.append(x.body())
            elif z3.is_app(x):
                if x.num_args() and x.decl().kind() == z3.Z3_OP_UNINTERPRETED and "!" not in x.decl().name():
                    names.add(x.decl().name())
                todo += x.children()
        if len(_functions) > 10_000:
            _functions.clear()
        hit = _functions[f.get_id()] = (f, frozenset(names), quantified)  # the formula keeps its number taken
    return hit[1:]


def relevant(assumed: Sequence[Formula], about: Sequence[Formula]) -> list[Formula]:
    """The assumptions without quantifiers, and those that speak only of the functions that `about` speaks of."""
    spoken_of = frozenset[str]().union(*[_speaks_of(f)[0] for f in about])
    return [f for f in assumed if (x := _speaks_of(f)) and (not x[1] or x[0] <= spoken_of)]


class Question:
    """Whether a goal follows from what is assumed, asked in rounds.

    An attempt takes options of the portfolio and a set of assumptions: "all"; "relevant", which speak of the same as
    the goal; "needed", of the claims those that are needed at small sizes, once that is known; "apart", all and those
    that are kept apart until the others are known, or feared, not to be enough."""

    def __init__(
        self,
        assumed: Sequence[Formula],
        hints: Sequence[Formula],
        apart: Sequence[Formula],
        goal: Formula,
        claims: Mapping[str, Formula],
        numbers: Set[int] = frozenset(),
    ) -> None:
        self.assumed, self.hints, self.apart, self.claims, self.numbers = assumed, hints, apart, claims, numbers
        self.denied = negated(goal)
        self.sets: dict[str, list[Formula]] = {"all": [*assumed, *hints]}
        if apart:
            self.sets["apart"] = [*assumed, *hints, *apart]
        self.failed: set[str] = set()
        """Sets of assumptions that are known not to be enough."""
        self.exhausted: set[tuple[int, str]] = set()
        """Attempts that end without an answer however much they may cost."""
        self.won: tuple[int, str] | None = None
        """The attempt that found a proof."""
        self.spent_s = 0.0
        """What all attempts cost, in seconds of a quiet core."""

    @property
    def last(self) -> str:
        """The set of all that there is."""
        return "apart" if self.apart else "all"

    @property
    def hopeless(self) -> bool:
        """Is there no attempt left that could find a proof?"""
        return self.last in self.failed or not any(self._attempts(False))

    def needs(self, names: Set[str], numbers: bool = True) -> bool:
        """Of the claims, these are needed at a small size: they may be enough at every size. `numbers`: with what is
        known of numbers of elements and of majorities, which are many formulas. False if that is all there is."""
        left_out = {self.claims[n].get_id() for n in self.claims.keys() - names}
        left_out |= set() if numbers else self.numbers
        needed = [f for f in self.assumed if f.get_id() not in left_out]
        if len(needed) < len(self.assumed):
            self.sets["needed"] = [*needed, *self.hints]
            self.failed.discard("needed")
            self.exhausted = {x for x in self.exhausted if x[1] != "needed"}
        return len(needed) < len(self.assumed)

    def round(self, budget: Budget, share_s: float, quick: bool = False, among: str = "") -> Answer:
        """Every attempt once; or, `quick`, those that find most proofs; or those that take one set of assumptions.
        "unsat": the goal follows; "sat": it does not, whatever else is tried."""
        if not quick and not among:
            self._relevant()
        if self.last in self.failed:
            return "sat"
        for attempt in self._attempts(quick):
            options, name = attempt
            if name in self.failed or among not in ("", name):  # failed by now
                continue
            asked = self._ask(budget, share_s, options, name)
            if asked.answer == "unsat":
                return "unsat"
            if asked.answer == "sat":
                self.failed |= {name} if name in ("relevant", "needed") else {"relevant", "needed", "all", name}
                if name == self.last:
                    return "sat"
            elif "incomplete" in asked.why:
                self.exhausted.add(attempt)
            if budget.over:
                break
        return "unknown"

    def follows(self, budget: Budget, share_s: float, options: int, among: str | Set[str]) -> bool:
        """Does one attempt find a proof: among a set of assumptions by its name, or among these of the claims?"""
        if not isinstance(among, str):
            among = "needed" if self.needs(among, NUMBERS in among) else "all"
        elif among == "relevant":
            self._relevant()
        return among in self.sets and self._ask(budget, share_s, options, among, alone=True).answer == "unsat"

    def _ask(self, budget: Budget, share_s: float, options: int, among: str, alone: bool = False) -> Reply:
        """One attempt."""
        asked = budget.ask([*self.sets[among], self.denied], share_s, PORTFOLIO[options], alone=alone)
        self.spent_s += asked.steps / STEPS_PER_SECOND
        if asked.answer == "unsat":
            self.won = options, among
        return asked

    def _relevant(self) -> None:
        """What speaks of the same things as the goal."""
        if "relevant" not in self.sets:
            found = relevant(self.assumed, [*self.hints, self.denied])
            self.sets["relevant"] = [*found, *self.hints]
            if len(found) == len(self.assumed):
                self.failed.add("relevant")  # "all" once more

    def used(self, share_s: float) -> frozenset[str]:
        """The claims that the proof that was found used: all that it had if that cannot be told. No budget is
        charged."""
        assert self.won is not None
        options, name = self.won
        had = {f.get_id() for f in self.sets[name]}
        named = {n: f for n, f in self.claims.items() if f.get_id() in had}
        known = {f.get_id() for f in named.values()}
        others = [f for f in self.sets[name] if f.get_id() not in known]
        asked = check([*others, self.denied], share_s, PORTFOLIO[options], named)
        return asked.core if asked.answer == "unsat" else frozenset(named)

    def _attempts(self, quick: bool) -> list[tuple[int, str]]:
        """The attempts of a round, in their order."""
        names = [n for n in ("needed", "relevant", "all", "apart") if n in self.sets and n not in self.failed]
        if quick:
            return [(i, n) for n in names for i in QUICK.get(n, ())]
        late = "all" not in self.failed  # what is kept apart is not wanted yet
        tried = [(i, n) for i in range(len(PORTFOLIO)) for n in names if not (n == "apart" and late and i == 0)]
        return [x for x in tried if x not in self.exhausted]
