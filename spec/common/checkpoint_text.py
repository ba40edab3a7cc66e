"""The texts of the small files of a log directory: what is written, what is read of it, what cannot be read.

Source: Kafka Internals, ch. 04, "On-disk: the offset checkpoint file"; CheckpointFile, OffsetCheckpointFile,
LeaderEpochCheckpointFile, PartitionMetadataFile and CleanShutdownFileHandler, Kafka 4.3.0.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from kafkaspec.contract.clauses import A_FORMAT, states
from kafkaspec.spec.common.kafka import INT_MAX, LONG_MAX

CHAPTER = "Kafka Internals, ch. 04, 'On-disk: the offset checkpoint file'"


LINE_END: Final = re.compile(r"\r\n|\r|\n")
_INTEGER: Final = re.compile(r"[+-]?(?:(?![\U00010000-\U0010ffff])\d)+")
"""Java looks at one UTF-16 unit after the other: no digit beyond the first 65,536 characters is one for it"""
_BLANKS: Final = re.compile(r"\s+", re.ASCII)


@dataclass(frozen=True)
class Unreadable:
    """Why a file cannot be read."""

    reason: Literal["version", "line", "count", "negative count", "number"]
    text: str = ""
    """the piece of text that is to blame"""
    line: int = 1
    """where it stands, from 1"""


def lines_of(text: str) -> list[str]:
    """The lines, whatever ends them; an empty last one is none."""
    lines = LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def of_digits(text: str) -> int:
    """The number that digits with or without a sign make, however many there are: `int` reads 4,300 of them. Where it
    does not fit into 64 bits, another one that does not."""
    value = 0
    for digit in text.lstrip("+-"):
        value = min(10 * value + int(digit), 2 * (LONG_MAX + 1))
    return -value if text.startswith("-") else value


def integer(text: str, largest: int) -> int | None:
    """A whole number as Java reads it; None if it is none or does not fit."""
    if not _INTEGER.fullmatch(text):
        return None
    value = of_digits(text)
    return value if -largest - 1 <= value <= largest else None


MOST_ANNOUNCED: Final = 2**20
LONGEST_ARRAY: Final = INT_MAX - 2
"""of Java's virtual machine"""


def announced(text: str) -> int:
    """How many entries a checkpoint file announces; 0 if it does not say."""
    lines = lines_of(text)
    return (integer(lines[1], INT_MAX) if len(lines) > 1 else 0) or 0


def announces_few(text: str) -> bool:
    """Whether a checkpoint file announces no more entries than a test may ask room for: Kafka 4.3.0 makes room for all
    of them before it reads the first."""
    return announced(text) <= MOST_ANNOUNCED


def room_is_known(text: str) -> bool:
    """Whether there is room for as many entries as a checkpoint file announces, or certainly none: between the two it
    is a matter of the machine's memory."""
    return announces_few(text) or announced(text) > LONGEST_ARRAY


TOO_LONG: Final = "Requested array size exceeds VM limit"


def has_no_room(text: str) -> bool:
    """Whether making room for what a checkpoint file announces fails on every machine."""
    lines = lines_of(text)
    return announced(text) > LONGEST_ARRAY and integer(lines[0], INT_MAX) == 0


@states(without=A_FORMAT)
def read_entries(text: str, numbers: Sequence[tuple[int, int]], fields: int) -> list[list[str]] | Unreadable:
    """The entries of a checkpoint file of version 0, each of that many fields. `numbers` says which fields are numbers,
    and the largest of each.

    CKP-2: Reading a checkpoint file gives its entries in their order; nothing if it has no second line. Any line end
    will do, and none after the last line; fields may be any blanks apart, and blanks may follow the last, but not come
    before the first; a number may have a sign. [CheckpointFile, OffsetCheckpointFile and LeaderEpochCheckpointFile,
    Kafka 4.3.0]

    CKP-3: Any other version, a line that is no number or no entry, or a number of entries that is not the one announced
    makes the file unreadable. [CheckpointFile, Kafka 4.3.0]
    """
    lines = lines_of(text)
    if not lines:
        return []
    version = integer(lines[0], INT_MAX)
    if version is None:
        return Unreadable("line", lines[0], 1)
    if version != 0:
        return Unreadable("version", lines[0], 1)
    if len(lines) == 1:
        return []
    count = integer(lines[1], INT_MAX)
    if count is None:
        return Unreadable("line", lines[1], 2)
    if count < 0:
        return Unreadable("negative count", lines[1], 2)
    entries = []
    for at, line in enumerate(lines[2:], 3):
        parts = _BLANKS.split(line)
        while parts and parts[-1] == "":
            parts.pop()
        if len(parts) != fields:
            return Unreadable("line", line, at)
        for field, largest in numbers:
            if integer(parts[field], largest) is None:
                return Unreadable("number", parts[field], at)
        entries.append(parts)
    return entries if len(entries) == count else Unreadable("count", lines[1], 2)


@states(without=A_FORMAT)
def text_of(entries: Sequence[Sequence[object]]) -> str:
    """A checkpoint file of version 0 with these entries.

    CKP-1: A checkpoint file is UTF-8 text: a line with a version, a line with the number of entries, and a line for
    each entry, its fields separated by a blank, every line ended by a newline. [{CHAPTER}; CheckpointFile, Kafka 4.3.0]
    """
    lines = ["0", str(len(entries)), *(" ".join(map(str, entry)) for entry in entries)]
    return "".join(line + "\n" for line in lines)


def are_partitions(offsets: Mapping[str, int]) -> bool:
    """Whether the keys are names of partitions, and the offsets 64 bits wide."""
    return all(
        re.fullmatch(r"\S+-(0|[1-9]\d{0,8})", name, re.ASCII) and -LONG_MAX - 1 <= offset <= LONG_MAX
        for name, offset in offsets.items()
    )


def topic_and_partition(name: str) -> tuple[str, str]:
    topic, _, number = name.rpartition("-")
    return topic, number


@states("CKP-5")
def checkpoint_text(offsets: Mapping[str, int]) -> str:
    """An offset checkpoint, the entries in the order given."""
    return text_of([(*topic_and_partition(p), offset) for p, offset in offsets.items()])


@states(without=A_FORMAT)
def checkpoint_entries(text: str) -> dict[str, int] | Unreadable:
    """The offsets of an offset checkpoint, by partition.

    CKP-5: An offset checkpoint has version 0 and entries `topic partition offset`, in any order; a partition stands in
    it once, and where it stands twice the last one counts. [{CHAPTER}; OffsetCheckpointFile, Kafka 4.3.0]
    """
    entries = read_entries(text, ((1, INT_MAX), (2, LONG_MAX)), fields=3)
    if isinstance(entries, Unreadable):
        return entries
    return {f"{topic}-{of_digits(number)}": of_digits(offset) for topic, number, offset in entries}


class EpochEntry(NamedTuple):
    """A leader epoch and the offset at which it began."""

    epoch: int
    start_offset: int


def epoch_entries(text: str) -> list[EpochEntry] | Unreadable:
    """The entries `epoch offset` of a leader-epoch-checkpoint."""
    entries = read_entries(text, ((0, INT_MAX), (1, LONG_MAX)), fields=2)
    return entries if isinstance(entries, Unreadable) else [EpochEntry(int(e), int(offset)) for e, offset in entries]


ZERO_ID = "A" * 22


@states(without=A_FORMAT)
def metadata_text(topic_id: str) -> str:
    """A partition.metadata.

    CKP-7: The file partition.metadata is a line `version: 0` and a line `topic_id: ` with the topic's id, 16 bytes in
    URL-safe base64, without a newline at its end. A version of 0 or more is read; a file without these two lines, or
    with the id that is all zero, is a storage error. [PartitionMetadataFile and PartitionMetadataReadBuffer, Kafka
    4.3.0; KIP-516]
    """
    return f"version: 0\ntopic_id: {topic_id}"


def is_topic_id(text: str) -> bool:
    """Whether it is the URL-safe base64 of 16 bytes, with or without its padding."""
    return re.fullmatch(r"[A-Za-z0-9_-]{22}(==)?", text) is not None


def canonical(topic_id: str) -> str:
    """The same id in 22 characters, the last of which has nothing in the four bits that it has over."""
    return base64.urlsafe_b64encode(base64.urlsafe_b64decode(topic_id[:22] + "==")).decode()[:22]


@states("CKP-7")
def metadata_id(text: str) -> str | Unreadable:
    """The topic's id of a partition.metadata."""
    lines = lines_of(text)
    first, second = (lines + ["", ""])[:2]
    fields = [
        re.split(r":\s+", re.sub(r"(:\s+)+$", "", line, flags=re.ASCII), flags=re.ASCII) for line in (first, second)
    ]
    if len(fields[0]) != 2:
        return Unreadable("line", first, 1)
    version = integer(fields[0][1], INT_MAX)
    if version is None:
        return Unreadable("line", first, 1)
    if version < 0:
        return Unreadable("version", first, 1)
    if len(fields[1]) != 2:
        return Unreadable("line", second, 2)
    if not is_topic_id(fields[1][1]):
        return Unreadable("number", fields[1][1], 2)
    id = canonical(fields[1][1])
    return Unreadable("line", second, 2) if id == ZERO_ID else id


@states(without=A_FORMAT)
def marker_epoch(text: str) -> int | None:
    """The broker epoch of a marker; None if it tells none.

    CKP-8: The file .kafka_cleanshutdown is a JSON object with version 0 and the broker epoch. That the file is there
    says that the stop was clean, whatever is in it; the broker epoch is known if the file begins with such an object.
    [CleanShutdownFileHandler, Kafka 4.3.0; KIP-966]
    """
    try:
        # what Python reads as a constant, such as NaN, is not JSON's: no whole number, so that this fails
        content, _ = json.JSONDecoder(parse_constant=int).raw_decode(text.lstrip(" \t\r\n"))
    except ValueError:
        return None
    if not isinstance(content, dict) or _whole(content.get("version", 0), INT_MAX) is None:
        return None
    return _whole(content.get("brokerEpoch"), LONG_MAX)


def _whole(value: object, largest: int) -> int | None:
    """A JSON value as Kafka's reader makes a whole number of it: a fraction is cut off, and text may hold one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        value = int(value) if math.isfinite(value) else None
    if isinstance(value, str):
        value = integer(value.strip(), largest)
    return value if isinstance(value, int) and -largest - 1 <= value <= largest else None
