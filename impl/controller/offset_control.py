"""Offsets of the controller, and when its memory is snapshot: a few numbers beside a registry of timeline collections.

It holds no state of the controller's own: whoever makes the memory gives it what replays a record at its offset.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kafkaspec.impl.controller.timeline import SnapshotRegistry, TimelineError

NONE = -1


class Marker(enum.Enum):
    """Of a transaction."""

    BEGIN = "Begin"
    END = "End"
    ABORT = "Abort"


Replay = Callable[[int], None]
"""Applies a data record, that stands at the offset, to the memory."""


class OffsetError(Exception):
    """The call is refused. `args[0]` says why, in Kafka's words."""


class ActiveError(OffsetError):
    """The controller is active already, or the offset is negative. [OFC-3]"""


class StandbyError(OffsetError):
    """The controller is not active. [OFC-5]"""


class NoWayBackError(OffsetError):
    """There is no snapshot at the last stable offset. [OFC-6]"""


class LoadingError(OffsetError):
    """A raft snapshot is being loaded. [OFC-16]"""


class NotLoadingError(OffsetError):
    """No raft snapshot is being loaded. [OFC-17]"""


class MarkerInSnapshotError(OffsetError):
    """A raft snapshot has a marker of a transaction. [OFC-15]"""


class OpenTransactionError(OffsetError):
    """One begins where another was not closed. [OFC-12]"""


class NothingToEndError(OffsetError):
    """An end record without a transaction. [OFC-13]"""


class NothingToAbortError(OffsetError):
    """An abort record without a transaction, or without a snapshot from before it. [OFC-14]"""


class StableSnapshotError(OffsetError):
    """There is a later snapshot than the one that is wanted at the stable offset, on becoming active. [OFC-4]"""


class LateSnapshotError(OffsetError):
    """The same, after a commit. [OFC-10]"""


@dataclass
class Gauges:
    """The metrics. [OFC-20]"""

    active: bool = False
    last_applied: int = NONE
    last_committed: int = NONE
    last_applied_timestamp: int = NONE


@dataclass(frozen=True)
class SnapshotId:
    """Of a raft snapshot."""

    offset: int
    epoch: int

    def __str__(self) -> str:
        return f"OffsetAndEpoch[offset={self.offset}, epoch={self.epoch}]"

    @property
    def name(self) -> str:
        """Of its file. [OFC-16]"""
        return f"{self.offset:0>20}-{self.epoch:0>10}"


class OffsetControl:
    """How far the memory is written, committed and stable. [OFC-1]"""

    def __init__(self, registry: SnapshotRegistry, clock: Callable[[], int]) -> None:
        self.registry = registry
        self.clock = clock
        self.gauges = Gauges()
        self.loading: SnapshotId | None = None
        self._forget()
        self.registry.get_or_create_snapshot(NONE)

    def _forget(self) -> None:
        self.next_write = self.last_committed = self.committed_epoch = self.last_stable = self.transaction_start = NONE

    @property
    def active(self) -> bool:
        """[OFC-3]"""
        return self.next_write != NONE

    # the leader changes

    def activate(self, new_next_write_offset: int) -> None:
        """[OFC-3, OFC-4, OFC-20]"""
        if self.active:
            raise ActiveError("Can't activate already active OffsetControlManager.")
        if new_next_write_offset < 0:
            raise ActiveError(f"Invalid negative newNextWriteOffset {new_next_write_offset}.")
        self._snapshot_at(self.last_stable, StableSnapshotError)
        self.next_write = new_next_write_offset
        self.gauges.active = True

    def deactivate(self) -> None:
        """The transaction is left as it is. [OFC-5, OFC-6, OFC-20, OFC-22]"""
        if not self.active:
            raise StandbyError("Can't deactivate inactive OffsetControlManager.")
        self.gauges.active = False
        self.gauges.last_applied = self.last_stable
        self.next_write = NONE
        try:
            self.registry.revert_to_snapshot(self.last_stable)
        except TimelineError as e:
            raise NoWayBackError(
                f"Unable to reset to last stable offset {self.last_stable}. "
                "No in-memory snapshot found for this offset."
            ) from e

    # records

    def replay(self, records: Sequence[Marker | Replay], first_offset: int) -> None:
        """[OFC-18, OFC-19]"""
        for offset, record in enumerate(records, first_offset):
            if isinstance(record, Marker):
                self.mark(record, offset)
            else:
                record(offset)

    def mark(self, marker: Marker, offset: int) -> None:
        """[OFC-12, OFC-13, OFC-14, OFC-15]"""
        if self.loading is not None:
            raise MarkerInSnapshotError(f"{marker.value}TransactionRecord cannot appear within a snapshot.")
        if marker is Marker.BEGIN:
            self._begin(offset)
            return
        if self.transaction_start == NONE:
            refusal = NothingToEndError if marker is Marker.END else NothingToAbortError
            what = f"Can't replay an {marker.value}TransactionRecord at {offset}"
            raise refusal(f"{what} because there is no open transaction.")
        if marker is Marker.ABORT:
            try:
                self.registry.revert_to_snapshot(self.transaction_start - 1)
            except TimelineError as e:
                raise NothingToAbortError(e.refused.message) from e
        self.transaction_start = NONE

    def _begin(self, offset: int) -> None:
        if self.transaction_start != NONE:
            raise OpenTransactionError(
                f"Can't replay a BeginTransactionRecord at {offset} because the transaction at "
                f"{self.transaction_start} was never closed."
            )
        self.registry.get_or_create_snapshot(offset - 1)
        self.transaction_start = offset

    def scheduled(self, last_offset: int) -> None:
        """Records up to that offset were handed to raft. [OFC-7, OFC-20]"""
        self.next_write = last_offset + 1
        self.registry.get_or_create_snapshot(last_offset)
        self.gauges.last_applied = last_offset
        self.gauges.last_applied_timestamp = self.clock()

    def committed(self, last_offset: int, epoch: int, append_timestamp: int) -> None:
        """A batch with records was. [OFC-8, OFC-9, OFC-10, OFC-21, OFC-23]"""
        self.last_committed = last_offset
        self.committed_epoch = epoch
        self._advance()
        self.control_committed(last_offset, append_timestamp)

    def control_committed(self, last_offset: int, append_timestamp: int) -> None:
        """A batch was, of raft's own or not: the metrics alone. [OFC-11, OFC-20]"""
        self.gauges.last_committed = last_offset
        if not self.active:
            self.gauges.last_applied = last_offset
            self.gauges.last_applied_timestamp = append_timestamp

    def _advance(self) -> None:
        limit = self.last_committed
        if self.transaction_start != NONE:
            limit = min(limit, self.transaction_start - 1)
        if limit > self.last_stable:
            self.last_stable = limit
            self.registry.delete_snapshots_up_to(limit)
            if not self.active:
                self._snapshot_at(limit, LateSnapshotError)

    def _snapshot_at(self, offset: int, refusal: type[OffsetError]) -> None:
        try:
            self.registry.get_or_create_snapshot(offset)
        except TimelineError as e:
            raise refusal(e.refused.message) from e

    # raft snapshots

    def begin_load(self, of: SnapshotId) -> None:
        """[OFC-16]"""
        if self.loading is not None:
            raise LoadingError(f"Can't begin reading snapshot for {of}, because we are already reading {self.loading}")
        self.loading = of
        self.registry.reset()
        self._forget()

    def end_load(self, timestamp: int) -> None:
        """[OFC-17, OFC-20]"""
        if self.loading is None:
            raise NotLoadingError("Can't end loading snapshot, because there is no current snapshot.")
        of, self.loading = self.loading, None
        self.registry.get_or_create_snapshot(of.offset)
        self._forget()
        self.last_committed = self.last_stable = of.offset
        self.committed_epoch = of.epoch
        self.gauges.last_committed = self.gauges.last_applied = of.offset
        self.gauges.last_applied_timestamp = timestamp
