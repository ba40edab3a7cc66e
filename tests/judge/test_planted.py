"""Faults that a stranger planted in a target of his own, written in Rust from the documentation alone: of range,
boundary and depth. All but one are rejected at the judge's defaults."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kafkaspec.judge.campaign import judge
from kafkaspec.judge.result import Job, SubsystemVerdict

RUST = Path(__file__).parents[2] / "targets" / "examples" / "rust"
PATCH = Path(__file__).parent / "planted" / "offset_index.patch"
EXAMPLES = 1_000
"""The default."""

MOST_CALLS = 90_000
"""Before a fault is rejected, and of a whole campaign: 60 s of CPU, of 1,500 calls each, which a slow machine makes."""

FAULTS = {
    1: ("a relative offset is computed in floating point, exact up to 2^53", "OIX-1 OIX-2"),
    2: ("a relative offset is read without its sign", "OIX-1"),
    3: ("a fetch's upper bound compares positions without their sign", "OIX-10"),
    4: ("append compares with the last offset in 32 bits that wrap", "OIX-3"),
    5: ("the number of an entry is cut to 16 bits", "OIX-21"),
    7: ("a search makes its target relative in 32 bits that wrap", "OIX-6 OIX-7 OIX-11"),
    8: ("append to an empty index asks for more than the base offset", "OIX-3"),
    9: ("full counts bytes: wrong with odd bytes at the end", "OIX-4"),
    10: ("truncating to the last offset keeps it", "OIX-11"),
    11: ("the cold section ends one slot too early", "OIX-6 OIX-7"),
    12: ("the warm section is searched for its first entry too", "OIX-7"),
    13: ("a new file of one slot is refused", "OIX-13"),
    15: ("resizing changes the maximum that a reset uses", "OIX-17"),
    16: ("append compares with the highest offset that there ever was", "OIX-3 OIX-11"),
    17: ("what a lookup remembers is not forgotten by an append", "OIX-6"),
    18: ("a search gives up after 11 looks", "OIX-6 OIX-8"),
    19: ("resizing to the same length makes a read-only index writable", "OIX-19"),
    20: ("a page in memory is not read again when its last slot was written", "OIX-5 OIX-6"),
    21: ("truncating searches the warm section alone", "OIX-11"),
}
"""What it is, and the clauses that it breaks."""
TOO_DEEP = 22
"""What a lookup remembers is tagged with 8 bits, which begin again after 256 changes: longer than histories are."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command of the target with the faults, which takes `--fault N`."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not on the path")
    where = tmp_path_factory.mktemp("rust")
    shutil.copytree(RUST, where, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target"))
    subprocess.run(["git", "apply", str(PATCH)], cwd=where, check=True)
    done = subprocess.run(["cargo", "build", "--quiet", "--release"], cwd=where, capture_output=True, text=True)
    if done.returncode != 0 and "crates" in done.stderr:
        pytest.skip(f"cargo cannot get what the target needs: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return str(where / "target" / "release" / "offset-index-target")


def judged(target: str, fault: int, fail_fast: bool = True) -> SubsystemVerdict:
    job = Job("offset_index", f"{target} --fault {fault}", timeout_s=60.0, fail_fast=fail_fast)
    return judge(job, examples=EXAMPLES)


@pytest.mark.deep
def test_without_a_fault_it_is_accepted(target: str) -> None:
    r = judged(target, 0)
    assert (r.verdict, r.why) == ("accepted", "")
    assert 10_000 < r.tally.calls <= MOST_CALLS


@pytest.mark.deep
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_rejected_and_its_rule_cited(target: str, fault: int) -> None:
    what, clauses = FAULTS[fault]
    r = judged(target, fault)
    assert r.verdict == "rejected", what
    assert r.tally.calls <= MOST_CALLS
    (found,) = r.rejections
    assert {found.clause, *found.verdict.others} & set(clauses.split()), (what, found.clause, found.verdict.others)


def test_what_is_planted_is_what_is_listed() -> None:
    text = PATCH.read_text("utf-8")
    planted = {n for n in range(1, 30) if f"fault({n})" in text or f"Some({n}) =>" in text}
    assert planted == {*FAULTS, TOO_DEEP}
