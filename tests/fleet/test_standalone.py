"""Campaigns on a standalone cluster: a master and two workers on loopback, to which the package is sent."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.errors import UserError
from kafkaspec.fleet.campaign import Store, campaign
from kafkaspec.fleet.session import find_java

START_S = 60
OPENED = [f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in ("java.lang", "java.nio", "java.util", "sun.nio.ch")]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait_for(what: str, log: Path) -> None:
    until = time.monotonic() + START_S
    while what not in (log.read_text(errors="replace") if log.is_file() else ""):
        assert time.monotonic() < until, log.read_text(errors="replace")
        time.sleep(0.2)


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a cluster's master."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("Spark is not installed")
    try:
        java = find_java()
    except UserError as e:
        pytest.skip(str(e))
    import pyspark

    home = Path(pyspark.__file__).parent
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    with pytest.MonkeyPatch.context() as patch:  # of the cluster's processes; the driver finds its own
        patch.setenv("SPARK_HOME", str(home))
        patch.setenv("SPARK_SCALA_VERSION", "2.13")
        patch.setenv("JAVA_HOME", str(java.resolve().parent.parent))
        url, started = f"spark://127.0.0.1:{free_port()}", list[subprocess.Popen[bytes]]()

        def start(name: str, *arguments: str) -> Path:
            log = tmp_path / f"{name}.log"
            command = [str(java), *OPENED, "-cp", f"{home}/jars/*", *arguments, "--webui-port", "0"]
            with log.open("wb") as f:
                started.append(subprocess.Popen(command, stdout=f, stderr=subprocess.STDOUT, cwd=tmp_path))
            return log

        try:
            deploy = "org.apache.spark.deploy"
            port = url.rpartition(":")[2]
            log = start("master", f"{deploy}.master.Master", "-h", "127.0.0.1", "-p", port)
            wait_for("I have been elected leader", log)
            one = ("-h", "127.0.0.1", "-c", "1", "-m", "1g")
            for n in range(2):
                folder = tmp_path / f"worker{n}"
                log = start(folder.name, f"{deploy}.worker.Worker", *one, "-d", str(folder), url)
                wait_for("Successfully registered with master", log)
            yield url
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait(30)


@pytest.mark.deep
def test_a_cluster_and_one_process_agree_exactly(master: str, tmp_path: Path) -> None:
    s, seeds, steps = find("leader_epochs"), range(60), 40
    here = campaign(s, seeds=seeds, steps=steps, out=tmp_path / "here")
    there = campaign(s, seeds=seeds, steps=steps, out=tmp_path / "there", master=master)
    assert (there.calls, there.failing, there.clauses) == (here.calls, 0, here.clauses)
    assert there.calls > 1000
    a, b = (Store(tmp_path / d).table(seeds).drop_columns("seconds").to_pylist() for d in ("here", "there"))
    assert a == b
