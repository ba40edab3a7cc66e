"""The metadata image, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafkaspec.contract.machine import ByName, Refused
from kafkaspec.impl.controller import metadata_image as impl
from kafkaspec.impl.controller.records import from_json
from kafkaspec.spec.controller import metadata_image as spec
from kafkaspec.spec.controller.records import MetadataRecord


class Driver(ByName):
    """An image, and the levels that its module knows."""

    machine = spec.machine
    make: type[impl.MetadataImage] = impl.MetadataImage
    refusals = {impl.ReplayError: lambda e: Refused(e.clause, e.error or spec.NOT_KAFKAS)}

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.image = self.make()

    def replay(self, record: MetadataRecord, offset: int) -> None:
        made = from_json(record.type, record.version, record.fields)
        self.image.replay(made.type, made.fields, offset)

    def breaches(self) -> list[spec.Breach]:
        self.image.check()
        return [spec.Breach(*key) for key in sorted(self.image.broken)]

    def allows(self, type: int, version: int, level: int | None) -> bool:
        return version <= impl.highest_version(type, level)

    def state(self) -> spec.Image:
        image = self.image
        return spec.Image(
            spec.Contents(
                topics={id: shown(t) for id, t in sorted(image.topics.items())},
                brokers={str(id): broker(b) for id, b in sorted(image.brokers.items(), key=lambda x: str(x[0]))},
                features=dict(sorted(image.features.items())),
                next_producer_id=image.next_producer_id,
                configs={
                    spec.config_key(*resource, name): value
                    for resource, of in image.configs.items()
                    for name, value in of.items()
                },
                quotas={
                    spec.quota_key(entity, key): value
                    for entity, of in image.quotas.items()
                    for key, value in of.items()
                },
                acls={id: spec.acl_said(f) for id, f in sorted(image.acls.items())},
                removable=tuple(sorted(map(said, image.removable))),
                scram=tuple(sorted(f"{user}/{mechanism}" for user, mechanism in image.scram)),
                tokens=tuple(sorted(image.tokens)),
                controllers=tuple(sorted(map(str, image.controllers))),
            ),
            image.transaction,
        )


ACL: Final = (
    "resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType",
)  # fmt: skip


def said(acl: tuple[Any, ...]) -> str:
    return spec.acl_said(dict(zip(ACL, acl, strict=True)))


def shown(topic: impl.Topic) -> spec.Topic:
    return spec.Topic(topic.name, {str(n): spec.Partition(*map(value, p)) for n, p in topic.partitions.items()})


def broker(b: impl.Broker) -> spec.Broker:
    return spec.Broker(*map(value, b[:6]))


def value(of: Any) -> Any:
    return tuple(of) if isinstance(of, list) else of
