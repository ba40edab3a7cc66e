"""Proof obligations as SMT-LIB 2.6: a script a query, for any solver with quantifiers, uninterpreted functions, linear
arithmetic and datatypes. The obligation is proved when it answers `unsat`.

What a script declares ends with a dot, as no function of a solver's does: a variable `exp` is not the exponential."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import z3

from kafkaspec.language import LoadedModel
from kafkaspec.prove.obligations import settings
from kafkaspec.prove.symbols import Formula, negated


def smtlib(
    model: LoadedModel,
    fixed: Mapping[str, int | bool] | None = None,
    only: Callable[[str, str], bool] = lambda action, claim: True,
) -> dict[str, str]:
    """The text of each script by its file's name. Sizes that `fixed` does not hold are arbitrary; what an action does
    not touch needs no script; `only(action, claim)` tells which obligations are wanted."""
    return {name: script(query, title, fixed) for name, title, query in queries(model, fixed, only)}


def queries(
    model: LoadedModel, fixed: Mapping[str, int | bool] | None, only: Callable[[str, str], bool]
) -> Iterator[tuple[str, str, list[Formula]]]:
    """The file's name of each script, its title, and what it asserts."""
    for s in settings(model, dict(fixed or {}), only):
        assumed = [*s.assumptions(), *s.not_empty]
        for g in s.goals:
            for i, part in enumerate(g.parts, 1):
                number = f"-{i}" if len(g.parts) > 1 else ""
                name = ".".join(re.sub(r"\W+", "-", x) for x in (model.name, g.action, g.claim))
                title = f"{model.name}: {g.claim} after {g.action}{number}"
                yield f"{name}{number}.smt2", title, [*assumed, *part.hints, negated(part.formula)]


DECLARED = re.compile(r"^\(declare-(?:fun|sort) ([^\s|]+)|^\(declare-datatypes (.*)", re.M)
TOKEN = re.compile(r"\|[^|]*\||[^\s()|]+")


def _marked(text: str) -> str:
    """The text with a dot behind each name that it declares. Names in bars are nobody else's anyway."""
    declared: set[str] = set()
    for name, datatype in DECLARED.findall(text):
        declared |= {name} if name else {x for x in TOKEN.findall(datatype) if not x.isdigit() and x[0] != "|"}
    return TOKEN.sub(lambda m: f"{m[0]}." if m[0] in declared else m[0], text)


def script(query: Sequence[Formula], title: str, fixed: Mapping[str, int | bool] | None = None) -> str:
    """A query as a text."""
    solver = z3.Solver()
    solver.add(*query)
    held = ", ".join(f"{n} = {v}" for n, v in (fixed or {}).items())
    lines = str(solver.to_smt2()).splitlines()
    body = [x for x in lines if not x.startswith((";", "(set-info", "(check-sat)", "(exit)"))]
    head = [
        f"; {title}, for every size{f' with {held}' if held else ''}.",
        "; What is assumed, then the denial of what is claimed: unsat is a proof.",
        "(set-info :smt-lib-version 2.6)",
        "(set-logic ALL)",
    ]
    return "\n".join([*head, _marked("\n".join(body)), "(check-sat)", "(exit)", ""])
