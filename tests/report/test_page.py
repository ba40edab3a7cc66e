"""The page and the drawings: whole in themselves, well formed, with everything marked that matters; and the JSON."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkaspec.language import Trace, TraceStep, load
from kafkaspec.lockstep.compare import ABSENT, Difference
from kafkaspec.models.examples.two_phase import TwoPhase
from kafkaspec.report.describe import describe
from kafkaspec.report.html import html, state_rows
from kafkaspec.report.json import to_json
from kafkaspec.report.junit import junit
from kafkaspec.report.sequence import conversation_svg, sequence_svg, staged
from tests.lockstep.toy_model import ToyQueue
from tests.report.results import INDUCTION, LASSO, NAMES, RUNS, VIOLATION, results, step

VOID = {"meta", "input", "br", "link"}


class Balanced(HTMLParser):
    """Fails where an element is closed that was not opened last."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole_and_needs_nothing_else(name: str) -> None:
    page = html(results()[name], title=f"A page of {name}")
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    addresses = re.findall(r'(?:src|href|url|@import|action)\s*[=(]\s*["\']?([^"\')\s>]+)', page)
    assert all(a.startswith("#s") for a in addresses)
    assert set(re.findall(r"https?://[^\"'\s]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert f"<title>A page of {name}</title>" in page


def test_text_of_results_cannot_become_markup() -> None:
    evil = "<script>alert(1)</script>&"
    trace = replace(VIOLATION, claim=evil, steps=(*VIOLATION.steps, step(evil, evil, {"x": evil}, **{evil: evil})))
    page = html(trace, title=evil)
    assert "<script>alert" not in page
    assert "alert(1)" in page


def test_the_rule_the_verdict_and_the_command_stand_in_the_page() -> None:
    page = html(results()["rejected"])
    assert "rejected at step" in page
    assert "kafkaspec check bad.ndjson" in page
    page = html(VIOLATION)
    assert "<blockquote><b>CLN-7</b> " in page  # loaded with its spec, though no model loads it


def test_the_state_table_marks_what_changes() -> None:
    rows = {r.path: r for r in state_rows(VIOLATION)}
    assert rows["status[p1]"].values == ("FREE", "IN_PROGRESS", "ABORTED", "FREE")
    assert rows["status[p1]"].changed == (False, True, True, True)
    assert rows["cleaning[t0]"].values == ("none", "p1", "p1", "none")
    assert rows["isr"].still
    assert rows["status[p0]"].still
    assert html(VIOLATION).count("class=changed") == sum(sum(r.changed) for r in rows.values()) == 6


@pytest.mark.parametrize("trace", RUNS, ids=lambda t: t.kind)
def test_a_diagram_is_well_formed_and_draws_every_step(trace: Trace) -> None:
    root = ElementTree.fromstring(sequence_svg(trace))
    drawn = [g.get("data-step") for g in root.iter("{http://www.w3.org/2000/svg}g")]
    assert drawn == [str(i) for i in range(1, len(trace.steps))]
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for e in root.iter():
        x, y = float(e.get("x", "0")), float(e.get("y", "0"))
        assert 0 <= x <= x + float(e.get("width", "0")) <= width
        assert 0 <= y <= y + float(e.get("height", "0")) <= height


def test_lanes_are_those_who_act_and_what_is_acted_upon() -> None:
    lanes, scenes = staged(VIOLATION, None)
    assert lanes == {"t0": "cleaner thread t0", "retention": "retention", "p1": "p1"}  # others act upon p1
    assert (scenes[1].actor, scenes[1].targets) == ("retention", ("p1",))
    assert scenes[1].notes == {"p1": ("status = ABORTED",), "retention": ("pauses = 2",)}
    alone = replace(VIOLATION, steps=(VIOLATION.steps[1], VIOLATION.steps[3]))
    assert staged(alone, None)[0] == {"t0": "cleaner thread t0"}
    idle = step("idle", "cleaner thread", {}, **VIOLATION.steps[3].state)
    assert staged(replace(alone, steps=(*alone.steps, idle)), None)[0]["cleaner thread"] == "cleaner thread"
    explored = results()["explored"]
    lanes, _ = staged(explored.witnesses["full_and_saved"], load(ToyQueue))
    assert lanes == {"user": "user"}
    transactions = load(TwoPhase)
    lanes, _ = staged(Trace("TwoPhase", {}, "walk", "", (), (*two_phase(),)), transactions)
    assert lanes == {"m0": "resource manager m0", "transaction manager": "transaction manager"}


def two_phase() -> Iterator[TraceStep]:
    """A manager prepares, and is heard."""
    yield step("", "", {}, promised=[])
    yield step("prepare", "resource manager", {"m": "m0"}, promised=["m0"])
    yield step("hear_prepared", "transaction manager", {"m": "m0"}, promised=["m0"])


def test_a_lasso_goes_back_and_the_last_line_says_why() -> None:
    assert "the waiter returns never comes true" in sequence_svg(LASSO)
    assert "need" not in sequence_svg(replace(VIOLATION, kind="walk"))
    assert "is broken after the step" in sequence_svg(INDUCTION)


@pytest.mark.parametrize("name", NAMES)
def test_every_result_is_json(name: str) -> None:
    result = results()[name]
    plain = to_json(result)
    assert orjson.loads(orjson.dumps(plain)) == plain
    for one, source in zip(plain, result, strict=True) if isinstance(result, list) else [(plain, result)]:
        assert one["type"] == type(source).__name__
        assert list(one)[1:] == list(source.__dataclass_fields__)


def test_json_of_values_that_json_does_not_have() -> None:
    assert to_json(Difference("x", ABSENT, {1: {"b", "a"}})) == {
        "type": "Difference",
        "path": "x",
        "seen": {"1": ["a", "b"]},
    }
    explored = to_json(results()["explored"])
    assert explored["model"] == "ToyQueue"
    assert to_json(results()["campaign"])["seeds"] == [0, 40]
    (rejection,) = to_json(results()["rejected target"])["tally"]["rejections"]
    assert (rejection["clause"], rejection["verdict"]["others"]) == ("TOY-1", ["TOY-4", "TOY-2"])
    assert (rejection["blame"]["how"], rejection["blame"]["agrees"], rejection["blame"]["of"]) == ("always held", 7, 9)
    assert to_json([Path("a/b"), range(3)]) == ["a/b", [0, 3]]
    with pytest.raises(TypeError, match="object has no shape in JSON"):
        to_json(object())


def test_a_judged_history_is_a_conversation() -> None:
    rejected = results()["rejected target"]
    (conversation,) = (s.conversation for s in describe(rejected) if s.conversation is not None)
    root = ElementTree.fromstring(conversation_svg(conversation))
    drawn = [g.get("data-step") for g in root.iter("{http://www.w3.org/2000/svg}g")]
    assert drawn == [str(i) for i in range(len(rejected.rejections[0].history.records))]
    text = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert text[:2] == ["judge", "A toy 1.0"]
    assert any(t is not None and t.startswith("✗ TOY-1 state.items") for t in text)
    assert sum(t is not None and t.startswith(("->", "!!")) for t in text) == len(drawn)
    page = html(rejected)
    assert "</script>&#34;" in page or "&lt;/script&gt;" in page
    assert "as a trace, for kafkaspec check" in page


def test_junit_is_what_continuous_integration_reads() -> None:
    root = ElementTree.fromstring(junit(results()["targets"]).encode())
    rejected, troubled = root
    assert (root.tag, rejected.tag, troubled.tag) == ("testsuites", "testsuite", "testsuite")
    counted = [[suite.get(what) for what in ("tests", "failures", "errors", "skipped")] for suite in root]
    assert counted == [["3", "1", "0", "1"], ["3", "0", "1", "1"]]
    for suite, numbers in zip(root, counted, strict=True):
        tags = ["testcase", "testcase/failure", "testcase/error", "testcase/skipped"]
        assert [str(len(suite.findall(tag))) for tag in tags] == numbers
        assert [case.get("name") for case in suite] == ["campaign", "TOY-1", "TOY-4"]
    first, failed, skipped = rejected
    assert [[e.tag for e in case] for case in (first, failed, skipped)] == [
        ["system-out"], ["failure", "system-out"], ["skipped"]
    ]  # fmt: skip
    assert failed[0].get("type") == "TOY-1"
    assert str(failed[0].text).startswith("breaks TOY-1, or TOY-4, TOY-2\n")
    assert "--replay out/judge/toy-1.ndjson" in str(failed[0].text)
    assert str(failed[1].text) == "900 calls, 2 of 3 sides of its conditions taken"
    assert [e.tag for e in troubled[0]] == ["error", "system-out"]
    in_part = replace(results()["rejected target"], not_offered=("pop",), in_part=("push (value is 0)",))
    assert "; not offered: pop; offered in part: push (value is 0)<" in junit([in_part])
    assert troubled[0][0].get("type") == "hangs"
    assert "it is\ufffd hot\n<b>\ninit\npush value=1" in str(troubled[0][0].text)


def test_there_is_one_result_of_every_kind() -> None:
    assert tuple(results()) == NAMES
