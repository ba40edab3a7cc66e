"""The cleaner with its threads and users refines the manager alone: faults on either side are noticed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from kafkaspec.explore.engine import Exploration, explore
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.management.cleaner import (
    Cleaner,
    D,
    Dirt,
    Doing,
    Partition,
    States,
    Status,
    Thread,
    User,
    Waits,
)


def explored(m: LoadedModel, partitions: int = 1, levels: int = 1) -> Exploration:
    """At the size at which a fault is known to show: of so many logs, with so many levels of dirt."""
    sizes = {"Partition": partitions, "Thread": 1, "User": 1, "N": 1, "D": levels}
    return explore(m, sizes, deadlock=True)


@cache
def sound(partitions: int = 1, levels: int = 1) -> Exploration:
    return explored(load(Cleaner), partitions, levels)


def claim(e: Exploration) -> str:
    return "" if e.trace is None else e.trace.claim


# ---- faults of the cleaner that no other claim of it notices
class DirtComesAtOnce(Cleaner):
    @action("CLN-3", who="producer")
    def write(s, p: Partition) -> None:
        require(s.known[p], s.dirt[p] < D)
        s.next.dirt[p] = D


class EveryMarkIsTakenAway(Cleaner):
    @action("CLN-25", who="cleaner thread")
    def maintain_uncleanable(s) -> None:
        require(any(s.uncleanable[p] and not s.known[p] for p in Partition))
        s.next.uncleanable = {p: False for p in Partition}


class EveryPolicyChanges(Cleaner):
    @action("CLN-18", who="operator")
    def make_compact(s, p: Partition) -> None:
        require(not s.compact[p])
        s.next.compact = {q: True for q in Partition}


class OneIsTakenToDelete(Cleaner):
    """Not all that are free, and not the filthiest."""

    @action("CLN-19", "CLN-24", who="cleaner thread")
    def take_deletable(s, t: Thread, p: Partition) -> None:  # type: ignore[override]
        require(s.idle(t), s.free(p))
        s.next.deleting[t] = {p}
        s.next.status[p] = Status.IN_PROGRESS


class AHolderLeavesAllDirty(Cleaner):
    """As if a cleaning had failed, in the step in which it is resumed."""

    @action("CLN-14", "CLN-33", who="truncation or move", fair="weak", per=("u",))
    def end_holding(s, u: User) -> None:
        require(s.doing[u] == Doing.HOLDING)
        s.resume(u)
        s.end(u)
        s.next.dirt = {p: D if p in s.held[u] and s.dirt[p] > 0 else s.dirt[p] for p in Partition}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("fault", "partitions", "levels"),
    [
        (DirtComesAtOnce, 1, 2),
        (EveryMarkIsTakenAway, 2, 1),
        (EveryPolicyChanges, 2, 1),
        (OneIsTakenToDelete, 2, 1),
        (AHolderLeavesAllDirty, 1, 2),
    ],
)
def test_the_refinement_alone_notices(fault: type[Cleaner], partitions: int, levels: int) -> None:
    m, right = load(fault), sound(partitions, levels)
    without = explored(replace(m, steps={n: c for n, c in m.steps.items() if n != "manager"}), partitions, levels)
    reached = [{n for n, t in e.witnesses.items() if t is not None} for e in (without, right)]
    assert (without.outcome, claim(without)) == (right.outcome, "")
    assert reached[0] >= reached[1]
    assert claim(explored(m, partitions, levels)) == "manager"


# ---- faults of the manager alone
NEVER_SHOWN = {"abort", "restart"}
"""An abort is shown as a call that pauses and one that resumes; the cleaner does not restart."""
OF_TWO = {*NEVER_SHOWN, "grab", "pause_non_compacted", "done_deleting"}
"""Of one log they are not missed."""


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", [a.name for a in load(States).actions])
def test_every_call_is_needed(name: str) -> None:
    m, abstract = load(Cleaner), load(States)
    without = replace(abstract, actions=[a for a in abstract.actions if a.name != name])
    found = explored(m.refining("manager", without), partitions=2 if name in OF_TWO else 1)
    assert claim(found) == ("" if name in NEVER_SHOWN else "manager")


class StoppedLeavesAllDirty(States):
    @action("CLN-15", "CLN-12", "CLN-13", who="cleaner thread")
    def done_cleaning(s, p: Partition, left: Dirt) -> None:
        require(s.status[p] in (Status.IN_PROGRESS, Status.ABORTED), s.dirt[p] <= left)
        s.next.status[p] = Status.PAUSED if s.keeps(p) else Status.FREE
        s.next.pauses[p] = 1 if s.keeps(p) else 0
        s.next.waits[p] = Waits.NOBODY
        s.next.dirt[p] = left


class OnlyWhatIsUnpausedIsPaused(States):
    @action("CLN-11", who="anybody")
    def abort_and_pause(s, p: Partition) -> None:
        require(s.status[p] == Status.IN_PROGRESS)
        s.next.status[p] = Status.ABORTED
        s.next.waits[p] = Waits.TO_PAUSE


class AResumeLeavesOnePause(States):
    @action("CLN-14", who="anybody")
    def resume(s, held: set[Partition]) -> None:
        require(all(s.status[p] == Status.PAUSED for p in Partition if p in held))
        s.next.pauses = {p: s.pauses[p] - 1 if p in held else s.pauses[p] for p in Partition}


class ANewLogIsDirty(States):
    @action("CLN-2", who="log manager")
    def restore(s, p: Partition, new: bool) -> None:
        s.next.known[p] = True
        if new:
            s.next.dirt[p] = 1


class AMarkIsForgotten(States):
    @action("CLN-24", who="cleaner thread")
    def mark(s, p: Partition) -> None:
        s.next.known[p] = False


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "fault",
    [StoppedLeavesAllDirty, OnlyWhatIsUnpausedIsPaused, AResumeLeavesOnePause, ANewLogIsDirty, AMarkIsForgotten],
)
def test_a_fault_of_the_manager_is_noticed(fault: type[States]) -> None:
    assert claim(sound()) == ""
    assert claim(explored(load(Cleaner).refining("manager", load(fault)))) == "manager"
