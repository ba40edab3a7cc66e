"""Targets of tests as children of this process: their modules are imported already, so they start in milliseconds."""

from __future__ import annotations

import shlex
from typing import BinaryIO

import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.judge.child import ChildProcess
from kafkaspec.judge.serve import Served, serve
from kafkaspec.judge.target import Process, Target
from tests.judge import toy_target


def served(words: list[str]) -> dict[str, Served] | None:
    """What a command would serve, where it is the toy's or our own."""
    match words[1:]:
        case ["-m", toy_target.__name__, fault]:
            return toy_target.served(fault)
        case ["-m", "kafkaspec", "serve", name]:
            (driver,) = (p.driver for p in find(name).pairs() if p.layer == "impl")
            return {name: (find(name).spec.machine, driver())}
    return None


def fork_targets(patch: pytest.MonkeyPatch) -> None:
    """From now on targets whose commands are known are forked; others are started as they are."""
    start = Target._started

    def started(target: Target) -> Process:
        if served(words := shlex.split(target.command)) is None:
            return start(target)

        def answer(source: BinaryIO, sink: BinaryIO) -> None:
            serve(served(words) or {}, source, sink, "toy", "1.0")

        return ChildProcess(answer)

    patch.setattr(Target, "_started", started)
