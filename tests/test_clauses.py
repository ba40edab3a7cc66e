"""Clauses are tidy: each has every form that it ought to have, no form names a clause that there is not, and each is
said in a sentence with a source."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafkaspec.contract import clauses, traceability
from kafkaspec.contract.subsystem import Subsystem, subsystems

SUBSYSTEMS = list(subsystems().values())
RELEASED = Path(__file__).with_name("released_clauses.txt")
"""Every clause of the newest release, and those that were written down since."""


def line_of(c: clauses.Clause) -> str:
    """Its line in that file."""
    forms = {u.form for u in traceability.uses(c.id)}
    named = ",".join(traceability.operations(c.id)) or traceability.NO_OPERATION
    return f"{c.id} {','.join(form for form in clauses.FORMS if form in forms)} {named} {c.sentence}\n"


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    traceability.load()


@pytest.mark.parametrize("subsystem", SUBSYSTEMS, ids=lambda s: s.name)
def test_every_clause_has_every_form_or_says_why_not(subsystem: Subsystem) -> None:
    assert subsystem.clauses
    assert traceability.incomplete(subsystem.prefix) == []


@contextlib.contextmanager
def without(c: clauses.Clause, form: str, where: str = "") -> Iterator[None]:
    """All that states the clause in a form, in modules that begin so, is gone; of what states a clause, only the
    subsystem's own is looked at."""
    left = {id: of for id, of in clauses._uses.items() if id.startswith(c.id[:3])}
    left[c.id] = {u: None for u in left[c.id] if u.form != form or not u.where.startswith(where)}
    others = tuple(u for u in traceability.in_tests(c.id[:3]) if u.clause != c.id or form != "test")
    with pytest.MonkeyPatch.context() as m:
        m.setattr(clauses, "_uses", left)
        m.setattr(traceability, "in_tests", lambda prefix="": others)
        yield


@pytest.mark.parametrize("subsystem", SUBSYSTEMS, ids=lambda s: s.name)
def test_a_form_that_is_taken_away_is_missed(subsystem: Subsystem) -> None:
    """All that states the clause in the layer of the form goes; what stands elsewhere does not take its place."""
    for c in subsystem.clauses:
        for form in sorted({u.form for u in traceability.uses(c.id)}):
            with without(c, form, clauses.FOLDERS.get(form, "")):
                assert traceability.lacking(c) == [f"{c.id} has no {form}, and says no reason why not"]


@pytest.mark.parametrize("subsystem", SUBSYSTEMS, ids=lambda s: s.name)
def test_clauses_are_numbered_without_gaps_and_stand_in_their_spec(subsystem: Subsystem) -> None:
    assert [c.id for c in subsystem.clauses] == [
        f"{subsystem.prefix}-{n}" for n in range(1, len(subsystem.clauses) + 1)
    ]
    here = subsystem.spec.__name__
    beside = ("kafkaspec.spec.common.", f"{here}_parts.")
    assert all(c.module == here or c.module.startswith(beside) for c in subsystem.clauses)
    assert any(c.module == here for c in subsystem.clauses)


def test_a_clause_is_a_sentence_with_a_source() -> None:
    every = [c for s in SUBSYSTEMS for c in s.clauses]
    assert [c.id for c in every if not re.fullmatch(r"[A-Z].*\.", c.sentence)] == []
    assert [c.id for c in every if not c.source] == []
    assert [c.id for c in every if not all(c.without.values())] == []


def test_a_sentence_names_numbers_and_not_what_the_code_calls_them() -> None:
    assert [c.id for c in clauses.all_clauses() if re.search(r"\{[A-Z_]+\}", c.sentence)] == []


def common(a: str, b: str) -> float:
    """The share of two sentences' words that both have."""
    one, other = (set(re.findall(r"[\w.]+", x.lower())) for x in (a, b))
    return len(one & other) / len(one | other)


@pytest.mark.parametrize("subsystem", SUBSYSTEMS, ids=lambda s: s.name)
def test_a_released_clause_keeps_its_id(subsystem: Subsystem) -> None:
    """No id is gone, and none has moved to another rule: what is nearest to its sentence then is its sentence now."""
    now = {c.id: c.sentence for c in subsystem.clauses}
    for id, (_, _, then) in traceability.released().items():
        if id.startswith(f"{subsystem.prefix}-"):
            assert id in now, f"{id} was released: {then}"
            nearest = max(now, key=lambda n: common(then, now[n]))
            assert nearest == id, f"{id} was released as: {then}\nThis is {nearest} now; see CONTRIBUTING, Clause ids"


@pytest.mark.parametrize("subsystem", SUBSYSTEMS, ids=lambda s: s.name)
def test_a_released_clause_keeps_its_forms(subsystem: Subsystem) -> None:
    """What a form is asked for by can go with it, such as a rule of the audit with all its reports: not from here."""
    found = {c.id: gone for c in subsystem.clauses if (gone := traceability.lost(c))}
    assert found == {}, "they had these forms; see CONTRIBUTING, Clause ids"


@pytest.mark.parametrize("subsystem", SUBSYSTEMS, ids=lambda s: s.name)
def test_a_released_clause_keeps_its_operations(subsystem: Subsystem) -> None:
    found = {c.id: gone for c in subsystem.clauses if (gone := traceability.unnamed(c))}
    assert found == {}, "these operations named them; see CONTRIBUTING, Clause ids"


@pytest.mark.parametrize("subsystem", SUBSYSTEMS, ids=lambda s: s.name)
def test_an_operation_that_names_a_clause_no_more_is_missed(subsystem: Subsystem) -> None:
    """One after the other: what still names the clause does not take its place."""
    for c in released_of(subsystem):
        then = traceability.released()[c.id].operations
        assert then == {*traceability.operations(c.id)}, "written down by python -m tests.test_clauses"
        for before, machine in traceability._machines(subsystem.prefix):
            for name, op in list(machine.operations.items()):
                if c.id in op.clauses:
                    left = replace(op, clauses=tuple(id for id in op.clauses if id != c.id))
                    with pytest.MonkeyPatch.context() as m:
                        m.setitem(machine.operations, name, left)
                        assert traceability.unnamed(c) == [before + name]
                        said = f"{c.id} is not named by {before + name} any more; in tests/released_clauses.txt it is"
                        assert said in traceability.withdrawn(c.id)


@pytest.mark.parametrize("subsystem", SUBSYSTEMS, ids=lambda s: s.name)
def test_a_form_that_goes_with_all_that_asks_for_it_is_missed(subsystem: Subsystem) -> None:
    """As when every LEC-20 in the audit's rules is renamed: the audit then reports nothing under it."""
    for c in released_of(subsystem):
        for form in sorted(traceability.released()[c.id].forms):
            with without(c, form):
                assert traceability.lost(c) == [form]
                asked_for = form in traceability.wanted(c.id)
                assert bool(traceability.withdrawn(c.id)) is (not asked_for or form in c.without)


def released_of(subsystem: Subsystem) -> list[clauses.Clause]:
    return [c for c in subsystem.clauses if c.id in traceability.released()]


def test_no_released_subsystem_is_gone() -> None:
    assert {id[:3] for id in traceability.released()} <= {s.prefix for s in SUBSYSTEMS}


def test_prefixes_are_the_subsystems_own() -> None:
    assert len({s.prefix for s in SUBSYSTEMS}) == len(SUBSYSTEMS)


def test_no_test_names_a_clause_that_there_is_not() -> None:
    known = {c.id for c in clauses.all_clauses()}
    assert [f"{u.where} names {u.clause}" for u in traceability.in_tests() if u.clause not in known] == []


ALIKE = {"walked", "walk", "state_machine", "check_refinement", "check_recording", "a_row_of_verify"}
"""What asks all that a subsystem has, alike."""


def alike(text: str) -> dict[str, list[str]]:
    """The tests of a text that ask all alike and are marked nevertheless, with the clauses."""
    out: dict[str, list[str]] = {}
    for n in ast.walk(ast.parse(text)):
        if isinstance(n, ast.FunctionDef) and ALIKE & {x.id for x in ast.walk(n) if isinstance(x, ast.Name)}:
            marks = [d for d in n.decorator_list if isinstance(d, ast.Call) and ast.unparse(d.func).endswith("clause")]
            if ids := [a.value for d in marks for a in d.args if isinstance(a, ast.Constant)]:
                out[n.name] = [str(id) for id in ids]
    return out


def test_a_test_that_asks_all_alike_is_no_test_of_a_clause() -> None:
    """Long walks cover every operation and say nothing of one rule. Of a clause that the spec does not state, such as
    who may work at the same time, the model's claims are the test."""
    for file in Path(__file__).parent.rglob("test_*.py"):
        for name, ids in alike(file.read_text("utf-8")).items():
            stated = [id for id in ids if "spec" not in clauses.find(id).without]
            assert not stated, f"{file.name}:{name} is marked as a test of {', '.join(stated)}, and asks all alike"


def test_a_walk_that_is_marked_is_seen() -> None:
    text = '@pytest.mark.clause("LEC-8", "LEC-14")\ndef test_long_walks():\n    walked(machine, Driver)\n'
    assert alike(text) == {"test_long_walks": ["LEC-8", "LEC-14"]}
    assert alike(text.replace("walked(", "called(")) == {}


def test_deviations_break_a_clause_of_their_subsystem() -> None:
    for s in SUBSYSTEMS:
        for d in s.spec.machine.deviations:
            assert re.fullmatch(rf"{s.prefix}-D\d+", d.id)
            assert clauses.find(d.clause).id.startswith(s.prefix)
            assert all((d.title, d.versions, d.condition, d.history, d.cause, d.effect, d.fix))


def test_what_subsystems_share_is_cited_for_each() -> None:
    """The offset index and the time index are two layouts of one mapped index."""
    for id in ("OIX-8", "TIX-7"):
        assert clauses.Use(id, "impl", "kafkaspec.impl.common.mapped_index:MappedIndex._halve") in clauses.uses(id)


if __name__ == "__main__":  # for a release: python -m tests.test_clauses
    traceability.load()
    RELEASED.write_text("".join(map(line_of, clauses.all_clauses())), "utf-8")
