"""Bugs that Kafka's replication had, by their tickets: where each is planted here, and who finds it.

A bug is planted in a model, in one component beside its spec, in the simulated cluster, or in several of them. The page
has this as a table; `python -m tests.storage.replication_bugs` prints it.
"""

# mypy: disable-error-code="operator, index, arg-type, assignment, union-attr"

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.storage import replication as model
from kafkaspec.models.storage.replication import Replica
from kafkaspec.mutants.mutant import of_model


class InModel(NamedTuple):
    """A mutant of replication's models; the claim that it breaks first, and in how many steps at least."""

    mutant: str
    claim: str
    steps: int
    subsystem: str = ""
    """whose model it is, if not that of the page"""

    def cells(self) -> tuple[str, str, str]:
        """Where it is planted, who finds it, and after how much."""
        steps = f"{self.steps} step" + "s" * (self.steps != 1)
        of = f"[{self.subsystem}]({page_of(self.subsystem)}), " if self.subsystem else ""
        return f"{of}model: {self.mutant}", f"`{self.claim}`", steps


class InPart(NamedTuple):
    """A mutant of a subsystem's implementation; the rule that is cited, and after how many calls or where."""

    subsystem: str
    mutant: str
    rule: str
    calls: int
    """of the shortest history; of a recording the number of the step, where walks do not find it"""
    recording: str = ""

    def cells(self) -> tuple[str, str, str]:
        """Where it is planted, who finds it, and after how much."""
        after = (
            f"step {self.calls} of a recording" if self.recording else f"{self.calls} call" + "s" * (self.calls != 1)
        )
        return f"[{self.subsystem}]({page_of(self.subsystem)}): {self.mutant}", self.rule, after


class Find(NamedTuple):
    """The first seed of a schedule that finds a fault, and the steps of that run; or no seed, and how many were run."""

    seed: int | None
    steps: int

    def __str__(self) -> str:
        return f"none of {self.steps}" if self.seed is None else f"seed {self.seed}, {self.steps:,} steps"


class InCluster(NamedTuple):
    """A fault of the simulated cluster: the rule that it breaks, by uniform schedules and by all in turn."""

    scenario: str
    rule: str
    uniform: Find
    mixed: Find

    def cells(self) -> tuple[str, str, str]:
        """Where it is planted, who finds it, and after how much."""
        return (
            f"simulator: `{self.scenario}`",
            RULES.get(self.rule, self.rule),
            f"uniform: {self.uniform}; mixed: {self.mixed}",
        )


RULES = {
    "AT_REST": "at rest",
    "FENCED": "fenced",
    "ACKNOWLEDGED": "acks=all",
    "SAME_MEMORY": "same memory",
    "STABLE_READS": "stable reads",
}
"""The pages' words for rules of simulators that are no clauses."""


class Planted(Protocol):
    """A place where a bug is planted."""

    def cells(self) -> tuple[str, str, str]:
        """Where it is planted, who finds it, and after how much."""


class Bug(NamedTuple):
    """One ticket."""

    ticket: str
    what: str
    planted: tuple[Planted, ...]


def _bumps_for_nothing() -> LoadedModel:
    """The last one in sync stays, and its failure is a new leader epoch all the same, again and again."""

    class Released(model.Released):
        @action("RPN-2", who="controller")
        def controller_shrinks(s, r: Replica) -> None:
            require(s.elected() == r or r in s.isr)
            s.send(None if s.elected() == r else s.elected(), s.isr if s.isr == {r} else s.isr - {r})

    return load(Released)


MORE = {
    m.name: m
    for m in (
        of_model("bumps for nothing", "RPN-2", "a new epoch that says nothing new", _bumps_for_nothing, "KAFKA-16624"),
    )
}
"""Faults of the models that are here alone."""


def never(seeds: int) -> Find:
    """None of the first seeds finds it."""
    return Find(None, seeds)


BUGS = (
    Bug(
        "KIP-101",
        "a follower truncates to its own high watermark, which lags",
        (
            InModel("truncates to high watermark", "weak_isr", 10),
            InPart("high_watermark", "to the high watermark", "HWM-33", 230, "kafka-4.3.0-high_watermark.ndjson.gz"),
            InCluster("truncates_to_high_watermark", "RPN-14", Find(0, 1531), Find(0, 1531)),
        ),
    ),
    Bug(
        "KAFKA-5634",
        "retention deletes segments above the high watermark",
        (InPart("log", "above the watermark", "LOG-39", 8),),
    ),
    Bug(
        "KAFKA-5745",
        "the place of the high watermark is not looked up when it is needed",
        (InPart("log", "never placed", "LOG-21", 1),),
    ),
    Bug(
        "KAFKA-6003",
        "a follower checks sequences, and refuses what its leader took",
        (InPart("log", "a follower checks", "LOG-11", 1),),
    ),
    Bug(
        "KAFKA-6361",
        "the end of an epoch is told without the epoch: a tail that the leader never had stays",
        (
            InModel("an end without its epoch", "weak_isr", 12),
            InPart("high_watermark", "ends of the epoch asked", "HWM-7", 340, "kafka-4.3.0-high_watermark.ndjson.gz"),
            InCluster("end_without_its_epoch", "RPN-12", Find(10, 582), Find(1, 851)),
        ),
    ),
    Bug(
        "KAFKA-6683",
        "the producer snapshot of a roll has the batch that is to come",
        (
            InPart("log", "snapshot of the future", "LOG-2", 3),
            InCluster("snapshot_of_the_future", "ACKNOWLEDGED", Find(1, 1486), Find(1, 1838)),
        ),
    ),
    Bug(
        "KAFKA-7128",
        "a follower is in sync at the high watermark, before the leader's own epoch",
        (
            InModel("expands early", "who_joins_is_as_far", 7),
            InModel("proposes early", "who_joins_is_as_far", 7),
            InPart("high_watermark", "joins below the epoch", "HWM-14", 308, "kafka-4.3.0-high_watermark.ndjson.gz"),
            InCluster("expands_at_high_watermark", "RPN-14", never(10), Find(10, 1039)),
        ),
    ),
    Bug(
        "KAFKA-7164",
        "a follower that missed a term does not truncate, for the leader is the one of before",
        (
            InPart("high_watermark", "fetches from a new leader", "HWM-26", 2),
            InCluster("skips_for_the_same_leader", "RPN-14", Find(5, 937), Find(14, 297)),
        ),
    ),
    Bug(
        "KAFKA-7415",
        "a leader that writes nothing leaves no trace in the leader epochs",
        (
            InPart("leader_epochs", "contradictions stay", "LEC-2", 2),
            InCluster("leaves_no_trace", "RPN-14", Find(0, 561), Find(0, 561)),
        ),
    ),
    Bug(
        "KAFKA-7601",
        "an append in an old format leaves the file of the epochs as it was",
        (InPart("leader_epochs", "cleared in memory", "LEC-8", 1),),
    ),
    Bug(
        "KAFKA-9196",
        "a roll leaves the place of the high watermark in the segment before",
        (InPart("log", "the old segment", "LOG-21", 3),),
    ),
    Bug(
        "KAFKA-9491",
        "a full truncation leaves the high watermark below the log start",
        (InPart("high_watermark", "below the start", "HWM-34", 241, "kafka-4.3.0-high_watermark.ndjson.gz"),),
    ),
    Bug(
        "KAFKA-10432",
        "recovery assigns no epoch 0",
        (InPart("segment", "epochs from 1", "SEG-19", 7, "segment.ndjson"),),
    ),
    Bug(
        "KAFKA-12153",
        "a truncation moves the offsets before the producers are rebuilt",
        (InPart("log", "offsets before producers", "LOG-28", 5),),
    ),
    Bug(
        "KAFKA-12751",
        "an answer to AlterPartition with the version that the leader has leaves the change pending",
        (
            InPart("high_watermark", "newer answers", "HWM-17", 3),
            InCluster("discards_equal_versions", "AT_REST", Find(0, 3757), Find(0, 3757)),
        ),
    ),
    Bug(
        "KAFKA-13091",
        "after a shrink the leader does not look at the high watermark",
        (InPart("high_watermark", "not after a change", "HWM-3", 6, "kafka-4.3.0-high_watermark.ndjson.gz"),),
    ),
    Bug(
        "KAFKA-13162",
        "an election asked for the preferred leader goes on to one that is not in sync",
        (
            InModel("elects anybody", "strong_isr", 6),
            InCluster("elects_anybody", "RPN-14", never(10), Find(10, 1183)),
        ),
    ),
    Bug(
        "KAFKA-13173",
        "brokers that expire together are fenced from one state: the last change takes back the others",
        (
            InModel("from a stale state", "strong_isr", 6),
            InCluster("fences_from_one_state", "FENCED", Find(1, 725), Find(19, 1359)),
        ),
    ),
    Bug(
        "KAFKA-13194",
        "the cleaner takes records above the high watermark",
        (InPart("cleaner", "unstable records are cleaned", "CLN-5", 4),),
    ),
    Bug(
        "KAFKA-13207",
        "an answer that says where to truncate counts, though the broker leads by now",
        (InCluster("truncates_what_is_not_fetched", "RPN-14", Find(3, 852), Find(2, 329)),),
    ),
    Bug(
        "KAFKA-13916",
        "the controller takes a fenced broker into those in sync",
        (
            InPart("high_watermark", "any state", "HWM-3", 157, "kafka-4.3.0-high_watermark.ndjson.gz"),
            InCluster("takes_fenced", "FENCED", Find(0, 294), Find(0, 294)),
        ),
    ),
    Bug(
        "KAFKA-13959",
        "a broker is unfenced once it has heard of all that there is, which is more every time",
        (InCluster("wants_the_newest", "AT_REST", Find(0, 1357), Find(0, 1357)),),
    ),
    Bug(
        "KAFKA-14617",
        "what a follower had before it started again counts for it, though its disk has less",
        (
            InModel("of an earlier life", "who_joins_is_as_far", 7),
            InPart("high_watermark", "takes old fetches", "HWM-8", 1),
        ),
    ),
    Bug(
        "KAFKA-14704",
        "a follower takes over the high watermark of an answer that tells it to truncate",
        (
            InModel("takes the mark of what diverges", "replicas_agree_below_the_high_watermark", 11),
            InCluster("takes_the_mark_first", "RPN-12", Find(2, 449), Find(6, 612)),
        ),
    ),
    Bug(
        "KAFKA-15021",
        "the high watermark waits for a replica that is caught up and may not join",
        (InPart("high_watermark", "waits for whoever is caught up", "HWM-24", 3),),
    ),
    Bug(
        "KAFKA-15510",
        "behind an empty answer a fetch names no epoch",
        (
            InPart("high_watermark", "forgets the last epoch", "HWM-38", 224, "kafka-4.3.0-high_watermark.ndjson.gz"),
            InCluster("forgets_the_last_epoch", "RPN-14", Find(1, 542), Find(1, 2522)),
        ),
    ),
    Bug(
        "KAFKA-15583",
        "the high watermark rises while too few are in sync (KIP-966)",
        (
            InModel("looks at no minimum", "no_committed_record_is_lost", 8),
            InPart("high_watermark", "below min ISR", "HWM-3", 53, "kafka-4.3.0-high_watermark.ndjson.gz"),
            InCluster("commits_alone", "RPN-14", Find(0, 885), Find(0, 885)),
        ),
    ),
    Bug(
        "KAFKA-16541",
        "the file of the epochs takes the old one's name before it is on the disk",
        (InPart("leader_epochs", "content not flushed", "LEC-7", 2),),
    ),
    Bug(
        "KAFKA-16624",
        "a change that changes nothing is a new leader epoch",
        (InModel("bumps for nothing", "each_request_says_something_new", 2),),
    ),
    Bug(
        "KAFKA-16952",
        "a registration that comes twice fences the broker, and gives it another epoch",
        (InCluster("registers_again", "AT_REST", never(60), Find(8, 3052)),),
    ),
    Bug(
        "KAFKA-18106",
        "a broker that starts again before its session has ended is fenced, and leads",
        (
            InModel("a failed leader leads", "each_request_says_something_new", 2),
            InCluster("registers_and_leaves_it", "FENCED", Find(1, 1231), Find(2, 387)),
        ),
    ),
    Bug(
        "pull request 20716",
        "one who asks for a change does not say that eligible replicas are kept",
        (InModel("forgets who is eligible", "enough_are_left", 5),),
    ),
)
HEAD = ("ticket", "what goes wrong", "planted in", "found by", "after")


def page_of(subsystem: str) -> str:
    """From the page of another subsystem of its area."""
    return f"../management/{subsystem}.md" if subsystem == "cleaner" else f"{subsystem}.md"


def table(bugs: Sequence[Bug] = BUGS) -> str:
    """A page's table."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---|---|---|---|---|"]
    for bug in bugs:
        ticket, what = bug.ticket, bug.what
        for p in bug.planted:
            lines.append("| " + " | ".join((ticket, what, *p.cells())) + " |")
            ticket = what = ""
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
