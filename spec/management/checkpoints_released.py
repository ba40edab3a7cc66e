"""Checkpoint files: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.spec.common.checkpoint_text import (
    TOO_LONG,
    Unreadable,
    checkpoint_entries,
    epoch_entries,
    has_no_room,
    lines_of,
    metadata_id,
    of_digits,
)
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, NULL_POINTER, NUMBER_FORMAT, OUT_OF_MEMORY
from kafkaspec.spec.management.checkpoints import HIGH_WATERMARKS, Directory, machine, stopping


def _thrown(unreadable: Unreadable) -> Refused | None:
    """What a bad number in a file makes the reader throw; None if something else is wrong with it."""
    match unreadable:
        case Unreadable("number", text):
            return Refused("CKP-3", NUMBER_FORMAT, f'For input string: "{text}"')
        case Unreadable("negative count", text):
            return Refused("CKP-3", ILLEGAL_ARGUMENT, f"Illegal Capacity: {of_digits(text)}")
    return None


def _starts_nevertheless(ghost: Any, before: Directory, op: str, arguments: Mapping[str, Any], after: Directory) -> Any:
    """Whether the broker runs, although a file cannot be read."""
    return all(map(_thrown, stopping(after))) and not after.running if op == "start" else ghost


def _reading_numbers(
    ghost: Any, state: Directory, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if ghost:
        observation = machine.observe(replace(state, running=True, loaded=True))
    if ghost and op == "start":
        marks = state.files[HIGH_WATERMARKS]
        refused = _thrown(marks) if isinstance(marks, Unreadable) and state.logs else None
        return refused or {"clean": state.was_clean, "halted": False}, observation
    read = {"offsetCheckpoint.read": checkpoint_entries, "leaderEpochCheckpoint.read": epoch_entries}.get(op)
    found = read(arguments["file"]) if read is not None else None
    return (_thrown(found) if isinstance(found, Unreadable) else None) or result, observation


def _making_room(
    ghost: Any, state: Directory, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op in ("offsetCheckpoint.read", "leaderEpochCheckpoint.read") and has_no_room(arguments["file"]):
        return Refused("CKP-3", OUT_OF_MEMORY, TOO_LONG), observation
    return result, observation


def _metadata_without_lines(
    ghost: Any, state: Directory, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op == "partitionMetadata.read" and isinstance(result, Refused):
        lines = lines_of(arguments["file"])
        found = metadata_id(arguments["file"])
        assert isinstance(found, Unreadable)
        if found.line > len(lines):
            return Refused("CKP-7", NULL_POINTER), observation
        if found.reason == "number":
            return Refused("CKP-7", ILLEGAL_ARGUMENT), observation
    return result, observation


machine.deviations += [
    Deviation(
        id="CKP-D1",
        clause="CKP-3",
        title="A checkpoint file with a bad number in it is not taken for unreadable",
        versions="4.3.0 (recorded)",
        condition="""the first thing wrong in the file is a field of an entry that is no number or too large, or a
        negative number of entries; at a start, nothing worse is wrong with any of the files""",
        history=("init", 'offsetCheckpoint.read file="0\\n1\\nc x 5\\n"'),
        cause="""The version and the count are read by a helper that turns a bad number into a malformed line; the
        fields of an entry are not, and a list is made with the announced capacity before that is looked at.""",
        effect="""A NumberFormatException or IllegalArgumentException passes by the handler that marks a directory as
        failed and by those who wait for a storage error: it ends the cleaner thread that looks for work. In the
        recovery-point checkpoint it is milder than any other fault: the broker starts, and recovers every log from
        its first segment.""",
        fix="Treat it as a malformed line.",
        rewrite=_reading_numbers,
        initial=bool,
        advance=_starts_nevertheless,
    ),
    Deviation(
        id="CKP-D2",
        clause="CKP-7",
        title="A partition.metadata that lacks a line, or has a malformed id, is no storage error",
        versions="4.3.0 (recorded)",
        condition="""the file ends before a line that is needed, or what stands for the id is not the base64 of 16
        bytes""",
        history=("init", 'partitionMetadata.read file=""'),
        cause="""The reader splits the line without a look whether there was one, and the id's parser throws an
        IllegalArgumentException; only input errors are handled.""",
        effect="""A NullPointerException or IllegalArgumentException while the log is loaded ends the start of the
        broker altogether, whatever other directories it has.""",
        fix="Treat both as a malformed line.",
        rewrite=_metadata_without_lines,
    ),
    Deviation(
        id="CKP-D3",
        clause="CKP-3",
        title="A checkpoint file that announces too many entries is not taken for unreadable",
        versions="4.3.0 (seen)",
        condition="""the file announces 2^31 - 1 or 2^31 - 2 entries, more than any array has; or fewer, where the heap
        has no room for that number of references""",
        history=("init", 'offsetCheckpoint.read file="0\\n2147483647\\nt 0 5\\n"'),
        cause="A list is made with the announced capacity before the first entry is read.",
        effect="""An OutOfMemoryError is no error of input: it passes by the handlers that mark a directory as failed.
        With such a number in any of the three checkpoints that a start reads, the broker does not come up, however many
        sound directories it has.""",
        fix="Let the list grow, and compare its length with the announced number afterwards.",
        rewrite=_making_room,
    ),
]
