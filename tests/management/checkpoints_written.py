"""What a broker writes into the small files of a log directory, beside logs that hold what they should."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaspec.mutants.audit import META, DirectoryLayout, WalkEnd, log_file, one_record


def files(walked: WalkEnd) -> Mapping[str, bytes]:
    disk = walked.driver.disk
    out = {f"data/{name}": disk.read(f"dir/{name}") for name in disk.files("dir")} | {"data/meta.properties": META}
    for partition, log in walked.state.logs.items():
        batches = [one_record(n, leader_epoch=0) for n in range(log.first_base, log.end)]
        out |= log_file(f"data/{partition}", log.first_base, batches)
        out[f"data/{partition}/leader-epoch-checkpoint"] = f"0\n1\n0 {log.start}\n".encode()
    return out


WRITTEN = DirectoryLayout(
    files,
    (
        "createLog",
        "append",
        "append",
        "flush",
        "advanceHighWatermark",
        "raiseStart",
        "truncate",
        "deleteLog",
        "checkpointRecoveryPoints",
        "checkpointLogStarts",
        "checkpointHighWatermarks",
        "shutdown",
        "kill",
        "start",
        "start",
    ),
    {"crash_while_loading": lambda state: [False]},  # a stop while it loads writes recovery points of no log
    last=[("shutdown", {"broker_epoch": 7})],
)
