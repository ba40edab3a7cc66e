"""What a scenario asks of its nodes they understand; a kept run that asks for anything else is not made again."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from kafkaspec.cli.main import main
from kafkaspec.cli.simulate import find, scenarios
from kafkaspec.errors import UserError
from kafkaspec.simulate import Scenario, history
from kafkaspec.simulate.choices import checked
from kafkaspec.simulate.runs import replay
from tests.simulate.toy import ADDS_TWICE

TESTS = Path(__file__).parents[1]
FAULTS = TESTS / "storage" / "replication_faults.py"


@cache
def every() -> dict[str, Scenario]:
    """Those of the subsystems, and those with faults."""
    modules = [s.layer("impl", "simulation") for s in scenarios().values()]
    modules += [
        importlib.import_module(f"tests.{f.parent.name}.{f.stem}")
        for area in ("storage", "controller", "simulate")
        for f in sorted((TESTS / area).glob("*.py"))
        if f.stem.endswith("_faults") or f.stem == "toy"
    ]
    return {f"{m.__name__}.{k}": s for m in modules for k, s in vars(m).items() if isinstance(s, Scenario)}


def step(node: str, what: Any) -> dict[str, Any]:
    return {"step 1": [7, "ask", node, what]}


def test_all_that_is_drawn_is_understood_and_nothing_like_it() -> None:
    assert len(every()) > 50
    for name, scenario in every().items():
        rng = Random(1)
        for kind, draw in scenario.workload.items():
            drawn = {orjson.dumps([*draw(rng)]) for _ in range(300)}
            for node, what in map(orjson.loads, drawn):
                assert checked(scenario, step(node, what), name), (name, kind)
                for wrong in unlike(what):
                    assert not scenario.understands(node, wrong), (name, wrong)


def unlike(what: Any) -> list[Any]:
    """The same of another name, of no name, and with fewer or more arguments."""
    if not isinstance(what, list):
        return [str(what), [what], None]
    first, *more = what
    return [[f"{first}s", *more], more, first, [first, *more, 1], *([[first], [first, None]] if more else [])]


@pytest.mark.parametrize(
    ("name", "node", "what"),
    [
        ("replication", "k", ["elects"]), ("replication", "p1", ["elect"]), ("replication", "k", ["produce", 1]),
        ("replication", "p1", ["produce", -1]), ("replication", "p1", ["produce", 17]), ("replication", "b1", ["stop"]),
        ("replication", "p1", ["produce"]), ("replication", "p1", ["produce", "x"]), ("replication", "k", ["no", 1]),
        ("replication:ELIGIBLE", "k", ["stop"]), ("replication:REASSIGNING", "k", ["reassign", []]),
        ("replication:REASSIGNING", "k", ["reassign", ["b1", "b1"]]),
        ("replication:REASSIGNING", "k", ["reassign", ["b1", "b9"]]), ("replication:REASSIGNING", "b1", ["cancel"]),
        ("replication:REASSIGNING", "b1", ["reassign", ["b1"]]), ("last_stable", "q", ["end", True]),
        ("last_stable", "p1", ["end", 1]), ("last_stable", "k", ["end", True]), ("last_stable", "p1", ["elect"]),
        ("last_stable", "c", ["produce", 1]), ("quorum", "r", ["create", ["c1"]]), ("quorum", "w1", ["read", "c1"]),
        ("quorum", "w1", ["fail over"]), ("quorum:CHANGING", "k1", ["add", 6]), ("quorum", "k1", ["read", "c1"]),
        ("quorum:CHANGING", "w1", ["add", 1]),
    ],
)  # fmt: skip
def test_what_no_node_does_is_refused(name: str, node: str, what: Any) -> None:
    scenario = find(name)
    assert node in scenario.nodes
    with pytest.raises(UserError, match="no choice of"):
        checked(scenario, step(node, what), "f")


def test_a_kept_failure_does_not_turn_green(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a request has another name since."""
    name = f"{FAULTS}:truncates_to_high_watermark"
    out = str(tmp_path)
    with pytest.raises(SystemExit):
        main(["simulate", name, "--seed", "0", "--threads", "1", "--out", out])
    (file,) = tmp_path.glob("*.json")
    kept = json.loads(file.read_text())
    asked = next(k for k, v in kept["choices"].items() if v[1:] == ["ask", "k", ["elect"]])
    kept["choices"][asked][3] = ["elects"]
    file.write_text(json.dumps(kept))
    capsys.readouterr()
    with pytest.raises(SystemExit) as e:
        main(["simulate", "--replay", str(file)])
    said, err = capsys.readouterr()
    assert (e.value.code, said, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"kafkaspec: {file}: no choice of ")
    assert f"'{asked}': [" in err
    assert "['elects']" in err


def test_a_scenario_that_does_not_say_what_it_understands(tmp_path: Path) -> None:
    """Of one's own, as before."""
    file = tmp_path / "run.json"
    about = {"format": 1, "simulation": "toy", "seed": 1, "schedule": "mixed", "rule": ""}
    file.write_bytes(orjson.dumps({**about, "choices": step("adder", "x")}))
    silent = replace(ADDS_TWICE, understands=Scenario.understands)
    assert history.read(file).choices == step("adder", "x")
    assert replay(silent, file).rule == ""
    with pytest.raises(UserError, match="no choice of toy"):
        replay(ADDS_TWICE, file)
