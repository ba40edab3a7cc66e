"""What transactional producers, their coordinator and the brokers of one partition tell each other: the fields of
Kafka's requests that transactions of version 2 need.

Source: InitProducerIdRequest, AddPartitionsToTxnRequest, EndTxnRequest, WriteTxnMarkersRequest, Kafka 4.3.0; KIP-98,
KIP-890.
"""

from __future__ import annotations

from typing import NamedTuple

INVALID_PRODUCER_EPOCH = "INVALID_PRODUCER_EPOCH"
INVALID_TXN_STATE = "INVALID_TXN_STATE"
CONCURRENT = "CONCURRENT_TRANSACTIONS"


class InitProducerIdRequest(NamedTuple):
    correlation: int
    transactional_id: str


class InitProducerIdResponse(NamedTuple):
    correlation: int
    error: str
    producer_id: int
    producer_epoch: int


class AddPartitionsToTxnRequest(NamedTuple):
    """Of a broker, for the producer whose first batch of a transaction it got."""

    correlation: int
    producer_id: int
    producer_epoch: int


class AddPartitionsToTxnResponse(NamedTuple):
    correlation: int
    error: str


class EndTxnRequest(NamedTuple):
    correlation: int
    producer_id: int
    producer_epoch: int
    committed: bool


class EndTxnResponse(NamedTuple):
    """With the epoch of the next transaction."""

    correlation: int
    error: str
    producer_epoch: int


class WriteTxnMarkersRequest(NamedTuple):
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    committed: bool


class WriteTxnMarkersResponse(NamedTuple):
    producer_id: int
    producer_epoch: int
    error: str
