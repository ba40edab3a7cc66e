"""What earlier logs do otherwise: how far they are compared."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from kafkaspec.contract.history import Record, parse
from kafkaspec.contract.machine import Step
from kafkaspec.judge.check import check
from kafkaspec.spec.storage import log_released
from kafkaspec.spec.storage.log import machine

STORAGE = "!! org.apache.kafka.common.errors.KafkaStorageException"
RECORD = log_released.RECORD
OPENED = f"appendAsLeader {RECORD} producerId=1 producerEpoch=0 baseSequence=0 transactional=true"
MARKER = (
    'appendEndTxnMarker producerId=1 producerEpoch=0 type="ABORT" coordinatorEpoch=0 transactionVersion=2 timestamp=0 '
    "leaderEpoch=0"
)
WITHIN = ("updateHighWatermark offset=1 -> 1", "maybeIncrementLogStartOffset offset=1 -> true")
TWO = OPENED.replace('[["k","v"]]', '[["k","v"],["k","v"]]')


def judged(*calls: str, release: str = "3.9.1", init: str = "init") -> tuple[str, int | None, list[str]]:
    """The verdict on calls with their answers, at which step, and the known deviations."""
    records = parse("\n".join((init, *calls)), "calls").records
    verdict = check(machine, [orjson.dumps({"i": i, **r}) for i, r in enumerate(records)], release=release)
    return verdict.verdict, verdict.step, [*verdict.deviations]


def test_the_earlier_log_goes_on_with_a_marker_that_it_took() -> None:
    refused = "!! org.apache.kafka.common.errors.InvalidProducerEpochException"
    took = [
        OPENED,
        MARKER,
        f"{MARKER.replace('Epoch=0 type', 'Epoch=1 type')}",
        'read offset=9 maxLength=0 isolation="LOG_END" minOneMessage=false '
        "!! org.apache.kafka.common.errors.OffsetOutOfRangeException",
        "truncateTo offset=2 -> true",
        "truncateTo offset=2 -> false",
    ]
    assert judged(*took) == ("accepted", None, ["LOG-D4"])
    assert judged(*took, release="4.3.0")[:2] == ("rejected", 5)
    assert judged(OPENED, f"{MARKER} {refused}", release="4.3.0")[0] == "accepted"
    assert judged(OPENED, f"{MARKER} {refused}")[0] == "accepted"  # whoever has the rule is right in any release


@pytest.mark.parametrize(
    ("before", "effect", "named"),
    [((OPENED,), "bytes", ["LOG-D4"]), ((TWO, *WITHIN), "txnIndex", ["LOG-D2", "LOG-D4"])],
)
def test_nothing_is_compared_once_one_of_the_two_alone_is_out_of_service(
    before: tuple[str, ...], effect: str, named: list[str]
) -> None:
    calls = (*before, f'{MARKER} failAt="{effect}" {STORAGE}')
    verdict, step, met = judged(*calls, f"roll {STORAGE}", 'parseTopicPartitionName name="t-0"')
    assert (verdict, step) == ("accepted", None)
    assert set(met) <= set(named)
    assert judged(*calls, release="4.3.0")[:2] == ("rejected", len(calls))


# ---- 2.8 -------------------------------------------------------------------------------------------------------------
YOUNG, OLD = (f'appendAsLeader leaderEpoch=0 timestamp={t} records=[["k","v"]]' for t in (1_000_000, 0))
IN_TWO_PASSES = (YOUNG, "roll -> 1", OLD, "updateHighWatermark offset=2", "maybeIncrementLogStartOffset offset=1")


def test_a_pass_of_retention_that_leaves_something_is_explained_by_the_order_of_its_rules_alone() -> None:
    def old(*counts: int) -> tuple[str, ...]:
        return *IN_TWO_PASSES, *(f"deleteOldSegments -> {n}" for n in counts)

    def asked(*counts: int, release: str) -> tuple[str, int | None, list[str]]:
        init, *calls = old(*counts)
        records = parse("\n".join(("init retentionMs=1000", init, *calls)), "calls").records
        verdict = check(machine, [orjson.dumps({"i": i, **r}) for i, r in enumerate(records)], release=release)
        return verdict.verdict, verdict.step, [*verdict.deviations]

    assert asked(1, 1, 0, release="2.8.2") == ("accepted", None, ["LOG-D6"])
    assert asked(2, 0, release="2.8.2")[0] == "accepted"  # whoever has the rule is right in any release
    assert asked(0, release="2.8.2")[:2] == ("rejected", 6)
    assert asked(1, release="3.9.1")[:2] == ("rejected", 6)


def test_a_release_has_the_deviations_of_its_own() -> None:
    of = {r: log_released._began(r).ids for r in (None, "3.9.1", "3.7.1", "3.7.0", "2.8.2")}
    assert of[None] == set()
    assert of["3.9.1"] == {"LOG-D2", "LOG-D3", "LOG-D4", "LOG-D5"}
    assert of["3.7.0"] - of["3.7.1"] == {"LOG-D7"}
    assert of["2.8.2"] == {f"LOG-D{n}" for n in range(2, 17)}


def snapshots(call: str, *offsets: int) -> Record:
    """A call, behind which the snapshots are looked at."""
    (record,) = parse(f"init\n{call}", "call").records[1:]
    return {**record, "state": {"snapshots": list(offsets)}}


def test_the_snapshot_of_a_segment_goes_later_by_its_offset_whoever_has_taken_it() -> None:
    """A segment is cut away, its snapshot with it. A roll takes another one at that offset, which goes instead."""
    calls = [
        snapshots(YOUNG),
        snapshots("roll -> 1", 1),
        snapshots(YOUNG, 1),
        snapshots("truncateTo offset=0 -> true"),
        snapshots(YOUNG),
        snapshots("roll -> 1", 1),
        snapshots("advance ms=59999", 1),
    ]

    def asked(*more: Record, release: str) -> tuple[str, int | None, list[str]]:
        records: list[Record] = [{"op": "init", "args": {}}, *calls, *more]
        verdict = check(machine, [orjson.dumps({"i": i, **r}) for i, r in enumerate(records)], release=release)
        return verdict.verdict, verdict.step, [*verdict.deviations]

    assert asked(snapshots("advance ms=1"), snapshots("roll -> 1"), release="2.8.2") == ("accepted", None, ["LOG-D8"])
    assert asked(snapshots("advance ms=1", 1), release="2.8.2") == ("accepted", None, [])
    assert asked(snapshots("advance ms=1"), release="3.0.0")[:2] == ("rejected", 8)
    assert asked(snapshots("roll -> 1"), release="2.8.2")[:2] == ("rejected", 8)  # not before its time


def test_what_a_follower_took_of_the_next_leader_is_in_its_log() -> None:
    batch = 'appendAsFollower leaderEpoch=%d baseOffset=%d batchLeaderEpoch=1 timestamp=0 records=[["k","v"]]'
    nothing = '{"leaderEpoch":0,"offset":1}'
    calls = (batch % (0, 0), f"endOffsetForEpoch leaderEpoch=0 -> {nothing.replace('1}', '0}')}")
    took = (*calls, batch % (1, 0) + " !! org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException")
    verdict, step, met = judged(*took, release="2.8.2")
    assert (verdict, step, met) == ("accepted", None, ["LOG-D10"])
    assert judged(*took, release="3.9.1")[:2] == ("rejected", 2)


def test_a_log_that_leaves_is_compared_with_what_the_line_shows_whichever_deviation_explains_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two have led it away. One explains the call after which nothing can be compared, the other says that it is so."""
    known = [replace(d, lost=d.lost and (lambda g, id=d.id: g.left and id == "LOG-D11")) for d in machine.deviations]
    monkeypatch.setattr(machine, "known", known)
    calls = [
        OPENED,
        MARKER,
        "fetchOffsetByTimestamp timestamp=-4",
        "assignEpochStartOffset leaderEpoch=0 offset=1",  # its log ends at 2
        "updateHighWatermark offset=0",
    ]
    state, ghost = machine.initial(), log_released._began("2.8.2")
    lines = [orjson.dumps({"i": 0, "op": "init", "args": {}, "result": None, "state": machine.observe(state)})]
    for i, record in enumerate(parse("\n".join(("init", *calls)), "calls").records[1:], 1):
        op = machine.find(record["op"])
        arguments = {**op.defaults, **{op.parameters[k]: v for k, v in record["args"].items()}}
        step = machine.apply(state, op.name, arguments)
        assert isinstance(step, Step)
        ghost, state = log_released._advance(ghost, state, op.name, arguments, step.state), step.state
        assert ghost.state is not None
        shown = {"result": ghost.result, "state": machine.observe(ghost.state)}
        lines.append(orjson.dumps({"i": i, **record, **shown}))
    assert ({*ghost.causes}, ghost.left, ghost.known) == ({"LOG-D4", "LOG-D11"}, True, False)
    verdict = check(machine, lines, release="2.8.2")
    assert (verdict.verdict, [*verdict.deviations]) == ("accepted", ["LOG-D4", "LOG-D11"])


def test_a_load_that_its_log_cannot_make_is_not_compared_nor_what_follows() -> None:
    """2.8.2 has refused a batch, and begins again at the log start, which is above its end: LDR-9 asks for no such."""
    refused = 'appendAsLeader leaderEpoch=0 timestamp=2000001 records=[["k","v"]] !! '
    refused += "org.apache.kafka.storage.internals.log.RecordValidationException"
    load = "crashAndReopen logStartOffset=2 recoveryPoint=0 lastShutdownClean=false"
    calls = (f"appendAsLeader {RECORD}", refused, f"{load} !! java.lang.NullPointerException", "roll -> 77")
    init = "init messageTimestampBeforeMaxMs=1000000"
    assert judged(*calls, release="2.8.2", init=init) == ("accepted", None, ["LOG-D14"])
    within = load.replace("logStartOffset=2", "logStartOffset=1")
    assert judged(*calls[:2], f"{within} !! java.lang.NullPointerException", release="2.8.2", init=init)[:2] == (
        "rejected",
        3,
    )


def test_a_segment_that_kept_a_timestamp_and_no_batch_counts_by_it() -> None:
    """By the time of its file it would hold every timestamp."""
    later = 'appendAsLeader leaderEpoch=0 timestamp=1 records=[["k","v"]]'
    calls = (
        f'appendAsLeader {RECORD.replace("]]", "]," + """["k","v"]]""")}',
        "roll",
        "truncateTo offset=1",
        "roll",
        later,
    )
    found = 'fetchOffsetByTimestamp timestamp=1 -> {"timestamp":1,"offset":1,"leaderEpoch":0}'
    assert judged(*calls, found, release="2.8.2")[0] == "accepted"
    assert judged(*calls, "fetchOffsetByTimestamp timestamp=1 -> null", release="4.3.0")[0] == "accepted"
