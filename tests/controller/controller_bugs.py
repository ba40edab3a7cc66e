"""Bugs that Kafka's controller had, by their tickets: where each is planted here, and who finds it.

A bug is planted in a model, in one component beside its spec, in the simulated quorum, in a real metadata log, or in
several of them. The page of the quorum controller has this as a table; `python -m tests.controller.controller_bugs`
prints it.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.storage.replication_bugs import Bug, Find, InCluster, InModel, InPart, never, table

QUORUM_4_3 = "kafka-4.3.0-quorum.ndjson.gz"
RAFT_4_3 = "kafka-4.3.0-raft.ndjson.gz"


class InLog(NamedTuple):
    """A record that a controller with the bug writes, put into a real metadata log; the rule of the audit."""

    damage: str
    rule: str

    def cells(self) -> tuple[str, str, str]:
        """Where it is planted, who finds it, and after how much."""
        return f"a real metadata log: {self.damage}", self.rule, "the audit"


BUGS = (
    Bug(
        "f6884cc6ddb",
        "the exponent of a table's size is taken for its size",
        (
            InPart("timeline", "exponent as capacity", "TML-22", 1),
            InPart("timeline", "slots by a float", "TML-22", 1),
        ),
    ),
    Bug(
        "KAFKA-10527",
        "who led leads on after a restart, in the same epoch",
        (InPart("raft", "leads on", "RFT-39", 177, RAFT_4_3),),
    ),
    Bug(
        "KAFKA-10533",
        "what Raft appends is not flushed",
        (InCluster("unflushed", "RFT-22", Find(0, 255), Find(0, 255)),),
    ),
    Bug(
        "KAFKA-12619",
        "a leader commits where its epoch begins, without its first record",
        (InPart("raft", "commits where it began", "RFT-18", 25, "raft.ndjson"),),
    ),
    Bug(
        "KAFKA-12792",
        "what stands beside the timeline is not put back",
        (
            InModel("back in part (model)", "a_revert_puts_all_back_together", 4, "producer_ids"),
            InModel("not put back (model)", "a_standby_has_nothing_that_is_not_committed", 3, "producer_ids"),
            InModel("plain index", "one_registry", 3, "timeline"),
            InPart("timeline", "plain counter", "TML-15", 2),
            InPart("producer_ids", "the epoch is beside", "PID-11", 2),
            InPart("producer_ids", "the block is beside", "PID-11", 2),
            InPart("quorum", "keeps what is not stable", "QRM-22", 3),
        ),
    ),
    Bug(
        "KAFKA-13100",
        "a controller that becomes active takes no snapshot to go back to",
        (
            InModel(
                "active without a snapshot (model)", "there_is_a_snapshot_at_the_stable_offset", 1, "offset_control"
            ),
            InPart("offset_control", "active without a snapshot", "OFC-4", 4),
            InPart("quorum", "no snapshot", "QRM-16", 2),
        ),
    ),
    Bug(
        "KAFKA-13104",
        "a controller that renounces does not tell Raft, which leads on",
        (InCluster("leads_without_controller", "AT_REST", Find(1, 3646), Find(1, 3979)),),
    ),
    Bug(
        "KAFKA-13114",
        "Raft commits a part of what was written together, and there is no snapshot at its end",
        (InModel("a batch is split (model)", "there_is_a_snapshot_at_the_stable_offset", 2, "offset_control"),),
    ),
    Bug(
        "KAFKA-13357",
        "snapshots have nothing of the producer ids",
        (
            InModel("no image (model)", "the_active_has_replayed_all", 4, "producer_ids"),
            InPart("producer_ids", "no image", "PID-12", 1),
        ),
    ),
    Bug(
        "KAFKA-13515",
        "a topic that does not exist gets configurations",
        (InPart("configurations", "trusts the name", "CFG-11", 1),),
    ),
    Bug(
        "KAFKA-13862",
        "several values that are appended are one, commas and all",
        (InPart("configurations", "one part", "CFG-3", 1),),
    ),
    Bug(
        "KAFKA-13892",
        "an ACL that two filters of a request match is removed twice",
        (InLog("an ACL that is removed twice", "IMG-12"),),
    ),
    Bug(
        "KAFKA-13966",
        "calls that wait are run before the bootstrap is written",
        (InPart("quorum", "activates last", "QRM-17", 1),),
    ),
    Bug(
        "KAFKA-14035",
        "a snapshot that has only what was added cannot be deleted",
        (InPart("timeline", "merge without a source", "TML-8", 6),),
    ),
    Bug(
        "KAFKA-14039",
        "the policy is told of all that a resource would have, not of what the request names",
        (InPart("configurations", "policy of all", "CFG-12", 2),),
    ),
    Bug(
        "KAFKA-14136",
        "a broker's value that stays leaves no record, so that the file that it names is not loaded again",
        (InPart("configurations", "only changes", "CFG-4", 2),),
    ),
    Bug(
        "KAFKA-14195",
        "the policy is told of the keys that a legacy request deletes by leaving them out",
        (InPart("configurations", "policy of deletions", "CFG-12", 2),),
    ),
    Bug(
        "KAFKA-14204",
        "Raft splits what is too much for a batch, and there is no snapshot at each part's end",
        (InPart("quorum", "never split", "QRM-9", 3),),
    ),
    Bug(
        "KAFKA-14238",
        "the metadata log loses segments that no snapshot has",
        (InCluster("drops_by_size", "RFT-19", Find(0, 574), Find(0, 574)),),
    ),
    Bug(
        "KAFKA-14243",
        "an unsafe downgrade of the metadata.version is done",
        (InPart("features", "unsafe is done", "FEA-14", 67, "kafka-4.3.0-features.ndjson.gz"),),
    ),
    Bug(
        "KAFKA-14275",
        "a standby goes on behind a record that it could not apply",
        (InPart("quorum", "what fails is skipped", "QRM-29", 68, QUORUM_4_3),),
    ),
    Bug(
        "KAFKA-14601",
        "an interrupt, or a handler that throws, ends the queue, and those that wait are not told",
        (
            InModel("Handler: leaves at once", "nothing_is_left", 5, "event_queue"),
            InModel("Handler: exception ends it", "what_a_run_throws_is_told_at_once", 4, "event_queue"),
            InPart("event_queue", "exception ends the thread", "EVQ-13", 2),
            InPart("event_queue", "leaves at once", "EVQ-26", 159, "kafka-4.3.0-event_queue.ndjson.gz"),
        ),
    ),
    Bug(
        "KAFKA-14618",
        "a snapshot is named by the offset of its last record, not by the one behind",
        (InCluster("snapshots_one_before", "RFT-23", Find(0, 154), Find(0, 154)),),
    ),
    Bug(
        "KAFKA-14946",
        "nor one behind a snapshot that has only what was added",
        (InPart("timeline", "merge without a destination", "TML-8", 7),),
    ),
    Bug(
        "KAFKA-14996",
        "a call that asks for too many records is a failover",
        (InPart("quorum", "too much fails over", "QRM-23", 82, QUORUM_4_3),),
    ),
    Bug(
        "KAFKA-15048",
        "what is not committed is read",
        (
            InPart("offset_control", "none on a standby", "OFC-10", 1),
            InPart("quorum", "reads the latest", "QRM-2", 2),
            InCluster("reads_latest", "STABLE_READS", Find(3, 697), Find(2, 391)),
        ),
    ),
    Bug(
        "KAFKA-15076",
        "a listener that begins reads the log from its start, though there is a snapshot",
        (InPart("raft", "gives the log", "RFT-37", 2, RAFT_4_3),),
    ),
    Bug(
        "KAFKA-15078",
        "a follower that begins is sent the log from its start, though there is a snapshot",
        (InPart("raft", "serves from offset 0", "RFT-23", 299, RAFT_4_3),),
    ),
    Bug(
        "KAFKA-15213",
        "the active controller applies a record at another offset than it has in the log",
        (
            InPart("offset_control", "offsets are counted", "OFC-18", 2),
            InPart("quorum", "predicted offsets", "QRM-6", 39, QUORUM_4_3),
            InCluster("predicts_offsets", "SAME_MEMORY", Find(0, 333), Find(0, 333)),
        ),
    ),
    Bug(
        "KAFKA-15271",
        "who reads at a snapshot is given what was put in later",
        (InPart("timeline", "iterator gives what is too new", "TML-11", 4),),
    ),
    Bug(
        "KAFKA-15312",
        "a snapshot takes its name before it is on the disk",
        (InCluster("snapshots_unflushed", "SAME_MEMORY", Find(0, 222), Find(0, 222)),),
    ),
    Bug(
        "KAFKA-15345",
        "the leader of an empty log is told so before its epoch has anything committed",
        (InPart("raft", "tells at once if empty", "RFT-36", 1041, RAFT_4_3),),
    ),
    Bug(
        "KAFKA-15364",
        "the directories of a broker's change are not taken",
        (InPart("metadata_image", "forgets directories", "IMG-7", 2),),
    ),
    Bug(
        "KAFKA-15441",
        "what is committed within a metadata transaction waits for its end",
        (InPart("quorum", "committed when stable", "QRM-26", 2),),
    ),
    Bug(
        "KAFKA-15489",
        "a leader from which nobody fetches leads on",
        (InPart("raft", "leads alone", "RFT-28", 142, RAFT_4_3),),
    ),
    Bug(
        "KAFKA-15552",
        "the record says where its own block begins, not the next one: a block is given twice",
        (
            InModel("says itself (model)", "no_id_is_in_two_blocks", 3, "producer_ids"),
            InPart("producer_ids", "says itself", "PID-5", 2),
        ),
    ),
    Bug(
        "KAFKA-16530",
        "a leader that is no voter any more counts its own log for the high watermark",
        (InPart("raft", "counts itself", "RFT-33", 434, RAFT_4_3),),
    ),
    Bug(
        "KAFKA-16531",
        "and counts itself among those from which it hears",
        (InPart("raft", "hears itself", "RFT-28", 434, RAFT_4_3),),
    ),
    Bug(
        "KAFKA-17304",
        "offsets are counted from what is committed, and Raft's own records are not",
        (
            InPart("quorum", "writes where committed", "QRM-16", 98, "quorum-controller.ndjson"),
            InPart("raft", "predicts offsets", "RFT-26", 55, "raft.ndjson"),
        ),
    ),
    Bug(
        "KAFKA-17305",
        "a broker registers that does not support what is enabled",
        (InModel("Cluster: anybody registers", "brokers_support_what_is_finalized", 2, "features"),),
    ),
    Bug(
        "KAFKA-17608",
        "a batch of Raft's own moves the stable offset to where no snapshot of memory is",
        (
            InModel(
                "a control batch is stable (model)", "there_is_a_snapshot_at_the_stable_offset", 2, "offset_control"
            ),
            InPart("offset_control", "stable by control batches", "OFC-11", 1),
            InPart("offset_control", "the stable one goes too", "OFC-10", 3),
            InPart("quorum", "control batches count", "QRM-34", 1),
            InCluster("counts_control_batches", "AT_REST", never(16), Find(7, 2695)),
        ),
    ),
    Bug(
        "KAFKA-17636",
        "credentials that are asked for when a directory is formatted have no records",
        (InPart("bootstrap", "no credentials", "BST-5", 1),),
    ),
    Bug(
        "KAFKA-17713",
        "a snapshot ends within a batch",
        (InPart("raft", "snapshots of anything", "RFT-23", 1),),
    ),
    Bug(
        "KAFKA-18106",
        "a broker that starts again before its session has ended is fenced, and leads",
        (InLog("a leader that is fenced", "IMG-17"),),
    ),
    Bug(
        "KAFKA-18979",
        "a level of kraft.version that was written as metadata counts",
        (
            InPart("features", "kraft is replayed", "FEA-20", 1),
            InPart("metadata_image", "kraft.version", "IMG-8", 1),
        ),
    ),
)


if __name__ == "__main__":
    print(table(BUGS))
