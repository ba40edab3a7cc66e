"""A quorum of controllers, for every number of voters, epochs and records: a proof, not whole, that leaders have
what is committed.

That a leader has what is committed is usually shown from the first later leader that has it not, by induction over
epochs. Here the state says it: what the leader of an epoch can commit no more is `lost`, as a majority left the epoch
without it, and so it is from the first leader on that has it not."""

# mypy: disable-error-code="operator, index, arg-type"

from __future__ import annotations

from kafkaspec.language import define, lemma, majority
from kafkaspec.models.controller.raft import Epoch, L, Length, Logs, Part, Voter
from kafkaspec.proofs.examples.prevote import of
from kafkaspec.prove.proof import Proof


class Votes(Logs):
    """The same model with what the proof of its elections needs."""

    @lemma()
    def leaders_are_elected(s, e: Epoch, n: Voter) -> bool:
        return s.leader[e] != n or majority({m for m in Voter if s.votes[e][m] == n})

    @lemma()
    def whoever_leads_was_elected(s, n: Voter) -> bool:
        return s.part[n] != Part.LEADER or s.leader[s.epoch[n]] == n

    @lemma()
    def nobody_is_ahead_of_its_epoch(s, n: Voter, e: Epoch) -> bool:
        return e <= s.epoch[n] or (s.votes[e][n] is None and s.leader[e] != n)

    @lemma()
    def candidates_have_not_led(s, n: Voter) -> bool:
        return s.part[n] != Part.CANDIDATE or s.leader[s.epoch[n]] is None or s.leader[s.epoch[n]] != n

    @lemma()
    def candidates_have_an_epoch(s, n: Voter) -> bool:
        return s.part[n] == Part.VOTER or s.epoch[n] > 0


class Agreement(Votes):
    """The same model with what the proof of its logs needs."""

    @lemma()
    def whoever_leads_is_a_voter(s, e: Epoch) -> bool:
        return s.leader[e] is None or any(s.leader[e] == n for n in Voter)

    @lemma()
    def whoever_can_lead_is_the_first(s, e: Epoch, n: Voter) -> bool:
        return s.leader[e] is None or s.leader[e] == n or not majority({m for m in Voter if s.votes[e][m] == n})

    @lemma()
    def candidates_have_no_record_of_their_epoch(s, n: Voter, i: Length) -> bool:
        return s.part[n] != Part.CANDIDATE or i >= len(s.log[n]) or s.log[n][i] < s.epoch[n]

    @lemma()
    def epochs_rise_along_a_log(s, n: Voter, i: Length, j: Length) -> bool:
        return not (j < i and i < len(s.log[n])) or s.log[n][j] <= s.log[n][i]

    @lemma()
    def epochs_rise_along_what_is_sent(s, e: Epoch, i: Length, j: Length) -> bool:
        return not (j < i and i < len(s.sent[e])) or s.sent[e][j] <= s.sent[e][i]

    @lemma()
    def only_leaders_send(s, e: Epoch) -> bool:
        return (s.leader[e] is None) == (len(s.sent[e]) == 0)

    @lemma()
    def a_leader_sends_its_log(s, n: Voter, i: Length) -> bool:
        q = s.sent[s.epoch[n]]
        return s.part[n] != Part.LEADER or (len(q) == len(s.log[n]) and (i >= len(q) or q[i] == s.log[n][i]))

    @lemma()
    def records_are_their_leaders(s, n: Voter, i: Length, j: Length) -> bool:
        return i >= len(s.log[n]) or (
            s.log[n][i] <= s.epoch[n]
            and i < len(s.sent[s.log[n][i]])
            and (j > i or s.sent[s.log[n][i]][j] == s.log[n][j])
        )

    @lemma()
    def sent_records_are_their_leaders(s, e: Epoch, i: Length, j: Length) -> bool:
        return i >= len(s.sent[e]) or (
            s.sent[e][i] <= e and i < len(s.sent[s.sent[e][i]]) and (j > i or s.sent[s.sent[e][i]][j] == s.sent[e][j])
        )


class Completeness(Agreement):
    """The same model with what the proof needs that leaders have what is committed. What is said of a record that the
    leader of e wrote, with c records up to it, is said of one that it may yet commit too."""

    @define
    def holds(s, n: Voter, c: Length, e: Epoch) -> bool:
        """The voter's log has the last record before c from epoch e."""
        return c > 0 and c <= len(s.log[n]) and s.log[n][c - 1] == e

    @lemma()
    def lost_without_a_majority(s, e: Epoch, c: Length) -> bool:
        return not s.lost[e][c] or majority({k for k in Voter if s.epoch[k] > e and s.acked[e][k] < c})

    @lemma()
    def nobody_has_been_asked_of_later_epochs(s, n: Voter, e: Epoch) -> bool:
        return e <= s.epoch[n] or s.acked[e][n] == 0

    @lemma()
    def votes_are_for_who_stood(s, n: Voter, m: Voter, e: Epoch) -> bool:
        return s.votes[e][n] != m or e <= s.epoch[m]

    @lemma()
    def epochs_begin_with_a_leader(s, e: Epoch) -> bool:
        return (s.leader[e] is None or s.begun[e] < len(s.sent[e])) and (
            s.leader[e] is not None or (s.begun[e] == 0 and s.committed[e] == 0)
        )

    @lemma()
    def an_epoch_begins_where_it_begins(s, e: Epoch, i: Length) -> bool:
        return i >= len(s.sent[e]) or (s.sent[e][i] == e if i >= s.begun[e] else s.sent[e][i] < e)

    @lemma()
    def acked_is_sent(s, e: Epoch, n: Voter) -> bool:
        return s.acked[e][n] <= len(s.sent[e])

    @lemma()
    def a_majority_has_what_is_committed(s, e: Epoch) -> bool:
        return s.committed[e] == 0 or (
            s.begun[e] < s.committed[e]
            and s.committed[e] <= len(s.sent[e])
            and majority({m for m in Voter if s.acked[e][m] >= s.committed[e]})
        )

    @lemma()
    def committed_is_not_lost(s, e: Epoch) -> bool:
        return s.committed[e] == 0 or not s.lost[e][s.committed[e]]

    @lemma()
    def who_had_a_record_has_it(s, n: Voter, e: Epoch, c: Length) -> bool:
        """Or it is lost."""
        return c <= s.begun[e] or s.acked[e][n] < c or s.holds(n, c, e) or s.lost[e][c]

    @lemma()
    def candidates_have_what_their_voters_had(s, m: Voter, n: Voter, e: Epoch, c: Length) -> bool:
        return (
            s.part[m] != Part.CANDIDATE
            or s.votes[s.epoch[m]][n] != m
            or e >= s.epoch[m]
            or c <= s.begun[e]
            or s.acked[e][n] < c
            or s.holds(m, c, e)
            or s.lost[e][c]
        )

    @lemma()
    def later_leaders_have_it_or_it_is_lost(s, e: Epoch, d: Epoch, c: Length) -> bool:
        """Whatever the leader of e may yet commit."""
        return d <= e or s.leader[d] is None or c <= s.begun[e] or s.has(e, c, d) or s.lost[e][c]

    @lemma()
    def their_records_are_it_or_it_is_lost(s, e: Epoch, d: Epoch, i: Length) -> bool:
        """The same of a record that the later leader has."""
        return (
            d <= e
            or s.leader[d] is None
            or i < s.begun[e]
            or i >= len(s.sent[d])
            or s.sent[d][i] == e
            or s.lost[e][i + 1]
        )

    @lemma()
    def behind_their_end_it_is_lost(s, e: Epoch, d: Epoch) -> bool:
        """The same of the first record that the later leader has not."""
        c = max(len(s.sent[d]), s.begun[e]) + 1
        return d <= e or s.leader[d] is None or c > L or s.lost[e][c]


RECORDS = ("records_are_their_leaders", "sent_records_are_their_leaders", "only_leaders_send")
RISE = ("epochs_rise_along_a_log", "epochs_rise_along_what_is_sent")
ALONE = ("whoever_can_lead_is_the_first", "candidates_have_not_led")
LEADER = ("a_leader_sends_its_log", "whoever_leads_was_elected", *ALONE)
MATCH = {
    "whoever_can_lead_is_the_first": (
        *("whoever_can_lead_is_the_first", "leaders_are_elected", "nobody_is_ahead_of_its_epoch"),
        "whoever_leads_is_a_voter",
    ),
    RECORDS[0]: (*RECORDS, *LEADER),
    RECORDS[1]: (*RECORDS, *LEADER, "candidates_have_no_record_of_their_epoch"),
    "epochs_rise_along_a_log": (*RECORDS, *RISE, "a_leader_sends_its_log"),
    "epochs_rise_along_what_is_sent": (*RECORDS, *RISE, "a_leader_sends_its_log"),
    "a_leader_sends_its_log": LEADER,
    "candidates_have_no_record_of_their_epoch": ("candidates_have_no_record_of_their_epoch", RECORDS[0]),
}
LATER, VOTED, HAD = (
    "later_leaders_have_it_or_it_is_lost",
    "candidates_have_what_their_voters_had",
    "who_had_a_record_has_it",
)
THEIRS, BEHIND = "their_records_are_it_or_it_is_lost", "behind_their_end_it_is_lost"
AHEAD = ("only_leaders_send", "nobody_is_ahead_of_its_epoch")
BEGUN = ("epochs_begin_with_a_leader", "a_leader_sends_its_log", *ALONE)
ELECTED = (*(LATER, VOTED, *AHEAD, *LEADER), "epochs_begin_with_a_leader", RECORDS[1])
COMPLETE = {
    "lost_without_a_majority": ("lost_without_a_majority",),
    "acked_is_sent": ("acked_is_sent", "only_leaders_send", *LEADER),
    "a_majority_has_what_is_committed": ("a_majority_has_what_is_committed", *BEGUN),
    "committed_is_not_lost": ("committed_is_not_lost", "lost_without_a_majority", "a_majority_has_what_is_committed"),
    HAD: (HAD, LATER, *AHEAD, "acked_is_sent", *LEADER, "an_epoch_begins_where_it_begins", *RECORDS, *RISE),
    VOTED: (VOTED, HAD, LATER, *AHEAD, "votes_are_for_who_stood", RECORDS[0], *RISE),
    LATER: ELECTED,
    THEIRS: (THEIRS, *ELECTED),
    BEHIND: (BEHIND, *ELECTED),
    "leaders_have_what_is_committed": (
        *("leaders_have_what_is_committed", "committed_is_not_lost", "a_majority_has_what_is_committed"),
        *("lost_without_a_majority", LATER, VOTED, THEIRS, BEHIND, *BEGUN, *LEADER),
    ),
}

AT = {"Voter": 3, "E": 2, "L": 2}
COMPLETENESS = Proof(
    of(Completeness, "leaders_have_what_is_committed"),
    timeout_s=30,
    explored_at=AT,
    begins_with=MATCH | COMPLETE,
)
"""Not among what is proved: that `vote` keeps `candidates_have_what_their_voters_had` is found when few obligations are
asked, and not when all of them are."""
