"""Apache Kafka's own classes, live behind the pipe: needs Maven once, to build targets/kafka."""

from __future__ import annotations

import gzip
import io
import re
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Thread, Timer
from typing import IO, Any

import orjson
import pytest

from kafkaspec.contract.history import Record, read
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import find
from kafkaspec.judge.campaign import judge, replay
from kafkaspec.judge.result import Job
from kafkaspec.judge.target import Target
from tests.kafka import LINES, NEWEST, TARGETS, answers, command


def offered(line: str) -> list[str]:
    """The subsystems that a line's adapters serve, by its list of them."""
    text = (TARGETS / f"kafka-{line}/src/main/resources/target.properties").read_text("utf-8")
    words = (row.partition("=")[0] for row in text.splitlines())
    return [w.removeprefix("subsystem.") for w in words if w.startswith("subsystem.")]


def test_the_readme_says_which_folder_is_compiled_into_which_release() -> None:
    text = (TARGETS / "README.md").read_text("utf-8")
    said = dict(re.findall(r"^\| `(shared/[\w.-]+)` \|.*\| ([\d., ]+) \|$", text, re.MULTILINE))
    poms = {line: (TARGETS / f"kafka-{line}" / "pom.xml").read_text("utf-8") for line in LINES}
    folders = [folder.name for folder in (TARGETS / "shared").iterdir()]
    assert said == {
        f"shared/{f}": ", ".join(line for line, pom in poms.items() if f"../shared/{f}/src<" in pom) for f in folders
    }
    assert [f"kafka-{line}" for line in LINES] == re.findall(r"^\| `(kafka-[\d.]+)` \|", text, re.MULTILINE)


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
    judged = judge(Job(name, command(NEWEST), seed=1), examples=2_000, time_s=1_200)
    told = "\n".join(str(r.history) for r in judged.tally.rejections.values())
    assert judged.verdict == "accepted", f"{judged.why}\n{told}"
    assert not judged.not_called
    assert set(judged.tally.deviations) <= {d.id for d in find(name).spec.machine.deviations}


RECORDED = [
    pytest.param(name, recording, id=recording.file)
    for name in offered(NEWEST)
    for recording in find(name).recordings
    if recording.verdict != "outside"
]


def askable(name: str, histories: Iterable[Sequence[Record]]) -> list[list[Record]]:
    """The histories without the calls whose numbers the protocol keeps from a target, such as an offset of -1."""
    machine = find(name).spec.machine

    def promised(record: Record) -> bool:
        if record["op"] == "init":
            return True
        op = machine.find(record["op"])
        return not op.beyond({op.parameters[t]: v for t, v in record["args"].items()})

    return [[r for r in history if promised(r)] for history in histories]


@pytest.mark.deep
@pytest.mark.parametrize(("name", "recording"), RECORDED)
def test_kafka_answers_recorded_calls_as_it_did(name: str, recording: Recording) -> None:
    """Each release its own recordings: the verdict is that of the recording, with the same known deviations."""
    line = NEWEST if recording.release is None else recording.release.rpartition(".")[0]
    data = recording.path.read_bytes()
    histories = askable(name, read(gzip.decompress(data) if recording.file.endswith(".gz") else data, recording.file))
    judged = replay(Job(name, command(line)), histories, recording.file)
    assert judged.verdict == recording.verdict, judged.why
    assert judged.tally.calls == sum(record["op"] != "init" for history in histories for record in history) > 0
    assert set(judged.tally.deviations) == set(recording.deviations)


@pytest.mark.deep
def test_kafka_holds_no_answer_back_for_long() -> None:
    """Many starts that recover 300 segments each are asked at once: the first are answered before the last is done."""
    log = {"partition": "t-0"}
    calls: list[tuple[str, dict[str, Any]]] = [("init", {}), ("createLog", log)]
    calls += [("append", log | {"count": 100})] * 3
    calls += [("kill", {}), ("start", {"crashWhileLoading": False})] * 6
    lines = [
        orjson.dumps({"i": i, "op": op, "args": args} | ({"subsystem": "checkpoints"} if op == "init" else {}))
        for i, (op, args) in enumerate(calls)
    ]
    with Target(command(NEWEST), 60.0) as target:
        target.send(lines)
        target.receive(1)
        assert len(target.left()) < len(lines) - 1
        assert len(target.receive(len(lines) - 1)) == len(lines) - 1


@pytest.mark.deep
def test_lines_are_answered_however_they_come() -> None:
    """One longer than what is read at once, many at once, and the last in pieces: what is whole is answered before the
    rest of it comes."""
    begin = orjson.dumps({"i": 0, "op": "init", "subsystem": "timeline", "args": {}})
    looks = [orjson.dumps({"i": i, "op": "observe"}) for i in range(1, 2_000)]
    text = b"\n".join([begin + b" " * 300_000, *looks])
    with subprocess.Popen(
        shlex.split(command(NEWEST)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as target:
        assert target.stdin is not None
        assert target.stdout is not None
        reader = io.BufferedReader(target.stdout)  # type: ignore[type-var]
        late = Timer(60.0, target.kill)
        late.start()
        at = len(text) - len(looks[-1]) // 2
        writer = Thread(target=written, args=(target.stdin, text[:at]))
        writer.start()
        numbers = [orjson.loads(reader.readline())["i"] for _ in range(len(looks))]
        writer.join()
        written(target.stdin, text[at:] + b"\n")
        numbers.append(orjson.loads(reader.readline())["i"])
        target.stdin.close()
        assert numbers == list(range(2_000))
        assert reader.read() == b""
        late.cancel()


def written(pipe: IO[bytes], data: bytes) -> None:
    """All of it, to a pipe without a buffer."""
    left = memoryview(data)
    while left:
        left = left[pipe.write(left) :]


@pytest.mark.deep
def test_what_went_in_a_directory_that_failed_is_no_error_at_the_end_of_the_process() -> None:
    """A log that ends below its log start is emptied by a start that a file that cannot be read halts."""
    unreadable = {"name": "recovery-point-offset-checkpoint", "file": "1\n0\n"}
    beyond = {"name": "log-start-offset-checkpoint", "file": "0\n1\nt 0 5\n"}
    first, *others = answers(
        "checkpoints",
        [
            ("init", {}),
            ("createLog", {"partition": "t-0"}),
            ("kill", {}),
            ("damage", unreadable),
            ("damage", beyond),
            ("start", {"crashWhileLoading": False}),
        ],
    )
    assert first["result"] is None
    assert others[-1]["result"] == {"clean": False, "halted": True}


@pytest.mark.deep
def test_kafka_keeps_no_file_of_what_is_gone_open() -> None:
    """What a history leaves open adds up over thousands of them."""
    log = {"partition": "t-0"}
    appended: tuple[str, dict[str, Any]] = ("append", log | {"count": 100})
    cut: tuple[str, dict[str, Any]] = ("truncate", log | {"offset": 1})
    calls: list[tuple[str, dict[str, Any]]] = [("createLog", log), appended, cut, appended]
    calls += [
        ("advanceHighWatermark", log | {"offset": 100}),
        ("raiseStart", log | {"offset": 99, "deleteSegments": True}),
    ]
    calls += [("deleteLog", log), ("createLog", log), appended]
    with Target(command(NEWEST), 60.0) as target:
        files = Path(f"/proc/{target._process.pid}/fd")
        if not files.is_dir():
            pytest.skip("needs /proc")

        def opened() -> int:
            """How many files are open after a history."""
            history = [*calls, ("kill", {})]
            lines = [orjson.dumps({"i": 0, "op": "init", "subsystem": "checkpoints", "args": {}})]
            lines += [orjson.dumps({"i": i, "op": op, "args": args}) for i, (op, args) in enumerate(history, 1)]
            target.send(lines)
            assert not [a for a in target.receive(len(lines)) if b'"error"' in a]
            return len([*files.iterdir()])

        assert abs(opened() - opened()) < 50
