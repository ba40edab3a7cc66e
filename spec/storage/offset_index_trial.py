"""Offset index: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.lockstep.exhaustive import Call, RefinementMapping
from kafkaspec.models.storage import offset_index as model
from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.common.damaged_files import damaged
from kafkaspec.spec.common.mapped_index import Index
from kafkaspec.spec.storage.offset_index import BASE, LAYOUT, MAX_SIZE, audit, entries, machine, rising

PAGE = mapped.PAGE // LAYOUT.size
"""Entries of a page."""


def _offsets(state: Index) -> list[int]:
    """Around each entry, and where it overflows."""
    used = [c[0] for c in state.used]
    known = [state.base_offset + relative for relative in used[:: max(1, len(used) // 50)]]
    last = state.base_offset + max([*used, 0])
    near = [last + 1, last, last + 2, last + 9, *(o + d for o in dict.fromkeys(known) for d in (0, -1, 1))]
    limit = state.base_offset + mapped.MOST_RELATIVE
    around = dict.fromkeys([*near, state.base_offset, state.base_offset - 1, limit, limit + 1, 0])
    return [o for o in around if o >= 0]


def _appended(state: Index) -> list[int]:
    """Also above the last as often as not, however many entries there are."""
    offsets = _offsets(state)
    return offsets + [o for o in offsets[:4] if o >= state.base_offset] * (len(offsets) // 4)


def _cut(state: Index) -> list[int]:
    """Also at the last entries, and at the last of each page."""
    edges = [state.base_offset + state.used[n - 1][0] for n in range(PAGE, len(state.used) + 1, PAGE)]
    offsets = _offsets(state)
    return offsets + [*offsets[:2], *edges] * max(1, len(offsets) // 8)


def _positions(state: Index) -> list[int]:
    last = state.used[-1][1] if state.used else 0
    return list(dict.fromkeys([last + 1 if last < 2**31 - 1 else last, last, 4097, 0, 2**31 - 1]))


FILES_HEX = [
    "",
    "00000005000010000000000900002000",
    "000000050000100000000009000020000000000000000000",
    "0000000500001000000000",
    "fffffffe00000000",
    "0000000900000001000000050000000200000007",
    "000000000000000000000000000000000000000000000000",
]


def _files(state: Index) -> list[str]:
    """Those, and the last entries of this one with one thing wrong."""
    own = b"".join(LAYOUT.pack(*c) for c in state.used[-5:]) or bytes.fromhex(FILES_HEX[1])
    return [*FILES_HEX, *(data.hex() for data in damaged(own, LAYOUT))]


_LOGS: list[list[list[int]]] = [
    [],
    [[0, 100, 100, 104, 104], [100, 50, 105, 105, 105], [150, 70, 109, 112, 112], [220, 70, 113, 113, 113]],
    [[0, 100, 90, 104, 97], [100, 61, 105, 120, -1], [161, 70, 125, 130, 128]],
]


_ENTRIES: list[list[list[int]]] = [
    [],
    [[105, 100], [113, 220]],
    [[112, 100], [113, 220]],
    [[104, 100]],
    [[105, 101]],
    [[108, 150], [120, 100]],
    [[106, 150], [110, 150], [113, 220]],
    [[105, 100], [105, 150]],
    [[113, 100], [112, 150]],
    [[105, 100], [114, 290], [100, 0]],
    [[97, 0], [108, 100], [128, 161]],
    [[98, 0], [130, 100]],
    [[96, 0], [127, 161]],
]


machine.candidates |= {
    "init:base_offset": lambda _: [BASE, 0, 2**53, 2**40],
    "init:max_index_size": lambda _: [*[MAX_SIZE] * 4, 64, 16, 15, 8],  # and of two slots, and of one
    "offset": _offsets,
    "append:offset": _appended,
    "truncateTo:offset": _cut,
    "position": _positions,
    "size": lambda state: [0, 1, 4096, 2**31 - 1],
    "n": lambda state: [max(len(state.used) - 1, 0), len(state.used), 0],
    "new_size": lambda state: [len(state.used) * 8 + d for d in (0, 9, 7, 24)] + [0, 43, 120],
    "max_index_size": lambda state: [MAX_SIZE, 64, 8, 0, 7],
    "open:max_index_size": lambda state: [MAX_SIZE, 64, 8],
    "writable": lambda state: [True, False],
    "count": lambda state: [1100, 600, *(PAGE + d for d in (-1, 0, 1))],
    "file": _files,
}


audit.candidates |= {"batches": lambda state: _LOGS, "entries": lambda state: _ENTRIES}


def refinement(sizes: Mapping[str, int]) -> RefinementMapping[Index]:
    """Offset o of the model is the base offset and o; the search's steps are inside the spec's lookup."""
    slots, keys = sizes["N"], sizes["K"]

    def to_model(state: Index) -> dict[str, Any] | None:
        held = [c[0] for c in (*state.used, *state.beyond)]
        usual = state.is_open and state.writable and state.slots == slots and rising(state)
        if not usual or not all(0 <= k <= keys for k in held):
            return None
        return {
            "key": {n: held[n] if n < len(held) else 0 for n in range(slots + 1)},
            "entries": len(state.used),
            "phase": model.Phase.IDLE,
            "target": 0,
            "low": 0,
            "high": 0,
            "answer": -1,
        }

    def calls(state: Index, action: str, arguments: Mapping[str, Any]) -> list[Call] | None:
        match action:
            case "append":
                return [("append", {"offset": BASE + arguments["k"], "position": 1})]
            case "truncate":
                offset = BASE + arguments["k"]
                kept = sum(1 for e in entries(state) if e.offset < offset)
                return [("truncateTo", {"offset": offset})] if arguments["m"] == kept else None
        return None

    inside = "a step inside a lookup, which is one call of the spec"
    return RefinementMapping(
        model.Search,
        sizes,
        to_model,
        calls,
        {"begin": inside, "choose": inside, "halve": inside, "done": inside, "forget": inside},
        {"base_offset": BASE, "max_index_size": slots * LAYOUT.size},
        partly="the others are states within a lookup",
    )


REFINEMENTS = (refinement({"N": 3, "K": 3, "W": 1}),)
