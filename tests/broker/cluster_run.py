"""One run of a real cluster of three brokers: traffic while they are killed, paused and stopped, all drawn from a seed.

    python -m tests.broker.cluster_run SEED [--faults N] [--record FOLDER] [--keep FOLDER]

The directories of brokers that are gone are audited before they start again. At the end all is settled, consumers read
everything, the cluster is stopped, the directories are audited together, and each replica is held to what the clients
know. One topic may be led by a replica that was not in sync: it may lose what was acknowledged, and nothing else.
`--record` keeps the directories after the clean stop, with the truth.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient

from kafkaspec.audit.engine import audit
from kafkaspec.audit.finding import Severity
from kafkaspec.audit.recorded import batches, disagreements
from kafkaspec.impl.storage import transaction_index
from tests.broker import wire
from tests.broker.clients import Client, Consumer, Idempotent, Traffic, Transactional, take
from tests.broker.cluster import BROKERS, SESSION_MS, Cluster, ClusterClient, until
from tests.broker.given_up import GivenUp, given_up, held, together
from tests.broker.history import History
from tests.broker.run import REST_S, SEGMENT, TRANSACTION_MS, Outcome, bad, commanded, kept

SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
RISKY = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
TOPICS: dict[str, tuple[int, dict[str, str]]] = {"ledger": (3, SAFE), "journal": (1, SAFE), "risky": (1, RISKY)}
LOSSY = ("risky",)
NAMES = [f"{topic}-{p}" for topic, (count, _) in TOPICS.items() for p in range(count)]
KEPT = [n for n in NAMES if not n.startswith("risky")]
SETTLED_S = 120
FENCED_S = SESSION_MS / 1000 + 1
FAULTS = ("kill", "kill", "pause", "pause", "stop", "controller", "two", "all", "unclean", "unclean")


class ClusterRun:
    def __init__(self, seed: int, folder: Path, record: Path | None = None) -> None:
        self.rng, self.outcome, self.record = random.Random(seed), Outcome(seed), record
        self.seed, self.cluster = str(seed), Cluster(folder)
        self.history = History((), (), record.name if record else f"seed-{seed}", LOSSY)
        self.traffic = Traffic(self.history, self._connect, LOSSY)
        self.clients: list[Client] = []
        self.given_up: list[GivenUp] = []
        self.at_once = set[AtOnce]()
        self.unclean = 0

    def _connect(self, follows: float = 0) -> ClusterClient:
        return ClusterClient(self.cluster.ports, list(TOPICS), random.Random(self.rng.random()), follows)

    def _clients(self) -> list[Client]:
        t, seed = self.traffic, self.seed
        reading = Traffic(self.history, lambda: self._connect(0.3), LOSSY)
        reading.go, reading.over, reading.wrong = t.go, t.over, t.wrong
        return [
            Idempotent(t, "steady", seed, KEPT, 12),
            Idempotent(t, "narrow", seed, ["journal-0"], 12),
            Idempotent(t, "careless", seed, ["risky-0"], 12),
            Transactional(t, "first", seed, KEPT, 12, 1, TRANSACTION_MS),
            Transactional(t, "second", seed, KEPT, 12, 2, TRANSACTION_MS),
            Transactional(t, "third", seed, ["ledger-0", "journal-0"], 12, 2, TRANSACTION_MS),
            Consumer(reading, "committed", seed, NAMES, True),
            Consumer(reading, "uncommitted", seed, NAMES, False),
        ]

    def __call__(self, faults: int) -> Outcome:
        try:
            self.cluster.start()
            self._topics()
            self.clients = self._clients()
            for c in self.clients:
                c.start()
            self.traffic.go.set()
            for n in range(1, faults + 1):
                self._acknowledge(self.rng.randint(20, 120))
                kind = self.rng.choice(FAULTS)
                self.outcome.notes.append(f"fault {n}: {getattr(self, f'_{kind}')(n)}")
            self._finish()
        finally:
            self.traffic.over.set()
            self.traffic.go.clear()
            self.cluster.kill()
        self.outcome.wrong += [*self.traffic.wrong, *self.history.unrefused()]
        self.outcome.count(self.history)
        return self.outcome

    def _topics(self) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap)
        admin.create_topics(
            {
                topic: {"num_partitions": count, "replication_factor": 3, "configs": SEGMENT | more}
                for topic, (count, more) in TOPICS.items()
            }
        )
        admin.close()

    def _acknowledge(self, records: int, patience_s: float = 30) -> None:
        """Until so many more records are acknowledged, or a while is over."""
        enough, deadline = self.history.acknowledged() + records, time.monotonic() + patience_s
        while self.history.acknowledged() < enough and time.monotonic() < deadline:
            time.sleep(0.02)

    # ---- faults ------------------------------------------------------------------------------------------------------
    def _kill(self, n: int) -> str:
        node = self.rng.choice(BROKERS)
        self._down(node)
        self._look(f"fault {n}: after the kill of {node}", [node])
        self._up(node)
        return f"broker {node} killed"

    def _pause(self, n: int) -> str:
        node, time_s = self.rng.choice(BROKERS), self.rng.choice((1.0, FENCED_S, 3 * FENCED_S))
        self.cluster.pause(node)
        time.sleep(time_s)
        self.cluster.resume(node)
        return f"broker {node} paused for {time_s:g} s"

    def _stop(self, n: int) -> str:
        node = self.rng.choice(BROKERS)
        self.cluster.brokers[node].stop()
        self._look(f"fault {n}: after the clean stop of {node}", [node])
        self._up(node)
        return f"broker {node} stopped"

    def _controller(self, n: int) -> str:
        self.cluster.controller.kill()
        self.outcome.kills += 1
        time.sleep(self.rng.random() * 4)
        self.cluster.controller.start()
        self.cluster.controller.wait()
        return "the controller killed"

    def _two(self, n: int) -> str:
        nodes = self.rng.sample(BROKERS, 2)
        for node in nodes:
            self._down(node)
            time.sleep(self.rng.choice((0, FENCED_S)))
        self._look(f"fault {n}: after the kills of {nodes}", nodes)
        for node in self.rng.sample(nodes, 2):
            self._up(node)
        return f"brokers {nodes} killed"

    def _all(self, n: int) -> str:
        nodes = self.rng.sample(BROKERS, 3)
        for node in nodes:
            self._down(node)
        self._look(f"fault {n}: after the kill of all", nodes)
        for node in nodes:
            self.cluster.brokers[node].start()
        for node in nodes:
            self.cluster.brokers[node].wait()
        return "all brokers killed"

    def _unclean(self, n: int) -> str:
        """The leader alone is in sync, takes records, and goes; the others come back, and one of them leads."""
        leader = self._led("risky-0").leader
        others = [b for b in BROKERS if b != leader]
        if leader < 0:
            return "none: risky-0 has no leader"
        for node in others:
            self._down(node)
        alone = until(lambda: "risky-0 has others", lambda: self._led("risky-0").in_sync == {leader}, 4 * FENCED_S)
        self._acknowledge(10, 3)
        self._down(leader)
        self._look(f"fault {n}: after the kill of all but the last", [*others, leader])
        for node in others:
            self.cluster.brokers[node].start()
        for node in others:
            self.cluster.brokers[node].wait()
        lost = until(lambda: "risky-0 has no leader", lambda: self._led("risky-0").leader in others, 4 * FENCED_S)
        self.unclean += not alone and not lost
        self._acknowledge(10, 3)
        self._up(leader)
        return f"an unclean election{''.join(f'; not: {x}' for x in (alone, lost) if x)}"

    def _down(self, node: int) -> None:
        self.cluster.brokers[node].kill()
        self.outcome.kills += 1

    def _up(self, node: int) -> None:
        time.sleep(self.rng.choice((0, 0, FENCED_S)))
        self.cluster.brokers[node].start()
        self.cluster.brokers[node].wait()

    def _led(self, name: str) -> wire.Leadership:
        """As a broker that takes questions knows it. Raises Gone."""
        client = self._connect()
        try:
            return client.any().leaders(list(TOPICS))[name]
        finally:
            client.close()

    # ---- what must be so ---------------------------------------------------------------------------------------------
    def _look(self, when: str, nodes: Sequence[int]) -> None:
        """Audit the directories of brokers that are gone."""
        self._give_up()
        directories = [self.cluster.brokers[n].data for n in nodes]
        found = audit(directories)
        self.outcome.audits += 1
        at_once = [x for d in directories for x in written_at_once(d)]
        self.at_once.update(at_once)
        for line in bad(found, self.given_up):
            ours = " TXI-12 " in line and any(f"/node-{x.node}/data/{x.name}/" in line for x in at_once)
            (self.outcome.known if ours else self.outcome.wrong).append(f"{when}: {line}")
        for f in found.findings:
            if f.severity is Severity.LEFTOVER:
                self.outcome.leftovers[f.clause] = self.outcome.leftovers.get(f.clause, 0) + 1

    def _give_up(self) -> None:
        """Take over which markers the brokers say that they gave up."""
        log = b"".join(b.log() for b in self.cluster.brokers.values())
        for directory in self.cluster.directories:
            self.given_up = together(self.given_up, given_up(self.history, log, directory))
        self.history.given_up = {(x.transaction, x.name) for x in self.given_up}

    def _finish(self) -> None:
        self._acknowledge(50)
        self.traffic.go.clear()
        for c in self.clients:
            if not c.resting.wait(REST_S):
                self.outcome.wrong.append(f"{c.name} did not come to rest")
        time.sleep(TRANSACTION_MS / 1000 + 3)  # none is left that can time out
        client = self._connect()
        for name in NAMES:
            said = until(lambda n=name: f"{n} is not settled", lambda n=name: self._is_settled(client, n), SETTLED_S)  # type: ignore[misc]
            self.outcome.wrong += [said] if said else []
        final = self._read_all(client)
        client.close()
        for broker in self.cluster.brokers.values():
            broker.stop()
        self.cluster.controller.stop()
        self._look("after the clean stop", BROKERS)
        self._excuse(final)
        truth = self.history.truth("nodes-after-clean-stop.tar.gz", "after the clean stop", True, final)
        truth["replicas"] = dict.fromkeys(NAMES, len(self.cluster.directories))
        self.outcome.wrong += disagreements(truth, self.cluster.directories)
        if self.record is not None:
            nodes = {n: b.data for n, b in self.cluster.brokers.items()}
            kept(self.record, "nodes-after-clean-stop", nodes, truth)

    def _excuse(self, final: dict[str, Any]) -> None:
        """Take from what read_committed consumers read the aborted records of transactions that an index hides."""
        for name in NAMES:
            them = hidden_records(self.cluster.brokers[1].data / name, [x for x in self.at_once if x.name == name])
            for session in self.history.sessions:
                if session.name == name and session.isolation == "read_committed":
                    read = [o for o, _ in session.records if o in them]
                    session.records = [r for r in session.records if r[0] not in them]
                    if read:
                        self.outcome.known.append(
                            f"{name}: a read_committed consumer was given {read}, which are aborted"
                        )
                    if session.end == final[name]["read_committed"][1] and session.start == 0:
                        final[name]["read_committed"][2] = len(session.records)

    def _is_settled(self, client: ClusterClient, name: str) -> bool:
        """Whether all replicas are in sync, and the last stable offset is the high watermark, or is held by what was
        given up."""
        client.close()
        if self._led(name).in_sync != frozenset(BROKERS):
            return False
        self._give_up()
        (error, stable), (_, end), (_, start) = (
            client.offset(name, wire.LATEST, committed=True),
            client.offset(name, wire.LATEST),
            client.offset(name, wire.EARLIEST),
        )
        return not error and (stable == end or held(stable, start, [x for x in self.given_up if x.name == name]))

    def _read_all(self, client: ClusterClient) -> dict[str, Any]:
        """What consumers see of each partition, from the beginning to the end."""
        final: dict[str, Any] = {}
        for isolation in ("read_uncommitted", "read_committed"):
            for name in NAMES:
                committed = isolation == "read_committed"
                session = self.history.session(isolation, name, client.offset(name, wire.EARLIEST)[1])
                _, end = client.offset(name, wire.LATEST, committed)
                deadline = time.monotonic() + REST_S
                while session.end < end and time.monotonic() < deadline:
                    got = client.fetch(name, session.end, committed)
                    if not got.error:
                        take(session, got)
                if session.end < end:
                    self.outcome.wrong.append(f"{name}: {isolation} came to {session.end} of {end}")
                final.setdefault(name, {})[isolation] = [session.start, session.end, len(session.records)]
        return final


@dataclass(frozen=True)
class AtOnce:
    """An aborted transaction that the entry before it in an index hides, as a follower writes it that appends several
    batches at once: docs/storage/transaction_index.md says how it comes."""

    node: int
    name: str
    producer_id: int
    first: int
    last: int


def written_at_once(directory: Path) -> Iterator[AtOnce]:
    """Those of a log directory. None of a partition in which an entry of another producer hides one too: that is not
    how a follower does it, and nothing is excused there."""
    for partition in sorted({index.parent for index in directory.glob("*/*.txnindex")}):
        before, found = list[transaction_index.AbortedTxn](), list[AtOnce]()
        node = int(directory.parent.name.removeprefix("node-"))
        own = True
        for index in sorted(partition.glob("*.txnindex")):
            for e in transaction_index.decode(index.read_bytes()):
                if hiding := [b for b in before if b.last_stable_offset > e.first_offset]:
                    own &= all(b.producer_id == e.producer_id for b in hiding)
                    found.append(AtOnce(node, partition.name, e.producer_id, e.first_offset, e.last_offset))
                before.append(e)
        if own:
            yield from found


def hidden_records(partition: Path, hidden: Sequence[AtOnce]) -> set[int]:
    """The offsets of the records of such transactions."""
    return {
        b.offset(r)
        for log in sorted(partition.glob("*.log"))
        for b in batches(log.read_bytes())
        for x in hidden
        if b.transactional and not b.control and b.producer_id == x.producer_id and x.first <= b.base_offset < x.last
        for r in b.records
    }


def main(arguments: Sequence[str] | None = None) -> int:
    def run(seed: int, faults: int, folder: Path, record: Path | None) -> tuple[Outcome, list[str]]:
        of = ClusterRun(seed, folder, record)
        outcome = of(faults)
        return outcome, [f"{of.unclean} unclean elections"]

    return commanded(__doc__, ("faults", 6), run, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
