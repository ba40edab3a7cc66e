"""A clause that says more than its claim."""

from __future__ import annotations

from kafkaspec.explore.engine import explore
from kafkaspec.language import load, step
from kafkaspec.models.storage import high_watermark as model
from kafkaspec.models.storage.high_watermark import AS_SPECIFIED, M


def test_enough_have_a_record_over_which_the_high_watermark_rises() -> None:
    """HWM-40: "at least min.insync.replicas of the replicas that the leader knows as in sync have it". The claim of the
    model is about what the leader knows (`reached`), not about what they have (`has`)."""

    class Changes(model.Changes):
        @step("HWM-40")
        def enough_have_a_record_over_which_it_rises(s) -> bool:
            return s.next.high == s.high or (len(s.isr) + 1 >= M and all(s.has[f] >= s.next.high for f in s.isr))

    found = explore(load(Changes), {"Follower": 1, "L": 1, "V": 3, "M": 2, **AS_SPECIFIED})
    assert found.trace is None, (found.trace.claim, [s.action for s in found.trace.steps])
