"""Numbers that keep an account lead to where a rule decides otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.judge.boundary import Account, TracedInt, boundaries, changed, plain, traced
from tests.judge import toy

NUMBERS = st.integers(-1000, 1000)


def led(rule: Callable[[Any], Any], x: int) -> set[int]:
    """The values of x that the account of a rule leads to."""
    return {x + change for change in boundaries(lambda a: rule(a["x"]), {"x": x}).changes.get(("x",), set())}


@given(NUMBERS, NUMBERS, NUMBERS, st.integers(1, 9))
def test_sums_and_differences_lead_to_the_boundary(x: int, a: int, b: int, k: int) -> None:
    for rule, at in (
        (lambda v: v + a < b, b - a),
        (lambda v: a - v >= b, a - b),
        (lambda v: b <= v, b),
        (lambda v: -v + a > b, a - b),
        (lambda v: v == b, b),
        (lambda v: min(v, b), b),
        (lambda v: sorted([v, b]), b),
    ):
        assert led(rule, x) == {at}
    assert (b - x * k) % k or led(lambda v: v * k != b, x) == {b // k}
    (by,) = led(lambda v: v // k < b, x)
    assert abs(by // k - b) <= 1


def test_two_that_are_compared_are_told_together() -> None:
    account = boundaries(lambda a: a["first"] <= a["last"], {"first": 4, "last": 9, "other": 1})
    assert account.together == {frozenset({("first",), ("last",)})}
    assert account.changes == {("first",): {5}, ("last",): {-5}}


def test_numbers_within_arguments_have_accounts_of_their_own() -> None:
    account = boundaries(lambda a: [x < 5 for x in a["q"]] and a["m"]["k"] > 2, {"q": [3, 8], "m": {"k": 1}, "b": True})
    assert account.changes == {("q", 0): {2}, ("q", 1): {-3}, ("m", "k"): {1}}
    assert changed({"q": [3, 8], "m": {"k": 1}}, {("q", 1): -3, ("m", "k"): 1}) == {"q": [3, 5], "m": {"k": 2}}


def test_a_rule_that_cannot_take_the_numbers_ends_the_account() -> None:
    assert boundaries(lambda a: a["x"] < 3 and [][a["x"]], {"x": 1}).changes == {("x",): {2}}


def test_plain_numbers_come_back() -> None:
    made = traced({"a": [1, {"b": 2}], "c": "x"}, (), Account())
    assert isinstance(made["a"][0], TracedInt)
    assert plain(made) == {"a": [1, {"b": 2}], "c": "x"}
    assert type(plain(made)["a"][1]["b"]) is int


@pytest.mark.parametrize("operation", ["advance"])
def test_a_time_leads_to_the_end_of_a_term_that_began_before(operation: str) -> None:
    state = toy.acquire(toy.initial(), 1).state

    def call(a: dict[str, Any]) -> object:
        step = toy.machine.operations[operation].direct(state, a)
        return toy.machine.show(step.state)  # type: ignore[union-attr]

    assert boundaries(call, {"ms": 1}).changes == {("ms",): {toy.TERM_MS - 1}}
