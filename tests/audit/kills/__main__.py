"""Try the faults of the rules: python -m tests.audit.kills --measure [--of MODULE ...] [--left]

--measure    write docs/measured/rules.json, a module at a time; what showed a fault before is tried first
--of MODULE  such as storage/segment; without it all that changed since they were measured, the smallest first
--all        also those that did not change
--left       only what was not noticed before
--pin        write what the sound rules say of each directory, tests/audit/kills/pinned.txt
--say CASE   what they say of one directory, in full
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Container, Sequence
from functools import partial

from tests.audit.kills import pinned
from tests.audit.kills.faults import RULES, Fault, rules
from tests.audit.kills.harness import Bench, groups
from tests.audit.kills.harness import group as cases_of
from tests.audit.kills.measure import keep, measure, measured, text_of


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.audit.kills", description=__doc__.partition("\n")[0])
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--of", nargs="*", default=[], choices=RULES)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--left", action="store_true")
    parser.add_argument("--pin", nargs="*", choices=groups())
    parser.add_argument("--say")
    given = parser.parse_args(arguments)
    if given.pin is not None:
        pinned.write(given.pin or groups())
    if given.say:
        say(given.say)
    if not given.measure:
        return 0
    modules = given.of or sorted(RULES, key=lambda m: len(list(rules(m).faults())))
    bad = 0
    for module in modules:
        before = measured(module)
        if not given.of and not given.all and before.text == text_of(module):
            continue
        begun = time.process_time()
        now, wrong = measure(module, before, told, only=partial(_lacks, before.noticed) if given.left else None)
        keep(module, now)
        print(*wrong, sep="\n", end="\n" if wrong else "")
        print(
            f"{module}: {now.faults} faults, {len(now.noticed)} noticed, {len(now.equivalent)} equivalent, "
            f"{len(now.survivors)} survive: {now.share:.1%}; {time.process_time() - begun:.1f} s of CPU",
            flush=True,
        )
        bad += len(wrong) + len(now.survivors)
    return int(bad > 0)


def told(fault: Fault, by: str | None, why: str | None) -> None:
    if by is None and why is None:
        print(f"{fault.id} | {fault.what}", flush=True)


def say(name: str) -> None:
    with Bench(cases_of(name.partition(":")[0])) as bench:
        for case in bench.made:
            if case.startswith(name):
                print(case)
                for f in bench.audit(case).findings:
                    print(f"  {f}")


def _lacks(noticed: Container[str], name: str) -> bool:
    return name not in noticed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
