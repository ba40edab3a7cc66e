"""A target for `kafkaspec judge`, to begin from: a leader epoch cache, asked and answered in lines of JSON.

    kafkaspec judge --target "python3 targets/examples/python/leader_epochs.py" leader_epochs

Put your own class in the place of `LeaderEpochs`; `serve` stays as it is. See docs/judge.md and docs/protocol.md.
"""

import json
import os
import sys
import time


class Refused(Exception):
    """The system says no."""


class LeaderEpochs:
    """Where each leader epoch began in a log: pairs [epoch, start offset] that rise in both."""

    def __init__(self, **configuration):
        """A new history. `configuration`: the arguments of `init`; this class has no use for them."""
        self.entries = []

    def observe(self):
        """What the judge compares after a call. `file` and `scheduled` are left out: nothing is written here."""
        return {"entries": self.entries, "latestEpoch": self.entries[-1][0] if self.entries else None}

    def assign(self, epoch, startOffset):
        if epoch < 0 or startOffset < 0:
            raise Refused
        if self.entries and self.entries[-1][0] == epoch and self.entries[-1][1] <= startOffset:
            return
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= startOffset):
            self.entries.pop()
        self.entries.append([epoch, startOffset])

    def truncate_from_end(self, endOffset):
        if endOffset >= 0:
            self.entries = [e for e in self.entries if e[1] < endOffset]

    def truncate_from_start(self, startOffset):
        below = [e for e in self.entries if e[1] <= startOffset]
        if below:
            self.entries = [[below[-1][0], startOffset], *self.entries[len(below) :]]

    def clear(self):
        self.entries = []

    def end_offset_for(self, requestedEpoch, logEndOffset):
        if requestedEpoch == -1 or not self.entries or requestedEpoch > self.entries[-1][0]:
            return {"epoch": -1, "endOffset": -1}
        if requestedEpoch == self.entries[-1][0]:
            return {"epoch": requestedEpoch, "endOffset": logEndOffset}
        known = [e for e in self.entries if e[0] <= requestedEpoch]
        return {"epoch": known[-1][0] if known else requestedEpoch, "endOffset": self.entries[len(known)][1]}

    def epoch_for_offset(self, offset):
        return next((e[0] for e in reversed(self.entries) if e[1] <= offset), None)

    OPERATIONS = {
        "assign": assign,
        "truncateFromEndAsyncFlush": truncate_from_end,
        "truncateFromStartAsyncFlush": truncate_from_start,
        "clearAndFlush": clear,
        "endOffsetFor": end_offset_for,
        "epochForOffset": epoch_for_offset,
    }


def serve(name, version, subsystems):
    """Answer the judge. `subsystems`: name -> class with `OPERATIONS` and `observe`. Ends with the input."""
    current, encode, rest = None, json.JSONEncoder(separators=(",", ":")).encode, b""

    def answer(i, op, args=None, subsystem=None):
        nonlocal current
        if op == "hello":
            offered = {s: {"operations": list(c.OPERATIONS)} for s, c in subsystems.items()}
            return {"i": i, "result": {"protocol": 1, "name": name, "version": version, "subsystems": offered}}
        if op == "init" and subsystem in subsystems:
            current = subsystems[subsystem](**args or {})
            return {"i": i, "result": None}
        if op == "observe":
            return {"i": i, "state": current.observe()}
        if op == "init" or op not in current.OPERATIONS:
            return {"i": i, "unknown": subsystem or op}
        try:
            return {"i": i, "result": current.OPERATIONS[op](current, **args or {})}
        except Refused as e:
            return {"i": i, "error": {"message": str(e)} if e.args else {}}

    while waiting := os.read(sys.stdin.fileno(), 1 << 16):  # as many lines as there are
        (*lines, rest), began = (rest + waiting).split(b"\n"), time.monotonic()
        for line in lines:  # all are answered, then written, but no answer is held back for longer than a second
            print(encode(answer(**json.loads(line))), flush=line is lines[-1] or time.monotonic() > began + 1)


if __name__ == "__main__":
    serve("Leader epochs in Python", "1", {"leader_epochs": LeaderEpochs})
