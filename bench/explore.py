"""One exploration, or one random walk, of an anchor model; prints a line of JSON.

python bench/explore.py cleaner --threads 2
python bench/explore.py repl --words 2            states laid out in two words
python bench/explore.py repl --fingerprint        a fingerprint of the state in the table
python bench/explore.py cleaner --walk 100000000
python bench/explore.py released                  the largest size of replication that was published
"""

from __future__ import annotations

import argparse
import importlib
import json

from kafkaspec.explore.engine import explore
from kafkaspec.explore.layout import WORD, Layout
from kafkaspec.explore.program import EXACT_WORDS, Program
from kafkaspec.explore.walk import walk
from kafkaspec.language import load
from kafkaspec.models.storage.replication import KIP_320

ANCHORS = {
    "cleaner": ("examples.cleaner_anchor", "CleanerAnchor", {"Partition": 5, "Thread": 2, "N": 3, "D": 1}),
    "repl": ("examples.replication_anchor", "Replication", {"Replica": 3, "L": 3, "E": 3, "FENCED": True}),
    "released": ("storage.replication", "Released", {"Replica": 3, "L": 2, "R": 2, "E": 3, **KIP_320}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("anchor", choices=ANCHORS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--words", type=int, default=1)
    parser.add_argument("--fingerprint", action="store_true")
    parser.add_argument("--sizes", type=json.loads, default={})
    parser.add_argument("--walk", type=int, default=0, metavar="STEPS")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schedule", default="uniform")
    options = parser.parse_args()
    module, name, sizes = ANCHORS[options.anchor]
    model = load(getattr(importlib.import_module(f"kafkaspec.models.{module}"), name))
    sizes = {**sizes, **options.sizes}
    if options.walk:
        w = walk(model, sizes, seed=options.seed, steps=options.walk, schedule=options.schedule)
        print(json.dumps({"steps": w.steps, "walks": w.walks, "seconds": w.seconds, "broken": w.trace is not None}))
        return
    usable = WORD - 1
    while Layout(model, sizes, usable=usable).words < options.words:
        usable -= 1
    layout = Layout(model, sizes, usable=usable)
    program = Program(layout, exact_words=0 if options.fingerprint else EXACT_WORDS)
    e = explore(model, sizes, threads=options.threads, deadlock=True, program=program)
    print(
        json.dumps(
            {
                "distinct": e.distinct,
                "generated": e.generated,
                "depth": e.depth,
                "outcome": e.outcome,
                "seconds": e.seconds,
                "compile_seconds": e.compile_seconds,
                "peak_mb": e.peak_mb,
                "words": e.words,
                "fingerprint_collision": e.fingerprint_collision,
            }
        )
    )


if __name__ == "__main__":
    main()
