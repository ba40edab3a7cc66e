"""The released Kafka's own classes, for tests that ask them: where its jars are, and how a small Java program runs.

The jars of Kafka 4.3.0 (kafka_2.13 and all it depends on) are looked for in the folder that KAFKASPEC_KAFKA names, else
in ~/.cache/kafkaspec/kafka-4.3.0. Without them, or without a JDK, such tests are skipped.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path("~/.cache/kafkaspec/kafka-4.3.0")
TIMEOUT_S = 120


@cache
def kafka_classpath() -> str | None:
    """The class path of Kafka's jars; None if there are none, or no Java."""
    folder = Path(os.environ.get("KAFKASPEC_KAFKA") or FOLDER).expanduser()
    if not list(folder.glob("kafka-clients-*.jar")) or shutil.which("java") is None:
        return None
    return f"{folder}/*"


def reason() -> str:
    """Why a test that needs Kafka's jars is skipped; "" if it is not."""
    if kafka_classpath() is None:
        return "needs the jars of Kafka 4.3.0 (KAFKASPEC_KAFKA) and java"
    return "" if shutil.which("javac") else "needs javac"


needs_kafka = pytest.mark.skipif(bool(reason()), reason=reason() or "never")
"""Marks a test that asks Kafka's classes."""


def run_class(main: str, *arguments: str, stdin: str = "", classes: Path | None = None) -> str:
    """Standard output of a main class of Kafka's (or of one compiled into `classes`). AssertionError if it fails."""
    path = kafka_classpath()
    assert path is not None, reason()
    command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp"]
    command += [f"{classes}{os.pathsep}{path}" if classes else path, main, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, f"{main} {' '.join(arguments)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def java(source: str, *arguments: str, stdin: str = "") -> str:
    """Compile a Java source with one public class, which may be in a package of Kafka's, and run its main: standard
    output. AssertionError, with what the compiler or the program said, if either fails."""
    name = re.search(r"public\s+(?:final\s+)?class\s+(\w+)", source)
    package = re.search(r"^\s*package\s+([\w.]+)\s*;", source, re.MULTILINE)
    assert name is not None, "a public class is needed"
    assert not reason(), reason()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name[1]}.java"
        file.write_text(source, "utf-8")
        compiled = subprocess.run(
            ["javac", "-nowarn", "-cp", str(kafka_classpath()), "-d", folder, str(file)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert compiled.returncode == 0, compiled.stderr
        return run_class((f"{package[1]}." if package else "") + name[1], *arguments, stdin=stdin, classes=Path(folder))


LINES = ("4.3", "3.9", "3.0", "2.8")
"""The release lines of Kafka that have adapters: modules of targets/kafka."""


@cache
def kafka_target(line: str) -> str | None:
    """The command of Apache Kafka as a target, built if Maven is there; None if there is none."""
    folder = Path(__file__).parent.parent / "targets" / "kafka"
    if shutil.which("java") is None:
        return None
    if shutil.which("mvn") is not None:
        _built(folder)
    built = folder / f"kafka-{line}" / "target"
    return f"{folder / 'kafka.sh'} {line}" if (built / "lib").is_dir() and (built / "classes").is_dir() else None


@cache
def _built(folder: Path) -> None:
    with (Path(tempfile.gettempdir()) / "kafkaspec-kafka-target.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        _package(folder)


def _package(folder: Path) -> None:
    done = subprocess.run(["mvn", "-q", "-B", "package"], cwd=folder, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-4000:]
