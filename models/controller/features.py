"""The level of metadata.version in a cluster whose nodes come and go, and one feature that depends on it.

What was simplified. There are four versions: 0 does not register controllers, 1 and 2 brought another form of metadata,
3 did not. The feature needs version 2. Every node supports all versions up to its own highest. A broker registers only
if it supports what is finalized; a controller always may. This controller supports everything.

Source: FeatureControlManager and ClusterControlManager, Kafka 4.3.0.
"""

from __future__ import annotations

from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Model, Range, Sort, action, define, invariant, require, step, witness


class Broker(Sort):
    """A broker."""


class Controller(Sort):
    """Another controller of the quorum."""


Version = Annotated[int, Range(0, 3)]


class Cluster(Model):
    """`most` is the highest version that a registered node supports; 0 for one that is not registered."""

    metadata: Version
    dependent: bool
    brokers: set[Broker]
    broker_most: dict[Broker, Version]
    controllers: set[Controller]
    controller_most: dict[Controller, Version]

    @define
    def brokers_support(s, v: Version) -> bool:
        return all(s.broker_most[b] >= v for b in Broker if b in s.brokers)

    @define
    def controllers_support(s, v: Version) -> bool:
        return s.metadata == 0 or all(c in s.controllers and s.controller_most[c] >= v for c in Controller)

    @define
    def controllers_are_known(s) -> bool:
        return s.metadata == 0 or all(c in s.controllers for c in Controller)

    @action("FEA-8", "FEA-9", "FEA-10", who="administrator")
    def raise_version(s, v: Version) -> None:
        require(v > s.metadata, s.brokers_support(v), s.controllers_support(v))
        s.next.metadata = v

    # Only version 3 can be left for a lower one: it has the metadata of version 2.
    @action("FEA-14", who="administrator")
    def lower_version(s, v: Version) -> None:
        require(v < s.metadata, s.controllers_support(v))
        require(s.metadata == 3, v == 2)
        s.next.metadata = v

    @action("FEA-15", "FEA-10", who="administrator")
    def enable(s) -> None:
        require(not s.dependent, s.controllers_are_known())
        require(s.metadata >= 2)
        s.next.dependent = True

    @action("FEA-10", who="administrator")
    def disable(s) -> None:
        require(s.dependent, s.controllers_are_known())
        s.next.dependent = False

    @action("FEA-26", who="broker")
    def register_broker(s, b: Broker, most: Version) -> None:
        require(most >= s.metadata)
        s.next.brokers = s.brokers | {b}
        s.next.broker_most[b] = most

    @action("FEA-26", who="administrator")
    def unregister_broker(s, b: Broker) -> None:
        require(b in s.brokers)
        s.next.brokers = s.brokers - {b}
        s.next.broker_most[b] = 0

    @action("FEA-26", who="controller")
    def register_controller(s, c: Controller, most: Version) -> None:
        require(s.metadata >= 1)
        s.next.controllers = s.controllers | {c}
        s.next.controller_most[c] = most

    @invariant("FEA-15", "FEA-14")
    def what_is_needed_is_there(s) -> bool:
        return not s.dependent or s.metadata >= 2

    @invariant("FEA-26", "FEA-8")
    def brokers_support_what_is_finalized(s, b: Broker) -> bool:
        return b not in s.brokers or s.broker_most[b] >= s.metadata

    @step("FEA-26", "FEA-9")
    def controllers_support_what_is_being_finalized(s, c: Controller) -> bool:
        return s.metadata == 0 or s.next.metadata == s.metadata or s.controller_most[c] >= s.next.metadata

    @step("FEA-10")
    def nothing_is_finalized_while_a_controller_is_missing(s, c: Controller) -> bool:
        unchanged = s.next.metadata == s.metadata and s.next.dependent == s.dependent
        return s.metadata == 0 or c in s.controllers or unchanged

    @step("FEA-14")
    def metadata_is_not_lost(s) -> bool:
        return s.next.metadata >= s.metadata or (s.metadata == 3 and s.next.metadata == 2)

    @invariant("FEA-26")
    def nothing_is_known_of_who_is_not_registered(s, b: Broker, c: Controller) -> bool:
        return (b in s.brokers or s.broker_most[b] == 0) and (c in s.controllers or s.controller_most[c] == 0)

    @step("FEA-26")
    def brokers_register_one_by_one(s, b: Broker, d: Broker) -> bool:
        return b == d or s.next.broker_most[b] == s.broker_most[b] or s.next.broker_most[d] == s.broker_most[d]

    @step("FEA-26")
    def controllers_register_one_by_one(s, c: Controller, d: Controller) -> bool:
        unchanged = s.next.controller_most[d] == s.controller_most[d]
        return c == d or s.next.controller_most[c] == s.controller_most[c] or unchanged

    @step("FEA-26")
    def controllers_register_from_version_1_on(s) -> bool:
        return s.metadata >= 1 or s.next.controllers == s.controllers

    @witness
    def registered_at_version_1(s, c: Controller) -> bool:
        return s.metadata == 1 and c in s.controllers

    @witness
    def everything_is_in_use(s) -> bool:
        return s.metadata == 3 and s.dependent and all(b in s.brokers for b in Broker)

    @witness
    def a_controller_lags(s, c: Controller) -> bool:
        """It registered later, or the level was finalized when controllers did not register."""
        return c in s.controllers and s.controller_most[c] < s.metadata

    @witness
    def nobody_may_change_anything(s, c: Controller) -> bool:
        return s.metadata == 2 and c not in s.controllers


MODELS = [Expectation(Cluster, sizes={"Broker": 2, "Controller": 2}, distinct=958, generated=13_690, depth=7)]
