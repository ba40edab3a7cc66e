"""A campaign on several cores: the same verdict as on one, whatever the target does, and no process left behind."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.errors import UserError
from kafkaspec.judge import campaign, judging, parallel
from kafkaspec.judge.campaign import judge
from kafkaspec.judge.parallel import over
from kafkaspec.judge.result import Job, SubsystemVerdict
from kafkaspec.report.json import to_json
from tests.judge import toy_target
from tests.judge.forked import fork_targets
from tests.judge.test_campaign import found, timeless, toured
from tests.judge.toy_target import Sound, command
from tests.test_workers import lives

SMALL = 25
"""Histories of a block."""


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    fork_targets(monkeypatch)
    for module in (campaign, judging):
        monkeypatch.setattr(module, "find", found)
        monkeypatch.setattr(module, "BLOCK", SMALL)
    monkeypatch.setattr(judging, "_tours", toured)
    monkeypatch.setattr(parallel, "TELL_S", 0.0)


def judged(fault: type[Sound], jobs: int, examples: int | None = 110, **other: Any) -> SubsystemVerdict:
    fields = {k: other.pop(k) for k in ("fail_fast", "strict") if k in other}
    return judge(Job("toy", command(fault), min_calls=0, **fields), examples=examples, fan=over(jobs), **other)


def no_process_is_left() -> bool:
    return active_children() == []


FAULTS = (Sound, toy_target.ForgetsAndMiscounts, toy_target.Deviates, toy_target.DiesWrongly)


@pytest.mark.parametrize("fault", FAULTS, ids=[f.__name__ for f in FAULTS])
def test_the_verdict_is_the_same_on_however_many_cores(fault: type[Sound]) -> None:
    kept: dict[int, list[bytes]] = {n: [] for n in (1, 3)}
    one, three = (judged(fault, n, record=lines.append) for n, lines in kept.items())
    assert timeless(to_json(one)) == timeless(to_json(three))
    assert one.tally.model_states == three.tally.model_states
    assert one.rejections == three.rejections
    assert one.again == three.again
    if one.tally.trouble is None:  # of a target that dies, it is chance which of its last answers still come
        assert kept[1] == kept[3]
        assert one.tally.histories == 110
    assert no_process_is_left()


def test_the_first_rejection_in_order_ends_it() -> None:
    one, two = (judged(toy_target.ForgetsAndMiscounts, n, fail_fast=True) for n in (1, 2))
    assert timeless(to_json(one)) == timeless(to_json(two))
    assert len(two.rejections) == 1
    assert no_process_is_left()


def test_blocks_are_told_in_order_though_one_takes_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first block waits until all others are done."""
    block = judging.Session.block

    def slow(session: judging.Session, number: int, *rest: Any, **other: Any) -> Any:
        if number == 0:
            time.sleep(1.0)
        return block(session, number, *rest, **other)

    whole = judged(toy_target.ForgetsAndMiscounts, 1)
    monkeypatch.setattr(judging.Session, "block", slow)
    assert timeless(to_json(judged(toy_target.ForgetsAndMiscounts, 2))) == timeless(to_json(whole))


def test_what_was_judged_within_a_time_is_asked_again_by_its_command() -> None:
    r = judged(Sound, 2, None, time_s=0.3)
    assert r.verdict == "accepted"
    assert r.tally.histories > 0
    at_least = int(r.again.rpartition(" --examples ")[2])
    assert at_least % SMALL == 0
    assert r.tally.histories <= at_least <= r.tally.histories + 3 * SMALL
    assert no_process_is_left()


def test_no_block_is_begun_when_time_is_over_though_an_earlier_one_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tiny = 5
    at_once = campaign.Blocks.__call__

    def late(self: campaign.Blocks, block: campaign.Block, hear: campaign.Hear) -> campaign.Judged:
        if block[0] == 1:
            time.sleep(1)  # and the time of its process begins only then
        return at_once(self, block, hear)

    for module in (campaign, judging):
        monkeypatch.setattr(module, "BLOCK", tiny)
    monkeypatch.setattr(campaign.Blocks, "__call__", late)
    r = judged(Sound, 2, None, time_s=0.5)
    assert r.verdict == "accepted"
    assert int(r.again.rpartition(" --examples ")[2]) <= r.tally.histories + 3 * tiny


@pytest.mark.parametrize("fault", [Sound, toy_target.Forgets])
def test_ctrl_c_tells_what_every_process_has_judged(fault: type[Sound]) -> None:
    told = ""

    def interrupt(done: int, total: int | None, text: str) -> None:
        nonlocal told
        if done >= 30:
            told = text
            raise KeyboardInterrupt

    r = judged(fault, 2, 100_000, progress=interrupt)
    assert r.interrupted
    assert r.verdict == ("could not judge" if fault is Sound else "rejected")
    assert 30 <= r.tally.histories < 200
    assert told.startswith(f"{r.tally.calls:,} calls")
    assert ("rejected" in told) == bool(r.rejections)
    assert no_process_is_left()


STUBBORN = """
import os, signal, sys, time
sys.path.insert(0, {folder!r})
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open({pids!r} + "/" + str(os.getpid()), "w").close()
from leader_epochs import LeaderEpochs, serve
class Stubborn(LeaderEpochs):
    def clear(self):
        time.sleep(600)
    OPERATIONS = {{**LeaderEpochs.OPERATIONS, "clearAndFlush": clear}}
serve("Stubborn", "1", {{"leader_epochs": Stubborn}})
time.sleep(600)
"""


def test_a_target_that_does_not_go_is_ended_with_its_process(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    folder = Path(__file__).parents[2] / "targets" / "examples" / "python"
    script = tmp_path / "stubborn.py"
    script.write_text(STUBBORN.format(folder=str(folder), pids=str(pids)))
    job = Job("leader_epochs", shlex.join([sys.executable, str(script)]), timeout_s=30.0)
    started = time.monotonic()

    def waits(*_: Any) -> None:
        if len(list(pids.iterdir())) == 2 and time.monotonic() > started + 3:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, waits)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        r = judge(job, examples=1000, fan=over(2))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert r.interrupted
    assert no_process_is_left()
    assert not any(lives(int(p.name)) for p in pids.iterdir())


def test_a_process_that_is_killed_is_told_and_nothing_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    block = judging.Session.block

    def killed(session: judging.Session, number: int, *rest: Any, **other: Any) -> Any:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return block(session, number, *rest, **other)

    monkeypatch.setattr(judging.Session, "block", killed)
    message = "^judged no further: a process of the judge was ended by SIGKILL, as where memory runs out$"
    with pytest.raises(UserError, match=message):
        judged(Sound, 2)
    assert no_process_is_left()
