"""Files in the user's cache: what takes long to work out, for as long as nothing changes that it follows from."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import platformdirs


def cache_file(folder: str, name: str, key: str, suffix: str) -> Path:
    """Where what has this name is kept; `key` is a digest of all that it follows from."""
    return platformdirs.user_cache_path("kafkaspec") / folder / f"{name}-{key}{suffix}"


def keep(file: Path, data: bytes) -> None:
    """Write a `cache_file`, whole or not at all, and nothing where that cannot be; what has its name and another key is
    removed."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        for other in file.parent.glob(f"{file.name.rpartition('-')[0]}-*{file.suffix}"):
            other.unlink(missing_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as f:
            f.write(data)
        Path(f.name).replace(file)
