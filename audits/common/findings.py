"""What several rules of the audit name."""

METADATA_TOPIC = "__cluster_metadata"
"""KRaft's log: no clients write to it."""
MOST_FINDINGS = 20
"""of one kind in one file: what follows is counted, not told"""
