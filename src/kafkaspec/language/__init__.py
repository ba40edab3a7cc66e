"""The modelling language: a model is one text of plain Python with several readings.

The text runs as it stands on concrete states (`concrete`), is read through its syntax tree into one typed graph
(`load`), and from there explored, proved and exported.
"""

from dataclasses import replace

from kafkaspec.language.defined import Need, Update
from kafkaspec.language.expr import Expr, Flag, ModelError, Size, show, static
from kafkaspec.language.model import (
    Action,
    Claim,
    LeadsTo,
    LoadedModel,
    Model,
    action,
    claimed,
    define,
    initial,
    invariant,
    leads_to,
    lemma,
    load,
    majority,
    refines,
    require,
    step,
    witness,
)
from kafkaspec.language.trace import Trace, TraceStep, Value
from kafkaspec.language.types import Bounded, NonEmpty, Of, Range, Sort, T

__all__ = [
    "Action",
    "Bounded",
    "Claim",
    "Expr",
    "Flag",
    "LeadsTo",
    "LoadedModel",
    "Model",
    "ModelError",
    "Need",
    "NonEmpty",
    "Of",
    "Range",
    "Size",
    "Sort",
    "T",
    "Trace",
    "TraceStep",
    "Update",
    "Value",
    "action",
    "claimed",
    "define",
    "initial",
    "invariant",
    "leads_to",
    "lemma",
    "load",
    "majority",
    "refines",
    "replace",
    "require",
    "show",
    "static",
    "step",
    "witness",
]
