"""What an expression is made of: its nodes, the variables among them, the parts of a conjunction."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from kafkaspec.language.expr import BINDERS, TRUE, Expr

_nodes: dict[int, tuple[Expr, ...]] = {}
_used: dict[int, tuple[Expr, ...]] = {}
_bound: dict[int, frozenset[str]] = {}


def kept(e: Expr) -> Expr:
    """Without what the text evaluates and drops: that matters to where it is defined alone."""
    while e.op == "only":
        e = e.args[1]
    return e


def nodes(e: Expr) -> tuple[Expr, ...]:
    """Every node of an expression, each once, the inner ones first."""
    hit = _nodes.get(e.id)
    if hit is None:
        out = {x.id: x for a in e.args for x in nodes(a)}
        hit = _nodes[e.id] = (*out.values(), e)
    return hit


def used(e: Expr) -> tuple[Expr, ...]:
    """Every node on which the value of an expression depends, each once, the inner ones first."""
    e = kept(e)
    hit = _used.get(e.id)
    if hit is None:
        out = {x.id: x for a in e.args if e.op != "must" for x in used(a)}
        hit = _used[e.id] = (*out.values(), e)
    return hit


def variables_bound(e: Expr) -> frozenset[str]:
    """The variables that comprehensions within an expression bind."""
    hit = _bound.get(e.id)
    if hit is None:
        own = {e.args[0].aux} if e.op in BINDERS else set[str]()
        hit = _bound[e.id] = frozenset(own.union(*map(variables_bound, e.args)))
    return hit


def shape(e: Expr) -> Hashable:
    """What is the same of expressions that differ in the names of the variables they bind, and in nothing else."""
    known: dict[Hashable, Hashable] = {}
    depth_of: dict[str, int] = {}

    def of(x: Expr) -> Hashable:
        x = kept(x)
        around = tuple((n, depth_of[n]) for n in sorted(x.free & depth_of.keys()))
        here = (x.id, around, len(depth_of))
        if here not in known:
            known[here] = within(x) if around or variables_bound(x) else x.id
        return known[here]

    def within(x: Expr) -> Hashable:
        if x.op == "bound":
            return ("bound", depth_of[x.aux], id(x.t))
        if x.op not in BINDERS:
            return (x.op, id(x.t), x.aux, *map(of, x.args))
        v = x.args[0]
        depth_of[v.aux] = len(depth_of)
        found = (x.op, id(x.t), x.aux, id(v.t), *map(of, x.args[1:]))
        del depth_of[v.aux]
        return found

    return of(e)


def parts_of(e: Expr) -> tuple[Expr, ...]:
    """What must all be true for a condition to be true."""
    return e.args if e.op == "and" else () if e is TRUE else (e,)


def variables(some: Iterable[Expr]) -> set[str]:
    """The model's variables among some nodes."""
    return {x.aux for x in some if x.op in ("var", "nextvar")}
