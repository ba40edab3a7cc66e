"""What is counted in two places of a text is one number, whatever the variables are called; and nothing else is."""

from __future__ import annotations

import pytest

from kafkaspec.language import LoadedModel
from kafkaspec.language.parts import shape, used
from kafkaspec.prove.engine import prove
from tests.language.texts import model

HEAD = 'K = Size("K")\n'
PERMITS = """
@action()
def take(s, p: P, n: Annotated[int, Range(1, N)]) -> None:
    require(s.of[p] == 0, {guard} < K)
    s.next.of[p] = n
@action()
def drop(s, p: P) -> None:
    s.next.of[p] = 0
@invariant()
def few(s) -> bool:
    return {claim} <= K
"""
COUNTS = [
    "len({{{x} for {x} in P if s.of[{x}] > 0}})",
    "sum(1 for {x} in P if s.of[{x}] > 0)",
    "sum(1 for {x} in P if any(s.of[{x}] == {y} for {y} in range(1, N + 1)))",
]


def permits(guard: str, claim: str) -> LoadedModel:
    return model(PERMITS.format(guard=guard, claim=claim), "of: dict[P, Num]\n", HEAD)


@pytest.mark.parametrize("count", COUNTS)
def test_a_number_is_one_whatever_its_variables_are_called(count: str) -> None:
    guard, claim = count.format(x="p2", y="q2"), count.format(x="d", y="e")
    assert prove(permits(guard, claim)).complete


@pytest.mark.parametrize(
    ("guard", "claim"),
    [
        ("sum(1 for x in P if s.of[x] > 1)", "sum(1 for x in P if s.of[x] > 0)"),
        ("sum(1 for x in P if any(x == y for y in P))", "sum(1 for x in P if any(x != y for y in P))"),
        (
            "sum(1 for x in P if any(s.of[x] > s.of[y] for y in P))",
            "sum(1 for x in P if any(s.of[y] > s.of[x] for y in P))",
        ),
    ],
)
def test_numbers_of_different_things_are_not_one(guard: str, claim: str) -> None:
    m = permits(guard, claim)
    asked = next(a for a in m.actions if a.name == "take").guard[1]
    counted = [
        {shape(x) for x in used(e) if x.op in ("count", "sum", "card")} for e in (asked, m.invariants["few"].expr)
    ]
    assert counted[0].isdisjoint(counted[1])


def test_a_false_limit_is_not_proved() -> None:
    text = PERMITS.replace("< K", "<= K").format(
        guard="sum(1 for x in P if s.of[x] > 0)", claim="sum(1 for y in P if s.of[y] > 0)"
    )
    assert not prove(model(text, "of: dict[P, Num]\n", HEAD)).complete


def test_a_number_is_counted_where_another_value_has_a_name() -> None:
    """A comparison in a row names what stands in its middle; what is counted behind it does not speak of it."""
    text = """
@action()
def wait(s) -> None:
    pass
@invariant()
def few(s, k: Annotated[int, Range(N, N + 1)]) -> bool:
    return k <= max((x for x in range(K)), default=k) < sum(1 for r in s.some)
"""
    head = HEAD + "@dataclass(frozen=True)\nclass Item:\n    of: P\n"
    found = prove(model(text, "some: Annotated[set[Item], Bounded(N)]\n", head))
    assert [o.verdict for o in found.obligations if o.claim == "few"].count("refuted")
