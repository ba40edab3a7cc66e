"""Leader epochs: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, NUMBER_FORMAT
from kafkaspec.spec.storage.leader_epochs import Cache, Unreadable, entries_of, machine


def _reading_numbers(
    ghost: Any, state: Cache, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op in ("leaderEpochCheckpoint.read", "openText"):
        match entries_of(arguments["file"]):
            case Unreadable("number", _, text):
                return Refused("LEC-17", NUMBER_FORMAT, number_message(text)), observation
            case Unreadable("negative count", _, text):
                return Refused("LEC-17", ILLEGAL_ARGUMENT, f"Illegal Capacity: {int(text)}"), observation
    return result, observation


def number_message(text: str) -> str:
    """What Java says of a text that it does not take for a number."""
    return f'For input string: "{text}"'


machine.deviations += [
    Deviation(
        id="LEC-D1",
        clause="LEC-17",
        title="A leader epoch checkpoint with a bad number in it is not taken for unreadable",
        versions="3.9.1 and 4.3.0 (seen); since the file's code is Java, by 3.1.2 (read): 2.8.2 answers rightly",
        releases=">=3.1",
        condition="""the first thing wrong in the file is an epoch or offset that is no number or too large, or a
        negative number of entries""",
        history=("init", 'leaderEpochCheckpoint.read file="0\\n1\\nx 0\\n"'),
        cause="""The version and the count are read by a helper that turns a bad number into a malformed line; the
        fields of an entry are not, and a list is made with the announced capacity before that is looked at. It is the
        same code as for the other checkpoints (CKP-D1).""",
        effect="""A NumberFormatException or IllegalArgumentException passes by the handler that marks the directory as
        failed. While logs are loaded it stops the broker.""",
        fix="Treat it as a malformed line.",
        rewrite=_reading_numbers,
    ),
]
