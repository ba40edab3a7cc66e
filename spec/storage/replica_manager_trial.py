"""Replica manager: the arguments that engines try."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafkaspec.spec.storage.high_watermark_parts.replicas import LOCAL, low_watermark_of
from kafkaspec.spec.storage.replica_manager import PartitionRecord, asked_in, machine
from kafkaspec.spec.storage.replica_manager_parts.state import (
    DIRECTORIES,
    INTERNAL,
    RECORD_BYTES,
    Fetch,
    HostedPartition,
    Manager,
    ToAppend,
    ToDelete,
    ToFetch,
    leads,
)
from kafkaspec.spec.storage.replica_manager_parts.waits import is_satisfied

TOPICS: Final = ("a", "b", *sorted(INTERNAL))
CROWD: Final = 16
"""How many wait at most."""
CROWDED_MS: Final = 2**31 - 1
"""Where a replica may lag that long, many come to wait."""


def _one_in(state: Manager, n: int) -> bool:
    """In one of `n` states: what undoes much is done seldom."""
    ends = sum(
        h.replica.log.log_end * 3 + h.replica.log.high_watermark + h.replica.partition_epoch for h in state.hosted
    )
    return (state.requests * 7 + ends * 5 + state.now + len(state.waiting)) % n == 0


def _crowds(state: Manager) -> bool:
    """Whether many are to wait: long, and for much; and time passes seldom."""
    return state.config.replica_lag_time_max_ms == CROWDED_MS


def _live(state: Manager) -> Sequence[int]:
    return [d for d in DIRECTORIES if d not in state.failed]


def _hosted_topics(state: Manager) -> Sequence[str]:
    """Those that the broker may have: one internal topic among them, another one in another history."""
    internal = [i.topic for i in state.metadata if i.topic in INTERNAL]
    return [*(t for t in TOPICS if t not in INTERNAL), *(internal or [_by_turns(state, sorted(INTERNAL))])]


def _by_turns(state: Manager, topics: Sequence[str]) -> str:
    return topics[(state.requests + state.topic_ids) % len(topics)]


def _records(state: Manager) -> Sequence[PartitionRecord]:
    """What the metadata may have next; of a topic that is there mostly what is near."""
    bypassed = [_led_on(state, h) for h in _fetched_while_deleting(state)]
    if bypassed and not _one_in(state, 4):
        return bypassed
    left = [record for w in state.waiting if isinstance(w, Fetch) for record in _left_behind(state, w)]
    if left and _one_in(state, 3):
        return left
    return [record for topic in _hosted_topics(state) for record in _of_topic(state, topic)]


def _fetched_while_deleting(state: Manager) -> Sequence[HostedPartition]:
    """Partitions that are led, where a fetch waits and the low watermark may rise, while a deletion waits elsewhere
    alone. [RMG-19]"""
    deleting = {t for w in state.waiting if w.kind == "delete" for t in w.topics}
    fetched = {t for w in state.waiting if w.kind == "fetch" for t in w.topics}
    there = [h for h in state.hosted if deleting and leads(h) and h.topic in fetched - deleting]
    return [h for h in there if _behind(state, h)]


def _behind(state: Manager, hosted: HostedPartition) -> Sequence[int]:
    """The followers that hold the low watermark down."""
    p = state.replica(hosted)
    low = low_watermark_of(p)
    return [f.id for f in p.followers if f.log_start == low < p.log.log_start]


def _led_on(state: Manager, hosted: HostedPartition) -> PartitionRecord:
    """The same in a new leader epoch, with the same leader: nobody looks at who waits."""
    p, image = hosted.replica, state.image(hosted.topic)
    assert image is not None
    epochs = (p.leader_epoch + 1, max(p.partition_epoch, image.partition_epoch) + 1)
    return PartitionRecord(hosted.topic, hosted.topic_id, LOCAL, *epochs, image.replicas, p.isr, hosted.directory)


def _left_behind(state: Manager, fetch: Fetch) -> Iterator[PartitionRecord]:
    """The follower that waits is no replica any more, in the same leader epoch; or, where its fetch names no epoch and
    so is not refused for that, another broker leads. [RMG-13, RMG-12]"""
    for topic in fetch.topics:
        image, hosted = state.image(topic), state.host(topic)
        if image is None or hosted is None or not leads(hosted) or fetch.replica not in image.replicas:
            continue
        epochs = (image.leader_epoch, max(hosted.replica.partition_epoch, image.partition_epoch) + 1)
        rest = tuple(id for id in image.replicas if id != fetch.replica)
        yield PartitionRecord(topic, image.topic_id, LOCAL, *epochs, rest, (LOCAL,), hosted.directory)
        if 2 in image.replicas and any(p.topic == topic and p.current_leader_epoch is None for p in fetch.partitions):
            later = (epochs[0] + 1, epochs[1])
            yield PartitionRecord(topic, image.topic_id, 2, *later, image.replicas, (2,), hosted.directory)


def _overlooked(state: Manager) -> Sequence[HostedPartition]:
    """Of these the partitions where a fetch would be answered if anybody looked."""
    there = _fetched_while_deleting(state)
    late = [w for w in state.waiting if isinstance(w, Fetch) and is_satisfied(state, w)] if there else []
    return [h for h in there if any(h.topic in w.topics for w in late)]


def _of_topic(state: Manager, topic: str) -> Sequence[PartitionRecord]:
    image, hosted, live = state.image(topic), state.host(topic), _live(state)
    if image is None:
        rare = topic in INTERNAL and not _one_in(state, 4)
        first = PartitionRecord(topic, state.topic_ids + 1, LOCAL, 0, 0, (1, 2), (1, 2), live[len(topic) % len(live)])
        if rare:
            return []
        return [
            first,
            first._replace(replicas=(1, 2, 3), isr=(1, 2, 3), directory=live[0]),
            first._replace(isr=(1,)),
            first._replace(leader=2),
            first._replace(partition_epoch=3, leader_epoch=2, directory=live[-1]),
            first._replace(replicas=(0, 1, 2)),
        ]
    if not _one_in(state, 3):
        return []
    e, v = image.leader_epoch, image.partition_epoch
    isr = hosted.replica.isr if hosted is not None and hosted.replica.isr else (1, 2)
    here = PartitionRecord(topic, image.topic_id, image.leader, e, v + 1, image.replicas, tuple(isr), live[0])
    mine = {*image.replicas} | {LOCAL}
    told = [
        here._replace(isr=(1, 2), replicas=(1, 2)),
        here._replace(isr=(1,)),
        here._replace(isr=(2,)),
        here._replace(isr=tuple(sorted(mine)), replicas=tuple(sorted(mine))),
        here._replace(leader=LOCAL, leader_epoch=e + 1, isr=(1,)),
        here._replace(leader=LOCAL, leader_epoch=e + 1, isr=(1, 2), replicas=(1, 2)),
        here._replace(leader=2, leader_epoch=e + 1, isr=(1, 2), replicas=(2, 1)),
        here._replace(leader=-1, leader_epoch=e + 1, isr=(2,), replicas=(1, 2)),
        here._replace(partition_epoch=v + 3, leader=LOCAL, leader_epoch=e + 1, isr=(1,), replicas=(1, 2, 3)),
    ]
    if _one_in(state, 2):
        told += [
            here._replace(replicas=(2, 3), leader=2, leader_epoch=e + 1, isr=(2,)),
            here._replace(topic_id=state.topic_ids + 1, partition_epoch=0, leader=LOCAL, isr=(1,), replicas=(1, 2)),
        ]
    return told


def _there(state: Manager) -> Sequence[HostedPartition]:
    """Partitions to ask: those that are led first."""
    return sorted((h for h in state.hosted if h.online), key=lambda h: (not leads(h), h.topic))


def _unknown(state: Manager) -> str:
    """A topic that cannot be asked, by turns."""
    here = {h.topic for h in _there(state)}
    return _by_turns(state, [t for t in TOPICS if t not in here])


def _appends(state: Manager) -> Sequence[Sequence[ToAppend]]:
    there = _there(state)
    one = [[ToAppend(h.topic, h.topic_id)] for h in there]
    both = [[ToAppend(h.topic, h.topic_id) for h in there]] if len(there) > 1 else []
    if not _one_in(state, 4):
        return [*one, *both * 2 * len(one)]
    none = [ToAppend(_unknown(state), 0)]
    odd = [[h[0]._replace(topic_id=0)] for h in one] + [[h[0]._replace(topic_id=h[0].topic_id + 1)] for h in one]
    return [*one, *both, *([*h, *none] for h in one), none, *odd, []]


def _fetches(state: Manager) -> Sequence[Sequence[ToFetch]]:
    there = [near for h in _there(state) for near in (_near(h),)]
    one = [[part] for parts in there for part in parts]
    overlooked = _overlooked(state)
    if overlooked and not _one_in(state, 4):
        return [[_same_again(h)] for h in overlooked]
    both = [[a, b] for a in there[0][:4] for b in there[1][:4]] if len(there) > 1 else []
    if not _one_in(state, 4):
        return [*one, *both]
    none = [ToFetch(_unknown(state), 0, None, None, 0, 0)]
    return [*one, *both, *([*o, *none] for o in one[:2]), none, [], *([_odd(h)] for h in _there(state))]


def _near(hosted: HostedPartition) -> Sequence[ToFetch]:
    """Reads of a partition, those that wait first."""
    p = hosted.replica
    e, log = max(0, p.leader_epoch), p.log
    last = log.epochs[-1].epoch if log.epochs else None
    at_end = ToFetch(hosted.topic, hosted.topic_id, e, None, log.log_end, log.log_start)
    return [
        at_end,
        at_end._replace(offset=log.high_watermark, last_fetched_epoch=last),
        at_end._replace(offset=max(log.log_start, log.log_end - 1)),
        at_end._replace(offset=min(log.log_end, log.high_watermark + 1), current_leader_epoch=None),
        at_end._replace(offset=log.log_start, log_start=0),
        at_end._replace(last_fetched_epoch=last, topic_id=0),
        at_end._replace(log_start=max(0, log.log_start - 1)),
        *([at_end._replace(current_leader_epoch=None)] if p.follower(0) is not None else []),
    ]


def _same_again(hosted: HostedPartition) -> ToFetch:
    """From where its followers are: the high watermark stays, and the low watermark may rise."""
    p = hosted.replica
    offset = max(p.log.log_start, min((f.log_end for f in p.followers), default=0))
    return ToFetch(hosted.topic, hosted.topic_id, p.leader_epoch, None, offset, p.log.log_start)


def _readers(state: Manager) -> Sequence[int]:
    behind = [id for h in _overlooked(state) for id in _behind(state, h)]
    first = (0, 0) if any(h.replica.follower(0) is not None for h in state.hosted) else ()
    return behind or (2, 2, 2, 3, -1, -1, *first, *((4, 0) if _one_in(state, 9) else ()))


def _odd(hosted: HostedPartition) -> ToFetch:
    """One that has an error, or whose log diverges."""
    p = hosted.replica
    e, log = max(0, p.leader_epoch), p.log
    first = ToFetch(hosted.topic, hosted.topic_id, e, None, log.log_end + 1, 0)
    odd = [
        first,
        first._replace(current_leader_epoch=e + 1),
        first._replace(current_leader_epoch=max(0, e - 1)),
        first._replace(topic_id=hosted.topic_id + 1),
        first._replace(offset=log.log_end, last_fetched_epoch=max(0, e - 1)),
        first._replace(offset=max(0, log.log_start - 1)),
    ]
    return odd[(p.partition_epoch + log.log_end) % len(odd)]


def _deletions(state: Manager) -> Sequence[Sequence[ToDelete]]:
    led = [h for h in _there(state) if leads(h)]
    if not _one_in(state, 2):
        return []
    one = [
        [ToDelete(h.topic, offset)]
        for h in led
        for log in (h.replica.log,)
        for offset in (-1, log.log_start + 1, log.high_watermark, log.high_watermark + 1, -2, 0)
    ]
    every = [[ToDelete(h.topic, -1) for h in led]] if len(led) > 1 else []
    none = [ToDelete(t, 0) for t in (_unknown(state), *(h.topic for h in _there(state) if not leads(h)))]
    return [*one, *every, *([[*one[0], *none[:1]]] if one else []), none, []]


def _failing(state: Manager) -> Sequence[int]:
    """Directories where somebody waits, and seldom others."""
    there = {h.directory for h in _there(state) for w in state.waiting if h.topic in w.topics}
    return [*there] if there and _one_in(state, 3) else DIRECTORIES if _one_in(state, 17) else []


def _fencing(state: Manager) -> Sequence[int]:
    """Who is fenced does not hold a deletion back."""
    return (2, 3) if _one_in(state, 2 if state.waits("delete") else 5) else ()


def _asked(state: Manager) -> Sequence[str]:
    return [h.topic for h in state.hosted if asked_in(state, h.topic) >= 0]


def _passing(state: Manager) -> Sequence[int]:
    if _crowds(state) and not _one_in(state, 6):
        return []
    left = sorted(w.deadline - state.now for w in state.waiting)
    lag = state.config.replica_lag_time_max_ms
    return [*left[:2], *(n - 1 for n in left[:1]), *([1, lag + 1] if _one_in(state, 3) else [])]


def _entries(given: Sequence[Sequence[ToAppend | ToFetch | ToDelete]]) -> Sequence[Sequence[Sequence[Any]]]:
    """As JSON."""
    return [[list(entry) for entry in entries] for entries in given]


def _told(given: Sequence[PartitionRecord]) -> Sequence[Sequence[Any]]:
    return [[*record[:5], list(record.replicas), list(record.isr), record.directory] for record in given]


def _waits_ms(state: Manager, times: Sequence[int]) -> Sequence[int]:
    """How long one more waits."""
    if len(state.waiting) >= CROWD:
        return (0,)
    return (30_000,) if _crowds(state) else times


def _min_bytes(state: Manager) -> Sequence[int]:
    often = (1, 1, RECORD_BYTES, RECORD_BYTES + 1, 2 * RECORD_BYTES)
    return (*often, *((0, 2**31 - 1) if _one_in(state, 5) else ()), *((2**31 - 1,) * 4 if _crowds(state) else ()))


machine.candidates |= {
    "id": _fencing,
    "fenced": lambda state: (True, False, False),
    "ms": _passing,
    "record": lambda state: _told(_records(state)),
    "deleteTopic:topic": lambda state: [i.topic for i in state.metadata] if _one_in(state, 9) else [],
    "alterPartitionSucceeded:topic": _asked,
    "timeout_ms": lambda state: _waits_ms(state, (100, 1000, 1000, 30_000, 0)),
    "required_acks": lambda state: (-1, -1, -1, -1, 1, 0) if not _one_in(state, 9) else (-1, 1, 2, -2, 2**15 - 1),
    "internal_topics_allowed": lambda state: (False, False, True),
    "appendRecords:entries": lambda state: _entries(_appends(state)),
    "replica": _readers,
    "broker_epoch": lambda state: (12, 12, 12, 12, *((11, -1, 13) if _one_in(state, 4) else ())),
    "only_leader": lambda state: (True, True, False),
    "max_wait_ms": lambda state: _waits_ms(state, (500, 500, 1000, 0)),
    "min_bytes": _min_bytes,
    "fetchMessages:entries": lambda state: _entries(_fetches(state)),
    "deleteRecords:entries": lambda state: _entries(_deletions(state)),
    "directory": _failing,
    "init:min_insync_replicas": lambda state: (1, 2, 1, 3),
    "init:replica_lag_time_max_ms": lambda state: (30_000, 200, CROWDED_MS),
    "init:now": lambda state: (1_000_000, 0, 2**40),
}  # fmt: skip
