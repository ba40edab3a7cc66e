"""What a target must know of a subsystem, as data: told from the spec's signatures, and from walks of it."""

from __future__ import annotations

from typing import Any

from kafkaspec.contract.codec import encode
from kafkaspec.contract.subsystem import Subsystem, components
from kafkaspec.judge.protocol import Call, Parameter, described, fields, word
from kafkaspec.judge.samples import Samples, met
from kafkaspec.lockstep.compare import ABSENT

Told = dict[str, Any]
"""An object of JSON."""


def interface(subsystem: Subsystem) -> Told:
    """Its rules and, where the judge can ask for it, its configuration, operations, records and first state, as
    `explain --json` prints them (docs/json.md)."""
    rules = [{"id": c.id, "sentence": c.sentence, "source": c.source} for c in subsystem.clauses]
    out: Told = {"subsystem": subsystem.name, "title": subsystem.title, "rules": rules}
    if subsystem.name not in components():
        return out
    d, walked = described(subsystem), met(subsystem)
    machine = subsystem.spec.machine
    first = None if d.state is Any else machine.observe(machine.initial())
    return out | {
        "configuration": [_parameter(p) for p in d.configuration],
        "operations": [_operation(c, walked) for c in d.calls],
        "state": word(d.state),
        "first": first,
        "records": [
            {
                "name": r.__name__,
                "fields": [
                    {"name": f.name, "type": word(f.hint), "needed": f.needed, "what": f.what} for f in fields(r)
                ],
            }
            for r in d.records
        ],
    }


def _parameter(p: Parameter) -> Told:
    """An argument; its default where it has one."""
    return {"name": p.name, "type": word(p.hint)} | ({} if p.default is ABSENT else {"default": encode(p.default)})


def _operation(c: Call, walked: Samples) -> Told:
    op = c.operation
    refusals = [*walked.refusals[op.name]]
    before = [refusals[0], *refusals][: len(refusals)] if refusals else []
    example = walked.examples.get(op.name)
    return {
        "name": op.name,
        "kind": op.kind,
        "what": c.what,
        "arguments": [_parameter(p) for p in c.parameters],
        "chosen": [*op.chosen],
        "askedIf": c.asked_if,
        "result": word(c.result),
        "refusals": [
            {"clause": r.clause, "error": r.error, "later": (b, r) in walked.turns[op.name]}
            for b, r in zip(before, refusals, strict=True)
        ],
        "before": None if example is None else example.before,
        "example": None if example is None else example.record,
    }
