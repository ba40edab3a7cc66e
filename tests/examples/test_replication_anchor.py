"""What users see of a replicated log: the fenced one refines it, the unfenced one does not, faults are noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.language.concrete import Concrete
from kafkaspec.models.examples.replication_anchor import CommittedLog, Offset, RealEpoch, Replica, Replication

SIZES: dict[str, int | bool] = {"Replica": 2, "L": 2, "E": 3, "FENCED": True}


def alone(m: LoadedModel) -> LoadedModel:
    """With no claim but the refinement."""
    return replace(m, invariants={}, lemmas={}, steps={"users": m.steps["users"]}, witnesses={})


def broken(m: LoadedModel, sizes: dict[str, int | bool] = SIZES) -> str:
    e = explore(alone(m), sizes, ghosts=True, deadlock=True)
    return "" if e.trace is None else e.trace.claim


def test_the_fenced_log_refines_and_the_unfenced_one_does_not() -> None:
    assert broken(load(Replication)) == ""
    assert broken(load(Replication), {**SIZES, "Replica": 3, "FENCED": False}) == "users"


@pytest.mark.parametrize("records", [1, pytest.param(2, marks=pytest.mark.deep)])
def test_the_interpreter_says_so_too(records: int) -> None:
    c = Concrete(Replication, {**SIZES, "L": records, "E": 2}, ghosts=True)
    states, _ = c.reachable()
    assert all(c.holds("users: start", s) for s in c.initial_states())
    assert all(c.holds("users", s, t.state) for s in states for t in c.successors(s))


# ---- faults of the replicated log
class ReadsBeyond(Replication):
    """A follower shows what it has fetched."""

    @action(who="follower")
    def fetch(s, f: Replica, lead: Replica) -> None:
        require(f != lead, s.following(f, lead), len(s.log[f]) < len(s.log[lead]))
        s.next.log[f] = s.log[f] + [s.log[lead][len(s.log[f])]]
        s.next.hw[f] = len(s.log[f]) + 1


class CommitsAlone(Replication):
    """A leader does not wait for the replicas in sync."""

    @action(who="leader")
    def increment_hw(s, lead: Replica) -> None:
        require(s.leader[lead] == lead, s.hw[lead] < len(s.log[lead]))
        s.next.hw[lead] = s.hw[lead] + 1
        if s.hw[lead] == len(s.committed):
            s.next.committed = s.committed + [s.log[lead][s.hw[lead]]]
            s.next.committed_in = s.committed_in + [s.epoch[lead]]


class KeepsItsLog(Replication):
    """A follower does not cut what its leader has not."""

    @action(who="replica")
    def become_follower(s, r: Replica, e: RealEpoch) -> None:
        require(s.epoch[r] < e <= len(s.reqs), s.reqs[e - 1].leader is not None)
        lead = s.reqs[e - 1].leader
        assert lead is not None
        require(lead != r, s.leader[lead] == lead, s.epoch[lead] == e)
        s.next.epoch[r] = e
        s.next.leader[r] = lead
        s.next.lisr[r] = set()


class GoesTooFar(Replication):
    """A high watermark that passes two records at once."""

    @action(who="leader")
    def increment_hw(s, lead: Replica) -> None:
        require(s.leader[lead] == lead, s.hw[lead] < len(s.log[lead]))
        require(all(s.following(f, lead) and len(s.log[f]) > s.hw[lead] for f in Replica if f in s.lisr[lead]))
        s.next.hw[lead] = len(s.log[lead])
        if s.hw[lead] == len(s.committed):
            s.next.committed = s.committed + [s.log[lead][s.hw[lead]]]
            s.next.committed_in = s.committed_in + [s.epoch[lead]]


@pytest.mark.parametrize("fault", [ReadsBeyond, CommitsAlone, KeepsItsLog, GoesTooFar])
def test_a_fault_of_the_replicated_log_is_noticed(fault: type[Replication]) -> None:
    assert broken(load(fault)) == "users"


# ---- faults of what users see
@pytest.mark.parametrize("name", ["commit", "look"])
def test_every_action_is_needed(name: str) -> None:
    m, abstract = load(Replication), load(CommittedLog)
    without = replace(abstract, actions=[a for a in abstract.actions if a.name != name])
    assert broken(m.refining("users", without)) == "users"


class NobodyLooksBack(CommittedLog):
    @action(who="replica")
    def look(s, r: Replica, n: Offset) -> None:
        require(len(s.sees[r]) <= n <= len(s.committed))
        s.next.sees[r] = s.committed[:n]


class EpochsDoNotRepeat(CommittedLog):
    @action(who="leader")
    def commit(s, r: Replica, e: RealEpoch) -> None:
        require(s.sees[r] == s.committed, all(x < e for x in s.sees[r]))
        s.next.committed = s.committed + [e]
        s.next.sees[r] = s.committed + [e]


class TheLeaderWaits(CommittedLog):
    """It shows a record a step after it is committed."""

    @action(who="leader")
    def commit(s, r: Replica, e: RealEpoch) -> None:
        require(s.sees[r] == s.committed, all(x <= e for x in s.sees[r]))
        s.next.committed = s.committed + [e]


@pytest.mark.parametrize("fault", [NobodyLooksBack, EpochsDoNotRepeat, TheLeaderWaits])
def test_a_fault_of_what_users_see_is_noticed(fault: type[CommittedLog]) -> None:
    m = load(Replication)
    assert broken(m.refining("users", load(fault))) == "users"
