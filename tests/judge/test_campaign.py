"""The engine: a campaign is a function of its seed, goes everywhere, notices what is wrong, and says it once."""

from __future__ import annotations

import ast
import pickle
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkaspec.contract.history import History, parse, read
from kafkaspec.contract.machine import Outside
from kafkaspec.contract.subsystem import Subsystem, find
from kafkaspec.errors import UserError
from kafkaspec.judge import campaign, judging, result, serve
from kafkaspec.judge import tour as touring
from kafkaspec.judge.campaign import Block, Blocks, Hear, Judged, here, judge, replay, too_little
from kafkaspec.judge.check import check
from kafkaspec.judge.generate import Draws
from kafkaspec.judge.hypothesis_source import CALL_BYTES
from kafkaspec.judge.judging import BLOCK, EAGER, HYPOTHESIS_EVERY, RELABELLED_EVERY, Session, in_part, kind_of
from kafkaspec.judge.result import MIN_CALLS, Job, SubsystemVerdict, Tally
from kafkaspec.judge.target import Hello, Target, TargetTrouble
from kafkaspec.judge.tour import Tour, tour
from kafkaspec.language.concrete import Concrete
from kafkaspec.lockstep.compare import ABSENT, Difference
from kafkaspec.lockstep.exhaustive import actions, model_state
from kafkaspec.report.describe import describe
from kafkaspec.report.json import to_json
from tests.judge import toy_target
from tests.judge.forked import fork_targets
from tests.judge.toy_subsystem import HOW, TOY, JudgedToy
from tests.judge.toy_target import Sound, command

ROOT = Path(__file__).parents[2]
OURS = shlex.join([sys.executable, "-m", "kafkaspec", "serve"])
LEADER_EPOCHS = shlex.join([sys.executable, str(ROOT / "targets/examples/python/leader_epochs.py")])


def found(name: str) -> Subsystem:
    return TOY if name == "toy" else find(name)


@cache
def toured(name: str) -> tuple[Tour, ...]:
    return touring.tours(found(name))


@pytest.fixture
def processes() -> None:
    """Targets are programs, started as their commands say."""


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The toy is found, and its target too, which is forked. Its tours, and others', are made once for all tests."""
    if "processes" not in request.fixturenames:
        fork_targets(monkeypatch)
    for module in (campaign, judging):
        monkeypatch.setattr(module, "find", found)
    monkeypatch.setattr(judging, "_tours", toured)
    monkeypatch.chdir(ROOT)


def judged(fault: type[Sound], examples: int = 60, **other: Any) -> SubsystemVerdict:
    names = ("seed", "strict", "generator", "steps", "min_coverage", "min_calls", "fail_fast", "timeout_s")
    fields = {"min_calls": 0} | {k: other.pop(k) for k in names if k in other}
    return judge(Job("toy", command(fault), **fields), examples=examples, **other)


def timeless(value: Any) -> Any:
    """JSON without what a clock says."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k != "seconds"}
    return [timeless(v) for v in value] if isinstance(value, list) else value


# ---- what is asked ---------------------------------------------------------------------------------------------------
def test_what_is_right_is_accepted_and_everything_is_called(processes: None) -> None:
    r = judged(Sound)
    assert (r.verdict, r.why, r.exit_code, r.rejections) == ("accepted", "", 0, ())
    assert r.target == "toy 1.0"
    assert (r.tally.histories, r.not_called, r.not_offered) == (60, (), ())
    assert set(r.tally.operations) == set(TOY.machine.operations)
    assert {"push TOY-3", "pop TOY-5", "takeAny TOY-5", "restore TOY-9"} <= set(r.tally.refusals)
    assert sum(r.tally.operations.values()) == r.tally.calls > 30 * 60
    assert not r.tally.deviations


@pytest.mark.parametrize("generator", ["guided", "uniform"])
def test_the_same_seed_asks_the_same(generator: str) -> None:
    def lines(seed: int) -> list[bytes]:
        kept: list[bytes] = []
        r = judged(Sound, 25, seed=seed, generator=generator, record=kept.append)
        assert r.verdict == "accepted"
        return kept

    first = lines(5)
    assert first == lines(5)
    assert first != lines(6)
    told = check(TOY.machine, first)
    assert (told.verdict, told.histories) == ("accepted", 25)


def test_a_block_is_the_same_whatever_ran_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (campaign, judging):
        monkeypatch.setattr(module, "BLOCK", 25)

    def blocks(*numbers: int) -> list[Tally]:
        with Target(command(toy_target.ForgetsAndMiscounts)) as target:
            judging = Session(Job("toy", "x"), target)
            return [replace(judging.block(n, 25), seconds=0) for n in numbers]

    zero, one, two = blocks(0, 1, 2)
    assert blocks(2) == [two]
    assert blocks(1, 0) == [one, zero]
    assert zero != one != two
    assert zero.histories == one.histories == two.histories == 25


def test_histories_of_all_kinds_come_up(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    begin = Session.begin

    def noted(self: Session, number: int, by: Any, init: Any) -> Any:
        seen.append(by)
        return begin(self, number, by, init)

    monkeypatch.setattr(Session, "begin", noted)
    r = judged(Sound, 100)
    assert r.tally.histories == len(seen) == 100
    assert seen.count("hypothesis") == 100 // HYPOTHESIS_EVERY
    assert seen[:EAGER] == ["eager"] * EAGER
    assert seen[EAGER:].count("eager") == 0
    assert seen.count("deviation") == 2
    assert seen.count("tour") == r.tally.toured["ToyQueue"] > 20
    assert seen.count("draw") > 10
    assert (BLOCK // HYPOTHESIS_EVERY) * HYPOTHESIS_EVERY == BLOCK


def test_growth_and_other_labels_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    may_grow: list[bool] = []
    begin, start = Session.begin, Draws.start

    def noted(self: Session, number: int, by: Any, init: Any) -> Any:
        seen.append(by)
        return begin(self, number, by, init)

    def started(self: Draws, rng: Any, grows: bool = False) -> Any:
        may_grow.append(grows)
        return start(self, rng, grows)

    monkeypatch.setattr(Session, "begin", noted)
    monkeypatch.setattr(Draws, "start", started)
    monkeypatch.setattr(judging, "RARE_FROM", 30)
    monkeypatch.setattr(judging, "_tours", lambda subsystem: ())
    r = judge(Job("leader_epochs", LEADER_EPOCHS, steps=10), examples=100)
    assert r.verdict == "accepted"
    relabelled = [n for n, by in enumerate(seen) if by == "relabelled"]
    assert len(relabelled) > 1
    assert all(n >= 30 and n % RELABELLED_EVERY == 0 for n in relabelled)
    assert may_grow == [False] * seen[:30].count("draw") + [True] * seen[30:].count("draw")


def test_a_tour_is_kept_until_a_text_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    searched: list[str] = []

    def search(machine: Any, how: Any, steps: int = 60) -> Any:
        searched.append(how.model.__name__)
        return tour(machine, how, steps)

    monkeypatch.setattr(touring, "tour", search)
    first = touring.tours(TOY)
    again = touring.tours(TOY)
    assert searched == ["ToyQueue"]
    (kept,) = (tmp_path / "kafkaspec" / "tours").iterdir()
    assert [(t.reachable, t.steps, t.histories) for t in first] == [(t.reachable, t.steps, t.histories) for t in again]
    for damaged in (b"", b"[]", b"[1]", b'[{"reachable": 1}]', kept.read_bytes()[:-9], b'[{"histories":[[["x",{}]]]}]'):
        kept.write_bytes(damaged)
        assert touring.tours(TOY)[0].histories == first[0].histories
    assert len(searched) == 7
    monkeypatch.setattr(touring, "_texts", lambda: "another")
    touring.tours(TOY)
    assert len(searched) == 8
    assert [f.name for f in kept.parent.iterdir()] == ["toy-another.json"]
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "no" / name)
    (tmp_path / "no").write_bytes(b"a file")
    assert touring.tours(TOY)[0].histories == first[0].histories  # where nothing can be kept


def test_a_tour_takes_every_action_in_every_state() -> None:
    machine, concrete = TOY.machine, Concrete(HOW.model, HOW.sizes)
    toured = tour(machine, HOW)
    taken = set()
    for history in toured.histories:
        state = HOW.first(machine)
        for call in history:
            here = model_state(concrete, HOW, state)
            assert here is not None
            taken.add((concrete.key(here), call.operation.name, tuple(call.arguments.items())))
            step = machine.apply(state, call.operation.name, call.arguments)
            assert not isinstance(step, Outside)
            state = step.state
    everything = {
        (concrete.key(s), a, tuple({"value": x["v"]}.items()) if x else ())
        for s in concrete.reachable()[0]
        for a, x in actions(concrete, HOW)
    }
    assert taken == everything
    assert (toured.states, toured.steps) == (182, len(everything))
    assert sum(map(len, toured.histories)) < 3 * len(everything)


def test_tours_are_walked_to_the_end() -> None:
    all_ = len(tour(TOY.machine, HOW).histories)
    r = judged(Sound, int(2.2 * all_))
    assert r.tours == {"ToyQueue": (all_, all_)}
    assert r.models == {"ToyQueue": (182, 182)}
    fewer = judged(Sound, 10, generator="uniform")
    assert (fewer.tours, fewer.models) == ({}, {})


def test_two_refinement_mappings_onto_one_model_are_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(JudgedToy):
        refinements = (HOW, HOW)

    twice = Twice("toy", "lockstep")
    monkeypatch.setattr(campaign, "find", lambda name: twice)
    monkeypatch.setattr(judging, "find", lambda name: twice)
    monkeypatch.setattr(judging, "_tours", lambda name: toured(name) * 2)
    all_ = len(tour(TOY.machine, HOW).histories)
    r = judged(Sound, int(4.4 * all_))
    assert r.tours == {"ToyQueue": (all_, all_), "ToyQueue 2": (all_, all_)}
    assert r.models == {"ToyQueue": (182, 182), "ToyQueue 2": (182, 182)}


def test_operations_that_are_left_out_are_not_called() -> None:
    r = judge(Job("leader_epochs", LEADER_EPOCHS), examples=60)
    assert r.verdict == "accepted"
    assert set(r.tally.operations) == {
        *("assign", "truncateFromEndAsyncFlush", "truncateFromStartAsyncFlush", "clearAndFlush"),
        *("endOffsetFor", "epochForOffset"),
    }
    assert "runScheduled" in r.not_offered
    assert 0 < r.tours["Entries"][0] <= 60


@pytest.mark.parametrize("generator", ["guided", "uniform"])
def test_values_that_are_not_offered_are_not_asked(generator: str) -> None:
    r = judged(toy_target.OfferedInPart, BLOCK + 100, generator=generator)
    assert (r.verdict, r.why, r.not_called, r.not_offered) == ("accepted", "", (), ())
    assert r.in_part == ("push (value is 0 or 7)", "drain (atMost is 2)")
    assert "offered in part: push (value is 0 or 7), drain (atMost is 2)" in str(describe([r]))


def test_a_process_that_offers_something_else_is_trouble() -> None:
    """Else a verdict would say of all what the first one offers."""

    def shifting(work: Blocks, todo: Iterator[Block], hear: Hear) -> Generator[Judged]:
        for number, hello, tally in here(work, todo, hear):
            assert hello is not None
            yield number, replace(hello, subsystems={"toy": frozenset({"push"})}) if number else hello, tally

    r = judged(Sound, BLOCK + 100, fan=shifting)
    assert (r.verdict, r.tally.trouble and r.tally.trouble.kind) == ("could not judge", "garbage")
    assert judged(Sound, BLOCK + 100).verdict == "accepted"


def test_of_what_is_offered_in_part_a_few_values_are_shown() -> None:
    hello = Hello("", "", {}, {"toy": {"push": {"value": [*range(5000)]}, "drain": {}}})
    assert in_part(hello, "toy") == ["push (value is 0 or 1 or 2 or 3 or 4 or 5 or 6 or 7 or 8 or 9 or 4,990 others)"]


def test_what_is_rejected_is_made_small_with_values_that_are_offered() -> None:
    r = judged(toy_target.ForgetsInPart)
    assert (r.verdict, r.tally.trouble) == ("rejected", None)
    assert {v for x in r.rejections for c in x.history.records for v in c["args"].values()} <= {0, 2, 3, 7}


@pytest.mark.parametrize(
    ("call", "without"), [("push value=1", "value"), ("drain atMost=1", "atMost"), ("drain", ""), ("push value=7", "")]
)
def test_a_value_that_is_not_offered_is_not_asked_again(call: str, without: str) -> None:
    job = Job("toy", command(toy_target.OfferedInPart), min_calls=0, min_coverage=0.0)
    records = parse(f"init\n{call}", "call").records
    if not without:
        assert replay(job, [records], "call").verdict == "accepted"
        return
    with pytest.raises(UserError, match=f"call 1, {call}: toy 1.0 does not offer that {without}"):
        replay(job, [records], "call")


def test_time_ends_it() -> None:
    job = Job("toy", command(Sound), min_coverage=0.0, min_calls=0)
    results = (judge(job, examples=None, time_s=seconds) for seconds in (0.2, 2, 20))  # the target begins within it
    r = next(r for r in results if r.tally.histories)
    assert r.verdict == "accepted"
    assert 0 < r.tally.histories < 100_000


def test_what_was_hardly_asked_is_not_accepted() -> None:
    few = judged(Sound, 1, generator="uniform", min_coverage=100.0, steps=2)
    missed = [side for side in few.sides if not side.taken]
    assert missed
    assert (few.verdict, few.exit_code) == ("could not judge", 2)
    assert few.why == (
        f"asked too little: {few.coverage:.1f} % of the conditions in its rules were decided both ways, "
        "and 100 % must be (--min-coverage)"
    )
    of_calls = judged(Sound, 1, generator="uniform", min_coverage=few.coverage, min_calls=MIN_CALLS, steps=2)
    operations, calls = len(of_calls.tally.operations) + len(of_calls.not_called), of_calls.tally.calls
    assert calls < MIN_CALLS
    assert of_calls.why == (
        f"asked too little: {calls} calls, where 100 for each operation, {100 * operations:,}, are the least "
        "(--min-coverage)"
    )
    of_both = judged(Sound, 1, generator="uniform", min_coverage=100.0, min_calls=MIN_CALLS, steps=2)
    assert (
        of_both.why == f"{of_calls.why.removesuffix(' (--min-coverage)')}; {few.why.removeprefix('asked too little: ')}"
    )
    assert (of_calls.verdict, of_both.exit_code) == ("could not judge", 2)
    assert few.again.endswith("--examples 1 --min-coverage 100 --uniform")
    assert judged(Sound, 1, generator="uniform", min_coverage=few.coverage, steps=2).verdict == "accepted"
    enough = replace(few.job, min_calls=few.tally.calls // operations, min_coverage=0.0)
    asked = replace(few.tally, calls=enough.min_calls * operations)
    assert not too_little(enough, asked, operations, 0.0)
    assert too_little(enough, replace(asked, calls=asked.calls - 1), operations, 0.0)
    assert judged(toy_target.Forgets, 20, min_coverage=100.0).verdict == "rejected"  # a rejection needs no minimum


def test_it_is_told_which_conditions_were_decided_and_for_which_clause() -> None:
    r = judged(Sound)
    assert r.coverage == 100.0
    assert {(side.condition, side.side, side.clauses) for side in r.sides} >= {
        ("state.saved is None", "holds", ("TOY-9",)),
        ("state.saved is None", "does not hold", ("TOY-9",)),
    }
    assert r.sides_of("TOY-9") == (2, 2)
    assert r.sides_of("TOY-1") == (0, 0)
    told = replace(r, clauses=("TOY-1", "TOY-9"))
    assert (told.both_ways, told.unconditional) == (("TOY-9",), ("TOY-1",))
    assert (told.with_condition, told.without_condition) == ((1, 1), (1, 1))
    assert replace(told, tally=replace(r.tally, clauses=Counter())).without_condition == (0, 1)
    assert (to_json(told)["both_ways"], to_json(told)["unconditional"]) == (["TOY-9"], ["TOY-1"])
    half = replace(r, clauses=("TOY-9",), sides=tuple(replace(s, taken=s.side != "holds") for s in r.sides))
    assert half.coverage < 100
    assert half.partly_exercised == ("TOY-9",)
    assert (half.with_condition, half.without_condition) == ((0, 1), (0, 0))
    assert replace(r, clauses=("TOY-9",)).partly_exercised == ()


# ---- what the system chooses -----------------------------------------------------------------------------------------
def test_what_the_system_chooses_is_not_sent_and_any_choice_is_right() -> None:
    assert judged(Sound).tally.operations["takeAny"] > 100  # Sound.take_any takes no argument
    r = judged(toy_target.TakesNone)
    (rejection,) = r.rejections
    assert (rejection.clause, rejection.operation) == ("TOY-10", "takeAny")
    assert [x["op"] for x in rejection.history.records] == ["init", "push", "takeAny"]
    assert rejection.history.records[-1]["args"] == {}


def test_tours_are_kept_for_every_process_alike() -> None:
    """Whatever it has loaded: else processes would delete each other's."""
    code = "{}from kafkaspec.judge import tour; print(tour._texts())"
    loads = "from kafkaspec.contract.subsystem import find; find('cleaner').layer('models');"
    said = {subprocess.run([sys.executable, "-c", code.format(x)], capture_output=True).stdout for x in ("", loads)}
    assert len(said) == 1
    assert said != {b""}


# ---- what is wrong ---------------------------------------------------------------------------------------------------
def test_a_rejection_is_told_once_and_small() -> None:
    r = judged(toy_target.Forgets, 60)
    (rejection,) = r.rejections
    assert (r.verdict, r.exit_code, r.tally.histories) == ("rejected", 1, 60)
    assert (rejection.clause, rejection.operation, rejection.shape) == ("TOY-1", "push", "state.saved")
    calls = [(x["op"], x["args"]) for x in rejection.history.records]
    assert calls == [("init", {}), ("save", {}), ("restore", {}), ("push", {"value": 0})]
    assert rejection.count > 10
    assert rejection.small
    assert rejection.verdict.step == 3
    again = check(TOY.machine, rejection.history.ndjson().splitlines())
    assert (again.verdict, again.step, again.differences) == ("rejected", 3, rejection.verdict.differences)


@pytest.mark.parametrize("fault", [toy_target.ForgetsAndMiscounts, toy_target.TakesNone, toy_target.Fails])
def test_what_is_copied_from_a_terminal_is_rejected_as_what_is_kept(fault: type[Sound]) -> None:
    """The text has of the states what the calls changed; the trace has all of them."""
    judgement = judged(fault)
    told = [s.history for s in describe(judgement) if s.conversation is not None]
    assert told
    for r, text in zip(judgement.rejections, told, strict=True):
        assert "\n  state " not in text
        kept, copied = (check(TOY.machine, h.ndjson().splitlines()) for h in (r.history, parse(text, "x")))
        for field in ("verdict", "step", "clause", "others", "differences", "what", "nearest"):
            assert getattr(copied, field) == getattr(kept, field), field
        assert kept.verdict == "rejected"


def test_every_kind_is_told() -> None:
    r = judged(toy_target.ForgetsAndMiscounts, 100)
    assert {("push", "state.saved"), ("push", "answered, expected an answer")} <= {
        (x.operation, x.shape) for x in r.rejections
    }
    assert len({x.kind for x in r.rejections}) == len(r.rejections)


def test_many_kinds_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result, "MAX_KINDS", 1)
    for module in (campaign, judging):
        monkeypatch.setattr(module, "BLOCK", 50)
    r = judged(toy_target.Forgets, 500)
    assert (r.verdict, len(r.rejections)) == ("rejected", 1)
    assert r.tally.histories < 50
    assert judged(toy_target.Forgets, 50, fail_fast=True).tally.histories == r.tally.histories


def test_the_first_rejection_ends_it_if_that_is_wanted() -> None:
    r = judged(toy_target.ForgetsAndMiscounts, 500, fail_fast=True)
    assert (r.verdict, r.exit_code, len(r.rejections)) == ("rejected", 1, 1)
    assert r.tally.histories < 50
    assert r.rejections[0].small
    assert r.again.endswith("--fail-fast --seed 0 --examples 500")


def test_where_time_was_over_before_the_first_history_it_is_asked_for() -> None:
    """No number of histories below one is a number that the command takes."""
    r = judge(Job("leader_epochs", LEADER_EPOCHS), examples=None, time_s=0)
    assert (r.verdict, r.tally.histories) == ("could not judge", 0)
    assert r.again.endswith(" leader_epochs --seed 0 --examples 1")
    assert r.until_now(None).again == r.again


def test_what_fails_in_the_target_is_its_answer() -> None:
    (rejection,) = judged(toy_target.Fails).rejections
    assert rejection.operation == "drain"
    assert rejection.history.records[-1]["error"]["class"] == "ZeroDivisionError"


def test_what_does_not_show_again_is_told_as_it_was_found() -> None:
    r = judged(toy_target.Fickle, 120)
    rejection, *_ = r.rejections
    assert rejection.small
    assert rejection.fickle
    assert "is the target deterministic?" in str(describe(r))
    r = judged(toy_target.ForgetsAndMiscounts)
    assert [x.fickle for x in r.rejections] == [False, False]
    assert "is the target deterministic?" not in str(describe(r))
    assert rejection.history.records[-1]["result"] == -5
    assert len(rejection.history.records) > 4


def test_known_deviations_are_counted_and_under_strict_rejected() -> None:
    r = judged(toy_target.Deviates)
    assert (r.verdict, set(r.tally.deviations)) == ("accepted", {"TOY-D2"})
    assert r.tally.deviations["TOY-D2"] > 5
    strict = judged(toy_target.Deviates, strict=True)
    (rejection,) = strict.rejections
    assert (strict.verdict, rejection.clause) == ("rejected", "TOY-5")
    assert "known deviation TOY-D2" in rejection.verdict.what
    assert [x["op"] for x in rejection.history.records] == ["init", "save", "pop"]
    assert not strict.tally.deviations


def test_trouble_ends_it_with_what_was_judged_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "SHRINK_S", 900.0)
    r = judged(toy_target.Dies, 200)
    assert (r.verdict, r.exit_code) == ("could not judge", 2)
    assert r.why.startswith("the target died: exit status 3")
    assert r.tally.trouble is not None
    assert (r.tally.trouble.kind, r.tally.trouble.stderr) == ("died", ("that was one too many",))
    assert r.tally.last is not None
    assert r.tally.last.records[-1]["op"] == "restore"
    assert not {"result", "error"} & r.tally.last.records[-1].keys()
    assert [x["op"] for x in r.tally.last.records].count("restore") == 3
    assert len(r.tally.last.records) <= 5  # made small: one save would do for three restores
    assert r.tally.histories < 200


def test_answers_that_are_held_back_are_slow_and_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that writes nothing while it has more to read answers every line that it is asked alone."""
    read = serve._Lines.next

    def read_or_hold_back(lines: serve._Lines) -> bytes | None:
        line = read(lines)
        if len(lines.lines) > 1:
            time.sleep(3600)
        return line

    monkeypatch.setattr(serve._Lines, "next", read_or_hold_back)
    monkeypatch.setattr(serve, "HELD_S", 3600)
    r = judged(Sound, 10, timeout_s=2.0)
    assert (r.verdict, r.exit_code) == ("could not judge", 2)
    assert r.tally.trouble is not None
    assert r.tally.trouble.kind == "slow"
    assert "in 2 s" in r.why
    assert r.why.endswith(
        "though each came when it alone was asked for: it holds answers back, or is stuck now and then"
    )
    assert r.tally.last is not None
    assert all({"result", "error"} & x.keys() for x in r.tally.last.records[1:])
    assert len(r.tally.last.records) > 2


def test_what_was_rejected_before_the_trouble_stays_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "SHRINK_S", 1.0)
    r = judged(toy_target.DiesWrongly, 200)
    assert (r.verdict, r.exit_code) == ("rejected", 1)
    assert r.tally.trouble is not None
    assert "died" in r.why
    assert r.rejections


def test_a_wrong_answer_just_before_the_trouble_is_rejected_and_made_small() -> None:
    r = judged(toy_target.MiscountsAndDies, 50)
    assert r.verdict == "rejected"
    assert r.tally.trouble is not None
    (rejection,) = r.rejections
    calls = [(x["op"], x["args"]) for x in rejection.history.records]
    assert calls == [("init", {}), ("push", {"value": 0}), ("push", {"value": 0})]
    assert rejection.history.records[-1]["result"] == 9


def test_ctrl_c_tells_what_was_judged_so_far() -> None:
    def interrupt(done: int, total: int | None, text: str) -> None:
        if done >= 30:
            raise KeyboardInterrupt

    r = judged(Sound, 500, progress=interrupt)
    assert (r.verdict, r.why, r.interrupted) == ("could not judge", "interrupted", True)
    assert 25 <= r.tally.histories <= 45
    wrong = judged(toy_target.Forgets, 500, progress=interrupt)
    assert (wrong.verdict, wrong.interrupted) == ("rejected", True)
    assert wrong.rejections


# ---- asked again -----------------------------------------------------------------------------------------------------
SHARED = b"init capacity=2\nsave\nrestore\npush value=1\n"


def test_a_history_is_asked_again() -> None:
    def again(fault: type[Sound], data: bytes) -> SubsystemVerdict:
        return replay(Job("toy", command(fault)), read(data, "x"), "x.history")

    good = again(Sound, SHARED + b"init\npush value=1\n")
    assert (good.verdict, good.tally.histories, good.tally.calls) == ("accepted", 2, 4)
    bad = again(toy_target.Forgets, SHARED)
    (rejection,) = bad.rejections
    assert (bad.verdict, rejection.by, len(rejection.history.records)) == ("rejected", "replay", 4)
    assert bad.again.endswith("toy --replay x.history")
    kept = again(toy_target.Forgets, rejection.history.ndjson())
    assert kept.rejections[0].history == rejection.history
    assert again(Sound, b"push value=0\ntakeAny\n").verdict == "accepted"
    assert again(toy_target.TakesNone, b"push value=0\ntakeAny\n").verdict == "rejected"
    died = again(toy_target.Dies, b"save\nrestore\nrestore\nrestore\n")
    assert (died.verdict, died.tally.trouble is not None) == ("could not judge", True)


@pytest.mark.parametrize("name", ["batch", pytest.param("validator", marks=pytest.mark.deep)])
def test_answers_that_a_spec_keeps_hide_none_of_its_conditions(name: str) -> None:
    """These specs keep what they have read, and their candidates what they have made; a campaign in the same process
    before must not be seen."""
    first, second = (judge(Job(name, f"{OURS} {name}", seed=4), examples=3) for _ in range(2))
    assert len(first.tally.sides) > 100
    assert first.tally.sides == second.tally.sides


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"push value=-1", "call 1, push value=-1: outside the contract here: TOY-2 values are not negative"),
        (b"save\npusch value=1", "unknown operation of toy 'pusch'; did you mean 'push'?"),
        (b"push valeu=1", "call 1, push valeu=1: unknown argument of push 'valeu'; did you mean 'value'?"),
        (b"push", "call 1, push: value not recorded"),
        (b"?", "call 1: its operation is not recorded"),
        (b"init capacity=2 colour=3", "unknown argument of init 'colour'"),
        (b'push value="x"', 'call 1, push value="x": value is integer, not "x"'),
        (b"save\npush value=1.0", "call 2, push value=1.0: value is integer, not 1.0"),
        (b"push value=99999999999999999999", "value is integer, not 1e+20 (integers have 64 bits, signed)"),
        (b'init capacity="x"', 'init: capacity is integer, not "x"'),
    ],
)
def test_a_call_that_cannot_be_made_is_said_in_a_line(text: bytes, said: str) -> None:
    with pytest.raises(UserError) as e:
        replay(Job("toy", command(Sound)), read(text, "x"), "x")
    assert said in str(e.value)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"init batchBytes=5", "init: batchBytes: 5 is not 72 to 118"),
        (b"init partitions=5", "init: partitions is "),
        (b"advance ms=9223372036854775808", "call 1, advance ms=9223372036854775808: ms: 2^63 is not 0 to 2^"),
    ],
)
def test_numbers_outside_their_ranges_are_not_asked(text: bytes, said: str) -> None:
    with pytest.raises(UserError) as e:
        replay(Job("cleaner", f"{OURS} cleaner"), read(text, "x"), "x")
    assert said in str(e.value)


def test_a_history_is_not_made_smaller_by_a_number_outside_its_range() -> None:
    """Minus 2^63, made simpler, is 2^63."""
    with Target(f"{OURS} time_index") as target:
        session = Session(Job("time_index", "x"), target)

        def asked(timestamp: int) -> int:
            arguments = {"timestamp": timestamp, "offset": 1, "skipFullCheck": True}
            calls: list[Any] = [{"op": "init", "args": {}}, {"op": "maybeAppend", "args": arguments}]
            assert session.replayed(calls) is None
            return len(session.tried)

        assert [asked(2**63), asked(2**63 - 1)] == [0, 1]


def test_a_default_that_a_history_does_not_tell_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a target that cannot do without it is not rejected for that."""
    with Target(command(Sound)) as target:
        session = Session(Job("toy", "x"), target)
        sent: list[bytes] = []
        send = target.send

        def sending(lines: Sequence[bytes], expected: Sequence[Any]) -> None:
            sent.extend(lines)
            send(lines, expected)

        monkeypatch.setattr(target, "send", sending)
        calls: list[Any] = [{"op": "init", "args": {}}, {"op": "drain", "args": {}}]
        assert session.replayed(calls) is None
        assert [r["args"] for r in session.tried[-1]] == [{}, {}]
    asked = [orjson.loads(line) for line in sent]
    assert [(x["op"], x.get("args")) for x in asked if x["op"] != "observe"] == [("init", {}), ("drain", {"atMost": 2})]


# ---- what travels ----------------------------------------------------------------------------------------------------
def test_what_blocks_come_to_can_be_sent_and_added_up() -> None:
    trouble = pickle.loads(pickle.dumps(TargetTrouble("hangs", "no answer", ["a", "b"])))
    assert (trouble.kind, trouble.what, trouble.stderr) == ("hangs", "no answer", ("a", "b"))
    assert str(trouble) == "the target hangs: no answer"
    assert pickle.loads(pickle.dumps(Difference("x", ABSENT, 1))).expected is ABSENT
    with Target(command(toy_target.ForgetsAndMiscounts)) as target:
        tally = Session(Job("toy", "x"), target).block(0, 25)
    sent = pickle.loads(pickle.dumps(tally))
    assert sent == tally
    both = Tally()
    both.add(tally)
    both.add(sent)
    assert (both.calls, both.clauses) == (2 * tally.calls, tally.clauses + tally.clauses)
    assert [r.count for r in both.rejections.values()] == [2 * r.count for r in tally.rejections.values()]
    plain = to_json(judged(toy_target.ForgetsAndMiscounts, 25))
    assert {r["operation"] for r in plain["tally"]["rejections"]} == {"push"}
    assert "model_states" not in plain["tally"]
    assert timeless(plain) == timeless(to_json(judged(toy_target.ForgetsAndMiscounts, 25)))


def test_no_module_has_a_constant_that_hypothesis_would_take_for_a_call() -> None:
    """Else what is drawn would hang on the modules that happen to be loaded."""
    found = [
        (str(file), n.lineno)
        for part in ("src", "spec", "impl", "audits", "models", "proofs")
        for file in sorted((ROOT / part).rglob("*.py"))
        if re.search(r"""b[rR]?["']""", text := file.read_text("utf-8"), re.IGNORECASE)
        for n in ast.walk(ast.parse(text))
        if isinstance(n, ast.Constant) and isinstance(n.value, bytes) and len(n.value) == CALL_BYTES
    ]
    assert found == []


def test_what_makes_rejections_one_is_not_in_their_text() -> None:
    history = History(({"op": "push", "args": {}},), "anything", "TOY-1", "state.items")
    assert kind_of(history) == kind_of(replace(history, why="other words")) == ("TOY-1", "push", "state.items")
