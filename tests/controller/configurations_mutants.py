"""Faults of dynamic configurations, each with the clauses that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kafkaspec.impl.controller import configurations as impl
from kafkaspec.impl.controller.configurations import (
    AlterResult,
    Changes,
    ConfigRecord,
    ConfigurationControlManager,
    Operation,
    Record,
    Resource,
    Type,
)
from kafkaspec.impl.controller.configurations_driver import Driver, StandIn
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.controller import configurations as model
from kafkaspec.models.controller.configurations import Broker
from kafkaspec.mutants.mutant import Mutant, driver_with, faulty_machine, of_impl, of_model, of_spec
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH
from kafkaspec.spec.controller import configurations as spec


def _of(make: type[ConfigurationControlManager]) -> Callable[[], Driver]:
    """What makes a driver of a faulty manager."""
    return driver_with(Driver, make=make)


# ---- requests
class AllOrNothing(ConfigurationControlManager):
    """A resource that is refused takes the others with it."""

    def incremental_alter_configs(
        self, changed: Iterable[tuple[Resource, Changes]], newly_created: bool, forwarded: bool
    ) -> AlterResult:
        result = super().incremental_alter_configs(changed, newly_created, forwarded)
        return AlterResult(result.errors, [], True) if any(result.errors) else result


class KeyByKey(ConfigurationControlManager):
    """Of a resource those changes are done that can be."""

    def incremental_records(self, resource: Resource, changes: Changes) -> Iterable[ConfigRecord]:
        for change in changes:
            try:
                yield from super().incremental_records(resource, [change])
            except impl.InvalidConfigError:
                if len(changes) == 1:
                    raise


class OneByOne(ConfigurationControlManager):
    def incremental_alter_configs(
        self, changed: Iterable[tuple[Resource, Changes]], newly_created: bool, forwarded: bool
    ) -> AlterResult:
        result = super().incremental_alter_configs(changed, newly_created, forwarded)
        return AlterResult(result.errors, result.records, False)


class AtOnce(ConfigurationControlManager):
    """A request changes what is in memory."""

    def legacy_alter_configs(
        self, new: Iterable[tuple[Resource, Mapping[str, str | None]]], newly_created: bool, forwarded: bool
    ) -> AlterResult:
        result = super().legacy_alter_configs(new, newly_created, forwarded)
        self.replay_all(result.records)
        return result


class IncrementalAtOnce(ConfigurationControlManager):
    def incremental_alter_configs(
        self, changed: Iterable[tuple[Resource, Changes]], newly_created: bool, forwarded: bool
    ) -> AlterResult:
        result = super().incremental_alter_configs(changed, newly_created, forwarded)
        self.replay_all(result.records)
        return result


class AppendsToNothing(ConfigurationControlManager):
    """A list that is not set is empty."""

    def new_value(
        self, resource: Resource, key: str, operation: Operation, given: str | None, current: str | None
    ) -> str | None:
        return super().new_value(resource, key, operation, given, current or "")


class AppendsTwice(ConfigurationControlManager):
    """What is in the list already is added again."""

    def new_value(
        self, resource: Resource, key: str, operation: Operation, given: str | None, current: str | None
    ) -> str | None:
        found = super().new_value(resource, key, operation, given, current)
        return f"{current},{given}" if operation is Operation.APPEND and current else found


class OnePart(ConfigurationControlManager):
    """What is appended or taken out is one part, commas or not."""

    def new_value(
        self, resource: Resource, key: str, operation: Operation, given: str | None, current: str | None
    ) -> str | None:
        if given is None or "," not in given or operation not in (Operation.APPEND, Operation.SUBTRACT):
            return super().new_value(resource, key, operation, given, current)
        before = super().new_value(resource, key, Operation.SUBTRACT, "", current)
        if operation is Operation.SUBTRACT:
            return before
        return ",".join(part for part in (before, given) if part)


class SubtractsAll(ConfigurationControlManager):
    def new_value(
        self, resource: Resource, key: str, operation: Operation, given: str | None, current: str | None
    ) -> str | None:
        found = super().new_value(resource, key, operation, given, current)
        return None if operation is Operation.SUBTRACT and not found else found


class AnyIsAList(ConfigurationControlManager):
    def new_value(
        self, resource: Resource, key: str, operation: Operation, given: str | None, current: str | None
    ) -> str | None:
        try:
            return super().new_value(resource, key, operation, given, current)
        except impl.InvalidConfigError:
            return given


class OnlyChanges(ConfigurationControlManager):
    """A broker's value that stays leaves no record."""

    @staticmethod
    def needs_record(resource: Resource, before: str | None, after: str | None) -> bool:
        return before != after


class AlwaysRecords(ConfigurationControlManager):
    @staticmethod
    def needs_record(resource: Resource, before: str | None, after: str | None) -> bool:
        return True


class LegacyAdds(ConfigurationControlManager):
    """Keys that are not named stay."""

    def legacy_alter_configs(
        self, new: Iterable[tuple[Resource, Mapping[str, str | None]]], newly_created: bool, forwarded: bool
    ) -> AlterResult:
        result = super().legacy_alter_configs(new, newly_created, forwarded)
        named = {r: configs for r, configs in new}  # noqa: C416
        kept = [r for r in result.records if not isinstance(r, ConfigRecord) or r.key in named[r.resource]]
        return AlterResult(result.errors, kept, True)


class LegacyDeletesFirst(ConfigurationControlManager):
    def legacy_alter_configs(
        self, new: Iterable[tuple[Resource, Mapping[str, str | None]]], newly_created: bool, forwarded: bool
    ) -> AlterResult:
        result = super().legacy_alter_configs(new, newly_created, forwarded)
        ordered = sorted(result.records, key=lambda r: not isinstance(r, ConfigRecord) or r.value is not None)
        return AlterResult(result.errors, ordered, True)


class AnyLength(ConfigurationControlManager):
    @staticmethod
    def check_length(record: ConfigRecord) -> None:
        pass


class CountsCodePoints(ConfigurationControlManager):
    @staticmethod
    def check_length(record: ConfigRecord) -> None:
        if record.value is not None and len(record.value) > impl.LENGTH:
            ConfigurationControlManager.check_length(record)


# ---- checks
class BrokersAreFree(ConfigurationControlManager):
    def check_min_insync(self, record: ConfigRecord) -> None:
        if not record.resource.name:
            super().check_min_insync(record)


class ClusterIsFree(ConfigurationControlManager):
    def check_min_insync(self, record: ConfigRecord) -> None:
        if record.resource.name:
            super().check_min_insync(record)


class LegacyIsFree(ConfigurationControlManager):
    """What a legacy request deletes by leaving it out is not checked."""

    def validate(
        self,
        resource: Resource,
        altered: Sequence[ConfigRecord],
        deleted: Sequence[ConfigRecord],
        newly_created: bool,
        forwarded: bool,
    ) -> None:
        free = [r for r in deleted if r.key != impl.MIN_INSYNC]
        super().validate(resource, altered, free, newly_created, forwarded)


class ClusterIsFixed(ConfigurationControlManager):
    """It is not changed either."""

    def check_min_insync(self, record: ConfigRecord) -> None:
        super().check_min_insync(record._replace(value=None))


class CordonsAlways(ConfigurationControlManager):
    def check_cordoned(self, record: ConfigRecord, existing: Mapping[str, str], forwarded: bool) -> None:
        if self.metadata_version.get() >= impl.CORDONED_SUPPORTED:
            super().check_cordoned(record, existing, forwarded)


class CordonsAnything(ConfigurationControlManager):
    def check_cordoned(self, record: ConfigRecord, existing: Mapping[str, str], forwarded: bool) -> None:
        super().check_cordoned(record, existing, True)


class CordonsNothing(ConfigurationControlManager):
    def check_cordoned(self, record: ConfigRecord, existing: Mapping[str, str], forwarded: bool) -> None:
        super().check_cordoned(record, existing, False)


class ChecksTheChange(ConfigurationControlManager):
    """The check of values sees what is changed alone."""

    def validate(
        self,
        resource: Resource,
        altered: Sequence[ConfigRecord],
        deleted: Sequence[ConfigRecord],
        newly_created: bool,
        forwarded: bool,
    ) -> None:
        before = dict(self.of(resource))
        around, self.surroundings = self.surroundings, impl.Surroundings()
        try:
            super().validate(resource, altered, deleted, newly_created, forwarded)
        finally:
            self.surroundings = around
        around.validate(resource, {r.key: r.value for r in altered if r.value is not None}, before)
        if not newly_created:
            around.check_existence(resource)
        around.check_policy(resource, self.for_the_policy(altered, deleted))


class ChecksNewOnes(ConfigurationControlManager):
    def validate(
        self,
        resource: Resource,
        altered: Sequence[ConfigRecord],
        deleted: Sequence[ConfigRecord],
        newly_created: bool,
        forwarded: bool,
    ) -> None:
        super().validate(resource, altered, deleted, False, forwarded)


class TrustsTheName(ConfigurationControlManager):
    def validate(
        self,
        resource: Resource,
        altered: Sequence[ConfigRecord],
        deleted: Sequence[ConfigRecord],
        newly_created: bool,
        forwarded: bool,
    ) -> None:
        super().validate(resource, altered, deleted, True, forwarded)


class PolicyOfDeletions(ConfigurationControlManager):
    """The policy is told of keys that a legacy request leaves out."""

    @staticmethod
    def for_the_policy(altered: Sequence[ConfigRecord], deleted: Sequence[ConfigRecord]) -> dict[str, str | None]:
        return {record.key: record.value for record in (*altered, *deleted)}


class PolicyOfAll(ConfigurationControlManager):
    """The policy is told of all that the resource would have."""

    def validate(
        self,
        resource: Resource,
        altered: Sequence[ConfigRecord],
        deleted: Sequence[ConfigRecord],
        newly_created: bool,
        forwarded: bool,
    ) -> None:
        gone = {record.key for record in (*altered, *deleted)}
        kept = [ConfigRecord(resource, key, value) for key, value in self.of(resource).items() if key not in gone]
        self.kept = kept
        super().validate(resource, altered, deleted, newly_created, forwarded)

    def for_the_policy(  # type: ignore[override]
        self, altered: Sequence[ConfigRecord], deleted: Sequence[ConfigRecord]
    ) -> dict[str, str | None]:
        return {record.key: record.value for record in (*self.kept, *altered)}


class PolicyOfValues(ConfigurationControlManager):
    """The policy is not told of deletions."""

    @staticmethod
    def for_the_policy(altered: Sequence[ConfigRecord], deleted: Sequence[ConfigRecord]) -> dict[str, str | None]:
        return {record.key: record.value for record in altered if record.value is not None}


# ---- eligible leader replicas
class ElrStays(ConfigurationControlManager):
    def clear_elr_records(self, records: Iterable[Record]) -> list[Record]:
        return []


class ElrOfOneTopic(ConfigurationControlManager):
    """What the cluster has clears those of nobody."""

    def clear_elr_records(self, records: Iterable[Record]) -> list[Record]:
        return [r for r in super().clear_elr_records(records) if isinstance(r, impl.ClearElrRecord) and r.topic]


class ElrOfAll(ConfigurationControlManager):
    def clear_elr_records(self, records: Iterable[Record]) -> list[Record]:
        return [impl.ClearElrRecord("") for _ in super().clear_elr_records(records)]


class FeatureFirst(ConfigurationControlManager):
    def update_features(self, level: int, validate_only: bool) -> AlterResult:
        result = super().update_features(level, validate_only)
        return AlterResult(result.errors, result.records[::-1], result.atomic)


class FeatureAlone(ConfigurationControlManager):
    def elr_safety_records(self) -> list[Record]:
        return []


class ClusterAlone(ConfigurationControlManager):
    def elr_safety_records(self) -> list[Record]:
        return [r for r in super().elr_safety_records() if isinstance(r, ConfigRecord) and r.value is not None]


class StaticWins(ConfigurationControlManager):
    """The cluster's own value is replaced."""

    def elr_safety_records(self) -> list[Record]:
        others = [r for r in super().elr_safety_records() if isinstance(r, ConfigRecord) and r.value is None]
        return [ConfigRecord(impl.CLUSTER, impl.MIN_INSYNC, str(self.static_min_insync_replicas())), *others]


class DefaultWins(ConfigurationControlManager):
    def static_min_insync_replicas(self) -> int:
        return 1


class OnlyOnce(ConfigurationControlManager):
    """Switched on again, it leaves the configurations alone."""

    def update_features(self, level: int, validate_only: bool) -> AlterResult:
        if self.elr and level and not validate_only:
            return AlterResult([None], [impl.FeatureRecord(impl.ELR_FEATURE, level)], False)
        return super().update_features(level, validate_only)


# ---- records
class EmptyStays(ConfigurationControlManager):
    """A resource whose last key is gone is not forgotten."""

    def replay(self, record: ConfigRecord) -> None:
        before = self.configs.get(record.resource)
        super().replay(record)
        if before is not None and self.configs.get(record.resource) is None:
            self.configs.put(record.resource, before)


class IndexStays(ConfigurationControlManager):
    def replay(self, record: ConfigRecord) -> None:
        super().replay(record)
        if record.resource.type is Type.BROKER and record.resource.name and record.value is None:
            self.brokers_with_configs.add(int(record.resource.name))


class IndexOfTheFirst(ConfigurationControlManager):
    """A broker that comes back is not in the index."""

    def replay(self, record: ConfigRecord) -> None:
        there = record.resource.name.isdigit() and self.brokers_with_configs.contains(int(record.resource.name))
        super().replay(record)
        if record.key == impl.UNCLEAN_ELECTION and record.resource.name.isdigit() and not there:
            self.brokers_with_configs.remove(int(record.resource.name))


class NullIsAValue(ConfigurationControlManager):
    def replay(self, record: ConfigRecord) -> None:
        super().replay(record._replace(value="") if record.value is None else record)


class KeepsWhatIsGone(StandIn):
    def is_supported(self, type: Type, key: str) -> bool:
        return True


class WithoutSupport(Driver):
    def reset(self, arguments: Mapping[str, Any]) -> None:
        super().reset(arguments)
        self.around = KeepsWhatIsGone(self.first.missing)
        self.subject.surroundings = self.around


class TopicsStay(ConfigurationControlManager):
    def delete_topic_configs(self, name: str) -> None:
        pass


class DeletesEveryTopic(ConfigurationControlManager):
    def delete_topic_configs(self, name: str) -> None:
        for resource in [r for r, _ in self.configs.items() if r.type is Type.TOPIC]:
            self.configs.remove(resource)


# ---- the past, and reads
class RevertsNothing(Driver):
    def revert_to_snapshot(self, epoch: int) -> None:
        kept = [(r, self.subject.of(r)) for r, _ in self.subject.configs.items()]
        super().revert_to_snapshot(epoch)
        for resource, configs in kept:
            for key, value in configs.items():
                self.subject.replay(ConfigRecord(resource, key, value))


class InnerPresent(ConfigurationControlManager):
    """Of the map of maps the outer one alone is read at an epoch."""

    def of(self, resource: Resource, epoch: int = LATEST_EPOCH) -> dict[str, str]:
        configs = self.configs.get(resource, epoch)
        return {} if configs is None else dict(configs.items())


class ResetsTheMapAlone(Driver):
    def reset_registry(self, version: int) -> None:
        brokers = [*self.subject.brokers_with_configs.elements()]
        super().reset_registry(version)
        self.subject.brokers_with_configs.add_all(brokers)


class ClusterFirst(ConfigurationControlManager):
    def places(self) -> Iterable[tuple[str, Mapping[str, str]]]:
        node, cluster, static = super().places()
        return cluster, node, static


class StaticFirst(ConfigurationControlManager):
    def places(self) -> Iterable[tuple[str, Mapping[str, str]]]:
        return [*super().places()][::-1]


class AnyNode(ConfigurationControlManager):
    """Some broker's own value is taken for this controller's."""

    def places(self) -> Iterable[tuple[str, Mapping[str, str]]]:
        _, cluster, static = super().places()
        return ("DYNAMIC_BROKER_CONFIG", self.of(Resource(Type.BROKER, "1"))), cluster, static


class HoursAreMs(ConfigurationControlManager):
    def topic_config(self, topic: str, key: str) -> tuple[str, str]:
        value, source = super().topic_config(topic, key)
        hours = key == "retention.ms" and "BROKER" in source and value.endswith("00000")
        return (str(int(value) // 3_600_000), source) if hours else (value, source)


class LowerCaseAlone(ConfigurationControlManager):
    def unclean_enabled(self, topic: str) -> bool:
        return self.topic_config(topic, impl.UNCLEAN_ELECTION)[0] == "true"


class TopicsAlone(ConfigurationControlManager):
    def unclean_enabled(self, topic: str) -> bool:
        value, source = self.topic_config(topic, impl.UNCLEAN_ELECTION)
        return value.lower() == "true" and source == "DYNAMIC_TOPIC_CONFIG"


class NoKeysIsNone(ConfigurationControlManager):
    def describe_configs(self, resource: Resource, keys: Sequence[str], epoch: int) -> dict[str, str]:
        return super().describe_configs(resource, keys, epoch) if keys else {}


class DescribesThePresent(ConfigurationControlManager):
    def describe_configs(self, resource: Resource, keys: Sequence[str], epoch: int) -> dict[str, str]:
        return super().describe_configs(resource, keys, LATEST_EPOCH)


# ---- what shows rarely
class TwoResources(ConfigurationControlManager):
    """A third resource of a request is not checked."""

    def incremental_alter_configs(
        self, changed: Iterable[tuple[Resource, Changes]], newly_created: bool, forwarded: bool
    ) -> AlterResult:
        first, rest = [*changed][:2], [*changed][2:]
        result = super().incremental_alter_configs(first, newly_created, forwarded)
        for resource, changes in rest:
            try:
                more = [*self.incremental_records(resource, changes)]
            except impl.InvalidConfigError as e:
                result.errors.append(e)
                continue
            result.errors.append(None)
            result.records += [*more, *self.clear_elr_records(more)]
        return result


class KeepsEmptyParts(ConfigurationControlManager):
    """Of the list before an addition."""

    def new_value(
        self, resource: Resource, key: str, operation: Operation, given: str | None, current: str | None
    ) -> str | None:
        found = super().new_value(resource, key, operation, given, current)
        empty = operation is Operation.APPEND and current is not None and ",," in current
        return f"{current},{given}" if empty else found


class EmptyIsDefault(ConfigurationControlManager):
    """An empty list is one that is not set."""

    def new_value(
        self, resource: Resource, key: str, operation: Operation, given: str | None, current: str | None
    ) -> str | None:
        return super().new_value(resource, key, operation, given, current or None)


class BlanksCount(ConfigurationControlManager):
    """Around the commas of log directories."""

    def check_cordoned(self, record: ConfigRecord, existing: Mapping[str, str], forwarded: bool) -> None:
        before = existing.get(impl.CORDONED_DIRS)
        joined = {**existing, impl.CORDONED_DIRS: before.replace(" , ", "+")} if before is not None else existing
        super().check_cordoned(record, joined, forwarded)


class BlankIsADirectory(ConfigurationControlManager):
    def check_cordoned(self, record: ConfigRecord, existing: Mapping[str, str], forwarded: bool) -> None:
        blank = record.value is not None and record.value.isspace()
        super().check_cordoned(record._replace(value="?") if blank else record, existing, forwarded)


class ClearsOnce(ConfigurationControlManager):
    """However many records of a request there are."""

    def clear_elr_records(self, records: Iterable[Record]) -> list[Record]:
        return super().clear_elr_records(records)[:1]


class OneBrokerLosesIt(ConfigurationControlManager):
    def elr_safety_records(self) -> list[Record]:
        found = super().elr_safety_records()
        brokers = [r for r in found if isinstance(r, ConfigRecord) and r.value is None]
        return [r for r in found if r not in brokers[1:]]


class ElrForGood(ConfigurationControlManager):
    """Switched off, it is as it was."""

    was_on = False

    @property
    def elr(self) -> bool:
        self.was_on = self.was_on or super().elr
        return self.was_on


class RevertsTheMapAlone(Driver):
    """The index of brokers stays."""

    def revert_to_snapshot(self, epoch: int) -> None:
        before = {*self.subject.brokers_with_configs.elements()}
        super().revert_to_snapshot(epoch)
        self.subject.brokers_with_configs.add_all(before - {*self.subject.brokers_with_configs.elements()})


class DescribesTheLatestSnapshot(ConfigurationControlManager):
    def describe_configs(self, resource: Resource, keys: Sequence[str], epoch: int) -> dict[str, str]:
        return super().describe_configs(resource, keys, max(self.registry.epochs))


class HoursFromZero(ConfigurationControlManager):
    """Fewer are none."""

    def topic_config(self, topic: str, key: str) -> tuple[str, str]:
        value, source = super().topic_config(topic, key)
        return ("0" if value.startswith("-") and "BROKER" in source else value), source


class NoHoursIsNoValue(ConfigurationControlManager):
    """What is no number of hours leaves the default."""

    def topic_config(self, topic: str, key: str) -> tuple[str, str]:
        value, source = super().topic_config(topic, key)
        none = key == "retention.ms" and value == "0" and source != "DYNAMIC_TOPIC_CONFIG"
        return (impl.SCHEMA[Type.TOPIC][key].default, "DEFAULT_CONFIG") if none else (value, source)


class GroupsLoadAgain(ConfigurationControlManager):
    """As brokers do: a value that stays has a record."""

    @staticmethod
    def needs_record(resource: Resource, before: str | None, after: str | None) -> bool:
        return before != after or resource.type is not Type.TOPIC


class DeletedIsEmpty(ConfigurationControlManager):
    """A key that is deleted by name is an empty one to the policy."""

    @staticmethod
    def for_the_policy(altered: Sequence[ConfigRecord], deleted: Sequence[ConfigRecord]) -> dict[str, str | None]:
        return {record.key: record.value or "" for record in altered}


# ---- the spec
class DeletesOneMore(Driver):
    """The snapshot at the epoch itself, too."""

    def delete_snapshots_up_to(self, epoch: int) -> None:
        super().delete_snapshots_up_to(epoch + 1)


_spec = partial(faulty_machine, spec.machine)


def _replays_always(state: spec.Configurations, changed: Any, **flags: bool) -> Any:
    return spec.incremental_alter_configs(state, changed, **{**flags, "replayed": True})


def _keeps_what_brokers_have(state: spec.Configurations, level: int, validate_only: bool, replayed: bool) -> Any:
    done = spec.update_features(state, level, validate_only, replayed)
    kept = dict(done.state.present.configs) | {
        r: configs for r, configs in state.present.configs if r.type == "BROKER" and r.name
    }
    view = done.state.present._replace(configs=tuple(sorted(kept.items())))
    return done._replace(state=replace(done.state, present=view))


def _deletes_nothing(state: spec.Configurations, name: str) -> Any:
    return state


# ---- the model
def _brokers_are_free() -> LoadedModel:
    class Safety(model.Safety):
        @action("CFG-8", who="administrator")
        def set_broker(s, b: Broker) -> None:
            require(not s.elr or s.cluster)
            s.next.brokers = s.brokers | {b}

    return load(Safety)


def _cluster_is_free() -> LoadedModel:
    class Safety(model.Safety):
        @action("CFG-8", who="administrator")
        def remove_cluster(s) -> None:
            s.next.cluster = False

    return load(Safety)


def _switched_on_alone() -> LoadedModel:
    class Safety(model.Safety):
        @action("CFG-14", who="administrator")
        def switch_on(s) -> None:
            s.next.elr = True
            s.next.cluster = True

    return load(Safety)


MUTANTS: list[Mutant] = [
    of_impl("all or nothing", "CFG-1", "one refusal refuses the request", _of(AllOrNothing)),
    of_impl("key by key", "CFG-1", "of a resource what can be done", _of(KeyByKey)),
    of_impl("one by one", "CFG-1", "the batch is not atomic", _of(OneByOne)),
    of_impl("at once", "CFG-2", "a legacy request needs no replay", _of(AtOnce)),
    of_impl("incremental at once", "CFG-2", "a request needs no replay", _of(IncrementalAtOnce)),
    of_impl("appends to nothing", "CFG-3", "the default of a list does not count", _of(AppendsToNothing)),
    of_impl("appends twice", "CFG-3", "what is in the list already", _of(AppendsTwice)),
    of_impl("one part", "CFG-3", "commas or not", _of(OnePart), "KAFKA-13862"),
    of_impl("subtracts all", "CFG-3", "an empty list is none", _of(SubtractsAll)),
    of_impl("only changes", "CFG-4", "brokers load nothing again", _of(OnlyChanges), "KAFKA-14136"),
    of_impl("always records", "CFG-4", "of a topic's value that stays", _of(AlwaysRecords)),
    of_impl("legacy adds", "CFG-5", "keys that are not named stay", _of(LegacyAdds)),
    of_impl("legacy deletes first", "CFG-5", "before the keys that are named", _of(LegacyDeletesFirst)),
    of_impl("any length", "CFG-6", "of a value", _of(AnyLength)),
    of_impl("counts code points", "CFG-6", "of which Java may have two characters", _of(CountsCodePoints)),
    of_impl("any is a list", "CFG-7", "whatever the schema says", _of(AnyIsAList)),
    of_impl("brokers are free", "CFG-8", "to have a value of their own", _of(BrokersAreFree)),
    of_impl("cluster is free", "CFG-8", "to have none", _of(ClusterIsFree)),
    of_impl("legacy is free", "CFG-8", "to leave it out", _of(LegacyIsFree)),
    of_impl("cluster is fixed", "CFG-8", "the cluster's value is not changed either", _of(ClusterIsFixed)),
    of_impl("cordons always", "CFG-9", "before there is a metadata.version for it", _of(CordonsAlways)),
    of_impl("cordons anything", "CFG-9", "although no broker has looked at it", _of(CordonsAnything)),
    of_impl("cordons nothing", "CFG-9", "although a broker has looked at it", _of(CordonsNothing)),
    of_impl("checks the change", "CFG-10", "not what the resource would have", _of(ChecksTheChange)),
    of_impl("checks new ones", "CFG-11", "what is being created does not exist", _of(ChecksNewOnes)),
    of_impl("trusts the name", "CFG-11", "of a resource that is not there", _of(TrustsTheName), "KAFKA-13515"),
    of_impl("policy of deletions", "CFG-12", "that nobody named", _of(PolicyOfDeletions), "KAFKA-14195"),
    of_impl("policy of all", "CFG-12", "that the resource would have", _of(PolicyOfAll), "KAFKA-14039"),
    of_impl("policy of values", "CFG-12", "a deletion is not its matter", _of(PolicyOfValues)),
    of_impl("elr stays", "CFG-13", "whatever min.insync.replicas is", _of(ElrStays)),
    of_impl("elr of one topic", "CFG-13", "the cluster's value clears none", _of(ElrOfOneTopic)),
    of_impl("elr of all", "CFG-13", "a topic's value clears all", _of(ElrOfAll)),
    of_impl("feature first", "CFG-14", "before what it needs", _of(FeatureFirst)),
    of_impl("feature alone", "CFG-14", "without what it needs", _of(FeatureAlone)),
    of_impl("cluster alone", "CFG-14", "brokers keep their values", _of(ClusterAlone)),
    of_impl("static wins", "CFG-14", "over what the cluster has", _of(StaticWins)),
    of_impl("default wins", "CFG-14", "over the static value", _of(DefaultWins)),
    of_impl("only once", "CFG-14", "switched on again, it is not atomic", _of(OnlyOnce)),
    of_impl("empty stays", "CFG-15", "a resource without keys", _of(EmptyStays)),
    of_impl("index stays", "CFG-15", "a broker without keys", _of(IndexStays)),
    of_impl("index forgets", "CFG-15", "a broker whose first key is a certain one", _of(IndexOfTheFirst)),
    of_impl("null is a value", "CFG-15", "an empty one", _of(NullIsAValue)),
    of_impl("keeps what is gone", "CFG-16", "a key of earlier releases", WithoutSupport),
    of_impl("topics stay", "CFG-17", "deleted ones", _of(TopicsStay)),
    of_impl("deletes every topic", "CFG-17", "with one of them", _of(DeletesEveryTopic)),
    of_impl("reverts nothing", "CFG-18", "what was set since", RevertsNothing),
    of_impl("inner present", "CFG-18 CFG-21", "at any epoch", _of(InnerPresent)),
    of_impl("resets the map alone", "CFG-18", "the index of brokers stays", ResetsTheMapAlone),
    of_impl("cluster first", "CFG-19", "before the node", _of(ClusterFirst)),
    of_impl("static first", "CFG-19", "before what is dynamic", _of(StaticFirst)),
    of_impl("any node", "CFG-19", "not this controller", _of(AnyNode)),
    of_impl("hours are ms", "CFG-19", "the unit of a name", _of(HoursAreMs)),
    of_impl("lower case alone", "CFG-20", "is true", _of(LowerCaseAlone)),
    of_impl("topics alone", "CFG-20", "elect uncleanly", _of(TopicsAlone)),
    of_impl("no keys is none", "CFG-21", "instead of all", _of(NoKeysIsNone)),
    of_impl("describes the present", "CFG-21", "at any epoch", _of(DescribesThePresent)),
    of_spec("spec: replays always", "CFG-2", "whatever is asked", _spec("incrementalAlterConfigs", _replays_always)),
    of_spec("spec: keeps theirs", "CFG-14", "what brokers have", _spec("updateFeatures", _keeps_what_brokers_have)),
    of_spec("spec: deletes nothing", "CFG-17", "of a topic", _spec("deleteTopicConfigs", _deletes_nothing)),
    of_model("Safety: brokers are free", "CFG-8", "to have a value of their own", _brokers_are_free),
    of_model("Safety: cluster is free", "CFG-8", "to have none", _cluster_is_free),
    of_model("Safety: switched on alone", "CFG-14", "brokers keep their values", _switched_on_alone),
]

RARE: list[Mutant] = [
    of_impl("two resources are checked", "CFG-1 CFG-10 CFG-11 CFG-8", "a third is not", _of(TwoResources)),
    of_impl("keeps empty parts", "CFG-3", "of the list before", _of(KeepsEmptyParts)),
    of_impl("empty is the default", "CFG-3", "a list that was set to nothing", _of(EmptyIsDefault)),
    of_impl("blanks count", "CFG-9", "around commas", _of(BlanksCount)),
    of_impl("a blank is a directory", "CFG-9", "that nobody has", _of(BlankIsADirectory)),
    of_impl("clears once", "CFG-13", "however many records there are", _of(ClearsOnce)),
    of_impl("one broker loses it", "CFG-14", "of several", _of(OneBrokerLosesIt)),
    of_impl("elr for good", "CFG-8 CFG-13", "once it was on", _of(ElrForGood)),
    of_impl("reverts the map alone", "CFG-18", "the index of brokers stays", RevertsTheMapAlone),
    of_impl("deletes one more", "CFG-18", "the snapshot at the epoch itself", DeletesOneMore),
    of_impl("describes the latest", "CFG-21", "whichever snapshot is asked about", _of(DescribesTheLatestSnapshot)),
    of_impl("hours from 0 on", "CFG-19", "fewer are none", _of(HoursFromZero)),
    of_impl("no hours is no value", "CFG-19", "the default counts", _of(NoHoursIsNoValue)),
    of_impl("groups load again", "CFG-4", "as brokers do", _of(GroupsLoadAgain)),
    of_impl("deleted is empty", "CFG-12", "to the policy", _of(DeletedIsEmpty)),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE

REFINED = "it makes fewer steps: the spec, against the model, makes them"
SURVIVORS: dict[str, str] = {
    "Safety.remove_broker: guard 1 negated": REFINED,
    "Safety.remove_broker: no effect 1": REFINED,
    "Safety.set_cluster: no effect 1": REFINED,
    "Safety.remove_cluster: no effect 1": REFINED,
    "Safety.remove_cluster: effect 1, other value": REFINED,
    "Safety.switch_off: no effect 1": REFINED,
}
"""Generated faults of the model that nobody can notice, and why."""
