"""A target: somebody else's implementation in a process of its own, asked line by line over a pipe.

The judge never waits for one answer before it asks the next: `send` queues lines, `receive` gives the answers in order,
and both directions move at once, so that neither side can block the other. Whatever a target does wrong on this level
is a `TargetTrouble` with a name, after a bounded time; its process group is ended and its last words are kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Final, NoReturn, Protocol

import orjson

from kafkaspec.contract.machine import Json
from kafkaspec.judge.tokens import Tokens

PROTOCOL: Final = 1
"""The version of the protocol: docs, Protocol."""

TIMEOUT_S = 10.0
"""How long a target may take for one answer."""
START_S = 60.0
"""How long it may take for the first one: a virtual machine starts, classes are loaded."""
SLOW = 6.0
"""A target is too slow if what it was sent at once takes longer than this many timeouts."""
END_S = 2.0
"""How long it has to end after its input is closed, and again after SIGTERM."""
MAX_LINE = 64 << 20
"""Bytes of an answer."""
STDERR_LINES = 20
PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031


class TargetTrouble(Exception):
    """The target cannot be judged any further. `kind` is one of KINDS; `stderr` has its last lines."""

    KINDS = (
        "cannot start",
        "hangs",
        "slow",
        "died",
        "garbage",
        "half a line",
        "too much",
        "protocol version",
        "unknown subsystem",
        "unknown operation",
    )

    def __init__(self, kind: str, what: str, stderr: Sequence[str] = ()) -> None:
        super().__init__(f"the target {_verb(kind)}: {what}")
        assert kind in self.KINDS, kind
        self.kind = kind
        self.what = what
        self.stderr = tuple(stderr)

    def __reduce__(self) -> tuple[type[TargetTrouble], tuple[str, str, tuple[str, ...]]]:
        return TargetTrouble, (self.kind, self.what, self.stderr)

    def held_back(self) -> TargetTrouble:
        """What a hang is where each answer comes in time once it alone is asked for."""
        now_and_then = "it holds answers back, or is stuck now and then"
        what = f"{self.what}, though each came when it alone was asked for: {now_and_then}"
        return TargetTrouble("slow", what, self.stderr)

    def told(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"kind": self.kind, "what": self.what, "stderr": list(self.stderr)}


def _verb(kind: str) -> str:
    return {
        "slow": "is too slow",
        "garbage": "talks garbage",
        "half a line": "stops within a line",
        "too much": "says too much",
        "protocol version": "speaks another protocol",
        "unknown subsystem": "does not know a subsystem",
        "unknown operation": "does not know an operation",
    }.get(kind, kind)


Values = Mapping[str, Mapping[str, Sequence[Json]]]
"""operation -> argument -> values, all as in a line of the protocol"""


@dataclass(frozen=True)
class Hello:
    """Who the target says it is, and what it offers."""

    name: str
    version: str
    subsystems: Mapping[str, frozenset[str] | None]
    """subsystem -> the operations that may be called; None for all"""
    values: Mapping[str, Values] = field(default_factory=dict)
    """subsystem -> the only values that some arguments may have"""


class Process(Protocol):
    """What a target needs of its process: what subprocess.Popen has. It leads a process group of its own, and its pipes
    are not buffered."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...


@dataclass
class Target:
    """A running target; a context manager that ends it. `command` is split as a shell would, but no shell is run.
    `process`: one that runs already, whatever the command is."""

    command: str
    timeout_s: float = TIMEOUT_S
    process: Process | None = None
    hello: Hello = field(init=False)
    sent: int = field(default=0, init=False)
    """lines that were sent"""
    tokens: Tokens | None = field(default=None, init=False)
    """of the subsystem that is judged, where it has numbers that the target chooses"""

    def __post_init__(self) -> None:
        self._out = bytearray()
        self._in = bytearray()
        self._lines: deque[bytes] = deque()
        self._early: deque[bytes] = deque()
        """answers that had to be read before a line could be sent"""
        self._answered = 0
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._stderr_part = b""
        self._process: Process = self.process or self._started()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin = self._process.stdin.fileno()
        self._stdout = self._process.stdout.fileno()
        self._stderr_fd = self._process.stderr.fileno()
        self._selector = selectors.DefaultSelector()
        for fd in (self._stdin, self._stdout, self._stderr_fd):
            os.set_blocking(fd, False)
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, _F_SETPIPE_SZ, PIPE_BYTES)
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._selector.register(self._stderr_fd, selectors.EVENT_READ)
        self._writing = False
        self._ended = False
        self._broken = False
        self._trouble: TargetTrouble | None = None
        try:
            self.hello = self._greet()
        except BaseException:
            self.close()
            raise

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            words = shlex.split(self.command)
        except ValueError as e:
            raise TargetTrouble("cannot start", f"{self.command}: {e}") from None
        if not words:
            raise TargetTrouble("cannot start", "the command is empty")
        try:
            pipe = subprocess.PIPE
            return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, bufsize=0)
        except OSError as e:
            raise TargetTrouble("cannot start", f"{words[0]}: {(e.strerror or str(e)).lower()}") from None
        except ValueError as e:
            raise TargetTrouble("cannot start", f"{words[0]}: {e}") from None

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what is said

    def send(self, lines: Sequence[bytes], right: Sequence[Any] = ()) -> None:
        """Queue lines and pass on what the pipe takes at once. TargetTrouble if there was some before. `right`: the
        right answers, as far as they are results."""
        if self._trouble is not None:
            raise self._trouble
        for n, line in enumerate(lines):
            if self.tokens is not None:
                line = self._in_its_numbers(self.tokens, line, right[n] if right else None)
            self._out += line
            self._out += b"\n"
            self.sent += 1
        self._write()

    def _in_its_numbers(self, tokens: Tokens, line: bytes, right: Any) -> bytes:
        told = tokens.asked(line, right)
        if told is None:
            self._write()
            self._early += map(tokens.answered, self._received(self.sent - self._answered))
            told = tokens.asked(line, right)
        return line if told is None else told

    def receive(self, count: int) -> list[bytes]:
        """The next `count` answers, as they were written, but for numbers that the target chooses. TargetTrouble if
        they do not come."""
        early = min(count, len(self._early))
        lines = self._received(count - early)
        return (
            lines
            if self.tokens is None
            else [*(self._early.popleft() for _ in range(early)), *map(self.tokens.answered, lines)]
        )

    def _received(self, count: int) -> list[bytes]:
        if self._trouble is not None:
            raise self._trouble
        lines = self._lines
        now = time.monotonic()
        answer_by, all_by = now + self.timeout_s, now + SLOW * self.timeout_s
        self._pump(0.0)
        while len(lines) < count:
            if self._ended:
                self._died()
            had = len(lines)
            now = time.monotonic()
            if now >= answer_by:
                self._hangs()
            if now >= all_by:
                what = f"{had:,} of {count:,} answers in {SLOW * self.timeout_s:g} s"
                self._fail("slow", what)
            self._pump(min(answer_by, all_by) - now)
            if len(lines) > had:
                answer_by = time.monotonic() + self.timeout_s
        self._answered += count
        return [lines.popleft() for _ in range(count)]

    def answer(self, line: bytes, number: int) -> dict[str, Any]:
        """An answer, read: an object with the number of its request, and a result, error, state or unknown."""
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            self._fail("garbage", f"not JSON: {_shown(line)}")
        if not isinstance(value, dict):
            self._fail("garbage", f"not an object: {_shown(line)}")
        if value.get("i") != number or isinstance(value.get("i"), bool):
            self._fail("garbage", f'an answer with "i":{number} expected: {_shown(line)}')
        said = value.keys() - {"i"}
        if len(said) != 1 or not said <= {"result", "error", "state", "unknown"}:
            self._fail("garbage", f"one of result, error, state, unknown expected: {_shown(line)}")
        if "error" in value:
            error = value["error"]
            fine = isinstance(error, dict) and error.keys() <= {"class", "message"}
            if not fine or not all(isinstance(v, str) for v in error.values()):
                self._fail("garbage", f'an error is {{"class": text, "message": text}}: {_shown(line)}')
        return value

    def left(self) -> list[bytes]:
        """Answers that came and were not received: what there is of them when the target is in trouble."""
        return [*self._early, *self._lines]

    def quiet(self) -> None:
        """TargetTrouble if the target has said more than it was asked."""
        if self._answered == self.sent and not self._ended:
            self._pump(0.0)
            if self._lines or self._in:
                self._fail("too much", f"nothing was asked: {_shown(self._lines[0] if self._lines else self._in)}")

    def _greet(self) -> Hello:
        patience, self.timeout_s = self.timeout_s, max(self.timeout_s, START_S if self.timeout_s >= TIMEOUT_S else 0)
        self.send([orjson.dumps({"i": 0, "op": "hello", "args": {"protocol": PROTOCOL}})])
        (line,) = self.receive(1)
        said = self.answer(line, 0).get("result")
        self.timeout_s = patience
        if not isinstance(said, dict):
            self._fail("garbage", f"the answer to hello has no object as result: {_shown(line)}")
        if said.get("protocol") != PROTOCOL:
            spoken = orjson.dumps(said.get("protocol")).decode()
            self._fail("protocol version", f"{spoken}, this judge speaks {PROTOCOL}")
        offered = said.get("subsystems")
        if not isinstance(offered, dict) or not all(isinstance(v, dict) for v in offered.values()):
            self._fail("garbage", f"hello: subsystems is an object of objects: {_shown(line)}")
        subsystems: dict[str, frozenset[str] | None] = {}
        values: dict[str, Values] = {}
        for name, about in offered.items():
            operations = about.get("operations")
            if operations is not None and not (
                isinstance(operations, list) and all(isinstance(o, str) for o in operations)
            ):
                self._fail("garbage", f"hello: operations of {name} is a list of names: {_shown(line)}")
            subsystems[name] = None if operations is None else frozenset(operations)
            values[name] = only = about.get("values", {})
            if not isinstance(only, dict) or not all(
                isinstance(of, dict) and all(isinstance(v, list) and v for v in of.values()) for of in only.values()
            ):
                self._fail("garbage", f"hello: values of {name} has a list of values for each argument: {_shown(line)}")
        return Hello(str(said.get("name", "")) or "unnamed", str(said.get("version", "")), subsystems, values)

    # ---- the pipes

    def _write(self) -> None:
        if self._out and not self._broken:
            try:
                done = os.write(self._stdin, self._out)
                del self._out[:done]
            except BlockingIOError:
                pass
            except OSError:  # it does not read any more; what it answered already may still come
                self._broken = True
        wanted = bool(self._out) and not self._broken
        if wanted and not self._writing:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        elif self._writing and not wanted:
            self._selector.unregister(self._stdin)
        self._writing = wanted

    def _pump(self, seconds: float) -> None:
        """Move what can be moved, waiting so long for the first."""
        for key, _ in self._selector.select(max(seconds, 0.0)):
            if key.fd == self._stdin:
                self._write()
                continue
            try:
                data = os.read(key.fd, PIPE_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if key.fd == self._stderr_fd:
                self._said(data)
            elif data:
                self._heard(data)
            else:
                self._ended = True
            if not data:
                self._selector.unregister(key.fd)

    def _heard(self, data: bytes) -> None:
        if b"\n" not in data:
            self._in += data
        else:
            *lines, rest = (self._in + data if self._in else data).split(b"\n")
            self._lines.extend(map(bytes, lines))
            self._in = bytearray(rest)
        if len(self._in) > MAX_LINE:
            self._fail("too much", f"a line of more than {MAX_LINE >> 20} MiB: {_shown(self._in)}")
        if len(self._lines) > self.sent - self._answered:
            self._looked_through()
            self._fail("too much", f"nothing was asked: {_shown(self._lines[self.sent - self._answered])}")

    def _said(self, data: bytes) -> None:
        *lines, rest = (self._stderr_part + data).split(b"\n")
        self._stderr.extend(line.decode("utf-8", "replace").rstrip()[:500] for line in lines[-STDERR_LINES:])
        self._stderr_part = rest[-4096:]

    # ---- the end

    def _hangs(self) -> NoReturn:
        if self._process.poll() is not None:  # something that it started still holds its output
            self._died()
        self._looked_through()
        if self._in:
            self._fail("half a line", f"no end of it in {self.timeout_s:g} s: {_shown(self._in)}")
        asked = self._answered + len(self._lines)
        self._fail("hangs", f"no answer to line {asked} in {self.timeout_s:g} s (does it flush what it writes?)")

    def _looked_through(self) -> None:
        """What came says better what is wrong than what did not come: TargetTrouble if a line of it is garbage."""
        for line in self._lines:
            try:
                wrong = "" if isinstance(orjson.loads(line), dict) else "not an object"
            except orjson.JSONDecodeError:
                wrong = "not JSON"
            if wrong:
                self._fail("garbage", f"{wrong}: {_shown(line)}")

    def _died(self) -> NoReturn:
        self._looked_through()
        asked = self._answered + len(self._lines)
        try:
            code: int | None = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            code = None
        if code is None:
            how = "closed its output"
        elif code < 0:
            how = f"ended by {_signal(-code)}"
        else:
            how = f"exit status {code}"
        half = f", within a line: {_shown(self._in)}" if self._in else ""
        self._fail("died", f"{how} before it answered line {asked}{half}")

    def _fail(self, kind: str, what: str) -> NoReturn:
        self.close()
        self._trouble = TargetTrouble(kind, what, tuple(self._stderr))
        raise self._trouble

    def close(self) -> None:
        """End it: its input is closed; who does not go then is told to, with all its children."""
        if self._process.stdin is not None and self._process.stdin.closed:
            return
        self._selector.close()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        gone = self._drained(END_S if not self._out and self._answered == self.sent else 0.0)
        for how in (signal.SIGTERM, signal.SIGKILL):
            if not gone or how is signal.SIGKILL:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, how)
                gone = self._drained(END_S)
        self._process.stdout.close()
        self._process.stderr.close()

    def _drained(self, seconds: float) -> bool:
        """Whether the process ends in that time; what it still says is read, so that it can."""
        until = time.monotonic() + seconds
        while True:
            for fd in (self._stdout, self._stderr_fd):
                with contextlib.suppress(OSError):
                    data = os.read(fd, PIPE_BYTES)
                    if fd == self._stderr_fd:
                        self._said(data)
            if self._process.poll() is not None:
                with contextlib.suppress(OSError):
                    self._said(os.read(self._stderr_fd, PIPE_BYTES))
                if self._stderr_part:
                    self._said(b"\n")
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(0.005)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _shown(line: bytes | bytearray) -> str:
    text = bytes(line[:200]).decode("utf-8", "replace")
    return repr(text) + ("…" if len(line) > 200 else "")
