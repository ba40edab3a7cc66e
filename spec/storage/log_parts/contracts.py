"""What a log's operations ensure: offsets in order, segments one behind the other, and the recovery point's rule.

The clauses are those of the log, `spec.storage.log`. Source: UnifiedLog and LocalLog, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

from icontract import ensure, require

from kafkaspec.contract.machine import Refused, Step
from kafkaspec.spec.storage.log_parts.changes import in_order, is_replayable
from kafkaspec.spec.storage.log_parts.contents import Log, on_disk

F = TypeVar("F", bound=Callable[..., object])


def after_of(result: Log | Refused | Step[Log, object]) -> Log | None:
    """The state after a call; None if only a refusal is there."""
    if isinstance(result, Refused):
        return None
    return result.state if isinstance(result, Step) else result


def one_behind_another(log: Log) -> bool:
    """Whether segments begin one behind the other, and hold what lies between."""
    return all(
        a.base_offset < b.base_offset and (not a.batches or a.batches[-1].last_offset < b.base_offset)
        for a, b in pairwise(log.segments)
    )


keeps_order = ensure(
    lambda state, result: (after := after_of(result)) is None or in_order(after) or not in_order(state),
    "LOG-22 log start, last stable offset, high watermark and log end stay in order",
)
truncates_in_order = ensure(
    lambda state, result: isinstance(result.result, Refused) or in_order(result.state) or not in_order(state),
    "LOG-22 a truncation that ends keeps the offsets in order",
)
keeps_segments = ensure(
    lambda result: (after := after_of(result)) is None or (bool(after.segments) and one_behind_another(after)),
    "LOG-6 segments stand one behind the other, and there is always an active one",
)
flushed_alone = ensure(
    lambda state, result: (
        (after := after_of(result)) is None
        or after.recovery_point <= max(state.recovery_point, after.log_start)
        or after.recovery_point == after.active.base_offset
    ),
    "LOG-35 without a flush the recovery point rises to the log start at most; a roll flushes what is before it",
)
replayable = require(
    lambda state: is_replayable(on_disk(state)),
    "LOG-31 no batch stands within a transaction of its producer that it is not of",
)
in_service = require(lambda state: not state.offline, "LOG-37 the directory is in service")


def appends(function: F) -> F:
    """The contracts of an append."""
    for contract in (
        ensure(
            lambda state, result: result.state.log_end >= state.log_end and result.state.log_start == state.log_start,
            "LOG-1 the log end does not fall, and the log start stays",
        ),
        ensure(
            lambda state, result: (
                not isinstance(result.result, Refused) or result.state.log_end == state.log_end or result.state.offline
            ),
            "LOG-9 what is refused is not in the log",
        ),
        ensure(
            lambda state, result: (
                [b for s in result.state.segments for b in s.batches][: _count(state)]
                == [b for s in state.segments for b in s.batches]
            ),
            "LOG-1 what was in the log stays there",
        ),
        keeps_order,
        keeps_segments,
    ):
        function = contract(function)
    return function


def _count(log: Log) -> int:
    return sum(len(s.batches) for s in log.segments)
