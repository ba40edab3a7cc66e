"""What ends its process is red, is said with its line, and takes no other row with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.lockstep.walk import walk
from tests.cli.test_new import broken, rows, run

CLAIM = ("impl/toy/fence.py", "        if self.claims and epoch <=")
RESET = ("impl/toy/fence_driver.py", "        self.subject =")
TOP = ("impl/toy/fence_driver.py", "from collections.abc")


def ending(folder: Path, where: tuple[str, str], how: str) -> str:
    """A new subsystem in which that is done there; the line, as it is told."""
    file, before = where
    indent = before[: len(before) - len(before.lstrip())]
    broken(folder, file, before, f"{indent}{how}\n{before}")
    lines = (folder / file).read_text("utf-8").splitlines()
    return f"{file}:{1 + next(n for n, line in enumerate(lines) if how in line)}"


def test_an_implementation_that_exits_differs(tmp_path: Path) -> None:
    place = ending(tmp_path, CLAIM, "if epoch == 5: raise SystemExit(0)")
    found = rows(run("verify", "fence", "--seeds", "5", "--json", cwd=tmp_path, expect=1))
    assert {what for what, r in found.items() if r["why"]} == {"impl against spec", "impl behind a pipe"}
    assert f"the driver failed: SystemExit: 0, raised at {place}" in found["impl against spec"]["why"]
    assert "SystemExit" in found["impl behind a pipe"]["why"]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("import os; os._exit(0)", "ended with status 0"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL, as where memory runs out"),
    ],
)
def test_a_process_that_ends_is_a_row_that_is_unknown(how: str, said: str, tmp_path: Path) -> None:
    ending(tmp_path, CLAIM, how)
    told = run("verify", "fence", "--only", "impl against spec", "--seeds", "5", "--json", cwd=tmp_path, expect=2)
    assert rows(told)["impl against spec"]["why"] == f"the process that was at it {said}, before it could say more"


@pytest.mark.parametrize("how", ["import sys; sys.exit(0)", "import os; os._exit(0)"])
def test_a_driver_that_ends_who_imports_it(how: str, tmp_path: Path) -> None:
    place = ending(tmp_path, TOP, how)
    said = run("verify", "fence", "--only", "clauses", cwd=tmp_path, expect=2)
    ended = (
        "the process that imported the subsystems ended with status 0" if "_exit" in how else f"{place}: SystemExit: 0"
    )
    assert said == f"kafkaspec: {ended}\n"


@pytest.mark.parametrize("command", [["mutants", "fence"], ["campaign", "fence", "--out", "out"], ["serve", "fence"]])
def test_a_driver_that_exits_as_it_begins_ends_no_command(command: list[str], tmp_path: Path) -> None:
    place = ending(tmp_path, RESET, "raise SystemExit(0)")
    assert run(*command, cwd=tmp_path, expect=2).startswith(f"kafkaspec: {place}: SystemExit: 0")


class Panic(BaseException):
    """As pyo3's, of an implementation in Rust."""


@pytest.mark.parametrize("at", ["reset", "apply", "observe"])
def test_a_panic_of_native_code_is_a_failure_of_the_driver(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = find("leader_epochs").pairs()[0]
    driver = pair.driver()

    def panics(*_: object) -> None:
        raise Panic("unwrap of None")

    monkeypatch.setattr(driver, at, panics)
    failure = walk(pair.machine, driver, 0, 5).failure
    assert failure is not None
    assert "the driver failed: Panic: unwrap of None, raised at test_ended.py:" in failure.why


# ---- processes -------------------------------------------------------------------------------------------------------
def test_ctrl_c_ends_verify_with_one_line(tmp_path: Path) -> None:
    """To the whole group, as a terminal sends it."""
    command = [sys.executable, "-m", "kafkaspec", "verify", "leader_epochs", "--seeds", "100000"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, start_new_session=True)
    until = time.monotonic() + 60
    while not (tmp_path / "kafkaspec").exists() and time.monotonic() < until:  # nothing has held yet
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, b"")
    assert err == b"kafkaspec: interrupted; with --changed, what held until then is not asked again\n"
