"""What people type, read: models, sizes, seed ranges, files.

Nothing is imported before it is asked for: the modules of `kafkaspec.models` are listed by their files, not by loading
them, so that one command pays for one model.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from kafkaspec.contract.source import decoded, tree_of
from kafkaspec.errors import UserError, unknown

if TYPE_CHECKING:
    from kafkaspec.explore.checked import Expectation
    from kafkaspec.language import LoadedModel

Sizes = dict[str, int | bool]
MOST_TEXT: Final = 16 << 20
"""Bytes of a file with models."""


def model_modules() -> dict[str, str]:
    """Name -> module of every model file that comes with kafkaspec, subsystems first, then the examples."""
    import kafkaspec.models

    out: dict[str, str] = {}
    areas = [m.name for m in pkgutil.iter_modules(kafkaspec.models.__path__) if m.ispkg]
    for area in sorted(areas, key=lambda a: (a == "examples", a)):
        package = importlib.import_module(f"kafkaspec.models.{area}")
        for m in pkgutil.iter_modules(package.__path__):
            out.setdefault(m.name, f"{package.__name__}.{m.name}")
    return out


def find_models(text: str) -> list[Expectation]:
    """The models that `text` names, each with its pinned sizes and counts (no sizes, if none are pinned).

    `text` is the name of a subsystem or example ("cleaner"), a module ("kafkaspec.models.examples.two_phase") or a
    file ("my/lease.py"), each with ":Class" where only one model of several is meant; or the class alone ("TwoPhase").
    Raises UserError: no such model, or a module that cannot be loaded, with file and line.
    """
    where, _, name = text.partition(":")
    if where not in model_modules() and re.fullmatch(r"[A-Z]\w*", text):
        return _by_class(text)
    by_name = _models(_module(where))
    if not by_name:
        raise UserError(f"{where}: no model in it (a class that extends kafkaspec.language.Model)")
    if not name:
        return [c for several in by_name.values() for c in several]
    if name not in by_name:
        raise unknown(f"model of {where}", name, by_name)
    return by_name[name]


def one_each(several: Iterable[Expectation]) -> list[Expectation]:
    """Each model once, with the first of its pinned sizes."""
    return list({c.name: c for c in reversed(list(several))}.values())[::-1]


def begins_with(model: LoadedModel) -> Mapping[str, Sequence[str]]:
    """The claims among which the proofs of a model's claims are looked for first, as the module of its proofs says;
    none if there is no such module."""
    of = model.cls.__module__
    name = of.replace("kafkaspec.models.", "kafkaspec.proofs.", 1)
    try:
        there = name != of and importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # not even its area
        there = False
    proofs = importlib.import_module(name).PROOFS if there else ()
    return next((p.begins_with for p in proofs if p.name == model.name), {})


def _models(module: ModuleType) -> dict[str, list[Expectation]]:
    """The models of a module by their class: those that it pins, or else all of them, without sizes."""
    from kafkaspec.explore.checked import Expectation
    from kafkaspec.language import Model

    out: dict[str, list[Expectation]] = {}
    for c in getattr(module, "MODELS", ()):
        out.setdefault(c.name, []).append(c)
    for cls in vars(module).values():
        if inspect.isclass(cls) and issubclass(cls, Model) and cls.__module__ == module.__name__:
            out.setdefault(cls.__name__, [Expectation(cls, sizes={}, distinct=0, generated=0, depth=0)])
    return out


def _by_class(name: str) -> list[Expectation]:
    found = {where: _models(importlib.import_module(where)) for where in model_modules().values()}
    having = [where for where, models in found.items() if name in models]
    if not having:
        raise unknown("model", name, [*model_modules(), *(n for models in found.values() for n in models)])
    if len(having) > 1:
        raise UserError(f"several models are named {name}: {', '.join(f'{w}:{name}' for w in having)}")
    return found[having[0]][name]


def _module(where: str) -> ModuleType:
    known = model_modules()
    if where in known:
        return importlib.import_module(known[where])
    if where.endswith(".py") or "/" in where:
        return module_of_file(Path(where))
    if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", where):
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as e:
            if e.name is None or not where.startswith(e.name):
                raise UserError(f"{where}: cannot be loaded: {e}") from e
            raise UserError(f"no module named '{e.name}'") from e
    raise unknown("model", where, known)


def module_of_file(path: Path) -> ModuleType:
    """A file of Python, loaded as a module of its own. Raises UserError, with file and line."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UserError(f"{path}: not a regular file")
    check_readable(path)
    _check_text(path)
    name = f"kafkaspec_model_{re.sub(r'[^A-Za-z0-9]', '_', path.stem)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # the file may import its neighbours, and hides no library
    try:
        spec.loader.exec_module(module)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as e:  # sys.exit() too: the file would end the command, with its own status
        raise UserError(_what_failed(e, path)) from e
    return module


def _check_text(path: Path) -> None:
    """UserError, with the line, for a file that Python cannot read as a text of its own."""
    size = path.stat().st_size
    if size > MOST_TEXT:
        raise UserError(f"{path}: {size:,} bytes, and a text has at most {MOST_TEXT:,}")
    tree_of(decoded(path.read_bytes(), str(path)), str(path))


def _what_failed(e: BaseException, path: Path) -> str:
    """The error that a file's text raised, with file and line."""
    if isinstance(e, SyntaxError):
        return f"{e.filename or path}" + (f":{e.lineno}" if e.lineno is not None else "") + f": {e.msg}"
    frames = [f for f in traceback.extract_tb(e.__traceback__) if Path(f.filename).resolve() == path.resolve()]
    here = f"{path}:{frames[-1].lineno if frames else 1}"
    try:
        said = str(e)
    except Exception:
        said = ""
    if isinstance(e, UserError):
        return said if re.match(r".+\.py:\d+: ", said) else f"{here}: {said}"
    return f"{here}: {type(e).__name__}" + (f": {said}" if said else "")


def check_readable(path: Path) -> None:
    """UserError unless `path` is a file that can be opened."""
    try:
        with path.open("rb"):
            pass
    except IsADirectoryError:
        raise UserError(f"{path}: is a directory; name the files in it") from None
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as e:
        raise UserError(f"{path}: {(e.strerror or str(e)).lower()}") from None


def sizes(
    words: Iterable[str], model: LoadedModel, pinned: Mapping[str, int | bool], *, complete: bool = True
) -> Sizes:
    """`--size Partition=3 --size FENCED=true` over the pinned sizes; all of the model's, if they must be `complete`.

    Raises UserError for a word that is no NAME=NUMBER, an unknown name, a size below 1, and sizes that are missing.
    """
    out: Sizes = dict(pinned)
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"--size {word}: not of the form NAME=NUMBER")
        if name not in model.sizes:
            raise unknown(f"size of {model.name}", name, model.sizes)
        if model.sizes[name] == "flag":
            if value.lower() not in ("true", "false"):
                raise UserError(f"--size {word}: {name} is a flag: true or false")
            out[name] = value.lower() == "true"
        elif not re.fullmatch(r"[1-9][0-9]{0,8}", value):
            raise UserError(f"--size {word}: not a whole number from 1 to 999999999")
        else:
            out[name] = int(value)
    missing = [n for n in model.sizes if n not in out]
    if missing and complete:
        example = " ".join(f"--size {n}={'true' if model.sizes[n] == 'flag' else 2}" for n in missing)
        raise UserError(f"{model.name} needs {'sizes' if len(missing) > 1 else 'a size'}: {example}")
    return out


def seeds(text: str) -> range:
    """`0:1000` (the end not included) or one number. Raises UserError."""
    m = re.fullmatch(r"([0-9]{1,18})(?::([0-9]{1,18}))?", text)
    if m is None:
        raise UserError(f"--seeds {text}: not of the form FIRST:END, such as 0:1000")
    first = int(m[1])
    end = first + 1 if m[2] is None else int(m[2])
    if end <= first:
        raise UserError(f"--seeds {text}: no seed in it (the end is not included)")
    return range(first, end)
