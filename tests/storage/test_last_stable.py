"""Last stable: spec against impl, and the rules one by one."""

from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test

from kafkaspec.impl.storage.last_stable import Driver
from kafkaspec.lockstep.walk import state_machine
from kafkaspec.spec.storage import last_stable as spec


@pytest.mark.clause("LSO-1")
@pytest.mark.clause("LSO-2")
@pytest.mark.clause("LSO-3")
def test_impl_does_what_the_spec_says() -> None:
    run_state_machine_as_test(state_machine(spec.machine, Driver))


@pytest.mark.clause("LSO-2")
def test_an_epoch_is_accepted_once() -> None:
    held = spec.LastStable(1, "a")
    assert spec.claim(held, "b", 1) == spec.STALE
    assert spec.claim(held, "b", 2) == spec.LastStable(2, "b")


@pytest.mark.clause("LSO-3")
def test_an_earlier_holder_may_not_write() -> None:
    held = spec.LastStable(2, "b")
    assert spec.may_write(held, "b", 2)
    assert not spec.may_write(held, "a", 1)
    assert not spec.may_write(held, "b", 1)
