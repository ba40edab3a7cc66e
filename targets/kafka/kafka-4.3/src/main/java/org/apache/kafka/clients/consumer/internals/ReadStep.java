package org.apache.kafka.clients.consumer.internals;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;

/** What the consumer makes of one answer to a fetch: {@link CompletedFetch}, of a consumer that has one partition. */
public final class ReadStep {
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);

    private final LogContext context = new LogContext();
    private final SubscriptionState subscriptions = new SubscriptionState(context, AutoOffsetResetStrategy.NONE);
    private final FetchMetricsManager metrics =
        new FetchMetricsManager(new Metrics(), new FetchMetricsRegistry(Set.of(), "consumer"));
    private final Deserializers<byte[], byte[]> deserializers =
        new Deserializers<>(new ByteArrayDeserializer(), new ByteArrayDeserializer(), null);

    public ReadStep() {
        subscriptions.assignFromUser(Set.of(PARTITION));
    }

    /** Offsets of the records that are handed out. */
    public record Result(List<Long> records, long nextOffset) {
    }

    public Result of(MemoryRecords records, List<FetchResponseData.AbortedTransaction> aborted, long start,
                     boolean readCommitted) {
        FetchResponseData.PartitionData answer = new FetchResponseData.PartitionData()
            .setPartitionIndex(PARTITION.partition()).setRecords(records).setAbortedTransactions(aborted);
        CompletedFetch fetch = new CompletedFetch(context.logger(CompletedFetch.class), subscriptions,
            BufferSupplier.NO_CACHING, PARTITION, answer, new FetchMetricsAggregator(metrics, Set.of(PARTITION)), start);
        FetchConfig config = new FetchConfig(1, 1 << 20, 500, 1 << 20, Integer.MAX_VALUE, true, "",
            readCommitted ? IsolationLevel.READ_COMMITTED : IsolationLevel.READ_UNCOMMITTED);
        List<Long> offsets = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> record : fetch.fetchRecords(config, deserializers, Integer.MAX_VALUE)) {
            offsets.add(record.offset());
        }
        return new Result(offsets, fetch.nextFetchOffset());
    }
}
