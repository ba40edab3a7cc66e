"""What is printed is data with our own styles, and never an order to the terminal."""

from __future__ import annotations

import os
import signal
from contextlib import nullcontext
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from kafkaspec.cli import main
from kafkaspec.cli.output import harmless, interrupted_by, say, show
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import UNPRINTABLE

EVIL = "evil\x1b[31m\x07\x9b2J\r.log"
SHOWN = "evil\\x1b[31m\\x07\\u009b2J\\r.log"


def test_control_characters_are_shown_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    assert harmless(f"{EVIL}\n\tx") == f"{SHOWN}\n\tx"
    grid = Table("name")
    grid.add_row("evil\x1b[31m")
    show(Text("evil\x1b[31m"), grid)
    assert capsys.readouterr().out.count("evil\\x1b[31m") == 2
    say(UserError("evil\x1b[31m: no such file"))
    assert capsys.readouterr().err == "kafkaspec: evil\\x1b[31m: no such file\n"


def test_a_folder_with_an_evil_name_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "evil\x1b[31mX-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(b"\0" * 100)
    file = folder / "00000000000000000000.log"
    for command in ["audit", str(folder)], ["dump", str(file)], ["dump", str(file), "--json"], ["dump", str(folder)]:
        with pytest.raises(SystemExit):
            main.main(command)
        printed = capsys.readouterr()
        assert "\x1b" not in printed.out + printed.err
        said = (printed.out + printed.err).replace("\n", "").replace("\\\\", "\\")  # JSON's own escapes
        assert "evil\\x1b[31mX-0" in said


def test_what_is_dumped_is_no_order_to_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names in the files, and names of files that are no UTF-8, as JSON too."""
    file = tmp_path / "a\udcff\n" / "recovery-point-offset-checkpoint"
    file.parent.mkdir()
    file.write_bytes("0\n1\n\x1b[2J\u202e 0 7\n".encode())
    for options in [], ["--json"]:
        with pytest.raises(SystemExit):
            main.main(["dump", str(file), *options])
        printed = capsys.readouterr()
        assert not [c for c in UNPRINTABLE.findall(printed.out + printed.err) if c != "\n"] or options
        assert "\x1b" not in printed.out
        assert "a\\xff\\n/" in printed.out.replace("\\\\", "\\")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_is_ignored_interrupts_but_for_the_hang_up_of_nohup(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt) if number != signal.SIGHUP else nullcontext(), interrupted_by(number):
            os.kill(os.getpid(), number)
        assert signal.getsignal(number) == signal.SIG_IGN
        signal.signal(number, signal.SIG_DFL)
        with pytest.raises(KeyboardInterrupt), interrupted_by(number):
            os.kill(os.getpid(), number)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)
