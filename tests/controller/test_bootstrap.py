"""Bootstrap and format: the implementation beside the spec, each rule with values, Kafka's own files, the model."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkaspec.contract.codec import encode
from kafkaspec.contract.machine import Refused
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import find
from kafkaspec.explore.checked import Expectation
from kafkaspec.impl.common.disk import Crashed, RealDisk, SimulatedDisk
from kafkaspec.impl.common.ids import id_text
from kafkaspec.impl.controller import bootstrap as impl
from kafkaspec.impl.controller.bootstrap_driver import Driver
from kafkaspec.impl.management import meta_properties
from kafkaspec.impl.storage.batch import LENGTH_AT, LOG_OVERHEAD, Batch
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.models.controller import bootstrap as model
from kafkaspec.mutants.matrix import (
    explorer_detector,
    kill_matrix,
    lockstep_detector,
    mutants_of,
    prover_detector,
    written,
)
from kafkaspec.proofs.controller.bootstrap import PROOFS
from kafkaspec.spec.controller.bootstrap import Level, Snapshot, Storage, machine
from kafkaspec.spec.controller.bootstrap_parts.requests import Voter
from kafkaspec.spec.controller.bootstrap_trial import IDS, SCRAM
from tests.layers import Histories, a_row_of_verify, some_are_killed, walked

Call = tuple[str, dict[str, Any]]
CLUSTER = "ERxj9gH3QdO4vS7p0LmNQw"
METADATA, KRAFT, ELR = "metadata.version", "kraft.version", "eligible.leader.replicas.version"
NEW = (Level(METADATA, 30), Level(ELR, 1), Level("group.version", 1), Level("share.version", 1),
       Level("streams.version", 1), Level("transaction.version", 2))  # fmt: skip
FILES = orjson.loads(Path(__file__).with_name("bootstrap_files.json").read_bytes())
"""Directories of node 1 that `kafka-storage format` of Kafka 4.3.0 made: d0, the metadata directory, and d1"""


CALLS = Histories(machine, Driver)
answered, after, refused = CALLS.answered, CALLS.after, CALLS.refused


def said(refusal: Refused) -> str:
    """Its message, where there is one."""
    assert refusal.message is not None
    return refusal.message


def format_(**other: Any) -> Call:
    arguments: dict[str, Any] = {
        "roles": "combined", "node_id": 1, "cluster_id": CLUSTER, "directories": ["d0", "d1"],
        "metadata_directory": "d0", "static_voters": True, "flag": "none", "initial_controllers": "",
        "ignore_formatted": False, "release_version": None, "features": [], "scram": [], "unstable": False,
    }  # fmt: skip
    assert other.keys() <= arguments.keys()
    return "format", {**arguments, **other}


def dynamic(flag: str, **other: Any) -> Call:
    return format_(static_voters=False, flag=flag, **other)


def has(
    directory: str, cluster: str | None = CLUSTER, node: int | None = 1, id: str | None = IDS[0], version: int = 1
) -> Call:
    arguments = {"version": version, "cluster_id": cluster, "node_id": node, "directory_id": id}
    return "writeProperties", {"directory": directory, **arguments}


def gone(directory: str) -> Call:
    return "losesProperties", {"directory": directory}


def test_spec_and_implementation_agree_on_seeded_walks() -> None:
    covered = walked(machine, Driver, seeds=12, steps=60)
    refusals = {name.split()[-1] for name, n in covered.refusals.items() if n}
    assert {"BST-2", "BST-3", "BST-11", "BST-21", "BST-22", "BST-23", "BST-24"} <= refusals


@pytest.mark.clause("BST-1", "BST-17", "BST-5")
def test_each_directory_gets_its_files() -> None:
    state, (done,) = answered(format_())
    assert done["formatted"] == {"d0": "metadata directory", "d1": "data directory"}
    assert done["metadataVersion"] == "4.3-IV0"
    assert [state.of(d).properties for d in ("d0", "d1")] == [(1, CLUSTER, 1, "made-1"), (1, CLUSTER, 1, "made-2")]
    assert state.d0.bootstrap == state.d1.bootstrap == NEW
    assert state.d0.snapshot is state.d1.snapshot is None
    assert not state.d2.exists
    assert after(format_(metadata_directory="d2")).d2.properties == (1, CLUSTER, 1, "made-3")


@pytest.mark.clause("BST-1")
def test_the_ids_that_are_drawn_differ_and_are_not_reserved() -> None:
    drawn = iter([bytes(16), b"\xfb" + bytes(15), *[bytes(range(16))] * 2, bytes(range(1, 17))])
    formatter = impl.Formatter(SimulatedDisk(), lambda: 5, lambda size: next(drawn))
    assert formatter.directory_id([id_text(bytes(range(16)))]) == id_text(bytes(range(1, 17)))


@pytest.mark.clause("BST-2")
def test_what_is_there_must_fit() -> None:
    path = "$DIR/d1/meta.properties"
    ignoring = format_(ignore_formatted=True)
    refusal = refused(has("d1", cluster="other"), ignoring)
    assert refusal.message == f"Invalid cluster.id in: {path}. Expected {CLUSTER}, but read other"
    refusal = refused(has("d1", node=2), ignoring)
    assert said(refusal).startswith("Stored node id 2 doesn't match previous node id 1")
    assert refused(has("d1", id=IDS[3]), ignoring).message == f"Invalid reserved directory ID {IDS[3]} found in $DIR/d1"
    assert refused(has("d0"), has("d1"), ignoring).clause == "BST-2"
    assert after(has("d1", cluster=None, node=None, id=None, version=0), ignoring).d1.properties == (
        0,
        None,
        None,
        None,
    )
    assert after(format_(cluster_id="any text")).d0.properties == (1, "any text", 1, "made-1")


@pytest.mark.clause("BST-3")
def test_what_is_formatted_stays() -> None:
    assert refused(format_(), format_()).clause == "BST-3"
    first = after(format_())
    other = dynamic("standalone", ignore_formatted=True, release_version="3.9")
    state, answers = answered(format_(), other)
    assert state == first
    assert answers[-1] == {"metadataVersion": None, "formatted": {}, "ignored": []}
    state = after(format_(), gone("d1"), format_(ignore_formatted=True, release_version="3.9"))
    assert state.d0 == first.d0
    assert state.d1.bootstrap == (Level(METADATA, 21),)  # another than the metadata directory has


@pytest.mark.clause("BST-4")
def test_what_cannot_be_read_is_left() -> None:
    bad = has("d0", node=None)
    state, answers = answered(bad, format_())
    assert (state.d0.properties, state.d0.bootstrap) == ("unreadable", None)  # and it is the metadata directory
    assert answers[-1]["ignored"] == ["d0"]
    refusal = refused(bad, has("d1", node=None), format_())
    assert refusal.message == "No available log directories to format."


@pytest.mark.clause("BST-5")
def test_the_first_records_are_in_order() -> None:
    state = after(format_(scram=[SCRAM[1], SCRAM[0]], features=[f"{ELR}=0"]))
    assert state.d0.bootstrap is not None
    assert [r.feature if isinstance(r, Level) else r.user for r in state.d0.bootstrap] == [
        METADATA, "group.version", "share.version", "streams.version", "transaction.version", "bob", "alice",
    ]  # fmt: skip


@pytest.mark.clause("BST-6")
def test_a_level_is_asked_for_by_name() -> None:
    assert after(format_(features=[" group.version = 0 "])).d0.bootstrap == (*NEW[:2], *NEW[3:])
    assert after(format_(features=["group.version=0", "group.version=1"])).d0.bootstrap == NEW
    what = "Can't parse feature=level string"
    assert refused(format_(features=["group"])).message == f"{what} group: equals sign not found."
    assert refused(format_(features=["group=1=1"])).message == f"{what} group=1=1: unable to parse 1=1 as a short."
    assert refused(format_(features=["group=32768"])).clause == "BST-6"


@pytest.mark.clause("BST-7")
def test_metadata_version() -> None:
    assert answered(format_(unstable=True))[1][0]["metadataVersion"] == "4.4-IV0"
    assert answered(format_(features=[f"{METADATA}=23"]))[1][0]["metadataVersion"] == "4.0-IV1"
    both = format_(release_version="4.0", features=[f"{METADATA}=23"])
    assert refused(both).message == "Use --release-version instead of --feature metadata.version=X to avoid ambiguity."
    assert refused(format_(features=[f"{METADATA}=31"])).message == "metadata.version 4.4-IV0 is not yet stable."
    assert refused(format_(features=[f"{METADATA}=6"])).message == (
        "No MetadataVersion with feature level 6. Valid feature levels are from 7 to 31."
    )


@pytest.mark.clause("BST-8")
@pytest.mark.parametrize(
    ("release", "levels"),
    [
        ("3.9", ()),
        ("4.0-IV0", (("group.version", 1),)),
        ("4.0", (("group.version", 1), ("transaction.version", 2))),
        ("4.1-IV0", ((ELR, 1), ("group.version", 1), ("transaction.version", 2))),
        ("4.2-IV0", ((ELR, 1), ("group.version", 1), ("share.version", 1), ("transaction.version", 2))),
        ("4.2", NEW[1:]),
    ],
)
def test_a_new_cluster_begins_with_the_levels_of_its_version(release: str, levels: Any) -> None:
    bootstrap = after(format_(release_version=release)).d0.bootstrap
    assert bootstrap is not None
    assert bootstrap[1:] == levels


@pytest.mark.clause("BST-9")
def test_levels_that_cannot_be() -> None:
    names = f"{ELR}, group.version, kraft.version, share.version, streams.version, transaction.version"
    assert refused(format_(features=["x=1"])).message == f"Unsupported feature: x. Supported features are: {names}"
    assert refused(format_(features=["group.version=2"])).message == "No feature:group.version with feature level 2"
    assert refused(format_(features=["group.version=-1"])).message == "No feature:group.version with feature level -1"
    refusal = refused(format_(features=[f"{ELR}=1"], release_version="3.9"))
    assert refusal.message == f"{ELR} could not be set to 1 because it depends on {METADATA} level 23"
    assert after(format_(features=[f"{ELR}=1"], release_version="4.0-IV1")).d0.bootstrap == (
        Level(METADATA, 23), Level(ELR, 1), Level("group.version", 1)
    )  # fmt: skip


@pytest.mark.clause("BST-10")
def test_credentials_need_a_version_that_knows_them() -> None:
    message = "SCRAM is only supported in metadata.version 3.5-IV2 or later."
    assert refused(format_(scram=[SCRAM[0]], release_version="3.5-IV1")).message == message
    assert refused(format_(scram=["nonsense"], release_version="3.4")).message == message
    assert len(after(format_(scram=[SCRAM[0]], release_version="3.5")).d0.bootstrap or ()) == 2


@pytest.mark.clause("BST-11")
def test_a_quorum_is_static_or_dynamic() -> None:
    for flag in ("standalone", "initial"):
        refusal = refused(format_(flag=flag, initial_controllers="nonsense"))
        assert said(refusal).startswith("You cannot specify controller.quorum.voters")
    assert refused(dynamic("standalone", roles="broker")).message == "You can only use --standalone on a controller."
    for roles in ("controller", "combined"):
        refusal = refused(dynamic("none", roles=roles))
        assert said(refusal).startswith("Because controller.quorum.voters is not set")
    assert after(dynamic("none", roles="broker")).d0.snapshot is None
    assert after(dynamic("noInitial")).d0.snapshot is None
    assert after(format_(flag="noInitial")).d0.snapshot is None


@pytest.mark.clause("BST-12")
def test_kraft_version() -> None:
    refusal = refused(dynamic("noInitial", features=[f"{KRAFT}=0"]))
    assert said(refusal).startswith("Cannot set kraft.version to 0 if")
    refusal = refused(format_(features=[f"{KRAFT}=1"]))
    assert said(refusal).startswith("Cannot set kraft.version to 1 unless")
    assert (
        refused(dynamic("standalone", features=[f"{KRAFT}=2"])).message
        == "No feature:kraft.version with feature level 2"
    )
    assert after(dynamic("standalone", features=[f"{KRAFT}=1"])).d0.snapshot is not None
    assert after(format_(features=[f"{KRAFT}=0"])).d0.bootstrap == NEW


@pytest.mark.clause("BST-13", "BST-14", "BST-15")
def test_the_voters_are_in_a_snapshot_of_the_metadata_directory() -> None:
    state, (done,) = answered(dynamic("standalone", directories=["d1", "d0"], metadata_directory="d1"))
    assert done["formatted"] == {"d0": "data directory", "d1": "dynamic metadata voter directory"}
    assert state.d1.snapshot == Snapshot(1, (Voter(1, "made-2", "localhost", 9093),))
    assert state.d1.properties == (1, CLUSTER, 1, "made-2")
    assert (state.d0.snapshot, state.d1.bootstrap) == (None, NEW)
    text = f"2@[::1]:9095:{IDS[1]},1@localhost:9094:{IDS[0]}"
    state, (done,) = answered(dynamic("initial", initial_controllers=text))
    assert state.d0.snapshot == Snapshot(
        1, (Voter(1, IDS[0], "localhost", 9094), Voter(2, IDS[1], "0:0:0:0:0:0:0:1", 9095))
    )
    assert state.d0.properties == (1, CLUSTER, 1, IDS[0])
    state, (done,) = answered(dynamic("initial", initial_controllers=text, node_id=3))
    assert done["formatted"]["d0"] == "dynamic metadata directory"
    assert (state.d0.properties, len(state.d0.snapshot.voters if state.d0.snapshot else ())) == (
        (1, CLUSTER, 3, "made-1"),
        2,
    )


@pytest.mark.clause("BST-16")
def test_nothing_is_written_before_all_is_known() -> None:
    assert answered(format_(scram=[SCRAM[0], "nonsense"]))[0] == Storage()
    bad = [has("d1", cluster="other"), dynamic("standalone", ignore_formatted=True)]
    assert answered(*bad)[0] == after(bad[0])


@pytest.mark.clause("BST-18", "BST-19", "BST-20")
def test_what_a_node_begins_with() -> None:
    def read(directory: str) -> Call:
        return "readBootstrap", {"directory": directory}

    def write(*levels: tuple[str, int]) -> Call:
        return "writeBootstrap", {"directory": "d1", "levels": [Level(*level) for level in levels]}

    assert answered(format_(), read("d1"))[1][-1] == {"metadataVersion": 30, "records": encode(NEW), "byDefault": False}
    assert answered(write((METADATA, 7), (METADATA, 23)), read("d1"))[1][-1]["metadataVersion"] == 23
    refusal = refused(write(("group.version", 1)), read("d1"))
    assert said(refusal).endswith("file: $DIR/d1/bootstrap.checkpoint")
    by_default = {"metadataVersion": 30, "records": [[METADATA, 30]], "byDefault": True}
    assert answered(has("d1"), read("d1"))[1][-1] == by_default
    assert refused(read("d1")).message == "No such directory as $DIR/d1"


@pytest.mark.clause("BST-21")
def test_voters() -> None:
    def parse(text: str) -> Call:
        return "parseVoters", {"text": text}

    assert answered(parse(f" ,7@[a:b]:1:{IDS[0]},,0@h:65535:{IDS[0]}=="))[1] == [
        [[0, IDS[0], "h", 65535], [7, IDS[0], "a:b", 1]]
    ]
    assert answered(parse(f"1@h:1:{IDS[3]}"))[1] == [[[1, IDS[3], "h", 1]]]  # reserved
    assert refused(parse(f"1@h:1:{IDS[0]},1@h:2:{IDS[1]}")).message == "Node id 1 was specified more than once."
    assert refused(parse(",")).message == "No voters given."
    assert refused(parse("1@h:1:x")).message == "Failed to parse directory ID in dynamic voter string."


NUMBERS = {
    "1": 1, "+1": 1, "0" * 30 + "7": 7, "2147483647": 2**31 - 1,
    "\u0661\u0660": 10, "\uff11\uff12": 12, "1\u0661": 11, "\u07c5": 5,
    **dict.fromkeys(["2147483648", "\u0669" * 10, "\U0001d7d9", "1\U0001d7d9", "1_0", "1 ", "1\u00a0"]),
    **dict.fromkeys(["+", "-", "+-1", "--1", "\u00b2", "\u2167", "\u22121"]),
}  # fmt: skip
"""what Integer.parseInt makes of texts; None where it throws"""


@pytest.mark.clause("BST-21")
@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_those_of_java(text: str) -> None:
    asked = "parseVoters", {"text": f"{text}@h:1:{IDS[0]}"}
    if NUMBERS[text] is None:
        assert refused(asked).message == "Failed to parse node id in dynamic voter string."
    else:
        assert answered(asked)[1] == [[[NUMBERS[text], IDS[0], "h", 1]]]


@pytest.mark.clause("BST-22", "BST-23")
def test_credentials() -> None:
    def parse(text: str) -> Call:
        return "parseScram", {"text": text}

    # of RFC 7677, "Test vectors": the salted password is that of "pencil"
    (found,) = answered(parse("SCRAM-SHA-256=[name=user,password=pencil,salt=W22ZaJ0SNY7soEsUEjb6gQ==]"))[1]
    assert (found["user"], found["mechanism"], found["iterations"]) == ("user", 1, 4096)
    assert base64.b64encode(bytes.fromhex(found["storedKey"])) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(bytes.fromhex(found["serverKey"])) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    both = answered(parse("SCRAM-SHA-256=[name=a,password=pencil,saltedpassword=?,salt=W22ZaJ0SNY7soEsUEjb6gQ==]"))[1]
    assert both[0]["storedKey"] == found["storedKey"]
    assert answered(parse("SCRAM-SHA-256=[name=a,password=b]"))[1][0]["salt"] is None
    assert refused(parse("SCRAM-SHA-256=[name=a,password=b,iterations=4095]")).clause == "BST-23"
    assert refused(parse("SCRAM-SHA-512=[name=a,password=b,iterations=16385]")).clause == "BST-23"
    assert refused(parse("SCRAM-SHA-256=[name=a,password=,salt=YCE=]")).message == "Empty key"
    assert refused(parse("SCRAM-SHA-256=[name=a,x=y,password=b]")).message == "Unknown SCRAM configurations: x"


@pytest.mark.clause("BST-24")
@pytest.mark.parametrize(
    ("text", "unstable", "name"),
    [
        ("3.5", False, "3.5-IV2"),
        ("4.0.1", False, "4.0-IV3"),
        ("3.5-IV1", False, "3.5-IV1"),
        ("4.4-IV0", True, "4.4-IV0"),
        ("4.4-IV0", False, None),
        ("4.4", True, None),
        ("3.2", False, None),
        ("", False, None),
    ],
)
def test_a_release_stands_for_its_newest_version(text: str, unstable: bool, name: str | None) -> None:
    call = format_(release_version=text, unstable=unstable)
    if name is None:
        assert refused(call).clause == "BST-24"
    else:
        assert answered(call)[1][0]["metadataVersion"] == name


# Kafka's own files


def files_of(name: str) -> SimulatedDisk:
    disk = SimulatedDisk()
    for path, content in FILES[name].items():
        disk.write(path, base64.b64decode(content))
    return disk


def batches(data: bytes) -> list[Batch]:
    found, at = [], 0
    while at < len(data):
        size = LOG_OVERHEAD + int.from_bytes(data[at + LENGTH_AT : at + LOG_OVERHEAD], "big")
        found.append(Batch(data[at : at + size], at))
        at += size
    return found


@pytest.mark.parametrize("name", FILES)
def test_kafkas_files_are_written_byte_for_byte(name: str) -> None:
    """At the times at which it wrote them."""
    disk, written_files = files_of(name), 0
    for path in FILES[name]:
        data = disk.read(path)
        if path.endswith(".checkpoint"):
            control, plain = impl.contents(data)
            times = [b.base_timestamp for b in batches(data)]
            if path.endswith(impl.SNAPSHOT):
                voters = [
                    impl.Voter(
                        v["voterId"], v["voterDirectoryId"], v["endpoints"][0]["host"], v["endpoints"][0]["port"]
                    )
                    for v in control[2].fields["voters"]
                ]
                clock = iter([control[0].fields["lastContainedLogTimestamp"], *times])
                assert (
                    impl.snapshot_file(control[1].fields["kRaftVersion"], voters, "CONTROLLER", clock.__next__) == data
                )
            else:
                assert impl.bootstrap_file(plain, iter(times).__next__) == data
            written_files += 1
    assert written_files == (2 if name == "static" else 3)


def test_what_kafka_formatted_is_accepted() -> None:
    for name in FILES:
        disk = files_of(name)
        found = meta_properties.Ensemble.load(disk, ["d0", "d1"])
        assert found.verify(CLUSTER, 1) == (CLUSTER, 1)
        assert [*found.valid] == ["d0", "d1"]
        release = {"static": 30, "alone": 21, "three": 30}[name]
        assert impl.first_records(disk, "d0", True, "d0").version == release
        node = impl.Node(1, True, ["d0", "d1"], "d0", name == "static")
        asked = impl.Arguments(CLUSTER, "none" if name == "static" else "noInitial", ignore_formatted=True)
        assert impl.Formatter(disk, lambda: 0).run(node, asked) == impl.FormatResult(None, {}, [])


def test_ours_says_what_kafkas_says(tmp_path: Path) -> None:
    """Asked for the same, on a real disk."""
    voters = f"1@localhost:19093:{IDS[0]},2@[::1]:19095:{IDS[1]}"
    asked = {
        "static": (True, impl.Arguments(CLUSTER)),
        "alone": (
            False,
            impl.Arguments(CLUSTER, "standalone", release_version="3.9", features=[f"{ELR}=0"], scram=[SCRAM[1]]),
        ),
        "three": (False, impl.Arguments(CLUSTER, "initial", voters, features=["group.version=0"])),
    }
    for name, (static, arguments) in asked.items():
        directories = [str(tmp_path / name / d) for d in ("d0", "d1")]
        for d in directories:
            (Path(d) / impl.SNAPSHOT).parent.mkdir(parents=True)
        node = impl.Node(1, True, directories, directories[0], static, port=19093)
        impl.Formatter(RealDisk(), lambda: 7).run(node, arguments)
        kafka = files_of(name)
        for d in ("d0", "d1"):
            ours = impl.contents((tmp_path / name / d / impl.BOOTSTRAP).read_bytes())
            assert ours == impl.contents(kafka.read(f"{d}/{impl.BOOTSTRAP}"))
        snapshot = tmp_path / name / "d0" / impl.SNAPSHOT
        assert snapshot.exists() == (not static)
        if name == "three":
            assert (
                impl.contents(snapshot.read_bytes())[0][1:] == impl.contents(kafka.read(f"d0/{impl.SNAPSHOT}"))[0][1:]
            )


@pytest.mark.clause("BST-17")
def test_a_crash_leaves_no_directory_that_counts_as_formatted_and_lacks_a_file() -> None:
    """Wherever power is lost. Kafka flushes meta.properties and not bootstrap.checkpoint."""
    node, asked = impl.Node(1, True, ["d0", "d1"], "d0", False), impl.Arguments(CLUSTER, "standalone")
    whole = SimulatedDisk()
    impl.Formatter(whole, lambda: 7).run(node, asked)
    for at in range(whole.steps):
        disk = SimulatedDisk(crash_at=at)
        with pytest.raises(Crashed):
            impl.Formatter(disk, lambda: 7).run(node, asked)
        for left in disk.outcomes():
            for d in ("d0", "d1"):
                if left.exists(f"{d}/{meta_properties.NAME}"):
                    assert impl.first_records(left, d, True, d).version == 30
                    assert d == "d1" or len(impl.contents(left.read(f"{d}/{impl.SNAPSHOT}"))[0]) == 4


# model, proof, mutants, recordings

FAULTS = written(find("bootstrap"))


def test_some_written_mutants_are_killed() -> None:
    some_are_killed(find("bootstrap"), FAULTS, 9, (lockstep_detector(6), lockstep_detector()))


@pytest.mark.deep
def test_written_mutants_are_killed() -> None:
    rows = kill_matrix(find("bootstrap"), FAULTS, [lockstep_detector(60), explorer_detector()])
    assert [row.wrong for row in rows if row.wrong] == []


@pytest.mark.deep
def test_every_generated_mutant_is_killed_or_has_a_reason_to_live() -> None:
    faults = [m for m in mutants_of(find("bootstrap")) if m.generated]
    rows = kill_matrix(find("bootstrap"), faults, [explorer_detector(), prover_detector()])
    assert [row.wrong for row in rows if row.wrong] == []


@a_row_of_verify
@pytest.mark.parametrize("checked", model.MODELS, ids=lambda c: c.name)
def test_a_model_is_explored(checked: Expectation) -> None:
    assert checked.run().findings == []


@a_row_of_verify
def test_the_model_is_proved_for_every_size() -> None:
    (proof,) = PROOFS
    proved = proof.run()
    assert [f"{o.verdict}: {o.action} keeps {o.claim}" for o in proved.obligations if o.verdict != "proved"] == []
    assert proved.complete


RECORDINGS = find("bootstrap").recordings


@a_row_of_verify
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.file)
def test_recordings_get_their_verdict(recording: Recording) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""
