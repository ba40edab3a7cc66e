"""Whether the rejection of each mutant cites the rule that the mutant breaks: measured, and kept.

    nice python bench/blame.py                     the mutants of all subsystems that are not in the file yet
    nice python bench/blame.py timeline --again    every one of a subsystem's

The file is docs/measured/blame.json: subsystem -> mutant -> the clauses that it states, those that its rejection cites,
the headline first, and how it ended. It is written after each mutant: who is interrupted goes on without --again.
docs/generate.py makes a table of it; the deep test of tests/judge/test_cited.py measures each fourth, and compares.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafkaspec.contract.subsystem import find, subsystems
from kafkaspec.mutants.blame import asked, cited

MEASURED = Path(__file__).parents[1] / "docs" / "measured" / "blame.json"


Rows = dict[str, Any]
"""mutant -> what its rejection cites"""


def measured(name: str, known: Rows, keep: Callable[[Rows], None] = lambda rows: None) -> Rows:
    """Each mutant of a subsystem with what its rejection cites: what is known or, where nothing is or the mutant states
    other clauses, measured. `keep` is given the rows that there are, after each that is measured."""
    s = find(name)
    mutants = asked(s)
    rows = {m.name: known[m.name] for m in mutants if known.get(m.name, {}).get("states") == [*m.clauses]}

    def in_order() -> Rows:
        return {m.name: rows[m.name] for m in mutants if m.name in rows}

    for m in mutants:
        if m.name not in rows:
            c = cited(s, m)
            rows[m.name] = {"states": [*c.stated], "cites": [*c.cited], "how": c.how}
            keep(in_order())
    return in_order()


def text(data: dict[str, Any]) -> str:
    """The file: a line a mutant."""
    parts = []
    for name, of in sorted(data.items()):
        rows = ",\n".join(f"  {json.dumps(m, ensure_ascii=False)}: {json.dumps(c)}" for m, c in of.items())
        parts.append(f" {json.dumps(name)}: {{\n{rows}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subsystem", nargs="*", default=list(subsystems()))
    parser.add_argument("--again", action="store_true", help="measure what is in the file, too")
    options = parser.parse_args()
    data: dict[str, Rows] = json.loads(MEASURED.read_text("utf-8")) if MEASURED.exists() else {}
    for name in options.subsystem:

        def keep(rows: Rows, name: str = name) -> None:
            data[name] = rows
            beside = MEASURED.with_suffix(".tmp")
            beside.write_text(text(data), "utf-8")
            beside.replace(MEASURED)

        keep(measured(name, {} if options.again else data.get(name, {}), keep))
        right = sum(bool({*m["states"]} & {*m["cites"]}) for m in data[name].values())
        print(f"{name}: {right} of {len(data[name])}", flush=True)


if __name__ == "__main__":
    main()
