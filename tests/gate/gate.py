"""The gate: texts in, disagreements out, each as a minimal text with the command that shows it again.

A case is a seed, or the name of a template. `make deep` compares all fixed cases, `make test` some of them.
"""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

from tests.gate import templates
from tests.gate.compare import ALL, Comparison, compare
from tests.gate.engines import Disagreement, Until, never
from tests.gate.generate import Model, generated
from tests.gate.shrink import MOST_TRIES, shrunk

SEEDS = (*range(80), 95)
"""The fixed seeds."""
STATES = ("graph", "transitions", "pinned")
"""What is compared of a template in which all is said by single states."""
CLAIMED = ("graph", "explorer", "bounded", "prover")
FAMILY = {
    "graph": "graph", "explore": "explorer", "walk": "explorer", "bounded": "bounded", "prove": "prover",
    "pinned": "pinned", "TLC": "tlc",
}  # fmt: skip
ORDER = ("load", "text", "graph", "explore states", "explore", "walk", "bounded", "prove", "pinned", "TLC")
"""Of several disagreements, the one of the simplest reading is shown."""


@cache
def _templates() -> dict[str, str]:
    return templates.every()


def fixed() -> list[str]:
    """The fixed cases: the seeds, then the templates."""
    return [*map(str, SEEDS), *_templates()]


def case(name: str) -> Model:
    """The model of a seed or a template."""
    if name.lstrip("-").isdigit():
        return generated(int(name))
    every = _templates()
    return Model(list(every).index(name), every[name], (templates.SIZES,), CLAIMED if " in " in name else STATES)


def compared(
    name: str, folder: Path, only: tuple[str, ...] = ALL, variants: tuple[str, ...] = (), until: Until = never
) -> Comparison:
    """What the engines disagree about in a case, to the first of which `until` is true."""
    m = case(name)
    if only == ALL and m.only:
        only = m.only
    return compare(m.text, m.sizes, m.seed, folder, only, variants, until)


def engines_of(d: Disagreement) -> tuple[str, ...]:
    """What must be compared to see the disagreement again."""
    if d.engine == "explore states":
        return ("transitions",)
    return tuple(v for k, v in FAMILY.items() if d.engine.startswith(k))


def variants_of(d: Disagreement) -> tuple[str, ...]:
    return (d.engine.removeprefix("explore "),) if d.engine.startswith("explore ") else ()


def one_of(found: Comparison) -> Disagreement:
    """The disagreement to shrink."""
    return min(found.disagreements, key=lambda d: next(i for i, n in enumerate(ORDER) if d.engine.startswith(n)))


def same(a: Disagreement, b: Disagreement) -> bool:
    return (a.engine, a.kind) == (b.engine, b.kind)


def smaller(m: Model, d: Disagreement, folder: Path, tries: int = MOST_TRIES) -> str:
    """The smallest text that is found about which there is the same disagreement."""

    def keeps(candidate: str) -> bool:
        found = compare(candidate, m.sizes, m.seed, folder, engines_of(d), variants_of(d), lambda x: same(x, d))
        return any(same(x, d) for x in found.disagreements)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return shrunk(m.text, keeps, tries)


def minimal(name: str, folder: Path, tries: int = MOST_TRIES, only: tuple[str, ...] = ALL) -> str:
    """A case's disagreement about a minimal text, as people read it; "" if there is none."""
    m = case(name)
    found = compared(name, folder, only)
    if not found.disagreements:
        return ""
    d = one_of(found)
    text = smaller(m, d, folder, tries)
    again = compare(text, m.sizes, m.seed, folder, engines_of(d), variants_of(d))
    said = [str(x) for x in again.disagreements if same(x, d)]
    return f"{text}\n# {(said or [str(d)])[0][-1500:]}\n# at {m.sizes}; python -m tests.gate '{name}'\n"
