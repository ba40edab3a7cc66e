"""Three real brokers of Apache Kafka on loopback, and a controller; and a client's way to the broker that answers."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.broker import wire
from tests.broker.broker import Broker

BROKERS = (1, 2, 3)
CONTROLLER = 4
MOVED = frozenset({3, 5, 6, 14, 15, 16, 74, 75, 76})
"""Errors after which one looks again who leads, or coordinates."""
NO_LEADER = 5
ANSWER_S = 15
SESSION_MS = 3_000
SETTINGS = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.wait.max.ms": "100",
    "replica.fetch.backoff.ms": "100",
    "leader.imbalance.check.interval.seconds": "5",
    "request.timeout.ms": "5000",
}


class Cluster:
    """Three brokers and a node that is controller alone, each in a folder."""

    def __init__(self, folder: Path) -> None:
        self.controller = Broker(folder / f"node-{CONTROLLER}", SETTINGS, CONTROLLER, serves=False)
        self.brokers = {n: Broker(folder / f"node-{n}", SETTINGS, n, self.controller) for n in BROKERS}
        self.paused: int | None = None

    @property
    def ports(self) -> Mapping[int, int]:
        return {n: b.port for n, b in self.brokers.items()}

    @property
    def bootstrap(self) -> list[str]:
        return [f"127.0.0.1:{p}" for p in self.ports.values()]

    @property
    def directories(self) -> list[Path]:
        return [b.data for b in self.brokers.values()]

    def start(self) -> None:
        nodes = [self.controller, *self.brokers.values()]
        for node in nodes:
            node.start()
        for node in nodes:
            node.wait()

    def pause(self, n: int) -> None:
        """Stop it for a while, as a machine does that swaps: it knows nothing of the time that passes."""
        self._signal(n, signal.SIGSTOP)

    def resume(self, n: int) -> None:
        self._signal(n, signal.SIGCONT)

    def _signal(self, n: int, which: signal.Signals) -> None:
        process = self.brokers[n].process
        assert process is not None
        process.send_signal(which)

    def kill(self) -> None:
        """All that is there."""
        for node in (*self.brokers.values(), self.controller):
            node.kill()


class ClusterClient:
    """A client of a cluster: asks a partition's leader, or the coordinator of a transactional id. Nothing is sent
    again. A fetch may go to a follower. Raises wire.Gone where nobody answers, or nobody leads."""

    def __init__(self, ports: Mapping[int, int], topics: Sequence[str], rng: random.Random, follows: float = 0) -> None:
        self.ports, self.topics, self.rng = ports, topics, rng
        self.follows = follows
        """how often a fetch goes to any replica"""
        self._connections: dict[int, wire.Connection] = {}
        self._led: dict[str, wire.Leadership] = {}
        self._coordinators: dict[str, int] = {}

    def close(self) -> None:
        for c in self._connections.values():
            c.close()
        self._connections.clear()

    def at(self, node: int) -> wire.Connection:
        if node not in self._connections:
            self._connections[node] = wire.connected(self.ports[node], 0, ANSWER_S)
        return self._connections[node]

    def any(self) -> wire.Connection:
        """One that takes connections. It may be paused, and not answer."""
        for node in self.rng.sample(sorted(self.ports), len(self.ports)):
            try:
                return self.at(node)
            except wire.Gone:
                continue
        time.sleep(0.2)
        raise wire.Gone("no broker takes connections")

    def leader(self, name: str) -> wire.Connection:
        if name not in self._led:
            self._led = {n: led for n, led in self.any().leaders(self.topics).items() if led.leader >= 0}
        if name not in self._led:
            time.sleep(0.2)
            raise wire.Gone(f"{name} has no leader")
        return self.at(self._led[name].leader)

    def coordinator(self, transactional_id: str) -> wire.Connection:
        if transactional_id not in self._coordinators:
            error, node = self.any().coordinator(transactional_id)
            if error:
                time.sleep(0.1)
                raise wire.Gone(f"{transactional_id} has no coordinator")
            self._coordinators[transactional_id] = node
        return self.at(self._coordinators[transactional_id])

    def _told(self, error: int, *what: str) -> None:
        """Forget what an error says is no more so."""
        if error in MOVED:
            for w in what:
                self._led.pop(w, None)
                self._coordinators.pop(w, None)

    # ---- what clients ask --------------------------------------------------------------------------------------------
    def find_coordinator(self, transactional_id: str) -> int:
        error, node = self.any().coordinator(transactional_id)
        if not error:
            self._coordinators[transactional_id] = node
        return error

    def init_producer(self, transactional_id: str | None, timeout_ms: int) -> tuple[int, int, int]:
        of = self.any() if transactional_id is None else self.coordinator(transactional_id)
        answer = of.init_producer(transactional_id, timeout_ms)
        self._told(answer[0], transactional_id or "")
        return answer

    def add_partitions(self, transactional_id: str, producer: tuple[int, int], names: Sequence[str]) -> int:
        error = self.coordinator(transactional_id).add_partitions(transactional_id, producer, names)
        self._told(error, transactional_id)
        return error

    def produce(self, name: str, batch: bytes, transactional_id: str | None, version: int) -> tuple[int, int]:
        answer = self.leader(name).produce(name, batch, transactional_id, version)
        self._told(answer[0], name)
        return answer

    def end(
        self, transactional_id: str, producer: tuple[int, int], commit: bool, version: int
    ) -> tuple[int, tuple[int, int]]:
        answer = self.coordinator(transactional_id).end(transactional_id, producer, commit, version)
        self._told(answer[0], transactional_id)
        return answer

    def delete_records(self, name: str, offset: int) -> tuple[int, int]:
        answer = self.leader(name).delete_records(name, offset)
        self._told(answer[0], name)
        return answer

    def offset(self, name: str, timestamp: int, committed: bool = False) -> tuple[int, int]:
        answer = self.leader(name).offset(name, timestamp, committed)
        self._told(answer[0], name)
        return answer

    def fetch(self, name: str, offset: int, committed: bool) -> wire.FetchAnswer:
        if self.rng.random() < self.follows:
            answer = self.any().fetch(name, offset, committed)
            if answer.error == wire.OUT_OF_RANGE:  # a follower may have less: its leader is asked
                return self.leader(name).fetch(name, offset, committed)
            return answer
        answer = self.leader(name).fetch(name, offset, committed)
        self._told(answer.error, name)
        return answer


def until(what: Callable[[], str], true: Callable[[], bool], patience_s: float) -> str:
    """Wait until it is so. What is said if it did not come; '' if it did."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            if true():
                return ""
        except wire.Gone:
            pass
        if time.monotonic() > deadline:
            return f"{what()} within {patience_s:g} s"
        time.sleep(0.2)
