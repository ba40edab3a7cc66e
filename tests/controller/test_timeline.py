"""Timeline collections: the spec, the implementation beside it, the models, the proofs, the recordings."""

from __future__ import annotations

import gc
import math
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from kafkaspec.contract import subsystem
from kafkaspec.contract.history import outcome
from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import find
from kafkaspec.explore.checked import Expectation
from kafkaspec.impl.controller import timeline as impl
from kafkaspec.impl.controller import timeline_driver
from kafkaspec.judge.check import check
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.lockstep.exhaustive import check_refinement
from kafkaspec.lockstep.walk import draw, draw_init, walk
from kafkaspec.models.controller import timeline as model
from kafkaspec.mutants.matrix import (
    Detector,
    contract_detector,
    explorer_detector,
    kill_matrix,
    lockstep_detector,
    mutants_of,
    prover_detector,
    written,
)
from kafkaspec.mutants.mutant import Mutant
from kafkaspec.proofs.controller.timeline import PROOFS
from kafkaspec.prove.proof import Proof
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH, NO_EPOCH, Timeline
from kafkaspec.spec.controller.timeline import machine
from kafkaspec.spec.controller.timeline_released import released_capacity
from tests.controller.timeline_mutants import RARE
from tests.layers import a_row_of_verify, some_are_killed

MONOTONIC = next(r for r in subsystem.find("timeline").recordings if r.file == "timeline-monotonic.ndjson")


def do(state: Timeline, operation: str, /, **arguments: Any) -> tuple[Timeline, Any]:
    """One call within the contract: the state after, and the answer."""
    step = machine.apply(state, operation, arguments)
    assert not isinstance(step, Outside), step
    return step.state, step.result


def answered(*calls: tuple[str, dict[str, Any]]) -> tuple[Timeline, list[Any]]:
    """The spec's state after some calls, and its answers; the implementation's are the same."""
    state, answers, driver = machine.initial(), list[Any](), timeline_driver.Driver()
    for name, arguments in calls:
        state, answer = do(state, name, **arguments)
        assert outcome(driver.apply(name, arguments)) == outcome(answer), name
        answers.append(answer)
    assert driver.state() == state
    return state, answers


def after(*calls: tuple[str, dict[str, Any]]) -> Timeline:
    """The state after some calls, whatever they answered."""
    return answered(*calls)[0]


# the implementation beside the spec


def test_spec_and_implementation_agree_on_seeded_walks() -> None:
    """They call every operation, and meet every refusal."""
    driver = timeline_driver.Driver()
    called: set[str] = set()
    refused: set[str] = set()
    for seed in range(60):
        found = walk(machine, driver, seed, 150, contracts=False)
        assert found.failure is None, str(found.failure)
        called |= found.coverage.operations.keys()
        refused |= {r.rpartition(" ")[2] for r in found.coverage.refusals}
    assert called == machine.operations.keys()
    assert refused == {"TML-1", "TML-6", "TML-12", "TML-13", "TML-14", "TML-15"}


@pytest.mark.clause("TML-4")
@pytest.mark.clause("TML-20")
def test_what_the_tiers_show_is_the_spec_s_state() -> None:
    """Not what recordings show of it alone: the whole of it, every collection read through the tiers at every epoch."""
    for seed in range(20):
        rng, driver = Random(seed), timeline_driver.Driver()
        init = draw_init(machine, rng.choice)
        state = machine.initial(**init)
        driver.reset(init)
        for _ in range(100):
            op = rng.choice(list(machine.operations.values()))
            arguments = draw(machine, op, state, rng.choice)
            step = None if arguments is None else machine.apply(state, op.name, arguments, contracts=False)
            if arguments is not None and step is not None and not isinstance(step, Outside):
                state = step.state
                driver.apply(op.name, arguments)
                assert driver.state() == state, op.name


# clauses that deserve a word of their own


@pytest.mark.clause("TML-1")
@pytest.mark.clause("TML-3")
def test_epochs_rise_and_the_latest_is_taken_once() -> None:
    state = after(("set.add", {"value": 1}), ("getOrCreateSnapshot", {"epoch": 7}), ("set.add", {"value": 2}))
    again, answer = do(state, "getOrCreateSnapshot", epoch=7)
    assert answer == 7
    assert again == state  # what was written since is not in it
    lower, answer = do(state, "getOrCreateSnapshot", epoch=6)
    assert isinstance(answer, Refused)
    assert answer.clause == "TML-1"
    assert lower == state


@pytest.mark.clause("TML-2")
def test_a_used_epoch_is_outside_the_contract() -> None:
    state = after(("getOrCreateSnapshot", {"epoch": 7}), ("deleteSnapshot", {"epoch": 7}))
    for epoch in (7, 3, NO_EPOCH, LATEST_EPOCH):
        broken = machine.apply(state, "getOrCreateSnapshot", {"epoch": epoch})
        assert isinstance(broken, Outside)
        assert broken.clause == "TML-2"
    assert do(state, "getOrCreateSnapshot", epoch=8)[1] == 8
    lowered = after(("getOrCreateSnapshot", {"epoch": 3}), ("getOrCreateSnapshot", {"epoch": 7}))
    lowered, _ = do(lowered, "revertToSnapshot", epoch=3)
    assert do(lowered, "getOrCreateSnapshot", epoch=4)[1] == 4
    registry = impl.SnapshotRegistry()
    registry.get_or_create_snapshot(7)
    registry.delete_snapshot(7)
    with pytest.raises(ValueError, match="TML-2"):
        registry.get_or_create_snapshot(7)


@pytest.mark.clause("TML-5")
@pytest.mark.clause("TML-6")
@pytest.mark.parametrize(
    "read",
    ["map.get", "map.size", "map.values.contains", "set.contains", "set.size", "long.get", "int.get", "object.get"],
)
def test_a_read_is_of_the_present_or_of_a_snapshot(read: str) -> None:
    arguments = {p: 1 for p in machine.operations[read].parameters if p != "epoch"}
    state = after(("map.put", {"key": 1, "value": 1}), ("set.add", {"value": 1}))
    assert not isinstance(do(state, read, **arguments, epoch=LATEST_EPOCH)[1], Refused)
    refused = do(state, read, **arguments, epoch=5)[1]
    assert isinstance(refused, Refused)
    assert refused.clause == "TML-6"


SNAPSHOTS: list[tuple[str, dict[str, Any]]] = [
    ("set.add", {"value": 1}),
    ("getOrCreateSnapshot", {"epoch": 1}),
    ("set.add", {"value": 2}),
    ("getOrCreateSnapshot", {"epoch": 5}),
    ("set.remove", {"value": 1}),
    ("getOrCreateSnapshot", {"epoch": 9}),
    ("set.add", {"value": 3}),
]


@pytest.mark.clause("TML-7")
def test_a_revert_is_to_what_was_then_and_ends_what_came_later() -> None:
    state = after(*SNAPSHOTS)
    back = after(*SNAPSHOTS, ("revertToSnapshot", {"epoch": 5}))
    assert back.present.elements == {1, 2}
    assert back.past == {1: state.past[1], 5: state.past[5]}
    same, answers = answered(*SNAPSHOTS, ("revertToSnapshot", {"epoch": 4}))
    assert isinstance(answers[-1], Refused)
    assert same == state


@pytest.mark.clause("TML-8")
@pytest.mark.parametrize("epoch", [1, 5, 9])
def test_deleting_a_snapshot_changes_no_other_epoch(epoch: int) -> None:
    state = after(*SNAPSHOTS)
    left = after(*SNAPSHOTS, ("deleteSnapshot", {"epoch": epoch}))
    assert left.present == state.present
    assert left.past == {e: view for e, view in state.past.items() if e != epoch}
    same, answers = answered(*SNAPSHOTS, ("deleteSnapshot", {"epoch": 4}))
    assert isinstance(answers[-1], Refused)
    assert same == state


@pytest.mark.clause("TML-9")
def test_deleting_up_to_an_epoch_leaves_it() -> None:
    state = after(*(("getOrCreateSnapshot", {"epoch": e}) for e in (1, 5, 9)))
    assert list(do(state, "deleteSnapshotsUpTo", epoch=5)[0].past) == [5, 9]
    assert list(do(state, "deleteSnapshotsUpTo", epoch=6)[0].past) == [9]


@pytest.mark.clause("TML-10")
def test_a_reset_is_the_first_state() -> None:
    state = after(
        ("map.put", {"key": 1, "value": 1}), ("long.set", {"value": 4}), ("getOrCreateSnapshot", {"epoch": 1})
    )
    assert do(state, "reset")[0] == machine.initial()


@pytest.mark.clause("TML-11")
def test_an_iterator_stands_a_table_that_grows() -> None:
    """Where the released Kafka gives elements twice (TML-D4)."""
    registry = impl.SnapshotRegistry()
    elements: impl.TimelineHashSet[int] = impl.TimelineHashSet(registry, 1)
    elements.add_all(range(50))
    registry.get_or_create_snapshot(0)
    for taken in range(50):
        came, iterator = [], elements.elements(0)
        came += [next(iterator) for _ in range(taken)]
        elements.add_all(range(1000 * taken + 1000, 1000 * taken + 1000 + 7 * taken))
        elements.remove_all(range(0, 50, taken + 1))
        came += iterator
        assert sorted(came) == list(range(50))


@pytest.mark.clause("TML-11")
def test_an_iterator_ends_with_its_snapshot() -> None:
    registry = impl.SnapshotRegistry()
    elements: impl.TimelineHashSet[int] = impl.TimelineHashSet(registry, 1)
    elements.add_all(range(9))
    registry.get_or_create_snapshot(0)
    iterator = elements.elements(0)
    next(iterator)
    registry.delete_snapshot(0)
    with pytest.raises(impl.TimelineError):
        list(iterator)


@pytest.mark.clause("TML-12")
def test_the_past_is_read_only() -> None:
    state = after(("map.put", {"key": 1, "value": 1}), ("getOrCreateSnapshot", {"epoch": 1}))
    for epoch in (1, 2):
        unchanged, answer = do(state, "map.keySetAtRemove", key=1, epoch=epoch)
        assert isinstance(answer, Refused)
        assert unchanged == state
    assert do(state, "map.keySetAtRemove", key=1, epoch=LATEST_EPOCH)[1] is True


@pytest.mark.clause("TML-13")
def test_the_present_of_a_map_is_a_map() -> None:
    _, answers = answered(
        ("map.put", {"key": 1, "value": 10}),
        ("map.put", {"key": 1, "value": 20}),
        ("map.get", {"key": 1}),
        ("map.containsValue", {"value": 10}),
        ("map.equals", {"other": {"1": 20}}),
        ("map.remove", {"key": 1}),
        ("map.remove", {"key": 1}),
        ("map.equals", {"other": {}}),
    )
    assert answers == [None, 10, 20, False, True, 20, None, True]
    _, refused = answered(("map.put", {"key": None, "value": 1}), ("map.put", {"key": 1, "value": None}))
    assert [r.clause for r in refused] == ["TML-13", "TML-13"]


@pytest.mark.clause("TML-14")
def test_the_present_of_a_set_is_a_set() -> None:
    _, answers = answered(
        ("set.add", {"value": 1}),
        ("set.add", {"value": 1}),
        ("set.addAll", {"values": [1, 2]}),
        ("set.addAll", {"values": [1, 2]}),
        ("set.remove", {"value": 1}),
        ("set.remove", {"value": 1}),
        ("set.removeAll", {"values": [1, 2]}),
        ("set.size", {}),
        ("set.add", {"value": None}),
    )
    assert answers[:-1] == [True, False, True, False, True, False, True, 0]
    assert answers[-1].clause == "TML-14"


@pytest.mark.clause("TML-15")
def test_numbers_wrap() -> None:
    registry = impl.SnapshotRegistry()
    for number, highest in ((impl.TimelineInteger(registry), 2**31 - 1), (impl.TimelineLong(registry), 2**63 - 1)):
        number.set(highest)
        number.increment()
        assert number.get() == -highest - 1
        number.decrement()
        assert number.get() == highest


@pytest.mark.clause("TML-16")
def test_a_size_is_that_of_its_epoch() -> None:
    registry = impl.SnapshotRegistry()
    elements: impl.TimelineHashSet[str] = impl.TimelineHashSet(registry, 1)
    for n in range(40):
        registry.get_or_create_snapshot(n)
        elements.add(f"topic-{n}")
        if n % 3 == 2:
            elements.remove(f"topic-{n - 2}")
            registry.delete_snapshot(n - 1)
    for epoch in registry.epochs:
        assert elements.size(epoch) == len(set(elements.elements(epoch)))


@pytest.mark.clause("TML-17")
@pytest.mark.clause("TML-18")
def test_a_revert_is_of_all_collections_those_made_later_too() -> None:
    state = after(
        ("map.put", {"key": 1, "value": 1}),
        ("getOrCreateSnapshot", {"epoch": 1}),
        ("collection.create", {"name": "first"}),
        ("collection.add", {"name": "first", "value": 3}),
        ("map.remove", {"key": 1}),
        ("int.increment", {}),
    )
    assert do(state, "collection.elements", name="first", epoch=1)[1] == []
    state, _ = do(state, "revertToSnapshot", epoch=1)
    assert do(state, "collection.elements", name="first")[1] == []
    assert (state.present.entries, state.present.integer) == ({1: 1}, 0)


@pytest.mark.clause("TML-19")
def test_the_registry_keeps_nothing_alive_and_clears_away() -> None:
    registry = impl.SnapshotRegistry(max_registrations_since_scrub=10)
    kept = impl.TimelineLong(registry)
    for _ in range(95):
        impl.TimelineLong(registry)
    gc.collect()
    assert registry.registered == 1
    assert registry.registration_slots <= 12
    changed: impl.TimelineHashSet[int] | None = impl.TimelineHashSet(registry, 1)
    registry.get_or_create_snapshot(0)
    assert changed is not None
    changed.add(1)
    changed = None
    assert registry.registered == 2  # the snapshot holds what changed since
    registry.revert_to_snapshot(0)
    assert registry.registered == 1
    assert kept.get(0) == 0


@pytest.mark.clause("TML-21")
def test_a_delta_holds_what_the_snapshot_saw_and_the_present_lost() -> None:
    registry = impl.SnapshotRegistry()
    entries: impl.TimelineHashMap[str, int] = impl.TimelineHashMap(registry, 1)
    entries.put("a", 1)
    entries.put("b", 1)
    snapshot = registry.get_or_create_snapshot(10)
    entries.put("a", 2)
    entries.put("c", 1)
    entries.put("c", 2)
    entries.remove("c")
    assert {e.key: (e.value, e.start_epoch) for e in snapshot.delta(entries).table} == {"a": (1, NO_EPOCH + 1)}
    assert {e.key: e.start_epoch for e in entries._table} == {"a": 11, "b": NO_EPOCH + 1}
    assert snapshot.delta(entries).size == 2


@pytest.mark.clause("TML-22")
def test_capacity_at_every_boundary() -> None:
    for expected in [*range(70), *(3 * 2**n + d for n in range(28) for d in (-1, 0, 1)), 2**31 - 1]:
        exact = next((2**n for n in range(1, 30) if 2**n * 3 >= expected * 4), 2**30)
        assert impl.capacity_for(expected) == exact == do(machine.initial(), "capacity", expected_size=expected)[1]
        if expected <= 2**24:
            assert released_capacity(expected) == exact
    assert (released_capacity(25_165_825), impl.capacity_for(25_165_825)) == (2**25, 2**26)


@pytest.mark.clause("TML-22")
def test_every_key_is_found_again_after_growth() -> None:
    for expected in (0, 3, 100):
        table: impl.HashTable[int, int] = impl.HashTable(expected)
        for key in range(500):
            table.put(impl.Entry(key * 37 - 5000, key, 1))
        found = [table.get(key * 37 - 5000) for key in range(500)]
        assert [entry.value for entry in found if entry is not None] == list(range(500))
        assert math.log2(len(table.slots)).is_integer()


def test_hash_codes_are_java_s() -> None:
    """Values computed by java.lang.Integer, Long and String."""
    assert impl.hash_code(-7) == -7
    assert impl.hash_code(2**40 + 3) == 259
    ends = (-(2**31) - 1, -(2**31), 2**31 - 1, 2**31)
    assert [impl.hash_code(n) for n in ends] == [-(2**31), -(2**31), 2**31 - 1, -(2**31)]
    assert impl.hash_code("") == 0
    assert impl.hash_code("__consumer_offsets") == -970371369
    assert impl.hash_code("topic-\U0001f600") == -955570495


@pytest.mark.clause("TML-23")
def test_a_snapshot_costs_what_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = impl.SnapshotRegistry()
    entries: impl.TimelineHashMap[int, int] = impl.TimelineHashMap(registry, 10_000)
    for key in range(10_000):
        entries.put(key, 0)
    assert max(map(len, entries._table.slots)) <= 8
    snapshots = [registry.get_or_create_snapshot(epoch) for epoch in range(50)]
    assert all(snapshot.delta(entries) is None for snapshot in snapshots)
    for key in range(30):
        for value in range(5):
            entries.put(key, value)
    entries.put(10_000, 5)
    assert [s.delta(entries).table.size for s in snapshots if s.delta(entries) is not None] == [30]
    looked_at: list[int] = []
    get = type(entries._table).get

    def look(table: Any, key: int) -> Any:
        looked_at.append(key)
        return get(table, key)

    monkeypatch.setattr(type(entries._table), "get", look)
    registry.revert_to_snapshot(49)
    monkeypatch.undo()
    assert {*looked_at} == {*range(30), 10_000}
    assert len(looked_at) <= 2 * 31
    assert dict(entries.items()) == dict.fromkeys(range(10_000), 0)


# models, proofs, mutants, recordings


def _kills(mutants: list[Mutant], detectors: list[Detector]) -> None:
    assert [row.wrong for row in kill_matrix(find("timeline"), mutants, detectors) if row.wrong] == []


FAULTS = [m for m in written(find("timeline")) if m not in RARE]


def test_some_written_mutants_are_killed() -> None:
    detectors = (lockstep_detector(6), contract_detector(5, 150), lockstep_detector())
    some_are_killed(find("timeline"), FAULTS, 7, detectors)


@pytest.mark.deep
def test_written_mutants_are_killed() -> None:
    _kills(FAULTS, [contract_detector(5, 150), lockstep_detector(), explorer_detector()])


@pytest.mark.deep
@pytest.mark.parametrize("part", range(8))
def test_every_generated_mutant_is_killed_or_has_a_reason_to_live(part: int) -> None:
    faults = [m for m in mutants_of(find("timeline")) if m.generated][part::8]
    _kills(faults, [explorer_detector(), prover_detector()])


@a_row_of_verify
def test_the_spec_does_what_the_model_says() -> None:
    (how,) = subsystem.find("timeline").refinements
    done = check_refinement(machine, how)
    assert done.problem is None, str(done.problem)
    assert done.states == done.reachable == 999


@a_row_of_verify
@pytest.mark.parametrize("checked", model.MODELS, ids=lambda c: c.model.__name__)
def test_a_model_is_explored(checked: Expectation) -> None:
    assert checked.run().findings == []


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
def test_a_model_is_proved_for_every_size(proof: Proof) -> None:
    proved = proof.run()
    assert [f"{o.verdict}: {o.action} keeps {o.claim}" for o in proved.obligations if o.verdict != "proved"] == []
    assert proved.complete


@a_row_of_verify
@pytest.mark.parametrize("recording", subsystem.find("timeline").recordings, ids=lambda r: r.file)
def test_recordings_get_their_verdict(recording: Recording) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


def _lines(until: int) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in MONOTONIC.path.read_bytes().splitlines()[: until + 1]]


def _verdict(records: list[dict[str, Any]], tmp_path: Path, strict: bool = False) -> tuple[str, int | None, str]:
    file = tmp_path / "trace.ndjson"
    file.write_bytes(b"\n".join(map(orjson.dumps, records)))
    verdict = check(machine, file, strict=strict)
    return verdict.verdict, verdict.step, verdict.clause


@pytest.mark.clause("TML-11")
def test_the_deviation_is_accepted_where_it_is_and_nowhere_else(tmp_path: Path) -> None:
    records = _lines(89)
    assert _verdict(records, tmp_path)[0] == "accepted"
    assert _verdict(records, tmp_path, strict=True) == ("rejected", 89, "TML-11")
    at = records[89]["state"]["at"]
    assert (at["2"]["set"], at["4"]["set"]) == ([1, 1], [1, 1])
    at["4"]["set"] = [1, 1, 1]
    assert _verdict(records, tmp_path)[:2] == ("rejected", 89)
    at["4"]["set"] = [1]  # at 2 alone: the released Kafka would not
    assert _verdict(records, tmp_path)[:2] == ("rejected", 89)
    earlier = _lines(88)
    earlier[88]["state"]["at"]["4"]["set"] = [1, 1]
    assert _verdict(earlier, tmp_path)[:2] == ("rejected", 88)


@pytest.mark.clause("TML-6")
def test_an_answer_without_a_snapshot_is_accepted_for_keys_written_in_time_alone(tmp_path: Path) -> None:
    records = _lines(345)
    assert (records[345]["op"], records[345]["args"], records[345]["result"]) == (
        "map.get",
        {"key": 5, "epoch": 23},
        99,
    )
    assert _verdict(records, tmp_path)[0] == "accepted"
    assert _verdict(records, tmp_path, strict=True)[0] == "rejected"
    records[345]["args"] = {"key": 5, "epoch": -(2**62)}  # before it was written
    assert _verdict(records, tmp_path) == ("rejected", 345, "TML-6")
    records[345] |= {"args": {"key": 5, "epoch": 23}, "result": 98}
    assert _verdict(records, tmp_path) == ("rejected", 345, "TML-6")


@pytest.mark.clause("TML-11")
@pytest.mark.clause("TML-19")
@pytest.mark.parametrize(
    ("release", "verdict", "older"),
    [
        ("3.0.0", "accepted", {"TML-D8", "TML-D9"}),
        ("3.5.1", "accepted", {"TML-D8", "TML-D9"}),
        ("3.9.0", "rejected", {"TML-D9"}),
        ("3.9.1", "rejected", set()),
        (None, "rejected", set()),
    ],
)
def test_what_a_release_has_mended_is_no_known_deviation_of_it(
    release: str | None, verdict: str, older: set[str]
) -> None:
    (old,) = (r for r in subsystem.find("timeline").recordings if r.file == "kafka-3.0.0-timeline.ndjson.gz")
    found = check(machine, old.path, release=release)
    assert found.verdict == verdict
    assert {d.id for d in machine.deviations if d.releases and d.shows_in(release)} == older
    if verdict == "rejected":  # at the minimal history of TML-D8, which comes before that of TML-D9
        assert (found.step, found.call) == (4, "set.remove value=1")
