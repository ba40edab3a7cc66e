"""What controllers and their clients tell each other: the fields of Kafka's requests that a quorum needs, by Kafka's
names for them. Replicas are known by their numbers.

Source: VoteRequest, BeginQuorumEpochRequest, EndQuorumEpochRequest, FetchRequest, FetchSnapshotRequest, Kafka 4.3.0;
KIP-595, KIP-630, KIP-853, KIP-996.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkaspec.impl.controller.quorum_parts.batches import told
from kafkaspec.impl.controller.raft import OK, Position
from kafkaspec.spec.common.metadata_log import Outcome

SNAPSHOT_NOT_FOUND = "SNAPSHOT_NOT_FOUND"


def of_leader(leader: int | None) -> str:
    return "no leader known" if leader is None else f"{leader} leads"


class VoteRequest(NamedTuple):
    correlation: int
    epoch: int
    candidate: int
    last_epoch: int
    last_offset: int
    pre_vote: bool

    def __str__(self) -> str:
        name = "PreVoteRequest" if self.pre_vote else "VoteRequest"
        return f"{name} {self.correlation}(epoch {self.epoch}, log up to {self.last_offset} of epoch {self.last_epoch})"


class VoteResponse(NamedTuple):
    correlation: int
    error: str
    epoch: int
    leader: int | None
    granted: bool

    def __str__(self) -> str:
        said = self.error if self.error != OK else "granted" if self.granted else "not granted"
        return f"VoteResponse {self.correlation}({said}; epoch {self.epoch}, {of_leader(self.leader)})"


class BeginQuorumEpochRequest(NamedTuple):
    epoch: int
    leader: int


class EndQuorumEpochRequest(NamedTuple):
    epoch: int
    leader: int
    successors: tuple[int, ...]


class QuorumEpochResponse(NamedTuple):
    """To one of these two."""

    error: str
    epoch: int
    leader: int | None


class FetchRequest(NamedTuple):
    correlation: int
    epoch: int
    replica: int
    offset: int
    last_epoch: int

    def __str__(self) -> str:
        what = f"epoch {self.epoch}, from {self.offset} behind epoch {self.last_epoch}"
        return f"FetchRequest {self.correlation}({what})"


class FetchResponse(NamedTuple):
    correlation: int
    error: str
    epoch: int
    leader: int | None
    high: int | None
    diverging: Position | None = None
    snapshot: Position | None = None
    records: bytes = b""

    def __str__(self) -> str:
        where = f"epoch {self.epoch}, {of_leader(self.leader)}"
        if self.error != OK:
            return f"FetchResponse {self.correlation}({self.error}; {where})"
        if self.diverging is not None:
            what = f"diverging: epoch {self.diverging.epoch} ends at {self.diverging.offset}"
        elif self.snapshot is not None:
            what = f"snapshot {self.snapshot.offset} of epoch {self.snapshot.epoch}"
        else:
            what = told(self.records) or "nothing"
        return f"FetchResponse {self.correlation}({what}; high watermark {self.high}; {where})"


class FetchSnapshotRequest(NamedTuple):
    correlation: int
    epoch: int
    replica: int
    snapshot: Position
    position: int


class FetchSnapshotResponse(NamedTuple):
    correlation: int
    error: str
    epoch: int
    leader: int | None
    size: int
    position: int
    data: bytes

    def __str__(self) -> str:
        what = self.error if self.error != OK else f"bytes from {self.position} on, of {self.size}"
        return f"FetchSnapshotResponse {self.correlation}({what}; epoch {self.epoch}, {of_leader(self.leader)})"


class ChangeVotersRequest(NamedTuple):
    """AddRaftVoter or RemoveRaftVoter."""

    adds: bool
    voter: int

    def __str__(self) -> str:
        return f"{'AddRaftVoterRequest' if self.adds else 'RemoveRaftVoterRequest'}({self.voter})"


class WriteRequest(NamedTuple):
    """`kind`: to "create" a name that there is not, to "change" some, to "transact", which is to do so in a metadata
    transaction, to "register" a broker. `value` is one that no other attempt has."""

    number: int
    kind: str
    names: tuple[str, ...]
    value: int

    def __str__(self) -> str:
        return f"WriteRequest {self.number}({self.kind} {', '.join(self.names)} = {self.value})"


class WriteResponse(NamedTuple):
    """`value`: of what was created, now or before, or changed."""

    number: int
    kind: str
    names: tuple[str, ...]
    sent: int
    outcome: Outcome
    value: int
    leader: int | None

    def __str__(self) -> str:
        said = f"{', '.join(self.names)} = {self.value}" if self.outcome == Outcome.DONE else self.outcome.value
        return f"WriteResponse {self.number}({said})"


class ReadRequest(NamedTuple):
    number: int
    name: str


class ReadResponse(NamedTuple):
    """Of what was so at the stable offset."""

    number: int
    name: str
    value: int
    stable: int
