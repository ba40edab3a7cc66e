"""A project of the user's own: a folder with a `kafkaspec.toml`, whose subsystems stand beside those of the package.

It has the package's folders: spec/, impl/, audits/, models/, proofs/, and tests/. Each layer of the package looks there
too, so that a module has one name wherever its file stands: `kafkaspec.spec.<area>.<name>`.
"""

from __future__ import annotations

import importlib
import os
import traceback
from collections.abc import MutableSequence
from functools import cache
from pathlib import Path

import kafkaspec

MARKER = "kafkaspec.toml"
"""The file that makes a folder a project. It may be empty."""
PACKAGE = Path(kafkaspec.__file__).parent


@cache
def project() -> Path | None:
    """The project that this process runs in: the current folder, or the nearest one above it, that has the marker; None
    without one, and in the package's own checkout."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the folder was deleted
        return None
    found = next((f for f in (here, *here.parents) if _marked(f)), None)
    ours = found is not None and (found / "spec").resolve() == (PACKAGE / "spec").resolve()
    return None if ours else found


def _marked(folder: Path) -> bool:
    """Whether the folder has a marker. Another user's counts only where not everybody can put one, as in /tmp."""
    marker = folder / MARKER
    if not marker.is_file():
        return False
    return marker.stat().st_uid == os.getuid() or not folder.stat().st_mode & 0o002


def line_of(error: BaseException) -> str:
    """The line of the project at which an error came up, as file:line; "" if it was not there."""
    places = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        places.append((error.filename or "", error.lineno))
    root = project()
    inside = [(f, n) for f, n in places if root is not None and Path(f).is_relative_to(root)]
    return f"{os.path.relpath(inside[-1][0])}:{inside[-1][1]}" if inside else ""


def place_of(error: BaseException) -> str:
    """Where an error came up, as file:line: `line_of`, or else the last call's; "" if it was not raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return line_of(error) or (f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "")


def unforeseen(error: BaseException) -> str:
    """What is said of an error that nobody foresaw, in a line: it is of a project of the user's own, or a bug of
    ours."""
    what = f"{type(error).__name__}: {error}"
    if line := line_of(error):
        return f"{line}: {what} (KAFKASPEC_TRACEBACK=1 shows the calls)"
    where = f" at {place}" if (place := place_of(error)) else ""
    return f"{what}{where}; this is a bug of kafkaspec (KAFKASPEC_TRACEBACK=1 shows where)"


def extend(package: str, path: MutableSequence[str]) -> None:
    """Let a layer's package, and those of its areas that the project has too, find the project's modules."""
    root = project()
    if root is None:
        return
    layer = root / package.rpartition(".")[2]
    areas = sorted(a.name for a in layer.iterdir() if a.is_dir()) if layer.is_dir() else []
    shared = [a for a in areas if any((Path(p) / a / "__init__.py").is_file() for p in path)]
    path.append(str(layer))
    for area in shared:
        importlib.import_module(f"{package}.{area}").__path__.append(str(layer / area))
