"""What is written as meta.properties, in a log directory."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaspec.mutants.audit import WalkEnd, Written


def files(walked: WalkEnd) -> Mapping[str, bytes]:
    disk = walked.driver.disk
    return {f"data/{name}": disk.read(f"dir/{name}") for name in disk.files("dir")}


WRITTEN = Written(files, ("metaProperties.write",), steps=3)
