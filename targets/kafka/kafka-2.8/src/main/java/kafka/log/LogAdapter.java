package kafka.log;

import static kafkaspec.target.Batches.object;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import kafka.api.ApiVersion;
import kafka.common.OffsetsOutOfOrderException;
import kafka.common.RecordValidationException;
import kafka.common.UnexpectedAppendOffsetException;
import kafka.server.BrokerTopicStats;
import kafka.server.FetchDataInfo;
import kafka.server.FetchHighWatermark$;
import kafka.server.FetchIsolation;
import kafka.server.FetchLogEnd$;
import kafka.server.FetchTxnCommitted$;
import kafka.server.LogDirFailureChannel;
import kafka.server.LogOffsetMetadata;
import kafka.server.epoch.EpochEntry;
import kafkaspec.target.Adapter;
import kafkaspec.target.Batches;
import kafkaspec.target.Clock;
import kafkaspec.target.Later;
import kafkaspec.target.LogDirectory;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.InconsistentTopicIdException;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import scala.Option;
import scala.collection.Iterable;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Subsystem `log` of 2.8: {@link Log}, which has what later are {@code UnifiedLog}, {@code LocalLog} and {@code LogLoader}.
 *
 * <p>The adapter adds: batches that Kafka's builder fills; a jitter that is not drawn; a clock and a scheduler that run by
 * {@code advance} alone. The task that writes the topic's id is held back until {@code flushMetadataFile}. A crash is a
 * copy of the directory, cut, and loaded again. A log that is opened is told its topic's id, if there is one, when it is
 * open; if it refuses it, it is opened again without. After each call the active segment's indexes are looked at, and each
 * segment is asked for its largest timestamp when it was loaded.
 *
 * <p>What 2.8 does not have is left out: verifications, the version of a marker, the epoch of the leader that a follower
 * fetches from, the flush of an active segment that is empty, a bound of its own for timestamps after the clock. Of the
 * disk's refusals there is only that of another name for the files of segments that retention deletes: a directory
 * stands where Kafka would move them. A log that is emptied has no other log start than its end.
 */
public final class LogAdapter implements Adapter {
    private static final int NEVER = Integer.MAX_VALUE;
    private static final List<String> NONE = Collections.singletonList(null);
    private static final Map<String, Map<String, List<String>>> VALUES = new TreeMap<>();

    static {
        for (String op : List.of("roll", "appendAsLeader", "appendEndTxnMarker", "maybeIncrementLogStartOffset",
            "truncateTo", "flush", "closeAndReopen")) {
            VALUES.put(op, Map.of("failAt", NONE));
        }
        VALUES.put("truncateFullyAndStartAt", new TreeMap<>(Map.of("failAt", NONE, "logStartOffset", NONE)));
        VALUES.put("deleteOldSegments", Map.of("failAt", Arrays.asList(null, "rename")));
    }
    private static final Map<String, FetchIsolation> ISOLATIONS = Map.of("LOG_END", FetchLogEnd$.MODULE$,
        "HIGH_WATERMARK", FetchHighWatermark$.MODULE$, "TXN_COMMITTED", FetchTxnCommitted$.MODULE$);

    private final Scratch scratch = new Scratch("log");
    private final BrokerTopicStats stats = new BrokerTopicStats();
    private long now;
    private final Clock time = new Clock(() -> now);
    private TopicPartition partition;
    private Path dir;
    private LogConfig config;
    private int expirationMs;
    private Later scheduler;
    private ProducerStateManager producers;
    private Log log;

    /** A configuration whose jitter is known. */
    private static final class Config extends LogConfig {
        private final long jitterMs;

        Config(Map<String, Object> props, long jitterMs) {
            super(props, CollectionConverters.asScala(Set.<String>of()).toSet());
            this.jitterMs = jitterMs;
        }

        @Override
        public long randomSegmentJitter() {
            return jitterMs;
        }
    }

    @Override
    public Collection<String> operations() {
        return List.of("roll", "appendAsLeader", "appendEndTxnMarker", "appendAsFollower",
            "assignTopicId", "flushMetadataFile", "updateHighWatermark", "maybeIncrementHighWatermark",
            "maybeIncrementLogStartOffset", "assignEpochStartOffset", "endOffsetForEpoch", "truncateTo",
            "truncateFullyAndStartAt", "deleteOldSegments", "flush", "advance", "read", "fetchOffsetByTimestamp",
            "closeAndReopen", "crashAndReopen", "parseTopicPartitionName");
    }

    @Override
    public Map<String, Map<String, List<String>>> values() {
        return VALUES;
    }

    @Override
    public void init(JsonNode a) throws Exception {
        finish();
        partition = Log.parseTopicPartitionName(new File(a.path("topicPartition").asText("t-0")));
        dir = scratch.directory(partition.toString());
        Map<String, Object> props = new HashMap<>();
        props.put("segment.bytes", a.path("segmentBytes").asInt(600));
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
        props.put("message.timestamp.difference.max.ms", a.path("messageTimestampBeforeMaxMs").asLong(Long.MAX_VALUE));
        config = new Config(props, a.path("rollJitterMs").asLong(0));
        expirationMs = a.path("producerIdExpirationMs").asInt(86_400_000);
        now = 1_000_000;
        open(0, 0, true);
    }

    private void open(long logStart, long recoveryPoint, boolean clean) {
        scheduler = new Later(time, "flush-metadata-file");
        producers = new ProducerStateManager(partition, dir.toFile(), expirationMs);
        log = new Log(dir.toFile(), config, logStart, recoveryPoint, scheduler, stats, time, expirationMs, NEVER, partition,
            producers, new LogDirFailureChannel(1), clean, true);
        segments().forEach(LogSegment::maxTimestampSoFar);
    }

    private Collection<LogSegment> segments() {
        return list(log.logSegments());
    }

    private static <T> List<T> list(Iterable<T> all) {
        return new ArrayList<>(CollectionConverters.asJavaCollection(all));
    }

    @Override
    public Object apply(String op, JsonNode a) throws Throwable {
        List<Path> inTheWay = new ArrayList<>();
        if (!a.path("failAt").isMissingNode() && !a.get("failAt").isNull()) {
            LogDirectory.ending(dir, ".log").forEach(file -> inTheWay.add(file.resolveSibling(file.getFileName() + ".deleted")));
        }
        for (Path path : inTheWay) {
            LogDirectory.block(path);
        }
        try {
            return call(op, a);
        } finally {
            for (Path path : inTheWay) {
                LogDirectory.unblock(path);
            }
            log.activeSegment().offsetIndex();
            log.activeSegment().timeIndex();
        }
    }

    private Object call(String op, JsonNode a) throws Throwable {
        switch (op) {
            case "appendAsLeader":
                return info(append(Batches.produced(a), a, AppendOrigin.Client$.MODULE$));
            case "appendEndTxnMarker":
                return info(append(Batches.ending(a), a, AppendOrigin.Coordinator$.MODULE$));
            case "appendAsFollower":
                return info(log.appendAsFollower(Batches.copied(a)));
            case "assignTopicId":
                log.assignTopicId(Uuid.fromString(a.get("topicId").asText()));
                return null;
            case "flushMetadataFile":
                scheduler.runKept();
                return null;
            case "roll":
                return log.roll(Option.empty()).baseOffset();
            case "updateHighWatermark":
                return log.updateHighWatermark(a.get("offset").asLong());
            case "maybeIncrementHighWatermark": {
                Option<LogOffsetMetadata> old =
                    log.maybeIncrementHighWatermark(new LogOffsetMetadata(a.get("offset").asLong(), -1L, -1));
                return old.isEmpty() ? null : old.get().messageOffset();
            }
            case "maybeIncrementLogStartOffset":
                return log.maybeIncrementLogStartOffset(a.get("offset").asLong(), ClientRecordDeletion$.MODULE$);
            case "assignEpochStartOffset":
                log.maybeAssignEpochStartOffset(a.get("leaderEpoch").asInt(), a.get("offset").asLong());
                return null;
            case "endOffsetForEpoch": {
                Option<kafka.server.OffsetAndEpoch> end = log.endOffsetForEpoch(a.get("leaderEpoch").asInt());
                return end.isEmpty() ? null
                    : object("offset", end.get().offset(), "leaderEpoch", end.get().leaderEpoch());
            }
            case "truncateTo":
                return log.truncateTo(a.get("offset").asLong());
            case "truncateFullyAndStartAt":
                log.truncateFullyAndStartAt(a.get("offset").asLong());
                return null;
            case "deleteOldSegments":
                return log.deleteOldSegments();
            case "flush":
                log.flush();
                return null;
            case "advance":
                now += a.get("ms").asLong();
                scheduler.run();
                return null;
            case "read":
                return shown(log.read(a.get("offset").asLong(), a.get("maxLength").asInt(),
                    ISOLATIONS.get(a.get("isolation").asText()), a.get("minOneMessage").asBoolean()));
            case "fetchOffsetByTimestamp": {
                Option<FileRecords.TimestampAndOffset> found = log.fetchOffsetByTimestamp(a.get("timestamp").asLong());
                return found.isEmpty() ? null : object("timestamp", found.get().timestamp, "offset", found.get().offset,
                    "leaderEpoch", found.get().leaderEpoch.orElse(null));
            }
            case "closeAndReopen":
                log.close();
                log.removeLogMetrics();
                reopen(a);
                return null;
            case "crashAndReopen":
                crash(a.path("tornBytes").asLong(0));
                reopen(a);
                return null;
            case "parseTopicPartitionName": {
                TopicPartition parsed = Log.parseTopicPartitionName(new File(a.get("name").asText()));
                return object("topic", parsed.topic(), "partition", parsed.partition());
            }
            default:
                throw new UnknownOperation(op);
        }
    }

    private LogAppendInfo append(MemoryRecords batch, JsonNode a, AppendOrigin origin) {
        return log.appendAsLeader(batch, a.get("leaderEpoch").asInt(), origin, ApiVersion.latestVersion());
    }

    private void reopen(JsonNode a) throws IOException {
        if (a.path("producerSnapshotsDeleted").asBoolean(false)) {
            for (Path snapshot : LogDirectory.ending(dir, ".snapshot")) {
                Files.delete(snapshot);
            }
        }
        long logStart = a.get("logStartOffset").asLong();
        long recoveryPoint = a.get("recoveryPoint").asLong();
        boolean clean = a.path("lastShutdownClean").asBoolean(true);
        open(logStart, recoveryPoint, clean);
        String topicId = a.path("topicId").asText(null);
        if (topicId != null) {
            try {
                log.assignTopicId(Uuid.fromString(topicId));
            } catch (InconsistentTopicIdException e) {
                segments().forEach(LogSegment::close);
                log.removeLogMetrics();
                open(logStart, recoveryPoint, clean);
                throw e;
            }
        }
    }

    private void crash(long tornBytes) throws IOException {
        Path copy = scratch.directory(partition.toString());
        LogDirectory.crashed(dir, copy, tornBytes);
        finish();
        dir = copy;
    }

    // ---- answers
    private static Map<String, Object> info(LogAppendInfo info) {
        return object("firstOffset", info.firstOffset().isEmpty() ? -1 : info.firstOffset().get().messageOffset(),
            "lastOffset", info.lastOffset(), "maxTimestamp", info.maxTimestamp(),
            "logAppendTime", info.logAppendTime(), "logStartOffset", info.logStartOffset(),
            "lastLeaderEpoch", orNull(info.lastLeaderEpoch()), "numMessages", info.numMessages(),
            "validBytes", info.validBytes(), "leaderHwChange", info.leaderHwChange().toString().toUpperCase());
    }

    private static Object orNull(Option<Object> some) {
        return some.isEmpty() ? null : some.get();
    }

    private static Map<String, Object> shown(FetchDataInfo info) {
        Object aborted = info.abortedTransactions().isEmpty() ? null
            : list(info.abortedTransactions().get()).stream()
                .map(txn -> object("producerId", txn.producerId, "firstOffset", txn.firstOffset)).toList();
        LogOffsetMetadata at = info.fetchOffsetMetadata();
        return object("fetchOffset", at.messageOffset(), "segmentBaseOffset", at.segmentBaseOffset(),
            "relativePosition", at.relativePositionInSegment(), "sizeInBytes", info.records().sizeInBytes(),
            "firstEntryIncomplete", info.firstEntryIncomplete(), "batches", Batches.shown(info.records()),
            "abortedTransactions", aborted);
    }

    @Override
    public Object observe() {
        if (log == null) { // a load has failed, of a call that is outside the contract
            return object("now", now);
        }
        List<Object> segments = new ArrayList<>();
        List<Object> aborted = new ArrayList<>();
        for (LogSegment segment : segments()) {
            segments.add(object("baseOffset", segment.baseOffset(), "size", segment.size(),
                "largestTimestamp", segment.maxTimestampSoFar()));
            for (AbortedTxn txn : list(segment.txnIndex().allAbortedTxns())) {
                aborted.add(List.of(txn.producerId(), txn.firstOffset(), txn.lastOffset(), txn.lastStableOffset()));
            }
        }
        List<Object> entries = new ArrayList<>();
        for (EpochEntry entry : list(log.leaderEpochCache().get().epochEntries())) {
            entries.add(List.of(entry.epoch(), entry.startOffset()));
        }
        List<Object> known = new ArrayList<>();
        Map<Object, ProducerStateEntry> active = new TreeMap<>(CollectionConverters.asJava(producers.activeProducers()));
        for (ProducerStateEntry entry : active.values()) {
            known.add(object("producerId", entry.producerId(), "epoch", entry.producerEpoch(),
                "coordinatorEpoch", entry.coordinatorEpoch(), "lastTimestamp", entry.lastTimestamp(),
                "currentTxnFirstOffset", orNull(entry.currentTxnFirstOffset()),
                "batches", list(entry.batchMetadata()).stream().map(b -> List.of(b.firstSeq(), b.lastSeq(),
                    b.firstOffset(), b.lastOffset(), b.timestamp())).toList()));
        }
        boolean unnamed = log.topicId().equals(Uuid.ZERO_UUID);
        return object("now", now, "logStartOffset", log.logStartOffset(), "logEndOffset", log.logEndOffset(),
            "highWatermark", log.highWatermark(), "lastStableOffset", log.lastStableOffset(),
            "firstUnstableOffset", orNull(log.firstUnstableOffset()), "recoveryPoint", log.recoveryPoint(),
            "segments", segments, "leaderEpochs", entries, "producers", known, "snapshots", LogDirectory.snapshots(dir),
            "abortedTxns", aborted, "topicId", unnamed ? null : log.topicId().toString(), "files", LogDirectory.files(dir));
    }

    @Override
    public String masked(String message) {
        return null; // the messages are of many classes: the class alone is compared
    }

    /** Three classes have moved. */
    @Override
    public String named(Throwable refusal) {
        return refusal instanceof OffsetsOutOfOrderException ? "org.apache.kafka.storage.internals.log.OffsetsOutOfOrderException"
            : refusal instanceof UnexpectedAppendOffsetException
                ? "org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException"
            : refusal instanceof RecordValidationException
                ? "org.apache.kafka.storage.internals.log.RecordValidationException" : Adapter.super.named(refusal);
    }

    private void finish() throws IOException {
        if (log != null) {
            log.removeLogMetrics();
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
