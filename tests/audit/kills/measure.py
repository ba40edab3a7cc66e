"""What was found of each module's faults, kept in docs/measured/rules.json, a module at a time.

A fault is noticed by a directory, has a reason why none can notice it, or survives. For each directory stands which
faults it was found to show, so that the whole is looked at again in little time: one directory a fault.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.audit.kills.faults import ROOT, Fault, Rules, rules
from tests.audit.kills.harness import Bench
from tests.audit.kills.reasons import reason
from tests.audit.kills.trial import Trial, library

MEASURED: Final = ROOT / "docs" / "measured" / "rules.json"


@dataclass
class KillCount:
    """A module's faults by their names without the module's."""

    text: str = ""
    """of the module, when it was measured: a checksum"""
    noticed: dict[str, str] = field(default_factory=dict)
    """by which case"""
    equivalent: dict[str, str] = field(default_factory=dict)
    """why"""
    survivors: list[str] = field(default_factory=list)

    @property
    def faults(self) -> int:
        return len(self.noticed) + len(self.equivalent) + len(self.survivors)

    @property
    def share(self) -> float:
        """Of those that can be noticed."""
        asked = len(self.noticed) + len(self.survivors)
        return len(self.noticed) / asked if asked else 1.0


def short(fault: Fault) -> str:
    return fault.id.split(":", 1)[1]


def text_of(module: str) -> str:
    return hashlib.blake2b(Path(rules(module).path).read_bytes(), digest_size=8).hexdigest()


# ---- the file --------------------------------------------------------------------------------------------------------
def measured(module: str, file: Path = MEASURED) -> KillCount:
    """What is kept of a module; nothing if it was never measured."""
    of = _read(file).get(module)
    if of is None:
        return KillCount()
    by = {f"{function}:{f}": case for case, x in of["noticed"].items() for function, fs in x.items() for f in fs}
    return KillCount(
        of["text"],
        by,
        dict(of["equivalent"]),
        list(of["survivors"]),
    )


def _read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text("utf-8"))) if file.is_file() else {}


def keep(module: str, of: KillCount, file: Path = MEASURED) -> None:
    by: dict[str, dict[str, list[str]]] = {}
    for fault, case in sorted(of.noticed.items()):
        function, rest = fault.split(":", 1)
        by.setdefault(case, {}).setdefault(function, []).append(rest)
    said = {
        "text": of.text,
        "noticed": dict(sorted(by.items())),
        "equivalent": dict(sorted(of.equivalent.items())),
        "survivors": sorted(of.survivors),
    }
    every = dict(sorted((_read(file) | {module: said}).items()))
    lines = ",\n".join(f"{json.dumps(k)}: {_lines(v)}" for k, v in every.items())
    file.write_text(f"{{\n{lines}\n}}\n", "utf-8")


def _lines(of: dict[str, Any]) -> str:
    """A line a case, so that a diff shows what changed."""
    cases = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in of["noticed"].items())
    more = "".join(f',\n "{k}": {json.dumps(of[k], indent=2)}' for k in ("equivalent", "survivors"))
    return f'{{\n "text": "{of["text"]}",\n "noticed": {{\n{cases}\n }}{more}\n}}'


def untried(of: Rules, kept: KillCount) -> list[str]:
    """The faults of a module that were never tried, and those that are not there any more."""
    return sorted({short(f) for f in of.faults()} ^ {*kept.noticed, *kept.equivalent, *kept.survivors})


# ---- measuring -------------------------------------------------------------------------------------------------------
def measure(
    module: str,
    before: KillCount,
    progress: Callable[[Fault, str | None, str | None], None] | None = None,
    only: Callable[[str], bool] | None = None,
) -> tuple[KillCount, list[str]]:
    """Try every fault of a module (of `only` those; the others are as before), first on the directory that showed it
    before. Also what is wrong with the reasons, a line each."""
    out, wrong = KillCount(text_of(module)), []
    with Bench(library(module)) as bench:
        t = Trial(rules(module), bench)
        t.begin()
        for fault in t.module.faults():
            name = short(fault)
            why = reason(module, name)
            known = before.noticed.get(name)
            if only is not None and not only(name) and known is not None:
                by: str | None = known
            else:
                by = t.noticed(fault, known)
            if progress is not None:
                progress(fault, by, why)
            if by is not None:
                out.noticed[name] = by
                if why is not None:
                    wrong.append(f"{fault.id} is said to be equivalent ({why}), but {by} shows it")
            elif why is not None:
                out.equivalent[name] = why
            else:
                out.survivors.append(name)
    return out, wrong


def again(module: str, names: Sequence[str], of: KillCount) -> Iterator[str]:
    """Of these faults, which were noticed, those that the same directories do not show now."""
    cases = {of.noticed[n] for n in names}
    every = library(module)
    with Bench({k: v for k, v in every.items() if k in cases}) as bench:
        t = Trial(rules(module), bench)
        t.begin(reached=False)
        for fault in t.module.faults():
            name = short(fault)
            if name in names:
                case = of.noticed[name]
                if case not in t.sound or not t.shows(fault, case):
                    yield fault.id
