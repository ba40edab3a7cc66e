"""A second solver: each obligation is proved by Z3 as the prover does it, and asked of cvc5 as its SMT-LIB export.

The two share the formulas and nothing else: neither the solver, nor the selection of assumptions, nor the portfolio.
`sat` beside `unsat` means that one of them, or the export, is wrong.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import cvc5

from kafkaspec.export.smtlib import script
from kafkaspec.language import LoadedModel
from kafkaspec.prove import ways
from kafkaspec.prove.obligations import settings
from kafkaspec.prove.outline import AGAIN_S, Outline, recorded
from kafkaspec.prove.proof import proofs_of
from kafkaspec.prove.solver import FIRST_S, Answer, Budget, Question
from kafkaspec.prove.symbols import Formula, negated

STEPS = 100_000
"""cvc5's resource units for one query: nearly all take less than a tenth."""
PATIENCE_MS = 30_000
"""The clock stops a query that does not count them."""


@dataclass(frozen=True)
class Comparison:
    """One query, and what the two solvers answered."""

    name: str
    z3: Answer
    cvc5: Answer

    @property
    def disagree(self) -> bool:
        return {self.z3, self.cvc5} == {"sat", "unsat"}


def ask_cvc5(text: str) -> Answer:
    """What cvc5 answers to a script."""
    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("rlimit-per", str(STEPS))
    solver.setOption("tlimit-per", str(PATIENCE_MS))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "obligation")
    said = []
    while not (command := parser.nextCommand()).isNull():
        said.append(command.invoke(solver, parser.getSymbolManager()).strip())
    (answer,) = [x for x in said if x]
    assert answer in ("sat", "unsat", "unknown"), answer
    return answer  # type: ignore[no-any-return]


def compare(
    model: LoadedModel,
    fixed: Mapping[str, int | bool],
    *,
    wanted: Callable[[str, str], bool] = lambda action, claim: True,
    timeout_s: float = 10.0,
    exported: Callable[[list[Formula]], list[Formula]] = lambda query: query,
) -> Iterator[Comparison]:
    """Both answers to every query: of a part that has an outline, from what that says is enough, if Z3 finds it so.
    `exported` makes what is exported of what is asserted: the same, unless a test plants a fault."""
    outlines = recorded(proofs_of(model), model.name)
    for s in settings(model, dict(fixed), wanted, apart=True):
        assumed = s.assumptions()
        for g in s.goals:
            outline = outlines.get((g.claim, g.action), Outline())
            if g.shows is not None:
                known = ways.parts_of(s, g.shows, outline.tree) if (g.claim, g.action) in outlines else None
                g.parts += ways.parts(s, g.shows, Budget(timeout_s))[0] if known is None else known
            steps = {step.part: step for step in outline.steps}
            for i, part in enumerate(g.parts, 1):
                question = Question(assumed, part.hints, s.not_empty, part.formula, s.named, s.numbers)
                budget = Budget(timeout_s)
                step, query = steps.get(i - 1), [*assumed, *s.not_empty, *part.hints]
                first: Answer = "unknown"
                if step is not None and question.follows(budget, AGAIN_S, step.options, step.among):
                    assert question.won is not None
                    first, query = "unsat", question.sets[question.won[1]]
                query = [*query, negated(part.formula)]
                name = f"{model.name}: {g.claim} after {g.action}, part {i}"
                second = ask_cvc5(script(exported(query), name, fixed))
                if first == "unknown":
                    first = question.round(budget, FIRST_S, quick=True)
                for share_s in budget.shares():
                    if first != "unknown":
                        break
                    first = question.round(budget, share_s)
                yield Comparison(name, first, second)


def one_in(n: int, model: LoadedModel) -> Callable[[str, str], bool]:
    """A sample of a model's obligations that is the same on every run."""
    return lambda action, claim: zlib.crc32(f"{model.name} {action} {claim}".encode()) % n == 0
