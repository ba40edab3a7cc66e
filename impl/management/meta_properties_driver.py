"""The files meta.properties of a broker's directories, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.machine import ByName
from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.management import meta_properties as impl
from kafkaspec.impl.management.meta_properties import NAME
from kafkaspec.spec.management import meta_properties as spec


class Driver(ByName):
    """Files on a simulated disk, read as a broker reads them."""

    machine = spec.machine
    refusals = {
        impl.MalformedEscape: spec.MALFORMED_ESCAPE,
        impl.PropertiesUnreadable: spec.UNREADABLE,
        impl.DirectoryIdInvalid: spec.NO_DIRECTORY_IDS,
        impl.EnsembleInvalid: spec.DISAGREEING,
    }

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.disk = SimulatedDisk()

    def properties(self, file: str) -> dict[str, str]:
        return {key: value for key, (_, value) in impl.decode(file.encode("latin-1")).items()}

    def meta_properties(self, file: str) -> spec.MetaProperties:
        p = impl.parse(file.encode("latin-1"))
        return spec.MetaProperties(p.version, p.cluster_id, p.node_id, p.directory_id)

    def meta_properties_write(
        self, version: int, cluster_id: str | None, node_id: int | None, directory_id: str | None
    ) -> list[str]:
        of = impl.MetaProperties(version, cluster_id, node_id, directory_id)
        of.check()
        impl.write(self.disk, "dir", of)
        lines = self.disk.read(f"dir/{NAME}").decode("latin-1").splitlines()
        return sorted(line for line in lines if not line.startswith("#"))

    def ensemble_verify(
        self, files: Mapping[str, str | None], expected_cluster_id: str | None, expected_node_id: int | None
    ) -> spec.Ensemble:
        self.disk = SimulatedDisk()
        for directory, text in files.items():
            if text is not None:
                self.disk.write(f"{directory}/{NAME}", text.encode("latin-1"))
        ensemble = impl.Ensemble.load(self.disk, sorted(files))
        ensemble.verify(expected_cluster_id, expected_node_id)
        cluster = next((p.cluster_id for p in ensemble.valid.values() if p.cluster_id is not None), None)
        node = next((p.node_id for p in ensemble.valid.values() if p.node_id is not None), None)
        return spec.Ensemble(cluster, node, ensemble.empty, ensemble.failed)
