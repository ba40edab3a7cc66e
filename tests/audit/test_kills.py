"""The audit's own kill matrix: faults of its rules, and the small directories that show them.

`python -m tests.audit.kills --measure` tries all faults on all directories. Here a few of those that were noticed are
tried again, on the directory that showed them; and the rules say of each such directory what is pinned.
"""

from __future__ import annotations

import random

import pytest

from tests.audit.kills import pinned
from tests.audit.kills.faults import RULES, rules
from tests.audit.kills.harness import groups
from tests.audit.kills.measure import again, measure, measured, short, text_of
from tests.audit.kills.reasons import EQUIVALENT, unused

SAMPLE = 12
"""Faults of a module that `make test` tries."""
LEAST = 0.98


def faults(module: str) -> list[str]:
    return [short(f) for f in rules(module).faults()]


@pytest.mark.parametrize("module", RULES)
def test_every_fault_of_the_rules_is_measured(module: str) -> None:
    """Where this fails: python -m tests.audit.kills --measure --of MODULE"""
    kept = measured(module)
    assert sorted(faults(module)) == sorted([*kept.noticed, *kept.equivalent, *kept.survivors])
    assert kept.text in (text_of(module), "") or not kept.faults
    assert kept.share >= LEAST
    assert unused(module, faults(module)) == []


def test_reasons_are_of_modules_that_there_are() -> None:
    assert set(EQUIVALENT) <= set(RULES)
    assert set(groups()) <= {m.rpartition("/")[2] for m in RULES}


@pytest.mark.parametrize("module", [m for m in RULES if measured(m).noticed])
def test_some_faults_are_noticed_again(module: str) -> None:
    """Others when the module is another."""
    kept = measured(module)
    some = random.Random(text_of(module)).sample(sorted(kept.noticed), min(SAMPLE, len(kept.noticed)))
    assert list(again(module, some, kept)) == []


@pytest.mark.parametrize("group", groups())
def test_the_rules_say_what_is_pinned(group: str) -> None:
    """Of the directories that show a fault. Where this fails, and the change is meant: python -m tests.audit.kills --pin"""
    assert pinned.now(group) == {k: v for k, v in pinned.read().items() if k.startswith(f"{group}: ")}


@pytest.mark.deep
@pytest.mark.parametrize("module", RULES)
def test_every_fault_is_noticed_or_has_a_reason(module: str) -> None:
    now, wrong = measure(module, measured(module))
    assert wrong == []
    assert now.share >= LEAST
    assert now.survivors == measured(module).survivors
