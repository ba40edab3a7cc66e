"""A quorum of controllers with one log: who leads, what a log holds, what is committed, and who votes.

`Logs` has votes, fetches that diverge, snapshots and the high watermark: one leader an epoch, logs that agree up to a
record of one epoch and one offset, no leader without what is committed, and state machines that apply one log.
`Elections` has the roles with pre-vote, and what time does. `VoterChanges` has the changes of the voters themselves.

What is simplified. A record is its epoch: a leader writes one record at an offset, once, so that epoch and offset name
it. A leader's log of an epoch stays readable (`sent`), as what it has answered may arrive late. A vote and its answer
are one step, but a candidate may count its votes at any time later, or never. Epochs may rise without a reason.

Source: KIP-595, KIP-630, KIP-853, KIP-996; KafkaRaftClient, QuorumState, LeaderState, RaftLog, Kafka 4.3.0.
"""

# mypy: disable-error-code="operator, index, arg-type, assignment"
# (the modelling language unwraps an option where its value is wanted; mypy narrows no element of a map)

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Bounded,
    Flag,
    Model,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    leads_to,
    lemma,
    majority,
    require,
    step,
    witness,
)


class Voter(Sort):
    """A controller."""


E = Size("E")
"""The highest epoch; all begin in 0, without a leader."""
L = Size("L")
"""The most records of a log."""
Epoch = Annotated[int, Range(0, E)]
RealEpoch = Annotated[int, Range(1, E)]
Length = Annotated[int, Range(0, L)]
"""How many records, or the offset behind them."""
Log = Annotated[list[RealEpoch], Bounded(L)]


class Part(enum.Enum):
    """What a voter does in its epoch: `VOTER` is unattached, prospective, a follower or resigned."""

    VOTER = 0
    CANDIDATE = 1
    LEADER = 2


class Logs(Model):
    """Of an epoch: `votes`, who was elected (`leader`), the leader's log as far as it got (`sent`), where the epoch
    `begun` in it, what each voter is known to have (`acked`) and the leader's high watermark (`committed`; 0 while
    unknown). A voter's state machine was given `high` records; `told` is the epoch whose leader said that these are
    committed. What the leader of an epoch can commit no more is `lost`: as a later leader is elected, a majority has
    left that epoch, and was not known to have that many records."""

    epoch: dict[Voter, Epoch]
    part: dict[Voter, Part]
    log: dict[Voter, Log]
    high: dict[Voter, Length]
    votes: dict[Epoch, dict[Voter, Voter | None]]
    leader: dict[Epoch, Voter | None]
    sent: dict[Epoch, Log]
    begun: dict[Epoch, Length]
    acked: dict[Epoch, dict[Voter, Length]]
    committed: dict[Epoch, Length]
    told: dict[Voter, Epoch]
    lost: dict[Epoch, dict[Length, bool]]
    ghosts = ("told", "lost")

    # ---- what a log says

    @define
    def last_epoch(s, n: Voter) -> Epoch:
        return s.log[n][len(s.log[n]) - 1] if len(s.log[n]) > 0 else 0

    @define
    def up_to_date(s, m: Voter, n: Voter) -> bool:
        """The log of m, for the voter n."""
        return s.last_epoch(n) < s.last_epoch(m) or (
            s.last_epoch(n) == s.last_epoch(m) and len(s.log[n]) <= len(s.log[m])
        )

    @define
    def ends(s, e: Epoch, f: Epoch, x: Length) -> bool:
        """In the log of e's leader, whatever is of epoch f or earlier ends before x."""
        q = s.sent[e]
        return x <= len(q) and (x == len(q) or q[x] > f) and (x == 0 or q[x - 1] <= f)

    @define
    def ends_here(s, n: Voter, f: Epoch, y: Length) -> bool:
        """In the voter's own log."""
        q = s.log[n]
        return y <= len(q) and (y == len(q) or q[y] > f) and (y == 0 or q[y - 1] <= f)

    @define
    def valid(s, n: Voter, x: Length) -> bool:
        """A fetch behind the voter's last record, whose epoch ends at x in the leader's log."""
        e = s.epoch[n]
        return len(s.log[n]) == 0 or (x > 0 and s.sent[e][x - 1] == s.last_epoch(n) and len(s.log[n]) <= x)

    @define
    def asks(s, n: Voter, x: Length) -> None:
        """A voter that fetches: its epoch has had a leader, and it is none itself."""
        require(s.part[n] == Part.VOTER, s.leader[s.epoch[n]] is not None, s.ends(s.epoch[n], s.last_epoch(n), x))

    @define
    def in_charge(s, m: Voter, e: Epoch) -> bool:
        return s.part[m] == Part.LEADER and s.epoch[m] == e

    # ---- elections

    # Any request or answer of a higher epoch; a resigned leader takes one by itself.
    @action("RFT-6", "RFT-10", "RFT-18", who="voter")
    def hear_of_epoch(s, n: Voter, e: Epoch) -> None:
        require(s.epoch[n] < e)
        s.next.epoch[n] = e
        s.next.part[n] = Part.VOTER

    # A voter whom a majority would vote for.
    @action("RFT-7", who="voter")
    def become_candidate(s, n: Voter) -> None:
        require(s.part[n] != Part.LEADER, s.epoch[n] < E)
        s.next.epoch[n] = s.epoch[n] + 1
        s.next.part[n] = Part.CANDIDATE
        s.next.votes[s.epoch[n] + 1][n] = n

    @action("RFT-1", "RFT-4", who="voter")
    def vote(s, n: Voter, m: Voter) -> None:
        require(s.part[m] == Part.CANDIDATE, s.part[n] == Part.VOTER, s.epoch[n] == s.epoch[m])
        require(s.votes[s.epoch[n]][n] is None, s.up_to_date(m, n))
        s.next.votes[s.epoch[n]][n] = m

    # It writes its first record at once.
    @action("RFT-2", "RFT-9", who="candidate")
    def become_leader(s, n: Voter) -> None:
        e = s.epoch[n]
        require(s.part[n] == Part.CANDIDATE, majority({m for m in Voter if s.votes[e][m] == n}), len(s.log[n]) < L)
        s.next.lost = {
            d: {
                c: s.lost[d][c] or (d < e and majority({m for m in Voter if s.epoch[m] > d and s.acked[d][m] < c}))
                for c in range(L + 1)
            }
            for d in range(E + 1)
        }
        s.next.part[n] = Part.LEADER
        s.next.leader[e] = n
        s.next.begun[e] = len(s.log[n])
        s.next.log[n] = s.log[n] + [e]
        s.next.sent[e] = s.log[n] + [e]
        s.next.acked[e][n] = len(s.log[n]) + 1

    # A leader resigns, a candidate hears of the leader, or either restarts. Its vote, its epoch and its log stay.
    @action("RFT-10", "RFT-11", "RFT-39", who="voter")
    def step_down(s, n: Voter) -> None:
        require(s.part[n] != Part.VOTER)
        s.next.part[n] = Part.VOTER

    # ---- the log

    @action("RFT-26", who="leader")
    def write(s, n: Voter) -> None:
        e = s.epoch[n]
        require(s.part[n] == Part.LEADER, len(s.log[n]) < L)
        s.next.log[n] = s.log[n] + [e]
        s.next.sent[e] = s.log[n] + [e]
        s.next.acked[e][n] = len(s.log[n]) + 1

    # The leader reads from a valid fetch how far the voter's log goes.
    @action("RFT-14", "RFT-17", who="leader")
    def hear_fetch(s, n: Voter, m: Voter, x: Length) -> None:
        e = s.epoch[n]
        s.asks(n, x)
        require(s.in_charge(m, e), s.valid(n, x), s.acked[e][n] < len(s.log[n]))
        s.next.acked[e][n] = len(s.log[n])

    # The answer, now or late.
    @action("RFT-17", who="follower")
    def append(s, n: Voter, x: Length) -> None:
        e = s.epoch[n]
        s.asks(n, x)
        require(s.valid(n, x), len(s.log[n]) < len(s.sent[e]))
        s.next.log[n] = s.log[n] + [s.sent[e][len(s.log[n])]]

    # The answer names the end of the last epoch that the leader has up to that of the fetch; the follower cuts its log
    # there, or where its own records up to that epoch end.
    @action("RFT-15", "RFT-16", who="follower")
    def truncate(s, n: Voter, x: Length, y: Length) -> None:
        e = s.epoch[n]
        s.asks(n, x)
        require(not s.valid(n, x))
        f = s.sent[e][x - 1] if x > 0 else 0
        require(s.ends_here(n, f, y))
        if f == 0:
            s.next.log[n] = s.log[n][: min(x, len(s.log[n]))]
        elif y > 0 and s.log[n][y - 1] == f:
            s.next.log[n] = s.log[n][: min(x, y)]
        else:
            s.next.log[n] = s.log[n][:y]

    # A snapshot of what the leader's state machine was given, beyond the end of the follower's log.
    @action("RFT-23", "RFT-24", who="follower")
    def load_snapshot(s, n: Voter, m: Voter, c: Length) -> None:
        e = s.epoch[n]
        q = s.log[m]
        require(s.part[n] == Part.VOTER, s.in_charge(m, e), c > 0, c <= s.high[m], c <= len(q))
        require(s.last_epoch(n) < q[c - 1] or (s.last_epoch(n) == q[c - 1] and len(s.log[n]) < c))
        s.next.log[n] = q[:c]
        s.next.high[n] = c
        s.next.told[n] = s.told[m]

    # A majority has it, and it is beyond where the epoch begun.
    @action("RFT-18", who="leader")
    def commit(s, n: Voter, c: Length) -> None:
        e = s.epoch[n]
        require(s.part[n] == Part.LEADER, s.begun[e] < c, c <= len(s.log[n]), s.committed[e] < c)
        require(majority({m for m in Voter if s.acked[e][m] >= c}))
        s.next.committed[e] = c
        s.next.high[n] = c
        s.next.told[n] = e

    # The answer has the leader's high watermark.
    @action("RFT-17", "RFT-35", who="follower")
    def learn(s, n: Voter, x: Length) -> None:
        e = s.epoch[n]
        s.asks(n, x)
        require(s.valid(n, x), s.high[n] < min(len(s.log[n]), s.committed[e]))
        s.next.high[n] = min(len(s.log[n]), s.committed[e])
        s.next.told[n] = e

    # ---- what holds

    @define
    def has(s, e: Epoch, c: Length, d: Epoch) -> bool:
        """The leader of d has the last record before c from epoch e."""
        return c > 0 and c <= len(s.sent[d]) and s.sent[d][c - 1] == e

    @invariant("RFT-2")
    def one_leader_per_epoch(s, m: Voter, n: Voter) -> bool:
        return m == n or s.part[m] != Part.LEADER or s.part[n] != Part.LEADER or s.epoch[m] != s.epoch[n]

    @step("RFT-2")
    def an_epoch_keeps_its_leader(s, e: Epoch) -> bool:
        """Also of one that leads no more: no other is elected in that epoch."""
        return s.leader[e] is None or s.next.leader[e] == s.leader[e]

    @step("RFT-1", "RFT-39")
    def a_vote_stays(s, n: Voter, e: Epoch) -> bool:
        return s.votes[e][n] is None or s.next.votes[e][n] == s.votes[e][n]

    @step("RFT-6", "RFT-10", "RFT-11")
    def epochs_rise(s, n: Voter) -> bool:
        """Within one, nobody becomes a candidate, and only a candidate a leader."""
        return s.epoch[n] < s.next.epoch[n] or (
            s.epoch[n] == s.next.epoch[n]
            and (s.next.part[n] != Part.CANDIDATE or s.part[n] == Part.CANDIDATE)
            and (s.next.part[n] != Part.LEADER or s.part[n] != Part.VOTER)
        )

    @step("RFT-4")
    def votes_go_to_logs_that_are_up_to_date(s, n: Voter, m: Voter, e: Epoch) -> bool:
        return s.votes[e][n] is not None or s.next.votes[e][n] != m or s.up_to_date(m, n)

    @step("RFT-7")
    def a_candidate_votes_for_itself(s, n: Voter) -> bool:
        return s.next.part[n] != Part.CANDIDATE or s.part[n] == Part.CANDIDATE or s.next.votes[s.next.epoch[n]][n] == n

    @step("RFT-9")
    def a_leader_begins_with_a_record(s, n: Voter) -> bool:
        e = s.epoch[n]
        return (
            s.part[n] == Part.LEADER
            or s.next.part[n] != Part.LEADER
            or (len(s.next.log[n]) == len(s.log[n]) + 1 and s.next.begun[e] == len(s.log[n]))
        )

    @step("RFT-26")
    def leaders_only_append(s, n: Voter, i: Length) -> bool:
        return (
            s.part[n] != Part.LEADER
            or i >= len(s.log[n])
            or (i < len(s.next.log[n]) and s.next.log[n][i] == s.log[n][i])
        )

    @invariant("RFT-19")
    def log_matching(s, m: Voter, n: Voter, i: Length, j: Length) -> bool:
        """Two records of one epoch at one offset: the logs are the same up to there."""
        return (
            j > i
            or i >= len(s.log[m])
            or i >= len(s.log[n])
            or s.log[m][i] != s.log[n][i]
            or s.log[m][j] == s.log[n][j]
        )

    @invariant("RFT-20", "RFT-18")
    def leaders_have_what_is_committed(s, e: Epoch, d: Epoch) -> bool:
        """Whoever was elected in a later epoch, before it was committed or after."""
        return d <= e or s.leader[d] is None or s.committed[e] == 0 or s.has(e, s.committed[e], d)

    @invariant("RFT-21", "RFT-23", "RFT-24", "RFT-35")
    def state_machines_agree(s, m: Voter, n: Voter, i: Length) -> bool:
        return (
            i >= s.high[m] or i >= s.high[n] or (i < len(s.log[m]) and i < len(s.log[n]) and s.log[m][i] == s.log[n][i])
        )

    @step("RFT-22", "RFT-16", "RFT-24")
    def what_a_state_machine_has_stays(s, n: Voter, i: Length) -> bool:
        return i >= s.high[n] or (
            s.high[n] <= s.next.high[n]
            and i < len(s.log[n])
            and i < len(s.next.log[n])
            and s.next.log[n][i] == s.log[n][i]
        )

    @step("RFT-18", "RFT-14")
    def a_high_watermark_is_held_by_a_majority(s, e: Epoch) -> bool:
        return s.next.committed[e] == s.committed[e] or (
            s.committed[e] < s.next.committed[e]
            and s.begun[e] < s.next.committed[e]
            and majority({m for m in Voter if s.acked[e][m] >= s.next.committed[e]})
        )

    @step("RFT-17")
    def followers_learn_up_to_their_end(s, n: Voter) -> bool:
        return s.next.high[n] == s.high[n] or s.next.high[n] <= len(s.next.log[n])

    @step("RFT-15", "RFT-16", "RFT-17")
    def a_follower_keeps_what_its_leader_has(s, n: Voter, i: Length) -> bool:
        """Whatever agrees up to there."""
        e = s.epoch[n]
        return (
            s.leader[e] is None
            or i >= len(s.log[n])
            or i >= len(s.sent[e])
            or s.log[n][i] != s.sent[e][i]
            or (i < len(s.next.log[n]) and s.next.log[n][i] == s.log[n][i])
        )

    @witness
    def logs_diverge(s, m: Voter, n: Voter) -> bool:
        return len(s.log[m]) > 0 and len(s.log[n]) > 0 and s.log[m][0] != s.log[n][0]

    @witness
    def an_earlier_epochs_record_is_committed(s, m: Voter, n: Voter, e: Epoch) -> bool:
        """By a leader that did not write it, with one of its own; and a follower knows."""
        return m != n and s.high[n] > 1 and s.high[m] > 1 and s.has(e, 1, s.epoch[n]) and s.committed[e] == 0

    @witness
    def committed_late(s, e: Epoch, d: Epoch) -> bool:
        """By a leader of an earlier epoch, while a later one has its leader."""
        return e < d and s.committed[e] == 1 and s.leader[d] is not None and s.committed[d] == 0


class Votes(Logs):
    """The same model with what the proof of its elections needs."""

    @lemma()
    def leaders_are_elected(s, e: Epoch) -> bool:
        return s.leader[e] is None or majority({m for m in Voter if s.votes[e][m] == s.leader[e]})

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
    def whoever_can_lead_is_the_first(s, n: Voter) -> bool:
        e = s.epoch[n]
        return (
            s.part[n] != Part.CANDIDATE or s.leader[e] is None or not majority({m for m in Voter if s.votes[e][m] == n})
        )

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
    def records_are_of_epochs_with_a_leader(s, n: Voter, i: Length) -> bool:
        return i >= len(s.log[n]) or s.leader[s.log[n][i]] is not None

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
    """The same model with what the proof needs that leaders have what is committed. Of its claim, one half is
    `leaders_have_what_is_committed_or_it_is_lost`, and the other `committed_is_not_lost`.

    That a leader has what is committed is usually shown from the first later leader that has it not, by induction over
    epochs. Here the state says it, of every record that the leader of an epoch may yet commit: whoever had it has it,
    whoever is voted for has what its voters had, and it stands before every record of a later epoch; or it is `lost`,
    as a majority left that epoch without it. `e` is that epoch, and `c` how many records there are up to that one."""

    @define
    def holds(s, n: Voter, c: Length, e: Epoch) -> bool:
        """The voter's log has the last record before c from epoch e."""
        return c > 0 and c <= len(s.log[n]) and s.log[n][c - 1] == e

    @lemma()
    def leaders_have_a_majority(s, e: Epoch, n: Voter) -> bool:
        return s.leader[e] != n or majority({m for m in Voter if s.votes[e][m] == n})

    @lemma()
    def whoever_leads_is_a_voter(s, e: Epoch) -> bool:
        return s.leader[e] is None or any(s.leader[e] == n for n in Voter)

    @lemma()
    def nobody_else_can_lead(s, e: Epoch, n: Voter) -> bool:
        return s.leader[e] is None or s.leader[e] == n or not majority({m for m in Voter if s.votes[e][m] == n})

    @lemma()
    def lost_without_a_majority(s, e: Epoch, c: Length) -> bool:
        return not s.lost[e][c] or majority({k for k in Voter if s.epoch[k] > e and s.acked[e][k] < c})

    @lemma()
    def what_a_majority_has_is_not_lost(s, e: Epoch, c: Length) -> bool:
        return not s.lost[e][c] or not majority({m for m in Voter if s.acked[e][m] >= c})

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

    @lemma("RFT-20", "RFT-18")
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
    def what_is_sent_ends_in_its_epoch(s, e: Epoch) -> bool:
        return s.leader[e] is None or (len(s.sent[e]) > 0 and s.sent[e][len(s.sent[e]) - 1] == e)

    @lemma()
    def an_epoch_is_one_piece_of_a_log(s, n: Voter, i: Length, j: Length) -> bool:
        """From where it begun."""
        return i >= len(s.log[n]) or j > i or j < s.begun[s.log[n][i]] or s.log[n][j] == s.log[n][i]

    @lemma()
    def an_epoch_is_one_piece_of_what_is_sent(s, d: Epoch, i: Length, j: Length) -> bool:
        return i >= len(s.sent[d]) or j > i or j < s.begun[s.sent[d][i]] or s.sent[d][j] == s.sent[d][i]

    @lemma()
    def before_a_later_record_it_is_there_or_lost(s, n: Voter, i: Length, e: Epoch, c: Length) -> bool:
        """Whatever the leader of e may yet commit."""
        return (
            i >= len(s.log[n])
            or s.log[n][i] <= e
            or c <= s.begun[e]
            or (c > 0 and c <= i and s.log[n][c - 1] == e)
            or s.lost[e][c]
        )

    @lemma()
    def before_a_later_record_it_is_sent_or_lost(s, d: Epoch, i: Length, e: Epoch, c: Length) -> bool:
        return (
            i >= len(s.sent[d])
            or s.sent[d][i] <= e
            or c <= s.begun[e]
            or (c > 0 and c <= i and s.sent[d][c - 1] == e)
            or s.lost[e][c]
        )

    @lemma("RFT-20", "RFT-18")
    def leaders_have_what_is_committed_or_it_is_lost(s, e: Epoch, d: Epoch) -> bool:
        """And committed is not lost: so they have it."""
        c = s.committed[e]
        return d <= e or s.leader[d] is None or c == 0 or s.has(e, c, d) or s.lost[e][c]


class Role(enum.Enum):
    UNATTACHED = 0
    PROSPECTIVE = 1
    CANDIDATE = 2
    LEADER = 3
    FOLLOWER = 4
    RESIGNED = 5


class Elections(Model):
    """Of its epoch a voter knows for whom it voted, and who leads. `fetched`: it has fetched from that leader since it
    follows it. `granted` is who would vote for a prospective voter, or voted for a candidate. A log is the epoch of its
    last record. Once it is `calm`, the voters in `down` do nothing any more, and a timer runs out only while nobody
    else leads or may yet be elected. `votes` is every vote of every epoch."""

    role: dict[Voter, Role]
    epoch: dict[Voter, Epoch]
    voted: dict[Voter, Voter | None]
    leader: dict[Voter, Voter | None]
    fetched: dict[Voter, bool]
    granted: dict[Voter, set[Voter]]
    log: dict[Voter, Epoch]
    calm: bool
    down: set[Voter]
    votes: dict[Epoch, dict[Voter, Voter | None]]
    ghosts = ("votes",)

    @define
    def become(s, n: Voter, role: Role, epoch: Epoch, leader: Voter | None) -> None:
        """A vote lasts as long as the epoch, a grant as long as the state."""
        if s.epoch[n] != epoch:
            s.next.voted[n] = None
        s.next.role[n] = role
        s.next.epoch[n] = epoch
        s.next.leader[n] = leader
        s.next.fetched[n] = False
        s.next.granted[n] = set()

    @define
    def up(s, n: Voter) -> bool:
        return n not in s.down

    @define
    def would_vote(s, m: Voter, n: Voter) -> bool:
        """A pre-vote, once it has heard of the epoch."""
        return s.log[m] <= s.log[n] and (
            s.epoch[m] < s.epoch[n] or (s.epoch[m] == s.epoch[n] and s.role[m] != Role.LEADER and not s.fetched[m])
        )

    @define
    def may_vote(s, m: Voter, n: Voter) -> bool:
        return s.log[m] <= s.log[n] and (
            s.epoch[m] < s.epoch[n]
            or (
                s.epoch[m] == s.epoch[n]
                and s.role[m] in (Role.UNATTACHED, Role.PROSPECTIVE)
                and (s.voted[m] == n or (s.voted[m] is None and s.leader[m] is None))
            )
        )

    @define
    def has_all_answers(s, n: Voter) -> bool:
        """It stands for election, and whoever is up and could still grant has granted: in vain."""
        return not majority(s.granted[n]) and all(
            m in s.down
            or m in s.granted[n]
            or not (s.would_vote(m, n) if s.role[n] == Role.PROSPECTIVE else s.may_vote(m, n))
            for m in Voter
        )

    @define
    def nobody_else_may_win(s, n: Voter) -> bool:
        return all(
            m == n
            or m in s.down
            or (
                s.role[m] != Role.LEADER
                and (s.role[m] not in (Role.PROSPECTIVE, Role.CANDIDATE) or s.has_all_answers(m))
            )
            for m in Voter
        )

    # From here on fewer than half are down for good, and timers run out one by one.
    @action("RFT-13", who="time")
    def calm_down(s, d: set[Voter]) -> None:
        require(not s.calm, majority(set(Voter) - d), all(s.epoch[n] + 1 < E for n in Voter))
        s.next.calm = True
        s.next.down = d

    # A voter on any request or answer of a higher epoch that names no leader. That epoch has begun somewhere.
    @action("RFT-6", who="voter", fair="weak", per=("n", "m"))
    def hear_of_epoch(s, n: Voter, m: Voter) -> None:
        require(s.up(n), s.up(m), s.epoch[n] < s.epoch[m], s.leader[m] is None or s.leader[m] == n)
        s.become(n, Role.UNATTACHED, s.epoch[m], None)

    # A voter on BeginQuorumEpoch from the leader, or on anybody's answer that names one.
    @action("RFT-11", who="voter", fair="weak", per=("n", "m"))
    def hear_of_leader(s, n: Voter, m: Voter) -> None:
        require(s.up(n), s.up(m), s.leader[m] is not None, s.leader[m] != n)
        require(s.epoch[n] < s.epoch[m] or (s.epoch[n] == s.epoch[m] and s.leader[n] is None))
        s.become(n, Role.FOLLOWER, s.epoch[m], s.leader[m])

    # A follower: the leader has an epoch of at most its own, or it would have heard. Its log becomes the leader's.
    @action("RFT-17", who="follower", fair="weak", per=("n",))
    def fetch(s, n: Voter, m: Voter) -> None:
        require(s.up(n), s.up(m))
        require(s.role[n] == Role.FOLLOWER, s.leader[n] == m, s.role[m] == Role.LEADER, s.epoch[m] == s.epoch[n])
        s.next.fetched[n] = True
        s.next.log[n] = s.log[m]

    # A voter without news: of its leader (fetch timeout), of an election (election timeout), or its own is lost.
    @action("RFT-7", who="voter", fair="strong", per=("n",))
    def become_prospective(s, n: Voter) -> None:
        require(s.up(n), s.role[n] in (Role.FOLLOWER, Role.UNATTACHED, Role.CANDIDATE))
        require(not s.calm or (s.nobody_else_may_win(n) and (s.role[n] != Role.CANDIDATE or s.has_all_answers(n))))
        s.become(n, Role.PROSPECTIVE, s.epoch[n], s.leader[n])
        s.next.granted[n] = {n}

    # A pre-vote changes nothing of who grants it. Whoever leads, or has fetched from its leader, refuses.
    @action("RFT-3", "RFT-5", who="voter", fair="weak", per=("m", "n"))
    def grant_pre_vote(s, m: Voter, n: Voter) -> None:
        require(s.up(n), s.up(m), s.role[n] == Role.PROSPECTIVE, m not in s.granted[n], s.epoch[m] == s.epoch[n])
        require(s.would_vote(m, n))
        s.next.granted[n] = s.granted[n] | {m}

    # A prospective voter that a majority refuses, or that waits too long: back to its leader, if it knows one.
    @action("RFT-8", who="prospective voter", fair="weak", per=("n",))
    def give_up(s, n: Voter) -> None:
        require(s.up(n), s.role[n] == Role.PROSPECTIVE, not s.calm or s.has_all_answers(n))
        s.become(n, Role.UNATTACHED if s.leader[n] is None else Role.FOLLOWER, s.epoch[n], s.leader[n])

    # A prospective voter with a majority: now it takes a new epoch, and its own vote.
    @action("RFT-7", who="prospective voter", fair="weak", per=("n",))
    def become_candidate(s, n: Voter) -> None:
        require(s.up(n), s.role[n] == Role.PROSPECTIVE, majority(s.granted[n]), s.epoch[n] < E)
        s.become(n, Role.CANDIDATE, s.epoch[n] + 1, None)
        s.next.voted[n] = n
        s.next.granted[n] = {n}
        s.next.votes[s.epoch[n] + 1][n] = n

    # One vote an epoch, to nobody with a shorter log, and none if it knows the leader.
    @action("RFT-1", "RFT-4", "RFT-5", who="voter", fair="weak", per=("m", "n"))
    def vote(s, m: Voter, n: Voter) -> None:
        require(s.up(n), s.up(m), s.role[n] == Role.CANDIDATE, m not in s.granted[n], s.epoch[m] == s.epoch[n])
        require(s.may_vote(m, n))
        s.next.voted[m] = n
        s.next.granted[n] = s.granted[n] | {m}
        s.next.votes[s.epoch[m]][m] = n

    @action("RFT-9", who="candidate", fair="weak", per=("n",))
    def become_leader(s, n: Voter) -> None:
        require(s.up(n), s.role[n] == Role.CANDIDATE, majority(s.granted[n]))
        s.become(n, Role.LEADER, s.epoch[n], n)
        s.next.log[n] = s.epoch[n]

    # A leader that shuts down, restarts, or from which no majority has fetched for a while.
    @action("RFT-10", "RFT-28", who="leader")
    def resign(s, n: Voter) -> None:
        require(s.role[n] == Role.LEADER, not s.calm)
        s.become(n, Role.RESIGNED, s.epoch[n], n)

    # A resigned leader after the election timeout: a new epoch, so that it can follow or vote again.
    @action("RFT-10", who="resigned leader", fair="weak", per=("n",))
    def leave_resigned(s, n: Voter) -> None:
        require(s.up(n), s.role[n] == Role.RESIGNED, s.epoch[n] < E)
        s.become(n, Role.UNATTACHED, s.epoch[n] + 1, None)

    @define
    def contact(s, n: Voter) -> set[Voter]:
        """The leader n, and who has fetched from it."""
        return {
            m
            for m in Voter
            if m == n or (s.role[m] == Role.FOLLOWER and s.leader[m] == n and s.fetched[m] and s.epoch[m] == s.epoch[n])
        }

    @define
    def helps(s, m: Voter, e: Epoch) -> bool:
        return any(s.role[k] == Role.PROSPECTIVE and s.epoch[k] == e and m in s.granted[k] for k in Voter)

    @define
    def settled(s, n: Voter) -> bool:
        """n leads the highest epoch, and a majority fetches from it that has granted no pre-vote which still counts."""
        return (
            s.role[n] == Role.LEADER
            and all(s.epoch[m] <= s.epoch[n] for m in Voter)
            and majority({m for m in Voter if m in s.contact(n) and not s.helps(m, s.epoch[n])})
        )

    @invariant("RFT-2", "RFT-11")
    def one_leader_per_epoch(s, m: Voter, n: Voter) -> bool:
        """No two lead, or are taken for the leader, in one epoch."""
        return s.epoch[m] != s.epoch[n] or s.leader[m] is None or s.leader[n] is None or s.leader[m] == s.leader[n]

    @step("RFT-3", "RFT-7", "RFT-10")
    def new_epochs_need_a_majority(s, n: Voter) -> bool:
        """Nobody makes a new epoch alone, but a leader that gives its own up."""
        return (
            any(s.next.epoch[n] <= s.epoch[m] for m in Voter)
            or s.role[n] == Role.RESIGNED
            or (s.role[n] == Role.PROSPECTIVE and majority(s.granted[n]))
        )

    @step("RFT-1", "RFT-8")
    def a_vote_lasts_as_long_as_the_epoch(s, n: Voter) -> bool:
        return s.epoch[n] <= s.next.epoch[n] and (
            s.epoch[n] != s.next.epoch[n] or s.voted[n] is None or s.next.voted[n] == s.voted[n]
        )

    @step("RFT-8", "RFT-7")
    def a_leader_is_known_as_long_as_the_epoch(s, n: Voter) -> bool:
        return s.epoch[n] != s.next.epoch[n] or s.leader[n] is None or s.next.leader[n] == s.leader[n]

    @step("RFT-4", "RFT-5")
    def who_knows_a_leader_gives_no_vote(s, n: Voter, m: Voter) -> bool:
        """But to itself; and nobody gives one to a shorter log."""
        return (
            s.voted[n] is not None
            or s.next.voted[n] != m
            or m == n
            or (s.leader[n] is None and s.log[n] <= s.log[m] and s.role[n] in (Role.UNATTACHED, Role.PROSPECTIVE))
        )

    @step("RFT-5", "RFT-3")
    def who_has_its_leader_grants_no_pre_vote(s, n: Voter, m: Voter) -> bool:
        return (
            s.role[n] != Role.PROSPECTIVE
            or s.next.role[n] != Role.PROSPECTIVE
            or m in s.granted[n]
            or m not in s.next.granted[n]
            or (not s.fetched[m] and s.role[m] != Role.LEADER and s.log[m] <= s.log[n])
        )

    @step("RFT-12", "RFT-28")
    def no_disruption(s, n: Voter) -> bool:
        """A majority that fetches from its leader stays with it, whatever others do: until one of its own times out, or
        the leader resigns."""
        return (
            not s.settled(n)
            or s.next.settled(n)
            or s.next.role[n] == Role.RESIGNED
            or any(m in s.contact(n) and s.next.role[m] == Role.PROSPECTIVE for m in Voter)
        )

    @leads_to("RFT-13")
    def a_leader_is_elected(s) -> tuple[bool, bool]:
        """Whom a majority follows, all of them up."""
        return s.calm, any(
            s.role[n] == Role.LEADER and majority({m for m in s.contact(n) if m not in s.down}) and n not in s.down
            for n in Voter
        )

    @witness
    def knocks_in_vain(s, n: Voter, m: Voter) -> bool:
        """A voter that was cut off is back, and its leader still leads."""
        return s.settled(n) and s.role[m] == Role.PROSPECTIVE and s.leader[m] == n

    @witness
    def calm_after_an_election(s, n: Voter) -> bool:
        """Its leader is down, with all that it wrote."""
        return s.calm and n in s.down and s.role[n] == Role.LEADER and any(s.fetched[m] for m in Voter)


class Roles(Elections):
    """The same model with what the proof of its elections needs."""

    @lemma()
    def votes_are_remembered(s, n: Voter, e: Epoch) -> bool:
        """For as long as the epoch lasts, and none is of a later one."""
        return s.votes[s.epoch[n]][n] == s.voted[n] and (e <= s.epoch[n] or s.votes[e][n] is None)

    @lemma()
    def candidates_count_votes(s, n: Voter, m: Voter) -> bool:
        return s.role[n] != Role.CANDIDATE or m not in s.granted[n] or s.votes[s.epoch[n]][m] == n

    @lemma()
    def leaders_are_elected(s, m: Voter) -> bool:
        """Whoever is taken for the leader has a majority of the votes of that epoch."""
        return s.leader[m] is None or majority({k for k in Voter if s.votes[s.epoch[m]][k] == s.leader[m]})

    @lemma()
    def roles_know_their_leader(s, n: Voter) -> bool:
        return (
            (s.role[n] not in (Role.LEADER, Role.RESIGNED) or s.leader[n] == n)
            and (s.role[n] != Role.FOLLOWER or s.leader[n] is not None)
            and (not s.fetched[n] or s.role[n] == Role.FOLLOWER)
        )


@dataclass(frozen=True)
class Entry:
    """A record, with the voters from there on."""

    epoch: RealEpoch
    voters: set[Voter]


Entries = Annotated[list[Entry], Bounded(L)]

ONE_AT_A_TIME = Flag("ONE_AT_A_TIME")
"""KIP-853: no change while another is not committed."""
OWN_EPOCH_FIRST = Flag("OWN_EPOCH_FIRST")
"""KIP-853: no change before the leader has committed a record of its own epoch."""


class VoterChanges(Model):
    """The voters are those of the last record of a log, committed or not; `first` before there is one. `high` is how
    much a replica knows to be committed; `committed` is the longest log that ever was. An election is one step; so is a
    fetch of one record, with the truncation before it, and what the leader learns by it."""

    first: set[Voter]
    epoch: dict[Voter, Epoch]
    leads: dict[Voter, bool]
    log: dict[Voter, Entries]
    high: dict[Voter, Length]
    committed: Entries

    @initial
    def start(s, v: set[Voter]) -> None:
        require(len(v) > 0)
        s.next.first = v

    @define
    def voters_at(s, n: Voter, c: Length) -> set[Voter]:
        return s.log[n][c - 1].voters if c > 0 else s.first

    @define
    def voters(s, n: Voter) -> set[Voter]:
        return s.voters_at(n, len(s.log[n]))

    @define
    def last_epoch(s, n: Voter) -> Epoch:
        return s.log[n][len(s.log[n]) - 1].epoch if len(s.log[n]) > 0 else 0

    @define
    def up_to_date(s, m: Voter, n: Voter) -> bool:
        return s.last_epoch(n) < s.last_epoch(m) or (
            s.last_epoch(n) == s.last_epoch(m) and len(s.log[n]) <= len(s.log[m])
        )

    # The votes of its own voters count, whoever else may vote; who votes need not be a voter in its own log.
    @action("RFT-29", "RFT-4", who="candidate")
    def elect(s, n: Voter, q: set[Voter], e: Epoch) -> None:
        v = s.voters(n)
        require(n in q, q <= v, 2 * len(q) > len(v), len(s.log[n]) < L)
        require(all(s.epoch[m] < e and s.up_to_date(n, m) for m in q))
        s.next.epoch = {m: e if m in q else s.epoch[m] for m in Voter}
        s.next.leads = {m: m == n or (s.leads[m] and m not in q) for m in Voter}
        s.next.log[n] = s.log[n] + [Entry(epoch=e, voters=v)]

    # The first record that the leader has and the follower has not; what it has instead goes.
    @action("RFT-17", "RFT-16", who="follower")
    def fetch(s, n: Voter, m: Voter, i: Length) -> None:
        require(s.leads[m], n != m, s.epoch[n] <= s.epoch[m], i < len(s.log[m]))
        require(i <= len(s.log[n]), s.log[n][:i] == s.log[m][:i])
        require(i == len(s.log[n]) or s.log[n][i] != s.log[m][i])
        s.next.log[n] = s.log[n][:i] + [s.log[m][i]]
        s.next.epoch[n] = s.epoch[m]
        s.next.leads[n] = False
        s.next.high[n] = max(s.high[n], min(i + 1, s.high[m]))

    # The leader counts itself only if it is a voter.
    @action("RFT-18", "RFT-33", who="leader")
    def commit(s, n: Voter, c: Length) -> None:
        v = s.voters(n)
        require(s.leads[n], s.high[n] < c, c <= len(s.log[n]), s.log[n][c - 1].epoch == s.epoch[n])
        require(
            2 * len({m for m in Voter if m in v and s.epoch[m] == s.epoch[n] and s.log[m][:c] == s.log[n][:c]}) > len(v)
        )
        s.next.high[n] = c
        if len(s.committed) < c:
            s.next.committed = s.log[n][:c]

    @action("RFT-30", "RFT-31", "RFT-32", "RFT-33", who="leader")
    def change(s, n: Voter, x: Voter) -> None:
        v = s.voters(n)
        w = v - {x} if x in v else v | {x}
        require(s.leads[n], len(s.log[n]) < L, len(w) > 0)
        require(not OWN_EPOCH_FIRST or (s.high[n] > 0 and s.log[n][s.high[n] - 1].epoch == s.epoch[n]))
        require(not ONE_AT_A_TIME or all(e.voters == v for e in s.log[n][s.high[n] :]))
        require(not ONE_AT_A_TIME or s.voters_at(n, s.high[n]) == v)
        s.next.log[n] = s.log[n] + [Entry(epoch=s.epoch[n], voters=w)]

    @invariant("RFT-2", "RFT-29")
    def one_leader_per_epoch(s, m: Voter, n: Voter) -> bool:
        return m == n or not s.leads[m] or not s.leads[n] or s.epoch[m] != s.epoch[n]

    @invariant("RFT-20", "RFT-30", "RFT-31")
    def the_last_leader_has_what_is_committed(s, n: Voter) -> bool:
        return (
            not s.leads[n]
            or any(s.epoch[n] < s.epoch[m] for m in Voter)
            or (len(s.committed) <= len(s.log[n]) and s.log[n][: len(s.committed)] == s.committed)
        )

    @invariant("RFT-21", "RFT-32", "RFT-33")
    def all_commit_one_log(s, n: Voter) -> bool:
        return s.high[n] <= len(s.committed) and s.log[n][: s.high[n]] == s.committed[: s.high[n]]

    @witness
    def a_voter_is_replaced(s, n: Voter, m: Voter) -> bool:
        return n in s.first and m not in s.first and any(n not in e.voters and m in e.voters for e in s.committed)

    @witness
    def a_change_is_lost(s, n: Voter) -> bool:
        """It was not committed, and a later epoch has something else in its place."""
        k = len(s.log[n])
        return (
            k > 1
            and s.log[n][k - 1].voters != s.log[n][k - 2].voters
            and len(s.committed) >= k
            and s.log[n][k - 1].epoch < s.committed[k - 1].epoch
        )


AS_KAFKA = {"ONE_AT_A_TIME": True, "OWN_EPOCH_FIRST": True}
"""What KIP-853 says."""

MODELS = [
    Expectation(
        Logs,
        sizes={"Voter": 3, "E": 2, "L": 2},
        distinct=203_246,
        generated=526_507,
        depth=28,
        symmetry=("Voter",),
        deadlock=True,
    ),
    Expectation(Elections, sizes={"Voter": 3, "E": 3}, distinct=384_067, generated=2_064_909, depth=36, deadlock=True),
    Expectation(
        VoterChanges,
        sizes={"Voter": 3, "E": 3, "L": 4, **AS_KAFKA},
        distinct=28_979,
        generated=66_381,
        depth=19,
        symmetry=("Voter",),
        deadlock=True,
    ),
    Expectation(
        VoterChanges,
        sizes={"Voter": 4, "E": 3, "L": 4, **AS_KAFKA},
        distinct=529_562,
        generated=1_698_664,
        depth=24,
        symmetry=("Voter",),
        deadlock=True,
        deep=True,
    ),
]
