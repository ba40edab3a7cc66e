"""Of mutants whose clauses are known, the rejection cites one: of some here, more in a deep test, all in the table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.contract.subsystem import find, subsystems
from kafkaspec.mutants.blame import Citation, asked, cited

MEASURED = Path(__file__).parents[2] / "docs" / "measured" / "blame.json"
CITED, FIRST = 0.92, 0.73
"""The least share of the mutants of which a clause is cited, and is the headline. The rules of the log and of the last
stable offset are seen in the same few answers: of their mutants two thirds have theirs as the headline, of the others
78 %. So are those of a split in the same few files: of the log loader's mutants eight of 40 cite other rules.
And where requests wait for several partitions, one is seen late, in whatever is answered then: of the replica manager's
and the high watermark's mutants one in seven. What the event queue answers is all that its thread did until it slept,
and what a call leaves of the quorum controller shows many rules at once: of these mutants two thirds have theirs as the
headline."""


def table() -> Mapping[str, Mapping[str, Any]]:
    return dict(json.loads(MEASURED.read_text("utf-8")))


def known(name: str) -> list[Citation]:
    return [Citation(m, tuple(c["states"]), tuple(c["cites"]), c["how"]) for m, c in table()[name].items()]


def shares(found: Iterable[Citation]) -> tuple[float, float]:
    """Of how many of them a clause is cited, and is the headline."""
    found = list(found)
    return sum(c.right for c in found) / len(found), sum(c.first for c in found) / len(found)


def test_the_right_rule_is_cited() -> None:
    s = find("leader_epochs")
    found = [cited(s, m) for m in asked(s)[::12]]
    assert all(c.how == "rejected" and 0 < len(c.cited) <= 3 for c in found)
    share, first = shares(found)
    assert share >= 0.85
    assert first >= 0.5


def test_the_table_is_of_the_mutants_that_there_are() -> None:
    stated = {name: {m.name: m.clauses for m in asked(s)} for name, s in subsystems().items()}
    assert {name: {c.mutant: c.stated for c in known(name)} for name in table()} == stated, "run bench/blame.py"


def test_the_shares_in_the_table_are_as_high_as_they_must_be() -> None:
    share, first = shares(c for name in table() for c in known(name))
    assert share >= CITED
    assert first >= FIRST


@pytest.mark.deep
@pytest.mark.parametrize("name", subsystems())
def test_each_fourth_is_cited_as_in_the_table(name: str) -> None:
    """But for a few: histories change with the specs."""
    s = find(name)
    some = asked(s)[::4]
    found = [cited(s, m) for m in some]
    before = {c.mutant: c for c in known(name)}
    again = f"run bench/blame.py {name} --again"
    assert sum(c.right != before[c.mutant].right for c in found) <= 1 + len(some) // 8, again
    assert sum(c.first != before[c.mutant].first for c in found) <= 1 + len(some) // 4, again


def test_a_citation_is_right_if_one_is_among_them() -> None:
    c = Citation("it", ("A-1", "A-2"), ("A-3", "A-2"), "rejected")
    assert (c.right, c.first) == (True, False)
    assert not c._replace(cited=()).right
    assert c._replace(cited=("A-1",)).first
