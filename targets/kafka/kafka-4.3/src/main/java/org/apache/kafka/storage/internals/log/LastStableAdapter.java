package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import kafkaspec.target.Adapter;
import kafkaspec.target.Clock;
import kafkaspec.target.Scratch;
import org.apache.kafka.clients.consumer.internals.ReadStep;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * One {@link UnifiedLog} with its {@link ProducerStateManager}, and the consumer's filter over what it is answered.
 *
 * <p>What the adapter adds: the clock, which stands still but for {@code advance}; a scheduler that does at once what is
 * to be done once, such as the deletion of a segment's files, and never what is to be done again and again; batches of
 * the records that are asked for; the bytes of so many batches, for a fetch; numbers for the guards of verifications;
 * {@code retention.ms}, set for the one call; and after a change of the high watermark the look for its place in the
 * files, as the next fetch has it.
 */
public final class LastStableAdapter implements Adapter {
    private static final BrokerTopicStats STATS = new BrokerTopicStats();
    private static final long FIRST_NOW = 1_000_000;

    private final Scratch scratch = new Scratch("last-stable");
    private final Path directory = scratch.root().resolve("t-0");
    private final Time clock = new Clock(() -> this.now);
    private final Map<Long, LogConfig> configs = new HashMap<>();
    private final ReadStep reader = new ReadStep();
    private final List<VerificationGuard> guards = new ArrayList<>();
    private long now;
    private int expirationMs;
    private boolean verifies;
    private UnifiedLog log;

    /** Whose tasks can be cancelled, which is all that is done with them. */
    private static final ScheduledThreadPoolExecutor NEVER = new ScheduledThreadPoolExecutor(0);

    /** What is to be done once is done; nothing else. */
    private static final Scheduler AT_ONCE = new Scheduler() {
        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0) {
                task.run();
            }
            return NEVER.schedule(() -> { }, Long.MAX_VALUE, TimeUnit.NANOSECONDS);
        }

        @Override
        public void resizeThreadPool(int size) {
        }
    };

    @Override
    public void init(JsonNode a) throws Exception {
        letGo();
        Scratch.delete(directory);
        Files.createDirectory(directory);
        now = FIRST_NOW;
        expirationMs = a.path("producerIdExpirationMs").asInt(86_400_000);
        verifies = a.path("transactionVerificationEnabled").asBoolean(false);
        guards.clear();
        open(0, 0);
        log.updateHighWatermark(0);
        log.fetchOffsetSnapshot();
    }

    private void open(long logStart, long recoveryPoint) throws IOException {
        log = UnifiedLog.create(directory.toFile(), config(-1), logStart, recoveryPoint, AT_ONCE, STATS, clock, 300_000,
            new ProducerStateManagerConfig(expirationMs, verifies), Integer.MAX_VALUE, new LogDirFailureChannel(1), true,
            Optional.empty(), new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    private LogConfig config(long retentionMs) {
        return configs.computeIfAbsent(retentionMs, ms -> new LogConfig(Map.of("retention.ms", ms,
            "index.interval.bytes", 0, "segment.index.bytes", 1 << 14, "segment.ms", Long.MAX_VALUE,
            "message.timestamp.after.max.ms", Long.MAX_VALUE)));
    }

    private void letGo() {
        if (log != null) {
            log.removeLogMetrics();
            log.close();
            log = null;
        }
    }

    @Override
    public Object apply(String op, JsonNode a) throws Exception {
        switch (op) {
            case "append":
                return appended(lead(data(a.get("count").asInt(), -1, (short) -1, -1, false, 0), AppendOrigin.CLIENT,
                    VerificationGuard.SENTINEL, 0));
            case "startVerification": {
                VerificationGuard guard = log.maybeStartTransactionVerification(a.get("producerId").asLong(),
                    a.get("firstSequence").asInt(), epoch(a), a.get("supportsEpochBump").asBoolean());
                if (!guard.equals(VerificationGuard.SENTINEL) && !guards.contains(guard)) {
                    guards.add(guard);
                }
                return guards.indexOf(guard) + 1;
            }
            case "produce": {
                int guard = a.path("guard").asInt(0);
                return appended(lead(data(a.get("count").asInt(), a.get("producerId").asLong(), epoch(a),
                    a.get("firstSequence").asInt(), a.get("transactional").asBoolean(), 0), AppendOrigin.CLIENT,
                    guard == 0 ? VerificationGuard.SENTINEL : guards.get(guard - 1), 0));
            }
            case "endTransaction":
                return appended(lead(marker(a.get("producerId").asLong(), epoch(a), a.get("type").asText(),
                    a.get("coordinatorEpoch").asInt(), 0), AppendOrigin.COORDINATOR, VerificationGuard.SENTINEL,
                    a.get("transactionVersion").asInt()));
            case "replicate": {
                String kind = a.get("kind").asText();
                long first = a.get("firstOffset").asLong();
                boolean isMarker = kind.equals("COMMIT") || kind.equals("ABORT");
                int coordinatorEpoch = a.get("coordinatorEpoch").asInt();
                return appended(log.appendAsFollower(isMarker
                    ? marker(a.get("producerId").asLong(), epoch(a), kind, coordinatorEpoch, first)
                    : data(a.get("count").asInt(), a.get("producerId").asLong(), epoch(a),
                        a.get("firstSequence").asInt(), kind.equals("TRANSACTIONAL"), first), 0));
            }
            case "replicateBatches":
                return appended(log.appendAsFollower(several(a.get("batches")), 0));
            case "maybeIncrementHighWatermark":
                log.maybeIncrementHighWatermark(log.maybeConvertToOffsetMetadata(a.get("offset").asLong()));
                return null;
            case "maybeIncrementLogStartOffset":
                log.maybeIncrementLogStartOffset(a.get("offset").asLong(),
                    LogStartOffsetIncrementReason.ClientRecordDeletion);
                return null;
            case "roll":
                log.roll();
                return null;
            case "deleteOldSegments":
                log.updateConfig(config(a.get("retentionMs").asLong()));
                log.deleteOldSegments();
                return null;
            case "advance":
                now += a.get("ms").asLong();
                return null;
            case "removeExpiredProducers":
                log.removeExpiredProducers(now);
                return null;
            case "truncateTo":
                log.truncateTo(a.get("offset").asLong());
                return null;
            case "truncateFullyAndStartAt":
                log.truncateFullyAndStartAt(a.get("offset").asLong(), Optional.empty());
                return null;
            case "reopen": {
                long start = log.logStartOffset();
                long end = log.logEndOffset();
                letGo();
                open(start, end);
                log.updateHighWatermark(a.get("offset").asLong());
                log.fetchOffsetSnapshot();
                return null;
            }
            case "read": {
                FetchDataInfo info = fetch(a);
                List<List<Object>> batches = new ArrayList<>();
                info.records.batches().forEach(batch -> batches.add(shown(batch)));
                List<List<Long>> aborted = new ArrayList<>();
                aborted(info).forEach(t -> aborted.add(List.of(t.producerId(), t.firstOffset())));
                return object("batches", batches,
                    "abortedTransactions", a.get("readCommitted").asBoolean() ? aborted : null);
            }
            case "consume": {
                FetchDataInfo info = fetch(a);
                boolean readCommitted = a.get("readCommitted").asBoolean();
                ReadStep.Result found = reader.of(inMemory(info), aborted(info), a.get("startOffset").asLong(),
                    readCommitted);
                return object("records", found.records(), "nextOffset", found.nextOffset());
            }
            default:
                throw new UnknownOperation(op);
        }
    }

    private LogAppendInfo lead(MemoryRecords records, AppendOrigin origin, VerificationGuard guard,
                               int transactionVersion) throws IOException {
        return log.appendAsLeader(
            records, 0, origin, RequestLocal.noCaching(), guard, (short) transactionVersion);
    }

    private static List<Long> appended(LogAppendInfo info) {
        return List.of(info.firstOffset(), info.lastOffset());
    }

    private static short epoch(JsonNode a) {
        return (short) a.get("producerEpoch").asInt();
    }

    /** Batches one behind the other, from the log's end on: producer id, epoch, kind, first sequence, coordinator epoch, records. */
    private MemoryRecords several(JsonNode batches) {
        ByteBufferOutputStream bytes = new ByteBufferOutputStream(512);
        long end = log.logEndOffset();
        for (JsonNode b : batches) {
            String kind = b.get(2).asText();
            int count = b.get(5).asInt();
            long id = b.get(0).asLong();
            short epoch = (short) b.get(1).asInt();
            MemoryRecords one = kind.equals("COMMIT") || kind.equals("ABORT")
                ? marker(id, epoch, kind, b.get(4).asInt(), end)
                : data(count, id, epoch, b.get(3).asInt(), kind.equals("TRANSACTIONAL"), end);
            bytes.write(one.buffer());
            end += count;
        }
        ByteBuffer all = bytes.buffer();
        all.flip();
        return MemoryRecords.readableRecords(all);
    }

    private MemoryRecords data(int count, long producerId, short epoch, int sequence, boolean transactional, long base) {
        MemoryRecordsBuilder builder = builder(producerId, epoch, sequence, transactional, false, base);
        for (int n = 0; n < count; n++) {
            builder.appendWithOffset(base + n, now, null, new byte[] {'v'});
        }
        return builder.build();
    }

    private MemoryRecords marker(long producerId, short epoch, String type, int coordinatorEpoch, long base) {
        MemoryRecordsBuilder builder = builder(producerId, epoch, -1, true, true, base);
        builder.appendEndTxnMarker(now, new EndTransactionMarker(
            type.equals("ABORT") ? ControlRecordType.ABORT : ControlRecordType.COMMIT, coordinatorEpoch));
        return builder.build();
    }

    private static MemoryRecordsBuilder builder(long producerId, short epoch, int sequence, boolean transactional,
                                                boolean control, long base) {
        return new MemoryRecordsBuilder(new ByteBufferOutputStream(512), RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE,
            TimestampType.CREATE_TIME, base, RecordBatch.NO_TIMESTAMP, producerId, epoch, sequence, transactional, control,
            0, 1 << 20);
    }

    /** The fetch with room for so many batches, from the first one that ends at or above its offset. */
    private FetchDataInfo fetch(JsonNode a) throws IOException {
        long start = a.get("startOffset").asLong();
        int most = a.get("maxBatches").asInt();
        int bytes = 0;
        for (RecordBatch batch : log.read(start, Integer.MAX_VALUE, FetchIsolation.LOG_END, true).records.batches()) {
            bytes += most-- > 0 ? batch.sizeInBytes() : 0;
        }
        return log.read(start, Math.max(1, bytes), a.get("readCommitted").asBoolean() ? FetchIsolation.TXN_COMMITTED
            : FetchIsolation.HIGH_WATERMARK, true);
    }

    private static List<AbortedTransaction> aborted(FetchDataInfo info) {
        return info.abortedTransactions.orElse(List.of());
    }

    /** As they come to a consumer. */
    private static MemoryRecords inMemory(FetchDataInfo info) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(info.records.sizeInBytes());
        if (info.records instanceof FileRecords) {
            ((FileRecords) info.records).readInto(buffer, 0);
        }
        return MemoryRecords.readableRecords(buffer);
    }

    private static List<Object> shown(RecordBatch batch) {
        String kind = "PLAIN";
        if (batch.isControlBatch()) {
            kind = ControlRecordType.parse(batch.iterator().next().key()).name();
        } else if (batch.isTransactional()) {
            kind = "TRANSACTIONAL";
        }
        return List.of(batch.baseOffset(), batch.lastOffset(), batch.producerId(), batch.producerEpoch(), kind);
    }

    private static Map<String, Object> object(Object... pairs) {
        Map<String, Object> out = new LinkedHashMap<>();
        for (int n = 0; n < pairs.length; n += 2) {
            out.put((String) pairs[n], pairs[n + 1]);
        }
        return out;
    }

    @Override
    public Object observe() throws IOException {
        List<Long> segments = new ArrayList<>();
        List<List<Object>> batches = new ArrayList<>();
        List<List<Long>> aborted = new ArrayList<>();
        for (LogSegment segment : log.logSegments()) {
            segments.add(segment.baseOffset());
            segment.log().batches().forEach(batch -> batches.add(shown(batch)));
            for (AbortedTxn t : segment.txnIndex().allAbortedTxns()) {
                aborted.add(List.of(t.producerId(), t.firstOffset(), t.lastOffset(), t.lastStableOffset()));
            }
        }
        List<List<Object>> producers = new ArrayList<>();
        new TreeMap<>(log.producerStateManager().activeProducers()).forEach((id, entry) -> {
            List<Object> row = new ArrayList<>(List.of(
                id, entry.producerEpoch(), entry.coordinatorEpoch(), entry.lastSeq()));
            row.add(entry.currentTxnFirstOffset().isPresent() ? entry.currentTxnFirstOffset().getAsLong() : null);
            List<List<Object>> kept = new ArrayList<>();
            entry.batchMetadata().forEach(b ->
                kept.add(List.of(b.firstSeq(), b.lastSeq(), b.firstOffset(), b.lastOffset())));
            row.add(kept);
            producers.add(row);
        });
        return object("logStartOffset", log.logStartOffset(), "highWatermark", log.highWatermark(),
            "lastStableOffset", log.lastStableOffset(), "logEndOffset", log.logEndOffset(),
            "firstUnstableOffset", log.firstUnstableOffset().orElse(null), "segments", segments, "batches", batches,
            "abortedTransactions", aborted, "producers", producers);
    }

    @Override
    public String masked(String message) {
        return scratch.masked(message);
    }

    @Override
    public void close() throws IOException {
        letGo();
        scratch.close();
    }
}
