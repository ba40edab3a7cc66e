"""What held, and of which texts: a unit need not be asked again while all that it depends on is as it was.

It depends on the modules that it may import, from their texts, on the recordings that it reads, and on the versions of
the tools. That is known without running anything; a module found by its folder (a subsystem's layer, a rule of the
audit) counts as imported by the units that look there.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from kafkaspec.contract.project import PACKAGE
from kafkaspec.contract.subsystem import LAYERS, ROLES, find, folders, roots
from kafkaspec.verify.row import Row, Unit

TOOLS = (
    "z3-solver", "llvmlite", "numpy", "hypothesis", "icontract", "orjson", "cramjam", "crc32c", "packaging",
)  # fmt: skip
"""What decides a row; the other packages only show it."""
READS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "clauses": (("contract/traceability.py",), LAYERS),
    "models": (("explore/checked.py", "explore/engine.py"), ("models",)),
    "proofs": (("prove/proof.py", "explore/engine.py"), ("models", "proofs")),
    "spec against model": (("lockstep/exhaustive.py",), ("spec", "models")),
    "impl against spec": (("lockstep/walk.py",), ("spec", "impl", "audits")),
    "impl behind a pipe": (("judge/campaign.py", "judge/serve.py", "judge/child.py"), ("spec", "impl")),
    "recordings": (("judge/recorded.py", "judge/alter.py"), ("spec",)),
    "log directories": (("audit/engine.py", "audit/recorded.py"), ()),
    "log directories, damaged": (("audit/engine.py", "audit/recorded.py"), ()),
}
"""By a check's name: the engines that it asks, and the layers of the subsystem that it looks at."""
LONG: Mapping[str, float] = {"proofs": 60, "impl against spec": 30, "models": 20, "log directories": 10}
"""How long a unit may take that was never done, in seconds: the longest is begun first."""

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(kafkaspec[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|.*)|import[ \t]+(.*))", re.M)
_MODULE, _NAME = re.compile(r"\bkafkaspec[\w.]*"), re.compile(r"(\w+)(?:[ \t]+as[ \t]+(\w+))?")


@cache
def _imported(file: Path, drivers: bool) -> frozenset[Path]:
    """The files of the package and of the project that a file imports, at its top or within a function: by its text,
    which takes a tenth of the time of its syntax tree. Without drivers, what only its `Driver` uses does not count."""
    text = file.read_text("utf-8")
    unused = frozenset[str]() if drivers else _of_its_driver(text)
    names = set[str]()
    for module, parts, others in _IMPORT.findall(text):
        used = [name for name, other in _NAME.findall(parts) if (other or name) not in unused]
        names |= {module, *(f"{module}.{n}" for n in used)} if used else {*_MODULE.findall(others)}
    return frozenset(f for name in names for f in _files_of(name))


def _of_its_driver(text: str) -> frozenset[str]:
    """The names that nothing of a module but its class `Driver` uses."""
    if "\nclass Driver" not in text:
        return frozenset()
    used: dict[bool, set[str]] = {True: set(), False: set()}
    for statement in ast.parse(text).body:
        in_driver = isinstance(statement, ast.ClassDef) and statement.name == "Driver"
        used[in_driver] |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    return frozenset(used[True] - used[False])


@cache
def _files_of(name: str) -> tuple[Path, ...]:
    """The files of a module of that name, if it is one of the package or the project."""
    head, _, rest = name.partition(".")
    out: list[Path] = []
    for folder in _folders() if head == "kafkaspec" and rest else ():
        place = folder / rest.replace(".", "/")
        over = [p for p in place.parents if p.is_relative_to(folder)]
        files = [place.with_suffix(".py"), *(p / "__init__.py" for p in (place, *over))]
        out += [f for f in files if f.is_file()]
    return tuple(out)


@cache
def _prefixes(file: Path) -> frozenset[str]:
    """The prefixes of the clauses that a file names."""
    return frozenset(re.findall(r"\b([A-Z]{3})[-_]\d", file.read_text("utf-8")))


def _folders() -> list[Path]:
    """The folders that have layers."""
    return [Path(str(f)) for f in folders()]


def closure(files: Iterable[Path], drivers: bool = True) -> list[Path]:
    """The files, and all that they import, in order; without what only a `Driver` uses, where none is asked."""
    found, todo = set[Path](), list(files)
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += _imported(file, drivers)
    return sorted(found)


def inputs(unit: Unit) -> list[Path]:
    """The files that a unit depends on."""
    engines, layers = READS[unit.check]
    files = [PACKAGE / "verify" / "engine.py", PACKAGE / "verify" / "row.py", *(PACKAGE / e for e in engines)]
    data: list[Path] = []
    if layers:
        s = find(unit.subsystem)
        folder = Path(str(s.folder))
        areas = [folder / layer / s.area for layer in layers]
        parts = [folder / "spec" / s.area / f"{s.name}_{role}.py" for role in ROLES if "spec" in layers]
        files += [f for a in areas for f in (a / f"{s.name}.py", a / "__init__.py") if f.is_file()]
        files += [f for f in parts if f.is_file()]
    else:
        files += sorted(f for folder in _folders() for f in folder.glob("audits/*/*.py"))
        data += sorted((PACKAGE / "recordings" / "audit").rglob("*.gz"))
    if unit.check == "clauses":  # other subsystems state some of them too, and their audit reports under them
        prefix = find(unit.subsystem).prefix
        layers_of_all = (f for folder in _folders() for layer in LAYERS for f in folder.glob(f"{layer}/*/*.py"))
        data += sorted(f for f in layers_of_all if prefix in _prefixes(f))
        data += sorted(f for root in roots() for f in (root / "tests").rglob("*.py"))
        data += [f for root in roots() if (f := root / "tests" / "released_clauses.txt").is_file()]
        data.append(PACKAGE / "cli" / "skeleton" / "spec.py.j2")
    if unit.check == "recordings":
        folder = PACKAGE / "recordings"
        data += [folder / "__init__.py", folder / "manifest.toml", *sorted(folder.glob("*.ndjson*"))]
    return [*dict.fromkeys([*files[:2], *closure(files[2:], drivers=bool(layers)), *data])]


@cache
def _digest(file: Path) -> str:
    return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()


@cache
def _tools() -> str:
    return " ".join([platform.python_version(), *(f"{t} {metadata.version(t)}" for t in TOOLS)])


def key(unit: Unit, seeds: int) -> str:
    """What a unit's rows follow from."""
    lines = [_tools(), str(seeds), *(f"{f} {_digest(f)}" for f in inputs(unit))]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


def place() -> Path:
    """The file in which it is kept what held: one for each installation."""
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cached / "kafkaspec" / f"held-{hashlib.blake2b(str(PACKAGE).encode(), digest_size=8).hexdigest()}.json"


class PastResults:
    """What held when it was last asked. A file that cannot be read or written is as good as none."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = place() if file is None else file
        self.known: dict[str, dict[str, Any]] = {}
        with suppress(OSError, ValueError):
            kept = json.loads(self.file.read_text("utf-8"))
            self.known = {n: v for n, v in kept.items() if isinstance(v, dict)} if isinstance(kept, dict) else {}

    def of(self, unit: Unit, seeds: int) -> list[Row] | None:
        """The rows of a unit that held, if nothing has changed for it since."""
        kept = self.known.get(_name(unit))
        if not kept or kept.get("key") != key(unit, seeds):
            return None
        return [replace(Row(**row), held=kept["at"]) for row in kept["rows"]]

    def seconds(self, unit: Unit) -> float:
        """How long it took, or may take."""
        kept = self.known.get(_name(unit))
        return float(kept["seconds"]) if kept else LONG.get(unit.check, 1.0)

    def note(self, unit: Unit, of: str, rows: Sequence[Row]) -> None:
        """Keep what was found of the inputs with that key, if all of it holds."""
        ok = bool(rows) and all(r.ok for r in rows)
        self.known[_name(unit)] = {
            "key": of if ok else "",
            "at": f"{datetime.now():%Y-%m-%d %H:%M}",
            "seconds": sum(r.seconds for r in rows),
            "rows": [asdict(r) for r in rows] if ok else [],
        }
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            beside = self.file.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps(self.known), "utf-8")
            beside.replace(self.file)


def _name(unit: Unit) -> str:
    return f"{unit.subsystem}/{unit.check}/{unit.which}"
