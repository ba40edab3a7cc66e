"""Leader epochs: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.spec.common.checkpoint_text import TOO_LONG, has_no_room, of_digits
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, NUMBER_FORMAT, OUT_OF_MEMORY
from kafkaspec.spec.storage.leader_epochs import Cache, Unreadable, entries_of, machine


def _reading_numbers(
    ghost: Any, state: Cache, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op in ("leaderEpochCheckpoint.read", "openText"):
        match entries_of(arguments["file"]):
            case Unreadable("number", _, text):
                return Refused("LEC-17", NUMBER_FORMAT, number_message(text)), observation
            case Unreadable("negative count", _, text):
                return Refused("LEC-17", ILLEGAL_ARGUMENT, f"Illegal Capacity: {of_digits(text)}"), observation
    return result, observation


def _making_room(
    ghost: Any, state: Cache, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op in ("leaderEpochCheckpoint.read", "openText") and has_no_room(arguments["file"]):
        return Refused("LEC-17", OUT_OF_MEMORY, TOO_LONG), observation
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
    Deviation(
        id="LEC-D2",
        clause="LEC-17",
        title="A leader epoch checkpoint that announces too many entries is not taken for unreadable",
        versions="3.9.1 and 4.3.0 (seen); since the file's code is Java, by 3.1.2 (read): 2.8.2 answers rightly",
        releases=">=3.1",
        condition="""the file announces 2^31 - 1 or 2^31 - 2 entries, more than any array has; or fewer, where the heap
        has no room for that number of references""",
        history=("init", 'leaderEpochCheckpoint.read file="0\\n2147483647\\n5 9\\n"'),
        cause="""A list is made with the announced capacity before the first entry is read. It is the same code as for
        the other checkpoints (CKP-D3).""",
        effect="""An OutOfMemoryError is no error of input: it passes by the handler that marks the directory as failed.
        One damaged number stops the broker while it loads its logs, however many sound directories it has.""",
        fix="Let the list grow, and compare its length with the announced number afterwards.",
        rewrite=_making_room,
    ),
]
