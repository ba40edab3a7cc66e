"""A segment's transaction index: which transactions were aborted here, for readers that must not see them.

One entry for each abort marker in the segment. A read_committed fetch is answered with the records as they stand and
the aborted transactions that overlap them; the client drops what they cover. An entry that is missing makes aborted
records visible, one that is too many hides committed ones.

Source: Kafka Internals, ch. 03, "TransactionIndex, aborted transactions"; TransactionIndex, AbortedTxn, LocalLog and
UnifiedLog, Kafka 4.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import A_FORMAT, AT_REST, ONE_CALL, states
from kafkaspec.contract.codec import partial, replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Refused
from kafkaspec.contract.numbers import Int64, Offset, Position, ProducerId
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction, Entries, in_order, overlapping
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, KAFKA_EXCEPTION

PREFIX = "TXI"
TITLE = "Transaction index"

CHAPTER = "Kafka Internals, ch. 03, 'TransactionIndex, aborted transactions'"
INDEX = "TransactionIndex, Kafka 4.3.0"
ONE_SEQUENCE = {
    "model": "the model has one sequence of entries, however it is cut into files",
    "proof": "see the model",
}

CORRUPT_INDEX = "org.apache.kafka.storage.internals.log.CorruptIndexException"
NOT_ASCENDING = Refused("TXI-3", ILLEGAL_ARGUMENT)
CORRUPT = Refused("TXI-10", CORRUPT_INDEX)
UNKNOWN_VERSION = Refused("TXI-11", KAFKA_EXCEPTION)

ENTRY_SIZE = 34


# ---- entries ---------------------------------------------------------------------------------------------------------
@states(without=A_FORMAT)
def hexadecimal(entry: AbortedTransaction) -> str:
    """The bytes of an entry, two digits each.

    TXI-1: An entry is 34 bytes, big-endian: the version, 16 bits, 0; then, 64 bits each, the producer id, the first
    offset of the transaction, its last offset (the abort marker's) and the last stable offset at that time. [{CHAPTER};
    AbortedTxn, Kafka 4.3.0]
    """
    return "0000" + "".join(f"{n % 2**64:016x}" for n in entry)


# ---- the state -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SearchResult:
    """Aborted transactions (producer id, first offset, last offset, last stable offset), and whether they are all."""

    aborted_transactions: Annotated[Entries, governs("TXI-4", "TXI-7")]
    is_complete: Annotated[bool, governs("TXI-5")]


@dataclass(frozen=True)
class Index:
    """One segment's. `known` is the last offset that the next append must exceed, as far as it is remembered; `rest`
    bytes after the last whole entry are what a crash left of one."""

    start_offset: int
    entries: Entries = ()
    exists: bool = False
    known: int | None = None
    rest: int = 0

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self.entries) * ENTRY_SIZE + self.rest

    @states()
    def search(self, fetch_offset: int, upper_bound: int) -> SearchResult:
        """What a fetch gets of this index.

        TXI-4: Collecting for a fetch of [fetch offset, upper bound) goes through the entries in order, up to and with
        the first whose last stable offset is at or above the upper bound, and gives those whose last offset is at or
        above the fetch offset and whose first offset is below the upper bound. [{CHAPTER}; {INDEX}]

        TXI-5: Collecting is complete if and only if it met such a last stable offset; if not, the next segment's index
        must be asked too. [{CHAPTER}; {INDEX}]
        """
        stop = next((n for n, e in enumerate(self.entries) if e.last_stable_offset >= upper_bound), None)
        asked = self.entries if stop is None else self.entries[: stop + 1]
        return SearchResult(overlapping(asked, fetch_offset, upper_bound), stop is not None)

    def cut(self, size: int) -> Index:
        """With its first `size` bytes, opened again."""
        whole, rest = divmod(min(size, self.size), ENTRY_SIZE)
        return replace(self, entries=self.entries[:whole], rest=rest, known=None)


@dataclass(frozen=True)
class Log:
    """The indexes of a log's segments, in their order; the last is the active one, that is written to."""

    indexes: tuple[Index, ...]

    @property
    def active(self) -> Index:
        return self.indexes[-1]

    @property
    def entries(self) -> Entries:
        """Of all segments."""
        return tuple(e for i in self.indexes for e in i.entries)

    def with_active(self, index: Index) -> Log:
        return Log((*self.indexes[:-1], index))

    def floor(self, offset: int) -> int:
        """Which index is that of the segment which holds the offset: the last that begins at or below it."""
        return max(n for n, i in enumerate(self.indexes) if i.start_offset <= offset)


@states(
    "TXI-12",
    "TXI-13",
    without=AT_REST
    | ONE_SEQUENCE
    | {"mutant": "a predicate over a log at rest: what breaks it is damage, made in the tests of the audit"},
)
def orderly(log: Log) -> bool:
    """Whether a broker can have written the whole of it, one batch at a time.

    TXI-13: The last offset of every entry lies in the index's own segment: at or above its base offset, and below the
    end of its records. [{CHAPTER}; UnifiedLog.append and LogSegment.updateTxnIndex, Kafka 4.3.0]
    """
    ends = [*(i.start_offset for i in log.indexes[1:]), None]
    return in_order(log.entries) and all(
        i.start_offset <= e.last_offset and (end is None or e.last_offset < end)
        for i, end in zip(log.indexes, ends, strict=True)
        for e in i.entries
    )


@states("TXI-12")
def follows(log: Log, entry: AbortedTransaction) -> bool:
    """Whether a broker that takes one batch at a time can append it to this log next."""
    return in_order((*log.entries[-1:], entry)) and entry.last_offset >= log.active.start_offset


def initial(start_offset: Offset = 0) -> Log:
    """One segment without aborted transactions. `start_offset` is its base offset."""
    return Log((Index(start_offset),))


class EarlierIndex(NamedTuple):
    """The index of a segment before the active one. `rest`: bytes behind the last whole entry."""

    start_offset: Annotated[int, governs("TXI-6")]
    entries: Annotated[Entries, governs("TXI-3", "TXI-6")]
    rest: Annotated[int, governs("TXI-11")]


@partial
@dataclass(frozen=True)
class Observation:
    """The active segment's index, and those before it."""

    all: Annotated[Entries, governs("TXI-3", "TXI-8", "TXI-9", "TXI-11", "TXI-2")]
    """producer id, first offset, last offset, last stable offset"""
    is_empty: Annotated[bool, governs("TXI-2", "TXI-3", "TXI-8", "TXI-9", "TXI-11")]
    file_size: Annotated[int, governs("TXI-3", "TXI-8", "TXI-9", "TXI-11", "TXI-1")]
    """bytes"""
    exists: Annotated[bool, governs("TXI-2", "TXI-9")]
    earlier: Annotated[tuple[EarlierIndex, ...], governs("TXI-6")]
    """start offset, entries, bytes behind the last whole entry"""


def observe(log: Log) -> Observation:
    """The active index as the recordings show it, and those before it."""
    active = log.active
    earlier = tuple(EarlierIndex(i.start_offset, i.entries, i.rest) for i in log.indexes[:-1])
    return Observation(active.entries, not active.entries, active.size, active.exists, earlier)


machine: Machine[Log] = Machine("transaction_index", initial, observe)


def only_the_active_changes(id: str) -> ensure:
    """A contract that operations share, under that clause's id."""
    return ensure(
        lambda state, result: isinstance(result, Refused) or result.indexes[:-1] == state.indexes[:-1],
        f"{id} in the active segment",
    )


# ---- the operations --------------------------------------------------------------------------------------------------
@machine.operation("append", "TXI-1", "TXI-2", "TXI-3", "TXI-12", "TXI-13")
@states(without=ONE_CALL)
@require(lambda state: state.active.rest == 0, "TXI-3 what a crash left of an entry was cut off")
@only_the_active_changes("TXI-3")
@ensure(
    lambda state, last_offset, result: (
        isinstance(result, Refused) == (state.active.known is not None and last_offset <= state.active.known)
    ),
    "TXI-3 last offsets rise, as far as is known",
)
@ensure(
    lambda state, result: isinstance(result, Refused) or result.active.size == state.active.size + ENTRY_SIZE,
    "TXI-1 an entry is 34 bytes",
)
@ensure(lambda result: isinstance(result, Refused) or result.active.exists, "TXI-2 an append makes the file")
@ensure(
    lambda state, result: (
        not orderly(state)
        or isinstance(result, Refused)
        or not follows(state, result.active.entries[-1])
        or orderly(result)
    ),
    "TXI-12 appended in the order of the abort markers, they stand in order over all segments",
)
@ensure(
    lambda state, last_offset, result: (
        isinstance(result, Refused)
        or last_offset < state.active.start_offset
        or result.active.entries[-1].last_offset >= state.active.start_offset
    ),
    "TXI-13 the active segment has the marker",
)
def append(
    state: Log, producer_id: ProducerId, first_offset: Int64, last_offset: Int64, last_stable_offset: Int64
) -> Log | Refused:
    """An abort marker was appended to the segment.

    TXI-2: The file is made by the first append and not before. Without a file the index has no entries. [{CHAPTER};
    {INDEX}]

    TXI-3: An append puts the entry at the end. It is refused, and nothing changes, unless its last offset is above that
    of the entry before, as far as that is known: an index that was opened knows of none until something was appended or
    cut. [{INDEX}]
    """
    index = state.active
    if index.known is not None and last_offset <= index.known:
        return NOT_ASCENDING
    entry = AbortedTransaction(producer_id, first_offset, last_offset, last_stable_offset)
    return state.with_active(replace(index, entries=(*index.entries, entry), exists=True, known=last_offset))


@machine.question("collectAbortedTxns", "TXI-4", "TXI-5")
@ensure(
    lambda state, fetch_offset, upper_bound_offset, result: (
        set(result.aborted_transactions) <= {*overlapping(state.active.entries, fetch_offset, upper_bound_offset)}
    ),
    "TXI-4 nothing is given that does not overlap",
)
@ensure(
    lambda state, upper_bound_offset, result: (
        result.is_complete == any(e.last_stable_offset >= upper_bound_offset for e in state.active.entries)
    ),
    "TXI-5 complete if and only if something beyond was stable",
)
@ensure(
    lambda state, fetch_offset, upper_bound_offset, result: (
        not in_order(state.active.entries)
        or result.aborted_transactions == overlapping(state.active.entries, fetch_offset, upper_bound_offset)
    ),
    "TXI-7 nothing that overlaps is left out",
)
def collect_aborted_txns(state: Log, fetch_offset: Int64, upper_bound_offset: Int64) -> SearchResult:
    """Of the active segment alone. `fetch_offset` is included, `upper_bound_offset` is not."""
    return state.active.search(fetch_offset, upper_bound_offset)


@machine.question("log.collectAbortedTxns")
@states(without={"TXI-6": ONE_SEQUENCE})
@require(
    lambda state, fetch_offset: fetch_offset >= state.indexes[0].start_offset, "TXI-6 a fetch begins within the log"
)
@ensure(
    lambda state, fetch_offset, upper_bound_offset, result: (
        not orderly(state) or result == overlapping(state.entries, fetch_offset, upper_bound_offset)
    ),
    "TXI-7 every aborted transaction that overlaps is given, whichever segment its marker is in",
)
def log_collect_aborted_txns(state: Log, fetch_offset: Int64, upper_bound_offset: Int64) -> Entries:
    """What a fetch of [fetch_offset, upper_bound_offset) gets, over the segments.

    TXI-6: For a fetch the indexes are asked in order, from the one of the segment that holds the fetch offset, until
    one is complete or there is no further one. [LocalLog.addAbortedTransactions, Kafka 4.3.0]

    TXI-7: So every aborted transaction that overlaps the fetch is given, of entries that were appended one batch at a
    time (TXI-12): none after the one at which collecting stops begins below the upper bound, and none in an earlier
    segment ends at or above the fetch offset. Of several batches in one append one may be left out. [{CHAPTER};
    ProducerStateManager.lastStableOffset, Kafka 4.3.0]
    """
    out: Entries = ()
    for index in state.indexes[state.floor(fetch_offset) :]:
        found = index.search(fetch_offset, upper_bound_offset)
        out += found.aborted_transactions
        if found.is_complete:
            break
    return out


@machine.operation("roll", "TXI-2")
@require(
    lambda state, start_offset: start_offset > state.active.start_offset,
    "TXI-6 segments stand in the order of their bases",
)
@ensure(lambda state, result: result.indexes[:-1] == state.indexes, "TXI-6 after those before it")
@ensure(
    lambda result: not result.active.exists and not result.active.entries,
    "TXI-2 a new segment has no file yet",
)
def roll(state: Log, start_offset: Offset) -> Log:
    """A new segment begins at an offset."""
    return Log((*state.indexes, Index(start_offset)))


@machine.operation("truncateTo")
@states(without=ONE_CALL)
@only_the_active_changes("TXI-8")
@ensure(
    lambda state, result: result.active.entries == state.active.entries[: len(result.active.entries)],
    "TXI-8 what is left is what came first",
)
@ensure(
    lambda offset, result: all(e.last_offset < offset for e in result.active.entries),
    "TXI-8 nothing at or above the offset is left",
)
@ensure(
    lambda state, offset, result: result == state or any(e.last_offset >= offset for e in state.active.entries),
    "TXI-8 nothing to drop: nothing changes",
)
def truncate_to(state: Log, offset: Int64) -> Log:
    """TXI-8: Truncating to an offset drops the first entry whose last offset is at or above it, and all after that;
    what the next append must exceed is then the last offset that is left. Without such an entry nothing changes.
    [{INDEX}]"""
    index = state.active
    first = next((n for n, e in enumerate(index.entries) if e.last_offset >= offset), None)
    if first is None:
        return state
    kept = index.entries[:first]
    return state.with_active(replace(index, entries=kept, rest=0, known=kept[-1].last_offset if kept else None))


@machine.operation("reset")
@states(without=ONE_CALL)
@only_the_active_changes("TXI-9")
@ensure(
    lambda state, result: result.active == Index(state.active.start_offset, (), state.active.exists),
    "TXI-9 nothing is left but the file",
)
def reset_index(state: Log) -> Log:
    """The recovery of a segment begins so.

    TXI-9: A reset drops all bytes; the file stays, if there is one, and the next append need exceed nothing. [{INDEX}]
    """
    return state.with_active(Index(state.active.start_offset, (), state.active.exists))


@machine.question("sanityCheck")
@states(without=ONE_CALL)
@ensure(
    lambda state, result: (
        isinstance(result, Refused) == any(e.last_offset < state.active.start_offset for e in state.active.entries)
    ),
    "TXI-10 refused if and only if an entry ends below the base offset",
)
def sanity_check(state: Log) -> Refused | None:
    """What opening a log asks of each index.

    TXI-10: The sanity check refuses an index with an entry whose last offset is below the segment's base offset;
    opening the log then recovers the segment. [{INDEX}; LogLoader.loadSegmentFiles, Kafka 4.3.0]
    """
    return CORRUPT if any(e.last_offset < state.active.start_offset for e in state.active.entries) else None


@machine.operation("reopen", "TXI-3", "TXI-2", kind="restart")
@ensure(
    lambda state, result: result == state.with_active(replace(state.active, known=None)),
    "TXI-3 an index that was opened remembers no last offset",
)
def reopen(state: Log) -> Log:
    """Close the active segment's index, and open it again."""
    return state.with_active(replace(state.active, known=None))


@machine.operation("crash", "TXI-11", kind="crash")
@require(lambda lost_bytes: lost_bytes >= 0, "TXI-11 nothing comes by a crash")
@only_the_active_changes("TXI-11")
@ensure(
    lambda state, lost_bytes, result: result.active.size == max(0, state.active.size - lost_bytes),
    "TXI-11 the bytes at the end are lost",
)
@ensure(
    lambda state, result: result.active.entries == state.active.entries[: result.active.size // ENTRY_SIZE],
    "TXI-11 a part of an entry is no entry",
)
def crash(state: Log, lost_bytes: Position) -> Log:
    """What was not flushed is lost: the last bytes of the active segment's file. Then it is opened again."""
    return state.with_active(state.active.cut(max(0, state.active.size - lost_bytes)))


@machine.question("file", "TXI-1")
@ensure(lambda state, result: len(result) == 2 * ENTRY_SIZE * len(state.active.entries), "TXI-1 34 bytes an entry")
def file(state: Log) -> str:
    """The whole entries of the active segment's file, in hexadecimal digits."""
    return "".join(hexadecimal(e) for e in state.active.entries)


VERSION_DIGITS, NUMBER_DIGITS = 4, 16


def digits_of_entries(content: str) -> list[str]:
    """The digits of each whole entry of a file with this content."""
    size = 2 * ENTRY_SIZE
    return [content[at : at + size] for at in range(0, len(content) - size + 1, size)]


def signed(digits: str) -> int:
    """The 64-bit number that these digits are."""
    n = int(digits, 16)
    return n - 2**64 if n >= 2**63 else n


@machine.question("read", "TXI-1", "TXI-11")
@states(without=A_FORMAT)
@require(
    lambda content: len(content) % 2 == 0 and set(content) <= set("0123456789abcdef"),
    "TXI-1 two hexadecimal digits a byte",
)
@ensure(
    lambda content, result: (
        isinstance(result, Refused)
        or [e[VERSION_DIGITS:] for e in digits_of_entries(content)] == [hexadecimal(e)[VERSION_DIGITS:] for e in result]
    ),
    "TXI-1 what was read is what stands there",
)
def read(content: str) -> Entries | Refused:
    """The entries of a file with this content, in hexadecimal digits.

    TXI-11: Reading takes whole entries from the start; fewer than 34 bytes at the end are no entry. An entry of a
    version above 0 is refused, and whatever was asked of the index with it. [{INDEX}]
    """
    out: Entries = ()
    for digits in digits_of_entries(content):
        if 0 < int(digits[:VERSION_DIGITS], 16) < 2**15:
            return UNKNOWN_VERSION
        at = range(VERSION_DIGITS, len(digits), NUMBER_DIGITS)
        out = (*out, AbortedTransaction(*(signed(digits[n : n + NUMBER_DIGITS]) for n in at)))
    return out
