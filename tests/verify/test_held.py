"""What is not asked again: nothing that something has changed for."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.contract import traceability
from kafkaspec.contract.project import PACKAGE
from kafkaspec.contract.subsystem import Subsystem, subsystems
from kafkaspec.report import describe
from kafkaspec.verify import engine, held
from kafkaspec.verify.engine import AUDITED, CHECKS, established, units, verify
from kafkaspec.verify.row import Row, Unit

UNIT = Unit("leader_epochs", "spec against model", 0)
SEEDS = 4
RIGHT = held._digest
SPEC = {"clauses", "spec against model", "impl against spec", "impl behind a pipe", "recordings"}
"""The checks that depend on how a spec is tried, and on what is released."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Unit]:
    """The units that are asked, in a store of the test's own; the digests of files may be set."""
    out: list[Unit] = []
    monkeypatch.setattr(held, "place", lambda: tmp_path / "held.json")

    def noted(unit: Unit, seeds: int) -> tuple[Unit, list[Row]]:
        out.append(unit)
        return unit, [Row(unit.subsystem, unit.check, "tested", "", 0.1)]

    monkeypatch.setattr(engine, "established", noted)
    return out


def changed(monkeypatch: pytest.MonkeyPatch, *files: str) -> None:
    monkeypatch.setattr(held, "_digest", lambda f: f"new {RIGHT(f)}" if str(f).endswith(files) else RIGHT(f))


def test_what_held_is_not_asked_again_and_says_so(asked: list[Unit]) -> None:
    every = units(["leader_epochs"])
    rows = verify(["leader_epochs"], SEEDS, changed=True)
    assert sorted(map(str, asked)) == sorted(map(str, every))
    asked.clear()
    again = verify(["leader_epochs"], SEEDS, changed=True)
    assert asked == []
    assert [replace(r, held="") for r in again] == rows
    assert all(r.held for r in again)
    assert "held, unchanged since" in str(describe.describe(again)[0].grids)
    verify(["leader_epochs"], SEEDS)
    assert len(asked) == len(every), "without --changed all is asked"
    asked.clear()
    verify(["leader_epochs"], SEEDS + 1, changed=True)
    assert len(asked) == len(every), "other seeds are another question"


@pytest.mark.parametrize(
    ("file", "names", "checks"),
    [
        ("spec/storage/leader_epochs.py", ["leader_epochs"], None),
        ("impl/storage/leader_epochs.py", ["leader_epochs"], {"clauses", "impl against spec", "impl behind a pipe"}),
        ("models/storage/leader_epochs.py", ["leader_epochs"], None),
        ("proofs/storage/leader_epochs.py", ["leader_epochs"], {"clauses", "proofs"}),
        ("audits/storage/leader_epochs.py", ["leader_epochs", "audit"], None),
        ("audits/management/compaction.py", ["audit"], {"log directories", "log directories, damaged"}),
        ("prove/reading.py", ["leader_epochs"], {"clauses", "proofs"}),
        ("explore/kernels.py", ["timeline"], None),
        ("spec/storage/leader_epochs_trial.py", ["leader_epochs"], SPEC),
        ("spec/storage/leader_epochs_released.py", ["leader_epochs"], SPEC),
        ("tests/storage/test_leader_epochs.py", ["leader_epochs"], {"clauses"}),
        ("audits/storage/log_loader.py", ["checkpoints"], {"clauses"}),
        ("impl/storage/segment.py", ["producer_state"], {"clauses"}),
        ("spec/storage/segment.py", ["transaction_index"], {"clauses"}),
        ("tests/released_clauses.txt", ["leader_epochs"], {"clauses"}),
        ("recordings/manifest.toml", ["leader_epochs"], {"recordings"}),
        ("recordings/leader-epoch.ndjson", ["leader_epochs"], {"recordings"}),
        ("recordings/kafka-4.3.0-leader_epochs.ndjson.gz", ["leader_epochs"], {"recordings"}),
        ("recordings/audit/single-basic/nodes-after-clean-stop.tar.gz", ["audit"], {*AUDITED}),
        ("verify/engine.py", ["leader_epochs", "audit"], {*CHECKS, *AUDITED}),
        ("verify/row.py", ["leader_epochs", "audit"], {*CHECKS, *AUDITED}),
    ],
)
def test_what_something_has_changed_for_is_asked_again(
    asked: list[Unit], monkeypatch: pytest.MonkeyPatch, file: str, names: list[str], checks: set[str] | None
) -> None:
    verify(names, SEEDS, changed=True)
    asked.clear()
    changed(monkeypatch, file)
    verify(names, SEEDS, changed=True)
    assert asked
    if checks is not None:
        assert {u.check for u in asked} == checks


def test_every_package_that_decides_a_row_is_a_tool() -> None:
    """The others read the command line, write tables, or find a folder."""
    needed = {re.split(r"[ ;<>=\[]", r)[0] for r in metadata.requires("kafkaspec") or () if "extra ==" not in r}
    assert needed - set(held.TOOLS) == {"rich", "typer", "jinja2", "platformdirs", "typing-extensions"}


def test_another_version_of_a_tool_is_another_question(asked: list[Unit], monkeypatch: pytest.MonkeyPatch) -> None:
    verify(["replicas"], SEEDS, changed=True)
    asked.clear()
    other = lambda tool: "9.9" if tool == "z3-solver" else "1.0"  # noqa: E731
    monkeypatch.setattr(held, "_tools", held._tools.__wrapped__)
    monkeypatch.setattr(metadata, "version", other)
    verify(["replicas"], SEEDS, changed=True)
    assert asked == units(["replicas"])


def test_a_text_that_changes_while_it_is_asked_is_asked_again(
    asked: list[Unit], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as m:

        def meanwhile(unit: Unit, seeds: int) -> tuple[Unit, list[Row]]:
            changed(m, "spec/storage/replicas.py")
            return unit, [Row(unit.subsystem, unit.check, "tested", "", 0.1)]

        m.setattr(engine, "established", meanwhile)
        verify(["replicas"], SEEDS, changed=True)
    changed(monkeypatch, "spec/storage/replicas.py")
    verify(["replicas"], SEEDS, changed=True)
    assert {u.check for u in asked} >= {"impl against spec"}


def test_another_subsystem_s_spec_changes_nothing_here(asked: list[Unit], monkeypatch: pytest.MonkeyPatch) -> None:
    verify(["leader_epochs"], SEEDS, changed=True)
    asked.clear()
    changed(monkeypatch, "spec/controller/timeline.py", "models/controller/timeline.py", "impl/controller/timeline.py")
    verify(["leader_epochs"], SEEDS, changed=True)
    assert asked == []


def test_what_did_not_hold_is_asked_again(asked: list[Unit], monkeypatch: pytest.MonkeyPatch) -> None:
    failing = lambda unit, seeds: (unit, [Row(unit.subsystem, unit.check, "tested", "", 0.1, "no")])  # noqa: E731
    with monkeypatch.context() as m:
        m.setattr(engine, "established", failing)
        assert not any(r.ok for r in verify(["replicas"], SEEDS, changed=True))
    verify(["replicas"], SEEDS, changed=True)
    assert len(asked) == len(units(["replicas"]))


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"replicas/clauses/0": 5}'])
def test_a_store_that_is_damaged_is_as_good_as_none(asked: list[Unit], tmp_path: Path, content: str) -> None:
    (tmp_path / "held.json").write_text(content)
    verify(["replicas"], SEEDS, changed=True)
    assert len(asked) == len(units(["replicas"]))


def test_every_module_that_a_unit_imports_is_among_its_inputs() -> None:
    """What a unit has really loaded, in a process of its own, is what it is said to depend on."""
    for unit in (UNIT, Unit("leader_epochs", "recordings", 0), Unit("leader_epochs", "impl against spec", 0)):
        text = (
            "import sys; from kafkaspec.verify.engine import Unit, established\n"
            f"established({unit!r}, 2)\n"
            "ours = [m.__file__ for n, m in sys.modules.items() if n.startswith('kafkaspec.') and m.__file__]\n"
            "print(*ours, sep='\\n')"
        )
        loaded = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()
        known = {str(f) for f in (*held.inputs(unit), *held.closure([PACKAGE / "verify" / "engine.py"]))}
        assert {f for f in loaded if f not in known} == set()


def test_the_log_directories_do_not_depend_on_a_spec_that_only_drivers_use() -> None:
    """Nothing is asked beside the spec there; where a rule of the audit uses a spec itself, it counts."""
    specs = {f"{f.parts[-2]}/{f.stem}" for f in held.inputs(units(["audit"])[0]) if "spec" in f.parts}
    assert "storage/leader_epochs" not in specs
    assert {"management/compaction", "storage/replicas", "common/kafka"} <= specs
    walked = held.inputs(Unit("leader_epochs", "impl against spec", 0))
    assert any(f.parts[-3:] == ("spec", "storage", "leader_epochs.py") for f in walked)


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("from a import b\n\n\nclass Driver(B):\n    machine = b.machine\n", True),
        ("from a import b\n\n\nclass Driver:\n    def f(self, x: b.T) -> b.T:\n        return x\n", True),
        ("from a import b\n\n\ndef f(x: b.T): ...\n\n\nclass Driver:\n    machine = b.machine\n", False),
        ("from a import b\n\nc = [b.x]\n\n\nclass Driver:\n    machine = b.machine\n", False),
        ("from a import b\n\n\nclass Driver:\n    f = b\n\n\nclass Other(b.T): ...\n", False),
        ("from a import b\n\n\nclass DriverOfAll:\n    machine = b.machine\n", False),
        ("from a import b\n", False),
    ],
)
def test_what_only_a_driver_uses(text: str, alone: bool) -> None:
    assert ("b" in held._of_its_driver(text)) == alone


@pytest.mark.parametrize("s", subsystems().values(), ids=lambda s: s.name)
def test_every_file_that_states_a_clause_is_an_input_of_its_row(s: Subsystem) -> None:
    traceability.load()
    modules = {u.where.partition(":")[0] for c in s.clauses for u in traceability.uses(c.id) if u.form != "test"}
    known = {f.resolve() for f in held.inputs(Unit(s.name, "clauses", 0))}
    files = {name: Path(sys.modules[name].__file__ or "").resolve() for name in modules}
    assert [name for name, file in files.items() if file not in known] == []


def test_processes_say_what_one_does() -> None:
    def said(rows: list[Row]) -> list[tuple[Any, ...]]:
        return [(r.subsystem, r.what, r.word, r.detail, r.why) for r in rows]

    assert said(verify(["replicas", "meta_properties"], 3, jobs=2)) == said(
        verify(["replicas", "meta_properties"], 3, jobs=1)
    )
    assert established(UNIT, 3)[1][0].ok
