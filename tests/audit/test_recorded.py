"""The recorded log directories agree with what the clients of those clusters saw, and would not agree with less."""

from __future__ import annotations

import copy
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import crc32c
import pytest

from kafkaspec.audit.engine import audit
from kafkaspec.audit.recorded import (
    Archive,
    batches,
    contents,
    crc,
    disagreements,
    miscounted,
    recorded,
    wrongly_audited,
)
from kafkaspec.impl.storage.batch import Batch
from kafkaspec.spec.common import producer_snapshot
from kafkaspec.spec.common.compression import CODECS
from kafkaspec.spec.common.record_format import encode
from kafkaspec.verify.engine import AUDITED_BY_TESTS, audited_recording
from tests.audit.conftest import Copy

WITH_TRUTH = [r for r in recorded() if r.truth is not None]


def test_there_are_recordings_of_every_kind() -> None:
    assert {r.recording for r in recorded()} >= {
        "single-basic",
        "cluster3-faults",
        "compaction-retention",
        "classic-2.8.2",
    }
    assert any(r.killed for r in WITH_TRUTH)


@pytest.mark.parametrize("r", WITH_TRUTH, ids=lambda r: r.name)
def test_what_clients_saw_is_there(r: Archive) -> None:
    truth = r.truth
    assert truth is not None
    with r.unpacked() as directories:
        assert directories
        assert disagreements(truth, directories) == []


@pytest.mark.clause("BAT-7")
@pytest.mark.parametrize("recordings", [("single-basic",), pytest.param(None, marks=pytest.mark.deep)])
def test_what_clients_sent_comes_out_of_every_codec(recordings: tuple[str, ...] | None) -> None:
    """Spec and impl decompress by one module, so that they cannot differ in it. Kafka's clients and brokers compressed
    these bytes, and the digests are of what was sent."""
    as_sent = Counter[str]()
    for r in WITH_TRUTH:
        if (truth := r.truth) is None or (recordings and r.recording not in recordings):
            continue
        with r.unpacked() as directories:
            for name, of in truth["acknowledged"].items():
                topic = name.rpartition("-")[0]
                if topic in truth["lossy"] or topic in truth["compacted"]:
                    continue
                told = {offset: digest for records in of.values() for offset, digest in records}
                for log in (log for d in directories for log in sorted((d / name).glob("*.log"))):
                    for batch in batches(log.read_bytes()):
                        codec = CODECS[batch.codec].name
                        by_spec = [(batch.offset(x), x.key, x.value) for x in batch.records]
                        by_impl = [(x.offset, x.key, x.value) for x in Batch(encode(batch)).records()]
                        for offset, key, value in (*by_spec, *by_impl):
                            assert told.get(offset, crc(key, value)) == crc(key, value), f"{codec} in {log} at {offset}"
                            as_sent[codec] += offset in told
    assert all(as_sent[codec.name] > 100 for codec in CODECS.values()), as_sent


@pytest.mark.parametrize("outcome", ["plain", "committed", "aborted"])
def test_a_lost_record_and_a_wrong_outcome_are_noticed(outcome: str) -> None:
    r = next(r for r in WITH_TRUTH if r.recording == "single-basic")
    truth = r.truth
    assert truth is not None
    name = next(n for n, of in truth["acknowledged"].items() if len(of.get(outcome, ())) > 1)
    of = truth["acknowledged"][name]
    of[outcome][-1][1] ^= 1
    if outcome != "plain":
        other = "aborted" if outcome == "committed" else "committed"
        of[other] = [of[outcome].pop(-2)]
    with r.unpacked() as directories:
        found = disagreements(truth, directories)
    assert len(found) == (1 if outcome == "plain" else 2), found


def test_a_lost_last_value_is_noticed() -> None:
    r = next(r for r in WITH_TRUTH if r.name == "compaction-retention/node-after-clean-stop")
    truth = r.truth
    assert truth is not None
    truth["acknowledged"]["users-0"]["plain"][-1][1] ^= 1
    with r.unpacked() as directories:
        assert [line.split(": ")[-1] for line in disagreements(truth, directories)] != []


# ---- a broker that was killed again and again: what was planted is found ---------------------------------------------
KILLS = "broker-kills/node-after-clean-stop"
Truth = dict[str, Any]
Plant = Callable[[Truth, Path], object]


def reads(truth: Truth, isolation: str, name: str = "ledger-0") -> list[list[int]]:
    """The records of the longest read."""
    of = [r for r in truth["reads"] if r[:2] == [isolation, name]]
    records: list[list[int]] = max((r[4] for r in of), key=len)
    return records


def fate(truth: Truth, outcome: str, name: str = "ledger-0") -> list[list[Any]]:
    found: list[list[Any]] = truth["acknowledged"][name][outcome]
    return found


def without_last_batch(log: Path) -> None:
    data = log.read_bytes()
    at = 0
    while (size := 12 + int.from_bytes(data[at + 8 : at + 12], "big")) + at < len(data):
        at += size
    log.write_bytes(data[:at])


def drop(truth: Truth, data: Path) -> None:
    """The end of the log, a batch with an acknowledged record at least."""
    last = max(r[0] for of in truth["acknowledged"]["ledger-0"].values() for r in of)
    for log in sorted((data / "ledger-0").glob("*.log"), reverse=True):
        while log.stat().st_size and any(o >= last for o in contents(data / "ledger-0").records):
            without_last_batch(log)


def flip_marker(truth: Truth, data: Path) -> None:
    """The first marker of a transaction that a client was told is committed says that it is aborted."""
    offset = fate(truth, "committed")[0][0]
    producer = None
    for log in sorted((data / "ledger-0").glob("*.log")):
        text, at = bytearray(log.read_bytes()), 0
        while at < len(text):
            size = 12 + int.from_bytes(text[at + 8 : at + 12], "big")
            base, of = int.from_bytes(text[at : at + 8], "big"), bytes(text[at + 43 : at + 51])
            if base <= offset <= base + int.from_bytes(text[at + 23 : at + 27], "big"):
                producer = of
            if text[at + 22] & 0x20 and of == producer and base > offset:
                kind = text.index(b"\x08\x00\x00\x00", at + 61) + 4
                assert text[kind] == 1
                text[kind] = 0
                text[at + 17 : at + 21] = crc32c.crc32c(bytes(text[at + 21 : at + size])).to_bytes(4, "big")
                log.write_bytes(text)
                return
            at += size
    raise AssertionError("no marker behind the record")


def expose(truth: Truth, data: Path) -> None:
    offset, digest, *_ = fate(truth, "aborted")[0]
    records = reads(truth, "read_committed")
    records.append([offset, digest])
    records.sort()


def expose_undecided(truth: Truth, data: Path) -> None:
    at = contents(data / "ledger-1")
    offset = min(at.open)
    read = max((r for r in truth["reads"] if r[:2] == ["read_committed", "ledger-1"]), key=lambda r: r[3])
    read[4].append([offset, at.records[offset]])
    read[3] = offset + 1


PLANTS: dict[str, tuple[Plant, str]] = {
    "an acknowledged record is gone": (drop, "acknowledged"),
    "a marker is flipped": (flip_marker, "committed for the client, not so here"),
    "an aborted record is read": (expose, "was aborted"),
    "an undecided record is read": (expose_undecided, "is not decided"),
    "a record is read twice": (
        lambda t, d: reads(t, "read_committed").insert(1, reads(t, "read_committed")[0]),
        "after",
    ),
    "two records are read in the wrong order": (lambda t, d: _swap(t), "after"),
    "a record is read over": (lambda t, d: reads(t, "read_committed").pop(1), "is not read"),
    "another record is read": (lambda t, d: reads(t, "read_committed")[0].__setitem__(1, 1), "another record"),
    "nobody sent a record": (lambda t, d: fate(t, "plain").pop(), "no client sent"),
    "a commit that nobody asked for": (
        lambda t, d: fate(t, "left").append(fate(t, "committed").pop()),
        "no client asked",
    ),
    "a transaction is torn apart": (
        lambda t, d: t["together"].append([["ledger-0", fate(t, o)[0][0]] for o in ("committed", "aborted")]),
        "one transaction",
    ),
    "the log starts where nobody asked": (lambda t, d: t["asked_to_delete"].update({"trimmed-0": 0}), "no more than 0"),
    "a marker is not written": (lambda t, d: fate(t, "committed", "ledger-1").append(_open(d)), "not decided here"),
}


def _swap(truth: Truth) -> None:
    records = reads(truth, "read_uncommitted")
    records[0], records[1] = records[1], records[0]


def _open(data: Path) -> list[int]:
    at = contents(data / "ledger-1")
    return [min(at.open), at.records[min(at.open)]]


@pytest.mark.parametrize("what", PLANTS)
def test_what_is_planted_in_a_history_or_its_log_is_found(what: str, copied: Copy) -> None:
    r = next(r for r in recorded() if r.name == KILLS)
    truth = r.truth
    assert truth is not None
    (data,) = copied(KILLS)
    assert disagreements(truth, [data]) == []
    plant, told = PLANTS[what]
    plant(truth, data)
    found = disagreements(truth, [data])
    assert any(told in line for line in found), found


def test_a_transaction_without_records_keeps_the_last_stable_offset(copied: Copy) -> None:
    """Its marker was given up, and DeleteRecords passed its records: Kafka 4.3.0 commits nothing more to readers."""
    (data,) = copied(KILLS)
    before = contents(data / "trimmed-0")
    assert before.stable == before.end
    left = producer_snapshot.Entry(7, 0, 5, 19, 5, 0, -1, 14)
    (data / "trimmed-0" / producer_snapshot.name(before.end)).write_bytes(producer_snapshot.packed([left]))
    assert contents(data / "trimmed-0").stable == 14


def test_a_marker_that_is_flipped_makes_the_audit_red(copied: Copy) -> None:
    truth = next(r for r in recorded() if r.name == KILLS).truth
    assert truth is not None
    (data,) = copied(KILLS)
    assert audit([data]).exit_code == 0
    flip_marker(truth, data)
    assert audit([data]).exit_code == 1


@pytest.mark.parametrize("recording", sorted(AUDITED_BY_TESTS))
def test_what_verify_leaves_out_is_sound(recording: str) -> None:
    claim = audited_recording(recording)
    assert (claim.why, claim.detail[:29]) == ("", "24 partitions, 19,874 records")


# ---- what is gone, and what a client says otherwise ------------------------------------------------------------------
THREE_KILLED = next(r for r in recorded() if r.recording == "cluster-kills")


def wrong(r: Archive, directories: Sequence[Path]) -> list[str]:
    """What `kafkaspec verify` says of log directories."""
    truth = r.truth
    assert truth is not None
    a = audit(directories, strict=True)
    return wrongly_audited(r, a) + disagreements(truth, directories) + miscounted(r, truth, a)


def lose(directory: Path, name: str) -> None:
    """A replica, and its lines in the checkpoints: as if the broker had never had it."""
    shutil.rmtree(directory / name)
    topic, _, partition = name.rpartition("-")
    for file in directory.glob("*-checkpoint"):
        lines = file.read_text().splitlines()
        left = [line for line in lines[2:] if not line.startswith(f"{topic} {partition} ")]
        if left != lines[2:]:
            file.write_text("\n".join([lines[0], str(len(left)), *left]) + "\n")


def test_a_replica_that_is_gone_is_noticed() -> None:
    """Three brokers, three replicas to a partition, all in sync at the end: here two are left."""
    with THREE_KILLED.unpacked() as directories:
        assert wrong(THREE_KILLED, directories) == []
        lose(directories[1], "ledger-1")
        assert wrong(THREE_KILLED, directories) != []


def test_a_partition_that_is_gone_everywhere_is_noticed() -> None:
    """245 records in it, each acknowledged."""
    with THREE_KILLED.unpacked() as directories:
        for d in directories:
            lose(d, "ledger-1")
        assert wrong(THREE_KILLED, directories) != []


def test_what_clients_were_told_is_not_of_no_directory() -> None:
    truth = THREE_KILLED.truth
    assert truth is not None
    with THREE_KILLED.unpacked() as directories:
        shutil.rmtree(directories[1] / "ledger-1")
        assert disagreements(truth, directories) != []


def test_a_partition_that_no_client_knows_is_noticed() -> None:
    """245 records are in it, and the truth has only what was read."""
    truth = copy.deepcopy(THREE_KILLED.truth)
    assert truth is not None
    for of in ("partitions", "acknowledged", "unanswered"):
        truth[of].pop("ledger-1")
    with THREE_KILLED.unpacked() as directories:
        assert disagreements(truth, directories) != []


def test_a_record_outside_of_transactions_is_in_none() -> None:
    """A client wrote it in a transaction that was committed; the truth says that it was written without one. And the
    other way round."""
    truth = copy.deepcopy(THREE_KILLED.truth)
    assert truth is not None
    of = truth["acknowledged"]["ledger-0"]
    of["plain"].append(of["committed"].pop(5))
    with THREE_KILLED.unpacked() as directories:
        assert disagreements(truth, directories) != []
