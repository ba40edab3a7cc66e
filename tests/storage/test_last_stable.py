"""Last stable offset: spec against impl, and the rules one by one."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test

from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.explore.engine import explore
from kafkaspec.impl.storage.last_stable import Batch, Consumer, FetchInfo
from kafkaspec.impl.storage.last_stable_driver import Driver
from kafkaspec.impl.storage.transaction_index import AbortedTxn
from kafkaspec.language import LoadedModel, invariant, load, step
from kafkaspec.lockstep.walk import draw, state_machine
from kafkaspec.models.storage.last_stable import Kind, L, Offset, Producer, Readers
from kafkaspec.proofs.storage.last_stable import BEGINS_WITH, PROOFS
from kafkaspec.prove.engine import prove
from kafkaspec.spec.common.transactional_log import Kind as BatchKind
from kafkaspec.spec.common.transactional_log import ReplicaBatch, is_whole
from kafkaspec.spec.storage import last_stable as spec
from tests.storage.last_stable_mutants import MUTANTS


class Partition:
    """A log that is called by name; every call has its contracts, and the impl beside it."""

    def __init__(self, **config: Any) -> None:
        self.state = spec.machine.initial(**config)
        self.driver = Driver()
        self.driver.reset(config)

    def __call__(self, name: str, **arguments: Any) -> Any:
        step = spec.machine.apply(self.state, name, arguments)
        assert not isinstance(step, Outside), step
        self.state = step.state
        answer = self.driver.apply(name, arguments)
        assert answer == step.result
        return step.result

    def produce(
        self, producer: int, sequence: int, count: int = 1, epoch: int = 0, transactional: bool = True, **guard: int
    ) -> Any:
        return self(
            "produce", producer_id=producer, producer_epoch=epoch, first_sequence=sequence, count=count,
            transactional=transactional, **guard,
        )  # fmt: skip

    def verify(self, producer: int, sequence: int, epoch: int = 0, bumps: bool = False) -> Any:
        return self(
            "startVerification", producer_id=producer, first_sequence=sequence, producer_epoch=epoch,
            supports_epoch_bump=bumps,
        )  # fmt: skip

    def mark(self, producer: int, type: str, epoch: int = 0, coordinator: int = 0, version: int = 0) -> Any:
        return self(
            "endTransaction", producer_id=producer, producer_epoch=epoch, type=type, coordinator_epoch=coordinator,
            transaction_version=version,
        )  # fmt: skip

    def high(self, offset: int) -> Any:
        return self("maybeIncrementHighWatermark", offset=offset)

    def start(self, offset: int) -> Any:
        return self("maybeIncrementLogStartOffset", offset=offset)

    def seen(self, step: int = 1, start: int = 0) -> list[int]:
        """What a read_committed consumer sees, in steps of so many batches."""
        out: list[int] = []
        while True:
            found = self("consume", start_offset=start, max_batches=step, read_committed=True)
            out += found["records"]
            if found["nextOffset"] == start:
                return out
            start = found["nextOffset"]

    @property
    def stable(self) -> int:
        return self.state.last_stable


def test_impl_does_what_the_spec_says() -> None:
    run_state_machine_as_test(state_machine(spec.machine, Driver))


@pytest.mark.clause("LSO-1")
def test_the_last_stable_offset_is_the_first_unstable_below_the_high_watermark() -> None:
    log = Partition()
    log("append", count=2)
    log.produce(1, 0)
    assert log.stable == 0
    log.high(2)
    assert log.stable == 2
    log.high(3)
    assert log.stable == 2
    log.mark(1, "COMMIT")
    log.high(4)
    assert log.stable == 4


@pytest.mark.clause("LSO-2")
@pytest.mark.clause("LSO-5")
def test_what_ended_is_unstable_until_its_marker_is_replicated() -> None:
    log = Partition()
    log.produce(1, 0)
    log.high(1)
    log.mark(1, "COMMIT")
    assert (log.stable, log.seen()) == (0, [])
    log.high(2)
    assert (log.stable, log.seen()) == (2, [0])


@pytest.mark.clause("LSO-2")
def test_a_truncation_does_not_look_up_what_is_unstable() -> None:
    """A process forgot that the end was not replicated; its marker is cut off, and the transaction is open again."""
    log = Partition()
    log.produce(1, 0, count=2)
    log.produce(1, 2)
    log.mark(1, "COMMIT")
    log("reopen", offset=2)
    assert log.stable == 2
    log("truncateTo", offset=3)
    assert log.state.producers.opened == {0: 1}
    assert log.state.first_unstable is None
    assert log.seen() == [0, 1]
    log("append", count=1)
    assert log.seen() == []


def late(log: Partition, guard: int = 0) -> Any:
    """A producer's second batch comes when a coordinator has given the transaction up, and nobody will end another."""
    log.produce(1, 0, guard=guard)
    log.mark(1, "ABORT")
    log.high(2)
    assert log.stable == 2
    return log.produce(1, 1)


@pytest.mark.clause("LSO-19")
def test_without_verification_a_late_batch_holds_the_last_stable_offset() -> None:
    log = Partition()
    assert late(log) == [2, 2]
    log("append", count=1)
    log.high(4)
    assert log.stable == 2
    assert log.seen() == []


@pytest.mark.clause("LSO-19")
def test_a_late_batch_opens_no_transaction_where_transactions_are_verified() -> None:
    log = Partition(transaction_verification_enabled=True)
    assert isinstance(log.produce(1, 0), Refused), "not verified"
    guard = log.verify(1, 0)
    assert guard != 0
    assert log.verify(1, 0) == guard, "the same verification"
    assert isinstance(late(log, guard), Refused)
    assert isinstance(log.produce(1, 1, guard=guard), Refused), "a verification is for one transaction"
    log("append", count=1)
    log.high(3)
    assert log.stable == 3
    assert log.seen() == [2]
    log.produce(1, 1, guard=log.verify(1, 1))
    assert log.verify(1, 2) == 0, "its transaction is open"
    assert log.produce(1, 2) == [4, 4]
    assert log.produce(2, 0, transactional=False) == [5, 5], "what is in no transaction needs none"


@pytest.mark.clause("LSO-19")
def test_an_old_answer_of_the_coordinator_opens_no_transaction() -> None:
    """The answer comes when the transaction was ended, and the producer's next one has not this partition yet."""
    log = Partition(transaction_verification_enabled=True)
    old = log.verify(1, 0)
    log.mark(1, "ABORT")
    assert isinstance(log.produce(1, 0, guard=old), Refused)
    new = log.verify(1, 0)
    assert new != old
    assert isinstance(log.produce(1, 0, guard=old), Refused)
    assert log.produce(1, 0, guard=new) == [1, 1]


@pytest.mark.clause("LSO-19")
def test_the_marker_of_the_transaction_before_leaves_the_verification_of_the_next() -> None:
    """The client bumps its epoch with each transaction, and may begin the next one before the marker is here."""
    log = Partition(transaction_verification_enabled=True)
    log.produce(1, 0, guard=log.verify(1, 0, bumps=True))
    guard = log.verify(1, 0, epoch=1, bumps=True)
    log.mark(1, "COMMIT", epoch=1, version=2)
    assert log.produce(1, 0, epoch=1, guard=guard) == [2, 2]
    other = Partition(transaction_verification_enabled=True)
    other.produce(1, 0, guard=other.verify(1, 0))
    guard = other.verify(1, 0, epoch=1)
    other.mark(1, "COMMIT", epoch=1, version=2)
    assert isinstance(other.produce(1, 0, epoch=1, guard=guard), Refused), "a client that does not"


@pytest.mark.clause("LSO-19")
def test_verifications_outlive_a_truncation_and_no_process() -> None:
    log = Partition(transaction_verification_enabled=True)
    log("append", count=1)
    guard = log.verify(1, 0)
    log("truncateTo", offset=0)
    assert log.produce(1, 0, guard=guard) == [0, 0]
    guard = log.verify(2, 0)
    log("reopen", offset=0)
    assert isinstance(log.produce(2, 0, guard=guard), Refused)


@pytest.mark.clause("LSO-18")
@pytest.mark.clause("LSO-19")
def test_a_follower_that_refuses_batches_has_ended_the_verifications_of_those_before() -> None:
    log = Partition(transaction_verification_enabled=True)
    log("replicate", producer_id=2, producer_epoch=0, kind="TRANSACTIONAL", first_sequence=0, coordinator_epoch=0,
        first_offset=0, count=1)  # fmt: skip
    one, three = log.verify(1, 0), log.verify(3, 0)
    batches = [
        ReplicaBatch(1, 0, "TRANSACTIONAL", 0, 0, 1),
        ReplicaBatch(2, 0, "PLAIN", 1, 0, 1),
        ReplicaBatch(3, 0, "TRANSACTIONAL", 0, 0, 1),
    ]
    assert isinstance(log("replicateBatches", batches=batches), Refused)
    assert isinstance(log.produce(1, 0, guard=one), Refused)
    assert log.produce(3, 0, guard=three) == [1, 1]


@pytest.mark.clause("LSO-3")
def test_zombies_are_fenced_off_by_their_epoch() -> None:
    log = Partition()
    log.produce(1, 0)
    assert log.mark(1, "ABORT", epoch=1, version=2) == [1, 1]
    assert isinstance(log.produce(1, 1), Refused)
    log.produce(1, 0, epoch=1)
    assert isinstance(log.mark(1, "COMMIT", epoch=1, version=2), Refused)
    assert isinstance(log.mark(1, "COMMIT", epoch=0, version=0), Refused)
    log.mark(1, "COMMIT", epoch=2, version=2)
    log.high(4)
    assert log.seen() == [2]


@pytest.mark.clause("LSO-3")
def test_a_duplicate_is_told_where_it_is() -> None:
    log = Partition()
    log("append", count=3)
    assert log.produce(1, 0, count=2) == [3, 4]
    assert log.produce(1, 0, count=2) == [3, 4]
    assert isinstance(log.produce(1, 5), Refused)
    assert log.state.log_end == 5


def replica(producer: int, kind: BatchKind, sequence: int = 0, epoch: int = 0, records: int = 1) -> ReplicaBatch:
    return ReplicaBatch(producer, epoch, kind, sequence, 0, records)


@pytest.mark.clause("LSO-12")
@pytest.mark.clause("LSO-18")
def test_a_follower_that_appends_at_once_tells_each_aborted_transaction() -> None:
    """Though the first entry says that all is stable up to beyond the second transaction."""
    log = Partition()
    log.produce(1, 0)
    batches = [replica(1, "ABORT"), replica(1, "TRANSACTIONAL", 1), replica(1, "ABORT"), replica(2, "TRANSACTIONAL")]
    assert log("replicateBatches", batches=batches) == [1, 4]
    assert [tuple(a) for a in log.state.aborted] == [(1, 0, 1, 4), (1, 2, 3, 4)]
    log.high(5)
    assert log("read", start_offset=2, max_batches=1, read_committed=True)["abortedTransactions"] == [[1, 2]]
    assert (log.seen(), log.seen(start=2)) == ([], [])


@pytest.mark.clause("LSO-18")
def test_what_a_transaction_of_one_append_leaves_open_is_what_ends_later() -> None:
    log = Partition()
    log.produce(1, 0)
    log("replicateBatches", batches=[
        replica(1, "ABORT"), replica(1, "PLAIN", 1), replica(2, "TRANSACTIONAL", records=2), replica(2, "ABORT"),
    ])  # fmt: skip
    assert [tuple(a) for a in log.state.aborted] == [(1, 0, 1, 3), (2, 3, 5, 6)]
    assert log.state.producers.opened == {}


@pytest.mark.clause("LSO-18")
def test_of_batches_of_which_one_is_refused_none_goes_in() -> None:
    log = Partition()
    before = log.state
    batches = [replica(1, "TRANSACTIONAL"), replica(1, "PLAIN", 1)]
    assert isinstance(log("replicateBatches", batches=batches), Refused)
    assert log.state == before
    assert log.driver.subject.end == 0


@pytest.mark.clause("LSO-17")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("maybeIncrementHighWatermark", {"offset": 1}),
        ("truncateTo", {"offset": 1}),
        ("reopen", {"offset": 1}),
        ("replicateBatches", {"batches": [replica(1, "ABORT")]}),
        ("replicateBatches", {"batches": [replica(1, "PLAIN"), replica(1, "ABORT", records=2)]}),
    ],
)
def test_what_no_caller_may_ask_is_outside_the_contract(name: str, arguments: dict[str, Any]) -> None:
    """An offset within a batch; one batch for several; a marker of two records."""
    log = Partition()
    log("append", count=2)
    outside = spec.machine.apply(log.state, name, arguments)
    assert isinstance(outside, Outside)
    assert outside.clause == "LSO-17"


@pytest.mark.clause("LSO-4")
def test_a_marker_that_ends_nothing_decides_nothing() -> None:
    log = Partition()
    log.mark(1, "ABORT")
    log.produce(1, 0)
    log.mark(1, "COMMIT")
    log.mark(1, "ABORT")
    log.high(4)
    assert (log.state.aborted, log.seen()) == ((), [1])


@pytest.mark.clause("LSO-5")
def test_a_leaders_high_watermark_only_rises() -> None:
    log = Partition()
    log("append", count=1)
    log("append", count=1)
    log.high(2)
    assert log.high(1) is None
    assert log.state.high_watermark == 2
    assert log.high(3) == spec.ABOVE_END


@pytest.mark.clause("LSO-6")
def test_records_are_deleted_into_an_open_transaction() -> None:
    log = Partition()
    log.produce(1, 0)
    log.produce(1, 1)
    log.high(2)
    assert log.start(3) == spec.ABOVE_HIGH_WATERMARK
    log.start(1)
    assert (log.stable, log.state.producers.opened) == (1, {0: 1})
    log.mark(1, "ABORT")
    log.high(3)
    assert (log.state.aborted[0].first_offset, log.seen(start=1)) == (0, [])


@pytest.mark.clause("LSO-7")
def test_retention_deletes_below_an_open_transactions_end() -> None:
    log = Partition()
    log.produce(1, 0)
    log("roll")
    log.produce(1, 1)
    log.high(2)
    log("advance", ms=100)
    log("deleteOldSegments", retention_ms=100)
    assert log.state.segments == (0, 1)
    log("advance", ms=1)
    log("deleteOldSegments", retention_ms=100)
    assert list(log.state.segments) == [2]
    assert (log.state.log_start, log.stable) == (2, 2)
    log.mark(1, "COMMIT")
    log.high(3)
    assert log.seen(start=2) == []


@pytest.mark.clause("LSO-7")
def test_retention_leaves_what_is_not_replicated() -> None:
    log = Partition()
    log("append", count=1)
    log("roll")
    log("append", count=1)
    log.high(1)
    log("advance", ms=10)
    log("deleteOldSegments", retention_ms=0)
    assert (log.state.segments, log.state.log_start) == ((1,), 1)


@pytest.mark.clause("LSO-8")
def test_a_truncation_opens_what_had_ended() -> None:
    log = Partition()
    log.produce(1, 0)
    log("append", count=1)
    log.mark(1, "ABORT")
    log("truncateTo", offset=2)
    assert (log.state.aborted, log.state.producers.opened) == ((), {0: 1})
    log.mark(1, "COMMIT")
    log.high(3)
    assert log.seen() == [0, 1]


@pytest.mark.clause("LSO-8")
def test_a_log_begins_again_at_an_offset() -> None:
    log = Partition()
    log.produce(1, 0)
    log.high(1)
    log("truncateFullyAndStartAt", offset=20)
    assert (log.state.log_start, log.stable, log.state.log_end) == (20, 20, 20)
    log("append", count=1)
    log("truncateTo", offset=7)
    assert (log.state.log_start, log.state.high_watermark, log.state.segments) == (7, 7, (7,))


@pytest.mark.clause("LSO-9")
def test_an_open_transaction_outlives_a_process() -> None:
    log = Partition()
    log.produce(1, 0)
    log.produce(2, 0)
    log.mark(2, "ABORT")
    log("reopen", offset=3)
    assert (log.stable, log.state.producers.opened) == (0, {0: 1})
    log.mark(1, "COMMIT")
    log.high(4)
    assert log.seen() == [0]


@pytest.mark.clause("LSO-9")
def test_a_transaction_that_is_forgotten_makes_its_aborted_records_visible() -> None:
    """Nothing was known of any producer when the log was cut, so nothing was read: the marker ends nothing."""
    log = Partition(producer_id_expiration_ms=10)
    log.produce(1, 0)
    log.mark(1, "ABORT")
    log("reopen", offset=0)
    log("advance", ms=10)
    log("removeExpiredProducers")
    log("truncateTo", offset=1)
    assert not is_whole(log.state)
    log.mark(1, "ABORT")
    log.high(2)
    assert log.seen() == [0]


@pytest.mark.clause("LSO-10")
def test_a_fetch_gets_whole_batches_of_one_segment() -> None:
    log = Partition()
    log("append", count=3)
    log("append", count=2)
    log("roll")
    log("append", count=1)
    log.high(5)
    read = {"read_committed": False}
    assert [b[0] for b in log("read", start_offset=1, max_batches=9, **read)["batches"]] == [0, 3]
    assert [b[0] for b in log("read", start_offset=1, max_batches=1, **read)["batches"]] == [0]
    assert log("read", start_offset=5, max_batches=9, **read)["batches"] == []
    assert log("read", start_offset=7, max_batches=9, **read) == spec.NO_SUCH_OFFSET


@pytest.mark.clause("LSO-11")
@pytest.mark.clause("LSO-12")
@pytest.mark.clause("LSO-16")
@pytest.mark.parametrize("step", [1, 2, 3, 100])
def test_a_consumer_sees_the_committed_once(step: int) -> None:
    log = Partition()
    log.produce(1, 0, count=2)
    log.produce(2, 0)
    log("append", count=1)
    log.mark(1, "ABORT")
    log.produce(1, 2)
    log("roll")
    log.produce(2, 1)
    log.mark(2, "COMMIT")
    log.produce(3, 0)
    log.mark(1, "COMMIT")
    log.mark(3, "ABORT")
    log.high(log.state.log_end)
    assert log.seen(step) == [2, 3, 5, 6]
    assert log.seen(step, start=1) == [2, 3, 5, 6]


@pytest.mark.clause("LSO-13")
def test_aborted_transactions_are_collected_beyond_the_fetch() -> None:
    log = Partition()
    log("append", count=1)
    log.produce(1, 0)
    log.produce(2, 0)
    log.mark(1, "ABORT")
    log.mark(2, "ABORT")
    log.high(5)
    told = [log("read", start_offset=0, max_batches=n, read_committed=True)["abortedTransactions"] for n in (1, 2, 3)]
    assert told == [[[1, 1]], [[1, 1]], [[1, 1], [2, 2]]]


@pytest.mark.clause("LSO-14")
def test_a_roll_takes_a_snapshot() -> None:
    log = Partition()
    log.produce(1, 0)
    log("roll")
    log("roll")
    assert (log.state.segments, list(log.state.producers.snapshots)) == ((0, 1), [1])


@pytest.mark.clause("LSO-15")
def test_time_ends_no_transaction() -> None:
    log = Partition(producer_id_expiration_ms=10)
    log.produce(1, 0)
    log.produce(2, 0, transactional=False)
    log("advance", ms=11)
    log("removeExpiredProducers")
    assert list(log.state.producers.producers) == [1]
    log.high(2)
    assert log.stable == 0


@pytest.mark.clause("LSO-11")
def test_aborted_transactions_may_be_told_in_any_order() -> None:
    batches = [Batch(n, n, 1 + n % 2, 0, "TRANSACTIONAL", 0, -1, 0) for n in range(4)]
    told = [AbortedTxn(2, 1, 9, 0), AbortedTxn(1, 0, 8, 0)]
    assert list(Consumer(FetchInfo(batches, told), 0)) == []
    assert list(Consumer(FetchInfo(batches, told[:1]), 0)) == [0, 2]


def sees(log: Partition, rng: random.Random, readers: dict[int, list[int]], at: dict[int, int]) -> None:
    """One step of a reader."""
    reader = rng.choice([*readers])
    at[reader] = max(at[reader], log.state.log_start)
    found = log("consume", start_offset=at[reader], max_batches=rng.choice((1, 2, 5)), read_committed=True)
    readers[reader] += found["records"]
    at[reader] = found["nextOffset"]


@pytest.mark.clause("LSO-11")
@pytest.mark.clause("LSO-16")
@pytest.mark.parametrize("seed", range(30))
def test_readers_among_producers_see_each_committed_record_once(seed: int) -> None:
    """Whatever moves between their steps. What was committed is kept by the test, by what it sent."""
    rng = random.Random(seed)
    log = Partition()
    sequence, pending = dict.fromkeys(range(3), 0), {p: list[int]() for p in range(3)}
    committed: set[int] = set()
    readers, at = {r: list[int]() for r in range(3)}, dict.fromkeys(range(3), 0)
    for _ in range(150):
        p = rng.randrange(3)
        match rng.randrange(8):
            case 0 | 1:
                first, last = log.produce(p, sequence[p], count=rng.choice((1, 2)))
                sequence[p] += last - first + 1
                pending[p] += range(first, last + 1)
            case 2:
                first, last = log("append", count=1)
                committed.add(first)
            case 3:
                type = rng.choice(("COMMIT", "ABORT"))
                log.mark(p, type)
                committed |= set(pending[p]) if type == "COMMIT" else set()
                pending[p] = []
            case 4:
                log.high(rng.choice([b.base_offset for b in log.state.batches] + [log.state.log_end]))
            case 5 if rng.randrange(3) == 0:
                log("roll")
            case _:
                sees(log, rng, readers, at)
    for reader, records in readers.items():
        assert records == sorted(x for x in committed if x < at[reader])


@pytest.mark.clause("LSO-2")
@pytest.mark.parametrize("seed", range(20))
def test_the_log_knows_what_its_records_show(seed: int) -> None:
    """Without a truncation or a start, whatever else is done."""
    rng = random.Random(seed)
    names = [n for n in spec.machine.operations if n not in ("truncateTo", "truncateFullyAndStartAt", "reopen")]
    state = spec.machine.initial()
    for _ in range(120):
        op = spec.machine.operations[rng.choice(names)]
        arguments = draw(spec.machine, op, state, rng.choice)
        step = Outside("", "") if arguments is None else spec.machine.apply(state, op.name, arguments)
        state = state if isinstance(step, Outside) else step.state
        assert is_whole(state)


@pytest.mark.clause("LSO-9")
def test_a_producer_whose_epoch_came_back_keeps_its_batches() -> None:
    """What is read behind a snapshot is one append: the duplicate of a batch before it is known."""
    log = Partition()
    log.produce(1, 0, transactional=False)
    log("roll")
    for epoch, sequence in ((1, 0), (0, 7)):
        log(
            "replicate", producer_id=1, producer_epoch=epoch, kind="PLAIN", first_sequence=sequence,
            coordinator_epoch=0, first_offset=log.state.log_end, count=1,
        )  # fmt: skip
    assert isinstance(log.produce(1, 0, transactional=False), Refused)
    log("append", count=1)
    log("truncateTo", offset=3)
    assert log.produce(1, 0, transactional=False) == [0, 0]


# ---- claims that are false, and proofs that lack something -----------------------------------------------------------
class FalseClaims(Readers):
    """What somebody might believe of a read_committed reader, and is not so."""

    @invariant("LSO-1")
    def all_that_is_replicated_is_stable(s) -> bool:
        return s.is_stable(s.high)

    @invariant("LSO-1")
    def all_that_is_decided_is_stable(s) -> bool:
        """Though the high watermark is below."""
        return s.is_stable(s.end) or any(s.open_at[s.end][p] is not None for p in Producer)

    @invariant("LSO-2")
    def the_deleted_are_ended(s, p: Producer) -> bool:
        return s.open_at[s.end][p] is None or s.start <= s.open_at[s.end][p]  # type: ignore[operator]

    @invariant("LSO-4")
    def every_abort_marker_is_in_the_index(s, m: Offset) -> bool:
        return s.kind[m] != Kind.ABORT or s.began[m] is not None

    @invariant("LSO-11")
    def all_below_the_position_is_seen(s, x: Offset) -> bool:
        return x >= s.position or x < s.skipped or s.kind[x] != Kind.TRANSACTIONAL or x in s.seen

    @invariant("LSO-11")
    def who_is_seen_is_not_dropped(s, x: Offset, p: Producer) -> bool:
        return x not in s.seen or s.who[x] != p or p not in s.dropping

    @invariant("LSO-12")
    def only_what_is_fetched_is_told(s, p: Producer, f: Offset) -> bool:
        return f not in s.told[p] or s.bound is None or f < s.bound

    @step("LSO-1")
    def a_cut_does_not_lower_it(s, o: Offset) -> bool:
        """The last stable offset of a log that is truncated."""
        return not s.is_stable(o) or o <= s.next.start or all(s.next.ended[f] is None or o <= f for f in range(L + 1))

    @step("LSO-8")
    def what_was_decided_stays_decided(s, x: Offset) -> bool:
        return s.decided[x] is None or s.next.decided[x] == s.decided[x]


FALSE = [
    name
    for part in ("invariants", "steps")
    for name in getattr(load(FalseClaims), part)
    if name not in getattr(load(Readers), part)
]


def only_with(claim: str) -> LoadedModel:
    """The model with one of the false claims alone."""
    return replace(load(FalseClaims).claiming(claim), lemmas={}, witnesses={})


def fault(name: str) -> LoadedModel:
    """The model with one of its written faults."""
    found: LoadedModel = next(m for m in MUTANTS if m.name == f"Readers: {name}").make()
    return found


@pytest.mark.clause("LSO-1")
@pytest.mark.clause("LSO-11")
@pytest.mark.parametrize("claim", FALSE)
def test_a_false_claim_is_refuted(claim: str) -> None:
    found = explore(only_with(claim), {"Producer": 1, "L": 3})
    assert found.outcome == "violation"
    assert found.trace is not None
    assert found.trace.claim == claim


@pytest.mark.clause("LSO-11")
def test_a_false_claim_is_not_proved() -> None:
    model = only_with("all_that_is_replicated_is_stable")
    found = prove(model, only=lambda action, claim: action == "replicate", timeout_s=10)
    (o,) = [o for o in found.obligations if o.claim == "all_that_is_replicated_is_stable"]
    assert o.verdict == "refuted"
    assert "broken" in o.reachable


@pytest.mark.parametrize(
    ("lemma", "action", "claim"),
    [
        pytest.param(*row, marks=pytest.mark.clause(id))
        for id, *row in [
            ("LSO-10", "a_fetch_is_stable", "consume", "what_was_passed_is_decided"),
            ("LSO-11", "what_was_seen_is_replicated", "truncate", "what_was_seen_stays_decided"),
            ("LSO-12", "what_was_aborted_is_told_or_dropped", "consume", "nothing_else_is_seen"),
        ]
    ],
)
def test_a_proof_without_its_lemma_is_none(lemma: str, action: str, claim: str) -> None:
    model = load(Readers)
    weaker = replace(model, lemmas={n: c for n, c in model.lemmas.items() if n != lemma})
    without = {n: [x for x in names if x != lemma] for n, names in BEGINS_WITH.items() if n != lemma}
    verdicts = [
        prove(m, only=lambda a, c: (a, c) == (action, claim), timeout_s=60, begins_with=b).obligations[0].verdict
        for m, b in ((model, BEGINS_WITH), (weaker, without))
    ]
    assert verdicts[0] == "proved"
    assert verdicts[1] in ("refuted", "unknown")


@pytest.mark.clause("LSO-1")
def test_a_false_claim_is_found_before_it_is_proved() -> None:
    (proof,) = [p for p in PROOFS if p.model is Readers]
    found = replace(proof, model=only_with("all_that_is_replicated_is_stable"), begins_with={}).run()
    assert (found.outcome, found.obligations) == ("refuted", ())


@pytest.mark.parametrize(
    ("model", "action", "claim"),
    [
        pytest.param(
            load(FalseClaims), "replicate", "all_that_is_replicated_is_stable", marks=pytest.mark.clause("LSO-1")
        ),
        pytest.param(
            fault("reads up to the high watermark"), "fetch", "a_fetch_is_stable", marks=pytest.mark.clause("LSO-10")
        ),
        pytest.param(
            fault("cuts what was forgotten"),
            "truncate",
            "what_was_seen_stays_decided",
            marks=pytest.mark.clause("LSO-8"),
        ),
        pytest.param(
            fault("drops for good"), "consume", "what_is_dropped_was_aborted", marks=pytest.mark.clause("LSO-11")
        ),
        pytest.param(
            fault("tells what begins in the fetch"),
            "collect",
            "what_was_aborted_is_told_or_dropped",
            marks=pytest.mark.clause("LSO-12"),
        ),
    ],
)
def test_what_is_false_is_refuted_where_its_proof_is_said_to_begin(model: LoadedModel, action: str, claim: str) -> None:
    """A claim that does not hold, and rules that are left out."""
    begins_with = {claim: ("every_record_is_somebodys", "a_marker_decides"), **BEGINS_WITH}
    found = prove(model, only=lambda a, c: (a, c) == (action, claim), timeout_s=60, begins_with=begins_with)
    assert [o.verdict for o in found.obligations] == ["refuted"]
