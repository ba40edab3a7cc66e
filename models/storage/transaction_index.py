"""Aborted transactions as they reach the transaction index: who has a transaction open, and what was stable when.

Why a fetch may stop at the first entry whose last stable offset is beyond it: no later one can begin below that.

What was simplified. A record or marker is one offset, and is appended alone, as by a leader: of several batches in one
append, a follower's, the claims do not hold, since all their transactions count for the first marker. A transaction
begins with its first record (a marker of a producer without one leaves no entry). Nothing is truncated: what a
truncation leaves is a log that can be without it.

Source: Kafka Internals, ch. 03, "TransactionIndex, aborted transactions"; ProducerStateManager.lastStableOffset and
UnifiedLog.append, Kafka 4.3.0.
"""

from __future__ import annotations

from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Model, Range, Size, Sort, action, define, invariant, lemma, require, step, witness


class Producer(Sort):
    """Anybody who writes with transactions."""


L = Size("L")
"""The highest offset."""
Offset = Annotated[int, Range(0, L)]


class Aborts(Model):
    """`first` is where the transaction began of a producer that is `busy` with one. `aborted` has the offsets of abort
    markers; `began` and `stable` are then the first offset of the transaction, and the last stable offset."""

    busy: set[Producer]
    first: dict[Producer, Offset]
    end: Offset
    aborted: set[Offset]
    began: dict[Offset, Offset]
    stable: dict[Offset, Offset]

    @define
    def next_unstable(s, p: Producer, o: Offset) -> bool:
        """o is the first offset of the other open transactions, or what follows the marker if there are none."""
        return all(q == p or q not in s.busy or o <= s.first[q] for q in Producer) and (
            any(q != p and q in s.busy and s.first[q] == o for q in Producer)
            or (o == s.end + 1 and all(q == p or q not in s.busy for q in Producer))
        )

    @define
    def close(s, p: Producer) -> None:
        s.next.busy = s.busy - {p}
        s.next.first[p] = 0
        s.next.end = s.end + 1

    @action("TXI-12", who="producer")
    def write(s, p: Producer) -> None:
        require(s.end < L)
        if p not in s.busy:
            s.next.busy = s.busy | {p}
            s.next.first[p] = s.end
        s.next.end = s.end + 1

    @action(who="coordinator")
    def commit(s, p: Producer) -> None:
        require(s.end < L, p in s.busy)
        s.close(p)

    @action("TXI-12", who="coordinator")
    def abort(s, p: Producer, o: Offset) -> None:
        require(s.end < L, p in s.busy, s.next_unstable(p, o))
        s.next.aborted = s.aborted | {s.end}
        s.next.began[s.end] = s.first[p]
        s.next.stable[s.end] = o
        s.close(p)

    @invariant("TXI-12")
    def entries_are_in_order(s) -> bool:
        return all(
            n not in s.aborted
            or (
                s.began[n] < n
                and s.stable[n] <= n + 1
                and all(
                    m >= n or m not in s.aborted or (s.stable[m] <= s.stable[n] and s.stable[m] <= s.began[n])
                    for m in range(L + 1)
                )
            )
            for n in range(L + 1)
        )

    @invariant("TXI-4", "TXI-5", "TXI-7")
    def nothing_after_the_stop_overlaps(s, upper_bound: Offset) -> bool:
        """Once an entry's last stable offset is at or above the bound, no later entry begins below it."""
        return all(
            m not in s.aborted or s.stable[m] < upper_bound or n not in s.aborted or n <= m or s.began[n] >= upper_bound
            for m in range(L + 1)
            for n in range(L + 1)
        )

    @invariant("TXI-4", "TXI-7")
    def what_is_open_is_not_stable(s, p: Producer) -> bool:
        """So it will not be left out either, whenever it is aborted."""
        return p not in s.busy or (
            s.first[p] < s.end and all(m not in s.aborted or s.stable[m] <= s.first[p] for m in range(L + 1))
        )

    @step()
    def every_batch_is_of_a_transaction(s) -> bool:
        """And takes an offset, markers too."""
        return s.next.end == s.end + 1 and any(p in s.busy or p in s.next.busy for p in Producer)

    @step("TXI-12")
    def all_is_stable_when_none_is_open(s) -> bool:
        """Up to what follows the marker."""
        alone = all(p not in s.next.busy for p in Producer)
        return s.end in s.aborted or s.end not in s.next.aborted or (s.next.stable[s.end] == s.end + 1) == alone

    @lemma()
    def who_is_not_busy_began_nowhere(s, p: Producer) -> bool:
        return p in s.busy or s.first[p] == 0

    @lemma("TXI-12")
    def entries_lie_below_the_end(s) -> bool:
        return all(n not in s.aborted or (n < s.end and s.stable[n] <= n + 1) for n in range(L + 1))

    @witness
    def an_older_one_is_still_open(s) -> bool:
        return any(n in s.aborted and s.stable[n] < s.began[n] for n in range(L + 1))

    @witness
    def two_overlap(s) -> bool:
        return any(
            m in s.aborted and n in s.aborted and m < n and s.began[n] < m for m in range(L + 1) for n in range(L + 1)
        )


MODELS = [
    Expectation(
        Aborts,
        sizes={"Producer": 3, "L": 6},
        distinct=2308,
        generated=4231,
        depth=7,
        deadlock=True,
        note="the log is full",
    ),
    Expectation(
        Aborts,
        sizes={"Producer": 3, "L": 10},
        distinct=363064,
        generated=674641,
        depth=11,
        deadlock=True,
        note="the log is full",
    ),
]
