"""The small files of a log directory: impl against spec, the models, recordings, and every crash of a replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.audit.check import Directory, Log, Summary
from kafkaspec.audit.files import LogDirectory, PartitionFiles, Segment
from kafkaspec.audits.management.checkpoints import CheckpointCheck, PartitionMetadataCheck
from kafkaspec.contract import subsystem
from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.impl.common.disk import Crashed, Disk, RealDisk, SimulatedDisk, StorageError
from kafkaspec.impl.common.files import File
from kafkaspec.impl.management import checkpoints as impl
from kafkaspec.impl.management import checkpoints_driver
from kafkaspec.impl.management.checkpoints import (
    CheckpointFile,
    CheckpointUnreadable,
    TopicPartition,
    decode,
    encode,
)
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.lockstep.walk import Pair, draw
from kafkaspec.models.management.checkpoints import MODELS
from kafkaspec.proofs.management.checkpoints import PROOFS
from kafkaspec.prove.proof import Proof
from kafkaspec.spec.common import checkpoint_text as texts
from kafkaspec.spec.common.kafka import LONG_MAX, STORAGE_EXCEPTION
from kafkaspec.spec.management import checkpoints as spec
from kafkaspec.spec.management import checkpoints_trial
from kafkaspec.spec.management.checkpoints import machine
from tests.layers import Beside, a_row_of_verify, walked

# ---- the layers beside each other


def test_long_walks_cover_every_operation() -> None:
    walked(machine, checkpoints_driver.Driver, seeds=20, steps=150)


@given(st.data())
def test_abstraction_is_the_whole_state(data: st.DataObject) -> None:
    driver = checkpoints_driver.Driver()
    pair = Pair(machine, driver, {})
    for _ in range(20):
        op = machine.find(data.draw(st.sampled_from(sorted(machine.operations))))
        arguments = draw(machine, op, pair.state, lambda c: data.draw(st.sampled_from(c)))
        if arguments is not None:
            pair.call(op, arguments)
            assert pair.failure is None, str(pair.failure)
            found = driver.state()
            assert found.files == pair.state.files
            if pair.state.running and pair.state.loaded:
                assert found == pair.state


@a_row_of_verify
@pytest.mark.parametrize("checked", MODELS, ids=lambda c: f"{c.model.__name__}-{c.distinct}")
def test_models_are_explored_as_pinned(checked: Any) -> None:
    assert checked.run().why == ""


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
def test_proofs_hold_for_every_size(proof: Proof) -> None:
    proved = proof.run()
    assert proved.complete, proved.summary()


@a_row_of_verify
@pytest.mark.parametrize("recording", subsystem.find("checkpoints").recordings, ids=lambda r: r.file)
def test_recordings_are_accepted(recording: Any) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


# ---- histories


BESIDE = Beside(machine, checkpoints_driver.Driver)


def run(*calls: tuple[str, dict[str, Any]], begin: spec.Directory | None = None) -> tuple[spec.Directory, list[Any]]:
    """The state after some calls, and their answers; of the implementation too."""
    state, answers = begin or BESIDE.initial(), []
    for name, arguments in calls:
        op = machine.find(name)
        step = BESIDE.call(state, name, {op.parameters[k]: v for k, v in arguments.items()})
        state = step.state
        answers.append(step.result)
    return state, answers


CREATE = ("createLog", {"partition": "t-0"})
APPEND = ("append", {"partition": "t-0", "count": 7})
Call = tuple[str, dict[str, Any]]
STOP: Call = ("shutdown", {"brokerEpoch": 7})
KILL: Call = ("kill", {})
START = ("start", {"crashWhileLoading": False})
CRASH = ("start", {"crashWhileLoading": True})
RECOVERY: Call = ("checkpointRecoveryPoints", {})


def text(name: str, file: str) -> tuple[str, dict[str, Any]]:
    return "damage", {"name": name, "file": file}


@pytest.mark.clause("CKP-9")
@pytest.mark.clause("CKP-11")
def test_a_clean_stop_flushes_and_says_so() -> None:
    state, _ = run(CREATE, APPEND, STOP)
    assert state.marker == 7
    assert state.files[spec.RECOVERY_POINTS] == {"t-0": 7}
    state, (answer,) = run(START, begin=state)
    assert answer == {"clean": True, "halted": False}
    assert (state.marker, state.logs["t-0"].recovery_point) == (None, 7)


@pytest.mark.clause("CKP-10")
def test_a_crash_while_loading_is_no_clean_stop() -> None:
    state, answers = run(CREATE, APPEND, STOP, CRASH, KILL, START)
    assert answers[-1] == {"clean": False, "halted": False}
    assert state.logs["t-0"].recovery_point == 7


@pytest.mark.clause("CKP-15")
def test_after_a_kill_the_checkpoint_counts_and_nothing_means_zero() -> None:
    state, _ = run(CREATE, ("flush", {"partition": "t-0"}), APPEND, KILL, START)
    assert state.logs["t-0"].recovery_point == 0
    state, _ = run(CREATE, APPEND, ("flush", {"partition": "t-0"}), RECOVERY, APPEND, KILL, START)
    assert (state.logs["t-0"].recovery_point, state.logs["t-0"].end) == (7, 14)


@pytest.mark.clause("CKP-12")
@pytest.mark.clause("CKP-13")
def test_a_start_within_a_segment_is_remembered_and_marks_are_brought_within_the_log() -> None:
    mark = ("advanceHighWatermark", {"partition": "t-0", "offset": 7})
    begin = ("raiseStart", {"partition": "t-0", "offset": 3, "deleteSegments": False})
    state, _ = run(CREATE, APPEND, mark, begin, ("checkpointLogStarts", {}), ("checkpointHighWatermarks", {}))
    assert state.files[spec.LOG_STARTS] == {"t-0": 3}
    assert state.files[spec.HIGH_WATERMARKS] == {"t-0": 7}
    stopped, _ = run(KILL, begin=state)
    low, _ = run(text(spec.HIGH_WATERMARKS, "0\n1\nt 0 1\n"), START, begin=stopped)
    high, _ = run(text(spec.HIGH_WATERMARKS, "0\n1\nt 0 99\n"), START, begin=stopped)
    assert [s.logs["t-0"].high_watermark for s in (low, high)] == [3, 7]
    beyond = ("raiseStart", {"partition": "t-0", "offset": 5, "deleteSegments": True})
    assert run(beyond, ("checkpointLogStarts", {}), begin=state)[0].files[spec.LOG_STARTS] == {}


@pytest.mark.clause("CKP-4")
@pytest.mark.parametrize("name", spec.CHECKPOINTS)
def test_a_checkpoint_that_cannot_be_read_stops_a_broker_with_one_directory(name: str) -> None:
    state, answers = run(CREATE, APPEND, STOP, text(name, "1\n0\n"), START)
    assert answers[-1] == {"clean": True, "halted": True}
    assert not state.running


@pytest.mark.clause("CKP-16")
def test_a_deleted_log_is_forgotten_at_once_and_strangers_with_the_next_write() -> None:
    state, _ = run(CREATE, RECOVERY, ("deleteLog", {"partition": "t-0"}))
    assert state.files[spec.RECOVERY_POINTS] == {}
    strangers = text(spec.RECOVERY_POINTS, "0\n1\nnobody 0 5\n")
    state, _ = run(CREATE, KILL, strangers, START)
    assert state.files[spec.RECOVERY_POINTS] == {"nobody-0": 5}
    assert run(RECOVERY, begin=state)[0].files[spec.RECOVERY_POINTS] == {"t-0": 0}


@pytest.mark.clause("CKP-8")
@pytest.mark.parametrize("file", checkpoints_trial.MARKER_TEXTS)
def test_a_marker_of_any_text(file: str) -> None:
    assert impl.decode_marker(file.encode()) == texts.marker_epoch(file)
    assert impl.encode_marker(7).decode() == checkpoints_trial.marker_text(7)


@pytest.mark.clause("CKP-7")
@pytest.mark.parametrize("file", checkpoints_trial.METADATA_TEXTS)
def test_a_partition_metadata_of_any_text(file: str) -> None:
    expected = texts.metadata_id(file)
    if isinstance(expected, texts.Unreadable):
        with pytest.raises(CheckpointUnreadable) as e:
            impl.decode_metadata(file.encode())
        assert e.value.line == expected.line
    else:
        assert impl.decode_metadata(file.encode()) == expected


# ---- the files through every crash

P, Q = TopicPartition("orders", 0), TopicPartition("a-b", 7)


@pytest.mark.clause("CKP-1")
def test_the_text_is_kafkas() -> None:
    assert encode({P: 98112, Q: 0}) == b"0\n2\norders 0 98112\na-b 7 0\n"


@pytest.mark.clause("CKP-2")
@pytest.mark.parametrize("text", checkpoints_trial.CHECKPOINT_TEXTS)
def test_impl_reads_what_the_spec_reads(text: str) -> None:
    expected = texts.checkpoint_entries(text)
    if isinstance(expected, texts.Unreadable):
        with pytest.raises(CheckpointUnreadable):
            decode(text.encode())
    else:
        assert {str(p): offset for p, offset in decode(text.encode()).items()} == expected


@pytest.mark.clause("CKP-2")
@pytest.mark.clause("CKP-3")
@pytest.mark.parametrize(
    "offset",
    ["0" * 5000 + "7", "-" + "0" * 5000 + "7", "٠" * 5000 + "٧", "9" * 5000, "9" * 19],
    ids=["zeros", "negative", "Arabic", "too large", "too large by a digit"],
)
def test_a_number_may_have_more_digits_than_python_reads(offset: str) -> None:
    text = f"0\n1\nt {'0' * 5000} {offset}\n"
    if offset[-1] == "9":
        assert isinstance(texts.checkpoint_entries(text), texts.Unreadable)
        with pytest.raises(CheckpointUnreadable):
            decode(text.encode())
    else:
        expected = -7 if offset[0] == "-" else 7
        assert texts.checkpoint_entries(text) == {"t-0": expected}
        assert decode(text.encode()) == {TopicPartition("t", 0): expected}


@pytest.mark.clause("CKP-1")
@pytest.mark.clause("CKP-2")
@given(
    st.dictionaries(
        st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,9}", fullmatch=True), st.integers(0, 2**31 - 1)),
        st.integers(-(2**63), 2**63 - 1),
    )
)
def test_what_is_written_is_read(offsets: dict[tuple[str, int], int]) -> None:
    entries = {TopicPartition(*p): offset for p, offset in offsets.items()}
    assert decode(encode(entries)) == entries
    assert encode(entries).decode() == texts.checkpoint_text({str(p): offset for p, offset in entries.items()})


def crashes(write: Callable[[CheckpointFile], None]) -> Iterator[tuple[int, bool, dict[TopicPartition, int]]]:
    """Every crash of a write over {P: 1}: before which step, whether the write had returned, what is read after it."""
    for crash_at in range(100):
        disk = SimulatedDisk()
        file = CheckpointFile("dir", "file", disk)
        file.write({P: 1})
        disk.crash_at = disk.steps + crash_at
        try:
            write(file)
            returned = True
        except Crashed:
            returned = False
        for after in disk.outcomes():
            yield crash_at, returned, CheckpointFile("dir", "file", after).read()
        if returned:
            return


@pytest.mark.clause("CKP-6")
def test_a_crash_leaves_the_old_one_or_the_new_one() -> None:
    old, new = {P: 1}, {P: 2, Q: 3}
    found = list(crashes(lambda file: file.write(new)))
    assert max(step for step, _, _ in found) == 4
    assert all(entries in (old, new) for _, _, entries in found)
    assert all(entries == new for _, returned, entries in found if returned)
    assert {tuple(entries) for _, returned, entries in found if not returned} == {(P,), (P, Q)}


@pytest.mark.clause("CKP-6")
def test_a_write_in_place_would_be_torn() -> None:
    with pytest.raises(StorageError):
        list(crashes(lambda file: file.disk.write(file.path, encode({P: 2, Q: 3}))))


@pytest.mark.parametrize("disk", [SimulatedDisk(), RealDisk()], ids=["simulated", "real"])
def test_a_checkpoint_file_on_a_disk(disk: Disk, tmp_path: Path) -> None:
    file = CheckpointFile(str(tmp_path), "cleaner-offset-checkpoint", disk)
    assert file.read() == {}
    file.write({P: 5})
    assert CheckpointFile(str(tmp_path), "cleaner-offset-checkpoint", disk).read() == {P: 5}
    assert not disk.exists(file.path + ".tmp")


@pytest.mark.clause("CKP-8")
def test_a_start_takes_an_empty_directory_for_the_marker(tmp_path: Path) -> None:
    """As Files.exists and Files.delete do. One that is not empty stays."""
    checkpoints = impl.Checkpoints(str(tmp_path), RealDisk())
    marker = tmp_path / ".kafka_cleanshutdown"
    marker.mkdir()
    checkpoints.begin_loading()
    assert (checkpoints.had_clean_shutdown, marker.exists()) == (True, False)
    (marker / "x").mkdir(parents=True)
    with pytest.raises(OSError, match="not empty"):
        checkpoints.begin_loading()


@pytest.mark.clause("CKP-5")
def test_of_two_entries_the_last_one_counts() -> None:
    data = b"0\n2\nt 0 5\nt 0 6\n"
    assert decode(data) == {TopicPartition("t", 0): 6}
    assert [line for line, _ in impl.decode_lines(data)] == [3, 4]


@pytest.mark.clause("CKP-14")
def test_the_cleaners_checkpoint_is_one_of_them() -> None:
    from kafkaspec.impl.management import cleaner

    manager = cleaner.LogCleanerManager({}, ["dir"], SimulatedDisk())
    manager.update_checkpoints("dir", {P: 3})
    assert decode(manager.disk.read(f"dir/{spec.CLEANER_POINTS}")) == {P: 3}


@pytest.mark.clause("CKP-6")
def test_what_is_left_beside_is_never_read() -> None:
    disk = SimulatedDisk()
    file = CheckpointFile("dir", "file", disk)
    disk.write("dir/file.tmp", b"torn")
    assert file.read() == {}
    file.write({P: 1})
    assert not disk.exists("dir/file.tmp")


@pytest.mark.clause("CKP-9")
def test_a_marker_is_written_after_the_checkpoints_whatever_crashes() -> None:
    """Every crash of a clean stop: a marker that is found says that the checkpoints are those of the stop."""
    markers = set()
    for crash_at in range(100):
        disk = SimulatedDisk()
        broker = impl.Checkpoints("dir", disk, {P: impl.CheckpointedLog(end=9)})
        disk.flush_directory("dir")
        disk.crash_at = disk.steps + crash_at
        finished = True
        try:
            broker.shut_down(7)
        except Crashed:
            finished = False
        for after in disk.outcomes():
            found = after.exists(broker.marker)
            markers.add(found)
            if found:
                assert CheckpointFile("dir", spec.RECOVERY_POINTS, after).read() == {P: 9}
        if finished:
            break
    assert markers == {False, True}


@pytest.mark.clause("CKP-3")
@pytest.mark.parametrize(
    ("data", "line"),
    [(b"1\n0\n", 1), (b"0\nx\n", 2), (b"0\n3\nt 0 5\nt 1\n", 4), (b"0\n1\nt 0 x\n", 3), (b"0\n5\nt 0 1\n", 2)],
)
def test_what_cannot_be_read_is_named_with_its_line(data: bytes, line: int) -> None:
    with pytest.raises(CheckpointUnreadable) as e:
        decode(data)
    assert e.value.line == line
    found = texts.checkpoint_entries(data.decode())
    assert isinstance(found, texts.Unreadable)
    assert found.line == line


def test_kafkas_way_with_bad_numbers_is_a_known_deviation() -> None:
    read = ("offsetCheckpoint.read", {"file": "0\n1\nt x 5\n"})
    assert run(read)[1] == [Refused("CKP-3", STORAGE_EXCEPTION)]


# ---- the audit


def audited(
    tmp_path: Path, files: dict[str, str], *, clean: bool = True, start: int = 0, end: int = 9, base: int = 0
) -> list[tuple[str, str, int | None]]:
    """What the audit says of a directory with one log t-0: severity, clause and line of each finding."""
    found = {}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        found[name] = File(tmp_path / name, len(text))
    log_file = File(tmp_path / "t-0" / f"{base:020}.log", 1)
    partition = PartitionFiles(tmp_path / "t-0", "t", 0, segments=(Segment(base, log_file),))
    log = Log(partition, clean)
    directory = Directory(LogDirectory(tmp_path, (partition,), found), (Summary(log, start, end, 1, 1, 1, 1),), clean)
    return [(f.severity.name, f.clause, f.line) for f in CheckpointCheck().check(directory)]


OF_T = "0\n1\nt 0 {}\n"


@pytest.mark.clause("CKP-11")
@pytest.mark.clause("CKP-12")
@pytest.mark.clause("CKP-13")
@pytest.mark.clause("CKP-14")
@pytest.mark.parametrize(
    ("name", "offset", "clean", "expected"),
    [
        (spec.RECOVERY_POINTS, 9, True, []),
        (spec.RECOVERY_POINTS, 12, True, [("ERROR", "CKP-11", 3)]),
        (spec.RECOVERY_POINTS, 12, False, [("LEFTOVER", "CKP-11", 3)]),
        (spec.RECOVERY_POINTS, 3, True, [("WARNING", "CKP-11", 3)]),
        (spec.RECOVERY_POINTS, 3, False, []),
        (spec.LOG_STARTS, 4, True, []),
        (spec.LOG_STARTS, 10, False, [("ERROR", "CKP-12", 3)]),
        (spec.HIGH_WATERMARKS, 9, True, []),
        (spec.HIGH_WATERMARKS, 10, True, [("ERROR", "CKP-13", 3)]),
        (spec.HIGH_WATERMARKS, 10, False, [("LEFTOVER", "CKP-13", 3)]),
        (spec.CLEANER_POINTS, 9, True, []),
        (spec.CLEANER_POINTS, 10, True, [("WARNING", "CKP-14", 3)]),
    ],
)
def test_an_offset_is_checked_against_its_log(
    tmp_path: Path, name: str, offset: int, clean: bool, expected: list[Any]
) -> None:
    assert audited(tmp_path, {name: OF_T.format(offset)}, clean=clean) == expected


@pytest.mark.clause("CKP-12")
def test_a_log_start_below_the_first_segment_says_that_it_is_gone(tmp_path: Path) -> None:
    files = {spec.LOG_STARTS: OF_T.format(2)}
    assert audited(tmp_path, files, base=5, start=5) == [("ERROR", "CKP-12", 3)]
    assert audited(tmp_path, files, base=5, start=5, clean=False) == []


@pytest.mark.clause("CKP-3")
@pytest.mark.clause("CKP-5")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\n0\n", [("ERROR", "CKP-3", 1)]),
        ("0\n2\nt 0 5\n", [("ERROR", "CKP-3", 2)]),
        ("0\n1\nt 0\n", [("ERROR", "CKP-3", 3)]),
        ("0\n1\nt 0 x\n", [("ERROR", "CKP-3", 3)]),
        ("0\n2\nt 0 5\nt 0 5\n", [("WARNING", "CKP-5", 4)]),
        ("0\n2\nt 0 5\nu 0 5\n", [("LEFTOVER", "CKP-16", 4)]),
    ],
)
def test_a_file_is_checked_by_its_lines(tmp_path: Path, text: str, expected: list[Any]) -> None:
    assert audited(tmp_path, {spec.HIGH_WATERMARKS: text}) == expected


@pytest.mark.clause("CKP-11")
@pytest.mark.clause("CKP-16")
def test_what_a_clean_stop_wrote_has_each_log_and_no_other(tmp_path: Path) -> None:
    assert audited(tmp_path, {spec.RECOVERY_POINTS: "0\n0\n"}) == [("WARNING", "CKP-11", None)]
    assert audited(tmp_path, {spec.RECOVERY_POINTS: "0\n0\n"}, clean=False) == []
    more = {spec.RECOVERY_POINTS: "0\n2\nt 0 9\nu 0 5\n"}
    assert audited(tmp_path, more) == [("ERROR", "CKP-11", 4)]
    assert audited(tmp_path, more, clean=False) == [("LEFTOVER", "CKP-16", 4)]


@pytest.mark.clause("CKP-6")
def test_what_is_left_beside_is_a_left_over(tmp_path: Path) -> None:
    assert audited(tmp_path, {spec.LOG_STARTS + ".tmp": "0"}) == [("LEFTOVER", "CKP-6", None)]


@pytest.mark.clause("CKP-7")
@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        (texts.metadata_text(checkpoints_trial.ID), checkpoints_trial.ID, []),
        (texts.metadata_text(checkpoints_trial.ID), None, []),
        (texts.metadata_text(checkpoints_trial.ID), "ZZZZZZZZZZZZZZZZZZZZZw", [("WARNING", 2)]),
        ("version: 0\ntopic_id: x\n", None, [("ERROR", 2)]),
        ("", None, [("ERROR", 1)]),
        (None, checkpoints_trial.ID, [("LEFTOVER", None)]),
        (None, None, []),
    ],
)
def test_partition_metadata_is_checked(
    tmp_path: Path, text: str | None, known: str | None, expected: list[Any]
) -> None:
    file = None
    if text is not None:
        (tmp_path / "partition.metadata").write_text(text)
        file = File(tmp_path / "partition.metadata", len(text))
    files = PartitionFiles(tmp_path, "t", 0, metadata=file)
    check = PartitionMetadataCheck(Log(files, topic_id=known, clean=False))
    assert [(f.severity.name, f.line) for f in check.end()] == expected


@pytest.mark.clause("CKP-13")
def test_no_record_is_appended_behind_the_last_offset_there_is() -> None:
    state = machine.initial()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("createLog", {"partition": "t-0"}),
        ("kill", {}),
        ("damage", {"name": spec.LOG_STARTS, "file": f"0\n1\nt 0 {LONG_MAX - 1}\n"}),
        ("start", {"crash_while_loading": False}),
        ("append", {"partition": "t-0", "count": 1}),
    ]
    for op, arguments in calls:
        step = machine.apply(state, op, arguments)
        assert not isinstance(step, Outside), (op, step)
        state = step.state
    assert state.logs["t-0"].end == LONG_MAX
    assert isinstance(machine.apply(state, "append", {"partition": "t-0", "count": 1}), Outside)
