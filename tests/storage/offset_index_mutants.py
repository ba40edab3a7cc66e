"""Faults of the offset index: Kafka's own bugs, and slips that anyone may make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkaspec.audits.common.index_evidence import State
from kafkaspec.audits.storage import offset_index as audit
from kafkaspec.audits.storage import offset_index_driver as audit_driver
from kafkaspec.contract.machine import Machine, Refused
from kafkaspec.impl.common.mapped_index import Corrupt, Overflow, TooShort
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.storage import offset_index as impl
from kafkaspec.impl.storage import offset_index_driver as impl_driver
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.storage import offset_index as model
from kafkaspec.models.storage.offset_index import N, Phase, Slot
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import Mutant, with_fault
from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.storage import offset_index as spec

Index = impl.OffsetIndex

# ---- faults of the implementation


def _index(**attributes: Any) -> Callable[[], impl_driver.Driver]:
    """The driver over an index with other methods."""

    def make() -> impl_driver.Driver:
        faulty = type("Faulty", (Index,), attributes)
        driver: impl_driver.Driver = type("FaultyDriver", (impl_driver.Driver,), {"index_class": faulty})()
        return driver

    return make


def _wraps(self: Index, offset: int) -> int:
    return (offset - self.base_offset + 2**31) % 2**32 - 2**31


def _takes_equal_offsets(self: Index, offset: int, position: int) -> None:
    if self.entries and offset == self.last_offset and not self.is_full:
        self.put(self.relative_offset(offset), position)
    else:
        Index.append(self, offset, position)


def _never_full_before_the_base(self: Index) -> bool:
    return self.entries > 0 and self.entries >= self.max_entries - 1


def _writes_over_the_last(self: Index, *cell: int) -> None:
    self.entries = max(self.entries - 1, 0)
    Index.put(self, *cell)


def _answers_the_next(self: Index, target: int) -> impl.OffsetPosition:
    slot = self.least_upper_bound(target, lambda n: self.parse(n).offset)
    return impl.OffsetPosition(self.base_offset, 0) if slot < 0 else self.parse(slot)


def _answers_the_first(self: Index, target: int) -> impl.OffsetPosition:
    found = Index.lookup(self, target)
    return self.parse(0) if self.entries and found.offset < self.parse(0).offset else found


def _halves_only_a_third(self: Index, target: int, key: Callable[[int], int], low: int, high: int, upper: bool) -> int:
    while low < high:
        middle = low + max(1, (high - low) // 3)
        if key(middle) > target:
            high = middle - 1
        else:
            low = middle
    return low if not upper else Index._halve(self, target, key, low, high, upper)


def _looks_at_the_first_always(self: Index, target: int, key: Callable[[int], int], upper: bool) -> int:
    if self.entries:
        key(0)
    touched = list(self.touched)
    found = Index._search(self, target, key, upper)
    self.touched = touched[-1:] + self.touched
    return found


def _strictly_above(self: Index, position: int, size: int) -> impl.OffsetPosition | None:
    return Index.fetch_upper_bound_offset(self, position, size + 1)


def _keeps_the_equal_one(self: Index, offset: int) -> None:
    Index.truncate_to(self, offset + 1)


def _drops_one_too_many(self: Index, offset: int) -> None:
    slot = self.greatest_lower_bound(offset, lambda n: self.parse(n).offset)
    self.keep(max(slot, 0))


def _keeps_the_first(self: Index) -> None:
    self.keep(min(self.entries, 1))


def _clears_what_it_cuts(self: Index, entries: int) -> None:
    if entries < self.entries and self.writable:
        self.file.put(entries * self.size, bytes((self.entries - entries) * self.size))
    Index.keep(self, entries)


def _rounds_up(self: Index, size: int) -> int:
    return -(-size // self.size) * self.size


def _always_says_resized(self: Index, size: int) -> bool:
    Index.resize(self, size)
    return True


def _drops_what_does_not_fit(self: Index, size: int) -> bool:
    self.entries = min(self.entries, self.rounded(size) // self.size)
    return Index.resize(self, size)


def _does_not_trim(self: Index) -> None:
    self.close_handler()


def _trims_one_too_many(self: Index) -> None:
    if self.open:
        self.entries = max(self.entries - 1, 0)
        Index.trim(self)


def _keeps_its_size(self: Index) -> None:
    self.truncate()


def _counts_what_is_written(self: Index, *arguments: Any, **more: Any) -> None:
    Index.__init__(self, *arguments, **more)
    while self.entries and self.parse(self.entries - 1) == (self.base_offset, 0):
        self.entries -= 1


def _checks_no_length(self: Index) -> None:
    length, self.length = self.length, self.rounded(self.length)
    try:
        Index.sanity_check(self)
    finally:
        self.length = length


def _one_entry_more(self: Index, n: int) -> impl.OffsetPosition:
    return self.parse(n) if n == self.entries < self.max_entries else Index.entry(self, n)


# ---- faults of the audit


class _SeesNoFall(audit.OffsetIndexCheck):
    def falls(self) -> NDArray[np.bool_]:
        return np.zeros(self.written, bool)


class _TakesAnyPosition(audit.OffsetIndexCheck):
    def compare(self, chunk: Chunk) -> None:
        super().compare(chunk)
        self.state[self.state == State.MISLEADS] = State.TRUE


class _TakesAnyOffset(audit.OffsetIndexCheck):
    def settle(self, ending: Ending) -> None:
        super().settle(ending)
        self.state[self.state == State.ODD] = State.TRUE


class _WantsItsOwnBatch(audit.OffsetIndexCheck):
    """As if nothing but 4.x had ever written an index."""

    def settle(self, ending: Ending) -> None:
        super().settle(ending)
        self.state[(self.state == State.TRUE) & ~self.own] = State.ODD


class _ForgetsTheEnd(audit.OffsetIndexCheck):
    def settle(self, ending: Ending) -> None:
        super().settle(ending)
        self.state[self.state == State.BEYOND] = State.TRUE


def _audited(check: type[audit.OffsetIndexCheck]) -> Callable[[], audit_driver.Driver]:
    class Faulty(audit_driver.Driver):
        def breaches(self, batches: Sequence[spec.Batch], entries: Sequence[spec.Entry]) -> list[str]:
            return audit_driver.checked(batches, entries, check)

    return Faulty


# ---- faults of the spec


def _spec(operation: str, body: Callable[..., Any]) -> Callable[[], Machine[mapped.Index]]:
    return lambda: with_fault(spec.machine, operation, body)


def _strictly_below(state: mapped.Index, offset: int) -> spec.Entry:
    below = [e for e in spec.entries(state) if e.offset < offset]
    return below[-1] if below else spec.Entry(state.base_offset, 0)


def _truncates_after(state: mapped.Index, offset: int) -> mapped.Index:
    return mapped.keep(state, sum(1 for e in spec.entries(state) if e.offset <= offset))


def _appends_anything(state: mapped.Index, offset: int, position: int) -> mapped.Index | Refused:
    if spec.is_full(state) or not state.writable or not spec.fits(state, offset):
        return spec.append(state, offset, position)
    return mapped.append(state, (offset - state.base_offset, position))


def _closes_as_it_is(state: mapped.Index) -> mapped.Index:
    return mapped.closed(state)


def _resets_to_what_there_was(state: mapped.Index) -> mapped.Index:
    return replace(mapped.keep(state, 0), odd=b"")


# ---- faults of the models


def _warm_section_begins_after() -> LoadedModel:
    class Search(model.Search):
        @action("OIX-7", who="reader")
        def choose(s) -> None:
            require(s.phase == Phase.CHOOSING)
            if s.entries == 0:
                s.next.phase = Phase.DONE
            elif s.key[s.first_warm()] < s.target:
                s.next.phase = Phase.HALVING
                s.next.low = min(s.first_warm() + 1, s.entries - 1)
                s.next.high = s.entries - 1
            elif s.key[0] > s.target:
                s.next.phase = Phase.DONE
            else:
                s.next.phase = Phase.HALVING
                s.next.low = 0
                s.next.high = s.first_warm()

    return load(Search)


def _forgets_the_first() -> LoadedModel:
    class Search(model.Search):
        @action("OIX-7", who="reader")
        def choose(s) -> None:
            require(s.phase == Phase.CHOOSING)
            if s.entries == 0:
                s.next.phase = Phase.DONE
            elif s.key[s.first_warm()] < s.target:
                s.next.phase = Phase.HALVING
                s.next.low = s.first_warm()
                s.next.high = s.entries - 1
            else:
                s.next.phase = Phase.HALVING
                s.next.low = 0
                s.next.high = s.first_warm()

    return load(Search)


def _leaves_the_middle_out() -> LoadedModel:
    class Search(model.Search):
        @action("OIX-8", who="reader")
        def halve(s, m: Slot) -> None:
            require(s.phase == Phase.HALVING, s.low < s.high)
            require(m + m == s.low + s.high or m + m == s.low + s.high + 1)
            if s.key[m] == s.target:
                s.next.answer = m
                s.next.phase = Phase.DONE
            elif s.key[m] > s.target:
                s.next.high = m - 1
            else:
                s.next.low = min(m + 1, s.high)

    return load(Search)


def _any_slot_in_the_middle() -> LoadedModel:
    class Search(model.Search):
        @action("OIX-8", who="reader")
        def halve(s, m: Slot) -> None:
            require(s.phase == Phase.HALVING, s.low < m, m <= s.high)
            if s.key[m] > s.target:
                s.next.high = m - 1
            else:
                s.next.low = m

    return load(Search)


def _searches_unwritten_slots() -> LoadedModel:
    class Race(model.Race):
        @action("OIX-22", who="reader")
        def look_where_it_ends(s) -> None:
            require(s.step == model.Step.WARM)
            s.next.step = model.Step.HALVING
            s.next.high = N - 1

    return load(Race)


def _cuts_under_the_reader_unseen() -> LoadedModel:
    class Race(model.Race):
        @action("OIX-22", who="writer")
        def truncate(s, m: Slot) -> None:
            require(m < s.entries, s.step != model.Step.DONE)
            s.next.entries = m

    return load(Race)


def _m(name: str, ids: str, what: str, layer: Any, make: Callable[[], Any], bug: str | None = None) -> Mutant:
    return Mutant(name, tuple(ids.split()), what, layer, make, bug)


MUTANTS = [
    _m("little-endian", "OIX-1", "numbers the other way round", "impl", _index(layout=Struct("<ii"))),
    _m(
        "relative offsets wrap",
        "OIX-2",
        "an offset that does not fit is stored",
        "impl",
        _index(relative_offset=_wraps),
        "KAFKA-5413",
    ),
    _m(
        "everything fits",
        "OIX-2",
        "any offset can be stored",
        "impl",
        _index(can_append=lambda self, offset: True),
    ),
    _m("equal offsets", "OIX-3", "an offset is taken twice", "impl", _index(append=_takes_equal_offsets)),
    _m(
        "a slot is kept",
        "OIX-4",
        "full with a slot left",
        "impl",
        _index(is_full=property(_never_full_before_the_base)),
    ),
    _m("over the last", "OIX-5", "an append overwrites the last entry", "impl", _index(put=_writes_over_the_last)),
    _m("the next one", "OIX-6", "a lookup answers the least upper bound", "impl", _index(lookup=_answers_the_next)),
    _m("never the base", "OIX-6", "below the first entry it is answered", "impl", _index(lookup=_answers_the_first)),
    _m("half as warm", "OIX-7", "a warm section of one page", "impl", _index(warm_bytes=mapped.PAGE)),
    _m("thirds", "OIX-8", "a look leaves out a third", "impl", _index(_halve=_halves_only_a_third)),
    _m("a cold page", "OIX-9 OIX-7", "every lookup reads slot 0", "impl", _index(_search=_looks_at_the_first_always)),
    _m(
        "strictly above",
        "OIX-10",
        "an entry at the fetch's end is passed",
        "impl",
        _index(fetch_upper_bound_offset=_strictly_above),
    ),
    _m("keeps the equal one", "OIX-11", "the offset itself stays", "impl", _index(truncate_to=_keeps_the_equal_one)),
    _m("one too many", "OIX-11", "the entry below goes too", "impl", _index(truncate_to=_drops_one_too_many)),
    _m("cleared", "OIX-11", "what is cut is overwritten", "impl", _index(keep=_clears_what_it_cuts)),
    _m("keeps the first", "OIX-12", "an entry stays in an emptied index", "impl", _index(truncate=_keeps_the_first)),
    _m("rounded up", "OIX-13 OIX-14", "a slot that does not fit", "impl", _index(rounded=_rounds_up)),
    _m("always resized", "OIX-14", "says so without a change", "impl", _index(resize=_always_says_resized)),
    _m("entries lost", "OIX-15", "what does not fit is dropped", "impl", _index(resize=_drops_what_does_not_fit)),
    _m("not trimmed", "OIX-16", "closing leaves zeros", "impl", _index(close=_does_not_trim), "KAFKA-4734"),
    _m("trimmed too far", "OIX-16", "the last entry is cut", "impl", _index(trim=_trims_one_too_many)),
    _m("no capacity", "OIX-17", "a reset index stays full", "impl", _index(reset=_keeps_its_size), "KAFKA-6388"),
    _m("zeros are nothing", "OIX-18", "unwritten slots do not count", "impl", _index(__init__=_counts_what_is_written)),
    _m("read-only is writable", "OIX-19", "appends are taken", "impl", _index(_check_writable=lambda self: None)),
    _m("any length is sane", "OIX-20", "odd bytes are not seen", "impl", _index(sanity_check=_checks_no_length)),
    _m("one entry more", "OIX-21", "the slot after the last is answered", "impl", _index(entry=_one_entry_more)),
    _m("audit: falls", "OIX-23", "entries may fall", "audit", _audited(_SeesNoFall)),
    _m("audit: any position", "OIX-24", "no position misleads", "audit", _audited(_TakesAnyPosition)),
    _m("audit: any offset", "OIX-25", "no offset is odd", "audit", _audited(_TakesAnyOffset)),
    _m("audit: its own batch", "OIX-25", "an append of several batches is wrong", "audit", _audited(_WantsItsOwnBatch)),
    _m("audit: no end", "OIX-27", "entries beyond the segment are right", "audit", _audited(_ForgetsTheEnd)),
    _m("strictly below", "OIX-6", "the entry of the offset itself is passed", "spec", _spec("lookup", _strictly_below)),
    _m("truncates after", "OIX-11", "the offset itself stays", "spec", _spec("truncateTo", _truncates_after)),
    _m("appends anything", "OIX-3", "offsets may fall", "spec", _spec("append", _appends_anything)),
    _m("closes as it is", "OIX-16", "closing does not trim", "spec", _spec("close", _closes_as_it_is)),
    _m("resets in place", "OIX-17", "the size stays", "spec", _spec("reset", _resets_to_what_there_was), "KAFKA-6492"),
    _m("Search: begins after", "OIX-7", "off by one", "model", _warm_section_begins_after),
    _m("Search: forgets the first", "OIX-6", "below the first entry it is answered", "model", _forgets_the_first),
    _m("Search: leaves the middle out", "OIX-8", "off by one", "model", _leaves_the_middle_out),
    _m("Search: any slot", "OIX-8", "a look may leave out one slot only", "model", _any_slot_in_the_middle),
    _m("Race: unwritten slots", "OIX-22", "the search ends at the last slot", "model", _searches_unwritten_slots),
    _m("Race: cut unseen", "OIX-22", "a truncation counts for nothing", "model", _cuts_under_the_reader_unseen),
]

_NOT_KEPT = "fewer steps: which offset was asked for is no part of the state; another one cuts the same entries"
SURVIVORS: dict[str, str] = {
    "Search.truncate: guard 3 negated": _NOT_KEPT,
    "Search.truncate: guard 4, off by one (3)": _NOT_KEPT,
}
"""Generated faults of the models that nobody can notice, and why."""


# ---- faults of range, boundary, depth, configuration and rare state


def _has_offsets_of_32_bits(self: Index, relative: int, position: int) -> impl.OffsetPosition:
    return impl.OffsetPosition(signed(self.base_offset + relative, 32), position)


def _has_offsets_of_53_bits(self: Index, relative: int, position: int) -> impl.OffsetPosition:
    return impl.OffsetPosition(int(float(self.base_offset + relative)), position)


def _fits_unsigned(self: Index, offset: int) -> bool:
    return 0 <= offset - self.base_offset < 2**32


def _fits_below_the_most(self: Index, offset: int) -> bool:
    return 0 <= offset - self.base_offset < mapped.MOST_RELATIVE


def _fits_in_32_bits(self: Index, offset: int) -> bool:
    return signed(offset - self.base_offset, 32) >= 0


def _cut_to_32_bits(self: Index, offset: int) -> int:
    if not self.can_append(offset):
        raise Overflow(f"offset {offset}")
    return signed(offset - self.base_offset, 32)


def _ends_at_the_most(self: Index, position: int, size: int) -> impl.OffsetPosition | None:
    return Index.fetch_upper_bound_offset(self, min(position + size, 2**31 - 1), 0)


def _compares_before_rounding(self: Index, size: int) -> bool:
    """A size that rounds to the one that is there counts as another."""
    return Index.resize(self, size) or (size != self.length and size >= self.entries * self.size)


def _refuses_writable(self: Index, size: int) -> bool:
    """A resize that is refused leaves a read-only index writable."""
    self.writable = self.writable or self.rounded(size) != self.length
    return Index.resize(self, size)


def _is_sane_above_the_base(self: Index) -> None:
    if self.entries and self.last_offset <= self.base_offset:
        raise Corrupt
    Index.sanity_check(self)


def _remembers_answers(self: Index, target: int) -> impl.OffsetPosition:
    known: dict[int, impl.OffsetPosition] = self.__dict__.setdefault("known", {})
    return known.setdefault(target, Index.lookup(self, target))


def _forgets_answers(self: Index, *cell: int) -> None:
    self.__dict__["known"] = {}
    Index.put(self, *cell)


def _one_slot_less_warm(self: Index, target: int, key: Callable[[int], int], upper: bool) -> int:
    """The warm section begins that many entries before their number, not before the last."""
    self.warm_bytes = mapped.WARM - self.size
    return Index._search(self, target, key, upper)


class _NotToTheEntries(impl_driver.Driver):
    """A size must be above what is in use; trimming is exempt."""

    def resize(self, new_size: int) -> bool:
        index = self.subject
        if index.rounded(new_size) == index.entries * index.size != index.length:
            raise TooShort
        return index.resize(new_size)


class _ForgetsTheMaximum(impl_driver.Driver):
    """The maximum size is that of the first opening, whatever the configuration says later."""

    def open_(self, max_index_size: int, writable: bool) -> None:
        known = self.subject.max_index_size
        super().open_(max_index_size, writable)
        self.subject.max_index_size = known


class _OpensWithTheMaximum(impl_driver.Driver):
    """A file that is longer than the maximum is cut when it is opened."""

    def open_(self, max_index_size: int, writable: bool) -> None:
        self.subject.close_handler()
        content = self.file.content
        if content is not None and len(content) > max_index_size >= 8:
            self.file.content = content[: max_index_size // 8 * 8]
        super().open_(max_index_size, writable)


RARE = [
    _m(
        "offsets of 32 bits",
        "OIX-1 OIX-6",
        "base and relative are added in 32 bits",
        "impl",
        _index(meaning=_has_offsets_of_32_bits),
    ),
    _m(
        "offsets of 53 bits",
        "OIX-1 OIX-6",
        "base and relative are added as doubles",
        "impl",
        _index(meaning=_has_offsets_of_53_bits),
    ),
    _m(
        "unsigned relative",
        "OIX-2",
        "2^32 - 1 above the base fits, and is stored unsigned",
        "impl",
        _index(can_append=_fits_unsigned, relative_offset=_cut_to_32_bits),
    ),
    _m(
        "below the most",
        "OIX-2",
        "2^31 - 1 above the base does not fit",
        "impl",
        _index(can_append=_fits_below_the_most),
    ),
    _m(
        "subtracted in 32 bits",
        "OIX-2",
        "an offset 2^32 above the base fits",
        "impl",
        _index(can_append=_fits_in_32_bits, relative_offset=_cut_to_32_bits),
    ),
    _m(
        "a fetch's end saturates",
        "OIX-10",
        "an end beyond 2^31 - 1 is 2^31 - 1",
        "impl",
        _index(fetch_upper_bound_offset=_ends_at_the_most),
    ),
    _m(
        "resized to the same",
        "OIX-14",
        "lengths are compared before rounding",
        "impl",
        _index(resize=_compares_before_rounding),
    ),
    _m("not to the entries", "OIX-15", "a resize to exactly what is in use is refused", "impl", _NotToTheEntries),
    _m(
        "refused, and writable",
        "OIX-19 OIX-15",
        "a resize that is refused makes it writable",
        "impl",
        _index(resize=_refuses_writable),
    ),
    _m(
        "sane above the base",
        "OIX-20",
        "a last offset at the base is corrupt",
        "impl",
        _index(sanity_check=_is_sane_above_the_base),
    ),
    _m(
        "a lookup remembered",
        "OIX-6 OIX-11",
        "an answer outlives a truncation",
        "impl",
        _index(lookup=_remembers_answers, put=_forgets_answers),
    ),
    _m(
        "1023 warm entries",
        "OIX-7",
        "the warm section is counted from the end",
        "impl",
        _index(_search=_one_slot_less_warm),
    ),
    _m("the first maximum", "OIX-17", "a reset has the size of the first opening", "impl", _ForgetsTheMaximum),
    _m("cut when opened", "OIX-18", "a file beyond the maximum is cut", "impl", _OpensWithTheMaximum),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE

UNSEEN: dict[str, str] = {
    "refused, and writable": "not found yet: nothing noticed it, nor the judge in 20,000 calls",
}
