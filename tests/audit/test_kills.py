"""The audit's own kill matrix: faults of its rules, and the small directories that show them.

`python -m tests.audit.kills --measure` tries all faults on all directories. Here some of those that were noticed are
tried again, on the directory that showed them; and of each such directory the rules say what is pinned.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkaspec.audit.engine import Checks
from tests.audit.kills import pinned
from tests.audit.kills.faults import RULES, Rules, rules
from tests.audit.kills.harness import Bench, groups
from tests.audit.kills.measure import KillCount, again, keep, measure, measured, short, text_of, untried
from tests.audit.kills.reasons import EQUIVALENT, unused
from tests.audit.kills.trial import Trial
from tests.audit.kills.write import Case, b, one, seg

SAMPLE = 6
"""Faults of a module that `make test` tries."""
LEAST = 0.98


def names(module: str) -> list[str]:
    return [short(f) for f in rules(module).faults()]


@pytest.mark.parametrize("module", RULES)
def test_every_fault_of_the_rules_was_tried(module: str) -> None:
    """Where this fails: python -m tests.audit.kills --measure --of MODULE"""
    kept = measured(module)
    assert untried(rules(module), kept) == []
    assert kept.share >= LEAST
    assert unused(module, names(module)) == []


def test_there_are_faults_of_every_kind() -> None:
    every = [f for module in RULES for f in rules(module).faults()]
    assert len(every) > 3_500
    assert len({f.id for f in every}) == len(every)
    kinds = {f.kind.rstrip(" 123") for f in every}
    assert kinds >= {"one more", "one less", "negated", "true", "false", "left out", "severity", "clause"}


def test_reasons_and_directories_are_of_modules_that_there_are() -> None:
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
    """Where this fails, and the change is meant: python -m tests.audit.kills --pin"""
    assert pinned.now(group) == {k: v for k, v in pinned.read().items() if k.startswith(f"{group}: ")}


@pytest.mark.deep
@pytest.mark.parametrize("module", RULES)
def test_every_fault_is_noticed_or_has_a_reason(module: str) -> None:
    now, wrong = measure(module, measured(module))
    assert wrong == []
    assert now.survivors == measured(module).survivors


# ---- a rule that nothing tests ---------------------------------------------------------------------------------------
PLANTED = """
from kafkaspec.audit.check import LogCheck
from kafkaspec.audit.finding import Severity


class PlantedCheck(LogCheck):
    def ended(self, segment, ending):
        if ending.size > 300 and self.log.clean:
            yield self.log.finding(Severity.ERROR, "SEG-28", segment.log, f"{ending.size} bytes")
"""
OF_300 = {"one more", "one less", "negated", "true", "false"}


def planted(folder: Path, sizes: Sequence[int]) -> list[str]:
    """The faults of a small rule that logs of these sizes do not show."""
    path = folder / "planted.py"
    path.write_text(PLANTED)
    spec = importlib.util.spec_from_file_location("planted", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def of(size: int, clean: bool) -> Case:
        return one(seg(0, b(0, size=size)), clean=clean)

    made = {f"{n} bytes, {c}": (lambda n=n, c=c: of(n, c)) for n in sizes for c in (True, False)}
    with Bench(made) as bench:
        t = Trial(Rules("planted", module), bench)
        t.begin(checks=Checks((module.PlantedCheck,), (), ()))
        return [f"{f.place} {f.kind}" for f in t.module.faults() if t.noticed(f) is None]


def test_a_rule_without_directories_is_red(tmp_path: Path) -> None:
    assert len(planted(tmp_path, [])) == 9
    never = ["2 negated", "2 left out", "3 severity", "4 clause"]
    assert planted(tmp_path, [100]) == ["1 one more", "1 one less", "1 false", *never]
    assert planted(tmp_path, [100, 500]) == ["1 one more", "1 one less"]
    assert planted(tmp_path, [300, 500]) == ["1 one less"]
    assert planted(tmp_path, [300, 301]) == []


def test_a_rule_that_was_never_tried_is_red(tmp_path: Path) -> None:
    text = Path(rules("storage/segment").path).read_text("utf-8")
    assert untried(rules("storage/segment"), measured("storage/segment")) == []
    assert len(untried(rules("storage/segment"), KillCount())) == len(names("storage/segment"))
    path = tmp_path / "segment.py"
    path.write_text(text.replace("if ending.size > INT_MAX and", "if ending.size > INT_MAX and ending.end > 0 and"))
    more = Rules("storage/segment", rules("storage/segment").module, path)
    assert "SegmentCheck.ended:2:one more" in untried(more, measured("storage/segment"))


def test_what_was_measured_is_kept_and_read(tmp_path: Path) -> None:
    some = KillCount("1", {"f:1:true": "x: y", "f:2:true": "x: z"}, {"g:1:true": "why"}, ["h:1:true"])
    nothing = KillCount("2")
    keep("storage/b", some, tmp_path / "x.json")
    keep("storage/a", nothing, tmp_path / "x.json")
    assert measured("storage/b", tmp_path / "x.json") == some
    assert measured("storage/a", tmp_path / "x.json") == nothing
    assert (some.faults, round(some.share, 2)) == (4, 0.67)
