"""What is printed is data with our own styles, and never an order to the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from kafkaspec.cli import main
from kafkaspec.cli.output import harmless, say, show
from kafkaspec.errors import UserError

EVIL = "evil\x1b[31m\x07\x9b2J\r.log"
SHOWN = "evil\ufffd[31m\ufffd\ufffd2J\ufffd.log"


def test_control_characters_are_shown_as_marks(capsys: pytest.CaptureFixture[str]) -> None:
    assert harmless(f"{EVIL}\n\tx") == f"{SHOWN}\n\tx"
    grid = Table("name")
    grid.add_row("evil\x1b[31m")
    show(Text("evil\x1b[31m"), grid)
    assert capsys.readouterr().out.count("evil\ufffd[31m") == 2
    say(UserError("evil\x1b[31m: no such file"))
    assert capsys.readouterr().err == "kafkaspec: evil\ufffd[31m: no such file\n"


def test_a_folder_with_an_evil_name_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "evil\x1b[31mX-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(b"\0" * 100)
    file = folder / "00000000000000000000.log"
    for command, said in (["audit", str(folder)], "\\x1b"), (["dump", str(file)], "\ufffd"):
        with pytest.raises(SystemExit):
            main.main(command)
        printed = capsys.readouterr()
        assert "\x1b" not in printed.out + printed.err
        assert f"evil{said}[31mX-0" in (printed.out + printed.err).replace("\n", "")
