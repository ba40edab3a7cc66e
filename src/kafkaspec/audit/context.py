"""What surrounds a log: the directory's checkpoints and marker, and what the metadata log says of its topic.

Whatever of this cannot be read is left unknown here: to say what is wrong with it is the checks' part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kafkaspec.audit.check import Log
from kafkaspec.audit.discover import OF_A_DIRECTORY, Place
from kafkaspec.audit.files import Kind
from kafkaspec.audit.metadata import Topics, topics_of
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File, read_small
from kafkaspec.impl.management import checkpoints, meta_properties


def with_own_files(place: Place) -> Place:
    """The place with the content of the directory's own files. A running broker writes its checkpoints behind its logs:
    read after the logs, they would say what the logs did not have yet."""
    if place.files.clean:
        return place
    files = {name: _read(file) if name in OF_A_DIRECTORY else file for name, file in place.files.files.items()}
    return replace(place, files=replace(place.files, files=files))


def _read(file: File) -> File:
    try:
        return replace(file, content=read_small(file))
    except UserError:  # whoever needs it will say so
        return file


def identity(place: Place) -> tuple[int | None, str | None]:
    """Node and cluster by meta.properties; None where it does not say."""
    file = place.files.files.get("meta.properties")
    if file is None:
        return None, None
    try:
        said = meta_properties.parse(read_small(file))
    except (UserError, meta_properties.PropertiesUnreadable):
        return None, None
    return said.node_id, said.cluster_id


def offsets(place: Place, name: str) -> dict[checkpoints.TopicPartition, int] | None:
    """A checkpoint's offsets; none if it is not there; None if it cannot be read."""
    file = place.files.files.get(name)
    if file is None:
        return {}
    try:
        return checkpoints.decode(read_small(file))
    except (UserError, checkpoints.CheckpointUnreadable):
        return None


def contexts(places: Sequence[Place]) -> Iterator[list[Log]]:
    """The logs of each place with what is known around them."""
    known: dict[str | None, Topics] = {}
    identities = [identity(p) for p in places]
    for cluster in dict.fromkeys(c for _, c in identities):
        known[cluster] = topics_of(
            [p for p, (_, c) in zip(places, identities, strict=True) if c == cluster and p.whole]
        )
    for place, (node, cluster) in zip(places, identities, strict=True):
        recovery = offsets(place, "recovery-point-offset-checkpoint") or {}
        starts = offsets(place, "log-start-offset-checkpoint")
        start = starts or {}
        high = offsets(place, "replication-offset-checkpoint") or {}
        cleaner = offsets(place, "cleaner-offset-checkpoint") or {}
        clean = place.files.clean if place.whole else None
        out = []
        for files in place.files.partitions:
            tp = checkpoints.TopicPartition(files.topic, files.partition)
            current = files.kind is Kind.CURRENT
            here = current or files.kind is Kind.FUTURE
            config, topic_id = known[cluster].of(files.topic, node)
            out.append(
                Log(
                    files,
                    clean=clean,
                    recovery_point=recovery.get(tp) if current else None,
                    log_start=start.get(tp) if current else None,
                    start_known=place.whole and starts is not None,
                    high_watermark=high.get(tp) if current else None,
                    cleaner_point=cleaner.get(tp) if current else None,
                    config=config,
                    topic_id=topic_id if here else None,
                )
            )
        yield out
