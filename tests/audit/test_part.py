"""A part of a log directory: what is there is judged, and what is not there is said once and is no finding."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from kafkaspec.audit import engine
from kafkaspec.audit.check import ClusterCheck, DirectoryCheck, LogCheck
from kafkaspec.audit.discover import discover
from kafkaspec.audit.finding import Severity
from kafkaspec.audit.recorded import recorded
from kafkaspec.contract import clauses
from kafkaspec.errors import UserError
from kafkaspec.report.describe import describe

Originals = Callable[[str], tuple[Path, ...]]
BASIC, KILLED = "single-basic/nodes-after-clean-stop", "compaction-retention/node-after-sigkill-1"
OWN = ("meta.properties", "the marker of a clean stop", "the offset checkpoints")


def taken(partition: Path, names: Iterable[str], to: Path) -> Path:
    """Some files of a partition's directory, in one of its name elsewhere."""
    folder = to / partition.name
    folder.mkdir(parents=True)
    for name in names:
        shutil.copyfile(partition / name, folder / name)
    return folder


def subset(names: list[str], rng: random.Random) -> list[str]:
    """A part of a directory as people take one: by suffix, by segment, or any files."""
    logs = [n for n in names if n.endswith(".log")]
    match rng.choice(["suffixes", "first", "last", "middle", "without the first", "logs and some", "some", "most"]):
        case "suffixes":
            kept = {s for s in {os.path.splitext(n)[1] for n in names} if rng.random() < 0.5} | {".log"}
            return [n for n in names if os.path.splitext(n)[1] in kept]
        case "first":
            return [n for n in names if n.startswith(min(logs)[:20])]
        case "last":
            return [n for n in names if n.startswith(max(logs)[:20]) or not n[0].isdigit()]
        case "middle":
            return [n for n in names if n.startswith(rng.choice(logs)[:20])]
        case "without the first":
            return [n for n in names if not n.startswith(min(logs)[:20])]
        case "logs and some":
            return [n for n in names if n.endswith(".log") or rng.random() < 0.5]
        case "some":
            return [n for n in names if rng.random() < 0.5]
        case _:
            return [n for n in names if rng.random() < 0.9]


def false_alarms(name: str, directories: Iterable[Path], to: Path, rng: random.Random, of_each: int) -> list[str]:
    """What is said, beside leftovers, of parts of partitions that are sound."""
    out = []
    places = discover(list(directories)).places
    for n, p in enumerate(p for place in places for p in place.files.partitions if p.segments):
        names = sorted(x.name for x in p.path.iterdir() if x.is_file())
        for k in range(of_each):
            kept = subset(names, rng)
            if not any(x.endswith(".log") for x in kept):
                continue
            folder = taken(p.path, kept, to / f"{n}-{k}")
            found = engine.audit([folder], strict=True)
            assert found.part is not None
            assert found.part.without[:3] == OWN
            out += [f"{name} {p.path.name} {kept}: {x}" for x in found.problems]
            for f in found.findings:
                old = name.startswith("classic-") and f.clause == "BAT-2"
                if f.severity > Severity.LEFTOVER and not old:
                    out.append(f"{name} {p.path.name} {kept}: {f.clause} {f.message}")
            shutil.rmtree(folder.parent)
    return out


@pytest.mark.parametrize("name", [BASIC, KILLED])
def test_a_part_of_what_is_sound_is_sound(name: str, originals: Originals, tmp_path: Path) -> None:
    assert false_alarms(name, originals(name), tmp_path, random.Random(name), 2) == []


@pytest.mark.deep
@pytest.mark.parametrize("r", recorded(), ids=lambda r: r.name)
def test_any_part_of_any_recording_is_sound(r: object, tmp_path: Path) -> None:
    with r.unpacked() as directories:  # type: ignore[attr-defined]
        name = r.name  # type: ignore[attr-defined]
        assert false_alarms(name, directories, tmp_path, random.Random(name), 12) == []


def test_a_marker_of_a_segment_that_is_not_there_is_no_fault_of_a_later_snapshot(
    originals: Originals, tmp_path: Path
) -> None:
    """A marker of version 1 keeps the producer's epoch, and leaves nothing in a snapshot but its timestamp."""
    partition = originals("broker-kills/node-after-clean-stop")[0] / "ledger-0"
    kept = [f"{n:020}.{kind}" for n in (0, 127) for kind in ("log", "snapshot") if n or kind == "log"]
    found = engine.audit([taken(partition, [*kept, f"{91:020}.snapshot"], tmp_path)], strict=True)
    assert (found.verdict, found.findings, found.problems) == ("sound", (), ())


# ---- what was not there
def test_what_was_not_there_is_one_line(originals: Originals, tmp_path: Path) -> None:
    partition = originals(BASIC)[0] / "ledger-0"
    found = engine.audit([partition], strict=True)
    assert found.part is not None
    assert (found.part.paths, found.part.without) == ((str(partition),), OWN)
    assert set(found.part.not_asked) == {c for x in every_check() for c in x.needs_directory}
    told = [cell.text for name, cell in describe(found)[0].facts if name == "part"]
    assert len(told) == 1
    assert told[0].startswith(f"{partition} without meta.properties, ")
    assert "; not asked: CKP-3, CKP-5, CKP-11 to CKP-14, " in told[0]
    assert engine.audit(list(originals(BASIC)), strict=True).part is None


def every_check() -> list[type[LogCheck | DirectoryCheck | ClusterCheck]]:
    found = engine.checks()
    return [*found.logs, *found.directories, *found.clusters]


@pytest.mark.parametrize(
    ("name", "kept", "said", "clause"),
    [
        ("ledger-0", lambda n: not n.endswith("0.index"), "00000000000000000000.index", "OIX-24"),
        ("ledger-0", lambda n: not n.endswith(".index"), "2 offset indexes", "OIX-24"),
        ("ledger-0", lambda n: not n.endswith(".timeindex"), "2 time indexes", "TIX-13"),
        ("ledger-0", lambda n: not n.endswith(".txnindex"), "2 transaction indexes", "PSM-16"),
        ("ledger-0", lambda n: not n.endswith(".snapshot"), "producer snapshots", "PSM-18"),
        ("ledger-0", lambda n: n != "leader-epoch-checkpoint", "leader-epoch-checkpoint", "LEC-20"),
        ("ledger-0", lambda n: n != "partition.metadata", "partition.metadata", "CKP-7"),
        ("ledger-0", lambda n: not n.endswith("0.log"), "00000000000000000000.log", "LDR-5"),
    ],
    ids=lambda x: x if isinstance(x, str) else None,
)  # fmt: skip
def test_a_file_that_is_absent_is_named_and_its_rule_not_asked(
    name: str, kept: Callable[[str], bool], said: str, clause: str, originals: Originals, tmp_path: Path
) -> None:
    partition = originals(BASIC)[0] / name
    names = [p.name for p in partition.iterdir()]
    assert any(not kept(n) for n in names)
    found = engine.audit([taken(partition, filter(kept, names), tmp_path)], strict=True)
    assert (found.verdict, found.findings, found.problems) == ("sound", (), ())
    assert found.part is not None
    assert found.part.without == (*OWN, said)
    assert clause in found.part.not_asked


def test_a_segment_between_two_that_is_absent(originals: Originals, tmp_path: Path) -> None:
    partition = next(p for p in sorted(originals(BASIC)[0].iterdir()) if len(list(p.glob("*.log"))) > 2)
    first, second, third, *_ = sorted(p.name for p in partition.glob("*.log"))
    kept = [p.name for p in partition.iterdir() if not p.name.startswith(second[:20])]
    found = engine.audit([taken(partition, kept, tmp_path)], strict=True)
    assert (found.verdict, found.findings) == ("sound", ())
    assert found.part is not None
    assert f"offsets {int(second[:20])} to {int(third[:20]) - 1}" in found.part.without
    assert "LDR-17" in found.part.not_asked
    assert first


def test_a_gap_within_a_segment_is_still_asked(originals: Originals, tmp_path: Path) -> None:
    partition = originals(BASIC)[0] / "orders-none-0"
    log = max(partition.glob("*.log"))
    data = log.read_bytes()
    size = 12 + int.from_bytes(data[8:12], "big")
    folder = taken(partition, [log.name], tmp_path)
    second = size + 12 + int.from_bytes(data[size + 8 : size + 12], "big")
    (folder / log.name).write_bytes(data[:size] + data[second:])
    found = engine.audit([folder], strict=True)
    assert [(f.severity, f.clause) for f in found.findings] == [(Severity.UNCHECKED, "LDR-17")]


def test_a_folder_of_partitions_is_a_part(originals: Originals, tmp_path: Path) -> None:
    """Without one of the directory's own files; with one it is a log directory."""
    directory = originals(BASIC)[0]
    for name in ("ledger-0", "clicks-1"):
        taken(directory / name, [p.name for p in (directory / name).iterdir()], tmp_path)
    found = engine.audit([tmp_path], strict=True)
    assert found.part is not None
    assert [Path(p).name for p in found.part.paths] == ["clicks-1", "ledger-0"]
    assert [d.clean for d in found.directories] == [None]
    assert (found.verdict, found.findings) == ("sound", ())
    shutil.copyfile(directory / "meta.properties", tmp_path / "meta.properties")
    found = engine.audit([tmp_path], strict=True)
    assert found.part is None
    assert [d.clean for d in found.directories] == [False]


def test_the_metadata_log_of_a_part_says_nothing_of_other_topics(originals: Originals, tmp_path: Path) -> None:
    """Its last records may be in a segment that was not taken."""
    directory = originals(BASIC)[0]
    for name in ("__cluster_metadata-0", "clicks-0"):
        names = [p.name for p in (directory / name).iterdir() if p.is_file() and p.name != "partition.metadata"]
        taken(directory / name, names, tmp_path)
    found = engine.audit([tmp_path], strict=True)
    assert (found.verdict, found.findings) == ("sound", ())


# ---- some files, by name
def test_files_by_name(originals: Originals) -> None:
    partition = originals(BASIC)[0] / "ledger-0"
    first, *_ = logs = sorted(partition.glob("*.log"))
    found = engine.audit([first], strict=True)
    assert found.partitions[0].segments == 1
    assert found.part is not None
    assert found.part.without == (*OWN, "partition.metadata", "leader-epoch-checkpoint", "producer snapshots")
    every = [p for p in sorted(partition.iterdir()) if p.is_file()]
    found = engine.audit(every, strict=True)
    assert found.partitions == engine.audit([partition], strict=True).partitions
    assert found.part is not None
    assert found.part.without == OWN
    assert found.notes == ()
    assert found.partitions[0].segments == len(logs)


def test_files_by_name_without_a_segment(originals: Originals) -> None:
    partition = originals(BASIC)[0] / "ledger-0"
    with pytest.raises(UserError, match=r"leader-epoch-checkpoint: no segment: name the \.log"):
        engine.audit([partition / "leader-epoch-checkpoint"])
    with pytest.raises(UserError, match="no segment: its name would be"):
        engine.audit([partition.parent / "meta.properties"])


def test_without_a_log_it_cannot_be_judged(originals: Originals, tmp_path: Path) -> None:
    partition = originals(BASIC)[0] / "ledger-0"
    names = [p.name for p in partition.iterdir() if not p.name.endswith(".log")]
    found = engine.audit([taken(partition, names, tmp_path)], strict=True)
    assert found.exit_code == 2
    assert [p.partition(": ")[2] for p in found.problems] == [
        "no .log of a segment is there: the other files cannot be checked alone"
    ]


# ---- damage
def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("file", "at", "clause"),
    [
        ("00000000000000000000.log", 100, "BAT-3"),
        ("00000000000000000000.index", 7, "OIX-24"),
        ("00000000000000000000.timeindex", 7, "TIX-13"),
        ("00000000000000000000.txnindex", 9, "PSM-16"),
        ("leader-epoch-checkpoint", 2, "LEC-17"),
    ],
)
def test_damage_in_a_part_is_found_and_nothing_else(
    file: str, at: int, clause: str, originals: Originals, tmp_path: Path
) -> None:
    partition = originals(BASIC)[0] / "ledger-0"
    names = [p.name for p in partition.iterdir() if p.name == file or p.name.endswith(".log")]
    folder = taken(partition, names, tmp_path)
    flip(folder / file, at)
    found = engine.audit([folder], strict=True)
    assert [(Path(f.file).name, f.clause) for f in found.findings] == [(file, clause)]
    assert found.exit_code == 1


# ---- the lists
def test_a_rule_that_needs_the_directory_is_listed() -> None:
    """What directory and cluster checks ask, and no check of a log, is what a part is not asked."""
    uses = [u for u in clauses.all_uses() if u.form == "audit"]

    def asked(classes: Iterable[type]) -> set[str]:
        modules = {c.__module__: c.__name__ for c in classes}
        return {u.clause for u in uses if any(u.where.startswith(f"{m}:{n}.") for m, n in modules.items())}

    found = engine.checks()
    others: list[type[DirectoryCheck | ClusterCheck]] = [*found.directories, *found.clusters]
    for check in others:
        of_logs = {u.clause for c in found.logs for u in uses if u.where.startswith(f"{c.__module__}:{c.__name__}.")}
        assert asked([check]) - of_logs <= set(check.needs_directory), check
    listed = {c for x in every_check() for c in x.needs_directory}
    assert listed <= {u.clause for u in uses}


@pytest.mark.parametrize(
    ("name", "clause", "then"),
    [
        ("partition.metadata", "CKP-7", "a restart takes the directory out of service"),
        ("leader-epoch-checkpoint", "LEC-17", "loading the log fails"),
    ],
)
def test_a_directory_in_the_place_of_a_partition_s_file_is_told(
    name: str, clause: str, then: str, originals: Originals, tmp_path: Path
) -> None:
    """By itself and with its log directory: Kafka opens it, and cannot read it."""
    shutil.copytree(originals(BASIC)[0], tmp_path / "data")
    place = tmp_path / "data" / "ledger-0" / name
    place.unlink()
    place.mkdir()
    for path in (tmp_path / "data", place.parent):
        (finding,) = engine.audit([path], strict=True).findings
        assert (finding.clause, finding.severity, finding.file) == (clause, Severity.ERROR, str(place))
        assert "a directory in the place of the" in finding.message
        assert finding.recovery.startswith(then)
