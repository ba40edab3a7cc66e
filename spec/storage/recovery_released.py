"""Recovery: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused, Step
from kafkaspec.spec.storage.recovery import machine, recovered_from, with_scheduled
from kafkaspec.spec.storage.recovery_parts.broker import Broker


class Elsewhere(NamedTuple):
    """A broker whose recovery point says too much, and the answer to the call that left it so. `unread`: it has started
    above a segment that was the active one, and has the zeros in its index files that were set aside for entries."""

    broker: Broker
    answer: Json | Refused
    unread: bool = False


def _called(broker: Broker, op: str, arguments: Mapping[str, Any]) -> Step[Broker]:
    operation = machine.find(op)
    return operation.step(broker, operation.call(operation.body, broker, operation.decoded(arguments)))


def _lowered(broker: Broker) -> Broker:
    """Whatever moves the log end lowers a recovery point that is above it."""
    log = broker.log
    if log is None or log.recovery_point <= log.log_end:
        return broker
    return replace(broker, log=replace(log, recovery_point=log.log_end))


def _released(broker: Broker, op: str, arguments: Mapping[str, Any]) -> Step[Broker]:
    if op == "background":
        return Step(with_scheduled(broker, within=False))
    if op == "append":
        for n in arguments["records"]:
            broker = _lowered(_called(broker, op, {**arguments, "records": [n]}).state)
        return Step(broker)
    step = _called(broker, op, arguments)
    return Step(_lowered(step.state), step.result) if op == "roll" else step


def _says_too_much(ghost: Any, before: Broker, op: str, arguments: Mapping[str, Any], after: Broker) -> Any:
    """The broker of the released Kafka; None while it is the spec's."""
    if ghost is None and op != "background":
        return None
    if ghost is not None and ghost.unread:
        return ghost
    was = before if ghost is None else ghost.broker
    step = _released(was, op, arguments)
    unread = op == "start" and not was.marker and recovered_from(was) > recovered_from(before)
    return None if step.state == after and not unread else Elsewhere(step.state, step.result, unread)


def _uncapped(
    ghost: Any, state: Broker, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    return (result, observation) if ghost is None else (ghost.answer, machine.observe(ghost.broker))


machine.deviations += [
    Deviation(
        id="REC-D1",
        clause="REC-18",
        title="A roll's flush that comes after a truncation raises the recovery point above the log end",
        versions="4.3.0 (seen)",
        condition="""a log rolls, is truncated below the new segment's base offset before the flush that the roll has
        scheduled, and the recovery point is below that offset then""",
        history=(
            "init",
            "append records=[1,1,1] leaderEpoch=0",
            "roll",
            "truncateTo offset=1",
            "background",
        ),
        cause="""The scheduled flush keeps the offset that the roll began with. UnifiedLog.flush flushes the segments
        below it, and then LocalLog.markFlushed raises the recovery point to it, without a look at the log end.""",
        effect="""The recovery point that the broker checkpoints next is above the log end. What is appended there
        later counts as flushed. If the log rolls again below that offset, and the power fails before the next
        checkpoint, a start recovers only from the newer segment on: half a batch at the end of the older one stays, and
        whoever reads there gets an error. If the power failure brings the newer segment back instead, the older one
        keeps index files that are full of zeros: cut and written again, it rolls, and that ends in a
        BufferOverflowException. What comes after such a start is not compared.""",
        fix="Raise the recovery point to the log end at most.",
        rewrite=_uncapped,
        advance=_says_too_much,
        lost=lambda ghost: ghost is not None and ghost.unread,
    ),
]
