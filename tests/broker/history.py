"""What the clients of one broker asked and were told, and the truth that an audit of its directory must agree with.

Clients write down what they send before they send it, and what became of it when they are told. `truth` is what they
know at one moment, in the form of the recordings: `tests/recordings/condense.py` has its fields, and
`kafkaspec.audit.recorded` holds directories to it.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.broker.wire import Pair


def digest(key: bytes | None, value: bytes | None) -> int:
    return zlib.crc32(value or b"", zlib.crc32(b"\xff", zlib.crc32(key or b"")))


@dataclass
class Sent:
    """A record that a client sent, once or again and again."""

    name: str
    key: bytes | None
    crc: int
    tombstone: bool
    transaction: Transaction | None
    offset: int | None = None
    refused: bool = False
    """each time that it was sent it was answered with an error that says that nothing was appended"""
    sent_s: float = field(default_factory=time.time)
    """when it was sent first, and when it was acknowledged"""
    acknowledged_s: float | None = None


@dataclass(eq=False)
class Transaction:
    """One of a client's, by its transactional id. `end`: what it asked for, None so far; `told`: whether it was told
    that this is so."""

    client: str
    end: str | None = None
    told: bool = False

    @property
    def outcome(self) -> str:
        """committed or aborted: so the client was told. open: it asked for a commit and was told nothing; left: it
        never asked for one."""
        if self.told and self.end is not None:
            return self.end
        return "open" if self.end == "committed" else "left"


@dataclass
class Session:
    """What a consumer read of a partition without a break: all that it was given of the offsets from `start` to
    `end`."""

    isolation: str
    name: str
    start: int
    end: int
    records: list[tuple[int, int]] = field(default_factory=list)
    """offset and crc, as they came"""


@dataclass
class Starts:
    """What DeleteRecords did to a partition's log start: told, and asked for at most."""

    told: int = 0
    asked: int = 0


class History:
    def __init__(
        self, compacted: Sequence[str], aged: Sequence[str], recording: str = "", lossy: Sequence[str] = ()
    ) -> None:
        self.lock = threading.Lock()
        self.compacted, self.aged, self.recording = list(compacted), list(aged), recording
        self.lossy = list(lossy)
        self.sent: list[Sent] = []
        self.transactions: list[Transaction] = []
        self.sessions: list[Session] = []
        self.starts: dict[str, Starts] = defaultdict(Starts)
        self.known = set[int]()
        self.given_up = set[tuple[Transaction, str]]()
        """transactions whose marker was given up in a partition"""
        self.risen = list[tuple[Transaction, str, int]]()
        """transactions that a fenced producer went on with, the partition, and the offset"""

    def send(self, name: str, records: Sequence[Pair], transaction: Transaction | None) -> list[Sent]:
        with self.lock:
            out = [Sent(name, k, digest(k, v), v is None, transaction) for k, v in records]
            self.sent += out
        return out

    def fresh(self, key: bytes | None, value: bytes | None) -> bool:
        """Whether no record with this CRC was there before; from now on there is one."""
        with self.lock:
            crc = digest(key, value)
            new = crc not in self.known
            self.known.add(crc)
        return new

    def acknowledged(self) -> int:
        with self.lock:
            return sum(s.offset is not None for s in self.sent)

    def transaction(self, client: str) -> Transaction:
        with self.lock:
            self.transactions.append(Transaction(client))
            return self.transactions[-1]

    def rose(self, transaction: Transaction, name: str, offset: int) -> None:
        with self.lock:
            self.risen.append((transaction, name, offset))

    def unrefused(self) -> list[str]:
        """What fenced producers were let do, where no marker was given up that fences them."""
        with self.lock:
            return [
                f"{name}: a fenced producer of {t.client} was not refused at offset {offset}"
                for t, name, offset in self.risen
                if (t, name) not in self.given_up
            ]

    def pending(self, client: str, at_s: float) -> list[Transaction]:
        """Those of a client whose marker can have been due at a moment: the last one of which a record was acknowledged
        by then, and those after it with sends that were never answered. A client has one after the other, and its
        coordinator lets none begin before the one before is complete."""
        out = list[Transaction]()
        with self.lock:
            for t in reversed([t for t in self.transactions if t.client == client]):
                sent = [s for s in self.sent if s.transaction is t and s.sent_s <= at_s]
                if any(s.acknowledged_s is not None and s.acknowledged_s <= at_s for s in sent):
                    return [*out, t]
                if any(s.offset is None and not s.refused for s in sent):
                    out.append(t)
        return out

    def session(self, isolation: str, name: str, start: int) -> Session:
        with self.lock:
            self.sessions.append(Session(isolation, name, start, start))
            return self.sessions[-1]

    def truth(self, archive: str, state: str, settled: bool, final: dict[str, Any] | None = None) -> dict[str, Any]:
        """`settled`: all markers are written that will be. `final`: what consumers saw before a clean stop."""
        with self.lock:
            return self._truth(archive, state, settled, final or {})

    def _truth(self, archive: str, state: str, settled: bool, final: dict[str, Any]) -> dict[str, Any]:
        acknowledged: dict[str, dict[str, list[list[Any]]]] = defaultdict(lambda: defaultdict(list))
        unsure: dict[str, set[str | None]] = defaultdict(set)
        unanswered: dict[str, list[int]] = defaultdict(list)
        together: dict[int, list[list[Any]]] = defaultdict(list)
        for s in self.sent:
            outcome = "plain" if s.transaction is None else s.transaction.outcome
            if s.transaction is not None and (s.transaction, s.name) in self.given_up:
                outcome = "given up"
            key = None if s.key is None else s.key.decode()
            more = [key, s.tombstone] if s.name.rpartition("-")[0] in self.compacted else []
            acknowledged[s.name]
            if s.offset is not None:
                acknowledged[s.name][outcome].append([s.offset, s.crc, *more])
            elif not s.refused:
                unanswered[s.name].append(s.crc)
            if outcome == "open" and s.offset is not None:
                together[id(s.transaction)].append([s.name, s.offset])
            if (s.offset is None and not s.refused and outcome != "aborted") or outcome in ("open", "given up"):
                unsure[s.name].add(key)
        outcomes = [t.outcome for t in self.transactions]
        return {
            "recording": self.recording,
            "kafka": "4.3.0",
            "archive": archive,
            "state": state,
            "partitions": final,
            "acknowledged": {
                at: {o: sorted(rs, key=lambda r: int(r[0])) for o, rs in sorted(of.items())}
                for at, of in sorted(acknowledged.items())
            },
            "unanswered": {at: sorted(unanswered[at]) for at in sorted(acknowledged)},
            "unsure": {at: sorted(keys, key=str) for at, keys in sorted(unsure.items())},
            "together": [sorted(t) for t in together.values() if len(t) > 1],
            "deleted": {at: s.told for at, s in sorted(self.starts.items())},
            "asked_to_delete": {at: s.asked for at, s in sorted(self.starts.items())},
            "reads": [
                [s.isolation, s.name, s.start, s.end, [list(r) for r in s.records]]
                for s in self.sessions
                if s.end > s.start
            ],
            "settled": settled,
            "lossy": self.lossy,
            "compacted": self.compacted,
            "aged": self.aged,
            "in_flight": [],
            "transactions": {o: outcomes.count(o) for o in ("committed", "aborted")},
        }
