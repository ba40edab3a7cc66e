"""Loading a log after a stop: known deviations of released Kafka."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafkaspec.contract.codec import encode
from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused, Step
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.storage.log_loader import (
    CLEANED,
    EPOCHS,
    Directory,
    Load,
    begun,
    finished,
    interrupted,
    log_of,
    machine,
)
from kafkaspec.spec.storage.log_loader_trial import SPLIT_WHILE_OPENED, SWAPPED, TORN_OVERFLOW


class Unsplit(Exception):
    """A load ends in an exception."""


class ReleasedLoad(Load):
    """A load of the released Kafka."""

    def split(self, base: int) -> None:
        """With half a batch at its end, not at all; of a segment that is being opened the files stay."""
        if log_of(self.files, base).torn:
            raise Unsplit
        there = {} if base in self.segments else dict(self.files)
        super().split(base)
        self.files = there | self.files


class Elsewhere(NamedTuple):
    """A directory that is not the spec's, the answer to the call that left it so, and the deviations that were met.
    `lost`: a load has failed, or a replacement may follow of files that are not all there."""

    directory: Directory
    answer: Json | Refused
    causes: frozenset[str]
    lost: bool


NO_ELEMENT = "java.util.NoSuchElementException"


def _stepped(directory: Directory, op: str, arguments: Mapping[str, Any]) -> Step[Directory]:
    """The step of the spec, whether the call is within the contract or not."""
    operation = machine.find(op)
    return operation.step(directory, operation.call(operation.body, directory, operation.decoded(arguments)))


def _loaded(directory: Directory, clean: bool, recovery_point: int, log_start: int) -> Step[Directory]:
    """A load of the released Kafka."""
    load = begun(directory.files, recovery_point, log_start, ReleasedLoad)
    try:
        files, ends = finished(load, clean)
    except Unsplit:
        return Step(Directory(Frozen({**load.files, EPOCHS: load.epochs})), Refused("LDR-21", NO_ELEMENT))
    return Step(Directory(Frozen(files)), encode(ends))


def _advance(ghost: Any, before: Directory, op: str, arguments: Mapping[str, Any], after: Directory) -> Any:
    """The directory of a loader that renames in the order in which the file system lists the files, and splits as the
    released one does."""
    if ghost is not None and ghost.lost:
        return ghost
    if ghost is None and op not in ("load", "crashedLoad"):
        return None
    there, causes = (before, frozenset[str]()) if ghost is None else (ghost.directory, ghost.causes)
    if op == "load":
        step = _loaded(there, **arguments)
    elif op == "crashedLoad":
        step = interrupted(there, arguments["renames"], arguments["first"])
    elif op == "drop" and arguments["name"] not in there.files:
        step = Step(there)
    else:
        step = _stepped(there, op, arguments)
    if step == _stepped(before, op, arguments):
        return None
    failed = isinstance(step.result, Refused)
    if op in ("load", "crashedLoad") and step != _stepped(there, op, arguments):
        causes |= {"LDR-D1" if op == "crashedLoad" else "LDR-D3" if failed else "LDR-D2"}
    replaces = any(n.endswith(CLEANED) for n in after.files)
    lost = failed or (replaces and not after.files.keys() <= step.state.files.keys())
    return Elsewhere(step.state, step.result, causes, lost)


def _released(cause: str) -> Any:
    """What a deviation is made of. Of several that were met each explains what is shown, and one that nothing is
    compared."""

    def rewrite(
        ghost: Any, state: Directory, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
    ) -> tuple[Json | Refused, Json]:
        if ghost is None or cause not in ghost.causes:
            return result, observation
        return ghost.answer, machine.observe(ghost.directory)

    return {
        "rewrite": rewrite,
        "advance": _advance,
        "lost": lambda ghost: ghost is not None and ghost.lost and cause == max(ghost.causes),
    }


machine.deviations += [
    Deviation(
        id="LDR-D1",
        clause="LDR-15",
        title="A crash while a log is loaded may cost a segment that was already swapped in",
        versions="3.0.0 to 4.3.0 (4.3.0 recorded; the order came with KAFKA-12520, in 3.0.0)",
        releases=">=3.0",
        condition="""a load is crashed between its renames of .swap files, and the file system does not list these in
        the order of their offsets; records are lost if one segment has its name by then, and one below it and one above
        it have not""",
        history=(
            f"init files={json.dumps(SWAPPED, separators=(',', ':'))}",
            "crashedLoad first=5 renames=3",
            "load clean=false recoveryPoint=0 logStart=0",
        ),
        cause="""The loader renames the .swap files in the order in which the file system lists them, which is no order.
        When it is started again, it takes all segments between the lowest and the highest .swap that is left for old
        ones that these replace, and removes them.""",
        effect="""All records of the segment are gone, those after it are not: the log has a hole that no later start
        fixes, and nothing warns of it. A replica that copies the log copies the hole; one that had the records keeps
        them. Three segments at once come of one whose offsets had overflowed and that was split into three;
        compaction makes one. So it takes two crashes at their moments, in a log that an old release wrote
        (KAFKA-6264).""",
        fix="Rename in the order of the offsets: what has its name is then below every .swap that is left.",
        **_released("LDR-D1"),
    ),
    Deviation(
        id="LDR-D2",
        clause="LDR-22",
        title="A segment that is split while segments are opened stays beside its pieces",
        versions="4.3.0 (recorded)",
        condition="""a segment whose offsets overflow is recovered while the segments are opened, for it has no offset
        index, or a transaction index that is corrupt (LDR-6); no piece has its base offset, or it has a transaction
        index, which stays then, empty""",
        history=(
            f"init files={json.dumps(SPLIT_WHILE_OPENED, separators=(',', ':'))}",
            "load clean=true recoveryPoint=0 logStart=0",
        ),
        cause="""A replacement takes away only those old segments that are among the log's. A segment gets there when
        it has been opened, and this one has not been yet: it was recovered first, and found to overflow.""",
        effect="""Nothing happens if the first piece has the base offset of the segment, for its files take the place of
        the others. After a compaction the first batch may be above that. Then every record is on the disk twice, under
        the segment's name and under those of its pieces, and the segment still overflows. It has got an index by then,
        so that it is opened without a word. It is split once more, and goes, if a later start recovers it: after an
        unclean stop, if the recovery point is below the first piece. Such a segment comes of an old release
        (KAFKA-6264).""",
        fix="Take the old segment away whether the log knows it or not.",
        **_released("LDR-D2"),
    ),
    Deviation(
        id="LDR-D3",
        clause="LDR-21",
        title="A segment that overflows and ends in half a batch stops the start",
        versions="4.3.0 (recorded)",
        condition="a segment that is found to overflow has bytes of half a batch at its end",
        history=(
            f"init files={json.dumps(TORN_OVERFLOW, separators=(',', ':'))}",
            "load clean=false recoveryPoint=0 logStart=0",
        ),
        cause="""The split goes on until all bytes are copied, and asks for the next batch where none is whole. The
        NoSuchElementException is no storage error, and no one catches it.""",
        effect="""The broker does not start, now or at the next try, until someone cuts the file by hand. It takes a
        log that an old release wrote (KAFKA-6264), and that was the active one when the machine stopped.""",
        fix="Stop at the last batch that is there.",
        **_released("LDR-D3"),
    ),
]
