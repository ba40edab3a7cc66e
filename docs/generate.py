"""Writes the generated parts of the documentation: whatever stands between `<!-- generated:NAME ARGUMENTS -->` and
`<!-- end -->`. `python docs/generate.py` writes, `--check` names what is out of date; a test does the latter.

Each generator is a function from the marker's arguments to Markdown, in the table GENERATORS at the end.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).parent
MARKER = re.compile(r"(<!-- generated:(\w+)([^>]*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
Generator = Callable[..., str]


def rewritten(text: str, generators: dict[str, Generator]) -> str:
    """`text` with every generated part written anew. Raises KeyError for an unknown generator."""

    def one(m: re.Match[str]) -> str:
        return f"{m[1]}{generators[m[2]](*m[3].split()).rstrip()}\n{m[5]}"

    return MARKER.sub(one, text)


def out_of_date(generators: dict[str, Generator], write: bool) -> list[Path]:
    """The pages whose generated parts differ from what is generated now; rewritten if `write`."""
    out = []
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text("utf-8")
        new = rewritten(text, generators)
        if new != text:
            out.append(page)
            if write:
                page.write_text(new, "utf-8")
    return out


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in row) + " |" for row in cells)
