"""At which other arguments would a rule decide otherwise? A call of the spec tells, with numbers that keep an account.

A `TracedInt` knows how it comes from the arguments: by which factor it grows with each. Where a rule compares it,
the difference says by how much an argument has to change for the two to be equal, and that is where rules decide:
there, one below and one above. What the rule computes in between is its own text, whatever it is: sums of configured
times, positions, remainders.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

Path = tuple[Any, ...]
"""Where a number stands in a call: the parameter's Python name, then keys and indexes."""

CANNOT: Final = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, struct.error)
"""What a spec raises that is given numbers which its contract does not mean."""
MOST: Final = 200
"""At most this many comparisons of one call are kept."""


class Account:
    """What one traced call compared: for each number of its arguments the changes that lead to a boundary."""

    def __init__(self) -> None:
        self.changes: dict[Path, set[int]] = {}
        self.together: set[frozenset[Path]] = set()
        """numbers that were compared with one another"""
        self.left = MOST

    def compared(self, a: TracedInt, b: Any) -> None:
        """Note the changes of each argument after which the two would be equal."""
        if not self.left or not isinstance(b, int):
            return
        self.left -= 1
        slopes = _sum(a.slopes, b.slopes, -1) if isinstance(b, TracedInt) else a.slopes
        difference = int.__sub__(int(b), int(a))
        if len(slopes) > 1:
            self.together.add(frozenset(slopes))
        for path, slope in slopes.items():
            self.changes.setdefault(path, set()).add(int(difference / slope))


def _sum(a: Mapping[Path, Fraction], b: Mapping[Path, Fraction], sign: int) -> dict[Path, Fraction]:
    out = dict(a)
    for path, slope in b.items():
        out[path] = out.get(path, Fraction(0)) + sign * slope
    return {path: slope for path, slope in out.items() if slope}


class TracedInt(int):
    """A whole number with how it grows with the arguments."""

    slopes: Mapping[Path, Fraction]
    account: Account

    @staticmethod
    def made(value: int, slopes: Mapping[Path, Fraction], account: Account) -> int:
        """Of a value that depends on arguments; a plain number if it depends on none."""
        if not slopes:
            return value
        traced = TracedInt(value)
        traced.slopes, traced.account = slopes, account
        return traced

    def _with(self, value: Any, other: Any, sign: int, own: int = 1) -> Any:
        if not isinstance(value, int) or isinstance(value, TracedInt):
            return value
        slopes = self.slopes if own == 1 else {p: -s for p, s in self.slopes.items()}
        if isinstance(other, TracedInt):
            slopes = _sum(slopes, other.slopes, sign)
        return TracedInt.made(value, slopes, self.account)

    def _scaled(self, value: Any, by: Fraction) -> Any:
        return (
            value
            if value is NotImplemented
            else TracedInt.made(value, {p: s * by for p, s in self.slopes.items()}, self.account)
        )

    def __add__(self, other: Any) -> Any:
        return self._with(int.__add__(self, other), other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(int.__sub__(self, other), other, -1)

    def __rsub__(self, other: Any) -> Any:
        return self._with(int.__rsub__(self, other), other, 1, -1)

    def __neg__(self) -> Any:
        return self._scaled(int.__neg__(self), Fraction(-1))

    def __mul__(self, other: Any) -> Any:
        value = int.__mul__(self, other)
        return value if value is NotImplemented or not other else self._scaled(value, Fraction(int(other)))

    __rmul__ = __mul__

    def __mod__(self, other: Any) -> Any:
        return self._with(int.__mod__(self, other), None, 1)

    def __floordiv__(self, other: Any) -> Any:
        value = int.__floordiv__(self, other)
        return value if value is NotImplemented else self._scaled(value, Fraction(1, int(other)))

    def __lt__(self, other: Any) -> bool:
        self.account.compared(self, other)
        return int.__lt__(self, other)

    def __le__(self, other: Any) -> bool:
        self.account.compared(self, other)
        return int.__le__(self, other)

    def __gt__(self, other: Any) -> bool:
        self.account.compared(self, other)
        return int.__gt__(self, other)

    def __ge__(self, other: Any) -> bool:
        self.account.compared(self, other)
        return int.__ge__(self, other)

    def __eq__(self, other: object) -> bool:
        self.account.compared(self, other)
        return int.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self.account.compared(self, other)
        return int.__ne__(self, other)

    __hash__ = int.__hash__

    def __reduce__(self) -> Any:
        return int, (int(self),)


def traced(value: Any, path: Path, account: Account) -> Any:
    """The same value with an account in each of its numbers."""
    if type(value) is int:
        return TracedInt.made(value, {path: Fraction(1)}, account)
    if isinstance(value, list | tuple):
        return [traced(x, (*path, i), account) for i, x in enumerate(value)]
    if isinstance(value, dict):
        return {k: traced(x, (*path, k), account) for k, x in value.items()}
    return value


def plain(value: Any) -> Any:
    """The same value without accounts."""
    if isinstance(value, TracedInt):
        return int(value)
    if isinstance(value, list | tuple):
        return [plain(x) for x in value]
    if isinstance(value, dict):
        return {plain(k): plain(x) for k, x in value.items()}
    return value


def changed(arguments: Mapping[str, Any], changes: Mapping[Path, int]) -> dict[str, Any]:
    """The arguments with some of their numbers changed by so much."""

    def within(value: Any, path: Path) -> Any:
        if path in changes:
            return value + changes[path]
        if isinstance(value, list | tuple):
            return [within(x, (*path, i)) for i, x in enumerate(value)]
        if isinstance(value, dict):
            return {k: within(x, (*path, k)) for k, x in value.items()}
        return value

    return {name: within(value, (name,)) for name, value in arguments.items()}


def boundaries(call: Callable[[dict[str, Any]], object], arguments: Mapping[str, Any]) -> Account:
    """What a call compares. One that cannot take the numbers is one that compares nothing more."""
    account = Account()
    try:
        call({name: traced(value, (name,), account) for name, value in arguments.items()})
    except CANNOT:
        account.left = 0
    return account
