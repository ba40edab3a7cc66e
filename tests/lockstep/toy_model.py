"""The toy's model: what can be queued and saved, without counts or capacity to set."""

from __future__ import annotations

from typing import Annotated

from kafkaspec.language import Bounded, Model, Range, Size, action, invariant, require, step, witness

V = Size("V")
L = Size("L")
Value = Annotated[int, Range(0, V)]


class ToyQueue(Model):
    items: Annotated[list[Value], Bounded(L)]
    saved: Annotated[list[Value], Bounded(L)]
    is_saved: bool

    @action("TOY-1", who="user")
    def push(s, v: Value) -> None:
        require(len(s.items) < L)
        s.next.items = s.items + [v]

    @action("TOY-4", who="user")
    def pop(s) -> None:
        require(len(s.items) > 0)
        s.next.items = s.items[1:]

    @action("TOY-7", who="user")
    def save(s) -> None:
        s.next.saved = s.items
        s.next.is_saved = True

    @action("TOY-8", who="user")
    def restore(s) -> None:
        require(s.is_saved)
        s.next.items = s.saved

    @invariant("TOY-9")
    def nothing_saved_before_saving(s) -> bool:
        return s.is_saved or len(s.saved) == 0

    @step("TOY-6", "TOY-8")
    def one_goes_or_all_come_back(s) -> bool:
        return len(s.next.items) + 1 >= len(s.items) or (s.is_saved and s.next.items == s.saved)

    @witness
    def all_is_gone_but_what_was_saved(s) -> bool:
        return len(s.items) == 0 and len(s.saved) > 0

    @witness
    def full_and_saved(s) -> bool:
        return s.is_saved and len(s.saved) == L


class ForgetsToSave(ToyQueue):
    """Wrong: saving marks, but copies nothing."""

    @action("TOY-7", who="user")
    def save(s) -> None:
        s.next.is_saved = True
