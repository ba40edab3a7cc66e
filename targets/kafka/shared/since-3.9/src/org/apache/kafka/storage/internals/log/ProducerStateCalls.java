package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import kafka.log.*; // LocalLog has moved from here to this package
import kafkaspec.target.Clock;
import kafkaspec.target.Idle;
import kafkaspec.target.ProducerState;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.*; // MemoryRecords and those about it have moved from here
import org.apache.kafka.common.record.internal.*; // to here
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;

/**
 * {@link ProducerStateManager}, {@link ProducerAppendInfo} and {@link ProducerStateEntry}; and a log over the same
 * manager for what a log does with a batch.
 */
abstract class ProducerStateCalls extends ProducerState {
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);
    static final int LEADER_EPOCH = 0;
    private static final short NO_TRANSACTION_VERSION = -1;
    private static final LogConfig CONFIG = new LogConfig(Map.of(
        TopicConfig.SEGMENT_MS_CONFIG, Long.MAX_VALUE,
        TopicConfig.MESSAGE_TIMESTAMP_BEFORE_MAX_MS_CONFIG, Long.MAX_VALUE,
        TopicConfig.MESSAGE_TIMESTAMP_AFTER_MAX_MS_CONFIG, Long.MAX_VALUE));

    private final Time time = new Clock(() -> now);
    private Watched manager;
    private QuietLog log;
    private LocalLog localLog;
    private Path logDirectory;
    private long written;

    // ---- what differs between the releases

    /** {@link ProducerAppendInfo#appendEndTxnMarker}. */
    abstract Optional<CompletedTxn> appendEndTxnMarker(ProducerAppendInfo info, Marker m, EndTransactionMarker marker);

    abstract Ended ended(CompletedTxn done, long lastStableOffset);

    /** {@link ProducerStateManager#maybeCreateVerificationStateEntry}. */
    abstract VerificationStateEntry verificationEntry(ProducerStateManager manager, long producerId, int sequence,
                                                      short epoch, boolean epochBump);

    abstract Verification shown(VerificationStateEntry v);

    /** An entry with the fields that its snapshot has, in their order. */
    abstract ProducerStateEntry entry(long[] fields);

    /** First and last sequence, first and last offset, timestamp. */
    abstract long[] numbers(BatchMetadata batch);

    // ---- what is alike

    /** The manager; what a log asks of it on its way is noted. */
    private final class Watched extends ProducerStateManager {
        private final List<Long> started = new ArrayList<>();
        private Ended ended;

        Watched(File directory, Config config, Time time) throws IOException {
            super(PARTITION, directory, config.maxTransactionTimeoutMs(),
                new ProducerStateManagerConfig(config.producerIdExpirationMs(), config.verification()), time);
        }

        @Override
        public void update(ProducerAppendInfo info) {
            info.startedTransactions().forEach(t -> started.add(t.firstOffset.messageOffset));
            super.update(info);
        }

        @Override
        public long lastStableOffset(CompletedTxn done) {
            long stable = super.lastStableOffset(done);
            ended = ended(done, stable);
            return stable;
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
        manager = new Watched(directory.toFile(), config, time);
    }

    // ---- the manager alone, called as a log calls it

    @Override
    protected List<Long> appendDataBatch(Data d) {
        ProducerAppendInfo info = manager.fresh().prepareUpdate(d.producerId(), AppendOrigin.valueOf(d.origin()));
        info.appendDataBatch(d.epoch(), d.firstSequence(), d.lastSequence(), d.timestamp(),
            new LogOffsetMetadata(d.firstOffset()), d.lastOffset(), d.transactional());
        manager.update(info);
        manager.updateMapEndOffset(d.lastOffset() + 1);
        return manager.started;
    }

    @Override
    protected Ended appendEndTxnMarker(Marker m) {
        ProducerAppendInfo info = manager.fresh().prepareUpdate(m.producerId(), AppendOrigin.valueOf(m.origin()));
        Optional<CompletedTxn> done = appendEndTxnMarker(info, m, kafkaMarker(m));
        return taken(info, done, m.offset());
    }

    /** The manager, with nothing noted yet. */
    final ProducerStateManager fresh() {
        return manager.fresh();
    }

    /** What a log does with what the batch was about. */
    final Ended taken(ProducerAppendInfo info, Optional<CompletedTxn> done, long offset) {
        manager.update(info);
        done.ifPresent(manager::lastStableOffset);
        done.ifPresent(manager::completeTxn);
        manager.updateMapEndOffset(offset + 1);
        return manager.ended;
    }

    // ---- a log over the manager

    /**
     * A log whose next offset is this one. Offsets that the manager has passed by itself are a gap in the log; if the
     * manager has gone back, the log is another one, empty.
     */
    private QuietLog log(long nextOffset) throws IOException {
        if (log != null && nextOffset < written) {
            closeLog();
        }
        if (log == null) {
            logDirectory = logDirectory();
            File dir = logDirectory.toFile();
            LogDirFailureChannel channel = new LogDirFailureChannel(1);
            LogSegments segments = new LogSegments(PARTITION);
            segments.add(LogSegment.open(dir, 0, CONFIG, time, CONFIG.initFileSize(), false));
            localLog = new LocalLog(dir, CONFIG, segments, 0, new LogOffsetMetadata(0, 0, 0),
                Idle.SCHEDULER, time, PARTITION, channel);
            LeaderEpochFileCache epochs = new LeaderEpochFileCache(PARTITION,
                new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(dir), channel), Idle.SCHEDULER);
            log = new QuietLog(0, localLog, Integer.MAX_VALUE, epochs, manager);
            written = 0;
        }
        localLog.updateLogEndOffset(nextOffset);
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
        AppendOrigin origin = AppendOrigin.valueOf(d.origin());
        SimpleRecord[] records = new SimpleRecord[d.count()];
        for (int n = 0; n < records.length; n++) {
            records[n] = new SimpleRecord(d.timestamp(), new byte[] {1});
        }
        boolean follower = origin == AppendOrigin.REPLICATION;
        MemoryRecords batch = MemoryRecords.withRecords(RecordBatch.MAGIC_VALUE_V2, follower ? d.firstOffset() : 0,
            Compression.NONE, TimestampType.CREATE_TIME, d.producerId(), d.epoch(), d.firstSequence(), LEADER_EPOCH,
            d.transactional(), records);
        long before = manager.fresh().mapEndOffset();
        VerificationGuard guard = (VerificationGuard) guard(d.guard());
        QuietLog target = log(d.firstOffset());
        LogAppendInfo info = follower
            ? target.appendAsFollower(batch, LEADER_EPOCH)
            : target.append(batch, LEADER_EPOCH, origin, guard == null ? VerificationGuard.SENTINEL : guard,
                NO_TRANSACTION_VERSION);
        if (manager.mapEndOffset() == before) { // nothing was appended: the answer is that of the batch that is there
            return duplicate(d.firstSequence(), d.lastSequence(), info.firstOffset(), info.lastOffset(),
                info.logAppendTime());
        }
        written = manager.mapEndOffset();
        return started(manager.started);
    }

    @Override
    protected Ended endTransaction(Marker m) throws Exception {
        AppendOrigin origin = AppendOrigin.valueOf(m.origin());
        boolean follower = origin == AppendOrigin.REPLICATION;
        MemoryRecords batch = MemoryRecords.withEndTransactionMarker(follower ? m.offset() : 0, m.timestamp(),
            LEADER_EPOCH, m.producerId(), m.epoch(), kafkaMarker(m));
        manager.fresh();
        QuietLog target = log(m.offset());
        if (follower) {
            target.appendAsFollower(batch, LEADER_EPOCH);
        } else {
            target.append(batch, LEADER_EPOCH, origin, VerificationGuard.SENTINEL, m.transactionVersion());
        }
        written = manager.mapEndOffset();
        return manager.ended;
    }

    static EndTransactionMarker kafkaMarker(Marker m) {
        return new EndTransactionMarker(ControlRecordType.valueOf(m.type()), m.coordinatorEpoch());
    }

    @Override
    protected Object startVerification(long producerId, int sequence, short epoch, boolean epochBump) throws Exception {
        VerificationGuard guard =
            log(manager.mapEndOffset()).startVerification(producerId, sequence, epoch, epochBump);
        return guard == VerificationGuard.SENTINEL ? null : guard;
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
        return manager.lastEntry(producerId).flatMap(e -> e.findDuplicateBatch(batch))
            .map(this::numbers).orElse(null);
    }

    @Override
    protected Verification verification(long producerId) {
        VerificationStateEntry v = manager.verificationStateEntry(producerId);
        return v == null ? null : shown(v);
    }

    @Override
    protected Verification maybeCreateVerification(long producerId, int sequence, short epoch, boolean epochBump) {
        return shown(verificationEntry(manager, producerId, sequence, epoch, epochBump));
    }

    @Override
    protected Object guardOf(long producerId) {
        return manager.verificationStateEntry(producerId).verificationGuard();
    }

    @Override
    protected void clearVerification(long producerId) {
        manager.clearVerificationStateEntry(producerId);
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
    protected void takeSnapshot() throws IOException {
        manager.takeSnapshot();
    }

    @Override
    protected void truncateAndReload(long logStartOffset, long logEndOffset, long currentTimeMs) throws IOException {
        manager.truncateAndReload(logStartOffset, logEndOffset, currentTimeMs);
    }

    @Override
    protected void truncateFullyAndStartAt(long offset) throws IOException {
        manager.truncateFullyAndStartAt(offset);
    }

    @Override
    protected void onLogStartOffsetIncremented(long logStartOffset) {
        manager.onLogStartOffsetIncremented(logStartOffset);
    }

    @Override
    protected void deleteSnapshotsBefore(long offset) throws IOException {
        manager.deleteSnapshotsBefore(offset);
    }

    @Override
    protected void removeStraySnapshots(List<Long> segmentBaseOffsets) throws IOException {
        manager.removeStraySnapshots(segmentBaseOffsets);
    }

    @Override
    protected void writeSnapshot(File file, List<long[]> entries) throws IOException {
        Map<Long, ProducerStateEntry> all = new LinkedHashMap<>();
        for (long[] fields : entries) {
            all.put(fields[0], entry(fields));
        }
        ProducerStateManager.writeSnapshot(file, all, false);
    }

    @Override
    protected List<long[]> readSnapshot(File file) throws IOException {
        return ProducerStateManager.readSnapshot(file).stream().map(e -> new long[] {
            e.producerId(), e.producerEpoch(), e.lastSeq(), e.lastDataOffset(), e.lastOffsetDelta(), e.lastTimestamp(),
            e.coordinatorEpoch(), e.currentTxnFirstOffset().orElse(-1)}).toList();
    }

    @Override
    protected List<Producer> readEmptiedMarker(File none, ByteBuffer into, long producerId, short epoch, long offset,
                                               long timestamp) throws IOException {
        Watched other = new Watched(none, new Config(0, Integer.MAX_VALUE, false), time);
        DefaultRecordBatch.writeEmptyHeader(into, RecordBatch.CURRENT_MAGIC_VALUE, producerId, epoch,
            RecordBatch.NO_SEQUENCE, offset, offset, LEADER_EPOCH, TimestampType.CREATE_TIME, timestamp, true, true);
        ProducerAppendInfo info = other.prepareUpdate(producerId, AppendOrigin.REPLICATION);
        info.append(MemoryRecords.readableRecords(into.flip()).batches().iterator().next(), Optional.empty());
        other.update(info);
        return producers(other);
    }

    // ---- what is shown

    private static Long number(OptionalLong n) {
        return n.isPresent() ? n.getAsLong() : null;
    }

    private List<Producer> producers(ProducerStateManager of) {
        List<Producer> producers = new ArrayList<>();
        for (ProducerStateEntry e : of.activeProducers().values()) {
            producers.add(new Producer(e.producerId(), e.producerEpoch(), e.coordinatorEpoch(), e.lastTimestamp(),
                e.lastSeq(), number(e.currentTxnFirstOffset()),
                e.batchMetadata().stream().map(this::numbers).toList()));
        }
        return producers;
    }

    @Override
    protected Shown shown() {
        return new Shown(manager.mapEndOffset(), manager.firstUnstableOffset().map(o -> o.messageOffset).orElse(null),
            number(manager.firstUndecidedOffset()), producers(manager), manager.hasLateTransaction(now));
    }

    @Override
    protected boolean knowsSnapshot(long offset) {
        return manager.snapshotFileForOffset(offset).isPresent();
    }

    @Override
    protected List<Long> latestAndOldestSnapshot() {
        return manager.latestSnapshotOffset().isEmpty() ? List.of()
            : List.of(manager.latestSnapshotOffset().getAsLong(), manager.oldestSnapshotOffset().getAsLong());
    }

    @Override
    protected boolean verifies() {
        return true;
    }

    @Override
    protected boolean knowsLateTransactions() {
        return true;
    }

    @Override
    public void close() throws Exception {
        closeLog();
        super.close();
    }
}
