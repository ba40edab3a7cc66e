"""Configurations and ids of topics, as the metadata log of a KRaft cluster has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kafkaspec.audit.check import TopicConfig
from kafkaspec.audit.discover import Place


@dataclass
class Topics:
    """What a metadata log says of topics."""

    ids: dict[str, str] = field(default_factory=dict)

    def of(self, topic: str, node: int | None) -> tuple[TopicConfig, str | None]:
        """A topic's configuration and its id."""
        return TopicConfig(), self.ids.get(topic)


def topics_of(places: Sequence[Place], notes: list[str]) -> Topics:
    """What the newest metadata log among the places says."""
    return Topics()
