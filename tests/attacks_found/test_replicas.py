"""Replicas that are gone, and what is in a truth and compared with nothing: `kafkaspec verify` notices none of it."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Sequence
from pathlib import Path

from kafkaspec.audit.engine import audit
from kafkaspec.audit.recorded import Archive, disagreements, miscounted, recorded, wrongly_audited

KILLS = next(r for r in recorded() if r.recording == "cluster-kills")


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
        version, _, *lines = file.read_text().split("\n")
        left = [line for line in lines if line and not line.startswith(f"{topic} {partition} ")]
        if left != [line for line in lines if line]:
            file.write_text("\n".join([version, str(len(left)), *left]) + "\n")


def test_a_replica_that_is_gone_is_noticed() -> None:
    """Three brokers, three replicas to a partition, all in sync at the end: here two are left."""
    with KILLS.unpacked() as directories:
        assert wrong(KILLS, directories) == []
        lose(directories[1], "ledger-1")
        assert wrong(KILLS, directories) != []


def test_a_partition_that_is_gone_everywhere_is_noticed() -> None:
    """245 records in it, each acknowledged."""
    with KILLS.unpacked() as directories:
        for d in directories:
            lose(d, "ledger-1")
        assert wrong(KILLS, directories) != []


def test_what_clients_were_told_is_not_of_no_directory() -> None:
    truth = KILLS.truth
    assert truth is not None
    with KILLS.unpacked() as directories:
        shutil.rmtree(directories[1] / "ledger-1")
        assert disagreements(truth, directories) != []


def test_a_partition_that_no_client_knows_is_noticed() -> None:
    """"No other record is there": 245 of them are, in a partition of which the truth has only what was read."""
    truth = copy.deepcopy(KILLS.truth)
    assert truth is not None
    for of in ("partitions", "acknowledged", "unanswered"):
        truth[of].pop("ledger-1")
    with KILLS.unpacked() as directories:
        assert disagreements(truth, directories) != []


def test_the_number_of_transactions_is_compared() -> None:
    """`condense.py`: "how many the clients saw committed and aborted, over all partitions"."""
    truth = copy.deepcopy(KILLS.truth)
    assert truth is not None
    truth["transactions"] = {"committed": 0, "aborted": 0}
    with KILLS.unpacked() as directories:
        assert disagreements(truth, directories) + miscounted(KILLS, truth, audit(directories, strict=True)) != []


def test_a_record_outside_of_transactions_is_in_none() -> None:
    """A client wrote it in a transaction that was committed; the truth says that it was written without one. And the
    other way round."""
    truth = copy.deepcopy(KILLS.truth)
    assert truth is not None
    of = truth["acknowledged"]["ledger-0"]
    of["plain"].append(of["committed"].pop(5))
    with KILLS.unpacked() as directories:
        assert disagreements(truth, directories) != []


