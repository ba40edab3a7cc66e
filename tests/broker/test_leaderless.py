"""A partition without a leader, and a transaction that ends meanwhile: Kafka 4.3 never writes its marker there."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from kafkaspec.audit.engine import audit
from tests.broker import wire
from tests.broker.broker import Broker, jars
from tests.broker.clients import take
from tests.broker.given_up import lines
from tests.broker.history import Session, digest

PATIENCE_S = 120
TIMEOUT_MS = 600_000
KEPT, DROPPED = (b"k", b"told: committed"), (b"k", b"told: aborted")
LATER = (b"k", b"later")


def until(what: str, true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


class Producer:
    """A transactional producer of version 2: its coordinator is node 1, and it writes wherever it is told to."""

    def __init__(self, name: str, coordinator: wire.Connection) -> None:
        self.name, self.coordinator = name, coordinator
        until("a coordinator", lambda: coordinator.find_coordinator(name) == 0)
        self.id, self.sequences = (-1, -1), dict[str, int]()
        until("a producer id", self._begin)

    def _begin(self) -> bool:
        error, *of = self.coordinator.init_producer(self.name, TIMEOUT_MS)
        self.id = (of[0], of[1])
        return not error

    def send(self, to: wire.Connection, name: str, record: wire.Pair) -> None:
        data = wire.batch([record], self.id, self.sequences.get(name, 0), True, False, int(time.time() * 1000))
        until(f"{name} takes a record", lambda: to.produce(name, data, self.name, 12)[0] == 0)
        self.sequences[name] = self.sequences.get(name, 0) + 1

    def end(self, commit: bool) -> None:
        error, self.id = self.coordinator.end(self.name, self.id, commit, 5)
        assert not error
        self.sequences = {}


def read_committed(of: wire.Connection, name: str) -> list[int]:
    """The digests of what a consumer sees."""
    session = Session("read_committed", name, 0, 0)
    _, end = of.offset(name, wire.LATEST, committed=True)
    while session.end < end:
        take(session, of.fetch(name, session.end, True))
    return [crc for _, crc in session.records]


@pytest.mark.deep
def test_a_marker_for_a_partition_without_a_leader_is_never_written(tmp_path: Path) -> None:
    if jars() is None:
        pytest.skip("needs java, and the jars of Kafka 4.3.0 (bench/README.md)")
    with ExitStack() as ended:
        one = Broker(tmp_path / "node-1", {})
        ended.callback(one.kill)
        one.start()
        one.wait()
        here = wire.connected(one.port)
        kept, dropped = (Producer(name, here) for name in ("kept", "dropped"))  # while there is no other coordinator
        two = Broker(tmp_path / "node-2", {}, 2, one)
        ended.callback(two.kill)
        two.start()
        two.wait()
        admin = KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{one.port}")
        ended.callback(admin.close)
        admin.create_topics({"home": {"assignments": {0: [1]}}, "away": {"assignments": {0: [2], 1: [2]}}})

        def leaders() -> set[int]:
            return {p["leader_id"] for t in admin.describe_topics(["away"]) for p in t["partitions"]}

        until("away has a leader", lambda: leaders() == {2})
        there = wire.connected(two.port)
        for producer, name, record in ((kept, "away-0", KEPT), (dropped, "away-1", DROPPED)):
            producer.send(here, "home-0", record)
            producer.send(there, name, record)
        two.kill()
        until("away has no leader", lambda: leaders() == {-1})
        kept.end(commit=True)
        dropped.end(commit=False)
        until("home is decided", lambda: here.offset("home-0", wire.LATEST, True) == here.offset("home-0", wire.LATEST))
        assert {(x.client, x.names) for x in lines(one.log())} == {("kept", ("away-0",)), ("dropped", ("away-1",))}

        two.start()
        two.wait()
        until("away has a leader", lambda: leaders() == {2})
        there = wire.connected(two.port)
        time.sleep(5)  # nobody will write them
        for name in ("away-0", "away-1"):
            assert there.offset(name, wire.LATEST) == (0, 1)
            assert there.offset(name, wire.LATEST, committed=True) == (0, 0)
        assert read_committed(here, "home-0") == [digest(*KEPT)]

        kept.send(there, "away-0", LATER)
        kept.end(commit=False)
        dropped.send(there, "away-1", LATER)
        dropped.end(commit=True)
        for name in ("away-0", "away-1"):
            until(f"{name} is decided", lambda name=name: there.offset(name, wire.LATEST, True) == (0, 3))  # type: ignore[misc]
        assert read_committed(there, "away-0") == []  # though its client was told that it is committed
        assert read_committed(there, "away-1") == [digest(*DROPPED), digest(*LATER)]
        two.stop()
    found = audit([two.data]).findings
    assert [(f.clause, Path(f.file).parent.name, f.offset) for f in found] == [
        ("PSM-32", "away-0", 1), ("PSM-32", "away-1", 1),
    ]  # fmt: skip
