"""What differs in long lists is found as in short ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.contract.codec import Unordered
from kafkaspec.contract.machine import Json
from kafkaspec.lockstep.compare import LONG, differences, matches, same

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
