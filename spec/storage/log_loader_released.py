"""Loading a log after a stop: known deviations of released Kafka."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused, Step
from kafkaspec.spec.storage.log_loader import CLEANED, Directory, interrupted, machine
from kafkaspec.spec.storage.log_loader_trial import SWAPPED


class Elsewhere(NamedTuple):
    """A directory that is not the spec's, and the answer to the call that left it so. `doubtful`: a replacement may
    have been made whose files are not all there."""

    directory: Directory
    answer: Json
    doubtful: bool


def _stepped(directory: Directory, op: str, arguments: Mapping[str, Any]) -> Step[Directory]:
    """The step of the spec, whether the call is within the contract or not."""
    operation = machine.find(op)
    return operation.step(directory, operation.call(operation.body, directory, operation.decoded(arguments)))


def _as_listed(ghost: Any, before: Directory, op: str, arguments: Mapping[str, Any], after: Directory) -> Any:
    """The directory of a loader that renames in the order in which the file system lists the files."""
    if ghost is None and op != "crashedLoad":
        return None
    there = before if ghost is None else ghost.directory
    if op == "crashedLoad":
        step: Step[Directory] = interrupted(there, arguments["renames"], arguments["first"])
    elif op == "drop" and arguments["name"] not in there.files:
        step = Step(there)
    else:
        step = _stepped(there, op, arguments)
    doubtful = ghost is not None and (ghost.doubtful or any(n.endswith(CLEANED) for n in after.files))
    if not doubtful and step == _stepped(before, op, arguments):
        return None
    return Elsewhere(step.state, step.result, doubtful)


def _renames_as_listed(
    ghost: Any, state: Directory, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    return (result, observation) if ghost is None else (ghost.answer, machine.observe(ghost.directory))


machine.deviations += [
    Deviation(
        id="LDR-D1",
        clause="LDR-15",
        title="A crash while a log is loaded may cost a segment that was already swapped in",
        versions="3.0.0 to 4.3.0 (4.3.0 recorded; the order came with KAFKA-12520, in 3.0.0)",
        releases=">=3.0",
        condition="""a load is crashed between its renames of .swap files, and the file system does not list these in
        the order of their offsets; records are lost if one segment has its name by then, and one below it and one above
        it have not""",
        history=(
            f"init files={json.dumps(SWAPPED, separators=(',', ':'))}",
            "crashedLoad first=5 renames=3",
            "load clean=false recoveryPoint=0 logStart=0",
        ),
        cause="""The loader renames the .swap files in the order in which the file system lists them, which is no order.
        When it is started again, it takes all segments between the lowest and the highest .swap that is left for old
        ones that these replace, and removes them.""",
        effect="""All records of the segment are gone, those after it are not: the log has a hole that no later start
        fixes, and nothing warns of it. A replica that copies the log copies the hole; one that had the records keeps
        them. Three segments at once come of one whose offsets had overflowed and that was split into three;
        compaction makes one. So it takes two crashes at their moments, in a log that an old release wrote
        (KAFKA-6264).""",
        fix="Rename in the order of the offsets: what has its name is then below every .swap that is left.",
        rewrite=_renames_as_listed,
        advance=_as_listed,
        lost=lambda ghost: ghost is not None and ghost.doubtful,
    ),
]
