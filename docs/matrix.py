"""The tables of the kill matrix, made of docs/measured, which bench/kills.py writes: for docs/generate.py."""

from __future__ import annotations

import json
import math
import re
import statistics
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kafkaspec.contract import subsystem
from tests.judge.unnoticed import UNNOTICED

DOCS = Path(__file__).parent
MEASURED = DOCS / "measured"
DETECTORS = ("contract", "lockstep", "check", "explorer", "prover", "audit")
GENERATORS = ("guided", "uniform")
Table = Callable[[list[str], list[list[str]]], str]


@dataclass(frozen=True)
class Kills:
    """How a mutant fared as a target with one generator: calls to the kill by seed, None where it outlived them."""

    calls: tuple[int | None, ...]
    seeds: int
    limit: int

    @property
    def killed(self) -> int:
        return sum(c is not None for c in self.calls)

    @property
    def median(self) -> int | None:
        """Calls within which half of the campaigns killed it; None if fewer did."""
        if 2 * (len(self.calls) - self.killed) > self.seeds or 2 * self.killed < len(self.calls):
            return None
        return int(statistics.median_low([math.inf if c is None else c for c in self.calls]))

    def __str__(self) -> str:
        if self.median is not None:
            return f"{self.median:,}"
        return f"> {self.limit:,}" + (f" ({self.killed} of {len(self.calls)} seeds)" if self.killed else "")


@dataclass(frozen=True)
class Row:
    """A written mutant, and who noticed it."""

    subsystem: str
    name: str
    what: str
    layer: str
    clauses: tuple[str, ...]
    bug: str | None
    survives: str
    unseen: str
    """why the judge cannot see it"""
    by: dict[str, bool | None]
    judged: dict[str, Kills]
    long: dict[str, Kills]
    """the same of longer campaigns, for a generator by which it has no median"""

    @property
    def judge(self) -> bool | None:
        """Whether a guided campaign killed it; None if it is no target."""
        if "guided" not in self.judged:
            return None
        return any(of["guided"].killed for of in (self.judged, self.long) if "guided" in of)

    def median(self, generator: str) -> float:
        """Calls within which half of the campaigns killed it; infinite if fewer of the long ones did, too."""
        found = self.judged[generator].median
        if found is None and generator in self.long:
            found = self.long[generator].median
        return math.inf if found is None else found

    @property
    def detected(self) -> dict[str, bool | None]:
        return {**self.by, "judge": self.judge}

    @property
    def not_judged(self) -> str:
        """Why the judge does not notice it, or for how long it did not."""
        if self.unseen or "guided" not in self.judged:
            return self.unseen
        of, long = self.judged["guided"], self.long.get("guided")
        once = "" if long is None else f", nor by {len(long.calls)} of {long.limit:,}"
        by_uniform = self.judged["uniform"].killed if "uniform" in self.judged else 0
        luck = f"; by {by_uniform} of the uniform ones" if by_uniform else ""
        return f"rare: not come upon by {len(of.calls)} guided campaigns of {of.limit:,} calls{once}{luck}"

    def cell(self, generator: str) -> str:
        """Calls to the kill, as a table shows them; of the longer campaigns, where the others have no median."""
        short = self.judged.get(generator)
        if short is None or short.median is not None:
            return str(short or "")
        return str(self.long.get(generator, short))


@cache
def _read(name: str) -> dict[str, Any]:
    file = MEASURED / name
    return dict(json.loads(file.read_text("utf-8"))) if file.exists() else {}


@cache
def rows(name: str) -> tuple[Row, ...]:
    """The written mutants of a subsystem."""
    judged = _read("judge.json")
    calls = judged.get("subsystems", {}).get(name, {})
    out = []
    for r in _read("kills.json").get(name, {}).get("written", []):
        by_generator, long = (
            {
                g: Kills(tuple(of.values()), max(seeds, len(of)), judged[limit])
                for g in GENERATORS
                if (of := calls.get(g + more, {}).get(r["name"]))
            }
            for more, seeds, limit in (("", judged.get("seeds", 0), "limit"), (" long", 0, "long"))
        )
        out.append(
            Row(
                name,
                r["name"],
                r["what"],
                r["layer"],
                tuple(r["clauses"]),
                r["bug"],
                r["survives"],
                r.get("unseen", ""),
                r["by"],
                by_generator,
                long,
            )
        )
    return tuple(out)


def every() -> Iterator[Row]:
    """The written mutants of all subsystems."""
    for name in subsystem.subsystems():
        yield from rows(name)


def marks(row: Row) -> list[str]:
    """A mark for each detector but the judge: noticed, not noticed, not asked."""
    return [{True: "✓", False: "·", None: ""}[row.by.get(d)] for d in DETECTORS]


def titled(row: Row) -> str:
    return f"{row.name} ({row.bug})" if row.bug else row.name


# ---- a subsystem's page ----------------------------------------------------------------------------------------------
def measure(name: str) -> None:
    """Show the written mutants of a subsystem that are new to every detector, and keep what they notice; what the
    rejections of those cite that are new, and which faults of the text of its implementation are rejected."""
    bench = DOCS.parent / "bench"
    for command in (["kills.py", name, "--matrix"], ["blame.py", name], ["code.py", name]):
        words = [sys.executable, str(bench / command[0]), *command[1:]]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    _read.cache_clear()
    rows.cache_clear()


def kills(table: Table, name: str) -> str:
    """The kill matrix of a subsystem's written mutants, folded, and what became of the generated ones."""
    of = rows(name)
    if not of:
        return "Not measured yet."
    body = [
        [titled(r), r.what, ", ".join(r.clauses), *marks(r), *map(r.cell, GENERATORS), r.survives or r.unseen]
        for r in of
    ]
    generated = _read("kills.json")[name]["generated"] or {}
    count, same, rest = generated.get("count", 0), generated.get("unchanged", 0), generated.get("survive", ())
    excused = [f"\n- {what} ({where}): {why}" for what, where, why in rest if why]
    open_still = [f"\n- {what} ({where})" for what, where, why in rest if not why]
    noticed = sum(any(r.detected.values()) for r in of)
    head = ["mutant", "fault", "breaks", *DETECTORS, *(f"judge, {g}" for g in GENERATORS), ""]
    said = [
        f"{noticed} of {len(of)} written mutants are noticed ([all of them](docs:kill-matrix.md)).",
        f'??? note "{len(of)} mutants, and who notices each"\n\n' + textwrap.indent(table(head, body), "    "),
    ]
    if any(r.judged for r in of):
        said.append(
            "The judge: calls after which half of the campaigns have rejected the mutant, which runs as a target."
        )
    if not generated:
        said.append("Those that are generated of its models are not measured yet.")
    if count:
        said.append(
            f"Of {count} [generated mutants](docs:engines/mutants.md) of the models {count - same - len(rest)} are "
            f"killed, {same} change no step at the pinned sizes."
            + (f" {len(excused)} survive for a reason:\n{''.join(excused)}" if excused else "")
        )
    if open_still:
        said.append(
            f"No claim notices {len(open_still)} others, and no reason is written: at most the pinned counts of states "
            f"differ.\n{''.join(open_still)}"
        )
    return "\n\n".join(said)


# ---- the page of all of them -----------------------------------------------------------------------------------------
def _link(name: str) -> str:
    s = subsystem.find(name)
    return f"[{s.title}](docs:{s.area}/{s.name}.md)"


def _median(of: Iterable[Row], generator: str) -> float:
    """The median over mutants of their medians; infinite if most have none."""
    return statistics.median_low([r.median(generator) for r in of])


def _count(value: float) -> str:
    return f"> {_read('judge.json')['long']:,}" if value == math.inf else f"{value:,.0f}"


def kill_totals(table: Table) -> str:
    """A row a subsystem: of how many mutants that a detector looked at it noticed how many."""
    body = []
    named: list[tuple[str, Sequence[Row], int, int, int]] = []
    of: Sequence[Row]
    for name in subsystem.subsystems():
        of = rows(name)
        generated = _read("kills.json").get(name, {}).get("generated") or {}
        same, alive = generated.get("unchanged", 0), len(generated.get("survive", ()))
        named.append((_link(name), of, generated.get("count", 0), same, alive))
    whole = [r for _, of, *_ in named for r in of]
    sums = [sum(n[i] for n in named) for i in (2, 3, 4)]  # type: ignore[misc]
    named.append(("**all**", whole, sums[0], sums[1], sums[2]))
    for title, of, count, same, alive in named:
        cells = []
        for detector in (*DETECTORS, "judge"):
            seen = [r.detected.get(detector) for r in of]
            asked = sum(x is not None for x in seen)
            cells.append(f"{seen.count(True)} of {asked}" if asked else "")
        judged = [r for r in of if len(r.judged) == len(GENERATORS)]
        medians = [_count(_median(judged, g)) if judged else "" for g in GENERATORS]
        dead = sum(any(r.detected.values()) for r in of)
        made = [f"{count - same - alive} of {count}", f"{same}", f"{alive}"] if count else ["", "", ""]
        body.append([title, f"{dead} of {len(of)}", *cells, *medians, *made])
    head = ["", "killed", *DETECTORS, "judge", "calls, guided", "calls, uniform"]
    head += ["generated, of models", "unchanged", "for a reason"]
    return table(head, body)


def guided_and_uniform(table: Table) -> str:
    """The two generators side by side, over all mutants that run as targets."""
    both = [r for r in every() if len(r.judged) == len(GENERATORS)]
    if not both:
        return "Not measured yet."
    body, parts = [], {}
    for generator in GENERATORS:
        medians = sorted(r.median(generator) for r in both)
        parts[generator] = [medians[int(len(medians) * q)] for q in (0.25, 0.5, 0.75, 0.9)]
        with_median = sum(m < math.inf for m in medians)
        ever = sum(r.judged[generator].killed > 0 for r in both)
        body.append([generator, f"{with_median}", f"{ever}", *map(_count, parts[generator])])
    limit, long = both[0].judged["guided"].limit, _read("judge.json")["long"]
    pairs = [[2 * long if m == math.inf else max(1, m) for m in map(r.median, GENERATORS)] for r in both]
    ratios = [u / g for g, u in pairs]
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    better, worse = sum(r > 1 for r in ratios), sum(r < 1 for r in ratios)
    much, little = sum(r >= 2 for r in ratios), sum(r <= 0.5 for r in ratios)
    seeds = " and ".join(
        f"{Counter(len(r.judged[g].calls) for r in both).most_common(1)[0][0]} seeds {g}" for g in GENERATORS
    )
    head = ["", "rejected by half of the seeds", f"by any within {limit:,} calls"]
    return "\n\n".join(
        [
            table([*head, "a quarter", "half", "three quarters", "nine tenths"], body),
            f"{len(both)} mutants as targets, {seeds}, {limit:,} calls at most; where fewer than half of "
            f"the seeds reject a mutant, a few more of {long:,} calls each. The columns of parts say within how many "
            f"calls (the median over the seeds) that part of the mutants is rejected: half within "
            f"{_ratio(parts, 1)}, nine tenths within {_ratio(parts, 3)}. "
            f"Mutant by mutant uniform needs {mean:.1f} times the calls of guided in the geometric mean (one without a "
            f"median counts as {2 * long:,}): guided is sooner at {better}, at {much} by a factor of two or more; "
            f"uniform is sooner at {worse}, at {little} by two or more.",
        ]
    )


def _ratio(parts: dict[str, list[float]], n: int) -> str:
    guided, uniform = (parts[g][n] for g in GENERATORS)
    said = f"{_count(guided)} calls guided, {_count(uniform)} uniform"
    more, least = ("more than ", _read("judge.json")["long"]) if uniform == math.inf else ("", uniform)
    return f"{said}, a ratio of {more}**{least / guided:.1f}**" if guided < math.inf else said


def kill_bugs(table: Table) -> str:
    """The mutants that are bugs which Kafka had, by the bug."""

    def number(bug: str) -> tuple[int, str]:
        m = re.search(r"KAFKA-(\d+)", bug)
        return (int(m[1]) if m else 1 << 30, bug)

    found = sorted((r for r in every() if r.bug), key=lambda r: number(r.bug or ""))
    body = []
    last = ""
    for r in found:
        bug = r.bug or ""
        shown = f"[{bug}](https://issues.apache.org/jira/browse/{bug})" if bug.startswith("KAFKA-") else bug
        who = ", ".join(d for d, seen in r.detected.items() if seen)
        cells = [r.cell(g) for g in GENERATORS]
        body.append(["" if bug == last else shown, f"{r.name}: {r.what}", _link(r.subsystem), r.layer, who, *cells])
        last = bug
    bugs = {r.bug for r in found}
    caught = {r.bug for r in found if r.judge}
    asked = {r.bug for r in found if r.judge is not None}
    said = f"{len(bugs)} bugs, as {len(found)} mutants; of {len(asked)} one runs as a target or more do, "
    said += f"and the judge rejects {len(caught)}."
    head = ["bug", "mutant", "of", "layer", "noticed by", "judge: calls, guided", "uniform"]
    return said + "\n\n" + table(head, body)


def survivors(table: Table) -> str:
    """What nobody notices, and what the judge does not notice, with the reasons."""
    nobody = [r for r in every() if not any(r.detected.values())]
    body = [[_link(r.subsystem), r.name, r.what, r.survives or r.unseen or "**no reason is given**"] for r in nobody]
    out = (
        ["Nobody notices:", table(["", "mutant", "fault", "why"], body)]
        if body
        else ["Every written mutant is noticed."]
    )
    alive = [r for r in every() if r.judge is False and r not in nobody]
    body = [
        [
            _link(r.subsystem),
            titled(r),
            r.what,
            ", ".join(d for d, seen in r.by.items() if seen),
            r.not_judged,
        ]
        for r in alive
    ]
    if body:
        out += ["The judge does not notice:", table(["", "mutant", "fault", "noticed by", "why"], body)]
    return "\n\n".join(out)


def kill_rows(table: Table) -> str:
    """Every written mutant, every detector."""
    body = [
        [subsystem.find(r.subsystem).title, titled(r), r.layer, *marks(r), *(r.cell(g) for g in GENERATORS)]
        for r in every()
    ]
    return table(["of", "mutant", "layer", *DETECTORS, "judge, guided", "judge, uniform"], body)


# ---- the audit's own rules -------------------------------------------------------------------------------------------
def _rules() -> Iterator[tuple[str, dict[str, Any]]]:
    """What is kept of each module of rules, by its path below audits/."""
    for module, of in _read("rules.json").items():
        if of["noticed"] or of["equivalent"] or of["survivors"]:
            yield module, of


def rule_faults(table: Table) -> str:
    """A row a module of the audit: its faults, and how many of them small directories show."""
    body, sums = [], [0] * 5
    for module, of in _rules():
        noticed = sum(len(fs) for by in of["noticed"].values() for fs in by.values())
        equal, alive = len(of["equivalent"]), len(of["survivors"])
        counts = [noticed + equal + alive, noticed, equal, alive, len(of["noticed"])]
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        path = f"src/kafkaspec/{module}.py" if module.startswith("audit/") else f"audits/{module}.py"
        body.append([f"`{path}`", *_shares(counts)])
    return table(
        ["rules", "faults", "noticed", "of those that can be", "for a reason", "survive", "directories"],
        [*body, ["**all**", *_shares(sums)]],
    )


def _shares(counts: Sequence[int]) -> list[str]:
    faults, noticed, equal, alive, cases = counts
    share = 100 * noticed / (noticed + alive) if noticed + alive else 100.0
    return [f"{faults:,}", f"{noticed:,}", f"{share:.1f} %", f"{equal:,}", f"{alive:,}", f"{cases:,}"]


def rule_reasons(table: Table) -> str:
    """The faults of the rules that nothing can show, by the reason; and those that survive without one."""
    by: dict[str, list[str]] = {}
    for module, of in _rules():
        for name, why in of["equivalent"].items():
            by.setdefault(why, []).append(f"`{module}:{name}`")
        for name in of["survivors"]:
            by.setdefault("**no reason is known**", []).append(f"`{module}:{name}`")
    body = [
        [why, f"{len(names)}", ", ".join(names[:5]) + (", …" if len(names) > 5 else "")] for why, names in by.items()
    ]
    return table(["why", "faults", "such as"], sorted(body, key=lambda row: -int(row[1])))


# ---- faults that are made of the code --------------------------------------------------------------------------------
def coded(table: Table) -> str:
    """A row a subsystem: how many faults are made of its implementation's text, and what became of them."""
    measured = _read("code.json")
    body, sums, left = [], [0, 0, 0, 0], []
    for name in (n for n in subsystem.subsystems() if n in measured):
        of, reasons = measured[name], UNNOTICED.get(name, {})
        alive = [f for f, calls in of.items() if calls is None and f not in reasons]
        row = [len(of), sum(c is not None for c in of.values()), len(reasons), len(alive)]
        sums = [a + b for a, b in zip(sums, row, strict=True)]
        body.append([_link(name), *map(str, row)])
        left += [f"{_link(name)} `{f}`" for f in alive]
    count, killed, equal, alive_count = sums
    share = f"{killed} ({100 * killed / (count - equal):.1f} %)"
    body.append(["**all**", f"{count}", share, f"{equal}", f"{alive_count}"])
    head = ["", "faults", "rejected", "nobody can notice", "not rejected"]
    return f"{table(head, body)}\n\nNot rejected: {'; '.join(left)}."


# ---- whether the right rule is cited ---------------------------------------------------------------------------------
def blamed(table: Table) -> str:
    """A row a subsystem: of how many mutants the rejection cites a clause that the mutant breaks, and as the first."""
    measured = _read("blame.json")
    if not measured:
        return "Not measured yet."
    body, sums, other = [], [0, 0, 0], Counter[str]()
    for name in (n for n in subsystem.subsystems() if n in measured):
        of = measured[name].values()
        right = sum(bool({*m["states"]} & {*m["cites"]}) for m in of)
        first = sum(bool({*m["states"]} & {*m["cites"][:1]}) for m in of)
        other += Counter(m["how"] for m in of if m["how"] != "rejected")
        sums = [a + b for a, b in zip(sums, (len(of), right, first), strict=True)]
        body.append([_link(name), f"{len(of)}", f"{right}", f"{first}"])
    count, right, first = sums
    shares = [f"{right} ({100 * right / count:.1f} %)", f"{first} ({100 * first / count:.1f} %)"]
    body.append(["**all**", f"{count}", *shares])
    rest = ", ".join(f"{n} {how}" for how, n in sorted(other.items()))
    said = f"Not rejected, and counted as not cited: {rest}." if rest else "All of them were rejected."
    return f"{table(['', 'mutants', 'cited', 'cited first'], body)}\n\n{said}"
