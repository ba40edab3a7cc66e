"""Refinements that a reviewer wrote: what the explorer breaks is never proved, and no engine gives up on one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.language import load
from kafkaspec.prove.engine import prove
from tests.attempts import HEAD
from tests.language.test_verdicts import said_by_the_text
from tests.modules import module

TEXTS = [
    (*first.split(), text)
    for part in re.split(r"^=== ", (Path(__file__).parent / "refinements.txt").read_text(), flags=re.M)[1:]
    for first, _, text in [part.partition("\n")]
]


@pytest.mark.parametrize(("name", "proved", "explored", "text"), TEXTS, ids=lambda x: x if len(x) < 9 else "")
def test_the_engines_agree_about_a_refinement(name: str, proved: str, explored: str, text: str, tmp_path: Path) -> None:
    model = module(HEAD + text, tmp_path, name).M
    if proved == "refused":
        with pytest.raises(UserError, match="is assigned at an index and as a whole"):
            load(model)
        return
    m = load(model)
    assert prove(m, timeout_s=3).complete == (proved == "proved")
    sizes: dict[str, int | bool] = dict.fromkeys(m.sizes, 2)
    if explored == "refused":
        with pytest.raises(UserError, match="has no upper limit"):
            explore(m, sizes)
        return
    found = explore(m, sizes, deadlock=True, liveness=False)
    assert (found.trace is not None) == (explored == "broken")
    if explored == "holds":
        assert said_by_the_text(model, sizes) == ""
