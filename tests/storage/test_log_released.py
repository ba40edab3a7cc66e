"""What logs before 4.0 do otherwise: how far they are compared."""

from __future__ import annotations

import orjson
import pytest

from kafkaspec.contract.history import parse
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


def judged(*calls: str, release: str = "3.9.1") -> tuple[str, int | None, list[str]]:
    """The verdict on calls with their answers, at which step, and the known deviations."""
    records = parse("\n".join(("init", *calls)), "calls").records
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
