"""The faults of a module, tried on the directories that reach them.

A fault is noticed if what the audit says of one directory changes; that a rule fails there, or does not end, it says.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from kafkaspec.audit.engine import Checks
from tests.audit.kills.faults import AROUND, Fault, Rules
from tests.audit.kills.harness import Bench, Made, Outcome, group, groups

GROUPS: Final = {
    "audit/check": ("batch", "log_loader", "meta_properties"),
    "audit/context": ("context", "metadata"),
    "audit/metadata": ("metadata",),
    "common/evidence": ("leader_epochs", "replicas", "compaction"),
    "common/index_evidence": ("offset_index", "time_index"),
    "storage/leader_epochs": ("leader_epochs", "replicas"),
    "storage/replicas": ("replicas", "metadata_image"),
}
"""Whose directories are tried for a module; else its own."""
USED_BY: Final = {
    "common/evidence": ("storage/leader_epochs", "storage/replicas", "management/compaction"),
    "common/findings": (),
    "common/index_evidence": ("storage/offset_index", "storage/time_index"),
    "storage/log_loader": ("storage/log_loader", "storage/batch", "management/checkpoints"),
    "storage/leader_epochs": ("storage/leader_epochs", "storage/replicas"),
    "storage/replicas": ("storage/replicas", "storage/leader_epochs", "controller/metadata_image"),
    "controller/metadata_image": ("controller/metadata_image", "storage/replicas", "storage/leader_epochs"),
    "management/checkpoints": ("management/checkpoints", "storage/log_loader"),
}
"""The modules whose checks tell of a fault in a module, where these are not its own alone."""
REPORT: Final = "_reached_"
COMPILED: Final = ("line_of", "follow")
"""Functions of the producers' rules that run as machine code, when no fault of them is looked for."""
PRIME: Final = 1_000_003


def library(module: str) -> dict[str, Made]:
    """The directories that are tried for the faults of a module."""
    out: dict[str, Made] = {}
    for name in GROUPS.get(module, (module.rpartition("/")[2],)):
        if name in groups():
            out |= group(name)
    return out


@dataclass
class Trial:
    """The faults of one module, tried on its directories."""

    module: Rules
    bench: Bench
    sound: dict[str, Outcome] = field(default_factory=dict)
    reached: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    """the cases that reach a place"""
    shown: Counter[str] = field(default_factory=Counter)
    """how many faults each case has shown"""

    def begin(self, reached: bool = True, checks: Checks | None = None) -> None:
        """What the sound rules say of each case, by these checks or those that tell of the module, and which places
        each case reaches."""
        self._watch()
        self.bench.around = self.module.name in ("audit/context", "audit/metadata")
        if checks is not None:
            self.bench.checks = checks
        else:
            name = self.module.name
            self.bench.look_with(None if name in AROUND else USED_BY.get(name, (name,)))
        here: set[tuple[str, int]] = set()

        def report(function: str, n: int, value: Any) -> Any:
            here.add((function, n))
            return value

        for name in self.bench.made:
            self.sound[name] = self.bench.outcome(name)
            said = self.sound[name][0]
            assert not said.startswith(("does not end", "fails")), name
        if not reached:
            return
        codes = [x for f in self.module.functions if self.module.sites(f) for x in self.module.reporting(f, REPORT)]
        before = [(f, f.__code__) for f, _ in codes]
        self.bench.put(self.module.module, **{REPORT: report})
        try:
            for f, code in codes:
                f.__code__ = code
            for name in self.bench.made:
                here.clear()
                assert self.bench.outcome(name) == self.sound[name], f"{name}: differs when it is watched"
                for place in here:
                    self.reached.setdefault(place, []).append(name)
        finally:
            for f, code in before:
                f.__code__ = code

    def _watch(self) -> None:
        """What a module does beside what it says is counted anew in each directory. Producers: the compiled functions
        run as they stand, and how many batches they leave to the rules is counted, as a loop that leaves all of them is
        right and of no use. Compaction: the keys that are held at once, as the answer is right if all are."""
        bench, space, count = self.bench, vars(self.module.module), [0]
        if self.module.name == "storage/producer_state":
            code = SimpleNamespace(functions={name: space[name] for name in COMPILED})
            bench.put(self.module.module, load=_load, store=_store, _code=lambda: code)
            (row,) = self.module.objects["ProducerCheck._row"]

            def counting(check: Any, of: Any) -> Any:
                count[0] += 1
                return row(check, of)

            bench.put(space["ProducerCheck"], _row=counting)
            bench.counted = count
        elif self.module.name == "management/compaction":
            (add,) = self.module.objects["Keys.add"]

            def adding(keys: Any, rows: Any) -> None:
                add(keys, rows)
                count[0] = count[0] * 31 % PRIME + keys.count

            bench.put(space["Keys"], add=adding)
            bench.counted = count

    def noticed(self, fault: Fault, first: str | None = None) -> str | None:
        """A case that shows a fault, of those that are tried first the ones that showed most; None if none does."""
        names = self.reached.get((fault.function, fault.place), [])
        if fault.function not in self.module.functions:
            names = list(self.bench.made)
        names = sorted(names, key=lambda n: (n != first, -self.shown[n]))
        with self.module.changed(fault):
            found = next((n for n in names if self.bench.outcome(n) != self.sound[n]), None)
        if found is not None:
            self.shown[found] += 1
        return found

    def shows(self, fault: Fault, case: str) -> bool:
        """Whether that case shows the fault."""
        with self.module.changed(fault):
            return self.bench.outcome(case) != self.sound[case]


def _load(address: int, index: int = 0) -> int:
    return ctypes.c_int64.from_address(address + 8 * index).value


def _store(address: int, index: int, value: int) -> None:
    ctypes.c_int64.from_address(address + 8 * index).value = value
