"""What a restart of the broker does with what lies in a log directory, for findings: left-overs, gaps and damage.

Source: LogLoader, LogSegment.recover and LogManager, Kafka 4.3.0; Kafka Internals, ch. 03, "Crash recovery & startup".
"""

from __future__ import annotations

from kafkaspec.audit.check import Log
from kafkaspec.audit.files import Segment


def rescanned_from(log: Log) -> int | None:
    """The base offset of the first segment that a restart without the clean-shutdown marker reads in full: the one that
    holds the recovery point (0 where the checkpoint has no entry). None if the log has no segment."""
    bases = [s.base_offset for s in log.files.segments]
    point = log.recovery_point or 0
    return max((b for b in bases if b <= point), default=min(bases, default=None))


def recovery_consequence(
    log: Log, segment: Segment, position: int, offset: int | None = None, end: int | None = None
) -> str:
    """What a restart does with a batch at byte `position` of `segment` that is not whole or fails its CRC: one sentence.
    `offset` is the first offset that is lost there, if known; `end` the log end offset, if known."""
    if segment.offset_index is None:
        return f"the segment has no offset index, so a restart scans it and cuts it at byte {position}" + _lost(
            offset, None, "; segments after it stay, behind a hole"
        )
    stays = "starts without reading it; a consumer gets an error there, and the cleaner gives the partition up"
    first = rescanned_from(log)
    if log.clean:
        return f"the stop was clean: a restart {stays}"
    if first is not None and segment.base_offset < first:
        below = f"the segment is below the recovery point {log.recovery_point or 0}: a restart {stays}"
        return below if log.clean is False else f"{below}, after a clean stop and after an unclean one"
    cuts = f"a restart scans the segment again and cuts the log at byte {position}" + _lost(
        offset, end, "" if log.is_active(segment) else "; it deletes the segments after it"
    )
    return cuts if log.clean is False else f"after a clean stop a restart {stays}; after an unclean one {cuts}"


def _lost(offset: int | None, end: int | None, more: str) -> str:
    """Which offsets go, in words."""
    if offset is None:
        return f": what follows there is lost{more}"
    return f": offset {offset} and up{'' if end is None else f' to {end - 1}'} are lost{more}"
