"""The transaction index: impl against spec and model, and the rules one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.audit import check as check_of
from kafkaspec.audit.discover import partition_files
from kafkaspec.audit.engine import audit_log
from kafkaspec.audit.files import PartitionFiles
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.storage.transaction_index import TransactionIndexCheck
from kafkaspec.contract import subsystem
from kafkaspec.contract.machine import Refused, Step
from kafkaspec.impl.common.disk import Crashed, SimulatedDisk
from kafkaspec.impl.storage import transaction_index_driver
from kafkaspec.impl.storage.segment import encode
from kafkaspec.impl.storage.transaction_index import AbortedTxn, TransactionIndex, TxnIndexSearchResult
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.language.concrete import Concrete
from kafkaspec.models.storage.transaction_index import MODELS, Aborts
from kafkaspec.proofs.storage.transaction_index import PROOFS
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction, in_order, overlapping
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, KAFKA_EXCEPTION
from kafkaspec.spec.common.segment_contents import Batch, Record
from kafkaspec.spec.storage import transaction_index as spec
from kafkaspec.spec.storage.transaction_index import Index, Log, SearchResult, machine
from tests.layers import Beside, a_row_of_verify, abstracts, walked

# ---- the layers beside each other


def test_long_walks_cover_every_operation() -> None:
    covered = walked(machine, transaction_index_driver.Driver, seeds=30, steps=100)
    assert {"append TXI-3", "sanityCheck TXI-10", "read TXI-11"} <= covered.refusals.keys()


@given(st.data())
def test_abstraction_is_the_whole_state(data: st.DataObject) -> None:
    abstracts(data, machine, transaction_index_driver.Driver())


@a_row_of_verify
@pytest.mark.parametrize("recording", subsystem.find("transaction_index").recordings, ids=lambda r: r.file)
def test_recordings_are_judged_as_they_must(recording: Any) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


@a_row_of_verify
@pytest.mark.parametrize("checked", MODELS, ids=lambda c: f"{c.model.__name__}-{c.distinct}")
def test_models_are_explored_as_pinned(checked: Any) -> None:
    assert checked.run().why == ""


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
def test_proofs_hold_for_every_size(proof: Any) -> None:
    proved = proof.run()
    assert proved.complete, proved.summary()


@pytest.mark.clause("TXI-7")
@pytest.mark.clause("TXI-12")
def test_what_the_model_appends_is_in_order_for_the_spec_and_no_fetch_misses_any() -> None:
    """Every reachable state of the model, every fetch, and every way to cut the entries into two segments."""
    concrete = Concrete(Aborts, {"Producer": 2, "L": 6})
    seen = set()
    for state in concrete.reachable()[0]:
        _busy, _first, _end, aborted, began, stable = state
        entries = tuple(AbortedTransaction(0, began[n], n, stable[n]) for n in sorted(aborted))
        if entries in seen:
            continue
        seen.add(entries)
        assert in_order(entries)
        for base in range(1, 7):
            first = Index(0, tuple(e for e in entries if e.last_offset < base), True)
            second = Index(base, tuple(e for e in entries if e.last_offset >= base), True)
            log = Log((first, second))
            assert spec.orderly(log)
            for fetch in range(7):
                for bound in range(fetch, 8):
                    got = spec.log_collect_aborted_txns(log, fetch, bound)
                    assert got == overlapping(entries, fetch, bound)
    assert len(seen) > 30


# ---- the rules, one by one

ONE, TWO = (1, 0, 4, 5), (2, 3, 9, 10)


def run(*calls: tuple[Any, ...], start: int = 0) -> Step[Log]:
    """The state after some calls, and the last answer; of the implementation too."""
    beside = Beside(machine, transaction_index_driver.Driver)
    step: Step[Log] = Step(beside.initial(start_offset=start))
    for name, *arguments in calls:
        names = machine.find(name).parameters.values()
        step = beside.call(step.state, name, dict(zip(names, arguments, strict=True)))
    return step


@pytest.mark.clause("TXI-1")
def test_an_entry_is_34_bytes() -> None:
    state, digits = run(("append", *ONE), ("file",))
    assert digits == "0000" + "0000000000000001" + "0" * 16 + "0000000000000004" + "0000000000000005"
    assert state.active.size == 34
    assert AbortedTxn(*ONE).encode().hex() == digits


@pytest.mark.clause("TXI-2")
def test_there_is_no_file_until_something_is_aborted() -> None:
    disk = SimulatedDisk()
    index = TransactionIndex("t-0/0.txnindex", 0, disk)
    assert index.collect_aborted_txns(0, 100) == TxnIndexSearchResult([], False)
    index.reset()
    index.truncate_to(0)
    index.flush()
    assert disk.names == {}
    index.append(AbortedTxn(*ONE))
    assert disk.size("t-0/0.txnindex") == 34


@pytest.mark.clause("TXI-3")
def test_last_offsets_rise_as_far_as_is_known() -> None:
    again = ("append", 3, 0, 4, 5)
    assert run(("append", *ONE), again).result == Refused("TXI-3", ILLEGAL_ARGUMENT)
    assert not isinstance(run(("append", *ONE), ("reopen",), again).result, Refused)
    assert isinstance(run(("append", *ONE), ("append", *TWO), ("truncateTo", 9), again).result, Refused)


@pytest.mark.clause("TXI-4")
@pytest.mark.clause("TXI-5")
def test_collecting_stops_at_what_was_stable_beyond() -> None:
    state, _ = run(("append", *ONE), ("append", *TWO))
    assert spec.collect_aborted_txns(state, 0, 5) == SearchResult((AbortedTransaction(*ONE),), True)
    assert spec.collect_aborted_txns(state, 4, 6) == SearchResult(state.entries, True)
    assert spec.collect_aborted_txns(state, 5, 11) == SearchResult((AbortedTransaction(*TWO),), False)


@pytest.mark.clause("TXI-6")
@pytest.mark.clause("TXI-7")
@pytest.mark.clause("TXI-13")
def test_a_marker_in_a_later_segment_is_found() -> None:
    later = (1, 2, 12, 13)
    _, found = run(("append", *ONE), ("roll", 10), ("append", *later), ("log.collectAbortedTxns", 1, 8))
    assert found == [list(ONE), list(later)]
    _, found = run(("append", *ONE), ("roll", 10), ("append", *later), ("log.collectAbortedTxns", 1, 2))
    assert found == [list(ONE)]


@pytest.mark.clause("TXI-8")
def test_a_marker_at_the_offset_goes() -> None:
    both = (("append", *ONE), ("append", *TWO))
    assert run(*both, ("truncateTo", 10)).state.active.entries == (ONE, TWO)
    assert run(*both, ("truncateTo", 9)).state.active.entries == (ONE,)
    assert run(*both, ("truncateTo", 0)).state.active.size == 0


@pytest.mark.clause("TXI-9")
def test_a_reset_keeps_the_file_alone() -> None:
    active = run(("append", *TWO), ("reset",), ("append", *ONE)).state.active
    assert (active.entries, active.exists) == ((ONE,), True)


@pytest.mark.clause("TXI-10")
def test_an_entry_of_an_earlier_segment_is_corrupt() -> None:
    assert run(("append", *ONE), ("sanityCheck",), start=4).result is None
    assert run(("append", *ONE), ("sanityCheck",), start=5).result == Refused("TXI-10", spec.CORRUPT_INDEX)


@pytest.mark.clause("TXI-11")
def test_a_torn_entry_is_none_and_a_later_version_is_refused() -> None:
    state, _ = run(("append", *ONE), ("append", *TWO), ("crash", 1))
    assert (state.active.entries, state.active.rest) == ((ONE,), 33)
    assert run(("reset",)).state.active.rest == 0
    later = "0100" + AbortedTxn(*TWO).encode().hex()[4:]
    assert run(("read", AbortedTxn(*ONE).encode().hex() + later)).result == Refused("TXI-11", KAFKA_EXCEPTION)


@pytest.mark.clause("TXI-12")
def test_what_brokers_do_not_append_is_not_in_order() -> None:
    first = AbortedTransaction(1, 0, 4, 5)
    assert in_order([first, AbortedTransaction(2, 5, 9, 10)])
    for wrong in (
        [AbortedTransaction(1, 4, 4, 5)],
        [AbortedTransaction(1, 0, 4, 6)],
        [first, AbortedTransaction(2, 5, 4, 5)],
        [first, AbortedTransaction(2, 5, 9, 4)],
        [first, AbortedTransaction(2, 3, 9, 10)],
    ):
        assert not in_order(wrong)
    assert not spec.orderly(Log((Index(0, (AbortedTransaction(1, 0, 12, 13),), True), Index(10))))


@dataclass
class Appender:
    """What producers append is entered as UnifiedLog.append does: first all that begins, then each that is aborted."""

    open: dict[int, int] = field(default_factory=dict)
    """the first offset of each producer's transaction"""
    end: int = 0
    entries: tuple[AbortedTransaction, ...] = ()

    def append(self, *batches: str) -> None:
        """In one append: `1` is data of producer 1, `-1` its abort, `b` a batch of nobody."""
        begun: list[tuple[int, int]] = [(first, producer) for producer, first in self.open.items()]
        aborted = []
        for batch in batches:
            if batch.startswith("-"):
                producer = int(batch[1:])
                aborted.append((self.open.pop(producer), producer, self.end))
            elif batch != "b" and int(batch) not in self.open:
                self.open[int(batch)] = self.end
                begun.append((self.end, int(batch)))
            self.end += 1
        for first, producer, marker in aborted:
            stable = min((f for f, other in begun if other != producer), default=marker + 1)
            self.entries += (AbortedTransaction(producer, first, marker, stable),)
            begun.remove((first, producer))


@pytest.mark.clause("TXI-12")
@pytest.mark.clause("TXI-7")
@pytest.mark.parametrize(
    ("appended", "entries", "misses"),
    [
        ("-1 b 2 / -2", [(1, 0, 1, 3), (2, 3, 4, 5)], False),
        ("-1 1 2 -2", [(1, 0, 1, 3), (2, 3, 4, 2)], False),
        ("-1 1 2 -2 / -1", [(1, 0, 1, 3), (2, 3, 4, 2), (1, 2, 5, 6)], True),
        ("-1 1 -1 3", [(1, 0, 1, 4), (1, 2, 3, 4)], True),
    ],
)
def test_of_several_batches_in_one_append_a_fetch_may_miss_one(
    appended: str, entries: list[tuple[int, ...]], misses: bool
) -> None:
    """Entries as Kafka 4.3.0 wrote them; one batch at a time, the same are in order, and none is missed."""
    at_once, one_by_one = Appender(), Appender()
    at_once.append("1")
    one_by_one.append("1")
    for batches in appended.split(" / "):
        at_once.append(*batches.split())
        for batch in batches.split():
            one_by_one.append(batch)
    assert at_once.entries == tuple(entries)
    assert (in_order(at_once.entries), in_order(one_by_one.entries)) == (False, True)

    def missed(entries: tuple[AbortedTransaction, ...]) -> bool:
        return any(
            spec.log_collect_aborted_txns(Log((Index(0, entries, True),)), fetch, bound)
            != overlapping(entries, fetch, bound)
            for bound in range(9)
            for fetch in range(bound)
        )

    assert (missed(at_once.entries), missed(one_by_one.entries)) == (misses, False)


@pytest.mark.clause("TXI-11")
@pytest.mark.clause("TXI-9")
def test_whatever_a_crash_leaves_recovery_makes_it_whole() -> None:
    """Every crash of appends and flushes: what was flushed is there, a part of an entry is none, and after the reset
    that recovery begins with the entries come again."""
    entries = [AbortedTxn(1, 0, 4, 5), AbortedTxn(2, 5, 9, 10), AbortedTxn(1, 10, 14, 15)]
    path = "t-0/00000000000000000000.txnindex"
    steps = outcomes = 0
    while True:
        disk = SimulatedDisk(crash_at=steps)
        index = TransactionIndex(path, 0, disk)
        flushed = 0
        try:
            index.append(entries[0])
            index.flush()
            disk.flush_directory("t-0")
            flushed = 1
            index.append(entries[1])
            index.append(entries[2])
            index.flush()
            flushed = 3
        except Crashed:
            pass
        for after in disk.outcomes():
            outcomes += 1
            left = TransactionIndex(path, 0, after)
            read = [e for e in left if e.last_offset]
            assert read == entries[: len(read)]
            assert len(read) >= flushed
            left.reset()
            for e in entries:
                left.append(e)
            assert list(left) == entries
        if flushed == 3:
            break
        steps += 1
    assert (steps, outcomes > 10) == (6, True)


# ---- the audit


def directory(folder: Path, *segments: tuple[int, list[tuple[int, ...]]], count: int = 20) -> PartitionFiles:
    """Segments of `count` records each, one a batch, with these entries in their indexes."""
    for base, entries in segments:
        data = b"".join(encode(Batch((Record(base + n, 5),), leader_epoch=0)) for n in range(count))
        (folder / f"{base:020}.log").write_bytes(data)
        if entries:
            (folder / f"{base:020}.txnindex").write_bytes(b"".join(AbortedTxn(*e).encode() for e in entries))
    return partition_files(folder, "t", 0)


def findings(files: PartitionFiles, **log: Any) -> list[Finding]:
    return audit_log(check_of.Log(files, **log), [TransactionIndexCheck])[0]


GOOD: list[tuple[int, ...]] = [(1, 0, 4, 1), (2, 1, 6, 7), (1, 8, 10, 11)]


@pytest.mark.clause("TXI-12")
def test_what_brokers_append_is_sound(tmp_path: Path) -> None:
    assert findings(directory(tmp_path, (0, GOOD), (20, [(3, 15, 21, 22)]))) == []


@pytest.mark.parametrize(
    ("entry", "changed", "clause", "at"),
    [
        (1, (2, 6, 6, 7), "TXI-12", 34),  # begins where it ends
        (0, (1, -1, 4, 1), "TXI-12", 0),  # negative
        (2, (1, 8, 10, -1), "TXI-12", 68),
        (1, (2, 1, 4, 5), "TXI-12", 34),  # two end at one marker
        (2, (1, 5, 10, 11), "TXI-12", 68),  # begins below what was stable
        (2, (1, 8, 20, 21), "TXI-13", 68),  # beyond the records
        (2, (1, 8, 2**50, 21), "TXI-13", 68),
    ],
)
def test_an_entry_out_of_order_is_found_where_it_stands(
    tmp_path: Path, entry: int, changed: tuple[int, ...], clause: str, at: int
) -> None:
    entries: list[tuple[int, ...]] = [*GOOD]
    entries[entry] = changed
    (finding,) = findings(directory(tmp_path, (0, entries), (20, [])), clean=True)
    assert (finding.severity, finding.clause, finding.position) == (Severity.ERROR, clause, at)
    assert finding.offset == changed[2]
    assert finding.file.endswith(f"{0:020}.txnindex")


BEGUN_BEHIND: list[tuple[int, ...]] = [(1, 0, 1, 3), (2, 3, 5, 6)]
"""A transaction of producer 1 at 0, then in one append: its abort, a batch, the transaction of producer 2."""
FALLEN: list[tuple[int, ...]] = [(1, 0, 1, 3), (2, 3, 4, 2)]
"""The same, but producer 1 begins again at 2, before producer 2 at 3, which aborts: what was stable falls."""
MISSED: list[tuple[int, ...]] = [(1, 0, 1, 4), (1, 2, 3, 4)]
"""In one append: abort of 1, its next transaction and abort, and a transaction of another producer at 4."""


@pytest.mark.clause("TXI-12")
@pytest.mark.parametrize("entries", [BEGUN_BEHIND, FALLEN, [(1, 0, 4, 15)]])
def test_what_a_follower_appends_at_once_is_no_finding_where_readers_find_it(
    tmp_path: Path, entries: list[tuple[int, ...]]
) -> None:
    assert findings(directory(tmp_path, (0, entries), (20, [(3, 20, 21, 22)])), clean=True) == []


@pytest.mark.clause("TXI-12")
def test_what_a_follower_appends_at_once_is_found_where_readers_miss_it(tmp_path: Path) -> None:
    (finding,) = findings(directory(tmp_path, (0, MISSED), (20, [])), clean=True)
    assert (finding.severity, finding.clause, finding.position, finding.offset) == (Severity.ERROR, "TXI-12", 34, 3)
    assert "begins at 2, below 4," in finding.message
    assert "a follower of Kafka 4.3 writes this itself" in finding.recovery


@pytest.mark.clause("TXI-12")
def test_what_was_stable_is_remembered_where_it_has_fallen(tmp_path: Path) -> None:
    """The transaction that began at 2 is aborted at last: in the same segment, in the next, and in one after that."""
    logs: list[list[tuple[int, list[tuple[int, ...]]]]] = [
        [(0, [*FALLEN, (1, 2, 6, 7)])],
        [(0, FALLEN), (20, [(1, 2, 21, 22)])],
    ]
    for n, rest in enumerate(logs):
        folder = tmp_path / str(n)
        folder.mkdir()
        (finding,) = findings(directory(folder, *rest), clean=True)
        assert (finding.clause, finding.offset) == ("TXI-12", rest[-1][1][-1][2])
        assert "below 3," in finding.message
    folder = tmp_path / "three"
    folder.mkdir()
    three = directory(folder, (0, [(1, 0, 1, 15)]), (20, [(2, 16, 21, 22)]), (40, [(1, 14, 41, 42)]))
    (finding,) = findings(three, clean=True)
    assert "below 22," in finding.message
    folder = tmp_path / "highest"
    folder.mkdir()
    three = directory(folder, (0, [(1, 0, 1, 15)]), (20, [(2, 16, 21, 2)]), (40, [(1, 14, 41, 42)]))
    (finding,) = findings(three, clean=True)
    assert (finding.file[-24:-9], "below 15," in finding.message) == (f"{40:015}", True)


@pytest.mark.clause("TXI-1")
@pytest.mark.parametrize("version", [1, 256, -1])
def test_a_version_that_is_not_0_is_found(tmp_path: Path, version: int) -> None:
    files = directory(tmp_path, (0, GOOD))
    path = tmp_path / f"{0:020}.txnindex"
    data = bytearray(path.read_bytes())
    data[34:36] = version.to_bytes(2, "big", signed=True)
    path.write_bytes(data)
    (finding,) = findings(files)
    assert (finding.severity, finding.clause, finding.position) == (Severity.ERROR, "TXI-1", 34)


@pytest.mark.clause("TXI-13")
def test_an_entry_of_another_segment_is_found(tmp_path: Path) -> None:
    (finding,) = findings(directory(tmp_path, (20, [(1, 5, 19, 20)])))
    assert (finding.severity, finding.clause, finding.position) == (Severity.ERROR, "TXI-13", 0)
    assert "corrupt" in finding.recovery


@pytest.mark.clause("TXI-12")
def test_the_order_goes_on_over_segments(tmp_path: Path) -> None:
    (finding,) = findings(directory(tmp_path, (0, GOOD), (20, [(3, 9, 21, 22)])))
    assert (finding.clause, finding.position, finding.file[-24:-9]) == ("TXI-12", 0, f"{20:015}")


@pytest.mark.clause("TXI-11")
@pytest.mark.clause("TXI-13")
def test_what_a_crash_leaves_in_the_active_segment_is_no_damage(tmp_path: Path) -> None:
    """A torn entry, and one whose marker is lost. After a clean stop, or in a rolled segment, both are damage."""
    files = directory(tmp_path, (0, []), (20, [(1, 30, 35, 36), (2, 36, 45, 46)]))
    path = tmp_path / f"{20:020}.txnindex"
    path.write_bytes(path.read_bytes() + b"\0" * 5)
    files = partition_files(tmp_path, "t", 0)
    assert {f.severity for f in findings(files, clean=False)} == {Severity.LEFTOVER}
    assert [(f.clause, f.position) for f in findings(files, clean=False)] == [("TXI-11", 68), ("TXI-13", 34)]
    assert {f.severity for f in findings(files, clean=True)} == {Severity.WARNING, Severity.ERROR}


def test_a_marker_that_the_cleaner_took_is_no_damage(tmp_path: Path) -> None:
    files = directory(tmp_path, (0, [*GOOD, (2, 11, 19, 20)]), (20, []), count=15)
    assert [f.clause for f in findings(files, clean=True)] == ["TXI-13"]
    assert findings(files, clean=True, cleaner_point=20) == []


def test_an_entry_is_not_held_against_damaged_records(tmp_path: Path) -> None:
    files = directory(tmp_path, (0, [*GOOD, (2, 11, 19, 20)]), (20, []))
    log = tmp_path / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    data[-3] ^= 1
    log.write_bytes(data)
    assert {f.severity for f in findings(files, clean=True)} <= {Severity.LEFTOVER}
