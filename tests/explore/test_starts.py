"""More first states than actions: a value outside its type, or none, in any of them is an error."""

from __future__ import annotations

from typing import Annotated

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.explore.walk import walk
from kafkaspec.language import Bounded, Model, Range, action, initial, load, require

Wide = Annotated[int, Range(0, 9)]


class Outside(Model):
    """The last variable's type; only the last of ten starts leaves it, and there is one action."""

    a: bool
    z: Annotated[int, Range(0, 8)]

    @initial
    def start(s, n: Wide) -> None:
        s.next.z = n

    @action()
    def flip(s) -> None:
        s.next.a = not s.a


class Undefined(Model):
    """The same, of what has no value."""

    a: bool
    q: Annotated[list[bool], Bounded(9)]

    @initial
    def start(s, n: Wide) -> None:
        require(n < 9 or s.q[n])

    @action()
    def flip(s) -> None:
        s.next.a = not s.a


class Still(Model):
    """No action at all."""

    z: Annotated[int, Range(0, 8)]

    @initial
    def start(s, n: Wide) -> None:
        s.next.z = n


@pytest.mark.parametrize(
    ("model", "said"), [(Outside, "type of z"), (Undefined, "it has no value"), (Still, "type of z")]
)
def test_every_first_state_is_asked(model: type[Model], said: str) -> None:
    with pytest.raises(UserError, match=f"{model.__name__}: @initial: {said}"):
        explore(load(model), {}, deadlock=True)


class Never(Model):
    """No first state at all."""

    n: Annotated[int, Range(0, 3)]

    @initial
    def start(s) -> None:
        require(s.n == 1)

    @action()
    def up(s) -> None:
        s.next.n = 0


class Beyond(Model):
    """The one first state leaves its type, and every state after it is right."""

    n: Annotated[int, Range(0, 3)]

    @initial
    def start(s) -> None:
        s.next.n = s.n + 5

    @action()
    def up(s) -> None:
        s.next.n = 0


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Outside, "type of z"),
        (Undefined, "it has no value"),
        (Beyond, "type of n: a value is outside its limits"),
        (Never, "its guard is never true: there is no first state"),
    ],
)
def test_a_run_begins_at_a_first_state_or_says_why_not(model: type[Model], said: str) -> None:
    with pytest.raises(UserError, match=f"{model.__name__}: @initial: {said}"):
        explore(load(model), {}, deadlock=True)
    with pytest.raises(UserError, match=f"{model.__name__}: @initial: {said}"):
        walk(load(model), {}, seed=1, steps=100)
