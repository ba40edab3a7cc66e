"""For any number of followers, records and partition epochs: whoever may be in sync has what is replicated, as far as
the leader knows (`Leadership`), and whoever is in sync for the controller really has it (`Changes`).

What holds `Changes` up: between two states of the controller only an accepted request adds anybody
(`only_requests_add`); the leader knows that one, or holds it for pending (`what_was_accepted_is_known_or_pending`); and
a request that is not pending any more names a partition epoch that the controller has left
(`what_may_be_accepted_is_pending`).
"""

from __future__ import annotations

from kafkaspec.models.storage.high_watermark import AS_SPECIFIED, Changes, Leadership
from kafkaspec.prove.proof import Proof

PROOFS = [
    Proof(Leadership, explored_at={"Follower": 2, "L": 2, "M": 2}),
    Proof(Changes, timeout_s=60, fixed=AS_SPECIFIED, explored_at={"Follower": 2, "L": 1, "V": 3, "M": 2}),
]
