"""The table of planted faults in the docs: which case finds each, and the minimal text about which it is seen."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.gate.faults import FAULTS, Fault, found_by, planted
from tests.gate.gate import case, compared, fixed, one_of, smaller

PAGE = Path(__file__).resolve().parents[2] / "docs/engines/gate.md"
MARKS = ("<!-- faults -->\n", "<!-- end of faults -->")
ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \| (?:seed (\d+)|template `([^|]+?)`) \| `([^|]+?)` \|$", re.MULTILINE)
TRIES = 120


def rows() -> dict[str, tuple[str, str]]:
    """What the page says: by the fault's name, its engine and the case that finds it."""
    found = ROW.findall(PAGE.read_text("utf-8"))
    return {name: (engine, seed or template) for name, engine, seed, template, _ in found}


def row(f: Fault, name: str, seen: str) -> str:
    by = f"seed {name}" if name.isdigit() else f"template `{name}`"
    return f"| {f.name} | {f.engine} | {by} | `{seen}` |"


def text_of(f: Fault, name: str, folder: Path) -> tuple[str, str]:
    """A minimal text that shows the fault, and what kind of disagreement it is."""
    m = case(name)
    kept = compared(name, folder, f.only, f.variants).disagreements
    with planted(f):
        found = compared(name, folder, f.only, f.variants)
        found.disagreements = [d for d in found.disagreements if d not in kept]
        d = one_of(found)
        text = smaller(m, d, folder, TRIES)
    return text[
        text.index("class Random") if "class Random" in text else text.index("class M") :
    ], f"{d.engine}: {d.kind}"


def write(tell: Callable[[str], None]) -> None:
    """Find every fault anew and write the table, which takes a quarter of an hour. Needs TLC."""
    lines = ["| fault | engine | found by | what is seen |", "|---|---|---|---|"]
    texts: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for f in FAULTS.values():
            name = found_by(f, fixed())
            assert name is not None, f"{f.name} is not found"
            text, seen = text_of(f, name, Path(folder))
            lines.append(row(f, name, seen))
            texts.append(f"{f.name[0].upper()}{f.name[1:]} ({f.engine}):\n\n```python\n{text.rstrip()}\n```\n")
            tell(lines[-1])
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    inside = "\n".join([*lines, "", "The minimal texts, without what stands above the class:", "", *texts])
    PAGE.write_text(f"{before}{MARKS[0]}{inside}{MARKS[1]}{after}", "utf-8")
