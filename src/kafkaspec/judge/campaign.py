"""A judged campaign: very many histories on a target, in blocks.

A block is a function of the campaign's job and its own number, whatever ran before and wherever it runs, so that blocks
on many machines find what one process finds. Each begins with guided histories and goes on with its part of the models'
tours; the last of it are drawn by Hypothesis. What is rejected is made small after its block, each kind once.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from kafkaspec.contract import clauses as registry
from kafkaspec.contract.history import History, Record
from kafkaspec.contract.machine import Operation
from kafkaspec.contract.subsystem import Subsystem, find
from kafkaspec.errors import UserError
from kafkaspec.judge.cover import sides_of
from kafkaspec.judge.judging import BLOCK, ONE_BY_ONE, SHRINK_S, Session, offered, tours_of
from kafkaspec.judge.result import Job, Rejection, Side, SubsystemVerdict, Tally, covered
from kafkaspec.judge.target import Hello, Process, Target, TargetTrouble
from kafkaspec.lockstep.shrink import shrunk

Progress = Callable[[int, int | None, str], None]
"""Called now and then with histories done, histories in all (None where time decides) and a word on what was found."""


def judge(
    job: Job,
    *,
    examples: int | None,
    time_s: float | None = None,
    progress: Progress | None = None,
    record: Callable[[bytes], None] | None = None,
    process: Callable[[], Process] | None = None,
) -> SubsystemVerdict:
    """Judge one subsystem by `examples` histories, or by as many as fit into `time_s` seconds, or whatever ends first.

    `record` gets every judged line, in the form of a trace. `process` starts the target where `job.command`, by which
    what it found can be seen again, need not. A target that cannot be judged any further is a verdict;
    UserError: the subsystem does not exist.
    """
    subsystem = find(job.subsystem)
    began = time.monotonic()
    until: float | None = None
    tally = Tally()
    hello: Hello | None = None
    judging: Session | None = None
    interrupted = False
    try:
        with Target(job.command, job.timeout_s, process and process()) as target:
            hello = target.hello
            judging = Session(job, target, record)
            until = None if time_s is None else time.monotonic() + time_s
            for number, histories in blocks(examples):
                done = number * BLOCK

                def tick(n: int, done: int = done) -> None:
                    if progress is not None:
                        progress(done + n, examples, tally.found)

                tally.add(judging.block(number, histories, until, tick))
                judging.tally = Tally()
                tally.small(made_small(job, tally.large))
                if tally.ended(job) or (until is not None and time.monotonic() >= until):
                    break
        tally.last = trouble_made_small(job, tally)
    except TargetTrouble as e:
        tally.trouble = tally.trouble or e
    except KeyboardInterrupt:
        interrupted = True
        if judging is not None:
            tally.add(judging.tally)
    made = summed(subsystem, job, hello, tally, time.monotonic() - began)
    return replace(made, examples=examples) if not interrupted else made.until_now(examples)


def blocks(examples: int | None) -> Iterator[tuple[int, int]]:
    """The numbers of the blocks of a number of histories, and how many each has; without end where there is no number.

    >>> list(blocks(600))
    [(0, 250), (1, 250), (2, 100)]
    """
    for number in itertools.count():
        if examples is not None and number * BLOCK >= examples:
            return
        yield number, BLOCK if examples is None else min(BLOCK, examples - number * BLOCK)


def made_small(job: Job, rejections: Iterable[Rejection]) -> Iterator[Rejection]:
    """Rejections as small as each gets, by trying it with less on a target of their own, and on another after trouble.
    TargetTrouble: it does not start."""
    rest = deque(rejections)
    while rest:
        with Target(job.command, job.timeout_s) as target:
            judging = Session(job, target)
            while rest and not judging.broken:
                yield judging.small(rest.popleft())


def trouble_made_small(job: Job, tally: Tally) -> History | None:
    """The history in which a target got into trouble, with as few and simple calls as show the same trouble again, each
    time on a target of its own; as it was, where it does not show again."""
    if tally.trouble is None or tally.last is None or tally.trouble.kind not in ONE_BY_ONE:
        return tally.last
    kind, until = tally.trouble.kind, time.monotonic() + SHRINK_S

    def again(records: Sequence[Record]) -> History | None:
        session = None
        if time.monotonic() > until:
            return None
        try:
            with Target(job.command, job.timeout_s) as target:
                session = Session(replace(job, generator="uniform"), target)
                with contextlib.suppress(UserError):
                    session.again(0, records)
                target.quiet()
        except TargetTrouble as e:
            made = None if session is None or e.kind != kind else session.located(e)
            return made[1] if made is not None and made[2].kind == kind and len(made[1].records) > 1 else None
        return None

    return shrunk(find(job.subsystem).spec.machine, tally.last, again)


def replay(job: Job, histories: Sequence[Sequence[Record]], name: str) -> SubsystemVerdict:
    """Ask the calls of histories again, those of a file. What they record of answers is not looked at.

    UserError: a call that cannot be made, as the contract does not allow it there or it is no call of the subsystem.
    """
    subsystem = find(job.subsystem)
    began = time.monotonic()
    tally = Tally()
    hello: Hello | None = None
    try:
        with Target(job.command, job.timeout_s) as target:
            hello = target.hello
            judging = Session(replace(job, generator="uniform"), target)
            tally = judging.tally
            for number, records in enumerate(histories):
                judging.again(number, records)
            target.quiet()
    except TargetTrouble as e:
        tally.trouble = e
    made = summed(
        subsystem,
        replace(job, generator="uniform", min_coverage=0.0, min_calls=0),
        hello,
        tally,
        time.monotonic() - began,
    )  # no tours
    return replace(made, job=job, replayed=name)


def summed(subsystem: Subsystem, job: Job, hello: Hello | None, tally: Tally, seconds: float) -> SubsystemVerdict:
    """The verdict that a tally comes to."""
    machine = subsystem.spec.machine
    asked: list[Operation[Any]] = []
    if hello is not None:
        with contextlib.suppress(TargetTrouble):  # it is the tally's
            asked = offered(machine, hello, job.subsystem)
    names = {op.name for op in asked}
    stated = {c for op in asked for c in (*op.clauses, *(p.clause for p in op.postconditions))} | set(tally.clauses)
    known = [c.id for c in registry.all_clauses(subsystem.prefix) if c.id in stated]
    sides = tuple(
        Side(site.where, site.text, way, site.clauses, n in tally.sides) for n, site, way in sides_of(machine, asked)
    )
    tours = {t.how.model.__name__: t for t in tours_of(job)}
    why = ""
    if tally.trouble is not None:
        why = str(tally.trouble)
    elif not tally.calls:
        why = "nothing was asked"
    elif not tally.rejections:
        why = too_little(job, tally, len(asked), covered(sides))
    verdict: Literal["accepted", "rejected", "could not judge"] = "could not judge" if why else "accepted"
    return SubsystemVerdict(
        job,
        subsystem.title,
        f"{hello.name} {hello.version}".strip() if hello is not None else "",
        "rejected" if tally.rejections else verdict,
        why,
        tally,
        tuple(known),
        tuple(n for n, op in machine.operations.items() if op.generated and n not in names),
        tuple(op.name for op in asked if op.name not in tally.operations),
        sides,
        {m: (len(tally.model_states.get(m, ())), t.states) for m, t in tours.items()},
        {m: (tally.toured[m], len(t.histories)) for m, t in tours.items()},
        seconds,
    )


def too_little(job: Job, tally: Tally, operations: int, reached: float) -> str:
    """Why what was asked is not enough to accept the target, which offers that many operations, and of whose rules'
    conditions `reached` percent of the sides were taken; "" if it is."""
    out = []
    if tally.calls < (least := job.min_calls * operations):
        out.append(f"{tally.calls:,} calls, where {job.min_calls} for each operation, {least:,}, are the least")
    if reached < job.min_coverage:
        out.append(
            f"{reached:.1f} % of the conditions in its rules were decided both ways, and {job.min_coverage:g} % must be"
        )
    return f"asked too little: {'; '.join(out)} (--min-coverage)" if out else ""
