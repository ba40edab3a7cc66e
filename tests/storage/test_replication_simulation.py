"""A cluster in the simulator: sound as it is, found with any fault, and the same from the same seed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.storage.replication_parts.broker import DIRECTORY, MOST_REQUESTS, Broker, Config
from kafkaspec.impl.storage.replication_parts.clients import MOST_RECORDS, Producer
from kafkaspec.impl.storage.replication_parts.messages import NONE, MetadataRequest, ProduceResponse
from kafkaspec.impl.storage.replication_simulation import (
    BROKERS,
    CONSUMER,
    CONTROLLER,
    ENOUGH,
    FENCED,
    LOG,
    SCENARIO,
    Watch,
    cluster,
)
from kafkaspec.simulate import Choices, RandomChoices, Run, run, shrunk
from kafkaspec.simulate import history as told
from kafkaspec.simulate.choices import Schedule
from kafkaspec.simulate.scenario import Ask, Send, Violation
from kafkaspec.simulate.world import NODE_FAILED
from kafkaspec.spec.storage.replication_parts.observer import ACKNOWLEDGED, COUNTED, ONCE, Observer, Record
from tests.storage.replication_faults import FAULTS, Fault

ROOT = Path(__file__).parent.parent.parent


def of(seed: int, schedule: Schedule = "mixed") -> Run:
    return run(SCENARIO, RandomChoices(SCENARIO, seed, schedule))


def text(seed: int) -> str:
    return told.page(of(seed), "", full=True)


def survive(seeds: range) -> dict[str, int]:
    """None of these seeds breaks a rule; what happened in them."""
    out = dict.fromkeys((*COUNTED, "segments rolled"), 0)
    for seed in seeds:
        r = of(seed)
        assert r.violation is None, (seed, r.violation)
        for name, n in r.counts.items():
            out[name] += n
    return out


def test_the_sound_one_survives() -> None:
    happened = survive(range(24))
    assert min(happened.values()) > 20, happened
    assert happened["records read"] == happened["records committed"]


@pytest.mark.deep
def test_the_sound_one_survives_many_seeds() -> None:
    survive(range(24, 600))


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


def test_a_failure_is_made_small() -> None:
    """A leader is elected behind one record that is committed, and a follower cuts it off: KIP-101. The page shows the
    end of that history."""
    fault = FAULTS["truncates_to_high_watermark"]
    r = run(fault.scenario, RandomChoices(fault.scenario, 3, "mixed"))
    small = shrunk(r)
    assert len(r.choices) > 90
    assert [v[1:] for v in small.choices.values()] == [["ask", "p1", ["produce", 1]], ["ask", "k", ["elect"]]]
    text = told.page(small, "")
    assert len(text.splitlines()) < 80
    page = (ROOT / "docs" / "engines" / "simulate.md").read_text("utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    chosen, happened = shown.split("\n  ...\n")
    assert chosen in text
    assert happened in text
    assert run(fault.scenario, Choices(fault.scenario, small.choices)).steps == small.steps
    assert run(SCENARIO, Choices(SCENARIO, small.choices)).violation is None


def test_the_same_seed_is_the_same_run_with_any_seed_of_hashes() -> None:
    program = "from tests.storage.test_replication_simulation import *\nprint(*map(text, (1, 4, 5)), sep='')"
    texts = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout.decode()
        for seed in ("1", "2")
    ]
    assert "CRASHES: the power fails: what was not flushed is lost in part" in texts[0]
    assert texts[0] == texts[1] == "".join(map(text, (1, 4, 5))) + "\n"


def test_at_rest_all_logs_are_one() -> None:
    """The files of the brokers are compared, not what they say: one byte that differs is seen."""
    r = of(0)
    nodes: dict[str, Any] = {}

    class Keeps(Watch):
        def settled(self, of: Any) -> Any:
            nodes.update(of)
            assert super().settled(of) is None
            log = of["b3"].log.active
            path = log.path(".log")
            data = bytearray(of["b3"].disk.read(path))
            data[17] ^= 1  # of the first batch's CRC
            of["b3"].disk.names[path].content = bytes(data)
            return super().settled(of)

    found = run(replace(SCENARIO, monitors=lambda: [Keeps()]), RandomChoices(SCENARIO, 0, "mixed"))
    assert r.violation is None
    assert found.violation is not None
    assert found.violation.rule == "RPL-3"
    assert nodes.keys() >= {*BROKERS, CONSUMER}


LATE = {
    "k>b2 #2": [235],
    "b2>k #2": [110],
    "step 6": [1, "ask", "p2", ["produce", 1]],
    "k>b2 #5": [4],
    "k>b2 #7": [20],
    "step 8": [224, "ask", "k", ["elect"]],
    "k>b2 #8": [13],
    "b3>b2 #1": [423],
    "step 10": [225, "ask", "k", ["elect"]],
    "step 11": [225, "ask", "k", ["elect"]],
    "step 12": [225, "ask", "k", ["elect"]],
    "step 13": [225, "ask", "k", ["elect"]],
    "step 14": [225, "ask", "k", ["elect"]],
    "step 15": [225, "ask", "k", ["elect"]],
    "step 16": [237, "ask", "k", ["elect"]],
    "step 18": [626, "crash", "b2", 1, 0, 0],
    "step 19": [225, "ask", "k", ["elect"]],
    "k>b2 #23": [18],
}  # fmt: skip
"""An answer to a broker comes when that one has crashed, is there again, and waits for another one."""


def test_an_answer_of_an_earlier_life_is_none() -> None:
    """Found by seed 1460 of a version that numbered its requests from 1 in each life."""

    class NumbersFromOne(Broker):
        def take_registration(self, source: str, body: Any) -> None:
            super().take_registration(source, body)
            self.correlation %= MOST_REQUESTS

    assert run(SCENARIO, Choices(SCENARIO, LATE)).violation is None
    faulty = cluster(broker=NumbersFromOne)
    found = run(faulty, Choices(faulty, LATE)).violation
    assert found is not None
    assert found.rule == NODE_FAILED
    assert found.what.startswith("b2: UnexpectedAppendOffset: 0 below the log end 1")


class AcknowledgesAnother(Broker):
    """An acknowledgement names a sequence with which no batch begins."""

    def complete_produces(self) -> None:
        before = len(self.effects)
        super().complete_produces()
        for n, e in enumerate(self.effects[before:], before):
            if type(e) is Send and type(e.body) is ProduceResponse and e.body.error == NONE:
                self.effects[n] = Send(e.target, e.body._replace(base_sequence=e.body.base_sequence + 1))


class SendsToNobody(Broker):
    """To a node that there is not."""

    def heartbeat(self) -> None:
        super().heartbeat()
        self.send("b9", MetadataRequest())


class AnswersNothing(Broker):
    """No effects, and not even none of them."""

    def handle(self, event: Any) -> Any:
        super().handle(event)


class AnswersWithWords(Broker):
    """What it gives back are no effects."""

    def handle(self, event: Any) -> Any:
        return [*super().handle(event), "done"]


@pytest.mark.parametrize(
    ("broker", "broken", "word"),
    [
        (AcknowledgesAnother, ACKNOWLEDGED, "has no batch of sequence"),
        (SendsToNobody, NODE_FAILED, "it sends to 'b9', and there is no such node"),
        (AnswersNothing, NODE_FAILED, "its effects are None"),
        (AnswersWithWords, NODE_FAILED, "'done' is no effect"),
    ],
)
def test_a_broker_that_talks_nonsense_is_told_as_one(broker: type[Broker], broken: str, word: str) -> None:
    faulty = cluster(broker=broker)
    found = run(faulty, RandomChoices(faulty, 0, "mixed")).violation
    assert found is not None
    assert found.rule == broken
    assert word in found.what


# ---- who watches, with values
A, B, C = Record(1, 7, 0, 0), Record(1, 7, 1, 0), Record(2, 8, 0, 0)


def watched(*logs: list[Record], leads: int = 1) -> Observer:
    """Replicas r1, r2, ... with these logs, of which the first one leads."""
    o = Observer([f"r{n}" for n, _ in enumerate(logs, 1)])
    for n, log in enumerate(logs, 1):
        o.appends(f"r{n}", log)
    assert o.leads("r1", leads) is None
    return o


def rule(found: Any) -> str:
    return "" if found is None else found.rule


def test_what_a_leader_shows_is_committed() -> None:
    o = watched([A, B], [A, B])
    assert o.shows("r1", 1) is None
    assert o.committed == [A]
    assert o.shows("r2", 1) is None
    assert rule(o.shows("r2", 2)) == "RPN-9"  # it does not lead


def test_whoever_is_in_sync_has_what_is_committed() -> None:
    o = watched([A, B], [A])
    assert o.shows("r1", 1) is None
    assert rule(o.shows("r1", 2)) == "RPN-14"
    o = watched([A, B], [A, C])
    assert o.are_in_sync(["r1"]) is None
    assert o.shows("r1", 2) is None
    assert rule(o.are_in_sync(["r1", "r2"])) == "RPN-14"
    assert rule(watched([A], [A]).cuts("r2", 0)) == ""
    o = watched([A], [A])
    assert o.shows("r1", 1) is None
    assert rule(o.cuts("r2", 0)) == "RPN-14"


def test_all_show_one_log() -> None:
    o = watched([A, B], [A, C])
    assert o.are_in_sync(["r1"]) is None
    assert o.shows("r1", 2) is None
    assert o.shows("r2", 1) is None
    assert rule(o.shows("r2", 2)) == "RPN-12"


def test_a_leaders_high_watermark_does_not_fall() -> None:
    o = watched([A, B], [A, B])
    assert o.shows("r1", 2) is None
    assert rule(o.shows("r1", 1)) == "RPN-9"
    o.follows("r1")
    assert o.shows("r1", 0) is None
    assert rule(o.shows("r1", 3)) == "RPN-9"  # beyond its log


def test_one_leads_in_an_epoch() -> None:
    o = watched([A], [A])
    assert o.leads("r1", 1) is None
    assert rule(o.leads("r2", 1)) == "RPN-3"
    assert o.leads("r2", 2) is None


def test_records_of_a_producer_are_there_once() -> None:
    assert rule(watched([A, A], [A, A]).shows("r1", 2)).startswith("an idempotent producer")
    assert rule(watched([B], [B]).shows("r1", 1)).startswith("an idempotent producer")


def test_what_is_acknowledged_and_read_is_committed() -> None:
    o = watched([A, B], [A, B])
    assert o.shows("r1", 1) is None
    assert o.acknowledged(0, [A._replace(epoch=-1)]) is None
    assert rule(o.acknowledged(0, [A, B])) == "what is acknowledged is committed"
    assert rule(o.acknowledged(1, [B])) == "what is acknowledged is committed"
    assert o.reads("c", 0, A) is None
    assert rule(o.reads("c", 0, A)) == "RPN-12"
    assert rule(o.reads("d", 0, B)) == "RPN-12"
    assert rule(o.reads("c", 1, B)) == "RPN-12"


def test_a_record_has_its_contents() -> None:
    """A and another value under its number: nobody may have that one, acknowledge it, or read it."""
    other = A._replace(contents=0xBAD)
    o = watched([A], [A])
    assert o.shows("r1", 1) is None
    assert o.acknowledged(0, [other]) == Violation(
        "what is acknowledged is committed",
        "record 0 of producer 7 at offset 0, where it is committed with other contents",
    )
    assert o.reads("c", 0, other) == Violation(
        "RPN-12",
        "c reads at offset 0 record 0 of producer 7, epoch 1, contents 00000bad; record 0 of producer 7, epoch 1, "
        "contents 00000000 is committed there",
    )
    found = watched([A], [other]).shows("r1", 1)
    assert found is not None
    assert found.rule == "RPN-14"
    assert "contents 00000bad" in found.what


def test_a_producer_is_asked_for_a_batch_or_for_nothing() -> None:
    """Whoever asks for another number of records gets none."""
    asked = Producer("p1", BROKERS, lambda: 0, 1)
    for count in (2**62, MOST_RECORDS + 1, 0, -1):
        asked.handle(Ask(["produce", count]))
    assert asked.waiting == []
    asked.handle(Ask(["produce", MOST_RECORDS]))
    assert [b.count for b in asked.waiting] == [MOST_RECORDS]


def test_a_consumer_is_told_no_lower_high_watermark_in_an_epoch() -> None:
    o = watched([A, B], [A, B])
    assert rule(o.is_told("c", 1, 1)) == "RPN-9"  # nothing is committed
    assert o.shows("r1", 2) is None
    assert o.is_told("c", 1, 2) is None
    assert rule(o.is_told("c", 1, 1)) == "RPN-9"
    assert o.is_told("c", 2, 0) is None
    assert rule(o.is_told("c", 2, 3)) == "RPN-9"


def test_the_page_tells_of_every_fault() -> None:
    """With its schedule, its first seed and its rule, in the order of the faults."""
    page = (ROOT / "docs" / "engines" / "simulate.md").read_text("utf-8")
    names = {ACKNOWLEDGED: "acks=all", ONCE: "idempotence", FENCED: "fenced", ENOUGH: "enough"}
    rows = re.findall(r"^\| [^|]+ \| (uniform|swarm|priority|mixed) \| (\d+) \| ([^|]+) \|$", page, re.MULTILINE)
    wanted = [(f.schedule, str(f.first), names.get(f.rule, f.rule)) for f in FAULTS.values()]
    assert rows == wanted


def test_a_segment_that_was_cut_does_not_come_back() -> None:
    """Whichever names a power failure leaves of those that were not flushed."""
    disk = SimulatedDisk()
    broker = Broker("b0", disk, lambda: 1_000, Config(("b0",), CONTROLLER, LOG))
    producer = Producer("p", ("b0",), lambda: 1_000, 7)
    for n in range(40):
        broker.log.append_as_leader(producer.encoded(n, 1), 0)
    before = {n for n in disk.files(DIRECTORY) if n.endswith(".log")}
    broker.cut(1)
    now = {n for n in disk.files(DIRECTORY) if n.endswith(".log")}
    assert len(before) > len(now) == 1
    found = disk.crash(lambda name: False, lambda file: file.durable)
    assert {n for n in found.files(DIRECTORY) if n.endswith(".log")} == now
