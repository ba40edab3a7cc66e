"""A cluster whose replicas change, in the simulator: sound as it is, and found with any fault."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.cli.simulate import find
from kafkaspec.impl.storage.replication_parts.messages import NONE, BrokerHeartbeatRequest, BrokerRegistrationRequest
from kafkaspec.impl.storage.replication_parts.reassignment import ReassigningController
from kafkaspec.impl.storage.replication_simulation import (
    AT_REST,
    ENOUGH,
    FIVE,
    REASSIGNED,
    REASSIGNING,
    REPLICAS,
    SESSION_MS,
    TARGET,
)
from kafkaspec.simulate import RandomChoices, run
from kafkaspec.simulate.scenario import Ask, Message, Send
from tests.storage.reassignment_faults import FAULTS
from tests.storage.replication_faults import Fault

ROOT = Path(__file__).parent.parent.parent


def survive(seeds: range) -> dict[str, int]:
    """None of these seeds breaks a rule; what happened in them."""
    out: dict[str, int] = {}
    for seed in seeds:
        r = run(REASSIGNING, RandomChoices(REASSIGNING, seed, "mixed"))
        assert r.violation is None, (seed, r.violation)
        for name, n in r.counts.items():
            out[name] = out.get(name, 0) + n
    return out


def test_the_sound_one_survives() -> None:
    happened = survive(range(10))
    assert min(happened[name] for name in REASSIGNED) > 2, happened
    assert happened["records read"] == happened["records committed"] > 300


@pytest.mark.deep
def test_the_sound_one_survives_many_seeds() -> None:
    survive(range(10, 200))


@pytest.mark.parametrize("fault", [pytest.param(f, id=name) for name, f in FAULTS.items()])
def test_a_fault_is_found(fault: Fault) -> None:
    """By its seed, and the sound one is not."""
    r = run(fault.scenario, RandomChoices(fault.scenario, fault.first, fault.schedule))
    assert r.violation is not None
    assert r.violation.rule == fault.rule
    assert run(REASSIGNING, RandomChoices(REASSIGNING, fault.first, fault.schedule)).violation is None


@pytest.mark.deep
@pytest.mark.parametrize("fault", [pytest.param(f, id=name) for name, f in FAULTS.items()])
def test_no_earlier_seed_finds_it(fault: Fault) -> None:
    for seed in range(fault.first):
        assert run(fault.scenario, RandomChoices(fault.scenario, seed, fault.schedule)).violation is None, seed


def test_every_rule_of_a_reassignment_has_a_fault() -> None:
    assert {TARGET, REPLICAS, ENOUGH, "RPN-14", AT_REST} <= {f.rule for f in FAULTS.values()}


def test_it_is_found_by_its_name() -> None:
    assert find("replication:REASSIGNING") is REASSIGNING


def test_the_page_tells_of_every_fault() -> None:
    """With its first seed and its rule, in the order of the faults."""
    page = (ROOT / "docs" / "engines" / "simulate.md").read_text("utf-8")
    _, _, page = page.partition("\n## Replicas that change")
    names = {TARGET: "target", REPLICAS: "replicas", ENOUGH: "enough"}
    rows = re.findall(r"^\| [^|]+ \| (\d+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert rows == [(str(f.first), names.get(f.rule, f.rule)) for f in FAULTS.values()]


# ---- the controller, with values
class Controller:
    """A controller with five brokers that are there, of which b1 leads b1, b2 and b3."""

    def __init__(self) -> None:
        self.c = ReassigningController("k", FIVE, lambda: 0, SESSION_MS)
        for b in FIVE:
            self.c.handle(Message(b, BrokerRegistrationRequest(1)))
        for b in FIVE:
            self.c.handle(Message(b, BrokerHeartbeatRequest(self.c.brokers[b].epoch, self.c.version)))
        self.changes = 0

    @property
    def state(self) -> tuple[str, str, str, str, str]:
        """Replicas, those being added, those to be removed, those in sync, and the leader."""
        c = self.c
        return *(" ".join(x) for x in (c.replicas, c.adding, c.removing, c.isr)), c.leader  # type: ignore[return-value]

    def ask(self, *what: Any) -> tuple[str, str, str, str, str]:
        self.c.handle(Ask([*what]))
        return self.state

    def alters(self, *isr: str) -> str:
        """What the leader is answered that asks for these."""
        from kafkaspec.impl.storage.replication_parts.messages import AlterPartitionRequest, Member

        c = self.c
        self.changes += 1
        lives = tuple(Member(b, c.brokers[b].epoch) for b in isr)
        leader = c.brokers[c.leader].epoch
        body = AlterPartitionRequest(self.changes, leader, c.leader_epoch, c.partition_epoch, lives)
        answers = [e.body for e in c.handle(Message(c.leader, body)) if type(e) is Send]
        return str(answers[-1].error)


def test_replicas_are_added_before_others_are_removed() -> None:
    k = Controller()
    assert k.state == ("b1 b2 b3", "", "", "b1 b2 b3", "b1")
    assert k.ask("reassign", ["b4", "b2", "b3"]) == ("b4 b2 b3 b1", "b4", "b1", "b1 b2 b3", "b1")
    epoch = k.c.leader_epoch
    assert k.alters("b1", "b2", "b3", "b4") == NONE
    assert k.state == ("b4 b2 b3", "", "", "b2 b3 b4", "b2")
    assert k.c.leader_epoch > epoch


def test_it_ends_when_the_added_are_in_sync_and_not_before() -> None:
    """One that stays may be out of sync, as it was before: so Kafka 4.3.0 does it."""
    k = Controller()
    assert k.alters("b1", "b2") == NONE
    assert k.ask("reassign", ["b1", "b3", "b4"]) == ("b1 b3 b4 b2", "b4", "b2", "b1 b2", "b1")
    assert k.alters("b1", "b2", "b3") == NONE
    assert k.state == ("b1 b3 b4 b2", "b4", "b2", "b1 b2 b3", "b1")
    assert k.alters("b1", "b2", "b4") == NONE
    assert k.state == ("b1 b3 b4", "", "", "b1 b4", "b1")


def test_with_fewer_replicas_it_ends_when_all_of_them_are_in_sync() -> None:
    k = Controller()
    assert k.alters("b1", "b2") == NONE
    assert k.ask("reassign", ["b1", "b3"]) == ("b1 b3 b2", "", "b2", "b1 b2", "b1")
    assert k.alters("b1", "b2", "b3") == NONE
    assert k.state == ("b1 b3", "", "", "b1 b3", "b1")


def test_the_way_back_keeps_those_that_were_to_go() -> None:
    k = Controller()
    k.ask("reassign", ["b4", "b5", "b1"])
    assert k.alters("b1", "b2", "b3", "b4") == NONE
    assert k.ask("cancel") == ("b1 b2 b3", "", "", "b1 b2 b3", "b1")
    assert k.ask("cancel") == ("b1 b2 b3", "", "", "b1 b2 b3", "b1")


def test_the_way_back_is_refused_if_only_the_added_are_in_sync() -> None:
    """It would be an unclean election."""
    k = Controller()
    k.ask("reassign", ["b4", "b5", "b1"])
    assert k.alters("b1", "b4") == NONE
    k.c._leave("b1")
    before = k.state
    assert before[3:] == ("b4", "b4")
    assert k.ask("cancel") == before


def test_the_way_back_from_a_second_target_is_not_the_beginning() -> None:
    """As Kafka does it: what the first target added is a replica by then, and stays one."""
    k = Controller()
    k.ask("reassign", ["b1", "b2", "b4"])
    assert k.ask("reassign", ["b1", "b2", "b5"]) == ("b1 b2 b5 b4 b3", "b5", "b4 b3", "b1 b2 b3", "b1")
    assert k.ask("cancel") == ("b1 b2 b4 b3", "", "", "b1 b2 b3", "b1")


def test_another_order_ends_at_once() -> None:
    k = Controller()
    assert k.alters("b1", "b2") == NONE
    assert k.ask("reassign", ["b3", "b2", "b1"]) == ("b3 b2 b1", "", "", "b1 b2", "b1")


def test_who_is_no_replica_does_not_join() -> None:
    assert Controller().alters("b1", "b2", "b3", "b4") == "INVALID_REQUEST"
