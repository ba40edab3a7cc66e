"""A standalone cluster of Spark on loopback: a master and workers of one core each, ended with the block."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from kafkaspec.fleet.session import find_java

START_S = 60
OPENED = [f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in ("java.lang", "java.nio", "java.util", "sun.nio.ch")]
DEPLOY = "org.apache.spark.deploy"


@contextlib.contextmanager
def cluster(workers: int, folder: Path) -> Iterator[str]:
    """The URL of the master of a cluster with that number of workers, whose logs and work are in `folder`.

    The workers do not have kafkaspec installed by us: a campaign sends it. Raises UserError if there is no Java for
    Spark, TimeoutError with what a process logged if it does not start.
    """
    import pyspark

    java, home = find_java(), Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
        "JAVA_HOME": str(java.resolve().parent.parent),
    }
    port = _free_port()
    url, started = f"spark://127.0.0.1:{port}", list[subprocess.Popen[bytes]]()

    def start(name: str, says: str, *arguments: str) -> None:
        log = folder / f"{name}.log"
        command = [str(java), *OPENED, "-cp", f"{home}/jars/*", *arguments, "--webui-port", "0"]
        with log.open("wb") as f:
            started.append(subprocess.Popen(command, stdout=f, stderr=subprocess.STDOUT, cwd=folder, env=environment))
        until = time.monotonic() + START_S
        while says not in (said := log.read_text(errors="replace")):
            if started[-1].poll() is not None or time.monotonic() > until:
                raise TimeoutError(f"Spark's {name} does not start: {said[-2000:]}")
            time.sleep(0.1)

    try:
        start("master", "I have been elected leader", f"{DEPLOY}.master.Master", "-h", "127.0.0.1", "-p", str(port))
        for n in range(workers):
            one_core = ("-h", "127.0.0.1", "-c", "1", "-m", "1g", "-d", str(folder / f"worker{n}"))
            start(f"worker{n}", "Successfully registered with master", f"{DEPLOY}.worker.Worker", *one_core, url)
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
