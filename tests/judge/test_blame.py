"""A rejection names the rule that explains it: by a fault of the spec, a refusal, what governs a field, and so on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import pytest
from icontract import ensure

from kafkaspec.contract.governs import governs, reveals
from kafkaspec.contract.history import Record, outcome
from kafkaspec.contract.machine import Json, Machine, Refused, Step
from kafkaspec.contract.subsystem import find
from kafkaspec.judge.blame import BROKEN, Place, cited, governing
from kafkaspec.judge.cover import Endless, otherwise, watched
from kafkaspec.judge.result import Rejection, distinct
from kafkaspec.judge.suspects import MOST_CALLS, changed, explanations, kept
from kafkaspec.judge.verdict import Verdict
from kafkaspec.mutants.judge import OfMachine
from kafkaspec.spec.common import record_format
from tests.judge import toy
from tests.judge.toy import machine

Calls = Sequence[tuple[str, dict[str, Any]]]


def played(of: Machine[Any], calls: Calls, answers: OfMachine | None = None) -> list[Record]:
    """A history as the spec answers it, or a faulty one."""
    target = answers or OfMachine(of)
    target.reset({})
    records: list[Record] = [{"op": "init", "args": {}, "result": None, "state": target.observe()}]
    for name, arguments in calls:
        op = of.find(name)
        answer = outcome(target.apply(name, {op.parameters[t]: v for t, v in arguments.items()}))
        records.append({"op": name, "args": arguments, **answer, "state": target.observe()})
    return records


def seen(calls: Calls, outcome: dict[str, Any], state: Json = None) -> list[Record]:
    """A history of the toy whose last call was answered so, its state as it is by the spec unless it is said."""
    *before, last = played(machine, calls)
    told = {k: v for k, v in last.items() if k not in ("result", "error")} | outcome
    return [*before, told if state is None else {**told, "state": state}]


def blind(records: Sequence[Record]) -> list[Record]:
    """The history without what was shown of the state."""
    return [{k: v for k, v in r.items() if k != "state"} for r in records]


HELD = [("acquire", {"client": 1})]
LATE = [*HELD, ("advance", {"ms": toy.TERM_MS})]
STALE = [*LATE, ("acquire", {"client": 2})]


SHIFTED = "were decided the other way where both are equal"
HELD_BY_1 = {"error": {"class": "LeaseHeld"}}
TOO_LATE = {"error": {"class": "StaleEpoch"}}


@pytest.mark.parametrize(
    ("calls", "answer", "text", "how", "clause"),
    [
        ([*HELD, ("acquire", {"client": 2})], {"result": 2}, "state.live", "never held", "TOY-1"),
        ([*LATE, ("acquire", {"client": 2})], HELD_BY_1, "self.now < self.until", SHIFTED, "TOY-1"),
        ([*STALE, ("write", {"epoch": 1, "value": 7})], {"result": None}, "epoch < state.epoch", "never held", "TOY-2"),
        ([*STALE, ("write", {"epoch": 2, "value": 7})], TOO_LATE, "epoch < state.epoch", SHIFTED, "TOY-2"),
    ],
)
def test_the_condition_that_was_decided_otherwise_is_named(
    calls: Calls, answer: dict[str, Any], text: str, how: str, clause: str
) -> None:
    found = explanations(machine, blind(seen(calls, answer)))
    assert (text, how) in [(b.text, b.how) for b in found]
    assert all(b.exact for b in found)
    assert cited(machine, blind(seen(calls, answer))).clauses[0] == clause


def test_the_nearest_fault_comes_first() -> None:
    found = explanations(machine, blind(seen([*STALE, ("write", {"epoch": 2, "value": 7})], TOO_LATE)))
    assert [b.how for b in found] == [SHIFTED, "always held", "were decided the other way"]


def test_what_no_fault_explains_is_not_blamed_on_one() -> None:
    records = seen([*STALE, ("write", {"epoch": 2, "value": 7})], {"result": 3})
    assert not explanations(machine, records)
    assert cited(machine, records).blame is None
    assert cited(machine, records).clauses[0] == "TOY-2"


def test_the_state_after_the_call_counts_as_well() -> None:
    calls = [*STALE, ("write", {"epoch": 1, "value": 7})]
    shown = played(machine, STALE)[-1]["state"]
    assert not explanations(machine, seen(calls, {"result": None}, shown))
    assert explanations(machine, seen(calls, {"result": None}, {**shown, "written": [7]}))


def test_a_fault_stays_for_the_whole_history() -> None:
    """A condition that would explain the last answer, but not one before, explains nothing."""
    write = ("write", {"epoch": 2, "value": 7})
    assert not explanations(machine, blind(seen([*STALE, write, write], TOO_LATE)))
    assert explanations(machine, blind(seen([*STALE, write], TOO_LATE)))


def test_of_two_faults_the_one_that_explains_the_other_histories_too_is_the_nearest() -> None:
    records = blind(seen([*HELD, ("acquire", {"client": 2})], {"result": 2}))
    at_once = {(b.text, b.how) for b in explanations(machine, records)}
    client, live = ("state.holder != client", "were decided the other way"), ("state.live", "never held")
    assert {client, live} <= at_once
    ours = blind(played(machine, [*HELD, ("acquire", {"client": 1})]))
    found = explanations(machine, records, [ours])
    assert {(b.text, b.how) for b in found if b.exact} == at_once - {client}
    refuted = found[-1]
    assert (refuted.text, refuted.how, refuted.agrees, refuted.of) == (*client, 0, 1)
    assert str(refuted).endswith("; near: so in 0 of 1 other histories")


def test_only_so_many_of_the_other_histories_are_looked_at() -> None:
    records = blind(seen([*HELD, ("acquire", {"client": 2})], {"result": 2}))
    ours = blind(played(machine, [*HELD, ("acquire", {"client": 1})]))
    assert {b.of for b in explanations(machine, records, [ours] * 5_000)} == {MOST_CALLS // len(ours)}


def test_a_condition_that_ends_no_loop_explains_nothing() -> None:
    """The spec with such a fault is given up after so many decisions."""
    counting: Machine[toy.Lease] = Machine("counting", toy.initial, toy.show, __name__)

    @counting.question("steps", "TRY-1")
    def steps(state: toy.Lease, most: int) -> int:
        return counted(most)

    records: list[Record] = [{"op": "init", "args": {}}, {"op": "steps", "args": {"most": 3}, "result": 9}]
    assert not explanations(counting, records)
    records[-1]["result"] = 4
    assert [b.text for b in explanations(counting, records)] == ["n < most"]


def counted(most: int) -> int:
    """Count up to a number."""
    n = 0
    while n < most:
        n += 1
    return n


# ---- a spec with what the other evidence needs -----------------------------------------------------------------------
class Slot(NamedTuple):
    key: Annotated[int, governs("TRY-5")]
    value: int


@dataclass(frozen=True)
class Store:
    memory: tuple[Slot, ...] = ()
    disk: tuple[Slot, ...] = ()
    known: int = -1


@dataclass(frozen=True)
class SeenState:
    slots: Annotated[tuple[Slot, ...], governs("TRY-1", "TRY-2")]
    size: Annotated[int, governs("TRY-1")]
    saved: Annotated[bool, governs("TRY-3")]


def observe(state: Store) -> SeenState:
    return SeenState(state.memory, len(state.memory), state.memory == state.disk)


store: Machine[Store] = Machine("store", Store, observe, __name__)
FALLS = Refused("TRY-4", "NotAbove")
TWICE = Refused("TRY-6", "NotAbove")
NEGATIVE = Refused("TRY-8", "Negative")


@store.operation("put", "TRY-1")
def put(state: Store, key: int, value: int) -> Store | Refused:
    if key == state.known:
        return TWICE
    return FALLS if key < state.known else replace(state, memory=(*state.memory, Slot(key, value)), known=key)


@store.operation("save", "TRY-3")
def save(state: Store) -> Store:
    return replace(state, disk=state.memory)


@store.operation("clear", "TRY-2")
def clear(state: Store) -> Store:
    return replace(state, memory=(), known=-1)


@store.operation("restart", "TRY-3", kind="restart")
@reveals("TRY-7")
def restart(state: Store) -> Store:
    return replace(state, memory=state.disk, known=max((s.key for s in state.disk), default=-1))


@store.question("sum", "TRY-9", "TRY-10")
@ensure(lambda result: result >= 0, "TRY-10 never below 0")
def total(state: Store) -> int:
    return sum(s.value for s in state.memory)


@store.question("text", "TRY-11", "TRY-12")
def text(state: Store, numbers: list[int]) -> str:
    return ",".join(str(n) for n in numbers)


@store.operation("take", "TRY-1", "TRY-9")
@ensure(
    lambda state, result: not isinstance(result.result, Refused) or result.state == state, "TRY-13 it leaves all there"
)
@ensure(lambda result: result.state.known >= -1, "TRY-10 never below -1")
def take(state: Store, number: int) -> Step[Store, int]:
    if number > len(state.memory):
        return Step(state, NEGATIVE)
    return Step(replace(state, memory=state.memory[number:]), number)


@store.question("strictly", "TRY-8")
def strictly(state: Store, numbers: list[int]) -> int | Refused:
    return NEGATIVE if any(n < 0 for n in numbers) else len(numbers)


@store.question("read", "TRY-8")
def read(state: Store, written: str) -> list[int] | Refused:
    found = [int(n) for n in written.split(",") if n]
    return NEGATIVE if any(n < 0 for n in found) else found


def altered(calls: Calls, **last: Any) -> list[Record]:
    """A history of the store, its last answer or the state after it altered."""
    records = played(store, calls)
    if "error" in last:
        records[-1].pop("result", None)
    records[-1] = {**records[-1], **{k: v for k, v in last.items() if k != "state"}}
    records[-1]["state"] = {**records[-1]["state"], **last.get("state", {})}
    return records


PUT = ("put", {"key": 1, "value": 5})


def test_a_part_of_the_state_that_stayed_as_it_was_is_named_where_no_field_shows_it() -> None:
    class Remembers(OfMachine):
        def apply(self, name: str, arguments: Any) -> Any:
            known = self.state.known
            answer = super().apply(name, arguments)
            if name == "clear":
                self.state = replace(self.state, known=known)
            return answer

    records = played(store, [PUT, ("clear", {}), PUT], Remembers(store))
    assert records[-1]["error"]["class"] == "NotAbove"
    found = explanations(store, records)
    assert (found[0].text, found[0].where, found[0].how) == ("known", "clear", "stayed as it was")
    assert "TRY-2" in cited(store, records).clauses
    assert str(cited(store, records).blame) == "`known` stayed as it was (clear)"


def test_the_rule_of_a_refusal_that_was_due_comes_first_and_those_like_it_next() -> None:
    found = cited(store, altered([PUT, ("put", {"key": 0, "value": 1})], result=None, error=None))
    assert found.clauses == cited(store, altered([PUT, ("put", {"key": 0, "value": 1})], result=None)).clauses
    records = played(store, [PUT, ("put", {"key": 0, "value": 1})])
    del records[-1]["error"]
    assert cited(store, [*records[:-1], {**records[-1], "result": None}]).clauses[:2] == ("TRY-4", "TRY-6")


def test_of_a_refusal_as_was_due_what_it_left_is_wrong() -> None:
    """The rule that a refusal changes nothing, not the one by which it was refused."""
    records = altered([PUT, ("take", {"number": 2})], state={"saved": True})
    assert records[-1]["error"] == {"class": "Negative"}
    votes = cited(store, records).votes
    assert votes["TRY-13"] > votes["TRY-8"]
    assert votes["TRY-13"] - votes["TRY-10"] == BROKEN, "a postcondition that looks into the state cannot tell"
    del records[-1]["error"]
    assert cited(store, records).clauses[0] == "TRY-8"


def test_a_refusal_that_was_not_due_names_those_with_its_error() -> None:
    records = altered([PUT, ("put", {"key": 7, "value": 1})], error={"class": "NotAbove"})
    records[-1]["state"] = records[-2]["state"]
    assert {"TRY-4", "TRY-6"} <= {*cited(store, records).clauses}


def test_another_question_that_refuses_the_same_arguments_tells_why() -> None:
    records = altered([("text", {"numbers": [1, -1]})], error={"class": "Negative"})
    assert cited(store, records).clauses[0] == "TRY-8"


def test_what_governs_the_field_comes_before_what_the_operation_states() -> None:
    assert cited(store, altered([PUT], state={"size": 7})).clauses[0] == "TRY-1"
    assert cited(store, altered([PUT], state={"saved": True})).clauses[0] == "TRY-3"
    assert {*cited(store, altered([PUT], state={"slots": [[2, 5]]})).clauses[:2]} == {"TRY-1", "TRY-5"}
    assert "TRY-5" not in cited(store, altered([PUT], state={"slots": [[1, 6]]})).clauses


def test_what_a_question_should_have_left_as_it_was_is_its_own_fault() -> None:
    assert cited(store, altered([PUT, ("sum", {})], state={"size": 7})).clauses[0] in ("TRY-9", "TRY-10")


def test_a_broken_postcondition_counts() -> None:
    assert cited(store, altered([PUT, ("sum", {})], result=-5)).clauses[0] == "TRY-10"
    assert cited(store, altered([PUT, ("sum", {})], result=6)).clauses[0] == "TRY-9"


def test_an_operation_shows_what_one_before_it_broke() -> None:
    found = cited(store, altered([PUT, ("save", {}), ("restart", {})], state={"size": 0}))
    assert found.clauses[:2] == ("TRY-3", "TRY-7")
    assert "TRY-7" not in cited(store, altered([PUT, ("save", {})], state={"size": 0})).votes


def test_an_answer_that_is_text_is_read() -> None:
    votes = cited(store, altered([("text", {"numbers": [1]})], result="-1")).votes
    assert votes["TRY-8"] > cited(store, altered([("text", {"numbers": [1]})], result="1,1")).votes.get("TRY-8", 0)


def test_the_first_state_has_no_operation() -> None:
    assert cited(store, altered([], state={"saved": False})).clauses == ("TRY-3",)
    assert cited(store, altered([], result=3)).clauses == ()


def test_a_call_that_the_contract_does_not_allow_is_not_explained() -> None:
    records = played(machine, HELD)
    records += [{"op": "write", "args": {"epoch": 9, "value": 1}, "result": None}]
    assert cited(machine, records).clauses == ()


# ---- parts -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Files:
    files: Annotated[dict[str, int | Annotated[str, governs("TRY-2")]], governs("TRY-1", keys={"a*": ("TRY-3",)})]
    other: int | None = None


def places(expected: Json, seen: Json, hint: Any = Files) -> list[Place]:
    return list(governing(hint, expected, seen))


def test_places_are_the_innermost_that_differ_with_all_declarations_around_them() -> None:
    whole = (".files", ("TRY-1",))
    assert places({"files": {"b": 1}, "other": None}, {"files": {"b": 1}, "other": None}) == []
    assert places({"files": {"b": 1}}, {"files": {"b": 2}}) == [Place(".files", (whole,))]
    assert places({"files": {"ab": 1}}, {"files": {}}) == [Place(".files", ((".files[a*]", ("TRY-3",)), whole))]
    assert places({"files": {"b": 1}}, {"files": {"b": 1, "ab": 1}})[0].declared[0] == (".files[a*]", ("TRY-3",))
    assert places({"other": 1}, {"other": 2}) == [Place(".other", ())]
    assert places([[1, 2]], [[1, 3]], tuple[Slot, ...]) == [Place("[]", ())]
    assert places([[1, 2]], [[2, 2]], tuple[Slot, ...]) == [Place("[]", (("[]", ("TRY-5",)),))]
    assert places([[1, 2]], [], SeenState.__annotations__ and tuple[Slot, ...]) == [Place("", ())]


def test_the_parts_that_change_are_found_and_put_back() -> None:
    before, after = Store((Slot(1, 2),), (), 1), Store((Slot(1, 3), Slot(4, 5)), (), 4)
    assert [*changed(before, before)] == []
    assert [*changed(before, after)] == [(), ("memory",), ("memory", "value"), ("known",)]
    assert kept(before, after, ()) == before
    assert kept(before, after, ("known",)) == replace(after, known=1)
    assert kept(before, after, ("memory", "value")) == replace(after, memory=(Slot(1, 2), Slot(4, 5)))
    assert kept({"a": before}, {"a": after, "b": after}, ("known",)) == {"a": replace(after, known=1), "b": after}


def test_one_fault_is_one_kind_only_where_nothing_is_against_it() -> None:
    records = seen([*HELD, ("acquire", {"client": 2})], {"result": 2})
    blame = explanations(machine, blind(records))[0]
    fields: Any = dict.fromkeys(("history", "found", "calls", "by"))
    verdict = Verdict("rejected", "toy", 1, 1, {}, {}, others=("TOY-2", "TOY-3"))
    faults = frozenset({blame.fault, ("elsewhere", "x > 1")})
    one = Rejection("TOY-1", "acquire", "answered", **fields, verdict=verdict, count=3, blame=blame, faults=faults)
    other = replace(one, clause="TOY-2", operation="write", shape="state", blame=replace(blame, where="elsewhere"))
    assert distinct([one, other]) == [replace(one, count=6)]
    assert distinct([one, replace(other, faults=faults - {blame.fault})]) == [
        one,
        replace(other, faults=faults - {blame.fault}),
    ]
    near = replace(one, blame=replace(blame, of=1), faults=frozenset())
    assert distinct([near, other]) == [near, other]
    assert distinct([near, one, near]) == [replace(near, count=9)]
    assert one.breaks == "breaks TOY-1, or TOY-2, TOY-3"
    assert replace(one, clause="").breaks == ""
    one = replace(one, verdict=replace(verdict, others=()))
    assert one.breaks == "breaks TOY-1"


def test_a_loop_that_would_not_end_explains_nothing() -> None:
    """The bytes of a number are written until nothing is left of it: decided otherwise, for ever."""
    machine = find("batch").spec.machine
    with watched(machine) as cover:
        endless = [n for n, site in enumerate(cover.sites) if site.text == "raw > 127"]
        assert endless
        with otherwise(machine, endless[0], "negated"), pytest.raises(Endless):
            record_format.varint_bytes(5)
