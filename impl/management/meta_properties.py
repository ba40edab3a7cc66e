"""meta.properties as Kafka reads and writes it: java.util.Properties character by character, and the files of a broker.

Source: PropertiesUtils, MetaProperties and MetaPropertiesEnsemble, Kafka 4.3.0; java.util.Properties.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.common.ids import ID_BYTES, id_bytes, id_text
from kafkaspec.impl.management.checkpoints import INT_BITS, parse_integer, replace_file

NAME = "meta.properties"
BLANKS = " \t\f"
CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
TRIMMED = "".join(map(chr, range(ord(" ") + 1)))
"""What Java's String.trim leaves out."""
RESERVED_IDS = 100


class PropertiesUnreadable(Exception):
    """The file cannot be read: `clause` says what is wrong, `key` at which property, `line` in which line, from 1."""

    def __init__(self, clause: str, message: str, line: int | None = None, key: str = "") -> None:
        super().__init__(message)
        self.clause = clause
        self.line = line
        self.key = key


class MalformedEscape(PropertiesUnreadable):
    """A \\u without four hexadecimal digits."""


# ---- java.util.Properties --------------------------------------------------------------------------------------------
def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that hold properties, comments left out, continued ones joined; each with its number, from 1.
    [MTP-1]"""
    at, n, first, out, continues = 1, 0, 1, "", False
    while n <= len(text):
        begin = n
        while n < len(text) and text[n] not in "\r\n":
            n += 1
        line = text[begin:n].lstrip(BLANKS)
        if text[n : n + 2] == "\r\n":
            n += 1
        n += 1
        if (
            continues
            and not out
            and (line[:1] in ("#", "!") or (not line and (begin < len(text) or text[-2:] == "\r\n")))
        ):
            continues = False  # only a backslash so far: a line begins here
        if continues or (line and line[0] not in "#!"):
            first = first if continues else at
            out = out + line if continues else line
            trailing = 0
            while trailing < len(out) and out[-1 - trailing] == "\\":
                trailing += 1
            continues = trailing % 2 == 1
            if continues:
                out = out[:-1]
            else:
                yield first, out
        at += 1
    if continues:
        yield first, out


def unescape(text: str, line: int) -> str:
    """Raises PropertiesUnreadable for a malformed \\u. [MTP-2]"""
    out, n = [], 0
    while n < len(text):
        c = text[n]
        n += 1
        if c != "\\" or n == len(text):
            out.append(c if c != "\\" else "")
            continue
        c = text[n]
        n += 1
        if c == "u":
            digits = text[n : n + 4]
            if len(digits) < 4 or not HEXADECIMAL.issuperset(digits):
                raise MalformedEscape("MTP-2", f"malformed \\u{digits}", line)
            out.append(chr(int(digits, 16)))
            n += 4
        else:
            out.append(CONTROL.get(c, c))
    return "".join(out)


def decode(data: bytes) -> dict[str, tuple[int, str]]:
    """The properties: key -> (line, value). Raises PropertiesUnreadable. [MTP-1]"""
    found: dict[str, tuple[int, str]] = {}
    for at, line in logical_lines(data.decode("latin-1")):
        end = 0
        while end < len(line) and line[end] not in "=:" + BLANKS:
            end += 2 if line[end] == "\\" else 1
        begin = end
        while begin < len(line) and line[begin] in BLANKS:
            begin += 1
        if begin < len(line) and line[begin] in "=:":
            begin += 1
            while begin < len(line) and line[begin] in BLANKS:
                begin += 1
        found[unescape(line[:end], at)] = at, unescape(line[begin:], at)
    return found


def escape(value: str) -> str:
    """As java.util.Properties.store writes a value to a writer: nothing beyond its own marks is escaped."""
    backwards = {control: letter for letter, control in CONTROL.items()}
    out = []
    for n, c in enumerate(value):
        if c in backwards:
            out.append("\\" + backwards[c])
        elif c in "=:#!\\" or (c == " " and not n):
            out.append("\\" + c)
        else:
            out.append(c)
    return "".join(out)


# ---- the file --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class MetaProperties:
    """What the file says. `lines` are those of the keys that it has."""

    version: int
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def node_key(self) -> str:
        """The key under which a file of this version has the node's id. [MTP-3]"""
        return "node.id" if self.version else "broker.id"

    def lacking(self) -> list[str]:
        """The keys that a broker needs and this file has not. [MTP-10]"""
        out = [] if self.node_id is not None else [self.node_key]
        if self.directory_id is not None and self.cluster_id is None:
            out.append("cluster.id")
        return out

    def check(self) -> None:
        """Raises PropertiesUnreadable where version 1 lacks what it must have. [MTP-3, MTP-4]"""
        for key, value in (("node.id", self.node_id), ("cluster.id", self.cluster_id)):
            if self.version and value is None:
                raise PropertiesUnreadable("MTP-4", f"{key} is missing", key=key)

    def encode(self, comment: str = "#\n") -> bytes:
        """The file's bytes; Kafka's comment has the time of writing. [MTP-3]"""
        values = {"cluster.id": self.cluster_id, "directory.id": self.directory_id, "version": str(self.version)}
        if self.node_id is not None:
            values[self.node_key] = str(self.node_id)
        body = "".join(f"{key}={escape(value)}\n" for key, value in values.items() if value is not None)
        return (comment + body).encode("latin-1")


def parse(data: bytes) -> MetaProperties:
    """What the file says. Raises PropertiesUnreadable. [MTP-3, MTP-4]"""
    found = decode(data)

    def number(key: str, leave_out: str = "") -> int | None:
        if key not in found:
            return None
        at, text = found[key]
        text = text.strip(leave_out)
        value = parse_integer(text, INT_BITS)
        if value is None:
            raise PropertiesUnreadable("MTP-4", f"{key} is no number: {text!r}", at, key)
        return value

    version = number("version", TRIMMED) or 0
    if version not in (0, 1):
        raise PropertiesUnreadable("MTP-4", f"version {version}, expected 0 or 1", found["version"][0], "version")
    node = number("node.id" if version else "broker.id")
    directory = None
    if "directory.id" in found:
        at, text = found["directory.id"]
        id = id_bytes(text)
        if id is None:
            raise PropertiesUnreadable("MTP-4", f"directory.id is no id: {text!r}", at, "directory.id")
        directory = id_text(id)
    cluster = found["cluster.id"][1] if "cluster.id" in found else None
    out = MetaProperties(version, cluster, node, directory, {key: at for key, (at, _) in found.items()})
    out.check()
    return out


def is_reserved(directory_id: str) -> bool:
    """One of the ids that mean something else than a directory. [MTP-6]"""
    id = id_bytes(directory_id)
    half = ID_BYTES // 2
    return id is not None and not any(id[:half]) and int.from_bytes(id[half:], "big", signed=True) < RESERVED_IDS


def write(disk: Disk, directory: str, of: MetaProperties) -> None:
    """Replace a directory's file atomically. Raises OSError. [MTP-8]"""
    replace_file(disk, f"{directory}/{NAME}", of.encode())


class EnsembleInvalid(Exception):
    """The directories of a broker do not fit together: it stops (MTP-5)."""


class DirectoryIdInvalid(EnsembleInvalid):
    """A directory.id is reserved, or stands in two directories (MTP-6)."""


@dataclass
class Ensemble:
    """The files of all directories of a broker."""

    valid: dict[str, MetaProperties] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, disk: Disk, directories: list[str]) -> Ensemble:
        """Read the file of every directory: it is valid, or not there, or cannot be read. [MTP-7]"""
        out = cls()
        for directory in directories:
            path = f"{directory}/{NAME}"
            try:
                out.valid[directory] = parse(disk.read(path))
            except FileNotFoundError:
                out.empty.append(directory)
            except (OSError, PropertiesUnreadable):
                out.failed.append(directory)
        return out

    def verify(self, cluster_id: str | None, node_id: int | None) -> tuple[str | None, int | None]:
        """The cluster and the node. Raises EnsembleInvalid. [MTP-5, MTP-6]"""
        if not self.valid:
            raise EnsembleInvalid("no readable meta.properties")
        seen: dict[str, str] = {}
        for directory, p in self.valid.items():
            cluster_id = cluster_id if cluster_id is not None else p.cluster_id
            node_id = node_id if node_id is not None else p.node_id
            if p.cluster_id not in (None, cluster_id):
                raise EnsembleInvalid(f"{directory}: cluster.id {p.cluster_id}, expected {cluster_id}")
            if p.node_id not in (None, node_id):
                raise EnsembleInvalid(f"{directory}: {p.node_key} {p.node_id}, expected {node_id}")
        for directory, p in self.valid.items():
            if p.directory_id is None:
                continue
            if is_reserved(p.directory_id):
                raise DirectoryIdInvalid(f"{directory}: directory.id {p.directory_id} is reserved")
            if p.directory_id in seen:
                raise DirectoryIdInvalid(f"{directory}: has the directory.id of {seen[p.directory_id]}")
            seen[p.directory_id] = directory
        return cluster_id, node_id
