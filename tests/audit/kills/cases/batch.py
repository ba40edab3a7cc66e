"""Of batches one by one, and of a segment's end."""

from __future__ import annotations

from kafkaspec.audit.check import TopicConfig
from kafkaspec.impl.common.scan import Problem
from tests.audit.kills.write import Case, Row, Seg, b, cases, folder, one, part, seg

REASON = "9 bytes"
TWO = (b(7), b(8, 9))


def bad(base: int, problem: Problem, **of: int) -> Row:
    return b(base, base + 1, problem=int(problem), **{"attributes": 1, **of})


def each(problem: Problem, **of: int) -> Case:
    """A batch with a problem between two that have none."""
    return one(seg(7, b(7), bad(8, problem, **of), b(10)), clean=False)


def logs(first: Seg, second: Seg, **of: object) -> Case:
    return one(first, second, **of)


def torn(active: bool, torn: bool, clean: bool, alone: bool = False, empty: bool = False) -> Case:
    """A cut batch behind the last one of a segment."""
    first = seg(7, *TWO, reason="" if active else REASON, torn=torn, size=209)
    rows = () if empty else (b(10), b(11))
    more = {"size": 209, "reason": REASON, "torn": torn} if active else {}
    return one(first, seg(10, *rows, **more), clean=clean, alone=alone)


CASES = {
    "batches of good counts": lambda: one(seg(7, *TWO), policy="delete"),
    "one record too few": lambda: one(seg(7, b(7), b(8, 9, count=1)), policy="delete"),
    "one record too many": lambda: one(seg(7, b(7), b(8, 9, count=3)), policy="delete"),
    "a count that is wrong, nothing known of the topic": lambda: one(seg(7, b(7), b(8, 9, count=1))),
    "a count that is wrong in the metadata log": lambda: one(
        seg(7, b(7), b(8, 9, count=1)), name="__cluster_metadata-0"
    ),
    "a count that is wrong, compacted": lambda: one(seg(7, b(7), b(8, 9, count=1)), policy="compact"),
    "a damaged batch with a wrong count": lambda: one(seg(7, b(7), b(8, 9, count=1, problem=3)), policy="delete"),
    "an old batch with a wrong count": lambda: one(seg(7, b(7), b(8, 9, count=-1, magic=1)), policy="delete"),
    "an old batch": lambda: one(seg(7, b(7, magic=1, count=-1), b(8, magic=0, count=-1), b(9, magic=1, count=-1))),
    "an old batch later": lambda: one(seg(7, b(7), b(8), b(9), b(10, magic=1, count=-1)), seg(11, b(11, magic=1))),
    "an old batch that is damaged": lambda: one(seg(7, b(7), b(8, magic=1, problem=3)), clean=False),
    "old and damaged beside old": lambda: one(seg(7, b(7, magic=1, problem=3), b(8, magic=1)), clean=False),
    **{f"a problem: {x.name.lower()}": (lambda x=x: each(x)) for x in Problem if x},
    "control, not cut": lambda: one(seg(7, b(7), bad(8, Problem.CONTROL)), clean=True),
    "magic 1": lambda: each(Problem.MAGIC, magic=1),
    "magic 3": lambda: each(Problem.MAGIC, magic=3),
    "magic 2": lambda: each(Problem.MAGIC, magic=2),
    "magic 3, and a wrong CRC": lambda: each(Problem.CRC, magic=3),
    "a negative base offset": lambda: one(seg(7, b(7), b(-5, -4, problem=3), b(10)), clean=False),
    "a damaged batch that says another offset": lambda: one(seg(7, b(7), b(70, problem=3), b(9)), clean=False),
    "a damaged batch that says offset 0": lambda: one(seg(0, b(0), b(0, problem=3), b(2)), clean=False),
    "a base offset of 0": lambda: one(seg(0, b(0, problem=3), b(1)), clean=False),
    "a base offset of -1": lambda: one(seg(0, b(-1, problem=3), b(1)), clean=False),
    "the first batch of all is damaged": lambda: one(
        seg(7, b(-7, problem=3), b(-8, problem=3), b(-9, problem=3), b(10)), clean=False
    ),
    "the first batch of the second segment is damaged": lambda: one(
        seg(7, b(7), b(8)), seg(20, b(-1, problem=3), b(21)), clean=False
    ),
    "damage in the second chunk": lambda: one(
        seg(7, b(7), b(8, 11), b(-1, problem=3), b(13), b(-1, problem=1), b(-1, problem=2), b(-1, problem=3)),
        clean=False,
    ),
    "damage before and after good ones": lambda: one(
        seg(7, b(7), b(-1, problem=3), b(9, 12), b(-1, problem=3), b(-1, problem=3), b(20)), clean=False, chunk=6
    ),
    "a damaged last batch of each segment": lambda: one(
        seg(7, b(7), b(-1, problem=3)), seg(9, b(9), b(-1, problem=3)), clean=False
    ),
    "nothing but damage": lambda: one(seg(7, b(-1, problem=3), b(-1, problem=3), b(-1, problem=3)), clean=False),
    **{
        f"{n} damaged batches, of which 2 are kept": (
            lambda n=n: one(
                seg(7, b(7), *(b(-1, problem=3) for _ in range(n)), b(99)),
                clean=False,
                limits={"storage.batch:MOST_KEPT": 2},
            )
        )
        for n in (2, 3, 4)
    },
    **{
        f"a cut {'active' if active else 'closed'} segment, {'torn' if how else 'not torn'}, "
        f"{'clean' if clean else 'unclean'}": (lambda a=active, h=how, c=clean: torn(a, h, c))
        for active in (True, False)
        for how in (True, False)
        for clean in (True, False)
    },
    "a cut segment alone": lambda: torn(True, True, True, alone=True),
    "a cut closed segment alone": lambda: torn(False, True, True, alone=True),
    "a cut segment, not torn, alone": lambda: torn(True, False, True, alone=True),
    "a cut segment that has no batch": lambda: torn(True, True, False, empty=True),
    "a cut segment that has no batch, not torn": lambda: torn(True, False, False, empty=True),
    "a closed segment without a batch is cut": lambda: one(seg(7, reason=REASON, size=9), seg(8, b(8)), clean=False),
    "two partitions": lambda: cases(
        folder(part(seg(7, b(7), b(8, 9, count=1))), part(seg(7, b(7), b(8, 9, count=1)), name="u-0")),
        config={"u": TopicConfig(cleanup_policy="delete")},
    ),
}
