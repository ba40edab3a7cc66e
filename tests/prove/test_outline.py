"""Outlines: what was found once is asked first. They save attempts, and prove nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import kafkaspec
from kafkaspec.contract.subsystem import subsystems
from kafkaspec.errors import UserError
from kafkaspec.language import LoadedModel, load
from kafkaspec.language.defined import DEFINED
from kafkaspec.models.controller.raft import Roles
from kafkaspec.prove import outline, solver
from kafkaspec.prove.engine import ProofResult, prove
from kafkaspec.prove.obligations import START
from kafkaspec.prove.outline import Outline, Outlines, Step, recorded, text
from kafkaspec.prove.solver import NUMBERS, PORTFOLIO
from tests.language.texts import model
from tests.prove.rooms import Counter, FalseCounter
from tests.prove.test_asked import RestsFar, Unbounded
from tests.prove.test_ways import ABSTRACT, BODY, VARIABLES

UNREAD = """
@dataclass(frozen=True)
class Q:
    who: P | None
    b: bool
class Counter(Model):
    total: Num
    last: bool
    @action()
    def up(s) -> None:
        require(s.total < N)
        s.next.total = s.total + 1
    @action()
    def odd(s, r: Q) -> None:
        require(r.who is None)
        s.next.total = 0
        s.next.last = r.b
"""
SHOWS = """
@action()
def go(s) -> None:
    require(s.n < N)
    s.next.n = s.n + 1
@refines(Counter)
def counter(s) -> Counter:
    return Counter.shown(total=s.n, last=s.l)
"""


RESTS = """
@initial
def init(s) -> None:
    s.next.S = {p for p in P}
@action()
def up(s) -> None:
    require(s.a < N)
    s.next.a = s.a + 1
    s.next.b = s.b + 1 if s.b < s.a else s.b
    s.next.c = s.b
@invariant()
def below(s) -> bool:
    return s.b <= s.a
@invariant()
def asked(s) -> bool:
    return s.c <= s.a
@lemma()
def far(s, p: P) -> bool:
    return s.b <= s.a and s.a < 20 and p in s.S
"""


WRONG: list[Outline] = [
    *[Outline((Step(0, o, among),)) for o in range(len(PORTFOLIO)) for among in ("all", "apart", "relevant", "needed")],
    *[
        Outline((Step(part, 0, names),))
        for part in (0, 1, 7)
        for names in (frozenset(), frozenset({"nobody", NUMBERS}))
    ],
    *[Outline((), tree) for tree in (0, 1, 99, -1, (0, 0), (0, (1, 2)), ((0, 99), 0), ((((((0, 0), 0), 0), 0), 0), 0))],
]
"""Outlines of nothing in particular."""


def learnt(m: LoadedModel, known: Outlines | None = None) -> tuple[ProofResult, dict[tuple[str, str], Outline]]:
    """A proof, and its outlines."""
    found: dict[tuple[str, str], Outline] = {}
    return prove(m, outlines=known, learnt=found), found


def everywhere(m: LoadedModel, o: Outline) -> Outlines:
    """The same outline for each obligation."""
    result = prove(m, timeout_s=1)
    return {(x.claim, x.action): o for x in result.obligations}


@pytest.fixture
def all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No part is easy."""
    monkeypatch.setattr(outline, "EASY_S", 0.0)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package of somebody's proofs, that is imported as `somebodys`."""
    folder = tmp_path / "somebodys"
    folder.mkdir()
    for name in ("__init__", "here", "there"):
        (folder / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "somebodys", raising=False)
    return folder


@pytest.mark.usefixtures("all_parts")
@pytest.mark.parametrize("m", [load(Unbounded), model(BODY, VARIABLES, ABSTRACT)], ids=["Unbounded", "refines"])
def test_what_was_learnt_is_all_that_is_asked(m: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    first, found = learnt(m)
    assert first.complete
    assert any(o.steps for o in found.values())
    asked: list[str] = []
    ask = solver.Question._ask

    def by_itself(q: solver.Question, *a: Any, **k: Any) -> solver.Reply:
        asked.append("by itself")
        return ask(q, *a, **k)

    def shared(s: solver.SharedSolver, *a: Any, **k: Any) -> bool:
        asked.append("shared")
        return False

    monkeypatch.setattr(solver.Question, "_ask", by_itself)
    monkeypatch.setattr(solver.SharedSolver, "proves", shared)
    again, same = learnt(m, found)
    assert again.complete
    assert same == found
    assert asked == ["by itself"] * sum(len(o.steps) for o in found.values())
    assert [(o.claim, o.action, o.queries) for o in again.obligations] == [
        (o.claim, o.action, o.queries) for o in first.obligations
    ]


@pytest.mark.usefixtures("all_parts")
def test_an_outline_of_what_is_true_does_not_prove_what_is_false() -> None:
    """FalseCounter is Counter with a claim that is false; RestsFar has one that no small size refutes."""
    _, found = learnt(load(Counter))
    assert prove(load(FalseCounter), outlines=found).outcome == prove(load(FalseCounter)).outcome == "refuted"
    m = load(RestsFar)
    _, found = learnt(m)
    found["smaller", "up"] = found["small", "up"]
    assert prove(m, timeout_s=2, outlines=found).unproved == ("smaller",)


@pytest.mark.parametrize("o", WRONG, ids=range(len(WRONG)))
def test_a_wrong_outline_proves_nothing_and_hides_nothing(o: Outline) -> None:
    for m, unproved in ((load(RestsFar), ("smaller",)), (model(BODY, VARIABLES, ABSTRACT), ())):
        assert prove(m, timeout_s=2, outlines=everywhere(m, o)).unproved == unproved


def test_a_way_that_the_step_does_not_take_is_not_taken_for_one() -> None:
    """A step that shows no step of the abstract model is refuted, whatever way its outline says."""
    body = BODY.replace("s.next.n = s.n + 1\n        s.next.done = s.done | {a}", "s.next.n = s.n + 1")
    assert body != BODY
    m = model(body, VARIABLES, ABSTRACT)
    for tree in (None, 0, 1, 2, 3, (0, 1), (1, (2, 3)), (0, (1, (2, 3)))):
        result = prove(m, timeout_s=1, outlines={("counter", "go"): Outline((), tree)})
        assert "counter" in result.unproved


def test_outlines_are_read_as_they_were_written(package: Path) -> None:
    steps = (Step(2, 3, frozenset({"a", NUMBERS})), Step(4, 0, "all"))
    known: Outlines = {
        ("c", "go"): Outline(steps, (1, (0, 2))),
        ("c", START): Outline(steps),
        ("d", "go"): Outline((), 0),
    }
    (package / "here.json").write_text(text({"M": known}), "utf-8")
    assert recorded("somebodys.here", "M") == known
    assert recorded("somebodys.here", "Other") == {}
    assert recorded("somebodys.there", "M") == {}
    for nowhere in ("", "here", "__main__", "sys", "somewhere.else", "sys.here", "textwrap.here"):
        assert recorded(nowhere, "M") == {}


@pytest.mark.parametrize(
    "written",
    [
        *(
            "",
            "{",
            "[]",
            '{"M": []}',
            '{"M": {"c": []}}',
            '{"M": {"c": {"go": 7}}}',
            '{"M": {"c": {"go": {"steps": 1}}}}',
        ),
        *('{"M": {"c": {"go": {"steps": [[0, 99, "all"]]}}}}', '{"M": {"c": {"go": {"steps": [["x", 0, "all"]]}}}}'),
        *(
            '{"M": {"c": {"go": {"steps": [[0, 0, "needed"]]}}}}',
            '{"M": {"c": {"go": {"way": [1]}}}}',
            '{"M": {"c": {"go": {"way": "x"}}}}',
        ),
        "\xff",
        '{"M": {"c": {"go": {"way": ' + "[0, " * 5000 + "0" + "]" * 5000 + "}}}}",
    ],
    ids=lambda text: text[:40],
)
def test_a_damaged_file_is_told_by_its_name(written: str, package: Path) -> None:
    (package / "here.json").write_bytes(written.encode("latin-1"))
    with pytest.raises(UserError, match=r"here\.json: no outlines of proofs") as error:
        recorded("somebodys.here", "M")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


def kept() -> Iterable[tuple[ModuleType, LoadedModel]]:
    """The kept proofs' models, with their modules."""
    for s in subsystems().values():
        module = s.layer("proofs")
        for proof in getattr(module, "PROOFS", ()):
            assert module is not None
            yield module, proof.loaded


def test_the_outlines_that_are_kept_are_of_what_there_is() -> None:
    """Each names a model, a claim, an action, and claims, that there are still."""
    files: dict[Path, set[str]] = {}
    for module, m in kept():
        files.setdefault(Path(str(module.__file__)).with_suffix(outline.SUFFIX), set()).add(m.name)
        claims = {*m.lemmas, *m.invariants, *m.steps, *m.starts}
        for (claim, action), o in recorded(module.__name__, m.name).items():
            assert action in {START, *[a.name for a in m.actions]}, (m.name, claim, action)
            assert claim in claims or claim == DEFINED or claim.startswith("type of "), (m.name, claim)
            for step in o.steps:
                assert isinstance(step.among, str) or step.among <= {*claims, NUMBERS}, (m.name, claim, action)
    written = [file for file in files if file.is_file()]
    assert len(written) > 5
    for file in written:
        assert set(json.loads(file.read_text("utf-8"))) <= files[file], file


def test_a_kept_outline_saves_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the outlines of raft's roles the proof is found with next to no attempt in vain."""
    m = replace(load(Roles), steps={})
    vain: list[bool] = []
    ask = solver.Budget.ask

    def asked(b: solver.Budget, *a: object, **k: object) -> solver.Reply:
        reply: solver.Reply = ask(b, *a, **k)  # type: ignore[arg-type]
        vain.append(reply.answer == "unknown")
        return reply

    monkeypatch.setattr(solver.Budget, "ask", asked)
    counts = []
    for outlines in ({}, recorded("kafkaspec.proofs.controller.raft", "Roles")):
        vain.clear()
        assert prove(m, outlines=outlines).by_verdict("refuted") == []
        counts.append(sum(vain))
    assert counts[1] * 2 <= counts[0]


@pytest.mark.parametrize("tree", [2, None])
def test_a_way_that_cannot_be_read_is_no_way(tree: int | None) -> None:
    """The step shows `up`; `odd` has a parameter that has no reading at every size, and is not read for a proof."""
    m = model(SHOWS, "n: Num\nl: bool\n", UNREAD)
    assert prove(m).complete
    assert prove(m, outlines={("counter", "go"): Outline((), tree)}).complete


def test_what_a_claim_rests_on_is_not_what_an_outline_names() -> None:
    """`asked` follows from `below`, which is proved; and from `far`, which is not."""
    m = model(RESTS, "a: Num\nb: Num\nc: Num\nS: set[P]\n")
    wrong = {("asked", "up"): Outline((Step(0, 0, frozenset({"far"})),))}
    assert prove(m, claims=["asked"]).outcome == prove(m, claims=["asked"], outlines=wrong).outcome == "proved"


def test_claims_and_parts_that_are_gone_are_learnt_no_more() -> None:
    m = model(RESTS, "a: Num\nb: Num\nc: Num\nS: set[P]\n")
    _, found = learnt(m, {("asked", "up"): Outline((Step(0, 0, frozenset({"below", "gone"})), Step(99, 0, "all")))})
    assert not any(s.part == 99 or "gone" in s.among for s in found["asked", "up"].steps)


def test_a_file_that_cannot_be_read_is_told_by_its_name(package: Path) -> None:
    (package / "here.json").mkdir()
    with pytest.raises(UserError, match=r"here\.json: Is a directory"):
        recorded("somebodys.here", "M")


def test_outlines_of_a_project_are_read_in_an_area_that_the_package_has_too(tmp_path: Path) -> None:
    for area in ("storage", "limits"):
        folder = tmp_path / "proofs" / area
        folder.mkdir(parents=True)
        (folder / "mine.py").touch()
        (folder / "mine.json").write_text('{"M": {"c": {"go": {"way": 1}}}}', "utf-8")
    (tmp_path / "kafkaspec.toml").touch()
    read = "print(*[len(recorded(f'kafkaspec.proofs.{a}.mine', 'M')) for a in ('storage', 'limits')])"
    command = [sys.executable, "-c", f"from kafkaspec.prove.outline import recorded\n{read}"]
    env = {**os.environ, "PYTHONPATH": str(Path(kafkaspec.__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "1"], done.stderr
