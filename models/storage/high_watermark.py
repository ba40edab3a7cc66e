"""A leader that raises its high watermark while the controller decides who is in sync, and neither knows what the other
has: requests and answers are under way, and both are late.

`Leadership` is one leader as its broker has it: fetches, appends, the passing of time, and whatever the controller may
answer. The spec is compared with it. `Changes` has the controller and what the followers' logs really hold: brokers are
fenced, restart with less than they had, and register again; a request is judged by the partition epoch that it names.

What is simplified. There is one leader epoch. The leader is in sync, always, and is none of the followers here. A fetch
gets one record. Whether a follower may join is the controller's choice, at any moment; how long one may lag is a set of
those that do not. In `Leadership` a follower that is one fetch behind is not in sync by that, and no log gets shorter.

Source: KIP-497, KIP-841, KIP-903; Partition, Replica and DefaultAlterPartitionManager, Kafka 4.3.0.
"""

from __future__ import annotations

import enum
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Flag,
    Model,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    lemma,
    require,
    step,
    witness,
)


class Follower(Sort):
    """A replica other than the leader."""


L = Size("L")
"""The most records."""
V = Size("V")
"""The highest partition epoch; the first is 0."""
M = Size("M")
"""min.insync.replicas."""
NEWER = Flag("NEWER")
"""The leader takes over what the controller says only if its partition epoch is higher than the leader's own. The
released Kafka takes over what has its own, too."""
BROKER_EPOCHS = Flag("BROKER_EPOCHS")
"""KIP-903: the controller refuses to take in a broker that has registered again since the leader saw it."""
MAXIMAL = Flag("MAXIMAL")
"""KIP-497: whom the leader has asked to take in counts before the answer."""
Offset = Annotated[int, Range(0, L)]
Version = Annotated[int, Range(0, V)]


class Leadership(Model):
    """`begun` records were there when the leader's epoch began. `isr` is as the controller last told it. `proposed` is
    what the leader asked for, while it is `pending`; `in_flight` says whether a request is not answered. `known` have
    fetched, `current` were caught up not long ago, `eligible` may join."""

    end: Offset
    high: Offset
    reached: dict[Follower, Offset]
    known: set[Follower]
    current: set[Follower]
    eligible: set[Follower]
    isr: set[Follower]
    pending: bool
    proposed: set[Follower]
    in_flight: bool

    @initial
    def start(s) -> None:
        """An election: one record is there."""
        s.next.end = 1
        s.next.isr = set(Follower)
        s.next.current = set(Follower)
        s.next.eligible = set(Follower)

    @define
    def maximal(s) -> set[Follower]:
        return s.isr | s.proposed

    @define
    def is_caught_up(s, f: Follower) -> bool:
        return f in s.current or (f in s.known and s.reached[f] == s.end)

    @define
    def in_sync(s, isr: set[Follower]) -> bool:
        """Whether there are enough, the leader with them."""
        return len(isr) + 1 >= min(M, len(Follower) + 1)

    @define
    def raised(s, end: Offset, isr: set[Follower], maximal: set[Follower]) -> Offset:
        """The high watermark, where nobody has fetched."""
        low = min(
            (
                s.reached[f]
                for f in Follower
                if f in maximal or (f in s.known and f in s.eligible and (f in s.current or s.reached[f] == end))
            ),
            default=end,
        )
        return max(s.high, min(low, end)) if s.in_sync(isr) else s.high

    @action("HWM-28", "HWM-27", "HWM-3", who="leader")
    def append(s) -> None:
        require(s.end < L)
        s.next.end = s.end + 1
        s.next.high = s.raised(s.end + 1, s.isr, s.maximal())

    # A follower that has a longer log than before, or the same. If it is none of those in sync, the leader asks to take
    # it in, and counts with it before it looks at its high watermark.
    @action("HWM-14", "HWM-16", "HWM-3", "HWM-4", who="follower")
    def fetch(s, f: Follower, o: Offset) -> None:
        require(o <= s.end, s.reached[f] <= o)
        joins = not s.pending and not s.in_flight and f not in s.isr and f in s.eligible and o >= max(s.high, 1)
        current = s.current | {f} if o == s.end else s.current
        maximal = s.maximal() | {f} if joins else s.maximal()
        s.next.reached[f] = o
        s.next.known = s.known | {f}
        s.next.current = current
        if joins:
            s.next.pending = True
            s.next.in_flight = True
            s.next.proposed = s.isr | {f}
        counts = f in maximal or (f in s.eligible and f in current)
        low = min(
            (
                s.reached[g]
                for g in Follower
                if g != f
                and (g in maximal or (g in s.known and g in s.eligible and (g in s.current or s.reached[g] == s.end)))
            ),
            default=s.end,
        )
        if s.in_sync(s.isr) and (f not in s.known or o != s.reached[f]):
            s.next.high = max(s.high, min(low, o if counts else s.end))

    @action("HWM-15", "HWM-16", who="leader")
    def shrink(s) -> None:
        require(not s.pending, not s.in_flight, any(not s.is_caught_up(f) for f in s.isr))
        s.next.pending = True
        s.next.in_flight = True
        s.next.proposed = {f for f in s.isr if s.is_caught_up(f)}

    # The controller answers what is pending, or what is not any more.
    @action("HWM-17", "HWM-22", "HWM-3", who="controller")
    def succeed(s) -> None:
        require(s.in_flight)
        s.next.in_flight = False
        s.next.pending = False
        s.next.proposed = set()
        if s.pending:
            s.next.isr = s.proposed
            s.next.high = s.raised(s.end, s.proposed, s.proposed)

    @action("HWM-19", "HWM-22", who="controller")
    def refuse(s) -> None:
        require(s.in_flight)
        s.next.in_flight = False
        s.next.pending = False
        s.next.proposed = set()

    @action("HWM-20", "HWM-22", who="controller")
    def leave_open(s) -> None:
        require(s.in_flight)
        s.next.in_flight = False

    @action("HWM-24", "HWM-3", who="controller")
    def tell(s, isr: set[Follower]) -> None:
        """The in-sync replicas, with a higher partition epoch: what it had, or was asked for, or fewer."""
        require(isr <= s.maximal())
        s.next.isr = isr
        s.next.pending = False
        s.next.proposed = set()
        s.next.high = s.raised(s.end, isr, isr)

    @action("HWM-3", who="controller")
    def fence(s, f: Follower) -> None:
        require(f in s.eligible)
        s.next.eligible = s.eligible - {f}

    @action("HWM-3", who="controller")
    def unfence(s, f: Follower) -> None:
        require(f not in s.eligible)
        s.next.eligible = s.eligible | {f}

    @action("HWM-15", who="time")
    def pass_time(s) -> None:
        require(s.current != set())
        s.next.current = set()

    @invariant("HWM-1")
    def in_bounds(s) -> bool:
        return s.high <= s.end

    @invariant("HWM-3", "HWM-4", "HWM-17", "HWM-19", "HWM-24")
    def whoever_may_be_in_sync_has_what_is_replicated(s, f: Follower) -> bool:
        """As far as the leader knows, and whatever the controller has done."""
        return f not in s.maximal() or s.reached[f] >= s.high

    @invariant("HWM-16", "HWM-22")
    def one_change_at_a_time(s) -> bool:
        return s.pending or s.proposed == set()

    @step("HWM-2")
    def the_high_watermark_rises(s) -> bool:
        return s.next.high >= s.high

    @step("HWM-28")
    def the_log_grows(s) -> bool:
        return s.end <= s.next.end and s.next.end <= s.end + 1

    @step("HWM-27", "HWM-3")
    def it_rises_while_enough_are_in_sync(s) -> bool:
        """Whatever raises it: those in sync are the ones that the controller told last, in this very step too."""
        return s.next.high == s.high or s.in_sync(s.next.isr)

    @step("HWM-3")
    def it_waits_for_whoever_may_join(s, f: Follower) -> bool:
        """And is caught up, as it is after the step."""
        waited_for = f in s.next.known & s.next.eligible & s.next.current
        return s.next.high == s.high or not waited_for or s.next.reached[f] >= s.next.high

    @define
    def has_fetched(s) -> bool:
        """From another offset than before, or for the first time."""
        return any(s.next.reached[f] != s.reached[f] or (f in s.next.known and f not in s.known) for f in Follower)

    @define
    def has_been_told(s) -> bool:
        """In an answer, or otherwise: without an answer nothing else ends what is pending."""
        return s.next.isr != s.isr or (s.pending and not s.next.pending and (not s.in_flight or s.next.in_flight))

    @step("HWM-3")
    def nothing_else_raises_it(s) -> bool:
        """What the controller told once more changes nothing else."""
        told_once_more = (
            s.next.current == s.current
            and s.next.eligible == s.eligible
            and s.next.proposed == s.proposed
            and s.next.in_flight == s.in_flight
        )
        return s.next.high == s.high or s.next.end != s.end or s.has_fetched() or s.has_been_told() or told_once_more

    @step("HWM-4", "HWM-15", "HWM-20")
    def nobody_leaves_before_the_controller_says_so(s, f: Follower) -> bool:
        """Of the maximal ISR: an answer or what it tells does that."""
        return (
            f not in s.maximal()
            or f in s.next.isr | s.next.proposed
            or (s.pending and not s.next.pending)
            or (s.next.isr != s.isr)
        )

    @step("HWM-14")
    def whoever_joins_has_reached_the_leaders_epoch(s, f: Follower) -> bool:
        return (
            f in s.isr | s.proposed
            or f not in s.next.proposed
            or (s.next.reached[f] >= 1 and s.next.reached[f] >= s.high and f in s.eligible)
        )

    @define
    def holds_back(s, f: Follower) -> bool:
        """After the step: the high watermark is not above its log end, as it is or may be in sync."""
        counts = f in s.next.isr | s.next.proposed or (
            f in s.next.known & s.next.eligible and (f in s.next.current or s.next.reached[f] == s.next.end)
        )
        return counts and s.next.reached[f] <= s.next.high

    @step("HWM-3")
    def it_rises_as_far_as_it_may(s) -> bool:
        """By an append, or by a fetch from another offset."""
        return (
            (s.next.end == s.end and not s.has_fetched())
            or not s.in_sync(s.isr)
            or s.next.high == s.next.end
            or any(s.holds_back(f) for f in Follower)
        )

    @step("HWM-3", "HWM-17", "HWM-24")
    def it_rises_as_far_as_it_may_by_what_the_controller_says(s) -> bool:
        return (
            not s.has_been_told()
            or not s.in_sync(s.next.isr)
            or s.next.high == s.next.end
            or any(s.holds_back(f) for f in Follower)
        )

    @step("HWM-14")
    def whoever_may_join_is_asked_for(s, f: Follower) -> bool:
        """As it fetches."""
        o = s.next.reached[f]
        return (
            (o == s.reached[f] and (f in s.known or f not in s.next.known))
            or s.pending
            or s.in_flight
            or f in s.isr
            or f not in s.eligible
            or o < max(s.high, 1)
            or (s.next.pending and s.next.proposed == s.isr | {f})
        )

    @step("HWM-3")
    def whoever_has_all_there_is_is_caught_up(s, f: Follower) -> bool:
        """And nobody else becomes so."""
        grew = (f not in s.known and f in s.next.known) or s.next.reached[f] > s.reached[f]
        return (not grew or s.next.reached[f] < s.end or f in s.next.current) and (
            f in s.current or f not in s.next.current or s.next.reached[f] == s.end
        )

    @step("HWM-16")
    def what_is_pending_was_asked_for(s) -> bool:
        """One thing at a time, that stays what it is."""
        return (
            (s.next.pending and not s.pending) == (s.next.in_flight and not s.in_flight)
            and (not s.pending or not s.next.pending or s.next.proposed == s.proposed)
            and (not s.in_flight or s.next.in_flight or s.pending or s.next.isr == s.isr)
            and (s.in_flight or not s.pending or s.next.pending or not s.next.in_flight)
        )

    @step("HWM-15")
    def nobody_leaves_who_is_caught_up(s, f: Follower) -> bool:
        return not s.is_caught_up(f) or f not in s.isr or s.pending or not s.next.pending or f in s.next.proposed

    @step("HWM-15")
    def who_lags_is_to_leave(s) -> bool:
        """Nothing is proposed that is there already."""
        return s.pending or not s.next.pending or s.next.proposed != s.isr

    @lemma("HWM-14")
    def reached_is_in_the_log(s, f: Follower) -> bool:
        return s.reached[f] <= s.end and s.end >= 1

    @lemma("HWM-16")
    def what_is_pending_is_a_change(s) -> bool:
        return not s.pending or s.proposed != s.isr

    @witness
    def joined_again(s, f: Follower) -> bool:
        return s.pending and f in s.proposed and f not in s.isr and s.high == s.end

    @witness
    def waits_for_one_that_may_join(s, f: Follower) -> bool:
        """It is not in sync, and holds the high watermark back."""
        return f not in s.maximal() and f in s.known & s.eligible & s.current and s.reached[f] == s.high and s.end == 2

    @witness
    def known_with_nothing(s, f: Follower) -> bool:
        """It has fetched, from the beginning."""
        return f in s.known and s.reached[f] == 0

    @witness
    def left_open(s) -> bool:
        return s.pending and not s.in_flight

    @witness
    def answered_too_late(s) -> bool:
        return s.in_flight and not s.pending


class Request(enum.Enum):
    """The AlterPartition request."""

    NONE = 0
    SENT = 1
    DONE = 2
    """the answer is under way, as it is of the others"""
    INVALID = 3
    """another partition epoch"""
    INELIGIBLE = 4


class Changes(Model):
    """`has` is what a follower's log holds, `reached` what the leader knows of it; `fresh` are the followers whose last
    fetch is of the life that the controller has registered. `version` is the leader's partition epoch, `latest` the
    controller's, which had `history` at each; `unfenced` may join. Of the request: `sent` at `sent_at`, of brokers that
    are what they were when it was sent (`sent_fresh`). `told` is the version that the metadata last told the leader,
    `accepted` that which the last request made."""

    end: Offset
    high: Offset
    has: dict[Follower, Offset]
    reached: dict[Follower, Offset]
    fresh: set[Follower]
    isr: set[Follower]
    version: Version
    pending: bool
    history: dict[Version, set[Follower]]
    latest: Version
    unfenced: set[Follower]
    request: Request
    sent: set[Follower]
    sent_at: Version
    sent_fresh: set[Follower]
    told: Version
    accepted: Version
    ghosts = ("accepted",)

    @initial
    def start(s) -> None:
        s.next.isr = set(Follower)
        s.next.history = {v: set(Follower) for v in range(V + 1)}
        s.next.unfenced = set(Follower)

    @define
    def maximal(s) -> set[Follower]:
        return s.isr | s.sent if s.pending and MAXIMAL else s.isr

    @define
    def decide(s, isr: set[Follower]) -> None:
        """The controller has a new set, with a new partition epoch."""
        require(s.latest < V)
        s.next.latest = s.latest + 1
        s.next.history[s.latest + 1] = isr

    @action("HWM-28", who="leader")
    def append(s) -> None:
        require(s.end < L)
        s.next.end = s.end + 1

    @action("HWM-40", who="follower")
    def fetch(s, f: Follower) -> None:
        """The leader learns how far its log goes, and it gets the next record."""
        s.next.reached[f] = s.has[f]
        s.next.fresh = s.fresh | {f}
        s.next.has[f] = min(s.has[f] + 1, s.end)

    @action("HWM-3", "HWM-4", who="leader")
    def raise_high_watermark(s, o: Offset) -> None:
        """Or less far, as it waits for others who may join."""
        require(s.high < o, o <= s.end, len(s.isr) + 1 >= M, all(s.reached[f] >= o for f in s.maximal()))
        s.next.high = o

    @define
    def send(s, isr: set[Follower]) -> None:
        require(not s.pending, s.request == Request.NONE)
        s.next.pending = True
        s.next.request = Request.SENT
        s.next.sent = isr
        s.next.sent_at = s.version
        s.next.sent_fresh = s.fresh

    @action("HWM-14", "HWM-16", who="leader")
    def expand(s, f: Follower) -> None:
        require(f not in s.isr, s.reached[f] >= s.high)
        s.send(s.isr | {f})

    @action("HWM-15", "HWM-16", who="leader")
    def shrink(s, f: Follower) -> None:
        require(f in s.isr)
        s.send(s.isr - {f})

    # The controller knows who is fenced, and who has registered since. Members that it has already are what they were:
    # it would have taken them out otherwise.
    @action("HWM-40", who="controller")
    def judge(s) -> None:
        require(s.request == Request.SENT)
        joining = s.sent - s.history[s.latest]
        if s.sent_at != s.latest:
            s.next.request = Request.INVALID
        elif not joining <= s.unfenced or (BROKER_EPOCHS and not joining <= s.sent_fresh):
            s.next.request = Request.INELIGIBLE
        else:
            s.decide(s.sent)
            s.next.request = Request.DONE
            s.next.accepted = s.latest + 1

    @action("HWM-17", "HWM-22", who="leader")
    def hear_done(s) -> None:
        require(s.request == Request.DONE)
        s.next.request = Request.NONE
        if s.pending:
            s.next.isr = s.sent
            s.next.version = s.sent_at + 1
            s.next.pending = False

    @action("HWM-20", "HWM-22", who="leader")
    def hear_invalid(s) -> None:
        require(s.request == Request.INVALID)
        s.next.request = Request.NONE

    @action("HWM-19", "HWM-22", who="leader")
    def hear_ineligible(s) -> None:
        require(s.request == Request.INELIGIBLE)
        s.next.request = Request.NONE
        s.next.pending = False

    @action("HWM-40", who="network")
    def lose_answer(s) -> None:
        """The request is sent again."""
        require(s.request != Request.NONE, s.request != Request.SENT)
        s.next.request = Request.SENT

    @action("HWM-24", "HWM-40", who="controller")
    def tell(s, v: Version) -> None:
        """A later state than the last one, by the metadata, which is read late. An answer may have told it before."""
        require(s.told < v, s.version <= v, v <= s.latest, v > s.version or not NEWER)
        s.next.told = v
        s.next.isr = s.history[v]
        s.next.version = v
        s.next.pending = False

    @action("HWM-40", who="controller")
    def fence(s, f: Follower) -> None:
        require(f in s.unfenced)
        s.next.unfenced = s.unfenced - {f}
        if f in s.history[s.latest]:
            s.decide(s.history[s.latest] - {f})

    @action("HWM-40", who="controller")
    def unfence(s, f: Follower) -> None:
        require(f not in s.unfenced)
        s.next.unfenced = s.unfenced | {f}

    @action("HWM-40", who="follower")
    def restart(s, f: Follower, o: Offset) -> None:
        """With less than it had; it registers again, and is out of sync."""
        require(o <= s.has[f])
        s.next.has[f] = o
        s.next.fresh = s.fresh - {f}
        s.next.sent_fresh = s.sent_fresh - {f}
        if f in s.history[s.latest]:
            s.decide(s.history[s.latest] - {f})

    @invariant("HWM-1")
    def in_bounds(s) -> bool:
        return s.high <= s.end

    @invariant("HWM-40")
    def in_sync_replicas_have_what_is_replicated(s, f: Follower) -> bool:
        """Whoever may be elected."""
        return f not in s.history[s.latest] or s.has[f] >= s.high

    @invariant("HWM-40", "HWM-4")
    def the_leader_counts_with_all_in_sync(s) -> bool:
        return s.history[s.latest] <= s.maximal()

    @step("HWM-40", "HWM-27")
    def enough_know_a_record_over_which_it_rises(s) -> bool:
        return s.next.high == s.high or (len(s.isr) + 1 >= M and all(s.reached[f] >= s.next.high for f in s.isr))

    @step("HWM-2")
    def the_high_watermark_rises(s) -> bool:
        return s.next.high >= s.high

    @step("HWM-24")
    def versions_rise(s) -> bool:
        """The leader's own by an answer, or with what it was told."""
        return (
            s.next.version >= s.version
            and s.next.latest >= s.latest
            and s.next.told >= s.told
            and (
                s.next.version == s.version
                or s.next.told == s.next.version
                or (s.request == Request.DONE and s.next.request == Request.NONE)
            )
        )

    @step("HWM-16")
    def what_was_sent_stays(s) -> bool:
        """Until it is answered; and no other is sent."""
        open = s.request != Request.NONE and s.next.request != Request.NONE
        return (not open or (s.next.sent == s.sent and s.next.sent_at == s.sent_at)) and (
            s.pending or not s.next.pending or (s.request == Request.NONE and s.next.request == Request.SENT)
        )

    @step("HWM-14", "HWM-15", "HWM-16")
    def what_is_sent_is_a_change(s) -> bool:
        """Of brokers as the leader saw them."""
        return s.pending or not s.next.pending or (s.next.sent != s.isr and s.next.sent_fresh == s.fresh)

    @step("HWM-17", "HWM-19", "HWM-20", "HWM-22")
    def what_an_answer_does(s) -> bool:
        """Done and ineligible end what is pending, invalid does not."""
        heard = s.request != Request.NONE and s.next.request == Request.NONE
        return not heard or (
            s.request != Request.SENT and s.next.pending == (s.pending and s.request == Request.INVALID)
        )

    @step("HWM-14")
    def who_is_asked_for_has_what_is_replicated(s, f: Follower) -> bool:
        return s.pending or not s.next.pending or f not in s.next.sent - s.isr or s.reached[f] >= s.high

    @invariant("HWM-40")
    def in_sync_replicas_are_unfenced(s) -> bool:
        return s.history[s.latest] <= s.unfenced

    # what the proof needs

    @lemma("HWM-40")
    def the_leader_is_not_ahead(s) -> bool:
        return s.version <= s.latest and s.accepted <= s.latest and s.sent_at <= s.version

    @lemma("HWM-40")
    def the_leader_has_what_was_told(s) -> bool:
        return s.isr == s.history[s.version]

    @lemma("HWM-40")
    def only_requests_add(s, v: Version, u: Version) -> bool:
        return not (s.accepted <= v and v < u and u <= s.latest) or s.history[u] <= s.history[v]

    @lemma("HWM-40")
    def what_was_accepted_is_known_or_pending(s) -> bool:
        return s.accepted <= s.version or (
            s.pending and s.accepted == s.version + 1 and s.history[s.accepted] == s.sent and s.sent_at == s.version
        )

    @lemma("HWM-40")
    def pending_is_what_was_sent(s) -> bool:
        return not s.pending or s.sent_at == s.version

    @lemma("HWM-40")
    def what_may_be_accepted_is_pending(s) -> bool:
        """Or it names a partition epoch of before."""
        return s.request == Request.NONE or s.pending or s.sent_at < s.latest

    @lemma("HWM-40")
    def what_was_done_is_pending_or_known(s) -> bool:
        return s.request != Request.DONE or (
            s.sent_at < s.latest
            and (not s.pending or (s.accepted == s.sent_at + 1 and s.history[s.accepted] == s.sent))
        )

    @lemma("HWM-40")
    def what_cannot_be_done_was_not(s) -> bool:
        return s.request != Request.INELIGIBLE or not s.pending or s.accepted <= s.sent_at

    @lemma("HWM-40")
    def reached_is_there(s, f: Follower) -> bool:
        """Of a follower that is what it was when it fetched."""
        return s.has[f] <= s.end and (f not in s.fresh or s.reached[f] <= s.has[f])

    @lemma("HWM-40")
    def whoever_is_in_sync_is_what_the_leader_saw(s, f: Follower) -> bool:
        """Otherwise the controller would have taken it out."""
        return f not in s.history[s.latest] or s.reached[f] <= s.has[f]

    @lemma("HWM-40")
    def what_was_sent_is_not_fresher(s) -> bool:
        return s.sent_fresh <= s.fresh

    @lemma("HWM-40")
    def who_is_to_join_has_what_is_replicated(s, f: Follower) -> bool:
        """If it may be accepted yet."""
        return not s.pending or f not in s.sent or f not in s.sent_fresh or s.sent_at != s.latest or s.has[f] >= s.high

    @witness
    def joined_with_records(s, f: Follower) -> bool:
        return s.version == 2 and f in s.isr and s.high == 1

    @witness
    def answered_in_vain(s, f: Follower) -> bool:
        """The answer is lost, and the request is sent again."""
        return s.request == Request.INVALID and s.pending and s.accepted_is_sent(f)

    @define
    def accepted_is_sent(s, f: Follower) -> bool:
        """It is in what the controller made of the request, and was not before."""
        return s.sent_at == 1 and s.latest >= 2 and f in s.history[2] and f not in s.history[1] and f in s.sent

    @witness
    def left_open(s) -> bool:
        return s.pending and s.request == Request.NONE

    @witness
    def has_less_than_it_had(s, f: Follower) -> bool:
        return s.has[f] < s.reached[f]

    @witness
    def has_as_much_as_it_had(s, f: Follower) -> bool:
        """It has restarted since it fetched, and has all there is."""
        return f not in s.fresh and s.has[f] == s.end and s.reached[f] == s.end and s.end > 0

    @witness
    def joins_at_the_high_watermark(s, f: Follower) -> bool:
        return s.pending and f in s.sent - s.isr and f in s.sent_fresh and s.reached[f] == 0

    @witness
    def told_the_latest(s) -> bool:
        return s.told == s.latest and s.latest > 0

    @witness
    def accepted_and_not_heard(s) -> bool:
        return s.request == Request.DONE and s.pending and s.high > 0

    @witness
    def refused_as_it_restarted(s) -> bool:
        return s.request == Request.INELIGIBLE and s.pending


AS_SPECIFIED = {"NEWER": True, "BROKER_EPOCHS": True, "MAXIMAL": True}
"""With a leader that skips what has its own partition epoch."""

MODELS = [
    Expectation(Leadership, sizes={"Follower": 2, "L": 2, "M": 2}, distinct=6_624, generated=69_341, depth=12),
    Expectation(Leadership, sizes={"Follower": 2, "L": 2, "M": 1}, distinct=5_880, generated=62_513, depth=12),
    Expectation(
        Changes,
        sizes={"Follower": 2, "L": 1, "V": 3, "M": 2, **AS_SPECIFIED},
        distinct=155_293,
        generated=1_331_118,
        depth=24,
    ),
    Expectation(
        Changes,
        sizes={"Follower": 1, "L": 2, "V": 3, "M": 2, **AS_SPECIFIED},
        distinct=11_972,
        generated=74_437,
        depth=23,
        ghosts=True,
        note="with what the proof needs",
    ),
]
