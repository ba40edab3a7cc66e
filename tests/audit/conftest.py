"""Log directories of real brokers, unpacked once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafkaspec.audit.recorded import recorded

Copy = Callable[[str], tuple[Path, ...]]


@pytest.fixture(scope="session")
def originals() -> Iterator[Callable[[str], tuple[Path, ...]]]:
    """The log directories of a recording by its name, not to be changed."""
    known: dict[str, tuple[Path, ...]] = {}
    with ExitStack() as stack:

        def get(name: str) -> tuple[Path, ...]:
            if name not in known:
                r = next(r for r in recorded() if r.name == name)
                known[name] = stack.enter_context(r.unpacked())
            return known[name]

        yield get


@pytest.fixture
def copied(originals: Callable[[str], tuple[Path, ...]], tmp_path: Path) -> Copy:
    """The same, to be changed."""

    def get(name: str) -> tuple[Path, ...]:
        out = []
        for n, d in enumerate(originals(name)):
            out.append(tmp_path / f"copy-{n}" / "data")
            shutil.copytree(d, out[-1], symlinks=True)
        return tuple(out)

    return get
