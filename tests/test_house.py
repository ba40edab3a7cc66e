"""The house: packages that install, habits that are kept."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import kafkaspec
from kafkaspec.audit.recorded import unpack
from kafkaspec.contract.subsystem import LAYERS
from kafkaspec.judge.target import TargetTrouble

ROOT = Path(__file__).parent.parent
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info", "site", "out"
)


def run(*command: str | Path, cwd: Path, expect: int = 0) -> str:
    """Standard output of a command that ends as expected; its errors are the failure's text."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "COLUMNS", "HYPOTHESIS_PROFILE")}
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == expect, f"{shlex.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_layers_are_linked_into_the_package() -> None:
    for layer in ("spec", "impl", "audits", "models", "proofs"):
        link = ROOT / "src" / "kafkaspec" / layer
        assert link.is_symlink(), link
        assert link.resolve() == ROOT / layer


@pytest.mark.first
@pytest.mark.parametrize("dependencies", ["ours", pytest.param("its own", marks=pytest.mark.deep)])
def test_the_wheel_that_is_made_of_the_sdist_installs_and_runs(dependencies: str, tmp_path: Path) -> None:
    """Built from a copy of the checkout, installed into an empty environment, run from elsewhere. `build` makes the
    sdist of the checkout, and the wheel of the sdist. What it is built with and what it depends on is installed anew,
    or taken from here."""
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, symlinks=True, ignore=NOT_COPIED)
    isolation = ["--no-isolation"] if dependencies == "ours" else []
    run(sys.executable, "-m", "build", *isolation, "--outdir", tmp_path / "dist", source, cwd=tmp_path)
    shutil.rmtree(source)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    (sdist,) = (tmp_path / "dist").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as z:
        inside = set(z.namelist())
    assert {"kafkaspec/py.typed", "kafkaspec/spec/controller/timeline.py", "kafkaspec/cli/main.py"} <= inside
    with tarfile.open(sdist) as t:
        assert any(n.endswith("/LICENSE") for n in t.getnames())
    venv.create(tmp_path / "empty")
    bin = tmp_path / "empty" / ("Scripts" if os.name == "nt" else "bin")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        bin / "python",
        "install",
        "--quiet",
        "--no-compile",
    ]
    if dependencies == "ours":  # behind its own: kafkaspec is the wheel's
        (site,) = (tmp_path / "empty").glob("lib/python*/site-packages")
        (site / "ours.pth").write_text(sysconfig.get_path("purelib"))
        pip.append("--no-deps")
    run(*pip, wheel, cwd=elsewhere)
    program = "import kafkaspec, kafkaspec.spec.controller.timeline; print(kafkaspec.__file__)"
    assert str(tmp_path / "empty") in run(bin / "python", "-c", program, cwd=elsewhere)
    assert "explore" in run(bin / "kafkaspec", "--help", cwd=elsewhere)
    run(bin / "kafkaspec", "new", "toy", "fence", "FEN", cwd=elsewhere)
    held = run(bin / "kafkaspec", "verify", "fence", cwd=elsewhere)
    assert "impl against spec" in held
    assert "audit against spec" in held


def test_the_version_is_the_same_wherever_it_stands() -> None:
    """In the project's data, in the package, and as the newest dated section of the changelog, below an Unreleased."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    sections = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert project["version"] == kafkaspec.__version__
    assert sections[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(kafkaspec.__version__)} - \d{{4}}-\d\d-\d\d", sections[1])


# ---- habits ----------------------------------------------------------------------------------------------------------
def test_no_rules_are_too_long_to_be_read_at_a_sitting() -> None:
    files = (ROOT / "spec").rglob("*.py")
    lines = {str(p.relative_to(ROOT)): len(p.read_text("utf-8").splitlines()) for p in files}
    assert len(lines) > 40
    assert {name: n for name, n in lines.items() if n > 800} == {}


def ci_commands() -> dict[str, str]:
    """The steps of the workflow in docs/ci.md that call kafkaspec, by name."""
    (text,) = re.findall(
        r"^```yaml .*?\n(.*?)^```$", (ROOT / "docs" / "ci.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    jobs = yaml.safe_load(text)["jobs"]
    steps = [s for job in jobs.values() for s in job["steps"] if "kafkaspec " in s.get("run", "")]
    return {s["name"]: s["run"] for s in steps}


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def in_ci(step: str, folder: Path, target: str) -> subprocess.CompletedProcess[str]:
    """A step of docs/ci.md as GitHub runs it, in a folder with a target and what brokers and earlier runs left."""
    example = ROOT / "targets" / "examples" / "python" / target
    script(folder / "my-target", f'exec "{sys.executable}" "{example}"')
    (folder / "bin").mkdir()
    script(folder / "bin" / "kafkaspec", f'exec "{sys.executable}" -m kafkaspec "$@"')
    (folder / "traces").mkdir()
    (folder / "traces" / "kip-279.ndjson").write_text(KIP_279)
    recorded = ROOT / "tests" / "recordings" / "audit" / "single-basic" / "nodes-after-clean-stop.tar.gz"
    unpack(recorded, folder / "data")
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-e", "-c", ci_commands()[step]], cwd=folder, env=environment, capture_output=True, text=True
    )


KIP_279 = """\
{"i":0,"op":"init","args":{"deferred":false}}
{"i":1,"op":"assign","args":{"epoch":0,"startOffset":0}}
{"i":2,"op":"assign","args":{"epoch":2,"startOffset":1}}
{"i":3,"op":"endOffsetFor","args":{"requestedEpoch":1,"logEndOffset":1}}
"""
"""What the faulty target answers wrongly."""


@pytest.mark.parametrize("step", ["Ask known histories again", pytest.param("Judge", marks=pytest.mark.deep)])
@pytest.mark.parametrize(("target", "status"), [("faulty.py", 1), ("leader_epochs.py", 0)])
def test_the_judge_of_the_recipe_for_ci_works(step: str, target: str, status: int, tmp_path: Path) -> None:
    done = in_ci(step, tmp_path, target)
    assert done.returncode == status, done.stdout + done.stderr
    if step == "Judge":
        assert ("<failure" in (tmp_path / "judged.xml").read_text()) == bool(status)
        assert any((tmp_path / "out" / "judge").glob("*.ndjson")) == bool(status)


def test_the_audit_of_the_recipe_for_ci_works(tmp_path: Path) -> None:
    done = in_ci("Audit", tmp_path, "leader_epochs.py")
    assert done.returncode == 0, done.stderr
    (audited,) = json.loads((tmp_path / "audit.json").read_text())
    assert audited["verdict"] == "sound"
    assert audited["directories"]


def test_ci_runs_what_the_project_says_that_it_runs() -> None:
    """One job, with the Python that the classifiers name, and no right to write."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    steps = [s for job in workflow["jobs"].values() for s in job["steps"]]
    tested = [s["with"]["python-version"] for s in steps if "python-version" in s.get("with", {})]
    claimed = [c.rpartition(" ")[2] for c in project["classifiers"] if re.fullmatch(r".* :: Python :: \d\.\d+", c)]
    assert workflow["permissions"] == {"contents": "read"}
    assert [s["run"] for s in steps if "run" in s] == [".ci/run"]
    assert tested == claimed


def test_the_form_for_a_target_names_every_trouble() -> None:
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "target-trouble.yml").read_text("utf-8"))
    (named,) = [field["attributes"]["options"] for field in form["body"] if field.get("id") == "trouble"]
    assert tuple(named[: len(TargetTrouble.KINDS)]) == TargetTrouble.KINDS


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md"])
def test_what_a_page_for_contributors_names_is_there(page: str) -> None:
    """Its links, its paths (a word in angle brackets stands for any name), and the targets of make."""
    text = (ROOT / page).read_text("utf-8")
    named = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    named += [w for w in re.findall(r"`([\w.<>/-]+)`", text) if "/" in w or w.endswith((".md", ".toml"))]
    missing = [p for p in named if not any(ROOT.glob(re.sub(r"<\w+>", "*", p.rstrip("/"))))]
    assert named
    assert missing == []
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert [t for t in re.findall(r"(?:^|`)make ([\w-]+)", text, re.MULTILINE) if f"\n{t}:" not in makefile] == []


PARTICIPLE = re.compile(r"_?[A-Z][a-z]*(ed|ing|en|wn|ld|un|ght|ept|aken|ade|een)")
NOUNS = {
    "Ending",
    "Field",
    "Finding",
    "Need",
    "Run",
    "_Run",
    "Nothing",
    "Old",
    "Packing",
    "Reading",
    "_Reading",
    "Recording",
    "Setting",
    "When",
    "World",
}
TERMS = {"Aborted", "Paused", "Refused", "Unordered", "Frozen", "Bounded"}
"""Two states of Kafka's cleaner; what a call comes to; and words that say of a type what it is."""


def test_a_class_is_named_by_a_noun() -> None:
    """Not by a bare participle, unless it is an error, a state of an enumeration, or a model by its disturbance."""
    named = [
        f"{f.relative_to(ROOT)}: {n.name}"
        for folder in (*LAYERS, "src", "docs", "bench", "tests")
        for f in sorted((ROOT / folder).rglob("*.py"))
        if any(map(PARTICIPLE.fullmatch, re.findall(r"^\s*class (\w+)", text := f.read_text("utf-8"), re.MULTILINE)))
        for n in ast.walk(ast.parse(text))
        if isinstance(n, ast.ClassDef) and PARTICIPLE.fullmatch(n.name) and n.name not in NOUNS | TERMS
        if folder != "tests" or not n.bases or ast.unparse(n.bases[0]) == "NamedTuple"  # those that are faults may be
        if not any(re.search(r"Error|Exception|Interrupt|Enum|Network|Generations", ast.unparse(b)) for b in n.bases)
    ]
    assert named == []
    assert all(map(PARTICIPLE.fullmatch, ("Judged", "Shown", "Told", "Made", "_Kept")))
    assert not PARTICIPLE.fullmatch("AuditResult")


ALIKE = {
    "CHAPTER": "of each spec its own",
    "DIRECTORY": "where a driver has its files: of each its own",
    "INT_BITS": "of a varint, and of a number in a text",
    "KEY": "a column of the explorer's table, and of the audit's",
    "LOG_OVERHEAD": "the compiled decoder is an implementation of its own, compared with the other one",
    "MAGIC_END": "the scan reads segments by itself, as the segment's own recovery does",
    "NO_EPOCH": "of a producer, and of a leader",
    "OVERHEAD": "see LOG_OVERHEAD",
    "VERSION": "of each file format its own",
    "WORD": "a word of a packed state, and one that compiled code computes in",
}
"""Constants of one name and value that mean several things, or that two implementations state apart."""
PLAIN = (int, float, str, bytes, tuple, list, dict, set, frozenset, re.Pattern)


def constants(text: str) -> Iterator[str]:
    """The names of a module's constants, but of those that are another module's: `NONE = legacy.NONE`."""
    for n in ast.parse(text).body:
        if not isinstance(n, ast.Assign | ast.AnnAssign) or n.value is None:
            continue
        for target in n.targets if isinstance(n, ast.Assign) else [n.target]:
            pairs = [(target, n.value)]
            if isinstance(target, ast.Tuple):
                values = n.value.elts if isinstance(n.value, ast.Tuple) else [n.value] * len(target.elts)
                pairs = list(zip(target.elts, values, strict=True))
            for name, value in pairs:
                of_another = isinstance(value, ast.Attribute) and isinstance(name, ast.Name) and value.attr == name.id
                if isinstance(name, ast.Name) and name.id.isupper() and not of_another:
                    yield name.id


def test_a_constant_is_defined_once() -> None:
    """But for a spec and its implementation: each states it by itself, or one mistake would be in both."""
    found: dict[tuple[str, type[Any], str], list[str]] = defaultdict(list)
    for folder in ("src/kafkaspec", "spec", "impl", "audits", "models"):
        base = ROOT / folder if folder.startswith("src") else ROOT
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = file.relative_to(base).with_suffix("").parts
            names = [] if file.name == "__main__.py" else [*constants(file.read_text("utf-8"))]
            module = importlib.import_module(".".join(("kafkaspec", *parts))) if names else None
            for name in names:
                value = getattr(module, name)
                if isinstance(value, PLAIN):
                    found[name, type(value), repr(value)].append(".".join(parts))
    twice: dict[str, list[str]] = {}
    for (name, _, _), where in found.items():
        of_specs = [w for w in where if w.startswith("spec.")]
        of_others = [w for w in where if not w.startswith("spec.")]
        if len(of_specs) > 1 or len(of_others) > 1:
            twice[name] = where
    assert {name: where for name, where in twice.items() if name not in ALIKE} == {}
    assert ALIKE.keys() <= twice.keys(), "a reason that is of none"


def test_a_constant_that_is_another_module_s_is_no_definition() -> None:
    text = "A, B = other.A, 2\nC: int = other.C\nD: int = other.E\nF, G = range(2)\nlower = 1\nH = I = 3\n"
    assert [*constants(text)] == ["B", "D", "F", "G", "H", "I"]
