"""JSON from types: what is written is read back, and what is of another shape is refused."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaspec.contract.codec import Fields, Unordered, decode, decoder, encode, is_partial, partial, replace, view
from kafkaspec.lockstep.compare import differences, matches, same


class Entry(NamedTuple):
    epoch: int
    start_offset: int


class Kind(enum.Enum):
    CURRENT = ""
    FUTURE = "-future"


@dataclass(frozen=True)
class Log:
    entries: tuple[Entry, ...] = ()
    is_torn: bool = False


@dataclass(frozen=True)
class Partition:
    topic_id: str | None
    kind: Kind
    sizes: tuple[int, float]
    replicas: frozenset[int]
    logs: Mapping[str, Log]
    from_: int = 0


@partial
@dataclass(frozen=True)
class Observation:
    log_end: int = 0
    entries: tuple[Entry, ...] = ()


class Untyped(TypedDict):
    anything: int


Content = Log | tuple[Entry, ...] | str

LOG = {"entries": [[0, 3], [1, 9]], "isTorn": True}
VALUES: list[tuple[Any, Any, Any]] = [
    (type(None), None, None),
    (bool, True, True),
    (int, 2**63, 2**63),
    (float, 0.5, 0.5),
    (str, "abc", "abc"),
    (Any, {"x": [1, None]}, {"x": [1, None]}),
    (Literal["map", "set"], "map", "map"),
    (int | None, None, None),
    (Untyped, {"anything": 1}, {"anything": 1}),
    (Sequence[int], [3, 1], [3, 1]),
    (list[Entry], [Entry(0, 3)], [[0, 3]]),
    (Sequence[Entry], [Entry(0, 3)], [[0, 3]]),
    (tuple[int, ...], (3, 1), [3, 1]),
    (tuple[int, str], (3, "a"), [3, "a"]),
    (tuple[Entry, bool], (Entry(0, 3), True), [[0, 3], True]),
    (Entry, Entry(1, 9), [1, 9]),
    (Entry | None, Entry(1, 9), [1, 9]),
    (Entry | None, None, None),
    (frozenset[int], frozenset({10, 9, -1}), [-1, 9, 10]),
    (frozenset[Entry], frozenset({Entry(1, 0), Entry(0, 5)}), [[0, 5], [1, 0]]),
    (Kind, Kind.FUTURE, "-future"),
    (Mapping[str, int], {"a": 1}, {"a": 1}),
    (Mapping[str, Entry], {"a": Entry(1, 9)}, {"a": [1, 9]}),
    (Log, Log((Entry(0, 3), Entry(1, 9)), True), LOG),
    (Content, Log((Entry(0, 3), Entry(1, 9)), True), LOG),
    (Content, (Entry(0, 3),), [[0, 3]]),
    (Content, "corrupt", "corrupt"),
    (Content | None, None, None),
    (Kind | Entry | None, None, None),
    (Kind | Entry | None, Kind.CURRENT, ""),
    (Observation, Observation(3, (Entry(0, 3),)), {"logEnd": 3, "entries": [[0, 3]]}),
    (
        Partition,
        Partition(None, Kind.CURRENT, (3, 0.5), frozenset({2, 1}), {"0.log": Log()}, 7),
        {
            "topicId": None,
            "kind": "",
            "sizes": [3, 0.5],
            "replicas": [1, 2],
            "logs": {"0.log": {"entries": [], "isTorn": False}},
            "from": 7,
        },
    ),
]


@pytest.mark.parametrize(("hint", "value", "written"), VALUES, ids=lambda v: str(v)[:40])
def test_a_value_and_its_json(hint: Any, value: Any, written: Any) -> None:
    assert encode(value) == written
    assert type(encode(value)) is type(json.loads(json.dumps(written))) or isinstance(encode(value), Fields | Unordered)
    assert decode(hint, written) == value
    assert type(decode(hint, written)) is type(value)
    assert decode(hint, value) == value, "what is of the type already stays"


entries = st.builds(Entry, st.integers(), st.integers())
logs = st.builds(Log, st.lists(entries, max_size=3).map(tuple), st.booleans())
partitions = st.builds(
    Partition,
    st.none() | st.text(max_size=3),
    st.sampled_from(Kind),
    st.tuples(st.integers(), st.floats(allow_nan=False)),
    st.frozensets(st.integers(), max_size=4),
    st.dictionaries(st.text(max_size=3), logs, max_size=2),
    st.integers(),
)


@given(partitions)
def test_what_is_written_is_read_back(partition: Partition) -> None:
    assert decode(Partition, json.loads(json.dumps(encode(partition)))) == partition


@given(st.one_of(logs, st.lists(entries, max_size=3).map(tuple), st.text(max_size=3)))
def test_a_union_is_told_by_what_stands_there(content: Content) -> None:
    assert decode(Content, json.loads(json.dumps(encode(content)))) == content


@pytest.mark.parametrize("value", [frozenset({1, 2, 3}), Unordered([3, 1, 2]), {"a": (frozenset({"x", "y"}), 0)}])
def test_elements_of_which_the_order_says_nothing_match_in_any_order(value: Any) -> None:
    shown = encode(value)
    seen = json.loads(json.dumps(shown))
    inner = seen["a"][0] if isinstance(seen, dict) else seen
    inner.reverse()
    assert matches(shown, seen)
    assert same(shown, seen)
    assert list(differences(shown, seen, "state")) == []
    inner[0] = inner[-1]
    assert not matches(shown, seen), "one twice, another not"
    assert not same(shown, seen)
    (wrong,) = differences(shown, seen, "state")
    assert wrong.seen == inner[0]
    inner.pop()
    assert not matches(shown, seen), "fewer"
    assert len(list(differences(shown, seen, "state"))) == 1


def test_elements_in_any_order_may_have_keys_left_out() -> None:
    shown = encode(Unordered([Observation(1), Observation(2)]))
    assert matches(shown, [{"logEnd": 2}, {}])
    assert matches(shown, [{}, {"logEnd": 1}])
    assert not matches(shown, [{"logEnd": 2}, {"logEnd": 2}])
    assert not matches([1, 2], [2, 1]), "the order of any other array counts"


@given(st.frozensets(st.integers(), max_size=6))
def test_a_set_is_written_in_one_order(numbers: frozenset[int]) -> None:
    assert encode(numbers) == encode(frozenset(sorted(numbers, reverse=True))) == sorted(numbers)


def test_a_recording_may_leave_out_keys_of_what_is_partial() -> None:
    shown = encode(Observation(3))
    assert isinstance(shown, Fields)
    assert not isinstance(encode(Log()), Fields)
    assert matches(shown, {"logEnd": 3})
    assert not matches(shown, {"logEnd": 4})
    assert not matches(encode(Log()), {"isTorn": False})
    assert decode(Observation, {"logEnd": 3}) == Observation(3)


def test_a_dataclass_below_one_that_is_partial_is_not() -> None:
    @dataclass(frozen=True)
    class More(Observation):
        file: str = ""

    assert is_partial(Observation)
    assert not is_partial(More)
    assert not isinstance(encode(More()), Fields)


MALFORMED: list[tuple[Any, Any]] = [
    (Entry, [1]),
    (Entry, [1, 2, 3]),
    (Entry, {"epoch": 1, "startOffset": 2}),
    (Entry, "12"),
    (Entry, 5),
    (Entry | None, [1]),
    (tuple[int, str], [1]),
    (tuple[int, str], [1, "a", 2]),
    (tuple[int, ...], 5),
    (tuple[str, ...], "ab"),
    (tuple[Entry, ...], [[1, 2], [3]]),
    (list[Entry], {"a": [1, 2]}),
    (frozenset[int], "12"),
    (frozenset[int], {"a": 1}),
    (frozenset[int], [[1]]),
    (Kind, "-stray"),
    (Kind, ["-future"]),
    (Mapping[str, Entry], [[1, 2]]),
    (Log, [[], True]),
    (Log, "log"),
    (Log, {"entries": [], "torn": True}),
    (Log, {"entries": [[1]], "isTorn": True}),
    (Partition, {"topicId": None}),
    (Content, {"batches": []}),
    (Content, [[1]]),
]


@pytest.mark.parametrize(("hint", "written"), MALFORMED, ids=str)
def test_json_of_another_shape_is_refused(hint: Any, written: Any) -> None:
    with pytest.raises((TypeError, KeyError, ValueError)):
        decode(hint, written)


@pytest.mark.parametrize(
    "hint",
    [
        complex,
        object,
        set[int],
        Log | Observation,
        Entry | tuple[int, ...],
        Kind | str,
        list[complex],
        tuple[int, complex],
    ],
    ids=str,
)
def test_an_annotation_without_a_form_in_json_is_refused(hint: Any) -> None:
    with pytest.raises(TypeError):
        decoder(hint)


@pytest.mark.parametrize(
    "value",
    [1j, object(), [1j], {"a": object()}, Log((1j,))],  # type: ignore[arg-type]
    ids=["number", "object", "array", "map", "record"],
)
def test_a_value_without_a_form_in_json_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        encode(value)


def test_a_view_has_the_fields_of_its_type_and_what_is_given() -> None:
    @dataclass(frozen=True)
    class Whole(Log):
        size: int = 7

        @property
        def kind(self) -> Kind:
            return Kind.FUTURE

    @dataclass(frozen=True)
    class Some:
        size: int
        kind: Kind
        is_torn: bool

    assert view(Log, Whole((Entry(1, 2),))) == Log((Entry(1, 2),))
    assert view(Some, Whole(), is_torn=True) == Some(7, Kind.FUTURE, True)
    with pytest.raises(AttributeError, match="size"):
        view(Some, Log())


def test_a_field_that_is_given_by_name_alone_may_stand_before_the_others() -> None:
    @dataclass(frozen=True)
    class Both:
        named: int = field(kw_only=True)
        placed: int = 0

    assert replace(Both(1, named=2), placed=3) == Both(3, named=2)
    assert replace(Both(1, named=2), named=3) == Both(1, named=3)
