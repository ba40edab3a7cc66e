"""The records of the metadata log, as data: which there are, and which fields each version has.

`metadata_facts` has the facts of Kafka 4.3.0; `targets/kafka/metadata_schemas.py` writes it from Kafka's jars.
Source: common/metadata/*.json and common/message/*.json in the jars of kafka-metadata and kafka-clients, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kafkaspec.spec.common import metadata_facts


@dataclass(frozen=True)
class VersionRange:
    """The versions of a message that have something."""

    first: int
    last: int | None = None
    """included; None: all later ones"""

    def __contains__(self, version: int) -> bool:
        return self.first <= version and (self.last is None or version <= self.last)


NEVER: Final = VersionRange(1, 0)


@dataclass(frozen=True)
class FieldSchema:
    """A field of a message or of a structure."""

    name: str
    """as Kafka's JSON has it: brokerId"""
    type: str
    """bool, int8, int16, int32, int64, uint16, float64, uuid, string, bytes or struct; of an array, its elements'"""
    array: bool
    versions: VersionRange
    nullable: VersionRange
    """where null may stand"""
    tag: int | None
    """None: it stands in its place, in every version that has it"""
    default: Any
    """what it is where it is absent; a structure has none"""
    structure: str = ""
    """the structure's name"""
    fields: tuple[FieldSchema, ...] = ()
    """a structure's"""


@dataclass(frozen=True)
class MessageSchema:
    """A kind of record."""

    name: str
    type: int
    """its number: of a data record the API key, of a control record the ControlRecordType"""
    highest: int
    """the highest version; the lowest is 0"""
    fields: tuple[FieldSchema, ...]


def _range(of: Sequence[Any] | None) -> VersionRange:
    return NEVER if of is None else VersionRange(*of)


def _field(of: Mapping[str, Any]) -> FieldSchema:
    return FieldSchema(
        name=of["name"],
        type=of["type"],
        array=of.get("array", False),
        versions=_range(of["versions"]),
        nullable=_range(of.get("nullable")),
        tag=of.get("tag"),
        default=of.get("default"),
        structure=of.get("structure", ""),
        fields=tuple(map(_field, of.get("fields", ()))),
    )


def _messages(of: Sequence[Mapping[str, Any]]) -> dict[int, MessageSchema]:
    return {m["type"]: MessageSchema(m["name"], m["type"], m["highest"], tuple(map(_field, m["fields"]))) for m in of}


_FACTS: Final = orjson.loads(metadata_facts.JSON)
DATA: Final[Mapping[int, MessageSchema]] = _messages(_FACTS["data"])
"""The records of the metadata log, by API key."""
CONTROL: Final[Mapping[int, MessageSchema]] = _messages(_FACTS["control"])
"""What control records of a quorum's log and snapshots say, by ControlRecordType."""
