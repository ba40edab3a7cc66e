"""Histories: text that reads as a conversation, back and forth."""

from __future__ import annotations

import doctest

import orjson
import pytest

from kafkaspec.contract import history
from kafkaspec.contract.history import History, parse
from kafkaspec.errors import UserError

TEXT = """\
# found by lockstep
init long=0
map.put key=1 value="a b = c" -> null
getOrCreateSnapshot epoch=3 -> 3
map.put key=1 value=null !! java.lang.NullPointerException
map.get key=1 epoch=9 !! java.lang.RuntimeException: "none for 9"
  state {"epochs":[3],"at":{"3":[1.5,true]}}
? key=2
  state.epochs = []
  state.at["3"] gone
  state.at["a \\"b\\"].c"].size_2 = {"x":[1,null]}
reset
"""


def test_text_there_and_back() -> None:
    h = parse(TEXT, "t")
    assert h.records == (
        {"op": "init", "args": {"long": 0}},
        {"op": "map.put", "args": {"key": 1, "value": "a b = c"}, "result": None},
        {"op": "getOrCreateSnapshot", "args": {"epoch": 3}, "result": 3},
        {"op": "map.put", "args": {"key": 1, "value": None}, "error": {"class": "java.lang.NullPointerException"}},
        {
            "op": "map.get",
            "args": {"key": 1, "epoch": 9},
            "error": {"class": "java.lang.RuntimeException", "message": "none for 9"},
            "state": {"epochs": [3], "at": {"3": [1.5, True]}},
        },
        {
            "args": {"key": 2},
            "parts": [[["epochs"], []], [["at", "3"]], [["at", 'a "b"].c', "size_2"], {"x": [1, None]}]],
        },
        {"op": "reset", "args": {}},
    )
    assert str(History(h.records, "found by lockstep")) == TEXT


def test_ndjson_is_numbered() -> None:
    lines = parse(TEXT, "t").ndjson().splitlines()
    assert orjson.loads(lines[2]) == {"i": 2, "op": "getOrCreateSnapshot", "args": {"epoch": 3}, "result": 3}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# c\n-> 3", "t:2:1: expected the name of an operation"),
        ("push value=x", "t:1:12: expected a JSON value"),
        ("push value=1 value", "t:1:14: cannot read 'value'"),
        ("push -> ", "t:1:8: expected a JSON value"),
        ("push !! ", "t:1:6: expected the class of the exception after !!"),
        ("push -> 1 2", "t:1:11: cannot read '2'"),
        ("  state {}", "t:1:1: an indented line must be"),
        ("push\n  stat {}", "t:2:1: an indented line must be"),
        ("push\n  state {", "t:2:10: expected a JSON value"),
        ("push\n  state {} x", "t:2:12: cannot read 'x'"),
        ("push\n  state", "t:2:1: an indented line must be"),
        ("push\n  state.", "t:2:9: expected a key"),
        ("push\n  state.3 = 1", "t:2:9: expected a key"),
        ("push\n  state[x] = 1", "t:2:9: expected a JSON value"),
        ("push\n  state[3] = 1", 't:2:10: expected a key as ["KEY"]'),
        ('push\n  state["x" = 1', 't:2:12: expected a key as ["KEY"]'),
        ("push\n  state.x", "t:2:10: expected ` = ` and a value, or ` gone`"),
        ("push\n  state.x gone for ever", "t:2:10: expected ` = ` and a value, or ` gone`"),
        ("push\n  state.x = ", "t:2:10: expected ` = `"),
        ("push\n  state.x = {", "t:2:14: expected a JSON value"),
        ("push\n  state.x = 1 2", "t:2:15: cannot read '2'"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(UserError) as e:
        parse(text, "t")
    assert str(e.value).startswith(said)


def test_examples() -> None:
    assert doctest.testmod(history).failed == 0
