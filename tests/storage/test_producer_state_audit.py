"""The audit's findings about producers: each damage once, at its place, under its clause; nothing of what Kafka
allows."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kafkaspec.audit.check import Facts, Log
from kafkaspec.audit.files import Kind, PartitionFiles, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.storage import producer_state as audit
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import ABORT, BATCH, COMMIT, Chunk, Ending
from kafkaspec.impl.storage.producer_state import SnapshotEntry, encode, file_name
from kafkaspec.impl.storage.transaction_index import AbortedTxn
from kafkaspec.mutants.audit import META, audited, log_file
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL, Batch, LogRecord, built

NOW = 1_700_000_000_000
DAY = 86_400_000
UNREAD = -2


class OneByOne(audit.ProducerCheck):
    """Every batch that can be read is looked at without the compiled loop."""

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterator[Finding]:
        for i, row in enumerate(chunk.batches):
            if row["problem"]:
                yield from super().chunk(segment, Chunk(chunk.batches[i : i + 1]))
            else:
                yield from self._reach(int(row["base_offset"]))
                yield from self._row(row.item())


@dataclass
class MadeLog:
    """A log as rows, with the files that a broker would have written beside it."""

    folder: Path
    segments: list[list[dict[str, int]]] = field(default_factory=lambda: [[]])
    bases: list[int] = field(default_factory=lambda: [0])
    aborted: dict[int, list[AbortedTxn]] = field(default_factory=dict)
    snapshots: dict[int, bytes] = field(default_factory=dict)
    clean: bool | None = None
    more: dict[str, Any] = field(default_factory=dict)
    topic: str = "t"
    kind: Kind = Kind.CURRENT
    check_class: type[audit.ProducerCheck] = audit.ProducerCheck

    @property
    def end(self) -> int:
        return self.segments[-1][-1]["last_offset"] + 1 if self.segments[-1] else self.bases[-1]

    def batch(self, producer: int = -1, sequence: int = -1, count: int = 1, epoch: int = 0, **more: int) -> MadeLog:
        base = more.pop("base_offset", self.end)
        row = dict.fromkeys(BATCH.names or (), -1) | {
            "position": 1000 * len(self.segments[-1]), "size": 1000, "base_offset": base,
            "last_offset": base + count - 1, "magic": 2, "attributes": 0, "problem": 0, "count": count,
            "max_timestamp": NOW, "producer_id": producer, "producer_epoch": epoch if producer >= 0 else -1,
            "base_sequence": sequence,
        }  # fmt: skip
        self.segments[-1].append(row | more)
        return self

    def data(self, producer: int, sequence: int, count: int = 1, epoch: int = 0, **more: int) -> MadeLog:
        """Of a transaction."""
        return self.batch(producer, sequence, count, epoch, **{"attributes": TRANSACTIONAL, **more})

    def marker(self, producer: int, kind: int, epoch: int = 0, coordinator: int = 0, **more: int) -> MadeLog:
        return self.batch(
            producer, -1, 1, epoch, attributes=TRANSACTIONAL | CONTROL, control_type=kind,
            coordinator_epoch=coordinator, **more,
        )  # fmt: skip

    def commit(self, producer: int, epoch: int = 0, coordinator: int = 0) -> MadeLog:
        return self.marker(producer, COMMIT, epoch, coordinator)

    def abort(self, producer: int, first: int, stable: int | None = None, epoch: int = 0) -> MadeLog:
        """An abort, and its entry in the index."""
        entry = AbortedTxn(producer, first, self.end, self.end + 1 if stable is None else stable)
        self.aborted.setdefault(self.bases[-1], []).append(entry)
        return self.marker(producer, ABORT, epoch)

    def roll(self, *entries: SnapshotEntry) -> MadeLog:
        self.snapshots[self.end] = encode(entries)
        self.bases.append(self.end)
        self.segments.append([])
        return self

    def close(self, *entries: SnapshotEntry) -> MadeLog:
        self.snapshots[self.end] = encode(entries)
        return self

    def log(self) -> Log:
        found = []
        for base in self.bases:
            path = self.folder / f"{base:020}.log"
            path.write_bytes(b"")
            index = path.with_suffix(".txnindex")
            index.unlink(missing_ok=True)
            if base in self.aborted:
                index.write_bytes(b"".join(e.encode() for e in self.aborted[base]))
            there = File(index, index.stat().st_size) if base in self.aborted else None
            found.append(Segment(base, File(path, 0), None, None, there))
        snapshots = []
        for offset, data in sorted(self.snapshots.items()):
            file = self.folder / file_name(offset)
            file.write_bytes(data)
            snapshots.append((offset, File(file, len(data))))
        files = PartitionFiles(self.folder, self.topic, 0, self.kind, segments=tuple(found), snapshots=tuple(snapshots))
        return Log(files, clean=self.clean, **self.more)

    def check(self) -> tuple[list[Finding], Facts]:
        log = self.log()
        assert audit.ProducerCheck.applies(log)
        check = self.check_class(log)
        out: list[Finding] = []
        for segment, rows in zip(log.files.segments, self.segments, strict=True):
            out += check.begin(segment)
            columns = BATCH.names or ()
            table = np.array([tuple(r[c] for c in columns) for r in rows], BATCH)
            for part in (table[: len(rows) // 2], table[len(rows) // 2 :]):
                out += check.chunk(segment, Chunk(part))
            out += check.ended(segment, Ending(0, 0))
        out += check.end()
        return sorted(out, key=Finding.order), check.learnt(Facts())

    def findings(self) -> list[tuple[str, str, str, int | None, int | None]]:
        """Severity, clause, file's name, position and offset of each finding; the same with and without compiling."""
        seen = []
        for check_class in (audit.ProducerCheck, OneByOne):
            found, _ = replace(self, check_class=check_class).check()
            assert all(f.message and f.expected and f.recovery for f in found)
            assert all(f.topic == self.topic for f in found)
            seen.append([(f.severity.name, f.clause, Path(f.file).name, f.position, f.offset) for f in found])
        assert seen[0] == seen[1]
        return seen[0]


LOG = "00000000000000000000.log"
INDEX = "00000000000000000000.txnindex"


@pytest.fixture
def made(tmp_path: Path) -> MadeLog:
    return MadeLog(tmp_path)


def entry(producer: int, sequence: int, offset: int, **more: int) -> SnapshotEntry:
    return SnapshotEntry(producer, 0, sequence, offset, 0, NOW, -1, -1)._replace(**more)


# what Kafka allows


@pytest.mark.clause("PSM-3")
@pytest.mark.clause("PSM-10")
@pytest.mark.clause("PSM-16")
def test_nothing_to_say_of_a_good_log(made: MadeLog) -> None:
    made.batch(1, 0, 3).batch(1, 3, 2).batch().data(2, 0, 2).data(3, 0).commit(2).data(2, 2)
    made.abort(3, 8, stable=10)
    made.roll(
        entry(1, 4, 4, offset_delta=1), entry(2, 2, 10, coordinator_epoch=0, transaction=10),
        entry(3, 0, 8, coordinator_epoch=0),
    )  # fmt: skip
    made.commit(2, epoch=1).data(2, 0, epoch=1).abort(2, 13, epoch=2).batch(4, 77)
    made.close(
        entry(1, 4, 4, offset_delta=1), entry(2, -1, -1, epoch=2, coordinator_epoch=0),
        entry(3, 0, 8, coordinator_epoch=0), entry(4, 77, 15),
    )  # fmt: skip
    assert made.findings() == []
    facts = made.check()[1]
    assert facts == Facts(committed=2, aborted=2, open_transactions=0, last_stable_offset=16)


@pytest.mark.clause("PSM-14")
def test_open_transactions_and_the_last_stable_offset(made: MadeLog) -> None:
    made.batch(1, 0, 3).data(2, 0).data(3, 0).commit(3)
    facts = made.check()[1]
    assert (facts.open_transactions, facts.last_stable_offset) == (1, 3)
    assert replace(made, more={"high_watermark": 2}).check()[1].last_stable_offset == 2


ALLOWED: dict[str, Callable[[MadeLog], object]] = {
    "sequences that wrap": lambda m: m.batch(1, 2**31 - 2, 3).batch(1, 1),
    "an unknown producer begins anywhere": lambda m: m.batch(1, 9),
    "a new epoch": lambda m: m.batch(1, 0, 5).batch(1, 0, epoch=1),
    "a batch lacks records": lambda m: (m.batch(1, 0, 5).segments[0][0].update(count=0), m.batch(1, 5)),
    "compaction removed batches": lambda m: m.batch(1, 0).batch(1, 4, base_offset=9),
    "compaction removed an epoch": lambda m: m.batch(1, 0).batch(1, 4, epoch=3, base_offset=9),
    "compaction removed markers": lambda m: m.data(1, 0).batch(1, 1, base_offset=9),
    "a producer was idle for a day": lambda m: m.batch(1, 0).batch(1, 7, max_timestamp=NOW + DAY),
    "its records are below the log start": lambda m: m.batch(1, 0).batch(1, 7),
    "a marker without records": lambda m: m.commit(1).marker(1, ABORT),
    "a marker is written again": lambda m: m.data(1, 0).commit(1, epoch=1).commit(1, epoch=1),
    "a fenced producer's abort": lambda m: m.data(1, 0).abort(1, 0, epoch=2),
    "an empty control batch": lambda m: m.batch(1, -1, epoch=4, attributes=TRANSACTIONAL | CONTROL, count=0),
    "a control record that is no transaction's": lambda m: m.batch(attributes=CONTROL, control_type=2),
    "a new epoch after the marker": lambda m: m.data(1, 0).commit(1).data(1, 0, epoch=1),
    "a new epoch after a marker of it": lambda m: m.data(1, 0).commit(1, epoch=1).data(1, 0, epoch=1),
    "a new epoch after a marker that may be gone": lambda m: m.data(1, 0).data(1, 0, epoch=1, base_offset=9),
    "a new epoch after a marker in what is damaged": lambda m: m.data(1, 0).batch(problem=3).data(1, 0, epoch=1),
    "a new epoch without a transaction": lambda m: m.batch(1, 0).data(1, 0, epoch=1),
    "a damaged batch may have held anything": lambda m: (
        m.data(1, 0).batch(problem=3).batch(1, 7, epoch=3).data(2, 0).batch(problem=3).marker(2, ABORT)
    ),
    "batches of an old format": lambda m: m.batch(magic=1, count=-1).batch(1, 0),
    "an index entry of the follower's": lambda m: m.data(1, 0).abort(1, 0, stable=3).batch().data(2, 0),
    "a cleaned segment has no index": lambda m: m.data(1, 0).marker(1, ABORT, base_offset=9),
    "a snapshot knows producers whose batches are gone": lambda m: m.batch(3, 0, base_offset=9).close(
        entry(1, 5, 5), entry(3, 0, 9)
    ),
    "a snapshot lacks a producer that was idle": lambda m: (
        m.batch(1, 0, max_timestamp=NOW - 9).batch(2, 0).close(entry(2, 0, 1))
    ),
    "a snapshot of Kafka 0.11": lambda m: m.data(1, 0, 2).commit(1).close(entry(1, 1, 2, coordinator_epoch=0)),
    "a snapshot within a compressed batch of an old format": lambda m: m.batch(
        magic=1, count=-1, last_offset=9
    ).close(),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_kafka_allows_is_no_finding(made: MadeLog, name: str) -> None:
    if "log start" in name:
        made.more = {"log_start": 1}
    ALLOWED[name](made)
    assert made.findings() == []


@pytest.mark.clause("PSM-22")
def test_the_state_before_the_first_segment_is_its_snapshot_or_unknown(made: MadeLog) -> None:
    made.bases = [100]
    made.data(1, 5).abort(1, 100).batch(2, 5).data(3, 1).marker(4, ABORT)
    made.aborted[100].append(AbortedTxn(4, 50, 104, 103))
    assert made.findings() == []
    made.snapshots[100] = encode([entry(1, 4, 90), entry(3, 0, 91, transaction=91), entry(4, 0, 50, transaction=50)])
    made.aborted[100] = [AbortedTxn(1, 100, 101, 50), AbortedTxn(4, 50, 104, 91)]
    made.close(
        entry(1, 5, 100, coordinator_epoch=0), entry(2, 5, 102), entry(3, 1, 103, transaction=91),
        entry(4, 0, 50, coordinator_epoch=0),
    )  # fmt: skip
    assert made.findings() == []
    assert made.check()[1].open_transactions == 1
    made.snapshots[50] = made.snapshots[100]
    assert made.findings() == []


# damage


@pytest.mark.clause("PSM-3")
@pytest.mark.clause("PSM-2")
@pytest.mark.clause("PSM-5")
@pytest.mark.clause("PSM-6")
@pytest.mark.parametrize(
    ("clause", "row"),
    [
        ("PSM-3", {"base_sequence": 6}),
        ("PSM-3", {"base_sequence": 3}),
        ("PSM-2", {"base_sequence": 2}),
        ("PSM-5", {"producer_epoch": 6}),
        ("PSM-6", {"producer_epoch": 4}),
    ],
)
def test_a_wrong_number_of_a_batch_is_found_once(made: MadeLog, clause: str, row: dict[str, int]) -> None:
    made.batch(1, 0, 2, 5).batch(1, 2, 3, 5).batch(1, 5, 3, 5).batch(2, 0)
    made.segments[0][2] |= row
    made.batch(1, row.get("base_sequence", 5) + 3, 1, row.get("producer_epoch", 5))
    assert made.findings() == [("ERROR", clause, LOG, 2000, 5)]


@pytest.mark.clause("PSM-9")
def test_a_plain_batch_in_a_transaction(made: MadeLog) -> None:
    made.data(1, 0).batch(1, 1).commit(1)
    assert made.findings() == [("ERROR", "PSM-9", LOG, 1000, 1)]


@pytest.mark.clause("PSM-32")
def test_a_higher_epoch_in_an_open_transaction(made: MadeLog) -> None:
    made.data(1, 0).data(2, 0).commit(2).data(1, 0, epoch=1).data(1, 1, epoch=1).commit(1, epoch=1)
    assert made.findings() == [("ERROR", "PSM-32", LOG, 3000, 3)]
    assert made.check()[1].committed == 2
    made.batch(3, 0).data(3, 1).batch(3, 0, epoch=1).commit(3, epoch=1)  # not transactional: told once, as PSM-9
    assert [f[1] for f in made.findings()] == ["PSM-32", "PSM-9"]


def key_of(group: str, topic: str, version: int = 1) -> bytes:
    """Of an offset commit."""
    text = b"".join(struct.pack(">h", len(x)) + x.encode() for x in (group, topic))
    return struct.pack(">h", version) + text + struct.pack(">i", 0)


def committed(
    offset: int, sequence: int = 0, *keys: bytes, codec: int = 0, attributes: int = TRANSACTIONAL, producer: int = 7
) -> Batch:
    """A batch that a group coordinator writes in a producer's transaction."""
    records = [LogRecord(offset + n, NOW, key, b"v") for n, key in enumerate(keys or (key_of("g", "t"),))]
    return built(
        offset, records, attributes=attributes | codec, producer_id=producer, producer_epoch=0, base_sequence=sequence,
        leader_epoch=0,
    )  # fmt: skip


def told(folder: str, batches: list[Batch]) -> list[tuple[str, int | None]]:
    files = log_file(f"d/{folder}", 0, batches) | {f"d/{folder}/leader-epoch-checkpoint": b"0\n1\n0 0\n"}
    found = audited({"d/meta.properties": META, **files})
    assert found is not None
    return [(f.clause, f.offset) for f in found.findings if f.severity > Severity.LEFTOVER]


@pytest.mark.clause("PSM-33")
@pytest.mark.parametrize("folder", ["__consumer_offsets-0", "copy-0"])
def test_a_group_coordinator_s_sequences_are_nobody_s(folder: str) -> None:
    """Under any topic's name."""
    good = [
        committed(0),
        committed(1, 0, key_of("group", "topic", 0), key_of("", "")),
        committed(3, codec=1),
        committed(4, producer=8),
        committed(5, producer=8),
    ]
    assert told(folder, good) == []
    assert told(folder, [*good, committed(6, 1)]) == [("PSM-33", 6)]
    assert told(folder, [committed(0), committed(1), committed(2, 9), committed(3, 0)]) == [("PSM-33", 2)]


@pytest.mark.clause("PSM-33")
@pytest.mark.parametrize("folder", ["__consumer_offsets-0", "t-0"])
@pytest.mark.parametrize(
    "again",
    [
        committed(1, 0, b"k"),
        committed(1, 0, key_of("g", "t") + b"x"),
        committed(1, 0, key_of("g", "t")[:-1]),
        committed(1, 0, key_of("g", "t", 2)),
        committed(1, 0, b""),
        committed(1, attributes=0),
    ],
)
def test_a_client_s_sequences_are_its_own(folder: str, again: Batch) -> None:
    first = replace(committed(0), attributes=again.attributes)
    assert told(folder, [first, again]) == [("PSM-2", 1)]
    two = committed(1, 0, key_of("g", "t"), b"k")
    assert told(folder, [committed(0), two]) == [("PSM-3", 1)]


@pytest.mark.clause("PSM-11")
@pytest.mark.clause("PSM-12")
def test_wrong_markers(made: MadeLog) -> None:
    made.data(1, 0, epoch=5).commit(1, epoch=5, coordinator=3).data(1, 1, epoch=5).commit(1, epoch=5, coordinator=2)
    made.data(1, 2, epoch=5).commit(1, epoch=9, coordinator=3).commit(1, epoch=8, coordinator=3)
    assert made.findings() == [
        ("ERROR", "PSM-12", LOG, 3000, 3),
        ("ERROR", "PSM-11", LOG, 6000, 6),
        ("WARNING", "PSM-11", LOG, 5000, 5),
    ]


@pytest.mark.clause("PSM-16")
def test_the_transaction_index_against_the_transactions(made: MadeLog) -> None:
    made.data(1, 0).data(2, 0).abort(1, 0, stable=1).abort(2, 1).data(1, 1).abort(1, 4).batch()
    assert made.findings() == []
    whole = made.aborted[0]
    for n, e in enumerate(whole):
        made.aborted[0] = whole[:n] + whole[n + 1 :]
        assert made.findings() == [("ERROR", "PSM-16", INDEX, 34 * n, e.first_offset)]
        for wrong in (
            e._replace(producer_id=7),
            e._replace(first_offset=e.first_offset + 1),
            e._replace(last_offset=e.last_offset + 30),
            e._replace(last_stable_offset=e.last_stable_offset + 5),
        ):
            made.aborted[0] = [*whole[:n], wrong, *whole[n + 1 :]]
            assert made.findings() == [("ERROR", "PSM-16", INDEX, 34 * n, e.first_offset)]
    made.aborted[0] = [*whole, AbortedTxn(9, 4, 6, 7)]
    assert made.findings() == [("ERROR", "PSM-16", INDEX, 34 * 3, 4)]
    made.aborted, made.clean = {}, True
    (one,) = [f for f in made.findings() if f[1] == "PSM-16"]
    assert one == ("ERROR", "PSM-16", INDEX, 0, 0)
    text = made.check()[0][0]
    assert "3 aborted transactions" in text.message
    assert "0 to 1, 1 to 2, 4 to 4" in text.recovery


@pytest.mark.clause("PSM-16")
@pytest.mark.parametrize(("sequence", "epoch"), [(5, 0), (0, 1)])
def test_a_transaction_from_below_the_first_segment(made: MadeLog, sequence: int, epoch: int) -> None:
    """Retention and DeleteRecords take records of an open transaction too. Where its marker was given up the producer
    goes on in a new epoch, and what Kafka has open is still the one from below."""
    made.bases = [100]
    made.batch(2, 9).data(1, sequence, epoch=epoch).batch(2, 10).data(1, sequence + 1, epoch=epoch)
    made.abort(1, 46, epoch=epoch)
    assert made.findings() == []
    for first in (100, 102, 103):  # the first segment's records are there, and none of them is an earlier one of it
        made.aborted[100] = [AbortedTxn(1, first, 104, 105)]
        assert made.findings() == [("ERROR", "PSM-16", "00000000000000000100.txnindex", 0, 101)]
    made.aborted[100] = []
    made.segments[0].pop()
    made.abort(1, 46, epoch=epoch).data(1, sequence + 2, epoch=epoch).abort(1, 47, epoch=epoch)  # after a marker
    assert made.findings() == [("ERROR", "PSM-16", "00000000000000000100.txnindex", 34, 105)]
    made.snapshots[100] = encode([entry(2, 8, 99)])  # and here nothing was open
    assert made.findings()[0] == ("ERROR", "PSM-16", "00000000000000000100.txnindex", 0, 101)


@pytest.mark.clause("PSM-16")
def test_a_transaction_whose_first_records_are_missing(made: MadeLog) -> None:
    made.batch(1, 0).commit(1).data(1, 3, base_offset=5).abort(1, 3)
    assert made.findings() == []
    made.aborted[0] = [AbortedTxn(1, 6, 6, 7)]
    assert made.findings() == [("ERROR", "PSM-16", INDEX, 0, 5)]


@pytest.mark.clause("PSM-16")
def test_a_first_offset_is_asked_for_behind_a_wrong_batch(made: MadeLog) -> None:
    """Nothing is missing, whatever its producer's last batch says."""
    made.batch(2, 0).data(1, 0).data(1, 5).abort(1, 0)
    assert [f[1:] for f in made.findings()] == [("PSM-3", LOG, 2000, 2), ("PSM-16", INDEX, 0, 1)]
    made.aborted[0] = [AbortedTxn(1, 1, 3, 4)]
    assert [f[1] for f in made.findings()] == ["PSM-3"]
    made.segments[0][2] |= {"producer_epoch": -1, "base_sequence": 1}
    made.aborted[0] = [AbortedTxn(1, 0, 3, 4)]
    assert [f[1] for f in made.findings()] == ["PSM-6", "PSM-16"]


@pytest.mark.clause("PSM-16")
@pytest.mark.clause("PSM-9")
def test_a_plain_batch_says_that_nothing_was_open(made: MadeLog) -> None:
    made.bases = [100]
    made.batch(2, 9).batch(1, 5).data(1, 6).data(1, 7).abort(1, 50)
    assert made.findings() == [("ERROR", "PSM-16", "00000000000000000100.txnindex", 0, 102)]
    made.segments[0][1] |= {"attributes": TRANSACTIONAL}
    assert made.findings() == []
    made.segments[0][2] |= {"attributes": 0}  # refused in its transaction, whose begin it does not tell
    assert [f[1] for f in made.findings()] == ["PSM-9"]


@pytest.mark.clause("PSM-16")
def test_no_transaction_begins_below_0(made: MadeLog) -> None:
    made.bases = [100]
    made.batch(2, 9).data(1, 5).abort(1, 0)
    assert made.findings() == []
    made.aborted[100] = [AbortedTxn(1, -1, 102, 103)]
    assert made.findings() == [("ERROR", "PSM-16", "00000000000000000100.txnindex", 0, 101)]


@pytest.mark.clause("PSM-16")
@pytest.mark.parametrize("base", [0, 100])
def test_a_state_that_was_rebuilt_from_the_log_start(made: MadeLog, base: int) -> None:
    """After DeleteRecords into a segment and a truncation within it, Kafka reads on from the batch of the log start.
    Its own UnifiedLog (4.3.0) makes such entries, from the begin of a batch around the log start too."""
    made.bases, made.clean, made.more = [base], True, {"log_start": base + 2}
    made.data(1, 5).batch().data(1, 6, 3).data(1, 9).batch().abort(1, base + 2).close(entry(1, 9, base + 5))
    told = [("ERROR", "PSM-16", f"{base:020}.txnindex", 0, base)]

    def of(first: int, start: int) -> list[tuple[str, str, str, int | None, int | None]]:
        made.aborted, made.more = {base: [AbortedTxn(1, base + first, base + 7, base + 8)]}, {"log_start": base + start}
        return [f for f in made.findings() if f[1] == "PSM-16"]

    for start in (0, 1, 2, 3, 4, 5, 6):
        assert of(0, start) == []
        assert of(2, start) == ([] if start > 0 else told)  # its first batch at or above 1, 2, 3 and 4
        assert of(5, start) == ([] if start > 4 else told)
        assert of(6, start) == of(8, start) == told
    made.snapshots[base + 1] = encode([entry(1, 5, base, transaction=base)])
    assert (of(2, 6), of(5, 6)) == ([], told)  # none was rebuilt from 1 on, or this one would be gone
    made.snapshots[base + 1] = encode([])  # written where a clean stop left none, with the log start at the end
    assert of(5, 6) == []
    del made.snapshots[base + 1]
    made.aborted = {base: [AbortedTxn(1, base + 5, base + 7, base + 8)]}
    made.more = {"log_start": None}
    assert [f for f in made.findings() if f[1] == "PSM-16"] == told
    made.more = {"log_start": None, "start_known": False}
    assert [f for f in made.findings() if f[1] == "PSM-16"] == []
    made.more, made.kind = {"log_start": None}, Kind.FUTURE  # it has none of its own in the checkpoint
    assert [f for f in made.findings() if f[1] == "PSM-16"] == []


@pytest.mark.clause("PSM-16")
def test_a_transaction_that_a_rebuilt_state_does_not_know(made: MadeLog) -> None:
    """Nothing of it is at the log start or above: its abort makes no entry."""
    made.clean = True
    made.data(1, 0, 2).batch().marker(1, ABORT).close(entry(1, -1, -1, coordinator_epoch=0))
    made.more = {"log_start": 2}
    assert made.findings() == []
    made.more = {"log_start": 1}  # the batch of 1 is read
    assert [f[1:] for f in made.findings()] == [
        ("PSM-16", INDEX, 0, 0),
        ("PSM-18", "00000000000000000004.snapshot", 10, 4),
    ]


@pytest.mark.clause("PSM-16")
def test_the_last_stable_offset_of_several_batches_in_one_append(made: MadeLog) -> None:
    """As a follower has them: all have begun before the first marker is looked at. Any other is told, and by this check
    alone."""
    made.data(1, 0).abort(1, 0, stable=3).batch().data(2, 0).batch()
    for stable in (2, 3):
        made.aborted[0] = [AbortedTxn(1, 0, 1, stable)]
        assert made.findings() == []
    for stable in (1, 4, 5):
        made.aborted[0] = [AbortedTxn(1, 0, 1, stable)]
        assert made.findings() == [("ERROR", "PSM-16", INDEX, 0, 0)]


@pytest.mark.clause("PSM-16")
def test_the_last_stable_offset_of_a_rebuilt_state(made: MadeLog) -> None:
    """What the others have open may be unknown, and then begins at their next batch."""
    made.data(2, 0).data(1, 0).abort(1, 1, stable=3).batch().data(2, 1).data(3, 0)
    for stable, start in [(3, 1), (4, 1), (0, 1), (0, 0)]:
        made.aborted[0], made.more = [AbortedTxn(1, 1, 2, stable)], {"log_start": start}
        assert made.findings() == []
    for stable, start in [(5, 1), (3, 0), (4, 0)]:
        made.aborted[0], made.more = [AbortedTxn(1, 1, 2, stable)], {"log_start": start}
        assert made.findings() == [("ERROR", "PSM-16", INDEX, 0, 1)]


@pytest.mark.clause("PSM-18")
def test_the_snapshot_of_a_rebuilt_state(made: MadeLog) -> None:
    made.data(1, 0).commit(1).data(1, 1).data(1, 2).data(2, 0).batch()
    second = entry(2, 0, 4, transaction=4)
    right = entry(1, 2, 3, coordinator_epoch=0, transaction=2)
    for first, lowest in [
        (right, 0),
        (right._replace(coordinator_epoch=-1), 2),
        (right._replace(coordinator_epoch=-1, transaction=3), 3),
        (None, 4),
    ]:
        for start in range(6):
            made.snapshots = {6: encode([x for x in (first, second) if x is not None])}
            made.more = {"log_start": start}
            assert bool(made.findings()) == (start < lowest)
    made.snapshots, made.more = {6: encode([right])}, {"log_start": 4}
    assert [f[1] for f in made.findings()] == ["PSM-18"]  # what is at the log start is known


@pytest.mark.clause("PSM-16")
def test_an_abort_that_a_kill_kept_out_of_the_index_is_left_over(made: MadeLog) -> None:
    made.data(1, 0).abort(1, 0).data(1, 1).marker(1, ABORT)
    made.clean = False
    assert [f[:2] for f in made.findings()] == [("LEFTOVER", "PSM-16")]
    made.more = {"recovery_point": 4}  # flushed: nothing will look at it again
    assert [f[:2] for f in made.findings()] == [("ERROR", "PSM-16")]


@pytest.mark.clause("PSM-18")
@pytest.mark.clause("PSM-28")
@pytest.mark.parametrize(
    "wrong",
    [
        {"epoch": 1}, {"last_sequence": 2}, {"last_offset": 3}, {"offset_delta": 0}, {"timestamp": NOW - 1},
        {"coordinator_epoch": 2}, {"transaction": 4}, {"transaction": -1}, {"producer_id": 6},
    ],
)  # fmt: skip
def test_a_snapshot_that_is_not_what_the_records_make(made: MadeLog, wrong: dict[str, int]) -> None:
    made.batch(9, 0).data(1, 0).commit(1).data(1, 1, 3).batch()
    right = entry(1, 3, 5, offset_delta=2, coordinator_epoch=0, transaction=3)
    assert made.close(entry(9, 0, 0), right).findings() == []
    made.close(entry(9, 0, 0), right._replace(**wrong))
    (found,) = made.findings()
    assert found == ("ERROR", "PSM-18", file_name(7), 56, 7)
    made.batch().close(entry(9, 0, 0), right)
    (found,) = made.findings()
    assert found[:2] == ("WARNING", "PSM-18")  # there is a later one


@pytest.mark.clause("PSM-18")
def test_a_marker_that_is_not_there_may_have_ended_a_transaction(made: MadeLog) -> None:
    """Offsets 1 to 3 are in a segment that is missing. The transaction may be another one of the same epoch then."""
    made.data(1, 0).data(1, 2, base_offset=4)
    for first in (0, 2, 3, 4):
        assert made.close(entry(1, 2, 4, coordinator_epoch=0, transaction=first)).findings() == []
    assert [f[1] for f in made.close(entry(1, 2, 4, coordinator_epoch=0, transaction=5)).findings()] == ["PSM-18"]
    assert [f[1] for f in made.close(entry(1, 2, 4, coordinator_epoch=0)).findings()] == ["PSM-18"]


@pytest.mark.clause("PSM-18")
@pytest.mark.clause("PSM-17")
def test_a_snapshot_that_lacks_a_producer(made: MadeLog) -> None:
    made.batch(1, 0).batch(2, 0)
    made.close(entry(1, 0, 0))
    assert [f[:3] for f in made.findings()] == [("ERROR", "PSM-18", file_name(2))]
    made.data(3, 0).close(entry(1, 0, 0), entry(2, 0, 1))
    made.snapshots.pop(2)
    assert [f[:3] for f in made.findings()] == [("ERROR", "PSM-18", file_name(3))]


@pytest.mark.clause("PSM-18")
def test_a_snapshot_that_lacks_a_producer_of_markers_alone(made: MadeLog) -> None:
    """A marker is another producer's than it was, say."""
    made.batch(1, 0).batch(2, 0).commit(9).batch(3, 0)
    made.close(entry(1, 0, 0), entry(2, 0, 1), entry(3, 0, 3))
    assert made.findings() == []  # forgotten at once, before topics had ids
    made.more = {"topic_id": "x"}
    assert [f[:3] for f in made.findings()] == [("ERROR", "PSM-18", file_name(4))]
    nine = entry(9, -1, -1, coordinator_epoch=0)
    assert made.close(entry(1, 0, 0), entry(2, 0, 1), nine, entry(3, 0, 3)).findings() == []
    assert made.close(entry(3, 0, 3)).findings() == []  # all that wrote before are forgotten


@pytest.mark.clause("PSM-25")
@pytest.mark.clause("PSM-19")
@pytest.mark.parametrize(("clean", "severity"), [(True, "WARNING"), (False, "LEFTOVER")])
def test_unreadable_snapshots_and_those_above_the_end(made: MadeLog, clean: bool, severity: str) -> None:
    made.clean = clean
    made.batch(1, 0).batch(1, 1).close(entry(1, 1, 1))
    data = bytearray(made.snapshots[2])
    data[20] ^= 4
    made.snapshots = {2: bytes(data), 5: encode([])}
    assert made.findings() == [
        (severity, "PSM-25", file_name(2), 2, 2),
        (severity, "PSM-19", file_name(5), None, 5),
    ]


@pytest.mark.clause("PSM-19")
@pytest.mark.parametrize("clean", [True, False])
def test_the_log_end_of_an_empty_last_segment_is_its_base(made: MadeLog, clean: bool) -> None:
    """The cleaner may take the last records of a segment: the next one begins where they ended all the same."""
    made.clean = clean
    made.batch(1, 0).batch(1, 1).roll(entry(1, 1, 1))
    made.bases[1] = 9
    made.close(entry(1, 1, 1)).snapshots[5] = encode([entry(1, 1, 1)])
    assert made.end == 9
    assert made.findings() == []
    assert made.check()[1].last_stable_offset == 9
    made.snapshots[10] = made.snapshots[9]
    severity = "WARNING" if clean else "LEFTOVER"
    assert made.findings() == [(severity, "PSM-19", file_name(10), None, 10)]
    made.snapshots[9] = encode([entry(1, 0, 1)])  # what it says of records that are there is compared
    assert next(f[:3] for f in made.findings()) == ("WARNING", "PSM-18", file_name(9))
    made.snapshots[9] = encode([entry(1, 7, 8)])  # what it says of those that are gone is not
    assert [f[1] for f in made.findings()] == ["PSM-19"]


@pytest.mark.clause("PSM-19")
def test_a_snapshot_above_the_base_of_an_empty_segment_after_a_damaged_one(made: MadeLog) -> None:
    made.clean = True
    made.batch(1, 0).batch(problem=3).roll(entry(1, 0, 0))
    made.bases[1] = 5
    made.snapshots[7] = made.snapshots[2]
    assert made.findings() == [("WARNING", "PSM-19", file_name(7), None, 7)]


@pytest.mark.clause("PSM-20")
def test_no_snapshot_after_a_clean_stop_is_forgetting(made: MadeLog) -> None:
    made.batch(1, 0)
    assert made.findings() == []
    made.clean = True
    assert made.findings() == [("WARNING", "PSM-18", made.folder.name, None, 1)]
    made.data(2, 0)
    assert [f[0] for f in made.findings()] == ["ERROR"]  # its transaction is forgotten, and its records show
    made.more = {"log_start": 2}
    assert made.findings() == []
    made.more = {}
    assert made.close(entry(1, 0, 0), entry(2, 0, 1, transaction=1)).findings() == []


@pytest.mark.clause("PSM-2")
def test_many_producers_are_followed_in_bounded_room(made: MadeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST_PRODUCERS", 64)
    for n in range(1000):
        made.batch(n, 0)
    for n in range(1000):
        made.batch(n, 1)
    made.data(5000, 0)
    found, facts = made.check()
    assert found == []
    assert facts.open_transactions == 1


def test_an_index_of_another_version_is_left_to_its_own_check(made: MadeLog) -> None:
    made.data(1, 0).abort(1, 0)
    log = made.log()
    assert log.files.segments[0].transaction_index is not None
    path = log.files.segments[0].transaction_index.path
    path.write_bytes(struct.pack(">hqqqq", 7, 1, 2, 3, 4))
    check = audit.ProducerCheck(log)
    segment = log.files.segments[0]
    rows = np.array([tuple(r[c] for c in BATCH.names or ()) for r in made.segments[0]], BATCH)
    assert [*check.begin(segment), *check.chunk(segment, Chunk(rows)), *check.ended(segment, Ending(0, 0))] == []


def test_deleted_directories_are_not_judged(made: MadeLog) -> None:
    made.kind = Kind.DELETED
    assert not audit.ProducerCheck.applies(made.batch(1, 0).log())


@pytest.mark.clause("PSM-2")
def test_severities_say_what_a_reader_notices(made: MadeLog) -> None:
    made.batch(1, 0).batch(1, 0)
    (found, _) = made.check()
    assert [f.severity for f in found] == [Severity.ERROR]
    assert "stands twice" in found[0].message


@pytest.mark.parametrize("offset", [2**62 - 1, 2**62, 2**63 - 2, 2**63 - 1])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_damage_in_an_offset_ends_nothing(
    offset: int, place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A base offset is not covered by the CRC: one bit is enough for 2^62."""
    reached = 0
    reach = audit.ProducerCheck._reach

    def counted(self: audit.ProducerCheck, offset: int) -> Iterator[Finding]:
        nonlocal reached
        reached += 1
        assert reached < 100
        return reach(self, offset)

    monkeypatch.setattr(audit.ProducerCheck, "_reach", counted)
    for snapshots in ({}, {1: encode(())}, {2**62: encode(())}):
        made = MadeLog(tmp_path, snapshots=dict(snapshots))
        for n in range(3):
            made.batch(1, n, base_offset=offset if n == place else n)
        made.findings()
