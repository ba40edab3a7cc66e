"""`kafkaspec verify`: everything that is claimed, established again, as one table."""

from __future__ import annotations

from kafkaspec.cli.output import progress, tell
from kafkaspec.errors import INTERRUPTED, UserError
from kafkaspec.verify.engine import verify
from kafkaspec.workers import cores


def run(wanted: list[str], *, seeds: int, only: str | None, changed: bool, json: bool) -> int:
    """Verify the named subsystems, or all, on all cores. 0 if every row is green, 1 if a claim is false, else 2."""
    with progress("verify") as bar:
        try:
            rows = verify(wanted, seeds, only=only, jobs=cores(), changed=changed, progress=bar)
        except KeyboardInterrupt:
            raise UserError(
                "interrupted; with --changed, what held until then is not asked again", exit_code=INTERRUPTED
            ) from None
    tell(rows, json=json, together=True)
    if any(not r.ok and r.could_judge for r in rows):
        return 1
    return 0 if all(r.ok for r in rows) else 2
