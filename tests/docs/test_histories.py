"""The histories that people read: what each says of the spec and of the released Kafka is what the check says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkaspec.contract.deviation import NEWEST, Deviation, shown
from kafkaspec.contract.history import outcome, parse, read
from kafkaspec.contract.machine import Machine
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import subsystems
from kafkaspec.judge.check import check

FOLDER = Path(__file__).parents[1] / "histories"
RELEASES = (NEWEST, "3.9.1", "3.0.0", "2.8.2")
DEVIATIONS = [(s.spec.machine, d) for s in subsystems().values() for d in s.spec.machine.deviations]
REJECTED = [(s.spec.machine, r) for s in subsystems().values() for r in s.recordings if r.verdict == "rejected"]


def name(x: Any) -> str:
    return x.file if isinstance(x, Recording) else x.id if isinstance(x, Deviation) else ""


def lines(records: list[dict[str, Any]]) -> list[bytes]:
    return [orjson.dumps({"i": i, **r}) for i, r in enumerate(records)]


@pytest.mark.parametrize(("machine", "deviation"), DEVIATIONS, ids=name)
def test_a_deviation_s_history_has_the_spec_s_answers_and_at_the_end_kafka_s(
    machine: Machine[Any], deviation: Deviation
) -> None:
    text = (FOLDER / f"{deviation.id}.history").read_text("utf-8")
    records = list(parse(text, deviation.id).records)
    calls = [{k: r[k] for k in ("op", "args")} for r in records]
    assert calls == list(parse("\n".join(deviation.history), deviation.id).records)
    assert all("result" in r or "error" in r for r in records if r["op"] != "init")
    release = next(r for r in RELEASES if deviation.shows_in(r))
    verdict = check(machine, lines(records), release=release)
    assert (verdict.verdict, list(verdict.deviations)) == ("accepted", [deviation.id])
    strict = check(machine, lines(records), strict=True, release=release)
    assert (strict.verdict, strict.step) == ("rejected", len(records) - 1)
    right, wrong = shown(machine, deviation)
    assert {k: records[-1][k] for k in ("result", "error") if k in records[-1]} == outcome(wrong.result)
    as_it_should_be = {**calls[-1], **outcome(right.result), "state": right.observation}
    assert check(machine, lines([*records[:-1], as_it_should_be]), strict=True, release=release).verdict == "accepted"


@pytest.mark.parametrize(("machine", "recording"), REJECTED, ids=name)
def test_a_rejected_recording_s_history_is_the_recording(machine: Machine[Any], recording: Recording) -> None:
    text = (FOLDER / f"{recording.file.partition('.ndjson')[0]}.history").read_text("utf-8")
    (recorded,) = read(recording.path.read_bytes(), recording.file)
    records = list(parse(text, recording.file).records)
    assert records == [{k: v for k, v in r.items() if k != "i"} for r in recorded]
    verdict = check(machine, lines(records), release=recording.release)
    assert (verdict.verdict, verdict.step) == ("rejected", recording.at)
