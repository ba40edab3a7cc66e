"""`python -m tests.gate SEED...`: compare the engines on the models of these seeds; shrink what they disagree about.
`--count N` compares N seeds from the first one on; `--tlc` asks TLC too; `--text` prints the models."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.gate.compare import ALL, compare
from tests.gate.generate import generated
from tests.gate.gate import minimal


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.gate", description=__doc__)
    p.add_argument("seeds", type=int, nargs="+", metavar="SEED")
    p.add_argument("--count", type=int, default=1)
    p.add_argument("--tlc", action="store_true")
    p.add_argument("--text", action="store_true")
    p.add_argument("--only", metavar="ENGINES", help=f"of {', '.join(ALL)}, tlc")
    p.add_argument("--keep", action="store_true", help="do not shrink")
    a = p.parse_args()
    counts: Counter[str] = Counter()
    began, failed = time.process_time(), 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in [s + i for s in a.seeds for i in range(a.count)]:
            model = generated(seed)
            if a.text:
                print(model.text, model.sizes)
            only = tuple(a.only.split(",")) if a.only else (*ALL, "tlc") if a.tlc else ALL
            found = compare(model.text, model.sizes, seed, Path(folder), only)
            counts += found.counts
            counts["models"] += 1
            counts["refused when loaded"] += bool(found.refused)
            if a.text and found.refused:
                print(found.refused)
            if found.disagreements:
                failed += 1
                print(f"\nseed {seed}: {len(found.disagreements)} disagreements (python -m tests.gate {seed})")
                if a.keep:
                    for d in found.disagreements[:5]:
                        print(f"  {d}"[:2000])
                else:
                    print(minimal(seed, Path(folder), only=only))
                sys.stdout.flush()
    print("\n".join(f"{n:>8,} {name}" for name, n in sorted(counts.items())))
    print(f"{failed} of {counts['models']} models are read differently; {time.process_time() - began:.0f} s of CPU")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
