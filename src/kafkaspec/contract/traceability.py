"""Which forms a clause has, and which it lacks.

Spec and model register their clauses when they are imported; a proof has those of the claims that it proves; tests and
mutants live in the checkout. Tests are read as text (`@pytest.mark.clause("TML-1")`), so that nothing of theirs is run.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kafkaspec.contract import clauses
from kafkaspec.contract.machine import Machine
from kafkaspec.contract.source import decoded, tree_of
from kafkaspec.contract.subsystem import LAYERS, ROLES, Subsystem, folders, roots, stating, subsystems, text_of

NO_OPERATION = "-"
"""What stands in the list of released clauses for the operations of a clause that none names."""


@cache
def in_tests(prefix: str = "") -> tuple[clauses.Use, ...]:
    """Every test that names a clause of that prefix, from the texts of the tests of the checkout and of the project.
    Raises UserError for one that is no Python."""
    out: list[clauses.Use] = []
    for root in roots():
        for file in sorted((root / "tests").rglob("test_*.py")):
            data = file.read_bytes()
            if f'clause("{prefix}'.encode() in data:
                where = file.relative_to(root).as_posix()
                _collect(tree_of(decoded(data, where), where), where, out)
    return tuple(out)


def _collect(body: ast.Module | ast.ClassDef, where: str, out: list[clauses.Use]) -> None:
    for n in body.body:
        if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in n.targets):
            marks = n.value.elts if isinstance(n.value, ast.List | ast.Tuple) else [n.value]
            out += [clauses.Use(id, "test", where) for m in marks for id in _ids(m)]
        elif isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            out += [clauses.Use(id, "test", f"{where}:{n.name}") for d in n.decorator_list for id in _ids(d)]
            if isinstance(n, ast.ClassDef):
                _collect(n, f"{where}:{n.name}", out)


def _ids(mark: ast.expr) -> list[str]:
    if not (isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.func.attr == "clause"):
        return []
    return [a.value for a in mark.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]


@cache
def naming(named: str) -> list[Subsystem]:
    """The subsystems whose texts name a clause (`TXI-4`), or one of a prefix (`TXI`)."""
    names = re.compile(rf"{named}(?!\d)" if "-" in named else f"{named}-")
    return [s for s in subsystems().values() if names.search(_text(s))]


@cache
def _text(s: Subsystem) -> str:
    return "\n".join(s.texts())


@cache
def load(named: str = "") -> None:
    """Import everything that registers a form of one clause (`TXI-4`), of the clauses of a prefix (`TXI`) or of all:
    the layers of the subsystems whose texts name one, and the mutants of the checkout."""
    for s in naming(named):
        for layer in LAYERS:
            for role in ("", *ROLES.get(layer, ())):
                s.layer(layer, role)
        for proof in getattr(s.layer("proofs"), "PROOFS", ()):
            for name, ids in proof.claims.items():
                for id in ids:
                    clauses.used(id, "proof", f"kafkaspec.proofs.{s.area}.{s.name}:{proof.name}.{name}")
        mutants = s.beside("mutants")
        if mutants is None:
            continue
        for m in mutants.MUTANTS:
            for id in m.clauses:
                clauses.used(id, "mutant", f"{mutants.__name__}:{m.name}")
    for name, module in sorted(sys.modules.items()):
        if name.startswith(clauses.FOLDERS["impl"]):  # the layers, and what they share
            clauses.cited(module)


@cache
def reported(s: Subsystem) -> set[str]:
    """The clauses of a subsystem that the rules of the audit report under: those that their texts name, and those that
    come from elsewhere, which its own module lists as `CLAUSES`."""
    rules = [f for folder in folders() for f in Path(str(folder)).glob("audits/*/*.py")]
    texts = "\n".join(map(text_of, rules))
    texts = re.sub(r"@states\([^)]*\)", "", texts)  # what is said to be a rule is none of the reports
    named = re.findall(rf'"({s.prefix}-\d+)"|\b({s.prefix}_\d+)\b', texts)
    return {a or b.replace("_", "-") for a, b in named} | {*getattr(s.layer("audits"), "CLAUSES", ())}


def uses(id: str) -> list[clauses.Use]:
    """Every place that states the clause, in any form. `load` first."""
    stated = [u for u in clauses.uses(id) if u.where.startswith(clauses.FOLDERS.get(u.form, ""))]
    in_order = {form: n for n, form in enumerate(clauses.FORMS)}
    return sorted(
        {*stated, *(u for u in in_tests(id[:3]) if u.clause == id)}, key=lambda u: (in_order[u.form], u.where)
    )


def wanted(id: str) -> list[str]:
    """The forms that a clause ought to have, as far as they can be seen from here: the layers of its subsystem, an impl
    unless it is a rule of the audit alone, a rule of the audit where the audit reports under it, and, where its tests
    are, a test and a mutant."""
    s = stating(id)
    if s is None:
        return []
    seen = ["spec", "model", "proof", *(("test", "mutant") if s.root is not None else ())]
    of_the_audit_alone = s.is_audited and not s.is_component
    seen += [] if of_the_audit_alone else ["impl"]
    seen += ["audit"] if of_the_audit_alone or id in reported(s) else []
    return [form for form in clauses.FORMS if form in seen]


def absent(c: clauses.Clause) -> dict[str, str]:
    """The forms that a clause does not have, each with the reason; "" for one that it ought to have: it is missing.
    `load` first."""
    found, ought = {u.form for u in uses(c.id)}, wanted(c.id)
    return {
        form: c.without.get(form) or ("" if form in ought else _not_asked(c.id, form))
        for form in clauses.FORMS
        if form not in found
    }


def _not_asked(id: str, form: str) -> str:
    """Why a form is not asked of a clause that does not say so itself."""
    s = stating(id)
    if form == "impl":
        return "a rule of the audit alone"
    if form == "audit" and s is not None:
        if s.is_audited or reported(s):
            return "the audit reports nothing under it"
        return f"the audit has no rules of {s.name}; they would stand in audits/{s.area}/{s.name}.py"
    return "kept in the checkout, not installed"


def lacking(c: clauses.Clause) -> list[str]:
    """What `incomplete` says of one clause and its forms."""
    found, ought = {u.form: u.where for u in uses(c.id)}, wanted(c.id)
    missing = [form for form in ought if form not in found and form not in c.without]
    out = [f"{c.id} has no {', '.join(missing)}, and says no reason why not"] if missing else []
    for form in sorted(found.keys() & c.without.keys()):
        out.append(f"{c.id} says that it has no {form} ({c.without[form]}), but {found[form]} is one")
    if "audit" in found and "audit" not in ought:
        out.append(f"{found['audit']} states {c.id}, and the audit reports nothing under it")
    return out


@cache
def _machines(prefix: str) -> tuple[tuple[str, Machine[Any]], ...]:
    """The machines whose operations may name clauses of that prefix, each with what stands before their names: nothing
    in the subsystem's own machine, the machine of its audit or another subsystem."""
    out: list[tuple[str, Machine[Any]]] = []
    for s in subsystems().values():
        own = s.prefix == prefix
        if own or f'"{prefix}-' in _text(s):
            out.append(("" if own else f"{s.name}:", s.spec.machine))
            if (audit := getattr(s.spec, "audit", None)) is not None:
                out.append(("audit:" if own else f"{s.name}:audit:", audit))
    return tuple(out)


def operations(id: str) -> list[str]:
    """The operations that name a clause, in their order: `append`, `audit:breaches`, `validator:validate`."""
    return [before + name for before, m in _machines(id[:3]) for name, op in m.operations.items() if id in op.clauses]


class ReleasedClause(NamedTuple):
    """A clause of the newest release."""

    forms: frozenset[str]
    operations: frozenset[str]
    """those that named it"""
    sentence: str


@cache
def released() -> dict[str, ReleasedClause]:
    """Every clause of the newest release, and those that were written down since, by id: a line each of
    `tests/released_clauses.txt`, with the forms that it had, the operations that named it (`-` for none), and its
    sentence then."""
    files = [root / "tests" / "released_clauses.txt" for root in roots()]
    lines = [line.split(" ", 3) for f in files if f.is_file() for line in f.read_text("utf-8").splitlines()]
    return {
        id: ReleasedClause(frozenset(forms.split(",")), frozenset(named.split(",")) - {NO_OPERATION}, sentence)
        for id, forms, named, sentence in lines
    }


def lost(c: clauses.Clause) -> list[str]:
    """The forms that a clause had in the newest release and has no more. What a form is asked for by can go with it,
    such as a rule of the audit with all its reports: not from here."""
    then, now = released().get(c.id), {u.form for u in uses(c.id)}
    return [form for form in clauses.FORMS if then is not None and form in then.forms - now]


def unnamed(c: clauses.Clause) -> list[str]:
    """The operations that named a clause in the newest release and do so no more: it has the form of the spec still,
    where another operation or a contract names it."""
    then = released().get(c.id)
    return sorted(then.operations - {*operations(c.id)}) if then is not None else []


def withdrawn(prefix: str = "") -> list[str]:
    """A line for each form that a clause has lost since the newest release, and that `lacking` does not miss; and one
    for the operations that name it no more. `load` first."""
    out = []
    for c in clauses.all_clauses(prefix):
        gone = [form for form in lost(c) if absent(c)[form]]
        if gone:
            out.append(f"{c.id} has no {', '.join(gone)} any more; in tests/released_clauses.txt it has")
        if gone := unnamed(c):
            out.append(f"{c.id} is not named by {', '.join(gone)} any more; in tests/released_clauses.txt it is")
    return out


def incomplete(prefix: str = "") -> list[str]:
    """A line for each clause that lacks forms which it ought to have, for each form that it has although it says that
    it cannot, and for each form that names no clause. `load` first."""
    out = [line for c in clauses.all_clauses(prefix) for line in lacking(c)]
    known = {c.id for c in clauses.all_clauses()}
    every = {u for u in (*clauses.all_uses(), *in_tests()) if u.clause.startswith(prefix) and u.clause not in known}
    named = sorted(every, key=lambda u: (u.clause, u.where))
    return [*out, *(f"{u.where} ({u.form}) names {u.clause}, which is no clause" for u in named)]
