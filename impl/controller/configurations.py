"""The controller's dynamic configurations, on timeline collections: a map of maps, and the set of brokers in it.

The map of a resource is made when its first key is set, and forgotten when its last one is gone. Both maps, and the
set, are read and put back at an epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from kafkaspec.impl.controller.timeline import SnapshotRegistry, TimelineHashMap, TimelineHashSet, TimelineObject
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH

MIN_INSYNC: Final = "min.insync.replicas"
CORDONED_DIRS: Final = "cordoned.log.dirs"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
ELR_FEATURE: Final = "eligible.leader.replicas.version"
LENGTH: Final = 0x7FFF
"""of a value, in Java's characters"""
BLANKS: Final = "".join(map(chr, range(0x21)))
"""what Java trims"""
CORDONED_SUPPORTED: Final = 30
"""the metadata.version from which on log directories can be cordoned"""


class Type(Enum):
    """What kind of thing is configured."""

    TOPIC = "TOPIC"
    BROKER = "BROKER"
    GROUP = "GROUP"


class Resource(NamedTuple):
    """What is configured."""

    type: Type
    name: str


CLUSTER: Final = Resource(Type.BROKER, "")


# ---- the schema ------------------------------------------------------------------------------------------------------
class Key(NamedTuple):
    """A key of the schema."""

    default: str
    is_list: bool = False
    synonyms: tuple[tuple[str, Callable[[str], str]], ...] = ()
    """by which names brokers have a topic's key, and what makes its value of theirs"""


def _same(value: str) -> str:
    return value


def _hours_to_ms(value: str) -> str:
    """Of what is no number of hours, 0 ms."""
    text = value.strip(BLANKS)
    digits = text.removeprefix("-" if text[:1] == "-" else "+").lstrip("0") or text[-1:]
    hours = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= len(str(INT_MAX)) else 0
    if text[:1] == "-":
        hours = -hours
    return str(hours * 3_600_000 if -INT_MAX - 1 <= hours <= INT_MAX else 0)


SCHEMA: Final[Mapping[Type, Mapping[str, Key]]] = {
    Type.TOPIC: {
        "cleanup.policy": Key("delete", True, (("log.cleanup.policy", _same),)),
        MIN_INSYNC: Key("1", False, ((MIN_INSYNC, _same),)),
        UNCLEAN_ELECTION: Key("false", False, ((UNCLEAN_ELECTION, _same),)),
        "retention.ms": Key("604800000", False, (("log.retention.ms", _same), ("log.retention.hours", _hours_to_ms))),
    },
    Type.BROKER: {
        "log.cleanup.policy": Key("delete", True),
        CORDONED_DIRS: Key("", True),
        MIN_INSYNC: Key("1"),
    },
}


# ---- requests, records, answers --------------------------------------------------------------------------------------
class Operation(Enum):
    """What is done with the value of a key."""

    SET = "SET"
    DELETE = "DELETE"
    APPEND = "APPEND"
    SUBTRACT = "SUBTRACT"


class ConfigRecord(NamedTuple):
    """A key's value; None for none."""

    resource: Resource
    key: str
    value: str | None


class ClearElrRecord(NamedTuple):
    """No eligible leader replicas: of a topic, or of all."""

    topic: str


class FeatureRecord(NamedTuple):
    """The level of a feature."""

    name: str
    level: int


Record = ConfigRecord | ClearElrRecord | FeatureRecord


class ApiError(Exception):
    """A resource is refused; the error is that of Kafka's protocol."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


class InvalidConfigError(ApiError):
    """A value, or a change, is refused."""

    def __init__(self, message: str) -> None:
        super().__init__("INVALID_CONFIG", message)


@dataclass
class AlterResult:
    """An error for each resource, None for one that is accepted, and the records of all of them."""

    errors: list[ApiError | None] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    atomic: bool = True


class Surroundings:
    """What the manager asks: may values be so, is there such a resource, does the policy allow it. Kafka's are given to
    it; these allow everything."""

    def validate(self, resource: Resource, configs: Mapping[str, str], existing: Mapping[str, str]) -> None:
        """Raises ApiError."""

    def check_existence(self, resource: Resource) -> None:
        """Raises ApiError."""

    def check_policy(self, resource: Resource, configs: Mapping[str, str | None]) -> None:
        """Raises ApiError."""

    def is_supported(self, type: Type, key: str) -> bool:
        """Whether this release has the key."""
        return True


def split(text: str) -> list[str]:
    """Java's `split(",")`: no empty parts at the end, and one part of an empty text."""
    if text == "":
        return [""]
    found = text.split(",")
    while found and found[-1] == "":
        found.pop()
    return found


def units(text: str) -> int:
    """Java's `length()`: a character above U+FFFF has two."""
    return len(text) + sum(map("\uffff".__lt__, text))


def directories(text: str | None) -> list[str]:
    """A list of directories, without the blanks around commas."""
    return [] if text is None else [part.strip() for part in text.strip().split(",")]


Changes = Sequence[tuple[str, Operation, str | None]]
Configs = TimelineHashMap[str, str]


class ConfigurationControlManager:
    """Dynamic configurations of one controller."""

    def __init__(
        self, registry: SnapshotRegistry, node_id: int, static: Mapping[str, str], surroundings: Surroundings
    ) -> None:
        self.registry, self.static, self.surroundings = registry, static, surroundings
        self.current_controller = Resource(Type.BROKER, str(node_id))
        self.configs: TimelineHashMap[Resource, Configs] = TimelineHashMap(registry, 0)
        self.brokers_with_configs: TimelineHashSet[int] = TimelineHashSet(registry, 0)
        self.metadata_version: TimelineObject[int] = TimelineObject(registry, CORDONED_SUPPORTED)
        self.elr_level: TimelineObject[int] = TimelineObject(registry, 0)

    @property
    def elr(self) -> bool:
        """Whether eligible leader replicas are in use."""
        return self.elr_level.get() >= 1

    def of(self, resource: Resource, epoch: int = LATEST_EPOCH) -> dict[str, str]:
        """What a resource has. [CFG-18, CFG-21]"""
        configs = self.configs.get(resource, epoch)
        return {} if configs is None else dict(configs.items(epoch))

    # ---- requests
    def incremental_alter_configs(
        self, changed: Iterable[tuple[Resource, Changes]], newly_created: bool, forwarded: bool
    ) -> AlterResult:
        """Each resource by itself. [CFG-1, CFG-2]"""
        result = AlterResult()
        for resource, changes in changed:
            try:
                records = list(self.incremental_records(resource, changes))
                self.validate(resource, records, (), newly_created, forwarded)
            except ApiError as e:
                result.errors.append(e)
            else:
                result.errors.append(None)
                result.records += records
        result.records += self.clear_elr_records(result.records)
        return result

    def incremental_records(self, resource: Resource, changes: Changes) -> Iterable[ConfigRecord]:
        """A record for each change that is one. Raises InvalidConfigError. [CFG-4]"""
        existing = self.of(resource)
        for key, operation, given in changes:
            value = self.new_value(resource, key, operation, given, existing.get(key))
            if self.needs_record(resource, existing.get(key), value):
                yield ConfigRecord(resource, key, value)

    @staticmethod
    def needs_record(resource: Resource, before: str | None, after: str | None) -> bool:
        """Brokers load again what a value names, if there is a record. [CFG-4]"""
        return before != after or resource.type is Type.BROKER

    def new_value(
        self, resource: Resource, key: str, operation: Operation, given: str | None, current: str | None
    ) -> str | None:
        """What a key has after the change. Raises InvalidConfigError. [CFG-3, CFG-7]"""
        if operation is Operation.SET:
            return given
        if operation is Operation.DELETE:
            return None
        known = SCHEMA.get(resource.type, {}).get(key)
        if known is None or not known.is_list:
            raise InvalidConfigError(f"Can't {operation.value} to key {key} because its type is not LIST.")
        values = list(filter(None, split(known.default if current is None else current)))
        for part in split(given or ""):
            if operation is Operation.SUBTRACT and part in values:
                values.remove(part)
            if operation is Operation.APPEND and part not in values:
                values.append(part)
        return ",".join(values)

    def legacy_alter_configs(
        self, new: Iterable[tuple[Resource, Mapping[str, str | None]]], newly_created: bool, forwarded: bool
    ) -> AlterResult:
        """Each resource by itself. [CFG-1, CFG-2, CFG-5]"""
        result = AlterResult()
        for resource, configs in new:
            existing = self.of(resource)
            altered = [
                ConfigRecord(resource, k, v)
                for k, v in configs.items()
                if self.needs_record(resource, existing.get(k), v)
            ]
            deleted = [ConfigRecord(resource, k, None) for k in sorted(existing.keys() - configs.keys())]
            try:
                self.validate(resource, altered, deleted, newly_created, forwarded)
            except ApiError as e:
                result.errors.append(e)
            else:
                result.errors.append(None)
                result.records += [*altered, *deleted]
        result.records += self.clear_elr_records(result.records)
        return result

    def clear_elr_records(self, records: Iterable[Record]) -> list[Record]:
        """One for each record of min.insync.replicas, while eligible leader replicas are in use. [CFG-13]"""
        found: list[Record] = []
        for record in records if self.elr else ():
            if isinstance(record, ConfigRecord) and record.key == MIN_INSYNC:
                found.append(ClearElrRecord(record.resource.name if record.resource.type is Type.TOPIC else ""))
        return found

    # ---- checks
    def validate(
        self,
        resource: Resource,
        altered: Sequence[ConfigRecord],
        deleted: Sequence[ConfigRecord],
        newly_created: bool,
        forwarded: bool,
    ) -> None:
        """Raises ApiError. [CFG-10, CFG-11, CFG-12]"""
        existing = self.of(resource)
        everything = dict(existing)
        for record in altered:
            self.check_record(record, existing, forwarded)
            self.check_length(record)
            self._put(everything, record)
        for record in deleted:
            self.check_record(record, existing, forwarded)
            self._put(everything, record)
        self.surroundings.validate(resource, everything, existing)
        if not newly_created:
            self.surroundings.check_existence(resource)
        self.surroundings.check_policy(resource, self.for_the_policy(altered, deleted))

    @staticmethod
    def for_the_policy(altered: Sequence[ConfigRecord], deleted: Sequence[ConfigRecord]) -> dict[str, str | None]:
        """What was asked for by name. [CFG-12]"""
        return {record.key: record.value for record in altered}

    @staticmethod
    def _put(configs: dict[str, str], record: ConfigRecord) -> None:
        if record.value is None:
            configs.pop(record.key, None)
        else:
            configs[record.key] = record.value

    @staticmethod
    def check_length(record: ConfigRecord) -> None:
        """Raises InvalidConfigError. [CFG-6]"""
        if record.value is not None and units(record.value) > LENGTH:
            raise InvalidConfigError(
                f"The configuration value cannot be added because it exceeds the maximum value size of {LENGTH} bytes."
            )

    def check_record(self, record: ConfigRecord, existing: Mapping[str, str], forwarded: bool) -> None:
        """What brokers have is looked at. Raises InvalidConfigError. [CFG-8, CFG-9]"""
        if record.resource.type is not Type.BROKER:
            return
        if record.key == MIN_INSYNC and self.elr:
            self.check_min_insync(record)
        if record.key == CORDONED_DIRS:
            self.check_cordoned(record, existing, forwarded)

    def check_min_insync(self, record: ConfigRecord) -> None:
        """While eligible leader replicas are in use. Raises InvalidConfigError. [CFG-8]"""
        if record.resource.name:
            raise InvalidConfigError(f"Broker-level {MIN_INSYNC} cannot be altered while ELR is enabled.")
        if record.value is None:
            raise InvalidConfigError(f"Cluster-level {MIN_INSYNC} cannot be removed while ELR is enabled.")

    def check_cordoned(self, record: ConfigRecord, existing: Mapping[str, str], forwarded: bool) -> None:
        """Raises InvalidConfigError. [CFG-9]"""
        if self.metadata_version.get() < CORDONED_SUPPORTED:
            raise InvalidConfigError(
                f"The {CORDONED_DIRS} configuration value cannot be set because it requires metadata.version >= 4.3-IV0"
            )
        asked = [] if record.value is None or not record.value.strip() else directories(record.value)
        known = directories(existing.get(CORDONED_DIRS))
        if not forwarded and any(d not in known for d in asked):
            raise InvalidConfigError(
                f"When updating {CORDONED_DIRS} via controllers,  the new value must be a subset of the current "
                "configuration value."
            )

    # ---- records
    def replay(self, record: ConfigRecord) -> None:
        """Give a key its value, or take it away. [CFG-15, CFG-16]"""
        resource = record.resource
        if not self.surroundings.is_supported(resource.type, record.key):
            return
        own = self.configs.get(resource)
        if own is None:
            own = TimelineHashMap(self.registry, 0)
            self.configs.put(resource, own)
            if resource.type is Type.BROKER and resource.name:
                self.brokers_with_configs.add(int(resource.name))
        if record.value is None:
            own.remove(record.key)
        else:
            own.put(record.key, record.value)
        if own.size() == 0:
            self.configs.remove(resource)
            if resource.type is Type.BROKER and resource.name:
                self.brokers_with_configs.remove(int(resource.name))

    def replay_all(self, records: Iterable[Record]) -> None:
        """Those of a batch that are the configurations', and the level of the feature."""
        for record in records:
            if isinstance(record, ConfigRecord):
                self.replay(record)
            elif isinstance(record, FeatureRecord):
                self.elr_level.set(record.level)

    def delete_topic_configs(self, name: str) -> None:
        """Of a topic that is deleted. [CFG-17]"""
        self.configs.remove(Resource(Type.TOPIC, name))

    # ---- eligible leader replicas
    def update_features(self, level: int, validate_only: bool) -> AlterResult:
        """The records that switch eligible leader replicas on or off, and what makes that safe before. [CFG-14]"""
        if validate_only:
            return AlterResult([None], atomic=False)
        safe = self.elr_safety_records() if level > 0 else []
        return AlterResult([None], [*safe, FeatureRecord(ELR_FEATURE, level)])

    def elr_safety_records(self) -> list[Record]:
        """min.insync.replicas of the cluster alone. [CFG-14]"""
        found: list[Record] = []
        if MIN_INSYNC not in self.of(CLUSTER):
            found.append(ConfigRecord(CLUSTER, MIN_INSYNC, str(self.static_min_insync_replicas())))
        for id in sorted(self.brokers_with_configs.elements()):
            broker = Resource(Type.BROKER, str(id))
            if MIN_INSYNC in self.of(broker):
                found.append(ConfigRecord(broker, MIN_INSYNC, None))
        return found

    def static_min_insync_replicas(self) -> int:
        """The static value, or the default. [CFG-14]"""
        return int(self.static.get(MIN_INSYNC, SCHEMA[Type.BROKER][MIN_INSYNC].default))

    # ---- reads
    def places(self) -> Iterable[tuple[str, Mapping[str, str]]]:
        """Where brokers have a value, the first place first. [CFG-19]"""
        return (
            ("DYNAMIC_BROKER_CONFIG", self.of(self.current_controller)),
            ("DYNAMIC_DEFAULT_BROKER_CONFIG", self.of(CLUSTER)),
            ("STATIC_BROKER_CONFIG", self.static),
        )

    def topic_config(self, topic: str, key: str) -> tuple[str, str]:
        """The effective value, and where it is from. [CFG-19]"""
        own = self.of(Resource(Type.TOPIC, topic))
        if key in own:
            return own[key], "DYNAMIC_TOPIC_CONFIG"
        known = SCHEMA[Type.TOPIC][key]
        for source, configs in self.places():
            for name, converted in known.synonyms:
                if name in configs:
                    return converted(configs[name]), source
        return known.default, "DEFAULT_CONFIG"

    def unclean_enabled(self, topic: str) -> bool:
        """Whether leaders of a topic may be elected uncleanly. [CFG-20]"""
        return self.topic_config(topic, UNCLEAN_ELECTION)[0].lower() == "true"

    def describe_configs(self, resource: Resource, keys: Sequence[str], epoch: int) -> dict[str, str]:
        """What a resource had at an epoch. [CFG-21]"""
        found = self.of(resource, epoch)
        return {k: found[k] for k in keys if k in found} if keys else found
