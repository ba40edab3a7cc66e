"""How a step shows a step of a more abstract model: which one, in which case.

That an action refines is a disjunction: it changes nothing that the abstract model sees, or it shows this action of it,
or that one. Each disjunct, with the action's own parameters for the abstract one's, is more than has to be shown, and
falls into small parts. So they are tried one after the other, for all that the action may do, or else for each outcome
of the conditions in its text. Parts of which each was seen to follow take the place of the whole, which follows from
them. They are then asked as any obligation's parts are; if none are found, the whole is asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from kafkaspec.errors import UserError
from kafkaspec.language import Action, Expr
from kafkaspec.language.expr import FALSE, and_, lift, node, not_, or_, within
from kafkaspec.language.parts import kept, used, variables
from kafkaspec.language.refine import Refinement, exists
from kafkaspec.language.substitute import at_key, substituted
from kafkaspec.prove.obligations import Part, Setting, part_of
from kafkaspec.prove.outline import Tree
from kafkaspec.prove.reading import conjuncts
from kafkaspec.prove.solver import FIRST_S, Budget, Question, SharedSolver

MOST_CONDITIONS = 5
"""Cases are told apart by at most this many conditions of an action's text."""
MOST_CHOICES = 16
"""A disjunct is tried with at most this many choices of its parameters."""
SOON_S, SOONER_S = 0.02, 0.01
"""The first attempt at a part, and those before a longer one: they give up soon where there is no proof."""
Asking = Callable[[SharedSolver, Question, Budget], bool]
ROUNDS: tuple[Asking, ...] = (
    lambda shared, q, budget: shared.proves(q, budget, SOON_S),
    lambda shared, q, budget: shared.proves(q, budget, SOONER_S) or q.round(budget, FIRST_S, quick=True) == "unsat",
    lambda shared, q, budget: shared.proves(q, budget, SOONER_S) or q.round(budget, FIRST_S) == "unsat",
)
"""Whether a part follows, with more patience from round to round."""


def parts(s: Setting, r: Refinement, budget: Budget, needed: Set[str] = frozenset()) -> tuple[list[Part], Tree]:
    """What is to be shown so that an action refines: the parts of a way, or of one in each case, if it was seen that
    they follow; or the whole. If claims are `needed`, the whole is looked for among them first, and then the ways."""
    found: tuple[list[Part], Tree] | None = None
    ways, conditions = list(_ways(r, s.action)), _conditions(r, s.action)

    def among(shared: SharedSolver, q: Question, budget: Budget) -> bool:
        q.needs(needed)
        return shared.proves(q, budget, SOONER_S) or q.round(budget, FIRST_S, quick=True, among="needed") == "unsat"

    if needed and (whole := _shown(s, r.steps(), (), budget, among)) is not None:
        return whole, None
    for follows in (among, *ROUNDS) if needed else ROUNDS:
        found = found or _cases(s, ways, conditions, (), budget, follows)
    return (list(_each(s, r.steps(), ())), None) if found is None else found


def parts_of(s: Setting, r: Refinement, tree: Tree) -> list[Part] | None:
    """What is to be shown so that an action refines, as a tree says that it does; None if there are no such ways, or
    they cannot be read."""
    ways, conditions = list(_ways(r, s.action)), _conditions(r, s.action)

    def of(tree: Tree, depth: int, case: tuple[Expr, ...]) -> list[Part]:
        if isinstance(tree, tuple):
            c = conditions[depth]
            return [*of(tree[0], depth + 1, (*case, c)), *of(tree[1], depth + 1, (*case, not_(c)))]
        if tree is None or not 0 <= tree < len(ways):
            raise IndexError(tree)
        return list(_each(s, ways[tree], case))

    try:
        return list(_each(s, r.steps(), ())) if tree is None else of(tree, 0, ())
    except (IndexError, UserError):
        return None


def _cases(
    s: Setting,
    ways: Sequence[Expr],
    conditions: Sequence[Expr],
    case: tuple[Expr, ...],
    budget: Budget,
    follows: Asking,
) -> tuple[list[Part], Tree] | None:
    """The parts of a proof for one case: one way is taken in it, or one in each of two cases of it."""
    for i, way in enumerate(ways):
        shown = _shown(s, way, case, budget, follows)
        if shown is not None:
            return shown, i
    if not conditions or budget.over:
        return None
    both = []
    for c in (conditions[0], not_(conditions[0])):
        found = _cases(s, ways, conditions[1:], (*case, c), budget, follows)
        if found is None:
            return None
        both.append(found)
    (here, tree), (there, other) = both
    return [*here, *there], (tree, other)


def _shown(s: Setting, way: Expr, case: tuple[Expr, ...], budget: Budget, follows: Asking) -> list[Part] | None:
    """The parts of one way, in one case, if each of them follows."""
    out = []
    for part in _each(s, way, case):
        q = Question(s.assumptions(), part.hints, s.not_empty, part.formula, s.named)
        if not follows(s.shared, q, budget):
            return None
        out.append(part)
    return out


def _each(s: Setting, way: Expr, case: tuple[Expr, ...]) -> Iterator[Part]:
    """The parts of one way, in one case."""
    for e in conjuncts(way):
        yield part_of(s, or_(not_(and_(*case)), e))


def _conditions(r: Refinement, a: Action) -> list[Expr]:
    """The conditions that an action's text asks for what it does, and those that the mapping asks where it does it."""
    out: dict[int, Expr] = {}

    def note(e: Expr) -> None:
        e = kept(e)
        if e.op in ("and", "or", "not"):
            for x in e.args:
                note(x)
        elif e.op != "const":
            out.setdefault(e.id, e)

    for u in a.updates:
        note(u.cond)
    changed, own = {u.var for u in a.updates}, {p.aux for p in a.params}
    for m in r.mapping.values():
        if variables(used(m)) & changed and m.t.kind == "map":
            for p in [p for p in a.params if within(p.t, m.t.domain)]:
                for x in used(at_key(m, p)):
                    if x.op == "ite" and x.args[0].free <= own:
                        note(x.args[0])
    return list(out.values())[:MOST_CONDITIONS]


def _ways(r: Refinement, a: Action) -> Iterator[Expr]:
    """What the action may show, the likeliest first: what the abstract model sees of its changes is what is changed."""
    changed = {u.var for u in a.updates}
    seen = {n for n, e in r.mapping.items() if variables(used(e)) & changed}
    updated: Mapping[str, set[str]] = {b.name: {u.var for u in b.updates} for b in r.abstract.actions}

    def likely(name: str) -> tuple[int, int]:
        return len(updated.get(name, set()) - seen), -len(updated.get(name, set()) & seen)

    for name in sorted(r.ways, key=likely):
        if not updated.get(name) or updated[name] & seen:
            yield from _chosen(r.ways[name], a)


def _chosen(way: Expr, a: Action) -> Iterator[Expr]:
    """What is said for some values of parameters, of values at hand; for some value or other where there is none."""
    params, body = [], way
    while body.op == "exists":
        params.append(body.args[0])
        body = body.args[1]
    choices = [[*[lift(q, p.t) for q in a.params if within(q.t, p.t)], *_constants(p)] or [p] for p in params]
    for values in itertools.islice(itertools.product(*choices), MOST_CHOICES):
        given = {p.id: v for p, v in zip(params, values, strict=True)}
        e = substituted(body, lambda y, given=given: given.get(y.id))  # type: ignore[misc]
        for p in reversed([p for p in params if given[p.id] is p]):
            e = exists(p, e)
        if e is not FALSE:
            yield e


def _constants(p: Expr) -> list[Expr]:
    """The values of an enum or a truth value."""
    match p.t.kind:
        case "bool":
            return [node("const", p.t, aux=i) for i in (0, 1)]
        case "enum":
            return [node("const", p.t, aux=i) for i in range(len(list(p.t.cls)))]  # type: ignore[call-overload]
    return []
