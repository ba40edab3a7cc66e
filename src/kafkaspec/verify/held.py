"""What held, and of which texts: a unit need not be asked again while all that it depends on is as it was.

It depends on the modules that it may import, on the recordings that it reads, and on the versions of the tools. That is
known from the texts, without running anything. The engines count for every unit; a module found by its folder (a
subsystem's layer, a rule of the audit) counts as imported by the units that look there; a text which finds modules or
files while it runs, or cannot be read, may come to any file of the project; and one that asks the environment depends
on all of it. A module that lies elsewhere, and is not installed, is an input as it is found. Not seen: what an
installed package does, but for those whose version counts, and what Python runs before anything else (`sitecustomize`).

What was asked of a text that has changed since the beginning is not kept.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import math
import os
import platform
import re
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from kafkaspec.contract.project import PACKAGE
from kafkaspec.contract.subsystem import LAYERS, find, folders, modules, named, roots
from kafkaspec.verify.row import Row, Unit

TOOLS = (
    "z3-solver", "llvmlite", "numpy", "hypothesis", "icontract", "orjson", "cramjam", "crc32c", "packaging",
)  # fmt: skip
"""What decides a row; the other packages only show it."""
READS: Mapping[str, tuple[str, ...]] = {
    "clauses": LAYERS,
    "models": ("models",),
    "proofs": ("models", "proofs"),
    "spec against model": ("spec", "models"),
    "impl against spec": ("spec", "impl", "audits"),
    "impl behind a pipe": ("spec", "impl", "audits"),
    "recordings": ("spec",),
    "simulations": ("spec", "impl"),
    "log directories": (),
    "log directories, damaged": (),
}
"""By a check's name: the layers of the subsystem that it looks at; none for the audit, which has every rule."""
LONG: Mapping[str, float] = {"proofs": 60, "impl against spec": 30, "models": 20, "log directories": 10}
"""How long a unit may take that was never done, in seconds: the longest is begun first."""

_INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_SITES = {"site-packages", "dist-packages"}
"""How folders of what is installed are called: a user's, too, or another environment's behind this one."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\w[\w.]*)[ \t]+import[ \t]+(?:\(([\w\s,]+)\)|([\w \t,]+))"
    r"|import[ \t]+(\w[\w.]*(?:[ \t]+as[ \t]+\w+)?))[ \t]*(?:#.*)?$",
    re.M,
)
"""The plain forms of an import, nothing else on their lines."""
_NAME = re.compile(r"(\w+)(?:[ \t]+as[ \t]+\w+)?")
_FINDS = re.compile(
    r"\b(?:importlib|__import__|__file__|sys\.(?:modules|path)|runpy|pkgutil|resolve_name|PACKAGE)\b|\b(?:exec|eval)\("
    r"|(?<![\w.])(?<!def )open\(|(?:\bos|\))\.open\(|\.(?:read_text|read_bytes|layer)\(|\bRealDisk\("
    r"|\bsubsystem\.(?:find|FILES)\b|\bsubsystem import\b.*\b(?:find|FILES)\b"
)
"""How a text finds a module, or a file, while it runs."""
_WORDS = (
    "importlib", "__import__", "__file__", "sys.", "runpy", "pkgutil", "resolve_name", "PACKAGE", "exec(", "eval(",
    "open(", ".read_text(", ".read_bytes(", ".layer(", "RealDisk(", "subsystem",
)  # fmt: skip
"""One of these is in each text that `_FINDS` finds something in; to look for them takes a tenth of its time."""
OPENERS = [
    PACKAGE / f"{name}.py"
    for name in (
        "impl/common/disk", "impl/common/files", "impl/common/mapped_index", "impl/controller/records",
        "audits/controller/metadata_image", "audits/management/compaction",
    )
]  # fmt: skip
"""These open the files that they are told to, and no others; the records' codec runs a text that it writes itself."""
_ENVIRONMENT = re.compile(r"\b(?:environb?|getenvb?)\b")

Imports = list[tuple[str, list[str]]]
"""The modules that a text imports, each with the names that it takes of it."""


@cache
def _imported(file: Path) -> frozenset[Path]:
    """The files of the package, of the project and of what is not installed that a file imports, at its top or within a
    function."""
    names = {name for module, parts in _imports(file) or () for name in (module, *(f"{module}.{n}" for n in parts))}
    return frozenset(f for name in names for f in _files_of(name))


@cache
def _imports(file: Path) -> Imports | None:
    """What a file imports: by its text, which takes a tenth of the time of its syntax tree, where all of it is plain to
    see there. None if it is no Python."""
    data = file.read_bytes()
    text = data.decode("utf-8", "replace")
    found = _IMPORT.findall(text)
    if len(found) == len(re.findall(r"import\b", text)) and all(part.isascii() for of in found for part in of):
        return [(module or whole.split()[0], _NAME.findall(a or b)) for module, a, b, whole in found]
    return _of_tree(file, data)


def _of_tree(file: Path, data: bytes) -> Imports | None:
    """The same by its syntax tree: as Python reads it, in whatever coding."""
    out: Imports = []
    try:
        tree = ast.parse(data, str(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for n in _statements(tree):
        if isinstance(n, ast.Import):
            out += [(a.name, []) for a in n.names]
        elif isinstance(n, ast.ImportFrom):
            over = _name_of(file).split(".")[: -n.level] if n.level else []
            module = ".".join([*over, *([n.module] if n.module else [])])
            out.append((module, [a.name for a in n.names]))
    return out


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement, within others too; expressions, which are most of a tree, have none."""
    todo: list[ast.AST] = [tree]
    while todo:
        n = todo.pop()
        yield n
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            todo += getattr(n, name, ())


def _name_of(file: Path) -> str:
    """Of a module of the package, of the project, or of their tests; its file's, for another."""
    for folder, head in [*((folder, "kafkaspec") for folder in _folders()), *((root, "") for root in roots())]:
        if file.is_relative_to(folder):
            parts = file.relative_to(folder).with_suffix("").parts
            return ".".join([*([head] if head else []), *parts])
    return file.stem


@cache
def _files_of(name: str) -> tuple[Path, ...]:
    """The files of a module of that name, if it is one of the package or the project, or not installed; of a package's
    every name, "*", its modules."""
    head, _, rest = name.partition(".")
    if name.endswith(".*"):
        package = name[:-2]
        tops = {
            f.parent
            for f in _files_of(package)
            if (f.parent.name, f.name) == (package.rpartition(".")[2], "__init__.py")
        }
        return tuple(sorted(f for folder in tops for f in folder.glob("*.py")))
    parts = name.split(".")
    if head == "kafkaspec":
        out = [f for folder in _folders() if rest for f in _below(folder, parts[1:])]
    else:
        out = [f for root in roots() for f in _below(root, parts)]
    return tuple(out) or _elsewhere(head)


def _below(folder: Path, parts: Sequence[str]) -> list[Path]:
    """The files of a module below a folder, those of the packages that it is in among them."""
    at, files = str(folder), list[str]()
    for part in parts:
        files.append(f"{at}/__init__.py")
        at = f"{at}/{part}"
    return [Path(f) for f in (f"{at}.py", f"{at}/__init__.py", *files) if _is_file(f)]


_is_file = cache(os.path.isfile)


@cache
def _elsewhere(top: str) -> tuple[Path, ...]:
    """The files of a module at the top, if Python finds it where nothing is installed."""
    if top in sys.stdlib_module_names or top == "kafkaspec":
        return ()
    try:
        found = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return ()
    if found is None or not found.origin:
        return ()
    place = Path(found.origin)
    if any(place.is_relative_to(p) for p in _INSTALLED) or _SITES & set(place.parts):
        return ()
    folders = map(Path, found.submodule_search_locations or ())
    return tuple(sorted({place, *(f for folder in folders for f in folder.rglob("*.py"))}))


@cache
def _folders() -> tuple[Path, ...]:
    """The folders that have layers."""
    return tuple(Path(str(f)) for f in folders())


@cache
def _everything() -> tuple[Path, ...]:
    """Every file beside the layers' modules, they among them, and of the tests, but for recordings."""
    files = {f for folder in _folders() for layer in LAYERS for f in folder.glob(f"{layer}/**/*")}
    files |= {f for root in roots() for f in (root / "tests").rglob("*") if "recordings" not in f.parts}
    return tuple(sorted(f for f in files if f.is_file() and "__pycache__" not in f.parts))


def closure(files: Iterable[Path]) -> set[Path]:
    """The files, and all that they import."""
    found, todo = set[Path](), list(files)
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += _imported(file)
    return found


@cache
def _all_reached() -> frozenset[Path]:
    """Every text, and all that they import."""
    return frozenset(closure(f for f in _everything() if f.suffix == ".py"))


@cache
def _engines() -> frozenset[Path]:
    """What runs the checks. Of the layers it is the audit that runs some."""
    names = [PACKAGE / "verify" / "engine.py", PACKAGE / "recordings" / "__init__.py"]
    return frozenset(f for f in closure(names) if _is_engine(f))


@cache
def _is_engine(file: Path) -> bool:
    return file.is_relative_to(PACKAGE) and file.relative_to(PACKAGE).parts[0] not in LAYERS


def inputs(unit: Unit) -> list[Path]:
    """The files that a unit depends on; one that is not there is no less an input."""
    layers, recordings = READS[unit.check], PACKAGE / "recordings"
    every = unit.check == "clauses"  # wherever one is stated, tested or broken, or reported under
    if not layers:
        names = [f"audits.{area}.{name}" for name, area in modules("audits").items()]
        files = {PACKAGE / "audit" / "engine.py", PACKAGE / "audit" / "recorded.py"}
        data = sorted(f for f in (recordings / "audit").rglob("*") if f.is_file())
    else:
        s = find(unit.subsystem)
        names = [f"{layer}.{s.area}.{name}" for layer in layers for name in named(s.name, layer)]
        files = set[Path]()
        data = []
        if every:
            released = [root / "tests" / "released_clauses.txt" for root in roots()]
            data = [PACKAGE / "cli" / "skeleton" / "spec.py.j2", *released]
        if unit.check == "recordings":
            data = [recordings / "manifest.toml", *(recordings / r.file for r in s.recordings)]
    files |= {f for name in names for f in _files_of(f"kafkaspec.{name}")}
    reached = closure(files) | (_all_reached() if every else set())
    if any(_finds(f) for f in reached if not _is_engine(f)):
        data += _everything()
    return sorted({*_engines(), *reached, *data}, key=str)


@cache
def _finds(file: Path) -> bool:
    """Whether a text finds others while it runs, or cannot be read."""
    if file.suffix != ".py":
        return False
    text = "" if file in OPENERS else _text(file)
    found = any(word in text for word in _WORDS) and _FINDS.search(text) is not None
    return found or _imports(file) is None


def _environment(files: Iterable[Path]) -> str:
    """All of it, if a text asks for some."""
    return repr(sorted(os.environ.items())) if any(map(_asks_environment, files)) else ""


@cache
def _asks_environment(file: Path) -> bool:
    if file.suffix != ".py" or _is_engine(file):
        return False
    text = _text(file)
    return "env" in text and _ENVIRONMENT.search(text) is not None


def _text(file: Path) -> str:
    return file.read_text("utf-8", "replace") if file.is_file() else ""


@cache
def _digest(file: Path) -> str:
    return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest() if file.is_file() else ""


def _stamp(file: Path) -> tuple[int, ...]:
    """What another writing of a file changes."""
    with suppress(OSError):
        found = file.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino
    return ()


@cache
def _tools() -> str:
    return " ".join([platform.python_version(), *(f"{t} {metadata.version(t)}" for t in TOOLS)])


def key(unit: Unit, seeds: int) -> str:
    """What a unit's rows follow from."""
    return _key(inputs(unit), seeds)


def _key(files: Sequence[Path], seeds: int) -> str:
    """What rows follow from that have these inputs."""
    lines = [_tools(), str(seeds), _environment(files), *(f"{f} {_digest(f)}" for f in files)]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


def place() -> Path:
    """The file in which it is kept what held: one for each installation."""
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cached / "kafkaspec" / f"held-{hashlib.blake2b(str(PACKAGE).encode(), digest_size=8).hexdigest()}.json"


class PastResults:
    """What held when it was last asked. A file that cannot be read or written is as good as none. To be made before a
    subsystem is imported: what is asked of a text that has changed since is not kept."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = place() if file is None else file
        files = *PACKAGE.rglob("*"), *_everything(), *(PACKAGE / "recordings").rglob("*")
        self.stamps = {f: _stamp(f) for f in files}
        self.known: dict[str, dict[str, Any]] = {}
        self.written = -math.inf
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

    def note(self, unit: Unit, seeds: int, rows: Sequence[Row]) -> None:
        """Keep what was found, if all of it holds."""
        ok = bool(rows) and all(r.ok for r in rows)
        files = inputs(unit) if ok else []
        ok = ok and all(self.stamps.get(f) == _stamp(f) for f in files)
        self.known[_name(unit)] = {
            "key": _key(files, seeds) if ok else "",
            "at": f"{datetime.now():%Y-%m-%d %H:%M}",
            "seconds": sum(r.seconds for r in rows),
            "rows": [asdict(r) for r in rows] if ok else [],
        }
        if time.monotonic() - self.written > 1:
            self.write()

    def write(self) -> None:
        """Into the file. While results come, once a second: all of it is written each time."""
        self.written = time.monotonic()
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            beside = self.file.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps(self.known), "utf-8")
            beside.replace(self.file)


def _name(unit: Unit) -> str:
    return f"{unit.subsystem}/{unit.check}/{unit.which}"
