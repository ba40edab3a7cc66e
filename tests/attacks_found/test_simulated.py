"""Faulty brokers that `kafkaspec simulate replication` runs without a word, however many the seeds."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from kafkaspec.impl.storage.replication_parts.broker import IN_SYNC_MS, Broker
from kafkaspec.impl.storage.replication_parts.messages import NONE, FetchRequest, FetchResponse, MetadataRequest, ProduceResponse
from kafkaspec.impl.storage.replication_simulation import CONSUMER, cluster
from kafkaspec.simulate.runs import outcome
from kafkaspec.simulate.scenario import Send, SetTimer

SEEDS = range(30)


class IgnoresMinimum(Broker):
    """min.insync.replicas is ignored: a leader alone appends for acks=all, and commits (RPN-8, RPN-20, RPN-26)."""

    def are_enough(self, isr: Collection[str]) -> bool:
        return True


class TellsLogEnd(Broker):
    """A consumer is told the log end for the high watermark, above all that is committed (RPN-9)."""

    def take_fetch(self, source: str, body: FetchRequest) -> None:
        super().take_fetch(source, body)
        for n, e in enumerate(self.effects):
            if source == CONSUMER and type(e) is Send and type(e.body) is FetchResponse and e.body.error == NONE:
                self.effects[n] = Send(e.target, e.body._replace(high_watermark=self.log.log_end))


class NeverShrinks(Broker):
    """Who lags stays in sync (RPN-10)."""

    def shrink(self) -> None:
        if self.leads:
            self.effects.append(SetTimer("in sync", IN_SYNC_MS))
            self.raise_high_watermark()


@pytest.mark.parametrize("broker", [IgnoresMinimum, TellsLogEnd, NeverShrinks])
def test_a_rule_is_broken(broker: Any) -> None:
    scenario = cluster(f"replication:{broker.__name__}", broker.__doc__ or "", broker=broker)
    assert any(outcome(scenario, seed, "mixed").violation is not None for seed in SEEDS)


class AcknowledgesAnother(Broker):
    """An acknowledgement names a sequence with which no batch begins."""

    def complete_produces(self) -> None:
        before = len(self.effects)
        super().complete_produces()
        for n, e in enumerate(self.effects[before:], before):
            if type(e) is Send and type(e.body) is ProduceResponse and e.body.error == NONE:
                self.effects[n] = Send(e.target, e.body._replace(base_sequence=e.body.base_sequence + 1))


class SendsToNobody(Broker):
    """To a node that there is not."""

    def heartbeat(self) -> None:
        super().heartbeat()
        self.send("b9", MetadataRequest())


class AnswersNothing(Broker):
    """No effects, and not even none of them."""

    def handle(self, event: Any) -> Any:
        super().handle(event)


@pytest.mark.parametrize("broker", [AcknowledgesAnother, SendsToNobody, AnswersNothing])
def test_a_broker_that_talks_nonsense_is_told_as_one(broker: Any) -> None:
    """And not as "this is a bug of kafkaspec", with exit status 2."""
    scenario = cluster(f"replication:{broker.__name__}", broker.__doc__ or "", broker=broker)
    assert outcome(scenario, 0, "mixed").violation is not None
