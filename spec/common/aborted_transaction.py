"""An entry of a transaction index: what a reader of committed records must leave out."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kafkaspec.contract.governs import governs


class AbortedTransaction(NamedTuple):
    """Its producer, its first record's offset, its marker's, and what was stable then."""

    producer_id: Annotated[int, governs("TXI-1")]
    first_offset: Annotated[int, governs("TXI-1")]
    last_offset: Annotated[int, governs("TXI-1")]
    last_stable_offset: Annotated[int, governs("TXI-1")]
