"""For any number of replicas, offsets, records and epochs, of the protocol since KIP-320: no committed record is lost,
replicas agree below their high watermarks, and what users see is one log that only grows. And of changes of the in-sync
replicas that are pending: the leader counts over all that the controller may elect. And of the controller with KIP-966:
how many can be elected after N unclean shutdowns."""

from __future__ import annotations

from kafkaspec.models.storage.replication import KIP_320, AsyncIsr, Candidates, CommittedLog, Released
from kafkaspec.prove.proof import Proof

FOLLOWERS_HAVE = (
    "hw_is_committed",
    "known_isr_has_visible",
    "known_isr_is_as_far",
    "later_isr_has_earlier_commits",
    "leader_has_what_was_committed",
)
IN_CHARGE = ("deposed_or_in_charge", "commits_have_leaders", "epoch_names_leader", "leader_in_its_isr")
FROM_THE_LEADER = ("follower_is_prefix", "ghost_lengths")
IN_SYNC_HAVE = ("hw_is_committed", "isr_is_as_far", "leader_has_what_was_committed", "no_committed_record_is_lost")

PROOFS = [
    Proof(AsyncIsr, explored_at={"Follower": 2, "L": 1, "V": 2}),
    Proof(Candidates, explored_at={"Replica": 3, "MIN": 2, "C": 3}),
    Proof(CommittedLog, explored_at={"Replica": 2, "L": 2, "R": 2, "E": 2}),
    Proof(
        Released,
        timeout_s=60,
        fixed=KIP_320,
        explored_at={"Replica": 2, "L": 2, "R": 2, "E": 3},
        begins_with={
            "weak_isr": ("weak_isr", *FOLLOWERS_HAVE),
            "known_isr_has_visible": (*FOLLOWERS_HAVE, *FROM_THE_LEADER, *IN_CHARGE),
            "known_isr_is_as_far": (
                *("known_isr_is_as_far", "later_isr_has_earlier_commits", "isr_is_as_far", "isr_as_sent"),
                *("hw_is_committed", "ghost_lengths", "epoch_names_leader"),
            ),
            "strong_isr": (
                *("strong_isr", "weak_isr", "isr_known_by_leader", "records_have_writers"),
                *("epoch_names_leader", "leader_in_its_isr", *FROM_THE_LEADER, *IN_SYNC_HAVE),
            ),
            "no_committed_record_is_lost": (
                *("weak_isr", "own_records_committed_by_leader", "leader_in_its_isr", "follower_is_prefix"),
                *IN_SYNC_HAVE,
            ),
            "hw_is_committed": ("hw_is_committed", "leader_has_what_was_committed", *FROM_THE_LEADER),
            "leader_has_its_epoch": ("leader_has_its_epoch", "epoch_names_leader", "log_matching", *FROM_THE_LEADER),
            "log_matching": ("log_matching", "leader_has_its_epoch", "follower_is_prefix"),
            "leader_has_what_was_committed": (
                *("leader_has_what_was_committed", "later_isr_has_earlier_commits", "leader_in_its_isr"),
                *("epoch_names_leader", "commits_have_leaders", "hw_is_committed", *FROM_THE_LEADER),
            ),
            "later_isr_has_earlier_commits": (
                *("later_isr_has_earlier_commits", "deposed_or_in_charge", "epoch_names_leader", "log_matching"),
                *(*FROM_THE_LEADER, *IN_SYNC_HAVE),
            ),
            "users": (
                *("hw_is_committed", "leader_has_what_was_committed", "epochs_rise_along_a_log"),
                *("leader_is_in_sync_with_itself", "no_committed_record_is_lost", *FROM_THE_LEADER, *IN_CHARGE),
            ),
        },
        note="of the generations before it the explorer shows that the claims are false",
    ),
]
