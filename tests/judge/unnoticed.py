"""Why nobody can notice a fault that is made of an implementation's text (docs/measured/code.json): subsystem -> fault
-> reason."""

from __future__ import annotations

from typing import Final

COMPARED: Final = "the audit alone compares two states; tests of IMG-21 do"
RARE_HOURS: Final = "the judge asks for the ends of 32 bits too rarely; a test of CFG-19 does"
SLOWER: Final = "the exact reader says the same, more slowly; a test of the quick one does"
UNNOTICED: Final[dict[str, dict[str, str]]] = {
    "batch": {
        "_headers: count <= 0": "of no headers it returned before",
        "get_varint: at <= end": "at the end there is no byte, or one that the check of the length refuses",
        "Lenient.records: self.count <= 0": "of no records it returned before",
        "Lenient._record: at > end": "a record without bytes has no timestamp either",
        "Batch.__init__: 0 <= self.attributes < USED": "with all bits, the codec is none",
        "Encoder.append: offset < self.last_offset": "no operation writes records whose offsets do not rise",
        "Batch.records: length <= 1": "a record of one byte has no timestamp",
    },
    "bootstrap": {
        "voter: end <= 0": "it is looked for behind the first character",
        "voter: end <= 0 (2)": "a bracket that ends a host stands behind the one that begins it",
    },
    "checkpoints": {
        "decode_metadata.value: len(words) >= 1": "neither one word nor none is two",
    },
    "cleaner": {
        "compaction_delay_ms: 0 < segment.first_batch_timestamp <= earliest": "the earliest of equal ones is the same",
        "LogCleanerManager.grab_filthiest_compacted_log: "
        "c.partition != prefer": "which of equally dirty logs is taken is free",
        "Driver.state: d in manager.checkpoints": "failed directories are not observed",
    },
    "configurations": {
        "_hours_to_ms: len(digits) < len(str(INT_MAX))": RARE_HOURS,
        "_hours_to_ms: -INT_MAX - 1 < hours <= INT_MAX": RARE_HOURS,
        "_hours_to_ms: -INT_MAX - 1 <= hours < INT_MAX": RARE_HOURS,
        "ConfigurationControlManager.check_length: "
        "units(record.value) >= LENGTH": "no history has a value of just that length; a test of CFG-6 does",
    },
    "event_queue": {
        "EventQueue.insert: node.deadline < (first.deadline or 0)": "no two events have the same deadline",
        "Event.handle_exception: self.handling != 'throws'": "an exception that it throws is swallowed",
        "Driver._clean_up: self.cleanup != 'throws'": "what the clean-up event throws makes no difference",
        "Driver._go_on: self.subject.size >= 0": "it is of the size that is shown, and that is the queue's own",
        "Driver._settle: until < self.now": "whoever adds what is due wakes the thread, and so does the clock",
    },
    "high_watermark": {
        "ReplicaLog.maybe_increment_log_start: offset >= self.start": "at the log start the epochs begin there already",
        "ReplicaLog.truncate_to: offset <= self.end": "at the log end there are epochs alone to cut, and both do",
        "Partition.maybe_increment_high_watermark: "
        "follower.log_end <= new": "where both are equal, so is the smallest of them",
        "Partition.low_watermark: follower.log_start <= low": "where both are equal, so is the smallest of them",
        "FollowerState.fetched: offset > self.last_fetch_leader_end": "no history's follower fetches late from "
        "just where the leader's log ended; a test of HWM-7 does",
        "updateBroker: id of 16 bits": "no history has a broker with such an id before its follower joins; a test does",
        "fetchRecords: replica of 16 bits": "no history has a fetch of such a broker that is known; a test does",
    },
    "last_stable": {
        "TransactionalLog.roll: self.high_watermark > self.end": "one at the end was looked up when it came there",
        "TransactionalLog.look_up_first_unstable: "
        "first <= self.log_start": "a transaction that begins at the log start has a batch there",
        "TransactionalLog.last_stable: first <= self.high_watermark": "where both are equal, so are the answers",
        "TransactionalLog.read: at.segment >= bound.segment": "the same segment was handled before",
        "TransactionalLog._rebuild: "
        "producers.end_offset > self.end": "at the log's end there is nothing to replay either way",
        "TransactionalLog._rebuild: producers.end_offset <= self.end": "at the log's end no segment is between",
        "TransactionalLog._rebuild: segment.base > self.end": "a segment at the log's end is empty",
        "TransactionalLog.truncate_to: "
        "offset <= self.segments[0].base": "no snapshot at the log start is read: nothing is left either way",
        "TransactionalLog._rebuild: "
        "segment.base not in to_snapshot": "segments above the log start have a snapshot, one at the start is not read",
        "TransactionalLog._rebuild: "
        "s.base < producers.end_offset": "of the segment before it nothing is read, and the snapshot is there already",
        "replicate: firstOffset of 32 bits": "the contract asks for offsets within 31 bits",
        "truncateFullyAndStartAt: offset of 32 bits": "the contract asks for offsets within 31 bits",
    },
    "leader_epochs": {
        "LeaderEpochCache.entries_in_range: start_offset > 0": "below offset 0 there is no entry",
    },
    "log": {
        "LogConfig.asks_records: min(self.timestamp_before_max_ms, self.timestamp_after_max_ms) "
        "<= 2 ** 63 - 1": "a record that is asked without a bound is refused by none",
        "arrived: int.from_bytes(rest[LENGTH_AT:OVERHEAD], 'big', signed=True) "
        "<= LEAST": "no batch is as short as that",
        "UnifiedLog._find: offset <= self.log_end": "no segment has the log end, and its place is found behind them",
        "UnifiedLog._placed_last_stable: "
        "self.first_unstable.segment != UNKNOWN": "it was looked up when it was set, and the place is the same",
        "UnifiedLog._placed_last_stable: "
        "self.first_unstable.offset > hw.offset": "where both are equal, so are the places",
        "UnifiedLog._roll.flush: base >= self.recovery_point": "a flush up to the recovery point changes nothing",
        "UnifiedLog._flush: base > self.recovery_point": "of names, which a power failure alone takes: recovery",
        "UnifiedLog._rebuild: m.end_offset > end": "at the log's end there is nothing to replay either way",
        "UnifiedLog._rebuild: end >= m.end_offset": "at the log's end there is nothing to replay either way",
        "UnifiedLog.last_stable: first.offset <= hw": "where both are equal, so are the answers",
        "closeAndReopen: tornBytes of 16 bits": "a clean stop tears nothing: it is always 0",
    },
    "log_loader": {
        "LogLoader.split: base not in self.producers.snapshots": "a snapshot at no base goes at the end",
        "LogLoader.rebuild: producers.end_offset > log_end": "at the log's end there is nothing to replay either way",
        "LogLoader.rebuild: log_end >= producers.end_offset": "at the log's end no segment is between",
        "LogLoader._read: h.last_offset > end": "no batch's last offset is the log's end",
        "LogLoader.between: floor <= b <= end": "a segment at the log's end is empty",
    },
    "meta_properties": {
        "MetaProperties.lacking: self.node_id is None": "the audit alone asks it",
        "MetaProperties.lacking: self.directory_id is None": "the audit alone asks it",
        "MetaProperties.lacking: self.cluster_id is not None": "the audit alone asks it",
    },
    "metadata_image": {
        "parts: level > DIRECTORIES": COMPARED,
        "parts: level > CONTROLLERS": COMPARED,
        "differences: ours.content == theirs.content": COMPARED,
        "_unsupported: type == BROKER_RESOURCE": COMPARED,
        "_ordered: k not in ('endPoints', 'features')": COMPARED,
        "parts: image.next_producer_id is not None": COMPARED,
        "parts: next_id > 0": COMPARED,
        "_unsupported: type != TOPIC_RESOURCE": COMPARED,
        "_unsupported: name not in TOPIC_CONFIGS": COMPARED,
        "differences: x == y": COMPARED,
        "differences: ours.what != 'configuration'": COMPARED,
        "differences: x is not None": COMPARED,
        "differences: y is not None": COMPARED,
        "allows: type of 8 bits": "the contract asks for a type of the release, the highest of which is 28",
        "allows: level of 8 bits": "the contract asks for a level of the release, the highest of which is 31",
    },
    "offset_control": {
        "OffsetControl.mark: "
        "marker is not Marker.END": "which rule forbids it is not answered; class and message are the same",
        "appendActive: epoch of 16 bits": "the manager is not told the epoch of what is appended",
        "appendActive: appendTimestamp of 32 bits": "of what is appended the clock's time is shown",
        "handleCommitBatch: firstOffset of 32 bits": "of a committed batch the last offset alone counts",
        "handleCommitBatch: appendTimestamp of 32 bits": "an active controller shows the time of its last append",
        "commitControlBatch: epoch of 16 bits": "a batch of raft's own does not change the committed epoch",
    },
    "producer_state": {
        "Verification.ask: sequence <= self.lowest_sequence": "of equal ones the lower is the same",
        "ProducerStateManager.remove_stray_snapshots: latest <= max(bases)": "a stray snapshot is at no base offset",
        "ProducerStateManager.last_stable_offset: "
        "max(first, log_start) <= high_watermark": "where both are equal, so are the answers",
        "produce: firstOffset of 32 bits": "the contract asks for offsets of a first segment, below 2^31",
        "produce: lastOffset of 32 bits": "the contract asks for offsets of a first segment, below 2^31",
        "endTransaction: offset of 32 bits": "the contract asks for offsets of a first segment, below 2^31",
    },
    "quorum": {
        "QuorumController.advance_last_stable_offset: "
        "stable < self.last_stable_offset": "at an offset that stays nothing is older, and a standby has its snapshot",
        "QuorumController.advance_last_stable_offset: "
        "self.memory.registry.latest_epoch < stable": "where there is a snapshot none is taken",
        "commit: count of 8 bits": "no history has 128 batches that are not committed; a test of QRM-13 does",
        "lose: epoch of 16 bits": "the epoch of another leader is not kept",
    },
    "raft": {
        "Log.truncate: self.history[-1][0] > max(end, self.start)": "no history cuts a log just before a change of the "
        "voters; a test of RFT-29 does",
        "Replica.clean: "
        "self.log.start <= latest.offset <= self.committed": "a log that begins there has nothing before it",
        "Log.end_of: "
        "epoch >= self.last_epoch": "a snapshot that ends where the log ends has the epoch of the log's last record",
        "Replica.give: self.given <= self.high (2)": "the log does not begin behind what is committed",
        "Replica.raise_high: self.log.voters_offset <= high": "no history commits just what is before the "
        "removal; a test of RFT-33 does",
        "Log.is_whole: 0 < at < len(self.entries)": "a log begins with the first record of a batch",
        "Replica.announce: self.given >= self.begun": "a leader looks when more is committed than what it began with, "
        "or its listener has nothing",
        "removeVoter: voter of 16 bits": "no history of so many calls removes a voter with such an id; a test of "
        "RFT-33 does",
    },
    "records": {
        "_longer: number <= 0": "a 0 in several bytes is left to the exact reader, which says the same",
        "_quick: version >= schema.highest": SLOWER,
        "_Text.structure: f.tag is None": SLOWER,
        "default: f.default is None": "every version has all fields of bytes; a test of what is made by its name does",
        "log_records: batch[at + 2] >= 127": "no record's offset is 64 below its batch's",
        "log_records: size <= 0": "an empty value is refused as none is; a test of a batch's records does",
        "log_records: value is not None": "the audit alone asks for the place; a test of a batch's records does",
    },
    "replica_manager": {
        "ReplicaManager.delete_records: "
        "s.answer.low_watermark <= s.required": "a request that waits for nothing is looked at, and answered, at once",
        "Driver.state: d in s.live": "failed directories are not observed",
        "updateBroker: id of 16 bits": "the contract asks for one of a few brokers",
    },
    "segment": {
        "headers: position <= len(data) - MAGIC_END": "no operation leaves so short a length on the disk",
        "headers: length <= LEAST": "no operation leaves so short a length on the disk",
        "headers: length <= HEADER.size - OVERHEAD": "no operation leaves so short a length on the disk",
        "Segment._close_handlers: index is None": "whether a closed file is mapped is not observed",
        "damage: batch of 16 bits": "the contract asks for a batch that there is",
    },
    "timeline": {
        "HashTable.share: count > parts": "of as many parts as slots each part is a slot",
        "Snapshot.erased: self.deltas is not None": "an open iterator is not observed",
        "Driver.state: iterator is None": "an open iterator is not observed",
        "HashTable.put: "
        "3 * (self.size + 1) >= 4 * len(self.slots)": "four times a power of two is no multiple of three",
        "HashTable.put: len(self.slots) <= MAX_CAPACITY": "no history has 2^30 entries",
        "hash_code: -2 ** 31 < key < 2 ** 31": "in which slot a key stands is not observed; a test asks the hash code",
        "hash_code: -2 ** 31 <= key <= 2 ** 31": "2^31 has the same hash code as an Integer's bits and as a Long",
        "SnapshotRegistry.get_or_create_snapshot: "
        "self.highest_epoch <= epoch < LATEST_EPOCH": "the contract asks for an epoch above the highest",
        "SnapshotRegistry.get_or_create_snapshot: "
        "self.highest_epoch < epoch <= LATEST_EPOCH": "the contract asks for an epoch below the latest",
    },
}
