"""What a controller of the metadata log is called with and answers, as values.

Nothing here is a rule of its own; the rules are QRM. A record is a few kinds of metadata records: one that sets a name
(a configuration), the metadata version, the registration of a broker, whose offset is kept, and the records of metadata
transactions (KIP-868). Source: Kafka Internals, ch. 11, "The replay switch".
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from kafkaspec.contract.codec import optional, partial
from kafkaspec.contract.governs import governs
from kafkaspec.contract.numbers import Within

NO_LOG_OFFSET: Final = -1
NO_EPOCH: Final = -1
NONE_REFUSED: Final = -1
ACTIVATION: Final = -1
"""The call that stands for what the controller asks of itself: its activation, and its periodic tasks. No caller is
told of it."""
VERSION: Final = "metadata.version"
ELR: Final = "eligible.leader.replicas.version"
MIN_ISR: Final = "min.insync.replicas"
NO_TRANSACTIONS: Final = 7
"""The level of metadata version 3.3-IV3, the first that Kafka 4 knows."""
TRANSACTIONS: Final = 30
"""The level of 4.3-IV0."""
FIRST_TRANSACTIONS: Final = 13
"""The level of 3.6-IV1, since which there are metadata transactions."""


class Kind(enum.Enum):
    """Of a record."""

    SET = "set"
    VERSION = "version"
    FEATURE = "feature"
    REGISTER = "register"
    NO_OP = "noOp"
    BEGIN = "begin"
    END = "end"
    ABORT = "abort"
    UNKNOWN = "unknown"


class Record(NamedTuple):
    """`key` is set to `value`; `value` is the level of the metadata version, or of eligible leader replicas, or the
    broker's id."""

    kind: Kind
    key: str = ""
    value: Annotated[int, Within(0, 1000)] = 0


@dataclass(frozen=True)
class Batch:
    """A batch of the log; Raft's own have no records."""

    base: int
    epoch: int
    records: tuple[Record, ...]

    @property
    def last(self) -> int:
        """The offset of its last record."""
        return self.base + len(self.records) - 1


class Fault(enum.Enum):
    """What an operation throws while it makes its records."""

    NONE = "none"
    API = "InvalidRequestException"
    TOO_LONG = "BoundedListTooLongException"
    PERIODIC = "PeriodicControlTaskException"
    NOT_LEADER = "NotLeaderException"
    UNEXPECTED = "NullPointerException"


class Outcome(enum.Enum):
    """What a caller is told."""

    DONE = "done"
    NOT_CONTROLLER = "NotControllerException"
    INVALID_REQUEST = "InvalidRequestException"
    POLICY_VIOLATION = "PolicyViolationException"
    PERIODIC_TASK = "PeriodicControlTaskException"
    UNKNOWN_SERVER = "UnknownServerException"
    TIMEOUT = "TimeoutException"


@dataclass(frozen=True)
class Answer:
    """To the call of that number; the first is 0. `value` is its result."""

    call: Annotated[int, governs("QRM-15", "QRM-17")]
    outcome: Annotated[Outcome, governs("QRM-1", "QRM-23", "QRM-35", "QRM-36", "QRM-8")]
    value: Annotated[int, governs("QRM-4")] = NO_LOG_OFFSET


class PendingCall(NamedTuple):
    """A call in the purgatory."""

    offset: int
    call: int
    response: int


@dataclass(frozen=True)
class QueuedWrite:
    """A write that waits in the queue."""

    key: str
    records: tuple[Record, ...]
    atomic: bool = optional(True)
    fault: Fault = optional(Fault.NONE)


class PurgatoryEntry(NamedTuple):
    """A call that waits; the controller's own are -1."""

    offset: Annotated[int, governs("QRM-9", "QRM-12")]
    call: Annotated[int, governs("QRM-17", "QRM-15")]


@partial
@dataclass(frozen=True)
class Observation:
    """What is compared after every call."""

    claim_epoch: Annotated[int, governs("QRM-16", "QRM-21", "QRM-24", "QRM-23", "QRM-36")]
    last_committed_offset: Annotated[int, governs("QRM-13", "QRM-27", "QRM-31", "QRM-34")]
    last_committed_epoch: Annotated[int, governs("QRM-13", "QRM-27", "QRM-31")]
    last_stable_offset: Annotated[int, governs("QRM-26", "QRM-13", "QRM-31")]
    next_write_offset: Annotated[int, governs("QRM-5", "QRM-16")]
    transaction_start_offset: Annotated[int, governs("QRM-25", "QRM-22", "QRM-6")]
    snapshot_epochs: Annotated[list[int], governs("QRM-5", "QRM-22", "QRM-9")]
    memory: Annotated[dict[str, int], governs("QRM-6", "QRM-25", "QRM-22", "QRM-31")]
    stable: Annotated[dict[str, int] | None, governs("QRM-26", "QRM-2", "QRM-31")]
    """the memory at the last stable offset; null where there is no snapshot"""
    pending: Annotated[list[PurgatoryEntry], governs("QRM-10", "QRM-11", "QRM-12", "QRM-15", "QRM-17", "QRM-21")]
    """the purgatory"""
    log: Annotated[list[Batch], governs("QRM-8", "QRM-9", "QRM-18", "QRM-19")]
    """of Raft's log what it has not been handed"""
    faults: Annotated[int, governs("QRM-23")]
    """how many faults it reported that are not fatal"""
    scheduled: Annotated[dict[str, int], governs("QRM-39", "QRM-40", "QRM-41", "QRM-42")]
    """periodic tasks, and when each is run next, in ns"""
    halted: Annotated[bool, governs("QRM-7", "QRM-29", "QRM-33", "QRM-30")]


NOTHING_LEFT = (NO_EPOCH, NO_LOG_OFFSET, NO_EPOCH, NO_LOG_OFFSET, NO_LOG_OFFSET, NO_LOG_OFFSET)
HALTED = Observation(*NOTHING_LEFT, [], {}, None, [], [], 0, {}, halted=True)


def are_known(records: Iterable[Record]) -> bool:
    """Of metadata versions there are two here: one that has transactions and one that has none. Of the feature there is
    one level. A record has a name or a number only where its kind says what they are."""
    levels = {Kind.VERSION: (NO_TRANSACTIONS, TRANSACTIONS), Kind.FEATURE: (1,)}
    named = {Kind.SET, Kind.REGISTER}
    return all(
        (r.key == "" or r.kind == Kind.SET) and (r.kind in named or r.value in levels.get(r.kind, (0,)))
        for r in records
    )
