"""Three real brokers under faults are held to what their clients know; and what is excused there, without a broker."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kafkaspec.audit.engine import audit
from kafkaspec.audit.recorded import disagreements
from tests.broker import wire
from tests.broker.broker import jars
from tests.broker.cluster_run import AtOnce, ClusterRun, hidden_records, written_at_once
from tests.broker.history import History
from tests.broker.run import bad

SEEDS, FAULTS = (1, 2), 4
ENTRY = struct.Struct(">hqqqq")


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
def test_what_replicas_keep_is_what_their_clients_know(seed: int, tmp_path: Path) -> None:
    if jars() is None:
        pytest.skip("needs java, and the jars of Kafka 4.3.0 (bench/README.md)")
    outcome = ClusterRun(seed, tmp_path)(FAULTS)
    assert outcome.wrong == [], str(outcome)
    assert outcome.records > 100


# ---- transactions that an index hides --------------------------------------------------------------------------------
def data(producer: int, offset: int, pairs: int = 1) -> bytes:
    batch = wire.batch(
        [(b"k", f"{producer} {offset + n}".encode()) for n in range(pairs)], (producer, 0), 0, True, False, 1
    )
    return offset.to_bytes(8, "big") + batch[8:12] + (0).to_bytes(4, "big") + batch[16:]


def partition(folder: Path, *entries: tuple[int, int, int, int]) -> Path:
    """The log directory of node 2, with a partition whose index has these entries."""
    of = folder / "node-2" / "data" / "ledger-0"
    of.mkdir(parents=True)
    (of / f"{0:020}.txnindex").write_bytes(b"".join(ENTRY.pack(0, *e) for e in entries))
    return of


HIDES = (7, 0, 1, 4)
"""of producer 7 from 0, its marker at 1; stable up to 4, where another transaction begins"""


@pytest.mark.parametrize(
    ("entries", "hidden"),
    [
        ([HIDES, (7, 2, 3, 4)], [AtOnce(2, "ledger-0", 7, 2, 3)]),
        ([(7, 0, 1, 2), (7, 2, 3, 4)], []),
        ([HIDES, (8, 2, 3, 4)], []),
        ([HIDES, (8, 1, 2, 5), (7, 3, 4, 5)], []),
        ([HIDES, (7, 2, 3, 4), (9, 5, 6, 12), (8, 8, 9, 12)], []),
        ([HIDES, (7, 4, 5, 6)], []),
    ],
    ids=[
        "of the same producer",
        "one at a time",
        "of another producer",
        "of two producers",
        "beside another damage",
        "behind it",
    ],
)
def test_a_transaction_is_excused_that_a_follower_hides(
    tmp_path: Path, entries: list[tuple[int, int, int, int]], hidden: list[AtOnce]
) -> None:
    assert list(written_at_once(partition(tmp_path, *entries).parent)) == hidden


def test_only_the_records_of_the_hidden_transaction_are(tmp_path: Path) -> None:
    of = partition(tmp_path)
    batches = data(7, 0), data(7, 2, 3), data(8, 5), data(7, 6), data(7, 9)
    (of / f"{0:020}.log").write_bytes(b"".join(batches))
    assert hidden_records(of, [AtOnce(1, "ledger-0", 7, 2, 8)]) == {2, 3, 4, 6}
    assert hidden_records(of, []) == set()


def test_an_index_that_hides_one_is_an_error_of_the_audit(tmp_path: Path) -> None:
    """So that what is excused is told: it is damage, whoever did it."""
    of = partition(tmp_path, HIDES, (7, 2, 3, 4))
    (of / f"{0:020}.log").write_bytes(data(7, 0) + data(7, 2))
    assert any(" TXI-12 " in line for line in bad(audit([of.parent]), []))


# ---- a topic that may lose what was acknowledged ---------------------------------------------------------------------
def log(folder: Path, topic: str, *values: bytes) -> tuple[History, Path]:
    """A history in which `kept` and `lost` were acknowledged at 0 and 1 and read there; and a log of these records."""
    history = History((), (), lossy=["risky"])
    name = f"{topic}-0"
    session = history.session("read_uncommitted", name, 0)
    for offset, value in enumerate((b"kept", b"lost")):
        (sent,) = history.send(name, [(b"k", value)], None)
        sent.offset = offset
        session.records.append((offset, sent.crc))
    session.end = 2
    history.send(name, [(b"k", b"later")], None)[0].offset = 1 if topic == "risky" else 2
    of = folder / "node-1" / "data" / name
    of.mkdir(parents=True)
    (of.parent / "log-start-offset-checkpoint").write_text("0\n0\n")
    batch = wire.batch([(b"k", v) for v in values], (-1, -1), -1, False, False, 1)
    (of / f"{0:020}.log").write_bytes((0).to_bytes(8, "big") + batch[8:12] + (0).to_bytes(4, "big") + batch[16:])
    return history, of.parent


def told(folder: Path, topic: str, *values: bytes) -> list[str]:
    history, directory = log(folder, topic, *values)
    return disagreements(history.truth("", "", True), [directory])


def test_an_unclean_election_may_take_what_was_acknowledged_and_read(tmp_path: Path) -> None:
    assert told(tmp_path, "risky", b"kept", b"later") == []


def test_it_makes_no_records_and_none_twice(tmp_path: Path) -> None:
    (line,) = told(tmp_path, "risky", b"kept", b"nobody's")
    assert "no client sent" in line
    (line,) = told(tmp_path / "twice", "risky", b"kept", b"kept")
    assert "once more" in line


def test_another_topic_may_lose_nothing(tmp_path: Path) -> None:
    assert len(told(tmp_path, "ledger", b"kept", b"later")) >= 3
