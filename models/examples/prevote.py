"""Raft elections with pre-vote, as KRaft has them: KIP-595's epochs and votes, KIP-996's Prospective state.

A voter that misses its leader asks the others first whether they would vote for it, and begins an election, which needs
a new epoch, only if a majority would. So one that was cut off comes back in the epoch in which it left, and does not
force an election upon a majority that has a leader.

A log is the epoch of its last record: a leader writes one record, LeaderChange, when it is elected, and a fetch makes a
follower's log that of its leader. A request and its answer are one step; that either is lost, late or repeated is that
the step is not taken, or later. Voted is Unattached with a vote. A restart is to resign, or to time out and give up.

Source: KIP-595, KIP-996; `QuorumState.java` (the table of transitions), `ProspectiveState.java`, `FollowerState.java`,
`KafkaRaftClient.java` (`handleVoteRequest`, `pollResigned`). Left out: observers, changes of the voters (KIP-853).
"""

# mypy: disable-error-code="operator, index, arg-type, assignment"
# (the modelling language unwraps an option where its value is wanted; mypy narrows no element of a map)

from __future__ import annotations

import enum
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Model, Range, Size, Sort, action, define, invariant, majority, require, step, witness


class Voter(Sort):
    """A controller."""


E = Size("E")
"""The highest epoch; all begin in 0, without a leader."""
Epoch = Annotated[int, Range(0, E)]


class Role(enum.Enum):
    UNATTACHED = 0
    PROSPECTIVE = 1
    CANDIDATE = 2
    LEADER = 3
    FOLLOWER = 4
    RESIGNED = 5


class PreVote(Model):
    """Of its epoch a voter knows for whom it voted, and who leads. `fetched`: it has fetched from that leader since it
    follows it. `granted` is who would vote for a prospective voter, or voted for a candidate. `committed` is the last
    epoch whose LeaderChange a majority had, the `holders`. `votes` is every vote of every epoch."""

    role: dict[Voter, Role]
    epoch: dict[Voter, Epoch]
    voted: dict[Voter, Voter | None]
    leader: dict[Voter, Voter | None]
    fetched: dict[Voter, bool]
    granted: dict[Voter, set[Voter]]
    log: dict[Voter, Epoch]
    committed: Epoch
    votes: dict[Epoch, dict[Voter, Voter | None]]
    holders: set[Voter]
    ghosts = ("votes", "holders")

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

    # A voter on any request or answer of a higher epoch that names no leader. That epoch has begun somewhere.
    @action(who="voter")
    def hear_of_epoch(s, n: Voter, e: Epoch) -> None:
        require(s.epoch[n] < e, any(e <= s.epoch[m] for m in Voter))
        s.become(n, Role.UNATTACHED, e, None)

    # A voter on BeginQuorumEpoch from the leader, or on anybody's answer that names one.
    @action(who="voter")
    def hear_of_leader(s, n: Voter, m: Voter) -> None:
        require(s.leader[m] is not None, s.leader[m] != n)
        require(s.epoch[n] < s.epoch[m] or (s.epoch[n] == s.epoch[m] and s.leader[n] is None))
        s.become(n, Role.FOLLOWER, s.epoch[m], s.leader[m])

    # A follower: the leader has an epoch of at most its own, or it would have heard. Its log becomes the leader's.
    @action(who="follower")
    def fetch(s, n: Voter, m: Voter) -> None:
        require(s.role[n] == Role.FOLLOWER, s.leader[n] == m, s.role[m] == Role.LEADER, s.epoch[m] == s.epoch[n])
        s.next.fetched[n] = True
        s.next.log[n] = s.log[m]

    # A voter without news: of its leader (fetch timeout), of an election (election timeout), or its own is lost.
    @action(who="voter")
    def become_prospective(s, n: Voter) -> None:
        require(s.role[n] in (Role.FOLLOWER, Role.UNATTACHED, Role.CANDIDATE))
        s.become(n, Role.PROSPECTIVE, s.epoch[n], s.leader[n])
        s.next.granted[n] = {n}

    # A voter on a pre-vote request of its epoch (of a higher one: it hears of that first). It changes nothing here. Who
    # has fetched from the leader, leads, or is itself a candidate, refuses; so does everybody with a longer log.
    @action(who="voter")
    def grant_pre_vote(s, m: Voter, n: Voter) -> None:
        require(s.role[n] == Role.PROSPECTIVE, m not in s.granted[n], s.epoch[m] == s.epoch[n], s.log[m] <= s.log[n])
        require(s.role[m] not in (Role.LEADER, Role.CANDIDATE), not s.fetched[m])
        s.next.granted[n] = s.granted[n] | {m}

    # A prospective voter that a majority refuses, or that waits too long: back to its leader, if it knows one.
    @action(who="prospective voter")
    def give_up(s, n: Voter) -> None:
        require(s.role[n] == Role.PROSPECTIVE)
        s.become(n, Role.UNATTACHED if s.leader[n] is None else Role.FOLLOWER, s.epoch[n], s.leader[n])

    # A prospective voter with a majority: now it takes a new epoch, and its own vote.
    @action(who="prospective voter")
    def become_candidate(s, n: Voter) -> None:
        require(s.role[n] == Role.PROSPECTIVE, majority(s.granted[n]), s.epoch[n] < E)
        s.become(n, Role.CANDIDATE, s.epoch[n] + 1, None)
        s.next.voted[n] = n
        s.next.granted[n] = {n}
        s.next.votes[s.epoch[n] + 1][n] = n

    # A voter on a vote request of its epoch: one vote an epoch, to nobody with a shorter log, and none if it knows the
    # leader.
    @action(who="voter")
    def vote(s, m: Voter, n: Voter) -> None:
        require(s.role[n] == Role.CANDIDATE, s.epoch[m] == s.epoch[n], s.log[m] <= s.log[n])
        require(s.role[m] in (Role.UNATTACHED, Role.PROSPECTIVE), s.voted[m] is None, s.leader[m] is None)
        s.next.voted[m] = n
        s.next.granted[n] = s.granted[n] | {m}
        s.next.votes[s.epoch[m]][m] = n

    # A candidate with a majority: it leads, and writes LeaderChange.
    @action(who="candidate")
    def become_leader(s, n: Voter) -> None:
        require(s.role[n] == Role.CANDIDATE, majority(s.granted[n]))
        s.become(n, Role.LEADER, s.epoch[n], n)
        s.next.log[n] = s.epoch[n]

    # A leader whose LeaderChange a majority has fetched.
    @action(who="leader")
    def commit(s, n: Voter) -> None:
        require(s.role[n] == Role.LEADER, s.committed < s.epoch[n])
        require(majority({m for m in Voter if s.log[m] == s.epoch[n]}))
        s.next.committed = s.epoch[n]
        s.next.holders = {m for m in Voter if s.log[m] == s.epoch[n]}

    # A leader that shuts down, restarts, or from which no majority has fetched for a while.
    @action(who="leader")
    def resign(s, n: Voter) -> None:
        require(s.role[n] == Role.LEADER)
        s.become(n, Role.RESIGNED, s.epoch[n], n)

    # A resigned leader after the election timeout: a new epoch, so that it can follow or vote again.
    @action(who="resigned leader")
    def leave_resigned(s, n: Voter) -> None:
        require(s.role[n] == Role.RESIGNED, s.epoch[n] < E)
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
    def settled(s, n: Voter) -> bool:
        """n leads the highest epoch, and a majority fetches from it that has granted no pre-vote which still counts."""
        return (
            s.role[n] == Role.LEADER
            and all(s.epoch[m] <= s.epoch[n] for m in Voter)
            and majority({m for m in Voter if m in s.contact(n) and not s.helps(m, s.epoch[n])})
        )

    @define
    def helps(s, m: Voter, e: Epoch) -> bool:
        return any(s.role[k] == Role.PROSPECTIVE and s.epoch[k] == e and m in s.granted[k] for k in Voter)

    @invariant()
    def one_leader_per_epoch(s, m: Voter, n: Voter) -> bool:
        """No two lead, or are taken for the leader, in one epoch."""
        return s.epoch[m] != s.epoch[n] or s.leader[m] is None or s.leader[n] is None or s.leader[m] == s.leader[n]

    @step()
    def new_epochs_need_a_majority(s, n: Voter) -> bool:
        """Nobody makes a new epoch alone, but a leader that gives its own up."""
        return (
            any(s.next.epoch[n] <= s.epoch[m] for m in Voter)
            or s.role[n] == Role.RESIGNED
            or (s.role[n] == Role.PROSPECTIVE and majority(s.granted[n]))
        )

    @step()
    def no_disruption(s, n: Voter) -> bool:
        """A majority that fetches from its leader stays with it, whatever others do: until one of its own times out, or
        the leader resigns."""
        return (
            not s.settled(n)
            or s.next.settled(n)
            or s.next.role[n] == Role.RESIGNED
            or any(m in s.contact(n) and s.next.role[m] == Role.PROSPECTIVE for m in Voter)
        )

    @step()
    def leaders_have_what_is_committed(s, n: Voter) -> bool:
        """Whoever is elected in a later epoch; to be elected in an earlier one is too late to matter."""
        elected = s.next.role[n] == Role.LEADER and s.role[n] != Role.LEADER
        return not elected or s.epoch[n] <= s.committed or s.committed <= s.log[n]

    @witness
    def knocks_in_vain(s, n: Voter, m: Voter) -> bool:
        """A voter that was cut off is back, and its leader still leads."""
        return s.settled(n) and s.role[m] == Role.PROSPECTIVE and s.leader[m] == n

    @witness
    def led_twice(s) -> bool:
        return s.committed > 1


MODELS = [
    Expectation(PreVote, sizes={"Voter": 3, "E": 2}, distinct=100_383, generated=554_239, depth=30, deadlock=True),
    Expectation(PreVote, sizes={"Voter": 3, "E": 3}, distinct=472_479, generated=2_806_390, depth=39, deadlock=True),
]
