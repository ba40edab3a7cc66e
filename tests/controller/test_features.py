"""Finalized features: spec against impl, and the rules one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis.stateful import run_state_machine_as_test

from kafkaspec.contract import subsystem
from kafkaspec.contract.machine import Refused
from kafkaspec.explore.engine import explore
from kafkaspec.impl.controller.features_driver import Driver
from kafkaspec.judge.check import check
from kafkaspec.language import load
from kafkaspec.lockstep.walk import state_machine
from kafkaspec.models.controller.features import Cluster
from kafkaspec.spec.common.metadata_log import ELR
from kafkaspec.spec.controller import features as spec
from kafkaspec.spec.controller.features import GROUP, KRAFT, METADATA, NEEDED, NEEDY, SHARE, TESTED, TRANSACTION
from tests.controller.features_mutants import MUTANTS
from tests.layers import Comparison

DEFAULT = [[*s] for s in spec.by_default(False)]
WIDE = [[METADATA, 0, 40], *([f, 0, 9] for f in spec.HIGHEST)]
LOWER = "SAFE_DOWNGRADE"
UNSAFE = "UNSAFE_DOWNGRADE"


class Controller(Comparison):
    """Controller 0."""

    state: spec.Features

    def __init__(self, **config: Any) -> None:
        super().__init__(spec.machine, Driver(), config)

    def update(self, *updates: tuple[str, int, str | None], only: bool = False, replayed: bool = True) -> Any:
        return self(
            "updateFeatures", updates=[[*u] for u in updates], validate_only=only, claimed_epoch=7, replayed=replayed
        )

    def why(self, *updates: tuple[str, int, str | None]) -> str:
        """The message of a refusal, which changes nothing of what is finalized."""
        before = self.state.present
        answer = self.update(*updates)
        assert self.state.present == before
        assert (answer["error"], answer["records"], answer["atomic"]) == ("INVALID_UPDATE_VERSION", [], False)
        message: str = answer["message"]
        return message

    def broker(self, id: int, *supported: tuple[str, int, int]) -> None:
        self("brokerRegistered", id=id, supported=[[*s] for s in supported])

    def controller(self, id: int, *supported: tuple[str, int, int]) -> None:
        self("controllerRegistered", id=id, supported=[[*s] for s in supported])

    @property
    def levels(self) -> dict[str, int]:
        return dict(self.state.present.others)


def done(*records: Sequence[Any], atomic: bool = True) -> dict[str, Any]:
    return {"error": "NONE", "message": None, "records": [[*r] for r in records], "atomic": atomic}


def level(feature: str, at: int) -> tuple[str, str, int]:
    return "FEATURE_LEVEL_RECORD", feature, at


NO_OP = ("NO_OP_RECORD", None, None)


def test_impl_does_what_the_spec_says() -> None:
    run_state_machine_as_test(state_machine(spec.machine, Driver))


@pytest.mark.clause("FEA-1", "FEA-22")
def test_nothing_is_answered_before_metadata_version_is_known() -> None:
    c = Controller(metadata_version=None)
    c("getOrCreateSnapshot", epoch=0)
    for answer in (c.update((GROUP, 1, None)), c("metadataVersionOrThrow"), c("finalizedFeatures", epoch=0)):
        assert isinstance(answer, Refused)
        assert answer.clause == "FEA-1"
    c("replay", name=METADATA, level=30)
    c("replay", name=GROUP, level=1)
    c("getOrCreateSnapshot", epoch=5)
    c("replay", name=GROUP, level=0)
    assert c("finalizedFeatures", epoch=5) == {"features": {GROUP: 1, METADATA: 30}, "epoch": 5}
    assert isinstance(c("finalizedFeatures", epoch=0), Refused)


@pytest.mark.clause("FEA-2", "FEA-3", "FEA-4")
def test_a_request_is_done_as_a_whole() -> None:
    c = Controller()
    assert c.update((GROUP, 1, None), (SHARE, 0, None), only=True) == done(atomic=False)
    assert c.levels == {}
    assert c.update((GROUP, 1, None), replayed=False) == done(level(GROUP, 1))
    assert c.levels == {}
    assert c.update((GROUP, 1, None), (SHARE, 0, None)) == done(level(GROUP, 1), level(SHARE, 0))
    assert c.levels == {GROUP: 1}
    assert c.why((SHARE, 1, None), (GROUP, 2, None), (SHARE + "?", 1, None)) == (
        "Invalid update version 2 for feature group.version. Local controller 0 only supports versions 0-1"
    )


@pytest.mark.clause("FEA-5", "FEA-6", "FEA-12")
def test_which_way_a_level_goes() -> None:
    c = Controller()
    assert c.update((TRANSACTION, 2, None))["error"] == "NONE"
    assert "does not support the given upgrade type" in c.why((TRANSACTION, 2, "UNKNOWN"))
    assert "cannot be less than 0" in c.why((TRANSACTION, -1, LOWER))
    assert "Can't downgrade the version of this feature without" in c.why((TRANSACTION, 1, "UPGRADE"))
    assert "Can't downgrade to a newer version." in c.why((GROUP, 1, LOWER))
    for type in (None, "UPGRADE", LOWER, UNSAFE):
        assert c.update((TRANSACTION, 2, type)) == done(level(TRANSACTION, 2))
    assert c.update((TRANSACTION, 1, LOWER)) == done(level(TRANSACTION, 1))
    assert c.update((TRANSACTION, 0, UNSAFE)) == done(level(TRANSACTION, 0))


@pytest.mark.clause("FEA-7", "FEA-8", "FEA-9")
def test_every_node_is_asked() -> None:
    c = Controller(supported=[[METADATA, 7, 30], [GROUP, 0, 1], [SHARE, 1, 1]], quorum=(0, 1))
    c.controller(0)
    c.controller(1, (GROUP, 0, 1))
    assert "Local controller 0 does not support this feature." in c.why((TRANSACTION, 1, None))
    assert "Local controller 0 only supports versions 1" in c.why((SHARE, 0, None))
    c.broker(4, (SHARE, 0, 2**15 - 1))
    c.broker(3, (GROUP, 0, 1))
    assert "Broker 4 does not support this feature." in c.why((GROUP, 1, None))
    c.broker(4, (GROUP, 2, 2**15 - 1))
    assert "Broker 4 only supports versions 2+" in c.why((GROUP, 1, None))
    c("brokerRegistered", id=4, supported=None)
    c.controller(1)
    assert "Controller 1 does not support this feature." in c.why((GROUP, 1, None))
    c.controller(1, (GROUP, 0, 1))
    assert c.update((GROUP, 1, None)) == done(level(GROUP, 1))


@pytest.mark.clause("FEA-10", "FEA-11")
def test_controllers_have_to_register_from_3_7_on() -> None:
    c = Controller(quorum=(2, 0, 1), metadata_version=15)
    missing = "controller 2 has not registered, and may not support this feature"
    assert missing in c.why((GROUP, 0, None))
    c.controller(2, *map(tuple, DEFAULT))  # type: ignore[arg-type]
    assert missing.replace("2", "1") in c.why((GROUP, 0, None))
    old = Controller(quorum=(2, 0, 1), metadata_version=14)
    old.controller(2)
    assert old.update((GROUP, 1, None)) == done(level(GROUP, 1))


@pytest.mark.clause("FEA-13", "FEA-14")
def test_metadata_version_goes_down_only_where_nothing_is_lost() -> None:
    c = Controller(metadata_version=29, supported=WIDE)
    assert c.why((METADATA, 6, LOWER)) == "Invalid metadata.version 6. Valid versions are from 7 to 31."
    assert c.why((METADATA, 32, None)) == "Invalid metadata.version 32. Valid versions are from 7 to 31."
    assert "downgrade from 29 to 22. Refusing to perform" in c.why((METADATA, 22, LOWER))
    assert "downgrade from 29 to 22. Unsafe metadata downgrade is not" in c.why((METADATA, 22, UNSAFE))
    assert c.update((METADATA, 24, UNSAFE)) == done(level(METADATA, 24))
    assert c.update((METADATA, 23, LOWER)) == done(level(METADATA, 23))
    assert c.update((METADATA, 30, None)) == done(level(METADATA, 30))
    assert "downgrade from 30 to 29" in c.why((METADATA, 29, LOWER))
    assert c("metadataVersionOrThrow") == 30


@pytest.mark.clause("FEA-15")
def test_a_feature_needs_others() -> None:
    c = Controller(metadata_version=22, supported=WIDE)
    needs = "could not be set to 1 because it depends on"
    assert f"{ELR} {needs} metadata.version level 23" in c.why((ELR, 1, None))
    assert c.update((ELR, 1, None), (METADATA, 23, None)) == done(level(ELR, 1), level(METADATA, 23))
    assert "No feature:group.version with feature level 2" in c.why((GROUP, 2, None))
    assert f"{GROUP} {needs} metadata.version=7 (3.3-IV3)" in c.why((GROUP, 1, None), (METADATA, 6, UNSAFE))
    assert "metadata.version level 31" in c.why((TESTED, 2, None))
    unknown = Controller().why(("unheard.of", 0, None))
    assert unknown == "Invalid update version 0 for feature unheard.of. Feature unheard.of not found."


@pytest.mark.clause("FEA-16")
def test_what_others_need_is_lowered_under_them() -> None:
    c = Controller(supported=WIDE)
    assert c.update((NEEDY, 1, None), (NEEDED, 1, None))["error"] == "NONE"
    assert c.update((NEEDED, 0, LOWER)) == done(level(NEEDED, 0))
    assert c.levels == {NEEDY: 1}
    assert "depends on" in c.why((NEEDY, 1, None))


@pytest.mark.clause("FEA-17")
def test_kraft_version_is_the_raft_client_s() -> None:
    c = Controller()
    assert c.update((KRAFT, 1, None), only=True) == done(atomic=False)
    assert (c.state.kraft, c.state.told) == (0, (7, 1, True))
    assert c.update((KRAFT, 1, None), (GROUP, 5, None))["error"] == "INVALID_UPDATE_VERSION"
    assert (c.state.kraft, c.state.told) == (1, (7, 1, False))
    assert c.update((KRAFT, 1, None)) == done(NO_OP)
    assert c.update((GROUP, 1, None), (KRAFT, 1, None)) == done(level(GROUP, 1), NO_OP)


@pytest.mark.clause("FEA-18")
def test_kraft_version_is_never_lowered() -> None:
    c = Controller(kraft_version=1, supported=WIDE)
    assert "Can't downgrade the version of this feature." in c.why((KRAFT, 0, LOWER))
    assert "upgrade type to either safe or" in c.why((KRAFT, 0, None))
    assert c.update((KRAFT, 1, UNSAFE)) == done()
    assert c.state.told is None
    assert "Unknown KRaft feature level: 2" in c.why((KRAFT, 2, None))
    c("raftRefuses", message="Not now.")
    assert c.why((KRAFT, 1, None)) == "Not now."
    assert c.state.told == (7, 1, False)


@pytest.mark.clause("FEA-19", "FEA-20")
def test_records() -> None:
    c = Controller(supported=WIDE)
    for name, at, error in (("unheard.of", 1, "Runtime"), (METADATA, 41, "Runtime"), (METADATA, 35, "IllegalArgument")):
        fault = c("replay", name=name, level=at)
        assert isinstance(fault, Refused)
        assert error in fault.error
    c("replay", name=GROUP, level=1)
    c("replay", name=KRAFT, level=1)
    c("replay", name="unheard.of", level=0)
    assert (c.levels, c.state.kraft) == ({GROUP: 1}, 0)
    c("replay", name=GROUP, level=0)
    c("replay", name=METADATA, level=7)
    assert c.state.present == spec.Levels(7)


@pytest.mark.clause("FEA-21", "FEA-24")
def test_the_past() -> None:
    c = Controller()
    c("getOrCreateSnapshot", epoch=3)
    c.update((ELR, 1, None), (KRAFT, 1, None))
    assert c("isElrFeatureEnabled")
    c("getOrCreateSnapshot", epoch=8)
    c.update((ELR, 0, LOWER))
    c("revertToSnapshot", epoch=8)
    assert c("isElrFeatureEnabled")
    c("revertToSnapshot", epoch=3)
    assert (c.levels, c.state.kraft, c("isElrFeatureEnabled")) == ({}, 1, False)
    c("deleteSnapshotsUpTo", epoch=4)
    assert c.state.past == ()
    c.update((ELR, 1, None))
    c("reset", version=None)
    assert c.state.present == spec.Levels()


@pytest.mark.clause("FEA-23", "FEA-25")
def test_what_a_node_supports_and_who_is_a_controller() -> None:
    c = Controller(quorum=(0, 5))
    assert [METADATA, 7, 30] in c("defaultSupportedFeatureMap", unstable=False)
    assert [METADATA, 7, 31] in c("defaultSupportedFeatureMap", unstable=True)
    assert len(c("defaultSupportedFeatureMap", unstable=True)) == 7
    c.controller(3)
    assert [c("isControllerId", id=id) for id in (0, 3, 5)] == [True, False, True]


@pytest.mark.clause("FEA-26")
def test_a_broker_that_is_too_old_would_stay() -> None:
    """Without the check at its registration it does not support what is finalized."""
    faulty = next(m for m in MUTANTS if m.name == "Cluster: anybody registers")
    sizes = {"Broker": 1, "Controller": 1}
    trace = explore(faulty.make(), sizes).trace
    assert trace is not None
    assert trace.claim == "brokers_support_what_is_finalized"
    assert explore(load(Cluster), sizes).trace is None


RECORDINGS = subsystem.find("features").recordings


@pytest.mark.clause("FEA-2", "FEA-14")
@pytest.mark.parametrize("file", ["features.ndjson"])
def test_altered_recordings_are_rejected(file: str) -> None:
    """Of the real class: each answer of an update in turn is another one."""
    recording = next(r for r in RECORDINGS if r.file == file)
    lines = [orjson.loads(line) for line in recording.path.read_bytes().splitlines()]
    at = [n for n, line in enumerate(lines) if line["op"] == "updateFeatures"]
    assert len(at) == 18
    for n in at:
        result = lines[n]["result"]
        message = None if result["message"] else "Invalid"
        for altered in ({**result, "message": message}, {**result, "atomic": not result["atomic"]}):
            copy = [*lines[:n], {**lines[n], "result": altered}, *lines[n + 1 :]]
            found = check(spec.machine, [orjson.dumps(line) for line in copy])
            assert found.verdict == "rejected"
            assert found.step == n
