"""The channel of failed log directories of Kafka 4.3.0, recorded: each failure is told once, in their order.

No subsystem has the class: a broker's replica manager is given a directory that failed (RMG-24), by whatever way, and a
controller with such a metadata directory stops. What its recording has to say is small enough to stand here.
Source: LogDirFailureChannel, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

RECORDING = Path(__file__).parent.parent / "recordings" / "failure-channel.ndjson"
LINES = [orjson.loads(line) for line in RECORDING.read_bytes().splitlines()]
DIRECTORIES = ("d0", "d1", "d2")
Line = dict[str, Any]


def rejected(lines: Sequence[Line]) -> int | None:
    """The first line that the channel cannot have shown: a directory that failed stays so, and is told once."""
    failed: list[str] = []
    told = 0
    for number, line in enumerate(lines):
        expected: Any = None
        directory = line["args"].get("dir")
        if directory not in (None, *DIRECTORIES):
            return number
        match line["op"]:
            case "maybeAddOfflineLogDir" if directory not in failed:
                failed.append(directory)
            case "takeNextOfflineLogDir":
                if told == len(failed):
                    return number  # it would wait
                expected, told = failed[told], told + 1
            case "hasOfflineLogDir":
                expected = directory in failed
        if line["result"] != expected or line["state"]["offline"] != [d in failed for d in DIRECTORIES]:
            return number
    return None


def altered(line: Line) -> Iterator[Line]:
    """Each value of an answer and of a state, and the directory of a call, is another one."""
    for n, shown in enumerate(line["state"]["offline"]):
        offline = [*line["state"]["offline"]]
        offline[n] = not shown
        yield {**line, "state": {"offline": offline}}
    answers: tuple[Any, ...] = (None, True, False, *DIRECTORIES)
    for answer in answers:
        if answer is not line["result"] and answer != line["result"]:
            yield {**line, "result": answer}


def test_the_recording_is_accepted() -> None:
    assert rejected(LINES) is None
    assert {line["op"] for line in LINES} == {
        "init", "maybeAddOfflineLogDir", "takeNextOfflineLogDir", "hasOfflineLogDir",
    }  # fmt: skip


def test_altered_copies_are_rejected_there() -> None:
    """All of them, at the line that was altered."""
    copies = [(n, copy) for n, line in enumerate(LINES) for copy in altered(line)]
    assert len(copies) == 31 * 8
    assert {n for n, copy in copies if rejected([*LINES[:n], copy, *LINES[n + 1 :]]) != n} == set()


def test_a_failure_that_is_told_twice_is_rejected() -> None:
    """It is in the channel already; and so is one that is told before it was there, or in another order."""
    takes = [n for n, line in enumerate(LINES) if line["op"] == "takeNextOfflineLogDir"]
    assert rejected([*LINES, LINES[takes[0]]]) == len(LINES)
    swapped = [*LINES]
    swapped[takes[0]], swapped[takes[1]] = swapped[takes[1]], swapped[takes[0]]
    assert rejected(swapped) == takes[0]
    assert rejected([LINES[0], LINES[takes[0]]]) == 1
