"""What must have a value, in a form that can be read and is safe to evaluate from left to right.

TLC stops with an error of its own where an expression has no value. So every claim is exported as "defined and true",
and what the actions evaluate as conditions that an invariant joins. What the form alone shows is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafkaspec.language.defined import defined, every
from kafkaspec.language.expr import FALSE, TRUE, Expr, and_, node, not_, or_
from kafkaspec.language.model import Action
from kafkaspec.language.obvious import essential, obvious
from kafkaspec.language.parts import parts_of
from kafkaspec.language.substitute import substituted


class Requirement(NamedTuple):
    """`what` must be true where all of `where` hold, asked in this order."""

    where: tuple[Expr, ...]
    what: Expr


def sure(e: Expr) -> Expr:
    """Has `e` a value, and is it true? The answer can be evaluated from left to right."""
    if e.op == "forall":
        return every(e.args[0], sure(e.args[1]))
    return and_(*essential(parts_of(defined(e))), e)


def asked(parts: Iterable[Requirement]) -> list[Requirement]:
    """The same conditions: without what is true where it is asked, and without what was asked before. An implication's
    premise moves to where it is asked."""
    out: list[Requirement] = []
    before: list[tuple[frozenset[int], int]] = []
    for where, what in parts:
        for x in parts_of(what):
            premises, conclusion = _implication(x)
            premised = tuple({p.id: p for p in (*where, *premises)}.values())
            ids = frozenset(p.id for p in premised)
            for c in parts_of(conclusion):
                if any(p <= ids and i == c.id for p, i in before) or obvious(or_(*map(not_, premised), c)):
                    continue
                before.append((ids, c.id))
                out.append(Requirement(premised, c))
    return out


def _implication(e: Expr) -> tuple[list[Expr], Expr]:
    """A disjunction that begins with negations, as what they deny and the rest, which holds something."""
    if e.op != "or":
        return [], e
    n = next((i for i, x in enumerate(e.args) if x.op != "not"), len(e.args) - 1)
    return [p for x in e.args[:n] for p in parts_of(x.args[0])], or_(*e.args[n:])


def of_action(a: Action, left_out: Sequence[Expr] = ()) -> list[Requirement]:
    """What an action's text evaluates has a value where it is reached. `left_out`: conditions of its guard that hold
    wherever this is asked."""
    skip = {g.id for g in left_out}
    out = []
    for n in a.needs:
        where = [g for g in a.guard[: n.after] if g.id not in skip]
        for w in parts_of(n.when):
            out.append(Requirement(tuple(where), defined(w)))
            where.append(w)
        out.append(Requirement(tuple(where), defined(n.what)))
    return asked(out)


def in_place(e: Expr) -> Expr:
    """A step property, defined and true, of a step that changes nothing: TRUE or FALSE if its form shows it."""
    still = substituted(sure(e), lambda x: node("var", x.t, aux=x.aux) if x.op == "nextvar" else None)
    return TRUE if obvious(still) else FALSE if obvious(not_(still)) else still
