package kafka.log;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import kafka.api.ApiVersion;
import kafka.server.BrokerTopicStats;
import kafka.server.LogDirFailureChannel;
import kafka.server.LogOffsetMetadata;
import kafkaspec.target.Clock;
import kafkaspec.target.Idle;
import kafkaspec.target.ProducerState;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Time;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.collection.mutable.LinkedHashMap;
import scala.collection.mutable.Queue;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The Scala classes {@link ProducerStateManager}, {@link ProducerAppendInfo} and {@link ProducerStateEntry}; and
 * {@link Log} over the same manager for what a log does with a batch. There are no verifications yet, and markers have
 * no transaction version: what is asked with one is asked without.
 */
public final class ProducerStateAdapter extends ProducerState {
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);
    private static final int LEADER_EPOCH = 0;
    private static final LogConfig CONFIG = config();
    private static final Method MOVE_END = accessible(Log.class, "updateLogEndOffset", long.class);

    private final BrokerTopicStats stats = new BrokerTopicStats();
    private final Time time = new Clock(() -> now);
    private Watched manager;
    private Log log;
    private Path logDirectory;
    private long written;

    private static LogConfig config() {
        Properties properties = new Properties();
        properties.put(LogConfig.SegmentMsProp(), Long.toString(Long.MAX_VALUE));
        properties.put(LogConfig.MessageTimestampDifferenceMaxMsProp(), Long.toString(Long.MAX_VALUE));
        return LogConfig.apply(properties, LogConfig.apply$default$2());
    }

    private static Method accessible(Class<?> of, String name, Class<?>... types) {
        try {
            Method method = of.getDeclaredMethod(name, types);
            method.setAccessible(true);
            return method;
        } catch (NoSuchMethodException e) {
            throw new AdapterFailure(name, e);
        }
    }

    /**
     * The manager; what a log asks of it on its way is noted. While a log is made over it, which would load it, or
     * the log's end is moved, it stays as it is.
     */
    private static final class Watched extends ProducerStateManager {
        private final List<Long> started = new ArrayList<>();
        private Ended ended;
        private boolean still;

        Watched(File directory, Config config) {
            super(PARTITION, directory, config.producerIdExpirationMs());
        }

        @Override
        public void update(ProducerAppendInfo info) {
            CollectionConverters.asJava(info.startedTransactions())
                .forEach(t -> started.add(t.firstOffset().messageOffset()));
            super.update(info);
        }

        @Override
        public long lastStableOffset(CompletedTxn done) {
            long stable = super.lastStableOffset(done);
            ended = new Ended(done.producerId(), done.firstOffset(), done.lastOffset(), done.isAborted(), stable);
            return stable;
        }

        @Override
        public Option<LogOffsetMetadata> firstUnstableOffset() {
            return still ? Option.empty() : super.firstUnstableOffset();
        }

        @Override
        public boolean isEmpty() {
            return still || super.isEmpty();
        }

        @Override
        public void removeStraySnapshots(Seq<Object> segmentBaseOffsets) {
            if (!still) {
                super.removeStraySnapshots(segmentBaseOffsets);
            }
        }

        @Override
        public void truncateAndReload(long logStartOffset, long logEndOffset, long currentTimeMs) {
            if (!still) {
                super.truncateAndReload(logStartOffset, logEndOffset, currentTimeMs);
            }
        }

        @Override
        public void updateMapEndOffset(long lastOffset) {
            if (!still) {
                super.updateMapEndOffset(lastOffset);
            }
        }

        @Override
        public void takeSnapshot() {
            if (!still) {
                super.takeSnapshot();
            }
        }

        @Override
        public void onHighWatermarkUpdated(long highWatermark) {
            if (!still) {
                super.onHighWatermarkUpdated(highWatermark);
            }
        }

        @Override
        public void onLogStartOffsetIncremented(long logStartOffset) {
            if (!still) {
                super.onLogStartOffsetIncremented(logStartOffset);
            }
        }

        Watched fresh() {
            started.clear();
            ended = null;
            return this;
        }
    }

    @Override
    protected void open(Config config) throws Exception {
        closeLog();
        manager = new Watched(directory.toFile(), config);
    }

    private static AppendOrigin origin(String name) {
        return switch (name) {
            case "CLIENT" -> AppendOrigin.Client$.MODULE$;
            case "COORDINATOR" -> AppendOrigin.Coordinator$.MODULE$;
            default -> AppendOrigin.Replication$.MODULE$;
        };
    }

    // ---- the manager alone, called as a log calls it

    @Override
    protected List<Long> appendDataBatch(Data d) {
        ProducerAppendInfo info = manager.fresh().prepareUpdate(d.producerId(), origin(d.origin()));
        info.appendDataBatch(d.epoch(), d.firstSequence(), d.lastSequence(), d.timestamp(), at(d.firstOffset()),
            d.lastOffset(), d.transactional());
        manager.update(info);
        manager.updateMapEndOffset(d.lastOffset() + 1);
        return manager.started;
    }

    @Override
    protected Ended appendEndTxnMarker(Marker m) {
        ProducerAppendInfo info = manager.fresh().prepareUpdate(m.producerId(), origin(m.origin()));
        Option<CompletedTxn> done = info.appendEndTxnMarker(kafkaMarker(m), m.epoch(), m.offset(), m.timestamp());
        manager.update(info);
        if (done.isDefined()) {
            manager.lastStableOffset(done.get());
            manager.completeTxn(done.get());
        }
        manager.updateMapEndOffset(m.offset() + 1);
        return manager.ended;
    }

    private static LogOffsetMetadata at(long offset) {
        return new LogOffsetMetadata(offset, -1L, -1);
    }

    // ---- a log over the manager

    /**
     * A log whose next offset is this one. Offsets that the manager has passed by itself are a gap in the log; if the
     * manager has gone back, the log is another one, empty.
     */
    private Log log(long nextOffset) throws Exception {
        if (log != null && nextOffset < written) {
            closeLog();
        }
        if (log == null) {
            logDirectory = logDirectory();
            manager.still = true;
            log = new Log(logDirectory.toFile(), CONFIG, 0, 0, Idle.SCHEDULER, stats, time, Integer.MAX_VALUE,
                Integer.MAX_VALUE, PARTITION, manager, new LogDirFailureChannel(1), true, true);
            written = 0;
        }
        manager.still = true;
        try {
            MOVE_END.invoke(log, nextOffset);
        } catch (InvocationTargetException e) {
            throw new AdapterFailure("the log's end", e);
        }
        manager.still = false;
        return log;
    }

    private void closeLog() throws IOException {
        if (log != null) {
            log.removeLogMetrics();
            log.closeHandlers();
            Scratch.delete(logDirectory.getParent());
            log = null;
        }
    }

    @Override
    protected Object produce(Data d) throws Exception {
        AppendOrigin origin = origin(d.origin());
        SimpleRecord[] records = new SimpleRecord[d.count()];
        for (int n = 0; n < records.length; n++) {
            records[n] = new SimpleRecord(d.timestamp(), new byte[] {1});
        }
        boolean follower = origin == AppendOrigin.Replication$.MODULE$;
        MemoryRecords batch = MemoryRecords.withRecords(RecordBatch.MAGIC_VALUE_V2, follower ? d.firstOffset() : 0,
            CompressionType.NONE, TimestampType.CREATE_TIME, d.producerId(), d.epoch(), d.firstSequence(), LEADER_EPOCH,
            d.transactional(), records);
        long before = manager.fresh().mapEndOffset();
        Log target = log(d.firstOffset());
        LogAppendInfo info = follower
            ? target.appendAsFollower(batch)
            : target.appendAsLeader(batch, LEADER_EPOCH, origin, ApiVersion.latestVersion());
        if (manager.mapEndOffset() == before) { // nothing was appended: the answer is that of the batch that is there
            return duplicate(d.firstSequence(), d.lastSequence(), info.firstOffset().get().messageOffset(),
                info.lastOffset(), info.logAppendTime());
        }
        written = manager.mapEndOffset();
        return started(manager.started);
    }

    @Override
    protected Ended endTransaction(Marker m) throws Exception {
        AppendOrigin origin = origin(m.origin());
        boolean follower = origin == AppendOrigin.Replication$.MODULE$;
        MemoryRecords batch = MemoryRecords.withEndTransactionMarker(follower ? m.offset() : 0, m.timestamp(),
            LEADER_EPOCH, m.producerId(), m.epoch(), kafkaMarker(m));
        manager.fresh();
        Log target = log(m.offset());
        if (follower) {
            target.appendAsFollower(batch);
        } else {
            target.appendAsLeader(batch, LEADER_EPOCH, origin, ApiVersion.latestVersion());
        }
        written = manager.mapEndOffset();
        return manager.ended;
    }

    private static EndTransactionMarker kafkaMarker(Marker m) {
        return new EndTransactionMarker(ControlRecordType.valueOf(m.type()), m.coordinatorEpoch());
    }

    // ---- the manager's other calls

    /** The batch that is looked for may have any two sequences, which a batch of records cannot: it has nothing else. */
    @Override
    protected long[] findDuplicateBatch(long producerId, short epoch, int firstSequence, int lastSequence) {
        RecordBatch batch = (RecordBatch) Proxy.newProxyInstance(RecordBatch.class.getClassLoader(),
            new Class<?>[] {RecordBatch.class}, (proxy, method, arguments) -> switch (method.getName()) {
                case "producerEpoch" -> epoch;
                case "baseSequence" -> firstSequence;
                case "lastSequence" -> lastSequence;
                default -> throw new AdapterFailure(method.getName());
            });
        Option<ProducerStateEntry> entry = manager.lastEntry(producerId);
        Option<BatchMetadata> there = entry.isEmpty() ? Option.empty() : entry.get().findDuplicateBatch(batch);
        return there.isEmpty() ? null : numbers(there.get());
    }

    @Override
    protected void onHighWatermarkUpdated(long highWatermark) {
        manager.onHighWatermarkUpdated(highWatermark);
    }

    @Override
    protected void removeExpiredProducers(long currentTimeMs) {
        manager.removeExpiredProducers(currentTimeMs);
    }

    @Override
    protected void takeSnapshot() {
        manager.takeSnapshot();
    }

    @Override
    protected void truncateAndReload(long logStartOffset, long logEndOffset, long currentTimeMs) {
        manager.truncateAndReload(logStartOffset, logEndOffset, currentTimeMs);
    }

    @Override
    protected void truncateFullyAndStartAt(long offset) {
        manager.truncateFullyAndStartAt(offset);
    }

    @Override
    protected void onLogStartOffsetIncremented(long logStartOffset) {
        manager.onLogStartOffsetIncremented(logStartOffset);
    }

    @Override
    protected void deleteSnapshotsBefore(long offset) {
        manager.deleteSnapshotsBefore(offset);
    }

    @Override
    protected void removeStraySnapshots(List<Long> segmentBaseOffsets) {
        manager.removeStraySnapshots(
            CollectionConverters.asScala(new ArrayList<Object>(segmentBaseOffsets)).toSeq());
    }

    @Override
    protected void writeSnapshot(File file, List<long[]> entries) {
        LinkedHashMap<Object, ProducerStateEntry> all = new LinkedHashMap<>();
        for (long[] x : entries) {
            ProducerStateEntry e = new ProducerStateEntry(x[0], Queue.<BatchMetadata>newBuilder().result(), (short) x[1],
                (int) x[6], x[5], x[7] < 0 ? Option.empty() : Option.apply((Object) x[7]));
            if (x[3] >= 0) {
                e.addBatch((short) x[1], (int) x[2], x[3], (int) x[4], x[5]);
            }
            all.put(x[0], e);
        }
        ProducerStateManager$.MODULE$.kafka$log$ProducerStateManager$$writeSnapshot(file, all);
    }

    @Override
    protected List<long[]> readSnapshot(File file) {
        List<long[]> out = new ArrayList<>();
        for (ProducerStateEntry e : CollectionConverters.asJava(ProducerStateManager.readSnapshot(file))) {
            out.add(new long[] {e.producerId(), e.producerEpoch(), e.lastSeq(), e.lastDataOffset(), e.lastOffsetDelta(),
                e.lastTimestamp(), e.coordinatorEpoch(),
                e.currentTxnFirstOffset().isEmpty() ? -1 : (Long) e.currentTxnFirstOffset().get()});
        }
        return out;
    }

    @Override
    protected List<Producer> readEmptiedMarker(File none, ByteBuffer into, long producerId, short epoch, long offset,
                                               long timestamp) {
        Watched other = new Watched(none, new Config(0, Integer.MAX_VALUE, false));
        DefaultRecordBatch.writeEmptyHeader(into, RecordBatch.CURRENT_MAGIC_VALUE, producerId, epoch,
            RecordBatch.NO_SEQUENCE, offset, offset, LEADER_EPOCH, TimestampType.CREATE_TIME, timestamp, true, true);
        ProducerAppendInfo info = other.prepareUpdate(producerId, AppendOrigin.Replication$.MODULE$);
        info.append(MemoryRecords.readableRecords(into.flip()).batches().iterator().next(), Option.empty());
        other.update(info);
        return producers(other);
    }

    // ---- what is shown

    private static long[] numbers(BatchMetadata b) {
        return new long[] {b.firstSeq(), b.lastSeq(), b.firstOffset(), b.lastOffset(), b.timestamp()};
    }

    private static Long number(Option<Object> n) {
        return n.isEmpty() ? null : (Long) n.get();
    }

    private static List<Producer> producers(ProducerStateManager of) {
        List<Producer> producers = new ArrayList<>();
        for (ProducerStateEntry e : CollectionConverters.asJava(of.activeProducers()).values()) {
            producers.add(new Producer(e.producerId(), e.producerEpoch(), e.coordinatorEpoch(), e.lastTimestamp(),
                e.lastSeq(), number(e.currentTxnFirstOffset()), CollectionConverters.asJava(e.batchMetadata()).stream()
                    .map(ProducerStateAdapter::numbers).toList()));
        }
        return producers;
    }

    @Override
    protected Shown shown() {
        Option<LogOffsetMetadata> unstable = manager.firstUnstableOffset();
        return new Shown(manager.mapEndOffset(), unstable.isEmpty() ? null : unstable.get().messageOffset(),
            number(manager.firstUndecidedOffset()), producers(manager), false);
    }

    @Override
    protected boolean knowsSnapshot(long offset) {
        try {
            Field snapshots = ProducerStateManager.class.getDeclaredField("snapshots");
            snapshots.setAccessible(true);
            return ((Map<?, ?>) snapshots.get(manager)).containsKey(offset);
        } catch (ReflectiveOperationException e) {
            throw new AdapterFailure("snapshots", e);
        }
    }

    @Override
    protected List<Long> latestAndOldestSnapshot() {
        return manager.latestSnapshotOffset().isEmpty() ? List.of()
            : List.of(number(manager.latestSnapshotOffset()), number(manager.oldestSnapshotOffset()));
    }

    @Override
    protected boolean verifies() {
        return false;
    }

    @Override
    protected boolean knowsLateTransactions() {
        return false;
    }

    @Override
    public String named(Throwable refusal) {
        return refusal instanceof CorruptSnapshotException
            ? "org.apache.kafka.storage.internals.log.CorruptSnapshotException"
            : super.named(refusal);
    }

    @Override
    public void close() throws Exception {
        closeLog();
        super.close();
    }
}
