"""Is the rule that a mutant breaks among those that its rejection cites?

Each mutant runs as a target in a campaign of the judge's, until it is rejected; the rejection is made small, as
everybody's is. A mutant states the clauses that it breaks, so the answer is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.judge.judging import BLOCK, Session
from kafkaspec.judge.result import Job, Rejection
from kafkaspec.judge.target import TargetTrouble
from kafkaspec.mutants.judge import target_of
from kafkaspec.mutants.matrix import unseen, written
from kafkaspec.mutants.mutant import Mutant

BLOCKS: Final = 4
"""Blocks of histories that a mutant is asked at most."""


class Citation(NamedTuple):
    """What the rejection of a mutant cites."""

    mutant: str
    stated: tuple[str, ...]
    """the clauses that the mutant says it breaks"""
    cited: tuple[str, ...]
    """those that the rejection cites, the headline first; none where there is no rejection"""
    how: str = "rejected"
    """or the kind of the trouble that it got into, or "survived" """

    @property
    def right(self) -> bool:
        """One of them is cited."""
        return bool({*self.stated} & {*self.cited})

    @property
    def first(self) -> bool:
        """One of them is the headline."""
        return bool({*self.stated} & {*self.cited[:1]})


def asked(subsystem: Subsystem) -> list[Mutant]:
    """The written mutants that can be asked, and state what they break."""
    reasons = unseen(subsystem)
    return [
        m
        for m in written(subsystem)
        if m.layer in ("spec", "impl") and m.clauses and not m.survives and m.name not in reasons
    ]


def rejected(subsystem: Subsystem, mutant: Mutant, seed: int = 0, blocks: int = BLOCKS) -> Rejection | str:
    """The first rejection of a mutant, small; or the trouble that it got into, or "survived"."""
    job = Job(subsystem.name, "", seed, strict=True, fail_fast=True)
    found: Rejection | None = None
    mutant.made()  # in a child it would only be a target that does not begin
    try:
        with target_of(subsystem, mutant.make, mutant.layer) as target:
            session = Session(job, target)
            for number in range(blocks):
                tally = session.block(number, BLOCK)
                if tally.trouble is not None:
                    return tally.trouble.kind
                if tally.rejections:
                    found = next(iter(tally.rejections.values()))
                    break
        if found is None:
            return "survived"
        with target_of(subsystem, mutant.make, mutant.layer) as target:  # the first was asked ahead
            return Session(job, target).small(found)
    except TargetTrouble as e:
        return e.kind


def citations(subsystem: Subsystem, mutants: Iterable[Mutant], seed: int = 0) -> Iterator[Citation]:
    """What the rejections of mutants cite."""
    for m in mutants:
        found = rejected(subsystem, m, seed)
        if isinstance(found, str):
            yield Citation(m.name, m.clauses, (), found)
        else:
            yield Citation(m.name, m.clauses, (*((found.clause,) if found.clause else ()), *found.verdict.others))
