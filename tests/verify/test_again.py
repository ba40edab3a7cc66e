"""What is red says by which command it is seen again, and the command shows it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kafkaspec.cli import names
from kafkaspec.contract.project import PACKAGE
from kafkaspec.contract.subsystem import subsystems
from kafkaspec.errors import UserError
from kafkaspec.report.describe import describe
from kafkaspec.verify import budget
from kafkaspec.verify.engine import AUDITED, CHECKS, units, verify
from kafkaspec.verify.row import Row
from tests.cli.test_new import broken

IMPL = ("impl/toy/fence.py", "epoch <= self", "epoch < self")
RED: dict[str, tuple[tuple[str, str, str], str, str]] = {
    "clauses": (
        ("tests/toy/fence_mutants.py", '"FEN-3"', '"FEN-2"'),
        "kafkaspec verify fence --only clauses",
        "FEN-3 has no mutant",
    ),
    "models": (
        ("models/toy/fence.py", "require(e > s.epoch)", "require(e >= s.epoch)"),
        "kafkaspec explore fence:Fence",
        "epochs rise is broken here",
    ),
    "models, counts alone": (
        ("models/toy/fence.py", "distinct=7", "distinct=8"),
        "kafkaspec verify fence --only models",
        "distinct 7 (pinned 8)",
    ),
    "proofs": (
        ("models/toy/fence.py", "(s.holder is not None) == (s.epoch > 0)", "s.epoch < 5"),
        "kafkaspec prove fence:Fence --timeout 10",
        "held once claimed",
    ),
    "proofs, a false claim": (
        ("models/toy/fence.py", "require(e > s.epoch)", "require(e >= s.epoch)"),
        "kafkaspec verify fence --only proofs",
        "epochs_rise is false, as exploring shows",
    ),
    "spec against model": (
        ("spec/toy/fence.py", "Fence(epoch, client) if epoch", "Fence(epoch) if epoch"),
        "kafkaspec verify fence --only 'spec against model'",
        "spec and model Fence differ: after claim(",
    ),
    "impl against spec": (IMPL, "kafkaspec verify fence --only 'impl against spec' --seeds ", "-> null, expected !!"),
    "impl behind a pipe": (
        IMPL,
        "kafkaspec judge --target 'kafkaspec serve fence' fence --seed 0 --examples 30 --min-coverage 0 --uniform",
        "right !! StaleEpoch",
    ),
}
"""By a check: what is broken in a new subsystem, the command, and some of what it shows."""
ONE = """
from kafkaspec.verify.engine import Unit, established
(row, *_) = established(Unit("fence", {check!r}, 0), 200)[1]
print(row.again, row.why, sep="\\n")
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", RED)
def test_a_red_row_is_seen_again(case: str, tmp_path: Path) -> None:
    breaking, again, shown = RED[case]
    broken(tmp_path, *breaking)
    said, *why = output(tmp_path, sys.executable, "-c", ONE.format(check=case.partition(",")[0])).splitlines()
    assert said.startswith(again)
    assert any(why)
    told = output(tmp_path, *shlex.split(said), expect=2 if case == "proofs" else 1)  # unknown is never green
    assert shown in " ".join(told.split()), told


def test_the_seed_that_fails_is_the_last_that_is_walked(tmp_path: Path) -> None:
    """So the command walks no more than it must, and it walks that one."""
    broken(tmp_path, "impl/toy/fence.py", "self.claims.append", "len(self.claims) > 46 or self.claims.append")
    said = output(tmp_path, sys.executable, "-c", ONE.format(check="impl against spec")).splitlines()[0]
    seeds = int(said.rpartition(" ")[2])
    assert 1 < seeds < 200
    assert "does not hold" in output(tmp_path, *shlex.split(said), expect=1)
    assert "all 2 hold" in output(tmp_path, *shlex.split(said)[:-1], str(seeds - 1))


def output(folder: Path, *words: str, expect: int = 0) -> str:
    """What a command prints there; `kafkaspec` is ours."""
    ours = folder / "bin" / "kafkaspec"
    if not ours.exists():
        ours.parent.mkdir()
        ours.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kafkaspec "$@"\n')
        ours.chmod(0o755)
    path = f"{ours.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "PATH": path, "COLUMNS": "200"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == expect, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_what_costs_too_much_is_seen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "over", lambda subsystem, work: ["too much"])
    *_, cost = verify(["replicas"], 4)
    assert (cost.what, cost.again) == ("cost", "kafkaspec verify replicas --seeds 4")


def test_it_is_printed() -> None:
    red = Row("fence", "clauses", "complete", "", 0.1, "FEN-3 has no mutant", again="kafkaspec verify fence")
    assert [s.again for s in describe([red])] == ["", "kafkaspec verify fence"]


@pytest.mark.parametrize("name", subsystems())
def test_the_commands_find_every_model_and_proof(name: str) -> None:
    s = subsystems()[name]
    for layer, pinned in (("models", "MODELS"), ("proofs", "PROOFS")):
        for c in getattr(s.layer(layer), pinned, ()):
            assert names.find_models(f"{name}:{c.name}")


def test_one_check_alone() -> None:
    assert {u.check for u in units(only="models")} == {"models"}
    assert [u.check for u in units(["leader_epochs"], "clauses")] == ["clauses"]
    assert {u.subsystem for u in units(only="log directories")} == {"audit"}
    with pytest.raises(UserError, match=r"unknown check 'model'; did you mean 'models'\?"):
        units(only="model")
    with pytest.raises(UserError, match="replicas: there is nothing for the check 'models'"):
        units(["replicas"], "models")
    assert [r.what for r in verify(["replicas"], 4, only="clauses")] == ["clauses"], "its cost is not that of all"
    assert {*RED, "recordings", "simulations"} > CHECKS.keys()  # of the last see test_simulations
    assert not CHECKS.keys() & AUDITED.keys()
