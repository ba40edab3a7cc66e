"""What several specs name: limits of Java's numbers, Kafka's marks for what is not there, classes of errors."""

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
NO_TIMESTAMP = -1

ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
ILLEGAL_STATE = "java.lang.IllegalStateException"
NULL_POINTER = "java.lang.NullPointerException"
OUT_OF_MEMORY = "java.lang.OutOfMemoryError"
NUMBER_FORMAT = "java.lang.NumberFormatException"
KAFKA_EXCEPTION = "org.apache.kafka.common.KafkaException"
OUT_OF_RANGE = "org.apache.kafka.common.errors.OffsetOutOfRangeException"
STORAGE_EXCEPTION = "org.apache.kafka.common.errors.KafkaStorageException"
