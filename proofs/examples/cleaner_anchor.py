"""The benchmark's cleaner: for any number of partitions, threads and pauses, retention holds its pause, and each
partition is cleaned by one thread exactly while its status says so."""

from __future__ import annotations

from kafkaspec.language import lemma
from kafkaspec.models.examples.cleaner_anchor import CleanerAnchor, Partition, Status
from kafkaspec.prove.proof import Proof


class CountedCleaner(CleanerAnchor):
    """The same model with what its proof needs."""

    @lemma()
    def paused_is_counted(s, p: Partition) -> bool:
        return (s.status[p] == Status.PAUSED) == (s.pauses[p] > 0)


PROOFS = [Proof(CountedCleaner, explored_at={"Partition": 2, "Thread": 2, "N": 2, "D": 1})]
