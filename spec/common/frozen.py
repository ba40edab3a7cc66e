"""A dict as part of an immutable state."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Frozen(dict[K, V]):
    """A dict that is never changed in place: `with_` and `without` return new ones. Hashable."""

    def with_(self, key: K, value: V) -> Frozen[K, V]:
        return Frozen({**self, key: value})

    def without(self, *keys: K) -> Frozen[K, V]:
        return Frozen({k: v for k, v in self.items() if k not in keys})

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a frozen map does not change")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse
