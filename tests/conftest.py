"""Hypothesis profiles, chosen by HYPOTHESIS_PROFILE: `test` (quick, always the same), `deep` (many, new), and
`exercised` (few, always the same, for tests that run under many faults).

With `--passed FILE` a long run goes on where it was stopped: what passed with the code as it is now is noted in the
file, and is not run again.
"""

from __future__ import annotations

import gc
import hashlib
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "test",
    max_examples=50,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "exercised",
    max_examples=20,
    stateful_step_count=15,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
settings.register_profile("deep", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
gc.set_threshold(100_000, 20)  # modules and tests are many and stay: looking for cycles among them costs a twentieth
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))


PASSED = pytest.StashKey[list[str]]()
"""what is not run again, as it was known at the start"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--passed", type=Path, help="do not run what passed with this code, as noted in this file")


def code() -> str:
    """What the outcome of a test follows from: the texts that git knows, changed or not, and the profile."""

    def git(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=Path(__file__).parent, capture_output=True, check=True).stdout

    texts = git("rev-parse", "HEAD^{tree}") + git("diff", "HEAD")
    return hashlib.blake2b(texts + os.environ.get("HYPOTHESIS_PROFILE", "").encode(), digest_size=12).hexdigest()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Of a test's cases marked `sampled(n)` the first and each n-th after it stay, the others are deep; that is known
    before the marks are looked at. Of those that run, the ones marked `first` begin; what passed does not run."""
    met: Counter[str] = Counter()
    for item in items:
        if (sampled := item.get_closest_marker("sampled")) is not None:
            test = item.nodeid.partition("[")[0]
            if met[test] % sampled.args[0]:
                item.add_marker("deep")
            met[test] += 1
    yield
    items.sort(key=lambda item: item.get_closest_marker("first") is None)
    passed = set(config.stash.get(PASSED, ()))
    before = [item for item in items if item.nodeid in passed]
    if before:
        config.hook.pytest_deselected(items=before)
        items[:] = [item for item in items if item.nodeid not in passed]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """All processes leave out the same tests, also one that begins later in place of one that died."""
    node.workerinput["passed"] = node.config.stash.get(PASSED, [])


def _lines(file: Path) -> list[str]:
    return file.read_text("utf-8").splitlines() if file.is_file() else []


class PassedNotes:
    """Notes what passes. Of several processes only the one that hears of all tests does."""

    def __init__(self, file: Path) -> None:
        self.file, self.code = file, code()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            with self.file.open("a", encoding="utf-8") as f:
                f.write(f"{self.code} {report.nodeid}\n")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background job: what tests start would too
        signal.signal(signal.SIGINT, signal.default_int_handler)
    file: Path | None = config.getoption("--passed")
    told: dict[str, Any] | None = getattr(config, "workerinput", None)
    if told is not None:
        config.stash[PASSED] = told["passed"]
    elif file is not None:
        head = f"{code()} "
        config.stash[PASSED] = [line.removeprefix(head) for line in _lines(file) if line.startswith(head)]
        config.pluginmanager.register(PassedNotes(file))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests recorded with `record_property`: shares and counts that a green test does not show."""
    told = [x for reports in terminalreporter.stats.values() for r in reports for x in _told(r)]
    for line in sorted(told):
        terminalreporter.write_line(line)


def _told(report: Any) -> Iterator[str]:
    if getattr(report, "when", "") == "call":
        for name, value in report.user_properties:
            yield f"{name}: {value} ({report.nodeid.rpartition('::')[2]})"
