"""Faults of transactions across failover. Those with a ticket were Kafka's."""

# mypy: disable-error-code="operator, index, arg-type, assignment, union-attr"

from __future__ import annotations

from kafkaspec.language import LoadedModel, action, define, load, require
from kafkaspec.models.storage import transaction_failover as model
from kafkaspec.models.storage.transaction_failover import (
    VERSION_2,
    C,
    CoordinatorEpoch,
    E,
    Kind,
    L,
    Offset,
    Outcome,
    Producer,
    Record,
    Replica,
    T,
    Txn,
)
from kafkaspec.mutants.mutant import of_model


# ---- producers and the coordinator
def _followers_append() -> LoadedModel:
    class Failover(model.Failover):
        @action("TXF-1", "TXF-4", "TXF-5", who="leader")
        def mark(s, r: Replica, p: Producer, t: Txn, c: CoordinatorEpoch) -> None:
            require(s.epoch[r] > 0, len(s.log[r]) < L, c in s.sent[p][t], s.coordinator_epoch(r, p) <= c)
            require(s.takes_epoch(r, p, t))
            s.take(r, s.marker(r, p, t, c))

    return load(Failover)


def _decides_again() -> LoadedModel:
    """The new coordinator takes what was not complete for expired."""

    class Failover(model.Failover):
        @action("TXF-3", who="coordinator")
        def take_over(s) -> None:
            require(s.coordinator < C)
            s.next.coordinator = s.coordinator + 1
            s.next.outcome = {
                p: {t: Outcome.ABORT if t == s.txn[p] else s.outcome[p][t] for t in range(1, T + 1)} for p in Producer
            }
            s.next.sent = {
                p: {t: s.sent[p][t] | {s.coordinator + 1} if t == s.txn[p] else s.sent[p][t] for t in range(1, T + 1)}
                for p in Producer
            }

    return load(Failover)


def _sends_without_a_decision() -> LoadedModel:
    class Failover(model.Failover):
        @action("TXF-3", who="coordinator")
        def take_over(s) -> None:
            require(s.coordinator < C)
            s.next.coordinator = s.coordinator + 1
            s.next.sent = {
                p: {t: s.sent[p][t] | {s.coordinator + 1} if t == s.txn[p] else s.sent[p][t] for t in range(1, T + 1)}
                for p in Producer
            }

    return load(Failover)


def _does_not_send_again() -> LoadedModel:
    class Failover(model.Failover):
        @action("TXF-3", who="coordinator")
        def take_over(s) -> None:
            require(s.coordinator < C)
            s.next.coordinator = s.coordinator + 1

    return load(Failover)


def _equal_epochs_are_taken() -> LoadedModel:
    """As of transaction version 1: a marker's epoch is not below that of the records."""

    class Failover(model.Failover):
        @define
        def takes_epoch(s, r: Replica, p: Producer, t: Txn) -> bool:
            return not VERSION_2 or s.producer_epoch(r, p) <= t + 1

    return load(Failover)


def _any_coordinator_epoch() -> LoadedModel:
    class Failover(model.Failover):
        @action("TXF-1", "TXF-4", "TXF-5", who="leader")
        def mark(s, r: Replica, p: Producer, t: Txn, c: CoordinatorEpoch) -> None:
            require(r in s.leading, len(s.log[r]) < L, c in s.sent[p][t])
            require(s.takes_epoch(r, p, t))
            s.take(r, s.marker(r, p, t, c))

    return load(Failover)


def _answers_early() -> LoadedModel:
    """As with acks=1."""

    class Failover(model.Failover):
        @action("TXF-6", who="leader, coordinator")
        def complete(s, p: Producer, r: Replica, m: Offset) -> None:
            require(r in s.leading, m < len(s.log[r]), s.txn[p] < T)
            require(s.log[r][m].producer == p, s.log[r][m].kind != Kind.DATA, s.log[r][m].txn == s.txn[p])
            s.next.txn[p] = s.txn[p] + 1

    return load(Failover)


def _late_records_are_taken() -> LoadedModel:
    """The producer's epoch is not looked at."""

    class Failover(model.Failover):
        @action("TXF-1", who="leader")
        def produce(s, r: Replica, p: Producer, t: Txn) -> None:
            require(r in s.leading, len(s.log[r]) < L, t <= s.txn[p])
            s.take(r, Record(producer=p, kind=Kind.DATA, txn=t, epoch=s.epoch[r], coordinator=1))

    return load(Failover)


# ---- leaders and followers
def _leads_with_an_empty_table() -> LoadedModel:
    class Failover(model.Failover):
        @action("TXF-7", who="controller")
        def elect(s, r: Replica) -> None:
            require(s.now < E, r in s.isr, not s.leads(r))
            s.next.now = s.now + 1
            s.next.epoch[r] = s.now + 1
            s.next.leading = s.leading | {r}
            s.next.start[r] = len(s.log[r])
            s.next.open_at[r] = {y: {p: None for p in Producer} for y in range(L + 1)}

    return load(Failover)


def _elects_anybody() -> LoadedModel:
    class Failover(model.Failover):
        @action("TXF-7", who="controller")
        def elect(s, r: Replica) -> None:
            require(s.now < E, not s.leads(r))
            s.next.now = s.now + 1
            s.next.epoch[r] = s.now + 1
            s.next.leading = s.leading | {r}
            s.next.start[r] = len(s.log[r])

    return load(Failover)


def _cuts_the_log_alone() -> LoadedModel:
    """What was open stays open, and nothing more."""

    class Failover(model.Failover):
        @define
        def cut(s, r: Replica, o: Offset) -> None:
            s.next.log[r] = s.log[r][:o]
            s.next.hw[r] = min(s.hw[r], o)
            s.next.open_at[r] = {
                y: {p: s.opened(r, p) if y == o else s.open_at[r][y][p] if y < o else None for p in Producer}
                for y in range(L + 1)
            }
            s.next.index[r] = {m: s.index[r][m] if m < o else None for m in range(L + 1)}
            s.next.ended[r] = {
                f: s.ended[r][f] if s.ended[r][f] is not None and s.ended[r][f] < o else None for f in range(L + 1)
            }

    return load(Failover)


def _keeps_the_index() -> LoadedModel:
    class Failover(model.Failover):
        @define
        def cut(s, r: Replica, o: Offset) -> None:
            s.next.log[r] = s.log[r][:o]
            s.next.hw[r] = min(s.hw[r], o)
            s.next.open_at[r] = {y: {p: s.open_at[r][y][p] if y <= o else None for p in Producer} for y in range(L + 1)}
            s.next.ended[r] = {
                f: s.ended[r][f] if s.ended[r][f] is not None and s.ended[r][f] < o else None for f in range(L + 1)
            }

    return load(Failover)


def _truncates_to_high_watermark() -> LoadedModel:
    class Failover(model.Failover):
        @define
        def last_match(s, f: Replica, r: Replica) -> Offset:
            return s.hw[f]

    return load(Failover)


def _truncates_by_offset() -> LoadedModel:
    """To the length of the leader's log."""

    class Failover(model.Failover):
        @define
        def last_match(s, f: Replica, r: Replica) -> Offset:
            return min(len(s.log[f]), len(s.log[r]))

    return load(Failover)


def _shows_what_it_has_not() -> LoadedModel:
    """A follower takes over its leader's high watermark, also beyond its own log."""

    class Failover(model.Failover):
        @action("TXF-9", who="follower")
        def hear(s, f: Replica, r: Replica) -> None:
            require(s.follows(f, r))
            s.know(f, s.hw[r])

    return load(Failover)


def _commits_alone() -> LoadedModel:
    class Failover(model.Failover):
        @action("TXF-6", "TXF-9", who="leader")
        def increment_hw(s, r: Replica) -> None:
            require(s.leads(r), s.hw[r] < len(s.log[r]))
            s.know(r, s.hw[r] + 1)
            if s.hw[r] == len(s.committed):
                s.next.committed = s.committed + [s.log[r][s.hw[r]]]

    return load(Failover)


def _a_start_forgets_the_ends() -> LoadedModel:
    class Failover(model.Failover):
        @action("TXF-10", who="environment")
        def restart(s, r: Replica) -> None:
            require(r in s.leading)
            s.next.leading = s.leading - {r}
            s.next.ended[r] = {f: None for f in range(L + 1)}

    return load(Failover)


def _a_start_forgets_what_is_open() -> LoadedModel:
    class Failover(model.Failover):
        @action("TXF-10", who="environment")
        def restart(s, r: Replica) -> None:
            require(r in s.leading)
            s.next.leading = s.leading - {r}
            s.next.open_at[r] = {y: {p: None for p in Producer} for y in range(L + 1)}

    return load(Failover)


# ---- what readers are given
def _bound_of_the_leader() -> LoadedModel:
    class Failover(model.Failover):
        @define
        def is_stable(s, r: Replica, o: Offset) -> bool:
            """Of a follower by what its leader knows."""
            return o <= len(s.log[r]) and any(
                (x == r if not any(s.follows(r, y) for y in Replica) else s.follows(r, x))
                and o <= s.hw[x]
                and all(s.opened(x, p) is None or o <= s.opened(x, p) for p in Producer)
                and all(s.ended[x][f] is None or o <= f for f in range(L + 1))
                for x in Replica
            )

    return load(Failover)


def _bound_above_the_high_watermark() -> LoadedModel:
    class Failover(model.Failover):
        @define
        def is_stable(s, r: Replica, o: Offset) -> bool:
            return (
                o <= len(s.log[r])
                and all(s.opened(r, p) is None or o <= s.opened(r, p) for p in Producer)
                and all(s.ended[r][f] is None or o <= f for f in range(L + 1))
            )

    return load(Failover)


def _high_watermark_of_a_new_leader() -> LoadedModel:
    """Until its high watermark has reached its own epoch."""

    class Failover(model.Failover):
        @define
        def is_stable(s, r: Replica, o: Offset) -> bool:
            return o <= s.hw[r] and (
                (r in s.leading and s.hw[r] <= s.start[r])
                or (
                    all(s.opened(r, p) is None or o <= s.opened(r, p) for p in Producer)
                    and all(s.ended[r][f] is None or o <= f for f in range(L + 1))
                )
            )

    return load(Failover)


def _ended_is_replicated() -> LoadedModel:
    class Failover(model.Failover):
        @define
        def is_stable(s, r: Replica, o: Offset) -> bool:
            return o <= s.hw[r] and all(s.opened(r, p) is None or o <= s.opened(r, p) for p in Producer)

    return load(Failover)


def _index_of_another() -> LoadedModel:
    """What any replica has for aborted is dropped."""

    class Failover(model.Failover):
        @define
        def tells_aborted(s, r: Replica, x: Offset) -> bool:
            return any(
                x < m
                and m < len(s.log[a])
                and s.log[a][m].producer == s.log[r][x].producer
                and s.index[a][m] is not None
                and s.index[a][m] <= x
                for a in Replica
                for m in range(L + 1)
            )

    return load(Failover)


def _drops_nothing() -> LoadedModel:
    class Failover(model.Failover):
        @action("TXF-11", "TXF-12", who="reader")
        def read(s, r: Replica) -> None:
            require(s.position < L, s.is_stable(r, s.position + 1))
            if s.log[r][s.position].kind == Kind.DATA:
                s.next.seen = s.seen | {s.position}
            s.next.position = s.position + 1

    return load(Failover)


def _goes_back() -> LoadedModel:
    """Where another replica shows less, as after an offset that is out of range."""

    class Failover(model.Failover):
        @action("TXF-11", "TXF-12", who="reader")
        def read(s, r: Replica) -> None:
            require(s.position < L, s.is_stable(r, s.position + 1) or s.hw[r] < s.position)
            if s.hw[r] < s.position:
                s.next.position = s.hw[r]
            else:
                if s.log[r][s.position].kind == Kind.DATA and not s.tells_aborted(r, s.position):
                    s.next.seen = s.seen | {s.position}
                s.next.position = s.position + 1

    return load(Failover)


def _remembers_every_marker() -> LoadedModel:
    class ReplicatedMarkers(model.ReplicatedMarkers):
        @action("TXF-4", who="leader, follower")
        def append(s, r: Replica, x: Record) -> None:
            n = len(s.log[r])
            require(n < L, x.txn <= s.txn[x.producer], x.kind != Kind.DATA)
            require(all(y.txn <= x.txn for y in s.log[r] if y.producer == x.producer))
            require(s.outcome_of(x) == (Outcome.COMMIT if x.kind == Kind.COMMIT else Outcome.ABORT))
            s.next.log[r] = s.log[r] + [x]
            s.next.end_of[r] = {
                y: n
                if s.is_data(r, y) and s.log[r][y].producer == x.producer and s.end_of[r][y] is None
                else s.end_of[r][y]
                for y in range(L + 1)
            }
            s.next.unreplicated[r] = s.unreplicated[r] | {n}

    return load(ReplicatedMarkers)


def _waits_for_what_is_cut() -> LoadedModel:
    class ReplicatedMarkers(model.ReplicatedMarkers):
        @action("TXF-8", who="follower")
        def truncate(s, r: Replica, o: Offset) -> None:
            require(o < len(s.log[r]))
            s.next.log[r] = s.log[r][:o]
            s.next.hw[r] = min(s.hw[r], o)
            s.next.end_of[r] = {
                x: s.end_of[r][x] if s.end_of[r][x] is not None and s.end_of[r][x] < o else None for x in range(L + 1)
            }

    return load(ReplicatedMarkers)


MUTANTS = [
    of_model("followers append", "TXF-1", "a marker goes to whoever is asked", _followers_append),
    of_model("decides again", "TXF-2", "a new coordinator aborts what was decided", _decides_again),
    of_model("sends without a decision", "TXF-2", "a marker of a transaction that goes on", _sends_without_a_decision),
    of_model("does not send again", "TXF-3", "what was sent before is left at that", _does_not_send_again),
    of_model("equal epochs", "TXF-4", "a late marker ends the next transaction", _equal_epochs_are_taken, "KIP-1228"),
    of_model("late records", "TXF-4", "they join the transaction that is open", _late_records_are_taken, "KIP-890"),
    of_model("any coordinator epoch", "TXF-5", "a coordinator that was replaced is heard", _any_coordinator_epoch),
    of_model("answers early", "TXF-6", "the marker is in the leader's log alone", _answers_early),
    of_model("commits alone", "TXF-6 TXF-9", "the high watermark waits for nobody", _commits_alone),
    of_model("an empty table", "TXF-7", "a new leader knows of no open transaction", _leads_with_an_empty_table),
    of_model("elects anybody", "TXF-7", "one that lacks a replicated marker", _elects_anybody),
    of_model("cuts the log alone", "TXF-8", "a transaction whose marker is gone is ended still", _cuts_the_log_alone),
    of_model("keeps the index", "TXF-8", "an aborted transaction whose marker is gone", _keeps_the_index),
    of_model(
        "cuts at the high watermark", "TXF-8", "a replicated marker is lost", _truncates_to_high_watermark, "KIP-101"
    ),
    of_model("cuts at the leader's length", "TXF-8", "another record stays in its place", _truncates_by_offset),
    of_model("shows what it has not", "TXF-9", "a high watermark beyond the log", _shows_what_it_has_not),
    of_model("the leader's bound", "TXF-9 TXF-11", "a follower lacks the marker still", _bound_of_the_leader),
    of_model("above the high watermark", "TXF-9", "all that is decided is shown", _bound_above_the_high_watermark),
    of_model(
        "shows up to the high watermark",
        "TXF-9 TXF-12",
        "a new leader, until it has committed in its epoch",
        _high_watermark_of_a_new_leader,
    ),
    of_model("ended is replicated", "TXF-9", "a marker that is here is everywhere", _ended_is_replicated),
    of_model("remembers every marker", "TXF-9", "as one that ends a transaction", _remembers_every_marker),
    of_model("waits for what is cut", "TXF-8", "the marker is in its log no more", _waits_for_what_is_cut),
    of_model("a start forgets ends", "TXF-10", "takes them for replicated", _a_start_forgets_the_ends),
    of_model("a start forgets what is open", "TXF-10", "its table is empty", _a_start_forgets_what_is_open),
    of_model("another's index", "TXF-11", "drops what some replica has for aborted", _index_of_another),
    of_model("drops nothing", "TXF-11 TXF-12", "a reader that is told and does not listen", _drops_nothing),
    of_model("goes back", "TXF-12", "to the high watermark of another replica", _goes_back),
]
RARE = MUTANTS
"""None of them shows in fewer than two steps of several brokers."""
