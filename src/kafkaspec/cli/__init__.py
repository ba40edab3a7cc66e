"""The command line: each command reads its arguments, calls one engine and prints through `kafkaspec.report`."""

import atexit
import gc
import sys
from typing import NoReturn

YOUNG = 50_000
"""How many new objects there are before Python looks for cycles: modules make many, and few of them."""


def run() -> NoReturn:
    """Run the command line and exit. Ctrl-C is one line and status 130 from the first import on."""
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)  # nor is it to look for cycles once more among what ends with the process
    try:
        from kafkaspec.cli.main import main

        main()
    except KeyboardInterrupt:
        from kafkaspec.cli.output import end, promise
        from kafkaspec.errors import INTERRUPTED, UserError

        promise("--json" in sys.argv[1:])
        sys.exit(end(UserError("interrupted", exit_code=INTERRUPTED)))
