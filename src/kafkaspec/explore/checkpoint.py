"""A search on disk: a line of JSON that says where it stands, then every thread's queue as it lies in memory.

The table is not kept: it is filled again from the queues. A checkpoint belongs to one model's code at one size, and to
machines whose vectors are as wide.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkaspec.errors import UserError
from kafkaspec.explore.kernels import COUNT, STUCK

if TYPE_CHECKING:
    from kafkaspec.explore.engine import Hit, Search

FORMAT = "kafkaspec exploration 2"
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
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as out:
            out.write(json.dumps(head).encode() + b"\n")
            for t, n in enumerate(s.counts()):
                out.write(s.queues[t].bytes(0, s.queue_bytes(n)))
        os.replace(part, path)
    except OSError as e:
        raise UserError(f"{path}: the checkpoint cannot be written: {e.strerror}") from None


def threads_of(path: Path) -> int:
    """With how many threads a checkpoint was made. Raises UserError if it is none."""
    return int(_head(path)["threads"])


def load(search: Search, path: Path) -> None:
    """Put the search where the checkpoint stood. Raises UserError if it is another run's."""
    from kafkaspec.explore.engine import Hit, Level

    s, head = search, _head(path)
    if head["code"] != identity(s) or head["chunk"] != s.program.chunk:
        sizes = " ".join(f"{n}={v}" for n, v in head["sizes"].items())
        raise UserError(f"{path}: is of another exploration ({head['model']} {sizes}), or of another text of the model")
    if head["packed"] and not s.pack(sum(head["counts"])):
        raise UserError(f"{path}: needs more memory than {s.budget_mb:,.0f} MB")
    try:
        with path.open("rb") as f:
            f.readline()
            for t, n in enumerate(head["counts"]):
                size = s.queue_bytes(n)
                if size > s.queues[t].size:
                    raise UserError(f"{path}: needs more memory than {s.budget_mb:,.0f} MB")
                if f.readinto(s.queues[t].bytes(0, size)) != size:
                    raise UserError(f"{path}: is cut short")
                s.own[t][COUNT] = n
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
            head = json.loads(f.readline(1 << 20))
        if head["format"] != FORMAT or head.keys() != KEYS:
            raise ValueError
    except OSError as e:
        raise UserError(f"{path}: cannot be read: {e.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path}: is no checkpoint of an exploration") from None
    assert isinstance(head, dict)
    return head
