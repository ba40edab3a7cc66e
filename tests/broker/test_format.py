"""A real node starts from directories that ours formatted, and ours accepts what Kafka's own tool formatted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.audit.engine import audit
from kafkaspec.impl.common.disk import RealDisk
from kafkaspec.impl.controller import bootstrap as impl
from kafkaspec.impl.controller.records import Record, decode_record
from kafkaspec.impl.management import meta_properties
from kafkaspec.impl.storage.batch import LENGTH_AT, LOG_OVERHEAD, Batch
from tests.broker.broker import Broker, jars

LOG = "__cluster_metadata-0/00000000000000000000.log"
ID = "Wz2UP7E_QO2kiOpi3I8jIQ"
SCRAM = "SCRAM-SHA-256=[name=alice,password=secret,salt=MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E=,iterations=8192]"
RECORDS_WAIT_S = 60


class FormattedNode(Broker):
    """One node that our formatter formats. Its quorum is dynamic unless `flag` is none; `follows`: another's."""

    def __init__(self, folder: Path, asked: dict[str, Any], flag: str, follows: FormattedNode | None = None) -> None:
        self.asked, self.flag, self.follows = asked, flag, follows
        super().__init__(folder, {}, node=1 if follows is None else 2, serves=follows is None)

    def quorum(self) -> dict[str, str]:
        if self.flag == "none":
            return super().quorum()
        voters = (self if self.follows is None else self.follows).voters
        return {"controller.quorum.bootstrap.servers": voters.partition("@")[2]}

    @property
    def arguments(self) -> impl.Arguments:
        if self.follows is not None:
            self.cluster = self.follows.cluster
        at = self.voters.partition("@")[2]
        voters = f"{self.node}@{at}:{ID}" if self.flag == "initial" else ""
        return impl.Arguments(self.cluster, self.flag, voters, **self.asked)

    def format(self) -> None:
        host, _, port = self.voters.partition("@")[2].partition(":")
        data = str(self.data)
        (self.data / impl.SNAPSHOT).parent.mkdir(parents=True)
        node = impl.Node(self.node, True, [data], data, self.flag == "none", host=host, port=int(port))
        impl.Formatter(RealDisk(), lambda: time.time_ns() // 1_000_000).run(node, self.arguments)


class KafkaFormattedNode(FormattedNode):
    """The same, formatted with Kafka's tool."""

    def format(self) -> None:
        asked, flags = self.arguments, list[str]()
        if asked.release_version is not None:
            flags += ["--release-version", asked.release_version]
        for feature in asked.features:
            flags += ["--feature", feature]
        for scram in asked.scram:
            flags += ["--add-scram", scram]
        flags += {
            "none": [],
            "standalone": ["--standalone"],
            "initial": ["--initial-controllers", asked.initial_controllers],
            "noInitial": ["--no-initial-controllers"],
        }[self.flag]
        self.run(
            self._java("kafka.tools.StorageTool", "format", "-t", asked.cluster_id, "-c", "server.properties", *flags)
        )


ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "static": ("none", {"release_version": "3.9", "scram": [SCRAM]}),
    "standalone": ("standalone", {"features": ["group.version=0"], "scram": [SCRAM]}),
    "initial": ("initial", {"release_version": "4.0"}),
}


def records_of(data: bytes) -> list[Record]:
    """Of a metadata log, as far as it is written."""
    out, at = list[Record](), 0
    while len(data) >= at + LOG_OVERHEAD:
        size = LOG_OVERHEAD + int.from_bytes(data[at + LENGTH_AT : at + LOG_OVERHEAD], "big")
        if size == LOG_OVERHEAD or at + size > len(data):
            break
        batch = Batch(data[at : at + size], at)
        out += [decode_record(r.key, r.value, control=batch.control) for r in batch.records()]
        at += size
    return out


def begins_with(found: Sequence[Record], first: Sequence[Record]) -> bool:
    """Whether its first levels and credentials are those."""
    said = [r for r in found if r.name in ("FeatureLevelRecord", "UserScramCredentialRecord")]
    return [r.fields for r in said[: len(first)]] == [r.fields for r in first]


@pytest.mark.deep
@pytest.mark.parametrize("name", ASKED)
def test_a_real_node_starts_from_what_ours_formatted(name: str, tmp_path: Path) -> None:
    if jars() is None:
        pytest.skip("needs java, and the jars of Kafka 4.3.0 (bench/README.md)")
    flag, asked = ASKED[name]
    node = FormattedNode(tmp_path / "node-1", asked, flag)
    first = impl.first_records(RealDisk(), str(node.data), True, str(node.data))
    follower = FormattedNode(tmp_path / "node-2", {}, "noInitial", node) if flag == "standalone" else None
    nodes = [node] if follower is None else [node, follower]
    own = meta_properties.Ensemble.load(RealDisk(), [str(node.data)]).valid[str(node.data)].directory_id
    try:
        for n in nodes:
            n.start()
            n.wait()
        until = time.monotonic() + RECORDS_WAIT_S
        while not all(begins_with(records_of((n.data / LOG).read_bytes()), first.records) for n in nodes):
            assert time.monotonic() < until, nodes[-1].said()
            time.sleep(0.2)
    finally:
        for n in reversed(nodes):
            n.stop()
    for n in nodes:
        found = audit([n.data], strict=True)
        assert (list(found.findings), found.problems) == ([], ())
    if flag != "none":
        voters = next(r for r in records_of((node.data / LOG).read_bytes()) if r.name == "VotersRecord")
        assert [(v["voterId"], v["voterDirectoryId"]) for v in voters.fields["voters"]] == [(1, own)]
    if flag == "initial":
        assert own == ID
    if asked.get("scram"):
        said = [r for r in first.records if r.name == "UserScramCredentialRecord"]
        assert (said[0].fields["name"], said[0].fields["iterations"]) == ("alice", 8192)


@pytest.mark.deep
@pytest.mark.parametrize("name", [*ASKED, "none"])
def test_ours_accepts_what_kafka_s_tool_formatted(name: str, tmp_path: Path) -> None:
    if jars() is None:
        pytest.skip("needs java, and the jars of Kafka 4.3.0 (bench/README.md)")
    flag, asked = ASKED.get(name, ("noInitial", {"features": ["share.version=0"]}))
    node = KafkaFormattedNode(tmp_path / "node-1", asked, flag)
    data, disk = str(node.data), RealDisk()
    ensemble = meta_properties.Ensemble.load(disk, [data])
    assert ensemble.verify(node.cluster, 1) == (node.cluster, 1)
    again = impl.Arguments(node.cluster, flag, node.arguments.initial_controllers, ignore_formatted=True)
    described = impl.Node(1, True, [data], data, flag == "none")
    assert impl.Formatter(disk, lambda: 0).run(described, again) == impl.FormatResult(None, {}, [])
    ours = FormattedNode(tmp_path / "ours", asked, flag)
    theirs = impl.first_records(disk, data, True, data)
    assert theirs == impl.first_records(disk, str(ours.data), True, data)
    assert (node.data / impl.SNAPSHOT).exists() == (flag in ("standalone", "initial"))
    if flag in ("standalone", "initial"):
        control, plain = impl.contents((node.data / impl.SNAPSHOT).read_bytes())
        voters = next(r for r in control if r.name == "VotersRecord").fields["voters"]
        assert [v["voterDirectoryId"] for v in voters] == [ensemble.valid[data].directory_id]
        assert plain == []
