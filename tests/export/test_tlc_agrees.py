"""Deep, where TLC can be had: for every model of the project TLC finds our counts, and no claim of it broken."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkaspec.models
import kafkaspec.models.examples
from kafkaspec.contract.subsystem import subsystems
from kafkaspec.explore.checked import Expectation
from kafkaspec.export import tla
from kafkaspec.language import Model
from tests.export.tlc import tlc
from tests.pinned import small

MOST = 20_000
"""TLC looks at so many states in half a minute; where there are many claims, as of raft, it takes longer."""


def entries() -> Iterator[Expectation]:
    """Every pinned model, of the subsystems and of the examples."""
    modules = [s.layer("models") for s in subsystems().values()]
    for m in pkgutil.iter_modules(kafkaspec.models.examples.__path__, "kafkaspec.models.examples."):
        modules.append(importlib.import_module(m.name))
    for module in modules:
        yield from getattr(module, "MODELS", ())


ENTRIES = list(entries())


def written() -> set[type[Model]]:
    """Every class of the files in models/ that is a model."""
    out = set()
    for m in pkgutil.walk_packages(kafkaspec.models.__path__, "kafkaspec.models."):
        for c in vars(importlib.import_module(m.name)).values():
            if isinstance(c, type) and issubclass(c, Model) and c.__module__ == m.name:
                out.add(c)
    return out


def proved() -> set[type[Model]]:
    """Every class of which there is a proof: it is explored before."""
    return {p.cls for s in subsystems().values() for p in getattr(s.layer("proofs"), "PROOFS", ())}


@pytest.mark.deep
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: f"{e.name}-{e.distinct}")
def test_tlc_counts_what_we_count(entry: Expectation, tmp_path: Path) -> None:
    ours = small(entry, MOST)
    assert ours.outcome == "complete"
    module, configuration = tla(entry.loaded, ours.sizes, ghosts=entry.ghosts, deadlock=entry.deadlock)
    found = tlc(tmp_path, module, configuration)
    assert found.error == "", found.output
    assert (found.generated, found.distinct, found.depth) == (ours.generated, ours.distinct, ours.depth)


def test_every_model_is_compared() -> None:
    """Whoever writes a model and does not pin it, or pins it where nobody looks, hears of it here."""
    (mark,) = (m for m in test_tlc_counts_what_we_count.pytestmark if m.name == "parametrize")  # type: ignore[attr-defined]
    compared = {e.loaded.cls for e in mark.args[1]}
    assert compared <= written()
    assert written() - compared <= proved(), "models that are proved are what others are, with lemmas"
    assert all(compared & {*c.__mro__} for c in written() - compared)
    assert len(mark.args[1]) == len(list(entries()))
