package org.apache.kafka.storage.internals.log;

import static kafkaspec.target.Batches.object;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import kafka.log.*; // LocalLog, LogLoader and UnifiedLog have moved from here to this package
import kafkaspec.target.Adapter;
import kafkaspec.target.Batches;
import kafkaspec.target.LogDirectory;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.InconsistentTopicIdException;
import org.apache.kafka.common.errors.KafkaStorageException;
import org.apache.kafka.common.record.*; // MemoryRecords and those about it have moved from here
import org.apache.kafka.common.record.internal.*; // to here
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;

/**
 * {@link UnifiedLog} over {@link LocalLog}, one partition, one replica, without tiered storage.
 *
 * <p>The adapter adds: batches that Kafka's builder fills; for a transactional batch of a client the verification that a
 * broker asks for first; a jitter that is not drawn; a clock and a scheduler that run by {@code advance} alone. With
 * {@code failAt} the effect of that name throws an IOException in the place of the disk, before it does anything: of
 * {@code epochs} where the checkpoint file is written, whose own handler marks the directory as failed. Of {@code topicId}
 * a directory stands where Kafka would write the file, of {@code rename} where it would move a segment's; of {@code cut}
 * the segment's channel refuses. The task that writes the topic's id is held back until {@code flushMetadataFile}, and
 * one that writes leader epochs until the call is over, as a scheduler that is busy does. A crash is a copy of
 * the directory, cut, and loaded again. After each call the active segment's indexes are looked at, so that their files,
 * which Kafka makes when they are first needed, are there: which call makes them is not compared. Likewise each segment is
 * asked for its largest timestamp when it was loaded: a segment that is truncated before anybody asked forgets it.
 */
abstract class LogCalls implements Adapter {
    static final int NEVER = Integer.MAX_VALUE;

    private final Scratch scratch = new Scratch("log");
    TopicPartition partition;
    Path dir;
    LogConfig config;
    MockTime time;
    LogDirFailureChannel failures;
    QuietLog log;
    private int transactionTimeoutMs;
    private int expirationMs;
    private LeaderEpochFileCache epochs;
    private Producers producers;
    private String failAt;
    private final List<Runnable> held = new ArrayList<>();
    private final List<Runnable> soon = new ArrayList<>();

    // ---- what differs between the releases

    /** The name of segment.bytes, of any size. */
    abstract String segmentBytes();

    /** Load the log of the directory, over a {@link LocalLog} that asks {@link #refuse} before each effect. */
    abstract QuietLog loaded(boolean clean, LogSegments segments, long logStart, long recoveryPoint,
                             LeaderEpochFileCache epochs, ProducerStateManager producers, Optional<Uuid> topicId)
        throws IOException;

    abstract LogSegment roll() throws IOException;

    /** {@link UnifiedLog#maybeIncrementHighWatermark}: the old one, or null. */
    abstract LogOffsetMetadata maybeIncrementHighWatermark(LogOffsetMetadata to) throws IOException;

    abstract void assignEpochStartOffset(int leaderEpoch, long offset);

    /** {@link UnifiedLog#endOffsetForEpoch}: null if it is unknown. */
    abstract OffsetAndEpoch endOffsetForEpoch(int leaderEpoch);

    abstract int leaderEpoch(OffsetAndEpoch end);

    abstract void truncateFullyAndStartAt(long offset, Long logStartOffset);

    abstract FetchDataInfo read(long offset, int maxLength, String isolation, boolean minOneMessage) throws IOException;

    /** {@link UnifiedLog#fetchOffsetByTimestamp}: null if there is none. */
    abstract FileRecords.TimestampAndOffset fetchOffsetByTimestamp(long timestamp);

    /** Null if there is none. */
    abstract Long firstUnstableOffset();

    /** Null if there is none. */
    abstract Uuid topicId();

    /** Null if there is none. */
    abstract Integer lastLeaderEpoch(LogAppendInfo info);

    abstract boolean isAborted(CompletedTxn ended);

    /** First and last sequence, first and last offset, timestamp. */
    abstract List<Object> numbers(BatchMetadata batch);

    abstract List<Object> numbers(EpochEntry entry);

    // ---- what is alike

    /** A configuration whose jitter is known. */
    private static final class Config extends LogConfig {
        private final long jitterMs;

        Config(Map<String, Object> props, long jitterMs) {
            super(props);
            this.jitterMs = jitterMs;
        }

        @Override
        public long randomSegmentJitter() {
            return jitterMs;
        }
    }

    /**
     * The clock's scheduler, which holds one task back, and the leader epochs until the call is over. Nobody is told of a
     * task that fails, as of a broker's.
     */
    final class Later implements Scheduler {
        @Override
        public void startup() {
            time.scheduler.startup();
        }

        @Override
        public void shutdown() throws InterruptedException {
            time.scheduler.shutdown();
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (name.equals("flush-metadata-file")) {
                held.add(task);
                return null;
            }
            Runnable untold = () -> {
                try {
                    task.run();
                } catch (KafkaStorageException e) {
                    // the directory is out of service
                }
            };
            if (name.startsWith("leader-epoch-cache-flush")) {
                soon.add(untold);
                return null;
            }
            return time.scheduler.schedule(name, untold, delayMs, periodMs);
        }

        @Override
        public void resizeThreadPool(int size) {
            time.scheduler.resizeThreadPool(size);
        }
    }

    final void refuse(String effect) throws IOException {
        if (effect.equals(failAt)) {
            throw new IOException("the disk refuses: " + effect);
        }
    }

    /** A roll to below the active segment is refused before it comes to the disk. */
    final void refuseRoll(LogSegments segments, long newOffset) throws IOException {
        if (newOffset >= segments.activeSegment().baseOffset()) {
            refuse("roll");
        }
    }

    /** A roll's own flush is the scheduler's. */
    final void refuseFlush(LogSegments segments) throws IOException {
        if (segments.activeSegment().size() > 0) {
            refuse("flush");
        }
    }

    private final class Epochs extends LeaderEpochCheckpointFile {
        Epochs(File file) throws IOException {
            super(file, failures);
        }

        @Override
        public void write(Collection<EpochEntry> entries) {
            refuseEpochs();
            super.write(entries);
        }

        @Override
        public void writeIfDirExists(Collection<EpochEntry> entries) {
            refuseEpochs();
            super.writeIfDirExists(entries);
        }

        private void refuseEpochs() {
            try {
                refuse("epochs");
            } catch (IOException e) {
                failures.maybeAddOfflineLogDir(dir.getParent().toString(), "", e);
                throw new KafkaStorageException(e.getMessage(), e);
            }
        }
    }

    private final class Producers extends ProducerStateManager {
        Producers() throws IOException {
            super(partition, dir.toFile(), transactionTimeoutMs, new ProducerStateManagerConfig(expirationMs, true), time);
        }

        @Override
        public Optional<File> takeSnapshot(boolean sync) throws IOException {
            if (mapEndOffset() > lastSnapshot()) {
                refuse("snapshot");
            }
            return super.takeSnapshot(sync);
        }

        private long lastSnapshot() {
            try {
                Field field = ProducerStateManager.class.getDeclaredField("lastSnapOffset");
                field.setAccessible(true);
                return field.getLong(this);
            } catch (ReflectiveOperationException e) {
                throw new AdapterFailure("no lastSnapOffset", e);
            }
        }

        /** It is asked just before the transaction index is written. */
        @Override
        public long lastStableOffset(CompletedTxn ended) {
            if (isAborted(ended)) {
                try {
                    refuse("txnIndex");
                } catch (IOException e) {
                    LogCalls.<RuntimeException>thrown(e);
                }
            }
            return super.lastStableOffset(ended);
        }
    }

    @SuppressWarnings("unchecked")
    static <E extends Throwable> void thrown(Throwable e) throws E {
        throw (E) e;
    }

    @Override
    public void init(JsonNode a) throws Exception {
        finish();
        partition = UnifiedLog.parseTopicPartitionName(new File(a.path("topicPartition").asText("t-0")));
        dir = scratch.directory(partition.toString());
        Map<String, Object> props = new LinkedHashMap<>();
        props.put(segmentBytes(), a.path("segmentBytes").asInt(600));
        props.put("segment.ms", a.path("segmentMs").asLong(100_000_000));
        props.put("segment.index.bytes", a.path("segmentIndexBytes").asInt(1 << 16));
        props.put("index.interval.bytes", a.path("indexIntervalBytes").asInt(4096));
        props.put("retention.bytes", a.path("retentionBytes").asLong(-1));
        props.put("retention.ms", a.path("retentionMs").asLong(-1));
        props.put("cleanup.policy", a.path("cleanupPolicy").asText("delete"));
        props.put("file.delete.delay.ms", a.path("fileDeleteDelayMs").asLong(60_000));
        props.put("max.message.bytes", a.path("maxMessageBytes").asInt(1 << 20));
        props.put("flush.messages", a.path("flushMessages").asLong(Long.MAX_VALUE));
        props.put("message.timestamp.type", a.path("messageTimestampType").asText("CreateTime"));
        props.put("message.timestamp.before.max.ms", a.path("messageTimestampBeforeMaxMs").asLong(Long.MAX_VALUE));
        props.put("message.timestamp.after.max.ms", a.path("messageTimestampAfterMaxMs").asLong(Long.MAX_VALUE));
        config = new Config(props, a.path("rollJitterMs").asLong(0));
        expirationMs = a.path("producerIdExpirationMs").asInt(86_400_000);
        transactionTimeoutMs = a.path("maxTransactionTimeoutMs").asInt(300_000);
        time = new MockTime(1_000_000, 0);
        open(0, 0, true, Optional.empty());
        runSoon();
    }

    private void runSoon() {
        soon.forEach(Runnable::run);
        soon.clear();
    }

    private void open(long logStart, long recoveryPoint, boolean clean, Optional<Uuid> topicId) throws IOException {
        held.clear();
        time = new MockTime(time.milliseconds(), 0);
        failures = new LogDirFailureChannel(1);
        File directory = dir.toFile();
        epochs = new LeaderEpochFileCache(partition, new Epochs(LeaderEpochCheckpointFile.newFile(directory)), new Later());
        producers = new Producers();
        LogSegments segments = new LogSegments(partition);
        try {
            log = loaded(clean, segments, logStart, recoveryPoint, epochs, producers, topicId);
        } catch (InconsistentTopicIdException e) {
            segments.close(); // as whoever opened it does
            throw e;
        }
    }

    static void askTimestamps(LogSegments segments) throws IOException {
        for (LogSegment segment : segments.values()) {
            segment.maxTimestampSoFar();
        }
    }

    @Override
    public Object apply(String op, JsonNode a) throws Throwable {
        failAt = a.path("failAt").asText(null);
        List<Path> inTheWay = new ArrayList<>();
        if ("topicId".equals(failAt)) {
            inTheWay.add(dir.resolve("partition.metadata.tmp"));
        } else if ("rename".equals(failAt)) {
            LogDirectory.ending(dir, ".log")
                .forEach(log -> inTheWay.add(dir.resolve(log.getFileName() + LogFileUtils.DELETED_FILE_SUFFIX)));
        }
        for (Path path : inTheWay) {
            LogDirectory.block(path);
        }
        Map<FileRecords, FileChannel> files = new LinkedHashMap<>();
        if ("cut".equals(failAt)) {
            log.logSegments().forEach(segment -> files.put(segment.log(), segment.log().channel()));
        }
        files.forEach((records, channel) -> UncutChannel.put(records, new UncutChannel(channel)));
        try {
            return call(op, a);
        } finally {
            runSoon();
            for (Path path : inTheWay) {
                LogDirectory.unblock(path);
            }
            files.forEach(UncutChannel::put);
            failAt = null;
            if (log != null) {
                log.activeSegment().offsetIndex();
                log.activeSegment().timeIndex();
            }
        }
    }

    private Object call(String op, JsonNode a) throws Throwable {
        switch (op) {
            case "appendAsLeader": {
                long id = a.path("producerId").asLong(-1);
                short epoch = (short) a.path("producerEpoch").asInt(-1);
                int sequence = a.path("baseSequence").asInt(-1);
                boolean transactional = a.path("transactional").asBoolean(false);
                VerificationGuard guard = VerificationGuard.SENTINEL;
                if (transactional) {
                    guard = log.startVerification(id, sequence, epoch, false);
                }
                return info(log.append(
                    Batches.produced(a), a.get("leaderEpoch").asInt(), AppendOrigin.CLIENT, guard, (short) 0));
            }
            case "appendEndTxnMarker":
                return info(log.append(Batches.ending(a), a.get("leaderEpoch").asInt(), AppendOrigin.COORDINATOR,
                    VerificationGuard.SENTINEL, (short) a.get("transactionVersion").asInt()));
            case "appendAsFollower":
                return info(log.appendAsFollower(Batches.copied(a), a.get("leaderEpoch").asInt()));
            case "appendBatchesAsFollower":
                return info(log.appendAsFollower(
                    fetched(a.get("batches"), a.path("missingBytes").asInt(0)), a.get("leaderEpoch").asInt()));
            case "assignTopicId":
                log.assignTopicId(Uuid.fromString(a.get("topicId").asText()));
                return null;
            case "flushMetadataFile":
                held.forEach(Runnable::run);
                held.clear();
                return null;
            case "roll":
                return roll().baseOffset();
            case "updateHighWatermark":
                return log.updateHighWatermark(a.get("offset").asLong());
            case "maybeIncrementHighWatermark": {
                LogOffsetMetadata old = maybeIncrementHighWatermark(new LogOffsetMetadata(a.get("offset").asLong()));
                return old == null ? null : old.messageOffset;
            }
            case "maybeIncrementLogStartOffset":
                return log.maybeIncrementLogStartOffset(
                    a.get("offset").asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion);
            case "assignEpochStartOffset":
                assignEpochStartOffset(a.get("leaderEpoch").asInt(), a.get("offset").asLong());
                return null;
            case "endOffsetForEpoch": {
                OffsetAndEpoch end = endOffsetForEpoch(a.get("leaderEpoch").asInt());
                return end == null ? null : object("offset", end.offset(), "leaderEpoch", leaderEpoch(end));
            }
            case "truncateTo":
                return log.truncateTo(a.get("offset").asLong());
            case "truncateFullyAndStartAt": {
                JsonNode start = a.path("logStartOffset");
                truncateFullyAndStartAt(a.get("offset").asLong(), start.isNumber() ? start.asLong() : null);
                return null;
            }
            case "deleteOldSegments":
                return log.deleteOldSegments();
            case "flush":
                log.flush(a.get("forceFlushActiveSegment").asBoolean());
                return null;
            case "advance":
                time.sleep(a.get("ms").asLong());
                return null;
            case "read":
                return shown(read(a.get("offset").asLong(), a.get("maxLength").asInt(), a.get("isolation").asText(),
                    a.get("minOneMessage").asBoolean()));
            case "fetchOffsetByTimestamp": {
                FileRecords.TimestampAndOffset found = fetchOffsetByTimestamp(a.get("timestamp").asLong());
                return found == null ? null : object("timestamp", found.timestamp, "offset", found.offset,
                    "leaderEpoch", found.leaderEpoch.orElse(null));
            }
            case "closeAndReopen":
                log.close();
                failAt = null;
                reopen(a);
                return null;
            case "crashAndReopen":
                crash(a.path("tornBytes").asLong(0));
                reopen(a);
                return null;
            case "parseTopicPartitionName": {
                TopicPartition parsed = UnifiedLog.parseTopicPartitionName(new File(a.get("name").asText()));
                return object("topic", parsed.topic(), "partition", parsed.partition());
            }
            default:
                throw new UnknownOperation(op);
        }
    }

    /** With another topic's id it is refused, and then opened without one. */
    private void reopen(JsonNode a) {
        Optional<Uuid> topicId = Optional.ofNullable(a.path("topicId").asText(null)).map(Uuid::fromString);
        try {
            if (a.path("producerSnapshotsDeleted").asBoolean(false)) {
                for (Path snapshot : LogDirectory.ending(dir, ".snapshot")) {
                    Files.delete(snapshot);
                }
            }
            long logStart = a.get("logStartOffset").asLong();
            long recoveryPoint = a.get("recoveryPoint").asLong();
            boolean clean = a.path("lastShutdownClean").asBoolean(true);
            try {
                open(logStart, recoveryPoint, clean, topicId);
            } catch (InconsistentTopicIdException e) {
                runSoon(); // the leader epochs that this load cut are in their file before the next one
                open(logStart, recoveryPoint, clean, Optional.empty());
                throw e;
            }
        } catch (IOException e) {
            throw new AdapterFailure("the log is not opened", e);
        }
    }

    private void crash(long tornBytes) {
        try {
            Path copy = scratch.directory(partition.toString());
            LogDirectory.crashed(dir, copy, tornBytes);
            log.closeHandlers();
            Scratch.delete(dir.getParent());
            dir = copy;
        } catch (IOException e) {
            throw new AdapterFailure("crash", e);
        }
    }

    // ---- batches
    private static MemoryRecords fetched(JsonNode batches, int missingBytes) {
        List<ByteBuffer> parts = new ArrayList<>();
        int size = 0;
        for (JsonNode b : batches) {
            String kind = b.path("kind").asText("data");
            long base = b.get("baseOffset").asLong();
            long timestamp = b.get("timestamp").asLong();
            int leaderEpoch = b.path("leaderEpoch").asInt(0);
            long id = b.path("producerId").asLong(-1);
            short epoch = (short) b.path("producerEpoch").asInt(-1);
            ByteBuffer part = kind.equals("abort") || kind.equals("commit")
                ? Batches.marker(base, timestamp, leaderEpoch, id, epoch, kind.equals("abort"),
                    b.path("coordinatorEpoch").asInt(0)).buffer()
                : Batches.data(base, timestamp, b.path("records"), leaderEpoch, id, epoch, b.path("baseSequence").asInt(-1),
                    kind.equals("transactional"));
            if (b.path("logAppendTime").asBoolean(false)) {
                MemoryRecords.readableRecords(part).batches().iterator().next()
                    .setMaxTimestamp(TimestampType.LOG_APPEND_TIME, timestamp);
            }
            if (b.path("damaged").asBoolean(false)) {
                part.put(part.limit() - 1, (byte) (part.get(part.limit() - 1) ^ 1));
            }
            parts.add(part);
            size += part.remaining();
        }
        ByteBuffer all = ByteBuffer.allocate(size);
        parts.forEach(part -> all.put(part.duplicate()));
        all.flip();
        all.limit(Math.max(0, size - missingBytes));
        return MemoryRecords.readableRecords(all);
    }

    // ---- answers
    private Map<String, Object> info(LogAppendInfo info) {
        return object("firstOffset", info.firstOffset(), "lastOffset", info.lastOffset(), "maxTimestamp", info.maxTimestamp(),
            "logAppendTime", info.logAppendTime(), "logStartOffset", info.logStartOffset(),
            "lastLeaderEpoch", lastLeaderEpoch(info), "numMessages", info.numMessages(),
            "validBytes", info.validBytes(), "leaderHwChange", info.leaderHwChange().toString());
    }

    private static Map<String, Object> shown(FetchDataInfo info) {
        Object aborted = info.abortedTransactions.map(all -> (Object) all.stream()
            .map(txn -> object("producerId", txn.producerId(), "firstOffset", txn.firstOffset())).toList()).orElse(null);
        LogOffsetMetadata at = info.fetchOffsetMetadata;
        return object("fetchOffset", at.messageOffset, "segmentBaseOffset", at.segmentBaseOffset,
            "relativePosition", at.relativePositionInSegment, "sizeInBytes", info.records.sizeInBytes(),
            "firstEntryIncomplete", info.firstEntryIncomplete, "batches", Batches.shown(info.records),
            "abortedTransactions", aborted);
    }

    @Override
    public Object observe() throws Exception {
        List<Object> segments = new ArrayList<>();
        List<Object> aborted = new ArrayList<>();
        for (LogSegment segment : log.logSegments()) {
            segments.add(object("baseOffset", segment.baseOffset(), "size", segment.size(),
                "largestTimestamp", segment.maxTimestampSoFar()));
            for (AbortedTxn txn : segment.txnIndex().allAbortedTxns()) {
                aborted.add(List.of(txn.producerId(), txn.firstOffset(), txn.lastOffset(), txn.lastStableOffset()));
            }
        }
        List<Object> entries = new ArrayList<>();
        for (EpochEntry entry : epochs.epochEntries()) {
            entries.add(numbers(entry));
        }
        List<Object> known = new ArrayList<>();
        for (ProducerStateEntry entry : new TreeMap<>(producers.activeProducers()).values()) {
            List<Object> batches = new ArrayList<>();
            for (BatchMetadata batch : entry.batchMetadata()) {
                batches.add(numbers(batch));
            }
            known.add(object("producerId", entry.producerId(), "epoch", entry.producerEpoch(),
                "coordinatorEpoch", entry.coordinatorEpoch(), "lastTimestamp", entry.lastTimestamp(),
                "currentTxnFirstOffset",
                entry.currentTxnFirstOffset().isPresent() ? entry.currentTxnFirstOffset().getAsLong() : null,
                "batches", batches));
        }
        return object("now", time.milliseconds(), "logStartOffset", log.logStartOffset(), "logEndOffset", log.logEndOffset(),
            "highWatermark", log.highWatermark(), "lastStableOffset", log.lastStableOffset(),
            "firstUnstableOffset", firstUnstableOffset(), "recoveryPoint", log.recoveryPoint(),
            "segments", segments, "leaderEpochs", entries, "producers", known, "snapshots", LogDirectory.snapshots(dir),
            "abortedTxns", aborted, "topicId", topicId() == null ? null : topicId().toString(),
            "files", LogDirectory.files(dir));
    }

    @Override
    public String masked(String message) {
        return null; // the messages are of many classes: the class alone is compared
    }

    private void finish() throws IOException {
        if (log != null) {
            log.closeHandlers();
            log = null;
            Scratch.delete(dir.getParent());
        }
    }

    @Override
    public void close() throws IOException {
        finish();
        scratch.close();
    }
}
