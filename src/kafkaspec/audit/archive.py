"""Archives in place of directories: unpacked within limits into a temporary folder, which is gone afterwards.

An archive is somebody else's: its members' names, sizes and kinds are refused before anything is written, and so is one
that holds more than the limits. `tarfile.data_filter` (PEP 706) has the last word on where a member may lie.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import signal
import struct
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import IO, Any, Final

from kafkaspec.audit.discover import is_partition_file
from kafkaspec.errors import SignalledError, UserError
from kafkaspec.impl.common.files import UNPRINTABLE, open_regular
from kafkaspec.workers import ENDING

NAMES: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz")
"""How an archive's name may end."""
OPENERS: Final[tuple[tuple[bytes, Callable[[IO[bytes]], Any]], ...]] = (
    (b"\x1f\x8b", lambda file: gzip.GzipFile(fileobj=file)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)
"""What a compressed archive begins with, and what decompresses it."""
TAR_MARK: Final = 257, b"ustar"
"""Where in a tar's first block its format is said."""

MOST_MEMBERS: Final = 200_000
MOST_BYTES: Final = 64 << 30
"""of the archive without its compression, and so of what is written"""
ALWAYS_BYTES, MOST_RATIO = 1 << 30, 250
"""An archive may hold `ALWAYS_BYTES` whatever its own size, or else at most `MOST_RATIO` times its own size."""
SPARE_SHARE: Final = 20
"""This part of the disk stays free."""
MOST_HEADER: Final = 1 << 20
"""of a member's headers, bytes"""
MOST_DEPTH: Final = 16
"""folders above a member"""
BLOCK: Final = tarfile.BLOCKSIZE
MOST_EMPTY: Final = 8
"""Empty reads in a row, at most, before it is clear that a member says it goes on far behind the end."""
EXTENDED: Final = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
"""Kinds of headers that tarfile reads as a whole."""
TOO_LONG: Final = f"a member's headers have more than {MOST_HEADER >> 20} MiB"
LINK: Final = "a link, which may lead anywhere: pack what it leads to (tar --dereference --hard-dereference)"
UNREADABLE: Final = (
    tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, struct.error, ValueError, OverflowError,
    IndexError, KeyError, TypeError, AttributeError, RecursionError,
)  # fmt: skip
"""What tarfile and the decompressors raise for bytes that are no archive."""
Progress = Callable[[float, float | None, int], None]


def is_archive(path: Path) -> bool:
    """Whether a path is a regular file that is to be unpacked: by its name or its first bytes. A file that a partition
    has by its name is none."""
    if is_partition_file(path.name) or not path.is_file():
        return False
    if path.name.endswith(NAMES):
        return True
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            head = file.read(BLOCK)
    except (UserError, OSError):
        return False
    at, mark = TAR_MARK
    return head.startswith(tuple(begins for begins, _ in OPENERS)) or head[at : at + len(mark)] == mark


@dataclass
class UnpackedPaths:
    """Paths to read, some of which are folders of what was unpacked, and the names that are told of them."""

    paths: list[Path]
    names: list[tuple[str, str]] = field(default_factory=list)
    """folder and archive"""
    notes: list[str] = field(default_factory=list)

    def told(self, text: str) -> str:
        """A text with the archives' names in place of the folders'."""
        for folder, archive in self.names:
            text = text.replace(folder, archive)
        return text


@contextmanager
def unpacked(paths: Sequence[Path], progress: Progress | None = None) -> Iterator[UnpackedPaths]:
    """The paths with each archive in a folder, for as long as this lasts. Raises UserError for an archive that is
    refused; in its text and in every other a member has the name of its archive in front."""
    archives = {p for p in paths if is_archive(p)}
    if not archives:
        yield UnpackedPaths(list(paths))
        return
    with temporary_folder() as top:
        out = UnpackedPaths([])
        seen = set[str]()
        for n, path in enumerate(paths):
            real = os.path.realpath(path)
            if path not in archives:
                out.paths.append(path)
            elif real in seen:
                out.notes.append(f"{path}: given twice; audited once")
            else:
                seen.add(real)
                folder = top / str(n) / _stem(path.name)
                folder.mkdir(parents=True)
                out.names.append((str(folder), str(path)))
                out.paths.append(folder)
                _unpack(path, folder, progress)
        try:
            yield out
        except UserError as e:
            raise UserError(out.told(str(e)), e.exit_code) from None


def _stem(name: str) -> str:
    """What a folder for the archive is called: a partition's bare files are known by it."""
    stem = next((name.removesuffix(end) for end in NAMES if name.endswith(end)), name)
    return stem if stem.strip(".") and not UNPRINTABLE.search(stem) and len(stem) < 200 else "archive"


# ---- the folder ------------------------------------------------------------------------------------------------------
@contextmanager
def temporary_folder() -> Iterator[Path]:
    """An empty folder that is removed at the end, and when a signal ends the program."""
    with _ended_by_signals():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            folder = tempfile.mkdtemp(prefix="kafkaspec-audit-")
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                yield Path(os.path.realpath(folder))
            finally:
                try:
                    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the program as SIGINT does: by an exception, so that it can tidy up."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SignalledError(128 + number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)


# ---- one archive -----------------------------------------------------------------------------------------------------
def _unpack(path: Path, folder: Path, progress: Progress | None) -> None:
    """Everything that an archive holds, in a folder. Raises UserError for what is refused, with the archive's name."""
    if not hasattr(tarfile, "data_filter"):
        raise UserError(f"{path}: archives need Python 3.11.4 or newer; unpack it and give the folder")
    try:
        with os.fdopen(open_regular(path), "rb") as raw:
            stream = _Stream(raw, folder, progress)
            _members(stream, folder)
            stream.drain()
    except _Refused as e:
        raise UserError(f"{path}: {e}") from None
    except UNREADABLE as e:
        if isinstance(e, OSError) and e.strerror:
            raise UserError(f"{path}: cannot be unpacked: {e.strerror.lower()}") from None
        raise UserError(f"{path}: no archive that can be read: {str(e) or type(e).__name__}") from None


class _Refused(Exception):
    """An archive that is not unpacked, and why."""


class _Stream:
    """An archive's bytes without their compression, and no more of them than is allowed."""

    def __init__(self, raw: IO[bytes], folder: Path, progress: Progress | None) -> None:
        self.raw, self.progress = raw, progress
        self.size = os.fstat(raw.fileno()).st_size
        head = raw.read(8)
        raw.seek(0)
        self.file: Any = next((opened(raw) for begins, opened in OPENERS if head.startswith(begins)), raw)
        disk = shutil.disk_usage(folder)
        self.total = self.empty = 0
        self.room = max(0, disk.free - disk.total // SPARE_SHARE)
        self.ratio = max(ALWAYS_BYTES, MOST_RATIO * self.size)
        self.header_end: int | None = None
        """up to which byte the headers of a member may reach, while they are read"""

    def read(self, size: int) -> bytes:
        data: bytes = self.file.read(size)
        self.total += len(data)
        self.empty = 0 if data else self.empty + 1
        if self.empty > MOST_EMPTY:
            raise EOFError("unexpected end of data")
        if self.header_end is not None and self.total > self.header_end:
            raise _Refused(TOO_LONG)
        if self.total > MOST_BYTES:
            raise _Refused(f"it holds more than {MOST_BYTES >> 30} GiB; unpack it and give the folder")
        if self.total > self.ratio:
            raise _Refused(
                f"it holds more than {MOST_RATIO} times its own size; pack files with holes by tar --sparse, or unpack "
                "it and give the folder"
            )
        if self.total > self.room:
            raise _Refused(f"not enough room in {tempfile.gettempdir()} to unpack it (TMPDIR names another folder)")
        if self.progress is not None:
            self.progress(self.raw.tell(), self.size, 0)
        return data

    def drain(self) -> None:
        """What is behind the archive's end: of a compressed one it shows whether that is whole."""
        while self.read(1 << 16):
            pass


def _members(stream: _Stream, folder: Path) -> None:
    """Every member that is read, into the folder."""
    kept, at_end = 0, False

    class Header(tarfile.TarInfo):
        """A header whose size is looked at before anything is read by it."""

        @classmethod
        def frombuf(cls, buf: Any, encoding: str, errors: str) -> Header:
            nonlocal kept, at_end
            at_end = len(buf) == BLOCK and not any(buf)
            info = super().frombuf(buf, encoding, errors)
            if info.size < 0:
                raise _Refused(f"a member of {info.size} bytes")
            if info.type in EXTENDED:
                kept += info.size if info.type == tarfile.XGLTYPE else 0  # tarfile keeps these
                if max(info.size, kept) > MOST_HEADER:
                    raise _Refused(TOO_LONG)
            return info

    stream.header_end = MOST_HEADER
    files, folders = set[PurePosixPath](), {PurePosixPath()}
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=Header) as tar:  # type: ignore[call-overload]
        n = 0
        while True:
            stream.header_end = max(stream.total, tar.offset) + MOST_HEADER
            member = tar.next()
            stream.header_end = None
            if member is None:
                break
            tar.members.clear()
            n += 1
            if n > MOST_MEMBERS:
                raise _Refused(f"it holds more than {MOST_MEMBERS:,} members; unpack it and give the folder")
            name = _name(member)
            twice = name in files or (member.isreg() and name in folders)
            if twice or any(p in files for p in name.parents) or _taken(folder, name, member):
                raise _Refused(f"{name}: there twice")
            (files if member.isreg() else folders).add(name)
            folders.update(name.parents)
            tar.extract(member, folder, filter=_filter)
        if not at_end:  # tarfile takes a header that it cannot read for the end
            raise _Refused(
                f"cut short or damaged: no member begins at byte {tar.offset} of it, and it does not end there"
            )


def _name(member: tarfile.TarInfo) -> PurePosixPath:
    """A member's name, if there is nothing against it."""
    if UNPRINTABLE.search(member.name):
        raise _Refused(f"{member.name}: a name with control characters, or of no UTF-8")
    name = PurePosixPath(member.name)
    if name.is_absolute():
        raise _Refused(f"{name}: an absolute name")
    if ".." in name.parts:
        raise _Refused(f"{name}: a name that leads out of the archive")
    if len(name.parts) > MOST_DEPTH:
        raise _Refused(f"{name}: more than {MOST_DEPTH} folders deep")
    if member.issym() or member.islnk():
        raise _Refused(f"{name}: {LINK}")
    if not (member.isreg() or member.isdir()):
        raise _Refused(f"{name}: neither a file nor a folder")
    end = 0
    holes: Any = member.sparse  # places and sizes of what is between the holes
    for offset, size in holes or ():
        if min(offset, size) < 0 or (size and offset < end):
            raise _Refused(f"{name}: holes that overlap")
        end = max(end, offset + size)
    if end > member.size:
        raise _Refused(f"{name}: more bytes than its size")
    return name


def _taken(folder: Path, name: PurePosixPath, member: tarfile.TarInfo) -> bool:
    """Whether something is there already, by a name that the file system takes for the same."""
    there = folder / name
    return os.path.lexists(there) and not (member.isdir() and there.is_dir())


def _filter(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo:
    """PEP 706's filter for data; and the time is now, whatever the archive says."""
    checked = tarfile.data_filter(member, path)
    assert checked is not None
    return checked.replace(mtime=None, deep=False)  # type: ignore[arg-type]
