"""A subsystem's page as one reading: every clause with the function that states it, at the place that is named."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType

import pytest

from kafkaspec.contract.subsystem import find, subsystems

ROOT = Path(__file__).parents[2]
SECTION = re.compile(r"^### (?P<id>[A-Z]{3}-\d+)(?: `(?P<name>[\w.]+)`)? \{#(?P=id)\}$", re.MULTILINE)


@pytest.mark.parametrize("name", subsystems())
def test_every_clause_has_its_sentence_and_the_function_that_states_it(rules: ModuleType, name: str) -> None:
    text = rules.rules(name)
    _, *parts = SECTION.split(text)
    sections = dict(zip(parts[::3], parts[2::3], strict=True))
    clauses = find(name).clauses
    assert list(sections) == [c.id for c in clauses]
    for c in clauses:
        section = sections[c.id]
        flat = " ".join(section.split())
        assert flat.count(c.sentence) == 1, f"{c.id}: its sentence stands {flat.count(c.sentence)} times"
        assert c.source in section
        assert f'"Forms of {c.id}: ' in section
        has_spec = re.search(r"^    \| spec \| `", section, re.MULTILINE) is not None
        assert has_spec == ("```python" in section or "Stated by" in section), c.id
        assert f"{c.id}: " not in section.replace(f"Forms of {c.id}: ", ""), "the sentence is in the docstring, too"


@pytest.mark.parametrize("name", subsystems())
def test_the_place_that_is_named_is_the_function_s(rules: ModuleType, name: str) -> None:
    shown = re.findall(
        r"^\[`([^`:]+):(\d+)`\]\(docs:source/\1\.html#L-\2\)\n\{: \.place \}\n\n```python\n(.*?)\n```$",
        rules.rules(name),
        re.MULTILINE | re.DOTALL,
    )
    assert bool(shown) == bool(find(name).spec.machine.operations), "a protocol's rules are stated by its models"
    assert len({(file, line) for file, line, _ in shown}) == len(shown), "a function stands twice on the page"
    for file, line, code in shown:
        (node,) = ast.parse(code).body
        assert isinstance(node, ast.FunctionDef | ast.ClassDef)
        assert "states" not in [getattr(getattr(d, "func", d), "id", "") for d in node.decorator_list]
        there = (ROOT / file).read_text("utf-8").splitlines()[int(line) - 1]
        assert re.match(rf"\s*(def|class) {node.name}\b", there), f"{file}:{line}"


@pytest.mark.parametrize(
    ("written", "alone", "shown"),
    [
        ('"""What it gives."""', False, ['    """What it gives."""']),
        ('"""ABC-1: It holds."""', False, []),
        ('"""ABC-1: It holds."""', True, ["    ..."]),
        ('"""What it gives.\n\n    ABC-1: It holds\n    always.\n    """', False, ['    """What it gives."""']),
        ('"""ABC-1: It holds.\n\n    ABC-2: So does this.\n    """', False, []),
        ('"""ABC-1: It holds.\n\n    One.\n\n    Two.\n    """', False, ['    """One.', "", "    Two.", '    """']),
        ('r"""A \\d.\n\n    ABC-1: It holds.\n    """', False, ['    r"""A \\d."""']),
    ],
)
def test_a_sentence_is_not_printed_twice(rules: ModuleType, written: str, alone: bool, shown: list[str]) -> None:
    assert rules.without_sentences(f"    {written}", 4, alone) == shown


def test_what_the_page_says_otherwise_is_left_out_of_the_source(rules: ModuleType) -> None:
    text = '''@machine.operation("f")
@states("ABC-1", source="a book",
        without={"model": "none"})
@ensure(lambda result: result, "ABC-1 true")
def f(a):
    """What it gives.

    ABC-1: It holds.
    """
    return a
'''
    (node,) = ast.parse(text).body
    assert rules._shown(text, node).splitlines() == [
        '@machine.operation("f")',
        '@ensure(lambda result: result, "ABC-1 true")',
        "def f(a):",
        '    """What it gives."""',
        "    return a",
    ]
