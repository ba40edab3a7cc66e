"""Loading a log after a stop: what becomes of the files of a partition's directory, and which records are lost.

A directory is its files by name, each with what matters of its content: a .log is its batches, a snapshot or a
transaction index is whole or corrupt, of an offset or time index it matters only whether it is there. Batches have no
producers: what recovery makes of those is the producer state's own affair.

Source: Kafka Internals, ch. 03, "Crash recovery & startup: LogLoader"; LogLoader, LocalLog.replaceSegments
and splitOverflowedSegment, UnifiedLog.rebuildProducerState, LogSegment.recover and LogManager, Kafka 4.3.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import AT_REST, clause, states
from kafkaspec.contract.codec import decode
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Step
from kafkaspec.contract.numbers import Count, LeaderEpoch, LeaderEpochOrNone, Offset
from kafkaspec.errors import UserError
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.kafka import INT_MAX, LONG_MAX
from kafkaspec.spec.common.remembered import remembered
from kafkaspec.spec.common.segment_contents import MOST_RECORDS

PREFIX = "LDR"
TITLE = "Loading a log after a stop"

CHAPTER = "Kafka Internals, ch. 03, 'Crash recovery & startup'"
LOADER = "LogLoader, Kafka 4.3.0"

ONE_DIRECTORY = {
    "model": "a function of one directory's files; the models have what happens when it is interrupted",
    "proof": "see the model",
}
OF_LOGS_AT_REST = AT_REST | {
    "model": "about logs at rest: nothing moves",
    "proof": "see the model",
    "mutant": "the audit's tests damage logs instead",
}
NO_RULE_HERE = OF_LOGS_AT_REST | {"spec": "about logs at rest: the audit checks them"}

clause(
    "LDR-16",
    "Offsets rise from batch to batch, and from segment to segment: no two batches share an offset.",
    source="Kafka Internals, ch. 03, 'Segments'; UnifiedLog.append, Kafka 4.3.0",
    without=NO_RULE_HERE,
)
clause(
    "LDR-17",
    "From the log start on a batch begins where the one before it ends, unless compaction has taken records away.",
    source="UnifiedLog.append, Kafka 4.3.0; Kafka Internals, ch. 04, 'Compaction'",
    without=NO_RULE_HERE,
)
clause(
    "LDR-19",
    """Every directory in a log directory is a partition's: TOPIC-PARTITION, or TOPIC-PARTITION.ID with -delete (removed
    after the start), -future (a move that goes on) or -stray (kept aside); or it is remote-log-index-cache. Any other
    stops the start, and so does a partition in two directories of one broker. But one in the place of
    .kafka_cleanshutdown is looked at before: if it is empty, it is taken for the marker of a clean stop and removed; if
    not, the log directory goes out of service.""",
    source="LocalLog.parseTopicPartitionName, LogManager.loadLogs and CleanShutdownFileHandler, Kafka 4.3.0",
    without=NO_RULE_HERE,
)

EPOCHS = "leader-epoch-checkpoint"
DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"
LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"


# ---- the state -------------------------------------------------------------------------------------------------------
class Batch(NamedTuple):
    """`whole`: its CRC is right."""

    base: Offset
    last: Offset
    epoch: LeaderEpochOrNone = 0
    whole: bool = True


@dataclass(frozen=True)
class LogFile:
    """A .log file."""

    batches: tuple[Batch, ...] = ()
    """first offset, last offset, leader epoch, whether it is whole"""
    torn: bool = False
    """bytes of half a batch stand at its end"""

    @property
    def sound(self) -> LogFile:
        """What recovery leaves."""
        n = next((n for n, b in enumerate(self.batches) if not b.whole), len(self.batches))
        return LogFile(self.batches[:n])


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: LeaderEpoch
    start_offset: Offset


Epochs = tuple[EpochEntry, ...]
Content = LogFile | Epochs | str
"""of a .log; of the leader epoch checkpoint; of any other file, which is "" or "corrupt" as far as that matters"""


class File(NamedTuple):
    """A file of the directory."""

    name: str
    content: Content


@dataclass(frozen=True)
class Directory:
    """The directory of a log."""

    files: Annotated[
        Frozen[str, Content],
        governs(
            "LDR-18",
            keys={
                "*.deleted": ("LDR-1", "LDR-14"),
                "*.cleaned": ("LDR-1", "LDR-14"),
                "*.swap": ("LDR-4", "LDR-2", "LDR-3", "LDR-14"),
                "*.snapshot": ("LDR-13", "LDR-8", "LDR-9"),
                "leader-epoch-checkpoint": ("LDR-12", "LDR-8", "LDR-7", "LDR-6", "LDR-9", "LDR-23"),
                "*.log": (
                    *("LDR-7", "LDR-6", "LDR-9", "LDR-10", "LDR-3", "LDR-15"),
                    *("LDR-20", "LDR-21", "LDR-22", "LDR-18"),
                ),
                "*index": ("LDR-5", "LDR-6", "LDR-9", "LDR-10", "LDR-21", "LDR-22"),
            },
        ),
    ]
    """a .log, the entries of the leader epoch checkpoint, or the content of another file"""


def can_be_made(content: Content) -> bool:
    """Whether a file is no matter of memory: each of its batches has at most a thousand offsets."""
    return not isinstance(content, LogFile) or all(b.last - b.base < MOST_RECORDS for b in content.batches)


def initial(files: Mapping[str, Content] | None = None) -> Directory:
    """A directory with these files. UserError for a batch of more than a thousand offsets: whoever makes the files
    writes a record for each."""
    content = decode(Mapping[str, Content], files or {})
    for name, c in content.items():
        if not can_be_made(c):
            raise UserError(f"{name}: a batch has at most {MOST_RECORDS} offsets")
    return Directory(Frozen(content))


def observe(state: Directory) -> Directory:
    """All of it."""
    return state


machine: Machine[Directory] = Machine("log_loader", initial, observe)


# ---- names -----------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=1024)
def name_of(offset: int, end: str, suffix: str = "") -> str:
    """The name of a segment's file."""
    return f"{offset:020}{end}{suffix}"


@lru_cache(maxsize=1024)
def offset_of(name: str) -> int | None:
    """The number that a name begins with; None if it does not."""
    m = re.match(r"(\d+)\.", name)
    return int(m[1]) if m else None


def log_of(files: Mapping[str, Content], base: int) -> LogFile:
    """The .log of a segment that is there."""
    log = files[name_of(base, LOG)]
    assert isinstance(log, LogFile)
    return log


@states(without=OF_LOGS_AT_REST)
@remembered
def sensible(files: Mapping[str, Content]) -> bool:
    """Whether names are those that Kafka makes, the offsets of each .log rise from its base on, and leader epochs rise.

    LDR-18: A segment's files are named by its base offset, in 20 digits; its batches lie between that and the next
    segment's base offset. A directory is none of its files: where one has the name, an index cannot be opened, and a
    producer snapshot not be written. [LogFileUtils, LogSegments, AbstractIndex, TransactionIndex and
    ProducerStateManager, Kafka 4.3.0]
    """
    for name, c in files.items():
        offset = offset_of(name)
        if name != EPOCHS and (offset is None or name[:20] != f"{offset:020}"):
            return False
        if not isinstance(c, LogFile if LOG in name else tuple if name == EPOCHS else str):
            return False
        if isinstance(c, LogFile):
            marks = [offset or 0, *(n for b in c.batches for n in (b.base, b.last + 1))]
            if marks != sorted(marks) or any(not 0 <= b.last - b.base <= INT_MAX for b in c.batches):
                return False
        if isinstance(c, tuple) and any(a >= b for x, y in pairwise(c) for a, b in zip(x, y, strict=True)):
            return False
    return True


def apart(files: Mapping[str, Content]) -> bool:
    """Whether no segment reaches beyond the next one's base."""
    logs = sorted(
        (offset_of(n) or 0, c.batches) for n, c in files.items() if isinstance(c, LogFile) and n.endswith(LOG)
    )
    return all(not batches or batches[-1].last < base for (_, batches), (base, _) in pairwise(logs))


# ---- the passes ------------------------------------------------------------------------------------------------------
Files = dict[str, Content]


@states()
def pass_1(files: Files) -> Files:
    """The files without those of a compaction or a replacement that was not finished, and without deleted ones.

    LDR-1: Loading first removes every file *.deleted, but for *.checkpoint.deleted of the metadata log, and every
    *.cleaned: the output of a compaction that was not finished. [{CHAPTER}; {LOADER}]

    LDR-2: A *.swap whose offset is not below the smallest offset of a *.cleaned is removed, before any *.cleaned is:
    not all files of its replacement had come to be *.swap. [{CHAPTER}; {LOADER}; KAFKA-6264]
    """
    cleaned = [n for n in files if n.endswith(CLEANED)]
    least = min((offset_of(n) or 0 for n in cleaned), default=LONG_MAX)
    return {
        n: c
        for n, c in files.items()
        if not (n.endswith(DELETED) and not n.endswith(".checkpoint.deleted"))
        and not n.endswith(CLEANED)
        and not (n.endswith(SWAP) and (offset_of(n) or 0) >= least)
    }


def next_offset(base: int, log: LogFile) -> int:
    """The offset after the last batch, whole or not."""
    return log.batches[-1].last + 1 if log.batches else base


@states()
def pass_2(files: Files) -> Files:
    """The files without those of the segments that a .log.swap replaces.

    LDR-3: Where a *.log.swap is left, every other file is removed whose name begins with an offset from the smallest
    base offset of these to the next offset after the last batch of any: the segments that are replaced, their indexes
    and snapshots. [{CHAPTER}; {LOADER}]
    """
    swaps = {offset_of(n) or 0: c for n, c in files.items() if n.endswith(LOG + SWAP) and isinstance(c, LogFile)}
    if not swaps:
        return files
    first = min(swaps)
    end = max(next_offset(base, log) for base, log in swaps.items())

    def replaced(name: str) -> bool:
        offset = offset_of(name)
        return not name.endswith(SWAP) and offset is not None and first <= offset < end

    opened = {name_of(base, INDEX, SWAP): "" for base in swaps}
    return {**opened, **{n: c for n, c in files.items() if not replaced(n)}}


@states()
def pass_3(files: Files, renames: int | None = None, first: int | None = None) -> Files:
    """The files after at most this many .swap were renamed, all of them with None. Those of the offset `first` come
    first if it is given.

    LDR-4: Then the *.swap that are left lose that suffix, those of the lowest offset first. [{CHAPTER}; {LOADER}]
    """
    swaps = sorted((n for n in files if n.endswith(SWAP)), key=lambda n: (first is None or offset_of(n) != first, n))
    out = dict(files)
    for n in swaps[:renames]:
        out[n.removesuffix(SWAP)] = out.pop(n)
    return out


@states(without=ONE_DIRECTORY)
@dataclass
class Snapshots:
    """A producer state manager without producers: `end` is what it has seen, `last` the newest snapshot it took.

    LDR-13: Of the producer snapshots at no segment's base the newest is kept, if none begins above it; those above the
    log end, and those not above the log start, are removed, and corrupt ones that were read. Afterwards there is one at
    the log end, if that is above the newest of those left and above the log start. [{CHAPTER}; ProducerStateManager and
    UnifiedLog.rebuildProducerState, Kafka 4.3.0]
    """

    known: dict[int, str]
    end: int = 0
    last: int = 0

    def take(self) -> None:
        if self.end > self.last:
            self.known[self.end] = ""
            self.last = self.end

    @states("LDR-13")
    def reload(self, log_start: int, log_end: int) -> None:
        for offset in [o for o in self.known if o > log_end or o <= log_start]:
            del self.known[offset]
        if self.end == log_end:
            self.end = max(self.end, log_start)
            self.last = max(self.known, default=log_start)
            return
        while self.known and self.known[max(self.known)] == "corrupt":
            del self.known[max(self.known)]
        self.end = self.last = max(self.known, default=log_start)

    @states("LDR-13")
    def rebuild(self, bases: Sequence[int], log_start: int, log_end: int, clean: bool) -> None:
        """UnifiedLog.rebuildProducerState: snapshots at the last two segments' bases and at the end."""
        last_two = sorted(bases)[-2:]
        if not self.known and clean:
            for offset in [*last_two, log_end]:
                self.end = offset
                self.take()
            return
        nothing_to_read = self.end >= log_end
        self.reload(log_start, log_end)
        if log_end > self.end and not nothing_to_read:
            for base in segments_between(bases, self.end, log_end):
                self.end = max(base, self.end, log_start)
                if base in (*last_two, log_end):
                    self.take()
        self.end = log_end
        self.take()

    @states("LDR-13")
    def remove_strays(self, bases: Sequence[int]) -> None:
        strays = sorted(o for o in self.known if o not in bases)
        for offset in strays[:-1]:
            del self.known[offset]
        if strays and bases and strays[-1] < max(bases):
            del self.known[strays[-1]]


@states("LDR-7")
def segments_between(bases: Sequence[int], start: int, end: int) -> list[int]:
    """From the segment that holds `start` to the one below `end`; nothing if both are one."""
    if start == end:
        return []
    floor = max((b for b in bases if b <= start), default=-1)
    return [b for b in sorted(bases) if floor <= b < end]


@states("LDR-20", "LDR-21")
def overflows(base: int, batch: Batch) -> bool:
    """Whether no index of a segment that begins there can have the batch."""
    return batch.last - base > INT_MAX


@states("LDR-21")
def pieces(batches: Sequence[Batch]) -> dict[int, LogFile]:
    """The segments that a split makes of these batches, by base offset."""
    out: dict[int, LogFile] = {}
    base: int | None = None
    for b in batches:
        if base is None or overflows(base, b):
            base = b.base
        out[base] = LogFile((*out.get(base, LogFile()).batches, b))
    return out


class Overflow(Exception):
    """A segment has a batch that overflows."""

    def __init__(self, base: int) -> None:
        super().__init__(base)
        self.base = base


@dataclass
class Load:
    """A load that is under way: the files, the segments' logs by base offset, the epochs. `found`: the producer
    snapshots that were there when it began. `made`: the base offsets of the pieces that splits made."""

    files: Files
    point: int
    log_start: int
    segments: dict[int, LogFile] = field(default_factory=dict)
    epochs: Epochs = ()
    found: frozenset[int] = frozenset()
    made: frozenset[int] = frozenset()

    def snapshots(self) -> dict[int, str]:
        """By offset, as the disk has them."""
        return {
            offset_of(n) or 0: str(c)
            for n, c in self.files.items()
            if n.endswith(SNAPSHOT) and offset_of(n) is not None
        }

    def put(self, known: Mapping[int, str]) -> None:
        """Have these snapshots on the disk and no others."""
        self.files = {n: c for n, c in self.files.items() if not n.endswith(SNAPSHOT)}
        self.files |= {name_of(o, SNAPSHOT): c for o, c in known.items()}

    @states("LDR-6", "LDR-8", "LDR-20", without=ONE_DIRECTORY)
    def recover(self, base: int, below: Sequence[int]) -> bool:
        """Make a segment's indexes again, and cut it; whether it was cut. Raises Overflow.

        LDR-8: A recovered segment gives each leader epoch above the latest one to the epoch cache, with the first
        offset of the batch, and takes a producer snapshot at its end. [{LOADER}; LogSegment.recover, Kafka 4.3.0]

        LDR-20: A segment overflows if a batch of it ends more than 2^31 - 1 above its base offset: no index entry can
        say where that is. It is noticed while the segment is recovered, at the first such batch, and only if that batch
        and all before it are whole; else the segment is cut first. What is not recovered is opened as it is. The leader
        epochs of the batches before are given to the cache by then. [LogSegment.recover, Kafka 4.3.0; KAFKA-6264]
        """
        log = log_of(self.files, base)
        snapshots = Snapshots(self.snapshots())
        snapshots.rebuild(below, self.log_start, base, clean=False)
        sound = log.sound
        fitting = next((n for n, b in enumerate(sound.batches) if overflows(base, b)), len(sound.batches))
        for b in sound.batches[:fitting]:
            if b.epoch >= 0 and (not self.epochs or b.epoch > self.epochs[-1].epoch):
                kept = (e for e in self.epochs if e.start_offset < b.base)
                self.epochs = (*kept, EpochEntry(b.epoch, b.base))
            snapshots.end = b.last + 1
        self.files |= {name_of(base, INDEX): "", name_of(base, TIME_INDEX): ""}
        if name_of(base, TXN_INDEX) in self.files:
            self.files[name_of(base, TXN_INDEX)] = ""
        if fitting < len(sound.batches):
            self.put(snapshots.known)
            raise Overflow(base)
        self.files[name_of(base, LOG)] = sound
        snapshots.take()
        self.put(snapshots.known)
        return sound != log

    def forget(self, base: int) -> None:
        """Delete a segment."""
        self.retire(base)
        self.files.pop(name_of(base, SNAPSHOT), None)

    def retire(self, base: int) -> None:
        """Delete a segment, but for its snapshot."""
        self.segments.pop(base, None)
        for end in (LOG, INDEX, TIME_INDEX, TXN_INDEX):
            self.files.pop(name_of(base, end), None)

    @states("LDR-22", "LDR-21", "LDR-20", "LDR-23", without=ONE_DIRECTORY)
    def split(self, base: int) -> None:
        """Put pieces in the place of a segment that overflows.

        LDR-21: A segment that is found to overflow is split. Each piece begins with the first batch that would overflow
        the one before, and has the base offset of its first batch, which for the first piece may be above the
        segment's. The pieces have every batch of the segment once, in order, whole or not; half a batch at its end is
        left out. A piece has an offset index and a time index, and no transaction index.
        [LocalLog.splitOverflowedSegment and LogSegment.appendFromFile, Kafka 4.3.0; KAFKA-6264]

        LDR-22: The pieces take the segment's place by a replacement (LDR-14), and nothing of it is left under its name.
        If no piece has its base offset, the producer snapshot there goes too, if it was there before the load.
        [LocalLog.splitOverflowedSegment and LogLoader.retryOnOffsetOverflow, Kafka 4.3.0]
        """
        assert base not in self.made, f"the piece from {base} on overflows"
        new = pieces(log_of(self.files, base).batches)
        self.made |= new.keys()
        self.retire(base)
        if base not in new and base in self.found:
            self.files.pop(name_of(base, SNAPSHOT), None)
        for piece, log in new.items():
            self.files |= {name_of(piece, LOG): log, name_of(piece, INDEX): "", name_of(piece, TIME_INDEX): ""}
            self.segments[piece] = log

    @states(without=ONE_DIRECTORY)
    def without_overflow(self, work: Callable[[], None]) -> None:
        """Do it until no segment is found to overflow. That ends: a piece never does, so that at most each segment that
        was there is split.

        LDR-23: After a split the loader begins again: it opens all segments once more, or recovers them once more from
        the one on that holds the recovery point, which may be a piece now. While segments are opened a piece is not
        recovered, for it has its indexes: after a clean stop a batch in it that is not whole stays.
        [LogLoader.retryOnOffsetOverflow, Kafka 4.3.0; KAFKA-6264]
        """
        while True:
            try:
                return work()
            except Overflow as found:
                self.split(found.base)

    @states(without=ONE_DIRECTORY)
    def open_segments(self) -> None:
        """Remove indexes of no segment, and open the segments, recovering those that need it.

        LDR-5: An index file without a .log is removed. [{CHAPTER}; {LOADER}]

        LDR-6: A segment without an offset index, or with a transaction index of which an entry lies below its base
        offset, is recovered alone, whatever the stop: it is cut before its first batch that is not whole, and the
        segments after it stay. A time index that is not there is made, empty. [{CHAPTER}; {LOADER}]
        """
        self.segments.clear()
        for n in sorted(self.files):
            base = offset_of(n)
            if base is None:
                continue
            if n.endswith((INDEX, TIME_INDEX, TXN_INDEX)) and name_of(base, LOG) not in self.files:
                del self.files[n]
            elif n.endswith(LOG):
                if name_of(base, INDEX) not in self.files or self.files.get(name_of(base, TXN_INDEX)) == "corrupt":
                    self.recover(base, list(self.segments))
                self.files.setdefault(name_of(base, TIME_INDEX), "")
                self.segments[base] = log_of(self.files, base)

    @states(without=ONE_DIRECTORY)
    def recover_log(self) -> None:
        """Recover each segment from the recovery point on, up to the first that is cut.

        LDR-7: After a clean stop nothing else is read. Otherwise each segment is recovered from the one on that holds
        the recovery point; the first that is cut is the last one kept, those after it are deleted. So a batch that is
        not whole is noticed below the recovery point too, if it lies in that segment. [{CHAPTER}; {LOADER}]
        """
        for base in segments_between(list(self.segments), self.point, LONG_MAX):
            cut = self.recover(base, list(self.segments))
            self.segments[base] = log_of(self.files, base)
            if cut:
                for later in [b for b in self.segments if b > base]:
                    self.forget(later)
                return

    @states("LDR-10", without=ONE_DIRECTORY)
    def begin(self) -> None:
        """Make the first segment.

        LDR-10: A directory without a segment gets an empty one at the checkpointed log start. [{LOADER}]
        """
        self.segments[self.log_start] = LogFile()
        self.files[name_of(self.log_start, LOG)] = LogFile()

    @property
    def end(self) -> int | None:
        return next_offset(max(self.segments), self.segments[max(self.segments)]) if self.segments else None


@states(without=ONE_DIRECTORY)
def within(epochs: Epochs, log_start: int, log_end: int) -> Epochs:
    """The leader epochs of a log that starts and ends there.

    LDR-12: Leader epochs that begin at the log end or later are dropped; of those that begin at or below the
    checkpointed log start the last is kept, and begins there. [{CHAPTER}; {LOADER}]
    """
    kept = [e for e in epochs if e.start_offset < log_end]
    begun = [e for e in kept if e.start_offset <= log_start]
    first = (EpochEntry(begun[-1].epoch, log_start),) if begun else ()
    return (*first, *(e for e in kept if e.start_offset > log_start))


@dataclass(frozen=True)
class Ends:
    """Of a loaded log."""

    log_start: Annotated[int, governs("LDR-11", "LDR-9", "LDR-10")]
    recovery_point: Annotated[int, governs("LDR-11")]
    log_end: Annotated[int, governs("LDR-11", "LDR-7", "LDR-9", "LDR-20")]


def begun(files: Mapping[str, Content], point: int, log_start: int, load_class: type[Load] = Load) -> Load:
    """A load after its first three passes."""
    epochs = files.get(EPOCHS, ())
    assert isinstance(epochs, tuple)
    found = frozenset(offset_of(n) or 0 for n in files if n.endswith(SNAPSHOT))
    return load_class(pass_3(pass_2(pass_1(dict(files)))), point, log_start, epochs=epochs, found=found)


@remembered
def loaded(files: Mapping[str, Content], clean: bool, point: int, log_start: int) -> tuple[Files, Ends]:
    """The files after a load, and the log's start, recovery point and end."""
    return finished(begun(files, point, log_start), clean)


@states(without=ONE_DIRECTORY)
def finished(load: Load, clean: bool) -> tuple[Files, Ends]:
    """The files after the rest of a load, and the log's start, recovery point and end.

    LDR-9: If the log would end below the checkpointed log start, all segments, epochs and snapshots are deleted, and an
    empty log begins at the log start. [{CHAPTER}; {LOADER}]

    LDR-11: The log starts at the checkpointed log start or at the first segment, whichever is higher, and ends after
    the last batch. The recovery point is the end after a clean stop, if the log had a segment; otherwise the
    checkpointed one, lowered to the end, but not below the log start. [{CHAPTER}; {LOADER}; KAFKA-10101]
    """
    log_start = load.log_start
    main = Snapshots({})
    load.without_overflow(load.open_segments)
    if not clean:
        load.without_overflow(load.recover_log)
    end = load.end
    if end is not None and end < log_start:
        for base in list(load.segments):
            load.forget(base)
        load.epochs = ()
        load.put({})
        main.end = log_start
        end = None
    had_segments = end is not None
    if not load.segments:
        load.begin()
    last = max(load.segments)
    load.files |= {name_of(last, INDEX): "", name_of(last, TIME_INDEX): ""}
    end = log_start if end is None else end
    first = max(log_start, min(load.segments))
    load.epochs = within(load.epochs, log_start, end)
    main.known = load.snapshots()
    main.remove_strays(list(load.segments))
    main.rebuild(list(load.segments), first, end, clean)
    load.put(main.known)
    load.files[EPOCHS] = load.epochs
    recovered = end if clean and had_segments else min(load.point, end)
    return load.files, Ends(first, max(first, recovered), end)


def records(files: Mapping[str, Content]) -> set[Batch]:
    """The batches of the segments that are there by name."""
    return {b for n, c in files.items() if n.endswith(LOG) and isinstance(c, LogFile) for b in c.batches}


# ---- the operations --------------------------------------------------------------------------------------------------
@states("LDR-15")
def again(result: Step[Directory, Ends], clean: bool, log_start: int) -> bool:
    """Whether a load after a load finds nothing to do."""
    ends = result.result
    assert isinstance(ends, Ends)
    files, found = loaded(result.state.files, clean, ends.recovery_point, log_start)
    same = (found.log_start, found.log_end) == (ends.log_start, ends.log_end)
    return same and records(files) == records(result.state.files)


@machine.operation("put", "LDR-18", kind="damage")
@require(lambda file: sensible({file.name: file.content}), "LDR-18 a file of Kafka's")
@require(lambda state, file: apart(state.files.with_(*file)), "LDR-18 below the next segment's base")
@require(
    lambda file: can_be_made(file.content),
    "LDR-18 batches of at most a thousand records, so that the file can be made",
)
def put(state: Directory, file: File) -> Directory:
    """A file, its name and its content, is there from whatever went before."""
    return Directory(state.files.with_(*file))


@machine.environment("drop", kind="damage")
@require(lambda state, name: name in state.files, "LDR-18 the file is there")
def drop(state: Directory, name: str) -> Directory:
    """A file is gone."""
    return Directory(state.files.without(name))


@machine.environment("writeCleaned")
@require(lambda new: all(n >= 0 for n in new), "LDR-18 offsets")
def write_cleaned(state: Directory, new: Sequence[Offset]) -> Directory:
    """A compaction or a split has written its output: of each new segment the first record."""
    files = dict(state.files)
    for n in new:
        files |= {name_of(n, LOG, CLEANED): LogFile((Batch(n, n),))}
        files |= {name_of(n, INDEX, CLEANED): "", name_of(n, TIME_INDEX, CLEANED): ""}
    return Directory(Frozen(files))


@states()
def swap_steps(old: Sequence[int], new: Sequence[int]) -> list[tuple[str, str]]:
    """The renames of a replacement in their order; those of files that are not there are left out.

    LDR-14: A replacement renames the new segments from *.cleaned to *.swap, the last one first, then the old ones to
    *.deleted, then the new ones to their names, the first one first. So after a crash at any moment, and a load, the
    directory has exactly the old segments or exactly the new ones; of those old ones of which the new ones reach no
    offset, some may be left. [{CHAPTER}; LocalLog.replaceSegments, Kafka 4.3.0; KAFKA-6264]
    """
    ends = (LOG, INDEX, TIME_INDEX, TXN_INDEX)
    steps = [(name_of(n, e, CLEANED), name_of(n, e, SWAP)) for n in sorted(new, reverse=True) for e in ends]
    steps += [(name_of(o, e), name_of(o, e, DELETED)) for o in sorted(old) for e in ends]
    return steps + [(name_of(n, e, SWAP), name_of(n, e)) for n in sorted(new) for e in ends]


@machine.operation("replace", "LDR-14", kind="crash")
@require(
    lambda state, new: all(name_of(n, e, CLEANED) in state.files for n in new for e in (LOG, INDEX, TIME_INDEX)),
    "LDR-14 the new segments are written",
)
@require(
    lambda state, old: bool(old) and all(name_of(o, e) in state.files for o in old for e in (LOG, INDEX, TIME_INDEX)),
    "LDR-14 the old segments are there",
)
@require(lambda old: len(set(old)) == len(old), "LDR-14 each of them once")
@require(lambda new, steps: len(set(new)) == len(new) > 0 and steps >= 0, "LDR-14 some steps, perhaps all")
def replace_segments(
    state: Directory, old: Sequence[Offset], new: Sequence[Offset], steps: Count
) -> Step[Directory, int]:
    """A replacement, crashed after at most `steps` renames. The answer: how many there were."""
    files = dict(state.files)
    done = 0
    for source, target in swap_steps(old, new):
        if source in files and done < steps:
            files[target] = files.pop(source)
            done += 1
    return Step(Directory(Frozen(files)), done)


def interrupted(state: Directory, renames: int, first: int | None = None) -> Step[Directory, int]:
    """The passes up to that many renames of the third one."""
    files = pass_2(pass_1({EPOCHS: (), **state.files}))
    done = min(renames, sum(n.endswith(SWAP) for n in files))
    return Step(Directory(Frozen(pass_3(files, renames, first))), done)


@states("LDR-15")
def unharmed(state: Directory, result: Step[Directory, int]) -> bool:
    """Whether a load leaves the same records if another one was begun before it."""
    left = [records(loaded(s.files, False, 0, 0)[0]) for s in (state, result.state)]
    return left[0] == left[1]


@machine.operation("crashedLoad", "LDR-4", "LDR-15", kind="crash")
@require(lambda state: sensible(state.files), "LDR-18 a directory of Kafka's")
@require(lambda renames: renames >= 0, "LDR-4 some renames, perhaps all")
@ensure(unharmed, "LDR-15 a crash does no harm")
def crashed_load(state: Directory, first: Offset, renames: Count) -> Step[Directory, int]:
    """The broker starts, and crashes after at most `renames` renames of the third pass. `first`: the file system lists
    the files of that offset before the others. The answer: how many renames there were.

    LDR-15: A crash while a log is loaded does no harm: loading again ends with the records that an undisturbed load
    leaves. [{LOADER}; KAFKA-10471]
    """
    return interrupted(state, renames)


@machine.operation(
    "load", "LDR-1", "LDR-2", "LDR-3", "LDR-4", "LDR-5", "LDR-6", "LDR-7", "LDR-8", "LDR-9", "LDR-10", "LDR-11",
    "LDR-12", "LDR-13", "LDR-15", "LDR-20", "LDR-21", "LDR-22", "LDR-23", kind="restart",
)  # fmt: skip
@require(lambda state: sensible(state.files), "LDR-18 a directory of Kafka's")
@require(lambda recovery_point, log_start: recovery_point >= 0 and log_start >= 0, "LDR-11 offsets")
@ensure(
    lambda result: not any(n.endswith((CLEANED, SWAP)) for n in result.state.files), "LDR-4 nothing is left half done"
)
@ensure(
    lambda result: all(
        name_of(offset_of(n) or 0, end) in result.state.files
        for n in result.state.files
        if n.endswith(LOG)
        for end in (INDEX, TIME_INDEX)
    ),
    "LDR-6 every segment has its indexes",
)
@ensure(lambda result: result.result.log_start <= result.result.log_end, "LDR-11 the log does not end below its start")
@ensure(lambda result: result.result.recovery_point <= result.result.log_end, "LDR-11 nor below its recovery point")
@ensure(again, "LDR-15 a load after a load finds nothing to do")
def load(state: Directory, clean: bool, recovery_point: Offset, log_start: Offset) -> Step[Directory, Ends]:
    """The broker starts, with what the directory above says of the last stop and of this log."""
    files, found = loaded(state.files, clean, recovery_point, log_start)
    return Step(Directory(Frozen(files)), found)
