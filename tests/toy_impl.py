"""What implements the toy subsystem: as for every subsystem, not in the module of its spec."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.machine import Json, Refused

FULL = "java.lang.IllegalStateException"
EMPTY = "java.util.NoSuchElementException"


class Driver:
    """The same queue, another way: a deque."""

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.capacity: int = arguments.get("capacity", 3)
        self.items: deque[int] = deque()
        self.saved: list[int] | None = None
        self.turned_away = 0

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        return getattr(self, name)(**arguments)

    def observe(self) -> Json:
        return {
            "items": list(self.items),
            "saved": self.saved,
            "turnedAway": self.turned_away,
            "full": len(self.items) == self.capacity,
        }

    def push(self, value: int) -> Json | Refused:
        if len(self.items) >= self.capacity:
            self.turned_away += 1
            return Refused("TOY-3", FULL)
        self.items.append(value)
        return len(self.items)

    def pop(self) -> Json | Refused:
        return self.items.popleft() if self.items else Refused("TOY-5", EMPTY, "the queue is empty")

    def save(self) -> None:
        self.saved = list(self.items)

    def restore(self) -> Json | Refused:
        if self.saved is None:
            return Refused("TOY-9", FULL, "nothing saved")
        self.items = deque(self.saved)
        return None

    def drain(self, at_most: int = 2) -> Json:
        return [self.items.popleft() for _ in range(min(at_most, len(self.items)))]


class ForgetsAfterRestore(Driver):
    """Wrong: what was saved is shared with the queue after a restore, so that a later push goes into both."""

    def restore(self) -> Json | Refused:
        answer = super().restore()
        self.shared = self.saved
        return answer

    def push(self, value: int) -> Json | Refused:
        answer = super().push(value)
        if getattr(self, "shared", None) is not None and self.saved is not None and not isinstance(answer, Refused):
            self.saved.append(value)
        return answer
