"""What a simulation leaves on its nodes' disks, as directories for the audit."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafkaspec.audit.engine import audit
from kafkaspec.audit.finding import Severity
from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.simulate import RandomChoices, run
from kafkaspec.simulate.scenario import Scenario

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"


def left(scenario: Scenario, seed: int, path: Path) -> Path:
    """The directories of its nodes at the end of a run, as they stand, of one cluster."""
    disks: dict[str, SimulatedDisk] = {}

    def boot(name: str, disk: Any, clock: Any) -> Any:
        if disk is not None:
            disks[name] = disk
        return scenario.boot(name, disk, clock)

    run(replace(scenario, boot=boot), RandomChoices(scenario, seed, "mixed"))
    for name, disk in disks.items():
        own = urlsafe_b64encode(name.encode().rjust(16, b"-")).decode().rstrip("=")
        said = f"version=1\ncluster.id={CLUSTER}\nnode.id={name[1:]}\ndirectory.id={own}\n"
        files = {n: f.content for n, f in disk.names.items()} | {"meta.properties": said.encode()}
        for file, content in files.items():
            at = path / name / file
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_bytes(content)
    return path


def clauses_against(path: Path) -> set[str]:
    """What the audit finds in the logs of all nodes, read together, but for what a crash leaves."""
    seen = audit([*path.iterdir()], strict=True)
    assert seen.problems == ()
    return {f.clause for f in seen.findings if f.severity > Severity.LEFTOVER}
