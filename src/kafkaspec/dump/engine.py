"""What stands in Kafka's files, for people and for machines.

A segment is read a batch at a time: what is printed first does not wait for the rest, and memory does not grow. Damage
is shown where it is, and the dump goes on at the next batch. Which files are known is the table `KINDS`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File, open_regular, read_small
from kafkaspec.impl.common.rows import Ending
from kafkaspec.impl.storage.batch import Batch, Malformed, Record, control

Json = dict[str, Any]
WIDE = 72
"""Characters of a key or a value that are shown."""
MOST = 1 << 28
"""Bytes of a batch that is read as a whole."""
LATEST_MS = 253_402_300_799_999  # the year 9999


class Line(NamedTuple):
    """One line of the dump: for machines, and the text for people, in one line or more. `bad`: something is wrong."""

    fields: Json
    text: str
    bad: bool = False


def dumped(path: Path, *, offset: int | None = None, records: bool = True) -> Iterator[Line]:
    """The lines of a file; of a segment from the batch on that has the offset. Raises UserError for a file that cannot
    be read, or is none of those that are known."""
    try:
        file = File(path, path.stat().st_size)
        if not path.is_file():
            raise UserError(f"{path}: {'a directory' if path.is_dir() else 'not a regular file'}; name a file in it")
    except OSError as e:
        raise UserError(f"{path}: {(e.strerror or str(e)).lower()}") from None
    kind = next((k for pattern, k in KINDS if re.fullmatch(pattern, path.name)), None)
    if kind is None:
        raise UserError(f"{path}: none of the files that dump knows (.log, indexes, snapshots, checkpoints)")
    return kind(file, offset, records)


# ---- words -----------------------------------------------------------------------------------------------------------
def moment(ms: int) -> str:
    """A time in UTC; the number where it is none."""
    if not 0 <= ms <= LATEST_MS:
        return "no time" if ms == -1 else f"{ms} ms"
    return f"{_second(ms // 1000)}.{ms % 1000:03}"


@lru_cache(maxsize=1024)
def _second(s: int) -> str:
    return f"{datetime.fromtimestamp(s, UTC):%Y-%m-%d %H:%M:%S}"


def content(data: bytes | None) -> Any:
    """Bytes in JSON: text where they are UTF-8, else {"hex": ...}."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def words(data: bytes | None) -> str:
    """Bytes for people: text where they are UTF-8 and nothing in it could upset a terminal, else 0x and digits; cut,
    with their number, where they are long."""
    if data is None:
        return "null"
    head = data[: 4 * WIDE]
    try:
        text = head.decode()
    except UnicodeDecodeError as e:
        cut = len(data) > len(head) and e.end == len(head)
        text = head[: e.start].decode() if cut else "0x" + head.hex()
    if not text.isprintable():
        text = text.encode("unicode_escape").decode()
    if len(text) > WIDE or len(data) > len(head):
        return f"{text[:WIDE]}… ({len(data)} bytes)"
    return text or '""'


def span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


# ---- segments --------------------------------------------------------------------------------------------------------
def _segment(file: File, offset: int | None, records: bool) -> Iterator[Line]:
    from kafkaspec.impl.common.scan import problem_text, read_segment

    with os.fdopen(open_regular(file.path), "rb") as data:
        for part in read_segment(file, deep=False):
            if isinstance(part, Ending):
                if part.reason:
                    fields = {"position": part.end, "size": part.size - part.end, "problem": {"why": part.reason}}
                    yield Line(fields, f"@{part.end}  !! {part.reason}", True)
                return
            for row in part.batches:
                at, size, last = int(row["position"]), int(row["size"]), int(row["last_offset"])
                if offset is not None and row["problem"] == 0 and last < offset:
                    continue
                if 0 <= row["magic"] < 2 and row["problem"] == 0:
                    yield _legacy(at, size, int(row["magic"]), int(row["base_offset"]))
                    continue
                try:
                    if (row["problem"] and int(row["base_offset"]) < 0) or size > MOST:
                        raise Malformed(problem_text(row)[0], int(row["problem_at"]), problem_text(row)[1])
                    data.seek(at)
                    batch = Batch(data.read(size), at)
                except Malformed as e:
                    yield _damaged(at, size, e)
                else:
                    yield _batch(batch, records)


def _legacy(at: int, size: int, magic: int, base: int) -> Line:
    fields = {"position": at, "size": size, "magic": magic, "offset": base}
    return Line(fields, f"@{at}  {base}  message format {magic}, {size} bytes: not decoded")


def _damaged(at: int, size: int, e: Malformed) -> Line:
    problem = {"clause": e.clause, "position": e.position, "why": e.why}
    return Line({"position": at, "size": size, "problem": problem}, f"@{at}  {size} bytes\n    !! {e}", True)


def _batch(batch: Batch, wanted: bool) -> Line:
    """A batch's line, and those of its records up to the first that is wrong."""
    fields: Json = {
        "position": batch.position,
        "size": batch.size,
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.count,
        "leaderEpoch": batch.leader_epoch,
        "magic": batch.magic,
        "crc": batch.crc,
        "codec": batch.codec,
        "timestampType": "LogAppendTime" if batch.log_append_time else "CreateTime",
        "baseTimestamp": batch.base_timestamp,
        "maxTimestamp": batch.max_timestamp,
        "deleteHorizon": batch.delete_horizon,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "transactional": batch.transactional,
        "control": batch.control,
    }
    lines = [_heading(batch)]
    if not wanted:
        return Line(fields, lines[0])
    out: list[Json] = []
    problem: Malformed | None = None
    try:
        for record in batch.records():
            said = _control(record) if batch.control else None
            out.append(_fields(record, said))
            lines.append(_line(record, said))
    except Malformed as e:
        problem = e
        lines.append(f"    !! {e}")
        fields["problem"] = {"clause": e.clause, "position": e.position, "why": e.why}
    fields["records"] = out
    return Line(fields, "\n".join(lines), problem is not None)


def _heading(b: Batch) -> str:
    """One line: place, offsets, size, time, then what not every batch has."""
    number = "no records" if b.count == 0 else "1 record" if b.count == 1 else f"{b.count} records"
    parts = [
        f"@{b.position}",
        span(b.base_offset, b.last_offset),
        number,
        f"{b.size} bytes",
        f"epoch {b.leader_epoch}",
        moment(b.max_timestamp) + (" (append)" if b.log_append_time else ""),
    ]
    if b.codec != "none":
        parts.append(b.codec)
    if b.producer_id != -1:
        sequence = "" if b.base_sequence == -1 else f" sequence {span(b.base_sequence, b.last_sequence)}"
        parts.append(f"producer {b.producer_id} epoch {b.producer_epoch}{sequence}")
    parts += ["transactional"] * b.transactional + ["control"] * b.control
    if b.delete_horizon is not None:
        parts.append(f"delete horizon {moment(b.delete_horizon)}")
    return "  ".join(parts)


def _control(record: Record) -> Json | None:
    """What a control record says; None if it cannot be read."""
    try:
        said = control(record.key, record.value)
    except ValueError:
        return None
    return {
        "type": said.name,
        "version": said.version,
        "coordinatorEpoch": said.coordinator_epoch,
        "valueVersion": said.value_version,
    }


def _fields(record: Record, said: Json | None) -> Json:
    out: Json = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "sequence": record.sequence,
        "key": content(record.key),
        "value": content(record.value),
        "headers": [[content(k), content(v)] for k, v in record.headers],
    }
    return out | {"control": said} if said else out


def _line(record: Record, said: Json | None) -> str:
    head = f"    {record.offset}  {moment(record.timestamp)}  "
    if said is not None:
        epoch = said["coordinatorEpoch"]
        return f"{head}{said['type']}" + (f"  coordinator epoch {epoch}" if epoch is not None else "")
    headers = "  ".join(f"{words(k)}: {words(v)}" for k, v in record.headers)
    return f"{head}{words(record.key)} = {words(record.value)}" + (f"  [{headers}]" if headers else "")


# ---- the small files -------------------------------------------------------------------------------------------------
def _base_offset(file: File) -> int:
    return int(file.path.name.split(".")[0])


def _index(file: File, offset: int | None, records: bool) -> Iterator[Line]:
    from kafkaspec.impl.storage.offset_index import decode

    base = _base_offset(file)
    entries = decode(read_small(file), base)
    used = _used(entries, lambda e: e.offset != base or e.position != 0)
    for e in entries[:used]:
        yield Line({"offset": e.offset, "position": e.position}, f"  {e.offset}  @{e.position}")
    yield from _unwritten(len(entries) - used, file.size % 8)


def _time_index(file: File, offset: int | None, records: bool) -> Iterator[Line]:
    from kafkaspec.impl.storage.time_index import decode

    base = _base_offset(file)
    entries = decode(read_small(file), base)
    used = _used(entries, lambda e: e.offset != base or e.timestamp != 0)
    for e in entries[:used]:
        yield Line({"timestamp": e.timestamp, "offset": e.offset}, f"  {moment(e.timestamp)}  {e.offset}")
    yield from _unwritten(len(entries) - used, file.size % 12)


def _used(entries: Sequence[Any], written: Callable[[Any], bool]) -> int:
    """How many entries there are before the zeros at the end."""
    return next((n for n in range(len(entries), 0, -1) if written(entries[n - 1])), 0)


def _unwritten(slots: int, rest: int) -> Iterator[Line]:
    if slots:
        yield Line({"unwritten": slots}, f"  {slots} slots of zeros")
    if rest:
        yield Line({"rest": rest}, f"  !! {rest} bytes behind the last entry", True)


def _transaction_index(file: File, offset: int | None, records: bool) -> Iterator[Line]:
    from kafkaspec.impl.storage.transaction_index import ENTRY, UnknownVersion, decode

    try:
        for e in decode(read_small(file)):
            fields = {
                "producerId": e.producer_id,
                "firstOffset": e.first_offset,
                "lastOffset": e.last_offset,
                "lastStableOffset": e.last_stable_offset,
            }
            text = f"  producer {e.producer_id}  {span(e.first_offset, e.last_offset)} aborted"
            yield Line(fields, f"{text}  last stable offset {e.last_stable_offset}")
    except UnknownVersion as e:
        yield _wrong(str(e))
    yield from _unwritten(0, file.size % ENTRY.size)


def _producers(file: File, offset: int | None, records: bool) -> Iterator[Line]:
    from kafkaspec.impl.storage.producer_state import SnapshotUnreadable, decode

    try:
        entries = decode(read_small(file))
    except SnapshotUnreadable as e:
        yield _wrong(str(e))
        return
    for entry in entries:
        fields = entry._asdict()
        yield Line(fields, "  " + "  ".join(f"{k.replace('_', ' ')} {v}" for k, v in fields.items()))


def _wrong(why: str) -> Line:
    return Line({"problem": {"why": why}}, f"  !! {why}", True)


def _checkpoint(file: File, offset: int | None, records: bool) -> Iterator[Line]:
    from kafkaspec.impl.management.checkpoints import CheckpointUnreadable, decode_lines

    try:
        for _, (of, value) in decode_lines(read_small(file)):
            yield Line(
                {"topic": of.topic, "partition": of.partition, "offset": value}, f"  {of.topic}-{of[1]}  {value}"
            )
    except CheckpointUnreadable as e:
        yield _wrong(str(e))


def _epochs(file: File, offset: int | None, records: bool) -> Iterator[Line]:
    from kafkaspec.impl.management.checkpoints import CheckpointUnreadable
    from kafkaspec.impl.storage.leader_epochs import decode

    try:
        for e in decode(read_small(file)):
            yield Line({"epoch": e[0], "startOffset": e[1]}, f"  epoch {e[0]}  from {e[1]}")
    except CheckpointUnreadable as e:
        yield _wrong(str(e))


def _partition_metadata(file: File, offset: int | None, records: bool) -> Iterator[Line]:
    from kafkaspec.impl.management.checkpoints import CheckpointUnreadable, decode_metadata

    try:
        id = decode_metadata(read_small(file))
        yield Line({"topicId": id}, f"  topic id {id}")
    except CheckpointUnreadable as e:
        yield _wrong(str(e))


def _meta_properties(file: File, offset: int | None, records: bool) -> Iterator[Line]:
    from kafkaspec.impl.management.meta_properties import PropertiesUnreadable, decode

    try:
        for key, (_, value) in decode(read_small(file)).items():
            yield Line({"key": key, "value": value}, f"  {words(key.encode())} = {words(value.encode())}")
    except PropertiesUnreadable as e:
        yield _wrong(str(e))


def _marker(file: File, offset: int | None, records: bool) -> Iterator[Line]:
    from kafkaspec.impl.management.checkpoints import decode_marker

    epoch = decode_marker(read_small(file))
    yield Line({"brokerEpoch": epoch}, "  a clean stop" + ("" if epoch is None else f" at broker epoch {epoch}"))


Kind = Callable[[File, "int | None", bool], Iterator[Line]]
_SUFFIX = r"(\.deleted|\.cleaned|\.swap)?"
KINDS: tuple[tuple[str, Kind], ...] = (
    (rf"\d{{20}}(\.\w+)?\.log{_SUFFIX}", _segment),
    (r"(bootstrap|\d{20}-\d{10})\.checkpoint(\.deleted|\.part)?", _segment),
    (r".*\.log", _segment),
    (rf"\d{{20}}\.index{_SUFFIX}", _index),
    (rf"\d{{20}}\.timeindex{_SUFFIX}", _time_index),
    (rf".*\.txnindex{_SUFFIX}", _transaction_index),
    (r".*\.snapshot(\.deleted)?", _producers),
    (r"leader-epoch-checkpoint", _epochs),
    (r"[a-z-]+-offset-checkpoint", _checkpoint),
    (r"partition\.metadata", _partition_metadata),
    (r"meta\.properties", _meta_properties),
    (r"\.kafka_cleanshutdown", _marker),
)
"""Patterns of names, and what dumps such a file."""
