"""Processes that are watched: their answers, what they say, and how they end."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing import active_children
from pathlib import Path
from typing import Self, get_args

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


class Tidy:
    """Work that leaves a file while it is under way, and takes its time to tidy up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Self:
        self.file = self.folder / str(os.getpid())
        self.file.touch()
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(0.1)
        self.file.unlink()

    def __call__(self, task: str, say: Say) -> str:
        say(task)
        if task == "wait":
            time.sleep(60)
        if task == "collect":
            gc.callbacks.append(lambda *_: time.sleep(60))
            gc.collect()
        return _done(task, say)


def files(folder: Path, number: int) -> int:
    """How many there are, once it is that number or half a minute has passed."""
    until = time.monotonic() + 30
    while len(list(folder.iterdir())) != number and time.monotonic() < until:
        time.sleep(0.01)
    return len(list(folder.iterdir()))


@BEGIN
def test_work_that_tidies_up_does_so_however_it_ends(start: Start, tmp_path: Path) -> None:
    assert sorted(each(Tidy(tmp_path), "abc", 2, ended, start=start)) == ["A", "B", "C"]
    assert files(tmp_path, 0) == 0
    with pytest.raises(LookupError):
        list(each(Tidy(tmp_path), ["wait", "raise"], 2, ended, start=start))
    assert files(tmp_path, 0) == 0


def _twice(process: int) -> None:
    for number in (signal.SIGHUP, signal.SIGTERM):
        os.kill(process, number)
        time.sleep(0.02)


@pytest.mark.parametrize("task", ["wait", "collect"])
def test_work_that_tidies_up_is_not_disturbed_in_it(tmp_path: Path, task: str) -> None:
    """Also by the signal that a terminal sends to all of its processes before their parent ends them."""
    processes = list[int]()

    def hear(_: str) -> None:
        (file,) = tmp_path.iterdir()
        processes.append(int(file.name))
        _twice(processes[0])

    assert [*each(Tidy(tmp_path), [task], 1, ended, hear=hear, start="fork")] == [f"{task} ended with status 0"]
    assert files(tmp_path, 0) == 0


def test_work_that_tidies_up_does_so_when_its_parent_is_gone(tmp_path: Path) -> None:
    text = f"""
import os
from pathlib import Path
from kafkaspec.workers import each
from tests.test_workers import Tidy, ended

answers = each(Tidy(Path({str(tmp_path)!r})), "abcd", 2, ended, start="fork")
print(next(answers), len(os.listdir({str(tmp_path)!r})), flush=True)
os.kill(os.getpid(), 9)
"""
    process = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)
    assert process.returncode == -signal.SIGKILL
    assert process.stdout[:1] in "AB"
    assert process.stdout[2:] in ("1\n", "2\n")
    assert files(tmp_path, 0) == 0


def test_a_task_is_taken_when_a_process_is_free_for_it() -> None:
    taken = 0

    def tasks() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "a"

    answers = each(_done, tasks(), 2, ended, start="fork")
    for n in range(5):
        assert next(answers) == "A"
        assert taken <= n + 3
    answers.close()
    assert active_children() == []


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
