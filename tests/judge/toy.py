"""A spec for tests of the judge: a lease that expires, with a rule for each kind of condition."""

from __future__ import annotations

from dataclasses import dataclass, replace

from icontract import require

from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import Duration, Int32, ProducerId

TERM_MS = 600_000
HELD = Refused("TOY-1", "LeaseHeld")
STALE = Refused("TOY-2", "StaleEpoch")


@dataclass(frozen=True)
class Lease:
    holder: int | None = None
    epoch: int = 0
    until: int = 0
    now: int = 1_000_000
    written: tuple[int, ...] = ()

    @property
    def live(self) -> bool:
        return self.holder is not None and self.now < self.until


@dataclass(frozen=True)
class ShownToy:
    holder: int | None
    live: bool
    epoch: int
    written: list[int]


def initial() -> Lease:
    return Lease()


def show(state: Lease) -> ShownToy:
    return ShownToy(state.holder, state.live, state.epoch, list(state.written))


machine = Machine("toy", initial, show)


@machine.operation("acquire", "TOY-1")
def acquire(state: Lease, client: ProducerId) -> Step[Lease, int]:
    if state.live and state.holder != client:
        return Step(state, HELD)
    after = replace(state, holder=client, epoch=state.epoch + 1, until=state.now + TERM_MS)
    return Step(after, after.epoch)


@machine.operation("write", "TOY-2")
@require(lambda state, epoch: epoch <= state.epoch, "TOY-2 an epoch that was granted")
def write(state: Lease, epoch: Int32, value: Int32) -> Lease | Refused:
    if epoch < state.epoch:
        return STALE
    return replace(state, written=kept((*state.written, value)))


def kept(values: tuple[int, ...]) -> tuple[int, ...]:
    """The last five that are not negative."""
    return tuple(v for v in values if v >= 0)[-5:] if len(values) > 1 else values


@machine.operation("advance", "TOY-3", kind="time")
def advance(state: Lease, ms: Duration) -> Lease:
    return replace(state, now=state.now + ms)


machine.tried = {
    "client": lambda state: [1, 2],
    "epoch": lambda state: [state.epoch, max(0, state.epoch - 1)],
    "value": lambda state: [7],
    "ms": lambda state: [1, 400_000],
}
