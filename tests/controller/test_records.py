"""Metadata records: impl against spec, each rule in the plainest way, and Kafka's own logs."""

from __future__ import annotations

import gzip
import re
import tarfile
from base64 import b64decode, b64encode
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.contract import subsystem
from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.impl.controller import records as impl
from kafkaspec.impl.controller.metadata_image import MetadataImage, differences
from kafkaspec.impl.controller.records_driver import Driver
from kafkaspec.impl.storage.batch import Batch, Record
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.spec.common.metadata_schemas import CONTROL, DATA
from kafkaspec.spec.common.record_format import CONTROL as CONTROL_BIT
from kafkaspec.spec.common.record_format import Header, LogRecord, built, encode
from kafkaspec.spec.controller import records as spec
from kafkaspec.spec.controller import records_trial as trial
from kafkaspec.spec.controller.records import machine
from tests.kafka import run_class
from tests.layers import a_row_of_verify, walked
from tests.modules import imported

metadata = imported(Path(__file__).parents[2] / "bench" / "metadata.py", "metadata")

ID, NO_ID = "Wz2UP7E_QO2kiOpi3I8jIQ", "AAAAAAAAAAAAAAAAAAAAAA"
TOPIC = b"\x01\x02\x00\x02t" + bytes(16) + b"\x00"


def ask(operation: str, **arguments: Any) -> Any:
    """What the spec answers, which must be what the implementation does; of a refusal clause and class."""
    step = machine.apply(machine.initial(), operation, arguments)
    assert not isinstance(step, Outside), step
    shown = Driver().apply(operation, arguments)
    assert shown == step.result
    result = machine.operations[operation].body(**arguments)
    return (result.clause, result.error.rpartition(".")[2]) if isinstance(result, Refused) else result


def decoded(value: bytes | None, **more: Any) -> Any:
    return ask("data.decode", **({"key": None, "value": value, "timestamp_delta": 0, "headers": []} | more))


def rewritten(value: bytes) -> Any:
    return ask("data.rewrite", value=value)


def refused(clause: str) -> tuple[str, str]:
    return clause, "MetadataParseException"


def test_long_walks_cover_every_operation() -> None:
    walked(machine, Driver, seeds=10, steps=150)


@a_row_of_verify
@pytest.mark.parametrize("recording", subsystem.find("records").recordings, ids=lambda r: r.file)
def test_recordings_are_accepted(recording: Any) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


def test_the_page_says_how_many_kinds_there_are() -> None:
    page = Path(__file__).parents[2] / "docs" / "controller" / "records.md"
    assert f"There are {len(DATA)} kinds of data and five control records" in page.read_text("utf-8")
    assert len(CONTROL) == 5


@given(st.sampled_from(trial.VALUES), st.data())
def test_damaged_bytes_are_read_as_the_spec_reads_them(value: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(value)))
    damaged = value[:at] + data.draw(st.binary(max_size=6)) + value[at + data.draw(st.integers(0, 3)) :]
    found = Driver().apply("data.rewrite", {"value": damaged})
    expected = spec.rewrite_data(damaged)
    assert found == (expected if isinstance(expected, Refused) else expected.hex())


@given(st.binary(max_size=12))
@pytest.mark.clause("MRC-6")
def test_text_is_java_s(content: bytes) -> None:
    assert impl.java_text(content) == spec.text_of(content)


@pytest.mark.clause("MRC-1")
def test_the_frame_is_version_type_and_version() -> None:
    assert decoded(TOPIC).fields == {"name": "t", "topicId": NO_ID}
    assert decoded(b"\x02" + TOPIC[1:]) == refused("MRC-1")
    assert decoded(b"\x00" + TOPIC[1:]) == refused("MRC-1")
    assert decoded(b"\x01\x80\x80\x02" + TOPIC[2:]) == refused("MRC-1")
    low = b"\x01" + spec.varint_bytes(2 - 2**16)
    assert decoded(low + TOPIC[2:]) == decoded(TOPIC)
    assert spec.frame(20, 0) == b"\x01\x14\x00"


@pytest.mark.clause("MRC-2")
def test_varints_have_five_bytes_at_most() -> None:
    assert spec.unsigned_varint(b"\xac\x02", 0) == (300, 2)
    assert spec.unsigned_varint(b"\xff\xff\xff\xff\x7f", 0) == (-1, 5)
    assert decoded(b"\x81") == refused("MRC-2")
    assert decoded(b"\x81\x80\x80\x80\x80\x00\x14\x00\x00") == refused("MRC-2")
    assert ask("control.decode", key=b"\0\0\0\2", value=bytes(6) + b"\x80") == ("MRC-2", "BufferUnderflowException")
    cut = bytes(6) + b"\x80\x80\x80\x80\x80"
    assert ask("control.decode", key=b"\0\0\0\2", value=cut) == ("MRC-2", "IllegalArgumentException")


@pytest.mark.clause("MRC-3")
def test_unknown_types_are_refused() -> None:
    assert decoded(b"\x01\x06\x00\x00") == refused("MRC-3")
    assert decoded(b"\x01\x1d\x00\x00") == refused("MRC-3")


@pytest.mark.clause("MRC-4")
def test_versions_of_no_release_are_read_by_the_nearest() -> None:
    assert decoded(TOPIC.replace(b"\x02\x00", b"\x02\x07", 1)).version == 7
    assert decoded(spec.frame(2, -1) + TOPIC[3:]).version == -1
    quota = b"\x01\x0e\x01\x02\x02t\x00\x00\x02k" + bytes(9) + b"\x00"
    assert decoded(quota) == refused("MRC-4")
    assert decoded(quota.replace(b"\x0e\x01", b"\x0e\x00")).fields["entity"] == [
        {"entityType": "t", "entityName": None}
    ]


@pytest.mark.clause("MRC-5")
def test_fields_of_a_fixed_size() -> None:
    assert spec.fixed("int16", b"\xff\xfe", 0) == (-2, 2)
    assert spec.fixed("uint16", b"\xff\xfe", 0) == (65534, 2)
    assert spec.fixed("bool", b"\x02", 0) == (True, 1)
    assert spec.fixed("uuid", bytes(15) + b"\x01", 0) == ("AAAAAAAAAAAAAAAAAAAAAQ", 16)
    assert decoded(TOPIC[:-2]) == refused("MRC-5")
    quota = b"\x01\x0e\x00\x01\x02k%b\x02\x00"
    assert (
        rewritten(quota % b"\xff\xf0\0\0\0\0\0\1") == quota.replace(b"\x02\x00", b"\x01\x00") % b"\xff\xf0\0\0\0\0\0\1"
    )
    assert ask("control.decode", key=b"\0\0\0\3", value=b"\0") == ("MRC-5", "BufferUnderflowException")


@pytest.mark.clause("MRC-6")
@pytest.mark.clause("MRC-7")
def test_strings_and_bytes() -> None:
    assert decoded(TOPIC.replace(b"\x02t", b"\x00")) == refused("MRC-6")
    assert decoded(TOPIC.replace(b"\x02t", b"\x7ft")) == refused("MRC-6")
    assert decoded(TOPIC.replace(b"\x02t", b"\x02\xff")).fields["name"] == "\N{REPLACEMENT CHARACTER}"
    long = spec.counted(2**15, b"x" * 2**15)
    assert decoded(TOPIC.replace(b"\x02t", long)) == refused("MRC-6")
    assert spec.text_of(b"\xed\xa0\x80!") == "\N{REPLACEMENT CHARACTER}!"
    scram = b"\x01\x0b\x00\x02u\x01%b\x01\x01" + bytes(4) + b"\x00"
    assert decoded(scram % b"\x03ab").fields["salt"] == "YWI="
    assert decoded(scram % b"\x00") == refused("MRC-7")
    assert decoded(scram % b"\x7fab") == refused("MRC-7")


@pytest.mark.clause("MRC-8")
@pytest.mark.clause("MRC-9")
@pytest.mark.clause("MRC-10")
def test_arrays_structures_and_tagged_fields() -> None:
    quota = b"\x01\x0e\x00%b\x02k" + bytes(9) + b"\x00"
    assert decoded(quota % b"\x02\x02t\x02n\x00").fields["entity"] == [{"entityType": "t", "entityName": "n"}]
    assert decoded(quota % b"\x00") == refused("MRC-8")
    assert decoded(quota % b"\x7f") == refused("MRC-8")
    inner = quota % b"\x02\x02t\x02n\x01\x05\x01z"
    assert rewritten(inner) == inner
    change = b"\x01\x05%b" + bytes(20) + b"%b"
    assert decoded(change % (b"\0", b"\1\0\6\2\0\0\0\5")).fields["isr"] == [5]
    assert decoded(change % (b"\0", b"\1\0\x63\2\0\0\0\5")).fields["isr"] == [5]
    assert "isr" not in decoded(change % (b"\0", b"\0")).fields
    assert decoded(change % (b"\1", b"\1\6\1\1")) == refused("MRC-10")
    assert decoded(change % (b"\2", b"\1\6\1\1")).fields["eligibleLeaderReplicas"] == []
    assert decoded(change % (b"\0", b"\2\1\4\0\0\0\7\1\4\0\0\0\x08")).fields["leader"] == 8


@pytest.mark.clause("MRC-11")
def test_unknown_tagged_fields_are_kept() -> None:
    no_op = b"\x01\x14\x00%b"
    assert rewritten(no_op % b"\x02\x05\x01a\x07\x00") == no_op % b"\x02\x05\x01a\x07\x00"
    assert rewritten(no_op % b"\x02\x07\x00\x05\x01a") == ("MRC-11", "RuntimeException")
    assert decoded(no_op % b"\x01\x05\x09a") == refused("MRC-11")
    assert decoded(no_op % b"\x01\x05\xff\xff\xff\xff\x0f") == refused("MRC-11")
    footer = b"\0\0\x01\x05\xff\xff\xff\xff\x0f"
    assert ask("control.decode", key=b"\0\0\0\4", value=footer) == ("MRC-11", "NegativeArraySizeException")


@pytest.mark.clause("MRC-12")
def test_nothing_stands_behind_a_record() -> None:
    assert decoded(TOPIC + b"\0") == refused("MRC-12")


@pytest.mark.clause("MRC-13")
@pytest.mark.clause("MRC-14")
@pytest.mark.clause("MRC-15")
def test_what_is_written() -> None:
    def encoded(type: int, version: int, **fields: Any) -> Any:
        return ask("data.encode", record=spec.MetadataRecord(type, version, fields))

    assert encoded(2, 0, name="t", topicId=NO_ID) == TOPIC
    change = {"partitionId": 0, "topicId": NO_ID}
    assert encoded(5, 0, **change, leader=-2, isr=[5]) == b"\x01\x05\x00" + bytes(20) + b"\1\0\5\2\0\0\0\5"
    assert rewritten(b"\x01\x05\x00" + bytes(20) + b"\1\1\4\xff\xff\xff\xfe") == b"\x01\x05\x00" + bytes(20) + b"\0"
    assert rewritten(b"\x81\x00\x14\x00\x00") == b"\x01\x14\x00\x00"
    assert encoded(5, 1, **change, lastKnownElr=[]) == ("MRC-14", "UnsupportedVersionException")
    assert encoded(2, 0, name="x" * 2**15, topicId=NO_ID) == ("MRC-15", "RuntimeException")
    assert encoded(2, 0, name="x" * (2**15 - 1), topicId=NO_ID)[:6] == b"\x01\x02\x00\x80\x80\x02"


@pytest.mark.clause("MRC-16")
def test_a_data_record_has_a_value_alone() -> None:
    envelope = ("MRC-16", "IllegalArgumentException")
    assert decoded(None) == decoded(b"") == decoded(TOPIC, key=b"") == decoded(TOPIC, timestamp_delta=1) == envelope
    assert decoded(TOPIC, headers=[spec.Header("h", b"\1")]) == envelope
    assert decoded(TOPIC, headers=[spec.Header("h", b"")]) == decoded(TOPIC)
    assert decoded(b"\0", headers=[spec.Header("h", b"\1")]) == refused("MRC-1")


@pytest.mark.clause("MRC-17")
@pytest.mark.clause("MRC-18")
def test_control_records() -> None:
    def of(key: bytes | None, value: bytes | None = b"\0\7\x01\0\0\0") -> Any:
        return ask("control.decode", key=key, value=value)

    assert of(b"\0\0\0\4").fields == {"version": 7}
    assert of(b"\0\1\0\4\xff") == of(b"\0\0\0\4")
    assert of(b"\0\0\0") == of(b"\x80\0\0\4") == ("MRC-17", "InvalidRecordException")
    assert of(b"\0\0\0\1") == of(b"\0\0\0\7") == ("MRC-17", "IllegalArgumentException")
    assert of(None) == of(b"\0\0\0\4", b"") == ("MRC-16", "IllegalArgumentException")
    voters = [{"voterId": 1, "voterDirectoryId": NO_ID}]
    change = {"version": 1, "leaderId": 1, "voters": voters, "grantingVoters": []}
    key, value = ask("control.encode", record=spec.MetadataRecord(2, 0, change))
    assert (key, value) == (b"\0\0\0\2", b"\0\1\0\0\0\1\2\0\0\0\1\0\1\0")
    voters[0]["voterDirectoryId"] = ID
    assert ask("control.encode", record=spec.MetadataRecord(2, 0, change)) == ("MRC-14", "UnsupportedVersionException")


def test_a_record_by_its_name_has_defaults() -> None:
    made = impl.record("PartitionChangeRecord", partitionId=3)
    assert (made.type, made.version, made.fields["leader"], made.fields["isr"]) == (5, 2, -2, None)
    assert impl.decode(impl.encode(made)) == made
    with pytest.raises(KeyError):
        impl.record("TopicRecord", nothing=1)
    header = impl.record("SnapshotHeaderRecord", lastContainedLogTimestamp=7)
    assert impl.decode_control(*impl.encode_control(header)) == header


@pytest.mark.parametrize("control", [False, True])
def test_every_kind_is_made_and_read_in_every_version(control: bool) -> None:
    for schema in (CONTROL if control else DATA).values():
        for version in range(1 if control else schema.highest + 1):
            made = impl.record(schema.name, version)
            read = impl.decode_control(*impl.encode_control(made)) if control else impl.decode(impl.encode(made))
            assert read == made


def test_a_length_that_is_made_up_costs_nothing() -> None:
    with pytest.raises(impl.Unreadable):
        impl.decode(b"\x01\x0e\x00\xff\xff\xff\xff\x07")
    with pytest.raises(impl.Unreadable):
        impl.decode(b"\x01\x14\x00\xff\xff\xff\xff\x07")


def told(read: Any, value: bytes) -> Any:
    """What a reader makes of bytes; of what it refuses the clause, the exception and the byte."""
    try:
        found = read(value)
    except impl.Unreadable as e:
        return e.clause, e.error, e.at
    return repr((found.type, found.version, dict(found.fields)))


@pytest.mark.clause("MRC-1", "MRC-2", "MRC-3", "MRC-5", "MRC-6", "MRC-8", "MRC-9", "MRC-10", "MRC-11", "MRC-12")
def test_the_quick_reader_says_what_the_exact_one_says() -> None:
    for value in trial.VALUES:
        assert told(impl.parse, value) == told(impl.decode, value)


def test_what_kafka_writes_is_not_left_to_the_exact_reader() -> None:
    """Each kind in each version, without the tagged fields, and with all of them."""
    for schema in DATA.values():
        for version in range(schema.highest + 1):
            tagged = [f for f in schema.fields if f.tag is not None and version in f.versions]
            values = {f.name: {"uuid": ID, "string": "x"}.get(f.type, 7) for f in tagged}
            for more in ({}, {f.name: [values[f.name]] if f.array else values[f.name] for f in tagged}):
                made = impl.record(schema.name, version, **more)
                value = impl.encode(made)
                assert impl._quick(schema.type, version)(value, 3) == (made.fields, len(value))


@given(st.binary(min_size=1, max_size=60), st.sampled_from(sorted(DATA)), st.integers(0, 5))
def test_the_quick_reader_of_any_bytes(rest: bytes, type: int, version: int) -> None:
    value = bytes([1, type, version]) + rest
    assert told(impl.parse, value) == told(impl.decode, value)


def test_records_of_a_batch_as_they_stand() -> None:
    records = [
        LogRecord(7, 100, None, b"value"), LogRecord(8, 300, b"key", None), LogRecord(90, 100, b"", b"x" * 200),
        LogRecord(91, 50, None, b"", (Header(b"h", b"\1"),)), LogRecord(9000, 100, None, None),
    ]  # fmt: skip
    data = encode(built(7, records))
    batch = Batch(data)
    for mine, theirs in zip(impl.log_records(data), batch.records(), strict=True):
        assert (mine.delta + 7, mine.timestamp_delta, mine.key, mine.value) == (
            theirs.offset, theirs.timestamp_delta, theirs.key, theirs.value,
        )  # fmt: skip
        assert bool(mine.last_byte) == bool(theirs.headers)
        kept = mine.key if mine.value is None else mine.value
        assert kept is None or data[mine.at : mine.at + len(kept)] == kept


# ---- Kafka's own logs ------------------------------------------------------------------------------------------------
RECORDINGS = Path(__file__).parent.parent / "recordings" / "audit"
ARCHIVES = sorted(p for p in RECORDINGS.rglob("*.tar.gz") if not p.parent.name.startswith("classic"))
LOG = re.compile(r".*__cluster_metadata-0/[\d-]+\.(log|checkpoint)")


def records_of(archive: Path) -> Iterator[tuple[str, int, bool, bytes | None, bytes | None]]:
    """Node and file, offset, whether it is a control record, key and value, of all metadata logs and snapshots."""
    with tarfile.open(archive) as tar:
        for member in tar:
            if not LOG.fullmatch(member.name):
                continue
            content = tar.extractfile(member)
            assert content is not None
            for control, r in records_in(content.read()):
                yield member.name, r.offset, control, r.key, r.value


def records_in(data: bytes) -> Iterator[tuple[bool, Record]]:
    """The records of a file, and whether each is a control record."""
    at = 0
    while at + 12 <= len(data) and (size := 12 + int.from_bytes(data[at + 8 : at + 12], "big")) >= 61:
        batch = data[at : at + size]
        control = bool(int.from_bytes(batch[21:23], "big") & CONTROL_BIT)
        yield from ((control, r) for r in Batch(batch, at).records())
        at += size


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_records_of_a_real_cluster_are_written_again_as_the_same_bytes(archive: Path) -> None:
    count = 0
    for _, _, control, key, value in records_of(archive):
        found = impl.decode_record(key, value, control=control)
        assert control or value is None or impl.parse(value) == (found.type, found.version, found.fields)
        assert (impl.encode_control(found) if control else (None, impl.encode(found))) == (key, value)
        count += 1
    assert count > 0


# ---- as Kafka's own reader decoded them ------------------------------------------------------------------------------
NAMES = {re.sub("(Record|Message)$", "", s.name).upper(): s.name for s in (*DATA.values(), *CONTROL.values())}
DECODED = sorted(RECORDINGS.glob("*/metadata-node-*.ndjson.gz"))


def in_json(value: Any) -> Any:
    """As Kafka's converters write it: bytes in base64; a directory id that is zero is of a version that has none."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, dict):
        return {k: in_json(v) for k, v in value.items() if (k, v) != ("voterDirectoryId", NO_ID)}
    return [in_json(v) for v in value] if isinstance(value, list | tuple) else value


def known(decoded: dict[str, Any]) -> impl.Record:
    """A record, of what Kafka's reader says of it; what it leaves out has the default."""
    type = "VOTERS" if decoded["type"] == "KRAFT_VOTERS" else decoded["type"]
    name = NAMES[type.removesuffix("_RECORD").replace("_", "")]
    fields = dict(decoded["data"])
    for secret in {"salt", "storedKey", "serverKey"} & fields.keys():
        fields[secret] = b64decode(fields[secret])
    return impl.record(name, decoded.get("version", 0), **fields)


@pytest.mark.parametrize("file", DECODED, ids=lambda p: f"{p.parent.name}-{p.name.partition('.')[0]}")
def test_records_are_what_kafka_s_own_reader_says(file: Path) -> None:
    """Each of a node's log and snapshots, and the state: that of the log's bytes where a snapshot ends is what Kafka's
    reader says of the snapshot."""
    node = file.name.removeprefix("metadata-").partition(".")[0]
    lines = [orjson.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    decoded = {(line["file"], line["offset"]): line for line in lines}
    ours = {
        (name.rpartition("/")[2], offset): impl.decode_record(key, value, control=control)
        for name, offset, control, key, value in records_of(file.with_name("nodes-after-clean-stop.tar.gz"))
        if name.startswith(f"{node}/")
    }
    assert ours.keys() == decoded.keys()
    for place, found in ours.items():
        said = known(decoded[place])
        assert (found.type, found.version, found.control) == (said.type, said.version, decoded[place]["control"])
        assert in_json(found.fields) == in_json(said.fields), place
    image, states = MetadataImage(), dict[int, MetadataImage]()
    snapshots = {file for file, _ in decoded if file.endswith(".checkpoint")}
    ends = {int(file[:20]) for file in snapshots}
    for (name, offset), found in sorted(ours.items()):
        if name.endswith(".log") and not found.control:
            image.replay(found.type, found.fields, offset)
        if name.endswith(".log") and offset + 1 in ends:
            states[offset + 1] = deepcopy(image)
    assert states or not snapshots
    for file_name in snapshots:
        if (end := int(file_name[:20])) in states:
            whole = MetadataImage()
            whole.in_snapshot = True
            for (name, offset), line in decoded.items():
                if name == file_name and not line["control"]:
                    said = known(line)
                    whole.replay(said.type, said.fields, offset)
            assert list(differences(states[end], whole)) == []


# ---- what we write, as Kafka's own tool reads it ---------------------------------------------------------------------
def tool_reads(folder: Path, offsets: int) -> list[impl.Record]:
    """The records of data of a log that we wrote, as DumpLogSegments says them; each of its offsets once."""
    log = folder / f"{0:020}.log"
    main_class = "org.apache.kafka.tools.DumpLogSegments"
    said = run_class(main_class, "--cluster-metadata-decoder", "--deep-iteration", "--files", str(log))
    assert "isvalid: false" not in said
    assert said.count("isvalid: true") == said.count("baseOffset: ") > 0
    lines = re.findall(r"^\| offset: (\d+) .* payload: (.*)$", said, re.MULTILINE)
    assert [int(offset) for offset, _ in lines] == list(range(offsets))
    return [known(orjson.loads(payload)) for _, payload in lines]


@pytest.mark.deep
def test_kafka_s_own_tool_reads_every_kind_and_version_that_we_write(tmp_path: Path) -> None:
    made = [impl.record(schema.name, v) for schema in DATA.values() for v in range(schema.highest + 1)]
    records = [LogRecord(n, 1, None, impl.encode(r)) for n, r in enumerate(made)]
    (tmp_path / f"{0:020}.log").write_bytes(encode(built(0, records, leader_epoch=1)))
    for ours, theirs in zip(made, tool_reads(tmp_path, len(made)), strict=True):
        assert (ours.type, ours.version, in_json(ours.fields)) == (theirs.type, theirs.version, in_json(theirs.fields))


def test_the_large_log_is_sound(tmp_path: Path) -> None:
    """What bench/metadata.py measures is the whole audit of it: with a finding it would end early, or be another's."""
    folder = tmp_path / "__cluster_metadata-0"
    count = metadata.make(folder, 5_000, partitions=500)["records"]
    assert metadata.audited(folder).items() >= {"verdict": "sound", "findings": 0, "records": count}.items()
    (folder / f"{0:020}.log").open("ab").write(b"torn")
    assert metadata.audited(folder)["findings"] > 0
    with pytest.raises(SystemExit, match="is named __cluster_metadata-0"):
        metadata.audited(folder.rename(tmp_path / "large"))


@pytest.mark.deep
def test_kafka_s_own_tool_reads_a_large_log_that_we_write(tmp_path: Path) -> None:
    """The log that bench/metadata.py measures the audit on, smaller."""
    folder = tmp_path / "__cluster_metadata-0"
    count = metadata.make(folder, 5_000, partitions=500)["records"]
    values = [r.value for _, r in records_in((folder / f"{0:020}.log").read_bytes())]
    for value, theirs in zip(values, tool_reads(folder, count), strict=True):
        ours = impl.decode(value or b"")
        assert (ours.type, ours.version, in_json(ours.fields)) == (theirs.type, theirs.version, in_json(theirs.fields))
