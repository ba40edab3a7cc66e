"""The controller of a quorum: the spec, the implementation beside it, the models, the recording."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.contract import subsystem
from kafkaspec.contract.codec import encode
from kafkaspec.contract.machine import Outside
from kafkaspec.explore.checked import Expectation
from kafkaspec.explore.engine import explore
from kafkaspec.impl.controller import periodic
from kafkaspec.impl.controller.quorum_driver import Driver
from kafkaspec.judge.check import check
from kafkaspec.language import action, define, load, require
from kafkaspec.lockstep.exhaustive import check_refinement
from kafkaspec.lockstep.walk import Pair, walk
from kafkaspec.models.controller import quorum as model
from kafkaspec.proofs.controller.quorum import PROOFS
from kafkaspec.prove.proof import Proof
from kafkaspec.spec.common.metadata_log import (
    ACTIVATION,
    ELR,
    MIN_ISR,
    NO_LOG_OFFSET,
    NO_TRANSACTIONS,
    TRANSACTIONS,
    VERSION,
    Answer,
    Fault,
    Kind,
    Outcome,
    QueuedWrite,
    Record,
)
from kafkaspec.spec.controller.quorum import machine
from kafkaspec.spec.controller.quorum_parts import state as parts
from kafkaspec.spec.controller.quorum_trial import REFINEMENTS, SIZES
from tests.layers import a_row_of_verify, walked

RECORDING = next(r for r in subsystem.find("quorum").recordings if r.file == "quorum-controller.ndjson")
BEGIN, END, ABORT, NO_OP, UNKNOWN = (
    Record(kind) for kind in (Kind.BEGIN, Kind.END, Kind.ABORT, Kind.NO_OP, Kind.UNKNOWN)
)
LEVEL = Record(Kind.VERSION, "", TRANSACTIONS)


def put(value: int, key: str = "a") -> Record:
    return Record(Kind.SET, key, value)


class Both:
    """The spec and the implementation, which must agree after each call."""

    def __init__(self, **init: Any) -> None:
        self.pair = Pair(machine, Driver(), init)

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            name = next(n for n, op in machine.operations.items() if op.body.__name__ == operation)
            given = {k: encode(v) for k, v in arguments.items()}
            step = machine.apply(self.state, name, given)
            outside = self.pair.call(machine.find(name), given)
            assert outside is None, outside
            assert self.pair.failure is None, str(self.pair.failure)
            assert not isinstance(step, Outside)
            return step.result

        return call

    @property
    def state(self) -> parts.Controller:
        state: parts.Controller = self.pair.state
        return state

    @property
    def memory(self) -> dict[str, int]:
        return dict(self.state.memory)

    @property
    def offsets(self) -> tuple[int, int, int]:
        """Committed, stable, next write."""
        return self.state.committed, self.state.stable, self.state.next_write

    def set(self, *records: Record, atomic: bool = True, key: str = "a") -> Any:
        return self.write(key=key, records=list(records), atomic=atomic)


def outside(both: Both, operation: str, /, **arguments: Any) -> str:
    """The clause that a caller breaks who calls that."""
    step = machine.apply(both.state, operation, {k: encode(v) for k, v in arguments.items()})
    assert isinstance(step, Outside), step
    return step.clause


def active(**init: Any) -> Both:
    """One that leads in epoch 1: Raft's record is at 0, the bootstrap at 1 to 3 and committed."""
    both = Both(**init)
    assert both.lead(epoch=1) == []
    assert both.commit(count=1) == []
    assert both.offsets == (3, 3, 4)
    return both


def standby() -> Both:
    """One that was handed a metadata version at offset 0."""
    both = Both()
    both.replicate(epoch=0, batches=[[LEVEL]])
    return both


def done(call: int, value: int = NO_LOG_OFFSET) -> dict[str, Any]:
    return dict(encode(Answer(call, Outcome.DONE, value)))


def told(call: int, outcome: Outcome) -> dict[str, Any]:
    return dict(encode(Answer(call, outcome)))


def test_impl_does_what_the_spec_says() -> None:
    walked(machine, Driver, seeds=25, steps=60)


# ---- reading and writing


@pytest.mark.clause("QRM-1")
def test_a_standby_writes_nothing() -> None:
    both = standby()
    before = both.state
    assert both.set(put(1)) == [told(0, Outcome.NOT_CONTROLLER)]
    assert both.state == replace(before, calls=1)


@pytest.mark.clause("QRM-2")
def test_a_read_shows_what_is_stable_wherever_it_is_asked() -> None:
    both = active()
    both.set(put(1))
    assert (both.read(key="a"), both.memory["a"]) == (-1, 1)
    both.commit(count=1)
    assert both.read(key="a") == 1
    other = standby()
    other.replicate(epoch=0, batches=[[put(7)]])
    assert other.read(key="a") == 7


@pytest.mark.clause("QRM-3")
def test_what_raft_never_hands_over_is_outside_the_contract() -> None:
    both = standby()
    assert outside(both, "replicate", epoch=0, batches=[[]]) == "QRM-3"  # an empty batch
    assert outside(both, "replicate", epoch=9, batches=[[NO_OP]]) == "QRM-3"  # of an epoch that is yet to come
    assert outside(both, "commit", count=1) == "QRM-3"  # it wrote nothing
    both = active()
    assert outside(both, "replicate", epoch=0, batches=[[NO_OP]]) == "QRM-3"  # it wrote all there is
    assert outside(both, "lose", epoch=1) == "QRM-3"  # epochs rise


@pytest.mark.clause("QRM-20")
def test_an_election_before_all_was_handed_over_is_outside_the_contract() -> None:
    both = active()
    both.set(put(1))
    both.lose(epoch=2)
    assert both.state.sent
    assert outside(both, "lead", epoch=3) == "QRM-20"
    both.commit(count=1)
    assert both.lead(epoch=3) == []


@pytest.mark.clause("QRM-4", "QRM-10", "QRM-14")
def test_a_write_sees_the_one_before_and_waits_for_its_own_records() -> None:
    both = active()
    assert both.set(put(1)) == []
    assert both.set(put(2)) == []
    assert [w.offset for w in both.state.purgatory] == [4, 5]
    assert both.commit(count=1) == [done(0)]
    assert both.commit(count=1) == [done(1, 1)]


@pytest.mark.clause("QRM-11", "QRM-12")
def test_a_call_without_records_waits_for_all_that_it_saw() -> None:
    both = active()
    assert both.set(key=VERSION) == [done(0, TRANSACTIONS)]
    both.set(put(1))
    both.set(put(2))
    assert both.set() == []
    assert both.state.purgatory[-1].offset == 5
    assert both.commit(count=1) == [done(1)]
    assert both.commit(count=1) == [done(2, 1), done(3, 2)]


@pytest.mark.clause("QRM-5", "QRM-38")
def test_a_batch_is_in_memory_and_kept_at_its_last_offset() -> None:
    both = active()
    both.set(put(1), put(2, "b"))
    assert both.memory["b"] == 2
    assert both.state.next_write == 6
    assert [offset for offset, _ in both.state.past] == [3, 5]
    both.commit(count=1)
    assert [offset for offset, _ in both.state.past] == [5]


@pytest.mark.clause("QRM-6", "QRM-34")
def test_a_record_is_applied_where_raft_puts_it() -> None:
    """Raft has written one of its own between."""
    both = active()
    both.control()
    both.set(Record(Kind.REGISTER, "", 1))
    assert both.memory["broker 1"] == 5
    assert both.commit(count=1) == []
    assert both.offsets == (3, 3, 6)
    assert [offset for offset, _ in both.state.past] == [3, 5]
    other = standby()
    other.control()
    other.replicate(epoch=0, batches=[[Record(Kind.REGISTER, "", 1)]])
    assert other.memory["broker 1"] == 2


@pytest.mark.clause("QRM-7")
def test_what_the_active_controller_cannot_apply_is_not_written() -> None:
    both = active()
    assert both.set(put(1), END) == []
    assert both.state.halted


@pytest.mark.clause("QRM-8")
def test_too_many_records_at_once_are_a_fault() -> None:
    both = active(max_records_per_batch=4)
    assert both.set(put(1), NO_OP, NO_OP, NO_OP) == []
    assert both.set(put(1), NO_OP, NO_OP, NO_OP, NO_OP) == [
        told(0, Outcome.NOT_CONTROLLER),
        told(1, Outcome.UNKNOWN_SERVER),
    ]
    assert not both.state.active
    assert both.state.faults == 1


@pytest.mark.clause("QRM-9")
def test_others_are_written_in_several_batches() -> None:
    both = active(max_records_per_batch=4)
    assert both.set(put(1), put(2), put(3), put(4), put(5), atomic=False) == []
    assert [len(b.records) for b in both.state.sent] == [4, 1]
    assert [w.offset for w in both.state.purgatory] == [8]
    assert both.commit(count=1) == []
    assert both.commit(count=1) == [done(0)]


@pytest.mark.clause("QRM-9")
def test_an_exact_multiple_fails_over() -> None:
    """Kafka hands Raft an empty batch behind it."""
    both = active(max_records_per_batch=4)
    assert both.set(put(1), put(2), put(3), put(4), atomic=False) == [told(0, Outcome.UNKNOWN_SERVER)]
    assert not both.state.active
    assert "a" not in both.memory
    assert [len(b.records) for b in both.state.sent] == [4]


@pytest.mark.clause("QRM-9", "QRM-18")
def test_a_bootstrap_that_is_an_exact_multiple_fails_over() -> None:
    """The first controller of a cluster; what it wrote may be committed."""
    both = Both(max_records_per_batch=3)
    assert both.lead(epoch=1) == []
    assert not both.state.active
    assert both.state.faults == 1
    assert [len(b.records) for b in both.state.sent] == [3]


@pytest.mark.clause("QRM-30", "QRM-29")
def test_a_record_of_an_unknown_type_is_fatal() -> None:
    both = standby()
    both.replicate(epoch=0, batches=[[UNKNOWN]])
    assert both.state.halted
    other = active()
    other.set(UNKNOWN)
    assert other.state.halted


# ---- faults


@pytest.mark.clause("QRM-23", "QRM-21")
@pytest.mark.parametrize(
    ("fault", "outcome", "fails_over", "faults"),
    [
        (Fault.API, Outcome.INVALID_REQUEST, False, 0),
        (Fault.TOO_LONG, Outcome.POLICY_VIOLATION, False, 0),
        (Fault.PERIODIC, Outcome.PERIODIC_TASK, False, 1),
        (Fault.NOT_LEADER, Outcome.NOT_CONTROLLER, True, 0),
        (Fault.UNEXPECTED, Outcome.UNKNOWN_SERVER, True, 1),
    ],
)
def test_what_an_operation_throws_decides(fault: Fault, outcome: Outcome, fails_over: bool, faults: int) -> None:
    both = active()
    both.set(put(1))
    failed = [told(0, Outcome.NOT_CONTROLLER)] if fails_over else []
    assert both.write(key="a", records=[], fault=fault) == [*failed, told(1, outcome)]
    assert (both.state.active, both.state.faults) == (not fails_over, faults)


@pytest.mark.clause("QRM-5", "QRM-36")
def test_raft_is_asked_before_a_record_is_applied() -> None:
    """So a record that cannot be applied is no fault where Raft does not lead any more."""
    both = active()
    assert both.write(key="a", records=[put(1), END], refused_at=0) == [told(0, Outcome.NOT_CONTROLLER)]
    assert (both.state.halted, both.state.active, both.state.faults) == (False, False, 0)


@pytest.mark.clause("QRM-23", "QRM-38")
def test_a_fault_behind_an_abort_that_is_not_committed_is_fatal() -> None:
    """It fails over, and there is nothing to go back to: nobody is told."""
    both = active()
    both.set(BEGIN, put(1))
    both.set(ABORT)
    both.commit(count=1)
    assert both.write(key="a", records=[], fault=Fault.UNEXPECTED) == []
    assert both.state.halted


@pytest.mark.clause("QRM-36", "QRM-22")
def test_raft_refuses() -> None:
    """The second of two batches: the first goes too."""
    both = active(max_records_per_batch=4)
    records = [put(1), NO_OP, NO_OP, NO_OP, put(4)]
    answers = both.write(key="a", records=records, atomic=False, refused_at=1)
    assert answers == [told(0, Outcome.NOT_CONTROLLER)]
    assert both.offsets == (3, 3, -1)
    assert "a" not in both.memory
    assert both.state.faults == 0


@pytest.mark.clause("QRM-35")
def test_a_deadline_is_of_the_queue() -> None:
    both = active()
    both.set(put(1))
    before = both.state
    assert both.late(records=[put(2)]) == [told(1, Outcome.TIMEOUT)]
    assert both.state == replace(before, calls=2)
    assert standby().late(records=[]) == [told(0, Outcome.TIMEOUT)]


# ---- periodic tasks

ALWAYS = ("expireDelegationTokens", "electUnclean", "generatePeriodicPerformanceMessage", "maybeFenceStaleBroker")
IN_5_MINUTES = 300 * 10**9


def due(both: Both) -> dict[str, int]:
    """Tasks, and when they are run next, in ns."""
    return {t.name: t.deadline_ns for t in both.state.scheduled}


@pytest.mark.clause("QRM-42")
def test_a_controller_has_the_tasks_of_kafka() -> None:
    assert due(active()) == {
        "expireDelegationTokens": IN_5_MINUTES,
        "electUnclean": IN_5_MINUTES + 1,
        "generatePeriodicPerformanceMessage": 60 * 10**9,
        "maybeFenceStaleBroker": 1_125_000_000,
    }
    assert due(active(max_idle_interval_ms=500)).keys() - {*ALWAYS} == {"writeNoOpRecord"}


@pytest.mark.clause("QRM-42")
def test_tasks_that_are_the_rules_of_others_write_nothing() -> None:
    both = active()
    before = both.state
    assert both.advance(ms=301_000) == []
    assert replace(both.state, now=0, scheduled=before.scheduled) == before


@pytest.mark.clause("QRM-39")
def test_tasks_are_scheduled_by_an_activation() -> None:
    """Whether or not it writes; a period from then on."""
    both = standby()
    both.advance(ms=1000)
    assert due(both) == {}
    assert both.lead(epoch=1) == []
    assert due(both)["maybeFenceStaleBroker"] == 2_125_000_000
    other = Both()
    other.lead(epoch=1)
    assert due(other).keys() == {*ALWAYS}


@pytest.mark.clause("QRM-39")
def test_an_activation_that_fails_schedules_nothing() -> None:
    both = Both()
    both.lead(epoch=1, refused=True)
    assert (both.state.active, due(both)) == (False, {})
    both = Both(max_records_per_batch=3)  # and of the bootstrap's three records Raft is handed an empty batch
    both.lead(epoch=1)
    assert (both.state.active, due(both), both.state.faults) == (False, {}, 1)


@pytest.mark.clause("QRM-40")
def test_who_renounces_runs_no_task() -> None:
    both = active(max_idle_interval_ms=500)
    both.lose(epoch=2)
    assert due(both) == {}
    before = both.state
    assert both.advance(ms=1000) == []
    assert both.state == replace(before, now=10**9)
    both.lead(epoch=3)
    assert due(both)["writeNoOpRecord"] == 1_500_000_000


@pytest.mark.clause("QRM-24", "QRM-39")
def test_who_leads_again_leaves_its_tasks_as_they_are() -> None:
    both = active(max_idle_interval_ms=500)
    both.advance(ms=100)
    before = due(both)
    both.lead_again(epoch=2)
    assert due(both) == before


@pytest.mark.clause("QRM-41")
def test_a_task_writes_as_a_call_does_and_nobody_is_told() -> None:
    both = active(max_idle_interval_ms=500)
    both.set(put(1))
    assert both.advance(ms=500) == []
    assert due(both)["writeNoOpRecord"] == 10**9
    assert [(w.offset, w.call) for w in both.state.purgatory] == [(4, 0), (5, ACTIVATION)]
    assert both.state.sent[-1].records == (NO_OP,)
    assert both.commit(count=2) == [done(0)]
    assert both.offsets == (5, 5, 6)


@pytest.mark.clause("QRM-41", "QRM-12")
def test_a_task_that_writes_nothing_waits_too() -> None:
    """The earliest is run first, and the others wait for what it wrote."""
    both = active(max_idle_interval_ms=500)
    both.advance(ms=1200)
    assert [(w.offset, w.call) for w in both.state.purgatory] == [(4, ACTIVATION), (4, ACTIVATION)]
    both = active(max_idle_interval_ms=1200)
    both.advance(ms=1200)
    assert [w.offset for w in both.state.purgatory] == [4]


@pytest.mark.clause("QRM-41", "QRM-36", "QRM-40")
def test_a_task_fails_over_where_a_call_would() -> None:
    both = active(max_idle_interval_ms=500)
    both.set(put(1))
    assert both.advance(ms=500, refused=True) == [told(0, Outcome.NOT_CONTROLLER)]
    assert (both.state.active, due(both), both.state.faults) == (False, {}, 0)
    both = Both(max_idle_interval_ms=500, bootstrap_level=NO_TRANSACTIONS, max_records_per_batch=1)
    both.lead(epoch=1)
    assert both.state.active
    both.advance(ms=500)
    assert (both.state.active, both.state.faults) == (False, 1)


@pytest.mark.clause("QRM-23")
def test_a_task_that_throws_is_a_fault_and_is_run_again_in_5_minutes() -> None:
    """PER-9."""

    def fails() -> periodic.Result:
        raise ValueError

    driver = Driver()
    driver.reset({})
    driver.lead(epoch=1, queued=[], refused=False)
    driver.subject.tasks.register_task(periodic.Task("fails", fails, 10**6))
    driver.advance(ms=1, refused=False)
    assert (driver.subject.is_active, driver.subject.faults) == (True, 1)
    assert driver.subject.deferred.deadlines["fails"] == 10**6 + IN_5_MINUTES


# ---- what is committed


@pytest.mark.clause("QRM-13", "QRM-15")
def test_a_commit_answers_in_order() -> None:
    both = active()
    both.set(put(1))
    both.set()
    both.set(put(2))
    assert both.commit(count=2) == [done(0), done(1, 1), done(2, 1)]
    assert both.offsets == (5, 5, 6)
    assert both.state.committed_epoch == 1
    assert both.memory["a"] == 2


@pytest.mark.clause("QRM-13", "QRM-14")
def test_more_than_a_hundred_batches_are_committed_at_once() -> None:
    both = Both(max_records_per_batch=2)
    assert both.lead(epoch=1) == []
    assert both.commit(count=2) == []
    both.set(*(put(n) for n in range(261)), atomic=False)
    assert len(both.state.sent) == 131
    assert both.commit(count=130) == []
    assert both.offsets == (263, 263, 265)
    assert both.commit(count=1) == [done(0)]


@pytest.mark.clause("QRM-26", "QRM-25", "QRM-15")
def test_nothing_is_stable_within_a_transaction() -> None:
    both = active()
    both.set(BEGIN, put(1))
    both.set(put(2))
    assert both.commit(count=2) == []
    assert both.offsets == (6, 3, 7)
    assert both.read(key="a") == -1
    both.set(END)
    assert both.commit(count=1) == [done(0), done(1, 1), done(2, 2)]
    assert both.read(key="a") == 2


@pytest.mark.clause("QRM-26")
def test_the_end_of_a_transaction_counts_when_it_is_written() -> None:
    """Before it is committed: part of the transaction is shown, and a failover then stops the controller."""
    both = active()
    both.set(BEGIN, put(1))
    both.set(put(2))
    both.set(END)
    assert both.commit(count=1) == [done(0)]
    assert both.read(key="a") == 1
    both.lose(epoch=2)
    both.replicate(epoch=2, batches=[[ABORT]])
    assert both.state.halted


@pytest.mark.clause("QRM-25")
def test_a_transaction_is_taken_back() -> None:
    both = active()
    both.set(put(1), BEGIN, put(2), ABORT, put(3, "b"))
    assert (both.memory["a"], both.memory["b"], both.state.begun) == (1, 3, NO_LOG_OFFSET)
    other = standby()
    other.replicate(epoch=0, batches=[[BEGIN, put(1)], [BEGIN]])
    assert other.state.halted


@pytest.mark.clause("QRM-27", "QRM-28")
def test_a_standby_applies_what_is_committed() -> None:
    leader, other = active(), Both()
    other.control()
    other.lose(epoch=1)
    bootstrap = list(leader.state.past[-1:])
    assert bootstrap
    other.replicate(epoch=1, batches=[[BEGIN, LEVEL, END]])
    for value in (1, 2):
        leader.set(put(value), Record(Kind.REGISTER, "", value))
        leader.commit(count=1)
        other.replicate(epoch=1, batches=[[put(value), Record(Kind.REGISTER, "", value)]])
    assert leader.memory == other.memory
    assert leader.offsets[:2] == other.offsets[:2]
    assert other.memory["broker 2"] == 7


# ---- leading


@pytest.mark.clause("QRM-16", "QRM-17", "QRM-18")
def test_the_activation_comes_first() -> None:
    both = Both()
    waiting = [QueuedWrite(VERSION, ()), QueuedWrite("a", (put(1),))]
    assert both.lead(epoch=1, queued=waiting) == []
    assert [(w.offset, w.call) for w in both.state.purgatory] == [(3, ACTIVATION), (3, 0), (4, 1)]
    assert [r.kind for r in both.state.sent[0].records] == [Kind.BEGIN, Kind.VERSION, Kind.END]
    assert both.commit(count=1) == [done(0, TRANSACTIONS)]
    assert both.state.claim == 1


@pytest.mark.clause("QRM-18", "QRM-9")
def test_the_bootstrap() -> None:
    old = Both(bootstrap_level=NO_TRANSACTIONS)
    old.lead(epoch=1)
    assert [r.kind for r in old.state.sent[0].records] == [Kind.VERSION]
    new = Both(elr=True)
    new.lead(epoch=1)
    assert (new.memory[ELR], new.memory[MIN_ISR]) == (1, 1)
    assert len(new.state.sent[0].records) == 5
    again = Both()
    again.replicate(epoch=0, batches=[[BEGIN]])
    again.lead(epoch=1)
    assert [r.kind for r in again.state.sent[0].records] == [Kind.ABORT, Kind.BEGIN, Kind.VERSION, Kind.END]


@pytest.mark.clause("QRM-19")
def test_what_dangles_is_aborted() -> None:
    both = standby()
    both.replicate(epoch=0, batches=[[put(1)], [BEGIN, put(2)]])
    both.lead(epoch=1)
    assert both.state.sent[0].records == (ABORT,)
    assert both.memory["a"] == 1
    assert both.offsets == (3, 1, 6)
    both.commit(count=1)
    assert both.offsets == (5, 5, 6)
    nothing = standby()
    nothing.lead(epoch=1)
    assert nothing.state.sent == ()
    old = Both()
    old.replicate(epoch=0, batches=[[Record(Kind.VERSION, "", NO_TRANSACTIONS)], [BEGIN]])
    old.lead(epoch=1)
    assert old.state.halted


@pytest.mark.clause("QRM-19")
def test_a_bootstrap_that_is_cut_is_not_written_again() -> None:
    """Its version is there, its end is not: the log is left without a metadata version."""
    both = Both()
    both.replicate(epoch=0, batches=[[BEGIN, LEVEL]])
    both.lead(epoch=1)
    assert both.state.sent[0].records == (ABORT,)
    both.commit(count=1)
    assert VERSION not in both.memory


@pytest.mark.clause("QRM-24")
def test_it_leads_in_a_later_epoch() -> None:
    both = active()
    both.set(put(1))
    both.lead_again(epoch=3)
    assert (both.state.claim, len(both.state.purgatory)) == (3, 1)
    both.set(put(2))
    assert [b.epoch for b in both.state.sent] == [1, 3]


@pytest.mark.clause("QRM-37")
def test_a_standby_is_told_of_others() -> None:
    both = standby()
    before = both.state
    assert both.lose(epoch=4) == []
    assert both.state == replace(before, epoch=4)


@pytest.mark.clause("QRM-21", "QRM-22")
def test_whoever_waits_is_failed_and_what_is_not_stable_goes() -> None:
    both = active()
    both.set(put(1))
    both.commit(count=1)
    both.set(put(2))
    both.set()
    assert both.lose(epoch=2) == [told(1, Outcome.NOT_CONTROLLER), told(2, Outcome.NOT_CONTROLLER)]
    assert both.memory["a"] == 1
    assert both.offsets == (4, 4, -1)
    assert both.state.purgatory == ()


@pytest.mark.clause("QRM-27", "QRM-22")
def test_what_it_gave_up_may_be_committed_by_another() -> None:
    both = active()
    both.set(put(1))
    both.lose(epoch=2)
    assert "a" not in both.memory
    assert both.commit(count=1) == []
    assert both.memory["a"] == 1


@pytest.mark.clause("QRM-22")
def test_an_abort_that_is_lost_stops_the_next_one() -> None:
    """The controller forgets that the transaction is open; the abort of the next leader cannot be applied."""
    both = standby()
    both.replicate(epoch=0, batches=[[BEGIN, put(2)]])
    both.lead(epoch=1)
    both.lose(epoch=2)
    assert both.state.begun == NO_LOG_OFFSET
    both.replicate(epoch=2, batches=[[ABORT]])
    assert both.state.halted


@pytest.mark.clause("QRM-38")
def test_an_abort_of_what_is_not_committed_leaves_nothing_to_go_back_to() -> None:
    both = active()
    both.set(BEGIN, put(1))
    both.set(ABORT)
    both.commit(count=1)
    assert (both.state.stable, [offset for offset, _ in both.state.past]) == (5, [6])
    other = active()
    other.set(BEGIN, put(1))
    other.set(ABORT)
    other.commit(count=1)
    assert other.lose(epoch=2) == []
    assert other.state.halted


def test_no_snapshot_is_later_than_what_is_applied() -> None:
    """So it is never refused when a batch is applied (QRM-5), when a controller claims an epoch (QRM-16), when a
    transaction begins (QRM-25), and where a standby is stable (QRM-26, QRM-27). Behind QRM-D1 it may be."""
    seen = Counter[tuple[bool, bool]]()

    def looked_at(state: parts.Controller) -> None:
        if not state.halted:
            latest = max(offset for offset, _ in state.past)
            assert latest <= (state.end - 1 if state.active else state.stable)
            seen[state.active, latest > state.stable] += 1

    for seed in range(40):
        assert walk(machine, Driver(), seed, 60, model_state=looked_at).failure is None
    assert seen[True, True] > seen[True, False] > 0 < seen[False, False]


# ---- snapshots


@pytest.mark.clause("QRM-31")
def test_a_snapshot_is_all_there_is() -> None:
    both = standby()
    both.replicate(epoch=0, batches=[[put(1), BEGIN]])
    both.load_snapshot(offset=10, epoch=0, records=[LEVEL, put(5, "b"), Record(Kind.REGISTER, "", 1)])
    assert both.memory == {VERSION: TRANSACTIONS, "b": 5, "broker 1": 9}
    assert both.offsets == (9, 9, -1)
    assert both.state.begun == NO_LOG_OFFSET
    assert both.state.past == ((9, both.state.memory),)
    both.load_snapshot(offset=12, epoch=0, records=[BEGIN])
    assert both.state.halted


@pytest.mark.clause("QRM-31")
def test_the_record_behind_a_snapshot_stays() -> None:
    """Of a batch of one record, if no other is committed before."""
    both = Both()
    both.load_snapshot(offset=10, epoch=0, records=[LEVEL])
    both.replicate(epoch=0, batches=[[put(1)]])
    assert both.offsets == (10, 10, -1)
    assert both.read(key="a") == 1
    both.lead(epoch=1)
    both.lose(epoch=2)
    assert both.memory["a"] == 1


def _as_released(*steps: tuple[str, dict[str, Any]]) -> list[tuple[Any, Any]]:
    """What the released Kafka answers, and shows, in the words of its known deviation."""
    (deviation,) = machine.deviations
    state, ghost, found = machine.initial(), deviation.initial(), list[tuple[Any, Any]]()
    for name, given in steps:
        op = machine.find(name)
        arguments = {**op.defaults, **given}
        step = machine.apply(state, name, arguments)
        assert not isinstance(step, Outside), step
        ghost = deviation.advance(ghost, state, name, arguments, step.state)
        state = step.state
        assert not deviation.lost(ghost)
        found.append(deviation.rewrite(ghost, state, name, arguments, step.result, machine.observe(state)))
    return found


@pytest.mark.clause("QRM-31")
def test_kafka_loses_the_record_behind_a_snapshot_by_a_failover() -> None:
    load = ("loadSnapshot", {"offset": 10, "epoch": 0, "records": encode([LEVEL])})
    one = ("replicate", {"epoch": 0, "batches": encode([[put(1)]])})
    read = ("read", {"key": "a"})
    fails_over = (("lead", {"epoch": 1}), ("lose", {"epoch": 2}))
    more = ("replicate", {"epoch": 2, "batches": encode([[put(2, "b")]])})
    found = _as_released(load, one, read, *fails_over, more)
    assert (found[0][1]["lastStableOffset"], found[0][1]["snapshotEpochs"]) == (10, [10])
    assert (found[1][1]["memory"]["a"], found[1][1]["snapshotEpochs"]) == (1, [10])
    assert found[2][0] == -1
    assert "a" not in found[4][1]["memory"]
    assert "a" not in found[5][1]["memory"]
    begins = ("replicate", {"epoch": 0, "batches": encode([[BEGIN]])})
    assert _as_released(load, begins)[1][1]["halted"]
    two = ("replicate", {"epoch": 0, "batches": encode([[put(1), put(2)]])})
    assert _as_released(load, two, read)[2][0] == 2


@pytest.mark.clause("QRM-33")
def test_an_active_controller_loads_no_snapshot() -> None:
    both = active()
    both.load_snapshot(offset=10, epoch=1, records=[LEVEL])
    assert both.state.halted


# ---- models


def only(*claims: str) -> Any:
    """The model with the rule of Kafka 4.3.0 and these claims alone."""
    m = load(model.Quorum).claiming(*claims)
    return replace(m, lemmas={}, witnesses={}, leads_to={}, refinements={})


RELEASED = {"Controller": 2, "L": 3, "E": 2, "AS_REPLAYED": True}


@pytest.mark.parametrize(
    "claim", ["no_part_of_a_transaction_is_shown", "whatever_is_committed_can_be_applied", "same_log_same_state"]
)
def test_a_transaction_that_is_cut_breaks_what_kafka_promises(claim: str) -> None:
    """The shortest way has seven steps."""
    e = explore(only(claim), RELEASED, threads=1, deadlock=True)
    assert e.outcome == "violation"
    assert e.trace is not None
    assert e.trace.claim == claim
    assert len(e.trace.steps) - 1 == 7


class NobodyCrashes(model.Quorum):
    @action("QRM-27", "QRM-21", who="machine")
    def crash(s, c: model.Controller) -> None:
        require(s.known[c] > 0, s.claim[c] > 0, s.known[c] > s.high)
        s.next.known[c] = 0


class HearsAllBeforeItGivesUp(model.Quorum):
    """No message of a commit is lost on the way to who wrote it."""

    @action("QRM-21", who="controller")
    def fail(s, c: model.Controller) -> None:
        require(s.claim[c] > 0, s.known[c] == s.high)
        s.give_up(c)
        if s.leader == c:
            s.next.leader = None

    @action("QRM-27", "QRM-21", who="machine")
    def crash(s, c: model.Controller) -> None:
        require(s.known[c] > 0 or s.claim[c] > 0, c not in s.halted)
        require(s.claim[c] == 0 or s.known[c] == s.high)
        s.next.claim[c] = 0
        s.next.active = s.active - {c}
        s.next.waiting[c] = set()
        s.next.memory[c] = s.memory[c][:0]
        s.next.known[c] = 0
        s.next.stable[c] = 0
        s.next.open[c] = None
        s.next.begun[c] = None
        if s.leader == c:
            s.next.leader = None


class TransactionsAreCommittedWhole(model.Quorum):
    """Of a log that ends in a transaction nothing is committed: no failover comes within one."""

    @action("QRM-3", who="raft", fair="weak")
    def commit(s) -> None:
        require(s.leader is not None, s.high < len(s.log), not s.log[s.high].within)
        s.next.high = s.high + 1


@pytest.mark.parametrize(
    ("without", "witness"),
    [
        (NobodyCrashes, "a_leader_has_crashed_that_had_answered"),
        (HearsAllBeforeItGivesUp, "a_commit_is_not_heard"),
        (TransactionsAreCommittedWhole, "a_failover_comes_within_a_transaction"),
    ],
    ids=["crashes", "lost messages", "an open transaction at a failover"],
)
def test_the_pinned_sizes_have_what_can_go_wrong(without: type[model.Quorum], witness: str) -> None:
    """Each of them is seen: without it, the pinned exploration is not what it was."""
    pinned = [e for e in model.MODELS if e.name == "Quorum"]
    assert [e.sizes["Controller"] for e in pinned] == [2, 3]
    e = explore(load(without), pinned[0].sizes, threads=1, deadlock=True, liveness=False)
    assert e.outcome == "complete"
    assert e.witnesses[witness] is None


# ---- faults that the claims of the model itself do not have to name: the abstract machine alone is against them


class AnswersWhatIsWritten(model.Quorum):
    """At once: a user is told of a record that may be lost."""

    @action("QRM-5", "QRM-10", who="controller")
    def write(s, c: model.Controller, o: model.Offset) -> None:
        require(c in s.active, s.open[c] is None or len(s.memory[c]) + 1 < model.L)
        x = model.Record(kind=model.Kind.DATA, epoch=s.claim[c], within=s.open[c] is not None)
        require(o == len(s.memory[c]) + 1)
        s.next.memory[c] = s.memory[c] + [x]
        s.next.wrote[c] = s.memory[c] + [x]
        if s.claim[c] == s.epoch:
            s.next.log = s.memory[c] + [x]
        s.next.answered[o] = x


class ForgetsWhoWaits(model.Quorum):
    """A commit takes all calls out of the purgatory, and answers those that are stable: the term goes on."""

    @action("QRM-13", "QRM-14", "QRM-15", "QRM-26", who="controller", fair="weak", per=("c",))
    def hear(s, c: model.Controller, stable: model.Offset) -> None:
        require(s.claim[c] > 0, s.known[c] < s.high)
        n = s.known[c]
        require(n < len(s.memory[c]), s.memory[c][n] == s.log[n])
        begun = s.open_after(s.begun[c], n, s.log[n])
        s.next.known[c] = n + 1
        s.next.begun[c] = begun
        s.settle(c, n + 1, begun, stable)
        s.next.waiting[c] = set()


class AnswersWithTheRecordBefore(model.Quorum):
    """What is answered is committed, and another's, perhaps."""

    @define
    def settle(s, c: model.Controller, n: model.Offset, o: model.Offset | None, stable: model.Offset) -> None:
        require(stable == max(s.stable[c], n if o is None else min(o, n)))
        s.next.stable[c] = stable
        s.next.answered = {
            p: s.memory[c][max(p, 2) - 2] if p in s.waiting[c] and p <= stable else s.answered[p]
            for p in range(model.L + 1)
        }
        s.next.waiting[c] = {p for p in s.waiting[c] if p > stable}


class ElectsWhoHasLess(model.Quorum):
    """A log without what was committed."""

    @action("QRM-3", "QRM-20", who="raft")
    def elect(s, c: model.Controller, d: model.Controller, k: model.Offset) -> None:
        require(s.epoch < model.E, k <= len(s.wrote[d]))
        s.next.epoch = s.epoch + 1
        s.next.leader = c
        s.next.log = s.wrote[d][:k]
        s.next.high = min(s.high, k)


class ClaimsTheEpochOfAnother(model.Quorum):
    """Whoever hears of an election takes it for its own."""

    @action("QRM-16", "QRM-20", who="controller", fair="weak", per=("c",))
    def claim_leadership(s, c: model.Controller) -> None:
        require(s.epoch > 0, s.claim[c] == 0, c not in s.halted)
        require(s.high == len(s.log), s.known[c] == s.high)
        s.next.claim[c] = s.epoch
        s.next.wrote[c] = s.log


class ShowsWhatIsWritten(model.Quorum):
    """As soon as anything is committed: a read sees what may be lost."""

    @action("QRM-13", "QRM-14", "QRM-15", "QRM-26", who="controller", fair="weak", per=("c",))
    def hear(s, c: model.Controller, stable: model.Offset) -> None:
        require(s.claim[c] > 0, s.known[c] < s.high)
        n = s.known[c]
        require(n < len(s.memory[c]), s.memory[c][n] == s.log[n])
        begun = s.open_after(s.begun[c], n, s.log[n])
        s.next.known[c] = n + 1
        s.next.begun[c] = begun
        require(stable == len(s.memory[c]))
        s.next.stable[c] = stable


@pytest.mark.clause("QRM-14", "QRM-28", "QRM-15")
@pytest.mark.parametrize(
    "fault",
    [
        *(AnswersWhatIsWritten, ForgetsWhoWaits, AnswersWithTheRecordBefore, ElectsWhoHasLess),
        *(ClaimsTheEpochOfAnother, ShowsWhatIsWritten),
    ],
)
def test_the_abstract_machine_alone_is_against_it(fault: type[model.Quorum]) -> None:
    """No invariant, step or lemma of the model is asked: `users` constrains what a user is told and sees by itself."""
    sizes = {"Controller": 2, "L": 2, "E": 2, **model.COMMITTED}

    def refinement_of(m: type[model.Quorum]) -> Any:
        return replace(load(m).claiming("users"), lemmas={}, witnesses={}, leads_to={})

    assert explore(refinement_of(model.Quorum), sizes, threads=1, deadlock=True).outcome == "complete"
    e = explore(refinement_of(fault), sizes, threads=1, deadlock=True)
    assert e.outcome == "violation"
    assert e.trace is not None
    assert e.trace.claim == "users"


class HearsOfNoLaterLeader(model.Quorum):
    """Whoever was deposed is perhaps never told so."""

    @action("QRM-21", "QRM-22", who="controller", per=("c",))
    def renounce(s, c: model.Controller) -> None:
        require(s.claim[c] > 0, s.claim[c] != s.epoch)
        s.give_up(c)


class CommitsNotForEver(model.Quorum):
    """Raft may stop."""

    @action("QRM-3", who="raft")
    def commit(s) -> None:
        require(s.leader is not None, s.high < len(s.log))
        s.next.high = s.high + 1


class LeavesTransactionsOpen(model.Quorum):
    """Nobody has to end one."""

    @action("QRM-25", who="controller")
    def end(s, c: model.Controller, o: model.Offset) -> None:
        require(c in s.active, s.open[c] is not None)
        s.put(c, o, model.Kind.END, False)
        s.next.open[c] = None


class HearsOfNoCommit(model.Quorum):
    """Every message of a commit may be lost, for ever."""

    @action("QRM-13", "QRM-14", "QRM-15", "QRM-26", who="controller")
    def hear(s, c: model.Controller, stable: model.Offset) -> None:
        require(s.claim[c] > 0, s.known[c] < s.high)
        n = s.known[c]
        require(n < len(s.memory[c]), s.memory[c][n] == s.log[n])
        begun = s.open_after(s.begun[c], n, s.log[n])
        s.next.known[c] = n + 1
        s.next.begun[c] = begun
        s.settle(c, n + 1, begun, stable)


class OwesAfterACrash(model.Quorum):
    """Who waited at a controller that crashed is not told."""

    @action("QRM-27", "QRM-21", who="machine")
    def crash(s, c: model.Controller) -> None:
        require(s.known[c] > 0 or s.claim[c] > 0, c not in s.halted)
        s.next.claim[c] = 0
        s.next.active = s.active - {c}
        s.next.memory[c] = s.memory[c][:0]
        s.next.known[c] = 0
        s.next.stable[c] = 0
        s.next.open[c] = None
        s.next.begun[c] = None
        if s.leader == c:
            s.next.leader = None

    @define
    def settle(s, c: model.Controller, n: model.Offset, o: model.Offset | None, stable: model.Offset) -> None:
        require(stable == max(s.stable[c], n if o is None else min(o, n)))
        s.next.stable[c] = stable
        s.next.waiting[c] = {p for p in s.waiting[c] if p > stable or s.claim[c] == 0}


class LeavesItsActivation(model.Quorum):
    """In the queue, and all that is behind it."""

    @action("QRM-17", "QRM-19", who="controller")
    def activate(s, c: model.Controller, o: model.Offset) -> None:
        require(s.claim[c] > 0, c not in s.active)
        s.next.active = s.active | {c}
        if s.open[c] is None:
            require(o == 0)
        else:
            s.put(c, o, model.Kind.ABORT, False)
            s.next.open[c] = None


@pytest.mark.clause("QRM-32")
@pytest.mark.parametrize(
    ("fault", "claim"),
    [
        (HearsOfNoLaterLeader, "every_write_is_answered"),
        (CommitsNotForEver, "every_write_is_answered"),
        (LeavesTransactionsOpen, "every_write_is_answered"),
        (HearsOfNoCommit, "every_write_is_answered"),
        (OwesAfterACrash, "every_write_is_answered"),
        (LeavesItsActivation, "whoever_is_elected_is_activated"),
    ],
)
def test_without_each_fairness_a_write_may_never_be_answered(fault: type[model.Quorum], claim: str) -> None:
    """What the claims of liveness ask of Raft and of the controllers, with crashes and messages that are lost."""
    m = load(fault)
    m = replace(m.claiming(), lemmas={}, witnesses={}, leads_to={n: c for n, c in m.leads_to.items() if n == claim})
    e = explore(m, {"Controller": 2, "L": 2, "E": 2, **model.COMMITTED}, threads=1, deadlock=True)
    assert e.outcome == "liveness"
    assert e.trace is not None
    assert e.trace.claim.startswith(f"{claim}(")


@pytest.mark.deep
def test_every_write_of_three_controllers_is_answered() -> None:
    """All states, as the claim of liveness wants them; MODELS has them up to symmetry."""
    e = explore(load(model.Quorum), {"Controller": 3, "L": 3, "E": 2, **model.COMMITTED}, threads=2, deadlock=True)
    assert e.outcome == "complete"
    assert None not in e.witnesses.values()


@pytest.mark.deep
def test_claims_and_lemmas_hold_of_a_log_of_three_records() -> None:
    """Before the proof logs of two records are explored."""
    (proof,) = [p for p in PROOFS if p.name == "Quorum"]
    sizes = {**(proof.explored_at or {}), "L": 3, **proof.fixed}
    assert explore(proof.loaded, sizes, ghosts=True, liveness=False, deadlock=True).outcome == "complete"


@a_row_of_verify
@pytest.mark.parametrize("expected", model.MODELS, ids=lambda m: m.name)
def test_models(expected: Expectation) -> None:
    assert expected.run().why == ""


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
def test_proofs(proof: Proof) -> None:
    assert proof.run().outcome == "proved"


@a_row_of_verify
def test_spec_does_what_the_model_does() -> None:
    r = check_refinement(machine, REFINEMENTS[0])
    assert r.problem is None, str(r.problem)


def test_a_state_that_the_model_cannot_have_is_none_of_its_states() -> None:
    """A transaction that was given up stays open where it began, though the log is cut off before that (QRM-22)."""
    both = active()
    for value in range(SIZES["L"]):
        both.set(put(value))
    both.set(BEGIN)
    both.lose(epoch=2)
    both.replicate(epoch=2, batches=[])
    assert both.state.end < SIZES["L"] < both.state.begun
    assert REFINEMENTS[0].to_model(both.state) is None


# ---- the recording


def altered(change: Callable[[list[dict[str, Any]]], None], path: Path) -> Path:
    lines = [json.loads(line) for line in RECORDING.path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def at(lines: Sequence[dict[str, Any]], op: str, has: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    return next(line for line in lines if line["op"] == op and has(line))


def _answers_early(lines: list[dict[str, Any]]) -> None:
    """A call that waited is answered when it is made."""
    commit = at(lines, "commit", lambda line: len(line["result"]) > 2)
    n = lines.index(commit)
    lines[n - 1]["result"] = commit["result"][-1:]
    commit["result"] = commit["result"][:-1]


def _out_of_order(lines: list[dict[str, Any]]) -> None:
    at(lines, "commit", lambda line: len(line["result"]) > 2)["result"].reverse()


def _standby_writes(lines: list[dict[str, Any]]) -> None:
    refused = at(lines, "write", lambda line: line["result"] and line["result"][0]["outcome"] != "done")
    refused["result"][0]["outcome"] = "done"


def _shows_more(lines: list[dict[str, Any]]) -> None:
    at(lines, "write", lambda line: "state" in line)["state"]["lastStableOffset"] += 1


def _keeps_a_snapshot(lines: list[dict[str, Any]]) -> None:
    at(lines, "commit", lambda line: line["i"] > 9 and "state" in line)["state"]["snapshotEpochs"].insert(0, 3)


def _stays_active(lines: list[dict[str, Any]]) -> None:
    lose = at(lines, "control", lambda line: line["i"] > 9 and "state" in line)
    lose["state"]["claimEpoch"] = 1


def _writes_elsewhere(lines: list[dict[str, Any]]) -> None:
    at(lines, "lead", lambda line: line["i"] > 9)["state"]["nextWriteOffset"] -= 1


@pytest.mark.parametrize(
    "change",
    [
        *(_answers_early, _out_of_order, _standby_writes, _shows_more, _keeps_a_snapshot, _stays_active),
        _writes_elsewhere,
    ],
)
def test_an_altered_recording_is_rejected(change: Callable[[list[dict[str, Any]]], None], tmp_path: Path) -> None:
    assert check(machine, altered(lambda lines: None, tmp_path / "same.ndjson")).verdict == "accepted"
    assert check(machine, altered(change, tmp_path / "altered.ndjson")).verdict == "rejected"


def test_the_answer_that_ends_qrm_d1_is_of_the_memory_before_it(tmp_path: Path) -> None:
    """Kafka 4.3.0 lost a committed record; a write that waited in the queue saw that, and then set the same again."""
    file = tmp_path / "told.history"
    file.write_text(
        "init\n"
        'loadSnapshot offset=0 epoch=0 records=[["version","",30]]\n'
        'replicate epoch=0 batches=[[["set","",0]]]\n'
        "lead epoch=1 queued=[] refused=false -> []\n"
        "lose epoch=2 known=true -> []\n"
        'lead epoch=3 queued=[{"key":"","records":[["set","",0]]}] refused=false -> []\n'
        'commit count=1 -> [{"call":0,"outcome":"done","value":-1}]\n'
    )
    assert check(machine, file).verdict == "accepted"
    file.write_text(file.read_text().replace('"value":-1', '"value":1'))
    assert check(machine, file).verdict == "rejected"
