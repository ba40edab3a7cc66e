"""What lies where: every kind of path, and what is no path of Kafka's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkaspec.audit import discover as d
from kafkaspec.audit.files import Kind
from kafkaspec.errors import UserError

Originals = Callable[[str], tuple[Path, ...]]
BASIC, CLUSTER = "single-basic/nodes-after-clean-stop", "cluster3-faults/nodes-after-clean-stop"


def write(path: Path, data: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a-0", ("a", 0, Kind.CURRENT)),
        ("a-b.c_d-12", ("a-b.c_d", 12, Kind.CURRENT)),
        ("__cluster_metadata-0", ("__cluster_metadata", 0, Kind.CURRENT)),
        ("t-3.44d833e8653c4b92ab39d5d74d44a2f6-delete", ("t", 3, Kind.DELETED)),
        ("t.x-3.44d833e8653c4b92ab39d5d74d44a2f6-future", ("t.x", 3, Kind.FUTURE)),
        ("t-3.44d833e8653c4b92ab39d5d74d44a2f6-stray", ("t", 3, Kind.STRAY)),
        ("lost+found", None),
        ("t", None),
        ("t-x", None),
        ("-1", None),
    ],
)
def test_the_name_of_a_directory(name: str, found: object) -> None:
    assert d.partition_name(name) == found


def test_a_folder_of_nodes_and_each_directory_by_itself(originals: Originals) -> None:
    nodes = originals(CLUSTER)
    together = d.discover([nodes[0].parent.parent])
    assert [p.files.path for p in together.places] == list(nodes)
    assert together.places == d.discover(nodes).places
    assert all(p.whole for p in together.places)
    assert (together.problems, together.notes) == ((), ())


def test_a_partition_and_a_segment(originals: Originals) -> None:
    (directory,) = originals(BASIC)
    partition = directory / "ledger-0"
    (place,) = d.discover([partition]).places
    assert not place.whole
    (files,) = place.files.partitions
    assert (files.topic, files.partition, files.kind) == ("ledger", 0, Kind.CURRENT)
    assert [s.base_offset for s in files.segments] == sorted(int(p.stem) for p in partition.glob("*.log"))
    assert len(files.segments) > 1
    assert all(s.offset_index and s.time_index for s in files.segments)
    assert files.leader_epoch_checkpoint is not None
    assert files.metadata is not None
    segment = files.segments[0]
    assert segment.log is not None
    (place,) = d.discover([segment.log.path]).places
    (one,) = place.files.partitions
    assert one.segments == (segment,)
    assert one.leader_epoch_checkpoint is None
    assert d.listed_again(one) == one
    assert d.listed_again(files) == files
    several = d.discover([s.log.path for s in files.segments if s.log])
    assert several.places[0].files.partitions[0].segments == files.segments


def test_what_a_partition_s_directory_holds(tmp_path: Path) -> None:
    names = [
        "00000000000000000000.log", "00000000000000000000.index", "00000000000000000007.index",
        "00000000000000000005.snapshot", "00000000000000000003.log.deleted", "00000000000000000003.log.cleaned",
        "00000000000000000003.index.swap", "leader-epoch-checkpoint", "partition.metadata",
        "leader-epoch-checkpoint.tmp", "7.log", "quorum-state",
    ]  # fmt: skip
    for name in names:
        write(tmp_path / "t-0" / name, name.encode())
    files = d.partition_files(tmp_path / "t-0", "t", 0)
    assert [s.base_offset for s in files.segments] == [0]
    assert [s.base_offset for s in files.orphans] == [7]
    assert [o for o, _ in files.snapshots] == [5]
    assert {f.path.suffix for f in files.transient} == {".deleted", ".cleaned", ".swap"}
    assert {f.path.name for f in files.others} == {"leader-epoch-checkpoint.tmp", "7.log", "quorum-state"}
    assert all(f.size == len(f.path.name) for f in files.others)


def test_a_folder_named_like_a_partition_is_one_only_if_it_holds_what_one_holds(tmp_path: Path) -> None:
    write(tmp_path / "node-1" / "t-0" / f"{0:020}.log")
    write(tmp_path / "node-2" / "meta.properties", b"version=1\n")
    found = d.discover([tmp_path])
    assert [p.files.path.name for p in found.places] == ["node-1", "node-2"]
    assert [len(p.files.partitions) for p in found.places] == [1, 0]


def test_folders_that_are_no_partition_s_are_named(tmp_path: Path) -> None:
    write(tmp_path / "meta.properties", b"version=1\n")
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "t-0").mkdir()
    (place,) = d.discover([tmp_path]).places
    assert [p.name for p in place.files.folders] == ["lost+found"]
    assert [p.topic for p in place.files.partitions] == ["t"]


def test_a_path_twice_is_judged_once(originals: Originals, tmp_path: Path) -> None:
    (directory,) = originals(BASIC)
    link = tmp_path / "link"
    link.symlink_to(directory)
    found = d.discover([directory, link, directory / "ledger-0", directory / "ledger-0" / f"{0:020}.log"])
    assert len(found.places) == 1
    assert [n.split(": ")[1] for n in found.notes] == ["given twice; audited once"] * len(found.notes)
    assert len(found.notes) >= 2


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda p: p / "gone", "no such file"),
        (lambda p: p, "it is empty"),
        (lambda p: write(p / "a" / "b.txt").parent.parent, "no log directory, partition or segment"),
        (lambda p: write(p / "notes.log"), "no segment"),
        (lambda p: write(p / f"{0:020}.index"), "name the .log"),
        (lambda p: write(p / "picture.png", b"\x89PNG"), "no segment"),
    ],
)
def test_what_is_nothing_of_kafka_s(make: Callable[[Path], Path], said: str, tmp_path: Path) -> None:
    path = make(tmp_path)
    with pytest.raises(UserError) as e:
        d.discover([path])
    assert str(e.value).startswith(f"{path}: ")
    assert said in str(e.value)
    assert "\n" not in str(e.value)


def test_loops_of_links_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(UserError, match="symbolic link"):
        d.discover([tmp_path / "a"])
    write(tmp_path / "broker" / "meta.properties")
    (tmp_path / "broker" / "again").symlink_to(tmp_path / "broker")
    (tmp_path / "up").symlink_to(tmp_path)
    (place,) = d.discover([tmp_path]).places
    assert place.files.path.name in ("broker", "again")


def test_too_many_folders_are_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(d, "MOST_FOLDERS", 10)
    for n in range(20):
        (tmp_path / f"f{n}").mkdir()
    with pytest.raises(UserError, match="name the log directories"):
        d.discover([tmp_path])


def test_what_may_not_be_read_is_a_line(originals: Originals, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory,) = originals(BASIC)
    scandir = os.scandir

    def refused(path: str | Path) -> object:
        if Path(path).name in ("ledger-1", "secret"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    found = d.discover([directory])
    assert found.problems == (f"{directory / 'ledger-1'}: permission denied",)
    assert "ledger-1" not in [p.path.name for p in found.places[0].files.partitions]
    with pytest.raises(UserError, match="permission denied"):
        d.discover([directory / "ledger-1"])
