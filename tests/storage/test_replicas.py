"""Replicas side by side: spec against the streaming comparison, and findings with their places."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.audit.check import Directory, Facts, Log, Summary, TopicConfig
from kafkaspec.audit.files import Kind, LogDirectory, PartitionFiles, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.storage import replicas_driver
from kafkaspec.audits.storage.replicas import AUDIT, ReplicaCheck
from kafkaspec.contract.codec import decode
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import BATCH, RECORD, Chunk
from kafkaspec.spec.storage import replicas as spec
from kafkaspec.spec.storage import replicas_trial
from kafkaspec.spec.storage.replicas import Replica, machine
from tests.layers import walked


def test_long_walks_cover_every_operation() -> None:
    walked(machine, replicas_driver.Driver, seeds=10, steps=100)


def test_every_pair_of_the_candidates() -> None:
    driver = replicas_driver.Driver()
    kinds = set()
    logs = [decode(Replica, log) for log in replicas_trial.LOGS]
    for a, b in itertools.product(logs, logs):
        if spec.frames_tell(a, b):
            found = spec.first_difference(a, b)
            assert driver.compare(a, b, False) == found
            kinds.add(None if found is None else found.kind)
    assert kinds == {None, "diverged", "behind", "missing"}


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two logs with a common past, each cut, damaged or cleaned a little."""
    rows, offset, epoch = [], 0, 0
    for n in range(draw(st.integers(0, 12))):
        offset += draw(st.sampled_from([0, 0, 0, 3]))
        epoch += draw(st.sampled_from([0, 0, 0, 1, 2]))
        count = draw(st.integers(1, 3))
        rows.append((offset, offset + count - 1, epoch, n))
        offset += count
    logs = []
    for _ in range(2):
        mine = list(rows[draw(st.integers(0, 2)) :])
        for i in draw(st.lists(st.integers(0, max(0, len(mine) - 1)), max_size=2)):
            if i < len(mine):
                base, last, e, frame = mine[i]
                change = draw(st.sampled_from(["frame", "epoch", "drop", "none"]))
                mine[i] = (base, last, e + (change == "epoch"), frame + 20 * (change == "frame"))
                if change == "drop":
                    del mine[i]
        log = replicas_trial._log(*mine)
        if draw(st.booleans()):
            log = replicas_trial._kept(log, *draw(st.lists(st.integers(0, 30), max_size=6)))
        end = max(offset, log["end"])
        logs.append(
            {
                **log,
                "end": end,
                "start": draw(st.integers(0, 4)),
                "highWatermark": draw(st.none() | st.integers(0, end)),
                "compacted": draw(st.sampled_from([False, False, None, True])) if not log["compacted"] else True,
            }
        )
    return logs[0], logs[1]


@given(histories())
@pytest.mark.clause("RPL-3")
def test_random_logs(logs: tuple[dict[str, Any], dict[str, Any]]) -> None:
    a, b = (decode(Replica, log) for log in logs)
    if spec.well_formed(a) and spec.well_formed(b) and spec.frames_tell(a, b):
        assert replicas_driver.Driver().compare(a, b, False) == spec.first_difference(a, b)


@pytest.mark.clause("RPL-4")
def test_compacted_logs_agree_where_both_have_a_record() -> None:
    whole = replicas_trial._log((0, 1, 0, 1), (2, 4, 0, 2))

    def differences(a: Any, b: Any) -> Any:
        both = decode(Replica, a), decode(Replica, b)
        assert replicas_driver.Driver().compare(*both, False) == spec.first_difference(*both)
        return spec.first_difference(*both)

    for gone in itertools.chain.from_iterable(itertools.combinations(range(5), n) for n in range(6)):
        assert differences(whole, replicas_trial._kept(whole, *gone)) is None, gone
    other = replicas_trial._with(replicas_trial._kept(whole, 0, 2), 1, content=99)  # of its last record, 4
    assert differences(whole, other) == ("diverged", 4)
    assert differences(replicas_trial._kept(whole, 4), other) is None


# ---- findings

ROWS = [(0, 4, 0, 7), (5, 9, 0, 8), (10, 14, 1, 9), (15, 19, 1, 10), (20, 24, 3, 11)]
"""base offset, last offset, epoch, CRC; each batch 100 bytes"""


class Broker:
    """A broker's copy of partition t-0."""

    def __init__(self, path: Path, node: int, rows: Sequence[tuple[int, ...]] = ROWS, **more: Any) -> None:
        self.rows, self.node = rows, node
        self.segment = Segment(0, File(path / str(node) / f"{0:020}.log", 0))
        topic, self.problems = more.get("topic", "t"), more.get("problems", ())
        policy = more.get("policy", "delete")
        identity = None
        if "topic_id" in more:
            (path / str(node)).mkdir()
            (path / str(node) / "partition.metadata").write_text(f"version: 0\ntopic_id: {more['topic_id']}\n")
            identity = File(path / str(node) / "partition.metadata", 30)
        files = PartitionFiles(
            path / str(node),
            topic,
            0,
            more.get("kind", Kind.CURRENT),
            (self.segment,),
            metadata=identity,
            leader_epoch_checkpoint=File(path / str(node) / "leader-epoch-checkpoint", 0),
        )
        mark = more.get("high_watermark", 25)
        self.log = Log(files, high_watermark=mark, config=TopicConfig(cleanup_policy=policy))
        facts = Facts(epochs=tuple((e, start) for e, start in more.get("epochs", [[0, 0], [1, 10], [3, 20]])))
        summary = Summary(self.log, more.get("start", 0), more.get("end", 25), 1, 0, 0, 0, facts)
        where = LogDirectory(path / str(node) / more.get("dir", ""))
        self.directory = Directory(where, (summary,), more.get("clean", True), node, more.get("cluster", "c"))

    def chunks(self, records: bool) -> Iterator[tuple[Segment, Chunk]]:
        for i, (base, last, epoch, crc) in enumerate(self.rows):
            rows = np.zeros(1, BATCH)
            rows["position"], rows["base_offset"], rows["last_offset"], rows["leader_epoch"] = (
                100 * i,
                base,
                last,
                epoch,
            )
            rows["crc"], rows["magic"], rows["size"], rows["problem"] = crc, 2, 100, int(i in self.problems)
            of = np.zeros(last - base + 1, RECORD)
            of["offset"], of["hash"] = np.arange(base, last + 1), crc
            yield self.segment, Chunk(rows, of if records else None)


def found(*brokers: Broker) -> list[Finding]:
    def reread(log: Log, records: bool) -> Iterator[tuple[Segment, Chunk]]:
        return next(b for b in brokers if b.log is log).chunks(records)

    return list(ReplicaCheck().check(tuple(b.directory for b in brokers), reread))


def changed(n: int, **what: int) -> list[tuple[int, ...]]:
    rows = [dict(zip(("base", "last", "epoch", "crc"), r, strict=True)) for r in ROWS]
    rows[n] |= what
    return [tuple(r.values()) for r in rows]


def test_equal_replicas(tmp_path: Path) -> None:
    assert found(*(Broker(tmp_path, n) for n in range(3))) == []
    assert (ReplicaCheck,) == AUDIT


@pytest.mark.clause("RPL-3")
@pytest.mark.parametrize("policy", ["delete", "compact", None])
def test_a_diverged_batch(tmp_path: Path, policy: str | None) -> None:
    brokers = [Broker(tmp_path, 1, policy=policy), Broker(tmp_path, 2, changed(2, crc=99), policy=policy)]
    (f,) = found(*brokers)
    assert (f.severity, f.clause) == (Severity.ERROR, "RPL-3" if policy == "delete" else "RPL-4")
    assert (f.position, f.offset, Path(f.file).parent.name) == (200, 10, "2")
    assert "at byte 200" in f.message
    assert str(tmp_path / "1") in f.message


@pytest.mark.clause("RPL-3")
def test_one_of_three_differs(tmp_path: Path) -> None:
    """Whichever it is, and whichever is looked at first."""
    for odd, best in itertools.product((1, 2, 3), (1, 2, 3)):
        brokers = [
            Broker(tmp_path, n, changed(3, crc=99) if n == odd else ROWS, high_watermark=25 if n == best else 24)
            for n in (1, 2, 3)
        ]
        (f,) = found(*brokers)
        assert (f.offset, f.position, Path(f.file).parent.name) == (15, 300, str(odd))


@pytest.mark.clause("RPL-3")
def test_a_missing_batch(tmp_path: Path) -> None:
    (f,) = found(Broker(tmp_path, 1), Broker(tmp_path, 2, [*ROWS[:1], *ROWS[2:]]))
    assert (f.severity, f.clause, f.offset) == (Severity.ERROR, "RPL-3", 5)
    assert found(*(Broker(tmp_path, n, r, policy="compact") for n, r in ((1, ROWS), (2, ROWS[2:])))) == []


@pytest.mark.clause("RPL-2")
def test_above_the_high_watermark_anything_goes(tmp_path: Path) -> None:
    for mark in (None, 0, 20):
        assert found(Broker(tmp_path, 1), Broker(tmp_path, 2, changed(4, crc=99), high_watermark=mark)) == []
    assert len(found(Broker(tmp_path, 1), Broker(tmp_path, 2, changed(4, crc=99), high_watermark=21))) == 1


@pytest.mark.clause("RPL-5")
def test_a_replica_that_has_not_followed_an_unclean_election(tmp_path: Path) -> None:
    theirs = [*ROWS[:3], (15, 16, 4, 70), (17, 24, 4, 71)]
    for clean, severity in ((False, Severity.LEFTOVER), (True, Severity.WARNING)):
        (f,) = found(Broker(tmp_path, 1, clean=clean), Broker(tmp_path, 2, theirs, epochs=[[0, 0], [1, 10], [4, 15]]))
        assert (f.severity, f.clause, f.offset, Path(f.file).parent.name) == (severity, "RPL-5", 15, "1")


@pytest.mark.clause("RPL-5")
@pytest.mark.parametrize("policy", ["delete", "compact", None])
def test_a_batch_of_another_epoch_is_another_one(tmp_path: Path, policy: str | None) -> None:
    """As if its producer had sent it again to the leader of an unclean election, or a follower had given it an epoch of
    its own: the bytes are the same, and each log has an entry for its epoch."""
    entries = [[0, 0], [1, 10], [4, 20]]
    brokers = [Broker(tmp_path, n, policy=policy) for n in (1, 2)]
    (f,) = found(*brokers, Broker(tmp_path, 3, changed(4, epoch=4), policy=policy, epochs=entries))
    assert (f.severity, f.clause, f.offset, f.position) == (Severity.WARNING, "RPL-5", 20, 400)
    assert found(*brokers, Broker(tmp_path, 3, changed(4, epoch=4), policy=policy)) == []  # damaged: LEC-19
    lower = Broker(tmp_path, 3, changed(4, epoch=4), policy=policy, epochs=entries, high_watermark=20)
    assert found(*brokers, lower) == []


@pytest.mark.clause("RPL-2")
def test_the_metadata_log_has_no_mark(tmp_path: Path) -> None:
    def three(rows: Sequence[tuple[int, ...]]) -> list[Finding]:
        whole = Broker(tmp_path, 1, topic="__cluster_metadata", high_watermark=None)
        return found(whole, Broker(tmp_path, 2, rows, topic="__cluster_metadata", high_watermark=None))

    assert three([*ROWS[:4], (20, 24, 4, 70)]) == []
    assert [f.clause for f in three(changed(3, crc=99))] == ["RPL-3"]


@pytest.mark.clause("RPL-6")
def test_an_epoch_that_begins_elsewhere(tmp_path: Path) -> None:
    (f,) = found(Broker(tmp_path, 1), Broker(tmp_path, 2, epochs=[[0, 0], [1, 11], [3, 20]]))
    assert (f.clause, f.line, f.offset) == ("RPL-6", 4, 10)
    assert found(Broker(tmp_path, 1), Broker(tmp_path, 2, epochs=[[1, 12], [3, 20]], start=12)) == []
    assert found(Broker(tmp_path, 1), Broker(tmp_path, 2, epochs=[[0, 0], [1, 10], [3, 20], [5, 25]])) == []


class MetadataLog(Broker):
    """A node's metadata log, of which it is known what leader epochs it gives."""

    def __init__(self, path: Path, node: int, leader_epochs: dict[tuple[str, int], int], **more: Any) -> None:
        super().__init__(path, node, topic="__cluster_metadata", high_watermark=None, dir="metadata", **more)
        log = self.directory.logs[0]
        log = replace(log, facts=replace(log.facts, leader_epochs=leader_epochs))
        self.directory = replace(self.directory, logs=(log,))


@pytest.mark.clause("RPL-8")
def test_an_epoch_that_the_metadata_log_has_not_given(tmp_path: Path) -> None:
    broker = Broker(tmp_path, 1, topic_id="id")

    def beside(*logs: Broker, of: Broker = broker) -> list[Finding]:
        return [f for f in found(of, *logs) if f.clause == "RPL-8"]

    (f,) = beside(MetadataLog(tmp_path, 1, {("id", 0): 2}))
    assert (f.severity, f.line, Path(f.file).name) == (Severity.ERROR, 5, "leader-epoch-checkpoint")
    assert "epoch 3" in f.message
    assert "leader epoch 2" in f.message
    for epochs in ({("id", 0): 3}, {("id", 0): 4}, {("id", 1): 0}, {("other", 0): 0}, {}):
        assert beside(MetadataLog(tmp_path, 1, epochs)) == []
    low = {("id", 0): 0}
    assert beside(MetadataLog(tmp_path, 2, low)) == []
    assert beside(MetadataLog(tmp_path, 1, low, cluster="d")) == []
    assert beside(MetadataLog(tmp_path, 1, low), MetadataLog(tmp_path, 1, low)) == []
    assert len(beside(MetadataLog(tmp_path, 1, low, clean=False))) == 1
    broker.directory = replace(broker.directory, clean=False)
    assert beside(MetadataLog(tmp_path, 1, low)) == []


def test_a_file_that_cannot_be_read_hides_nothing_else(tmp_path: Path) -> None:
    brokers = [Broker(tmp_path, 1, topic_id="id"), Broker(tmp_path, 2, changed(2, crc=99), topic_id="id")]
    broken = tmp_path / "1" / "partition.metadata"
    broken.unlink()
    os.mkfifo(broken)
    assert [f.clause for f in found(*brokers)] == ["RPL-3"]


@pytest.mark.clause("RPL-7")
@pytest.mark.clause("RPL-1")
def test_an_earlier_topic_of_that_name(tmp_path: Path) -> None:
    brokers = [Broker(tmp_path, n, topic_id="new" if n else "old") for n in range(3)]
    brokers[0].rows = changed(0, crc=99)
    (f,) = found(*brokers)
    assert (f.severity, f.clause, f.line, Path(f.file).parent.name) == (Severity.LEFTOVER, "RPL-7", 2, "0")


@pytest.mark.clause("RPL-1")
def test_what_is_not_compared(tmp_path: Path) -> None:
    other = changed(0, crc=99)
    assert found(Broker(tmp_path, 1), Broker(tmp_path, 2, other, cluster="d")) == []
    assert found(Broker(tmp_path, 1), Broker(tmp_path, 1, other, dir="again")) == []
    assert found(Broker(tmp_path, 1), Broker(tmp_path, 2, other, kind=Kind.FUTURE)) == []
    nameless = [Broker(tmp_path, 1, cluster=None, dir="a"), Broker(tmp_path, 2, other, cluster=None, dir="b")]
    assert len(found(*nameless)) == 1
    assert found(*nameless, Broker(tmp_path, 1, cluster=None, dir="x")) == []


@pytest.mark.clause("RPL-3")
def test_damage_is_no_evidence(tmp_path: Path) -> None:
    for n in range(len(ROWS)):
        for rows in (changed(n, crc=99), changed(n, base=1 << 40, last=(1 << 40) + 4), changed(n, epoch=77)):
            assert found(Broker(tmp_path, 1), Broker(tmp_path, 2, rows, problems=[n])) == []
        assert found(Broker(tmp_path, 1), Broker(tmp_path, 2, changed(n, epoch=77))) == []
        away = changed(n, base=1 << 40, last=(1 << 40) + 4)
        assert n == 4 or found(Broker(tmp_path, 1), Broker(tmp_path, 2, away)) == [], n


@pytest.mark.clause("RPL-3")
def test_damage_hides_no_more_than_itself(tmp_path: Path) -> None:
    """Each batch is a chunk of its own, so that the damage ends its chunk."""
    for damaged, other in itertools.permutations(range(len(ROWS)), 2):
        (f,) = found(Broker(tmp_path, 1), Broker(tmp_path, 2, changed(other, crc=99), problems=[damaged]))
        assert (f.clause, f.position) == ("RPL-3", 100 * other), damaged


@pytest.mark.clause("RPL-2")
def test_a_batch_that_begins_below_the_start_is_not_compared(tmp_path: Path) -> None:
    for n, (base, last, *_) in enumerate(ROWS):
        for start, differs in ((base, 1), (base + 1, 0), (last, 0)):
            pair = found(Broker(tmp_path, 1), Broker(tmp_path, 2, changed(n, crc=99), start=start))
            assert len(pair) == differs, (n, start)


def test_a_replica_that_is_behind_itself_is_found_in_both_directions(tmp_path: Path) -> None:
    for clean in ((True, False), (False, True)):
        one = Broker(tmp_path, 1, changed(4, epoch=2, crc=50), clean=clean[0])
        (f,) = found(one, Broker(tmp_path, 2, clean=clean[1]))
        assert Path(f.file).parent.name == "1"
        assert replace(f, severity=Severity.LEFTOVER) == f
