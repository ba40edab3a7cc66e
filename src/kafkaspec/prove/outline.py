"""How obligations were proved before: what to ask first, and nothing that is believed.

Most of what a hard proof costs is looking for it: attempts that end without an answer. An outline says of an obligation
which way a refinement's step took, and of its hard parts with which options of the solver, and from which claims, they
followed. Each part is asked again, so that a wrong outline, or one of another text, costs an attempt and proves
nothing.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import ResourceLoader
from pathlib import Path
from typing import Any

import orjson

from kafkaspec.errors import UserError
from kafkaspec.prove.solver import NUMBERS, PORTFOLIO, Budget, Question

SUFFIX = ".json"
"""The end of the name of the file that stands beside a module of proofs."""

AGAIN_S = 0.3
"""The share of an attempt that an outline tells. The first that finds no proof is the obligation's last of its kind."""
EASY_S = 0.01
"""What the proof of a part costs at most that needs no outline."""
KEPT = ("all", "apart", "relevant")
"""The sets of assumptions that are the same whenever a goal is asked."""
MOST_TRIED, TRIED_AGAIN = 4, 3
"""How many of the attempts that find a proof soonest are tried again, and how often: what one costs is luck in part."""
Tree = int | tuple["Tree", "Tree"] | None
"""Of a refinement's step: the number of the way that was taken; or the trees of two cases, where a condition holds and
where not; or none: it was shown as a whole."""


@dataclass(frozen=True)
class Step:
    """How a part was proved: its number, the options in the solver's portfolio, and a set of assumptions by its name,
    or the claims that were enough of all that may be assumed."""

    part: int
    options: int
    among: str | frozenset[str]


@dataclass(frozen=True)
class Outline:
    """How an obligation was proved. Parts without a step are easy."""

    steps: tuple[Step, ...] = ()
    tree: Tree = None


Outlines = Mapping[tuple[str, str], Outline]
"""By claim and action."""


def learnt_steps(questions: Sequence[Question], known: Sequence[Step]) -> Iterator[Step]:
    """The steps that are known and of what there is; and for the other parts that were no matter of course: as they
    were proved, or from the claims alone that the proof needs, with the options of the solver that find it soonest."""
    of_part = {step.part: step for step in known}
    for part, q in enumerate(questions):
        step = of_part.get(part)
        if step is not None and (isinstance(step.among, str) or step.among <= {*q.claims, NUMBERS}):
            yield step
            continue
        if q.won is None or q.spent_s < EASY_S:
            continue
        tries: list[tuple[int, str | frozenset[str]]] = [q.won] if q.won[1] in KEPT else []
        if q.won[1] != "apart":
            claims = frozenset(n for n in q.used(AGAIN_S) if "#" not in n)
            tries += [(o, names) for names in (claims, claims | {NUMBERS}) for o in range(len(PORTFOLIO))]
        costs = {t: _cost(q, *t) for t in tries}
        soonest = sorted(tries, key=costs.__getitem__)[:MOST_TRIED]
        worst = {t: max(costs[t], *(_cost(q, *t) for _ in range(TRIED_AGAIN))) for t in soonest}
        best = min(soonest, key=worst.__getitem__, default=None)
        if best is not None and worst[best] < math.inf:
            yield Step(part, *best)


def _cost(q: Question, options: int, among: str | frozenset[str]) -> float:
    """What an attempt costs that finds the proof, in seconds of a quiet core; without end if it does not."""
    budget = Budget(AGAIN_S)
    return budget.spent_s if q.follows(budget, AGAIN_S, options, among) else math.inf


def recorded(module: str, model: str) -> dict[tuple[str, str], Outline]:
    """The outlines of a model that stand beside the module of its proofs, by that module's name; none if there is no
    such module or file. Raises UserError for a file that cannot be read as outlines."""
    try:
        spec = importlib.util.find_spec(module) if module else None
        if spec is None or spec.origin is None or not isinstance(spec.loader, ResourceLoader):
            return {}
        file = Path(spec.origin).with_suffix(SUFFIX)
        data = spec.loader.get_data(str(file))
    except (ImportError, ValueError, FileNotFoundError):  # ValueError: a program's own module may have no spec
        return {}
    except OSError as error:
        if not file.exists():  # in an archive
            return {}
        raise UserError(f"{file}: {error.strerror or error}") from None
    try:
        found = orjson.loads(data).get(model, {})
        return {(claim, action): _read(x) for claim, of in found.items() for action, x in of.items()}
    except ValueError as error:
        raise UserError(f"{file}: no outlines of proofs: {str(error)[:200]}") from None
    except (TypeError, AttributeError, KeyError, IndexError, RecursionError):
        raise UserError(f"{file}: no outlines of proofs: not what `python bench/outlines.py` writes") from None


def _read(x: Any) -> Outline:
    steps = []
    for part, options, among in x.get("steps", ()):
        if not (isinstance(part, int) and isinstance(options, int) and 0 <= options < len(PORTFOLIO)):
            raise ValueError(f"{part!r} and {options!r} are no part and no options")
        if isinstance(among, str) and among not in KEPT:
            raise ValueError(f"{among!r} is none of {', '.join(KEPT)}")
        steps.append(Step(part, options, among if isinstance(among, str) else frozenset(map(str, among))))
    return Outline(tuple(steps), _tree(x.get("way")))


def _tree(x: Any) -> Tree:
    if x is None or isinstance(x, int):
        return x
    one, other = x
    return _tree(one), _tree(other)


def text(models: Mapping[str, Outlines]) -> str:
    """A file of the outlines of some models: JSON, a line an obligation."""

    def block(of: Mapping[str, str], depth: int) -> str:
        inner = ",\n".join(f"{' ' * (depth + 1)}{json.dumps(name)}: {x}" for name, x in of.items())
        return f"{{\n{inner}\n{' ' * depth}}}"

    def model(outlines: Outlines) -> str:
        claims: dict[str, dict[str, str]] = {}
        for (claim, action), o in outlines.items():
            claims.setdefault(claim, {})[action] = _written(o)
        return block({claim: block(actions, 2) for claim, actions in claims.items()}, 1)

    return block({name: model(outlines) for name, outlines in models.items()}, 0) + "\n"


def _written(o: Outline) -> str:
    steps = [[s.part, s.options, s.among if isinstance(s.among, str) else sorted(s.among)] for s in o.steps]
    parts: dict[str, Any] = {} if o.tree is None else {"way": o.tree}
    return json.dumps({**parts, "steps": steps} if steps else parts)
