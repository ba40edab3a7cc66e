"""A rejection names the rule that explains it."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.judge.blame import BOUNDARY, OTHER, blamed
from kafkaspec.judge.cover import Endless, otherwise, watched
from kafkaspec.judge.samples import met
from kafkaspec.spec.common import record_format
from tests.judge import toy
from tests.judge.toy import machine

HELD = toy.acquire(toy.initial(), 1).state
LATE = machine.apply(HELD, "advance", {"ms": toy.TERM_MS}).state  # type: ignore[union-attr]
STALE = toy.acquire(LATE, 2).state


@pytest.mark.parametrize(
    ("state", "operation", "arguments", "seen", "text", "how"),
    [
        (HELD, "acquire", {"client": 2}, {"result": 2}, "state.live", OTHER),
        (
            LATE,
            "acquire",
            {"client": 2},
            {"error": {"class": "LeaseHeld"}},
            "self.now < self.until",
            BOUNDARY,
        ),
        (STALE, "write", {"epoch": 1, "value": 7}, {"result": None}, "epoch < state.epoch", OTHER),
        (
            STALE,
            "write",
            {"epoch": 2, "value": 7},
            {"error": {"class": "StaleEpoch"}},
            "epoch < state.epoch",
            BOUNDARY,
        ),
    ],
)
def test_the_condition_that_was_decided_otherwise_is_named(
    state: Any, operation: str, arguments: dict[str, int], seen: dict[str, Any], text: str, how: str
) -> None:
    found = blamed(machine, state, machine.operations[operation], arguments, seen)
    assert found[0].site.text == text
    assert found[0].how == how


def test_what_no_condition_explains_is_not_blamed_on_one() -> None:
    assert not blamed(machine, STALE, machine.operations["write"], {"epoch": 2, "value": 7}, {"result": 3})


def test_the_state_after_the_call_counts_as_well() -> None:
    shown = machine.observe(STALE)
    accepted = {"result": None}
    arguments = {"epoch": 1, "value": 7}
    assert not blamed(machine, STALE, machine.operations["write"], arguments, accepted, shown)
    assert blamed(machine, STALE, machine.operations["write"], arguments, accepted, {**shown, "written": [7]})


def test_a_loop_that_would_not_end_explains_nothing() -> None:
    """The bytes of a number are written until nothing is left of it: decided otherwise, for ever."""
    said = met(find("batch")).examples["encode"]
    machine = find("batch").spec.machine
    op = machine.find("encode")
    arguments = {p: said["args"][name] for name, p in op.parameters.items() if name in said["args"]}
    assert blamed(machine, machine.initial(), op, arguments, {"result": "00"}) == []
    with watched(machine) as cover:
        endless = [n for n, site in enumerate(cover.sites) if site.text == "raw > 127"]
        assert endless
        with otherwise(machine, endless[0], shifted=False), pytest.raises(Endless):
            record_format.varint_bytes(5)
