"""A quorum of controllers: for every number of voters, epochs and records."""

# mypy: disable-error-code="operator, index, arg-type"

from __future__ import annotations

from kafkaspec.language import define, lemma, majority
from kafkaspec.models.controller.raft import Epoch, Length, Logs, Part, Voter
from kafkaspec.prove.proof import Proof


class Inductive(Logs):
    """The same model with what its proof needs."""

    @define
    def holds(s, n: Voter, c: Length, e: Epoch) -> bool:
        """The voter's log has the last record before c from epoch e."""
        return c > 0 and c <= len(s.log[n]) and s.log[n][c - 1] == e

    @lemma()
    def lost_without_a_majority(s, e: Epoch, c: Length) -> bool:
        return not s.lost[e][c] or majority({k for k in Voter if s.epoch[k] > e and s.acked[e][k] < c})

    @lemma()
    def leaders_are_elected(s, e: Epoch) -> bool:
        return s.leader[e] is None or majority({m for m in Voter if s.votes[e][m] == s.leader[e]})

    @lemma()
    def whoever_can_lead_is_the_first(s, n: Voter) -> bool:
        e = s.epoch[n]
        return (
            s.part[n] != Part.CANDIDATE or s.leader[e] is None or not majority({m for m in Voter if s.votes[e][m] == n})
        )

    @lemma()
    def whoever_leads_was_elected(s, n: Voter) -> bool:
        return s.part[n] != Part.LEADER or s.leader[s.epoch[n]] == n

    @lemma()
    def nobody_is_ahead_of_its_epoch(s, n: Voter, e: Epoch) -> bool:
        return e <= s.epoch[n] or (s.votes[e][n] is None and s.acked[e][n] == 0 and s.leader[e] != n)

    @lemma()
    def votes_are_for_who_stood(s, n: Voter, m: Voter, e: Epoch) -> bool:
        return s.votes[e][n] != m or e <= s.epoch[m]

    @lemma()
    def only_leaders_send(s, e: Epoch) -> bool:
        return (
            (s.leader[e] is None) == (len(s.sent[e]) == 0)
            and (s.leader[e] is None or s.begun[e] < len(s.sent[e]))
            and (s.leader[e] is not None or (s.begun[e] == 0 and s.committed[e] == 0))
        )

    @lemma()
    def an_epoch_begins_where_it_begins(s, e: Epoch, i: Length) -> bool:
        return i >= len(s.sent[e]) or (s.sent[e][i] == e if i >= s.begun[e] else s.sent[e][i] < e)

    @lemma()
    def a_leader_sends_its_log(s, n: Voter, i: Length) -> bool:
        q = s.sent[s.epoch[n]]
        return s.part[n] != Part.LEADER or (len(q) == len(s.log[n]) and (i >= len(q) or q[i] == s.log[n][i]))

    @lemma()
    def candidates_have_an_epoch(s, n: Voter) -> bool:
        return s.part[n] == Part.VOTER or s.epoch[n] > 0

    @lemma()
    def candidates_have_no_record_of_their_epoch(s, n: Voter, i: Length) -> bool:
        return s.part[n] != Part.CANDIDATE or i >= len(s.log[n]) or s.log[n][i] < s.epoch[n]

    @lemma()
    def candidates_have_not_led(s, n: Voter) -> bool:
        return s.part[n] != Part.CANDIDATE or s.leader[s.epoch[n]] != n

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
            i < len(s.sent[s.sent[e][i]]) and (j > i or s.sent[s.sent[e][i]][j] == s.sent[e][j])
        )

    @lemma()
    def epochs_rise_along_a_log(s, n: Voter, i: Length, j: Length) -> bool:
        return not (j < i and i < len(s.log[n])) or s.log[n][j] <= s.log[n][i]

    @lemma()
    def epochs_rise_along_what_is_sent(s, e: Epoch, i: Length, j: Length) -> bool:
        return not (j < i and i < len(s.sent[e])) or s.sent[e][j] <= s.sent[e][i]

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
    def who_had_a_record_has_it(s, n: Voter, e: Epoch, c: Length) -> bool:
        """Or it is lost."""
        return c <= s.begun[e] or s.acked[e][n] < c or s.holds(n, c, e) or s.lost[e][c]

    @lemma()
    def later_logs_have_it_or_it_is_lost(s, m: Voter, e: Epoch, c: Length) -> bool:
        """Logs that end with a record of a later epoch."""
        return s.last_epoch(m) <= e or c <= s.begun[e] or s.holds(m, c, e) or s.lost[e][c]

    @lemma()
    def a_log_of_the_same_last_epoch_is_as_long(s, m: Voter, n: Voter, i: Length) -> bool:
        """Or longer, and the same up to there."""
        return (
            s.last_epoch(m) != s.last_epoch(n)
            or len(s.log[m]) < len(s.log[n])
            or i >= len(s.log[n])
            or s.log[m][i] == s.log[n][i]
        )

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
    def state_machines_have_what_is_committed(s, n: Voter, i: Length) -> bool:
        e = s.told[n]
        return (
            s.high[n] <= s.committed[e]
            and s.high[n] <= len(s.log[n])
            and e <= s.epoch[n]
            and (i >= s.high[n] or (i < len(s.sent[e]) and s.sent[e][i] == s.log[n][i]))
        )


RECORDS = ("records_are_their_leaders", "sent_records_are_their_leaders", "only_leaders_send")
RISE = ("epochs_rise_along_a_log", "epochs_rise_along_what_is_sent", "an_epoch_begins_where_it_begins")
ELECTED = ("whoever_can_lead_is_the_first", "only_leaders_send", "nobody_is_ahead_of_its_epoch")
BEGINS = {
    "candidates_have_what_their_voters_had": (
        *("candidates_have_what_their_voters_had", "who_had_a_record_has_it", "later_logs_have_it_or_it_is_lost"),
        *("a_log_of_the_same_last_epoch_is_as_long", "epochs_rise_along_a_log", *ELECTED),
    ),
    "later_leaders_have_it_or_it_is_lost": (
        *("later_leaders_have_it_or_it_is_lost", "candidates_have_what_their_voters_had", "acked_is_sent", *ELECTED),
    ),
    "later_logs_have_it_or_it_is_lost": (
        *("later_logs_have_it_or_it_is_lost", "candidates_have_what_their_voters_had", "acked_is_sent", *ELECTED),
        *("epochs_rise_along_a_log", "later_leaders_have_it_or_it_is_lost"),
    ),
    "who_had_a_record_has_it": (
        *("who_had_a_record_has_it", "later_leaders_have_it_or_it_is_lost", "acked_is_sent", *ELECTED),
        *("records_are_their_leaders", *RISE),
    ),
    "sent_records_are_their_leaders": (*RECORDS, *ELECTED, "candidates_have_no_record_of_their_epoch"),
    "a_log_of_the_same_last_epoch_is_as_long": (
        *("a_log_of_the_same_last_epoch_is_as_long", *RECORDS, "whoever_can_lead_is_the_first"),
    ),
    "leaders_have_what_is_committed": (
        *("leaders_have_what_is_committed", "later_leaders_have_it_or_it_is_lost"),
        *("lost_without_a_majority", "a_majority_has_what_is_committed", *ELECTED),
    ),
    "state_machines_have_what_is_committed": (
        *("state_machines_have_what_is_committed", "leaders_have_what_is_committed", *RECORDS, *RISE),
        *("a_majority_has_what_is_committed", "a_leader_sends_its_log", "whoever_leads_was_elected"),
    ),
    "state_machines_agree": (
        *("state_machines_agree", "state_machines_have_what_is_committed", "leaders_have_what_is_committed"),
        *("a_majority_has_what_is_committed", "sent_records_are_their_leaders", "only_leaders_send"),
    ),
}

PROOFS = [Proof(Inductive, timeout_s=60, explored_at={"Voter": 3, "E": 2, "L": 2}, begins_with=BEGINS)]
