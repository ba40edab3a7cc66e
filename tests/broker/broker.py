"""A real broker of Apache Kafka, controller included, on loopback: started, killed, started again."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

READY = b"Kafka Server started"
START_S, STOP_S = 180, 90
GUARD = "import os, sys\nof = int(sys.stdin.readline() or 0)\nif of and not sys.stdin.read(1): os.kill(of, 9)"
"""A broker's guard is told its process id. When its input ends, because we are gone, however we went, it kills it."""
INTRODUCED = 'echo $$; exec "$@" >&2'
"""The broker tells its guard itself, before it is one: we may be interrupted before we know its process id."""
LOG_TIMES = (
    "-Duser.timezone=UTC",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS'+00:00'",
)
NODE = {
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "log.index.size.max.bytes": "4096",
    "log.initial.task.delay.ms": "200",
    "log.retention.check.interval.ms": "700",
    "log.segment.delete.delay.ms": "1500",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "replica.high.watermark.checkpoint.interval.ms": "900",
    "num.network.threads": "2",
    "num.io.threads": "3",
}


def jars() -> Path | None:
    """The folder of Kafka's jars: KAFKASPEC_KAFKA, or ~/.cache/kafkaspec/kafka-4.3.0; None if there are none, or no
    java."""
    folder = Path(os.environ.get("KAFKASPEC_KAFKA") or "~/.cache/kafkaspec/kafka-4.3.0").expanduser()
    return folder if list(folder.glob("kafka_2.13-*.jar")) and shutil.which("java") else None


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def _id() -> str:
    """As Kafka prints a Uuid; it takes none that begins with a dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


class Broker:
    """One node in a folder of its own: `data` is its log directory, `server.log` what it printed. It is its own
    controller, or a broker that joins another's, or (`serves` is False) a controller alone."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        node: int = 1,
        joins: Broker | None = None,
        serves: bool = True,
    ) -> None:
        self.folder, self.data, self.node = folder, folder / "data", node
        self.port, controller = _free_ports(2)
        self.voters: str = joins.voters if joins else f"{node}@127.0.0.1:{controller}"
        self.cluster: str = joins.cluster if joins else _id()
        self.process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self.data.mkdir(parents=True)
        roles = {"broker": f"PLAINTEXT://127.0.0.1:{self.port}"} if serves else {}
        if joins is None:
            roles["controller"] = f"CONTROLLER://127.0.0.1:{controller}"
        own = {
            "process.roles": ",".join(roles),
            "node.id": str(node),
            "listeners": ",".join(roles.values()),
            **self.quorum(),
            "log.dirs": str(self.data),
        }
        if serves:
            own["advertised.listeners"] = roles["broker"]
        lines = (f"{k}={v}\n" for k, v in (NODE | own | dict(settings)).items())
        (folder / "server.properties").write_text("".join(lines))
        self.format()

    def quorum(self) -> dict[str, str]:
        """What it is told of who its controllers are."""
        return {"controller.quorum.voters": self.voters}

    def format(self) -> None:
        """With Kafka's own tool."""
        format_ = self._java("kafka.tools.StorageTool", "format", "-t", self.cluster, "-c", "server.properties")
        self.run(format_)

    def run(self, command: list[str]) -> None:
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=START_S)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    def _java(self, main: str, *arguments: str) -> list[str]:
        options = ["-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", *LOG_TIMES]
        return ["java", *options, "-cp", f"{jars()}/*", main, *arguments]

    def start(self) -> None:
        """Begin to start; `wait` says when it has. It ends with us, however we end."""
        assert self.process is None
        self._guard = subprocess.Popen([sys.executable, "-c", GUARD], stdin=subprocess.PIPE, start_new_session=True)
        with (self.folder / "server.log").open("ab") as log:
            self._from = log.tell()
            self.process = subprocess.Popen(
                ["sh", "-c", INTRODUCED, "sh", *self._java("kafka.Kafka", "server.properties")],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=self._guard.stdin,
                stderr=log,
                start_new_session=True,
            )

    @property
    def ready(self) -> bool:
        with (self.folder / "server.log").open("rb") as log:
            log.seek(self._from)
            return READY in log.read()

    def wait(self) -> None:
        """Until it has started, recovery included."""
        deadline = time.monotonic() + START_S
        while not self.ready:
            assert self.process is not None
            assert self.process.poll() is None, f"the broker ended: {self.said()}"
            assert time.monotonic() < deadline, f"not started after {START_S} s: {self.said()}"
            time.sleep(0.1)

    def log(self) -> bytes:
        return (self.folder / "server.log").read_bytes()

    def said(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")[-3000:]

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: a clean stop. AssertionError if it does not come to an end."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the broker did not stop within {STOP_S} s: {self.said()}") from None
        finally:
            if self.process.poll() is not None:
                self.process = None
                self._dismiss()

    def _dismiss(self) -> None:
        """The guard's: what it guards has ended, and its process id may be another's soon."""
        if self._guard is not None:
            self._guard.communicate(b".")
            self._guard = None
