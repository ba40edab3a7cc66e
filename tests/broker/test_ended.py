"""A run that is ended from outside leaves no broker behind. The broker is a script here: no Java is needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WAIT_S = 60
JAVA = """#!/bin/sh
case "$*" in
*StorageTool*) exit 0 ;;
esac
echo $$ > ../pid.part && mv ../pid.part ../pid
exec sleep 1000
"""


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def until(what: str, true: object) -> None:
    assert callable(true)
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_broker_is_left(how: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text(JAVA)
    (tmp_path / "bin" / "java").chmod(0o755)
    (tmp_path / "kafka_2.13-4.3.0.jar").touch()
    folder, pid = tmp_path / "run", tmp_path / "run" / "pid"
    here = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "KAFKASPEC_KAFKA": str(tmp_path)}
    run = subprocess.Popen(
        [sys.executable, "-m", "tests.broker.run", "1", "--keep", str(folder)],
        env=os.environ | here,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until("the broker was not started", lambda: pid.exists() or run.poll() is not None)
        broker = int(pid.read_text())
        assert alive(broker)
        run.send_signal(how)
        assert run.wait(WAIT_S) != 0
        until("the broker was left", lambda: not alive(broker))
    finally:
        run.kill()
        run.wait()
