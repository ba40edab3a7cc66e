"""meta.properties of the directories under audit: each readable, all of one cluster, each with an id of its own.

Source: MetaPropertiesEnsemble, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkaspec.audit.check import ClusterCheck, Directory, DirectoryCheck
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.contract.clauses import states
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import read_small
from kafkaspec.impl.management.meta_properties import NAME, MetaProperties, PropertiesUnreadable, is_reserved, parse

BROKER_FILES = ("log-start-offset-checkpoint",)
"""of a release that has meta.properties: one of 0.8 has neither"""
STOPS = "a restart fails on it: the broker does not start"


def read(directory: Directory) -> MetaProperties | None:
    """What the directory's file says; None if there is none, or it cannot be read."""
    file = directory.files.files.get(NAME)
    if file is None:
        return None
    try:
        return parse(read_small(file))
    except (PropertiesUnreadable, UserError):
        return None


class MetaPropertiesCheck(DirectoryCheck):
    """One directory's file."""

    needs_directory = ("MTP-2", "MTP-4", "MTP-6", "MTP-7", "MTP-10")

    @states("MTP-2", "MTP-4", "MTP-6", "MTP-7", "MTP-10")
    def check(self, directory: Directory) -> Iterator[Finding]:
        file = directory.files.files.get(NAME)
        if file is None:
            if all(name in directory.files.files for name in BROKER_FILES):
                yield Finding(
                    Severity.WARNING,
                    "MTP-7",
                    str(directory.files.path),
                    f"a broker's directory without {NAME}",
                    "one that names the cluster and the node",
                    "a broker of 3.x or later does not start with it unless another directory has one",
                )
            return
        try:
            found = parse(read_small(file))
        except PropertiesUnreadable as e:
            yield Finding(
                Severity.ERROR,
                e.clause,
                str(file.path),
                f"the file cannot be read: {e}",
                "version, cluster.id, node.id and directory.id",
                "a restart goes on without the directory; a broker with no other stops",
                line=e.line,
            )
            return
        lacking = found.lacking()
        if lacking:
            yield Finding(
                Severity.ERROR,
                "MTP-10",
                str(file.path),
                f"the file does not say {' and '.join(lacking)}" if found.lines else "the file says nothing",
                f"{' and '.join(lacking)} of the broker whose directory it is",
                STOPS,
            )
        if found.directory_id is not None and is_reserved(found.directory_id):
            yield Finding(
                Severity.ERROR,
                "MTP-6",
                str(file.path),
                f"directory.id {found.directory_id} is a reserved one",
                "a random id",
                STOPS,
                line=found.lines.get("directory.id"),
            )


class EnsembleCheck(ClusterCheck):
    """All directories given: those of one node, and the nodes of one cluster."""

    needs_directory = ("MTP-6", "MTP-9")

    @states("MTP-6", "MTP-9")
    def check(self, directories: tuple[Directory, ...], reread: Any) -> Iterator[Finding]:
        cluster: tuple[str, Directory] | None = None
        ids: dict[str, Directory] = {}
        for directory in directories:
            found = read(directory)
            if found is None:
                continue
            if found.cluster_id is not None:
                if cluster is not None and cluster[0] != found.cluster_id:
                    yield self._finding(
                        directory,
                        found,
                        "MTP-9",
                        "cluster.id",
                        f"cluster.id {found.cluster_id}, and that of {cluster[1].files.path} is {cluster[0]}",
                        f"cluster.id={cluster[0]}",
                    )
                cluster = cluster or (found.cluster_id, directory)
            if found.directory_id is not None:
                other = ids.setdefault(found.directory_id, directory)
                if other is not directory:
                    yield self._finding(
                        directory,
                        found,
                        "MTP-6",
                        "directory.id",
                        f"directory.id {found.directory_id} is that of {other.files.path} too",
                        "an id of its own",
                    )

    @staticmethod
    def _finding(directory: Directory, found: MetaProperties, clause: str, key: str, what: str, right: str) -> Finding:
        path = str(directory.files.files[NAME].path)
        return Finding(Severity.ERROR, clause, path, what, right, STOPS, line=found.lines.get(key))


CLAUSES = ("MTP-2", "MTP-4")
"""What a file that cannot be read is reported under, as the reader says."""
AUDIT: tuple[Any, ...] = (MetaPropertiesCheck, EnsembleCheck)
