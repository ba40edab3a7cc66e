"""Audit: what a broker's log directories hold, judged. Read-only, always; constant memory.

The subsystems bring the checks (`AUDIT` in their `<name>_audit.py` beside the impl); this package finds the files,
reads each once, feeds every check, and sorts what they say.
"""
