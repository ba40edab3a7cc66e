"""Mutants: the subsystem broken on purpose, one fault at a time, and who notices.

A green check proves something only if it can go red. Faults come in three layers (a spec's machine, a driver of the
implementation, a model); faults of models are also generated (see `faults`). The kill matrix runs every detector that
applies to a layer on every mutant of it. A pinned count that differs kills nothing: it says that something is other
than it was, not what is wrong. A mutant that nobody kills needs a reason, unless it is found to change no step.
"""

from __future__ import annotations

import gzip
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from types import ModuleType
from typing import Any

import icontract
import orjson

from kafkaspec.contract.history import History, Record, outcome
from kafkaspec.contract.machine import Driver, Machine, Outside
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.errors import ENDINGS, UserError, unknown
from kafkaspec.judge.check import check
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.language import LoadedModel, Model, load
from kafkaspec.lockstep.walk import draw, draw_init, shrink, walk
from kafkaspec.mutants import faults
from kafkaspec.mutants.mutant import Layer, Mutant


@dataclass(frozen=True)
class Detection:
    """What one detector made of one mutant: `by` says what noticed it; None for `killed` if it does not apply."""

    killed: bool | None
    by: str = ""
    seconds: float = 0.0
    counts: str = ""
    """the counts that differ, where they alone tell: no kill"""


UNCHANGED = "it changes no step that is made at the pinned sizes"


@dataclass(frozen=True)
class Row:
    """One mutant's row of the kill matrix, by the detectors' names."""

    mutant: Mutant
    detections: Mapping[str, Detection]
    steps: faults.Steps | None = None
    """of what nobody kills: the steps that it makes at every pinned size, beside those of the sound model"""

    @property
    def killed(self) -> bool:
        return any(d.killed for d in self.detections.values())

    @property
    def counts(self) -> str:
        """What only the pinned counts say of a mutant that nobody kills."""
        return "" if self.killed else next((d.counts for d in self.detections.values() if d.counts), "")

    @property
    def unchanged(self) -> bool:
        """Nobody kills it, no reason is written, and none is needed: it changes no step."""
        return not self.killed and not self.mutant.survives and self.steps == "same"

    @property
    def reason(self) -> str:
        """Why nobody kills it: the one that is written, or that it changes no step."""
        return self.mutant.survives or (UNCHANGED if self.unchanged else "")

    @property
    def wrong(self) -> str:
        """What is wrong with the row: a survivor without a reason, or a reason for one that was killed."""
        if not self.killed and not self.reason:
            said = f"{self.mutant.name} survives and no reason is given"
            said += f": no claim is broken, only the counts differ ({self.counts})" if self.counts else ""
            return said + ("; it makes fewer steps, which a witness might show" if self.steps == "fewer" else "")
        if self.killed and self.mutant.survives:
            by = next(f"{n} ({d.by})" for n, d in self.detections.items() if d.killed)
            return f"{self.mutant.name} is said to survive ({self.mutant.survives}), but {by} killed it"
        return ""


@dataclass(frozen=True)
class Counts:
    """What a detector says of a thing that breaks nothing, but is not as it was pinned."""

    differ: str


@dataclass(frozen=True)
class Detector:
    """Looks at a thing of one of its layers: "" if it finds nothing wrong, else what it found, in a line."""

    name: str
    layers: frozenset[Layer]
    look: Callable[[Subsystem, Layer, Any], str | Counts]


# ---- mutants of a subsystem


def mutants_of(subsystem: Subsystem) -> list[Mutant]:
    """The written mutants, and those generated from each model. Reasons why a generated one survives stand beside the
    written ones, as `SURVIVORS = {name: reason}`."""
    module, pinned = _module(subsystem), subsystem.layer("models")
    models = {m.name: m for c in pinned.MODELS if (m := c.loaded)} if pinned is not None else {}
    reasons: dict[str, str] = dict(getattr(module, "SURVIVORS", {}))
    out = [replace(m, survives=reasons.pop(m.name, "")) for model in models.values() for m in generated(model)]
    for name in reasons:
        raise unknown(f"generated mutant of {subsystem.name}", name, [m.name for m in out])
    return [*written(subsystem), *out]


def written(subsystem: Subsystem) -> list[Mutant]:
    """The mutants in tests/<area>/<name>_mutants.py of the checkout; UserError without one."""
    return list(_module(subsystem).MUTANTS)


def unseen(subsystem: Subsystem) -> dict[str, str]:
    """Why the judge does not notice a written mutant, by its name: `UNSEEN` beside the mutants."""
    module = _module(subsystem)
    reasons: dict[str, str] = dict(getattr(module, "UNSEEN", {}))
    for name in reasons:
        if name not in (known := [m.name for m in module.MUTANTS]):
            raise unknown(f"written mutant of {subsystem.name}", name, known)
    return reasons


def _module(subsystem: Subsystem) -> ModuleType:
    module = subsystem.beside("mutants")
    if module is None:
        file = f"tests/{subsystem.area}/{subsystem.name}_mutants.py"
        raise UserError(f"{subsystem.name} has no mutants here: they stand beside the tests, in {file} of a checkout")
    return module


def _loaded(model: type[Model] | LoadedModel) -> LoadedModel:
    return model if isinstance(model, LoadedModel) else load(model)


def generated(model: LoadedModel) -> Iterator[Mutant]:
    """A mutant for each generated fault of the model."""
    for f in faults.faults(model):
        yield Mutant(f.name, f.action.clauses, f.what, "model", f.make, generated=True)


# ---- detectors


def contract_detector(seeds: int = 20, steps: int = 200) -> Detector:
    """The spec alone, called at random, its contracts watching."""

    def look(subsystem: Subsystem, layer: Layer, machine: Machine[Any]) -> str | Counts:
        operations = [op for op in machine.operations.values() if op.generated]
        for seed in range(seeds):
            rng = random.Random(seed)
            state = machine.initial(**draw_init(machine, rng.choice))
            for _ in range(steps):
                op = rng.choice(operations)
                arguments = draw(machine, op, state, rng.choice)
                if arguments is None:
                    continue
                try:
                    step = machine.apply(state, op.name, arguments)
                except icontract.ViolationError as e:
                    said = re.search(r"[A-Z]{3}-\d+ [^\n]*", str(e))
                    return f"{said[0] if said else e}, broken by {op.name} (seed {seed})"
                if not isinstance(step, Outside):
                    state = step.state
        return ""

    return Detector("contract", frozenset({"spec"}), look)


def lockstep_detector(seeds: int = 20, steps: int = 200) -> Detector:
    """Seeded walks of spec and implementation, one of them faulty; the shortest history tells. Contracts are off."""

    def look(subsystem: Subsystem, layer: Layer, thing: Any) -> str | Counts:
        machine, driver = _pair(subsystem, layer, thing)
        for seed in range(seeds):
            failure = walk(machine, driver, seed, steps, contracts=False).failure
            if failure is not None:
                short = shrink(machine, driver, failure, contracts=False)
                return f"{' '.join(short.clause.split())} after {_calls(len(short.records) - 1)} (seed {seed})".strip()
        return ""

    return Detector("lockstep", frozenset({"spec", "impl", "audit"}), look)


def _calls(n: int) -> str:
    return f"{n} call" + "s" * (n != 1)


def check_detector() -> Detector:
    """The real recordings: a faulty spec judges them wrongly; of a faulty implementation that is given their calls a
    trace is written down, and judged by the spec."""

    def look(subsystem: Subsystem, layer: Layer, thing: Any) -> str | Counts:
        recordings: Sequence[Recording] = subsystem.recordings
        for recording in recordings:
            if layer == "spec":
                wrong = unexpected(recording, check_recording(recording, thing))
                if wrong:
                    return wrong
                continue
            verdict = check(
                subsystem.spec.machine, rerecorded(subsystem.spec.machine, thing, recording), name=recording.file
            )
            if verdict.verdict == "rejected":
                return f"{recording.file}: rejected at step {verdict.step}, {verdict.clause}"
        return ""

    return Detector("check", frozenset({"spec", "impl"}), look)


def rerecorded(machine: Machine[Any], driver: Driver, recording: Recording) -> list[bytes]:
    """The calls of a recording, and what a driver answers to them; a driver that fails answers with its exception."""
    records: list[Record] = []
    driver.reset({})
    data = recording.path.read_bytes()
    for line in (gzip.decompress(data) if recording.path.suffix == ".gz" else data).splitlines():
        record = orjson.loads(line)
        name, arguments = record["op"], record["args"]
        try:
            if name == "init":
                driver.reset(machine.python_names(arguments))
                answer = None
            else:
                op = machine.find(name)
                answer = driver.apply(name, {op.parameters[t]: v for t, v in arguments.items()})
            records.append({"op": name, "args": arguments, **outcome(answer), "state": driver.observe()})
        except ENDINGS:
            raise
        except BaseException as e:  # SystemExit too, which would end us
            records.append({"op": name, "args": arguments, "error": {"class": type(e).__name__}})
            break
    return History(tuple(records)).ndjson().splitlines()


class NotApplicable(Exception):
    """The detector has nothing to say of this thing: there is no proof of that model, say."""


MOST_STATES = 20
"""A mutant with that many times the states of the sound model is not explored to the end."""


def explorer_detector() -> Detector:
    """Every pinned run of the model, the smallest first: a claim broken, a witness not reached, an action never taken.
    Other counts are told, and kill nothing."""

    def look(subsystem: Subsystem, layer: Layer, thing: Any) -> str | Counts:
        module = subsystem.layer("models")
        pinned = _sound_of(thing, module.MODELS) if module is not None else []
        if not pinned:
            raise NotApplicable
        counts = ""
        promises = [False, True] if _loaded(thing).leads_to else [False]
        for checked, liveness in product(sorted(pinned, key=lambda c: int(c.distinct)), promises):
            most = MOST_STATES * checked.distinct
            for finding in replace(checked, model=thing).run(max_states=most, liveness=liveness).findings:
                if finding.is_claim:
                    return str(finding.why)
                counts = counts or str(finding.why)
        return Counts(counts) if counts else ""

    return Detector("explorer", frozenset({"model"}), look)


def prover_detector(quick_s: float = 1.0, timeout_s: float = 10.0) -> Detector:
    """The proofs of the model, of the actions that are not as they were: an obligation refuted or not proved in the
    time given, or an action that has become impossible. A refutation found quickly saves the long attempts."""

    def look(subsystem: Subsystem, layer: Layer, thing: Any) -> str | Counts:
        from kafkaspec.prove.engine import prove

        module = subsystem.layer("proofs")
        proofs = _sound_of(thing, module.PROOFS) if module is not None else []
        if not proofs:
            raise NotApplicable
        model = _loaded(thing)
        for proof in proofs:
            sound = {a.name: a for a in proof.loaded.actions}
            changed = {a.name for a in model.actions if a.name not in sound or not faults.alike(sound[a.name], a)}
            fixed, begins_with = getattr(proof, "fixed", None), getattr(proof, "begins_with", None)

            def of_changed(action: str, claim: str, changed: set[str] = changed) -> bool:
                return not changed or action in changed

            proved = prove(
                model,
                timeout_s=quick_s,
                fixed=fixed,
                only=of_changed,
                until=lambda o: o.verdict == "refuted",
                begins_with=begins_with,
            )
            for action in (*proved.vacuous, *proved.unseen):
                return f"{action} is impossible"
            open_still = {(o.action, o.claim) for o in proved.obligations if o.verdict == "unknown"}
            failed = proved.by_verdict("refuted")
            if open_still and not failed:
                proved = prove(
                    model,
                    timeout_s=timeout_s,
                    fixed=fixed,
                    only=partial(_among, open_still),
                    until=lambda o: o.verdict != "proved",
                    begins_with=begins_with,
                )
                failed = [o for o in proved.obligations if o.verdict != "proved"]
            for o in failed:
                return f"{o.verdict}: {o.action} keeps {o.claim}"
        return ""

    return Detector("prover", frozenset({"model"}), look)


def _among(wanted: set[tuple[str, str]], action: str, claim: str) -> bool:
    return (action, claim) in wanted


def _sound_of(thing: type[Model] | LoadedModel, known: Sequence[Any]) -> list[Any]:
    """Those of the known runs or proofs whose model the faulty one is, with a fault: changed as a graph, or as a
    subclass; of models that extend each other, the nearest."""
    models = {k.loaded.cls for k in known}
    nearest = next((c for c in _loaded(thing).cls.__mro__ if c in models), None)
    return [k for k in known if k.loaded.cls is nearest]


def _pair(subsystem: Subsystem, layer: Layer, thing: Any) -> tuple[Machine[Any], Driver]:
    """The machine and the driver to walk beside each other, one of them the thing."""
    for pair in subsystem.pairs():
        if layer == pair.layer:
            return pair.machine, thing
        if layer == "spec" and thing.operations.keys() == pair.machine.operations.keys():
            return thing, pair.driver()
    raise UserError(f"{subsystem.name} has nothing to walk beside its spec")


# ---- the matrix


def kill_matrix(
    subsystem: Subsystem,
    mutants: Iterable[Mutant],
    detectors: Sequence[Detector],
    progress: Callable[[int, int | None, str], None] | None = None,
) -> list[Row]:
    """Every mutant against every detector of its layer. Raises UserError if a detector finds fault with what is sound:
    its kills would say nothing."""
    mutants = list(mutants)
    machine = subsystem.spec.machine
    models = subsystem.layer("models")
    sound: list[tuple[Layer, Any]] = [("spec", machine)]
    sound += [(pair.layer, pair.driver()) for pair in subsystem.pairs()]
    by_name = {m.name: m for c in models.MODELS if (m := c.loaded)} if models is not None else {}
    sound += [("model", model) for model in by_name.values()]
    for layer, thing in sound:
        for detector in detectors:
            if layer in detector.layers and any(m.layer == layer for m in mutants):
                try:
                    found = detector.look(subsystem, layer, thing)
                except NotApplicable:
                    continue
                if found:
                    said = found.differ if isinstance(found, Counts) else found
                    what = f"{detector.name} finds fault with the sound {layer} of {subsystem.name}: {said}"
                    raise UserError(what, 1)
    rows = []
    for n, mutant in enumerate(mutants):
        if progress is not None:
            progress(n, len(mutants), mutant.name)
        rows.append(_row(subsystem, mutant, detectors))
    return rows


def _row(subsystem: Subsystem, mutant: Mutant, detectors: Sequence[Detector]) -> Row:
    """Of a generated mutant no more is asked once it is killed, or is explored and found to change no step."""
    detections: dict[str, Detection] = {}
    steps: faults.Steps | None = None
    for d in detectors:
        enough = mutant.generated and (any(x.killed for x in detections.values()) or steps == "same")
        detections[d.name] = Detection(None) if enough else _detect(subsystem, mutant, d)
        if mutant.generated and detections[d.name].killed is False and steps is None and not mutant.survives:
            steps = _steps(subsystem, mutant)
    row = Row(mutant, detections)
    looked = any(d.killed is False for d in detections.values())
    if row.killed or mutant.survives or mutant.layer != "model" or not looked:
        return row
    return replace(row, steps=steps or _steps(subsystem, mutant))


def _steps(subsystem: Subsystem, mutant: Mutant) -> faults.Steps | None:
    """The mutant's steps beside those of the sound model, at every pinned size; None if none is pinned."""
    module = subsystem.layer("models")
    thing, found = _loaded(mutant.made()), set[faults.Steps]()
    for checked in sorted(_sound_of(thing, module.MODELS) if module else (), key=lambda c: int(c.distinct)):
        found.add(faults.steps_beside(checked.loaded, thing, checked.sizes))
        if "other" in found:
            return "other"
    return "fewer" if "fewer" in found else "same" if found else None


def _detect(subsystem: Subsystem, mutant: Mutant, detector: Detector) -> Detection:
    if mutant.layer not in detector.layers:
        return Detection(None)
    thing, begun = mutant.made(), time.monotonic()
    try:
        found = detector.look(subsystem, mutant.layer, thing)
    except NotApplicable:
        return Detection(None)
    except Exception as e:
        if mutant.layer == "model":
            raise  # an engine failed, not the mutant
        found = str(e) if isinstance(e, UserError) else f"failed: {type(e).__name__}: {e}"
    seconds = time.monotonic() - begun
    if isinstance(found, Counts):
        return Detection(False, "", seconds, found.differ)
    return Detection(bool(found), found, seconds)
