"""Signals of processes that tests start."""

from __future__ import annotations

import signal


def heeded() -> None:
    """In a child before it begins: what whoever runs the tests ignores, as nohup does, ends it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
