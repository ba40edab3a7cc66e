"""Clauses: one rule, one id, every form.

A clause is written once, beside the spec that carries it, as `TML_1 = clause("TML-1", "<sentence>", source="...")`.
Everything else that says the same rule in another form names the id: an operation or contract of the spec, an action or
invariant of a model, an obligation of a proof, a test, a mutant. The registry below is therefore built by importing the
code; nobody keeps a list by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkaspec.errors import unknown

FORMS = ("spec", "model", "proof", "test", "mutant")
"""The forms that a clause ought to have; `without` names those that it cannot have, each with its reason."""


@dataclass(frozen=True)
class Clause:
    """One rule. `source` says whose rule it is: a chapter of Kafka Internals, a KIP, or a class of Kafka 4.3.0."""

    id: str
    sentence: str
    source: str
    module: str
    without: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Use:
    """One place that states a clause in some form: `where` is `module:name`."""

    clause: str
    form: str
    where: str


_clauses: dict[str, Clause] = {}
_uses: dict[Use, None] = {}


def clause(id: str, sentence: str, *, source: str, without: Mapping[str, str] | None = None) -> str:
    """Register a clause and return its id. Raises ValueError for a malformed or a repeated id."""
    if not re.fullmatch(r"[A-Z]{3}-\d+", id):
        raise ValueError(f"clause id {id!r} is not of the form ABC-1")
    module = sys._getframe(1).f_globals["__name__"]
    known = _clauses.get(id)
    if known is not None and known.module != module:
        raise ValueError(f"clause {id} is stated in {known.module} and again in {module}")
    for form in without or {}:
        if form not in FORMS:
            raise ValueError(f"clause {id}: {form!r} is not a form ({', '.join(FORMS)})")
    _clauses[id] = Clause(id, " ".join(sentence.split()), source, module, dict(without or {}))
    return id


def used(id: str, form: str, where: str) -> None:
    """Record that `where` ("module:name") states clause `id` in `form`. Unknown ids are reported by the tidy test."""
    _uses[Use(id, form, where)] = None


def find(id: str) -> Clause:
    """The clause of that id; UserError with the nearest id otherwise. Subsystems must have been imported."""
    if id not in _clauses:
        raise unknown("clause", id, _clauses)
    return _clauses[id]


def all_clauses(prefix: str = "") -> list[Clause]:
    """Every registered clause whose id begins with `prefix`, in the order of their numbers."""
    return sorted((c for c in _clauses.values() if c.id.startswith(prefix)), key=lambda c: (c.id[:3], int(c.id[4:])))


def uses(id: str) -> list[Use]:
    """Every place that names the clause."""
    return [u for u in _uses if u.clause == id]


def all_uses() -> list[Use]:
    """Every use of any clause."""
    return list(_uses)
