"""Producer state: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafkaspec.contract.numbers import Offset
from kafkaspec.language.concrete import element
from kafkaspec.lockstep.exhaustive import RefinementMapping
from kafkaspec.models.storage import producer_state as model
from kafkaspec.spec.common.damaged_files import damaged
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.common.producer_snapshot import ENTRY, HEAD, Entry, entries_of, packed, sealed
from kafkaspec.spec.common.producers import (
    FIRST_NOW,
    MOST_EPOCH,
    NO_EPOCH,
    NO_GUARD,
    SEQUENCES,
    UNKNOWN,
    UNKNOWN_VERSION,
    State,
    next_sequence,
)
from kafkaspec.spec.storage.producer_state import machine

PRODUCERS: Final = (1, 2, 3)
CROWD: Final = 60
CROWDED_MS: Final = 600_000
"""The expiration with which CROWD producers come, one after the other."""
ONE: Final = Entry(7, 2, 4, 9, 1, FIRST_NOW, -1, 8)


def _focus(state: State) -> int:
    """The producer that writes most at the moment, so that walks come to more than five batches of one."""
    known = sorted(state.producers) if _crowded(state) else []
    several = known or PRODUCERS
    return several[state.end // 8 % len(several)]


def _crowded(state: State) -> bool:
    """Whether new producers keep coming, dozens of them."""
    return state.config.producer_id_expiration_ms == CROWDED_MS


def _count(state: State) -> int:
    """How many records the next batch mostly has."""
    return 300 if state.end % 13 == 7 else 2 if state.end % 5 == 0 else 1


def _writers(state: State) -> Sequence[int]:
    newest = max(state.producers, default=0)
    more = [min(newest + 1, CROWD)] * 8 if _crowded(state) and newest <= CROWD else []
    return [*more, *[_focus(state)] * 4, *PRODUCERS]


def _epochs(state: State) -> Sequence[int]:
    known = max(0, state.producers.get(_focus(state), UNKNOWN).epoch)
    greatest = [MOST_EPOCH] if state.end % 11 == 0 else []
    return [known, known, known, known, min(known + 1, MOST_EPOCH), max(0, known - 1), *greatest]


def _first_sequences(state: State) -> Sequence[int]:
    p = state.producers.get(_focus(state), UNKNOWN)
    upcoming = next_sequence(p.last_sequence)
    repeated = [b.first_sequence for b in (p.batches[:1] + p.batches[-1:])]
    return [*[upcoming] * 4, next_sequence(upcoming), 0, *repeated, *([SEQUENCES - 1] if p == UNKNOWN else [])]


def _last_sequences(state: State) -> Sequence[int]:
    return [(s + _count(state) - 1) % SEQUENCES for s in _first_sequences(state)]


def _high_watermarks(state: State) -> Sequence[Offset]:
    return [state.end, state.end + 1, state.end // 2, 0, *(e.last_offset for e in state.ended.values())]


def _now_and_then(state: State, offsets: Sequence[Offset]) -> Sequence[Offset]:
    """What undoes much is done seldom."""
    return offsets if state.end % 4 == 3 else ()


def _snapshot_offsets(state: State) -> Sequence[Offset]:
    return [*state.snapshots, state.end, state.end + 1, 0]


def _ends(state: State) -> Sequence[Offset]:
    return sorted({0, *state.snapshots, state.end, max(0, state.end - 1), state.end // 2, state.end + 1})


def _guards(state: State) -> Sequence[int]:
    of_now = [v.guard for v in state.verifications.values() if v.guard in state.handed_out for _ in (0, 1)]
    return [NO_GUARD, *of_now, *sorted(state.handed_out)[-2:]]


def _times(state: State) -> Sequence[int]:
    return [state.now] * 6 + [max(0, state.now - state.config.producer_id_expiration_ms)]


def _files(state: State) -> Sequence[str]:
    """Snapshot files: what is wrong in them is under a right CRC, mostly."""
    known = entries_of(state.saved)[-4:] or [ONE]
    whole, entries = packed(known), b"".join(ENTRY.pack(*e) for e in known)
    counts = (0, len(known) - 1, len(known) + 1, -1, -INT_MAX - 1, INT_MAX)
    return [
        data.hex()
        for data in (
            *(sealed(len(known), wrong) for wrong in damaged(entries, ENTRY)),
            *(sealed(count, entries) for count in counts),
            *(sealed(len(known), entries, version) for version in (0, 2, -1)),
            *(whole[:size] for size in (0, 1, HEAD.size - 1, len(whole) - 1)),
            whole[:2] + bytes(4) + whole[6:],
            whole[:-1] + bytes([whole[-1] ^ 1]),
            packed([]),
        )
    ]


machine.candidates |= {
    "producer_id": _writers,
    "origin": lambda state: ("CLIENT", "CLIENT", "CLIENT", "REPLICATION", "COORDINATOR"),
    "endTransaction:origin": lambda state: ("COORDINATOR", "COORDINATOR", "REPLICATION"),
    "producer_epoch": _epochs,
    "epoch": _epochs,
    "first_seq": _first_sequences,
    "last_seq": _last_sequences,
    "sequence": _first_sequences,
    "first_offset": lambda state: [state.end] * 6 + [state.end + 1],
    "last_offset": lambda state: [state.end + _count(state) - 1] * 6 + [state.end + _count(state)],
    "offset": lambda state: (state.end, state.end, state.end + 1),
    "timestamp": _times,
    "transactional": lambda state: (False, True),
    "guard": _guards,
    "type": lambda state: ("COMMIT", "ABORT"),
    "coordinator_epoch": lambda state: (0, 0, 1, 2),
    "transaction_version": lambda state: (0, 2, 2, UNKNOWN_VERSION),
    "supports_epoch_bump": lambda state: (True, False),
    "high_watermark": _high_watermarks,
    "log_start_offset": lambda state: (0, 0, state.end // 2, state.end),
    "onLogStartOffsetIncremented:log_start_offset": lambda state: (0, state.end // 2, state.end, state.end + 2),
    "log_end_offset": lambda state: _ends(state) if state.end % 2 else [state.end + 1] * bool(state.snapshots),
    "current_time_ms": lambda state: (state.now,),
    "ms": lambda state: (1, 1, 400_000, 700_000, state.config.producer_id_expiration_ms // 2),
    "truncateFullyAndStartAt:offset": lambda state: _now_and_then(state, (0, 8, state.end)),
    "deleteSnapshotsBefore:offset": _snapshot_offsets,
    "corruptSnapshot:offset": lambda state: list(state.snapshots),
    "segment_base_offsets": lambda state: (
        [],
        [0],
        [0, *list(state.snapshots)[:1]],
        list(state.snapshots)[:-1],
        [state.end],
    ),
    "entries": lambda state: (
        [],
        [[1, 0, 4, 9, 4, FIRST_NOW, -1, -1]],
        [[2**63 - 1, MOST_EPOCH, SEQUENCES - 1, 2**63 - 1, 0, -1, 7, 3], [2, 1, -1, -1, 0, 5, 0, -1]],
    ),
    "file": _files,
    "init:transaction_verification_enabled": lambda state: (True, False),
    "init:max_transaction_timeout_ms": lambda state: (300_000, 300_000, 60_000, 2**31 - 1),
    "init:producer_id_expiration_ms": lambda state: (86_400_000, 86_400_000, CROWDED_MS, 2**31 - 1),
}


SIZES: Final = {"Producer": 2, "E": 1, "S": 2, "L": 3}


def _to_model(state: State) -> dict[str, Any] | None:
    """The state of `Producers` that a state stands for; None beyond the sizes."""
    ids = range(1, SIZES["Producer"] + 1)
    if state.end > SIZES["L"] or any(i not in ids for i in state.producers) or state.verifications:
        return None
    known = {element(model.Producer, i - 1): state.producers.get(i, UNKNOWN) for i in ids}
    if any(
        max(p.epoch, p.coordinator_epoch) > SIZES["E"] or next_sequence(p.last_sequence) > SIZES["S"]
        for p in known.values()
    ):
        return None
    return {
        "epoch": {e: None if p.epoch == NO_EPOCH else p.epoch for e, p in known.items()},
        "following": {e: next_sequence(p.last_sequence) for e, p in known.items()},
        "coordinator": {e: None if p.coordinator_epoch < 0 else p.coordinator_epoch for e, p in known.items()},
        "opened": {e: p.transaction for e, p in known.items()},
        "ended": {f: state.ended[f].last_offset if f in state.ended else None for f in range(SIZES["L"] + 1)},
        "end": state.end,
    }


def _calls(state: State, action: str, arguments: Mapping[str, Any]) -> Sequence[tuple[str, dict[str, Any]]] | None:
    """The calls for an action of `Producers`, whose log is full at its size, and whose producers begin at 0."""
    if action == "replicate":
        return [("onHighWatermarkUpdated", {"high_watermark": arguments["h"]})]
    ids = {element(model.Producer, i - 1): i for i in range(1, SIZES["Producer"] + 1)}
    producer_id, epoch = ids[arguments["p"]], arguments["e"]
    if state.end >= SIZES["L"]:
        return None
    if action == "mark":
        version = 2 if arguments["bumps"] else 0
        return [
            (
                "appendEndTxnMarker",
                {
                    "producer_id": producer_id,
                    "origin": "COORDINATOR",
                    "type": "COMMIT",
                    "coordinator_epoch": arguments["c"],
                    "producer_epoch": epoch,
                    "offset": state.end,
                    "timestamp": state.now,
                    "transaction_version": version,
                },
            )
        ]
    q = arguments["q"]
    if q >= SIZES["S"] or (producer_id not in state.producers and q != 0):
        return None
    numbers = {"first_seq": q, "last_seq": q, "first_offset": state.end, "last_offset": state.end}
    return [
        (
            "appendDataBatch",
            {
                "producer_id": producer_id,
                "origin": "CLIENT",
                "producer_epoch": epoch,
                **numbers,
                "timestamp": state.now,
                "transactional": arguments["transactional"],
            },
        )
    ]


REFINEMENTS = (RefinementMapping(model.Producers, SIZES, _to_model, _calls),)
