"""What differs in long lists is found as in short ones."""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.contract.codec import Fields, Unordered
from kafkaspec.contract.machine import Json
from kafkaspec.lockstep import compare
from kafkaspec.lockstep.compare import ABSENT, LONG, differences, matches, parts_unlike, same, with_parts

VALUES: st.SearchStrategy[Json] = st.one_of(
    st.integers(-2, 2), st.booleans(), st.none(), st.floats(0, 1), st.lists(st.integers(0, 1), max_size=2)
)


def one_by_one(expected: list[Json], seen: list[Json]) -> list[str]:
    """The places that differ, by looking at each."""
    return [d.path for n, (a, b) in enumerate(zip(expected, seen, strict=True)) for d in differences(a, b, f"x[{n}]")]


@given(
    st.lists(VALUES, min_size=LONG - 1, max_size=5 * LONG),
    st.dictionaries(st.integers(0, 5 * LONG - 1), VALUES, max_size=4),
)
def test_a_long_list_differs_where_its_elements_do(expected: list[Json], changes: dict[int, Json]) -> None:
    seen = [changes.get(n, value) for n, value in enumerate(expected)]
    places = one_by_one(expected, seen)
    assert [d.path for d in differences(expected, seen, "x")] == places
    assert matches(expected, seen) == same(expected, seen) == (not places)


def test_numbers_and_truth_values_are_not_alike_in_long_lists() -> None:
    ones: list[Json] = [1] * (2 * LONG)
    for other in (True, "1", None, 2):
        seen = [*ones[:-1], other]
        assert not matches(ones, seen)
        assert [d.path for d in differences(ones, seen, "x")] == [f"x[{2 * LONG - 1}]"]
    assert matches(ones, [*ones[:-1], 1.0])


def test_order_says_nothing_where_it_is_free_however_long() -> None:
    shown = Unordered([n, n + 1] for n in range(3 * LONG))
    assert matches(shown, [*reversed(shown)])
    assert not [*differences(shown, [*reversed(shown)], "x")]
    assert [d.path for d in differences(shown, [*reversed(shown[1:]), 7], "x")]


KEYS = st.sampled_from("abc")
STATES: st.SearchStrategy[Json] = st.recursive(
    VALUES, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
).filter(lambda state: isinstance(state, dict))


@given(STATES, STATES)
def test_a_state_with_all_parts_that_are_unlike_is_the_other(expected: Json, seen: Json) -> None:
    parts = [[[*keys]] if value is ABSENT else [[*keys], value] for keys, value in parts_unlike(expected, seen)]
    assert matches(seen, with_parts(expected, parts))
    assert bool(parts) == (not matches(expected, seen))


def test_parts_of_what_may_be_left_out_or_in_any_order() -> None:
    shown = {"a": Fields(x=1, y=2), "b": Unordered([1, 2])}
    assert list(parts_unlike(shown, {"a": {"y": 2}, "b": [2, 1]})) == []
    assert list(parts_unlike(shown, {"a": {"z": 3}, "b": [2]})) == [(("a", "z"), 3), (("b",), [2])]
    assert with_parts(shown, [[["b"], [2]]]) == {"a": {"x": 1, "y": 2}, "b": [2]}
    assert shown["b"] == [1, 2]


def test_examples() -> None:
    assert doctest.testmod(compare).failed == 0
