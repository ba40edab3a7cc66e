"""Recovery: the arguments that engines try."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from kafkaspec.contract.codec import encode
from kafkaspec.contract.machine import Json
from kafkaspec.spec.storage.recovery import machine
from kafkaspec.spec.storage.recovery_parts.broker import Broker, bases_of, batches_of
from kafkaspec.spec.storage.recovery_parts.crashing_disk import left_of


def _offsets(state: Broker) -> list[int]:
    if state.log is None:
        return []
    log = state.log
    near = [log.log_end, log.high_watermark, log.log_start, log.recovery_point, log.log_end + 1]
    near += [b.base for b in batches_of(state.disk.files)[-6:]] + bases_of(state.disk.files)
    return list(dict.fromkeys(o for o in near if o >= 0))


def _starts(state: Broker) -> list[int]:
    """Most of them flushed: what is given up unflushed is a case of its own."""
    known = _offsets(state)
    return [*(o for o in known if state.log and o <= state.log.recovery_point), *known]


def _few(state: Broker) -> bool:
    return len(batches_of(state.disk.files)) < 4


def _outcomes(state: Broker) -> Iterator[dict[str, Any]]:
    """What a power failure may leave: nothing lost, everything lost that can be, and one file at a time in every
    state, under every naming."""
    for stored in state.disk.namings():
        now = {n: s.content for n, s in stored.items()}
        yield now
        yield {n: left_of(s)[0] for n, s in stored.items()}
        for name, s in sorted(stored.items()):
            for content in left_of(s)[1:]:
                yield {**now, name: content}


def _failures(state: Broker) -> list[Json]:
    found = [encode(files) for files in islice(_outcomes(state), 60)]
    return found if not _few(state) else found[:1] if state.log is None else []


machine.candidates |= {
    "records": lambda state: [[2], [1, 3], [1], [2, 1, 1]],
    "leader_epoch": lambda state: [e := state.log.epochs[-1].epoch if state.log and state.log.epochs else 0, e, e + 1],
    "offset": _offsets,
    "deleteRecords:offset": _starts,
    "truncateTo:offset": lambda state: [] if _few(state) else _offsets(state),
    "files": _failures,
    "keeps_marker": lambda state: [state.marker, False],
    "segments": lambda state: [1, 0, 2, 5],
}
