"""Which part of the package may import which: one that stands above it here, and never one below."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "kafkaspec"
ORDER = (
    "errors", "native", "contract", "language", "explore", "lockstep", "prove", "export", "judge",  # the workbench
    "models", "proofs", "spec", "impl",  # Kafka
    "audit", "audits", "dump",  # what reads Kafka's files
    "mutants", "fleet", "verify",  # what asks all of them
    "report", "cli", "__main__",
)  # fmt: skip
"""Every part, each below those that it may import."""
ENGINES = ("contract", "language", "explore", "lockstep", "prove", "export", "judge", "fleet", "verify", "report")


def imports(text: str) -> Iterator[str]:
    """The parts of the package that a text imports, at its top or within a function."""
    for n in ast.walk(ast.parse(text)):
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


def test_engines_name_no_subsystem() -> None:
    """They find subsystems by their files: not by an import, nor by a clause's id."""
    for part in ENGINES:
        for f in files(part):
            assert not {"spec", "impl", "audits", "proofs"} & set(imports(f.read_text("utf-8"))), f
