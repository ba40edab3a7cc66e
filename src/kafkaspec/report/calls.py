"""A history as people read it: calls and answers, and of the states what each call changed.

The text is one that `kafkaspec check` reads, and rejects as it does the whole. All of the states is in the file that is
kept.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from kafkaspec.contract.history import History, Record, cut
from kafkaspec.contract.machine import Json
from kafkaspec.lockstep.compare import ABSENT, parts_unlike

MAX_LINE = 2_000
"""Characters of a line of a history that are shown."""


def readable(history: History, right: Json = ABSENT) -> str:
    """The calls of a history, without what is too long to be read. `right`: the state that the last of them should have
    shown."""
    text = str(replace(changes(history, right), why=""))
    return "\n".join(cut(line, MAX_LINE) for line in text.splitlines())


def changes(history: History, right: Json = ABSENT) -> History:
    """The history with, in the place of each state, the parts that are not as in the one before; of the last also those
    that are not `right`. The first state is left out: it is what `init` says. Another one with none before it stays."""
    before: Json = ABSENT
    records: list[Record] = []
    end = len(history.records) - 1
    for n, record in enumerate(history.records):
        seen = record.get("state")
        known = [s for s in (before, right if n == end else ABSENT) if isinstance(s, dict)]
        if isinstance(seen, dict) and (known or 0 == n < end):
            parts = {keys: value for state in known for keys, value in parts_unlike(state, seen)}
            record = {k: v for k, v in record.items() if k != "state"}
            if parts:
                record["parts"] = [[[*k]] if v is ABSENT else [[*k], v] for k, v in parts.items() if outer(k, parts)]
        records.append(record)
        before = before if seen is None else seen
    return replace(history, records=tuple(records))


def outer(keys: Sequence[str], parts: Collection[Sequence[str]]) -> bool:
    """Whether a part stands in no other one of these."""
    return not any(keys[:n] in parts for n in range(len(keys)))
