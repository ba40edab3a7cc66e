"""kafkaspec: Apache Kafka's core, formally specified; run it, explore it, prove it, and judge real systems by it."""

__version__ = "0.2.0"
