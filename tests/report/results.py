"""One result of every kind, made by the engines themselves on toys, and some runs made by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from kafkaspec.contract.history import History
from kafkaspec.explore.engine import explore
from kafkaspec.explore.walk import walk as random_walk
from kafkaspec.fleet import campaign
from kafkaspec.judge.check import check
from kafkaspec.judge.result import Job, Rejection, Side, SubsystemVerdict, Tally
from kafkaspec.judge.suspects import Blame
from kafkaspec.judge.target import TargetTrouble
from kafkaspec.language import Trace, TraceStep, load
from kafkaspec.lockstep.walk import walk
from kafkaspec.mutants.matrix import contract_detector, kill_matrix, lockstep_detector, written
from kafkaspec.prove.bounded import bounded
from kafkaspec.prove.engine import prove
from kafkaspec.simulate import replay, simulate
from kafkaspec.verify.row import Row
from tests.fleet.faulty import Faulty, FaultyToy, Toy
from tests.judge.test_check import LONG, lines, recorded
from tests.lockstep import toy
from tests.lockstep.toy_model import ForgetsToSave, ToyQueue
from tests.simulate.toy import ADDS_TWICE, SCENARIO


def step(action: str, who: str, arguments: dict[str, Any], **state: Any) -> TraceStep:
    return TraceStep(action, who, ("CLN-1",) if action else (), arguments, state)


def dirt(p0: str, p1: str, cleaning: str | None, pauses: int = 0) -> dict[str, Any]:
    return {"status": {"p0": p0, "p1": p1}, "cleaning": {"t0": cleaning}, "pauses": pauses, "isr": ["r0", "r1"]}


STEPS = (
    step("", "", {}, **dirt("FREE", "FREE", None)),
    step("grab", "cleaner thread", {"t": "t0", "p": "p1"}, **dirt("FREE", "IN_PROGRESS", "p1")),
    step("abort_and_pause", "retention", {"p": "p1", "n": 2}, **dirt("FREE", "ABORTED", "p1", 2)),
    step("finish", "cleaner thread", {"t": "t0"}, **dirt("FREE", "FREE", None, 2)),
)
SIZES = {"Partition": 2, "FENCED": True}
VIOLATION = Trace("Cleaner", SIZES, "violation", "a_pause_lasts", ("CLN-7",), STEPS)
LASSO = Trace("Cleaner", SIZES, "lasso", "the_waiter_returns", (), STEPS, loop=1)
INDUCTION = Trace("Cleaner", SIZES, "cti", "a_pause_lasts", ("CLN-7",), STEPS[2:])
START = Trace("Cleaner", SIZES, "cti", "a_pause_lasts", ("CLN-7",), STEPS[:1])
DEADLOCK = Trace("Cleaner", {}, "deadlock", "", (), STEPS[:2])
FOLDER = TemporaryDirectory(prefix="kafkaspec-test-")
RUNS = (VIOLATION, LASSO, INDUCTION, START, DEADLOCK)


NAMES = (
    "accepted", "rejected", "outside", "explored", "broken", "walked", "proved", "bounded", "campaign",
    "clean campaign", "agrees", "differs", "kills", "verified", "violation", "lasso", "induction", "start",
    "deadlock", "judged", "rejected target", "targets", "simulated", "clean simulation", "replayed",
)  # fmt: skip


def judged(tally: Tally, verdict: Any = "accepted", why: str = "", **other: Any) -> SubsystemVerdict:
    """A target judged by the toy."""
    job = Job("toy", "./t y", 7, strict=True)
    models, tours = {"ToyQueue": (12, 182)}, {"ToyQueue": (3, 40)}
    sides = tuple(
        Side("tests/toy.py:54", "len(state.items) < <3", way, ("TOY-1",), way != "at")
        for way in ("below", "at", "above")
    )
    return SubsystemVerdict(
        job, "Toy", "A toy 1.0", verdict, why, tally, ("TOY-1", "TOY-4"), ("drain",), ("push (value is 0 or 7)",),
        ("save",), sides, models, tours, 1.25, examples=60, **other,
    )  # fmt: skip


def _rejection() -> Rejection:
    """What a recording that is altered in one value comes to, as if a target had answered it."""
    records = [orjson.loads(line) for line in lines(recorded(LONG))[:4]]
    records[-1]["state"]["items"] = ["</script>", 3]
    verdict = check(toy.machine, [orjson.dumps(r) for r in records], name="toy")
    assert verdict.verdict == "rejected"
    why = "A toy 1.0: rejected\nstate.items: seen 1, expected 2"
    history = History(tuple(records), why)
    blame = Blame("len(state.items) < 3", "tests/toy.py:54", "always held", ("TOY-1",), 7, 9)
    verdict = replace(verdict, others=("TOY-4", "TOY-2"))
    return Rejection("TOY-1", "push", "state.items", history, verdict, 12, 700, "tour", 4, True, blame)


REJECTED = judged(
    Tally(
        60, 900, 300, Counter(push=900), Counter({"TOY-1": 900}), Counter({"push TOY-3": 8}),
        deviations=Counter({"TOY-D1": 3}), uncompared=Counter({"TOY-D1": 2}),
        rejections={("TOY-1", "push", "state.items"): _rejection()},
    ),
    "rejected",
    kept=("out/judge/toy-1.ndjson",),
)  # fmt: skip
TROUBLED = judged(
    Tally(
        1, 2, 2, Counter(push=2),
        trouble=TargetTrouble("hangs", "no answer to line 3 in 10 s", ["it is\x07 hot", "<b>"]),
        last=History(({"op": "init", "args": {}}, {"op": "push", "args": {"value": 1}})),
    ),
    "could not judge",
    "the target hangs: no answer to line 3 in 10 s",
)  # fmt: skip


@cache
def results() -> dict[str, Any]:
    """By the NAMES; made once."""
    subsystem = Toy("toy", "lockstep")
    good = lines(recorded(LONG))
    altered = orjson.loads(good[3])
    altered["result"] = "something else"
    out = Path(FOLDER.name)
    queue, wrong = load(ToyQueue), load(ForgetsToSave)
    sizes = {"V": 2, "L": 2}
    simulated = simulate(ADDS_TWICE, seeds=range(10), out=out / "c")
    return {
        "accepted": check(toy.machine, good, name="good.ndjson"),
        "rejected": replace(
            check(toy.machine, [*good[:3], orjson.dumps(altered), *good[4:]], name="bad.ndjson"),
            again="kafkaspec check bad.ndjson",
        ),
        "outside": check(toy.machine, [b'{"op":"push","args":{"value":-1}}'], name="outside.ndjson"),
        "explored": explore(queue, sizes),
        "broken": explore(wrong, sizes),
        "walked": random_walk(queue, sizes, seed=1, steps=1600),
        "proved": prove(queue),
        "bounded": bounded(queue, 2, sizes),
        "campaign": campaign(FaultyToy("toy", "lockstep"), seeds=range(40), steps=60, out=out / "a"),
        "clean campaign": campaign(subsystem, seeds=range(5), steps=60, out=out / "b"),
        "agrees": walk(toy.machine, toy.Driver(), 1, 50),
        "differs": walk(toy.machine, Faulty(), 3, 50),
        "kills": kill_matrix(subsystem, written(subsystem), [contract_detector(3, 50), lockstep_detector(20, 50)]),
        "verified": [
            Row("timeline", "clauses", "complete", "38 clauses", 0.1),
            Row("timeline", "Timeline", "explored", "12 distinct, 40 generated", 0.5, "action revert is never taken"),
            Row("cleaner", "Cleaner", "proved", "", 9.0, "the solver gave up", could_judge=False),
        ],
        "violation": VIOLATION,
        "lasso": LASSO,
        "induction": INDUCTION,
        "start": START,
        "deadlock": DEADLOCK,
        "judged": judged(
            Tally(3, 60, 20, Counter({"push": 50, "pop": 10}), Counter({"TOY-1": 50}), toured=Counter(Q=3))
        ),
        "rejected target": REJECTED,
        "targets": [REJECTED, TROUBLED],
        "simulated": simulated,
        "clean simulation": simulate(SCENARIO, seeds=range(3), out=out / "c"),
        "replayed": replay(ADDS_TWICE, simulated.failures[0].file or Path()),
    }
