"""Compaction's promises: spec against the audit over real bytes, rounds of cleaning, and many keys in little memory."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.audit.check import Log
from kafkaspec.audit.files import Kind, PartitionFiles, Segment
from kafkaspec.audit.finding import Severity
from kafkaspec.audits.common.findings import MOST_FINDINGS
from kafkaspec.audits.management import compaction as audit
from kafkaspec.audits.management import compaction_driver
from kafkaspec.audits.management.compaction import AUDIT, KEY, CompactionCheck, Keys
from kafkaspec.audits.management.compaction_driver import Driver, _folder, findings_in, found_in, laid_out
from kafkaspec.contract.codec import decode as from_json
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.lockstep.walk import walk
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.management import compaction as spec
from kafkaspec.spec.management import compaction_trial
from kafkaspec.spec.management.compaction import machine

# ---- the layers beside each other


def test_long_walks() -> None:
    for seed in range(3):
        walked = walk(machine, Driver(), seed, 80)
        assert walked.failure is None, str(walked.failure)


def test_little_room_makes_no_difference() -> None:
    few = type("Few", (Keys,), {"__init__": lambda self: Keys.__init__(self, 2)})
    small = type("Small", (CompactionCheck,), {"keys_class": few})
    with patch.object(audit, "CompactionCheck", small):
        for seed in range(2):
            walked = walk(machine, Driver(), seed, 50)
            assert walked.failure is None, str(walked.failure)


KINDS: list[spec.Kind] = ["data", "data", "txn", "commit", "abort"]


@st.composite
def logs(draw: st.DrawFn) -> tuple[spec.Log, int]:
    """A log that was never cleaned, and an offset below which every transaction is decided."""
    batches: list[spec.Batch] = []
    offset, decided = 0, 0
    open_: set[int] = set()
    for _ in range(draw(st.integers(0, 14))):
        kind: spec.Kind = draw(st.sampled_from(KINDS))
        producer = draw(st.sampled_from([7, 8])) if kind != "data" else -1
        if kind in ("commit", "abort"):
            batches.append(spec.Batch(offset, offset, kind, producer))
            open_.discard(producer)
            offset += 1
        else:
            count = draw(st.integers(1, 3))
            pairs = [
                draw(st.tuples(st.sampled_from(["a", "b", "c", "d", None]), st.none() | st.just("v")))
                for _ in range(count)
            ]
            records = tuple(spec.Record(offset + i, k, v) for i, (k, v) in enumerate(pairs))
            batches.append(spec.Batch(offset, offset + count - 1, kind, producer, records))
            open_ |= {producer} if kind == "txn" else set()
            offset += count
        if not open_:
            decided = offset
    return tuple(batches), decided


@pytest.mark.clause("CMP-1")
def test_offsets_stand_in_order_and_each_once() -> None:
    first = spec.Batch(0, 3, records=(spec.Record(1, "a", "v"), spec.Record(3, "b", "v")))
    second = spec.Batch(4, 5, records=(spec.Record(4, "a", "v"), spec.Record(5, "c", "v")))
    assert spec.in_order(())
    assert spec.in_order((first, second))
    assert spec.in_order((first, spec.Batch(4, 4), spec.Batch(9, 9, "commit", 7)))
    assert not spec.in_order((second, first))
    assert not spec.in_order((first, first))
    assert not spec.in_order((first, second._replace(base_offset=3)))
    assert not spec.in_order((first._replace(records=first.records[::-1]), second))
    assert not spec.in_order((first._replace(records=first.records[:1] * 2), second))
    assert not spec.in_order((first._replace(base_offset=2), second))
    assert not spec.in_order((first, second._replace(last_offset=4)))
    assert not spec.in_order((spec.Batch(4, 3),))
    assert not spec.in_order((spec.Batch(-1, 3),))
    assert spec.in_order((spec.Batch(1, INT_MAX + 1),))
    assert not spec.in_order((spec.Batch(0, INT_MAX + 1),))


@given(logs(), st.lists(st.tuples(st.integers(0, 40), st.integers(1, 4)), min_size=1, max_size=4))
@pytest.mark.clause("CMP-1")
@pytest.mark.clause("CMP-2")
@pytest.mark.clause("CMP-3")
@pytest.mark.clause("CMP-4")
@pytest.mark.clause("CMP-9")
def test_rounds_of_cleaning_keep_the_promise(given_log: tuple[spec.Log, int], rounds: list[tuple[int, int]]) -> None:
    """The contracts of `clean` are the claim. The audit finds nothing in what is left, which is some of the records
    that there were, in their order and as they were; and the last records are there."""
    before, decided = given_log
    log, point = before, 0
    for end, capacity in rounds:
        cleaned = spec.clean(log, point, max(point, min(end, decided)), capacity)
        log, point = cleaned.log, cleaned.point
    assert findings_in(log, 0, point) == []
    undone = spec._aborted_batches(before)
    last = {r.key: r for b in before if b.base_offset not in undone for r in b.records if r.key and r.offset < point}
    left = [r for b in log for r in b.records]
    assert set(last.values()) <= set(left)
    assert left == [r for b in before for r in b.records if r in left]


# ---- sound logs


@pytest.mark.clause("CMP-8")
def test_offsets_may_be_missing_and_an_empty_batch_stays_at_the_end_of_a_round() -> None:
    """A batch that lost all its records goes, unless it ends where the round does, or is a marker's."""
    a, b, c = (spec.Record(n, key, "v") for n, key in ((0, "a"), (7, "b"), (9, "a")))
    log = (spec.Batch(0, 3, records=(a,)), spec.Batch(5, 5, "commit", 7), spec.Batch(6, 7, records=(b,)))
    last = spec.Batch(9, 9, records=(c,))
    assert findings_in((*log, last), 0, 9) == []
    assert [(f.clause, f.offset) for f in findings_in((*log, last), 0, 10)] == [("CMP-2", 0)]
    assert spec.clean((*log, last), 0, 10, 9) == spec.Round((*log[1:], last), 10)
    ends = spec.Batch(9, 12, records=(c,))
    undone = spec.Batch(9, 12, "txn", 8, (c,)), spec.Batch(13, 13, "abort", 8)
    assert spec.clean((*log, ends), 0, 13, 9) == spec.Round((*log[1:], ends), 13)
    assert spec.clean((*log, *undone), 0, 13, 9).log == (*log, undone[0]._replace(records=()), undone[1])
    assert spec.clean((*log, *undone), 0, 14, 9).log == (*log, undone[1])


@pytest.mark.clause("CMP-6")
@pytest.mark.parametrize("values", [("1", None), (None, "1"), (None, None)])
def test_a_tombstone_is_its_keys_record_like_any_other(values: tuple[str | None, str | None]) -> None:
    """It takes the place of what stands before it, and what follows takes its place; alone it may stay."""
    log = (
        spec.Batch(0, 0, records=(spec.Record(0, "b", None),)),
        spec.Batch(1, 2, records=tuple(spec.Record(1 + i, "a", v) for i, v in enumerate(values))),
    )
    for start, point, found in ((0, 3, [1]), (0, 2, []), (1, 3, [1]), (2, 3, [])):
        assert spec.superseded(log, start, point) == [(offset, 2) for offset in found]
        assert [(f.clause, f.offset) for f in findings_in(log, start, point)] == [("CMP-2", o) for o in found]


@pytest.mark.clause("CMP-6")
@pytest.mark.clause("CMP-7")
@pytest.mark.clause("CMP-8")
def test_what_a_cleaned_log_may_hold() -> None:
    """Gaps, empty batches, markers without data, tombstones, a key below and above the point."""
    assert findings_in(compaction_trial._CLEAN, 0, 16) == []
    assert [f.offset for f in findings_in(compaction_trial._CLEAN, 0, 17)] == [12]
    assert [f.offset for f in findings_in(compaction_trial._CLEAN, 0, 18)] == [12, 16]


# ---- findings


@pytest.mark.clause("CMP-2")
def test_a_key_twice_is_found_at_both_places(tmp_path: Path) -> None:
    (f,) = findings_in(
        [[0, 0, "data", -1, [[0, "a", "1"]]], [5, 6, "data", -1, [[5, "b", None], [6, "a", None]]]], 0, 7
    )
    assert (f.severity, f.clause, f.position, f.offset) == (Severity.WARNING, "CMP-2", 0, 0)
    assert "key 'a' stands again at offset 6, byte 70 of 00000000000000000000.log" in f.message
    assert f.expected
    assert f.recovery


@pytest.mark.clause("CMP-2")
def test_many_findings_are_cut_short() -> None:
    rows = [[n, n, "data", -1, [[n, "abc"[n % 3], "v"]]] for n in range(100)]
    assert len(findings_in(rows, 0, 100)) == MOST_FINDINGS


@pytest.mark.clause("CMP-2")
def test_a_collision_of_hashes_is_no_finding() -> None:
    def one_hash(self: Keys, rows: Any) -> None:
        rows["high"] = rows["low"] = 1
        Keys.add(self, rows)

    colliding = type("Colliding", (Keys,), {"add": one_hash})
    check = type("Check", (CompactionCheck,), {"keys_class": colliding})
    with patch.object(audit, "CompactionCheck", check):
        assert findings_in([[n, n, "data", -1, [[n, k, "v"]]] for n, k in enumerate("abcd")], 0, 4) == []
        (f,) = findings_in([[n, n, "data", -1, [[n, k, "v"]]] for n, k in enumerate("abca")], 0, 4)
        assert f.offset == 0


@pytest.mark.clause("CMP-3")
@pytest.mark.clause("CMP-4")
def test_no_key_and_an_aborted_transaction() -> None:
    rows = [
        [0, 0, "data", -1, [[0, None, "x"]]],
        [1, 1, "txn", 7, [[1, "a", "1"]]],
        [2, 2, "txn", 8, [[2, "b", "1"]]],
        [3, 3, "abort", 7, []],
        [4, 4, "commit", 8, []],
        [5, 5, "txn", 7, [[5, "c", "1"]]],
        [6, 6, "commit", 7, []],
    ]
    assert [(f.clause, f.offset) for f in findings_in(rows, 0, 7)] == [("CMP-3", 0), ("CMP-4", 1)]
    assert findings_in(rows, 2, 7) == []
    assert findings_in(rows, 0, 0) == []


@pytest.mark.clause("CMP-4", "CMP-5", "CMP-10")
@pytest.mark.parametrize(("end", "clause"), [("abort", "CMP-4"), ("data", "CMP-10")])
def test_a_batch_around_what_is_promised_counts_by_its_records(end: str, clause: str) -> None:
    """It begins before the log start and ends behind the cleaner point."""
    around = [0, 9, "txn", 7, [[0, "a", "1"], [9, "b", "1"]]]
    with_one = [0, 9, "txn", 7, [[0, "a", "1"], [5, "c", "1"], [9, "b", "1"]]]
    behind = [10, 10, end, 7, []]
    assert findings_in([around, behind], 3, 8) == []
    assert [(f.clause, f.offset) for f in findings_in([with_one, behind], 3, 8)] == [(clause, 0)]


@pytest.mark.clause("CMP-10")
def test_a_transaction_without_a_marker() -> None:
    rows = [
        [0, 1, "txn", 7, [[0, "a", "1"], [1, "b", "1"]]],
        [2, 2, "txn", 8, [[2, "c", "1"]]],
        [3, 3, "data", 9, [[3, "d", "1"]]],
        [4, 4, "commit", 8, []],
        [5, 5, "txn", 8, [[5, "e", "1"]]],
    ]

    def found(batches: list[Any], start: int, point: int) -> list[tuple[str, int | None]]:
        return [(f.clause, f.offset) for f in findings_in(batches, start, point)]

    assert found(rows, 0, 1) == found(rows, 0, 5) == [("CMP-10", 0)]
    assert found(rows, 0, 6) == [("CMP-10", 0), ("CMP-10", 5)]
    assert found(rows, 2, 5) == []
    assert found(rows, 1, 1) == []
    assert found([*rows, [9, 9, "commit", 7, []]], 0, 5) == []
    assert found([*rows, [9, 9, "commit", 9, []]], 0, 5) == [("CMP-10", 0)]


@pytest.mark.clause("CMP-10")
@pytest.mark.parametrize("damage", ["problem", "magic", "ending"])
def test_what_cannot_be_read_may_have_held_the_marker(damage: str) -> None:
    log = from_json(spec.Log, [[0, 0, "txn", 7, [[0, "a", "1"]]], [1, 1, "data", -1, [[1, "b", "1"]]]])
    for altered in (False, True):
        (listed,) = laid_out(log, 1, Path(_folder().name))
        chunk, ending = listed.read
        assert isinstance(chunk, Chunk)
        assert isinstance(ending, Ending)
        if altered and damage == "ending":
            ending = replace(ending, reason="torn")
        elif altered:
            chunk.batches[damage][1] = 1
        found = found_in([listed._replace(read=(chunk, ending))], log, 0, 1)
        assert [f.clause for f in found] == ([] if altered else ["CMP-10"])


@pytest.mark.clause("CMP-11")
def test_two_batches_without_records() -> None:
    rows = [[0, 1, "data", 7, []], [2, 2, "txn", 8, []], [3, 3, "commit", 8, []], [4, 5, "data", 7, []]]
    assert findings_in(rows, 0, 6) == []
    (f,) = findings_in([*rows, [6, 6, "data", -1, []]], 0, 7)
    assert (f.clause, f.position, f.offset, f.severity) == ("CMP-11", 0, 0, Severity.WARNING)
    assert "another one at offset 4" in f.message
    assert findings_in([*rows, [6, 6, "data", -1, []]], 2, 7) == []


@pytest.mark.clause("CMP-11")
@pytest.mark.parametrize(("topic_id", "expected"), [(None, 0), ("x", 1)])
def test_a_last_sequence_of_an_earlier_epoch(topic_id: str | None, expected: int) -> None:
    """Kafka before 2.3 compared sequences alone."""
    log = from_json(spec.Log, [[0, 1, "data", 7, []], [2, 3, "data", 7, []], [4, 4, "data", -1, [[4, "a", "1"]]]])
    (listed,) = laid_out(log, 1, Path(_folder().name))
    chunk = listed.read[0]
    assert isinstance(chunk, Chunk)
    chunk.batches["base_sequence"][:2] = 0
    with patch.object(compaction_driver, "Log", partial(Log, topic_id=topic_id)):
        assert len(found_in([listed], log, 0, 5)) == expected


def test_where_the_check_applies() -> None:
    segments = (Segment(5, File(Path("5.log"), 0)), Segment(9, File(Path("9.log"), 0)))
    files = PartitionFiles(Path("t-0"), "t", 0, segments=segments)
    assert CompactionCheck.applies(Log(files, cleaner_point=6))
    assert CompactionCheck.applies(Log(files, cleaner_point=9))
    assert not CompactionCheck.applies(Log(files, cleaner_point=10))
    assert not CompactionCheck.applies(Log(files, cleaner_point=6, start_known=False))
    assert not CompactionCheck.applies(Log(files, cleaner_point=5))
    assert not CompactionCheck.applies(Log(files))
    future = PartitionFiles(Path("t-0"), "t", 0, Kind.FUTURE, segments)
    assert not CompactionCheck.applies(Log(future, cleaner_point=6))
    assert (CompactionCheck,) == AUDIT


# ---- many keys


@pytest.mark.clause("CMP-2")
@pytest.mark.parametrize(
    ("many", "capacity"),
    [(4_000, 50), (20_000, 1000), (20_000, 1 << 20), pytest.param(20_000, 50, marks=pytest.mark.deep)],
)
def test_equal_keys_among_many(many: int, capacity: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rng = np.random.default_rng(1)
    rows = np.zeros(many, KEY)
    rows["high"] = rng.integers(0, 1 << 64, len(rows), np.uint64)
    rows["low"] = rng.integers(0, 1 << 64, len(rows), np.uint64)
    rows["offset"] = np.arange(len(rows))
    last, later = many - 1_000, many - 700
    for a, b in ((3, last), (4, 5), (900, many - 1), (last, later)):
        rows[["high", "low"]][b] = rows[["high", "low"]][a]
        rows["high"][b], rows["low"][b] = rows["high"][a], rows["low"][a]
    rows["high"][77] = rows["high"][78]  # half a hash
    keys = Keys(capacity)
    for i in range(0, len(rows), 37):
        keys.add(rows[i : i + 37].copy())
        assert keys.count <= capacity + 37
    assert sorted(g["offset"].tolist() for g in keys.equal()) == [[3, last, later], [4, 5], [900, many - 1]]
    keys.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.clause("CMP-2")
def test_one_key_all_over_fits_into_little_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    keys = Keys(100)
    for n in range(100):
        rows = np.zeros(10, KEY)
        rows["offset"] = np.arange(10 * n, 10 * n + 10)
        keys.add(rows)
        assert keys.count < 100
    (group,) = keys.equal()
    assert group["offset"].tolist()[-1] == 999
    assert MOST_FINDINGS < len(group) <= 1000
    keys.close()
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_changes_what_was_read_is_noticed() -> None:
    class Forgets(CompactionCheck):
        def chunk(self, segment: Segment, chunk: Any) -> Any:
            chunk.batches["problem"] = 1
            return super().chunk(segment, chunk)

    with patch.object(audit, "CompactionCheck", Forgets):
        failure = walk(machine, Driver(), 0, 100).failure
    assert failure is not None
    assert "read-only" in failure.why
