"""What the controller of Kafka 4.3.0 makes of a partition, recorded: who leads, who is in sync and who is eligible
after a change, and what becomes of a reassignment.

The controller of the partitions is no subsystem yet. The models of replication and the simulated clusters have one that
elects (RPN-1, RPN-17, RPN-24), keeps who is eligible (RPN-22, RPN-23), and ends a reassignment (KIP-455). Here the same
rules stand once more, for one call, and are held to what Kafka's own classes answered to arguments that were drawn at
random. Among these is none for which the last known leader is elected.
Source: PartitionChangeBuilder, PartitionReassignmentReplicas, Kafka 4.3.0; KIP-455, KIP-966.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

RECORDING = Path(__file__).parent.parent / "recordings" / "partition-functions.ndjson.gz"
Line = dict[str, Any]
LINES: list[Line] = [orjson.loads(line) for line in gzip.decompress(RECORDING.read_bytes()).splitlines()]
NOBODY = -1
LEFT_OUT = "The lengths for replicas and directories do not match."
"""of 21 partitions whose change could not be put into the partition again, by the driver of the recording"""
SHOWN = {
    "elr": [],
    "lastKnownElr": [],
    "addingReplicas": [],
    "removingReplicas": [],
    "leaderRecoveryState": "RECOVERED",
}
"""what a partition is that the recording leaves out"""
AS_SHOWN = {"adding": "addingReplicas", "removing": "removingReplicas"}


class Rules:
    """What the controller does."""

    def completed(
        self, replicas: Sequence[int], isr: Sequence[int], adding: Collection[int], removing: Collection[int]
    ) -> tuple[list[int], list[int]] | None:
        """KIP-455: replicas and in-sync replicas behind a reassignment that ends: when all that were added are in sync,
        and if there are fewer replicas then, all that stay."""
        stay, in_sync = ([r for r in of if r not in removing] for of in (replicas, isr))
        some = bool(adding or removing) and (not removing or bool(stay and in_sync))
        wanted = stay if len(adding) < len(removing) else adding
        return (stay, in_sync) if some and {*adding, *wanted} <= {*in_sync} else None

    def out_of_sync(self, partition: Line, isr: Collection[int]) -> set[int]:
        """Of those that were in sync or eligible."""
        return {*partition["isr"], *partition["elr"]} - {*isr}

    def eligible(self, partition: Line, isr: Collection[int], least: int, unclean: Collection[int]) -> set[int]:
        """RPN-22, RPN-23: whoever leaves those in sync while too few stay, and has not lost what it had."""
        return set() if len(isr) >= least else self.out_of_sync(partition, isr) - {*unclean}

    def once_eligible(self, partition: Line, isr: Collection[int], least: int, eligible: Collection[int]) -> set[int]:
        """Who was in sync since too few were, and is neither in sync nor eligible now."""
        known = self.out_of_sync(partition, isr) | {*partition["lastKnownElr"]} - {*isr}
        return set() if len(isr) >= least else known - {*eligible}

    def elected(
        self, election: str, leader: int, replicas: Sequence[int], able: Collection[int], alive: Collection[int]
    ) -> int:
        """RPN-1, RPN-24: the leader goes on if it can, but for the preferred one; else it is the first one that can."""
        in_turn = [replicas[0], leader, *replicas[1:]] if election == "PREFERRED" else [leader, *replicas]
        return next((r for r in in_turn if r in able and r in alive), NOBODY)

    def last_resort(self, args: Line, replicas: Sequence[int], isr: Collection[int], eligible: Collection[int]) -> int:
        """RPN-24, RPN-17: the leader that was known last; or whoever is alive."""
        known, alive = args["partition"]["lastKnownElr"], args["acceptableLeaders"]
        by_last = args["elrEnabled"] and args["useLastKnownLeaderInBalancedRecovery"]
        if by_last and not isr and not eligible and len(known) == 1 and known[0] in alive:
            return int(known[0])
        left = [r for r in replicas if r in alive]
        return left[0] if left and args["election"] == "UNCLEAN" else NOBODY

    def last_known(self, args: Line, leader: int, new_epoch: bool, once: Collection[int]) -> list[int]:
        """Who led before nobody did, until there is a leader again; or, where that one is not elected, all that were
        once eligible. It may be nobody (-1): where a partition without a leader gets other replicas."""
        p = args["partition"]
        if not args["useLastKnownLeaderInBalancedRecovery"]:
            return sorted(once) if args["elrEnabled"] else []
        if not (args["elrEnabled"] and new_epoch):
            return list(p["lastKnownElr"])
        return (p["lastKnownElr"] or [p["leader"]]) if leader == NOBODY else []

    def changed(self, args: Line) -> Line | None:
        """The partition behind a change; None if there is none."""
        p, elr = args["partition"], args["elrEnabled"]
        isr, replicas, adding, removing = (
            p[name] if args[target] is None else args[target]
            for name, target in (
                ("isr", "targetIsr"), ("replicas", "targetReplicas"),
                ("adding", "targetAdding"), ("removing", "targetRemoving"),
            )
        )  # fmt: skip
        done = self.completed(replicas, isr, adding, removing)
        if done is not None:
            (replicas, isr), adding, removing = done, [], []
        least, unclean = args["minIsr"], args["uncleanShutdownReplicas"] or ()
        eligible = self.eligible(p, isr, least, unclean) if elr else {*p["elr"]}
        once = self.once_eligible(p, isr, least, eligible)
        able = isr or eligible
        leader = self.elected(args["election"], p["leader"], replicas, able, args["acceptableLeaders"])
        loses = leader == NOBODY and (leader := self.last_resort(args, replicas, isr, eligible)) != NOBODY
        recovery = p["leaderRecoveryState"]
        if leader != p["leader"] and (loses or leader in eligible):
            isr, eligible = [leader], eligible - {leader}
            if loses:
                eligible, once, recovery = set(), set(), "RECOVERING"
        if not isr and not elr:
            isr = p["isr"]
        if args["targetLeaderRecoveryState"] not in (None, p["leaderRecoveryState"]):
            recovery = args["targetLeaderRecoveryState"]
        epoch = leader != p["leader"] or not {*p["replicas"]} <= {*replicas}
        after = {
            "replicas": replicas, "isr": isr, "elr": sorted(eligible) if elr else [],
            "lastKnownElr": self.last_known(args, leader, epoch, once), "adding": adding, "removing": removing,
            "leader": leader, "leaderRecoveryState": recovery,
        }  # fmt: skip
        if all(after[name] == p[name] for name in after):
            return None
        return {**after, "leaderEpoch": p["leaderEpoch"] + epoch, "partitionEpoch": p["partitionEpoch"] + 1}

    def reassigned(self, current: Sequence[int], target: Sequence[int], isr: Sequence[int]) -> Line:
        """KIP-455: what is asked for comes first, and what is to go behind it."""
        adding, removing = sorted({*target} - {*current}), sorted({*current} - {*target})
        replicas = [*target, *removing]
        done = self.completed(replicas, isr, adding, removing)
        return {
            "removing": removing,
            "adding": adding,
            "replicas": replicas,
            "inProgress": bool(adding or removing),
            "originalReplicas": [r for r in replicas if r not in adding],
            "completed": None if done is None else {"replicas": done[0], "isr": done[1]},
        }


def judged(line: Line) -> bool:
    return bool(line.get("error", {}).get("message") != LEFT_OUT)


def accepts(rules: Rules, line: Line) -> bool:
    args = line["args"]
    if "error" in line:
        return False
    if line["op"] == "reassign":
        expected: Any = rules.reassigned(args["current"], args["target"], args["thenTargetIsr"])
        return bool(line["result"] == expected)
    after = rules.changed(args)
    if after is None or line["result"] is None:
        return after is None and line["result"] is None
    return bool({AS_SHOWN.get(k, k): v for k, v in after.items()} == {**SHOWN, **line["result"]["merged"]})


def others(value: Any) -> list[Any]:
    match value:
        case list():
            return [[*value, 9], value[1:], value[::-1]]
        case bool():
            return [not value]
        case int():
            return [value + 1]
        case str():
            return [{"RECOVERED": "RECOVERING"}.get(value, "RECOVERED")]
    return [{"replicas": [], "isr": []} if value is None else None]


def altered(line: Line) -> Iterator[Line]:
    """Each value of the partition behind the change is another one, or there is no change."""
    if line["result"] is None:
        p = {AS_SHOWN.get(k, k): v for k, v in line["args"]["partition"].items()}
        yield {**line, "result": {"merged": {**p, "partitionEpoch": p["partitionEpoch"] + 1}}}
        return
    yield {**line, "result": None}
    whole = line["op"] == "reassign"
    shown = line["result"] if whole else {**SHOWN, **line["result"]["merged"]}
    for name, value in shown.items():
        for other in others(value):
            if other != value:
                result = {**shown, name: other}
                yield {**line, "result": result if whole else {"merged": result}}


def test_the_recording_is_accepted() -> None:
    kept = [line for line in LINES if judged(line)]
    assert Counter(line["op"] for line in kept) == {"buildPartitionChange": 273, "reassign": 79}
    assert [line["i"] for line in kept if not accepts(Rules(), line)] == []


def test_altered_copies_are_rejected() -> None:
    copies = [copy for line in LINES if judged(line) for copy in altered(line)]
    assert len(copies) > 4_000
    assert [c for c in copies if accepts(Rules(), c)] == []


class ElectsTheDead(Rules):
    """RPN-1: whoever is in sync."""

    def elected(self, election: str, leader: int, replicas: Any, able: Any, alive: Any) -> int:
        return super().elected(election, leader, replicas, able, range(10))


class ElectsAnyEligible(Rules):
    """RPN-24: also while somebody is in sync."""

    def elected(self, election: str, leader: int, replicas: Any, able: Any, alive: Any) -> int:
        found = super().elected(election, leader, replicas, able, alive)
        return found if found != NOBODY else super().elected(election, leader, replicas, range(10), alive)


class StaysEligible(Rules):
    """RPN-22: also where enough are in sync."""

    def eligible(self, partition: Line, isr: Any, least: int, unclean: Any) -> set[int]:
        return super().eligible(partition, isr, 100, unclean)


class KeepsTheUnclean(Rules):
    """RPN-23: as an eligible replica."""

    def eligible(self, partition: Line, isr: Any, least: int, unclean: Any) -> set[int]:
        return super().eligible(partition, isr, least, ())


class ForgetsTheLast(Rules):
    """RPN-24: nobody notes who led last."""

    def last_known(self, *args: Any) -> list[int]:
        return []


class NeverUnclean(Rules):
    """RPN-17."""

    def last_resort(self, args: Line, replicas: Any, isr: Any, eligible: Any) -> int:
        return super().last_resort({**args, "election": "ONLINE"}, replicas, isr, eligible)


class WaitsForAll(Rules):
    """KIP-455: for all that stay, always."""

    def completed(self, replicas: Any, isr: Any, adding: Any, removing: Any) -> Any:
        found = super().completed(replicas, isr, adding, removing)
        return found if found is not None and {*found[0]} <= {*found[1]} else None


class WaitsForTheAdded(Rules):
    """KIP-455: for them alone, also where fewer replicas are left."""

    def completed(self, replicas: Any, isr: Any, adding: Any, removing: Any) -> Any:
        stay, in_sync = ([r for r in of if r not in removing] for of in (replicas, isr))
        return (stay, in_sync) if (adding or removing) and in_sync and {*adding} <= {*in_sync} else None


FAULTS = (
    ElectsTheDead, ElectsAnyEligible, StaysEligible, KeepsTheUnclean, ForgetsTheLast, NeverUnclean,
    WaitsForAll, WaitsForTheAdded,
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_another_rule_is_rejected(fault: type[Rules]) -> None:
    assert not all(accepts(fault(), line) for line in LINES if judged(line))
