"""The kill matrix on the toy: who notices what, and what is wrong with a matrix."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from icontract import ViolationError, ensure

from kafkaspec.contract import subsystem as subsystems
from kafkaspec.contract.machine import Nothing, Step, without_state
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.errors import UserError
from kafkaspec.explore.checked import Expectation
from kafkaspec.language import load
from kafkaspec.mutants.matrix import (
    check_detector,
    contract_detector,
    explorer_detector,
    generated,
    kill_matrix,
    lockstep_detector,
    mutants_of,
    prover_detector,
    written,
)
from kafkaspec.mutants.mutant import Mutant, with_fault
from tests.judge.test_check import LONG, lines, recorded
from tests.lockstep import toy
from tests.lockstep.toy_model import ForgetsToSave, ToyQueue


class InFolder(Recording):
    @property
    def path(self) -> Path:
        return Path(self.source)


class ToySubsystem(Subsystem):
    """The toy as a subsystem."""

    recordings: tuple[Recording, ...] = ()

    def layer(self, layer: str, role: str = "") -> ModuleType | None:
        modules: dict[str, Any] = {
            "spec": SimpleNamespace(machine=toy.machine),
            "impl driver": SimpleNamespace(Driver=toy.Driver),
        }
        return cast(ModuleType | None, modules.get(f"{layer} {role}".strip()))


@pytest.fixture
def subsystem(tmp_path: Path) -> Subsystem:
    trace = tmp_path / "toy.ndjson"
    trace.write_bytes(b"\n".join(lines(recorded(LONG))))
    out = ToySubsystem("toy", "lockstep")
    object.__setattr__(out, "recordings", (InFolder("toy.ndjson", "accepted", source=str(trace)),))
    return out


QUICK = [contract_detector(3, 50), lockstep_detector(20, 50), check_detector()]


def test_the_matrix_says_who_killed_what(subsystem: Subsystem) -> None:
    rows = kill_matrix(subsystem, written(subsystem), QUICK)
    killed = {r.mutant.name: {n: d.killed for n, d in r.detections.items()} for r in rows}
    assert killed == {
        "pops the last": {"contract": True, "lockstep": True, "check": True},
        "saves nothing": {"contract": False, "lockstep": True, "check": True},
        "shares": {"contract": None, "lockstep": True, "check": False},
        "a copy": {"contract": None, "lockstep": False, "check": False},
    }
    assert [r.wrong for r in rows] == ["", "", "", ""]
    assert rows[0].detections["contract"].by.startswith("TOY-6 the oldest first")
    assert rows[0].detections["lockstep"].by.startswith("TOY-4 after 3 calls (seed ")
    assert rows[0].detections["check"].by == "toy.ndjson: rejected at step 3, expected accepted"


def test_survivors_need_a_reason_and_reasons_a_survivor(subsystem: Subsystem) -> None:
    *_, shares, copy = written(subsystem)
    rows = kill_matrix(subsystem, [replace(shares, survives="no"), replace(copy, survives="")], QUICK)
    assert rows[0].wrong.startswith("shares is said to survive (no), but lockstep (TOY-1 after 3 calls")
    assert rows[1].wrong == "a copy survives and no reason is given"


def test_a_detector_that_kills_the_sound_thing_is_no_detector(subsystem: Subsystem) -> None:
    paranoid = replace(contract_detector(), look=lambda *_: "all is lost")
    with pytest.raises(UserError, match="contract finds fault with the sound spec of toy: all is lost"):
        kill_matrix(subsystem, written(subsystem), [paranoid])


def test_a_mutant_that_fails_is_killed(subsystem: Subsystem) -> None:
    """One that is made, and fails when it is called; of one that cannot be made see test_written_mutants.py."""

    class Fails(toy.Driver):
        def reset(self, arguments: Any) -> None:
            raise ZeroDivisionError

    (row,) = kill_matrix(subsystem, [Mutant("fails", (), "cannot begin", "impl", lambda: Fails.__new__(Fails))], QUICK)
    assert {name: d.killed for name, d in row.detections.items()} == {"contract": None, "lockstep": True, "check": True}


def test_no_checkout_no_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "none has no mutants here: they stand beside the tests, in tests/lockstep/none_mutants.py of a checkout"
    with pytest.raises(UserError, match=said):
        written(Subsystem("none", "lockstep"))
    monkeypatch.setattr(subsystems, "checkout", lambda: None)
    with pytest.raises(UserError, match="toy has no mutants here"):
        written(Subsystem("toy", "lockstep"))


def test_every_guard_and_effect_of_a_model_is_left_out_once() -> None:
    mutants = list(generated(load(ToyQueue)))
    left_out = [m for m in mutants if ": no " in m.name]
    assert all(m.generated and m.layer == "model" for m in mutants)
    assert [(m.name, m.what) for m in left_out] == [
        ("ToyQueue.push: no guard 1", "without the guard (len(items) < L)"),
        ("ToyQueue.push: no effect 1", "without the effect on items"),
        ("ToyQueue.pop: no guard 1", "without the guard (0 < len(items))"),
        ("ToyQueue.pop: no effect 1", "without the effect on items"),
        ("ToyQueue.save: no effect 1", "without the effect on saved"),
        ("ToyQueue.save: no effect 2", "without the effect on is_saved"),
        ("ToyQueue.restore: no guard 1", "without the guard is_saved"),
        ("ToyQueue.restore: no effect 1", "without the effect on items"),
    ]
    (push, *_), whole = mutants[0].make().actions, load(ToyQueue).actions[0]
    assert len(push.guard) == len(whole.guard) - 1


def test_the_explorer_judges_models(monkeypatch: pytest.MonkeyPatch, subsystem: Subsystem) -> None:
    sizes = {"V": 1, "L": 2}
    pinned = Expectation(ToyQueue, sizes, distinct=56, generated=202, depth=8)
    models = SimpleNamespace(MODELS=[pinned])
    whole = ToySubsystem.layer
    monkeypatch.setattr(ToySubsystem, "layer", lambda self, *of: models if of == ("models",) else whole(self, *of))
    assert pinned.run().why == ""
    forgets = Mutant("forgets to save", ("TOY-7",), "save copies nothing", "model", lambda: ForgetsToSave)
    every = Counter(m.name for m in mutants_of(subsystem))
    assert every == Counter([m.name for m in written(subsystem)] + [m.name for m in generated(load(ToyQueue))])
    mutants = [forgets, *mutants_of_models(subsystem)]
    rows = kill_matrix(subsystem, mutants, [explorer_detector(), prover_detector()])
    by = {r.mutant.name: r.detections["explorer"].by for r in rows}
    assert by["forgets to save"] == "ForgetsToSave: witness all_is_gone_but_what_was_saved is never reached"
    assert by["ToyQueue.restore: no guard 1"] == "ToyQueue: one_goes_or_all_come_back is broken in 3 steps"
    assert [r.mutant.name for r in rows if r.unchanged] == [
        "ToyQueue.pop: no guard 1",
        "ToyQueue.pop: guard 1, off by one",
    ]
    assert [r.mutant.name for r in rows if not r.killed and not r.unchanged] == ["ToyQueue.restore: no effect 1"]
    assert [r.wrong for r in rows if r.wrong] == []
    monkeypatch.setattr("kafkaspec.mutants.matrix._module", lambda _: SimpleNamespace(MUTANTS=[], SURVIVORS={"x": ""}))
    with pytest.raises(UserError, match="unknown generated mutant of toy 'x'"):
        mutants_of(subsystem)
    assert {r.detections["prover"].killed for r in rows} == {None}
    assert [bool(r.counts) for r in rows if not r.killed] == [True, True, False]


def mutants_of_models(subsystem: Subsystem) -> list[Mutant]:
    return [m for m in mutants_of(subsystem) if m.layer == "model"]


@dataclass(frozen=True)
class Coin:
    value: int


def test_a_faulty_body_is_called_as_the_sound_one_and_a_broken_contract_says_its_words() -> None:
    machine = without_state("coins", __name__)

    @machine.question("change", "TOY-1")
    @ensure(lambda coins, result: result in coins, "TOY-1 one of them")
    def change(coins: tuple[Coin, ...]) -> Coin:
        return coins[0]

    faulty = with_fault(machine, "change", lambda coins: Coin(coins[0].value + 1))
    arguments = {"coins": [{"value": 1}]}
    assert machine.apply(Nothing(), "change", arguments) == Step(Nothing(), {"value": 1})
    assert faulty.apply(Nothing(), "change", arguments, contracts=False) == Step(Nothing(), {"value": 2})
    with pytest.raises(ViolationError, match=r"^TOY-1 one of them$"):
        faulty.apply(Nothing(), "change", arguments)
