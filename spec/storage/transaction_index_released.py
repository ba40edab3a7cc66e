"""Transaction index: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.codec import encode
from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.spec.storage.transaction_index import (
    Log,
    digits_of_entries,
    machine,
    read,
)
from kafkaspec.spec.storage.transaction_index_trial import ONE


def _one_byte_of_version(
    ghost: Any, log: Log, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op == "read" and isinstance(result, Refused):
        entries = digits_of_entries(arguments["content"])
        if all(not 0 < int(e[:2], 16) < 2**7 for e in entries):
            return encode(read("".join("0000" + e[4:] for e in entries))), observation
    return result, observation


machine.deviations += [
    Deviation(
        id="TXI-D1",
        clause="TXI-11",
        title="Half of the version of a transaction index entry is not looked at",
        versions="4.3.0 (recorded)",
        condition="an entry of a version from 1 to 255 is read, and none whose version's first byte is above 0",
        history=("init", f'read content="{"0001" + ONE[4:]}"'),
        cause="""The version is 16 bits wide, and one byte, the first, is read.""",
        effect="""An entry of a later version below 256 is taken for one of version 0, and its bytes for its fields.
        No such version has been written so far; a downgrade to this release would misread one.""",
        fix="Read both bytes.",
        rewrite=_one_byte_of_version,
    ),
]
