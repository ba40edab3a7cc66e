"""KIP-320: the counts and the violations that its author published, of this protocol and of those before it.

The published ones are of TLC on `hachikuji/kafka-specification`; its sizes are named by replicas, the size of a log,
the most records and the highest epoch counted from 0, so that `s2222` has three epochs.
"""

# mypy: disable-error-code="operator, index, arg-type, assignment, union-attr"

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.language import Bounded, Model, Range, action, define, load, require
from kafkaspec.models.examples.kip320 import E, Epoch, Fetching, Kip320, L, Offset, Record, Replica
from tests.examples.claims import alone

E_ = Annotated[int, Range(1, E)]
Records = Annotated[list[Record], Bounded(L)]
Sizes = dict[str, int | bool]
S2222: Sizes = {"Replica": 2, "L": 2, "R": 2, "E": 3, "UNCLEAN": False}
S2333: Sizes = {"Replica": 2, "L": 3, "R": 3, "E": 4, "UNCLEAN": False}
S3221: Sizes = {"Replica": 3, "L": 2, "R": 2, "E": 2, "UNCLEAN": False}
S3222: Sizes = {"Replica": 3, "L": 2, "R": 2, "E": 3, "UNCLEAN": False}


class Unfenced(Kip320):
    """Before KIP-320: a follower is who names the leader, whatever the epoch."""

    @define
    def follows(s, f: Replica, r: Replica) -> bool:
        return s.leader[f] == r

    @define
    def begin_to_follow(s, f: Replica, r: Replica, e: Epoch, o: Offset) -> None:
        require(f != r, s.epoch[f] < e, e <= len(s.requests), s.requests[e - 1].leader == r, o <= len(s.log[f]))
        s.next.log[f] = s.log[f][:o]
        s.next.hw[f] = min(s.hw[f], o)
        s.next.epoch[f] = e
        s.next.leader[f] = r
        s.next.known_isr[f] = s.requests[e - 1].isr

    @define
    def last_match(s, f: Replica, r: Replica) -> Offset:
        return max(
            (
                n
                for n in range(L + 1)
                if n > 0 and n <= len(s.log[f]) and n <= len(s.log[r]) and s.log[f][n - 1] == s.log[r][n - 1]
            ),
            default=0,
        )

    @action(who="follower")
    def fetch(s, f: Replica, r: Replica) -> None:
        require(s.leader[r] == r, s.leader[f] == r, len(s.log[f]) < len(s.log[r]))
        s.next.log[f] = s.log[f] + [s.log[r][len(s.log[f])]]
        s.next.hw[f] = min(s.hw[r], len(s.log[f]) + 1)

    # The published one never looks whether the leader has the record: the in-sync replicas do, itself among them.
    @action(who="leader")
    def increment_hw(s, r: Replica) -> None:
        require(s.leader[r] == r, s.hw[r] < L)
        require(all(s.leader[f] == r and len(s.log[f]) > s.hw[r] for f in s.known_isr[r]))
        s.next.hw[r] = s.hw[r] + 1

    @define
    def caught_up(s, f: Replica, r: Replica, o: Offset) -> bool:
        return s.leader[f] == r and (o == 0 or (o <= len(s.log[r]) and o <= len(s.log[f])))

    @action(who="leader")
    def shrink(s, r: Replica, f: Replica) -> None:
        require(s.leads(r), f in s.known_isr[r], f != r, not s.caught_up(f, r, len(s.log[r])))
        s.next.isr = s.known_isr[r] - {f}
        s.next.known_isr[r] = s.known_isr[r] - {f}

    @action(who="leader")
    def expand(s, r: Replica, f: Replica) -> None:
        require(s.leads(r), f not in s.known_isr[r], s.caught_up(f, r, s.hw[r]))
        s.next.isr = s.known_isr[r] | {f}
        s.next.known_isr[r] = s.known_isr[r] | {f}


class ToHighWatermark(Unfenced):
    """Before KIP-101: truncate to the follower's own high watermark."""

    @action(who="replica")
    def become_follower(s, f: Replica, r: Replica, e: E_) -> None:
        s.begin_to_follow(f, r, e, s.hw[f])


class Kip101(Unfenced):
    """Truncate to where the leader's next epoch begins, or to the high watermark if the leader does not know."""

    @action(who="replica")
    def become_follower(s, f: Replica, r: Replica, e: E_) -> None:
        last = s.log[f][len(s.log[f]) - 1].epoch if len(s.log[f]) > 0 else 0
        its = s.log[r][len(s.log[r]) - 1].epoch if len(s.log[r]) > 0 else 0
        larger = min((n for n in range(L) if n < len(s.log[r]) and s.log[r][n].epoch > last), default=L)
        o = (
            0
            if last == 0
            else s.hw[f]
            if its == 0
            else len(s.log[r])
            if its == last
            else larger
            if larger < L
            else s.hw[f]
        )
        s.begin_to_follow(f, r, e, o)


class Kip279(Unfenced):
    """Truncate to the last record that both have."""

    @action(who="replica")
    def become_follower(s, f: Replica, r: Replica, e: E_) -> None:
        s.begin_to_follow(f, r, e, s.last_match(f, r))


class FirstTry(Unfenced):
    """The first design of KIP-320: a fetch says the epoch of the last record, but not that of the leader."""

    @define
    def caught_up(s, f: Replica, r: Replica, o: Offset) -> bool:
        return (
            s.leader[r] == r
            and s.leader[f] == r
            and (
                o == 0 or (o <= len(s.log[r]) and o <= len(s.log[f]) and s.log[f][o - 1].epoch == s.log[r][o - 1].epoch)
            )
        )

    @action(who="replica")
    def become_follower(s, f: Replica, r: Replica, e: E_) -> None:
        require(f != r, s.epoch[f] < e, e <= len(s.requests), s.requests[e - 1].leader == r)
        s.next.epoch[f] = e
        s.next.leader[f] = r
        s.next.known_isr[f] = s.requests[e - 1].isr

    @action(who="follower")
    def fetch(s, f: Replica, r: Replica) -> None:
        require(s.caught_up(f, r, len(s.log[f])), len(s.log[f]) < len(s.log[r]))
        s.next.log[f] = s.log[f] + [s.log[r][len(s.log[f])]]
        s.next.hw[f] = min(s.hw[r], len(s.log[f]) + 1)

    @action(who="follower")
    def truncate(s, f: Replica, r: Replica) -> None:
        n = len(s.log[f])
        require(s.leader[r] == r, s.leader[f] == r)
        require(n > len(s.log[r]) or (n > 0 and s.log[r][n - 1].epoch != s.log[f][n - 1].epoch))
        s.next.log[f] = s.log[f][: s.last_match(f, r)]
        s.next.hw[f] = min(s.hw[f], s.last_match(f, r))

    @action(who="leader")
    def increment_hw(s, r: Replica) -> None:
        require(s.leader[r] == r, s.hw[r] < len(s.log[r]))
        require(all(s.caught_up(f, r, s.hw[r] + 1) for f in s.known_isr[r]))
        s.next.hw[r] = s.hw[r] + 1

    @action(who="leader")
    def expand(s, r: Replica, f: Replica) -> None:
        require(s.leads(r), f not in s.known_isr[r], s.caught_up(f, r, s.hw[r]))
        require(s.hw[r] == len(s.log[r]) or s.log[r][s.hw[r]].epoch == s.epoch[r])
        s.next.isr = s.known_isr[r] | {f}
        s.next.known_isr[r] = s.known_isr[r] | {f}


PUBLISHED = [
    (ToHighWatermark, S2222, 10_131, "weak strong"),
    (ToHighWatermark, S2333, 276_363, "weak strong"),
    (ToHighWatermark, S3221, 67_807, "weak strong"),
    (Kip101, S2222, 9_045, "weak strong"),
    (Kip101, S2333, 229_695, "weak strong"),
    (Kip101, S3221, 59_788, "strong"),
    (Kip279, S2222, 9_027, ""),
    (Kip279, S2333, 225_761, ""),
    (Kip279, S3221, 60_106, "strong"),
    (Kip279, S3222, None, "weak strong"),
    (FirstTry, S2222, 8_429, ""),
    (FirstTry, S2333, 196_973, ""),
    (FirstTry, S3221, 59_092, ""),
    (FirstTry, S3222, None, "weak strong"),
    (Kip320, S2222, 5_973, ""),
    (Kip320, S2333, 120_879, ""),
    (Kip320, S3221, 39_619, ""),
    (Kip320, S3222, 737_794, ""),
]
"""Protocol, sizes, distinct states, broken claims. At `s3222` the table has the states of KIP-320 alone, and names only
the strong claim of those broken; TLC finds the weak one of KIP-279 broken too, in as many steps as we do."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("model", "sizes", "distinct", "broken"), PUBLISHED)
def test_states_and_violations_are_those_published(
    model: type[Model], sizes: Sizes, distinct: int | None, broken: str
) -> None:
    """Each claim alone, and none for the states: an exploration ends with the first violation."""
    if distinct is not None:
        unclaimed = explore(replace(load(model), invariants={}), sizes, deadlock=True)
        assert (unclaimed.outcome, unclaimed.distinct) == ("complete", distinct)
    for name in ("weak", "strong"):
        assert alone(model, f"{name}_isr", sizes).outcome == ("violation" if name in broken.split() else "complete"), (
            name
        )


# ---- today's fetch: each rule left out, and what breaks --------------------------------------------------------------
class AnyEpoch(Fetching):
    """No FENCED_LEADER_EPOCH, no UNKNOWN_LEADER_EPOCH."""

    @define
    def follows(s, f: Replica, r: Replica) -> bool:
        return s.leader[r] == r and s.leader[f] == r


class NeverDiverges(Fetching):
    """The leader does not look at the epoch of the last record."""

    @define
    def diverges(s, q: Records, r: Replica) -> bool:
        return len(q) > len(s.log[r])


class ByOffset(Fetching):
    """The leader compares the end of the epoch, not the epoch."""

    @define
    def diverges(s, q: Records, r: Replica) -> bool:
        return s.end_of(s.log[r], s.last_epoch(q, len(q))) < len(q)


class ByLength(Fetching):
    """The leader takes the length of a follower's log for what it has fetched."""

    @define
    def acknowledged(s, f: Replica, r: Replica) -> Offset:
        return len(s.log[f])


class ExpandsEarly(Fetching):
    """A follower joins the in-sync replicas before the high watermark is in the leader's epoch."""

    @action(who="leader")
    def expand(s, r: Replica, f: Replica) -> None:
        require(s.leads(r), f not in s.known_isr[r], s.follows(f, r), s.acknowledged(f, r) >= s.hw[r])
        s.next.isr = s.known_isr[r] | {f}
        s.next.known_isr[r] = s.known_isr[r] | {f}


class NeverValidates(Fetching):
    """A consumer before KIP-320."""

    @action(who="consumer")
    def validate(s, r: Replica) -> None:
        require(s.leader[r] == r, s.heard < s.epoch[r])
        s.next.heard = s.epoch[r]


class ValidatesByOffset(Fetching):
    """The Java consumer: it compares the end offset of the answer, and not its epoch."""

    @action(who="consumer")
    def validate(s, r: Replica) -> None:
        require(s.leader[r] == r, s.heard < s.epoch[r])
        s.next.heard = s.epoch[r]
        if s.end_of(s.log[r], s.last_epoch(s.read, len(s.read))) < len(s.read):
            s.next.read = []


UNCLEAN: Sizes = {"Replica": 2, "L": 3, "R": 4, "E": 3, "UNCLEAN": True}
BROKEN = [
    (AnyEpoch, S3222, "weak_isr", 11),
    (NeverDiverges, S3222, "weak_isr", 10),
    (ByOffset, S3222, "weak_isr", 12),
    (ByLength, S3222, "weak_isr", 9),
    (ExpandsEarly, S3222, "strong_isr", 12),
    (NeverValidates, UNCLEAN, "reads_no_gap", 15),
    (ValidatesByOffset, UNCLEAN, "reads_no_gap", 17),
]
"""The rule, sizes, the claim, and in how many steps."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("model", "sizes", "claim", "steps"), BROKEN)
def test_a_rule_left_out_breaks_a_claim(model: type[Model], sizes: Sizes, claim: str, steps: int) -> None:
    found = explore(load(model), sizes, deadlock=True)
    assert found.trace is not None
    assert (found.trace.claim, len(found.trace.steps) - 1) == (claim, steps)


@pytest.mark.deep
def test_the_consumer_that_looks_at_the_epoch_is_right_where_that_by_offset_is_not() -> None:
    found = explore(load(Fetching), UNCLEAN, deadlock=True)
    assert (found.outcome, found.distinct) == ("complete", 1_831_893)
