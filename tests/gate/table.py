"""The table of planted faults, docs/measured/faults.md: which case finds each, and the minimal text about which it is
seen."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.gate.faults import FAULTS, Fault, found_by, planted
from tests.gate.gate import case, compared, fixed, one_of, smaller

FILE = Path(__file__).resolve().parents[2] / "docs/measured/faults.md"
ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \| (?:seed (\d+)|template `([^|]+?)`) \| `([^|]+?)` \|$", re.MULTILINE)
TEXT = re.compile(r"^\*\*(.+?)\*\*\n\n```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
TRIES = 60


def rows() -> dict[str, tuple[str, str, str]]:
    """What the table says: by the fault's name, its engine, the case that finds it, and what is seen."""
    found = ROW.findall(FILE.read_text("utf-8"))
    return {name: (engine, seed or template, seen) for name, engine, seed, template, seen in found}


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
    """Find every fault that the table does not have, and write the table. Takes minutes; needs TLC."""
    known = rows()
    texts = dict(TEXT.findall(FILE.read_text("utf-8")))
    lines: dict[str, str] = {m[1]: m[0] for m in ROW.finditer(FILE.read_text("utf-8"))}
    with tempfile.TemporaryDirectory() as folder:
        for f in FAULTS.values():
            if f.name in texts and f.name in known:
                continue
            name = found_by(f, fixed())
            assert name is not None, f"{f.name} is not found"
            texts[f.name], seen = text_of(f, name, Path(folder))
            lines[f.name] = row(f, name, seen)
            tell(lines[f.name])
            _write([lines[n] for n in FAULTS if n in lines], {n: texts[n] for n in FAULTS if n in texts})


def _write(lines: list[str], texts: dict[str, str]) -> None:
    head = ["| fault | engine | found by | what is seen |", "|---|---|---|---|"]
    shown = [f"**{n}**\n\n```python\n{t.rstrip()}\n```\n" for n, t in texts.items()]
    said = "The minimal texts, without what stands above the class:"
    FILE.write_text("\n".join([*head, *lines, "", said, "", *shown]), "utf-8")
