"""Who may clean a partition, and how others take it away: cleaner threads, retention, truncation and moves, deletion,
and changes of policy, with every interleaving of the steps that Kafka takes under separate locks.

Each action is what one thread does while it holds the manager's lock, so whatever Kafka decides in one hold and acts on
in another is two actions here: a deletion takes the log out of the map and only then aborts its cleaning; a policy is
changed and only then is the cleaning aborted; a failed cleaning is done and only then is its partition marked; a waiter
is signalled and only then looks again. Waiters are woken by signals alone: that Kafka's wait also ends by itself every
100 ms is not needed for anything that is claimed here.

Source: Kafka Internals, ch. 04, "The cleaning state machine" and "Choosing the filthiest log".
"""

from __future__ import annotations

import enum
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Model,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    leads_to,
    lemma,
    refines,
    require,
    step,
    witness,
)


class Partition(Sort):
    """A partition, whether or not it has a log at the moment."""


class Thread(Sort):
    """A cleaner thread."""


class User(Sort):
    """Any other thread that works on logs: retention, truncation, a move of directory, deletion, a change of policy."""


N = Size("N")
"""The most pauses of one partition at once."""
D = Size("D")
"""The most dirt that a log gathers."""
Pauses = Annotated[int, Range(0, N)]
Dirt = Annotated[int, Range(0, D)]


class Status(enum.Enum):
    FREE = 0
    IN_PROGRESS = 1
    ABORTED = 2
    PAUSED = 3


class Doing(enum.Enum):
    """What a user is at. "To" is before the call that may wait, "wait" in it, and the third word after it."""

    NOTHING = 0
    RETAINING = 1
    """deletes old segments of the partitions that it paused"""
    WAITS_TO_HOLD = 2
    HOLDING = 3
    """truncates a log, or moves it to another directory"""
    TO_DELETE = 4
    WAITS_TO_DELETE = 5
    DELETING = 6
    """removes the directory of a log that is no longer in the map"""
    TO_CHANGE = 7
    """has taken compact out of a log's policy"""
    WAITS_TO_CHANGE = 8


WAITING = (Doing.WAITS_TO_HOLD, Doing.WAITS_TO_DELETE, Doing.WAITS_TO_CHANGE)
AT_WORK = (Doing.RETAINING, Doing.HOLDING)


class Waits(enum.Enum):
    """Who waits on an aborted partition: a call that then keeps the pause, or one that gives it back at once."""

    NOBODY = 0
    TO_PAUSE = 1
    TO_ABORT = 2


class States(Model):
    """The manager alone, call by call: what the spec says, small enough that every call is compared in every state."""

    status: dict[Partition, Status]
    pauses: dict[Partition, Pauses]
    waits: dict[Partition, Waits]
    dirt: dict[Partition, Dirt]
    known: dict[Partition, bool]
    compact: dict[Partition, bool]
    uncleanable: dict[Partition, bool]

    @initial
    def start(s) -> None:
        s.next.known = {p: True for p in Partition}
        s.next.compact = {p: True for p in Partition}

    @define
    def free(s, p: Partition) -> bool:
        return s.status[p] == Status.FREE and s.known[p] and s.compact[p] and not s.uncleanable[p]

    @action("CLN-2", "CLN-3", "CLN-4", "CLN-24", who="cleaner thread")
    def grab(s, p: Partition) -> None:
        require(s.free(p), s.dirt[p] > 0, all(s.dirt[q] <= s.dirt[p] for q in Partition if s.free(q)))
        s.next.status[p] = Status.IN_PROGRESS

    @action("CLN-19", "CLN-24", who="cleaner thread")
    def take_deletable(s) -> None:
        s.next.status = {p: Status.IN_PROGRESS if s.free(p) else s.status[p] for p in Partition}

    @define
    def keeps(s, p: Partition) -> bool:
        """Once it is let go, it is paused for the one that waits."""
        return s.status[p] == Status.ABORTED and s.waits[p] == Waits.TO_PAUSE

    @action("CLN-15", "CLN-12", "CLN-13", who="cleaner thread")
    def done_cleaning(s, p: Partition, left: Dirt) -> None:
        """`left`: how dirty the log is now. What was written meanwhile is; if the cleaning was stopped, all is that
        was before."""
        require(s.status[p] in (Status.IN_PROGRESS, Status.ABORTED))
        require(s.status[p] == Status.IN_PROGRESS or s.dirt[p] <= left)
        s.next.status[p] = Status.PAUSED if s.keeps(p) else Status.FREE
        s.next.pauses[p] = 1 if s.keeps(p) else 0
        s.next.waits[p] = Waits.NOBODY
        s.next.dirt[p] = left

    @action("CLN-16", "CLN-12", "CLN-13", who="cleaner thread")
    def done_deleting(s, taken: set[Partition]) -> None:
        require(all(s.status[p] in (Status.IN_PROGRESS, Status.ABORTED) for p in Partition if p in taken))
        s.next.status = {
            p: (Status.PAUSED if s.keeps(p) else Status.FREE) if p in taken else s.status[p] for p in Partition
        }
        s.next.pauses = {p: (1 if s.keeps(p) else 0) if p in taken else s.pauses[p] for p in Partition}
        s.next.waits = {p: Waits.NOBODY if p in taken else s.waits[p] for p in Partition}

    @action("CLN-11", who="anybody")
    def abort_and_pause(s, p: Partition) -> None:
        require(s.status[p] != Status.ABORTED, s.pauses[p] < N)
        if s.status[p] == Status.IN_PROGRESS:
            s.next.status[p] = Status.ABORTED
            s.next.waits[p] = Waits.TO_PAUSE
        else:
            s.next.status[p] = Status.PAUSED
            s.next.pauses[p] = s.pauses[p] + 1

    @action("CLN-13", who="anybody")
    def abort(s, p: Partition) -> None:
        """What is not in progress is paused and resumed at once."""
        require(s.status[p] == Status.IN_PROGRESS)
        s.next.status[p] = Status.ABORTED
        s.next.waits[p] = Waits.TO_ABORT

    @action("CLN-14", who="anybody")
    def resume(s, held: set[Partition]) -> None:
        """In one hold of the lock."""
        require(all(s.status[p] == Status.PAUSED for p in Partition if p in held))
        s.next.pauses = {p: s.pauses[p] - 1 if p in held else s.pauses[p] for p in Partition}
        s.next.status = {p: Status.FREE if p in held and s.pauses[p] == 1 else s.status[p] for p in Partition}

    @action("CLN-18", who="retention")
    def pause_non_compacted(s) -> None:
        taken = {p for p in Partition if s.known[p] and not s.compact[p] and s.status[p] == Status.FREE}
        s.next.status = {p: Status.PAUSED if p in taken else s.status[p] for p in Partition}
        s.next.pauses = {p: 1 if p in taken else s.pauses[p] for p in Partition}

    @action("CLN-24", who="cleaner thread")
    def mark(s, p: Partition) -> None:
        s.next.uncleanable[p] = True

    @action("CLN-25", who="cleaner thread")
    def maintain(s) -> None:
        s.next.uncleanable = {p: s.uncleanable[p] and s.known[p] for p in Partition}

    @action("CLN-2", who="log manager")
    def forget(s, p: Partition) -> None:
        s.next.known[p] = False

    @action("CLN-2", who="log manager")
    def restore(s, p: Partition, new: bool) -> None:
        """The log as it was, or a new one."""
        s.next.known[p] = True
        if new:
            s.next.dirt[p] = 0

    @action("CLN-18", "CLN-19", who="operator")
    def change_policy(s, p: Partition) -> None:
        s.next.compact[p] = not s.compact[p]

    @action("CLN-3", who="producer")
    def soil(s, p: Partition) -> None:
        require(s.dirt[p] < D)
        s.next.dirt[p] = s.dirt[p] + 1

    @action("CLN-31", who="broker")
    def restart(s) -> None:
        """What was in memory is gone."""
        s.next.status = {p: Status.FREE for p in Partition}
        s.next.pauses = {p: 0 for p in Partition}
        s.next.waits = {p: Waits.NOBODY for p in Partition}
        s.next.uncleanable = {p: False for p in Partition}

    @invariant("CLN-1")
    def paused_is_counted(s, p: Partition) -> bool:
        return (s.status[p] == Status.PAUSED) == (s.pauses[p] > 0)

    @invariant("CLN-12")
    def aborted_is_waited_for(s, p: Partition) -> bool:
        return (s.status[p] == Status.ABORTED) == (s.waits[p] != Waits.NOBODY)

    @step("CLN-13", "CLN-12")
    def an_abort_leaves_no_pause(s, p: Partition) -> bool:
        return s.waits[p] != Waits.TO_ABORT or s.next.waits[p] == Waits.TO_ABORT or s.next.pauses[p] == 0

    @step("CLN-17", "CLN-11")
    def a_waiter_is_not_replaced(s, p: Partition) -> bool:
        return s.waits[p] == Waits.NOBODY or s.next.waits[p] in (s.waits[p], Waits.NOBODY)

    @step("CLN-2", "CLN-19", "CLN-24")
    def only_what_is_free_is_taken(s, p: Partition) -> bool:
        return s.status[p] == Status.IN_PROGRESS or s.next.status[p] != Status.IN_PROGRESS or s.free(p)

    @step("CLN-3", "CLN-4")
    def one_that_goes_alone_is_the_filthiest(s, p: Partition, q: Partition) -> bool:
        """All that are free are taken at once, or one that is dirty, none dirtier."""
        taken = s.status[p] != Status.IN_PROGRESS and s.next.status[p] == Status.IN_PROGRESS
        left = s.free(q) and s.next.status[q] == Status.FREE
        return not (taken and left) or (s.dirt[p] > 0 and s.dirt[q] <= s.dirt[p])

    @step("CLN-15")
    def dirt_goes_with_a_cleaning_that_was_not_stopped(s, p: Partition) -> bool:
        done = s.status[p] == Status.IN_PROGRESS and s.next.status[p] == Status.FREE
        new = s.next.known[p] and s.next.dirt[p] == 0
        return s.next.dirt[p] >= s.dirt[p] or done or new

    @step("CLN-2", "CLN-3", "CLN-24")
    def one_log_at_a_time(s, p: Partition, q: Partition) -> bool:
        """Comes or goes, changes its policy, grows or is cleaned, is marked."""
        marked = not s.uncleanable[p] and s.next.uncleanable[p] and not s.uncleanable[q] and s.next.uncleanable[q]
        return p == q or (
            (s.next.known[p] == s.known[p] or s.next.known[q] == s.known[q])
            and (s.next.compact[p] == s.compact[p] or s.next.compact[q] == s.compact[q])
            and (s.next.dirt[p] == s.dirt[p] or s.next.dirt[q] == s.dirt[q])
            and not marked
        )

    @step("CLN-14", "CLN-31")
    def pauses_come_and_go_one_by_one(s, p: Partition) -> bool:
        """Unless all is forgotten."""
        forgotten = all(s.next.status[q] == Status.FREE for q in Partition)
        return s.next.pauses[p] <= s.pauses[p] + 1 and (s.next.pauses[p] + 1 >= s.pauses[p] or forgotten)

    @witness
    def compacted_no_more(s, p: Partition) -> bool:
        return not s.compact[p] and s.uncleanable[p]

    @witness
    def paused_to_the_limit(s, p: Partition) -> bool:
        return s.pauses[p] == N

    @witness
    def aborted_without_a_log(s, p: Partition) -> bool:
        return s.status[p] == Status.ABORTED and not s.known[p]


class Cleaner(Model):
    """`held` are the partitions of which a user has asked for a pause and has not resumed it yet; `rank` numbers the
    holders of one partition, which is how their number can be spoken of at any size; `taken_ranks` are those in use.
    `grabbed` is how dirty a log was when it was grabbed, while it is cleaned, and 0 else; `dirt` is what has been
    written to it since."""

    status: dict[Partition, Status]
    pauses: dict[Partition, Pauses]
    dirt: dict[Partition, Dirt]
    known: dict[Partition, bool]
    compact: dict[Partition, bool]
    uncleanable: dict[Partition, bool]
    cleaning: dict[Thread, Partition | None]
    deleting: dict[Thread, set[Partition]]
    failed: dict[Thread, Partition | None]
    doing: dict[User, Doing]
    target: dict[User, Partition | None]
    held: dict[User, set[Partition]]
    signalled: dict[User, bool]
    quiet: bool
    grabbed: dict[Partition, Dirt]
    rank: dict[User, dict[Partition, Pauses]]
    taken_ranks: dict[Partition, set[Pauses]]
    ghosts = ("rank", "taken_ranks")

    @initial
    def start(s) -> None:
        s.next.known = {p: True for p in Partition}
        s.next.compact = {p: True for p in Partition}

    @define
    def idle(s, t: Thread) -> bool:
        return s.cleaning[t] is None and s.failed[t] is None and all(p not in s.deleting[t] for p in Partition)

    @define
    def free(s, p: Partition) -> bool:
        """A cleaner thread may take it."""
        return s.status[p] == Status.FREE and s.known[p] and s.compact[p] and not s.uncleanable[p]

    # cleaner threads

    @action("CLN-2", "CLN-3", "CLN-4", "CLN-24", who="cleaner thread")
    def grab_filthiest(s, t: Thread, p: Partition) -> None:
        require(s.idle(t), s.free(p), s.dirt[p] > 0)
        require(all(s.dirt[q] <= s.dirt[p] for q in Partition if s.free(q)))
        s.next.status[p] = Status.IN_PROGRESS
        s.next.dirt[p] = 0
        s.next.grabbed[p] = s.dirt[p]
        s.next.cleaning[t] = p

    @define
    def done(s, p: Partition) -> None:
        """The end of work on p: asked to stop, the cleaner leaves a pause behind and signals all who wait."""
        if s.status[p] == Status.IN_PROGRESS:
            s.next.status[p] = Status.FREE
        else:
            s.next.status[p] = Status.PAUSED
            s.next.pauses[p] = 1
            s.next.signalled = {u: s.signalled[u] or s.doing[u] in WAITING for u in User}

    @action("CLN-15", "CLN-12", "CLN-17", who="cleaner thread", fair="weak", per=("t",))
    def finish_cleaning(s, t: Thread, p: Partition) -> None:
        """The log is clean, or the thread has noticed that it is to stop."""
        require(s.cleaning[t] == p)
        s.done(p)
        if s.status[p] == Status.ABORTED:
            s.next.dirt[p] = D
        s.next.grabbed[p] = 0
        s.next.cleaning[t] = None

    @action("CLN-15", "CLN-24", who="cleaner thread")
    def fail_cleaning(s, t: Thread, p: Partition) -> None:
        """An unexpected exception: first the partition is done, later it is marked."""
        require(s.cleaning[t] == p)
        s.done(p)
        s.next.dirt[p] = D
        s.next.grabbed[p] = 0
        s.next.cleaning[t] = None
        s.next.failed[t] = p

    @action("CLN-24", who="cleaner thread")
    def mark_uncleanable(s, t: Thread, p: Partition) -> None:
        require(s.failed[t] == p)
        s.next.uncleanable[p] = True
        s.next.failed[t] = None

    @action("CLN-25", who="cleaner thread")
    def maintain_uncleanable(s) -> None:
        require(any(s.uncleanable[p] and not s.known[p] for p in Partition))
        s.next.uncleanable = {p: s.uncleanable[p] and s.known[p] for p in Partition}

    @action("CLN-19", "CLN-24", who="cleaner thread")
    def take_deletable(s, t: Thread) -> None:
        require(s.idle(t), any(s.free(p) for p in Partition))
        s.next.deleting[t] = {p for p in Partition if s.free(p)}
        s.next.status = {p: Status.IN_PROGRESS if s.free(p) else s.status[p] for p in Partition}

    @action("CLN-16", "CLN-12", who="cleaner thread", fair="weak", per=("t",))
    def done_deleting(s, t: Thread) -> None:
        require(any(p in s.deleting[t] for p in Partition))
        stopped = {p for p in Partition if p in s.deleting[t] and s.status[p] == Status.ABORTED}
        s.next.status = {
            p: Status.PAUSED if p in stopped else Status.FREE if p in s.deleting[t] else s.status[p] for p in Partition
        }
        s.next.pauses = {p: 1 if p in stopped else s.pauses[p] for p in Partition}
        if any(p in stopped for p in Partition):
            s.next.signalled = {u: s.signalled[u] or s.doing[u] in WAITING for u in User}
        s.next.deleting[t] = {p for p in Partition if False}

    # pausing and resuming, as all users do it

    @define
    def abort(s, u: User, p: Partition) -> None:
        """What is in progress is to stop; the caller waits for a pause of its own."""
        s.next.status[p] = Status.ABORTED
        s.next.held[u] = s.held[u] | {p}
        s.next.rank[u][p] = 0
        s.next.taken_ranks[p] = s.taken_ranks[p] | {0}

    @define
    def ask(s, u: User, p: Partition) -> None:
        """Abort-and-pause: of what is in progress the caller must wait for the end. Refused if another one does."""
        require(s.status[p] != Status.ABORTED, s.pauses[p] < N)
        if s.status[p] == Status.IN_PROGRESS:
            s.abort(u, p)
        else:
            s.next.status[p] = Status.PAUSED
            s.next.pauses[p] = s.pauses[p] + 1
            s.next.held[u] = s.held[u] | {p}
            s.next.rank[u][p] = s.pauses[p]
            s.next.taken_ranks[p] = s.taken_ranks[p] | {s.pauses[p]}

    @define
    def resume(s, u: User) -> None:
        """Undo the user's pauses, in one hold of the lock. The highest holder takes the rank of the one that leaves."""
        s.next.pauses = {p: s.pauses[p] - 1 if p in s.held[u] else s.pauses[p] for p in Partition}
        s.next.status = {p: Status.FREE if p in s.held[u] and s.pauses[p] == 1 else s.status[p] for p in Partition}
        s.next.held[u] = {p for p in Partition if False}
        s.next.rank = {
            v: {
                p: s.rank[u][p] if p in s.held[u] and s.rank[v][p] == s.pauses[p] - 1 else s.rank[v][p]
                for p in Partition
            }
            for v in User
        }
        s.next.taken_ranks = {
            p: s.taken_ranks[p] - {s.pauses[p] - 1} if p in s.held[u] else s.taken_ranks[p] for p in Partition
        }

    @define
    def end(s, u: User) -> None:
        s.next.doing[u] = Doing.NOTHING
        s.next.target[u] = None

    # retention

    @action("CLN-18", who="retention")
    def start_retention(s, u: User) -> None:
        require(not s.quiet, s.doing[u] == Doing.NOTHING)
        taken = {p for p in Partition if s.known[p] and not s.compact[p] and s.status[p] == Status.FREE}
        require(any(p in taken for p in Partition))
        s.next.doing[u] = Doing.RETAINING
        s.next.held[u] = taken
        s.next.status = {p: Status.PAUSED if p in taken else s.status[p] for p in Partition}
        s.next.pauses = {p: 1 if p in taken else s.pauses[p] for p in Partition}
        s.next.rank[u] = {p: 0 if p in taken else s.rank[u][p] for p in Partition}
        s.next.taken_ranks = {p: s.taken_ranks[p] | {0} if p in taken else s.taken_ranks[p] for p in Partition}

    @action("CLN-14", "CLN-18", "CLN-33", who="retention", fair="weak", per=("u",))
    def end_retention(s, u: User) -> None:
        require(s.doing[u] == Doing.RETAINING)
        s.resume(u)
        s.next.doing[u] = Doing.NOTHING

    # truncation, and moving to another directory

    @action("CLN-11", "CLN-33", who="truncation or move")
    def start_holding(s, u: User, p: Partition) -> None:
        """If the call is refused (another user waits), truncation fails before it has begun: nothing to undo."""
        require(not s.quiet, s.doing[u] == Doing.NOTHING, s.known[p])
        s.ask(u, p)
        s.next.target[u] = p
        s.next.doing[u] = Doing.WAITS_TO_HOLD if s.status[p] == Status.IN_PROGRESS else Doing.HOLDING

    @action("CLN-14", "CLN-33", who="truncation or move", fair="weak", per=("u",))
    def end_holding(s, u: User) -> None:
        """The work is done, or has failed: the pause is undone on either way."""
        require(s.doing[u] == Doing.HOLDING)
        s.resume(u)
        s.end(u)

    # deletion

    @action("CLN-33", who="deletion")
    def start_deletion(s, u: User, p: Partition) -> None:
        """The log leaves the map; its cleaning may be under way."""
        require(not s.quiet, s.doing[u] == Doing.NOTHING, s.known[p])
        s.next.known[p] = False
        s.next.target[u] = p
        s.next.doing[u] = Doing.TO_DELETE

    @action("CLN-13", "CLN-33", who="deletion", fair="weak", per=("u",))
    def abort_to_delete(s, u: User, p: Partition) -> None:
        """Abort the cleaning. What need not wait pauses and resumes at once. Refused, the deletion ends in an error."""
        require(s.doing[u] == Doing.TO_DELETE, s.target[u] == p)
        if s.status[p] == Status.IN_PROGRESS:
            s.abort(u, p)
            s.next.doing[u] = Doing.WAITS_TO_DELETE
        elif s.status[p] == Status.ABORTED:
            s.end(u)
        else:
            s.next.doing[u] = Doing.DELETING

    @action("CLN-33", who="deletion", fair="weak", per=("u",))
    def end_deletion(s, u: User) -> None:
        require(s.doing[u] == Doing.DELETING)
        s.end(u)

    @action("CLN-2", who="log manager")
    def create(s, p: Partition) -> None:
        """A new log for a partition whose deletion has ended."""
        require(not s.known[p])
        require(
            all(
                s.target[u] != p for u in User if s.doing[u] in (Doing.TO_DELETE, Doing.WAITS_TO_DELETE, Doing.DELETING)
            )
        )
        s.next.known[p] = True
        s.next.dirt[p] = 0

    # changes of policy

    @action("CLN-18", who="operator")
    def make_compact(s, p: Partition) -> None:
        """Retention may be at work on the log."""
        require(not s.compact[p])
        s.next.compact[p] = True

    @action("CLN-33", who="operator")
    def drop_compact(s, u: User, p: Partition) -> None:
        require(not s.quiet, s.doing[u] == Doing.NOTHING, s.known[p], s.compact[p])
        s.next.compact[p] = False
        s.next.target[u] = p
        s.next.doing[u] = Doing.TO_CHANGE

    @action("CLN-13", "CLN-33", who="operator", fair="weak", per=("u",))
    def abort_to_change(s, u: User, p: Partition) -> None:
        require(s.doing[u] == Doing.TO_CHANGE, s.target[u] == p)
        if s.status[p] == Status.IN_PROGRESS:
            s.abort(u, p)
            s.next.doing[u] = Doing.WAITS_TO_CHANGE
        else:
            s.end(u)

    # waiting

    @action("CLN-12", "CLN-13", who="waiter", fair="weak", per=("u",))
    def wake(s, u: User, p: Partition) -> None:
        """A signalled waiter looks again, and goes on if its partition is paused; an abort resumes first."""
        require(s.doing[u] in WAITING, s.signalled[u], s.target[u] == p)
        s.next.signalled[u] = False
        if s.status[p] == Status.PAUSED:
            if s.doing[u] == Doing.WAITS_TO_HOLD:
                s.next.doing[u] = Doing.HOLDING
            else:
                s.resume(u)
                if s.doing[u] == Doing.WAITS_TO_DELETE:
                    s.next.doing[u] = Doing.DELETING
                else:
                    s.end(u)

    # the rest of the world

    @action("CLN-3", who="producer")
    def write(s, p: Partition) -> None:
        require(s.known[p], s.dirt[p] < D)
        s.next.dirt[p] = s.dirt[p] + 1

    @action("CLN-23", who="the rest of the world")
    def calm_down(s) -> None:
        """From now on nobody begins anything new."""
        require(not s.quiet)
        s.next.quiet = True

    # what the manager sees of it

    @refines(States, "CLN-1", "CLN-11", "CLN-14", "CLN-15", "CLN-16")
    def manager(s) -> States:
        """Call by call. An abort is a call that pauses, and one that resumes once its caller is awake. A log that is
        cleaned is as dirty as it was, until the cleaning is done."""
        return States.shown(
            status=s.status,
            pauses=s.pauses,
            waits={p: Waits.TO_PAUSE if s.status[p] == Status.ABORTED else Waits.NOBODY for p in Partition},
            dirt={p: s.grabbed[p] if s.grabbed[p] > 0 else s.dirt[p] for p in Partition},
            known=s.known,
            compact=s.compact,
            uncleanable=s.uncleanable,
        )

    # what must never be

    @define
    def worked_on(s, t: Thread, p: Partition) -> bool:
        return s.cleaning[t] == p or p in s.deleting[t]

    @invariant("CLN-20")
    def nobody_works_on_what_is_cleaned(s, t: Thread, p: Partition, u: User) -> bool:
        at_work = (s.doing[u] in AT_WORK and p in s.held[u]) or (s.doing[u] == Doing.DELETING and s.target[u] == p)
        return not (s.worked_on(t, p) and at_work)

    @invariant("CLN-20")
    def one_thread_a_partition(s, t: Thread, v: Thread, p: Partition) -> bool:
        return not (s.worked_on(t, p) and s.worked_on(v, p)) or (t == v)

    @invariant("CLN-1", "CLN-15", "CLN-16")
    def in_progress_is_worked_on(s, p: Partition) -> bool:
        """The state says whether a cleaner thread has the partition."""
        return (s.status[p] in (Status.IN_PROGRESS, Status.ABORTED)) == any(s.worked_on(t, p) for t in Thread)

    @invariant("CLN-1")
    def paused_is_counted(s, p: Partition) -> bool:
        return (s.status[p] == Status.PAUSED) == (s.pauses[p] > 0)

    @invariant("CLN-12")
    def no_waiter_is_forgotten(s, u: User, p: Partition) -> bool:
        """Whoever waits, waits for a cleaner that will signal, or has been signalled and will find it paused."""
        return not (s.doing[u] in WAITING and s.target[u] == p) or (
            s.status[p] == Status.ABORTED or (s.status[p] == Status.PAUSED and s.signalled[u])
        )

    @invariant("CLN-11", "CLN-12")
    def one_waiter_a_partition(s, u: User, v: User, p: Partition) -> bool:
        waits = s.status[p] == Status.ABORTED and p in s.held[u] and p in s.held[v]
        return not (waits) or (u == v)

    @invariant("CLN-14", "CLN-18", "CLN-21")
    def no_resume_is_refused(s, u: User, p: Partition) -> bool:
        """Whoever will resume finds the partition paused."""
        return not (s.doing[u] in AT_WORK and p in s.held[u]) or (s.status[p] == Status.PAUSED)

    @invariant("CLN-21", "CLN-23")
    def paused_for_somebody(s, p: Partition) -> bool:
        """No partition stays paused, or aborted, that nobody holds."""
        return s.status[p] not in (Status.PAUSED, Status.ABORTED) or (any(p in s.held[u] for u in User))

    @invariant("CLN-33")
    def dropped_policy_stops_cleaning(s, t: Thread, p: Partition) -> bool:
        """A log that is no longer compacted is not cleaned on undisturbed, once the change is through."""
        return not (s.worked_on(t, p) and s.status[p] == Status.IN_PROGRESS and s.known[p]) or (
            s.compact[p] or any(s.doing[u] == Doing.TO_CHANGE and s.target[u] == p for u in User)
        )

    @invariant("CLN-24", "CLN-2")
    def only_known_logs_are_taken(s, p: Partition, u: User) -> bool:
        """What is being deleted is not in the map, so no cleaner thread takes it up."""
        return not (s.doing[u] in (Doing.TO_DELETE, Doing.WAITS_TO_DELETE, Doing.DELETING) and s.target[u] == p) or (
            not s.known[p]
        )

    @step("CLN-1", "CLN-14")
    def states_move_as_they_may(s, p: Partition) -> bool:
        before, after = s.status[p], s.next.status[p]
        return (
            (after != Status.ABORTED and s.next.pauses[p] <= 1)
            if before == Status.FREE
            else after != Status.PAUSED
            if before == Status.IN_PROGRESS
            else (after == Status.ABORTED or (after == Status.PAUSED and s.next.pauses[p] == 1))
            if before == Status.ABORTED
            else (after == Status.PAUSED or (after == Status.FREE and s.pauses[p] == 1))
        )

    @step("CLN-4")
    def the_filthiest_goes_first(s, t: Thread, p: Partition, q: Partition) -> bool:
        grabbed = s.cleaning[t] is None and s.next.cleaning[t] == p
        return not (grabbed and s.free(q)) or (s.dirt[q] <= s.dirt[p])

    @step("CLN-2", "CLN-3", "CLN-19", "CLN-24")
    def only_what_may_be_is_taken(s, t: Thread, p: Partition) -> bool:
        taken = not s.worked_on(t, p) and (s.next.cleaning[t] == p or p in s.next.deleting[t])
        return not (taken) or (s.free(p) and (s.dirt[p] > 0 or p in s.next.deleting[t]))

    @invariant("CLN-20")
    def a_thread_does_one_thing(s, t: Thread, p: Partition) -> bool:
        """It has marked what it failed on before it takes up anything else."""
        return (s.cleaning[t] is None or s.failed[t] is None) and (
            p not in s.deleting[t] or (s.cleaning[t] is None and s.failed[t] is None)
        )

    @invariant("CLN-18")
    def retention_has_something_to_do(s, u: User) -> bool:
        return s.doing[u] != Doing.RETAINING or any(p in s.held[u] for p in Partition)

    @invariant("CLN-33")
    def who_works_on_one_log_has_it_as_target(s, u: User) -> bool:
        return (s.target[u] is None) == (s.doing[u] in (Doing.NOTHING, Doing.RETAINING))

    @invariant("CLN-12")
    def only_waiters_are_signalled(s, u: User) -> bool:
        return not s.signalled[u] or s.doing[u] in WAITING

    @step("CLN-23")
    def nothing_begins_any_more(s, u: User) -> bool:
        return not s.quiet or s.doing[u] != Doing.NOTHING or s.next.doing[u] == Doing.NOTHING

    @step("CLN-11", "CLN-33")
    def work_begins_on_a_log_that_is_there(s, u: User, p: Partition) -> bool:
        """A change of policy, on one that is compacted."""
        begins = s.doing[u] == Doing.NOTHING and s.next.target[u] == p
        return not begins or (s.known[p] and (s.compact[p] or s.next.doing[u] != Doing.TO_CHANGE))

    @step("CLN-3")
    def dirt_comes_of_writing_and_goes_with_cleaning(s, p: Partition) -> bool:
        """A new log is clean, and one whose cleaning came to nothing is dirty again."""
        taken = any(s.cleaning[t] != p and s.next.cleaning[t] == p for t in Thread)
        left = any(s.cleaning[t] == p and s.next.cleaning[t] != p for t in Thread)
        created = not s.known[p] and s.next.known[p]
        return (
            (s.next.dirt[p] <= s.dirt[p] or s.known[p] or left)
            and (s.next.dirt[p] >= s.dirt[p] or taken or created)
            and (s.next.dirt[p] == 0 or not (taken or created))
        )

    @step("CLN-15", "CLN-17")
    def a_cleaning_that_was_stopped_leaves_all_dirty(s, t: Thread, p: Partition) -> bool:
        """So does one that failed."""
        left = s.cleaning[t] == p and s.next.cleaning[t] != p
        came_to_nothing = s.status[p] == Status.ABORTED or s.next.failed[t] == p
        return not (left and came_to_nothing) or s.next.dirt[p] == D

    @step("CLN-24")
    def who_failed_marks_the_log(s, p: Partition) -> bool:
        """Once, and nobody else does."""
        marked = any(s.failed[t] == p and s.next.failed[t] is None for t in Thread)
        return s.uncleanable[p] or not s.next.uncleanable[p] or marked

    # what must come about

    @leads_to("CLN-33")
    def a_deletion_or_a_change_ends(s, u: User) -> tuple[bool, bool]:
        return s.doing[u] in (Doing.TO_DELETE, Doing.TO_CHANGE), s.doing[u] == Doing.NOTHING

    @leads_to("CLN-22", "CLN-12")
    def a_waiter_returns(s, u: User) -> tuple[bool, bool]:
        """Fair: each cleaner thread finishes what it has, each signalled waiter runs."""
        return s.doing[u] in WAITING, s.doing[u] not in WAITING

    @leads_to("CLN-23", "CLN-21")
    def a_pause_ends(s, p: Partition) -> tuple[bool, bool]:
        """Once nobody begins anything new, and fair as above and each user finishes what it is at."""
        return s.quiet and s.status[p] == Status.PAUSED, s.status[p] == Status.FREE

    # what must be possible

    @witness
    def all_is_quiet(s) -> bool:
        return s.quiet

    @witness
    def paused_twice(s, p: Partition) -> bool:
        return s.pauses[p] >= 2

    @witness
    def aborted_while_deleting_segments(s, t: Thread, p: Partition) -> bool:
        return p in s.deleting[t] and s.status[p] == Status.ABORTED

    @witness
    def retention_of_a_log_that_became_compacted(s, u: User, p: Partition) -> bool:
        return s.doing[u] == Doing.RETAINING and p in s.held[u] and s.compact[p]

    @witness
    def waited_and_deletes(s, u: User) -> bool:
        return s.doing[u] == Doing.DELETING and all(s.status[p] == Status.FREE for p in Partition)

    @witness
    def cleaned_log_is_dirty_again(s, p: Partition) -> bool:
        return s.dirt[p] == D and s.status[p] == Status.IN_PROGRESS

    # what holds the invariants up, at any size

    @lemma("CLN-21")
    def ranks_count_the_holders(s, u: User, v: User, p: Partition) -> bool:
        """Holders of one partition have different ranks below its number of pauses (one to come while aborted)."""
        below = s.rank[u][p] < s.pauses[p] or (s.status[p] == Status.ABORTED and s.rank[u][p] == 0)
        apart = u == v or p not in s.held[v] or s.rank[u][p] != s.rank[v][p]
        return p not in s.held[u] or (below and apart)

    @lemma("CLN-21")
    def ranks_are_taken_from_0_up(s, p: Partition, i: Pauses) -> bool:
        return (i in s.taken_ranks[p]) == (i < s.pauses[p] or (s.status[p] == Status.ABORTED and i == 0))

    @lemma("CLN-21")
    def every_pause_has_its_holder(s, p: Partition, i: Pauses) -> bool:
        return i not in s.taken_ranks[p] or any(p in s.held[u] and s.rank[u][p] == i for u in User)

    @lemma("CLN-21")
    def the_lowest_and_the_highest_rank_are_taken(s, p: Partition) -> bool:
        """Instances of the above, spelt out for the prover."""
        held = s.status[p] in (Status.PAUSED, Status.ABORTED)
        lowest = 0 in s.taken_ranks[p] and any(p in s.held[u] and s.rank[u][p] == 0 for u in User)
        return (not held or lowest) and (s.pauses[p] == 0 or s.pauses[p] - 1 in s.taken_ranks[p])

    @lemma("CLN-33")
    def a_log_that_is_gone_will_be_aborted(s, p: Partition) -> bool:
        """A cleaning goes on undisturbed on a log that left the map only while its deletion has yet to abort it."""
        left = s.status[p] == Status.IN_PROGRESS and not s.known[p]
        return not left or any(s.doing[u] == Doing.TO_DELETE and s.target[u] == p for u in User)

    @lemma("CLN-15")
    def what_is_cleaned_was_grabbed(s, p: Partition) -> bool:
        """And nothing else."""
        taken = any(s.cleaning[t] == p for t in Thread) and s.status[p] in (Status.IN_PROGRESS, Status.ABORTED)
        return taken if s.grabbed[p] > 0 else not any(s.cleaning[t] == p for t in Thread)

    @lemma("CLN-12")
    def aborted_for_somebody(s, p: Partition) -> bool:
        return s.status[p] != Status.ABORTED or (any(p in s.held[u] for u in User))

    @lemma("CLN-21")
    def what_is_held(s, u: User, p: Partition) -> bool:
        """A user holds what it is at, and nothing else."""
        holds_one = (s.doing[u] in WAITING or s.doing[u] == Doing.HOLDING) and s.target[u] == p
        return holds_one or s.doing[u] == Doing.RETAINING if p in s.held[u] else not holds_one

    @lemma("CLN-20")
    def held_is_not_free(s, u: User, p: Partition) -> bool:
        return p not in s.held[u] or (
            s.status[p] == Status.PAUSED or (s.status[p] == Status.ABORTED and s.doing[u] in WAITING)
        )

    @lemma("CLN-20")
    def whoever_waits_has_a_target(s, u: User) -> bool:
        return s.doing[u] not in WAITING or (s.target[u] is not None)

    @lemma("CLN-20")
    def deleting_is_after_the_cleaning(s, u: User, p: Partition) -> bool:
        deleting = s.doing[u] == Doing.DELETING and s.target[u] == p
        return not (deleting) or (s.status[p] in (Status.FREE, Status.PAUSED))


L = Size("L")
"""The end of all logs."""
Offset = Annotated[int, Range(0, L)]


class Offsets(Model):
    """One compacted log: how far it may be cleaned, and what its checkpoint says of it. `cleaned` is how far the
    cleaner has looked, which no checkpoint may exceed: what lies below a checkpoint is never looked at again."""

    log_start: Offset
    stable: Offset
    active: Offset
    log_end: Offset
    checkpoint: Offset
    cleaned: Offset
    truncating: bool

    @define
    def dirty(s) -> int:
        """Where the next cleaning begins."""
        return s.checkpoint if s.log_start <= s.checkpoint and s.checkpoint <= s.log_end else s.log_start

    @define
    def uncleanable(s) -> int:
        return max(s.dirty(), min(s.stable, s.active))

    @action("CLN-8", who="leader")
    def append(s) -> None:
        require(not s.truncating, s.log_end < L)
        s.next.log_end = s.log_end + 1

    @action("CLN-8", who="leader")
    def roll(s) -> None:
        require(not s.truncating, s.active < s.log_end)
        s.next.active = s.log_end

    @action("CLN-8", who="replication")
    def stabilize(s, offset: Offset) -> None:
        """Up to there all is replicated, and every transaction is decided."""
        require(s.stable < offset, offset <= s.log_end)
        s.next.stable = offset

    @action("CLN-9", who="DeleteRecords")
    def raise_log_start(s, offset: Offset) -> None:
        require(s.log_start < offset, offset <= s.stable)
        s.next.log_start = offset

    @action("CLN-33", who="follower")
    def truncate(s, offset: Offset, base: Offset) -> None:
        """To follow another leader, one elected uncleanly included. The cleaner is paused; `base` is where the segment
        begins that becomes the active one."""
        require(not s.truncating, s.log_start <= offset, offset < s.log_end, base <= offset)
        require(s.active <= offset or base < s.active, base == s.active or offset < s.active)
        s.next.log_end = offset
        s.next.active = base
        s.next.stable = min(s.stable, offset)
        s.next.cleaned = min(s.cleaned, offset)
        s.next.truncating = True

    @action("CLN-27", "CLN-33", who="follower")
    def truncate_checkpoint(s) -> None:
        require(s.truncating)
        s.next.checkpoint = min(s.checkpoint, s.active)
        s.next.truncating = False

    @action("CLN-9", "CLN-10", who="cleaner thread")
    def heal(s) -> None:
        """A grab that only looks at the log: a checkpoint outside it is fixed."""
        require(not s.truncating, s.checkpoint != s.dirty())
        s.next.checkpoint = s.dirty()

    @action("CLN-8", "CLN-15", who="cleaner thread")
    def clean(s, end: Offset) -> None:
        """From the first dirty offset to as far as the cleaner got."""
        require(not s.truncating, s.dirty() < end, end <= s.uncleanable())
        s.next.checkpoint = end
        s.next.cleaned = max(s.cleaned, end)

    @invariant("CLN-27", "CLN-33")
    def what_is_below_the_checkpoint_was_cleaned(s) -> bool:
        return s.truncating or s.checkpoint <= max(s.cleaned, s.log_start)

    @invariant("CLN-9")
    def cleaning_begins_within_the_log(s) -> bool:
        return s.truncating or (s.log_start <= s.dirty() and s.dirty() <= s.log_end)

    @invariant("CLN-8", "CLN-32")
    def offsets_are_in_order(s) -> bool:
        return s.log_start <= s.stable and s.stable <= s.log_end and s.active <= s.log_end

    @invariant("CLN-8", "CLN-27")
    def only_what_is_stable_was_cleaned(s) -> bool:
        return s.cleaned <= s.stable

    @lemma("CLN-27")
    def the_closed_part_below_the_checkpoint_was_cleaned(s) -> bool:
        """Of a truncated log, too, before its checkpoint is lowered."""
        return min(s.checkpoint, s.active) <= max(s.cleaned, s.log_start)

    @step("CLN-8")
    def the_active_segment_is_not_cleaned(s) -> bool:
        return s.next.cleaned <= max(s.cleaned, s.active)

    @step("CLN-10")
    def a_cleaning_mends_the_checkpoint(s) -> bool:
        moved = s.next.checkpoint != s.checkpoint and not s.truncating
        return not moved or (s.log_start <= s.next.checkpoint and s.next.checkpoint <= s.log_end)

    @step("CLN-33")
    def nothing_else_happens_while_truncating(s) -> bool:
        """Until the checkpoint is lowered."""
        still = s.next.log_end == s.log_end and s.next.active == s.active and s.next.cleaned == s.cleaned
        lowered = s.next.checkpoint == s.checkpoint or s.next.checkpoint == min(s.checkpoint, s.active)
        return not s.truncating or (still and lowered)

    @step("CLN-33")
    def a_truncation_takes_records_away(s) -> bool:
        return s.truncating or not s.next.truncating or s.next.log_end < s.log_end

    @step("CLN-33")
    def the_active_segment_stays_unless_it_is_cut_off(s) -> bool:
        return s.next.log_end >= s.log_end or s.next.log_end < s.active or s.next.active == s.active

    @witness
    def cleaned_above_the_active_segment(s) -> bool:
        """A truncation came to its end, and made one active that had been cleaned."""
        return not s.truncating and s.cleaned > s.active

    @step("CLN-10")
    def a_checkpoint_falls_with_the_log_alone(s) -> bool:
        """Or if it was above the log's end."""
        return s.truncating or s.next.checkpoint >= s.checkpoint or s.checkpoint > s.log_end

    @witness
    def all_is_cleaned(s) -> bool:
        return s.cleaned == L

    @witness
    def all_is_stable(s) -> bool:
        return s.stable == L

    @witness
    def all_is_deleted(s) -> bool:
        return s.log_start == L

    @witness
    def cut_to_nothing(s) -> bool:
        return s.truncating and s.log_end == 0

    @witness
    def cut_to_a_base(s) -> bool:
        return s.truncating and s.active == s.log_end and s.log_end > 0

    @witness
    def reset_to_the_log_start(s) -> bool:
        return not s.truncating and s.checkpoint == s.log_start and s.cleaned < s.log_start

    @witness
    def cleaned_to_the_active_segment(s) -> bool:
        return s.checkpoint == s.active and s.active > 0 and s.active < s.log_end

    @witness
    def dirty_above_the_active_segment(s) -> bool:
        return s.dirty() > s.active

    @witness
    def checkpoint_above_the_log_while_truncating(s) -> bool:
        return s.truncating and s.checkpoint > s.log_end


MODELS = [
    Expectation(
        Cleaner,
        sizes={"Partition": 1, "Thread": 2, "User": 2, "N": 2, "D": 1},
        distinct=6192,
        generated=26709,
        depth=19,
        deadlock=True,
        note="at the end nobody begins anything new, and what is uncleanable stays so",
    ),
    Expectation(
        Cleaner,
        sizes={"Partition": 2, "Thread": 1, "User": 2, "N": 2, "D": 2},
        distinct=480182,
        generated=2767280,
        depth=33,
        deadlock=True,
    ),
    Expectation(
        Cleaner,
        sizes={"Partition": 2, "Thread": 2, "User": 2, "N": 2, "D": 1},
        distinct=1358960,
        generated=8635785,
        depth=32,
        deadlock=True,
    ),
    Expectation(States, sizes={"Partition": 2, "N": 2, "D": 2}, distinct=20736, generated=478079, depth=14),
    Expectation(
        Offsets, sizes={"L": 6}, distinct=10031, generated=80447, depth=19, deadlock=True, note="the log is full"
    ),
]
