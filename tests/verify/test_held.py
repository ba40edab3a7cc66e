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
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import Subsystem, subsystems
from kafkaspec.report import describe
from kafkaspec.verify import engine, held
from kafkaspec.verify.engine import AUDITED, CHECKS, established, units, verify
from kafkaspec.verify.row import Row, Unit

UNIT = Unit("leader_epochs", "spec against model", 0)
SEEDS = 4
RIGHT = held._digest
MODELS = {"models", "proofs", "spec against model"}
ALL = {*CHECKS} - {"simulations"}
"""Of the smallest subsystems none has a simulation."""
OTHERS = [
    Unit("last_stable", "simulations", 0),
    UNIT,
    Unit("leader_epochs", "models", 0),
    Unit("leader_epochs", "proofs", 0),
    Unit("audit", "log directories", 0),
]
"""What the smallest subsystem does not have."""
SPEC = {"clauses", "spec against model", "impl against spec", "impl behind a pipe", "recordings"}
"""The checks that depend on how a spec is tried, and on what is released."""
DRIVEN = {"clauses", "impl against spec", "impl behind a pipe"}
"""The checks that depend on a driver."""


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
        ("impl/storage/leader_epochs.py", ["leader_epochs"], DRIVEN),
        ("models/storage/leader_epochs.py", ["leader_epochs"], None),
        ("proofs/storage/leader_epochs.py", ["leader_epochs"], {"clauses", "proofs"}),
        (
            "audits/storage/leader_epochs.py",
            ["leader_epochs", "audit"],
            {*DRIVEN, *AUDITED},
        ),
        ("impl/storage/leader_epochs_driver.py", ["leader_epochs", "audit"], DRIVEN),
        ("audits/storage/leader_epochs_driver.py", ["leader_epochs", "audit"], DRIVEN),
        ("impl/storage/leader_epochs.py", ["log_loader"], DRIVEN),
        ("impl/storage/leader_epochs.py", ["audit"], {*AUDITED}),
        ("spec/common/compression.py", ["audit"], {*AUDITED}),
        ("audits/management/compaction.py", ["audit"], {"log directories", "log directories, damaged"}),
        ("prove/reading.py", ["leader_epochs"], {"clauses", "proofs"}),
        ("explore/kernels.py", ["timeline"], None),
        ("contract/subsystem.py", ["leader_epochs", "audit"], {*ALL, *AUDITED}),
        ("contract/recording.py", ["leader_epochs", "audit"], {*ALL, *AUDITED}),
        ("mutants/mutant.py", ["leader_epochs"], {"clauses"}),
        ("models/__init__.py", ["leader_epochs"], None),
        ("proofs/__init__.py", ["leader_epochs"], {"clauses", "proofs"}),
        ("models/storage/segment.py", ["transaction_index"], {"clauses"}),
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
        ("verify/engine.py", ["leader_epochs", "audit"], {*ALL, *AUDITED}),
        ("verify/row.py", ["leader_epochs", "audit"], {*ALL, *AUDITED}),
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


@pytest.mark.parametrize("when", ["before it is imported", "while it is asked"])
def test_what_was_asked_of_a_text_that_changes_meanwhile_is_not_kept(
    asked: list[Unit], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Which of the two texts was asked, nobody knows."""
    spec = PACKAGE / "spec" / "storage" / "replicas.py"
    right, written = held._stamp, set[Path]()
    monkeypatch.setattr(held, "_stamp", lambda f: (*right(f), 1) if f in written else right(f))

    def meanwhile(unit: Unit, seeds: int) -> tuple[Unit, list[Row]]:
        written.add(spec)
        return unit, [Row(unit.subsystem, unit.check, "tested", "", 0.1)]

    def imported(*names: Any) -> list[Unit]:
        written.add(spec)
        return units(*names)

    with monkeypatch.context() as m:
        if when == "while it is asked":
            m.setattr(engine, "established", meanwhile)
        else:
            m.setattr(engine, "units", imported)
        verify(["replicas"], SEEDS, changed=True)
    asked.clear()
    verify(["replicas"], SEEDS, changed=True)
    assert {u.check for u in asked} == {u.check for u in units(["replicas"])}


def test_another_subsystem_s_spec_changes_nothing_here(asked: list[Unit], monkeypatch: pytest.MonkeyPatch) -> None:
    verify(["leader_epochs"], SEEDS, changed=True)
    asked.clear()
    changed(monkeypatch, "spec/controller/timeline.py", "models/controller/timeline.py", "impl/controller/timeline.py")
    verify(["leader_epochs"], SEEDS, changed=True)
    assert {u.check for u in asked} == {"clauses"}, "which may stand anywhere"


def test_a_spec_changes_nothing_for_the_audit_nor_where_its_implementation_is_used(
    asked: list[Unit], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loader uses the leader epochs' implementation, and the audit both that and their rules."""
    verify(["log_loader", "audit"], SEEDS, changed=True)
    assert {u.subsystem for u in asked} == {"log_loader", "audit"}
    asked.clear()
    changed(monkeypatch, "spec/storage/leader_epochs.py")
    verify(["log_loader", "audit"], SEEDS, changed=True)
    assert asked == [Unit("log_loader", "clauses", 0)]


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


@pytest.mark.parametrize(
    "unit", [*(Unit("meta_properties", c, 0) for c in CHECKS if c in ALL and c not in MODELS), *OTHERS], ids=str
)
def test_every_module_that_a_unit_imports_is_among_its_inputs(unit: Unit) -> None:
    """What a unit has really loaded, in a process of its own, is what it is said to depend on; but for the layers that
    are imported with the engine itself, before any unit is asked."""
    text = (
        "import sys; from kafkaspec.verify.engine import Unit, established\n"
        "with_the_engine = {*sys.modules}\n"
        f"established({unit!r}, 2)\n"
        "ours = [m for n, m in sys.modules.items() if n.split('.')[0] in ('kafkaspec', 'tests') and m.__file__]\n"
        "print(*(m.__file__ for m in ours if m.__name__ not in with_the_engine), sep='\\n')"
    )
    loaded = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()
    assert len(loaded) > 3
    known = {f.resolve() for f in held.inputs(unit)}
    assert [f for f in loaded if Path(f).resolve() not in known] == []


IMPORTS = {
    "from kafkaspec.impl.common.disk import Disk": {"impl/common/disk.py"},
    "from kafkaspec.impl.common.disk import *": {"impl/common/disk.py"},
    "from kafkaspec.impl.common import disk as d, files": {"impl/common/disk.py", "impl/common/files.py"},
    "from kafkaspec.impl.common import (  # (beside the disk)\n    disk,\n)": {"impl/common/disk.py"},
    "from kafkaspec.impl.common import \\\n    disk": {"impl/common/disk.py"},
    "import(kafkaspec)": set[str](),
    "import math; from kafkaspec.impl.common import disk": {"impl/common/disk.py"},
    "if True: from kafkaspec.impl.common import disk": {"impl/common/disk.py"},
    "def f():\n    from kafkaspec.impl.common import disk": {"impl/common/disk.py"},
    **{
        f"{before}; from kafkaspec.impl.common import disk{after}": {"impl/common/disk.py"}
        for before, after in (
            ("if f:\n    pass\nelse:\n    math = 1", ""),
            ("try:\n    pass\nexcept ValueError:\n    math = 1", ""),
            ("try:\n    pass\nfinally:\n    math = 1", ""),
            ("match f:\n    case 1:\n        math = 1", ""),
            ("class C:\n    async def f():\n        async with f:\n            math = 1", "\n"),
        )
    },
    "import kafkaspec.impl.common.disk as d": {"impl/common/disk.py"},
    "import math, kafkaspec.impl.common.disk": {"impl/common/disk.py"},
    "from ..common import disk": {"impl/common/disk.py"},
    "from . import offset_index": {"impl/storage/offset_index.py"},
    "from .offset_index import Driver": {"impl/storage/offset_index.py"},
    "from tests.judge import toy": {"judge/toy.py"},
    '"""What a word is: import."""\nfrom kafkaspec.impl.common import disk': {"impl/common/disk.py"},
    "\ufefffrom kafkaspec.impl.common import disk": {"impl/common/disk.py"},
    "# coding: latin-1\né = 1\nimport math; import kafkaspec.impl.common.disk": {"impl/common/disk.py"},
    "from kafkaspec.impl.common.\uff44\uff49\uff53\uff4b import Disk": {"impl/common/disk.py"},
}


@pytest.mark.parametrize("text", IMPORTS)
def test_an_import_counts_however_it_is_written(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, right = PACKAGE / "impl" / "storage" / "leader_epochs.py", Path.read_bytes
    data = text.encode("latin-1" if "latin-1" in text else "utf-8")
    monkeypatch.setattr(Path, "read_bytes", lambda f: data if f == file else right(f))
    monkeypatch.setattr(held, "_imports", held._imports.__wrapped__)
    found = {"/".join(f.parts[-3:]) for f in held._imported.__wrapped__(file) if f.name != "__init__.py"}
    assert found == {f if f.startswith("impl") else f"tests/{f}" for f in IMPORTS[text]}


FINDS = (
    "importlib.import_module(name)",
    "Path(__file__).with_name('x')",
    "eval('spec')",
    "from kafkaspec.contract.project import PACKAGE",
    "from kafkaspec.contract.subsystem import FILES",
    "from kafkaspec.contract.subsystem import LAYERS, find",
    "Subsystem('quota', 'storage').layer('impl')",
    "Path('impl/common/tx.txt').read_text()",
    "with open('x') as f:",
    "Path('x').open()",
    "os.open('x', 0)",
    "pkgutil.resolve_name('a:b')",
    "sys.path.insert(0, 'x')",
)


def test_what_cannot_be_read_may_come_to_every_file(tmp_path: Path) -> None:
    for n, data in enumerate((b"import math, os\ndef f(:", b"import math, os\0")):
        (file := tmp_path / f"{n}.py").write_bytes(data)
        assert held._finds(file), data


def test_the_environment_counts_where_it_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (asks := tmp_path / "asks.py").write_text("import os\nLIMIT = int(os.environ.get('LIMIT', 1))\n")
    (other := tmp_path / "other.py").write_text("LIMIT = 1  # of the environment\n")
    before = held._environment([asks, other])
    monkeypatch.setenv("LIMIT", "2")
    assert before != held._environment([asks, other])
    assert held._environment([other]) == ""


def test_a_module_that_is_not_installed_is_an_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ours_elsewhere.py").write_text("LIMIT = 1\n")
    (tmp_path / "ours_package").mkdir()
    for name in ("__init__", "below"):
        (tmp_path / "ours_package" / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert held._files_of("ours_elsewhere.x") == (tmp_path / "ours_elsewhere.py",)
    assert {f.stem for f in held._files_of("ours_package")} == {"__init__", "below"}
    assert held._files_of("numpy") == held._files_of("json") == held._files_of("nowhere_at_all") == ()


def test_what_is_installed_behind_the_environment_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = tmp_path / "lib" / "site-packages"
    site.mkdir(parents=True)
    (site / "ours_installed.py").touch()
    monkeypatch.syspath_prepend(site)
    assert held._files_of("ours_installed") == ()


def test_what_finds_its_modules_while_it_runs_depends_on_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = Unit("replicas", "impl against spec", 0)
    few = held.inputs(unit)
    monkeypatch.setattr(held, "_finds", lambda f: f.parts[-3:] == ("audits", "storage", "replicas.py"))
    assert len(held.inputs(unit)) > len(few) + 300
    for text in FINDS:
        assert held._FINDS.search(text), text
        assert any(word in text for word in held._WORDS), text


def test_no_module_of_the_layers_finds_others_while_it_runs() -> None:
    """Else everything would be asked again after each change."""
    assert [f for f in held._everything() if "tests" not in f.parts and f.suffix == ".py" and held._finds(f)] == []


def test_recordings_are_inputs_wherever_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    there = (Recording("below/x.trace", "accepted", subsystem="replicas"),)
    monkeypatch.setattr(Subsystem, "recordings", there)
    assert PACKAGE / "recordings" / "below" / "x.trace" in held.inputs(Unit("replicas", "recordings", 0))


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
