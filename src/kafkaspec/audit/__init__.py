"""Audit: what a broker's log directories hold, checked. Read-only, always; constant memory.

The subsystems bring the checks (`AUDIT` in `audits/<area>/<name>.py`); this package finds the files,
reads each once, feeds every check, and sorts what they say.
"""
