"""A model and its runs as texts that other tools read."""

from kafkaspec.export.itf import from_itf, itf
from kafkaspec.export.smtlib import smtlib
from kafkaspec.export.tla import module_name, tla

__all__ = ["from_itf", "itf", "module_name", "smtlib", "tla"]
