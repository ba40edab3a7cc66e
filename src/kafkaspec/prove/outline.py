"""How obligations were proved before: what to ask first, and nothing that is believed.

Most of what a hard proof costs is looking for it: attempts that end without an answer. An outline says of an obligation
which way a refinement's step took, and of its hard parts with which options of the solver, and from which claims, they
followed. Each part is asked again, so that a wrong outline, or one of another text, costs an attempt and proves
nothing.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from kafkaspec.errors import UserError
from kafkaspec.prove.solver import PORTFOLIO

SUFFIX = ".outlines.json"
"""The end of the file's name that stands beside a module of proofs."""

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


def recorded(module: str, model: str) -> dict[tuple[str, str], Outline]:
    """The outlines of a model that stand beside the module of its proofs, `kafkaspec.proofs.AREA.NAME`; none if there
    is no such file. Raises UserError for a file that cannot be read as outlines."""
    package, _, name = module.rpartition(".")
    try:
        file = importlib.resources.files(package) / f"{name}{SUFFIX}"
        if not file.is_file():
            return {}
        text = file.read_bytes()
    except ModuleNotFoundError:
        return {}
    try:
        found = orjson.loads(text).get(model, {})
        return {(claim, action): _read(x) for claim, of in found.items() for action, x in of.items()}
    except (ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
        raise UserError(f"{file}: no outlines of proofs: {error}") from None


def _read(x: Any) -> Outline:
    steps = []
    for part, options, among in x.get("steps", ()):
        if not (isinstance(part, int) and isinstance(options, int) and 0 <= options < len(PORTFOLIO)):
            raise ValueError(f"{part!r} and {options!r} are no part and no options")
        steps.append(Step(part, options, among if isinstance(among, str) else frozenset(map(str, among))))
    return Outline(tuple(steps), _tree(x.get("way")))


def _tree(x: Any) -> Tree:
    if x is None or isinstance(x, int):
        return x
    one, other = x
    return _tree(one), _tree(other)


def written(outlines: Outlines) -> dict[str, dict[str, Any]]:
    """Outlines as JSON: by claim and action."""
    out: dict[str, dict[str, Any]] = {}
    for (claim, action), o in outlines.items():
        steps = [[s.part, s.options, s.among if isinstance(s.among, str) else sorted(s.among)] for s in o.steps]
        way = {} if o.tree is None else {"way": o.tree}
        out.setdefault(claim, {})[action] = {**way, "steps": steps} if steps else way
    return out
