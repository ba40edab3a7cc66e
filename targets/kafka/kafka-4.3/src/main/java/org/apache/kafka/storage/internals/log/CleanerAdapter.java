package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.yammer.metrics.core.Gauge;
import com.yammer.metrics.core.MetricName;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import kafkaspec.target.CleanerManager;
import kafkaspec.target.Clock;
import kafkaspec.target.Idle;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * {@link LogCleanerManager} over {@link UnifiedLog}s.
 *
 * <p>The logs are Kafka's, and so are their segments once something is appended. Where the specification says that a
 * log has changed, and what it looks like now, the log is built again around segments that only say so ({@link Told}).
 */
public final class CleanerAdapter extends CleanerManager {

    private final LogDirFailureChannel failures = new LogDirFailureChannel(8);
    private final BrokerTopicStats stats = new BrokerTopicStats();
    private final Map<Map<String, Object>, LogConfig> configs = new HashMap<>();
    private final Time time = new Clock(() -> now);

    @Override
    protected Manager open(List<File> directories) {
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>();
        forgetGauges(directories);
        return new TheManager(new LogCleanerManager(directories, logs, failures), logs);
    }

    /** The gauges of a manager stay registered when it is gone, and a new one's do not replace them. */
    private static void forgetGauges(List<File> directories) {
        var registry = KafkaYammerMetrics.defaultRegistry();
        for (MetricName name : List.copyOf(registry.allMetrics().keySet())) {
            if (name.getType().equals("LogCleanerManager")
                    && directories.stream().anyMatch(dir -> name.getMBeanName().contains(dir.getPath()))) {
                registry.removeMetric(name);
            }
        }
    }

    private static Number gauge(String gauge, File dir) {
        for (var metric : KafkaYammerMetrics.defaultRegistry().allMetrics().entrySet()) {
            MetricName name = metric.getKey();
            if (name.getName().equals(gauge) && name.getMBeanName().contains(dir.getPath())) {
                return (Number) ((Gauge<?>) metric.getValue()).value();
            }
        }
        throw new AdapterFailure("no gauge " + gauge);
    }

    @Override
    protected Log log(String partition, File directory) throws Exception {
        return new TheLog(partition(partition), directory);
    }

    @Override
    protected Offsets cleanableOffsets(Log log, Long lastClean) throws Exception {
        var found = LogCleanerManager.cleanableOffsets(((TheLog) log).log, Optional.ofNullable(lastClean), now);
        return new Offsets(found.firstDirtyOffset(), found.firstUncleanableDirtyOffset(),
            found.forceUpdateCheckpoint());
    }

    @Override
    protected ToClean measured(String partition, Log log, Offsets offsets, boolean needCompactionNow) {
        return toClean(new LogToClean(((TheLog) log).log, offsets.firstDirty(), offsets.firstUncleanable(),
            needCompactionNow));
    }

    private static ToClean toClean(LogToClean log) {
        return new ToClean(log.topicPartition().toString(), log.firstDirtyOffset(), log.firstUncleanableOffset(),
            log.cleanBytes(), log.cleanableBytes(), log.totalBytes(), log.cleanableRatio(), log.needCompactionNow());
    }

    private static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        return new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
    }

    private final class TheManager implements Manager {
        private final LogCleanerManager manager;
        private final ConcurrentMap<TopicPartition, UnifiedLog> logs;

        TheManager(LogCleanerManager manager, ConcurrentMap<TopicPartition, UnifiedLog> logs) {
            this.manager = manager;
            this.logs = logs;
        }

        @Override
        public void know(String partition, Log log) {
            logs.put(partition(partition), ((TheLog) log).log);
        }

        @Override
        public void forget(String partition) {
            logs.remove(partition(partition));
        }

        @Override
        public String state(String partition) {
            LogCleaningState state = manager.cleaningState(partition(partition)).orElse(null);
            if (state instanceof LogCleaningState.LogCleaningPaused paused) {
                return "paused(" + paused.pausedCount() + ")";
            }
            return state == null ? "none" : state instanceof LogCleaningState.LogCleaningAborted ? "aborted"
                : "inProgress";
        }

        @Override
        public void abortAndPauseCleaning(String partition) {
            manager.abortAndPauseCleaning(partition(partition));
        }

        @Override
        public void abortCleaning(String partition) {
            manager.abortCleaning(partition(partition));
        }

        @Override
        public void resumeCleaning(String partition) {
            manager.resumeCleaning(Set.of(partition(partition)));
        }

        @Override
        public void doneCleaning(String partition, File dir, long endOffset) {
            manager.doneCleaning(partition(partition), dir, endOffset);
        }

        @Override
        public void doneDeleting(String partition) {
            manager.doneDeleting(List.of(partition(partition)));
        }

        @Override
        public void checkCleaningAborted(String partition) {
            manager.checkCleaningAborted(partition(partition));
        }

        @Override
        public Collection<String> pauseCleaningForNonCompactedPartitions() {
            return manager.pauseCleaningForNonCompactedPartitions().stream().map(e -> e.getKey().toString()).toList();
        }

        @Override
        public Collection<String> deletableLogs() {
            return manager.deletableLogs().keySet().stream().map(TopicPartition::toString).toList();
        }

        @Override
        public void markPartitionUncleanable(File dir, String partition) {
            manager.markPartitionUncleanable(dir.toString(), partition(partition));
        }

        @Override
        public void maintainUncleanablePartitions() {
            manager.maintainUncleanablePartitions();
        }

        @Override
        public Collection<String> uncleanablePartitions(File dir) {
            return manager.uncleanablePartitions(dir.toString()).stream().map(TopicPartition::toString).toList();
        }

        @Override
        public Number uncleanableBytes(File dir) {
            return gauge("uncleanable-bytes", dir);
        }

        @Override
        public void updateCheckpoints(File dir, String update, Long offset, String remove) {
            manager.updateCheckpoints(dir,
                Optional.ofNullable(update).map(p -> Map.entry(partition(p), offset)),
                Optional.ofNullable(remove).map(CleanerAdapter::partition));
        }

        @Override
        public void maybeTruncateCheckpoint(File dir, String partition, long offset) {
            manager.maybeTruncateCheckpoint(dir, partition(partition), offset);
        }

        @Override
        public void alterCheckpointDir(String partition, File source, File dest) {
            manager.alterCheckpointDir(partition(partition), source, dest);
        }

        @Override
        public void handleLogDirFailure(File dir) {
            manager.handleLogDirFailure(dir.toString());
        }

        @Override
        public Grab grabFilthiestCompactedLog() {
            PreCleanStats stats = new PreCleanStats();
            ToClean found = manager.grabFilthiestCompactedLog(time, stats).map(CleanerAdapter::toClean).orElse(null);
            return new Grab(found, stats.cleanablePartitions(), stats.delayedPartitions(),
                stats.maxCompactionDelayMs());
        }
    }

    /** A log in its directory. Leader epochs and producers are kept from one shape to the next: nothing shows them. */
    private final class TheLog implements Log {
        private final TopicPartition partition;
        private final File dir;
        private final LeaderEpochFileCache epochs;
        private final ProducerStateManager producers;
        private final Map<String, Object> settings = new HashMap<>();
        private UnifiedLog log;

        TheLog(TopicPartition partition, File dir) throws IOException {
            this.partition = partition;
            this.dir = dir;
            epochs = new LeaderEpochFileCache(partition,
                new LeaderEpochCheckpointFile(new File(dir, "leader-epoch-checkpoint"), failures), Idle.SCHEDULER);
            producers = new ProducerStateManager(partition, dir, 60_000, new ProducerStateManagerConfig(60_000, false),
                time);
        }

        @Override
        public void become(JsonNode given, Shape shape) throws IOException {
            if (given != null) {
                settings.clear();
                settings.put(TopicConfig.CLEANUP_POLICY_CONFIG, "compact");
                given.fields().forEachRemaining(e -> {
                    switch (e.getKey()) {
                        case "partition", "logDir" -> { }
                        case "segment.bytes" -> // the public setting has a least value
                            settings.put(LogConfig.INTERNAL_SEGMENT_BYTES_CONFIG, e.getValue().asText());
                        default -> settings.put(e.getKey(), e.getValue().asText());
                    }
                });
            }
            if (log != null) {
                for (LogSegment segment : log.logSegments()) {
                    segment.deleteIfExists();
                }
            }
            LogConfig config = config();
            LogSegments segments = new LogSegments(partition);
            int last = shape.segments().size() - 1;
            for (int n = 0; n < last; n++) {
                segments.add(new Told(shape.segments().get(n)));
            }
            Segment active = shape.segments().get(last);
            segments.add(active.size() == 0
                ? LogSegment.open(dir, active.baseOffset(), config, time, 0, false)
                : new Begun(dir, active, config));
            log = new Quiet(shape.logStartOffset(),
                new LocalLog(dir, config, segments, 0,
                    new LogOffsetMetadata(shape.logEndOffset(), active.baseOffset(), active.size()), Idle.SCHEDULER, time,
                    partition, failures),
                epochs, producers);
            log.updateHighWatermark(shape.lastStableOffset()); // without transactions one is the other
        }

        private LogConfig config() {
            return configs.computeIfAbsent(Map.copyOf(settings), LogConfig::new);
        }

        @Override
        public void policy(String cleanupPolicy) {
            settings.put(TopicConfig.CLEANUP_POLICY_CONFIG, cleanupPolicy);
            log.updateConfig(config());
        }

        @Override
        public Shape shape() throws IOException {
            List<Segment> segments = new ArrayList<>();
            for (LogSegment s : log.logSegments()) {
                // an empty one would map its time index to say that it has no timestamp
                long largest = s instanceof Told told ? told.segment.largestTimestamp()
                    : s.size() == 0 ? -1 : s.maxTimestampSoFar();
                segments.add(new Segment(s.baseOffset(), s.size(), largest, -1));
            }
            return new Shape(log.logStartOffset(), log.logEndOffset(), log.lastStableOffset(), segments);
        }

        @Override
        public long append(byte[] key, byte[] value) throws IOException {
            log.appendAsLeader(MemoryRecords.withRecords(Compression.NONE, new SimpleRecord(now, key, value)), 0);
            return log.logEndOffset();
        }

        @Override
        public void highWatermarkToEnd() throws IOException {
            log.updateHighWatermark(log.logEndOffset());
        }

        @Override
        public boolean maybeIncrementLogStartOffset(long offset) {
            return log.maybeIncrementLogStartOffset(offset, LogStartOffsetIncrementReason.ClientRecordDeletion);
        }
    }

    /** A log without gauges. */
    private final class Quiet extends UnifiedLog {
        Quiet(long logStartOffset, LocalLog local, LeaderEpochFileCache epochs, ProducerStateManager producers)
                throws IOException {
            super(logStartOffset, local, stats, 1 << 30, epochs, producers, Optional.empty(), false,
                LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        }

        @Override
        public void newMetrics() {
        }
    }

    /**
     * A segment that is not active and has no file: it only says how large it is and which timestamps it has, which is
     * all that the cleaner's manager asks of one.
     */
    private final class Told extends LogSegment {
        private final Segment segment;

        Told(Segment segment) {
            super(null, null, null, null, segment.baseOffset(), 4096, 0, time);
            this.segment = segment;
        }

        @Override
        public int size() {
            return segment.size();
        }

        @Override
        public long largestTimestamp() {
            return segment.largestTimestamp();
        }

        @Override
        public long getFirstBatchTimestamp() {
            return segment.firstBatchTimestamp() < 0 ? Long.MAX_VALUE : segment.firstBatchTimestamp(); // as Kafka's
        }

        @Override
        public void deleteIfExists() {
        }
    }

    /**
     * An active segment that is not empty: its file has one batch with the first timestamp and one with the largest;
     * it says that it has so many bytes more than those, or less. All else is Kafka's, appends to it included.
     */
    private final class Begun extends LogSegment {
        private final int more;

        Begun(File dir, Segment segment, LogConfig config) throws IOException {
            super(FileRecords.open(LogFileUtils.logFile(dir, segment.baseOffset(), ""), false, 0, false),
                LazyIndex.forOffset(LogFileUtils.offsetIndexFile(dir, segment.baseOffset()), segment.baseOffset(),
                    config.maxIndexSize),
                LazyIndex.forTime(LogFileUtils.timeIndexFile(dir, segment.baseOffset()), segment.baseOffset(),
                    config.maxIndexSize),
                new TransactionIndex(segment.baseOffset(),
                    LogFileUtils.transactionIndexFile(dir, segment.baseOffset())),
                segment.baseOffset(), config.indexInterval, 0, time);
            begin(segment, segment.firstBatchTimestamp());
            if (segment.largestTimestamp() != segment.firstBatchTimestamp()) {
                begin(segment, segment.largestTimestamp());
            }
            more = segment.size() - log().sizeInBytes();
        }

        private void begin(Segment segment, long timestamp) throws IOException {
            append(segment.baseOffset(), MemoryRecords.withRecords(segment.baseOffset(), Compression.NONE,
                new SimpleRecord(timestamp, new byte[1], new byte[1])));
        }

        @Override
        public int size() {
            return log().sizeInBytes() + more;
        }
    }
}
