"""`kafkaspec new`: a subsystem in all its folders, small and whole, to be replaced rule by rule."""

from __future__ import annotations

import ast
import keyword
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

from kafkaspec.cli import names
from kafkaspec.cli.output import show_json
from kafkaspec.contract.project import MARKER, project
from kafkaspec.contract.subsystem import COMMON, LAYERS, checkout, is_part, subsystems
from kafkaspec.errors import UserError

FILES: Mapping[str, str] = {
    "spec/{area}/{name}.py": "spec.py.j2",
    "spec/{area}/{name}_trial.py": "trial.py.j2",
    "impl/{area}/{name}.py": "impl.py.j2",
    "impl/{area}/{name}_driver.py": "driver.py.j2",
    "audits/{area}/{name}.py": "audit.py.j2",
    "audits/{area}/{name}_driver.py": "audit_driver.py.j2",
    "models/{area}/{name}.py": "model.py.j2",
    "proofs/{area}/{name}.py": "proof.py.j2",
    "tests/{area}/{name}_mutants.py": "mutants.py.j2",
    "tests/{area}/{name}_written.py": "written.py.j2",
    "tests/{area}/test_{name}.py": "test.py.j2",
    "docs/{area}/{name}.md": "page.md.j2",
}
"""Each file of a subsystem, and the template of its text."""
OF_A_PROJECT: Mapping[str, str] = {MARKER: "kafkaspec.toml.j2", "tests/conftest.py": "conftest.py.j2"}
"""What a project of the user's own has once."""
MOST_LETTERS = 30
"""Of an area and of a name: lines of the skeleton are then at most 120 columns wide."""
RESERVED = frozenset({"audit", "impl", "model", "spec"})
"""Names that commands or the skeleton's imports use for something else."""


@dataclass(frozen=True)
class Skeleton:
    """What the templates are filled with, all that they are filled with."""

    area: str
    name: str
    prefix: str

    @property
    def title(self) -> str:
        """How people write it."""
        return self.name.replace("_", " ").capitalize()

    @property
    def class_name(self) -> str:
        """Of its state in the spec, its implementation and its model."""
        return "".join(word.capitalize() for word in self.name.split("_"))


def run(area: str, name: str, prefix: str, *, json: bool) -> int:
    """Write the files of a new subsystem. Raises UserError for names that cannot be, and for a file that is there."""
    root = project() or _checkout_around(Path.cwd()) or Path.cwd()
    skeleton = checked(area, name, prefix)
    ours = root == checkout()
    written = write(texts(skeleton, root, ours=ours), root)
    if json:
        show_json([str(f) for f in written])
        return 0
    for file in written:
        print(f"written: {file}")
    print(f"see:     kafkaspec verify {name}; kafkaspec explain {prefix}-1; kafkaspec mutants {name}")
    return 0


def _checkout_around(here: Path) -> Path | None:
    root = checkout()
    return root if root is not None and here.resolve().is_relative_to(root) else None


def checked(area: str, name: str, prefix: str) -> Skeleton:
    """The skeleton of that subsystem; UserError if a name is none, or is taken."""
    for what, said in (("an area", area), ("a name", name)):
        if not re.fullmatch(rf"[a-z][a-z0-9_]{{0,{MOST_LETTERS - 1}}}", said) or keyword.iskeyword(said):
            raise UserError(
                f"{said}: {what} is at most {MOST_LETTERS} small letters, digits and _, and begins with a letter"
            )
    if not re.fullmatch(r"[A-Z]{3}", prefix):
        raise UserError(f"{prefix}: a prefix is three capital letters, such as LEC")
    if area == COMMON:
        raise UserError(f"{COMMON}: no area: what subsystems share stands there")
    if name in RESERVED or is_part(name):
        raise UserError(f"{name}: the name means something else; take another")
    known = subsystems()
    if name in known:
        raise UserError(f"{name}: there is a subsystem of that name already, in spec/{known[name].area}")
    if name in names.model_modules():
        raise UserError(f"{name}: there is a model of that name already, {names.model_modules()[name]}")
    taken = next((s.name for s in known.values() if s.prefix == prefix), None)
    if taken is not None:
        raise UserError(f"{prefix}: the clauses of {taken} have that prefix already")
    skeleton = Skeleton(area, name, prefix)
    if skeleton.class_name in _classes():
        raise UserError(f"{name}: {skeleton.class_name} is another class in the skeleton; take another name")
    return skeleton


def _classes() -> frozenset[str]:
    """The names in the skeleton's files, that of its own class excepted."""
    one = Skeleton("a", "b", "ABC")
    trees = [ast.parse(filled(template, one)) for path, template in FILES.items() if path.endswith(".py")]
    used = {n.id for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return frozenset({*used, *keyword.kwlist} - {one.class_name})


def texts(skeleton: Skeleton, root: Path, *, ours: bool) -> dict[str, str]:
    """The files to write, by their paths below the root: those of the subsystem, and what its area and its project have
    once, where it is not there yet. `ours`: in kafkaspec's checkout, whose pages show rules and tables."""
    out = {path.format(**asdict(skeleton)): filled(template, skeleton) for path, template in FILES.items()}
    if ours:
        out[f"docs/{skeleton.area}/{skeleton.name}.md"] += filled("tables.md.j2", skeleton)
    shared = {} if ours else {path: filled(template, skeleton) for path, template in OF_A_PROJECT.items()}
    packages = (*LAYERS, *(["tests"] if ours else []))
    shared |= {f"{package}/{skeleton.area}/__init__.py": "" for package in packages}
    return {path: text for path, text in shared.items() if not (root / path).exists()} | out


def filled(template: str, skeleton: Skeleton) -> str:
    """A template's text, for that subsystem."""
    import jinja2

    text = resources.files("kafkaspec.cli").joinpath("skeleton", template).read_text("utf-8")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)
    return environment.from_string(text).render(asdict(skeleton), title=skeleton.title, class_name=skeleton.class_name)


def write(texts: Mapping[str, str], root: Path) -> list[Path]:
    """Write the files; none if one of them is there already, which is a UserError. Their paths, as the current folder
    sees them."""
    there = [path for path in texts if (root / path).exists()]
    if there:
        raise UserError(f"{_short(root / there[0])}: is there already; nothing was written")
    folders = [root / folder for path in texts for folder in Path(path).parents]
    if files := [folder for folder in folders if folder.exists() and not folder.is_dir()]:
        raise UserError(f"{_short(files[0])}: is no folder; nothing was written")
    for path, text in texts.items():
        try:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            with (root / path).open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as e:
            raise UserError(f"{root / path}: cannot be written: {(e.strerror or str(e)).lower()}") from None
    return [_short(root / path) for path in texts]


def _short(path: Path) -> Path:
    return Path(os.path.relpath(path))
