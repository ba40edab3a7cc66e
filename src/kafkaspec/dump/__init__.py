"""Kafka's files, readably."""
