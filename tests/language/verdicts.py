# mypy: disable-error-code="misc,operator,index,union-attr,arg-type,assignment,return-value"
"""Small texts that break something, or nothing where it looks like it, each with what is broken: a claim, "Defined"
(an action evaluates what has no value), "TypeOK" (a value leaves its variable's type), "the start" (it has no value),
or ""."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kafkaspec.language import (
    Bounded,
    Model,
    NonEmpty,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    leads_to,
    lemma,
    refines,
    require,
    step,
    witness,
)
from kafkaspec.language.types import Of


class Cell(Sort):
    pass


N = Size("N")
SIZES = {"Cell": 2, "N": 3}
Num = Annotated[int, Range(0, N)]


@dataclass(frozen=True)
class Note:
    none: bool
    n: Num


# ---- where a text has no value ---------------------------------------------------------------------------------------
class NoneAsKey(Model):
    """Defined"""

    at: Cell | None
    full: dict[Cell, bool]

    @action()
    def fill(s) -> None:
        s.next.full[s.at] = True


class NoneAsKeyUnderACondition(Model):
    """"""

    at: Num | None
    full: dict[Num, bool]

    @action()
    def put(s, n: Num) -> None:
        s.next.at = n

    @action()
    def fill(s) -> None:
        if s.at is not None:
            s.next.full[s.at] = True
        s.next.at = None


class KeysOfOneAfterTheOther(Model):
    """both"""

    at: Num | None
    to: Num | None
    m: dict[Num, Num]

    @action()
    def put(s, n: Num, k: Num | None) -> None:
        s.next.at = n
        s.next.to = k

    @action()
    def move(s) -> None:
        s.next.m[0] = 1
        if s.at is not None:
            s.next.m[s.at] = 2
        if s.to is not None:
            s.next.m[s.to] = 3
            s.next.m[N] = s.to

    @invariant()
    def both(s) -> bool:
        return s.m[0] < 3 or s.m[N] != 0 or s.m[1] != 2


class KeyBeyondTheMap(Model):
    """Defined"""

    m: dict[Num, bool]
    n: Num

    @action()
    def up(s) -> None:
        require(s.n < N)
        s.next.n = s.n + 1

    @action()
    def look(s) -> None:
        if s.m[s.n + 1]:
            s.next.n = 0


class KeyAssignedBeyondTheMap(Model):
    """Defined"""

    m: dict[Num, bool]

    @action()
    def put(s, n: Annotated[int, Range(0, N + 1)]) -> None:
        s.next.m[n] = True


class IndexAfterAGuard(Model):
    """"""

    o: Num | None
    q: Annotated[list[Num], Bounded(2)]
    n: Num

    @action()
    def take(s) -> None:
        require(s.o is not None, s.o < len(s.q))
        s.next.n = s.q[s.o] if s.o > 0 else s.o

    @action()
    def push(s) -> None:
        require(len(s.q) < 2)
        s.next.q = s.q + [s.n]
        s.next.o = s.n

    @invariant()
    def fine(s) -> bool:
        return s.o is None or (s.o <= N and (s.o >= len(s.q) or s.q[s.o] <= N))


class IndexBeyondInAGuard(Model):
    """Defined"""

    q: Annotated[list[Num], Bounded(2)]
    n: Num

    @action()
    def go(s) -> None:
        require(s.q[len(s.q)] == 0)
        s.next.n = 1


class IndexAssignedBeyond(Model):
    """Defined"""

    q: Annotated[list[Num], Bounded(2)]

    @action()
    def more(s) -> None:
        require(len(s.q) < 2)
        s.next.q = s.q + [0]

    @action()
    def put(s, i: Annotated[int, Range(0, 1)]) -> None:
        require(len(s.q) > 0)
        s.next.q[i] = 1


class IndexBeyondInAClaim(Model):
    """zero"""

    q: Annotated[list[Num], Bounded(2)]

    @initial
    def start(s) -> None:
        s.next.q = [0]

    @action()
    def less(s) -> None:
        s.next.q = s.q[1:]

    @invariant()
    def zero(s) -> bool:
        return s.q[0] == 0


class NegativeSlice(Model):
    """Defined"""

    q: Annotated[list[Num], Bounded(2)]
    n: Num

    @action()
    def cut(s) -> None:
        s.next.q = s.q[s.n - 1 :]


class NoneInAClaim(Model):
    """fine"""

    o: dict[Cell, Num | None]

    @action()
    def put(s, c: Cell) -> None:
        s.next.o[c] = 1

    @invariant()
    def fine(s, c: Cell) -> bool:
        return s.o[c] + 1 <= 2


class NoneInARecord(Model):
    """small"""

    o: Note | None

    @initial
    def start(s) -> None:
        s.next.o = Note(none=True, n=1)

    @action()
    def change(s) -> None:
        s.next.o = Note(none=False, n=1) if s.o is None else None

    @invariant()
    def small(s) -> bool:
        return s.o.n < 2


class FieldNamedNone(Model):
    """never"""

    o: Note | None
    bad: bool

    @action()
    def put(s) -> None:
        s.next.o = Note(none=True, n=1)

    @action()
    def look(s) -> None:
        require(s.o is not None)
        if s.o.none:
            s.next.bad = True

    @invariant()
    def never(s) -> bool:
        return not s.bad


class GuardedByAnd(Model):
    """"""

    o: Note | None

    @action()
    def change(s) -> None:
        require(s.o is None or s.o.n < 2)
        s.next.o = Note(none=False, n=1) if s.o is None else None

    @invariant()
    def small(s) -> bool:
        return s.o is None or (s.o.n < 2 and not s.o.none)


class GuardedTooLate(Model):
    """Defined"""

    o: Note | None

    @action()
    def change(s) -> None:
        require(s.o.n < 2 or s.o is None)
        s.next.o = None


class AllAskEveryElement(Model):
    """Defined"""

    o: dict[Cell, Num | None]
    b: bool

    @initial
    def start(s, c: Cell) -> None:
        s.next.o[c] = 1

    @action()
    def ask(s) -> None:
        s.next.b = all(s.o[c] > 1 for c in Cell)


class AnyGuardsItsElements(Model):
    """"""

    o: dict[Cell, Num | None]
    b: bool

    @initial
    def start(s, c: Cell) -> None:
        s.next.o[c] = 1

    @action()
    def ask(s) -> None:
        s.next.b = any(s.o[c] > 1 for c in Cell if s.o[c] is not None)


class GreatestOfNothing(Model):
    """Defined"""

    S: set[Num]
    n: Num

    @action()
    def put(s, n: Num) -> None:
        s.next.S = s.S | {n}

    @action()
    def ask(s) -> None:
        s.next.n = max(x for x in s.S)


class GreatestOfSomething(Model):
    """never"""

    S: set[Num]
    n: Num

    @action()
    def put(s, n: Num) -> None:
        s.next.S = s.S | {n}

    @action()
    def ask(s) -> None:
        require(len(s.S) > 0)
        s.next.n = max(x * 2 for x in s.S if x < 2) if 1 in s.S else min(x for x in s.S)

    @invariant()
    def never(s) -> bool:
        return s.n != 2


class RecordOutsideItsField(Model):
    """Defined"""

    o: Note | None
    n: Num

    @action()
    def up(s) -> None:
        s.next.n = min(s.n + 1, N)
        s.next.o = Note(none=False, n=s.n + 1)


class UnusedName(Model):
    """Defined"""

    q: Annotated[list[Num], Bounded(2)]
    b: bool

    @action()
    def go(s) -> None:
        first = s.q[0]
        s.next.b = not s.b
        if s.b:
            s.next.q = [first]


class NamedUnderItsGuard(Model):
    """"""

    q: Annotated[list[Num], Bounded(2)]

    @action()
    def more(s) -> None:
        require(len(s.q) < 2)
        s.next.q = s.q + [0]

    @action()
    def go(s) -> None:
        require(len(s.q) > 0)
        first = s.q[0]
        s.next.q = s.q[1:] if first == 0 else s.q


class Asserted(Model):
    """Defined"""

    n: Num

    @action()
    def up(s) -> None:
        require(s.n < N)
        assert s.n < 1
        s.next.n = s.n + 1


class StartWithoutAValue(Model):
    """the start"""

    q: Annotated[list[Num], Bounded(2)]
    n: Num

    @initial
    def start(s) -> None:
        s.next.n = s.q[0]


class WitnessWithoutAValue(Model):
    """Defined"""

    o: Num | None

    @action()
    def put(s, n: Num) -> None:
        s.next.o = n

    @witness
    def three(s) -> bool:
        return (s.o == 3 and s.o + 1 > 3) or s.o < 2


class PromiseWithoutAValue(Model):
    """Defined"""

    o: Num | None

    @action(fair="weak")
    def put(s, n: Num) -> None:
        s.next.o = n

    @leads_to()
    def comes(s) -> tuple[bool, bool]:
        return s.o is None, s.o > 1


class StepWithoutAValue(Model):
    """rises"""

    o: Num | None

    @initial
    def start(s) -> None:
        s.next.o = 0

    @action()
    def put(s) -> None:
        require(s.o is not None)
        s.next.o = None if s.o > 0 else s.o + 1

    @step()
    def rises(s) -> bool:
        return s.next.o > s.o


# ---- what leaves its type --------------------------------------------------------------------------------------------
class WiderSet(Model):
    """TypeOK"""

    small: set[Annotated[int, Range(0, 2)]]
    wide: set[Annotated[int, Range(0, 5)]]

    @action()
    def put(s, n: Annotated[int, Range(1, 5)]) -> None:
        s.next.wide = s.wide | {n}

    @action()
    def copy(s) -> None:
        s.next.small = s.wide


class OneTooMany(Model):
    """TypeOK"""

    n: Num
    seen: set[Num]

    @action()
    def see(s) -> None:
        s.next.seen = s.seen | {s.n + 1}
        s.next.n = min(s.n + 1, N)


class ComprehensionBeyond(Model):
    """TypeOK"""

    S: set[Num]
    n: Num

    @action()
    def go(s) -> None:
        s.next.S = s.S | {x for x in range(N + 3) if x > s.n}


class NarrowMap(Model):
    """TypeOK"""

    a: dict[Cell, Annotated[int, Range(0, 1)]]
    b: dict[Cell, Num]

    @action()
    def put(s, c: Cell, n: Num) -> None:
        s.next.b[c] = n

    @action()
    def copy(s) -> None:
        s.next.a = s.b


class EmptiedSet(Model):
    """TypeOK"""

    S: Annotated[set[Cell], NonEmpty]

    @initial
    def start(s, c: Cell) -> None:
        s.next.S = {c}

    @action()
    def take(s, c: Cell) -> None:
        s.next.S = s.S - {c}


class FullPost(Model):
    """TypeOK"""

    post: Annotated[set[Note], Bounded(2)]

    @action()
    def write(s, n: Num) -> None:
        s.next.post = s.post | {Note(none=False, n=n)}

    @action()
    def read(s, m: Annotated[Note, Of("post")]) -> None:
        require(m.n > 0)
        s.next.post = s.post - {m}


class StartOutsideItsType(Model):
    """TypeOK"""

    n: Num

    @initial
    def start(s, k: Num) -> None:
        s.next.n = k * 2

    @invariant()
    def fine(s) -> bool:
        return s.n >= 0


class NegativeNumber(Model):
    """TypeOK"""

    n: Num
    seen: Annotated[int, Range(0)]

    @action()
    def down(s) -> None:
        s.next.n = s.n - 1


class BelowItsLimit(Model):
    """TypeOK"""

    n: Annotated[int, Range(-1)]

    @action()
    def down(s) -> None:
        s.next.n = s.n - 1


class ManyAtOnce(Model):
    """few"""

    post: Annotated[set[Note], Bounded(2)]
    S: set[Cell]

    @action()
    def send(s, some: Annotated[set[Note], Bounded(1)]) -> None:
        require(all(m.n == 1 for m in some))
        s.next.post = s.post | some

    @invariant()
    def few(s) -> bool:
        return len(s.post) < 2


class LongLine(Model):
    """TypeOK"""

    q: Annotated[list[Num], Bounded(2)]

    @action()
    def twice(s) -> None:
        s.next.q = s.q + [1] if s.q == [] else s.q + s.q + s.q


class LongLineInAMap(Model):
    """TypeOK"""

    q: dict[Cell, Annotated[list[Num], Bounded(N)]]

    @action()
    def twice(s, c: Cell) -> None:
        s.next.q[c] = s.q[c] + s.q[c] + [0]


class OverwrittenAssignment(Model):
    """"""

    q: Annotated[list[bool], Bounded(1)]

    @action()
    def over(s) -> None:
        s.next.q = s.q + [True]
        s.next.q = s.q

    @action()
    def more(s) -> None:
        require(len(s.q) < 1)
        s.next.q = s.q + [True]


class FieldTooLarge(Model):
    """TypeOK"""

    r: Note
    rs: dict[Cell, Note]

    @action()
    def up(s, c: Cell) -> None:
        s.next.rs[c].n = s.rs[c].n + 1
        s.next.r.none = True


# ---- claims ----------------------------------------------------------------------------------------------------------
class FirstNumber(Model):
    """"""

    v: Annotated[int, Range(-1, 1)]
    w: Annotated[int, Range(2 - N, N)]
    x: Annotated[int, Range(N - 3, N)]

    @action()
    def up(s) -> None:
        require(s.v < 1)
        s.next.v = s.v + 1

    @invariant()
    def not_below(s) -> bool:
        return s.v >= 0 and s.w == 0 and s.x == 0


class FieldsOfRecords(Model):
    """never"""

    r: Note
    rs: dict[Cell, Note]

    @action()
    def set(s, c: Cell) -> None:
        s.next.r.none = True
        s.next.rs[c].none = True
        s.next.rs[c].n = 1

    @invariant()
    def never(s) -> bool:
        return not s.r.none or any(s.rs[c].n == 0 for c in Cell)


class TwoStarts(Model):
    """fine"""

    a: Cell
    b: Cell

    @initial
    def start(s, x: Cell, y: Cell) -> None:
        s.next.a = x
        s.next.b = y

    @action()
    def same(s) -> None:
        s.next.b = s.a

    @invariant()
    def fine(s) -> bool:
        return s.a == s.b


class RequireInAnElse(Model):
    """low"""

    n: Num

    @define
    def checked(s) -> int:
        require(s.n < 1)
        return 0

    @action()
    def go(s) -> None:
        s.next.n = s.checked() if s.n == N else s.n + 1

    @invariant()
    def low(s) -> bool:
        return s.n < 2


class RequireBehindAnd(Model):
    """fine"""

    n: Num

    @define
    def low(s) -> bool:
        require(s.n < 2)
        return True

    @action()
    def go(s) -> None:
        if s.n == 5 and s.low():
            s.next.n = 0
        s.next.n = min(N, s.n + 1)

    @invariant()
    def fine(s) -> bool:
        return s.n < 3


class AssignedBehindAnd(Model):
    """low"""

    n: Num

    @define
    def again(s) -> bool:
        s.next.n = 0
        return True

    @action()
    def go(s) -> None:
        s.next.n = min(N, s.n + 1)
        if s.n > 2 and s.again():
            require(s.n < N + 1)

    @invariant()
    def low(s) -> bool:
        return s.n < 2


class HelperNeedsWhatGuardsIt(Model):
    """Defined"""

    o: Num | None
    b: bool

    @define
    def positive(s) -> bool:
        require(s.o > 0)
        return True

    @action()
    def go(s) -> None:
        require(s.o < 2 and s.positive())
        s.next.b = True


class LimitsOfAComprehension(Model):
    """always"""

    ok: bool

    @initial
    def start(s) -> None:
        s.next.ok = True

    @action()
    def ask(s) -> None:
        s.next.ok = 0 in {x for x in range(1, N)}  # noqa: C416

    @invariant()
    def always(s) -> bool:
        return s.ok


class EndOfAComprehension(Model):
    """whole"""

    S: set[Num]

    @action()
    def fill(s) -> None:
        s.next.S = {x for x in range(N)}  # noqa: C416

    @invariant()
    def whole(s) -> bool:
        return len(s.S) == 0 or N in s.S


class LemmaIsAClaim(Model):
    """a"""

    n: Num

    @action()
    def up(s) -> None:
        require(s.n < N)
        s.next.n = s.n + 1

    @lemma()
    def a(s) -> bool:
        return s.n < 2


class StepInPlace(Model):
    """moves"""

    n: Num

    @action()
    def up(s) -> None:
        s.next.n = min(N, s.n + 1)

    @step()
    def moves(s) -> bool:
        return s.next.n > s.n


class StepThatIsNone(Model):
    """"""

    n: Num

    @action()
    def up(s) -> None:
        require(s.n < N)
        s.next.n = s.n + 1

    @step()
    def moves(s) -> bool:
        return s.next.n > s.n


class RoundedDown(Model):
    """never"""

    n: Annotated[int, Range(0 - N, N)]
    m: Annotated[int, Range(0 - N, N)]

    @action()
    def down(s) -> None:
        require(s.n > 0 - N)
        s.next.n = s.n - 1
        s.next.m = s.n // 2 + s.n % 2 * 3

    @invariant()
    def never(s) -> bool:
        return s.m != 2 or s.n == 0


# ---- refinement ------------------------------------------------------------------------------------------------------
class Bit(Model):
    """"""

    on: bool

    @action()
    def switch(s) -> None:
        require(not s.on)
        s.next.on = True


class CountsTowardsTheBit(Model):
    """"""

    n: Num

    @action()
    def up(s) -> None:
        s.next.n = min(N, s.n + 1)

    @refines(Bit)
    def shows(s) -> Bit:
        return Bit.shown(on=s.n > 1)


class SwitchesBack(Model):
    """shows"""

    n: Num

    @action()
    def up(s) -> None:
        s.next.n = 0 if s.n == N else s.n + 1

    @refines(Bit)
    def shows(s) -> Bit:
        return Bit.shown(on=s.n > 1)


class StartsElsewhere(Model):
    """shows: start"""

    n: Num

    @initial
    def start(s) -> None:
        s.next.n = 2

    @action()
    def up(s) -> None:
        s.next.n = min(N, s.n + 1)

    @refines(Bit)
    def shows(s) -> Bit:
        return Bit.shown(on=s.n > 1)


class Failing(Model):
    """the start"""

    n: Num
    line: Annotated[list[bool], Bounded(1)]
    one: Num | None

    @initial
    def start(s, i: Num) -> None:
        require(i == 0 or s.line[0])
        s.next.n = s.n + i

    @action()
    def asks(s) -> None:
        require(s.line[0])
        s.next.n = 0

    @action()
    def adds(s, i: Num) -> None:
        s.next.n = s.n + (s.one + i)

    @action()
    def leaves(s) -> None:
        s.next.n = s.one

    @action()
    def up(s) -> None:
        s.next.n = s.n + 1


class TakesTheOneThatDoesNot(Model):
    """"""

    n: Num

    @action()
    def up(s) -> None:
        require(s.n < N)
        s.next.n = s.n + 1

    @refines(Failing)
    def shows(s) -> Failing:
        return Failing.shown(n=s.n, line=[], one=None)


class TakesOneThatFails(Model):
    """shows"""

    n: Num

    @action()
    def up(s) -> None:
        s.next.n = min(N, s.n + 1)

    @action()
    def back(s) -> None:
        s.next.n = 0

    @refines(Failing)
    def shows(s) -> Failing:
        return Failing.shown(n=s.n, line=[], one=None)


class ShowsNoState(Model):
    """shows: type"""

    n: Num

    @action()
    def up(s) -> None:
        s.next.n = min(N, s.n + 1)

    @refines(Failing)
    def shows(s) -> Failing:
        return Failing.shown(n=s.n + 4, line=[], one=None)


# ---- local names -----------------------------------------------------------------------------------------------------
class NamedInBranches(Model):
    """never"""

    on: bool
    off: bool
    n: Num

    @action()
    def flip(s, on: bool, off: bool) -> None:
        s.next.on = on
        s.next.off = off

    @action()
    def go(s) -> None:
        x = 0
        if s.on:
            if s.off:
                x = 1
            else:
                x = 2
        elif s.off:
            x = x + 3
        s.next.n = x

    @invariant()
    def never(s) -> bool:
        return s.n != 3


class NamedInOneBranch(Model):
    """"""

    on: bool
    n: Num

    @action()
    def flip(s) -> None:
        s.next.on = not s.on

    @action()
    def go(s) -> None:
        x = 0
        if s.on:
            s.next.n = x + 1
        elif s.n > 1:
            x = 2
            s.next.n = x
        else:
            s.next.n = x

    @invariant()
    def never(s) -> bool:
        return s.n < 2


# ---- sums of sizes at the top of a file ------------------------------------------------------------------------------
MOST = 2 * N - 1
HALF = MOST // 2


class AsManyAsTheSumSays(Model):
    """low"""

    q: Annotated[list[Annotated[int, Range(0, N + 1)]], Bounded(MOST - 2)]
    m: dict[Annotated[int, Range(-N, HALF)], bool]
    n: Annotated[int, Range(0, MOST)]

    @action()
    def up(s) -> None:
        require(s.n < MOST, HALF % 2 == 0, s.n > -HALF)
        s.next.n = s.n + 1
        s.next.m[HALF] = len(s.q) < MOST - 2
        s.next.q = s.q + [MOST - N] if len(s.q) < MOST - 2 else s.q[HALF:]

    @invariant()
    def low(s) -> bool:
        return s.n < MOST or not s.m[min(HALF, N)]


# ---- a helper within the values of a mapping's map -------------------------------------------------------------------
class AllLinked(Model):
    """"""

    linked: dict[Cell, bool]
    known: dict[Cell, bool]

    @initial
    def start(s) -> None:
        s.next.linked = {c: True for c in Cell}
        s.next.known = {c: True for c in Cell}

    @invariant()
    def always(s, c: Cell) -> bool:
        return s.linked[c] and s.known[c]


class HelpersOfAMapping(Model):
    """mapping"""

    link: dict[Cell, Cell | None]

    @define
    def linked(s, c: Cell) -> bool:
        return s.link[c] is not None

    @define
    def known(s, c: Cell) -> bool:
        return any(s.link[c] == d for d in Cell)

    @initial
    def start(s, c: Cell) -> None:
        s.next.link = {d: c for d in Cell}

    @action()
    def cut(s, c: Cell) -> None:
        s.next.link[c] = None

    @refines(AllLinked)
    def mapping(s) -> AllLinked:
        return AllLinked.shown(linked={c: s.linked(c) for c in Cell}, known={c: s.known(c) for c in Cell})


MODELS = [c for c in list(globals().values()) if isinstance(c, type) and issubclass(c, Model) and c is not Model]
