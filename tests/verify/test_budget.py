"""The evidence for one subsystem costs no more than its budget, counted in work, not in seconds."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import subsystems
from kafkaspec.verify import budget
from kafkaspec.verify.engine import STEPS, verify
from kafkaspec.verify.row import Row

VERIFIED = Path(__file__).parents[2] / "docs" / "measured" / "verified.json"


def events(recording: Recording) -> int:
    data = recording.path.read_bytes()
    return len((gzip.decompress(data) if recording.path.suffix == ".gz" else data).splitlines())


@pytest.mark.parametrize("name", subsystems())
def test_what_is_pinned_and_recorded_is_within_the_budget(name: str) -> None:
    s = subsystems()[name]
    models = s.layer("models")
    work = Counter(
        {
            budget.TRANSITIONS: 0 if models is None else sum(c.generated for c in models.MODELS if not c.deep),
            budget.CALLS: 200 * STEPS * len(s.pairs()),
            budget.EVENTS: sum(map(events, s.recordings)),
        }
    )
    assert budget.over(name, work) == []


def test_what_was_verified_is_within_the_budget() -> None:
    """The obligations of proofs too, which are known when all is proved."""
    rows = [r for r in json.loads(VERIFIED.read_text("utf-8")) if r["what"] == "cost"]
    assert {r["subsystem"] for r in rows} == {*subsystems()}
    for row in rows:
        counted = re.findall(r"(\d[\d,]*) (\w+)", row["detail"].partition(":")[0])
        work = Counter({kind: int(n.replace(",", "")) for n, kind in counted})
        assert budget.over(row["subsystem"], work) == []
        assert row["detail"] == budget.told(row["subsystem"], work)


def test_every_exception_is_needed_and_has_a_reason() -> None:
    for name, (more, why) in budget.MORE.items():
        assert name in subsystems()
        assert why
        assert all(n > budget.LIMITS[kind] for kind, n in more.items())


def test_what_costs_too_much_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost() -> Row:
        (row,) = (r for r in verify(["replicas"], 4) if r.what == "cost")
        return row

    assert cost().ok
    assert cost().work == {budget.CALLS: STEPS}
    monkeypatch.setattr(budget, "LIMITS", {**budget.LIMITS, budget.CALLS: STEPS - 1})
    assert cost().why == "100 calls, of 99 at most"
