"""Numbers that a target chooses by itself: any will do, but each its own."""

from __future__ import annotations

import shlex
import sys

import orjson
import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.impl.storage import producer_state as impl
from kafkaspec.judge.campaign import judge
from kafkaspec.judge.check import check
from kafkaspec.judge.result import Job, SubsystemVerdict
from kafkaspec.judge.tokens import Tokens

MACHINE = find("producer_state").spec.machine


# ---- targets ---------------------------------------------------------------------------------------------------------
class Fourteens(impl.Driver):
    """Its guards are 1400, 1386, 1372, ..."""

    def guard(self, n: int) -> int:
        return 1400 - 14 * (n - 1) if n else 0

    def number(self, guard: int) -> int:
        return 1 + (1400 - guard) // 14 if guard else 0

    def start_verification(self, *arguments: int) -> int:
        return self.guard(super().start_verification(*arguments))  # type: ignore[arg-type]

    def produce(self, *arguments: int) -> object:  # type: ignore[override]
        return super().produce(*arguments[:-1], self.number(arguments[-1]))  # type: ignore[arg-type, call-arg]


class TheSame(Fourteens):
    """Every verification has the same guard."""

    def guard(self, n: int) -> int:
        return 7 if n else 0

    def number(self, guard: int) -> int:
        return self.subject.guards if guard else 0


class Another(Fourteens):
    """A verification has another guard each time that it is asked for."""

    asked = 0

    def start_verification(self, *arguments: int) -> int:
        self.asked += 1
        return super().start_verification(*arguments) and 100_000 * self.asked

    def number(self, guard: int) -> int:
        return self.subject.guards if guard else 0


def main(name: str) -> None:
    from kafkaspec.judge.serve import serve

    driver = {c.__name__: c for c in (Fourteens, TheSame, Another)}[name]()
    serve({"producer_state": (MACHINE, driver)}, sys.stdin.buffer, sys.stdout.buffer, name, "1")


def judged(driver: type[Fourteens], examples: int = 60) -> SubsystemVerdict:
    code = f"from tests.judge.test_tokens import main; main({driver.__name__!r})"
    return judge(Job("producer_state", shlex.join([sys.executable, "-c", code])), examples=examples)


def test_any_numbers_will_do() -> None:
    r = judged(Fourteens)
    assert (r.verdict, r.rejections) == ("accepted", ())
    assert r.tally.operations["startVerification"] > 20
    assert r.tally.refusals["produce PSM-27"] > 0


@pytest.mark.parametrize("driver", [TheSame, Another])
def test_each_has_its_own(driver: type[Fourteens]) -> None:
    r = judged(driver)
    assert r.verdict == "rejected"
    assert {x.operation for x in r.rejections} & {"startVerification", "produce"}


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
