"""What the sound rules say of the directories that were found to show a fault, as it is pinned in pinned.txt.

For each directory the verdict, a checksum of all that the audit says in words, and each finding by its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.audit.kills.faults import RULES
from tests.audit.kills.harness import Bench, Outcome, group
from tests.audit.kills.measure import measured

FILE: Final = Path(__file__).parent / "pinned.txt"


def read(file: Path = FILE) -> dict[str, Outcome]:
    """By the directory's name."""
    out: dict[str, Outcome] = {}
    for block in file.read_text("utf-8").split("\n\n") if file.is_file() else ():
        name, *lines = block.strip("\n").split("\n")
        if name:
            out[name] = tuple(lines)
    return out


def now(name: str) -> dict[str, Outcome]:
    """Of a group: what all the rules say now."""
    shows = {case for module in RULES for case in measured(module).noticed.values()}
    with Bench({k: v for k, v in group(name).items() if k in shows}) as bench:
        bench.look_with(None)
        return {case: bench.outcome(case) for case in bench.made}


def write(names: Sequence[str], file: Path = FILE) -> None:
    known = {k: v for k, v in read(file).items() if k.partition(":")[0] not in names}
    for name in names:
        known |= now(name)
    blocks = ["\n".join([name, *lines]) for name, lines in sorted(known.items())]
    file.write_text("\n\n".join(blocks) + "\n", "utf-8")
