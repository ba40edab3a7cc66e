"""Subsystems, found by their files: the same path in spec/, impl/, models/ and proofs/ is one subsystem.

Engines never name a subsystem; they ask here.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import kafkaspec.spec
from kafkaspec import clauses
from kafkaspec.errors import unknown


@dataclass(frozen=True)
class Subsystem:
    """One subsystem. `spec` defines `machine`, `TITLE` and `PREFIX`; `impl` a `Driver` class; `model` the `MODELS`;
    `proof` the `PROOFS`."""

    name: str
    area: str

    def layer(self, layer: str) -> ModuleType | None:
        """The module of that layer ("spec", "impl", "models", "proofs"), imported; None if there is none."""
        path = f"kafkaspec.{layer}.{self.area}.{self.name}"
        if importlib.util.find_spec(path) is None:
            return None
        return importlib.import_module(path)

    @property
    def spec(self) -> ModuleType:
        module = self.layer("spec")
        assert module is not None
        return module

    @property
    def prefix(self) -> str:
        """The letters of its clause ids."""
        return str(self.spec.PREFIX)

    @property
    def title(self) -> str:
        return str(self.spec.TITLE)

    @property
    def clauses(self) -> list[clauses.Clause]:
        return clauses.all_clauses(self.prefix)


@cache
def subsystems() -> dict[str, Subsystem]:
    """Every subsystem by name, in the order of areas and names. A spec file is a subsystem if it defines `machine`."""
    out = {}
    for area in pkgutil.iter_modules(kafkaspec.spec.__path__, "kafkaspec.spec."):
        if not area.ispkg:
            continue
        package = importlib.import_module(area.name)
        for m in pkgutil.iter_modules(package.__path__, area.name + "."):
            if hasattr(importlib.import_module(m.name), "machine"):
                name = m.name.rpartition(".")[2]
                out[name] = Subsystem(name, area.name.rpartition(".")[2])
    return out


def find(name: str) -> Subsystem:
    """The subsystem of that name; UserError with the nearest name otherwise."""
    known = subsystems()
    if name not in known:
        raise unknown("subsystem", name, known)
    return known[name]


def load_all() -> None:
    """Import every layer of every subsystem, so that the clause registry is complete."""
    for s in subsystems().values():
        for layer in ("spec", "impl", "models", "proofs"):
            s.layer(layer)
