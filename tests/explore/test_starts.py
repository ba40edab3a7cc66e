"""More first states than actions: a value outside its type, or none, in any of them is an error."""

from __future__ import annotations

from typing import Annotated

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore import explore
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
