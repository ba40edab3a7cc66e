"""What `mkdocs build` does with the pages: adds those that are generated whole, fills in directives, makes a page of
every source file that one links to and a file of every drawing, and writes the lists of the navigation that follow from
the pages that there are."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parent))

import generate
import sources

from kafkaspec.contract import subsystem

DIAGRAM = re.compile(r'<div class="diagram">(<svg.*?</svg>)</div>', re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A list of the navigation that is written `generated:NAME` is made by NAV."""
    config.nav = [expanded(entry) for entry in config.nav or []]
    return config


def expanded(entry: Any) -> Any:
    if isinstance(entry, dict):
        ((title, to),) = entry.items()
        if isinstance(to, str) and to.startswith("generated:"):
            return {title: NAV[to.removeprefix("generated:")]()}
        return {title: [expanded(e) for e in to] if isinstance(to, list) else to}
    return entry


def nav_subsystems() -> list[Any]:
    """The subsystems' pages, by areas; the rules of the audit alone in a list of their own."""
    groups: dict[str, list[Any]] = {}
    for s in subsystem.subsystems().values():
        if (generate.DOCS / s.area / f"{s.name}.md").exists():
            without = "Protocols" if s.is_protocol else "Rules of the audit"
            group = s.area.capitalize() if s.is_component else without
            groups.setdefault(group, []).append({s.title: f"{s.area}/{s.name}.md"})
    return [{group: pages} for group, pages in groups.items()]


def nav_protocol() -> list[Any]:
    """The protocol, and a page of operations for each component."""
    pages = [{s.title: f"protocol/{s.name}.md"} for s in subsystem.components().values()]
    return [{"The protocol": "protocol.md"}, {"Operations": pages}]


def nav_decisions() -> list[Any]:
    """The decisions, by their numbers."""
    return ["decisions/index.md", *sorted(f"decisions/{f.name}" for f in generate.DOCS.glob("decisions/0*.md"))]


NAV = {"subsystems": nav_subsystems, "protocol": nav_protocol, "decisions": nav_decisions}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that nobody writes. One that is there as a file stays as it is written."""
    for path, text in {**generate.pages(), "source/style.css": sources.style()}.items():
        if files.get_file_from_path(path) is None:
            files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the directives. Raises PluginError for one that cannot be."""
    path = page.file.src_uri
    try:
        markdown = generate.rendered(markdown, path)
    except Exception as e:
        raise PluginError(f"{path}: {type(e).__name__}: {e}") from e
    for name in sources.of_links(markdown):
        if files.get_file_from_path(f"source/{name}.html") is None:
            files.append(File.generated(config, f"source/{name}.html", content=sources.page(name)))
    return drawn(markdown, path, config, files)


def drawn(markdown: str, path: str, config: MkDocsConfig, files: Files) -> str:
    """A page whose drawings are files beside it."""
    count = 0

    def one(m: re.Match[str]) -> str:
        nonlocal count
        count += 1
        name = f"{posixpath.splitext(path)[0]}-{count}.svg"
        files.append(File.generated(config, name, content=m[1]))
        label = re.search(r'aria-label="([^"]*)"', m[1])
        file = posixpath.basename(name)
        return f'<div class="diagram" markdown>[![{label[1] if label else ""}]({file})]({file})</div>'

    return DIAGRAM.sub(one, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Forget what no page of this build has asked for."""
    generate.forget()
