"""The command line: each command reads its arguments, calls one engine and prints through `kafkaspec.report`."""

import sys
from typing import NoReturn


def run() -> NoReturn:
    """Run the command line and exit. Ctrl-C is one line and status 130 from the first import on."""
    try:
        from kafkaspec.cli.main import main

        main()
    except KeyboardInterrupt:
        from kafkaspec.cli.output import end, promise
        from kafkaspec.errors import INTERRUPTED, UserError

        promise("--json" in sys.argv[1:])
        sys.exit(end(UserError("interrupted", exit_code=INTERRUPTED)))
