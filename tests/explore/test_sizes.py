"""What is too large to be explored is refused at once, with one line that says what is too large."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore import code
from kafkaspec.explore.emit import GREATEST
from kafkaspec.explore.engine import explore
from kafkaspec.language import Model, load
from kafkaspec.language.concrete import Concrete
from tests.modules import HEAD, module

TEXT = """
class M(Model):
    n: Num

    @action()
    def go(s, k: Num) -> None:
        s.next.n = k

    @invariant()
    def holds(s) -> bool:
        return {claim}
"""


def text(folder: Path, claim: str, more: str = "") -> type[Model]:
    found: type[Model] = module(HEAD + TEXT.format(claim=claim) + more, folder).M
    return found


@pytest.mark.parametrize(
    ("claim", "kept"),
    [
        (f"s.n + {GREATEST - 2} >= s.n", True),
        (f"s.n + {GREATEST - 1} >= s.n", False),
        (f"s.n - {GREATEST - 1} <= {GREATEST - 1} - s.n", True),
        (f"s.n - {GREATEST} < 0 and s.n - {GREATEST} - 1 < 0", False),
        (f"s.n * {GREATEST // 2} >= s.n", True),
        (f"s.n * {GREATEST // 2 + 1} >= s.n", False),
        (f"s.n * -{GREATEST // 2} <= 0", True),
        (f"s.n * -{GREATEST} <= 0", False),
        (f"s.n // {GREATEST} == 0 and s.n % {GREATEST} == s.n", True),
        (f"s.n // {4 * GREATEST} == 0", False),
        (f"sum({GREATEST // 2} for x in range(0, s.n)) >= 0", True),
        (f"sum({GREATEST // 2} for x in range(0, N + 1)) >= 0", False),
    ],
)
def test_numbers_are_exact_or_refused(tmp_path: Path, claim: str, kept: bool) -> None:
    m = load(text(tmp_path, claim))
    if kept:
        assert explore(m, {"N": 2}).outcome == "complete"
        return
    with pytest.raises(UserError, match=r"py:\d+: .* may be beyond 62 bits"):
        explore(m, {"N": 2})


@pytest.mark.parametrize(
    ("claim", "more", "size", "message"),
    [
        (
            "all(x + y >= 0 for x in range(0, 5000) for y in range(0, 5000))",
            "",
            1,
            "takes more than 20,000 operations",
        ),
        ("True", "", 2_000_000, "has more than 1,048,576 values at these sizes"),
        ("True", "    z: dict[Num, bool]", 70_000, "a state takes 70,018 bits at these sizes, of at most 65,536"),
        ("True", "    z: set[P]", 40, "set[P] has more than 1,048,576 values"),
        ("True", "    z: set[P]", 11, "py:26: k, m can be chosen in more than 1,048,576 ways"),
        ("True", "    z: set[P]", 9, "py:26: draw can be taken in 262,144 ways at these sizes, where all actions may"),
    ],
)
def test_what_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claim: str, more: str, size: int, message: str
) -> None:
    monkeypatch.setattr(code, "MOST_READ", 20_000)  # `make deep` meets it as it is
    act = "\n    @action()\n    def draw(s, k: set[P], m: set[P]) -> None:\n        s.next.z = k | m\n"
    m = load(text(tmp_path, claim, more + (act if "set[P]" in more else "")))
    sizes: dict[str, int | bool] = {"N": 1, "P": size} if "P" in m.sizes else {"N": size}
    with pytest.raises(UserError) as e:
        explore(m, sizes)
    assert message in str(e.value)


@pytest.mark.parametrize(
    ("claim", "more", "message"),
    [
        ("len({x * 9000 for x in range(0, s.n + 1)}) > 0", "", r"{\(x \* 9000\) for x in .* takes 9,024"),
        ("len({0, 9000, s.n}) > 0", "", "takes 9,024 bits at once at these sizes, of at most 8,192"),
        ("{s.n * 9000} != {1}", "", r"\(n \* 9000\)}\) takes 18,048"),
        ("len(s.z) < 1", "    z: set[Annotated[int, Range(0, 9000)]]", "py:24: z takes 9,024 bits"),
        ("s.z[s.n]", "    z: dict[Annotated[int, Range(0, 9000)], bool]", r"py:24: z\[n\] takes 9,024 bits"),
        ("len(s.z) < 1", "    z: Annotated[list[Annotated[int, Range(0, 999)]], Bounded(900)]", "py:24: z takes 9,0"),
        ("s.z is None", "    z: Annotated[list[Annotated[int, Range(0, 999)]], Bounded(900)] | None", "takes 9,0"),
    ],
)
def test_what_is_too_wide_to_be_computed_with_is_refused(tmp_path: Path, claim: str, more: str, message: str) -> None:
    m = load(text(tmp_path, claim, more + "\n"))
    with pytest.raises(UserError, match=message):
        explore(m, {"N": 2})


def test_a_constant_that_is_too_wide_to_be_stored_is_refused(tmp_path: Path) -> None:
    more = "    z: set[Num]\n    @action()\n    def clear(s) -> None:\n        s.next.z = set()\n"
    with pytest.raises(UserError, match=r"py:\d+: z takes 60,0\d\d bits at once"):
        explore(load(text(tmp_path, "True", more)), {"N": 60_000})


def test_what_is_wide_and_read_in_place_is_explored(tmp_path: Path) -> None:
    wide = "    z: dict[Annotated[int, Range(0, 9000)], bool]\n"
    act = "    @action()\n    def put(s) -> None:\n        s.next.z[9000] = not s.z[0]\n"
    assert explore(load(text(tmp_path, "not s.z[1]", wide + act)), {"N": 2}).distinct == 6


GHOST = """
class M(Model):
    b: bool
    g: Natural
    S: set[Natural]
    o: Natural | None
    ghosts = ("g", "S", "o")

    @action()
    def count(s) -> None:
        require(s.g < {most})
        s.next.g = s.g + 1
        s.next.b = not s.b
        {effect}

    @invariant()
    def holds(s) -> bool:
        return {claim}
"""
NATURAL = "Natural = Annotated[int, Range(0)]\n"


@pytest.mark.parametrize(
    ("claim", "most", "told"),
    [
        ("len({s.g, 1}) <= 2", 255, ""),
        ("len({s.g + 1, 1}) <= 2", 255, "may be beyond 255"),  # 256 would be another's bit
        ("len({s.g + s.g}) == 1", 130, "may be beyond 255"),
        ("s.g + s.g in {s.g + s.g, 3} - {4}", 130, "may be beyond 255"),
        ("(s.g + s.g if s.b else None) != (s.o if s.b else s.g) or s.g < 9", 130, ""),
        ("[s.g + s.g, 1][1] == 1", 130, "may be beyond 255"),
        ("sum(1 for x in range(0, s.g)) == s.g", 255, ""),
        ("sum(1 for x in range(0, s.g + 1)) == s.g + 1", 255, ""),
        ("sum(1 for x in range(0, s.g + 2)) == s.g + 2", 255, "asks numbers without an upper limit"),
        ("all(x != 300 for x in range(0, s.g + s.g)) or s.g > 150", 160, "asks numbers without an upper limit"),
        ("any(x == 300 for x in range(0, s.g + s.g)) or s.g < 151", 160, "asks numbers without an upper limit"),
        ("max((x for x in range(0, s.g + s.g)), default=0) + 2 > s.g", 130, "asks numbers without an upper limit"),
        ("len({x for x in range(0, s.g + s.g)}) == s.g + s.g", 130, "asks numbers without an upper limit"),
        ("len({x // 2 for x in range(0, s.g)}) <= s.g", 200, ""),
        ("len({x + 1 for x in s.S}) == len(s.S)", 200, "may be beyond 255"),
        ("max((x + x for x in s.S), default=0) <= 2 * s.g", 200, ""),
        ("all(s.o is None or x > s.o for x in range(s.g, s.g + 1))", 200, ""),
    ],
)
def test_numbers_without_a_limit_are_exact_or_refused(tmp_path: Path, claim: str, most: int, told: str) -> None:
    effect = "s.next.S = {s.g}\n        s.next.o = s.g"
    source = HEAD + NATURAL + GHOST.format(claim=claim, most=most, effect=effect)
    m = load(module(source, tmp_path).M)
    assert all(Concrete(m.cls, {}).holds("holds", s) for s in Concrete(m.cls, {}).reachable()[0])
    if told:
        with pytest.raises(UserError, match=rf"py:\d+: .*{told}"):
            explore(m, {}, ghosts=True, deadlock=True)
        return
    e = explore(m, {}, ghosts=True, deadlock=True)
    assert (e.outcome, e.distinct) == ("complete", most + 1)


def test_a_set_with_a_number_beyond_what_is_followed_is_a_limit(tmp_path: Path) -> None:
    for effect in ("s.next.S = {s.g + 240}", "s.next.S = {s.g + 240, 1} - {2}", "s.next.S = {x + 240 for x in {s.g}}"):
        m = load(module(HEAD + NATURAL + GHOST.format(claim="s.g < 99", most=50, effect=effect), tmp_path).M)
        if "-" in effect:
            with pytest.raises(UserError, match="may be beyond 255"):
                explore(m, {}, ghosts=True, deadlock=True)
            continue
        e = explore(m, {}, ghosts=True, deadlock=True)
        assert (e.outcome, e.depth) == ("limit", 17)
        assert "a value of S beyond 255" in e.limit
