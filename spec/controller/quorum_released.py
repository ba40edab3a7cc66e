"""What the released Kafka takes for committed when it has loaded a snapshot, for its known deviation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Outside, Refused
from kafkaspec.spec.controller.quorum import machine
from kafkaspec.spec.controller.quorum_parts.state import Controller


class Elsewhere(NamedTuple):
    """The ghost: the controller of the released Kafka while it is another than the spec's, and its answer to the last
    call, as text. `gone`: what it was asked is outside the contract in its state."""

    controller: Controller
    answer: bytes = b""
    gone: bool = False


def _one_too_far(controller: Controller, end: int) -> Controller:
    """The snapshot's end is taken for the offset of its last record."""
    return replace(controller, committed=end, stable=end, past=((end, controller.memory),))


def _gone(ghost: Elsewhere | None) -> bool:
    return ghost is not None and ghost.gone


def _advance(
    ghost: Elsewhere | None, before: Controller, op: str, arguments: Mapping[str, Any], after: Controller
) -> Elsewhere | None:
    if _gone(ghost) or (ghost is None and op != "loadSnapshot"):
        return ghost
    was = before if ghost is None else ghost.controller
    step = machine.apply(was, op, arguments, contracts=False)
    if isinstance(step, Outside):
        return Elsewhere(was, gone=True)
    controller = step.state
    if op == "loadSnapshot" and not controller.halted:
        controller = _one_too_far(controller, arguments["offset"])
    answer = orjson.dumps(step.result)
    if controller == after:  # from here on; what a call was answered may still be from another memory
        right = machine.apply(before, op, arguments, contracts=False)
        if isinstance(right, Outside) or orjson.dumps(right.result) == answer:
            return None
    return Elsewhere(controller, answer)


def _rewrite(
    ghost: Elsewhere | None,
    state: Controller,
    op: str,
    arguments: Mapping[str, Any],
    result: Json | Refused,
    observation: Json,
) -> tuple[Json | Refused, Json]:
    if ghost is None or _gone(ghost):
        return result, observation
    return orjson.loads(ghost.answer), machine.observe(ghost.controller)


machine.deviations.append(
    Deviation(
        id="QRM-D1",
        clause="QRM-31",
        title="A snapshot that was loaded counts as committed one offset too far",
        versions="4.3.0 (seen)",
        condition="""a standby loads a snapshot; until a record above the snapshot's end is committed, and for good if a
        failover came before that""",
        history=('loadSnapshot offset=10 epoch=0 records=[["version","",30]]',),
        cause="""OffsetControlManager.endLoadSnapshot takes the offset of the snapshot's id, the end of what is in it,
        for the committed and the stable offset, and for that of the snapshot of memory. Elsewhere these are offsets of
        a last record.""",
        effect="""If the batch that follows the snapshot is one record, the stable offset does not move when it is
        committed: reads at this node are without it. If the controller becomes active before another batch is
        committed, and then renounces, it goes back to the snapshot: the committed record is gone from its memory for
        good. If that record begins a metadata transaction, it cannot be applied, a fatal fault. Metrics of the last
        committed and applied offset are one too high.""",
        fix="to take the offset below the snapshot's end, as SnapshotReader.lastContainedLogOffset does",
        rewrite=_rewrite,
        initial=lambda: None,
        advance=_advance,
        lost=_gone,
        unsaid=_gone,
    )
)
