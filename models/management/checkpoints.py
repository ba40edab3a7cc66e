"""The small files of a log directory, with every crash: a checkpoint that is replaced, the marker of a clean stop, and
the recovery point beside what is really on the disk.

Source: Kafka Internals, ch. 04, "On-disk: the offset checkpoint file"; CheckpointFile, CleanShutdownFileHandler and
LogManager, Kafka 4.3.0; KAFKA-10471, KAFKA-10101.
"""

from __future__ import annotations

import enum
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Model, Range, Size, Sort, action, invariant, lemma, require, step, witness


class Writing(enum.Enum):
    """How far the replacement of a checkpoint file has come."""

    NOT = 0
    WRITTEN = 1
    FLUSHED = 2
    RENAMED = 3


V = Size("V")
"""How many versions of the checkpoint are written."""
Version = Annotated[int, Range(0, V)]


class CheckpointFile(Model):
    """One checkpoint file on a disk that forgets in a crash what was not flushed. `durable` is the version that the
    name surely leads to, `beside` what is being written, `returned` the last one whose write has returned."""

    writing: Writing
    durable: Version
    beside: Version
    beside_flushed: bool
    returned: Version
    torn: bool

    @action("CKP-6", who="manager")
    def write(s) -> None:
        """A new file beside the old one; its content is not flushed."""
        require(s.writing == Writing.NOT, s.durable < V, not s.torn)
        s.next.writing = Writing.WRITTEN
        s.next.beside = s.durable + 1
        s.next.beside_flushed = False

    @action("CKP-6", who="manager")
    def flush(s) -> None:
        require(s.writing == Writing.WRITTEN)
        s.next.beside_flushed = True
        s.next.writing = Writing.FLUSHED

    @action("CKP-6", who="manager")
    def rename(s) -> None:
        """Over the old file; the directory is not flushed."""
        require(s.writing == Writing.FLUSHED)
        s.next.writing = Writing.RENAMED

    @action("CKP-6", who="manager")
    def flush_directory(s) -> None:
        require(s.writing == Writing.RENAMED)
        s.next.durable = s.beside
        s.next.returned = s.beside
        s.next.writing = Writing.NOT

    @action("CKP-6", who="power")
    def crash(s, new_name: bool) -> None:
        """A name that was renamed and not flushed leads to the new file or to the old one; content that was not flushed
        may be anything."""
        if s.writing == Writing.RENAMED and new_name:
            s.next.durable = s.beside
            s.next.torn = s.torn or not s.beside_flushed
        s.next.writing = Writing.NOT

    @invariant("CKP-6")
    def whole(s) -> bool:
        return not s.torn

    @invariant("CKP-6")
    def what_returned_is_there(s) -> bool:
        return s.returned <= s.durable

    @step("CKP-6")
    def the_old_one_or_the_new_one(s) -> bool:
        return s.next.durable == s.durable or s.next.durable == s.beside

    @step("CKP-6")
    def one_write_after_the_other(s) -> bool:
        return s.next.writing != Writing.WRITTEN or s.writing in (Writing.NOT, Writing.WRITTEN)

    @step("CKP-6")
    def a_new_version_comes_of_a_rename(s) -> bool:
        """What the name leads to, and what has returned, are as they were until the new file has the name."""
        return s.writing == Writing.RENAMED or (s.next.durable == s.durable and s.next.returned == s.returned)

    @lemma("CKP-6")
    def what_is_written_is_not_yet_flushed(s) -> bool:
        return s.writing != Writing.WRITTEN or not s.beside_flushed

    @lemma("CKP-6")
    def renamed_only_when_flushed(s) -> bool:
        return s.writing not in (Writing.FLUSHED, Writing.RENAMED) or s.beside_flushed

    @lemma("CKP-6")
    def the_next_version_is_beside(s) -> bool:
        return s.writing == Writing.NOT or s.beside == s.durable + 1

    @witness
    def every_write_returned(s) -> bool:
        return s.returned == V

    @witness
    def survived_without_having_returned(s) -> bool:
        return s.writing == Writing.NOT and s.durable > s.returned


class Log(Sort):
    """A log of the directory."""


class Phase(enum.Enum):
    DOWN = 0
    LOADING = 1
    UP = 2
    CLOSING = 3


class Marker(Model):
    """The clean-shutdown marker of one directory. A log is `touched` from when it is opened until it was flushed and
    closed: its files may be unlike what a clean stop leaves. `clean` is what the start remembers of the marker;
    `trusted` says that a touched log was once loaded without a recovery."""

    phase: Phase
    marker: bool
    clean: bool
    loaded: dict[Log, bool]
    closed: dict[Log, bool]
    touched: dict[Log, bool]
    trusted: bool

    @action("CKP-10", who="broker")
    def start(s) -> None:
        """The marker is looked at and deleted, before any log is opened."""
        require(s.phase == Phase.DOWN)
        s.next.phase = Phase.LOADING
        s.next.clean = s.marker
        s.next.marker = False
        s.next.loaded = {log: False for log in Log}
        s.next.closed = {log: False for log in Log}

    @action("CKP-10", "CKP-15", who="loader thread")
    def load(s, log: Log) -> None:
        """Recovered, unless the stop was clean."""
        require(s.phase == Phase.LOADING, not s.loaded[log])
        s.next.loaded[log] = True
        s.next.touched[log] = True
        s.next.trusted = s.trusted or (s.clean and s.touched[log])

    @action("CKP-9", who="broker")
    def serve(s) -> None:
        require(s.phase == Phase.LOADING, all(s.loaded[log] for log in Log))
        s.next.phase = Phase.UP

    @action("CKP-9", who="broker")
    def stop(s) -> None:
        """In order, also while logs are still being loaded."""
        require(s.phase in (Phase.LOADING, Phase.UP))
        s.next.phase = Phase.CLOSING

    @action("CKP-9", who="closing thread")
    def close(s, log: Log) -> None:
        """Flushed, its indexes trimmed."""
        require(s.phase == Phase.CLOSING, s.loaded[log], not s.closed[log])
        s.next.closed[log] = True
        s.next.touched[log] = False

    @action("CKP-9", who="broker")
    def finish(s) -> None:
        """The marker last of all, and only where all logs are known to be sound."""
        require(s.phase == Phase.CLOSING, all(s.closed[log] or not s.loaded[log] for log in Log))
        s.next.phase = Phase.DOWN
        s.next.marker = s.clean or all(s.loaded[log] for log in Log)

    @action("CKP-10", who="power")
    def crash(s) -> None:
        require(s.phase != Phase.DOWN)
        s.next.phase = Phase.DOWN

    @invariant("CKP-10")
    def a_marker_says_the_truth(s, log: Log) -> bool:
        return not (s.marker and s.touched[log])

    @invariant("CKP-10", "CKP-15")
    def what_was_touched_is_recovered(s) -> bool:
        return not s.trusted

    @step("CKP-10")
    def a_run_remembers_what_it_began_with(s, log: Log) -> bool:
        """The marker that it found, and which logs it has loaded."""
        return s.phase == Phase.DOWN or (s.next.clean == s.clean and (s.next.loaded[log] or not s.loaded[log]))

    @step("CKP-10")
    def what_is_loaded_is_touched(s, log: Log) -> bool:
        return s.loaded[log] or not s.next.loaded[log] or s.next.touched[log]

    @step("CKP-9")
    def only_a_close_makes_sound(s, log: Log) -> bool:
        return not s.touched[log] or s.next.touched[log] or (s.phase == Phase.CLOSING and s.next.closed[log])

    @step("CKP-9")
    def a_marker_ends_a_stop(s) -> bool:
        return not s.next.marker or s.marker or (s.phase == Phase.CLOSING and s.next.phase == Phase.DOWN)

    @invariant("CKP-9")
    def what_is_closed_was_loaded(s, log: Log) -> bool:
        return not s.closed[log] or s.loaded[log]

    @lemma("CKP-10")
    def a_marker_is_there_between_runs_alone(s) -> bool:
        return not s.marker or s.phase == Phase.DOWN

    @lemma("CKP-10")
    def what_was_not_loaded_is_as_it_was(s, log: Log) -> bool:
        return s.phase == Phase.DOWN or not s.clean or s.loaded[log] or not s.touched[log]

    @lemma("CKP-9")
    def what_is_closed_is_sound(s, log: Log) -> bool:
        return not s.closed[log] or s.phase == Phase.DOWN or (s.phase == Phase.CLOSING and not s.touched[log])

    @lemma("CKP-9")
    def what_serves_is_loaded(s, log: Log) -> bool:
        return s.phase != Phase.UP or s.loaded[log]

    @witness
    def all_are_served(s) -> bool:
        return s.phase == Phase.UP

    @witness
    def crashed_while_loading_after_a_clean_stop(s, log: Log) -> bool:
        return s.phase == Phase.DOWN and s.clean and s.touched[log] and not s.marker

    @witness
    def clean_again_though_not_all_was_loaded(s, log: Log) -> bool:
        return s.marker and not s.loaded[log]


L = Size("L")
"""The largest offset."""
Offset = Annotated[int, Range(0, L)]


class RecoveryPoint(Model):
    """One log, its recovery point and the checkpoint of it, through losses of power. What lies below `flushed` survives
    them; `sound` is up to where the file's content is what was written, `end` where it ends. `stale`: the checkpoint
    was left above the log end by a crash between a truncation and the checkpoint that follows it, and was not written
    since. `skipped` says that a recovery once began above content that is not sound, the checkpoint not stale."""

    end: Offset
    sound: Offset
    flushed: Offset
    point: Offset
    checkpoint: Offset
    running: bool
    truncated: bool
    stale: bool
    skipped: bool

    @action("CKP-11", who="leader or follower")
    def append(s) -> None:
        require(s.running, not s.truncated, s.end < L)
        s.next.end = s.end + 1
        s.next.sound = s.end + 1

    @action("CKP-11", who="flusher")
    def flush(s) -> None:
        require(s.running)
        s.next.flushed = s.end

    @action("CKP-11", who="flusher")
    def advance(s) -> None:
        """After the flush, and no further than it went."""
        require(s.running, s.point < s.flushed)
        s.next.point = s.flushed

    @action("CKP-11", who="log manager")
    def write_checkpoint(s) -> None:
        require(s.running)
        s.next.checkpoint = s.point
        s.next.truncated = False
        s.next.stale = s.stale and s.point > s.flushed

    @action("CKP-11", who="follower")
    def truncate(s, offset: Offset) -> None:
        """Nothing is appended before the checkpoint that follows."""
        require(s.running, offset < s.end)
        s.next.end = offset
        s.next.sound = offset
        s.next.flushed = min(s.flushed, offset)
        s.next.point = min(s.point, offset)
        s.next.truncated = True

    @action("CKP-15", who="power")
    def lose_power(s, kept: Offset, end: Offset) -> None:
        """What was not flushed is kept in part, or is there in length alone."""
        require(s.running, s.flushed <= kept, kept <= end, end <= s.end)
        s.next.sound = kept
        s.next.end = end
        s.next.flushed = end
        s.next.running = False

    @action("CKP-15", who="power")
    def kill(s) -> None:
        """The process alone: what was written is there, flushed or not."""
        require(s.running)
        s.next.running = False

    @action("CKP-15", who="loader thread")
    def recover(s) -> None:
        """From the checkpoint up everything is read, and cut where it is not sound."""
        require(not s.running)
        s.next.skipped = s.skipped or (not s.stale and s.sound < min(s.checkpoint, s.end))
        s.next.end = s.sound
        s.next.flushed = min(s.flushed, s.sound)
        s.next.point = min(s.checkpoint, s.sound)
        s.next.stale = s.stale or s.checkpoint > s.sound
        s.next.truncated = False
        s.next.running = True

    @invariant("CKP-11", "CKP-15")
    def what_is_not_sound_is_read_again(s) -> bool:
        return not s.skipped

    @invariant("CKP-11")
    def the_recovery_point_is_flushed(s) -> bool:
        return not s.running or s.stale or s.point <= s.flushed

    @step("CKP-11", "CKP-15")
    def what_is_down_waits_for_its_recovery(s) -> bool:
        still = s.next.end == s.end and s.next.sound == s.sound and s.next.truncated == s.truncated
        return s.running or s.next.running or (still and s.next.flushed == s.flushed and s.next.point == s.point)

    @step("CKP-11")
    def the_point_rises_to_what_is_flushed(s) -> bool:
        """And falls with the end alone."""
        return (
            not (s.running and s.next.running)
            or s.next.point == s.point
            or (s.next.point > s.point and s.next.point == s.flushed)
            or (s.next.end < s.end and s.next.point == s.next.end)
        )

    @step("CKP-11")
    def what_is_checkpointed_is_no_longer_truncated(s) -> bool:
        """Nor stale, if it is flushed."""
        return s.next.checkpoint == s.checkpoint or (
            not s.next.truncated and (s.next.checkpoint > s.next.flushed or not s.next.stale)
        )

    @step("CKP-11")
    def a_truncation_lowers_the_end(s) -> bool:
        return s.truncated or not s.next.truncated or s.next.end < s.end

    @step("CKP-11")
    def stale_is_what_is_above_the_end(s) -> bool:
        return s.stale or not s.next.stale or s.next.checkpoint > s.next.end

    @lemma("CKP-15")
    def what_was_lost_in_part_is_on_the_disk(s) -> bool:
        """After a loss of power nothing is left that is there and not flushed."""
        return s.running or s.sound == s.end or s.flushed == s.end

    @lemma("CKP-11")
    def what_runs_is_sound(s) -> bool:
        return s.flushed <= s.end and s.sound <= s.end and (not s.running or s.sound == s.end)

    @lemma("CKP-11")
    def what_is_checkpointed_is_flushed(s) -> bool:
        return not s.running or s.stale or s.checkpoint <= s.flushed or (s.truncated and s.flushed == s.end)

    @lemma("CKP-11")
    def what_is_checkpointed_is_sound(s) -> bool:
        whole = s.sound == s.end and s.flushed == s.end
        return s.running or s.stale or whole or (s.checkpoint <= s.sound and s.checkpoint <= s.flushed)

    @witness
    def flushed_again_before_the_checkpoint(s) -> bool:
        return s.running and s.checkpoint < s.point and s.point < s.flushed

    @witness
    def killed_before_the_flush(s) -> bool:
        return not s.running and s.flushed < s.end

    @witness
    def nothing_of_it_is_sound(s) -> bool:
        return not s.running and s.sound == 0 and s.end > 0

    @witness
    def all_its_length_is_there(s) -> bool:
        return not s.running and s.sound < s.end and s.end == L

    @witness
    def torn_above_the_checkpoint(s) -> bool:
        return not s.running and s.sound < s.end and s.checkpoint > 0

    @witness
    def torn_below_a_stale_checkpoint(s) -> bool:
        return not s.running and s.stale and s.sound < min(s.checkpoint, s.end)


MODELS = [
    Expectation(CheckpointFile, sizes={"V": 4}, distinct=65, generated=191, depth=17),
    Expectation(Marker, sizes={"Log": 3}, distinct=228, generated=444, depth=19),
    Expectation(RecoveryPoint, sizes={"L": 5}, distinct=2362, generated=11971, depth=22),
]
