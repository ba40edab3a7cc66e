"""Leader and followers of one partition: high watermark, leader epochs, and the fencing by epoch of KIP-320.

It says what `Repl.tla` of the benchmark says, so that its distinct and generated states can be compared with those of
TLC. A record is written by the one leader of its epoch, so a log is a sequence of epochs. Without `FENCED` a follower
fetches, and a high watermark moves, without a look at the epoch: then `strong_isr` is broken.

What a user may rely on is a model of its own, which the fenced one refines: one log of committed records that only
grows, of which a reader sees a prefix, whichever replica it asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Bounded,
    Flag,
    Model,
    NonEmpty,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    lemma,
    refines,
    require,
    step,
    witness,
)


class Replica(Sort):
    """A broker that has a copy of the partition."""


L = Size("L")
E = Size("E")
FENCED = Flag("FENCED")
Offset = Annotated[int, Range(0, L)]
Epoch = Annotated[int, Range(0, E)]
RealEpoch = Annotated[int, Range(1, E)]


@dataclass(frozen=True)
class Request:
    """What the controller tells the replicas: who leads, and who is in sync."""

    leader: Replica | None
    isr: Annotated[set[Replica], NonEmpty]


class CommittedLog(Model):
    """What users see: the records that are `committed`, and of them those that a consumer of a replica `sees`, which
    may be fewer than it saw before."""

    committed: Annotated[list[RealEpoch], Bounded(L)]
    sees: dict[Replica, Annotated[list[RealEpoch], Bounded(L)]]

    @action(who="leader")
    def commit(s, r: Replica, e: RealEpoch) -> None:
        """By a leader that shows all that was committed, a record of no earlier epoch than those before it."""
        require(len(s.committed) < L, s.sees[r] == s.committed)
        require(all(x <= e for x in s.sees[r]))
        s.next.committed = s.committed + [e]
        s.next.sees[r] = s.committed + [e]

    @action(who="replica")
    def look(s, r: Replica, n: Offset) -> None:
        require(n <= len(s.committed))
        s.next.sees[r] = s.committed[:n]

    @invariant()
    def all_see_the_same_log(s, r: Replica, n: Offset) -> bool:
        """As far as they see."""
        return len(s.sees[r]) <= len(s.committed) and (n >= len(s.sees[r]) or s.sees[r][n] == s.committed[n])

    @invariant()
    def epochs_in_order(s, n: Offset, m: Offset) -> bool:
        return not (n < m < len(s.committed)) or s.committed[n] <= s.committed[m]

    @step()
    def committed_stays(s, n: Offset) -> bool:
        return n >= len(s.committed) or (n < len(s.next.committed) and s.next.committed[n] == s.committed[n])

    @step()
    def one_record_at_a_time(s, r: Replica) -> bool:
        """Whoever commits it shows it."""
        more = len(s.next.committed) - len(s.committed)
        return more == 0 or (more == 1 and any(s.next.sees[x] == s.next.committed for x in Replica))

    @witness
    def one_is_behind(s, r: Replica, x: Replica) -> bool:
        return len(s.sees[r]) == 1 and len(s.sees[x]) == 2


class Replication(Model):
    """`log`, `hw`, `epoch`, `leader` and `lisr` (the in-sync replicas as a leader knows them) are each replica's own
    view; `reqs` is what the controller sent, its length the controller's epoch; `isr` the in-sync replicas.
    `committed` is what any high watermark ever covered, `committed_in` the epoch in which it first did."""

    log: dict[Replica, Annotated[list[RealEpoch], Bounded(L)]]
    hw: dict[Replica, Offset]
    epoch: dict[Replica, Epoch]
    leader: dict[Replica, Replica | None]
    lisr: dict[Replica, set[Replica]]
    reqs: Annotated[list[Request], Bounded(E)]
    isr: Annotated[set[Replica], NonEmpty]
    committed: Annotated[list[RealEpoch], Bounded(L)]
    committed_in: Annotated[list[RealEpoch], Bounded(L)]
    ghosts = ("committed", "committed_in")

    @define
    def following(s, f: Replica, lead: Replica) -> bool:
        """f takes its records from lead, and lead from nobody."""
        return s.leader[lead] == lead and s.leader[f] == lead and (not FENCED or s.epoch[f] == s.epoch[lead])

    @define
    def controller_leader(s) -> Replica | None:
        return s.reqs[len(s.reqs) - 1].leader

    @define
    def leads(s, lead: Replica) -> bool:
        """lead is the leader that the controller last named, and knows it."""
        return (
            len(s.reqs) > 0
            and s.controller_leader() == lead
            and s.leader[lead] == lead
            and s.epoch[lead] == len(s.reqs)
        )

    @define
    def send(s, lead: Replica | None, isr: set[Replica]) -> None:
        require(len(s.reqs) < E)
        s.next.reqs = s.reqs + [Request(leader=lead, isr=isr)]
        s.next.isr = isr

    @initial
    def start(s) -> None:
        s.next.isr = set(Replica)

    @action(who="controller")
    def elect(s, lead: Replica) -> None:
        require(lead in s.isr, len(s.reqs) == 0 or s.controller_leader() != lead)
        s.send(lead, s.isr)

    @action(who="controller")
    def controller_shrinks(s, r: Replica) -> None:
        require(r in s.isr, s.isr != {r})
        s.send(None if len(s.reqs) == 0 or s.controller_leader() == r else s.controller_leader(), s.isr - {r})

    @action(who="replica")
    def become_leader(s, r: Replica, e: RealEpoch) -> None:
        require(s.epoch[r] < e <= len(s.reqs), s.reqs[e - 1].leader == r)
        s.next.epoch[r] = e
        s.next.leader[r] = r
        s.next.lisr[r] = s.reqs[e - 1].isr

    @action(who="replica")
    def become_follower(s, r: Replica, e: RealEpoch) -> None:
        """The log is cut where it stops being the leader's."""
        require(s.epoch[r] < e <= len(s.reqs), s.reqs[e - 1].leader is not None)
        lead = s.reqs[e - 1].leader
        assert lead is not None
        require(lead != r, s.leader[lead] == lead, not FENCED or s.epoch[lead] == e)
        o = max(
            (
                n
                for n in range(L + 1)
                if n > 0 and n <= len(s.log[r]) and n <= len(s.log[lead]) and s.log[r][n - 1] == s.log[lead][n - 1]
            ),
            default=0,
        )
        s.next.log[r] = s.log[r][:o]
        s.next.hw[r] = min(s.hw[r], o)
        s.next.epoch[r] = e
        s.next.leader[r] = lead
        s.next.lisr[r] = set()

    @action(who="leader")
    def write(s, r: Replica) -> None:
        require(s.leader[r] == r, len(s.log[r]) < L)
        s.next.log[r] = s.log[r] + [s.epoch[r]]

    @action(who="follower")
    def fetch(s, f: Replica, lead: Replica) -> None:
        require(f != lead, s.following(f, lead), len(s.log[f]) < len(s.log[lead]))
        s.next.log[f] = s.log[f] + [s.log[lead][len(s.log[f])]]
        s.next.hw[f] = min(s.hw[lead], len(s.log[f]) + 1)

    @action(who="leader")
    def increment_hw(s, lead: Replica) -> None:
        require(s.leader[lead] == lead, s.hw[lead] < len(s.log[lead]))
        require(all(s.following(f, lead) and len(s.log[f]) > s.hw[lead] for f in Replica if f in s.lisr[lead]))
        s.next.hw[lead] = s.hw[lead] + 1
        if s.hw[lead] == len(s.committed):
            s.next.committed = s.committed + [s.log[lead][s.hw[lead]]]
            s.next.committed_in = s.committed_in + [s.epoch[lead]]

    # TLC counts the two reasons to shrink apart, so they are two actions
    @action(who="leader")
    def shrink_gone(s, lead: Replica, f: Replica) -> None:
        require(s.leads(lead), f in s.lisr[lead], f != lead, not s.following(f, lead))
        s.next.isr = s.lisr[lead] - {f}
        s.next.lisr[lead] = s.lisr[lead] - {f}

    @action(who="leader")
    def shrink_lagging(s, lead: Replica, f: Replica) -> None:
        require(s.leads(lead), f in s.lisr[lead], f != lead, len(s.log[f]) < len(s.log[lead]))
        s.next.isr = s.lisr[lead] - {f}
        s.next.lisr[lead] = s.lisr[lead] - {f}

    @action(who="leader")
    def expand(s, lead: Replica, f: Replica) -> None:
        require(s.leads(lead), f not in s.lisr[lead], s.following(f, lead), len(s.log[f]) >= s.hw[lead])
        require(not FENCED or s.hw[lead] == len(s.log[lead]) or s.log[lead][s.hw[lead]] == s.epoch[lead])
        s.next.isr = s.lisr[lead] | {f}
        s.next.lisr[lead] = s.lisr[lead] | {f}

    @refines(CommittedLog)
    def users(s) -> CommittedLog:
        """A consumer of a replica is shown its log below its high watermark."""
        return CommittedLog.shown(committed=s.committed, sees={r: s.log[r][: s.hw[r]] for r in Replica})

    @invariant()
    def strong_isr(s) -> bool:
        """Every in-sync replica has every record below the high watermark of every leader."""
        return all(
            n <= len(s.log[f]) and n <= len(s.log[r]) and s.log[f][n - 1] == s.log[r][n - 1]
            for r in Replica
            if s.leader[r] == r
            for f in Replica
            if f in s.isr
            for n in range(L + 1)
            if n > 0 and n <= s.hw[r]
        )

    @witness
    def something_committed(s) -> bool:
        return any(s.hw[r] > 1 for r in Replica)

    # ---- what holds strong_isr up, for any number of replicas, offsets and epochs. Indexes count from 0; request i has
    # epoch i + 1
    @lemma()
    def ghost_lengths(s) -> bool:
        return len(s.committed) == len(s.committed_in)

    @lemma()
    def hw_is_committed(s) -> bool:
        return all(s.hw[r] <= len(s.committed) and s.hw[r] <= len(s.log[r]) for r in Replica) and all(
            s.log[r][n] == s.committed[n] for r in Replica for n in range(L + 1) if n < s.hw[r]
        )

    @lemma()
    def isr_has_committed(s) -> bool:
        return all(len(s.committed) <= len(s.log[x]) for x in Replica if x in s.isr) and all(
            s.log[x][n] == s.committed[n] and s.committed_in[n] <= s.epoch[x]
            for x in Replica
            for n in range(L + 1)
            if x in s.isr and n < len(s.committed)
        )

    @lemma()
    def epoch_names_leader(s) -> bool:
        return (
            all(s.epoch[r] <= len(s.reqs) for r in Replica)
            and all((s.leader[r] is None) == (s.epoch[r] == 0) for r in Replica)
            and all(s.leader[r] == s.reqs[s.epoch[r] - 1].leader for r in Replica if s.epoch[r] > 0)
        )

    @lemma()
    def leader_moves_first(s) -> bool:
        return all(s.epoch[lead] >= s.epoch[f] for f in Replica for lead in Replica if s.leader[f] == lead)

    @lemma()
    def follower_is_prefix(s) -> bool:
        return all(
            len(s.log[f]) <= len(s.log[lead])
            for f in Replica
            for lead in Replica
            if s.leader[f] == lead and s.leader[lead] == lead and s.epoch[f] == s.epoch[lead]
        ) and all(
            s.log[f][n] == s.log[lead][n]
            for f in Replica
            for lead in Replica
            for n in range(L + 1)
            if s.leader[f] == lead and s.leader[lead] == lead and s.epoch[f] == s.epoch[lead] and n < len(s.log[f])
        )

    @lemma()
    def records_have_writers(s) -> bool:
        return all(1 <= s.log[r][n] <= s.epoch[r] for r in Replica for n in range(L + 1) if n < len(s.log[r])) and all(
            s.epoch[lead] >= s.log[r][n]
            for r in Replica
            for n in range(L + 1)
            for lead in Replica
            if n < len(s.log[r]) and s.reqs[s.log[r][n] - 1].leader == lead
        )

    @lemma()
    def epochs_rise(s) -> bool:
        return all(
            s.log[r][i] <= s.log[r][j]
            for r in Replica
            for i in range(L + 1)
            for j in range(L + 1)
            if i < j and j < len(s.log[r])
        )

    @lemma()
    def committed_have_writers(s) -> bool:
        return all(
            1 <= s.committed[n] <= len(s.reqs) and s.committed_in[n] <= len(s.reqs)
            for n in range(L + 1)
            if n < len(s.committed)
        ) and all(
            s.epoch[lead] >= s.committed[n]
            for n in range(L + 1)
            for lead in Replica
            if n < len(s.committed) and s.reqs[s.committed[n] - 1].leader == lead
        )

    @lemma()
    def log_matching(s) -> bool:
        return all(
            s.log[a][j] == s.log[b][j]
            for a in Replica
            for b in Replica
            for i in range(L + 1)
            for j in range(L + 1)
            if j <= i and i < len(s.log[a]) and i < len(s.log[b]) and s.log[a][i] == s.log[b][i]
        )

    @lemma()
    def leader_has_its_epoch(s) -> bool:
        return all(
            n < len(s.log[lead]) and s.log[lead][n] == s.log[r][n]
            for lead in Replica
            for r in Replica
            for n in range(L + 1)
            if s.leader[lead] == lead and n < len(s.log[r]) and s.log[r][n] == s.epoch[lead]
        )

    @lemma()
    def leader_in_its_isr(s) -> bool:
        return all(
            lead in s.reqs[i].isr
            for i in range(E + 1)
            for lead in Replica
            if i < len(s.reqs) and s.reqs[i].leader == lead
        ) and all(lead in s.isr for lead in Replica if len(s.reqs) > 0 and s.reqs[len(s.reqs) - 1].leader == lead)

    @lemma()
    def isr_known_by_leader(s) -> bool:
        return all(
            (x in s.isr) == (x in s.lisr[lead])
            for lead in Replica
            for x in Replica
            if s.leader[lead] == lead and s.epoch[lead] == len(s.reqs)
        )

    @lemma()
    def isr_as_sent(s) -> bool:
        return (
            len(s.reqs) == 0
            or any(s.reqs[len(s.reqs) - 1].leader == lead and s.epoch[lead] >= len(s.reqs) for lead in Replica)
            or all((x in s.isr) == (x in s.reqs[len(s.reqs) - 1].isr) for x in Replica)
        )

    @lemma()
    def isr_not_empty(s) -> bool:
        return any(x in s.isr for x in Replica)

    @lemma()
    def deposed_or_in_charge(s) -> bool:
        return all(
            any(x in s.lisr[lead] and s.epoch[x] > s.epoch[lead] for x in Replica)
            or (
                all(x in s.lisr[lead] for x in Replica if x in s.isr)
                and all(
                    x in s.lisr[lead]
                    for i in range(E + 1)
                    for x in Replica
                    if s.epoch[lead] <= i and i < len(s.reqs) and x in s.reqs[i].isr
                )
            )
            for lead in Replica
            if s.leader[lead] == lead
        )

    @lemma()
    def deposed_before_it_led(s) -> bool:
        return all(
            any(x in s.reqs[i].isr and s.epoch[x] > i + 1 for x in Replica)
            or (
                all(x in s.reqs[i].isr for x in Replica if x in s.isr)
                and all(
                    x in s.reqs[i].isr
                    for k in range(E + 1)
                    for x in Replica
                    if i < k and k < len(s.reqs) and x in s.reqs[k].isr
                )
            )
            for i in range(E + 1)
            for lead in Replica
            if i < len(s.reqs) and s.reqs[i].leader == lead and s.epoch[lead] < i + 1
        )

    @lemma()
    def later_isr_has_earlier_commits(s) -> bool:
        return all(
            s.epoch[x] >= s.committed_in[n]
            and (s.epoch[x] > i + 1 or (n < len(s.log[x]) and s.log[x][n] == s.committed[n]))
            for i in range(E + 1)
            for x in Replica
            for n in range(L + 1)
            if i < len(s.reqs) and x in s.reqs[i].isr and n < len(s.committed) and s.committed_in[n] < i + 1
        )

    @lemma()
    def own_records_committed_by_leader(s) -> bool:
        return all(
            n < s.hw[lead]
            for lead in Replica
            for n in range(L + 1)
            if s.leader[lead] == lead
            and s.epoch[lead] == len(s.reqs)
            and n < len(s.committed)
            and s.committed[n] == len(s.reqs)
        )


MODELS = [
    Expectation(
        CommittedLog,
        sizes={"Replica": 2, "L": 2, "E": 3},
        distinct=67,
        generated=405,
        depth=5,
    ),
    Expectation(
        Replication,
        sizes={"Replica": 2, "L": 2, "E": 3, "FENCED": True},
        distinct=4_725,
        generated=10_055,
        depth=18,
        deadlock=True,
    ),
    Expectation(
        Replication,
        sizes={"Replica": 2, "L": 2, "E": 3, "FENCED": True},
        distinct=6_019,
        generated=11_715,
        depth=20,
        deadlock=True,
        ghosts=True,
        note="what users see is told by what was ever committed",
    ),
    Expectation(
        Replication,
        sizes={"Replica": 3, "L": 3, "E": 3, "FENCED": True},
        distinct=3_803_182,
        generated=12_248_203,
        depth=32,
        deadlock=True,
        note="the size of the benchmark",
    ),
]
