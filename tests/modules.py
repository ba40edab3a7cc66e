"""Modules that are in no package: files, and texts of tests, which become files so that errors can name their lines."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

HEAD = """
from __future__ import annotations
import enum
from dataclasses import dataclass
from typing import Annotated
from kafkaspec.language import *

class P(Sort): ...
class C(enum.Enum):
    RED = 0
    BLUE = 1
N = Size("N")
Num = Annotated[int, Range(0, N)]
"""
"""What the texts of small models begin with."""
_number = itertools.count()


def module(text: str, folder: Path, name: str = "text_of_a_test") -> ModuleType:
    """The module of a text, whose file lies in `folder`. No two have one name."""
    name = f"{name}_{next(_number)}"
    path = folder / f"{name}.py"
    path.write_text(text)
    return imported(path, name)


def imported(path: Path, name: str) -> ModuleType:
    """The module of a file that is in no package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found
