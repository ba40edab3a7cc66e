"""A log directory after it was loaded."""

from __future__ import annotations

from collections.abc import Mapping
from struct import unpack_from

from kafkaspec.impl.storage.log_loader_driver import DIRECTORY
from kafkaspec.mutants.audit import DirectoryLayout, WalkEnd


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


WRITTEN = DirectoryLayout(
    files,
    ("put", "put", "put", "writeCleaned", "replace", "load"),
    steps=12,
    last=[("load", {"clean": False, "recovery_point": 0, "log_start": 0})],
)
