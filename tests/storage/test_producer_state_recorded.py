"""The real brokers' logs, read again: the producer snapshots that they left come out, byte for byte."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import pytest

from kafkaspec.audit.context import contexts
from kafkaspec.audit.discover import discover
from kafkaspec.audit.engine import audit_log
from kafkaspec.audit.recorded import Archive, recorded
from kafkaspec.audits.storage import producer_state as audit
from kafkaspec.impl.storage.producer_state import SnapshotEntry, encode


class Counting(audit.ProducerCheck):
    """The check, counting how each snapshot compares with the replay."""

    seen: ClassVar[Counter[str]] = Counter()

    def _differences(self, at: int, entries: list[SnapshotEntry]) -> list[audit._Difference]:
        made = {}
        for line in self.table.present():
            key, *numbers = map(int, line[: audit.TRANSACTION + 1])
            made[key - 1] = SnapshotEntry(key - 1, *numbers)
        wrong = super()._differences(at, entries)
        state = self.table.state
        file = dict(self.snapshots)[at]
        if wrong:
            self.seen["unexplained"] += 1
        elif all(e.producer_id in made for e in entries) and len(made) == len(entries) and (
            encode(made[e.producer_id] for e in entries) == file.path.read_bytes()
        ):  # fmt: skip
            self.seen["equal" if entries else "equal, without producers"] += 1
        elif state[audit.MISSING] or at > state[audit.NEXT]:
            self.seen["records are missing"] += 1
        elif not self.known_start:
            self.seen["the state before the first segment is unknown"] += 1
        else:
            self.seen["of Kafka 0.11 or 1.1"] += 1
            assert self.log.topic.startswith("multi"), file.path
        return wrong


SOME = ("single-basic", "compaction-retention", "classic-0.11.0.3")


@pytest.mark.clause("PSM-18")
@pytest.mark.clause("PSM-24")
@pytest.mark.clause("PSM-28")
@pytest.mark.parametrize("which", ["some", pytest.param("all", marks=pytest.mark.deep)])
def test_the_snapshots_of_real_brokers_are_what_their_logs_make(which: str) -> None:
    Counting.seen.clear()
    for r in recorded():
        if which == "all" or r.recording in SOME:
            _replay(r)
    assert Counting.seen["unexplained"] == 0
    assert Counting.seen["equal"] >= (429 if which == "all" else 60), Counting.seen
    assert Counting.seen["records are missing"] <= 60, Counting.seen
    # of three logs that retention or DeleteRecords has shortened, and with them the first segment's own snapshot
    assert Counting.seen["the state before the first segment is unknown"] <= 8, Counting.seen


def _replay(r: Archive) -> None:
    with r.unpacked() as directories:
        for logs in contexts(discover(directories).places):
            for log in logs:
                if Counting.applies(log):
                    findings, _ = audit_log(log, [Counting])
                    assert [f for f in findings if f.severity > 1] == []
