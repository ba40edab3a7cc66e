"""A model at given sizes as machine code: the model's own functions (`expand`, `check`, ...) and the engine's loops,
compiled together by LLVM. Neither a C compiler nor a cache is needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kafkaspec import native
from kafkaspec.errors import UserError
from kafkaspec.explore import kernels, liveness
from kafkaspec.explore.code import Env, Reader, records, valuations
from kafkaspec.explore.emit import MIX, WORD, Bit, Columns, Emitter, Wire, function
from kafkaspec.explore.layout import Layout
from kafkaspec.explore.liveness import Promise
from kafkaspec.explore.packing import Packing
from kafkaspec.explore.symmetry import canonical
from kafkaspec.language.defined import DEFINED, defined, every
from kafkaspec.language.expr import TRUE, Expr, node
from kafkaspec.language.model import Action, Claim, LeadsTo
from kafkaspec.language.substitute import stripped, substituted
from kafkaspec.language.text import fail
from kafkaspec.language.types import make

EXACT_WORDS = 4
"""States of at most 4 words stand in the table themselves; wider ones by a fingerprint of 63 bits."""
CHUNK = 512
"""States that a thread takes from a level at a time."""
MOST_AT_ONCE = 1 << 17
"""Successors that a thread may find before it looks whether the table has room."""
MANY_INSTANCES = 100_000
OF_MODEL = frozenset({
    "WORDS", "STRIDE", "KEY_WORDS", "INSTANCES", "FAULTS", "CHUNK", "SLOT", "KEY", "BUFFER",
    "UNIT_COUNT", "INVARIANTS", "PROMISES",
})  # fmt: skip
"""Constants of the loops that the model and its sizes give."""
MOST_LINES = 1_000_000
"""Of code for a model; LLVM compiles some 20,000 a second."""


@dataclass(frozen=True)
class Instance:
    """One action with its parameters chosen: `arguments` as the layout's `values` gives them, by bound name."""

    action: Action
    arguments: Mapping[str, int]


@dataclass
class MachineCode:
    """The machine code. Each function takes and returns 64-bit numbers."""

    functions: dict[str, Callable[..., int]]
    seconds: float
    engine: Any
    model: Any = None
    """The code of the model's own functions, which those of the loops call."""


@lru_cache(maxsize=16)
def _loops_text(
    loops: tuple[Callable[..., object], ...],
    constants: tuple[tuple[str, int], ...],
    exported: frozenset[str],
    variables: frozenset[str],
) -> str:
    return native.compiled(list(loops), dict(constants), exported, variables=variables)


def capitals(names: Mapping[str, object]) -> dict[str, int]:
    """The constants among a module's names, for its loops."""
    return {n: v for n, v in names.items() if n.isupper() and isinstance(v, int)}


_after: dict[frozenset[str], tuple[dict[int, Expr], dict[int, tuple[Expr, Expr]]]] = {}
"""By the variables that are changed: what was read of expressions, and of claims."""


def after_action(claim: Expr, action: Action) -> tuple[Expr, Expr]:
    """That a claim about a step has a value, and that it is true, of the steps of one action: what the action does not
    change is read as it was before, and falls away where it is compared with itself."""
    changed = frozenset(u.var for u in action.updates)
    known, claims = _after.setdefault(changed, ({}, {}))
    if claim.id not in claims:

        def given(y: Expr) -> Expr | None:
            return node("var", y.t, aux=y.aux) if y.op == "nextvar" and y.aux not in changed else None

        has_value, true = defined(claim), stripped(claim)
        claims[claim.id] = substituted(has_value, given, known), substituted(true, given, known)
    return claims[claim.id]


def lanes_here() -> int:
    """How many states this machine's widest vectors hold."""
    features = native.llvm().get_host_cpu_features()
    return 8 if features.get("avx512f") and features.get("avx512dq") and features.get("avx512vl") else 1


class Program:
    """What the search and the walks run. Code that is compiled quickly takes one state at a time: LLVM takes longer to
    compile for vectors. `exact_words` and `lanes`, the states that all code takes, are for tests."""

    def __init__(
        self,
        layout: Layout,
        symmetry: Sequence[str] = (),
        *,
        exact_words: int = EXACT_WORDS,
        lanes: int | None = None,
    ) -> None:
        self.layout, self.symmetry = layout, tuple(symmetry)
        self._compiled: dict[tuple[bool, int, bool], native.MachineCode] = {}
        model = layout.model
        self.width = lanes_here() if lanes is None else lanes
        """The states that code compiled with care takes at once."""
        self.narrow = lanes is None
        """May code compiled quickly take one at a time?"""
        self.lanes = self.width
        """The states that the code takes at once which is compiled now, or was last."""
        self.words = layout.words
        self.key_words = self.words if self.words <= exact_words else 1
        self.fingerprinted = self.words > exact_words
        for why in model.not_explored:
            raise UserError(f"{why}, so that {model.name} is not explored")
        self.instances = [instance for a in model.actions for instance in self._chosen(a)]
        self.starts = self._chosen(model.initial)
        self.rows = max(len(self.instances), len(self.starts), 1)
        """Bytes of a note on every instance of an action, or on every start."""
        if self.rows > MANY_INSTANCES:
            most = max([*model.actions, model.initial], key=lambda a: len(self._chosen(a)))
            ways = f"in {len(self._chosen(most)):,} ways at these sizes"
            fail(*most.loc, f"{most.name} can be taken {ways}, where all actions may have {MANY_INSTANCES:,}")
        self.state_claims = self._state_claims()
        self.step_claims = [c for c in model.steps.values() if layout.visible(c.expr)]
        self.faults = [DEFINED] + [f"type of {n}" for n in layout.vars] + [c.name for c in self.step_claims]
        self.chunk = max(self.width, min(CHUNK, MOST_AT_ONCE // max(1, len(self.instances))) & -self.width)
        self.promises = [
            Promise(c, tuple(env.items()))
            for c in model.leads_to.values()
            if self.layout.visible(c.trigger) and self.layout.visible(c.goal)
            for env in valuations(layout, {v.aux: v.t for v in c.params}, c.loc)
        ]
        self.stride = max(self.rows, 32) * self.width + self.width

    # ---- what is checked
    def _state_claims(self) -> list[tuple[str, Claim]]:
        """Claims about states whose variables are there: invariants come first, with the lemmas if no ghost is left
        out; then what is claimed of first states alone, and witnesses."""
        m = self.layout.model
        complete = len(self.layout.vars) == len(m.vars)
        lemmas = m.lemmas.values() if complete else ()
        claims = [("invariant", c) for c in [*m.invariants.values(), *lemmas]]
        asked: list[tuple[Claim | LeadsTo, Expr]] = [(c, c.expr) for c in m.witnesses.values()]
        asked += [(lt, x) for lt in m.leads_to.values() for x in (lt.trigger, lt.goal)]
        for of, x in asked:  # a state in which it has no value is a violation
            if (condition := defined(x)) is not TRUE:
                for v in of.params if isinstance(of, LeadsTo) else ():
                    condition = every(v, condition)
                claims.append(("invariant", Claim(f"{of.name}: defined", of.clauses, condition, of.doc, of.loc)))
        claims += [("start", c) for c in m.starts.values()]
        claims += [("witness", c) for c in m.witnesses.values()]
        return [(kind, c) for kind, c in claims if self.layout.visible(c.expr)]

    @property
    def ghosts(self) -> bool:
        """Are there ghosts, and are they kept?"""
        m = self.layout.model
        return bool(m.ghosts) and len(self.layout.vars) == len(m.vars)

    @property
    def unchecked(self) -> dict[str, str]:
        """The claims, lemmas apart, that read ghosts which are left out, with that reason."""
        m = self.layout.model
        claims = [c for table in (m.invariants, m.starts, m.steps, m.witnesses) for c in table.values()]
        asked = [(c.name, c.expr) for c in claims]
        asked += [(lt.name, x) for lt in m.leads_to.values() for x in (lt.trigger, lt.goal)]
        return {n: "it reads a ghost, which --ghosts keeps" for n, x in asked if not self.layout.visible(x)}

    # ---- code
    def constants(self) -> dict[str, int]:
        """The kernels' constants; those that the model gives have its values."""
        return capitals(vars(kernels)) | {
            "WORDS": self.words,
            "LANES": self.lanes,
            "WIDTH": self.width,
            "EVERY_LANE": (1 << self.lanes) - 1,
            "STRIDE": self.stride,
            "KEY_WORDS": self.key_words,
            "INSTANCES": self.rows,
            "FAULTS": len(self.faults),
            "SYMMETRIC": int(bool(self.symmetry)),
            "CHUNK": self.chunk,
            "SLOT": self.stride * self.words,
            "KEY": self.stride * (self.words + 1) if self.fingerprinted else 0,
            "BUFFER": self.stride * (self.words + 2),
        }

    def model_text(self, promises: bool) -> str:
        """The model's own functions in LLVM's language."""
        self.intrinsics: set[str] = set()
        self._judges: dict[frozenset[str], tuple[str, str]] = {}
        functions = [
            self._expansion("expand", self.instances, self.layout.model.actions),
            self._expansion("start", self.starts, [self.layout.model.initial]),
            self._check(),
        ]
        self.code_text = "\n".join([*functions, *(text for _, text in self._judges.values())])
        if self.code_text.count("\n") > MOST_LINES:
            raise UserError(f"{self.layout.model.name}: too large to compile at these sizes")
        parts = [self.code_text, self._homes()]
        if promises:
            parts.append(self._promises())
        if self.symmetry:
            parts.append(canonical(self))
        return "\n".join([*parts, *sorted(self.intrinsics)])

    def loops_text(
        self,
        more: Sequence[Callable[..., object]],
        exported: Set[str],
        constants: Mapping[str, int],
        variables: Set[str],
        packing: Packing | None = None,
    ) -> str:
        """The search's loops, and more, in LLVM's language; of its constants the `variables` are told later."""
        loops = [*(kernels.FAST if packing is None else kernels.PACKED), *kernels.COMMON, *more]
        known = tuple((name, value) for name, value in constants.items() if name not in variables)
        text = _loops_text(tuple(loops), known, frozenset(exported), frozenset(variables))
        return "\n".join([*([] if packing is None else [packing.text()]), text, *sorted(native.DECLARATIONS)])

    def compile(
        self,
        more: Sequence[Callable[..., object]] = (),
        exported: Set[str] = frozenset(),
        constants: Mapping[str, int] | None = None,
        packing: Packing | None = None,
        quickly: bool = False,
        loops_quickly: bool = False,
        wide: bool = False,
    ) -> MachineCode:
        """Machine code for the search's loops, and more, over this model; for packed states if so asked. `quickly`: the
        model's own functions, which are most of it, are compiled quickly; `loops_quickly`: so are the loops, once for
        all models. `wide`: it takes as many states at once as code compiled with care, however it is compiled."""
        started = time.perf_counter()
        self.lanes = 1 if self.narrow and quickly and not wide else self.width
        promises = "PROMISES" in (constants or {})
        called: list[Callable[..., object]] = [
            kernels.expand,
            kernels.check,
            *([kernels.homes] if packing is None else []),
            *([liveness.promises] if promises else []),
        ]
        called += [kernels.canonical] if self.symmetry else []
        names = {f.__name__ for f in called}
        kind = quickly, self.lanes, promises
        if kind not in self._compiled:
            text, own = self.model_text(promises), {*names, "start", "homes"}
            self._compiled = {kind: native.machine_code(text, own, quickly=quickly)}
        model = self._compiled[kind]
        exported = kernels.EXPORTED | exported
        if packing is not None:
            exported |= kernels.EXPORTED_PACKED
        known = {**(constants or {}), **self.constants(), **({} if packing is None else packing.constants())}
        variables = {name: known[name] for name in OF_MODEL & known.keys()} if loops_quickly else {}
        text = "\n".join(
            [self.loops_text(more, exported, known, variables.keys(), packing), *map(native.declared, called)]
        )
        others = {name: model.engine.get_function_address(name) for name in names}
        code = native.machine_code(text, exported, quickly=loops_quickly, others=others, variables=variables)
        return MachineCode(model.functions | code.functions, time.perf_counter() - started, code.engine, model)

    def _words(self, e: Emitter, states: str) -> list[Wire]:
        words = []
        for k in range(self.words):
            p = e.fresh("p")
            e.line(f"{p} = getelementptr i64, ptr {states}, i64 {k * self.lanes}")
            words.append(e.emit(f"load {e.type(WORD)}, ptr {p}, align 8", WORD, 0, 2**WORD - 1))
        return words

    def _active(self, e: Emitter) -> Wire:
        if self.lanes == 1:
            return e.emit("trunc i64 %active to i1", 1)
        w = e.fresh()
        e.line(f"{w} = trunc i64 %active to i{self.lanes}")
        return e.emit(f"bitcast i{self.lanes} {w} to {e.type(1)}", 1)

    def _mark(self, e: Emitter, base: str, index: int | str, mask: Bit) -> None:
        """Byte `index` of a table |= the lanes of a truth value."""
        byte, p, old, new = e.mask_byte(mask), e.fresh("p"), e.fresh(), e.fresh()
        e.line(f"{p} = getelementptr i8, ptr {base}, i64 {index}")
        e.line(f"{old} = load i8, ptr {p}")
        e.line(f"{new} = or i8 {old}, {byte}")
        e.line(f"store i8 {new}, ptr {p}")

    def _expansion(self, name: str, instances: Sequence[Instance], actions: Sequence[Action]) -> str:
        e = Emitter(self.lanes)
        before = self._words(e, "%states.p")
        active = self._active(e)
        e.line("%judging = icmp ne i64 %asked, 0")
        reader = Reader(self.layout, e, list(before))
        n, i = "0", 0
        for number, action in enumerate(actions):
            n_before = n
            while i < len(instances) and instances[i].action is action:
                n = self._instance(reader, instances[i], i, active, n)
                i += 1
            if n != n_before:
                p, old, more, new = e.fresh("p"), e.fresh(), e.fresh(), e.fresh()
                e.line(f"{p} = getelementptr i64, ptr %taken.p, i64 {number}")
                e.line(f"{old} = load i64, ptr {p}")
                e.line(f"{more} = sub i64 {n}, {n_before}")
                e.line(f"{new} = add i64 {old}, {more}")
                e.line(f"store i64 {new}, ptr {p}")
        e.line(f"ret i64 {n}")
        self.intrinsics |= e.intrinsics
        arguments = ("states", "active", "buffer", "enabled", "faulty", "taken", "asked")
        return function(name, arguments, e.lines, exported=True)

    def _instance(self, reader: Reader, instance: Instance, i: int, active: Bit, n: str) -> str:
        """Code of one instance; the name of the number of successors so far."""
        e, action = reader.e, instance.action
        env: Env = dict(instance.arguments)
        mask: Bit = active
        undefined: Bit = False
        drawn = [p.t.kind == "rec" for p in action.params if p.aux in action.drawn]  # the guard begins with these
        for parameter, s in records(action).items():
            there, env[parameter.aux] = reader.drawn(s, instance.arguments[parameter.aux])
            mask = e.and_(mask, there)
        for k, g in enumerate(action.guard):
            for need in action.needs:
                if need.after == k and self.layout.visible(need.defined):
                    undefined = e.or_(undefined, e.and_(mask, e.not_(reader.truth(need.defined, env))))
            if not any(drawn[k : k + 1]):
                mask = e.and_(mask, reader.truth(g, env))
            if mask is False:
                break
        if undefined is not False:
            self._mark(e, "%faulty.p", i, undefined)
        if mask is False:
            return n
        byte, p, some = e.mask_byte(mask), e.fresh("p"), e.fresh()
        e.line(f"{p} = getelementptr i8, ptr %enabled.p, i64 {i}")
        e.line(f"store i8 {byte}, ptr {p}")
        e.line(f"{some} = icmp ne i8 {byte}, 0")
        came_from = e.label
        take, ask, put, out = (f"{name}{e.fresh('')[1:]}" for name in ("take", "ask", "put", "out"))
        e.line(f"br i1 {some}, label %{take}, label %{out}")
        e.begin(take)
        reader.enter()
        after = reader.next_words(action, env)
        e.line(f"br i1 %judging, label %{ask}, label %{put}")
        e.begin(ask)
        reader.enter()
        for var, bad in reader.wrong(action, env):
            claim = self.faults.index(f"type of {var}" if var else DEFINED)
            self._mark(e, "%faulty.p", claim * self.rows + i, e.and_(mask, bad))
        if action is not self.layout.model.initial and (judge := self._judge(action)):
            lanes = e.fresh()
            e.line(f"{lanes} = zext i8 {byte} to i64")
            words = "".join(f", {e.type(WORD)} {e.text(w)}" for w in after)
            e.line(f"{e.fresh()} = call i64 @{judge}(i64 %states, i64 %faulty, i64 {lanes}, i64 {i}{words})")
        reader.leave()
        e.line(f"br label %{put}")
        e.begin(put)
        self._store(e, after, mask, n)
        many, wide, more = e.fresh(), e.fresh(), e.fresh("n")
        e.line(f"{many} = call i8 @llvm.ctpop.i8(i8 {byte})")
        e.line(f"{wide} = zext i8 {many} to i64")
        e.line(f"{more} = add i64 {n}, {wide}")
        reader.leave()
        e.line(f"br label %{out}")
        taken_from = e.label
        e.begin(out)
        total = e.fresh("n")
        e.line(f"{total} = phi i64 [{n}, %{came_from}], [{more}, %{taken_from}]")
        e.intrinsics.add("declare i8 @llvm.ctpop.i8(i8)")
        return total

    def _judge(self, action: Action) -> str:
        """The function that asks the claims about steps of what an instance of the action did; "" if none is asked. It
        is one for all actions that change the same variables: most of a model's code would be its copies."""
        changed = frozenset(u.var for u in action.updates)
        if changed not in self._judges:
            e = Emitter(self.lanes)
            before, active = self._words(e, "%states.p"), self._active(e)
            after = [Wire(f"%after{k}", WORD, 0, 2**WORD - 1) for k in range(self.words)]
            reader = Reader(self.layout, e, list(before), list(after))
            asked = False
            for k, c in enumerate(self.step_claims, len(self.layout.vars) + 1):
                has_value, true = after_action(c.expr, action)
                broken = e.not_(e.and_(reader.truth(has_value, {}), reader.truth(true, {})))
                if broken is not False:
                    asked, at = True, e.fresh()
                    e.line(f"{at} = add i64 %instance, {k * self.rows}")
                    self._mark(e, "%faulty.p", at, e.and_(active, broken))
            e.line("ret i64 0")
            self.intrinsics |= e.intrinsics
            name, words = f"judge{len(self._judges)}", [f"{e.type(WORD)} {w.name}" for w in after]
            text = function(name, ("states", "faulty", "active", "instance"), e.lines, more=words)
            self._judges[changed] = (name, text) if asked else ("", "")
        return self._judges[changed][0]

    def _holds(self, reader: Reader, x: Expr) -> Bit:
        return reader.e.and_(reader.truth(defined(x), {}), reader.truth(x, {}))

    def _chosen(self, action: Action) -> list[Instance]:
        """The action with its parameters chosen in every way; of records in a set, by their place in it."""
        types = {p.aux: p.t for p in action.params}
        for p, s in records(action).items():
            if s.aux not in self.layout.vars:
                raise UserError(f"{self.layout.model.name}: {action.parameter(p)} is drawn from the ghost {s.aux}")
            types[p.aux] = make("range", lo=0, hi=self.layout.cells(s.t).most - 1)
        return [Instance(action, env) for env in valuations(self.layout, types, action.loc)]

    def _store(self, e: Emitter, words: Sequence[Any], mask: Bit, n: str) -> None:
        """The states of the lanes in `mask`, one after the other, behind the n in the buffer."""
        t = e.type(WORD)
        for k, w in enumerate(words):
            at, p = e.fresh(), e.fresh("p")
            e.line(f"{at} = add i64 {n}, {k * self.stride}")
            e.line(f"{p} = getelementptr i64, ptr %buffer.p, i64 {at}")
            text = e.text(w)
            if self.lanes > 1 and not isinstance(mask, bool):
                name = f"@llvm.experimental.vector.compress.v{self.lanes}i64"
                e.intrinsics.add(f"declare {t} {name}({t}, {e.type(1)}, {t})")
                packed = e.fresh()
                e.line(f"{packed} = call {t} {name}({t} {text}, {e.type(1)} {mask.name}, {t} poison)")
                text = packed
            e.line(f"store {t} {text}, ptr {p}, align 8")

    def _check(self) -> str:
        e = Emitter(self.lanes)
        before = self._words(e, "%states.p")
        active = self._active(e)
        reader = Reader(self.layout, e, list(before))
        for i, (kind, c) in enumerate(self.state_claims):
            holds = self._holds(reader, c.expr)
            hit = e.and_(active, holds if kind == "witness" else e.not_(holds))
            if hit is not False:
                self._mark(e, "%hits.p", i, hit)
        e.line("ret i64 0")
        self.intrinsics |= e.intrinsics
        return function("check", ("states", "active", "hits"), e.lines, exported=True)

    def _promises(self) -> str:
        e = Emitter(self.lanes)
        reader = Reader(self.layout, e, list(self._words(e, "%states.p")))
        self._active(e)
        for i, promise in enumerate(self.promises):
            env: Env = dict(promise.arguments)
            for k, x in enumerate((promise.claim.trigger, promise.claim.goal)):
                p = e.fresh("p")
                byte = e.mask_byte(reader.truth(x, env))
                e.line(f"{p} = getelementptr i8, ptr %answers.p, i64 {2 * i + k}")
                e.line(f"store i8 {byte}, ptr {p}")
        e.line("ret i64 0")
        self.intrinsics |= e.intrinsics
        return function("promises", ("states", "active", "answers"), e.lines, exported=True)

    def _homes(self) -> str:
        """Slots of a buffer's states: a multiplicative hash of their words."""
        c = Columns(self.lanes)
        e, t, op = c.e, c.t, c.op
        shift = c.splat("%shift")
        c.loop()
        here = c.column("%buffer.p", "%j")
        h = ""
        for k in range(self.words):
            w = c.load(here, k * self.stride)
            h = op(f"xor {t} {h}, {w}") if h else w
            h = c.folded(op(f"mul {t} {h}, {e.text(MIX[0])}"), 32)
            if self.fingerprinted:
                h = c.folded(op(f"mul {t} {h}, {e.text(MIX[1])}"), 29)
        h = op(f"mul {t} {h}, {e.text(MIX[2])}")
        if self.fingerprinted:
            h = c.folded(h, 31)
            c.store(h, here, self.stride * (self.words + 1))
            h = c.shifted("shl", h, 1)
        c.store(op(f"lshr {t} {h}, {shift}"), here, self.stride * self.words)
        return c.function("homes", ("buffer", "n", "shift"))
