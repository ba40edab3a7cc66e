"""The disk, as an argument: the machine's own, or a simulated one that forgets in a crash what a real one may forget.

Content that was not flushed may be lost, torn or zero after a crash; names that were not flushed (a file made, renamed
or removed) may be the old or the new ones; what was flushed stays. Paths are text with "/" between the parts.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class StorageError(Exception):
    """A file of a directory cannot be read or written: the directory is to be taken out of service (CLN-31)."""

    def __init__(self, directory: str, message: str) -> None:
        super().__init__(message)
        self.directory = directory


class Disk(Protocol):
    """What storage needs of a disk. Every method may raise OSError."""

    def exists(self, path: str) -> bool: ...
    def read(self, path: str) -> bytes: ...
    def size(self, path: str) -> int: ...

    def files(self, directory: str) -> list[str]:
        """The names of the files in a directory, sorted; none if there is no such directory."""

    def write(self, path: str, data: bytes) -> None:
        """Create the file or empty it, and write; not flushed."""

    def append(self, path: str, data: bytes) -> None:
        """Create the file if it is not there, and write at its end; not flushed."""

    def truncate(self, path: str, size: int) -> None:
        """Cut the file, or fill it up with zeros, to `size` bytes; not flushed."""

    def flush(self, path: str) -> None:
        """Have the file's content outlive a crash."""

    def rename(self, source: str, target: str) -> None:
        """Replace `target`, in one step; not flushed."""

    def remove(self, path: str) -> None:
        """Remove the file; not flushed."""

    def flush_directory(self, path: str) -> None:
        """Have the directory's names outlive a crash."""


class RealDisk:
    """The machine's own."""

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def size(self, path: str) -> int:
        return Path(path).stat().st_size

    def files(self, directory: str) -> list[str]:
        folder = Path(directory)
        return sorted(p.name for p in folder.iterdir() if p.is_file()) if folder.is_dir() else []

    def write(self, path: str, data: bytes) -> None:
        Path(path).write_bytes(data)

    def append(self, path: str, data: bytes) -> None:
        with Path(path).open("ab") as f:
            f.write(data)

    def truncate(self, path: str, size: int) -> None:
        os.truncate(path, size)

    def flush(self, path: str) -> None:
        self._flush(path, os.O_RDWR)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """An empty directory too, as Java's Files.delete."""
        file = Path(path)
        if file.is_dir() and not file.is_symlink():
            file.rmdir()
        else:
            file.unlink()

    def flush_directory(self, path: str) -> None:
        if os.name != "nt":  # Windows flushes no directories
            self._flush(path, os.O_RDONLY)

    @staticmethod
    def _flush(path: str, how: int) -> None:
        descriptor = os.open(path, how)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class Crashed(Exception):
    """The simulated machine stopped before this step."""


@dataclass
class SimulatedFile:
    """What a reader sees of a file now, and what of it was flushed."""

    content: bytes = b""
    durable: bytes = b""
    cut: int | None = None
    """the size below which nothing was touched since it was flushed, if it was cut or emptied"""

    @property
    def flushed(self) -> bool:
        return self.content == self.durable and self.cut is None

    @property
    def certain(self) -> bytes:
        """What no crash takes."""
        return self.durable if self.cut is None else self.durable[: self.cut]

    def torn(self) -> list[bytes]:
        """What a crash now may leave, the flushed content first: nothing, a part, or all of what came after. A part is
        cut in the middle, or before the last byte, or its length is there and zeros are."""
        if self.flushed:
            return [self.content]
        kept = self.certain
        new = self.content[len(kept) :]
        parts = [new, b"", new[: len(new) // 2], new[:-1], bytes(len(new))]
        return list(dict.fromkeys([self.durable, *(kept + part for part in parts)]))


@dataclass
class SimulatedDisk:
    """A disk in memory that can crash."""

    names: dict[str, SimulatedFile] = field(default_factory=dict)
    durable_names: dict[str, SimulatedFile] = field(default_factory=dict)
    steps: int = 0
    """how many writing steps were made"""
    crash_at: int | None = None
    """stop before the step of this number"""
    broken: set[str] = field(default_factory=set)
    """directories on which everything fails"""

    def _step(self, path: str) -> None:
        if self.crash_at is not None and self.steps >= self.crash_at:
            raise Crashed
        self.steps += 1
        self._check(path)

    def _check(self, path: str) -> None:
        if self.broken and (path.rpartition("/")[0] in self.broken or path in self.broken):
            raise OSError(5, "simulated disk error", path)

    def _file(self, path: str) -> SimulatedFile:
        if path not in self.names:
            raise FileNotFoundError(2, "no such file", path)
        return self.names[path]

    def exists(self, path: str) -> bool:
        self._check(path)
        return path in self.names

    def read(self, path: str) -> bytes:
        self._check(path)
        return self._file(path).content

    def size(self, path: str) -> int:
        return len(self.read(path))

    def files(self, directory: str) -> list[str]:
        self._check(directory)
        inside = f"{directory}/"
        start = len(inside)
        return sorted([n[start:] for n in self.names if n.startswith(inside) and "/" not in n[start:]])

    def write(self, path: str, data: bytes) -> None:
        self._step(path)
        file = self.names.setdefault(path, SimulatedFile())
        file.content, file.cut = data, 0

    def append(self, path: str, data: bytes) -> None:
        self._step(path)
        self.names.setdefault(path, SimulatedFile()).content += data

    def truncate(self, path: str, size: int) -> None:
        self._step(path)
        file = self._file(path)
        if size < len(file.durable):
            file.cut = size if file.cut is None else min(size, file.cut)
        file.content = file.content[:size].ljust(size, b"\0")

    def flush(self, path: str) -> None:
        self._step(path)
        file = self._file(path)
        file.durable, file.cut = file.content, None

    def rename(self, source: str, target: str) -> None:
        self._step(target)
        self.names[target] = self._file(source)
        del self.names[source]

    def remove(self, path: str) -> None:
        self._step(path)
        self._file(path)
        del self.names[path]

    def flush_directory(self, path: str) -> None:
        self._step(path)
        for name in [n for n in self.durable_names if n.rpartition("/")[0] == path and n not in self.names]:
            del self.durable_names[name]
        self.durable_names |= {n: f for n, f in self.names.items() if n.rpartition("/")[0] == path}

    def unsure(self) -> list[str]:
        """The names of which a crash now may leave the old or the new."""
        both = {*self.names, *self.durable_names}
        return sorted(n for n in both if self.names.get(n) is not self.durable_names.get(n))

    def crash(self, keep_names: Callable[[str], bool], keep_content: Callable[[SimulatedFile], bytes]) -> SimulatedDisk:
        """The disk as the next boot finds it: of each name that was not flushed `keep_names` says whether it is as last
        seen (or as last flushed), of each file that was not flushed `keep_content` says what is in it."""
        names: dict[str, SimulatedFile] = {}
        for name in sorted({*self.names, *self.durable_names}):  # one who draws lots is asked in one order everywhere
            before, now = self.durable_names.get(name), self.names.get(name)
            file = now if before is now or keep_names(name) else before
            if file is not None:
                content = file.content if file.flushed else keep_content(file)
                names[name] = SimulatedFile(content, content)
        return SimulatedDisk(names, dict(names), broken=set(self.broken))

    def outcomes(self) -> Iterator[SimulatedDisk]:
        """Every disk that a crash now may leave: any choice of the unsure names, and of each file that was not flushed
        any of its torn contents, independently of each other."""
        unsure = self.unsure()
        files = {id(f): f for f in (*self.names.values(), *self.durable_names.values()) if not f.flushed}
        for kept in itertools.product((False, True), repeat=len(unsure)):
            keep: dict[str, bool] = dict(zip(unsure, kept, strict=True))
            for contents in itertools.product(*(f.torn() for f in files.values())):
                content = dict(zip(files, contents, strict=True))
                yield self.crash(keep.__getitem__, lambda f, content=content: content[id(f)])  # type: ignore[misc]

    def lose(self) -> SimulatedDisk:
        """The disk after a crash that keeps only what was flushed."""
        return self.crash(lambda name: False, lambda file: file.durable)
