"""Counters that only go up: as many reachable states as one likes, of any width, in a number known beforehand.

Each of K counters goes from 0 to `N` in a field as wide as `WIDE` needs. Every combination is reachable, so there are
(N + 1)^K states, K * N * (N + 1)^(K - 1) transitions and K * N + 1 levels.

python bench/counters.py 3 999 --bits 21           1,000,000,000 states of 63 bits
python bench/counters.py 4 107 --bits 19           136,048,896 states of 76 bits, in two words
"""

from __future__ import annotations

import argparse
import json
from typing import Annotated

from kafkaspec.explore.engine import explore
from kafkaspec.explore.memory import resident_mb
from kafkaspec.language import Model, Range, Size, action, load, require

N = Size("N")
WIDE = Size("WIDE")


class Counters3(Model):
    a: Annotated[int, Range(0, WIDE)]
    b: Annotated[int, Range(0, WIDE)]
    c: Annotated[int, Range(0, WIDE)]

    @action()
    def up_a(s) -> None:
        require(s.a < N)
        s.next.a = s.a + 1

    @action()
    def up_b(s) -> None:
        require(s.b < N)
        s.next.b = s.b + 1

    @action()
    def up_c(s) -> None:
        require(s.c < N)
        s.next.c = s.c + 1


class Counters4(Counters3):
    d: Annotated[int, Range(0, WIDE)]

    @action()
    def up_d(s) -> None:
        require(s.d < N)
        s.next.d = s.d + 1


COUNTERS = {3: Counters3, 4: Counters4}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counters", type=int, choices=COUNTERS)
    parser.add_argument("most", type=int, metavar="N")
    parser.add_argument("--bits", type=int, required=True, help="of each counter's field")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--max-memory", type=int, metavar="MB")
    options = parser.parse_args()
    count, most = options.counters, options.most
    model = load(COUNTERS[count])
    base_mb = resident_mb()
    e = explore(
        model,
        {"N": most, "WIDE": (1 << options.bits) - 1},
        threads=options.threads,
        deadlock=True,
        max_memory_mb=options.max_memory,
    )
    expected = ((most + 1) ** count, count * most * (most + 1) ** (count - 1) + 1, count * most + 1)
    assert e.outcome == "limit" or (e.distinct, e.generated, e.depth) == expected, f"{e}, expected {expected}"
    print(
        json.dumps(
            {
                "distinct": e.distinct,
                "generated": e.generated,
                "depth": e.depth,
                "outcome": e.outcome,
                "limit": e.limit,
                "seconds": e.seconds,
                "compile_seconds": e.compile_seconds,
                "base_mb": base_mb,
                "peak_mb": e.peak_mb,
                "bits": e.bits,
                "words": e.words,
                "bytes_per_state": (e.peak_mb - base_mb) * 2**20 / e.distinct,
            }
        )
    )


if __name__ == "__main__":
    main()
