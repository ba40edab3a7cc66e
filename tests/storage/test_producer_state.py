"""Producer state: the spec, the implementation beside it, the models, the proofs, the recording, snapshot files."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import orjson
import pytest

from kafkaspec.contract import subsystem
from kafkaspec.contract.deviation import shown
from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import find
from kafkaspec.explore.checked import Expectation
from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.storage import producer_state as impl
from kafkaspec.impl.storage import producer_state_driver
from kafkaspec.judge.check import check
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.lockstep.exhaustive import check_refinement
from kafkaspec.lockstep.walk import Pair, walk
from kafkaspec.models.storage import producer_state as model
from kafkaspec.mutants.matrix import (
    Detector,
    check_detector,
    contract_detector,
    explorer_detector,
    kill_matrix,
    lockstep_detector,
    mutants_of,
    prover_detector,
    written,
)
from kafkaspec.mutants.mutant import Mutant
from kafkaspec.proofs.storage.producer_state import PROOFS
from kafkaspec.prove.proof import Proof
from kafkaspec.spec.common import producer_snapshot
from kafkaspec.spec.common import producers as tables
from kafkaspec.spec.common.producers import SEQUENCES, UNKNOWN_VERSION, State
from kafkaspec.spec.storage import producer_state as spec
from kafkaspec.spec.storage.producer_state import machine
from tests.layers import Beside, a_row_of_verify, some_are_killed
from tests.storage.producer_state_mutants import RARE

BESIDE = Beside(machine, producer_state_driver.Driver)


def do(state: State, operation: str, /, **arguments: Any) -> tuple[State, Any]:
    """One call within the contract: the state after, and the answer; of the implementation too."""
    step = BESIDE.call(state, operation, arguments)
    return step.state, step.result


def send(
    state: State, first: int, count: int = 1, *, producer: int = 1, epoch: int = 0, origin: str = "CLIENT",
    transactional: bool = False, timestamp: int | None = None, by: str = "appendDataBatch",
) -> tuple[State, Any]:  # fmt: skip
    """A batch of `count` records at the end of the log, from sequence `first` on."""
    return do(
        state, by, producer_id=producer, origin=origin, producer_epoch=epoch, first_seq=first,
        last_seq=(first + count - 1) % SEQUENCES, first_offset=state.end, last_offset=state.end + count - 1,
        timestamp=state.now if timestamp is None else timestamp, transactional=transactional,
    )  # fmt: skip


def mark(
    state: State, epoch: int = 0, *, producer: int = 1, type: str = "COMMIT", coordinator: int = 0, version: int = 0,
    origin: str = "COORDINATOR", timestamp: int | None = None,
) -> tuple[State, Any]:  # fmt: skip
    """A marker at the end of the log."""
    return do(
        state, "appendEndTxnMarker", producer_id=producer, origin=origin, type=type, coordinator_epoch=coordinator,
        producer_epoch=epoch, offset=state.end, timestamp=state.now if timestamp is None else timestamp,
        transaction_version=version,
    )  # fmt: skip


def refused(answer: Any) -> tuple[str, str]:
    """Clause and exception of a refusal."""
    assert isinstance(answer, Refused), answer
    return answer.clause, answer.error.rpartition(".")[2]


# the implementation beside the spec


@pytest.mark.parametrize("seeds", [30, pytest.param(150, marks=pytest.mark.deep)])
def test_spec_and_implementation_agree_on_seeded_walks(seeds: int) -> None:
    operations: set[str] = set()
    refusals: set[str] = set()
    for seed in range(seeds):
        found = walk(machine, producer_state_driver.Driver(), seed, 200, contracts=seed < 10)
        assert found.failure is None, str(found.failure)
        operations |= found.coverage.operations.keys()
        refusals |= {r.rpartition(" ")[2] for r in found.coverage.refusals}
    assert operations == machine.operations.keys()
    assert refusals == {f"PSM-{n}" for n in (3, 5, 6, 7, 9, 11, 12, 25, 27)}


# clauses that deserve a word of their own


@pytest.mark.clause("PSM-1")
@pytest.mark.clause("PSM-2")
def test_five_batches_are_kept_and_their_duplicates_answered() -> None:
    state = BESIDE.initial()
    for n in range(7):
        state, _ = send(state, 2 * n, 2, timestamp=n)
    assert [b.first_sequence for b in state.producers[1].batches] == [4, 6, 8, 10, 12]
    for n in range(2, 7):
        same, answer = send(state, 2 * n, 2, by="produce")
        assert same == state
        assert answer == {"duplicate": [2 * n, 2 * n + 1, 2 * n, 2 * n + 1, n]}
    for first, count in ((2, 2), (4, 1), (5, 2), (12, 3)):  # dropped, a part, across two, longer
        assert refused(send(state, first, count, by="produce")[1]) == ("PSM-3", "OutOfOrderSequenceException")


@pytest.mark.clause("PSM-3")
def test_a_sequence_is_neither_left_out_nor_used_again() -> None:
    state, _ = send(BESIDE.initial(), 0, 3)
    for first in (0, 2, 4, SEQUENCES - 1):
        assert refused(send(state, first)[1])[0] == "PSM-3"
    assert not isinstance(send(state, 3)[1], Refused)
    marked, _ = mark(state, 1)
    assert refused(send(marked, 3, epoch=1)[1])[0] == "PSM-3"  # of an epoch that a marker brought, 0 is the first
    assert not isinstance(send(marked, 0, epoch=1)[1], Refused)


@pytest.mark.clause("PSM-4")
def test_sequences_wrap() -> None:
    state, _ = send(BESIDE.initial(), SEQUENCES - 2, 4)
    batch = state.producers[1].batches[0]
    assert (batch.first_sequence, batch.last_sequence, batch.first_offset) == (SEQUENCES - 2, 1, 0)
    assert send(state, SEQUENCES - 2, 4, by="produce")[1] == {"duplicate": [SEQUENCES - 2, 1, 0, 3, state.now]}
    assert not isinstance(send(state, 2)[1], Refused)
    state, _ = send(BESIDE.initial(), SEQUENCES - 1)
    assert not isinstance(send(state, 0)[1], Refused)
    assert impl.decrement(1, 3) == SEQUENCES - 2
    assert impl.follows(SEQUENCES - 1, 0)


@pytest.mark.clause("PSM-5")
@pytest.mark.clause("PSM-6")
@pytest.mark.clause("PSM-8")
def test_a_new_epoch_begins_at_zero_and_fences_the_old_one() -> None:
    state, _ = send(BESIDE.initial(), 0, epoch=3)
    assert refused(send(state, 1, epoch=4)[1]) == ("PSM-5", "OutOfOrderSequenceException")
    state, _ = send(state, 0, epoch=4)
    assert [b.last_sequence for b in state.producers[1].batches] == [0]
    for origin in ("CLIENT", "COORDINATOR"):
        assert refused(send(state, 0, epoch=3, origin=origin)[1]) == ("PSM-6", "InvalidProducerEpochException")
    taken, _ = send(state, 7, epoch=3, origin="REPLICATION")
    assert (taken.producers[1].epoch, taken.producers[1].last_sequence) == (3, 7)
    assert not isinstance(send(state, 9, epoch=4, origin="COORDINATOR")[1], Refused)


@pytest.mark.clause("PSM-7")
def test_an_unknown_producer_may_begin_anywhere_unless_it_is_being_verified() -> None:
    state = BESIDE.initial()
    assert not isinstance(send(state, 17)[1], Refused)
    for bump, sequence, first in ((True, 20, 17), (False, 5, 6)):
        verified, _ = do(
            state, "maybeCreateVerificationStateEntry", producer_id=1, sequence=sequence, epoch=0,
            supports_epoch_bump=bump,
        )  # fmt: skip
        assert refused(send(verified, first)[1]) == ("PSM-7", "OutOfOrderSequenceException")
    assert not isinstance(send(verified, 5)[1], Refused)


@pytest.mark.clause("PSM-9")
@pytest.mark.clause("PSM-13")
@pytest.mark.clause("PSM-10")
def test_a_transaction_opens_with_its_first_batch_and_ends_with_its_marker() -> None:
    state, _ = send(BESIDE.initial(), 0, 3)
    state, answer = send(state, 3, 2, transactional=True)
    assert answer == {"startedTransactions": [3]}
    state, answer = send(state, 5, 1, transactional=True)
    assert answer == {"startedTransactions": []}
    for origin in ("CLIENT", "REPLICATION", "COORDINATOR"):
        assert refused(send(state, 6, origin=origin)[1]) == ("PSM-9", "InvalidTxnStateException")
    assert (state.first_unstable, state.first_undecided) == (3, 3)
    state, answer = mark(state, type="ABORT", timestamp=99)
    assert answer == {"producerId": 1, "firstOffset": 3, "lastOffset": 6, "isAborted": True, "lastStableOffset": 7}
    assert (state.first_unstable, state.first_undecided) == (3, None)
    assert state.producers[1].last_timestamp == 99
    again, answer = mark(state)
    assert answer is None
    assert again.ended == state.ended


@pytest.mark.clause("PSM-13")
def test_of_several_transactions_the_first_one_counts() -> None:
    """Open ones, and ended ones until their end is replicated; of the spec and of the implementation."""
    driver = producer_state_driver.Driver()
    pair = Pair(machine, driver, {})

    def call(name: str, **arguments: Any) -> tuple[int | None, int | None]:
        assert pair.call(machine.find(name), arguments) is None
        assert pair.failure is None, str(pair.failure)
        manager = driver.subject
        seen = (pair.state.first_unstable, pair.state.first_undecided)
        assert (manager.first_unstable, manager.first_undecided) == seen
        return seen

    def data(producer: int, offset: int, seq: int = 0) -> tuple[int | None, int | None]:
        return call(
            "appendDataBatch", producer_id=producer, origin="CLIENT", producer_epoch=0, first_seq=seq, last_seq=seq,
            first_offset=offset, last_offset=offset, timestamp=0, transactional=True,
        )  # fmt: skip

    def end(producer: int, offset: int) -> tuple[int | None, int | None]:
        return call(
            "appendEndTxnMarker", producer_id=producer, origin="COORDINATOR", type="COMMIT", coordinator_epoch=0,
            producer_epoch=0, offset=offset, timestamp=0, transaction_version=0,
        )  # fmt: skip

    assert [data(2, 0), data(1, 1), data(3, 2)] == [(0, 0)] * 3
    assert [end(2, 3), end(3, 4), end(1, 5)] == [(0, 1), (0, 1), (0, None)]
    assert data(2, 6, 1) == (0, 6)
    moved = [call("onHighWatermarkUpdated", high_watermark=offset) for offset in (3, 4, 6)]
    assert moved == [(0, 6), (1, 6), (6, 6)]


@pytest.mark.clause("PSM-11")
def test_the_epoch_of_a_marker_is_that_of_its_version() -> None:
    opened, _ = send(BESIDE.initial(), 0, epoch=5, transactional=True)
    assert refused(mark(opened, 4)[1]) == ("PSM-11", "InvalidProducerEpochException")
    assert refused(mark(opened, 5, version=2)[1]) == ("PSM-11", "InvalidProducerEpochException")
    assert refused(mark(opened, 6, version=UNKNOWN_VERSION)[1]) == ("PSM-11", "IllegalArgumentException")
    assert mark(opened, 5)[1]["lastOffset"] == 1
    ended, answer = mark(opened, 6, version=2)
    assert answer["firstOffset"] == 0
    assert mark(ended, 6, version=2)[1] is None  # written again
    assert mark(opened, 4, version=UNKNOWN_VERSION, origin="REPLICATION")[1]["firstOffset"] == 0
    last, _ = send(BESIDE.initial(), 0, epoch=tables.MOST_EPOCH, transactional=True)
    assert mark(last, tables.MOST_EPOCH, version=2)[1]["firstOffset"] == 0


@pytest.mark.clause("PSM-12")
def test_a_coordinator_that_was_replaced_is_fenced_off() -> None:
    state, _ = mark(BESIDE.initial(), coordinator=3)
    assert refused(mark(state, coordinator=2)[1]) == ("PSM-12", "TransactionCoordinatorFencedException")
    assert mark(state, coordinator=2, origin="REPLICATION")[0].producers[1].coordinator_epoch == 2


@pytest.mark.clause("PSM-14")
@pytest.mark.clause("PSM-15")
def test_the_last_stable_offset_waits_for_open_and_for_unreplicated_transactions() -> None:
    def stable(high_watermark: int, log_start: int = 0) -> int:
        answer = do(state, "lastStableOffset", high_watermark=high_watermark, log_start_offset=log_start)[1]
        return int(answer)

    state, _ = send(BESIDE.initial(), 0, 4)
    state, _ = send(state, 0, 2, producer=2, transactional=True)
    state, _ = send(state, 4, 2)
    assert [stable(h) for h in (3, 4, 8)] == [3, 4, 4]
    assert stable(8, 6) == 6
    state, _ = mark(state, producer=2)
    assert stable(9) == 4
    state, _ = do(state, "onHighWatermarkUpdated", high_watermark=8)
    assert stable(9) == 4  # the marker stands at 8
    state, _ = do(state, "onHighWatermarkUpdated", high_watermark=9)
    assert stable(9) == 9


@pytest.mark.clause("PSM-16")
def test_an_index_entry_says_up_to_where_all_is_decided() -> None:
    state, _ = send(BESIDE.initial(), 0, transactional=True)
    state, _ = send(state, 0, producer=2, transactional=True)
    state, _ = send(state, 0, producer=3, transactional=True)
    state, answer = mark(state, producer=2, type="ABORT")
    assert answer["lastStableOffset"] == 0
    state, answer = mark(state, type="ABORT")
    assert answer["lastStableOffset"] == 2
    state, answer = mark(state, producer=3, type="ABORT")
    assert answer["lastStableOffset"] == 6


@pytest.mark.clause("PSM-17")
def test_idle_producers_are_forgotten_but_not_with_an_open_transaction() -> None:
    state, _ = send(BESIDE.initial(), 0)
    state, _ = send(state, 0, producer=2, transactional=True)
    state, _ = mark(state, 1, producer=3, timestamp=state.now + 1)  # a marker counts: KAFKA-9144
    day = state.config.producer_id_expiration_ms
    assert do(state, "removeExpiredProducers", current_time_ms=state.now + day - 1)[0] == state
    kept, _ = do(state, "removeExpiredProducers", current_time_ms=state.now + day)
    assert sorted(kept.producers) == [2, 3]
    assert sorted(do(state, "removeExpiredProducers", current_time_ms=state.now + day + 1)[0].producers) == [2]


@pytest.mark.clause("PSM-18")
def test_a_snapshot_is_of_the_records_below_it_and_is_taken_once() -> None:
    state, _ = do(BESIDE.initial(), "takeSnapshot")
    assert state.snapshots == {}
    for n in range(6):
        state, _ = send(state, n)
    state, _ = do(state, "takeSnapshot")
    saved = state.snapshots[6]
    assert saved is not None
    assert saved[1].batches == state.producers[1].batches[-1:]
    marked, _ = mark(state, timestamp=77)  # a batch that is loaded has its producer's timestamp, which a marker changed
    assert marked.producers[1].saved().batches[0].timestamp == 77 != marked.producers[1].batches[-1].timestamp
    assert do(state, "takeSnapshot")[0] == state
    later, _ = send(state, 6)
    assert later.snapshots == state.snapshots


@pytest.mark.clause("PSM-18")
def test_a_roll_in_the_middle_of_an_append_snapshots_the_state_before_it() -> None:
    """KAFKA-6683: what an append makes is put into the table after the roll."""
    manager = impl.ProducerStateManager("t-0", SimulatedDisk())
    append = manager.prepare(1, "CLIENT")
    append.data(0, 0, 0, 0, 0, 5, False)
    manager.update(append)
    manager.end_offset = 1
    append = manager.prepare(1, "CLIENT")
    append.data(0, 1, 1, 1, 1, 6, False)
    assert manager.take_snapshot(flush=False) == 1
    manager.update(append)
    manager.end_offset = 2
    (entry,) = impl.decode(manager.disk.read(manager.path(1)))
    assert entry == impl.SnapshotEntry(1, 0, 0, 0, 0, 5, -1, -1)


@pytest.mark.clause("PSM-19")
@pytest.mark.clause("PSM-20")
@pytest.mark.clause("PSM-25")
def test_truncation_loads_the_latest_snapshot_that_can_be_read() -> None:
    state = BESIDE.initial()
    for n in range(6):
        state, _ = send(state, n, transactional=n == 2 or n > 2)
        if n % 2:
            state, _ = do(state, "takeSnapshot")
    assert list(state.snapshots) == [2, 4, 6]
    cut, _ = do(state, "truncateAndReload", log_start_offset=0, log_end_offset=5, current_time_ms=state.now)
    assert (list(cut.snapshots), cut.end, cut.producers[1].last_sequence) == ([2, 4], 4, 3)
    assert cut.first_undecided == 2
    broken, _ = do(state, "corruptSnapshot", offset=4)
    cut, _ = do(broken, "truncateAndReload", log_start_offset=0, log_end_offset=5, current_time_ms=state.now)
    assert (list(cut.snapshots), cut.end, cut.first_undecided) == ([2], 2, None)
    cut, _ = do(state, "truncateAndReload", log_start_offset=4, log_end_offset=5, current_time_ms=state.now)
    assert (list(cut.snapshots), cut.end, cut.producers) == ([], 4, {})
    day = state.config.producer_id_expiration_ms
    cut, _ = do(state, "truncateAndReload", log_start_offset=0, log_end_offset=3, current_time_ms=state.now + day)
    assert (cut.end, cut.producers) == (2, {})
    same, _ = do(state, "truncateAndReload", log_start_offset=2, log_end_offset=6, current_time_ms=state.now)
    assert (same.producers, list(same.snapshots)) == (state.producers, [4, 6])


@pytest.mark.clause("PSM-21")
@pytest.mark.clause("PSM-22")
def test_full_truncation_and_a_raised_log_start() -> None:
    state, _ = send(BESIDE.initial(), 0, 4, transactional=True)
    state, _ = mark(state)
    state, _ = do(state, "takeSnapshot")
    raised, _ = do(state, "onLogStartOffsetIncremented", log_start_offset=7)
    assert (raised.end, raised.ended, raised.last_snapshot) == (7, {}, 5)
    assert raised.producers == state.producers
    gone, _ = do(state, "truncateFullyAndStartAt", offset=9)
    assert (gone.end, gone.producers, gone.ended, gone.snapshots) == (9, {}, {}, {})


@pytest.mark.clause("PSM-23")
def test_stray_snapshots_go_but_for_that_of_the_shutdown() -> None:
    at = dict.fromkeys((10, 20, 30, 40, 50))
    assert spec.without_strays(at, [0, 20, 40]) == [20, 40, 50]
    assert spec.without_strays(at, [0, 20, 60]) == [20]
    assert spec.without_strays(at, []) == [50]
    state = BESIDE.initial()
    for n in range(3):
        state, _ = send(state, n)
        state, _ = do(state, "takeSnapshot")
    assert list(do(state, "deleteSnapshotsBefore", offset=2)[0].snapshots) == [2, 3]


@pytest.mark.clause("PSM-24")
def test_the_bytes_of_a_snapshot() -> None:
    entries = [
        impl.SnapshotEntry(2**62, 7, 2**31 - 1, 2**40, 3, 1_700_000_000_000, 9, 2**40 - 2),
        impl.SnapshotEntry(1, 0, -1, -1, 0, 5, -1, -1),
    ]
    data = impl.encode(entries)
    assert len(data) == impl.HEAD_SIZE + 2 * impl.ENTRY_SIZE == 10 + 2 * 46
    assert data[:2] == b"\0\1"
    assert struct.unpack_from(">i", data, 6) == (2,)
    assert struct.unpack_from(">qhiqiqiq", data, 10) == tuple(entries[0])
    assert impl.decode(data) == entries
    assert impl.file_name(17) == producer_snapshot.name(17) == "00000000000000000017.snapshot"
    assert do(BESIDE.initial(), "writeSnapshot", entries=[list(e) for e in entries])[1] == data.hex()


@pytest.mark.clause("PSM-25")
def test_every_flipped_bit_and_every_cut_makes_a_snapshot_unreadable() -> None:
    data = impl.encode([impl.SnapshotEntry(4, 1, 5, 99, 2, 77, 0, -1)])
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(impl.SnapshotUnreadable) as found:
            impl.decode(bytes(flipped))
        assert found.value.at in (0, 2, 6)
    for size in range(len(data)):
        with pytest.raises(impl.SnapshotUnreadable):
            impl.decode(data[:size])
    with pytest.raises(impl.SnapshotUnreadable, match="CRC-32C"):
        impl.decode(data + b"\0")


@pytest.mark.clause("PSM-25")
def test_a_negative_offset_in_a_snapshot_is_that_of_nothing() -> None:
    """As Kafka 4.3.0 answers the same bytes."""
    odd = producer_snapshot.Entry(7, 2, 4, -2, 1, 77, -1, -9)
    file = producer_snapshot.packed([odd]).hex()
    nothing = (7, 2, -1, -1, 0, 77, -1, -1)
    assert [tuple(e) for e in do(BESIDE.initial(), "readSnapshot", file=file)[1]] == [nothing]
    read: Any = producer_state_driver.Driver().apply("readSnapshot", {"file": file})
    assert [tuple(e) for e in read] == [nothing]


@pytest.mark.clause("PSM-31")
def test_a_marker_without_its_record_tells_its_producer_s_epoch() -> None:
    asked = {"producer_id": 1, "producer_epoch": 3, "offset": 7, "timestamp": 5}
    after, known = do(BESIDE.initial(), "readEmptiedMarker", **asked)
    assert after == BESIDE.initial()
    assert (known["epoch"], known["lastTimestamp"], known["coordinatorEpoch"], known["batches"]) == (3, 5, -1, [])
    assert producer_state_driver.Driver().apply("readEmptiedMarker", asked) == known
    right, released = shown(machine, next(d for d in machine.deviations if d.id == "PSM-D1"))
    assert right.observation == released.observation
    assert isinstance(right.result, dict)
    assert released.result == {**right.result, "epoch": -1, "lastTimestamp": -1}


@pytest.mark.clause("PSM-26")
@pytest.mark.clause("PSM-27")
def test_a_transaction_opens_only_with_the_guard_of_its_verification() -> None:
    def ask(state: State, sequence: int, epoch: int, bump: bool = False) -> tuple[State, Any]:
        return do(state, "startVerification", producer_id=1, sequence=sequence, epoch=epoch, supports_epoch_bump=bump)

    def open_(state: State, guard: int, epoch: int = 0) -> tuple[State, Any]:
        return do(
            state, "produce", producer_id=1, origin="CLIENT", producer_epoch=epoch, first_seq=0, last_seq=0,
            first_offset=state.end, last_offset=state.end, timestamp=1, transactional=True, guard=guard,
        )  # fmt: skip

    def end(state: State, epoch: int, version: int = 0) -> State:
        return do(
            state, "endTransaction", producer_id=1, origin="COORDINATOR", type="COMMIT", coordinator_epoch=0,
            producer_epoch=epoch, offset=state.end, timestamp=1, transaction_version=version,
        )[0]  # fmt: skip

    state = BESIDE.initial()
    assert refused(open_(state, 0)[1]) == ("PSM-27", "InvalidTxnStateException")
    state, guard = ask(state, 0, 0)
    assert ask(state, 3, 0)[1] == guard
    assert ask(state, 3, 0)[0].verifications[1].lowest_sequence == 0
    assert ask(state, 3, 1)[0].verifications[1].lowest_sequence == 3
    late = end(state, 0)  # the marker comes between the verification and the batch
    assert refused(open_(late, guard)[1])[0] == "PSM-27"
    opened, _ = open_(state, guard)
    assert opened.verifications == {}
    assert ask(opened, 1, 0)[1] == tables.NO_GUARD
    assert refused(open_(opened, 0, epoch=1)[1])[0] == "PSM-27"  # another epoch is another transaction
    next_one, guard = ask(opened, 0, 1, bump=True)
    ended = end(next_one, 1, version=2)
    assert ended.verifications == next_one.verifications  # the end of the one before
    assert not isinstance(open_(ended, guard, epoch=1)[1], Refused)
    assert refused(ask(ended, 0, 0)[1]) == ("PSM-6", "InvalidProducerEpochException")
    off = BESIDE.initial(transaction_verification_enabled=False)
    assert not isinstance(open_(off, 0)[1], Refused)


@pytest.mark.clause("PSM-29")
def test_a_late_transaction_is_seen() -> None:
    state, _ = send(BESIDE.initial(), 0, transactional=True)
    wait = state.config.max_transaction_timeout_ms + tables.LATE_TRANSACTION_BUFFER_MS
    state, _ = do(state, "advance", ms=wait)
    assert not machine.observe(state)["hasLateTransaction"]
    state, _ = do(state, "advance", ms=1)
    assert machine.observe(state)["hasLateTransaction"]
    assert not machine.observe(mark(state)[0])["hasLateTransaction"]


@pytest.mark.clause("PSM-30")
def test_offsets_and_sequences_that_do_not_fit_are_outside_the_contract() -> None:
    state, _ = send(BESIDE.initial(), 0, 4)
    arguments = {
        "producer_id": 1, "origin": "CLIENT", "producer_epoch": 0, "first_seq": 4, "last_seq": 4, "first_offset": 4,
        "last_offset": 4, "timestamp": 0, "transactional": False,
    }  # fmt: skip
    for wrong in ({"first_offset": 3}, {"last_seq": 5}, {"producer_id": -1}, {"producer_epoch": -1}):
        broken = machine.apply(state, "appendDataBatch", {**arguments, **wrong})
        assert isinstance(broken, Outside)
        assert broken.clause == "PSM-30"


@pytest.mark.clause("PSM-28")
@pytest.mark.clause("PSM-20")
def test_a_crash_at_any_moment_leaves_the_state_that_the_log_makes() -> None:
    """Random histories of batches and markers; at each moment, from each snapshot that was there, reading on gives the
    same producers but for batches that a snapshot does not keep, and judges what comes next alike."""
    for seed in range(12):
        r = Random(seed)
        state = BESIDE.initial(transaction_verification_enabled=False)
        log: list[tuple[int, str, dict[str, Any]]] = []
        for _ in range(60):
            producer, epoch = r.choice((1, 2, 3)), r.choice((0, 0, 1, 2))
            known = state.producers.get(producer, tables.UNKNOWN)
            epoch = max(epoch, known.epoch)
            if r.random() < 0.3:
                call, arguments = "appendEndTxnMarker", {
                    "producer_id": producer, "origin": "COORDINATOR", "type": r.choice(("COMMIT", "ABORT")),
                    "coordinator_epoch": 0, "producer_epoch": epoch, "offset": state.end, "timestamp": state.now,
                    "transaction_version": 0,
                }  # fmt: skip
            else:
                first = tables.next_sequence(known.last_sequence) if epoch == known.epoch else 0
                count = r.randrange(1, 4)
                call, arguments = "appendDataBatch", {
                    "producer_id": producer, "origin": "CLIENT", "producer_epoch": epoch, "first_seq": first,
                    "last_seq": first + count - 1, "first_offset": state.end, "last_offset": state.end + count - 1,
                    "timestamp": state.now, "transactional": known.transaction is not None or r.random() < 0.5,
                }  # fmt: skip
            at = state.end
            state, answer = do(state, call, **arguments)
            assert not isinstance(answer, Refused)
            log.append((at, call, {**arguments, "origin": "REPLICATION"}))
            if r.random() < 0.2:
                state, _ = do(state, "takeSnapshot")
            again, _ = do(state, "reopen")
            if r.random() < 0.3 and again.snapshots:
                again, _ = do(again, "corruptSnapshot", offset=r.choice(list(again.snapshots)))
            again, _ = do(
                again, "truncateAndReload", log_start_offset=0, log_end_offset=state.end, current_time_ms=state.now
            )
            loaded_at = again.end
            for offset, name, copied in log:
                if offset >= loaded_at:
                    again, _ = do(again, name, **copied)
            assert again.opened == state.opened
            assert {i: p.saved() for i, p in again.producers.items()} == {
                i: p.saved() for i, p in state.producers.items()
            }
            for i, p in again.producers.items():
                assert {b[:3] for b in p.batches} <= {b[:3] for b in state.producers[i].batches}
            assert set(again.ended.items()) <= set(state.ended.items())


# models, proofs, mutants, recordings


def _kills(mutants: list[Mutant], detectors: list[Detector]) -> None:
    assert [row.wrong for row in kill_matrix(find("producer_state"), mutants, detectors) if row.wrong] == []


FAULTS = [m for m in written(find("producer_state")) if m not in RARE]


def test_some_written_mutants_are_killed() -> None:
    detectors = (lockstep_detector(6), contract_detector(3, 100), lockstep_detector(), check_detector())
    some_are_killed(find("producer_state"), FAULTS, 8, detectors)


@pytest.mark.deep
@pytest.mark.parametrize("layers", ["spec and impl", "model"])
def test_written_mutants_are_killed(layers: str) -> None:
    faults = [m for m in FAULTS if m.layer in layers]
    if layers == "model":
        _kills(faults, [explorer_detector()])
    else:
        _kills(faults, [contract_detector(3, 100), lockstep_detector(), check_detector()])


@pytest.mark.deep
@pytest.mark.parametrize("part", range(8))
def test_every_generated_mutant_is_killed_or_has_a_reason_to_live(part: int) -> None:
    faults = [m for m in mutants_of(find("producer_state")) if m.generated][part::8]
    _kills(faults, [explorer_detector(), prover_detector()])


@a_row_of_verify
def test_the_spec_does_what_the_model_says() -> None:
    (how,) = subsystem.find("producer_state").refinements
    done = check_refinement(machine, how)
    assert done.problem is None, str(done.problem)
    assert done.states == done.reachable == 1_102


@a_row_of_verify
@pytest.mark.parametrize("checked", model.MODELS, ids=lambda c: c.model.__name__)
def test_a_model_is_explored(checked: Expectation) -> None:
    assert checked.run().findings == []


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
def test_a_model_is_proved_for_every_size(proof: Proof) -> None:
    proved = proof.run()
    assert [f"{o.verdict}: {o.action} keeps {o.claim}" for o in proved.obligations if o.verdict != "proved"] == []
    assert proved.complete


@a_row_of_verify
@pytest.mark.parametrize("recording", subsystem.find("producer_state").recordings, ids=lambda r: r.file)
def test_recordings_get_their_verdict(recording: Recording) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


def test_the_order_of_producers_says_nothing() -> None:
    """As their hash table gives them; of snapshots the order counts."""
    state = BESIDE.initial(transaction_verification_enabled=False)
    records: list[dict[str, Any]] = [{"op": "init", "args": {"transactionVerificationEnabled": False}}]
    for n, producer in enumerate((7, 3, 5)):
        call = {
            "producerId": producer, "origin": "CLIENT", "producerEpoch": 0, "firstSeq": 0, "lastSeq": 0,
            "firstOffset": n, "lastOffset": n, "timestamp": 0, "transactional": False,
        }  # fmt: skip
        op = machine.find("appendDataBatch")
        step = machine.apply(state, op.name, {p: call[name] for name, p in op.parameters.items()})
        assert not isinstance(step, Outside)
        state = step.state
        records.append({"op": op.name, "args": call, "result": step.result, "state": machine.observe(state)})
    shown = orjson.loads(orjson.dumps(records, default=float))

    def verdict() -> str:
        return str(check(machine, map(orjson.dumps, shown), name="t").verdict)

    producers = shown[-1]["state"]["producers"]
    producers.reverse()
    assert verdict() == "accepted"
    producers[0], producers[1] = producers[1], producers[0]
    assert verdict() == "accepted"
    producers[0] = producers[1]
    assert verdict() == "rejected"
