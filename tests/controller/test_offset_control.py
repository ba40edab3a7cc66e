"""Offsets of the controller: the implementation beside the spec, each rule with values, the models, the recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import find
from kafkaspec.explore.checked import Expectation
from kafkaspec.impl.controller import offset_control as impl
from kafkaspec.impl.controller.offset_control_driver import Driver
from kafkaspec.impl.controller.timeline import SnapshotRegistry
from kafkaspec.judge.check import check
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.lockstep.exhaustive import check_refinement
from kafkaspec.lockstep.walk import walk
from kafkaspec.models.controller import offset_control as model
from kafkaspec.mutants.matrix import (
    check_detector,
    explorer_detector,
    kill_matrix,
    lockstep_detector,
    written,
)
from kafkaspec.proofs.controller.offset_control import PROOFS
from kafkaspec.spec.controller.offset_control import (
    BEGIN_MS,
    KEYS,
    NONE,
    Offsets,
    SnapshotId,
    data_of,
    machine,
    observe,
)
from tests.layers import Histories, a_row_of_verify, some_are_killed

Call = tuple[str, dict[str, Any]]


CALLS = Histories(machine, Driver)
answered, after = CALLS.answered, CALLS.after


def refused(*calls: Call) -> tuple[Offsets, Refused]:
    """The state before the last call and the refusal of it; that call alone is refused."""
    state, answers = answered(*calls)
    assert isinstance(answers[-1], Refused), answers
    assert not any(isinstance(a, Refused) for a in answers[:-1]), answers
    return state, answers[-1]


def append(first: int, *records: str) -> Call:
    return "appendBatch", {"first_offset": first, "records": list(records)}


def replay(first: int, *records: str, epoch: int = 1) -> Call:
    return "commitBatch", {"first_offset": first, "records": list(records), "epoch": epoch, "append_timestamp": 77}


def commit(last: int, epoch: int = 1) -> Call:
    return "handleCommitBatch", {"first_offset": 0, "last_offset": last, "epoch": epoch}


def activate(offset: int) -> Call:
    return "activate", {"new_next_write_offset": offset}


DEACTIVATE: Call = ("deactivate", {})


def begin_load(offset: int, epoch: int = 4) -> Call:
    return "beginLoadSnapshot", {"offset": offset, "epoch": epoch}


END_LOAD: Call = ("endLoadSnapshot", {"timestamp": 5})


def snapshots(state: Offsets) -> dict[int, dict[str, int]]:
    """By offset what each shows."""
    return {offset: data_of(view) for offset, view in state.registry.past.items()}


def test_spec_and_implementation_agree_on_seeded_walks() -> None:
    """They call every operation, and meet every refusal that needs no rare sequence."""
    driver = Driver()
    called: set[str] = set()
    refusals: set[str] = set()
    for seed in range(60):
        found = walk(machine, driver, seed, 100, contracts=seed < 10)
        assert found.failure is None, str(found.failure)
        called |= found.coverage.operations.keys()
        refusals |= {r.rpartition(" ")[2] for r in found.coverage.refusals}
    assert called == machine.operations.keys()
    assert refusals >= {f"OFC-{n}" for n in (3, 5, 6, 12, 13, 14, 15, 16, 17)}


@pytest.mark.clause("OFC-1")
def test_at_first_there_is_a_snapshot_of_nothing() -> None:
    state = refused(("deactivate", {}))[0]
    assert (state.next_write, state.last_committed, state.last_stable, state.transaction_start) == (-1, -1, -1, -1)
    assert snapshots(state) == {-1: {}}
    assert not state.active


@pytest.mark.clause("OFC-2")
@pytest.mark.parametrize(
    ("calls", "last"),
    [
        ((replay(5, "k0"),), replay(5, "k0")),
        ((replay(5, "k0"),), append(6, "k0")),
        ((replay(5, "k0"),), activate(5)),
        ((activate(6),), append(5, "k0")),
        ((activate(6),), replay(6, "k0")),
        ((activate(6), append(6, "k0")), commit(7)),
        ((activate(6), append(6, "k0"), commit(6)), commit(6)),
        ((begin_load(3),), replay(4, "k0")),
        ((begin_load(3),), activate(4)),
        ((), ("loadSnapshotData", {"key": "k0", "value": 0})),
    ],
)
def test_offsets_that_do_not_rise_are_outside_the_contract(calls: tuple[Call, ...], last: Call) -> None:
    step = machine.apply(after(*calls), *last)
    assert isinstance(step, Outside)
    assert step.clause == "OFC-2"


@pytest.mark.clause("OFC-3")
def test_active_if_and_only_if_it_has_a_next_write_offset() -> None:
    state = after(activate(0))
    assert (state.active, state.next_write) == (True, 0)
    assert refused(activate(0), activate(3))[0] == state
    assert "already active" in str(refused(activate(0), activate(3))[1].message)
    unchanged, refusal = refused(activate(-2))
    assert unchanged == after()
    assert refusal.message == "Invalid negative newNextWriteOffset -2."


@pytest.mark.clause("OFC-4")
def test_a_controller_becomes_active_with_a_snapshot_at_the_stable_offset() -> None:
    assert snapshots(after(replay(0, "k0"), activate(1))) == {0: {"k0": 0}}
    # raft committed a part of a batch, so that giving up left none at the stable offset; the next commit heals it
    split = (activate(0), append(0, "k0", "k1"), commit(0), DEACTIVATE)
    state, answers = answered(*split, activate(2))
    assert [a.clause for a in answers if a is not None] == ["OFC-6", "OFC-4"]
    assert not state.active
    gone = (activate(9), commit(5), DEACTIVATE, activate(9))
    state, answers = answered(*gone)
    assert [a.clause for a in answers if a is not None] == ["OFC-6"]
    assert snapshots(state) == {5: {}}


@pytest.mark.clause("OFC-5")
def test_giving_up_goes_back_to_what_is_stable() -> None:
    state = after(
        replay(0, "k0"), activate(1), append(1, "k1"), append(2, "k0"), append(3, "k2"), commit(1), DEACTIVATE
    )
    assert data_of(state.memory) == {"k0": 0, "k1": 1}
    assert snapshots(state) == {1: {"k0": 0, "k1": 1}}
    assert (state.active, state.next_write, state.last_committed) == (False, -1, 1)
    assert refused(DEACTIVATE)[0] == after()


@pytest.mark.clause("OFC-6")
def test_without_a_snapshot_to_go_back_to_giving_up_is_refused() -> None:
    state, refusal = refused(activate(0), append(0, "k0", "k1", "k0"), commit(1), DEACTIVATE)
    assert (state.active, state.last_stable, data_of(state.memory)) == (False, 1, {"k0": 2, "k1": 1})
    assert list(snapshots(state)) == [2]
    assert refusal.message == ("Unable to reset to last stable offset 1. No in-memory snapshot found for this offset.")


@pytest.mark.clause("OFC-7")
def test_an_append_ends_with_a_snapshot() -> None:
    state = after(activate(0), append(0, "k0", "k1"), append(5, "k0"))
    assert state.next_write == 6
    assert snapshots(state) == {-1: {}, 1: {"k0": 0, "k1": 1}, 5: {"k0": 5, "k1": 1}}


@pytest.mark.clause("OFC-8")
def test_a_commit_is_of_a_batch() -> None:
    state = after(activate(0), append(0, "k0"), append(1, "k0"), commit(0, epoch=3))
    assert (state.last_committed, state.committed_epoch, data_of(state.memory)) == (0, 3, {"k0": 1})
    state = after(replay(0, "k0"), replay(1, "k0", "k1", epoch=9))
    assert (state.last_committed, state.committed_epoch) == (2, 9)


@pytest.mark.clause("OFC-9")
def test_an_open_transaction_holds_the_stable_offset_back() -> None:
    calls = (replay(0, "k0"), replay(1, "k1", "begin", "k2"), replay(4, "k3"))
    state = after(*calls)
    assert (state.last_committed, state.last_stable, state.transaction_start) == (4, 1, 2)
    assert after(*calls, replay(5, "end")).last_stable == 5
    active = (activate(0), append(0, "k0"), append(1, "begin"), append(2, "k1"), commit(0), commit(1), commit(2))
    assert after(*active).last_stable == 0


@pytest.mark.clause("OFC-10")
def test_snapshots_below_the_stable_offset_are_gone() -> None:
    appended = (activate(0), append(0, "k0"), append(1, "k1", "k2"), append(3, "k0"))
    assert list(snapshots(after(*appended, commit(2)))) == [2, 3]
    assert list(snapshots(after(*appended, commit(1)))) == [2, 3]  # of an active controller none is taken at 1
    assert list(snapshots(after(*appended, commit(3)))) == [3]
    assert snapshots(after(replay(0, "k0"), replay(1, "k1", "k2"))) == {2: {"k0": 0, "k1": 1, "k2": 2}}
    # a later snapshot was left when giving up was refused; a transaction holds the stable offset below it
    state, answers = answered(
        activate(0), append(0, "k0", "k1"), append(2, "begin"), commit(0), DEACTIVATE, replay(3, "k0")
    )
    assert [a.clause for a in answers if a is not None] == ["OFC-6", "OFC-10"]
    assert (state.last_committed, state.last_stable, list(snapshots(state))) == (3, 1, [1, 2])


@pytest.mark.clause("OFC-11")
def test_a_control_batch_moves_no_offset() -> None:
    calls = (activate(0), append(0, "k0"), commit(0))
    control = ("commitControlBatch", {"offset": 1, "epoch": 8, "append_timestamp": 9})
    before, state = after(*calls), after(*calls, control)
    assert (state.last_committed, state.last_stable, state.registry) == (0, 0, before.registry)
    assert state.committed_epoch == before.committed_epoch
    assert data_of(after(*calls, control, DEACTIVATE).memory) == {"k0": 0}
    assert after(control).last_committed == NONE


@pytest.mark.clause("OFC-12")
def test_a_transaction_begins_with_a_snapshot_of_what_is_before_it() -> None:
    state = after(activate(0), append(0, "k0", "begin", "k1"))
    assert state.transaction_start == 1
    assert snapshots(state) == {-1: {}, 0: {"k0": 0}, 2: {"k0": 0, "k1": 2}}
    state, refusal = refused(replay(0, "begin"), replay(1, "begin"))
    assert state.transaction_start == 0
    assert refusal.message == (
        "Can't replay a BeginTransactionRecord at 1 because the transaction at 0 was never closed."
    )


@pytest.mark.clause("OFC-13")
def test_an_end_keeps_what_was_written() -> None:
    state = after(replay(0, "begin", "k0"), replay(2, "end", "k1"))
    assert (state.transaction_start, data_of(state.memory), state.last_stable) == (-1, {"k0": 1, "k1": 3}, 3)
    unchanged, refusal = refused(replay(0, "end"))
    assert unchanged == after()
    assert refusal.clause == "OFC-13"


@pytest.mark.clause("OFC-14")
def test_an_abort_undoes_what_was_written() -> None:
    state = after(
        activate(0), append(0, "k0"), append(1, "k1", "begin", "k0"), append(4, "k2"), append(5, "abort", "k3")
    )
    assert (state.transaction_start, data_of(state.memory)) == (-1, {"k0": 0, "k1": 1, "k3": 6})
    assert list(snapshots(state)) == [-1, 0, 1, 6]
    assert refused(replay(0, "abort"))[1].clause == "OFC-14"
    # the transaction outlived its records, and the snapshot from before it went with them
    outlived = (activate(0), append(0, "k0"), append(1, "begin"), DEACTIVATE, replay(0, "abort"))
    state, refusal = refused(*outlived)
    assert state.transaction_start == 1
    assert refusal.message == "No in-memory snapshot for epoch 0. Snapshot epochs are: -1"


@pytest.mark.clause("OFC-15")
@pytest.mark.parametrize("kind", ["begin", "end", "abort"])
def test_a_raft_snapshot_has_no_markers(kind: str) -> None:
    state, refusal = refused(begin_load(3), ("replayInSnapshot", {"kind": kind}))
    assert state == after(begin_load(3))
    assert refusal.message == f"{kind.capitalize()}TransactionRecord cannot appear within a snapshot."


@pytest.mark.clause("OFC-16")
@pytest.mark.parametrize("calls", [(), (replay(0, "k0", "begin"),), (activate(0), append(0, "k0", "begin"))])
def test_before_a_raft_snapshot_is_loaded_all_is_forgotten(calls: tuple[Call, ...]) -> None:
    state = after(*calls, begin_load(12, 3))
    assert (state.next_write, state.last_committed, state.committed_epoch, state.last_stable) == (-1, -1, -1, -1)
    assert (state.transaction_start, snapshots(state), data_of(state.memory)) == (-1, {}, {})
    assert state.loading == SnapshotId(12, 3)
    assert observe(state).current_snapshot_name == "00000000000000000012-0000000003"
    assert refused(*calls, begin_load(12, 3), begin_load(13))[1].message == (
        "Can't begin reading snapshot for OffsetAndEpoch[offset=13, epoch=4], "
        "because we are already reading OffsetAndEpoch[offset=12, epoch=3]"
    )


@pytest.mark.clause("OFC-17")
def test_a_raft_snapshot_that_was_loaded_is_committed_and_stable() -> None:
    load = ("loadSnapshotData", {"key": "s", "value": 8})
    state = after(replay(0, "begin"), begin_load(12, 3), load, END_LOAD)
    assert (state.last_committed, state.committed_epoch, state.last_stable) == (12, 3, 12)
    assert (state.transaction_start, snapshots(state), state.loading) == (-1, {12: {"s": 8}}, None)
    assert refused(END_LOAD)[0] == after()


@pytest.mark.clause("OFC-18")
def test_what_is_refused_ends_the_call() -> None:
    state, refusal = refused(activate(0), append(0, "k0", "begin", "k1", "begin", "k2"))
    assert refusal.clause == "OFC-12"
    assert (state.next_write, state.transaction_start, data_of(state.memory)) == (0, 1, {"k0": 0, "k1": 2})
    assert list(snapshots(state)) == [-1, 0]


@pytest.mark.clause("OFC-19")
def test_a_standby_has_what_the_active_controller_has() -> None:
    batches = [("k0",), ("k1", "begin", "k0"), ("k2", "abort", "k3"), ("begin", "k1", "end"), ("k0", "begin")]
    active, standby, first = [activate(0)], list[Call](), 0
    for batch in batches:
        active += [append(first, *batch), commit(first + len(batch) - 1)]
        standby.append(replay(first, *batch))
        first += len(batch)
    for n in range(1, len(batches) + 1):
        a, b = after(*active[: 2 * n + 1]), after(*standby[:n])
        assert (a.last_committed, a.last_stable, a.transaction_start) == (
            b.last_committed,
            b.last_stable,
            b.transaction_start,
        )
        assert a.memory == b.memory
        assert snapshots(a)[a.last_stable] == snapshots(b)[b.last_stable]
    state, refusal = refused(replay(0, "k0", "end", "k1"))
    assert refusal.clause == "OFC-13"
    assert (state.last_committed, data_of(state.memory)) == (-1, {"k0": 0})


@pytest.mark.clause("OFC-20")
def test_metrics() -> None:
    calls: list[Call] = [("advance", {"ms": 3}), activate(0), append(0, "k0"), append(1, "k1"), commit(0)]
    metrics = after(*calls).metrics
    assert (metrics.active, metrics.last_applied, metrics.last_committed) == (True, 1, 0)
    assert metrics.last_applied_timestamp == BEGIN_MS + 3
    metrics = after(*calls, DEACTIVATE).metrics
    assert (metrics.active, metrics.last_applied, metrics.last_applied_timestamp) == (False, 0, BEGIN_MS + 3)
    assert after(*calls, begin_load(3)).metrics == after(*calls).metrics
    metrics = after(*calls, begin_load(3), END_LOAD).metrics
    assert (metrics.active, metrics.last_applied, metrics.last_committed) == (True, 3, 3)
    assert metrics.last_applied_timestamp == 5
    metrics = after(replay(0, "begin", "k0")).metrics
    assert (metrics.last_applied, metrics.last_committed, metrics.last_applied_timestamp) == (1, 1, 77)
    metrics = after(("commitControlBatch", {"offset": 4, "epoch": 8, "append_timestamp": 9})).metrics
    assert (metrics.last_applied, metrics.last_committed, metrics.last_applied_timestamp) == (4, 4, 9)


@pytest.mark.clause("OFC-21")
def test_a_transaction_that_is_closed_in_memory_is_stable_in_part() -> None:
    """Its end is handed to raft, and not committed: a reader sees its first record."""
    state = after(activate(0), append(0, "begin", "k0"), append(2, "k1"), append(3, "end"), commit(1))
    assert (state.last_stable, snapshots(state)[1]) == (1, {"k0": 1})


@pytest.mark.clause("OFC-22")
def test_a_transaction_outlives_the_controller_that_gave_up_within_it() -> None:
    """Of three records two are committed, and both are gone; or none is, and the transaction is open all the same."""
    state = after(activate(0), append(0, "begin"), append(1, "k0"), append(2, "k1"), commit(1), DEACTIVATE)
    assert (state.last_committed, state.last_stable, data_of(state.memory)) == (1, -1, {})
    assert state.transaction_start == 0
    state, refusal = refused(activate(0), append(0, "begin"), DEACTIVATE, replay(0, "begin", epoch=2))
    assert (refusal.clause, state.transaction_start, state.last_committed) == ("OFC-12", 0, -1)


@pytest.mark.clause("OFC-23")
def test_the_snapshot_at_the_stable_offset_may_show_what_came_later() -> None:
    """A transaction at 3 of which no record is left; four records of another leader are committed instead."""
    state = after(
        activate(0),
        append(0, "k0"),
        append(3, "begin"),
        DEACTIVATE,
        replay(0, "k0", "k1", "k2", "k3", "k0", epoch=2),
    )
    assert (state.last_committed, state.last_stable) == (4, 2)
    assert snapshots(state) == {2: {"k0": 4, "k1": 1, "k2": 2, "k3": 3}}


def test_keys_are_those_of_the_recordings() -> None:
    control = impl.OffsetControl(SnapshotRegistry(), lambda: 0)
    assert control.registry.epochs == [NONE]
    assert [*KEYS] == sorted(KEYS)


# models, proofs, mutants, recordings

FAULTS = written(find("offset_control"))


def test_some_written_mutants_are_killed() -> None:
    some_are_killed(find("offset_control"), FAULTS, 7, (lockstep_detector(6), lockstep_detector()))


@pytest.mark.deep
def test_written_mutants_are_killed() -> None:
    """One of them by a recording alone."""
    rows = kill_matrix(find("offset_control"), FAULTS, [lockstep_detector(), check_detector(), explorer_detector()])
    assert [row.wrong for row in rows if row.wrong] == []


@a_row_of_verify
@pytest.mark.parametrize(("n", "states"), [(2, 135), (3, 644)])
def test_the_spec_does_what_the_model_says(n: int, states: int) -> None:
    (how,) = (how for how in find("offset_control").refinements if how.sizes["N"] == n)
    done = check_refinement(machine, how)
    assert done.problem is None, str(done.problem)
    assert done.states == done.reachable == states


@a_row_of_verify
@pytest.mark.parametrize("checked", model.MODELS, ids=lambda c: str(c.sizes))
def test_a_model_is_explored(checked: Expectation) -> None:
    assert checked.run().findings == []


@a_row_of_verify
def test_the_model_is_proved_for_every_size() -> None:
    (proof,) = PROOFS
    proved = proof.run()
    assert [f"{o.verdict}: {o.action} keeps {o.claim}" for o in proved.obligations if o.verdict != "proved"] == []
    assert proved.complete


RECORDINGS = find("offset_control").recordings


@a_row_of_verify
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.file)
def test_recordings_get_their_verdict(recording: Recording) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


TRACE = next(r for r in RECORDINGS if r.file == "offset-control.ndjson")


@pytest.mark.parametrize(
    ("at", "field", "value", "clause"),
    [
        (26, "snapshotEpochs", [10, 11], "OFC-5"),
        (26, "data", {"k1": 11, "k3": 10, "s": 6}, "OFC-5"),
        (27, "lastStableOffset", 11, "OFC-9"),
        (25, "lastCommittedOffset", 9, "OFC-8"),
        (43, "data", {"k0": 19, "k1": 16, "k2": 28, "k3": 13, "s": 6}, "OFC-14"),
        (17, "transactionStartOffset", -1, "OFC-12"),
        (17, "snapshotEpochs", [6], "OFC-7"),
        (8, "currentSnapshotName", "3-2", "OFC-16"),
        (9, "lastStableOffset", -1, "OFC-17"),
        (8, "metricActive", False, "OFC-20"),
        (315, "transactionStartOffset", -1, "OFC-22"),
        (19, "lastStableOffset", 6, "OFC-21"),
    ],
)
def test_altered_recordings_are_rejected(at: int, field: str, value: Any, clause: str, tmp_path: Path) -> None:
    records = [orjson.loads(line) for line in TRACE.path.read_bytes().splitlines()[: at + 1]]
    assert records[at]["state"][field] != value
    records[at]["state"][field] = value
    file = tmp_path / "altered.ndjson"
    file.write_bytes(b"\n".join(map(orjson.dumps, records)))
    verdict = check(machine, file)
    assert (verdict.verdict, verdict.step) == ("rejected", at)
    assert verdict.clause in {clause, *machine.find(records[at]["op"]).clauses}


def test_a_refusal_that_is_left_out_is_rejected(tmp_path: Path) -> None:
    records = [orjson.loads(line) for line in TRACE.path.read_bytes().splitlines()[:5]]
    assert records[4].pop("error")
    records[4]["result"] = None
    file = tmp_path / "altered.ndjson"
    file.write_bytes(b"\n".join(map(orjson.dumps, records)))
    verdict = check(machine, file)
    assert (verdict.verdict, verdict.step, verdict.clause) == ("rejected", 4, "OFC-13")
