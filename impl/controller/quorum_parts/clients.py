"""The clients of a quorum: one that writes, and asks again until it is answered, also by another leader; and one that
reads what is stable at any controller.

Source: NodeToControllerChannelManager, KafkaAdminClient, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkaspec.impl.controller.quorum_parts.messages import ReadRequest, ReadResponse, WriteRequest, WriteResponse
from kafkaspec.simulate.scenario import Ask, Boot, Clock, Effect, Message, Send, SetTimer, Timer
from kafkaspec.spec.common.metadata_log import Outcome

RETRY_MS, BACKOFF_MS = 120, 20
MOST_NAMES = 9
"""in a write: who asks for more gets none, and a file to replay that does is refused"""


class Client:
    """Who asks one controller after the other, one request at a time."""

    def __init__(self, name: str, controllers: Sequence[str], clock: Clock) -> None:
        self.name, self.controllers, self.clock = name, tuple(controllers), clock
        self.target = 0
        self.waiting: list[Any] = []
        """what was asked for and is not answered, the oldest first"""
        self.number = 0
        """of the request that counts"""
        self.effects: list[Effect] = []

    def handle(self, event: Boot | Message | Timer | Ask) -> Sequence[Effect]:
        """One event; what is to be done."""
        self.effects = []
        if type(event) is Message:
            self.take(event.body)
        elif type(event) is Ask:
            if self.does(event.what):
                self.waiting.append(event.what)
                if len(self.waiting) == 1:
                    self.ask()
        elif type(event) is Timer:
            if event.name == "retry":
                self.target += 1
            if self.waiting:
                self.ask()
        return self.effects

    @staticmethod
    def does(what: Any) -> bool:
        """Whether it is something that this client can ask for."""
        raise NotImplementedError

    def ask(self) -> None:
        """For the oldest."""
        self.number += 1
        self.effects.append(Send(self.controllers[self.target % len(self.controllers)], self.request(self.waiting[0])))
        self.effects.append(SetTimer("retry", RETRY_MS))

    def request(self, what: Any) -> Any:
        raise NotImplementedError

    def take(self, body: Any) -> None:
        """An answer."""

    def is_done(self) -> None:
        """The oldest is answered."""
        del self.waiting[0]
        self.number += 1
        if self.waiting:
            self.ask()


class Writer(Client):
    """Creates, changes, registers. Each attempt has a value of its own."""

    def __init__(self, name: str, controllers: Sequence[str], clock: Clock, client: int) -> None:
        super().__init__(name, controllers, clock)
        self.first = client * 1_000_000

    @staticmethod
    def does(what: Any) -> bool:
        match what:
            case ["register", [int(broker)]]:
                return 0 <= broker < 1000
            case [("create" | "change" | "transact"), [str(), *more]]:
                return len(more) < MOST_NAMES and all(isinstance(n, str) for n in more)
        return False

    def request(self, what: Any) -> WriteRequest:
        kind, names = what
        return WriteRequest(self.number, kind, tuple(map(str, names)), self.first + self.number)

    def take(self, body: Any) -> None:
        if type(body) is not WriteResponse or body.number != self.number or not self.waiting:
            return
        if body.outcome == Outcome.DONE:
            self.is_done()
            return
        leader = f"k{body.leader}"
        self.target = self.controllers.index(leader) if leader in self.controllers else self.target + 1
        self.effects.append(SetTimer("again", BACKOFF_MS))


class Reader(Client):
    """Of each controller in turn."""

    @staticmethod
    def does(what: Any) -> bool:
        match what:
            case ["read", str()]:
                return True
        return False

    def request(self, what: Any) -> ReadRequest:
        return ReadRequest(self.number, what[1])

    def take(self, body: Any) -> None:
        if type(body) is ReadResponse and body.number == self.number and self.waiting:
            self.target += 1
            self.is_done()
