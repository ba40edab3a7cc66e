"""Faults of the replication protocol. Those with a ticket were Kafka's."""

# mypy: disable-error-code="operator, index, arg-type, assignment, union-attr"

from __future__ import annotations

from collections.abc import Callable

from kafkaspec.language import LoadedModel, action, define, load, require
from kafkaspec.models.storage import replication as model
from kafkaspec.models.storage.replication import (
    BY_EPOCH,
    BY_RECORD,
    ELR,
    FENCED,
    MIN,
    ON_FETCH,
    STRICT,
    UNCLEAN,
    C,
    Follower,
    L,
    Offset,
    R,
    RealEpoch,
    Record,
    Records,
    Replica,
    Request,
)
from kafkaspec.mutants.mutant import of_model

Made = Callable[[], LoadedModel]


# ---- the controller
def _elects_anybody() -> LoadedModel:
    class Released(model.Released):
        @action("RPN-1", who="controller")
        def elect(s, r: Replica) -> None:
            require(s.elected() != r)
            s.send(r, s.isr | {r})

    return load(Released)


def _from_a_stale_state() -> LoadedModel:
    """What the leader has changed since the last request is overwritten."""

    class Released(model.Released):
        @action("RPN-2", who="controller")
        def controller_shrinks(s, r: Replica) -> None:
            require(s.elected() == r or r in s.isr)
            isr = s.requests[len(s.requests) - 1].isr if len(s.requests) > 0 else s.isr
            s.send(None if s.elected() == r else s.elected(), isr if s.elected() == r and isr == {r} else isr - {r})

    return load(Released)


def _a_failed_leader_leads() -> LoadedModel:
    class Released(model.Released):
        @action("RPN-2", who="controller")
        def controller_shrinks(s, r: Replica) -> None:
            require(s.elected() == r or r in s.isr)
            s.send(s.elected(), s.isr if s.isr == {r} else s.isr - {r})

    return load(Released)


def _rewrites_a_request() -> LoadedModel:
    """An election in the epoch that is already there."""

    class Released(model.Released):
        @action("RPN-1", who="controller")
        def elect(s, r: Replica) -> None:
            require(s.elected() != r, r in s.isr)
            if s.elected() is None and len(s.requests) > 1:
                s.next.requests = s.requests[: len(s.requests) - 1] + [Request(leader=r, isr=s.isr)]
            else:
                s.send(r, s.isr)

    return load(Released)


# ---- leaders and followers
def _hears_of_old_epochs() -> LoadedModel:
    class Released(model.Released):
        @action("RPN-3", who="replica")
        def become_leader(s, r: Replica, e: RealEpoch) -> None:
            require(s.epoch[r] != e, e <= len(s.requests), s.requests[e - 1].leader == r)
            s.next.epoch[r] = e
            s.next.leader[r] = r
            s.next.known_isr[r] = s.requests[e - 1].isr

    return load(Released)


def _truncates_to_high_watermark() -> LoadedModel:
    class Released(model.Released):
        @define
        def truncation_offset(s, f: Replica, r: Replica) -> Offset:
            return s.hw[f] if BY_RECORD or BY_EPOCH else s.last_match(f, r)

    return load(Released)


def _truncates_by_offset() -> LoadedModel:
    """The answer has no epoch, only an end offset."""

    class Released(model.Released):
        @define
        def truncation_offset(s, f: Replica, r: Replica) -> Offset:
            return min(len(s.log[f]), s.end_of_last_epoch(f, r)) if BY_RECORD or BY_EPOCH else s.hw[f]

    return load(Released)


def _keeps_its_log_if_the_leader_is_the_same() -> LoadedModel:
    class Released(model.Released):
        @action("RPN-3", "RPN-6", "RPN-18", who="replica")
        def become_follower(s, f: Replica, r: Replica, e: RealEpoch) -> None:
            require(f != r, s.epoch[f] < e, e <= len(s.requests), s.requests[e - 1].leader == r)
            require(s.leader[r] == r and s.epoch[r] == e)
            if s.leader[f] != r:
                s.truncate_to(f, s.truncation_offset(f, r))
            s.next.epoch[f] = e
            s.next.leader[f] = r
            s.next.known_isr[f] = s.requests[e - 1].isr

    return load(Released)


def _truncates_to_any_leaders_log() -> LoadedModel:
    class Released(model.Released):
        @action("RPN-3", "RPN-6", "RPN-18", who="replica")
        def become_follower(s, f: Replica, r: Replica, e: RealEpoch) -> None:
            require(f != r, s.epoch[f] < e, e <= len(s.requests), s.requests[e - 1].leader == r)
            s.truncate_to(f, s.truncation_offset(f, r))
            s.next.epoch[f] = e
            s.next.leader[f] = r
            s.next.known_isr[f] = s.requests[e - 1].isr

    return load(Released)


def _unfenced() -> LoadedModel:
    class Released(model.Released):
        @define
        def follows(s, f: Replica, r: Replica) -> bool:
            return s.leader[r] == r and s.leader[f] == r and (FENCED or s.epoch[f] == s.epoch[r])

    return load(Released)


def _writes_with_the_last_epoch() -> LoadedModel:
    class Released(model.Released):
        @action("RPN-8", who="leader")
        def write(s, r: Replica) -> None:
            require(s.leader[r] == r, len(s.log[r]) < L, s.written < R)
            e = s.log[r][len(s.log[r]) - 1].epoch if len(s.log[r]) > 0 else s.epoch[r]
            s.next.log[r] = s.log[r] + [Record(number=s.written + 1, epoch=e)]
            s.next.written = s.written + 1

    return load(Released)


def _shows_what_it_fetches() -> LoadedModel:
    class Released(model.Released):
        @action("RPN-9", "RPN-18", who="follower")
        def fetch(s, f: Replica, r: Replica) -> None:
            n = len(s.log[f])
            require(f != r, s.follows(f, r), n < len(s.log[r]), not ON_FETCH)
            s.next.log[f] = s.log[f] + [s.log[r][n]]
            s.next.hw[f] = n + 1

    return load(Released)


def _learns_no_high_watermark() -> LoadedModel:
    class Released(model.Released):
        @action("RPN-7", "RPN-9", "RPN-18", who="follower", fair="weak", per=("f",))
        def fetch(s, f: Replica, r: Replica) -> None:
            n = len(s.log[f])
            require(f != r, s.follows(f, r), n < len(s.log[r]), not ON_FETCH)
            s.next.log[f] = s.log[f] + [s.log[r][n]]

    return load(Released)


def _commits_alone() -> LoadedModel:
    class Released(model.Released):
        @action("RPN-9", who="leader")
        def increment_hw(s, r: Replica) -> None:
            require(s.leader[r] == r, s.hw[r] < len(s.log[r]))
            s.next.hw[r] = s.hw[r] + 1
            if s.hw[r] == len(s.committed):
                s.next.committed = s.committed + [s.log[r][s.hw[r]]]
                s.next.committed_in = s.committed_in + [s.epoch[r]]

    return load(Released)


def _nobody_has_to_fetch() -> LoadedModel:
    class Released(model.Released):
        @action("RPN-9", "RPN-18", who="follower")
        def fetch(s, f: Replica, r: Replica) -> None:
            n = len(s.log[f])
            require(f != r, s.follows(f, r), n < len(s.log[r]), not ON_FETCH)
            s.next.log[f] = s.log[f] + [s.log[r][n]]
            s.next.hw[f] = min(s.hw[r], n + 1)

    return load(Released)


# ---- the in-sync replicas
def _deposed_leaders_are_heard() -> LoadedModel:
    class Released(model.Released):
        @action("RPN-10", who="leader")
        def shrink(s, r: Replica, f: Replica) -> None:
            require(s.leader[r] == r, f in s.known_isr[r], f != r, not s.has_below(f, r, len(s.log[r])))
            s.next.isr = s.known_isr[r] - {f}
            s.next.known_isr[r] = s.known_isr[r] - {f}

    return load(Released)


def _expands_early() -> LoadedModel:
    class Released(model.Released):
        @action("RPN-11", who="leader")
        def expand(s, r: Replica, f: Replica) -> None:
            require(s.leads(r), f not in s.known_isr[r], s.has_below(f, r, s.hw[r]))
            s.next.isr = s.known_isr[r] | {f}
            s.next.known_isr[r] = s.known_isr[r] | {f}

    return load(Released)


def _of_an_earlier_life() -> LoadedModel:
    """What a follower had before it came back with an empty disk counts."""

    class Released(model.Released):
        @action("RPN-11", who="leader")
        def expand(s, r: Replica, f: Replica) -> None:
            require(s.leads(r), f not in s.known_isr[r], s.follows(f, r))
            require(s.hw[r] == len(s.log[r]) or s.log[r][s.hw[r]].epoch == s.epoch[r])
            s.next.isr = s.known_isr[r] | {f}
            s.next.known_isr[r] = s.known_isr[r] | {f}

    return load(Released)


# ---- today's fetch and consumer
def _takes_the_mark_of_what_diverges() -> LoadedModel:
    """The answer's high watermark is taken over before the truncation."""

    class Fetching(model.Fetching):
        @action("RPN-15", who="follower")
        def fetch(s, f: Replica, r: Replica) -> None:
            require(f != r, s.follows(f, r))
            if s.diverges(s.log[f], r):
                s.next.hw[f] = min(s.hw[r], len(s.log[f]))
            else:
                if len(s.log[f]) < len(s.log[r]):
                    s.next.log[f] = s.log[f] + [s.log[r][len(s.log[f])]]
                s.next.hw[f] = min(s.hw[r], min(len(s.log[f]) + 1, len(s.log[r])))
                s.next.fetched[f] = len(s.log[f])

    return load(Fetching)


def _never_diverges() -> LoadedModel:
    class Fetching(model.Fetching):
        @define
        def diverges(s, q: Records, r: Replica) -> bool:
            return len(q) > len(s.log[r])

    return load(Fetching)


def _diverges_by_offset() -> LoadedModel:
    class Fetching(model.Fetching):
        @define
        def diverges(s, q: Records, r: Replica) -> bool:
            return s.end_of(s.log[r], s.last_epoch(q, len(q))) < len(q)

    return load(Fetching)


def _counts_what_it_did_not_check() -> LoadedModel:
    class Fetching(model.Fetching):
        @define
        def acknowledged(s, f: Replica, r: Replica) -> Offset:
            return len(s.log[f])

    return load(Fetching)


def _never_validates() -> LoadedModel:
    class Fetching(model.Fetching):
        @action("RPN-16", who="consumer")
        def validate(s, r: Replica) -> None:
            require(s.leader[r] == r, s.heard < s.epoch[r])
            s.next.heard = s.epoch[r]

    return load(Fetching)


def _unclean_keeps_the_in_sync_replicas() -> LoadedModel:
    class Fetching(model.Fetching):
        @action("RPN-1", "RPN-17", who="controller")
        def elect(s, r: Replica) -> None:
            require(s.elected() != r, r in s.isr or UNCLEAN)
            s.send(r, s.isr)

    return load(Fetching)


# ---- pending changes, and eligible replicas
def _forgets_what_it_asked_for() -> LoadedModel:
    class AsyncIsr(model.AsyncIsr):
        @define
        def counted(s, f: Follower) -> bool:
            return s.in_sync(f, s.heard)

    return load(AsyncIsr)


def _at_any_version() -> LoadedModel:
    class AsyncIsr(model.AsyncIsr):
        @action("RPN-10", "RPN-21", who="controller")
        def accept(s, f: Follower) -> None:
            require(any(v in s.asked[f] for v in range(len(s.changes) + 1)))
            s.write({x for x in Follower if s.asked_for(x, f, len(s.changes))})

    return load(AsyncIsr)


def _leaves_for_good() -> LoadedModel:
    class Candidates(model.Candidates):
        @action("RPN-2", "RPN-22", who="controller")
        def leave(s, f: Replica) -> None:
            require(f in s.isr)
            s.next.isr = s.isr - {f}

    return load(Candidates)


def _counts_over_the_smaller() -> LoadedModel:
    class Eligible(model.Eligible):
        @define
        def maximal_isr(s, r: Replica) -> set[Replica]:
            return s.proposed[r] if s.proposed[r] != set() and s.proposed[r] <= s.known_isr[r] else s.known_isr[r]

    return load(Eligible)


def _expands_when_it_is_told() -> LoadedModel:
    class Eligible(model.Eligible):
        @define
        def maximal_isr(s, r: Replica) -> set[Replica]:
            return s.known_isr[r]

    return load(Eligible)


def _gives_up_waiting() -> LoadedModel:
    class Eligible(model.Eligible):
        @action("RPN-21", who="leader", fair="weak", per=("r",))
        def hear(s, r: Replica) -> None:
            require(r in s.accepted)
            s.forget(r)

    return load(Eligible)


def _looks_at_no_minimum() -> LoadedModel:
    class Eligible(model.Eligible):
        @action("RPN-9", "RPN-18", "RPN-20", "RPN-21", "RPN-26", who="leader", fair="weak", per=("r",))
        def increment_hw(s, r: Replica) -> None:
            require(s.leader[r] == r, s.hw[r] < len(s.log[r]), STRICT or len(s.known_isr[r]) >= MIN)
            require(all(s.follows(f, r) and s.acknowledged(f, r) > s.hw[r] for f in s.maximal_isr(r)))
            s.next.hw[r] = s.hw[r] + 1
            if s.hw[r] == len(s.committed):
                s.next.committed = s.committed + [s.log[r][s.hw[r]]]
                s.next.committed_in = s.committed_in + [s.epoch[r]]
            s.next.acked = max(s.acked, s.hw[r] + 1)

    return load(Eligible)


def _acknowledges_what_it_has() -> LoadedModel:
    class Eligible(model.Eligible):
        @action("RPN-8", "RPN-26", who="leader")
        def write(s, r: Replica) -> None:
            require(s.leader[r] == r, len(s.log[r]) < L, s.written < R)
            s.next.log[r] = s.log[r] + [Record(number=s.written + 1, epoch=s.epoch[r])]
            s.next.written = s.written + 1
            if len(s.known_isr[r]) >= MIN:
                s.next.acked = max(s.acked, len(s.log[r]) + 1)

    return load(Eligible)


def _one_always_stays() -> LoadedModel:
    class Eligible(model.Eligible):
        @action("RPN-2", "RPN-22", "RPN-27", who="controller")
        def controller_shrinks(s, r: Replica) -> None:
            require(s.elected() == r or (r in s.isr and s.isr != {r}))
            s.tell(None if s.elected() == r else s.elected(), s.isr if s.isr == {r} else s.isr - {r}, set())

        @action("RPN-23", "RPN-27", who="broker, controller")
        def unclean_shutdown(s, r: Replica, o: Offset) -> None:
            require(s.crashes < C, o < len(s.log[r]))
            s.next.crashes = s.crashes + 1
            s.truncate_to(r, o)
            s.next.epoch[r] = len(s.requests)
            s.next.leader[r] = None
            s.next.known_isr[r] = set()
            s.forget(r)
            s.tell(None if s.elected() == r else s.elected(), s.isr if s.isr == {r} else s.isr - {r}, {r})

    return load(Eligible)


def _eligible_after_it_lost_records() -> LoadedModel:
    class Eligible(model.Eligible):
        @define
        def tell(s, leader: Replica | None, isr: set[Replica], lost: set[Replica]) -> None:
            s.send(leader, isr)
            s.next.elr = (s.elr | s.isr) - isr if ELR and len(isr) < MIN else set()

    return load(Eligible)


def _stays_eligible() -> LoadedModel:
    """Though enough are in sync, and go on without it."""

    class Eligible(model.Eligible):
        @action("RPN-10", "RPN-21", "RPN-22", who="controller", fair="weak", per=("r",))
        def accept(s, r: Replica) -> None:
            require(s.elected() == r, s.epoch[r] == len(s.requests), s.proposed[r] != set(), r not in s.accepted)
            s.next.isr = s.proposed[r]
            s.next.elr = (s.elr | s.isr) - s.proposed[r] if len(s.proposed[r]) < MIN else s.elr - s.proposed[r]
            s.next.accepted = s.accepted | {r}

    return load(Eligible)


def _forgets_who_is_eligible() -> LoadedModel:
    """One who asks for a change does not say that eligible replicas are kept (apache/kafka, pull request 20716)."""

    class Eligible(model.Eligible):
        @action("RPN-10", "RPN-21", "RPN-22", who="controller", fair="weak", per=("r",))
        def accept(s, r: Replica) -> None:
            require(s.elected() == r, s.epoch[r] == len(s.requests), s.proposed[r] != set(), r not in s.accepted)
            s.next.isr = s.proposed[r]
            s.next.elr = set()
            s.next.accepted = s.accepted | {r}

    return load(Eligible)


def _the_last_known_first() -> LoadedModel:
    class Eligible(model.Eligible):
        @action("RPN-1", "RPN-24", who="controller")
        def elect(s, r: Replica) -> None:
            require(s.elected() != r)
            require(r in s.isr or (s.isr == set() and (r in s.elr or (UNCLEAN and s.last_known(r)))))
            s.tell(r, s.isr if r in s.isr else {r}, set())

    return load(Eligible)


def _proposes_whom_it_has_not_looked_at() -> LoadedModel:
    class Eligible(model.Eligible):
        @define
        def epoch_start(s, r: Replica) -> Offset:
            return 0

    return load(Eligible)


def _waits_for_its_own_epoch() -> LoadedModel:
    """The rule of KIP-320: with too few in sync its high watermark never gets there, and nobody joins."""

    class Eligible(model.Eligible):
        @action("RPN-21", "RPN-28", who="leader", fair="weak", per=("r", "f"))
        def expand(s, r: Replica, f: Replica) -> None:
            require(s.leader[r] == r, s.proposed[r] == set(), f not in s.known_isr[r])
            require(s.has_below(f, r, s.hw[r]))
            require(s.hw[r] == len(s.log[r]) or s.log[r][s.hw[r]].epoch == s.epoch[r])
            s.next.proposed[r] = s.known_isr[r] | {f}

    return load(Eligible)


# ---- what users see
def _forgets_a_record() -> LoadedModel:
    class CommittedLog(model.CommittedLog):
        @action("RPN-12", who="leader")
        def commit(s, r: Replica, x: Record) -> None:
            require(len(s.committed) < L, all(y.epoch <= x.epoch for y in s.sees[r]))
            s.next.committed = s.sees[r] + [x]
            s.next.sees[r] = s.sees[r] + [x]

    return load(CommittedLog)


MUTANTS = [
    of_model("elects anybody", "RPN-1", "a leader that is not in sync", _elects_anybody, "KAFKA-13162"),
    of_model(
        "from a stale state",
        "RPN-2",
        "a change of the in-sync replicas is overwritten by one that did not see it",
        _from_a_stale_state,
        "KAFKA-13173",
    ),
    of_model("a failed leader leads", "RPN-2", "it is no member, and leads", _a_failed_leader_leads, "KAFKA-18106"),
    of_model("rewrites a request", "RPN-1 RPN-3", "two elections of one epoch", _rewrites_a_request),
    of_model("hears of old epochs", "RPN-3", "a replica goes back to an epoch", _hears_of_old_epochs),
    of_model(
        "truncates to high watermark",
        "RPN-6 RPN-14",
        "what the next leader had committed is cut off",
        _truncates_to_high_watermark,
        "KIP-101",
    ),
    of_model(
        "an end without its epoch", "RPN-6 RPN-13", "the divergent tail stays", _truncates_by_offset, "KAFKA-6361"
    ),
    of_model(
        "the same leader again",
        "RPN-6",
        "who missed another leader's term keeps its tail",
        _keeps_its_log_if_the_leader_is_the_same,
        "KAFKA-7164",
    ),
    of_model("any leader's log", "RPN-18", "a leader of another epoch may yet truncate", _truncates_to_any_leaders_log),
    of_model("not fenced", "RPN-18 RPN-14", "a deposed leader commits", _unfenced, "KIP-320"),
    of_model("writes with the last epoch", "RPN-8", "not with its own", _writes_with_the_last_epoch),
    of_model("shows what it fetches", "RPN-9 RPN-12", "a follower's mark is its end", _shows_what_it_fetches),
    of_model("learns no high watermark", "RPN-9", "a follower keeps the mark that it had", _learns_no_high_watermark),
    of_model("commits alone", "RPN-9 RPN-13 RPN-14", "a leader waits for nobody", _commits_alone),
    of_model("nobody has to fetch", "RPN-19", "a follower that could fetch waits forever", _nobody_has_to_fetch),
    of_model("deposed leaders are heard", "RPN-10", "the controller takes any epoch", _deposed_leaders_are_heard),
    of_model(
        "expands early", "RPN-11", "the new leader does not know yet what is committed", _expands_early, "KAFKA-7128"
    ),
    of_model("of an earlier life", "RPN-11", "an empty disk joins", _of_an_earlier_life, "KAFKA-14617"),
    of_model(
        "takes the mark of what diverges",
        "RPN-15",
        "the mark rises over records that are cut off next",
        _takes_the_mark_of_what_diverges,
        "KAFKA-14704",
    ),
    of_model("never diverges", "RPN-15", "the leader does not look at the last epoch", _never_diverges),
    of_model("diverges by offset", "RPN-15", "the leader looks at the end of the epoch alone", _diverges_by_offset),
    of_model(
        "counts the length", "RPN-15", "the leader takes a log's length for its own", _counts_what_it_did_not_check
    ),
    of_model("never validates", "RPN-16", "a consumer reads on in another log", _never_validates),
    of_model("unclean, and all in sync", "RPN-17", "the others stay in sync", _unclean_keeps_the_in_sync_replicas),
    of_model(
        "forgets what it asked for",
        "RPN-21",
        "a leader counts over those that it knows as in sync",
        _forgets_what_it_asked_for,
        "KIP-497",
    ),
    of_model("at any version", "RPN-10", "the controller takes what was asked for before it changed", _at_any_version),
    of_model("leaves for good", "RPN-22 RPN-25", "though too few stay", _leaves_for_good),
    of_model(
        "counts over the smaller",
        "RPN-21",
        "a leader that asked for fewer counts over fewer at once",
        _counts_over_the_smaller,
        "KIP-497",
    ),
    of_model(
        "counts a new one when told",
        "RPN-21",
        "the controller may have elected it already",
        _expands_when_it_is_told,
        "KIP-497",
    ),
    of_model("gives up waiting", "RPN-21", "what the controller took is forgotten", _gives_up_waiting),
    of_model(
        "looks at no minimum",
        "RPN-20 RPN-25 RPN-26",
        "commits with too few in sync",
        _looks_at_no_minimum,
        "KAFKA-15583",
    ),
    of_model("acknowledges what it has", "RPN-26", "before anybody else has it", _acknowledges_what_it_has),
    of_model(
        "one always stays",
        "RPN-22 RPN-23",
        "the last one in sync comes back with less than it had, and leads",
        _one_always_stays,
        "KIP-966",
    ),
    of_model(
        "eligible after it lost records",
        "RPN-23 RPN-25",
        "an unclean shutdown makes it eligible",
        _eligible_after_it_lost_records,
    ),
    of_model("stays eligible", "RPN-22", "though enough are in sync without it", _stays_eligible),
    of_model(
        "forgets who is eligible",
        "RPN-22 RPN-25",
        "when a leader changes those in sync",
        _forgets_who_is_eligible,
        "pull request 20716",
    ),
    of_model("the last known first", "RPN-24", "though another one is eligible", _the_last_known_first),
    of_model(
        "proposes early",
        "RPN-28",
        "whoever has reached the high watermark, which lags",
        _proposes_whom_it_has_not_looked_at,
        "KAFKA-7128",
    ),
    of_model(
        "waits for its own epoch",
        "RPN-19 RPN-28",
        "nobody joins before the high watermark rises, which waits for others to join",
        _waits_for_its_own_epoch,
    ),
    of_model("forgets a record", "RPN-12", "a leader commits over what another committed", _forgets_a_record),
]
RARE = MUTANTS
"""None of them shows in fewer than two steps of several brokers."""
BESIDE_THE_END = "the other log has a record there and this one none: they are not the same"
NO_REQUEST = "before the first request it reads one that is not there, and has no leader"
LEADER_IN_SYNC = "whoever leads is in sync: the other half of the guard holds"
AT_THE_LAST = "it reads beyond the last request: a leader takes followers in at the last epoch alone, fewer steps"
NO_RECORD = "before the first record it compares what neither has"
MARK_OF_A_FOLLOWER = "of a follower's high watermark nothing is claimed before KIP-320; in Released it is noticed"
GHOST = "a ghost that nothing but the claims of Released reads"
NOT_AGAIN = "whoever was taken out in this epoch is not taken in before the next: fewer steps"
LATER = "it joins with one record more: fewer steps"
SURVIVORS = {
    "Released.elect: guard 1, off by one": NO_REQUEST,
    "Released.become_follower: guard 6, off by one (2)": BESIDE_THE_END,
    "Released.become_follower: guard 6, off by one (3)": BESIDE_THE_END,
    "Released.shrink: guard 1, off by one": NO_REQUEST,
    "Released.shrink: guard 6, off by one": "with one record a leader takes out nobody that follows it: fewer steps",
    "Released.expand: guard 1, off by one": NO_REQUEST,
    "Released.expand: guard 1, off by one (2)": AT_THE_LAST,
    "Released.expand: guard 4, other parameter": NOT_AGAIN,
    "Released.expand: guard 8, off by one (2)": LATER,
    "Released.expand: guard 8, off by one (3)": LATER,
    "Generations.elect: guard 1, off by one": NO_REQUEST,
    "Generations.controller_shrinks: guard 1, branches swapped": LEADER_IN_SYNC,
    "Generations.controller_shrinks: guard 1, off by one": NO_REQUEST,
    "Generations.controller_shrinks: guard 1, off by one (2)": LEADER_IN_SYNC,
    "Generations.become_follower: guard 6, branches swapped": "the offset of KIP-101 in the guard alone: fewer steps",
    "Generations.become_follower: guard 6, off by one (2)": BESIDE_THE_END,
    "Generations.become_follower: guard 6, off by one (3)": BESIDE_THE_END,
    "Generations.become_follower: effect 2, branches swapped": MARK_OF_A_FOLLOWER,
    "Generations.fetch: guard 5, off by one (2)": NO_RECORD,
    "Generations.fetch: effect 2, branches swapped": MARK_OF_A_FOLLOWER,
    "Generations.increment_hw: no effect 2": GHOST,
    "Generations.increment_hw: effect 2, other branch": GHOST,
    "Generations.increment_hw: no effect 3": GHOST,
    "Generations.increment_hw: effect 3, other branch": GHOST,
    "Generations.shrink: guard 1, off by one": NO_REQUEST,
    "Generations.expand: guard 1, off by one": NO_REQUEST,
    "Generations.expand: guard 1, off by one (2)": AT_THE_LAST,
    "Generations.expand: guard 4, other parameter": NOT_AGAIN,
    "Generations.expand: guard 8, off by one (2)": LATER,
    "Generations.expand: guard 8, off by one (3)": LATER,
}
