"""The search of an index: first the section, then halving. And the same search beside a writer, without a lock.

`Search` is a lookup alone, step by step, between appends and truncations: it answers the greatest lower bound. `Race`
is one reader whose steps interleave with a writer's: appends are harmless, truncations are not quite.

What was simplified. Keys are offsets; the positions beside them play no part in the search. W is the number of entries
between the first and the last of a full warm section. The time index is searched by the same code, for its timestamps.

Source: Kafka Internals, ch. 03, "AbstractIndex: mmap, the warm-section search, and locking"; AbstractIndex, Kafka
4.3.0.
"""

from __future__ import annotations

import enum
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Model,
    Range,
    Size,
    action,
    define,
    initial,
    invariant,
    leads_to,
    lemma,
    require,
    step,
    witness,
)

N = Size("N")
"""How many slots there are."""
K = Size("K")
"""The highest offset."""
W = Size("W")
"""How many entries before the last the warm section begins."""
Slot = Annotated[int, Range(0, N)]
Key = Annotated[int, Range(0, K)]


class Phase(enum.Enum):
    IDLE = 0
    CHOOSING = 1
    HALVING = 2
    DONE = 3


class Search(Model):
    """`low` and `high` are the first and the last slot that the answer may be in; `answer` is -1 for none."""

    key: dict[Slot, Key]
    entries: Slot
    phase: Phase
    target: Key
    low: Slot
    high: Slot
    answer: Annotated[int, Range(-1, N)]

    @initial
    def start(s) -> None:
        s.next.answer = -1

    @define
    def first_warm(s) -> Slot:
        return max(0, s.entries - 1 - W)

    @action("OIX-3", "OIX-4", "OIX-5", who="writer")
    def append(s, k: Key) -> None:
        require(s.phase == Phase.IDLE, s.entries < N, s.entries == 0 or s.key[s.entries - 1] < k)
        s.next.key[s.entries] = k
        s.next.entries = s.entries + 1

    @action("OIX-11", "OIX-12", who="writer")
    def truncate(s, k: Key, m: Slot) -> None:
        """The first m entries are those below k."""
        require(s.phase == Phase.IDLE, m <= s.entries, m == s.entries or s.key[m] >= k, m == 0 or s.key[m - 1] < k)
        s.next.entries = m

    @action("OIX-6", who="reader")
    def begin(s, k: Key) -> None:
        require(s.phase == Phase.IDLE)
        s.next.phase = Phase.CHOOSING
        s.next.target = k

    @action("OIX-7", who="reader", fair="weak")
    def choose(s) -> None:
        require(s.phase == Phase.CHOOSING)
        if s.entries == 0:
            s.next.phase = Phase.DONE
        elif s.key[s.first_warm()] < s.target:
            s.next.phase = Phase.HALVING
            s.next.low = s.first_warm()
            s.next.high = s.entries - 1
        elif s.key[0] > s.target:
            s.next.phase = Phase.DONE
        else:
            s.next.phase = Phase.HALVING
            s.next.low = 0
            s.next.high = s.first_warm()

    @action("OIX-8", who="reader", fair="weak")
    def halve(s, m: Slot) -> None:
        """m is the upper middle."""
        require(s.phase == Phase.HALVING, s.low < s.high)
        require(m + m == s.low + s.high or m + m == s.low + s.high + 1)
        if s.key[m] == s.target:
            s.next.answer = m
            s.next.phase = Phase.DONE
        elif s.key[m] > s.target:
            s.next.high = m - 1
        else:
            s.next.low = m

    @action("OIX-6", who="reader", fair="weak")
    def done(s) -> None:
        require(s.phase == Phase.HALVING, s.low >= s.high)
        s.next.answer = s.low
        s.next.phase = Phase.DONE

    @action("OIX-6", who="reader")
    def forget(s) -> None:
        require(s.phase == Phase.DONE)
        s.next.phase = Phase.IDLE
        s.next.target = 0
        s.next.low = 0
        s.next.high = 0
        s.next.answer = -1

    @invariant("OIX-3")
    def offsets_rise(s) -> bool:
        return all(s.key[i] < s.key[j] for i in range(N) for j in range(N) if i < j and j < s.entries)

    @invariant("OIX-6")
    def the_answer_is_the_greatest_lower_bound(s) -> bool:
        return s.phase != Phase.DONE or (
            (s.answer == -1 or (s.answer < s.entries and s.key[s.answer] <= s.target))
            and all(s.key[n] > s.target for n in range(N) if n > s.answer and n < s.entries)
        )

    @invariant("OIX-7")
    def the_search_stays_in_its_section(s) -> bool:
        return (
            s.phase != Phase.HALVING
            or (s.key[s.first_warm()] < s.target and s.first_warm() <= s.low)
            or (s.key[s.first_warm()] >= s.target and s.high <= s.first_warm())
        )

    @lemma("OIX-6", "OIX-7")
    def the_answer_lies_between(s) -> bool:
        return s.phase != Phase.HALVING or (
            s.low <= s.high
            and s.high < s.entries
            and s.key[s.low] <= s.target
            and all(s.key[n] > s.target for n in range(N) if n > s.high and n < s.entries)
        )

    @lemma()
    def no_answer_before_the_end(s) -> bool:
        return s.phase == Phase.DONE or s.answer == -1

    @step("OIX-8")
    def every_look_leaves_out_half(s) -> bool:
        return (
            s.phase != Phase.HALVING
            or s.next.phase != Phase.HALVING
            or (s.next.high - s.next.low) + (s.next.high - s.next.low) <= s.high - s.low
        )

    @lemma()
    def a_lookup_begins_with_nothing(s) -> bool:
        return s.phase != Phase.IDLE or (s.target == 0 and s.low == 0 and s.high == 0)

    @step("OIX-6")
    def a_lookup_goes_on_to_its_answer(s) -> bool:
        """It is given up by nobody, and one answer is forgotten before the next is looked for."""
        ended = s.next.phase != Phase.IDLE or s.phase in (Phase.IDLE, Phase.DONE)
        return ended and (s.phase != Phase.DONE or s.next.phase in (Phase.DONE, Phase.IDLE))

    @step("OIX-6")
    def nothing_is_written_beside_a_lookup(s) -> bool:
        return s.phase == Phase.IDLE or s.next.entries == s.entries

    @leads_to("OIX-6", "OIX-8")
    def a_lookup_ends(s) -> tuple[bool, bool]:
        return s.phase == Phase.CHOOSING, s.phase == Phase.DONE

    @step("OIX-5", "OIX-11", "OIX-12")
    def entries_keep_their_places(s) -> bool:
        return all(s.next.key[n] == s.key[n] for n in range(N) if n < s.entries and n < s.next.entries)

    @step("OIX-4", "OIX-5")
    def one_entry_at_a_time(s) -> bool:
        return s.next.entries <= s.entries + 1 and (s.next.entries <= s.entries or s.entries < N)

    @witness
    def found_in_the_warm_section(s) -> bool:
        return s.phase == Phase.DONE and s.answer > s.first_warm() and s.first_warm() > 0

    @witness
    def found_before_the_warm_section(s) -> bool:
        return s.phase == Phase.DONE and s.answer >= 0 and s.answer < s.first_warm()

    @witness
    def nothing_to_find(s) -> bool:
        return s.phase == Phase.DONE and s.entries == 0

    @witness
    def all_was_cut(s) -> bool:
        """From the lowest offset that there is."""
        return s.entries == 0 and s.key[0] == 0 and s.key[1] > 0

    @witness
    def not_found(s) -> bool:
        return s.phase == Phase.DONE and s.answer == -1 and s.entries > W


of_steps = step
"""For `Race`, which has a variable of the other name."""


class Step(enum.Enum):
    IDLE = 0
    BEGUN = 1
    NOT_EMPTY = 2
    WARM = 3
    HALVING = 4
    DONE = 5


class Race(Model):
    """`known`: the entries there were when the lookup began; `cut`, `reused`: since then a truncation took entries
    away, and an append after one wrote into their slots. `answered` is the key read at the end."""

    key: dict[Slot, Key]
    entries: Slot
    step: Step
    target: Key
    low: Slot
    high: Annotated[int, Range(-1, N)]
    answer: Annotated[int, Range(-1, N)]
    answered: Key
    known: Slot
    cut: bool
    reused: bool

    @initial
    def start(s) -> None:
        s.next.answer = -1

    @define
    def running(s) -> bool:
        return s.step != Step.IDLE and s.step != Step.DONE

    @action("OIX-22", who="writer")
    def append(s, k: Key) -> None:
        """The slot is written before it is counted: the reader sees the entry whole, or not at all."""
        require(s.entries < N, s.step != Step.DONE, s.entries == 0 or s.key[s.entries - 1] < k)
        s.next.key[s.entries] = k
        s.next.entries = s.entries + 1
        s.next.reused = s.reused or s.cut

    @action("OIX-22", who="writer")
    def truncate(s, m: Slot) -> None:
        require(m < s.entries, s.step != Step.DONE)
        s.next.entries = m
        s.next.cut = s.cut or s.running()

    @action("OIX-22", who="reader")
    def begin(s, k: Key) -> None:
        require(s.step == Step.IDLE)
        s.next.step = Step.BEGUN
        s.next.target = k
        s.next.known = s.entries

    @action("OIX-22", who="reader", fair="weak")
    def look_whether_it_is_empty(s) -> None:
        require(s.step == Step.BEGUN)
        s.next.step = Step.DONE if s.entries == 0 else Step.NOT_EMPTY

    @action("OIX-22", who="reader", fair="weak")
    def look_at_the_first_warm(s) -> None:
        require(s.step == Step.NOT_EMPTY)
        first = max(0, s.entries - 1 - W)
        if s.key[first] < s.target:
            s.next.step = Step.WARM
            s.next.low = first
        elif s.key[0] > s.target:
            s.next.step = Step.DONE
        else:
            s.next.step = Step.HALVING
            s.next.low = 0
            s.next.high = first

    @action("OIX-22", who="reader", fair="weak")
    def look_where_it_ends(s) -> None:
        require(s.step == Step.WARM)
        s.next.step = Step.HALVING
        s.next.high = s.entries - 1

    @action("OIX-22", who="reader", fair="weak")
    def halve(s, m: Slot) -> None:
        require(s.step == Step.HALVING, s.low < s.high)
        require(m + m == s.low + s.high or m + m == s.low + s.high + 1)
        if s.key[m] == s.target:
            s.next.low = m
            s.next.high = m
        elif s.key[m] > s.target:
            s.next.high = m - 1
        else:
            s.next.low = m

    @action("OIX-22", who="reader", fair="weak")
    def read_the_answer(s) -> None:
        require(s.step == Step.HALVING, s.low >= s.high)
        s.next.step = Step.DONE
        s.next.answer = s.low
        s.next.answered = s.key[s.low]

    @action("OIX-22", who="reader")
    def forget(s) -> None:
        require(s.step == Step.DONE)
        s.next.step = Step.IDLE
        s.next.target = 0
        s.next.low = 0
        s.next.high = 0
        s.next.answer = -1
        s.next.answered = 0
        s.next.known = 0
        s.next.cut = False
        s.next.reused = False

    @invariant("OIX-22")
    def right_beside_appends(s) -> bool:
        """It is one of the entries, not above the target, and none between was there from the beginning."""
        return (
            s.step != Step.DONE
            or s.cut
            or (
                (s.answer == -1 or (s.answer < s.entries and s.answered <= s.target))
                and all(s.key[n] > s.target for n in range(N) if n > s.answer and n < s.known)
            )
        )

    @invariant("OIX-22")
    def never_above_the_target_unless_slots_were_used_again(s) -> bool:
        return s.step != Step.DONE or s.reused or s.answer == -1 or s.answered <= s.target

    @lemma()
    def offsets_rise(s) -> bool:
        return all(s.key[i] < s.key[j] for i in range(N) for j in range(N) if i < j and j < s.entries)

    @lemma()
    def slots_that_were_cut_keep_what_they_held(s) -> bool:
        """While none was used again, what the reader may look at rises."""
        return (
            s.step == Step.IDLE
            or s.reused
            or all(s.key[i] < s.key[j] for i in range(N) for j in range(N) if i < j and j < s.known)
        )

    @lemma()
    def nothing_was_cut(s) -> bool:
        return s.step == Step.IDLE or s.cut or s.known <= s.entries

    @lemma()
    def used_again_after_a_cut(s) -> bool:
        return (not s.reused or s.cut) and (s.step != Step.IDLE or not s.cut)

    @lemma()
    def the_lowest_is_not_above_the_target(s) -> bool:
        return (s.step != Step.HALVING and s.step != Step.WARM) or s.reused or s.key[s.low] <= s.target

    @lemma()
    def the_answer_lies_between(s) -> bool:
        return (
            s.step != Step.HALVING
            or s.cut
            or (
                s.low <= s.high
                and s.high < s.entries
                and all(s.key[n] > s.target for n in range(N) if n > s.high and n < s.known)
            )
        )

    @lemma()
    def the_warm_section_has_begun(s) -> bool:
        return s.cut or ((s.step != Step.WARM or s.low < s.entries) and (s.step != Step.NOT_EMPTY or s.entries > 0))

    @lemma()
    def no_answer_before_the_end(s) -> bool:
        return s.step == Step.DONE or s.answer == -1

    @lemma()
    def a_lookup_begins_with_nothing(s) -> bool:
        nothing = s.target == 0 and s.low == 0 and s.high == 0 and s.known == 0
        return (s.step != Step.IDLE or nothing) and (s.step == Step.DONE or s.answered == 0)

    @lemma()
    def the_end_is_set_as_the_halving_begins(s) -> bool:
        return s.step == Step.HALVING or s.step == Step.DONE or s.high == 0

    @lemma("OIX-7")
    def the_warm_section_is_the_end(s) -> bool:
        """If nothing was written since the lookup began."""
        first = max(0, s.entries - 1 - W)
        begun = s.low == first and s.key[first] < s.target
        return s.step != Step.WARM or s.cut or s.entries != s.known or begun

    @lemma("OIX-7")
    def the_search_stays_in_its_section(s) -> bool:
        """If nothing was written since the lookup began."""
        first = max(0, s.entries - 1 - W)
        return (
            s.step != Step.HALVING
            or s.cut
            or s.entries != s.known
            or (s.key[first] < s.target and first <= s.low)
            or (s.key[first] >= s.target and s.high <= first)
        )

    @of_steps("OIX-22")
    def every_look_leaves_out_half(s) -> bool:
        return (
            s.step != Step.HALVING
            or (s.next.low == s.low and s.next.high == s.high)
            or (s.next.high - s.next.low) + (s.next.high - s.next.low) <= s.high - s.low
        )

    @of_steps("OIX-7")
    def the_section_before_the_warm_one_is_searched_whole(s) -> bool:
        begins = s.step == Step.NOT_EMPTY and s.next.step == Step.HALVING
        return not begins or (s.next.low == 0 and s.next.high == max(0, s.entries - 1 - W))

    @of_steps("OIX-22")
    def the_target_itself_is_the_answer(s) -> bool:
        """Once it was looked at, there is nothing left to look at."""
        found = s.next.low != s.low and s.key[s.next.low] == s.target
        return s.step != Step.HALVING or s.next.step != Step.HALVING or not found or s.next.high == s.next.low

    @of_steps("OIX-22")
    def what_is_left_is_read(s) -> bool:
        """With one entry left the search looks at no other."""
        left = s.step == Step.HALVING and s.next.step == Step.HALVING and s.low >= s.high
        return not left or (s.next.low == s.low and s.next.high == s.high)

    @of_steps("OIX-22")
    def a_lookup_goes_on_to_its_answer(s) -> bool:
        ended = s.next.step != Step.IDLE or s.step in (Step.IDLE, Step.DONE)
        return ended and (s.step != Step.DONE or s.next.step in (Step.DONE, Step.IDLE))

    @of_steps("OIX-22")
    def an_answer_is_forgotten_with_its_lookup(s) -> bool:
        same = s.next.answer == s.answer and s.next.answered == s.answered and s.next.target == s.target
        return s.step != Step.DONE or s.next.step == Step.IDLE or same

    @of_steps("OIX-22")
    def an_answer_is_compared_with_what_it_was_read_from(s) -> bool:
        """Nothing is written until it was."""
        return s.step != Step.DONE or s.next.entries == s.entries

    @of_steps("OIX-22")
    def it_is_known_what_was_there_at_the_beginning(s) -> bool:
        return s.step != Step.IDLE or s.next.step == Step.IDLE or s.next.known == s.entries

    @of_steps("OIX-22")
    def a_cut_takes_entries_away(s) -> bool:
        return s.cut or not s.next.cut or s.next.entries < s.entries

    @leads_to("OIX-22")
    def a_lookup_ends(s) -> tuple[bool, bool]:
        """Whatever is written beside it."""
        return s.step == Step.BEGUN, s.step == Step.DONE

    @witness
    def an_entry_that_is_gone(s) -> bool:
        return s.step == Step.DONE and s.answer >= s.entries

    @witness
    def an_entry_above_the_target(s) -> bool:
        return s.step == Step.DONE and s.answer >= 0 and s.answered > s.target

    @witness
    def found_beside_an_append(s) -> bool:
        return s.step == Step.DONE and s.answer >= s.known and not s.cut


MODELS = [
    Expectation(Search, sizes={"N": 5, "K": 6, "W": 2}, distinct=186207, generated=353487, depth=17),
    Expectation(Search, sizes={"N": 3, "K": 4, "W": 1}, distinct=2985, generated=5601, depth=11),
    Expectation(Race, sizes={"N": 4, "K": 4, "W": 1}, distinct=289364, generated=1064459, depth=20),
]
