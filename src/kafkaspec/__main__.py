"""`python -m kafkaspec`: the command line."""

from kafkaspec.cli.main import main

main()
