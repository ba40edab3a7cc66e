"""A cluster with transactions in the simulator: sound as it is, and found with any fault."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.impl.storage.last_stable_simulation import SCENARIO
from kafkaspec.simulate import Choices, RandomChoices, Run, run, shrunk
from kafkaspec.simulate import history as told
from kafkaspec.simulate.choices import Schedule
from kafkaspec.spec.storage.last_stable_parts.observer import (
    DECIDED,
    WHOLE,
    Record,
    TransactionObserver,
)
from kafkaspec.spec.storage.replication_parts.observer import ACKNOWLEDGED, ONCE
from tests.storage.last_stable_faults import FAULTS
from tests.storage.replication_faults import Fault

ROOT = Path(__file__).parent.parent.parent


def of(seed: int, schedule: Schedule = "mixed") -> Run:
    return run(SCENARIO, RandomChoices(SCENARIO, seed, schedule))


def survive(seeds: range) -> dict[str, int]:
    """None of these seeds breaks a rule; what happened in them."""
    out: dict[str, int] = {}
    for seed in seeds:
        r = of(seed)
        assert r.violation is None, (seed, r.violation)
        for name, n in r.counts.items():
            out[name] = out.get(name, 0) + n
    return out


def test_the_sound_one_survives() -> None:
    happened = survive(range(12))
    assert min(happened.values()) > 4, happened
    assert happened["transactions committed"] + happened["transactions aborted"] > 50


@pytest.mark.deep
def test_the_sound_one_survives_many_seeds() -> None:
    survive(range(12, 300))


@pytest.mark.parametrize("fault", [pytest.param(f, id=name) for name, f in FAULTS.items()])
def test_a_fault_is_found(fault: Fault) -> None:
    """By its seed, and the sound one is not."""
    r = run(fault.scenario, RandomChoices(fault.scenario, fault.first, fault.schedule))
    assert r.violation is not None
    assert r.violation.rule == fault.rule
    assert of(fault.first, fault.schedule).violation is None


@pytest.mark.deep
@pytest.mark.parametrize("fault", [pytest.param(f, id=name) for name, f in FAULTS.items()])
def test_no_earlier_seed_finds_it(fault: Fault) -> None:
    found = [
        seed
        for seed in range(fault.first)
        if run(fault.scenario, RandomChoices(fault.scenario, seed, fault.schedule)).violation is not None
    ]
    assert found == []


def test_a_failure_is_made_small_and_survived() -> None:
    """A follower that does not tell what was aborted: one record, one abort, and nothing else that is not as usual."""
    fault = FAULTS["followers_tell_no_aborted"]
    small = shrunk(run(fault.scenario, RandomChoices(fault.scenario, fault.first, fault.schedule)))
    assert small.violation is not None
    assert small.violation.rule == fault.rule
    assert len(small.choices) <= 3
    assert run(SCENARIO, Choices(SCENARIO, small.choices)).violation is None
    assert "aborted" in told.page(small, "")


# ---- who watches, with values
def data(sequence: int, epoch: int = 0, producer: int = 1) -> Record:
    return Record(producer, sequence, 1, epoch, "transactional", 0)


def ends(kind: str, epoch: int, producer: int = 1) -> Record:
    return Record(producer, -1, 1, epoch, kind, 0)


def watched(*log: Record, **decisions: bool) -> TransactionObserver:
    """One replica, which leads and has this log."""
    o = TransactionObserver(["r1"])
    o.decisions = {(int(n[1]), int(n[3])): committed for n, committed in decisions.items()}
    o.appends("r1", log)
    assert o.leads("r1", 1) is None
    return o


def rule(found: Any) -> str:
    return "" if found is None else found.rule


def test_a_marker_says_what_was_decided() -> None:
    log = data(0), ends("abort", 1)
    assert rule(watched(*log, p1e0=False).shows("r1", 2)) == ""
    assert rule(watched(*log, p1e0=True).shows("r1", 2)) == DECIDED
    assert rule(watched(*log).shows("r1", 2)) == DECIDED


def test_a_committed_transaction_is_whole() -> None:
    o = watched(data(0), ends("commit", 1), p1e0=True)
    o.promised[1, 0] = 2
    assert rule(o.shows("r1", 2)) == WHOLE
    o = watched(data(0), ends("commit", 1), p1e0=True)
    o.promised[1, 0] = 1
    assert o.shows("r1", 2) is None


def test_epochs_fence_off() -> None:
    o = watched(data(0), ends("abort", 1), data(1), p1e0=False)
    assert o.shows("r1", 2) is None
    assert rule(o.shows("r1", 3)) == "PSM-6"
    assert rule(watched(data(0), data(0, 1)).shows("r1", 2)) == "PSM-6"
    assert rule(watched(data(0), data(2)).shows("r1", 2)) == ONCE


def test_what_is_open_is_not_stable() -> None:
    o = watched(data(0), Record(9, 0, 1, 0, "plain", 0), data(0, 0, 2))
    assert o.is_stable("r1", 0, 3) is None
    assert rule(o.is_stable("r1", 1, 3)) == "LSO-2"
    assert rule(o.is_stable("r1", 1, 0)) == "LSO-1"
    o.appends("r1", [ends("commit", 1)])
    assert o.is_stable("r1", 2, 3) is None
    assert rule(o.is_stable("r1", 3, 3)) == "LSO-2"
    assert o.cuts("r1", 3) is None  # the marker: the first one is open again
    assert rule(o.is_stable("r1", 2, 3)) == "LSO-2"


def test_what_a_consumer_is_given() -> None:
    log = data(0), data(0, 0, 2), ends("abort", 1), ends("commit", 1, 2), data(0, 1)

    def committed() -> TransactionObserver:
        o = watched(*log, p1e0=False, p2e0=True)
        o.promised[2, 0] = 1
        assert o.shows("r1", 5) is None
        return o

    assert committed().moves("c", 4, [(1, log[1])]) is None
    assert rule(committed().moves("c", 4, [])) == "LSO-11"
    assert rule(committed().moves("c", 1, [(0, log[0])])) == "LSO-11"
    assert rule(committed().moves("c", 5, [(1, log[1])])) == "LSO-11"
    assert rule(committed().moves("c", 4, [(1, log[1]), (3, log[3])])) == "LSO-16"
    assert rule(committed().moves("c", 2, [(1, log[1]), (7, log[1])])) == "LSO-16"
    assert rule(committed().moves("c", 2, [(1, log[0])])) == "RPN-12"
    assert rule(committed().moves("c", 6, [])) == "RPN-12"
    assert rule(committed().unended()) == "LSO-19"


def test_the_index_of_aborted_transactions() -> None:
    o = watched(data(0), data(0, 0, 2), ends("abort", 1), ends("commit", 1, 2), ends("abort", 2))
    assert o.index_is_right("r1", [(1, 0, 2)]) is None
    for wrong in ([], [(1, 0, 2), (1, 0, 2)], [(1, 0, 2), (2, 1, 3)], [(1, 0, 4)]):
        assert rule(o.index_is_right("r1", wrong)) == "LSO-4"


def test_what_is_acknowledged_is_that_of_an_epoch() -> None:
    o = watched(data(0))
    assert o.shows("r1", 1) is None
    assert o.acknowledged(0, [data(0)]) is None
    assert rule(o.acknowledged(0, [data(0, 1)])) == ACKNOWLEDGED


def test_the_page_tells_of_every_fault() -> None:
    """With its schedule, its first seed and its rule, in the order of the faults."""
    page = (ROOT / "docs" / "storage" / "last_stable.md").read_text("utf-8")
    rows = re.findall(r"^\| [^|]+ \| (uniform|swarm|priority|mixed) \| (\d+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert rows == [(f.schedule, str(f.first), f.rule) for f in FAULTS.values()]
