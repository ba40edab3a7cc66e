"""The prover's benchmark: each kept example, proved once for every size. Prints one JSON object.

python bench/prove.py
"""

from __future__ import annotations

import json
import resource
import time

from kafkaspec.proofs.examples import cleaner_anchor, replication


def main() -> None:
    """Run each proof and print obligations, queries, verdicts, seconds and the slowest obligation."""
    rows = []
    for proof in [*cleaner_anchor.PROOFS, *replication.PROOFS]:
        cpu = time.process_time()
        p = proof.run()
        slowest = max(p.obligations, key=lambda o: o.seconds)
        rows.append(
            {
                "model": p.model,
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
