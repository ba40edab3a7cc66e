"""Which forms a clause has, and which it lacks.

Spec and model register their clauses when they are imported; a proof has those of the claims that it proves; tests and
mutants live in the checkout. Tests are read as text (`@pytest.mark.clause("TML-1")`), so that nothing of theirs is run.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import kafkaspec
from kafkaspec import clauses
from kafkaspec.subsystem import load_all, subsystems


@cache
def checkout() -> Path | None:
    """The folder of the checkout that this package was imported from; None if it was installed without its tests."""
    root = (Path(kafkaspec.__file__).parent / "spec").resolve().parent
    return root if (root / "tests").is_dir() and (root / "pyproject.toml").is_file() else None


@cache
def tests() -> tuple[clauses.Use, ...]:
    """Every test that names a clause, from the text of the checkout's tests; none where there is no checkout."""
    root = checkout()
    if root is None:
        return ()
    out: list[clauses.Use] = []
    for file in sorted((root / "tests").rglob("test_*.py")):
        where = file.relative_to(root).as_posix()
        _collect(ast.parse(file.read_text("utf-8"), str(file)), where, out)
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
def load() -> None:
    """Import everything that registers a form: every layer of every subsystem, and the mutants of the checkout."""
    load_all()
    for s in subsystems().values():
        for proof in getattr(s.layer("proofs"), "PROOFS", ()):
            m = proof.loaded
            for claim in (*m.invariants.values(), *m.lemmas.values(), *m.steps.values()):
                for id in claim.clauses:
                    clauses.used(id, "proof", f"kafkaspec.proofs.{s.area}.{s.name}:{m.name}.{claim.name}")
    root = checkout()
    if root is None:
        return
    from kafkaspec.lockstep.mutants import written

    for s in subsystems().values():
        if (root / "tests" / s.area / f"{s.name}_mutants.py").is_file():
            written(s)


LAYERS = {"spec": "kafkaspec.spec.", "model": "kafkaspec.models.", "proof": "kafkaspec.proofs."}
"""Where a form of the package stands. A model among the mutants states a clause too, wrongly: it is no form of it."""


def uses(id: str) -> list[clauses.Use]:
    """Every place that states the clause, in any form. `load` first."""
    stated = [u for u in clauses.uses(id) if u.where.startswith(LAYERS.get(u.form, ""))]
    return sorted({*stated, *(u for u in tests() if u.clause == id)}, key=lambda u: (u.form, u.where))


def forms_known() -> tuple[str, ...]:
    """The forms that can be seen from here: those of the package, and with a checkout the tests and mutants too."""
    return clauses.FORMS if checkout() is not None else ("spec", "model", "proof")


def lacking(c: clauses.Clause) -> list[str]:
    """What `incomplete` says of one clause and its forms."""
    found = {u.form: u.where for u in uses(c.id)}
    missing = [form for form in forms_known() if form not in found and form not in c.without]
    out = [f"{c.id} has no {', '.join(missing)}, and says no reason why not"] if missing else []
    for form in sorted(found.keys() & c.without.keys()):
        out.append(f"{c.id} says that it has no {form} ({c.without[form]}), but {found[form]} is one")
    return out


def incomplete(prefix: str = "") -> list[str]:
    """A line for each clause that lacks forms which it ought to have, for each form that it has although it says that
    it cannot, and for each form that names no clause. `load` first."""
    out = [line for c in clauses.all_clauses(prefix) for line in lacking(c)]
    known = {c.id for c in clauses.all_clauses()}
    for u in sorted({*clauses.all_uses(), *tests()}, key=lambda u: (u.clause, u.where)):
        if u.clause.startswith(prefix) and u.clause not in known:
            out.append(f"{u.where} ({u.form}) names {u.clause}, which is no clause")
    return out
