"""Faults of finalized features, each with the clauses that it breaks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kafkaspec.contract.machine import Step
from kafkaspec.impl.controller import features as impl
from kafkaspec.impl.controller.features import FeatureControlManager, FeatureLevelRecord, FeatureUpdate, UpdateResult
from kafkaspec.impl.controller.features_driver import Driver
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.controller import features as model
from kafkaspec.models.controller.features import Broker, Version
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import Mutant, driver_with, faulty_machine, of_impl, of_model, of_spec
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH
from kafkaspec.spec.controller import features as spec


def _of(make: type[FeatureControlManager]) -> Callable[[], Driver]:
    """What makes a driver of a faulty manager."""
    return driver_with(Driver, make=make)


def _by(driver: type[Driver]) -> Callable[[], Driver]:
    return driver


def _raft(make: type[impl.RaftClient]) -> Callable[[], Driver]:
    return lambda: type("Faulty", (Driver,), {"make_raft": make})()


# ---- requests
class OldByDefault(FeatureControlManager):
    def metadata_version(self, epoch: int = LATEST_EPOCH) -> int:
        try:
            return super().metadata_version(epoch)
        except impl.UnknownMetadataVersionError:
            return impl.LATEST_PRODUCTION.level


class SkipsWhatIsRefused(FeatureControlManager):
    def update_features(self, updates: Iterable[FeatureUpdate], validate_only: bool, epoch: int) -> UpdateResult:
        records: list[Any] = []
        for update in [*updates]:
            try:
                records += super().update_features([update], validate_only, epoch).records
            except impl.RefusedUpdateError:
                if update.type is not impl.UpgradeType.UPGRADE:
                    raise
        return UpdateResult(records, not validate_only)


class ValidatesWithRecords(FeatureControlManager):
    def update_features(self, updates: Iterable[FeatureUpdate], validate_only: bool, epoch: int) -> UpdateResult:
        return super().update_features(updates, False, epoch)


class OnlyChanges(FeatureControlManager):
    def update_features(self, updates: Iterable[FeatureUpdate], validate_only: bool, epoch: int) -> UpdateResult:
        result = super().update_features(updates, validate_only, epoch)
        changes = [r for r in result.records if not isinstance(r, FeatureLevelRecord) or r.level != self.level(r.name)]
        return UpdateResult(changes, result.atomic)


class OneByOne(FeatureControlManager):
    def update_features(self, updates: Iterable[FeatureUpdate], validate_only: bool, epoch: int) -> UpdateResult:
        return UpdateResult(super().update_features(updates, validate_only, epoch).records, False)


class Backwards(FeatureControlManager):
    def update_features(self, updates: Iterable[FeatureUpdate], validate_only: bool, epoch: int) -> UpdateResult:
        return super().update_features([*updates][::-1], validate_only, epoch)


# ---- every update
class UnknownIsUpgrade(FeatureControlManager):
    def check(self, update: FeatureUpdate) -> None:
        unknown = update.type is impl.UpgradeType.UNKNOWN
        super().check(update._replace(type=impl.UpgradeType.UPGRADE) if unknown else update)


class SignIsIgnored(FeatureControlManager):
    @staticmethod
    def _reason_of_sign(update: FeatureUpdate) -> str | None:
        return None


class TrustsItself(FeatureControlManager):
    def reason_of_nodes(self, update: FeatureUpdate) -> str | None:
        why = super().reason_of_nodes(update)
        return None if why is not None and why.startswith("Local") else why


class UnknownIsFine(FeatureControlManager):
    """A feature that a node does not know is no obstacle."""

    def reason_of_nodes(self, update: FeatureUpdate) -> str | None:
        why = super().reason_of_nodes(update)
        return None if why is not None and why.endswith("does not support this feature.") else why


class OnlyBelowTheHighest(FeatureControlManager):
    """Whoever supports more is not asked about the least."""

    def reason_of_nodes(self, update: FeatureUpdate) -> str | None:
        why = super().reason_of_nodes(update)
        return why if why is None or update.level >= self.level(update.name) else None


class BrokersUnasked(FeatureControlManager):
    def reason_of_nodes(self, update: FeatureUpdate) -> str | None:
        brokers, self.brokers = self.brokers, impl.Registrations()
        try:
            return super().reason_of_nodes(update)
        finally:
            self.brokers = brokers


class ControllersUnasked(FeatureControlManager):
    def reason_of_nodes(self, update: FeatureUpdate) -> str | None:
        why = super().reason_of_nodes(update)
        return self.reason_of_quorum() if why is not None and why.startswith("Controller") else why


class AsksItsRegistration(FeatureControlManager):
    def reason_of_quorum(self) -> str | None:
        node, self.node_id = self.node_id, -1
        try:
            return super().reason_of_quorum()
        finally:
            self.node_id = node


class WaitsForNobody(FeatureControlManager):
    def reason_of_quorum(self) -> str | None:
        return None


class AsksControllersAlways(FeatureControlManager):
    def reason_of_nodes(self, update: FeatureUpdate) -> str | None:
        return super().reason_of_nodes(update) or self.reason_of_quorum()


class AnyDirection(FeatureControlManager):
    def _reason_of_direction(self, update: FeatureUpdate) -> str | None:
        return None


class UpwardsAsDowngrade(FeatureControlManager):
    def _reason_of_direction(self, update: FeatureUpdate) -> str | None:
        return super()._reason_of_direction(update) if update.type is impl.UpgradeType.UPGRADE else None


# ---- metadata.version
class AnyVersion(FeatureControlManager):
    def check_metadata_version(self, update: FeatureUpdate) -> None:
        if update.level in impl.BY_LEVEL:
            super().check_metadata_version(update)


class UnsafeIsDone(FeatureControlManager):
    def check_metadata_version(self, update: FeatureUpdate) -> None:
        if update.type is not impl.UpgradeType.UNSAFE_DOWNGRADE or update.level not in impl.BY_LEVEL:
            super().check_metadata_version(update)


class LowerOneCounts(FeatureControlManager):
    """That the lower version changed the metadata is taken for a loss."""

    def check_metadata_version(self, update: FeatureUpdate) -> None:
        current = self.metadata_version()
        below = impl.BY_LEVEL.get(update.level)
        if below is not None and below.changed and update.level < current:
            raise impl.RefusedUpdateError("it might delete metadata information")
        super().check_metadata_version(update)


class StableCounts(FeatureControlManager):
    """Only the current version is looked at."""

    def check_metadata_version(self, update: FeatureUpdate) -> None:
        if update.level >= self.metadata_version() or impl.BY_LEVEL[self.metadata_version()].changed:
            super().check_metadata_version(update)


# ---- dependencies
class WithoutDependencies(FeatureControlManager):
    def check_dependencies(self, update: FeatureUpdate, proposed: Mapping[str, int]) -> None:
        high = dict.fromkeys((*impl.FEATURES, impl.METADATA_VERSION), 100)
        super().check_dependencies(update, high)


class OnlyWhatIsThere(FeatureControlManager):
    """What the request itself asks for does not count."""

    def check_dependencies(self, update: FeatureUpdate, proposed: Mapping[str, int]) -> None:
        there = {**dict(self.levels.items()), impl.METADATA_VERSION: self.metadata_version()}
        super().check_dependencies(update, there)


class AnyFeature(FeatureControlManager):
    def check_dependencies(self, update: FeatureUpdate, proposed: Mapping[str, int]) -> None:
        if update.name in impl.FEATURES and update.level < len(impl.FEATURES[update.name].levels):
            super().check_dependencies(update, proposed)


class GuardsWhatOthersNeed(FeatureControlManager):
    def check_dependencies(self, update: FeatureUpdate, proposed: Mapping[str, int]) -> None:
        super().check_dependencies(update, proposed)
        for name, level in [*self.levels.items()]:
            needed = impl.FEATURES[name].levels[level] if name in impl.FEATURES else None
            if needed is not None and needed[0] == update.name and update.level < needed[1]:
                raise impl.RefusedUpdateError(f"{name} needs {update.name}")


# ---- kraft.version
class KraftUndone(FeatureControlManager):
    """It is put back when a later update is refused."""

    def update_features(self, updates: Iterable[FeatureUpdate], validate_only: bool, epoch: int) -> UpdateResult:
        before = self.raft.version
        try:
            return super().update_features(updates, validate_only, epoch)
        except impl.RefusedUpdateError:
            self.raft.version = before
            raise


class KraftWithoutRecord(FeatureControlManager):
    def update_kraft(self, update: FeatureUpdate, validate_only: bool, epoch: int) -> list[impl.NoOpRecord]:
        super().update_kraft(update, validate_only, epoch)
        return []


class KraftOnlyChanges(FeatureControlManager):
    def update_kraft(self, update: FeatureUpdate, validate_only: bool, epoch: int) -> list[impl.NoOpRecord]:
        same = update.level == self.raft.version
        return [impl.NoOpRecord()] if same else super().update_kraft(update, validate_only, epoch)


class KraftForReal(FeatureControlManager):
    def update_kraft(self, update: FeatureUpdate, validate_only: bool, epoch: int) -> list[impl.NoOpRecord]:
        return super().update_kraft(update, False, epoch)


class KraftOfNoEpoch(FeatureControlManager):
    def update_kraft(self, update: FeatureUpdate, validate_only: bool, epoch: int) -> list[impl.NoOpRecord]:
        return super().update_kraft(update, validate_only, 0)


class KraftRefusedInSilence(FeatureControlManager):
    def update_kraft(self, update: FeatureUpdate, validate_only: bool, epoch: int) -> list[impl.NoOpRecord]:
        try:
            return super().update_kraft(update, validate_only, epoch)
        except impl.RefusedUpdateError:
            if self.raft.refusal is None:
                raise
            return [impl.NoOpRecord()]


class KraftLowered(FeatureControlManager):
    def update_kraft(self, update: FeatureUpdate, validate_only: bool, epoch: int) -> list[impl.NoOpRecord]:
        return super().update_kraft(update._replace(type=impl.UpgradeType.UPGRADE), validate_only, epoch)


class RaftOfAnyRelease(impl.RaftClient):
    """It says no without being told of the upgrade."""

    def upgrade(self, epoch: int, version: int, validate_only: bool) -> None:
        if self.refusal is not None:
            raise impl.RaftClientError(self.refusal)
        super().upgrade(epoch, version, validate_only)


# ---- records
class ReplaysAnything(FeatureControlManager):
    def replay(self, record: FeatureLevelRecord) -> None:
        try:
            super().replay(record)
        except impl.UnsupportedRecordError:
            if record.name != impl.METADATA_VERSION and record.level > 0:
                self.levels.put(record.name, record.level)


class SkipsWhatItDoesNotKnow(FeatureControlManager):
    def replay(self, record: FeatureLevelRecord) -> None:
        if record.name in self.supported:
            super().replay(record)


class KraftIsReplayed(FeatureControlManager):
    def replay(self, record: FeatureLevelRecord) -> None:
        super().replay(record)
        if record.name == impl.KRAFT_VERSION and record.level:
            self.levels.put(record.name, record.level)


class ZeroStays(FeatureControlManager):
    def replay(self, record: FeatureLevelRecord) -> None:
        if record.level or record.name == impl.METADATA_VERSION:
            super().replay(record)


class NeverLower(FeatureControlManager):
    def replay(self, record: FeatureLevelRecord) -> None:
        before = self.levels.get(record.name) or 0
        super().replay(record)
        if 0 < record.level < before:
            self.levels.put(record.name, before)


# ---- the past, and reads
class RevertsNothing(Driver):
    def revert_to_snapshot(self, epoch: int) -> None:
        levels, version = dict(self.subject.levels.items()), self.subject.version.get()
        super().revert_to_snapshot(epoch)
        self.subject.version.set(version)
        for name, level in levels.items():
            self.subject.levels.put(name, level)


class RevertsKraft(Driver):
    def revert_to_snapshot(self, epoch: int) -> None:
        super().revert_to_snapshot(epoch)
        self.raft.version = 0


class ResetKeepsLevels(Driver):
    def reset_registry(self, version: int | None) -> None:
        levels = dict(self.subject.levels.items())
        super().reset_registry(version)
        for name, level in levels.items():
            self.subject.levels.put(name, level)


class PresentAtAnyEpoch(FeatureControlManager):
    def finalized_features(self, epoch: int) -> dict[str, int]:
        super().finalized_features(epoch)
        return {impl.METADATA_VERSION: self.metadata_version(), **dict(self.levels.items())}


class KraftAmongThem(FeatureControlManager):
    def finalized_features(self, epoch: int) -> dict[str, int]:
        return {**super().finalized_features(epoch), impl.KRAFT_VERSION: self.raft.version}


class UnstableByDefault(Driver):
    def default_supported_feature_map(self, unstable: bool) -> list[spec.SupportedLevels]:
        return super().default_supported_feature_map(True)


class ElrFromTwo(FeatureControlManager):
    def is_elr_feature_enabled(self) -> bool:
        return (self.levels.get(impl.ELR_VERSION) or 0) >= 2


class RegisteredAreControllers(FeatureControlManager):
    def is_controller_id(self, id: int) -> bool:
        return id == self.node_id or any(id == known for known, _ in self.controllers)


# ---- what shows rarely
class ThreeUpdates(FeatureControlManager):
    """What is behind the second is not checked."""

    def update_features(self, updates: Iterable[FeatureUpdate], validate_only: bool, epoch: int) -> UpdateResult:
        first, rest = [*updates][:2], [*updates][2:]
        result = super().update_features(first, validate_only, epoch)
        more = [] if validate_only else [FeatureLevelRecord(u.name, u.level) for u in rest]
        return UpdateResult([*result.records, *more], result.atomic)


class EpochsOfABroker(FeatureControlManager):
    """The raft client is told of an epoch of 16 bits."""

    def update_kraft(self, update: FeatureUpdate, validate_only: bool, epoch: int) -> list[impl.NoOpRecord]:
        return super().update_kraft(update, validate_only, epoch % 2**16)


class OneBrokerIsAsked(FeatureControlManager):
    def reason_of_nodes(self, update: FeatureUpdate) -> str | None:
        brokers, first = self.brokers, impl.Registrations()
        for id, supported in [*brokers][:2]:
            first.put(id, supported)
        self.brokers = first
        try:
            return super().reason_of_nodes(update)
        finally:
            self.brokers = brokers


class FirstComeFirst(impl.Registrations):
    """Of nodes, those that registered first are asked first."""

    def __iter__(self) -> Iterator[tuple[int, impl.Ranges]]:
        return iter([*self._nodes.items()])


class ByComing(FeatureControlManager):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.brokers = FirstComeFirst()


class QuorumById(FeatureControlManager):
    def reason_of_quorum(self) -> str | None:
        quorum, self.quorum = self.quorum, sorted(self.quorum)
        try:
            return super().reason_of_quorum()
        finally:
            self.quorum = quorum


class RegistersFrom14(FeatureControlManager):
    """Controllers are asked one metadata.version too early."""

    def reason_of_nodes(self, update: FeatureUpdate) -> str | None:
        why = super().reason_of_nodes(update)
        return self.reason_of_quorum() if why is None and self.metadata_version() == 14 else why


class LooksAtOneVersion(FeatureControlManager):
    """Of those that are left, the newest two alone may have changed the metadata."""

    def check_metadata_version(self, update: FeatureUpdate) -> None:
        current = self.metadata_version()
        far = update.level < current - 2 and update.level in impl.BY_LEVEL
        if not far or impl.metadata_changed(current, current - 2):
            super().check_metadata_version(update)


class DependsFrom24(FeatureControlManager):
    """Eligible leader replicas need one metadata.version more."""

    def check_dependencies(self, update: FeatureUpdate, proposed: Mapping[str, int]) -> None:
        if update.name == impl.ELR_VERSION and update.level and proposed[impl.METADATA_VERSION] == 23:
            raise self._invalid(
                update, f"{update.name} could not be set to 1 because it depends on metadata.version level 24"
            )
        super().check_dependencies(update, proposed)


class WritesRanges(FeatureControlManager):
    """A range of one level is written as one of two."""

    def check(self, update: FeatureUpdate) -> None:
        try:
            super().check(update)
        except impl.RefusedUpdateError as e:
            raise impl.RefusedUpdateError(re.sub(r"versions (\d+)$", r"versions \1-\1", str(e)), e.error) from e


class NewestOfAll(FeatureControlManager):
    """An open range is not written as one."""

    def check(self, update: FeatureUpdate) -> None:
        try:
            super().check(update)
        except impl.RefusedUpdateError as e:
            raise impl.RefusedUpdateError(str(e).replace("+", "-32767"), e.error) from e


class RevertsTheLevelsAlone(Driver):
    """metadata.version stays as it is."""

    def revert_to_snapshot(self, epoch: int) -> None:
        version = self.subject.version.get()
        super().revert_to_snapshot(epoch)
        if self.subject.version.get() != version:
            self.subject.version.set(version)


class LevelsOfAByte(FeatureControlManager):
    def replay(self, record: FeatureLevelRecord) -> None:
        super().replay(record._replace(level=signed(record.level, 8)))


class ForgetsTheRefusal(impl.RaftClient):
    """Who is refused once is not refused again."""

    def upgrade(self, epoch: int, version: int, validate_only: bool) -> None:
        try:
            super().upgrade(epoch, version, validate_only)
        except impl.RaftClientError:
            self.refusal = None
            raise


# ---- the spec
class DeletesOneMore(Driver):
    """The snapshot at the epoch itself, too."""

    def delete_snapshots_up_to(self, epoch: int) -> None:
        super().delete_snapshots_up_to(epoch + 1)


_spec = partial(faulty_machine, spec.machine)


def _finalizes_what_is_validated(state: spec.Features, **arguments: Any) -> Step[spec.Features, Any]:
    done = spec.update_features(state, **{**arguments, "validate_only": False, "replayed": True})
    return done if arguments["validate_only"] else spec.update_features(state, **arguments)


def _reverts_kraft(state: spec.Features, epoch: int) -> Any:
    return replace(spec.revert_to_snapshot(state, epoch), kraft=1 - state.kraft)


def _replays_what_is_not_supported(state: spec.Features, name: str, level: int) -> Any:
    if name == spec.GROUP and level == 2:
        return replace(state, present=replace(state.present, others=((name, level),)))
    return spec.replay(state, name, level)


# ---- the model
def _brokers_unasked() -> LoadedModel:
    class Cluster(model.Cluster):
        @action("FEA-8", "FEA-9", "FEA-10", who="administrator")
        def raise_version(s, v: Version) -> None:
            require(v > s.metadata, s.controllers_support(v))
            s.next.metadata = v

    return load(Cluster)


def _controllers_unasked() -> LoadedModel:
    class Cluster(model.Cluster):
        @action("FEA-8", "FEA-9", "FEA-10", who="administrator")
        def raise_version(s, v: Version) -> None:
            require(v > s.metadata, s.brokers_support(v), s.controllers_are_known())
            s.next.metadata = v

    return load(Cluster)


def _missing_controllers() -> LoadedModel:
    class Cluster(model.Cluster):
        @action("FEA-15", "FEA-10", who="administrator")
        def enable(s) -> None:
            require(not s.dependent, s.metadata >= 2)
            s.next.dependent = True

    return load(Cluster)


def _metadata_is_lost() -> LoadedModel:
    class Cluster(model.Cluster):
        @action("FEA-14", who="administrator")
        def lower_version(s, v: Version) -> None:
            require(v < s.metadata, s.controllers_support(v), not s.dependent)
            s.next.metadata = v

    return load(Cluster)


def _without_dependencies() -> LoadedModel:
    class Cluster(model.Cluster):
        @action("FEA-15", "FEA-10", who="administrator")
        def enable(s) -> None:
            require(not s.dependent, s.controllers_are_known())
            s.next.dependent = True

    return load(Cluster)


def _anybody_registers() -> LoadedModel:
    class Cluster(model.Cluster):
        @action("FEA-26", who="broker")
        def register_broker(s, b: Broker, most: Version) -> None:
            s.next.brokers = s.brokers | {b}
            s.next.broker_most[b] = most

    return load(Cluster)


MUTANTS: list[Mutant] = [
    of_impl("old by default", "FEA-1", "an unknown metadata.version is the newest", _of(OldByDefault)),
    of_impl("skips what is refused", "FEA-2", "and does the others", _of(SkipsWhatIsRefused)),
    of_impl("backwards", "FEA-2 FEA-4", "the last update first", _of(Backwards)),
    of_impl("validates with records", "FEA-3", "what is to be validated only is done", _of(ValidatesWithRecords)),
    of_impl("only changes", "FEA-4", "the level that a feature has needs no record", _of(OnlyChanges)),
    of_impl("one by one", "FEA-4", "the batch is not atomic", _of(OneByOne)),
    of_impl("unknown is an upgrade", "FEA-5", "an unknown type", _of(UnknownIsUpgrade)),
    of_impl("sign is ignored", "FEA-6", "of a level", _of(SignIsIgnored)),
    of_impl("trusts itself", "FEA-7", "its own ranges do not count", _of(TrustsItself)),
    of_impl("unknown is fine", "FEA-7 FEA-8 FEA-9", "for a node that does not know the feature", _of(UnknownIsFine)),
    of_impl("downwards unasked", "FEA-7 FEA-8", "a lower level is always supported", _of(OnlyBelowTheHighest)),
    of_impl("brokers unasked", "FEA-8", "whether they support the level", _of(BrokersUnasked)),
    of_impl("controllers unasked", "FEA-9", "whether they support the level", _of(ControllersUnasked)),
    of_impl("asks its registration", "FEA-10", "this controller must have registered, too", _of(AsksItsRegistration)),
    of_impl("waits for nobody", "FEA-10", "controllers that have not registered", _of(WaitsForNobody)),
    of_impl("asks controllers always", "FEA-11", "where none can register", _of(AsksControllersAlways)),
    of_impl("any direction", "FEA-12", "an upgrade lowers a level", _of(AnyDirection)),
    of_impl("upwards as a downgrade", "FEA-12", "a downgrade raises a level", _of(UpwardsAsDowngrade)),
    of_impl("any version", "FEA-13", "a metadata.version that nobody knows", _of(AnyVersion)),
    of_impl("unsafe is done", "FEA-14", "an unsafe downgrade", _of(UnsafeIsDone), "KAFKA-14243"),
    of_impl("lower one counts", "FEA-14", "the version that is gone to", _of(LowerOneCounts)),
    of_impl("current one counts", "FEA-14", "the versions between are not looked at", _of(StableCounts)),
    of_impl("without dependencies", "FEA-15", "of one feature on another", _of(WithoutDependencies)),
    of_impl("only what is there", "FEA-15", "what a request asks for itself", _of(OnlyWhatIsThere)),
    of_impl("any feature", "FEA-15", "and any level of it", _of(AnyFeature)),
    of_impl("guards what others need", "FEA-16", "it is not lowered under them", _of(GuardsWhatOthersNeed)),
    of_impl("kraft undone", "FEA-17", "when a later update is refused", _of(KraftUndone)),
    of_impl("kraft without a record", "FEA-17", "there is nothing to wait for", _of(KraftWithoutRecord)),
    of_impl("kraft only changes", "FEA-17", "the raft client is not told of its own level", _of(KraftOnlyChanges)),
    of_impl("kraft for real", "FEA-17 FEA-3", "although it is to be validated only", _of(KraftForReal)),
    of_impl("kraft of no epoch", "FEA-17", "the raft client is told of another epoch", _of(KraftOfNoEpoch)),
    of_impl("kraft refused in silence", "FEA-18", "what the raft client refuses", _of(KraftRefusedInSilence)),
    of_impl("kraft lowered", "FEA-18", "by a downgrade", _of(KraftLowered)),
    of_impl("raft untold", "FEA-17", "of an upgrade that it refuses", _raft(RaftOfAnyRelease)),
    of_impl("replays anything", "FEA-19", "a level that it does not support", _of(ReplaysAnything)),
    of_impl("skips the unknown", "FEA-19", "a feature that it does not know is no fault", _of(SkipsWhatItDoesNotKnow)),
    of_impl("kraft is replayed", "FEA-20", "a record written by mistake counts", _of(KraftIsReplayed), "KAFKA-18979"),
    of_impl("zero stays", "FEA-20", "level 0 does not remove a feature", _of(ZeroStays)),
    of_impl("never lower", "FEA-20", "a record of a lower level", _of(NeverLower)),
    of_impl("reverts nothing", "FEA-21", "what is finalized", _by(RevertsNothing)),
    of_impl("reverts kraft", "FEA-21", "as if it were finalized here", _by(RevertsKraft)),
    of_impl("reset keeps levels", "FEA-21", "all but metadata.version", _by(ResetKeepsLevels)),
    of_impl("present at any epoch", "FEA-22", "what is finalized now", _of(PresentAtAnyEpoch)),
    of_impl("kraft among them", "FEA-22", "as if it were finalized here", _of(KraftAmongThem)),
    of_impl("unstable by default", "FEA-23", "a metadata.version that may change", _by(UnstableByDefault)),
    of_impl("elr from two", "FEA-24", "level 1 is not enough", _of(ElrFromTwo)),
    of_impl("registered are controllers", "FEA-25", "instead of the quorum", _of(RegisteredAreControllers)),
    of_spec("spec: validated is done", "FEA-3", "at once", _spec("updateFeatures", _finalizes_what_is_validated)),
    of_spec("spec: reverts kraft", "FEA-21", "with the others", _spec("revertToSnapshot", _reverts_kraft)),
    of_spec("spec: replays it", "FEA-19", "what is not supported", _spec("replay", _replays_what_is_not_supported)),
    of_model("Cluster: brokers unasked", "FEA-8 FEA-26", "by who raises a version", _brokers_unasked),
    of_model("Cluster: controllers unasked", "FEA-9 FEA-26", "by who raises a version", _controllers_unasked),
    of_model("Cluster: missing controllers", "FEA-10", "may not support it", _missing_controllers),
    of_model("Cluster: metadata is lost", "FEA-14", "by any downgrade", _metadata_is_lost),
    of_model("Cluster: without dependencies", "FEA-15", "a feature is enabled alone", _without_dependencies),
    of_model("Cluster: anybody registers", "FEA-26", "a broker that is too old", _anybody_registers, "KAFKA-17305"),
]

RARE: list[Mutant] = [
    of_impl("two updates are checked", "FEA-2 FEA-7 FEA-15", "a third is done unchecked", _of(ThreeUpdates)),
    of_impl("epochs of 16 bits", "FEA-17", "the raft client is told of another", _of(EpochsOfABroker)),
    of_impl("two brokers are asked", "FEA-8", "a third may support nothing", _of(OneBrokerIsAsked)),
    of_impl("by their coming", "FEA-8", "the broker that registered first is named", _of(ByComing)),
    of_impl("the quorum by ids", "FEA-10", "the smallest that is missing is named", _of(QuorumById)),
    of_impl("registers from 14", "FEA-11 FEA-10", "one metadata.version too early", _of(RegistersFrom14)),
    of_impl("two versions are looked at", "FEA-14", "of those that a downgrade leaves", _of(LooksAtOneVersion)),
    of_impl("depends on 24", "FEA-15", "one metadata.version more", _of(DependsFrom24)),
    of_impl("one level as two", "FEA-7 FEA-8 FEA-9", "in the words of a refusal", _of(WritesRanges)),
    of_impl("open ranges as closed", "FEA-7 FEA-8 FEA-9", "in the words of a refusal", _of(NewestOfAll)),
    of_impl("reverts the levels alone", "FEA-21", "metadata.version stays", _by(RevertsTheLevelsAlone)),
    of_impl("deletes one more", "FEA-21", "the snapshot at the epoch itself", _by(DeletesOneMore)),
    of_impl("levels of 8 bits", "FEA-19 FEA-20", "a higher level wraps", _of(LevelsOfAByte)),
    of_impl("refused once", "FEA-18", "the raft client does it the second time", _raft(ForgetsTheRefusal)),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE

REFINED = "it makes fewer steps: the spec, against the model, makes them"
SURVIVORS: dict[str, str] = {
    "Cluster.raise_version: guard 2, off by one": REFINED,
    "Cluster.raise_version: guard 3, off by one (2)": REFINED,
    "Cluster.lower_version: guard 2, off by one (2)": REFINED,
    "Cluster.lower_version: no effect 1": REFINED,
    "Cluster.enable: guard 3, off by one": REFINED,
    "Cluster.disable: guard 1 negated": REFINED,
    "Cluster.disable: no effect 1": REFINED,
    "Cluster.disable: effect 1, other value": REFINED,
    "Cluster.register_broker: guard 1, off by one": REFINED,
    "Cluster.unregister_broker: guard 1 negated": REFINED,
}
"""Generated faults of the model that nobody can notice, and why."""
