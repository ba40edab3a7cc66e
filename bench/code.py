"""The faults that are made of each implementation's text, as targets: after how many calls does the judge reject each?

    nice python bench/code.py                       all subsystems; a fault that was rejected is not tried again
    nice python bench/code.py timeline --again      every one of a subsystem's

Each comparison is shifted by one or negated, each number of more than 8 bits is kept in half as many. The judge is at
its defaults: guided, seed 0, 20,000 calls. The file is docs/measured/code.json: subsystem -> fault -> calls, null for
one that was not rejected. Why nobody can notice such a fault stands in tests/judge/unnoticed.py.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path

from kafkaspec.contract.subsystem import Subsystem, find, subsystems
from kafkaspec.mutants.code import of_code
from kafkaspec.mutants.judge import LIMIT, campaigned

MEASURED = Path(__file__).parents[1] / "docs" / "measured" / "code.json"
FIRST = 1_000
"""Calls of a first campaign, which most do not outlive."""
AT_ONCE = 32
Calls = Mapping[str, "int | None"]


def measured(subsystem: Subsystem, known: Calls) -> dict[str, int | None]:
    """Every fault's calls: what is known of those that were rejected, or measured."""
    faults = of_code(subsystem)
    found: dict[str, int | None] = {f.name: known.get(f.name) for f in faults}
    for limit in (FIRST, LIMIT):
        left = [f for f in faults if found[f.name] is None]
        for i in range(0, len(left), AT_ONCE):
            kills = campaigned(subsystem, left[i : i + AT_ONCE], "guided", 0, limit, sound=i == 0)
            found |= {name: None if kill is None else kill.calls for name, kill in kills.items()}
    return found


def text(data: Mapping[str, Calls]) -> str:
    """The file: a line a fault."""
    parts = []
    for name, of in sorted(data.items()):
        lines = ",\n".join(f"  {json.dumps(f, ensure_ascii=False)}: {json.dumps(calls)}" for f, calls in of.items())
        parts.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subsystem", nargs="*")
    parser.add_argument("--again", action="store_true", help="also what was rejected before")
    options = parser.parse_args()
    data: dict[str, Calls] = json.loads(MEASURED.read_text("utf-8")) if MEASURED.exists() else {}
    for name in options.subsystem or subsystems():
        began = time.monotonic()
        of = measured(find(name), {} if options.again else data.get(name, {}))
        if not of:
            continue
        data[name] = of
        MEASURED.write_text(text(data), "utf-8")
        left = [f for f, calls in of.items() if calls is None]
        print(f"{name}: {len(of)} faults, {len(left)} not rejected, {time.monotonic() - began:.0f} s", flush=True)
        print(*(f"  {f}" for f in left), sep="\n", end="\n" if left else "")


if __name__ == "__main__":
    main()
