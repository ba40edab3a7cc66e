"""A quorum in the simulator: sound as it is, found with any fault, and the same from the same seed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import repeat
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.controller import bootstrap, raft
from kafkaspec.impl.controller.quorum_parts import batches, node
from kafkaspec.impl.controller.quorum_parts.clients import MOST_NAMES, Writer
from kafkaspec.impl.controller.quorum_parts.log import DurableLog
from kafkaspec.impl.controller.quorum_parts.node import QuorumState, decoded
from kafkaspec.impl.controller.quorum_simulation import CHANGING, FIVE_VOTERS, IDLE, LOG, NO_FAULT, SCENARIO
from kafkaspec.impl.controller.raft import Position
from kafkaspec.impl.storage.replication_simulation import AT_REST
from kafkaspec.simulate import RandomChoices, Run, run
from kafkaspec.simulate import history as told
from kafkaspec.simulate.choices import Schedule
from kafkaspec.simulate.scenario import Ask, Scenario
from kafkaspec.simulate.world import NODE_FAILED
from kafkaspec.spec.common.metadata_log import ELR, VERSION, Kind, Record
from kafkaspec.spec.controller.quorum_parts.observer import (
    ACKNOWLEDGED,
    COUNTED,
    ONCE,
    SAME_MEMORY,
    STABLE_READS,
    WRITER,
    Batch,
    Observer,
)
from tests.controller.quorum_faults import FAULTS
from tests.kafka import run_class
from tests.simulate.directories import clauses_against, left
from tests.storage.replication_faults import Fault

ROOT = Path(__file__).parent.parent.parent


def of(seed: int, schedule: Schedule = "mixed", scenario: Scenario = SCENARIO) -> Run:
    return run(scenario, RandomChoices(scenario, seed, schedule))


def text(seed: int) -> str:
    return told.page(of(seed), "", full=True)


def survive(seeds: range, scenario: Scenario = SCENARIO) -> dict[str, int]:
    """None of these seeds breaks a rule; what happened in them."""
    out: dict[str, int] = {}
    for seed in seeds:
        r = of(seed, scenario=scenario)
        assert r.violation is None, (seed, r.violation)
        for name, n in r.counts.items():
            out[name] = out.get(name, 0) + n
    return out


def test_the_sound_one_survives() -> None:
    happened = survive(range(18))
    assert {*happened} == {*COUNTED, "segments rolled"}
    assert min(happened.values()) > 4, happened


def test_five_survive() -> None:
    assert min(survive(range(6), FIVE_VOTERS).values()) > 0


def test_those_survive_whose_voters_change() -> None:
    assert min(survive(range(6), CHANGING).values()) > 0


@pytest.mark.clause("QRM-39", "QRM-40", "QRM-41")
def test_those_survive_that_write_by_themselves() -> None:
    """And their logs go on when nobody asks for anything."""
    happened = survive(range(6), IDLE)
    assert happened["logs that go on"] == 6
    assert happened["periodic tasks"] > 100
    assert min(happened.values()) > 0


@pytest.mark.deep
@pytest.mark.parametrize("scenario", [SCENARIO, FIVE_VOTERS, CHANGING, IDLE], ids=lambda s: s.name)
def test_the_sound_ones_survive_many_seeds(scenario: Scenario) -> None:
    survive(range(6, 400), scenario)


@pytest.mark.parametrize("fault", [pytest.param(f, id=name) for name, f in FAULTS.items()])
def test_a_fault_is_found(fault: Fault) -> None:
    """By its seed, and the sound one is not."""
    r = run(fault.scenario, RandomChoices(fault.scenario, fault.first, fault.schedule))
    assert r.violation is not None
    assert r.violation.rule == fault.rule
    (watch,) = fault.scenario.monitors()
    sound = next(s for s in (SCENARIO, FIVE_VOTERS, CHANGING, IDLE) if type(s.monitors()[0]) is type(watch))
    if fault.scenario.nodes == sound.nodes:
        assert of(fault.first, fault.schedule, sound).violation is None


@pytest.mark.deep
@pytest.mark.parametrize("fault", [pytest.param(f, id=name) for name, f in FAULTS.items()])
def test_no_earlier_seed_finds_it(fault: Fault) -> None:
    found = [
        seed
        for seed in range(fault.first)
        if run(fault.scenario, RandomChoices(fault.scenario, seed, fault.schedule)).violation is not None
    ]
    assert found == []


def test_the_same_seed_is_the_same_run_with_any_seed_of_hashes() -> None:
    program = "from tests.controller.test_quorum_simulation import *\nprint(*map(text, (1, 4)), sep='')"
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
    assert texts[0] == texts[1] == "".join(map(text, (1, 4))) + "\n"


# ---- bytes
def test_every_kind_of_record_is_there_again() -> None:
    for record in (
        Record(Kind.SET, "c1", 1_000_007),
        Record(Kind.VERSION, "", 30),
        Record(Kind.FEATURE, "", 1),
        Record(Kind.REGISTER, "", 3),
        *(Record(k) for k in (Kind.NO_OP, Kind.BEGIN, Kind.END, Kind.ABORT)),
    ):
        assert batches.record_of(batches.text_of(record)) == record


def test_a_snapshot_is_there_again() -> None:
    """A registration with its offset, whatever the offset is at which the snapshot is loaded."""
    values = {"c1": 7, "broker 2": 41, VERSION: 30, ELR: 1}
    found = batches.loaded(batches.snapshot(values, (1, 2, 5), 50, 3))
    assert found.values == values
    assert found.voters == (1, 2, 5)
    assert Record(Kind.SET, "broker 2", 41) in found.records


def test_a_snapshot_begins_as_one_of_kafka_s_with_voters_does() -> None:
    """RecordsSnapshotWriter, Kafka 4.3.0: without the version the voters would say nothing."""
    data = batches.snapshot({"c1": 7, "c2": 8}, (1, 2, 5), 50, 3)
    control, said = bootstrap.contents(data)
    assert [r.name for r in control] == [
        "SnapshotHeaderRecord", "KRaftVersionRecord", "VotersRecord", "SnapshotFooterRecord",
    ]  # fmt: skip
    assert control[1].fields["kRaftVersion"] == 1
    assert [b.base for b in batches.split(data)] == [0, 3, 5]
    assert [r.name for r in said] == ["ConfigRecord"] * 2


def test_a_quorum_state_is_there_again() -> None:
    for state in (QuorumState(), QuorumState(4, 2, 2), QuorumState(5, None, 0)):
        assert decoded(state.encoded()) == state
    said = {"leaderId": -1, "leaderEpoch": 3, "votedId": 1, "votedDirectoryId": batches.NO_DIRECTORY, "data_version": 1}
    assert orjson.loads(QuorumState(3, None, 1).encoded()) == said


# ---- what it leaves on its disks
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.deep) for n in range(2, 40))])
@pytest.mark.parametrize("scenario", [SCENARIO, FIVE_VOTERS, CHANGING, IDLE], ids=lambda s: s.name)
def test_its_directories_are_sound(scenario: Scenario, seed: int, tmp_path: Path) -> None:
    assert clauses_against(left(scenario, seed, tmp_path)) == set()


def test_a_registration_without_its_epoch_is_unsound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "count", lambda base: repeat(0))
    assert clauses_against(left(SCENARIO, 0, tmp_path)) == {"IMG-6"}


def test_a_record_that_another_node_has_not_is_unsound(tmp_path: Path) -> None:
    file = sorted(left(SCENARIO, 0, tmp_path).glob("k2/*/*.log"))[-1]
    last = batches.split(file.read_bytes())[-1]
    (entry,) = last.entries
    other = batches.record_of(entry.value or "")
    entries = (entry._replace(value=batches.text_of(other._replace(value=other.value - 1))),)
    data = batches.encoded(last.base, last.epoch, entries, 0)
    file.write_bytes(file.read_bytes()[: -len(last.data)] + data)
    assert clauses_against(tmp_path) == {"RPL-4"}


@pytest.mark.deep
@pytest.mark.parametrize("scenario", [SCENARIO, CHANGING], ids=lambda s: s.name)
def test_kafka_s_own_tool_reads_its_files(scenario: Scenario, tmp_path: Path) -> None:
    """Each batch of the logs and of the snapshots."""
    path = left(scenario, 0, tmp_path)
    files = [*path.glob("*/*/*.log"), *path.glob("*/*/*.checkpoint")]
    kept = sum(len(batches.split(f.read_bytes())) for f in files)
    options = "--cluster-metadata-decoder", "--deep-iteration", "--files", ",".join(map(str, files))
    said = run_class("org.apache.kafka.tools.DumpLogSegments", *options)
    assert said.count("isvalid: true") == said.count("baseOffset: ") == kept > len(files) > 5
    assert said.count('"REGISTER_BROKER_RECORD"') > 1


# ---- a disk
def stored(disk: SimulatedDisk, snapshot: Position | None = None) -> DurableLog:
    """What a node finds when it starts."""
    log = DurableLog((1, 2, 3), disk, LOG, lambda: 0)
    log.load(snapshot, (1, 2, 3))
    return log


def written(*epochs: int) -> SimulatedDisk:
    """A log with a record of Raft's of each of these epochs."""
    disk = SimulatedDisk()
    log = stored(disk)
    for epoch in epochs:
        log.append(raft.Record(epoch))
    log.write()
    return disk


def test_a_log_is_there_again_after_a_power_failure() -> None:
    log = stored(written(1, 1, 2, 4).lose())
    assert (log.end, log.epochs) == (4, [(1, 0), (2, 2), (4, 3)])
    log.truncate(2)
    log.append(raft.Record(5))
    log.write()
    assert stored(log.files.disk.lose()).epochs == [(1, 0), (5, 2)]  # type: ignore[attr-defined]


def test_a_log_goes_on_behind_a_snapshot() -> None:
    log = stored(written(1, 1, 2, 4), Position(3, 2))
    assert (log.start, log.end, log.epochs, log.last_epoch) == (3, 4, [(4, 3)], 4)


@pytest.mark.parametrize("at", [Position(3, 1), Position(3, 3), Position(9, 4)], ids=str)
def test_a_log_that_does_not_go_on_where_a_snapshot_ends_is_none(at: Position) -> None:
    """A crash came between the snapshot's last part and the truncation. Kafka 4.3.0 has the last record alone decide:
    of these three it cuts the third one off, and keeps a log behind a record that it does not follow."""
    disk = written(1, 1, 2, 4)
    log = stored(disk, at)
    assert (log.start, log.end, log.last_epoch) == (at.offset, at.offset, at.epoch)
    assert stored(disk.lose(), at).end == at.offset


def test_a_writer_is_asked_for_what_it_can_or_for_nothing() -> None:
    """Whoever asks for anything else gets nothing."""
    asked = Writer("w1", ("k1",), lambda: 0, 1)
    names = [f"c{n}" for n in range(MOST_NAMES + 1)]
    wrong: tuple[Any, ...] = (
        ["change", names],
        ["change", []],
        ["change", [1]],
        ["register", [-1]],
        ["drop", ["c"]],
        7,
    )
    for what in wrong:
        asked.handle(Ask(what))
    assert asked.waiting == []
    asked.handle(Ask(["change", names[1:]]))
    assert len(asked.waiting) == 1


# ---- who watches, with values
K = ("k1", "k2", "k3")


def put(base: int, value: int, epoch: int = 1, name: str = "c1") -> Batch:
    return Batch(base, base, epoch, 100 * epoch + value, (Record(Kind.SET, name, value),))


def control(base: int, epoch: int) -> Batch:
    return Batch(base, base, epoch, epoch, ())


def elected(o: Observer, name: str, epoch: int) -> None:
    """By all."""
    for other in K:
        if other != name:
            log = o.replicas[name].last_epoch or 0, o.replicas[name].end
            assert o.grants(other, epoch - 1, name, log, pre_vote=True) is None
            assert o.grants(other, epoch, name, log, pre_vote=False) is None
    assert o.stands(name, epoch, K) is None
    assert o.leads(name, epoch, K) is None


def watched(*logs: list[Batch], epoch: int = 1) -> Observer:
    """Three with these logs, of which the first leads."""
    o = Observer(K, "n")
    for name, log in zip(K, logs, strict=True):
        o.starts(name, 0, None)
        assert o.has(name, 0, log) is None
    elected(o, "k1", epoch)
    return o


def rule(found: Any) -> str:
    return "" if found is None else found.rule


def test_one_vote_an_epoch() -> None:
    o = watched([], [], [])
    assert o.votes_for("k2", 2, "k3") is None
    assert o.votes_for("k2", 2, "k3") is None
    assert rule(o.votes_for("k2", 2, "k1")) == "RFT-1"
    assert rule(o.grants("k2", 2, "k1", (1, 9), pre_vote=False)) == "RFT-1"


def test_a_vote_goes_to_a_log_that_has_as_much() -> None:
    o = watched([control(0, 1), put(1, 1)], [control(0, 1)], [])
    assert rule(o.grants("k2", 2, "k3", (0, 0), pre_vote=True)) == "RFT-3"
    assert rule(o.grants("k2", 2, "k3", (0, 7), pre_vote=False)) == "RFT-4"
    assert o.grants("k2", 2, "k3", (1, 1), pre_vote=False) is None
    assert o.grants("k2", 2, "k3", (0, 0), pre_vote=False) is None  # again
    assert o.stays_with_leader("k2").rule == "RFT-5"


def test_a_vote_that_was_not_told_before_a_crash_is_given_again() -> None:
    """To nobody else, and it counts from then on."""
    o = watched([control(0, 1), put(1, 1)], [control(0, 1)], [])
    o.starts("k2", 2, "k3")
    assert rule(o.grants("k2", 2, "k1", (0, 0), pre_vote=False)) == "RFT-4"
    assert rule(o.grants("k2", 3, "k3", (0, 0), pre_vote=False)) == "RFT-4"
    assert rule(o.leads("k3", 2, K)) == "RFT-9"
    assert o.grants("k2", 2, "k3", (0, 0), pre_vote=False) is None
    assert rule(o.grants("k2", 2, "k1", (1, 9), pre_vote=False)) == "RFT-1"
    assert of(251).violation is None


def test_who_stands_and_who_leads_has_a_majority() -> None:
    o = watched([], [], [])
    assert rule(o.stands("k2", 5, K)) == "RFT-7"
    assert o.grants("k3", 5, "k2", (0, 0), pre_vote=True) is None
    assert o.stands("k2", 6, K) is None
    assert rule(o.leads("k2", 6, K)) == "RFT-9"
    assert o.votes_for("k3", 6, "k2") is None
    assert o.leads("k2", 6, K) is None
    assert rule(o.leads("k3", 6, K)) == "RFT-2"


def test_who_is_elected_has_what_is_committed() -> None:
    o = watched([control(0, 1), put(1, 1)], [control(0, 1), put(1, 1)], [])
    assert o.shows("k1", 2, K) is None
    for other in ("k1", "k2"):
        o.votes_for(other, 2, "k3")
    assert rule(o.leads("k3", 2, K)) == "RFT-20"


def test_who_hears_late_that_it_was_elected_has_what_was_committed_before() -> None:
    """Another one was elected since, and has committed more. Found by seed 49 of a version that wanted all of it."""
    log = [control(0, 1), put(1, 1)]
    o = watched(log, log, log, epoch=1)
    assert o.shows("k1", 2, K) is None
    for name, epoch in (("k3", 2), ("k2", 3)):
        for voter in K:
            assert o.votes_for(voter, epoch, name) is None
    assert o.leads("k2", 3, K) is None
    assert o.appends("k2", [control(2, 3)]) is None
    assert o.appends("k1", [control(2, 3)]) is None
    assert o.shows("k2", 3, K) is None
    assert o.leads("k3", 2, K) is None


def test_logs_that_have_a_record_in_common_are_one() -> None:
    o = watched([control(0, 1), put(1, 1)], [], [])
    assert o.appends("k2", [control(0, 1)]) is None
    assert rule(o.appends("k2", [put(1, 2)])) == "RFT-19"
    assert rule(o.appends("k3", [put(1, 1)])) == "RFT-19"  # behind a hole
    assert rule(o.appends("k3", [put(0, 1), put(1, 1)])) == "RFT-19"
    assert o.appends("k2", [put(1, 1)]) is None
    assert rule(o.appends("k2", [put(2, 3)])) == WRITER


def test_what_a_leader_commits() -> None:
    o = watched([control(0, 1), put(1, 1)], [control(0, 1), put(1, 1)], [])
    assert rule(o.shows("k2", 1, K)) == "RFT-18"  # it does not lead
    assert rule(o.shows("k1", 3, K)) == "RFT-17"
    o = watched([control(0, 1), put(1, 1)], [control(0, 1)], [])
    assert rule(o.shows("k1", 2, K)) == "RFT-18"  # nobody else has it
    o = watched([put(0, 1)], [put(0, 1)], [], epoch=2)
    assert rule(o.shows("k1", 1, K)) == "RFT-18"  # of an older epoch
    assert rule(watched([control(0, 1)], [control(0, 1)], []).shows("k1", 1, ("k1", "k4", "k5"))) == "RFT-18"


def test_what_is_committed_stays() -> None:
    both = [control(0, 1), put(1, 1)]
    o = watched(both, both, [])
    assert o.shows("k1", 2, K) is None
    assert o.shows("k2", 2, K) is None
    assert rule(o.shows("k1", 1, K)) == "RFT-22"
    assert rule(o.cuts("k2", 1)) == "RFT-22"
    assert rule(o.has("k1", 0, both[:1])) == "RFT-22"
    assert o.has("k1", 0, both) is None
    assert o.has("k1", 2, []) is None
    assert rule(o.has("k3", 3, [])) == "RFT-23"


def test_nobody_shows_another_log() -> None:
    o = watched([control(0, 1), put(1, 1)], [control(0, 1), put(1, 1)], [control(0, 1)])
    assert o.shows("k1", 2, K) is None
    o.leaders[2] = "k3"
    assert o.appends("k3", [control(1, 2)]) is None
    assert rule(o.shows("k3", 2, K)) == "RFT-21"


def test_a_snapshot_is_of_what_is_committed() -> None:
    o = watched(*[[control(0, 1), put(1, 1)]] * 3)
    assert rule(o.snapshot("k1", 2, 1, {"c1": 1})) == "RFT-23"
    assert o.shows("k1", 2, K) is None
    assert rule(o.snapshot("k1", 2, 2, {"c1": 1})) == "RFT-23"
    assert rule(o.snapshot("k1", 2, 1, {"c1": 2})) == SAME_MEMORY
    assert o.snapshot("k1", 2, 1, {"c1": 1}) is None


def test_what_is_stable() -> None:
    """What is in an open transaction is committed, and not stable; an abort takes it back."""
    begin, abort, end = (Record(kind) for kind in (Kind.BEGIN, Kind.ABORT, Kind.END))
    log = [
        put(0, 1),
        Batch(1, 2, 1, 0, (begin, Record(Kind.SET, "c1", 2))),
        Batch(3, 4, 1, 0, (abort, Record(Kind.REGISTER, "", 1))),
        Batch(5, 7, 1, 0, (begin, Record(Kind.SET, "c1", 3), end)),
    ]
    o = watched(log, log, log)
    assert o.shows("k1", 3, K) is None
    assert o.reads("k2", "c1", 1, 0) is None
    assert rule(o.reads("k2", "c1", 2, 0)) == STABLE_READS
    assert rule(o.acknowledged("k1", "change", ("c1",), 2, 2)) == ACKNOWLEDGED
    assert o.stands_by("k3", 2, {"c1": 2}) is None
    assert rule(o.stands_by("k3", 2, {"c1": 1})) == SAME_MEMORY
    assert o.remembers("k3", 0, {"c1": 1}) is None
    assert rule(o.acknowledged("k1", "register", ("1",), 9, 9)) == ACKNOWLEDGED
    assert o.shows("k1", 8, K) is None
    assert o.acknowledged("k1", "register", ("1",), 9, 9) is None
    assert rule(o.acknowledged("k1", "change", ("c1",), 2, 2)) == ACKNOWLEDGED
    assert o.acknowledged("k1", "change", ("c1",), 3, 3) is None
    assert o.remembers("k2", 7, {"c1": 3, "broker 1": 4}) is None
    assert rule(o.remembers("k2", 7, {"c1": 3, "broker 1": 3})) == SAME_MEMORY


def test_a_name_is_created_once() -> None:
    log = [put(0, 1, name="n1"), put(1, 2, name="n1")]
    assert rule(watched(log, log, log).shows("k1", 2, K)) == ONCE


RULES = {
    ACKNOWLEDGED: "acknowledged", ONCE: "once", SAME_MEMORY: "same memory", STABLE_READS: "stable reads",
    WRITER: "one writer", NO_FAULT: "no fault", NODE_FAILED: "a node fails", AT_REST: "at rest",
}  # fmt: skip
"""The names on the page of the rules that are no clauses."""


def test_the_page_tells_of_every_fault() -> None:
    """With its schedule, its first seed and its rule, in the order of the faults."""
    page = (ROOT / "docs" / "controller" / "quorum.md").read_text("utf-8")
    rows = re.findall(r"^\| [^|]+ \| (uniform|swarm|priority|mixed) \| (\d+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert rows == [(f.schedule, str(f.first), RULES.get(f.rule, f.rule)) for f in FAULTS.values()]
