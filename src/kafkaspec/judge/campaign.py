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
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, Literal, Self

from kafkaspec.contract import clauses as registry
from kafkaspec.contract.history import History, Record
from kafkaspec.contract.machine import Operation
from kafkaspec.contract.subsystem import Subsystem, find
from kafkaspec.errors import UserError
from kafkaspec.judge.cover import sides_of
from kafkaspec.judge.judging import BLOCK, ONE_BY_ONE, SHRINK_S, Session, in_part, offered, tours_of
from kafkaspec.judge.result import Job, Rejection, Side, SubsystemVerdict, Tally, covered
from kafkaspec.judge.target import Hello, Process, Target, TargetTrouble
from kafkaspec.judge.tour import names_of
from kafkaspec.lockstep.shrink import shrunk

Progress = Callable[[int, int | None, str], None]
"""Called now and then with histories done, histories in all (None where time decides) and a word on what was found."""
Block = tuple[int, int]
"""Its number, and how many histories it has."""
Judged = tuple[int, Hello | None, Tally]
"""A block's number, who the target says it is, and what the block came to."""
Hear = Callable[[Judged], None]
Fan = Callable[["Blocks", Iterator[Block], Hear], Generator[Judged]]
"""What comes of blocks, in their order. A block is taken when there is a process free for it."""


class Blocks:
    """Judges blocks on a target that is started for the first of them, and on another one after trouble; a context
    manager that ends it. `time_s` are counted from when the target has greeted. `process`: see `judge`."""

    def __init__(
        self,
        job: Job,
        time_s: float | None = None,
        keeping: bool = False,
        process: Callable[[], Process] | None = None,
    ) -> None:
        self.job = job
        self.time_s = time_s
        self.keeping = keeping
        self.process = process
        self.until: float | None = None
        self.session: Session | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.session is not None:
            self.session.target.close()
            self.session = None

    def __call__(self, block: Block, hear: Hear) -> Judged:
        """One block. `hear` is called after each history with what its block came to until then."""
        number, histories = block
        try:
            session = self.session = self.session or self._session()
        except TargetTrouble as e:
            return number, None, Tally(trouble=e)
        if self.time_s is not None and self.until is None:
            self.until = time.monotonic() + self.time_s
        hello = session.target.hello
        tally = session.block(
            number, histories, self.until, lambda: hear((number, hello, session.tally)), keeping=self.keeping
        )
        if tally.trouble is not None:
            self.__exit__()
        return number, hello, tally

    def _session(self) -> Session:
        target = Target(self.job.command, self.job.timeout_s, self.process and self.process())
        try:
            return Session(self.job, target)
        except TargetTrouble:
            target.close()
            raise


def here(work: Blocks, todo: Iterator[Block], hear: Hear) -> Generator[Judged]:
    """One block after the other."""
    with work:
        for block in todo:
            yield work(block, hear)


def judge(
    job: Job,
    *,
    examples: int | None,
    time_s: float | None = None,
    progress: Progress | None = None,
    record: Callable[[bytes], None] | None = None,
    process: Callable[[], Process] | None = None,
    fan: Fan = here,
) -> SubsystemVerdict:
    """Judge one subsystem by `examples` histories, or by as many as fit into `time_s` seconds, or whatever ends first.

    `record` gets every judged line, in the form of a trace. `process` starts the target where `job.command`, by which
    what it found can be seen again, need not. `fan` judges blocks beside each other; in their order they come to the
    same. A target that cannot be judged any further is a verdict; UserError: the subsystem does not exist.
    """
    subsystem = find(job.subsystem)
    began = time.monotonic()
    tally = Tally()
    hello: Hello | None = None
    under_way: dict[int, Judged] = {}
    interrupted = over = False

    def hear(judged: Judged) -> None:
        nonlocal over
        over = over or judged[2].over  # no block is begun then, even if an earlier one is still under way
        under_way[judged[0]] = judged
        if progress is not None:
            tallies = [tally, *(made for _, _, made in under_way.values())]
            progress(sum(t.histories for t in tallies), examples, found_in(tallies))

    def add(judged: Judged) -> None:
        nonlocal hello
        number, greeted, made = judged
        under_way.pop(number, None)
        tally.add(made)
        if hello is not None and greeted not in (None, hello):
            changed = TargetTrouble("garbage", "hello: not what another process of the target has answered")
            tally.trouble = tally.trouble or changed
        hello = hello or greeted
        for line in made.lines:
            assert record is not None
            record(line)

    todo = takewhile(lambda block: not over, blocks(examples))
    try:
        with contextlib.closing(fan(Blocks(job, time_s, record is not None, process), todo, hear)) as judged:
            for block in judged:
                over = over or block[2].over
                add(block)
                tally.small(made_small(job, tally.large))
                if tally.ended(job):
                    break
        tally.last = trouble_made_small(job, tally)
    except TargetTrouble as e:
        tally.trouble = tally.trouble or e
    except KeyboardInterrupt:
        interrupted = True
        for number in sorted(under_way):
            add(under_way[number])
    made = summed(subsystem, job, hello, tally, time.monotonic() - began)
    return replace(made, examples=examples) if not interrupted else made.until_now(examples)


def found_in(tallies: Sequence[Tally]) -> str:
    """What was found, in few words."""
    kinds = {kind for tally in tallies for kind in tally.rejections}
    return f"{sum(tally.calls for tally in tallies):,} calls{f', {len(kinds)} rejected' if kinds else ''}"


def blocks(examples: int | None) -> Iterator[Block]:
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


def replay(
    job: Job, histories: Sequence[Sequence[Record]], name: str, places: Sequence[Sequence[str]] = ()
) -> SubsystemVerdict:
    """Ask the calls of histories again, those of a file. What they record of answers is not looked at.

    UserError: a call that cannot be made, as the contract does not allow it there or it is no call of the subsystem,
    with its place, if `places` has it.
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
                judging.again(number, records, places[number] if places else ())
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
    tours = dict(zip(names_of(subsystem.refinements), tours_of(job), strict=False))
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
        tuple(in_part(hello, job.subsystem)) if hello is not None else (),
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
