"""Known deviations: where a released Kafka breaks its own rule, exactly when, and what it then shows.

A deviation is data beside the spec, in `machine.deviations`. A trace check that meets a step which the spec does not
explain asks each deviation what the released Kafka would have shown instead; only that answer is accepted, under its
name. The same wrong answer outside the condition is a rejection like any other.

The condition often hangs on how Kafka stores things, which the spec does not say. The *ghost* carries that: it starts
as `initial()`, and `advance` moves it along with every step, whether or not anything odd was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from kafkaspec.contract.history import parse
from kafkaspec.contract.machine import Json, Machine, Outside, Refused
from kafkaspec.errors import UserError

NEWEST = "4.3.0"
"""The newest release of Kafka that was judged."""

Ghost = Any
"""An immutable, hashable value."""


class Outcome(NamedTuple):
    """What a step shows: the answer or the refusal, and the observation after it."""

    result: Json | Refused
    observation: Json


def _nothing() -> Ghost:
    return None


def _unchanged(ghost: Ghost, before: Any, op: str, arguments: Mapping[str, Any], after: Any) -> Ghost:
    return ghost


def _never(ghost: Ghost) -> bool:
    return False


@dataclass(frozen=True)
class Deviation:
    """One true defect of a released Kafka.

    `rewrite(ghost, state, op, arguments, result, observation)` gets the ghost and the state *after* the step, and what
    the spec would show; it returns what the released Kafka shows, or its input unchanged where the condition is not
    met. It must not change its arguments in place. Arguments go by their Python names, complete with defaults.
    """

    id: str
    """the subsystem's prefix and a number, such as TML-D1"""
    clause: str
    """the clause that it breaks"""
    title: str
    versions: str
    """the releases in which it was seen, or read in the source"""
    condition: str
    """when it shows, exactly"""
    history: tuple[str, ...]
    """a minimal history: calls in the form of `contract.history`, without answers; it shows at the last call"""
    cause: str
    effect: str
    fix: str
    rewrite: Callable[[Ghost, Any, str, Mapping[str, Any], Json | Refused, Json], tuple[Json | Refused, Json]]
    releases: str = ""
    """the releases that show it, as a specifier of versions such as "<3.5" or ">=3.6"; empty: all"""
    initial: Callable[[], Ghost] = _nothing
    advance: Callable[[Ghost, Any, str, Mapping[str, Any], Any], Ghost] = _unchanged
    begins: Callable[[str | None], Ghost] | None = None
    """the first ghost by the release that is checked, None for the newest, where it hangs on that; `initial` is then
    that of the release in which the history shows it"""
    lost: Callable[[Ghost], bool] | None = None
    """whether the released Kafka's state has gone another way than the spec's, so that what it shows cannot be compared
    until the ghost says otherwise; the step that leads there is compared"""
    unsaid: Callable[[Ghost], bool] = _never
    """whether that step is not compared either: the call is outside the contract in the released Kafka's state"""

    def shows_in(self, release: str | None) -> bool:
        """Whether that release of Kafka has it; None stands for the newest that was judged. UserError for a text that
        is no version."""
        if not self.releases:
            return True
        try:
            return Version(release or NEWEST) in SpecifierSet(self.releases)
        except InvalidVersion:
            raise UserError(f"release {release}: not a version, such as 4.3.0") from None

    @property
    def has_ghost(self) -> bool:
        """Whether the condition looks at more than the spec's state."""
        return self.advance is not _unchanged

    @property
    def kind(self) -> tuple[Callable[..., Ghost], Callable[..., Ghost]]:
        """Deviations of one kind have one ghost together."""
        return self.begins or self.initial, self.advance

    def first(self, release: str | None) -> Ghost:
        """The ghost in the first state."""
        return self.begins(release) if self.begins is not None else self.initial()


def shown(machine: Machine[Any], deviation: Deviation) -> tuple[Outcome, Outcome]:
    """What the spec shows at the last call of the deviation's history, and what the released Kafka shows there.

    Raises ValueError if the history is not within the contract: the deviation is then written wrongly.
    """
    state: Any = machine.initial()
    ghost = deviation.initial()
    right = wrong = Outcome(None, machine.observe(state))
    for record in parse("\n".join(deviation.history), deviation.id).records:
        if record["op"] == "init":
            state, ghost = machine.start(record["args"]), deviation.initial()
            continue
        op = machine.find(record["op"])
        arguments = {**op.defaults, **{op.parameters[k]: v for k, v in record["args"].items()}}
        step = machine.apply(state, op.name, arguments)
        if isinstance(step, Outside):
            raise ValueError(f"{deviation.id}: {record['op']} is outside the contract ({step.clause})")
        ghost = deviation.advance(ghost, state, op.name, arguments, step.state)
        state = step.state
        right = Outcome(step.result, machine.observe(state))
        wrong = Outcome(*deviation.rewrite(ghost, state, op.name, arguments, *right))
    return right, wrong
