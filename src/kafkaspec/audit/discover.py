"""What lies under the paths that a user gives: log directories, partitions, single segments, by their names.

A path may be a log directory (an entry of log.dirs), a folder that holds such (a broker's data folder, a folder of
nodes), a partition's directory, a folder of partitions that were taken out of one, or a file of a partition. Only names
and sizes are read, and nothing is written.
Source of the names: LogFileUtils, UnifiedLog, LocalLog and LogManager, Kafka 4.3.0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kafkaspec.audit.files import Kind, LogDirectory, PartitionFiles, Segment
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File, is_empty, why
from kafkaspec.impl.management.checkpoints import MARKER
from kafkaspec.spec.common.kafka import INT_MAX, LONG_MAX

CURRENT = re.compile(r"([A-Za-z0-9._-]{1,249})-([0-9]{1,10})")
AWAY = re.compile(r"([A-Za-z0-9._-]+)-([0-9]{1,10})\.[0-9a-zA-Z_-]+?(-delete|-future|-stray)")
NUMBERED = re.compile(r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")
TRANSIENT = (".deleted", ".cleaned", ".swap")
OF_A_DIRECTORY = {
    "meta.properties",
    MARKER,
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
}
"""Any of these makes a folder a log directory."""
OF_A_PARTITION = {"leader-epoch-checkpoint", "partition.metadata"}
DEEPEST = 6
"""So far below a path log directories are looked for."""
MOST_FOLDERS = 5_000
"""How many folders are looked into before it is clear that the path is not one of Kafka's."""


@dataclass(frozen=True)
class Place:
    """A log directory; or, if not `whole`, the folder of partitions or files that were given by themselves."""

    files: LogDirectory
    whole: bool = True


@dataclass(frozen=True)
class Discovery:
    """What the paths hold. `problems`: what could not be looked into, a line each; `notes`: what a user should know."""

    places: tuple[Place, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def discover(paths: Sequence[Path]) -> Discovery:
    """Everything under the paths. Raises UserError for a path that is not there, or holds nothing of Kafka's."""
    walk = _Walk()
    for path in paths:
        walk.path(path)
    return Discovery(walk.places(), tuple(walk.problems), tuple(walk.notes))


def partition_name(name: str) -> tuple[str, int, Kind] | None:
    """Topic, partition and kind that a directory's name says; None if it is no partition's.

    >>> partition_name("my-topic-3")
    ('my-topic', 3, <Kind.CURRENT: ''>)
    >>> partition_name("a-0.44d833e8653c4b92ab39d5d74d44a2f6-delete")
    ('a', 0, <Kind.DELETED: '-delete'>)
    """
    m = AWAY.fullmatch(name) or CURRENT.fullmatch(name)
    if m is None or int(m[2]) > INT_MAX:
        return None
    return m[1], int(m[2]), Kind(m[3] if m.re is AWAY else "")


def numbered(name: str) -> tuple[int, str] | None:
    """Offset and suffix that a file's name says; None if it does not begin with an offset of 20 digits.

    >>> numbered("00000000000000000007.log"), numbered("99999999999999999999.log")
    ((7, '.log'), None)
    """
    m = NUMBERED.fullmatch(name)
    return None if m is None or int(m[1]) > LONG_MAX else (int(m[1]), m[2])


def is_partition_file(name: str) -> bool:
    """Whether Kafka reads a file of this name in a partition's directory.

    >>> is_partition_file("00000000000000000007.log"), is_partition_file("7.log")
    (True, False)
    """
    return numbered(name) is not None or name in OF_A_PARTITION


def partition_files(path: Path, topic: str, partition: int, kind: Kind = Kind.CURRENT) -> PartitionFiles:
    """The files of a partition's directory, listed. Raises OSError if it cannot be."""
    by_offset: dict[int, dict[str, File]] = {}
    snapshots = dict[int, File]()
    transient, others = list[File](), list[File]()
    single = dict[str, File]()
    files, folders = _listed(path)
    for name, file in sorted(files.items()):
        if (found := numbered(name)) is not None:
            offset, suffix = found
            if suffix == ".snapshot":
                snapshots[offset] = file
            else:
                by_offset.setdefault(offset, {})[suffix] = file
        elif name.endswith(TRANSIENT):
            transient.append(file)
        elif name in OF_A_PARTITION:
            single[name] = file
        else:
            others.append(file)
    every = [
        Segment(base, f.get(".log"), f.get(".index"), f.get(".timeindex"), f.get(".txnindex"))
        for base, f in sorted(by_offset.items())
    ]
    return PartitionFiles(
        path,
        topic,
        partition,
        kind,
        segments=tuple(s for s in every if s.log is not None),
        orphans=tuple(s for s in every if s.log is None),
        snapshots=tuple(sorted(snapshots.items())),
        transient=tuple(transient),
        leader_epoch_checkpoint=single.get("leader-epoch-checkpoint"),
        metadata=single.get("partition.metadata"),
        others=tuple(others),
        folders=tuple(sorted(folders)),
    )


def listed_again(files: PartitionFiles) -> PartitionFiles | None:
    """The same partition's files as they are now; of those that were given alone, the same. None if the directory is
    gone. Raises OSError if it cannot be listed."""
    try:
        now = partition_files(files.path, files.topic, files.partition, files.kind)
    except FileNotFoundError:
        return None
    return now if files.only is None else _only(now, files.only)


# ---- looking ---------------------------------------------------------------------------------------------------------
@dataclass
class _Walk:
    """The paths so far. Directories are known by their real path, so that no file is read twice."""

    directories: dict[str, Place] = field(default_factory=dict)
    alone: dict[str, list[PartitionFiles]] = field(default_factory=dict)
    """partitions that were given by themselves, by the real path of their folder"""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    visited: set[str] = field(default_factory=set)
    looked: int = 0

    def path(self, path: Path) -> None:
        """One path of the user's."""
        try:
            is_directory = path.is_dir()
            if not is_directory:
                path.stat()
        except OSError as e:
            raise UserError(f"{path}: {why(path, e).lower()}") from None
        if not is_directory:
            self._file(path)
            return
        before = len(self.problems)
        try:
            files, folders = _listed(path)
        except OSError as e:
            raise UserError(f"{path}: {_reason(e)}") from None
        if self._is_partition(files):
            self._partition(path)
        elif not self._directory(path, files, folders, 0):
            if len(self.problems) > before:
                raise UserError(self.problems[before])
            there = "it is empty" if not files and not folders else "it holds no log directory, partition or segment"
            raise UserError(f"{path}: nothing of Kafka's: {there}")

    def places(self) -> tuple[Place, ...]:
        """What was found: log directories in the order given, then what was given alone."""
        out = list(self.directories.values())
        held = {os.path.realpath(p.path) for d in out for p in d.files.partitions}
        for partitions in self.alone.values():
            kept = []
            for p in partitions:
                if p.only is not None and not p.segments:
                    raise UserError(f"{p.path / min(p.only)}: no segment: name the .log, or the directory")
                if os.path.realpath(p.path) in held:
                    self.notes.append(f"{p.path}: given twice; audited once")
                else:
                    kept.append(p)
            if kept:
                out.append(Place(LogDirectory(kept[0].path.parent, tuple(kept)), whole=False))
        return tuple(out)

    # ---- kinds of paths
    def _file(self, path: Path) -> None:
        if not is_partition_file(path.name):
            raise UserError(f"{path}: no segment: its name would be the base offset, 20 digits, and .log")
        name = path.name
        topic, partition, kind = self._named(path.absolute().parent)
        try:
            whole = partition_files(path.parent, topic, partition, kind)
        except OSError as e:
            raise UserError(f"{path.parent}: {_reason(e)}") from None
        real = os.path.realpath(path.parent)
        for n, p in enumerate(self.alone.get(real, [])):
            if p.only is None or name in p.only:
                self.notes.append(f"{path}: given twice; audited once")
            else:
                self.alone[real][n] = _only(whole, p.only | {name})
            return
        self.alone[real] = [_only(whole, frozenset({name}))]

    def _partition(self, path: Path) -> None:
        topic, partition, kind = self._named(path.absolute())
        real = os.path.realpath(path)
        if any(p.only is None for p in self.alone.get(real, [])):
            self.notes.append(f"{path}: given twice; audited once")
        try:
            self.alone[real] = [partition_files(path, topic, partition, kind)]
        except OSError as e:
            raise UserError(f"{path}: {_reason(e)}") from None

    def _named(self, path: Path) -> tuple[str, int, Kind]:
        if (named := partition_name(path.name)) is not None:
            return named
        self.notes.append(f"{path}: the name says no topic and partition; taken for {path.name or 'unnamed'}-0")
        return path.name or "unnamed", 0, Kind.CURRENT

    def _directory(self, path: Path, files: dict[str, File], folders: Sequence[Path], depth: int) -> bool:
        """Take a folder for a log directory, or look for such in it. Whether there was anything."""
        real = os.path.realpath(path)
        if real in self.visited:
            if real in self.directories:
                self.notes.append(f"{path}: given twice; audited once")
            return True
        self.visited.add(real)
        partitions = [(f, n) for f in folders if (n := partition_name(f.name)) is not None]
        whole = bool(OF_A_DIRECTORY & files.keys())
        if not whole:
            partitions = [(f, n) for f, n in partitions if self._looks_like_partition(f)]
        if partitions or whole:
            taken = list(self._taken(partitions))
            others = tuple(sorted(set(folders) - {f for f, _ in partitions}))
            if not os.path.exists(path / MARKER):  # a link to nothing: a start looks where it leads
                files.pop(MARKER, None)
            empty = path / MARKER in others and is_empty(path / MARKER)
            self.directories[real] = Place(LogDirectory(path, tuple(taken), files, others, empty), whole)
            return True
        found = False
        for folder in sorted(folders):
            self.looked += 1
            if self.looked > MOST_FOLDERS:
                raise UserError(f"{path}: {MOST_FOLDERS:,} folders, and too few of Kafka's: name the log directories")
            if depth < DEEPEST and os.path.realpath(folder) not in self.visited:
                try:
                    below = _listed(folder)
                except FileNotFoundError:
                    continue
                except OSError as e:
                    self.problems.append(f"{folder}: {_reason(e)}")
                    continue
                found |= self._directory(folder, *below, depth + 1)
        return found

    def _taken(self, partitions: Iterable[tuple[Path, tuple[str, int, Kind]]]) -> Iterator[PartitionFiles]:
        for folder, (topic, partition, kind) in sorted(partitions):
            try:
                yield partition_files(folder, topic, partition, kind)
            except FileNotFoundError:
                continue  # deleted since
            except OSError as e:
                self.problems.append(f"{folder}: {_reason(e)}")

    def _looks_like_partition(self, folder: Path) -> bool:
        try:
            return self._is_partition(_listed(folder)[0])
        except OSError:
            return False

    @staticmethod
    def _is_partition(files: Iterable[str]) -> bool:
        names = set(files)
        return bool(OF_A_PARTITION & names) or any(map(numbered, names))


def _listed(path: Path) -> tuple[dict[str, File], list[Path]]:
    """Files by name and folders of a folder; links followed. What vanishes meanwhile is left out."""
    files, folders = dict[str, File](), list[Path]()
    with os.scandir(path) as entries:
        for e in entries:
            try:
                if e.is_dir():
                    folders.append(path / e.name)
                else:
                    files[e.name] = File(path / e.name, e.stat().st_size)
            except FileNotFoundError:
                if e.is_symlink():
                    files[e.name] = File(path / e.name, 0)
            except OSError:  # a loop of links
                files[e.name] = File(path / e.name, 0)
    return files, folders


def _only(files: PartitionFiles, names: frozenset[str]) -> PartitionFiles:
    """A partition of which only some files were given: these, and the indexes of the segments."""

    def named(file: File | None) -> File | None:
        return file if file is not None and file.path.name in names else None

    return replace(
        files,
        segments=tuple(s for s in files.segments if named(s.log)),
        orphans=(),
        snapshots=tuple((offset, f) for offset, f in files.snapshots if named(f)),
        transient=(),
        leader_epoch_checkpoint=named(files.leader_epoch_checkpoint),
        metadata=named(files.metadata),
        others=(),
        folders=(),
        only=names,
    )


def _reason(e: OSError) -> str:
    return (e.strerror or str(e)).lower()
