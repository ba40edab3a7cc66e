"""What the released Kafka does to both kinds of index: a resizing that is refused has cut the file already."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any

from kafkaspec.contract.machine import Json, Machine, Refused
from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.common.mapped_index import Index


def advancing(layout: Struct) -> Callable[..., Any]:
    """The ghost: whether a refused resizing has cut the file, and it is the same file still."""

    def cut(ghost: Any, before: Index, op: str, arguments: Mapping[str, Any], after: Index) -> Any:
        if op in mapped.NEW_FILE:
            return False
        return ghost or (op == "resize" and before.is_open and not mapped.keeps(before, layout, arguments["new_size"]))

    return cut


def rewriting(machine: Machine[Index], layout: Struct) -> Callable[..., tuple[Json | Refused, Json]]:
    """What is shown of a resizing that is refused."""

    def cuts(
        ghost: Any, state: Index, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
    ) -> tuple[Json | Refused, Json]:
        if op == "resize" and isinstance(result, Refused):
            length = mapped.rounded(arguments["new_size"], layout)
            return result, machine.observe(mapped.closed(mapped.with_size(state, layout, length)))
        return result, observation

    return cuts
