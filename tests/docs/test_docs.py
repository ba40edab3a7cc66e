"""The documentation: what is committed is what the code says, and the site is whole."""

from __future__ import annotations

import importlib
import json
import posixpath
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest

from kafkaspec.audit.recorded import recorded
from kafkaspec.cli import new
from kafkaspec.contract import subsystem
from kafkaspec.contract.subsystem import subsystems
from kafkaspec.verify.engine import AUDITED_BY_TESTS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if p.parent.name != "measured")


# ---- what is committed -----------------------------------------------------------------------------------------------
def test_what_is_generated_and_committed_is_up_to_date(generate: ModuleType) -> None:
    stale = [str(p.relative_to(ROOT)) for p in generate.out_of_date(write=False)]
    assert stale == [], "write them again with `make tables`"
    assert generate.unmeasured() == [], "measure them with `make tables`"


@pytest.mark.first
def test_verify_says_what_the_documentation_says_of_it(generate: ModuleType) -> None:
    """Everything is verified here, and nowhere else in `make test`: what `make verify` has not done of these texts."""
    try:
        found = generate.verification("--changed")
    except subprocess.CalledProcessError as e:
        pytest.fail(f"{e}\n{[r for r in json.loads(e.stdout or '[]') if r['why']]}\n{e.stderr}")
    assert found == generate.measured_rows(), "measure it again with `make tables`"


def test_verify_has_a_row_of_every_model_proof_refinement_and_recording(generate: ModuleType) -> None:
    rows = Counter((r["subsystem"], r["what"]) for r in generate.measured_rows())
    for s in subsystems().values():
        models, proofs = s.layer("models"), s.layer("proofs")
        wanted = [f"model {c.name}" for c in getattr(models, "MODELS", ()) if not c.deep]
        wanted += [f"invariants of {p.name}" for p in getattr(proofs, "PROOFS", ())]
        wanted += [f"spec against {how.model.__name__}" for how in s.refinements if not how.deep]
        wanted += [what for r in s.recordings for what in (r.file, f"{r.file}, altered")]
        assert Counter((s.name, what) for what in wanted) <= rows


def test_what_is_counted_is_what_it_is_called(generate: ModuleType) -> None:
    """As recordings not our implementation behind a pipe, nor copies that were altered or damaged; as models not the
    runs of one at several sizes."""
    rows = [[cell.strip() for cell in line.split("|")] for line in generate.established().splitlines()[2:]]
    counted = {row[1]: int(row[6].partition(":")[0] or 0) for row in rows}
    known = {name: len(s.recordings) for name, s in subsystems().items()}
    assert counted == {**known, "audit": len({r.recording for r in recorded()} - AUDITED_BY_TESTS)}
    models = {row[1]: int(row[3].partition(" states of ")[2].partition(",")[0] or 0) for row in rows}
    pinned = {name: getattr(s.layer("models"), "MODELS", ()) for name, s in subsystems().items()}
    assert models == {"audit": 0} | {name: len({c.name for c in of}) for name, of in pinned.items()}


@pytest.mark.first
@pytest.mark.parametrize(
    "page",
    ["README.md", *(pytest.param(page, marks=pytest.mark.deep) for page in ("docs/judge.md", "docs/tutorial.md"))],
)
def test_a_page_with_commands_works_as_it_stands(page: str, generate: ModuleType) -> None:
    """Its files are written into a copy of the checkout, its commands run there, their output compared."""
    assert page in generate.PLAYED
    text = (ROOT / page).read_text("utf-8")
    assert generate.played(text) == text, "write it again with `make tables`"


def test_the_tutorial_ends_with_all_that_holds(generate: ModuleType) -> None:
    """`make tables` writes whatever a command prints: what is red on the page is meant to be."""
    text = (DOCS / "tutorial.md").read_text("utf-8")
    said = {m[1]: m[2] for m in re.finditer(r"^\$ kafkaspec verify (.+)\n(verify .+)$", text, re.MULTILINE)}
    assert said["lease --only clauses"].startswith("verify  ✗ 1 of 1 do not hold")
    assert said["lease --only 'impl against spec'"].startswith("verify  ✗ 1 of 1 do not hold")
    assert said["lease"] == "verify  ✓ all 7 hold, … s of work"
    assert all(line.startswith("verify  ✓") for line in re.findall(r"^verify .+$", text, re.MULTILINE)[-2:])


def test_the_tutorial_s_code_has_the_project_s_style(tmp_path: Path, generate: ModuleType) -> None:
    """Also in how a rule is stated: by its function's docstring, with a source, as in any spec."""
    text = (DOCS / "tutorial.md").read_text("utf-8")
    files = {m[1]: m[2] for m in generate.BLOCK.finditer(text) if m[1] and m[1].endswith(".py")}
    layers = {"spec", "impl", "models", "proofs", "tests"}
    assert {path.partition("/")[0] for path in files} == layers
    assert "clause(" not in files["spec/tutorial/lease.py"]
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content, "utf-8")
        (tmp_path / path).with_name("__init__.py").touch()
    for style in (("check",), ("format", "--check", "--diff")):
        command = ["ruff", *style, "--config", f"{ROOT}/pyproject.toml"]
        command += ["--config", "lint.isort.known-first-party = ['kafkaspec']", str(tmp_path)]
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr


ROLES = {**subsystem.ROLES, "tests": ("mutants", "written")}
"""By their folder: what stands behind the name in a file of a subsystem, beside the file of the name alone."""


def test_the_tutorial_s_table_has_every_file_that_a_subsystem_has() -> None:
    """Those that are there; and each of the table is some subsystem's."""
    text = (DOCS / "tutorial.md").read_text("utf-8")
    listed = set(re.findall(r"^\| `(\S+<name>\S*)` \|", text, re.MULTILINE))
    there = {file.format(area="<area>", name="<name>") for file in new.FILES}
    for s in subsystems().values():
        for folder in (*subsystem.LAYERS, "tests", "docs"):
            for name in (s.name, f"test_{s.name}", *(f"{s.name}_{role}" for role in ROLES.get(folder, ()))):
                for file in (ROOT / folder / s.area).glob(f"{name}.*"):
                    there.add(f"{folder}/<area>/{name.replace(s.name, '<name>')}{file.suffix}")
    assert listed == there
    assert "the-files-of-a-subsystem" in (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_the_readme_names_targets_of_make_and_pages_that_there_are() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = re.findall(r"(?:^|`)make ([\w-]+)", text, re.MULTILINE)
    assert {"verify", "test", "docs", "kafka-target"} <= set(named)
    assert [t for t in named if f"\n{t}:" not in makefile] == []
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert len(links) > 30
    assert [x for x in links if not (ROOT / x).exists()] == []
    missing = [s.name for s in subsystems().values() if f"docs/{s.area}/{s.name}.md" not in links]
    assert missing == [], "subsystems that the README does not name"


def test_every_class_that_is_judged_has_its_campaign_once(generate: ModuleType) -> None:
    """Its figures are data, and typed in no page; the known deviations that it met are its subsystem's."""
    listed = (ROOT / "targets" / "kafka" / "kafka-4.3" / "src" / "main" / "resources" / "target.properties").read_text(
        "utf-8"
    )
    made = tomllib.loads(generate.CAMPAIGNS.read_text("utf-8"))
    assert sorted(made) == sorted(re.findall(r"^subsystem\.(\w+)=", listed, re.MULTILINE))
    texts = {page.stem: page.read_text("utf-8") for page in PAGES}
    calls = re.findall(
        r"^\| 4\.3\.0 \| ([\d,]+) in ", texts.pop("kafka-releases"), re.MULTILINE
    )  # beside other releases
    assert set(calls) <= {f"{campaign['calls']:,}" for campaign in made.values()}
    for name, campaign in made.items():
        typed = [page for page, text in texts.items() if f"{campaign['calls']:,}" in text]
        assert typed == [], f"{name}: <!-- generated:campaigns {name} --> says it"
        assert set(campaign["deviations"]) <= {d.id for d in subsystems()[name].spec.machine.deviations}
        assert type(campaign["date"]) is date, f"{name}: the day on which its campaign ended, date = YYYY-MM-DD"
        assert re.fullmatch(r"[0-9a-f]{8,40}", campaign["commit"]), f"{name}: the commit that judged"
        for said in (str(campaign["date"]), campaign["commit"], f"{campaign['calls']:,}"):
            assert said in generate.campaigns(name)
        assert f"{campaign['calls']:,}" in generate.campaigns()


# ---- pages and directives --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_a_page_has_prose_and_directives_and_nothing_that_is_generated(page: Path, generate: ModuleType) -> None:
    text = re.sub(r"`[^`\n]*`", "", page.read_text("utf-8"))
    whole = {m[0] for m in generate.DIRECTIVE.finditer(text)}
    for line in text.splitlines():
        if "<!-- generated" in line:
            assert line in whole, f"no directive: {line}"
    assert "<!-- end -->" not in text
    for m in generate.DIRECTIVE.finditer(text):
        assert m[1] in generate.GENERATORS, m[0]
        link = re.match(r"\[[^\]]+\]\(([^)]+)\)", m[0])
        assert link is not None, f"nothing to see without a build: {m[0]}"
        assert (page.parent / link[1]).exists(), m[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_a_link_of_a_page_leads_to_a_page_of_the_site(page: Path, generate: ModuleType) -> None:
    """What is outside of docs/ is no page, and a strict build refuses it: a source file is source/FILE.html there."""
    text = generate.DIRECTIVE.sub("", re.sub(r"`[^`\n]*`|```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL))
    links = set(re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text))
    paths = {x: posixpath.normpath(posixpath.join(page.parent.relative_to(DOCS).as_posix(), x)) for x in links}
    there = {*generate.pages(), *(f"source/{x}.html" for x in importlib.import_module("sources").of_links(text))}
    assert [
        x for x, path in paths.items() if path not in there and not (path[:2] != ".." and (DOCS / path).exists())
    ] == []


def test_every_generator_is_used_and_an_unknown_one_is_an_error(generate: ModuleType) -> None:
    texts = [p.read_text("utf-8") for p in (ROOT / "README.md", *PAGES)]
    used = {m for text in (*texts, *generate.pages().values()) for m in re.findall(r"<!-- generated:(\w+)", text)}
    assert set(generate.GENERATORS) - used == set()
    with pytest.raises(KeyError, match="nothing"):
        generate.rendered("<!-- generated:nothing here -->", "index.md")


def test_links_are_of_the_page_that_has_them(generate: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(generate.GENERATORS, "two", lambda x: f"[a](docs:storage/{x}.md#LEC-1) [b](docs:index.md)")
    directive = "[spec](../../spec) <!-- generated:two batch -->"
    assert generate.rendered(directive, "storage/segment.md") == "[a](batch.md#LEC-1) [b](../index.md)"
    assert generate.rendered(f"x {directive}", "index.md") == f"x {directive}"


def test_what_explores_is_kept_until_the_code_changes(
    generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def witness(name: str) -> str:
        asked.append(name)
        return f"# {name}"

    monkeypatch.setattr(generate, "CACHE", tmp_path / "kept")
    monkeypatch.setattr(generate, "content", lambda: "one")
    monkeypatch.setitem(generate.GENERATORS, "witness", witness)
    assert [generate.made("witness", "a"), generate.made("witness", "a")] == ["# a", "# a"]
    assert asked == ["a"]
    monkeypatch.setattr(generate, "content", lambda: "another")
    generate.made("witness", "a")
    assert asked == ["a", "a"]
    generate.KEPT.clear()
    generate.made("witness", "a")
    generate.forget()
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_a_digest_follows_the_code(generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.py").write_text("1")
    first = generate.content()
    generate.content.cache_clear()
    (tmp_path / "models" / "a.py").write_text("2")
    assert generate.content() != first


def test_a_state_has_a_name_that_can_be_read(generate: ModuleType) -> None:
    name = generate.state_name
    assert name({"status": "IN_PROGRESS", "pauses": 0}) == "in progress"
    assert name({"status": "paused", "pauses": 2}) == "paused, 2 pauses"
    assert name({"pauses": 1}) == "1 pause"
    assert name({"taken": True, "has_a_delta": True}) == "taken, has a delta"
    assert name({"taken": False, "has_a_delta": False}) == "not taken"
    assert name({"status": None, "pauses": 0}) == "no status"


def test_a_diagram_has_a_box_for_each_state(generate: ModuleType) -> None:
    drawn = generate.machine("checkpoints:Marker", "phase,marker", "Log=1")
    boxes = re.findall(r'font-weight="600">([^<]+)<', drawn)
    assert len(boxes) == len(set(boxes)) > 2
    assert not {"True", "False", "None", "0", ""} & {w for b in boxes for w in re.split(r"[ ,]+", b)}


# ---- language --------------------------------------------------------------------------------------------------------
def test_the_pages_keep_to_their_words() -> None:
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| ([^|]+) \|$", (DOCS / "style.md").read_text("utf-8"), re.MULTILINE)
    words = [w for row in rows if row != "not" for w in row.split(", ")]
    assert {"mend", "anew", "just when"} <= set(words)
    pages = [p for p in PAGES if p != DOCS / "style.md"]
    texts = [f for ending in ("py", "j2", "html") for f in (ROOT / "src").rglob(f"*.{ending}")]
    texts += [f for layer in ("spec", "impl", "audits", "models", "proofs") for f in (ROOT / layer).rglob("*.py")]
    texts += [ROOT / "tests" / "cli" / "help.txt", ROOT / "tests" / "recordings" / "manifest.toml"]
    assert len(texts) > 250
    found = []
    for page in (*pages, *ROOT.glob("*.md"), *texts):
        text = " ".join(page.read_text("utf-8").split())
        found += [f"{page.relative_to(ROOT)}: {w}" for w in words if re.search(rf"\b{w}", text, re.IGNORECASE)]
    assert found == []


def test_an_audit_checks_and_does_not_judge() -> None:
    """Only its exit status 2 has the words of all commands."""
    texts = [DOCS / "audit.md", *(ROOT / "src" / "kafkaspec" / "audit").rglob("*.py"), *(ROOT / "audits").rglob("*.py")]
    assert len(texts) > 25
    others = re.compile(r"\S*(?<!could not )(?<!kafkaspec )\b\w*judg\w*", re.IGNORECASE)
    found = [(f.name, others.findall(" ".join(f.read_text("utf-8").split()))) for f in texts]
    assert [(name, words) for name, words in found if words] == []


# ---- the site --------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it, where a warning (a link that leads nowhere, say) is an error: not if it is
    asked to be quiet."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return out


SHOWN = {
    "rules": ("storage/leader_epochs.html", 'id="LEC-10"'),
    "operations": ("storage/leader_epochs.html", "<td><code>truncateFromEndAsyncFlush</code></td>"),
    "pinned": ("storage/leader_epochs.html", "<td>10,512</td>"),
    "witness": ("storage/leader_epochs.html", 'src="leader_epochs-1.svg"'),
    "violation": ("controller/timeline.html", "With the fault"),
    "machine": ("management/cleaner.html", 'src="cleaner-1.svg"'),
    "kills": ("storage/leader_epochs.html", "KAFKA-7415"),
    "deviation": ("deviations/TML-D1.html", "HistoricalIterator"),
    "deviations": ("deviations/index.html", 'href="TML-D1.html"'),
    "campaigns": ("targets/kafka.html", "1,020,795"),
    "protocol": ("protocol/leader_epochs.html", "<code>endOffsetFor</code>"),
    "fields": ("json.html", "<th>field</th>"),
    "output": ("engines/prove.html", "proved for every size"),
    "audited": ("audit.html", "BAT-3"),
    "attempts": ("engines/attempts.html", "baseline: n&lt;N is false at N"),
    "faults": ("engines/gate.html", "A minimal text for each"),
    "audit": ("audit.html", 'href="storage/leader_epochs.html#LEC-20"'),
    "verified": ("verified.html", "impl against spec"),
    "readme": ("index.html", "the CRC is not that of the bytes"),
    "kill_totals": ("kill-matrix.html", "<strong>all</strong>"),
    "guided_and_uniform": ("kill-matrix.html", "nine tenths"),
    "kill_bugs": ("kill-matrix.html", "KAFKA-6568"),
    "survivors": ("kill-matrix.html", "The judge does not notice"),
    "kill_rows": ("kill-matrix.html", "the first entry does not move"),
    "rule_faults": ("kill-matrix.html", "<code>audits/storage/segment.py</code>"),
    "rule_reasons": ("kill-matrix.html", "a segment of a log has a .log"),
    "blamed": ("kill-matrix.html", "cited first"),
    "coded": ("kill-matrix.html", "nobody can notice"),
}
"""By a generator: a page that has what it gives, and some of that."""


@pytest.mark.first
@pytest.mark.deep
def test_the_site(site: Path, generate: ModuleType) -> None:
    """One test, as the site is built once for it."""
    html = {str(p.relative_to(site)): p.read_text("utf-8") for p in site.rglob("*.html")}
    wrong = [f"{page}: a directive is left" for page, text in html.items() if "<!-- generated" in text]
    written = {page: text for page, text in html.items() if not page.startswith("source/")}
    wrong += [f"{page}: a link of a generator is left" for page, text in written.items() if '"docs:' in text]
    for page, text in written.items():
        outside = re.findall(r'(?:<link[^>]*href|<script[^>]*src|<img[^>]*src)="(https?://[^"]+)"', text)
        wrong += [f"{page} needs the network: {x}" for x in outside]
        wrong += [f"{page}: a drawing in the page" for _ in re.findall(r'class="diagram"[^>]*>\s*<svg', text)]
        images = re.findall(r'<img[^>]*src="([^":]+)"', text)
        wrong += [f"{page}: no picture {x}" for x in images if not (site / page).parent.joinpath(x).is_file()]
    for s in subsystems().values():
        text = html[f"{s.area}/{s.name}.html"]
        places = re.findall(r'href="\.\./(source/[^"#]+)#([^"]+)"', text)
        wrong += [f"{s.name}: no {at} in {f}" for f, at in places if f'id="{at}"' not in html.get(f, "")]
        to_spec, stated = any("source/spec/" in f for f, _ in places), any("spec" not in c.without for c in s.clauses)
        wrong += [f"{s.name}: no link to its spec" for _ in [0] if stated and not to_spec]
        wrong += [f"{s.name}: {c.id} is not there once" for c in s.clauses if text.count(f'id="{c.id}"') != 1]
        wrong += [f"{s.name}: the page of {d.id}" for d in s.spec.machine.deviations if f"/{d.id}.html" not in text]
        if s.is_component and f'href="{s.name}.html"' not in html[f"protocol/{s.name}.html"]:
            wrong += [f"protocol/{s.name}.html is not in the navigation"]
    for d in generate.all_deviations():
        wrong += [f"{d}: no link in the list" for _ in [0] if f'href="{d}.html"' not in html["deviations/index.html"]]
    assert wrong == []
    assert set(SHOWN) | {"established"} == set(generate.GENERATORS)  # that one is in the README
    assert [g for g, (page, part) in SHOWN.items() if part not in html[page]] == []
