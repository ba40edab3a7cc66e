"""Clauses: one rule, one id, every form.

A clause is written once: in the docstring of the spec's function that states it, as a paragraph
`TML-1: <sentence> [<source>]`, or, where no single function does, as `clause("TML-1: <sentence> [<source>]")`. An
operation's docstring is read for it; any other function has `@states()` over it, and so has an operation whose clauses
lack forms, with the reasons: `@states(without=...)`. The source may also stand in the decorator, and the id with it:
`@states("TML-1", source="...")`. Everything else that says the same rule in another form names the id: an operation or
contract of the spec, a function of the impl (`[TML-1]` behind its docstring), a rule of the audit (`@states("TML-1")`),
an action or invariant of a model, an obligation of a proof, a test, a mutant. The registry below is therefore built by
importing the code; nobody keeps a list by hand.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
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


def not_modelled(reason: str) -> dict[str, str]:
    """For `without`: the reason why a clause has no model, and therefore no proof."""
    return {"model": reason, "proof": reason}


A_QUESTION = not_modelled("a question about one state, that changes nothing")
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
Reasons = Mapping[str, str]
"""Form -> why there is none."""


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
_uses: dict[str, dict[Use, None]] = {}


def clause(
    text: str, sentence: str = "", *, source: str = "", without: Reasons | Mapping[str, Reasons] | None = None
) -> None:
    """Register a clause: its id, sentence and source; or those of a text whose paragraphs are as in docstrings. The
    reasons are for all of them, or each clause's by its id. Raises ValueError for a malformed or a repeated id, and for
    a sentence without a source."""
    caller = sys._getframe(1).f_globals
    stated = {text: (sentence, source)} if sentence else paragraphs(text, caller)
    if not stated or not all(of for _, of in stated.values()):
        raise ValueError(f"a clause is a sentence with a source: {text[:80]!r}")
    reasons = _by_id(stated, without or {})
    for id, (said, of) in stated.items():
        _register(id, said, of, reasons.get(id, {}), caller["__name__"])


def _register(id: str, sentence: str, source: str, without: Reasons, module: str) -> None:
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


def _by_id(ids: Iterable[str], without: Reasons | Mapping[str, Reasons]) -> Mapping[str, Reasons]:
    known: Any = without
    return known if known.keys() <= set(ids) else dict.fromkeys(ids, known)


def used(id: str, form: str, where: str) -> None:
    """Record that `where` ("module:name") states clause `id` in `form`. Unknown ids are reported by the tidy test."""
    _uses.setdefault(id, {})[Use(id, form, where)] = None


F = TypeVar("F")


def states(*ids: str, source: str = "", without: Reasons | Mapping[str, Reasons] | None = None) -> Callable[[F], F]:
    """Decorator: a function, a method or a class that is what the clauses say, as a rule of the spec or of the audit,
    by its module. It is left as it is.

    A paragraph `ID: <sentence> [<source>]` of a spec's docstring is the clause of one of these ids; without ids, each
    is. The source may be said here instead. The reasons are for all of them, or each clause's by its id. Raises
    ValueError for a sentence without a source, for a source without a sentence, and in an implementation.
    """

    def note(thing: F) -> F:
        function = getattr(thing, "fget", None) or getattr(thing, "__func__", None) or inspect.unwrap(thing)  # type: ignore[arg-type]
        _state(function, ids, source, without or {})
        return thing

    return note


def read(function: Any) -> None:
    """Register the clauses of a docstring that `states` has not registered."""
    known = getattr(function, "__clauses__", ())
    found = paragraphs(function.__doc__ or "", function.__globals__)
    if ids := tuple(id for id, (_, of) in found.items() if of and id not in known):
        _state(function, ids, "", {})


def _state(function: Any, ids: tuple[str, ...], source: str, without: Reasons | Mapping[str, Reasons]) -> None:
    if function.__module__.startswith(FOLDERS["impl"]):
        raise ValueError(f"{function.__qualname__}: an implementation names its clauses behind its docstring: [ABC-1]")
    names = getattr(function, "__globals__", None) or vars(sys.modules[function.__module__])
    found = paragraphs(function.__doc__ or "", names)
    ids = ids or tuple(id for id, (_, of) in found.items() if of)
    stated = {id: said for id, said in found.items() if id in ids}
    if not ids or (source and not stated) or any(bool(of) == bool(source) for _, of in stated.values()):
        raise ValueError(f"{function.__qualname__}: a clause's sentence and its source belong together ({ids})")
    for form in ("spec", "audit"):
        if function.__module__.startswith(FOLDERS[form]):
            for id in ids:
                used(id, form, f"{function.__module__}:{function.__qualname__}")
    reasons = _by_id(stated, without)
    for id, (sentence, of) in stated.items():
        _register(id, sentence, of or source, reasons.get(id, {}), function.__module__)
    function.__clauses__ = (*ids, *getattr(function, "__clauses__", ()))


def cited(module: ModuleType) -> None:
    """Record the clauses that the docstrings of an implementation cite in brackets, `[TML-4, TML-5]`: each class,
    function and method that does so is what they say."""
    for function in _of(module, module.__name__):
        for ids in re.findall(r"\[([A-Z]{3}-\d+(?:, [A-Z]{3}-\d+)*)\]", function.__doc__ or ""):
            for id in ids.split(", "):
                used(id, "impl", f"{module.__name__}:{function.__qualname__}")


def _of(thing: Any, module: str) -> Iterator[Any]:
    """The classes and functions of a module, or of a class of it."""
    for member in vars(thing).values():
        found = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
        if (inspect.isclass(found) or inspect.isfunction(found)) and found.__module__ == module:
            yield found
            if inspect.isclass(found):
                yield from _of(found, module)


_CONSTANT = r"\{(\w+)\}"
"""In a source, a constant of the module."""


def paragraphs(text: str, names: Mapping[str, Any] | None = None) -> dict[str, tuple[str, str]]:
    """Sentence and source of the paragraphs `ABC-1: <sentence> [<source>]` of a docstring, by their ids; the source is
    "" where it is not said. A name in braces in it stands for the module's constant, if the module's `names` are given.

    >>> paragraphs("What it is.\\n\\nABC-1: It holds. [{BOOK}, ch. 3]\\n", {"BOOK": "A book"})
    {'ABC-1': ('It holds.', 'A book, ch. 3')}
    """
    out = {}
    for m in re.finditer(r"^([A-Z]{3}-\d+): (.+?)(?=\n\n|\Z)", inspect.cleandoc(text), re.DOTALL | re.MULTILINE):
        said = " ".join(m[2].split())
        sourced = re.fullmatch(r"(.+) \[([^][]+)\]", said)
        sentence, source = sourced.groups() if sourced else (said, "")
        if names is not None:
            for word in re.findall(_CONSTANT, source):
                if not isinstance(names.get(word), str):
                    raise ValueError(f"{m[1]}: its source names {word}, which is no text of the module")
            source = re.sub(_CONSTANT, lambda word: str(names[word[1]]), source)
        out[m[1]] = (sentence, source)
    return out


def sentences(docstring: str) -> dict[str, str]:
    """The sentences of the clauses of a docstring, by their ids."""
    return {id: sentence for id, (sentence, _) in paragraphs(docstring).items()}


def find(id: str) -> Clause:
    """The clause of that id; UserError with the nearest id otherwise. Subsystems must have been imported."""
    if id not in _clauses:
        raise unknown("clause", id, _clauses)
    return _clauses[id]


def sentence(id: str) -> str:
    """The sentence of the clause of that id; "" if there is none."""
    return _clauses[id].sentence if id in _clauses else ""


def all_clauses(prefix: str = "") -> list[Clause]:
    """Every registered clause whose id begins with `prefix`, in the order of their numbers."""
    return sorted((c for c in _clauses.values() if c.id.startswith(prefix)), key=lambda c: (c.id[:3], int(c.id[4:])))


def uses(id: str) -> list[Use]:
    """Every place that names the clause."""
    return list(_uses.get(id, ()))


def all_uses() -> list[Use]:
    """Every use of any clause."""
    return [u for of in _uses.values() for u in of]
