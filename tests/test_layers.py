"""Which part of the package may import which: one that stands above it here, and never one below."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from kafkaspec.contract.subsystem import subsystems

PACKAGE = Path(__file__).parent.parent / "src" / "kafkaspec"
ORDER = (
    "errors", "cached", "native", "workers",  # what knows nothing of all that follows
    "contract", "language", "explore", "lockstep", "prove", "export", "judge", "simulate",  # the workbench
    "models", "proofs", "spec", "impl",  # Kafka
    "audit", "audits", "dump",  # what reads Kafka's files
    "mutants", "fleet", "verify",  # what asks all of them
    "report", "cli", "__main__",
)  # fmt: skip
"""Every part, each below those that it may import."""
ENGINES = (
    "contract", "language", "explore", "lockstep", "prove", "export", "judge", "simulate", "fleet", "verify", "report",
)  # fmt: skip

DEFENDED = {
    ("kafkaspec.language.types", "kafkaspec.language.expr"),
    ("kafkaspec.language.model", "kafkaspec.language.concrete"),
}
"""The imports that close a circle of files, and may: docs/decisions/0015 says why."""


@cache
def import_statements(text: str) -> list[ast.Import | ast.ImportFrom]:
    """Those of a text, at its top or within a function; kept, for several tests ask them of the same files."""
    return [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Import | ast.ImportFrom)]


def imports(text: str) -> Iterator[str]:
    """The parts of the package that a text imports, at its top or within a function."""
    for n in import_statements(text):
        if isinstance(n, ast.ImportFrom) and n.module == "kafkaspec":
            yield from (a.name for a in n.names)
        elif isinstance(n, ast.ImportFrom) and n.module and n.module.startswith("kafkaspec."):
            yield n.module.split(".")[1]
        elif isinstance(n, ast.Import):
            yield from (a.name.split(".")[1] for a in n.names if a.name.startswith("kafkaspec."))


def wrong(part: str, text: str) -> list[str]:
    """The imports of a text that go up."""
    known = {*ORDER[: ORDER.index(part) + 1], "__version__"}
    return sorted({i for i in imports(text) if i not in known})


def files(part: str) -> list[Path]:
    folder = PACKAGE / part
    return sorted(folder.resolve().rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{part}.py"]


def test_every_part_has_its_place() -> None:
    there = {p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").is_file()}
    assert there - {"__init__", "recordings"} == set(ORDER)


@pytest.mark.parametrize("part", ORDER)
def test_imports_go_down(part: str) -> None:
    found = {str(f): up for f in files(part) if (up := wrong(part, f.read_text("utf-8")))}
    assert found == {}


def test_an_import_that_goes_up_is_seen() -> None:
    assert wrong("impl", "from kafkaspec.audit.check import Log\n") == ["audit"]
    assert wrong("prove", "def f():\n    from kafkaspec import report\n") == ["report"]
    assert wrong("explore", "import kafkaspec.prove.engine\n") == ["prove"]
    assert wrong("cli", "from kafkaspec.audit.check import Log\n") == []


def imports_tests(text: str) -> bool:
    """Whether a text imports a module of the tests."""
    found = import_statements(text)
    names = [a.name for n in found if isinstance(n, ast.Import) for a in n.names]
    names += [n.module or "" for n in found if isinstance(n, ast.ImportFrom)]
    return any(name.partition(".")[0] == "tests" for name in names)


def test_mutants_are_loaded_where_there_are_no_tests_to_import() -> None:
    """`kafkaspec verify` reads them from any folder, as the program does that pip installs."""
    of = [PACKAGE.parent.parent / "tests" / s.area / f"{s.name}_mutants.py" for s in subsystems().values()]
    assert len([f for f in of if f.exists()]) > 20
    assert [f.name for f in of if f.exists() and imports_tests(f.read_text("utf-8"))] == []
    assert imports_tests("def f():\n    from tests.controller import made\n")


def test_engines_name_no_subsystem() -> None:
    """They find subsystems by their files: not by an import, nor by a clause's id."""
    for part in ENGINES:
        for f in files(part):
            assert not {"spec", "impl", "audits", "proofs"} & set(imports(f.read_text("utf-8"))), f


def names(text: str) -> set[str]:
    """Everything that a text imports, by whole names."""
    out: set[str] = set()
    for n in import_statements(text):
        if isinstance(n, ast.ImportFrom):
            out |= {f"{n.module}.{a.name}" for a in n.names}
        else:
            out |= {a.name for a in n.names}
    return out


FINDERS = r"importlib\b|pkgutil\b|runpy\b|kafkaspec\.contract\.subsystem\.(find|subsystems|modules)\b"
"""By which a module is had without an import of it. Relative imports are refused by ruff."""


def specs(text: str) -> list[str]:
    """What a text imports of subsystems' specs: of all but what specs share; and what it might find them by."""
    return sorted(n for n in names(text) if re.match(rf"kafkaspec\.spec(?!\.(common|\*)\b)|{FINDERS}", n))


def drivers(text: str) -> list[str]:
    return sorted(n for n in names(text) if re.match(r"kafkaspec\.(impl|audits)\.\w+\.\w+_(driver|simulation)\b", n))


def is_driver(file: Path) -> bool:
    """It stands between a spec and an implementation: the spec walks beside it, or watches it in a simulation."""
    return file.stem.endswith(("_driver", "_simulation"))


@pytest.mark.parametrize("part", ["impl", "audits"])
def test_only_drivers_import_a_subsystem_s_spec(part: str) -> None:
    found = {str(f): of for f in files(part) if not is_driver(f) and (of := specs(f.read_text("utf-8")))}
    assert found == {}


def test_what_specs_share_imports_no_subsystem_s_spec() -> None:
    found = {f.name: of for f in files("spec") if f.parent.name == "common" and (of := specs(f.read_text("utf-8")))}
    assert found == {}


@pytest.mark.parametrize("part", ORDER)
def test_only_drivers_import_a_driver(part: str) -> None:
    found = {str(f): of for f in files(part) if not is_driver(f) and (of := drivers(f.read_text("utf-8")))}
    assert found == {}


def test_an_import_of_a_spec_or_a_driver_is_seen() -> None:
    assert specs("from kafkaspec.spec.a import b") == ["kafkaspec.spec.a.b"]
    assert all(map(specs, ("def f():\n    from kafkaspec.spec.a.b import c", "import kafkaspec.spec.a.b")))
    assert all(
        map(specs, ("from kafkaspec import spec", "import kafkaspec.spec", "from kafkaspec.spec import storage"))
    )
    assert all(map(specs, ("import importlib", "from kafkaspec.contract.subsystem import find")))
    assert specs("from kafkaspec.spec.common import kafka\nfrom kafkaspec.spec.common.kafka import INT_MAX\n") == []
    texts = "from kafkaspec.impl.a import b_driver", "import kafkaspec.audits.a.b_driver"
    assert all(map(drivers, (*texts, "from kafkaspec.impl.a.b_driver import Driver")))
    assert drivers("from kafkaspec.impl.a import b") == []


def modules() -> dict[str, ast.Module]:
    """The package's files by the names of their modules."""
    out: dict[str, ast.Module] = {}
    for part in ORDER:
        for f in files(part):
            below = f.relative_to((PACKAGE / part).resolve()).with_suffix("").parts if f.stem != part else ()
            name = ".".join(("kafkaspec", part, *(p for p in below if p != "__init__")))
            out[name] = ast.parse(f.read_text("utf-8"))
    return out


def imported(tree: ast.AST, known: Mapping[str, ast.Module]) -> Iterator[str]:
    """The modules that a file imports when it runs, at its top or within a function: types alone are none."""
    for n in ast.iter_child_nodes(tree):
        if isinstance(n, ast.If) and any("TYPE_CHECKING" in vars(x).values() for x in ast.walk(n.test)):
            continue
        if isinstance(n, ast.ImportFrom) and n.module:
            yield from (full if (full := f"{n.module}.{a.name}") in known else n.module for a in n.names)
        elif isinstance(n, ast.Import):
            yield from (a.name for a in n.names)
        elif isinstance(n, ast.stmt | ast.excepthandler | ast.match_case):  # within an expression there is none
            yield from imported(n, known)


Graph = Mapping[str, set[str]]
"""module -> those of ours that it imports"""


def graph_of(known: Mapping[str, ast.Module]) -> Graph:
    return {m: {i for i in imported(tree, known) if i in known} for m, tree in known.items()}


def circle(graph: Graph, defended: set[tuple[str, str]]) -> list[str]:
    """Modules that import each other in a circle, by other imports than those defended; none if there is none."""
    left = {m: {i for i in of if (m, i) not in defended} for m, of in graph.items()}
    try:
        TopologicalSorter(left).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    known = graph_of(modules())
    assert {"kafkaspec.explore.engine", "kafkaspec.errors", "kafkaspec.spec.storage.batch", "kafkaspec.cli"} <= set(
        known
    )
    assert circle(known, DEFENDED) == []
    for one in DEFENDED:
        assert set(one) <= set(circle(known, DEFENDED - {one})), "a circle that is none needs no defence"


def test_a_circle_is_seen_within_functions_too() -> None:
    texts = {"a": "import b", "b": "def f():\n    from c import x", "c": "import a"}
    assert set(circle(graph_of({m: ast.parse(t) for m, t in texts.items()}), set())) == {"a", "b", "c"}
    texts["c"] = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a"
    assert circle(graph_of({m: ast.parse(t) for m, t in texts.items()}), set()) == []
