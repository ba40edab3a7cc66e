"""What `make test` spends on each subsystem and what on all: `pytest ... --junitxml=tests.xml`, then
`python bench/suite.py tests.xml`.

A test is a subsystem's if its file has the subsystem's name, or if it is the parameter for it of a test of all. Seconds
are those that pytest gives, of all processes together. Prints JSON: `subsystems` (their number), `of_one` (seconds, by
subsystem), `mean`, `shared` (seconds of all other tests), `with_41` (seconds, if the others cost as much as these).
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from kafkaspec.contract.subsystem import subsystems

PLANNED = 41


def spent(file: Path) -> tuple[Counter[str], float]:
    """Seconds by subsystem, and those that are nobody's."""
    names = sorted(subsystems(), key=len, reverse=True)
    own: Counter[str] = Counter({n: 0 for n in names})
    shared = 0.0
    for case in ElementTree.parse(file).iter("testcase"):
        where, seconds = f"{case.get('classname')}", float(case.get("time", 0))
        at = re.search(rf"\.test_({'|'.join(names)})(?:_\w+)?(?:\.|$)", where)
        given = re.search(rf"\[(?:.*[-/])?({'|'.join(names)})(?:[-._/:].*)?\]$", case.get("name", ""))
        found = at or given
        if found is None:
            shared += seconds
        else:
            own[found[1]] += seconds  # type: ignore[assignment]
    return own, shared


def main() -> None:
    """Print what was spent."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("file", type=Path)
    own, shared = spent(p.parse_args().file)
    mean = sum(own.values()) / len(own)
    of_one = {name: round(seconds, 1) for name, seconds in own.most_common()}
    found = {"subsystems": len(own), "of_one": of_one, "mean": mean, "shared": shared}
    print(json.dumps({**found, "with_41": shared + PLANNED * mean}, indent=1))


if __name__ == "__main__":
    main()
