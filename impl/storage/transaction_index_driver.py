"""The transaction indexes of a log, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.machine import ByName
from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.storage import transaction_index as impl
from kafkaspec.impl.storage.transaction_index import ENTRY, SUFFIX
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction
from kafkaspec.spec.storage import transaction_index as spec

DIRECTORY = "t-0"


class Driver(ByName):
    """The indexes of a log's segments, on a simulated disk. The subject is the active segment's."""

    machine = spec.machine
    refusals = {
        impl.NotAscending: spec.NOT_ASCENDING,
        impl.CorruptIndex: spec.CORRUPT,
        impl.UnknownVersion: spec.UNKNOWN_VERSION,
    }
    index: type[impl.TransactionIndex] = impl.TransactionIndex

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.disk = SimulatedDisk()
        self.indexes: list[impl.TransactionIndex] = []
        self.roll(arguments.get("start_offset", 0))

    def roll(self, start_offset: int) -> None:
        self.subject = self.index(f"{DIRECTORY}/{start_offset:020}{SUFFIX}", start_offset, self.disk)
        self.indexes.append(self.subject)

    def append(self, *entry: int) -> None:
        self.subject.append(impl.AbortedTxn(*entry))

    def log_collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> list[impl.AbortedTxn]:
        below = [n for n, i in enumerate(self.indexes) if i.base_offset <= fetch_offset]
        return impl.collect(self.indexes[below[-1] :], fetch_offset, upper_bound_offset)

    def reset_index(self) -> None:
        self.subject.reset()

    def reopen(self) -> None:
        self.roll(self.indexes.pop().base_offset)

    def crash(self, lost_bytes: int) -> None:
        if self.subject.exists:
            self.disk.truncate(self.subject.path, max(0, self.subject.size - lost_bytes))
        self.reopen()

    def file(self) -> str:
        return b"".join(e.encode() for e in self.subject).hex()

    def read(self, content: str) -> list[impl.AbortedTxn]:
        return list(impl.decode(bytes.fromhex(content)))

    def state(self) -> spec.Log:
        """What the files and the memory stand for."""
        return spec.Log(
            tuple(
                spec.Index(
                    i.base_offset,
                    tuple(AbortedTransaction(*e) for e in i),
                    i.exists,
                    i.last_offset,
                    i.size % ENTRY.size,
                )
                for i in self.indexes
            )
        )
