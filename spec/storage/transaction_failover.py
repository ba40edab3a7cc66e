"""Transactions while leaders change: markers, and what a read_committed reader sees of any replica.

These rules are about several brokers, the controller and a transaction coordinator at once, and no call of one of them
shows whether they are kept: their form is the model. What one log makes of markers is the producer state (PSM), what is
stable in it is the last stable offset (LSO), and who leads, follows and truncates is the replication protocol (RPN).
Here they stand together: each replica knows of transactions what its own log says, and no more; so a reader may go from
one to another.

Source: KIP-98, KIP-392, KIP-890, KIP-1228; KafkaApis, UnifiedLog, ProducerStateManager, TransactionMarkerChannelManager
and TransactionMarkerRequestCompletionHandler, Kafka 4.3.0.
"""

from __future__ import annotations

from kafkaspec.contract.clauses import clause
from kafkaspec.contract.machine import without_state

PREFIX = "TXF"
TITLE = "Transactions and failover"

APIS = "KafkaApis.handleWriteTxnMarkersRequest, Kafka 4.3.0"
MARKERS = "TransactionMarkerRequestCompletionHandler, Kafka 4.3.0"
PRODUCERS = "ProducerStateManager, Kafka 4.3.0"

BETWEEN_BROKERS = {
    "spec": "about several brokers and a coordinator at once: no call of one of them shows whether it is kept",
    "impl": "about several brokers and a coordinator at once: see the spec",
}
WHO_LEADS = BETWEEN_BROKERS | {
    "proof": "the model that is proved knows no leaders: any replica appends, and who commits has all that was "
    "committed, which is the replication protocol's"
}
WHICH_COORDINATOR = BETWEEN_BROKERS | {"proof": "the model that is proved does without coordinator epochs"}

machine = without_state("transaction_failover", __name__)

clause(
    """
    TXF-1: Who takes itself for the leader of a partition, rightly or not, appends what producers and coordinators send,
    with its leader epoch; a follower has what its leader has, and appends nothing of its own. [KIP-98; {APIS}; RPN-8]

    TXF-7: A new leader, elected among the in-sync replicas, keeps its log and what it knows of transactions. Open is
    what is open in its log. A marker that its log lacks is lost with the leader before. [KIP-98; Partition.makeLeader,
    Kafka 4.3.0]
    """,
    without=WHO_LEADS,
)
clause(
    """
    TXF-2: The coordinator decides each transaction once, and it is in its own log before a marker is sent. All markers
    of a transaction say the same. [KIP-98, 'Transaction Coordinator']

    TXF-4: With transaction version 2 each transaction has a producer epoch of its own. A marker is taken only if it
    is above the epoch of the producer in the leader's log, or equal where nothing is open: so a marker that comes late
    or again ends no later transaction. [KIP-890; KIP-1228; KAFKA-19999; PSM-11]

    TXF-6: A leader answers WriteTxnMarkers when its high watermark has passed the marker (acks=all). Until it has such
    an answer, the coordinator sends the marker again, to whoever leads by then; and the producer's next transaction
    does not begin. [{APIS}; {MARKERS}]

    TXF-8: A replica that truncates makes its table of transactions again from the log that stays, from a snapshot and
    the records behind it. A transaction is open again if its marker is cut off, and the aborted transactions whose
    markers are cut off leave the index. [UnifiedLog.truncateTo and {PRODUCERS}, truncateAndReload; LSO-8]

    TXF-9: The last stable offset of a replica, leader or follower, is that of its own log: its own high watermark, or
    the first offset of a transaction that is open there, or whose marker its own high watermark has not passed, if
    that is less. [KIP-392; UnifiedLog.lastStableOffset, Kafka 4.3.0; LSO-1, LSO-2]

    TXF-10: A replica that starts again has the log that it had, and what is open is read again from it. Where the ends
    of transactions are known to be unreplicated until a high watermark passes them, no reader sees a difference.
    [LogLoader, Kafka 4.3.0; LSO-9]

    TXF-11: A read_committed consumer that fetches from any replica gets what is below the last stable offset of that
    replica, with the aborted transactions of that replica's index. [KIP-392; KIP-98; LSO-10, LSO-12]

    TXF-12: A read_committed consumer that goes from replica to replica while leaders change sees each record of a
    committed transaction once, in the order of the offsets, and none of an aborted or undecided one. [KIP-98; KIP-392]
    """,
    without=BETWEEN_BROKERS,
)
clause(
    """
    TXF-3: A coordinator that takes over has a higher epoch. It sends again the markers of each transaction that is
    decided and not complete, with its own epoch. [KIP-98; {MARKERS}]

    TXF-5: A leader refuses a marker whose coordinator epoch is below that of an earlier marker for the producer in its
    log. [{PRODUCERS}; PSM-12]
    """,
    without=WHICH_COORDINATOR,
)
