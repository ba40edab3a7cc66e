"""Offset index: known deviations of released Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.spec.common.mapped_index import Index
from kafkaspec.spec.common.mapped_index_released import advancing, rewriting
from kafkaspec.spec.storage.offset_index import LAYOUT, entries, machine


def _wraps(
    ghost: Any, state: Index, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op == "fetchUpperBoundOffset" and arguments["position"] + arguments["size"] >= 2**31 and state.used:
        return list(entries(state)[0]), observation
    return result, observation


def _passes_the_first(
    ghost: Any, state: Index, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op == "fetchUpperBoundOffset" and state.used:
        first, *rest = entries(state)
        if first.position == arguments["position"] + arguments["size"]:
            return list(rest[0]) if rest else None, observation
    return result, observation


machine.deviations += [
    Deviation(
        id="OIX-D1",
        clause="OIX-10",
        title="The upper bound of a fetch that ends beyond 2 GiB is the first entry of the index",
        versions="4.3.0 (seen)",
        condition="the fetch's position plus its size is 2147483648 or more, and the index has an entry",
        history=(
            "init",
            "append offset=105 position=4200",
            "append offset=109 position=8400",
            "fetchUpperBoundOffset position=4200 size=2147483647",
        ),
        cause="Position and size are added in 32 bits; the sum is negative, and below every position.",
        effect="""The answer is an offset within the fetch, or before it. Fetching with read_committed uses it to choose
        the aborted transactions: those that begin after it are left out. LocalLog.addAbortedTransactions passes the
        size of what was read, so that a sum of 2 GiB needs a segment file of nearly that size.""",
        fix="Add in 64 bits.",
        rewrite=_wraps,
    ),
    Deviation(
        id="OIX-D2",
        clause="OIX-10",
        title="A fetch that ends exactly at the first entry's position has the second entry as its upper bound",
        versions="4.3.0 (seen)",
        condition="the fetch's position plus its size is the first entry's position",
        history=("init", "append offset=105 position=4200", "fetchUpperBoundOffset position=0 size=4200"),
        cause="""The search never looks at the first slot of its range: it takes it to be below the target, which the
        first entry of the index need not be.""",
        effect="""An offset further on, or none, which makes a fetch with read_committed look at more of the transaction
        index than it must. No record is lost by it.""",
        fix="Compare the first entry before the search begins.",
        rewrite=_passes_the_first,
    ),
    Deviation(
        id="OIX-D3",
        clause="OIX-15",
        title="Resizing an index to less than its entries cuts the file before it is refused",
        versions="4.3.0 (seen)",
        condition="the new size, in whole slots, is less than the entries in use",
        history=("init", "append offset=105 position=4200", "append offset=109 position=8400", "resize newSize=8"),
        cause="""The file is cut and mapped again first; then the position in the mapping is set to the end of the
        entries, which lies beyond the mapping, and that throws. Nothing compares the two before.""",
        effect="""Loading a log resizes the indexes of its last segment to segment.index.bytes. Where that was lowered
        below the size of one of them, loading fails with an IllegalArgumentException, which is no storage error, so
        that the broker does not start: the first time because of the offset index, the second time because of the
        time index, both of which are cut by then. The third time it starts: the offset index has lost its last
        entries, which costs time; the time index has lost its last entry, so that the segment is taken for older than
        it is. Seen after a clean stop with 99 entries and a new limit of 400 bytes.""",
        fix="Compare the new size with the entries in use first, and make the index again where it does not fit.",
        rewrite=rewriting(machine, LAYOUT),
        initial=bool,
        advance=advancing(LAYOUT),
        lost=bool,
    ),
]
