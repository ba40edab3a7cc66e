"""Faults of the comparison of replicas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from kafkaspec.audit.files import Kind
from kafkaspec.audits.common.findings import METADATA_TOPIC
from kafkaspec.audits.storage import replicas as audit
from kafkaspec.audits.storage import replicas_driver
from kafkaspec.contract.machine import Json, Machine, Refused
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import Mutant, of_audit, of_spec, with_fault
from kafkaspec.spec.storage import replicas as spec

_agreed, _look, _compare = audit.agreed, audit._look, audit.compare
_are_replicas, _take, _has_epochs = audit.are_replicas, audit.Side.take, audit.Side.has_epochs
_epoch_above = audit.epoch_above


def _patched(**functions: Any) -> Callable[[], replicas_driver.Driver]:
    """The driver with other functions in the audit's module, while it is called."""

    class Faulty(replicas_driver.Driver):
        def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
            with patch.multiple(audit, **functions):
                return super().apply(name, arguments)

    return Faulty


def _up_to_the_higher_mark(a: Any, b: Any) -> tuple[int, int]:
    start, _ = _agreed(a, b)
    return start, min(a.end, b.end, max(a.log.high_watermark or 0, b.log.high_watermark or 0))


def _up_to_the_end(a: Any, b: Any) -> tuple[int, int]:
    return _agreed(a, b)[0], min(a.end, b.end)


def _from_the_smaller_start(a: Any, b: Any) -> tuple[int, int]:
    return min(a.start, b.start), _agreed(a, b)[1]


def _from_the_mark_of_the_metadata(a: Any, b: Any) -> tuple[int, int]:
    start, end = _agreed(a, b)
    return start, min(end, a.log.high_watermark or 0, b.log.high_watermark or 0)


def _without_lone(a: Any, b: Any, ours: Any, theirs: Any, missing: bool) -> Any:
    return _look(a, b, ours, theirs, False)


def _lone_always(a: Any, b: Any, ours: Any, theirs: Any, missing: bool) -> Any:
    return _look(a, b, ours, theirs, True)


def _old_formats_too(a: Any, b: Any, ours: Any, theirs: Any, missing: bool) -> Any:
    ours, theirs = ours.copy(), theirs.copy()
    ours["magic"], theirs["magic"] = 2, 2
    return _look(a, b, ours, theirs, missing)


def _batches_alone(a: Any, b: Any, reread: Any) -> Any:
    start, end = _agreed(a, b)
    if start >= end:
        return None
    ours, theirs = (audit.Side(s.log, iter(reread(s.log, False)), False, start, False) for s in (a, b))
    found = audit.first_difference(ours, theirs, end, missing=True)
    behind = found is not None and found.kind == "behind" and a.log.topic == METADATA_TOPIC
    return None if found is None or behind else (found, ours, theirs)


def _always_damage(a: Any, b: Any, ours: Any, theirs: Any, missing: bool) -> Any:
    found = _look(a, b, ours, theirs, missing)
    return found if found is None or found.kind != "behind" else audit.Difference("diverged", *_parts(found)[1:])


def _parts(found: Any) -> tuple[Any, ...]:
    return found.kind, found.offset, found.ours, found.theirs


def _trusts_none(self: audit.Side, items: Any) -> Any:
    return np.zeros(len(items), bool)


def _trusts_from_the_second(self: audit.Side, items: Any) -> Any:
    """The entry that begins next, not the one that covers the offset."""
    later = replace(self, entries=tuple((e, start + 1) for e, start in self.entries))
    return _has_epochs(later, items)


def _the_last(a: Any, b: Any, ours: Any, theirs: Any, missing: bool) -> Any:
    found = _look(a, b, ours[::-1][:1], theirs[::-1][:1], missing)
    return found if found is not None else _look(a, b, ours, theirs, missing)


def _takes_one_less(self: audit.Side, limit: int) -> Any:
    out = _take(self, limit)
    return out[:-1] if len(out) > 1 else out


def _first_entries_too(a: Any, b: Any) -> Any:
    if a.log.compacted is not False or b.log.compacted is not False:
        return None
    ours, theirs = dict(a.facts.epochs or ()), dict(b.facts.epochs or ())
    end = _agreed(a, b)[1]
    differ = [e for e in sorted(ours.keys() & theirs.keys()) if ours[e] != theirs[e] and min(ours[e], theirs[e]) < end]
    return (differ[0], ours[differ[0]], theirs[differ[0]]) if differ else None


def _one_above(log: Any, told: int) -> int | None:
    return _epoch_above(log, told + 1 if told >= 0 else told)


def _of_any_cluster(a: Any, b: Any) -> bool:
    x, y = a.directory, b.directory
    current = a.summary.log.files.kind == b.summary.log.files.kind == Kind.CURRENT
    return current and x.node not in (None, y.node) and y.node is not None and _same_topic(a, b)


def _same_topic(a: Any, b: Any) -> bool:
    return a.topic_id is None or b.topic_id is None or a.topic_id == b.topic_id


def _of_any_topic(a: Any, b: Any) -> bool:
    return _are_replicas(audit.Copy(a.directory, a.summary, None), audit.Copy(b.directory, b.summary, None))


def _of_one_broker(a: Any, b: Any) -> bool:
    current = a.summary.log.files.kind == b.summary.log.files.kind == Kind.CURRENT
    return current and a.directory.cluster == b.directory.cluster and _same_topic(a, b)


def _says_nothing(a: spec.Replica, b: spec.Replica, metadata: bool) -> spec.Difference | None:
    return spec.Difference("diverged", 1 << 40)


def _spec(operation: str, body: Callable[..., Any]) -> Callable[[], Machine[Any]]:
    return lambda: with_fault(spec.machine, operation, body)


MUTANTS = [
    of_audit(
        "up to the higher mark", "RPL-2", "a lagging replica's tail counts", _patched(agreed=_up_to_the_higher_mark)
    ),
    of_audit("up to the end", "RPL-2", "uncommitted records count", _patched(agreed=_up_to_the_end)),
    of_audit(
        "from the smaller start",
        "RPL-2",
        "what one has deleted counts",
        _patched(agreed=_from_the_smaller_start),
    ),
    of_audit(
        "the metadata log has a mark",
        "RPL-2",
        "its replicas are not compared without one",
        _patched(agreed=_from_the_mark_of_the_metadata),
    ),
    of_audit(
        "what is missing passes", "RPL-3", "a batch that one lacks is no difference", _patched(_look=_without_lone)
    ),
    of_audit("sizes alone", "RPL-3", "CRCs are not compared", _patched(SAME=("offset", "last", "a"))),
    of_audit("offsets alone", "RPL-3 RPL-4", "content is not compared", _patched(SAME=("offset", "last"))),
    of_audit(
        "epochs are content",
        "RPL-3 RPL-4",
        "an epoch that is damaged differs",
        _patched(SAME=("offset", "last", "a", "b", "epoch")),
    ),
    of_audit("old formats count", "RPL-3", "batches that were converted differ", _patched(_look=_old_formats_too)),
    of_audit("batches alone", "RPL-4", "what each has cleaned differs", _patched(compare=_batches_alone)),
    of_audit(
        "what one has cleaned is missing",
        "RPL-4",
        "a record that one lacks is a difference",
        _patched(_look=_lone_always),
    ),
    of_audit(
        "all is damage", "RPL-5", "a replica that has not followed is taken for damaged", _patched(_look=_always_damage)
    ),
    of_audit(
        "a batch that was sent again is the same",
        "RPL-5",
        "epochs that alone are different are no difference",
        _patched(Side=type("Faulty", (audit.Side,), {"has_epochs": _trusts_none})),
    ),
    of_audit(
        "entries begin one later",
        "RPL-5",
        "a batch where its epoch begins is not compared",
        _patched(Side=type("Faulty", (audit.Side,), {"has_epochs": _trusts_from_the_second})),
    ),
    of_audit("the last difference", "RPL-3 RPL-4", "not the first one of a step", _patched(_look=_the_last)),
    of_audit(
        "steps overlap",
        "RPL-3",
        "the last item of each step is not compared",
        _patched(Side=type("Faulty", (audit.Side,), {"take": _takes_one_less})),
    ),
    of_audit("first entries count", "RPL-6", "a moved log start differs", _patched(epochs_differ=_first_entries_too)),
    of_audit("an epoch may be one above", "RPL-8", "the next epoch", _patched(epoch_above=_one_above)),
    of_audit("any cluster", "RPL-1", "logs of different clusters are compared", _patched(are_replicas=_of_any_cluster)),
    of_audit("any topic", "RPL-1 RPL-7", "topic ids are not looked at", _patched(are_replicas=_of_any_topic)),
    of_audit("one broker", "RPL-1", "two states of one broker are compared", _patched(are_replicas=_of_one_broker)),
    Mutant(
        "spec: beyond what is agreed",
        ("RPL-2",),
        "a difference above the high watermark",
        "spec",
        _spec("compare", _says_nothing),
    ),
]
"""Faults written by hand."""


# ---- faults of range, boundary, depth, configuration and rare state
def _of_32_bits(a: spec.Replica, b: spec.Replica, metadata: bool) -> spec.Difference | None:
    """The offsets that must agree end at 32 bits."""
    found = spec.first_difference(a, b, metadata)
    return found if found is None or found.offset < signed(spec.agreed(a, b, metadata)[1], 32) else None


def _by_one_mark(a: spec.Replica, b: spec.Replica, metadata: bool) -> spec.Difference | None:
    return spec.first_difference(replace(a, high_watermark=b.high_watermark), b, metadata)


def _no_mark_is_the_end(a: spec.Replica, b: spec.Replica, metadata: bool) -> spec.Difference | None:
    a, b = (replace(r, high_watermark=r.end if r.high_watermark is None else r.high_watermark) for r in (a, b))
    return spec.first_difference(a, b, metadata)


def _four_batches(a: spec.Replica, b: spec.Replica, metadata: bool) -> spec.Difference | None:
    return spec.first_difference(replace(a, batches=a.batches[:4]), replace(b, batches=b.batches[:4]), metadata)


def _crcs_alone(a: spec.Replica, b: spec.Replica, metadata: bool) -> spec.Difference | None:
    """Of size and CRC the CRC alone is compared."""

    def cut(r: spec.Replica) -> spec.Replica:
        return replace(r, batches=tuple(x._replace(frame=x.frame % 2**32) for x in r.batches))

    return spec.first_difference(cut(a), cut(b), metadata)


def _epoch_0_is_none(a: spec.Replica, b: spec.Replica, metadata: bool) -> spec.Difference | None:
    found = spec.lowest_difference(a, b, metadata)
    if found is None or found.kind != "behind":
        return spec.first_difference(a, b, metadata)
    epochs = [x.epoch for r in (a, b) for x in r.batches if x.base_offset <= found.offset <= x.last_offset]
    return found._replace(kind="diverged") if 0 in epochs else spec.first_difference(a, b, metadata)


def _up_to_the_end_itself(a: spec.Replica, b: spec.Replica) -> int | None:
    a, b = (replace(r, end=r.end + 1, high_watermark=(r.high_watermark or 0) + 1) for r in (a, b))
    return spec.epochs_differ(a, b)


def _without_one_first(a: spec.Replica, b: spec.Replica) -> int | None:
    """The first entry is left out of one, not of both."""
    return spec.epochs_differ(a, replace(b, epochs=(spec.EpochEntry(-1, 0), *b.epochs)))


def _told_0_is_none(a: spec.Replica, told: int) -> int:
    return spec.above_metadata(a, told or -1)


def _node_0_is_none(a: spec.Directory, b: spec.Directory) -> bool:
    return bool(a.node and b.node) and spec.are_replicas(a, b)


RARE = [
    of_spec("offsets of 32 bits", "RPL-2 RPL-3", "nothing differs above 2^31 - 1", _spec("compare", _of_32_bits)),
    of_spec("one mark for both", "RPL-2", "the second replica's high watermark", _spec("compare", _by_one_mark)),
    of_spec("no mark is the end", "RPL-2", "a replica without a checkpoint", _spec("compare", _no_mark_is_the_end)),
    of_spec("four batches", "RPL-3", "a fifth is not compared", _spec("compare", _four_batches)),
    of_spec("CRCs alone", "RPL-3", "sizes are not compared", _spec("compare", _crcs_alone)),
    of_spec("epoch 0 is none", "RPL-5", "it differs from no other", _spec("compare", _epoch_0_is_none)),
    of_spec(
        "up to the end itself",
        "RPL-6",
        "an epoch that begins where the logs end",
        _spec("compareEpochs", _up_to_the_end_itself),
    ),
    of_spec("one first entry", "RPL-6", "the other's first entry counts", _spec("compareEpochs", _without_one_first)),
    of_spec("epoch 0 is not told", "RPL-8", "a partition's first epoch", _spec("aboveMetadata", _told_0_is_none)),
    of_spec("node 0 is none", "RPL-1", "a broker of that id has no replicas", _spec("areReplicas", _node_0_is_none)),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE

UNSEEN: dict[str, str] = {
    "up to the end itself": "not found yet: nothing noticed it, nor the judge in 20,000 calls",
}
