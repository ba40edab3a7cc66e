"""The help is pinned in `help.txt` (`python -m tests.cli.test_help` writes it), and its examples are true."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from kafkaspec.cli.main import app

PINNED = Path(__file__).with_name("help.txt")
ROOT: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = ROOT.commands


def whole_help() -> str:
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb"}
    out = []
    for arguments in [["--help"], *([name, "--help"] for name in COMMANDS)]:
        command = [sys.executable, "-m", "kafkaspec", *arguments]
        text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        out.append(
            f"$ kafkaspec {' '.join(arguments)}\n" + "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
        )
    return "\n".join(out)


def test_the_help_is_as_pinned() -> None:
    assert whole_help() == PINNED.read_text("utf-8"), "if it is meant: python -m tests.cli.test_help"


def examples() -> list[str]:
    found = [line for c in [ROOT, *COMMANDS.values()] for line in (c.epilog or "").splitlines()]
    return [re.split(r"   +", line.strip())[0] for line in found if re.match(r"\s+(kafkaspec|.*\| kafkaspec) ", line)]


@pytest.mark.parametrize("example", examples())
def test_an_example_of_the_help_is_a_command(example: str) -> None:
    words = shlex.split(example.rpartition("| ")[2])[1:]
    command = COMMANDS[words[0]]
    command.make_context(words[0], words[1:])


def test_every_command_teaches_by_example() -> None:
    for name, command in COMMANDS.items():
        assert f"kafkaspec {name} " in command.epilog, name


def test_every_command_but_serve_has_json() -> None:
    assert {name for name, c in COMMANDS.items() if not any("--json" in p.opts for p in c.params)} == {"serve"}


def complete(line: str) -> list[str]:
    environment = {
        **os.environ,
        "_KAFKASPEC_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    command = [sys.executable, "-c", "from kafkaspec.cli.main import main; main()"]
    return subprocess.run(command, env=environment, capture_output=True, text=True).stdout.split()


def test_ctrl_c_while_python_imports_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "kafkaspec", "verify", "--json"]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # it may be ignored here
    )
    assert (done.returncode, done.stderr) == (130, "kafkaspec: interrupted\n")
    assert [x["problems"] for x in json.loads(done.stdout)] == [["interrupted"]]


def test_the_shell_completes_commands_and_names() -> None:
    assert complete("kafkaspec exp") == ["explore", "export", "explain"]
    assert "two_phase" in complete("kafkaspec explore two")
    assert complete("kafkaspec verify timel") == ["timeline"]
    assert "TML-1" in complete("kafkaspec explain TML-")


def test_starting_up_imports_no_engine() -> None:
    heavy = ["z3", "llvmlite", "numpy", "hypothesis", "rich", "orjson", "jinja2", "icontract", "pyspark"]
    code = f"import sys, kafkaspec.cli.main; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


if __name__ == "__main__":
    PINNED.write_text(whole_help(), "utf-8")
