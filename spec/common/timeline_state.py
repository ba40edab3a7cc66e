"""A registry of snapshots and its collections, as values, and how they are shown.

Nothing here is a rule of its own; the rules are TML. Source: Kafka Internals, ch. 11, "Timeline data structures".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, Final, Generic, NamedTuple, TypedDict, TypeVar, cast

from kafkaspec.contract.clauses import states
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Fields, Json
from kafkaspec.contract.numbers import Int64

T = TypeVar("T")
U = TypeVar("U")

Epoch = Int64
LATEST_EPOCH: Final = 2**63 - 1
"""The epoch that stands for the present."""
NO_EPOCH: Final = -(2**63)
"""What a registry without snapshots answers when it is asked for its latest epoch."""


@states("TML-17")
class View(NamedTuple):
    """What all collections show at one moment. Nothing in it is ever changed in place."""

    entries: Mapping[int, int]
    """the map"""
    elements: frozenset[int]
    """the set"""
    long: int
    integer: int
    object: str
    further: Mapping[str, frozenset[int]] = {}
    """sets that were registered later and that somebody holds, by name, as far as they are not empty"""

    def __hash__(self) -> int:
        further = frozenset(self.further.items())
        return hash((frozenset(self.entries.items()), self.elements, self.long, self.integer, self.object, further))


class OpenIterator(NamedTuple):
    """An iterator at the epoch of a snapshot."""

    collection: str
    epoch: Epoch
    given: int
    """how many elements it has given"""


class Timeline(NamedTuple):
    """A registry and its collections."""

    present: View
    past: dict[Epoch, View]
    """the copies, by rising epoch"""
    highest: Epoch
    """the highest epoch used since the last reset, or since the revert that lowered it; NO_EPOCH if none was"""
    first: View
    """what the collections were when they were made"""
    map_expected_size: int
    set_expected_size: int
    iterator: OpenIterator | None = None
    held: frozenset[str] = frozenset()
    """the further sets that somebody holds"""
    made: frozenset[str] = frozenset()
    """the names given to further sets since the last reset, or held since before it"""

    @property
    def latest_epoch(self) -> Epoch:
        """The epoch of the latest snapshot; NO_EPOCH if there is none."""
        return next(reversed(self.past), NO_EPOCH)

    def showing(self, present: View) -> Timeline:
        """The state with another present."""
        return Timeline(present, *self[1:])

    def __hash__(self) -> int:
        return hash((self.present, tuple(self.past.items()), self.highest, self.iterator, self.held, self.made))


# ---- what is shown of them -------------------------------------------------------------------------------------------
class ShownView(TypedDict, total=False):
    """All collections at one epoch."""

    map: dict[str, int]
    """keys in decimal"""
    mapSize: Annotated[int, governs("TML-16")]
    set: list[int]
    setSize: Annotated[int, governs("TML-16")]
    long: int
    int: int
    object: str


class WrittenOnce(Generic[T, U]):
    """Each thing written out once, and kept for the next time that the same object is asked for: a walk shows the same
    copies after every call."""

    MOST_ENTRIES: ClassVar[int] = 1 << 19
    """in all things that are kept"""

    def __init__(self, write: Callable[[T], U], entries: Callable[[T], int]) -> None:
        self.write = write
        self.entries = entries
        """how many a thing has"""
        self.kept: dict[int, tuple[T, U]] = {}
        self.total = 0

    def __call__(self, thing: T) -> U:
        known = self.kept.get(id(thing))
        if known is not None and known[0] is thing:
            return known[1]
        more = self.entries(thing)
        self.total += more
        if len(self.kept) > 1000 or self.total > self.MOST_ENTRIES:
            self.kept.clear()
            self.total = more
        text = self.write(thing)
        self.kept[id(thing)] = thing, text
        return text


def entries_of(view: View) -> int:
    return len(view.entries) + len(view.elements)


def _written(view: View) -> ShownView:
    """A view as recordings show it; a release without one of the collections leaves it out."""
    return cast(
        ShownView,
        Fields(
            {
                "map": {str(k): v for k, v in sorted(view.entries.items())},
                "mapSize": len(view.entries),
                "set": sorted(view.elements),
                "setSize": len(view.elements),
                "long": view.long,
                "int": view.integer,
                "object": view.object,
            }
        ),
    )


shown = WrittenOnce(_written, entries_of)


def _past_written(past: dict[Epoch, View]) -> dict[str, Json]:
    return {
        "epochs": list(past),
        "latestEpoch": next(reversed(past), NO_EPOCH),
        "at": {str(epoch): shown(view) for epoch, view in past.items()},
    }


shown_past = WrittenOnce(_past_written, lambda past: sum(map(entries_of, past.values())))


class Observation(TypedDict):
    """All collections at every epoch."""

    epochs: Annotated[list[int], governs("TML-1", "TML-3", "TML-7", "TML-8", "TML-9", "TML-10")]
    """of the snapshots, rising"""
    latestEpoch: Annotated[int, governs("TML-1", "TML-3", "TML-7", "TML-8", "TML-9", "TML-10")]
    """-2^63 without a snapshot"""
    latest: Annotated[
        ShownView,
        governs(
            "TML-7",
            "TML-10",
            "TML-17",
            keys={
                "map*": ("TML-13",),
                "set*": ("TML-14",),
                "long": ("TML-15",),
                "int": ("TML-15",),
                "object": ("TML-15",),
            },
        ),
    ]
    """the present"""
    at: Annotated[dict[str, ShownView], governs("TML-4", "TML-11", "TML-18", "TML-8", "TML-9", "TML-3")]
    """by epoch"""


def observe(state: Timeline) -> Observation:
    """All collections at every epoch."""
    past = shown_past(state.past)
    return {
        "epochs": past["epochs"],
        "latestEpoch": past["latestEpoch"],
        "latest": shown(state.present),
        "at": past["at"],
    }
