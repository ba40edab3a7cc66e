"""A failing history is made small in every way that there is, in few attempts, and within the contract."""

from __future__ import annotations

import doctest
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from kafkaspec.contract.codec import optional
from kafkaspec.contract.history import History, Record
from kafkaspec.contract.machine import Machine, Nothing
from kafkaspec.contract.numbers import Count, Guard, Int64, Offset, Timestamp, Within
from kafkaspec.lockstep import shrink
from kafkaspec.lockstep.shrink import fewer_calls, shrunk

FAR = 1 << 33
Fails = Callable[[Sequence[Record]], bool]


@dataclass(frozen=True)
class Part:
    at: Offset
    size: Annotated[int, Within(5, 100)] = optional(7)
    name: str = "needed, though it has a default"


def initial(base: Offset = 5, names: Sequence[str] = ("x",), free: Mapping[str, Any] | None = None) -> Nothing:
    return Nothing()


machine: Machine[Any] = Machine("shrunk", initial, lambda state: {}, home="tests.lockstep.test_shrink")


@machine.question("read")
def read(at: Offset, until: Offset = 9, when: Timestamp = -1, guard: Guard = 0, count: Count = 0) -> None:
    """A call with numbers."""


@machine.question("write")
def write(text: str = "", data: bytes = b"") -> None:
    """A call with texts."""


@machine.question("keep")
def keep(
    parts: Sequence[Part] = (),
    named: Mapping[str, Part] | None = None,
    nested: Sequence[Sequence[int]] = (),
    pair: tuple[Int64, bool] = (0, False),
) -> None:
    """A call with objects and arrays."""


def call(op: str, **args: Any) -> Record:
    return {"op": op, "args": args}


class Target:
    """Fails where it is told to. It keeps what it was asked."""

    def __init__(self, fails: Fails, error: Callable[[Sequence[Record]], str] = lambda records: "") -> None:
        self.fails = fails
        self.error = error
        self.asked: list[list[Record]] = []

    def __call__(self, records: Sequence[Record]) -> History | None:
        calls = [{"op": r["op"], "args": r["args"]} for r in records]
        self.asked.append(calls)
        answer = {"error": {"class": self.error(calls)}} if self.error(calls) else {"result": None}
        return History((*calls[:-1], calls[-1] | answer), "", "A-1") if self.fails(calls) else None


def small(fails: Fails, *calls: Record, init: Mapping[str, Any] | None = None) -> list[Record]:
    """The calls of the smallest history; every one that was tried is within the types, and none is tried twice."""
    target = Target(fails)
    history = History((call("init", **(init or {})), *calls), "", "A-1")
    found = shrunk(machine, history, target)
    assert [c for c in target.asked if target.asked.count(c) > 1] == []
    for records in target.asked:
        for r in records:
            if r["op"] == "init":
                assert machine.beyond(machine.python_names(r["args"])) == []
            else:
                op = machine.find(r["op"])
                assert op.beyond({op.parameters[t]: v for t, v in r["args"].items()}) == []
                op.decoded({op.parameters[t]: v for t, v in r["args"].items()})
    return [{"op": r["op"], "args": r["args"]} for r in found.records]


def given(records: Sequence[Record], n: int, name: str, default: Any = None) -> Any:
    return records[n]["args"].get(name, default) if n < len(records) else default


def test_examples() -> None:
    assert doctest.testmod(shrink).failed == 0


# ---- calls
def test_calls_are_left_out_but_not_the_last() -> None:
    calls = [call("read", at=n) for n in range(20)]
    target = Target(
        lambda rs: [given(rs, n, "at") for n in range(1, len(rs))][-1:] == [19] and call("read", at=7) in rs
    )
    found = fewer_calls(History((call("init"), *calls), "", "A-1"), target)
    assert [r["args"] for r in found.records] == [{}, {"at": 7}, {"at": 19}]
    assert all(rs[-1]["args"] == {"at": 19} for rs in target.asked)
    assert len(target.asked) <= 20


def test_what_does_not_show_again_stays_and_is_tried_once() -> None:
    target = Target(lambda rs: False)
    history = History((call("init"), call("read", at=3)), "", "A-1")
    assert shrunk(machine, history, target) is history
    assert len(target.asked) == 1


def test_another_error_is_another_failure() -> None:
    target = Target(lambda rs: True, lambda rs: "Overflow" if given(rs, -1, "at", 0) > 3 else "")
    found = shrunk(machine, History((call("init"), call("read", at=FAR)), "", "A-1"), target)
    assert (found.records[-1]["args"], found.records[-1]["error"]) == ({"at": 4}, {"class": "Overflow"})


# ---- arguments that have a default
def test_arguments_that_have_a_default_are_left_out() -> None:
    init = {"base": 8, "names": ["a"], "free": {}}
    assert small(lambda rs: True, call("read", at=0, until=9, when=3), init=init) == [call("init"), call("read", at=0)]


def test_an_argument_that_is_needed_stays() -> None:
    needs = small(lambda rs: given(rs, 0, "base", 5) == 8, call("read", at=0, until=9), init={"base": 8, "names": []})
    assert needs == [call("init", base=8), call("read", at=0)]


# ---- numbers
def test_a_number_comes_nearer_to_0_within_its_range() -> None:
    assert small(lambda rs: True, call("keep", parts=[{"at": 3, "size": 90, "name": ""}]))[1] == call("keep")
    assert small(lambda rs: given(rs, 1, "at") >= 700, call("read", at=FAR))[1] == call("read", at=700)
    assert small(lambda rs: given(rs, 1, "when", 0) < 0, call("read", at=0, when=-1))[1] == call("read", at=0, when=-1)


def test_a_number_is_found_in_few_attempts() -> None:
    target = Target(lambda rs: given(rs, 1, "at") >= 1_048_367)
    shrunk(machine, History((call("init"), call("read", at=FAR + 77)), "", "A-1"), target)
    assert len(target.asked) <= 60
    exact = Target(lambda rs: given(rs, 1, "at") == FAR + 77)
    shrunk(machine, History((call("init"), call("read", at=FAR + 77)), "", "A-1"), exact)
    assert len(exact.asked) <= 5


def test_numbers_near_each_other_are_lowered_together() -> None:
    def ascending(rs: Sequence[Record]) -> bool:
        base, *at = [given(rs, n, "at" if n else "base", -1) for n in range(4)]
        return bool(0 <= base <= at[0] < at[1] < at[2])

    calls = [call("read", at=FAR + n) for n in (3, 4, 8)]
    assert small(ascending, *calls, init={"base": FAR}) == [
        call("init", base=0), call("read", at=0), call("read", at=1), call("read", at=2)
    ]  # fmt: skip


def test_the_same_number_stays_the_same() -> None:
    same = small(lambda rs: len(rs) == 3 and given(rs, 1, "at") == given(rs, 2, "at"), *[call("read", at=256)] * 2)
    assert same[1:] == [call("read", at=0)] * 2


def test_the_numbers_of_one_call_are_lowered_together() -> None:
    def fails(rs: Sequence[Record]) -> bool:
        near = given(rs, 2, "until", 9) - given(rs, 2, "at", 0) == 2
        return len(rs) == 3 and given(rs, 1, "at") == FAR and near

    calls = small(fails, call("read", at=FAR), call("read", at=FAR + 5, until=FAR + 7))
    assert calls[1:] == [call("read", at=FAR), call("read", at=0, until=2)]


def test_numbers_of_another_kind_are_not_lowered_with_them() -> None:
    def fails(rs: Sequence[Record]) -> bool:
        return bool(given(rs, 1, "until", 9) - given(rs, 1, "at") == 1 and given(rs, 1, "when", -1) == FAR)

    assert small(fails, call("read", at=FAR, until=FAR + 1, when=FAR))[1] == call("read", at=0, until=1, when=FAR)


def test_numbers_that_cannot_be_0_are_lowered_by_half() -> None:
    def fails(rs: Sequence[Record]) -> bool:
        return bool(given(rs, 1, "until", 9) - given(rs, 1, "at") == 1 and given(rs, 1, "at") >= 900)

    lowered = small(fails, call("read", at=FAR, until=FAR + 1))[1]["args"]["at"]
    assert 900 <= lowered < 2_000


def test_a_number_that_an_implementation_chose_is_not_lowered_with_others() -> None:
    target = Target(lambda rs: given(rs, 1, "guard", 0) == given(rs, 1, "count", 0) == 2)
    shrunk(machine, History((call("init"), call("read", at=0, guard=2, count=2)), "", "A-1"), target)
    assert all(2 in (given(rs, 1, "guard", 2), given(rs, 1, "count", 2)) for rs in target.asked)


def test_no_number_leaves_its_range() -> None:
    def fails(rs: Sequence[Record]) -> bool:
        return len({p.get("size") for p in given(rs, 1, "parts", [])}) == 2

    found = small(fails, call("keep", parts=[part(0, size=50), part(0, size=60)]))
    assert found[1] == call("keep", parts=[part(0), part(0, size=5)])
    assert small(lambda rs: given(rs, 1, "pair", [0])[0] < 0, call("keep", pair=[-(2**63), False]))[1] == call(
        "keep", pair=[-1, False]
    )


def test_a_number_is_not_negative_if_it_need_not_be() -> None:
    assert small(lambda rs: abs(given(rs, 1, "pair", [0])[0]) == 8, call("keep", pair=[-8, False]))[1] == call(
        "keep", pair=[8, False]
    )


# ---- texts
@pytest.mark.parametrize(
    ("fails", "text"),
    [
        (lambda t: True, None),
        (lambda t: t != "", "a"),
        (lambda t: len(t) >= 5, "aaa 0"),
        (lambda t: "7" in t, "7"),
        (lambda t: t[:1] == "k", "k"),
        (lambda t: t[:7] == "key 17\n" and t[-7:] == "the log", "key 17\nthe log"),
    ],
)
def test_a_text_becomes_shorter_and_simpler(fails: Callable[[str], bool], text: str | None) -> None:
    found = small(lambda rs: fails(given(rs, 1, "text", "")), call("write", text="key 17\nof\nthe log"))[1]
    assert found == (call("write") if text is None else call("write", text=text))


def test_a_name_is_changed_wherever_it_stands() -> None:
    def fails(rs: Sequence[Record]) -> bool:
        return len(rs) == 3 and given(rs, 1, "text") == given(rs, 2, "text") in given(rs, 0, "names", ["x"])

    calls = [call("write", text="topic")] * 2
    assert small(fails, *calls, init={"names": ["other", "topic"]}) == [
        call("init", names=[""]), call("write", text=""), call("write", text="")
    ]  # fmt: skip


def test_bytes_become_shorter_by_whole_bytes() -> None:
    found = small(lambda rs: "c3d4" in given(rs, 1, "data", ""), call("write", data="a1b2c3d4e5f6"))
    assert found[1] == call("write", data="c3d4")


# ---- objects and arrays
def part(at: int, **other: Any) -> dict[str, Any]:
    return {"at": at, "name": "", **other}


def test_fields_that_are_optional_are_left_out() -> None:
    found = small(lambda rs: bool(given(rs, 1, "parts", [])), call("keep", parts=[part(0, size=10), part(0, size=20)]))
    assert found[1] == call("keep", parts=[part(0)])


def test_keys_of_a_mapping_are_left_out() -> None:
    def fails(rs: Sequence[Record]) -> bool:
        return {"c", "f"} <= (given(rs, 1, "named") or {}).keys()

    assert small(fails, call("keep", named={k: part(3) for k in "abcdefgh"}))[1] == call(
        "keep", named={"c": part(0), "f": part(0)}
    )


def test_elements_of_inner_lists_are_left_out() -> None:
    found = small(
        lambda rs: any(4 in inner for inner in given(rs, 1, "nested", ())),
        call("keep", nested=[[1, 2], [3, 4, 5], [4]]),
    )
    assert found[1] == call("keep", nested=[[4]])


def test_a_tuple_keeps_its_length() -> None:
    assert small(lambda rs: given(rs, 1, "pair", [0, 0])[0] > 3, call("keep", pair=[900, True]))[1] == call(
        "keep", pair=[4, False]
    )


def test_of_what_has_no_type_elements_are_left_out_and_no_value_is_changed() -> None:
    free = {"cleanup": "compact", "bytes": 200, "more": {"a": [1, 2], "b": True}}

    def fails(rs: Sequence[Record]) -> bool:
        found = given(rs, 0, "free") or {}
        return "bytes" in found and "more" in found and "b" in found["more"]

    found = small(fails, call("read", at=0), init={"free": free})
    assert found[0] == call("init", free={"bytes": 200, "more": {"b": True}})


def test_a_call_that_leaves_the_contract_meanwhile_is_left_out() -> None:
    """With other arguments a call may no longer be allowed: what is asked then is the rest."""

    def fails(rs: Sequence[Record]) -> bool:
        kept = [r for r in rs if r["op"] == "keep"]
        return len(kept[0]["args"].get("nested", [])) == 4 if kept else "until" not in rs[-1]["args"]

    class Leaves(Target):
        def __call__(self, records: Sequence[Record]) -> History | None:
            return super().__call__([r for r in records if len(r["args"].get("nested", [])) in (0, 4)])

    calls = [call("keep", nested=[[1], [2], [3], [4]]), call("read", at=0, until=3)]
    found = shrunk(machine, History((call("init"), *calls), "", "A-1"), Leaves(fails))
    assert [(r["op"], r["args"]) for r in found.records] == [("init", {}), ("read", {"at": 0})]


def test_the_arguments_behind_a_call_that_is_left_out_meanwhile_are_those_of_another_one() -> None:
    class Leaves(Target):
        def __call__(self, records: Sequence[Record]) -> History | None:
            return super().__call__([r for r in records if r["op"] != "write" or "until" in records[1]["args"]])

    def fails(rs: Sequence[Record]) -> bool:
        return [r["op"] for r in rs] == ["init", "read", *["write"] * ("until" in rs[1]["args"]), "keep"]

    calls = [call("read", at=0, until=4), call("write", text="a"), call("keep", parts=[], nested=[])]
    found = shrunk(machine, History((call("init"), *calls), "", "A-1"), Leaves(fails))
    assert [(r["op"], r["args"]) for r in found.records] == [("init", {}), ("read", {"at": 0}), ("keep", {})]


def test_the_last_call_may_be_left_out_without_one_of_its_arguments() -> None:
    class Leaves(Target):
        def __call__(self, records: Sequence[Record]) -> History | None:
            return super().__call__([r for r in records if "when" not in r["args"] or "until" in r["args"]])

    def fails(rs: Sequence[Record]) -> bool:
        return [given(rs, n, "at") for n in range(1, len(rs))] == [1] or (len(rs) == 3 and "until" in rs[2]["args"])

    calls = [call("read", at=1), call("read", at=2, until=4, when=5)]
    found = shrunk(machine, History((call("init"), *calls), "", "A-1"), Leaves(fails))
    assert [(r["op"], r["args"]) for r in found.records] == [("init", {}), ("read", {"at": 1})]
