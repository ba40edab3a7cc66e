"""The timeline collections, for the spec to walk beside."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafkaspec.contract.machine import ByName, Json, Refused
from kafkaspec.impl.controller import timeline as impl
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH, Epoch, OpenIterator, Timeline, View
from kafkaspec.spec.controller import timeline as spec


class Driver(ByName):
    """One registry with the collections that the recordings have."""

    machine = spec.machine
    COLLECTIONS = ("map", "set", "long", "int", "object")
    Registry = impl.SnapshotRegistry
    Map: type[impl.TimelineHashMap[int, int]] = impl.TimelineHashMap
    Set: type[impl.TimelineHashSet[int]] = impl.TimelineHashSet
    Long = impl.TimelineLong
    Integer = impl.TimelineInteger
    subject: impl.SnapshotRegistry

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.first = spec.initial(**arguments)
        self.subject = self.Registry()
        self.map = self.Map(self.subject, self.first.map_expected_size)
        self.set = self.Set(self.subject, self.first.set_expected_size)
        self.long = self.Long(self.subject)
        self.int = self.Integer(self.subject)
        self.object = impl.TimelineObject(self.subject, self.first.present.object)
        self.further: dict[str, impl.TimelineHashSet[int]] = {}
        self.made: set[str] = set()
        self.iterator: tuple[str, impl.Snapshot, Iterator[Any]] | None = None
        self.given: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        """The method of a collection: `map_put` is the map's `put`."""
        collection, _, method = name.partition("_")
        if collection not in self.COLLECTIONS or not method:
            raise AttributeError(name)
        return getattr(getattr(self, collection), method)

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        try:
            return super().apply(name, arguments)
        except impl.TimelineError as e:
            return e.refused

    def observe(self) -> Json:
        """What the collections answer, beside their sizes."""
        epochs = self.subject.epochs
        return {
            "epochs": epochs,
            "latestEpoch": self.subject.latest_epoch,
            "latest": self._shown(LATEST_EPOCH),
            "at": {str(epoch): self._shown(epoch) for epoch in epochs},
        }

    def _shown(self, epoch: Epoch) -> Json:
        return {
            "map": {str(k): v for k, v in sorted(self.map.items(epoch))},
            "mapSize": self.map.size(epoch),
            "set": sorted(self.set.elements(epoch)),
            "setSize": self.set.size(epoch),
            "long": self.long.get(epoch),
            "int": self.int.get(epoch),
            "object": self.object.get(epoch),
        }

    def state(self) -> Timeline:
        """Every collection read through the tiers, at every epoch."""
        registry, iterator = self.subject, self.iterator
        opened = iterator is not None and not iterator[1].erased
        return self.first._replace(
            present=self._view(LATEST_EPOCH),
            past={epoch: self._view(epoch) for epoch in registry.epochs},
            highest=registry.highest_epoch,
            iterator=OpenIterator(iterator[0], iterator[1].epoch, len(self.given)) if iterator and opened else None,
            held=frozenset(self.further),
            made=frozenset(self.made),
        )

    def _view(self, epoch: Epoch) -> View:
        return View(
            dict(self.map.items(epoch)),
            frozenset(self.set.elements(epoch)),
            self.long.get(epoch),
            self.int.get(epoch),
            self.object.get(epoch),
            {n: elements for n, s in self.further.items() if (elements := frozenset(s.elements(epoch)))},
        )

    def map_values_contains(self, value: int, epoch: Epoch) -> bool:
        return self.map.contains_value(value, epoch)

    def map_equals(self, other: Mapping[str, int]) -> bool:
        return {str(k): v for k, v in self.map.items()} == other

    def map_key_set_iterator_remove(self, key: int) -> bool:
        for k, _ in self.map.items():
            if k == key:
                return self.map.remove(key) is not None
        return False

    def map_key_set_at_remove(self, key: int, epoch: Epoch) -> bool:
        return self.map.remove_at(key, epoch)

    def get_or_create_snapshot(self, epoch: Epoch) -> Epoch:
        return self.subject.get_or_create_snapshot(epoch).epoch

    def idempotent_create_snapshot(self, epoch: Epoch) -> None:
        self.subject.get_or_create_snapshot(epoch)

    def reset_registry(self) -> None:
        self.subject.reset()
        self.made = set(self.further)

    def registry_registered(self) -> int:
        return self.subject.registered

    def iterator_open(self, collection: str, epoch: Epoch) -> None:
        iterator = self.map.items(epoch) if collection == "map" else self.set.elements(epoch)
        self.iterator = collection, self.subject.snapshot(epoch), iterator
        self.given = []

    def iterator_next(self, count: int) -> int:
        assert self.iterator is not None
        came = list(itertools.islice(self.iterator[2], count))
        self.given += came
        return len(came)

    def iterator_finish(self) -> list[Any]:
        assert self.iterator is not None
        rest = self.iterator[2]
        self.iterator = None
        return sorted([*self.given, *rest])

    def iterator_across_changes(self, epoch: Epoch, values: Sequence[int]) -> list[int]:
        self.iterator_open("set", epoch)
        self.iterator_next(1)
        self.set.add_all(values)
        self.set.remove_all(set(self.set.elements()).difference(values))
        return self.iterator_finish()

    def collection_create(self, name: str) -> None:
        self.further[name] = self.Set(self.subject, 4)
        self.made.add(name)

    def collection_add(self, name: str, value: int) -> bool:
        return self.further[name].add(value)

    def collection_elements(self, name: str, epoch: Epoch) -> list[int]:
        return sorted(self.further[name].elements(epoch))

    def collection_drop(self, name: str) -> None:
        del self.further[name]

    def capacity(self, expected_size: int) -> int:
        return impl.capacity_for(expected_size)
