"""A marker that the broker says it gave up is excused; one that is lost otherwise is not. No broker is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import crc32c
import pytest

from kafkaspec.audit.engine import audit
from kafkaspec.audit.recorded import disagreements
from tests.broker import wire
from tests.broker.given_up import GivenUp, given_up, held, lines, together
from tests.broker.history import History, Transaction
from tests.broker.run import bad

NAME, ID, START_S = "ledger-0", 7, 1_800_000_000.0
SAID = (
    "[load-txns] INFO kafka.coordinator.transaction.TransactionMarkerChannelManager - [Transaction Marker Channel "
    "Manager 1]: Couldn't find leader endpoint for partitions {} while trying to send transaction markers for {}, "
    "these partitions are likely deleted already and hence can be skipped\n"
)


def said(at_s: float, names: str = f"Set({NAME})", client: str = "first") -> bytes:
    at = datetime.fromtimestamp(START_S + at_s, UTC).isoformat(timespec="milliseconds")
    return f"{at} {SAID.format(names, client)}".encode()


def control(offset: int, epoch: int, commit: bool) -> bytes:
    """A marker's batch, as kafka-python builds one of data, with the bits of a control batch."""
    key, value = b"\0\0" + int(commit).to_bytes(2, "big"), b"\0\0\0\0\0\0"
    data = bytearray(wire.batch([(key, value)], (ID, epoch), -1, True, False, 1))
    data[22] |= 0x20
    data[17:21] = crc32c.crc32c(bytes(data[21:])).to_bytes(4, "big")
    return _at(bytes(data), offset)


def _at(batch: bytes, offset: int) -> bytes:
    return offset.to_bytes(8, "big") + batch[8:12] + (0).to_bytes(4, "big") + batch[16:]


class World:
    """A client's transactions, one a second, each of one record of its own epoch, and the log that they left."""

    def __init__(self, folder: Path) -> None:
        self.history, self.data = History((), ()), folder
        (folder / NAME).mkdir()
        (folder / "log-start-offset-checkpoint").write_text("0\n0\n")
        self.log = folder / NAME / f"{0:020}.log"
        self.log.touch()
        self.end = 0

    def write(self, batch: bytes) -> int:
        with self.log.open("ab") as f:
            f.write(batch)
        self.end += 1
        return self.end - 1

    def transaction(self, second: int, outcome: str, marker: bool = True, client: str = "first") -> Transaction:
        """Told committed or aborted, and marked so."""
        t = self.history.transaction(client)
        pair = (b"k", f"{client} {second}".encode())
        (sent,) = self.history.send(NAME, [pair], t)
        sent.sent_s = sent.acknowledged_s = START_S + second
        sent.offset = self.write(_at(wire.batch([pair], (ID, second), 0, True, False, 1), self.end))
        t.end, t.told = outcome, True
        if marker:
            self.write(control(self.end, second, outcome == "committed"))
        return t

    def wrong(self, log: bytes) -> list[str]:
        found = given_up(self.history, log, self.data)
        self.history.given_up = {(x.transaction, x.name) for x in found}
        truth = self.history.truth("", "", True)
        told = bad(audit([self.data / NAME]), found)
        return told + [line.partition(": ")[2] for line in disagreements(truth, [self.data])]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def lacking(world: World) -> None:
    """The first transaction's marker is there; the second has none, and the third's decides about it."""
    world.transaction(1, "committed")
    world.transaction(2, "committed", marker=False)
    world.transaction(3, "aborted")


WRONG = ["ERROR PSM-32", "offset 2: committed for the client, not so here"]
"""what is told of it: the audit sees an epoch rise in an open transaction"""


def kinds(wrong: Sequence[str]) -> list[str]:
    return [line[: len("ERROR PSM-32")] if line.startswith("ERROR") else line for line in wrong]


def test_a_marker_that_the_broker_gave_up_is_excused(world: World) -> None:
    lacking(world)
    assert world.wrong(said(2.5)) == []
    assert world.wrong(said(2.5, f"HashSet(a-0, b-0, c-0, d-0, {NAME})")) == []
    assert [x.offsets for x in given_up(world.history, said(2.5), world.data)] == [{2}]


@pytest.mark.parametrize(
    "log",
    [
        b"",
        said(2.5, client="second"),
        said(2.5, "Set(ledger-1)"),
        said(1.5),
        said(3.5),
        said(2.5).replace(b"find leader endpoint", b"find"),
    ],
    ids=["nothing said", "another's", "of another partition", "before it", "after the next one", "another line"],
)
def test_a_marker_that_is_lost_otherwise_is_red(world: World, log: bytes) -> None:
    lacking(world)
    assert kinds(world.wrong(log)) == WRONG


def test_the_marker_of_a_later_transaction_is_none_of_it(world: World) -> None:
    """The one behind it wrote nothing here, and has its marker."""
    world.transaction(2, "committed", marker=False)
    world.write(control(world.end, 4, True))
    assert [line.split()[:2] for line in world.wrong(b"")] == [["WARNING", "PSM-11"]]
    assert world.wrong(said(2.5)) == []


def test_what_was_given_up_stays_so_when_its_records_are_deleted(world: World) -> None:
    lacking(world)
    before = given_up(world.history, said(2.5), world.data)
    data = world.log.read_bytes()
    world.log.unlink()
    assert given_up(world.history, said(2.5), world.data) == []
    assert together(before, []) == before
    world.log.write_bytes(data)
    assert together(before, given_up(world.history, said(2.5), world.data)) == before


def test_a_fenced_producer_may_go_on_where_its_marker_was_given_up(world: World) -> None:
    history = world.history
    left, other = history.transaction("first"), history.transaction("second")
    history.given_up = {(left, NAME)}
    history.rose(left, NAME, 4)
    assert history.unrefused() == []
    history.rose(left, "ledger-1", 5)
    history.rose(other, NAME, 6)
    assert history.unrefused() == [
        "ledger-1: a fenced producer of first was not refused at offset 5",
        "ledger-0: a fenced producer of second was not refused at offset 6",
    ]


@pytest.mark.parametrize(
    ("stable", "start", "it"),
    [
        (46, 40, True),
        (47, 40, True),
        (48, 40, False),
        (94, 99, True),
        (99, 99, True),
        (100, 99, False),
        (40, 46, False),
    ],
)
def test_what_was_given_up_holds_the_last_stable_offset(stable: int, start: int, it: bool) -> None:
    """At its own offsets, and where the log begins behind them, below the log start: at the begin of a batch."""
    of = GivenUp(NAME, Transaction("first"), frozenset({46, 47}))
    assert held(stable, start, [of]) is it
    assert not held(stable, start, [])


def test_one_line_excuses_one_transaction(world: World) -> None:
    lacking(world)
    world.transaction(4, "committed", marker=False)
    world.transaction(5, "aborted")
    assert kinds(world.wrong(said(2.5))) == ["ERROR PSM-32", "offset 5: committed for the client, not so here"]
    assert world.wrong(said(2.5) + said(4.5)) == []


def _flipped(world: World) -> None:
    """It has its marker after all, and it is the wrong one."""
    world.transaction(2, "committed", marker=False)
    world.write(control(world.end, 2, False))


def _last(world: World) -> None:
    """What comes next has none either, and nobody gave that up."""
    world.transaction(2, "committed", marker=False)
    world.transaction(3, "aborted", marker=False)


def _gone(world: World) -> None:
    """Its record is gone."""
    lacking(world)
    next(s for s in world.history.sent if s.offset == 2).crc ^= 1


@pytest.mark.parametrize(
    ("plant", "told"),
    [
        (_flipped, "offset 0: committed for the client, not so here"),
        (_last, "offset 1: aborted for the client, not decided here"),
        (_gone, "offset 2: acknowledged (committed), but another record"),
    ],
)
def test_more_than_the_lost_marker_is_red(world: World, plant: Callable[[World], None], told: str) -> None:
    plant(world)
    assert told in world.wrong(said(2.5))


def test_an_unanswered_send_may_be_the_transaction(world: World) -> None:
    """The broker was killed before it answered: the client left the transaction, and began another."""
    lacking(world)
    second = next(s for s in world.history.sent if s.offset == 2)
    assert second.transaction is not None
    second.offset = second.acknowledged_s = second.transaction.end = None
    second.transaction.told = False
    assert world.wrong(said(2.5)) == []


def test_lines() -> None:
    (line,) = lines(b"2027-01-15T08:00:00.000+00:00 [main] INFO x - y\n" + said(2.25, "Set(a-b-0, c-1)", "x-y.z"))
    assert (line.at_s, line.names, line.client) == (START_S + 2.25, ("a-b-0", "c-1"), "x-y.z")
