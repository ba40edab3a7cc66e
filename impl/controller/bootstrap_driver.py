"""The directories of a node on a simulated disk, for the spec to walk beside."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from kafkaspec.contract.machine import ByName, Json, Refused
from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.controller import bootstrap as impl
from kafkaspec.impl.controller import records
from kafkaspec.impl.management import meta_properties
from kafkaspec.impl.management.meta_properties import MetaProperties
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT
from kafkaspec.spec.controller import bootstrap as spec
from kafkaspec.spec.controller.bootstrap_parts import requests

NOW = 1_000_000
"""ms"""


class Driver(ByName):
    """Our formatter, walked against the spec. Ids that nobody said are shown by numbers."""

    machine = spec.machine
    REFUSALS: Mapping[type[impl.FormatRefusedError], tuple[str, str]] = {
        impl.ReleaseError: ("BST-24", requests.TERSE),
        impl.LevelTextError: ("BST-6", requests.RUNTIME),
        impl.QuorumError: ("BST-11", requests.TERSE),
        impl.VotersError: ("BST-21", ILLEGAL_ARGUMENT),
        impl.VersionError: ("BST-7", requests.FORMATTER),
        impl.UnknownVersionError: ("BST-7", ILLEGAL_ARGUMENT),
        impl.KraftVersionError: ("BST-12", requests.FORMATTER),
        impl.UnknownFeatureError: ("BST-9", requests.FORMATTER),
        impl.FeatureLevelError: ("BST-9", ILLEGAL_ARGUMENT),
        impl.ScramTextError: ("BST-22", requests.FORMATTER),
        impl.ScramError: ("BST-23", requests.FORMATTER),
        impl.EmptyPasswordError: ("BST-23", ILLEGAL_ARGUMENT),
        impl.ScramTooEarlyError: ("BST-10", requests.FORMATTER),
        impl.DisagreementError: ("BST-2", requests.RUNTIME),
        impl.FormattedError: ("BST-3", requests.FORMATTER),
        impl.NoDirectoryError: ("BST-4", requests.FORMATTER),
        impl.MissingDirectoryError: ("BST-20", requests.RUNTIME),
        impl.NoVersionError: ("BST-19", requests.RUNTIME),
    }
    make: type[impl.Formatter] = impl.Formatter

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.disk = SimulatedDisk()
        self.said: set[str] = set()
        self.salts: set[bytes] = set()
        self.drawn = random.Random(1)
        # of files that stay as they are, as most do
        self.contents = cache(lambda data: impl.contents(data))
        self.parsed = cache(lambda data: meta_properties.parse(data))
        self.subject = self.make(self.disk, lambda: NOW, self.draw, lambda name: f"$DIR/{name}")

    def draw(self, size: int) -> bytes:
        made = self.drawn.randbytes(size)
        self.salts.add(made.hex().encode())
        return made

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        try:
            return super().apply(name, arguments)
        except impl.FormatRefusedError as e:
            return Refused(*self.REFUSALS[type(e)], e.message)

    # what is there

    def state(self) -> spec.Storage:
        """The spec's state that the files stand for."""
        return spec.with_names(spec.Storage(**{name: self._directory(name) for name in spec.NAMES}))

    def _directory(self, name: str) -> spec.Directory:
        bootstrap = self._file(f"{name}/{impl.BOOTSTRAP}")
        snapshot = self._file(f"{name}/{impl.SNAPSHOT}")
        return spec.Directory(
            self._properties(name),
            None if bootstrap is None else tuple(map(self._record, self.contents(bootstrap)[1])),
            None if snapshot is None else self._snapshot(self.contents(snapshot)[0]),
        )

    def _file(self, path: str) -> bytes | None:
        return self.disk.read(path) if self.disk.exists(path) else None

    def _properties(self, name: str) -> Any:
        data = self._file(f"{name}/{meta_properties.NAME}")
        if data is None:
            return None
        try:
            p = self.parsed(data)
        except meta_properties.PropertiesUnreadable:
            return "unreadable"
        id = None if p.directory_id is None else self._named(p.directory_id)
        return spec.Properties(p.version, p.cluster_id, p.node_id, id)

    def _named(self, id: str) -> str:
        """An id that was drawn by a number, if it is one that may be drawn."""
        return id if id in self.said or id.startswith("-") else f"{spec.MADE}{id}"

    def _record(self, record: records.Record) -> spec.Level | requests.Credential:
        f = record.fields
        if impl.is_level(record):
            return spec.Level(f["name"], f["featureLevel"])
        random = f["salt"] in self.salts
        kept = (None,) * 3 if random else (f["salt"].hex(), f["storedKey"].hex(), f["serverKey"].hex())
        return requests.Credential(f["name"], f["mechanism"], f["iterations"], *kept)

    def _snapshot(self, control: Sequence[records.Record]) -> spec.Snapshot:
        _, version, members, _ = control
        voters = []
        for v in members.fields["voters"]:
            (endpoint,) = v["endpoints"]
            assert endpoint["name"] == spec.LISTENER
            id = self._named(v["voterDirectoryId"])
            voters.append(requests.Voter(v["voterId"], id, endpoint["host"], endpoint["port"]))
        return spec.Snapshot(version.fields["kRaftVersion"], tuple(voters))

    # operations

    def format_storage(
        self, roles: str, node_id: int, cluster_id: str, directories: Sequence[str], metadata_directory: str,
        static_voters: bool, flag: str, initial_controllers: str, ignore_formatted: bool, release_version: str | None,
        features: Sequence[str], scram: Sequence[str], unstable: bool,
    ) -> spec.Outcome:  # fmt: skip
        node = impl.Node(node_id, roles != "broker", directories, metadata_directory, static_voters, unstable)
        asked = impl.Arguments(
            cluster_id, flag, initial_controllers, ignore_formatted, release_version, features, scram
        )  # fmt: skip
        found = requests.voters(initial_controllers)
        if flag == "initial" and not isinstance(found, Refused):
            self.said |= {v.directory_id for v in found}
        done = self.subject.run(node, asked)
        name = None if done.release is None else impl.NAMES[done.release]
        return spec.Outcome(name, dict(done.kinds), [*done.ignored])

    def read_bootstrap(self, directory: str) -> spec.FirstRecords:
        exists = any(n.startswith(f"{directory}/") for n in self.disk.names)
        first = impl.first_records(self.disk, directory, exists, f"$DIR/{directory}")
        return spec.FirstRecords(first.version, tuple(map(self._record, first.records)), first.by_default)

    def parse_voters(self, text: str) -> list[requests.Voter]:
        return [requests.Voter(v.node_id, v.directory_id, v.host, v.port) for v in impl.initial_voters(text)]

    def parse_scram(self, text: str) -> spec.Level | requests.Credential:
        return self._record(impl.credential(text, lambda: self.draw(16).hex().encode()))

    def write_properties(
        self, directory: str, version: int, cluster_id: str | None, node_id: int | None, directory_id: str | None
    ) -> None:
        if directory_id is not None:
            self.said.add(directory_id)
        meta_properties.write(self.disk, directory, MetaProperties(version, cluster_id, node_id, directory_id))

    def write_bootstrap(self, directory: str, levels: Sequence[spec.Level]) -> None:
        data = [impl.level_record(name, level) for name, level in levels]
        self.disk.write(f"{directory}/{impl.BOOTSTRAP}", impl.bootstrap_file(data, lambda: NOW))

    def loses_properties(self, directory: str) -> None:
        if self.disk.exists(f"{directory}/{meta_properties.NAME}"):
            self.disk.remove(f"{directory}/{meta_properties.NAME}")

    def remove(self, directory: str) -> None:
        for name in [n for n in self.disk.names if n.startswith(f"{directory}/")]:
            self.disk.remove(name)
