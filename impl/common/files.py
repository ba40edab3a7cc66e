"""Files that are read as they lie on a disk."""

from __future__ import annotations

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
        with file.path.open("rb") as f:
            data = f.read(most + 1)
    except OSError as e:
        raise UserError(f"{file.path}: {e.strerror or e}") from None
    if len(data) > most:
        raise UserError(f"{file.path}: more than {most >> 20} MiB, larger than any such file of Kafka's")
    return data
