"""The controller of a quorum: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaspec.contract.codec import encode
from kafkaspec.lockstep.exhaustive import Call, RefinementMapping
from kafkaspec.models.controller import quorum as model
from kafkaspec.spec.common.metadata_log import (
    FIRST_TRANSACTIONS,
    NO_LOG_OFFSET,
    NO_TRANSACTIONS,
    TRANSACTIONS,
    VERSION,
    Fault,
    Kind,
    Record,
)
from kafkaspec.spec.controller.quorum import machine
from kafkaspec.spec.controller.quorum_parts.state import NS_IN_MS, TASKS, Controller

SIZES = {"L": 6}
"""of the model, where the spec is walked beside it"""

SET_A, SET_B = Record(Kind.SET, "a", 1), Record(Kind.SET, "b", 2)
BROKER = Record(Kind.REGISTER, "", 1)
LEVEL = Record(Kind.VERSION, "", TRANSACTIONS)
BEGIN, END, ABORT, NO_OP, UNKNOWN = (
    Record(kind) for kind in (Kind.BEGIN, Kind.END, Kind.ABORT, Kind.NO_OP, Kind.UNKNOWN)
)


def _json(values: Sequence[Any]) -> Any:
    return lambda state: encode(list(values))


def _epochs(state: Controller) -> list[int]:
    """The next ones, mostly."""
    return [state.epoch + 1, state.epoch + 2, max(state.epoch, 0)]


def _next_number(state: Controller) -> Record:
    """A value that was not set yet."""
    return Record(Kind.SET, "ab"[state.calls % 2], state.calls % 1000)


def _written(state: Controller) -> Any:
    """A data record, mostly; transactions that end; one that stays open; what cannot be applied."""
    new = _next_number(state)
    if state.begun != NO_LOG_OFFSET:
        return encode([[new], [END], [], [new, BROKER], [ABORT], [BEGIN]] if state.sent else [[new], [END]])
    return encode(
        [
            [new],
            [],
            [new, BROKER],
            [new, new._replace(key="c"), BROKER, NO_OP],
            [BEGIN, new, END],
            [new, BEGIN, SET_B, ABORT, BROKER],
            [BEGIN, new],
            [BEGIN],
            [LEVEL],
            *([[UNKNOWN], [new, END]] if state.calls % 16 == 15 else []),
        ]
    )


def _replicated(state: Controller) -> Any:
    new = Record(Kind.SET, "ab"[state.end % 2], state.end % 1000)
    seed = [LEVEL] if VERSION not in dict(state.memory) else [new]
    inside = (
        [[[END]], [[ABORT, new]], [[new, END]]] if state.begun != NO_LOG_OFFSET else [[[BEGIN, new]], [[BEGIN], [new]]]
    )
    return encode([[seed], [[new], [BROKER, new]], *inside, *([[[UNKNOWN]], [[END]]] if state.end % 16 == 15 else [])])


def _passing(state: Controller) -> list[int]:
    """Until the next task, or until some; hardly anything."""
    left = [-(-(t.deadline_ns - state.now) // NS_IN_MS) for t in state.scheduled]
    return [*left[:2], *left[:1], max([1, *left]), 1, *left[2:]]


machine.candidates |= {
    "init:max_records_per_batch": lambda state: [2, 1, 3, 1000, 1],
    "init:bootstrap_level": lambda state: [TRANSACTIONS, NO_TRANSACTIONS, FIRST_TRANSACTIONS],
    "init:elr": lambda state: [False, True],
    "init:max_idle_interval_ms": lambda state: [500, None, 7, 60_000],
    "ms": _passing,
    "key": lambda state: ["a", "b", "broker 1", VERSION],
    "records": _written,
    "late:records": _json([[SET_A], []]),
    "loadSnapshot:records": _json([*[[LEVEL, SET_A, BROKER], [LEVEL], []] * 3, [BEGIN, LEVEL]]),
    "atomic": lambda state: [True, False],
    "fault": lambda state: [*[Fault.NONE.value] * 8, *(f.value for f in Fault if f != Fault.NONE)],
    "refused_at": lambda state: [*[-1] * 8, 0, 1, 256],
    "refused": lambda state: [False, False, False, True],
    "known": lambda state: [True, False],
    "count": lambda state: [1, max(1, len(state.sent)), 2],
    "epoch": _epochs,
    "lose:epoch": lambda state: [state.epoch + 1, 0, state.epoch, 0, 0] if state.active else [state.epoch + 1, 0],
    "loadSnapshot:offset": lambda state: [state.end + 1, *[0] * 7] if state.active else [state.end + 1, state.end, 0],
    "replicate:epoch": lambda state: [state.epoch, max(state.committed_epoch, 0)],
    "loadSnapshot:epoch": lambda state: [state.epoch],
    "batches": _replicated,
    "queued": _json(
        [[], [{"key": "a", "records": [SET_A]}], [{"key": VERSION, "records": []}, {"key": "a", "records": [SET_B]}]]
    ),
}


def to_model(state: Controller) -> dict[str, Any] | None:
    """Offsets are numbers of records; a controller that halted has nothing. A transaction that was given up stays open
    where it began, also behind the end of a log that was cut off since (QRM-22)."""
    if state.halted:
        return {
            "active": False,
            "handed": 0,
            "known": 0,
            "stable": 0,
            "written": 0,
            "open": None,
            "waiting": set(),
            "scheduled": False,
            "halted": True,
        }
    if max(state.end, state.committed + 1, state.begun) > SIZES["L"]:
        return None
    return {
        "active": state.active,
        "handed": state.handed,
        "known": state.committed + 1,
        "stable": state.stable + 1,
        "written": state.end if state.active else state.handed,
        "open": None if state.begun == NO_LOG_OFFSET else state.begun,
        "waiting": {w.offset + 1 for w in state.purgatory},
        "scheduled": {t.name for t in state.scheduled} == {*TASKS},
        "halted": False,
    }


def calls(state: Controller, action: str, arguments: Mapping[str, Any]) -> list[Call] | None:
    """The calls that an action of the model stands for."""

    def replicated(record: Record) -> list[Call]:
        return [("replicate", {"epoch": state.epoch, "batches": encode([[record]])})]

    match action:
        case "lead":
            cut_off: list[Call] = [("replicate", {"epoch": state.epoch, "batches": []})] if state.sent else []
            return [*cut_off, ("lead", {"epoch": state.epoch + 1})]
        case "write":
            return [("write", {"key": "a", "records": encode([SET_A])})]
        case "commit":
            ends = [b.last + 1 for b in state.sent if state.active]
            return [("commit", {"count": ends.index(arguments["n"]) + 1})] if arguments["n"] in ends else None
        case "run_task":
            return [("advance", {"ms": max(TASKS.values()) // NS_IN_MS + 1})]
        case "renounce":
            return [("lose", {"epoch": state.epoch + 1})]
        case "replay":
            kind = arguments["kind"]
            if state.handed == SIZES["L"] or (kind != model.Kind.DATA and VERSION not in dict(state.memory)):
                return None
            if kind == model.Kind.DATA:
                return replicated(SET_A if VERSION in dict(state.memory) else LEVEL)
            return replicated({model.Kind.BEGIN: BEGIN, model.Kind.END: END, model.Kind.ABORT: ABORT}[kind])
    return None


REFINEMENTS = (RefinementMapping(model.Member, SIZES, to_model, calls, init={"max_idle_interval_ms": 500}),)
