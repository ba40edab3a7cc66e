"""Blocks of producer ids: one controller's memory of them, and a cluster whose controllers change.

Source: Kafka Internals, ch. 11, "ProducerIdControlManager"; KIP-730; ProducerIdControlManager, Kafka 4.3.0.
"""

from __future__ import annotations

from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Model, Range, Size, Sort, action, define, invariant, lemma, require, step, witness


class Broker(Sort):
    """A broker."""


E = Size("E")
"""The last epoch of a registration."""
Epoch = Annotated[int, Range(0, E)]
"""0: not registered, or nobody's"""
N = Size("N")
"""How many blocks there are."""
Blocks = Annotated[int, Range(0, N)]


class Memory(Model):
    """What one controller has in its memory, and its latest snapshot of that.

    `begins` is where the next block begins, in blocks; `used` whether a record was replayed; `asker` and `asked_with`
    are the broker and the epoch that the last one names, nobody and 0 if that was a raft snapshot's.

    What was simplified: ids are whole blocks; a record of the log names a broker that is registered with that epoch,
    as whoever wrote it had the same registrations then.
    """

    begins: Blocks
    used: bool
    asker: Broker | None
    asked_with: Epoch
    registered: dict[Broker, Epoch]
    kept: bool
    kept_begins: Blocks
    kept_used: bool
    kept_asker: Broker | None
    kept_asked_with: Epoch
    kept_registered: dict[Broker, Epoch]

    @action("PID-2", who="broker")
    def register(s, b: Broker, e: Epoch) -> None:
        require(e > 0)
        s.next.registered[b] = e

    @action("PID-2", who="administrator")
    def unregister(s, b: Broker) -> None:
        require(s.registered[b] > 0)
        s.next.registered[b] = 0

    @action("PID-2", "PID-3", "PID-4", "PID-8", who="broker")
    def allocate(s, b: Broker, e: Epoch) -> None:
        """Asked for, and replayed at once."""
        require(e > 0, s.registered[b] == e, s.begins < N)
        s.next.begins = s.begins + 1
        s.next.used = True
        s.next.asker = b
        s.next.asked_with = e

    @action("PID-8", "PID-9", "PID-10", who="raft")
    def replay(s, b: Broker, e: Epoch, n: Blocks) -> None:
        """A record that another controller wrote."""
        require(e > 0, s.registered[b] == e)
        require(not s.used or n > s.begins)
        s.next.begins = n
        s.next.used = True
        s.next.asker = b
        s.next.asked_with = e

    @action("PID-10", "PID-12", who="raft")
    def replay_image(s, n: Blocks) -> None:
        """The record of a raft snapshot."""
        require(not s.used)
        s.next.begins = n
        s.next.used = True

    @action("PID-11", who="controller")
    def keep(s) -> None:
        s.next.kept = True
        s.next.kept_begins = s.begins
        s.next.kept_used = s.used
        s.next.kept_asker = s.asker
        s.next.kept_asked_with = s.asked_with
        s.next.kept_registered = s.registered

    @action("PID-11", who="raft")
    def revert(s) -> None:
        require(s.kept)
        s.next.begins = s.kept_begins
        s.next.used = s.kept_used
        s.next.asker = s.kept_asker
        s.next.asked_with = s.kept_asked_with
        s.next.registered = s.kept_registered

    @action("PID-1", who="raft")
    def reset(s) -> None:
        s.next.begins = 0
        s.next.used = False
        s.next.asker = None
        s.next.asked_with = 0
        s.next.registered = {b: 0 for b in Broker}
        s.next.kept = False
        s.next.kept_begins = 0
        s.next.kept_used = False
        s.next.kept_asker = None
        s.next.kept_asked_with = 0
        s.next.kept_registered = {b: 0 for b in Broker}

    @invariant("PID-1")
    def without_a_record_there_is_nothing(s) -> bool:
        return s.used or (s.begins == 0 and s.asker is None and s.asked_with == 0)

    @lemma()
    def a_snapshot_is_of_such_a_memory(s) -> bool:
        return s.kept_used or (s.kept_begins == 0 and s.kept_asker is None and s.kept_asked_with == 0)

    @lemma()
    def a_snapshot_is_not_above(s) -> bool:
        return not s.kept or (s.kept_begins <= s.begins and (s.used or not s.kept_used))

    @lemma()
    def without_a_snapshot_there_is_nothing_kept(s) -> bool:
        return s.kept or (
            not s.kept_used and s.kept_begins == 0 and all(s.kept_registered[b] == 0 for b in Broker)
        )  # fmt: skip

    @step("PID-1")
    def a_reset_leaves_nobody_registered(s) -> bool:
        """It is a reset that ends the snapshot, or takes the only record."""
        forgotten = (s.kept and not s.next.kept) or (s.used and not s.next.used and not s.kept)
        return not forgotten or all(s.next.registered[b] == 0 for b in Broker)

    @step("PID-2")
    def one_broker_registers_at_a_time(s, b: Broker, c: Broker) -> bool:
        return (
            b == c
            or s.next.registered[b] == s.registered[b]
            or s.next.registered[c] == s.registered[c]
            or s.next.registered == s.kept_registered
            or (not s.next.used and not s.next.kept)
        )

    @step("PID-9", "PID-4")
    def the_next_block_moves_up(s) -> bool:
        """With every record but the first, unless the memory is put back."""
        return (
            not s.used
            or not s.next.used
            or s.next.begins > s.begins
            or (s.next.begins == s.begins and s.next.asker == s.asker and s.next.asked_with == s.asked_with)
            or (s.kept and s.next.begins == s.kept_begins)
        )

    @step("PID-2", "PID-3", "PID-8")
    def blocks_are_of_registered_brokers(s) -> bool:
        return (
            s.next.begins <= s.begins
            or s.next.asker is None
            or (s.next.asked_with > 0 and s.registered[s.next.asker] == s.next.asked_with)
        )

    @step("PID-11")
    def a_revert_puts_all_back_together(s) -> bool:
        """A block that moves down is the snapshot's, and so is all else."""
        return (
            s.next.begins >= s.begins
            or not s.kept
            or not s.next.kept
            or (
                s.next.begins == s.kept_begins
                and s.next.used == s.kept_used
                and s.next.asker == s.kept_asker
                and s.next.asked_with == s.kept_asked_with
                and s.next.registered == s.kept_registered
            )
        )

    @step("PID-11")
    def a_snapshot_shows_what_it_showed(s) -> bool:
        return (
            not s.kept
            or not s.next.kept
            or (
                s.next.kept_begins == s.kept_begins
                and s.next.kept_used == s.kept_used
                and s.next.kept_asker == s.kept_asker
                and s.next.kept_asked_with == s.kept_asked_with
                and s.next.kept_registered == s.kept_registered
            )
            or (
                s.next.kept_begins == s.begins
                and s.next.kept_used == s.used
                and s.next.kept_asker == s.asker
                and s.next.kept_asked_with == s.asked_with
                and s.next.kept_registered == s.registered
            )
        )

    @step("PID-2", "PID-3")
    def registrations_change_by_themselves(s) -> bool:
        """A record of producer ids leaves them."""
        return s.next.begins <= s.begins or s.next.registered == s.registered

    @witness
    def given_to_one_that_came_again(s, b: Broker) -> bool:
        return s.asker == b and s.asked_with > 0 and s.registered[b] > s.asked_with

    @witness
    def given_to_one_that_went(s, b: Broker) -> bool:
        return s.asker == b and s.registered[b] == 0 and not s.kept

    @witness
    def the_first_record_says_the_end(s) -> bool:
        return s.begins == N and s.kept and not s.kept_used and s.asker is None

    @witness
    def a_block_that_was_given_is_undone(s) -> bool:
        return s.kept and s.kept_used and s.used and s.begins > s.kept_begins


class Controller(Sort):
    """A controller."""


M = Size("M")
"""The greatest id."""
B = Size("B")
"""How many ids a block has."""
Id = Annotated[int, Range(0, M)]


class Cluster(Model):
    """The log of a cluster whose controllers change, and the ids that brokers were given.

    A record of the log says an id, where the next block begins; as they rise, a record is known by what it says. `log`
    has those of the active controller's log, committed or not; `first` is where the block of each begins; 0 is said
    before the first record. A broker is answered when the record of its block is committed: `given` are the ids that
    brokers have. `memory` is what each controller has replayed last.

    What was simplified: epochs of brokers, which are `Memory`'s matter; and a controller that does not know that
    another one is active, whose records are never committed: it is as one that has given up.
    """

    active: Controller | None
    memory: dict[Controller, Id]
    log: dict[Id, bool]
    first: dict[Id, Id]
    committed: Id
    given: dict[Id, bool]

    @define
    def in_block(s, r: Id, i: Id) -> bool:
        """Whether the block of the record that says r has the id."""
        return s.log[r] and s.first[r] <= i and i < r

    @action("PID-4", "PID-5", "PID-7", "PID-8", who="controller")
    def allocate(s, c: Controller) -> None:
        require(s.active == c, s.memory[c] + B <= M)
        s.next.log[s.memory[c] + B] = True
        s.next.first[s.memory[c] + B] = s.memory[c]
        s.next.memory[c] = s.memory[c] + B

    @action("PID-13", who="raft")
    def commit(s, r: Id) -> None:
        """Up to a record: brokers are answered with the blocks that are committed now."""
        require(s.log[r], r > s.committed)
        s.next.committed = r
        s.next.given = {
            i: s.given[i] or any(s.in_block(q, i) for q in range(M + 1) if q > s.committed and q <= r)
            for i in range(M + 1)
        }

    @action("PID-8", "PID-9", who="raft")
    def replay(s, c: Controller, r: Id) -> None:
        """A standby replays the next record that is committed."""
        require(s.active != c, s.log[r], r <= s.committed, r > s.memory[c])
        require(all(not s.log[q] for q in range(M + 1) if q > s.memory[c] and q < r))
        s.next.memory[c] = r

    @action("PID-12", "PID-1", "PID-10", who="raft")
    def load(s, c: Controller) -> None:
        """A standby forgets all, and loads a raft snapshot of what is committed."""
        require(s.active != c)
        s.next.memory[c] = s.committed

    @action("PID-11", who="raft")
    def give_up(s, d: Id) -> None:
        """The active controller goes back to what it knew to be committed."""
        require(s.active is not None, d == 0 or s.log[d], d <= s.committed)
        s.next.active = None
        s.next.memory = {c: d if s.active == c else s.memory[c] for c in Controller}

    @action("PID-8", "PID-13", who="raft")
    def take_over(s, c: Controller, r: Id) -> None:
        """A controller with all that is committed, and perhaps more, becomes active; what is behind is cut off."""
        require(s.active is None, r >= s.committed, r == 0 or s.log[r])
        s.next.active = c
        s.next.memory[c] = r
        s.next.log = {q: s.log[q] and q <= r for q in range(M + 1)}
        s.next.first = {q: s.first[q] if q <= r else 0 for q in range(M + 1)}

    @invariant("PID-13")
    def no_id_is_in_two_blocks(s, i: Id, q: Id, r: Id) -> bool:
        return not (s.in_block(q, i) and s.in_block(r, i)) or q == r

    @invariant("PID-13")
    def what_was_given_is_committed(s, i: Id) -> bool:
        return not s.given[i] or i < s.committed

    @step("PID-4", "PID-13")
    def what_is_committed_is_given(s, i: Id, r: Id) -> bool:
        return s.next.given[i] or not s.in_block(r, i) or r <= s.committed or r > s.next.committed

    @step("PID-13")
    def what_was_given_stays_given(s, i: Id) -> bool:
        return not s.given[i] or s.next.given[i]

    @step("PID-13", "PID-5", "PID-12")
    def no_id_is_given_again(s, i: Id, r: Id) -> bool:
        """No block that is new in the log has an id that somebody has."""
        return not s.given[i] or s.log[r] or not s.next.log[r] or i < s.next.first[r] or i >= r

    @invariant("PID-4", "PID-5", "PID-7")
    def a_block_is_whole(s, r: Id) -> bool:
        """It begins where a record before it says, and ends at an id that there is."""
        return not s.log[r] or (
            s.first[r] + B == r and (s.first[r] == 0 or s.log[s.first[r]])
        )  # fmt: skip

    @invariant("PID-9", "PID-11")
    def a_standby_has_nothing_that_is_not_committed(s, c: Controller) -> bool:
        """So that no record that is committed is refused."""
        return s.active == c or s.memory[c] <= s.committed

    @invariant("PID-8", "PID-12")
    def a_memory_is_what_a_record_said(s, c: Controller) -> bool:
        return s.memory[c] == 0 or s.log[s.memory[c]]

    @invariant("PID-8")
    def the_active_has_replayed_all(s, r: Id) -> bool:
        return s.active is None or not s.log[r] or r <= s.memory[s.active]

    @step("PID-8", "PID-9")
    def a_standby_replays_record_by_record(s, c: Controller, q: Id) -> bool:
        """It never goes back, and leaves none out, but when it loads a raft snapshot."""
        return (
            s.active == c
            or s.next.active == c
            or s.next.memory[c] == s.committed
            or (
                s.next.memory[c] >= s.memory[c]
                and not (s.log[q] and s.memory[c] < q and q < s.next.memory[c])
            )
        )  # fmt: skip

    @lemma()
    def the_committed_record_is_in_the_log(s) -> bool:
        return s.committed == 0 or s.log[s.committed]

    @lemma()
    def the_active_has_what_is_committed(s) -> bool:
        return s.active is None or s.committed <= s.memory[s.active]

    @lemma()
    def records_are_apart(s, q: Id, r: Id) -> bool:
        return not (s.log[q] and s.log[r] and q < r) or q <= s.first[r]

    @lemma()
    def nothing_says_0(s) -> bool:
        return not s.log[0]

    @lemma()
    def what_is_cut_off_has_no_block(s, r: Id) -> bool:
        return s.log[r] or s.first[r] == 0

    @witness
    def all_ids_are_given(s) -> bool:
        return s.committed + B > M and s.committed > 0

    @witness
    def a_standby_lags_behind(s, c: Controller, d: Controller) -> bool:
        return c != d and s.active == c and s.memory[d] > 0 and s.memory[d] < s.committed and s.memory[c] > s.committed

    @witness
    def given_up_before_anything_was_committed(s, r: Id) -> bool:
        return s.active is None and s.committed == 0 and s.log[r]

    @witness
    def a_record_of_the_one_before_is_committed(s, c: Controller) -> bool:
        return s.active == c and s.memory[c] > s.committed + B


MODELS = [
    Expectation(Memory, sizes={"Broker": 2, "E": 2, "N": 2}, distinct=7515, generated=73252, depth=10),
    Expectation(Cluster, sizes={"Controller": 3, "M": 6, "B": 2}, distinct=296, generated=2452, depth=10),
]
