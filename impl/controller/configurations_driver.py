"""Dynamic configurations, for the spec to walk beside: registry, checks and policy are the caller's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafkaspec.impl.controller import configurations as impl
from kafkaspec.impl.controller.registry_driver import RegistryDriver
from kafkaspec.impl.controller.timeline import SnapshotRegistry
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH
from kafkaspec.spec.controller import configurations as spec


def _resource(of: spec.Resource) -> impl.Resource:
    return impl.Resource(impl.Type(of.type), of.name)


def _shown(of: impl.Resource) -> spec.Resource:
    return spec.Resource(of.type.value, of.name)


def _record(of: impl.Record) -> spec.Record:
    match of:
        case impl.ConfigRecord(resource, key, value):
            return spec.Record("CONFIG_RECORD", _shown(resource), key, value)
        case impl.ClearElrRecord(topic):
            return spec.Record("CLEAR_ELR_RECORD", None, topic, None)
        case impl.FeatureRecord(name, level):
            return spec.Record("FEATURE_LEVEL_RECORD", None, name, str(level))


class StandIn(impl.Surroundings):
    """Refuses what is marked, and keeps what it was asked."""

    def __init__(self, missing: Iterable[spec.Resource]) -> None:
        self.missing = {_resource(r) for r in missing}
        self.checked: spec.CheckedValues | None = None
        self.policed: spec.PolicyRequest | None = None

    def validate(self, resource: impl.Resource, configs: Mapping[str, str], existing: Mapping[str, str]) -> None:
        self.checked = spec.CheckedValues(_shown(resource), dict(configs), dict(existing))
        if spec.INVALID_VALUE in configs.values():
            raise impl.InvalidConfigError("Invalid value.")

    def check_existence(self, resource: impl.Resource) -> None:
        if resource in self.missing:
            raise impl.ApiError("UNKNOWN_TOPIC_OR_PARTITION", f"{resource.name} does not exist.")

    def check_policy(self, resource: impl.Resource, configs: Mapping[str, str | None]) -> None:
        self.policed = spec.PolicyRequest(_shown(resource), dict(configs))
        if spec.FORBIDDEN in configs.values():
            raise impl.ApiError("POLICY_VIOLATION", "Forbidden.")

    def is_supported(self, type: impl.Type, key: str) -> bool:
        return key != spec.UNSUPPORTED


class Driver(RegistryDriver):
    """Our implementation, walked against the spec."""

    machine = spec.machine
    make: type[impl.ConfigurationControlManager] = impl.ConfigurationControlManager
    subject: impl.ConfigurationControlManager

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.first = self.machine.initial(**arguments)
        self.registry = SnapshotRegistry()
        self.around = StandIn(self.first.missing)
        self.subject = self.make(self.registry, self.first.node_id, dict(self.first.static), self.around)
        self.subject.metadata_version.set(self.first.present.metadata_version)

    def state(self) -> spec.Configurations:
        """All of it; of what was asked what the stand-ins kept."""
        return spec.Configurations(
            self.first.node_id,
            self.first.static,
            self.first.missing,
            self.around.checked,
            self.around.policed,
            present=self._view(LATEST_EPOCH),
            past=self.past(self._view),
            highest=self.highest(),
        )

    def _view(self, epoch: int) -> spec.View:
        found = {_shown(r): tuple(sorted(own.items(epoch))) for r, own in self.subject.configs.items(epoch)}
        elr = self.subject.elr_level.get(epoch) >= 1
        return spec.View(tuple(sorted(found.items())), self.subject.metadata_version.get(epoch), elr)

    def observe(self) -> Any:
        """The index of brokers is the manager's own."""
        shown = self.machine.observe(self.state())
        shown["latest"][1] = sorted(self.subject.brokers_with_configs.elements())
        for epoch, view in shown["at"].items():
            view[1] = sorted(self.subject.brokers_with_configs.elements(int(epoch)))
        return shown

    def _outcome(self, result: impl.AlterResult, replayed: bool) -> spec.Outcome:
        if replayed:
            self.subject.replay_all(result.records)
        answers = (spec.OK if e is None else spec.Answer(e.error, str(e)) for e in result.errors)
        return spec.Outcome(tuple(answers), tuple(map(_record, result.records)), result.atomic)

    def incremental_alter_configs(
        self, changed: Sequence[spec.ChangedResource], newly_created: bool, forwarded: bool, replayed: bool
    ) -> spec.Outcome:
        asked = [
            (_resource(r.resource), [(c.key, impl.Operation(c.operation), c.value) for c in r.changes]) for r in changed
        ]
        return self._outcome(self.subject.incremental_alter_configs(asked, newly_created, forwarded), replayed)

    def legacy_alter_configs(
        self, new: Sequence[spec.NewResource], newly_created: bool, forwarded: bool, replayed: bool
    ) -> spec.Outcome:
        asked = [(_resource(r.resource), dict(r.configs)) for r in new]
        return self._outcome(self.subject.legacy_alter_configs(asked, newly_created, forwarded), replayed)

    def update_features(self, level: int, validate_only: bool, replayed: bool) -> spec.Outcome:
        return self._outcome(self.subject.update_features(level, validate_only), replayed)

    def replay(self, resource: spec.Resource, key: str, value: str | None) -> None:
        self.subject.replay(impl.ConfigRecord(_resource(resource), key, value))

    def static_min_isr(self) -> int:
        return self.subject.static_min_insync_replicas()

    def topic_config(self, topic: str, key: str) -> list[str]:
        return [*self.subject.topic_config(topic, key)]

    def describe_configs(self, resource: spec.Resource, keys: Sequence[str], epoch: int) -> dict[str, str]:
        return dict(sorted(self.subject.describe_configs(_resource(resource), keys, epoch).items()))

    def reset_registry(self, version: int) -> None:
        self.registry.reset()
        self.subject.metadata_version.set(version)
