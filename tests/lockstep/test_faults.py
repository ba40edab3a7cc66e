"""Generated faults of models: each kind once, what changes no step, what only a count notices, and who is blamed."""

from __future__ import annotations

import enum
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Annotated, Any, cast

import pytest

from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.explore.checked import Expectation
from kafkaspec.explore.engine import explore
from kafkaspec.language import Flag, LoadedModel, Model, Range, Size, Sort, action, invariant, load, require, step
from kafkaspec.language.defined import DEFINED
from kafkaspec.mutants.faults import alike, faults, steps_beside
from kafkaspec.mutants.matrix import (
    UNCHANGED,
    Detection,
    Row,
    explorer_detector,
    generated,
    kill_matrix,
    prover_detector,
)
from kafkaspec.mutants.mutant import Mutant
from kafkaspec.prove.engine import prove
from kafkaspec.prove.proof import Proof


class Cup(Sort):
    """A cup."""


class Is(enum.Enum):
    EMPTY = 0
    FULL = 1
    BROKEN = 2


M = Size("M")
STRICT = Flag("STRICT")


class Cups(Model):
    cup: dict[Cup, Is]
    poured: Annotated[int, Range(0, M)]
    last: Cup | None

    @action()
    def pour(s, a: Cup, b: Cup) -> None:
        """From one into another."""
        require(s.cup[a] == Is.FULL, a != b, s.cup[b] == Is.EMPTY)
        s.next.cup[a] = Is.EMPTY
        s.next.cup[b] = Is.FULL
        s.next.last = b

    @action()
    def fill(s, a: Cup) -> None:
        require(s.cup[a] == Is.EMPTY, s.poured < M)
        s.next.cup[a] = Is.FULL
        s.next.poured = s.poured + 1 if s.poured < M else s.poured

    @action()
    def drop(s, a: Cup) -> None:
        require(s.cup[a] != Is.BROKEN, STRICT or s.poured > 0)
        if s.cup[a] == Is.FULL:
            s.next.cup[a] = Is.BROKEN

    @invariant()
    def no_more_than_was_poured(s) -> bool:
        return s.poured > 0 or all(s.cup[c] == Is.EMPTY for c in Cup)


class Watched(Cups):
    """The same, with a claim on its steps."""

    @step()
    def what_is_broken_stays_broken(s, a: Cup) -> bool:
        return s.cup[a] != Is.BROKEN or s.next.cup[a] == Is.BROKEN


class Again(Cups):
    """The same text of one action once more, and another fault in one."""

    @action()
    def pour(s, a: Cup, b: Cup) -> None:
        require(s.cup[a] == Is.FULL, a != b, s.cup[b] == Is.EMPTY)
        s.next.cup[a] = Is.EMPTY
        s.next.cup[b] = Is.FULL
        s.next.last = b

    @action()
    def fill(s, a: Cup) -> None:
        require(s.cup[a] != Is.FULL, s.poured < M)
        s.next.cup[a] = Is.FULL
        s.next.poured = s.poured + 1 if s.poured < M else s.poured


SIZES = {"Cup": 2, "M": 2, "STRICT": False}


def of(model: LoadedModel, name: str) -> LoadedModel:
    return next(f.make() for f in faults(model) if f.name == name)


def test_every_kind_of_fault() -> None:
    found = {f.name.removeprefix("Cups."): f.what for f in faults(load(Cups))}
    assert list(found) == [
        "pour: no guard 1",
        "pour: guard 1 negated",
        "pour: guard 1, other member",
        "pour: guard 1, other parameter",
        "pour: no guard 2",
        "pour: guard 2 negated",
        "pour: guard 2, other parameter",
        "pour: guard 2, other parameter (2)",
        "pour: no guard 3",
        "pour: guard 3 negated",
        "pour: guard 3, other member",
        "pour: guard 3, other parameter",
        "pour: no effect 1",
        "pour: effect 1, every key",
        "pour: effect 1, other parameter",
        "pour: effect 1, other member",
        "pour: no effect 2",
        "pour: effect 2, every key",
        "pour: effect 2, other parameter",
        "pour: effect 2, other member",
        "pour: no effect 3",
        "pour: effect 3, other parameter",
        "fill: no guard 1",
        "fill: guard 1 negated",
        "fill: guard 1, other member",
        "fill: no guard 2",
        "fill: guard 2 negated",
        "fill: guard 2, off by one",
        "fill: no effect 1",
        "fill: effect 1, every key",
        "fill: effect 1, other member",
        "fill: no effect 2",
        "fill: effect 2, branches swapped",
        "fill: effect 2, off by one",
        "fill: effect 2, off by one (2)",
        "drop: no guard 1",
        "drop: guard 1 negated",
        "drop: guard 1, other member",
        "drop: no guard 2",
        "drop: guard 2 negated",
        "drop: guard 2, off by one",
        "drop: no effect 1",
        "drop: effect 1, other branch",
        "drop: effect 1, every key",
        "drop: effect 1, other member of its condition",
        "drop: effect 1, other member",
    ]
    assert found["pour: guard 1, other member"] == "BROKEN for FULL"
    assert found["pour: effect 1, every key"] == "the effect on cup[a] is one on every key"
    assert found["pour: effect 1, other parameter"] == "cup[a]: b for a"
    assert found["fill: guard 2, off by one"] == "(poured <= M) for (poured < M)"
    assert found["fill: effect 2, off by one (2)"] == "poured: poured for (poured + 1)"
    assert found["drop: guard 2 negated"] == "not (STRICT or (0 < poured))"
    swapped = "(poured if (poured < M) else (poured + 1)) for ((poured + 1) if (poured < M) else poured)"
    assert found["fill: effect 2, branches swapped"] == f"poured: {swapped}"


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("Cups.pour: no guard 2", "same"),  # one that is full is not empty
        ("Cups.drop: no guard 1", "same"),  # what is not full is not changed
        ("Cups.fill: effect 2, off by one", "same"),  # the guard is the same
        ("Cups.drop: no guard 2", "same"),  # a step that changes nothing is none
        ("Cups.drop: guard 2 negated", "fewer"),
        ("Cups.drop: no effect 1", "fewer"),
        ("Cups.fill: guard 1, other member", "other"),
        ("Cups.pour: effect 1, other parameter", "other"),
        ("Cups.pour: no effect 3", "other"),
        ("Cups.drop: effect 1, every key", "other"),
    ],
)
def test_the_steps_of_a_fault(name: str, steps: str) -> None:
    model = load(Cups)
    assert steps_beside(model, of(model, name), SIZES) == steps


class Unseen(Cups):
    ghosts = ("last",)


@pytest.mark.parametrize(
    ("name", "steps"),
    [("pour: no guard 2", "same"), ("pour: guard 2 negated", "fewer"), ("pour: no guard 1", "other")],
)
def test_steps_that_change_a_ghost_are_looked_at(name: str, steps: str) -> None:
    model = load(Unseen)
    assert steps_beside(model, of(model, f"Unseen.{name}"), SIZES) == steps


def test_steps_of_another_action_count_too() -> None:
    """Without the guard a pour into itself would be what a drop is not, and what fills may."""
    model = load(Cups)
    assert steps_beside(model, model, SIZES) == "same"
    assert steps_beside(model, load(Again), SIZES) == "other"
    assert steps_beside(load(Again), model, SIZES) == "fewer"


def test_actions_are_alike_whatever_their_parameters_are_called() -> None:
    mine, again = ({a.name: a for a in load(m).actions} for m in (Cups, Again))
    assert {n for n in mine if alike(mine[n], again[n])} == {"pour", "drop"}
    assert not any(alike(f.action, next(a for a in f.make().actions if a.name == f.action.name)) for f in
                   faults(load(Cups)))  # fmt: skip


class Shelf(Model):
    """Its last place is looked at, and its first while nothing is there."""

    place: dict[Annotated[int, Range(0, M)], bool]
    used: Annotated[int, Range(0, M)]
    seen: bool
    asked: bool

    @action()
    def put(s) -> None:
        require(s.used < M)
        s.next.used = s.used + 1

    @action()
    def look(s) -> None:
        s.next.seen = s.place[max(0, s.used - 1)]
        if s.place[max(0, s.used - 1)]:
            s.next.asked = True
        s.next.place[max(0, s.used - 1)] = True


@pytest.mark.parametrize("name", ["effect 1, branches swapped", "effect 2, branches swapped of its condition",
                                  "effect 3, branches swapped"])  # fmt: skip
def test_what_a_fault_evaluates_must_have_a_value(name: str) -> None:
    """No claim is needed for it: the text with the fault would be refused in the first state."""
    assert explore(load(Shelf), {"M": 2}).outcome == "complete"
    faulty = of(load(Shelf), f"Shelf.look: {name}")
    found = explore(faulty, {"M": 2}).trace
    assert found is not None
    assert found.claim == DEFINED
    assert prove(load(Shelf)).complete
    assert prove(faulty).outcome == "refuted"


class CupSubsystem(Subsystem):
    def layer(self, layer: str, role: str = "") -> ModuleType | None:
        pinned = [Expectation(m, SIZES, 21, 39, 6, deadlock=True) for m in (Cups, Watched)]
        modules: dict[str, Any] = {
            "spec": SimpleNamespace(machine=SimpleNamespace()),
            "models": SimpleNamespace(MODELS=pinned),
            "proofs": SimpleNamespace(PROOFS=[Proof(Cups, explored_at={"Cup": 1, "M": 1})]),
        }
        return cast(ModuleType | None, modules.get(f"{layer} {role}".strip()))


CUPS = CupSubsystem("cups", "lockstep")


def test_counts_as_pinned() -> None:
    models = CUPS.layer("models")
    assert models is not None
    assert [c.run().why for c in models.MODELS] == ["", ""]


def matrix(model: type[Model], name: str, survives: str = "") -> Row:
    fault = next(m for m in generated(load(model)) if m.name == name)
    mutant = Mutant(fault.name, (), fault.what, "model", fault.make, survives=survives)
    (row,) = kill_matrix(CUPS, [mutant], [explorer_detector()])
    return row


def test_a_count_kills_nothing() -> None:
    """Broken cups may be filled: the counts differ, and no claim is broken until there is one."""
    row = matrix(Cups, "Cups.fill: no guard 1")
    differ = "Cups: other counts than pinned: "
    assert not row.killed
    assert row.detections["explorer"].counts.startswith(differ)
    assert row.wrong.startswith(
        f"Cups.fill: no guard 1 survives and no reason is given: no claim is broken, only the counts differ ({differ}"
    )
    row = matrix(Cups, "Cups.fill: no guard 1", survives="a cup is a cup")
    assert (row.wrong, row.reason, row.steps) == ("", "a cup is a cup", None)
    assert row.counts


def test_a_claim_kills_what_a_count_tells() -> None:
    row = matrix(Watched, "Watched.fill: no guard 1")
    assert row.detections["explorer"].by == "Watched: what_is_broken_stays_broken is broken in 3 steps"
    assert (row.killed, row.counts, row.wrong) == (True, "", "")


def test_a_fault_that_changes_no_step_needs_no_reason() -> None:
    row = matrix(Cups, "Cups.drop: no guard 2")
    assert (row.killed, row.steps, row.reason, row.wrong) == (False, "same", UNCHANGED, "")
    row = matrix(Cups, "Cups.drop: no effect 1")
    assert row.wrong.endswith("; it makes fewer steps, which a witness might show")


def test_a_reason_for_what_a_claim_kills_is_wrong() -> None:
    row = matrix(Watched, "Watched.fill: no guard 1", survives="nobody looks")
    assert row.wrong.startswith("Watched.fill: no guard 1 is said to survive (nobody looks), but explorer (")


def test_of_generated_faults_the_first_kill_is_enough() -> None:
    fault = next(m for m in generated(load(Watched)) if m.name == "Watched.fill: no guard 1")
    never = SimpleNamespace(name="never", layers=frozenset({"model"}), look=lambda *_: "")
    (row,) = kill_matrix(CUPS, [fault], [explorer_detector(), cast(Any, never)])
    assert row.detections == {"explorer": row.detections["explorer"], "never": Detection(None)}


def test_the_prover_looks_at_what_a_mutant_changed() -> None:
    """A model that is read again has parameters of its own, which no comparison of its actions may stumble upon."""
    fault = Mutant("again", (), "fills what is broken", "model", lambda: Again)
    (row,) = kill_matrix(CUPS, [fault], [prover_detector()])
    assert row.detections["prover"].by == ""


def test_an_engine_that_fails_kills_nothing() -> None:
    fault, explorer = Mutant("again", (), "", "model", lambda: Again), explorer_detector()
    with pytest.raises(RuntimeError, match="no kill"):
        kill_matrix(CUPS, [fault], [replace(explorer, look=_fails)])


def _fails(*_: object) -> str:
    raise RuntimeError("an engine failed: no kill")
