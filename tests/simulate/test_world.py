"""The engine, on a toy: the same seed is the same run, choices say all, and what fails is made small."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.errors import UserError
from kafkaspec.simulate import Choices, Crash, Faults, RandomChoices, Run, Scenario, Timer, run, shrunk, simulate
from kafkaspec.simulate import history as told
from kafkaspec.simulate.choices import SCHEDULES, Schedule, checked, of_seed
from kafkaspec.simulate.choices import schedule as parse
from kafkaspec.simulate.outcome import Outcome
from kafkaspec.simulate.runs import Fan, outcome, replay
from kafkaspec.simulate.store import Store
from tests.simulate.toy import ADDS_TWICE, BREAKS, FORGETS, SCENARIO, scenario

ROOT = Path(__file__).parent.parent.parent
ABOUT = '{"format":1,"simulation":"toy","seed":1,"schedule":"swarm","rule":"","choices":'
QUIET = Faults(0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0)


def of(s: Scenario, seed: int, schedule: Schedule = "mixed") -> Run:
    return run(s, RandomChoices(s, seed, schedule))


def text(s: Scenario, seed: int, schedule: Schedule = "mixed") -> str:
    return told.page(of(s, seed, schedule), "", full=True)


def first(s: Scenario, seeds: int = 300, schedule: Schedule = "mixed") -> Run:
    """The first seed that fails."""
    return next(r for r in (of(s, seed, schedule) for seed in range(seeds)) if r.violation is not None)


# ---- the same seed is the same run
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_same_seed_is_the_same_run(schedule: Schedule) -> None:
    runs = [text(SCENARIO, seed, schedule) for seed in range(12)]
    assert runs == [text(SCENARIO, seed, schedule) for seed in range(12)]
    assert len({*runs}) == 12


def test_a_run_is_the_same_on_any_machine() -> None:
    """Pinned: a change here is a change of what every seed means."""
    digest = hashlib.sha256("".join(text(SCENARIO, seed) for seed in range(30)).encode()).hexdigest()
    assert digest[:16] == "2ee5ccb613acabe6"


def test_a_run_does_not_hang_on_the_seed_of_hashes() -> None:
    program = "from tests.simulate.test_world import *\nprint(''.join(text(SCENARIO, s) for s in range(12)))"
    texts = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert texts[0] == texts[1]
    assert texts[0].decode() == "".join(text(SCENARIO, s) for s in range(12)) + "\n"


@pytest.mark.parametrize("s", [SCENARIO, ADDS_TWICE, FORGETS], ids=("sound", "adds twice", "forgets"))
def test_a_run_is_made_again_from_its_choices(s: Scenario) -> None:
    for seed in range(30):
        r = of(s, seed)
        again = run(s, Choices(s, r.choices))
        assert again.steps == r.steps
        assert (again.violation, again.choices) == (r.violation, r.choices)


# ---- what is found
def test_a_sound_one_survives() -> None:
    assert [seed for seed in range(300) if of(SCENARIO, seed).violation is not None] == []


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_fault_is_found_by_each_schedule(schedule: Schedule) -> None:
    torn = "a node fails"  # what is left of a file cannot be read
    for s, rules in ((ADDS_TWICE, {"added once"}), (FORGETS, {"added", torn}), (BREAKS, {"a node fails"})):
        violation = first(s, 100, schedule).violation
        assert violation is not None
        assert violation.rule in rules


def test_an_error_of_a_node_is_a_violation_with_its_place() -> None:
    r = shrunk(first(BREAKS))
    assert r.violation is not None
    assert r.violation.what.startswith("sum: ZeroDivisionError: three (toy.py:")
    assert [v[1:] for v in r.choices.values()] == [["ask", "adder", 3]]


def test_what_cannot_come_to_rest_is_found() -> None:
    r = of(scenario(settle_ms=1, faults=replace(Faults(), loss=1.0)), 0, "uniform")
    assert r.violation is not None
    assert r.violation.rule == "at rest"


# ---- faults
def test_without_faults_there_are_none() -> None:
    s = scenario(faults=replace(QUIET, crash=0.0))
    for seed in range(20):
        assert {k for k, v in of(s, seed, "uniform").choices.items() if v[1] != "ask"} == set()


def test_every_kind_of_fault_comes_up() -> None:
    kinds = {v[1] for seed in range(50) for k, v in of(SCENARIO, seed).choices.items() if k.startswith("step ")}
    fates = {len(v) for seed in range(50) for k, v in of(SCENARIO, seed).choices.items() if "#" in k}
    assert kinds == {"ask", "crash", "pause", "partition", "cut"}
    assert fates == {0, 1, 2}


def test_a_swarm_takes_and_leaves_kinds() -> None:
    def kinds(seed: int) -> frozenset[str]:
        return frozenset(v[1] for k, v in of(SCENARIO, seed, "swarm").choices.items() if k.startswith("step "))

    assert len({kinds(seed) for seed in range(40)}) > 8


def test_a_message_can_overtake_another() -> None:
    s = scenario(faults=replace(QUIET, crash=0.0, delay=0.5, longest_delay_ms=200))
    kept = {"step 1": [10, "ask", "adder", 1], "adder>sum #1": [91]}  # the retry, 50 ms later, takes 1 ms
    steps = run(s, Choices(s, kept)).steps
    assert [step.at_ms for step in steps if step.node == "sum" and "Add" in told.told(step)] == [61, 101]


def test_a_clock_that_drifts_moves_timers() -> None:
    def retries(ppm: int) -> list[int]:
        steps = run(SCENARIO, Choices(SCENARIO, {"clock adder": ppm})).steps
        return [step.at_ms for step in steps if type(step.event) is Timer][:2]

    assert retries(0) == [50, 100]
    assert retries(250_000) == [40, 80]
    assert retries(-200_000) == [62, 124]


def test_a_node_that_stands_still_hears_later() -> None:
    kept = {"step 1": [10, "pause", "sum", 300], "step 2": [20, "ask", "adder", 1]}
    steps = run(SCENARIO, Choices(SCENARIO, kept)).steps
    assert min(step.at_ms for step in steps if step.node == "sum" and step.at_ms > 10) == 310


def test_a_partition_loses_and_heals() -> None:
    kept = {"step 1": [10, "partition", ["sum"], 200], "step 2": [20, "ask", "adder", 1]}
    steps = run(SCENARIO, Choices(SCENARIO, kept)).steps
    assert min(step.at_ms for step in steps if step.node == "sum" and step.at_ms > 10) > 210


@pytest.mark.parametrize(("luck", "total"), [(0, 2), (1, 0)])
def test_a_disk_loses_what_was_not_flushed_if_the_power_fails(luck: int, total: int) -> None:
    """And nothing, if the process alone is killed."""
    kept = {"step 1": [10, "ask", "adder", 2], "step 2": [15, "crash", "sum", 10, 0, luck]}
    r = run(FORGETS, Choices(FORGETS, kept))
    assert (r.violation is not None) == (total == 0)


def test_a_crash_comes_between_two_writes() -> None:
    """Before the third: the file is written and flushed, and has not its name."""
    kept = {"step 1": [5, "crash", "sum", 10, 3, 1], "step 2": [10, "ask", "adder", 2]}
    steps = run(SCENARIO, Choices(SCENARIO, kept)).steps
    at = next(n for n, step in enumerate(steps) if type(step.event) is Crash)
    assert told.told(steps[at - 1]) == "sum gets from adder: Add(number=1, amount=2)"
    assert steps[at - 1].effects == ()


# ---- made small
def test_what_fails_is_made_small() -> None:
    """Of all that happened two things are left: one is asked for, and comes twice, or its answer is lost. Where chance
    has it, no single one of a few more can be left out."""
    runs = [r for r in (of(ADDS_TWICE, seed) for seed in range(12)) if r.violation is not None]
    small = [shrunk(r) for r in runs]
    assert {r.violation.rule for r in small if r.violation is not None} == {"added once"}
    assert sorted({len(r.choices) for r in small})[0] == 2
    assert max(len(r.choices) for r in small) <= 4 < max(len(r.choices) for r in runs)
    assert max(len(r.steps) for r in small) < 20


def test_to_make_it_small_is_the_same_everywhere() -> None:
    r = first(FORGETS)
    one, other = shrunk(r), shrunk(r)
    assert one.choices == other.choices
    assert len(one.choices) == 2
    assert sorted(v[1] for v in one.choices.values()) == ["ask", "crash"]


def test_what_does_not_fail_again_stays_as_it_is() -> None:
    """Such as a node that is not what its events make it."""
    state = {"n": 0}

    class Moody(type(BREAKS.boot("sum", BREAKS.disk("sum"), lambda: 0))):  # type: ignore[misc]
        def is_new(self, add: object) -> bool:
            state["n"] += 1
            if state["n"] == 2:
                raise ValueError("a mood")
            return True

    r = first(scenario(Moody))
    assert shrunk(r) is r


# ---- what people read
def test_a_history_is_read_as_a_conversation() -> None:
    small = shrunk(first(FORGETS))
    lines = told.page(small, "kafkaspec simulate toy --replay f.json").splitlines()
    assert lines[0] == "toy: an adder and a sum"
    assert lines[1].startswith("Broken at step ")
    assert any("sum CRASHES: the power fails: what was not flushed is lost" in line for line in lines)
    assert any("        to sum: Add(number=1, amount=" in line for line in lines)
    assert lines[-1] == "To see it again: kafkaspec simulate toy --replay f.json"


def test_routine_is_counted() -> None:
    s = replace(SCENARIO, is_routine=lambda step: type(step.event) is Timer)
    r = run(s, Choices(s, {}))
    assert [line.strip() for line in told.lines(r) if "..." in line] == [
        "... 19 steps of routine", "... 30 steps of routine"
    ]  # fmt: skip
    assert "routine" not in "\n".join(told.lines(r, full=True))


# ---- many seeds, and files
def test_many_seeds_are_summed_up_and_failures_kept(tmp_path: Path) -> None:
    seen: list[tuple[int, int | None, str]] = []
    found = simulate(ADDS_TWICE, seeds=range(10), out=tmp_path, progress=lambda *told: seen.append(told))
    failing = [seed for seed in range(10) if of(ADDS_TWICE, seed).violation is not None]
    (failure,) = found.failures
    assert (found.failing, failure.seeds, failure.seed) == (len(failing), len(failing), failing[0])
    assert found.steps == sum(len(of(ADDS_TWICE, seed).steps) for seed in range(10))
    assert (10, 10, f"{len(failing)} failing") in seen
    assert failure.file is not None
    again = replay(ADDS_TWICE, failure.file)
    assert (again.rule, again.what, again.choices) == (failure.rule, failure.what, failure.choices)
    assert failure.file.with_suffix(".txt").read_text() == failure.history == again.history
    assert replay(SCENARIO, failure.file).rule == ""


def test_what_cannot_be_written_is_told_all_the_same(tmp_path: Path) -> None:
    (failure,) = (whole := simulate(ADDS_TWICE, seeds=range(10), out=tmp_path)).failures
    assert failure.file is not None
    failure.file.unlink()
    failure.file.mkdir()
    found = simulate(ADDS_TWICE, seeds=range(10), out=tmp_path)
    assert found.not_kept == (f"{failure.file}: cannot be written: is a directory",)
    again = f"kafkaspec simulate toy --seed {failure.seed} --schedule {failure.schedule}"
    (kept,) = found.failures
    assert kept == replace(failure, file=None, history=kept.history)
    assert kept.history.splitlines()[:-1] == failure.history.splitlines()[:-1]
    assert kept.history.endswith(f"To see it again: {again}\n")
    assert whole.not_kept == ()


def test_outcomes_that_cannot_be_kept_lose_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[int]()

    def full(store: Store, outcomes: Sequence[Outcome]) -> None:
        tried.append(len(outcomes))
        raise UserError("seeds: no space left on device")

    monkeypatch.setattr(Store, "append", full)
    found = simulate(ADDS_TWICE, seeds=range(20), out=tmp_path, resume=tmp_path / "seeds")
    assert (len(found.seeds), len(found.failures), len(tried)) == (20, 1, 1)
    assert found.not_kept == ("seeds: no space left on device",)


def test_seeds_are_the_same_wherever_they_run(tmp_path: Path) -> None:
    def elsewhere(stretches: Iterable[Sequence[int]]) -> Iterator[Sequence[Outcome]]:
        yield from ([outcome(FORGETS, seed, "mixed") for seed in s] for s in reversed([*stretches]))

    here = simulate(FORGETS, seeds=range(30), out=tmp_path)
    there = simulate(FORGETS, seeds=range(30), out=tmp_path, fan=elsewhere)
    assert replace(here, seconds=0) == replace(there, seconds=0)


def test_time_ends_it(tmp_path: Path) -> None:
    found = simulate(SCENARIO, seeds=range(10**9), out=tmp_path, time_s=0.1)
    assert 0 < len(found.seeds) < 10_000


def test_an_interrupt_says_what_was_found(tmp_path: Path) -> None:
    def stops(stretches: Iterable[Sequence[int]]) -> Iterator[Sequence[Outcome]]:
        yield [Outcome(3, 1, 1, None, {})]
        raise KeyboardInterrupt

    with pytest.raises(
        UserError, match=r"after 1 seeds \(--resume FILE would keep them\), none of which breaks a rule"
    ) as e:
        simulate(SCENARIO, seeds=range(9), out=tmp_path, fan=stops)
    assert e.value.exit_code == 130


def stopping(after: int, made: list[int]) -> Fan:
    """Ctrl-C, after some stretches of seeds; those that were run are noted."""

    def fan(stretches: Iterable[Sequence[int]]) -> Iterator[Sequence[Outcome]]:
        for n, stretch in enumerate(stretches):
            if n == after:
                raise KeyboardInterrupt
            made.extend(stretch)
            yield [outcome(ADDS_TWICE, seed, "mixed") for seed in stretch]

    return fan


def test_a_run_that_is_interrupted_goes_on(tmp_path: Path) -> None:
    """No seed is run twice, also if the process was killed in the middle of a line; and the result is the same."""
    file, made = tmp_path / "kept" / "toy.seeds", list[int]()
    for n in (2, 1):
        with pytest.raises(UserError, match=r"the same command goes on from .*toy\.seeds\), \d+ of which break a rule"):
            simulate(ADDS_TWICE, seeds=range(23), out=tmp_path, fan=stopping(n, made), resume=file)
    with file.open("ab") as f:
        f.write(b"[15,3")
    seen: list[int] = []
    last = simulate(
        ADDS_TWICE,
        seeds=range(23),
        out=tmp_path,
        fan=stopping(-1, made),
        resume=file,
        progress=lambda n, total, _: seen.append(n) if total is not None else None,
    )
    assert made == [*range(23)]
    assert seen == [20, 23]
    assert last.kept == 15
    whole = simulate(ADDS_TWICE, seeds=range(23), out=tmp_path)
    assert replace(last, seconds=0, kept=0) == replace(whole, seconds=0)
    less = simulate(ADDS_TWICE, seeds=range(4, 9), out=tmp_path, fan=stopping(0, made), resume=file)
    assert (less.kept, made) == (5, [*range(23)])
    assert replace(less, seconds=0, kept=0) == replace(simulate(ADDS_TWICE, seeds=range(4, 9), out=tmp_path), seconds=0)


def test_a_gap_is_not_counted_as_run(tmp_path: Path) -> None:
    """Where time is up, seeds that were kept behind it say nothing of those before them."""
    file = tmp_path / "toy.seeds"
    simulate(SCENARIO, seeds=range(10**6, 10**6 + 5), out=tmp_path, resume=file)
    found = simulate(SCENARIO, seeds=range(10**9), out=tmp_path, time_s=1.0, resume=file)
    assert 0 < len(found.seeds) < 10**6
    assert found.seeds.start == found.kept == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda lines: [b"{}", *lines[1:]], "holds no outcomes of a simulation"),
        (lambda lines: [lines[0].replace(b"toy", b"boy"), *lines[1:]], "holds outcomes of boy, schedule mixed, not of"),
        (lambda lines: [lines[0].replace(b"mixed", b"swarm")], "schedule swarm, not of toy, mixed; name another file"),
        (lambda lines: [lines[0].replace(b'"code":"', b'"code":"0')], "run with other code than today's"),
        (lambda lines: [*lines[:2], b"what"], "line 3 is not JSON"),
        (lambda lines: [*lines[:2], b"[1,2]"], "line 3 is no outcome of a seed"),
        (lambda lines: [*lines[:2], b'[1,2,3,null,{"a":"b"}]'], "line 3 is no outcome of a seed"),
    ],
)
def test_a_file_of_other_outcomes_is_refused(wrong: Any, said: str, tmp_path: Path) -> None:
    file = tmp_path / "toy.seeds"
    simulate(SCENARIO, seeds=range(2), out=tmp_path, resume=file)
    file.write_bytes(b"\n".join(wrong(file.read_bytes().splitlines())) + b"\n")
    with pytest.raises(UserError, match=said):
        simulate(SCENARIO, seeds=range(2), out=tmp_path, resume=file)


def test_a_file_that_cannot_be_written_is_said_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a directory"):
        simulate(SCENARIO, seeds=range(2), out=tmp_path, resume=tmp_path)


def test_another_s_file_is_not_written_over(tmp_path: Path) -> None:
    """Of one line, without an end; a first line that was cut off is ours."""
    file = tmp_path / "notes"
    file.write_text("mine")
    with pytest.raises(UserError, match="notes: is no file of outcomes"):
        simulate(SCENARIO, seeds=range(2), out=tmp_path, resume=file)
    assert file.read_text() == "mine"
    simulate(SCENARIO, seeds=range(2), out=tmp_path, resume=(kept := tmp_path / "kept"))
    kept.write_bytes(kept.read_bytes()[:10])
    assert simulate(SCENARIO, seeds=range(2), out=tmp_path, resume=kept).seeds == range(2)


def test_what_has_no_end_is_not_read_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="is no regular file"):
        simulate(SCENARIO, seeds=range(2), out=tmp_path, resume=Path("/dev/zero"))
    monkeypatch.setattr(told, "MOST_BYTES", 1_000)
    with pytest.raises(UserError, match="more than 1,000 bytes"):
        replay(SCENARIO, Path("/dev/zero"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("[]", "is no run of a simulation: no format 1"),
        ('{"format": 1}', "is no run of a simulation: simulation: str is wanted"),
        (
            ABOUT + "[]}",
            "choices: dict is wanted",
        ),
        (ABOUT.replace('"seed":1', '"seed":-1') + "{}}", "is no run of a simulation: seed: -1 is below 0"),
        (ABOUT.replace('"swarm"', '"swam"') + "{}}", "unknown schedule 'swam'; did you mean 'swarm'?"),
        (
            ABOUT + '{"step 1":[1,"ask","adder","one"]}}',
            "no choice of toy: 'step 1': [1, 'ask', 'adder', 'one']",
        ),
        (
            ABOUT + '{"step 1":[1,"crash"]}}',
            "no choice of toy: 'step 1': [1, 'crash']",
        ),
    ],
)
def test_a_file_that_is_none_is_said_in_a_line(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(content)
    with pytest.raises(UserError) as e:
        replay(SCENARIO, file)
    assert said in str(e.value)
    assert str(e.value).startswith(f"{file}: ")
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    "kept",
    [
        {"nonsense": 1}, {"clock k": 1}, {"clock sum": "1"}, {"active_ms": -1}, {"adder>b #1": []},
        {"adder>sum #x": []}, {"adder>sum #1": [1, 2, 3]}, {"adder>sum #1": [True]}, {"step x": [1, "pause", "sum", 1]},
        {"step 1": [1, "pause", "adder", 1]}, {"step 1": [1, "partition", [1], 1]}, {"step 1": [1, "cut", "a", "b", 1]},
        {"step 1": [1, "crash", "sum", 1, -1, 0]}, {"step 1": [1, "ask", "b", 1]}, {"step 1": [-1, "ask", "sum", 1]},
        {f"step {'9' * 5_000}": [1, "ask", "sum", 1]}, {f"adder>sum #{'9' * 5_000}": [1]},
        {"step 1": [1, "ask", "sum", 1]}, {"step 1": [1, "ask", "adder", "1"]}, {"step 1": [1, "ask", "adder", [1]]},
    ],
)  # fmt: skip
def test_a_choice_that_is_none_is_refused(kept: dict[str, object]) -> None:
    with pytest.raises(UserError, match="no choice of toy"):
        checked(SCENARIO, kept, "f")


def test_all_that_is_drawn_is_a_choice() -> None:
    for seed in range(40):
        assert checked(SCENARIO, of(SCENARIO, seed).choices, "f")


def test_schedules_have_names() -> None:
    assert [of_seed("mixed", seed) for seed in range(4)] == ["uniform", "swarm", "priority", "uniform"]
    with pytest.raises(UserError, match=r"unknown schedule 'swam'; did you mean 'swarm'\?"):
        parse("swam")
