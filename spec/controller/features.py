"""Finalized features: which level of each feature a cluster uses, and who may change it.

A feature is what nodes must agree on before they use it: `metadata.version`, `transaction.version` and so on. Each node
supports a range of levels of each, and the controller finalizes one level for all. Here is the controller's part that
checks an update and replays the records that come of it. The nodes are given as they registered. The raft client, which
keeps `kraft.version` for itself, is a stand-in that does as it is told.

Source: Kafka Internals, ch. 11, "FeatureControlManager, metadata.version & features"; KIP-584, KIP-1022, KIP-1155;
FeatureControlManager, QuorumFeatures, Feature and MetadataVersion, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import A_QUESTION, ONE_CALL, clause, not_modelled, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import Int16, LeaderEpoch, NodeId, Within
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, ILLEGAL_STATE
from kafkaspec.spec.common.metadata_log import ELR
from kafkaspec.spec.common.snapshots import Epoch, SnapshotState

PREFIX = "FEA"
TITLE = "Finalized features"

CHAPTER = "Kafka Internals, ch. 11, FeatureControlManager, metadata.version & features"
MANAGER = "FeatureControlManager, Kafka 4.3.0"
QUORUM = "QuorumFeatures, Kafka 4.3.0"

METADATA: Final = "metadata.version"
KRAFT: Final = "kraft.version"

OLDEST: Final = 7
"""3.3-IV3, the oldest metadata.version that 4.3.0 knows"""
NEWEST: Final = 31
"""4.4-IV0, the newest that it knows"""
STABLE: Final = 30
"""4.3-IV0, the newest that is meant for production"""
CONTROLLERS_REGISTER: Final = 15
"""3.7-IV0: from this metadata.version on controllers register"""
CHANGED: Final = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})
"""The metadata.versions that brought another form of metadata"""

TRANSACTION: Final = "transaction.version"
GROUP: Final = "group.version"
SHARE: Final = "share.version"
STREAMS: Final = "streams.version"
TESTED: Final = "test.feature.version"
NEEDED: Final = "unit.test.feature.version.2"
NEEDY: Final = "unit.test.feature.version.3"

HIGHEST: Final[Mapping[str, int]] = {
    KRAFT: 1, TRANSACTION: 2, GROUP: 1, ELR: 1, SHARE: 1, STREAMS: 1, TESTED: 2, NEEDED: 1, NEEDY: 1,
}  # fmt: skip
"""The highest level that 4.3.0 knows of each feature beside metadata.version; all begin at 0. The last three are there
for tests of Kafka's, and are known by the class all the same."""
PRODUCTION: Final = (KRAFT, TRANSACTION, GROUP, ELR, SHARE, STREAMS)
NEEDS: Final[Mapping[tuple[str, int], tuple[str, int]]] = {
    (ELR, 1): (METADATA, 23), (TESTED, 2): (METADATA, NEWEST), (NEEDY, 1): (NEEDED, 1),
}  # fmt: skip
"""Which level needs which level of another feature"""

Level = Int16
UpgradeType = Literal["UNKNOWN", "UPGRADE", "SAFE_DOWNGRADE", "UNSAFE_DOWNGRADE"]


class SupportedLevels(NamedTuple):
    """The levels of a feature that a node supports."""

    feature: str
    least: Level
    most: Level


class Update(NamedTuple):
    """A level that is asked for; without a type it is an upgrade."""

    feature: str
    level: Level
    upgrade_type: UpgradeType | None


class Record(NamedTuple):
    """A record of the metadata log: the level of a feature, or nothing at all."""

    type: Literal["FEATURE_LEVEL_RECORD", "NO_OP_RECORD"]
    name: str | None
    level: int | None


REFUSED_BY: Final = tuple(f"FEA-{n}" for n in (14, 15, 18, 5, 6, 7, 8, 9, 10, 11, 12, 13, 2))
"""The rules by which an update is refused."""


@dataclass(frozen=True)
class Outcome:
    """What an update comes to."""

    error: Annotated[str, governs(*REFUSED_BY)]
    message: Annotated[str | None, governs(*REFUSED_BY)]
    records: Annotated[tuple[Record, ...], governs("FEA-4", "FEA-17")]
    atomic: Annotated[bool, governs("FEA-4")]


class KraftUpgrade(NamedTuple):
    """What the raft client was told last."""

    epoch: LeaderEpoch
    level: int
    validate_only: bool


@dataclass(frozen=True)
class Levels:
    """What is finalized: the part that is kept for each snapshot."""

    metadata: int | None = None
    """of metadata.version; None: no record has said so yet"""
    others: tuple[tuple[str, int], ...] = ()
    """of the other features, by name; a level of 0 is left out"""

    def of(self, feature: str) -> int:
        """The level of a feature that is not metadata.version."""
        return dict(self.others).get(feature, 0)


Node = tuple[int, tuple[SupportedLevels, ...]]


@dataclass(frozen=True)
class Features(SnapshotState[Levels]):
    """One controller, what it has finalized, and what it knows of the other nodes."""

    node_id: int
    quorum: tuple[int, ...]
    supported: tuple[SupportedLevels, ...]
    brokers: tuple[Node, ...] = ()
    """by rising ids"""
    controllers: tuple[Node, ...] = ()
    """by rising ids"""
    kraft: int = 0
    refusal: str | None = None
    """what the raft client says to an upgrade; None: it does it"""
    told: KraftUpgrade | None = None


class ShownLevels(NamedTuple):
    """What is finalized, at one epoch."""

    metadata_version: int | None
    levels: dict[str, int]


@dataclass(frozen=True)
class Observation:
    """All that the controller keeps, now and at each snapshot."""

    latest: Annotated[ShownLevels, governs("FEA-20", "FEA-21", "FEA-19")]
    at: Annotated[dict[str, ShownLevels], governs("FEA-21")]
    """by epoch, in decimal"""
    kraft_version: Annotated[int, governs("FEA-17", "FEA-18")]
    told: Annotated[KraftUpgrade | None, governs("FEA-17", "FEA-18")]
    elr_enabled: Annotated[bool, governs("FEA-24")]


def by_default(unstable: bool) -> tuple[SupportedLevels, ...]:
    """What a node of 4.3.0 supports."""
    newest = SupportedLevels(METADATA, OLDEST, NEWEST if unstable else STABLE)
    return (*sorted((newest, *(SupportedLevels(f, 0, HIGHEST[f]) for f in PRODUCTION))),)


Known = Annotated[int, Within(OLDEST, NEWEST)]


def initial(
    node_id: NodeId = 0,
    quorum: Sequence[NodeId] = (0,),
    supported: Sequence[SupportedLevels] = by_default(False),
    metadata_version: Known | None = STABLE,
    kraft_version: Annotated[int, Within(0, 1)] = 0,
) -> Features:
    """A controller that has replayed the record of its metadata.version, if there is one and it supports it."""
    own = tuple({feature: SupportedLevels(feature, *levels) for feature, *levels in supported}.values())
    first = Features(node_id, tuple(quorum), own, present=Levels(), kraft=kraft_version)
    if metadata_version is None or not _within(own, METADATA, metadata_version):
        return first
    return replace(first, present=Levels(metadata_version))


def _shown(levels: Levels) -> ShownLevels:
    return ShownLevels(levels.metadata, dict(levels.others))


def observe(state: Features) -> Observation:
    """Everything, at every epoch."""
    return Observation(
        _shown(state.present),
        {str(e): _shown(levels) for e, levels in state.past},
        state.kraft,
        state.told,
        elr_enabled(state),
    )


machine = Machine("features", initial, observe)


# ---- which levels a node supports ------------------------------------------------------------------------------------
def _range(supported: Sequence[SupportedLevels], feature: str) -> tuple[int, int]:
    """From and up to which level; 0 alone for a feature that a node does not know."""
    return next(((s.least, s.most) for s in supported if s.feature == feature), (0, 0))


def _within(supported: Sequence[SupportedLevels], feature: str, level: int) -> bool:
    least, most = _range(supported, feature)
    return least <= level <= most


def _written(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least}+" if most == 2**15 - 1 else f"{least}-{most}"


def _unsupported(who: str, supported: Sequence[SupportedLevels], update: Update) -> str | None:
    """Why a node does not support that level; None if it does."""
    least, most = _range(supported, update.feature)
    if least <= update.level <= most:
        return None
    if most == 0:
        return f"{who} does not support this feature."
    return f"{who} only supports versions {_written(least, most)}"


@states(without=ONE_CALL)
def local_support(state: Features, update: Update) -> str | None:
    """FEA-7: An update is refused if this controller does not support the level. A feature that it does not know has
    level 0 alone. [{QUORUM}, reasonNotLocallySupported; {CHAPTER}]"""
    return _unsupported(f"Local controller {state.node_id}", state.supported, update)


@states()
def broker_support(state: Features, update: Update) -> str | None:
    """FEA-8: An update is refused if a registered broker does not support the level; the first one is named, in the
    order in which the brokers are given. [{MANAGER}, reasonNotSupported; {CHAPTER}]"""
    found = (_unsupported(f"Broker {id}", supported, update) for id, supported in state.brokers)
    return next((why for why in found if why), None)


@states()
def controller_support(state: Features, update: Update) -> str | None:
    """FEA-9: From metadata.version 3.7-IV0 on an update is refused if another registered controller does not support
    the level. This controller's own registration is not looked at: it knows itself. [{MANAGER}, reasonNotSupported]"""
    others = ((id, supported) for id, supported in state.controllers if id != state.node_id)
    found = (_unsupported(f"Controller {id}", supported, update) for id, supported in others)
    return next((why for why in found if why), None)


@states()
def unregistered_controller(state: Features) -> str | None:
    """FEA-10: From metadata.version 3.7-IV0 on an update is refused while a controller of the quorum, other than this
    one, has not registered; the first one in the quorum's order is named. [{MANAGER}, reasonNotSupported; {CHAPTER};
    KIP-919]"""
    known = {state.node_id, *(id for id, _ in state.controllers)}
    missing = next((id for id in state.quorum if id not in known), None)
    return None if missing is None else f"controller {missing} has not registered, and may not support this feature"


@states(without=ONE_CALL)
def unsupported(state: Features, update: Update) -> str | None:
    """Why a level is not supported everywhere; None if it is.

    FEA-11: Below metadata.version 3.7-IV0 controllers do not register, and no other controller's support is checked.
    [{MANAGER}, reasonNotSupported]
    """
    assert state.present.metadata is not None
    why = local_support(state, update) or broker_support(state, update)
    if why or state.present.metadata < CONTROLLERS_REGISTER:
        return why
    return controller_support(state, update) or unregistered_controller(state)


# ---- one update ------------------------------------------------------------------------------------------------------
INVALID: Final = "INVALID_UPDATE_VERSION"


class Refusal(NamedTuple):
    """An update is not done: Kafka's error, and what it says."""

    error: str
    message: str


def _invalid(update: Update, why: str) -> Refusal:
    return Refusal(INVALID, f"Invalid update version {update.level} for feature {update.feature}. {why}")


@states()
def downgrade_loses_metadata(current: int, level: int) -> bool:
    """Whether a lower metadata.version cannot hold the metadata of the current one.

    FEA-14: A lower metadata.version is refused if a version above it, up to the current one, brought another form of
    metadata, even if an unsafe downgrade is asked for; otherwise either kind of downgrade is done. [{MANAGER},
    updateMetadataVersion; MetadataVersion.checkIfMetadataChanged; KAFKA-13896]
    """
    return any(version in CHANGED for version in range(level + 1, current + 1))


@states(without=ONE_CALL)
def metadata_refusal(current: int, update: Update) -> Refusal | None:
    """FEA-13: A metadata.version that 4.3.0 does not know is refused, whatever the nodes say that they support; it
    knows those from 3.3-IV3 (7) to 4.4-IV0 (31). [{MANAGER}, updateMetadataVersion]"""
    if not OLDEST <= update.level <= NEWEST:
        known = f"Valid versions are from {OLDEST} to {NEWEST}."
        return Refusal(INVALID, f"Invalid metadata.version {update.level}. {known}")
    if update.level < current and downgrade_loses_metadata(current, update.level):
        unsafe = "Unsafe metadata downgrade is not supported in this version."
        safe = "Refusing to perform the requested downgrade because it might delete metadata information."
        why = unsafe if update.upgrade_type == "UNSAFE_DOWNGRADE" else safe
        return Refusal(INVALID, f"Unsupported metadata.version downgrade from {current} to {update.level}. {why}")
    return None


@states()
def dependency_refusal(update: Update, proposed: Mapping[str, int]) -> Refusal | None:
    """FEA-15: A level of another feature is refused if 4.3.0 does not know it, or if it is at least 1 and what it needs
    is missing: metadata.version 3.3-IV3 in any case, and the levels that it depends on; level 1 of
    eligible.leader.replicas.version needs metadata.version 4.0-IV1. What the request itself asks for counts as given.
    [Feature.validateVersion, Kafka 4.3.0; KIP-1022]"""
    if update.feature not in HIGHEST:
        return _invalid(update, f"Feature {update.feature} not found.")
    if update.level > HIGHEST[update.feature]:
        return _invalid(update, f"No feature:{update.feature} with feature level {update.level}")
    cannot = f"{update.feature} could not be set to {update.level} because it depends on"
    if update.level >= 1 and proposed[METADATA] < OLDEST:
        return _invalid(update, f"{cannot} {METADATA}={OLDEST} (3.3-IV3)")
    needed, least = NEEDS.get((update.feature, update.level), (METADATA, proposed[METADATA]))
    return _invalid(update, f"{cannot} {needed} level {least}") if proposed.get(needed, 0) < least else None


@states(without=ONE_CALL)
def kraft_refusal(state: Features, update: Update) -> Refusal | None:
    """FEA-18: What the raft client refuses is refused with its error. kraft.version is never lowered; a downgrade to
    the level that it has is done, and leaves no record. [{MANAGER}, updateFeature; KIP-1155]"""
    if update.upgrade_type not in (None, "UPGRADE"):
        lower = _invalid(update, "Can't downgrade the version of this feature.")
        return None if update.level == state.kraft else lower
    if update.level > HIGHEST[KRAFT]:
        return _invalid(update, f"Unknown KRaft feature level: {update.level}")
    return None if state.refusal is None else Refusal(INVALID, state.refusal)


@states(without=ONE_CALL)
def kraft_update(
    state: Features, update: Update, validate_only: bool, claimed_epoch: int
) -> tuple[Features, Record | Refusal | None]:
    """The state after, and the record, or the refusal, or nothing.

    FEA-17: An upgrade of kraft.version, even to the level that it has, is given to the raft client at once, with the
    epoch that this controller claimed and with whether it is to be validated only. It leaves a record that says
    nothing, to wait for. It is not undone when a later update of the request is refused. [{MANAGER}, updateFeature;
    KIP-1155]
    """
    refusal = kraft_refusal(state, update)
    if update.upgrade_type not in (None, "UPGRADE") or update.level > HIGHEST[KRAFT]:
        return state, refusal
    asked = replace(state, told=KraftUpgrade(claimed_epoch, update.level, validate_only))
    if refusal is not None:
        return asked, refusal
    done = asked if validate_only else replace(asked, kraft=update.level)
    return done, Record("NO_OP_RECORD", None, None)


@states(without=ONE_CALL)
def is_of_no_type(update: Update) -> bool:
    """FEA-5: An upgrade type that the controller does not know is refused; where none is given, it is an upgrade.
    [{MANAGER}, updateFeature]"""
    return update.upgrade_type == "UNKNOWN"


@states(without=ONE_CALL)
def is_below_all(update: Update) -> bool:
    """FEA-6: A level below 0 is refused. [{MANAGER}, updateFeature]"""
    return update.level < 0


def update_refusal(state: Features, update: Update) -> Refusal | None:
    """What is checked of every feature."""
    if is_of_no_type(update):
        return _invalid(update, "The controller does not support the given upgrade type.")
    if is_below_all(update):
        return _invalid(update, "A feature version cannot be less than 0.")
    why = unsupported(state, update)
    return _invalid(update, why) if why else direction_refusal(state, update)


@states(without=ONE_CALL)
def direction_refusal(state: Features, update: Update) -> Refusal | None:
    """FEA-12: A lower level is refused as an upgrade, a higher one as a downgrade of either kind; the level that a
    feature has is accepted as each of them. [{MANAGER}, updateFeature; KIP-584]"""
    current = current_level(state, update.feature)
    upgrade = update.upgrade_type in (None, "UPGRADE")
    if update.level < current and upgrade:
        can_not = "Can't downgrade the version of this feature without setting the upgrade type to either safe or"
        return _invalid(update, f"{can_not} unsafe downgrade.")
    if update.level > current and not upgrade:
        return _invalid(update, "Can't downgrade to a newer version.")
    return None


def current_level(state: Features, feature: str) -> int:
    """The level that a feature has; metadata.version is known."""
    if feature == METADATA:
        assert state.present.metadata is not None
        return state.present.metadata
    return state.kraft if feature == KRAFT else state.present.of(feature)


UNKNOWN_VERSION = Refused("FEA-1", ILLEGAL_STATE, "Unknown metadata version for FeatureControlManager")


def _answer(result: Any) -> Any:
    return result.result


def _is_done(result: Any) -> bool:
    return not isinstance(_answer(result), Refused) and _answer(result).error == "NONE"


def _is_kraft_downgrade(update: Update) -> bool:
    return update.feature == KRAFT and update.upgrade_type not in (None, "UPGRADE")


@states(without=ONE_CALL)
def refuses_all(found: Record | Refusal | None) -> bool:
    """FEA-2: The updates of a request are checked one after the other; the first that is refused refuses the whole
    request, with its error and no record. [{MANAGER}, updateFeatures; KIP-584]"""
    return isinstance(found, Refusal)


@states(without=ONE_CALL)
def leaves_nothing(validate_only: bool) -> bool:
    """FEA-3: A request that is to be validated only has the answer that it would have, and leaves no record.
    [{MANAGER}, updateFeatures]"""
    return validate_only


@states(without=ONE_CALL)
def recorded(update: Update) -> Record:
    """FEA-4: A request that is accepted leaves a record for each of its updates, in their order, whether or not the
    level is another; they are one atomic batch. A level is finalized by the replay of its record, not before.
    [{MANAGER}, updateFeatures; {CHAPTER}]"""
    return Record("FEATURE_LEVEL_RECORD", update.feature, update.level)


@states(without=ONE_CALL)
def own_refusal(state: Features, update: Update, levels: Mapping[str, int]) -> Refusal | None:
    """FEA-16: Only the features that a request names are checked for what they need: one on which others depend is
    lowered under them without an error. [{MANAGER}, updateFeature: seen on the class]"""
    if update.feature == METADATA:
        return metadata_refusal(current_level(state, update.feature), update)
    return dependency_refusal(update, levels)


OF_AN_UPDATE = (
    *("FEA-14", "FEA-13", "FEA-15", "FEA-16", "FEA-17", "FEA-18", "FEA-8", "FEA-9", "FEA-10", "FEA-11"),
    *("FEA-7", "FEA-12", "FEA-6", "FEA-5", "FEA-3", "FEA-4", "FEA-2"),
)


@machine.operation("updateFeatures", *OF_AN_UPDATE)
@require(
    lambda updates: len({u.feature for u in updates}) == len(updates),
    "FEA-2 a request names a feature once: it is a map",
)
@ensure(
    lambda state, validate_only, replayed, result: (
        result.state.present == state.present if validate_only or not replayed or not _is_done(result) else True
    ),
    "FEA-3 nothing is finalized by what is validated only, refused, or not replayed",
)
@ensure(
    lambda state, updates, replayed, result: (
        not (_is_done(result) and _answer(result).atomic and replayed)
        or all(u.feature == KRAFT or current_level(result.state, u.feature) == u.level for u in updates)
    ),
    "FEA-4 what is accepted is finalized once it is replayed",
)
@ensure(
    lambda result: isinstance(_answer(result), Refused) or (_is_done(result) or not _answer(result).records),
    "FEA-2 what is refused leaves no record",
)
@ensure(
    lambda updates, validate_only, result: (
        validate_only
        or not _is_done(result)
        or len(_answer(result).records) == len([u for u in updates if not _is_kraft_downgrade(u)])
    ),
    "FEA-2 no update is left out",
)
@ensure(lambda state, result: result.state.past == state.past, "FEA-21 the past does not change")
def update_features(
    state: Features, updates: Sequence[Update], validate_only: bool, claimed_epoch: LeaderEpoch, replayed: bool
) -> Step[Features, Outcome]:
    """`updateFeatures`, and then, if `replayed`, `replay` of the records, as the active controller does."""
    if state.present.metadata is None:
        return Step(state, UNKNOWN_VERSION)
    levels = {**dict(state.present.others), METADATA: state.present.metadata, **{u.feature: u.level for u in updates}}
    records: list[Record] = []
    for update in updates:
        found: Record | Refusal | None = update_refusal(state, update)
        if found is None and update.feature == KRAFT:
            state, found = kraft_update(state, update, validate_only, claimed_epoch)
        elif found is None:
            found = own_refusal(state, update, levels) or recorded(update)
        if refuses_all(found):
            assert isinstance(found, Refusal)
            return Step(state, Outcome(*found, (), False))
        if found is not None:
            assert isinstance(found, Record)
            records.append(found)
    if leaves_nothing(validate_only):
        return Step(state, Outcome("NONE", None, (), False))
    for record in records if replayed else ():
        if record.name is not None:
            state = replace(state, present=_replayed(state.present, record.name, record.level or 0))
    return Step(state, Outcome("NONE", None, tuple(records), True))


# ---- records ---------------------------------------------------------------------------------------------------------
def _replayed(levels: Levels, name: str, level: int) -> Levels:
    if name == METADATA:
        return replace(levels, metadata=level)
    others = {**dict(levels.others), name: level}
    return replace(levels, others=tuple(sorted((n, at) for n, at in others.items() if at != 0)))


@machine.operation("replay")
@states(without=ONE_CALL)
@ensure(
    lambda state, name, level, result: (
        isinstance(result, Refused) or name == KRAFT or current_level(result, name) == level
    ),
    "FEA-20 the level is what the record says",
)
@ensure(
    lambda state, name, level, result: isinstance(result, Refused) or _within(state.supported, name, level),
    "FEA-19 a level that is not supported is never replayed",
)
def replay(state: Features, name: str, level: Level) -> Features | Refused:
    """`replay` of a FeatureLevelRecord.

    FEA-20: The replay of a record gives the feature its level; level 0 removes it. A record of kraft.version is
    skipped: some were written by mistake, and the raft client knows better. [{MANAGER}, replay; KAFKA-18979]
    """
    if (fault := replay_fault(state, name, level)) is not None:
        return fault
    return state if name == KRAFT else replace(state, present=_replayed(state.present, name, level))


@states(without=ONE_CALL)
def replay_fault(state: Features, name: str, level: int) -> Refused | None:
    """FEA-19: The replay of a level that this controller does not support, or of a metadata.version that 4.3.0 does not
    know, is a fault and changes nothing. [{MANAGER}, replay; {CHAPTER}]"""
    least, most = _range(state.supported, name)
    if not least <= level <= most:
        record = f"FeatureLevelRecord(name='{name}', featureLevel={level})"
        only = f"but this controller only supports versions {_written(least, most)}"
        return Refused("FEA-19", "java.lang.RuntimeException", f"Tried to apply FeatureLevelRecord {record}, {only}")
    if name == METADATA and not OLDEST <= level <= NEWEST:
        known = f"Valid feature levels are from {OLDEST} to {NEWEST}."
        return Refused("FEA-19", ILLEGAL_ARGUMENT, f"No MetadataVersion with feature level {level}. {known}")
    return None


# ---- reads -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class FinalizedFeatures:
    """All finalized features at an epoch."""

    features: Annotated[dict[str, int], governs("FEA-22")]
    epoch: int


@machine.question("finalizedFeatures")
@states(without=A_QUESTION)
@require(lambda state, epoch: state.past_at(epoch) is not None, "FEA-21 the epoch has a snapshot")
def finalized_features(state: Features, epoch: Epoch) -> FinalizedFeatures | Refused:
    """`finalizedFeatures` at an epoch.

    FEA-1: Until a record says which metadata.version it is, nothing is answered about finalized features, and no update
    is checked: that is an error. [{MANAGER}, metadataVersionOrThrow; {CHAPTER}]

    FEA-22: Asked for an epoch, the controller answers metadata.version and the other features that had a level above 0
    then; kraft.version is not among them. [{MANAGER}, finalizedFeatures]
    """
    levels = state.past_at(epoch)
    assert levels is not None
    if levels.metadata is None:
        return UNKNOWN_VERSION
    return FinalizedFeatures({METADATA: levels.metadata, **dict(levels.others)}, epoch)


@machine.question("metadataVersionOrThrow", "FEA-1")
def metadata_version(state: Features) -> int | Refused:
    """`metadataVersionOrThrow`, as its level."""
    return UNKNOWN_VERSION if state.present.metadata is None else state.present.metadata


@machine.question("isElrFeatureEnabled")
@states(without=A_QUESTION)
def elr_enabled(state: Features) -> bool:
    """FEA-24: Eligible leader replicas are in use from level 1 of eligible.leader.replicas.version on. [{MANAGER},
    isElrFeatureEnabled; KIP-966]"""
    return state.present.of(ELR) >= 1


@machine.question("isControllerId")
@states(without=A_QUESTION)
def is_controller_id(state: Features, id: NodeId) -> bool:
    """FEA-25: A node is a controller if and only if it is in the quorum. [{QUORUM}, isControllerId]"""
    return id in state.quorum


@machine.question("defaultSupportedFeatureMap")
@states(without=A_QUESTION)
def default_supported_feature_map(unstable: bool) -> list[SupportedLevels]:
    """FEA-23: A node of 4.3.0 supports metadata.version from 3.3-IV3 (7) to 4.3-IV0 (30), or to 4.4-IV0 (31) where
    unstable features are enabled, and of each other feature of production all levels from 0 on. [{QUORUM},
    defaultSupportedFeatureMap]"""
    return list(by_default(unstable))


# ---- the past --------------------------------------------------------------------------------------------------------
@machine.operation("getOrCreateSnapshot", "FEA-21")
@require(lambda state, epoch: epoch > state.highest, "FEA-21 a new epoch is above every one used before")
def get_or_create_snapshot(state: Features, epoch: Epoch) -> Features:
    """A snapshot of all that is finalized."""
    return state.with_snapshot(epoch)


@machine.operation("revertToSnapshot")
@states(without=not_modelled("what copies are is the timeline's: TML"))
@require(lambda state, epoch: state.past_at(epoch) is not None, "FEA-21 the epoch has a snapshot")
@ensure(
    lambda state, epoch, result: result.present == state.past_at(epoch), "FEA-21 the present is that of the snapshot"
)
@ensure(lambda state, result: result.kraft == state.kraft, "FEA-21 kraft.version stays")
def revert_to_snapshot(state: Features, epoch: Epoch) -> Features:
    """`revertToSnapshot` of the registry.

    FEA-21: What is finalized can be read as it was at a snapshot, and is put back to it by a revert; a reset leaves no
    feature and no metadata.version. kraft.version is the raft client's, and stays. [{MANAGER}, its TimelineHashMap and
    TimelineObject; {CHAPTER}]
    """
    return state.reverted(epoch)


@machine.operation("deleteSnapshotsUpTo", "FEA-21")
def delete_snapshots_up_to(state: Features, epoch: Epoch) -> Features:
    """Snapshots below the epoch are forgotten."""
    return state.without_below(epoch)


@machine.operation("reset", "FEA-21")
def reset_registry(state: Features, version: Known | None) -> Features:
    """`reset` of the registry, before a snapshot of the log is loaded; then the record of that metadata.version is
    replayed, if there is one and it is supported."""
    known = version is not None and _within(state.supported, METADATA, version)
    return state.begun_again(Levels(version if known else None))


# ---- the other nodes -------------------------------------------------------------------------------------------------
def _registered(nodes: tuple[Node, ...], id: int, supported: Sequence[SupportedLevels] | None) -> tuple[Node, ...]:
    others = {n: s for n, s in nodes if n != id}
    if supported is not None:
        others[id] = tuple({s.feature: s for s in supported}.values())
    return tuple(sorted(others.items()))


@machine.environment("brokerRegistered")
def broker_registered(state: Features, id: NodeId, supported: Sequence[SupportedLevels] | None) -> Features:
    """A broker is registered from now on with what it supports, or not at all."""
    return replace(state, brokers=_registered(state.brokers, id, supported))


@machine.environment("controllerRegistered")
def controller_registered(state: Features, id: NodeId, supported: Sequence[SupportedLevels] | None) -> Features:
    """A controller is registered from now on with what it supports, or not at all."""
    return replace(state, controllers=_registered(state.controllers, id, supported))


@machine.environment("raftRefuses")
def raft_refuses(state: Features, message: str | None) -> Features:
    """The raft client refuses upgrades from now on, with these words, or does them."""
    return replace(state, refusal=message)


clause(
    "FEA-26",
    "In a cluster whose brokers register only if they support what is finalized, every registered broker supports it "
    "at all times; from metadata.version 3.7-IV0 on, every controller of the quorum supported a level when it was "
    "finalized.",
    source=f"{CHAPTER}; ClusterControlManager.processRegistrationFeature, Kafka 4.3.0",
    without={
        "spec": "about the cluster: the model has it",
        "impl": "about the cluster: the model has it",
    },
)
