"""One mutant: a fault that is put into a subsystem on purpose. Which detector notices it is the matrix's matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import icontract

from kafkaspec.contract.machine import Machine, violation
from kafkaspec.contract.project import place_of
from kafkaspec.errors import ENDINGS, UserError

Layer = Literal["spec", "impl", "audit", "model"]


@dataclass(frozen=True)
class Mutant:
    """One fault. `make` gives the faulty thing: a Machine (spec), a Driver (impl, audit), or a LoadedModel or a
    subclass of the model (model)."""

    name: str
    clauses: tuple[str, ...]
    """the clauses that it breaks"""
    what: str
    """the fault, in a sentence"""
    layer: Layer
    make: Callable[[], Any]
    bug: str | None = None
    """the bug of Kafka's that it is, such as KAFKA-6568"""
    survives: str = ""
    """why nobody can notice it, if nobody can"""
    generated: bool = False
    """made from a model's graph, one of many: the first detector that kills it is the last to look"""

    def made(self) -> Any:
        """What `make` gives. Raises UserError where it fails: nobody has noticed a fault then, for there is none."""
        try:
            return self.make()
        except ENDINGS:
            raise
        except BaseException as e:
            what = f"{type(e).__name__}: {e} ({place_of(e)})"
            raise UserError(f"the mutant '{self.name}' cannot be made: {what}") from e


def _fault(layer: Layer, name: str, clauses: str, what: str, make: Callable[[], Any], bug: str | None = None) -> Mutant:
    return Mutant(name, tuple(clauses.split()), what, layer, make, bug)


of_impl = partial(_fault, "impl")
of_audit = partial(_fault, "audit")
of_spec = partial(_fault, "spec")
of_model = partial(_fault, "model")
"""A mutant of that layer: name, the clauses that it breaks apart by blanks, the fault, what makes it, the bug."""


def driver_with(driver: Callable[[], Any], **parts: Any) -> Callable[[], Any]:
    """What makes a driver with faulty parts: its attributes, of which it makes what it drives."""

    def made() -> Any:
        faulty = driver()
        for name, part in parts.items():
            setattr(faulty, name, part)
        faulty.reset({})
        return faulty

    return made


def with_fault(machine: Machine[Any], operation: str, body: Callable[..., Any]) -> Machine[Any]:
    """The machine with another body for one operation, under the same contracts."""
    op = machine.find(operation)
    function = body
    for post in op.postconditions:
        said = f"{post.clause} {post.text}"
        function = icontract.ensure(post.condition, said, error=violation(said))(function)
    faulty = replace(op, body=body, function=function)
    vars(faulty).update(hints=op.hints, annotations=op.annotations)  # called with what the sound one is called with
    return replace(machine, operations={**machine.operations, operation: faulty})


def faulty_machine(machine: Machine[Any], operation: str, body: Callable[..., Any]) -> Callable[[], Machine[Any]]:
    """What makes that machine."""
    return lambda: with_fault(machine, operation, body)
