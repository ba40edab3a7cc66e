"""Faults of meta.properties, each to be caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from kafkaspec.contract.machine import Json, Refused
from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.common.ids import id_bytes
from kafkaspec.impl.management import meta_properties as impl
from kafkaspec.impl.management import meta_properties_driver
from kafkaspec.mutants.mutant import Mutant, of_impl, with_fault
from kafkaspec.spec.management import meta_properties as spec


def _patched(target: Any = impl, **functions: Any) -> Callable[[], meta_properties_driver.Driver]:
    """The driver with other functions, while it is called."""

    class Faulty(meta_properties_driver.Driver):
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


# ---- faults of range, boundary, depth, configuration and rare state
def _nodes_of_16_bits(self: impl.MetaProperties, comment: str = "#\n") -> bytes:
    return _encode(self if self.node_id is None else replace(self, node_id=self.node_id % 2**16), comment)


def _nodes_up_to_1000(data: bytes) -> impl.MetaProperties:
    """As if reserved.broker.max.id bounded them."""
    found = _parse(data)
    if (found.node_id or 0) > 1000:
        raise impl.PropertiesUnreadable("MTP-4", "node id")
    return found


def _versions_as_text(data: bytes) -> impl.MetaProperties:
    _, version = impl.decode(data).get("version", (0, "0"))
    if version.strip(impl.TRIMMED) not in ("0", "1"):
        raise impl.PropertiesUnreadable("MTP-4", "version")
    return _parse(data)


def _node_0_is_none(self: impl.Ensemble, cluster_id: str | None, node_id: int | None) -> Any:
    with patch.dict(self.valid, {d: replace(p, node_id=p.node_id or None) for d, p in self.valid.items()}):
        return _verify(self, cluster_id, node_id or None)


def _two_directories(self: impl.Ensemble, cluster_id: str | None, node_id: int | None) -> Any:
    with patch.dict(self.valid, dict(list(self.valid.items())[:2]), clear=True):
        return _verify(self, cluster_id, node_id)


def _one_empty(disk: Disk, directories: list[str]) -> impl.Ensemble:
    found = _load(disk, directories)
    return impl.Ensemble(found.valid, found.empty[:1], found.failed)


def _up_to_100(directory_id: str) -> bool:
    id = id_bytes(directory_id)
    return id is not None and not any(id[:8]) and int.from_bytes(id[8:], "big", signed=True) <= impl.RESERVED_IDS


def _without_a_sign(directory_id: str) -> bool:
    id = id_bytes(directory_id)
    return id is not None and not any(id[:8]) and int.from_bytes(id[8:], "big") < impl.RESERVED_IDS


def _joins_two(text: str) -> Iterator[tuple[int, str]]:
    """A line goes on once."""
    for at, line in _lines(text):
        lines = text.splitlines()
        third = lines[at + 1] if len(lines) > at + 1 and line.endswith(lines[at + 1].lstrip(impl.BLANKS)) else ""
        joined = third and lines[at - 1].endswith("\\") and lines[at].endswith("\\")
        yield at, line[: -len(third.lstrip(impl.BLANKS))] if joined and third.strip() else line


def _escapes_of_a_byte(text: str, line: int) -> str:
    return "".join(c if ord(c) < 256 else chr(ord(c) % 256) for c in _unescape(text, line))


def _values_of_64(value: str) -> str:
    return _escape(value)[:64]


_escape = impl.escape

RARE = [
    of_impl(
        "nodes of 16 bits",
        "MTP-3",
        "node 65536 is written as 0",
        _patched(impl.MetaProperties, encode=_nodes_of_16_bits),
    ),
    of_impl("nodes up to 1000", "MTP-4", "a node id above that is unreadable", _patched(parse=_nodes_up_to_1000)),
    of_impl("versions as text", "MTP-4", "+1 and 01 are not 1", _patched(parse=_versions_as_text)),
    of_impl("node 0 is none", "MTP-5", "it agrees with any other", _patched(impl.Ensemble, verify=_node_0_is_none)),
    of_impl("two directories", "MTP-5 MTP-6", "a third may disagree", _patched(impl.Ensemble, verify=_two_directories)),
    of_impl("one empty directory", "MTP-7", "a second is not formatted", _patched(impl.Ensemble, load=_one_empty)),
    of_impl("reserved up to 100", "MTP-6", "100 is no directory", _patched(is_reserved=_up_to_100)),
    of_impl(
        "reserved without a sign", "MTP-6", "numbers below 0 are directories", _patched(is_reserved=_without_a_sign)
    ),
    of_impl("two lines are joined", "MTP-1", "a third is left out", _patched(logical_lines=_joins_two)),
    of_impl("escapes of a byte", "MTP-2", "of four digits the last two count", _patched(unescape=_escapes_of_a_byte)),
    of_impl("64 characters", "MTP-1", "a longer value is cut when it is written", _patched(escape=_values_of_64)),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE
