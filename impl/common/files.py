"""Files that are read as they lie on a disk."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from kafkaspec.errors import UserError


@dataclass(frozen=True)
class File:
    """A file and its size, bytes, when it was listed."""

    path: Path
    size: int
    content: bytes | None = field(default=None, compare=False, repr=False)
    """what was read ahead of a segment that may grow meanwhile, so that no index says more than the log"""


SMALL = 256 << 20


def read_small(file: File, most: int = SMALL) -> bytes:
    """The content of an index, snapshot or text file. Raises UserError if it cannot be read or is larger than `most`
    bytes."""
    if file.content is not None:
        return file.content
    try:
        with os.fdopen(open_regular(file.path), "rb") as f:
            data = b"" if os.fstat(f.fileno()).st_size > most else f.read(most + 1)
            large = not data and f.read(1) != b""
    except OSError as e:
        raise UserError(f"{file.path}: {e.strerror or e}") from None
    if large or len(data) > most:
        raise UserError(f"{file.path}: more than {most >> 20} MiB, larger than any such file of Kafka's")
    return data


def why(path: Path, error: OSError) -> str:
    """Why a file could not be opened, in a few words."""
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return "a symbolic link to nothing"
    return error.strerror or str(error)


def is_empty(folder: Path) -> bool:
    """Whether there is nothing in it; False if it cannot be listed."""
    try:
        return not any(folder.iterdir())
    except OSError:
        return False


def open_regular(path: Path) -> int:
    """A descriptor to read a regular file by. Raises UserError for what is none: it is not opened, since a FIFO would
    wait for a writer, and a device may act on being opened; and for what cannot be opened."""
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
        if regular:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)  # another may have come to its place
            if not regular:
                os.close(descriptor)
    except OSError as e:
        raise UserError(f"{path}: {why(path, e)}") from None
    if not regular:
        raise UserError(f"{path}: not a regular file")
    return descriptor


UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""What a terminal obeys, what turns or hides the text around it, and the bytes of a name that are not UTF-8."""


def printable(text: str, but: str = "") -> str:
    """The text with control characters, but for those of `but`, and with the bytes of a file's name that are not UTF-8,
    as escapes.

    >>> printable("a\\x1b[2Jb\\n\\udcff"), printable("a\\n\\x1b", but="\\n")
    ('a\\\\x1b[2Jb\\\\n\\\\xff', 'a\\n\\\\x1b')
    """
    return UNPRINTABLE.sub(lambda m: m[0] if m[0] in but else _escape(m), text)


def _escape(m: re.Match[str]) -> str:
    n = ord(m[0])
    if 0xDC80 <= n <= 0xDCFF:
        return f"\\x{n - 0xDC00:02x}"
    return m[0].encode("unicode_escape").decode() if n < 0x80 else f"\\u{n:04x}"
