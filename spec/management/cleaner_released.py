"""What the released managers do otherwise, and the managers before 4.1, which were written in Scala.

Where an older manager fails, its state goes another way than the spec's, and all that it shows after that hangs on its
own. So the ghost of those deviations is the older manager's whole state: the spec's own steps, but for the few that it
takes in another way. Source: LogCleanerManager, Kafka 4.3.0, 3.9.1 and 2.8.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kafkaspec.contract.codec import encode
from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused, Step
from kafkaspec.spec.common.cleanable_log import Log, measure
from kafkaspec.spec.common.cleaner_state import Cleaner
from kafkaspec.spec.common.cleaning_state import InProgress
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.kafka import ILLEGAL_STATE, NULL_POINTER
from kafkaspec.spec.management import cleaner as spec

NO_SUCH_ELEMENT: Final = "java.util.NoSuchElementException"
CLEANING_EXCEPTION: Final = "kafka.log.LogCleaningException"

Shows = Callable[[Any, Cleaner, str, Mapping[str, Any], Json | Refused, Json], tuple[Json | Refused, Json]]


# ---- 4.1 and later ---------------------------------------------------------------------------------------------------
def _truncating_the_unknown(
    ghost: Any, state: Cleaner, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op == "maybeTruncateCheckpoint" and not state.knows(arguments["partition"]):
        return Refused("CLN-27", NULL_POINTER), observation
    return result, observation


def _grabbing_amid_ambiguity(
    ghost: Any, state: Cleaner, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op == "grabFilthiestCompactedLog" and spec.ambiguous(state):
        return Refused("CLN-30", ILLEGAL_STATE), observation
    return result, observation


def _gauging_the_unchecked(
    ghost: Any, state: Cleaner, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op == "uncleanableBytes":
        entries = {p for checkpoint in state.live_checkpoints() for p in checkpoint}
        if any(state.knows(p) and p not in entries for p in state.uncleanable[arguments["dir"]]):
            return Refused("CLN-34", NULL_POINTER), observation
    return result, observation


# ---- before 4.1 ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class EarlierManager:
    """A manager before 4.1: its state, what it answered last, and by which deviations it is not the spec's."""

    state: Cleaner
    result: Json | Refused = None
    causes: frozenset[str] = frozenset()

    def __hash__(self) -> int:
        return hash((self.state, self.causes))


def _java_hash(partition: str) -> int:
    """Where a partition stands in the manager's map of logs, as long as that has no more than 16 slots: by its hash."""
    topic, _, number = partition.rpartition("-")
    text = 0
    for c in topic:
        text = (31 * text + ord(c)) & 0xFFFFFFFF
    whole = (31 * (31 + int(number)) + text) & 0xFFFFFFFF
    return (whole ^ (whole >> 16)) & 15


def _seen(log: Log, unstable_too: bool) -> Log:
    """A log as a manager before 3.1 saw it: it looked at open transactions, not at the high watermark."""
    return replace(log, last_stable_offset=log.log_end_offset) if unstable_too else log


def _earlier_grab(
    state: Cleaner, chosen: str | None, free_choice: list[str | None], unstable_too: bool
) -> tuple[Step[Cleaner], set[str]]:
    """A grab; the deviations that change it. `chosen` counts if it was chosen of the same logs; else Kafka takes the
    first of the filthiest in its map."""
    causes = {"CLN-D4"} if spec.ambiguous(state) else set()
    last_clean = state.last_clean()
    after, found = state, []
    for p, log in sorted(state.known(), key=lambda known: _java_hash(known[0])):
        if not (log.config.compact and spec.free(state, p)):
            continue
        c = measure(p, _seen(log, unstable_too), last_clean.get(p), state.now)
        if c.force_update_checkpoint and log.config.log_dir in state.failed:
            return Step(after, Refused("CLN-29", CLEANING_EXCEPTION)), {*causes, "CLN-D3"}
        if c.force_update_checkpoint:
            after = spec.checkpoint_updated(after, log.config.log_dir, {p: c.first_dirty_offset})
        if unstable_too and c != measure(p, log, last_clean.get(p), state.now):
            causes.add("CLN-D5")
        found.append(c)
    cleanable = [c for c in found if c.cleanable]
    highest = max((c.cleanable_ratio for c in cleanable), default=0.0)
    filthiest = {c.partition: c for c in cleanable if c.cleanable_ratio == highest}
    grabbed = next(iter(filthiest.values()), None)
    if chosen is not None and free_choice == sorted(filthiest):
        grabbed = filthiest[chosen]
    if grabbed is not None:
        after = after.with_state(grabbed.partition, InProgress())
    return Step(after, encode(spec.grab_of(grabbed, found))), causes


def _stepped(state: Cleaner, name: str, arguments: Mapping[str, Any]) -> Step[Cleaner]:
    """The spec's step from that state, whatever its preconditions say."""
    op = spec.machine.find(name)
    return op.step(state, op.call(op.body, state, op.decoded(arguments)))


def _fails(state: Cleaner, op: str, arguments: Mapping[str, Any]) -> Cleaner | None:
    """The state after an operation that looks for the checkpoint of a failed directory, and throws; None if it does
    not."""
    match op:
        case "updateCheckpoints" if arguments["dir"] in state.failed:
            return state
        case "maybeTruncateCheckpoint" if arguments["dir"] in state.failed:
            p = arguments["partition"]
            return state if state.compacts(p) else None
        case "doneCleaning":
            p = arguments["partition"]
            stuck = state.state(p) == InProgress() and state.logs[p].config.log_dir in state.failed
            return state if stuck else None
        case "alterCheckpointDir" if arguments["dest"] in state.failed and arguments["source"] not in state.failed:
            source, p = arguments["source"], arguments["partition"]
            return spec.checkpoint_updated(state, source, remove=p) if p in state.checkpoints[source] else None
    return None


def _earlier_step(
    state: Cleaner, op: str, arguments: Mapping[str, Any], right: Cleaner, unstable_too: bool
) -> tuple[Step[Cleaner], set[str]]:
    """One step of a manager before 4.1, or before 3.1; the deviations that change it. `right` is the spec's state."""
    if op == "grabFilthiestCompactedLog":
        return _earlier_grab(state, arguments["chosen"], spec.filthiest(right), unstable_too)
    if (after := _fails(state, op, arguments)) is not None:
        return Step(after, Refused("CLN-29", NO_SUCH_ELEMENT)), {"CLN-D3"}
    if op == "maybeTruncateCheckpoint" and not state.knows(arguments["partition"]):
        return Step(state, Refused("CLN-27", NULL_POINTER)), set()
    step = _stepped(state, op, arguments)
    if unstable_too and op == "uncleanableBytes":
        if not all(map(state.knows, state.uncleanable[arguments["dir"]])):
            return Step(state, Refused("CLN-34", NULL_POINTER)), {"CLN-D7"}
        seen = replace(state, logs=Frozen({p: _seen(log, True) for p, log in state.logs.items()}))
        result = _stepped(seen, op, arguments).result
        return Step(state, result), set() if result == step.result else {"CLN-D5"}
    if unstable_too and op in ("cleanableOffsets", "logToClean"):
        p = arguments["partition"]
        seen = state.with_log(p, _seen(state.logs[p], True))
        result = _stepped(seen, op, arguments).result
        return Step(state, result), set() if result == step.result else {"CLN-D5"}
    return step, set()


def _advance(
    unstable_too: bool,
    ghost: EarlierManager | None,
    before: Cleaner,
    op: str,
    arguments: Mapping[str, Any],
    after: Cleaner,
) -> EarlierManager:
    """The older manager makes the same step. As soon as nothing tells it from the spec's it is that one again."""
    was = EarlierManager(before) if ghost is None else ghost
    step, causes = _earlier_step(was.state, op, arguments, before, unstable_too)
    still = was.causes - {"CLN-D7"} if was.state != before else frozenset()
    return EarlierManager(step.state, step.result, still | causes)


_before_4_1 = partial(_advance, False)
_before_3_1 = partial(_advance, True)


def _as_earlier(id: str) -> Shows:
    def rewrite(
        ghost: EarlierManager, state: Cleaner, op: str, arguments: Mapping[str, Any], result: Json | Refused, seen: Json
    ) -> tuple[Json | Refused, Json]:
        return (ghost.result, spec.machine.observe(ghost.state)) if id in ghost.causes else (result, seen)

    return rewrite


def _as_before_3_1(
    ghost: EarlierManager, state: Cleaner, op: str, arguments: Mapping[str, Any], result: Json | Refused, seen: Json
) -> tuple[Json | Refused, Json]:
    """Whatever changes it, but for the gauge: where the managers between 3.1 and 4.1 do not show the same, it hangs on
    what was cleaned above the high watermark, be it long ago."""
    ours = bool(ghost.causes) and "CLN-D7" not in ghost.causes
    return (ghost.result, spec.machine.observe(ghost.state)) if ours else (result, seen)


spec.machine.deviations += [
    Deviation(
        id="CLN-D1",
        clause="CLN-27",
        title="Truncating the checkpoint of a partition that is gone throws a NullPointerException",
        versions="4.3.0, 3.9.1 and 2.8.2 (judged)",
        condition="maybeTruncateCheckpoint of a partition that is not in the manager's map of logs",
        history=(
            'init partitions=[{"partition":"c-0","logDir":"dir0"}]',
            'forgetLog partition="c-0"',
            'maybeTruncateCheckpoint dir="dir0" partition="c-0" offset=0',
        ),
        cause="""The log is looked up to ask whether it is compacted, and what was found is used without a look
        whether anything was found. A directory that has failed and a partition without an entry are both allowed
        for.""",
        effect="""Nothing changes. Within the broker the lock of a partition keeps truncation and deletion apart, but
        not the failure of a directory, which takes its logs out of the map at any time: the caller then gets a
        NullPointerException in place of a storage error. Truncation still resumes the cleaner on its way out.""",
        fix="Do nothing where there is no log.",
        rewrite=_truncating_the_unknown,
    ),
    Deviation(
        id="CLN-D2",
        clause="CLN-30",
        title="A partition in the checkpoints of two directories kills every cleaner thread that looks for work",
        versions="4.3.0 (judged); since 4.1.0, when the class was written in Java. Before that: CLN-D4",
        condition="grabFilthiestCompactedLog while the checkpoints of two live directories have one partition",
        history=(
            'init partitions=[{"partition":"c-0","logDir":"dir0"},{"partition":"c-1","logDir":"dir1"}]',
            'updateCheckpoints dir="dir0" update="c-0" offset=1',
            'updateCheckpoints dir="dir1" update="c-0" offset=2',
            "grabFilthiestCompactedLog chosen=null",
        ),
        cause="""The entries of all directories are collected into one map by a collector that refuses a key that
        comes twice. The exception is not one of those that a cleaner thread survives.""",
        effect="""An IllegalStateException ("Duplicate key ..."), which ends the thread; threads started in its place
        end the same way. Nothing is compacted on that broker any more. The entries stay: a restart does not help. Such
        files are left by versions before 2.7 (KAFKA-8362), and when the removal from the source of a moved partition
        fails. The public trackers do not seem to know it.""",
        fix="Let the entry of the directory that holds the log count.",
        rewrite=_grabbing_amid_ambiguity,
        releases=">=4.1",
    ),
    Deviation(
        id="CLN-D3",
        clause="CLN-29",
        title="After the failure of a directory whoever asks for its checkpoint gets a NoSuchElementException",
        versions="3.9.1 and 2.8.2 (judged); the Scala class up to 4.0. Not in 4.3.0",
        condition="""the directory has failed, and: updateCheckpoints of it; doneCleaning of a partition in progress
        there; maybeTruncateCheckpoint there of a known, compacted partition; alterCheckpointDir of an entry from a live
        directory to it; or a grab that looks at a log there whose checkpoint needs a forced update""",
        history=(
            'init partitions=[{"partition":"c-0","logDir":"dir0"}]',
            "deletableLogs",
            'handleLogDirFailure dir="dir0"',
            'doneCleaning partition="c-0" endOffset=0',
        ),
        cause="""The checkpoint is fetched with the access to a Scala map that throws where there is no such key, and
        then compared with null, which it never is. The failure of a directory takes its key out of the map.""",
        effect="""The worst is a disk that fails while one of its logs is cleaned: the thread says that it is done, the
        exception comes before the cleaning state is removed, and the partition stays in progress until the broker
        starts again. If it comes back to that broker before, in another directory, it is never cleaned there, and
        whoever truncates, moves or deletes it waits for ever for a cleaning that nobody does: a fetcher or a request
        handler thread less. A move of an entry to the failed directory has lost the entry by then. A grab throws a
        LogCleaningException, and the log is marked as uncleanable. The public trackers do not seem to know it; it went
        away when the class was written in Java (KAFKA-14486, 4.1.0).""",
        fix="Look for the checkpoint with an access that may find none, as 4.1.0 does.",
        rewrite=_as_earlier("CLN-D3"),
        releases="<4.1",
        advance=_before_4_1,
    ),
    Deviation(
        id="CLN-D4",
        clause="CLN-30",
        title="Of a partition's entries in the checkpoints of two directories any one counts",
        versions="3.9.1 and 2.8.2 (judged); the Scala class up to 4.0. Since 4.1.0: CLN-D2",
        condition="grabFilthiestCompactedLog while the checkpoints of two live directories have one partition",
        history=(
            'init partitions=[{"partition":"c-0","logDir":"dir0","segment.bytes":200},'
            '{"partition":"c-1","logDir":"dir1"}]',
            'append partition="c-0" key="k0" count=3',
            'updateCheckpoints dir="dir0" update="c-0" offset=2',
            'updateCheckpoints dir="dir1" update="c-0" offset=0',
            "grabFilthiestCompactedLog chosen=null",
        ),
        cause="""The entries of all directories are put into one map, the later over the earlier. Which directory is
        later is decided by the order of a map of files: for up to four directories that of log.dirs.""",
        effect="""Too low an entry has the log cleaned once more, from there on. Too high an entry leaves the records
        between out of every cleaning: of a key that was written there, older values stay, and so do tombstones. The
        entry is never fixed, as the one of the log's own directory is what gets updated: such a log may be cleaned
        over and over (KAFKA-8362).""",
        fix="Let the entry of the directory that holds the log count.",
        rewrite=_as_earlier("CLN-D4"),
        releases="<4.1",
        advance=_before_4_1,
    ),
    Deviation(
        id="CLN-D5",
        clause="CLN-8",
        title="Records above the high watermark are cleaned",
        versions="2.8.2 (judged); up to 3.0. Fixed in 3.1.0 (KAFKA-13194)",
        condition="""a log whose high watermark is below the log end, and within or below a segment that is not active:
        cleanableOffsets and grabFilthiestCompactedLog measure it as if all of it were stable""",
        history=(
            'init partitions=[{"partition":"c-0","logDir":"dir0","segment.bytes":200}]',
            'append partition="c-0" key="k0" count=3 thenHighWatermark=null',
            'cleanableOffsets partition="c-0" lastCleanOffset=null',
        ),
        cause="""The bound was the first offset of an open transaction, which is not there without one; the last stable
        offset, which the high watermark bounds, was not asked for.""",
        effect="""A replica that lags behind, or has just become leader, compacts records that may be truncated again.
        The value that such a record replaced is gone by then: committed data is lost.""",
        fix="Clean up to the last stable offset (KAFKA-13194).",
        rewrite=_as_before_3_1,
        releases="<3.1",
        advance=_before_3_1,
    ),
    Deviation(
        id="CLN-D6",
        clause="CLN-34",
        title="The gauge of uncleanable bytes throws while an uncleanable partition has no checkpoint",
        versions="4.3.0 (judged); since 4.1.0, when the class was written in Java. Not in 3.9.1",
        condition="""uncleanableBytes of a directory where a known partition is uncleanable that stands in no live
        directory's checkpoint""",
        history=(
            'init partitions=[{"partition":"c-0","logDir":"dir0"}]',
            'markPartitionUncleanable dir="dir0" partition="c-0"',
            'uncleanableBytes dir="dir0"',
        ),
        cause="""What the map of checkpoints has for the partition is wrapped by Optional.of, which refuses null, where
        a grab takes Optional.ofNullable. The Scala class had an Option there.""",
        effect="""The metric kafka.log:type=LogCleanerManager,name=uncleanable-bytes throws a NullPointerException when
        it is read, for the whole directory, until the broker starts again. That is the usual case, and no corner: a
        log that cannot be cleaned the first time is marked before anything of it is checkpointed. Whoever watches for
        uncleanable logs gets an error or a gap where there are some; uncleanable-partitions-count still tells. The
        public trackers do not seem to know it (KAFKA-13305 is another NullPointerException of the same gauge, fixed
        in 3.1.0).""",
        fix="Optional.ofNullable(lastClean.get(tp)).",
        rewrite=_gauging_the_unchecked,
        releases=">=4.1",
    ),
    Deviation(
        id="CLN-D7",
        clause="CLN-34",
        title="The gauge of uncleanable bytes throws while an uncleanable partition is gone",
        versions="2.8.2 (judged); up to 3.0. Fixed in 3.1.0 (KAFKA-13305)",
        condition="uncleanableBytes of a directory where a partition is uncleanable that the manager does not know",
        history=(
            'init partitions=[{"partition":"c-0","logDir":"dir0"}]',
            'markPartitionUncleanable dir="dir0" partition="c-0"',
            'forgetLog partition="c-0"',
            'uncleanableBytes dir="dir0"',
        ),
        cause="""The log is looked up and used without a look whether there is one. Marks of partitions that are gone
        were never dropped: CLN-25 came with the fix.""",
        effect="""After the deletion of a topic whose log could not be cleaned the metric throws a NullPointerException
        when it is read, until the broker starts again.""",
        fix="Count what is known, and drop the marks of what is gone (KAFKA-13305).",
        rewrite=_as_earlier("CLN-D7"),
        releases="<3.1",
        advance=_before_3_1,
    ),
]
