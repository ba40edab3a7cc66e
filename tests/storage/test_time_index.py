"""The time index: impl against spec and the released class, and the audit of time index files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.audit.files import Kind
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.storage.time_index import TimeIndexCheck
from kafkaspec.contract.deviation import shown
from kafkaspec.impl.common.mapped_index import MemoryFile, Refusal
from kafkaspec.impl.storage import time_index_driver
from kafkaspec.impl.storage.time_index import TimeIndex, TimestampOffset, decode
from kafkaspec.judge.campaign import replay
from kafkaspec.judge.result import Job
from kafkaspec.spec.storage.time_index import machine
from tests.kafka import command
from tests.layers import abstracts, both_show, walked
from tests.storage.index_calls import histories
from tests.storage.index_logs import TIMES, B, Part, audited, packed

# ---- the layers beside each other


def test_long_walks_cover_every_operation() -> None:
    covered = walked(machine, time_index_driver.Driver, seeds=16, steps=150)
    assert {"maybeAppend TIX-2", "maybeAppend TIX-4", "maybeAppend TIX-5"} <= covered.refusals.keys()


@given(st.data())
def test_abstraction_is_the_whole_state(data: st.DataObject) -> None:
    abstracts(data, machine, time_index_driver.Driver(), time_index_driver.Driver.state)


@pytest.mark.parametrize("deviation", machine.deviations, ids=lambda d: d.id)
def test_deviations_show_at_the_last_call_of_their_history(deviation: Any) -> None:
    right, wrong = shown(machine, deviation)
    assert right != wrong


@pytest.mark.deep
def test_the_released_class_answers_so() -> None:
    judged = replay(Job("time_index", command()), list(histories(machine, 5, 2000)), "drawn")
    assert judged.verdict == "accepted", judged.why


# ---- one rule after the other


def index(*entries: tuple[int, int], base: int = 100, size: int = 65) -> TimeIndex:
    made = TimeIndex(MemoryFile(), base, size)
    for timestamp, offset in entries:
        made.maybe_append(timestamp, offset)
    return made


def shows(*calls: tuple[str, dict[str, Any]]) -> Iterator[Any]:
    """What the spec and the implementation show after each call."""
    return both_show(machine, time_index_driver.Driver(), {"base_offset": 100, "max_index_size": 65}, *calls)


@pytest.mark.clause("TIX-1")
def test_an_entry_is_twelve_bytes() -> None:
    made = index((7, 105), (9, 109))
    made.close()
    data = made.file.get(0, 99)
    assert data.hex() == "000000000000000700000005000000000000000900000009"
    assert decode(data, 100) == [TimestampOffset(7, 105), TimestampOffset(9, 109)]
    given = {"file": data.hex(), "max_index_size": 65, "writable": True}
    shown = list(shows(("openFile", given), ("close", {})))
    assert [x["file"] for x in shown] == [data.hex()] * 2
    assert shown[0]["entries"] == [[7, 105], [9, 109]]


def test_entries_that_changed_in_the_file_are_seen() -> None:
    driver = time_index_driver.Driver()
    driver.reset({})
    driver.apply("maybeAppend", {"timestamp": 7, "offset": 105, "skip_full_check": False})
    assert driver.observe()["entries"] == [[7, 105]]
    driver.subject.file.put(8, (6).to_bytes(4, "big"))
    assert driver.observe()["entries"] == [[7, 106]]
    assert driver.subject.all() == [(7, 106)]


@pytest.mark.clause("TIX-2")
@pytest.mark.clause("TIX-3")
def test_entries_rise_and_what_is_not_later_is_passed_over() -> None:
    made = index((7, 105))
    made.maybe_append(7, 105)
    made.maybe_append(7, 120)
    assert made.all() == [(7, 105)]
    for timestamp, offset in ((8, 104), (6, 106)):
        with pytest.raises(Refusal):
            made.maybe_append(timestamp, offset)
    empty = index()
    empty.maybe_append(-1, 105)
    assert empty.last_entry == (-1, 100)


@pytest.mark.clause("TIX-4")
def test_the_last_slot_is_for_the_entry_of_a_closed_segment() -> None:
    made = index((1, 101), (2, 102), (3, 103), (4, 104))
    assert made.is_full
    with pytest.raises(Refusal):
        made.maybe_append(4, 104)
    made.maybe_append(9, 109, last=True)
    assert made.entries == made.max_entries == 5
    with pytest.raises(Refusal):
        made.maybe_append(10, 110, last=True)


@pytest.mark.clause("TIX-5")
def test_an_offset_that_does_not_fit_is_refused_and_leaves_nothing() -> None:
    made = index()
    with pytest.raises(Refusal):
        made.maybe_append(7, 99)
    assert made.file.get(0, 12) == bytes(12)


@pytest.mark.clause("TIX-6")
def test_a_lookup_finds_the_greatest_lower_bound_or_no_time() -> None:
    made = index((7, 105), (9, 109))
    assert made.lookup(6) == (-1, 100)
    assert made.lookup(7) == made.lookup(8) == (7, 105)
    assert made.lookup(10**15) == (9, 109)


@pytest.mark.clause("TIX-8")
def test_truncating_keeps_what_is_below_though_offsets_may_be_equal() -> None:
    made = index((1, 101), (2, 105), (3, 105), (4, 109))
    made.truncate_to(105)
    assert made.all() == [(1, 101)]
    made.truncate()
    assert made.last_entry == (-1, 100)


@pytest.mark.clause("TIX-9")
def test_the_file_is_made_resized_trimmed_and_opened_as_the_offset_index_is() -> None:
    made = index((1, 101), (2, 105))
    assert (made.length, made.max_entries) == (60, 5)
    with pytest.raises(Refusal):
        made.resize(23)
    made.close_handler()
    again = TimeIndex(made.file, 100, 65)
    assert (again.entries, again.last_entry) == (5, (0, 100))
    again.reset()
    assert (again.entries, again.length) == (0, 60)
    again.close()
    assert again.file.size() == 0


@pytest.mark.clause("TIX-9")
def test_a_file_is_of_whole_slots_of_twelve_bytes() -> None:
    """Entries in use, slots, the file's bytes and the last entry, after each call."""

    def entry(n: int) -> tuple[str, dict[str, Any]]:
        return "maybeAppend", {"timestamp": n, "offset": 100 + n, "skip_full_check": False}

    def told(x: Any) -> tuple[Any, ...]:
        return tuple(x.get(name) for name in ("open", "fileLength", "maxEntries", "lastEntry"))

    steps: list[tuple[tuple[str, dict[str, Any]], tuple[Any, ...]]] = [
        (entry(1), (True, 60, 5, [1, 101])),
        (entry(2), (True, 60, 5, [2, 102])),
        (("resize", {"new_size": 47}), (True, 36, 3, [2, 102])),
        (("resize", {"new_size": 23}), (True, 36, 3, [2, 102])),
        (("resize", {"new_size": 72}), (True, 72, 6, [2, 102])),
        (("trimToValidSize", {}), (True, 24, 2, [2, 102])),
        (("reset", {}), (True, 60, 5, [-1, 100])),
        (entry(3), (True, 60, 5, [3, 103])),
        (("closeHandler", {}), (False, 60, None, None)),
        (("trimToValidSize", {}), (False, 60, None, None)),
        (("open", {"max_index_size": 65, "writable": False}), (True, 60, 5, [0, 100])),
        (("resize", {"new_size": 61}), (True, 60, 5, [0, 100])),
        (("openNew", {"max_index_size": 12}), (True, 12, 1, [-1, 100])),
        (("close", {}), (False, 0, None, None)),
        (("close", {}), (False, 0, None, None)),
        (("openNew", {"max_index_size": 11}), (False, 0, None, None)),
    ]
    for (call, expected), seen in zip(steps, shows(*(call for call, _ in steps)), strict=True):
        assert told(seen) == expected, call[0]


@pytest.mark.clause("TIX-10")
@pytest.mark.clause("TIX-11")
def test_what_is_asked_of_an_index_beside_lookups() -> None:
    zeros_after = packed(TIMES, 100, [(7, 105)], 2)
    for data in (zeros_after, bytes(13), packed(TIMES, 100, [(7, 99)])):
        with pytest.raises(Refusal):
            TimeIndex(MemoryFile(data), 100, 65).sanity_check()
    made = index((7, 105))
    made.sanity_check()
    assert made.entry(0) == (7, 105)
    with pytest.raises(Refusal):
        made.entry(1)


# ---- the audit

LOG = [B(100, 104, 50), B(105, 109, 70), B(110, 112, 60), B(113, 120, 70), B(125, 130, 90)]
RIGHT = [(50, 104), (70, 109), (90, 130)]


def judged(
    tmp_path: Path, entries: list[tuple[int, int]], slots: int = 0, log: Any = LOG, **more: Any
) -> list[Finding]:
    data = packed(TIMES, 100, entries, slots)
    return audited(tmp_path, TimeIndexCheck, Part(log, b"", data, more.pop("reason", "")), **{"clean": True, **more})


def named(found: list[Finding]) -> list[tuple[str, str, int | None]]:
    return [(f.clause, f.severity.name, f.position) for f in found]


@pytest.mark.parametrize("chunk", [1, 2, 5])
@pytest.mark.clause("TIX-13")
def test_true_entries_give_no_finding(tmp_path: Path, chunk: int) -> None:
    for entries in (RIGHT, [(90, 130)], [(50, 100), (70, 107), (90, 125)], [(70, 115), (90, 130)]):
        assert judged(tmp_path, entries, chunk=chunk) == []
    assert judged(tmp_path, [], log=[B(100, 104, -1)]) == []
    assert judged(tmp_path, [], slots=1, log=[B(100, 100, 0)]) == []


@pytest.mark.clause("TIX-12")
def test_falling_entries(tmp_path: Path) -> None:
    assert named(judged(tmp_path, [(70, 109), (70, 115), (90, 130)])) == [("TIX-12", "ERROR", 12)]
    assert named(judged(tmp_path, [(70, 109), (50, 104), (90, 130)])) == [("TIX-12", "ERROR", 12)]
    data = packed(TIMES, 100, RIGHT) + b"\1"
    found = audited(tmp_path, TimeIndexCheck, Part(LOG, b"", data), clean=True)
    assert named(found) == [("TIX-12", "WARNING", 36)]


@pytest.mark.clause("TIX-13")
def test_false_entries_are_found_with_what_would_be_true(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, [(50, 104), (60, 112), (90, 130)])
    assert (found.clause, found.severity, found.position, found.offset) == ("TIX-13", Severity.ERROR, 12, 112)
    assert found.message == "the largest timestamp up to offset 112 is said to be 60, it is 70"
    assert found.expected == "timestamp 70"
    (found,) = judged(tmp_path, [(70, 112), (90, 130)])
    assert found.message.endswith("said to be 70, but the batch there has 60")
    (found,) = judged(tmp_path, [(51, 104), (90, 130)])
    assert found.expected == "timestamp 50"
    assert named(judged(tmp_path, [(70, 122), (90, 130)])) == [("TIX-13", "ERROR", 0)], "no batch has that offset"
    assert named(judged(tmp_path, [(50, 90), (90, 130)])) == [("TIX-13", "ERROR", 0)], "below the base offset"


@pytest.mark.clause("TIX-14")
def test_a_closed_segment_says_its_largest_timestamp(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, RIGHT[:2])
    assert (found.clause, found.severity, found.position) == ("TIX-14", Severity.ERROR, 12)
    assert found.expected == "timestamp 90 at offset 130"
    assert named(judged(tmp_path, [])) == [("TIX-14", "ERROR", 0)]
    assert judged(tmp_path, RIGHT[:2], clean=False) == [], "the last segment of a killed broker"
    first, second = Part(LOG, b"", packed(TIMES, 100, RIGHT[:2])), Part([B(131, 131, 9)], b"", b"")
    assert named(audited(tmp_path, TimeIndexCheck, first, second, clean=False, recovery_point=131)) == [
        ("TIX-14", "ERROR", 12)
    ]
    assert named(audited(tmp_path, TimeIndexCheck, first, second, clean=False, recovery_point=105)) == [
        ("TIX-14", "WARNING", 12)
    ]


@pytest.mark.clause("TIX-15")
def test_unwritten_slots_make_a_segment_the_oldest_of_all(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, RIGHT, 9)
    assert (found.clause, found.severity, found.position) == ("TIX-15", Severity.ERROR, 36)
    assert "retention by time deletes it" in found.recovery
    assert named(judged(tmp_path, RIGHT, 9, clean=False)) == [("TIX-15", "LEFTOVER", 36)]
    assert named(judged(tmp_path, RIGHT, 9, kind=Kind.DELETED)) == [("TIX-15", "LEFTOVER", 36)]


@pytest.mark.clause("TIX-15")
def test_entries_beyond_the_segment_are_left_over_where_a_kill_may_have_left_them(tmp_path: Path) -> None:
    stale = [*RIGHT, (95, 140), (99, 150)]
    assert named(judged(tmp_path, stale, clean=False)) == [("TIX-15", "LEFTOVER", 36)]
    assert named(judged(tmp_path, stale)) == [("TIX-15", "ERROR", 36), ("TIX-15", "ERROR", 48)]
    again = [(50, 104), (90, 130), (70, 109)]
    assert named(judged(tmp_path, again, clean=False)) == [("TIX-15", "LEFTOVER", 24)]


@pytest.mark.clause("TIX-13")
def test_damage_in_the_last_segment_of_a_killed_broker_is_not_taken_for_left_over(tmp_path: Path) -> None:
    log = [B(n, n, n) for n in range(100, 140)]
    wrong = [(103, 103), (108, 107), (111, 111), (115, 115), (119, 119)]
    assert named(judged(tmp_path, wrong, log=log, clean=False)) == [("TIX-13", "ERROR", 12)]
    assert named(judged(tmp_path, wrong[:4], log=log, clean=False)) == [("TIX-15", "LEFTOVER", 12)]


@pytest.mark.clause("TIX-16")
def test_a_missing_index_is_named_with_what_a_restart_does(tmp_path: Path) -> None:
    (found,) = audited(tmp_path, TimeIndexCheck, Part(LOG, b"", None), clean=True)
    assert (found.clause, found.severity) == ("TIX-16", Severity.WARNING)
    assert found.recovery.startswith("loading the log makes an empty one")
    (found,) = audited(tmp_path, TimeIndexCheck, Part(LOG, b"", None), clean=False)
    assert found.recovery.startswith("the segment is recovered")
    without_times = [B(100, 104, -1)]
    assert audited(tmp_path, TimeIndexCheck, Part(without_times, b"", None), clean=True) == []


@pytest.mark.clause("TIX-13")
def test_one_damage_in_the_log_is_no_damage_of_the_index(tmp_path: Path) -> None:
    torn = [b._replace(problem=3) if b.base == 105 else b for b in LOG]
    for chunk in (1, 5):
        assert judged(tmp_path, RIGHT, log=torn, chunk=chunk) == []
    last = [b._replace(problem=3) if b.base == 125 else b for b in LOG]
    assert judged(tmp_path, RIGHT, log=last) == []
    old = [b._replace(magic=1) for b in LOG]
    assert judged(tmp_path, [(1, 101)], log=old) == []


@pytest.mark.clause("TIX-13")
@given(data=st.data())
def test_every_entry_that_would_lead_a_reader_astray_is_found(data: st.DataObject, tmp_path_factory: Any) -> None:
    """Beside what reading from the entry's offset on gives, for every time that is looked up by it."""
    times = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    log = [B(100 + 2 * n, 101 + 2 * n, t) for n, t in enumerate(times)]
    entry = (data.draw(st.integers(1, 7)), data.draw(st.integers(100, log[-1].last)))
    astray = any(
        next((b for b in log if b.time >= t), None)
        != next((b for b in log if b.time >= t and b.last >= entry[1]), None)
        for t in range(entry[0] + 1, 8)
    )
    found = judged(tmp_path_factory.mktemp("log"), [entry], log=log)
    if astray:
        assert any(f.clause == "TIX-13" for f in found), (log, entry)
    batch = next(b for b in log if b.last >= entry[1])
    upto = max(b.time for b in log if b.base <= batch.base)
    assert any(f.clause == "TIX-13" for f in found) == (not batch.time == entry[0] == upto)
