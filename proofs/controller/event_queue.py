"""The event queue's handler, for any number of events, times and places: no wake-up is lost, and each event ends once.

What holds it up: places in the line are between head and tail, and nobody shares one; who waits no more has no
deadline; and a thread that is awake has no signal and no time to wake at.
"""

from __future__ import annotations

from kafkaspec.models.controller.event_queue import Handler
from kafkaspec.prove.proof import Proof

PROOFS = [Proof(Handler, explored_at={"Event": 2, "T": 1, "P": 1})]
