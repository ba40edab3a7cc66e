"""Faults that no directory can show, and why: what the rules say is the same with them.

By module; then by function, place and kind of the fault (`*`: all kinds there).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

LISTED = "a segment of a log has a .log: the question is the type checker's"
SPEED = "it saves work alone: what is worked out for nothing changes nothing"
CHANGED = (
    "a false alarm about files that changed meanwhile: the log is read again, and the entry is there from the start"
)
CLEANEST = "the copy that others are compared with was stopped cleanly if any was"
OLD = "records of the old formats are passed over where they are compared"
ROOM = "the table grows a producer sooner or later"
COMPILED = "the compiled loop takes every good batch of no producer"
TYPES = "the default is the type checker's"
HALVES = "keys that differ in one half of their hash differ in the other"
CLEANED = "the cleaner's point is told of current logs of whole directories alone"
FITTING = "of batches that fit between their neighbours no two begin at one offset"
NAMES = "a dtype with fields has names: the default is the type checker's"

EQUIVALENT: Mapping[str, Mapping[str, str]] = {
    "audit/check": {
        "Log.is_active:1:left out": "it is asked of a segment of the log",
    },
    "controller/metadata_image": {
        "begins_epoch:1:without a default": TYPES,
        "RecordReader.allowed:1:true": SPEED,
        "RecordReader.allowed:2:true": SPEED,
        "RecordReader._refused:4:one more": "a level that is known is not refused",
        "MetadataImageCheck.skip:1:false": "a file that nobody reads from any more is closed",
        "MetadataImageCheck._batch:2:one more": SPEED,
        "MetadataImageCheck._batch:13:true": SPEED,
    },
    "management/meta_properties": {
        "MetaPropertiesCheck:3:clause": "the check of all directories names it too",
        "EnsembleCheck:1:clause": "the check of one directory names it too",
    },
    "audit/metadata": {
        "Topics.of:1:false": "what every broker has is asked for too",
        "Topics.take:3:without a default": TYPES,
        "Topics.take:7:without a default": TYPES,
        "Topics._config:1:false": SPEED,
        "_reach:3:true": LISTED,
        "_read:3:true": LISTED,
        "_read:4:left out": SPEED,
        "_read:5:true": SPEED,
        "_read:6:one more": SPEED,
        "_batches:3:true": "an old message has -1 for attributes, the bit of a control batch in it",
        "_batches:6:one more": SPEED,
        "_batches:6:true": SPEED,
        "_unsigned:2:one less": "a shift is a multiple of 7",
    },
    "common/index_evidence": {
        "IndexCheck.chunk:4:false": SPEED,
        "IndexCheck.chunk:8:false": SPEED,
        "IndexCheck.stale_from:1:left out": SPEED,
        "IndexCheck.absent:3:left out": LISTED,
    },
    "management/compaction": {
        "Keys.add:5:one more": "six times a depth is none of the numbers between",
        "Keys.add:5:one less": "six times a depth is none of the numbers between",
        "Keys._spill:2:one more": SPEED,
        "Keys._spill:2:true": SPEED,
        "Keys.close:1:true": "of no folder nothing is removed",
        "_thinned:1:false": HALVES,
        "_thinned:2:false": HALVES,
        "_groups:1:true": SPEED,
        "_groups:2:true": SPEED,
        "_groups:3:true": HALVES,
        "_groups:4:true": HALVES,
        "_groups:6:one more": HALVES,
        "_groups:6:true": HALVES,
        "CompactionCheck.applies:2:true": CLEANED,
        "CompactionCheck.applies:3:true": CLEANED,
        "CompactionCheck.applies:6:one more 1": "below a point at the log's first offset nothing lies",
        "CompactionCheck.__init__:1:true": "a log that this applies to has segments",
        "CompactionCheck.chunk:8:true": "records are there, since they were asked for",
        "CompactionCheck.chunk:9:one more": SPEED,
        "CompactionCheck.chunk:9:true": SPEED,
        "CompactionCheck._fits:1:true": SPEED,
        "CompactionCheck._transactions:1:true": SPEED,
        "CompactionCheck._promised:1:true": "records are there, since they were asked for",
        "CompactionCheck._transactions:5:left out": "a batch of data has no type of a marker",
    },
    "storage/segment": {
        "SegmentCheck.ended:2:true": LISTED,
    },
    "storage/batch": {
        "BatchCheck.chunk:4:false": SPEED,
    },
    "storage/transaction_index": {
        "TransactionIndexCheck.chunk:1:true": SPEED,
        "TransactionIndexCheck._check_index:36:one less": "what lies beyond a segment's end lies above its base",
        "TransactionIndexCheck._order:*:without a default": NAMES,
    },
    "storage/leader_epochs": {
        "outliers_of:2:one less": SPEED,
        "outliers_of:2:false": SPEED,
        "LeaderEpochCheck._take:2:false": SPEED,
        "LeaderEpochCheck._take:6:one more": SPEED,
        "LeaderEpochCheck._take:6:true": SPEED,
        "LeaderEpochCheck._take:9:one more": "no more are told than are kept",
        "LeaderEpochCheck._take:9:true": "no more are told than are kept",
        "LeaderEpochCheck._add:2:true": SPEED,
        "LeaderEpochCheck.learnt:1:false": "without a file there are no entries to be compared",
        "LeaderEpochCheck.learnt:2:left out": "of a file that cannot be compared there are no entries",
        "LeaderEpochCheck._read_again:2:false": SPEED,
        "LeaderEpochCheck._read_again:3:one more": CHANGED,
        "LeaderEpochCheck._read_again:3:negated": CHANGED,
        "LeaderEpochCheck._read_again:3:true": CHANGED,
        "LeaderEpochCheck._of_batch:1:one more": FITTING,
        "LeaderEpochCheck._of_batch:2:one more": FITTING,
        "LeaderEpochCheck._of_run:3:left out": "a run that lies within the entry of its epoch is known",
        "LeaderEpochCheck._of_run:10:true": "an entry that is not there stands nowhere",
        "LeaderEpochCheck._of_run:14:true": "no entry stands below the first: the question is the type checker's",
        "LeaderEpochCheck._of_run:15:one more": "a run of its entry's epoch is known, or told above",
        "LeaderEpochCheck._of_run:21:one more": "there is no entry of its epoch",
    },
    "storage/log_loader": {
        "recovery_consequence:4:true": "what is damaged lies in a segment, so that there is a first one to be scanned",
        "recovery_consequence:6:true": "a recovery point is known of whole directories alone, whose stop is known too",
        "_lost:1:false": "the rules that ask know the offset",
        "OffsetCheck._step:1:true": SPEED,
        "OffsetCheck._step:2:true": SPEED,
        "OffsetCheck._step:14:true": SPEED,
        "OffsetCheck._overlap:2:false": LISTED,
        "OffsetCheck._stranger:2:false": LISTED,
        "OffsetCheck.end:1:left out": SPEED,
        "leftover:6:true": "a .swap without an offset in its name is told before",
    },
    "storage/producer_state": {
        "follow:3:true": "more than enough is missing, once or twice",
        "follow:6:one more": "the two are one number then",
        "follow:36:one more": SPEED,
        "Table.add:2:one more": ROOM,
        "Table.add:2:one less": ROOM,
        "ProducerCheck.chunk:1:one more": "the loop ends within",
        "ProducerCheck.chunk:1:true": "the loop ends within",
        "ProducerCheck._row:5:one more": COMPILED,
        "ProducerCheck._row:5:true": COMPILED,
        "ProducerCheck._data:17:true": SPEED,
        "ProducerCheck._data:21:true": SPEED,
        "ProducerCheck._marker:4:true": "what is missing since is asked of a producer that is there",
        "ProducerCheck._index:7:false": "the file has that path",
        "ProducerCheck._remember:9:one more": "what is missing is never one offset less than anything may need",
        "ProducerCheck._begun_below:3:one less": "where the start is not known no marker is at 0",
        "ProducerCheck._rebuilt_first:1:one more 1": "the first offset that the records say was taken before",
        "ProducerCheck._missing_entries:5:one more": "of a marker that is missing there is no entry",
        "ProducerCheck._missing_entries:15:one more": "of a marker that is missing there is no entry",
        "ProducerCheck._entry_differs:6:one more": "what is missing is never one offset less than anything may need",
        "ProducerCheck._entry_differs:30:one more": "the two differ",
        "ProducerCheck._entry_differs:41:one more 2": "a transaction from 0 is taken below, since something is missing",
        "ProducerCheck._entry_differs:50:one more": "the two differ",
        "ProducerCheck._absent:2:true": SPEED,
        "ProducerCheck._written:1:true": "a free line says 0, and the entry 0 or more",
    },
    "storage/replicas": {
        "of_records:2:one more": OLD,
        "of_records:2:true": OLD,
        "Side.more:1:always": "a segment that is listed twice is found by either number",
        "Side.more:4:true": SPEED,
        "Side._sound:2:left out": "a chunk of damage alone opens the hole again where it was",
        "Side._sound:4:false": SPEED,
        "Side._fitting:2:false": SPEED,
        "first_difference:1:true": SPEED,
        "first_difference:4:one less": "which of two that reach as far is read on first is the same",
        "compare:1:one less": SPEED,
        "compare:5:without a default": TYPES,
        "compare:1:false": SPEED,
        "are_replicas:1:true": "the check looks at current logs alone; the question is the spec's",
        "are_replicas:2:true": "one directory has one node",
        "ReplicaCheck.check:2:one more": SPEED,
        "ReplicaCheck.check:2:true": SPEED,
        "ReplicaCheck._topics:3:true": "what the metadata log does not say is no id that a partition has",
        "ReplicaCheck._topics:4:one less": SPEED,
        "ReplicaCheck._beside_metadata:5:without a default": TYPES,
        "ReplicaCheck._beside_metadata:9:without a default": TYPES,
        "ReplicaCheck._epochs:2:without a default": "what differs has entries: the default is the type checker's",
        "ReplicaCheck._epochs:3:left out": CLEANEST,
        "ReplicaCheck._difference:3:one more": "of a log that is behind the epochs differ",
        "ReplicaCheck._difference:4:left out": CLEANEST,
    },
    "storage/offset_index": {
        "OffsetIndexCheck.compare:2:true": SPEED,
        "OffsetIndexCheck.compare:4:true": SPEED,
        "OffsetIndexCheck.missing:2:false": LISTED,
    },
    "storage/time_index": {
        "TimeIndexCheck.compare:1:true": SPEED,
        "TimeIndexCheck.settle:2:left out": "an entry beyond the last offset was compared with no batch: it is unseen",
        "TimeIndexCheck.falls:1:true": "of a file without an entry there is none whose verdict this could change",
        "TimeIndexCheck.further:2:false": "an entry that is not wrong has no timestamp then, and that is the largest",
        "TimeIndexCheck.missing:2:false": LISTED,
    },
}


def reason(module: str, fault: str) -> str | None:
    """Why a fault (its id without the module) is equivalent; None if none is given."""
    of = EQUIVALENT.get(module, {})
    return next((why for pattern, why in of.items() if fnmatchcase(fault, pattern)), None)


def unused(module: str, faults: Iterable[str]) -> list[str]:
    """The patterns that no fault has."""
    names = list(faults)
    return [x for x in EQUIVALENT.get(module, {}) if not any(fnmatchcase(n, x) for n in names)]
