"""An audit whose logs are spread over processes: the same answers as from one, since a log is audited alone.

Threads would not do: the loops over bytes run beside each other, the checks of their rows do not
(docs/decisions/0020-audit-on-all-cores.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from kafkaspec.audit.check import Log
from kafkaspec.audit.engine import Fan, LogResult, Tally, audited, checks, here, size_of
from kafkaspec.impl.common.kernels import reader
from kafkaspec.workers import START, Say, each

WORTHWHILE: Final = 64 << 20
"""Bytes from which on processes save more time than they take to begin."""
A_LOG: Final = 1 << 20
"""What a log takes besides its bytes, as bytes."""
TOLD: Final = 16 << 20
"""A process says how far it is whenever it has read this number of bytes."""
Answer = tuple[int, LogResult | str | None]


def over(jobs: int) -> Fan:
    """What `audit(fan=...)` takes: at most that number of processes; this one alone for what is small."""
    return partial(_fan, jobs)


def _fan(jobs: int, logs: list[Log], strict: bool, tally: Tally) -> Iterator[Answer]:
    """The large ones first, so that no process waits long for the last. A single one has a process too: one that is
    killed, as where memory runs out, is not ours."""
    sizes = [size_of(log) for log in logs]
    if jobs == 1 or sum(sizes) + A_LOG * len(logs) < WORTHWHILE:
        yield from here(logs, strict, tally)
        return
    if START == "fork":
        checks()
        reader(True)
    order = sorted(range(len(logs)), key=lambda n: -sizes[n])

    def ended(task: tuple[int, Log], how: str) -> Answer:
        n, log = task
        return n, f"{log.files.path}: not read to its end: the process that read it {how}"

    yield from each(
        partial(_audited, strict),
        [(n, logs[n]) for n in order],
        jobs,
        ended,
        hear=lambda passed: tally(*passed),
        start=START,
    )


@dataclass
class _Amounts:
    """Bytes and records as they pass, said now and then."""

    say: Say
    size: int = 0
    records: int = 0

    def __call__(self, size: int, records: int) -> None:
        self.size += size
        self.records += records
        if self.size > TOLD:
            self.tell()

    def tell(self) -> None:
        self.say((self.size, self.records))
        self.size = self.records = 0


def _audited(strict: bool, task: tuple[int, Log], say: Say) -> Answer:
    n, log = task
    passed = _Amounts(say)
    found = audited(log, strict, passed)
    passed.tell()
    return n, found
