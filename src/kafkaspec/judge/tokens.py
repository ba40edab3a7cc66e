"""Numbers that a target chooses by itself, such as the guard of a verification: only which of them are the same counts.

The spec's are 1, 2, 3, and so on. Where a target answers another one, it stands for the spec's from then on, to the end
of the history: it is replaced in what is answered, and given back in what is sent.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from kafkaspec.contract.machine import Machine
from kafkaspec.contract.numbers import opaque

STRANGE: Final = 1 << 30
"""Above it are numbers that stand for none of the spec's, where the target's own stand for another."""
_OPERATION: Final = re.compile(rb'"op"\s*:\s*"([^"\\]*)"')


@dataclass
class _OfHistory:
    """The numbers of one history."""

    ours: dict[int, int] = field(default_factory=dict)
    theirs: dict[int, int] = field(default_factory=dict)
    due: int = 0
    """calls that may hand one out, and are not answered"""

    def known(self, number: int, expected: Any) -> int:
        """Ours for a number that was answered where `expected` was. A new one stands for what was expected, if no other
        does; else it is none of ours."""
        if number not in self.ours:
            fits = type(expected) is int and expected not in self.theirs
            other = number if number not in self.theirs else STRANGE + len(self.ours)
            self.ours[number] = expected if fits else other
            self.theirs[self.ours[number]] = number
        return self.ours[number]


class Tokens:
    """The opaque numbers of a machine's operations, in the lines of one connection or one trace."""

    def __init__(self, machine: Machine[Any]) -> None:
        self.gives: dict[bytes, int] = {}
        """operation -> the number that says that none is handed out"""
        self.takes: dict[bytes, dict[str, int]] = {}
        """operation -> argument -> the number that stands for none"""
        for op in machine.operations.values():
            handed = opaque(op.result_annotation)
            if handed is not None:
                self.gives[op.name.encode()] = handed.none
            taken = {t: o.none for t, p in op.parameters.items() if (o := opaque(op.annotations.get(p))) is not None}
            if taken:
                self.takes[op.name.encode()] = taken
        self.history = _OfHistory()
        self.pending: deque[tuple[_OfHistory, int, Any] | None] = deque()
        """of each line that was asked: what a number in its answer is compared with"""

    def __bool__(self) -> bool:
        return bool(self.gives)

    def _operation(self, line: bytes) -> bytes:
        found = _OPERATION.search(line)
        return b"" if found is None else found[1]

    def _given(self, op: bytes, args: Any, numbers: dict[int, int]) -> bool:
        """Replace the numbers among the arguments. Whether one is another now."""
        changed = False
        for name, none in self.takes[op].items():
            value = args.get(name) if isinstance(args, dict) else None
            if type(value) is int and value != none and numbers.get(value, value) != value:
                args[name], changed = numbers[value], True
        return changed

    # ---- one connection

    def asked(self, line: bytes, expected: Any = None) -> bytes | None:
        """A line as the target understands it; None if answers must be read first. `expected`: the right answer."""
        op = self._operation(line)
        if op == b"init":
            self.history = _OfHistory()
        if op in self.takes:
            record = orjson.loads(line)
            given = {record["args"].get(name, none) for name, none in self.takes[op].items()}
            if self.history.due and not given <= {*self.history.theirs, *self.takes[op].values()}:
                return None
            if self._given(op, record["args"], self.history.theirs):
                line = orjson.dumps(record)
        if op in self.gives:
            self.history.due += 1
        self.pending.append((self.history, self.gives[op], expected) if op in self.gives else None)
        return line

    def answered(self, line: bytes) -> bytes:
        """The answer to the first line that was asked and not answered, with our numbers."""
        waiting = self.pending.popleft() if self.pending else None
        if waiting is None:
            return line
        history, none, expected = waiting
        history.due -= 1
        try:
            answer = orjson.loads(line)
        except orjson.JSONDecodeError:
            return line
        number = answer.get("result") if isinstance(answer, dict) else None
        if type(number) is not int or number == none or expected == none:
            return line
        ours = history.known(number, expected)
        return line if ours == number else orjson.dumps({**answer, "result": ours})

    # ---- one trace

    def recorded(self, record: Any, answer: Callable[[], Any]) -> None:
        """Put our numbers into a line of a trace. `answer` tells the right one."""
        op = record.get("op") if isinstance(record, dict) else None
        if op == "init":
            self.history = _OfHistory()
        name = op.encode() if isinstance(op, str) else b""
        if name in self.takes:
            self._given(name, record.get("args"), self.history.ours)
        number = record.get("result") if name in self.gives else None
        if type(number) is int and number != self.gives[name]:
            expected = answer()
            if expected != self.gives[name]:
                record["result"] = self.history.known(number, expected)

    def concerns(self, op: Any) -> bool:
        """Whether lines of that operation may have such numbers, or begin a history."""
        return isinstance(op, str) and (op == "init" or op.encode() in self.gives or op.encode() in self.takes)
