"""An action that no state can take, one that larger or uneven sizes can, and one of which neither is known; and what is
too large to be proved."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaspec.errors import UserError
from kafkaspec.language import Model, load
from kafkaspec.prove import engine, values
from kafkaspec.prove.engine import SMALL, prove
from kafkaspec.prove.proof import Proof
from kafkaspec.prove.values import LISTED
from kafkaspec.report.describe import describe
from tests.modules import HEAD, module

TEXT = """
class M(Model):
    n: Num
    {more}

    @action()
    def go(s) -> None:
        require({guard})
        s.next.n = 0

    @invariant()
    def low(s) -> bool:
        return s.n == 0

    @witness
    def seen(s) -> bool:
        return s.n == 0
"""


def text(folder: Path, guard: str, more: str = "") -> type[Model]:
    found: type[Model] = module(f"{HEAD}K = Size('K')\n{TEXT.format(guard=guard, more=more)}", folder).M
    return found


@pytest.mark.parametrize(
    ("guard", "outcome"),
    [
        ("N < K", "proved"),
        ("N > K + 1", "proved"),
        (f"N == {SMALL}", "proved"),
        ("N > 5 and len(P) == 3", "proved"),
        (f"N > {SMALL}", "unknown"),
        ("s.n > 0", "refuted"),
        ("N < K and K < N", "refuted"),
    ],
)
def test_an_action_is_possible_or_impossible_or_neither_is_known(tmp_path: Path, guard: str, outcome: str) -> None:
    m = load(text(tmp_path, guard))
    for p in (prove(m), Proof(m).run()):
        assert not p.by_verdict("unknown")
        assert not p.by_verdict("refuted")
        assert p.outcome == outcome
        assert p.vacuous == (("go",) if outcome == "refuted" else ())
        assert p.unseen == (("go",) if outcome == "unknown" else ())
        assert p.explored_only == ("seen",)


def test_an_action_that_exploring_has_taken_is_not_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(engine, "possible", lambda m, action, *_: asked.append(action))
    assert Proof(load(text(tmp_path, "N > 1"))).run().unseen == ()
    assert Proof(load(text(tmp_path, "N > 1")), explored_at={"N": 1}).run().unseen == ("go",)
    assert asked == ["go"]


def test_a_sort_of_many_elements_is_not_proved_one_by_one(tmp_path: Path) -> None:
    m = load(text(tmp_path, "True", "z: dict[P, bool]"))
    assert prove(m).complete
    assert prove(m, fixed={"P": 5}).complete
    with pytest.raises(UserError, match=rf"P={LISTED + 1}: a proof at given sizes reads at most {LISTED} elements"):
        prove(m, fixed={"P": LISTED + 1})


def test_what_is_long_stays_quantified(tmp_path: Path) -> None:
    m = load(text(tmp_path, "all(x >= 0 for x in range(0, 100000))", "z: Annotated[list[bool], Bounded(1000000000)]"))
    assert prove(m).complete


def test_what_has_very_many_parts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert values.MOST_READ == 50_000
    monkeypatch.setattr(values, "MOST_READ", 500)
    deep = "bool"
    for _ in range(8):
        deep = f"dict[bool, {deep}]"
    m = load(text(tmp_path, "True", f"y: {deep}"))
    assert prove(m).complete
    with pytest.raises(UserError, match=r"py:\d+: more than 500 values of variables are read"):
        prove(load(text(tmp_path, "True", f"z: dict[bool, {deep}]")))


@pytest.mark.parametrize(
    ("variables", "where"),
    [
        ("", ""),
        ("few: Annotated[int, Range(1, 3 * N)]", ""),
        ("few: Annotated[int, Range(2, N)]", " at which few has a value"),
        ("few: dict[P, Annotated[int, Range(N, 3)]]", " at which few has a value"),
        ("few: Annotated[int, Range(N, 3)]\n    more: Annotated[int, Range(K, N)]", " at which few, more have values"),
    ],
)
def test_the_verdict_says_at_which_sizes_a_variable_has_no_value(tmp_path: Path, variables: str, where: str) -> None:
    """There is no state of these sizes, so that a claim about them is true of nothing."""
    p = prove(load(text(tmp_path, "True", variables)))
    assert p.summary().partition(" obligations ")[2].startswith(f"for every size{where} in ")
    (verdict, *_) = (s.verdict.text for s in describe(p))
    assert (verdict, p.outcome) == (f"proved for every size{where}", "proved")


NEVER = """
class M(Model):
    b: bool

    @initial
    def start(s) -> None:
        require(len(P) < 1)
        s.next.b = True

    @action()
    def flip(s) -> None:
        s.next.b = not s.b

    @step()
    def flips(s) -> bool:
        return s.next.b != s.b
{more}"""


@pytest.mark.parametrize("more", ["", "\n    @invariant()\n    def fine(s) -> bool:\n        return s.b or not s.b\n"])
def test_steps_alone_are_proved_of_no_model_without_a_first_state(tmp_path: Path, more: str) -> None:
    """Nothing is asked of the start when only a step claim is, and no type is limited."""
    m = load(module(f"{HEAD}{NEVER.format(more=more)}", tmp_path).M)
    for p in (prove(m), prove(m, claims=["flips"])):
        assert (p.vacuous, p.outcome) == (("(start)",), "refuted")
