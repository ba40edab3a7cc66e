"""Whole processes, measured from outside: wall time, CPU time, peak memory; and the tools that we measure against."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

ANCHORS = Path(__file__).parent / "anchors"


class Failed(Exception):
    """A measured process ended badly: what it said last."""


@dataclass(frozen=True)
class Process:
    """One process, from start to exit."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    output: str


def run(command: list[str], cwd: Path | None = None, *, one_core: bool = False, quiet: bool = False) -> Process:
    """Run a command to its end. Raises Failed if its exit status is not 0. `one_core`: kept on one, where the system
    can do that. `quiet`: what it prints goes nowhere, so that nobody pays for keeping it; its errors are kept."""
    if one_core and shutil.which("taskset"):
        command = ["taskset", "-c", "0", *command]
    with tempfile.TemporaryFile("w+") as out:
        start = time.perf_counter()
        to = subprocess.DEVNULL if quiet else out
        p = subprocess.Popen(command, cwd=cwd, stdout=to, stderr=out, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(p.pid, 0)
        seconds = time.perf_counter() - start
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if p.returncode != 0:
        raise Failed(f"{' '.join(command)} ended with {p.returncode}: {text[-2000:]}")
    return Process(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)


def number(pattern: str, text: str) -> int:
    """The number that a tool printed. Raises Failed if it did not."""
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise Failed(f"no {pattern!r} in: {text[-2000:]}")
    return int(found[1])


# ---- TLC -----------------------------------------------------------------------------------------------------------
def tlc_jar() -> Path | None:
    """tla2tools.jar, from the environment variable TLA2TOOLS; None if there is none, or no java."""
    jar = os.environ.get("TLA2TOOLS")
    return Path(jar).resolve() if jar and Path(jar).is_file() and shutil.which("java") else None


def tlc(module: str, configuration: str) -> tuple[Process, int, int]:
    """TLC on one of the anchors: the process, states generated, distinct states."""
    return tlc_on((ANCHORS / f"{module}.tla").read_text("utf-8"), (ANCHORS / f"{configuration}.cfg").read_text("utf-8"))


def tlc_on(module: str, configuration: str) -> tuple[Process, int, int]:
    """TLC, with two workers, on these texts."""
    jar = tlc_jar()
    assert jar is not None
    (name,) = re.findall(r"^-+ MODULE (\w+)", module)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{name}.tla").write_text(module, "utf-8")
        (Path(folder) / f"{name}.cfg").write_text(configuration, "utf-8")
        command = ["java", "-XX:+UseParallelGC", "-cp", str(jar), "tlc2.TLC", "-workers", "2"]
        p = run([*command, "-config", f"{name}.cfg", f"{name}.tla"], Path(folder))
    distinct = number(r"^\d+ states generated, (\d+) distinct states found", p.output)
    return p, number(r"^(\d+) states generated", p.output), distinct


# ---- SPIN ----------------------------------------------------------------------------------------------------------
SPIN = {
    "DFS": (["-DSAFETY", "-DNOREDUCE"], ["-m4000000"]),
    "BFS": (["-DSAFETY", "-DNOREDUCE", "-DBFS"], []),
    "BFS, 2 cores": (["-DSAFETY", "-DNOREDUCE", "-DBFS_PAR"], ["-u2"]),
}
"""Ways to search: options of the C compiler, options of the verifier."""


def spin_here() -> bool:
    return shutil.which("spin") is not None and shutil.which("gcc") is not None


@dataclass(frozen=True)
class Verifier:
    """SPIN's verifier for the cleaner model: a program made once, and what making it took."""

    program: Path
    seconds: float


def spin_made(search: str, partitions: int, folder: Path) -> Verifier:
    """Make a verifier with spin and gcc."""
    folder.mkdir()
    start = time.perf_counter()
    run(["spin", f"-DP={partitions}", "-a", str(ANCHORS / "Cleaner.pml")], folder)
    run(["gcc", "-O3", *SPIN[search][0], "-o", "pan", "pan.c"], folder)
    return Verifier(folder / "pan", time.perf_counter() - start)


def spin(verifier: Verifier, search: str, hash_bits: int) -> tuple[Process, int, int]:
    """One search: the process, transitions, states stored."""
    p = run([str(verifier.program), f"-w{hash_bits}", *SPIN[search][1]], verifier.program.parent)
    if "errors: 0" not in p.output or "max search depth too small" in p.output:
        raise Failed(f"SPIN did not search everything: {p.output[-2000:]}")
    return p, number(r"^ *(\d+) transitions", p.output), number(r"^ *(\d+) states, stored", p.output)


# ---- Kafka ---------------------------------------------------------------------------------------------------------


def kafka_target() -> str | None:
    """The command that starts Apache Kafka's classes as a target of the judge; None without it or Java."""
    folder = Path(__file__).parents[1] / "targets" / "kafka"
    built = (folder / "kafka-4.3" / "target" / "lib").is_dir() and shutil.which("java") is not None
    return f"{folder / 'kafka.sh'} 4.3" if built else None


def kafka_jars() -> Path | None:
    """The folder of Kafka's jars: KAFKASPEC_KAFKA, or ~/.cache/kafkaspec/kafka-4.3.0; None if there are none, or no
    java."""
    folder = Path(os.environ.get("KAFKASPEC_KAFKA") or "~/.cache/kafkaspec/kafka-4.3.0").expanduser()
    return folder if list(folder.glob("kafka-tools-*.jar")) and shutil.which("java") else None


def dump_log_segments(files: list[Path], *options: str) -> Process:
    """Kafka's own reader of segments, its output thrown away."""
    command = ["java", "-cp", f"{kafka_jars()}/*", "org.apache.kafka.tools.DumpLogSegments", *options]
    return run([*command, "--files", ",".join(map(str, files))], one_core=True, quiet=True)


# ---- the machine -----------------------------------------------------------------------------------------------------
@cache
def machine() -> dict[str, str]:
    """What the numbers were measured on, and the versions of what was measured."""
    out = {
        "processor": _first(r"^model name\s*: (.*)$", _read("/proc/cpuinfo")) or platform.processor() or "unknown",
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
    }
    for package in ("llvmlite", "numpy", "z3-solver", "hypothesis"):
        out[package] = version(package)
    if tlc_jar() is not None:
        text = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
        out["Java"] = _first(r'version "(.*?)"', text)
        out["TLC"] = _first(r"^TLC2 Version (\S+)", tlc("Cleaner", "Cleaner_small")[0].output)
    if spin_here():
        out["SPIN"] = _first(r"Version (\S+)", subprocess.run(["spin", "-V"], capture_output=True, text=True).stdout)
        out["gcc"] = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return out


def _read(path: str) -> str:
    return Path(path).read_text() if Path(path).is_file() else ""


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1].strip() if found else "unknown"
