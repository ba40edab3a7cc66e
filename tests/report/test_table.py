"""Tables on a terminal: what stands in them, and that they fit into 100 columns."""

from __future__ import annotations

import importlib
import io
from typing import Any

import pytest
from rich.console import Console

from kafkaspec.report.describe import DESCRIBERS
from kafkaspec.report.table import table, trace_table
from kafkaspec.verify.row import Row
from tests.report.results import DEADLOCK, INDUCTION, LASSO, NAMES, VIOLATION, results


def shown(*renderables: Any) -> str:
    console = Console(file=io.StringIO(), width=100, no_color=True)
    console.print(*renderables, crop=False)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def test_a_run_is_told_step_by_step() -> None:
    text = shown(trace_table(VIOLATION))
    assert text.startswith("Cleaner: a pause lasts (CLN-7)  ✗ violated: 3 steps at Partition=2 FENCED=true\n  CLN-7  ")
    for line in (
        "0   (start)                                          status[*] = FREE",
        "1   grab(t0, p1)             cleaner thread   CLN-1    status[p1]: FREE → IN_PROGRESS",
        "2   abort_and_pause(p1, 2)   retention        CLN-1    status[p1]: IN_PROGRESS → ABORTED",
        "pauses: 0 → 2",
        "  ✗ a pause lasts is broken here",
    ):
        assert " ".join(line.split()) in " ".join(text.split())


def test_a_slow_machine_wraps_where_a_fast_one_does() -> None:
    """So that a page with the table is the same everywhere, times masked."""
    found = "30 histories, 1,800 calls: accepted, and as much again that has to be wrapped somewhere"
    tables = []
    for seconds in (0.1, 12.3, 345.6):
        row = Row("fence", "impl behind a pipe", "judged", found, seconds)
        tables.append(shown(table([row])).replace(f"{seconds:5.1f}", "    …"))
    assert tables[0].split("\n\n", 1)[1] == tables[1].split("\n\n", 1)[1] == tables[2].split("\n\n", 1)[1]


def test_a_lasso_shows_where_it_goes_back_to() -> None:
    text = shown(trace_table(LASSO))
    assert "╭ 1   grab" in text
    assert "│ 3   finish" in text
    assert "╰→ 1   back to 1, for ever" in text
    assert "the waiter returns never comes true" in text


def test_a_counterexample_to_induction_is_two_states() -> None:
    text = shown(trace_table(INDUCTION))
    assert "a state that satisfies every claim   after finish(t0)" in text
    assert "status[p1]     ABORTED                              FREE" in text
    assert "the first state need not be reachable" in text


def test_a_deadlock_needs_no_claim() -> None:
    text = shown(trace_table(DEADLOCK))
    assert "Cleaner: Cleaner" not in text
    assert "✗ no action can be taken here" in text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("accepted", "good.ndjson  ✓ accepted"),
        ("rejected", "bad.ndjson  ✗ rejected at step"),
        ("rejected", 'seen       -> "something else"'),
        ("rejected", "to see it again: kafkaspec check bad.ndjson"),
        ("outside", "outside.ndjson  ? outside the contract from step 0"),
        ("outside", "the caller broke TOY-2: values are not negative"),
        ("explored", "ToyQueue  ✓ explored: every claim holds in every reachable state"),
        ("explored", "full and saved                   in 3 steps"),
        ("broken", "ForgetsToSave  ✗ vacuous: a witness was not reached, or an action was never taken"),
        ("broken", "full and saved: never reached"),
        ("walked", "✓ tested: 1,600 steps of seed 1"),
        ("proved", "ToyQueue  ✓ proved for every size"),
        ("bounded", "ToyQueue  searched: no claim is broken within 2 steps"),
        ("campaign", "toy: campaign  ✗ "),
        ("campaign", "push value=0 -> 1"),
        ("campaign", "to see it again: kafkaspec check "),
        ("clean campaign", "toy: campaign  ✓ tested: 5 seeds of 60 calls, spec and impl agree"),
        ("agrees", "seed 1  ✓ tested: 50 calls agree"),
        ("differs", "seed 3  ✗ spec and driver differ"),
        ("kills", "kill matrix  ✓ 3 of 4 killed, 1 survives for a reason"),
        ("kills", "by contract      1\n"),
        ("kills", "by lockstep      3\n"),
        ("verified", "verify  ✗ 2 of 3 do not hold, 9.6 s"),
        ("verified", "cleaner: Cleaner  ? unknown"),
        ("judged", "judge A toy 1.0  ✓ accepted: 60 calls in 1.2 s"),
        ("judged", "toy  never exercised: TOY-4"),
        ("judged", "toy  never called: save"),
        ("judged", "toy  not offered: drain"),
        ("judged", "toy  offered in part: push (value is 0 or 7)"),
        ("judged", "toy  not exercised both ways: TOY-1 (`len(state.items) < <3` never equal)"),
        ("judged", "toy  exercised, without a condition: 0 of 1"),
        ("judged", "toy          0 of 1   2 of 3      12 of 182   3 of 40           3      60   accepted"),
        ("judged", "to see it again: kafkaspec judge --target './t y' toy --strict --seed 7 --examples 60"),
        ("rejected target", "  ✗ rejected at call 3"),
        ("rejected target", "toy  known deviations: TOY-D1 3 times, 2 of them not compared"),
        ("rejected target", "or breaks  TOY-4, TOY-2"),
        ("rejected target", "as if      `len(state.items) < 3` always held (tests/toy.py:54); near: so in 7 of 9"),
        ("rejected target", "found      in 4 histories of 60, first after 700 calls, in a model's tour"),
        ("rejected target", "kept in    out/judge/toy-1.ndjson"),
        ("rejected target", "judge --target './t y' toy --strict --replay out/judge/toy-1.ndjson"),
        ("targets", "judge A toy 1.0  ✗ 1 rejected, 1 could not judge: 902 calls in 2.5 s"),
        ("targets", "toy: the target  ? could not judge: hangs"),
        ("targets", "asked last  the history below, which ends with the call that got no answer"),
    ],
)
def test_what_is_said_of_a_result(name: str, said: str) -> None:
    assert said in shown(table(results()[name]))


@pytest.mark.parametrize("name", NAMES)
def test_everything_fits_into_a_hundred_columns(name: str) -> None:
    """But not what is copied: a command is one line, however long it is."""
    lines = [s for s in shown(table(results()[name])).splitlines() if not s.startswith("  to see it again: ")]
    assert max(map(len, lines)) <= 100
    assert "…" not in "".join(lines)


def test_every_kind_of_result_is_still_called_so() -> None:
    for kind in DESCRIBERS:
        module, _, name = kind.rpartition(".")
        assert isinstance(getattr(importlib.import_module(f"kafkaspec.{module}"), name), type), kind


def test_what_is_no_result_is_refused() -> None:
    with pytest.raises(TypeError, match="a report knows nothing of int"):
        table(3)
