"""The protocol as the documentation tells it: the types of the specs' signatures are the types of what they answer."""

from __future__ import annotations

import doctest
import gzip
import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import orjson
import pytest
from jsonschema import Draft202012Validator

from kafkaspec.contract.codec import Unordered, decode, encode, optional, partial
from kafkaspec.contract.machine import Fields, Json, Machine, Refused
from kafkaspec.contract.numbers import Int64, Within
from kafkaspec.contract.subsystem import components
from kafkaspec.judge import protocol
from kafkaspec.judge.protocol import described, fields, json_schema, schema, word
from kafkaspec.judge.samples import Refusal, _in_turn, met
from kafkaspec.lockstep.walk import calls, draw_init

SCHEMA = json_schema()


def problems(name: str, value: Json) -> list[str]:
    """What is wrong with a value by a definition of the schema."""
    reference = {"$ref": "#/$defs/" + name.replace("~", "~0").replace("/", "~1"), "$defs": SCHEMA["$defs"]}
    plain = orjson.loads(orjson.dumps(value, default=float))
    return [f"{e.json_path}: {e.message}" for e in Draft202012Validator(reference).iter_errors(plain)]


def walked(
    machine: Machine[Any], seeds: int, steps: int
) -> Iterator[tuple[str, dict[str, Json], Json | Refused, Json]]:
    """Calls of walks: operation, arguments as they are sent, result, state after."""
    for seed in range(seeds):
        for _, op, arguments, step in calls(machine, random.Random(f"protocol {seed}"), steps):
            sent = {t: arguments[p] for t, p in op.parameters.items() if p not in op.chosen}
            yield op.name, sent, step.result, machine.observe(step.state)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", components())
def test_what_is_asked_and_answered_is_of_the_types_said(name: str) -> None:
    """Walks of the spec other than those that made the page."""
    machine = components()[name].spec.machine
    init = {
        "i": 0,
        "op": "init",
        "subsystem": name,
        "args": machine.init_names(draw_init(machine, random.Random(0).choice)),
    }
    assert problems(f"{name}.init", init) == []
    for op, arguments, result, state in walked(machine, 3, 40):
        assert problems(f"{name}.{op}", {"i": 1, "op": op, "args": arguments}) == [], op
        assert problems(f"{name}.state", state) == [], op
        if not isinstance(result, Refused):
            assert problems(f"{name}.{op}.result", result) == [], op


@pytest.mark.parametrize(
    ("name", "recording"),
    [(s.name, r) for s in components().values() for r in s.recordings if r.verdict == "accepted"],
    ids=lambda v: "" if isinstance(v, str) else v.file,
)
def test_so_are_recordings_of_the_real_thing(name: str, recording: Any) -> None:
    """Arguments may be left out in a recording; what is there is of its type. The first lines of each file, all
    operations among them that come up early."""
    machine = components()[name].spec.machine
    seen: set[str] = set()
    opened = gzip.open if recording.file.endswith(".gz") else open
    with opened(recording.path, "rb") as lines:
        for line in itertools.islice(lines, 2000):
            record = orjson.loads(line)
            op = record.get("op")
            if op in seen or op not in machine.operations or not machine.operations[op].generated:
                continue
            seen.add(op)
            if "result" in record:
                assert problems(f"{name}.{op}.result", record["result"]) == [], line
            if "state" in record:
                assert problems(f"{name}.state", record["state"]) == [], line


def test_what_is_wrong_is_found() -> None:
    good: dict[str, Any] = {"i": 1, "op": "assign", "args": {"epoch": 1, "startOffset": 2}}
    assert problems("leader_epochs.assign", good) == []
    for wrong in (
        {**good, "args": {"epoch": 1}},
        {**good, "args": {"epoch": "1", "startOffset": 2}},
        {**good, "args": {"epoch": 1, "startOffset": 2, "offset": 3}},
        {**good, "i": -1},
        {**good, "op": "asign"},
        {"i": 1, "op": "assign"},
    ):
        assert problems("leader_epochs.assign", wrong) != [], wrong
    assert problems("leader_epochs.endOffsetFor.result", {"epoch": 1, "endOffset": 2}) == []
    assert problems("leader_epochs.endOffsetFor.result", {"epoch": 1}) != []
    assert problems("leader_epochs.state", {"entries": [[0, 0]]}) == []  # what may be left out
    assert problems("leader_epochs.state", {"entries": [["0", 0]]}) != []
    assert problems("timeline.state", {"epochs": []}) != []  # what may not
    asked: dict[str, Any] = {"i": 1, "op": "endOffsetFor", "args": {"requestedEpoch": 0, "logEndOffset": 2**62}}
    assert problems("leader_epochs.endOffsetFor", asked) == []
    for offset in (2**62 + 1, -1):
        args = {**asked["args"], "logEndOffset": offset}
        assert problems("leader_epochs.endOffsetFor", {**asked, "args": args}) != []
    entries: dict[str, Any] = {"i": 1, "op": "leaderEpochCheckpoint.write", "args": {"entries": [[0, 2**31]]}}
    assert problems("leader_epochs.leaderEpochCheckpoint.write", entries) == []
    entries["args"]["entries"] = [[2**31, 0]]
    assert problems("leader_epochs.leaderEpochCheckpoint.write", entries) != []
    error = {"class": "A", "message": "b"}
    answers: list[dict[str, Any]] = [{"result": None}, {"error": {}}, {"error": error}, {"state": 1}, {"unknown": "a"}]
    for answer in answers:
        assert problems("answer", {"i": 1, **answer}) == [], answer
    answers = [{}, {"result": 1, "state": 2}, {"error": "no"}, {"error": {"code": 7}}, {"unknown": 7}]
    for answer in answers:
        assert problems("answer", {"i": 1, **answer}) != [], answer
    hello = {"protocol": 1, "name": "a", "version": "1", "subsystems": {"timeline": {}}}
    assert problems("hello.result", hello) == []
    assert problems("hello.result", {**hello, "subsystems": ["timeline"]}) != []
    in_part = {"log": {"values": {"roll": {"failAt": [None]}}}}
    assert problems("hello.result", {**hello, "subsystems": in_part}) == []
    in_part["log"]["values"]["roll"]["failAt"] = []
    assert problems("hello.result", {**hello, "subsystems": in_part}) != []


@pytest.mark.parametrize("name", components())
def test_every_operation_says_its_types(name: str) -> None:
    """A result that may be anything says nothing: the spec's `Step` must name its type."""
    d = described(components()[name])
    for call in d.calls:
        assert word(call.result) != "any", call.operation.name
        assert call.what, call.operation.name
        assert not re.match(r"[A-Z]{3}-\d+:", call.what), "the clauses stand in a column of their own"
        assert not set(call.operation.chosen) & {p.name for p in call.parameters}
    shows = d.subsystem.spec.machine.observe(d.subsystem.spec.machine.initial())
    assert (word(d.state) == "any") == (shows == {}), "the type of `observe`"
    if shows:
        assert all(f.needed for f in fields(d.state)) != isinstance(shows, Fields), "what may be left out is said so"


SAMPLE = ("timeline", "producer_state", "transaction_index")
"""Components whose walks `make test` looks at for examples; `make deep` at all."""


@pytest.mark.parametrize("name", [n if n in SAMPLE else pytest.param(n, marks=pytest.mark.deep) for n in components()])
def test_every_operation_has_an_example(name: str) -> None:
    """Walks come to all of them, so that the page shows each at work."""
    s = components()[name]
    missing = {c.operation.name for c in described(s).calls} - met(s).examples.keys()
    assert missing == set()


@partial
@dataclass(frozen=True)
class ShownPart:
    """What an observation shows."""

    size: int | None
    file: str | None = None


def test_what_is_none_by_default_is_left_out_of_a_partial_record() -> None:
    assert encode(ShownPart(4)) == {"size": 4}
    assert encode(ShownPart(None, "ab")) == {"size": None, "file": "ab"}
    assert [(f.name, word(f.hint), f.needed) for f in fields(ShownPart)] == [
        ("size", "integer | null", False),
        ("file", "string", False),
    ]


class Inner(TypedDict, total=False):
    """A part."""

    a: int
    """the a"""
    b: list[str] | None


class Outer(Inner):
    """The whole."""

    c: dict[str, Inner]
    """the c,
    in two lines"""


@dataclass(frozen=True)
class Argument:
    """One that may leave something out."""

    by_name: str
    times: int = optional(1)


def test_what_an_argument_may_leave_out() -> None:
    assert decode(Argument, {"byName": "a"}) == Argument("a", 1)
    assert decode(Argument, {"byName": "a", "times": 2}) == Argument("a", 2)
    for wrong in ({"times": 2}, {"byName": "a", "other": 2}, ["a"]):
        with pytest.raises((TypeError, KeyError)):
            decode(Argument, wrong)


def test_types_as_words_and_as_schema() -> None:
    assert doctest.testmod(protocol).failed == 0
    assert word(list[int | None]) == "(integer | null)[]"
    assert word(Literal["a", 1]) == '"a" | 1'
    assert (word(frozenset[int]), word(Unordered[str])) == ("integer[] in any order", "string[] in any order")
    assert word(dict[str, Outer]) == "{string: Outer}"
    assert word(Any) == "any"
    assert schema(Literal["a", 1], "x") == {"enum": ["a", 1]}
    assert schema(dict[str, Outer], "x/y") == {
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/x~1y.Outer"},
    }
    assert [(f.name, word(f.hint), f.needed, f.what) for f in fields(Outer)] == [
        ("a", "integer", False, "the a"),
        ("b", "string[] | null", False, ""),
        ("c", "{string: Inner}", True, "the c, in two lines"),
    ]
    small = Annotated[int, Within(-1, 7)]
    assert word(list[small | None]) == "(integer -1 to 7 | null)[]"
    assert word(tuple[Int64, ...]) == "(integer of 64 bits)[]"
    assert schema(list[small], "x") == {"type": "array", "items": {"type": "integer", "minimum": -1, "maximum": 7}}
    assert schema(Annotated[int, "of another kind"], "x") == {"type": "integer"}
    assert (word(bytes), schema(bytes, "x")) == ("string", {"type": "string"})
    assert [(f.name, f.needed) for f in fields(Argument)] == [("byName", True), ("times", False)]
    with pytest.raises(TypeError, match="no type of JSON"):
        word(complex)
    with pytest.raises(TypeError, match="no type of JSON"):
        schema(complex, "x")


# ---- which refusal is the answer
def test_of_two_refusals_that_apply_the_first_is_told() -> None:
    """As Kafka asks: version, producer epoch, coordinator epoch; and the epoch before the sequence."""
    said = met(components()["producer_state"])
    marker = [(r.clause, r.error.rpartition(".")[2]) for r in said.refusals["appendEndTxnMarker"]]
    assert marker == [
        ("PSM-11", "IllegalArgumentException"),
        ("PSM-11", "InvalidProducerEpochException"),
        ("PSM-12", "TransactionCoordinatorFencedException"),
    ]
    assert {*itertools.pairwise(said.refusals["appendEndTxnMarker"])} <= said.turns["appendEndTxnMarker"]
    data = {(a.clause, b.clause) for a, b in said.turns["appendDataBatch"]}
    assert ("PSM-6", "PSM-3") in data
    assert ("PSM-3", "PSM-6") not in data


def test_refusals_that_have_no_order_are_in_that_of_their_clauses() -> None:
    a, b, c = (Refusal(f"TOY-{n}", "X") for n in range(3))
    assert [*_in_turn([a, b, c], set())] == [a, b, c]
    assert [*_in_turn([a, b, c], {(c, a)})] == [b, c, a]
    assert [*_in_turn([a, b], {(a, b), (b, a)})] == [a, b], "a circle"


def test_a_record_may_stand_within_a_function() -> None:
    class OfTheFunction(TypedDict):
        count: int
        """how many"""

    assert [(f.name, f.what) for f in fields(OfTheFunction)] == [("count", "how many")]
