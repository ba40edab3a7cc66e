package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;

/** The validator of Kafka 3.9: its constructor, and how its answer is read. */
public final class ValidatorAdapter extends ValidatorCalls {
    @Override
    protected Outcome validated(
        MemoryRecords records, TopicPartition partition, Time time, CompressionType source, Compression target,
        boolean compactedTopic, byte targetMagic, TimestampType timestampType, long timestampBeforeMaxMs,
        long timestampAfterMaxMs, int partitionLeaderEpoch, AppendOrigin origin, PrimitiveRef.LongRef offset,
        LogValidator.MetricsRecorder meters) {
        LogValidator.ValidationResult result = new LogValidator(
            records, partition, time, source, target, compactedTopic, targetMagic, timestampType, timestampBeforeMaxMs,
            timestampAfterMaxMs, partitionLeaderEpoch, origin, MetadataVersion.latestProduction()
        ).validateMessagesAndAssignOffsets(offset, meters, BufferSupplier.NO_CACHING);
        return new Outcome(
            result.logAppendTimeMs, result.validatedRecords, result.maxTimestampMs,
            result.messageSizeMaybeChanged, result.recordValidationStats);
    }
}
