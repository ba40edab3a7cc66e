"""`kafkaspec new`: a newcomer's subsystem holds in every row beside the built-in ones, and is red when it is broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.cli import new
from kafkaspec.cli.main import main
from kafkaspec.contract.project import MARKER, PACKAGE, project
from kafkaspec.contract.subsystem import LAYERS, ROLES, Subsystem
from kafkaspec.errors import UserError
from kafkaspec.fleet import session
from tests.test_clauses import alike

ROOT = Path(__file__).parent.parent.parent
FENCE = new.Skeleton("toy", "fence", "FEN")
LONG = new.Skeleton("a" * new.MOST_LETTERS, "b" * new.MOST_LETTERS, "LNG")


def command(*words: str, cwd: Path, expect: int = 0, package: Path | None = None) -> str:
    """Standard output of a kafkaspec that a newcomer runs there, errors behind it; `package` is where it is imported
    from, if not from where we are."""
    environment = {**os.environ, "PYTHONPATH": str((PACKAGE if package is None else package).parent)}
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == expect, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def run(*words: str, cwd: Path, expect: int = 0, package: Path | None = None) -> str:
    return command("-m", "kafkaspec", *words, cwd=cwd, expect=expect, package=package)


def rows(text: str) -> dict[str, dict[str, Any]]:
    """The rows of `verify --json`, by what they claim."""
    return {r["what"]: r for r in json.loads(text)}


def content(folder: Path) -> dict[str, str]:
    files = (f for f in folder.rglob("*") if f.is_file() and f.suffix in (".py", ".md", ".toml", ".yml"))
    return {str(f.relative_to(folder)): f.read_text("utf-8") for f in files}


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one subsystem, as a newcomer makes it."""
    folder = tmp_path_factory.mktemp("mine")
    said = run("new", "toy", "fence", "FEN", cwd=folder)
    assert {line.split()[1] for line in said.splitlines()[:-1]} == content(folder).keys()
    return folder


# ---- a project of one's own ------------------------------------------------------------------------------------------
def test_every_row_holds(mine: Path) -> None:
    found = rows(run("verify", "fence", "--seeds", "20", "--json", cwd=mine / "spec"))
    assert {what: r["word"] for what, r in found.items()} == {
        "clauses": "complete",
        "model Fence": "explored",
        "invariants of Fence": "proved",
        "spec against Fence": "explored",
        "impl against spec": "tested",
        "audit against spec": "tested",
        "impl behind a pipe": "judged",
        "cost": "counted",
    }
    assert [r["why"] for r in found.values()] == [""] * len(found)


def test_its_tests_name_what_they_exercise(mine: Path) -> None:
    assert alike((mine / "tests" / "toy" / "test_fence.py").read_text("utf-8")) == {}


@pytest.mark.parametrize("id", ["FEN-1", "FEN-2", "FEN-3", "FEN-4"])
def test_every_form_of_a_clause_is_shown_with_its_line(mine: Path, id: str) -> None:
    told = json.loads(run("explain", id, "--json", cwd=mine))
    everywhere = {"spec", "impl", "model", "proof", "test", "mutant"}
    assert {f["form"] for f in told["forms"]} == everywhere | ({"audit"} if id == "FEN-4" else set())
    for form in told["forms"]:
        file, _, line = form["place"].partition(":")
        assert (mine / file).read_text("utf-8").splitlines()[int(line) - 1].strip(), form


def test_every_mutant_is_killed(mine: Path) -> None:
    said = json.loads(run("mutants", "fence", "--json", cwd=mine))
    killed = {r["mutant"]["name"]: any(d["killed"] for d in r["detections"].values()) for r in said}
    assert {"first holder", "same epoch", "any holder", "one line back"} < killed.keys()
    assert all(killed.values()), killed
    (same,) = (r for r in said if r["mutant"]["name"] == "same epoch")
    assert same["detections"]["audit"]["by"].startswith("FEN-4: fence-epochs: "), "seen in the file alone"


def test_its_tests_pass_without_a_warning(mine: Path) -> None:
    said = command("-m", "pytest", "-q", "-W", "error", "--strict-markers", "-p", "no:cacheprovider", cwd=mine)
    assert "5 passed" in said


@pytest.mark.parametrize(
    ("file", "right", "wrong", "check", "red"),
    [
        ("impl/toy/fence.py", "epoch <= self", "epoch < self", "impl against spec", "impl against spec"),
        ("models/toy/fence.py", "require(e > s.epoch)", "require(e >= s.epoch)", "models", "model Fence"),
        ("models/toy/fence.py", "distinct=7", "distinct=8", "models", "model Fence"),
        ("spec/toy/fence.py", "Fence(epoch, client) if epoch", "Fence(epoch) if epoch", "spec against model",
         "spec against Fence"),
        ("spec/toy/fence.py", "if epoch > state.epoch else", "if epoch > state.epoch + 1 else", "impl against spec",
         "impl against spec"),
        ("audits/toy/fence.py", "epoch <= highest", "epoch < highest", "impl against spec", "audit against spec"),
        ("audits/toy/fence.py", "accumulate(epochs, max, initial=0)", "[0, *epochs]", "impl against spec",
         "audit against spec"),
        ("audits/toy/fence.py", '@states("FEN-4")', '@states("FEN-2")', "clauses", "clauses"),
        ("spec/toy/fence.py", "enumerate(epochs, 1)", "enumerate(epochs, 2)", "impl against spec",
         "audit against spec"),
        ("tests/toy/fence_mutants.py", '"FEN-3"', '"FEN-2"', "clauses", "clauses"),
        ("spec/toy/fence.py", "A claim of an epoch above", "A claim with an epoch above", "clauses", "clauses"),
    ],
)  # fmt: skip
def test_what_is_broken_is_red(file: str, right: str, wrong: str, check: str, red: str, tmp_path: Path) -> None:
    broken(tmp_path, file, right, wrong)
    program = "from kafkaspec.verify.engine import established as e, units"
    program += f"; print(*(r.what for u in units(['fence'], {check!r}) for r in e(u, 5)[1] if r.why), sep=' and ')"
    assert command("-c", program, cwd=tmp_path) == f"{red}\n"


def broken(folder: Path, file: str, right: str, wrong: str) -> None:
    """A new subsystem with one text exchanged."""
    new.write(new.texts(FENCE, folder, ours=False), folder)
    text = (folder / file).read_text("utf-8")
    assert right in text
    (folder / file).write_text(text.replace(right, wrong), "utf-8")


def test_what_is_red_is_told_and_is_the_status(tmp_path: Path) -> None:
    broken(tmp_path, "models/toy/fence.py", "distinct=7", "distinct=8")
    found = rows(run("verify", "fence", "--seeds", "5", "--json", cwd=tmp_path, expect=1))
    assert {what for what, r in found.items() if r["why"]} == {"model Fence"}


def test_the_audit_asks_the_rule_within_the_project_alone(mine: Path, tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    (directory / f"{0:020}.log").touch()
    (directory / "fence-epochs").write_text("1\n5\n")
    run("audit", str(directory), cwd=mine)
    (directory / "fence-epochs").write_text("1\n5\n2\n")
    (audit,) = json.loads(run("audit", str(directory), "--json", cwd=mine, expect=1))
    (found,) = audit["findings"]
    assert (found["clause"], Path(found["file"]).name, found["line"]) == ("FEN-4", "fence-epochs", 3)
    assert (found["message"], found["expected"]) == ("epoch 2", "an epoch above 5")
    run("audit", str(directory), cwd=tmp_path)


def test_an_error_in_ones_own_code_is_said_with_its_line(tmp_path: Path) -> None:
    """It is no bug of kafkaspec."""
    run("new", "toy", "fence", "FEN", cwd=tmp_path)
    spec = tmp_path / "spec" / "toy" / "fence.py"
    text = spec.read_text("utf-8")
    line = text[: text.index("else STALE")].count("\n") + 1
    spec.write_text(text.replace("else STALE", "else STALE[7]"), "utf-8")
    found = rows(run("verify", "fence", "--seeds", "5", "--json", cwd=tmp_path, expect=2))
    assert {w: r["why"] for w, r in found.items() if r["why"]} == {
        what: f"spec/toy/fence.py:{line}: IndexError: tuple index out of range"
        for what in ("spec against model", "impl against spec", "impl behind a pipe")
    }
    spec.write_text(text.replace("else STALE", "else"), "utf-8")
    said = run("verify", "fence", cwd=tmp_path, expect=2)
    assert said.startswith(f"kafkaspec: spec/toy/fence.py:{line}: SyntaxError: ")
    assert "bug of kafkaspec" not in said


def test_others_stand_beside_the_first_and_the_built_in_ones(tmp_path: Path) -> None:
    """Also in an area that the package has."""
    run("new", "toy", "fence", "FEN", cwd=tmp_path)
    before = content(tmp_path)
    run("new", "toy", "gate", "GAT", cwd=tmp_path / "spec")
    run("new", "storage", "quota", "QTA", cwd=tmp_path)
    after = content(tmp_path)
    assert after.items() >= before.items()
    assert {p for p in after.keys() - before.keys() if "toy" not in p} >= {"spec/storage/quota.py"}
    program = "from kafkaspec.contract.subsystem import subsystems as s; print(*(x.spec.PREFIX for x in s().values()))"
    assert set(command("-c", program, cwd=tmp_path).split()) > {"FEN", "GAT", "QTA", "LEC", "TML"}
    assert "QTA-1" in run("explain", "QTA-1", cwd=tmp_path)
    assert "complete" in run("explore", "quota", "--json", cwd=tmp_path)


def test_a_project_is_found_from_within_and_not_from_without(mine: Path, tmp_path: Path) -> None:
    assert "FEN-1" in run("explain", "FEN-1", cwd=mine / "docs" / "toy")
    assert "unknown clause 'FEN-1': no subsystem has the prefix 'FEN'" in run(
        "explain", "FEN-1", cwd=tmp_path, expect=2
    )


def test_a_second_subsystem_of_a_name_is_said(tmp_path: Path) -> None:
    run("new", "toy", "fence", "FEN", cwd=tmp_path)
    (tmp_path / "spec" / "toy" / "fence.py").rename(tmp_path / "spec" / "toy" / "timeline.py")
    said = run("verify", "timeline", cwd=tmp_path, expect=2)
    assert "spec/toy/timeline.py: spec/controller/timeline.py of kafkaspec has that name already" in said


# ---- which folder is a project ---------------------------------------------------------------------------------------
def found_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path | None:
    monkeypatch.chdir(folder)
    return project.__wrapped__()


def test_the_nearest_marker_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert found_from(inner, monkeypatch) is None
    (tmp_path / MARKER).touch()
    assert found_from(inner, monkeypatch) == tmp_path
    (tmp_path / "a" / MARKER).touch()
    assert found_from(inner, monkeypatch) == tmp_path / "a"


def test_the_checkout_is_no_project_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / MARKER).touch()
    (tmp_path / "spec").symlink_to((PACKAGE / "spec").resolve())
    assert found_from(tmp_path, monkeypatch) is None


def test_a_stranger_s_marker_where_anybody_may_write_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / MARKER).touch()
    tmp_path.chmod(0o777)
    assert found_from(tmp_path, monkeypatch) == tmp_path
    monkeypatch.setattr("os.getuid", lambda: (tmp_path / MARKER).stat().st_uid + 1)
    assert found_from(tmp_path, monkeypatch) is None
    tmp_path.chmod(0o755)
    assert found_from(tmp_path, monkeypatch) == tmp_path


def test_spark_s_workers_get_the_project_too(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the zip that they are sent it stands in the package."""
    monkeypatch.setattr(session, "project", lambda: mine)
    shipped = session.package_zip(tmp_path)
    program = f"import sys; sys.path.insert(0, {str(shipped)!r}); import kafkaspec.contract.subsystem as s"
    program += "; print(s.find('fence').pairs()[0].driver().observe(), s.find('cleaner').spec.PREFIX, s.__file__)"
    program += "; from kafkaspec.audit.engine import checks; print(*(c.__name__ for c in checks().logs))"
    said = command("-c", program, cwd=tmp_path)
    assert "{'epoch': 0, 'holder': None} CLN" in said
    assert str(shipped) in said
    assert {"FenceCheck", "LeaderEpochCheck"} <= set(said.split())


# ---- refused ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("toy", "Fence", "FEN"), "Fence: a name is at most 30 small letters, digits and _, and begins with a letter"),
        (("toy", "fence-1", "FEN"), "fence-1: a name is at most 30 small letters"),
        (("toy", "f" * 31, "FEN"), f"{'f' * 31}: a name is at most 30 small letters"),
        (("toy", "class", "FEN"), "class: a name is at most 30 small letters"),
        (("../toy", "fence", "FEN"), "../toy: an area is at most 30 small letters"),
        (("common", "fence", "FEN"), "common: no area: what subsystems share stands there"),
        (("toy", "fence_trial", "FEN"), "fence_trial: the name means something else; take another"),
        (("toy", "fence_driver", "FEN"), "fence_driver: the name means something else; take another"),
        (("toy", "released", "FEN"), "released: the name means something else; take another"),
        (("toy", "client", "FEN"), "client: Client is another class in the skeleton; take another name"),
        (("toy", "refinement_mapping", "FEN"), "refinement_mapping: RefinementMapping is another class"),
        (("toy", "none", "FEN"), "none: None is another class in the skeleton"),
        (("toy", "audit", "FEN"), "audit: the name means something else; take another"),
        (("toy", "fence", "FE"), "FE: a prefix is three capital letters, such as LEC"),
        (("toy", "fence", "fen"), "fen: a prefix is three capital letters, such as LEC"),
        (("toy", "fence", "FEN\n"), "FEN : a prefix is three capital letters"),
        (("toy", "timeline", "FEN"), "timeline: there is a subsystem of that name already, in spec/controller"),
        (
            ("toy", "raft_terms", "FEN"),
            "raft_terms: there is a model of that name already, kafkaspec.models.examples.raft_terms",
        ),
        (("toy", "fence", "LEC"), "LEC: the clauses of leader_epochs have that prefix already"),
    ],
)
def test_names_that_cannot_be_are_refused_in_one_line(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as e:
        main(["new", *words])
    out, err = capsys.readouterr()
    assert (e.value.code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"kafkaspec: {said}")
    assert content(tmp_path) == {}


@pytest.mark.parametrize("there", ["spec/toy/fence_trial.py", "tests/toy/test_fence.py", "docs/toy/fence.md"])
def test_nothing_is_overwritten(there: str, tmp_path: Path) -> None:
    (tmp_path / there).parent.mkdir(parents=True)
    (tmp_path / there).write_text("mine")
    said = run("new", "toy", "fence", "FEN", cwd=tmp_path, expect=2)
    assert said == f"kafkaspec: {there}: is there already; nothing was written\n"
    assert content(tmp_path) == {there: "mine"}


def test_nothing_is_written_where_a_folder_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "impl").write_text("mine")
    said = run("new", "toy", "fence", "FEN", cwd=tmp_path, expect=2)
    assert said == "kafkaspec: impl: is no folder; nothing was written\n"
    assert [f.name for f in tmp_path.iterdir()] == ["impl"]


def test_what_a_project_has_already_stays(tmp_path: Path) -> None:
    kept = {MARKER: "# mine\n", "tests/conftest.py": "# mine too\n", "spec/toy/__init__.py": "# mine three\n"}
    for path, text in kept.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    written = json.loads(run("new", "toy", "fence", "FEN", "--json", cwd=tmp_path))
    assert not kept.keys() & set(written)
    assert content(tmp_path).items() >= kept.items()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "impl").symlink_to("nowhere")
    with pytest.raises(UserError, match=r"impl/toy/fence\.py: cannot be written: file exists"):
        new.write({"impl/toy/fence.py": ""}, tmp_path)


# ---- in the checkout -------------------------------------------------------------------------------------------------
@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A checkout whose files are links to those of ours; its folders are its own."""
    for part in PACKAGE.iterdir():
        there = tmp_path / "src" / "kafkaspec" / part.name
        there.parent.mkdir(parents=True, exist_ok=True)
        there.symlink_to(Path("../..") / part.name if part.is_symlink() and part.name != "recordings" else part)
    for layer in LAYERS:
        for file in (ROOT / layer).rglob("*.py"):
            there = tmp_path / file.relative_to(ROOT)
            there.parent.mkdir(parents=True, exist_ok=True)
            there.symlink_to(file)
    (tmp_path / "tests").mkdir()
    (tmp_path / "pyproject.toml").symlink_to(ROOT / "pyproject.toml")
    (tmp_path / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text("utf-8"))
    return tmp_path


def test_in_the_checkout_it_is_one_of_the_built_in_ones(linked: Path) -> None:
    package = linked / "src" / "kafkaspec"
    run("new", "toy", "fence", "FEN", cwd=linked / "src", package=package)
    assert not (linked / MARKER).exists()
    assert not (linked / "tests" / "conftest.py").exists()
    assert (linked / "tests" / "toy" / "__init__.py").is_file()
    told = json.loads(run("explain", "FEN-4", "--json", cwd=linked, package=package))
    assert {f["place"].partition(":")[0] for f in told["forms"]} == {
        "spec/toy/fence.py", "impl/toy/fence.py", "audits/toy/fence.py", "models/toy/fence.py",
        "tests/toy/test_fence.py", "tests/toy/fence_mutants.py",
    }  # fmt: skip
    page = (linked / "docs" / "toy" / "fence.md").read_text("utf-8")
    for what, of in (("rules", "spec"), ("operations", "spec"), ("pinned", "models")):
        assert f"[{of}/toy/fence.py](../../{of}/toy/fence.py) <!-- generated:{what} fence -->" in page


@pytest.mark.parametrize("skeleton", [FENCE, LONG], ids=["short", "long"])
def test_the_skeleton_has_the_project_s_style(skeleton: new.Skeleton, tmp_path: Path) -> None:
    new.write(new.texts(skeleton, tmp_path, ours=True), tmp_path)
    for style in (("check",), ("format", "--check", "--diff")):
        first_party = "lint.isort.known-first-party = ['kafkaspec']"
        command("-m", "ruff", *style, "--config", f"{ROOT}/pyproject.toml", "--config", first_party, ".", cwd=tmp_path)


def test_the_skeleton_has_types(tmp_path: Path) -> None:
    """By mypy's strictest, its layers being part of the package."""
    new.write(new.texts(FENCE, tmp_path, ours=True), tmp_path)
    (tmp_path / "kafkaspec").mkdir()
    modules = []
    optional = "released", "simulation"
    for layer in LAYERS:
        (tmp_path / "kafkaspec" / layer).symlink_to(tmp_path / layer)
        for role in ("", *(f"_{role}" for role in ROLES.get(layer, ()) if role not in optional)):
            modules += ["-m", f"kafkaspec.{layer}.toy.fence{role}"]
    environment = {**os.environ, "MYPYPATH": f"{tmp_path}:{tmp_path / 'tests' / 'toy'}"}
    modules += ["-m", "test_fence", "-m", "fence_mutants", "-m", "fence_written"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *modules], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in 11 source files" in done.stdout


def test_an_implementation_without_a_driver_is_told(tmp_path: Path) -> None:
    """As it was before drivers had files of their own."""
    new.write(new.texts(FENCE, tmp_path, ours=False), tmp_path)
    (tmp_path / "impl" / "toy" / "fence_driver.py").unlink()
    with pytest.raises(UserError, match=r"impl/toy/fence.py: there is no impl/toy/fence_driver.py"):
        Subsystem("fence", "toy", tmp_path).pairs()
