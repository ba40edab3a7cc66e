"""Files of equal entries with one thing wrong in each, built from a good one. Nothing here is a rule."""

from __future__ import annotations

import struct
from collections.abc import Iterator


def damaged(entries: bytes, layout: struct.Struct) -> Iterator[bytes]:
    """The entries (bytes, one after the other) as they are; cut and with bytes behind them; one missing, twice, moved,
    blank or full of ones; and each number of the last one at the ends of its type and next to them."""
    size = layout.size
    slots = [entries[at : at + size] for at in range(0, len(entries) - size + 1, size)]
    yield entries
    yield from (entries[:cut] for cut in (-1, -size + 1, -size) if len(entries) >= size)
    yield from (entries + bytes(n) for n in (1, size - 1, size, size + 1))
    if not slots:
        return
    first, *between, last = slots if len(slots) > 1 else [slots[0], slots[0]]
    yield b"".join(slots[::-1])
    yield b"".join([*slots, first])
    yield b"".join([*slots, last])
    yield b"".join(slots[1:])
    for blank in (bytes(size), b"\xff" * size):
        yield b"".join([first, blank, *between, last])
        yield b"".join([*slots[:-1], blank])
    numbers = layout.unpack(last)
    for n, kind in enumerate(layout.format.strip("<>=!@")):
        bits = 8 * struct.calcsize(f">{kind}")
        low, high = (0, 2**bits - 1) if kind.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        for value in dict.fromkeys((low, low + 1, -1, 0, numbers[n] - 1, numbers[n] + 1, high - 1, high)):
            if low <= value <= high:
                yield b"".join([*slots[:-1], layout.pack(*numbers[:n], value, *numbers[n + 1 :])])
