"""Last stable offset: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafkaspec.language.concrete import element
from kafkaspec.lockstep.exhaustive import Call, RefinementMapping
from kafkaspec.models.storage import last_stable as model
from kafkaspec.spec.common.producers import MOST_EPOCH, NO_GUARD, SEQUENCES, UNKNOWN, next_sequence
from kafkaspec.spec.common.transactional_log import Kind, PartitionLog, ReplicaBatch
from kafkaspec.spec.storage.last_stable import largest_timestamp, machine

WRITERS: Final = (1, 2, 3)


def _focus(state: PartitionLog) -> int:
    """The producer that writes most at the moment."""
    return WRITERS[len(state.batches) // 8 % len(WRITERS)]


def _epochs(state: PartitionLog) -> Sequence[int]:
    known = max(0, state.producers.known(_focus(state)).epoch)
    return [known] * 5 + [min(known + 1, MOST_EPOCH), max(0, known - 1), *([MOST_EPOCH] if known == 5 else [])]


def _since_the_snapshot(state: PartitionLog) -> tuple[list[int], set[int]]:
    """The epoch that the latest snapshot has of the producer, and those of its batches behind: what is read after a
    cut may come back to it."""
    snapshots = state.producers.snapshots
    at = max(snapshots, default=0)
    saved = [p.epoch for i, p in (snapshots.get(at) or {}).items() if i == _focus(state)]
    return saved, {b.producer_epoch for b in state.batches if b.base_offset >= at and b.producer_id == _focus(state)}


def _oldest(state: PartitionLog) -> int:
    """Whose transaction is open for longest, so that the last stable offset moves; without one as for the others."""
    return next(iter(state.producers.opened.values()), _focus(state))


def _newest(state: PartitionLog) -> int:
    """Whose transaction began last: it may end before others do."""
    return next(reversed(state.producers.opened.values()), _focus(state))


def _marker_epochs(state: PartitionLog) -> Sequence[int]:
    known = max(0, state.producers.known(_oldest(state)).epoch)
    return [known, known, *[min(known + 1, MOST_EPOCH)] * 3, max(0, known - 1)]


def _coordinator_epochs(state: PartitionLog) -> Sequence[int]:
    known = max(0, state.producers.known(_oldest(state)).coordinator_epoch)
    return [known] * 8 + [known + 1, max(0, known - 1)]


def _sequences(state: PartitionLog) -> Sequence[int]:
    p = state.producers.producers.get(_focus(state), UNKNOWN)
    upcoming = next_sequence(p.last_sequence)
    again = [b.first_sequence for b in (p.batches[:1] + p.batches[-1:])]
    return [*[upcoming] * 4, 0, next_sequence(upcoming), *again, *([SEQUENCES - 1] * 3 if p == UNKNOWN else [])]


def _guards(state: PartitionLog) -> Sequence[int]:
    known = state.producers.verifications.get(_focus(state))
    handed_out = sorted(state.producers.handed_out)[-2:]
    return [NO_GUARD, *handed_out, *([known.guard] * 4 if known is not None else [])]


def _begins(state: PartitionLog) -> list[int]:
    return [b.base_offset for b in state.batches if b.base_offset >= state.log_start]


def _high_watermarks(state: PartitionLog) -> Sequence[int]:
    begins = _begins(state)
    above = [x for x in begins if x > state.high_watermark]
    return [*[state.log_end] * 4, *above[:2], *above[-1:], *begins[:1], state.log_end + 1]


def _log_starts(state: PartitionLog) -> Sequence[int]:
    """What deletes much is done seldom."""
    first = [x for first in list(state.producers.opened)[:1] for x in (first, first + 1)]
    if len(state.batches) % 11 != 10:
        return state.segments[2:3] if len(state.batches) % 2 else []
    return [*first, state.log_start + 1, state.last_stable, state.high_watermark, state.high_watermark + 1, 0]


def _ends(state: PartitionLog) -> Sequence[int]:
    """Where a truncation may cut: what undoes much is done seldom, and one at the end changes nothing."""
    behind = [b.last_offset + 1 for b in state.batches]
    first = state.segments[0]
    if len(state.batches) % 10 != 9:
        return [*(behind[-2:-1] if len(_since_the_snapshot(state)[1]) > 1 else []), state.log_end]
    unreplicated = [x for x in behind if x >= state.high_watermark]
    return [*unreplicated, *behind[-3:], first, max(0, first - 1), state.log_end + 3]


def _retentions(state: PartitionLog) -> Sequence[int]:
    """Limits by which nothing is old, all is, or the first segment alone, also where the log start is beyond others."""
    if len(state.segments) > 2:
        age = state.producers.now - largest_timestamp(state, state.segments[0])
        alone = [age - 1] * 4 if state.log_start >= state.segments[2] and age else []
        return [*alone, 500, age]
    return [2**63 - 1, 500, 0] if len(state.batches) % 6 == 5 else []


def _checkpoints(state: PartitionLog) -> Sequence[int]:
    """High watermarks that a process may find."""
    begins = _begins(state)
    found = [state.high_watermark, state.high_watermark, *begins[:1], *begins[-1:], state.log_end]
    return [x for x in found if x >= state.log_start] if len(state.batches) % 4 == 3 else []


def _at_once(state: PartitionLog) -> Sequence[Sequence[Sequence[Any]]]:
    """Batches of two producers, of which the first one's transaction has been open for longest, mostly."""
    ids = (_oldest(state), _focus(state), _newest(state))
    p, q = ids[0], next((i for i in (*ids, *WRITERS) if i != ids[0]), ids[0])
    known = {i: state.producers.known(i) for i in (p, q)}

    def of(i: int, kind: Kind, n: int = 0, bump: int = 0, records: int = 1) -> Sequence[Any]:
        epoch = min(max(0, known[i].epoch) + bump, MOST_EPOCH)
        sequence = (next_sequence(known[i].last_sequence) + n) % SEQUENCES
        return [*ReplicaBatch(i, epoch, kind, sequence, max(0, known[i].coordinator_epoch), records)]

    data: Kind = "TRANSACTIONAL"
    again = [of(p, "ABORT"), of(p, data), of(p, "ABORT"), of(q, data)]
    return [
        again,
        again,
        [of(p, data), *again],
        [of(p, "ABORT"), of(p, "PLAIN"), of(q, data, records=2), of(q, "COMMIT")],
        [of(p, data), of(q, data), of(p, "ABORT"), of(q, "ABORT")],
        [of(q, "COMMIT"), of(p, "ABORT", bump=1), of(p, data, bump=1)],
        [of(q, "ABORT"), of(q, "PLAIN", bump=1), of(q, "PLAIN", 1)],
        [of(p, data), of(p, "PLAIN", 1)],
    ]


def _starts(state: PartitionLog) -> Sequence[int]:
    begins = _begins(state)
    inside = [b.last_offset for b in state.batches if b.last_offset > b.base_offset]
    bounds = [*[state.log_start] * 20, *begins[:4], state.last_stable, state.high_watermark, state.log_end]
    return [*bounds, *begins[-4:], *inside[-2:], state.log_start - 1 if state.log_start else 0, state.log_end + 1]


machine.candidates |= {
    "count": lambda state: (1, 1, 2, 3),
    "replicate:count": lambda state: (1, 1, 1, 2),
    "producer_id": lambda state: [_focus(state)] * 6 + list(WRITERS),
    "producer_epoch": _epochs,
    "replicate:producer_epoch": lambda state: [
        *_epochs(state),
        *_epochs(state)[-2:],
        0,
        *_since_the_snapshot(state)[0] * 4,
    ],
    "endTransaction:producer_id": lambda state: [_oldest(state)] * 5 + [_newest(state)] * 3 + list(WRITERS),
    "endTransaction:producer_epoch": _marker_epochs,
    "first_sequence": _sequences,
    "replicate:first_sequence": lambda state: [*_sequences(state), SEQUENCES // 2, SEQUENCES - 1],
    "startVerification:first_sequence": lambda state: [*_sequences(state), -1],
    "supports_epoch_bump": lambda state: (False, True),
    "guard": _guards,
    "transactional": lambda state: (True, False),
    "type": lambda state: ("COMMIT", "ABORT", "ABORT"),
    "kind": lambda state: ("TRANSACTIONAL", "TRANSACTIONAL", "ABORT", "ABORT", "COMMIT", "PLAIN"),
    "coordinator_epoch": _coordinator_epochs,
    "transaction_version": lambda state: (0, 0, 1, 2, 2),
    "first_offset": lambda state: (state.log_end, state.log_end, state.log_end + 2),
    "batches": _at_once,
    "maybeIncrementHighWatermark:offset": _high_watermarks,
    "maybeIncrementLogStartOffset:offset": _log_starts,
    "truncateTo:offset": _ends,
    "truncateFullyAndStartAt:offset": lambda state: (
        (0, state.log_end + 5, state.log_start) if len(state.batches) % 18 == 17 else ()
    ),
    "reopen:offset": _checkpoints,
    "retention_ms": _retentions,
    "ms": lambda state: (1, 500, 2000, *(state.producers.config.producer_id_expiration_ms // n for n in (2, 1))),
    "start_offset": _starts,
    "max_batches": lambda state: (1, 2, 3, 100, 100, 100, 100, 100),
    "read_committed": lambda state: (True, True, True, False),
    "init:transaction_verification_enabled": lambda state: (False, True),
    "init:producer_id_expiration_ms": lambda state: (86_400_000, 600_000, 2**31 - 1),
}


SIZES: Final = {"Producer": 2, "L": 3}
IDS: Final = {element(model.Producer, i - 1): i for i in WRITERS[:2]}


def _to_model(state: PartitionLog) -> dict[str, Any] | None:
    """The state of `Stability` that a log stands for; None beyond the sizes."""
    if state.log_end > SIZES["L"]:
        return None
    producers = state.producers
    return {
        "opened": {e: producers.known(i).transaction for e, i in IDS.items()},
        "ended": {f: producers.ended[f].last_offset if f in producers.ended else None for f in range(SIZES["L"] + 1)},
        "end": state.log_end,
        "high": state.high_watermark,
        "start": state.log_start,
    }


def _calls(state: PartitionLog, action: str, arguments: Mapping[str, Any]) -> Sequence[Call] | None:
    """The calls for an action of `Stability`, whose log is full at its size."""
    match action:
        case "replicate":
            return [("maybeIncrementHighWatermark", {"offset": arguments["h"]})]
        case "delete_records":
            return [("maybeIncrementLogStartOffset", {"offset": arguments["o"]})]
    if state.log_end >= SIZES["L"]:
        return None
    if action == "append":
        return [("append", {"count": 1})]
    producer_id = IDS[arguments["p"]]
    p = state.producers.known(producer_id)
    who = {"producer_id": producer_id, "producer_epoch": max(0, p.epoch)}
    if action == "produce":
        return [
            (
                "produce",
                {**who, "first_sequence": next_sequence(p.last_sequence), "count": 1, "transactional": True},
            )
        ]
    return [("endTransaction", {**who, "type": "COMMIT", "coordinator_epoch": 0, "transaction_version": 0})]


REFINEMENTS = (RefinementMapping(model.Stability, SIZES, _to_model, _calls),)
