"""The log cleaner's states with retention: the model that the explorer is measured by.

It says what `Cleaner.tla` of the benchmark says, so that its distinct and generated states can be compared with those
of TLC and SPIN. The cleaner as Kafka has it is `models/management/cleaner.py`.
"""

from __future__ import annotations

import enum
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Model, Range, Size, Sort, action, invariant, require, witness


class Partition(Sort):
    """A partition whose log is compacted."""


class Thread(Sort):
    """A cleaner thread."""


N = Size("N")
D = Size("D")


class Status(enum.Enum):
    FREE = 0
    IN_PROGRESS = 1
    ABORTED = 2
    PAUSED = 3


class CleanerAnchor(Model):
    """`dirt` is how much there is to clean; `pauses` how often a partition is paused, up to `N`."""

    status: dict[Partition, Status]
    pauses: dict[Partition, Annotated[int, Range(0, N)]]
    dirt: dict[Partition, Annotated[int, Range(0, D)]]
    retained: dict[Partition, bool]
    cleaning: dict[Thread, Partition | None]

    @action(who="producer")
    def write(s, p: Partition) -> None:
        require(s.dirt[p] < D)
        s.next.dirt[p] = s.dirt[p] + 1

    @action(who="cleaner thread")
    def grab_filthiest(s, t: Thread, p: Partition) -> None:
        require(s.cleaning[t] is None, s.status[p] == Status.FREE, s.dirt[p] > 0)
        require(all(s.dirt[q] <= s.dirt[p] for q in Partition if s.status[q] == Status.FREE))
        s.next.status[p] = Status.IN_PROGRESS
        s.next.cleaning[t] = p
        s.next.dirt[p] = 0

    @action(who="cleaner thread")
    def done_cleaning(s, t: Thread) -> None:
        p = s.cleaning[t]
        require(p is not None)
        assert p is not None
        if s.status[p] == Status.IN_PROGRESS:
            s.next.status[p] = Status.FREE
        else:
            s.next.status[p] = Status.PAUSED
            s.next.pauses[p] = 1
            s.next.dirt[p] = D
        s.next.cleaning[t] = None

    @action(who="user")
    def abort_and_pause(s, p: Partition) -> None:
        require(s.status[p] == Status.IN_PROGRESS or (s.status[p] != Status.ABORTED and s.pauses[p] < N))
        if s.status[p] == Status.IN_PROGRESS:
            s.next.status[p] = Status.ABORTED
        else:
            s.next.status[p] = Status.PAUSED
            s.next.pauses[p] = s.pauses[p] + 1

    @action(who="user")
    def resume(s, p: Partition) -> None:
        require(s.pauses[p] > (1 if s.retained[p] else 0))
        s.next.pauses[p] = s.pauses[p] - 1
        s.next.status[p] = Status.FREE if s.pauses[p] == 1 else Status.PAUSED

    @action(who="retention")
    def retention_start(s, p: Partition) -> None:
        require(not s.retained[p], s.status[p] == Status.FREE)
        s.next.status[p] = Status.PAUSED
        s.next.pauses[p] = 1
        s.next.retained[p] = True

    @action(who="retention")
    def retention_finish(s, p: Partition) -> None:
        require(s.retained[p])
        s.next.pauses[p] = s.pauses[p] - 1
        s.next.status[p] = Status.FREE if s.pauses[p] == 1 else Status.PAUSED
        s.next.retained[p] = False

    @invariant()
    def retention_holds_a_pause(s, p: Partition) -> bool:
        return not s.retained[p] or s.status[p] == Status.PAUSED

    @invariant()
    def cleaned_by_someone(s, p: Partition) -> bool:
        busy = s.status[p] == Status.IN_PROGRESS or s.status[p] == Status.ABORTED
        return busy == any(s.cleaning[t] == p for t in Thread)

    @invariant()
    def one_thread_a_partition(s, t: Thread, u: Thread) -> bool:
        return t == u or s.cleaning[t] is None or s.cleaning[t] != s.cleaning[u]

    @witness
    def paused_twice(s, p: Partition) -> bool:
        return s.pauses[p] >= 2


MODELS = [
    Expectation(
        CleanerAnchor,
        sizes={"Partition": 3, "Thread": 2, "N": 3, "D": 1},
        distinct=8_792,
        generated=64_093,
        depth=13,
    ),
    Expectation(
        CleanerAnchor,
        sizes={"Partition": 5, "Thread": 2, "N": 3, "D": 1},
        distinct=2_952_544,
        generated=36_083_601,
        depth=21,
        note="the size of the benchmark",
    ),
]
