"""A model that says everything the language can, so that every reading meets every operation."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

from kafkaspec.language import (
    Bounded,
    Flag,
    Model,
    NonEmpty,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    leads_to,
    lemma,
    require,
    step,
    witness,
)


class Node(Sort):
    pass


L = Size("L")
E = Size("E")
STRICT = Flag("STRICT")
Epoch = Annotated[int, Range(0, E)]


class Mode(enum.Enum):
    IDLE = 0
    BUSY = 1
    DONE = 2


@dataclass(frozen=True)
class Request:
    target: Node | None
    voters: Annotated[set[Node], NonEmpty]
    epoch: Epoch


class Everything(Model):
    """Nodes pass requests around. It means nothing; it uses everything."""

    mode: dict[Node, Mode]
    vars: dict[Node, dict[bool, Epoch]]
    slots: dict[Epoch, bool]
    weight: dict[Mode, Epoch]
    members: Annotated[set[Node], NonEmpty]
    gone: set[Node]
    queue: Annotated[list[Request], Bounded(L)]
    chosen: Node | None
    last: Request
    flag: bool
    seen: Annotated[int, Range(0)]
    ghosts = ("seen",)

    @initial
    def start(s, n: Node) -> None:
        s.next.members = {n}
        s.next.last = Request(target=None, voters=set(Node), epoch=1)
        s.next.vars[n][True] = 1

    @define
    def busy(s, n: Node) -> bool:
        return s.mode[n] == Mode.BUSY

    @action("XXX-1", who="a node")
    def send(s, n: Node, to: Node | None, f: bool) -> None:
        """Puts a request into the queue."""
        require(len(s.queue) < L, n in s.members, not s.busy(n) or f)
        require(STRICT or to is not None, to != n)
        s.next.queue = s.queue + [Request(target=to, voters=s.members, epoch=s.vars[n][f])]
        s.next.mode[n] = Mode.BUSY if s.mode[n] == Mode.IDLE else s.mode[n]
        s.next.seen = s.seen + 1

    @action("XXX-2", who="a node", fair="weak", per=("n",))
    def take(s, n: Node) -> None:
        require(len(s.queue) > 0)
        r = s.queue[0]
        require(r.target is None or r.target == n)
        if r.target is None:
            s.next.mode[n] = Mode.DONE
        elif r.target in s.gone:
            s.next.mode[n] = Mode.IDLE
        else:
            s.next.mode[n] = Mode.BUSY
        s.next.queue = s.queue[1:]
        s.next.chosen = r.target
        s.next.last = r
        s.next.members = s.members | r.voters

    @action("XXX-3", fair="strong")
    def leave(s, m: Node) -> None:
        require(m in s.members, s.members != {m})
        require(any(s.mode[k] == Mode.DONE for k in s.members))
        s.next.members = s.members - {m}
        s.next.gone = (s.gone | {m}) & set(Node)
        s.next.flag = not s.flag
        if s.chosen == m:
            s.next.chosen = None

    @action("XXX-3")
    def raise_epochs(s, e: Epoch, k: Mode) -> None:
        require(0 < e < E, any(s.mode[n] == k for n in Node))
        require(all(e > max((x for x in range(E + 1) if x == s.vars[n][True]), default=0) or s.flag for n in Node))
        s.next.slots = {i: i == e or s.slots[i] for i in range(E + 1)}
        s.next.weight = {x: (min(e + 1, E) if x == k else 0) for x in Mode}
        s.next.mode = {n: (Mode.IDLE if s.mode[n] == k else s.mode[n]) for n in Node}

    @action("XXX-3")
    def cut(s, i: Annotated[int, Range(1, L)]) -> None:
        require(i <= len(s.queue), all(q.epoch == 0 for q in s.queue[:i]) or s.queue[i - 1].epoch == 1)
        s.next.queue = s.queue[: i - 1]
        s.next.gone = {n for n in Node if n in s.gone and n not in s.queue[i - 1].voters}
        s.next.flag = sum(1 for n in Node if s.mode[n] == Mode.BUSY) > len(s.members - s.gone)

    @invariant("XXX-4")
    def members_are_there(s) -> bool:
        return len(s.members) > 0 and s.members <= set(Node)

    @invariant("XXX-4")
    def epochs_are_small(s, n: Node) -> bool:
        return (
            all(s.vars[n][b] <= E for b in (False, True)) and min((x for x in range(1, 3) if x > E), default=0) <= E + 1
        )

    @lemma()
    def seen_counts(s) -> bool:
        return s.seen >= len(s.queue)

    @step("XXX-5")
    def queue_moves_by_one(s) -> bool:
        return len(s.next.queue) <= len(s.queue) + 1

    @step("XXX-5")
    def taken_from_the_front(s) -> bool:
        return len(s.next.queue) != len(s.queue) + 1 or all(
            s.next.mode[n] == s.mode[n] or s.next.mode[n] == Mode.BUSY for n in Node
        )

    @witness
    def full(s) -> bool:
        return len(s.queue) == L and s.chosen is not None

    @leads_to("XXX-6")
    def is_taken(s, n: Node) -> tuple[bool, bool]:
        return (
            len(s.queue) > 0 and s.queue[0].target == n,
            len(s.queue) == 0 or s.queue[0].target != n or s.mode[n] != Mode.IDLE,
        )
