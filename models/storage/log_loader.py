"""The replacement of segments by a compacted one, or of one by those that it was split into, with a crash before every
rename and removal, of the replacement and of the load that follows it.

The new segments are numbered in the order of their offsets. Of each new one matters how far its files are renamed; of
each old one whether it is there. A load that is crashed begins again. `IN_ORDER`: the load gives the new segments their
names in the order of their offsets. The released Kafka gives them in the order in which the file system lists them.

Source: Kafka Internals, ch. 03, "Crash recovery & startup: LogLoader"; LocalLog.replaceSegments and LogLoader, Kafka
4.3.0; KAFKA-6264.
"""

from __future__ import annotations

import enum
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Flag,
    Model,
    Range,
    Size,
    Sort,
    action,
    define,
    invariant,
    leads_to,
    lemma,
    require,
    step,
    witness,
)

N = Size("N")
"""How many new segments there are."""
New = Annotated[int, Range(1, N)]
IN_ORDER = Flag("IN_ORDER")


class Old(Sort):
    """A segment that is replaced."""


class Stage(enum.Enum):
    """The files of a new segment: not written; all .cleaned; the .log is .swap and its indexes are .cleaned; all .swap;
    all with their names."""

    NONE = 0
    CLEANED = 1
    HALF = 2
    SWAP = 3
    LIVE = 4


class Doing(enum.Enum):
    WRITING = 0
    SWAPPING = 1
    RETIRING = 2
    NAMING = 3
    DONE = 4
    DOWN = 5
    DROPPING = 6
    """first pass: unfinished .swap"""
    TIDYING = 7
    """first pass: .cleaned and .deleted"""
    REPLACING = 8
    """second pass"""
    RENAMING = 9
    """third pass"""
    LOADED = 10


class Replacement(Model):
    """One replacement. `old`: the segment is there under its name. `covered`: the new segments reach its offsets, so
    that the second pass finds it. Where they do not, a crash may leave the old one: no record of a compacted one was
    meant to stay, and one that was split is split once more when it is recovered."""

    new: dict[New, Stage]
    old: dict[Old, bool]
    covered: dict[Old, bool]
    doing: Doing

    @action("LDR-14", who="cleaner")
    def write(s, covered: set[Old]) -> None:
        """All new segments, flushed; which of the old ones they reach. After a compaction the first one at least, which
        has the same base; after a split perhaps none (LDR-21)."""
        require(s.doing == Doing.WRITING, all(s.new[n] == Stage.NONE for n in range(1, N + 1)))
        s.next.covered = {o: o in covered for o in Old}
        s.next.old = {o: True for o in Old}
        s.next.new = {n: Stage.CLEANED for n in range(1, N + 1)}
        s.next.doing = Doing.SWAPPING

    @action("LDR-14", who="cleaner")
    def swap_log(s, n: New) -> None:
        """The last one first."""
        require(s.doing == Doing.SWAPPING, s.new[n] == Stage.CLEANED)
        require(all(s.new[m] == Stage.SWAP for m in range(1, N + 1) if m > n))
        s.next.new[n] = Stage.HALF

    @action("LDR-14", who="cleaner")
    def swap_indexes(s, n: New) -> None:
        require(s.doing == Doing.SWAPPING, s.new[n] == Stage.HALF)
        s.next.new[n] = Stage.SWAP
        if n == 1:
            s.next.doing = Doing.RETIRING

    @action("LDR-14", who="cleaner")
    def retire(s, o: Old) -> None:
        """To .deleted."""
        require(s.doing == Doing.RETIRING, s.old[o])
        s.next.old[o] = False

    @action("LDR-14", who="cleaner")
    def begin_naming(s) -> None:
        require(s.doing == Doing.RETIRING, all(not s.old[o] for o in Old))
        s.next.doing = Doing.NAMING

    @action("LDR-14", who="cleaner")
    def name(s, n: New) -> None:
        """The first one first."""
        require(s.doing == Doing.NAMING, s.new[n] == Stage.SWAP)
        require(all(s.new[m] == Stage.LIVE for m in range(1, N + 1) if m < n))
        s.next.new[n] = Stage.LIVE
        if n == N:
            s.next.doing = Doing.DONE

    @action("LDR-15", who="power")
    def crash(s) -> None:
        require(s.doing not in (Doing.WRITING, Doing.DONE, Doing.DOWN, Doing.LOADED))
        s.next.doing = Doing.DOWN

    @action("LDR-2", who="loader")
    def start(s) -> None:
        require(s.doing == Doing.DOWN)
        s.next.doing = Doing.DROPPING

    @define
    def unfinished(s, n: New) -> bool:
        """It is .swap, at least its .log, and some .cleaned is not above it."""
        return s.new[n] in (Stage.HALF, Stage.SWAP) and any(
            s.new[m] in (Stage.CLEANED, Stage.HALF) for m in range(1, N + 1) if m <= n
        )

    @action("LDR-2", who="loader", fair="weak")
    def drop_unfinished(s, n: New) -> None:
        """Its .swap files; what is .cleaned of it stays a moment longer."""
        require(s.doing == Doing.DROPPING, s.unfinished(n))
        s.next.new[n] = Stage.CLEANED if s.new[n] == Stage.HALF else Stage.NONE

    @action("LDR-1", who="loader", fair="weak")
    def begin_tidying(s) -> None:
        require(s.doing == Doing.DROPPING, all(not s.unfinished(n) for n in range(1, N + 1)))
        s.next.doing = Doing.TIDYING

    @action("LDR-1", who="loader", fair="weak")
    def tidy(s, n: New) -> None:
        """Remove its .cleaned files."""
        require(s.doing == Doing.TIDYING, s.new[n] == Stage.CLEANED)
        s.next.new[n] = Stage.NONE

    @action("LDR-3", who="loader", fair="weak")
    def begin_replacing(s) -> None:
        require(s.doing == Doing.TIDYING, all(s.new[n] != Stage.CLEANED for n in range(1, N + 1)))
        s.next.doing = Doing.REPLACING

    @define
    def swaps_left(s) -> bool:
        return any(s.new[n] == Stage.SWAP for n in range(1, N + 1))

    @define
    def within(s, n: New) -> bool:
        """It has its name, and lies between two that are .swap."""
        return (
            s.new[n] == Stage.LIVE
            and any(s.new[m] == Stage.SWAP for m in range(1, N + 1) if m < n)
            and any(s.new[m] == Stage.SWAP for m in range(1, N + 1) if m > n)
        )

    @action("LDR-3", who="loader", fair="weak")
    def remove_replaced(s, o: Old) -> None:
        require(s.doing == Doing.REPLACING, s.swaps_left(), s.old[o], s.covered[o])
        s.next.old[o] = False

    @action("LDR-4", who="loader", fair="weak")
    def begin_renaming(s) -> None:
        """The second pass has removed what lies between two .swap, new or old."""
        require(s.doing == Doing.REPLACING)
        require(all(not s.old[o] or not s.covered[o] for o in Old) or not s.swaps_left())
        s.next.new = {n: Stage.NONE if s.within(n) else s.new[n] for n in range(1, N + 1)}
        s.next.doing = Doing.RENAMING

    @action("LDR-4", who="loader", fair="weak")
    def rename(s, n: New) -> None:
        require(s.doing == Doing.RENAMING, s.new[n] == Stage.SWAP)
        require(not IN_ORDER or all(s.new[m] == Stage.LIVE for m in range(1, N + 1) if m < n))
        s.next.new[n] = Stage.LIVE

    @action("LDR-4", who="loader", fair="weak")
    def finish(s) -> None:
        require(s.doing == Doing.RENAMING, not s.swaps_left())
        s.next.doing = Doing.LOADED

    @define
    def all_new(s) -> bool:
        return all(s.new[n] == Stage.LIVE for n in range(1, N + 1))

    @define
    def no_new(s) -> bool:
        return all(s.new[n] == Stage.NONE for n in range(1, N + 1))

    @invariant("LDR-14", "LDR-15")
    def the_old_ones_or_the_new_ones(s) -> bool:
        return s.doing not in (Doing.LOADED, Doing.DONE) or s.all_new() or (s.no_new() and all(s.old[o] for o in Old))

    @invariant("LDR-14", "LDR-3")
    def nothing_is_there_twice(s, o: Old) -> bool:
        return s.doing not in (Doing.LOADED, Doing.DONE) or not (s.all_new() and s.old[o] and s.covered[o])

    @step("LDR-15")
    def one_old_one_at_a_time(s, o: Old, p: Old) -> bool:
        """A crash may come between any two removals."""
        alone = o == p or s.next.old[o] == s.old[o] or s.next.old[p] == s.old[p]
        return s.doing == Doing.WRITING or alone

    @step("LDR-15")
    def one_new_one_at_a_time(s, n: New, m: New) -> bool:
        """A crash may come between any two renames, or removals of what is not finished."""
        alone = n == m or s.next.new[n] == s.new[n] or s.next.new[m] == s.new[m]
        return s.doing in (Doing.WRITING, Doing.REPLACING) or alone

    @step("LDR-14")
    def what_is_done_stays(s) -> bool:
        return s.doing not in (Doing.DONE, Doing.LOADED) or s.next.doing == s.doing

    @step("LDR-14")
    def one_replacement(s) -> bool:
        return s.next.doing != Doing.SWAPPING or s.doing in (Doing.WRITING, Doing.SWAPPING)

    @step("LDR-3")
    def a_load_removes_what_is_covered(s, o: Old) -> bool:
        return s.doing == Doing.RETIRING or s.covered[o] or s.next.old[o] or not s.old[o]

    @leads_to("LDR-1", "LDR-2", "LDR-3", "LDR-4")
    def a_load_ends(s) -> tuple[bool, bool]:
        """Unless it is crashed."""
        return s.doing == Doing.DROPPING, s.doing in (Doing.LOADED, Doing.DOWN)

    @define
    def complete(s, n: New) -> bool:
        return s.new[n] in (Stage.SWAP, Stage.LIVE)

    @lemma("LDR-14")
    def old_ones_go_when_the_new_ones_are_complete(s, o: Old, n: New) -> bool:
        return s.doing == Doing.WRITING or s.old[o] or s.complete(n)

    @lemma("LDR-14")
    def named_when_the_old_ones_are_gone(s, o: Old, n: New) -> bool:
        return s.new[n] != Stage.LIVE or not s.old[o] or not s.covered[o]

    @lemma("LDR-14")
    def named_when_the_new_ones_are_complete(s, n: New, m: New) -> bool:
        return s.new[n] != Stage.LIVE or s.complete(m)

    @lemma("LDR-14")
    def named_in_order(s, n: New, m: New) -> bool:
        return not IN_ORDER or not (m < n and s.new[n] == Stage.LIVE) or s.new[m] == Stage.LIVE

    @lemma("LDR-14")
    def swapped_from_the_last_on(s, n: New, m: New) -> bool:
        """Below what is not complete nothing is."""
        begun = s.new[n] in (Stage.CLEANED, Stage.HALF)
        return not (begun and m < n) or s.new[m] in (Stage.CLEANED, Stage.NONE)

    @lemma("LDR-2")
    def dropped_only_beside_what_is_cleaned(s, n: New, m: New) -> bool:
        left = s.new[m] in (Stage.HALF, Stage.SWAP)
        return (
            s.doing == Doing.WRITING or not (s.new[n] == Stage.NONE and left) or s.new[1] in (Stage.CLEANED, Stage.HALF)
        )

    @lemma("LDR-2")
    def after_the_first_pass_all_or_none(s, n: New, m: New) -> bool:
        later = s.doing in (Doing.TIDYING, Doing.REPLACING, Doing.RENAMING)
        return not later or (s.new[n] != Stage.HALF and (s.complete(n) or s.new[m] != Stage.SWAP))

    @lemma("LDR-14", "LDR-1", "LDR-4")
    def how_far_it_has_come(s, n: New, o: Old) -> bool:
        return (
            (s.doing != Doing.WRITING or s.new[n] == Stage.NONE)
            and (s.doing != Doing.SWAPPING or (s.old[o] and s.new[n] not in (Stage.NONE, Stage.LIVE)))
            and (s.doing != Doing.RETIRING or s.new[n] == Stage.SWAP)
            and (s.doing != Doing.NAMING or (not s.old[o] and s.complete(n)))
            and (s.doing != Doing.DONE or (not s.old[o] and s.new[n] == Stage.LIVE))
            and (s.doing not in (Doing.REPLACING, Doing.RENAMING) or s.new[n] != Stage.CLEANED)
            and (s.doing != Doing.RENAMING or s.new[n] != Stage.SWAP or not s.old[o] or not s.covered[o])
        )

    @lemma("LDR-14")
    def swapping_goes_down(s, n: New, m: New) -> bool:
        """While the cleaner is at it, what is above a complete one is complete."""
        return (
            s.doing != Doing.SWAPPING or not (m > n and s.new[n] in (Stage.HALF, Stage.SWAP)) or s.new[m] == Stage.SWAP
        )

    @lemma("LDR-14")
    def naming_goes_up(s, n: New, m: New) -> bool:
        return s.doing != Doing.NAMING or not (m < n and s.new[n] == Stage.LIVE) or s.new[m] == Stage.LIVE

    @witness
    def replaced_without_a_crash(s) -> bool:
        return s.doing == Doing.DONE

    @witness
    def crashed_between_two_that_are_dropped(s) -> bool:
        dropped = s.new[N] == Stage.NONE
        return s.doing == Doing.DOWN and dropped and any(s.new[n] == Stage.HALF for n in range(1, N + 1))

    @witness
    def loaded_with_the_old_ones(s) -> bool:
        return s.doing == Doing.LOADED and s.no_new()

    @witness
    def loaded_with_the_new_ones(s, o: Old) -> bool:
        return s.doing == Doing.LOADED and s.all_new() and s.old[o]


MODELS = [
    Expectation(
        Replacement, sizes={"N": 3, "Old": 2, "IN_ORDER": True}, distinct=470, generated=839, depth=22, deadlock=True
    ),
    Expectation(
        Replacement, sizes={"N": 2, "Old": 3, "IN_ORDER": False}, distinct=1020, generated=1846, depth=20, deadlock=True
    ),
    Expectation(
        Replacement, sizes={"N": 3, "Old": 1, "IN_ORDER": True}, distinct=190, generated=338, depth=21, deadlock=True
    ),
]
