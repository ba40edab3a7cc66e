"""How the parts of the kept proofs that are hard to find were proved: found, and kept beside the proofs.

    nice python bench/outlines.py                 the proofs of all subsystems
    nice python bench/outlines.py raft quorum     of some

A file proofs/AREA/NAME.json says of a model's claim and action which way a refinement's step took, and of each
hard part its number, the options in the solver's portfolio, and from which claims it follows. `verify` and `prove` ask
that first. Where a text has changed, they look for a proof as if there were no outline, which costs time and nothing
else: then write the files again. What a file says and is proved so stays; without the file all is found anew. A proof
is gone through until nothing new is learnt, a few times at most.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from types import ModuleType

from kafkaspec.contract.subsystem import find, subsystems
from kafkaspec.errors import UserError
from kafkaspec.prove.engine import prove
from kafkaspec.prove.outline import SUFFIX, Outline, Outlines, recorded, text
from kafkaspec.prove.proof import Proof

MOST_TIMES = 3
"""A proof is gone through at most this often: what was easy in one place may be hard in another."""


def learnt(proof: Proof, known: Outlines) -> Outlines:
    """The outlines of a proof, of which some are known. An obligation that is not proved leaves nothing to keep."""
    for _ in range(MOST_TIMES):
        now: dict[tuple[str, str], Outline] = {}
        result = prove(
            proof.loaded,
            timeout_s=proof.timeout_s,
            fixed=proof.fixed,
            begins_with=proof.begins_with,
            outlines=known,
            learnt=now,
        )
        print(f"{result.summary()}; {sum(len(o.steps) for o in now.values())} hard parts", flush=True)
        now = {of: o for of, o in now.items() if o != Outline()}
        if now == known:
            break
        known = now
    return known


def known(module: ModuleType, proof: Proof) -> Outlines:
    """What the file says of a proof; nothing if it is damaged."""
    try:
        return recorded(module.__name__, proof.name)
    except UserError as error:
        print(error, flush=True)
        return {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subsystem", nargs="*", default=list(subsystems()))
    for name in parser.parse_args().subsystem:
        module = find(name).layer("proofs")
        if module is None or module.__file__ is None:
            continue
        found = {proof.name: outlines for proof in module.PROOFS if (outlines := learnt(proof, known(module, proof)))}
        file = Path(module.__file__).with_suffix(SUFFIX)
        if found:
            file.write_text(text(found), "utf-8")
        else:
            file.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
