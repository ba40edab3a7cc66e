"""`python -m tests.gate CASE...`: compare the engines on the models of these seeds or templates, and shrink what they
disagree about."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.gate import table
from tests.gate.compare import ALL
from tests.gate.gate import case, compared, fixed, minimal


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.gate", description=__doc__)
    p.add_argument("cases", nargs="*", metavar="CASE", help="a seed, or a template's name; none: the fixed cases")
    p.add_argument("--count", type=int, default=1, help="N seeds from each")
    p.add_argument("--only", metavar="ENGINES", help=f"of {', '.join(ALL)}, tlc")
    p.add_argument("--tlc", action="store_true", help="ask TLC too (needs java, and TLA2TOOLS)")
    p.add_argument("--text", action="store_true", help="print the models")
    p.add_argument("--keep", action="store_true", help="do not shrink")
    p.add_argument(
        "--faults", action="store_true", help="find the planted faults that the page does not show, and write its table"
    )
    a = p.parse_args()
    if a.faults:
        table.write(lambda line: print(line, flush=True))
        return 0
    if a.count > 1 and not (a.cases and all(c.isdigit() for c in a.cases)):
        p.error("--count needs a seed to count from")
    names = [str(int(n) + i) for n in a.cases for i in range(a.count)] if a.count > 1 else a.cases or fixed()
    only = tuple(a.only.split(",")) if a.only else (*ALL, "tlc") if a.tlc else ALL
    if wrong := {*only} - {*ALL, "tlc"}:
        p.error(f"no engine {', '.join(sorted(wrong))}: there are {', '.join(ALL)}, tlc")
    counts: Counter[str] = Counter()
    began, failed = time.process_time(), 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            found = compared(name, Path(folder), only)
            counts += found.counts
            counts["models"] += 1
            counts["refused when loaded"] += bool(found.refused)
            if a.text:
                print(case(name).text, case(name).sizes, found.refused)
            if found.disagreements:
                failed += 1
                print(f"\n{name}: {len(found.disagreements)} disagreements (python -m tests.gate '{name}')")
                if a.keep:
                    for d in found.disagreements[:5]:
                        print(f"  {d}"[:2000])
                else:
                    print(minimal(name, Path(folder), only=only))
                sys.stdout.flush()
    print("\n".join(f"{n:>8,} {name}" for name, n in sorted(counts.items())))
    print(f"{failed} of {counts['models']} models are read differently; {time.process_time() - began:.0f} s of CPU")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
