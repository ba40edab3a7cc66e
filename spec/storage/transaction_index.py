"""A segment's transaction index: which transactions were aborted here, for readers that must not see them.

One entry for each abort marker in the segment. A read_committed fetch is answered with the records as they stand and
the aborted transactions that overlap them; the client drops what they cover. An entry that is missing makes aborted
records visible, one that is too many hides committed ones.

Source: Kafka Internals, ch. 03, "TransactionIndex, aborted transactions"; TransactionIndex, AbortedTxn, LocalLog and
UnifiedLog, Kafka 4.3.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypedDict, cast

import icontract

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Fields, Json, Machine, Refused, Step
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, KAFKA_EXCEPTION

PREFIX = "TXI"
TITLE = "Transaction index"

CHAPTER = "Kafka Internals, ch. 03, 'TransactionIndex, aborted transactions'"
INDEX = "TransactionIndex, Kafka 4.3.0"

OF_THE_BYTES = {"model": "a matter of bytes, not of interleavings", "proof": "a matter of bytes: tested on every kind"}
OF_ONE_FILE = {
    "model": "a question to one file, that depends on nobody else; the model has what makes the entries",
    "proof": "see the model",
}
OF_A_LOG_ON_DISK = {
    "impl": "about a log at rest: the audit looks for it",
    "mutant": "a predicate over a log at rest: what breaks it is damage, made in the tests of the audit",
    "model": "the model has one sequence of entries, however it is cut into files",
    "proof": "see the model",
}

TXI_1 = clause(
    "TXI-1",
    """An entry is 34 bytes, big-endian: the version, 16 bits, 0; then, 64 bits each, the producer id, the first offset
    of the transaction, its last offset (the abort marker's) and the last stable offset at that time.""",
    source=f"{CHAPTER}; AbortedTxn, Kafka 4.3.0",
    without=OF_THE_BYTES,
)
TXI_2 = clause(
    "TXI-2",
    "The file is made by the first append and not before. Without a file the index has no entries.",
    source=f"{CHAPTER}; {INDEX}",
    without=OF_ONE_FILE,
)
TXI_3 = clause(
    "TXI-3",
    """An append puts the entry at the end. It is refused, and nothing changes, unless its last offset is above that of
    the entry before, as far as that is known: an index that was opened knows of none until something was appended or
    cut.""",
    source=INDEX,
    without=OF_ONE_FILE,
)
TXI_4 = clause(
    "TXI-4",
    """Collecting for a fetch of [fetch offset, upper bound) goes through the entries in order, up to and with the
    first whose last stable offset is at or above the upper bound, and gives those whose last offset is at or above
    the fetch offset and whose first offset is below the upper bound.""",
    source=f"{CHAPTER}; {INDEX}",
)
TXI_5 = clause(
    "TXI-5",
    """Collecting is complete just if it met such a last stable offset; if not, the next segment's index must be asked
    too.""",
    source=f"{CHAPTER}; {INDEX}",
)
TXI_6 = clause(
    "TXI-6",
    """For a fetch the indexes are asked in order, from the one of the segment that holds the fetch offset, until one is
    complete or there is no further one.""",
    source="LocalLog.addAbortedTransactions, Kafka 4.3.0",
    without={"model": "the model has one sequence of entries, however it is cut into files", "proof": "see the model"},
)
TXI_7 = clause(
    "TXI-7",
    """So every aborted transaction that overlaps the fetch is given: of entries that brokers appended (TXI-12), none
    after the one at which collecting stops begins below the upper bound, and none in an earlier segment ends at or
    above the fetch offset.""",
    source=f"{CHAPTER}; ProducerStateManager.lastStableOffset, Kafka 4.3.0",
)
TXI_8 = clause(
    "TXI-8",
    """Truncating to an offset drops the first entry whose last offset is at or above it, and all after that; what the
    next append must exceed is then the last offset that is left. Without such an entry nothing changes.""",
    source=INDEX,
    without=OF_ONE_FILE,
)
TXI_9 = clause(
    "TXI-9",
    "A reset drops all bytes; the file stays, if there is one, and the next append need exceed nothing.",
    source=INDEX,
    without=OF_ONE_FILE,
)
TXI_10 = clause(
    "TXI-10",
    """The sanity check refuses an index with an entry whose last offset is below the segment's base offset; opening
    the log then recovers the segment.""",
    source=f"{INDEX}; LogLoader.loadSegmentFiles, Kafka 4.3.0",
    without=OF_ONE_FILE,
)
TXI_11 = clause(
    "TXI-11",
    """Reading takes whole entries from the start; fewer than 34 bytes at the end are no entry. An entry of a version
    above 0 is refused, and whatever was asked of the index with it.""",
    source=INDEX,
    without=OF_THE_BYTES,
)
TXI_12 = clause(
    "TXI-12",
    """Brokers append in the order of the abort markers, over all segments: last offsets rise strictly, last stable
    offsets never fall, an entry begins before it ends, its last stable offset is at most its last offset + 1, and it
    begins at or above the last stable offset of every entry before it.""",
    source="UnifiedLog.append and ProducerStateManager.lastStableOffset, Kafka 4.3.0",
    without={"impl": "said of what the index is given: the producer state makes the entries (PSM-16)"},
)
TXI_13 = clause(
    "TXI-13",
    """The last offset of every entry lies in the index's own segment: at or above its base offset, and below the end of
    its records.""",
    source=f"{CHAPTER}; UnifiedLog.append and LogSegment.updateTxnIndex, Kafka 4.3.0",
    without=OF_A_LOG_ON_DISK,
)

ENTRY_SIZE = 34
CORRUPT_INDEX = "org.apache.kafka.storage.internals.log.CorruptIndexException"


class Aborted(NamedTuple):
    """One aborted transaction: its producer, its first record's offset, its marker's, and what was stable then."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@states("TXI-12")
def in_order(entries: Sequence[Aborted]) -> bool:
    """Whether brokers can have appended these, one after the other."""
    return all(e.first_offset < e.last_offset and e.last_stable_offset <= e.last_offset + 1 for e in entries) and all(
        before.last_offset < e.last_offset
        and before.last_stable_offset <= e.last_stable_offset
        and e.first_offset >= before.last_stable_offset
        for before, e in itertools.pairwise(entries)
    )


def overlapping(entries: Iterable[Aborted], fetch_offset: int, upper_bound: int) -> tuple[Aborted, ...]:
    """The entries that say something about the offsets in [fetch_offset, upper_bound)."""
    return tuple(e for e in entries if e.last_offset >= fetch_offset and e.first_offset < upper_bound)


@dataclass(frozen=True)
class Index:
    """One segment's. `known` is the last offset that the next append must exceed, as far as it is remembered; `rest`
    bytes after the last whole entry are what a crash left of one."""

    start_offset: int
    entries: tuple[Aborted, ...] = ()
    exists: bool = False
    known: int | None = None
    rest: int = 0

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self.entries) * ENTRY_SIZE + self.rest

    @states("TXI-4", "TXI-5")
    def collected(self, fetch_offset: int, upper_bound: int) -> tuple[tuple[Aborted, ...], bool]:
        """What a fetch gets of this index, and whether that is all."""
        stop = next((n for n, e in enumerate(self.entries) if e.last_stable_offset >= upper_bound), None)
        asked = self.entries if stop is None else self.entries[: stop + 1]
        return overlapping(asked, fetch_offset, upper_bound), stop is not None

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
    def entries(self) -> tuple[Aborted, ...]:
        """Of all segments."""
        return tuple(e for i in self.indexes for e in i.entries)

    def with_active(self, index: Index) -> Log:
        return Log((*self.indexes[:-1], index))

    def floor(self, offset: int) -> int:
        """Which index is that of the segment which holds the offset: the last that begins at or below it."""
        return max(n for n, i in enumerate(self.indexes) if i.start_offset <= offset)


@states("TXI-12", "TXI-13")
def orderly(log: Log) -> bool:
    """Whether brokers can have written the whole of it."""
    ends = [*(i.start_offset for i in log.indexes[1:]), None]
    return in_order(log.entries) and all(
        i.start_offset <= e.last_offset and (end is None or e.last_offset < end)
        for i, end in zip(log.indexes, ends, strict=True)
        for e in i.entries
    )


@states("TXI-12")
def follows(log: Log, entry: Aborted) -> bool:
    """Whether a broker can append it to this log next."""
    return in_order((*log.entries[-1:], entry)) and entry.last_offset >= log.active.start_offset


def initial(start_offset: int = 0) -> Log:
    """One segment without aborted transactions. `start_offset` is its base offset."""
    return Log((Index(start_offset),))


def shown(entries: Iterable[tuple[int, ...]]) -> list[Json]:
    return [list(e) for e in entries]


class Observation(TypedDict, total=False):
    """The active segment's index, and those before it."""

    all: list[list[int]]
    """producer id, first offset, last offset, last stable offset"""
    isEmpty: bool
    fileSize: int
    """bytes"""
    exists: bool
    earlier: list[list[Json]]
    """start offset, entries, bytes behind the last whole entry"""


def observe(log: Log) -> Observation:
    """The active index as the recordings show it, and those before it."""
    active = log.active
    return cast(
        Observation,
        Fields(
            all=shown(active.entries),
            isEmpty=not active.entries,
            fileSize=active.size,
            exists=active.exists,
            earlier=[[i.start_offset, shown(i.entries), i.rest] for i in log.indexes[:-1]],
        ),
    )


machine: Machine[Log] = Machine("transaction_index", initial, observe)


# ---- conditions that several operations share ------------------------------------------------------------------------
def only_the_active_changes(log: Log, result: Step[Log]) -> bool:
    return result.state.indexes[:-1] == log.indexes[:-1]


def a_refusal_changes_nothing(log: Log, result: Step[Log]) -> bool:
    return not isinstance(result.result, Refused) or result.state == log


def nothing_changes(log: Log, result: Step[Log]) -> bool:
    return result.state == log


def entries_without_a_file(result: Step[Log]) -> bool:
    return all(i.exists or i.size == 0 for i in result.state.indexes)


# ---- the operations --------------------------------------------------------------------------------------------------
@machine.operation("append", TXI_1, TXI_2, TXI_3, TXI_12, TXI_13)
@icontract.require(lambda state: state.active.rest == 0, "TXI-3 what a crash left of an entry was cut off")
@icontract.ensure(lambda state, result: only_the_active_changes(state, result), "TXI-3 in the active segment")
@icontract.ensure(lambda state, result: a_refusal_changes_nothing(state, result), "TXI-3 refused: nothing changes")
@icontract.ensure(
    lambda state, last_offset, result: (
        isinstance(result.result, Refused) == (state.active.known is not None and last_offset <= state.active.known)
    ),
    "TXI-3 last offsets rise, as far as is known",
)
@icontract.ensure(
    lambda state, result: (
        isinstance(result.result, Refused) or result.state.active.size == state.active.size + ENTRY_SIZE
    ),
    "TXI-1 an entry is 34 bytes",
)
@icontract.ensure(
    lambda result: isinstance(result.result, Refused) or result.state.active.exists, "TXI-2 an append makes the file"
)
@icontract.ensure(
    lambda state, result: (
        not orderly(state)
        or isinstance(result.result, Refused)
        or not follows(state, result.state.active.entries[-1])
        or orderly(result.state)
    ),
    "TXI-12 appended in the order of the abort markers, they stand in order over all segments",
)
@icontract.ensure(
    lambda state, last_offset, result: (
        isinstance(result.result, Refused)
        or last_offset < state.active.start_offset
        or result.state.active.entries[-1].last_offset >= state.active.start_offset
    ),
    "TXI-13 the active segment has the marker",
)
def append(
    state: Log, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int
) -> Step[Log, None]:
    """An abort marker was appended to the segment."""
    index = state.active
    if index.known is not None and last_offset <= index.known:
        return Step(state, Refused(TXI_3, ILLEGAL_ARGUMENT))
    entry = Aborted(producer_id, first_offset, last_offset, last_stable_offset)
    return Step(state.with_active(replace(index, entries=(*index.entries, entry), exists=True, known=last_offset)))


class Collected(TypedDict):
    """Aborted transactions (producer id, first offset, last offset, last stable offset), and whether they are all."""

    abortedTransactions: list[list[int]]
    isComplete: bool


@machine.operation("collectAbortedTxns", TXI_4, TXI_5)
@icontract.ensure(lambda state, result: nothing_changes(state, result), "TXI-4 a question changes nothing")
@icontract.ensure(
    lambda state, fetch_offset, upper_bound_offset, result: all(
        e in shown(overlapping(state.active.entries, fetch_offset, upper_bound_offset))
        for e in result.result["abortedTransactions"]
    ),
    "TXI-4 nothing is given that does not overlap",
)
@icontract.ensure(
    lambda state, upper_bound_offset, result: (
        result.result["isComplete"] == any(e.last_stable_offset >= upper_bound_offset for e in state.active.entries)
    ),
    "TXI-5 complete just if something beyond was stable",
)
@icontract.ensure(
    lambda state, fetch_offset, upper_bound_offset, result: (
        not in_order(state.active.entries)
        or result.result["abortedTransactions"]
        == shown(overlapping(state.active.entries, fetch_offset, upper_bound_offset))
    ),
    "TXI-7 nothing that overlaps is left out",
)
def collect_aborted_txns(state: Log, fetch_offset: int, upper_bound_offset: int) -> Step[Log, Collected]:
    """Of the active segment alone. `fetch_offset` is included, `upper_bound_offset` is not."""
    entries, complete = state.active.collected(fetch_offset, upper_bound_offset)
    return Step(state, {"abortedTransactions": shown(entries), "isComplete": complete})


@machine.operation("log.collectAbortedTxns", TXI_6, TXI_7)
@icontract.require(
    lambda state, fetch_offset: fetch_offset >= state.indexes[0].start_offset, "TXI-6 a fetch begins within the log"
)
@icontract.ensure(lambda state, result: nothing_changes(state, result), "TXI-6 a question changes nothing")
@icontract.ensure(
    lambda state, fetch_offset, upper_bound_offset, result: (
        not orderly(state) or result.result == shown(overlapping(state.entries, fetch_offset, upper_bound_offset))
    ),
    "TXI-7 every aborted transaction that overlaps is given, whichever segment its marker is in",
)
def log_collect_aborted_txns(state: Log, fetch_offset: int, upper_bound_offset: int) -> Step[Log, list[list[int]]]:
    """What a fetch of [fetch_offset, upper_bound_offset) gets, over the segments."""
    out: list[Json] = []
    for index in state.indexes[state.floor(fetch_offset) :]:
        entries, complete = index.collected(fetch_offset, upper_bound_offset)
        out += shown(entries)
        if complete:
            break
    return Step(state, out)


@machine.operation("roll", TXI_2)
@icontract.require(
    lambda state, start_offset: start_offset > state.active.start_offset,
    "TXI-6 segments stand in the order of their bases",
)
@icontract.ensure(lambda state, result: result.state.indexes[:-1] == state.indexes, "TXI-6 after those before it")
@icontract.ensure(
    lambda result: not result.state.active.exists and not result.state.active.entries,
    "TXI-2 a new segment has no file yet",
)
def roll(state: Log, start_offset: int) -> Step[Log, None]:
    """A new segment begins at an offset."""
    return Step(Log((*state.indexes, Index(start_offset))))


@machine.operation("truncateTo", TXI_8)
@icontract.ensure(lambda state, result: only_the_active_changes(state, result), "TXI-8 in the active segment")
@icontract.ensure(
    lambda state, result: result.state.active.entries == state.active.entries[: len(result.state.active.entries)],
    "TXI-8 what is left is what came first",
)
@icontract.ensure(
    lambda offset, result: all(e.last_offset < offset for e in result.state.active.entries),
    "TXI-8 nothing at or above the offset is left",
)
@icontract.ensure(
    lambda state, offset, result: result.state == state or any(e.last_offset >= offset for e in state.active.entries),
    "TXI-8 nothing to drop: nothing changes",
)
def truncate_to(state: Log, offset: int) -> Step[Log, None]:
    """Drop what was aborted at or above an offset, from the active segment."""
    index = state.active
    first = next((n for n, e in enumerate(index.entries) if e.last_offset >= offset), None)
    if first is None:
        return Step(state)
    kept = index.entries[:first]
    return Step(state.with_active(replace(index, entries=kept, rest=0, known=kept[-1].last_offset if kept else None)))


@machine.operation("reset", TXI_9)
@icontract.ensure(lambda state, result: only_the_active_changes(state, result), "TXI-9 in the active segment")
@icontract.ensure(
    lambda state, result: result.state.active == Index(state.active.start_offset, (), state.active.exists),
    "TXI-9 nothing is left but the file",
)
def reset(state: Log) -> Step[Log, None]:
    """Empty the active segment's index: its recovery begins so."""
    return Step(state.with_active(Index(state.active.start_offset, (), state.active.exists)))


@machine.operation("sanityCheck", TXI_10)
@icontract.ensure(lambda state, result: nothing_changes(state, result), "TXI-10 a question changes nothing")
@icontract.ensure(
    lambda state, result: (
        isinstance(result.result, Refused)
        == any(e.last_offset < state.active.start_offset for e in state.active.entries)
    ),
    "TXI-10 refused just if an entry ends below the base offset",
)
def sanity_check(state: Log) -> Step[Log, None]:
    """What opening a log asks of each index."""
    below = any(e.last_offset < state.active.start_offset for e in state.active.entries)
    return Step(state, Refused(TXI_10, CORRUPT_INDEX) if below else None)


@machine.operation("reopen", TXI_3, TXI_2, kind="restart")
@icontract.ensure(
    lambda state, result: result.state == state.with_active(replace(state.active, known=None)),
    "TXI-3 an index that was opened remembers no last offset",
)
def reopen(state: Log) -> Step[Log, None]:
    """Close the active segment's index, and open it again."""
    return Step(state.with_active(replace(state.active, known=None)))


@machine.operation("crash", TXI_11, kind="crash")
@icontract.require(lambda lost_bytes: lost_bytes >= 0, "TXI-11 nothing comes by a crash")
@icontract.ensure(lambda state, result: only_the_active_changes(state, result), "TXI-11 in the active segment")
@icontract.ensure(
    lambda state, lost_bytes, result: result.state.active.size == max(0, state.active.size - lost_bytes),
    "TXI-11 the bytes at the end are lost",
)
@icontract.ensure(
    lambda state, result: result.state.active.entries == state.active.entries[: result.state.active.size // ENTRY_SIZE],
    "TXI-11 a part of an entry is no entry",
)
def crash(state: Log, lost_bytes: int) -> Step[Log, None]:
    """What was not flushed is lost: the last bytes of the active segment's file. Then it is opened again."""
    return Step(state.with_active(state.active.cut(max(0, state.active.size - lost_bytes))))


@machine.operation("file", TXI_1)
@icontract.ensure(lambda state, result: nothing_changes(state, result), "TXI-1 a question changes nothing")
@icontract.ensure(
    lambda state, result: len(result.result) == 2 * ENTRY_SIZE * len(state.active.entries), "TXI-1 34 bytes an entry"
)
def file(state: Log) -> Step[Log, str]:
    """The whole entries of the active segment's file, in hexadecimal digits."""
    return Step(state, "".join(hexadecimal(e) for e in state.active.entries))


@states("TXI-1")
def hexadecimal(entry: Aborted) -> str:
    """Its 34 bytes, two digits a byte."""
    return "0000" + "".join(f"{n % 2**64:016x}" for n in entry)


def bytes_in_digits(content: str) -> bool:
    return len(content) % 2 == 0 and set(content) <= set("0123456789abcdef")


def stands_there(content: str, entries: Sequence[Sequence[int]]) -> bool:
    """Whether a file with this content has just these entries, versions aside."""
    whole = [content[at + 4 : at + 68] for at in range(0, len(content) // 68 * 68, 68)]
    return whole == [hexadecimal(Aborted(*e))[4:] for e in entries]


@machine.operation("read", TXI_1, TXI_11)
@icontract.require(lambda content: bytes_in_digits(content), "TXI-1 two hexadecimal digits a byte")
@icontract.ensure(lambda state, result: nothing_changes(state, result), "TXI-11 another file")
@icontract.ensure(
    lambda content, result: isinstance(result.result, Refused) or stands_there(content, result.result),
    "TXI-1 what was read is what stands there",
)
def read(state: Log, content: str) -> Step[Log, list[list[int]]]:
    """The entries of a file with this content, in hexadecimal digits."""
    out: list[Json] = []
    for at in range(0, len(content) // 68 * 68, 68):
        version, fields = content[at : at + 4], content[at + 4 : at + 68]
        if 0 < int(version, 16) < 2**15:
            return Step(state, Refused(TXI_11, KAFKA_EXCEPTION))
        numbers = [int(fields[n : n + 16], 16) for n in range(0, 64, 16)]
        out.append([n - 2**64 if n >= 2**63 else n for n in numbers])
    return Step(state, out)


_ONE = hexadecimal(Aborted(1, 2, 3, 4))
