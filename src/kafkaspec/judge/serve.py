"""Our own implementation, or anything else that is a `Driver`, as a target: it answers the judge's lines.

A driver that fails answers with its exception: the judge then shows by which calls.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Mapping
from typing import Any, BinaryIO

import orjson

import kafkaspec
from kafkaspec.contract.history import outcome
from kafkaspec.contract.machine import Driver, Machine
from kafkaspec.errors import ENDINGS, UserError
from kafkaspec.judge.target import PROTOCOL

Served = tuple[Machine[Any], Driver]
"""The machine says how operations and arguments are named; the driver answers. What it `offers`, if it says so, is told
in the answer to hello."""

HELD_S = 1.0
"""How long an answer may be held back while more lines wait: one that does not come is taken for a hang."""


class _Lines:
    """The lines of a pipe, and whether another is there already."""

    def __init__(self, source: BinaryIO) -> None:
        self.fd = source.fileno()
        self.rest = b""
        self.lines: list[bytes] = []

    def next(self) -> bytes | None:
        while not self.lines:
            data = os.read(self.fd, 1 << 20)
            if not data:
                last, self.rest = self.rest, b""
                return last or None
            *whole, self.rest = (self.rest + data).split(b"\n")
            self.lines = whole[::-1]
        return self.lines.pop()

    @property
    def waiting(self) -> bool:
        """Whether there is more to read, or the end."""
        return bool(self.lines) or bool(select.select([self.fd], [], [], 0)[0])


def serve(
    subsystems: Mapping[str, Served],
    source: BinaryIO,
    sink: BinaryIO,
    name: str = "kafkaspec impl",
    version: str = kafkaspec.__version__,
) -> None:
    """Answer line by line until the input ends. UserError for a line that is no request."""
    lines = _Lines(source)
    out: list[bytes] = []
    written = time.monotonic()
    current: Served | None = None
    number = 0
    try:
        while (line := lines.next()) is not None:
            number += 1
            try:
                request = orjson.loads(line)
                op, arguments = request["op"], request.get("args", {})
                i = request["i"]
            except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
                raise UserError(f"standard input:{number}: not a request of the judge's protocol") from None
            answer: dict[str, Any]
            if op == "hello":
                offered = {n: getattr(driver, "offers", {}) for n, (_, driver) in subsystems.items()}
                answer = {"result": {"protocol": PROTOCOL, "name": name, "version": version, "subsystems": offered}}
            elif op == "init":
                current = subsystems.get(request.get("subsystem"))
                answer = {"unknown": request.get("subsystem")} if current is None else _began(current, arguments)
            elif current is None:
                raise UserError(f"standard input:{number}: {op} before init")
            elif op == "observe":
                answer = {"state": current[1].observe()}
            else:
                answer = _applied(current, op, arguments)
            out.append(orjson.dumps({"i": i, **answer}, default=float))
            if not lines.waiting or len(out) >= 512 or time.monotonic() - written >= HELD_S:
                _write(out, sink)
                written = time.monotonic()
    finally:
        _write(out, sink)


def _write(lines: list[bytes], sink: BinaryIO) -> None:
    sink.writelines(line + b"\n" for line in lines)
    sink.flush()
    lines.clear()


def _began(served: Served, arguments: Mapping[str, Any]) -> dict[str, Any]:
    machine, driver = served
    driver.reset(machine.python_names(arguments))
    return {"result": None}


def _applied(served: Served, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    machine, driver = served
    op = machine.operations.get(name)
    if op is None:
        return {"unknown": name}
    try:
        return outcome(driver.apply(name, {op.parameters[t]: v for t, v in arguments.items()}))
    except ENDINGS:
        raise
    except BaseException as e:  # SystemExit too: it says more than an end
        return {"error": {"class": type(e).__name__, "message": str(e)}}
