"""A target that does something wrong on the pipe: `python misbehaving.py WHAT [ARGUMENT...]`. Until then it greets,
shows an empty state, and answers all else by null."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

HELLO: dict[str, Any] = {"protocol": 1, "name": "Misbehaving", "version": "1", "subsystems": {"leader_epochs": {}}}


def read() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    request: dict[str, Any] = json.loads(line)
    return request


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def answer(request: dict[str, Any]) -> str:
    if request["op"] == "observe":
        return json.dumps({"i": request["i"], "state": {"entries": [], "latestEpoch": None}}) + "\n"
    return json.dumps({"i": request["i"], "result": HELLO if request["op"] == "hello" else None}) + "\n"


def well(lines: float = float("inf")) -> None:
    """Answer so many lines as it should be."""
    while lines > 0:
        say(answer(read()))
        lines -= 1


def wait() -> None:
    while True:
        time.sleep(60)


def silent() -> None:
    wait()


def hangs() -> None:
    well(4)
    wait()


def dies(status: str) -> None:
    """At once, with words on standard error."""
    print("first words", "last words", sep="\n", file=sys.stderr)
    sys.exit(int(status))


def dies_after(lines: str) -> None:
    well(int(lines))
    print("enough", file=sys.stderr)
    sys.exit(7)


def killed(by: str) -> None:
    well(2)
    os.kill(os.getpid(), int(by))


def slow(seconds: str) -> None:
    well(1)
    while True:
        request = read()
        time.sleep(float(seconds))
        say(answer(request))


def says(lines: str, what: str) -> None:
    """That, after so many good lines; a % stands for the number of the request that it answers."""
    well(int(lines))
    request = read()
    say(what.replace("%", str(request["i"])) + "\n")
    well()


def greets(what: str) -> None:
    read()
    say(json.dumps({"i": 0, "result": json.loads(what)}) + "\n")
    well()


def bytes_(hexadecimal: str) -> None:
    well(1)
    read()
    sys.stdout.buffer.write(bytes.fromhex(hexadecimal))
    sys.stdout.buffer.flush()
    wait()


def half() -> None:
    well(2)
    say(answer(read())[:9])
    wait()


def half_and_dies() -> None:
    well(2)
    say(answer(read())[:9])


def endless_line() -> None:
    well(1)
    read()
    while True:
        say("x" * 65536)


def endless_lines() -> None:
    well(1)
    read()
    while True:
        say('{"i":0,"result":null}\n' * 1000)  # at once: no timing decides what is wrong first


def unasked() -> None:
    """A line too much, after every good one has been answered for a while."""
    well(1)
    say('{"i":1,"result":null}\n')
    wait()


def twice() -> None:
    well(1)
    while True:
        say(answer(read()) * 2)


def out_of_order() -> None:
    well(1)
    while True:
        first, second = read(), read()
        say(answer(second) + answer(first))


def buffered() -> None:
    """Its answers stay in its buffer."""
    while True:
        sys.stdout.write(answer(read()))


def all_first() -> None:
    """It reads its whole input before it answers."""
    for line in sys.stdin.readlines():
        say(answer(json.loads(line)))


def banner() -> None:
    say("Starting the engine\n")
    well()


def carriage_returns() -> None:
    while True:
        say(answer(read()).replace("\n", "\r\n"))


def unknown(what: str) -> None:
    while True:
        request = read()
        if request["op"] == what:
            say(json.dumps({"i": request["i"], "unknown": what}) + "\n")
        else:
            say(answer(request))


def talkative(lines: str) -> None:
    """Standard error gets very much before each answer."""
    while True:
        request = read()
        for n in range(int(lines)):
            print(f"line {n} " + "é" * 100, file=sys.stderr)
        say(answer(request))


def stubborn(marker: str) -> None:
    """It hears SIGTERM, and stays; it stays when its input ends, too."""

    def heard(number: int, frame: object) -> None:
        with open(marker, "a") as f:
            f.write("heard\n")

    signal.signal(signal.SIGTERM, heard)
    well(1)
    read()
    wait()


def stopped() -> None:
    well(1)
    read()
    os.kill(os.getpid(), signal.SIGSTOP)


def children(pids: str, then: str) -> None:
    """Children of its own, which hold its pipes; then it goes on well, hangs or dies."""
    with open(pids, "w") as f:
        for ignore in ("", "trap '' TERM; "):
            child = subprocess.Popen(["sh", "-c", f"{ignore}while :; do sleep 1; done"])
            f.write(f"{child.pid}\n")
        f.write(f"{os.getpid()}\n")
    well(2)
    if then == "well":
        well()
    elif then == "hangs":
        wait()
    else:
        os._exit(5)


def closes_output() -> None:
    well(2)
    os.close(1)
    wait()


def closes_input() -> None:
    well(2)
    os.close(0)
    wait()


def deaf() -> None:
    """It does not read any more, and lives."""
    well(1)
    wait()


def long_answers(size: str) -> None:
    """Each answer is so long that both pipes are full while both sides want to write."""
    well(1)
    while True:
        say(json.dumps({"i": read()["i"], "result": "x" * int(size)}) + "\n")


if __name__ == "__main__":
    modes: dict[str, Callable[..., None]] = {k.rstrip("_"): v for k, v in globals().items() if callable(v)}
    modes[sys.argv[1]](*sys.argv[2:])
