"""The controller's finalized features, on timeline collections: the checks of an update are a list of questions that
are asked in order, the first answer refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from kafkaspec.impl.controller.timeline import SnapshotRegistry, TimelineHashMap, TimelineObject
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
REGISTRATION: Final = 15
"""the metadata.version from which on controllers register"""


class Range(NamedTuple):
    """Levels from `least` to `most`."""

    least: int
    most: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.least <= level <= self.most

    def __str__(self) -> str:
        if self.least == self.most:
            return str(self.least)
        return f"{self.least}+" if self.most == 0x7FFF else f"{self.least}-{self.most}"


DISABLED: Final = Range(0, 0)
Ranges = Mapping[str, Range]


# ---- what this release knows -----------------------------------------------------------------------------------------
CHANGED: Final = frozenset(
    {"3.3-IV3", "3.4-IV0", "3.5-IV2", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV2", "4.0-IV1", "4.3-IV0"}
)


class MetadataVersion(NamedTuple):
    """A metadata.version."""

    level: int
    name: str

    @property
    def changed(self) -> bool:
        """Whether it brought another form of metadata."""
        return self.name in CHANGED


def _versions() -> Iterator[MetadataVersion]:
    lines = {"3.3": "3", "3.4": "0", "3.5": "012", "3.6": "012", "3.7": "01234", "3.8": "0", "3.9": "0"} | {
        "4.0": "0123",
        "4.1": "01",
        "4.2": "01",
        "4.3": "0",
        "4.4": "0",
    }
    names = [f"{line}-IV{n}" for line, numbers in lines.items() for n in numbers]
    for level, name in enumerate(names, start=7):
        yield MetadataVersion(level, name)


VERSIONS: Final = tuple(_versions())
BY_LEVEL: Final = {v.level: v for v in VERSIONS}
LATEST_PRODUCTION: Final = next(v for v in VERSIONS if v.name == "4.3-IV0")


def metadata_changed(high: int, low: int) -> bool:
    """Whether one of the versions above the low one, up to the high one, changed the metadata. [FEA-14]"""
    while high > low:
        if BY_LEVEL[high].changed:
            return True
        high -= 1
    return False


class Feature(NamedTuple):
    """A feature that this release knows: the dependency of each of its levels."""

    levels: tuple[tuple[str, int] | None, ...]
    production: bool = True


FEATURES: Final = {
    KRAFT_VERSION: Feature((None, None)),
    "transaction.version": Feature((None, None, None)),
    "group.version": Feature((None, None)),
    ELR_VERSION: Feature((None, (METADATA_VERSION, 23))),
    "share.version": Feature((None, None)),
    "streams.version": Feature((None, None)),
    "test.feature.version": Feature((None, None, (METADATA_VERSION, VERSIONS[-1].level)), production=False),
    "unit.test.feature.version.2": Feature((None, None), production=False),
    "unit.test.feature.version.3": Feature((None, ("unit.test.feature.version.2", 1)), production=False),
}


def default_supported_features(unstable: bool) -> dict[str, Range]:
    """What a node of this release supports. [FEA-23]"""
    newest = VERSIONS[-1] if unstable else LATEST_PRODUCTION
    found = {name: Range(0, len(f.levels) - 1) for name, f in FEATURES.items() if f.production}
    return {METADATA_VERSION: Range(VERSIONS[0].level, newest.level), **found}


# ---- errors ----------------------------------------------------------------------------------------------------------
class UnknownMetadataVersionError(Exception):
    """No record has said which metadata.version it is."""


class UnsupportedRecordError(Exception):
    """A record has a level that this controller does not support."""


class UnknownLevelError(Exception):
    """A record has a metadata.version that this release does not know."""


class RaftClientError(Exception):
    """The raft client does not upgrade kraft.version."""


class RefusedUpdateError(Exception):
    """An update is refused; the error is that of Kafka's protocol."""

    def __init__(self, message: str, error: str = "INVALID_UPDATE_VERSION") -> None:
        super().__init__(message)
        self.error = error


# ---- what the manager is given ---------------------------------------------------------------------------------------
class UpgradeType(Enum):
    """What kind of change is allowed."""

    UNKNOWN = "UNKNOWN"
    UPGRADE = "UPGRADE"
    SAFE_DOWNGRADE = "SAFE_DOWNGRADE"
    UNSAFE_DOWNGRADE = "UNSAFE_DOWNGRADE"


class FeatureUpdate(NamedTuple):
    """A level that is asked for."""

    name: str
    level: int
    type: UpgradeType = UpgradeType.UPGRADE


class FeatureLevelRecord(NamedTuple):
    """The level of a feature, in the metadata log."""

    name: str
    level: int


class NoOpRecord(NamedTuple):
    """Nothing, in the metadata log."""


class RaftClient:
    """Keeps kraft.version: a stand-in that does as it is told."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.refusal: str | None = None
        self.told: tuple[int, int, bool] | None = None

    def upgrade(self, epoch: int, version: int, validate_only: bool) -> None:
        self.told = epoch, version, validate_only
        if self.refusal is not None:
            raise RaftClientError(self.refusal)
        if not validate_only:
            self.version = version


class Registrations:
    """What the registered nodes support, by rising ids."""

    def __init__(self) -> None:
        self._nodes: dict[int, Ranges] = {}

    def put(self, id: int, supported: Ranges | None) -> None:
        if supported is None:
            self._nodes.pop(id, None)
        else:
            self._nodes[id] = supported

    def __iter__(self) -> Iterator[tuple[int, Ranges]]:
        return iter(sorted(self._nodes.items()))


@dataclass
class UpdateResult:
    """The records that an update leaves."""

    records: Sequence[FeatureLevelRecord | NoOpRecord] = ()
    atomic: bool = False


# ---- the manager -----------------------------------------------------------------------------------------------------
def reason_not_supported(who: str, supported: Ranges, name: str, level: int) -> str | None:
    """What a node says about a level that it does not support. [FEA-7, FEA-8, FEA-9]"""
    range = supported.get(name, DISABLED)
    if level in range:
        return None
    return f"{who} does not support this feature." if not range.most else f"{who} only supports versions {range}"


class FeatureControlManager:
    """Finalized features of one controller."""

    def __init__(
        self, registry: SnapshotRegistry, node_id: int, quorum: Sequence[int], supported: Ranges, raft: RaftClient
    ) -> None:
        self.node_id, self.quorum, self.supported, self.raft = node_id, quorum, supported, raft
        self.brokers, self.controllers = Registrations(), Registrations()
        self.levels: TimelineHashMap[str, int] = TimelineHashMap(registry, 0)
        self.version: TimelineObject[int | str] = TimelineObject(registry, "unknown")

    def metadata_version(self, epoch: int = LATEST_EPOCH) -> int:
        """The level of metadata.version. Raises UnknownMetadataVersionError. [FEA-1]"""
        version = self.version.get(epoch)
        if isinstance(version, str):
            raise UnknownMetadataVersionError
        return version

    def level(self, name: str) -> int:
        """The level that a feature has."""
        if name == METADATA_VERSION:
            return self.metadata_version()
        return self.raft.version if name == KRAFT_VERSION else self.levels.get(name) or 0

    def update_features(self, updates: Iterable[FeatureUpdate], validate_only: bool, epoch: int) -> UpdateResult:
        """The records for all updates, or the first refusal. Raises RefusedUpdateError. [FEA-2, FEA-3, FEA-4]"""
        updates = list(updates)
        proposed = {**dict(self.levels.items()), METADATA_VERSION: self.metadata_version()}
        proposed.update((u.name, u.level) for u in updates)
        records: list[FeatureLevelRecord | NoOpRecord] = []
        for update in updates:
            self.check(update)
            if update.name == KRAFT_VERSION:
                records += self.update_kraft(update, validate_only, epoch)
                continue
            if update.name == METADATA_VERSION:
                self.check_metadata_version(update)
            else:
                self.check_dependencies(update, proposed)
            records.append(FeatureLevelRecord(update.name, update.level))
        return UpdateResult() if validate_only else UpdateResult(records, atomic=True)

    def check(self, update: FeatureUpdate) -> None:
        """What is asked of every update. [FEA-5, FEA-6, FEA-12]"""
        questions: Sequence[Callable[[FeatureUpdate], str | None]] = (
            self._reason_of_type,
            self._reason_of_sign,
            self.reason_of_nodes,
            self._reason_of_direction,
        )
        for question in questions:
            why = question(update)
            if why is not None:
                raise self._invalid(update, why)

    @staticmethod
    def _invalid(update: FeatureUpdate, why: str) -> RefusedUpdateError:
        return RefusedUpdateError(f"Invalid update version {update.level} for feature {update.name}. {why}")

    @staticmethod
    def _reason_of_type(update: FeatureUpdate) -> str | None:
        unknown = update.type is UpgradeType.UNKNOWN
        return "The controller does not support the given upgrade type." if unknown else None

    @staticmethod
    def _reason_of_sign(update: FeatureUpdate) -> str | None:
        return "A feature version cannot be less than 0." if update.level < 0 else None

    def _reason_of_direction(self, update: FeatureUpdate) -> str | None:
        change = update.level - self.level(update.name)
        if update.type is UpgradeType.UPGRADE:
            return (
                "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
                "downgrade."
                if change < 0
                else None
            )
        return "Can't downgrade to a newer version." if change > 0 else None

    def reason_of_nodes(self, update: FeatureUpdate) -> str | None:
        """Why a node does not support the level, or may not. [FEA-7, FEA-8, FEA-9, FEA-10, FEA-11]"""
        asked = [(f"Local controller {self.node_id}", self.supported)]
        asked += [(f"Broker {id}", supported) for id, supported in self.brokers]
        registering = self.metadata_version() >= REGISTRATION
        if registering:
            asked += [(f"Controller {id}", s) for id, s in self.controllers if id != self.node_id]
        for who, supported in asked:
            why = reason_not_supported(who, supported, update.name, update.level)
            if why is not None:
                return why
        return self.reason_of_quorum() if registering else None

    def reason_of_quorum(self) -> str | None:
        """The first controller that has not registered. [FEA-10]"""
        registered = {id for id, _ in self.controllers} | {self.node_id}
        for id in self.quorum:
            if id not in registered:
                return f"controller {id} has not registered, and may not support this feature"
        return None

    def check_metadata_version(self, update: FeatureUpdate) -> None:
        """Raises RefusedUpdateError for a version that is unknown, or would lose metadata. [FEA-13, FEA-14]"""
        if update.level not in BY_LEVEL:
            text = f"Valid versions are from {VERSIONS[0].level} to {VERSIONS[-1].level}."
            raise RefusedUpdateError(f"Invalid metadata.version {update.level}. {text}")
        current = self.metadata_version()
        if metadata_changed(current, update.level):
            text = f"Unsupported metadata.version downgrade from {current} to {update.level}. "
            if update.type is UpgradeType.UNSAFE_DOWNGRADE:
                raise RefusedUpdateError(text + "Unsafe metadata downgrade is not supported in this version.")
            why = "Refusing to perform the requested downgrade because it might delete metadata information."
            raise RefusedUpdateError(text + why)

    def check_dependencies(self, update: FeatureUpdate, proposed: Mapping[str, int]) -> None:
        """Raises RefusedUpdateError where the feature or its level is unknown, or needs what is not there.
        [FEA-15, FEA-16]"""
        feature = FEATURES.get(update.name)
        if feature is None:
            raise self._invalid(update, f"Feature {update.name} not found.")
        if update.level >= len(feature.levels):
            raise self._invalid(update, f"No feature:{update.name} with feature level {update.level}")
        text = f"{update.name} could not be set to {update.level} because it depends on "
        oldest = VERSIONS[0]
        if update.level and proposed[METADATA_VERSION] < oldest.level:
            raise self._invalid(update, f"{text}{METADATA_VERSION}={oldest.level} ({oldest.name})")
        dependency = feature.levels[update.level]
        if dependency is not None and proposed.get(dependency[0], 0) < dependency[1]:
            raise self._invalid(update, f"{text}{dependency[0]} level {dependency[1]}")

    def update_kraft(self, update: FeatureUpdate, validate_only: bool, epoch: int) -> list[NoOpRecord]:
        """Asks the raft client for an upgrade. Raises RefusedUpdateError. [FEA-17, FEA-18]"""
        if update.type is not UpgradeType.UPGRADE:
            if update.level == self.raft.version:
                return []
            raise self._invalid(update, "Can't downgrade the version of this feature.")
        if update.level >= len(FEATURES[KRAFT_VERSION].levels):
            raise self._invalid(update, f"Unknown KRaft feature level: {update.level}")
        try:
            self.raft.upgrade(epoch, update.level, validate_only)
        except RaftClientError as e:
            raise RefusedUpdateError(str(e)) from e
        return [NoOpRecord()]

    def replay(self, record: FeatureLevelRecord) -> None:
        """Raises UnsupportedRecordError, UnknownLevelError. [FEA-19, FEA-20]"""
        supported = self.supported.get(record.name, DISABLED)
        if record.level not in supported:
            shown = f"FeatureLevelRecord(name='{record.name}', featureLevel={record.level})"
            raise UnsupportedRecordError(
                f"Tried to apply FeatureLevelRecord {shown}, but this controller only supports versions {supported}"
            )
        if record.name == METADATA_VERSION:
            if record.level not in BY_LEVEL:
                raise UnknownLevelError(
                    f"No MetadataVersion with feature level {record.level}. Valid feature levels are from "
                    f"{VERSIONS[0].level} to {VERSIONS[-1].level}."
                )
            self.version.set(record.level)
        elif record.name == KRAFT_VERSION:
            return
        elif record.level:
            self.levels.put(record.name, record.level)
        else:
            self.levels.remove(record.name)

    def finalized_features(self, epoch: int) -> dict[str, int]:
        """All features that are finalized at an epoch. Raises UnknownMetadataVersionError. [FEA-21, FEA-22]"""
        return {METADATA_VERSION: self.metadata_version(epoch), **dict(self.levels.items(epoch))}

    def is_controller_id(self, id: int) -> bool:
        """Whether a node is in the quorum. [FEA-25]"""
        return id in self.quorum

    def is_elr_feature_enabled(self) -> bool:
        """Whether eligible leader replicas are in use. [FEA-24]"""
        return bool(self.levels.get(ELR_VERSION))
