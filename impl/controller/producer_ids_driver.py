"""Blocks of producer ids, for the spec to walk beside: the registry and the registrations are the caller's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafkaspec.contract.machine import Refused
from kafkaspec.impl.controller import producer_ids as impl
from kafkaspec.impl.controller.registry_driver import RegistryDriver
from kafkaspec.impl.controller.timeline import SnapshotRegistry, TimelineHashMap
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH
from kafkaspec.spec.controller import producer_ids as spec


def _refused(clause: str, error: str) -> Callable[[impl.ProducerIdError], Refused]:
    """With the text of the exception."""
    return lambda e: Refused(clause, error, str(e))


class Driver(RegistryDriver):
    """Our implementation, walked against the spec."""

    machine = spec.machine
    refusals = {
        impl.UnregisteredBrokerError: _refused("PID-2", spec.STALE_BROKER_EPOCH),
        impl.StaleBrokerEpochError: _refused("PID-3", spec.STALE_BROKER_EPOCH),
        impl.ExhaustedError: _refused("PID-7", spec.UNKNOWN_SERVER),
        impl.ReplayError: _refused("PID-9", spec.RUNTIME_EXCEPTION),
    }
    make: type[impl.ProducerIdControl] = impl.ProducerIdControl
    make_image: type[impl.ProducerIdsImage] = impl.ProducerIdsImage
    subject: impl.ProducerIdControl

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.registry = SnapshotRegistry()
        self.brokers: TimelineHashMap[int, int] = TimelineHashMap(self.registry, 4)
        self.subject = self.make(self.registry, self.brokers.get)
        for broker_id, broker_epoch in arguments.get("brokers", ()):
            self.brokers.put(broker_id, broker_epoch)

    def state(self) -> spec.ProducerIds:
        """The spec's state that the collections stand for."""
        return spec.ProducerIds(
            present=self._memory(LATEST_EPOCH), past=self.past(self._memory), highest=self.highest()
        )

    def _memory(self, epoch: int) -> spec.Memory:
        block = self.subject.next_block.get(epoch)
        return spec.Memory(
            spec.Block(block.broker_id, block.first, block.size),
            self.subject.broker_epoch.get(epoch),
            tuple(sorted(self.brokers.items(epoch))),
        )

    def generate_next_producer_id(self, broker_id: int, broker_epoch: int, replayed: bool) -> spec.Allocation:
        result = self.subject.generate(broker_id, broker_epoch)
        if replayed:
            for record in result.records:
                self.subject.replay(record)
        block = result.block
        records = tuple(map(_shown, result.records))
        return spec.Allocation(block.first, block.size, records, result.atomic, block.broker_id)

    def replay(self, broker_id: int, broker_epoch: int, next_producer_id: int) -> None:
        self.subject.replay(impl.ProducerIdsRecord(broker_id, broker_epoch, next_producer_id))

    def image_records(self, next_producer_ids: Sequence[int]) -> list[spec.Record]:
        image = self.make_image()
        for said in next_producer_ids:
            image.replay(impl.ProducerIdsRecord(0, 0, said))
        return [*map(_shown, image.records())]

    def reset_registry(self) -> None:
        self.registry.reset()

    def register_broker(self, broker_id: int, broker_epoch: int) -> None:
        self.brokers.put(broker_id, broker_epoch)

    def unregister_broker(self, broker_id: int) -> None:
        self.brokers.remove(broker_id)


def _shown(record: impl.ProducerIdsRecord) -> spec.Record:
    return spec.Record(record.version, record.broker_id, record.broker_epoch, record.next_producer_id)
