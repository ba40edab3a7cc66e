"""What is too large to be explored is refused at once, with one line that says what is too large."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore import explore
from kafkaspec.explore.emit import GREATEST
from kafkaspec.language import Model, load
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
            "takes more than 500,000 operations",
        ),
        ("True", "", 2_000_000, "has more than 1,048,576 values at these sizes"),
        ("True", "    z: dict[Num, bool]", 70_000, "a state takes 70,018 bits at these sizes, of at most 65,536"),
        ("True", "    z: set[P]", 40, "set[P] has more than 1,048,576 values"),
        ("True", "    z: set[P]", 11, "k, m can be chosen in more than 1,048,576 ways"),
    ],
)
def test_what_is_too_large_is_refused(tmp_path: Path, claim: str, more: str, size: int, message: str) -> None:
    act = "\n    @action()\n    def draw(s, k: set[P], m: set[P]) -> None:\n        s.next.z = k | m\n"
    m = load(text(tmp_path, claim, more + (act if "set[P]" in more else "")))
    sizes: dict[str, int | bool] = {"N": 1, "P": size} if "P" in m.sizes else {"N": size}
    with pytest.raises(UserError) as e:
        explore(m, sizes)
    assert message in str(e.value)
