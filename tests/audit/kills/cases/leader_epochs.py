"""Of leader epochs: those of the batches, the checkpoint's, and each beside the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.audit.kills.around import AWAY
from tests.audit.kills.write import Case, b, cases, entries, folder, one, part, seg

Entries = Sequence[tuple[int, int]]


def log(epochs: str, file: Entries | bytes | None, start: int = 0, **of: Any) -> Case:
    """A segment of batches of one record, of these epochs, from an offset on, beside these entries. `-` is an epoch of
    -1, `~` of -2, `x` a damaged batch, `o` one of an old format."""
    return one(seg(start, *rows(epochs, start)), epochs=file, **of)


def rows(epochs: str, start: int) -> list[dict[str, int]]:
    special = {"-": {"epoch": -1}, "~": {"epoch": -2}, "x": {"problem": 3, "epoch": 9}, "o": {"magic": 1, "epoch": 0}}
    return [b(start + i, **(special[c] if c in special else {"epoch": int(c)})) for i, c in enumerate(epochs)]


def raw(text: str, **of: Any) -> Case:
    return log("0011", text.encode(), **of)


def wide(*of: tuple[int, int, int], file: Entries | None, **more: Any) -> Case:
    """Batches: first offset, last offset, epoch."""
    return one(seg(0, *(b(x, y, epoch=e) for x, y, e in of)), epochs=file, **more)


GOOD = [(0, 0), (1, 2), (2, 4)]
LOGS = {
    "rising": "001122", "one batch of another epoch": "001012", "two batches of another epoch": "0010012",
    "falling at the end": "00112201", "a first batch of a higher epoch": "201122", "an unknown epoch": "001422",
    "an unknown epoch of two batches": "0014422", "no epoch": "----", "no epoch, and then some": "--1122",
    "some, and then no epoch": "0011--22", "an epoch below -1": "00~122", "two epochs below -1": "00~1~2",
    "only epoch 0": "000000", "only epoch 2": "222222", "epoch 0, then 2": "002222", "falling twice": "012012",
    "falling all the way": "222111000", "equal runs": "0101", "damage": "00x122", "damage between": "00x1x2x2",
    "old batches first": "oo0122", "old batches last": "0012oo", "old batches between": "00oo22",
    "old and odd": "20o122",
}  # fmt: skip
FILES: dict[str, Entries | None] = {
    "as they are": GOOD, "no file": None, "no entry": [], "the first missing": GOOD[1:],
    "the second missing": [GOOD[0], GOOD[2]],
    "the last missing": GOOD[:2], "the second one early": [(0, 0), (1, 1), (2, 4)],
    "the second one late": [(0, 0), (1, 3), (2, 4)], "the first late": [(0, 1), (1, 2), (2, 4)],
    "one beyond the end": [*GOOD, (3, 9)], "two beyond the end": [*GOOD, (3, 9), (4, 12)],
    "one at the end": [*GOOD, (3, 6)],
    "one too many": [(0, 0), (1, 2), (2, 3), (3, 4)], "equal offsets": [(0, 0), (1, 2), (2, 2)],
}  # fmt: skip
TEXTS = {
    "version 1": "1\n1\n0 0\n", "no number": "0\n1\n0 x\n", "one entry too few": "0\n2\n0 0\n", "empty": "",
    "a negative epoch": "0\n2\n0 0\n-1 2\n", "epoch 0 alone": "0\n1\n0 0\n", "a negative offset": "0\n2\n0 -1\n1 2\n",
    "two negative ones": "0\n3\n0 0\n-1 2\n-2 3\n", "swapped": "0\n2\n1 2\n0 0\n",
    "an epoch twice": "0\n3\n0 0\n1 2\n1 3\n",
    "an epoch twice at one offset": "0\n3\n0 0\n1 2\n1 2\n", "an offset twice": "0\n2\n0 0\n1 0\n",
    "an epoch falls": "0\n3\n0 0\n2 2\n1 4\n", "an offset falls": "0\n3\n0 0\n1 4\n2 2\n",
    "an offset falls by one": "0\n3\n0 0\n1 3\n2 2\n", "an epoch twice, the offset falls": "0\n3\n0 0\n1 4\n1 2\n",
    "two faults": "0\n4\n1 2\n0 0\n3 5\n2 4\n", "swapped, and an epoch twice": "0\n3\n1 2\n0 0\n1 3\n",
    "swapped, offsets equal": "0\n2\n1 0\n0 0\n", "both fall": "0\n3\n1 4\n0 6\n2 2\n",
}  # fmt: skip


def checkpointed(name: str, *ends: int, other: str = "quorum-state", first: int = 4) -> Case:
    """The metadata log, whose first entry stands behind its first batches, with snapshots that end at these offsets."""
    files = {f"{end:020}-{1:010}.checkpoint": b"" for end in ends} | {other: b""}
    return log("112222", [(2, first)], name=name, files=files)


CASES = {
    **{
        f"{batches}, {of_file}": (lambda x=x, f=f: log(x, f, chunk=99))
        for batches, x in LOGS.items()
        for of_file, f in FILES.items()
    },
    **{
        f"{batches}, {of_file}, in chunks": (lambda x=x, f=f: log(x, f))
        for batches, x in LOGS.items()
        for of_file, f in FILES.items()
        if of_file in ("as they are", "the second one early")
    },
    **{f"text: {name}": (lambda x=x: raw(x)) for name, x in TEXTS.items()},
    **{
        f"text, killed: {name}": (lambda x=x: raw(x, clean=False))
        for name, x in TEXTS.items()
        if name in ("swapped", "no number")
    },
    **{
        f"{name}, {around}": (lambda x=x, f=f, of=of: log(x, f, **of))
        for name, x, f in (
            ("as it is", "001122", GOOD),
            ("no file", "001122", None),
            ("the first late", "001122", [(0, 1), (1, 2), (2, 4)]),
            ("beyond the end", "001122", [*GOOD, (3, 9)]),
            ("an idle entry", "001122", [(0, 0), (1, 2), (2, 3), (3, 4)]),
            ("an idle entry behind", "000022", [(0, 0), (1, 2), (2, 4)]),
            ("no entry", "001122", []),
            ("another epoch", "001422", GOOD),
        )
        for around, of in {
            "killed": {"clean": False},
            "alone": {"alone": True},
            "log start 1": {"starts": {"t-0": 1}},
            "log start 2": {"starts": {"t-0": 2}},
            "log start 3": {"starts": {"t-0": 3}},
            "log start 5": {"starts": {"t-0": 5}},
            "killed, log start 1": {"clean": False, "starts": {"t-0": 1}},
            "deleted": {"name": f"t-0.{AWAY}-delete"},
            "stray": {"name": f"t-0.{AWAY}-stray"},
            "an unreadable log start": {"starts": b"x"},
            "alone, with partition.metadata": {"alone": True, "files": {"partition.metadata": b""}},
            "alone, a segment": {"only": [f"d/t-0/{0:020}.log"]},
        }.items()
    },
    **{
        f"a batch of several records, entry at {at}, {name}, {'clean' if clean else 'killed, in chunks'}": (
            lambda at=at, x=x, clean=clean: wide(*x, file=[(0, 0), (1, at)], clean=clean, chunk=99 if clean else 2)
        )
        for at in (1, 2, 3, 4, 5)
        for clean in (True, False)
        for name, x in {
            "of the epoch before": [(0, 1, 0), (2, 4, 0), (5, 6, 1)],
            "of the entry's epoch": [(0, 1, 0), (2, 4, 1), (5, 6, 1)],
            "with no batch behind": [(0, 1, 0), (2, 4, 0), (5, 6, 0)],
        }.items()
    },
    **{
        f"{name}, log start {start}": (lambda x=x, f=f, s=start: wide(*x, file=f, starts={"t-0": s}))
        for start in (2, 3, 4, 5)
        for name, x, f in (
            ("the first batch begins below the start", [(0, 4, 0), (5, 6, 1)], [(0, 3), (1, 5)]),
            ("the first entry stands at a batch's end", [(0, 4, 0), (5, 6, 1)], [(0, 4), (1, 5)]),
            ("an odd batch below the start", [(0, 0, 5), (1, 3, 0), (4, 6, 1)], [(0, 1), (1, 4)]),
        )
    },
    **{
        f"the {name}, snapshots to {ends}": (
            lambda topic=topic, ends=ends, first=first: checkpointed(topic, *ends, first=first)
        )
        for name, topic in {"metadata log": "__cluster_metadata-0", "log of a client": "t-0"}.items()
        for ends, first in (((), 2), ((1,), 2), ((2,), 2), ((3,), 2), ((1, 0), 2), ((2, 0), 2))
    },
    "the metadata log and another file": lambda: log(
        "112222", [(2, 2)], name="__cluster_metadata-0", files={"x.checkpoint": b"", f"{5:020}.tmp": b""}
    ),
    "the metadata log without an entry": lambda: log(
        "112222", [], name="__cluster_metadata-0", files={f"{5:020}-{1:010}.checkpoint": b""}
    ),
    "a wrong base offset": lambda: one(seg(0, b(0), b(9, epoch=1), b(2), b(3, epoch=1)), epochs=[(0, 0), (1, 3)]),
    **{
        f"a base offset of {base} in the place of {at}": (
            lambda base=base, at=at, c=c: one(
                seg(0, *(b(i if i != at else base, i, epoch=(7 if i == at else 0)) for i in range(6))),
                epochs=[(0, 0)],
                chunk=c,
            )
        )
        for base, at in ((0, 1), (1, 1), (2, 1), (4, 5), (5, 5), (6, 5), (9, 3), (-1, 0), (1, 0))
        for c in (2, 9)
    },
    **{
        f"a last offset of {last} in the place of {at}": (
            lambda last=last, at=at: one(
                seg(0, *(b(i, i if i != at else last, epoch=(7 if i == at else 0)) for i in range(6))), epochs=[(0, 0)]
            )
        )
        for last, at in ((1, 0), (0, 0), (3, 2), (9, 3), (4, 3), (6, 5))
    },
    "two segments": lambda: one(seg(0, *rows("001", 0)), seg(3, *rows("1122", 3)), epochs=GOOD),
    "two segments, an odd one first in the second": lambda: one(
        seg(0, *rows("001", 0)), seg(3, *rows("0122", 3)), epochs=GOOD
    ),
    "two segments, the second damaged": lambda: one(
        seg(0, *rows("001", 0)), seg(3, *rows("xx", 3)), epochs=[(0, 0), (1, 2), (2, 9)]
    ),
    "two segments, the second empty": lambda: one(seg(0, *rows("0011", 0)), seg(4), epochs=[(0, 0), (1, 2), (2, 5)]),
    "two segments, the first one cut": lambda: one(
        seg(0, *rows("0011", 0), reason="9 bytes"), seg(4, *rows("22", 4)), epochs=[(0, 0), (1, 2), (2, 4), (3, 9)]
    ),
    "no segment": lambda: cases(folder(part(epochs=[(0, 0), (1, 5)]))),
    "an empty log": lambda: one(seg(5), epochs=[(0, 3), (1, 5), (2, 6)]),
    "an empty chunk": lambda: log("001122", GOOD, chunk=0),
    "a chunk": lambda: log("001422", GOOD, chunk=99),
    "chunks of one": lambda: log("00101422", GOOD, chunk=1),
    "a chunk of damage": lambda: log("00xx1122", [(0, 0), (1, 4), (2, 6)]),
    **{f"{n} epochs below -1": (lambda n=n: log("0" + "~0" * n, [(0, 0)], chunk=2)) for n in (19, 20, 21, 22)},
    "25 epochs below -1 in a chunk": lambda: log("0" + "~" * 25, [(0, 0)], chunk=99),
    **{f"{n} odd runs": (lambda n=n: log("0" + "10" * n + "2", [(0, 0), (2, 2 * n + 1)])) for n in (19, 20, 21, 22)},
    **{
        f"at most {n} runs": (lambda n=n: log("0012301", [(0, 0)], limits={"storage.leader_epochs:MOST_RUNS": n}))
        for n in (1, 2, 3, 4)
    },
    **{
        f"a broker that writes on, {name}": (
            lambda x=x, f=f, g=g, of=of: log(
                x, f, later={"d/t-0/leader-epoch-checkpoint": g if isinstance(g, bytes) else entries(g)}, **of
            )
        )
        for name, x, f, g, of in (
            ("killed", "001122", GOOD[:2], GOOD, {"clean": False}),
            ("stopped", "001122", GOOD[:2], GOOD, {}),
            ("alone", "001122", GOOD[:2], GOOD, {"alone": True}),
            ("an entry within a batch", "001122", GOOD, [(0, 0), (1, 3), (2, 4)], {"clean": False}),
            ("nothing", "001122", [(0, 0), (1, 3), (2, 4)], [(0, 0), (1, 3), (2, 4)], {"clean": False}),
            ("a bad file", "001122", b"x", GOOD, {"clean": False}),
            ("into a bad file", "001122", GOOD, b"x", {"clean": False}),
        )
    },
    **{
        f"an entry at {at} is written meanwhile, within a batch": (
            lambda at=at: wide(
                (0, 1, 0),
                (2, 4, 0),
                (5, 6, 1),
                file=[(0, 0)],
                clean=False,
                later={"d/t-0/leader-epoch-checkpoint": entries([(0, 0), (1, at)])},
            )
        )
        for at in (1, 2, 3, 4, 5, 6)
    },
    **{
        f"at most {n} runs are weighed": (
            lambda n=n: log("0013301", [(0, 0)], limits={"storage.leader_epochs:MOST_WEIGHED": n})
        )
        for n in (2, 3, 4, 5, 6)
    },
    "at most 3 runs are weighed, of those that fall by one": lambda: log(
        "02102", [(0, 0)], limits={"storage.leader_epochs:MOST_WEIGHED": 3}
    ),
    **{f"text, of another log: {name}": (lambda x=x: log("0022", x.encode())) for name, x in TEXTS.items()},
    "text: an epoch twice, the offset falls by one": lambda: raw("0\n3\n0 0\n1 3\n1 2\n"),
    "an odd batch before a chunk of damage": lambda: log("03xx11", [(0, 0), (1, 4)]),
    "an epoch of -1 beside an odd one of 0": lambda: log("11-0", [(1, 0)], chunk=99),
    "an epoch of -1 beside an odd one of 2": lambda: log("12-1", [(1, 0)], chunk=99),
    "epochs of -1, and one below": lambda: log(
        "0---~0", [(0, 0)], chunk=1, limits={"storage.leader_epochs:MOST_FINDINGS": 2}
    ),
    "a segment alone, with partition.metadata": lambda: log(
        "001122", None, alone=True, only=[f"d/t-0/{0:020}.log"], files={"partition.metadata": b""}
    ),
    "at most 3 runs are weighed, two of one epoch": lambda: log(
        "00120", [(0, 0), (1, 1)], limits={"storage.leader_epochs:MOST_WEIGHED": 3}
    ),
    "epochs fall, and a file that cannot be compared": lambda: log("110000", b"0\n3\n1 0\n0 0\n1 3\n"),
    **{
        f"a directory in the place of the file{', alone' * alone}{', and epochs that fall' * (epochs == '10')}": (
            lambda alone=alone, epochs=epochs: log(epochs, None, folders=("leader-epoch-checkpoint",), alone=alone)
        )
        for alone in (False, True)
        for epochs in ("01", "10")
    },
}
