"""Spec and model check_refinement on every reachable model state, and a difference is found from either side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kafkaspec.contract.machine import Step
from kafkaspec.errors import UserError
from kafkaspec.lockstep.exhaustive import RefinementMapping, check_refinement
from tests.lockstep import toy
from tests.lockstep.toy_model import ForgetsToSave, ToyQueue


def to_model(state: toy.Queue) -> dict[str, Any] | None:
    if len(state.items) > 2:
        return None
    return {"items": list(state.items), "saved": list(state.saved or ()), "is_saved": state.saved is not None}


def calls(state: toy.Queue, action: str, arguments: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(action, {"value": arguments["v"]} if action == "push" else {})]


HOW = RefinementMapping(ToyQueue, {"V": 2, "L": 2}, to_model, calls, init={"capacity": 2})


def test_spec_and_model_say_the_same() -> None:
    c = check_refinement(toy.machine, HOW)
    assert c.problem is None
    assert c.states == c.reachable == 182  # 13 queues, each with nothing or 13 queues saved
    assert c.refusals == {"TOY-3": 9 * 14 * 3, "TOY-5": 14, "TOY-9": 13}
    assert c.stutters == 0


def test_a_model_that_forgets_is_found() -> None:
    c = check_refinement(toy.machine, replace(HOW, model=ForgetsToSave))
    assert c.problem is not None
    assert [r["op"] for r in c.problem.records] == ["push", "save"]
    assert "after save() the model is at" in c.problem.why


def test_a_spec_that_refuses_too_much_or_too_little_is_found() -> None:
    c = check_refinement(toy.machine, replace(HOW, init={"capacity": 1}))
    assert c.problem is not None
    assert "the model takes push(v=0), the spec says no: TOY-3" in c.problem.why

    machine = toy.build()

    @machine.operation("restore", "TOY-8")
    def restore(state: toy.Queue) -> Step[toy.Queue]:
        return Step(replace(state, items=state.saved or ()))

    c = check_refinement(machine, HOW)
    assert c.problem is not None
    assert "the model cannot take restore() here, the spec does" in c.problem.why


def test_both_begin_alike() -> None:
    c = check_refinement(toy.machine, replace(HOW, set_up=[("push", {"value": 1})]))
    assert c.problem is not None
    assert c.problem.why.startswith("the spec's first state is not one of the model's: it stands for\n")
    assert "[1]" in c.problem.why


def test_what_a_mapping_leaves_out_is_a_difference_unless_there_is_a_reason() -> None:
    def why(how: RefinementMapping[toy.Queue]) -> str:
        problem = check_refinement(toy.machine, how).problem
        return "" if problem is None else problem.why

    assert why(replace(HOW, calls=lambda *_: None)).startswith("the spec never takes pop, push, restore, save: give")
    no_restore = replace(HOW, calls=lambda s, a, given: None if a == "restore" else calls(s, a, given))
    assert why(no_restore) == "the spec never takes restore: give it the calls, or a reason in `without`"
    short = replace(HOW, to_model=lambda s: to_model(s) if len(s.items) < 2 else None)
    assert why(short).startswith("the spec reaches")
    assert why(short).endswith("of the model's 182 states: say in `partly` why it is not all")
    assert why(replace(short, partly="longer queues are the same")) == ""
    assert why(replace(HOW, partly="none")).endswith("there is nothing to be said in `partly`")


def test_a_mapping_gives_every_variable_of_the_model_and_no_other() -> None:
    typo = replace(HOW, to_model=lambda s: {"item": [], "saved": [], "is_saved": False})
    with pytest.raises(UserError, match="to_model has not the variables of ToyQueue: item, items"):
        check_refinement(toy.machine, typo)
