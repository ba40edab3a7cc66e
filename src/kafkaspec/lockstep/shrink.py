"""A failing history made small: calls left out, then arguments made simple, for as long as it fails the same way.

How a history is tried again is the caller's: beside an implementation, or on a target behind a pipe. `Again` gets the
records of calls and returns what fails now, if anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kafkaspec.contract.history import History, Record
from kafkaspec.contract.machine import Json

Again = Callable[[Sequence[Record]], History | None]


def fewer_calls(failure: History, again: Again) -> History:
    """A history with as few calls as removing some can give, that fails at the same operation by the same clause."""
    first, calls = failure.records[0], list(failure.records[1:])
    best = _alike(again, [first, *calls], failure)
    if best is None:
        return failure  # it does not show again: what was driven is not deterministic
    chunk = max(1, len(calls) // 2)
    while True:
        at, removed = 0, False
        while at < len(calls):
            found = _alike(again, [first, *calls[:at], *calls[at + chunk :]], failure)
            if found is None:
                at += chunk
            else:
                calls, best, removed = list(found.records[1:]), found, True
        if chunk == 1 and not removed:
            return best
        chunk = max(1, chunk // 2)


def shrunk(failure: History, again: Again) -> History:
    """The smallest history found that fails at the same operation by the same clause; always the same one."""
    best = fewer_calls(failure, again)
    while True:
        simpler = _simplified(best, again)
        if simpler is None:
            return best
        best = fewer_calls(simpler, again)


def _simplified(failure: History, again: Again) -> History | None:
    """The history with every argument as simple as it goes, the calls being the same; None if none goes simpler."""
    best = failure
    for n, record in enumerate(failure.records):
        for name in record["args"]:
            for value in simpler_values(best.records[n]["args"][name]):
                changed = {**best.records[n], "args": {**best.records[n]["args"], name: value}}
                found = _alike(again, [*best.records[:n], changed, *best.records[n + 1 :]], best)
                if found is not None and len(found.records) == len(best.records):
                    best = found
                    break
    return None if best is failure else best


def _alike(again: Again, records: list[Record], as_: History) -> History | None:
    found = again(records)
    same = found is not None and (found.clause, found.records[-1]["op"]) == (as_.clause, as_.records[-1]["op"])
    return found if same else None


def simpler_values(value: Json) -> Iterator[Json]:
    """Values to try in place of one, the simplest first; each is simpler, so that trying ends.

    >>> list(simpler_values(100)), list(simpler_values(-3)), list(simpler_values(True)), list(simpler_values([7, 8]))
    ([0, 1, 50, 99], [0, 3, -1, -2], [False], [[], [7], [8]])
    """
    if isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int):
        if value < 0:
            yield from dict.fromkeys((0, -value, -(-value // 2), value + 1))
        elif value:
            yield from dict.fromkeys(v for v in (0, 1, value // 2, value - 1) if v < value)
    elif isinstance(value, list) and value:
        yield []
        if len(value) > 1:
            yield from (value[:n] + value[n + 1 :] for n in reversed(range(len(value))))
