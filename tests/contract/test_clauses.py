"""Clauses in docstrings: the sentence and its source belong together, and a clause is stated once."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from kafkaspec.contract import clauses
from kafkaspec.contract.clauses import (
    A_FORMAT,
    A_QUESTION,
    AT_REST,
    FORMS,
    ONE_CALL,
    Use,
    clause,
    find,
    not_modelled,
    states,
)

SOURCE = "A class, Kafka 4.3.0"


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests register is gone after them."""
    monkeypatch.setattr(clauses, "_clauses", {})
    monkeypatch.setattr(clauses, "_uses", {})


def test_a_paragraph_of_the_docstring_is_the_sentence() -> None:
    @states("CTR-1", "CTR-2", source=SOURCE, without=A_QUESTION)
    def rule() -> None:
        """What it is.

        CTR-1: A sentence that goes on over the end of a line: as long as
        the paragraph does.

        CTR-2: Another one.
        """

    assert find("CTR-1").sentence == "A sentence that goes on over the end of a line: as long as the paragraph does."
    assert find("CTR-2").sentence == "Another one."
    assert (find("CTR-1").source, find("CTR-1").module) == (SOURCE, __name__)
    assert find("CTR-2").without == A_QUESTION
    assert rule.__doc__ is not None
    assert rule.__clauses__ == ("CTR-1", "CTR-2")  # type: ignore[attr-defined]


def test_clauses_of_different_sources_are_stacked() -> None:
    @states("CTR-1", source="one")
    @states("CTR-2", source="two", without=AT_REST)
    @states("CTR-9")
    def rule() -> None:
        """CTR-1: The first.

        CTR-2: The second.
        """

    assert (find("CTR-1").source, find("CTR-2").source) == ("one", "two")
    assert (find("CTR-1").without, find("CTR-2").without) == ({}, AT_REST)
    assert rule.__clauses__ == ("CTR-1", "CTR-2", "CTR-9")  # type: ignore[attr-defined]
    assert [c.id for c in clauses.all_clauses("CTR")] == ["CTR-1", "CTR-2"]


def test_the_source_stands_behind_the_sentence() -> None:
    @states()
    def rule() -> None:
        """What it is.

        CTR-1: A sentence [with brackets] of its own. [{SOURCE}, "A chapter";
        KIP-101, KAFKA-7415]

        CTR-2: Another one. [A book]
        """

    assert find("CTR-1").sentence == "A sentence [with brackets] of its own."
    assert find("CTR-1").source == f'{SOURCE}, "A chapter"; KIP-101, KAFKA-7415'
    assert find("CTR-2").source == "A book"
    assert rule.__clauses__ == ("CTR-1", "CTR-2")  # type: ignore[attr-defined]


def test_a_source_names_constants_of_its_module() -> None:
    with pytest.raises(ValueError, match="CTR-1: its source names NO_SUCH, which is no text of the module"):

        @states()
        def rule() -> None:
            """CTR-1: It holds. [{NO_SUCH}; A book]"""

    with pytest.raises(ValueError, match="its source names FORMS, which is no text"):
        clause("CTR-1: It holds. [{FORMS}]")


def test_ids_say_which_paragraphs_are_clauses_of_the_function() -> None:
    @states("CTR-2", "CTR-7")
    def rule() -> None:
        """CTR-1: Not of this one. [A book]

        CTR-2: Of this one. [A book]
        """

    assert [c.id for c in clauses.all_clauses("CTR")] == ["CTR-2"]
    assert rule.__clauses__ == ("CTR-2", "CTR-7")  # type: ignore[attr-defined]


def test_reasons_are_for_all_clauses_or_by_their_ids() -> None:
    @states(without=not_modelled("a number"))
    def both() -> None:
        """CTR-1: One. [A book]

        CTR-2: Two. [A book]
        """

    @states(without={"CTR-4": AT_REST})
    def one() -> None:
        """CTR-3: Three. [A book]

        CTR-4: Four. [A book]
        """

    assert find("CTR-1").without == find("CTR-2").without == {"model": "a number", "proof": "a number"}
    assert (find("CTR-3").without, find("CTR-4").without) == ({}, AT_REST)
    with pytest.raises(ValueError, match="'CTR-8' is not a form"):
        states(without={"CTR-8": AT_REST})(one)


def test_clauses_without_a_function_stand_in_a_text() -> None:
    clause(
        """CTR-1: One that goes on
        over the line. [{SOURCE}]

        CTR-2: Two. [A book]""",
        without={"CTR-2": AT_REST},
    )
    assert (find("CTR-1").sentence, find("CTR-1").source) == ("One that goes on over the line.", SOURCE)
    assert (find("CTR-1").without, find("CTR-2").without) == ({}, AT_REST)
    for text in ("CTR-3: Whose rule?", "No clause at all. [A book]", ""):
        with pytest.raises(ValueError, match="a clause is a sentence with a source"):
            clause(text)


def test_methods_properties_and_classes_state_clauses_too() -> None:
    @states("CTR-1", source=SOURCE)
    @dataclass(frozen=True)
    class Index:
        """CTR-1: Of the whole."""

        @states("CTR-2", source=SOURCE)
        def search(self) -> None:
            """CTR-2: Of a method."""

        @states("CTR-3", source=SOURCE)  # type: ignore[prop-decorator]
        @property
        def size(self) -> int:
            """CTR-3: Of a property."""
            return 1

        @states("CTR-4", source=SOURCE)
        @staticmethod
        def of() -> None:
            """CTR-4: Of a static method."""

    assert [c.sentence for c in clauses.all_clauses("CTR")] == [
        "Of the whole.",
        "Of a method.",
        "Of a property.",
        "Of a static method.",
    ]
    assert Index().size == 1


def test_what_another_function_states_is_only_named() -> None:
    @states("CTR-1")
    def rule() -> None:
        """It uses what

        CTR-2: belongs to somebody else.
        """

    assert clauses.all_clauses("CTR") == []


@pytest.mark.parametrize(
    ("id", "module", "form"),
    [
        ("CTR-1", "kafkaspec.spec.storage.x", "spec"),
        ("CTR-1", "kafkaspec.audits.storage.x", "audit"),
    ],
)
def test_a_function_is_a_form_by_its_module(id: str, module: str, form: str) -> None:
    def rule() -> None:
        """Nothing more."""

    rule.__module__ = module
    states(id)(rule)
    assert clauses.uses(id) == [Use(id, form, f"{module}:{rule.__qualname__}")]


def test_an_implementation_has_no_decorator() -> None:
    def rule() -> None:
        """Nothing more."""

    rule.__module__ = "kafkaspec.impl.storage.x"
    with pytest.raises(ValueError, match=r"rule: an implementation names its clauses behind its docstring: \[ABC-1\]"):
        states("CTR-1")(rule)
    assert clauses.all_uses() == []


def test_a_sentence_without_a_source_is_an_error() -> None:
    with pytest.raises(ValueError, match="belong together"):

        @states("CTR-1")
        def rule() -> None:
            """CTR-1: Whose rule?"""


def test_a_source_is_said_once() -> None:
    with pytest.raises(ValueError, match="belong together"):

        @states("CTR-1", source=SOURCE)
        def rule() -> None:
            """CTR-1: Whose rule? [A book]"""


def test_what_states_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="belong together"):

        @states()
        def rule() -> None:
            """Nothing of a clause, nor CTR-1."""


def test_a_source_without_a_sentence_is_an_error() -> None:
    for text in (None, "Nothing of a clause.", "CTR-2: Of another clause.", "See CTR-1: not the beginning of a line."):

        def rule() -> None: ...

        rule.__doc__ = text
        with pytest.raises(ValueError, match="belong together"):
            states("CTR-1", source=SOURCE)(rule)
    assert clauses.all_clauses("CTR") == []


def test_a_clause_is_stated_once() -> None:
    def stated(text: str, module: str = __name__) -> None:
        def rule() -> None: ...

        rule.__doc__, rule.__module__ = f"CTR-1: {text}", module
        states("CTR-1", source=SOURCE)(rule)

    stated("It holds.")
    stated("It  holds.")  # the module was imported again
    for text, module in (("It does not hold.", __name__), ("It holds.", "kafkaspec.spec.storage.other")):
        with pytest.raises(ValueError, match=r"CTR-1 is stated in .*test_clauses and again in"):
            stated(text, module)
    with pytest.raises(ValueError, match="and again in"):
        clause("CTR-1", "It may hold.", source=SOURCE)
    assert find("CTR-1").sentence == "It holds."


@pytest.mark.parametrize("id", ["CTR1", "CT-1", "ctr-1", "CTR-", "CTR-1a"])
def test_an_id_of_another_form_is_an_error(id: str) -> None:
    with pytest.raises(ValueError, match="not of the form ABC-1"):
        clause(id, "It holds.", source=SOURCE)


def test_a_reason_is_for_a_form_that_there_is() -> None:
    with pytest.raises(ValueError, match="'tests' is not a form"):
        clause("CTR-1", "It holds.", source=SOURCE, without={"tests": "none"})
    for shared in (A_QUESTION, A_FORMAT, ONE_CALL, AT_REST, A_QUESTION | AT_REST):
        assert shared.keys() <= set(FORMS)
        assert all(shared.values())


def test_paragraphs_of_a_docstring() -> None:
    found: dict[str, Any] = clauses.sentences(
        """CTR-1: The first,
        over two lines.

        Prose, that names CTR-3: not a clause.

        CTR-2: The last. [{A_BOOK}]
        """
    )
    assert found == {"CTR-1": "The first, over two lines.", "CTR-2": "The last."}


CITING = '''
from collections.abc import Sequence
from functools import cached_property

def rule():
    """What it does. [CTR-1, CTR-2]"""

    def inner():
        """[CTR-9]"""

class Index:
    """Both. [CTR-3]"""

    def search(self):
        """It finds [1, 2]. See CTR-8 (CTR-9).

        More of it. [CTR-4]
        """

    @property
    def size(self):
        """[CTR-5]"""

    @staticmethod
    def of():
        """[CTR-6]"""
'''


def test_an_implementation_cites_clauses_in_its_docstrings() -> None:
    module = ModuleType("kafkaspec.impl.storage.citing")
    exec(CITING, vars(module))
    clauses.cited(module)
    clauses.cited(module)  # it was loaded for another subsystem's sake
    there = {"CTR-1": "rule", "CTR-2": "rule", "CTR-3": "Index", "CTR-4": "Index.search", "CTR-5": "Index.size"}
    there |= {"CTR-6": "Index.of"}
    assert clauses.all_uses() == [Use(id, "impl", f"{module.__name__}:{name}") for id, name in there.items()]
