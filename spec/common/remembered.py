"""Answers that are kept while the same is asked again: contracts, rules and the observation all ask about one state.

Each of these functions has `cache_clear`, and `watch(taken)`: from then on, until `watch(None)`, an answer that is kept
adds to that set what was added to it while the answer was found. So whoever notes which conditions are decided notes
the same, whatever was asked before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Hashable)


Sides = Collection[int]
"""What was noted while an answer was found."""


class _SideKeeper:
    """What is noted while the answers of one function are found."""

    def __init__(self, forget: Callable[[], None]) -> None:
        self.forget = forget
        self.taken: set[int] | None = None

    def watch(self, taken: set[int] | None) -> None:
        """Note it in that set, or, with None, no more. What was kept before is forgotten."""
        self.forget()
        self.taken = taken

    def found(self, find: Callable[[], R]) -> tuple[R, Sides]:
        """An answer, and what was noted meanwhile."""
        if self.taken is None:
            return find(), ()
        before = {*self.taken}
        self.taken.clear()
        try:
            return find(), {*self.taken}
        finally:
            self.taken |= before

    def again(self, sides: Sides) -> None:
        """An answer with these is given that is kept."""
        if self.taken is not None:
            self.taken.update(sides)


def remembered(function: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """The same function, whose last two answers are kept: of a call they are that about the state before it and that
    about the state after it. What is asked about does not change, and is known by its identity; what more is asked, by
    its value. Nobody changes an answer."""
    newer: tuple[Any, Any, Any, Sides] = (None, None, None, ())
    older = newer

    @wraps(function)
    def answer(about: S, /, *more: P.args, **named: P.kwargs) -> R:
        nonlocal newer, older
        for known, asked, result, sides in (newer, older):
            if known is about and asked == (more, named):
                found: R = result
                keeper.again(sides)
                return found
        found, sides = keeper.found(lambda: function(about, *more, **named))
        newer, older = (about, (more, named), found, sides), newer
        return found

    def forget() -> None:
        nonlocal newer, older
        newer = older = (None, None, None, ())

    keeper = _SideKeeper(forget)
    vars(answer).update(cache_clear=forget, watch=keeper.watch)
    return answer


MOST_BYTES: Final = 1 << 20


def remembered_within(size: Callable[[H, Any], int]) -> Callable[[Callable[[H], R]], Callable[[H], R]]:
    """The same function, whose newest answers are kept, as long as they and what they are about come to `MOST_BYTES` or
    are one. `size` gives the bytes of something and the answer about it; of an answer that is not there yet it gets
    None, and older answers make room before it is found. What is asked about is known by its value."""

    def deco(function: Callable[[H], R]) -> Callable[[H], R]:
        known: OrderedDict[H, tuple[R, int, Sides]] = OrderedDict()
        total = 0

        def forget(more: int) -> None:
            """Until there is room for that many bytes."""
            nonlocal total
            while known and total + more > MOST_BYTES:
                total -= known.popitem(last=False)[1][1]

        @wraps(function)
        def answer(about: H, /) -> R:
            nonlocal total
            found = known.get(about)
            if found is not None:
                known.move_to_end(about)
                keeper.again(found[2])
                return found[0]
            forget(size(about, None))
            result, sides = keeper.found(lambda: function(about))
            more = size(about, result)
            forget(more)
            known[about] = result, more, sides
            total += more
            return result

        keeper = _SideKeeper(lambda: forget(MOST_BYTES + 1))
        vars(answer).update(cache_clear=keeper.forget, watch=keeper.watch)
        return answer

    return deco


MOST: Final = 256


def remembered_each(function: Callable[[S], R]) -> Callable[[S], R]:
    """The same function, whose answers about the last things are kept: about the parts of a state, of which a call
    changes few. What is asked about does not change, and is known by its identity. Nobody changes an answer."""
    known: dict[int, tuple[S, R, Sides]] = {}

    @wraps(function)
    def answer(about: S, /) -> R:
        found = known.get(id(about))
        if found is None:  # what is kept is alive, so that no other thing has its identity
            if len(known) == MOST:
                known.clear()
            found = known[id(about)] = (about, *keeper.found(lambda: function(about)))
        else:
            keeper.again(found[2])
        return found[1]

    keeper = _SideKeeper(known.clear)
    vars(answer).update(cache_clear=known.clear, watch=keeper.watch)
    return answer
