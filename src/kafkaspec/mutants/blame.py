"""Is the rule that a mutant breaks among those that its rejection cites?

Each mutant runs as a target in a campaign of the judge's, until it is rejected; the rejection is made small, as
everybody's is. A mutant states the clauses that it breaks, so the answer is known.
"""

from __future__ import annotations

from functools import partial
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
    how: str
    """"rejected", the kind of the trouble that it got into, or "survived" """

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


def cited(subsystem: Subsystem, mutant: Mutant, seed: int = 0, blocks: int = BLOCKS) -> Citation:
    """What the first rejection of a mutant cites, made small."""

    def told(how: str, *clauses: str) -> Citation:
        return Citation(mutant.name, mutant.clauses, clauses, how)

    job = Job(subsystem.name, "", seed, strict=True, fail_fast=True)
    found: Rejection | None = None
    mutant.made()  # in a child it would only be a target that does not begin
    another = partial(target_of, subsystem, mutant.make, mutant.layer)
    try:
        with another() as target:
            session = Session(job, target, another=another)
            for number in range(blocks):
                tally = session.block(number, BLOCK)
                if tally.rejections:  # it may have died or hung after its wrong answer
                    found = next(iter(tally.rejections.values()))
                    break
                if tally.trouble is not None:
                    return told(tally.trouble.kind)
        if found is None:
            return told("survived")
        with another() as target:  # the first was asked ahead
            small = Session(job, target, another=another).small(found)
    except TargetTrouble as e:
        return told(e.kind)
    return told("rejected", *([small.clause] if small.clause else []), *small.verdict.others)
