"""The controller of a quorum that loses nothing: by the rules of the spec, but for three, each of which loses what is
committed, or gives up without a reason. The spec has these as Kafka 4.3.0 has them; the simulator finds what comes of
them when they are put back, those of transactions together.

| rule | the spec, as Kafka 4.3.0 | here |
|---|---|---|
| QRM-26 | the transaction that counts is the one in memory | the one in what is committed |
| QRM-22 | who renounces keeps or forgets a transaction as it was written | has again what is committed, from the log |
| QRM-9 | an exact multiple of a batch has an empty one behind it | it has none |

QRM-31 is kept as the spec has it. Kafka 4.3.0 does not keep it (QRM-D1), and the simulator finds that, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kafkaspec.impl.controller.quorum import ControllerResult, QuorumController, Raft
from kafkaspec.spec.common.metadata_log import NO_LOG_OFFSET, Batch, Kind, Record

Reading = Callable[[int, int], Sequence[Batch]]
"""the controller's batches of the log, from an offset up to one, that one included"""


class SoundController(QuorumController):
    """One controller. `reading` gives what is committed once more."""

    def __init__(
        self,
        raft: Raft,
        max_records_per_batch: int,
        bootstrap: Sequence[Record],
        reading: Reading,
        clock: Callable[[], int] = lambda: 0,
        max_idle_interval_ns: int | None = None,
    ) -> None:
        super().__init__(raft, max_records_per_batch, bootstrap, clock, max_idle_interval_ns)
        self.reading = reading
        self.committed_start = NO_LOG_OFFSET
        """of the transaction that is open in what is committed"""

    def append_records(self, result: ControllerResult) -> int:
        records, cap = result.records, self.max_records_per_batch
        if result.is_atomic or len(records) % cap:
            return super().append_records(result)
        last = NO_LOG_OFFSET
        for n in range(0, len(records), cap):
            last = self.append_batch(records[n : n + cap])
        return last

    def handle_commit(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            for offset, record in enumerate(batch.records, batch.base):
                if record.kind == Kind.BEGIN:
                    self.committed_start = offset
                elif record.kind in (Kind.END, Kind.ABORT):
                    self.committed_start = NO_LOG_OFFSET
            super().handle_commit([batch])

    def advance_last_stable_offset(self) -> None:
        start, self.memory.transaction_start = self.memory.transaction_start, self.committed_start
        try:
            super().advance_last_stable_offset()
        finally:
            self.memory.transaction_start = start

    def renounce(self) -> None:
        super().renounce()
        self.memory.transaction_start = NO_LOG_OFFSET
        first = self.last_stable_offset + 1
        for batch in self.reading(first, self.last_committed_offset):
            known = max(0, first - batch.base)
            self.replay_all(batch.records[known:], batch.base + known)

    def load_snapshot(self, end_offset: int, epoch: int, records: Sequence[Record]) -> None:
        super().load_snapshot(end_offset, epoch, records)
        self.committed_start = NO_LOG_OFFSET
