package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import kafka.log.*; // LocalLog has moved from here to this package
import kafkaspec.target.CleanerManager;
import kafkaspec.target.Clock;
import kafkaspec.target.Gauges;
import kafkaspec.target.Idle;
import kafkaspec.target.ToldSegment;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.*; // MemoryRecords and those about it have moved from here
import org.apache.kafka.common.record.internal.*; // to here
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;

/**
 * The logs that the cleaner's manager sees, which is in the release's own class.
 *
 * <p>They are Kafka's, and so are their segments once something is appended. Where the specification says that a log
 * has changed, and what it looks like now, it is built again, around segments that only say so ({@link ToldSegment}).
 */
abstract class CleanerCalls extends CleanerManager {
    private static final short NO_TRANSACTION_VERSION = -1;

    final Time time = new Clock(() -> now);
    final LogDirFailureChannel failures = new LogDirFailureChannel(8);
    final Gauges gauges = new Gauges(KafkaYammerMetrics.defaultRegistry(), "LogCleanerManager");
    private final Map<Map<String, String>, LogConfig> configs = new HashMap<>();

    /** The setting that gives a segment's bytes without a least value. */
    abstract String segmentBytes();

    static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        return new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
    }

    static QuietLog kafkas(Log log) {
        return ((TheLog) log).log;
    }

    @Override
    protected final Log log(String partition, File directory) throws IOException {
        return new TheLog(partition(partition), directory);
    }

    /** A log in its directory. Leader epochs and producers are kept from one shape to the next: nothing shows them. */
    private final class TheLog implements Log {
        private final TopicPartition partition;
        private final File dir;
        private final LeaderEpochFileCache epochs;
        private final ProducerStateManager producers;
        private LogConfig config;
        private QuietLog log;

        TheLog(TopicPartition partition, File dir) throws IOException {
            this.partition = partition;
            this.dir = dir;
            epochs = new LeaderEpochFileCache(partition,
                new LeaderEpochCheckpointFile(new File(dir, "leader-epoch-checkpoint"), failures), Idle.SCHEDULER);
            producers = new ProducerStateManager(partition, dir, 60_000, new ProducerStateManagerConfig(60_000, false),
                time);
        }

        @Override
        public void configure(Map<String, String> settings) {
            config = configs.computeIfAbsent(Map.copyOf(settings), given -> {
                Map<String, String> named = new HashMap<>(given);
                String bytes = named.remove(TopicConfig.SEGMENT_BYTES_CONFIG);
                if (bytes != null) {
                    named.put(segmentBytes(), bytes);
                }
                return new LogConfig(named);
            });
            if (log != null) {
                log.updateConfig(config);
            }
        }

        @Override
        public void become(Shape shape) throws IOException {
            if (log != null) {
                for (LogSegment segment : log.logSegments()) {
                    segment.deleteIfExists();
                }
            }
            LogSegments segments = new LogSegments(partition);
            int last = shape.segments().size() - 1;
            for (int n = 0; n < last; n++) {
                segments.add(new ToldSegment(shape.segments().get(n), time));
            }
            Segment active = shape.segments().get(last);
            segments.add(active.size() == 0
                ? LogSegment.open(dir, active.baseOffset(), config, time, 0, false)
                : new Begun(dir, active, config));
            LocalLog local = new LocalLog(dir, config, segments, 0,
                new LogOffsetMetadata(shape.logEndOffset(), active.baseOffset(), active.size()), Idle.SCHEDULER, time,
                partition, failures);
            log = new QuietLog(shape.logStartOffset(), local, 1 << 30, epochs, producers);
            log.updateHighWatermark(shape.lastStableOffset()); // without transactions one is the other
        }

        @Override
        public Shape shape() throws IOException {
            List<Segment> segments = new ArrayList<>();
            for (LogSegment s : log.logSegments()) {
                segments.add(ToldSegment.shown(s));
            }
            return new Shape(log.logStartOffset(), log.logEndOffset(), log.lastStableOffset(), segments);
        }

        @Override
        public long append(byte[] key, byte[] value) {
            log.append(MemoryRecords.withRecords(Compression.NONE, new SimpleRecord(now, key, value)), 0,
                AppendOrigin.CLIENT, VerificationGuard.SENTINEL, NO_TRANSACTION_VERSION);
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
