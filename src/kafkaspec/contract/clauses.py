"""Clauses: one rule, one id, every form.

A clause is written once: in the docstring of the spec's function that states it, as a paragraph `TML-1: <sentence>`
under `@states("TML-1", source="...")`, or, where no single function does, as
`clause("TML-1", "<sentence>", source="...")`. Everything else that says the same rule in another form names the id: an
operation or contract of the spec, an action or invariant of a model, an obligation of a proof, a test, a mutant. The
registry below is therefore built by importing the code; nobody keeps a list by hand.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafkaspec.errors import unknown

FORMS = ("spec", "impl", "audit", "model", "proof", "test", "mutant")
"""The forms that a clause can have; `without` names those that it ought to have and cannot, each with its reason."""
FOLDERS = {
    "spec": "kafkaspec.spec.",
    "impl": "kafkaspec.impl.",
    "audit": "kafkaspec.audits.",
    "model": "kafkaspec.models.",
    "proof": "kafkaspec.proofs.",
}
"""Where a form of the package stands. A model among the mutants states a clause too, wrongly: it is no form of it."""


A_QUESTION = {
    "model": "a question about one state, that changes nothing",
    "proof": "a question about one state, that changes nothing",
}
A_FORMAT = {
    "model": "a matter of bytes, not of interleavings",
    "proof": "a matter of bytes: tested on every kind, well formed and malformed",
}
ONE_CALL = {
    "model": "a matter of one call, not of interleavings",
    "proof": "a matter of one call: tested at every boundary",
}
AT_REST = {"impl": "about files at rest: the audit looks for it"}
"""Reasons that kinds of clauses share, for `without`. They combine: `A_QUESTION | AT_REST`."""


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
    return _register(id, sentence, source, without or {}, sys._getframe(1).f_globals["__name__"])


def _register(id: str, sentence: str, source: str, without: Mapping[str, str], module: str) -> str:
    if not re.fullmatch(r"[A-Z]{3}-\d+", id):
        raise ValueError(f"clause id {id!r} is not of the form ABC-1")
    known = _clauses.get(id)
    text = " ".join(sentence.split())
    if known is not None and (known.module, known.sentence) != (module, text):
        raise ValueError(f"clause {id} is stated in {known.module} and again in {module}")
    for form in without:
        if form not in FORMS:
            raise ValueError(f"clause {id}: {form!r} is not a form ({', '.join(FORMS)})")
    _clauses[id] = Clause(id, text, source, module, dict(without))
    return id


def used(id: str, form: str, where: str) -> None:
    """Record that `where` ("module:name") states clause `id` in `form`. Unknown ids are reported by the tidy test."""
    _uses[Use(id, form, where)] = None


F = TypeVar("F")


def states(*ids: str, source: str = "", without: Mapping[str, str] | None = None) -> Callable[[F], F]:
    """Decorator: a function, a method or a class that is what the clauses say, as a rule of the spec, in the impl, or
    in a rule of the audit, by its module. It is left as it is.

    A paragraph `ID: <sentence>` of a spec's docstring is the clause of one of these ids, of that `source`. Raises
    ValueError for a sentence without a source, and for a source without a sentence.
    """

    def note(thing: F) -> F:
        function: Any = getattr(thing, "fget", None) or getattr(thing, "__func__", None) or inspect.unwrap(thing)  # type: ignore[arg-type]
        for form in ("spec", "impl", "audit"):
            if function.__module__.startswith(FOLDERS[form]):
                for id in ids:
                    used(id, form, f"{function.__module__}:{function.__qualname__}")
        stated = {id: text for id, text in sentences(function.__doc__ or "").items() if id in ids}
        if bool(stated) != bool(source):
            raise ValueError(f"{function.__qualname__}: a clause's sentence and its source belong together ({ids})")
        for id, text in stated.items():
            _register(id, text, source, without or {}, function.__module__)
        function.__clauses__ = (*ids, *getattr(function, "__clauses__", ()))
        return thing

    return note


def sentences(docstring: str) -> dict[str, str]:
    """The paragraphs `ABC-1: <sentence>` of a docstring, by their ids.

    >>> sentences("What it is.\\n\\nABC-1: It holds.\\n")
    {'ABC-1': 'It holds.'}
    """
    found = re.finditer(r"^([A-Z]{3}-\d+): (.+?)(?=\n\n|\Z)", inspect.cleandoc(docstring), re.DOTALL | re.MULTILINE)
    return {m[1]: " ".join(m[2].split()) for m in found}


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
