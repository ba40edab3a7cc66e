"""Modules that are texts of a test: written to a file, so that errors can name their lines, and imported from there."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

_number = itertools.count()


def module(text: str, folder: Path, name: str = "text_of_a_test") -> ModuleType:
    """The module of a text, whose file lies in `folder`. No two have one name."""
    name = f"{name}_{next(_number)}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found
