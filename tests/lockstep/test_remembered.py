"""Answers that are kept: of the last two things that were asked about, known by identity."""

from __future__ import annotations

from kafkaspec.spec.common.remembered import remembered


def test_the_last_two_are_kept_by_identity_and_what_more_is_asked_by_value() -> None:
    asked = []

    @remembered
    def total(numbers: list[int], more: int = 0) -> int:
        asked.append((numbers, more))
        return sum(numbers) + more

    first, equal, other = [1, 2], [1, 2], [3]
    assert [total(first), total(first), total(equal), total(first)] == [3, 3, 3, 3]
    assert asked == [(first, 0), (equal, 0)]
    assert total(first, 1) == total(first, more=1) == 4
    assert [total(other), total(other)] == [3, 3]
    assert len(asked) == 5
    assert total(equal) == 3
    assert len(asked) == 6
