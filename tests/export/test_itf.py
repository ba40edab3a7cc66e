"""ITF: what we write is what the format says, and reading it back gives the run again."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from random import Random
from typing import Any

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.export import from_itf, itf
from kafkaspec.language import LoadedModel, Model, Trace, TraceStep, load
from kafkaspec.language.concrete import Concrete
from kafkaspec.models.examples.replication_anchor import Replication
from tests.export.everything import Everything
from tests.export.further import Letters, Lines

SIZES = {"Node": 2, "L": 2, "E": 2, "STRICT": True}


LETTERS = {"Voter": 2, "K": 1}


def shown(v: Any) -> Any:
    """An action's argument as traces show it."""
    if dataclasses.is_dataclass(v):
        return {f.name: shown(getattr(v, f.name)) for f in dataclasses.fields(v)}
    return getattr(v, "name", v)


def a_walk(length: int, model: type[Model] = Everything, sizes: dict[str, int | bool] = SIZES) -> Trace:
    """A run of random transitions, always the same one."""
    run, random = Concrete(model, sizes), Random(2)
    state = run.initial_states()[0]
    steps = [TraceStep("", "", (), {}, run.show(state))]
    actions = {a.name: a for a in run.model.actions}
    for _ in range(length):
        t = random.choice(run.successors(state))
        a, state = actions[t.action], t.state
        arguments = {n: shown(v) for n, v in t.arguments.items()}
        steps.append(TraceStep(a.name, a.who, a.clauses, arguments, run.show(state)))
    return Trace(model.__name__, sizes, "lasso", "is_taken", ("XXX-6",), tuple(steps), loop=3)


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load(Everything)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return a_walk(12)


def fits(value: Any) -> bool:
    """Is it an <expr> of Apalache's ADR-015?"""
    if isinstance(value, bool | str):
        return True
    if isinstance(value, list):
        return all(map(fits, value))
    if not isinstance(value, dict):
        return False
    special = [k for k in value if k.startswith("#")]
    if not special:
        return all(map(fits, value.values()))
    if len(value) != 1:
        return False
    (tag, content), *_ = value.items()
    match tag:
        case "#bigint":
            return isinstance(content, str) and re.fullmatch(r"-?[0-9]+", content) is not None
        case "#set" | "#tup":
            return isinstance(content, list) and all(map(fits, content))
        case "#map":
            return isinstance(content, list) and all(
                isinstance(p, list) and len(p) == 2 and all(map(fits, p)) for p in content
            )
    return False


def test_the_text_is_itf(trace: Trace, model: LoadedModel) -> None:
    data = json.loads(json.dumps(itf(trace, model)))
    assert data["#meta"]["format"] == "ITF"
    assert set(data) == {"#meta", "vars", "states", "loop"}
    assert data["vars"] == list(trace.steps[0].state)
    assert data["loop"] == 3
    for i, state in enumerate(data["states"]):
        assert state["#meta"]["index"] == i
        assert set(state) == {"#meta", *data["vars"]}
        assert all(fits(state[n]) for n in data["vars"])


def test_the_walk_meets_every_encoding(trace: Trace, model: LoadedModel) -> None:
    text = json.dumps(itf(trace, model))
    for sign in ("#bigint", "#set", "#map", '"Some"', '"None"', '"BUSY"', '"n0"', "true", "false", '"target"'):
        assert sign in text


def test_there_and_back(trace: Trace, model: LoadedModel) -> None:
    assert from_itf(json.loads(json.dumps(itf(trace, model))), model) == trace


def test_sets_of_records_and_drawn_records_there_and_back() -> None:
    trace, model = a_walk(12, Letters, LETTERS), load(Letters)
    data = json.loads(json.dumps(itf(trace, model)))
    letters = [state["post"]["#set"] for state in data["states"]]
    assert any(len(post) == 2 for post in letters)
    assert all(set(m) == {"sender", "term", "about"} for post in letters for m in post)
    assert any("m" in state["#meta"]["arguments"] for state in data["states"])
    assert all(fits(state[n]) for state in data["states"] for n in data["vars"])
    assert from_itf(data, model) == trace


def test_a_set_of_records_has_no_order() -> None:
    trace, model = a_walk(12, Letters, LETTERS), load(Letters)
    data = itf(trace, model)
    for state in data["states"]:
        state["post"]["#set"].reverse()
    assert from_itf(data, model) == trace


def test_small_integers_may_be_plain(trace: Trace, model: LoadedModel) -> None:
    plain = json.loads(re.sub(r'\{"#bigint": "(-?\d+)"\}', r"\1", json.dumps(itf(trace, model))))
    assert from_itf(plain, model) == trace


def test_a_trace_of_another_tool_needs_no_meta(trace: Trace, model: LoadedModel) -> None:
    data = itf(trace, model)
    del data["#meta"]
    for state in data["states"]:
        del state["#meta"]
    back = from_itf(data, model)
    assert [s.state for s in back.steps] == [s.state for s in trace.steps]
    assert back.kind == "walk"


def test_a_trace_without_ghosts(trace: Trace, model: LoadedModel) -> None:
    data = itf(trace, model)
    for state in data["states"]:
        del state["seen"]
    assert "seen" not in from_itf(data, model).steps[0].state


def broken(data: dict[str, Any], path: list[Any], value: Any) -> dict[str, Any]:
    data = copy.deepcopy(data)
    place: Any = data
    for p in path[:-1]:
        place = place[p]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["states"], None, "the trace has no states"),
        (["states"], [], "the trace has no states"),
        (["states", 1, "mode"], None, "state 1: variable mode is missing"),
        (["states", 1, "mood"], "x", "state 1: Everything has no variable mood"),
        (
            ["states", 2, "mode", "#map", 0, 1],
            "SLEEPING",
            "state 2: mode[n0] is 'SLEEPING', no Mode (IDLE, BUSY, DONE)",
        ),
        (["states", 2, "members"], ["n0"], "state 2: members is ['n0'], where {\"#set\": ...} is wanted"),
        (["states", 2, "last", "epoch"], {"#bigint": "x"}, "state 2: last.epoch: 'x' is no integer"),
        (["states", 2, "last", "epoch"], None, "state 2: last has no epoch"),
        (["states", 2, "chosen"], {"tag": "Maybe"}, "state 2: chosen: tag is 'Maybe', neither Some nor None"),
        (["states", 2, "flag"], "yes", "state 2: flag is 'yes', where a bool is wanted"),
        (["states", 2, "vars", "#map", 0], "n0", "state 2: vars: 'n0' is no [key, value]"),
        (["states", 2, "#meta", "action"], "sned", "Everything has no action sned"),
        (["states", 2, "#meta", "arguments", "who"], "n0", "state 2: argument who is not one of "),
        (["#meta"], 5, "the trace: #meta is 5"),
        (["states", 2, "#meta"], 3, "state 2: #meta is 3"),
        (["states", 2, "#meta", "arguments"], [1], "state 2: arguments is [1]"),
        (["loop"], True, "loop is True, and there are 13 states"),
        (["loop"], 99, "loop is 99, and there are 13 states"),
    ],
)
def test_errors_name_the_state_and_the_field(
    trace: Trace, model: LoadedModel, path: list[Any], value: Any, message: str
) -> None:
    with pytest.raises(UserError) as e:
        from_itf(broken(itf(trace, model), path, value), model)
    assert message in str(e.value)


EXPLORED: list[tuple[type[Model], dict[str, int | bool]]] = [
    (Everything, SIZES),
    (Replication, {"Replica": 2, "L": 2, "E": 3, "FENCED": True}),
    (Letters, LETTERS),
    (Lines, {"Voter": 2, "K": 2, "L": 2}),
]


@pytest.mark.parametrize(("model_class", "sizes"), EXPLORED, ids=lambda x: getattr(x, "__name__", ""))
def test_what_the_explorer_shows_comes_back(model_class: type[Model], sizes: dict[str, int | bool]) -> None:
    model = load(model_class)
    found = explore(model, sizes, liveness=False, ghosts=True)
    traces = [t for t in (found.trace, *found.witnesses.values()) if t is not None]
    assert traces
    for t in traces:
        assert from_itf(json.loads(json.dumps(itf(t, model))), model) == t
