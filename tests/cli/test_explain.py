"""`kafkaspec explain` says of each form that a clause does not have why there is none, or that it is missing."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.cli import explain
from kafkaspec.cli.main import main
from kafkaspec.contract import clauses, subsystem, traceability
from kafkaspec.contract.project import MARKER
from tests.cli.test_new import command, run


def explained(capsys: pytest.CaptureFixture[str], id: str) -> tuple[dict[str, Any], str]:
    """As JSON, and as people read it."""
    said = []
    for words in (["--json"], []):
        with pytest.raises(SystemExit) as e:
            main(["explain", id, *words])
        assert e.value.code == 0
        said.append(capsys.readouterr().out)
    return json.loads(said[0]), " ".join(said[1].split())


@pytest.mark.parametrize(
    ("id", "form", "why"),
    [
        ("TML-1", "audit", "the audit has no rules of timeline; they would stand in audits/controller/timeline.py"),
        ("LEC-8", "audit", "the audit reports nothing under it"),
        ("LEC-13", "model", "a question about one state, that changes nothing"),
        ("RPL-1", "impl", "a rule of the audit alone"),
    ],
)
def test_a_form_that_is_not_there_has_its_reason(
    id: str, form: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told, page = explained(capsys, id)
    assert told["absent"][form] == why
    assert f" {form} none: {why} " in f"{page} "
    there = {f["form"] for f in told["forms"]}
    assert there | told["absent"].keys() == set(clauses.FORMS)
    assert not there & told["absent"].keys()


@pytest.mark.parametrize("s", subsystem.subsystems().values(), ids=lambda s: s.name)
def test_every_form_has_its_file_and_line(s: subsystem.Subsystem) -> None:
    traceability.load()
    placed = {u.where: explain.place(u)[0] for c in s.clauses for u in traceability.uses(c.id)}
    assert placed
    assert {where: at for where, at in placed.items() if not re.fullmatch(r"[\w/]+\.py:\d+", at)} == {}


def test_what_is_loaded_for_a_clause_has_all_its_forms() -> None:
    """Only the subsystems whose texts name a clause are loaded for it: no other registers a form of it."""
    traceability.load()
    of = {f"{s.area}.{s.name}": s for s in subsystem.subsystems().values()}
    roles = "|".join(role for roles in subsystem.ROLES.values() for role in roles)
    at = {
        u: re.fullmatch(rf"kafkaspec\.\w+\.(\w+\.\w+?)(_({roles}))?", u.where.partition(":")[0])
        for u in clauses.all_uses()
    }
    where = {u: of[m[1]] for u, m in at.items() if m is not None and m[1] in of}
    assert len(where) > 1000
    assert [u for u, s in where.items() if s not in traceability.naming(u.clause)] == []


def test_explaining_reads_no_model_and_imports_no_other_subsystem() -> None:
    program = """if True:
        import sys
        from kafkaspec.cli import explain
        from kafkaspec.language import model
        explain.run("TML-1", json=True)
        read = [name for name in sys.modules if name.startswith(("kafkaspec.spec.", "kafkaspec.models."))]
        names = {name.split(".")[-1] for name in read if name.count(".") == 3 and ".common." not in name}
        print(names, file=sys.stderr)
        print(len(model._loaded), "numpy" in sys.modules, "z3" in sys.modules, file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names, others = done.stderr.splitlines()
    assert {name.split("_")[0] for name in ast.literal_eval(names)} == {"timeline"}
    assert others == "0 False False"


def test_what_is_not_installed_is_not_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subsystem, "checkout", lambda: None)
    monkeypatch.setattr(traceability, "in_tests", lambda prefix="": ())
    left = {id: {u: None for u in of if u.form != "mutant"} for id, of in clauses._uses.items()}
    monkeypatch.setattr(clauses, "_uses", left)
    told, _ = explained(capsys, "TML-1")
    assert {told["absent"][form] for form in ("test", "mutant")} == {"kept in the checkout, not installed"}


def test_a_new_rule_lacks_what_it_ought_to_have(tmp_path: Path) -> None:
    """Of a spec that stands alone: it is not taken for a rule of the audit."""
    run("new", "toy", "fence", "FEN", cwd=tmp_path)
    alone = tmp_path / "alone" / "spec" / "toy"
    alone.mkdir(parents=True)
    (tmp_path / "alone" / MARKER).touch()
    (alone / "fence.py").write_text((tmp_path / "spec" / "toy" / "fence.py").read_text("utf-8"))
    told = json.loads(run("explain", "FEN-2", "--json", cwd=tmp_path / "alone"))
    assert told["absent"] == {
        "impl": "", "model": "", "proof": "", "test": "", "mutant": "",
        "audit": "the audit has no rules of fence; they would stand in audits/toy/fence.py",
    }  # fmt: skip
    assert "impl missing" in " ".join(run("explain", "FEN-2", cwd=tmp_path / "alone").split())
    program = "from kafkaspec.contract import traceability as t; t.load('FEN'); print(t.incomplete('FEN')[1])"
    said = command("-c", program, cwd=tmp_path / "alone")
    assert said == "FEN-2 has no impl, model, proof, test, mutant, and says no reason why not\n"


@pytest.mark.parametrize("name", ["leader_epochs", "compaction", "quorum"])
def test_a_subsystem_is_explained_as_a_target_must_know_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    s = subsystem.find(name)
    told, page = explained(capsys, name)
    assert [r["id"] for r in told["rules"]] == [c.id for c in s.clauses]
    assert all(c.id in page for c in s.clauses)
    assert ("operations" in told) == (name in subsystem.components())
    for op in told.get("operations", ()):
        assert f" {op['name']} " in page
        assert op["what"] in page
        assert set(op["example"]["args"]) <= {p["name"] for p in op["arguments"]}
    if name == "leader_epochs":
        asked = {op["name"]: op for op in told["operations"]}
        assert asked["endOffsetFor"]["before"] is not None
        assert "-> " in page
        assert told["first"]["entries"] == []
    if name == "quorum":  # the default of an argument is JSON, though the spec has an enumeration there
        (write,) = [op for op in told["operations"] if op["name"] == "write"]
        assert {p["name"]: p.get("default") for p in write["arguments"]}["fault"] == "none"
