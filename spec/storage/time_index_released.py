"""Time index: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Fields, Json, Refused
from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.common.mapped_index import Index
from kafkaspec.spec.common.mapped_index_released import advancing, rewriting
from kafkaspec.spec.storage.time_index import LAYOUT, entries, machine, rising


def _torn(ghost: Any, before: Index, op: str, arguments: Mapping[str, Any], after: Index) -> Any:
    """The timestamp that a refused append has left in the next slot, if any, until the file is another one."""
    if op in mapped.NEW_FILE:
        return None
    torn = ghost is None and op == "maybeAppend" and _refused_for_its_offset(before, arguments)
    return arguments["timestamp"] if torn else ghost


def _refused_for_its_offset(state: Index, arguments: Mapping[str, Any]) -> bool:
    if not state.is_open or state.odd:
        return False
    found = machine.operations["maybeAppend"].body(state, **arguments)
    return isinstance(found, Refused) and found.clause == "TIX-5"


def _leaves_the_timestamp(
    ghost: Any, state: Index, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if ghost is None or not state.is_open or "file" not in observation:
        return result, observation
    data = bytearray(mapped.content(state, LAYOUT))
    at = len(state.used) * LAYOUT.size
    data[at : at + 8] = int(ghost).to_bytes(8, "big", signed=True)
    return result, Fields({**observation, "file": data.hex()})


def _kept(ghost: Any, before: Index, op: str, arguments: Mapping[str, Any], after: Index) -> Any:
    """How many entries a truncation has kept, if that was one too many, until the file is another one. The search stops
    at any entry that has the offset; those before it stay."""
    if op in mapped.NEW_FILE:
        return None
    if ghost is not None or op != "truncateTo" or not before.is_open or not rising(before):
        return ghost
    keys = [e.offset for e in entries(before)]
    slots = mapped.probed(len(keys), LAYOUT, lambda n: keys[n], arguments["offset"])
    hit = next((n for n in slots[1:] if keys[n] == arguments["offset"] and n > 0), None)
    return None if hit == len(after.used) else hit


def _keeps_one_of_equals(
    ghost: Any, state: Index, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op != "truncateTo" or ghost is None:
        return result, observation
    return result, machine.observe(_longer(state, ghost))


def _longer(state: Index, entries: int) -> Index:
    """The state with `entries` entries in use."""
    held = (state.used + state.beyond)[:entries]
    return replace(state, used=held, beyond=state.beyond[entries - len(state.used) :])


machine.deviations += [
    Deviation(
        id="TIX-D1",
        clause="TIX-5",
        title="An append that is refused because its offset does not fit leaves its timestamp behind",
        versions="4.3.0 (seen)",
        condition="""an entry is appended that would be made but for its offset, which is below the base offset or more
        than 2147483647 above it""",
        history=("init", "maybeAppend timestamp=7 offset=99 skipFullCheck=false"),
        cause="""The timestamp is written through the mapping, which moves its position by 8 bytes, before the offset is
        looked at; the position is not set back.""",
        effect="""The next append begins 8 bytes further on, counts an entry that nobody wrote, and throws an
        IllegalStateException, and so does every one after it, until the index is truncated or opened again. A segment
        looks at the offset of an append beforehand, so that this needs another caller.""",
        fix="Work out the relative offset before anything is written, as the offset index does.",
        rewrite=_leaves_the_timestamp,
        advance=_torn,
        lost=lambda ghost: ghost is not None,
    ),
    Deviation(
        id="TIX-D2",
        clause="TIX-8",
        title="Of entries with one offset, truncating to that offset may keep the first",
        versions="4.3.0 (seen)",
        condition="""two entries have the offset that is truncated to, which appending with a later timestamp and the
        same offset makes, and the search meets the later one first""",
        history=(
            "init",
            "maybeAppend timestamp=1 offset=101 skipFullCheck=false",
            "maybeAppend timestamp=2 offset=105 skipFullCheck=false",
            "maybeAppend timestamp=3 offset=105 skipFullCheck=false",
            "maybeAppend timestamp=4 offset=109 skipFullCheck=false",
            "truncateTo offset=105",
        ),
        cause="The search ends at any entry that equals the target, and what lies before that entry is kept.",
        effect="""An entry stays whose offset is no longer in the log. A segment appends an entry for an offset once, so
        that this needs another caller.""",
        fix="Go down to the first of equal offsets.",
        rewrite=_keeps_one_of_equals,
        advance=_kept,
        lost=lambda ghost: ghost is not None,
    ),
    Deviation(
        id="TIX-D3",
        clause="TIX-9",
        title="Resizing a time index to less than its entries cuts the file before it is refused",
        versions="4.3.0 (seen)",
        condition="the new size, in whole slots, is less than the entries in use",
        history=(
            "init",
            "maybeAppend timestamp=1 offset=101 skipFullCheck=false",
            "maybeAppend timestamp=2 offset=105 skipFullCheck=false",
            "resize newSize=12",
        ),
        cause="As with the offset index (OIX-D3): it is the same code.",
        effect="""A broker whose segment.index.bytes was lowered below the size of the last segment's time index fails
        to load the log. When it is started again, the file is cut: the segment's largest timestamp is then the last
        one that is left, and retention by time and lookups by time take the segment for older than it is.""",
        fix="Compare the new size with the entries in use first, and make the index again where it does not fit.",
        rewrite=rewriting(machine, LAYOUT),
        initial=bool,
        advance=advancing(LAYOUT),
        lost=bool,
    ),
]
