"""Mutants as targets: killed behind the pipe as in front of it, the sound ones accepted, the same for the same seed."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any, BinaryIO, cast

import pytest

from kafkaspec.contract.machine import Driver, Exhaustive, Machine, Refused, Step
from kafkaspec.contract.subsystem import Subsystem, find
from kafkaspec.errors import UserError
from kafkaspec.judge import judging
from kafkaspec.judge.child import ChildProcess
from kafkaspec.judge.target import TIMEOUT_S, Target, TargetTrouble
from kafkaspec.mutants.judge import LIMIT, OfMachine, campaigned, judge_detector, target_of
from kafkaspec.mutants.matrix import kill_matrix, written
from kafkaspec.mutants.mutant import Mutant, with_fault
from tests.lockstep import toy
from tests.lockstep.toy_mutants import pops_last


class Toy(Subsystem):
    """The toy as a subsystem, with another implementation if that is said."""

    driver: type[Driver] = toy.Driver
    machine: Machine[Any] = toy.machine

    def layer(self, layer: str, role: str = "") -> ModuleType | None:
        modules: dict[str, Any] = {
            "spec": SimpleNamespace(machine=self.machine, PREFIX="TOY", TITLE="Toy"),
            "impl driver": SimpleNamespace(Driver=self.driver),
        }
        return cast(ModuleType | None, modules.get(f"{layer} {role}".strip()))


@pytest.fixture
def subsystem(monkeypatch: pytest.MonkeyPatch) -> Subsystem:
    out = Toy("toy", "lockstep")
    monkeypatch.setattr(judging, "find", lambda name: out)
    return out


def test_every_mutant_of_the_toy_is_judged_as_a_target(subsystem: Subsystem) -> None:
    """The first 600 calls of guided ones are eager: deep states come later."""
    for generator in ("guided", "uniform"):
        kills = campaigned(subsystem, written(subsystem), generator, 0, 1_500, sound=True)
        assert kills.keys() == {m.name for m in written(subsystem)}
        assert kills.pop("a copy") is None
        assert all(k is not None and k.how == "rejected" and 0 < k.calls < 1_500 for k in kills.values())


def test_the_kill_is_where_the_first_wrong_answer_is(subsystem: Subsystem) -> None:
    class NeverPushes(toy.Driver):
        def push(self, value: int) -> Any:
            return 7

    kill = campaigned(subsystem, [Mutant("it", (), "", "impl", NeverPushes)], "uniform", 1)["it"]
    assert kill is not None
    assert (kill.how, kill.operation, kill.clause) == ("rejected", "push", "TOY-1")
    first = campaigned(subsystem, [Mutant("it", (), "", "impl", NeverPushes)], "uniform", 1, kill.calls)["it"]
    assert first == kill
    assert campaigned(subsystem, [Mutant("it", (), "", "impl", NeverPushes)], "uniform", 1, kill.calls - 1) == {
        "it": None
    }


def test_the_same_seed_the_same_kills_whoever_else_runs(subsystem: Subsystem) -> None:
    mutants = written(subsystem)
    together = campaigned(subsystem, mutants, "guided", 3, 150)
    alone = {m.name: campaigned(subsystem, [m], "guided", 3, 150)[m.name] for m in mutants}
    assert together == alone


def test_mutants_that_die_hang_or_cannot_begin_are_killed(subsystem: Subsystem) -> None:
    class Dies(toy.Driver):
        def pop(self) -> Any:
            os._exit(3)

    class Hangs(toy.Driver):
        def save(self) -> None:
            time.sleep(60)

    class FailsToShow(toy.Driver):
        def observe(self) -> Any:
            raise ValueError("broken")

    makes: dict[str, Any] = {"dies": Dies, "hangs": Hangs, "shows": FailsToShow}
    mutants = [Mutant(name, (), "", "impl", make) for name, make in makes.items()]
    mutants.append(Mutant("begins", (), "", "impl", lambda: 1 / 0, generated=True))  # as of a fault in its code
    kills = campaigned(subsystem, mutants, "uniform", 0, 200, timeout_s=1.0)
    how = {name: k.how for name, k in kills.items() if k is not None}
    assert how == {"dies": "died", "hangs": "hangs", "shows": "died", "begins": "died"}
    where = {name: k.operation for name, k in kills.items() if k is not None}
    assert (where["dies"], where["hangs"]) == ("pop", "save")
    assert kills["begins"] is not None
    assert kills["begins"].calls == 0


def test_a_sound_implementation_that_is_rejected_is_an_error(subsystem: Subsystem) -> None:
    object.__setattr__(subsystem, "driver", toy.ForgetsAfterRestore)
    with pytest.raises(
        UserError, match=r"the judge rejects the sound impl of toy: uniform histories, seed 0: rejected"
    ):
        campaigned(subsystem, written(subsystem), "uniform", 0, 150, sound=True)


def test_a_spec_answers_as_a_target(subsystem: Subsystem) -> None:
    faulty = with_fault(toy.machine, "pop", pops_last)
    answers = OfMachine(faulty)
    assert [answers.apply("push", {"value": v}) for v in (1, 7)] == [1, 2]
    assert answers.apply("pop", {}) == 7
    assert answers.observe()["items"] == [1]
    assert isinstance(answers.apply("restore", {}), Refused)
    with pytest.raises(ValueError, match="push is outside the contract here"):
        answers.apply("push", {"value": -1})


def test_a_legal_choice_is_no_kill(subsystem: Subsystem) -> None:
    """The system may choose: one that chooses otherwise than the sound implementation is sound too."""
    machine = toy.build()

    @machine.operation("take", "TOY-4", chosen=("which",))
    def take(state: toy.Queue, which: int) -> Step[toy.Queue]:
        if which >= len(state.items):
            return Step(state, Refused("TOY-5", toy.EMPTY))
        rest = state.items[:which] + state.items[which + 1 :]
        return Step(replace(state, items=rest), state.items[which])

    machine.candidates["which"] = lambda state: Exhaustive(range(max(1, len(state.items))))

    class First(toy.Driver):
        at = 0

        def apply(self, name: str, arguments: Any) -> Any:
            if name != "take":
                return super().apply(name, arguments)
            if not self.items:
                return Refused("TOY-5", toy.EMPTY)
            items = list(self.items)
            taken = items.pop(self.at)
            self.items.clear()
            self.items.extend(items)
            return taken

    class Last(First):
        at = -1

    class Forgets(First):
        def apply(self, name: str, arguments: Any) -> Any:
            out = super().apply(name, arguments)
            return 9 if name == "take" and not isinstance(out, Refused) else out

    object.__setattr__(subsystem, "machine", machine)
    object.__setattr__(subsystem, "driver", First)
    mutants = [Mutant("last", (), "", "impl", Last), Mutant("forgets", (), "", "impl", Forgets)]
    kills = campaigned(subsystem, mutants, "guided", 0, 400, sound=True)
    assert kills["last"] is None
    assert kills["forgets"] is not None
    assert kills["forgets"].operation == "take"


def test_the_detector_says_by_what(subsystem: Subsystem) -> None:
    rows = kill_matrix(subsystem, written(subsystem), [judge_detector(limit=1_500)])
    said = {r.mutant.name: r.detections["judge"].by for r in rows}
    assert said["pops the last"].startswith("rejected, TOY-")
    assert said["a copy"] == ""


def test_a_child_keeps_nothing_of_its_siblings_open(subsystem: Subsystem) -> None:
    """The end of one target's input is seen by it, though others were started after it."""
    with target_of(subsystem, toy.Driver, "impl") as first, target_of(subsystem, toy.Driver, "impl"):
        assert first.hello.subsystems == {"toy": None}
        process = first.process
        assert process is not None
        began = time.monotonic()
        first.close()
        assert process.poll() == 0
        assert time.monotonic() - began < TIMEOUT_S / 2


def test_what_a_child_raises_is_on_its_stderr() -> None:
    def fails(source: BinaryIO, sink: BinaryIO) -> None:
        raise RuntimeError("no luck")

    with pytest.raises(TargetTrouble, match="exit status 1 before it answered line 0") as e:
        Target("a child", 5.0, ChildProcess(fails))
    assert e.value.stderr[-1] == "RuntimeError: no luck"


LOST = [
    ("high_watermark", 500, "rising future"),
    ("replica_manager", 100, "one internal topic"),
    pytest.param("high_watermark", LIMIT, "accepted stays, low without accepted", marks=pytest.mark.deep),
    pytest.param("replica_manager", LIMIT, "eight at a topic, deletions here", marks=pytest.mark.deep),
]
"""Faults that outlived 62,000 calls of the judge, which never came to what shows them; and within how many it does."""


@pytest.mark.parametrize(("name", "limit", "faults"), LOST)
def test_the_judge_comes_to_what_shows_a_fault(name: str, limit: int, faults: str) -> None:
    s = find(name)
    mutants = [m for m in written(s) if m.name in faults.split(", ")]
    kills = campaigned(s, mutants, "guided", 0, limit)
    assert {m: kill and kill.how for m, kill in kills.items()} == dict.fromkeys(faults.split(", "), "rejected")
