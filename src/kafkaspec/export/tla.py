"""A model as a TLA+ module and a configuration, so that TLC can be the second opinion on every count.

Values: a sort is a constant set of model values, named as in our traces; an enum's member is a string; `None` is the
model value NONE; a map is a function; sets, sequences and records are TLA+'s own.

What has no value is an error of TLC's own, which says nothing of the model. So the invariant `Defined` says that all
that the actions evaluate has a value where it is reached; it stands before the claims, and TLC asks it of a state
before it looks for successors. A claim is exported as "defined and true". What the start evaluates is an assumption.

A step that changes nothing satisfies every TLA+ formula [][P]_vars; in the language it is a step like others. Where P
does not hold of such a step by its form, an invariant `..._in_place` asks it.

TLC takes each branch of a disjunction that stands in an action as a successor of its own. A guard is a test, so one
that holds a disjunction is written `(...) = TRUE`; TLC's generated count is then ours: one for each action and
valuation of its parameters whose guard holds.
"""

from __future__ import annotations

import enum
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, cast

from kafkaspec.errors import UserError
from kafkaspec.export import needs
from kafkaspec.export.needs import Requirement, sure
from kafkaspec.language.defined import Update, defined
from kafkaspec.language.expr import (
    BINDERS,
    FALSE,
    TRUE,
    Expr,
    and_,
    at_most,
    bound,
    has_values,
    minus,
    name_of,
    not_,
    of_type,
    or_,
    plus,
    within,
)
from kafkaspec.language.model import Action, LeadsTo, LoadedModel
from kafkaspec.language.obvious import essential
from kafkaspec.language.parts import nodes, parts_of, variables
from kafkaspec.language.types import T

MOST_ELEMENTS = 10_000
"""Of a sort, in a configuration of TLC."""
_RESERVED = frozenset(
    """ACTION ASSUME ASSUMPTION AXIOM BOOLEAN BY CASE CHOOSE CONSTANT CONSTANTS COROLLARY DEF DEFINE DEFS DOMAIN ELSE
    ENABLED EXCEPT EXTENDS FALSE HAVE HIDE IF IN INSTANCE LAMBDA LEMMA LET LOCAL MODULE NEW OBVIOUS OMITTED ONLY
    OTHER PICK PROOF PROPOSITION PROVE QED RECURSIVE STATE STRING SUBSET SUFFICES TAKE TEMPORAL THEN THEOREM
    TRUE UNCHANGED UNION USE VARIABLE VARIABLES WITH WITNESS Int Nat Seq Len Append Head Tail SubSeq
    SelectSeq Cardinality IsFiniteSet Init Next Spec Fairness TypeOK Defined vars NONE
    Integers Naturals Sequences FiniteSets TLC""".split()  # noqa: SIM905
)
_WORDS = frozenset(w for w in _RESERVED if w.isupper() and w not in ("NONE", "TLC"))
"""What no field of a record can be called."""

_HELPERS = {
    "BoundedSeq": "BoundedSeq(S, most) == UNION {[1..length -> S] : length \\in 0..most}",
    "Take": "Take(q, n) == SubSeq(q, 1, IF n < Len(q) THEN n ELSE Len(q))",
    "Slice": "Slice(q, n, m) == SubSeq(q, n + 1, IF m < Len(q) THEN m ELSE Len(q))",
    "Max": "Max(S) == CHOOSE n \\in S : \\A m \\in S : m <= n",
    "Min": "Min(S) == CHOOSE n \\in S : \\A m \\in S : n <= m",
    "Greatest": "Greatest(S, default) == IF S = {} THEN default ELSE CHOOSE n \\in S : \\A m \\in S : m <= n",
    "Least": "Least(S, default) == IF S = {} THEN default ELSE CHOOSE n \\in S : \\A m \\in S : n <= m",
    "SumOver": """\
RECURSIVE SumOver(_, _)
SumOver(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE x \\in S : TRUE IN f[x] + SumOver(f, S \\ {x})
Sum(f) == SumOver(f, DOMAIN f)""",
}

# How tightly TLA+'s operators bind: a text is put in parentheses where its place wants a tighter one.
_OPEN, _IMPLIES, _EQUIV, _JUNCTION, _NOT, _COMPARE, _SET, _INTERVAL, _ADD, _SUB, _MUL, _PRIME, _ATOM = (
    0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 13, 15, 17,
)  # fmt: skip

_PLAIN = {"const": 0, "none": 0, "empty": 0, "emptyseq": 0, "size": 1, "sortsize": 1, "bound": 2}
"""The plainest expressions, plainest first."""

_TRANSPARENT = frozenset(("some", "get", "must", "only"))
"""Operations that TLA+ writes as their last argument."""

_CHOICE = re.compile(r"(\w+|<<[^>]*>>) \\in ")
"""How {... : ...} begins."""
_IF = ("IF ", "THEN ", "ELSE ")
"""What stands before the parts of a conditional that takes several lines."""
_WIDTH = 110
_NO_FIELDS = "<<>>"
"""A record without fields: the function of an empty domain."""


def tla(
    model: LoadedModel, sizes: Mapping[str, int | bool], *, ghosts: bool = False, deadlock: bool = False
) -> tuple[str, str]:
    """The TLA+ module and the text of TLC's configuration for these sizes.

    `ghosts` keeps the model's ghost variables; without them, claims that speak of them are left out. `deadlock` says
    that the model may end. Raises UserError for sizes that do not fit.
    """
    model.check_sizes(sizes)
    return _Module(model, sizes, ghosts).texts(deadlock)


def module_name(model: LoadedModel) -> str:
    """The name of a model's module, which is that of its file too."""
    return spelled(model.name) + "_" * (model.name in _RESERVED)


def spelled(name: str) -> str:
    """A name in the letters that TLA+ has. One that began with WF_ or SF_ would say that something is fair."""
    if name.startswith(("WF_", "SF_")):
        name = f"{name[:2]}u5f_{name[3:]}"
    return "".join(c if c.isascii() else f"u{ord(c):x}_" for c in name)


class _Over(NamedTuple):
    """What a binder's variable takes: all of its type, the elements of a set, the indexes of a sequence, or the numbers
    below a limit; and the condition besides."""

    kind: str
    domain: Expr
    rest: Expr


class _Module:
    """The module being written."""

    def __init__(self, model: LoadedModel, sizes: Mapping[str, int | bool], ghosts: bool) -> None:
        self.model, self.sizes = model, sizes
        self.vars = {n: t for n, t in model.vars.items() if ghosts or n not in model.ghosts}
        claims = {
            **model.invariants,
            **model.lemmas,
            **model.steps,
            **model.witnesses,
            **model.leads_to,
            **model.starts,
        }
        names = [*model.vars, *[a.name for a in model.actions], *claims, *model.sizes]
        own = _RESERVED | set(_HELPERS) | {"Sum"}
        self.names: dict[str, str] = {}
        for n in sorted(names, key=str.isidentifier, reverse=True):  # "x: start" is x_start, unless there is one
            name = re.sub(r"\W+", "_", spelled(n))
            while name in own or (name != n and name in names) or name in self.names.values():
                name = spelled(f"{name}_")
            self.names[n] = name
        self.taken = own | set(self.names.values())
        self.fields: dict[str, str] = {}
        self.scope: dict[str, str] = {}
        self.from_one: set[str] = set()
        """Bound variables that are indexes of a sequence, counted from 1."""
        self.lets: dict[int, str] = {}
        self.used: set[str] = set()
        self.starting = False
        """While the start is written, a variable that is read is the first value of its type."""

    # ---- the whole
    def texts(self, deadlock: bool) -> tuple[str, str]:
        """(module, configuration)."""
        m = self.model
        parts = [f"vars == <<{', '.join(map(self.name, self.vars))}>>", self.type_invariant(), *self.start()]
        parts += [self.action(a) for a in m.actions]
        parts.append(self.following())
        fairness = self.fairness()
        if fairness:
            parts.append("Fairness ==\n" + "\n".join(f"    /\\ {f}" for f in fairness))
        parts.append("Spec == Init /\\ [][Next]_vars" + (" /\\ Fairness" if fairness else ""))
        invariants, properties, left_out = ["TypeOK"], list[str](), list[str]()
        asked = self.asked()
        if asked:
            parts.append(f"\\* What is evaluated has a value.\nDefined ==\n{asked}")
            invariants.append("Defined")
        for kind, claims in (("invariant", m.invariants), ("lemma", m.lemmas), ("witness", m.witnesses)):
            for c in claims.values():
                if not self.kept(c.expr):
                    left_out.append(c.name)
                    continue
                also = (
                    f" Must be reachable: TLC breaks the invariant ~{self.name(c.name)}." if kind == "witness" else ""
                )
                e = c.expr if kind == "witness" else sure(c.expr)
                parts.append(self.definition(self.name(c.name), e, self.comment(c.clauses, "", c.doc + also)))
                if kind != "witness":
                    invariants.append(self.name(c.name))
        for c in m.steps.values():
            if not self.kept(c.expr):
                left_out.append(c.name)
                continue
            comment = self.comment(c.clauses, "", c.doc)
            said = self.block(sure(c.expr), 7)
            said = f"({said})" if re.match(r"\w+ \\in ", said) else said  # [x \in S begins a function
            parts.append(f"{comment}{self.name(c.name)} ==\n    [][{said}]_vars")
            properties.append(self.name(c.name))
            still = needs.in_place(c.expr)
            if still is not TRUE:
                name = self.fresh(f"{self.name(c.name)}_in_place")
                moves = "~ENABLED (Next /\\ UNCHANGED vars)"
                or_else = f"\\/ {moves}\n    \\/ {self.block(still, 7, _JUNCTION + 1)}"
                parts.append(f"{name} ==\n    {moves if still is FALSE else or_else}")
                invariants.append(name)
        for c in m.starts.values():
            if not self.kept(c.expr):
                left_out.append(c.name)
                continue
            also = " A property without a temporal operator: TLC asks it of the first states."
            parts.append(self.definition(self.name(c.name), sure(c.expr), self.comment(c.clauses, "", c.doc + also)))
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
        head = [f" MODULE {module_name(m)} ".center(100, "-")]
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
                if int(value) > MOST_ELEMENTS:
                    raise UserError(
                        f"{name}={value}: a configuration of TLC lists each element, {MOST_ELEMENTS:,} at most"
                    )
                letter = spelled(name[0].lower())
                text = "{" + ", ".join(f"{letter}{i}" for i in range(int(value))) + "}"
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
        return variables(nodes(e)) <= self.vars.keys()

    def comment(self, clauses: Iterable[str], who: str, doc: str) -> str:
        """The lines over a definition: clause ids, who takes the action, its docstring."""
        first = ", ".join([*clauses, *([who] if who else [])])
        text = f"{first}: {doc}" if first and doc.strip() else first or doc
        if not text.strip():
            return ""
        return textwrap.fill(text.strip(), _WIDTH, initial_indent="\\* ", subsequent_indent="\\* ") + "\n"

    # ---- parts
    def type_invariant(self) -> str:
        lines = []
        for n, t in self.vars.items():
            lines += [f"    /\\ {x}" for x in self.typed(self.name(n), t)]
        return "TypeOK ==\n" + "\n".join(lines)

    def typed(self, x: str, t: T) -> list[str]:
        """What says that x is of type t. Sets of records are not enumerated: there are too many."""
        if not _holds_records(t):
            return [f"{x} \\in {self.typeset(t, _COMPARE + 1)}"]
        match t.kind:
            case "set":
                few = [] if t.hi is None else [f"Cardinality({x}) <= {self.limit(t.hi)}"]
                return [f"{x} \\subseteq {self.typeset(t.item, _COMPARE + 1)}", *few]
            case "option":
                self.used.add("NONE")
                return [f"{x} # NONE => ({_all(self.typed(x, t.item))})"]
            case "rec":
                return [y for n, f in t.fields for y in self.typed(f"{x}.{self.field(n)}", f)]
        if t.kind == "map":
            key = bound(t.domain, "k")
            with self.bound([key]):
                each = _all(self.typed(f"{x}[{self.scope[key.aux]}]", t.item))
                return [f"DOMAIN {x} = {self.typeset(t.domain, _COMPARE + 1)}", f"\\A {self.member(key)} : {each}"]
        i = bound(t.item, "i")
        with self.bound([i]):
            name = self.scope[i.aux]
            each = _all(self.typed(f"{x}[{name}]", t.item))
            return [f"Len({x}) <= {self.limit(t.hi)}", f"\\A {name} \\in 1..Len({x}) : {each}"]

    def start(self) -> list[str]:
        """Init, behind what must hold for it to have a value."""
        a = self.model.initial
        self.starting = True
        assumed = self.reached(a, 4)
        with self.bound(a.params):
            lines = [self.guard(g) for g in a.guard if self.kept(g)]
            for n, t in self.vars.items():
                updates = [_shorter(u) for u in a.updates if u.var == n]
                lines.append(f"{self.name(n)} = {self.after(updates, self.first(t), 10 + len(self.name(n)))}")
            self.starting = False
            body = "\n".join(f"    /\\ {x}" for x in lines)
            quantifier = "".join(f"\\E {self.member(p)} :\n    " for p in a.params).rstrip()
        out = [f"\\* What the start evaluates has a value.\nASSUME\n{assumed}"] if assumed else []
        return [*out, f"Init ==\n    {quantifier}\n{body}" if quantifier else f"Init ==\n{body}"]

    def action(self, a: Action) -> str:
        with self.bound(a.params):
            names = [self.scope[p.aux] for p in a.params]
            possible = [u for x in a.updates if not _impossible((u := _shorter(x)).cond)]
            updates = {n: us for n in self.vars if (us := [u for u in possible if u.var == n])}
            guard = self.asked_by(a)
            whole = [*guard, *[e for us in updates.values() for u in us for e in (*u.keys, u.cond, u.value)]]
            with self.shared(whole, {p.aux for p in a.params}) as lets:
                lines = [self.guard(g) for g in guard]
                for n, us in updates.items():
                    lines.append(f"{self.name(n)}' = {self.after(us, self.name(n), 11 + len(self.name(n)))}")
                rest = [self.name(n) for n in self.vars if n not in updates]
                if rest:
                    lines.append(f"UNCHANGED <<{', '.join(rest)}>>")
                head = self.name(a.name) + (f"({', '.join(names)})" if names else "")
                body = "\n".join(f"    /\\ {x}" for x in lines)
                return f"{self.comment(a.clauses, a.who, a.doc)}{head} ==\n{lets}{body}"

    def asked_by(self, a: Action) -> list[Expr]:
        """An action's guard. That a parameter is in the set that it is drawn from stands where the action is called."""
        called = {x.id for x in self.drawn(a)}
        return [g for g in {g.id: g for g in a.guard}.values() if self.kept(g) and g.id not in called]

    def drawn(self, a: Action) -> list[Expr]:
        """The conditions that say of which set's elements a parameter is."""
        return [g for g in a.guard if g.op == "in" and g.args[1] is a.drawn.get(g.args[0].aux)]

    def chosen_from(self, a: Action, p: Expr) -> str:
        """The quantifier's text of an action's parameter."""
        if p.aux in a.drawn and a.drawn[p.aux].aux in self.vars:
            return f"{self.scope[p.aux]} \\in {self.text(a.drawn[p.aux])}"
        return self.member(p)

    def following(self) -> str:
        lines = []
        for a in self.model.actions:
            with self.bound(a.params):
                lines.append(f"    \\/ {self.some(a, a.params)}")
        return "Next ==\n" + ("\n".join(lines) or "    FALSE")

    def some(self, a: Action, over: Sequence[Expr]) -> str:
        """The action, for some value of the parameters in `over`; the names of all of them are in scope."""
        names = [self.scope[p.aux] for p in a.params]
        call = self.name(a.name) + (f"({', '.join(names)})" if names else "")
        return (f"\\E {', '.join(self.chosen_from(a, p) for p in over)} : " if over else "") + call

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
            trigger, goal = f"({self.text(sure(lt.trigger))})", f"({self.text(sure(lt.goal))})"
            between = " " if len(trigger) + len(goal) < _WIDTH - 12 else "\n        "
            formula = f"{each}{trigger}{between}~> {goal}"
            return f"{self.comment(lt.clauses, '', lt.doc)}{self.name(lt.name)} ==\n    {formula}"

    def definition(self, name: str, e: Expr, comment: str) -> str:
        with self.shared([e], set()) as lets:
            parts = [f"/\\ {self.block(x, 7)}" for x in e.args] if e.op == "and" else [self.block(e, 4)]
            return "\n    ".join([f"{comment}{name} ==\n{lets}".rstrip("\n"), *parts])

    def guard(self, g: Expr) -> str:
        return f"({self.text(g)}) = TRUE" if _splits(g) else self.block(g, 7)

    # ---- definedness
    def asked(self) -> str:
        """The invariant that all has a value which actions, witnesses and promises evaluate; "" if it always has."""
        m = self.model
        out = [f"    \\* {a.name}\n    /\\ {x}" for a in m.actions if (x := self.reached(a, 7).lstrip())]
        states: list[tuple[str, tuple[Expr, ...], Expr]] = [(c.name, (), c.expr) for c in m.witnesses.values()]
        states += [(lt.name, lt.params, e) for lt in m.leads_to.values() for e in (lt.trigger, lt.goal)]
        for name, params, e in states:
            parts = needs.asked([Requirement((), defined(e))]) if self.kept(e) else []
            if parts:
                out.append(f"    \\* {name}\n    /\\ {self.for_all(params, None, parts, 7).lstrip()}")
        return "\n".join(out)

    def reached(self, a: Action, column: int) -> str:
        """What an action evaluates has a value, in lines from a column on; "" if it always has."""
        parts = [x for x in needs.of_action(a, self.drawn(a)) if all(map(self.kept, (*x.where, x.what)))]
        return self.for_all(a.params, a, parts, column) if parts else ""

    def for_all(self, params: Sequence[Expr], a: Action | None, parts: Sequence[Requirement], column: int) -> str:
        """Conditions for each value of the parameters, of those that matter."""
        free = frozenset[str]().union(*[e.free for x in parts for e in (*x.where, x.what)])
        over = [p for p in params if p.aux in free or not has_values(p.t) or (a is not None and p.aux in a.drawn)]
        with self.bound(over):
            if not over:
                return self.conditions(parts, column)
            each = ", ".join(self.member(p) if a is None else self.chosen_from(a, p) for p in over)
            return f"{' ' * column}\\A {each} :\n{self.conditions(parts, column + 4)}"

    def conditions(self, parts: Sequence[Requirement], column: int, inside: bool = False) -> str:
        """Conditions below each other from a column on, those of one premise together. `inside`: behind =>."""
        groups: list[list[Requirement]] = []
        for x in parts:
            if groups and x.where and _common([groups[-1][0].where, x.where]):
                groups[-1].append(x)
            else:
                groups.append([x])
        bullet = "" if len(groups) == 1 else "/\\ "
        tight = _IMPLIES + 1 if inside and not bullet else _OPEN
        lines = []
        for g in groups:
            n = _common([x.where for x in g])
            inner = [Requirement(x.where[n:], x.what) for x in g]
            at = column + len(bullet)
            if not n:
                lines.append(f"{' ' * column}{bullet}{self.block(inner[0].what, at, tight)}")
                continue
            premises = [self.text(p, _JUNCTION + 1) for p in g[0].where[:n]]
            first = " /\\ ".join(premises)
            if len(first) + at > _WIDTH:
                first = "(" + f"\n{' ' * (at + 1)}".join(f"/\\ {p}" for p in premises) + ")"
            elif n == 1:
                first = self.text(g[0].where[0], _IMPLIES + 1)
            rest = self.conditions(inner, at + 4, inside=True)
            short = f"{' ' * column}{bullet}{first} => {rest.lstrip()}"
            one = "\n" not in rest and "\n" not in first and len(short) <= _WIDTH and " => " not in rest
            lines.append(short if one else f"{' ' * column}{bullet}{first} =>\n{rest}")
        return "\n".join(lines)

    # ---- the state after
    def after(self, updates: Sequence[Update], before: str, column: int) -> str:
        """The value of a variable after its updates, of which later ones win, written from a column on."""
        out, i = before, 0
        while i < len(updates):
            j = i
            while j < len(updates) and bool(updates[j].keys) == bool(updates[i].keys):
                j += 1
            if updates[i].keys:
                out = self.in_places(updates[i:j], out, column)
            else:
                out = _lines(self.chosen(updates[i:j], out), column)
                out = f"({out})" if j < len(updates) else out
            i = j
        return out

    def in_places(self, updates: Sequence[Update], before: str, column: int) -> str:
        """Updates at keys. A key is evaluated under the update's condition only, where it may have no value else."""
        t = self.model.vars[updates[0].var]
        if all(u.cond is TRUE or _always_there(t, u.keys) for u in updates):
            return self.excepting(updates, before, column)
        cases: list[list[Update]] = []
        for u in updates:
            if cases and cases[-1][0].cond is u.cond:
                cases[-1].append(u)
            else:
                cases.append([u])
        if not _exclusive([c[0].cond for c in cases]):
            # the last that is not safe stands outside, what is before it inside
            for n in range(len(updates) - 1, -1, -1):
                if not (updates[n].cond is TRUE or _always_there(t, updates[n].keys)):
                    break
            first, this, rest = updates[:n], updates[n], updates[n + 1 :]
            inner = self.in_places(first, before, column + 10) if first else before
            out = self.case_by_case([[this]], inner, column)
            return self.excepting(rest, f"({out})", column) if rest else out
        return self.case_by_case(cases, before, column)

    def case_by_case(self, cases: Sequence[Sequence[Update]], before: str, column: int) -> str:
        """IF ... THEN [before EXCEPT ...] ... ELSE before: of cases that exclude each other."""
        name, let = before, ""
        if not before.isidentifier():
            name = self.fresh("it", re.findall(r"LET (\w+) ==", before))
            let = f"LET {name} == {before}\n{' ' * column}IN  "
            column += 4
        self.scope[name] = name
        options = [(c[0].cond, self.excepting([replace(u, cond=TRUE) for u in c], name, column + 5)) for c in cases]
        lines = self.alternatives(options, name)
        del self.scope[name]
        return let + _lines(lines, column)

    def excepting(self, updates: Sequence[Update], before: str, column: int) -> str:
        """[before EXCEPT ...]."""
        t, i = self.model.vars[updates[0].var], 0
        places, width = [], column + len(before)
        while i < len(updates):
            keys, j = updates[i].keys, i
            while j < len(updates) and [k.id for k in updates[j].keys] == [k.id for k in keys]:
                j += 1
            value = self.chosen(updates[i:j], "@")
            line = f"!{self.path(t, keys)} = {' '.join(value)}"
            if width + len(line) > _WIDTH:
                line = f"!{self.path(t, keys)} =\n{' ' * (column + 4)}{_lines(value, column + 4)}"
            places.append(line)
            i = j
        return f"[{before} EXCEPT {', '.join(places)}]"

    def path(self, t: T, keys: Sequence[Expr]) -> str:
        """A place in a variable of type t, as EXCEPT names it."""
        out = ""
        for k in keys:
            if t.kind == "rec":
                name, t = t.fields[k.aux]
                out += f".{self.field(name)}"
                continue
            out += f"[{self.position(k) if t.kind == 'seq' else self.enclosed(k)}]"
            t = t.item
        return out

    def chosen(self, updates: Sequence[Update], otherwise: str) -> list[str]:
        """IF ... THEN ..., ELSE IF ..., ELSE ...: the value of the last update whose condition holds. Updates that
        exclude each other keep the order of the model's text, and a condition is not asked twice."""
        options = [(u.cond, u.value) for u in updates]
        if not _exclusive([c for c, _ in options]):
            options.reverse()
        return self.alternatives(options, otherwise)

    def alternatives(self, options: Sequence[tuple[Expr, Expr | str]], otherwise: str) -> list[str]:
        """IF ... THEN ..., ELSE IF ..., ELSE ...: the first option whose condition holds."""
        known: dict[int, bool] = {}
        out: list[str] = []
        for c, value in options:
            parts = [x for x in parts_of(c) if known.get(x.id) is not True]
            if any(known.get(x.id) is False for x in parts):
                continue
            rest = and_(*parts)
            if rest is TRUE:
                tight = _OPEN if out or otherwise == "@" else _COMPARE + 1
                otherwise = value if isinstance(value, str) else self.text(value, tight)
                break
            text = value if isinstance(value, str) else self.text(value)
            out.append(f"{'ELSE ' if out else ''}IF {self.text(rest)} THEN {text}")
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
                return "{" + ", ".join(map(_member, cast(type[enum.Enum], t.cls))) + "}"
            case "range":
                if t.hi is None:
                    n = self.fresh("n")
                    natural = isinstance(t.lo, int) and t.lo == 0
                    return "Nat" if natural else f"{{{n} \\in Int : {n} >= {self.limit(t.lo)}}}"
                return _in(f"{self.limit(t.lo)}..{self.limit(t.hi)}", _INTERVAL, tight)
            case "option":
                self.used.add("NONE")
                return _in(f"{self.typeset(t.item, _SET + 1)} \\cup {{NONE}}", _SET, tight)
            case "set" if t.hi is not None:
                some, x = f"SUBSET {self.typeset(t.item, _ATOM)}", self.fresh("some")
                return f"{{{x} \\in {some} : Cardinality({x}) <= {self.limit(t.hi)}}}"
            case "set":
                every = f"SUBSET {self.typeset(t.item, _ATOM)}"
                return _in(f"({every}) \\ {{{{}}}}" if t.nonempty else every, _SET, tight)
            case "map":
                return f"[{self.typeset(t.domain)} -> {self.typeset(t.item)}]"
            case "seq":
                self.used.add("BoundedSeq")
                return f"BoundedSeq({self.typeset(t.item)}, {self.limit(t.hi)})"
            case "rec":
                each = ", ".join(f"{self.field(n)} : {self.typeset(f)}" for n, f in t.fields)
                return f"[{each}]" if each else f"{{{_NO_FIELDS}}}"

    def limit(self, x: int | Expr) -> str:
        return str(x) if isinstance(x, int) else self.text(x, _INTERVAL + 1)

    def first(self, t: T) -> str:
        """The value of a variable that the start does not assign."""
        match t.kind:
            case "bool":
                return "FALSE"
            case "enum":
                return _member(next(iter(cast(type[enum.Enum], t.cls))))
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
                return _record(f"{self.field(n)} |-> {self.first(f)}" for n, f in t.fields)
        return self.first_number(t) if t.kind == "range" else "0"

    def first_number(self, t: T) -> str:
        """0 if it is inside the limits, else the lower limit."""
        low, high = at_most(t.lo, 0), t.hi is None or at_most(0, t.hi)
        if low and high:
            return "0"
        if at_most(1, t.lo) or (t.hi is not None and at_most(t.hi, -1)):
            return self.limit(t.lo)
        inside = " /\\ ".join(
            ([] if low else [f"{self.limit(t.lo)} <= 0"]) + ([] if high else [f"0 <= {self.limit(t.hi)}"])
        )
        return f"(IF {inside} THEN 0 ELSE {self.limit(t.lo)})"

    def field(self, n: str) -> str:
        """A record's field, where it is a word of TLA+ with an underscore."""
        if n not in self.fields:
            name = spelled(n)
            while name in _WORDS or name in self.fields.values():
                name = spelled(f"{name}_")
            self.fields[n] = name
        return self.fields[n]

    # ---- names in scope
    def fresh(self, wanted: str, besides: Iterable[str] = ()) -> str:
        """A bound name that nothing in scope has: TLA+ has no shadowing."""
        taken = {*self.taken, *self.scope.values(), *self.lets.values(), *besides}
        wanted = spelled(wanted)
        name, n = wanted, 2
        while name in taken:
            name, n = spelled(f"{wanted}_{n}"), n + 1
        return name

    @contextmanager
    def bound(self, params: Iterable[Expr]) -> Any:
        """Give names to bound expressions while their scope is written."""
        params = list(params)
        for p in params:
            self.scope[p.aux] = self.fresh(name_of(p.aux))
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
                for x in e.args[1:] if e.op == "only" else e.args:
                    walk(x)
                order.append(e)

        for e in whole:
            walk(e)
        lines = []
        for e in order:
            if count[e.id] > 1 and e.free <= free and len(nodes(e)) >= 12 and self.kept(e):
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
        if e.op in _TRANSPARENT:
            return self.text(e.args[-1], tight)
        text, binds = self.binder(e) if e.op in BINDERS else self.plain(e)
        return _in(text, binds, tight)

    def block(self, e: Expr, column: int, tight: int = _OPEN) -> str:
        """An expression that stands alone from a column on: in one line if it is short."""
        line = self.text(e, tight)
        if column + len(line) <= _WIDTH or e.id in self.lets:
            return line
        if e.op in _TRANSPARENT:
            return self.block(e.args[-1], column, tight)
        below = "\n" + " " * column
        match e.op:
            case "and":
                return below.join(f"/\\ {self.block(x, column + 3)}" for x in e.args)
            case "or" if not _among(e):
                premise, conclusion = _implication(e)
                if premise is not TRUE:
                    first = self.text(premise, _IMPLIES + 1)
                    return _in(
                        f"{first} =>{below}    {self.block(conclusion, column + 4, _IMPLIES + 1)}", _IMPLIES, tight
                    )
                return below.join(f"\\/ {self.branch(x, column + 3)}" for x in _branches(e))
            case "forall" | "exists":
                with self.quantified(e) as (head, body):
                    return f"{head}{below}    {self.block(body, column + 4)}"
            case "ite":
                c, x, y = (self.block(x, column + len(word)) for x, word in zip(e.args, _IF, strict=True))
                return f"IF {c}{below}THEN {x}{below}ELSE {y}"
        return line

    def over(self, op: str, v: Expr, condition: Expr, value: Expr | None = None) -> _Over:
        """What a binder's variable takes, by the first part of its condition, and the other parts."""
        found, conclusion = _premises(condition) if op == "forall" else (list(parts_of(condition)), FALSE)
        if found:
            first, rest = found[0], found[1:]
            others = or_(*map(not_, rest), conclusion) if op == "forall" else and_(*rest)
            if first.op == "in" and first.args[0] is v and v.aux not in first.args[1].free:
                return _Over("set", first.args[1], others)
            if first.op == "lt" and first.args[0] is v and v.aux not in first.args[1].free and v.t.kind == "range":
                used = [others] if value is None else [others, value]
                stop = first.args[1]
                begins = isinstance(v.t.lo, int) and v.t.lo == 0
                if stop.op == "len" and begins and value is not v and all(_index_only(v, x) for x in used):
                    return _Over("seq", stop, others)
                if v.t.hi is None:
                    return _Over("below", stop, others)
        return _Over("type", v, condition)

    @contextmanager
    def variables(self, over: Sequence[tuple[Expr, _Over]]) -> Any:
        """Names for binders' variables: yields the text that says what each takes."""
        for v, o in over:
            self.scope[v.aux] = self.fresh("i" if o.kind == "seq" else name_of(v.aux))
            if o.kind == "seq":
                self.from_one.add(v.aux)
        try:
            yield [self.takes(v, o) for v, o in over]
        finally:
            for v, _ in over:
                del self.scope[v.aux]
                self.from_one.discard(v.aux)

    def takes(self, v: Expr, o: _Over) -> str:
        return f"{self.scope[v.aux]} \\in {self.domain(v, o, _COMPARE + 1)}"

    def domain(self, v: Expr, o: _Over, tight: int = _OPEN) -> str:
        match o.kind:
            case "set":
                return self.text(o.domain, tight)
            case "seq":
                return _in(f"1..{self.text(o.domain, _INTERVAL + 1)}", _INTERVAL, tight)
            case "below":
                return _in(f"{self.limit(v.t.lo)}..{self.text(minus(o.domain, 1), _INTERVAL + 1)}", _INTERVAL, tight)
        return self.typeset(v.t, tight)

    @contextmanager
    def quantified(self, e: Expr) -> Any:
        """A quantifier and those of its kind right within, as one: yields the text up to the colon, and the body."""
        over, body, inside = [], e, set[str]()
        while body.op == e.op and (body is e or body.id not in self.lets):
            v = body.args[0]
            o = self.over(e.op, v, body.args[1])
            if o.kind != "type" and o.domain.free & inside:
                break
            over.append((v, o))
            inside.add(v.aux)
            body = o.rest
        with self.variables(over) as heads:
            yield f"\\{'A' if e.op == 'forall' else 'E'} {', '.join(heads)} :", body

    def binder(self, e: Expr) -> tuple[str, int]:
        if e.op in ("forall", "exists"):
            with self.quantified(e) as (head, body):
                return f"{head} {self.text(body)}", _OPEN
        v = e.args[0]
        if e.op == "mapof":
            with self.bound([v]):
                return f"[{self.member(v)} |-> {self.text(e.args[1])}]", _ATOM
        value = {"setof": v, "count": None}.get(e.op, e.args[2] if len(e.args) > 2 else None)
        o = self.over(e.op, v, e.args[1], value)
        with self.variables([(v, o)]) as (head,):
            whole = o.rest is TRUE
            chosen = "{}" if o.rest is FALSE else f"{{{head} : {self.enclosed(o.rest)}}}"
            if e.op in ("setof", "count") or (value is v and e.op != "sum"):
                chosen = self.domain(v, o) if whole else chosen
            else:
                assert value is not None
                member = head if whole else f"{self.scope[v.aux]} \\in {chosen}"
                if e.op == "sum":
                    self.used.add("SumOver")
                    return f"Sum([{member} |-> {self.text(value)}])", _ATOM
                chosen = f"{{{self.enclosed(value)} : {member}}}"
        match e.op:
            case "setof" | "image":
                return chosen, _SET if chosen[-1] != "}" else _ATOM
            case "count":
                return f"Cardinality({chosen})", _ATOM
        helper = e.op.capitalize() if len(e.args) > 3 else "Max" if e.op == "greatest" else "Min"
        self.used.add(helper)
        return f"{helper}({', '.join([chosen, *map(self.text, e.args[3:])])})", _ATOM

    def enclosed(self, e: Expr) -> str:
        """An expression behind a brace or a bracket. A membership there begins {a \\in b : c} or [a \\in b |-> c]:
        {a \\in b <=> c} is read as a \\in (b <=> c), {a \\in b : c \\in d} is ambiguous, f[a \\in b] lacks its |->."""
        x = e
        while x.op in _TRANSPARENT:
            x = x.args[-1]
        text = self.text(e, _COMPARE + 1 if x.op == "in" or (x.op == "or" and _among(x)) else _OPEN)
        return f"({text})" if _CHOICE.match(text) else text

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
            case "sortsize":
                return f"Cardinality({self.name(e.aux)})", _ATOM
            case "idx":
                return f"{self.text(a[0], _PRIME)}[{self.enclosed(a[1])}]", _ATOM
            case "at":
                return f"{self.text(a[0], _PRIME)}[{self.position(a[1])}]", _ATOM
            case "field":
                return f"{self.text(a[0], _PRIME)}.{self.field(a[0].t.fields[e.aux][0])}", _ATOM
            case "len":
                return f"Len({self.text(a[0])})", _ATOM
            case "append" if (items := _listed(e)) is not None:
                return f"<<{', '.join(map(self.text, items))}>>", _ATOM
            case "append":
                return f"Append({self.text(a[0])}, {self.text(a[1])})", _ATOM
            case "take":
                self.used.add("Take")
                return f"Take({self.text(a[0])}, {self.text(a[1])})", _ATOM
            case "concat":
                return f"{self.text(a[0], _ATOM)} \\o {self.text(a[1], _ATOM)}", _MUL
            case "drop" if a[0].op == "take":
                self.used.add("Slice")
                return f"Slice({self.text(a[0].args[0])}, {self.text(a[1])}, {self.text(a[0].args[1])})", _ATOM
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
            case "mul":
                return f"{self.text(a[0], _ATOM)} * {self.text(a[1], _ATOM)}", _MUL
            case "div":
                return f"{self.text(a[0], _ATOM)} \\div {self.text(a[1], _ATOM)}", _MUL
            case "mod":
                return f"{self.text(a[0], _ATOM)} % {self.text(a[1], _ATOM)}", _INTERVAL
            case "none":
                self.used.add("NONE")
                return "NONE", _ATOM
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
            case "majority":
                return f"2 * Cardinality({self.text(a[0])}) > Cardinality({self.name(a[0].t.item.name)})", _COMPARE
            case "rec":
                fields = zip(e.t.fields, a, strict=True)
                return _record(f"{self.field(n)} |-> {self.text(x)}" for (n, _), x in fields), _ATOM
        raise NotImplementedError(f"no TLA+ for the operation {e.op}")

    def comparison(self, sign: str, a: Sequence[Expr]) -> tuple[str, int]:
        """A comparison, the plainer side on the right."""
        sets = [x.args[0] for x, other in (a, a[::-1]) if x.op == "card" and other.op == "const" and other.aux == 0]
        if sets and sign in ("=", "#"):
            return f"{self.text(sets[0], _COMPARE + 1)} {sign} {{}}", _COMPARE
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
            named.insert(0, self.enclosed(e.args[1]))
            e = e.args[0]
        few = "{" + ", ".join(named) + "}"
        if op == "with" and e.op == "empty":
            return few, _ATOM
        return f"{self.text(e, _SET + 1)} {sign} {few}", _SET

    def membership(self, sign: str, equal: Sequence[Expr]) -> tuple[str, int]:
        """x = a \\/ x = b is x \\in {a, b}."""
        sides = [_sides(x) for x in equal]
        values = "{" + ", ".join(self.enclosed(v) for _, v in sides) + "}"
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
        if i.op == "bound" and i.aux in self.from_one:
            return self.scope[i.aux]
        return self.text(plus(i, 1))


def _premises(e: Expr) -> tuple[list[Expr], Expr]:
    """What must hold before a disjunction asks for more, and that: of `not a or not b or c`, a and b, and c. FALSE if
    it asks for no more."""
    parts = e.args if e.op == "or" else (e,)
    n = next((i for i, x in enumerate(parts) if x.op != "not"), len(parts))
    return [p for x in parts[:n] for p in parts_of(x.args[0])], or_(*parts[n:])


def _index_only(v: Expr, e: Expr) -> bool:
    """Does a bound variable stand in an expression only as the index of a sequence?"""
    if v.aux not in e.free:
        return True
    if e is v:
        return False
    if e.op == "at" and e.args[1] is v:
        return _index_only(v, e.args[0])
    return all(_index_only(v, x) for x in e.args)


def _listed(e: Expr) -> list[Expr] | None:
    """The elements of a sequence that is written element by element."""
    out: list[Expr] = []
    while e.op == "append":
        out.insert(0, e.args[1])
        e = e.args[0]
    return out if e.op == "emptyseq" else None


def _all(parts: Sequence[str]) -> str:
    """Comparisons, quantifiers and implications as one condition."""
    return " /\\ ".join(f"({x})" if len(parts) > 1 and (x.startswith("\\A") or " => " in x) else x for x in parts)


def _common(lists: Sequence[Sequence[Expr]]) -> int:
    """How many expressions all begin with."""
    n = 0
    while all(len(x) > n and x[n] is lists[0][n] for x in lists):
        n += 1
    return n


def _record(fields: Iterable[str]) -> str:
    each = ", ".join(fields)
    return f"[{each}]" if each else _NO_FIELDS


def _holds_records(t: T) -> bool:
    """Does a type hold a set of records?"""
    if t.kind == "set":
        return t.item.kind == "rec"
    inner = [f for _, f in t.fields] + ([t.item] if t.elem is not None else [])
    return any(map(_holds_records, inner))


def _always_there(t: T, keys: Sequence[Expr]) -> bool:
    """Do keys lead to a place in a variable of type t in every state?"""
    for k in keys:
        if t.kind == "rec":
            t = t.fields[k.aux][1]
            continue
        if t.kind == "seq" or not k.total or not within(of_type(k), t.domain):
            return False
        t = t.item
    return True


def _lines(parts: Sequence[str], column: int) -> str:
    """Parts in one line if it is short, else one under the other from a column on."""
    line, below = " ".join(parts), "\n" + " " * column
    if column + len(line) <= _WIDTH:
        return line
    return below.join(x if column + len(x) <= _WIDTH else x.replace(" THEN ", f"{below}THEN ", 1) for x in parts)


def _in(text: str, binds: int, tight: int) -> str:
    return f"({text})" if binds < tight else text


def _plainness(e: Expr) -> int:
    while e.op in _TRANSPARENT:
        e = e.args[-1]
    return _PLAIN.get(e.op, len(_PLAIN))


def _member(m: enum.Enum) -> str:
    """An enum's member as a string: "#" stands in no name, so that different members stay different."""
    return '"' + "".join(c if c.isascii() else f"#{ord(c):x}" for c in m.name) + '"'


def _constant(e: Expr) -> str:
    if e.t.kind == "enum":
        return _member(list(cast(type[enum.Enum], e.t.cls))[e.aux])
    return ("TRUE" if e.aux else "FALSE") if e.t.kind == "bool" else str(e.aux)


def _implication(e: Expr) -> tuple[Expr, Expr]:
    """A disjunction as premise and conclusion: `not a or not b or c` reads a /\\ b => c. The premise is TRUE if it does
    not begin with a negation, or holds nothing else."""
    premises, conclusion = _premises(e)
    return (TRUE, e) if conclusion is FALSE else (and_(*premises), conclusion)


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
        case op if op in _TRANSPARENT:
            return _splits(e.args[-1])
        case "or":
            premise, conclusion = _implication(e)
            return not _among(e) and (premise is TRUE or _splits(conclusion))
        case "exists":
            return True
        case "and":
            return any(map(_splits, e.args))
        case "forall":  # what it is over takes one of the premises; the others are written one by one
            premises, conclusion = _premises(e.args[1])
            return _splits(or_(*map(not_, premises), conclusion))
        case "ite":
            return any(map(_splits, e.args[1:]))
    return False


def _shorter(u: Update) -> Update:
    """An update whose condition does not ask again what it asked before."""
    out: list[Expr] = []
    for p in essential(parts_of(u.cond)):
        known = {x.id for x in out}
        denied = p.args[0] if p.op == "not" and p.args[0].op == "and" else None
        out.append(p if denied is None else not_(and_(*[x for x in denied.args if x.id not in known])))
    return replace(u, cond=and_(*out))


def _impossible(condition: Expr) -> bool:
    """Does it hold a condition and its negation?"""
    parts = parts_of(condition)
    return condition is FALSE or any(not_(x) is y for x in parts for y in parts)


def _exclusive(conditions: Sequence[Expr]) -> bool:
    """Can at most one hold, by their form: do any two hold a condition and its negation?"""
    parts = [{x.id for x in parts_of(c)} for c in conditions]
    against = [{not_(x).id for x in parts_of(c)} for c in conditions]
    return all(parts[i] & against[j] for i in range(len(parts)) for j in range(i))
