"""A replica manager, for the spec to walk beside: the clock, the metadata and the controller are the caller's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaspec.contract.machine import ByName
from kafkaspec.impl.storage import high_watermark as hwm
from kafkaspec.impl.storage import replica_manager as impl
from kafkaspec.impl.storage.high_watermark_driver import partition_of
from kafkaspec.spec.storage import replica_manager as spec
from kafkaspec.spec.storage.high_watermark_parts import replicas
from kafkaspec.spec.storage.high_watermark_parts.fetches import EpochEnd
from kafkaspec.spec.storage.replica_manager_parts import state as parts


class Driver(ByName):
    """Our implementation, walked against the spec."""

    machine = spec.machine
    make: type[impl.ReplicaManager] = impl.ReplicaManager
    subject: impl.ReplicaManager

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.first = self.machine.initial(**arguments)
        self.now, self.topic_ids = self.first.now, 0
        self.metadata = hwm.Metadata()
        for id, epoch, fenced, shutting_down in self.first.brokers:
            self.metadata[id] = hwm.Registration(epoch, fenced, shutting_down)
        config = self.first.config
        self.subject = self.make(
            config.replica_lag_time_max_ms,
            config.min_insync_replicas,
            config.broker_epoch,
            self.metadata,
            parts.DIRECTORIES,
            lambda: self.now,
        )

    def answers(self) -> parts.Answers:
        """What was answered in the call."""
        given = self.subject.take_answers()
        return parts.Answers(
            tuple(parts.ProduceAnswer(id, tuple(map(_produced, a))) for id, a in sorted(given.produced.items())),
            tuple(parts.FetchAnswer(id, tuple(map(_fetched, a))) for id, a in sorted(given.fetched.items())),
            tuple(parts.DeleteAnswer(id, tuple(map(_deleted, a))) for id, a in sorted(given.deleted.items())),
        )

    def update_broker(self, id: int, fenced: bool) -> None:
        self.metadata[id] = hwm.Registration(self.metadata[id].epoch, fenced, False)

    def advance(self, ms: int) -> parts.Answers:
        self.now += ms
        self.subject.expire()
        return self.answers()

    def apply_delta(self, record: spec.PartitionRecord) -> parts.Answers:
        told = impl.Topic(
            record.topic_id,
            frozenset(record.replicas),
            record.partition_epoch,
            record.leader,
            record.leader_epoch,
            tuple(record.replicas),
        )
        self.topic_ids = max(self.topic_ids, record.topic_id)
        self.subject.apply(record.topic, told, record.isr, record.directory)
        return self.answers()

    def delete_topic(self, topic: str) -> parts.Answers:
        self.subject.remove(topic)
        return self.answers()

    def append_records(
        self, timeout_ms: int, required_acks: int, internal_topics_allowed: bool, entries: Sequence[parts.ToAppend]
    ) -> parts.Answers:
        asked = [(e.topic, e.topic_id) for e in entries]
        self.subject.append_records(timeout_ms, required_acks, internal_topics_allowed, asked)
        return self.answers()

    def fetch_messages(
        self, replica: int, broker_epoch: int, only_leader: bool, max_wait_ms: int, min_bytes: int,
        entries: Sequence[parts.ToFetch],
    ) -> parts.Answers:  # fmt: skip
        reader = impl.Reader(replica, broker_epoch, only_leader or replica >= 0, min_bytes)
        self.subject.fetch_messages(reader, max_wait_ms, [impl.FetchPart(*e) for e in entries])
        return self.answers()

    def delete_records(
        self, timeout_ms: int, internal_topics_allowed: bool, entries: Sequence[parts.ToDelete]
    ) -> parts.Answers:
        self.subject.delete_records(timeout_ms, internal_topics_allowed, [(e.topic, e.offset) for e in entries])
        return self.answers()

    def alter_partition_succeeded(self, topic: str) -> parts.Answers:
        self.subject.on_altered(topic)
        return self.answers()

    def handle_log_dir_failure(self, directory: int) -> None:
        self.subject.fail_directory(directory)

    def checkpoint_high_watermarks(self) -> Sequence[spec.DirectoryCheckpoint]:
        self.subject.checkpoint_high_watermarks()
        files = self.subject.checkpoints
        return [spec.DirectoryCheckpoint(d, _lines(files[d])) for d in sorted(self.subject.live)]

    def state(self) -> parts.Manager:
        """The spec's state that the broker stands for."""
        s = self.subject
        return parts.Manager(
            config=self.first.config,
            now=self.now,
            brokers=tuple(
                replicas.Broker(id, b.epoch, b.fenced, b.shutting_down) for id, b in sorted(self.metadata.items())
            ),
            metadata=tuple(
                parts.Image(name, t.id, t.partition_epoch, t.leader, t.leader_epoch, t.order)
                for name, t in sorted(s.topics.items())
            ),
            hosted=tuple(self._hosted(name, h) for name, h in sorted(s.hosted.items())),
            waiting=tuple(
                _waiting(o) for o in sorted((o for p in s.purgatories for o in p.delayed), key=lambda o: o.id)
            ),
            requests=s.requests,
            failed=tuple(d for d in parts.DIRECTORIES if d not in s.live),
            checkpoints=tuple(_lines(s.checkpoints[d]) for d in parts.DIRECTORIES),
            topic_ids=self.topic_ids,
        )

    def _hosted(self, name: str, hosted: impl.Online | impl.Offline) -> parts.Hosted:
        if isinstance(hosted, impl.Offline):
            bare = replicas.Partition(self.first.config, 0)
            return parts.Hosted(name, hosted.id, hosted.directory, False, bare)
        there = partition_of(hosted.partition, self.subject.queue, self.first.config, 0, ())
        return parts.Hosted(name, hosted.id, hosted.directory, True, there)


def _lines(offsets: Mapping[str, int]) -> tuple[parts.Checkpoint, ...]:
    return tuple(parts.Checkpoint(*line) for line in sorted(offsets.items()))


def _produced(part: impl.Part) -> parts.Produced:
    assert isinstance(part, impl.Produced)
    return parts.Produced(part.topic, part.error, part.base_offset, part.log_start)


def _fetched(part: impl.Part) -> parts.Fetched:
    assert isinstance(part, impl.Fetched)
    diverging = None if part.diverging is None else EpochEnd(*part.diverging)
    return parts.Fetched(part.topic, part.error, diverging, part.end, part.high_watermark, part.log_start)


def _deleted(part: impl.Part) -> parts.Deleted:
    assert isinstance(part, impl.Deleted)
    return parts.Deleted(part.topic, part.error, part.low_watermark)


def _waiting(operation: impl.Operation) -> parts.Waiting:
    if isinstance(operation, impl.DelayedFetch):
        r = operation.reader
        asked = tuple(
            parts.ToFetch(p.topic, p.topic_id, p.leader_epoch, p.last_epoch, p.offset, p.log_start)
            for p in operation.asked
        )
        who = (r.replica, r.broker_epoch, r.only_leader, r.min_bytes)
        return parts.Fetch(operation.id, operation.deadline, *who, asked)
    assert isinstance(operation, impl.Acknowledged)
    of_produce = isinstance(operation, impl.DelayedProduce)
    pending = tuple(
        parts.Pending(s.required, s.pending, _produced(s.answer) if of_produce else _deleted(s.answer))
        for s in operation.statuses
    )
    make = parts.Produce if of_produce else parts.Delete
    return make(operation.id, operation.deadline, pending)
