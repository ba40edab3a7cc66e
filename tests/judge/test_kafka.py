"""Apache Kafka's own classes, live behind the pipe: needs Maven once, to build targets/kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.judge.campaign import judge
from kafkaspec.judge.result import Job
from kafkaspec.judge.target import Target
from tests.kafka import LINES, kafka_target

TARGETS = Path(__file__).parent.parent.parent / "targets" / "kafka"


def offered(line: str) -> list[str]:
    """The subsystems that a line's adapters serve, by its list of them."""
    text = (TARGETS / f"kafka-{line}/src/main/resources/target.properties").read_text("utf-8")
    words = (row.partition("=")[0] for row in text.splitlines())
    return [w.removeprefix("subsystem.") for w in words if w.startswith("subsystem.")]


NEWEST = LINES[0]


def command(line: str) -> str:
    found = kafka_target(line)
    if found is None:
        pytest.skip("needs java, and Maven once: make kafka-target")
    return found


@pytest.mark.deep
@pytest.mark.parametrize("line", LINES)
def test_every_adapter_that_is_listed_is_offered(line: str) -> None:
    with Target(command(line)) as target:
        assert target.hello.name == "Apache Kafka"
        assert target.hello.version.startswith(line)
        assert sorted(target.hello.subsystems) == sorted(offered(line))


@pytest.mark.deep
@pytest.mark.parametrize("name", offered(NEWEST))
def test_the_newest_kafka_is_accepted(name: str) -> None:
    judged = judge(Job(name, command(NEWEST), seed=1), examples=2_000, time_s=120)
    told = "\n".join(str(r.history) for r in judged.tally.rejections.values())
    assert judged.verdict == "accepted", f"{judged.why}\n{told}"
    assert not judged.not_called
    assert set(judged.tally.deviations) <= {d.id for d in find(name).spec.machine.deviations}
