"""TLA+: what the text says, and (deep, where TLC can be had) that TLC counts what we count."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.export import module_name, tla
from kafkaspec.language import Bounded, Model, Range, Size, Sort, action, initial, load, require, step, witness
from kafkaspec.language.concrete import Concrete
from tests.export.everything import Everything
from tests.export.further import Init, Letters, Lines, Wide
from tests.export.tlc import StateCount, tlc
from tests.language import verdicts

SIZES = {"Node": 2, "L": 1, "E": 2, "STRICT": True}


def part(module: str, name: str) -> str:
    """One definition of a module, without the comment over it."""
    (found,) = re.findall(rf"^{re.escape(name)}(?:\([^)\n]*\))? ==.*?(?=\n\n|\n===)", module, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def module() -> str:
    return tla(load(Everything), SIZES)[0]


def test_an_action_stands_as_a_tla_author_would_write_it(module: str) -> None:
    assert (
        part(module, "take")
        == """\
take(n) ==
    /\\ Len(queue) > 0
    /\\ (queue[1].target = NONE \\/ queue[1].target = n) = TRUE
    /\\ mode' = [mode EXCEPT ![n] =
                   IF queue[1].target = NONE THEN "DONE"
                   ELSE IF queue[1].target \\in gone THEN "IDLE"
                   ELSE "BUSY"]
    /\\ members' = members \\cup queue[1].voters
    /\\ queue' = SubSeq(queue, 2, Len(queue))
    /\\ chosen' = queue[1].target
    /\\ last' = queue[1]
    /\\ UNCHANGED <<vars_, slots, weight, gone, flag>>"""
    )
    assert "\\* XXX-1, a node: Puts a request into the queue.\nsend(n, to, f) ==" in module


def test_types_are_an_invariant(module: str) -> None:
    types = part(module, "TypeOK")
    assert "/\\ vars_ \\in [Node -> [BOOLEAN -> 0..E]]" in types
    assert "/\\ members \\in (SUBSET Node) \\ {{}}" in types
    assert "/\\ chosen \\in Node \\cup {NONE}" in types
    assert (
        "/\\ queue \\in BoundedSeq([target : Node \\cup {NONE}, voters : (SUBSET Node) \\ {{}}, epoch : 0..E], L)"
        in types
    )


def test_the_start_may_choose(module: str) -> None:
    start = part(module, "Init")
    assert start.startswith("Init ==\n    \\E n \\in Node :\n    /\\ mode = ")
    assert "[k_2 \\in BOOLEAN |-> 0]] EXCEPT ![n][TRUE] = 1]" in start


def test_fairness_and_promises(module: str) -> None:
    assert (
        part(module, "Fairness")
        == "Fairness ==\n    /\\ \\A n \\in Node : WF_vars(take(n))\n    /\\ SF_vars(\\E m \\in Node : leave(m))"
    )
    assert part(module, "Spec") == "Spec == Init /\\ [][Next]_vars /\\ Fairness"
    assert part(module, "is_taken").startswith("is_taken ==\n    \\A n \\in Node :\n        (Len(queue) > 0 /\\ ")
    assert ")\n        ~> (" in part(module, "is_taken")
    assert part(module, "queue_moves_by_one") == "queue_moves_by_one ==\n    [][Len(queue') <= Len(queue) + 1]_vars"


def test_the_configuration_names_every_claim() -> None:
    _, configuration = tla(load(Everything), SIZES)
    claims = re.findall(r"^(?:INVARIANT|PROPERTY) (.*)$", configuration, re.MULTILINE)
    assert claims == [
        "TypeOK", "members_are_there", "epochs_are_small",
        "queue_moves_by_one", "taken_from_the_front", "is_taken",
    ]  # fmt: skip
    for constant in ("Node = {n0, n1}", "L = 1", "E = 2", "STRICT = TRUE", "NONE = NONE"):
        assert f"    {constant}\n" in configuration
    assert configuration.endswith("CHECK_DEADLOCK TRUE\n")
    assert tla(load(Everything), SIZES, deadlock=True)[1].endswith("CHECK_DEADLOCK FALSE\n")


def test_ghosts_are_left_out_unless_asked_for(module: str) -> None:
    assert "\\* Left out, for they speak of ghosts: seen_counts." in module
    assert "seen'" not in module
    with_ghosts, configuration = tla(load(Everything), SIZES, ghosts=True)
    assert "seen' = seen + 1" in with_ghosts
    assert "/\\ seen \\in Nat" in with_ghosts
    assert "INVARIANT seen_counts" in configuration


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match="Everything needs the size of L, STRICT, E"):
        tla(load(Everything), {"Node": 2})


# ---- messages, numbers, sequences ------------------------------------------------------------------------------------
LETTERS = {"Voter": 2, "K": 1}
LINES = {"Voter": 2, "K": 2, "L": 2}


def module_of(model: type[Model], sizes: dict[str, int | bool]) -> str:
    return tla(load(model), sizes)[0]


def test_messages_are_a_set_of_records_that_is_not_enumerated() -> None:
    module = module_of(Letters, LETTERS)
    types = part(module, "TypeOK")
    assert "/\\ post \\subseteq [sender : Voter, term : 0..K, about : Voter \\cup {NONE}]" in types
    assert "/\\ Cardinality(post) <= 2" in types
    assert "/\\ DOMAIN kept = Voter" in types
    assert "\\/ \\E m \\in post, n \\in post : burn(m, n)" in part(module, "Next")
    assert (
        part(module, "burn")
        == """\
burn(m, n) ==
    /\\ m # n
    /\\ post' = {x \\in post : m # x /\\ n # x}
    /\\ kept' = [v \\in Voter |-> {x \\in kept[v] : x.term = 0}]
    /\\ UNCHANGED <<ballot>>"""
    )
    assert part(module, "kept_by_their_senders").endswith("/\\ {m.sender : m \\in kept[v]} \\subseteq {v}")


def test_a_key_is_evaluated_under_its_condition() -> None:
    module = module_of(Letters, LETTERS)
    assert (
        part(module, "read")
        == """\
read(m, keep) ==
    /\\ keep => Cardinality(kept[m.sender]) < 1
    /\\ post' = post \\ {m}
    /\\ kept' = [kept EXCEPT ![m.sender] = IF keep THEN {m} ELSE @]
    /\\ ballot' = LET it == IF m.about # NONE
                           THEN [ballot EXCEPT ![m.about].votes = ballot[m.about].votes \\cup {m.sender}]
                           ELSE ballot
                 IN  IF m.about # NONE /\\ ballot[m.about].IN_ < K /\\ Cardinality(post) * 2 > Cardinality(Voter)
                     THEN [it EXCEPT ![m.about].IN_ = ballot[m.about].IN_ + 1]
                     ELSE it"""
    )


def test_numbers_and_sequences() -> None:
    module = module_of(Lines, LINES)
    assert (
        part(module, "turn")
        == """\
turn ==
    /\\ Len(line) > 1
    /\\ line' = SubSeq(line, 2, Len(line)) \\o Take(line, 1)
    /\\ balance' = Sum([i \\in 1..Len(line) |-> line[i]]) \\div 2 - 1
    /\\ mixed' = (0 - line[1]) % 2
    /\\ UNCHANGED <<whose, mine, debt, high, chosen, terms>>"""
    )
    assert "line' = [line EXCEPT ![i + 1] = line[i + 1] - 1]" in part(module, "rewrite")
    assert 'mine\' = [mine EXCEPT !.IN_ = line[i + 1], !.role = "LEADER"]' in part(module, "rewrite")
    assert "chosen' = Max({line[i] : i \\in 1..Len(line)})" in part(module, "choose")
    assert "debt' = Least({-3 - mine.IN_ : v \\in mine.votes}, debt)" in part(module, "choose")
    assert "{Slice(line, 1, 3)[i] : i \\in 1..Len(Slice(line, 1, 3))}" in part(module, "choose")


def test_numbers_start_at_0_if_they_can() -> None:
    start = part(module_of(Lines, LINES), "Init")
    for line in ("balance = 0", "debt = -5", "high = 2", "mixed = 0"):
        assert f"/\\ {line}\n" in start
    assert "/\\ w = (IF 2 - N <= 0 THEN 0 ELSE 2 - N)" in part(module_of(verdicts.FirstNumber, {"N": 3}), "Init")


def test_definedness_is_an_invariant_where_it_is_not_plain(module: str) -> None:
    assert "Defined" not in module
    broken, configuration = tla(load(verdicts.IndexAssignedBeyond), {"N": 3})
    assert (
        part(broken, "Defined")
        == """\
Defined ==
    \\* put
    /\\ \\A i \\in 0..1 :
           Len(q) > 0 => i < Len(q)"""
    )
    assert configuration.index("INVARIANT TypeOK\nINVARIANT Defined\n") > 0


def test_a_claim_is_defined_and_true() -> None:
    claim = part(module_of(verdicts.NoneInAClaim, {"Cell": 2, "N": 3}), "fine")
    assert claim == "fine ==\n    \\A c \\in Cell : o[c] # NONE /\\ o[c] + 1 <= 2"


def test_the_start_has_a_value_by_assumption() -> None:
    assert "ASSUME\n    Len(<<>>) > 0\n" in module_of(verdicts.StartWithoutAValue, {"N": 3})


def test_a_step_that_changes_nothing_is_a_step() -> None:
    module, configuration = tla(load(verdicts.StepInPlace), {"N": 3})
    assert part(module, "moves_in_place") == "moves_in_place ==\n    ~ENABLED (Next /\\ UNCHANGED vars)"
    assert "INVARIANT moves_in_place\n" in configuration
    assert "in_place" not in module_of(Letters, LETTERS)


# ---- guards: TLC must not take the branches of a test as successors of their own ------------------------------------
class Item(Sort):
    pass


class Branching(Model):
    """Every shape of guard in which a disjunction can stand."""

    at: dict[Item, bool]
    on: bool
    CHOOSE: bool
    Len: bool
    kept: Annotated[list[bool], Bounded(2)]

    @initial
    def start(s, i: Item) -> None:
        s.next.CHOOSE = True
        s.next.on = s.CHOOSE or s.at[i]  # reads the first values: the same first state for each i

    @action()
    def either(s, i: Item) -> None:
        require(s.on or not s.at[i])
        s.next.at[i] = not s.at[i]

    @action()
    def some(s) -> None:
        require(any(s.at[i] for i in Item))
        s.next.on = not s.on or s.CHOOSE

    @action()
    def each(s) -> None:
        require(all((s.at[i] or s.on) if s.CHOOSE else (s.Len or not s.on or s.at[i]) for i in Item))
        s.next.Len = s.on and not s.Len

    @action()
    def covered(s, b: bool) -> None:
        require(len(s.kept) < 2 and all(not (s.on and not k) or s.Len for k in s.kept))
        s.next.kept = s.kept + [b]

    @action()
    def implied(s, i: Item, same: bool) -> None:
        require(not s.on or (s.at[i] == same and (s.Len or s.CHOOSE or same)))
        s.next.CHOOSE = same if s.on else not s.CHOOSE
        if s.on:
            s.next.at[i] = False
        elif same:
            s.next.at[i] = True
            s.next.on = True


def agree(folder: Path, model: type[Model], sizes: dict[str, int | bool], module: str | None = None) -> None:
    """TLC finds no error and our counts."""
    text, configuration = tla(load(model), sizes, deadlock=True)
    found = tlc(folder, module or text, configuration)
    states, generated = Concrete(model, sizes).reachable()
    assert found.error == "", found.output
    assert (found.generated, found.distinct, found.depth) == (generated, len(states), max(states.values()))


def test_tests_stay_tests() -> None:
    module, _ = tla(load(Branching), {"Item": 2})
    assert "/\\ (on \\/ ~at[i]) = TRUE" in part(module, "either")
    assert "/\\ (\\E i \\in Item : at[i]) = TRUE" in part(module, "some")
    assert ") = TRUE" in part(module, "each")
    assert ") = TRUE" in part(module, "implied")
    assert ") = TRUE" in part(module, "covered")


def test_names_of_tla_are_not_taken() -> None:
    module, _ = tla(load(Branching), {"Item": 2})
    assert "VARIABLES at, on, CHOOSE_, Len_" in module


def test_names_are_in_letters_that_tla_has_and_stay_apart() -> None:
    module, configuration = tla(load(Init), {"Öl": 2})
    assert (module + configuration).isascii()
    assert "VARIABLES ufc__, ufc_, maudf_, von" in module
    assert "MODULE Init_ " in module
    assert module_name(load(Init)) == "Init_"


def test_a_configuration_lists_so_many_elements_and_no_more() -> None:
    with pytest.raises(UserError, match="Öl=999999999: a configuration of TLC lists each element, 10,000 at most"):
        tla(load(Init), {"Öl": 999_999_999})


def test_branches_keep_their_order() -> None:
    module, _ = tla(load(Branching), {"Item": 2})
    assert "at' = [at EXCEPT ![i] = IF on THEN FALSE ELSE IF same THEN TRUE ELSE @]" in part(module, "implied")


@pytest.mark.deep
@pytest.mark.parametrize("items", [1, 2, 3])
def test_tlc_counts_guards_as_we_do(tmp_path: Path, items: int) -> None:
    agree(tmp_path, Branching, {"Item": items})


@pytest.mark.deep
def test_tlc_would_count_bare_disjunctions_twice(tmp_path: Path) -> None:
    """What the `= TRUE` is for, and that the comparison can fail."""
    module, configuration = tla(load(Branching), {"Item": 2}, deadlock=True)
    right = tlc(tmp_path, module, configuration)
    wrong = tlc(tmp_path, module.replace(") = TRUE", ")"), configuration)
    assert right.error == wrong.error == ""
    assert right.distinct == wrong.distinct
    assert right.generated < wrong.generated


# ---- the whole language ----------------------------------------------------------------------------------------------
@pytest.mark.deep
@pytest.mark.parametrize(
    "sizes",
    [
        SIZES,
        {"Node": 2, "L": 1, "E": 1, "STRICT": False},
        {"Node": 1, "L": 2, "E": 2, "STRICT": True},
    ],
    ids=str,
)
def test_tlc_agrees_on_everything(tmp_path: Path, sizes: dict[str, int | bool]) -> None:
    agree(tmp_path, Everything, sizes)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("model", "sizes"),
    [(Letters, LETTERS), (Lines, LINES), (Wide, {"Voter": 2, "K": 2}), (Wide, {"Voter": 3, "K": 1}), (Init, {"Öl": 2})],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_tlc_agrees_on_what_else_there_is(tmp_path: Path, model: type[Model], sizes: dict[str, int | bool]) -> None:
    agree(tmp_path, model, sizes)


def altered(folder: Path, old: str, new: str) -> StateCount:
    module, configuration = tla(load(Everything), SIZES, deadlock=True)
    assert old in module
    return tlc(folder, module.replace(old, new), configuration)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("members_are_there ==\n    /\\", "members_are_there ==\n    /\\ flag /\\", "Invariant members_are_there is"),
        ("vars_ \\in [Node -> [BOOLEAN -> 0..E]]", "vars_ \\in [Node -> [BOOLEAN -> 1..E]]", "Invariant TypeOK is"),
        ("[][Len(queue') <=", "[][Len(queue') + 1 <=", "Action property queue_moves_by_one is violated"),
        ("[][Next]_vars /\\ Fairness", "[][Next]_vars", "Temporal propert(y|ies) .*violated"),
    ],
    ids=["invariant", "types", "step", "fairness"],
)  # fmt: skip
def test_tlc_sees_a_broken_claim(tmp_path: Path, old: str, new: str, error: str) -> None:
    assert re.search(error, altered(tmp_path, old, new).output)


@pytest.mark.deep
def test_tlc_reaches_the_witness(tmp_path: Path) -> None:
    module, configuration = tla(load(Everything), SIZES, deadlock=True)
    never = module.replace("\n====", "\nnever == ~full\n====", 1)
    assert "Invariant never is violated" in tlc(tmp_path, never, configuration + "INVARIANT never\n").output


# ---- what would be read as something else ----------------------------------------------------------------------------
class Membership(Model):
    """Step properties that begin with a membership, or with a quantifier."""

    at: dict[Item, bool]
    here: set[Item]

    @action()
    def add(s, i: Item) -> None:
        s.next.here = s.here | {i}
        s.next.at[i] = True

    @step()
    def stays(s, i: Item) -> bool:
        return i not in s.here or i in s.next.here

    @step()
    def all_stay(s) -> bool:
        return all(x not in s.here or x in s.next.here for x in Item)

    @step()
    def known(s) -> bool:
        return s.here <= s.next.here


class Begins(Model):
    """The same, of a variable."""

    chosen: bool
    n: Annotated[int, Range(0, 3)]

    @action()
    def up(s) -> None:
        require(s.n < 3)
        s.next.n = s.n + 1

    @step()
    def low(s) -> bool:
        return s.n in (0, 1, 2) and s.next.n > s.n


def test_a_step_property_that_begins_with_a_membership_is_no_function() -> None:
    assert part(tla(load(Begins), {})[0], "low").split("\n    ")[1].startswith("[][(n \\in {0, 1, 2} /\\ ")


FROM = Size("FROM")


class FromASize(Model):
    queue: Annotated[list[bool], Bounded(2)]
    flag: bool

    @witness
    def seen(s) -> bool:
        return True in {s.flag for x in range(FROM, len(s.queue))}


def test_positions_of_a_sequence_may_begin_at_a_size() -> None:
    assert "{flag : x \\in {x \\in FROM..1 : x < Len(queue)}}" in tla(load(FromASize), {"FROM": 1})[0]


class InBraces(Model):
    """Memberships that elements of sets begin with, in either order."""

    a: bool
    some: set[bool]
    more: set[bool]

    @action()
    def before(s, b: bool) -> None:
        s.next.some = {(b in s.more) == s.a}

    @action()
    def behind(s, b: bool) -> None:
        s.next.some = {s.a == (b in s.more)}

    @action()
    def together(s) -> None:
        s.next.more = s.some | {s.a in s.some and len(s.more) < 2}

    @action()
    def each(s) -> None:
        s.next.more = {b in s.some and len(s.more) < 2 for b in {False, True}}


def test_in_braces_a_membership_is_no_choice() -> None:
    """Behind a brace, SANY reads a \\in b <=> c as a \\in (b <=> c)."""
    module, _ = tla(load(InBraces), {})
    assert re.search(r"\{\w+ \\in [^:{}]*(<=>|/\\)", module) is None
    assert len(re.findall(r"\{(\(\w+ \\in|\w+ <=> \w+ \\in)", module)) == 4


class InBrackets(Model):
    """Memberships that keys begin with."""

    a: bool
    some: set[bool]
    at: dict[bool, bool]

    @action()
    def write(s) -> None:
        s.next.at[s.a in s.some] = not s.at[s.a in s.some]
        s.next.a = s.at[(s.a in s.some) == s.at[True]]

    @action()
    def add(s, b: bool) -> None:
        s.next.some = s.some | {b}


def test_in_brackets_a_membership_begins_no_function() -> None:
    """Behind a bracket, SANY takes x \\in S for the beginning of [x \\in S |-> e]."""
    module, _ = tla(load(InBrackets), {})
    assert re.search(r"\w\[\w+ \\in (?!BOOLEAN)", module) is None
    assert len(re.findall(r"\[\(\w+ \\in ", module)) >= 3


@dataclass(frozen=True)
class Nothing:
    """A record without fields."""


class OfNothing(Model):
    one: Nothing
    several: Annotated[list[Nothing], Bounded(2)]
    maybe: Nothing | None
    among: Annotated[set[Nothing], Bounded(1)]

    @action()
    def more(s) -> None:
        require(len(s.several) < 2)
        s.next.several = s.several + [s.one]

    @action()
    def less(s) -> None:
        s.next.several = []
        s.next.maybe = Nothing() if s.maybe is None else None
        s.next.among = s.among | {Nothing()}


def test_a_record_without_fields_has_one_value() -> None:
    states, _ = Concrete(OfNothing, {}).reachable()
    assert len(states) == explore(load(OfNothing), {}).distinct == 9
    assert "[]" not in tla(load(OfNothing), {})[0].replace("[][", "")


@dataclass(frozen=True)
class SF_Record:
    WF_: bool
    WF_field: bool


class WF_Names(Model):
    """Names that begin as a formula of fairness does."""

    SF_: bool
    WF: bool
    WF_record: SF_Record
    WFu5f_record: bool

    @action()
    def WF_set(s, WF_: bool, SF_to: bool) -> None:
        s.next.WF_record = SF_Record(WF_=WF_, WF_field=SF_to)
        s.next.WFu5f_record = any(WF_x == s.SF_ for WF_x in {WF_, SF_to})

    @action()
    def turn(s, WF: bool) -> None:
        s.next.WF = any(SF == s.WF for SF in {WF}) or all(SF for SF in {WF})

    @step()
    def SF_claim(s) -> bool:
        return s.WFu5f_record or not s.next.WFu5f_record or s.next.WF == s.WF


def test_no_name_begins_as_a_formula_of_fairness_does() -> None:
    module, configuration = tla(load(WF_Names), {})
    assert re.search(r"\b[WS]F_", module + configuration + module_name(load(WF_Names))) is None
    assert "VARIABLES SFu5f_, WF, WFu5f_record_, WFu5f_record\n" in module


class Colour(enum.Enum):
    RED = 0
    BLUE = 1
    GREEN = 2
    YELLOW = 3
    PURPLE = 4


class LongConditions(Model):
    """Conditions that take several lines, of which the first is a quantifier over nothing."""

    some: set[bool]
    seen: set[Colour]

    @action()
    def look(s, b: bool, c: Colour) -> None:
        s.next.some = s.some | {b}
        if any(x and Colour.RED not in s.seen and len(s.seen) < 2 for x in s.some) or all(c != x for x in s.seen):
            s.next.seen = s.seen | {c}

    @witness
    def both(s) -> bool:
        if_all = all(x and len(s.seen) < 3 for x in s.some if Colour.RED not in s.seen)
        met = any(y == c and y != Colour.BLUE for y in s.seen for c in Colour)
        return False if if_all and met else True  # noqa: SIM211


def test_the_lines_of_a_condition_stand_below_each_other() -> None:
    """A line that is indented further is a part of the quantifier before it: something else, where that is of
    nothing."""
    module, _ = tla(load(LongConditions), {})
    found = re.findall(r"^( *(?:IF |THEN |ELSE )?)(/\\|\\/) .*\n( *)\2 ", part(module, "both"), re.MULTILINE)
    assert [len(head) for head, _, _ in found] == [len(below) for _, _, below in found] == [7]


@pytest.mark.deep
@pytest.mark.parametrize("model", [InBraces, InBrackets, OfNothing, WF_Names, LongConditions])
def test_tlc_reads(tmp_path: Path, model: type[Model]) -> None:
    module, configuration = tla(load(model), {}, deadlock=True)
    found = tlc(tmp_path, module, configuration)
    states, _ = Concrete(model, {}).reachable()
    assert (found.error, found.distinct) == ("", len(states))


@pytest.mark.deep
@pytest.mark.parametrize("model", [Membership, Begins])
def test_tlc_reads_step_properties(tmp_path: Path, model: type[Model]) -> None:
    sizes = {n: 2 for n in load(model).sizes}
    module, configuration = tla(load(model), sizes, deadlock=True)
    assert tlc(tmp_path, module, configuration).error == ""
