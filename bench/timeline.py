"""The timeline map against a dict that is copied at every snapshot, at rising sizes. Prints JSON: `rows` of {"what",
"size" (keys), "seconds" (of one)}."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

from kafkaspec.impl.controller.timeline import SnapshotRegistry, TimelineHashMap

SIZES = (1_000, 10_000, 100_000)
CHANGES = 10
"""changes after each snapshot"""
ENOUGH_SECONDS = 0.3
"""of repeating one thing"""


class Timelines:
    """The timeline map."""

    def __init__(self, size: int) -> None:
        self.registry = SnapshotRegistry()
        self.map: TimelineHashMap[int, int] = TimelineHashMap(self.registry, size)
        for key in range(size):
            self.map.put(key, 0)

    def put(self, key: int, value: int) -> None:
        self.map.put(key, value)

    def snapshot(self, epoch: int) -> None:
        self.registry.get_or_create_snapshot(epoch)

    def read(self, key: int, epoch: int) -> int | None:
        return self.map.get(key, epoch)

    def revert(self, epoch: int) -> None:
        self.registry.revert_to_snapshot(epoch)

    def forget_up_to(self, epoch: int) -> None:
        self.registry.delete_snapshots_up_to(epoch)


class Copies:
    """A dict, and a copy of it for each snapshot."""

    def __init__(self, size: int) -> None:
        self.map = dict.fromkeys(range(size), 0)
        self.past: dict[int, dict[int, int]] = {}

    def put(self, key: int, value: int) -> None:
        self.map[key] = value

    def snapshot(self, epoch: int) -> None:
        self.past[epoch] = dict(self.map)

    def read(self, key: int, epoch: int) -> int | None:
        return self.past[epoch].get(key)

    def revert(self, epoch: int) -> None:
        self.map = dict(self.past[epoch])
        self.past = {e: copy for e, copy in self.past.items() if e <= epoch}

    def forget_up_to(self, epoch: int) -> None:
        self.past = {e: copy for e, copy in self.past.items() if e >= epoch}


def measured(once: Callable[[int], None]) -> float:
    """Seconds of one call; it gets the number of the call."""
    calls, begun = 0, time.perf_counter()
    while (passed := time.perf_counter() - begun) < ENOUGH_SECONDS or calls < 3:
        for _ in range(10):
            once(calls)
            calls += 1
    return passed / calls


def rows(size: int, name: str, thing: Timelines | Copies) -> Iterator[dict[str, object]]:
    """What is measured of one of the two, at one size."""
    epoch = 0

    def put(n: int) -> None:
        thing.put(n * 7919 % size, n)

    def change(n: int) -> None:
        nonlocal epoch
        epoch += 1
        thing.snapshot(epoch)
        for i in range(CHANGES):
            thing.put((n * 31 + i) % size, n)
        thing.forget_up_to(epoch - 5)

    def read(n: int) -> None:
        thing.read(n * 7919 % size, epoch - 4)

    def revert(n: int) -> None:
        for i in range(CHANGES):
            thing.put((n * 31 + i) % size, n)
        thing.revert(epoch)

    for what, once in (
        ("put", put),
        (f"snapshot, {CHANGES} changes, forget the oldest", change),
        ("read 4 snapshots back", read),
        (f"{CHANGES} changes, revert", revert),
    ):
        yield {"what": f"{what}: {name}", "size": size, "seconds": measured(once)}


def main() -> None:
    """Measure and print."""
    found = [
        row
        for size in SIZES
        for name, make in (("timeline", Timelines), ("copying", Copies))
        for row in rows(size, name, make(size))
    ]
    order = list(dict.fromkeys(str(row["what"]) for row in found))
    found.sort(key=lambda row: order.index(str(row["what"])))
    print(json.dumps({"rows": found}))


if __name__ == "__main__":
    main()
