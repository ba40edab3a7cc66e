"""Transaction index: the arguments that engines try."""

from __future__ import annotations

import struct

from kafkaspec.spec.common.aborted_transaction import AbortedTransaction
from kafkaspec.spec.common.damaged_files import damaged
from kafkaspec.spec.storage.transaction_index import ENTRY_SIZE, Log, hexadecimal, machine


def _last(log: Log) -> int:
    """Where the log's entries end."""
    return max((e.last_offset for e in log.entries), default=log.indexes[0].start_offset - 1)


def _stable(log: Log) -> int:
    return max((e.last_stable_offset for e in log.entries), default=log.indexes[0].start_offset)


def _around(log: Log) -> list[int]:
    """The offsets at which answers change."""
    bounds = {n + d for e in log.entries[-4:] for n in e[1:] for d in (0, 1)} | {i.start_offset for i in log.indexes}
    return sorted(bounds | {0, _last(log) + 3})


ONE = hexadecimal(AbortedTransaction(1, 2, 3, 4))
_OTHER = hexadecimal(AbortedTransaction(2**62, -1, 2**63 - 1, -(2**63)))
_LAYOUT = struct.Struct(">hqqqq")


def _contents(log: Log) -> list[str]:
    """Files with one thing wrong: two small ones, and the last entries of the log."""
    own = "".join(map(hexadecimal, log.entries[-3:])) or ONE
    return ["", "00", ONE + _OTHER, ONE + _OTHER[:-2], *(d.hex() for d in damaged(bytes.fromhex(own), _LAYOUT))]


machine.candidates |= {
    "init:start_offset": lambda _: [0, 5, 2**31],
    "producer_id": lambda log: [1, 2, 2**40],
    "first_offset": lambda log: [_stable(log), _last(log) + 1, _last(log), _stable(log) + 1, 0],
    "last_offset": lambda log: (
        [_last(log) + 2, _last(log) + 3, _last(log) + 5, _last(log), log.active.start_offset]
        + [max(0, log.active.start_offset - 1)]
    ),
    "last_stable_offset": lambda log: [_stable(log), _last(log) + 1, _last(log) + 3, _last(log)],
    "fetch_offset": _around,
    "upper_bound_offset": _around,
    "truncateTo:offset": _around,
    "roll:start_offset": lambda log: (
        [n for n in (_last(log) + 1, _last(log) + 3) if n > log.active.start_offset] if len(log.indexes) < 4 else []
    ),
    "lost_bytes": lambda log: [0, 1, ENTRY_SIZE, ENTRY_SIZE - 1, ENTRY_SIZE + 1, log.active.size],
    "content": _contents,
}
