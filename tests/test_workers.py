"""Processes that are watched: their answers, what they say, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path
from typing import get_args

import pytest

from kafkaspec.workers import Say, Start, cores, each

BEGIN = pytest.mark.parametrize("start", get_args(Start))


def _done(task: str, say: Say) -> str:
    match task:
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise LookupError("not there")
        case "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
    say(task)
    return task.upper()


def ended(task: str, how: str) -> str:
    return f"{task} {how}"


@BEGIN
def test_who_ends_costs_its_own_task(start: Start) -> None:
    tasks = ["a", "exit", "b", "kill", "c", "d"]
    said = each(_done, tasks, 2, ended, start=start)
    ends = ["exit ended with status 3", "kill was ended by SIGKILL, as where memory runs out"]
    assert sorted(said) == ["A", "B", "C", "D", *ends]
    assert active_children() == []


@BEGIN
def test_what_a_task_says_is_heard_before_its_answer(start: Start) -> None:
    heard = list[str]()
    for answer in each(_done, ["a", "b", "c"], 2, ended, hear=heard.append, start=start):
        assert answer.lower() in heard
    assert sorted(heard) == ["a", "b", "c"]


@BEGIN
def test_what_a_task_raises_is_raised(start: Start) -> None:
    with pytest.raises(LookupError, match="not there"):
        list(each(_done, ["raise", *"abcdef"], 2, ended, start=start))
    assert active_children() == []


@BEGIN
def test_ctrl_c_is_not_the_workers(start: Start) -> None:
    assert list(each(_done, ["interrupt"], 1, ended, start=start)) == ["INTERRUPT"]


def test_a_copy_does_not_tidy_up_for_its_parent() -> None:
    """What handles a signal in the parent, as for an archive that was unpacked, does so there alone."""
    before = signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
    try:
        ends = each(_terminated, ["self"], 1, ended, start="fork")
        assert list(ends) == ["self was ended by SIGTERM"]
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminated(task: str, say: Say) -> str:
    os.kill(os.getpid(), signal.SIGTERM)
    return task


@BEGIN
def test_workers_end_when_their_parent_is_gone(start: Start) -> None:
    text = f"""
import os
from kafkaspec.workers import each
from tests.test_workers import ended, pid

answers = each(pid, range(9), 3, ended, start={start!r})
print(*[next(answers) for _ in range(6)], flush=True)
os.kill(os.getpid(), 9)
"""
    command = [sys.executable, "-c", text]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (process.returncode, process.stderr) == (-signal.SIGKILL, "")
    pids = {int(pid) for pid in process.stdout.split()}
    assert pids
    until = time.monotonic() + 30
    while any(map(lives, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(lives, pids))


def pid(_task: int, _say: Say) -> int:
    return os.getpid()


def lives(pid: int) -> bool:
    """Whether a process is there, and not only its parent's wait for it is missing."""
    try:
        return b"Z" not in Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2]
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_cores_are_those_that_we_may_use() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)
