"""A smaller text about which the engines disagree in the same way.

Works on the syntax tree and knows no types: a candidate that is no model, or about which all agree, is simply not
taken. Parts are dropped from the large to the small: actions, claims, helpers and variables, statements, then
expressions are replaced by their own parts or by constants.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator

Keeps = Callable[[str], bool]
"""Does this text show the same disagreement?"""
MOST_TRIES = 1_500


def shrunk(text: str, keeps: Keeps, tries: int = MOST_TRIES) -> str:
    """The smallest text that is found within so many tries."""
    best, left = ast.unparse(ast.parse(text)), tries
    if not keeps(best):
        return text
    smaller = True
    while smaller and left > 0:
        smaller = False
        skip, rest = 0, candidates(best)
        while left > 0:
            candidate = next(rest, None)
            if candidate is None:
                break
            left -= 1
            if len(candidate) < len(best) and keeps(candidate):
                best, smaller = candidate, True
                rest = itertools.islice(candidates(best), skip, None)  # what stood before this place was tried
            else:
                skip += 1
    return _plain(best)


def _plain(text: str) -> str:
    """With a line between the parts."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(("class ", "@dataclass")) and lines and not lines[-1].startswith("@"):
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def candidates(text: str) -> Iterator[str]:
    """Texts with one part less, the largest parts first."""
    for drop in _drops(ast.parse(text)):
        tree = ast.parse(text)
        if drop(tree):
            ast.fix_missing_locations(tree)
            try:
                yield ast.unparse(tree)
            except (ValueError, AttributeError, IndexError):
                continue


Drop = Callable[[ast.Module], bool]


def _drops(tree: ast.Module) -> Iterator[Drop]:
    """What may be changed in a tree like this one. Each is applied to a copy, where it finds its place by number."""
    for wanted in (ast.ClassDef, ast.FunctionDef, ast.If, ast.Module):
        for i, n in enumerate(ast.walk(tree)):
            if not isinstance(n, wanted):
                continue
            for name in ("body", "orelse"):
                block = getattr(n, name, None)
                for k in reversed(range(len(block or []))):
                    yield _statement(i, name, k)
    for i, n in enumerate(ast.walk(tree)):
        if isinstance(n, ast.If):
            yield _flat(i, "body")
            if n.orelse:
                yield _flat(i, "orelse")
        if isinstance(n, ast.FunctionDef):
            for k in range(1, len(n.args.args)):
                yield _argument(i, k)
    types = set(_types(tree))
    for i, n in enumerate(ast.walk(tree)):
        if id(n) in types:
            continue
        if isinstance(n, ast.comprehension):
            for k in range(len(n.ifs)):
                yield _condition(i, k)
        if isinstance(n, ast.Call) and len(n.args) > 1:
            for k in range(len(n.args)):
                yield _call_argument(i, k)
    for i, n in enumerate(ast.walk(tree)):
        if not isinstance(n, ast.expr) or isinstance(n, ast.Name | ast.Constant):
            continue
        if id(n) in types:
            yield _constant(i, "bool")
            continue
        for k in range(len(_parts(n))):
            yield _part(i, k)
        for text in ("True", "False", "0", "1", "None", "set()"):
            yield _constant(i, text)


def _types(tree: ast.Module) -> Iterator[int]:
    """The nodes of annotations, and of what is said above the classes: only a whole type is made simpler."""
    for n in ast.walk(tree):
        said = [n.annotation] if isinstance(n, ast.AnnAssign) else []
        said += [n.returns] if isinstance(n, ast.FunctionDef) and n.returns else []
        said += [n.annotation] if isinstance(n, ast.arg) and n.annotation else []
        said += [x.value for x in n.body if isinstance(x, ast.Assign)] if isinstance(n, ast.Module) else []
        yield from (id(m) for x in said for m in ast.walk(x))


def _at(tree: ast.Module, i: int) -> ast.AST:
    return list(ast.walk(tree))[i]


def _statement(i: int, name: str, k: int) -> Drop:
    def drop(tree: ast.Module) -> bool:
        block = getattr(_at(tree, i), name)
        if name == "body" and len(block) == 1:
            if isinstance(block[0], ast.Pass):
                return False
            block[0] = ast.Pass()
        else:
            del block[k]
        return True

    return drop


def _flat(i: int, name: str) -> Drop:
    def drop(tree: ast.Module) -> bool:
        n = _at(tree, i)
        for m in ast.walk(tree):
            for block_name in ("body", "orelse"):
                block = getattr(m, block_name, None)
                if isinstance(block, list) and n in block:
                    at = block.index(n)
                    block[at : at + 1] = getattr(n, name)
                    return True
        return False

    return drop


def _argument(i: int, k: int) -> Drop:
    def drop(tree: ast.Module) -> bool:
        n = _at(tree, i)
        assert isinstance(n, ast.FunctionDef)
        del n.args.args[k]
        for m in ast.walk(tree):  # a helper is called with one argument less
            if isinstance(m, ast.Call) and isinstance(m.func, ast.Attribute) and m.func.attr == n.name:
                del m.args[k - 1]
        return True

    return drop


def _condition(i: int, k: int) -> Drop:
    def drop(tree: ast.Module) -> bool:
        n = _at(tree, i)
        assert isinstance(n, ast.comprehension)
        del n.ifs[k]
        return True

    return drop


def _call_argument(i: int, k: int) -> Drop:
    def drop(tree: ast.Module) -> bool:
        n = _at(tree, i)
        assert isinstance(n, ast.Call)
        del n.args[k]
        return True

    return drop


def _parts(n: ast.expr) -> list[ast.expr]:
    """Expressions that may stand for the whole."""
    match n:
        case ast.BoolOp():
            return n.values
        case ast.Compare():
            return [n.left, *n.comparators]
        case ast.Call():
            return [*[a for a in n.args if not isinstance(a, ast.GeneratorExp)], *[k.value for k in n.keywords]]
        case ast.Attribute() | ast.Starred():
            return []
    return [x for x in ast.iter_child_nodes(n) if isinstance(x, ast.expr)]


def _replaced(tree: ast.Module, old: ast.AST, new: ast.expr) -> bool:
    for m in ast.walk(tree):
        for name, value in ast.iter_fields(m):
            if value is old:
                setattr(m, name, new)
                return True
            if isinstance(value, list) and old in value:
                value[value.index(old)] = new
                return True
    return False


def _part(i: int, k: int) -> Drop:
    def drop(tree: ast.Module) -> bool:
        n = _at(tree, i)
        assert isinstance(n, ast.expr)
        return _replaced(tree, n, _parts(n)[k])

    return drop


def _constant(i: int, text: str) -> Drop:
    def drop(tree: ast.Module) -> bool:
        return _replaced(tree, _at(tree, i), ast.parse(text, mode="eval").body)

    return drop
