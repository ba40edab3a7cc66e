"""Where a text has a value, and of which type what an action leaves must be: the interpreter and the explorer alike."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkaspec.contract import clauses
from kafkaspec.language import ModelError
from kafkaspec.prove.engine import prove
from tests import modules
from tests.language import texts
from tests.language.texts import action, explored, interpreted, model

PARTIAL = {
    "no key": "s.m[s.n + 1]",
    "None as a key": "s.m[s.o]",
    "beyond the end": "s.q[0] == 0",
    "one beyond the end": "s.q[len(s.q)] == 0",
    "below 0": "s.q[s.n - 1] == 0",
    "a slice from below 0": "len(s.q[s.n - 1 :]) == 0",
    "a slice up to below 0": "len(s.q[: s.n - 1]) == 0",
    "None added": "s.o + 1 == 1",
    "None compared": "s.o < 1",
    "None in a set": "len({s.o}) == 1",
    "None in a sequence": "len(s.q + [s.o]) == 1",
    "None as a key of a sort": "s.of[s.p] == 0",
    "the greatest of nothing": "max(x for x in s.S) == 0",
    "the least of nothing": "min(x + 1 for x in s.q) == 0",
    "a record's field outside its type": "R(a=s.n + 3, b=True).b",
    "a record's field replaced by one outside its type": "replace(s.r, a=s.n - 1).b",
    "None as a default": "max((x for x in s.S), default=s.o) == 0",
    "a slice from None": "len(s.q[s.o :]) == 0",
    "a slice up to None": "len(s.q[: s.o]) == 0",
    "the greatest of None": "max(s.w[x] for x in P) == 0",
    "the least of None": "min((s.w[x] for x in P), default=1) == 0",
    "None in a set of a sequence": "len(set(s.v)) == 1",
}
"""Expressions that have no value in a first state, and `s.n + 1` in the state where n is N."""
GUARDED = {
    "and": "s.bad and {}",
    "or": "not s.bad or {}",
    "if": "({} if s.bad else True)",
    "else": "(True if not s.bad else {})",
    "a comprehension's if": "all({} for x in range(0, 2) if s.bad)",
    "a comprehension's second if": "any({} for x in P if x == x if s.bad)",
    "an empty domain": "all({} for x in range(1, 1))",
    "a chain": "1 < 0 < (1 if {} else 2)",
    "in a comparison of a negation": "not (s.bad and not ({}))",
}
PLACES = {
    "a guard": action("require(s.n >= 0, {})", "s.next.c = C.BLUE"),
    "a value": action("s.next.bad = ({}) and False"),
    "a value that is overwritten": action("s.next.bad = ({}) and False", "s.next.bad = False"),
    "a condition": action("if {}:", "    s.next.c = C.BLUE"),
    "a condition of nothing": action("if {}:", "    pass"),
    "a local name": action("x = {}", "s.next.c = C.BLUE"),
    "an expression alone": action("{}"),
    "a claim": "@invariant()\ndef i(s) -> bool:\n    return ({}) or True\n",
    "a witness": "@witness\ndef i(s) -> bool:\n    return ({}) or True\n",
    "a helper's argument": "@define\ndef h(s, x: bool) -> bool:\n    return True\n" + action("require(s.h({}))"),
    "a helper's local name": "@define\ndef h(s) -> bool:\n    x = {}\n    return True\n" + action("require(s.h())"),
    "an element": action("s.next.bad = s.bad in (False, {}) and False"),
    "a key that is assigned": action("s.next.m[0 if {} else 1] = True"),
}
VARIABLES = texts.VARIABLES + "w: dict[P, Num | None]\nv: Annotated[list[Num | None], Bounded(2)]\n"
MOST = 4 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 1
"""Two fifths of the expressions stand in each place, all of them under `make deep`."""
START = "@initial\ndef start(s) -> None:\n    s.next.v = [None]\n"
STEP = START + "@action()\ndef up(s) -> None:\n    require(s.n < N)\n    s.next.n = s.n + 1\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_what_has_no_value_is_undefined_wherever_it_stands(place: str) -> None:
    for i, partial in enumerate(PARTIAL.values()):
        if (i + len(place)) % 5 > MOST:
            continue
        m = model(STEP + place.replace("{}", partial), VARIABLES)
        assert interpreted(m) == "undefined", partial
        if (i + len(place)) % 5 == 0:  # a fifth is compiled
            assert explored(m) in ("undefined", "i"), partial


@pytest.mark.sampled(3)
@pytest.mark.parametrize("guard", GUARDED.values(), ids=GUARDED.keys())
def test_what_is_not_reached_needs_no_value(guard: str) -> None:
    for i, partial in enumerate(PARTIAL.values()):
        if (i + len(guard)) % 5 > MOST:
            continue
        text = guard.replace("{}", partial)
        claim = f"@invariant()\ndef i(s) -> bool:\n    return ({text}) or True\n"
        m = model(STEP + action(f"require({text})", "s.next.c = C.BLUE") + claim, VARIABLES)
        assert interpreted(m) == "", text
        if (i + len(guard)) % 5 == 0:
            assert explored(m) == "", text


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        ("s.next.n = s.n + 3", "outside"),
        ("s.next.n = s.n - 1", "outside"),
        ("s.next.n = s.o", "outside"),
        ("s.next.n = s.o\n    s.next.n = 0", ""),
        ("s.next.S = {s.n + 3}", "outside"),
        ("s.next.S = s.S | {s.n + 3}", "outside"),
        ("s.next.S = s.T", ""),
        ("s.next.T = s.S", ""),
        ("s.next.S = {x + 1 for x in range(0, N + 1)}", "outside"),
        ("s.next.S = (s.S | {s.n + 3}) - {s.n + 3}", ""),
        ("s.next.q = s.q + [0] + [1] + [2]", "outside"),
        ("s.next.q = (s.q + [0] + [1] + [2])[3:]", ""),
        ("s.next.q = [s.n + 3]", "outside"),
        ("s.next.o = s.n + 3", "outside"),
        ("s.next.of[s.p] = 0", "undefined"),
        ("s.next.m[s.n + 3] = True", "undefined"),
        ("s.next.q[0] = 1", "undefined"),
        ("s.next.r.a = s.n + 3", "outside"),
        ("s.next.of = {x: 3 for x in P}", "outside"),
        ("s.next.n = s.n + 3\n    s.next.n = 0", ""),
        ("s.next.of = {x: 3 for x in P}\n    if s.bad:\n        s.next.n = 1\n    s.next.of = {x: 0 for x in P}", ""),
        ("s.next.m[0] = True\n    require(False)", ""),
        ("s.next.n = 3\n    require(s.bad)", ""),
    ],
)
def test_what_an_action_leaves_is_of_its_variables_type(effect: str, said: str) -> None:
    m = model(action(*effect.replace("\n    ", "\n").split("\n")))
    assert (interpreted(m), explored(m)) == (said, said)


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        (["s.next.r.b = True"], {"r": {"a": 0, "b": True}}),
        (["s.next.r.b = True", "s.next.r.a = 2"], {"r": {"a": 2, "b": True}}),
        (["s.next.r = R(1, True)", "s.next.r.a = 2"], {"r": {"a": 2, "b": True}}),
        (["require(len(s.q) == 0)", "s.next.q = [2, 1] + s.q"], {"q": [2, 1]}),
        (["x = s.n + 1", "s.next.n = x * 2"], {"n": 2}),
        (["s.next.n = (7 - 3 * s.n) // 4 + -7 % 4"], {"n": 2}),
        (["s.next.n = len(P) - len(C) + 1"], {"n": 1}),
        (["s.next.S = {x // 2 for x in range(0, N + 1)}"], {"S": [0, 1]}),
        (["s.next.n = sum(x for x in range(0, N + 1) if x != 1)"], {"n": 2}),
        (["s.next.n = max(N - x for x in range(1, N + 1))"], {"n": 1}),
        (["s.next.n = min((x for x in s.S), default=1)"], {"n": 1}),
        (["s.next.bad = 1 in [0, 1] and 0 not in s.q and s.p not in set(P)"], {"bad": True}),
        (["s.next.bad = majority(set(P)) and not majority({x for x in P if s.p == x})"], {"bad": True}),
        (["s.next.m = {x: x > 0 for x in range(0, N + 1)}", "s.next.m[0] = True", "s.next.m[1] = False"],
         {"m": {"0": True, "1": False, "2": True}}),
    ],
)  # fmt: skip
def test_what_a_text_does(lines: list[str], values: dict[str, object]) -> None:
    m = model(action("require(s.c == C.RED)", *lines, "s.next.c = C.BLUE"))
    from kafkaspec.explore.engine import explore
    from kafkaspec.language.concrete import Concrete
    from tests.language.texts import sizes_of

    c = Concrete(m.cls, sizes_of(m))
    (first,) = c.initial_states()
    (taken,) = c.successors(first)
    state = c.show(taken.state)
    assert {n: state[n] for n in values} == values
    e = explore(m, sizes_of(m), deadlock=True)
    assert (e.outcome, e.distinct) == ("complete", 2)


@pytest.mark.parametrize("call", ["s.n == 0 and s.low()", "s.n != 0 or s.low()", "(s.low() if s.n == 0 else True)"])
def test_a_helper_in_a_condition_guards_and_assigns_under_that_condition(call: str) -> None:
    helper = "@define\ndef low(s) -> bool:\n    require(s.bad)\n    s.next.c = C.BLUE\n    return True\n"
    m = model(STEP + helper + action(f"if {call}:", "    s.next.q = []"), VARIABLES)
    e = interpreted(m), explored(m)
    assert e == ("", "")
    (f,) = [a for a in m.actions if a.name == "f"]
    assert len(f.guard) == 1
    assert str(f.guard[0]) in ("(not (n == 0) or bad)", "(not (0 == n) or bad)")


MET: dict[str, tuple[str, str]] = {
    "a map that is not used": ("t = {k: s.of[s.p] > 0 for k in P}", "return s.p is None"),
    "a map in a map": ("t = {k: {j: s.of[s.p] for j in P} for k in P}", "return s.p is None"),
    "a range that is not used": ("t = range(0, s.q[0])", "return len(s.q) == 0"),
    "a range that is not reached": ("s.next.bad = s.n in range(2, s.q[0])", "return len(s.q) == 0"),
    "a map that a helper is given": ("s.next.bad = s.kept({k: s.of[s.p] > 0 for k in P}, s.bad)", "return True"),
    "a helper that gives nothing": ("s.check()\n    s.next.bad = True", "return True"),
    "one in a claim": ("s.next.bad = True", "s.check()\n    return True"),
    "one within a helper in a claim": ("s.next.bad = True", "s.checks()\n    return True"),
}
"""What is evaluated and has no value in the first state: an action's text, and an invariant's."""


@pytest.mark.parametrize("case", MET)
def test_what_is_evaluated_must_have_a_value(case: str) -> None:
    effect, claim = MET[case]
    helpers = (
        "@define\ndef kept(s, t: dict[P, bool], x: bool) -> bool:\n    return x\n"
        "@define\ndef check(s) -> None:\n    assert len(s.q) > 0\n"
        "@define\ndef checks(s) -> None:\n    s.check()\n"
    )
    good = f"@invariant()\ndef good(s) -> bool:\n    {claim}\n"
    m = model(helpers + action(*effect.replace("\n    ", "\n").split("\n")) + good)
    assert interpreted(m) == "undefined"
    assert explored(m) in ("undefined", "good")  # where a claim has no value, it is broken
    assert not prove(m, timeout_s=1).complete


def test_a_map_in_a_map_reads_the_local_names_of_where_it_stands() -> None:
    text = (
        "@action()\ndef f(s) -> None:\n    a = 1\n    t = {p: {q: a for q in P} for p in P}\n"
        "    a = 2\n    s.next.mm = t\n"
        "@invariant()\ndef never_one(s, p: P) -> bool:\n    return s.mm[p][p] != 1\n"
    )
    m = model(text, "mm: dict[P, dict[P, Num]]\n")
    assert (interpreted(m), explored(m)) == ("never_one", "never_one")


REFUSED = {
    "s.next.m = {x: True for x in s.S}": "is made by a comprehension over all its keys",
    "s.next.m = {x: True for x in range(0, 2)}": "is made by a comprehension over all its keys, not over range(0, 2)",
    "require(s.o)": "is no truth value",
    "require(s.n)": "n of type 0..N is no truth value",
    "require(s.S)": "is no truth value",
    "print(s.n)": "print() has no meaning in a model's text",
    "s.S.add(1)": ".add() has no meaning in a model's text",
    "s.next.n = s.q[-1]": "an index is 0 or more",
    "s.next.q = s.q[-1:]": "a limit is 0 or more",
    "s.next.n = s.n * s.n": "one of the two is a literal number",
    "s.next.n = 1 // s.n": "the divisor is a literal number above 0",
    "s.next.n = s.n % 0": "the divisor is a literal number above 0",
    "s.next.n = s.n / 2": "'div' has no meaning in a model's text",
    "s.next.n = s.n ** 2": "'pow' has no meaning in a model's text",
    "s.next.n = int(s.bad)": "int() has no meaning in a model's text",
    "s.next.n = len(s.n)": "has no length",
    "s.next.bad = s.n is s.n": "`is` asks for None",
    "s.next.bad = s.n == None": "n of type 0..N is never None",
    "s.next.S = {s.S}": "S is of type set[0..N], where 0..N is wanted",
    "s.next.q = [x for x in s.q]": "a sequence is built by + [x]",
    "x = s.next.n": "is read",
    "s.next.r.z = 1": "has no field z",
    "s.next.n.a = 1": "is read",
    "s.next.q = [0]\n    s.next.q[0] = 1": "is assigned as a whole and at an index",
    "s.next.bad = all(s.put(x) for x in P)": "stands in a comprehension",
}


@pytest.mark.parametrize("effect", REFUSED)
def test_what_no_engine_takes_is_refused_with_its_line(effect: str) -> None:
    helper = "@define\ndef put(s, x: P) -> bool:\n    s.next.of[x] = 0\n    return True\n"
    with pytest.raises(ModelError, match=r"text_of_a_test_\d+\.py:\d+: ") as e:
        model(helper + action(*effect.replace("\n    ", "\n").split("\n")))
    assert REFUSED[effect] in str(e.value)


@pytest.mark.parametrize(
    ("guard", "bad"),
    [
        ("not s.none(x)", True),
        ("s.none(x)", False),
        ("s.none(None)", True),
        ("s.none(p=None)", True),
        ("s.none(p=x)", False),
        ("s.none(s.p) == (s.p is None)", True),
        ("s.given(x) is None", False),
        ("s.given(None) is None", True),
        ("s.of[s.given(x)] == 0", True),
        ("s.absent(None) and not s.absent(x)", True),
        ("s.low(1)", False),
        ("s.low(None)", True),
    ],
)
def test_a_helper_takes_and_returns_what_it_declares(guard: str, bad: bool) -> None:
    """An X, where X | None is declared."""
    m = model(
        "@define\ndef none(s, p: P | None) -> bool:\n    return p is None\n"
        "@define\ndef given(s, p: P | None) -> P | None:\n    return p\n"
        "@define\ndef absent(s, p: P | None) -> bool:\n    return p not in set(P)\n"
        "@define\ndef low(s, x: Num | None) -> bool:\n    return x is None or x < 1\n"
        f"@action()\ndef f(s, x: P) -> None:\n    require({guard})\n    s.next.bad = True\n"
        "@invariant()\ndef good(s) -> bool:\n    return not s.bad\n"
    )
    assert interpreted(m) == explored(m) == ("good" if bad else "")
    assert all(o.verdict == "proved" for o in prove(m).obligations) != bad


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("action(5)", "f: @action names clauses by their ids, such as ABC-1, not 5"),
        ("invariant", "f: @invariant decorates no method of a model: write @invariant()"),
        ("staticmethod", "f: @staticmethod decorates no method of a model"),
        ("action(who=3)", "f: who takes it is a word, not 3"),
        ("action(fair='Weak')", "f: fair is weak or strong, not 'Weak'"),
        ("action(fair='weak', per=('y',))", "fairness per y: f has no such parameter"),
        ("action(fair='weak', per='y')", "f: per are several parameters, as in ('p',), not 'y'"),
    ],
)
def test_a_decorator_is_given_what_it_asks_for(mark: str, said: str) -> None:
    with pytest.raises(ModelError, match=r"text_of_a_test_\d+\.py:\d+: ") as e:
        model(f"@{mark}\ndef f(s) -> None:\n    s.next.n = 0\n")
    assert said in str(e.value)
    assert all(isinstance(u.clause, str) for u in clauses.all_uses())


@pytest.mark.parametrize(
    ("head", "variables", "said"),
    [
        ('K = Size("k")', "k: Annotated[int, Range(0, K)]", "k is a variable and a size: rename one"),
        (
            'F = Flag("f")',
            "f: bool\n@invariant()\ndef i(s) -> bool:\n    return s.f or F",
            "f is a variable and a flag",
        ),
        ("", "P: dict[P, bool]", "P is a variable and a sort"),
        ("", "n: Num\n@invariant()\ndef N(s) -> bool:\n    return s.n == 0", "N is a size and a method"),
        ("", "next: bool", "next is no name for a variable"),
        ("@dataclass\nclass Open:\n    a: bool", "o: Open", "a record is a frozen dataclass"),
        ("@dataclass(frozen=True)\nclass Own:\n    a: Own", "o: Own", "Own holds itself"),
        ("", "S: set[P | None]", "an element of a set is of"),
        ('F = Flag("F")', "x: Annotated[int, Range(0, F)]", "F is no limit: a whole number or a size, not a flag"),
        (
            'F = Flag("F")',
            "q: Annotated[list[bool], Bounded(F)]",
            "F is no limit: a whole number or a size, not a flag",
        ),
        ("", "S: set[R]", "a set of records needs its greatest size"),
        ("", "x: Annotated[Num, Range(0, 1)]", "is limited more than once"),
        ("", "x: Annotated[list[Num], Bounded(2), NonEmpty]", "is limited more than once"),
        ("", "x: Annotated[set[R], Bounded(2), NonEmpty]", "is limited more than once"),
        ("", "x: Annotated[set[P], NonEmpty()]", "write NonEmpty"),
        ("", "x: Annotated[R, Of]", "write Of(...), with a variable's name"),
        ("", "x: bool\nghosts = 'x'", "ghosts are several names, as in ('n',), not 'x'"),
        ("", "x: bool\nghosts = 5", "ghosts are several names, as in ('n',), not 5"),
        ("K = Size(5)", "x: Annotated[int, Range(0, K)]", "5 is no name for a size or a flag"),
        ("K = Flag(None)", "x: bool", "None is no name for a size or a flag"),
    ],
)
def test_a_name_has_one_meaning_and_a_type_is_one_of_the_language(head: str, variables: str, said: str) -> None:
    with pytest.raises(ModelError, match=r"text_of_a_test_\d+\.py:\d+: ") as e:
        model("", variables + "\n", head + "\n")
    assert said in str(e.value)


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("s.o in range(0, 2)", "i"),
        ("s.o not in range(0, 2)", "i"),
        ("s.o is None or s.o in range(1, 2)", ""),
        ("s.o not in range(0, s.n)", ""),
        ("(s.o in range(0, 3)) == (s.o is not None)", ""),
        ("s.o in range(0, s.p2)", "undefined"),
    ],
)
def test_none_is_in_no_range(claim: str, said: str) -> None:
    give = action("require(s.o is None)", "s.next.o = 1")
    m = model(give + f"@invariant()\ndef i(s) -> bool:\n    return {claim}\n", texts.VARIABLES + "p2: Num | None\n")
    assert interpreted(m) == said
    assert explored(m) == (said and "i")


ELSEWHERE = """
from dataclasses import dataclass
from typing import Annotated
from kafkaspec.language import Range
@dataclass(frozen=True)
class Small:
    n: Annotated[int, Range(0, 1)]
"""


def test_a_record_that_is_known_by_its_module_is_checked_like_any(tmp_path: Path) -> None:
    other = modules.module(ELSEWHERE, tmp_path, "elsewhere").__name__
    m = model(STEP + action(f"require({other}.Small(n=s.n).n == 0)"), VARIABLES, f"import {other}\n")
    assert (interpreted(m), explored(m)) == ("undefined", "undefined")


@pytest.mark.parametrize(
    ("line", "head", "word"),
    [
        ("ks.require(s.n == 0, s.o > 0)", "import kafkaspec.language as ks", "require"),
        ("guard(s.n == 0, s.o > 0)", "from kafkaspec.language import require as guard", "require"),
        ("s.next.r = dataclasses.replace(s.r, a=3)", "import dataclasses", "replace"),
        ("s.next.n = builtins.len({s.o})", "import builtins", "len"),
    ],
)
def test_a_word_of_the_language_is_called_by_its_name_alone(line: str, head: str, word: str) -> None:
    with pytest.raises(ModelError, match=rf"\.py:\d+: {word} is a function of the language, which a text calls by"):
        model(action(line), head=head + "\n")


def test_a_limit_of_a_slice_is_no_literal_none() -> None:
    with pytest.raises(ModelError, match=r"\.py:\d+: None stands where a value of type int is wanted"):
        model(action("s.next.q = s.q[None:]"))


@pytest.mark.parametrize("effect", ["s.next.n = s.o + 0", "s.next.n = s.o * 1", "s.next.n = 0 + s.o"])
def test_none_in_a_sum_that_changes_nothing_is_undefined(effect: str) -> None:
    m = model(action(effect))
    assert (interpreted(m), explored(m)) == ("undefined", "undefined")


@pytest.mark.parametrize("value", ["s.p == a", "a in s.G", "s.inner.at == a", "s.map[a] == a"])
def test_what_has_no_first_value_is_not_read_at_the_start(value: str) -> None:
    head = "@dataclass(frozen=True)\nclass W:\n    at: P\n"
    start = "@initial\ndef start(s, a: P) -> None:\n    s.next.p = a\n    s.next.G = {a}\n    s.next.inner = W(at=a)\n"
    start += "    s.next.map = {k: a for k in P}\n    s.next.map[a] = a\n"
    of = "p: P\nG: Annotated[set[P], NonEmpty]\ninner: W\nmap: dict[P, P]\nbad: bool\n"
    assert model(start, of, head).actions == []
    with pytest.raises(ModelError, match=r"\.py:\d+: \w+ is read in @initial, but .* has no first value"):
        model(start + f"    s.next.bad = {value}\n", of, head)
    with pytest.raises(ModelError, match=r"\.py:\d+: \w+ is read in @initial, but .* has no first value"):
        model(start + f"    unused = {value}\n", of, head)


def test_what_has_no_first_value_is_not_read_at_the_start_by_a_helper_that_makes_nothing_of_it() -> None:
    of = "p: P\nmap: dict[bool, dict[P, bool]]\nn: Num\n"
    helper = "@define\ndef one(s) -> int:\n    unused = s.map[True][s.p]\n    return 1\n"
    start = "@initial\ndef start(s, a: P) -> None:\n    s.next.p = a\n    s.next.n = s.one()\n"
    with pytest.raises(ModelError, match=r"\.py:\d+: p is read in @initial, but .* has no first value"):
        model(helper + start, of)
    assert interpreted(model(helper.replace("[s.p]", "") + start, of)) == ""


def test_maps_of_two_fields_are_assigned_one_after_the_other() -> None:
    head = "@dataclass(frozen=True)\nclass Maps:\n    a: dict[bool, Num]\n    b: dict[C, Num]\n"
    body, variables = action("s.next.maps.b[C.BLUE] = 1", "s.next.maps.a[False] = s.n"), "n: Num\nmaps: Maps\n"
    m = model(body, variables, head)
    assert (interpreted(m), explored(m)) == ("", "")
    assert {o.verdict for o in prove(m).obligations if o.claim == "type of maps" and o.action == "f"} == {"proved"}
    m = model(body.replace("= s.n", "= s.n + 3"), variables, head)
    assert (interpreted(m), explored(m)) == ("outside", "outside")
    assert "refuted" in {o.verdict for o in prove(m).obligations if o.claim == "type of maps" and o.action == "f"}


def test_maps_of_two_fields_are_assigned_under_a_condition_that_may_have_no_value() -> None:
    head = "@dataclass(frozen=True)\nclass Maps:\n    a: dict[bool, Num]\n    b: dict[C, Num]\n"
    lines = ("if s.o > 0:", "    s.next.maps.b[C.BLUE] = 1", "    s.next.maps.a[False] = 2")
    m = model(action(*lines), "o: Num | None\nmaps: Maps\n", head)
    assert (interpreted(m), explored(m)) == ("undefined", "undefined")
