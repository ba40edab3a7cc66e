"""Checkpoint files: the arguments that engines try."""

from __future__ import annotations

import json

from kafkaspec.contract.clauses import states
from kafkaspec.spec.common.checkpoint_text import ZERO_ID, checkpoint_text, metadata_text
from kafkaspec.spec.common.kafka import INT_MAX, LONG_MAX
from kafkaspec.spec.management.checkpoints import CHECKPOINTS, Directory, machine


@states("CKP-8")
def marker_text(broker_epoch: int) -> str:
    """A clean-shutdown marker."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))


PARTITIONS = ["t-0", "a-b-1", "topic.with_all-0"]


ID = "AAAAAAAAAAEAAAAAAAACsQ"


CHECKPOINT_TEXTS: list[str] = [
    "",
    "0\n",
    "0\n0\n",
    "0\n1\nt 0 5\n",
    "0\n1\nt 0 5",
    "0\r\n1\r\nt\t0  5 \r\n",
    "+0\n+1\nt +0 -5\n",
    "0\n2\nt 0 5\nt 0 6\n",
    "0\n2\nt 0 1000000\nnobody 7 3\n",
    f"0\n1\nt 0 {2**40}\n",
    "1\n0\n",
    "x\n0\n",
    "\n0\n",
    " 0\n0\n",
    "0\nx\n",
    "0\n-1\n",
    "0\n99999999999\n",
    "0\n2\nt 0 5\n",
    "0\n0\nt 0 5\n",
    "0\n1\nt 0\n",
    "0\n1\nt 0 5 6\n",
    "0\n1\n t 0 5\n",
    "0\n1\nt 0 5\n\n",
    "0\n1\nt x 5\n",
    "0\n1\nt 0 x\n",
    f"0\n1\nt 0 {LONG_MAX + 1}\n",
    f"0\n2\nt {INT_MAX} {LONG_MAX}\nt {-INT_MAX - 1} {-LONG_MAX - 1}\n",
    f"0\n1\nt {INT_MAX + 1} 5\n",
    f"0\n1\nt {-INT_MAX - 2} 5\n",
    f"0\n1\nt 0 {-LONG_MAX - 2}\n",
]
"""Offset checkpoints, well-formed and malformed in every way."""


EPOCH_TEXTS = [
    "",
    "0\n1\n5 9\n",
    "0\n2\n0 0\n3 7\n",
    "0\n1\n-1 4\n",
    "0\n1\n0 0 0\n",
    "0\n2\n0 0\n",
    "x\n",
    "0\n1\nx 0\n",
]


METADATA_TEXTS = [
    metadata_text(ID),
    metadata_text(ID) + "\n",
    f"version: 1\ntopic_id: {ID}\nmore: 1\n",
    f"anything:  0\nelse: {ID}",
    f"version: 0\ntopic_id: {ID}==",
    f"version: 0\ntopic_id: {ID}=",
    f"version: 0\ntopic_id: +/{ID[2:]}",
    f"version: -1\ntopic_id: {ID}",
    f"version: x\ntopic_id: {ID}",
    f"version 0\ntopic_id: {ID}",
    f"version: 0\ntopic_id: {ZERO_ID}",
    f"version:0\ntopic_id: {ID}",
    "version: 0\ntopic_id\n",
    "version: 0\ntopic_id: short\n",
    "version: 0\n",
    "",
    f"version: 0: \ntopic_id: {ID}: : \n",
    f"version: 0\ntopic_id: {ID[:-1]}x",
    f"version: 0\ntopic_id: {ZERO_ID[:-1]}B",
    f"version: 0\n: {ID}",
    f"version: {INT_MAX}\ntopic_id: {ID}",
    f"version: {INT_MAX + 1}\ntopic_id: {ID}",
]


MARKER_TEXTS = [
    marker_text(7),
    marker_text(-1),
    '{"brokerEpoch": 3, "other": []}',
    '{"version":0}',
    "{}",
    "[]",
    "",
    "x",
    '{"brokerEpoch": 3, "other": NaN}',
    '{"brokerEpoch": 1e999}',
    '{"brokerEpoch": " 5 "}',
    '{"brokerEpoch": 5.9}',
    '{"brokerEpoch": true}',
    '{"version": true, "brokerEpoch": 5}',
    f'{{"version": {INT_MAX}, "brokerEpoch": 5}}',
    f'{{"version": {INT_MAX + 1}, "brokerEpoch": 5}}',
    f'{{"version": {-INT_MAX - 1}, "brokerEpoch": 5}}',
    *(f'{{"brokerEpoch": {n}}}' for n in (LONG_MAX, LONG_MAX + 1, -LONG_MAX - 1, -LONG_MAX - 2)),
]


def _offsets(state: Directory) -> list[int]:
    marks = {o for log in state.logs.values() for o in (log.start, log.high_watermark, log.recovery_point, log.end)}
    return sorted({0, 1, *marks, *(o + 1 for o in marks)})


def _texts(state: Directory) -> list[str]:
    """Mostly well-formed, and as often of the logs that there are: a log start above the end, or a mark below it."""
    own = [checkpoint_text({p: log.end + more}) for p, log in state.logs.items() for more in (-1, 2, 2**40)]
    return CHECKPOINT_TEXTS[:10] * 3 + CHECKPOINT_TEXTS[10:] + own * 2


machine.candidates |= {
    "partition": lambda state: list(state.logs) or PARTITIONS,
    "createLog:partition": lambda state: [p for p in PARTITIONS if p not in state.logs],
    "offset": _offsets,
    "count": lambda state: [1, 3, 7],
    "delete_segments": lambda state: [False, True],
    "broker_epoch": lambda state: [7, 8, -1],
    "crash_while_loading": lambda state: [False, False, True],
    "name": lambda state: list(CHECKPOINTS),
    "offsets": lambda state: [{}, {"t-0": 0}, {"t-0": 5, "a-b-1": LONG_MAX}, {"topic.with_all-0": 3, "t-0": 1}],
    "file": lambda state: CHECKPOINT_TEXTS,
    "leaderEpochCheckpoint.read:file": lambda state: EPOCH_TEXTS,
    "partitionMetadata.read:file": lambda state: METADATA_TEXTS,
    "cleanShutdown.read:file": lambda state: MARKER_TEXTS,
    "damage:file": _texts,
    "topic_id": lambda state: [ID, "ZZZZZZZZZZZZZZZZZZZZZw"],
}
