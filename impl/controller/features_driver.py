"""Finalized features, for the spec to walk beside: registry, raft client and other nodes are the caller's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaspec.contract.machine import Refused
from kafkaspec.impl.controller import features as impl
from kafkaspec.impl.controller.registry_driver import RegistryDriver
from kafkaspec.impl.controller.timeline import SnapshotRegistry
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH
from kafkaspec.spec.controller import features as spec


def _ranges(supported: Sequence[spec.SupportedLevels]) -> dict[str, impl.Range]:
    return {feature: impl.Range(least, most) for feature, least, most in supported}


def _unsupported(e: Exception) -> Refused:
    return Refused("FEA-19", "java.lang.RuntimeException", str(e))


def _unknown(e: Exception) -> Refused:
    return Refused("FEA-19", "java.lang.IllegalArgumentException", str(e))


class Driver(RegistryDriver):
    """Our implementation, walked against the spec."""

    machine = spec.machine
    refusals = {
        impl.UnknownMetadataVersionError: spec.UNKNOWN_VERSION,
        impl.UnsupportedRecordError: _unsupported,
        impl.UnknownLevelError: _unknown,
    }
    make: type[impl.FeatureControlManager] = impl.FeatureControlManager
    make_raft: type[impl.RaftClient] = impl.RaftClient
    subject: impl.FeatureControlManager

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.first = self.machine.initial(**arguments)
        self.registry = SnapshotRegistry()
        self.raft = self.make_raft(self.first.kraft)
        self.subject = self.make(
            self.registry, self.first.node_id, self.first.quorum, _ranges(self.first.supported), self.raft
        )
        self.nodes: dict[str, dict[int, tuple[spec.SupportedLevels, ...]]] = {"brokers": {}, "controllers": {}}
        self._know(self.first.present.metadata)

    def _know(self, version: int | None) -> None:
        if version is not None and version in self.subject.supported.get(spec.METADATA, impl.DISABLED):
            self.subject.replay(impl.FeatureLevelRecord(spec.METADATA, version))

    def state(self) -> spec.Features:
        """All of it; of the other nodes what the caller said."""
        told = self.raft.told
        return spec.Features(
            self.first.node_id,
            self.first.quorum,
            self.first.supported,
            tuple(sorted(self.nodes["brokers"].items())),
            tuple(sorted(self.nodes["controllers"].items())),
            self.raft.version,
            self.raft.refusal,
            None if told is None else spec.KraftUpgrade(*told),
            present=self._levels(LATEST_EPOCH),
            past=self.past(self._levels),
            highest=self.highest(),
        )

    def observe(self) -> Any:
        state = self.machine.observe(self.state())
        return {**state, "elrEnabled": self.subject.is_elr_feature_enabled()}

    def _levels(self, epoch: int) -> spec.Levels:
        version = self.subject.version.get(epoch)
        levels = tuple(sorted(self.subject.levels.items(epoch)))
        return spec.Levels(None if isinstance(version, str) else version, levels)

    def update_features(
        self, updates: Sequence[spec.Update], validate_only: bool, claimed_epoch: int, replayed: bool
    ) -> spec.Outcome:
        asked = [impl.FeatureUpdate(f, level, impl.UpgradeType(type or "UPGRADE")) for f, level, type in updates]
        try:
            result = self.subject.update_features(asked, validate_only, claimed_epoch)
        except impl.RefusedUpdateError as e:
            return spec.Outcome(e.error, str(e), (), False)
        records: list[spec.Record] = []
        for record in result.records:
            if isinstance(record, impl.NoOpRecord):
                records.append(spec.Record("NO_OP_RECORD", None, None))
                continue
            records.append(spec.Record("FEATURE_LEVEL_RECORD", record.name, record.level))
            if replayed:
                self.subject.replay(record)
        return spec.Outcome("NONE", None, tuple(records), result.atomic)

    def replay(self, name: str, level: int) -> None:
        self.subject.replay(impl.FeatureLevelRecord(name, level))

    def finalized_features(self, epoch: int) -> spec.FinalizedFeatures:
        return spec.FinalizedFeatures(dict(sorted(self.subject.finalized_features(epoch).items())), epoch)

    def metadata_version(self) -> int:
        return self.subject.metadata_version()

    def elr_enabled(self) -> bool:
        return self.subject.is_elr_feature_enabled()

    def default_supported_feature_map(self, unstable: bool) -> list[spec.SupportedLevels]:
        found = impl.default_supported_features(unstable)
        return [spec.SupportedLevels(name, *range) for name, range in sorted(found.items())]

    def reset_registry(self, version: int | None) -> None:
        self.registry.reset()
        self._know(version)

    def broker_registered(self, id: int, supported: Sequence[spec.SupportedLevels] | None) -> None:
        self._register("brokers", self.subject.brokers, id, supported)

    def controller_registered(self, id: int, supported: Sequence[spec.SupportedLevels] | None) -> None:
        self._register("controllers", self.subject.controllers, id, supported)

    def _register(
        self, kind: str, nodes: impl.Registrations, id: int, supported: Sequence[spec.SupportedLevels] | None
    ) -> None:
        self.nodes[kind].pop(id, None)
        ranges = None if supported is None else _ranges(supported)
        nodes.put(id, ranges)
        if ranges is not None:
            self.nodes[kind][id] = tuple(spec.SupportedLevels(f, *r) for f, r in ranges.items())

    def raft_refuses(self, message: str | None) -> None:
        self.raft.refusal = message
