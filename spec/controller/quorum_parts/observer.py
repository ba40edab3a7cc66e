"""Who watches a quorum of controllers: what may be seen of their votes, logs, memories and answers, step by step, if
the rules are kept.

Beside each replica's log stands the log of what is committed: what any leader ever showed below its high watermark. A
record applied from it makes a memory of its own, which is what each controller's must be at the same offset. A log is
known by a chain of checksums that no node wrote: two logs with the same last link are the same.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from kafkaspec.simulate.scenario import Violation
from kafkaspec.spec.common.metadata_log import ELR, NO_LOG_OFFSET, VERSION, Kind, Record

WRITER: Final = "only its leader writes in an epoch"
SAME_MEMORY: Final = "who has applied the same log has the same memory"
ACKNOWLEDGED: Final = "what is acknowledged is stable"
STABLE_READS: Final = "what is read is stable"
ONCE: Final = "what there is is not created again"
COUNTED: Final = (
    "leaders", "truncations", "starts after a crash", "snapshots made", "snapshots loaded", "records committed",
    "acknowledgements", "refusals by who does not lead", "names that there were already", "values read",
    "memories compared",
)  # fmt: skip
"""What has to happen for the rules to say something."""
LINK: Final = struct.Struct(">qiI")
REGISTERED: Final = "broker "


class Batch(NamedTuple):
    """A batch of a log: `records` are the controller's, none of Raft's own."""

    base: int
    last: int
    epoch: int
    contents: int
    """a checksum"""
    records: tuple[Record, ...]

    @property
    def end(self) -> int:
        return self.last + 1

    def __str__(self) -> str:
        return f"the batch at {self.base} of epoch {self.epoch}, contents {self.contents:08x}"


def is_majority(some: Collection[str], voters: Collection[str]) -> bool:
    """More than half of the voters."""
    return 2 * len({*some} & {*voters}) > len(voters)


class Replica:
    """What is seen of one."""

    def __init__(self) -> None:
        self.start = 0
        self.log: list[Batch] = []
        self.links: list[int] = [0]
        """before the first batch, and behind each"""
        self.agreed = 0
        """the offset up to which its log is the committed one"""
        self.high: int | None = None
        self.leads_in: int | None = None
        self.was_up = False

    @property
    def end(self) -> int:
        return self.log[-1].end if self.log else self.start

    @property
    def last_epoch(self) -> int | None:
        """None behind a snapshot alone."""
        return self.log[-1].epoch if self.log else None if self.start else 0


class Memory:
    """What the committed log makes: names with numbers, and what is stable of them."""

    def __init__(self, created: str) -> None:
        self.created = created
        """what the names begin with that are created, and never changed"""
        self.values: dict[str, int] = {}
        self.opened: int | None = None
        """where the open transaction begins"""
        self.before: dict[str, int] = {}
        """what was so before it"""
        self.offsets: list[int] = [NO_LOG_OFFSET]
        self.stable: list[Mapping[str, int]] = [{}]
        """what is stable from each of those offsets on"""
        self.committed: dict[int, Mapping[str, int]] = {NO_LOG_OFFSET: {}}
        """what there is with all that is committed up to an offset, also of an open transaction"""
        self.unstable: list[tuple[str, int]] = []
        self.written: set[tuple[str, int]] = set()
        """every name with every value that was stable"""

    def apply(self, batch: Batch) -> Violation | None:
        """A batch is committed."""
        for offset, record in enumerate(batch.records, batch.base):
            match record.kind:
                case Kind.SET:
                    if record.key.startswith(self.created) and record.key in self.values:
                        there = self.values[record.key]
                        return Violation(ONCE, f"offset {offset}: {record.key} = {record.value}; it was {there}")
                    self._set(record.key, record.value)
                case Kind.VERSION | Kind.FEATURE:
                    self._set(VERSION if record.kind == Kind.VERSION else ELR, record.value)
                case Kind.REGISTER:
                    self._set(f"{REGISTERED}{record.value}", offset)
                case Kind.BEGIN:
                    self.opened, self.before = offset, dict(self.values)
                    self._is_stable(offset - 1, self.before)
                case Kind.ABORT:
                    self.values, self.opened, self.unstable = dict(self.before), None, []
                case Kind.END:
                    self.opened = None
        if self.opened is None:
            self._is_stable(batch.last, dict(self.values))
        self.committed[batch.last] = dict(self.values)
        return None

    def _set(self, name: str, value: int) -> None:
        self.values[name] = value
        self.unstable.append((name, value))

    def _is_stable(self, offset: int, values: Mapping[str, int]) -> None:
        self.written.update(self.unstable)
        self.unstable = []
        if offset > self.offsets[-1]:
            self.offsets.append(offset)
            self.stable.append(values)

    def at(self, offset: int) -> Mapping[str, int]:
        """What is stable at an offset."""
        return self.stable[bisect_right(self.offsets, offset) - 1]


def difference(memory: Mapping[str, int], wanted: Mapping[str, int]) -> str:
    """The first name, sorted, of which they say different things."""
    name = min(n for n in {*memory, *wanted} if memory.get(n) != wanted.get(n))
    return f"{name} is {memory.get(name, 'not there')}; by the committed log it is {wanted.get(name, 'not there')}"


class Observer:
    """What was seen so far. A method answers with what a step broke, or with None."""

    def __init__(self, replicas: Sequence[str], created: str) -> None:
        self.replicas = {name: Replica() for name in replicas}
        self.end = 0
        """of what is committed"""
        self.links: dict[int, int] = {0: 0}
        """of the committed log, by the offset behind each of its batches"""
        self.epochs: dict[int, int] = {0: 0}
        """of those batches"""
        self.ends: dict[int, int] = {}
        """how far what is committed went by the leader of each epoch: one that was elected late may be of an earlier"""
        self.memory = Memory(created)
        self.leaders: dict[int, str] = {}
        self.votes: dict[tuple[str, int], str] = {}
        """those that were told"""
        self.kept: dict[tuple[str, int], str] = {}
        """those that replicas had when they started: who crashed within a vote has not told it"""
        self.pre_votes: dict[tuple[str, int], set[str]] = {}
        self.candidates: set[tuple[str, int]] = set()
        self.written: dict[tuple[int, int], tuple[int, str]] = {}
        """of each batch, by its offset and epoch: the link behind it, and who had it first"""
        self.counted = dict.fromkeys(COUNTED, 0)

    # ---- votes
    def votes_for(self, name: str, epoch: int, candidate: str) -> Violation | None:
        """RFT-1."""
        other = self.votes.setdefault((name, epoch), candidate)
        return (
            None if other == candidate else Violation("RFT-1", f"{name} votes for {other} and {candidate} in {epoch}")
        )

    def grants(self, name: str, epoch: int, candidate: str, log: tuple[int, int], pre_vote: bool) -> Violation | None:
        """A vote, or a pre-vote, to who has a log up to that epoch and offset: RFT-3, RFT-4."""
        r = self.replicas[name]
        if not pre_vote and candidate in (self.votes.get((name, epoch)), self.kept.get((name, epoch))):
            return self.votes_for(name, epoch, candidate)  # again: its own log may have grown
        if r.last_epoch is not None and log < (r.last_epoch, r.end):
            what = f"{name}, with a log up to {r.end} of epoch {r.last_epoch}, grants {candidate} its vote"
            return Violation("RFT-3" if pre_vote else "RFT-4", f"{what}, whose log is {log[1]} of epoch {log[0]}")
        if pre_vote:
            self.pre_votes.setdefault((candidate, epoch), set()).add(name)
            return None
        return self.votes_for(name, epoch, candidate)

    def stays_with_leader(self, name: str) -> Violation:
        """Who leads, or has fetched from its leader, grants a pre-vote: RFT-5."""
        return Violation("RFT-5", f"{name} has a leader, and grants a pre-vote")

    def stands(self, name: str, epoch: int, voters: Collection[str]) -> Violation | None:
        """A candidate asks for votes: RFT-7."""
        if (name, epoch) in self.candidates:
            return None
        self.candidates.add((name, epoch))
        granted = {name, *self.pre_votes.get((name, epoch - 1), ())}
        if not is_majority(granted, voters):
            return Violation(
                "RFT-7", f"{name} stands in epoch {epoch} with pre-votes of {', '.join(sorted(granted))} alone"
            )
        return self.votes_for(name, epoch, name)

    # ---- leaders
    def leads(self, name: str, epoch: int, voters: Collection[str]) -> Violation | None:
        """A replica leads from now on, in that epoch: RFT-2, RFT-9, RFT-20."""
        r = self.replicas[name]
        r.leads_in, r.high = epoch, None
        self.counted["leaders"] += 1
        other = self.leaders.setdefault(epoch, name)
        if other != name:
            return Violation("RFT-2", f"{other} and {name} lead in epoch {epoch}")
        voted = {name} | {v for v in voters if self.votes.get((v, epoch)) == name}
        if not is_majority(voted, voters):
            return Violation("RFT-9", f"{name} leads in epoch {epoch} with votes of {', '.join(sorted(voted))} alone")
        wanted = max((end for by, end in self.ends.items() if by < epoch), default=0)
        if r.agreed < wanted:
            what = f"{wanted} offsets were committed in earlier epochs, and of them it has {r.agreed}"
            return Violation("RFT-20", f"{name} leads in epoch {epoch}; {what}")
        return None

    def follows(self, name: str) -> None:
        """A replica does not lead, or is down."""
        self.replicas[name].leads_in = None

    def starts(self, name: str, epoch: int, voted: str | None) -> None:
        """A replica has started, with its vote of that epoch; what it has follows."""
        r = self.replicas[name]
        if voted is not None:
            self.kept[name, epoch] = voted
        self.counted["starts after a crash"] += r.was_up
        r.leads_in, r.high, r.was_up = None, None, True

    # ---- logs
    def has(self, name: str, start: int, batches: Sequence[Batch]) -> Violation | None:
        """All that is in the log of a replica, which begins at an offset: RFT-22, RFT-24."""
        r = self.replicas[name]
        before, r.agreed = r.agreed, start
        if start not in self.links:
            return Violation("RFT-23", f"the log of {name} begins at {start}, where no committed batch ends")
        r.start, r.log, r.links = start, [], [self.links[start]]
        found = self.appends(name, batches)
        if found is None and r.agreed < before:
            return self._lost(name, before, r.end)
        return found

    def _lost(self, name: str, before: int, end: int) -> Violation:
        return Violation("RFT-22", f"{name} had what is committed up to {before}, and its log ends at {end} now")

    def cuts(self, name: str, end: int) -> Violation | None:
        """The log of a replica ends there now: RFT-22."""
        r = self.replicas[name]
        self.counted["truncations"] += 1
        if end < r.agreed:
            return self._lost(name, r.agreed, end)
        while r.log and r.log[-1].last >= end:
            r.log.pop()
            r.links.pop()
        return None

    def appends(self, name: str, batches: Sequence[Batch]) -> Violation | None:
        """The log of a replica has more: RFT-19."""
        r = self.replicas[name]
        for batch in batches:
            if batch.base != r.end:
                return Violation("RFT-19", f"{name} has {batch} behind offset {r.end}")
            link = zlib.crc32(LINK.pack(batch.base, batch.epoch, batch.contents), r.links[-1])
            known = self.written.get((batch.base, batch.epoch))
            if known is None:
                writer = self.leaders.setdefault(batch.epoch, name)
                if writer != name:
                    return Violation(WRITER, f"{name} has {batch} first; {writer} leads in that epoch")
                self.written[batch.base, batch.epoch] = link, name
            elif known[0] != link:
                return Violation("RFT-19", f"{name} has {batch}; {known[1]} has another there, or before it")
            r.log.append(batch)
            r.links.append(link)
        self._agree(r)
        return None

    def _agree(self, r: Replica) -> None:
        for batch, link in zip(reversed(r.log), reversed(r.links), strict=False):
            if batch.end <= r.agreed:
                return
            if self.links.get(batch.end) == link:
                r.agreed = batch.end
                return

    # ---- high watermarks
    def shows(self, name: str, high: int | None, voters: Collection[str]) -> Violation | None:
        """A replica's high watermark is there now: RFT-17, RFT-18, RFT-21, RFT-22."""
        r = self.replicas[name]
        before, r.high = r.high, high
        if high is None:
            return None
        if before is not None and high < before:
            return Violation("RFT-22", f"the high watermark of {name} falls from {before} to {high}")
        if high > r.end:
            return Violation("RFT-17", f"the high watermark of {name} is {high}, its log ends at {r.end}")
        if r.agreed < min(high, self.end):
            return Violation("RFT-21", f"{name} shows {high} offsets; of what is committed it has {r.agreed}")
        if high > self.end:
            if r.leads_in is None:
                return Violation("RFT-18", f"{name}, which does not lead, shows offset {self.end} first")
            return self._commit(name, r, high, voters)
        return None

    def _commit(self, name: str, r: Replica, high: int, voters: Collection[str]) -> Violation | None:
        fresh = [(b, link) for b, link in zip(r.log, r.links[1:], strict=True) if self.end < b.end <= high]
        if not fresh or fresh[-1][0].end != high:
            return Violation("RFT-18", f"{name} shows {high} offsets, in the middle of a batch")
        if fresh[-1][0].epoch != r.leads_in:
            return Violation("RFT-18", f"{name} leads in epoch {r.leads_in}, and commits {fresh[-1][0]} by counting")
        self.ends[r.leads_in or 0] = high
        for batch, link in fresh:
            self.end = batch.end
            self.links[batch.end], self.epochs[batch.end] = link, batch.epoch
            self.counted["records committed"] += len(batch.records)
            found = self.memory.apply(batch) if batch.records else None
            if found is not None:
                return found
        for other in self.replicas.values():
            self._agree(other)
        having = [n for n, other in self.replicas.items() if other.agreed >= high]
        if not is_majority(having, voters):
            what = f"{', '.join(having)} have it, the voters are {', '.join(sorted(voters))}"
            return Violation("RFT-18", f"{name} shows {high} offsets; {what}")
        return None

    # ---- snapshots
    def snapshot(self, name: str, offset: int, epoch: int, values: Mapping[str, int]) -> Violation | None:
        """A replica has a snapshot: RFT-23."""
        if offset > self.end or self.epochs.get(offset) != epoch:
            where = self.epochs.get(offset)
            there = "no committed batch ends there" if where is None else f"epoch {where} is committed there"
            return Violation("RFT-23", f"{name} has a snapshot of offset {offset}, epoch {epoch}; {there}")
        wanted = self.memory.at(offset - 1)
        if values != wanted:
            return Violation(SAME_MEMORY, f"in the snapshot {offset} of {name} {difference(values, wanted)}")
        return None

    # ---- controllers
    def remembers(self, name: str, stable: int, values: Mapping[str, int]) -> Violation | None:
        """What a controller shows at its last stable offset."""
        self.counted["memories compared"] += 1
        wanted = self.memory.at(stable)
        if values == wanted:
            return None
        return Violation(SAME_MEMORY, f"{name}, stable up to {stable}: {difference(values, wanted)}")

    def stands_by(self, name: str, committed: int, values: Mapping[str, int]) -> Violation | None:
        """All that a controller has in memory that is not active, and has applied what is committed up to there:
        QRM-22, QRM-27."""
        wanted = self.memory.committed.get(committed)
        if wanted is None or values == wanted:
            return None
        what = difference(values, wanted)
        return Violation(SAME_MEMORY, f"{name}, which is not active, with all up to {committed}: {what}")

    # ---- clients
    def acknowledged(self, name: str, kind: str, names: Sequence[str], sent: int, value: int) -> Violation | None:
        """A writer is told that it is so: QRM-12, QRM-14."""
        wanted = [(n, value) for n in names] if kind != "register" else []
        for n, v in wanted:
            if (n, v) not in self.memory.written:
                return Violation(ACKNOWLEDGED, f"{name} says that {n} is {v}; that is not stable")
        if kind == "register" and f"{REGISTERED}{names[0]}" not in self.memory.at(self.end):
            return Violation(ACKNOWLEDGED, f"{name} says that broker {names[0]} is registered; that is not stable")
        self.counted["acknowledgements"] += 1
        self.counted["names that there were already"] += value != sent
        return None

    def reads(self, name: str, key: str, value: int, stable: int) -> Violation | None:
        """A reader is told a value: QRM-2."""
        self.counted["values read"] += 1
        wanted = self.memory.at(stable).get(key, NO_LOG_OFFSET)
        if value == wanted:
            return None
        return Violation(STABLE_READS, f"{name}, stable up to {stable}, says that {key} is {value}; it is {wanted}")
