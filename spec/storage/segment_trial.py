"""Log segment: the arguments that engines try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkaspec.contract.machine import Json
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.common.segment_contents import Segment, transactions
from kafkaspec.spec.storage.segment import machine


def _record(offset: int, timestamp: int) -> list[int]:
    return [offset, timestamp]


def _appends(state: Segment) -> list[Json]:
    """One or several batches that may come next, some out of reach."""
    at, most = state.next_offset, state.base_offset + INT_MAX
    t = max((b.max_timestamp for b in state.batches if b.max_timestamp >= 0), default=1000)
    epoch = max((b.leader_epoch for b in state.batches), default=-1)

    def batch(offset: int, count: int = 1, step: int = 1, times: Sequence[int] = (0,), **more: Any) -> dict[str, Any]:
        records = [_record(offset + n * step, t + times[n % len(times)]) for n in range(count)]
        return {"records": records, "valueBytes": 10, "leaderEpoch": epoch, "producerId": -1, "kind": "data", **more}

    out: list[Json] = [
        [batch(at)],
        [batch(at, 3, times=(5, 0, 5), valueBytes=70)],
        [batch(at, 2, 3, times=(-1, -3))],
        [batch(at + 2, valueBytes=150, leaderEpoch=epoch + 1)],
        [batch(at, times=(1,)), batch(at + 1, 2, times=(2, 1), valueBytes=90), batch(at + 5)],
        [batch(at, valueBytes=150), batch(at + 1, times=(7,), valueBytes=150)],
        [batch(at, times=(-1 - t,))],
        [batch(at, times=(-t,))],
        [batch(at, valueBytes=20_000)],
        [batch(at, producerId=1, kind="transactional", times=(1,)), batch(at + 1, producerId=2, kind="transactional")],
        [batch(at, producerId=1, kind="transactional", valueBytes=90)],
        [batch(at, producerId=0, kind="transactional", times=(-2,))],
    ]
    out += [[batch(at, producerId=p, kind=kind)] for p in (0, 1, 2) for kind in ("abort", "commit")]
    out += [[batch(most)], [batch(most + 1)], [batch(max(at, most - 1)), batch(max(at, most) + 1)]]
    return out


def _transaction(state: Segment, what: str) -> list[Any]:
    """Of the last marker, if the transaction index lacks it."""
    marker = state.batches[-1] if state.batches and state.batches[-1].control else None
    if marker is None or any(e.last_offset >= marker.last_offset for e in state.aborted):
        return []
    if marker.kind == "commit":
        every = {"producer_id": 1, "first_offset": 0, "last_offset": marker.last_offset, "last_stable_offset": 0}
        return [{**every, "aborted": False}[what]]
    made = [e for e in transactions(state.batches, state.open_before) if e.last_offset == marker.last_offset]
    return [{**made[0]._asdict(), "aborted": True}[what]] if made else []


def _offsets(state: Segment) -> list[int]:
    near = {state.base_offset, state.next_offset, state.next_offset + 2, max(0, state.base_offset - 1)}
    for b in state.batches[-4:]:
        near |= {b.base_offset, b.last_offset, b.base_offset + 1, b.last_offset + 1}
    return sorted(near)


def _timestamps(state: Segment) -> list[int]:
    near = {0, -1, 1000}
    for b in state.batches[-4:]:
        near |= {r.timestamp + d for r in b.records for d in (0, 1)}
    return sorted(near)


def _positions(state: Segment) -> list[int]:
    return sorted({0, state.size, *(p.position for p in state.placed[-3:])})


machine.candidates |= {
    "init:base_offset": lambda _: [8, 100, 2**40, 0],
    "init:index_interval_bytes": lambda _: [200, 0, 100, 1, 400],
    "init:max_index_bytes": lambda _: [*[1000, 120, 60] * 2, 24, 12],  # and of two entries of time, and of one
    "init:roll_jitter_ms": lambda _: [3, 0, 1],
    "init:open_transactions": lambda _: [[], [[1, 0]], [[2, 3], [1, 7]]],
    "init:now": lambda _: [1_000_000, 1_000_000, 0, 1_700_000_000_000],
    "batches": _appends,
    "producer_id": lambda s: _transaction(s, "producer_id"),
    "first_offset": lambda s: _transaction(s, "first_offset"),
    "last_offset": lambda s: _transaction(s, "last_offset"),
    "last_stable_offset": lambda s: _transaction(s, "last_stable_offset"),
    "aborted": lambda s: _transaction(s, "aborted"),
    "offset": _offsets,
    "starting_file_position": _positions,
    "start_offset": _offsets,
    "max_size": lambda s: [0, 1, 80, 200, INT_MAX, -1],
    "max_position": lambda s: [None, *_positions(s), s.size // 2],
    "min_one_message": lambda s: [True, False],
    "timestamp_ms": _timestamps,
    "starting_offset": _offsets,
    "time_index_file_newly_created": lambda s: [False, True],
    "lost_bytes": lambda s: [0, 1, 20, 75, 300] if len(s.batches) > 2 else [],
    "keep_indexes": lambda s: [True, True, True, False],
    "batch": lambda s: [len(s.batches) - 1, 0, len(s.batches) // 2] if len(s.batches) > 2 else [],
    "truncateTo:offset": lambda s: [*_offsets(s)[-6 if len(s.batches) > 2 else -2 :], s.base_offset],
    "old": lambda s: [s.suffix, ""],
    "new": lambda s: ["", ".deleted", ".swap"],
    "active": lambda s: [True, True, True, False],
    "ms": lambda s: [1, 9, 10, 11],
    "max_segment_ms": lambda s: [10, 10, 1000, 2**62, 2**63 - 1],
    "max_segment_bytes": lambda s: [2**30, s.size + 70, s.size + 69, 2**30],
    "max_timestamp_in_messages": lambda s: (
        [b.max_timestamp + d for b in s.batches[:1] for d in (7, 8, 10, 11)] + [-1, 5]
    ),
    "max_offset_in_messages": lambda s: [
        s.next_offset,
        s.next_offset,
        s.base_offset + INT_MAX,
        s.base_offset + INT_MAX + 1,
    ],
    "messages_size": lambda s: [70, 100],
}
