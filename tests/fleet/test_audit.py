"""An audit on Spark says what one process says, to the letter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkaspec import report
from kafkaspec.audit.engine import audit
from kafkaspec.audit.recorded import recorded
from kafkaspec.fleet.audit import on
from tests.fleet.test_spark import spark  # noqa: F401


def test_spark_and_one_process_agree_exactly(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    names = ("single-basic/nodes-after-clean-stop", "compaction-retention/node-after-sigkill-1")
    for r in (r for r in recorded() if r.name in names):
        with r.unpacked() as directories:
            log = directories[0] / ("ledger-1" if "basic" in r.name else "users-0")
            first = min(f for f in log.glob("*.log") if f.stat().st_size > 200)
            data = bytearray(first.read_bytes())
            data[150] ^= 4
            first.write_bytes(data)
            unread = max(log.glob("*.log"))
            unread.unlink()
            unread.mkdir()  # a folder with the name of a segment is none
            here, there = audit(directories), audit(directories, fan=on(spark))
            assert report.to_json(here) == report.to_json(there)
            assert here.verdict == "unsound"
