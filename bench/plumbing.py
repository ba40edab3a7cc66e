"""How many lines of a subsystem's spec and driver are plumbing, in a checkout: its folder is the argument.

Counted are lines that are not blank: what is around a clause's sentence, reasons for forms left out, decorators that
name operations and clauses, JSON shapes and conversions that are written by hand, and the driver. Not counted:
sentences, types, functions, contracts, imports, and how to try a spec.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path

FILES = {
    "leader_epochs": ("storage/leader_epochs",),
    "batch": ("storage/batch", "common/record_format", "common/record_reader", "common/leader_rules"),
    "cleaner": (
        "management/cleaner",
        "common/cleanable_log",
        "common/cleaner_contracts",
        "common/cleaner_state",
        "common/cleaner_world",
        "common/cleaning_state",
    ),
}
"""The spec's files by subsystem, the rules first: the driver's path follows from theirs; up to 0.2.0 it stood in the
implementation's file. What is not there is left out."""
TRIED = ("arguments", "what engines try", "interesting arguments", "beside the model", "known deviations")
"""sections of a spec that are no rules; since 0.2.0 they have files of their own"""
FORMS = {"spec", "impl", "audit", "model", "proof", "test", "mutant"}
NAMING = ("machine.operation", "machine.question", "audit.operation", "audit.question", "states", "reveals")


def count(lines: Sequence[str], node: ast.expr | ast.stmt) -> int:
    """Lines of a node that are not blank, its decorators included."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return sum(bool(line.strip()) for line in lines[first - 1 : node.end_lineno])


def of_statement(lines: Sequence[str], section: str, node: ast.stmt) -> int:
    """The plumbing in a statement at the top of a spec's file."""
    whole = count(lines, node)
    if section == "as JSON":
        return whole
    match node:
        case ast.Assign(value=ast.Call(func=ast.Name("clause"), args=args)):
            return whole - count(lines, args[1] if len(args) > 1 else args[0]) if args else whole
        case ast.Assign(value=ast.Dict(keys=keys)) if {getattr(k, "value", "") for k in keys} <= FORMS:
            return whole
        case ast.ClassDef(bases=bases) if {getattr(b, "id", "") for b in bases} & {"TypedDict", "Fields"}:
            return whole
        case ast.FunctionDef(returns=ast.expr() as answer) if "Json" in ast.unparse(answer):
            return whole
    decorators = [d for n in ast.walk(node) for d in getattr(n, "decorator_list", ())]
    return sum(count(lines, d) for d in decorators if ast.unparse(d).startswith(NAMING))


def of_spec(text: str) -> int:
    lines, section, starts = text.splitlines(), "", []
    for line in lines:
        section = line.strip("# -") if line.startswith("# ----") else section
        starts.append(section)
    body = [(starts[n.lineno - 1], n) for n in ast.parse(text).body]
    return sum(of_statement(lines, s, n) for s, n in body if not s.startswith(TRIED))


def of_driver(text: str) -> int:
    found = (n for n in ast.parse(text).body if isinstance(n, ast.ClassDef) and n.name == "Driver")
    return sum(count(text.splitlines(), n) for n in found)


def main(checkout: Path) -> None:
    for name, files in FILES.items():
        there = [f for f in (checkout / "spec" / f"{f}.py" for f in files) if f.is_file()]
        spec = sum(of_spec(f.read_text("utf-8")) for f in there)
        impl = [checkout / "impl" / f"{files[0]}{end}.py" for end in ("_driver", "")]
        driver = of_driver(next(f for f in impl if f.is_file()).read_text("utf-8"))
        print(f"{name}: {spec} in the spec, {driver} in the driver, {spec + driver} in all")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
