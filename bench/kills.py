"""The kill matrix: which detector notices which mutant; after how many calls the judge rejects each, run as a target.

    nice python bench/kills.py                       every subsystem; goes on from what is in docs/measured
    nice python bench/kills.py timeline --seeds 3    some of it
    python bench/kills.py batch --matrix             only which detector notices which mutant

A mutant that stands in docs/measured/kills.json with a detector, under its name and fault, is not shown to it again. In
the campaigns, guided beside uniform, one that outlives --limit calls with more than half of the seeds, or with all of
the first six, has no median and is not run with the others; it is run in three campaigns of --long calls.
docs/generate.py makes the tables of both files.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafkaspec.contract.subsystem import Subsystem, find, subsystems
from kafkaspec.judge.generate import Generator
from kafkaspec.mutants.audit import audit_detector
from kafkaspec.mutants.judge import campaigned
from kafkaspec.mutants.matrix import (
    check_detector,
    contract_detector,
    explorer_detector,
    kill_matrix,
    lockstep_detector,
    mutants_of,
    prover_detector,
    unseen,
    written,
)
from kafkaspec.mutants.mutant import Mutant

MEASURED = Path(__file__).parents[1] / "docs" / "measured"
GENERATORS: tuple[Generator, ...] = ("guided", "uniform")
ENOUGH = 6
LONG_SEEDS = 3
Calls = dict[str, "int | None"]
"""seed -> calls up to the kill; None: it outlived the limit"""


class Matrix:
    """docs/measured/kills.json: subsystem -> "written", a row a mutant, and "generated", what became of those."""

    DETECTORS = (
        contract_detector,
        lockstep_detector,
        check_detector,
        explorer_detector,
        prover_detector,
        audit_detector,
    )

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def run(self, subsystem: Subsystem) -> str:
        """Every detector on the mutants that are not in the file."""
        began = time.monotonic()
        known = self.data.setdefault(subsystem.name, {})
        before = {(r["name"], r["what"]): r["by"] for r in known.get("written", [])}
        mutants = written(subsystem)
        noticed: dict[str, dict[str, bool | None]] = {m.name: before.get((m.name, m.what), {}) for m in mutants}
        detectors = [made() for made in self.DETECTORS]
        looked = 0
        for detector in detectors:
            lacking = [m for m in mutants if detector.name not in noticed[m.name]]
            looked += len(lacking)
            for row in kill_matrix(subsystem, lacking, [detector]):
                noticed[row.mutant.name][detector.name] = row.detections[detector.name].killed
        reasons = unseen(subsystem)
        known["written"] = [
            {"name": m.name, "what": m.what, "layer": m.layer, "clauses": m.clauses, "bug": m.bug}
            | {"survives": m.survives, "unseen": reasons.get(m.name, ""), "by": noticed[m.name]}
            for m in mutants
        ]
        if known.get("generated") is None:
            hand = {m.name for m in mutants}
            others = kill_matrix(subsystem, [m for m in mutants_of(subsystem) if m.name not in hand], detectors)
            alive = [r for r in others if not r.killed]
            known["generated"] = {
                "count": len(others),
                "unchanged": sum(r.unchanged for r in alive),
                "survive": [
                    [r.mutant.what, r.mutant.name.partition(":")[0], r.mutant.survives]
                    for r in alive
                    if not r.unchanged
                ],
            }
        self.save()
        return f"{len(mutants)} mutants, {looked} looks, {time.monotonic() - began:.0f} s"

    def save(self) -> None:
        out = []
        for name, of in sorted(self.data.items()):
            rows = ",\n".join(f"  {json.dumps(r, ensure_ascii=False)}" for r in of["written"])
            generated = json.dumps(of.get("generated"), ensure_ascii=False)
            out.append(f' {json.dumps(name)}: {{\n "generated": {generated},\n "written": [\n{rows}\n ]}}')
        _write(self.path, "{\n" + ",\n".join(out) + "\n}\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".tmp")
    beside.write_text(text, "utf-8")
    beside.replace(path)


class JudgeTable:
    """docs/measured/judge.json: subsystem -> generator -> mutant -> seed -> calls; the long campaigns under
    "guided long" and "uniform long"."""

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
        _write(self.path, _text(self.data))

    def run(self, subsystem: Subsystem, generator: str, seed: int, limit: int, mutants: Sequence[Mutant]) -> str:
        """One campaign, of the mutants that lack it."""
        measured = self.of(subsystem.name, generator)
        lacking = [m for m in mutants if str(seed) not in measured.get(m.name, {})]
        if not lacking:
            return ""
        how: Generator = "uniform" if generator.startswith("uniform") else "guided"
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
            rows = [f"   {json.dumps(m, ensure_ascii=False)}: {json.dumps(calls)}" for m, calls in mutants.items()]
            generators.append(f"  {json.dumps(generator)}: {{\n" + ",\n".join(rows) + "\n  }")
        out.append(f" {json.dumps(name)}: {{\n" + ",\n".join(generators) + "\n }")
    about = "".join(f'"{k}": {data[k]},\n' for k in ("limit", "seeds", "long"))
    return f'{{{about}"subsystems": {{\n' + ",\n".join(out) + "\n}}\n"


def outlives(calls: Calls, seeds: int) -> bool:
    """Whether a mutant has no median, as far as is known: it outlived half of the seeds and more, or all of ENOUGH."""
    alive = list(calls.values()).count(None)
    return 2 * alive > seeds or alive == len(calls) >= ENOUGH


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subsystem", nargs="*")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--limit", type=int, default=1_000)
    parser.add_argument("--long", type=int, default=20_000)
    parser.add_argument("--matrix", action="store_true", help="no campaigns")
    options = parser.parse_args()
    chosen = [find(n) for n in options.subsystem] or list(subsystems().values())
    matrix = Matrix(MEASURED / "kills.json")
    for s in chosen:
        print(f"{s.name}: {matrix.run(s)}", flush=True)
    if options.matrix:
        return
    measured = JudgeTable(MEASURED / "judge.json", options.limit, options.seeds, options.long)
    faults = {s.name: [m for m in written(s) if m.layer in ("spec", "impl")] for s in chosen}

    def said(subsystem: Subsystem, generator: str, seed: int, limit: int, mutants: Sequence[Mutant]) -> None:
        if line := measured.run(subsystem, generator, seed, limit, mutants):
            print(f"{subsystem.name} {generator}, seed {seed}: {line}", flush=True)

    for seed in range(options.seeds):
        for s in chosen:
            for generator in GENERATORS:
                of = measured.of(s.name, generator)
                lasting = {m for m, calls in of.items() if outlives(calls, options.seeds)}
                said(s, generator, seed, options.limit, [m for m in faults[s.name] if m.name not in lasting])
    for s in chosen:
        for generator in GENERATORS:
            of = measured.of(s.name, generator)
            lasting = {m for m, calls in of.items() if outlives(calls, options.seeds)}
            for seed in range(LONG_SEEDS):
                said(s, f"{generator} long", seed, options.long, [m for m in faults[s.name] if m.name in lasting])


if __name__ == "__main__":
    main()
