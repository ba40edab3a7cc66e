"""A log directory after it was loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import unpack_from
from typing import Any

from kafkaspec.impl.storage.log_loader_driver import DIRECTORY
from kafkaspec.mutants.audit import DirectoryLayout, WalkEnd
from kafkaspec.spec.storage.log_loader import machine


def files(walked: WalkEnd) -> Mapping[str, bytes]:
    """Of a compacted topic, so that offsets may be missing. The epochs are what the batches say."""
    disk = walked.driver.disk
    names = disk.files(DIRECTORY)
    if not names:
        return {}
    epochs: dict[int, int] = {}
    for name in names:
        if name.endswith(".log"):
            data, at = disk.read(f"{DIRECTORY}/{name}"), 0
            while at < len(data):
                base, size, epoch = unpack_from(">qii", data, at)
                epochs.setdefault(epoch, base)
                at += 12 + size
    entries = "".join(f"{epoch} {base}\n" for epoch, base in epochs.items())
    return {
        **{f"data/t-0/{name}": disk.read(f"{DIRECTORY}/{name}") for name in names},
        "data/t-0/leader-epoch-checkpoint": f"0\n{len(epochs)}\n{entries}".encode(),
        "data/cleaner-offset-checkpoint": b"0\n1\nt 0 0\n",
    }


def rising(name: str, content: Any) -> Any:
    """The same, with leader epoch 0 if it is a .log below the last one: in a sound log epochs do not fall."""
    if ".log" not in name or int(name[:20]) >= 20:
        return content
    return {**content, "batches": [[first, last, 0, whole] for first, last, _, whole in content["batches"]]}


def of_files(state: Any) -> Sequence[Any]:
    return [[name, rising(name, content)] for name, content in machine.candidates["file"](state)]


def of_directories(state: Any) -> Sequence[Any]:
    return [{name: rising(name, c) for name, c in d.items()} for d in machine.candidates["init:files"](state)]


WRITTEN = DirectoryLayout(
    files,
    ("put", "put", "put", "writeCleaned", "replace", "load"),
    candidates={"file": of_files, "init:files": of_directories},
    steps=12,
    last=[("load", {"clean": False, "recovery_point": 0, "log_start": 0})],
)
