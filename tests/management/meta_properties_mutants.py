"""Faults of meta.properties, each to be caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from kafkaspec.contract.machine import Json, Refused
from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.management import meta_properties as impl
from kafkaspec.mutants.matrix import Mutant, of_impl, with_fault
from kafkaspec.spec.management import meta_properties as spec


def _patched(target: Any = impl, **functions: Any) -> Callable[[], impl.Driver]:
    """The driver with other functions, while it is called."""

    class Faulty(impl.Driver):
        def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
            with patch.multiple(target, **functions):
                return super().apply(name, arguments)

    return Faulty


_lines, _unescape, _parse, _verify, _load, _encode = (
    impl.logical_lines, impl.unescape, impl.parse, impl.Ensemble.verify, impl.Ensemble.load, impl.MetaProperties.encode,
)  # fmt: skip


def _joins_nothing(text: str) -> Iterator[tuple[int, str]]:
    for at, line in enumerate(text.splitlines(), 1):
        if line.strip(impl.BLANKS) and line.strip(impl.BLANKS)[0] not in "#!":
            yield at, line.lstrip(impl.BLANKS)


def _comments_are_properties(text: str) -> Iterator[tuple[int, str]]:
    return _lines(text.replace("!", "x"))


def _keeps_backslashes(text: str, line: int) -> str:
    return text


def _strips(text: str, line: int) -> str:
    return _unescape(text, line).strip()


def _reads_any_u(text: str, line: int) -> str:
    try:
        return _unescape(text, line)
    except impl.PropertiesUnreadable:
        return text


def _node_for_broker(data: bytes) -> impl.MetaProperties:
    return _parse(data.replace(b"broker.id", b"node.id"))


def _any_version(data: bytes) -> impl.MetaProperties:
    return _parse(data.replace(b"version=2", b"version=1"))


def _any_directory(data: bytes) -> impl.MetaProperties:
    return _parse(data.replace(b"=short", b"=Wz2UP7E_QO2kiOpi3I8jIQ"))


def _without_a_cluster(data: bytes) -> impl.MetaProperties:
    with patch.object(impl.MetaProperties, "check", lambda self: None):
        return _parse(data)


def _two_clusters(self: impl.Ensemble, cluster_id: str | None, node_id: int | None) -> Any:
    with patch.dict(self.valid, {d: replace(p, cluster_id=cluster_id) for d, p in self.valid.items()}):
        return _verify(self, cluster_id, node_id)


def _two_nodes(self: impl.Ensemble, cluster_id: str | None, node_id: int | None) -> Any:
    with patch.dict(self.valid, {d: replace(p, node_id=None) for d, p in self.valid.items()}):
        return _verify(self, cluster_id, node_id)


def _twins(self: impl.Ensemble, cluster_id: str | None, node_id: int | None) -> Any:
    seen = {p.directory_id: d for d, p in self.valid.items()}
    with patch.dict(self.valid, {d: self.valid[d] for d in seen.values()}, clear=True):
        return _verify(self, cluster_id, node_id)


def _failed_are_empty(disk: Disk, directories: list[str]) -> impl.Ensemble:
    found = _load(disk, directories)
    return impl.Ensemble(found.valid, sorted(found.empty + found.failed), [])


def _escapes_nothing(value: str) -> str:
    return value


def _accepts_everything(
    version: int, cluster_id: str | None, node_id: int | None, directory_id: str | None
) -> list[str] | Refused:
    return spec.written_lines(spec.MetaProperties(version, cluster_id, None, directory_id))


def _without_a_node(self: impl.MetaProperties, comment: str = "#\n") -> bytes:
    return _encode(replace(self, node_id=None), comment)


MUTANTS = [
    of_impl("lines are not joined", "MTP-1", "a backslash at the end is text", _patched(logical_lines=_joins_nothing)),
    of_impl("! is no comment", "MTP-1", "only # is", _patched(logical_lines=_comments_are_properties)),
    of_impl("backslashes stay", "MTP-2", "nothing is unescaped", _patched(unescape=_keeps_backslashes)),
    of_impl("blanks after a value go", "MTP-1", "a value is stripped", _patched(unescape=_strips)),
    of_impl("any u is read", "MTP-2", "without four digits", _patched(unescape=_reads_any_u)),
    of_impl("broker.id is node.id", "MTP-3", "in both versions", _patched(parse=_node_for_broker)),
    of_impl("version 2 is read", "MTP-4", "as if it were 1", _patched(parse=_any_version)),
    of_impl("any directory.id", "MTP-4", "one that is no id", _patched(parse=_any_directory)),
    of_impl("no cluster.id", "MTP-4", "version 1 may lack what it must have", _patched(parse=_without_a_cluster)),
    of_impl("two clusters", "MTP-5", "directories of two", _patched(impl.Ensemble, verify=_two_clusters)),
    of_impl("two nodes", "MTP-5", "directories of two", _patched(impl.Ensemble, verify=_two_nodes)),
    of_impl("twins", "MTP-6", "two directories with one id", _patched(impl.Ensemble, verify=_twins)),
    of_impl("reserved ids are ids", "MTP-6", "a directory that means none", _patched(is_reserved=lambda id: False)),
    of_impl("failed is empty", "MTP-7", "and would be formatted", _patched(impl.Ensemble, load=_failed_are_empty)),
    of_impl("nothing is escaped", "MTP-1 MTP-2", "when it is written", _patched(escape=_escapes_nothing)),
    of_impl(
        "written in place",
        "MTP-8",
        "and not flushed: the first crash shows it",
        _patched(replace_file=lambda disk, path, data: disk.write(path, data[:-3])),
    ),
    of_impl("no node is written", "MTP-10 MTP-3", "whose it is", _patched(impl.MetaProperties, encode=_without_a_node)),
    Mutant(
        "version 1 without a node",
        ("MTP-3",),
        "is written",
        "spec",
        lambda: with_fault(spec.machine, "metaProperties.write", _accepts_everything),
    ),
]
