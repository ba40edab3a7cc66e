"""Subsystems, found by their files: the same path in spec/, impl/, models/ and proofs/ is one subsystem.

Engines never name a subsystem; they ask here.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

from kafkaspec.contract import clauses
from kafkaspec.contract.machine import ByName, Driver, Machine
from kafkaspec.contract.project import PACKAGE, project
from kafkaspec.contract.recording import Recording, manifest
from kafkaspec.contract.source import decoded
from kafkaspec.errors import UserError, unknown

LAYERS = ("spec", "impl", "audits", "models", "proofs")
"""The folders in which a subsystem has a file of its name."""
ROLES = {"spec": ("released", "trial"), "impl": ("driver", "simulation"), "audits": ("driver",)}
"""By its layer: parts of it that stand in files of their own, <name>_<role>.py."""
FILES = resources.files("kafkaspec")
"""The package's files, also where it is a zip, as Spark ships it."""


class Pair(NamedTuple):
    """A machine of a spec, and the drivers that answer to it."""

    layer: Literal["impl", "audit"]
    machine: Machine[Any]
    driver: Callable[[], Driver]


@dataclass(frozen=True)
class Subsystem:
    """One subsystem. `spec` defines `machine`, `TITLE` and `PREFIX`, and `audit` where the audit is asked too; its
    `trial` the candidates of the arguments, and `REFINEMENTS`; its `released` the known deviations; `audits` the
    checks; a `driver`, of `impl` or of `audits`, a `Driver` class; `models` the `MODELS`; `proofs` the `PROOFS`."""

    name: str
    area: str
    folder: Traversable = field(default=FILES, repr=False)
    """the folder of its layers: the package, or the project that it is of"""

    @property
    def root(self) -> Path | None:
        """The folder that has its tests: the checkout, or the project that it is of; None if neither is there."""
        return checkout() if self.folder == FILES else project()

    def layer(self, layer: str, role: str = "") -> ModuleType | None:
        """Its module in the folder of that layer, or the part of that role beside it, imported; None if there is
        none."""
        name = f"{self.name}_{role}" if role else self.name
        if not (self.folder / layer / self.area / f"{name}.py").is_file():
            return None
        return importlib.import_module(f"kafkaspec.{layer}.{self.area}.{name}")

    def texts(self) -> list[str]:
        """The texts of its files, its mutants' included."""
        files = [self.folder / layer / self.area / f"{name}.py" for layer in LAYERS for name in named(self.name, layer)]
        files += [root / "tests" / self.area / f"{self.name}_mutants.py" for root in [self.root] if root is not None]
        return [text_of(f) for f in files if f.is_file()]

    def beside(self, kind: Literal["mutants", "written"]) -> ModuleType | None:
        """The module tests/<area>/<name>_<kind>.py beside its layers, imported; None if there is none."""
        root, name = self.root, f"tests.{self.area}.{self.name}_{kind}"
        path = None if root is None else root / f"{name.replace('.', '/')}.py"
        if path is None or not path.is_file():
            return None
        if name not in sys.modules:
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            sys.modules[name] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        return sys.modules[name]

    @property
    def is_component(self) -> bool:
        """It has an implementation, beside which another can be judged; else it is a rule of the audit, or a
        protocol."""
        return (self.folder / "impl" / self.area / f"{self.name}.py").is_file()

    @property
    def is_audited(self) -> bool:
        """The audit has rules of its own for it."""
        return (self.folder / "audits" / self.area / f"{self.name}.py").is_file()

    @property
    def is_protocol(self) -> bool:
        """Nobody answers for it: it is models and proofs, and no operation can be asked."""
        return not self.is_component and not self.is_audited

    def pairs(self) -> list[Pair]:
        """Each machine of the spec with what answers to it: the implementation, the audit's rules, or both. Raises
        UserError for an implementation without a driver."""
        impl = self.layer("impl", "driver")
        if impl is None and self.is_component:
            file = f"impl/{self.area}/{self.name}"
            raise UserError(f"{file}.py: there is no {file}_driver.py, whose Driver the spec walks beside")
        audit = self.layer("audits", "driver")
        out = [] if impl is None else [Pair("impl", self.spec.machine, self._driver("impl", impl))]
        asked = getattr(self.spec, "audit", None) if impl is not None else self.spec.machine
        return out if asked is None or audit is None else [*out, Pair("audit", asked, self._driver("audits", audit))]

    def _driver(self, layer: str, module: ModuleType) -> type[Driver]:
        """The class `Driver` of its module in that layer. Raises UserError for one that cannot be walked."""
        driver: Any = getattr(module, "Driver", None)
        if wrong := _not_a_driver(driver):
            raise UserError(f"{_shown(self.folder / layer / self.area / f'{self.name}_driver.py')}: {wrong}")
        made: type[Driver] = driver
        return made

    @property
    def spec(self) -> ModuleType:
        module = self.layer("spec")
        assert module is not None
        return module

    @property
    def refinements(self) -> tuple[Any, ...]:
        """Its refinement mappings onto models."""
        return tuple(getattr(self.layer("spec", "trial"), "REFINEMENTS", ()))

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """Its recordings of real Kafka."""
        return tuple(r for r in manifest() if r.subsystem == self.name)

    @cached_property
    def prefix(self) -> str:
        """The letters of its clause ids."""
        return self._said("PREFIX")

    @cached_property
    def title(self) -> str:
        return self._said("TITLE")

    def _said(self, name: str) -> str:
        """A constant of the spec; from its text, where it has a file: nothing is imported."""
        file = self.folder / "spec" / self.area / f"{self.name}.py"
        if not file.is_file():
            return str(getattr(self.spec, name))
        found = re.search(rf'^{name} = "(.+)"$', text_of(file), re.MULTILINE)
        if found is None:
            raise UserError(f'{_shown(file)}: no line says {name} = "..."')
        return found[1]

    @property
    def clauses(self) -> list[clauses.Clause]:
        """Its clauses, in order."""
        assert self.spec is not None  # its clauses are registered when it is imported
        return clauses.all_clauses(self.prefix)


def _not_a_driver(driver: Any) -> str:
    """What is wrong with what a module has as its class `Driver`; "" if it can be made and called."""
    if not isinstance(driver, type):
        return "has no class Driver" if driver is None else "Driver is no class"
    lacking = [name for name in ("reset", "apply", "observe") if not callable(getattr(driver, name, None))]
    if issubclass(driver, ByName):
        lacking += [] if isinstance(getattr(driver, "machine", None), Machine) else ["machine"]
        lacking += ["reset"] if driver.state is not ByName.state and driver.reset is ByName.reset else []
    if lacking:
        return f"Driver has no `{lacking[0]}`"
    try:
        inspect.signature(driver).bind()
    except TypeError as e:
        return f"Driver() cannot be made: {e}"
    except ValueError:  # of native code: nobody knows its signature
        pass
    return ""


def _shown(file: Traversable) -> str:
    """A file's name, from the current folder."""
    return os.path.relpath(str(file))


def text_of(file: Traversable) -> str:
    """The text of a file of Python. Raises UserError if it is none."""
    data = file.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return decoded(data, _shown(file))


@cache
def checkout() -> Path | None:
    """The folder of the checkout that this package was imported from; None if it was installed without its tests."""
    root = (PACKAGE / "spec").resolve().parent
    return root if (root / "tests").is_dir() and (root / "pyproject.toml").is_file() else None


COMMON = "common"
"""The folder of what subsystems share; it is no area."""


def named(name: str, layer: str) -> tuple[str, ...]:
    """The modules that a subsystem of that name may have in a layer: its own, and one of each role."""
    return (name, *(f"{name}_{role}" for role in ROLES.get(layer, ())))


def is_part(name: str) -> bool:
    """Whether a file of that name is a part of a subsystem: its name ends with a role."""
    return name.rpartition("_")[2] in {role for roles in ROLES.values() for role in roles}


def folders() -> tuple[Traversable, ...]:
    """The folders that have layers: the package, and the project that this process runs in."""
    own = project()
    return (FILES,) if own is None else (FILES, own)


def roots() -> list[Path]:
    """The folders that have tests: the checkout, and the project."""
    return [root for root in (checkout(), project()) if root is not None]


def _files(layer: str) -> Iterator[tuple[Traversable, str, str]]:
    """Folder, area and name of each subsystem's file in a layer, sorted by area and name, the package's first."""
    for folder in folders():
        there = (folder / layer).iterdir() if (folder / layer).is_dir() else ()
        for area in sorted(there, key=lambda f: f.name):
            if not area.is_dir() or area.name in (COMMON, "__pycache__"):
                continue
            for file in sorted(f.name for f in area.iterdir() if f.name.endswith(".py")):
                name = file.removesuffix(".py")
                if name != "__init__" and not is_part(name):
                    yield folder, area.name, name


def modules(layer: str) -> dict[str, str]:
    """The area of each subsystem's file in the folders of a layer, by its name."""
    return {name: area for _, area, name in _files(layer)}


@cache
def subsystems() -> dict[str, Subsystem]:
    """Every subsystem by name, in the order of areas and names, the package's first. Nothing is imported. Raises
    UserError if two have one name."""
    out: dict[str, Subsystem] = {}
    for folder, area, name in _files("spec"):
        if name in out:
            there = f"spec/{out[name].area}/{name}.py" + (" of kafkaspec" if out[name].folder == FILES else "")
            raise UserError(f"spec/{area}/{name}.py: {there} has that name already; a subsystem has one of its own")
        out[name] = Subsystem(name, area, folder)
    return out


def components() -> dict[str, Subsystem]:
    """Those with an implementation, beside which another can be judged: all but the rules of the audit and the
    protocols."""
    return {name: s for name, s in subsystems().items() if s.is_component}


def answered() -> dict[str, Subsystem]:
    """Those for which something answers, an implementation or the audit: all but the protocols."""
    return {name: s for name, s in subsystems().items() if not s.is_protocol}


def find(name: str) -> Subsystem:
    """The subsystem of that name; UserError with the nearest name otherwise."""
    known = subsystems()
    if name not in known:
        raise unknown("subsystem", name, known)
    return known[name]


def stating(id: str) -> Subsystem | None:
    """The subsystem that a clause of that id is of, by its prefix."""
    return next((s for s in subsystems().values() if id.startswith(f"{s.prefix}-")), None)


def clause(id: str) -> clauses.Clause:
    """The clause of that id; UserError otherwise, with what there is in its place. Only the spec that states it is
    imported, or the one that may have been meant."""
    s = stating(id)
    if s is not None and any(c.id == id for c in s.clauses):
        return clauses.find(id)
    raise UserError(f"unknown clause '{id}': {_instead(id, s)}")


def _instead(id: str, s: Subsystem | None) -> str:
    """What there is instead of a clause of that id, of a subsystem if its prefix is one's."""
    if s is not None:
        known = next((d for d in s.spec.machine.deviations if d.id == id), None)
        if known is not None:
            return f"it is a known deviation of released Kafka, which kafkaspec explain {known.clause} shows"
        return f"{s.name} has {_range(s)}"
    own = {s.prefix: s for s in subsystems().values()}
    prefix, _, number = id.partition("-")
    if prefix in own:
        return f"{own[prefix].name} has {_range(own[prefix])}"
    near = difflib.get_close_matches(prefix, own, 1, 0.5)
    hint = ""
    if near:
        of = own[near[0]]
        ids = [c.id for c in of.clauses if c.id == f"{of.prefix}-{number}"]
        hint = f"; did you mean {repr(ids[0]) if ids else of.prefix}, of {of.name}?"
    return f"no subsystem has the prefix '{prefix}'{hint} (there are {', '.join(sorted(own))})"


def _range(s: Subsystem) -> str:
    ids = [c.id for c in s.clauses]
    return f"{ids[0]} to {ids[-1]}" if len(ids) > 1 else ids[0] if ids else "no clause yet"
