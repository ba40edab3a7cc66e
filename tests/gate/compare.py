"""One text, every engine: what they disagree about."""

from __future__ import annotations

import random
import re
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kafkaspec.errors import UserError
from kafkaspec.language import ModelError, load
from kafkaspec.language.defined import DEFINED
from tests.gate import engines, oracle, pinned
from tests.gate.engines import Disagreement, Enough, Found, Until, never

VARIANTS = ("vectors", "words", "fingerprints", "resumed", "one sort", "symmetry")
"""Beside the plain exploration, one of these is compared, in turn."""
STATES = 12
"""States from which single transitions are compared: so many reachable ones, and half as many arbitrary ones."""
ALL = ("graph", "explorer", "transitions", "bounded", "prover", "pinned")
DRAWN = "drawn"
"""In the place of the prover: what is drawn for the pinned formulas depends on what was drawn for it."""


@dataclass
class Comparison:
    """What comparing one text gave."""

    refused: str = ""
    """Why the text was refused when it was loaded."""
    disagreements: list[Disagreement] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def compare(
    text: str,
    sizes: tuple[oracle.Sizes, ...],
    seed: int,
    folder: Path,
    only: tuple[str, ...] = ALL,
    variants: tuple[str, ...] = (),
    until: Until = never,
) -> Comparison:
    """Load a text and compare every engine with it. `seed` chooses what is sampled. To the first disagreement of which
    `until` is true, no further."""
    found = Found(until=until)
    try:
        return _compared(found, text, sizes, seed, folder, only, variants)
    except Enough:
        return Comparison("", found.disagreements, found.counts)


def _compared(
    found: Found,
    text: str,
    sizes: tuple[oracle.Sizes, ...],
    seed: int,
    folder: Path,
    only: tuple[str, ...],
    variants: tuple[str, ...],
) -> Comparison:
    try:
        cls = oracle.loaded(text, folder)
    except ModelError as e:
        if not re.match(r"[^:\n]+:\d+: ", str(e)):
            found.say("load", "no place", e)
        return Comparison(str(e), found.disagreements, found.counts)
    except SyntaxError as e:
        return Comparison(str(e))
    except Exception as e:
        last = traceback.extract_tb(e.__traceback__)[-1]
        found.say("load", f"{type(e).__name__} in {last.name}", traceback.format_exc(limit=-4))
        return Comparison("", found.disagreements, found.counts)
    r = random.Random(seed)
    m = load(cls)
    spaces, states = [], []
    for at in sizes:
        at = {n: v for n, v in at.items() if n in m.sizes}
        try:
            s = oracle.run(cls, at)
        except UserError as e:
            found.counts[f"oracle: {str(e)[:60]}"] += 1
            return Comparison("", found.disagreements, found.counts)
        except Exception as e:
            last = traceback.extract_tb(e.__traceback__)[-1]
            found.say("text", f"{type(e).__name__} in {last.name}", traceback.format_exc(limit=-6))
            return Comparison("", found.disagreements, found.counts)
        some = r.sample(s.states, min(STATES, len(s.states)))
        for _ in range(STATES // 2):
            state = oracle.arbitrary(s.concrete, r)
            if state is not None:
                some.append(state)
        spaces.append(s)
        states.append(some)
        found.counts["states"] += s.distinct
        found.counts["spaces"] += 1
        found.counts[f"spaces {'violating' if s.broken or s.start else 'whole' if s.whole else 'cut'}"] += 1
        if at == {n: v for n, v in sizes[-1].items() if n in m.sizes}:
            break
    s, some = spaces[0], states[0]
    if "graph" in only:
        for x, y in zip(spaces, states, strict=True):
            if not x.start:
                engines.read(found, m, x, y)
    if "explorer" in only:
        engines.explorer(found, m, s, "plain", folder, True)
        for v in variants or (VARIANTS[seed % len(VARIANTS)],):
            engines.explorer(found, m, s, v, folder, True)
        engines.walked(found, m, s, seed)
        if len(spaces) > 1:
            engines.explorer(found, m, spaces[1], "plain", folder, True)
        if m.ghosts:
            without = oracle.run(cls, s.concrete.sizes, ghosts=False)
            if oracle.GHOST not in without.broken:
                engines.explorer(found, m, without, "plain", folder, False)
    if "transitions" in only and not any(x.start for x in spaces):
        engines.transitions(found, m, s, some, (engines.LANES, 1)[seed % 2])
    partial = any(n.endswith(f": {DEFINED}") for x in spaces for n in x.broken)  # of explored models alone
    if "bounded" in only and not partial:
        engines.searched(found, m, spaces[seed % len(spaces)])
    if "prover" in only or DRAWN in only:
        known = engines.refutable(spaces, states)
        for fixed in (None, s.concrete.sizes):
            asked = engines.drawn(known, r, fixed, 3)
            if "prover" in only:
                engines.prover(found, m, known, asked, fixed)
    if "pinned" in only and not s.start:
        pinned.compared(found, m, s, some, s.concrete.sizes, r, 6 if len(m.actions) < 9 else 20)
        pinned.compared(found, m, s, some, None, r, 12)
    if "tlc" in only and not partial:
        engines.exported(found, m, s, folder)
    return Comparison("", found.disagreements, found.counts)
