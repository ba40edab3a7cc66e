"""min.insync.replicas of the cluster and of single brokers, while eligible leader replicas are switched on and off.

What was simplified. There are no values: a key is there or not. A batch of records is one step.

Source: ConfigurationControlManager, Kafka 4.3.0; KIP-966.
"""

from __future__ import annotations

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Model, Sort, action, invariant, require, step, witness


class Broker(Sort):
    """A broker."""


class Safety(Model):
    """`cluster`: the cluster has the key; `brokers`: those that have one of their own."""

    elr: bool
    cluster: bool
    brokers: set[Broker]

    @action("CFG-8", who="administrator")
    def set_broker(s, b: Broker) -> None:
        require(not s.elr)
        s.next.brokers = s.brokers | {b}

    @action("CFG-8", who="administrator")
    def remove_broker(s, b: Broker) -> None:
        require(not s.elr)
        s.next.brokers = s.brokers - {b}

    @action("CFG-8", who="administrator")
    def set_cluster(s) -> None:
        s.next.cluster = True

    @action("CFG-8", who="administrator")
    def remove_cluster(s) -> None:
        require(not s.elr)
        s.next.cluster = False

    @action("CFG-14", who="administrator")
    def switch_on(s) -> None:
        s.next.elr = True
        s.next.cluster = True
        s.next.brokers = set()

    @action("CFG-14", who="administrator")
    def switch_off(s) -> None:
        s.next.elr = False

    @invariant("CFG-14", "CFG-8")
    def the_cluster_alone_has_it(s) -> bool:
        return not s.elr or (s.cluster and s.brokers == set())

    @step("CFG-8")
    def brokers_keep_theirs_by_themselves(s, b: Broker) -> bool:
        """They lose it by a change of their own, one at a time, or when it is switched on."""
        others = all(c in s.next.brokers for c in s.brokers if c != b)
        return s.next.elr or b not in s.brokers or b in s.next.brokers or others

    @step("CFG-14")
    def switching_off_changes_nothing_else(s) -> bool:
        off = s.elr and not s.next.elr
        return not off or (s.next.cluster == s.cluster and s.next.brokers == s.brokers)

    @witness
    def switched_off_again(s, b: Broker) -> bool:
        return not s.elr and s.cluster and b in s.brokers

    @witness
    def without_the_cluster_s(s) -> bool:
        return not s.cluster and all(b in s.brokers for b in Broker)

    @witness
    def in_use(s) -> bool:
        return s.elr


MODELS = [Expectation(Safety, sizes={"Broker": 3}, distinct=17, generated=164, depth=5)]
