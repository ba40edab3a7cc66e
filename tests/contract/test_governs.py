"""What governs the fields that are observed is declared, of every subsystem, and JSON does not show it."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest

from kafkaspec.contract.codec import decode, encode
from kafkaspec.contract.governs import (
    answered,
    element,
    fields_of,
    governs,
    observed,
    opened,
    places,
    revealed,
    reveals,
    ungoverned,
)
from kafkaspec.contract.machine import Machine, Nothing
from kafkaspec.contract.numbers import Offset, beyond, within
from kafkaspec.contract.subsystem import subsystems
from kafkaspec.judge.protocol import schema, word
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction
from kafkaspec.spec.storage import transaction_index


class Entry(NamedTuple):
    first: Annotated[Offset, governs("TOY-1")]
    last: Offset


class Extra(TypedDict):
    size: Annotated[int, governs("TOY-6")]


@dataclass(frozen=True)
class ShownState:
    entries: Annotated[tuple[Entry, ...], governs("TOY-2", "TOY-3")]
    files: Annotated[dict[str, int | None], governs("TOY-4", keys={"*.log": ("TOY-5",), "*.lo?": ("TOY-9",)})]
    extra: Extra


@dataclass(frozen=True)
class Plain:
    entries: tuple[Entry, ...]
    files: dict[str, int | None]
    extra: Extra


def declared(hint: Any, prefix: str = "") -> set[str]:
    return {id for _, ids in places(hint, prefix) for id in ids if id.startswith(prefix)}


@pytest.mark.parametrize("name", subsystems())
def test_every_field_that_is_observed_is_governed_by_clauses_of_its_subsystem(name: str) -> None:
    machine, prefix = subsystems()[name].spec.machine, f"{subsystems()[name].prefix}-"
    known = {c.id for c in subsystems()[name].clauses}
    shown = observed(machine)
    assert machine.initial is Nothing or not list(ungoverned(shown, prefix))
    assert declared(shown, prefix) <= known
    for op in machine.operations.values():
        assert bool(op.clauses) is not op.environment
        assert declared(answered(op), prefix) <= known
        assert {*revealed(op)} <= known
        assert not {*revealed(op)} & {*op.clauses}


def test_a_type_names_no_clause_of_a_subsystem_that_there_is_not() -> None:
    specs = [s.spec.machine for s in subsystems().values()]
    prefixes = {s.prefix for s in subsystems().values()}
    named = {
        id for m in specs for hint in (observed(m), *map(answered, m.operations.values())) for id in declared(hint)
    }
    assert {id[:3] for id in named} <= prefixes


def test_clauses_of_another_subsystem_govern_nothing() -> None:
    assert list(ungoverned(AbortedTransaction, "SEG-"))
    assert not list(ungoverned(AbortedTransaction, "TXI-"))


def test_a_field_without_clauses_is_found() -> None:
    hints = typing.get_type_hints(transaction_index.Observation, include_extras=True)
    bare = {name: opened(h)[0] if name == "exists" else h for name, h in hints.items()}
    less = dataclasses.make_dataclass("Less", list(bare.items()))
    assert not list(ungoverned(transaction_index.Observation))
    assert list(ungoverned(less)) == [".exists"]


def test_the_innermost_declaration_is_of_the_part_and_what_has_none_is_of_the_whole() -> None:
    assert not list(ungoverned(ShownState))
    assert list(ungoverned(Plain)) == [".entries.last", ".files"]
    assert dict(places(ShownState)) == {
        ".entries": ("TOY-2", "TOY-3"),
        ".entries[]": ("TOY-1",),
        ".files": ("TOY-4",),
        ".files[*.log]": ("TOY-5",),
        ".files[*.lo?]": ("TOY-9",),
        ".extra.size": ("TOY-6",),
    }


def test_keys_of_a_mapping_are_told_apart_by_the_first_pattern() -> None:
    _, own = opened(fields_of(ShownState)["files"])
    assert own is not None
    assert (own.of("0.log"), own.of("0.lot"), own.of("other")) == (
        ("*.log", ("TOY-5",)),
        ("*.lo?", ("TOY-9",)),
        ("", ("TOY-4",)),
    )


def test_elements_have_the_annotations_of_their_places() -> None:
    assert opened(element(Entry, 0))[1] == governs("TOY-1")
    assert opened(element(Entry, 1))[1] is None
    assert element(tuple[int, str], 1) is str
    assert element(tuple[int, ...], 7) is int
    assert element(list, 0) is Any


def test_json_decoders_ranges_and_schemas_do_not_see_it() -> None:
    value = ShownState((Entry(1, 2),), {"0.log": 3}, {"size": 4})
    plain = Plain(value.entries, value.files, value.extra)
    assert encode(value) == encode(plain) == {"entries": [[1, 2]], "files": {"0.log": 3}, "extra": {"size": 4}}
    assert decode(ShownState, encode(value)) == value
    assert within(fields_of(Entry)["first"]) == within(Offset)
    assert list(beyond(ShownState, {"entries": [[-1, 2]], "files": {}, "extra": {"size": 1}}, "x")) == [
        "x.entries[0].first: -1 is not 0 to 2^62"
    ]
    for name in ("entries", "files", "extra"):
        assert word(fields_of(ShownState)[name]) == word(fields_of(Plain)[name])
        assert schema(fields_of(ShownState)[name], "") == schema(fields_of(Plain)[name], "")


def test_an_operation_reveals_what_it_does_not_state() -> None:
    machine: Machine[int] = Machine("toy", initial=int, show=lambda state: state)

    @machine.operation("restart", "TOY-1", kind="restart")
    @reveals("TOY-7")
    def restart(state: int) -> int:
        return state

    @machine.operation("call", "TOY-1")
    def call(state: int) -> int:
        return state

    assert machine.operations["restart"].clauses == ("TOY-1",)
    assert revealed(machine.operations["restart"]) == ("TOY-7",)
    assert revealed(machine.operations["call"]) == ()
