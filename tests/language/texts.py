"""Small models from a few lines of text, for tests of what the lines mean."""

from __future__ import annotations

import tempfile
import textwrap
from pathlib import Path

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.language import LoadedModel, load
from kafkaspec.language.concrete import Concrete, OutsideType, Undefined
from tests import modules

HEAD = (
    modules.HEAD
    + """
@dataclass(frozen=True)
class R:
    a: Num
    b: bool
"""
)
VARIABLES = """
n: Num
bad: bool
o: Num | None
p: P | None
c: C
m: dict[Num, bool]
of: dict[P, Num]
S: set[Num]
T: set[Annotated[int, Range(2, 4)]]
q: Annotated[list[Num], Bounded(2)]
r: R
"""
SIZES: dict[str, int | bool] = {"P": 2, "N": 2}


def model(body: str, variables: str = VARIABLES, head: str = "") -> LoadedModel:
    """The model M with these lines in its body."""
    text = (
        HEAD + textwrap.dedent(head) + "class M(Model):\n" + textwrap.indent(variables + textwrap.dedent(body), "    ")
    )
    return load(modules.module(text, Path(tempfile.mkdtemp())).M)


def action(*lines: str) -> str:
    """An action of these lines."""
    return "@action()\ndef f(s) -> None:\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


def sizes_of(m: LoadedModel) -> dict[str, int | bool]:
    """The usual sizes, as far as the model has them."""
    return {n: SIZES.get(n, 2 if kind != "flag" else True) for n, kind in m.sizes.items()}


def interpreted(m: LoadedModel) -> str:
    """What the interpreter says: "undefined", "outside", the first claim that is broken, or ""."""
    c = Concrete(m.cls, sizes_of(m))
    try:
        states, _ = c.reachable()
        for claim in [*m.invariants, *m.witnesses]:
            for state in states:
                if not c.holds(claim, state) and claim in m.invariants:
                    return claim
    except Undefined:
        return "undefined"
    except OutsideType:
        return "outside"
    return ""


def explored(m: LoadedModel) -> str:
    """What the explorer says, in the same words."""
    try:
        e = explore(m, sizes_of(m), deadlock=True)
    except UserError as error:
        if "@initial" not in str(error):
            raise
        return "outside" if "type of" in str(error) else "undefined"
    if e.trace is None:
        return ""
    claim = e.trace.claim
    undefined = claim.split(": ")[-1] == "defined"
    return "undefined" if undefined else "outside" if claim.startswith("type of") else claim
