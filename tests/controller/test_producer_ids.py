"""Blocks of producer ids: the implementation beside the spec, each rule with values, the models, the recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkaspec.contract.codec import encode
from kafkaspec.contract.machine import Refused
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import find
from kafkaspec.explore.checked import Expectation
from kafkaspec.impl.controller import records
from kafkaspec.impl.controller.producer_ids_driver import Driver
from kafkaspec.judge.check import check
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.lockstep.exhaustive import check_refinement
from kafkaspec.models.controller import producer_ids as model
from kafkaspec.mutants.matrix import (
    explorer_detector,
    kill_matrix,
    lockstep_detector,
    mutants_of,
    prover_detector,
    written,
)
from kafkaspec.proofs.controller.producer_ids import PROOFS
from kafkaspec.prove.proof import Proof
from kafkaspec.spec.common.kafka import LONG_MAX
from kafkaspec.spec.controller.producer_ids import (
    EMPTY,
    Allocation,
    Block,
    Memory,
    Record,
    image_records,
    machine,
)
from tests.layers import Histories, a_row_of_verify, some_are_killed, walked

Call = tuple[str, dict[str, Any]]


CALLS = Histories(machine, Driver, brokers=((0, 100), (1, 7)))
answered, after, refused = CALLS.answered, CALLS.after, CALLS.refused


def ask(broker_id: int = 0, broker_epoch: int = 100, replayed: bool = True) -> Call:
    arguments = {"broker_id": broker_id, "broker_epoch": broker_epoch, "replayed": replayed}
    return "generateNextProducerId", arguments


def replay(said: int, broker_id: int = 0, broker_epoch: int = 100) -> Call:
    return "replay", {"broker_id": broker_id, "broker_epoch": broker_epoch, "next_producer_id": said}


def snapshot(epoch: int) -> Call:
    return "getOrCreateSnapshot", {"epoch": epoch}


def revert(epoch: int) -> Call:
    return "revertToSnapshot", {"epoch": epoch}


def register(broker_id: int, broker_epoch: int) -> Call:
    return "registerBroker", {"broker_id": broker_id, "broker_epoch": broker_epoch}


RESET: Call = ("reset", {})
STALE = "org.apache.kafka.common.errors.StaleBrokerEpochException"
FULL = "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit"


def test_spec_and_implementation_agree_on_seeded_walks() -> None:
    covered = walked(machine, Driver, seeds=30, steps=100)
    refusals = {name.split()[-1] for name, n in covered.refusals.items() if n}
    assert refusals == {"PID-2", "PID-3", "PID-7", "PID-9"}


@pytest.mark.clause("PID-1")
@pytest.mark.parametrize("calls", [(), (ask(), snapshot(3), ask(1, 7), RESET)])
def test_at_first_there_is_no_block(calls: tuple[Call, ...]) -> None:
    state = after(*calls)
    assert (state.next, state.present.broker_epoch, state.past) == (Block(-1, 0, 0), 0, ())
    assert state.present.brokers == (() if calls else ((0, 100), (1, 7)))


@pytest.mark.clause("PID-2")
def test_a_broker_that_is_not_registered_gets_no_block() -> None:
    assert refused(ask(2)) == Refused("PID-2", STALE, "No broker registration found for broker id 2")
    assert refused(ask(1, 7), ("unregisterBroker", {"broker_id": 1}), ask(1, 7)).clause == "PID-2"


@pytest.mark.clause("PID-3")
@pytest.mark.parametrize("epoch", [99, 101, -1])
def test_a_broker_asks_with_the_epoch_of_its_registration(epoch: int) -> None:
    assert refused(ask(0, epoch)) == Refused("PID-3", STALE, f"Expected broker epoch 100, but got broker epoch {epoch}")
    assert refused(ask(), register(0, 130), ask()).message == "Expected broker epoch 130, but got broker epoch 100"


@pytest.mark.clause("PID-4", "PID-5", "PID-8")
def test_blocks_lie_one_behind_the_other() -> None:
    state, answers = answered(ask(), ask(1, 7))
    assert answers == [
        encode(Allocation(0, 1000, (Record(0, 0, 100, 1000),), False, 0)),
        encode(Allocation(1000, 1000, (Record(0, 1, 7, 2000),), False, 1)),
    ]
    assert (state.next, state.present.broker_epoch) == (Block(1, 2000, 1000), 7)


@pytest.mark.clause("PID-6")
def test_until_the_record_is_replayed_all_are_given_the_same_block() -> None:
    state, answers = answered(ask(replayed=False), ask(1, 7, replayed=False), ask())
    assert [a["firstProducerId"] for a in answers] == [0, 0, 0]
    assert state == after(ask())


@pytest.mark.clause("PID-7")
def test_a_block_ends_within_64_bits() -> None:
    state, answers = answered(replay(LONG_MAX - 1000), ask())
    assert (answers[-1]["firstProducerId"], state.next.first) == (LONG_MAX - 1000, LONG_MAX)
    for last in (LONG_MAX - 999, LONG_MAX):
        refusal = refused(replay(last), ask())
        assert refusal == Refused("PID-7", "org.apache.kafka.common.errors.UnknownServerException", FULL)
    assert refused(replay(LONG_MAX), ask(0, 99)).clause == "PID-3"


@pytest.mark.clause("PID-8")
def test_a_record_says_where_the_next_block_begins() -> None:
    state = after(replay(5, broker_id=9, broker_epoch=-1), replay(6, broker_id=3, broker_epoch=44))
    assert state.present == Memory(Block(3, 6, 1000), 44, ((0, 100), (1, 7)))


@pytest.mark.clause("PID-9")
@pytest.mark.parametrize("said", [2000, 1999, 0, -1])
@pytest.mark.parametrize("broker", [0, 1, -1])
def test_a_record_moves_the_next_block_up(said: int, broker: int) -> None:
    assert refused(ask(), ask(), replay(said, broker)) == Refused(
        "PID-9",
        "java.lang.RuntimeException",
        f"Next Producer ID from replayed record ({said}) is not greater than current next Producer ID in block "
        "(ProducerIdsBlock(assignedBrokerId=0, firstProducerId=2000, size=1000))",
    )
    assert after(ask(), ask(), replay(2001, broker)).next == Block(broker, 2001, 1000)


@pytest.mark.clause("PID-9", "PID-12")
def test_the_record_of_a_raft_snapshot_counts() -> None:
    """It names nobody, as the block does that there is at first."""
    assert refused(RESET, replay(3000, -1, -1), replay(3000)).clause == "PID-9"


@pytest.mark.clause("PID-10")
@pytest.mark.parametrize("said", [0, -5, -(2**63), LONG_MAX])
def test_the_first_record_says_any_id(said: int) -> None:
    assert after(replay(said)).next == Block(0, said, 1000)
    assert after(ask(), ask(), RESET, replay(said)).next == Block(0, said, 1000)
    assert refused(replay(said), replay(said)).clause == "PID-9"


@pytest.mark.clause("PID-10", "PID-4")
def test_after_a_negative_id_the_block_has_negative_ids() -> None:
    assert answered(replay(-1500), ask())[1][-1]["firstProducerId"] == -1500


@pytest.mark.clause("PID-11")
def test_all_goes_back_together() -> None:
    """KAFKA-12792: what is not on the timeline stays."""
    calls = (register(2, 1), ask(2, 1), snapshot(4), register(2, 5), ask(1, 7), ask(2, 5), snapshot(9), ask(2, 5))
    state = after(*calls, revert(4))
    assert state.present == Memory(Block(2, 1000, 1000), 1, ((0, 100), (1, 7), (2, 1)))
    assert state.epochs == [4]
    assert answered(*calls, revert(4), ask())[1][-1]["firstProducerId"] == 1000
    assert after(*calls, revert(9)).next == Block(2, 3000, 1000)
    assert after(snapshot(-1), ask(), revert(-1)).next == EMPTY
    assert after(snapshot(-1), ask(), revert(-1), replay(-3)).next.first == -3
    assert after(*calls, ("deleteSnapshotsUpTo", {"epoch": 9})).epochs == [9]


@pytest.mark.clause("PID-12")
def test_a_raft_snapshot_has_one_record() -> None:
    assert [image_records(ids) for ids in ([], [-1], [0], [1000, 2000], [2000, 1000], [5, -2])] == [
        [],
        [],
        [Record(0, -1, -1, 0)],
        [Record(0, -1, -1, 2000)],
        [Record(0, -1, -1, 1000)],
        [],
    ]
    (record,) = image_records([1000, 2000])
    loaded = after(RESET, replay(record.next_producer_id, record.broker_id, record.broker_epoch))
    assert (loaded.next.first, loaded.present.broker_epoch) == (2000, -1)


@pytest.mark.clause("PID-13")
def test_no_id_is_in_two_blocks() -> None:
    """Of one controller that asks, loses what was not committed, loads a raft snapshot, and replays another's."""
    calls = (
        ask(), snapshot(0), ask(1, 7), revert(0), ask(1, 7), replay(5500, 1, 7), ask(), RESET, replay(6500, -1, -1),
        register(0, 8), ask(0, 8),
    )  # fmt: skip
    _, answers = answered(*calls)
    first = [a["firstProducerId"] for a in answers if isinstance(a, dict)]
    assert first == [0, 1000, 1000, 5500, 6500]  # the one at 1000 was undone, and is given once more


@pytest.mark.clause("PID-5")
def test_the_record_in_the_log() -> None:
    """As the codec of metadata records writes it: of type 15, in version 0, and then the three numbers."""
    (said,) = answered(ask(1, 7))[1][0]["records"]
    version = said.pop("version")
    written_down = records.record("ProducerIdsRecord", version, **said)
    value = records.encode(written_down)
    assert value == bytes.fromhex("010f00 00000001 0000000000000007 00000000000003e8 00")
    assert records.decode(value) == written_down


# models, proofs, mutants, recordings

FAULTS = written(find("producer_ids"))


def test_some_written_mutants_are_killed() -> None:
    some_are_killed(find("producer_ids"), FAULTS, 5, (lockstep_detector(6), lockstep_detector()))


@pytest.mark.deep
def test_written_mutants_are_killed() -> None:
    rows = kill_matrix(find("producer_ids"), FAULTS, [lockstep_detector(), explorer_detector()])
    assert [row.wrong for row in rows if row.wrong] == []


@pytest.mark.deep
def test_every_generated_mutant_is_killed_or_has_a_reason_to_live() -> None:
    faults = [m for m in mutants_of(find("producer_ids")) if m.generated]
    rows = kill_matrix(find("producer_ids"), faults, [explorer_detector(), prover_detector()])
    assert [row.wrong for row in rows if row.wrong] == []


@a_row_of_verify
def test_the_spec_does_what_the_model_says() -> None:
    (how,) = find("producer_ids").refinements
    done = check_refinement(machine, how)
    assert done.problem is None, str(done.problem)
    assert done.states == done.reachable == 632


@a_row_of_verify
@pytest.mark.parametrize("checked", model.MODELS, ids=lambda c: c.name)
def test_a_model_is_explored(checked: Expectation) -> None:
    assert checked.run().findings == []


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.model.__name__)
def test_a_model_is_proved_for_every_size(proof: Proof) -> None:
    proved = proof.run()
    assert [f"{o.verdict}: {o.action} keeps {o.claim}" for o in proved.obligations if o.verdict != "proved"] == []
    assert proved.complete


RECORDINGS = find("producer_ids").recordings


@a_row_of_verify
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.file)
def test_recordings_get_their_verdict(recording: Recording) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


TRACE = next(r for r in RECORDINGS if r.file == "producer-ids.ndjson")


def rejected(records: list[Any], to: Path) -> tuple[int | None, str | None]:
    """Where a recording is, and by which clause."""
    file = to / "altered.ndjson"
    file.write_bytes(b"\n".join(map(orjson.dumps, records)))
    verdict = check(machine, file)
    assert verdict.verdict == "rejected"
    return verdict.step, verdict.clause


def lines(n: int) -> list[Any]:
    """The first of the recording, that one included."""
    return [orjson.loads(line) for line in TRACE.path.read_bytes().splitlines()[: n + 1]]


@pytest.mark.parametrize(
    ("at", "where", "value", "clause"),
    [
        (1, ("state", "nextProducerId"), 1000, "PID-1"),
        (2, ("result", "firstProducerId"), 1, "PID-4"),
        (2, ("result", "size"), 999, "PID-4"),
        (2, ("result", "atomic"), True, "PID-5"),
        (2, ("result", "records", 0, "nextProducerId"), 0, "PID-5"),
        (2, ("result", "records", 0, "brokerEpoch"), -1, "PID-5"),
        (2, ("result", "records", 0, "brokerId"), 1, "PID-5"),
        (2, ("state", "nextProducerId"), 2000, "PID-10"),
        (5, ("result", "firstProducerId"), 0, "PID-4"),
        (6, ("state", "nextProducerId"), 2000, "PID-11"),
        (7, ("state", "snapshotEpochs"), [-1, 1, 2], "PID-11"),
        (8, ("result", "firstProducerId"), 2000, "PID-4"),
        (23, ("error", "message"), "No broker registration found for broker id 0", "PID-2"),
        (23, ("state", "nextProducerId"), 5000, "PID-2"),
    ],
)
def test_altered_recordings_are_rejected(
    at: int, where: tuple[Any, ...], value: Any, clause: str, tmp_path: Path
) -> None:
    altered = lines(at)
    part = altered[at]
    for key in where[:-1]:
        part = part[key]
    assert part[where[-1]] != value
    part[where[-1]] = value
    step, cited = rejected(altered, tmp_path)
    assert step == at
    assert cited in {clause, *machine.find(altered[at]["op"]).clauses}


def test_a_refusal_that_is_left_out_is_rejected(tmp_path: Path) -> None:
    altered = lines(23)
    del altered[23]["error"]
    altered[23]["result"] = {**altered[22]["result"], "firstProducerId": 4000}
    assert rejected(altered, tmp_path) == (23, "PID-2")
