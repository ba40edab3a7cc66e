"""The targets to begin from, in three languages: each is accepted, and its faulty variant is rejected by the rule that
it breaks, with a history as short as that rule allows."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafkaspec.judge.campaign import judge
from kafkaspec.judge.result import Job, SubsystemVerdict

EXAMPLES = Path(__file__).parents[2] / "targets" / "examples"
OFFERED = {
    *("assign", "truncateFromEndAsyncFlush", "truncateFromStartAsyncFlush", "clearAndFlush"),
    *("endOffsetFor", "epochForOffset"),
}


def verdict(command: str, examples: int = 50) -> SubsystemVerdict:
    return judge(Job("leader_epochs", command, timeout_s=30.0), examples=examples)


def built(language: str, where: Path) -> tuple[str, str]:
    """The commands of the target and of its faulty variant; the test is skipped where the language is not there."""
    if language == "python":
        right, faulty = (str(EXAMPLES / "python" / f) for f in ("leader_epochs.py", "faulty.py"))
        return shlex.join([sys.executable, right]), shlex.join([sys.executable, faulty])
    tool = {"java": "javac", "go": "go"}[language]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not on the path")
    if language == "java":
        sources = map(str, sorted((EXAMPLES / "java").glob("*.java")))
        subprocess.run(["javac", "--release", "17", "-d", str(where), *sources], check=True, timeout=120)
        java = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", str(where)]
        return shlex.join([*java, "LeaderEpochs"]), shlex.join([*java, "FaultyLeaderEpochs"])
    for tags, name in ((), "right"), (("-tags", "faulty"), "faulty"):
        subprocess.run(
            ["go", "build", "-C", str(EXAMPLES / "go"), *tags, "-o", str(where / name), "."], check=True, timeout=120
        )
    return str(where / "right"), str(where / "faulty")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("language", "clause", "operation", "calls"),
    [
        ("python", "LEC-10", "endOffsetFor", 3),
        ("java", "LEC-6", "truncateFromStartAsyncFlush", 2),
        ("go", "LEC-2", "assign", 2),
    ],
)
@pytest.mark.clause("LEC-10", "LEC-6", "LEC-2")
def test_accepted_and_with_a_fault_rejected(
    language: str, clause: str, operation: str, calls: int, tmp_path: Path
) -> None:
    right, faulty = built(language, tmp_path)
    good = verdict(right)
    assert (good.verdict, good.why) == ("accepted", "")
    assert set(good.tally.operations) == OFFERED
    assert not good.not_called
    bad = verdict(faulty)
    assert bad.verdict == "rejected"
    (found,) = bad.rejections
    assert (found.clause, found.operation) == (clause, operation)
    assert len(found.history.records) == 1 + calls, str(found.history)


def test_the_template_is_short() -> None:
    """An afternoon's worth: under a hundred lines, and it imports nothing but Python's own."""
    text = (EXAMPLES / "python" / "leader_epochs.py").read_text()
    assert len(text.splitlines()) < 100
    assert [line for line in text.splitlines() if line.startswith(("import", "from"))] == [
        "import json",
        "import os",
        "import sys",
        "import time",
    ]
