"""The recorded log directories agree with what the clients of those clusters saw, and would not agree with less."""

from __future__ import annotations

import pytest

from kafkaspec.audit.recorded import Archive, disagreements, recorded

WITH_TRUTH = [r for r in recorded() if r.truth is not None]


def test_there_are_recordings_of_every_kind() -> None:
    assert {r.recording for r in recorded()} >= {
        "single-basic",
        "cluster3-faults",
        "compaction-retention",
        "classic-2.8.2",
    }
    assert any(r.killed for r in WITH_TRUTH)


@pytest.mark.parametrize("r", WITH_TRUTH, ids=lambda r: r.name)
def test_what_clients_saw_is_there(r: Archive) -> None:
    truth = r.truth
    assert truth is not None
    with r.unpacked() as directories:
        assert directories
        assert disagreements(truth, directories) == []


@pytest.mark.parametrize("outcome", ["plain", "committed", "aborted"])
def test_a_lost_record_and_a_wrong_outcome_are_noticed(outcome: str) -> None:
    r = next(r for r in WITH_TRUTH if r.recording == "single-basic")
    truth = r.truth
    assert truth is not None
    name = next(n for n, of in truth["acknowledged"].items() if len(of.get(outcome, ())) > 1)
    of = truth["acknowledged"][name]
    of[outcome][-1][1] ^= 1
    if outcome != "plain":
        other = "aborted" if outcome == "committed" else "committed"
        of[other] = [of[outcome].pop(-2)]
    with r.unpacked() as directories:
        found = disagreements(truth, directories)
    assert len(found) == (1 if outcome == "plain" else 2), found


def test_a_lost_last_value_is_noticed() -> None:
    r = next(r for r in WITH_TRUTH if r.name == "compaction-retention/node-after-clean-stop")
    truth = r.truth
    assert truth is not None
    truth["acknowledged"]["users-0"]["plain"][-1][1] ^= 1
    with r.unpacked() as directories:
        assert [line.split(": ")[-1] for line in disagreements(truth, directories)] != []
