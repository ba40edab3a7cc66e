"""A target without a program of its own: a child of this process, which answers over pipes as any other target does.

It starts in some milliseconds, as everything is imported already; so every mutant can be run as a target.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import IO, BinaryIO, Final

POLL_S: Final = 0.005


class ChildProcess:
    """The child, as subprocess.Popen shows one: `serve` is called in it with its ends of the pipes, and what it
    raises is written to stderr and ends it with status 1. POSIX only."""

    def __init__(self, serve: Callable[[BinaryIO, BinaryIO], None]) -> None:
        pipes = [os.pipe() for _ in range(3)]
        (theirs_in, stdin), (stdout, theirs_out), (stderr, theirs_err) = pipes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that other threads may hold locks: none does here
            self.pid = os.fork()
        if self.pid == 0:
            _child(serve, (theirs_in, theirs_out, theirs_err))
        for fd in (theirs_in, theirs_out, theirs_err):
            os.close(fd)
        self.stdin: IO[bytes] | None = os.fdopen(stdin, "wb", 0)
        self.stdout: IO[bytes] | None = os.fdopen(stdout, "rb", 0)
        self.stderr: IO[bytes] | None = os.fdopen(stderr, "rb", 0)
        with contextlib.suppress(OSError):
            os.setpgid(self.pid, self.pid)  # the child does the same: whoever comes first
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """The same, once it has ended. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() >= until:
                raise subprocess.TimeoutExpired("a forked target", timeout or 0.0)
            time.sleep(POLL_S)
        return code


def _child(serve: Callable[[BinaryIO, BinaryIO], None], ends: tuple[int, int, int]) -> None:
    """What the child does; it never returns, and leaves nothing of the parent's behind it."""
    code = 1
    try:
        gc.freeze()
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        for standard, fd in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD, 3) for fd in ends]):
            os.dup2(fd, standard)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # the pipes of other targets among them: theirs must end
        sys.stdout = sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        with os.fdopen(0, "rb", 0, closefd=False) as source, os.fdopen(1, "wb", 0, closefd=False) as sink:
            serve(source, sink)
        code = 0
    except BaseException:
        with contextlib.suppress(BaseException):
            traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(code)
