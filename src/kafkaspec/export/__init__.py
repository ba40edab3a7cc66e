"""A model and its runs as texts that other tools read."""

from kafkaspec.export.itf import from_itf, itf
from kafkaspec.export.smtlib import smtlib
from kafkaspec.export.tla import tla

__all__ = ["from_itf", "itf", "smtlib", "tla"]
