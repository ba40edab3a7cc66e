"""Of segments as such."""

from __future__ import annotations

from tests.audit.kills.write import b, one, seg

INT_MAX = 2**31 - 1
FAR = 7 + INT_MAX

CASES = {
    "batches from the base on": lambda: one(seg(7, b(7), b(8, 9))),
    "a batch one below the base": lambda: one(seg(7, b(6), b(7))),
    "two below the base": lambda: one(seg(7, b(7), b(8), b(5), b(6), b(9), b(4))),
    "a damaged one below the base": lambda: one(seg(7, b(7), b(6, problem=3), b(8))),
    "an old one below the base": lambda: one(seg(7, b(6, magic=1, count=-1), b(7, magic=0, count=-1))),
    "below the base in both segments": lambda: one(seg(7, b(6), b(7)), seg(9, b(8), b(9))),
    "as far from the base as can be": lambda: one(seg(7, b(7), b(8, FAR, count=1))),
    "one farther": lambda: one(seg(7, b(7), b(8, FAR + 1, count=1))),
    "a damaged one farther": lambda: one(seg(7, b(7), b(8, FAR + 1, problem=3))),
    "an old one farther": lambda: one(seg(7, b(8, FAR + 1, magic=1, count=-1))),
    "several farther": lambda: one(seg(7, b(FAR - 1), b(FAR), b(FAR + 1), b(FAR + 2), b(FAR + 3), b(FAR + 4))),
    "farther in both segments": lambda: one(seg(7, b(FAR + 1)), seg(FAR + 9, b(FAR + 9), b(FAR + 9 + INT_MAX + 1))),
    "as large as can be": lambda: one(seg(7, b(7), size=INT_MAX)),
    "one byte larger": lambda: one(seg(7, b(7), size=INT_MAX + 1)),
}
