"""The source files that pages link to, as pages of the site, a line of code an anchor, so that a rule's forms are a
click away wherever the project is kept."""

from __future__ import annotations

import html
import posixpath
import re
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers.python import PythonLexer

from kafkaspec.contract.subsystem import LAYERS

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (*LAYERS, "tests", "src/kafkaspec")
"""where the files stand that pages name"""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title>
<link rel="stylesheet" href="{css}">
</head>
<body>
<p><a href="{home}">kafkaspec</a> / {name}</p>
{code}
</body>
</html>
"""
STYLE = """body { font-family: sans-serif; margin: 1rem; }
pre { font-size: .8rem; overflow-x: auto; line-height: 1.35; }
pre > span:target { background: #fff3b0; }
"""
DARK = """@media (prefers-color-scheme: dark) {{
body {{ color: #ddd; background: #1e2129; }} a {{ color: #8ab4f8; }}
pre > span:target {{ background: #4a4520; }}
{rules}
}}
"""


def linked(place: str) -> str:
    """A place, `file:line` or a file, as a link from the folder of the docs on; as code alone, where no page has it."""
    file, _, line = place.partition(":")
    if not is_shown(file):
        return f"`{place}`" if place else ""
    return f"[`{place}`](docs:source/{file}.html{f'#L-{line}' if line else ''})"


def is_shown(file: str) -> bool:
    """Whether there is a page of a file, named by its path in the checkout."""
    return file.endswith(".py") and file.startswith(tuple(f"{f}/" for f in FOLDERS)) and (ROOT / file).is_file()


def of_links(text: str) -> set[str]:
    """The source files that a page of the site links to."""
    return {name for name in re.findall(r"\]\((?:\.\./)*source/([^)#]+)\.html[)#]", text) if is_shown(name)}


def page(name: str) -> str:
    """The page of a file with that path in the checkout."""
    up = posixpath.relpath(".", posixpath.dirname(f"source/{name}"))
    return PAGE.format(
        name=html.escape(name),
        css=f"{up}/source/style.css",
        home=f"{up}/index.html",
        code=highlight((ROOT / name).read_text("utf-8"), PythonLexer(), HtmlFormatter(linespans="L")),
    )


def style() -> str:
    """The style of these pages, by day and by night."""
    day, night = (rules(HtmlFormatter(style=name)) for name in ("default", "github-dark"))
    return STYLE + day + "\n" + DARK.format(rules=night)


def rules(formatter: HtmlFormatter[str]) -> str:
    """Its colours."""
    return str(formatter.get_style_defs(".highlight"))  # type: ignore[no-untyped-call]
