"""The offset index: impl against spec, model and the released class; its search on pages; the audit of index files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.audit.files import Kind
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audit.recorded import unpack
from kafkaspec.audits.storage.offset_index import OffsetIndexCheck
from kafkaspec.contract import subsystem
from kafkaspec.contract.deviation import shown
from kafkaspec.contract.history import outcome
from kafkaspec.contract.machine import Outside, Refused, Step
from kafkaspec.impl.common.mapped_index import MemoryFile, RealFile, Refusal
from kafkaspec.impl.storage import offset_index_driver
from kafkaspec.impl.storage.offset_index import OffsetIndex, OffsetPosition, decode
from kafkaspec.impl.storage.time_index import TimeIndex
from kafkaspec.judge.campaign import replay
from kafkaspec.judge.check import check
from kafkaspec.judge.result import Job
from kafkaspec.lockstep.exhaustive import check_refinement
from kafkaspec.models.storage.offset_index import MODELS
from kafkaspec.proofs.storage.offset_index import PROOFS
from kafkaspec.prove.proof import Proof
from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.common.mapped_index import PAGE
from kafkaspec.spec.storage import offset_index as spec
from kafkaspec.spec.storage.offset_index import machine
from tests.kafka import command
from tests.layers import a_row_of_verify, abstracts, both_show, walked
from tests.storage.index_calls import histories
from tests.storage.index_logs import OFFSETS, B, Part, audited, packed

# ---- the layers beside each other


def test_long_walks_cover_every_operation() -> None:
    covered = walked(machine, offset_index_driver.Driver, seeds=8, steps=150)
    assert {"append OIX-2", "append OIX-3", "append OIX-4", "resize OIX-15"} <= covered.refusals.keys()


@given(st.data())
def test_abstraction_is_the_whole_state(data: st.DataObject) -> None:
    abstracts(data, machine, offset_index_driver.Driver(), offset_index_driver.Driver.state)


@a_row_of_verify
def test_spec_and_model_agree_between_lookups() -> None:
    for how in subsystem.find("offset_index").refinements:
        compared = check_refinement(machine, how)
        assert compared.problem is None, str(compared.problem)
        assert (compared.states, compared.steps) == (102, 640)


@a_row_of_verify
@pytest.mark.parametrize("checked", MODELS, ids=lambda c: f"{c.model.__name__}-{c.distinct}")
@pytest.mark.clause("OIX-22")
def test_models_are_explored_as_pinned(checked: Any) -> None:
    assert checked.run().why == ""


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
@pytest.mark.clause("OIX-22")
def test_proofs_hold_for_every_size(proof: Proof) -> None:
    proved = proof.run()
    assert proved.complete, proved.summary()


@pytest.mark.parametrize("deviation", machine.deviations, ids=lambda d: d.id)
def test_deviations_show_at_the_last_call_of_their_history(deviation: Any) -> None:
    right, wrong = shown(machine, deviation)
    assert right != wrong


@pytest.mark.deep
def test_the_released_class_answers_so() -> None:
    judged = replay(Job("offset_index", command()), list(histories(machine, 5, 2000)), "drawn")
    assert judged.verdict == "accepted", judged.why


# ---- one rule after the other


def run(*made: tuple[str, dict[str, Any]], **start: Any) -> tuple[mapped.Index, list[Any]]:
    """The state after some calls, and their answers: the spec's, and the impl's."""
    state, answers, driver = machine.initial(**start), [], offset_index_driver.Driver()
    driver.reset(start)
    for name, arguments in made:
        op = machine.find(name)
        given = {op.parameters[k]: v for k, v in arguments.items()}
        step = machine.apply(state, name, given)
        assert not isinstance(step, Outside), step
        assert outcome(driver.apply(name, given)) == outcome(step.result)
        state = step.state
        answers.append(step.result)
    return state, answers


def index(*entries: tuple[int, int], base: int = 100, size: int = 43) -> OffsetIndex:
    made = OffsetIndex(MemoryFile(), base, size)
    for offset, position in entries:
        made.append(offset, position)
    return made


def append(offset: int, position: int) -> tuple[str, dict[str, Any]]:
    return "append", {"offset": offset, "position": position}


@pytest.mark.clause("OIX-3")
@pytest.mark.parametrize("offset", [104, 105])
def test_an_offset_that_is_not_above_the_last_is_refused(offset: int) -> None:
    before, _ = run(append(105, 10))
    assert run(append(105, 10), append(offset, 20)) == (before, [None, spec.NOT_ABOVE])
    made = index((105, 10))
    with pytest.raises(Refusal):
        made.append(offset, 20)
    assert made.all() == [(105, 10)]


@pytest.mark.clause("OIX-4")
def test_a_full_index_takes_no_more() -> None:
    five = [append(100 + n, 10 * n) for n in range(1, 6)]
    full, _ = run(*five)
    assert spec.is_full(full)
    assert run(*five, append(200, 99))[1][-1] == spec.FULL
    made = index(*((100 + n, 10 * n) for n in range(1, 6)))
    assert made.is_full
    with pytest.raises(Refusal):
        made.append(200, 99)


@pytest.mark.clause("OIX-5")
def test_an_append_puts_one_entry_behind_the_others() -> None:
    three = [(101, 10), (105, 20), (109, 30)]
    for n in range(1, 4):
        state, _ = run(*(append(*e) for e in three[:n]))
        assert spec.entries(state) == three[:n]
        assert index(*three[:n]).all() == three[:n]


@pytest.mark.clause("OIX-12")
def test_a_truncated_index_has_no_entry() -> None:
    state, _ = run(append(101, 10), append(105, 20), ("truncate", {}))
    made = index((101, 10), (105, 20))
    made.truncate()
    assert spec.entries(state) == []
    assert made.all() == []
    assert run(append(105, 20), ("truncate", {}), append(101, 10))[1] == [None, None, None]


@pytest.mark.clause("OIX-19")
def test_an_index_opened_to_be_read_takes_entries_after_a_resize() -> None:
    empty = [append(101, 10), ("open", {"maxIndexSize": 43, "writable": False}), ("truncate", {})]
    assert run(*empty, append(105, 20))[1][-1] == spec.NOT_WRITABLE
    state, answers = run(*empty, ("resize", {"newSize": 32}), append(105, 20))
    assert answers[-1] is None
    assert spec.entries(state) == [(105, 20)]


@pytest.mark.clause("OIX-1")
def test_an_entry_is_eight_bytes() -> None:
    made = index((105, 4200), (109, 8400))
    made.close()
    assert made.file.get(0, 99).hex() == "000000050000106800000009000020d0"
    assert decode(made.file.get(0, 99), 100) == [OffsetPosition(105, 4200), OffsetPosition(109, 8400)]
    given = {"file": made.file.get(0, 99).hex(), "max_index_size": 43, "writable": True}
    driver, init = offset_index_driver.Driver(), {"base_offset": 100, "max_index_size": 43}
    shown = list(both_show(machine, driver, init, ("openFile", given), ("close", {})))
    assert [x["file"] for x in shown] == [given["file"]] * 2
    assert shown[0]["entries"] == [[105, 4200], [109, 8400]]


@pytest.mark.clause("OIX-2")
def test_offsets_are_relative_and_fit_into_four_bytes() -> None:
    made = index(base=2**40)
    assert made.can_append(2**40 + 2**31 - 1)
    assert not made.can_append(2**40 + 2**31)
    assert not made.can_append(2**40 - 1)
    with pytest.raises(Refusal, match="1099511627775"):
        made.relative_offset(2**40 - 1)


@pytest.mark.clause("OIX-6")
def test_a_lookup_finds_the_greatest_lower_bound_or_the_first_byte() -> None:
    made = index((105, 4200), (109, 8400))
    assert made.lookup(104) == (100, 0)
    assert made.lookup(105) == made.lookup(108) == (105, 4200)
    assert made.lookup(10**12) == (109, 8400)
    assert index().lookup(100) == (100, 0)


@pytest.mark.clause("OIX-10")
def test_the_upper_bound_of_a_fetch_lies_outside_it() -> None:
    made = index((105, 4200), (109, 8400))
    assert made.fetch_upper_bound_offset(0, 4200) == (105, 4200)
    assert made.fetch_upper_bound_offset(4200, 1) == (109, 8400)
    assert made.fetch_upper_bound_offset(4200, 2**31 - 1) is None


@pytest.mark.clause("OIX-11")
def test_what_a_truncation_leaves_in_the_file_comes_back_after_a_kill() -> None:
    state, answers = run(
        ("append", {"offset": 105, "position": 4200}),
        ("append", {"offset": 109, "position": 8400}),
        ("truncateTo", {"offset": 109}),
        ("lookup", {"offset": 200}),
        ("open", {"maxIndexSize": 43, "writable": True}),
    )
    assert answers[3] == [105, 4200]
    assert [e.offset for e in spec.entries(state)] == [105, 109, 100, 100, 100]


@pytest.mark.clause("OIX-13")
@pytest.mark.clause("OIX-14")
@pytest.mark.clause("OIX-16")
@pytest.mark.clause("OIX-17")
def test_the_file_is_as_long_as_it_may_get_and_trimmed_when_closed() -> None:
    made = index((105, 4200))
    assert (made.length, made.max_entries) == (40, 5)
    assert made.resize(100)
    assert not made.resize(103)
    assert made.length == 96
    made.reset()
    assert (made.entries, made.length) == (0, 40)
    made.append(106, 1)
    made.close()
    made.close()
    assert made.file.size() == 8
    with pytest.raises(Refusal):
        OffsetIndex(MemoryFile(), 100, 7)


@pytest.mark.clause("OIX-15")
def test_an_index_is_not_cut_below_its_entries() -> None:
    made = index((105, 4200), (109, 8400))
    with pytest.raises(Refusal):
        made.resize(15)
    assert made.length == 40
    assert made.lookup(109) == (109, 8400)


@pytest.mark.clause("OIX-18")
def test_an_index_that_was_not_trimmed_is_full() -> None:
    made = index((105, 4200))
    made.close_handler()
    again = OffsetIndex(made.file, 100, 43)
    assert again.is_full
    assert again.last_offset == 100


@pytest.mark.clause("OIX-20")
@pytest.mark.clause("OIX-21")
def test_what_is_asked_of_an_index_beside_lookups() -> None:
    with pytest.raises(Refusal):
        OffsetIndex(MemoryFile(bytes(9)), 100, 43).sanity_check()
    with pytest.raises(Refusal):
        OffsetIndex(MemoryFile(b"\xff" * 8), 100, 43).sanity_check()
    made = index((105, 4200))
    made.sanity_check()
    assert made.entry(0) == (105, 4200)
    with pytest.raises(Refusal):
        made.entry(1)


def test_a_real_file_is_mapped_as_one_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000100.index"
    made = OffsetIndex(RealFile(path), 100, 4096 * 3 + 5)
    for n in range(1, 1300):
        made.append(100 + n, 10 * n)
    assert path.stat().st_size == 4096 * 3
    assert made.lookup(1100) == (1100, 10_000)
    made.truncate_to(1000)
    made.close()
    assert path.stat().st_size == 899 * 8
    again = OffsetIndex(RealFile(path), 100, 100, writable=False)
    assert again.entries == 899
    with pytest.raises(Refusal):
        again.append(9999, 1)
    again.resize(0 if again.entries == 0 else 8000)
    again.close()
    empty = OffsetIndex(RealFile(tmp_path / "x.index"), 0, 8)
    empty.close()
    assert (tmp_path / "x.index").stat().st_size == 0
    assert OffsetIndex(RealFile(tmp_path / "x.index"), 0, 8).lookup(5) == (0, 0)


# ---- the search, for every size by its alignments


def touched(made: Any, entries: int, target: int) -> tuple[list[int], list[int]]:
    """The slots that a lookup of the n-th key reads in an index of so many entries, whose n-th key is 2n + 1; and the
    pages on which they lie."""
    made.entries = entries

    def key(n: int) -> int:
        made.touched.append(n)
        return 2 * n + 1

    slot = made.greatest_lower_bound(target, key)
    assert slot == min((target - 1) // 2, entries - 1) if entries else slot == -1
    read = list(made.touched)
    if slot >= 0:
        made.touched.append(slot)
    return read, made.pages_touched()


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
@pytest.mark.clause("OIX-7")
@pytest.mark.clause("OIX-8")
@pytest.mark.clause("OIX-9")
@pytest.mark.clause("TIX-7")
def test_a_warm_lookup_touches_three_pages_at_most_and_at_the_end_all_that_are_warm(kind: Any) -> None:
    """Where a warm section lies on its pages repeats with the least common multiple of a page and an entry; from there
    on, and below one warm section, every number of entries is tried at the ends of the section, and between."""
    made = kind(MemoryFile(), 0, 12)
    size = made.size
    warm = 8192 // size
    period = PAGE * size // __import__("math").gcd(PAGE, size) // size
    for entries in [*range(1, warm + 2, 7), *range(warm + 1, warm + 2 + period)]:
        first = max(0, entries - 1 - warm)
        inside = {
            first * size // PAGE,
            *(range(first * size // PAGE, (entries * size - 1) // PAGE + 1)),
        }
        assert len(inside) <= 3
        for target in (
            2 * first + 2,
            2 * first + 3,
            first + entries,
            2 * entries - 2,
            2 * entries - 1,
            2 * entries + 5,
        ):
            read, pages = touched(made, entries, target)
            assert read[0] == first
            if target > 2 * first + 1:
                assert set(pages) <= inside
                assert len(read) <= 1 + warm.bit_length()
                assert min(read) >= first
            if target >= 2 * entries - 1 and entries > 1:
                assert set(pages) == inside


@pytest.mark.clause("OIX-9")
def test_a_warm_lookup_further_down_leaves_the_last_page_alone() -> None:
    """Not every lookup in the warm section touches its last entry, though the source says so."""
    made = OffsetIndex(MemoryFile(), 0, 12)
    _, pages = touched(made, 1536, 2 * (1536 - 1025) + 2)
    assert 1535 * 8 // PAGE not in pages


@pytest.mark.clause("OIX-7")
def test_before_the_warm_section_the_search_stays_before_it() -> None:
    made = OffsetIndex(MemoryFile(), 0, 12)
    read, _ = touched(made, 100_000, 3)
    assert read[0] == 100_000 - 1025
    assert all(n <= read[0] for n in read)
    assert len(read) <= 2 + 17


# ---- the audit

LOG = [B(100, 104), B(105, 109), B(110, 112), B(113, 120), B(125, 130)]
RIGHT = [(109, 100), (120, 300), (130, 400)]


@pytest.mark.clause("OIX-15")
def test_a_deviation_that_a_target_has_not_got_excuses_nothing(tmp_path: Path) -> None:
    """After a refused resize the released Kafka's index cannot be compared. One that shows the right state then can."""
    calls = [
        ("append", {"offset": 105, "position": 4200}),
        ("append", {"offset": 109, "position": 8400}),
        ("resize", {"new_size": 8}),
        ("lookup", {"offset": 105}),
    ]
    state = machine.initial()
    right: list[dict[str, Any]] = [{"op": "init", "args": {}, "result": None, "state": machine.observe(state)}]
    for name, arguments in calls:
        step = machine.apply(state, name, arguments)
        assert isinstance(step, Step)
        op = machine.operations[name]
        told = {token: arguments[p] for token, p in op.parameters.items() if p in arguments}
        right.append({"op": name, "args": told, **outcome(step.result), "state": machine.observe(step.state)})
        state = step.state

    def verdict(records: list[dict[str, Any]]) -> tuple[str, int | None, list[str]]:
        file = tmp_path / "trace.ndjson"
        file.write_text("".join(json.dumps(r) + "\n" for r in records))
        v = check(machine, file)
        return v.verdict, v.step, [*v.deviations]

    assert verdict(right) == ("accepted", None, [])
    wrong = [*right[:-1], {**right[-1], "result": [101, 0]}]
    assert verdict(wrong) == ("rejected", 4, [])
    unseen = [{k: v for k, v in r.items() if k != "state"} for r in wrong]
    assert verdict(unseen) == ("accepted", None, ["OIX-D3"])  # it may be the released one
    cut = shown(machine, next(d for d in machine.deviations if d.id == "OIX-D3"))[1].observation
    released = [*right[:3], {**right[3], "state": cut}, wrong[4]]
    assert verdict(released) == ("accepted", None, ["OIX-D3"])


def judged(
    tmp_path: Path, entries: list[tuple[int, int]], slots: int = 0, log: Any = LOG, **more: Any
) -> list[Finding]:
    data = packed(OFFSETS, 100, entries, slots)
    return audited(tmp_path, OffsetIndexCheck, Part(log, data, b"", more.pop("reason", "")), **{"clean": True, **more})


def named(found: list[Finding]) -> list[tuple[str, str, int | None]]:
    return [(f.clause, f.severity.name, f.position) for f in found]


@pytest.mark.parametrize("chunk", [1, 2, 5])
@pytest.mark.clause("OIX-25")
def test_sound_indexes_of_every_release_give_no_finding(tmp_path: Path, chunk: int) -> None:
    for entries in ([], RIGHT, [(105, 100), (113, 300)], [(112, 100), (130, 300)], [(120, 100), (130, 400)]):
        assert judged(tmp_path, entries, chunk=chunk) == []


@pytest.mark.clause("OIX-23")
def test_falling_entries_are_found_at_the_odd_one(tmp_path: Path) -> None:
    assert named(judged(tmp_path, [(109, 100), (109, 100), (130, 400)])) == [("OIX-23", "ERROR", 8)]
    assert named(judged(tmp_path, [(130, 100), (120, 300), (130, 400)])) == [("OIX-23", "ERROR", 0)]
    (found,) = judged(tmp_path, [(130, 100), (120, 300), (130, 400)])
    assert (found.message, found.expected) == ("offset 130 stands before 120", "an offset below 120")


@pytest.mark.clause("OIX-24")
def test_what_misleads_a_reader_is_an_error(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, [(109, 100), (120, 301), (130, 400)])
    assert (found.clause, found.severity, found.position, found.offset) == ("OIX-24", Severity.ERROR, 8, 120)
    assert found.message == "offset 120 is said to be at byte 301, in the middle of a batch"
    assert found.expected.startswith("byte 300")
    (found,) = judged(tmp_path, [(109, 200), (130, 400)])
    assert found.message == "offset 109 is said to be at byte 200, but a batch before that ends with offset 109"
    assert found.recovery == "none: the index is read as it is, and not checked"
    assert named(judged(tmp_path, [(109, -5), (130, 400)])) == [("OIX-24", "ERROR", 0)]


@pytest.mark.clause("OIX-25")
def test_what_no_kafka_would_have_made_is_a_warning(tmp_path: Path) -> None:
    for chunk in (1, 5):
        assert named(judged(tmp_path, [(107, 100), (130, 400)], chunk=chunk)) == [("OIX-25", "WARNING", 0)]
        assert named(judged(tmp_path, [(109, 100), (900, 400)], chunk=chunk)) == [("OIX-25", "WARNING", 8)]


@pytest.mark.clause("OIX-26")
def test_one_entry_out_of_line_with_the_interval(tmp_path: Path) -> None:
    log = [B(n, n) for n in range(100, 140)]
    right = [(100 + n, 100 * n) for n in range(4, 36, 4)]
    assert judged(tmp_path, right, log=log, interval=350) == []
    assert judged(tmp_path, right, log=log, interval=5000) == [], "as written under another interval"
    moved = [e if e[0] != 116 else (114, 1400) for e in right]
    assert named(judged(tmp_path, moved, log=log, interval=350)) == [("OIX-26", "WARNING", 24)]


@pytest.mark.clause("OIX-27")
def test_what_a_kill_leaves_in_the_last_segment_is_left_over(tmp_path: Path) -> None:
    assert named(judged(tmp_path, RIGHT, 20, clean=False)) == [("OIX-27", "LEFTOVER", 24)]
    assert named(judged(tmp_path, RIGHT, 20, clean=None)) == [("OIX-27", "LEFTOVER", 24)]
    assert named(judged(tmp_path, RIGHT, 20)) == [("OIX-27", "WARNING", 24)]
    assert named(judged(tmp_path, RIGHT, 20, kind=Kind.DELETED)) == [("OIX-27", "LEFTOVER", 24)]
    stale = [*RIGHT, (135, 512), (140, 660)]
    assert named(judged(tmp_path, stale, clean=False)) == [("OIX-27", "LEFTOVER", 24)]
    assert named(judged(tmp_path, stale)) == [("OIX-27", "ERROR", 24), ("OIX-27", "ERROR", 32)]
    again = [(109, 100), (120, 300), (109, 100), (130, 400)]
    assert named(judged(tmp_path, again, clean=False)) == [("OIX-27", "LEFTOVER", 16)]


@pytest.mark.clause("OIX-24")
def test_damage_in_the_last_segment_of_a_killed_broker_is_not_taken_for_left_over(tmp_path: Path) -> None:
    log = [B(n, n, size=1000) for n in range(100, 200)]
    right = [(100 + n, 1000 * n) for n in range(5, 100, 5)]
    assert judged(tmp_path, right, log=log, clean=False) == []
    wrong = [e if e[0] != 120 else (120, 20_001) for e in right]
    assert named(judged(tmp_path, wrong, log=log, clean=False)) == [("OIX-24", "ERROR", 24)]


@pytest.mark.clause("OIX-27")
def test_a_segment_that_is_not_the_last_was_trimmed(tmp_path: Path) -> None:
    first = Part(LOG, packed(OFFSETS, 100, RIGHT, 9), b"")
    second = Part([B(131, 131)], b"", b"")
    found = audited(tmp_path, OffsetIndexCheck, first, second, clean=False, recovery_point=131)
    assert named(found) == [("OIX-27", "WARNING", 24)]
    found = audited(tmp_path, OffsetIndexCheck, first, second, clean=False, recovery_point=120)
    assert named(found) == [("OIX-27", "LEFTOVER", 24)]


@pytest.mark.clause("OIX-23")
def test_a_file_that_is_no_whole_number_of_slots(tmp_path: Path) -> None:
    data = packed(OFFSETS, 100, RIGHT) + b"\0\0\1"
    found = audited(tmp_path, OffsetIndexCheck, Part(LOG, data, b""), clean=True)
    assert named(found) == [("OIX-23", "WARNING", 24)]


@pytest.mark.clause("OIX-28")
def test_a_missing_index_is_named_with_what_a_restart_does(tmp_path: Path) -> None:
    (found,) = audited(tmp_path, OffsetIndexCheck, Part(LOG, None, b""), clean=True)
    assert (found.clause, found.severity) == ("OIX-28", Severity.WARNING)
    assert found.recovery == "loading the log recovers the segment: both indexes are made again"
    (tmp_path / "alone").mkdir()
    assert audited(tmp_path / "alone", OffsetIndexCheck, Part(LOG, None, None), clean=None) == []


@pytest.mark.clause("OIX-24")
def test_one_damage_in_the_log_is_no_damage_of_the_index(tmp_path: Path) -> None:
    torn = [b._replace(problem=3) if b.base == 113 else b for b in LOG]
    assert judged(tmp_path, RIGHT, log=torn) == []
    assert judged(tmp_path, [*RIGHT, (135, 503)], reason="a torn tail", clean=False) == []
    old = [b._replace(magic=1) for b in LOG]
    assert judged(tmp_path, [(109, 7)], log=old) == []


@pytest.mark.clause("OIX-24")
@given(data=st.data())
def test_every_entry_that_would_lead_a_reader_astray_is_found(data: st.DataObject, tmp_path_factory: Any) -> None:
    """Beside what reading the log from the entry's position on gives, for every offset that is looked up by it."""
    sizes = data.draw(
        st.lists(st.tuples(st.integers(1, 3), st.integers(61, 64), st.integers(0, 2)), min_size=1, max_size=6)
    )
    log, at, offset = [], 0, 100
    starts = []
    for count, size, gap in sizes:
        log.append(B(offset, offset + count - 1, size=size))
        starts.append(at)
        at, offset = at + size, offset + count + gap
    entry = (data.draw(st.integers(100, offset)), data.draw(st.sampled_from([*starts, starts[-1] + 5])))
    astray = entry[1] not in starts or any(
        next((b for b in log if b.last >= o), None)
        != next((b for b, p in zip(log, starts, strict=True) if b.last >= o and p >= entry[1]), None)
        for o in range(entry[0], offset + 1)
    )
    if (entry[0], entry[1]) == (100, 0):
        return
    found = judged(tmp_path_factory.mktemp("log"), [entry], log=log)
    assert any(f.severity == Severity.ERROR for f in found) == astray, (log, entry, found)


@pytest.mark.clause("OIX-24")
def test_recorded_indexes_are_sound_and_every_damaged_byte_of_one_shows(tmp_path: Path) -> None:
    """A partition of a real broker; the lowest byte of an offset may come to be another batch's last offset, which
    leads to the same records."""
    from kafkaspec.audit.check import Log
    from kafkaspec.audit.files import PartitionFiles, Segment
    from kafkaspec.impl.common.files import File
    from kafkaspec.impl.common.rows import Chunk
    from kafkaspec.impl.common.scan import read_segment

    archive = (
        Path(__file__).parent.parent / "recordings" / "audit" / "cluster3-faults" / "nodes-after-clean-stop.tar.gz"
    )
    unpack(archive, tmp_path)
    every = tmp_path.glob("**/orders-0/*.log")
    logs = sorted(p for p in every if "node-1" in str(p) and p.with_suffix(".index").stat().st_size > 40)
    assert logs
    log = logs[0]
    kept = log.with_suffix(".index")
    sound = kept.read_bytes()
    rows = list(read_segment(File(log, log.stat().st_size)))
    segment = Segment(int(log.stem), File(log, log.stat().st_size), File(kept, len(sound)))

    def look() -> list[Finding]:
        made = OffsetIndexCheck(Log(PartitionFiles(log.parent, "orders", 0, segments=(segment,)), clean=True))
        found = list(made.begin(segment))
        for row in rows:
            found += made.chunk(segment, row) if isinstance(row, Chunk) else made.ended(segment, row)
        return found

    assert look() == []
    unseen = 0
    for n in range(len(sound)):
        damaged = bytearray(sound)
        damaged[n] ^= 1 << n % 8
        kept.write_bytes(damaged)
        found = look()
        unseen += not found
        assert found or n % 8 == 3
        assert all(f.position is not None and abs(f.position - n // 8 * 8) <= 8 for f in found)
    assert unseen * 10 < len(sound)


def test_refusals_carry_kafkas_class() -> None:
    _, answers = run(("append", {"offset": 99, "position": 0}))
    assert answers == [Refused("OIX-2", mapped.OVERFLOW)]
