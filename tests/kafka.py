"""Apache Kafka's own classes, for tests that ask them: the target of targets/kafka, which Maven builds."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkaspec.judge.target import Target

TARGETS = Path(__file__).parent.parent / "targets" / "kafka"
LINES = ("4.3", "3.9", "3.0", "2.8")
"""The release lines of Kafka that have adapters: modules of targets/kafka."""
NEWEST = LINES[0]
TIMEOUT_S = 120


@cache
def _target(line: str) -> str | None:
    """The command of Apache Kafka as a target, built if Maven is there; None if there is none."""
    if shutil.which("java") is None:
        return None
    if shutil.which("mvn") is not None:
        _built()
    built = TARGETS / f"kafka-{line}" / "target"
    return f"{TARGETS / 'kafka.sh'} {line}" if (built / "lib").is_dir() and (built / "classes").is_dir() else None


@cache
def _built() -> None:
    with (Path(tempfile.gettempdir()) / "kafkaspec-kafka-target.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        _package()


def _package() -> None:
    done = subprocess.run(["mvn", "-q", "-B", "package"], cwd=TARGETS, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-4000:]


def command(line: str = NEWEST) -> str:
    """The command of Apache Kafka as a target. The test is skipped if there is none."""
    found = _target(line)
    if found is None:
        pytest.skip("needs java, and Maven once: make kafka-target")
    return found


def answers(subsystem: str, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """What the newest Kafka answers to calls, the first of which is `init`: each has a result or an error."""
    lines = [
        orjson.dumps({"i": i, "op": op, "args": args} | ({"subsystem": subsystem} if op == "init" else {}))
        for i, (op, args) in enumerate(calls, 1)
    ]
    with Target(command()) as target:
        target.send(lines)
        return [target.answer(line, i) for i, line in enumerate(target.receive(len(lines)), 1)]


def run_class(main: str, *arguments: str) -> str:
    """Standard output of a main class, of the newest Kafka or of the target's own. AssertionError if it fails."""
    command()
    built = TARGETS / f"kafka-{NEWEST}" / "target"
    line = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
    line += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    line += ["-cp", f"{built / 'classes'}{os.pathsep}{built / 'lib'}/*", main, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, f"{main} {' '.join(arguments)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout
