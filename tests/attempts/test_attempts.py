"""Each attempt ends as it is said to, in the text as Python runs it, the explorer and the prover."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.language import Model, load
from kafkaspec.language.expr import ModelError
from kafkaspec.prove.engine import prove
from tests.attempts import Attempt, attempts
from tests.language.test_verdicts import said_by_the_explorer, said_by_the_text
from tests.modules import module

ALL = attempts()


def model_of(a: Attempt, folder: Path) -> type[Model]:
    found: type[Model] = module(a.source, folder, "attempt").M
    return found


def test_what_the_texts_import_is_there() -> None:
    """Each fourth text is tried by `make test`; a name that moved shows here in all of them."""
    for line in {line.strip() for a in ALL for line in re.findall(r"^ *from kafkaspec.* import \w.*$", a.source, re.M)}:
        exec(line, {})


def refused(a: Attempt) -> Any:
    """One is read for seconds before it is too large; `make test` asks of that with a lower limit, in tests/explore."""
    return pytest.param(a, marks=pytest.mark.deep if "500,000" in a.told else ())


@pytest.mark.parametrize("a", [refused(a) for a in ALL if a.outcome == "refused"], ids=lambda a: a.number)
def test_what_has_no_meaning_is_refused_with_its_place(a: Attempt, tmp_path: Path) -> None:
    def asked() -> None:
        explore(load(model_of(a, tmp_path)), a.sizes, deadlock=True, liveness=False)

    with pytest.raises(UserError) as e:
        asked()
    assert a.told in str(e.value)
    assert re.search(r"attempt_\d+\.py:\d+: ", str(e.value)) or not isinstance(e.value, ModelError)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("a", [a for a in ALL if a.outcome == "broken"], ids=lambda a: a.number)
def test_what_the_text_breaks_is_broken_to_every_engine(a: Attempt, tmp_path: Path) -> None:
    model = model_of(a, tmp_path)
    assert said_by_the_text(model, a.sizes) == a.told
    assert said_by_the_explorer(load(model), a.sizes) == a.told
    p = prove(load(model), timeout_s=1, until=lambda o: o.verdict != "proved")
    assert not p.complete or load(model).leads_to.keys() & {*p.explored_only}


@pytest.mark.parametrize("a", [a for a in ALL if a.outcome == "holds"], ids=lambda a: a.number)
def test_what_the_text_keeps_no_engine_breaks(a: Attempt, tmp_path: Path) -> None:
    model = model_of(a, tmp_path)
    assert said_by_the_text(model, a.sizes) == ""
    assert said_by_the_explorer(load(model), a.sizes) == ""
