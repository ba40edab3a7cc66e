"""Faults of the transaction index, each with the clauses that it breaks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.storage import transaction_index as impl
from kafkaspec.impl.storage import transaction_index_driver
from kafkaspec.impl.storage.transaction_index import (
    ENTRY,
    AbortedTxn,
    CorruptIndex,
    NotAscending,
    TransactionIndex,
    TxnIndexSearchResult,
)
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.storage import transaction_index as model
from kafkaspec.models.storage.transaction_index import Offset, Producer
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import Mutant, of_impl


class FileWhenOpened(TransactionIndex):
    def __init__(self, path: str, base_offset: int, disk: Disk) -> None:
        super().__init__(path, base_offset, disk)
        disk.append(path, b"")


class ReadsBack(TransactionIndex):
    def __init__(self, path: str, base_offset: int, disk: Disk) -> None:
        super().__init__(path, base_offset, disk)
        self.last_offset = max((e.last_offset for e in self), default=None)


class TakesEqual(TransactionIndex):
    def append(self, entry: AbortedTxn) -> None:
        if self.last_offset == entry.last_offset:
            self.last_offset = None
        super().append(entry)


class RefusesTooLate(TransactionIndex):
    """Writes first, and refuses then."""

    def append(self, entry: AbortedTxn) -> None:
        self.disk.append(self.path, entry.encode())
        if self.last_offset is not None and entry.last_offset <= self.last_offset:
            raise NotAscending
        self.last_offset = entry.last_offset


class LittleEndian(TransactionIndex):
    def append(self, entry: AbortedTxn) -> None:
        before = self.size
        super().append(entry)
        data = self.disk.read(self.path)[:before]
        self.disk.write(self.path, data + b"\0\0" + b"".join(n.to_bytes(8, "little") for n in entry))


class EverOn(TransactionIndex):
    """Collects to the end of the file."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound: int) -> TxnIndexSearchResult:
        found = [e for e in self if e.last_offset >= fetch_offset and e.first_offset < upper_bound]
        return TxnIndexSearchResult(found, any(e.last_stable_offset >= upper_bound for e in self))


class StopsBefore(TransactionIndex):
    """The entry at which collecting stops is not looked at."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound: int) -> TxnIndexSearchResult:
        found = super().collect_aborted_txns(fetch_offset, upper_bound)
        stop = next((e for e in self if e.last_stable_offset >= upper_bound), None)
        return replace(found, aborted_transactions=[e for e in found.aborted_transactions if e != stop])


class AboveTheFetch(TransactionIndex):
    def collect_aborted_txns(self, fetch_offset: int, upper_bound: int) -> TxnIndexSearchResult:
        return super().collect_aborted_txns(fetch_offset + 1, upper_bound)


class ToTheBound(TransactionIndex):
    def collect_aborted_txns(self, fetch_offset: int, upper_bound: int) -> TxnIndexSearchResult:
        found = [e for e in self if e.last_offset >= fetch_offset and e.first_offset <= upper_bound]
        stop = next((n for n, e in enumerate(self) if e.last_stable_offset >= upper_bound), None)
        known = list(self)[: None if stop is None else stop + 1]
        return TxnIndexSearchResult([e for e in found if e in known], stop is not None)


class StableAbove(TransactionIndex):
    def collect_aborted_txns(self, fetch_offset: int, upper_bound: int) -> TxnIndexSearchResult:
        found = []
        for e in self:
            if e.last_offset >= fetch_offset and e.first_offset < upper_bound:
                found.append(e)
            if e.last_stable_offset > upper_bound:
                return TxnIndexSearchResult(found, True)
        return TxnIndexSearchResult(found, False)


class NeverComplete(TransactionIndex):
    def collect_aborted_txns(self, fetch_offset: int, upper_bound: int) -> TxnIndexSearchResult:
        return replace(super().collect_aborted_txns(fetch_offset, upper_bound), is_complete=False)


class KeepsTheCut(TransactionIndex):
    def truncate_to(self, offset: int) -> None:
        super().truncate_to(offset + 1)


class RemembersTheCut(TransactionIndex):
    def truncate_to(self, offset: int) -> None:
        known = self.last_offset
        super().truncate_to(offset)
        self.last_offset = known


class CutsTheFirst(TransactionIndex):
    """By first offsets: a transaction that began before the cut stays, though its marker is gone."""

    def truncate_to(self, offset: int) -> None:
        for n, e in enumerate(self):
            if e.first_offset >= offset:
                self.disk.truncate(self.path, n * ENTRY.size)
                self.last_offset = max((e.last_offset for e in self), default=None)
                return


class ResetRemembers(TransactionIndex):
    def reset(self) -> None:
        known = self.last_offset
        super().reset()
        self.last_offset = known


class ResetRemoves(TransactionIndex):
    def reset(self) -> None:
        super().reset()
        if self.exists:
            self.disk.remove(self.path)


class ChecksTheFirst(TransactionIndex):
    def sanity_check(self) -> None:
        if any(e.first_offset < self.base_offset for e in self):
            raise CorruptIndex


class ReadsTheRest(TransactionIndex):
    """Fills a torn entry up with zeros."""

    def __iter__(self) -> Iterator[AbortedTxn]:
        data = self.disk.read(self.path) if self.exists else b""
        return impl.decode(data + bytes(-len(data) % ENTRY.size))


def _of(index: type[TransactionIndex]) -> Callable[[], Any]:
    def make() -> transaction_index_driver.Driver:
        class Faulty(transaction_index_driver.Driver):
            def reset(self, arguments: Any) -> None:
                self.index = index
                super().reset(arguments)

        return Faulty()

    return make


class FirstSegmentAlone(transaction_index_driver.Driver):
    def log_collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> list[AbortedTxn]:
        of = max((n for n, i in enumerate(self.indexes) if i.base_offset <= fetch_offset), default=0)
        return self.indexes[of].collect_aborted_txns(fetch_offset, upper_bound_offset).aborted_transactions


class FromTheNext(transaction_index_driver.Driver):
    """Asks first the index of the segment after the one that holds the fetch offset."""

    def log_collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> list[AbortedTxn]:
        asked = [i for i in self.indexes if i.base_offset >= fetch_offset] or self.indexes[-1:]
        return impl.collect(asked, fetch_offset, upper_bound_offset)


class AnyVersion(transaction_index_driver.Driver):
    def read(self, content: str) -> list[AbortedTxn]:
        data = bytes.fromhex(content)
        whole = range(0, len(data) - ENTRY.size + 1, ENTRY.size)
        return [AbortedTxn(*ENTRY.unpack_from(data, at)[1:]) for at in whole]


def _the_others_are_forgotten() -> LoadedModel:
    class Aborts(model.Aborts):
        @action("TXI-12", who="coordinator")
        def abort(s, p: Producer, o: Offset) -> None:
            require(s.end < model.L, p in s.busy, o == s.end + 1)
            s.next.aborted = s.aborted | {s.end}
            s.next.began[s.end] = s.first[p]
            s.next.stable[s.end] = o
            s.close(p)

    return load(Aborts)


def _its_own_is_unstable() -> LoadedModel:
    """The transaction that is being aborted counts as open still; harmless, only less is complete."""

    class Aborts(model.Aborts):
        @action("TXI-12", who="coordinator")
        def abort(s, p: Producer, o: Offset) -> None:
            require(s.end < model.L, p in s.busy, o == s.end)
            s.next.aborted = s.aborted | {s.end}
            s.next.began[s.end] = s.first[p]
            s.next.stable[s.end] = o
            s.close(p)

    return load(Aborts)


MUTANTS = [
    of_impl("made when opened", "TXI-2", "every segment has a file", _of(FileWhenOpened)),
    of_impl("reads its last offset back", "TXI-3", "an index that was opened knows its last entry", _of(ReadsBack)),
    of_impl("the same marker twice", "TXI-3", "an equal last offset is appended", _of(TakesEqual)),
    of_impl("refused too late", "TXI-3", "what is refused was written", _of(RefusesTooLate)),
    of_impl("little-endian", "TXI-1", "the least byte first", _of(LittleEndian)),
    of_impl("collects to the end", "TXI-4", "does not stop where it is complete", _of(EverOn)),
    of_impl("stops before the last", "TXI-4 TXI-7", "the entry that completes is left out", _of(StopsBefore)),
    of_impl("above the fetch offset", "TXI-4", "a marker at the fetch offset is left out", _of(AboveTheFetch)),
    of_impl("up to the bound", "TXI-4", "a transaction that begins at the upper bound is given", _of(ToTheBound)),
    of_impl("stable above the bound", "TXI-4 TXI-5", "complete only above the upper bound", _of(StableAbove)),
    of_impl("never complete", "TXI-5", "every later segment is asked", _of(NeverComplete)),
    of_impl("one segment", "TXI-6 TXI-7", "markers in later segments are not found", FirstSegmentAlone),
    of_impl("the next segment first", "TXI-6 TXI-7", "markers in the first segment are not found", FromTheNext),
    of_impl("keeps what ends at the cut", "TXI-8", "truncates one offset too high", _of(KeepsTheCut)),
    of_impl(
        "remembers what was cut", "TXI-8", "the next append must exceed an entry that is gone", _of(RemembersTheCut)
    ),
    of_impl("cuts by first offsets", "TXI-8", "entries without a marker stay", _of(CutsTheFirst)),
    of_impl("a reset remembers", "TXI-9", "the next append must exceed an entry that is gone", _of(ResetRemembers)),
    of_impl("a reset removes", "TXI-9", "the file goes too", _of(ResetRemoves)),
    of_impl(
        "checks the first offset", "TXI-10", "a transaction from before the segment is corrupt", _of(ChecksTheFirst)
    ),
    of_impl("a torn entry counts", "TXI-11", "its missing bytes are zeros", _of(ReadsTheRest)),
    of_impl("any version", "TXI-11", "an entry of a later version is read", AnyVersion),
    Mutant(
        "Aborts: the others are forgotten",
        ("TXI-7", "TXI-12", "TXI-4", "TXI-5"),
        "the last stable offset does not look at other open transactions",
        "model",
        _the_others_are_forgotten,
    ),
    Mutant(
        "Aborts: its own is unstable",
        ("TXI-12",),
        "the last stable offset is the marker's own offset",
        "model",
        _its_own_is_unstable,
    ),
]

SURVIVORS: dict[str, str] = {}
"""Generated faults of the model that nobody can notice, and why."""


# ---- faults of range, boundary, depth, configuration and rare state
class ShortOffsets(TransactionIndex):
    """Offsets have 32 bits."""

    def __iter__(self) -> Iterator[AbortedTxn]:
        for e in super().__iter__():
            yield e._replace(first_offset=signed(e.first_offset, 32))


class IdsAsDoubles(TransactionIndex):
    def __iter__(self) -> Iterator[AbortedTxn]:
        for e in super().__iter__():
            yield e._replace(producer_id=int(float(e.producer_id)))


class FiveEntries(TransactionIndex):
    """An answer has room for five."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound: int) -> TxnIndexSearchResult:
        found = super().collect_aborted_txns(fetch_offset, upper_bound)
        return replace(found, aborted_transactions=found.aborted_transactions[:5])


class ZeroIsNone(TransactionIndex):
    """A last offset of 0 counts as none."""

    def append(self, entry: AbortedTxn) -> None:
        self.last_offset = self.last_offset or None
        super().append(entry)


class EmptyIsGone(TransactionIndex):
    """A truncation that leaves no entry removes the file."""

    def truncate_to(self, offset: int) -> None:
        super().truncate_to(offset)
        if self.exists and not self.size:
            self.disk.remove(self.path)


class Halves(TransactionIndex):
    """Looks for the place of a cut by halving: entries that were appended after an opening may fall."""

    def truncate_to(self, offset: int) -> None:
        last = [e.last_offset for e in self]
        n = bisect_left(last, offset)
        if n < len(last):
            self.disk.truncate(self.path, n * ENTRY.size)
            self.last_offset = last[n - 1] if n else None


class SaneAtTheEnds(TransactionIndex):
    """The first entry alone is checked: the others lie above it."""

    def sanity_check(self) -> None:
        if any(e.last_offset < self.base_offset for e in list(self)[:1]):
            raise CorruptIndex


class KnowsItsOwnCut(TransactionIndex):
    """A truncation without anything to drop learns the last offset all the same."""

    def truncate_to(self, offset: int) -> None:
        super().truncate_to(offset)
        self.last_offset = next((e.last_offset for e in reversed(list(self))), self.last_offset)


class TwoSegments(transaction_index_driver.Driver):
    """A fetch asks the index of the next segment too, and no further."""

    def log_collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> list[AbortedTxn]:
        below = [n for n, i in enumerate(self.indexes) if i.base_offset <= fetch_offset]
        return impl.collect(self.indexes[below[-1] :][:2], fetch_offset, upper_bound_offset)


class SegmentsByText(transaction_index_driver.Driver):
    """Segments are in the order of their base offsets' digits."""

    def log_collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> list[AbortedTxn]:
        below = [n for n, i in enumerate(self.indexes) if str(i.base_offset) <= str(fetch_offset)]
        return impl.collect(self.indexes[below[-1] if below else 0 :], fetch_offset, upper_bound_offset)


class BoundOfInt(transaction_index_driver.Driver):
    """An upper bound beyond 2^31 - 1 is that."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> TxnIndexSearchResult:
        index: TransactionIndex = self.subject
        return index.collect_aborted_txns(fetch_offset, min(upper_bound_offset, 2**31 - 1))


class UnsignedVersion(transaction_index_driver.Driver):
    """A version below 0 is a large one."""

    def read(self, content: str) -> list[AbortedTxn]:
        if any(content[at : at + 4] >= "8000" for at in range(0, len(content) - 2 * ENTRY.size + 1, 2 * ENTRY.size)):
            raise impl.UnknownVersion
        return super().read(content)


class VersionOfAByte(transaction_index_driver.Driver):
    """Version 256 is 0."""

    def read(self, content: str) -> list[AbortedTxn]:
        data = bytearray.fromhex(content)
        data[:: ENTRY.size] = bytes(len(data[:: ENTRY.size]))
        return super().read(data.hex())


class UnsignedOffsets(transaction_index_driver.Driver):
    def read(self, content: str) -> list[AbortedTxn]:
        return [e._replace(first_offset=e.first_offset % 2**64) for e in super().read(content)]


RARE = [
    of_impl("offsets of 32 bits", "TXI-1 TXI-4", "a first offset above 2^31 - 1 wraps", _of(ShortOffsets)),
    of_impl("ids as doubles", "TXI-1", "a producer id above 2^53 is rounded", _of(IdsAsDoubles)),
    of_impl("five at most", "TXI-4 TXI-7", "a sixth aborted transaction is left out", _of(FiveEntries)),
    of_impl("0 is no last offset", "TXI-3", "what ends at 0 may be appended again", _of(ZeroIsNone)),
    of_impl("emptied is gone", "TXI-8", "the file goes with its last entry", _of(EmptyIsGone)),
    of_impl("cut by halving", "TXI-8", "entries that fall are cut elsewhere", _of(Halves)),
    of_impl("the first is sane", "TXI-10", "a later entry may end below the base offset", _of(SaneAtTheEnds)),
    of_impl("a cut of nothing", "TXI-8 TXI-3", "learns the last offset, of an opened index too", _of(KnowsItsOwnCut)),
    of_impl("two segments", "TXI-6 TXI-7", "a third is not asked", TwoSegments),
    of_impl("segments by text", "TXI-6", "the segment at 10 lies before that at 9", SegmentsByText),
    of_impl("a bound of 32 bits", "TXI-4 TXI-5", "a fetch ends at 2^31 - 1", BoundOfInt),
    of_impl("versions without a sign", "TXI-11", "version -1 is not known", UnsignedVersion),
    of_impl("versions of a byte", "TXI-11", "version 256 is 0", VersionOfAByte),
    of_impl("offsets without a sign", "TXI-1", "-1 is 2^64 - 1", UnsignedOffsets),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE
