"""The examples: the text itself, the explorer and (deep, where it can be had) TLC say the same of each."""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path

import pytest

import kafkaspec.models.examples
from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.explore.checked import Expectation
from kafkaspec.explore.engine import explore
from kafkaspec.export import tla
from kafkaspec.language import action, load, require
from kafkaspec.language.concrete import Concrete
from kafkaspec.models.examples import two_phase
from kafkaspec.models.examples.two_phase import Decision, TwoPhase
from kafkaspec.mutants.matrix import explorer_detector, generated
from kafkaspec.proofs.examples import two_phase as two_phase_proof
from tests.export.tlc import tlc
from tests.pinned import small

MODULES = [
    importlib.import_module(m.name)
    for m in pkgutil.iter_modules(kafkaspec.models.examples.__path__, "kafkaspec.models.examples.")
]
MODELS: list[Expectation] = [c for module in MODULES for c in module.MODELS]

MOST = 700 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 200
"""The text itself runs through so many states in a second or less."""


def test_every_example_pins_its_counts() -> None:
    assert all(module.MODELS for module in MODULES)
    assert all(c.distinct and c.generated and c.depth for c in MODELS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entry", MODELS, ids=lambda c: f"{c.name}-{c.distinct}")
def test_explorer_and_text_agree(entry: Expectation) -> None:
    model, found = entry.loaded, small(entry, MOST)
    run = Concrete(model.cls, found.sizes)
    states, generated = run.reachable()
    assert (found.distinct, found.generated, found.depth) == (len(states), generated, max(states.values()))
    claims = [c.name for c in (*model.invariants.values(), *model.lemmas.values())]
    broken = [c for c in claims if not all(run.holds(c, s) for s in states)]
    assert (broken == []) == (found.outcome != "violation"), broken
    for witness, trace in found.witnesses.items():
        assert (trace is not None) == any(run.holds(witness, s) for s in states), witness


# ---- two-phase commit ------------------------------------------------------------------------------------------------
def test_two_phase_has_the_published_counts() -> None:
    (entry,) = two_phase.MODELS
    assert (entry.sizes, entry.distinct) == ({"Manager": 3}, 288)
    findings, _ = entry.run()
    assert findings == []


@pytest.mark.parametrize(("managers", "distinct"), [(1, 12), (2, 56), (3, 288), (4, 1568), (5, 8832)])
def test_two_phase_grows_as_published(managers: int, distinct: int) -> None:
    """8,832 states for five managers is Stateright's count for its example of the same protocol."""
    found = explore(load(TwoPhase), {"Manager": managers})
    assert (found.distinct, found.outcome) == (distinct, "complete")


class Hasty(TwoPhase):
    """The transaction manager does not wait for the promises."""

    @action(who="transaction manager")
    def decide_commit(s) -> None:
        require(s.decided == Decision.WORKING)
        s.next.decided = Decision.COMMITTED
        s.next.commit = True


def test_a_hasty_manager_is_caught() -> None:
    """Three steps: one aborts by itself, the commit is decided, another hears of it."""
    found = explore(load(Hasty), {"Manager": 2}, liveness=False)
    assert found.outcome == "violation"
    assert found.trace is not None
    assert found.trace.claim in ("consistent", "heard_was_promised", "a_promise_binds")


@pytest.mark.deep
@pytest.mark.parametrize("managers", [1, 2, 3, 4])
def test_tlc_counts_two_phase(tmp_path: Path, managers: int) -> None:
    found = tlc(tmp_path, *tla(load(TwoPhase), {"Manager": managers}))
    ours = explore(load(TwoPhase), {"Manager": managers})
    assert found.error == "", found.output
    assert (found.generated, found.distinct, found.depth) == (ours.generated, ours.distinct, ours.depth)


def test_two_phase_is_consistent_at_every_size() -> None:
    (proof,) = two_phase_proof.PROOFS
    assert proof.run().complete


@pytest.mark.deep
def test_every_fault_of_two_phase_commit_breaks_a_claim() -> None:
    """Each that is generated. The other examples are measured beside TLC and SPIN, and claim what those do there."""
    example, explorer = Subsystem("two_phase", "examples"), explorer_detector()
    found = {m.name: explorer.look(example, "model", m.make()) for m in generated(load(TwoPhase))}
    assert len(found) > 40
    assert [name for name, by in found.items() if not isinstance(by, str) or not by] == []
