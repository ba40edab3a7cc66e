"""Hypothesis profiles, chosen by HYPOTHESIS_PROFILE: `test` (quick, always the same) and `deep` (many, new)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "test", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests recorded with `record_property`: shares and counts that a green test does not show."""
    told = [x for reports in terminalreporter.stats.values() for r in reports for x in _told(r)]
    for line in sorted(told):
        terminalreporter.write_line(line)


def _told(report: Any) -> Iterator[str]:
    if getattr(report, "when", "") == "call":
        for name, value in report.user_properties:
            yield f"{name}: {value} ({report.nodeid.rpartition('::')[2]})"
