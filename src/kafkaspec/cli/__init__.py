"""The command line: each command reads its arguments, calls one engine and prints through `kafkaspec.report`."""
