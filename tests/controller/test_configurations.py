"""Dynamic configurations: spec against impl, and the rules one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis.stateful import run_state_machine_as_test

from kafkaspec.contract import subsystem
from kafkaspec.impl.controller.configurations_driver import Driver
from kafkaspec.judge.check import check
from kafkaspec.lockstep.walk import state_machine
from kafkaspec.spec.common.metadata_log import MIN_ISR
from kafkaspec.spec.controller import configurations as spec
from kafkaspec.spec.controller.configurations import CORDONED, UNCLEAN, UNSUPPORTED
from tests.layers import Comparison

TOPIC, CLUSTER, BROKER = ("TOPIC", "t"), ("BROKER", ""), ("BROKER", "1")
OK = ["NONE", None]


def record(resource: tuple[str, str], key: str, value: str | None) -> list[Any]:
    return ["CONFIG_RECORD", [*resource], key, value]


def cleared(topic: str) -> list[Any]:
    return ["CLEAR_ELR_RECORD", None, topic, None]


def switched(level: int) -> list[Any]:
    return ["FEATURE_LEVEL_RECORD", None, "eligible.leader.replicas.version", str(level)]


class Controller(Comparison):
    """Controller 0."""

    state: spec.Configurations

    def __init__(self, **config: Any) -> None:
        super().__init__(spec.machine, Driver(), config)

    def alter(self, *resources: tuple[tuple[str, str], Any], **flags: bool) -> Any:
        changed = [[[*r], [[*change] for change in changes]] for r, changes in resources]
        given = {"newly_created": False, "forwarded": False, "replayed": True, **flags}
        return self("incrementalAlterConfigs", changed=changed, **given)

    def change(self, resource: tuple[str, str], key: str, operation: str, value: str | None, **flags: bool) -> Any:
        """The answer about one change, and its records."""
        answer = self.alter((resource, [(key, operation, value)]), **flags)
        return answer["answers"][0][1], answer["records"]

    def value(self, resource: tuple[str, str], key: str, operation: str, value: str | None) -> str | None:
        """What a key has after one change that is accepted."""
        assert self.change(resource, key, operation, value)[0] is None
        return self.state.present.of(spec.Resource(*resource)).get(key)  # type: ignore[arg-type]

    def legacy(self, *resources: tuple[tuple[str, str], Mapping[str, str | None]], **flags: bool) -> Any:
        new = [[[*r], [[k, v] for k, v in configs.items()]] for r, configs in resources]
        return self(
            "legacyAlterConfigs", new=new, **{"newly_created": False, "forwarded": True, "replayed": True, **flags}
        )

    def elr(self, level: int, *, validate_only: bool = False, replayed: bool = True) -> Any:
        return self("updateFeatures", level=level, validate_only=validate_only, replayed=replayed)["records"]

    def has(self, resource: tuple[str, str]) -> dict[str, str]:
        return self.state.present.of(spec.Resource(*resource))  # type: ignore[arg-type]


def test_impl_does_what_the_spec_says() -> None:
    run_state_machine_as_test(state_machine(spec.machine, Driver))


@pytest.mark.clause("CFG-1", "CFG-2")
def test_each_resource_is_answered_by_itself() -> None:
    c = Controller()
    good, bad = (MIN_ISR, "SET", "2"), ("retention.ms", "APPEND", "1")
    answer = c.alter((TOPIC, [good, bad]), (CLUSTER, [good]), replayed=False)
    why = "Can't APPEND to key retention.ms because its type is not LIST."
    assert answer["answers"] == [["INVALID_CONFIG", why], OK]
    assert (answer["records"], answer["atomic"]) == ([record(CLUSTER, MIN_ISR, "2")], True)
    assert c.state.present.configs == ()
    c.alter((TOPIC, [good, bad]), (CLUSTER, [good]))
    assert (c.has(TOPIC), c.has(CLUSTER)) == ({}, {MIN_ISR: "2"})
    assert c.legacy((TOPIC, {MIN_ISR: "2"}), replayed=False)["records"] == [record(TOPIC, MIN_ISR, "2")]
    assert c.has(TOPIC) == {}


@pytest.mark.clause("CFG-3", "CFG-7")
def test_lists_grow_and_shrink() -> None:
    c, key = Controller(), "cleanup.policy"
    assert c.value(TOPIC, key, "APPEND", "compact") == "delete,compact"
    assert c.value(TOPIC, key, "APPEND", "compact,x,delete,") == "delete,compact,x"
    assert c.value(TOPIC, key, "SUBTRACT", "delete,y") == "compact,x"
    assert c.value(TOPIC, key, "SET", "a,,a,") == "a,,a,"
    assert c.value(TOPIC, key, "SUBTRACT", "a") == "a"
    assert c.value(TOPIC, key, "APPEND", "") == "a,"
    assert c.value(TOPIC, key, "SUBTRACT", "a") == ""
    assert c.value(TOPIC, key, "APPEND", ",") == ""
    assert c.value(TOPIC, key, "DELETE", None) is None
    assert c.value(TOPIC, key, "SUBTRACT", "delete") == ""
    assert (
        c.change(TOPIC, MIN_ISR, "SUBTRACT", "1")[0] == f"Can't SUBTRACT to key {MIN_ISR} because its type is not LIST."
    )
    assert c.change(BROKER, key, "APPEND", "x")[0] is not None


@pytest.mark.clause("CFG-4", "CFG-5")
def test_which_changes_leave_a_record() -> None:
    c = Controller()
    c.alter((TOPIC, [(MIN_ISR, "SET", "2"), (UNCLEAN, "SET", "true")]), (BROKER, [(MIN_ISR, "SET", "2")]))
    assert c.change(TOPIC, MIN_ISR, "SET", "2") == (None, [])
    assert c.change(BROKER, MIN_ISR, "SET", "2") == (None, [record(BROKER, MIN_ISR, "2")])
    assert c.change(BROKER, UNCLEAN, "DELETE", None) == (None, [record(BROKER, UNCLEAN, None)])
    answer = c.legacy((TOPIC, {"retention.ms": "1", UNCLEAN: "true"}), (BROKER, {"retention.ms": None}))
    assert answer["records"] == [
        record(TOPIC, "retention.ms", "1"),
        record(TOPIC, MIN_ISR, None),
        record(BROKER, "retention.ms", None),
        record(BROKER, MIN_ISR, None),
    ]
    assert (c.has(TOPIC), c.has(BROKER)) == ({"retention.ms": "1", UNCLEAN: "true"}, {})


@pytest.mark.clause("CFG-6")
def test_the_longest_value() -> None:
    c, most = Controller(), spec.MOST_CHARACTERS
    assert c.value(TOPIC, "cleanup.policy", "SET", "x" * (most - 2)) is not None
    assert c.change(TOPIC, "cleanup.policy", "APPEND", "yy")[0] == spec.TOO_LONG.message
    assert c.value(TOPIC, "cleanup.policy", "APPEND", "y") is not None
    assert c.change(TOPIC, "retention.ms", "SET", "x" * (most + 1)) == (spec.TOO_LONG.message, [])
    assert c.value(TOPIC, "retention.ms", "SET", "\U0001f600" * (most // 2) + "x") is not None
    assert c.change(TOPIC, "retention.ms", "SET", "\U0001f600" * (most // 2) + "xy") == (spec.TOO_LONG.message, [])


@pytest.mark.clause("CFG-8", "CFG-13")
def test_while_eligible_leader_replicas_are_in_use() -> None:
    c = Controller()
    assert c.change(TOPIC, MIN_ISR, "SET", "2")[1] == [record(TOPIC, MIN_ISR, "2")]
    c.elr(1)
    broker = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    cluster = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    assert c.change(BROKER, MIN_ISR, "SET", "1") == (broker, [])
    assert c.change(BROKER, MIN_ISR, "DELETE", None) == (broker, [])
    assert c.change(CLUSTER, MIN_ISR, "DELETE", None) == (cluster, [])
    assert c.legacy((CLUSTER, {}))["answers"] == [["INVALID_CONFIG", cluster]]
    assert c.change(CLUSTER, MIN_ISR, "SET", "3")[1] == [record(CLUSTER, MIN_ISR, "3"), cleared("")]
    both = c.alter((TOPIC, [(MIN_ISR, "DELETE", None)]), (("GROUP", "g"), [(MIN_ISR, "SET", "1")]))["records"]
    assert both[2:] == [cleared("t"), cleared("")]
    assert c.legacy((TOPIC, {MIN_ISR: "1"}))["records"] == [record(TOPIC, MIN_ISR, "1"), cleared("t")]
    c.elr(0)
    assert c.change(CLUSTER, MIN_ISR, "DELETE", None)[0] is None


@pytest.mark.clause("CFG-9")
def test_cordoned_directories() -> None:
    old = Controller(metadata_version=29)
    disabled = "requires metadata.version >= 4.3-IV0"
    assert disabled in old.change(BROKER, CORDONED, "DELETE", None, forwarded=True)[0]
    assert old.change(TOPIC, CORDONED, "SET", "/a")[0] is None
    c = Controller()
    assert "must be a subset" in c.change(BROKER, CORDONED, "SET", "/a")[0]
    assert c.change(BROKER, CORDONED, "SET", " /a , /b", forwarded=True)[0] is None
    assert "must be a subset" in c.change(BROKER, CORDONED, "SET", "/b,/c")[0]
    assert "must be a subset" in c.change(CLUSTER, CORDONED, "SET", "/b")[0]
    assert c.change(BROKER, CORDONED, "SET", "/b")[0] is None
    assert c.change(BROKER, CORDONED, "SET", " ")[0] is None
    assert c.change(BROKER, CORDONED, "DELETE", None)[0] is None


@pytest.mark.clause("CFG-10", "CFG-11")
def test_who_is_asked() -> None:
    gone = ("TOPIC", "gone")
    c = Controller(missing=[gone])
    c.alter((TOPIC, [(MIN_ISR, "SET", "2")]))
    assert c.change(TOPIC, "retention.ms", "SET", "invalid") == ("Invalid value.", [])
    assert c.state.checked == (TOPIC, {MIN_ISR: "2", "retention.ms": "invalid"}, {MIN_ISR: "2"})
    c.legacy((TOPIC, {"retention.ms": "1"}))
    assert c.state.checked == (TOPIC, {"retention.ms": "1"}, {MIN_ISR: "2"})
    assert c.alter((gone, [(MIN_ISR, "SET", "2")]))["answers"] == [
        ["UNKNOWN_TOPIC_OR_PARTITION", "gone does not exist."]
    ]
    assert c.change(gone, MIN_ISR, "SET", "2", newly_created=True)[0] is None


@pytest.mark.clause("CFG-12")
def test_what_the_policy_is_told() -> None:
    c = Controller()
    c.alter((TOPIC, [(MIN_ISR, "SET", "2"), (UNCLEAN, "SET", "true")]))
    c.alter((TOPIC, [(MIN_ISR, "SET", "2"), (UNCLEAN, "DELETE", None)]))
    assert c.state.policed == (TOPIC, {UNCLEAN: None})
    c.legacy((TOPIC, {"retention.ms": "1"}))
    assert c.state.policed == (TOPIC, {"retention.ms": "1"})
    assert c.change(TOPIC, "retention.ms", "SET", "forbidden")[0] == "Forbidden."
    assert c.has(TOPIC) == {"retention.ms": "1"}


@pytest.mark.clause("CFG-14")
def test_eligible_leader_replicas_are_switched_on() -> None:
    c = Controller(static=[(MIN_ISR, "4")])
    c.alter((("BROKER", "12"), [(MIN_ISR, "SET", "2")]), (BROKER, [(MIN_ISR, "SET", "2")]), (("BROKER", "3"), []))
    assert c.elr(1, validate_only=True) == []
    assert c("getStaticallyConfiguredMinInsyncReplicas") == 4
    safe = [record(CLUSTER, MIN_ISR, "4"), record(BROKER, MIN_ISR, None), record(("BROKER", "12"), MIN_ISR, None)]
    assert c.elr(1, replayed=False) == [*safe, switched(1)]
    assert c.elr(1) == [*safe, switched(1)]
    assert c.elr(1) == [switched(1)]
    assert c.elr(0) == [switched(0)]
    assert c.has(CLUSTER) == {MIN_ISR: "4"}
    assert Controller()("getStaticallyConfiguredMinInsyncReplicas") == 1


@pytest.mark.clause("CFG-15", "CFG-16", "CFG-17")
def test_records() -> None:
    c = Controller()
    for resource, key, value in ((BROKER, MIN_ISR, "1"), (CLUSTER, MIN_ISR, "1"), (TOPIC, UNSUPPORTED, "1")):
        c("replay", resource=[*resource], key=key, value=value)
    assert c.state.present.brokers == [1]
    assert c.has(TOPIC) == {}
    c("replay", resource=[*BROKER], key=MIN_ISR, value=None)
    assert (c.state.present.brokers, c.state.present.configs) == ([], ((CLUSTER, ((MIN_ISR, "1"),)),))
    c("replay", resource=[*TOPIC], key=MIN_ISR, value="1")
    c("deleteTopicConfigs", name="t")
    assert c.has(TOPIC) == {}


@pytest.mark.clause("CFG-18", "CFG-21")
def test_the_past() -> None:
    c = Controller()
    c.alter((BROKER, [(MIN_ISR, "SET", "2")]), (TOPIC, [(MIN_ISR, "SET", "2"), (UNCLEAN, "SET", "true")]))
    c("getOrCreateSnapshot", epoch=4)
    c.alter((BROKER, [(MIN_ISR, "DELETE", None)]), (("BROKER", "2"), [(MIN_ISR, "SET", "1")]))
    c.alter((TOPIC, [(MIN_ISR, "SET", "3")]))
    c("deleteTopicConfigs", name="t")
    assert c("describeConfigs", resource=[*TOPIC], keys=[], epoch=4) == {MIN_ISR: "2", UNCLEAN: "true"}
    assert c("describeConfigs", resource=[*TOPIC], keys=[MIN_ISR, "x"], epoch=4) == {MIN_ISR: "2"}
    c("revertToSnapshot", epoch=4)
    assert (c.state.present.brokers, c.has(TOPIC)) == ([1], {MIN_ISR: "2", UNCLEAN: "true"})
    c("deleteSnapshotsUpTo", epoch=5)
    c("reset", version=30)
    assert (c.state.past, c.state.present) == ((), spec.View())


@pytest.mark.clause("CFG-19", "CFG-20")
def test_the_effective_value() -> None:
    c = Controller(static=[("log.retention.hours", "3"), (UNCLEAN, "TRUE")])

    def value(key: str = "retention.ms") -> list[str]:
        found: list[str] = c("getTopicConfig", topic="t", key=key)
        return found

    assert value(MIN_ISR) == ["1", "DEFAULT_CONFIG"]
    assert value() == ["10800000", "STATIC_BROKER_CONFIG"]
    assert c("uncleanLeaderElectionEnabledForTopic", topic="t")
    c.alter((CLUSTER, [("log.retention.hours", "SET", "x"), (UNCLEAN, "SET", "yes")]))
    assert value() == ["0", "DYNAMIC_DEFAULT_BROKER_CONFIG"]
    assert not c("uncleanLeaderElectionEnabledForTopic", topic="t")
    for text, hours in (("0002", 2), ("+1", 1), ("\t-1 ", -1), ("2147483647", 2**31 - 1), ("-2147483648", -(2**31))):
        c.alter((CLUSTER, [("log.retention.hours", "SET", text)]))
        assert value() == [str(hours * 3_600_000), "DYNAMIC_DEFAULT_BROKER_CONFIG"]
    for text in ("2147483648", "1_0", "", "-", "1" * 5_000, "0" * 5_000):
        c.alter((CLUSTER, [("log.retention.hours", "SET", text)]))
        assert value() == ["0", "DYNAMIC_DEFAULT_BROKER_CONFIG"]
    c.alter((CLUSTER, [("log.retention.ms", "SET", "9")]), (BROKER, [("log.retention.ms", "SET", "7")]))
    assert value() == ["9", "DYNAMIC_DEFAULT_BROKER_CONFIG"]
    c.alter((("BROKER", "0"), [("log.retention.ms", "SET", "8")]))
    assert value() == ["8", "DYNAMIC_BROKER_CONFIG"]
    c.alter((TOPIC, [("retention.ms", "SET", "5")]))
    assert value() == ["5", "DYNAMIC_TOPIC_CONFIG"]


RECORDINGS = subsystem.find("configurations").recordings


@pytest.mark.clause("CFG-4", "CFG-5")
def test_altered_recordings_are_rejected() -> None:
    """Of the real class: each request's answer, and each one's records, in turn are others."""
    recording = next(r for r in RECORDINGS if r.file == "configurations.ndjson")
    lines = [orjson.loads(line) for line in recording.path.read_bytes().splitlines()]
    at = [n for n, line in enumerate(lines) if line["op"].endswith("AlterConfigs")]
    assert len(at) == 31
    for n in at:
        result = lines[n]["result"]
        fewer = result["records"][:-1] if result["records"] else [record(TOPIC, "x", "1")]
        other = OK if result["answers"] != [OK] else ["INVALID_CONFIG", "no"]
        for altered in ({**result, "records": fewer}, {**result, "answers": [other]}):
            copy = [*lines[:n], {**lines[n], "result": altered}, *lines[n + 1 :]]
            found = check(spec.machine, [orjson.dumps(line) for line in copy])
            assert (found.verdict, found.step) == ("rejected", n)
