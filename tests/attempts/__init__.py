"""What strangers wrote who wanted a false claim proved, or engines to disagree, and had read the documentation alone
(261 to 290: the engines too): each text with its outcome. `attempts.txt` has them; the page of attempts lists them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent / "attempts.txt"
HEAD = """from __future__ import annotations
import enum
from dataclasses import dataclass, replace
from typing import Annotated
from kafkaspec.language import (
    Bounded, Flag, Model, NonEmpty, Of, Range, Size, Sort, majority,
    action, define, initial, invariant, leads_to, lemma, refines, require, step, witness,
)

class P(Sort): ...
class Q(Sort): ...
class C(enum.Enum):
    RED = 0
    GREEN = 1
N = Size("N")
K = Size("K")
F = Flag("F")
Num = Annotated[int, Range(0, N)]
"""
"""What most of the texts begin with."""


@dataclass(frozen=True)
class Attempt:
    """A text, what it tries, and what becomes of it: it is "refused" with these words; "broken", as that claim is at
    those sizes; or it "holds" there. `was` is set if it was a fault when it was written."""

    number: int
    idea: str
    was: str
    outcome: str
    told: str
    sizes: dict[str, int | bool]
    text: str

    @property
    def source(self) -> str:
        """The whole text."""
        return self.text if self.text.startswith("from __future__") else HEAD + self.text


def attempts(file: Path = FILE) -> list[Attempt]:
    """All of them."""
    out = []
    for part in re.split(r"^=== ", file.read_text(), flags=re.M)[1:]:
        first, _, text = part.partition("\n")
        number, idea, was, outcome, told, sizes = first.split(" ¦ ")
        given = dict(s.split("=") for s in sizes.split())
        out.append(
            Attempt(
                int(number),
                idea,
                was.strip(),
                outcome,
                told.strip(),
                {n: v == "true" if v in ("true", "false") else int(v) for n, v in given.items()},
                text,
            )
        )
    return out


def row(a: Attempt) -> str:
    """Its row of the page."""
    at = ", ".join(f"{n}={v}" for n, v in a.sizes.items())
    match a.outcome:
        case "refused":
            said = f"refused: {a.told}"
        case "broken":
            said = f"{a.told} is broken" + (f" at {at}" if at else "") + "; not proved"
        case _:
            said = "holds" + (f" at {at}" if at else "")
    idea, said = (x.replace("|", "\\|") for x in (a.idea, said))
    return f"| {a.number} | {idea} | {said} | {a.was} |"
