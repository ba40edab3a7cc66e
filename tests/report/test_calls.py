"""A history as people read it: of each state what the call changed, and what is wrong in the last."""

from __future__ import annotations

from typing import Any

from kafkaspec.contract.codec import Fields, Unordered
from kafkaspec.contract.history import History, parse
from kafkaspec.report.calls import MAX_LINE, readable


def history(*states: Any, why: str = "") -> History:
    """A history with these states; None where none is recorded."""
    records = []
    for n, state in enumerate(states):
        shown = {} if state is None else {"state": state}
        records.append({"i": n, "op": "call" if n else "init", "args": {}, "result": None, **shown})
    return History(tuple(records), why)


def lines(*states: Any, **right: Any) -> list[str]:
    """The lines below the calls, a text a call."""
    text = readable(history(*states), **right)
    calls = [c.splitlines() for c in text.replace("\ncall", "\0call").split("\0")]
    assert [c[0] for c in calls] == [f"{'call' if n else 'init'} -> null" for n in range(len(states))]
    return ["\n".join(line.strip() for line in c[1:]) for c in calls]


def test_what_a_call_changed_is_shown_and_nothing_else() -> None:
    a, b, c = {"x": 1, "y": []}, {"x": 1, "y": [3]}, {"y": [3], "z": {"a.b": None}}
    assert lines(a, a, b, b, c) == ["", "", "state.y = [3]", "", 'state.x gone\nstate.z = {"a.b":null}']


def test_a_part_is_as_small_as_it_can_be() -> None:
    files = {"a.log": {"batches": [1], "torn": False}, "b.log": {"batches": []}}
    other = {"a.log": {"batches": [2], "torn": False}}
    assert lines({"files": files}, {"files": other}) == [
        "", 'state.files["a.log"].batches = [2]\nstate.files["b.log"] gone'
    ]  # fmt: skip


def test_what_is_wrong_is_shown_though_the_call_left_it_as_it_was() -> None:
    right = Fields(x=Unordered([1, 2]), y=2, hidden=5)
    assert lines({"x": [2, 1], "y": 0}, {"x": [2, 1], "y": 1}, right=right) == ["", "state.y = 1"]
    assert lines({"x": [2, 1], "y": 1}, {"x": [2, 1], "y": 1}, right=right) == ["", "state.y = 1"]
    assert lines({"x": [2, 1], "y": 2}, {"x": [2, 1], "y": 2}, right=right) == ["", ""]
    assert lines({"x": [1], "y": 2}, right=right) == ["state.x = [1]"]


def test_a_part_of_a_part_that_is_shown_is_not_shown_again() -> None:
    now = {"at": {"0": {"n": 1, "m": 2}}}
    assert lines({"at": {}}, now, right={"at": {"0": {"n": 0, "m": 2}}})[-1] == 'state.at["0"] = {"n":1,"m":2}'


def test_states_that_are_not_recorded_are_passed_over() -> None:
    assert lines({"x": 0}, None, {"x": 1}, None, {"x": 1}) == ["", "", "state.x = 1", "", ""]
    assert lines(None, None, {"x": 1}) == ["", "", 'state {"x":1}']
    assert lines({"x": 0}, [1], {"x": 0}) == ["", "state [1]", 'state {"x":0}']


def test_it_reads_as_a_history_without_what_is_wrong_in_words() -> None:
    long = history({"x": "", "y": 1}, {"x": "a" * MAX_LINE, "y": 2}, why="it is wrong")
    text = readable(long)
    assert max(map(len, text.splitlines())) < MAX_LINE + 40
    assert "... (2,0" in text
    assert "wrong" not in text
    assert long.records[0]["state"] == {"x": "", "y": 1}
    short = readable(history({"x": {"a": 1, "b": 2}}, {"x": {"a": 2}}))
    assert [r.get("parts") for r in parse(short, "t").records] == [None, [[["x", "a"], 2], [["x", "b"]]]]
