"""How many calls the judge needs until it rejects each mutant, run as a target: by seed, guided beside uniform.

    nice python bench/kills.py                       every subsystem; goes on from what is in --out
    nice python bench/kills.py timeline --seeds 3    some of it

A mutant that outlives --limit calls with more than half of the seeds has no median, and is not run with the others.
Those that no guided campaign rejected are run once more, for --long calls. docs/generate.py makes the tables of it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafkaspec.judge.detector import campaigned
from kafkaspec.judge.generate import Generator
from kafkaspec.lockstep.mutants import Mutant, written
from kafkaspec.subsystem import Subsystem, find, subsystems

OUT = Path(__file__).parents[1] / "docs" / "measured" / "judge.json"
GENERATORS: tuple[Generator, ...] = ("guided", "uniform")
Calls = dict[str, "int | None"]
"""seed -> calls up to the kill; None: it outlived the limit"""


class Measured:
    """The file: subsystem -> generator -> mutant -> seed -> calls; and under "long" those of the long campaigns."""

    def __init__(self, path: Path, limit: int, seeds: int, long: int) -> None:
        self.path = path
        self.data: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        about = {"limit": limit, "seeds": seeds, "long": long}
        if self.data and any(self.data[k] != v for k, v in about.items() if k != "seeds"):
            raise SystemExit(f"{path}: measured with other limits: {self.data['limit']}, {self.data['long']}")
        self.data |= about
        self.data.setdefault("subsystems", {})

    def of(self, subsystem: str, generator: str) -> dict[str, Calls]:
        made: dict[str, dict[str, Calls]] = self.data["subsystems"].setdefault(subsystem, {})
        return made.setdefault(generator, {})

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".tmp")
        beside.write_text(_text(self.data))
        beside.replace(self.path)

    def run(self, subsystem: Subsystem, generator: str, seed: int, limit: int, mutants: Sequence[Mutant]) -> str:
        """One campaign, of the mutants that lack it."""
        measured = self.of(subsystem.name, generator)
        lacking = [m for m in mutants if str(seed) not in measured.get(m.name, {})]
        if not lacking:
            return ""
        how: Generator = "uniform" if generator == "uniform" else "guided"
        began = time.monotonic()
        kills = campaigned(subsystem, lacking, how, seed, limit, sound=seed == 0)
        for name, kill in kills.items():
            measured.setdefault(name, {})[str(seed)] = None if kill is None else kill.calls
        self.save()
        alive = sum(k is None for k in kills.values())
        return f"{len(kills)} mutants, {alive} outlive it, {time.monotonic() - began:.0f} s"


def _text(data: dict[str, Any]) -> str:
    """JSON with a line a mutant."""
    out = []
    for name, by in sorted(data["subsystems"].items()):
        generators = []
        for generator, mutants in sorted(by.items()):
            rows = [f"   {json.dumps(m)}: {json.dumps(calls)}" for m, calls in mutants.items()]
            generators.append(f"  {json.dumps(generator)}: {{\n" + ",\n".join(rows) + "\n  }")
        out.append(f" {json.dumps(name)}: {{\n" + ",\n".join(generators) + "\n }")
    about = "".join(f'"{k}": {data[k]},\n' for k in ("limit", "seeds", "long"))
    return f'{{{about}"subsystems": {{\n' + ",\n".join(out) + "\n}}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subsystem", nargs="*")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--limit", type=int, default=1_000)
    parser.add_argument("--long", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    measured = Measured(options.out, options.limit, options.seeds, options.long)
    chosen = [find(n) for n in options.subsystem] or list(subsystems().values())
    faults = {s.name: [m for m in written(s) if m.layer in ("spec", "impl")] for s in chosen}

    def said(subsystem: Subsystem, generator: str, seed: int, limit: int, mutants: Sequence[Mutant]) -> None:
        if line := measured.run(subsystem, generator, seed, limit, mutants):
            print(f"{subsystem.name} {generator}, seed {seed}: {line}", flush=True)

    for seed in range(options.seeds):
        for s in chosen:
            for generator in GENERATORS:
                of = measured.of(s.name, generator)
                lasting = {m for m, calls in of.items() if 2 * list(calls.values()).count(None) > options.seeds}
                said(s, generator, seed, options.limit, [m for m in faults[s.name] if m.name not in lasting])
    for s in chosen:
        guided = measured.of(s.name, "guided")
        never = [m for m in faults[s.name] if all(c is None for c in guided[m.name].values())]
        said(s, "long", 0, options.long, never)


if __name__ == "__main__":
    main()
