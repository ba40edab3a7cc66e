"""Faults of the transaction index, each with the clauses that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.storage import transaction_index as impl
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
from kafkaspec.mutants.matrix import Mutant, of_impl


class Made(TransactionIndex):
    def __init__(self, path: str, base_offset: int, disk: Disk) -> None:
        super().__init__(path, base_offset, disk)
        disk.append(path, b"")


class Remembering(TransactionIndex):
    def __init__(self, path: str, base_offset: int, disk: Disk) -> None:
        super().__init__(path, base_offset, disk)
        self.last_offset = max((e.last_offset for e in self), default=None)


class Equal(TransactionIndex):
    def append(self, entry: AbortedTxn) -> None:
        if self.last_offset == entry.last_offset:
            self.last_offset = None
        super().append(entry)


class Halfway(TransactionIndex):
    """Writes first, and refuses then."""

    def append(self, entry: AbortedTxn) -> None:
        self.disk.append(self.path, entry.encode())
        if self.last_offset is not None and entry.last_offset <= self.last_offset:
            raise NotAscending
        self.last_offset = entry.last_offset


class Little(TransactionIndex):
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
    def make() -> impl.Driver:
        class Faulty(impl.Driver):
            def reset(self, arguments: Any) -> None:
                self.index = index
                super().reset(arguments)

        return Faulty()

    return make


class FirstSegmentAlone(impl.Driver):
    def log_collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> list[AbortedTxn]:
        of = max((n for n, i in enumerate(self.indexes) if i.base_offset <= fetch_offset), default=0)
        return self.indexes[of].collect_aborted_txns(fetch_offset, upper_bound_offset).aborted_transactions


class FromTheNext(impl.Driver):
    """Asks first the index of the segment after the one that holds the fetch offset."""

    def log_collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> list[AbortedTxn]:
        asked = [i for i in self.indexes if i.base_offset >= fetch_offset] or self.indexes[-1:]
        return impl.collect(asked, fetch_offset, upper_bound_offset)


class AnyVersion(impl.Driver):
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
    of_impl("made when opened", "TXI-2", "every segment has a file", _of(Made)),
    of_impl("reads its last offset back", "TXI-3", "an index that was opened knows its last entry", _of(Remembering)),
    of_impl("the same marker twice", "TXI-3", "an equal last offset is appended", _of(Equal)),
    of_impl("refused too late", "TXI-3", "what is refused was written", _of(Halfway)),
    of_impl("little-endian", "TXI-1", "the least byte first", _of(Little)),
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
