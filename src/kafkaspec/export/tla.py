"""A model as a TLA+ module and a configuration, so that TLC can be the second opinion on every count.

Values: a sort is a constant set of model values, named as in our traces; an enum's member is a string; `None` is the
model value NONE; a map is a function; sets, sequences and records are TLA+'s own.

TLC takes each branch of a disjunction that stands in an action as a successor of its own. A guard is a test, so one
that holds a disjunction is written `(...) = TRUE`; TLC's generated count is then ours: one for each action and
valuation of its parameters whose guard holds.
"""

from __future__ import annotations

import enum
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from kafkaspec.language.expr import BINDERS, FALSE, TRUE, Expr, and_, bound, not_, or_
from kafkaspec.language.model import Action, LeadsTo, LoadedModel, Update
from kafkaspec.language.types import T

_RESERVED = frozenset(
    """ACTION ASSUME ASSUMPTION AXIOM BOOLEAN BY CASE CHOOSE CONSTANT CONSTANTS COROLLARY DEF DEFINE DEFS DOMAIN ELSE
    ENABLED EXCEPT EXTENDS FALSE HAVE HIDE IF IN INSTANCE LAMBDA LEMMA LET LOCAL MODULE NEW OBVIOUS OMITTED ONLY
    OTHER PICK PROOF PROPOSITION PROVE QED RECURSIVE SF_ STATE STRING SUBSET SUFFICES TAKE TEMPORAL THEN THEOREM
    TRUE UNCHANGED UNION USE VARIABLE VARIABLES WF_ WITH WITNESS Int Nat Seq Len Append Head Tail SubSeq
    SelectSeq Cardinality IsFiniteSet Init Next Spec Fairness TypeOK vars NONE""".split()  # noqa: SIM905
)

_HELPERS = {
    "BoundedSeq": "BoundedSeq(S, most) == UNION {[1..length -> S] : length \\in 0..most}",
    "Take": "Take(q, n) == SubSeq(q, 1, IF n < Len(q) THEN n ELSE Len(q))",
    "Greatest": "Greatest(S, default) == IF S = {} THEN default ELSE CHOOSE n \\in S : \\A m \\in S : m <= n",
    "Least": "Least(S, default) == IF S = {} THEN default ELSE CHOOSE n \\in S : \\A m \\in S : n <= m",
}

# How tightly TLA+'s operators bind: a text is put in parentheses where its place wants a tighter one.
_OPEN, _IMPLIES, _EQUIV, _JUNCTION, _NOT, _COMPARE, _SET, _INTERVAL, _ADD, _SUB, _PRIME, _ATOM = (
    0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 15, 17,
)  # fmt: skip

_PLAIN = {"const": 0, "none": 0, "size": 1, "bound": 2}
"""The plainest expressions, plainest first."""

_WIDTH = 110


def tla(
    model: LoadedModel, sizes: Mapping[str, int | bool], *, ghosts: bool = False, deadlock: bool = False
) -> tuple[str, str]:
    """The TLA+ module and the text of TLC's configuration for these sizes.

    `ghosts` keeps the model's ghost variables; without them, claims that speak of them are left out. `deadlock` says
    that the model may end. Raises UserError for sizes that do not fit.
    """
    model.check_sizes(sizes)
    return _Module(model, sizes, ghosts).texts(deadlock)


class _Module:
    """The module being written."""

    def __init__(self, model: LoadedModel, sizes: Mapping[str, int | bool], ghosts: bool) -> None:
        self.model, self.sizes = model, sizes
        self.vars = {n: t for n, t in model.vars.items() if ghosts or n not in model.ghosts}
        claims = {**model.invariants, **model.lemmas, **model.steps, **model.witnesses, **model.leads_to}
        names = [*model.vars, *[a.name for a in model.actions], *claims, *model.sizes]
        self.names = {n: n + "_" if n in _RESERVED or n in _HELPERS else n for n in names}
        self.taken = _RESERVED | set(_HELPERS) | set(self.names.values())
        self.scope: dict[str, str] = {}
        self.lets: dict[int, str] = {}
        self.used: set[str] = set()
        self.starting = False
        """While the start is written, a variable that is read is the first value of its type."""

    # ---- the whole
    def texts(self, deadlock: bool) -> tuple[str, str]:
        """(module, configuration)."""
        m = self.model
        parts = [f"vars == <<{', '.join(map(self.name, self.vars))}>>", self.type_invariant(), self.start()]
        parts += [self.action(a) for a in m.actions]
        parts.append(self.following())
        fairness = self.fairness()
        if fairness:
            parts.append("Fairness ==\n" + "\n".join(f"    /\\ {f}" for f in fairness))
        parts.append("Spec == Init /\\ [][Next]_vars" + (" /\\ Fairness" if fairness else ""))
        invariants, properties, left_out = ["TypeOK"], [], []
        for kind, claims in (("invariant", m.invariants), ("lemma", m.lemmas), ("witness", m.witnesses)):
            for c in claims.values():
                if not self.kept(c.expr):
                    left_out.append(c.name)
                    continue
                also = (
                    f" Must be reachable: TLC breaks the invariant ~{self.name(c.name)}." if kind == "witness" else ""
                )
                parts.append(self.definition(c.name, c.expr, self.comment(c.clauses, "", c.doc + also)))
                if kind != "witness":
                    invariants.append(self.name(c.name))
        for c in m.steps.values():
            if not self.kept(c.expr):
                left_out.append(c.name)
                continue
            comment = self.comment(c.clauses, "", c.doc)
            parts.append(f"{comment}{self.name(c.name)} ==\n    [][{self.block(c.expr, 7)}]_vars")
            properties.append(self.name(c.name))
        for lt in m.leads_to.values():
            if not (self.kept(lt.trigger) and self.kept(lt.goal)):
                left_out.append(lt.name)
                continue
            parts.append(self.promise(lt))
            properties.append(self.name(lt.name))
        if left_out:
            parts.append(f"\\* Left out, for they speak of ghosts: {', '.join(left_out)}.")
        constants = [self.name(n) for n in m.sizes] + (["NONE"] if "NONE" in self.used else [])
        head = [f" MODULE {m.name} ".center(100, "-")]
        if m.doc:
            head.append(textwrap.fill(m.doc, _WIDTH, initial_indent="\\* ", subsequent_indent="\\* "))
        head.append("EXTENDS Integers, Sequences, FiniteSets")
        head += [_HELPERS[h] for h in _HELPERS if h in self.used]
        if constants:
            head.append(f"CONSTANTS {', '.join(constants)}")
        head.append(f"VARIABLES {', '.join(map(self.name, self.vars))}")
        module = "\n\n".join([*head, *parts]) + "\n" + "=" * 100 + "\n"
        return module, self.configuration(deadlock, invariants, properties)

    def configuration(self, deadlock: bool, invariants: Sequence[str], properties: Sequence[str]) -> str:
        """TLC's configuration."""
        lines = ["SPECIFICATION Spec", "CONSTANTS"]
        for name, kind in self.model.sizes.items():
            value = self.sizes[name]
            if kind == "sort":
                text = "{" + ", ".join(f"{name[0].lower()}{i}" for i in range(int(value))) + "}"
            else:
                text = str(value).upper()
            lines.append(f"    {self.name(name)} = {text}")
        if "NONE" in self.used:
            lines.append("    NONE = NONE")
        if lines[-1] == "CONSTANTS":
            lines.pop()
        lines += [f"INVARIANT {n}" for n in invariants] + [f"PROPERTY {n}" for n in properties]
        lines.append(f"CHECK_DEADLOCK {str(not deadlock).upper()}")
        return "\n".join(lines) + "\n"

    def name(self, n: str) -> str:
        """A name of the model, where it is TLA+'s own with an underscore."""
        return self.names[n]

    def kept(self, e: Expr) -> bool:
        """Does the expression speak of kept variables alone?"""
        return all(x.aux in self.vars for x in _nodes(e) if x.op in ("var", "nextvar"))

    def comment(self, clauses: Iterable[str], who: str, doc: str) -> str:
        """The lines over a definition: clause ids, who takes the action, its docstring."""
        first = ", ".join([*clauses, *([who] if who else [])])
        text = f"{first}: {doc}" if first and doc.strip() else first or doc
        if not text.strip():
            return ""
        return textwrap.fill(text.strip(), _WIDTH, initial_indent="\\* ", subsequent_indent="\\* ") + "\n"

    # ---- parts
    def type_invariant(self) -> str:
        lines = [f"    /\\ {self.name(n)} \\in {self.typeset(t, _COMPARE + 1)}" for n, t in self.vars.items()]
        return "TypeOK ==\n" + "\n".join(lines)

    def start(self) -> str:
        a = self.model.initial
        with self.bound(a.params):
            self.starting = True
            lines = [self.guard(g) for g in a.guard if self.kept(g)]
            for n, t in self.vars.items():
                updates = [u for u in a.updates if u.var == n]
                lines.append(f"{self.name(n)} = {self.after(updates, self.first(t), 10 + len(self.name(n)))}")
            self.starting = False
            body = "\n".join(f"    /\\ {x}" for x in lines)
            if a.params:
                quantifier = "".join(f"\\E {self.member(p)} :\n    " for p in a.params).rstrip()
                return f"Init ==\n    {quantifier}\n" + body
            return "Init ==\n" + body

    def action(self, a: Action) -> str:
        with self.bound(a.params):
            names = [self.scope[p.aux] for p in a.params]
            possible = [u for u in a.updates if not _impossible(u.cond)]
            updates = {n: us for n in self.vars if (us := [u for u in possible if u.var == n])}
            whole = [*a.guard, *[e for us in updates.values() for u in us for e in (*u.keys, u.cond, u.value)]]
            with self.shared(whole, {p.aux for p in a.params}) as lets:
                lines = [self.guard(g) for g in {g.id: g for g in a.guard}.values() if self.kept(g)]
                for n, us in updates.items():
                    lines.append(f"{self.name(n)}' = {self.after(us, self.name(n), 11 + len(self.name(n)))}")
                rest = [self.name(n) for n in self.vars if n not in updates]
                if rest:
                    lines.append(f"UNCHANGED <<{', '.join(rest)}>>")
                head = self.name(a.name) + (f"({', '.join(names)})" if names else "")
                body = "\n".join(f"    /\\ {x}" for x in lines)
                return f"{self.comment(a.clauses, a.who, a.doc)}{head} ==\n{lets}{body}"

    def following(self) -> str:
        lines = []
        for a in self.model.actions:
            with self.bound(a.params):
                lines.append(f"    \\/ {self.some(a, a.params)}")
        return "Next ==\n" + "\n".join(lines)

    def some(self, a: Action, over: Sequence[Expr]) -> str:
        """The action, for some value of the parameters in `over`; the names of all of them are in scope."""
        names = [self.scope[p.aux] for p in a.params]
        call = self.name(a.name) + (f"({', '.join(names)})" if names else "")
        return (f"\\E {', '.join(map(self.member, over))} : " if over else "") + call

    def fairness(self) -> list[str]:
        out = []
        for a in self.model.actions:
            if not a.fair:
                continue
            with self.bound(a.params):
                per = [p for p in a.params if a.parameter(p) in a.per]
                rest = [p for p in a.params if a.parameter(p) not in a.per]
                each = f"\\A {', '.join(map(self.member, per))} : " if per else ""
                out.append(f"{each}{'WF' if a.fair == 'weak' else 'SF'}_vars({self.some(a, rest)})")
        return out

    def promise(self, lt: LeadsTo) -> str:
        with self.bound(lt.params):
            each = f"\\A {', '.join(map(self.member, lt.params))} :\n        " if lt.params else ""
            trigger, goal = f"({self.text(lt.trigger)})", f"({self.text(lt.goal)})"
            between = " " if len(trigger) + len(goal) < _WIDTH - 12 else "\n        "
            formula = f"{each}{trigger}{between}~> {goal}"
            return f"{self.comment(lt.clauses, '', lt.doc)}{self.name(lt.name)} ==\n    {formula}"

    def definition(self, name: str, e: Expr, comment: str) -> str:
        with self.shared([e], set()) as lets:
            parts = [f"/\\ {self.block(x, 7)}" for x in e.args] if e.op == "and" else [self.block(e, 4)]
            return "\n    ".join([f"{comment}{self.name(name)} ==\n{lets}".rstrip("\n"), *parts])

    def guard(self, g: Expr) -> str:
        return f"({self.text(g)}) = TRUE" if _splits(g) else self.block(g, 7)

    # ---- the state after
    def after(self, updates: Sequence[Update], before: str, column: int) -> str:
        """The value of a variable after its updates, of which later ones win, written from a column on."""
        out, i = before, 0
        while i < len(updates):
            j = i
            if not updates[i].keys:
                while j < len(updates) and not updates[j].keys:
                    j += 1
                out = _lines(self.chosen(updates[i:j], out), column)
                out = f"({out})" if j < len(updates) else out
                i = j
                continue
            places = []
            while i < len(updates) and updates[i].keys:
                keys, j = updates[i].keys, i
                while j < len(updates) and [k.id for k in updates[j].keys] == [k.id for k in keys]:
                    j += 1
                path = "".join(f"[{self.text(k)}]" for k in keys)
                value = self.chosen(updates[i:j], "@")
                line = f"!{path} = {' '.join(value)}"
                if column + len(out) + len(line) > _WIDTH:
                    line = f"!{path} =\n{' ' * (column + 4)}{_lines(value, column + 4)}"
                places.append(line)
                i = j
            out = f"[{out} EXCEPT {', '.join(places)}]"
        return out

    def chosen(self, updates: Sequence[Update], otherwise: str) -> list[str]:
        """IF ... THEN ..., ELSE IF ..., ELSE ...: the value of the last update whose condition holds. Updates that
        exclude each other keep the order of the model's text, and a condition is not asked twice."""
        options = [(u.cond, u.value) for u in updates]
        if not _exclusive([c for c, _ in options]):
            options.reverse()
        known: dict[int, bool] = {}
        out: list[str] = []
        for c, value in options:
            parts = [x for x in _parts(c) if known.get(x.id) is not True]
            if any(known.get(x.id) is False for x in parts):
                continue
            rest = and_(*parts)
            if rest is TRUE:
                otherwise = self.text(value, _OPEN if out or otherwise == "@" else _COMPARE + 1)
                break
            out.append(f"{'ELSE ' if out else ''}IF {self.text(rest)} THEN {self.text(value)}")
            known[rest.id], known[not_(rest).id] = False, True
        return [*out, f"{'ELSE ' if out else ''}{otherwise}"]

    # ---- types
    def typeset(self, t: T, tight: int = _OPEN) -> str:
        """The set of a type's values."""
        match t.kind:
            case "bool":
                return "BOOLEAN"
            case "int":
                return "Int"
            case "sort":
                return self.name(t.name)
            case "enum":
                return "{" + ", ".join(f'"{m.name}"' for m in cast(type[enum.Enum], t.cls)) + "}"
            case "range":
                if t.hi is None:
                    return "Nat" if t.lo == 0 else f"Nat \\ 0..({self.limit(t.lo)} - 1)"
                return _in(f"{self.limit(t.lo)}..{self.limit(t.hi)}", _INTERVAL, tight)
            case "option":
                self.used.add("NONE")
                return _in(f"{self.typeset(t.item, _SET + 1)} \\cup {{NONE}}", _SET, tight)
            case "set":
                every = f"SUBSET {self.typeset(t.item, _ATOM)}"
                return _in(f"({every}) \\ {{{{}}}}" if t.nonempty else every, _SET, tight)
            case "map":
                return f"[{self.typeset(t.domain)} -> {self.typeset(t.item)}]"
            case "seq":
                self.used.add("BoundedSeq")
                return f"BoundedSeq({self.typeset(t.item)}, {self.limit(t.hi)})"
            case "rec":
                return "[" + ", ".join(f"{n} : {self.typeset(f)}" for n, f in t.fields) + "]"

    def limit(self, x: int | Expr) -> str:
        return str(x) if isinstance(x, int) else self.text(x, _INTERVAL + 1)

    def first(self, t: T) -> str:
        """The value of a variable that the start does not assign."""
        match t.kind:
            case "bool":
                return "FALSE"
            case "enum":
                return f'"{next(iter(cast(type[enum.Enum], t.cls))).name}"'
            case "option":
                self.used.add("NONE")
                return "NONE"
            case "set":
                return "{}"
            case "seq":
                return "<<>>"
            case "map":
                key = bound(t.domain, "k")
                with self.bound([key]):
                    return f"[{self.member(key)} |-> {self.first(t.item)}]"
            case "rec":
                return "[" + ", ".join(f"{n} |-> {self.first(f)}" for n, f in t.fields) + "]"
        return self.limit(t.lo) if t.kind == "range" else "0"

    # ---- names in scope
    def fresh(self, wanted: str) -> str:
        """A bound name that nothing in scope has: TLA+ has no shadowing."""
        taken = {*self.taken, *self.scope.values(), *self.lets.values()}
        name, n = wanted, 2
        while name in taken:
            name, n = f"{wanted}_{n}", n + 1
        return name

    @contextmanager
    def bound(self, params: Iterable[Expr]) -> Any:
        """Give names to bound expressions while their scope is written."""
        params = list(params)
        for p in params:
            self.scope[p.aux] = self.fresh(str(p.aux).rpartition("_")[0])
        try:
            yield
        finally:
            for p in params:
                del self.scope[p.aux]

    def member(self, p: Expr) -> str:
        return f"{self.scope[p.aux]} \\in {self.typeset(p.t, _COMPARE + 1)}"

    @contextmanager
    def shared(self, whole: Sequence[Expr], free: set[str]) -> Any:
        """LET definitions for the large expressions that a text would else repeat: yields their lines."""
        count: dict[int, int] = {}
        order: list[Expr] = []

        def walk(e: Expr) -> None:
            count[e.id] = count.get(e.id, 0) + 1
            if count[e.id] == 1:
                for x in e.args:
                    walk(x)
                order.append(e)

        for e in whole:
            walk(e)
        lines = []
        for e in order:
            if count[e.id] > 1 and e.free <= free and _weight(e) >= 12 and self.kept(e):
                text = self.text(e)
                self.lets[e.id] = name = self.fresh("test" if e.t.kind == "bool" else "it")
                lines.append(f"{name} == {text}")
        try:
            yield "".join(f"    {'LET' if i == 0 else '   '} {x}\n" for i, x in enumerate(lines)) + (
                "    IN\n" if lines else ""
            )
        finally:
            self.lets.clear()

    # ---- expressions
    def text(self, e: Expr, tight: int = _OPEN) -> str:
        """An expression, in parentheses if its place binds tighter than it does."""
        if e.id in self.lets:
            return self.lets[e.id]
        text, binds = self.binder(e) if e.op in BINDERS else self.plain(e)
        return _in(text, binds, tight)

    def block(self, e: Expr, column: int) -> str:
        """An expression that stands alone from a column on: in one line if it is short."""
        line = self.text(e)
        if column + len(line) <= _WIDTH or e.id in self.lets:
            return line
        below = "\n" + " " * column
        match e.op:
            case "and":
                return below.join(f"/\\ {self.block(x, column + 3)}" for x in e.args)
            case "or" if not _among(e):
                premise, conclusion = _implication(e)
                if premise is not TRUE:
                    first = self.text(premise, _IMPLIES + 1)
                    return f"{first} =>{below}    {self.block(conclusion, column + 4)}"
                return below.join(f"\\/ {self.branch(x, column + 3)}" for x in _branches(e))
            case "forall" | "exists":
                with self.quantified(e) as (head, body):
                    return f"{head}{below}    {self.block(body, column + 4)}"
            case "ite":
                c, x, y = (self.block(x, column + 5) for x in e.args)
                return f"IF {c}{below}THEN {x}{below}ELSE {y}"
        return line

    @contextmanager
    def quantified(self, e: Expr) -> Any:
        """A quantifier and those of its kind right within, as one: yields the text up to the colon, and the body."""
        variables, body = [e.args[0]], _body(e)
        while body.op == e.op and body.id not in self.lets:
            variables.append(body.args[0])
            body = _body(body)
        with self.bound(variables):
            yield f"\\{'A' if e.op == 'forall' else 'E'} {', '.join(map(self.member, variables))} :", body

    def binder(self, e: Expr) -> tuple[str, int]:
        if e.op in ("forall", "exists"):
            with self.quantified(e) as (head, body):
                return f"{head} {self.text(body)}", _OPEN
        v = e.args[0]
        with self.bound([v]):
            member, body = self.member(v), self.text(_body(e))
        if e.op == "mapof":
            return f"[{member} |-> {body}]", _ATOM
        whole = _body(e)
        chosen = "{}" if whole is FALSE else self.typeset(v.t) if whole is TRUE else f"{{{member} : {body}}}"
        match e.op:
            case "setof":
                return chosen, _ATOM
            case "count":
                return f"Cardinality({chosen})", _ATOM
        helper = e.op.capitalize()
        self.used.add(helper)
        return f"{helper}({chosen}, {self.text(e.args[2])})", _ATOM

    def plain(self, e: Expr) -> tuple[str, int]:
        a = e.args
        match e.op:
            case "const":
                return _constant(e), _SUB if e.t.numeric and e.aux < 0 else _ATOM
            case "var" if self.starting:
                return self.first(e.t), _ATOM
            case "size" | "var":
                return self.name(e.aux), _ATOM
            case "nextvar":
                return self.name(e.aux) + "'", _PRIME
            case "bound":
                return self.scope[e.aux], _ATOM
            case "idx":
                return f"{self.text(a[0], _PRIME)}[{self.text(a[1])}]", _ATOM
            case "at":
                return f"{self.text(a[0], _PRIME)}[{self.position(a[1])}]", _ATOM
            case "field":
                return f"{self.text(a[0], _PRIME)}.{a[0].t.fields[e.aux][0]}", _ATOM
            case "len":
                return f"Len({self.text(a[0])})", _ATOM
            case "append":
                return f"Append({self.text(a[0])}, {self.text(a[1])})", _ATOM
            case "take":
                self.used.add("Take")
                return f"Take({self.text(a[0])}, {self.text(a[1])})", _ATOM
            case "drop":
                q = self.text(a[0])
                return f"SubSeq({q}, {self.position(a[1])}, Len({q}))", _ATOM
            case "and":
                return " /\\ ".join(self.text(x, _JUNCTION + 1) for x in a), _JUNCTION
            case "or":
                return self.membership("\\in", e.args) if _among(e) else self.disjunction(e)
            case "not":
                return self.negation(a[0])
            case "ite":
                c, x, y = map(self.text, a)
                return f"IF {c} THEN {x} ELSE {y}", _OPEN
            case "eq" if a[0].t.kind == "bool":
                return f"{self.text(a[0], _EQUIV + 1)} <=> {self.text(a[1], _EQUIV + 1)}", _EQUIV
            case "eq" | "lt" | "le" | "in" | "subset":
                sign = {"eq": "=", "lt": "<", "le": "<=", "in": "\\in", "subset": "\\subseteq"}[e.op]
                return self.comparison(sign, a)
            case "add" | "sub":
                return self.sum(e)
            case "none":
                self.used.add("NONE")
                return "NONE", _ATOM
            case "some" | "get":
                return self.text(a[0], _ATOM), _ATOM
            case "empty":
                return "{}", _ATOM
            case "emptyseq":
                return "<<>>", _ATOM
            case "full":
                return self.typeset(e.t.item), _ATOM
            case "with" | "without":
                return self.elements(e)
            case "union" | "diff" | "inter":
                sign = {"union": "\\cup", "diff": "\\", "inter": "\\cap"}[e.op]
                return f"{self.text(a[0], _SET + 1)} {sign} {self.text(a[1], _SET + 1)}", _SET
            case "card":
                return f"Cardinality({self.text(a[0])})", _ATOM
            case "rec":
                fields = zip(e.t.fields, a, strict=True)
                return "[" + ", ".join(f"{n} |-> {self.text(x)}" for (n, _), x in fields) + "]", _ATOM
        raise NotImplementedError(f"no TLA+ for the operation {e.op}")

    def comparison(self, sign: str, a: Sequence[Expr]) -> tuple[str, int]:
        """A comparison, the plainer side on the right."""
        left, right = map(_plainness, a)
        if left < right and sign in (("=", "#", "<", "<=") if left < _PLAIN["bound"] else ("=", "#")):
            sign, a = {"<": ">", "<=": ">="}.get(sign, sign), a[::-1]
        return f"{self.text(a[0], _COMPARE + 1)} {sign} {self.text(a[1], _COMPARE + 1)}", _COMPARE

    def sum(self, e: Expr) -> tuple[str, int]:
        """Additions and subtractions, their constants gathered: (E + 1) - 1 is E."""
        constant = 0
        while e.op in ("add", "sub") and e.args[1].op == "const":
            constant += e.args[1].aux if e.op == "add" else -e.args[1].aux
            e = e.args[0]
        if constant:
            binds = _ADD if constant > 0 else _SUB
            return f"{self.text(e, binds)} {'+' if constant > 0 else '-'} {abs(constant)}", binds
        if e.op not in ("add", "sub"):
            return self.text(e, _ATOM), _ATOM
        sign, binds = ("+", _ADD) if e.op == "add" else ("-", _SUB)
        return f"{self.text(e.args[0], binds)} {sign} {self.text(e.args[1], binds + 1)}", binds

    def elements(self, e: Expr) -> tuple[str, int]:
        """Elements added to or taken from a set, together: {a, b} \\cup {c} is {a, b, c}."""
        op, sign, named = e.op, "\\cup" if e.op == "with" else "\\", list[str]()
        while e.op == op:
            named.insert(0, self.text(e.args[1]))
            e = e.args[0]
        few = "{" + ", ".join(named) + "}"
        if op == "with" and e.op == "empty":
            return few, _ATOM
        return f"{self.text(e, _SET + 1)} {sign} {few}", _SET

    def membership(self, sign: str, equal: Sequence[Expr]) -> tuple[str, int]:
        """x = a \\/ x = b is x \\in {a, b}."""
        sides = [_sides(x) for x in equal]
        values = "{" + ", ".join(self.text(v) for _, v in sides) + "}"
        return f"{self.text(sides[0][0], _COMPARE + 1)} {sign} {values}", _COMPARE

    def negation(self, e: Expr) -> tuple[str, int]:
        match e.op:
            case "or" if _among(e):
                return self.membership("\\notin", e.args)
            case "eq" if e.args[0].t.kind != "bool":
                return self.comparison("#", e.args)
            case "in":
                return self.comparison("\\notin", e.args)
            case "lt":
                return self.comparison("<=", e.args[::-1])
            case "le":
                return self.comparison("<", e.args[::-1])
        return f"~{self.text(e, _NOT + 1)}", _NOT

    def disjunction(self, e: Expr) -> tuple[str, int]:
        premise, conclusion = _implication(e)
        if premise is not TRUE:
            return f"{self.text(premise, _IMPLIES + 1)} => {self.text(conclusion, _IMPLIES + 1)}", _IMPLIES
        return " \\/ ".join(map(self.branch, _branches(e))), _JUNCTION

    def branch(self, equal: Sequence[Expr], column: int | None = None) -> str:
        """A branch of a disjunction, for its line or from a column on."""
        if len(equal) > 1:
            return self.membership("\\in", equal)[0]
        return self.text(equal[0], _JUNCTION + 1) if column is None else self.block(equal[0], column)

    def position(self, i: Expr) -> str:
        """A sequence's index, from 0 here and from 1 in TLA+."""
        if i.op == "const":
            return str(i.aux + 1)
        if i.op == "sub" and i.args[1].op == "const" and i.args[1].aux == 1:
            return self.text(i.args[0])
        return f"{self.text(i, _ADD)} + 1"


def _body(e: Expr) -> Expr:
    """What a binder says of its variable, without what the variable's type says already: n < L + 1 of n in 0..L."""
    v, body = e.args[:2]
    if body.t.kind != "bool":
        return body

    def said(x: Expr) -> bool:
        if x.op != "lt" or x.args[0] is not v or v.t.kind != "range":
            return False
        hi, stop = v.t.hi, x.args[1]
        if isinstance(hi, int):
            return stop.op == "const" and int(stop.aux) == hi + 1
        return hi.op == "sub" and hi.args[0] is stop and hi.args[1].op == "const" and hi.args[1].aux == 1

    if body.op == "or":
        return or_(*[x for x in body.args if not (x.op == "not" and said(x.args[0]))])
    return and_(*[x for x in _parts(body) if not said(x)])


def _lines(parts: Sequence[str], column: int) -> str:
    """Parts in one line if it is short, else one under the other from a column on."""
    line, below = " ".join(parts), "\n" + " " * column
    if column + len(line) <= _WIDTH:
        return line
    return below.join(x if column + len(x) <= _WIDTH else x.replace(" THEN ", f"{below}THEN ", 1) for x in parts)


def _in(text: str, binds: int, tight: int) -> str:
    return f"({text})" if binds < tight else text


def _plainness(e: Expr) -> int:
    while e.op in ("some", "get"):
        e = e.args[0]
    return _PLAIN.get(e.op, len(_PLAIN))


def _constant(e: Expr) -> str:
    if e.t.kind == "enum":
        return f'"{list(cast(type[enum.Enum], e.t.cls))[e.aux].name}"'
    return ("TRUE" if e.aux else "FALSE") if e.t.kind == "bool" else str(e.aux)


def _implication(e: Expr) -> tuple[Expr, Expr]:
    """A disjunction as premise and conclusion: `not a or not b or c` reads a /\\ b => c. The premise is TRUE if it does
    not begin with a negation, or holds nothing else."""
    n = next((i for i, x in enumerate(e.args) if x.op != "not"), 0)
    return and_(*[x.args[0] for x in e.args[:n]]), or_(*e.args[n:])


def _sides(e: Expr) -> tuple[Expr, Expr]:
    """The sides of an equation, a constant on the right."""
    return (e.args[1], e.args[0]) if e.args[0].op == "const" else (e.args[0], e.args[1])


def _branches(e: Expr) -> list[list[Expr]]:
    """The branches of a disjunction; neighbours that ask whether one expression is this or that constant together."""

    def subject(x: Expr) -> Expr | None:
        return _sides(x)[0] if x.op == "eq" and _sides(x)[1].op == "const" else None

    out: list[list[Expr]] = []
    for x in e.args:
        if out and subject(x) is not None and subject(out[-1][-1]) is subject(x):
            out[-1].append(x)
        else:
            out.append([x])
    return out


def _among(e: Expr) -> bool:
    """Does a disjunction only ask whether one expression is this or that constant?"""
    return len(_branches(e)) == 1


def _splits(e: Expr) -> bool:
    """Would TLC take more than one successor for this guard? It tests the premise of => and goes on with the rest."""
    match e.op:
        case "or":
            premise, conclusion = _implication(e)
            return not _among(e) and (premise is TRUE or _splits(conclusion))
        case "exists":
            return True
        case "and":
            return any(map(_splits, e.args))
        case "forall":
            return _splits(e.args[1])
        case "ite":
            return any(map(_splits, e.args[1:]))
    return False


def _parts(e: Expr) -> tuple[Expr, ...]:
    """What must all be true for a condition to be true."""
    return e.args if e.op == "and" else (e,)


def _impossible(condition: Expr) -> bool:
    """Does it hold a condition and its negation?"""
    parts = _parts(condition)
    return condition is FALSE or any(not_(x) is y for x in parts for y in parts)


def _exclusive(conditions: Sequence[Expr]) -> bool:
    """Can at most one hold, by their form: do any two hold a condition and its negation?"""
    parts = [{x.id for x in _parts(c)} for c in conditions]
    against = [{not_(x).id for x in _parts(c)} for c in conditions]
    return all(parts[i] & against[j] for i in range(len(parts)) for j in range(i))


def _nodes(e: Expr) -> Iterable[Expr]:
    seen: dict[int, Expr] = {}
    todo = [e]
    while todo:
        x = todo.pop()
        if x.id not in seen:
            seen[x.id] = x
            todo += x.args
    return seen.values()


def _weight(e: Expr) -> int:
    return sum(1 for _ in _nodes(e))
