"""Faults of the time index: Kafka's own bugs, and slips that anyone may make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkaspec.audit.files import Segment
from kafkaspec.audit.finding import Finding
from kafkaspec.audits.common.index_evidence import State
from kafkaspec.audits.storage import time_index as audit
from kafkaspec.audits.storage import time_index_driver as audit_driver
from kafkaspec.contract.machine import Machine, Refused
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.mapped_index import Corrupt, MappedIndex, NotAbove, Overflow
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.storage import time_index as impl
from kafkaspec.impl.storage import time_index_driver as impl_driver
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import Mutant, with_fault
from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.common.kafka import NO_TIMESTAMP
from kafkaspec.spec.storage import time_index as spec

Index = impl.TimeIndex

# ---- faults of the implementation


def _index(**attributes: Any) -> Callable[[], impl_driver.Driver]:
    """The driver over an index with other methods."""

    def make() -> impl_driver.Driver:
        faulty = type("Faulty", (Index,), attributes)
        driver: impl_driver.Driver = type("FaultyDriver", (impl_driver.Driver,), {"index_class": faulty})()
        return driver

    return make


def _takes_any_offset(self: Index, timestamp: int, offset: int, last: bool = False) -> None:
    Index.maybe_append(self, timestamp, max(offset, self.last_entry.offset) if self.entries else offset, last)


def _ignores_earlier_times(self: Index, timestamp: int, offset: int, last: bool = False) -> None:
    if self.entries and timestamp < self.last_entry.timestamp and not (self.is_full and not last):
        return
    Index.maybe_append(self, timestamp, offset, last)


def _takes_the_same_twice(self: Index, timestamp: int, offset: int, last: bool = False) -> None:
    known = self.entries and timestamp == self.last_entry.timestamp and offset >= self.last_entry.offset
    if known and self.writable and self.entries < self.max_entries - 1:
        self.put(timestamp, self.relative_offset(offset))
    else:
        Index.maybe_append(self, timestamp, offset, last)


def _takes_records_without_time(self: Index, timestamp: int, offset: int, last: bool = False) -> None:
    if not self.entries and timestamp == NO_TIMESTAMP and self.writable and not self.is_full:
        self.put(timestamp, max(offset - self.base_offset, 0))
    else:
        Index.maybe_append(self, timestamp, offset, last)


def _checks_the_last_too(self: Index, timestamp: int, offset: int, last: bool = False) -> None:
    Index.maybe_append(self, timestamp, offset, False)


def _wraps(self: Index, offset: int) -> int:
    return (offset - self.base_offset + 2**31) % 2**32 - 2**31


def _leaves_the_timestamp(self: Index, timestamp: int, offset: int, last: bool = False) -> None:
    """As Kafka 4.3.0 does: TIX-D1."""
    if self.writable and self.entries < self.max_entries and timestamp > self.last_entry.timestamp:
        self.file.put(self.entries * self.size, timestamp.to_bytes(8, "big", signed=True))
    Index.maybe_append(self, timestamp, offset, last)


def _answers_the_next(self: Index, target: int) -> impl.TimestampOffset:
    slot = self.least_upper_bound(target, lambda n: self.parse(n).timestamp)
    return impl.TimestampOffset(NO_TIMESTAMP, self.base_offset) if slot < 0 else self.parse(slot)


def _warm_as_eight_bytes(self: Index, target: int, key: Callable[[int], int], upper: bool) -> int:
    """The warm section of the offset index, 1024 entries, which takes four pages here."""
    self.warm_bytes = 1024 * self.size
    return MappedIndex._search(self, target, key, upper)


def _stops_at_any_equal(self: Index, offset: int) -> None:
    """As Kafka 4.3.0 does: TIX-D2."""
    slot = self.greatest_lower_bound(offset, lambda n: self.parse(n).offset)
    if slot >= 0 and self.parse(slot).offset != offset:
        slot += 1
    self.keep(max(slot, 0))


def _keeps_the_equal_one(self: Index, offset: int) -> None:
    Index.truncate_to(self, offset + 1)


def _keeps_the_first(self: Index) -> None:
    self.keep(min(self.entries, 1))


def _does_not_trim(self: Index) -> None:
    self.close_handler()


def _keeps_its_size(self: Index) -> None:
    self.truncate()


def _checks_no_times(self: Index) -> None:
    if self.entries and self.last_entry.timestamp < self.parse(0).timestamp:
        return
    Index.sanity_check(self)


def _one_entry_more(self: Index, n: int) -> impl.TimestampOffset:
    return self.parse(n) if n == self.entries < self.max_entries else Index.entry(self, n)


# ---- faults of the audit


class _SeesNoFall(audit.TimeIndexCheck):
    def falls(self) -> NDArray[np.bool_]:
        return np.zeros(self.written, bool)


class _BelievesEverything(audit.TimeIndexCheck):
    def settle(self, ending: Ending) -> None:
        super().settle(ending)
        self.state[self.state == State.MISLEADS] = State.TRUE


class _AsksOnlyTheBatch(audit.TimeIndexCheck):
    """Whether a batch before has a later time is not looked at."""

    def compare(self, chunk: Chunk) -> None:
        self.largest = NO_TIMESTAMP
        for n in range(len(chunk.batches)):
            self.largest = NO_TIMESTAMP
            super().compare(Chunk(chunk.batches[n : n + 1]))
            self.last_offset = int(chunk.last[n])


class _WantsTheLastOffset(audit.TimeIndexCheck):
    """As if an entry's offset had to be its batch's last."""

    def compare(self, chunk: Chunk) -> None:
        super().compare(chunk)
        inside = ~np.isin(self.offsets, chunk.last) & (self.state == State.TRUE)
        self.state[inside] = State.MISLEADS


class _AsksNoLastEntry(audit.TimeIndexCheck):
    def further(self, segment: Segment, file: File, ending: Ending, stale: int | None) -> Iterator[Finding]:
        return iter(())


class _ForgetsTheEnd(audit.TimeIndexCheck):
    def settle(self, ending: Ending) -> None:
        super().settle(ending)
        self.state[self.state == State.BEYOND] = State.TRUE


def _audited(check: type[audit.TimeIndexCheck]) -> Callable[[], audit_driver.Driver]:
    class Faulty(audit_driver.Driver):
        def breaches(self, batches: Sequence[spec.Batch], entries: Sequence[spec.Entry]) -> spec.Breaches:
            return audit_driver.checked(batches, entries, check)

    return Faulty


# ---- faults of the spec


def _spec(operation: str, body: Callable[..., Any]) -> Callable[[], Machine[mapped.Index]]:
    return lambda: with_fault(spec.machine, operation, body)


def _uses_the_last_slot(
    state: mapped.Index, timestamp: int, offset: int, skip_full_check: bool
) -> mapped.Index | Refused:
    more = len(state.used) < state.slots
    return spec.maybe_append(state, timestamp, offset, skip_full_check or more)


def _refuses_the_same(
    state: mapped.Index, timestamp: int, offset: int, skip_full_check: bool
) -> mapped.Index | Refused:
    if state.used and spec.last_entry(state).timestamp == timestamp:
        return spec.OFFSET_BELOW
    return spec.maybe_append(state, timestamp, offset, skip_full_check)


def _truncates_after(state: mapped.Index, offset: int) -> mapped.Index:
    return mapped.keep(state, sum(1 for e in spec.entries(state) if e.offset <= offset))


def _closes_as_it_is(state: mapped.Index) -> mapped.Index:
    return mapped.closed(state)


def _m(name: str, ids: str, what: str, layer: Any, make: Callable[[], Any], bug: str | None = None) -> Mutant:
    return Mutant(name, tuple(ids.split()), what, layer, make, bug)


MUTANTS = [
    _m("little-endian", "TIX-1", "numbers the other way round", "impl", _index(layout=Struct("<qi"))),
    _m("any offset", "TIX-2", "offsets may fall", "impl", _index(maybe_append=_takes_any_offset)),
    _m("earlier times", "TIX-2", "an earlier time is passed over", "impl", _index(maybe_append=_ignores_earlier_times)),
    _m("twice", "TIX-3", "the same time makes another entry", "impl", _index(maybe_append=_takes_the_same_twice)),
    _m("no time", "TIX-3", "no time makes an entry", "impl", _index(maybe_append=_takes_records_without_time)),
    _m("no slot kept", "TIX-4", "full when all are in use", "impl", _index(is_full=MappedIndex.is_full)),
    _m(
        "the last is checked",
        "TIX-4",
        "a closed segment cannot say its time",
        "impl",
        _index(maybe_append=_checks_the_last_too),
    ),
    _m(
        "relative offsets wrap",
        "TIX-5",
        "what does not fit is stored",
        "impl",
        _index(relative_offset=_wraps),
        "KAFKA-5413",
    ),
    _m("torn", "TIX-5", "a refused append leaves its timestamp", "impl", _index(maybe_append=_leaves_the_timestamp)),
    _m("the next one", "TIX-6", "a lookup answers the least upper bound", "impl", _index(lookup=_answers_the_next)),
    _m("1025 warm entries", "TIX-7", "as in the offset index", "impl", _index(_search=_warm_as_eight_bytes)),
    _m("any equal", "TIX-8", "one of equal offsets stays", "impl", _index(truncate_to=_stops_at_any_equal)),
    _m("keeps the equal one", "TIX-8", "the offset itself stays", "impl", _index(truncate_to=_keeps_the_equal_one)),
    _m("keeps the first", "TIX-8", "an entry stays in an emptied index", "impl", _index(truncate=_keeps_the_first)),
    _m("not trimmed", "TIX-9", "closing leaves zeros", "impl", _index(close=_does_not_trim), "KAFKA-4734"),
    _m("no capacity", "TIX-9", "a reset index stays full", "impl", _index(reset=_keeps_its_size), "KAFKA-6388"),
    _m("any time is sane", "TIX-10", "falling times are not seen", "impl", _index(sanity_check=_checks_no_times)),
    _m("one entry more", "TIX-11", "the slot after the last is answered", "impl", _index(entry=_one_entry_more)),
    _m("audit: falls", "TIX-12", "entries may fall", "audit", _audited(_SeesNoFall)),
    _m("audit: everything is true", "TIX-13", "no entry is false", "audit", _audited(_BelievesEverything)),
    _m("audit: the batch alone", "TIX-13", "later times before it do not count", "audit", _audited(_AsksOnlyTheBatch)),
    _m(
        "audit: the last offset",
        "TIX-13",
        "an offset inside its batch is wrong",
        "audit",
        _audited(_WantsTheLastOffset),
    ),
    _m("audit: no last entry", "TIX-14", "it may lack the largest time", "audit", _audited(_AsksNoLastEntry)),
    _m("audit: no end", "TIX-15", "entries beyond the segment are right", "audit", _audited(_ForgetsTheEnd)),
    _m("uses the last slot", "TIX-4", "no slot is kept", "spec", _spec("maybeAppend", _uses_the_last_slot)),
    _m(
        "refuses the same",
        "TIX-3",
        "the last timestamp again is an error",
        "spec",
        _spec("maybeAppend", _refuses_the_same),
    ),
    _m("truncates after", "TIX-8", "the offset itself stays", "spec", _spec("truncateTo", _truncates_after)),
    _m("closes as it is", "TIX-9", "closing does not trim", "spec", _spec("close", _closes_as_it_is)),
]


# ---- faults of range, boundary, depth, configuration and rare state


def _has_times_of_53_bits(self: Index, timestamp: int, relative: int) -> impl.TimestampOffset:
    return impl.TimestampOffset(int(float(timestamp)), self.base_offset + relative)


def _has_times_of_seconds(self: Index, timestamp: int, relative: int) -> impl.TimestampOffset:
    """Times go through microseconds of 64 bits."""
    return impl.TimestampOffset(signed(timestamp * 1000, 64) // 1000, self.base_offset + relative)


def _has_offsets_of_32_bits(self: Index, timestamp: int, relative: int) -> impl.TimestampOffset:
    return impl.TimestampOffset(timestamp, signed(self.base_offset + relative, 32))


def _fits_unsigned(self: Index, offset: int) -> bool:
    return 0 <= offset - self.base_offset < 2**32


def _fits_below_the_most(self: Index, offset: int) -> int:
    if not 0 <= offset - self.base_offset < mapped.MOST_RELATIVE:
        raise Overflow(f"offset {offset}")
    return offset - self.base_offset


def _cut_to_32_bits(self: Index, offset: int) -> int:
    if not self.can_append(offset):
        raise Overflow(f"offset {offset}")
    return signed(offset - self.base_offset, 32)


def _takes_negative_times(self: Index, timestamp: int, offset: int, last: bool = False) -> None:
    """A first entry may have a time below -1; only -1 itself stands for none."""
    fits = self.can_append(offset) and self.writable and self.entries < self.max_entries
    if not self.entries and timestamp < NO_TIMESTAMP and fits and (last or not self.is_full):
        self.put(timestamp, offset - self.base_offset)
    else:
        Index.maybe_append(self, timestamp, offset, last)


def _takes_no_time_zero(self: Index, timestamp: int, offset: int, last: bool = False) -> None:
    """0 stands for no timestamp, as a number that was never set does."""
    if timestamp == 0 and not self.entries and (last or not self.is_full):
        return
    Index.maybe_append(self, timestamp, offset, last)


def _subtracts_times(self: Index, timestamp: int, offset: int, last: bool = False) -> None:
    """Times are compared by their difference in 64 bits."""
    if self.entries and (last or not self.is_full) and offset >= self.last_entry.offset:
        difference = signed(timestamp - self.last_entry.timestamp, 64)
        if difference > 0 > timestamp and self.writable and self.entries < self.max_entries:
            self.put(timestamp, self.relative_offset(offset))
            return
    Index.maybe_append(self, timestamp, offset, last)


def _refuses_the_same_offset_last(self: Index, timestamp: int, offset: int, last: bool = False) -> None:
    """The last entry of all must have an offset above the one before."""
    if last and self.entries and offset == self.last_entry.offset and timestamp > self.last_entry.timestamp:
        raise NotAbove(f"offset {offset}")
    Index.maybe_append(self, timestamp, offset, last)


def _is_full_of_one(self: Index) -> bool:
    """An index of one slot keeps none."""
    return self.entries >= max(self.max_entries - 1, 1)


def _drops_equal_offsets_back_to(self: Index, offset: int) -> None:
    """From the slot that a search finds it goes back over one entry of the same offset, not over all."""
    kept = sum(1 for e in self.all() if e.offset < offset)
    same = sum(1 for e in self.all() if e.offset == offset)
    self.keep(kept + max(same - 2, 0))


def _is_sane_at_the_first(self: Index) -> None:
    """One entry is not sane: its last timestamp is not above its first."""
    if self.entries > 1 and self.last_entry.timestamp <= self.parse(0).timestamp:
        raise Corrupt
    Index.sanity_check(self)


def _keeps_the_last_entry(self: Index, offset: int) -> None:
    """The last entry that is kept in memory is read again only if the truncation leaves one."""
    before = self.last_entry
    Index.truncate_to(self, offset)
    self.__dict__["cut"] = before if not self.entries else None


def _of_before_the_cut(self: Index) -> impl.TimestampOffset:
    known: impl.TimestampOffset | None = self.__dict__.get("cut")
    if known is None or self.entries:
        return _last_entry(self)
    return known


def _last_entry(self: Index) -> impl.TimestampOffset:
    return self.parse(self.entries - 1) if self.entries else impl.TimestampOffset(NO_TIMESTAMP, self.base_offset)


def _warm_as_the_maximum(self: Index, target: int, key: Callable[[int], int], upper: bool) -> int:
    """The warm section is counted in slots of the greatest index, not of the one that there is."""
    self.warm_bytes = min(mapped.WARM, 2 * self.max_index_size)
    return MappedIndex._search(self, target, key, upper)


class _ForgetsTheMaximum(impl_driver.Driver):
    """The maximum size is that of the first opening, whatever the configuration says later."""

    def open_(self, max_index_size: int, writable: bool) -> None:
        known = self.subject.max_index_size
        super().open_(max_index_size, writable)
        self.subject.max_index_size = known


RARE = [
    _m("times of 53 bits", "TIX-1 TIX-6", "timestamps are doubles", "impl", _index(meaning=_has_times_of_53_bits)),
    _m(
        "times in microseconds",
        "TIX-1 TIX-6",
        "a timestamp times 1000 must fit into 64 bits",
        "impl",
        _index(meaning=_has_times_of_seconds),
    ),
    _m(
        "offsets of 32 bits",
        "TIX-1 TIX-6",
        "base and relative are added in 32 bits",
        "impl",
        _index(meaning=_has_offsets_of_32_bits),
    ),
    _m(
        "unsigned relative",
        "TIX-5",
        "2^32 - 1 above the base fits, and is stored unsigned",
        "impl",
        _index(can_append=_fits_unsigned, relative_offset=_cut_to_32_bits),
    ),
    _m(
        "below the most",
        "TIX-5",
        "2^31 - 1 above the base does not fit",
        "impl",
        _index(relative_offset=_fits_below_the_most),
    ),
    _m(
        "negative times",
        "TIX-3",
        "a first entry may have a time below -1",
        "impl",
        _index(maybe_append=_takes_negative_times),
    ),
    _m("no time is 0", "TIX-3", "1970 is no time", "impl", _index(maybe_append=_takes_no_time_zero)),
    _m("times are subtracted", "TIX-2", "far apart the sign is wrong", "impl", _index(maybe_append=_subtracts_times)),
    _m(
        "the last is above",
        "TIX-2 TIX-4",
        "the last entry of all needs a new offset",
        "impl",
        _index(maybe_append=_refuses_the_same_offset_last),
    ),
    _m("full of one", "TIX-4", "an index of one slot keeps none", "impl", _index(is_full=property(_is_full_of_one))),
    _m(
        "three equal offsets",
        "TIX-8",
        "two of equal offsets go, a third stays",
        "impl",
        _index(truncate_to=_drops_equal_offsets_back_to),
    ),
    _m(
        "one is not sane",
        "TIX-10",
        "the last timestamp must be above the first",
        "impl",
        _index(sanity_check=_is_sane_at_the_first),
    ),
    _m(
        "the last entry in memory",
        "TIX-8 TIX-9",
        "it outlives a truncation that leaves none",
        "impl",
        _index(truncate_to=_keeps_the_last_entry, last_entry=property(_of_before_the_cut)),
    ),
    _m(
        "warm as the maximum",
        "TIX-7",
        "the warm section follows the configured size",
        "impl",
        _index(_search=_warm_as_the_maximum),
    ),
    _m("the first maximum", "TIX-9", "a reset has the size of the first opening", "impl", _ForgetsTheMaximum),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE
