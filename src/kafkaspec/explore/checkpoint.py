"""A search on disk: a line of JSON that says where it stands, then every thread's queue as it lies in memory, then a
digest of both.

The table is not kept: it is filled again from the queues. A checkpoint belongs to one model's code at one size, and to
machines whose vectors are as wide. It is written beside the one that is there, which it then replaces. Of several runs
that keep one checkpoint, each replaces it as a whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kafkaspec.errors import UserError
from kafkaspec.explore.kernels import COUNT, STUCK
from kafkaspec.explore.level import Hit, Level

if TYPE_CHECKING:
    from kafkaspec.explore.engine import Search

FORMAT = "kafkaspec exploration 3"
BEGIN = json.dumps({"format": FORMAT}).encode()[:-1]
"""What a checkpoint begins with."""
DIGEST_BYTES = 32
KEYS = frozenset(
    {
        "format", "model", "sizes", "code", "threads", "words", "counts", "generated", "first_count", "starts", "level",
        "taken", "seen", "stuck", "stopped", "faults", "chunk", "packed",
    }
)  # fmt: skip


def identity(search: Search) -> str:
    """What a checkpoint must agree on with the run that goes on from it: the model's machine code, before LLVM, and
    the names by which the code's answers are told."""
    p = search.program
    names = (p.faults, [(kind, c.name) for kind, c in p.state_claims], [a.name for a in p.layout.model.actions])
    return hashlib.sha256(f"{p.symmetry} {p.key_words} {names} {p.code_text}".encode()).hexdigest()


def save(search: Search, path: Path) -> None:
    """Write the search, between two chunks of a level. Raises UserError when the file cannot be written."""

    def found(f: Hit | None) -> Any:
        return None if f is None else [f.level, list(f.state)]

    s, p = search, search.program
    head = {
        "format": FORMAT,
        "model": p.layout.model.name,
        "sizes": p.layout.sizes,
        "code": identity(s),
        "threads": s.threads,
        "words": p.words,
        "counts": s.counts(),
        "generated": s.generated,
        "first_count": s.first_count,
        "starts": s.starts,
        "level": [s.level.lo, s.level.hi, s.level.cursor],
        "taken": s.taken_by_thread(),
        "seen": {name: found(f) for name, f in s.seen.items()},
        "stuck": found(s.stuck),
        "stopped": any(own[STUCK] for own in s.own),
        "faults": [i for i in range(len(p.faults)) if any(any(x) for x in s.fault_notes(i))],
        "chunk": p.chunk,
        "packed": s.packing is not None,
    }
    try:
        with _beside(path) as out:
            digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
            parts: list[bytes | memoryview] = [json.dumps(head).encode() + b"\n"]
            parts += [s.queues[t].bytes(0, s.queue_bytes(n)) for t, n in enumerate(s.counts())]
            for part in parts:
                digest.update(part)
                out.write(part)
            out.write(digest.digest())
    except OSError as e:
        raise UserError(f"{path}: the checkpoint cannot be written: {e.strerror}") from None


@contextmanager
def _beside(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the checkpoint's place when it is written. No two runs write it at once: the other waits."""
    part = path.with_name(path.name + ".part")
    while True:
        with part.open("ab") as out:
            fcntl.flock(out, fcntl.LOCK_EX)
            if not _is(out, part):  # meanwhile it has become the checkpoint
                continue
            out.truncate(0)
            yield out
            out.flush()
            os.replace(part, path)
            return


def _is(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def threads_of(path: Path) -> int:
    """With how many threads a checkpoint was made. Raises UserError if it is none."""
    return int(_head(path)["threads"])


def load(search: Search, path: Path) -> None:
    """Put the search where the checkpoint stood. Raises UserError if it is another run's."""
    s, head = search, _head(path)
    if head["code"] != identity(s) or head["chunk"] != s.program.chunk:
        sizes = " ".join(f"{n}={v}" for n, v in head["sizes"].items())
        raise UserError(f"{path}: is of another exploration ({head['model']} {sizes}), or of another text of the model")
    if head["packed"] and not s.pack(sum(head["counts"])):
        raise UserError(f"{path}: needs more memory than {s.budget_mb:,.0f} MB")
    try:
        with path.open("rb") as f:
            digest = hashlib.blake2b(f.readline(), digest_size=DIGEST_BYTES)
            for t, n in enumerate(head["counts"]):
                size = s.queue_bytes(n)
                if size > s.queues[t].size:
                    raise UserError(f"{path}: needs more memory than {s.budget_mb:,.0f} MB")
                if f.readinto(s.queues[t].bytes(0, size)) != size:
                    raise UserError(f"{path}: is cut short")
                digest.update(s.queues[t].bytes(0, size))
                s.own[t][COUNT] = n
            if f.read() != digest.digest():
                raise UserError(f"{path}: is damaged")
    except OSError as e:
        raise UserError(f"{path}: cannot be read: {e.strerror}") from None
    s.generated, s.first_count, s.starts = head["generated"], head["first_count"], head["starts"]
    s.level = Level(*head["level"])
    s.seen = {name: Hit(level, tuple(state)) for name, (level, state) in head["seen"].items()}
    s.stuck = None if head["stuck"] is None else Hit(head["stuck"][0], tuple(head["stuck"][1]))
    s.set_taken(head["taken"])
    s.own[0][STUCK] = int(head["stopped"])
    for i in head["faults"]:
        s.fault_notes(i)[0][0] = 1
    while s.distinct > s.allowed():
        s.bits += 1
    s.new_table()
    s.fill_table()


def _head(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as f:
            if f.read(len(BEGIN)) != BEGIN:
                raise ValueError
            f.seek(0)
            head = json.loads(f.readline())
        if head["format"] != FORMAT or head.keys() != KEYS:
            raise ValueError
    except OSError as e:
        raise UserError(f"{path}: cannot be read: {e.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path}: is no checkpoint of an exploration") from None
    assert isinstance(head, dict)
    return head
