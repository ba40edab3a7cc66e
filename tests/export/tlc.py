"""TLC, where it can be had: the judge of the TLA+ that we write."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

JAR = "TLA2TOOLS is not the path of a tla2tools.jar (github.com/tlaplus/tlaplus, releases)"
JAVA = "there is no java on PATH"


@dataclass(frozen=True)
class StateCount:
    """What TLC says: its counts, and the error it met ("" if none)."""

    generated: int
    distinct: int
    depth: int
    error: str
    output: str


def tools() -> Path:
    """The jar; skips the test where TLC cannot be had, naming what is missing."""
    jar = os.environ.get("TLA2TOOLS", "")
    missing = ([] if jar else [JAR]) + ([] if shutil.which("java") else [JAVA])
    if missing:
        pytest.skip(f"TLC cannot be had: {', and '.join(missing)}")
    path = Path(jar)
    assert path.is_file(), f"TLA2TOOLS={jar} is no file: {JAR}"
    return path.resolve()


def tlc(folder: Path, module: str, configuration: str) -> StateCount:
    """Run TLC on a module and a configuration, with one worker, so that the depth is exact."""
    match = re.search(r"MODULE (\w+)", module)
    assert match is not None
    name = match[1]
    (folder / f"{name}.tla").write_text(module)
    (folder / f"{name}.cfg").write_text(configuration)
    command = [
        "java",
        "-XX:+UseSerialGC",
        "-cp",
        str(tools()),
        "tlc2.TLC",
        "-workers",
        "1",
        "-metadir",
        str(folder / "meta"),
        name,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    out = done.stdout
    counts = re.search(r"^(\d+) states generated, (\d+) distinct states found", out, re.MULTILINE)
    depth = re.search(r"depth of the complete state graph search is (\d+)", out)
    errors = re.findall(r"^Error: (.*)$|^(.*is violated.*|\*\*\* Errors:.*|Could not parse.*)$", out, re.MULTILINE)
    assert counts or errors, f"TLC ended without an answer, exit status {done.returncode}:\n{out}{done.stderr}"
    return StateCount(
        int(counts[1]) if counts else -1,
        int(counts[2]) if counts else -1,
        int(depth[1]) if depth else -1,
        "; ".join(a or b for a, b in errors),
        out,
    )
