"""Expressions that a model's text makes larger than any engine goes: refused when the text is read, with its line; and
those just within, of which all engines say what there is to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.export import tla
from kafkaspec.language import LoadedModel, load
from kafkaspec.language.expr import DEEPEST, MOST_PARTS
from kafkaspec.prove.engine import prove
from tests.modules import HEAD, module

TEXT = """
class M(Model):
    n: Num
    S: set[P]
    q: Annotated[list[bool], Bounded(N)]

    @action()
    def act(s, p: P) -> None:
        s.next.S = s.S | {{p}}

    @invariant()
    def claim(s) -> bool:
        {lines}
"""


def text(folder: Path, lines: list[str]) -> LoadedModel:
    return load(module(HEAD + TEXT.format(lines="\n        ".join(lines)), folder).M)


def chain(first: str, line: str, times: int, last: str) -> list[str]:
    return [f"a = {first}", *[f"a = {line}"] * times, f"return {last}"]


DEEP = {
    "numbers": lambda n: chain("s.n", "(a + s.n) % 7", n // 2, "a <= 7"),
    "conditions": lambda n: chain("s.n", "0 if s.n > a else 1", n // 2, "a <= N"),
    "sets": lambda n: chain("s.S", "(a | s.S) - (s.S if s.n > N else s.S & s.S)", n // 4, "len(a) <= len(P)"),
    "a set of many": lambda n: [f"return len({{{', '.join(map(str, range(n)))}}}) > 0"],
    "a list of many": lambda n: [f"a = [{', '.join(['True'] * n)}]", "return all(x for x in a)"],
}


@pytest.mark.parametrize("kind", DEEP)
def test_what_is_too_deep_is_refused_with_its_line(tmp_path: Path, kind: str) -> None:
    with pytest.raises(UserError, match=rf"\.py:\d+: an expression has more than {DEEPEST} parts one within another"):
        text(tmp_path, DEEP[kind](2 * DEEPEST + 20))


@pytest.mark.parametrize("kind", DEEP)
def test_what_is_nearly_too_deep_is_explored_proved_and_exported(tmp_path: Path, kind: str) -> None:
    m = text(tmp_path, DEEP[kind](DEEPEST - 12))
    assert explore(m, {"N": 1, "P": 2}).trace is None
    assert {o.verdict for o in prove(m, timeout_s=2).obligations} <= {"proved", "unknown"}
    assert "claim ==" in tla(m, {"N": 1, "P": 2})[0]


@pytest.mark.parametrize(
    ("first", "line", "last"),
    [
        ("s.n", "a + a", "a >= 0"),
        ("s.n", "min(a, 3) + min(a, 2) - min(a, 3)", "a >= 0"),
        ("s.S", "(a | s.S) - (a & s.S)", "len(a) <= len(P)"),
        ("s.q", "a + a", "all(x or not x for x in a)"),
    ],
)
def test_what_doubles_with_each_line_is_refused_with_its_line(tmp_path: Path, first: str, line: str, last: str) -> None:
    refused = rf"\.py:\d+: an expression has more than {MOST_PARTS:,} parts, when each that it names is written out"
    with pytest.raises(UserError, match=refused):
        text(tmp_path, chain(first, line, 40, last))


def test_a_long_chain_of_elif_is_refused_with_its_line(tmp_path: Path) -> None:
    lines = ["a = 0", "if s.n == 0:", "    a = 0", *[x for n in range(30) for x in (f"elif s.n == {n}:", "    a = 1")]]
    with pytest.raises(UserError, match=r"\.py:\d+: too many statically nested blocks: each `elif` is within"):
        text(tmp_path, [*lines, "return a < 2"])
