"""Faults of the producer state: Kafka's own bugs, and slips that anyone may make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kafkaspec.contract.machine import Machine, Step
from kafkaspec.impl.storage import producer_state as impl
from kafkaspec.impl.storage import producer_state_driver
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.storage import producer_state as model
from kafkaspec.models.storage.producer_state import Epoch, Kind, L, Offset, Producer, S, Sequence
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import Mutant, with_fault
from kafkaspec.spec.common.producers import NO_GUARD, Duplicate, OpenedTransactions, State
from kafkaspec.spec.storage import producer_state as spec

Stale = type[impl.ProducerStateError]

# faults of the spec


def _fault(operation: str, body: Callable[..., Any]) -> Callable[[], Machine[State]]:
    return lambda: with_fault(spec.machine, operation, body)


def _sound(operation: str) -> Callable[..., Any]:
    return spec.machine.operations[operation].body


def _appends_duplicates(state: State, guard: int = NO_GUARD, **a: Any) -> Step[State, OpenedTransactions | Duplicate]:
    there = state.known(a["producer_id"]).duplicate(a["producer_epoch"], a["first_seq"], a["last_seq"])
    if a["origin"] == "CLIENT" and there is not None:
        appended: Step[State, OpenedTransactions | Duplicate] = _sound("appendDataBatch")(
            state, **{**a, "origin": "REPLICATION"}
        )
        return appended
    produced: Step[State, OpenedTransactions | Duplicate] = _sound("produce")(state, guard=guard, **a)
    return produced


def _any_producer_s_transaction_is_stable(state: State, high_watermark: int, log_start_offset: int = 0) -> int:
    return high_watermark


def _commits_become_stable_at_the_marker(state: State, high_watermark: int) -> State:
    return replace(state, ended={f: e for f, e in state.ended.items() if e.last_offset > high_watermark})


def _snapshots_the_future(state: State) -> State:
    after: State = _sound("takeSnapshot")(state)
    if after == state:
        return after
    later = {i: p._replace(last_timestamp=p.last_timestamp + 1) for i, p in state.saved.items()}
    return replace(after, snapshots={**after.snapshots, state.end: later})


def _forgets_open_transactions(state: State, current_time_ms: int) -> State:
    limit = current_time_ms - state.config.producer_id_expiration_ms
    return replace(state, producers={i: p for i, p in state.producers.items() if p.last_timestamp > limit})


def _only_the_clock_s_half(state: State, ms: int) -> State:
    return replace(state, now=state.now + ms // 2)


# faults of the implementation


def _driver(**methods: Any) -> Callable[[], producer_state_driver.Driver]:
    """The driver with some of its manager's methods replaced."""
    manager = type("Manager", (impl.ProducerStateManager,), methods)
    return lambda: type("Faulty", (producer_state_driver.Driver,), {"Manager": manager})()


def _appending(**methods: Any) -> Callable[[], producer_state_driver.Driver]:
    return _driver(Appending=type("Appending", (impl.Append,), methods))


def _entry(**methods: Any) -> Callable[[], producer_state_driver.Driver]:
    return _driver(Entry=type("Entry", (impl.ProducerEntry,), {"__slots__": (), **methods}))


def _calling(**methods: Any) -> Callable[[], producer_state_driver.Driver]:
    return lambda: type("Faulty", (producer_state_driver.Driver,), methods)()


def _shares_the_batches(entry: impl.ProducerEntry) -> impl.ProducerEntry:
    copy = impl.ProducerEntry.copy_without_batches(entry)
    copy.batches = entry.batches
    return copy


def _moves_a_copy(entry: impl.ProducerEntry, other: impl.ProducerEntry) -> None:
    if entry.batches is not other.batches:
        impl.ProducerEntry.update(entry, other)
        return
    entry.epoch, entry.coordinator_epoch = other.epoch, other.coordinator_epoch
    entry.transaction, entry.last_timestamp = other.transaction, other.last_timestamp


class _Subtracts(impl.BatchMetadata):
    __slots__ = ()

    @property
    def first_seq(self) -> int:
        return self.last_seq - self.offset_delta


def _keeps_its_timestamp(entry: impl.ProducerEntry, epoch: int, coordinator_epoch: int, timestamp: int) -> None:
    before = entry.last_timestamp
    impl.ProducerEntry.end_transaction(entry, epoch, coordinator_epoch, timestamp)
    entry.last_timestamp = before


def _checks_replicas(append: impl.Append, epoch: int, version: int, stale: Stale = impl.StaleEpoch) -> None:
    if epoch < append.updated.epoch:
        raise stale
    impl.Append._check_epoch(append, epoch, version, stale)


def _refuses_a_marker_again(append: impl.Append, epoch: int, version: int, stale: Stale = impl.StaleEpoch) -> None:
    if version >= 2 and epoch <= append.updated.epoch and append.origin != impl.REPLICATION:
        raise stale
    impl.Append._check_epoch(append, epoch, version, stale)


def _old_markers_at_version_2(append: impl.Append, epoch: int, version: int, stale: Stale = impl.StaleEpoch) -> None:
    impl.Append._check_epoch(append, epoch, min(version, 1), stale)


def _fences_clients_alone(append: impl.Append, epoch: int, version: int, stale: Stale = impl.StaleEpoch) -> None:
    if append.origin == impl.CLIENT:
        impl.Append._check_epoch(append, epoch, version, stale)


def _any_sequence_of_a_new_epoch(append: impl.Append, epoch: int, first_seq: int) -> None:
    if epoch == append.updated.epoch:
        impl.Append._check_sequence(append, epoch, first_seq)


def _any_sequence_after_a_marker(append: impl.Append, epoch: int, first_seq: int) -> None:
    if append.current.batches or epoch != append.updated.epoch:
        impl.Append._check_sequence(append, epoch, first_seq)


def _unknown_ones_begin_at_zero(append: impl.Append, epoch: int, first_seq: int) -> None:
    if append.current.epoch == -1 and first_seq != 0:
        raise impl.AboveVerification
    impl.Append._check_sequence(append, epoch, first_seq)


def _mixes(append: impl.Append, *numbers: Any) -> None:
    *before, transactional = numbers
    sound: Callable[..., None] = impl.Append.data
    sound(append, *before, transactional or append.updated.transaction is not None)


def _takes_any_coordinator(append: impl.Append, aborted: bool, epoch: int, coordinator: int, *a: Any) -> Any:
    append.updated.coordinator_epoch = min(append.updated.coordinator_epoch, coordinator)
    return impl.Append.marker(append, aborted, epoch, coordinator, *a)


def _keeps_six(entry: impl.ProducerEntry, batch: impl.BatchMetadata) -> None:
    if len(entry.batches) == impl.BATCHES + 1:
        entry.batches.popleft()
    entry.batches.append(batch)


def _knows_the_last_alone(entry: impl.ProducerEntry, epoch: int, first: int, last: int) -> Any:
    there = impl.ProducerEntry.duplicate(entry, epoch, first, last)
    return there if there is not None and there is entry.batches[-1] else None


def _forgets_half(manager: impl.ProducerStateManager) -> None:
    manager.producers.clear()
    manager.unreplicated.clear()


def _keeps_low_snapshots(manager: impl.ProducerStateManager, log_start: int, log_end: int, now: int) -> None:
    impl.ProducerStateManager.truncate_and_reload(manager, -1, log_end, now)
    if not manager.producers and not manager.snapshots:
        manager.end_offset = manager.last_snapshot = max(log_start, 0)


def _removes_every_stray(manager: impl.ProducerStateManager, bases: list[int]) -> None:
    manager.load_snapshots()
    for x in [x for x in manager.snapshots if x not in bases]:
        manager._delete(x)


def _undecided_alone(manager: impl.ProducerStateManager) -> int | None:
    return manager.first_undecided


def _marker_s_own_end(manager: impl.ProducerStateManager, completed: impl.CompletedTransaction) -> int:
    return completed.last_offset + 1


def _its_own_too(manager: impl.ProducerStateManager, completed: impl.CompletedTransaction) -> int:
    return min(manager.ongoing)


def _expires_whoever_is_idle(manager: impl.ProducerStateManager, entry: impl.ProducerEntry, now: int) -> bool:
    return now - entry.last_timestamp > manager.expiration_ms


def _snapshots_again(manager: impl.ProducerStateManager, flush: bool = True) -> int | None:
    manager.last_snapshot = min(manager.last_snapshot, manager.end_offset - 1)
    return impl.ProducerStateManager.take_snapshot(manager, flush)


def _loads_the_idle(manager: impl.ProducerStateManager, log_start: int, now: int) -> None:
    impl.ProducerStateManager._load(manager, log_start, 0)


def _loads_no_transactions(manager: impl.ProducerStateManager, log_start: int, now: int) -> None:
    impl.ProducerStateManager._load(manager, log_start, now)
    manager.ongoing.clear()


def _stops_at_a_bad_snapshot(manager: impl.ProducerStateManager, log_start: int, now: int) -> None:
    latest = max(manager.snapshots, default=None)
    if latest is not None:
        try:
            impl.decode(manager.disk.read(manager.path(latest)))
        except impl.SnapshotUnreadable:
            manager._delete(latest)
            manager.end_offset = manager.last_snapshot = log_start
            return
    impl.ProducerStateManager._load(manager, log_start, now)


def _keeps_snapshots(manager: impl.ProducerStateManager, offset: int) -> None:
    manager._forget()
    manager.last_snapshot = 0
    manager.end_offset = offset


def _leaves_the_end(manager: impl.ProducerStateManager, offset: int) -> None:
    end = manager.end_offset
    impl.ProducerStateManager.on_log_start_offset_incremented(manager, offset)
    manager.end_offset = end


def _forgets_deleted_producers(manager: impl.ProducerStateManager, offset: int) -> None:
    for i, p in list(manager.producers.items()):
        if p.transaction is None and p.batches and p.batches[-1].last_offset < offset:
            del manager.producers[i]
    impl.ProducerStateManager.on_log_start_offset_incremented(manager, offset)


def _late_at_once(manager: impl.ProducerStateManager, now: int) -> bool:
    first = manager.first_undecided
    last = manager.producers[manager.ongoing[first]].last_timestamp if first is not None else -1
    return last > 0 and now - last > manager.timeout_ms


def _highest_sequence(
    manager: impl.ProducerStateManager, i: int, sequence: int, epoch: int, bump: bool, now: int
) -> Any:
    v = impl.ProducerStateManager.verification(manager, i, sequence, epoch, bump, now)
    if epoch == v.epoch:
        v.lowest_sequence = max(v.lowest_sequence, sequence)
    return v


def _one_guard_for_all(manager: impl.ProducerStateManager, i: int, *a: Any) -> Any:
    v = impl.ProducerStateManager.verification(manager, i, *a)
    v.guard = manager.guards = 1
    return v


def _ends_every_verification(driver: producer_state_driver.Driver, producer_id: int, *a: Any) -> Any:
    answer = driver.append_end_txn_marker(producer_id, *a)
    driver.subject.verifications.pop(producer_id, None)
    return answer


def _emptied_without_epoch(driver: producer_state_driver.Driver, *a: Any) -> Any:
    return replace(producer_state_driver.Driver.read_emptied_marker(driver, *a), epoch=-1, last_timestamp=-1)


def _little_endian_crc(driver: producer_state_driver.Driver, entries: Any) -> Any:
    data = bytes.fromhex(producer_state_driver.Driver.write_snapshot(driver, entries))
    return (data[:2] + data[5:1:-1] + data[6:]).hex()


def _counts_no_crc(driver: producer_state_driver.Driver, file: str) -> Any:
    data = bytes.fromhex(file)
    whole = (len(data) - impl.HEAD_SIZE) // impl.ENTRY_SIZE
    if len(data) >= impl.HEAD_SIZE and data[:2] == b"\0\1" and 0 <= int.from_bytes(data[6:10], "big") <= whole:
        n = int.from_bytes(data[6:10], "big")
        return [list(impl._ENTRY.unpack_from(data, impl.HEAD_SIZE + i * impl.ENTRY_SIZE)) for i in range(n)]
    return producer_state_driver.Driver.read_snapshot(driver, file)


# faults of the models


def _snapshot_holds_the_future() -> LoadedModel:
    class Log(model.Log):
        @action("PSM-18", who="log")
        def snapshot(s) -> None:
            require(s.at == s.end, s.saved_at < s.end, s.end > 1)
            s.next.saved_at = s.at - 1
            s.next.saved_epoch = s.epoch
            s.next.saved_following = s.following
            s.next.saved_opened = s.opened

    return load(Log)


def _snapshot_stays_after_truncation() -> LoadedModel:
    class Log(model.Log):
        @action("PSM-19", "PSM-20", who="replication")
        def truncate(s, x: Offset) -> None:
            require(s.high <= x, x < s.end, s.saved_at > x)
            s.next.end = x
            s.next.who = {y: s.who[y] if y < x else None for y in range(L + 1)}
            s.next.kind = {y: s.kind[y] if y < x else Kind.NOTHING for y in range(L + 1)}
            s.next.at = x
            s.next.loaded = 0
            s.next.ended = {y: None for y in range(L + 1)}

    return load(Log)


def _old_epochs_are_accepted() -> LoadedModel:
    class Producers(model.Producers):
        @action("PSM-1", "PSM-3", "PSM-5", "PSM-6", "PSM-8", "PSM-9", who="producer")
        def append(s, p: Producer, e: Epoch, q: Sequence, transactional: bool) -> None:
            require(s.end < L, q < S)
            require(q == s.following[p] if s.epoch[p] == e else q == 0)
            require(transactional or s.opened[p] is None)
            s.next.epoch[p] = e
            s.next.following[p] = q + 1
            if transactional and s.opened[p] is None:
                s.next.opened[p] = s.end
            s.next.end = s.end + 1

    return load(Producers)


def _a_crash_reads_nothing_again() -> LoadedModel:
    class Log(model.Log):
        @action("PSM-28", "PSM-20", who="environment")
        def crash(s, readable: bool) -> None:
            s.reload(readable)
            s.next.at = s.end
            if not readable:
                s.forget_snapshot()

    return load(Log)


def _what_ends_is_stable() -> LoadedModel:
    class Log(model.Log):
        @action("PSM-10", "PSM-11", who="coordinator")
        def mark(s, p: Producer, e: Epoch) -> None:
            require(s.at == s.end, s.end < L)
            require(s.epoch[p] is None or s.epoch[p] <= e)  # type: ignore[operator]
            s.write(p, Kind.MARKER, e, 0)
            s.take(p, Kind.MARKER, e, 0, s.end)
            s.next.ended = {f: None for f in range(L + 1)}
            s.next.decided = {
                x: s.end
                if x < s.end and s.who[x] == p and s.kind[x] == Kind.TRANSACTIONAL and s.decided[x] is None
                else s.decided[x]
                for x in range(L + 1)
            }

    return load(Log)


def _m(
    name: str, clauses: tuple[str, ...], what: str, layer: Any, make: Callable[[], Any], bug: str | None = None
) -> Mutant:
    return Mutant(name, clauses, what, layer, make, bug)


MUTANTS = [
    _m(
        "duplicates are appended",
        ("PSM-2",),
        "a batch that is there already is written once more",
        "spec",
        _fault("produce", _appends_duplicates),
    ),
    _m(
        "everything is stable",
        ("PSM-14",),
        "the last stable offset is the high watermark",
        "spec",
        _fault("lastStableOffset", _any_producer_s_transaction_is_stable),
    ),
    _m(
        "stable at the marker",
        ("PSM-15",),
        "an end counts as replicated when the high watermark reaches its marker",
        "spec",
        _fault("onHighWatermarkUpdated", _commits_become_stable_at_the_marker),
    ),
    _m(
        "a snapshot of something else",
        ("PSM-18",),
        "what a snapshot holds is not what the records below make",
        "spec",
        _fault("takeSnapshot", _snapshots_the_future),
    ),
    _m(
        "open transactions expire",
        ("PSM-17",),
        "an idle producer is forgotten although its transaction is open",
        "spec",
        _fault("removeExpiredProducers", _forgets_open_transactions),
    ),
    _m("a slow clock", ("PSM-29",), "the clock moves by half", "spec", _fault("advance", _only_the_clock_s_half)),
    _m(
        "the pending entry is the live one",
        ("PSM-18", "PSM-3"),
        "an append that is being checked shares its batches with "
        "the table: a refusal, or a roll in between, shows what was not written",
        "impl",
        _entry(copy_without_batches=_shares_the_batches, update=_moves_a_copy),
        "KAFKA-6683",
    ),
    _m(
        "first sequence by subtraction",
        ("PSM-4",),
        "a batch that wraps begins below 0",
        "impl",
        _appending(Batch=_Subtracts),
        "KAFKA-7692",
    ),
    _m(
        "markers do not count as life",
        ("PSM-10", "PSM-17"),
        "a marker leaves the last timestamp as it was, and the producer expires at once",
        "impl",
        _entry(end_transaction=_keeps_its_timestamp),
        "KAFKA-9144",
    ),
    _m(
        "replicas check too",
        ("PSM-8",),
        "a follower refuses what its leader took",
        "impl",
        _appending(_check_epoch=_checks_replicas),
        "KAFKA-6003",
    ),
    _m(
        "a marker is not written again",
        ("PSM-11",),
        "at version 2 a coordinator that repeats a marker is refused for ever",
        "impl",
        _appending(_check_epoch=_refuses_a_marker_again),
        "KAFKA-19999",
    ),
    _m(
        "version 2 as version 1",
        ("PSM-11",),
        "a late marker of the data's own epoch ends the next transaction",
        "impl",
        _appending(_check_epoch=_old_markers_at_version_2),
    ),
    _m(
        "coordinators are not fenced",
        ("PSM-6",),
        "a coordinator may write with an old epoch",
        "impl",
        _appending(_check_epoch=_fences_clients_alone),
    ),
    _m(
        "a new epoch begins anywhere",
        ("PSM-5",),
        "the first sequence of a new epoch is not looked at",
        "impl",
        _appending(_check_sequence=_any_sequence_of_a_new_epoch),
    ),
    _m(
        "any sequence after a marker",
        ("PSM-3",),
        "where a marker alone is left of a producer, any sequence goes",
        "impl",
        _appending(_check_sequence=_any_sequence_after_a_marker),
        "KAFKA-7298",
    ),
    _m(
        "unknown producers begin at zero",
        ("PSM-7",),
        "a producer whose records are deleted cannot go on",
        "impl",
        _appending(_check_sequence=_unknown_ones_begin_at_zero),
        "KAFKA-7190",
    ),
    _m(
        "plain batches in a transaction",
        ("PSM-9",),
        "a batch that is not transactional joins the open one",
        "impl",
        _appending(data=_mixes),
    ),
    _m(
        "any coordinator",
        ("PSM-12",),
        "a coordinator that was replaced still writes markers",
        "impl",
        _appending(marker=_takes_any_coordinator),
    ),
    _m("six batches", ("PSM-1",), "one too many is retained", "impl", _entry(_add=_keeps_six)),
    _m(
        "the last batch alone",
        ("PSM-2",),
        "of the retained batches the last alone is known as a duplicate",
        "impl",
        _entry(duplicate=_knows_the_last_alone),
    ),
    _m(
        "truncation leaves transactions",
        ("PSM-19", "PSM-13"),
        "open transactions above the new end stay open, and with them the first unstable offset",
        "impl",
        _driver(_forget=_forgets_half),
        "KAFKA-12153",
    ),
    _m(
        "snapshots below the log start",
        ("PSM-19",),
        "they are kept, and loaded",
        "impl",
        _driver(truncate_and_reload=_keeps_low_snapshots),
        "KAFKA-9105",
    ),
    _m(
        "the shutdown's snapshot is a stray",
        ("PSM-23",),
        "it is deleted, and the log read from far below",
        "impl",
        _driver(remove_stray_snapshots=_removes_every_stray),
        "KAFKA-5829",
    ),
    _m(
        "decided is stable",
        ("PSM-13", "PSM-15"),
        "transactions that ended above the high watermark count as stable",
        "impl",
        _driver(first_unstable=property(_undecided_alone)),
    ),
    _m(
        "the index looks no further than the marker",
        ("PSM-16",),
        "other open transactions are forgotten in an entry",
        "impl",
        _driver(last_stable_offset_of=_marker_s_own_end),
    ),
    _m(
        "the index counts the transaction itself",
        ("PSM-16",),
        "an entry's last stable offset is its own first",
        "impl",
        _driver(last_stable_offset_of=_its_own_too),
    ),
    _m(
        "expiry looks at the time alone",
        ("PSM-17",),
        "a millisecond late, and open transactions too",
        "impl",
        _driver(is_expired=_expires_whoever_is_idle),
    ),
    _m(
        "snapshots are written again",
        ("PSM-18",),
        "whether or not the state has moved on",
        "impl",
        _driver(take_snapshot=_snapshots_again),
    ),
    _m(
        "expired producers are loaded",
        ("PSM-20",),
        "a snapshot brings back who was forgotten",
        "impl",
        _driver(_load=_loads_the_idle),
    ),
    _m(
        "open transactions are not loaded",
        ("PSM-20", "PSM-28"),
        "after a restart the last stable offset passes them",
        "impl",
        _driver(_load=_loads_no_transactions),
    ),
    _m(
        "an unreadable snapshot ends the search",
        ("PSM-20", "PSM-25"),
        "earlier ones are not tried",
        "impl",
        _driver(_load=_stops_at_a_bad_snapshot),
    ),
    _m(
        "full truncation leaves snapshots",
        ("PSM-21",),
        "they are loaded into the new log",
        "impl",
        _driver(truncate_fully_and_start_at=_keeps_snapshots),
    ),
    _m(
        "the log start passes the state",
        ("PSM-22",),
        "the state stands below the log",
        "impl",
        _driver(on_log_start_offset_incremented=_leaves_the_end),
    ),
    _m(
        "deleted records take their producer along",
        ("PSM-22",),
        "as before KIP-360: the producer goes on and is unknown",
        "impl",
        _driver(on_log_start_offset_incremented=_forgets_deleted_producers),
        "KAFKA-7190",
    ),
    _m("late at once", ("PSM-29",), "without the five minutes", "impl", _driver(has_late_transaction=_late_at_once)),
    _m(
        "the highest sequence is kept",
        ("PSM-26",),
        "a lower one that is retried is then out of order for ever",
        "impl",
        _driver(verification=_highest_sequence),
    ),
    _m(
        "one guard for all",
        ("PSM-27",),
        "an answer to an old verification opens a new transaction",
        "impl",
        _driver(verification=_one_guard_for_all),
    ),
    _m(
        "every marker ends the verification",
        ("PSM-27",),
        "the end of the transaction before ends that of the next",
        "impl",
        _calling(end_transaction=_ends_every_verification),
    ),
    _m(
        "an emptied marker says nothing",
        ("PSM-31",),
        "its producer is known, without the epoch for which the batch was kept",
        "impl",
        _calling(read_emptied_marker=_emptied_without_epoch),
    ),
    _m(
        "the CRC the wrong way round",
        ("PSM-24",),
        "its bytes are little-endian",
        "impl",
        _calling(write_snapshot=_little_endian_crc),
    ),
    _m(
        "the CRC is not looked at",
        ("PSM-25",),
        "a damaged snapshot is loaded",
        "impl",
        _calling(read_snapshot=_counts_no_crc),
    ),
    _m(
        "snapshot of the future (model)",
        ("PSM-18", "PSM-28"),
        "a snapshot holds the record at its own offset",
        "model",
        _snapshot_holds_the_future,
        "KAFKA-6683",
    ),
    _m(
        "truncation leaves the state (model)",
        ("PSM-19",),
        "state and snapshot above the new end stay",
        "model",
        _snapshot_stays_after_truncation,
    ),
    _m(
        "old epochs are accepted (model)",
        ("PSM-6",),
        "a producer that was replaced goes on",
        "model",
        _old_epochs_are_accepted,
    ),
    _m(
        "nothing is read again (model)",
        ("PSM-28",),
        "after a crash the snapshot is taken for the whole state",
        "model",
        _a_crash_reads_nothing_again,
    ),
    _m(
        "what has ended is stable (model)",
        ("PSM-15",),
        "whether or not the end is replicated",
        "model",
        _what_ends_is_stable,
    ),
]

_LOWER = "the last stable offset is then lower than it might be; that it rises at last is no claim of the models"
_NOT_A_MARKER = "the marker's part of what the table does with a record, which an append never comes to"
_NOT_DATA = "the data's part of what the table does with a record, which a marker never comes to"
_BOTH = "a record is there exactly below the end: each of the two guards says what the other does"
_THE_SAME = "it writes what is there already"

_ANOTHER_WAY = "fewer steps, to the same states: a truncation down to the high watermark itself is seen in none"
_NOT_COUNTED = "fewer steps: how often a marker came, and with which version, is no part of the state"

SURVIVORS: Mapping[str, str] = {
    "Producers.mark: guard 3 negated": _NOT_COUNTED,
    "Producers.mark: guard 4, off by one": _NOT_COUNTED,
    "Producers.replicate: no effect 1": _LOWER,
    "Log.append: no effect 10": _NOT_A_MARKER,
    "Log.append: no effect 11": _NOT_A_MARKER,
    "Log.append: no effect 12": _NOT_A_MARKER,
    "Log.append: no effect 17": _THE_SAME,
    "Log.mark: no effect 4": _THE_SAME,
    "Log.mark: no effect 13": _NOT_DATA,
    "Log.mark: no effect 14": _NOT_DATA,
    "Log.truncate: guard 1, off by one": _ANOTHER_WAY,
    "Log.read: no guard 2": _BOTH,
}


# ---- faults of range, boundary, depth, configuration and rare state


def _keeps_four(entry: impl.ProducerEntry, batch: impl.BatchMetadata) -> None:
    if len(entry.batches) == impl.BATCHES - 1:
        entry.batches.popleft()
    entry.batches.append(batch)


class _WrapsUnsigned(impl.BatchMetadata):
    __slots__ = ()

    @property
    def first_seq(self) -> int:
        return (self.last_seq - self.offset_delta) % (2**31 - 1)


def _skips_zero(append: impl.Append, epoch: int, first_seq: int) -> None:
    """After 2^31 - 1 comes 1, as 0 is where an epoch begins."""
    last = append.updated.last_seq if append.updated.batches else append.current.last_seq
    if first_seq == 0 and last == impl.INT_MAX and epoch == append.updated.epoch:
        raise impl.NotTheNext
    impl.Append._check_sequence(append, epoch, first_seq)


def _no_greatest_epoch(append: impl.Append, epoch: int, version: int, stale: Stale = impl.StaleEpoch) -> None:
    opened = append.updated.transaction is not None and append.origin != impl.REPLICATION
    if version >= 2 and epoch == append.updated.epoch == impl.SHORT_MAX and opened:
        raise stale
    impl.Append._check_epoch(append, epoch, version, stale)


def _subtracts_epochs(append: impl.Append, epoch: int, version: int, stale: Stale = impl.StaleEpoch) -> None:
    """By the difference, in 16 bits."""
    if signed(epoch - append.updated.epoch, 16) < 0 and append.origin != impl.REPLICATION:
        raise stale
    impl.Append._check_epoch(append, epoch, version, stale)


def _has_times_as_doubles(entry: impl.ProducerEntry, epoch: int, batch: impl.BatchMetadata) -> None:
    impl.ProducerEntry.add_batch(entry, epoch, batch)
    entry.last_timestamp = int(float(batch.timestamp))


def _zero_is_none(entry: impl.ProducerEntry) -> impl.SnapshotEntry:
    whole = impl.ProducerEntry.snapshot(entry)
    return whole._replace(transaction=whole.transaction or -1)


def _late_in_32_bits(manager: impl.ProducerStateManager, now: int) -> bool:
    first = manager.first_undecided
    last = manager.producers[manager.ongoing[first]].last_timestamp if first is not None else -1
    return last > 0 and now - last > signed(manager.timeout_ms + impl.LATE_MS, 32)


def _late_after_the_default(manager: impl.ProducerStateManager, now: int) -> bool:
    timeout, manager.timeout_ms = manager.timeout_ms, 300_000
    try:
        return impl.ProducerStateManager.has_late_transaction(manager, now)
    finally:
        manager.timeout_ms = timeout


def _idle_in_32_bits(manager: impl.ProducerStateManager, entry: impl.ProducerEntry, now: int) -> bool:
    return entry.transaction is None and signed(now - entry.last_timestamp, 32) >= manager.expiration_ms


def _verified_for_the_timeout(manager: impl.ProducerStateManager, now: int) -> None:
    """Verifications are forgotten after the maximum transaction timeout."""
    known = {i: v for i, v in manager.verifications.items() if now - v.timestamp < manager.timeout_ms}
    impl.ProducerStateManager.remove_expired_producers(manager, now)
    manager.verifications = known


def _hashes_to_16_bits(manager: impl.ProducerStateManager, producer_id: int, origin: str) -> impl.Append:
    """Producers whose ids are alike in 16 bits are one."""
    same = (i for i in manager.producers if i % 2**16 == producer_id % 2**16)
    return impl.ProducerStateManager.prepare(manager, next(same, producer_id), origin)


def _replicates_one(manager: impl.ProducerStateManager, offset: int) -> None:
    """Of the ended transactions below the high watermark the first alone is forgotten."""
    for first in sorted(f for f, c in manager.unreplicated.items() if c.last_offset < offset)[:1]:
        del manager.unreplicated[first]


def _snapshots_two(manager: impl.ProducerStateManager, flush: bool = True) -> int | None:
    """A buffer has room for two producers."""
    every = manager.producers
    manager.producers = dict(list(every.items())[:2])
    try:
        return impl.ProducerStateManager.take_snapshot(manager, flush)
    finally:
        manager.producers = every


def _unstable_by_text(manager: impl.ProducerStateManager) -> int | None:
    return min((*manager.ongoing, *manager.unreplicated), key=str, default=None)


def _loads_by_text(manager: impl.ProducerStateManager, log_start: int, now: int) -> None:
    """The latest snapshot is the last of the names without their leading zeros."""
    latest = max(manager.snapshots, key=str, default=None)
    hidden = {x for x in manager.snapshots if latest is not None and x > latest}
    manager.snapshots -= hidden
    impl.ProducerStateManager._load(manager, log_start, now)
    manager.snapshots |= hidden


RARE = [
    _m("four batches", ("PSM-1", "PSM-2"), "the fifth is dropped", "impl", _entry(_add=_keeps_four)),
    _m(
        "sequences modulo 2^31 - 1",
        ("PSM-4",),
        "a batch that wraps begins one too low",
        "impl",
        _appending(Batch=_WrapsUnsigned),
    ),
    _m(
        "1 follows the greatest",
        ("PSM-4",),
        "2^31 - 1 is followed by 1",
        "impl",
        _appending(_check_sequence=_skips_zero),
    ),
    _m(
        "no greatest epoch",
        ("PSM-11",),
        "a marker of the epoch 2^15 - 1 is refused at version 2",
        "impl",
        _appending(_check_epoch=_no_greatest_epoch),
    ),
    _m(
        "epochs are subtracted",
        ("PSM-6", "PSM-8", "PSM-11"),
        "2^15 - 1 lies below -1",
        "impl",
        _appending(_check_epoch=_subtracts_epochs),
    ),
    _m(
        "times as doubles",
        ("PSM-1", "PSM-18"),
        "a timestamp is rounded",
        "impl",
        _entry(add_batch=_has_times_as_doubles),
    ),
    _m("offset 0 is none", ("PSM-18", "PSM-24"), "of an open transaction", "impl", _entry(snapshot=_zero_is_none)),
    _m(
        "late in 32 bits",
        ("PSM-29",),
        "timeout and five minutes are added in 32 bits",
        "impl",
        _driver(has_late_transaction=_late_in_32_bits),
    ),
    _m(
        "late after the default",
        ("PSM-29",),
        "the configured timeout is not looked at",
        "impl",
        _driver(has_late_transaction=_late_after_the_default),
    ),
    _m("idle in 32 bits", ("PSM-17",), "after 25 days nobody expires", "impl", _driver(is_expired=_idle_in_32_bits)),
    _m(
        "verified for the timeout",
        ("PSM-17",),
        "verifications are forgotten after the transaction timeout",
        "impl",
        _driver(remove_expired_producers=_verified_for_the_timeout),
    ),
    _m(
        "ids of 16 bits", ("PSM-1",), "a table's hash is taken for its key", "impl", _driver(prepare=_hashes_to_16_bits)
    ),
    _m(
        "one is replicated",
        ("PSM-15",),
        "of several transactions the first alone becomes stable",
        "impl",
        _driver(on_high_watermark_updated=_replicates_one),
    ),
    _m("a snapshot of two", ("PSM-18",), "a third producer is left out", "impl", _driver(take_snapshot=_snapshots_two)),
    _m(
        "unstable by text",
        ("PSM-13",),
        "offset 10 lies before 9",
        "impl",
        _driver(first_unstable=property(_unstable_by_text)),
    ),
    _m(
        "loaded by text", ("PSM-20",), "the snapshot at 10 lies before that at 9", "impl", _driver(_load=_loads_by_text)
    ),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE

UNSEEN: dict[str, str] = {
    "loaded by text": "not found yet: nothing noticed it, nor the judge in 20,000 calls",
}
