"""meta.properties: impl against spec, Kafka's own answers, and every crash of a replacement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.audit.check import Directory
from kafkaspec.audit.files import LogDirectory
from kafkaspec.audits.management.meta_properties import EnsembleCheck, MetaPropertiesCheck
from kafkaspec.contract import subsystem
from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.impl.common.disk import Crashed, RealDisk, SimulatedDisk
from kafkaspec.impl.common.files import File
from kafkaspec.impl.management import meta_properties as impl
from kafkaspec.impl.management import meta_properties_driver
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.spec.management import meta_properties as spec
from kafkaspec.spec.management import meta_properties_trial
from kafkaspec.spec.management.meta_properties import machine
from tests.layers import a_row_of_verify, walked

V1 = "version=1\ncluster.id=c\nnode.id=1\n"
D, E = "Wz2UP7E_QO2kiOpi3I8jIQ", "Xz2UP7E_QO2kiOpi3I8jIQ"


def test_long_walks_cover_every_operation() -> None:
    walked(machine, meta_properties_driver.Driver, seeds=10, steps=150)


@a_row_of_verify
@pytest.mark.parametrize("recording", subsystem.find("meta_properties").recordings, ids=lambda r: r.file)
def test_recordings_are_accepted(recording: Any) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


def ask(operation: str, **arguments: Any) -> Any:
    step = machine.apply(spec.machine.initial(), operation, arguments)
    assert not isinstance(step, Outside), step
    return step.result


@given(st.text(st.sampled_from("aé=:# !\\ut\n\r\t\f\x01" + "0" * 3), max_size=30))
@pytest.mark.clause("MTP-1")
@pytest.mark.clause("MTP-2")
def test_every_text_is_read_as_the_spec_reads_it(text: str) -> None:
    try:
        found: Any = {key: value for key, (_, value) in impl.decode(text.encode("latin-1")).items()}
    except impl.MalformedEscape:
        found = spec.MALFORMED_ESCAPE
    assert found == spec.properties(text)


@pytest.mark.clause("MTP-3")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("version=1\ncluster.id=c\nnode.id=7\n", (1, "c", 7, None)),
        (f"version=1\ncluster.id=c\nnode.id=7\ndirectory.id={D}\n", (1, "c", 7, D)),
        ("version=0\ncluster.id=c\nbroker.id=7\n", (0, "c", 7, None)),
        ("broker.id=7\n", (0, None, 7, None)),
        ("version=0\nnode.id=7\n", (0, None, None, None)),
    ],
)
def test_the_versions_and_what_each_has(text: str, says: tuple[Any, ...]) -> None:
    version, cluster, node, directory = says
    found = impl.parse(text.encode())
    assert (found.version, found.cluster_id, found.node_id, found.directory_id) == says
    assert ask("metaProperties.read", file=text) == {
        "version": version, "clusterId": cluster, "nodeId": node, "directoryId": directory,
    }  # fmt: skip
    if node is not None:
        assert sorted(text.splitlines()) == sorted({*text.splitlines()} & {*found.encode("").decode().splitlines()})
        assert spec.written_lines(spec.MetaProperties(*says)) == sorted(found.encode("").decode().splitlines())


@given(st.text(st.characters(max_codepoint=127), max_size=20), st.integers(0, 2**31 - 1))
@pytest.mark.clause("MTP-1")
def test_what_is_written_is_read(cluster: str, node: int) -> None:
    of = impl.MetaProperties(1, cluster, node, D)
    assert impl.parse(of.encode()) == of


@pytest.mark.clause("MTP-1")
def test_lines_are_known() -> None:
    found = impl.parse(b"#\n#when\nversion=1\n\ncluster.id=\\\n  c\nnode.id=1\n")
    assert (found.cluster_id, found.lines["cluster.id"], found.lines["node.id"]) == ("c", 5, 7)


@pytest.mark.clause("MTP-5")
@pytest.mark.clause("MTP-7")
def test_directories_must_agree() -> None:
    def verify(**files: str | None) -> Any:
        return ask("ensemble.verify", files=files, expected_cluster_id=None, expected_node_id=None)

    assert verify(a=V1, b=None, c="version=9")["failed"] == ["c"]
    assert isinstance(verify(a=V1, b=V1.replace("node.id=1", "node.id=2")), Refused)
    assert isinstance(verify(a=V1, b=V1.replace("=c", "=d")), Refused)
    assert isinstance(verify(a=None), Refused)


@pytest.mark.clause("MTP-6")
def test_directories_have_ids_of_their_own() -> None:
    def clause(*ids: str) -> str:
        files = {f"d{n}": f"{V1}directory.id={id}\n" for n, id in enumerate(ids)}
        found = ask("ensemble.verify", files=files, expected_cluster_id=None, expected_node_id=None)
        return found.clause if isinstance(found, Refused) else ""

    assert clause(D, E) == ""
    assert clause(D, D) == "MTP-6"
    assert clause("AAAAAAAAAAAAAAAAAAAAAQ") == "MTP-6"
    assert clause("AAAAAAAAAAAAAAAAAAAAZA") == ""


@pytest.mark.clause("MTP-8")
def test_a_crash_leaves_the_old_one_or_the_new_one() -> None:
    old, new = impl.MetaProperties(1, "c", 1, D), impl.MetaProperties(1, "c", 1, E)
    seen = set()
    for crash_at in range(5):
        disk = SimulatedDisk()
        impl.write(disk, "dir", old)
        disk.crash_at = disk.steps + crash_at
        returned = True
        try:
            impl.write(disk, "dir", new)
        except Crashed:
            returned = False
        for after in disk.outcomes():
            found = impl.parse(after.read(f"dir/{impl.NAME}"))
            assert found in ((new,) if returned else (old, new))
            seen.add(found.directory_id)
    assert seen == {D, E}


def test_on_the_machines_own_disk(tmp_path: Path) -> None:
    impl.write(RealDisk(), str(tmp_path), impl.MetaProperties(1, "c", 1, D))
    assert impl.Ensemble.load(RealDisk(), [str(tmp_path), str(tmp_path / "none")]).empty == [str(tmp_path / "none")]
    assert not (tmp_path / "meta.properties.tmp").exists()


# ---- the audit


def directory(path: Path, text: str | None) -> Directory:
    files = {}
    path.mkdir()
    if text is not None:
        (path / impl.NAME).write_bytes(text.encode("latin-1"))
        files = {impl.NAME: File(path / impl.NAME, len(text))}
    return Directory(LogDirectory(path, (), files), (), True)


@pytest.mark.clause("MTP-10")
@pytest.mark.parametrize("text", meta_properties_trial.TEXTS)
def test_what_a_file_lacks_is_what_the_spec_says(text: str) -> None:
    read = spec.meta_properties(text)
    if not isinstance(read, Refused):
        assert impl.parse(text.encode("latin-1")).lacking() == spec.lacking(read)


@pytest.mark.clause("MTP-10")
def test_a_file_that_says_nothing_is_told_so(tmp_path: Path) -> None:
    def said(name: str, text: str) -> str:
        (found,) = MetaPropertiesCheck().check(directory(tmp_path / name, text))
        return found.message

    assert said("empty", "") == "the file says nothing"
    assert said("garbage", "\x03\x1b[2J=\x00") == "the file does not say broker.id"
    assert said("half", f"directory.id={D}\n") == "the file does not say broker.id and cluster.id"


@pytest.mark.clause("MTP-4")
@pytest.mark.clause("MTP-6")
@pytest.mark.clause("MTP-10")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"#\n{V1}directory.id={D}\n", []),
        ("version=0\nbroker.id=1\n", []),
        (None, []),
        ("version=1\ncluster.id=c\nnode.id=x\n", [("MTP-4", 3)]),
        ("version=1\nnode.id=1\n", [("MTP-4", None)]),
        (f"{V1}directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n", [("MTP-6", 4)]),
        ("x=\\u12\n", [("MTP-2", 1)]),
        ("", [("MTP-10", None)]),
        ("# only a comment\n", [("MTP-10", None)]),
        ("\x00\x7f\xe9 no property of Kafka's\r\x01", [("MTP-10", None)]),
        ("version=0\ncluster.id=c\n", [("MTP-10", None)]),
        (f"broker.id=1\ndirectory.id={D}\n", [("MTP-10", None)]),
        (f"broker.id=1\ncluster.id=c\ndirectory.id={D}\n", []),
        ("directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n", [("MTP-10", None), ("MTP-6", 1)]),
    ],
)
def test_a_file_is_checked(tmp_path: Path, text: str | None, expected: list[Any]) -> None:
    found = MetaPropertiesCheck().check(directory(tmp_path / "a", text))
    assert [(f.clause, f.line) for f in found] == expected


@pytest.mark.clause("MTP-6")
@pytest.mark.clause("MTP-9")
def test_directories_are_checked_beside_each_other(tmp_path: Path) -> None:
    a = directory(tmp_path / "a", f"{V1}directory.id={D}\n")
    b = directory(tmp_path / "b", f"{V1}directory.id={E}\n".replace("node.id=1", "node.id=2"))
    c = directory(tmp_path / "c", f"{V1}directory.id={D}\n".replace("=c", "=other"))
    assert list(EnsembleCheck().check((a, b), None)) == []
    assert [(f.clause, f.line) for f in EnsembleCheck().check((a, b, c), None)] == [("MTP-9", 2), ("MTP-6", 4)]
