"""Dynamic configurations: what a controller does with a request to change some, and what it has of them.

A resource, such as a topic or a broker, has keys with values. A request is checked resource by resource, and becomes
records of the metadata log, which every controller replays. What the checks of values, of existence and of the policy
say is given: stand-ins refuse what is marked, and it is kept what they were asked. The schema is a small one.

Source: Kafka Internals, ch. 11, "ConfigurationControlManager and the rest"; KIP-339, KIP-966, KIP-1066;
ConfigurationControlManager and KafkaConfigSchema, Kafka 4.3.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import A_QUESTION, ONE_CALL, not_modelled, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Step
from kafkaspec.contract.numbers import NodeId, Within
from kafkaspec.spec.common.metadata_log import MIN_ISR
from kafkaspec.spec.common.snapshots import Epoch, SnapshotState

PREFIX = "CFG"
TITLE = "Dynamic configurations"

CHAPTER = "Kafka Internals, ch. 11, ConfigurationControlManager and the rest"
CONFIGURATIONS = "ConfigurationControlManager, Kafka 4.3.0"
SCHEMA = "KafkaConfigSchema, Kafka 4.3.0"

CORDONED: Final = "cordoned.log.dirs"
UNCLEAN: Final = "unclean.leader.election.enable"
CORDONING: Final = 30
"""4.3-IV0: from this metadata.version on log directories can be cordoned"""
MOST_CHARACTERS: Final = 2**15 - 1
INVALID_VALUE: Final = "invalid"
"""What the stand-in for the check of values refuses"""
FORBIDDEN: Final = "forbidden"
"""What the stand-in for the policy refuses"""
UNSUPPORTED: Final = "removed.config"
"""A key that this release does not have any more"""

LISTS: Final[Mapping[tuple[str, str], str]] = {
    ("TOPIC", "cleanup.policy"): "delete", ("BROKER", "log.cleanup.policy"): "delete", ("BROKER", CORDONED): "",
}  # fmt: skip
"""The keys of the schema that are lists, with their defaults"""
HOUR_MS: Final = 3_600_000
TOPIC_KEYS: Final[Mapping[str, tuple[str, tuple[tuple[str, int], ...]]]] = {
    "cleanup.policy": ("delete", (("log.cleanup.policy", 0),)),
    MIN_ISR: ("1", ((MIN_ISR, 0),)),
    UNCLEAN: ("false", ((UNCLEAN, 0),)),
    "retention.ms": ("604800000", (("log.retention.ms", 0), ("log.retention.hours", HOUR_MS))),
}
"""The keys of topics: the default, and by which names brokers have it; in ms for one of it, where it has a unit"""


class Resource(NamedTuple):
    """What is configured."""

    type: Literal["TOPIC", "BROKER", "GROUP"]
    name: str


DEFAULT_NODE: Final = Resource("BROKER", "")
"""All brokers: the cluster"""


class Change(NamedTuple):
    """One key, and what is to become of its value."""

    key: str
    operation: Literal["SET", "DELETE", "APPEND", "SUBTRACT"]
    value: str | None


class ChangedResource(NamedTuple):
    """The changes of one resource."""

    resource: Resource
    changes: tuple[Change, ...]


class NewResource(NamedTuple):
    """The keys that a resource is to have, and no others; a value null deletes."""

    resource: Resource
    configs: tuple[tuple[str, str | None], ...]


class Record(NamedTuple):
    """A record of the metadata log: a key's value, or null for none; that there are no eligible leader replicas of a
    topic, or of all (""); or the level of a feature."""

    type: Literal["CONFIG_RECORD", "CLEAR_ELR_RECORD", "FEATURE_LEVEL_RECORD"]
    resource: Resource | None
    key: str
    value: str | None


class Answer(NamedTuple):
    """What is said about one resource."""

    error: str
    message: str | None


@dataclass(frozen=True)
class Outcome:
    """What a request comes to: an answer for each resource, in the order of the request, and the records."""

    answers: Annotated[tuple[Answer, ...], governs("CFG-7", "CFG-8", "CFG-9", "CFG-10", "CFG-11", "CFG-12", "CFG-1")]
    records: Annotated[tuple[Record, ...], governs("CFG-3", "CFG-4", "CFG-5", "CFG-6", "CFG-13", "CFG-14", "CFG-1")]
    atomic: Annotated[bool, governs("CFG-1")]


Configs = tuple[tuple[str, str], ...]
"""Keys and values, by keys"""


class CheckedValues(NamedTuple):
    """What the check of values was given last: all that the resource would have, and what it has."""

    resource: Resource
    all: dict[str, str]
    existing: dict[str, str]


class PolicyRequest(NamedTuple):
    """What the policy was given last: the keys that are changed, with their values; null for one that is deleted."""

    resource: Resource
    configs: dict[str, str | None]


class View(NamedTuple):
    """What is kept for each snapshot."""

    configs: tuple[tuple[Resource, Configs], ...] = ()
    """by resources; none is empty"""
    metadata_version: int = CORDONING
    elr: bool = False

    def of(self, resource: Resource) -> dict[str, str]:
        """Of a resource; nothing if it has none."""
        return dict(dict(self.configs).get(resource, ()))

    @property
    def brokers(self) -> list[int]:
        """Those that have configurations of their own."""
        return sorted(int(r.name) for r, _ in self.configs if r.type == "BROKER" and r.name)


@dataclass(frozen=True)
class Configurations(SnapshotState[View]):
    """One controller's."""

    node_id: int
    static: Configs
    missing: tuple[Resource, ...]
    checked: CheckedValues | None = field(default=None, hash=False)
    policed: PolicyRequest | None = field(default=None, hash=False)


class ShownResource(NamedTuple):
    """A resource, and what it has."""

    resource: Resource
    configs: dict[str, str]


class ShownView(NamedTuple):
    """Everything at one epoch; the brokers that have configurations are an index of their own."""

    configs: list[ShownResource]
    brokers: list[int]


@dataclass(frozen=True)
class Observation:
    """Everything, now and at each snapshot, and what was asked last."""

    latest: Annotated[ShownView, governs("CFG-15", "CFG-16", "CFG-17", "CFG-18", "CFG-2")]
    at: Annotated[dict[str, ShownView], governs("CFG-18")]
    """by epoch, in decimal"""
    checked: Annotated[CheckedValues | None, governs("CFG-10")]
    policed: Annotated[PolicyRequest | None, governs("CFG-12")]
    elr: Annotated[bool, governs("CFG-14")]


Known = Annotated[int, Within(23, 30)]


def initial(
    node_id: NodeId = 0,
    static: Sequence[tuple[str, str]] = (),
    missing: Sequence[tuple[Any, str]] = (),
    metadata_version: Known = CORDONING,
) -> Configurations:
    """Nothing is configured but statically; the missing resources do not exist."""
    own = tuple(sorted({key: value for key, value in static}.items()))  # noqa: C416
    gone = tuple(Resource(type, name) for type, name in missing)
    return Configurations(node_id, own, gone, present=View(metadata_version=metadata_version))


def _shown(view: View) -> ShownView:
    return ShownView([ShownResource(r, dict(configs)) for r, configs in view.configs], view.brokers)


def observe(state: Configurations) -> Observation:
    """Everything, at every epoch."""
    at = {str(epoch): _shown(view) for epoch, view in state.past}
    return Observation(_shown(state.present), at, state.checked, state.policed, state.present.elr)


machine = Machine("configurations", initial, observe)


def _is_canonical(resource: Resource) -> bool:
    """Brokers are named by a number, as it is written; the empty name is that of all."""
    return resource.type != "BROKER" or re.fullmatch(r"|0|[1-9][0-9]{0,8}", resource.name) is not None


# ---- values ----------------------------------------------------------------------------------------------------------
def parts(text: str) -> list[str]:
    """The text between commas, as Java splits it: empty parts at the end are dropped, unless it is all empty."""
    return text.rstrip(",").split(",") if text.rstrip(",") else [""] if not text else []


@states(without=ONE_CALL)
def is_no_list(resource: Resource, key: str) -> bool:
    """CFG-7: APPEND and SUBTRACT are refused for a key that the schema has not as a list. [{CONFIGURATIONS},
    incrementalAlterConfigResource; KIP-339]"""
    return (resource.type, key) not in LISTS


@states(without=ONE_CALL)
def changed_value(resource: Resource, change: Change, current: str | None) -> str | Answer | None:
    """The value that a change leads to, null for none; or the refusal.

    CFG-3: SET gives a key the value, DELETE none; APPEND and SUBTRACT change the list that the key has, or, if it has
    none, the schema's default: APPEND adds each part that is not in it at its end, SUBTRACT takes each part out once.
    Empty parts of the old list are dropped. [{CONFIGURATIONS}, incrementalAlterConfigResource; KIP-339]
    """
    if change.operation in ("SET", "DELETE"):
        return change.value if change.operation == "SET" else None
    default = LISTS.get(resource[:1] + (change.key,), "")
    if is_no_list(resource, change.key):
        why = f"Can't {change.operation} to key {change.key} because its type is not LIST."
        return Answer("INVALID_CONFIG", why)
    assert change.value is not None
    values = [part for part in parts(default if current is None else current) if part]
    for part in parts(change.value):
        if change.operation == "APPEND" and part not in values:
            values.append(part)
        elif change.operation == "SUBTRACT" and part in values:
            values.remove(part)
    return ",".join(values)


# ---- checks ----------------------------------------------------------------------------------------------------------
@states()
def min_isr_refusal(view: View, record: Record) -> str | None:
    """CFG-8: While eligible leader replicas are in use, min.insync.replicas of a single broker is not changed at all,
    and that of the cluster is not removed. [{CONFIGURATIONS}, isDisallowedBrokerMinIsrTransition and
    isDisallowedClusterMinIsrTransition; KIP-966]"""
    resource = record.resource
    if not view.elr or record.key != MIN_ISR or resource is None or resource.type != "BROKER":
        return None
    if resource.name:
        return "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    return "Cluster-level min.insync.replicas cannot be removed while ELR is enabled." if record.value is None else None


@states(without=ONE_CALL)
def cordoned_refusal(view: View, record: Record, forwarded: bool) -> str | None:
    """CFG-9: Of brokers, cordoned.log.dirs is refused below metadata.version 4.3-IV0; and if the request was not
    forwarded by a broker, a value that names a directory that the value before does not: a controller cannot know
    whether it is one. [{CONFIGURATIONS}, isCordonedLogDirsDisabled and isCordonedLogDirsInvalid; KIP-1066]"""
    resource = record.resource
    if record.key != CORDONED or resource is None or resource.type != "BROKER":
        return None
    if view.metadata_version < CORDONING:
        return "The cordoned.log.dirs configuration value cannot be set because it requires metadata.version >= 4.3-IV0"
    if forwarded or not (record.value or "").strip():
        return None
    current = view.of(resource).get(CORDONED)
    known = [] if current is None else re.split(r"\s*,\s*", current.strip())
    asked = re.split(r"\s*,\s*", (record.value or "").strip())
    subset = "the new value must be a subset of the current configuration value."
    return None if set(asked) <= set(known) else f"When updating cordoned.log.dirs via controllers,  {subset}"


def _record_refusal(view: View, record: Record, forwarded: bool) -> Answer | None:
    why = min_isr_refusal(view, record) or cordoned_refusal(view, record, forwarded)
    return Answer("INVALID_CONFIG", why) if why else None


TOO_LONG: Final = Answer(
    "INVALID_CONFIG",
    f"The configuration value cannot be added because it exceeds the maximum value size of {MOST_CHARACTERS} bytes.",
)
OK: Final = Answer("NONE", None)


def length_in_java(text: str) -> int:
    """In units of UTF-16."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


@states(without=ONE_CALL)
def is_too_long(value: str) -> bool:
    """CFG-6: A value of more than 32,767 characters is refused, also one that grows so long by APPEND. They are counted
    as Java does: a character above U+FFFF counts twice. [{CONFIGURATIONS}, validateAlterConfig]"""
    return length_in_java(value) > MOST_CHARACTERS


@states(without=ONE_CALL)
def is_invalid(everything: Mapping[str, str]) -> bool:
    """CFG-10: The check of values is given all that the resource would have, and what it has; what it refuses is
    INVALID_CONFIG. [{CONFIGURATIONS}, validateAlterConfig]"""
    return INVALID_VALUE in everything.values()


@states(without=ONE_CALL)
def is_missing(state: Configurations, resource: Resource, newly_created: bool) -> bool:
    """CFG-11: Then a resource that does not exist is refused, unless it is being created. [{CONFIGURATIONS},
    validateAlterConfig; {CHAPTER}]"""
    return resource in state.missing and not newly_created


@states(without=ONE_CALL)
def is_forbidden(policed: Mapping[str, str | None]) -> bool:
    """CFG-12: Then the policy is asked about the keys that are changed, null for one that is deleted. A key that a
    legacy request deletes by leaving it out is not among them, nor is one that is left as it is, but of brokers. What
    the policy refuses is POLICY_VIOLATION. [{CONFIGURATIONS}, validateAlterConfig; KAFKA-14195]"""
    return FORBIDDEN in policed.values()


def validated(
    state: Configurations,
    resource: Resource,
    altered: Sequence[Record],
    deleted: Sequence[Record],
    newly_created: bool,
    forwarded: bool,
) -> tuple[Configurations, Answer]:
    """The state with what was asked, and the answer about a resource with these records."""
    view, existing = state.present, state.present.of(resource)
    everything, policed = dict(existing), dict[str, str | None]()
    for record in altered:
        refusal = _record_refusal(view, record, forwarded)
        if refusal is not None:
            return state, refusal
        if record.value is None:
            everything.pop(record.key, None)
        elif is_too_long(record.value):
            return state, TOO_LONG
        else:
            everything[record.key] = record.value
        policed[record.key] = record.value
    for record in deleted:
        refusal = _record_refusal(view, record, forwarded)
        if refusal is not None:
            return state, refusal
        everything.pop(record.key, None)
    state = replace(state, checked=CheckedValues(resource, everything, existing))
    if is_invalid(everything):
        return state, Answer("INVALID_CONFIG", "Invalid value.")
    if is_missing(state, resource, newly_created):
        return state, Answer("UNKNOWN_TOPIC_OR_PARTITION", f"{resource.name} does not exist.")
    state = replace(state, policed=PolicyRequest(resource, policed))
    return state, Answer("POLICY_VIOLATION", "Forbidden.") if is_forbidden(policed) else OK


@states(without=ONE_CALL)
def incremental_records(view: View, changed: ChangedResource) -> Answer | tuple[Record, ...]:
    """The records of one resource, or the refusal.

    CFG-4: A change leaves a record if it changes the value; of a broker in any case, so that brokers load again what a
    value names. The records are in the order of the keys. [{CONFIGURATIONS}, incrementalAlterConfigResource;
    KAFKA-14136]
    """
    existing, records = view.of(changed.resource), list[Record]()
    for change in changed.changes:
        current = existing.get(change.key)
        value = changed_value(changed.resource, change, current)
        if isinstance(value, Answer):
            return value
        if value != current or changed.resource.type == "BROKER":
            records.append(Record("CONFIG_RECORD", changed.resource, change.key, value))
    return (*records,)


@states(without=ONE_CALL)
def legacy_records(view: View, new: NewResource) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
    """The records of the keys that are named, and of those that are not.

    CFG-5: A legacy request names all that a resource is to have: behind the records of the keys that it names, as in
    CFG-4, each other key that the resource has leaves a record that deletes it; in which order is free.
    [{CONFIGURATIONS}, legacyAlterConfigResource]
    """
    existing, named = view.of(new.resource), dict(new.configs)
    broker = new.resource.type == "BROKER"
    altered = [Record("CONFIG_RECORD", new.resource, k, v) for k, v in new.configs if broker or existing.get(k) != v]
    others = [Record("CONFIG_RECORD", new.resource, k, None) for k in sorted(existing) if k not in named]
    return (*altered,), (*others,)


@states(without=ONE_CALL)
def clear_elr_records(view: View, records: Sequence[Record]) -> tuple[Record, ...]:
    """CFG-13: While eligible leader replicas are in use, each record of min.insync.replicas adds one at the end of the
    batch that clears them: those of the topic, if it is a topic's, otherwise all. [{CONFIGURATIONS},
    createClearElrRecordsAsNeeded; KIP-966]"""
    changed = [r.resource for r in records if view.elr and r.key == MIN_ISR and r.resource is not None]
    return tuple(Record("CLEAR_ELR_RECORD", None, r.name if r.type == "TOPIC" else "", None) for r in changed)


# ---- records ---------------------------------------------------------------------------------------------------------
@states(without=not_modelled("a key that is gone"))
def is_skipped(record: Record) -> bool:
    """CFG-16: A record of a key that this release does not have for that type is skipped. [{CONFIGURATIONS}, replay]"""
    return record.key == UNSUPPORTED


def _replayed(view: View, record: Record) -> View:
    if record.type == "FEATURE_LEVEL_RECORD":
        return view._replace(elr=record.value == "1")
    if record.resource is None or is_skipped(record):
        return view
    own = view.of(record.resource)
    own.pop(record.key, None)
    if record.value is not None:
        own[record.key] = record.value
    others = {r: configs for r, configs in view.configs if r != record.resource}
    if own:
        others[record.resource] = tuple(sorted(own.items()))
    return view._replace(configs=tuple(sorted(others.items())))


@states(without=ONE_CALL)
def with_records_replayed(
    state: Configurations, answers: Sequence[Answer], records: Sequence[Record], replayed: bool
) -> Any:
    """CFG-2: A request changes nothing; a value changes by the replay of its record. Whoever wants a request to be
    validated only does without the records. [{CONFIGURATIONS}, incrementalAlterConfigs; {CHAPTER}]"""
    view = state.present
    for record in records if replayed else ():
        view = _replayed(view, record)
    return Step(replace(state, present=view), Outcome(tuple(answers), tuple(records), True))


def _one_each(resources: Sequence[Resource]) -> bool:
    return len(set(resources)) == len(resources) and all(map(_is_canonical, resources))


def _safe(view: View) -> bool:
    """Whether min.insync.replicas is what eligible leader replicas need."""
    with_own = [r for r, configs in view.configs if r.type == "BROKER" and MIN_ISR in dict(configs)]
    return not view.elr or with_own == [DEFAULT_NODE]


@machine.operation("incrementalAlterConfigs")
@states(without=ONE_CALL)
@require(
    lambda changed: (
        _one_each([c.resource for c in changed])
        and all(len({c.key for c in r.changes}) == len(r.changes) for r in changed)
    ),
    "CFG-1 a request names a resource once, and a key of it once",
)
@require(
    lambda changed: all(c.value is not None or c.operation in ("SET", "DELETE") for r in changed for c in r.changes),
    "CFG-3 what is appended or subtracted is there",
)
@ensure(lambda state, result: not _safe(state.present) or _safe(result.state.present), "CFG-8 what ELR needs stays")
@ensure(
    lambda state, replayed, result: replayed or result.state.present == state.present,
    "CFG-2 nothing changes before its record is replayed",
)
@ensure(
    lambda changed, result: all(
        answer == OK or all(record.resource != r.resource for record in result.result.records)
        for r, answer in zip(changed, result.result.answers, strict=True)
    ),
    "CFG-1 a resource that is refused has no record",
)
def incremental_alter_configs(
    state: Configurations, changed: Sequence[ChangedResource], newly_created: bool, forwarded: bool, replayed: bool
) -> Step[Configurations, Outcome]:
    """`incrementalAlterConfigs`, and then, if `replayed`, `replay` of the records, as the active controller does.

    CFG-1: Each resource of a request is answered by itself: either all of its changes are done, or none. What is
    accepted of all of them is one atomic batch. [{CONFIGURATIONS}, incrementalAlterConfigs]
    """
    answers, records, view = list[Answer](), list[Record](), state.present
    for resource in changed:
        found = incremental_records(view, resource)
        if isinstance(found, Answer):
            answers.append(found)
            continue
        state, answer = validated(state, resource.resource, found, (), newly_created, forwarded)
        answers.append(answer)
        records += found if answer == OK else ()
    records += clear_elr_records(view, records)
    done: Step[Configurations, Outcome] = with_records_replayed(state, answers, records, replayed)
    return done


@machine.operation("legacyAlterConfigs", "CFG-5", "CFG-1")
@require(
    lambda new: _one_each([n.resource for n in new]) and all(len(dict(n.configs)) == len(n.configs) for n in new),
    "CFG-1 a request names a resource once, and a key of it once",
)
@ensure(lambda state, result: not _safe(state.present) or _safe(result.state.present), "CFG-8 what ELR needs stays")
def legacy_alter_configs(
    state: Configurations, new: Sequence[NewResource], newly_created: bool, forwarded: bool, replayed: bool
) -> Step[Configurations, Outcome]:
    """`legacyAlterConfigs`, and then, if `replayed`, `replay` of the records."""
    answers, records, view = list[Answer](), list[Record](), state.present
    for resource in new:
        altered, deleted = legacy_records(view, resource)
        state, answer = validated(state, resource.resource, altered, deleted, newly_created, forwarded)
        answers.append(answer)
        records += (*altered, *deleted) if answer == OK else ()
    records += clear_elr_records(view, records)
    done: Step[Configurations, Outcome] = with_records_replayed(state, answers, records, replayed)
    return done


@machine.operation("replay")
@states(without=not_modelled("one record, and an index that follows from it"))
@require(lambda resource: _is_canonical(resource), "CFG-15 a broker is named by its number")
@ensure(
    lambda resource, key, value, result: key == UNSUPPORTED or result.present.of(resource).get(key) == value,
    "CFG-15 the value is what the record says",
)
def replay(state: Configurations, resource: Resource, key: str, value: str | None) -> Configurations:
    """`replay` of a ConfigRecord.

    CFG-15: The replay of a record gives the key its value, or takes the key away; a resource without keys is forgotten.
    The brokers that have keys of their own, all brokers together not among them, are known by an index.
    [{CONFIGURATIONS}, replay; {CHAPTER}]
    """
    return replace(state, present=_replayed(state.present, Record("CONFIG_RECORD", resource, key, value)))


@machine.operation("deleteTopicConfigs")
@states(without=not_modelled("one deletion"))
@ensure(lambda name, result: not result.present.of(Resource("TOPIC", name)), "CFG-17 it has none")
def delete_topic_configs(state: Configurations, name: str) -> Configurations:
    """CFG-17: A topic that is deleted has no configurations any more, without a record of its own. [{CONFIGURATIONS},
    deleteTopicConfigs]"""
    kept = tuple((r, configs) for r, configs in state.present.configs if r != ("TOPIC", name))
    return replace(state, present=state.present._replace(configs=kept))


# ---- eligible leader replicas ----------------------------------------------------------------------------------------
@machine.operation("updateFeatures")
@states()
@ensure(
    lambda level, validate_only, replayed, result: (
        validate_only or not (level == 1 and replayed) or _safe(result.state.present)
    ),
    "CFG-14 what is in use has what it needs",
)
def update_features(
    state: Configurations, level: Annotated[int, Within(0, 1)], validate_only: bool, replayed: bool
) -> Step[Configurations, Outcome]:
    """`updateFeatures` of eligible.leader.replicas.version, upwards as an upgrade and downwards as a safe downgrade,
    with metadata.version at least 4.0-IV1; and then, if `replayed`, `replay` of the records.

    CFG-14: Whoever switches eligible leader replicas on, even again, has records before that of the feature, in one
    atomic batch: the cluster gets the min.insync.replicas that is configured statically, or the default, if it has
    none, and each broker that has one loses it, in any order. [{CONFIGURATIONS}, updateFeatures and
    maybeGenerateElrSafetyRecords; KIP-966]
    """
    if validate_only:
        return Step(state, Outcome((OK,), (), False))
    records: list[Record] = []
    if level == 1:
        if MIN_ISR not in state.present.of(DEFAULT_NODE):
            records.append(Record("CONFIG_RECORD", DEFAULT_NODE, MIN_ISR, str(static_min_isr(state))))
        own = [Resource("BROKER", str(id)) for id in state.present.brokers]
        records += [Record("CONFIG_RECORD", r, MIN_ISR, None) for r in own if MIN_ISR in state.present.of(r)]
    records.append(Record("FEATURE_LEVEL_RECORD", None, "eligible.leader.replicas.version", str(level)))
    done: Step[Configurations, Outcome] = with_records_replayed(state, (OK,), records, replayed)
    return done


@machine.question("getStaticallyConfiguredMinInsyncReplicas", "CFG-14")
def static_min_isr(state: Configurations) -> int:
    """`getStaticallyConfiguredMinInsyncReplicas`."""
    return int(dict(state.static).get(MIN_ISR, TOPIC_KEYS[MIN_ISR][0]))


# ---- reads -----------------------------------------------------------------------------------------------------------
class Effective(NamedTuple):
    """The value that counts, and where it is from."""

    value: str
    source: Literal[
        "DYNAMIC_TOPIC_CONFIG",
        "DYNAMIC_BROKER_CONFIG",
        "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "STATIC_BROKER_CONFIG",
        "DEFAULT_CONFIG",
    ]


@machine.question("getTopicConfig")
@states(without=A_QUESTION)
@require(lambda key: key in TOPIC_KEYS, "CFG-19 the schema has the key")
def topic_config(state: Configurations, topic: str, key: str) -> Effective:
    """CFG-19: The effective value of a topic's key is the topic's own, else this controller's, else the cluster's, else
    the static one, else the schema's default. Brokers may have it by several names: at each of these places the first
    name that has a value counts, and its unit. [{SCHEMA}, resolveEffectiveTopicConfig; {CONFIGURATIONS},
    getTopicConfig]"""
    default, names = TOPIC_KEYS[key]
    own = state.present.of(Resource("TOPIC", topic))
    if key in own:
        return Effective(own[key], "DYNAMIC_TOPIC_CONFIG")
    node, cluster = state.present.of(Resource("BROKER", str(state.node_id))), state.present.of(DEFAULT_NODE)
    for source, configs in (
        ("DYNAMIC_BROKER_CONFIG", node),
        ("DYNAMIC_DEFAULT_BROKER_CONFIG", cluster),
        ("STATIC_BROKER_CONFIG", dict(state.static)),
    ):
        for name, unit in names:
            if name in configs:
                value = configs[name]
                return Effective(str(_number(value) * unit) if unit else value, source)  # type: ignore[arg-type]
    return Effective(default, "DEFAULT_CONFIG")


def _number(text: str) -> int:
    """As Java reads it; 0 for what is no number of 32 bits."""
    found = re.fullmatch(r"[\0- ]*([+-]?)0*([0-9]{1,10})[\0- ]*", text)
    number = int(found[1] + found[2]) if found else 0
    return number if -(2**31) <= number < 2**31 else 0


@machine.question("uncleanLeaderElectionEnabledForTopic")
@states(without=A_QUESTION)
def unclean_enabled(state: Configurations, topic: str) -> bool:
    """CFG-20: A topic's leaders may be elected uncleanly if and only if the effective value is true, in whatever case
    it is written. [{CONFIGURATIONS}, uncleanLeaderElectionEnabledForTopic]"""
    return topic_config(state, topic, UNCLEAN).value.lower() == "true"


@machine.question("describeConfigs")
@states(without=A_QUESTION)
@require(lambda state, epoch: state.past_at(epoch) is not None, "CFG-18 the epoch has a snapshot")
def describe_configs(state: Configurations, resource: Resource, keys: Sequence[str], epoch: Epoch) -> dict[str, str]:
    """CFG-21: Asked about a resource at an epoch, the controller answers those of the keys that it had then, or all of
    its keys if none is named. [{CONFIGURATIONS}, describeConfigs]"""
    view = state.past_at(epoch)
    assert view is not None
    return {k: v for k, v in view.of(resource).items() if not keys or k in keys}


# ---- the past --------------------------------------------------------------------------------------------------------
@machine.operation("getOrCreateSnapshot", "CFG-18")
@require(lambda state, epoch: epoch > state.highest, "CFG-18 a new epoch is above every one used before")
def get_or_create_snapshot(state: Configurations, epoch: Epoch) -> Configurations:
    """A snapshot of everything."""
    return state.with_snapshot(epoch)


@machine.operation("revertToSnapshot")
@states(without=not_modelled("what copies are is the timeline's: TML"))
@require(lambda state, epoch: state.past_at(epoch) is not None, "CFG-18 the epoch has a snapshot")
@ensure(lambda state, epoch, result: result.present == state.past_at(epoch), "CFG-18 the present is the snapshot's")
def revert_to_snapshot(state: Configurations, epoch: Epoch) -> Configurations:
    """CFG-18: What there was at a snapshot can be read, and is put back by a revert: the configurations of every
    resource, and the index of brokers. A reset leaves nothing. [{CONFIGURATIONS}, its nested TimelineHashMap and
    TimelineHashSet; {CHAPTER}]"""
    return state.reverted(epoch)


@machine.operation("deleteSnapshotsUpTo", "CFG-18")
def delete_snapshots_up_to(state: Configurations, epoch: Epoch) -> Configurations:
    """Snapshots below the epoch are forgotten."""
    return state.without_below(epoch)


@machine.operation("reset", "CFG-18")
def reset_registry(state: Configurations, version: Known) -> Configurations:
    """`reset` of the registry, before a snapshot of the log is loaded; then the record of that metadata.version."""
    return state.begun_again(View(metadata_version=version))
