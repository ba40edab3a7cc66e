"""Clients of a broker, each a thread with a seed of its own: they go on while the broker is there, and wait when it is
gone until they are told to go on."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from tests.broker import wire
from tests.broker.history import History, Sent, Session, Transaction, digest

FENCED = frozenset({47, 48, 49, 90, 120})
"""Errors that end a transactional producer: of an epoch that is not the newest, of a transaction that is none."""
OUT_OF_SEQUENCE = frozenset({45, 59})
"""What an idempotent producer is told whose records the leader does not have."""
PATIENCE_S = 60


class Traffic:
    """What the clients share: how a broker is reached, whether they may go on, and what went wrong. `lossy`: topics
    that may lose what was acknowledged, by an unclean election."""

    def __init__(self, history: History, connect: Callable[[], wire.Asked], lossy: Collection[str] = ()) -> None:
        self.history, self.connect, self.lossy = history, connect, lossy
        self.go, self.over = threading.Event(), threading.Event()
        self.wrong: list[str] = []


class Client(threading.Thread):
    """One client. `step` does one thing, and may raise wire.Gone."""

    def __init__(self, traffic: Traffic, name: str, seed: str) -> None:
        super().__init__(name=name, daemon=True)
        self.traffic, self.rng = traffic, random.Random(f"{seed} {name}")
        self.history = traffic.history
        self._connection: wire.Asked | None = None
        self.resting = threading.Event()

    @property
    def broker(self) -> wire.Asked:
        if self._connection is None:
            self._connection = self.traffic.connect()
        return self._connection

    def lossy(self, name: str) -> bool:
        return name.rpartition("-")[0] in self.traffic.lossy

    def run(self) -> None:
        try:
            while not self.traffic.over.is_set():
                if not self.traffic.go.is_set():
                    self.resting.set()
                    self.traffic.go.wait(0.1)
                    continue
                self.resting.clear()
                try:
                    self.step()
                except wire.Gone:
                    if self._connection is not None:
                        self._connection.close()
                    self._connection = None
                    time.sleep(0.05)
        except Exception:
            self.traffic.wrong.append(f"{self.name}: {traceback.format_exc()}")
        finally:
            self.resting.set()

    def step(self) -> None:
        raise NotImplementedError

    def pause(self, most_s: float) -> None:
        time.sleep(self.rng.random() * most_s)


class Ask(Protocol):
    def __call__(self) -> int: ...


class Producer(Client):
    """What idempotent and transactional producers have in common."""

    def __init__(self, traffic: Traffic, name: str, seed: str, names: Sequence[str], keys: int) -> None:
        super().__init__(traffic, name, seed)
        self.names, self.keys = list(names), keys
        self.producer: tuple[int, int] | None = None
        self.sequences: dict[str, int] = {}
        self.count = 0

    def records(self) -> list[wire.Pair]:
        out = list[wire.Pair]()
        for _ in range(self.rng.choice((1, 1, 2, 3, 6))):
            while True:
                self.count += 1
                key = f"k{self.rng.randrange(self.keys)}".encode()
                value = f"{self.name} {self.count} ".encode() + b"x" * self.rng.randrange(60)
                if self.history.fresh(key, value):
                    break
            out.append((key, value))
        return out

    def batch(self, name: str, records: Sequence[wire.Pair], transactional: bool) -> bytes:
        assert self.producer is not None
        now = int(time.time() * 1000) - self.rng.choice((0, 0, 0, 500))
        gzip = self.rng.random() < 0.2
        return wire.batch(records, self.producer, self.sequences.get(name, 0), transactional, gzip, now)

    def patiently(self, ask: Ask) -> int:
        """Ask until the answer is none that says: later. The error, 0 if there is none."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            error = ask()
            if error not in wire.RETRIABLE or not self.traffic.go.is_set() or time.monotonic() > deadline:
                return error
            time.sleep(0.05)


def acknowledged(sent: Sequence[Sent], base: int) -> None:
    for i, s in enumerate(sent):
        if s.offset not in (None, base + i):
            raise AssertionError(f"{s.name}: acknowledged at {s.offset} and at {base + i}")
        s.offset = base + i
        s.acknowledged_s = s.acknowledged_s or time.time()


class Idempotent(Producer):
    """Sends again what was not answered, under the same sequence, and sometimes what was; now and then it begins
    again as another producer, and what was not answered stays so."""

    pending: tuple[str, bytes, list[Sent]] | None = None

    def step(self) -> None:
        if self.producer is None:
            error, id_, epoch = self.broker.init_producer(None, 0)
            if not error:
                self.producer, self.sequences = (id_, epoch), {}
            return
        if self.pending is None:
            name, records = self.rng.choice(self.names), self.records()
            data = self.batch(name, records, False)
            self.pending = name, data, self.history.send(name, records, None)
        name, data, sent = self.pending
        error, base = self.broker.produce(name, data, None, 9)
        if error in wire.RETRIABLE | wire.UNSURE:
            self.pause(0.05)
        elif error in OUT_OF_SEQUENCE and self.lossy(name):
            self.producer = self.pending = None
        elif error:
            raise AssertionError(f"{name}: error {error} for sequence {self.sequences.get(name, 0)} of {self.producer}")
        else:
            acknowledged(sent, base)
            if self.rng.random() < 0.03 and (same := self.again(name, data)) is not None:
                acknowledged(sent, same)
            self.sequences[name] = self.sequences.get(name, 0) + len(sent)
            self.pending = None
            if self.rng.random() < 0.01:
                self.producer = None
        self.pause(0.06)

    def again(self, name: str, data: bytes) -> int | None:
        """The base offset that a duplicate is answered with; None if the partition has lost its leader meanwhile."""
        error, base = self.broker.produce(name, data, None, 9)
        if error in wire.UNSURE:
            return None
        assert not error, f"{name}: a duplicate is answered with error {error}"
        return base


class Zombie(NamedTuple):
    """A producer that left its transaction, all records of which were acknowledged."""

    producer: tuple[int, int]
    sequences: dict[str, int]
    transaction: Transaction


class Transactional(Producer):
    """One transaction a step: committed, aborted, or left and fenced by the next; `version` is that of the
    transactions, 1 or 2. What stays of a killed broker is retried, or fenced."""

    def __init__(
        self, traffic: Traffic, name: str, seed: str, names: Sequence[str], keys: int, version: int, timeout_ms: int
    ) -> None:
        super().__init__(traffic, name, seed, names, keys)
        self.version, self.timeout_ms = version, timeout_ms
        self.ending: tuple[Transaction, bool] | None = None
        self.zombie: Zombie | None = None

    def step(self) -> None:
        if self.producer is None:
            self.begin_again()
            return
        if self.ending is not None:
            self.end(*self.ending)
            return
        transaction = self.history.transaction(self.name)
        try:
            good = self.fill(transaction)
        except wire.Gone:
            self.producer = None  # left: the next init_producer aborts it
            raise
        self.pause(0.15)
        drawn = self.rng.random()
        if not good or drawn < 0.2:
            assert self.producer is not None
            self.zombie = Zombie(self.producer, self.sequences, transaction) if good else None
            self.producer = None
            if self.rng.random() < 0.3:
                self.pause(2)  # sometimes so long that the coordinator aborts it
            return
        self.ending = transaction, drawn < 0.75
        self.end(*self.ending)

    def begin_again(self) -> None:
        found = (-1, -1)

        def ask() -> int:
            nonlocal found
            if error := self.broker.find_coordinator(self.name):
                return error
            error, *rest = self.broker.init_producer(self.name, self.timeout_ms)
            found = rest[0], rest[1]
            return error

        if self.patiently(ask):
            self.pause(0.1)
            return
        self.producer, self.sequences = found, {}
        zombie, self.zombie = self.zombie, None
        if zombie is not None and zombie.producer != found and self.rng.random() < 0.5:
            self.rise(zombie)

    def rise(self, zombie: Zombie) -> None:
        """The producer before, which does not know that it is fenced, goes on with its transaction: it must be refused,
        but where the marker that fences it was given up."""
        name, records = self.rng.choice(self.names), self.records()
        sent = self.history.send(name, records, zombie.transaction)
        sequence = zombie.sequences.get(name, 0)
        data = wire.batch(records, zombie.producer, sequence, True, False, int(time.time() * 1000))
        error, base = self.broker.produce(name, data, self.name, 11 if self.version == 1 else 12)
        if not error:
            acknowledged(sent, base)
            self.history.rose(zombie.transaction, name, base)
        for s in sent:
            s.refused = bool(error) and error not in wire.UNSURE

    def fill(self, transaction: Transaction) -> bool:
        """Send its records; False if one was refused, so that it can only be left."""
        assert self.producer is not None
        producer = self.producer
        names = self.rng.sample(self.names, self.rng.randint(1, min(3, len(self.names))))
        if self.version == 1 and self.patiently(lambda: self.broker.add_partitions(self.name, producer, names)):
            return False
        for _ in range(self.rng.randint(1, 5)):
            name, records = self.rng.choice(names), self.records()
            data = self.batch(name, records, True)
            sent = self.history.send(name, records, transaction)
            base, unsure = -1, False

            def ask(name: str = name, data: bytes = data) -> int:
                nonlocal base, unsure
                error, base = self.broker.produce(name, data, self.name, 11 if self.version == 1 else 12)
                unsure |= error in wire.UNSURE
                return error

            if self.patiently(ask):
                for s in sent:
                    s.refused = not unsure
                return False
            acknowledged(sent, base)
            self.sequences[name] = self.sequences.get(name, 0) + len(sent)
        return True

    def end(self, transaction: Transaction, commit: bool) -> None:
        """Ask for the end; after a kill it is asked again, or given up."""
        if transaction.end is not None and self.rng.random() < 0.4:
            self.ending = self.producer = None
            return
        transaction.end = "committed" if commit else "aborted"
        assert self.producer is not None
        producer = after = self.producer

        def ask() -> int:
            nonlocal after
            if error := self.broker.find_coordinator(self.name):
                return error
            error, after = self.broker.end(self.name, producer, commit, 4 if self.version == 1 else 5)
            return error

        error = self.patiently(ask)
        if error in wire.RETRIABLE | wire.UNSURE:
            return
        self.ending = None
        if error:
            self.producer = None
            return
        transaction.told = True
        if after != producer:
            self.sequences = {}
        self.producer = after


class Open(Producer):
    """Opens a transaction and leaves it open, for as long as the broker lets it."""

    at_work = True

    def __init__(self, traffic: Traffic, name: str, seed: str, names: Sequence[str], keys: int) -> None:
        super().__init__(traffic, name, seed, names, keys)
        self.round = 0

    def step(self) -> None:
        if not self.at_work:
            self.pause(0.3)
            return
        id_ = f"{self.name}-{self.round}"
        self.round += 1
        transaction = self.history.transaction(id_)
        if self.patiently(lambda: self.broker.find_coordinator(id_)):
            return
        error, *found = self.broker.init_producer(id_, 600_000)
        if error:
            self.pause(0.2)
            return
        self.producer, self.sequences = (found[0], found[1]), {}
        for name in self.names:
            records = self.records()
            sent = self.history.send(name, records, transaction)
            error, base = self.broker.produce(name, self.batch(name, records, True), id_, 12)
            if error:
                for s in sent:
                    s.refused = error not in wire.UNSURE
            else:
                acknowledged(sent, base)
        self.at_work = False


class Trimmer(Client):
    """Asks for DeleteRecords: anywhere, at the last stable offset, above it, at the high watermark."""

    def __init__(self, traffic: Traffic, name: str, seed: str, names: Sequence[str]) -> None:
        super().__init__(traffic, name, seed)
        self.names = list(names)

    def step(self) -> None:
        self.pause(1.2)
        name = self.rng.choice(self.names)
        asked = [self.broker.offset(name, wire.EARLIEST), self.broker.offset(name, wire.LATEST)]
        asked.append(self.broker.offset(name, wire.LATEST, committed=True))
        if any(error for error, _ in asked):
            return
        start, end, stable = (offset for _, offset in asked)
        offset = self.rng.choice((stable, min(end, stable + 1), end, *(self.rng.randint(start, end) for _ in range(4))))
        starts = self.history.starts[name]
        starts.asked = max(starts.asked, offset)
        error, low = self.broker.delete_records(name, offset)
        if not error:
            starts.told = max(starts.told, low)


class Consumer(Client):
    """Reads partitions from their beginning on as they grow, with its own filter of aborted transactions."""

    def __init__(self, traffic: Traffic, name: str, seed: str, names: Sequence[str], committed: bool) -> None:
        super().__init__(traffic, name, seed)
        self.names, self.committed = list(names), committed
        self.at: dict[str, Session] = {}

    def step(self) -> None:
        name = self.rng.choice(self.names)
        if name not in self.at:
            error, offset = self.broker.offset(name, wire.EARLIEST)
            if error:
                self.pause(0.1)
                return
            self.open(name, offset)
        session = self.at[name]
        got = self.broker.fetch(name, session.end, self.committed)
        if got.error == wire.OUT_OF_RANGE:
            error, offset = self.broker.offset(name, wire.EARLIEST)
            if not error:
                within = offset <= session.end and not self.lossy(name)
                assert not within, f"{name}: {session.end} is out of range, and the log starts at {offset}"
                self.open(name, offset)
        elif not got.error:
            take(session, got)
        self.pause(0.05)

    def open(self, name: str, offset: int) -> None:
        self.at[name] = self.history.session("read_committed" if self.committed else "read_uncommitted", name, offset)


def take(session: Session, got: wire.FetchAnswer) -> None:
    """What a consumer of this isolation makes of a fetch."""
    hidden = set[int]()
    starting = sorted(got.aborted, key=lambda a: a[1])
    for b in wire.read(got.records):
        while starting and starting[0][1] < b.next_offset:
            hidden.add(starting.pop(0)[0])
        if b.control:
            hidden.discard(b.producer_id)
        elif not (b.transactional and b.producer_id in hidden):
            session.records += [(o, digest(k, v)) for o, k, v in b.records if o >= session.end]
        session.end = max(session.end, b.next_offset)
