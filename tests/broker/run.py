"""One run of a real broker: rounds of traffic, each ended by SIGKILL, then a clean stop; all drawn from a seed.

    python -m tests.broker.run SEED [--kills N] [--record FOLDER] [--keep FOLDER]

After each kill, before the restart, and after each recovery the directory is audited and held to what the clients know.
`--record` keeps the directory after the last kill and after the clean stop, each with its truth.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import signal
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from kafkaspec.audit.engine import Audit, audit
from kafkaspec.audit.finding import Severity
from kafkaspec.audit.recorded import contents, disagreements
from tests.broker import wire
from tests.broker.broker import Broker
from tests.broker.clients import Client, Consumer, Idempotent, Open, Traffic, Transactional, Trimmer, take
from tests.broker.given_up import GivenUp, given_up, held, together
from tests.broker.history import History, Session, digest

SEGMENT = {"internal.segment.bytes": "3000", "index.interval.bytes": "300", "file.delete.delay.ms": "1500"}
COMPACT = {"min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "1000"}
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "ledger": (2, {}),
    "trimmed": (2, {}),
    "recent": (1, {"retention.bytes": "9000"}),
    "table": (1, {"cleanup.policy": "compact", **COMPACT}),
    "both": (1, {"cleanup.policy": "compact,delete", "retention.bytes": "9000", **COMPACT}),
}
COMPACTED, AGED = ("table", "both"), ("recent", "both")
NAMES = [f"{topic}-{p}" for topic, (count, _) in TOPICS.items() for p in range(count)]
FREE = ["ledger-0", "trimmed-0", "recent-0", "table-0", "both-0"]
HELD = ["ledger-1", "trimmed-1"]
"""partitions with a transaction that stays open"""
TRANSACTION_MS = 4_000
SETTLED_S = 40
REST_S = 60
TRAFFIC_S = 30


@dataclass
class Outcome:
    """What a run was like, and what is wrong, a line each."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    audits: int = 0
    kills: int = 0
    in_recovery: int = 0
    """of the kills, those while the broker was starting"""
    records: int = 0
    """acknowledged"""
    reads: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    leftovers: dict[str, int] = field(default_factory=dict)
    """of the audits, by clause"""
    notes: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    """what is wrong and Kafka's own doing: docs/audit.md says how it comes"""

    def count(self, history: History) -> None:
        """What the clients did."""
        self.records = sum(s.offset is not None for s in history.sent)
        self.reads = sum(len(s.records) for s in history.sessions)
        for t in history.transactions:
            self.outcomes[t.outcome] = self.outcomes.get(t.outcome, 0) + 1

    def __str__(self) -> str:
        left = ", ".join(f"{c} ×{n}" for c, n in sorted(self.leftovers.items()))
        return (
            f"seed {self.seed}: {self.kills} kills ({self.in_recovery} in recovery), {self.audits} audits, "
            f"{self.records} records acknowledged, {self.reads} read, {self.outcomes}; left-overs {left}; "
            f"{len(self.wrong)} wrong, {len(self.known)} of Kafka's own"
        )


class Run:
    def __init__(self, seed: int, folder: Path, record: Path | None = None) -> None:
        self.rng, self.outcome, self.record = random.Random(seed), Outcome(seed), record
        settings = {
            "log.flush.offset.checkpoint.interval.ms": self.rng.choice(("400", "60000")),
            "log.flush.start.offset.checkpoint.interval.ms": self.rng.choice(("400", "60000")),
        }
        self.broker = Broker(folder, settings)
        self.history = History(COMPACTED, AGED, record.name if record else f"seed-{seed}")
        self.traffic = Traffic(self.history, lambda: wire.connected(self.broker.port, 1))
        self.clients = self._clients(str(seed))
        self.regressed = set[str]()
        """partitions whose log start came back from before a DeleteRecords"""
        self.given_up: list[GivenUp] = []

    def _clients(self, seed: str) -> list[Client]:
        t = self.traffic
        return [
            Idempotent(t, "steady", seed, FREE, 12),
            Idempotent(t, "narrow", seed, [*HELD, "table-0"], 12),
            Transactional(t, "first", seed, FREE, 12, 1, TRANSACTION_MS),
            Transactional(t, "second", seed, FREE, 12, 2, TRANSACTION_MS),
            Transactional(t, "third", seed, [*HELD, "ledger-0"], 12, 2, TRANSACTION_MS),
            Open(t, "holder", seed, HELD, 12),
            Trimmer(t, "trimmer", seed, ["trimmed-0", "trimmed-1"]),
            Consumer(t, "committed", seed, NAMES, True),
            Consumer(t, "uncommitted", seed, NAMES, False),
        ]

    def __call__(self, kills: int) -> Outcome:
        try:
            self.broker.start()
            self.broker.wait()
            self._topics()
            for c in self.clients:
                c.start()
            for n in range(1, kills + 1):
                self._round(n, last=n == kills)
            self._finish()
        finally:
            self.traffic.over.set()
            self.traffic.go.clear()
            if self.broker.process is not None:
                self.broker.kill()
        self._count()
        return self.outcome

    def _topics(self) -> None:
        admin = KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{self.broker.port}")
        admin.create_topics(
            {
                topic: {"num_partitions": count, "replication_factor": 1, "configs": SEGMENT | more}
                for topic, (count, more) in TOPICS.items()
            }
        )
        admin.close()

    def _round(self, n: int, last: bool) -> None:
        self._traffic(self.rng.randint(100, 400))
        time.sleep(self.rng.random() * 0.2)
        self.broker.kill()
        self.outcome.kills += 1
        self._rest()
        self._look(f"after kill {n}", f"node-after-sigkill-{n}" if last else "")
        self.broker.start()
        if self.rng.random() < 0.3:
            time.sleep(1 + self.rng.random() * 8)
            if not self.broker.ready:
                self.outcome.in_recovery += 1
            self.broker.kill()
            self.outcome.kills += 1
            self._look(f"after kill {n}, killed again while it was starting")
            self.broker.start()
        self.broker.wait()
        before = {name: (s.told, s.asked) for name, s in self.history.starts.items()}
        with_broker = wire.connected(self.broker.port)
        for name, (told, asked) in sorted(before.items()):
            start = self._led(with_broker, name)
            if start < asked:  # the broker may have begun before it was killed, and told nobody
                self.regressed.add(name)
            if start < told:
                self.outcome.notes.append(f"kill {n}: {name} starts at {start}; DeleteRecords was told {told}")
        with_broker.close()
        self._look(f"after recovery {n}")

    def _led(self, c: wire.Connection, name: str) -> int:
        """The log start, as soon as there is a leader to tell it."""
        deadline = time.monotonic() + SETTLED_S
        while (answer := c.offset(name, wire.EARLIEST))[0]:
            assert time.monotonic() < deadline, f"{name}: error {answer[0]} for {SETTLED_S} s after a restart"
            time.sleep(0.2)
        return answer[1]

    def _traffic(self, records: int) -> None:
        """Until so many more records are acknowledged, or a while is over: a machine may be slow."""
        self.traffic.go.set()
        enough = self.history.acknowledged() + records
        deadline = time.monotonic() + TRAFFIC_S
        while self.history.acknowledged() < enough and time.monotonic() < deadline:
            time.sleep(0.02)

    def _rest(self) -> None:
        """All clients stop where they are: what was asked and not answered stays so until they go on."""
        self.traffic.go.clear()
        for c in self.clients:
            if not c.resting.wait(REST_S):
                self.outcome.wrong.append(f"{c.name} did not come to rest")

    def _look(self, when: str, archive: str = "", settled: bool = False, final: dict[str, Any] | None = None) -> None:
        self._give_up()
        truth = self.history.truth(f"{archive}.tar.gz", when, settled, final)
        found = audit([self.broker.data])
        if found.exit_code and self.broker.process is not None:  # told when two in a row agree
            time.sleep(2)
            found = audit([self.broker.data])
        self.outcome.audits += 1
        self.outcome.wrong += [f"{when}: {line}" for line in bad(found, self.given_up)]
        for f in found.findings:
            if f.severity is Severity.LEFTOVER:
                self.outcome.leftovers[f.clause] = self.outcome.leftovers.get(f.clause, 0) + 1
        self.outcome.wrong += [f"{when}: {line}" for line in disagreements(truth, [self.broker.data])]
        if self.record is not None and archive:
            kept(self.record, archive, {1: self.broker.data}, truth)

    def _give_up(self) -> None:
        """Take over which markers the broker says that it gave up."""
        self.given_up = together(self.given_up, given_up(self.history, self.broker.log(), self.broker.data))
        self.history.given_up = {(x.transaction, x.name) for x in self.given_up}

    def _finish(self) -> None:
        """Once more traffic, then all that can be decided is, consumers read everything, and the broker is stopped."""
        self._traffic(100)
        self._rest()
        self._settle()
        final = self._read_all()
        self._look("after the last reads")
        self.broker.stop()
        self._look("after the clean stop", "node-after-clean-stop", settled=True, final=final)

    def _settle(self) -> None:
        c = wire.connected(self.broker.port)
        deadline = time.monotonic() + SETTLED_S
        self._give_up()
        for name in FREE:
            while not self._is_settled(c, name):
                if time.monotonic() > deadline:
                    self.outcome.wrong.append(f"{name}: the last stable offset did not reach the high watermark")
                    break
                time.sleep(0.2)
        # with a transaction open the last stable offset says nothing of the others: none is left that can time out
        time.sleep(TRANSACTION_MS / 1000 + 3)
        c.close()

    def _is_settled(self, c: wire.Connection, name: str) -> bool:
        """Whether the last stable offset is the high watermark, or is held by what was given up."""
        error, stable = c.offset(name, wire.LATEST, committed=True)
        if error:
            return False
        _, start = c.offset(name, wire.EARLIEST)
        return (0, stable) == c.offset(name, wire.LATEST) or held(
            stable, start, [x for x in self.given_up if x.name == name]
        )

    def _read_all(self) -> dict[str, Any]:
        """What consumers see, from the beginning to the end."""
        final: dict[str, Any] = {}
        for isolation in ("read_uncommitted", "read_committed"):
            for name in NAMES:
                topic = name.rpartition("-")[0]
                read = self._read_by_wire if topic in COMPACTED else self._read
                session, end = read(isolation, name)
                if session.end != max(session.start, end):  # a last stable offset may be below the log start
                    self.outcome.wrong.append(f"{name}: {isolation} came to {session.end} of {end}")
                if topic not in AGED:
                    final.setdefault(name, {})[isolation] = [session.start, session.end, len(session.records)]
        return final

    def _read(self, isolation: str, name: str) -> tuple[Session, int]:
        topic, _, partition = name.rpartition("-")
        tp = TopicPartition(topic, int(partition))
        consumer = KafkaConsumer(
            bootstrap_servers=f"127.0.0.1:{self.broker.port}",
            isolation_level=isolation,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            group_id=None,
        )
        consumer.assign([tp])
        consumer.seek_to_beginning(tp)
        session, end = self.history.session(isolation, name, consumer.position(tp)), consumer.end_offsets([tp])[tp]
        deadline = time.monotonic() + REST_S
        while consumer.position(tp) < end and time.monotonic() < deadline:
            for r in consumer.poll(timeout_ms=200).get(tp, ()):
                session.records.append((r.offset, digest(r.key, r.value)))
        session.end = consumer.position(tp)
        consumer.close()
        return session, end

    def _read_by_wire(self, isolation: str, name: str) -> tuple[Session, int]:
        """kafka-python 3.0.12 ends in an error at a control batch without records, which the cleaner leaves."""
        c, committed = wire.connected(self.broker.port), isolation == "read_committed"
        session = self.history.session(isolation, name, c.offset(name, wire.EARLIEST)[1])
        _, end = c.offset(name, wire.LATEST, committed)
        deadline = time.monotonic() + REST_S
        while session.end < end and time.monotonic() < deadline:
            got = c.fetch(name, session.end, committed)
            if not got.error:
                take(session, got)
        c.close()
        return session, end

    def _count(self) -> None:
        found, self.outcome.wrong = self.outcome.wrong, [*self.traffic.wrong, *self.history.unrefused()]
        for line in found:
            epochs = "LEC-20" in line and any(n in line for n in self.regressed)
            (self.outcome.known if epochs else self.outcome.wrong).append(line)
        self.outcome.known += [self._fate(x) for x in self.given_up]
        self.outcome.count(self.history)

    def _fate(self, x: GivenUp) -> str:
        there = contents(self.broker.data / x.name)
        fates = (("committed", there.committed), ("aborted", there.aborted), ("undecided", there.open))
        fate = " and ".join(fate for fate, offsets in fates if x.offsets & offsets)
        return (
            f"{x.name} offset {min(x.offsets)}: the broker gave up the marker of a transaction of "
            f"{x.transaction.client}, {x.transaction.outcome} for the client and {fate or 'gone'} here"
        )


def bad(found: Audit, given_up: Sequence[GivenUp]) -> list[str]:
    out = [
        f"{f.severity.name} {f.clause} {f.file} {f.position} {f.offset}: {f.message}; {f.expected}"
        for f in found.findings
        if f.severity > Severity.LEFTOVER and not any(x.explains(f) for x in given_up)
    ]
    return out + list(found.problems)


def kept(folder: Path, archive: str, nodes: Mapping[int, Path], truth: dict[str, Any]) -> None:
    """Write the log directories of nodes into an archive, and the truth beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / f"{archive}.tar.gz", "w:gz", compresslevel=9) as tar:
        for n, data in nodes.items():
            tar.add(data, f"node-{n}/data", filter=lambda m: None if m.name.endswith("/.lock") else m)
    text = json.dumps(truth, separators=(",", ":")).encode()
    (folder / f"{archive}.truth.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))


def commanded(
    about: str | None,
    faults: tuple[str, int],
    run: Callable[[int, int, Path, Path | None], tuple[Outcome, list[str]]],
    arguments: Sequence[str] | None,
) -> int:
    """What the command line does with a run: its seed, how many faults (the option, and how many without it), its
    folder, what to record into. The run is told with its notes; 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument(f"--{faults[0]}", dest="faults", type=int, default=faults[1])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # what is begun is put away, as at Ctrl-C
    folder = args.keep or Path(tempfile.mkdtemp(prefix="kafkaspec-broker-"))
    try:
        outcome, more = run(args.seed, args.faults, folder, args.record)
    finally:
        if args.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    print("\n".join([str(outcome), *more, *outcome.notes, *(f"known: {x}" for x in outcome.known), *outcome.wrong]))
    return bool(outcome.wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    return commanded(__doc__, ("kills", 5), lambda seed, n, at, to: (Run(seed, at / "node-1", to)(n), []), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
