"""`python -m kafkaspec`: the command line."""

from kafkaspec.cli import run

run()
