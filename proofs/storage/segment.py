"""For a log of any length: whatever a crash leaves of appends, flushes and recoveries, recovery comes to the batches
as they were written, with the entries that are theirs. The last two of the fixed protocol: of the released one the
explorer shows that they are false."""

from __future__ import annotations

from kafkaspec.models.storage.segment import Crash
from kafkaspec.prove.proof import Proof

PROOFS = [Proof(Crash, explored_at={"L": 2, "FIXED": True})]
