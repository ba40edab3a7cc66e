"""Whether what was seen is what the spec shows, and where it is not: values as JSON has them.

Numbers compare as numbers, exactly; a bool is not a number; a level that is `Fields` may have keys left out, and one
that is `Unordered` its elements in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kafkaspec.contract.codec import Unordered
from kafkaspec.contract.machine import Fields, Json, Refused


class _Absent:
    def __repr__(self) -> str:
        return "nothing"

    def __reduce__(self) -> str:
        return "ABSENT"  # there is one, in every process


ABSENT: Final = _Absent()
"""Stands for a value that is not there."""


MOST_PAIRED: Final = 100
"""Elements of which the equal one is looked for among all, where no text is the same."""
LONG: Final = 32
"""Elements of a list that is first compared as text: most of a large state is as it should be."""
LONGEST: Final = 100
"""Characters of a key in a path."""
MAX_DIFFERENCES: Final = 12
"""At most this many differences are told of an answer and of a state, wherever they are told."""


_PLAIN: Final = frozenset({bool, int, str, type(None)})
"""Types of values that are equal, or are not."""


@dataclass(frozen=True)
class Difference:
    """One place where two observations differ, such as `state.at[39].set`."""

    path: str
    expected: Json
    seen: Json

    def __str__(self) -> str:
        return f"{self.path}: seen {_text(self.seen)}, expected {_text(self.expected)}"


def shape(expected: Mapping[str, Json], seen: Mapping[str, Json], differing: Iterable[Difference]) -> str:
    """What kind of difference it is: the paths that differ, without keys and numbers, and, where one of two outcomes
    (as the fields of a trace's line) is an error, its class.

    >>> shape({"result": 1}, {"result": 2}, [Difference("result", 1, 2), Difference("state.at[39].x", 1, 2)])
    'answered, expected an answer; state.at[*].x'
    >>> shape({"error": {"class": "java.lang.RuntimeException"}}, {"result": 3}, [])
    'answered, expected java.lang.RuntimeException'
    """
    paths = [re.sub(r"\[[^\]]*\]", "[*]", d.path) for d in differing]
    classes = [line["error"].get("class", "?") if "error" in line else "" for line in (seen, expected)]
    out = {path for path in paths if path != "result"}
    if "result" in paths or any(classes):
        out.add(f"{classes[0] or 'answered'}, expected {classes[1] or 'an answer'}")
    return "; ".join(sorted(out))


def _text(value: Any) -> str:
    text = repr(value) if value is ABSENT else orjson.dumps(value, default=float).decode()
    return text if len(text) <= 200 else text[:197] + "..."


def matches(expected: Json, seen: Json) -> bool:
    """Whether `seen` is what the spec shows."""
    if type(expected) in _PLAIN and type(expected) is type(seen):
        return bool(expected == seen)
    if isinstance(expected, dict):
        if not isinstance(seen, dict):
            return False
        if isinstance(expected, Fields):
            return all(k in expected and matches(expected[k], v) for k, v in seen.items())
        return expected.keys() == seen.keys() and all(matches(v, seen[k]) for k, v in expected.items())
    if isinstance(expected, list | tuple):
        if not isinstance(seen, list) or len(expected) != len(seen):
            return False
        if _alike(expected, seen) or all(map(matches, expected, seen)):
            return True
        return isinstance(expected, Unordered) and not any(unpaired(expected, seen))
    return bool(expected == seen) and isinstance(expected, bool) == isinstance(seen, bool)


def _alike(expected: Sequence[Json], seen: Sequence[Json]) -> bool:
    """Whether two long lists are written alike, and so match; of short ones nothing is said."""
    if len(seen) <= LONG:
        return False
    text = written(expected)
    return text is not None and text == written(seen)


def _unlike(expected: Sequence[Json], seen: Sequence[Json], first: int = 0) -> list[int]:
    """The places of two lists, as long as each other, that need be looked at: without long stretches that are alike."""
    if _alike(expected, seen):
        return []
    if len(seen) <= LONG:
        return [*range(first, first + len(seen))]
    half = len(seen) // 2
    return _unlike(expected[:half], seen[:half], first) + _unlike(expected[half:], seen[half:], first + half)


def outcome_matches(expected: Json | Refused, record: Mapping[str, Any]) -> bool:
    """Whether a line's answer, as far as it has one, is that result, or that refusal."""
    if isinstance(expected, Refused):
        if "result" in record:
            return False
        error = record.get("error")
        return error is None or (
            isinstance(error, dict)
            and error.get("class", expected.error) == expected.error
            and (expected.message is None or "message" not in error or error["message"] == expected.message)
        )
    return "error" not in record and ("result" not in record or matches(expected, record["result"]))


def unpaired(expected: Sequence[Json], seen: Sequence[Json]) -> tuple[list[int], list[int]]:
    """The places of elements that have no equal on the other side, where the order says nothing."""
    left: dict[bytes | None, list[int]] = {}
    for n, value in enumerate(seen):
        left.setdefault(written(value), []).append(n)
    missing = []
    for n, value in enumerate(expected):
        places = left.get(written(value))
        if places:
            places.pop(0)
        else:
            missing.append(n)
    further = sorted(n for places in left.values() for n in places)
    paired = _paired([expected[n] for n in missing[:MOST_PAIRED]], [seen[n] for n in further[:MOST_PAIRED]])
    return (
        [n for i, n in enumerate(missing) if i not in paired.values()],
        [n for k, n in enumerate(further) if k not in paired],
    )


def _paired(expected: Sequence[Json], seen: Sequence[Json]) -> dict[int, int]:
    """As many elements as can be with one that they match: the place in `seen` -> that in `expected`. Keys may be left
    out, so that one may match several."""
    pairs: dict[int, int] = {}

    def place(n: int, tried: set[int]) -> bool:
        for k, value in enumerate(seen):
            if k not in tried and matches(expected[n], value):
                tried.add(k)
                if k not in pairs or place(pairs[k], tried):
                    pairs[k] = n
                    return True
        return False

    for n in range(len(expected)):
        place(n, set())
    return pairs


def written(value: Json) -> bytes | None:
    """A value as text that says all of it; None where a number in it has more than 64 bits."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return None


def same(expected: Json, seen: Json, text: bytes | None = None) -> bool:
    """The same as `matches`, faster for large values of which most are equal. `text`: what is expected, as `written`
    where it is compared more than once."""
    text = written(expected) if text is None else text
    if text is None:
        return matches(expected, seen)
    if text == written(seen):
        return True
    if not isinstance(expected, dict) or not isinstance(seen, dict):
        return matches(expected, seen)
    if isinstance(expected, Fields):
        return all(k in expected and same(expected[k], v) for k, v in seen.items())
    return expected.keys() == seen.keys() and all(same(v, seen[k]) for k, v in expected.items())


def differences(expected: Json, seen: Json, path: str) -> Iterator[Difference]:
    """Every innermost place where `seen` is not what the spec shows; nothing if it matches."""
    if isinstance(expected, dict) and isinstance(seen, dict):
        for key in [*expected, *(k for k in seen if k not in expected)]:
            if key in seen or not isinstance(expected, Fields):
                name = key if len(key) <= LONGEST else f"{key[:LONGEST]}..."
                where = f"{path}.{name}" if name.isidentifier() else f"{path}[{name}]"
                yield from differences(expected.get(key, ABSENT), seen.get(key, ABSENT), where)
    elif isinstance(expected, list | tuple) and isinstance(seen, list) and len(expected) == len(seen):
        missing, further = (
            unpaired(expected, seen) if isinstance(expected, Unordered) else (_unlike(expected, seen),) * 2
        )
        for n, k in zip(missing, further, strict=True):
            yield from differences(expected[n], seen[k], f"{path}[{n}]")
    elif expected is ABSENT or seen is ABSENT or not matches(expected, seen):
        yield Difference(path, expected, seen)


Part = tuple[tuple[str, ...], Json]
"""The keys that lead to a part of a state, and what stands there, or ABSENT."""


def parts_unlike(expected: Json, seen: Json, keys: tuple[str, ...] = ()) -> Iterator[Part]:
    """Every innermost part of a state, by keys of objects alone, that is not what was expected, as it was seen.

    >>> list(parts_unlike({"a": {"x": 1, "y": [2]}, "b": 3}, {"a": {"x": 1, "y": []}}))
    [(('a', 'y'), []), (('b',), nothing)]
    """
    if isinstance(expected, dict) and isinstance(seen, dict):
        for key in [*expected, *(k for k in seen if k not in expected)]:
            if key in seen or not isinstance(expected, Fields):
                yield from parts_unlike(expected.get(key, ABSENT), seen.get(key, ABSENT), (*keys, key))
    elif expected is ABSENT or seen is ABSENT or not matches(expected, seen):
        yield keys, seen


def with_parts(observation: Json, parts: Iterable[Sequence[Any]]) -> Json:
    """An observation as JSON, with other parts, as a line of a trace has them: [keys, value], or [keys] where nothing
    is.

    >>> with_parts({"a": {"x": 1}, "b": 3}, [[["a", "y"], 2], [["b"]], [["c", "d"]]])
    {'a': {'x': 1, 'y': 2}}
    """
    state = orjson.loads(orjson.dumps(observation, default=float))
    state = state if isinstance(state, dict) else {}
    for (*way, last), *value in parts:
        at = state
        for key in way:
            inner = at.get(key)
            if not isinstance(inner, dict):
                inner = {}
                if value:
                    at[key] = inner
            at = inner
        if value:
            at[last] = value[0]
        else:
            at.pop(last, None)
    return state
