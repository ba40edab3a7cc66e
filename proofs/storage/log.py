"""For any number of records: the offsets are in order at every moment of an append, a reader never sees what was not
written, and, with the fix, the recovery point is never above what was flushed. Of the released flush the explorer shows
that this last is false."""

from __future__ import annotations

from kafkaspec.models.storage.log import Writer
from kafkaspec.prove.proof import Proof

PROOFS = [
    Proof(Writer, explored_at={"L": 2, "FIXED": True}),
]
