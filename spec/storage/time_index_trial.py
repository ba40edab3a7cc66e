"""Time index: the arguments that engines try."""

from __future__ import annotations

from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.common.damaged_files import damaged
from kafkaspec.spec.common.mapped_index import Index
from kafkaspec.spec.storage.time_index import BASE, LAYOUT, MAX_SIZE, audit, machine


def _offsets(state: Index) -> list[int]:
    used = [c[1] for c in state.used]
    known = [state.base_offset + relative for relative in used[:: max(1, len(used) // 50)]]
    last = state.base_offset + max([*used, 0])
    near = [last + 1, last + 2, last + 9, *(o + d for o in dict.fromkeys(known) for d in (0, -1, 1))]
    limit = state.base_offset + mapped.MOST_RELATIVE
    again = [last] * 4 if known else []
    around = dict.fromkeys([*near, state.base_offset, state.base_offset - 1, limit, limit + 1, 0])
    return [*again, *(o for o in around if o >= 0)]


def _timestamps(state: Index) -> list[int]:
    used = [c[0] for c in state.used]
    known = used[:: max(1, len(used) // 50)]
    last = max([*used, 0])
    near = [last + 1, last + 5, *(t + d for t in dict.fromkeys(known) for d in (0, -1, 1)), -1, 0, 2**62, -(2**63)]
    again = [last, last] if known else []
    return [*again, *(t for t in dict.fromkeys(near) if -(2**63) <= t < 2**63)]


PAGE = mapped.PAGE // LAYOUT.size
"""Entries of a page."""


def _appended(candidates: list[int]) -> list[int]:
    """Also the first of them as often as not, however many entries there are."""
    return candidates + candidates[:4] * (len(candidates) // 4)


def _cut(state: Index) -> list[int]:
    """Also at the last entries, and at the last of each page."""
    edges = [state.base_offset + state.used[n - 1][1] for n in range(PAGE, len(state.used) + 1, PAGE)]
    offsets = _offsets(state)
    return offsets + [*offsets[:2], *edges] * max(1, len(offsets) // 8)


FILES_HEX = [
    "",
    "000000000000000500000004000000000000000900000008",
    "000000000000000500000004000000000000000900000008000000000000000000000000",
    "0000000000000005000000040000000000",
    "0000000000000005fffffffe",
    "000000000000000100000001000000000000000200000005000000000000000300000005000000000000000400000009",
    "000000000000000100000001000000000000000200000005000000000000000300000005000000000000000400000005",
    "00000000000000090000000400000000000000050000000800000000000000070000000900000000000000080000000a",
]


def _files(state: Index) -> list[str]:
    """Those, and the last entries of this one with one thing wrong."""
    own = b"".join(LAYOUT.pack(*c) for c in state.used[-5:]) or bytes.fromhex(FILES_HEX[1])
    return [*FILES_HEX, *(data.hex() for data in damaged(own, LAYOUT))]


_LOGS: list[list[list[int]]] = [
    [],
    [[100, 104, 10], [105, 105, 12], [109, 112, 11], [113, 113, 15]],
    [[90, 104, 7], [105, 120, 7]],
    [[100, 104, -1]],
]


_ENTRIES: list[list[list[int]]] = [
    [],
    [[10, 104], [15, 113]],
    [[12, 105], [15, 113]],
    [[12, 105]],
    [[11, 112], [15, 113]],
    [[7, 104]],
    [[7, 103]],
    [[12, 107], [15, 113]],
    [[12, 105], [10, 104]],
    [[15, 113], [16, 113]],
    [[15, 113], [0, 100]],
    [[15, 113], [19, 130]],
]


machine.candidates |= {
    "init:base_offset": lambda _: [BASE, 0, 2**53, 2**40],
    "init:max_index_size": lambda _: [*[MAX_SIZE] * 4, 96, 24, 23, 12],  # and of two slots, and of one
    "timestamp": _timestamps,
    "offset": _offsets,
    "maybeAppend:timestamp": lambda state: _appended(_timestamps(state)),
    "maybeAppend:offset": lambda state: _appended(_offsets(state)),
    "truncateTo:offset": _cut,
    "skip_full_check": lambda state: [False, True],
    "n": lambda state: [max(len(state.used) - 1, 0), len(state.used), 0],
    "new_size": lambda state: [len(state.used) * 12 + d for d in (0, 13, 11, 36)] + [0, 65, 180],
    "max_index_size": lambda state: [MAX_SIZE, 96, 12, 0, 11],
    "open:max_index_size": lambda state: [MAX_SIZE, 96, 12],
    "writable": lambda state: [True, False],
    "count": lambda state: [800, 400, *(PAGE + d for d in (-1, 0, 1))],
    "file": _files,
}


audit.candidates |= {"batches": lambda state: _LOGS, "entries": lambda state: _ENTRIES}
