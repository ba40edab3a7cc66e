"""Faults of the audit of compacted logs: what it would miss, and what it would say of sound ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any
from unittest.mock import patch

import numpy as np

from kafkaspec.audits.management import compaction as audit
from kafkaspec.audits.management import compaction_driver
from kafkaspec.audits.management.compaction import CompactionCheck, Keys
from kafkaspec.contract.machine import Json, Machine, Refused
from kafkaspec.impl.common.rows import ABORT
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import Mutant, of_audit, of_spec, with_fault
from kafkaspec.spec.common.kafka import LONG_MAX
from kafkaspec.spec.common.record_format import CONTROL
from kafkaspec.spec.management import compaction as spec


def _patched(**functions: Any) -> compaction_driver.Driver:
    """The driver with other functions in the audit's module, while it is called."""

    class Faulty(compaction_driver.Driver):
        def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
            with patch.multiple(audit, **functions):
                return super().apply(name, arguments)

    return Faulty()


def _check(**methods: Any) -> Callable[[], compaction_driver.Driver]:
    """The driver with other methods in its check."""
    return lambda: _patched(CompactionCheck=type("Faulty", (CompactionCheck,), methods))


def _keys(**methods: Any) -> Callable[[], compaction_driver.Driver]:
    """The driver with other methods in its table of keys, which has room for two."""

    def make() -> compaction_driver.Driver:
        keys = type("Faulty", (Keys,), {"__init__": lambda self, *_: Keys.__init__(self, 2), **methods})
        return _check(keys_class=keys)()

    return make


_records, _transactions, _init = CompactionCheck._records, CompactionCheck._transactions, CompactionCheck.__init__
_emptied = CompactionCheck._emptied


def _from_the_beginning(self: CompactionCheck, log: Any) -> None:
    _init(self, log)
    self.start = 0


def _the_point_too(self: CompactionCheck, log: Any) -> None:
    _init(self, log)
    self.point += 1


def _everywhere(self: CompactionCheck, log: Any) -> None:
    _init(self, log)
    self.point = 1 << 40


def _without_tombstones(self: CompactionCheck, rows: Any, records: Any, sound: Any) -> None:
    _records(self, rows, records[(records["flags"] & 2) != 0], sound)


def _control_keys(self: CompactionCheck, rows: Any, records: Any, sound: Any) -> None:
    records = records.copy()
    records["flags"] &= ~audit.CONTROL_RECORD
    _records(self, rows, records, sound)


def _keyless_pass(self: CompactionCheck, rows: Any, records: Any, sound: Any) -> None:
    _records(self, rows, records[(records["flags"] & 1) != 0], sound)


def _an_empty_key_is_none(self: CompactionCheck, rows: Any, records: Any, sound: Any) -> None:
    records = records.copy()
    for r in records:
        at = int(rows["position"][r["batch"]]), int(rows["size"][r["batch"]])
        segment = len(self.segments) - 1
        row = np.zeros(1, audit.KEY)[0]
        row["position"], row["size"], row["segment"], row["offset"] = *at, segment, r["offset"]
        if self.key_of(row) == b"":
            r["flags"] &= ~1
    _records(self, rows, records, sound)


def _commits_too(self: CompactionCheck, rows: Any, promised: Any) -> None:
    rows = rows.copy()
    rows["control_type"][(rows["attributes"] & CONTROL) != 0] = ABORT
    _transactions(self, rows, promised)


def _of_any_producer(self: CompactionCheck, rows: Any, promised: Any) -> None:
    rows = rows.copy()
    rows["producer_id"] = 1
    _transactions(self, rows, promised)


def _for_ever(self: CompactionCheck, rows: Any, promised: Any) -> None:
    before = dict(self.open)
    _transactions(self, rows, promised)
    self.open = {**before, **self.open}


def _empty_batches_too(self: CompactionCheck, rows: Any, promised: Any) -> None:
    empty = (rows["count"] == 0) & (rows["base_offset"] < self.point) & (rows["last_offset"] >= self.start)
    _transactions(self, rows, promised | empty)


def _nothing_is_open(self: CompactionCheck) -> Iterator[Any]:
    yield from ()


def _open_whoever_ends(self: CompactionCheck, rows: Any, promised: Any) -> None:
    data = (rows["attributes"] & CONTROL) == 0
    _transactions(self, rows[data], promised[data])


def _one_for_all(self: CompactionCheck, rows: Any) -> None:
    rows = rows.copy()
    rows["producer_id"] = 1
    _emptied(self, rows)


def _the_end_counts(self: CompactionCheck, rows: Any) -> None:
    with patch.object(self, "point", self.point + 1):
        _emptied(self, rows)


def _empty_wherever(self: CompactionCheck, rows: Any) -> None:
    with patch.object(self, "point", 1 << 40), patch.object(self, "start", 0):
        _emptied(self, rows)


def _half_a_hash(rows: Any) -> Iterator[Any]:
    yield from ()


def _collides(self: CompactionCheck, group: Any) -> Iterator[Any]:
    for earlier in group[:-1]:
        yield earlier, group[-1], b"?"


def _pairs_of_all(rows: Any) -> Iterator[Any]:
    if len(rows) > 1:
        yield np.sort(rows, order="offset")


def _next_to_each_other(self: CompactionCheck, group: Any) -> Iterator[Any]:
    rows = list(group)
    for earlier, later in itertools.pairwise(rows):
        yield earlier, later, b"?"


def _forgets_what_waits(self: Keys) -> Iterator[Any]:
    if self.folder is not None:
        self.waiting, self.count = [], 0
    yield from Keys.equal(self)


def _one_chunk_at_a_time(self: Keys, rows: Any) -> None:
    self.waiting, self.count = [], 0
    Keys.add(self, rows)


def _takes_the_tombstones(log: spec.Log, log_start: int, point: int) -> spec.Breaches:
    return spec.Breaches([(-1, -1)], [], [], [], [])


def _spec(body: Callable[..., Any]) -> Callable[[], Machine[Any]]:
    return lambda: with_fault(spec.machine, "breaches", body)


MUTANTS = [
    of_audit("from the beginning", "CMP-5", "records below the log start count", _check(__init__=_from_the_beginning)),
    of_audit("the point itself", "CMP-2 CMP-5", "the first dirty record counts", _check(__init__=_the_point_too)),
    of_audit("everywhere", "CMP-5", "the dirty part counts", _check(__init__=_everywhere)),
    of_audit(
        "tombstones do not count", "CMP-6", "a value beside its tombstone passes", _check(_records=_without_tombstones)
    ),
    of_audit("control records have keys", "CMP-7 CMP-8", "two markers are a key twice", _check(_records=_control_keys)),
    of_audit("records without a key pass", "CMP-3", "they are not looked at", _check(_records=_keyless_pass)),
    of_audit(
        "an empty key is none",
        "CMP-3 CMP-2",
        "a key of no bytes is taken for none",
        _check(_records=_an_empty_key_is_none),
    ),
    of_audit("commits abort", "CMP-4", "every marker ends an aborted transaction", _check(_transactions=_commits_too)),
    of_audit(
        "any producer's marker",
        "CMP-4",
        "a marker ends everybody's transaction",
        _check(_transactions=_of_any_producer),
    ),
    of_audit(
        "transactions never end", "CMP-4", "data before an earlier marker counts", _check(_transactions=_for_ever)
    ),
    of_audit(
        "empty batches have data",
        "CMP-8",
        "what keeps a producer's state is taken for aborted data",
        _check(_transactions=_empty_batches_too),
    ),
    of_audit("nothing is open", "CMP-10", "a transaction without a marker passes", _check(_left_open=_nothing_is_open)),
    of_audit("markers end nothing", "CMP-10", "what has its marker is open", _check(_transactions=_open_whoever_ends)),
    of_audit("empty batches pass", "CMP-11", "any number of a producer", _check(_emptied=lambda self, rows: None)),
    of_audit("one empty batch", "CMP-11", "in all, not of each producer", _check(_emptied=_one_for_all)),
    of_audit("the end of a round counts", "CMP-11", "as an empty batch", _check(_emptied=_the_end_counts)),
    of_audit("empty wherever", "CMP-5 CMP-11", "below the start and above the point", _check(_emptied=_empty_wherever)),
    of_audit("nothing is ever equal", "CMP-2", "no groups", lambda: _patched(_groups=_half_a_hash)),
    of_audit("hashes are keys", "CMP-2", "all keys collide, and nobody looks at them", lambda: _collided()),
    of_audit("the next one, not the last", "CMP-2", "a key three times", _check(confirmed=_next_to_each_other)),
    of_audit(
        "the rest is forgotten", "CMP-2", "what was not spilled yet is not looked at", _keys(equal=_forgets_what_waits)
    ),
    of_audit("a chunk at a time", "CMP-2", "keys of earlier chunks are forgotten", _keys(add=_one_chunk_at_a_time)),
    Mutant(
        "spec: of what is not promised",
        ("CMP-5", "CMP-2"),
        "offsets outside are named",
        "spec",
        _spec(_takes_the_tombstones),
    ),
]
"""Faults written by hand."""


def _collided() -> compaction_driver.Driver:
    faulty = type("Faulty", (CompactionCheck,), {"confirmed": _collides})
    return _patched(_groups=_pairs_of_all, CompactionCheck=faulty)


# ---- faults of range, boundary, depth, configuration and rare state
_sound = spec.machine.operations["breaches"].body


def _begins_after_the_start(log: spec.Log, log_start: int, point: int) -> spec.Breaches:
    found: spec.Breaches = _sound(log, log_start, point)
    return replace(found, superseded=[x for x in found.superseded if x[0] > log_start])


def _point_0_is_none(log: spec.Log, log_start: int, point: int) -> spec.Breaches:
    """A point of 0 is that of a log that has none, which is taken for clean."""
    found: spec.Breaches = _sound(log, log_start, point or LONG_MAX)
    return found


def _hashed(key: str | None) -> str | None:
    """As Java hashes text."""
    return key and str(reduce(lambda h, c: (31 * h + ord(c)) % 2**32, key, 0))


def _hashes_for_keys(log: spec.Log, log_start: int, point: int) -> spec.Breaches:
    by_hash = tuple(b._replace(records=tuple(r._replace(key=_hashed(r.key)) for r in b.records)) for b in log)
    found: spec.Breaches = _sound(by_hash, log_start, point)
    return found


def _one_aborted(log: spec.Log, log_start: int, point: int) -> spec.Breaches:
    found: spec.Breaches = _sound(log, log_start, point)
    return replace(found, aborted=found.aborted[:1])


def _one_open(log: spec.Log, log_start: int, point: int) -> spec.Breaches:
    found: spec.Breaches = _sound(log, log_start, point)
    return replace(found, left_open=found.left_open[:1])


def _producers_of_32_bits(log: spec.Log, log_start: int, point: int) -> spec.Breaches:
    found: spec.Breaches = _sound(tuple(b._replace(producer=signed(b.producer, 32)) for b in log), log_start, point)
    return found


def _emptied_above_the_start(log: spec.Log, log_start: int, point: int) -> spec.Breaches:
    """An empty batch that ends at the log start does not count."""
    found: spec.Breaches = _sound(log, log_start, point)
    return replace(found, emptied_before=_sound(log, log_start + 1, point).emptied_before)


def _four_keys(log: spec.Log, log_start: int, point: int) -> spec.Breaches:
    """A map of four keys, in which the oldest makes room."""
    found: spec.Breaches = _sound(log, log_start, point)
    known: dict[str, int] = {}
    seen: dict[int, list[int]] = {}
    for r in spec.promised(log, log_start, point):
        if r.key is not None:
            if r.key not in known and len(known) == 4:
                del known[next(iter(known))]
            seen.setdefault(known.get(r.key, r.offset), []).append(r.offset)
            known[r.key] = known.get(r.key, r.offset)
    return replace(found, superseded=sorted((o, of[-1]) for of in seen.values() for o in of[:-1]))


RARE = [
    of_spec(
        "above the log start", "CMP-2 CMP-5", "a record at the log start does not count", _spec(_begins_after_the_start)
    ),
    of_spec("a point of 0", "CMP-5", "the whole log is promised", _spec(_point_0_is_none)),
    of_spec("hashes for keys", "CMP-2", "Aa and BB are one key", _spec(_hashes_for_keys)),
    of_spec("one aborted transaction", "CMP-4", "a second is not named", _spec(_one_aborted)),
    of_spec("one open transaction", "CMP-10", "a second is not named", _spec(_one_open)),
    of_spec("producers of 32 bits", "CMP-4 CMP-10 CMP-11", "2^32 and 0 are one producer", _spec(_producers_of_32_bits)),
    of_spec(
        "emptied above the start", "CMP-11", "a batch that ends there does not count", _spec(_emptied_above_the_start)
    ),
    of_spec("four keys", "CMP-2", "a fifth drives out the first", _spec(_four_keys)),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE

UNSEEN: dict[str, str] = {
    "one open transaction": "not found yet: nothing noticed it, nor the judge in 20,000 calls",
}
