"""Faults of the metadata image, each with the clauses that it breaks."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from unittest.mock import patch

from kafkaspec.contract.machine import Json, Refused
from kafkaspec.impl.controller import metadata_image as impl
from kafkaspec.impl.controller.features import KRAFT_VERSION, Range
from kafkaspec.impl.controller.metadata_image import (
    Broker,
    Fields,
    MetadataImage,
    Partition,
    ReplayError,
    Topic,
    merged,
)
from kafkaspec.impl.controller.metadata_image_driver import Driver
from kafkaspec.mutants.mutant import of_impl


def of(made: type[MetadataImage]) -> Callable[[], Driver]:
    """What makes a driver of a faulty image."""

    def make() -> Driver:
        driver = Driver()
        driver.make = made
        driver.reset({})
        return driver

    return make


def patched(**functions: Any) -> Callable[[], Driver]:
    """The driver with other functions, while it is called."""

    class Faulty(Driver):
        def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
            with patch.multiple(impl, **functions):
                return super().apply(name, arguments)

    return Faulty


# ---- topics and partitions -------------------------------------------------------------------------------------------
class TakesTopicsTwice(MetadataImage):
    def _topic(self, f: Fields, offset: int) -> None:
        self.names[f["name"]] = f["topicId"]
        self.topics[f["topicId"]] = Topic(f["name"], f["topicId"])


class LooksAtNamesAlone(MetadataImage):
    def _topic(self, f: Fields, offset: int) -> None:
        self.topics.pop(f["topicId"], None) if f["name"] not in self.names else None
        super()._topic(f, offset)


class PassesUnknownTopicsOver(MetadataImage):
    def _partition_change(self, f: Fields, offset: int) -> None:
        if f["topicId"] in self.topics:
            super()._partition_change(f, offset)


class PassesUnknownPartitionsOver(MetadataImage):
    def _partition_change(self, f: Fields, offset: int) -> None:
        if f["partitionId"] in self.topic_of(f["topicId"]).partitions:
            super()._partition_change(f, offset)


class RemovesUnknownTopics(MetadataImage):
    def _remove_topic(self, f: Fields, offset: int) -> None:
        if f["topicId"] in self.topics:
            super()._remove_topic(f, offset)


class ClearsUnknownTopics(MetadataImage):
    def _clear_elr(self, f: Fields, offset: int) -> None:
        if not f["topicName"] or f["topicName"] in self.names:
            super()._clear_elr(f, offset)


def _same_epoch(before: Partition, f: Fields) -> Partition:
    return merged(before, f)._replace(partition_epoch=before.partition_epoch)


def _same_leader_epoch(before: Partition, f: Fields) -> Partition:
    after = merged(before, f)
    return after if after.leader != before.leader else after._replace(leader_epoch=before.leader_epoch)


def _null_is_empty(before: Partition, f: Fields) -> Partition:
    return merged(before, {**f, "isr": f["isr"] or []})


def _empty_is_null(before: Partition, f: Fields) -> Partition:
    return merged(before, {**f, "isr": f["isr"] or None})


def _recovers(before: Partition, f: Fields) -> Partition:
    return merged(before, {**f, "leaderRecoveryState": max(0, f["leaderRecoveryState"])})


def _any_directories(given: list[str] | None, replicas: int) -> list[str]:
    return ((given or []) + [impl.MIGRATING] * replicas)[:replicas]


def _directories_as_they_are(given: list[str] | None, replicas: int) -> list[str]:
    return given or [impl.MIGRATING] * replicas


class KeepsConfigurations(MetadataImage):
    def _remove_topic(self, f: Fields, offset: int) -> None:
        before = {k: dict(v) for k, v in self.configs.items()}
        super()._remove_topic(f, offset)
        self.configs = before


class KeepsTheName(MetadataImage):
    def _remove_topic(self, f: Fields, offset: int) -> None:
        topic = self.topic_of(f["topicId"]) if f["topicId"] in self.topics else None
        super()._remove_topic(f, offset)
        if topic is not None:
            self.names[topic.name] = topic.id


def _elr_without_an_epoch(before: Partition) -> Partition:
    return before._replace(elr=[], last_known_elr=[])


def _last_known_stay(before: Partition) -> Partition:
    return before._replace(elr=[], partition_epoch=before.partition_epoch + 1)


class RaisesEveryEpoch(MetadataImage):
    def _clear_elr(self, f: Fields, offset: int) -> None:
        super()._clear_elr(f, offset)
        for topic in self.topics.values():
            for number, p in topic.partitions.items():
                if f["topicName"] in ("", topic.name) and not p.elr:
                    topic.partitions[number] = p._replace(partition_epoch=p.partition_epoch + 1)


class EpochsGoBack(MetadataImage):
    def _partition(self, f: Fields, offset: int) -> None:
        try:
            super()._partition(f, offset)
        except ReplayError as e:
            if e.clause != "IMG-18":
                raise
            self._set(self.topic_of(f["topicId"]), f["partitionId"], impl.partition_of(f))


# ---- brokers ---------------------------------------------------------------------------------------------------------
class AnyEpoch(MetadataImage):
    def _register_broker(self, f: Fields, offset: int) -> None:
        try:
            super()._register_broker(f, offset)
        except ReplayError:
            before = self.brokers.pop(f["brokerId"], None)
            super()._register_broker(f, max(offset, f["brokerEpoch"]))
            assert before is None or before.epoch >= 0


class FutureEpochs(MetadataImage):
    def _register_broker(self, f: Fields, offset: int) -> None:
        super()._register_broker(f, 1 << 62)


class LooksAtNoEpoch(MetadataImage):
    def broker_of(self, id: int, epoch: int) -> Broker:
        found = self.brokers.get(id)
        return super().broker_of(id, epoch if found is None else found.epoch)


class PassesUnknownBrokersOver(MetadataImage):
    def _change_broker(self, id: int, epoch: int, **changes: Any) -> None:
        if id in self.brokers:
            super()._change_broker(id, epoch, **changes)


class ForgetsDirectories(MetadataImage):
    """KAFKA-15364"""

    def _registration_change(self, f: Fields, offset: int) -> None:
        super()._registration_change({**f, "logDirs": []}, offset)


class EmptiesDirectories(MetadataImage):
    def _registration_change(self, f: Fields, offset: int) -> None:
        super()._registration_change(f, offset)
        if f["logDirs"] == []:
            self._change_broker(f["brokerId"], f["brokerEpoch"], directories=[])


class NoneCordonedIsNoChange(MetadataImage):
    def _registration_change(self, f: Fields, offset: int) -> None:
        super()._registration_change({**f, "cordonedLogDirs": f["cordonedLogDirs"] or None}, offset)


class EndsShutdowns(MetadataImage):
    def _registration_change(self, f: Fields, offset: int) -> None:
        super()._registration_change(f, offset)
        shutting = bool(f["inControlledShutdown"])
        self._change_broker(f["brokerId"], f["brokerEpoch"], shutting_down=shutting)


def _as_named(directories: list[str]) -> list[str]:
    return directories


def _by_bytes(directories: list[str]) -> list[str]:
    """As if the numbers had no sign."""
    return sorted(directories, key=lambda id: base64.urlsafe_b64decode(id + "=="))


class SortsTheCordoned(MetadataImage):
    def _set_broker(self, id: int, after: Broker | None) -> None:
        if after is not None and after.cordoned:
            after = after._replace(cordoned=impl.in_order(after.cordoned))
        super()._set_broker(id, after)


class SharesDirectories(MetadataImage):
    def _check_homes(self, id: int, directories: list[str]) -> None:
        if len(set(directories)) < len(directories):
            super()._check_homes(id, directories)


class NamesDirectoriesTwice(MetadataImage):
    def _check_homes(self, id: int, directories: list[str]) -> None:
        super()._check_homes(id, list(dict.fromkeys(directories)))


class LooksAtRegistrationsAlone(MetadataImage):
    """A change may name another broker's directory."""

    def _registration_change(self, f: Fields, offset: int) -> None:
        homes, self.homes = self.homes, {}
        try:
            super()._registration_change(f, offset)
        finally:
            self.homes = homes | self.homes


class KeepsHomes(MetadataImage):
    """The directories of a broker that is gone stay its own."""

    def _set_broker(self, id: int, after: Broker | None) -> None:
        homes = dict(self.homes)
        super()._set_broker(id, after)
        if after is None:
            self.homes = homes


class KeepsOldHomes(MetadataImage):
    """Those that a broker does not name any more stay its own."""

    def _set_broker(self, id: int, after: Broker | None) -> None:
        homes = dict(self.homes)
        super()._set_broker(id, after)
        if after is not None:
            self.homes = homes | self.homes


class OwnIsAnothers(MetadataImage):
    """A broker may not name again what it has."""

    def _check_homes(self, id: int, directories: list[str]) -> None:
        super()._check_homes(-1 if id in self.brokers else id, directories)


_check_endpoints = impl.check_endpoints


def _any_protocol(endpoints: Iterable[Fields], *, named: bool) -> None:
    _check_endpoints([{**e, "securityProtocol": 0} for e in endpoints], named=named)


def _first_protocol(endpoints: Iterable[Fields], *, named: bool) -> None:
    every = list(endpoints)
    _check_endpoints(every[:1], named=False)
    _any_protocol(every, named=named)


def _any_name(endpoints: Iterable[Fields], *, named: bool) -> None:
    _check_endpoints(endpoints, named=False)


def _every_name(endpoints: Iterable[Fields], *, named: bool) -> None:
    _check_endpoints(endpoints, named=True)


class FencesWithAnything(MetadataImage):
    def _registration_change(self, f: Fields, offset: int) -> None:
        super()._registration_change({**f, "fenced": max(-1, min(1, f["fenced"]))}, offset)


# ---- the others ------------------------------------------------------------------------------------------------------
def _every_level(feature: str) -> Range:
    return Range(0, 0x7FFF)


class KeepsLevelsOf0(MetadataImage):
    def _feature_level(self, f: Fields, offset: int) -> None:
        super()._feature_level(f, offset)
        if not f["featureLevel"] and f["name"] != KRAFT_VERSION:
            self.features[f["name"]] = 0


class TakesKraftVersion(MetadataImage):
    def _feature_level(self, f: Fields, offset: int) -> None:
        super()._feature_level(f, offset)
        if f["name"] == KRAFT_VERSION and f["featureLevel"]:
            self.features[f["name"]] = f["featureLevel"]


class TakesAnyProducerId(MetadataImage):
    def _producer_ids(self, f: Fields, offset: int) -> None:
        self.next_producer_id = f["nextProducerId"]


class TakesTheSameProducerId(MetadataImage):
    def _producer_ids(self, f: Fields, offset: int) -> None:
        if f["nextProducerId"] != self.next_producer_id:
            super()._producer_ids(f, offset)


class KeepsNulls(MetadataImage):
    def _config(self, f: Fields, offset: int) -> None:
        super()._config({**f, "value": f["value"] or ""}, offset)


class EntitiesInOrder(MetadataImage):
    def _client_quota(self, f: Fields, offset: int) -> None:
        entity = tuple((e["entityType"], e["entityName"]) for e in f["entity"])
        self._entry(self.quotas, entity, f["key"], None if f["remove"] else f["value"])


class KeepsQuotas(MetadataImage):
    def _client_quota(self, f: Fields, offset: int) -> None:
        super()._client_quota({**f, "remove": False}, offset)


class RemovesAnyAcl(MetadataImage):
    def _remove_acl(self, f: Fields, offset: int) -> None:
        self._take(self.acls, f["id"])


class RemovesEachAcl(MetadataImage):
    """What ACLs say is not looked at."""

    def _remove_acl(self, f: Fields, offset: int) -> None:
        if f["id"] in self.acls:
            self.removable[impl.acl_said(self.acls[f["id"]])] = None
        super()._remove_acl(f, offset)


class CountsAcls(MetadataImage):
    """A removal takes what an ACL says away if no other one says it."""

    def _remove_acl(self, f: Fields, offset: int) -> None:
        super()._remove_acl(f, offset)
        for acl in self.acls.values():
            self.removable[impl.acl_said(acl)] = None


class ForgetsWhatIsReplaced(MetadataImage):
    """What an ACL that is replaced said cannot be removed any more."""

    def _acl(self, f: Fields, offset: int) -> None:
        if f["id"] in self.acls:
            self._take(self.removable, impl.acl_said(self.acls[f["id"]]))
        super()._acl(f, offset)


class RemovesAnyCredential(MetadataImage):
    def _remove_scram(self, f: Fields, offset: int) -> None:
        self._take(self.scram, (f["name"], f["mechanism"]))


# ---- transactions ----------------------------------------------------------------------------------------------------
class BeginsAgain(MetadataImage):
    def _begin_transaction(self, f: Fields, offset: int) -> None:
        self.transaction = None
        super()._begin_transaction(f, offset)


class EndsAlways(MetadataImage):
    def _end_transaction(self, f: Fields, offset: int) -> None:
        if self.transaction is not None:
            super()._end_transaction(f, offset)


class KeepsWhatIsAborted(MetadataImage):
    def _abort_transaction(self, f: Fields, offset: int) -> None:
        self._end_transaction(f, offset)


class TakesBackInOrder(MetadataImage):
    def _abort_transaction(self, f: Fields, offset: int) -> None:
        for restore in self._open_transaction("is aborted"):
            restore()


class DropsWhatIsEnded(MetadataImage):
    def _end_transaction(self, f: Fields, offset: int) -> None:
        self._abort_transaction(f, offset)


# ---- invariants ------------------------------------------------------------------------------------------------------
_breaches_of = impl.breaches_of


def _but(clause: str) -> Callable[[Partition, Mapping[int, Broker]], Iterator[str]]:
    return lambda p, brokers: (c for c in _breaches_of(p, brokers) if c != clause)


class LooksAtPartitionsAlone(MetadataImage):
    """Of a broker that is fenced nobody looks at the partitions that it leads."""

    def _set_broker(self, id: int, after: Broker | None) -> None:
        changed = set(self._changed)
        super()._set_broker(id, after)
        self._changed = changed


class ForgetsTheIndex(MetadataImage):
    """A partition stays with its old leader."""

    def _set(self, topic: Topic, number: int, after: Partition | None) -> None:
        before = topic.partitions.get(number)
        super()._set(topic, number, after)
        if before is not None and after is not None and before.leader != after.leader:
            self.led[before.leader].add((topic.id, number))
            self.led[after.leader].discard((topic.id, number))


class StaysBroken(MetadataImage):
    """What was broken once stays so."""

    def check(self) -> list[impl.BreachKey]:
        before = set(self.broken)
        new = super().check()
        self.broken |= before
        return new


def _one_level_more(type: int, level: int | None) -> int:
    return impl_highest(type, None if level is None else level + 1)


impl_highest = impl.highest_version


def _any_version(type: int, level: int | None) -> int:
    return impl_highest(type, None)


MUTANTS = [
    of_impl("topics twice", "IMG-1", "a topic may be there already", of(TakesTopicsTwice)),
    of_impl("names alone", "IMG-1", "an id may be given again", of(LooksAtNamesAlone)),
    of_impl("unknown topics", "IMG-2", "a change of an unknown topic is passed over", of(PassesUnknownTopicsOver)),
    of_impl("unknown partitions", "IMG-2", "that of an unknown partition is", of(PassesUnknownPartitionsOver)),
    of_impl("removes nothing", "IMG-2", "an unknown topic may be removed", of(RemovesUnknownTopics)),
    of_impl("clears nothing", "IMG-2", "an unknown topic may be cleared", of(ClearsUnknownTopics)),
    of_impl("same partition epoch", "IMG-3", "a change leaves the partition epoch", patched(merged=_same_epoch)),
    of_impl("same leader epoch", "IMG-3", "naming the leader leaves its epoch", patched(merged=_same_leader_epoch)),
    of_impl("null is empty", "IMG-3", "what a change does not name is emptied", patched(merged=_null_is_empty)),
    of_impl("empty is null", "IMG-3", "an empty ISR is no change", patched(merged=_empty_is_null)),
    of_impl("recovers", "IMG-3", "a change ends the recovery of a leader", patched(merged=_recovers)),
    of_impl(
        "any directories", "IMG-3", "their number is not looked at",
        patched(directories_of=_any_directories, check_directories=lambda f: None),
    ),
    of_impl(
        "unnamed directories", "IMG-3", "unnamed ones do not follow the replicas",
        patched(directories_of=_directories_as_they_are),
    ),
    of_impl("keeps configurations", "IMG-4", "a removed topic's configurations stay", of(KeepsConfigurations)),
    of_impl("keeps names", "IMG-4 IMG-1", "a removed topic's name is not free", of(KeepsTheName)),
    of_impl("cleared, same epoch", "IMG-5", "clearing leaves the epoch", patched(without_elr=_elr_without_an_epoch)),
    of_impl("last known stay", "IMG-5", "the last known ones stay", patched(without_elr=_last_known_stay)),
    of_impl("every epoch", "IMG-5", "clearing raises every partition's epoch", of(RaisesEveryEpoch)),
    of_impl("epochs go back", "IMG-18", "a partition's epochs may go back", of(EpochsGoBack)),
    of_impl("any epoch", "IMG-6", "a broker's epoch may go back", of(AnyEpoch)),
    of_impl("future epochs", "IMG-6", "a broker's epoch may be an offset to come", of(FutureEpochs)),
    of_impl("no epoch", "IMG-7", "of a registration the epoch is not looked at", of(LooksAtNoEpoch)),
    of_impl("unknown brokers", "IMG-7", "changes of unknown brokers are passed over", of(PassesUnknownBrokersOver)),
    of_impl("forgets directories", "IMG-7", "of a change", of(ForgetsDirectories), "KAFKA-15364"),
    of_impl("no directories", "IMG-7", "a change that names none empties them", of(EmptiesDirectories)),
    of_impl("none cordoned", "IMG-7", "an empty list of cordoned ones is no change", of(NoneCordonedIsNoChange)),
    of_impl("ends shutdowns", "IMG-7", "a change ends a controlled shutdown", of(EndsShutdowns)),
    of_impl("fences with 2", "IMG-7", "any number fences", of(FencesWithAnything)),
    of_impl("as named", "IMG-6 IMG-7", "a broker's directories are not sorted", patched(in_order=_as_named)),
    of_impl("by bytes", "IMG-6 IMG-7", "they are sorted as if without a sign", patched(in_order=_by_bytes)),
    of_impl("cordoned in order", "IMG-6 IMG-7", "the cordoned ones are sorted too", of(SortsTheCordoned)),
    of_impl("shared directories", "IMG-27", "two brokers may have a directory", of(SharesDirectories)),
    of_impl("directories twice", "IMG-27", "a broker may name one twice", of(NamesDirectoriesTwice)),
    of_impl("registrations alone", "IMG-27", "of changes they are not looked at", of(LooksAtRegistrationsAlone)),
    of_impl("keeps homes", "IMG-27", "a broker that is gone keeps its directories", of(KeepsHomes)),
    of_impl("keeps old homes", "IMG-27", "a change that names others leaves it those", of(KeepsOldHomes)),
    of_impl("own is another's", "IMG-27", "a broker may not name its own again", of(OwnIsAnothers)),
    of_impl("any protocol", "IMG-28", "no security protocol is looked at", patched(check_endpoints=_any_protocol)),
    of_impl("first protocol", "IMG-28", "that of the first is", patched(check_endpoints=_first_protocol)),
    of_impl("any name", "IMG-28", "a broker's endpoint may have none", patched(check_endpoints=_any_name)),
    of_impl("every name", "IMG-28", "a controller's may not either", patched(check_endpoints=_every_name)),
    of_impl("every level", "IMG-8", "unknown levels are taken", patched(levels_of=_every_level)),
    of_impl("levels of 0", "IMG-8", "a level of 0 is kept", of(KeepsLevelsOf0)),
    of_impl("kraft.version", "IMG-8", "a level of kraft.version is taken", of(TakesKraftVersion), "KAFKA-18979"),
    of_impl("any producer id", "IMG-9", "the next producer id may go back", of(TakesAnyProducerId)),
    of_impl("same producer id", "IMG-9", "it may stay", of(TakesTheSameProducerId)),
    of_impl("keeps nulls", "IMG-10", "a null is an empty value", of(KeepsNulls)),
    of_impl("entities in order", "IMG-11", "the order of an entity's parts counts", of(EntitiesInOrder)),
    of_impl("keeps quotas", "IMG-11", "a quota is never removed", of(KeepsQuotas)),
    of_impl("any ACL", "IMG-12", "an ACL that is not there may be removed", of(RemovesAnyAcl)),
    of_impl("each ACL", "IMG-29", "each of two that say the same may be removed", of(RemovesEachAcl)),
    of_impl("counts ACLs", "IMG-29", "what another one says too stays", of(CountsAcls)),
    of_impl("replaced ACLs", "IMG-29", "what they said does not stay", of(ForgetsWhatIsReplaced)),
    of_impl("any credential", "IMG-12", "a credential that is not there may be", of(RemovesAnyCredential)),
    of_impl("begins again", "IMG-13", "a transaction may begin in another", of(BeginsAgain)),
    of_impl("ends always", "IMG-13", "a transaction may end that did not begin", of(EndsAlways)),
    of_impl("keeps what is aborted", "IMG-13", "an abort is an end", of(KeepsWhatIsAborted)),
    of_impl("in order", "IMG-13", "changes are taken back in their order", of(TakesBackInOrder)),
    of_impl("drops what is ended", "IMG-13", "an end is an abort", of(DropsWhatIsEnded)),
    of_impl("not IMG-14", "IMG-14", "the invariant is not looked at", patched(breaches_of=_but("IMG-14"))),
    of_impl("not IMG-15", "IMG-15", "the invariant is not looked at", patched(breaches_of=_but("IMG-15"))),
    of_impl("not IMG-16", "IMG-16", "the invariant is not looked at", patched(breaches_of=_but("IMG-16"))),
    of_impl("not IMG-17", "IMG-17", "the invariant is not looked at", patched(breaches_of=_but("IMG-17"))),
    of_impl("not IMG-26", "IMG-26", "the invariant is not looked at", patched(breaches_of=_but("IMG-26"))),
    of_impl("not IMG-30", "IMG-30", "the invariant is not looked at", patched(breaches_of=_but("IMG-30"))),
    of_impl("not IMG-31", "IMG-31", "the invariant is not looked at", patched(breaches_of=_but("IMG-31"))),
    of_impl("partitions alone", "IMG-17", "a fenced broker's partitions are not looked at", of(LooksAtPartitionsAlone)),
    of_impl("old leaders", "IMG-17", "the index keeps a partition with its old leader", of(ForgetsTheIndex)),
    of_impl("stays broken", "IMG-14 IMG-15 IMG-16 IMG-17", "what was broken stays so", of(StaysBroken)),
    of_impl("a level more", "IMG-19", "versions come a level early", patched(highest_version=_one_level_more)),
    of_impl("any version", "IMG-19", "the metadata.version is not looked at", patched(highest_version=_any_version)),
]  # fmt: skip


# ---- what shows rarely
class LooksAtTwoPartitions(MetadataImage):
    """Of a broker that is fenced two partitions are looked at."""

    def _set_broker(self, id: int, after: Broker | None) -> None:
        led = self.led.get(id, set())
        self.led[id] = set(sorted(led)[:2])
        super()._set_broker(id, after)
        self.led[id] = led


class UnregisteredMayLead(MetadataImage):
    """Who ends its registration leaves its partitions unlooked at."""

    def _unregister_broker(self, f: Fields, offset: int) -> None:
        changed = set(self._changed)
        super()._unregister_broker(f, offset)
        self._changed = changed


class GoneTopicsStayBroken(MetadataImage):
    """Of a topic that is gone what was broken stays so."""

    def _remove_topic(self, f: Fields, offset: int) -> None:
        changed = set(self._changed)
        super()._remove_topic(f, offset)
        self._changed = changed


class AbortsWithoutTheIndex(MetadataImage):
    """Who leads what is as it was within the transaction."""

    def _abort_transaction(self, f: Fields, offset: int) -> None:
        led = {id: set(keys) for id, keys in self.led.items()}
        super()._abort_transaction(f, offset)
        self.led = led


class AbortsWithoutTheProducerId(MetadataImage):
    def _abort_transaction(self, f: Fields, offset: int) -> None:
        next = self.next_producer_id
        super()._abort_transaction(f, offset)
        self.next_producer_id = next


class AbortsWithoutTheLevels(MetadataImage):
    """A level that was taken to 0 within the transaction does not come back."""

    def _abort_transaction(self, f: Fields, offset: int) -> None:
        left = {*self.features}
        super()._abort_transaction(f, offset)
        self.features = {name: level for name, level in self.features.items() if name in left}


class AbortsWithoutRegistrations(MetadataImage):
    """What was changed of a broker that was there stays."""

    def _set_broker(self, id: int, after: Broker | None) -> None:
        undo = self._undo
        if id in self.brokers:
            self._undo = None
        super()._set_broker(id, after)
        self._undo = undo


class ClearsOneTopic(MetadataImage):
    """Of all that there are, the first that has such replicas."""

    def _clear_elr(self, f: Fields, offset: int) -> None:
        having = [t.name for t in self.topics.values() if any(p.elr or p.last_known_elr for p in t.partitions.values())]
        super()._clear_elr(f if f["topicName"] or not having else {**f, "topicName": having[0]}, offset)


class ClearsTheEligibleAlone(MetadataImage):
    """A partition that has only last known ones keeps them."""

    def _clear_elr(self, f: Fields, offset: int) -> None:
        kept = {
            (t.id, n): p
            for t in self.topics.values()
            for n, p in t.partitions.items()
            if p.last_known_elr and not p.elr
        }
        super()._clear_elr(f, offset)
        for (id, number), p in kept.items():
            self.topics[id].partitions[number] = p


class NotOfThisRecord(MetadataImage):
    """A broker's epoch may not be the offset of its own record."""

    def _register_broker(self, f: Fields, offset: int) -> None:
        super()._register_broker(f, offset - 1)


class KeepsTheCordoned(MetadataImage):
    """A registration that says nothing of cordoned directories leaves those of the one before."""

    def _register_broker(self, f: Fields, offset: int) -> None:
        before = self.brokers.get(f["brokerId"])
        super()._register_broker(f, offset)
        after = self.brokers[f["brokerId"]]
        if before is not None and after.cordoned is None:
            self._set_broker(f["brokerId"], after._replace(cordoned=before.cordoned))


def _any_state(before: Partition, f: Fields) -> Partition:
    """A change may say any state of a leader."""
    return merged(before, {**f, "leaderRecoveryState": 0})._replace(recovery=f["leaderRecoveryState"])


def _any_first_state(f: Fields) -> Partition:
    """A record of a whole partition may say any state of a leader."""
    return impl.partition_of({**f, "leaderRecoveryState": 0})._replace(recovery=f["leaderRecoveryState"])


def _recovered(before: Partition, f: Fields) -> Partition:
    after = merged(before, f)
    return after if after.leader == before.leader else after._replace(recovery=0)


RARE = [
    of_impl("two partitions", "IMG-17", "of a fenced broker are looked at", of(LooksAtTwoPartitions)),
    of_impl("unregistered may lead", "IMG-17", "nobody looks at its partitions", of(UnregisteredMayLead)),
    of_impl("gone and broken", "IMG-4 IMG-14 IMG-15", "a removed topic's partitions", of(GoneTopicsStayBroken)),
    of_impl("aborts without the index", "IMG-13 IMG-17", "of leaders", of(AbortsWithoutTheIndex)),
    of_impl("aborts without producer ids", "IMG-13 IMG-9", "the next one stays", of(AbortsWithoutTheProducerId)),
    of_impl("aborts without levels", "IMG-13 IMG-8", "one that was 0 stays 0", of(AbortsWithoutTheLevels)),
    of_impl("aborts without registrations", "IMG-13 IMG-7", "their changes stay", of(AbortsWithoutRegistrations)),
    of_impl("one topic cleared", "IMG-5", "of all", of(ClearsOneTopic)),
    of_impl("eligible ones cleared", "IMG-5", "where there are last known ones alone, these stay",
            of(ClearsTheEligibleAlone)),
    of_impl("not of this record", "IMG-6", "its offset may not be the broker's epoch", of(NotOfThisRecord)),
    of_impl("keeps the cordoned", "IMG-6", "of the registration before", of(KeepsTheCordoned)),
    of_impl("recovered", "IMG-3", "a new leader has nothing to recover", patched(merged=_recovered)),
    of_impl("any state", "IMG-3", "a change may say any state of a leader", patched(merged=_any_state)),
    of_impl("any first state", "IMG-3", "a partition may say any", patched(partition_of=_any_first_state)),
]  # fmt: skip
"""Those that show with several partitions, or after a rare sequence."""

MUTANTS += RARE

UNSEEN: dict[str, str] = {
    "aborts without the index": "too rare: no walk of the matrix notices it; a test of IMG-13 does, and the judge"
}
