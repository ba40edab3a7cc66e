"""A directory on a disk that forgets: what was written, what of it was flushed, and what a power failure may leave.

A reader sees `files`. A power failure leaves of each file what was flushed, and of what came after any part: its first
batches, half a batch more, or the length of all of them with one that was never written. Names that were made, changed
or removed since the directory was flushed may be undone, the last first: a journal keeps their order.

Contents are those of `spec.storage.log_loader`. The rule is REC-1. Source: fsync and rename of POSIX.1-2017; Kafka
Internals, ch. 03 and the design notes on two kinds of corruption ("Implementation", 'Log').
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kafkaspec.contract.clauses import states
from kafkaspec.contract.codec import replace
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.storage.log_loader import EPOCHS, LOG, Content, LogFile


class FileOnDisk(NamedTuple):
    """A file: what a reader sees, what was last flushed (None: nothing), and how many of the flushed batches no cut
    has touched since (None: all of them)."""

    content: Content
    flushed: Content | None = None
    untouched: int | None = None


def kept(stored: FileOnDisk) -> LogFile:
    """The part of a .log that no power failure takes."""
    assert not isinstance(stored.content, (str, tuple))
    known = stored.flushed if isinstance(stored.flushed, LogFile) else LogFile()
    if stored.untouched is None:
        return known
    return LogFile(known.batches[: stored.untouched], known.torn and stored.untouched >= len(known.batches))


@states("REC-1")
def left_of(stored: FileOnDisk) -> tuple[Content, ...]:
    """What a power failure may leave of a file, what was flushed first."""
    content, flushed = stored.content, stored.flushed
    if content == flushed and stored.untouched is None:
        return (content,)
    if not isinstance(content, LogFile):
        return (content, "corrupt") if isinstance(content, str) else (content,)
    certain = kept(stored).batches
    out: list[Content] = [flushed if isinstance(flushed, LogFile) else LogFile()]
    for n in range(len(certain), len(content.batches) + 1):
        out.append(LogFile(content.batches[:n]))
        if n < len(content.batches) or content.torn:
            out.append(LogFile(content.batches[:n], torn=True))
        if n < len(content.batches):
            lost = content.batches[n]._replace(whole=False)
            out.append(LogFile((*content.batches[:n], lost, *content.batches[n + 1 :]), content.torn))
    out.append(content)
    return tuple(dict.fromkeys(out))


class Undo(NamedTuple):
    """Of one change of names: what stood at each name before it; None: nothing did."""

    before: tuple[tuple[str, FileOnDisk | None], ...]


@dataclass(frozen=True)
class Disk:
    """A directory. `pending`: the changes of names since it was flushed, in their order."""

    stored: Frozen[str, FileOnDisk] = Frozen()  # noqa: RUF009
    pending: tuple[Undo, ...] = ()

    @property
    def files(self) -> Frozen[str, Content]:
        """What a reader sees."""
        return Frozen({name: s.content for name, s in self.stored.items()})

    def put(self, name: str, content: Content, flushed: bool = False) -> Disk:
        """With a file of that content, made if it is not there."""
        old = self.stored.get(name)
        certain = content if flushed else None if old is None else old.flushed
        pending = self.pending if old is not None else (*self.pending, Undo(((name, None),)))
        return Disk(self.stored.with_(name, FileOnDisk(content, certain)), pending)

    def append(self, name: str, content: LogFile) -> Disk:
        """With more in a .log."""
        return replace(self, stored=self.stored.with_(name, self.stored[name]._replace(content=content)))

    def cut(self, name: str, content: LogFile) -> Disk:
        """With less in a .log."""
        s = self.stored[name]
        n = len(content.batches)
        touched = isinstance(s.flushed, LogFile) and (n < len(s.flushed.batches) or s.flushed.torn)
        untouched = min(n, s.untouched if s.untouched is not None else n) if touched else s.untouched
        return replace(self, stored=self.stored.with_(name, FileOnDisk(content, s.flushed, untouched)))

    def rename(self, old: str, new: str) -> Disk:
        """With another name for a file; what stood there is gone."""
        undo = Undo(((old, self.stored[old]), (new, self.stored.get(new))))
        return Disk(self.stored.without(old).with_(new, self.stored[old]), (*self.pending, undo))

    def remove(self, name: str) -> Disk:
        undo = Undo(((name, self.stored[name]),))
        return Disk(self.stored.without(name), (*self.pending, undo))

    def flush(self, name: str) -> Disk:
        """With the file's content safe."""
        return replace(
            self, stored=self.stored.with_(name, FileOnDisk(self.stored[name].content, self.stored[name].content))
        )

    def flush_names(self) -> Disk:
        """With the directory's names safe."""
        return replace(self, pending=())

    def replace_whole(self, name: str, content: Content) -> Disk:
        """With a small file replaced in one step, that no power failure undoes: its directory is flushed (CKP-6)."""
        return self.put(name, content, flushed=True).flush_names()

    def undone(self, kept_changes: int) -> Frozen[str, FileOnDisk]:
        """With the first `kept_changes` pending changes of names alone."""
        files = dict(self.stored)
        for undo in reversed(self.pending[kept_changes:]):
            for name, stored in undo.before:
                if stored is None:
                    files.pop(name, None)
                else:
                    files[name] = stored
        return Frozen(files)

    @states("REC-1")
    def namings(self) -> Iterator[Frozen[str, FileOnDisk]]:
        """The names that a power failure may leave: all pending changes, or all but the last, and so on."""
        for n in range(len(self.pending), -1, -1):
            yield self.undone(n)

    @states("REC-1")
    def may_leave(self, files: Mapping[str, Content]) -> bool:
        """Whether a power failure now may leave these files."""
        return any(
            files.keys() == stored.keys() and all(files[name] in left_of(s) for name, s in stored.items())
            for stored in self.namings()
        )

    def outcomes(self) -> Iterator[Frozen[str, Content]]:
        """All that a power failure now may leave, each once."""
        seen: set[Frozen[str, Content]] = set()
        for stored in self.namings():
            names = sorted(stored)
            for contents in itertools.product(*(left_of(stored[name]) for name in names)):
                found = Frozen(dict(zip(names, contents, strict=True)))
                if found not in seen:
                    seen.add(found)
                    yield found


def all_flushed(files: Mapping[str, Content]) -> Disk:
    """A disk with these files and nothing else to lose."""
    return Disk(Frozen({name: FileOnDisk(content, content) for name, content in files.items()}))


def begins_again(before: Iterable[str], after: Iterable[str]) -> bool:
    """Whether a load has given up every segment, and the log begins again: else the first one stays."""
    return min(n for n in before if n.endswith(LOG)) not in after


def becoming(disk: Disk, files: Mapping[str, Content]) -> Disk:
    """The disk after a load has left these files: leader epochs that it added, with all names until then; removals, or
    of a log that it emptied the leader epochs, too; cuts, and what was made. Snapshots that a load takes are flushed;
    their names are not."""
    if files[EPOCHS] != disk.files[EPOCHS]:
        disk = disk.replace_whole(EPOCHS, files[EPOCHS])
    new_log = begins_again(disk.stored, files)
    for name in sorted(n for n in disk.stored if n not in files or (new_log and n != EPOCHS)):
        disk = disk.remove(name)
    if new_log:
        disk = disk.replace_whole(EPOCHS, files[EPOCHS])
    for name, content in sorted(files.items()):
        old = disk.stored.get(name)
        if old is not None and old.content == content:
            continue
        if isinstance(content, LogFile) and old is not None:
            disk = disk.cut(name, content)
        else:
            disk = disk.put(name, content, flushed=not isinstance(content, LogFile))
    return disk
