"""What is written as meta.properties, in a log directory."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaspec.mutants.audit import DirectoryLayout, WalkEnd


def files(walked: WalkEnd) -> Mapping[str, bytes]:
    disk = walked.driver.disk
    return {f"data/{name}": disk.read(f"dir/{name}") for name in disk.files("dir")}


WRITTEN = DirectoryLayout(
    files,
    ("metaProperties.write",),
    {"cluster_id": lambda state: ["c", "a b=c:d", " x", "#y\t"], "node_id": lambda state: [0, 5]},
    steps=3,
)
"""A broker says its node and its cluster."""
