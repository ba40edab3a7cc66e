"""Produce requests that wait for the high watermark, while it rises, the broker ceases to lead, and their time passes:
each in a thread of its own.

A request thread looks whether its request is done, puts it into the list of those that wait, looks again, and arms the
timer. Whoever changes the partition reads that list behind the change, and looks at whom it has found there. Between
any two of these steps any other thread may go on.

What was simplified. There is one partition, and each request has one record in it. The lock that a request thread holds
while it looks, enters the list and looks again is left out: without it there are more interleavings. A broker that has
ceased to lead does not lead again. Two changes behind each other may be found in one reading of the list.

Source: DelayedOperationPurgatory, DelayedOperation and DelayedProduce, Kafka 4.3.0.
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
    require,
    step,
    witness,
)


class Request(Sort):
    """A produce request with acks=all."""


L = Size("L")
"""The most records."""
SECOND_LOOK = Flag("SECOND_LOOK")
"""A request thread looks again when its request is in the list, as Kafka's does."""
COMPLETED = Flag("COMPLETED")
"""Who completes a request looks whether it is completed, as Kafka's do."""
Offset = Annotated[int, Range(0, L)]


class Stage(enum.Enum):
    """How far the thread of a request is."""

    NEW = "NEW"
    APPENDED = "APPENDED"
    LOOKED = "LOOKED"
    LISTED = "LISTED"
    TIMED = "TIMED"


class Answer(enum.Enum):
    NONE = "NONE"
    DONE = "DONE"
    NOT_LEADER = "NOT_LEADER"
    TIMED_OUT = "TIMED_OUT"


class Waits(Model):
    """`required` is the end of a request's record. A change is `unseen` until somebody reads the list; whom that one
    found is `found`. `twice` have been answered a second time."""

    end: Offset
    high: Offset
    resigned: bool
    stage: dict[Request, Stage]
    required: dict[Request, Offset]
    answer: dict[Request, Answer]
    twice: set[Request]
    unseen: bool
    found: set[Request]

    @define
    def is_listed(s, r: Request) -> bool:
        return s.stage[r] == Stage.LISTED or s.stage[r] == Stage.TIMED

    @define
    def is_done(s, r: Request) -> bool:
        return s.resigned or s.high >= s.required[r]

    @define
    def complete(s, r: Request, timed_out: bool) -> None:
        if s.answer[r] == Answer.NONE or not COMPLETED:
            if s.answer[r] != Answer.NONE:
                s.next.twice = s.twice | {r}
            if timed_out:
                s.next.answer[r] = Answer.TIMED_OUT
            elif s.resigned:
                s.next.answer[r] = Answer.NOT_LEADER
            else:
                s.next.answer[r] = Answer.DONE

    @action("RMG-6", who="request thread")
    def append(s, r: Request) -> None:
        require(s.stage[r] == Stage.NEW, not s.resigned, s.end < L)
        s.next.end = s.end + 1
        s.next.required[r] = s.end + 1
        s.next.stage[r] = Stage.APPENDED

    @action("RMG-7", "RMG-26", who="request thread")
    def look(s, r: Request) -> None:
        require(s.stage[r] == Stage.APPENDED)
        s.next.stage[r] = Stage.LOOKED
        if s.is_done(r):
            s.complete(r, False)

    @action("RMG-26", who="request thread")
    def enter(s, r: Request) -> None:
        require(s.stage[r] == Stage.LOOKED, s.answer[r] == Answer.NONE)
        s.next.stage[r] = Stage.LISTED

    # It is in the list by now: a change that it does not see here finds it there.
    @action("RMG-7", "RMG-26", who="request thread")
    def look_again(s, r: Request) -> None:
        require(s.stage[r] == Stage.LISTED)
        s.next.stage[r] = Stage.TIMED
        if SECOND_LOOK and s.is_done(r):
            s.complete(r, False)

    @action("RMG-8", who="timer")
    def expire(s, r: Request) -> None:
        require(s.stage[r] == Stage.TIMED, s.answer[r] == Answer.NONE or (not COMPLETED and r not in s.twice))
        s.complete(r, True)

    @action("RMG-9", who="follower's fetch")
    def rise(s) -> None:
        require(not s.resigned, s.high < s.end)
        s.next.high = s.high + 1
        s.next.unseen = True

    @action("RMG-10", who="metadata")
    def resign(s) -> None:
        require(not s.resigned)
        s.next.resigned = True
        s.next.unseen = True

    @action("RMG-9", who="whoever made the change")
    def read_the_list(s) -> None:
        require(s.unseen, s.found == set())
        s.next.unseen = False
        s.next.found = {r for r in Request if s.is_listed(r)}

    @action("RMG-7", "RMG-9", who="whoever made the change")
    def look_at(s, r: Request) -> None:
        require(r in s.found)
        s.next.found = s.found - {r}
        if s.is_done(r):
            s.complete(r, False)

    @invariant("RMG-7")
    def what_is_acknowledged_is_replicated(s, r: Request) -> bool:
        return s.answer[r] != Answer.DONE or (s.stage[r] != Stage.NEW and s.high >= s.required[r])

    @invariant("RMG-26")
    def nobody_is_answered_twice(s, r: Request) -> bool:
        return r not in s.twice

    @invariant("RMG-9", "RMG-10", "RMG-26")
    def nobody_is_forgotten(s, r: Request) -> bool:
        """Who waits although it is done is about to be looked at."""
        return s.stage[r] != Stage.TIMED or s.answer[r] != Answer.NONE or not s.is_done(r) or s.unseen or r in s.found

    @invariant("RMG-6")
    def who_has_no_record_is_not_answered(s, r: Request) -> bool:
        return s.stage[r] != Stage.NEW or s.answer[r] == Answer.NONE

    @step("RMG-8", "RMG-26")
    def an_answer_stays(s, r: Request) -> bool:
        return s.answer[r] == Answer.NONE or s.next.answer[r] == s.answer[r]

    @witness
    def found_in_the_list(s, r: Request) -> bool:
        return s.stage[r] == Stage.TIMED and r in s.found and s.answer[r] == Answer.NONE and s.is_done(r)

    @witness
    def rose_between_its_looks(s, r: Request) -> bool:
        """Whoever read the list did not find it there."""
        return s.stage[r] == Stage.LISTED and s.is_done(r) and not s.resigned and not s.unseen and r not in s.found

    @witness
    def timed_out_and_replicated(s, r: Request) -> bool:
        """Its time passed before anybody looked."""
        return s.answer[r] == Answer.TIMED_OUT and s.high >= s.required[r] and not s.resigned

    @witness
    def not_leader_any_more(s, r: Request) -> bool:
        return s.answer[r] == Answer.NOT_LEADER and s.high >= s.required[r] and s.required[r] > 0


AS_IN_KAFKA = {"SECOND_LOOK": True, "COMPLETED": True}

MODELS = [
    Expectation(
        Waits,
        sizes={"Request": 2, "L": 2, **AS_IN_KAFKA},
        distinct=3_261,
        generated=7_757,
        depth=18,
        deadlock=True,
        note="everybody is answered",
    ),
]
