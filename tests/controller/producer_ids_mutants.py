"""Faults of blocks of producer ids, each with the clauses that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kafkaspec.contract.machine import Refused, Step
from kafkaspec.impl.controller import producer_ids as impl
from kafkaspec.impl.controller.producer_ids import (
    BLOCK_SIZE,
    NO_BROKER,
    BlockResult,
    ProducerIdControl,
    ProducerIdsBlock,
    ProducerIdsImage,
    ProducerIdsRecord,
)
from kafkaspec.impl.controller.producer_ids_driver import Driver
from kafkaspec.impl.controller.timeline import SnapshotRegistry, TimelineLong, TimelineObject
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.controller import producer_ids as model
from kafkaspec.models.controller.producer_ids import B, Blocks, Broker, Controller, Epoch, Id, M, N
from kafkaspec.mutants.mutant import Mutant, driver_with, of_impl, of_model, of_spec, with_fault
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH
from kafkaspec.spec.controller import producer_ids as spec
from kafkaspec.spec.controller.producer_ids import Allocation, ProducerIds


def _of(make: type[ProducerIdControl]) -> Callable[[], Driver]:
    """What makes a driver of a faulty manager."""
    return driver_with(Driver, make=make)


def _of_image(make: type[ProducerIdsImage]) -> Callable[[], Driver]:
    return driver_with(Driver, make_image=make)


class WholeAtFirst(ProducerIdControl):
    """The first block is as if a record had made it."""

    def __init__(self, registry: SnapshotRegistry, epoch_of: Callable[[int], int | None]) -> None:
        super().__init__(registry, epoch_of)
        self.next_block = TimelineObject(registry, ProducerIdsBlock(NO_BROKER, 0))


class ForAnybody(ProducerIdControl):
    """A broker that is not registered gets a block."""

    def check_broker(self, broker_id: int, broker_epoch: int) -> None:
        if self.epoch_of(broker_id) is not None:
            super().check_broker(broker_id, broker_epoch)


class ForTheOneBefore(ProducerIdControl):
    """A broker that has registered again since gets a block with its earlier epoch."""

    def check_broker(self, broker_id: int, broker_epoch: int) -> None:
        known = self.epoch_of(broker_id)
        if known is None or broker_epoch > known:
            super().check_broker(broker_id, broker_epoch)


class ForTheOneAfter(ProducerIdControl):
    """A later epoch than that of the registration is good enough."""

    def check_broker(self, broker_id: int, broker_epoch: int) -> None:
        known = self.epoch_of(broker_id)
        if known is None or broker_epoch < known:
            super().check_broker(broker_id, broker_epoch)


class ByChange(ProducerIdControl):
    """What a broker is answered is changed."""

    def change(self, result: BlockResult) -> BlockResult:
        return result

    def generate(self, broker_id: int, broker_epoch: int) -> BlockResult:
        return self.change(super().generate(broker_id, broker_epoch))


class ToTheLast(ByChange):
    """The block has the id with which the next one begins."""

    def change(self, result: BlockResult) -> BlockResult:
        block = result.block
        return replace(result, block=ProducerIdsBlock(block.broker_id, block.first, BLOCK_SIZE + 1))


class FromBehind(ByChange):
    """The block is the one behind the next one."""

    def change(self, result: BlockResult) -> BlockResult:
        block = result.block
        return replace(result, block=ProducerIdsBlock(block.broker_id, block.next_first))


class AnotherBrokers(ByChange):
    """The block is nobody's."""

    def change(self, result: BlockResult) -> BlockResult:
        return replace(result, block=ProducerIdsBlock(NO_BROKER, result.block.first))


class SaysItself(ByChange):
    """The record says where its own block begins."""

    def change(self, result: BlockResult) -> BlockResult:
        (record,) = result.records
        return replace(result, records=(replace(record, next_producer_id=result.block.first),))


class NamesNoEpoch(ByChange):
    """The record says nothing of the broker's epoch."""

    def change(self, result: BlockResult) -> BlockResult:
        (record,) = result.records
        return replace(result, records=(replace(record, broker_epoch=-1),))


class Atomic(ByChange):
    def change(self, result: BlockResult) -> BlockResult:
        return replace(result, atomic=True)


class AtOnce(ProducerIdControl):
    """To ask moves the next block, before anything is replayed."""

    def generate(self, broker_id: int, broker_epoch: int) -> BlockResult:
        result = super().generate(broker_id, broker_epoch)
        self.next_block.set(ProducerIdsBlock(broker_id, result.block.next_first))
        return result

    def replay(self, record: ProducerIdsRecord) -> None:
        if (
            record.next_producer_id == self.next_block.get().first
            and self.next_block.get().broker_id == record.broker_id
        ):
            self.broker_epoch.set(record.broker_epoch)
            return
        super().replay(record)


class OneBlockLess(ProducerIdControl):
    """The last block that ends within 64 bits is not given."""

    def generate(self, broker_id: int, broker_epoch: int) -> BlockResult:
        result = super().generate(broker_id, broker_epoch)
        if result.block.next_first == impl.LAST_ID:
            raise impl.ExhaustedError(
                "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit"
            )
        return result


class BeginsAgain(ProducerIdControl):
    """Behind the last id comes the first one."""

    def generate(self, broker_id: int, broker_epoch: int) -> BlockResult:
        try:
            return super().generate(broker_id, broker_epoch)
        except impl.ExhaustedError:
            return BlockResult(
                ProducerIdsBlock(broker_id, 0), (ProducerIdsRecord(broker_id, broker_epoch, BLOCK_SIZE),)
            )


class FullBefore(ProducerIdControl):
    """Who has no block to get is told so, whoever it is."""

    def generate(self, broker_id: int, broker_epoch: int) -> BlockResult:
        if self.next_block.get().first > impl.LAST_ID - BLOCK_SIZE:
            raise impl.ExhaustedError(
                "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit"
            )
        return super().generate(broker_id, broker_epoch)


class KeepsTheBroker(ProducerIdControl):
    """The epoch of the first record stays."""

    def replay(self, record: ProducerIdsRecord) -> None:
        before = self.broker_epoch.get()
        super().replay(record)
        if before > 0:
            self.broker_epoch.set(before)


class TakesTheSame(ProducerIdControl):
    """A record that says the same id again is taken."""

    def replay(self, record: ProducerIdsRecord) -> None:
        last = self.next_block.get()
        if last is not impl.EMPTY and record.next_producer_id == last.first:
            self.next_block.set(ProducerIdsBlock(record.broker_id, last.first))
            self.broker_epoch.set(record.broker_epoch)
            return
        super().replay(record)


class TakesLower(ProducerIdControl):
    """A record of another broker is taken, wherever its block lies."""

    def replay(self, record: ProducerIdsRecord) -> None:
        last = self.next_block.get()
        if record.next_producer_id < last.first and record.broker_id != last.broker_id:
            self.next_block.set(ProducerIdsBlock(record.broker_id, record.next_producer_id))
            self.broker_epoch.set(record.broker_epoch)
            return
        super().replay(record)


class LeavesOut(ProducerIdControl):
    """A record that does not move the next block up is left out, and nobody told."""

    def replay(self, record: ProducerIdsRecord) -> None:
        last = self.next_block.get()
        if last is impl.EMPTY or record.next_producer_id > last.first:
            super().replay(record)


class UpFromTheFirst(ProducerIdControl):
    """The first record, too, has to move the next block up, as the chapter has it."""

    def replay(self, record: ProducerIdsRecord) -> None:
        last = self.next_block.get()
        if record.next_producer_id <= last.first:
            raise impl.ReplayError(
                f"Next Producer ID from replayed record ({record.next_producer_id}) is not greater than current next "
                f"Producer ID in block ({last})"
            )
        super().replay(record)


class FirstByBroker(ProducerIdControl):
    """Whether a record is the first one is told by the broker of the last."""

    def replay(self, record: ProducerIdsRecord) -> None:
        if self.next_block.get().broker_id == NO_BROKER:
            self.next_block.set(impl.EMPTY)
        super().replay(record)


class NumberBeside(TimelineLong):
    """On a registry of its own: at every epoch it shows the present."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(SnapshotRegistry())

    def get(self, epoch: int = LATEST_EPOCH) -> int:
        return super().get()


class ObjectBeside(TimelineObject[ProducerIdsBlock]):
    """The same, of a block."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(SnapshotRegistry(), impl.EMPTY)

    def get(self, epoch: int = LATEST_EPOCH) -> ProducerIdsBlock:
        return super().get()


class EpochBeside(ProducerIdControl):
    """The epoch is kept beside the timeline: it does not go back."""

    def __init__(self, registry: SnapshotRegistry, epoch_of: Callable[[int], int | None]) -> None:
        super().__init__(registry, epoch_of)
        self.broker_epoch = NumberBeside()


class BlockBeside(ProducerIdControl):
    """The next block is kept beside the timeline: what was given is never given again."""

    def __init__(self, registry: SnapshotRegistry, epoch_of: Callable[[int], int | None]) -> None:
        super().__init__(registry, epoch_of)
        self.next_block = ObjectBeside()


class GivenBack(ProducerIdControl):
    """A broker that asks twice in a row is given its block again."""

    def generate(self, broker_id: int, broker_epoch: int) -> BlockResult:
        result = super().generate(broker_id, broker_epoch)
        last = self.next_block.get()
        if last.broker_id != broker_id or last.first < BLOCK_SIZE or self.broker_epoch.get() != broker_epoch:
            return result
        return replace(result, block=ProducerIdsBlock(broker_id, last.first - BLOCK_SIZE))


class ImageFromTheFirst(ProducerIdsImage):
    """0 is no id to begin with."""

    def records(self) -> Sequence[ProducerIdsRecord]:
        return super().records() if self.next_producer_id > 0 else []


class NoImage(ProducerIdsImage):
    """A raft snapshot has nothing of them."""

    def records(self) -> Sequence[ProducerIdsRecord]:
        return []


class ImageOfTheHighest(ProducerIdsImage):
    def replay(self, record: ProducerIdsRecord) -> None:
        if record.next_producer_id > self.next_producer_id:
            super().replay(record)


class ImageOfSomebody(ProducerIdsImage):
    def records(self) -> Sequence[ProducerIdsRecord]:
        return [replace(record, broker_id=0) for record in super().records()]


# faults of the spec


class DeletesOneMore(Driver):
    """The snapshot at the epoch itself, too."""

    def delete_snapshots_up_to(self, epoch: int) -> None:
        super().delete_snapshots_up_to(epoch + 1)


def _spec(name: str, clauses: str, what: str, operation: str, change: Callable[..., Any]) -> Mutant:
    """One operation, with what `change` makes of the state before and of what the right one returns."""
    body = spec.machine.find(operation).body

    def faulty(state: ProducerIds, **arguments: Any) -> Any:
        return change(state, body(state, **arguments), **arguments)

    return of_spec(name, clauses, what, lambda: with_fault(spec.machine, operation, faulty))


def _given_to_all(before: ProducerIds, step: Step[ProducerIds, Allocation], **of: Any) -> Step[ProducerIds, Allocation]:
    if isinstance(step.result, Refused) and step.result.clause in {"PID-2", "PID-3"}:
        first = before.next.first
        record = spec.Record(0, of["broker_id"], of["broker_epoch"], first + spec.BLOCK_SIZE)
        return Step(before, Allocation(first, spec.BLOCK_SIZE, (record,), False, of["broker_id"]))
    return step


def _of_the_block(change: Callable[[Allocation], Allocation]) -> Callable[..., Any]:
    def made(before: ProducerIds, step: Step[ProducerIds, Allocation], **of: Any) -> Any:
        return step if isinstance(step.result, Refused) else Step(step.state, change(step.result))

    return made


def _moved(before: ProducerIds, step: Step[ProducerIds, Allocation], **of: Any) -> Step[ProducerIds, Allocation]:
    if isinstance(step.result, Refused) or of["replayed"]:
        return step
    return Step(spec._after(before, step.result.records[0]), step.result)


def _full(before: ProducerIds, step: Step[ProducerIds, Allocation], **of: Any) -> Step[ProducerIds, Allocation]:
    if before.next.first < 3 * spec.BLOCK_SIZE:
        return step
    return Step(before, Refused("PID-7", spec.UNKNOWN_SERVER))


def _taken(before: ProducerIds, after: ProducerIds | Refused, **of: Any) -> ProducerIds | Refused:
    if isinstance(after, Refused):
        block = spec.Block(of["broker_id"], of["next_producer_id"], spec.BLOCK_SIZE)
        return replace(before, present=before.present._replace(next=block, broker_epoch=of["broker_epoch"]))
    return after


def _must_rise(before: ProducerIds, after: ProducerIds | Refused, **of: Any) -> ProducerIds | Refused:
    return Refused("PID-9", spec.RUNTIME_EXCEPTION) if of["next_producer_id"] <= before.next.first else after


SPEC = [
    _spec("for anybody (spec)", "PID-2 PID-3", "who asks gets a block", "generateNextProducerId", _given_to_all),
    _spec(
        "one too many (spec)",
        "PID-4 PID-5",
        "the block has the next one's first id",
        "generateNextProducerId",
        _of_the_block(lambda a: replace(a, size=a.size + 1)),
    ),
    _spec(
        "one before (spec)",
        "PID-13",
        "the block begins with the last one's last id",
        "generateNextProducerId",
        _of_the_block(lambda a: replace(a, first_producer_id=a.first_producer_id - 1, size=a.size + 1)),
    ),
    _spec("to ask is to get (spec)", "PID-6", "the memory moves without a record", "generateNextProducerId", _moved),
    _spec("full too early (spec)", "PID-7", "after three blocks", "generateNextProducerId", _full),
    _spec("taken all the same (spec)", "PID-9", "a record that moves nothing up", "replay", _taken),
    _spec("up from the first (spec)", "PID-10", "the first record has to move it up", "replay", _must_rise),
    _spec(
        "nobody is registered any more (spec)",
        "PID-8",
        "after a record",
        "replay",
        lambda before, after, **of: (
            after if isinstance(after, Refused) else replace(after, present=after.present._replace(brokers=()))
        ),
    ),
    _spec(
        "the block stays (spec)",
        "PID-11",
        "when the rest is put back",
        "revertToSnapshot",
        lambda before, after, **of: replace(after, present=after.present._replace(next=before.next)),
    ),
    _spec(
        "registrations stay (spec)",
        "PID-1",
        "when all is reset",
        "reset",
        lambda before, after, **of: replace(after, present=after.present._replace(brokers=before.present.brokers)),
    ),
]


# faults of the models


class Trusting(model.Memory):
    """A broker gets a block with any epoch."""

    @action("PID-2", "PID-3", "PID-4", "PID-8", who="broker")
    def allocate(s, b: Broker, e: Epoch) -> None:
        require(e > 0, s.begins < N)
        s.next.begins = s.begins + 1
        s.next.used = True
        s.next.asker = b
        s.next.asked_with = e


class Lowering(model.Memory):
    """A record may move the next block down."""

    @action("PID-8", "PID-9", "PID-10", who="raft")
    def replay(s, b: Broker, e: Epoch, n: Blocks) -> None:
        require(e > 0, s.registered[b] == e)
        s.next.begins = n
        s.next.used = True
        s.next.asker = b
        s.next.asked_with = e


class InPart(model.Memory):
    """The epoch is not put back with the rest."""

    @action("PID-11", who="raft")
    def revert(s) -> None:
        require(s.kept)
        s.next.begins = s.kept_begins
        s.next.used = s.kept_used
        s.next.asker = s.kept_asker
        s.next.registered = s.kept_registered


class Migrated(model.Cluster):
    """The record says where its own block begins."""

    @action("PID-4", "PID-5", "PID-7", "PID-8", who="controller")
    def allocate(s, c: Controller) -> None:
        require(s.active == c, s.memory[c] + B <= M)
        s.next.log[s.memory[c] + B] = True
        s.next.first[s.memory[c] + B] = s.memory[c] - B if s.memory[c] >= B else 0
        s.next.memory[c] = s.memory[c] + B


class Early(model.Cluster):
    """A broker is answered before its block is committed."""

    @action("PID-4", "PID-5", "PID-7", "PID-8", who="controller")
    def allocate(s, c: Controller) -> None:
        require(s.active == c, s.memory[c] + B <= M)
        s.next.log[s.memory[c] + B] = True
        s.next.first[s.memory[c] + B] = s.memory[c]
        s.next.memory[c] = s.memory[c] + B
        s.next.given = {i: s.given[i] or (s.memory[c] <= i and i < s.memory[c] + B) for i in range(M + 1)}


class Forgetting(model.Cluster):
    """Who was given ids before a commit is forgotten with it."""

    @action("PID-13", who="raft")
    def commit(s, r: Id) -> None:
        require(s.log[r], r > s.committed)
        s.next.committed = r
        s.next.given = {
            i: any(s.in_block(q, i) for q in range(M + 1) if q > s.committed and q <= r) for i in range(M + 1)
        }


class Keeping(model.Cluster):
    """A controller that gives up keeps what it has replayed."""

    @action("PID-11", who="raft")
    def give_up(s, d: Id) -> None:
        require(s.active is not None, d == 0 or s.log[d], d <= s.committed)
        s.next.active = None


class Unsnapshot(model.Cluster):
    """A raft snapshot has no record of producer ids, and whoever loaded it may become active."""

    @action("PID-12", "PID-1", "PID-10", who="raft")
    def load(s, c: Controller) -> None:
        require(s.active != c)
        s.next.memory[c] = 0

    @action("PID-8", "PID-13", who="raft")
    def take_over(s, c: Controller, r: Id) -> None:
        require(s.active is None, r == 0 or s.log[r], r >= s.committed)
        s.next.active = c
        s.next.log = {q: s.log[q] and q <= r for q in range(M + 1)}
        s.next.first = {q: s.first[q] if q <= r else 0 for q in range(M + 1)}


def _loaded(of: type[model.Memory] | type[model.Cluster]) -> Callable[[], LoadedModel]:
    return lambda: load(of)


IMPL: Sequence[tuple[str, str, str, Any, str | None]] = (
    ("a whole block at first", "PID-1", "there is a block before any record", WholeAtFirst, None),
    ("for anybody", "PID-2", "a broker that is not registered gets a block", ForAnybody, None),
    ("for the one before", "PID-3", "an earlier epoch is good enough", ForTheOneBefore, None),
    ("for the one after", "PID-3", "a later epoch is good enough", ForTheOneAfter, None),
    ("one id too many", "PID-4", "the block has the next one's first id", ToTheLast, None),
    ("the block behind", "PID-4", "a block is left out", FromBehind, None),
    ("nobody's", "PID-4", "the block names no broker", AnotherBrokers, None),
    ("says itself", "PID-5 PID-13", "the record says where its own block begins", SaysItself, "KAFKA-15552"),
    ("names no epoch", "PID-5", "the record has -1", NamesNoEpoch, None),
    ("atomic", "PID-5", "the record has to be in a batch of its own", Atomic, None),
    ("to ask is to get", "PID-6", "the memory moves without a record", AtOnce, None),
    ("one block less", "PID-7", "the last whole block is not given", OneBlockLess, None),
    ("begins again", "PID-7 PID-13", "behind the last id comes the first", BeginsAgain, None),
    ("full, whoever asks", "PID-7 PID-2", "it is told before who asks is looked at", FullBefore, None),
    ("the first epoch stays", "PID-8", "later records do not change it", KeepsTheBroker, None),
    ("the same again", "PID-9", "a record that says the same id is taken", TakesTheSame, None),
    ("lower", "PID-9 PID-13", "another broker's record is taken", TakesLower, None),
    ("left out", "PID-9", "nobody is told of a record that moves nothing up", LeavesOut, None),
    ("up from the first", "PID-10", "the first record has to move it up", UpFromTheFirst, None),
    ("first by its broker", "PID-9 PID-12", "a raft snapshot's record counts as none", FirstByBroker, None),
    ("the epoch is beside", "PID-11", "it does not go back", EpochBeside, "KAFKA-12792"),
    ("the block is beside", "PID-11", "it does not go back", BlockBeside, "KAFKA-12792"),
    ("given back", "PID-13 PID-4", "who asks twice in a row gets its block again", GivenBack, None),
)
IMAGES: Sequence[tuple[str, str, str, type[ProducerIdsImage], str | None]] = (
    ("no image", "PID-12", "whatever was replayed", NoImage, "KAFKA-13357"),
    ("no image of 0", "PID-12", "there is no record if the next block begins at 0", ImageFromTheFirst, None),
    ("an image of the highest", "PID-12", "not of the last record", ImageOfTheHighest, None),
    ("an image of somebody", "PID-12", "the record names broker 0", ImageOfSomebody, None),
)

MUTANTS = [
    *SPEC,
    *(of_impl(name, clauses, what, _of(make), bug) for name, clauses, what, make, bug in IMPL),
    *(of_impl(name, clauses, what, _of_image(make), bug) for name, clauses, what, make, bug in IMAGES),
    of_model("any epoch (model)", "PID-2 PID-3", "is good enough", _loaded(Trusting)),
    of_model("lower (model)", "PID-9", "a record moves the next block down", _loaded(Lowering)),
    of_model("back in part (model)", "PID-11", "the epoch stays", _loaded(InPart), "KAFKA-12792"),
    of_model("says itself (model)", "PID-5 PID-13", "the block is the one before", _loaded(Migrated), "KAFKA-15552"),
    of_model("forgotten (model)", "PID-13", "what was given before a commit", _loaded(Forgetting)),
    of_model("answered early (model)", "PID-13", "before the record is committed", _loaded(Early)),
    of_model("not put back (model)", "PID-11", "by a controller that gives up", _loaded(Keeping), "KAFKA-12792"),
    of_model("no image (model)", "PID-12 PID-13", "whoever loads begins at 0", _loaded(Unsnapshot), "KAFKA-13357"),
]

AT_ONCE = "whoever loads a raft snapshot, or gives up, is where it would be by several replays, or the other way round"
SURVIVORS: dict[str, str] = {
    "Cluster.replay: guard 5, off by one": AT_ONCE,
    "Cluster.replay: no effect 1": AT_ONCE,
    "Cluster.load: no effect 1": AT_ONCE,
    "Memory.revert: guard 1 negated": "a state that is put back was there before; without a snapshot it is a reset",
}
"""Generated faults of the models that nobody can notice, and why."""


# ---- what shows rarely
def _in_32_bits(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


class FirstOf32Bits(ByChange):
    """A block begins where 32 bits of its first id say."""

    def change(self, result: BlockResult) -> BlockResult:
        first = _in_32_bits(result.block.first)
        return replace(result, block=ProducerIdsBlock(result.block.broker_id, first))


class BrokersOf16Bits(ProducerIdControl):
    """Of the broker that a record names 16 bits are kept."""

    def replay(self, record: ProducerIdsRecord) -> None:
        id = record.broker_id
        super().replay(replace(record, broker_id=id if id < 0 else id % 2**16))


class EpochsOf32Bits(ProducerIdControl):
    """Epochs are the same if their lower 32 bits are."""

    def check_broker(self, broker_id: int, broker_epoch: int) -> None:
        known = self.epoch_of(broker_id)
        if known is None or (known - broker_epoch) % 2**32:
            super().check_broker(broker_id, broker_epoch)


class AnyoneWithoutAnEpoch(ProducerIdControl):
    """An epoch of -1 is that of every registration."""

    def check_broker(self, broker_id: int, broker_epoch: int) -> None:
        if broker_epoch != -1 or self.epoch_of(broker_id) is None:
            super().check_broker(broker_id, broker_epoch)


class Epoch0IsNone(ProducerIdControl):
    """A broker that is registered with epoch 0 is taken for one that is not."""

    def check_broker(self, broker_id: int, broker_epoch: int) -> None:
        if self.epoch_of(broker_id) == 0:
            raise impl.UnregisteredBrokerError(f"No broker registration found for broker id {broker_id}")
        super().check_broker(broker_id, broker_epoch)


class FirstRegistrations(ProducerIdControl):
    """A broker is compared with what it was registered with when it asked first."""

    def __init__(self, registry: SnapshotRegistry, epoch_of: Callable[[int], int | None]) -> None:
        super().__init__(registry, epoch_of)
        self.seen: dict[int, int] = {}

    def check_broker(self, broker_id: int, broker_epoch: int) -> None:
        known = self.epoch_of(broker_id)
        if known is None or self.seen.setdefault(broker_id, known) != broker_epoch:
            super().check_broker(broker_id, broker_epoch)


class OneBlockMore(ProducerIdControl):
    """The next block may begin behind the last id that there is."""

    def generate(self, broker_id: int, broker_epoch: int) -> BlockResult:
        try:
            return super().generate(broker_id, broker_epoch)
        except impl.ExhaustedError:
            block = ProducerIdsBlock(broker_id, self.next_block.get().first)
            if block.next_first != impl.LAST_ID + 1:
                raise
            return BlockResult(block, (ProducerIdsRecord(broker_id, broker_epoch, impl.LAST_ID),))


class FirstFrom0(ProducerIdControl):
    """The first record may not say a negative id."""

    def replay(self, record: ProducerIdsRecord) -> None:
        if self.next_block.get() is impl.EMPTY and record.next_producer_id < 0:
            raise impl.ReplayError(
                f"Next Producer ID from replayed record ({record.next_producer_id}) is not greater than current next "
                f"Producer ID in block ({impl.EMPTY})"
            )
        super().replay(record)


class BlocksFrom0(ByChange):
    """Behind a record with a negative id the first block begins at 0."""

    def change(self, result: BlockResult) -> BlockResult:
        block = result.block
        return replace(result, block=ProducerIdsBlock(block.broker_id, max(0, block.first)))


class RevertsOfOneBroker(Driver):
    """A block of the same broker is not put back."""

    def revert_to_snapshot(self, epoch: int) -> None:
        before = self.subject.next_block.get()
        super().revert_to_snapshot(epoch)
        now = self.subject.next_block.get()
        if now is not impl.EMPTY and now.broker_id == before.broker_id:
            self.subject.next_block.set(before)


class ResetKeepsTheHighestEpoch(Driver):
    """A reset leaves the epoch of a broker, if it is the last that there is."""

    def reset_registry(self) -> None:
        before = self.subject.broker_epoch.get()
        super().reset_registry()
        if before == impl.LAST_ID:
            self.subject.broker_epoch.set(before)


class ImageOf32Bits(ProducerIdsImage):
    def records(self) -> Sequence[ProducerIdsRecord]:
        return [replace(r, next_producer_id=r.next_producer_id % 2**32) for r in super().records()]


RARE: list[Mutant] = [
    of_impl("blocks of 32 bits", "PID-4 PID-13", "they begin lower, far above", _of(FirstOf32Bits)),
    of_impl("brokers of 16 bits", "PID-8", "another one is remembered", _of(BrokersOf16Bits)),
    of_impl("epochs of 32 bits", "PID-3", "-1 is the last one", _of(EpochsOf32Bits)),
    of_impl("no epoch is any", "PID-3", "whatever the registration has", _of(AnyoneWithoutAnEpoch)),
    of_impl("epoch 0 is none", "PID-2 PID-4", "its broker gets no block", _of(Epoch0IsNone)),
    of_impl("first registrations", "PID-3", "of brokers that have asked stay good", _of(FirstRegistrations)),
    of_impl("one block more", "PID-7", "than 64 bits have room for", _of(OneBlockMore)),
    of_impl("first from 0", "PID-10", "a negative id is refused", _of(FirstFrom0)),
    of_impl("blocks from 0", "PID-4", "though the record before is negative", _of(BlocksFrom0)),
    of_impl("reverts of one broker", "PID-11", "its later block stays", lambda: RevertsOfOneBroker()),
    of_impl("deletes one more", "PID-11", "the snapshot at the epoch itself", DeletesOneMore),
    of_impl("a reset keeps the last", "PID-1", "epoch that there is", lambda: ResetKeepsTheHighestEpoch()),
    of_impl("an image of 32 bits", "PID-12", "the record says another id", _of_image(ImageOf32Bits)),
]
"""Those that show at the end of a number's range, or after a rare sequence."""

MUTANTS += RARE
