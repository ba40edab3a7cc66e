"""The replication protocol of one partition, in its generations: who leads, who is in sync, what a follower truncates,
and when a record is committed.

These rules are about several brokers and the controller at once, and no call of one of them shows whether they are
kept: their form is the model. What one broker knows of epochs is in `leader_epochs`, what logs at rest must have in
common in `replicas`.

Source: KIP-101, KIP-279, KIP-320, KIP-497, KIP-595, KIP-966; Partition, AbstractFetcherThread, DefaultLeaderEndPoint,
ReplicationControlManager and PartitionChangeBuilder, Kafka 4.3.0.
"""

from __future__ import annotations

from kafkaspec.contract.clauses import clause
from kafkaspec.contract.machine import without_state

PREFIX = "RPN"
TITLE = "Replication protocol"

PARTITION = "Partition, Kafka 4.3.0"
CONTROLLER = "ReplicationControlManager, Kafka 4.3.0"
BUILDER = "PartitionChangeBuilder, Kafka 4.3.0"
FETCHER = "AbstractFetcherThread, Kafka 4.3.0"

BETWEEN_BROKERS = {
    "spec": "about several brokers and the controller at once: no call of one of them shows whether it is kept",
    "impl": "about several brokers and the controller at once: see the spec",
}
OF_AN_EARLIER_GENERATION = BETWEEN_BROKERS | {
    "proof": "with it the claims are false: the explorer has the shortest counterexamples",
    "mutant": "with it the claims are false: it is a fault of the later rule",
}
EXPLORED_ONLY = BETWEEN_BROKERS | {
    "proof": "explored at the sizes that are pinned; the proof is of the protocol of KIP-320"
}

LIVENESS = BETWEEN_BROKERS | {
    "proof": "explored under the fairness that the model states; a proof is of what never happens"
}

machine = without_state("replication", __name__)

clause(
    """
    RPN-1: The controller elects a leader among the in-sync replicas, in a leader epoch one higher than any before. It
    may do so at any time. [{CONTROLLER}]

    RPN-2: When a broker fails, the controller removes it from the in-sync replicas, in a new leader epoch; nobody leads
    if it led. The last in-sync replica stays one if it leads. [{CONTROLLER}]

    RPN-3: A replica takes over leader and in-sync replicas from the controller if and only if they are of a higher
    leader epoch than its own; it may hear of epochs late, or never. It leads if it is the one that is named, and
    otherwise follows that one. A leader keeps its log and its high watermark. [{PARTITION}, makeLeader and
    makeFollower]

    RPN-8: Who takes itself for the leader, rightly or not, appends what producers send, with its leader epoch in every
    record. [{PARTITION}, appendRecordsToLeader; KIP-101]

    RPN-9: A leader raises its high watermark over a record if and only if all that it knows as in sync follow it, and
    have the record. A follower has the smaller of its leader's high watermark and its own log end. A record below any
    high watermark is committed. [{PARTITION}, maybeIncrementLeaderHW; UnifiedLog, Kafka 4.3.0]

    RPN-10: A leader takes a follower out of the in-sync replicas only if that one does not follow its epoch or has not
    all of its log; the controller accepts it from the leader of its current epoch alone. [{PARTITION}, maybeShrinkIsr;
    KIP-497]

    RPN-11: A leader takes a follower into the in-sync replicas only if that one has reached its high watermark and,
    since KIP-320, its high watermark has reached the first record of its own epoch, or its log end; the controller
    accepts it from the leader of its current epoch alone. [{PARTITION}, isFollowerInSync; KIP-320; KAFKA-7128]

    RPN-12: What consumers see is one log of committed records that only grows; each replica shows a prefix of it.
    [KIP-320]

    RPN-13: Whoever a leader knows as in sync has every record below the leader's high watermark. [KIP-320]

    RPN-14: Whoever is in sync has every committed record: none is lost by an election. [KIP-320]

    RPN-6: A replica that begins to follow truncates its log behind the last record that it and the leader both have,
    which they find by leader epoch and end offset. [KIP-279; {FETCHER}, getOffsetTruncationState]

    RPN-21: A leader asks the controller for a change of the in-sync replicas, one at a time. Until it knows the answer
    it counts over all that are in sync before the change, and all that are after it. [KIP-497; {PARTITION},
    PendingPartitionChange]

    RPN-22: With KIP-966 any replica may leave the in-sync replicas, the last one too. Whoever leaves them while fewer
    than min.insync.replicas stay is an eligible leader replica from then on. Once that many are in sync, nobody is.
    [KIP-966; {BUILDER}, maybePopulateTargetElr]

    RPN-23: A broker that registers after an unclean shutdown is neither in sync nor eligible: the controller removes it
    from both, in a new leader epoch. [KIP-966; {CONTROLLER}, handleBrokerUncleanShutdown]

    RPN-25: With KIP-966 whoever is in sync or eligible has every committed record, and after N unclean shutdowns there
    are at least min.insync.replicas - N of them. [KIP-966, 'Motivation']

    RPN-18: A leader answers fetches and questions for the end of an epoch only from followers of its own leader epoch:
    a lower one gets FENCED_LEADER_EPOCH, a higher one UNKNOWN_LEADER_EPOCH. [KIP-320; {PARTITION},
    checkCurrentLeaderEpoch]
    """,
    without=BETWEEN_BROKERS,
)
clause(
    """
    RPN-4: Before KIP-101: a replica that begins to follow truncates its log to its own high watermark. [KIP-101,
    'Motivation']

    RPN-5: KIP-101: a replica that begins to follow truncates its log to where its own last leader epoch ends in the
    leader's log; to its own high watermark if the leader does not know that epoch. [KIP-101]

    RPN-7: The first try of KIP-320: a replica that begins to follow keeps its log. A fetch names the epoch of the
    follower's last record, and the leader counts the follower for what it has if its own record there has that epoch.
    Otherwise the follower truncates. [KIP-320, 'Rejected Alternatives']
    """,
    without=OF_AN_EARLIER_GENERATION,
)
clause(
    """
    RPN-15: Since 2.7 a replica that begins to follow fetches at once. A fetch names the epoch of its last record; if
    the leader's log ends that epoch earlier, or knows it not, the answer has the leader's epoch and end offset, and the
    follower truncates there. The leader counts the follower for the offset that it fetches from. [KIP-595; {PARTITION},
    readRecords]

    RPN-16: A consumer that hears of a higher leader epoch asks the new leader whether its position is still in the log,
    and if not, resets it. [KIP-320; SubscriptionState.maybeCompleteValidation, Kafka 4.3.0]

    RPN-17: In an unclean election the controller elects a replica that is not in sync; that one is then the only one in
    sync, its log is the truth, and committed records may be lost. A consumer notices. [{CONTROLLER}; KIP-320]
    """,
    without=EXPLORED_ONLY,
)
clause(
    """
    RPN-19: Once the controller changes nothing any more, everything in the log of the leader is committed in the end,
    if replicas hear of their leader, followers fetch, and the leader raises its high watermark where it may. [KIP-320]
    """,
    without=LIVENESS,
)
clause(
    """
    RPN-20: Since KIP-966 a leader raises its high watermark only while at least min.insync.replicas are in sync, as the
    controller last told it. [KIP-966, 'Additional High Watermark advancement requirement'; {PARTITION},
    maybeIncrementLeaderHW]

    RPN-24: If nobody is in sync, the controller elects an eligible replica, which is then the only one in sync. If
    nobody is eligible either, it may elect the leader that it knew last, and committed records may be lost. [KIP-966;
    {BUILDER}, electAnyLeader]

    RPN-26: A producer that asks for acknowledgement by all (acks=all) has it without an error once the high watermark
    has passed its record, if the leader then counts over at least min.insync.replicas. [{PARTITION},
    checkEnoughReplicasReachOffset]

    RPN-28: A leader proposes a follower for the in-sync replicas once that one has reached the high watermark, and the
    end that the leader's log had when its epoch began. [{PARTITION}, isFollowerInSync; KAFKA-7128]
    """,
    without=EXPLORED_ONLY,
)
clause(
    """
    RPN-27: Before KIP-966 the last in-sync replica stays in sync, also if it comes back from an unclean shutdown with
    less than it had. [KIP-966, 'Motivation']
    """,
    without=OF_AN_EARLIER_GENERATION,
)
