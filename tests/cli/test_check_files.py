"""`kafkaspec check` of what is no plain file, of files that are none of a recording, and of those that are in part."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.cli.main import main

RECORDING = Path(__file__).parent.parent / "recordings" / "timeline-monotonic.ndjson"
HEAD = b"".join(RECORDING.read_bytes().splitlines(keepends=True)[:40])
UNKNOWN = b'{"i":40,"op":"map.frobnicate","args":{},"result":null,"state":{}}\n'


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of `kafkaspec check`."""
    with pytest.raises(SystemExit) as ended:
        main(["check", *map(str, arguments)])
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


def test_a_pipe_is_opened_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pipe = tmp_path / "timeline"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(RECORDING.read_bytes()))
    writer.start()
    code, out, err = run(capsys, pipe)
    writer.join()
    assert (code, err) == (0, "")
    assert "to see it again" not in out


@pytest.mark.parametrize(
    ("line", "what"),
    [("1", "int"), ("[1,2]", "list"), ("null", "null"), ('"x"', "str"), ("true", "bool"), ("1.5", "float")],
)
def test_a_first_line_that_is_no_object_is_told(
    line: str, what: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "x.ndjson"
    file.write_text(f"\n{line}\n")
    assert run(capsys, file) == (2, "", f"kafkaspec: {file}:2: expected a JSON object, not {what}\n")


@pytest.mark.parametrize(
    ("file", "said"),
    [("/dev/zero", "/dev/zero:1: longer than 16 MiB"), ("/dev/null", "/dev/null: is empty")],
)
def test_devices_end_with_one_line(file: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, file) == (2, "", f"kafkaspec: {said}\n")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (gzip.compress(HEAD, mtime=0)[:200], "cannot read"),
        (gzip.compress(HEAD, mtime=0)[:-6] + b"xxxxxx", "cannot read"),
        (b"no gzip", "cannot read: not a gzip"),
        (gzip.compress(b"", mtime=0), "is empty"),
    ],
    ids=["cut", "wrong sum", "no gzip", "empty"],
)
def test_a_damaged_archive(data: bytes, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "f.ndjson.gz"
    file.write_bytes(data)
    code, out, err = run(capsys, file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err.lower()


def test_an_endless_line_on_standard_input_ends() -> None:
    command = f"yes x | tr -d '\\n' | {shlex.quote(sys.executable)} -m kafkaspec check -"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "kafkaspec: standard input:1: longer than 16 MiB\n"
    done = subprocess.run([sys.executable, "-m", "kafkaspec", "check", "-"], input="", capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "kafkaspec: standard input: is empty\n")


def test_a_line_that_is_not_known_is_shown_and_the_rest_is_judged(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "f.ndjson"
    file.write_bytes(HEAD + UNKNOWN + HEAD)
    code, out, _ = run(capsys, file, "--html", tmp_path / "f.html")
    assert code == 2
    assert "could not judge all" in out
    assert "map.frobnicate" in out
    assert "1 line skipped" in out
    assert "map.frobnicate" in (tmp_path / "f.html").read_text()
    (told,) = json.loads(run(capsys, file, "--json")[1])
    assert told["verdict"] == "incomplete"
    assert [(s["count"], s["line"]) for s in told["skipped"].values()] == [(1, 41)]


def test_the_command_to_see_it_again_has_every_option(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("with 'quotes' and spaces.ndjson", "-x.ndjson"):
        Path(name).write_bytes(RECORDING.read_bytes())
        options = ["--subsystem", "timeline", "--strict", "--release", "4.3.0"]
        code, out, _ = run(capsys, *options, "--", name)
        (again,) = re.findall("to see it again: kafkaspec check (.*)", out)
        assert set(options) <= set(shlex.split(again))
        assert run(capsys, *shlex.split(again))[:2] == (code, out)
