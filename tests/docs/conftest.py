"""The modules of docs/, imported as the build of the site imports them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def _module(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module(name)


def _forget() -> None:
    for name in ("generate", "rules", "histories", "matrix", "diagram"):
        sys.modules.pop(name, None)


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield _module(monkeypatch, "generate")
    _forget()


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield _module(monkeypatch, "rules")
    _forget()


@pytest.fixture
def histories(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield _module(monkeypatch, "histories")
    _forget()
