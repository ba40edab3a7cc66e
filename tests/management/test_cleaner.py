"""The log cleaner's manager: impl against spec and models, and the checkpoint file through every crash."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.contract import subsystem
from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.explore.engine import explore
from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.management import cleaner as impl
from kafkaspec.impl.management import cleaner_driver
from kafkaspec.impl.management.checkpoints import TopicPartition
from kafkaspec.lockstep.exhaustive import check_refinement
from kafkaspec.models.management.cleaner import MODELS
from kafkaspec.proofs.management.cleaner import PROOFS
from kafkaspec.prove.proof import Proof
from kafkaspec.spec.common.cleaner_state import Cleaner
from kafkaspec.spec.common.cleaner_world import CLOCKS_FROM_MS, WALL_CLOCK_MS
from kafkaspec.spec.common.cleaning_state import EVENTS, Aborted, Cleaning, InProgress, NoMove, Paused, moved
from kafkaspec.spec.common.kafka import LONG_MAX
from kafkaspec.spec.management import cleaner as spec
from kafkaspec.spec.management import cleaner_trial
from kafkaspec.spec.management.cleaner import machine
from tests.layers import Beside, a_row_of_verify, abstracts, walked

# ---- the layers beside each other


def test_long_walks_cover_every_operation() -> None:
    covered = walked(machine, cleaner_driver.Driver, seeds=30, steps=150)
    assert {"doneCleaning CLN-15", "abortCleaning CLN-11", "checkCleaningAborted CLN-17"} <= covered.refusals.keys()


@given(st.data())
def test_abstraction_is_the_whole_state(data: st.DataObject) -> None:
    abstracts(data, machine, cleaner_driver.Driver(), cleaner_driver.Driver.state)


@a_row_of_verify
def test_spec_and_model_agree_in_every_state() -> None:
    for how in subsystem.find("cleaner").refinements:
        compared = check_refinement(machine, how)
        assert compared.problem is None, str(compared.problem)
        assert compared.states == compared.reachable


@pytest.mark.deep
def test_spec_and_model_agree_in_every_state_of_two_partitions() -> None:
    compared = check_refinement(machine, cleaner_trial.refinement(cleaner_trial.TWO_SIZES))
    assert compared.problem is None, str(compared.problem)
    assert compared.states == compared.reachable == 6400


@a_row_of_verify
@pytest.mark.parametrize("checked", MODELS, ids=lambda c: f"{c.model.__name__}-{c.distinct}")
@pytest.mark.clause("CLN-20")
@pytest.mark.clause("CLN-21")
@pytest.mark.clause("CLN-22")
@pytest.mark.clause("CLN-23")
@pytest.mark.clause("CLN-33")
def test_models_are_explored_as_pinned(checked: Any) -> None:
    assert checked.run().why == ""


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
@pytest.mark.clause("CLN-20")
@pytest.mark.clause("CLN-21")
def test_proofs_hold_for_every_size(proof: Proof) -> None:
    proved = proof.run()
    assert proved.complete, proved.summary()


@pytest.mark.deep
def test_every_claim_and_lemma_holds_of_two_partitions() -> None:
    """With its ghosts; before it is proved one partition is explored."""
    explored = {"Partition": 2, "Thread": 1, "User": 2, "N": 2, "D": 1}
    found = explore(PROOFS[0].loaded, explored, ghosts=True, liveness=False, deadlock=True)
    assert (found.outcome, found.distinct) == ("complete", 1_114_680)


# ---- histories


BESIDE = Beside(machine, cleaner_driver.Driver)


def run(*calls: tuple[str, dict[str, Any]], begin: Cleaner | None = None) -> tuple[Cleaner, list[Any]]:
    """The state after some calls, and their answers; of the implementation too."""
    state, answers = begin or BESIDE.initial(), []
    for name, arguments in calls:
        op = machine.find(name)
        step = BESIDE.call(state, name, {op.parameters[k]: v for k, v in arguments.items()})
        state = step.state
        answers.append(step.result)
    return state, answers


def grab(state: Cleaner) -> tuple[Cleaner, Any]:
    step = BESIDE.call(state, "grabFilthiestCompactedLog", {"chosen": spec.filthiest(state)[0]})
    return step.state, step.result


def dirty(partition: str, level: int, first: int = -1) -> tuple[str, dict[str, Any]]:
    """`level` of a hundred parts of a log are dirty; of none, one part is not stable."""
    segments = [
        {"baseOffset": 0, "size": 100 - level},
        {"baseOffset": 1, "size": level or 1, "firstBatchTimestamp": first, "largestTimestamp": first},
        {"baseOffset": 2, "size": 0},
    ]
    stable = 2 if level else 1
    log = {"logStartOffset": 1, "logEndOffset": 2, "lastStableOffset": stable, "segments": segments}
    return "logChanged", {"partition": partition, "log": log}


@pytest.mark.clause("CLN-1")
def test_a_state_moves_as_its_clause_says_and_in_no_other_way() -> None:
    before: list[Cleaning] = [None, InProgress(), Aborted(), Paused(1), Paused(2)]
    moves = {(b, after) for b in before for e in EVENTS if not isinstance(after := moved(b, e), NoMove)}
    assert moves == {
        *((None, after) for after in (InProgress(), Paused(1))),
        *((InProgress(), after) for after in (None, Aborted())),
        (Aborted(), Paused(1)),
        *((Paused(1), after) for after in (Paused(2), None)),
        *((Paused(2), after) for after in (Paused(3), Paused(1))),
    }


@pytest.mark.clause("CLN-2")
@pytest.mark.clause("CLN-3")
@pytest.mark.clause("CLN-4")
def test_the_filthiest_is_grabbed_even_before_an_overdue_one() -> None:
    overdue = 1_000_000 - 6000
    state, _ = run(dirty("c-0", 60), dirty("c-1", 10, first=overdue))
    state, result = grab(state)
    assert result["log"]["partition"] == "c-0"
    assert (result["cleanablePartitions"], result["delayedPartitions"], result["maxCompactionDelayMs"]) == (2, 1, 1000)
    state, result = grab(state)
    assert result["log"]["partition"] == "c-1"
    assert result["log"]["needCompactionNow"] is True
    assert grab(state)[1]["log"] is None


@pytest.mark.clause("CLN-3")
def test_the_minimum_ratio_itself_is_not_enough() -> None:
    assert grab(run(dirty("c-0", 50))[0])[1]["log"] is None
    assert grab(run(dirty("c-0", 51))[0])[1]["log"]["cleanableRatio"] == 0.51


@pytest.mark.clause("CLN-5")
def test_a_segment_in_which_the_dirty_part_begins_counts_twice() -> None:
    state, _ = run(("append", {"partition": "c-0", "key": "k", "count": 5, "thenHighWatermark": "logEndOffset"}))
    _, (found,) = run(("logToClean", {"partition": "c-0", "lastCleanOffset": 1}), begin=state)
    assert (found["cleanBytes"], found["cleanableBytes"]) == (144, 288)


@pytest.mark.clause("CLN-6")
@pytest.mark.clause("CLN-7")
def test_an_overdue_log_is_reported_though_nothing_of_it_can_be_cleaned() -> None:
    _, result = grab(run(dirty("c-1", 0, first=1_000_000 - 5001))[0])
    assert result == {"log": None, "cleanablePartitions": 0, "delayedPartitions": 1, "maxCompactionDelayMs": 1}


@pytest.mark.clause("CLN-34")
def test_the_gauge_counts_what_could_be_cleaned_of_known_logs() -> None:
    marks = [("markPartitionUncleanable", {"dir": "dir0", "partition": p}) for p in ("c-0", "c-1")]
    gauge = ("uncleanableBytes", {"dir": "dir0"})
    state, answers = run(dirty("c-0", 60), dirty("c-1", 10), gauge, *marks, gauge)
    assert (answers[2], answers[-1]) == (0, 70)
    assert run(("forgetLog", {"partition": "c-1"}), gauge, begin=state)[1][-1] == 60
    assert run(("updateCheckpoints", {"dir": "dir1", "update": "c-0", "offset": 2}), gauge, begin=state)[1][-1] == 10


def of_three_segments(
    largest: tuple[int, int] = (1, 1), first: tuple[int, int] = (1, 1), stable: int = 9
) -> tuple[str, dict[str, Any]]:
    """cd-0 from offset 2 to 9, in segments at 0, 3 and 6, the first two with these timestamps; its cleaner leaves alone
    what is not older than 2000 ms, and the time is 1000000."""
    segments: list[dict[str, int]] = [
        {"baseOffset": base, "size": 30, "largestTimestamp": max(of, at), "firstBatchTimestamp": at}
        for base, of, at in zip((0, 3), largest, first, strict=True)
    ]
    segments.append({"baseOffset": 6, "size": 30})
    log = {"logStartOffset": 2, "logEndOffset": 9, "lastStableOffset": stable, "segments": segments}
    return "logChanged", {"partition": "cd-0", "log": log}


@pytest.mark.clause("CLN-34")
@pytest.mark.parametrize(
    ("largest", "bytes_"),
    [
        (CLOCKS_FROM_MS - 2000, 30),
        (CLOCKS_FROM_MS - 1999, None),
        (WALL_CLOCK_MS - 2000, None),
        (WALL_CLOCK_MS - 1999, 0),
    ],
)
def test_the_gauge_is_asked_for_only_where_the_machines_clock_does_not_matter(largest: int, bytes_: int | None) -> None:
    """The released gauge asks the machine's clock, not the manager's."""
    state, _ = run(
        of_three_segments((largest, 2**61)), ("markPartitionUncleanable", {"dir": "dir0", "partition": "cd-0"})
    )
    step = machine.apply(state, "uncleanableBytes", {"dir": "dir0"})
    assert (None if isinstance(step, Outside) else step.result) == bytes_


@pytest.mark.clause("CLN-9")
@pytest.mark.parametrize(
    ("checkpoint", "dirty", "force"),
    [(None, 2, False), (1, 2, True), (2, 2, False), (5, 5, False), (9, 9, False), (10, 2, True)],
)
def test_the_checkpoint_counts_from_the_log_start_to_the_log_end(
    checkpoint: int | None, dirty: int, force: bool
) -> None:
    _, (_, found) = run(of_three_segments(), ("cleanableOffsets", {"partition": "cd-0", "lastCleanOffset": checkpoint}))
    assert (found["firstDirtyOffset"], found["forceUpdateCheckpoint"]) == (dirty, force)


@pytest.mark.clause("CLN-8")
@pytest.mark.parametrize(
    ("stable", "largest", "checkpoint", "uncleanable"),
    [
        (9, (1, 1), 2, 6),  # the active segment
        (6, (1, 1), 2, 6),
        (5, (1, 1), 2, 5),  # what is not stable
        (3, (1, 1), 5, 5),  # not below the first dirty offset
        (9, (1, 998_000), 2, 6),
        (9, (1, 998_001), 2, 3),  # a young segment
        (4, (1, 998_001), 2, 3),
        (2, (1, 998_001), 2, 2),
        (9, (998_001, 1), 2, 2),
        (9, (998_001, 998_001), 4, 4),
        (9, (998_001, 1), 4, 6),  # before the first dirty offset none is young
    ],
)
def test_cleaning_ends_before_what_is_unstable_active_or_young(
    stable: int, largest: tuple[int, int], checkpoint: int, uncleanable: int
) -> None:
    asked = ("cleanableOffsets", {"partition": "cd-0", "lastCleanOffset": checkpoint})
    _, (_, found) = run(of_three_segments(largest, stable=stable), asked)
    assert found["firstUncleanableDirtyOffset"] == uncleanable


@pytest.mark.clause("CLN-7")
@pytest.mark.parametrize(
    ("first", "checkpoint", "delay_ms"),
    [
        ((995_000, 995_000), 2, 0),
        ((994_999, 995_000), 2, 1),
        ((995_000, 994_990), 2, 10),
        ((0, 994_990), 2, 10),
        ((-1, -1), 2, 0),
        ((1, 995_000), 2, 994_999),
        ((1, 995_000), 4, 0),
        ((1, 1), 6, 0),
    ],
)
def test_a_delay_is_counted_from_the_earliest_positive_timestamp(
    first: tuple[int, int], checkpoint: int, delay_ms: int
) -> None:
    asked = ("logToClean", {"partition": "cd-0", "lastCleanOffset": checkpoint})
    _, (_, found) = run(of_three_segments((1, 1), first), asked)
    assert (found["compactionDelayMs"], found["needCompactionNow"]) == (delay_ms, delay_ms > 0)


@pytest.mark.clause("CLN-8")
@pytest.mark.clause("CLN-9")
def test_cleaning_begins_within_the_log_and_ends_before_what_is_unstable() -> None:
    state, _ = run(("append", {"partition": "c-0", "key": "k", "count": 5, "thenHighWatermark": None}))
    asked = ("cleanableOffsets", {"partition": "c-0", "lastCleanOffset": 6})
    _, (found,) = run(asked, begin=state)
    assert found == {"firstDirtyOffset": 0, "firstUncleanableDirtyOffset": 0, "forceUpdateCheckpoint": True}


@pytest.mark.clause("CLN-8")
def test_a_log_start_above_the_active_segment_is_no_error() -> None:
    state, _ = run(
        ("append", {"partition": "c-0", "key": "k", "count": 6, "thenHighWatermark": "logEndOffset"}),
        ("maybeIncrementLogStartOffset", {"partition": "c-0", "offset": 6}),
    )
    _, (found,) = run(("cleanableOffsets", {"partition": "c-0", "lastCleanOffset": 2}), begin=state)
    assert found == {"firstDirtyOffset": 6, "firstUncleanableDirtyOffset": 6, "forceUpdateCheckpoint": True}


@pytest.mark.clause("CLN-10")
def test_a_bad_checkpoint_is_fixed_though_the_log_is_not_cleaned() -> None:
    state, _ = run(("updateCheckpoints", {"dir": "dir0", "update": "c-0", "offset": 7}))
    state, result = grab(state)
    assert result["log"] is None
    assert state.checkpoints["dir0"] == {"c-0": 0}


@pytest.mark.clause("CLN-11")
@pytest.mark.clause("CLN-12")
@pytest.mark.clause("CLN-14")
def test_a_waiter_returns_with_the_pause_and_others_hold_theirs() -> None:
    state, _ = grab(run(dirty("c-0", 60))[0])
    pause, resume = ("abortAndPauseCleaning", {"partition": "c-0"}), ("resumeCleaning", {"partition": "c-0"})
    state, answers = run(pause, pause, ("doneCleaning", {"partition": "c-0", "endOffset": 2}), pause, begin=state)
    assert answers[0] == {"blocked": True}
    assert isinstance(answers[1], Refused)
    assert answers[2:] == [{"released": "abortAndPauseCleaning"}, {"blocked": False}]
    assert state.state("c-0") == Paused(2)
    assert run(resume, resume, begin=state)[0].state("c-0") is None


@pytest.mark.clause("CLN-13")
def test_an_abort_leaves_nothing_behind() -> None:
    state, answers = run(("deletableLogs", {}), ("abortCleaning", {"partition": "c-0"}))
    assert answers == [["c-0", "c-1", "cd-0"], {"blocked": True}]
    state, answers = run(("doneDeleting", {"partition": "c-0"}), begin=state)
    assert answers == [{"released": "abortCleaning"}]
    assert state.state("c-0") is None


@pytest.mark.clause("CLN-15")
def test_an_aborted_cleaning_is_not_checkpointed() -> None:
    state, _ = grab(run(dirty("c-0", 60))[0])
    done = ("doneCleaning", {"partition": "c-0", "endOffset": 2})
    assert run(done, begin=state)[0].checkpoints["dir0"] == {"c-0": 2}
    assert run(("abortCleaning", {"partition": "c-0"}), done, begin=state)[0].checkpoints["dir0"] == {}


@pytest.mark.clause("CLN-16")
def test_a_deletion_ends_as_a_cleaning_does_without_a_checkpoint() -> None:
    """Nothing is done that was not begun."""
    begun: tuple[tuple[str, dict[str, Any]], ...] = (
        ("updateCheckpoints", {"dir": "dir0", "update": "c-1", "offset": 7}),
        ("deletableLogs", {}),
        ("abortAndPauseCleaning", {"partition": "c-1"}),
    )
    done = [("doneDeleting", {"partition": partition}) for partition in ("c-0", "c-1")]
    taken, _ = run(*begun)
    assert [taken.state(p) for p in ("c-0", "c-1", "cd-0")] == [InProgress(), Aborted(), InProgress()]
    ended, answers = run(*done, begin=taken)
    assert [ended.state(p) for p in ("c-0", "c-1", "cd-0")] == [None, Paused(1), InProgress()]
    assert answers == [{"released": None}, {"released": "abortAndPauseCleaning"}]
    assert ended.checkpoints == taken.checkpoints == {"dir0": {"c-1": 7}, "dir1": {}}
    again, (refused,) = run(done[0], begin=ended)
    assert isinstance(refused, Refused)
    assert again == ended


@pytest.mark.clause("CLN-17")
def test_only_an_abort_throws() -> None:
    check = ("checkCleaningAborted", {"partition": "c-0"})
    state, _ = run(("deletableLogs", {}))
    assert run(check, begin=state)[1] == [None]
    _, answers = run(("abortCleaning", {"partition": "c-0"}), check, begin=state)
    assert answers[1] == spec.STOPPED


@pytest.mark.clause("CLN-18")
@pytest.mark.clause("CLN-19")
@pytest.mark.clause("CLN-24")
def test_retention_and_cleaners_take_what_is_theirs_and_free() -> None:
    _state, answers = run(
        ("pauseCleaningForNonCompactedPartitions", {}),
        ("updateConfig", {"partition": "d-0", "policy": "compact"}),
        ("markPartitionUncleanable", {"dir": "dir0", "partition": "c-0"}),
        ("markPartitionUncleanable", {"dir": "dir0", "partition": "c-1"}),
        ("deletableLogs", {}),
    )
    assert answers[0] == ["d-0"]
    assert answers[-1] == ["c-1", "cd-0"]


@pytest.mark.clause("CLN-25")
@pytest.mark.clause("CLN-26")
@pytest.mark.clause("CLN-30")
def test_unknown_partitions_are_dropped_and_ambiguous_ones_stop_everything() -> None:
    state, _ = run(
        dirty("c-1", 95),
        ("markPartitionUncleanable", {"dir": "dir0", "partition": "c-0"}),
        ("updateCheckpoints", {"dir": "dir0", "update": "c-0", "offset": 1}),
        ("updateCheckpoints", {"dir": "dir1", "update": "c-0", "offset": 2}),
    )
    assert grab(state)[1]["log"] is None
    forget = ("forgetLog", {"partition": "c-0"})
    state, _ = run(forget, ("updateCheckpoints", {"dir": "dir1"}), ("maintainUncleanablePartitions", {}), begin=state)
    assert state.checkpoints == {"dir0": {"c-0": 1}, "dir1": {}}
    assert state.uncleanable["dir0"] == frozenset()
    assert grab(state)[1]["log"]["partition"] == "c-1"


@pytest.mark.clause("CLN-26")
def test_an_update_sets_or_removes_one_entry_and_drops_unknown_ones() -> None:
    def update(**of: Any) -> tuple[str, dict[str, Any]]:
        return "updateCheckpoints", {"dir": "dir0", **of}

    three = [update(update=p, offset=n) for p, n in (("c-0", 5), ("c-1", 7), ("d-0", 9))]
    state, _ = run(*three, ("updateCheckpoints", {"dir": "dir1", "update": "cd-0", "offset": 1}))
    for calls, entries in (
        ([update(remove="c-0")], {"c-1": 7, "d-0": 9}),
        ([update(remove="cd-0")], {"c-0": 5, "c-1": 7, "d-0": 9}),
        ([update(update="c-0", offset=0)], {"c-0": 0, "c-1": 7, "d-0": 9}),
        ([update(update="c-0", offset=1, remove="c-0")], {"c-0": 1, "c-1": 7, "d-0": 9}),
        ([update(update="c-0", offset=1, remove="c-1")], {"c-0": 1, "d-0": 9}),
        ([("forgetLog", {"partition": "c-1"})], {"c-0": 5, "c-1": 7, "d-0": 9}),
        ([("forgetLog", {"partition": "c-1"}), update()], {"c-0": 5, "d-0": 9}),
        ([("forgetLog", {"partition": "c-1"}), update(update="c-1", offset=8)], {"c-0": 5, "c-1": 8, "d-0": 9}),
    ):
        assert run(*calls, begin=state)[0].checkpoints == {"dir0": entries, "dir1": {"cd-0": 1}}


@pytest.mark.clause("CLN-27")
@pytest.mark.parametrize(
    ("partition", "offset", "entry"),
    [("c-0", 3, 3), ("c-0", 4, 4), ("c-0", 5, 5), ("c-0", 6, 5), ("c-1", 3, None), ("d-0", 3, 5), ("c-0 gone", 3, 5)],
)
def test_a_truncation_lowers_an_entry_and_raises_none(partition: str, offset: int, entry: int | None) -> None:
    """An entry not above the offset stays, and none is made. That of a log without compact, or of one that the manager
    does not know, stays whatever the offset is."""
    partition, _, gone = partition.partition(" ")
    calls: list[tuple[str, dict[str, Any]]] = []
    if entry is not None:
        calls.append(("updateCheckpoints", {"dir": "dir0", "update": partition, "offset": 5}))
    if gone:
        calls.append(("forgetLog", {"partition": partition}))
    before, _ = run(*calls)
    lower = ("maybeTruncateCheckpoint", {"dir": "dir0", "partition": partition, "offset": offset})
    after, _ = run(lower, begin=before)
    assert after.checkpoints == {"dir0": {} if entry is None else {partition: entry}, "dir1": {}}


@pytest.mark.clause("CLN-28")
@pytest.mark.clause("CLN-29")
def test_checkpoints_are_lowered_moved_and_left_alone_after_a_failure() -> None:
    update = ("updateCheckpoints", {"dir": "dir0", "update": "c-0", "offset": 5})
    lower = ("maybeTruncateCheckpoint", {"dir": "dir0", "partition": "c-0", "offset": 3})
    move = ("alterCheckpointDir", {"partition": "c-0", "source": "dir0", "dest": "dir1"})
    fail = ("handleLogDirFailure", {"dir": "dir0"})
    mark = ("markPartitionUncleanable", {"dir": "dir0", "partition": "c-0"})
    assert run(update, lower)[0].checkpoints["dir0"] == {"c-0": 3}
    moved, _ = run(update, mark, move)
    assert moved.checkpoints == {"dir0": {}, "dir1": {"c-0": 5}}
    assert moved.uncleanable == {"dir0": frozenset(), "dir1": frozenset({"c-0"})}
    assert run(update, fail, lower, move)[0].checkpoints == {"dir0": {"c-0": 5}, "dir1": {}}


@pytest.mark.clause("CLN-32")
def test_a_log_grows_by_batches_and_rolls_when_full() -> None:
    state, answers = run(("append", {"partition": "c-0", "key": "k", "count": 3, "thenHighWatermark": None}))
    log = state.logs["c-0"]
    assert answers == [3]
    assert [(s.base_offset, s.size) for s in log.segments] == [(0, 144), (2, 72)]
    assert (log.log_end_offset, log.last_stable_offset) == (3, 0)


@pytest.mark.clause("CLN-32")
@pytest.mark.parametrize(("end", "bases"), [(2**31 - 1, [0]), (2**31, [0, 2**31])])
def test_a_segment_is_rolled_before_an_offset_lies_too_far_above_its_base(end: int, bases: list[int]) -> None:
    active = {"baseOffset": 0, "size": 72, "largestTimestamp": 1_000_000, "firstBatchTimestamp": 1_000_000}
    extent = {"logStartOffset": 0, "logEndOffset": end, "lastStableOffset": 0, "segments": [active]}
    change = "logChanged", {"partition": "c-0", "log": extent}
    appended = "append", {"partition": "c-0", "key": "k", "count": 1}
    state, answers = run(change, appended)
    assert [s.base_offset for s in state.logs["c-0"].segments] == bases
    assert answers[-1] == end + 1
    driver = cleaner_driver.Driver()
    driver.reset({})
    for name, arguments in (change, appended):
        op = machine.find(name)
        driver.apply(name, {**op.defaults, **{op.parameters[k]: v for k, v in arguments.items()}})
    assert driver.observe() == machine.observe(state)


@pytest.mark.clause("CLN-32")
def test_an_empty_segment_that_would_be_rolled_is_no_case() -> None:
    """Kafka 4.3.0 rolls it, and takes the time at which its file was changed for its largest timestamp."""
    extent = {"logStartOffset": 0, "logEndOffset": 2**31, "lastStableOffset": 0, "segments": [{"baseOffset": 0}]}
    state, _ = run(("logChanged", {"partition": "c-0", "log": extent}))
    said = machine.apply(state, "append", {"partition": "c-0", "key": "k", "count": 1, "then_high_watermark": None})
    assert isinstance(said, Outside)
    assert said.clause == "CLN-32"


def test_ties_are_free_and_nothing_else_is() -> None:
    state, _ = run(dirty("c-0", 60), dirty("cd-0", 60))
    assert spec.filthiest(state) == ["c-0", "cd-0"]
    assert isinstance(machine.apply(state, "grabFilthiestCompactedLog", {"chosen": "c-1"}), Outside)


# ---- directories

P = TopicPartition("orders", 0)


@pytest.mark.clause("CLN-31")
def test_a_restart_forgets_all_but_the_checkpoints() -> None:
    update = ("updateCheckpoints", {"dir": "dir0", "update": "c-0", "offset": 5})
    mark = ("markPartitionUncleanable", {"dir": "dir0", "partition": "c-0"})
    state, _ = run(update, mark, ("deletableLogs", {}), ("restart", {}))
    assert state.checkpoints["dir0"] == {"c-0": 5}
    assert (state.cleaning, state.uncleanable["dir0"]) == ({}, frozenset())


@pytest.mark.clause("CLN-29")
def test_an_unreadable_directory_is_reported_and_the_manager_goes_on() -> None:
    disk = SimulatedDisk()
    manager = impl.LogCleanerManager({}, ["dir0", "dir1"], disk)
    disk.write("dir0/cleaner-offset-checkpoint", b"1\n0\n")
    manager.logs[P] = cleaner_driver.MemoryLog("dir1", True, False, 0, LONG_MAX, 0.5, 1000)
    manager.update_checkpoints("dir1", {P: 3})
    manager.update_checkpoints("dir0", {P: 4})
    assert manager.all_cleaner_checkpoints() == {P: 3}
    assert set(manager.failed_directories) == {"dir0"}
    disk.broken.add("dir1")
    manager.update_checkpoints("dir1", {P: 9})
    assert manager.all_cleaner_checkpoints() == {}
