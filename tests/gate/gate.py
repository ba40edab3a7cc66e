"""The gate: seeds in, disagreements out, each as a minimal text with the command that shows it again."""

from __future__ import annotations

import warnings
from pathlib import Path

from tests.gate.compare import ALL, Compared, compare
from tests.gate.engines import Disagreement
from tests.gate.generate import generated
from tests.gate.shrink import MOST_TRIES, shrunk

FAMILY = {"graph": "graph", "explore": "explorer", "bounded": "bounded", "prove": "prover", "pinned": "pinned", "TLC": "tlc"}


def engines_of(d: Disagreement) -> tuple[str, ...]:
    """What must be compared to see the disagreement again."""
    if d.engine == "explore states":
        return ("transitions",)
    return tuple(v for k, v in FAMILY.items() if d.engine.startswith(k))


def one_of(found: Compared) -> Disagreement:
    """The disagreement to shrink: of the simplest engine."""
    order = ("load", "text", "graph", "explore states", "explore", "bounded", "prove", "pinned", "TLC")
    return min(found.disagreements, key=lambda d: next(i for i, n in enumerate(order) if d.engine.startswith(n)))


def minimal(seed: int, folder: Path, tries: int = MOST_TRIES, only: tuple[str, ...] = ALL) -> str:
    """A seed's disagreement about a minimal text, as people read it; "" if there is none."""
    model = generated(seed)
    found = compare(model.text, model.sizes, seed, folder, only)
    if not found.disagreements:
        return ""
    d = one_of(found)
    text = smaller(model.text, model.sizes, seed, d, folder, tries)
    again = compare(text, model.sizes, seed, folder, engines_of(d), variants_of(d))
    said = [str(x) for x in again.disagreements if same(x, d)]
    return f"{text}\n# {(said or [str(d)])[0][-1500:]}\n# at {model.sizes}; python -m tests.gate {seed}\n"


def same(a: Disagreement, b: Disagreement) -> bool:
    return (a.engine, a.kind) == (b.engine, b.kind)


def variants_of(d: Disagreement) -> tuple[str, ...]:
    return (d.engine.removeprefix("explore "),) if d.engine.startswith("explore ") else ()


def smaller(text: str, sizes: tuple[dict[str, int | bool], ...], seed: int, d: Disagreement, folder: Path, tries: int) -> str:
    """The smallest text that is found about which there is the same disagreement."""

    def keeps(candidate: str) -> bool:
        found = compare(candidate, sizes, seed, folder, engines_of(d), variants_of(d))
        return any(same(x, d) for x in found.disagreements)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return shrunk(text, keeps, tries)
