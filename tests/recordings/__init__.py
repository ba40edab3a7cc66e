"""Recordings of released Kafka; README.md says how they were made."""
