"""The prover's benchmark: every shipped proof once, each at every size. Prints one JSON object.

python bench/prove.py
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import resource
import time
from collections.abc import Iterator

import kafkaspec.proofs
from kafkaspec.prove.proof import Proof


def shipped() -> Iterator[tuple[str, Proof]]:
    """Each proof with its name: the file's, below proofs/, and the model's."""
    for m in pkgutil.walk_packages(kafkaspec.proofs.__path__, "kafkaspec.proofs."):
        for proof in getattr(importlib.import_module(m.name), "PROOFS", ()):
            yield f"{m.name.removeprefix('kafkaspec.proofs.').replace('.', '/')}:{proof.name}", proof


def main() -> None:
    """Run each proof and print obligations, queries, verdicts, seconds and the slowest obligation."""
    rows = []
    for name, proof in shipped():
        cpu = time.process_time()
        p = proof.run()
        slowest = max(p.obligations, key=lambda o: o.seconds)
        rows.append(
            {
                "model": name,
                "fixed": dict(p.fixed),
                "explored": p.explored,
                "obligations": len(p.obligations),
                "queries": p.queries,
                "proved": len(p.by_verdict("proved")),
                "complete": p.complete,
                "seconds": round(p.seconds, 2),
                "cpu_seconds": round(time.process_time() - cpu, 2),
                "slowest": {"obligation": f"{slowest.action} / {slowest.claim}", "seconds": round(slowest.seconds, 2)},
            }
        )
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"proofs": rows, "peak_mb": round(peak_mb)}, indent=2))


if __name__ == "__main__":
    main()
