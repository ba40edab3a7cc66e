"""Recovery: spec against impl, every crash of short histories, long ones at random, and Kafka's own answers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test

from kafkaspec.contract import subsystem
from kafkaspec.contract.machine import Outside
from kafkaspec.impl.common.disk import Crashed, SimulatedDisk, SimulatedFile, StorageError
from kafkaspec.impl.storage import log_loader_driver
from kafkaspec.impl.storage import recovery_driver as driven
from kafkaspec.impl.storage.segment import CorruptRecord
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.lockstep.walk import Pair, draw, state_machine
from kafkaspec.models.storage.recovery import MODELS
from kafkaspec.spec.storage import recovery as spec
from kafkaspec.spec.storage.log_loader import EPOCHS, INDEX, LOG, SNAPSHOT, Batch, LogFile, name_of
from kafkaspec.spec.storage.recovery_parts import broker
from kafkaspec.spec.storage.recovery_parts.crashing_disk import Disk, FileOnDisk, all_flushed, left_of
from tests.layers import a_row_of_verify, walked

machine = spec.machine
WEIGHTS = {"append": 7.0, "roll": 4, "start": 8, "truncateTo": 2, "deleteRecords": 2, "updateHighWatermark": 2,
           "kill": 0.4, "stop": 0.4, "powerFails": 0.7, "flush": 0.5}  # fmt: skip

CRASHES, OUTCOMES, STUCK = 238, 20_818, 189
"""pinned: how many moments of the short histories were crashed, how many outcomes of the disk were started from, and
from how many of them no start comes to its end (REC-20)"""


# ---- the layers beside each other
def test_impl_does_what_the_spec_says() -> None:
    run_state_machine_as_test(state_machine(machine, driven.Driver))


def test_long_walks_cover_every_operation() -> None:
    walked(machine, driven.Driver, seeds=30, steps=40)


@pytest.mark.clause("REC-3")
@pytest.mark.clause("REC-4")
@pytest.mark.clause("REC-9")
def test_logs_that_grow() -> None:
    """Walks in which the broker runs for long."""
    for seed in range(12):
        rng, pair = random.Random(seed), Pair(machine, driven.Driver(), {})
        operations = list(machine.operations.values())
        for _ in range(80):
            op = rng.choices(operations, [WEIGHTS.get(o.name, 1) for o in operations])[0]
            arguments = draw(machine, op, pair.state, rng.choice)
            if arguments is not None:
                pair.call(op, arguments)
            assert pair.failure is None, str(pair.failure)


@a_row_of_verify
@pytest.mark.parametrize("recording", subsystem.find("recovery").recordings, ids=lambda r: r.file)
def test_kafka_recovers_as_the_spec_does(recording: Any) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


@a_row_of_verify
@pytest.mark.parametrize("checked", MODELS, ids=lambda c: f"{c.model.__name__}-{c.distinct}")
def test_models_are_explored_as_pinned(checked: Any) -> None:
    assert checked.run().why == ""


# ---- the disk
@pytest.mark.clause("REC-1")
def test_what_was_flushed_stays() -> None:
    a, b, c = Batch(0, 1), Batch(2, 2), Batch(3, 3)
    assert left_of(FileOnDisk(LogFile((a,)), LogFile((a,)))) == (LogFile((a,)),)
    left = left_of(FileOnDisk(LogFile((a, b, c)), LogFile((a,))))
    assert left[0] == LogFile((a,))
    assert LogFile((a, b)) in left
    assert LogFile((a, b), True) in left
    assert LogFile((a, b._replace(whole=False), c)) in left
    assert LogFile() not in left
    assert all(isinstance(x, LogFile) and x.batches[:1] == (a,) for x in left)


@pytest.mark.clause("REC-1")
def test_the_last_names_may_be_undone() -> None:
    disk = all_flushed({"a": LogFile()}).put("b", LogFile()).rename("a", "c")
    assert [sorted(names) for names in disk.namings()] == [["b", "c"], ["a", "b"], ["a"]]
    assert [sorted(names) for names in disk.flush_names().namings()] == [["b", "c"]]
    assert not Disk().may_leave({"x": ""})


# ---- rules, one by one
def run(state: broker.Broker, *calls: tuple[str, dict[str, Any]]) -> broker.Broker:
    """The state after these calls, of spec and impl."""
    for name, arguments in calls:
        step = machine.apply(state, name, arguments)
        assert not isinstance(step, Outside), (name, step)
        state = step.state
    pair = Pair(machine, driven.Driver(), {})
    for name, arguments in calls:
        pair.call(machine.find(name), arguments)
        assert pair.failure is None, str(pair.failure)
    return state


def append(*records: int, epoch: int = 0) -> tuple[str, dict[str, Any]]:
    return "append", {"records": list(records), "leader_epoch": epoch}


def files_of(*logs: tuple[int, list[Any]]) -> dict[str, Any]:
    """A directory with these segments, of whole batches (first, last) or (first, last, False)."""
    files: dict[str, Any] = {EPOCHS: [[0, 0]]}
    for base, batches in logs:
        made = [[b[0], b[1], 0, b[2] if len(b) > 2 else True] for b in batches]
        files[name_of(base, LOG)] = {"batches": made, "torn": False}
        files |= {name_of(base, end): "" for end in (INDEX, ".timeindex")}
    return files


@pytest.mark.clause("REC-2")
@pytest.mark.clause("REC-7")
@pytest.mark.clause("REC-8")
def test_a_kill_takes_nothing() -> None:
    after = run(spec.initial(), append(1, 2), ("kill", {}), ("start", {}))
    assert after.log is not None
    assert (after.log.log_end, after.log.recovery_point) == (3, 0)


@pytest.mark.clause("REC-10")
@pytest.mark.clause("REC-3")
@pytest.mark.clause("REC-4")
@pytest.mark.clause("REC-14")
def test_what_was_flushed_is_there_and_nothing_else() -> None:
    lost = {"files": files_of((0, [(0, 0), (1, 1, False), (2, 2)])), "keeps_marker": False}
    after = run(spec.initial(), append(1), ("flush", {}), append(1, 1), ("powerFails", lost), ("start", {}))
    assert spec.survivors(after) == (Batch(0, 0),)
    assert after.log is not None
    assert after.log.epochs


@pytest.mark.clause("REC-5")
@pytest.mark.clause("REC-6")
@pytest.mark.clause("REC-16")
def test_a_marker_counts_once() -> None:
    stopped = run(spec.initial(), append(2), ("stop", {}))
    assert stopped.marker
    assert stopped.point == 2
    started = run(spec.initial(), append(2), ("stop", {}), ("start", {}))
    assert not started.marker
    assert started.log is not None
    assert started.log.recovery_point == 2


@pytest.mark.clause("REC-5")
def test_a_start_that_is_killed_has_taken_the_marker() -> None:
    """KAFKA-10471: whatever write of the start is the last."""
    for crash_at in range(1000):
        driver = driven.Driver()
        driver.append([1, 1], 0)
        driver.subject.stop()
        driver.disk.flush_directory(driven.ROOT)
        assert driver.disk.lose().exists(driver.subject.marker)
        driver.disk.steps, driver.disk.crash_at = 0, crash_at
        try:
            driver.start()
        except Crashed:
            changed = crash_at > 1
            assert not (changed and driver.disk.lose().exists(driver.subject.marker))
        else:
            break
    assert crash_at > 3


@pytest.mark.clause("REC-9")
def test_a_recovery_that_is_killed_is_done_again() -> None:
    calls = [append(1, 1), ("roll", {}), append(1), ("roll", {}), append(2), ("kill", {})]
    whole = run(spec.initial(), *calls, ("start", {}))
    for n in range(5):
        again = run(spec.initial(), *calls, ("startInterrupted", {"segments": n}), ("start", {}))
        assert spec.survivors(again) == spec.survivors(whole)


@pytest.mark.clause("REC-11")
@pytest.mark.clause("REC-12")
@pytest.mark.clause("REC-17")
def test_checkpoints_that_lie_outside_the_log() -> None:
    calls = [append(1, 1, 1), ("updateHighWatermark", {"offset": 3}), ("checkpointHighWatermarks", {})]
    lost = {"files": files_of((0, [(0, 0)])), "keeps_marker": False}
    after = run(spec.initial(), *calls, ("powerFails", lost), ("start", {}))
    assert after.log is not None
    assert after.log.high_watermark == after.log.log_end == 1
    calls += [("deleteRecords", {"offset": 2}), ("checkpointLogStarts", {})]
    after = run(spec.initial(), *calls, ("powerFails", lost), ("start", {}))
    assert after.log is not None
    assert (after.log.log_start, after.log.log_end) == (2, 2)


@pytest.mark.clause("REC-17")
def test_records_that_a_log_start_has_passed_can_cost_flushed_ones() -> None:
    """They were never flushed, and a start recovers them while the checkpoint is below them."""
    calls = [append(1, 1), ("roll", {}), ("updateHighWatermark", {"offset": 2}), ("deleteRecords", {"offset": 2})]
    calls += [("checkpointLogStarts", {}), append(1, 1), ("flush", {})]
    kept = files_of((0, [(0, 0), (1, 1, False)]), (2, [(2, 2), (3, 3)])) | {name_of(2, SNAPSHOT): ""}
    after = run(spec.initial(), *calls, ("powerFails", {"files": kept, "keeps_marker": False}), ("start", {}))
    assert spec.survivors(after) == ()
    assert (spec.running(after).log_start, spec.running(after).log_end) == (2, 2)
    checkpointed = [*calls, ("checkpointRecoveryPoints", {})]
    after = run(spec.initial(), *checkpointed, ("powerFails", {"files": kept, "keeps_marker": False}), ("start", {}))
    assert spec.survivors(after) == (Batch(2, 2), Batch(3, 3))


@pytest.mark.clause("REC-17")
def test_a_segment_in_which_the_log_start_came_to_lie_can_be_lost_after_a_clean_stop() -> None:
    """Its name was never flushed. Kafka 4.3.0's UnifiedLog answers so."""
    calls = [append(1, 1), ("roll", {}), append(1, 1), ("updateHighWatermark", {"offset": 4})]
    calls += [("deleteRecords", {"offset": 3}), ("stop", {})]
    stopped = run(spec.initial(), *calls)
    assert (spec.nameless(stopped), stopped.safe) == ([2], ())
    left = files_of((0, [(0, 0), (1, 1)]))
    after = run(spec.initial(), *calls, ("powerFails", {"files": left, "keeps_marker": True}), ("start", {}))
    assert (spec.running(after).log_start, spec.running(after).log_end) == (3, 3)


@pytest.mark.clause("REC-21")
def test_a_cut_that_a_later_flush_does_not_come_to() -> None:
    calls = [append(1, 1), ("flush", {}), ("truncateTo", {"offset": 1}), ("roll", {}), ("stop", {}), ("start", {})]
    back = files_of((0, [(0, 0), (1, 1)]), (1, [])) | {name_of(1, SNAPSHOT): ""}
    after = run(spec.initial(), *calls, ("powerFails", {"files": back, "keeps_marker": False}), ("start", {}))
    assert broker.batches_of(after.disk.files) == (Batch(0, 0), Batch(1, 1))
    assert spec.survivors(after) == (Batch(0, 0),)
    assert spec.running(after).log_end == 1


# ---- what the contracts of a start leave out is no more than must be
FLUSHED = [append(1, 1), ("roll", {}), append(1), ("flush", {}), ("checkpointRecoveryPoints", {}), append(1)]


@pytest.mark.clause("REC-3")
@pytest.mark.clause("REC-7")
def test_a_power_failure_is_promised_what_was_flushed_and_a_kill_all() -> None:
    state = run(spec.initial(), *FLUSHED)
    flushed = (Batch(0, 0), Batch(1, 1), Batch(2, 2))
    assert spec.recovered_from(state) == 2
    assert spec.gone_down(state).promised == spec.gone_down(state).safe == flushed
    assert spec.gone_down(state, killed=True).promised == (*flushed, Batch(3, 3))
    assert not spec.is_damaged(state)
    assert not spec.may_be_cut(state)


@pytest.mark.clause("REC-17")
def test_less_is_promised_only_while_a_start_would_come_upon_what_was_passed() -> None:
    passed = [append(1, 1), ("roll", {}), ("updateHighWatermark", {"offset": 2}), ("deleteRecords", {"offset": 2})]
    state = run(spec.initial(), *passed, append(1), ("flush", {}))
    assert (spec.may_be_cut(state), spec.is_damaged(state)) == (True, False)
    assert spec.gone_down(state).safe == ()
    assert spec.gone_down(state, killed=True).promised == (Batch(2, 2),)
    checkpointed = run(spec.initial(), *passed, append(1), ("flush", {}), ("checkpointRecoveryPoints", {}))
    assert not spec.may_be_cut(checkpointed)
    assert spec.gone_down(checkpointed).safe == (Batch(2, 2),)
    lost = files_of((0, [(0, 0), (1, 1, False)]), (2, [(2, 2)])) | {name_of(2, SNAPSHOT): ""}
    down = run(
        spec.initial(), *passed, append(1), ("flush", {}), ("powerFails", {"files": lost, "keeps_marker": False})
    )
    assert spec.is_damaged(down)


@pytest.mark.clause("REC-4")
@pytest.mark.clause("REC-19")
def test_a_hole_is_one_only_below_the_segment_after_it() -> None:
    a, b, c, d = Batch(0, 0), Batch(1, 1), Batch(2, 2), Batch(3, 3)
    assert spec.one_behind_another((a, b, c), frozenset())
    assert not spec.one_behind_another((a, c, d), frozenset())
    assert spec.one_behind_another((a, c, d), frozenset({2}))
    assert not spec.one_behind_another((a, b, d), frozenset({2}))
    logs = {0: (a, b), 2: (c, d), 4: ()}
    assert spec.out_of_step({name_of(base, LOG): LogFile(log) for base, log in logs.items()}) == set()
    assert spec.out_of_step({name_of(base, LOG): LogFile(log) for base, log in {**logs, 0: (a,)}.items()}) == {2}


@pytest.mark.clause("REC-4")
@pytest.mark.clause("REC-21")
def test_a_batch_that_is_not_whole_survives_only_above_its_segment() -> None:
    broken = Batch(1, 1, whole=False)
    for base, found in ((1, (Batch(0, 0),)), (2, (Batch(0, 0), broken))):
        disk = all_flushed({name_of(0, LOG): LogFile((Batch(0, 0), broken)), name_of(base, LOG): LogFile()})
        assert spec.survivors(broker.Broker(disk, log=broker.RunningLog(log_end=base))) == found


@pytest.mark.clause("REC-1")
def test_what_was_cut_may_come_back_on_the_simulated_disk() -> None:
    disk = SimulatedDisk()
    disk.write("a/b", b"1234")
    disk.flush("a/b")
    disk.truncate("a/b", 2)
    assert (disk.names["a/b"].certain, disk.names["a/b"].flushed) == (b"12", False)
    assert {b"12", b"1234"} <= {*disk.names["a/b"].torn()}


@pytest.mark.clause("REC-1")
def test_a_directory_s_flush_is_of_its_own_names() -> None:
    disk = SimulatedDisk()
    disk.write("a/b", b"")
    disk.write("a/c/d", b"")
    disk.flush_directory("a")
    assert disk.unsure() == ["a/c/d"]


@pytest.mark.clause("REC-16")
def test_a_stop_does_not_flush_what_a_log_start_has_passed() -> None:
    calls = [append(1, 1), ("roll", {}), ("updateHighWatermark", {"offset": 2}), ("deleteRecords", {"offset": 2})]
    after = run(spec.initial(), *calls, ("checkpointRecoveryPoints", {}), ("kill", {}), ("start", {}), ("stop", {}))
    assert not spec.safe_between(after.disk, 0, 2)
    assert after.skipped == 2


@pytest.mark.clause("REC-13")
def test_a_snapshot_that_cannot_be_read_is_passed_over() -> None:
    calls = [append(1, 1), ("roll", {})]
    before = run(spec.initial(), *calls)
    left = next(f for f in before.disk.outcomes() if "corrupt" in f.values())
    shown = {n: c if isinstance(c, str) else spec_json(c) for n, c in left.items()}
    after = run(spec.initial(), *calls, ("powerFails", {"files": shown, "keeps_marker": False}), ("start", {}))
    assert "corrupt" not in after.disk.files.values()


def spec_json(content: Any) -> Any:
    from kafkaspec.contract.codec import encode

    return encode(content)


@pytest.mark.clause("REC-15")
@pytest.mark.clause("REC-18")
def test_a_flush_that_comes_after_a_cut() -> None:
    calls = [append(1, 1, 1), ("roll", {}), ("truncateTo", {"offset": 1}), ("background", {})]
    after = run(spec.initial(), *calls)
    assert after.log is not None
    assert after.log.recovery_point == after.log.log_end == 1
    cut = run(spec.initial(), append(1, 1, 1), ("flush", {}), ("truncateTo", {"offset": 1}))
    assert cut.point == 1


@pytest.mark.clause("REC-19")
def test_whole_batches_that_are_missing_are_not_noticed() -> None:
    calls = [append(1, 1), ("roll", {}), append(1)]
    left = files_of((0, [(0, 0)]), (2, [(2, 2)]))
    left[name_of(2, ".snapshot")] = ""
    after = run(spec.initial(), *calls, ("powerFails", {"files": left, "keeps_marker": False}), ("start", {}))
    assert spec.survivors(after) == (Batch(0, 0), Batch(2, 2))


# ---- every crash of short histories, byte by byte
Step = Callable[[driven.Driver], object]
SHORT: dict[str, list[Step]] = {
    "appended and flushed": [
        lambda d: d.append([1, 2], 0), lambda d: d.flush(), lambda d: d.append([1], 1),
        lambda d: d.subject.checkpoint_recovery_points(), lambda d: d.append([1], 1),
    ],
    "rolled": [
        lambda d: d.append([1, 1], 0), lambda d: d.roll(), lambda d: d.append([1], 0),
        lambda d: d.subject.background(), lambda d: d.subject.checkpoint_recovery_points(),
    ],
    "truncated": [
        lambda d: d.append([1, 1, 1], 0), lambda d: d.flush(), lambda d: d.subject.checkpoint_recovery_points(),
        lambda d: d.subject.truncate_to(1), lambda d: d.append([2], 1), lambda d: d.flush(),
    ],
    "stopped and started": [
        lambda d: d.append([1, 1], 0), lambda d: d.subject.stop(), lambda d: d.start(), lambda d: d.append([1], 1),
    ],
    "stopped with two segments": [
        lambda d: d.append([1, 1], 0), lambda d: d.roll(), lambda d: d.append([1], 0), lambda d: d.flush(),
        lambda d: d.update_high_watermark(3), lambda d: d.subject.delete_records(3), lambda d: d.append([1], 0),
        lambda d: d.roll(), lambda d: d.append([1], 0), lambda d: d.subject.stop(),
    ],
    "rolled twice": [
        lambda d: d.append([1, 1], 0), lambda d: d.roll(), lambda d: d.append([1], 0), lambda d: d.roll(),
        lambda d: d.append([1], 0), lambda d: d.subject.background(), lambda d: d.subject.checkpoint_recovery_points(),
    ],
    "deleted": [
        lambda d: d.append([1, 1], 0), lambda d: d.roll(), lambda d: d.append([1, 1], 0),
        lambda d: d.update_high_watermark(3), lambda d: d.subject.delete_records(3),
        lambda d: d.delete_old_segments(), lambda d: d.subject.checkpoint_log_starts(),
        lambda d: d.subject.background(), lambda d: d.append([1], 0),
    ],
}  # fmt: skip


def appended(driver: driven.Driver) -> set[Batch]:
    """What is in a running log, from its start on."""
    log = driver.subject.log
    if log is None:
        return set()
    data = [log_loader_driver.decode_log(log.segments[b].data()) for b in log.bases]
    return {b for f in data for b in f.batches if log.log_start <= b.last}


def promised(driver: driven.Driver) -> set[Batch]:
    """What is below the recovery point, and not below the log start."""
    log = driver.subject.log
    return set() if log is None else {b for b in appended(driver) if b.last < log.recovery_point}


def outcomes(disk: SimulatedDisk) -> Iterator[SimulatedDisk]:
    """What a crash now may leave: of the names the first changes or all but one, of the .log files any contents
    together, of the other files one at a time."""
    unsure = disk.unsure()
    some = [set(unsure), set[str](), *({n} for n in unsure), *(set(unsure) - {n} for n in unsure)]
    names = list(dict.fromkeys(map(frozenset, some)))
    files = {id(f): (n, f) for n, f in (*disk.names.items(), *disk.durable_names.items()) if not f.flushed}
    logs = [i for i, (n, _) in files.items() if n.endswith(LOG)]
    rest = [i for i in files if i not in logs]
    for kept in names:
        for contents in itertools.product(*(files[i][1].torn() for i in logs)):
            chosen = dict(zip(logs, contents, strict=True))
            yield disk.crash(kept.__contains__, lambda f, c=chosen: c.get(id(f), f.content))  # type: ignore[misc]
        for i in rest:
            for content in files[i][1].torn():
                yield disk.crash(kept.__contains__, lambda f, i=i, c=content: c if id(f) == i else f.content)  # type: ignore[misc]


def started(disk: SimulatedDisk) -> tuple[driven.Driver, set[Batch]]:
    """A broker over the disk, and the batches that its log has from its start on."""
    driver = driven.Driver()
    driver.disk = disk
    driver.start()
    log = driver.subject.running
    found = [b for base in log.bases for b in log_loader_driver.decode_log(log.segments[base].data()).batches]
    return driver, {b for b in found if b.last >= log.log_start}


def crashes() -> tuple[int, int, int]:
    """Crash every short history before each of its writes; how many crashes and how many outcomes there were, and of
    how many the start fails."""
    moments = tried = stuck = 0
    for steps in SHORT.values():
        for crash_at in range(1000):
            driver, certain, stopped = driven.Driver(), set[Batch](), set[Batch]()
            driver.disk.steps, driver.disk.crash_at = 0, crash_at
            try:
                for step in steps:
                    cutting = "truncate" in step.__code__.co_names[-1]
                    certain = {b for b in promised(driver) if not cutting or b.last < 1}
                    stopped = appended(driver) or stopped
                    step(driver)
                    certain = promised(driver) or certain
            except Crashed:
                moments += 1
            else:
                break
            driver.disk.crash_at = None
            different = {tuple(sorted((n, f.content) for n, f in d.names.items())): d for d in outcomes(driver.disk)}
            for left in different.values():
                tried += 1
                clean = left.exists(driver.subject.marker)
                try:
                    again, found = started(left)
                except CorruptRecord:
                    assert not clean
                    stuck += 1
                    continue
                log = again.subject.running
                assert not clean or (found, log.recovery_point) == (stopped, log.log_end)
                assert certain <= found, (crash_at, certain, found)
                assert all(b.whole for b in found)
                assert {b.epoch for b in found} <= {e.epoch for e in log.epochs.entries}
                assert again.subject.marker not in again.disk.durable_names
                end = log.log_end
                assert started(again.disk)[0].subject.running.log_end == end
    return moments, tried, stuck


@pytest.mark.clause("REC-3")
@pytest.mark.clause("REC-9")
def test_every_crash_of_short_histories() -> None:
    assert crashes() == (CRASHES, OUTCOMES, STUCK)
    page = (Path(__file__).parents[2] / "docs" / "storage" / "recovery.md").read_text()
    assert f"{CRASHES} crashes, {OUTCOMES:,} outcomes" in page


@pytest.mark.clause("REC-20")
def test_zeros_below_a_segment_without_an_index() -> None:
    """As Kafka's UnifiedLog.create: CorruptRecordException."""
    driver = driven.Driver()
    driver.append([1, 1], 0)
    driver.roll()
    driver.append([1], 0)
    driver.kill()
    files = (name_of(0, LOG), name_of(2, INDEX), name_of(2, SNAPSHOT))
    first, index, snapshot = (f"{driver.subject.directory}/{n}" for n in files)
    size = driver.disk.size(first)
    driver.disk.names[first].content = driver.disk.read(first)[: size // 2] + bytes(size - size // 2)
    del driver.disk.names[index], driver.disk.names[snapshot]
    with pytest.raises(CorruptRecord):
        driver.start()
    driver.disk.write(index, b"")
    assert driver.start().log_end == 1


# ---- bad input
@pytest.mark.clause("REC-5")
def test_a_disk_that_fails_is_a_storage_error() -> None:
    driver = driven.Driver()
    driver.append([1], 0)
    driver.kill()
    driver.disk.broken = {driver.subject.directory}
    with pytest.raises((StorageError, OSError)):
        driver.start()
    driver.disk.broken = set()
    assert driver.start().log_end == 1


@pytest.mark.clause("REC-3")
def test_a_foreign_file_is_left_alone() -> None:
    driver = driven.Driver()
    driver.append([1], 0)
    driver.kill()
    path = f"{driver.subject.directory}/notes.txt"
    driver.disk.names[path] = SimulatedFile(b"x", b"x")
    assert driver.start().log_end == 1
    assert driver.disk.read(path) == b"x"
