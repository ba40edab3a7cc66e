"""Of what surrounds a log: its directory's checkpoints and marker, node and cluster."""

from __future__ import annotations

from collections.abc import Callable

from tests.audit.kills.around import AWAY
from tests.audit.kills.write import CLUSTER, Case, b, cases, folder, meta, part, seg

ALL = {"recovery": {"t-0": 3, "u-0": 4}, "starts": {"t-0": 1}, "high": {"t-0": 5}, "cleaner": {"t-0": 2}}
NAMES = ("t-0", f"t-0.{AWAY}-future", f"t-0.{AWAY}-delete", f"t-0.{AWAY}-stray")


def logs(**of: object) -> Case:
    return cases(folder(*(part(seg(7, b(7)), name=n) for n in NAMES), **of))


CASES: dict[str, Callable[[], Case]] = {
    "checkpoints": lambda: logs(**ALL),
    "checkpoints, killed": lambda: logs(clean=False, **ALL),
    "a file that is none of Kafka's, killed": lambda: logs(clean=False, files={"notes": b"x"}),
    "no checkpoints": lambda: logs(),
    "checkpoints of others": lambda: logs(recovery={"u-0": 3}, starts={"t-1": 1}, high={}, cleaner={"u-0": 2}),
    **{f"{name} cannot be read": (lambda name=name: logs(**{**ALL, name: b"x"})) for name in ALL},
    **{
        f"{name} is gone": (lambda name=name, file=file: cases(*logs(**ALL).folders, gone=[f"d/{file}"]))
        for name, file in (("meta.properties", "meta.properties"), ("a checkpoint", "log-start-offset-checkpoint"))
    },
    "given alone": lambda: logs(whole=False),
    "given alone, beside checkpoints": lambda: logs(whole=False, **ALL),
    **{
        f"meta.properties {name}": (lambda data=data: logs(properties=data))
        for name, data in {
            "that says all": meta(3, CLUSTER, None),
            "without a cluster": b"version=0\nbroker.id=3\n",
            "without a node": f"version=0\ncluster.id={CLUSTER}\n".encode(),
            "that cannot be read": b"version=7\n",
            "none": None,
        }.items()
    },
    "two of one cluster": lambda: cases(
        folder(part(seg(7, b(7))), name="d1", properties=meta(1, CLUSTER, None), starts={"t-0": 3}),
        folder(part(seg(7, b(7))), name="d2", properties=meta(2, CLUSTER, None), clean=False),
    ),
}
