"""What a faulty implementation writes, audited: does the damage show in the files alone?

A subsystem whose implementation writes Kafka's files says in tests/<area>/<name>_written.py how they come to stand in
a log directory: `WRITTEN`. The implementation is walked by calls that the spec allows; what it wrote is put beside the
log that the spec says there is, and the whole is audited. What the sound implementation wrote must be found sound.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from struct import pack
from typing import Any, Final, NamedTuple

from kafkaspec.audit.engine import Audit, audit
from kafkaspec.audit.finding import Severity
from kafkaspec.contract.machine import Driver, Machine, Outside, Refused
from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.errors import ENDINGS
from kafkaspec.lockstep.walk import draw, draw_init
from kafkaspec.mutants.matrix import Detector, NotApplicable
from kafkaspec.mutants.mutant import Layer
from kafkaspec.spec.common.record_format import Batch, LogRecord, built, encode

SEEDS: Final = 12
STEPS: Final = 40
CLEAN: Final = {".kafka_cleanshutdown": b'{"version":0,"brokerEpoch":1}'}
"""The marker of a clean stop, as a file of a log directory: indexes are then trimmed, and nothing may be torn."""

META: Final = b"version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\nnode.id=1\ndirectory.id=q1NlNcK3TLyRkSHWPZ3hLQ\n"
"""A meta.properties."""


class MadeCall(NamedTuple):
    """A call that was made, and was not refused by the spec."""

    operation: str
    arguments: Mapping[str, Any]
    """by Python names"""
    result: Any


class WalkEnd(NamedTuple):
    """A walk's end: the spec's state, the implementation, and the calls that were not refused."""

    state: Any
    driver: Any
    calls: Sequence[MadeCall]
    failed: str = ""
    """how the implementation failed, if it did"""


@dataclass(frozen=True)
class DirectoryLayout:
    """How the files of a subsystem's implementation stand in log directories."""

    files: Callable[[WalkEnd], Mapping[str, bytes]]
    """path below the folder that is audited -> content"""
    operations: Sequence[str]
    """those that leave a sound log sound"""
    candidates: Mapping[str, Callable[[Any], Sequence[Any]]] = field(default_factory=dict)
    """of parameters, instead of the spec's own, those that it has for one operation alone too"""
    init: Mapping[str, Any] | None = None
    """the configuration; None: drawn"""
    last: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """calls at the end of each walk"""
    steps: int = STEPS


def one_record(offset: int, key: str | None = None, value: bytes = b"v", **of: Any) -> Batch:
    """A batch of one record, whose timestamp is its offset (ms) if nothing else is said."""
    timestamp = of.pop("timestamp", offset)
    return built(offset, [LogRecord(offset, timestamp, None if key is None else key.encode(), value)], **of)


def log_file(folder: str, base_offset: int, batches: Iterable[Batch]) -> dict[str, bytes]:
    """A segment by its paths: its .log, an offset index without an entry, a time index as of one that rolled."""
    batches = list(batches)
    largest = max(batches, key=lambda b: b.max_timestamp, default=None)
    times = b"" if largest is None else pack(">qi", largest.max_timestamp, largest.last_offset - base_offset)
    name = f"{folder}/{base_offset:020}"
    return {f"{name}.log": b"".join(map(encode, batches)), f"{name}.index": b"", f"{name}.timeindex": times}


def walked(machine: Machine[Any], driver: Driver, written: DirectoryLayout, seed: int) -> WalkEnd:
    """Drive the implementation by calls that the spec allows. One that fails is not called any more: what it wrote
    until then is what there is."""
    rng = random.Random(f"audit {seed}")
    others = {p: of for p, of in machine.candidates.items() if p.rpartition(":")[2] not in written.candidates}
    machine = replace(machine, tried={**others, **written.candidates})
    init = draw_init(machine, rng.choice) if written.init is None else dict(written.init)
    state: Any = machine.initial(**init)
    calls: list[MadeCall] = []
    made = 0

    def call(name: str, arguments: Mapping[str, Any]) -> None:
        nonlocal state, made
        step = machine.apply(state, name, arguments, contracts=False)
        if isinstance(step, Outside):
            return
        state = step.state
        made += 1
        if not isinstance(step.result, Refused):
            calls.append(MadeCall(name, arguments, step.result))
        driver.apply(name, arguments)

    failed = ""
    try:
        driver.reset(init)
        for _ in range(10 * written.steps):
            if made >= written.steps:
                break
            op = machine.find(rng.choice(written.operations))
            arguments = draw(machine, op, state, rng.choice)
            if arguments is not None:
                call(op.name, arguments)
        for name, given in written.last:
            call(name, given)
    except ENDINGS:
        raise
    except BaseException as e:  # SystemExit too, which would end us
        failed = f"{type(e).__name__}: {e}"
    return WalkEnd(state, driver, calls, failed)


def audited(files: Mapping[str, bytes]) -> Audit | None:
    """What the audit says of these files; None if there are none."""
    if not files:
        return None
    with tempfile.TemporaryDirectory(prefix="kafkaspec-") as folder:
        for name, content in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return audit([folder], strict=True)


def found(result: Audit | None) -> str:
    """The worst that an audit found, in a line; "" if all is sound."""
    if result is None or result.verdict == "sound":
        return ""
    worst = next((f for f in result.findings if f.severity is not Severity.LEFTOVER), None)
    if worst is None:
        return f"could not judge: {next(iter(result.problems), '')}"
    return f"{worst.clause}: {Path(worst.file).name}: {worst.message}"


def audit_detector(seeds: int = SEEDS) -> Detector:
    """Seeded walks of an implementation that writes Kafka's files, which are audited."""

    def look(subsystem: Subsystem, layer: Layer, thing: Any) -> str:
        written = written_of(subsystem)
        for seed in range(seeds):
            walk = walked(subsystem.spec.machine, thing, written, seed)
            said = found(audited(written.files(walk)))
            if said:
                return f"{said} (seed {seed})"
        return ""

    return Detector("audit", frozenset({"impl"}), look)


def written_of(subsystem: Subsystem) -> DirectoryLayout:
    """`WRITTEN` of tests/<area>/<name>_written.py in the checkout. Raises NotApplicable without one."""
    module = subsystem.beside("written")
    if module is None:
        raise NotApplicable
    written: DirectoryLayout = module.WRITTEN
    return written
