"""Faults of the leader epochs: Kafka's own bugs, and slips that anyone may make."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from unittest.mock import patch

from kafkaspec.audits.storage import leader_epochs as audit
from kafkaspec.audits.storage import leader_epochs_driver as audit_driver
from kafkaspec.contract.machine import Driver, Json, Machine, Refused
from kafkaspec.impl.storage import leader_epochs as impl
from kafkaspec.impl.storage import leader_epochs_driver as impl_driver
from kafkaspec.impl.storage.leader_epochs import EpochEnd, EpochEntry, LeaderEpochCache, LeaderEpochCheckpoint
from kafkaspec.language import action, require
from kafkaspec.models.storage import leader_epochs as model
from kafkaspec.models.storage.leader_epochs import FIXED, E, Epoch, L, Offset
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import Mutant, of_audit, of_impl, of_model, with_fault
from kafkaspec.spec.storage import leader_epochs as spec

Cache = LeaderEpochCache
File = LeaderEpochCheckpoint
UNKNOWN = EpochEnd(-1, -1)


def _cache(**methods: Any) -> Callable[[], impl_driver.Driver]:
    """The driver with other methods in its cache."""

    def make() -> impl_driver.Driver:
        cache = type("Faulty", (Cache,), methods)
        driver: impl_driver.Driver = type("FaultyDriver", (impl_driver.Driver,), {"cache_class": cache})()
        return driver

    return make


def _file(**methods: Any) -> Callable[[], impl_driver.Driver]:
    """The driver with other methods in its checkpoint."""

    def make() -> impl_driver.Driver:
        file = type("Faulty", (File,), methods)
        driver: impl_driver.Driver = type("FaultyDriver", (impl_driver.Driver,), {"checkpoint_class": file})()
        return driver

    return make


def _patched(module: Any = impl, **functions: Any) -> Callable[[], Driver]:
    """The driver of the implementation, or of the audit, with other functions in the module, while it is called."""

    class Faulty(impl_driver.Driver if module is impl else audit_driver.Driver):  # type: ignore[misc]
        def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
            with patch.multiple(module, **functions):
                answer: Json | Refused = super().apply(name, arguments)
                return answer

    return Faulty


# ---- the cache
def _keeps_what_contradicts(self: Cache, epoch: int, start_offset: int) -> bool:
    if epoch < 0 or start_offset < 0:
        raise impl.InvalidEntry("negative")
    if self.epochs and self.epochs[-1] >= epoch:
        return False
    self.epochs.append(epoch)
    self.starts.append(start_offset)
    return True


def _only_by_offset(self: Cache, epoch: int, start_offset: int) -> bool:
    if epoch < 0 or start_offset < 0:
        raise impl.InvalidEntry("negative")
    if self.epochs and self.epochs[-1] == epoch and self.starts[-1] <= start_offset:
        return False
    keep = bisect_left(self.starts, start_offset)
    self.epochs[keep:], self.starts[keep:] = [epoch], [start_offset]
    return True


def _reassigns(self: Cache, epoch: int, start_offset: int) -> bool:
    if self.epochs and self.epochs[-1] == epoch and start_offset >= 0:
        self.starts[-1] = start_offset
        return True
    return Cache._assign(self, epoch, start_offset)


def _takes_anything(self: Cache, epoch: int, start_offset: int) -> bool:
    return False if epoch < 0 or start_offset < 0 else Cache._assign(self, epoch, start_offset)


def _assigns_later(self: Cache, epoch: int, start_offset: int) -> None:
    if self._assign(epoch, start_offset):
        self.schedule(self.flush)


def _cuts_above(epochs: list[int], starts: list[int], end_offset: int) -> bool:
    keep = len(starts) if end_offset < 0 else bisect_right(starts, end_offset)
    dropped = keep < len(starts)
    del epochs[keep:], starts[keep:]
    return dropped


def _drops_the_first(epochs: list[int], starts: list[int], start_offset: int) -> bool:
    begun = bisect_right(starts, start_offset)
    del epochs[:begun], starts[:begun]
    return begun > 0


def _moves_no_entry(epochs: list[int], starts: list[int], start_offset: int) -> bool:
    begun = bisect_right(starts, start_offset)
    del epochs[: max(0, begun - 1)], starts[: max(0, begun - 1)]
    return begun > 0


def _moves_any(epochs: list[int], starts: list[int], start_offset: int) -> bool:
    if Cache.cut_from_start(epochs, starts, start_offset):
        return True
    if starts and (len(starts) == 1 or starts[1] > start_offset):
        starts[0] = start_offset
        return True
    return False


def _schedules_a_copy(self: Cache, end_offset: int) -> None:
    if self.cut_from_end(self.epochs, self.starts, end_offset):
        then = self.entries
        self.schedule(lambda: self.checkpoint.write(then))


def _never_writes(self: Cache, end_offset: int) -> None:
    self.cut_from_end(self.epochs, self.starts, end_offset)


def _clears_memory(self: Cache) -> None:
    self.epochs, self.starts = [], []


def _without_the_epoch(self: Cache, requested: int, log_end: int) -> EpochEnd:
    right = Cache.end_offset_for(self, requested, log_end)
    return EpochEnd(requested, right.end_offset) if right != UNKNOWN else right


def _unknown_below(self: Cache, requested: int, log_end: int) -> EpochEnd:
    if self.epochs and requested < self.epochs[0]:
        return UNKNOWN
    return Cache.end_offset_for(self, requested, log_end)


def _end_of_the_log(self: Cache, requested: int, log_end: int) -> EpochEnd:
    right = Cache.end_offset_for(self, requested, log_end)
    return EpochEnd(requested, log_end) if right == UNKNOWN and self.epochs and requested > 0 else right


def _after_it(self: Cache, offset: int) -> int | None:
    begun = bisect_left(self.starts, offset)
    return self.epochs[begun - 1] if begun else None


def _previous_or_equal(self: Cache, epoch: int) -> int | None:
    lower = bisect_right(self.epochs, epoch)
    return self.epochs[lower - 1] if lower else None


def _cuts_for_good(self: Cache, start_offset: int, end_offset: int) -> list[EpochEntry]:
    if start_offset >= 0:
        self.cut_from_start(self.epochs, self.starts, start_offset)
    self.cut_from_end(self.epochs, self.starts, end_offset)
    return self.entries


# ---- the file
def _not_flushed(self: File, entries: Iterable[EpochEntry]) -> None:
    beside = self.path + ".tmp"
    self.disk.write(beside, impl.encode(entries))
    self.disk.rename(beside, self.path)
    self.disk.flush_directory(self.directory)


def _in_place(self: File, entries: Iterable[EpochEntry]) -> None:
    self.disk.write(self.path, impl.encode(entries))


def _name_not_flushed(self: File, entries: Iterable[EpochEntry]) -> None:
    beside = self.path + ".tmp"
    self.disk.write(beside, impl.encode(entries))
    self.disk.flush(beside)
    self.disk.rename(beside, self.path)


def _announces_one_more(entries: Iterable[EpochEntry]) -> bytes:
    lines = [f"{e.epoch} {e.start_offset}\n" for e in entries]
    return "".join(("0\n", f"{len(lines) + 1}\n", *lines)).encode()


_decode = impl.decode


def _any_count(data: bytes) -> list[EpochEntry]:
    lines = data.decode().splitlines()
    if len(lines) >= 2 and lines[1].isdigit():
        lines[1] = str(len(lines) - 2)
    return _decode("\n".join(lines).encode())


def _any_version(data: bytes) -> list[EpochEntry]:
    return _decode(b"0" + data[1:] if data[:1].isdigit() else data)


def _sorts(data: bytes) -> list[EpochEntry]:
    return sorted(_decode(data))


# ---- the audit
def _without_held(self: audit.LeaderEpochCheck, segment: Any, chunk: Any) -> Iterable[Any]:
    if len(chunk.batches):
        base, last = chunk.base, chunk.last
        self._take(segment, chunk.batches[:-1], base[:-1], last[:-1], base[1:])
    return ()


def _no_outliers(runs: Any, entries: Any) -> set[int]:
    return set()


def _by_neighbours(runs: Any, entries: Any) -> set[int]:
    return {i for i in range(1, len(runs)) if runs[i].epoch > runs[i - 1].epoch}


def _known_by_any(run: audit.Run, entries: Any) -> bool:
    return any(e.epoch == run.epoch for e in entries)


# ---- the spec
def _never_truncates(state: spec.Cache, epoch: int, start_offset: int) -> spec.Cache | Refused:
    if epoch < 0 or start_offset < 0:
        return spec.NEGATIVE
    return state.written((*state.entries, spec.Entry(epoch, start_offset)))


def _of_the_spec(operation: str, body: Callable[..., spec.Cache | Refused]) -> Callable[[], Machine[Any]]:
    return lambda: with_fault(spec.machine, operation, body)


# ---- the models
class AssignsLater(model.Replica):
    @action("LEC-2", "LEC-4", who="leader")
    def lead(s, e: Epoch) -> None:
        require(s.not_below_the_latest(e), s.start[e] < 0)
        require(s.log_end == 0 or s.log[s.log_end - 1] <= e)
        s.next.start = {f: s.log_end if f == e else -1 if s.start[f] == s.log_end else s.start[f] for f in range(E + 1)}


class LeavesNoTrace(model.Replica):
    @action("LEC-4", "LEC-19", "LEC-20", who="leader or follower")
    def append(s, e: Epoch) -> None:
        require(s.log_end < L, s.not_below_the_latest(e), s.log_end == 0 or s.log[s.log_end - 1] <= e)
        s.next.log[s.log_end] = e
        s.next.log_end = s.log_end + 1


class KeepsTheConflicting(model.Replica):
    @action("LEC-5", "LEC-7", who="follower")
    def truncate(s, o: Offset) -> None:
        require(s.log_start <= o, o <= s.log_end)
        s.next.log_end = o
        s.next.known = min(s.known, o)


class ForgetsTheFirst(model.Replica):
    @action("LEC-6", "LEC-7", who="retention, DeleteRecords")
    def raise_start(s, o: Offset) -> None:
        require(s.log_start < o, o <= s.log_end)
        s.next.log_start = o
        s.next.known = max(s.known, o)
        s.next.start = {e: -1 if s.start[e] >= 0 and s.start[e] < o else s.start[e] for e in range(E + 1)}


class LoadsAsItIs(model.Replica):
    @action("LEC-9", "LEC-21", who="crash")
    def restart(s, first: Offset, end: Offset) -> None:
        require(first <= s.log_start, first <= end, end <= s.log_end)
        s.next.log_start = first
        s.next.log_end = end
        s.next.known = min(s.known, end)
        s.next.start = s.stored


class AppendsAnything(model.Replica):
    @action("LEC-4", "LEC-19", "LEC-20", who="leader or follower")
    def append(s, e: Epoch) -> None:
        require(s.log_end < L, s.not_below_the_latest(e))
        after = {
            f: s.start[f] if s.is_latest(e) else s.log_end if f == e else -1 if s.start[f] == s.log_end else s.start[f]
            for f in range(E + 1)
        }
        s.next.start = after
        if FIXED or not s.is_latest(e):
            s.next.stored = after
        s.next.log[s.log_end] = e
        s.next.log_end = s.log_end + 1


MUTANTS = [
    of_impl(
        "contradictions stay",
        "LEC-1 LEC-2",
        "an epoch is put behind entries that begin later; one that is no higher is passed over",
        _cache(_assign=_keeps_what_contradicts),
        "KAFKA-7415",
    ),
    of_impl(
        "only offsets contradict",
        "LEC-1 LEC-2",
        "entries with a higher epoch than the new one stay",
        _cache(_assign=_only_by_offset),
        "KAFKA-7415",
    ),
    of_impl("an epoch is reassigned", "LEC-2", "the latest epoch moves with each batch", _cache(_assign=_reassigns)),
    of_impl("negative numbers are passed over", "LEC-3", "not refused", _cache(_assign=_takes_anything)),
    of_impl("assigned later", "LEC-4", "the file follows when there is time", _cache(assign=_assigns_later)),
    of_impl(
        "the end keeps its entry",
        "LEC-5",
        "an entry at the new end stays: of a leader whose records were cut off",
        _cache(cut_from_end=staticmethod(_cuts_above)),
    ),
    of_impl(
        "the first entry goes",
        "LEC-6",
        "the records from the log start on are of no epoch",
        _cache(cut_from_start=staticmethod(_drops_the_first)),
    ),
    of_impl(
        "the first entry does not move",
        "LEC-6",
        "it begins below the log start",
        _cache(cut_from_start=staticmethod(_moves_no_entry)),
    ),
    of_impl(
        "the first entry moves down",
        "LEC-6",
        "an entry above the log start is moved to it",
        _cache(cut_from_start=staticmethod(_moves_any)),
    ),
    of_impl(
        "an old copy is written",
        "LEC-7",
        "what is written are the entries of the moment of the truncation",
        _cache(truncate_from_end=_schedules_a_copy),
        "KAFKA-15046",
    ),
    of_impl("truncations are not written", "LEC-7", "ever", _cache(truncate_from_end=_never_writes)),
    of_impl(
        "cleared in memory", "LEC-8", "the file keeps its entries", _cache(clear_and_flush=_clears_memory), "KAFKA-7601"
    ),
    of_impl(
        "the requested epoch is answered",
        "LEC-10",
        "the end offset is not told to be of a lower epoch",
        _cache(end_offset_for=_without_the_epoch),
        "KAFKA-6361",
    ),
    of_impl(
        "nothing is known below the first epoch",
        "LEC-10",
        "not the start of the first entry",
        _cache(end_offset_for=_unknown_below),
        "KAFKA-7415",
    ),
    of_impl(
        "unknown epochs end with the log",
        "LEC-12 LEC-11",
        "an epoch above the latest one is answered with the log's end",
        _cache(end_offset_for=_end_of_the_log),
    ),
    of_impl(
        "an epoch begins one later",
        "LEC-13",
        "its first offset is the one before's",
        _cache(epoch_for_offset=_after_it),
    ),
    of_impl("previous or equal", "LEC-14", "an epoch precedes itself", _cache(previous_epoch=_previous_or_equal)),
    of_impl("the range is cut out", "LEC-15", "and the entries with it", _cache(entries_in_range=_cuts_for_good)),
    of_impl(
        "content not flushed",
        "LEC-18 LEC-4",
        "renamed over the old file before it is on the disk",
        _file(write=_not_flushed),
        "KAFKA-16541",
    ),
    of_impl("written in place", "LEC-18", "not beside, not flushed", _file(write=_in_place)),
    of_impl("name not flushed", "LEC-18 LEC-4", "the rename may be undone", _file(write=_name_not_flushed)),
    of_impl("count line wrong", "LEC-16", "one entry too many announced", _patched(encode=_announces_one_more)),
    of_impl("any count will do", "LEC-17", "the number of entries is not compared", _patched(decode=_any_count)),
    of_impl("any version will do", "LEC-17", "a file of another version is read", _patched(decode=_any_version)),
    of_impl(
        "loaded in order", "LEC-9 LEC-17", "lines are sorted, not assigned one after the other", _patched(decode=_sorts)
    ),
    of_audit(
        "audit: chunks forget",
        "LEC-20",
        "the last batch of each chunk is not looked at",
        lambda: _audit(chunk=_without_held),
    ),
    of_audit(
        "audit: falls pass",
        "LEC-19",
        "no batch is ever left out",
        _patched(audit, outliers_of=_no_outliers),
    ),
    of_audit(
        "audit: rises are falls",
        "LEC-19",
        "a batch of a higher epoch than the one before is the odd one",
        _patched(audit, outliers_of=_by_neighbours),
    ),
    of_audit(
        "audit: any entry will do",
        "LEC-20",
        "an epoch is known if it has an entry, wherever",
        _patched(audit, known=_known_by_any),
    ),
    of_audit(
        "audit: nothing is left over",
        "LEC-21",
        "entries outside the log are not looked at",
        lambda: _audit(_left_over=lambda self: iter(())),
    ),
    Mutant(
        "spec: nothing is ever dropped",
        ("LEC-1", "LEC-2"),
        "an assignment only adds",
        "spec",
        _of_the_spec("assign", _never_truncates),
    ),
    of_model("Replica: assigned in memory", "LEC-4", "a leader's epoch is not in the file", lambda: AssignsLater),
    of_model(
        "Replica: followers assign nothing",
        "LEC-4 LEC-20",
        "entries come with leadership alone",
        lambda: LeavesNoTrace,
    ),
    of_model("Replica: cut without entries", "LEC-5 LEC-11", "the entries stay", lambda: KeepsTheConflicting),
    of_model("Replica: the first entry goes", "LEC-6 LEC-20", "and with it the start's epoch", lambda: ForgetsTheFirst),
    of_model("Replica: loaded as it is", "LEC-9 LEC-10", "what was cut away is back", lambda: LoadsAsItIs),
    of_model("Replica: epochs fall", "LEC-19", "a record of a lower epoch is appended", lambda: AppendsAnything),
]
"""Faults written by hand."""


def _audit(**methods: Any) -> Driver:
    faulty = type("Faulty", (audit.LeaderEpochCheck,), methods)
    return _patched(audit, LeaderEpochCheck=faulty)()


_COMPARED = "no claim of the model notices, but the comparison with the spec in every state of it does"
_ELSEWHERE = "fewer steps: a truncation to another offset, a crash and what is appended then lead to the same states"
SURVIVORS = {
    "Entries.truncate_from_end: guard 1, off by one": _COMPARED,
    "Entries.truncate_from_end: guard 1, off by one (2)": _COMPARED,
    "Entries.truncate_from_end: no effect 1": _COMPARED,
    "Entries.truncate_from_end: effect 1, branches swapped": _COMPARED,
    "Entries.truncate_from_end: effect 1, off by one": _COMPARED,
    "Entries.truncate_from_end: effect 1, off by one (2)": _COMPARED,
    "Entries.truncate_from_start: guard 1, off by one": _COMPARED,
    "Entries.truncate_from_start: guard 1, off by one (2)": _COMPARED,
    "Entries.reopen: no effect 2": _COMPARED,
    "Replica.lead: guard 3, off by one (2)": "fewer steps: an epoch that has a record may begin by an append too",
    "Replica.truncate: guard 1, off by one": _ELSEWHERE,
    "Replica.truncate: guard 2, off by one": _ELSEWHERE,
    "Replica.raise_start: guard 2, off by one": _ELSEWHERE,
    "Replica.restart: guard 1, off by one": _ELSEWHERE,
    "Replica.restart: guard 2, off by one": _ELSEWHERE,
    "Replica.restart: guard 3, off by one": _ELSEWHERE,
    "Replica.restart: effect 4, off by one (8)": (
        "of a log without records: that its one entry goes, instead of moving, breaks no claim of records"
    ),
}
"""Generated faults of the models that nobody can notice, and why."""


# ---- faults of range, boundary, depth, configuration and rare state
def _takes_epochs_of_16_bits(self: Cache, epoch: int, start_offset: int) -> bool:
    return Cache._assign(self, epoch if epoch < 0 else epoch % 2**16, start_offset)


def _ends_in_32_bits(self: Cache, requested: int, log_end: int) -> EpochEnd:
    right = Cache.end_offset_for(self, requested, log_end)
    return EpochEnd(right.epoch, signed(right.end_offset, 32))


def _knows_no_greatest(self: Cache, requested: int, log_end: int) -> EpochEnd:
    return UNKNOWN if requested == 2**31 - 1 else Cache.end_offset_for(self, requested, log_end)


def _counts_up_to_the_next(self: Cache, epoch: int) -> int | None:
    higher = bisect_left(self.epochs, signed(epoch + 1, 32))
    return self.epochs[higher] if higher < len(self.epochs) else None


def _keeps_all_at_zero(epochs: list[int], starts: list[int], end_offset: int) -> bool:
    return Cache.cut_from_end(epochs, starts, end_offset if end_offset else -1)


def _loses_the_first_as_it_grows(self: Cache, epoch: int, start_offset: int) -> bool:
    """The columns have room for eight entries; growing them copies all but the first."""
    full = len(self.epochs) == 8
    changed = Cache._assign(self, epoch, start_offset)
    if full and len(self.epochs) > 8:
        del self.epochs[0], self.starts[0]
    return changed


def _writes_what_did_not_change(self: Cache, epoch: int, start_offset: int) -> None:
    self._assign(epoch, start_offset)
    self.flush()


def _searches_eight(self: Cache, offset: int) -> int | None:
    """The latest eight entries are searched."""
    begun = bisect_right(self.starts[-8:], offset)
    return self.epochs[-8:][begun - 1] if begun else None


def _fits_from_the_start(self: Cache, log_start: int, log_end: int) -> None:
    self.truncate_from_start(log_start)
    self.truncate_from_end(log_end)


def _as_doubles(entries: Iterable[EpochEntry]) -> bytes:
    return _encode([EpochEntry(e.epoch, int(float(e.start_offset))) for e in entries])


def _in_the_order_of_text(entries: Iterable[EpochEntry]) -> bytes:
    return _encode(sorted(entries, key=lambda e: str(e.epoch)))


def _the_latest_five(entries: Iterable[EpochEntry]) -> bytes:
    return _encode([*entries][-5:])


def _none_announced(data: bytes) -> list[EpochEntry]:
    """Where none is announced the count is not compared."""
    lines = data.decode().splitlines()
    return _any_count(data) if lines[1:2] == ["0"] else _decode(data)


_encode = impl.encode


class _OneWaits(impl_driver.Driver):
    """A write forgets what was scheduled, as if it had been that."""

    def assign(self, epoch: int, start_offset: int) -> None:
        before = list(self.subject.entries)
        self.subject.assign(epoch, start_offset)
        if before != self.subject.entries:
            self.waiting = []


RARE = [
    of_impl("epochs of 16 bits", "LEC-2", "epoch 2^16 is 0", _cache(_assign=_takes_epochs_of_16_bits)),
    of_impl("ends of 32 bits", "LEC-10", "an end offset above 2^31 - 1 wraps", _cache(end_offset_for=_ends_in_32_bits)),
    of_impl(
        "the greatest epoch", "LEC-10 LEC-12", "2^31 - 1 stands for no epoch", _cache(end_offset_for=_knows_no_greatest)
    ),
    of_impl(
        "an epoch and one",
        "LEC-14",
        "what follows 2^31 - 1 is the first entry",
        _cache(next_epoch=_counts_up_to_the_next),
    ),
    of_impl(
        "nothing is cut at 0",
        "LEC-5 LEC-9",
        "an end at 0 is no end",
        _cache(cut_from_end=staticmethod(_keeps_all_at_zero)),
    ),
    of_impl(
        "eight, and the first is lost",
        "LEC-2",
        "the columns grow without it",
        _cache(_assign=_loses_the_first_as_it_grows),
    ),
    of_impl(
        "eight are searched", "LEC-13", "an epoch further back is unknown", _cache(epoch_for_offset=_searches_eight)
    ),
    of_impl(
        "written all the same",
        "LEC-4 LEC-7",
        "an assignment that changes nothing writes what a truncation left",
        _cache(assign=_writes_what_did_not_change),
    ),
    of_impl("one write for both", "LEC-7", "an assignment cancels the write that is scheduled", _OneWaits),
    of_impl("fitted from the start", "LEC-9", "a log of no record loses its epoch", _cache(fit=_fits_from_the_start)),
    of_impl("offsets as doubles", "LEC-16", "the file has them rounded", _patched(encode=_as_doubles)),
    of_impl("sorted as text", "LEC-16", "epoch 10 stands before 9", _patched(encode=_in_the_order_of_text)),
    of_impl("the latest five", "LEC-16 LEC-4", "the file has no sixth entry", _patched(encode=_the_latest_five)),
    of_impl("none announced", "LEC-17", "behind a count of 0 anything may stand", _patched(decode=_none_announced)),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE

UNSEEN: dict[str, str] = {
    "the greatest epoch": "not found yet: nothing noticed it, nor the judge in 20,000 calls",
    "eight are searched": "not found yet: nothing noticed it, nor the judge in 20,000 calls",
}
