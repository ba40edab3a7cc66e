"""The rules of a subsystem as one reading: clause after clause its sentence, its source, the function of the spec that
states it, and below, folded, where its other forms are."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sources import linked

from kafkaspec.cli.explain import place
from kafkaspec.contract import subsystem, traceability
from kafkaspec.contract.clauses import FORMS, Clause, Use, sentences

ROOT = Path(__file__).resolve().parent.parent
PARAGRAPH = re.compile(r"^[A-Z]{3}-\d+: .+?(?=\n\n|\Z)\n*", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class StatingFunction:
    """A function or class of a spec, as its page shows it."""

    name: str
    place: str
    """file:line in the checkout, of its `def` or `class`"""
    text: str
    """its source, without the sentences and the decorators that the page shows otherwise"""


def stating(thing: Any) -> StatingFunction:
    """What the page shows of a function or a class."""
    thing = inspect.unwrap(getattr(thing, "fget", None) or thing)
    lines, first = inspect.getsourcelines(thing)
    text = textwrap.dedent("".join(lines))
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    file = Path(inspect.getsourcefile(thing) or "").resolve().relative_to(ROOT)
    return StatingFunction(thing.__qualname__, f"{file.as_posix()}:{first + node.lineno - 1}", _shown(text, node))


def _shown(text: str, node: ast.FunctionDef | ast.ClassDef) -> str:
    """The source without `@states(...)` and without the clauses' sentences."""
    lines: list[str | None] = [*text.splitlines()]
    for d in node.decorator_list:
        if isinstance(d, ast.Call) and isinstance(d.func, ast.Name) and d.func.id == "states":
            lines[d.lineno - 1 : d.end_lineno] = [None] * ((d.end_lineno or d.lineno) - d.lineno + 1)
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        until = first.end_lineno or first.lineno
        written = [line for line in lines[first.lineno - 1 : until] if line is not None]
        kept = without_sentences("\n".join(written), first.col_offset, alone=len(node.body) == 1)
        lines[first.lineno - 1 : until] = ["\n".join(kept) if kept else None] + [None] * (until - first.lineno)
    return "\n".join(line for line in lines if line is not None)


def without_sentences(written: str, indent: int, alone: bool = False) -> list[str]:
    """The lines of a docstring, as it is written, without the paragraphs that are clauses; none if nothing is left,
    unless it is `alone` in its body.

    >>> without_sentences('    \"\"\"ABC-1: It holds.\\n\\n    What it is.\\n    \"\"\"', 4)
    ['    \"\"\"What it is.\"\"\"']
    """
    m = re.fullmatch(r'\s*(r?)"""(.*)"""\s*', written, re.DOTALL)
    if m is None or not sentences(m[2]):
        return written.splitlines()
    left = PARAGRAPH.sub("", inspect.cleandoc(m[2])).strip()
    if not left:
        return [" " * indent + "..."] if alone else []
    end = "\n" if "\n" in left else ""
    return textwrap.indent(f'{m[1]}"""{left}{end}"""', " " * indent).splitlines()


def stated_by(clause: Clause) -> list[Any]:
    """The functions of the spec that state a clause: the one that has its sentence; else those that are tagged with
    it; else the first operation that names it."""
    found = [(u, _thing(u)) for u in traceability.uses(clause.id) if u.form == "spec"]
    things = [t for _, t in found if t is not None]
    with_sentence = [t for t in things if clause.id in sentences(inspect.unwrap(t).__doc__ or "")]
    tagged = [t for t in things if clause.id in getattr(inspect.unwrap(t), "__clauses__", ())]
    of = subsystem.stating(clause.id)
    operations = of.spec.machine.operations.values() if of is not None else ()
    governed = [op.function for op in operations if clause.id in op.clauses]
    return with_sentence or tagged or governed[:1] or things[:1]


def _thing(use: Use) -> Any:
    """The function or class that a use names; None where it names nothing that can be shown."""
    module, _, path = use.where.partition(":")
    thing: Any = importlib.import_module(module)
    try:
        for name in path.split("."):
            thing = getattr(thing, name)
    except AttributeError:
        return None
    thing = getattr(thing, "fget", None) or thing
    return thing if inspect.isfunction(inspect.unwrap(thing)) or inspect.isclass(thing) else None


def rules(name: str) -> str:
    """The clauses of a subsystem one after the other. A function that states several is shown once."""
    s = subsystem.find(name)
    traceability.load(s.prefix)
    shown: dict[str, str] = {}
    return "\n\n".join("\n\n".join(_rule(c, shown)) for c in s.clauses)


def _rule(clause: Clause, shown: dict[str, str]) -> Iterator[str]:
    """The parts of one clause's section. `shown`: the places that are on the page, by the clause under which."""
    functions = [stating(t) for t in stated_by(clause)]
    new = [f for f in functions if f.place not in shown]
    yield f"### {clause.id}{''.join(f' `{f.name}`' for f in new[:1])} {{#{clause.id}}}"
    yield clause.sentence
    yield f'<p class="source">Source: {clause.source}.</p>'
    old = [f"`{f.name}`, shown under [{shown[f.place]}](#{shown[f.place]})" for f in functions if f not in new]
    if old:
        yield f"Stated by {'; '.join(old)}."
    for f in new:
        shown[f.place] = clause.id
        yield f"{linked(f.place)}\n{{: .place }}\n\n```python\n{f.text}\n```"
    yield forms(clause)


def forms(clause: Clause) -> str:
    """Where each form of a clause is, folded; of what it does not have the reason."""
    rows = []
    missing = []
    used = traceability.uses(clause.id)
    for form in FORMS:
        here = dict.fromkeys((_name(u), place(u)[0] or _file(u)) for u in used if u.form == form)
        rows += [f"| {form if n == 0 else ''} | `{name}` | {linked(at)} |" for n, (name, at) in enumerate(here)]
        if not here and form in clause.without:
            rows.append(f"| {form} | | none: {clause.without[form]} |")
            missing.append(form)
    there = [form for form in FORMS if any(u.form == form for u in used)]
    title = ", ".join(there) + (f"; no {', no '.join(missing)}" if missing else "")
    lines = ["| form | name | where |", "| --- | --- | --- |", *rows]
    return f'??? note forms "Forms of {clause.id}: {title}"\n\n' + textwrap.indent("\n".join(lines), "    ")


def _name(use: Use) -> str:
    """What a use calls itself: a method without its class, a mutant by its name."""
    path, _, name = use.where.partition(":")
    if use.form in ("mutant", "model", "proof"):
        return name
    return re.split(r"[.:]", name)[-1] or path.rpartition("/")[2]


def _file(use: Use) -> str:
    """The file of a use in the checkout."""
    module = use.where.partition(":")[0]
    return module if "/" in module else f"{module.removeprefix('kafkaspec.').replace('.', '/')}.py"
