package kafka.log;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentNavigableMap;
import kafka.api.ApiVersion$;
import kafka.metrics.KafkaYammerMetrics;
import kafka.server.BrokerTopicStats;
import kafka.server.LogDirFailureChannel;
import kafka.utils.Pool;
import kafkaspec.target.CleanerManager;
import kafkaspec.target.Clock;
import kafkaspec.target.Gauges;
import kafkaspec.target.Idle;
import kafkaspec.target.ToldSegment;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The Scala {@link LogCleanerManager} of 2.8 over {@link kafka.log.Log}s.
 *
 * <p>The logs are Kafka's, and so are their segments once something is appended. Where the specification says that a
 * log has changed, and what it looks like now, the log gets other segments, which only say so ({@link ToldSegment}).
 */
public final class CleanerAdapter extends CleanerManager {

    private final LogDirFailureChannel failures = new LogDirFailureChannel(8);
    private final BrokerTopicStats stats = new BrokerTopicStats();
    private final Gauges gauges = new Gauges(KafkaYammerMetrics.defaultRegistry(), "LogCleanerManager");
    private final Map<Map<String, String>, LogConfig> configs = new HashMap<>();
    private final Time time = new Clock(() -> now);

    @Override
    protected Manager open(List<File> directories) {
        Pool<TopicPartition, kafka.log.Log> logs = new Pool<>(Option.empty());
        gauges.forget(directories);
        return new ScalaCleanerManager<>(
            new LogCleanerManager(CollectionConverters.asScala(directories), logs, failures), logs,
            log -> ((TheLog) log).log, time, gauges);
    }

    /** 2.8 keeps uncleanable partitions that it no longer knows. */
    @Override
    public Collection<String> operations() {
        return OPERATIONS.stream().filter(o -> !o.equals("maintainUncleanablePartitions")).toList();
    }

    @Override
    protected Log log(String partition, File directory) {
        return new TheLog(ScalaCleanerManager.partition(partition), directory);
    }

    @Override
    protected Offsets cleanableOffsets(Log log, Long lastClean) {
        var found = LogCleanerManager.cleanableOffsets(((TheLog) log).log, Option.apply(lastClean), now);
        return new Offsets(found.firstDirtyOffset(), found.firstUncleanableDirtyOffset(),
            found.forceUpdateCheckpoint());
    }

    @Override
    protected ToClean measured(String partition, Log log, Offsets offsets, boolean needCompactionNow) {
        return ScalaCleanerManager.toClean(new LogToClean(ScalaCleanerManager.partition(partition),
            ((TheLog) log).log, offsets.firstDirty(), offsets.firstUncleanable(), needCompactionNow));
    }

    @Override
    public String masked(String message) {
        return super.masked(ScalaCleanerManager.asNow(message));
    }

    @Override
    public String named(Throwable thrown) {
        return ScalaCleanerManager.nameNow(thrown);
    }

    /**
     * A log in its directory, one object for all histories: it loads its segments by itself. To become another its
     * private map of segments is filled again.
     */
    private final class TheLog implements Log {
        private final TopicPartition partition;
        private final File dir;
        private LogConfig config;
        private kafka.log.Log log;

        TheLog(TopicPartition partition, File dir) {
            this.partition = partition;
            this.dir = dir;
        }

        @Override
        public void configure(Map<String, String> settings) {
            config = configs.computeIfAbsent(Map.copyOf(settings),
                s -> new LogConfig(s, CollectionConverters.asScala(Set.<String>of()).toSet()));
            if (log != null) {
                log.updateConfig(config);
            }
        }

        @Override
        public void become(Shape shape) throws Exception {
            if (log == null) {
                ProducerStateManager producers = new ProducerStateManager(partition, dir, 60_000);
                log = new kafka.log.Log(dir, config, 0, 0, Idle.SCHEDULER, stats, time, 60_000, 1 << 30, partition, producers,
                    failures, true, true);
            }
            for (LogSegment segment : CollectionConverters.asJava(log.logSegments())) {
                segment.deleteIfExists();
            }
            ConcurrentNavigableMap<Long, LogSegment> segments = segments(log);
            segments.clear();
            int last = shape.segments().size() - 1;
            for (int n = 0; n < last; n++) {
                log.addSegment(new ToldSegment(shape.segments().get(n), time));
            }
            Segment active = shape.segments().get(last);
            log.addSegment(active.size() == 0
                ? LogSegment.open(dir, active.baseOffset(), config, time, false, 0, false, "")
                : new Begun(dir, active, config));
            log.logStartOffset_$eq(shape.logStartOffset());
            UPDATE_LOG_END_OFFSET.invoke(log, shape.logEndOffset());
            log.updateHighWatermark(shape.lastStableOffset()); // without transactions one is the other
        }

        @Override
        public Shape shape() throws IOException {
            List<Segment> segments = new ArrayList<>();
            for (LogSegment s : CollectionConverters.asJava(log.logSegments())) {
                segments.add(ToldSegment.shown(s));
            }
            return new Shape(log.logStartOffset(), log.logEndOffset(), log.lastStableOffset(), segments);
        }

        @Override
        public long append(byte[] key, byte[] value) {
            log.appendAsLeader(MemoryRecords.withRecords(CompressionType.NONE, new SimpleRecord(now, key, value)), 0,
                AppendOrigin.Client$.MODULE$, ApiVersion$.MODULE$.latestVersion());
            return log.logEndOffset();
        }

        @Override
        public void highWatermarkToEnd() {
            log.updateHighWatermark(log.logEndOffset());
        }

        @Override
        public boolean maybeIncrementLogStartOffset(long offset) {
            return log.maybeIncrementLogStartOffset(offset, ClientRecordDeletion$.MODULE$);
        }
    }

    private static final Method SEGMENTS = declared("segments");
    private static final Method UPDATE_LOG_END_OFFSET = declared("updateLogEndOffset", long.class);

    private static Method declared(String name, Class<?>... parameters) {
        try {
            Method method = kafka.log.Log.class.getDeclaredMethod(name, parameters);
            method.setAccessible(true);
            return method;
        } catch (NoSuchMethodException e) {
            throw new AdapterFailure("not Kafka 2.8", e);
        }
    }

    @SuppressWarnings("unchecked")
    private static ConcurrentNavigableMap<Long, LogSegment> segments(kafka.log.Log log) throws Exception {
        return (ConcurrentNavigableMap<Long, LogSegment>) SEGMENTS.invoke(log);
    }

    /**
     * An active segment that is not empty: its file has one batch with the first timestamp and one with the largest;
     * it says that it has so many bytes more than those, or less. All else is Kafka's, appends to it included.
     */
    private final class Begun extends LogSegment {
        private final int more;

        Begun(File dir, Segment segment, LogConfig config) throws IOException {
            super(FileRecords.open(kafka.log.Log.logFile(dir, segment.baseOffset(), ""), false, 0, false),
                LazyIndex.forOffset(kafka.log.Log.offsetIndexFile(dir, segment.baseOffset(), ""), segment.baseOffset(),
                    config.maxIndexSize(), true),
                LazyIndex.forTime(kafka.log.Log.timeIndexFile(dir, segment.baseOffset(), ""), segment.baseOffset(),
                    config.maxIndexSize(), true),
                new TransactionIndex(segment.baseOffset(),
                    kafka.log.Log.transactionIndexFile(dir, segment.baseOffset(), "")),
                segment.baseOffset(), config.indexInterval(), 0, time);
            begin(segment, segment.firstBatchTimestamp());
            if (segment.largestTimestamp() != segment.firstBatchTimestamp()) {
                begin(segment, segment.largestTimestamp());
            }
            more = segment.size() - log().sizeInBytes();
        }

        private void begin(Segment segment, long timestamp) {
            append(segment.baseOffset(), timestamp, segment.baseOffset(),
                MemoryRecords.withRecords(segment.baseOffset(), CompressionType.NONE,
                    new SimpleRecord(timestamp, new byte[1], new byte[1])));
        }

        @Override
        public int size() {
            return log().sizeInBytes() + more;
        }
    }
}
