"""Numbers that a target chooses by itself: any will do, but each its own."""

from __future__ import annotations

from typing import Literal

import orjson
import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.judge.campaign import judge
from kafkaspec.judge.check import check
from kafkaspec.judge.result import Job, SubsystemVerdict
from kafkaspec.judge.tokens import Tokens
from tests.judge.token_targets import Another, Fourteens, TheSame, command

MACHINE = find("producer_state").spec.machine


# ---- targets ---------------------------------------------------------------------------------------------------------
def judged(driver: type[Fourteens], generator: Literal["guided", "uniform"], fail_fast: bool) -> SubsystemVerdict:
    return judge(Job("producer_state", command(driver), generator=generator, fail_fast=fail_fast), examples=80)


@pytest.mark.parametrize("generator", ["uniform", pytest.param("guided", marks=pytest.mark.deep)])
def test_any_numbers_will_do(generator: Literal["guided", "uniform"]) -> None:
    r = judged(Fourteens, generator, False)
    assert (r.verdict, r.rejections) == ("accepted", ())
    assert r.tally.operations["startVerification"] > 20
    assert r.tally.refusals["produce PSM-27"] > 0


@pytest.mark.parametrize("driver", [TheSame, Another])
def test_each_has_its_own(driver: type[Fourteens]) -> None:
    r = judged(driver, "uniform", True)
    assert r.verdict == "rejected"
    assert {x.operation for x in r.rejections} <= {"startVerification", "produce"}


# ---- the lines of a connection ---------------------------------------------------------------------------------------
def line(op: str, **args: object) -> bytes:
    return orjson.dumps({"i": 0, "op": op, "args": args})


def result(value: object) -> bytes:
    return orjson.dumps({"i": 0, "result": value})


def test_numbers_are_replaced_both_ways() -> None:
    t = Tokens(MACHINE)
    assert t
    init, start = line("init"), line("startVerification", producerId=1)
    assert [t.asked(init), t.asked(start, 1)] == [init, start]
    with_one, with_none = line("produce", guard=1), line("produce", guard=0)
    assert t.asked(with_one) is None, "the answer must be read first"
    assert t.asked(with_none) == with_none
    assert [t.answered(x) for x in (result(None), result(77), result({}))] == [result(None), result(1), result({})]
    assert t.asked(with_one) == line("produce", guard=77)
    assert t.asked(line("produce", guard=2)) == line("produce", guard=2), "it was not handed out"
    assert t.asked(start) == start
    assert t.asked(start) == start
    answers = [result({}), result({}), result(77), result(0)]
    assert [t.answered(x) for x in answers] == [result({}), result({}), result(1), result(0)]
    assert t.asked(init) == init
    assert t.asked(with_one) == with_one, "another history"


@pytest.mark.parametrize("wrong", [b"", b"{", b"[]", b'{"result":true}', b'{"result":"7"}', b'{"error":{}}'])
def test_an_answer_that_is_no_number_stays_as_it_is(wrong: bytes) -> None:
    t = Tokens(MACHINE)
    t.asked(line("startVerification", producerId=1))
    assert t.answered(wrong) == wrong
    assert t.asked(line("produce", guard=1)) == line("produce", guard=1)


def test_other_subsystems_have_none() -> None:
    assert not Tokens(find("leader_epochs").spec.machine)


# ---- a trace ---------------------------------------------------------------------------------------------------------
def test_a_recording_may_have_any_numbers() -> None:
    def trace(first: int, given: int) -> list[bytes]:
        batch = {
            "producerId": 4, "origin": "CLIENT", "producerEpoch": 0, "firstSeq": 0, "lastSeq": 0,
            "firstOffset": 0, "lastOffset": 0, "timestamp": 5, "transactional": True,
        }  # fmt: skip
        verification = {"producerId": 4, "sequence": 0, "epoch": 0, "supportsEpochBump": False}
        return [
            orjson.dumps({"op": "startVerification", "args": verification, "result": first}),
            orjson.dumps({"op": "produce", "args": {**batch, "guard": given}, "result": {"startedTransactions": [0]}}),
        ]

    for first, given, said in [(1, 1, "accepted"), (77, 77, "accepted"), (77, 0, "rejected")]:
        assert check(MACHINE, trace(first, given), name="t").verdict == said, (first, given)
