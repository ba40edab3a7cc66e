"""A target may hold answers back while more lines wait, for a second at most: else slow calls look like a hang."""

from __future__ import annotations

import importlib.util
import io
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from kafkaspec.contract.machine import Json, Refused
from kafkaspec.judge import serve
from tests.judge import toy_target

CALLS = 20
CALL_S = 0.4
"""How long a call takes by the test's clock: three take more than a second."""
TEMPLATE = Path(__file__).parents[2] / "targets/examples/python/leader_epochs.py"


class Clock:
    """The module `time`, with a clock that only calls move."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


class Writes(io.BytesIO):
    """How many answers were written each time."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: list[int] = []
        self.told = 0

    def flush(self) -> None:
        if lines := self.getvalue().count(b"\n") - self.told:
            self.counts.append(lines)
            self.told += lines


def asked(subsystem: str, op: str) -> bytes:
    requests: list[dict[str, Any]] = [{"i": 0, "op": "init", "subsystem": subsystem, "args": {}}]
    requests += [{"i": i, "op": op} for i in range(1, CALLS + 1)]
    return b"".join(orjson.dumps(r) + b"\n" for r in requests)


def served(clock: Clock) -> list[int]:
    """How many answers our own `serve` writes each time, all lines waiting from the start."""

    class Slow(toy_target.Sound):
        def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
            clock.now += CALL_S
            return super().apply(name, arguments)

    there, here = os.pipe()
    os.write(here, asked("toy", "save"))
    os.close(here)
    writes = Writes()
    with os.fdopen(there, "rb", 0) as source:
        serve.serve({"toy": (toy_target.build(), Slow())}, source, writes)
    return writes.counts


def test_serve_holds_no_answer_back_for_longer_than_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(serve, "time", clock)
    assert served(clock) == [4, *[3] * 5, 2]  # the first is that of init


def test_quick_answers_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "time", Clock())
    assert served(Clock()) == [CALLS + 1]


@pytest.mark.parametrize(("call_s", "counts"), [(CALL_S, [4, *[1] * 17]), (0.0, [CALLS + 1])])
def test_so_does_the_template(call_s: float, counts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("template", TEMPLATE)
    assert spec is not None
    assert spec.loader is not None
    template = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(template)
    clock = Clock()

    class Slow:
        def clear(self) -> None:
            clock.now += call_s

        OPERATIONS = {"clear": clear}

    chunks = [asked("slow", "clear"), b""]
    seen: list[int] = []

    held: list[str] = []

    def write(text: str, flush: bool) -> None:
        held.append(text)
        if flush:
            seen.append(len(held))
            held.clear()

    monkeypatch.setattr(template, "time", clock)
    monkeypatch.setattr(template, "os", SimpleNamespace(read=lambda fd, most: chunks.pop(0)))
    monkeypatch.setattr(template, "sys", SimpleNamespace(stdin=SimpleNamespace(fileno=lambda: 0)))
    monkeypatch.setattr(template, "print", write, raising=False)
    template.serve("Slow", "1", {"slow": Slow})
    assert seen == counts
    assert not held
