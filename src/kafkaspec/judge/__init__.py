"""Judging what somebody else did: recorded traces, and the known deviations of released Kafka."""
