"""What several rules of the audit name."""

from kafkaspec.audit.files import METADATA_TOPIC as METADATA_TOPIC

MOST_FINDINGS = 20
"""of one kind in one file: what follows is counted, not told"""
