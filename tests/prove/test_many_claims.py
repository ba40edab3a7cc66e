"""Models of many claims, true and false, whose obligations share solvers and assumptions: what is false is not proved.

The false ones are found by exploring; the names tell which they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.language import (
    Bounded,
    Claim,
    LoadedModel,
    Model,
    NonEmpty,
    Range,
    Size,
    Sort,
    action,
    initial,
    invariant,
    lemma,
    load,
    majority,
    require,
    step,
)
from kafkaspec.prove import solver
from kafkaspec.prove.engine import prove


class Node(Sort):
    """A node."""


class Broker(Sort):
    """A broker."""


N = Size("N")
Num = Annotated[int, Range(0, N)]


@dataclass(frozen=True)
class Msg:
    """A message."""

    to: Node
    num: Num


class Votes(Model):
    """Majorities of two sets."""

    yes: set[Node]
    no: set[Node]
    won: bool

    @action(who="n")
    def vote(s, n: Node) -> None:
        require(n not in s.no)
        s.next.yes = s.yes | {n}

    @action(who="n")
    def deny(s, n: Node, m: Node) -> None:
        require(n not in s.yes, m not in s.no)
        s.next.no = s.no | {n}

    @action(who="n")
    def win(s, n: Node) -> None:
        require(majority(s.yes), n in s.yes)
        s.next.won = True

    @action(who="n")
    def drop(s, n: Node) -> None:
        require(not majority(s.no))
        s.next.yes = s.yes - {n}

    @invariant()
    def true_disjoint(s, n: Node) -> bool:
        return not (n in s.yes and n in s.no)

    @invariant()
    def true_not_both(s) -> bool:
        return not (majority(s.yes) and majority(s.no))

    @invariant()
    def false_won(s) -> bool:
        return not s.won or majority(s.yes)

    @invariant()
    def false_few(s) -> bool:
        return not majority(s.no)

    @invariant()
    def false_len(s) -> bool:
        return len(s.yes) <= 1

    @step()
    def false_grow(s) -> bool:
        return len(s.yes) <= len(s.next.yes)

    @step()
    def false_one(s, n: Node) -> bool:
        return n not in s.yes or n in s.next.yes


class Great(Model):
    """The greatest and least of a map's values."""

    at: dict[Node, Num]
    top: Num
    low: Num

    @action(who="n")
    def up(s, n: Node) -> None:
        require(s.at[n] < N)
        s.next.at[n] = s.at[n] + 1

    @action(who="n")
    def down(s, n: Node, m: Node) -> None:
        require(s.at[n] > 0, n != m)
        s.next.at[n] = s.at[n] - 1

    @action(who="n")
    def see(s, m: Node) -> None:
        s.next.top = max((s.at[n] for n in Node), default=0)

    @action(who="n")
    def seelow(s) -> None:
        s.next.low = min((s.at[n] for n in Node), default=0)

    @invariant()
    def true_max(s, n: Node) -> bool:
        return s.at[n] <= max((s.at[m] for m in Node), default=0)

    @invariant()
    def false_top(s) -> bool:
        return s.top <= max((s.at[m] for m in Node), default=0)

    @invariant()
    def false_top2(s, n: Node) -> bool:
        return s.at[n] <= s.top

    @invariant()
    def false_low(s, n: Node) -> bool:
        return s.low <= s.at[n]

    @invariant()
    def false_eq(s) -> bool:
        return max((s.at[m] for m in Node), default=0) == min((s.at[m] for m in Node), default=0)

    @step()
    def false_step(s) -> bool:
        return max((s.at[m] for m in Node), default=0) <= max((s.next.at[m] for m in Node), default=0)

    @step()
    def false_step2(s) -> bool:
        return s.top <= s.next.top


class One(Model):
    """A set and a map side by side."""

    x: Num
    y: set[Node]
    z: dict[Node, bool]

    @action(who="n")
    def a(s, n: Node) -> None:
        s.next.y = s.y | {n}
        s.next.z[n] = True

    @action(who="n")
    def b(s) -> None:
        require(s.x < N)
        s.next.x = s.x + 1

    @invariant()
    def true_yz(s, n: Node) -> bool:
        return (n in s.y) == s.z[n]

    @invariant()
    def false_x(s) -> bool:
        return s.x < N

    @invariant()
    def false_all(s) -> bool:
        return not all(s.z[n] for n in Node)


class Two(Model):
    """The same names as in `One`, of other types."""

    x: bool
    y: dict[Node, set[Node]]
    z: Annotated[list[Node], Bounded(N)]

    @action(who="n")
    def a(s, n: Node, m: Node) -> None:
        s.next.y[n] = s.y[n] | {m}

    @action(who="n")
    def b(s, n: Node) -> None:
        require(len(s.z) < N, n not in s.z)
        s.next.z = s.z + [n]
        s.next.x = True

    @invariant()
    def true_z(s) -> bool:
        return len(s.z) == 0 or s.x

    @invariant()
    def false_yz(s, n: Node) -> bool:
        return (n in s.y[n]) == (n in s.z)

    @invariant()
    def false_x(s) -> bool:
        return not s.x

    @invariant()
    def false_all(s) -> bool:
        return not all(n in s.z for n in Node)


class Three(One):
    """`One` with another action and claims of its names."""

    @action(who="n")
    def b(s) -> None:
        require(s.x < N)
        s.next.x = N

    @invariant()
    def false_x(s) -> bool:
        return s.x != N

    @step()
    def false_s(s) -> bool:
        return s.next.x <= s.x + 1


class Count(Model):
    """How many have a flag, counted and summed."""

    m: dict[Node, bool]
    k: dict[Node, Num]
    c: Annotated[int, Range(0)]
    ghosts = ("c",)

    @action(who="n")
    def on(s, n: Node) -> None:
        require(not s.m[n])
        s.next.m[n] = True
        s.next.c = s.c + 1

    @action(who="n")
    def onfree(s, n: Node, p: Node) -> None:
        require(not s.m[n], s.m[p])
        s.next.m[n] = True
        s.next.c = s.c + 1
        s.next.k[p] = N

    @action(who="n")
    def swap(s, n: Node, p: Node) -> None:
        require(s.m[n], not s.m[p])
        s.next.m[n] = False
        s.next.m[p] = True

    @action(who="n")
    def bad(s, n: Node) -> None:
        require(s.c > 2, s.m[n])
        s.next.m[n] = False

    @lemma()
    def false_count(s) -> bool:
        return s.c == len({n for n in Node if s.m[n]})

    @invariant()
    def true_le(s) -> bool:
        return s.c >= len({n for n in Node if s.m[n]})

    @invariant()
    def false_le(s) -> bool:
        return s.c <= len(Node)

    @invariant()
    def false_sum(s) -> bool:
        return sum(s.k[n] for n in Node) <= N

    @invariant()
    def false_some(s) -> bool:
        return any(not s.m[n] for n in Node)

    @step()
    def false_cnt(s) -> bool:
        return len({n for n in Node if s.m[n]}) <= len({n for n in Node if s.next.m[n]})


class Opt(Model):
    """Owners that may be absent, and a set that has a member."""

    own: dict[Node, Node | None]
    chosen: Node | None
    grp: Annotated[set[Node], NonEmpty]
    acc: dict[Node, set[Node]]

    @initial
    def start(s) -> None:
        s.next.grp = set(Node)

    @action(who="n")
    def take(s, n: Node, m: Node) -> None:
        require(s.own[n] is None)
        s.next.own[n] = m
        s.next.acc[m] = s.acc[m] | {n}

    @action(who="n")
    def choose(s, n: Node) -> None:
        require(2 * len(s.acc[n]) > len(Node))
        s.next.chosen = n

    @action(who="n")
    def choosehalf(s, n: Node) -> None:
        require(2 * len(s.acc[n]) >= len(Node))
        s.next.chosen = n

    @action(who="n")
    def shrink(s, n: Node) -> None:
        require(any(m != n for m in s.grp))
        s.next.grp = s.grp - {n}

    @lemma()
    def true_acc(s, n: Node, m: Node) -> bool:
        return n not in s.acc[m] or s.own[n] == m

    @invariant()
    def false_maj(s) -> bool:
        return s.chosen is None or majority(s.acc[s.chosen])

    @invariant()
    def false_in(s) -> bool:
        return s.chosen is None or s.chosen in s.grp

    @step()
    def false_stay(s) -> bool:
        return s.chosen is None or s.next.chosen == s.chosen

    @step()
    def false_grp(s) -> bool:
        return majority(s.next.grp)

    @invariant()
    def false_grp2(s) -> bool:
        return majority(s.grp)


class Net(Model):
    """A set of records."""

    net: Annotated[set[Msg], Bounded(N)]
    got: dict[Node, Num]
    lead: dict[Broker, Node | None]

    @action(who="n")
    def send(s, n: Node, v: Num) -> None:
        require(v >= s.got[n], len(s.net) < N)
        s.next.net = s.net | {Msg(to=n, num=v)}

    @action(who="n")
    def recv(s, n: Node) -> None:
        require(any(x.to == n for x in s.net))
        s.next.got[n] = max(x.num for x in s.net if x.to == n)

    @action(who="n")
    def lose(s, n: Node, b: Broker) -> None:
        s.next.net = {x for x in s.net if x.to != n}
        s.next.lead[b] = n

    @action(who="n")
    def undo(s, b: Broker, c: Broker) -> None:
        s.next.lead[b] = s.lead[c]

    @invariant()
    def false_net(s) -> bool:
        return all(s.got[x.to] <= x.num for x in s.net)

    @invariant()
    def false_got(s, n: Node) -> bool:
        return s.got[n] == 0 or any(x.to == n for x in s.net)

    @invariant()
    def false_one(s, b: Broker, c: Broker) -> bool:
        return s.lead[b] is None or s.lead[c] is None or b == c or s.lead[b] != s.lead[c]

    @invariant()
    def false_pair(s, n: Node, m: Node) -> bool:
        return s.got[n] == s.got[m]

    @step()
    def false_max(s) -> bool:
        return max((x.num for x in s.net), default=0) <= max((x.num for x in s.next.net), default=0)


class Sized(Model):
    """Sizes of sets, and sets in a map."""

    a: set[Node]
    b: set[Node]
    f: dict[Node, set[Node]]

    @action(who="n")
    def one(s, n: Node) -> None:
        s.next.a = s.a | {n}

    @action(who="n")
    def two(s, n: Node, m: Node) -> None:
        require(len(s.b) < len(s.a), n != m)
        s.next.b = s.b | {n, m}

    @action(who="n")
    def three(s, n: Node) -> None:
        s.next.f[n] = s.a - s.b

    @action(who="n")
    def four(s, n: Node) -> None:
        require(all(n in s.f[m] for m in Node))
        s.next.b = {m for m in Node if n in s.f[m]}

    @invariant()
    def false_le(s) -> bool:
        return len(s.b) <= len(s.a)

    @invariant()
    def true_total(s) -> bool:
        return len(s.a | s.b) <= len(Node)

    @invariant()
    def false_total(s) -> bool:
        return len(s.a | s.b) < len(Node)

    @invariant()
    def false_le1(s) -> bool:
        return len(s.b) <= len(s.a) + 1 and len(s.b) < 4

    @invariant()
    def false_f(s, n: Node, m: Node) -> bool:
        return s.f[n] <= s.f[m] or s.f[m] <= s.f[n]

    @invariant()
    def false_g(s) -> bool:
        return all(s.f[n] <= s.a - s.b for n in Node)

    @step()
    def false_b(s) -> bool:
        return len(s.next.b) <= len(s.b) + 1

    @step()
    def false_maj(s) -> bool:
        return not majority(s.a) or (majority(s.next.a & s.a) and not majority(s.next.b))


class Queues(Model):
    """Lists, also in a map."""

    q: Annotated[list[Node], Bounded(N)]
    r: dict[Node, Annotated[list[Num], Bounded(N)]]
    w: dict[Num, Node | None]

    @action(who="n")
    def push(s, n: Node) -> None:
        require(len(s.q) < N)
        s.next.q = s.q + [n]

    @action(who="n")
    def pop(s, n: Node, i: Num) -> None:
        require(len(s.q) > 0, s.q[0] == n)
        s.next.q = s.q[1:]
        s.next.w[i] = n

    @action(who="n")
    def rec(s, n: Node, i: Num) -> None:
        require(len(s.r[n]) < N, all(x <= i for x in s.r[n]))
        s.next.r[n] = s.r[n] + [i]

    @action(who="n")
    def copy(s, n: Node, m: Node) -> None:
        require(len(s.r[n]) < len(s.r[m]))
        s.next.r[n] = s.r[m]

    @invariant()
    def true_sorted(s, n: Node) -> bool:
        return all(s.r[n][i] <= s.r[n][j] for i in range(len(s.r[n])) for j in range(i, len(s.r[n])))

    @invariant()
    def false_strict(s, n: Node) -> bool:
        return all(s.r[n][i] < s.r[n][j] for i in range(len(s.r[n])) for j in range(i + 1, len(s.r[n])))

    @invariant()
    def false_dist(s) -> bool:
        return all(i == j or s.q[i] != s.q[j] for i in range(len(s.q)) for j in range(len(s.q)))

    @invariant()
    def false_w(s, i: Num, j: Num) -> bool:
        return i == j or s.w[i] is None or s.w[i] != s.w[j]

    @invariant()
    def false_pre(s, n: Node, m: Node) -> bool:
        return all(s.r[n][i] == s.r[m][i] for i in range(min(len(s.r[n]), len(s.r[m]))))

    @step()
    def false_r(s, n: Node) -> bool:
        return s.next.r[n][0 : len(s.r[n])] == s.r[n]

    @step()
    def false_q(s) -> bool:
        return len(s.next.q) >= len(s.q)


MODELS: list[type[Model]] = [Votes, Great, One, Two, Three, Count, Opt, Net, Sized, Queues]
FALSE = [
    (m, c)
    for m in MODELS
    for of in [load(m)]
    for c in [*of.lemmas, *of.invariants, *of.steps]
    if c.startswith("false_")
]


def with_one(m: LoadedModel, kept: str) -> LoadedModel:
    """The model with its true claims and one of the false ones."""

    def of(claims: dict[str, Claim]) -> dict[str, Claim]:
        return {n: c for n, c in claims.items() if n == kept or not n.startswith("false_")}

    return replace(m, invariants=of(m.invariants), lemmas=of(m.lemmas), steps=of(m.steps))


def is_proved(m: type[Model], claim: str) -> bool:
    """Whether all obligations of a claim are proved, beside the true ones."""
    found = prove(with_one(load(m), claim), timeout_s=1, until=lambda o: o.claim == claim and o.verdict != "proved")
    return all(o.verdict == "proved" for o in found.obligations if o.claim == claim)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("m", "claim"), FALSE, ids=lambda x: getattr(x, "__name__", x))
def test_what_is_false_is_not_proved(m: type[Model], claim: str) -> None:
    assert not is_proved(m, claim)


@pytest.mark.deep
@pytest.mark.parametrize(("m", "claim"), FALSE, ids=lambda x: getattr(x, "__name__", x))
def test_exploring_finds_what_is_false(m: type[Model], claim: str) -> None:
    one = with_one(load(m), claim)
    for nodes, n in ((3, 2), (2, 2), (1, 1), (4, 1)):
        every = {"Node": nodes, "Broker": 2, "N": n}
        sizes = {name: every[name] for name in one.sizes}
        found = explore(one, sizes, deadlock=True, liveness=False, ghosts=True, max_states=20_000)
        if found.trace is not None:
            assert found.trace.claim == claim
            return
    pytest.fail("it is not broken at these sizes")


def test_an_unknown_that_is_taken_for_a_proof_proves_what_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault that these claims are there for."""
    asked = solver.SharedSolver.check

    def taken(s: solver.SharedSolver, *a: Any) -> solver.Reply:
        return replace(asked(s, *a), answer="unsat")

    monkeypatch.setattr(solver.SharedSolver, "check", taken)
    assert is_proved(Votes, "false_won")
